"""The noise of a channel, estimated before the fit, and its whitening filter.

Before the first cell is on the model's force is constant, so every change of the channel is noise.
If the noise is not white (Ljung & Box 1978), the model is autoregressive,

    v_k = sum_i a_i v_(k-i) + w_k,     w white of variance s^2,

with the order of the smallest BIC. Every run passes the whitening filter before the fit. Least
squares are then efficient, and their covariance is correct (Cochrane & Orcutt 1949; Kay,
Fundamentals of Statistical Signal Processing: Estimation Theory, ch. 3, 4). Without a rest the
noise is the stated noise of the channel, white; without a statement it is the residual's own. The
same holds if a rest shows less than STEPS_MIN steps of the converter, because a force at rest may
stay at one code.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import scipy.linalg
from scipy.signal import lfilter

from hil.identification.runs import RunData
from hil.mechanics.arrays import Array
from hil.record import metrics

REST_MIN = 200
STEPS_MIN = 0.6  # noise of half a step, and the step's own 1/sqrt(12)
ORDER_MAX = 8
COLOURED_BELOW = 1e-3  # p-value below which the noise of a rest counts as coloured


@dataclass(frozen=True)
class Noise:
    """Noise of a channel.

    Attributes
    ----------
    rms_N : RMS of the innovations w; NaN if unknown
    ar : (p,) array, a_1 .. a_p; empty for white noise.
    n_rest : number of readings at rest that were used; 0 for a stated noise
    source : origin of the values
    """

    rms_N: float
    ar: Array = field(default_factory=lambda: np.zeros(0))
    n_rest: int = 0
    source: Literal["rest", "channel", "residual"] = "residual"

    @property
    def slow_dof(self) -> float:
        """Degrees of freedom of the noise's low-frequency level, s^2 / (1 - sum a)^2, from a rest.

        Relative variance 2/n + 4 s^2 1^T Gamma^-1 1 / (n (1 - sum a)^2), Gamma that of p readings
        (Brockwell & Davis, Time Series, ch. 8: the covariance of a is s^2 Gamma^-1 / n).
        """
        p = len(self.ar)
        if not p:
            return self.n_rest - 1.0
        gamma = self.total_rms_N**2 * self._correlations(p)
        ones = np.ones(p)
        of_sum = self.rms_N**2 * float(ones @ scipy.linalg.solve_toeplitz(gamma, ones))
        return float(self.n_rest / (1.0 + 2.0 * of_sum / (1.0 - self.ar.sum()) ** 2))

    def mean_rms_N(self, n: int) -> float:
        """Standard deviation of the mean of n consecutive readings [N]."""
        r = self._correlations(n)
        of_sum = n * r[0] + 2.0 * float((n - np.arange(1, n)) @ r[1:])
        return self.total_rms_N * float(np.sqrt(of_sum)) / n

    @property
    def total_rms_N(self) -> float:
        """RMS of the noise v [N]."""
        return self.rms_N * float(np.sqrt(np.sum(self._impulse() ** 2)))

    def _impulse(self) -> Array:
        one = np.zeros(8192)
        one[0] = 1.0
        return np.asarray(lfilter([1.0], np.r_[1.0, -self.ar], one))

    def _correlations(self, n: int) -> Array:
        """Autocorrelation of v at the lags 0 to n - 1."""
        spectrum = np.abs(np.fft.rfft(self._impulse(), 16384)) ** 2
        r = np.fft.irfft(spectrum)[:n]
        return np.asarray(r / r[0])

    def whitened(self, x: Array) -> Array:
        """(1 - a_1 z^-1 - ...) x along the first axis, without the first p entries."""
        if not len(self.ar):
            return x
        return np.asarray(lfilter(np.r_[1.0, -self.ar], [1.0], x, axis=0)[len(self.ar) :])


def noise_of(runs: Sequence[RunData]) -> Noise:
    """Noise from the rests before the first cell is on, else as the channels state it."""
    rests = [_rest(run) for run in runs]
    at_rest = [rest for rest in rests if len(rest) >= REST_MIN]
    coarse_N = STEPS_MIN * max(run.reading.step_N for run in runs)
    if at_rest and min(float(rest.std()) for rest in at_rest) >= coarse_N:
        return _from_rest(at_rest)
    stated = np.array([stated_rms_N(run) for run in runs])
    if np.isfinite(stated).all():
        return Noise(float(np.sqrt(np.mean(stated**2))), source="channel")
    return Noise(float("nan"))


def stated_rms_N(run: RunData) -> float:
    """The channel's noise at commissioning with the quantisation noise, step / sqrt(12) [N]."""
    return float(np.hypot(run.reading.noise_rms_N, run.reading.step_N / np.sqrt(12.0)))


def _rest(run: RunData) -> Array:
    n = int(np.searchsorted(run.rows, run.first_on, side="right"))
    rest = run.force_N[:n]
    return rest - rest.mean() if n else rest


def _from_rest(rests: list[Array]) -> Noise:
    n = sum(len(rest) for rest in rests)
    power = sum(float(rest @ rest) for rest in rests) / (n - len(rests))
    white = min(metrics.whiteness(rest).p_uncorrelated for rest in rests)
    if not white < COLOURED_BELOW:
        return Noise(float(np.sqrt(power)), n_rest=n, source="rest")
    r = np.array(
        [sum(float(x[k:] @ x[: len(x) - k]) for x in rests) / n for k in range(ORDER_MAX + 1)]
    )
    best: tuple[float, Array, float] | None = None
    for order in range(1, ORDER_MAX + 1):
        a = scipy.linalg.solve_toeplitz(r[:order], r[1 : order + 1])
        variance = float(r[0] - a @ r[1 : order + 1])
        bic = n * np.log(variance) + order * np.log(n)
        if best is None or bic < best[0]:
            best = (bic, a, variance)
    assert best is not None
    return Noise(float(np.sqrt(best[2])), np.asarray(best[1]), n, "rest")
