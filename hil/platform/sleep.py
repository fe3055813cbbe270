"""Sleep inhibition: a run on the real clock asks the system not to suspend the computer.

A child process holds the lock and ends when its standard input closes. So the lock is released
however this process ends. On Windows the thread holds it.
"""

import contextlib
import ctypes
import select
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence

ANSWER_MAX_S = 2.0
HELD = ("sh", "-c", "echo held; exec cat")
# Commands that inhibit sleep while they run another command, the strongest first. logind treats the
# lid switch separately, and not every user may inhibit it.
COMMANDS: dict[str, tuple[tuple[str, ...], ...]] = {
    "linux": tuple(
        ("systemd-inhibit", f"--what={what}", "--who=hil", "--why=a run", "--mode=block")
        for what in ("sleep:idle:handle-lid-switch", "sleep:idle")
    ),
    "darwin": (("caffeinate", "-ims"),),
}
NOT_HELD = "not held off"


@contextlib.contextmanager
def held_off(commands: Sequence[Sequence[str]] | None = None) -> Iterator[str]:
    """Inhibit sleep for the block; yields how, or NOT_HELD and the reason."""
    if sys.platform == "win32":
        with _windows_kept_awake() as how:
            yield how
        return
    if commands is None:
        commands = COMMANDS.get(sys.platform, ())
    why = "not on this system"
    for command in commands:
        if shutil.which(command[0]) is None:
            why = f"no {command[0]}"
            continue
        held = _start(command)
        why = _answer(held, command[0])
        if not why:
            try:
                yield f"held off by {' '.join(command[:2])}"
            finally:
                held.communicate()  # closes its standard input
            return
    yield f"{NOT_HELD}: {why}"


if sys.platform == "win32":
    _CONTINUOUS, _SYSTEM_REQUIRED = 0x80000000, 0x00000001

    @contextlib.contextmanager
    def _windows_kept_awake() -> Iterator[str]:
        set_state = ctypes.WinDLL("kernel32").SetThreadExecutionState
        if not set_state(_CONTINUOUS | _SYSTEM_REQUIRED):
            yield f"{NOT_HELD}: refused by Windows"
            return
        try:
            yield "held off by SetThreadExecutionState"
        finally:
            set_state(_CONTINUOUS)


def _start(command: Sequence[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*command, *HELD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl-C must reach only the loop
    )


def _answer(held: subprocess.Popen[str], name: str) -> str:
    """Wait for the lock; returns '' if it is held, otherwise the reason after ending the child."""
    assert held.stdout is not None
    readable, _, _ = select.select([held.stdout], [], [], ANSWER_MAX_S)
    if readable and held.stdout.readline().strip() == "held":
        return ""
    if not readable:
        held.kill()
    _, text = held.communicate()
    return text.strip().splitlines()[-1] if text.strip() else f"{name} did not answer"
