"""Agreement and lateness of a run so far, updated with every block of rows.

RMS, NRMSE, VAF and the test for a constant signal are those of `hil.record.metrics`. The sums are
taken relative to the first sample, so that a small variance on a large mean keeps its precision.
The sums are stored every CHECKPOINT rows: figures at an earlier time need at most that many rows.
"""

from bisect import bisect_right
from dataclasses import dataclass
from math import inf, nan, sqrt

import numpy as np
from numpy.typing import NDArray

CHECKPOINT = 4096
MOVES = 4.0  # same value as in `hil.record.metrics`
LATE_EDGES_S = np.geomspace(1e-6, 1e-1, 51)
"""Bin edges of the lateness histogram, ten per decade; values outside count in the end bins."""


@dataclass(frozen=True)
class Figures:
    """Agreement of a simulated and a measured signal; NaN before there are samples.

    Attributes
    ----------
    rms : float
        Root mean square of the residual, in the signal's unit.
    nrmse : float
        `rms` divided by the measured range.
    vaf : float
        1 - var(residual) / var(measured).
    held : bool
        The measured signal is constant within its noise, so that `vaf` is not meaningful.
    """

    rms: float = nan
    nrmse: float = nan
    vaf: float = nan
    held: bool = False


class Agreement:
    """Running sums for the agreement of a simulated with a measured signal."""

    def __init__(self) -> None:
        self._origin = np.array([nan, nan])
        self._sums = np.zeros(10)
        self._sums[5:7] = np.inf, -np.inf
        self._sums[9] = np.inf
        self._last = np.zeros(0)  # last two samples, for the next block's second differences

    def copy(self) -> "Agreement":
        other = Agreement()
        other._origin, other._sums = self._origin, self._sums.copy()
        other._last = self._last
        return other

    def add(self, measured: NDArray[np.float64], simulated: NDArray[np.float64]) -> None:
        """Add samples; a sample is ignored unless both values are finite."""
        valid = np.isfinite(measured) & np.isfinite(simulated)
        y = measured[valid]
        if not len(y):
            return
        e = y - simulated[valid]
        if np.isnan(self._origin[0]):
            self._origin = np.array([y[0], e[0]])
        dy, de = y - self._origin[0], e - self._origin[1]
        self._sums[:5] += len(y), dy.sum(), dy @ dy, de.sum(), de @ de
        self._sums[5] = min(self._sums[5], y.min())
        self._sums[6] = max(self._sums[6], y.max())
        joined = np.concatenate((self._last, y))
        bends, steps = np.diff(joined, 2), np.abs(np.diff(joined))
        self._sums[7:9] += len(bends), bends @ bends
        self._sums[9] = steps[steps > 0.0].min(initial=self._sums[9])
        self._last = joined[-2:]

    @property
    def figures(self) -> Figures:
        n, dy, dy2, de, de2, low, high, n_bends, bends2, step = self._sums.tolist()
        if not n:
            return Figures()
        var_y, var_e = dy2 / n - (dy / n) ** 2, max(de2 / n - (de / n) ** 2, 0.0)
        mean_e = float(self._origin[1]) + de / n
        rms = sqrt(var_e + mean_e**2)
        span = high - low
        counts2 = step**2 / 12.0 if step < inf else 0.0
        return Figures(
            rms=rms,
            nrmse=rms / span if span > 0.0 else nan,
            vaf=1.0 - var_e / var_y if var_y > 0.0 else nan,
            held=n_bends > 0 and var_y <= MOVES**2 * max(bends2 / n_bends / 6.0, counts2),
        )


class Running:
    """Agreement and lateness of a run, now and at earlier checkpoints."""

    def __init__(self) -> None:
        self._agreement = Agreement()
        self._late = np.zeros(len(LATE_EDGES_S) - 1, dtype=np.int64)
        self._n = 0
        self._times: list[float] = []
        self._kept: list[tuple[Agreement, NDArray[np.int64]]] = []

    def add(
        self,
        t_s: NDArray[np.float64],
        measured: NDArray[np.float64],
        simulated: NDArray[np.float64],
        late_s: NDArray[np.float64],
    ) -> None:
        while len(t_s):
            n = min(len(t_s), CHECKPOINT - self._n % CHECKPOINT)
            self._agreement.add(measured[:n], simulated[:n])
            self._late += lateness_counts(late_s[:n])
            self._n += n
            if self._n % CHECKPOINT == 0:
                self._times.append(float(t_s[n - 1]))
                self._kept.append((self._agreement.copy(), self._late.copy()))
            t_s, measured, simulated, late_s = (a[n:] for a in (t_s, measured, simulated, late_s))

    @property
    def now(self) -> tuple[Figures, NDArray[np.int64]]:
        return self._agreement.figures, self._late

    def checkpoint(self, t_s: float) -> tuple[float, Agreement, NDArray[np.int64]]:
        """Last checkpoint at or before a time: its time, agreement and lateness counts (copies)."""
        i = bisect_right(self._times, t_s) - 1
        if i < 0:
            return -np.inf, Agreement(), np.zeros_like(self._late)
        return self._times[i], self._kept[i][0].copy(), self._kept[i][1].copy()


def lateness_counts(late_s: NDArray[np.float64]) -> NDArray[np.int64]:
    """Count the values in each bin of LATE_EDGES_S."""
    edges = LATE_EDGES_S
    inside = np.clip(late_s[np.isfinite(late_s)], edges[0], np.nextafter(edges[-1], 0.0))
    return np.histogram(inside, edges)[0]
