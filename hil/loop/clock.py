"""The real clock, and a virtual clock that is never late. Only this module reads the time."""

import sys
import time
from collections.abc import Callable
from typing import Protocol

SLEPT_MIN_S = 0.05  # no computer suspends and resumes faster


def sees_sleep() -> bool:
    """Whether this system has a clock that continues while the computer sleeps."""
    return sys.platform == "linux"


def _boot_s() -> float:
    if sys.platform != "linux":
        return time.monotonic()
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _awake_s() -> float:
    return time.monotonic()


class SleepMeter:
    """Detects that the computer has slept, by comparing two clocks.

    Parameters
    ----------
    boot_s, awake_s : the clock that continues during sleep, and the one that stops
    """

    def __init__(
        self, boot_s: Callable[[], float] = _boot_s, awake_s: Callable[[], float] = _awake_s
    ) -> None:
        self._boot_s, self._awake_s = boot_s, awake_s
        # A stall between the two calls makes the difference smaller, never larger; so take the max.
        self._ahead_s = max(boot_s() - awake_s() for _ in range(5)) if sees_sleep() else 0.0

    def slept_s(self) -> float:
        """Time slept since the last call, s; 0 if it has not slept."""
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
        """Set the time to 0."""

    def now_s(self) -> float: ...

    def sleep_until_s(self, deadline_s: float) -> float:
        """Block until the deadline; returns the lateness, s."""
        ...

    def slept_s(self) -> float:
        """Time the computer has slept since the last call, s; this clock stops during sleep."""
        ...


class RealClock:
    """The computer's monotonic clock with absolute deadlines.

    Parameters
    ----------
    spin_s : time before a deadline at which it stops sleeping and polls the clock

    Attributes
    ----------
    started_s : start of the run on the computer's monotonic clock
    """

    name = "real"

    def __init__(self, spin_s: float = 0.0) -> None:
        self.started_s = 0.0
        self.spin_s = spin_s
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
        wake_s = due_s - self.spin_s
        while (remaining_s := wake_s - now_s()) > 0.0:
            time.sleep(remaining_s)
        while (late_s := now_s() - due_s) < 0.0:
            pass
        return late_s


def _none(t_s: float) -> float:
    return 0.0


def sleep_s(duration_s: float) -> None:
    """Sleep, outside a tick."""
    time.sleep(duration_s)


class VirtualClock:
    """Simulated time that advances as fast as the loop; never late."""

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
    """Virtual clock of a computer that stalls or sleeps at given times, for injected faults.

    Parameters
    ----------
    stall_s : duration of a stall in the tick at t_s
    asleep_s : time slept before the tick at t_s
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
