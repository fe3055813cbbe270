"""Sums over the rows of a run that is longer than memory, and the figures that follow from them.

Quantiles come from a histogram whose bins are a 256th of a power of two wide: they are within 0.2 %
of the exact ones.
"""

from __future__ import annotations

from math import nan, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hil.config.values import Figures
from hil.record import device_clocks, metrics

_SHIFT = 44  # keeps 8 bits of a mantissa
N_LAGS = 20
Values = NDArray[Any]


class Quantiles:
    """Quantiles of positive values; smaller ones count as 0."""

    def __init__(self) -> None:
        self._counts = np.zeros(1 << (63 - _SHIFT), dtype=np.int64)
        self.n, self.most, self.missing = 0, nan, 0

    def add(self, values: Values) -> None:
        known = values[np.isfinite(values)]
        self.missing += len(values) - len(known)
        if len(known):
            bins = np.maximum(known, 0.0).view(np.int64) >> _SHIFT
            self._counts += np.bincount(bins, minlength=len(self._counts))
            self.n += len(known)
            self.most = float(np.fmax(self.most, known.max()))

    def at(self, share: float) -> float:
        """The value that this share of all is below; NaN without any."""
        if not self.n:
            return nan
        i = int(np.searchsorted(np.cumsum(self._counts), share * (self.n - 1), side="right"))
        low, high = (np.array([i, i + 1], dtype=np.int64) << _SHIFT).view(np.float64)
        return 0.0 if i == 0 else min(0.5 * float(low + high), self.most)


class SignalSums:
    """What `hil.record.summary.signal_figures` needs of a signal."""

    def __init__(self) -> None:
        self.n = self.n_tracked = 0
        self._sums = np.zeros(
            5
        )  # of residual and measured less `_zeros`, of both squared, of residual^2
        self._lags = np.zeros(N_LAGS + 1)
        self._tracked = 0.0
        self._least, self._most, self._model, self._worst = np.inf, -np.inf, -np.inf, 0.0
        self._step, self._bends = np.inf, Quantiles()
        self._ends: list[Values] = [np.zeros(0), np.zeros(0)]
        self._heads = np.zeros(0)
        self._zeros = 0.0, 0.0  # first residual, first reading: differences of large sums cancel

    def add(self, measured: Values, model: Values, reference: Values) -> None:
        known = np.isfinite(measured) & np.isfinite(model)
        measured, model, reference = measured[known], model[known], reference[known]
        if not len(measured):
            return
        if not self.n:
            self._zeros = float(measured[0] - model[0]), float(measured[0])
        residual = measured - model
        r, m = residual - self._zeros[0], measured - self._zeros[1]
        self.n += len(r)
        self._sums += (r.sum(), m.sum(), r @ r, m @ m, residual @ residual)
        self._least = min(self._least, float(measured.min()))
        self._most = max(self._most, float(measured.max()))
        self._model = max(self._model, float(model.max()))
        self._worst = max(self._worst, float(np.abs(residual).max()))
        error = (measured - reference)[np.isfinite(reference)]
        self._tracked += float(error @ error)
        self.n_tracked += len(error)
        before = np.concatenate((self._ends[0], r))
        curve = np.concatenate((self._ends[1], measured))
        have = len(before) - len(r)
        for k in range(N_LAGS + 1):
            i = max(have, k)  # products whose later factor is new
            self._lags[k] += float(before[i:] @ before[i - k : max(len(before) - k, 0)])
        step = np.abs(np.diff(curve[max(have - 1, 0) :]))
        self._step = min(self._step, float(step[step > 0.0].min(initial=np.inf)))
        self._bends.add(np.abs(np.diff(curve[max(have - 2, 0) :], 2)))
        self._heads = np.concatenate((self._heads, r[: N_LAGS - len(self._heads)]))
        self._ends = [before[-N_LAGS:], curve[-N_LAGS:]]

    def figures(self) -> Figures:
        """As `signal_figures` has them."""
        if not self.n:
            return {}
        sum_r, sum_m, squares_r, squares_m, squares = self._sums
        mean, n = sum_r / self.n, self.n
        power = squares_r - n * mean**2
        variance_m = squares_m / n - (sum_m / n) ** 2
        rms, span = sqrt(squares / n), self._most - self._least
        k = np.arange(1, N_LAGS + 1)
        ends = np.array([sum_r - self._ends[0][len(self._ends[0]) - i :].sum() for i in k])
        heads = np.array([sum_r - self._heads[:i].sum() for i in k])
        lagged = self._lags[1:] - mean * (ends + heads) + (n - k) * mean**2
        test = metrics.whiteness_of(n, self._zeros[0] + mean, power, lagged)
        noise = self._bends.at(0.5) / metrics.MEDIAN_OF_NORMAL / sqrt(6.0)
        floor = self._step / sqrt(12.0) if np.isfinite(self._step) else 0.0
        figures: Figures = {
            "residual_rms": rms,
            "residual_max": self._worst,
            "nrmse": rms / span if span > 0.0 else nan,
            "vaf": 1.0 - power / n / variance_m if variance_m > 0.0 else nan,
            "held": n > 2 and sqrt(max(variance_m, 0.0)) <= metrics.MOVES * max(noise, floor),
            "residual_white": test.is_white(),
            "p_uncorrelated": test.p_uncorrelated,
            "p_zero_mean": test.p_zero_mean,
            "measured_max": self._most,
            "model_max": self._model,
        }
        if self.n_tracked:
            figures["tracking_rms"] = sqrt(self._tracked / self.n_tracked)
        return figures


class ClockSums:
    """What `hil.record.device_clocks.fit_clock` needs of a device's clock."""

    def __init__(self) -> None:
        self._sums = np.zeros(5)
        self.n = 0
        self._last = self._wrapped = 0.0
        self._begin = (0.0, 0.0)
        self._span = [np.inf, -np.inf]

    def add(self, loop_s: Values, device_s: Values) -> None:
        known = np.isfinite(loop_s) & np.isfinite(device_s)
        known &= np.diff(device_s, prepend=self._last if self.n else nan) != 0.0
        loop_s, device_s = loop_s[known], device_s[known]
        if not len(loop_s):
            return
        first = self._last if self.n else device_s[0]
        wraps = np.diff(device_s, prepend=first) < -device_clocks.WRAP_S / 2
        self._last = float(device_s[-1])
        device_s = device_s + self._wrapped + device_clocks.WRAP_S * np.cumsum(wraps)
        self._wrapped += device_clocks.WRAP_S * int(wraps.sum())
        if not self.n:
            self._begin = float(loop_s[0]), float(device_s[0] - loop_s[0])
        x, y = loop_s - self._begin[0], device_s - loop_s - self._begin[1]
        self.n += len(x)
        self._sums += (x.sum(), y.sum(), x @ x, x @ y, y @ y)
        self._span = [min(self._span[0], float(x.min())), max(self._span[1], float(x.max()))]

    def figures(self) -> Figures:
        """As `fit_clock` has them."""
        if self.n < 3 or self._span[0] == self._span[1]:
            return {}
        n, (x, y, xx, xy, yy) = self.n, self._sums
        s_xx, s_xy, s_yy = xx - x * x / n, xy - x * y / n, yy - y * y / n
        drift = s_xy / s_xx
        rest = max(s_yy - drift * s_xy, 0.0)
        middle_s = self._begin[0] + x / n
        return {
            "offset_s": self._begin[1] + y / n - drift * middle_s,
            "drift_ppm": 1e6 * drift,
            "drift_ppm_standard_error": 1e6 * sqrt(rest / (n - 2) / s_xx),
            "residual_rms_s": sqrt(rest / n),
            "readings": n,
        }
