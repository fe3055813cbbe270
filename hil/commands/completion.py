"""Tab completion of the arguments of `hil`."""

from __future__ import annotations

import argparse

import argcomplete
from argcomplete.completers import DirectoriesCompleter, FilesCompleter, SuppressCompleter

from hil.commands.calibrations import CALIBRATIONS


def complete(parser: argparse.ArgumentParser) -> None:
    """Answer the shell's completion request from the environment, and exit."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                _add_completers(command)
    argcomplete.autocomplete(parser, default_completer=SuppressCompleter())


def _add_completers(command: argparse.ArgumentParser) -> None:
    for action in command._actions:
        if action.choices is None and isinstance(action.metavar, str):
            action.completer = _completer(action.metavar)  # type: ignore[attr-defined]


def _completer(metavar: str) -> object:
    """Files of the type that an argument takes, directories, or names."""
    match metavar:
        case "KIND":
            return lambda **_: CALIBRATIONS
        case "PART":
            return lambda **_: _bench_parts()
        case "RIG" | "EXPERIMENT" | "SPECIMEN" | "OPERATOR" | "OUTCOME" | "CAMPAIGN" | "RUN":
            return lambda parsed_args, **_: _of_runs(metavar.lower(), parsed_args)
        case "STUDY":
            return lambda **_: _studies()
        case "DIR":
            return DirectoriesCompleter()
        case "FILE" | "PROGRAM":
            return FilesCompleter()
    endings = [word.rsplit(".", 1)[1] for word in metavar.split("|") if "." in word]
    return FilesCompleter(endings) if endings and "=" not in metavar else lambda **_: ()


def _of_runs(column: str, args: argparse.Namespace) -> list[str]:
    """Values of a column of the index; none where there is no index."""
    from hil.errors import ConfigError
    from hil.runs.catalogue.query import Catalogue

    try:
        return Catalogue(args.folder).names(column)
    except ConfigError:
        return []


def _studies() -> list[str]:
    from hil.experiment.registry import studies

    return list(studies())


def _bench_parts() -> list[str]:
    from hil.bench.run import EXTENTS

    return list(EXTENTS["full"].parts)
