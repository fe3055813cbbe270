"""Min-max pyramid: reduces many samples to few bins for drawing, in bounded memory.

Level 0 holds the samples. Each bin of a further level holds the minimum and maximum of FACTOR bins
of the level below. With a capacity the memory is fixed: each level drops its oldest bins, and the
level above still covers them more coarsely. A view of a time range has a bounded number of bins,
and every sample lies between `low` and `high` of its bin.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike, NDArray

FACTOR = 4
N_LEVELS = 9
FEWEST = 16384
"""Number of bins that every level keeps at least, regardless of the capacity."""


@dataclass(frozen=True)
class Bins:
    """Bins of a time range; `low is high` if every bin is one sample.

    Attributes
    ----------
    t_s : (m,) array
        Time of every bin's first sample.
    low, high : (n_curves, m) arrays
        Minimum and maximum of every bin; NaN only if all samples of the bin are NaN.
    """

    t_s: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]

    def line(self, curve: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Polyline (x, y) of a curve through low and high of every bin."""
        if self.low is self.high:
            return self.t_s, self.low[curve]
        y = np.empty(2 * len(self.t_s))
        y[0::2], y[1::2] = self.low[curve], self.high[curve]
        return np.repeat(self.t_s, 2), y


class _Level:
    """Bins in the order of time, contiguous; drops the oldest beyond `capacity`."""

    def __init__(
        self, n_curves: int, dtype: DTypeLike, capacity: int | None, *, is_raw: bool
    ) -> None:
        self._capacity = capacity
        self._is_raw = is_raw
        size = 4096
        self._t_s = np.empty(size)
        self._low = np.empty((n_curves, size), dtype)
        self._high = self._low if is_raw else np.empty((n_curves, size), dtype)
        self._n = 0
        self.n_dropped = 0

    @property
    def t_s(self) -> NDArray[np.float64]:
        return self._t_s[: self._n]

    @property
    def low(self) -> NDArray[np.float64]:
        return self._low[:, : self._n]

    @property
    def high(self) -> NDArray[np.float64]:
        return self.low if self._is_raw else self._high[:, : self._n]

    @property
    def n(self) -> int:
        return self._n

    def push(
        self, t_s: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64]
    ) -> None:
        end = self._n + len(t_s)
        if end > len(self._t_s):
            self._make_room(len(t_s))
            end = self._n + len(t_s)
        self._t_s[self._n : end] = t_s
        self._low[:, self._n : end] = low
        if not self._is_raw:
            self._high[:, self._n : end] = high
        self._n = end

    def _make_room(self, n_new: int) -> None:
        keep = self._n if self._capacity is None else min(self._n, self._capacity)
        size = len(self._t_s)
        while size < keep + n_new:
            size *= 2
        if self._capacity is not None:
            # A quarter more than is kept: moving the bins to the front is then rare.
            size = min(size, max(self._capacity + self._capacity // 4, keep + n_new))
        first = self._n - keep
        self._t_s = _moved(self._t_s, first, keep, size)
        self._low = _moved(self._low, first, keep, size)
        self._high = self._low if self._is_raw else _moved(self._high, first, keep, size)
        self._n = keep
        self.n_dropped += first


def _moved(old: NDArray, first: int, n: int, size: int) -> NDArray:  # type: ignore[type-arg]
    """Move `n` entries from index `first` to the front; reallocate if `size` differs."""
    if old.shape[-1] == size:
        old[..., :n] = old[..., first : first + n].copy()
        return old
    new = np.empty((*old.shape[:-1], size), old.dtype)
    new[..., :n] = old[..., first : first + n]
    return new


class Pyramid:
    """Min-max pyramid of several curves that share their times.

    Parameters
    ----------
    n_curves : int
    capacity : int or None
        Number of samples kept individually; None keeps all.
    dtype : float64, or uint8 for the states of cells
    """

    def __init__(
        self, n_curves: int, capacity: int | None = None, dtype: DTypeLike = np.float64
    ) -> None:
        self.n_curves = n_curves
        self.n_samples = 0
        self._levels = [
            _Level(
                n_curves,
                dtype,
                None if capacity is None else max(capacity >> i, FEWEST),
                is_raw=i == 0,
            )
            for i in range(N_LEVELS)
        ]
        self._pending = [0] * N_LEVELS
        """Number of bins of each level that the level above does not cover yet, below FACTOR."""

    @property
    def last_s(self) -> float:
        """Time of the last sample; NaN before there is one."""
        t_s = self._levels[0].t_s
        return float(t_s[-1]) if len(t_s) else float("nan")

    @property
    def first_s(self) -> float:
        """Oldest time that any level still holds; NaN before the first sample."""
        starts = [level.t_s[0] for level in self._levels if level.n]
        return float(min(starts)) if starts else float("nan")

    def append(self, t_s: NDArray[np.float64], values: NDArray[np.float64]) -> None:
        """Append samples (n_curves, n) at increasing times, later than all before."""
        for a in range(0, len(t_s), FEWEST // 2):
            b = a + FEWEST // 2
            self._push(0, t_s[a:b], values[:, a:b], values[:, a:b])
        self.n_samples += len(t_s)

    def _push(
        self,
        i: int,
        t_s: NDArray[np.float64],
        low: NDArray[np.float64],
        high: NDArray[np.float64],
    ) -> None:
        level = self._levels[i]
        level.push(t_s, low, high)
        n_new = self._pending[i] + len(t_s)
        if i + 1 < N_LEVELS and n_new >= FACTOR:
            whole = n_new // FACTOR * FACTOR
            part = slice(level.n - n_new, level.n - n_new + whole)
            self._push(
                i + 1,
                level.t_s[part][::FACTOR],
                _reduced(level.low[:, part], FACTOR, np.fmin),
                _reduced(level.high[:, part], FACTOR, np.fmax),
            )
            n_new -= whole
        self._pending[i] = n_new

    def view(self, from_s: float, to_s: float, n_max: int) -> Bins:
        """Bins from `from_s` to `to_s`, about `n_max` or fewer.

        One bin before and one after are included, so that lines reach the edges. The grouping of
        samples into bins depends on the sample numbers only, not on the range: so a moving view
        does not flicker.
        """
        i = self._level_for(from_s, to_s, n_max)
        level = self._levels[i]
        a = max(int(np.searchsorted(level.t_s, from_s)) - 1, 0)
        b = min(int(np.searchsorted(level.t_s, to_s, "right")) + 1, level.n)
        t_s, low, high = level.t_s[a:b], level.low[:, a:b], level.high[:, a:b]
        size = -(-(b - a) // n_max)
        if size > 1:
            t_s, low, high = _grouped(t_s, low, high, level.n_dropped + a, size)
        if b < level.n:
            return Bins(t_s, low, low if i == 0 and size <= 1 else high)
        # This level does not cover the newest samples yet: take them from the levels below.
        parts = [(t_s, low, high)]
        for below in range(i - 1, -1, -1):
            n, under = self._pending[below], self._levels[below]
            if n:
                tail = slice(under.n - n, under.n)
                parts.append((under.t_s[tail], under.low[:, tail], under.high[:, tail]))
        if len(parts) == 1:
            return Bins(t_s, low, low if i == 0 and size <= 1 else high)
        times, lows, highs = zip(*parts, strict=True)
        return Bins(np.concatenate(times), np.hstack(lows), np.hstack(highs))

    def _level_for(self, from_s: float, to_s: float, n_max: int) -> int:
        """Finest level that reaches back to `from_s` with at most FACTOR * n_max bins in range."""
        deepest = 0
        for i, level in enumerate(self._levels):
            if not level.n:
                break
            deepest = i
            reaches = level.n_dropped == 0 or level.t_s[0] <= from_s
            if not reaches:
                continue
            a, b = np.searchsorted(level.t_s, (from_s, to_s))
            if b - a <= FACTOR * n_max:
                return i
        return deepest

    def at(self, t_s: float) -> NDArray[np.float64]:
        """Sample at or before a time, (n_curves,); the first one for an earlier time.

        Where only coarser levels reach back, it is the maximum of the bin.
        """
        for level in self._levels:
            if level.n and (level.n_dropped == 0 or level.t_s[0] <= t_s):
                i = int(np.searchsorted(level.t_s, t_s, "right")) - 1
                return level.high[:, max(i, 0)]
        return np.full(self.n_curves, np.nan)

    def samples(
        self, from_s: float, to_s: float
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Individual samples with `from_s <= t < to_s` that level 0 still holds."""
        level = self._levels[0]
        a, b = np.searchsorted(level.t_s, (from_s, to_s))
        return level.t_s[a:b], level.low[:, a:b]


def _reduced(values: NDArray, size: int, how: np.ufunc) -> NDArray:  # type: ignore[type-arg]
    return np.asarray(how.reduce(values.reshape(len(values), -1, size), axis=2))


def _grouped(
    t_s: NDArray[np.float64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    first: int,
    size: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Merge bins in groups that start at multiples of `size`; the first bin has number `first`."""
    starts = np.arange(-first % size, len(t_s), size)
    if first % size:
        starts = np.concatenate(([0], starts))
    return (
        t_s[starts],
        np.fmin.reduceat(low, starts, axis=1),
        np.fmax.reduceat(high, starts, axis=1),
    )
