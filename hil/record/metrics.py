"""Figures that compare one force curve with another."""

from dataclasses import dataclass

import numpy as np
import scipy.special
from numpy.typing import NDArray

Series = NDArray[np.float64]
# A curve is constant if its RMS about the mean is below this many times its noise: a perfect model
# would account for at most 1 - 1/16 of the variance.
MOVES = 4.0
MEDIAN_OF_NORMAL = 0.6745  # median of the absolute value, over the standard deviation


def rms(x: Series) -> float:
    """sqrt(mean(x^2))."""
    return float(np.sqrt(np.mean(np.square(x)))) if len(x) else float("nan")


def nrmse(measured: Series, simulated: Series) -> float:
    """RMS of the difference over the range (max - min) of the measured curve."""
    span = float(np.ptp(measured)) if len(measured) else 0.0
    return rms(measured - simulated) / span if span > 0.0 else float("nan")


def vaf(measured: Series, simulated: Series) -> float:
    """Variance accounted for, 1 - var(measured - simulated)/var(measured); 1 is perfect."""
    if len(measured) == 0 or np.ptp(measured) == 0.0:
        return float("nan")
    return 1.0 - float(np.var(measured - simulated) / np.var(measured))


def noise_rms(x: Series) -> float:
    """RMS of white noise on a smooth curve with a few steps, from its second differences.

    Their standard deviation is sqrt(6) times that of the noise; it follows from the median of
    their size, which a step does not move.
    """
    size = np.abs(np.diff(x, 2))
    middle = float(np.median(size)) if len(size) else float("nan")
    return middle / MEDIAN_OF_NORMAL / float(np.sqrt(6.0))


def held(measured: Series) -> bool:
    """Whether a curve is constant: its RMS about its mean is at most MOVES x its noise.

    VAF would then only measure the noise. The noise is at least that of quantisation,
    step / sqrt(12), because an encoder at rest shows none.
    """
    if len(measured) <= 2:
        return False
    steps = np.abs(np.diff(measured))
    step = float(steps[steps > 0.0].min(initial=np.inf))
    floor = step / float(np.sqrt(12.0)) if np.isfinite(step) else 0.0
    moves = float(np.std(measured)) > MOVES * max(noise_rms(measured), floor)
    return not moves or bool(np.ptp(measured) == 0.0)


def autocorrelation(x: Series) -> Series:
    """r_k about the mean for every lag k, r_0 = 1; the others are 0 for a constant series."""
    centred, n = x - x.mean(), len(x)
    power = float(centred @ centred)
    r: Series = np.eye(1, n)[0]
    if power > 0.0:
        r = np.fft.irfft(np.abs(np.fft.rfft(centred, 2 * n)) ** 2)[:n] / power
    return r


def settling_s(t_s: Series, y: Series, *, band: float = 0.02, tail: float = 0.1) -> float:
    """Time from the start until y stays within `band` of its final value.

    The final value is the mean over the last share `tail` of the samples. The band is a share of
    the distance from the first sample to the final value. NaN if y does not settle.
    """
    final = float(np.mean(y[-max(1, int(tail * len(y))) :]))
    outside = np.flatnonzero(np.abs(y - final) > band * abs(final - y[0]))
    if not len(outside):
        return 0.0
    last = outside[-1]
    return float(t_s[last + 1] - t_s[0]) if last + 1 < len(y) else float("nan")


def overshoot(y: Series, *, tail: float = 0.1) -> float:
    """Overshoot relative to the step from the first sample to the final value; at least 0."""
    final = float(np.mean(y[-max(1, int(tail * len(y))) :]))
    step = final - float(y[0])
    if step == 0.0:
        return float("nan")
    return max(0.0, float(np.max((y - final) / step)))


@dataclass(frozen=True)
class Whiteness:
    """Whether a residual is uncorrelated noise about zero.

    Attributes
    ----------
    p_uncorrelated : Ljung-Box: probability of correlations this large in white noise
    p_zero_mean : probability of a mean this far from zero (t-test)
    """

    p_uncorrelated: float
    p_zero_mean: float

    def is_white(self, false_alarm: float = 0.01) -> bool:
        """Whether neither test rejects at half the stated false-alarm rate."""
        return min(self.p_uncorrelated, self.p_zero_mean) >= false_alarm / 2.0


def whiteness(residual: Series, n_lags: int = 20) -> Whiteness:
    """Test a residual for whiteness.

    Q = n (n + 2) sum_k r_k^2 / (n - k) over k = 1..n_lags is chi-squared with n_lags degrees
    of freedom for white noise.

    Source: Ljung & Box 1978, eq. (1.3).
    """
    x = residual[np.isfinite(residual)]
    if len(x) <= 2 * n_lags or np.ptp(x) == 0.0:
        return Whiteness(float("nan"), float("nan"))
    mean = float(np.mean(x))
    centred = x - mean
    lagged = np.array([float(centred[k:] @ centred[: len(x) - k]) for k in range(n_lags + 1)])
    return whiteness_of(len(x), mean, lagged[0], lagged[1:])


def whiteness_of(n: int, mean: float, power: float, lagged: Series) -> Whiteness:
    """`whiteness` from the mean of n values and, of c = x - mean, sum c_i^2 and sum c_i c_(i-k)."""
    n_lags = len(lagged)
    if n <= 2 * n_lags or power <= 0.0:
        return Whiteness(float("nan"), float("nan"))
    r = lagged / power
    q = n * (n + 2.0) * float(np.sum(r**2 / (n - np.arange(1, n_lags + 1))))
    t = mean / np.sqrt(power / (n - 1.0) / n)
    return Whiteness(
        float(scipy.special.chdtrc(n_lags, q)),
        2.0 * float(scipy.special.stdtr(n - 1, -abs(t))),
    )
