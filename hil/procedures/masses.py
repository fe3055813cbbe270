"""`hil calibrate masses`: weighs every mass several times.

The value is the mean of n weighings. Its variance is s^2 / n, with s pooled over all masses, plus
d^2 / 12 for the last digit d of the scales. The relative uncertainty u_s of the scales is common to
all masses and adds the covariance u_s^2 m_i m_j.

Source: JCGM 100:2008 (GUM), 4.2.3, 4.3.7 and H.3.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import Field

from hil.config.table import NotNegative, Positive, Table
from hil.procedures.fits import linear, refuse_implausible, refuse_saturated, refuse_unit_slip
from hil.procedures.procedure import Readings, Step
from hil.procedures.session_file import SessionFile

KIND = "masses"
METHOD = "weighed"


class Settings(Table):
    n_masses: Annotated[int, Field(ge=1, le=1000)]
    expected_kg: Positive
    repeats: Annotated[int, Field(ge=1, le=20)] = 3
    range_kg: Positive = 0.2
    digit_kg: NotNegative = 1e-5
    relative_u: NotNegative = 1e-4


Session = SessionFile[Settings]


def steps(session: Session) -> list[Step]:
    s = session.procedure
    return [
        Step(f"mass {i}, weighing {j}", f"mass {i} on the scales, tared before", "kg")
        for i in range(1, s.n_masses + 1)
        for j in range(1, s.repeats + 1)
    ]


def finish(session: Session, readings: Readings) -> dict[str, object]:
    s = session.procedure
    m = np.array([readings[step.key] for step in steps(session)])
    which = np.repeat(np.arange(s.n_masses), s.repeats)
    for value in m:
        refuse_unit_slip(float(value), s.expected_kg, "masses: a weighing in kg", "type it in kg")
    refuse_saturated(m, s.range_kg, "kg", KIND)
    for value in m:
        refuse_implausible(float(value), s.expected_kg, "masses: a weighing in kg")
    names = [f"mass_kg.{i + 1}" for i in range(s.n_masses)]
    X = (which[:, None] == np.arange(s.n_masses)) * 1.0
    fit = linear(X, m, names, KIND)
    C = fit.covariance + s.relative_u**2 * np.outer(fit.values, fit.values)
    C += np.eye(s.n_masses) * s.digit_kg**2 / 12.0
    return {
        "values": dict(zip(names, fit.values.tolist(), strict=True)),
        "covariance": C,
        "equation": "m = mean of the weighings",
        "dof": fit.dof,
        "residuals": fit.residuals,
        "raw": {"mass": [f"{i + 1}" for i in which], "weighing_kg": m},
    }


@dataclass(frozen=True)
class Truth:
    settings: Settings
    masses_kg: tuple[float, ...]
    scale: float
    noise_kg: float = 2e-5

    @property
    def truth(self) -> dict[str, float]:
        return {f"mass_kg.{i}": m for i, m in enumerate(self.masses_kg, start=1)}

    def read(self, step: Step, seed: int) -> float:
        i = int(step.key.removeprefix("mass ").partition(",")[0])
        noise = self.noise_kg * float(np.random.default_rng(seed).standard_normal())
        digit = self.settings.digit_kg
        read = self.masses_kg[i - 1] * self.scale + noise
        return round(read / digit) * digit if digit else read


def rehearsal(session: Session, seed: int) -> Truth:
    s, rng = session.procedure, np.random.default_rng(seed)
    masses = s.expected_kg * (1.0 + 0.1 * rng.uniform(-1.0, 1.0, s.n_masses))
    return Truth(s, tuple(masses.tolist()), 1.0 + s.relative_u * float(rng.standard_normal()))
