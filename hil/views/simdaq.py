"""`hil simdaq`: simulated NI-DAQmx cards for anyone's program."""

import os
import shlex
import sys
import time
from importlib.util import find_spec
from pathlib import Path

from hil.clock import RealClock
from hil.errors import ConfigError


def need_nidaqmx() -> None:
    """Raise ConfigError where the parts are not installed."""
    for name in ("nidaqmx", "cffi", "grpc"):
        if find_spec(name) is None:
            raise ConfigError(
                f"simulated cards need {name}: an extra: pip install 'hil-arrays[daq]'"
            )


def bench(cards: list[str]) -> list[tuple[str, str]]:
    """The cards asked for, each MODEL=NAME; the usual bench where none is."""
    from hil.devices.simdaq import scene

    found = scene.parse(cards) or list(scene.CARDS)
    scene.build(found, "held")
    return found


def as_text(cards: list[tuple[str, str]]) -> str:
    """One line a card, then the models there are."""
    from hil.devices.simdaq.catalog import MODELS

    lines = [f"{name:<12} {model}" for model, name in cards]
    return "\n".join([*lines, "", f"models: {', '.join(MODELS)}"])


def environment(cards: list[tuple[str, str]], *, fast: bool) -> dict[str, str]:
    """What a program's environment must have for nidaqmx to find these cards."""
    from hil.devices.simdaq import library, scene

    folder = str(library.built().parent)
    before = [f for f in os.environ.get("LD_LIBRARY_PATH", "").split(":") if f and f != folder]
    return {
        "LD_LIBRARY_PATH": ":".join([folder, *before]),
        scene.ENVIRONMENT: scene.to_environment(cards, fast=fast),
    }


def environment_as_text(variables: dict[str, str]) -> str:
    """Lines for a shell: eval "$(hil simdaq --env)"."""
    return "\n".join(f"export {name}={shlex.quote(value)}" for name, value in variables.items())


def run(program: list[str], variables: dict[str, str]) -> None:
    """Become this program; a Python file runs with this Python. Does not return.

    Raises
    ------
    ConfigError
        There is no such program.
    """
    if not program:
        raise ConfigError("--run: name a program: hil simdaq --run PROGRAM.py")
    command = program
    if program[0].endswith(".py"):
        if not Path(program[0]).is_file():
            raise ConfigError(f"{program[0]}: no such file")
        command = [sys.executable, *program]
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execvpe(command[0], command, os.environ | variables)
    except OSError as error:
        raise ConfigError(f"{command[0]}: cannot be run: {error.strerror}") from None


def serve(cards: list[tuple[str, str]], host: str, port: int, *, fast: bool) -> None:
    """Answer NI's gRPC protocol until interrupted.

    Raises
    ------
    DeviceError
        The port is taken.
    """
    from hil.devices.simdaq import scene
    from hil.devices.simdaq.grpc_server import serve as start

    clock = RealClock()
    clock.start()
    system = scene.build(cards, "free" if fast else clock.now_s)
    system.origin_unix_s = time.time()
    server, bound = start(system, port, host)
    names = ", ".join(name for _, name in cards)
    print(f"simulated NI-DAQmx at {host}:{bound}: {names} (Ctrl-C ends it)", flush=True)
    try:
        server.wait_for_termination()
    except KeyboardInterrupt:
        server.stop(0.5).wait()
