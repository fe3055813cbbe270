"""`hil calibrate displacement_sensor`: reads a sensor at known positions of a stage.

    V = V_0 + a x + e

by least squares over increasing and decreasing positions; metres_per_V is m = 1/a and zero_V is
V_0, the reading at the position 0. To first order m has the variance m^4 var(a), and the covariance
-m^2 cov(a, V_0) with V_0. The stage's scale uncertainty u_s is common to all positions and adds
u_s^2 m^2. The uncertainty of its zero, u_x, adds (u_x / m)^2 to V_0.

Source: JCGM 100:2008 (GUM), eq. (13) and F.1.2.3 (common scale).
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import Field

from hil.config.table import NotNegative, Positive, Table
from hil.errors import ConfigError
from hil.procedures.fits import (
    linear,
    refuse_implausible,
    refuse_saturated,
    refuse_stuck,
    refuse_unit_slip,
)
from hil.procedures.procedure import Readings, Step
from hil.procedures.session_file import SessionFile

KIND = "displacement_sensor"
METHOD = "read at known positions of a stage, up and down"
POSITION_MAX_M = 1.0


class Settings(Table):
    """The positions increase and decrease, `repeats` times; `rated_m_per_V` is on the label."""

    positions_m: Annotated[list[float], Field(min_length=3, max_length=200)]
    rated_m_per_V: float
    repeats: Annotated[int, Field(ge=1, le=20)] = 2
    range_V: Positive = 10.0
    stage_relative_u: NotNegative = 5e-4
    stage_zero_u_m: NotNegative = 1e-6


Session = SessionFile[Settings]


def _sequence(s: Settings) -> list[float]:
    return [*s.positions_m, *s.positions_m[::-1]] * s.repeats


def steps(session: Session) -> list[Step]:
    s = session.procedure
    furthest = max(map(abs, s.positions_m))
    if furthest > POSITION_MAX_M:
        raise ConfigError(
            f"procedure.positions_m: {furthest:g} m on a stage: off by 1000: metres, not "
            "millimetres"
        )
    if s.rated_m_per_V == 0.0:
        raise ConfigError("procedure.rated_m_per_V must not be 0: its label gives volts per metre")
    return [
        Step(f"reading {i}", f"move the stage to {1e3 * x:.6g} mm", "V")
        for i, x in enumerate(_sequence(s), start=1)
    ]


def finish(session: Session, readings: Readings) -> dict[str, object]:
    s = session.procedure
    x = np.array(_sequence(s))
    V = np.array([readings[step.key] for step in steps(session)])
    fit = linear(np.column_stack((x, np.ones_like(x))), V, ("the slope", "the zero"), KIND)
    slope_V_per_m, zero_V = (float(value) for value in fit.values)
    refuse_stuck(x, V, "m", KIND)
    if slope_V_per_m == 0.0:
        raise ConfigError(f"{KIND}: the reading does not follow the position: is it connected?")
    m = 1.0 / slope_V_per_m
    refuse_unit_slip(m, s.rated_m_per_V, f"{KIND}: metres_per_V", "positions in m, readings in V")
    refuse_saturated(V, s.range_V, "V", KIND)
    refuse_implausible(m, s.rated_m_per_V, f"{KIND}: metres_per_V")
    J = np.diag([-(m**2), 1.0])
    C = J @ fit.covariance @ J.T
    C += np.diag([(s.stage_relative_u * m) ** 2, (s.stage_zero_u_m / m) ** 2])
    residuals_m = -m * fit.residuals
    worst_um = 1e6 * float(np.abs(residuals_m).max())
    return {
        "values": {"metres_per_V": m, "zero_V": zero_V},
        "covariance": C,
        "equation": "V = zero_V + x / metres_per_V",
        "dof": fit.dof,
        "residuals": residuals_m,
        "raw": {"position_m": x, "reading_V": V},
        "said": [f"readings leave the line by up to {worst_um:.3g} um"],
    }


@dataclass(frozen=True)
class Truth:
    """A simulated rehearsal: a sensor of known slope on a stage with a scale error."""

    settings: Settings
    metres_per_V: float
    zero_V: float
    stage_scale: float
    stage_off_m: float
    noise_V: float = 0.001

    @property
    def truth(self) -> dict[str, float]:
        return {"metres_per_V": self.metres_per_V, "zero_V": self.zero_V}

    def read(self, step: Step, seed: int) -> float:
        x = _sequence(self.settings)[int(step.key.removeprefix("reading ")) - 1]
        x = self.stage_scale * x + self.stage_off_m
        noise_V = self.noise_V * float(np.random.default_rng(seed).standard_normal())
        return self.zero_V + x / self.metres_per_V + noise_V


def rehearsal(session: Session, seed: int) -> Truth:
    s, rng = session.procedure, np.random.default_rng(seed)
    return Truth(
        s, s.rated_m_per_V * (1.0 + 0.02 * float(rng.uniform(-1.0, 1.0))),
        float(rng.uniform(-0.1, 0.1)),
        1.0 + s.stage_relative_u * float(rng.standard_normal()),
        s.stage_zero_u_m * float(rng.standard_normal()),
    )  # fmt: skip
