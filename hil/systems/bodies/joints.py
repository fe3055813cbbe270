"""Joints with passive structures and with pairs of muscles that stiffen them by co-activation.

With phi the rotation vector (axis times angle) of the upper body relative to the lower one, from
the joint's rest, and Omega_r the relative angular velocity, in the upper body's frame::

    torque on the upper body = u - G^T K phi - D Omega_r,   K = k diag(1, 1, twist), D = d diag(...)
    k = k_p + c k_a,   d = d_p + tau c k_a

with phi' = G Omega_r, so that the spring energy is exactly phi^T K phi / 2 (for twist = 1,
G^T K phi = k phi). The opposite torque, in the lower body's own frame, acts on the lower body. k_p
and d_p are passive. A pair of muscles with co-activation c >= 0, which pull against each other,
adds no torque at rest but stiffness c k_a and viscosity tau c k_a: co-activation is feedback of
position and velocity. u is the torque from the difference of the pair. A point that stands on the
ground has such a joint with the ground (the paper's toes without mass).

Muscles pull and cannot push. A pair of given strength t about each axis, with activations a+ and a-
and the pair's part h of G^T K phi + D Omega_r about it, has the torque::

    [t a+ - h/2]_+ - [t a- + h/2]_+ = t (a+ - a-) - h   while neither is slack

so that it holds at most t. Without a strength the pair is never slack.

Source: Hemami & Hemami, sections 4 and 5, appendix B (viscosity in proportion to the gain).
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hil.compiled import njit
from hil.errors import ModelError
from hil.mechanics.arrays import Array, Indices, Records, record_type

HOLD = record_type("k_p", "d_p", "k_a", "tau", "twist", "strength")
"""`Hold` as kernels take it."""


@dataclass(frozen=True)
class Hold:
    """Passive stiffness and viscosity, and stiffness per unit of co-activation.

    `twist` scales all of them about the long axis (z), about which links have little inertia.
    `strength_N_m` is the torque of one fully activated muscle; 0: pairs are never slack.
    """

    passive_N_m_per_rad: float = 0.0
    passive_N_m_s_per_rad: float = 0.0
    active_N_m_per_rad: float = 0.0
    viscosity_s: float = 0.0
    twist: float = 1.0
    strength_N_m: float = 0.0

    def values(self) -> tuple[float, ...]:
        """Return the numbers of a record of HOLD.

        Raises
        ------
        ModelError
            A value is below zero.
        """
        values = (
            self.passive_N_m_per_rad, self.passive_N_m_s_per_rad, self.active_N_m_per_rad,
            self.viscosity_s, self.twist, self.strength_N_m,
        )  # fmt: skip
        if not all(np.isfinite(value) and value >= 0.0 for value in values):
            raise ModelError(f"joint {values}: stiffness and viscosity must not be below zero")
        return values


@njit(cache=True, error_model="numpy")
def rotation_vector(R, phi):  # type: ignore[no-untyped-def]
    """Write the rotation vector of R, angle in [0, pi), into `phi`."""
    x, y, z = R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]
    sine = 0.5 * np.sqrt(x * x + y * y + z * z)
    cosine = 0.5 * (R[0, 0] + R[1, 1] + R[2, 2] - 1.0)
    angle = np.arctan2(sine, cosine)
    # angle / (2 sin angle); its limit at 0 is 1/2
    scale = 0.5 if sine < 1e-8 else 0.5 * angle / sine
    phi[0], phi[1], phi[2] = scale * x, scale * y, scale * z


@njit(cache=True, error_model="numpy")
def dual(phi, v):  # type: ignore[no-untyped-def]
    """G^T v into v: v - phi x v / 2 + g phi x (phi x v)."""
    size = phi[0] ** 2 + phi[1] ** 2 + phi[2] ** 2
    angle = np.sqrt(size)
    # g = 1/angle^2 - (1 + cos) / (2 angle sin); its limit at 0 is 1/12
    if angle < 1e-3:
        g = 1.0 / 12.0
    else:
        g = 1.0 / size - (1.0 + np.cos(angle)) / (2.0 * angle * np.sin(angle))
    x0 = phi[1] * v[2] - phi[2] * v[1]
    x1 = phi[2] * v[0] - phi[0] * v[2]
    x2 = phi[0] * v[1] - phi[1] * v[0]
    v[0] += -0.5 * x0 + g * (phi[1] * x2 - phi[2] * x1)
    v[1] += -0.5 * x1 + g * (phi[2] * x0 - phi[0] * x2)
    v[2] += -0.5 * x2 + g * (phi[0] * x1 - phi[1] * x0)


class Joints(NamedTuple):
    """The joints of a body, and what acts in them now.

    Attributes
    ----------
    lower, upper : (k,) bodies; -1 is the ground
    holds : (k,) of HOLD
    rest : (k, 3, 3) relative attitude A_lower^T A_upper at rest
    closed : (k,) joints that act (a foot's joint only while it stands)
    u : (k, 3) torques on the upper body, in its frame; c : (k,) co-activation
    a : (k, 3, 2) activations a+ and a- of the pairs that have a strength
    """

    lower: Indices
    upper: Indices
    holds: Records
    rest: Array
    closed: NDArray[np.bool_]
    u: Array
    c: Array
    a: Array


@njit(cache=True, error_model="numpy")
def joint_torques(joints: Joints, A: Array, omega: Array, N: Array) -> None:
    """Add the torques of all joints to N (n, 3), each body's in its own frame."""
    lower, upper, holds, rest, closed, u, c, a = joints
    R, E = np.empty((3, 3)), np.empty((3, 3))
    phi, pull = np.empty(3), np.empty(3)
    for k in range(len(lower)):
        if not closed[k]:
            continue
        lo, up = lower[k], upper[k]
        for i in range(3):
            for j in range(3):
                if lo < 0:
                    R[i, j] = A[up, i, j]
                else:
                    R[i, j] = 0.0
                    for m in range(3):
                        R[i, j] += A[lo, m, i] * A[up, m, j]
        for i in range(3):
            for j in range(3):
                E[i, j] = 0.0
                for m in range(3):
                    E[i, j] += rest[k, m, i] * R[m, j]
        rotation_vector(E, phi)
        hold = holds[k]
        by_pair = c[k] * hold.k_a
        stiffness, viscosity = hold.k_p + by_pair, hold.d_p + hold.tau * by_pair
        twist, strength = hold.twist, hold.strength
        springs = by_pair / stiffness if stiffness > 0.0 else 0.0
        drags = hold.tau * by_pair / viscosity if viscosity > 0.0 else 0.0
        pull[0], pull[1] = stiffness * phi[0], stiffness * phi[1]
        pull[2] = twist * stiffness * phi[2]
        dual(phi, pull)
        for i in range(3):
            relative = omega[up, i]
            if lo >= 0:
                for m in range(3):
                    relative -= R[m, i] * omega[lo, m]
            drag = (twist if i == 2 else 1.0) * viscosity * relative
            held = pull[i] + drag
            muscles = 0.0
            if strength > 0.0:
                half = 0.5 * (springs * pull[i] + drags * drag)
                muscles = max(strength * a[k, i, 0] - half, 0.0)
                muscles -= max(strength * a[k, i, 1] + half, 0.0)
                held -= 2.0 * half
            pull[i] = u[k, i] + muscles - held
        for i in range(3):
            N[up, i] += pull[i]
            if lo >= 0:
                for m in range(3):
                    N[lo, i] -= R[i, m] * pull[m]
