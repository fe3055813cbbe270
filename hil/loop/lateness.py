"""Causes of late ticks, from counts of the Linux kernel.

The counts are read before and after the run, and after a late tick has pushed its row; never within
a tick. After a late tick, an event reports the difference from the previous reading; the summary
has the difference over the run. Context switches and page faults are those of the loop's thread.
`waited_s` is the time for which the thread was ready to run but had no CPU. `steal_s` is the time
for which the hypervisor ran another guest on the loop's CPU, in steps of 10 ms.
"""

import os
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from math import inf, nan
from pathlib import Path

from hil.config.values import Figures

EVENTS_MAX = 100
EVENTS_APART_S = 0.02
PERIOD_MIN_S = 5e-4  # reading the counts takes about 0.1 ms, too long in shorter periods
LATE_SHARE = 0.5  # fraction of a period after which a tick counts as late

Say = Callable[[float, str, str, str], None]


@dataclass(frozen=True)
class Counts:
    """The kernel's counts; NaN for counts it does not provide."""

    involuntary_switches: float
    voluntary_switches: float
    minor_faults: float
    major_faults: float
    waited_s: float
    steal_s: float

    def since(self, before: "Counts") -> "Counts":
        """The difference."""
        return Counts(*(getattr(self, f.name) - getattr(before, f.name) for f in fields(Counts)))

    def as_text(self) -> str:
        """The non-zero counts as text, without voluntary switches: every tick waits once."""
        lines = [
            (self.involuntary_switches, f"{self.involuntary_switches:.0f} context switches forced"),
            (self.minor_faults, f"{self.minor_faults:.0f} page faults"),
            (self.major_faults, f"{self.major_faults:.0f} of them from disk"),
            (self.waited_s, f"{1e3 * self.waited_s:.1f} ms ready but without a CPU"),
            (self.steal_s, f"{1e3 * self.steal_s:.0f} ms stolen by the hypervisor"),
        ]
        text = ", ".join(words for value, words in lines if value > 0.0)
        return text or "no cause that the kernel counts"


def counts() -> Counts:
    """Read the counts of this thread and of its CPU, or of all CPUs if it is not bound to one.

    Only Linux has them; elsewhere they are NaN.
    """
    if sys.platform != "linux":
        return Counts(*(nan for _ in fields(Counts)))
    import resource

    use = resource.getrusage(resource.RUSAGE_THREAD)
    return Counts(
        use.ru_nivcsw, use.ru_nvcsw, use.ru_minflt, use.ru_majflt, _waited_s(), _steal_s()
    )


def _waited_s() -> float:
    try:
        return 1e-9 * int(Path("/proc/thread-self/schedstat").read_text().split()[1])
    except (OSError, IndexError, ValueError):
        return nan


def _steal_s() -> float:
    if sys.platform != "linux":
        return nan
    allowed = os.sched_getaffinity(0)
    name = f"cpu{min(allowed)}" if len(allowed) == 1 else "cpu"
    try:
        lines = [line.split() for line in Path("/proc/stat").read_text().splitlines()]
        steal = next(int(words[8]) for words in lines if words[0] == name)
    except (OSError, IndexError, ValueError, StopIteration):
        return nan
    return steal / os.sysconf("SC_CLK_TCK")


class LatenessCauses:
    """Collects the counts of a run.

    Parameters
    ----------
    say : records an event (t_s, level, source, text)
    period_s : period of the loop

    Attributes
    ----------
    late_s : lateness above which the counts of a tick are read. It is infinite if the period is
        below PERIOD_MIN_S; then only the counts of the whole run are read.
    """

    def __init__(self, say: Say, period_s: float) -> None:
        self.late_s = LATE_SHARE * period_s if period_s >= PERIOD_MIN_S else inf
        self._say = say
        self._n_events = 0
        self._last_t_s = -EVENTS_APART_S
        self.begin()

    def begin(self) -> None:
        """Start counting for the run."""
        self._first = self._last = counts()

    def look(self, t_s: float, late_s: float) -> None:
        """Report the counts since the last call; the tick at t_s was this late."""
        if self._n_events >= EVENTS_MAX or t_s - self._last_t_s < EVENTS_APART_S:
            return
        now = counts()
        since_s = max(0.0, self._last_t_s)
        self._say(
            t_s, "warning", "kernel",
            f"late by {1e6 * late_s:.0f} us; since {since_s:.3f} s: "
            f"{now.since(self._last).as_text()}",
        )  # fmt: skip
        self._last, self._last_t_s = now, t_s
        self._n_events += 1

    def total(self) -> Figures:
        """Counts since the run started."""
        return asdict(counts().since(self._first))
