"""Parameters of a wire's law from its isobaric loops: `hil identify` with loops.

The fit is that of `hil study wires` (`hil.identification.wire_loops.fit`). Its parameters become
keys of an activation of kind "sma", y = y(theta), with the covariance G C G^T, G = dy/dtheta.
Intervals are symmetric in y, in ln y for positive parameters, and in logit y for shares, and hold
95 % under a normal distribution. A parameter whose interval comes from its prior is not identified.

Source: JCGM 102:2011, 6.2.1.3 (propagation of a covariance).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.special import expit, logit

from hil.errors import ConfigError, ModelError
from hil.identification.wire_loops.fit import (
    Fitted,
    fit,
    isobaric,
    law_of,
    middle_of,
    rms_of_stroke,
)
from hil.identification.wire_loops.loops import Loop
from hil.identification.wire_loops.recorded import is_loop, read_loop
from hil.mechanics.arrays import Array
from hil.mechanics.sma.stress import Branch, StressLaw
from hil.record.read import open_head

STRENGTH_MPa = 1000.0  # assumed: of NiTi wire, as in an activation's table
Z_95 = 1.959963984540054
MPa = 1e6
# Keys of the activation, and the parameters of the fit that tell them.
OF_LAW = {
    "C_A_MPa_per_K": "heating.K_per_MPa", "C_M_MPa_per_K": "cooling.K_per_MPa",
    "stroke_min": "stroke_min", "stroke_max": "stroke_more",
    "stroke_rate_per_MPa": "ln_rate_per_MPa", "softer_per_TPa": "softer_per_TPa",
}  # fmt: skip
OF_BRANCH = {
    "middle_C": "middle_C", "core_K": "ln_core_K", "shoulder_ratio": "ln_ratio_less_1",
    "shoulder_at_K": "shoulder_at", "core_share": "core_logit",
    "widens_per_MPa": "widens_per_100MPa", "work_share": "work_share",
}  # fmt: skip
TOLD_BY = OF_LAW | {
    f"{side}.{key}": f"{side}.{by}" for side in ("heating", "cooling")
    for key, by in OF_BRANCH.items()
}  # fmt: skip
POSITIVE = ("C_A_MPa_per_K", "C_M_MPa_per_K", "stroke_max", "stroke_rate_per_MPa", "core_K",
            "shoulder_ratio", "contraction")  # fmt: skip


@dataclass(frozen=True)
class Estimate:
    """A value with its 95 % interval; `identified` is false where its prior determines it."""

    key: str
    value: float
    low: float
    high: float
    identified: bool


@dataclass(frozen=True)
class IdentifiedWire:
    """A law fitted to loops.

    Attributes
    ----------
    estimates : the keys of TOLD_BY
    covariance : of their values
    contraction : strain between both phases at each loop's stress, H + S sigma
    rms_of_stroke : of the fit, for each loop
    """

    loops: tuple[Loop, ...]
    fitted: Fitted
    estimates: tuple[Estimate, ...]
    covariance: Array
    contraction: tuple[Estimate, ...]
    rms_of_stroke: tuple[float, ...]


def are_loops(paths: Sequence[Path]) -> bool:
    """Whether the files are isobaric loops of a wire, and not runs of an array.

    Raises
    ------
    ConfigError
        Some are and some are not, or a file cannot be read.
    """
    kinds = {is_loop(path): path for path in paths}
    if len(kinds) == 2:
        raise ConfigError(
            f"{kinds[True]} is a loop of a wire, {kinds[False]} a run of an array: identify them "
            "separately"
        )
    return True in kinds


def is_simulated(paths: Sequence[Path]) -> bool:
    """Whether any of the files is a recording of simulated devices."""
    return any(path.suffix == ".h5" and open_head(path).attrs.get("simulated") for path in paths)


def identify_loop_files(paths: Sequence[Path]) -> IdentifiedWire:
    """Fit the law of a wire under stress to its loops.

    Raises
    ------
    ConfigError
        A file is not a loop or is given twice, or the loops have one stress only.
    """
    for i, path in enumerate(paths):
        if path.resolve() in [other.resolve() for other in paths[:i]]:
            raise ConfigError(f"{path}: given twice: give every loop once")
    try:
        return identify_loops([read_loop(path, STRENGTH_MPa) for path in paths])
    except ModelError as error:
        raise ConfigError(str(error)) from None


def identify_loops(loops: Sequence[Loop]) -> IdentifiedWire:
    """Fit the law to loops; ModelError for one stress only, or branches that fall."""
    loops = sorted(loops, key=lambda loop: loop.stress_Pa)
    lowest, highest = loops[0], loops[-1]
    for side, heating in (("heating", True), ("cooling", False)):
        falls = middle_of(highest, heating) <= middle_of(lowest, heating)
        if falls and highest.stress_Pa > lowest.stress_Pa:
            raise ModelError(
                f"{highest.name}: its {side} branch is not above that of {lowest.name}, which has "
                "a lower stress: stress raises the temperatures of any wire: check stress_MPa"
            )
    fitted = fit(loops)
    stresses_Pa = np.array([loop.stress_Pa for loop in loops])

    def law_values(theta: Array) -> Array:
        return np.array(list(values_of(law_of(theta)).values()))

    def contracted(theta: Array) -> Array:
        return contraction(law_of(theta), stresses_Pa)

    covariance, of_contraction = (propagated(fitted, y) for y in (law_values, contracted))
    estimates = [
        _estimate(key, value, variance, by not in fitted.unidentified)
        for (key, by), value, variance in zip(
            TOLD_BY.items(), law_values(fitted.theta), np.diag(covariance), strict=True
        )
    ]
    contractions = [
        _estimate("contraction", value, variance, True)
        for value, variance in zip(contracted(fitted.theta), np.diag(of_contraction), strict=True)
    ]
    return IdentifiedWire(
        tuple(loops),
        fitted,
        tuple(estimates),
        covariance,
        tuple(contractions),
        tuple(rms_of_stroke(isobaric(fitted.law, loop), loop) for loop in loops),
    )


def values_of(law: StressLaw) -> dict[str, float]:
    """A law as the keys of an activation of kind "sma", in the order of TOLD_BY."""
    values = {
        "C_A_MPa_per_K": law.heating.slope_Pa_per_K / MPa,
        "C_M_MPa_per_K": law.cooling.slope_Pa_per_K / MPa,
        "stroke_min": law.stroke_min,
        "stroke_max": law.stroke_max,
        "stroke_rate_per_MPa": law.stroke_rate_per_Pa * MPa,
        "softer_per_TPa": 1e12 * (1.0 / law.modulus_M_Pa - 1.0 / law.modulus_A_Pa),
    }
    for side, branch in (("heating", law.heating), ("cooling", law.cooling)):
        values |= {f"{side}.{key}": value for key, value in _branch(branch).items()}
    return values


def _branch(branch: Branch) -> dict[str, float]:
    values = {key: float(getattr(branch, key)) for key in OF_BRANCH if key != "widens_per_MPa"}
    return {key: values.get(key, branch.widens_per_Pa * MPa) for key in OF_BRANCH}


def contraction(law: StressLaw, stress_Pa: Array) -> Array:
    """Strain that the wire loses from martensite to austenite, H + S sigma."""
    softer_per_Pa = 1.0 / law.modulus_M_Pa - 1.0 / law.modulus_A_Pa
    return np.asarray(law.stroke(stress_Pa) + softer_per_Pa * stress_Pa)


def propagated(fitted: Fitted, y: Callable[[Array], Array]) -> Array:
    """Covariance of y(theta), from central differences of a hundredth of a standard deviation."""
    steps = 0.01 * fitted.sd
    G = np.column_stack(
        [
            (y(fitted.theta + step) - y(fitted.theta - step)) / (2.0 * size)
            for size, step in zip(steps, np.diag(steps), strict=True)
        ]
    )
    C = G @ fitted.covariance @ G.T
    return np.asarray(0.5 * (C + C.T))


def _estimate(key: str, value: float, variance: float, identified: bool) -> Estimate:
    half, last = Z_95 * float(np.sqrt(variance)), key.rpartition(".")[2]
    low, high = value - half, value + half
    if last in POSITIVE:
        factor = np.exp(half / value)
        low, high = value / factor, value * factor
    elif last == "core_share":
        shift = half / (value * (1.0 - value))
        low, high = expit(logit(value) + np.array([-shift, shift]))
    return Estimate(key, float(value), float(low), float(high), identified)
