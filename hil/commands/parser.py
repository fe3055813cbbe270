"""Shared parts of the commands: parser, exit codes, JSON output.

`hil --help` must start within three times the time of a bare interpreter, so this module imports
little besides argparse.
"""

from __future__ import annotations

import argparse

from hil.errors import did_you_mean, missing_extra, remedy
from hil.platform.terminal import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any, NoReturn

DONE, BAD_INPUT, TRIPPED, DEVICE, ANSWER_NO, INTERRUPTED = 0, 2, 3, 4, 5, 130
STRICT = "refuse expired, missing or contradicting calibrations, on a bench also assumed ones"


class Parser(argparse.ArgumentParser):
    """Argument parser that reports an error in one line and suggests the nearest name."""

    def error(self, message: str) -> NoReturn:
        see = "" if message.endswith("?") else f": see {self.prog} --help"
        self.exit(BAD_INPUT, f"{self.prog}: {message}{see}\n")

    def _check_value(self, action: argparse.Action, value: object) -> None:
        if action.choices is None or value in action.choices:
            return
        name = action.option_strings[0] if action.option_strings else action.dest
        command = {".toml": "run", ".h5": "report"}.get(str(value)[str(value).rfind(".") :])
        if name == "command" and command:
            self.error(f"'{value}' is a file: did you mean 'hil {command} {value}'?")
        self.error(f"unknown {name} '{value}'{remedy(str(value), map(str, action.choices))}")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse, and refuse unknown arguments here, where the command's options are known."""
        options, unknown = super().parse_known_args(args, namespace)
        if unknown:
            word = unknown[0].split("=")[0]
            if not word.startswith("-"):
                self.error(f"one argument too many: '{word}'")
            self.error(f"unknown option {word}{did_you_mean(word, self._option_string_actions)}")
        return options, unknown

    def flag(self, name: str, text: str) -> None:
        """Add an option without a value."""
        self.add_argument(name, action="store_true", help=text)

    def value(self, name: str, metavar: str, text: str | None = None, **more: Any) -> None:
        """Add an argument or option with a value."""
        self.add_argument(name, metavar=metavar, help=text, **more)

    def path(self, name: str, metavar: str, text: str | None = None, **more: object) -> None:
        """Add an argument or option that is a path."""
        self.value(name, metavar, text, type=path_of, **more)

    def several(self, name: str, metavar: str, text: str, **more: object) -> None:
        """Add an option that may be repeated; its value is a list."""
        self.value(name, metavar, text, action="append", default=[], **more)


class Group:
    """Commands under one heading of `hil --help`.

    Parameters
    ----------
    title : heading
    subparsers : argparse object to which the commands are added
    """

    def __init__(self, title: str, subparsers: argparse._SubParsersAction[Parser]) -> None:
        self.title = title
        self.lines: list[str] = []
        self._subparsers = subparsers

    def add(self, function: Callable[[argparse.Namespace], int], text: str, example: str) -> Parser:
        """Add a command with the name of its function; the caller adds its options.

        Parameters
        ----------
        function : runs the command and returns the exit code; `import_` is `hil import`
        text : one-line help, at most 64 characters
        example : example that the help prints below the options
        """
        name = function.__name__.rstrip("_")
        command = self._subparsers.add_parser(
            name, description=f"{text[0].upper()}{text[1:]}.", epilog=f"example: {example}"
        )
        command.set_defaults(function=function)
        command.flag("--json", "print figures as JSON")
        self.lines.append(f"  {name:<13} {text}")
        return command


def add_scheduler(parser: Parser) -> None:
    """Add the options of a Dask cluster."""
    parser.value("--scheduler", "ADDRESS", "of a Dask cluster, such as tls://host:8786")
    parser.path(
        "--scheduler-security",
        "FILE.toml",
        "its TLS credentials: the PEM files ca, cert and key of a client",
    )


def add_sets(command: Parser) -> None:
    """Add `--set` to a command that reads a configuration."""
    text = "override a key of the merged configuration (repeatable)"
    command.several("--set", "KEY.PATH=VALUE", text)


def path_of(text: str) -> Path:
    """Convert an argument to a path; imports pathlib only when used."""
    from pathlib import Path

    return Path(text)


def count_of(text: str) -> int:
    """Convert an argument to an integer, 0 or more."""
    number = int(text) if text.isdecimal() else -1
    if not 0 <= number < 2**63:
        raise argparse.ArgumentTypeError(f"'{text}': give a whole number, 0 or more")
    return number


def need_serial() -> None:
    """Check that the package for serial ports is installed; ConfigError if not."""
    from importlib.util import find_spec

    if find_spec("serial") is None:
        raise missing_extra("a serial port", "daq")


def print_json(value: object) -> None:
    """Print figures as JSON."""
    import json

    from hil.record.summary import plain

    say(json.dumps(plain(value), indent=2))


def show(args: argparse.Namespace, facts: object, text: object) -> None:
    """Print a result: its figures as JSON with `--json`, else its text."""
    if args.json:
        print_json(facts)
    else:
        say(text)
