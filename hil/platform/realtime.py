"""Real-time set-up of a process for a loop on the real clock, undone afterwards.

It requests priority SCHED_FIFO, locked memory, one CPU and timers without slack, and switches
garbage collection off. It reports what the kernel does not permit.
"""

import contextlib
import ctypes
import gc
import os
import sys
from collections.abc import Iterator

PRIORITY = 80
SPIN_S = 60e-6  # most wake-ups on an idle computer take less than this
SPIN_SHARE_MAX = 0.25  # largest spin time as a fraction of the period
TIMER_SLACK_NS = 1
_MCL_CURRENT, _MCL_FUTURE = 1, 2
_PR_SET_TIMERSLACK, _PR_GET_TIMERSLACK = 29, 30


@contextlib.contextmanager
def prepared() -> Iterator[dict[str, str]]:
    """Set this process up for the block; yields what was granted, or why not, by name."""
    if sys.platform != "linux":
        yield {"realtime": "not on this system"}
        return
    with contextlib.ExitStack() as undo:
        yield {
            "timer_slack": _timer_slack(undo),
            "memory": _memory(undo),
            "cpu": _cpu(undo),
            "garbage_collector": _garbage_collector(undo),
            # Last, because locking memory takes long: the kernel throttles a SCHED_FIFO process
            # that has used up its share of a second.
            "priority": _priority(undo),
        }


def spin_s(wanted_s: float | None, period_s: float) -> float:
    """Spin time before a deadline, s: `wanted_s`, by default SPIN_S, and 0 on a single CPU."""
    if wanted_s is not None:
        return wanted_s
    if sys.platform != "linux" or len(os.sched_getaffinity(0)) < 2:
        return 0.0
    return min(SPIN_S, SPIN_SHARE_MAX * period_s)


def _priority(undo: contextlib.ExitStack) -> str:
    policy, param = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        # Reset on fork: processes started by this one get normal priority.
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(PRIORITY))
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
    was_on = gc.isenabled()
    gc.collect()
    gc.freeze()
    gc.disable()
    undo.callback(gc.unfreeze)
    if was_on:
        undo.callback(gc.enable)
    return "off"
