"""Time: the real clock, or a virtual one that is never late. Nobody else asks the time."""

import time
from collections.abc import Callable
from typing import Protocol


class Clock(Protocol):
    """Seconds since the run's start."""

    name: str

    def start(self) -> None:
        """Make now the time 0."""

    def now_s(self) -> float: ...

    def sleep_until_s(self, deadline_s: float) -> float:
        """Return at the deadline; how late, in s."""
        ...


class RealClock:
    """The machine's monotonic clock with absolute deadlines.

    Parameters
    ----------
    spin_s : float
        How long before a deadline it stops sleeping and watches the clock instead.

    Attributes
    ----------
    started_s : float
        When the run started, on the machine's own scale.
    """

    name = "real"

    def __init__(self, spin_s: float = 0.0) -> None:
        self.started_s = 0.0
        self._spin_s = spin_s

    def start(self) -> None:
        self.started_s = time.perf_counter()

    def now_s(self) -> float:
        return time.perf_counter() - self.started_s

    def sleep_until_s(self, deadline_s: float) -> float:
        now_s = time.perf_counter
        due_s = self.started_s + deadline_s
        wake_s = due_s - self._spin_s
        while (remaining_s := wake_s - now_s()) > 0.0:
            time.sleep(remaining_s)
        while (late_s := now_s() - due_s) < 0.0:
            pass
        return late_s


def sleep_s(duration_s: float) -> None:
    """Let real time pass, outside a tick."""
    time.sleep(duration_s)


class VirtualClock:
    """Time that goes as fast as the loop does and is always on time."""

    name = "virtual"

    def __init__(self) -> None:
        self._now_s = 0.0

    def start(self) -> None:
        self._now_s = 0.0

    def now_s(self) -> float:
        return self._now_s

    def sleep_until_s(self, deadline_s: float) -> float:
        self._now_s = deadline_s
        return 0.0


class StallingClock(VirtualClock):
    """Virtual time on a machine that stands still now and then.

    Parameters
    ----------
    stall_s : how long the work of the tick at t_s takes longer than its period's start
    """

    def __init__(self, stall_s: Callable[[float], float]) -> None:
        super().__init__()
        self._stall_of = stall_s
        self._stalled_s = 0.0

    def now_s(self) -> float:
        return self._now_s + self._stalled_s

    def sleep_until_s(self, deadline_s: float) -> float:
        self._now_s = max(self.now_s(), deadline_s)
        self._stalled_s = self._stall_of(deadline_s)
        return self._now_s - deadline_s
