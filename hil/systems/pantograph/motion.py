"""Inverse kinematics and dynamics of the tip's motion, and start positions of an approach."""

from collections.abc import Sequence

import numpy as np

from hil.compiled import njit
from hil.errors import ModelError
from hil.mechanics.arrays import Array
from hil.systems.pantograph.impact import approach, predict
from hil.systems.pantograph.linkage import (
    L_1,
    TURNS,
    Elbows,
    Pantograph,
    dynamics,
    solve_forward,
    solve_inverse,
)


class ArmMotion:
    """Inverse kinematics and dynamics in one branch of the mechanism.

    Parameters
    ----------
    pose_m : any position of the tip in that branch
    damping_N_m_s_per_rad : b, of each motor's joint
    """

    def __init__(
        self, rig: Pantograph, pose_m: Sequence[float], elbows: Elbows,
        damping_N_m_s_per_rad: float,
    ) -> None:  # fmt: skip
        self._vector, self._turns, self._damping = rig.vector, TURNS[elbows], damping_N_m_s_per_rad
        self._side = 1.0 if rig.inverse(pose_m, elbows).assembly == "upper" else -1.0

    def joint_reference(
        self, x_m: float, y_m: float, vx: float, vy: float, ax: float, ay: float
    ) -> tuple[float, float, float, float]:
        """Return q1, q3 and the torques M q'' + c + b q' for the tip's motion."""
        q1, q3, w1, w3, tau1, tau3 = _joint_reference(
            self._vector, (x_m, y_m, vx, vy, ax, ay), self._turns
        )
        return q1, q3, tau1 + self._damping * w1, tau3 + self._damping * w3

    def tip_of(
        self, q1: float, q3: float, w1: float, w3: float
    ) -> tuple[float, float, float, float]:
        """Return position and velocity of the tip for angles and rates of the motors."""
        x, y, vx, vy = _tip_of(self._vector, q1, q3, w1, w3, self._side)
        return x, y, vx, vy


def run_ups(
    rig: Pantograph, pose_m: Sequence[float], elbows: Elbows, gamma_deg: Sequence[float],
    energy_J: float, run_up_s: float,
) -> tuple[Array, Array]:  # fmt: skip
    """Return velocities at contact and start positions (k, 2), `run_up_s` before contact.

    The speed gives this kinetic energy at the contact.

    Raises
    ------
    ModelError
        A pose, an angle or a point of the approach is out of reach.
    """
    pose = rig.inverse(pose_m, elbows)
    speed = predict(pose, gamma_deg, energy_J).speed_m_per_s
    velocities = speed[:, None] * approach(gamma_deg)
    starts = pose.E_m - run_up_s * velocities
    for gamma, start in zip(gamma_deg, starts, strict=True):
        for share in np.linspace(0.0, 1.0, 9):
            try:
                rig.inverse(start + share * (pose.E_m - start), elbows)
            except ModelError as error:
                raise ModelError(
                    f"gamma_deg = {gamma:g}: the approach leaves the workspace: {error}: shorten "
                    "accelerate_s or cruise_s"
                ) from None
    return velocities, starts


@njit(cache=True, error_model="numpy")
def _joint_reference(
    p: Array, tip: tuple[float, float, float, float, float, float], turns: tuple[float, float]
) -> tuple[float, float, float, float, float, float]:
    """Return angles, rates and torques of the motors for the tip's x, y, x', y', x'', y''."""
    x, y, vx, vy, ax, ay = tip
    q, _ = solve_inverse(p, x, y, turns[0], turns[1])
    c, s = np.cos(q), np.sin(q)
    w1 = (c[1] * vx + s[1] * vy) / (p[L_1] * (s[1] * c[0] - c[1] * s[0]))
    w3 = (c[3] * vx + s[3] * vy) / (p[L_1] * (s[3] * c[2] - c[3] * s[2]))
    M, coriolis, J, bias = dynamics(p, c, s, w1, w3)
    ax, ay = ax - bias[0], ay - bias[1]
    det = J[0, 0] * J[1, 1] - J[0, 1] * J[1, 0]
    a1, a3 = (J[1, 1] * ax - J[0, 1] * ay) / det, (J[0, 0] * ay - J[1, 0] * ax) / det
    tau1 = M[0, 0] * a1 + M[0, 1] * a3 + coriolis[0]
    tau3 = M[1, 0] * a1 + M[1, 1] * a3 + coriolis[1]
    return q[0], q[2], w1, w3, tau1, tau3


@njit(cache=True, error_model="numpy")
def _tip_of(
    p: Array, q1: float, q3: float, w1: float, w3: float, side: float
) -> tuple[float, float, float, float]:
    """Return position and velocity of the tip for angles and rates of the motors."""
    f = solve_forward(p, q1, q3, side)
    c, s = np.array((f[0], f[2], f[4], f[6])), np.array((f[1], f[3], f[5], f[7]))
    J = dynamics(p, c, s, w1, w3)[2]
    return f[8], f[9], J[0, 0] * w1 + J[0, 1] * w3, J[1, 0] * w1 + J[1, 1] * w3
