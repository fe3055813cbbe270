"""Edges of digital signals, at exact times: pulse trains, recorded edges, counter outputs.

A source numbers its rising and its falling edges from 0. `count` tells how many there were up to
a time, `time` when an edge comes. Everything that counters measure follows from these two.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Times = NDArray[np.float64]
Edges = Callable[[float, float], Times]
LOGGED = 1_000_000  # pulses of a clock that others can still count
KEPT = 256  # parts of a counter output's past that others can still see
FOREVER_S = 1e12
NONE: Times = np.empty(0)
FOLDED = 1000  # edges of a part that is kept as times once it is over
ROUNDING_S = 1e-12
TINY = 1e-9  # of a period: forgives the rounding of times that were added up


class EdgeSource(Protocol):
    """A digital signal by its edges; its level before the first edge is low."""

    def count(self, t_s: Any, *, rising: bool = True) -> Any:
        """Edges up to and including t_s."""

    def time(self, k: Any, *, rising: bool = True) -> Any:
        """Times of edges by number, in s; NaN where there is none."""

    def __call__(self, t_s: Any) -> Any:
        """The level, 0.0 or 1.0."""


@dataclass(frozen=True)
class Pulses:
    """A regular pulse train on a digital line: `n` pulses, each high first `high_s`, then low.

    The first rising edge is at `first_s`.
    """

    period_s: float
    high_s: float
    first_s: float = 0.0
    n: float = np.inf

    def count(self, t_s: Any, *, rising: bool = True) -> Any:
        """Edges up to and including t_s."""
        first_s = self.first_s if rising else self.first_s + self.high_s
        if isinstance(t_s, float) and np.isfinite(t_s):
            return min(max(math.floor((t_s - first_s) / self.period_s + TINY) + 1.0, 0.0), self.n)
        return np.clip(np.floor((np.asarray(t_s) - first_s) / self.period_s + TINY) + 1.0,
                       0.0, self.n)  # fmt: skip

    def time(self, k: Any, *, rising: bool = True) -> Any:
        """Times of edges by number, in s; NaN where there is none."""
        k = np.asarray(k, dtype=float)
        first_s = self.first_s if rising else self.first_s + self.high_s
        return np.where((k >= 0.0) & (k < self.n), first_s + k * self.period_s, np.nan)

    def __call__(self, t_s: Any) -> Any:
        """The level, 0.0 or 1.0."""
        return self.count(t_s) - self.count(t_s, rising=False)

    def limited(self, n: float) -> Pulses:
        """The first n pulses."""
        return replace(self, n=n)


class Resumed:
    """What follows of a pulse train that was paused: the edges after the pause, later."""

    def __init__(self, train: Pulses, pause_s: float, before: dict[bool, float]) -> None:
        self._before = before
        self.later = replace(train, first_s=train.first_s + pause_s)

    def count(self, t_s: Any, *, rising: bool = True) -> Any:
        """Edges up to and including t_s."""
        return np.maximum(self.later.count(t_s, rising=rising) - self._before[rising], 0.0)

    def time(self, k: Any, *, rising: bool = True) -> Any:
        """Times of edges by number, in s; NaN where there is none."""
        k = np.asarray(k, dtype=float)
        known = self.later.time(k + self._before[rising], rising=rising)
        return np.where(k >= 0.0, known, np.nan)

    def __call__(self, t_s: Any) -> Any:
        """The level, 0.0 or 1.0, where the train was low before."""
        return self.count(t_s) - self.count(t_s, rising=False)

    def limited(self, n: float) -> Resumed:
        """No more than the first n pulses of the whole train."""
        return Resumed(replace(self.later, n=n), 0.0, self._before)


class EdgeList:
    """A signal whose edges are listed: times of the rising and of the falling ones, ascending."""

    def __init__(self, rising: Sequence[float], falling: Sequence[float] = ()) -> None:
        self._times = {True: np.asarray(rising, float), False: np.asarray(falling, float)}

    def count(self, t_s: Any, *, rising: bool = True) -> Any:
        """Edges up to and including t_s."""
        count = np.searchsorted(self._times[rising], np.asarray(t_s) + 1e-15, side="right")
        return np.asarray(count, dtype=float)

    def time(self, k: Any, *, rising: bool = True) -> Any:
        """Times of edges by number, in s; NaN where there is none."""
        times, k = self._times[rising], np.asarray(k, dtype=float)
        inside = (k >= 0.0) & (k < len(times))
        padded = np.append(times, np.nan)
        return padded[np.where(inside, k, len(times)).astype(int)]

    def __call__(self, t_s: Any) -> Any:
        """The level, 0.0 or 1.0."""
        return np.clip(self.count(t_s) - self.count(t_s, rising=False), 0.0, 1.0)


class LineEdges:
    """Edges of a line that a program drives, as it drives it."""

    def __init__(self, level: float, since_s: float) -> None:
        self._high = level > 0.5
        self._times: dict[bool, list[float]] = {True: [since_s] if self._high else [], False: []}

    def put(self, t_s: float, level: float) -> None:
        """The line has this level from t_s on."""
        high = level > 0.5
        if high != self._high:
            self._high = high
            self._times[high].append(t_s)

    def count(self, t_s: Any, *, rising: bool = True) -> Any:
        """Edges up to and including t_s."""
        count = np.searchsorted(self._times[rising], np.asarray(t_s), side="right")
        return np.asarray(count, dtype=float)

    def time(self, k: Any, *, rising: bool = True) -> Any:
        """Times of edges by number, in s; NaN where there is none."""
        times, k = np.append(self._times[rising], np.nan), np.asarray(k, dtype=float)
        inside = (k >= 0.0) & (k < len(times) - 1)
        return times[np.where(inside, k, len(times) - 1).astype(int)]

    def __call__(self, t_s: Any) -> Any:
        """The level, 0.0 or 1.0."""
        return self.count(t_s) - self.count(t_s, rising=False)


class EdgeLog:
    """Short pulses of a running task, such as its sample clock, as they happen."""

    def __init__(self) -> None:
        self._times: Times = np.empty(0)
        self._forgotten = 0.0

    def add(self, times: Times) -> None:
        """Take the pulses of one step."""
        self._times = np.concatenate((self._times, times))
        surplus = len(self._times) - LOGGED
        if surplus > LOGGED:
            self._times, self._forgotten = self._times[surplus:], self._forgotten + surplus

    def count(self, t_s: Any, *, rising: bool = True) -> Any:
        """Pulses up to and including t_s; a pulse has no length."""
        del rising
        count = np.searchsorted(self._times, np.asarray(t_s) + 1e-15, side="right")
        return np.asarray(count + self._forgotten)

    def time(self, k: Any, *, rising: bool = True) -> Any:
        """Times of pulses by number, in s; NaN where there is none, or it is long ago."""
        del rising
        k = np.asarray(k, dtype=float) - self._forgotten
        inside = (k >= 0.0) & (k < len(self._times))
        padded = np.append(self._times, np.nan)
        return padded[np.where(inside, k, len(self._times)).astype(int)]

    def __call__(self, t_s: Any) -> Any:
        """The level: low."""
        return 0.0 * np.asarray(t_s)


class PulseCycle:
    """Pulses of different lengths in turn: idle first, then active.

    Source: NI "X Series User Manual", "Finite Implicit Buffered Pulse Train Generation".

    Parameters
    ----------
    idle_s, active_s : lengths of both parts of each pulse of a cycle, in s
    first_s : where the first idle part begins
    n : pulses in all
    """

    def __init__(self, idle_s: Times, active_s: Times, first_s: float, n: float) -> None:
        ends = np.cumsum(idle_s + active_s)
        self.first_s, self.n = first_s, n
        self.cycle_s = float(ends[-1])
        self._offsets = {True: ends - active_s, False: ends}

    def end_s(self) -> float:
        """When the last pulse ends."""
        return float(self.time(self.n - 1.0, rising=False)) if np.isfinite(self.n) else np.inf

    def count(self, t_s: Any, *, rising: bool = True) -> Any:
        """Edges up to and including t_s."""
        offsets = self._offsets[rising]
        since_s = np.minimum(np.asarray(t_s, dtype=float) - self.first_s, FOREVER_S)
        cycles = np.floor(since_s / self.cycle_s)
        # An edge at the very end of a cycle belongs to the one that it ends.
        inside = np.searchsorted(offsets, since_s - cycles * self.cycle_s + TINY * self.cycle_s,
                                 side="right")  # fmt: skip
        return np.clip(cycles * len(offsets) + inside, 0.0, self.n)

    def time(self, k: Any, *, rising: bool = True) -> Any:
        """Times of edges by number, in s; NaN where there is none."""
        offsets, k = self._offsets[rising], np.asarray(k, dtype=float)
        valid = (k >= 0.0) & (k < self.n)
        known = np.where(valid, k, 0.0)
        cycles, j = np.divmod(known, len(offsets))
        times = self.first_s + cycles * self.cycle_s + offsets[j.astype(int)]
        return np.where(valid, times, np.nan)

    def __call__(self, t_s: Any) -> Any:
        """The level, 0.0 or 1.0."""
        return self.count(t_s) - self.count(t_s, rising=False)


@dataclass
class _Part:
    """Edges of one source as a part of a longer signal: the first so many of either kind."""

    source: EdgeSource
    inverted: bool
    ended_s: float = np.inf
    most: dict[bool, float] = field(default_factory=lambda: {True: np.inf, False: np.inf})

    def count(self, t_s: Any, *, rising: bool) -> Any:
        if self.ended_s < np.inf and np.min(t_s) >= self.ended_s:
            return self.most[rising]
        if isinstance(t_s, float):
            count = float(self.source.count(t_s, rising=rising != self.inverted))
            return min(count, self.most[rising])
        return np.minimum(self.source.count(t_s, rising=rising != self.inverted),
                          self.most[rising])  # fmt: skip


class Joined:
    """Sources one after the other, such as the output of a counter that several tasks use."""

    def __init__(self) -> None:
        self._parts: list[_Part] = []
        self._before = {True: 0.0, False: 0.0}  # edges that are forgotten
        self._past = {True: array("d"), False: array("d")}  # edges of parts that are over

    def record(self, rising: Times, falling: Times) -> None:
        """Take edges that come after all others, as a whole, once what went on is cut."""
        self._fold(len(self._parts))
        if self._parts:
            self._parts.append(_Part(EdgeList(rising.tolist(), falling.tolist()), False))
            return
        for edge, times in ((True, rising), (False, falling)):
            self._past[edge].frombytes(np.asarray(times, dtype=float).tobytes())
            surplus = len(self._past[edge]) - LOGGED
            if surplus > LOGGED:
                del self._past[edge][:surplus]
                self._before[edge] += surplus

    def _fold(self, n: int) -> None:
        """Keep the edges of the first n parts as times, as far as these are over and not long."""
        while n > 0 and self._parts[0].ended_s < np.inf:
            oldest = self._parts[0]
            if max(oldest.most.values()) > FOLDED:
                return
            for rising in (True, False):
                k = np.arange(oldest.most[rising])
                times = oldest.source.time(k, rising=rising != oldest.inverted)
                self._past[rising].frombytes(np.asarray(times, dtype=float).tobytes())
            self._parts.pop(0)
            n -= 1

    def cut(self, t_s: float) -> None:
        """End what goes on, after the edges up to and including t_s."""
        for part in self._parts:
            if t_s < part.ended_s:
                for rising in (True, False):
                    part.most[rising] = float(part.count(t_s, rising=rising))
                part.ended_s = t_s
        self._fold(len(self._parts) - 1)
        while len(self._parts) > KEPT:
            oldest = self._parts.pop(0)
            for rising in (True, False):
                self._before[rising] += oldest.most[rising]

    def add(self, source: EdgeSource, *, inverted: bool = False) -> None:
        """Go on with another source."""
        self._parts.append(_Part(source, inverted))

    def step(self, t_s: float, *, rising: bool) -> None:
        """One edge at t_s."""
        self._parts.append(_Part(Pulses(1.0, 1.0, t_s, 1.0), not rising))
        self._parts[-1].most[not rising] = 0.0

    @property
    def inverted(self) -> bool:
        """The last source is active low."""
        return bool(self._parts) and self._parts[-1].inverted

    def last(self) -> EdgeSource | None:
        """The last source."""
        return self._parts[-1].source if self._parts else None

    def replace_last(self, source: EdgeSource) -> None:
        """Let another source take the place of the last one."""
        self._parts[-1] = replace(self._parts[-1], source=source)

    def count(self, t_s: Any, *, rising: bool = True) -> Any:
        """Edges up to and including t_s."""
        if isinstance(t_s, float):
            n = self._before[rising] + bisect_right(self._past[rising], t_s + ROUNDING_S)
            return n + sum(float(part.count(t_s, rising=rising)) for part in self._parts)
        past = np.frombuffer(self._past[rising])
        over = np.searchsorted(past, np.asarray(t_s) + ROUNDING_S, side="right")
        count = np.asarray(self._before[rising] + over)
        for part in self._parts:
            count = count + part.count(t_s, rising=rising)
        return count

    def time(self, k: Any, *, rising: bool = True) -> Any:
        """Times of edges by number, in s; NaN where there is none, or it is long ago."""
        k = np.asarray(k, dtype=float) - self._before[rising]
        n_past = len(self._past[rising])
        over = (k >= 0.0) & (k < n_past)
        times_s = np.full(k.shape, np.nan)
        if over.any():
            times_s[over] = np.frombuffer(self._past[rising])[k[over].astype(int)]
            if over.all():
                return times_s
        k = k - n_past
        for part in self._parts:
            n = part.most[rising]
            if not np.isfinite(n):
                n = float(part.source.count(np.inf, rising=rising != part.inverted))
            inside = (k >= 0.0) & (k < n)
            if np.any(inside):
                times = part.source.time(np.where(inside, k, 0.0), rising=rising != part.inverted)
                times_s = np.where(inside, times, times_s)
            k = k - n if np.isfinite(n) else np.full(k.shape, -1.0)
        return times_s

    def __call__(self, t_s: Any) -> Any:
        """The level, 0.0 or 1.0."""
        return self.count(t_s) - self.count(t_s, rising=False)


def of(source: EdgeSource, now_s: float, *, rising: bool) -> Edges:
    """The edges that come from now on, as a function of an interval that follows the last one.

    An edge at the very end of the last interval is found where it came into being afterwards, as
    when a counter starts at once.
    """
    last_s, seen = now_s, float(source.count(now_s, rising=rising))

    def between(after_s: float, until_s: float) -> Times:
        nonlocal last_s, seen
        n = float(source.count(until_s, rising=rising))
        first = seen if after_s <= last_s else float(source.count(after_s, rising=rising))
        last_s, seen = until_s, n
        if n <= first:
            return NONE
        return np.asarray(source.time(np.arange(first, n), rising=rising))

    return between
