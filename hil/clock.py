"""Time: the real clock, or a virtual one that is never late. Nobody else asks the time."""

import time
from collections.abc import Callable
from typing import Protocol

SLEPT_MIN_S = 0.05  # no machine suspends and resumes sooner


def sees_sleep() -> bool:
    """Whether this system has a clock that goes on while the machine sleeps."""
    return hasattr(time, "CLOCK_BOOTTIME")


def _boot_s() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _awake_s() -> float:
    return time.clock_gettime(time.CLOCK_MONOTONIC)


class SleepMeter:
    """Tells that the machine has slept: one clock went on, the one that everything runs by stood.

    Parameters
    ----------
    boot_s, awake_s : the clock that goes on, and the one that stops
    """

    def __init__(
        self, boot_s: Callable[[], float] = _boot_s, awake_s: Callable[[], float] = _awake_s
    ) -> None:
        self._boot_s, self._awake_s = boot_s, awake_s
        # A stall between the two readings makes the difference smaller, never larger.
        self._ahead_s = max(boot_s() - awake_s() for _ in range(5)) if sees_sleep() else 0.0

    def slept_s(self) -> float:
        """How long it has slept since this was asked last; 0 where it has not."""
        if not sees_sleep():
            return 0.0
        ahead_s = self._boot_s() - self._awake_s()
        slept_s = ahead_s - self._ahead_s
        if slept_s < SLEPT_MIN_S:
            return 0.0
        self._ahead_s = ahead_s
        return slept_s


class Clock(Protocol):
    """Seconds since the run's start."""

    name: str

    def start(self) -> None:
        """Make now the time 0."""

    def now_s(self) -> float: ...

    def sleep_until_s(self, deadline_s: float) -> float:
        """Return at the deadline; how late, in s."""
        ...

    def slept_s(self) -> float:
        """How long the machine has slept since this was asked last; its time stood still then."""
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
        self._sleep = SleepMeter()

    def start(self) -> None:
        self._sleep = SleepMeter()
        self.started_s = time.perf_counter()

    def slept_s(self) -> float:
        return self._sleep.slept_s()

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


def _none(t_s: float) -> float:
    return 0.0


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

    def slept_s(self) -> float:
        return 0.0


class StallingClock(VirtualClock):
    """Virtual time on a machine that stands still, or sleeps, now and then.

    Parameters
    ----------
    stall_s : how long the work of the tick at t_s takes longer than its period's start
    asleep_s : how long it has slept before the tick at t_s
    """

    def __init__(
        self, stall_s: Callable[[float], float], asleep_s: Callable[[float], float] = _none
    ) -> None:
        super().__init__()
        self._stall_of, self._asleep_of = stall_s, asleep_s
        self._stalled_s = 0.0

    def slept_s(self) -> float:
        return self._asleep_of(self._now_s)

    def now_s(self) -> float:
        return self._now_s + self._stalled_s

    def sleep_until_s(self, deadline_s: float) -> float:
        self._now_s = max(self.now_s(), deadline_s)
        self._stalled_s = self._stall_of(deadline_s)
        return self._now_s - deadline_s
