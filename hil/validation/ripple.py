"""Time differences of the ripple's peaks, measured less simulated.

Both curves pass the same zero-phase band-pass around the model's oscillating modes. Peaks of the
simulated curve above the noise are paired with measured peaks in order of time.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.signal import butter, find_peaks, sosfiltfilt

from hil.mechanics.arrays import Array

STANDS_OUT = 4.0  # minimum height of a peak, in units of the noise in the band


@dataclass(frozen=True)
class Ripple:
    """Peaks of a run.

    Attributes
    ----------
    t_s : (k,) array, times of the simulated peaks that are paired with a measured one
    late_s : (k,) array, time of the measured peak less that of the simulated one
    n_peaks : number of simulated peaks
    """

    t_s: Array
    late_s: Array
    n_peaks: int

    @property
    def rms_s(self) -> float:
        return float(np.sqrt(np.mean(self.late_s**2))) if len(self.late_s) else float("nan")

    def upper_s(self) -> float:
        """Upper end of the 95 % interval of the RMS, from blocks of consecutive peaks [s]."""
        k = len(self.late_s)
        if k < 4:
            return float("nan")
        blocks = np.array_split(self.late_s**2, min(20, max(2, k // 5)))
        means = np.array([block.mean() for block in blocks])
        mean = float(np.mean(self.late_s**2))
        return float(np.sqrt(mean + 1.96 * means.std(ddof=1) / np.sqrt(len(means))))


def ripple_of(
    t_s: Array,
    measured_N: Array,
    simulated_N: Array,
    modes_Hz: Array,
    noise_N: float,
    switches_s: Sequence[float] = (),
) -> Ripple | None:
    """Peaks of evenly spaced curves; None if the readings resolve no mode of the model.

    The pairing starts again at every switching time.
    """
    rate_Hz = (len(t_s) - 1) / (t_s[-1] - t_s[0])
    seen = modes_Hz[(modes_Hz > 0.0) & (modes_Hz < 0.2 * rate_Hz)]
    if not len(seen):
        return None
    low, high = 0.7 * float(seen.min()), 1.4 * float(seen.max())
    if (t_s[-1] - t_s[0]) * low < 10.0:
        return None
    sos = butter(2, (low, high), "bandpass", fs=rate_Hz, output="sos")
    model, real = sosfiltfilt(sos, simulated_N), sosfiltfilt(sos, measured_N)
    passed = noise_N * np.sqrt((high - low) / (0.5 * rate_Hz))
    mine, _ = find_peaks(model, height=STANDS_OUT * passed)
    its, _ = find_peaks(real)
    at, other = _interpolated_peaks(t_s, model, mine), _interpolated_peaks(t_s, real, its)
    parts = np.split(at, np.searchsorted(at, np.asarray(switches_s)))
    pairs = [pair for part in parts for pair in _paired(part, other, 0.5 / high)]
    late = np.array([b - a for a, b in pairs])
    paired = np.array([a for a, _ in pairs])
    return Ripple(paired, late, len(mine))


def _paired(at: Array, other: Array, reach_s: float) -> list[tuple[float, float]]:
    """Pairs of times: each peak with the one nearest to its time plus the last pair's lateness.

    This follows a ripple of another frequency beyond a difference of half a period.
    """
    pairs, late = [], 0.0
    for t in at.tolist():
        if not len(other):
            break
        its = float(other[np.argmin(np.abs(other - (t + late)))])
        if abs(its - t - late) < reach_s:
            late = its - t
            pairs.append((t, its))
    return pairs


def _interpolated_peaks(t_s: Array, y: Array, peaks: NDArray[np.int64]) -> Array:
    """Times of the vertices of the parabolas through each peak and its neighbours [s]."""
    a, b, c = y[peaks - 1], y[peaks], y[peaks + 1]
    return np.asarray(t_s[peaks] + 0.5 * (a - c) / (a - 2.0 * b + c) * (t_s[1] - t_s[0]))
