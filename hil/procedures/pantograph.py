"""`hil calibrate pantograph_geometry`: reads both motor angles with the tip on known points.

    q_i(x, y; l_1, l_2, l_5) + o_i + e,   i = 1, 3

A least-squares fit over all points gives the lengths and the encoders' offsets o_i. The origin of
the points is midway between the motors' axes. Position errors of the tip are in the residuals.

Source: Font-Llagunes & Koevecses, Fig. 7 (the mechanism); Mooring, Roth & Driels, Fundamentals of
Manipulator Calibration, ch. 5 (the method).
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from hil.config.table import Positive, Table
from hil.errors import ConfigError
from hil.procedures.fits import nonlinear, refuse_implausible
from hil.procedures.procedure import Readings, Step
from hil.procedures.session_file import SessionFile
from hil.systems.pantograph.linkage import L_1, L_2, L_5, TURNS, Parameters, solve_inverse

KIND = "pantograph_geometry"
METHOD = "the tip on known points, motor angles read"
NAMES = ("l_1_m", "l_2_m", "l_5_m")
LOST_RAD = 10.0  # angle of a point out of reach with the lengths of a fit's iteration


class Settings(Table):
    """The lengths are the start of the fit; the arm is held with its elbows outward."""

    x_m: list[float]
    y_m: list[float]
    l_1_m: Positive = Parameters.l_1_m
    l_2_m: Positive = Parameters.l_2_m
    l_5_m: Positive = Parameters.l_5_m
    angle_u_rad: Annotated[float, Field(gt=0.0, le=0.1)] = 0.0003


Session = SessionFile[Settings]


def steps(session: Session) -> list[Step]:
    s = session.procedure
    if len(s.x_m) != len(s.y_m):
        raise ConfigError(f"procedure.y_m: {len(s.y_m)} values for {len(s.x_m)} of x_m")
    far = max((float(np.hypot(x, y)) for x, y in zip(s.x_m, s.y_m, strict=True)), default=0.0)
    if far > 2.0 * (s.l_1_m + s.l_2_m):
        raise ConfigError(
            f"procedure: a point {far:g} m away is out of reach of {s.l_1_m + s.l_2_m:g} m: "
            "metres, not millimetres (off by 1000)"
        )
    return [
        Step(f"point {i}, {q}", f"the tip on x = {x:g} m, y = {y:g} m: angle {q}", "rad")
        for i, (x, y) in enumerate(zip(s.x_m, s.y_m, strict=True), start=1)
        for q in ("q1", "q3")
    ]


def angles(s: Settings, lengths: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n, 2) motor angles at the template's points [rad]; LOST_RAD for points out of reach."""
    p = np.zeros(10)
    p[L_1], p[L_2], p[L_5] = lengths
    turn_1, turn_3 = TURNS["outward"]
    angles_rad = np.full((len(s.x_m), 2), LOST_RAD)
    for i, (x, y) in enumerate(zip(s.x_m, s.y_m, strict=True)):
        q, ok = solve_inverse(p, x, y, turn_1, turn_3)
        if ok:
            angles_rad[i] = q[0], q[2]
    return angles_rad


def finish(session: Session, readings: Readings) -> dict[str, object]:
    s = session.procedure
    q = np.array([readings[step.key] for step in steps(session)]).reshape(-1, 2)
    if np.abs(q).max(initial=0.0) > 2.0 * np.pi:
        raise ConfigError(
            f"pantograph_geometry: an angle of {np.abs(q).max():g}: radians, not degrees"
        )

    def misfit(p: NDArray[np.float64]) -> NDArray[np.float64]:
        difference = angles(s, p[:3]) + p[3:] - q
        return np.asarray((difference + np.pi) % (2.0 * np.pi) - np.pi).ravel()

    start = np.array([s.l_1_m, s.l_2_m, s.l_5_m, 0.0, 0.0])
    fit = nonlinear(misfit, start, (*NAMES, "offset of q1", "offset of q3"), KIND)
    for name, value, expected in zip(NAMES, fit.values, start, strict=False):
        refuse_implausible(float(value), float(expected), name)
    if fit.sigma > 10.0 * s.angle_u_rad:
        raise ConfigError(
            f"pantograph_geometry: {fit.sigma:.2g} rad remain as residual, ten times the "
            "uncertainty of an angle: was a point mixed up, or the other elbow bent?"
        )
    return {
        "values": dict(zip(NAMES, fit.values[:3].tolist(), strict=True)),
        "covariance": fit.covariance[:3, :3],
        "equation": "q = inverse kinematics of l_1, l_2, l_5, and an offset each",
        "dof": fit.dof,
        "residuals": fit.residuals,
        "raw": {"x_m": s.x_m, "y_m": s.y_m, "q1_rad": q[:, 0], "q3_rad": q[:, 1]},
        "said": [f"offsets beside them: q1 {fit.values[3]:.5f} rad, q3 {fit.values[4]:.5f} rad"],
    }


@dataclass(frozen=True)
class Truth:
    settings: Settings
    lengths_m: tuple[float, float, float]
    noise_rad: float = 0.0002

    @property
    def truth(self) -> dict[str, float]:
        return dict(zip(NAMES, self.lengths_m, strict=True))

    def read(self, step: Step, seed: int) -> float:
        point, _, which = step.key.removeprefix("point ").partition(", ")
        q = angles(self.settings, np.array(self.lengths_m))
        noise = self.noise_rad * float(np.random.default_rng(seed).standard_normal())
        return float(q[int(point) - 1, 0 if which == "q1" else 1]) + 0.01 + noise


def rehearsal(session: Session, seed: int) -> Truth:
    s, rng = session.procedure, np.random.default_rng(seed)
    off = 1.0 + 0.01 * rng.uniform(-1.0, 1.0, 3)
    return Truth(s, (s.l_1_m * float(off[0]), s.l_2_m * float(off[1]), s.l_5_m * float(off[2])))
