"""Sample clocks and triggers: at which times a task takes or puts out its samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from nidaqmx.constants import AcquisitionType, Edge, SampleTimingType, TriggerType
from numpy.typing import NDArray

Times = NDArray[np.float64]
Edges = Callable[[float, float], Times]
Paused = NDArray[np.bool_]
NONE: Times = np.empty(0)


@dataclass
class Timing:
    """What cfg_samp_clk_timing and its like have set."""

    type: int = SampleTimingType.ON_DEMAND.value
    rate_Hz: float = 1000.0
    source: str = ""
    edge: int = Edge.RISING.value
    mode: int = AcquisitionType.FINITE.value
    samples: int = 1000
    rate_asked_Hz: float = 0.0  # before a divisor was set

    @property
    def finite(self) -> bool:
        return bool(self.mode == AcquisitionType.FINITE.value)

    @property
    def on_demand(self) -> bool:
        return bool(self.type == SampleTimingType.ON_DEMAND.value)

    @property
    def single_point(self) -> bool:
        return self.mode == AcquisitionType.HW_TIMED_SINGLE_POINT.value and not self.on_demand


@dataclass
class Trigger:
    """A start or reference trigger.

    Attributes
    ----------
    source : a terminal, an analog channel, or digital lines
    edge : Edge or Slope; of windows and patterns WindowTriggerCondition1, DigitalPatternCondition
    level : of an analog edge; the top of a window
    bottom : of a window
    at_s : when it came
    slopes, levels : of several analog edges, one for each source
    """

    type: int = TriggerType.NONE.value
    source: str = ""
    edge: int = Edge.RISING.value
    level: float = 0.0
    pretrigger: int = 0
    at_s: float | None = None
    bottom: float = 0.0
    pattern: str = ""
    slopes: list[int] = field(default_factory=list)
    levels: list[float] = field(default_factory=list)

    @property
    def present(self) -> bool:
        return bool(self.type != TriggerType.NONE.value)


class InternalClock:
    """Sample k at start + k / rate; `n` samples, or without end.

    A start trigger makes the start, and with `retriggerable` every further trigger another one.
    """

    def __init__(
        self,
        rate_Hz: float,
        n: float,
        start_s: float | None,
        trigger: Edges | None = None,
        *,
        retriggerable: bool = False,
        delay_s: float = 0.0,
    ) -> None:
        self.rate_Hz = rate_Hz
        self.n = n
        self.start_s = start_s
        self._trigger = trigger
        self._retriggerable = retriggerable
        self._delay_s = delay_s
        self._busy_until_s = -np.inf  # triggers during a record are ignored
        self._k = 0

    @property
    def done(self) -> bool:
        return self._k >= self.n and not self._retriggerable

    @property
    def taken(self) -> int:
        return self._k

    def take(self, after_s: float, until_s: float) -> Times:
        """Times of the samples up to and including until_s."""
        if self._trigger is None:
            return self._run(until_s)
        parts = [NONE]
        edges = self._trigger(after_s, until_s)
        while True:
            if self.start_s is None:
                edges = edges[edges > self._busy_until_s]
                if not len(edges):
                    break
                self.start_s = float(edges[0]) + self._delay_s
            parts.append(self._run(until_s))
            if self._k < self.n or not self._retriggerable:
                break
            self._busy_until_s = self.start_s + (self.n - 1.0) / self.rate_Hz
            self.start_s, self._k = None, 0
        return np.concatenate(parts)

    def _run(self, until_s: float) -> Times:
        assert self.start_s is not None
        # A billionth of a period forgives the rounding of times that were added up.
        due = np.floor((until_s - self.start_s) * self.rate_Hz + 1e-9 * (1.0 + self._k)) + 1.0
        end = int(max(min(due, self.n), self._k))
        times = self.start_s + np.arange(self._k, end) / self.rate_Hz
        self._k = end
        return times

    def when(self, more: int) -> float | None:
        """When that many more samples will have been taken, if it is known."""
        if self.start_s is None:
            return None
        return self.start_s + (self._k + more - 1) / self.rate_Hz


class PausedClock:
    """A clock whose samples fall out while a pause trigger is active; `n` samples remain."""

    def __init__(
        self, clock: InternalClock | ExternalClock, n: float, paused: Callable[[Times], Paused]
    ) -> None:
        self._clock = clock
        self._clock.n = np.inf
        self.n = n
        self._paused = paused
        self._k = 0

    @property
    def start_s(self) -> float | None:
        return self._clock.start_s

    @property
    def done(self) -> bool:
        return self._k >= self.n

    @property
    def taken(self) -> int:
        return self._k

    def take(self, after_s: float, until_s: float) -> Times:
        """Times of the samples up to and including until_s."""
        if self.done:
            return NONE
        times = self._clock.take(after_s, until_s)
        times = times[~self._paused(times)] if len(times) else times
        times = times[: int(min(self.n - self._k, len(times)))]
        self._k += len(times)
        return times

    def when(self, more: int) -> float | None:
        """When that many more samples come is unknown: the trigger may pause the clock."""
        del more
        return None


class ExternalClock:
    """Every edge of a terminal is a sample, after the start trigger if there is one."""

    def __init__(self, edges: Edges, n: float, trigger: Edges | None = None) -> None:
        self._edges = edges
        self.n = n
        self._trigger = trigger
        self._k = 0
        self.start_s: float | None = None  # when the start trigger came

    @property
    def done(self) -> bool:
        return self._k >= self.n

    @property
    def taken(self) -> int:
        return self._k

    def take(self, after_s: float, until_s: float) -> Times:
        """Times of the samples up to and including until_s."""
        edges = self._edges(after_s, until_s)
        if self._trigger is not None:
            started = self._trigger(after_s, until_s)
            if not len(started):
                return NONE
            self._trigger = None
            self.start_s = float(started[0])
            edges = edges[edges >= self.start_s]
        edges = edges[: int(min(self.n - self._k, len(edges)))]
        self._k += len(edges)
        return edges

    def when(self, more: int) -> float | None:
        """Unknown for an external clock."""
        del more
        return None


Clock = InternalClock | ExternalClock | PausedClock
