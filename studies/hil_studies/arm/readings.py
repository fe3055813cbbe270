"""The pointing movement under four interpretations of the paper's actuation.

The paper prints gains (24), a viscosity, and two figures, but not what else acts. With e the errors
of the nine Bryant angles (or the rotation to the set point, in each link's frame), every pair's
torque is u = s (k e + 0.2 k e'), k = 10, 2, 1.2 N m/rad for shoulder, elbow and wrist: the diagonal
of (24). Its off-diagonal values -2 and -1.2 are the pair's reaction on the inner link. The reaction
is transformed into that link's frame; otherwise a joint would create angular momentum.

- gains: nothing else, s = 1. The arm falls
- gravity: plus torques that compensate the weight at the current attitude
- feedforward: plus the pairs' torques of the desired motion; the arm starts at rest although the
  motion does not, because otherwise there would be no error
- stiff: s = 100, nothing else

All but feedforward start with the rates of the motion.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy

from hil.errors import ModelError
from hil.mechanics.arrays import Array
from hil.mechanics.recursion import Recursion
from hil.mechanics.rotations import attitude, omega_to_rates, quaternion_of_attitude, rates_to_omega
from hil.systems.arm.links import Arm
from hil.systems.arm.pointing import ATTENTION, MOVEMENT_S, Motion, printed_motion

Actuation = Literal["gains", "gravity", "feedforward", "stiff"]
Errors = Literal["bryant", "attitude"]

GAINS_N_M_PER_RAD = np.array([10.0, 2.0, 1.2])
VISCOSITY_S = 0.2
STIFF = 100.0
TOLERANCE = 1e-8
SAMPLES = 2001


@dataclass(frozen=True)
class Tracking:
    """A simulated movement and its set point.

    Angles (n, 9), fingertips (n, 3), pairs' torques (n, 3, 3).
    """

    desired: Motion
    theta: Array
    tip_m: Array
    desired_tip_m: Array
    torque_N_m: Array

    @property
    def tip_error_mm(self) -> Array:
        miss: Array = 1e3 * np.linalg.norm(self.tip_m - self.desired_tip_m, axis=1)
        return miss

    @property
    def angle_error_deg(self) -> Array:
        """Errors of the four angles that move, (n, 4)."""
        miss: Array = np.rad2deg(self.theta - self.desired.theta)[:, ATTENTION]
        return miss


class Loop:
    """Closed loop of arm and muscles: derivatives of [Theta, Omega], 18 states."""

    def __init__(self, arm: Arm, actuation: Actuation, errors: Errors) -> None:
        self.arm, self.actuation, self.errors = arm, actuation, errors
        self.scale = STIFF if actuation == "stiff" else 1.0
        self.tree = Recursion(arm.bodies(), fixed=True)

    def start(self) -> Array:
        """Return the initial state, with the motion's rates or at rest."""
        motion = printed_motion(np.zeros(1))
        theta, rate = motion.theta[0].reshape(3, 3), motion.rate[0].reshape(3, 3)
        omega = np.einsum("kij,kj->ki", rates_to_omega(theta), rate)
        omega *= self.actuation != "feedforward"
        return np.concatenate((theta.ravel(), omega.ravel()))

    def torques(self, t_s: float, x: Array) -> Array:
        """Return the pairs' torques (3, 3), each in the outer link's frame."""
        theta, omega = x[:9].reshape(3, 3), x[9:].reshape(3, 3)
        rate = np.einsum("kij,kj->ki", omega_to_rates(theta), omega)
        motion = printed_motion(np.array([t_s]))
        goal, pace = motion.theta.reshape(3, 3), motion.rate.reshape(3, 3)
        e, e_rate = goal - theta, pace - rate
        if self.errors == "attitude":
            e = _turn_left(attitude(theta), attitude(goal))
            e_rate = np.einsum("kij,kj->ki", rates_to_omega(goal), pace) - omega
        u: Array = self.scale * GAINS_N_M_PER_RAD[:, None] * (e + VISCOSITY_S * e_rate)
        if self.actuation == "gravity":
            still = np.zeros(9)
            u = u + self.arm.pair_torques(x[:9], still, still)
        elif self.actuation == "feedforward":
            needed = self.arm.pair_torques(motion.theta, motion.rate, motion.acceleration)
            u = u + needed[0]
        return u

    def __call__(self, t_s: float, x: Array) -> Array:
        theta, omega = x[:9].reshape(3, 3), x[9:].reshape(3, 3)
        A, N = attitude(theta), self.torques(t_s, x)
        outer = np.einsum("kij,kj->ki", A, N)
        N[:2] -= np.einsum("kji,kj->ki", A[:2], outer[1:])
        self.tree.solve(A, omega, N, gravity=self.arm.gravity)
        rate = np.einsum("kij,kj->ki", omega_to_rates(theta), omega)
        return np.concatenate((rate.ravel(), self.tree.omega_rate.ravel()))


def track(
    arm: Arm, actuation: Actuation, errors: Errors = "bryant", tolerance: float = TOLERANCE
) -> Tracking:
    """Simulate the movement of two seconds with error control.

    Raises
    ------
    ModelError
        The integration failed.
    """
    loop = Loop(arm, actuation, errors)
    t_s = np.linspace(0.0, MOVEMENT_S, SAMPLES)
    solution = scipy.integrate.solve_ivp(
        loop, (0.0, MOVEMENT_S), loop.start(), method="LSODA", t_eval=t_s, rtol=tolerance,
        atol=tolerance,
    )  # fmt: skip
    if not solution.success or solution.y.shape[1] < SAMPLES:
        raise ModelError(f"the movement could not be integrated: {solution.message}")
    desired, x = printed_motion(t_s), solution.y.T
    return Tracking(
        desired, x[:, :9], arm.places_m(x[:, :9])[:, 2], arm.places_m(desired.theta)[:, 2],
        np.array([loop.torques(t, state) for t, state in zip(t_s, x, strict=True)]),
    )  # fmt: skip


def _turn_left(now: Array, goal: Array) -> Array:
    """Return the rotation vectors from `now` to `goal`, each in the frame of `now`; (3, 3)."""
    q = quaternion_of_attitude(np.swapaxes(now, -1, -2) @ goal)
    size = np.linalg.norm(q[:, 1:], axis=1)
    angle = 2.0 * np.arctan2(size, q[:, 0])
    turn: Array = q[:, 1:] * np.where(size > 1e-12, angle / np.maximum(size, 1e-12), 2.0)[:, None]
    return turn
