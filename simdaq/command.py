"""`python -m simdaq`: simulated NI-DAQmx cards for anyone's program."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from simdaq.errors import PortError, SetupError
from simdaq.stopwatch import stopwatch

NAME = "python -m simdaq"


def add_arguments(parser: argparse.ArgumentParser, name: str = NAME) -> None:
    """Add the options of the command, which the user knows by this name."""
    parser.add_argument("--card", action="append", default=[], metavar="MODEL=NAME",
                        help="a card of the bench (repeatable; default: the bench that "
                        f"`{name}` lists)")  # fmt: skip
    parser.add_argument("--fast", action="store_true",
                        help="time passes only while the program waits, and in no "
                        "time")  # fmt: skip
    parser.add_argument("--port", type=int, metavar="N",
                        help="serve NI's gRPC protocol at this port (NI's own: 31763)")  # fmt: skip
    parser.add_argument("--host", default="127.0.0.1",
                        help="with --port (default: 127.0.0.1)")  # fmt: skip
    parser.add_argument("--env", action="store_true",
                        help=f'print what any program needs: eval "$({name} --env)"')  # fmt: skip
    parser.add_argument("--run", nargs=argparse.REMAINDER, metavar="PROGRAM",
                        help="run a program on these cards, with all arguments that "
                        "follow")  # fmt: skip


def run(args: argparse.Namespace, name: str = NAME) -> None:
    """Do what these arguments ask for.

    Raises
    ------
    SetupError
        An argument is wrong, or something is missing on this machine.
    PortError
        The port is taken.
    """
    _need_packages()
    cards = _bench(args.card)
    if args.port is not None:
        _serve(cards, args.host, args.port, fast=args.fast)
    elif args.env:
        variables = _environment(cards, fast=args.fast)
        print("\n".join(f"export {key}={shlex.quote(text)}" for key, text in variables.items()))
    elif args.run is not None:
        if not args.run:
            raise SetupError(f"--run: name a program: {name} --run PROGRAM.py")
        _become(args.run, _environment(cards, fast=args.fast))
    elif args.json:
        print(json.dumps([{"model": model, "name": card} for model, card in cards], indent=2))
    else:
        print(_as_text(cards))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; an expected failure is a line on standard error and an exit code."""
    parser = argparse.ArgumentParser(
        prog=NAME, description="Simulated NI-DAQmx cards for any nidaqmx program."
    )
    parser.add_argument("--json", action="store_true", help="list the bench as JSON")
    add_arguments(parser)
    try:
        run(parser.parse_args(argv))
    except SetupError as error:
        print(error, file=sys.stderr)
        return 2
    except PortError as error:
        print(error, file=sys.stderr)
        return 4
    return 0


def _need_packages() -> None:
    for package in ("nidaqmx", "cffi", "grpc"):
        if find_spec(package) is None:
            raise SetupError(
                f"simulated cards need {package}: an extra: pip install 'hil-arrays[daq]'"
            )


def _bench(cards: list[str]) -> list[tuple[str, str]]:
    """The cards asked for, each MODEL=NAME; the usual bench where none is."""
    from simdaq import scene  # needs the extra, as all below

    found = scene.parse(cards) or list(scene.CARDS)
    scene.build(found, "held")
    return found


def _as_text(cards: list[tuple[str, str]]) -> str:
    """One line a card, then the models there are."""
    from simdaq.catalog import MODELS

    lines = [f"{name:<12} {model}" for model, name in cards]
    return "\n".join([*lines, "", f"models: {', '.join(MODELS)}"])


def _environment(cards: list[tuple[str, str]], *, fast: bool) -> dict[str, str]:
    """What a program's environment must have for nidaqmx to find these cards."""
    from simdaq import library, scene

    folder = str(library.built().parent)
    before = [f for f in os.environ.get("LD_LIBRARY_PATH", "").split(":") if f and f != folder]
    return {
        "LD_LIBRARY_PATH": ":".join([folder, *before]),
        scene.ENVIRONMENT: scene.to_environment(cards, fast=fast),
    }


def _become(program: list[str], variables: dict[str, str]) -> None:
    """Become this program; a Python file runs with this Python. Does not return."""
    command = program
    if program[0].endswith(".py"):
        if not Path(program[0]).is_file():
            raise SetupError(f"{program[0]}: no such file")
        command = [sys.executable, *program]
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execvpe(command[0], command, os.environ | variables)
    except OSError as error:
        raise SetupError(f"{command[0]}: cannot be run: {error.strerror}") from None


def _serve(cards: list[tuple[str, str]], host: str, port: int, *, fast: bool) -> None:
    """Answer NI's gRPC protocol until interrupted."""
    from simdaq import scene
    from simdaq.grpc_server import serve

    system = scene.build(cards, "free" if fast else stopwatch())
    system.origin_unix_s = time.time()
    server, bound = serve(system, port, host)
    names = ", ".join(name for _, name in cards)
    print(f"simulated NI-DAQmx at {host}:{bound}: {names} (Ctrl-C ends it)", flush=True)
    try:
        server.wait_for_termination()
    except KeyboardInterrupt:
        server.stop(0.5).wait()
