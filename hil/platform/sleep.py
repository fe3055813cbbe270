"""Keeping the machine awake: a run on the real clock asks the system not to suspend it.

The lock belongs to a child process, which ends when its standard input does: however this process
ends, the machine may sleep again.
"""

import contextlib
import select
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence

ANSWER_MAX_S = 2.0
HELD = ("sh", "-c", "echo held; exec cat")
# What holds sleep off while it runs a command, the farthest reaching first. The lid is a switch of
# its own for logind; not every user may hold it.
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
    """Hold off the machine's sleep for the block; yields how, or begins with NOT_HELD and why."""
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


def _start(command: Sequence[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*command, *HELD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # a terminal's Ctrl-C is for the loop
    )


def _answer(held: subprocess.Popen[str], name: str) -> str:
    """Empty once it holds; else why not, and it is over."""
    assert held.stdout is not None
    there, _, _ = select.select([held.stdout], [], [], ANSWER_MAX_S)
    if there and held.stdout.readline().strip() == "held":
        return ""
    if not there:
        held.kill()
    _, said = held.communicate()
    return said.strip().splitlines()[-1] if said.strip() else f"{name} did not answer"
