"""`hil calibrate encoder`: compares the counts with known angles of the arm.

    theta = theta_0 + s 2 pi c / n + e,    s = +1 or -1

The sign of the slope gives s. Its magnitude must be 2 pi / n with the encoder's n counts a turn.
theta_0 is the mean of theta - s 2 pi c / n. Its variance is the sum of the residuals' variance over
the number of readings, the reference's common variance u_r^2, the rounding of a count,
(2 pi / n)^2 / 12, and the eccentricity of the disc. The latter is an error a sin(theta + phi) of
unknown phase, of variance a^2 / 2, in the angle that is read and at most the same in the offset:
a^2 together. Where the angles are spread widely enough, a is fitted too, and the larger of the
fitted and the stated a counts. Over a small part of a turn it cannot be told from the offset. Only
the scatter is an estimate, from n readings; the degrees of freedom are those of the sum
(Welch-Satterthwaite), nu = (n - 1) (u^2 / u_1^2)^2.

Source: JCGM 100:2008 (GUM), 4.2.3, 4.3.7 and G.4.1.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import Field

from hil.config.table import NotNegative, Table
from hil.errors import ConfigError
from hil.mechanics.arrays import Array
from hil.procedures.fits import linear
from hil.procedures.procedure import Readings, Step
from hil.procedures.session_file import SessionFile

KIND = "encoder"
METHOD = "compared with known angles"
SLOPE_WITHIN = 0.02
DOF_MAX = 10_000
ANGLES_MIN, CONDITION_MAX = 5, 10.0  # for a fitted eccentricity


class Settings(Table):
    angles_rad: list[float]
    counts_per_turn: Annotated[int, Field(ge=4)]
    repeats: Annotated[int, Field(ge=1, le=20)] = 2
    reference_u_rad: NotNegative = 0.0005
    eccentricity_rad: NotNegative = 0.001


Session = SessionFile[Settings]


def _angles(s: Settings) -> list[float]:
    return s.angles_rad * s.repeats


def steps(session: Session) -> list[Step]:
    s = session.procedure
    if max(map(abs, s.angles_rad), default=0.0) > 4.0 * np.pi:
        raise ConfigError(
            f"procedure.angles_rad: {max(map(abs, s.angles_rad)):g} rad: off by 57.3: "
            "radians, not degrees"
        )
    return [
        Step(f"reading {i}", f"hold the arm at {angle:.6g} rad", "counts")
        for i, angle in enumerate(_angles(s), start=1)
    ]


def finish(session: Session, readings: Readings) -> dict[str, object]:
    s = session.procedure
    theta = np.array(_angles(s))
    c = np.array([readings[step.key] for step in steps(session)])
    # Counts over angles: then `linear` detects angles that are all equal.
    slope_fit = linear(
        np.column_stack((theta, np.ones_like(c))), c, ("the slope", "the offset"), KIND
    )
    direction = float(np.sign(slope_fit.values[0]))
    turn = 2.0 * np.pi * abs(float(slope_fit.values[0]))
    if turn < 1.0:
        raise ConfigError("encoder: the counts do not follow the angle: is it connected?")
    if abs(turn / s.counts_per_turn - 1.0) > SLOPE_WITHIN:
        raise ConfigError(
            f"encoder: {turn:.6g} counts a turn were read, counts_per_turn is "
            f"{s.counts_per_turn}: each pulse gives four counts"
        )
    offsets_rad = theta - direction * 2.0 * np.pi * c / s.counts_per_turn
    offset = float(offsets_rad.mean())
    sigma2, fitted_rad = float(offsets_rad.var(ddof=1)), eccentricity_rad(theta, offsets_rad)
    count2 = (2.0 * np.pi / s.counts_per_turn) ** 2 / 12.0
    n, mean2 = len(offsets_rad), sigma2 / len(offsets_rad)
    variance = mean2 + s.reference_u_rad**2 + count2 + max(s.eccentricity_rad, fitted_rad) ** 2
    dof = (n - 1) * (variance / mean2) ** 2 if mean2 > 0.0 else np.inf
    return {
        "values": {"offset_rad": offset, "direction": direction},
        "covariance": np.diag([variance, 0.0]),
        "equation": "theta = offset + direction 2 pi c / n",
        "dof": int(min(dof, DOF_MAX)),
        "residuals": offsets_rad - offset,
        "raw": {"angle_rad": theta, "counts": c},
    }


def eccentricity_rad(theta: Array, offsets_rad: Array) -> float:
    """Amplitude a of offset = theta_0 + A sin(theta) + B cos(theta), a^2 = A^2 + B^2.

    It is 0 where the angles do not determine it: fewer than 5, or over too narrow a range.
    """
    X = np.column_stack((np.ones_like(theta), np.sin(theta), np.cos(theta)))
    if len(np.unique(theta)) < ANGLES_MIN or np.linalg.cond(X) > CONDITION_MAX:
        return 0.0
    _, A, B = np.linalg.lstsq(X, offsets_rad, rcond=None)[0]
    return float(np.hypot(A, B))


@dataclass(frozen=True)
class Truth:
    settings: Settings
    offset_rad: float
    direction: float
    reference_off_rad: float
    phase_rad: float
    noise_rad: float = 0.0004

    @property
    def truth(self) -> dict[str, float]:
        return {"offset_rad": self.offset_rad, "direction": self.direction}

    def eccentric_rad(self, angle_rad: float) -> float:
        """Error of the angle that the counts show, once a turn."""
        return self.settings.eccentricity_rad * float(np.sin(angle_rad + self.phase_rad))

    def read(self, step: Step, seed: int) -> float:
        s = self.settings
        angle = _angles(s)[int(step.key.removeprefix("reading ")) - 1] + self.reference_off_rad
        angle += self.noise_rad * float(np.random.default_rng(seed).standard_normal())
        angle += self.eccentric_rad(angle)
        turns = self.direction * (angle - self.offset_rad) / (2.0 * np.pi)
        return float(round(turns * s.counts_per_turn))


def rehearsal(session: Session, seed: int) -> Truth:
    s, rng = session.procedure, np.random.default_rng(seed)
    return Truth(
        s, float(rng.uniform(-3.0, 3.0)), float(rng.choice([-1.0, 1.0])),
        s.reference_u_rad * float(rng.standard_normal()), float(rng.uniform(0.0, 2.0 * np.pi)),
    )  # fmt: skip
