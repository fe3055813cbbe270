"""Processes: whether one lives and since when, and how to stop one."""

import contextlib
import os
import platform
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil

# The interpreter for modules of hil. Without the working folder on its path: recordings may lie
# there beside modules that would stand in for installed ones.
PYTHON = (sys.executable, "-P")
LEAVE = b"leave\n"
STEP = "step: "  # begins a line that says what the start of an attended run is at
NICE = 5  # of POSIX: 0 is ordinary, 19 the least
# STOP_SIGNALS ask a run to end: it switches everything off and closes its recording. OTHER_ENDS are
# the other signals whose default is to end a process that could go on. APART are the options of
# subprocess.Popen for a child that Ctrl-C in the terminal does not reach.
APART: dict[str, Any]

if sys.platform == "win32":
    STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGBREAK)
    OTHER_ENDS: tuple[int, ...] = ()
    APART = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
    _STOP = _LEFT = signal.CTRL_BREAK_EVENT
    _NICE = psutil.BELOW_NORMAL_PRIORITY_CLASS

    def parent_watch(pid: int) -> Callable[[], bool]:
        """A function that returns whether the process that started this one still lives."""
        try:
            return psutil.Process(pid).is_running
        except psutil.NoSuchProcess:
            return lambda: False

else:
    STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
    _UNCAUGHT = {signal.SIGKILL, signal.SIGSTOP}
    _NO_ENDS = {
        signal.SIGCHLD, signal.SIGCONT, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU,
        signal.SIGURG, signal.SIGWINCH,
    }  # fmt: skip
    _DEFECTS = {
        signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGSEGV, signal.SIGSYS,
        signal.SIGTRAP,
    }  # fmt: skip
    OTHER_ENDS = tuple(
        sorted(signal.valid_signals() - {*STOP_SIGNALS} - _UNCAUGHT - _NO_ENDS - _DEFECTS)
    )
    APART = {"start_new_session": True}
    _STOP, _LEFT, _NICE = signal.SIGINT, signal.SIGTERM, NICE  # a shell may have SIGINT ignored

    def parent_watch(pid: int) -> Callable[[], bool]:
        """A function that returns whether the process that started this one still lives."""
        return lambda: os.getppid() == pid


if sys.platform == "linux":

    def started(pid: int) -> str | None:
        """When a process started; it tells a reused process id from the old one.

        Counted in ticks since the computer's start, which no clock that is set can change. None
        without such a process.
        """
        try:
            text = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            return None
        return text.rpartition(")")[2].split()[19]

else:

    def started(pid: int) -> str | None:
        """When a process started, in ms; None without such a process."""
        try:
            return f"{1e3 * psutil.Process(pid).create_time():.0f}"
        except psutil.Error:
            return None


if sys.platform == "darwin":

    def cpus() -> list[int]:
        """The processors: this system does not tell on which of them a process may run."""
        return list(range(os.cpu_count() or 1))

else:

    def cpus() -> list[int]:
        """The processors on which this process may run."""
        return psutil.Process().cpu_affinity()


def signal_name(number: int) -> str:
    """The name of a signal, such as SIGTERM; most real-time signals have only a number."""
    with contextlib.suppress(ValueError):
        return signal.Signals(number).name
    return f"signal {number}"


def is_alive(pid: int) -> bool:
    """Whether a process exists, of any user."""
    return psutil.pid_exists(pid)


def is_running(pid: int, since: str | None) -> bool:
    """Whether the process that `started` then still runs: not one that nobody has waited for."""
    try:
        return started(pid) == since and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def this_process() -> dict[str, object]:
    """What tells this process from every other one, also on other computers."""
    return {"pid": os.getpid(), "pid_started": started(os.getpid()), "host": platform.node()}


def may_be_running(one: Mapping[str, Any]) -> bool:
    """Whether the process that wrote this of itself still runs; True on another computer."""
    if one["host"] != platform.node():
        return True
    return one["pid_started"] is not None and started(one["pid"]) == one["pid_started"]


def commands_with(word: str) -> Iterator[tuple[list[str], Path]]:
    """Command line and working folder of every process with this argument before its last."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            words = process.cmdline()
            if word in words[:-1]:
                yield words, Path(process.cwd())


def family(pid: int) -> list[psutil.Process]:
    """A process and all that it started."""
    first = psutil.Process(pid)
    return [first, *first.children(recursive=True)]


def ask_to_stop(pid: int) -> None:
    """Send the process what Ctrl-C sends; on Windows, Ctrl-Break to one started with APART."""
    os.kill(pid, _STOP)


def stop_when_left() -> None:
    """End as by a signal when standard input ends, unless it has said LEAVE before."""

    def wait() -> None:
        data = b""
        while more := os.read(0, 64):  # sys.stdin would hold its lock when the interpreter ends
            data += more
        if LEAVE not in data:
            os.kill(os.getpid(), _LEFT)

    threading.Thread(target=wait, daemon=True).start()


def kill(pid: int) -> None:
    """End a process at once; it gets no chance to clean up."""
    psutil.Process(pid).kill()


def boot() -> str:
    """Which start of this computer it is."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return f"{psutil.boot_time():.0f}"


def be_nice() -> None:
    """Let this process run after those of ordinary priority."""
    psutil.Process().nice(_NICE)
