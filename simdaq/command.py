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
from typing import TYPE_CHECKING, NoReturn

from simdaq.errors import PortError, SetupError
from simdaq.options import NAME, add_arguments
from simdaq.stopwatch import stopwatch

if TYPE_CHECKING:
    from simdaq.scene import BenchPlan


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
    plan = _plan(args)
    if args.port is not None:
        _serve(plan, args.host, args.port)
    elif args.env:
        variables = environment(plan)
        print("\n".join(f"export {key}={shlex.quote(text)}" for key, text in variables.items()))
    elif args.run is not None:
        if not args.run:
            raise SetupError(f"--run: name a program: {name} --run PROGRAM.py")
        _become(args.run, environment(plan))
    elif args.json:
        cards = [{"model": card.model, "name": card.name} for card in plan.entries]
        print(json.dumps(cards, indent=2))
    else:
        print(_as_text(plan))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; an expected failure is a line on standard error and an exit code."""
    parser = OneLine(prog=NAME, description="Simulated NI-DAQmx cards for any nidaqmx program.")
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


def _plan(args: argparse.Namespace) -> BenchPlan:
    """The bench asked for; built once, so that a mistake is reported before a program runs."""
    from simdaq import scene  # needs the extra, as all below

    plan = scene.BenchPlan(scene.parse(args.card), args.max, args.scene, args.fast)
    if not (args.card or args.max or args.scene):
        plan = scene.plan_of_environment()
        plan.fast = plan.fast or args.fast
    scene.build(plan, "held")
    return plan


def _as_text(plan: BenchPlan) -> str:
    """One line a card, then the models there are."""
    from simdaq.catalog import models

    lines = [f"{card.name:<12} {card.model}" for card in plan.entries]
    return "\n".join([*lines, "", f"models: {', '.join(models())}"])


def environment(plan: BenchPlan) -> dict[str, str]:
    """Variables that a program's environment needs for nidaqmx to find these cards."""
    from simdaq import library, scene

    folder = str(library.built().parent)
    before = [f for f in os.environ.get("LD_LIBRARY_PATH", "").split(":") if f and f != folder]
    return {
        "LD_LIBRARY_PATH": ":".join([folder, *before]),
        scene.ENVIRONMENT: plan.to_environment(),
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


def _serve(plan: BenchPlan, host: str, port: int) -> None:
    """Answer NI's gRPC protocol until interrupted."""
    from simdaq import scene
    from simdaq.grpc_server import serve

    system = scene.build(plan, "free" if plan.fast else stopwatch())
    system.origin_unix_s = time.time()
    server, bound = serve(system, port, host)
    names = ", ".join(card.name for card in plan.entries)
    print(f"simulated NI-DAQmx at {host}:{bound}: {names} (Ctrl-C ends it)")
    # NI's own server prints this line, and programs that start it read the port from it.
    print(f"Server listening on port {bound}", flush=True)
    try:
        server.wait_for_termination()
    except KeyboardInterrupt:
        server.stop(0.5).wait()


class OneLine(argparse.ArgumentParser):
    """A parser whose refusals are one line."""

    def error(self, message: str) -> NoReturn:
        raise SetupError(f"{self.prog}: {message}: see {self.prog} --help")


def console() -> None:
    """The installed command `simdaq`."""
    try:
        code = main()
        sys.stdout.flush()
    except BrokenPipeError:  # as by `simdaq | head`: the reader has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    sys.exit(code)
