"""Compiled part of `hil.systems.arm.system`: torques of muscles, a Runge-Kutta step, outputs."""

from typing import NamedTuple

import numpy as np

from hil.compiled import njit, put
from hil.mechanics.arrays import Array, Indices
from hil.mechanics.recursion import Loads, Rates, Tree, accelerations
from hil.mechanics.rotations_kernel import attitudes, quaternion_rates


class Muscles(NamedTuple):
    """Torques and viscosities of the pairs (9,); of the tendons dl/dpitch, and F, k, b (m, 3)."""

    torque_max: Array
    viscosity: Array
    arms: Array
    tendons: Array


class Links(NamedTuple):
    """Muscles; parents and geometry of the recursion, and gravity; scratch arrays."""

    muscles: Muscles
    parent: Indices
    geo: Array
    gravity: tuple[float, float, float]
    A: Array
    N: Array
    none: Array
    V_rate: Array
    Gamma: Array
    scratch: Array
    q: tuple[Array, Array, Array, Array]  # at the start of a step, now, its rate, the sum
    omega: tuple[Array, Array, Array, Array]


@njit(cache=True, error_model="numpy")
def torques(A: Array, omega: Array, activations: Array, muscles: Muscles, N: Array) -> None:
    """Compute torques (3, 3) on the links, each in its own frame.

    The inputs are activations (18 + m), then gammas (m). A pair's torque
    (`actuators.pair_torque`) acts on the joint's outer link; its reaction, transformed, acts on the
    inner link. A tendon's torque about the pitch axis of a link has the direction (0, sin, cos of
    the yaw, rotated) in the link's frame: the second row of B, which is bounded at all attitudes.
    """
    torque_max, viscosity, arms, tendons = muscles
    N[:] = 0.0
    for i in range(3):
        for k in range(3):
            spin = omega[i, k]
            if i > 0:  # angular velocity of the inner link, in the outer link's frame
                for r in range(3):
                    turned = 0.0
                    for c in range(3):
                        turned += A[i - 1, r, c] * omega[i - 1, c]
                    spin -= A[i, r, k] * turned
            j = 3 * i + k
            half = 0.5 * viscosity[j] * spin
            up = max(torque_max[j] * activations[2 * j] - half, 0.0)
            tau = up - max(torque_max[j] * activations[2 * j + 1] + half, 0.0)
            N[i, k] += tau
            if i > 0:
                for c in range(3):
                    share = 0.0
                    for r in range(3):
                        share += A[i - 1, r, c] * A[i, r, k]
                    N[i - 1, c] -= share * tau
    for m in range(len(arms)):
        stretch, rate = 0.0, 0.0
        for i in range(3):
            c2 = np.hypot(A[i, 0, 0], A[i, 0, 1])
            s3, c3 = (-A[i, 0, 1] / c2, A[i, 0, 0] / c2) if c2 > 1e-9 else (0.0, 1.0)
            stretch += arms[m, i] * np.arctan2(A[i, 0, 2], c2)
            rate += arms[m, i] * (s3 * omega[i, 0] + c3 * omega[i, 1])
        over = stretch - activations[18 + len(arms) + m]  # Muscle.tension_N
        pull = tendons[m, 0] * activations[18 + m] + tendons[m, 1] * over + tendons[m, 2] * rate
        tension = max(pull, 0.0)
        for i in range(3):
            c2 = np.hypot(A[i, 0, 0], A[i, 0, 1])
            s3, c3 = (-A[i, 0, 1] / c2, A[i, 0, 0] / c2) if c2 > 1e-9 else (0.0, 1.0)
            N[i, 0] -= arms[m, i] * tension * s3
            N[i, 1] -= arms[m, i] * tension * c3


@njit(cache=True, error_model="numpy")
def _rates(
    q: Array, omega: Array, activations: Array, links: Links, q_rate: Array, omega_rate: Array
) -> None:
    """Compute derivatives of quaternions and angular velocities."""
    s = links
    attitudes(q, s.A)
    torques(s.A, omega, activations, s.muscles, s.N)
    loads = Loads(s.N, s.none, s.gravity, (0.0, 0.0, 0.0))
    rates = Rates(s.scratch, s.V_rate, omega_rate, s.Gamma)
    accelerations(Tree(s.parent, s.geo, True), s.A, omega, loads, rates)
    quaternion_rates(q, omega, q_rate)


@njit(cache=True, error_model="numpy")
def advance(q: Array, omega: Array, activations: Array, links: Links, h: float, n: int) -> None:
    """Take n steps of length h with the fourth-order Runge-Kutta method."""
    q_was, q_now, q_rate, q_sum = links.q
    w_was, w_now, w_rate, w_sum = links.omega
    for _ in range(n):
        for of, was, now in ((q, q_was, q_now), (omega, w_was, w_now)):
            put(of, was)
            put(of, now)
        q_sum[:], w_sum[:] = 0.0, 0.0
        for stage in range(4):
            _rates(q_now, w_now, activations, links, q_rate, w_rate)
            weight = h / 6.0 if stage in (0, 3) else h / 3.0
            ahead = h if stage == 2 else 0.5 * h
            for i in range(3):
                for k in range(4):
                    q_sum[i, k] += weight * q_rate[i, k]
                    q_now[i, k] = q_was[i, k] + ahead * q_rate[i, k]
                for k in range(3):
                    w_sum[i, k] += weight * w_rate[i, k]
                    w_now[i, k] = w_was[i, k] + ahead * w_rate[i, k]
        for i in range(3):
            size = 0.0
            for k in range(4):
                q[i, k] = q_was[i, k] + q_sum[i, k]
                size += q[i, k] * q[i, k]
            for k in range(4):
                q[i, k] /= np.sqrt(size)
            for k in range(3):
                omega[i, k] = w_was[i, k] + w_sum[i, k]


@njit(cache=True, error_model="numpy")
def look(q: Array, lengths: Array, y: Array) -> None:
    """Compute Bryant angles and positions from (3, 4) quaternions."""
    place = (0.0, 0.0, 0.0)
    for i in range(3):
        w, a, b, c = q[i, 0], q[i, 1], q[i, 2], q[i, 3]
        xx, xy, xz = 1.0 - 2.0 * (b * b + c * c), 2.0 * (a * b - w * c), 2.0 * (a * c + w * b)
        yx, zx = 2.0 * (a * b + w * c), 2.0 * (a * c - w * b)
        yz, zz = 2.0 * (b * c - w * a), 1.0 - 2.0 * (a * a + b * b)
        yy, zy = 1.0 - 2.0 * (a * a + c * c), 2.0 * (b * c + w * a)
        c2 = np.hypot(xx, xy)
        t1 = np.arctan2(-yz, zz) if c2 > 1e-9 else 0.0
        s1, c1 = np.sin(t1), np.cos(t1)
        y[3 * i] = t1
        y[3 * i + 1] = np.arctan2(xz, c2)
        y[3 * i + 2] = np.arctan2(c1 * yx + s1 * zx, c1 * yy + s1 * zy)
        place = (
            place[0] + lengths[i] * xx, place[1] + lengths[i] * yx, place[2] + lengths[i] * zx
        )  # fmt: skip
        for k in range(3):
            y[9 + 3 * i + k] = place[k]
