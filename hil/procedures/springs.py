"""`hil calibrate spring_constants`: stretches each spring between two micro-positioners.

    F = F_0 + k x + e

by least squares for each of k_pe, k_se and k_ae, at increasing and decreasing stretches. The
resolution r of a positioner gives an error that is uniform within +-r/2. Two positioners add
k^2 r^2 / 6 to the variance of a force, which the residuals already include. The transducer's scale
uncertainty u_t is common to all springs and adds u_t^2 k_i k_j to the covariance of k_i and k_j.

Errors in x also bias k towards zero by the share r^2 / (6 var x). This is 4e-5 for 0.02 mm over
4 mm, far below the uncertainty.

Source: MacNair & Ueda, section Physical Actuator Array Design (the method); JCGM 100:2008 (GUM),
F.1.2.3 (common scale) and 4.3.7 (resolution).
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from hil.config.table import NotNegative, Positive, Table
from hil.errors import ConfigError
from hil.procedures.fits import (
    Fit,
    linear,
    refuse_implausible,
    refuse_saturated,
    refuse_stuck,
    refuse_unit_slip,
)
from hil.procedures.procedure import Readings, Step
from hil.procedures.session_file import SessionFile

KIND = "spring_constants"
METHOD = "stretched between two micro-positioners, force read at every stretch"
SPRINGS = ("k_pe_N_per_m", "k_se_N_per_m", "k_ae_N_per_m")


class Settings(Table):
    """The stretches increase and decrease, `repeats` times, for every spring."""

    springs: Annotated[
        list[Literal["k_pe_N_per_m", "k_se_N_per_m", "k_ae_N_per_m"]], Field(min_length=1)
    ]
    stretch_m: list[float]
    expected_N_per_m: list[Positive]
    repeats: Annotated[int, Field(ge=1, le=20)] = 2
    resolution_m: NotNegative = 0.00002
    force_range_N: Positive = 9.5
    force_relative_u: NotNegative = 0.0025


Session = SessionFile[Settings]


def _sequence(s: Settings) -> list[float]:
    return [*s.stretch_m, *s.stretch_m[::-1]] * s.repeats


def steps(session: Session) -> list[Step]:
    s = session.procedure
    if len(s.expected_N_per_m) != len(s.springs):
        raise ConfigError("procedure.expected_N_per_m: give one value for each spring")
    if len(set(s.springs)) < len(s.springs):
        raise ConfigError(f"procedure.springs: {', '.join(s.springs)}: list every spring once")
    if max(s.stretch_m, default=0.0) - min(s.stretch_m, default=0.0) > 0.1:
        raise ConfigError(
            f"procedure.stretch_m: {max(s.stretch_m):g} m between micro-positioners: off by 1000: "
            "metres, not millimetres"
        )
    return [
        Step(f"{spring}, reading {i}", f"{spring}: positioners {1e3 * x:g} mm apart from rest", "N")
        for spring in s.springs
        for i, x in enumerate(_sequence(s), start=1)
    ]


def finish(session: Session, readings: Readings) -> dict[str, object]:
    s = session.procedure
    x = np.array(_sequence(s))
    fits: list[Fit] = []
    raw: dict[str, object] = {"stretch_m": x}
    for spring, expected in zip(s.springs, s.expected_N_per_m, strict=True):
        F = np.array([readings[f"{spring}, reading {i}"] for i in range(1, len(x) + 1)])
        fits.append(linear(np.column_stack((x, np.ones_like(x))), F, ("k", "F_0"), spring))
        k_fitted = float(fits[-1].values[0])
        refuse_unit_slip(k_fitted, expected, spring, "stretches in m, forces in N")
        refuse_saturated(F, s.force_range_N, "N", spring)
        refuse_stuck(x, F, "m", spring)
        refuse_implausible(k_fitted, expected, spring)
        raw[f"{spring}.force_N"] = F
    k = np.array([fit.values[0] for fit in fits])
    C = np.diag([fit.covariance[0, 0] for fit in fits])
    C += s.force_relative_u**2 * np.outer(k, k)
    return {
        "values": dict(zip(s.springs, k.tolist(), strict=True)),
        "covariance": C,
        "equation": "F = F_0 + k x",
        "dof": min(fit.dof for fit in fits),
        "residuals": np.concatenate([fit.residuals for fit in fits]),
        "raw": raw,
    }


@dataclass(frozen=True)
class Truth:
    """A simulated rehearsal: known springs, positioners and a transducer with errors."""

    settings: Settings
    k_N_per_m: dict[str, float]
    scale: float
    noise_N: float = 0.002

    @property
    def truth(self) -> dict[str, float]:
        return self.k_N_per_m

    def read(self, step: Step, seed: int) -> float:
        spring, _, number = step.key.partition(", reading ")
        rng, s = np.random.default_rng(seed), self.settings
        x = _sequence(s)[int(number) - 1]
        x += float(rng.uniform(-0.5, 0.5, 2).sum()) * s.resolution_m
        force = self.k_N_per_m[spring] * x * self.scale + 0.03
        return force + self.noise_N * float(rng.standard_normal())


def rehearsal(session: Session, seed: int) -> Truth:
    s, rng = session.procedure, np.random.default_rng(seed)
    k: dict[str, float] = {spring: expected * (1.0 + 0.05 * float(rng.uniform(-1.0, 1.0)))
         for spring, expected in zip(s.springs, s.expected_N_per_m, strict=True)}  # fmt: skip
    return Truth(s, k, 1.0 + s.force_relative_u * float(rng.standard_normal()))
