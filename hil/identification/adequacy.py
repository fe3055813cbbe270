"""Tests whether the residual of a fit is only noise; otherwise the model lacks an effect.

Four tests of the residual, each at the level FALSE_ALARM over the number of tests. An adequate
model is then rejected in at most FALSE_ALARM of all cases (Bonferroni):

- size: the innovations' variance over that of the noise (F or chi-squared);
- size over COARSE_S: the same for means over blocks, where slow effects exceed fast noise;
- whiteness: Ljung & Box 1978, 20 lags;
- runs: of equal signs (Wald & Wolfowitz 1940).

The first two need a noise level that is known without the model, from a rest or from the channel.
With a rest, the last two compare the residual with the rest, which is itself known only as well as
its length allows. Every test divides the residual by the growth of the noise with the force.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.special
from numpy.typing import NDArray
from scipy.ndimage import maximum_filter1d

from hil.identification.growth import Growth
from hil.identification.noise import Noise
from hil.mechanics.arrays import Array
from hil.record import metrics

FALSE_ALARM = 0.01
UNSEEN = (
    "not visible in the residual: a wrong slope of the transducer, because force_on_N takes it up"
)
COARSE_S = 0.05
LAGS = 20
CONSTANT = Growth()


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


class Sampling(NamedTuple):
    """Time between readings, and one step of the converter; 0 if it has none."""

    interval_s: float
    step_N: float = 0.0


def judge(
    residual_N: Sequence[Array],
    noise: Noise,
    n_fitted: int,
    sampling: Sampling,
    growth: Growth = CONSTANT,
    force_N: Sequence[Array] = (),
) -> Adequacy:
    """Test the residuals of a fit.

    Parameters
    ----------
    residual_N : residuals of every run after its rest
    noise : noise of the channel
    n_fitted : number of fitted parameters and zeros
    growth, force_N : growth of the noise, and the force beyond that at rest of every residual
    """
    interval_s, step_N = sampling
    p = len(noise.ar)
    forces = list(force_N) or [np.zeros(len(r)) for r in residual_N]
    scales = [growth.scale(f) for f in forces]
    white = np.concatenate(
        [noise.whitened(r) / scale[p:] for r, scale in zip(residual_N, scales, strict=True)]
    )
    rms_N = float(np.sqrt(white @ white / (len(white) - n_fitted)))
    known = np.isfinite(noise.rms_N)
    tests = []
    if known:
        unsure = growth.level_variance(np.concatenate(forces))
        level = [r / scale for r, scale in zip(residual_N, scales, strict=True)]
        tests = [
            _size(len(white), noise, n_fitted, rms_N, unsure),
            *_slow(level, noise, n_fitted, max(1, round(COARSE_S / interval_s)), unsure),
        ]
    rest = np.concatenate(noise.rest_white_N) if noise.rest_white_N else None
    q = metrics.whiteness(white).p_uncorrelated if rest is None else _p_unlike(white, rest)
    tests.append(Test("whiteness", q, f"not white, p = {q:.1g}"))
    q = _runs(white, step_N) if rest is None else _runs_unlike(white, rest, step_N)
    tests.append(Test("runs", q, f"its signs come in runs, p = {q:.1g}"))
    excess = rms_N**2 - noise.rms_N**2 if known else np.nan
    slowest_s, peak_Hz = _shape(residual_N, interval_s)
    return Adequacy(tuple(tests), float(np.sqrt(max(0.0, excess))), slowest_s, peak_Hz)


def _size(n: int, noise: Noise, n_fitted: int, rms_N: float, unsure: float) -> Test:
    ratio = (rms_N / noise.rms_N) ** 2
    p = _p_larger(ratio, n - n_fitted, _dof(noise.n_rest - 1.0 if noise.n_rest else None, unsure))
    return Test("size", p, f"{np.sqrt(ratio):.3g} times the noise")


def _slow(
    level_N: Sequence[Array], noise: Noise, n_fitted: int, length: int, unsure: float
) -> list[Test]:
    means = np.concatenate(
        [r[: len(r) // length * length].reshape(-1, length).mean(axis=1) for r in level_N]
    )
    if len(means) <= 2 * n_fitted:
        return []
    ratio = float(means @ means) / (len(means) - n_fitted) / noise.mean_rms_N(length) ** 2
    dof = _dof(noise.slow_dof if noise.n_rest else None, unsure)
    p = _p_larger(ratio, len(means) - n_fitted, dof)
    description = f"{np.sqrt(ratio):.3g} times the noise in means over {1e3 * COARSE_S:g} ms"
    return [Test("slow", p, description)]


def _dof(dof_of_rest: float | None, unsure: float) -> float | None:
    """Degrees of freedom of the noise's level, which is also unsure by this relative variance."""
    if dof_of_rest is None:
        return None
    return 2.0 / (2.0 / dof_of_rest + unsure)


def _p_unlike(white: Array, rest: Array) -> float:
    """Probability of correlations that differ this much from those at rest.

    Q = sum_k (r_k - r_k,rest)^2 / (1 / n + 1 / n_rest) is chi-squared with LAGS degrees of freedom.
    """
    r = metrics.autocorrelation(white)[1 : LAGS + 1] - metrics.autocorrelation(rest)[1 : LAGS + 1]
    q = float(r @ r) / (1.0 / len(white) + 1.0 / len(rest))
    return float(scipy.special.chdtrc(LAGS, q))


def _p_larger(ratio: float, dof: float, dof_known: float | None) -> float:
    """Probability of a variance ratio this large.

    The denominator is known exactly, or has `dof_known` degrees of freedom.
    """
    if dof_known is None:
        return float(scipy.special.chdtrc(dof, ratio * dof))
    return float(scipy.special.fdtrc(dof, dof_known, ratio))


def _runs(white: Array, step_N: float) -> float:
    up = _above(white, step_N)
    n_up, n = int(up.sum()), len(up)
    runs = 1 + int((up[1:] != up[:-1]).sum())
    mean = 1.0 + 2.0 * n_up * (n - n_up) / n
    variance = (mean - 1.0) * (mean - 2.0) / (n - 1.0)
    return _two_sided((runs - mean) / np.sqrt(variance))


def _runs_unlike(white: Array, rest: Array, step_N: float) -> float:
    """Of signs that change as often as at rest, in white noise every second time."""
    share = [float(np.mean(np.diff(_above(x, step_N)))) for x in (white, rest)]
    variance = 0.25 * (1.0 / len(white) + 1.0 / len(rest))
    return _two_sided((share[0] - share[1]) / np.sqrt(variance))


def _above(white: Array, step_N: float) -> NDArray[np.bool_]:
    # A resting force has few codes; dither over a step makes above and below equally probable.
    smooth = white + step_N * np.random.default_rng(0).uniform(-0.5, 0.5, len(white))
    return np.asarray(smooth > np.median(smooth))


def _two_sided(z: float) -> float:
    return float(2.0 * scipy.special.ndtr(-abs(z)))


def _shape(residual_N: Sequence[Array], interval_s: float) -> tuple[float, float]:
    """Lag from which the residual's correlation stays below 0.2, and its spectrum's peak.

    The correlation of a ringing residual crosses zero, so the maximum within COARSE_S counts.
    """
    longest = max(residual_N, key=len)
    x = longest - longest.mean()
    ahead = round(COARSE_S / interval_s)
    r = np.abs(metrics.autocorrelation(longest))
    envelope = maximum_filter1d(r, 2 * ahead + 1, origin=-ahead, mode="constant")
    below = np.flatnonzero(envelope < 0.2)
    power = np.abs(np.fft.rfft(x * np.hanning(len(x)))) ** 2
    return float(below[0] * interval_s), float(
        np.fft.rfftfreq(len(x), interval_s)[np.argmax(power)]
    )
