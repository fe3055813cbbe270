"""Figures of measured over simulated force with 95 % intervals.

Errors of a model are correlated in time, so neighbouring readings are not independent. The
bootstrap therefore draws blocks of readings, twice as long as the correlation time of the residual
(Kunsch 1989, moving blocks). `n_effective` is the equivalent number of independent readings, n / (1
+ 2 sum r_k).
"""

from dataclasses import dataclass

import numpy as np

from hil.mechanics.arrays import Array
from hil.record import metrics

DRAWS = 1000
LEAST = 1e-6  # share of the readings' variance that a draw of nearly equal ones counts with


@dataclass(frozen=True)
class Figure:
    """A figure and its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Figures:
    """Figures of one run.

    Attributes
    ----------
    bias_N : mean of measured less simulated
    block : number of readings in a block of the bootstrap
    n_effective : equivalent number of independent readings
    """

    rms_N: Figure
    nrmse: Figure
    vaf: Figure
    bias_N: Figure
    block: int
    n_effective: float


def correlated_over(residual: Array) -> float:
    """1 + 2 sum |r_k| up to the first r_k that is within the noise of an estimate."""
    r, n = metrics.autocorrelation(residual), len(residual)
    within = np.flatnonzero(np.abs(r) < 2.0 / np.sqrt(n))
    last = int(within[0]) if len(within) else n
    # The correlation of a ripple oscillates and its sum may vanish, so absolute values are used.
    return float(1.0 + 2.0 * np.abs(r[1:last]).sum())


def figures_of(measured_N: Array, simulated_N: Array, seed: int = 0) -> Figures:
    """All figures of one run, with intervals."""
    residual = measured_N - simulated_N
    n = len(residual)
    over = correlated_over(residual)
    block = min(max(1, round(2.0 * over)), max(1, n // 4))
    rng = np.random.default_rng(seed)
    per = -(-n // block)
    span = float(np.ptp(measured_N))
    least = max(LEAST * float(np.var(measured_N)), 1e-300)
    drawn = np.empty((DRAWS, 3))
    for i in range(DRAWS):
        starts = rng.integers(0, n - block + 1, per)
        at = (starts[:, None] + np.arange(block)).ravel()[:n]
        r, m = residual[at], measured_N[at]
        drawn[i] = np.mean(r * r), np.mean(r), np.var(r) / max(float(np.var(m)), least)
    rms = _about(metrics.rms(residual), np.sqrt(drawn[:, 0]))
    return Figures(
        rms,
        Figure(*(end / span if span > 0.0 else np.nan for end in (rms.value, rms.low, rms.high))),
        _about(metrics.vaf(measured_N, simulated_N), 1.0 - drawn[:, 2]),
        _about(float(residual.mean()), drawn[:, 1]),
        block,
        n / over,
    )


def _about(value: float, drawn: Array) -> Figure:
    if np.isnan(value):  # of readings that are all equal
        return Figure(value, value, value)
    low, high = np.quantile(drawn, (0.025, 0.975))
    return Figure(value, float(min(low, value)), float(max(high, value)))
