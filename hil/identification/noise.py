"""The noise of a channel, estimated before the fit, and its whitening filter.

Before the first cell is on the model's force is constant, so every change of the channel is noise.
The model is autoregressive,

    v_k = sum_i a_i v_(k-i) + w_k,     w white of variance s^2,

with the order that Hannan & Quinn 1979 choose, 0 for white noise. Lines such as mains hum are
removed first. Every run passes the whitening filter before the fit. Least squares are then
efficient, and their covariance is correct (Cochrane & Orcutt 1949; Kay, Fundamentals of Statistical
Signal Processing: Estimation Theory, ch. 3, 4). Without a rest the noise is the stated noise of the
channel, white; without a statement it is the residual's own. The same holds if a rest shows less
than STEPS_MIN steps of the converter, because a force at rest may stay at one code.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import scipy.linalg
from scipy.signal import lfilter

from hil.identification.lines import FITTED, find_lines, lines_in
from hil.identification.runs import RunData
from hil.mechanics.arrays import Array

REST_MIN = 200
STEPS_MIN = 0.6  # noise of half a step, and the step's own 1/sqrt(12)
ORDER_MAX = 8
LAGS = 8192  # after which a reading says nothing of the noise


@dataclass(frozen=True)
class Noise:
    """Noise of a channel.

    Attributes
    ----------
    rms_N : RMS of the innovations w; NaN if unknown
    ar : (p,) array, a_1 .. a_p; empty for white noise.
    n_rest : number of readings at rest that were used; 0 for a stated noise
    source : origin of the values
    rest_white_N : whitened readings of every rest
    lines_Hz : frequencies of the lines at rest
    lines_rms_N : RMS of these lines
    resolution_Hz : of the rest in which they were found, the inverse of its duration
    """

    rms_N: float
    ar: Array = field(default_factory=lambda: np.zeros(0))
    n_rest: int = 0
    source: Literal["rest", "channel", "residual"] = "residual"
    rest_white_N: tuple[Array, ...] = ()
    lines_Hz: tuple[float, ...] = ()
    lines_rms_N: float = 0.0
    resolution_Hz: float = 0.0

    @property
    def slow_dof(self) -> float:
        """Degrees of freedom of the noise's low-frequency level, s^2 / (1 - sum a)^2, from a rest.

        Relative variance 2/n + 4 s^2 1^T Gamma^-1 1 / (n (1 - sum a)^2), Gamma that of p readings
        (Brockwell & Davis, Time Series, ch. 8: the covariance of a is s^2 Gamma^-1 / n). That a
        noise is white is known from the rest as well: it counts as order 1 with a = 0.
        """
        p = max(1, len(self.ar))
        gamma = self.total_rms_N**2 * self._correlations(p)
        ones = np.ones(p)
        of_sum = self.rms_N**2 * float(ones @ scipy.linalg.solve_toeplitz(gamma, ones))
        return float(self.n_rest / (1.0 + 2.0 * of_sum / (1.0 - self.ar.sum()) ** 2))

    def mean_rms_N(self, n: int) -> float:
        """Standard deviation of the mean of n consecutive readings [N]."""
        r = self._correlations(min(n, LAGS))
        of_sum = n * r[0] + 2.0 * float((n - np.arange(1, len(r))) @ r[1:])
        return self.total_rms_N * float(np.sqrt(of_sum)) / n

    @property
    def total_rms_N(self) -> float:
        """RMS of the noise v [N], without its lines."""
        return self.rms_N * float(np.sqrt(np.sum(self._impulse() ** 2)))

    def _impulse(self) -> Array:
        one = np.zeros(LAGS)
        one[0] = 1.0
        return np.asarray(lfilter([1.0], np.r_[1.0, -self.ar], one))

    def _correlations(self, n: int) -> Array:
        """Autocorrelation of v at the lags 0 to n - 1."""
        spectrum = np.abs(np.fft.rfft(self._impulse(), 2 * LAGS)) ** 2
        r = np.fft.irfft(spectrum)[:n]
        return np.asarray(r / r[0])

    def whitened(self, x: Array) -> Array:
        """(1 - a_1 z^-1 - ...) x along the first axis, without the first p entries."""
        if not len(self.ar):
            return x
        return np.asarray(lfilter(np.r_[1.0, -self.ar], [1.0], x, axis=0)[len(self.ar) :])


def noise_of(runs: Sequence[RunData]) -> Noise:
    """Noise from the rests before the first cell is on, else as the channels state it.

    Readings without any, such as those of a simulated instrument, say nothing of it.
    """
    rests = [_rest(run) for run in runs]
    at_rest = [rest for rest in rests if len(rest) >= REST_MIN]
    coarse_N = STEPS_MIN * max(run.reading.step_N for run in runs)
    least_N = min((float(rest.std()) for rest in at_rest), default=0.0)
    if least_N > 0.0 and least_N >= coarse_N:
        return noise_at_rest(at_rest, min(run.interval_s for run in runs))
    stated = np.array([stated_rms_N(run) for run in runs])
    if np.isfinite(stated).all() and stated.all():
        return Noise(float(np.sqrt(np.mean(stated**2))), source="channel")
    return Noise(float("nan"))


def stated_rms_N(run: RunData) -> float:
    """The channel's noise at commissioning with the quantisation noise, step / sqrt(12) [N]."""
    return float(np.hypot(run.reading.noise_rms_N, run.reading.step_N / np.sqrt(12.0)))


def _rest(run: RunData) -> Array:
    n = int(np.searchsorted(run.rows, run.first_on, side="right"))
    rest = run.measured[:n]
    return rest - rest.mean() if n else rest


def noise_at_rest(rests_N: Sequence[Array], interval_s: float) -> Noise:
    """Noise of readings at rest: its lines, and the autoregression of what they leave."""
    lines_Hz = find_lines(rests_N, interval_s)
    resolution_Hz = 1.0 / (interval_s * max(len(rest) for rest in rests_N))
    times_s: list[Array] = [interval_s * np.arange(len(rest), dtype=float) for rest in rests_N]
    hum = [
        lines_in(rest, t_s, lines_Hz, resolution_Hz)
        for rest, t_s in zip(rests_N, times_s, strict=True)
    ]
    rests = [rest - lines for rest, lines in zip(rests_N, hum, strict=True)]
    n = sum(len(rest) for rest in rests)
    r = np.array(
        [sum(float(x[k:] @ x[: len(x) - k]) for x in rests) / n for k in range(ORDER_MAX + 1)]
    )
    r[0] *= n / (n - len(rests) * (1 + FITTED * len(lines_Hz)))
    ar, variance = np.zeros(0), float(r[0])
    least = n * np.log(variance)
    for order in range(1, ORDER_MAX + 1):
        a = scipy.linalg.solve_toeplitz(r[:order], r[1 : order + 1])
        left = float(r[0] - a @ r[1 : order + 1])
        criterion = n * np.log(left) + 2.0 * order * np.log(np.log(n))
        if criterion < least:
            least, ar, variance = criterion, np.asarray(a), left
    plain = Noise(float(np.sqrt(variance)), ar, n, "rest")
    return replace(
        plain,
        rest_white_N=tuple(plain.whitened(rest) for rest in rests),
        lines_Hz=lines_Hz,
        lines_rms_N=float(np.sqrt(np.mean(np.concatenate(hum) ** 2))),
        resolution_Hz=resolution_Hz,
    )
