"""Tests whether the residual of a fit is only noise; otherwise the model lacks an effect.

Four tests of the residual, each at the level FALSE_ALARM over the number of tests. An adequate
model is then rejected in at most FALSE_ALARM of all cases (Bonferroni):

- size: the innovations' variance over that of the noise (F or chi-squared);
- size over COARSE_S: the same for means over blocks, where slow effects exceed fast noise;
- whiteness: Ljung & Box 1978, 20 lags;
- runs: of equal signs (Wald & Wolfowitz 1940).

The first two need a noise level that is known without the model, from a rest or from the channel.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.special
from scipy.ndimage import maximum_filter1d

from hil.identification.noise import Noise
from hil.mechanics.arrays import Array
from hil.record import metrics

FALSE_ALARM = 0.01
COARSE_S = 0.05


@dataclass(frozen=True)
class Test:
    """One test: the probability of a result at least as extreme with an adequate model."""

    name: str
    p: float
    finding: str


@dataclass(frozen=True)
class Adequacy:
    """Results of the residual tests.

    Attributes
    ----------
    tests : tuple of Test
    excess_N : RMS of the residual in excess of the noise; NaN if the noise is unknown
    slowest_s : correlation time of the residual
    peak_Hz : frequency of the spectrum's maximum
    """

    tests: tuple[Test, ...]
    excess_N: float
    slowest_s: float
    peak_Hz: float

    @property
    def level(self) -> float:
        """Probability below which a test fails."""
        return FALSE_ALARM / len(self.tests)

    @property
    def failed(self) -> tuple[Test, ...]:
        return tuple(test for test in self.tests if test.p < self.level)

    @property
    def adequate(self) -> bool:
        return not self.failed

    def sentence(self) -> str:
        """The result as a sentence."""
        rate = f"false alarms: {100 * FALSE_ALARM:g} %"
        if self.adequate:
            return f"the residual is noise: no effect is missing from the model ({rate})"
        size = f"{1e3 * self.excess_N:.2g} mN beyond the noise, " if self.excess_N > 0.0 else ""
        where = f"strongest at {self.peak_Hz:.3g} Hz" if self.peak_Hz > 0.0 else "slow"
        return (
            f"THE MODEL LACKS AN EFFECT: the residual has {size}{where}, correlated over "
            f"{self.slowest_s:.2g} s ({', '.join(test.finding for test in self.failed)}; {rate})"
        )


def judge(
    residual_N: Sequence[Array],
    noise: Noise,
    n_fitted: int,
    period_s: float,
    step_N: float = 0.0,
) -> Adequacy:
    """Test the residuals of a fit.

    Parameters
    ----------
    residual_N : residuals of every run
    noise : noise of the channel
    n_fitted : number of fitted parameters and zeros
    step_N : one step of the converter
    """
    white = np.concatenate([noise.whitened(r) for r in residual_N])
    n = len(white)
    rms_N = float(np.sqrt(white @ white / (n - n_fitted)))
    known = np.isfinite(noise.rms_N)
    tests = [*_sizes(residual_N, noise, n_fitted, period_s, rms_N)] if known else []
    # The error of a filter that was estimated at rest widens the correlations by this factor.
    spread = 1.0 + n / noise.n_rest if len(noise.ar) else 1.0
    q = metrics.whiteness(white, spread=spread).p_uncorrelated
    tests.append(Test("whiteness", q, f"not white, p = {q:.1g}"))
    p = _runs(white, spread, step_N)
    tests.append(Test("runs", p, f"its signs come in runs, p = {p:.1g}"))
    excess = rms_N**2 - noise.rms_N**2 if known else np.nan
    slowest_s, peak_Hz = _shape(residual_N, period_s)
    return Adequacy(tuple(tests), float(np.sqrt(max(0.0, excess))), slowest_s, peak_Hz)


def _sizes(
    residual_N: Sequence[Array], noise: Noise, n_fitted: int, period_s: float, rms_N: float
) -> list[Test]:
    n = sum(len(r) - len(noise.ar) for r in residual_N)
    dof = n - n_fitted
    p = _p_larger((rms_N / noise.rms_N) ** 2, dof, noise.n_rest - 1 if noise.n_rest else None)
    found = [Test("size", p, f"{rms_N / noise.rms_N:.3g} times the noise")]
    length = max(1, round(COARSE_S / period_s))
    means = np.concatenate(
        [r[: len(r) // length * length].reshape(-1, length).mean(axis=1) for r in residual_N]
    )
    if len(means) > 2 * n_fitted:
        expected = noise.mean_rms_N(length)
        ratio = float(means @ means) / (len(means) - n_fitted) / expected**2
        known = noise.slow_dof if noise.n_rest else None
        p = _p_larger(ratio, len(means) - n_fitted, known)
        share = np.sqrt(ratio)
        found.append(
            Test("slow", p, f"{share:.3g} times the noise in means over {1e3 * COARSE_S:g} ms")
        )
    return found


def _p_larger(ratio: float, dof: float, dof_known: float | None) -> float:
    """Probability of a variance ratio this large.

    The denominator is known exactly, or has `dof_known` degrees of freedom.
    """
    if dof_known is None:
        return float(scipy.special.chdtrc(dof, ratio * dof))
    return float(scipy.special.fdtrc(dof, dof_known, ratio))


def _runs(white: Array, spread: float, step_N: float) -> float:
    # A resting force has few codes; dither over a step makes above and below equally probable.
    smooth = white + step_N * np.random.default_rng(0).uniform(-0.5, 0.5, len(white))
    up = smooth > np.median(smooth)
    n_up, n = int(up.sum()), len(up)
    n_down = n - n_up
    runs = 1 + int((up[1:] != up[:-1]).sum())
    mean = 1.0 + 2.0 * n_up * n_down / n
    variance = (mean - 1.0) * (mean - 2.0) / (n - 1.0)
    z = (runs - mean) / np.sqrt(spread * variance)
    return float(2.0 * scipy.special.ndtr(-abs(z)))


def _shape(residual_N: Sequence[Array], period_s: float) -> tuple[float, float]:
    """Lag from which the residual's correlation stays below 0.2, and its spectrum's peak.

    The correlation of a ringing residual crosses zero, so the maximum within COARSE_S counts.
    """
    longest = max(residual_N, key=len)
    x = longest - longest.mean()
    ahead = round(COARSE_S / period_s)
    r = np.abs(metrics.autocorrelation(longest))
    envelope = maximum_filter1d(r, 2 * ahead + 1, origin=-ahead, mode="constant")
    below = np.flatnonzero(envelope < 0.2)
    power = np.abs(np.fft.rfft(x * np.hanning(len(x)))) ** 2
    return float(below[0] * period_s), float(np.fft.rfftfreq(len(x), period_s)[np.argmax(power)])
