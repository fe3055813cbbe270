"""Lines in a channel's noise, such as mains hum: found at rest, then removed from whole runs.

A line a cos(2 pi f t) + b sin(2 pi f t) that is there at rest is no effect of the array. A rest of
duration T finds its frequency to a part of 1 / T only, so frequency, amplitude and phase are
estimated again from the residual of the whole run (least squares; Kay, Estimation Theory, ch. 7).
"""

from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.ndimage import maximum_filter1d
from scipy.optimize import minimize_scalar

from hil.mechanics.arrays import Array

# Times the local level. A bin of white noise exceeds it with probability 1e-6 (Monte Carlo); of a
# level without an error it would be exp(-PEAK).
PEAK = 24.0
NEIGHBOURS, WIDTH = 20, 3  # bins either side: for the local level, and those of the line itself
FITTED = 3  # frequency, amplitude and phase


def find_lines(rests_N: Sequence[Array], interval_s: float) -> tuple[float, ...]:
    """Frequencies of the lines in the longest of these rests, read at this interval [Hz].

    The periodogram (Hann window) is compared with its median over the neighbouring bins. The first
    NEIGHBOURS bins are left out: slow drift is not a line.
    """
    rest_N = max(rests_N, key=len)
    if len(rest_N) < 4 * NEIGHBOURS + 4:
        return ()
    power = np.abs(np.fft.rfft((rest_N - rest_N.mean()) * np.hanning(len(rest_N)))) ** 2
    peak = (power == maximum_filter1d(power, 2 * WIDTH + 1)) & (power > PEAK * _level(power))
    peak[:NEIGHBOURS] = False
    bins = np.flatnonzero(peak)
    t_s: Array = interval_s * np.arange(len(rest_N), dtype=float)
    bin_Hz = 1.0 / (interval_s * len(rest_N))
    return tuple(refined(rest_N, t_s, k * bin_Hz, bin_Hz) for k in bins)


def _level(power: Array) -> Array:
    """The noise about every bin, from the median of its neighbours without a line of its own.

    SciPy's `median_filter` of a series takes all bins, whatever its footprint (1.15 to 1.17).
    """
    around = np.r_[: NEIGHBOURS - WIDTH, NEIGHBOURS + WIDTH + 1 : 2 * NEIGHBOURS + 1]
    padded = np.pad(power, NEIGHBOURS, mode="reflect")
    neighbours = sliding_window_view(padded, 2 * NEIGHBOURS + 1)[:, around]
    # The median of an exponential variable is ln 2 of its mean.
    return np.asarray(np.median(neighbours, axis=1) / np.log(2.0))


def refined(x: Array, t_s: Array, f_Hz: float, resolution_Hz: float) -> float:
    """Frequency of the line with the most power within half a resolution of f_Hz."""
    step_Hz = 0.5 / float(t_s[-1] - t_s[0])
    n = int(np.ceil(0.5 * resolution_Hz / step_Hz))
    grid = f_Hz + step_Hz * np.arange(-n, n + 1)
    best = float(grid[np.argmin([_left(f, x, t_s) for f in grid])])
    minimum = minimize_scalar(
        _left,
        args=(x, t_s),
        bounds=(best - step_Hz, best + step_Hz),
        method="bounded",
        options={"xatol": 1e-3 * step_Hz},
    )
    return float(minimum.x)


def _left(f_Hz: float, x: Array, t_s: Array) -> float:
    rest = x - line(x, t_s, f_Hz)
    return float(rest @ rest)


def line(x: Array, t_s: Array, f_Hz: float) -> Array:
    """The line of this frequency in x, by least squares."""
    angle = 2.0 * np.pi * f_Hz * t_s
    columns = np.column_stack((np.cos(angle), np.sin(angle)))
    return np.asarray(columns @ np.linalg.lstsq(columns, x, rcond=None)[0])


def lines_in(x: Array, t_s: Array, lines_Hz: Sequence[float], resolution_Hz: float) -> Array:
    """Sum of the lines in x near these frequencies; each is fitted to what the others leave."""
    total = np.zeros(len(x))
    for f_Hz in lines_Hz:
        left = x - total
        total += line(left, t_s, refined(left, t_s, f_Hz, resolution_Hz))
    return total
