"""A law under stress fitted to loops: its parameters with intervals, and a prediction's band.

Residuals are strains over the loop's stroke. Those of one loop are not independent of each other:
a loop counts as N_EFFECTIVE samples (assumed). What few loops cannot tell keeps its prior, which is
what NiTiCo and NiTiHf have for the rate of the stroke's saturation, and print for expansion.

The band is 2 standard deviations of three independent errors: of the parameters (the fit's
covariance), of the law's shape (SHAPE of the stroke), and of temperature along steep flanks, where
a grain's own Clausius-Clapeyron slope moves it (FLANK of the loop's half width). The last two are
what loops left out of the fits of NiTiCo and NiTiHf show.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares

from hil.errors import ModelError
from hil.identification.wire_loops.loops import Loop, hot_end
from hil.mechanics.arrays import Array
from hil.mechanics.sma.stress import Branch, StressLaw

MODULUS_A_Pa = 70e9  # assumed; loops of constant stress do not tell it
N_POINTS = 160
N_EFFECTIVE = 20
NOISE = 0.01  # of the largest stroke: a gauge's noise is not smaller where the stroke is
CORES = (0.005, 0.02, 0.05)  # of the span of temperature: cores from which the fit begins
SHAPE, FLANK = 0.016, 0.08
BAND_SIGMAS = 2.0
NARROW = 0.5  # an interval that is at least this much narrower than its prior comes from the loops
MPa = 1e6

COMMON = ("stroke_min", "stroke_more", "ln_rate_per_MPa", "expansion_A_ppm", "expansion_M_ppm",
          "softer_per_TPa")  # fmt: skip
OF_BRANCH = ("middle_C", "K_per_MPa", "widens_per_100MPa", "ln_core_K", "ln_ratio_less_1",
             "shoulder_at", "core_logit", "work_share")  # fmt: skip
NOT_NEGATIVE = ("stroke_min", "stroke_more", "softer_per_TPa")
NAMES = (*COMMON, *(f"{side}.{name}" for side in ("heating", "cooling") for name in OF_BRANCH))
PRIOR = {
    "ln_rate_per_MPa": (np.log(0.012), 0.4), "expansion_A_ppm": (11.0, 10.0),
    "expansion_M_ppm": (6.6, 10.0), "widens_per_100MPa": (0.0, 0.3), "ln_core_K": (None, 1.5),
    "ln_ratio_less_1": (np.log(3.0), 1.5), "shoulder_at": (0.0, 2.0), "core_logit": (0.0, 1.5),
    "work_share": (0.5, 0.5), "softer_per_TPa": (25.0, 20.0),
}  # fmt: skip


@dataclass(frozen=True)
class Fitted:
    """A law as fitted: its parameters, their standard deviations, the stresses fitted."""

    law: StressLaw
    theta: Array
    sd: Array
    covariance: Array
    prior_sd: Array
    stresses_Pa: tuple[float, float]

    @property
    def unidentified(self) -> list[str]:
        """Parameters that the loops tell no better than what was assumed of them."""
        known = np.where(np.isinf(self.prior_sd), np.abs(self.theta), self.prior_sd)
        told = self.sd < NARROW * known
        return [name for name, ok in zip(NAMES, told, strict=True) if not ok]


def law_of(theta: Array) -> StressLaw:
    """The law of a parameter vector, in the order of NAMES."""
    low, more, ln_k, hot_ppm, cold_ppm, softer = theta[: len(COMMON)]
    sides = [_branch(part) for part in theta[len(COMMON) :].reshape(2, len(OF_BRANCH))]
    return StressLaw(
        heating=sides[0],
        cooling=sides[1],
        stroke_min=low,
        stroke_max=low + more,
        stroke_rate_per_Pa=np.exp(ln_k) / MPa,
        modulus_M_Pa=1e12 / (1e12 / MODULUS_A_Pa + softer),
        modulus_A_Pa=MODULUS_A_Pa,
        expansion_A_per_K=1e-6 * hot_ppm,
        expansion_M_per_K=1e-6 * cold_ppm,
    )


def _branch(part: Array) -> Branch:
    middle, per_MPa, widens, ln_core, ln_ratio, at, logit, share = part
    ratio, core_K = 1.0 + np.exp(ln_ratio), np.exp(ln_core)
    return Branch(
        middle_C=middle,
        slope_Pa_per_K=MPa / per_MPa if per_MPa else np.inf,
        core_K=core_K,
        shoulder_ratio=ratio,
        shoulder_at_K=at * ratio * core_K,
        core_share=0.5 + 0.5 * np.tanh(0.5 * logit),
        widens_per_Pa=widens / (100.0 * MPa),
        work_share=share,
    )


def isobaric(law: StressLaw, loop: Loop) -> Array:
    """The law's strain along a loop, above the loop's hot end."""
    s, T_C = loop.stress_Pa, loop.T_C
    ends = np.array([T_C.min(), T_C.max()])
    cold, hot = law.most(ends[0], s), law.least(ends[1], s)
    xi = np.where(
        loop.heating, np.maximum(law.least(T_C, s), cold), np.minimum(law.most(T_C, s), hot)
    )
    strain = law.strain(xi, T_C, s, float(ends[1]))
    return np.asarray(strain - strain[hot_end(T_C)].mean())


def fit(loops: Sequence[Loop]) -> Fitted:
    """The law that fits these loops best.

    Raises
    ------
    ModelError
        Loops of fewer than two stresses.
    """
    stresses = np.array([loop.stress_Pa for loop in loops])
    if len(loops) < 2 or np.ptp(stresses) < 0.1 * stresses.max() + MPa:
        raise ModelError(
            "fit: loops of two stresses at least are needed, or nothing says how a stress moves "
            "them: give files of more stresses"
        )
    starts, prior_sd = [_start(loops, share) for share in CORES], _prior_sd()
    centre = _prior_centre(starts[1])

    solution = best(lambda theta, loop: isobaric(law_of(theta), loop), loops, starts,
                 (centre, prior_sd), _lowest())  # fmt: skip
    return _fitted(loops, solution, prior_sd)


def best(
    strain: Callable[[Array, Loop], Array],
    loops: Sequence[Loop],
    starts: Sequence[Array],
    prior: tuple[Array, Array],
    lowest: Array,
) -> "Solution":
    """Least squares from several starts, as every law is fitted.

    Parameters
    ----------
    strain : of parameters and a loop, above the loop's hot end
    prior : centre and standard deviation; infinite where there is none
    lowest : bounds from below
    """
    few = [loop.thinned(N_POINTS) for loop in loops]
    largest = max(loop.stroke for loop in few)

    def residuals(theta: Array) -> Array:
        parts = [(theta - prior[0]) / prior[1]]
        for loop in few:
            weight = np.sqrt(N_EFFECTIVE / len(loop.T_C)) / (NOISE * largest)
            parts.append(weight * (strain(theta, loop) - loop.strain))
        return np.concatenate(parts)

    solutions = [_solved(residuals, start, lowest) for start in starts]
    return min(solutions, key=lambda solution: solution.cost)


def _solved(residuals: Callable[[Array], Array], start: Array, lowest: Array) -> "Solution":
    optimum = least_squares(
        residuals, np.maximum(start, lowest + 1e-12), x_scale="jac", max_nfev=150, ftol=1e-7,
        bounds=(lowest, np.inf),
    )  # fmt: skip
    return Solution(optimum.x, optimum.jac, float(optimum.cost))


@dataclass(frozen=True)
class Solution:
    theta: Array
    jacobian: Array
    cost: float


def _fitted(loops: Sequence[Loop], solution: Solution, prior_sd: Array) -> Fitted:
    law = law_of(solution.theta)
    rms = [rms_of_stroke(isobaric(law, loop), loop) for loop in loops]
    scale = max(1.0, float(np.mean(np.square(rms))) / NOISE**2)
    inverse = np.linalg.pinv(solution.jacobian.T @ solution.jacobian)
    covariance = scale * inverse.astype(np.float64)
    sd = np.sqrt(np.diag(covariance))
    stresses = [loop.stress_Pa for loop in loops]
    return Fitted(law, solution.theta, sd, covariance, prior_sd, (min(stresses), max(stresses)))


def rms_of_stroke(strain: Array, loop: Loop) -> float:
    """Root of the mean square error over the loop's stroke."""
    return float(np.sqrt(np.mean((strain - loop.strain) ** 2)) / loop.stroke)


def worst_of_stroke(strain: Array, loop: Loop) -> float:
    """The largest error over the loop's stroke."""
    return float(np.abs(strain - loop.strain).max() / loop.stroke)


def band(fitted: Fitted, loop: Loop) -> tuple[Array, Array]:
    """Strain predicted along a loop and half the width of its band."""
    strain = isobaric(fitted.law, loop)
    step = 1e-2 * fitted.sd + 1e-9
    slopes = np.array(
        [
            (isobaric(law_of(fitted.theta + h * unit), loop) - strain) / h
            for h, unit in zip(step, np.eye(len(step)), strict=True)
        ]
    )
    of_parameters = np.einsum("ip,ij,jp->p", slopes, fitted.covariance, slopes)
    law, s, span_K = fitted.law, loop.stress_Pa, 0.5
    half_K = 0.5 * abs(float(law.middle_C(law.heating, s) - law.middle_C(law.cooling, s)))
    side = np.where(
        loop.heating,
        law.least(loop.T_C + span_K, s) - law.least(loop.T_C - span_K, s),
        law.most(loop.T_C + span_K, s) - law.most(loop.T_C - span_K, s),
    )
    stroke = float(np.ptp(strain))
    flank = FLANK * half_K * stroke * side / (2.0 * span_K)
    variance = of_parameters + (SHAPE * stroke) ** 2 + flank**2
    return strain, BAND_SIGMAS * np.sqrt(variance)


def middle_of(loop: Loop, heating: bool) -> float:
    """Where half of the stroke is reached on one branch, deg C."""
    branch = loop.heating == heating
    order = np.argsort(loop.strain[branch])
    return float(np.interp(0.5 * loop.stroke, loop.strain[branch][order], loop.T_C[branch][order]))


def _start(loops: Sequence[Loop], core: float) -> Array:
    stress_MPa = np.array([loop.stress_Pa for loop in loops]) / MPa
    strokes = [loop.stroke for loop in loops]
    stroke = max(strokes)
    theta = [0.3 * stroke, 0.8 * stroke, np.log(0.012), 11.0, 6.6, 25.0]
    core_K = core * max(float(np.ptp(loop.T_C)) for loop in loops)
    for heating in (True, False):
        middles = [middle_of(loop, heating) for loop in loops]
        per_MPa, middle_C = np.polyfit(stress_MPa, middles, 1, w=strokes)
        theta += [middle_C, per_MPa, 0.0, np.log(core_K), np.log(3.0), 0.0, 0.0, 0.5]
    return np.array(theta)


def _at(name: str) -> list[int]:
    return [i for i, full in enumerate(NAMES) if full.rpartition(".")[2] == name]


def _prior_sd() -> Array:
    sds = {name: sd for name, (_, sd) in PRIOR.items()}
    return np.array([sds.get(name.rpartition(".")[2], np.inf) for name in NAMES])


def _prior_centre(start: Array) -> Array:
    centre = start.copy()
    for name, (value, _) in PRIOR.items():
        if value is not None:
            centre[_at(name)] = value
    return centre


def _lowest() -> Array:
    return np.where([name in NOT_NEGATIVE for name in NAMES], 0.0, -np.inf)
