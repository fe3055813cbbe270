"""Real-time set-up of a process for a loop on the real clock, undone afterwards.

On Linux it requests priority SCHED_FIFO, locked memory, one CPU and timers without slack; on
Windows high priority and timers of 1 ms. Everywhere it switches garbage collection off. It reports
what the kernel does not permit.
"""

import contextlib
import ctypes
import gc
import os
import sys
from collections.abc import Iterator

import psutil

PRIORITY = 80
SPIN_S = 60e-6  # most wake-ups on an idle computer take less than this
SPIN_SHARE_MAX = 0.25  # largest spin time as a fraction of the period
TIMER_SLACK_NS = 1
_MCL_CURRENT, _MCL_FUTURE = 1, 2
_PR_SET_TIMERSLACK, _PR_GET_TIMERSLACK = 29, 30


@contextlib.contextmanager
def prepared() -> Iterator[dict[str, str]]:
    """Set this process up for the block; yields what was granted, or why not, by name."""
    with contextlib.ExitStack() as undo:
        granted = {"garbage_collector": _garbage_collector(undo)}
        if sys.platform == "linux":
            granted["timer_slack"] = _timer_slack(undo)
            granted["memory"] = _memory(undo)
            granted["cpu"] = _cpu(undo)
            # Last, because locking memory takes long: the kernel throttles a SCHED_FIFO process
            # that has used up its share of a second.
            granted["priority"] = _priority(undo)
        elif sys.platform == "win32":
            granted["timers"] = _short_timers(undo)
            granted["priority"] = _high_priority(undo)
        yield granted


def spin_s(wanted_s: float | None, period_s: float) -> float:
    """Spin time before a deadline, s: `wanted_s`, by default SPIN_S, and 0 on a single CPU."""
    if wanted_s is not None:
        return wanted_s
    if sys.platform != "linux" or len(os.sched_getaffinity(0)) < 2:
        return 0.0
    return min(SPIN_S, SPIN_SHARE_MAX * period_s)


if sys.platform == "win32":

    def _short_timers(undo: contextlib.ExitStack) -> str:
        """Ask for ticks of 1 ms: timeBeginPeriod of the Windows multimedia API."""
        multimedia = ctypes.WinDLL("winmm")
        if multimedia.timeBeginPeriod(1) != 0:
            return "1 ms not granted"
        undo.callback(multimedia.timeEndPeriod, 1)
        return "1 ms"

    def _high_priority(undo: contextlib.ExitStack) -> str:
        process = psutil.Process()
        undo.callback(process.nice, process.nice())
        process.nice(psutil.HIGH_PRIORITY_CLASS)
        return "high"


if sys.platform == "linux":

    def _priority(undo: contextlib.ExitStack) -> str:
        policy, param = os.sched_getscheduler(0), os.sched_getparam(0)
        kind = os.SCHED_FIFO | os.SCHED_RESET_ON_FORK
        try:
            # Reset on fork: processes started by this one get normal priority.
            os.sched_setscheduler(0, kind, os.sched_param(PRIORITY))
        except OSError as error:
            return f"not granted ({error.strerror}): hil doctor shows how"
        undo.callback(os.sched_setscheduler, 0, policy, param)
        return f"SCHED_FIFO {PRIORITY}"

    def _memory(undo: contextlib.ExitStack) -> str:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mlockall(_MCL_CURRENT | _MCL_FUTURE) != 0:
            return f"not locked ({os.strerror(ctypes.get_errno())}): hil doctor shows how"
        undo.callback(libc.munlockall)
        return "locked"

    def _cpu(undo: contextlib.ExitStack) -> str:
        allowed = os.sched_getaffinity(0)
        if len(allowed) < 2:
            return "the only one"
        chosen = max(allowed)  # interrupts and other work run mostly on the first CPU
        os.sched_setaffinity(0, {chosen})
        undo.callback(os.sched_setaffinity, 0, allowed)
        return f"CPU {chosen}"

    def _timer_slack(undo: contextlib.ExitStack) -> str:
        libc = ctypes.CDLL(None, use_errno=True)
        before_ns = libc.prctl(_PR_GET_TIMERSLACK, 0, 0, 0, 0)
        if libc.prctl(_PR_SET_TIMERSLACK, TIMER_SLACK_NS, 0, 0, 0) != 0:
            return f"not set ({os.strerror(ctypes.get_errno())})"
        undo.callback(libc.prctl, _PR_SET_TIMERSLACK, before_ns, 0, 0, 0)
        return f"{TIMER_SLACK_NS} ns"


def _garbage_collector(undo: contextlib.ExitStack) -> str:
    was_on, is_frozen = gc.isenabled(), gc.get_freeze_count() > 0
    gc.collect()
    gc.freeze()
    gc.disable()
    if not is_frozen:  # or what somebody else has frozen would be searched from now on
        undo.callback(gc.unfreeze)
    if was_on:
        undo.callback(gc.enable)
    return "off"
