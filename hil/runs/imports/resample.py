"""Readings at the ticks of a recording, from readings at other times."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hil.mechanics.arrays import Array
from hil.runs.imports.tables import Method

SAME_TIME = 1e-3  # of a period: a reading this little after a tick belongs to it
DENSE = 0.51  # periods between readings up to which they are averaged by default


@dataclass(frozen=True)
class Resampled:
    """Values at the ticks; NaN where there is no reading.

    Attributes
    ----------
    first, taken : (n,) arrays
        Index of the reading that a row has, or of the first and the last one averaged in it; taken
        is -1 before the first reading.
    age_s : (n,) array
        Its age, of a mean that of the middle of its readings; NaN before the first reading.
    """

    values: Array
    first: np.ndarray
    taken: np.ndarray
    age_s: Array


def method_for(interval_s: float, period_s: float) -> Method:
    """The method for readings at this interval: the mean of two or more, otherwise the last one."""
    return "mean" if interval_s <= DENSE * period_s else "previous"


def resampled(
    t_s: Array, values: Array, ticks_s: Array, period_s: float, gap_s: float, method: Method
) -> Resampled:
    """Values at the ticks from readings at increasing times t_s.

    `previous` gives the last reading, `linear` the line between two readings, `mean` the mean of
    the readings since the tick before. No reading is carried or drawn across a gap.
    """
    taken = np.searchsorted(t_s, ticks_s + SAME_TIME * period_s, side="right") - 1
    age_s = np.where(taken >= 0, np.maximum(ticks_s - t_s[taken], 0.0), np.nan)
    mask, first = age_s <= gap_s, np.maximum(taken, 0)
    if method == "mean":
        before = np.concatenate(([taken[0] - 1 if taken[0] >= 0 else -1], taken[:-1]))
        samples = _means(values, before + 1, taken + 1)
        first = np.clip(before + 1, 0, first)
        age_s = age_s + 0.5 * (t_s[taken] - t_s[first])
    elif method == "linear":
        mask, after = _bracketed(t_s, ticks_s, taken, period_s, gap_s)
        begin, end = np.maximum(taken, 0), after
        width_s = np.where(end > begin, t_s[end] - t_s[begin], 1.0)
        share = np.clip((ticks_s - t_s[begin]) / width_s, 0.0, 1.0)
        samples = values[begin] + share * (values[end] - values[begin])
        age_s = np.where(mask, 0.0, np.nan)
    else:
        samples = values[taken]
    return Resampled(np.where(mask, samples, np.nan), first, taken, age_s)


def _bracketed(
    t_s: Array, ticks_s: Array, taken: np.ndarray, period_s: float, gap_s: float
) -> tuple[np.ndarray, np.ndarray]:
    """Whether each tick lies between two readings without a gap, and the index of the second."""
    last = len(t_s) - 1
    exact = (taken >= 0) & (np.abs(ticks_s - t_s[taken]) <= SAME_TIME * period_s)
    after = np.where(exact, taken, np.minimum(taken + 1, last))
    between = (taken >= 0) & (taken < last) & (t_s[after] - t_s[taken] <= gap_s)
    return exact | between, np.maximum(after, 0)


def _means(values: Array, begin: np.ndarray, end: np.ndarray) -> Array:
    """Means of values[begin:end] without NaN; NaN where there is none."""
    known = np.isfinite(values)
    sums = np.concatenate(([0.0], np.cumsum(np.where(known, values, 0.0))))
    counts = np.concatenate(([0], np.cumsum(known)))
    n = counts[end] - counts[begin]
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(n > 0, (sums[end] - sums[begin]) / n, np.nan))


def pulses(duty: Array, ticks_s: Array, carrier_Hz: float) -> np.ndarray:
    """On (1) for the first `duty` share of every period of the carrier, else 0."""
    phase = np.mod(ticks_s * carrier_Hz + 1e-9, 1.0)
    return np.asarray(phase < duty - 1e-9, dtype=np.uint8)
