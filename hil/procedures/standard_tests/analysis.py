"""Figures of standard tests from arrays of readings; no file and no rig.

Transformation temperatures by tangents: a line is fitted to the cold end of a branch, one to its
steep part and one to its hot end. The steep line meets the cold one where the transformation
starts, and the hot one where it finishes (the other way round on cooling).

Source: ASTM E3097 (constant force thermal cycling) and E3098 (free recovery) as far as their public
abstracts describe them: start and finish temperatures of both branches, actuation strain, width of
the hysteresis. The shares of a branch that the three lines are fitted to are this project's choice.
Frequency response and coherence: Bendat & Piersol, Random Data, H1 = G_xy / G_xx and gamma^2 =
|G_xy|^2 / (G_xx G_yy).
"""

from dataclasses import dataclass

import numpy as np
import scipy.signal
from numpy.typing import NDArray
from scipy.stats import linregress
from scipy.stats import t as student

from hil.errors import ConfigError
from hil.mechanics.arrays import Array

BIN_K = 0.5
ENDS = 0.15  # of a branch's temperatures, at either end: where the cold and hot lines are fitted
STEEP = (0.35, 0.65)  # of its stroke: where the steep line is fitted
FLAT = 0.25  # an end as steep as this share of the steep line is no end
COHERENT = 0.6


@dataclass(frozen=True)
class Tangents:
    """The three lines of a branch, y = a + b T as (a, b), and where they meet."""

    cold: tuple[float, float]
    steep: tuple[float, float]
    hot: tuple[float, float]
    lower_C: float
    upper_C: float


def branch(T_C: Array, y: Array, bin_K: float = BIN_K) -> tuple[Array, Array]:
    """Means of y over equal steps of temperature; noise and dwell then have no weight."""
    good = np.isfinite(T_C) & np.isfinite(y)
    T, y = T_C[good], y[good]
    if not len(T):
        raise ConfigError("no reading has both a temperature and a displacement or force")
    at = np.floor((T - T.min()) / bin_K).astype(int)
    n = np.bincount(at)
    seen = n > 0
    means = [np.bincount(at, values)[seen] / n[seen] for values in (T, y)]
    return means[0], means[1]


def tangents(T_C: Array, y: Array) -> Tangents:
    """Transformation temperatures of one branch, (n,) temperatures in increasing order.

    Raises
    ------
    ConfigError
        The branch has too few points, or does not reach a flat end.
    """
    span_K, low, high = np.ptp(T_C), y[0], y[-1]
    cold, hot = T_C <= T_C[0] + ENDS * span_K, T_C >= T_C[-1] - ENDS * span_K
    share = (y - low) / (high - low) if high != low else np.zeros(len(y))
    inside = np.flatnonzero((share >= STEEP[0]) & (share <= STEEP[1]))
    if len(inside) < 2:
        middle = int(np.argmin(np.abs(share - 0.5)))
        inside = np.arange(max(0, middle - 1), min(len(y), middle + 2))
    if high == low or min(cold.sum(), hot.sum(), len(inside)) < 2:
        raise ConfigError("too few points on a branch for tangents: heat and cool further")
    low_line, steep, high_line = (_line(T_C[part], y[part]) for part in (cold, inside, hot))
    for line, name, remedy in ((low_line, "cold", "cool"), (high_line, "hot", "heat")):
        if abs(line[1]) > FLAT * abs(steep[1]):
            raise ConfigError(f"the {name} end of a branch is not flat: {remedy} it further")
    lower_C, upper_C = _intersection(low_line, steep), _intersection(steep, high_line)
    return Tangents(low_line, steep, high_line, lower_C, upper_C)


def _line(x: Array, y: Array) -> tuple[float, float]:
    slope, offset = np.polyfit(x - x.mean(), y, 1)
    return float(offset - slope * x.mean()), float(slope)


def _intersection(one: tuple[float, float], other: tuple[float, float]) -> float:
    return (other[0] - one[0]) / (one[1] - other[1])


def loop_area(x: Array, y: Array) -> float:
    """Area inside a closed curve, |integral y dx|, by the trapezoidal rule."""
    step = np.roll(x, -1) - x
    return float(abs(np.sum(0.5 * (y + np.roll(y, -1)) * step)))


@dataclass(frozen=True)
class Step:
    """Response to heating from 0 s: times after it, s, of a rise (or fall) from low to high."""

    delay_s: float
    rise_s: float
    change: float


def step_response(t_s: Array, y: Array, start: float, end: float) -> Step:
    """Delay to 10 % and time from 10 to 90 % of the change from `start` to `end`.

    Raises
    ------
    ConfigError
        The response does not pass 90 %.
    """
    share = (y - start) / (end - start) if end != start else np.zeros(len(y))
    times = []
    for level in (0.1, 0.9):
        above = np.flatnonzero(share >= level)
        if not len(above):
            raise ConfigError(f"the response does not reach {100 * level:.0f} %: wait longer")
        i = int(above[0])
        if i == 0:
            times.append(float(t_s[0]))
            continue
        part = (level - share[i - 1]) / (share[i] - share[i - 1])
        times.append(float(t_s[i - 1] + part * (t_s[i] - t_s[i - 1])))
    return Step(times[0] - float(t_s[0]), times[1] - times[0], float(end - start))


@dataclass(frozen=True)
class Response:
    """Frequency response: frequencies, complex gain, coherence, and the bandwidth.

    `bandwidth_Hz` is where the gain first falls by 3 dB below its value at the lowest frequency;
    NaN if it does not fall so far where the coherence is above COHERENT.
    """

    frequency_Hz: Array
    gain: NDArray[np.complex128]
    coherence: Array
    bandwidth_Hz: float


def frequency_response(u: Array, y: Array, rate_Hz: float, window_s: float) -> Response:
    """H1 of an output y over an input u, both (n,), by Welch's method with a Hann window.

    Raises
    ------
    ConfigError
        The record is shorter than four windows.
    """
    n = round(window_s * rate_Hz)
    if len(u) < 4 * n:
        raise ConfigError(
            f"{len(u) / rate_Hz:.3g} s of readings for windows of {window_s:g} s: record at least "
            "four windows, or set window_s lower"
        )
    f, S_uu = scipy.signal.welch(u, rate_Hz, nperseg=n)
    _, S_uy = scipy.signal.csd(u, y, rate_Hz, nperseg=n)
    _, gamma2 = scipy.signal.coherence(u, y, rate_Hz, nperseg=n)
    f, gain, gamma2 = f[1:], S_uy[1:] / S_uu[1:], gamma2[1:]
    low = np.flatnonzero(np.abs(gain) < np.abs(gain[0]) / np.sqrt(2.0))
    bandwidth = float("nan")
    if len(low) and low[0] > 0 and gamma2[: low[0] + 1].min() > COHERENT:
        i = int(low[0])
        g = np.log(np.abs(gain[i - 1 : i + 1]))
        part = (np.log(np.abs(gain[0]) / np.sqrt(2.0)) - g[0]) / (g[1] - g[0])
        bandwidth = float(f[i - 1] * (f[i] / f[i - 1]) ** part)
    return Response(f, gain, gamma2, bandwidth)


def interval(values: Array) -> tuple[float, float]:
    """Mean and half width of its 95 % interval (Student); the half width of one value is NaN."""
    v = np.asarray(values, dtype=float)
    if len(v) < 2:
        return float(v.mean()), float("nan")
    k = float(student.ppf(0.975, len(v) - 1))
    return float(v.mean()), k * float(v.std(ddof=1)) / np.sqrt(len(v))


def drift(cycle: Array, values: Array) -> tuple[float, float]:
    """Slope of values over cycles and half width of its 95 % interval, per cycle."""
    good = np.isfinite(values)
    if good.sum() < 3:
        return float("nan"), float("nan")
    fit = linregress(cycle[good], values[good])
    return float(fit.slope), float(student.ppf(0.975, good.sum() - 2) * fit.stderr)


def mean_text(mean: float, half: float) -> str:
    """A mean with the half width of its interval, where there is one."""
    return f"{mean:.4g}" if not np.isfinite(half) else f"{mean:.4g} ± {half:.2g}"
