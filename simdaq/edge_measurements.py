"""What counters measure between edges, and when each measurement is complete.

Times are in s. NaN stands for a measurement that is not complete. Edges before `begun` (their
number when the counter was armed) do not count.

Source: NI "X Series User Manual", chapter "Counters", "Counter Input Applications".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from simdaq.edges import FOREVER_S, EdgeSource, Times


@dataclass(frozen=True)
class Intervals:
    """Times between edges of a signal since a counter was armed.

    Attributes
    ----------
    rising : the edges that a measurement starts at
    begun : edges of that kind before the counter was armed
    """

    source: EdgeSource
    rising: bool
    begun: float

    def _last(self, t_s: Times) -> Any:
        """Number of the last starting edge."""
        return self.source.count(t_s, rising=self.rising) - 1.0

    def _start(self, k: Any) -> Any:
        times = self.source.time(k, rising=self.rising)
        return np.where(np.asarray(k) >= self.begun, times, np.nan)

    def cycles(self, t_s: Times, n: int = 1) -> Times:
        """Duration of the last `n` whole periods, in groups of `n` since the counter was armed."""
        k = self.begun + n * np.floor((self._last(t_s) - self.begun) / n)
        return np.asarray(self._start(k) - self._start(k - n))

    def parts(self, t_s: Times) -> tuple[Times, Times]:
        """Both parts of the last whole period: from the starting edge to the other one, and on."""
        k = self._last(t_s)
        begin, end = self._start(k - 1.0), self._start(k)
        other = self.source.time(
            self.source.count(np.nan_to_num(end), rising=not self.rising) - 1.0,
            rising=not self.rising,
        )
        return np.asarray(other - begin), np.asarray(end - other)

    def width(self, t_s: Times) -> Times:
        """From the last starting edge that another edge has followed to that one."""
        end = self.source.time(
            self.source.count(t_s, rising=not self.rising) - 1.0, rising=not self.rising
        )
        k = self.source.count(np.nan_to_num(end), rising=self.rising) - 1.0
        return np.asarray(end - self._start(k))

    def half(self, t_s: Times) -> Times:
        """Between the last two edges of either kind."""
        ups, downs = (self.source.count(t_s, rising=r) for r in (True, False))
        last = [self.source.time(n - 1.0, rising=r) for n, r in ((ups, True), (downs, False))]
        first_s = self._start(self.begun)
        half_s = np.abs(last[0] - last[1])
        return np.where(np.fmin(*last) >= first_s, half_s, np.nan)

    def to_edge_of(self, other: EdgeSource, other_rising: bool, t_s: Times) -> tuple[Times, Times]:
        """A starting edge, and the first edge of another signal that follows it.

        More starting edges before the other signal's count for nothing ("The counter ignores
        additional edges on the Aux input").
        """
        last = other.time(other.count(t_s, rising=other_rising) - 1.0, rising=other_rising)
        k = self.source.count(np.nan_to_num(last), rising=self.rising) - 1.0
        following = other.count(np.nan_to_num(self._start(k)), rising=other_rising)
        before = other.time(following - 1.0, rising=other_rising)
        first = self.source.count(np.nan_to_num(before, nan=-FOREVER_S), rising=self.rising)
        begin = self._start(np.minimum(np.maximum(first, self.begun), k))
        return np.asarray(begin), np.asarray(other.time(following, rising=other_rising))

    def within(self, t_s: Times, window_s: float) -> tuple[Times, Times]:
        """Duration and number of the whole periods within a window before t_s, at least one."""
        last = self._last(t_s)
        n = last - self.source.count(np.asarray(t_s) - window_s, rising=self.rising) + 1.0
        n = np.clip(n - 1.0, 1.0, np.maximum(last - self.begun, 1.0))
        return np.asarray(self._start(last) - self._start(last - n)), np.asarray(n)

    def between(self, t_s: Times, since: float) -> Times:
        """Mean period of the periods that ended between two sample clocks.

        Parameters
        ----------
        since : number of the last starting edge at the sample before t_s[0]; NaN: none
        """
        last = self._last(t_s)
        before = np.concatenate(([np.fmax(since, self.begun)], last[:-1]))
        n = last - np.maximum(before, self.begun)
        with np.errstate(divide="ignore", invalid="ignore"):
            mean_s = (self._start(last) - self._start(last - n)) / n
        return np.where(n > 0.0, mean_s, np.nan)
