"""Compiled part of `hil.systems.arm.system`: torques of muscles, a Runge-Kutta step, outputs.

`muscles` holds torques and viscosities of the pairs (9,), slopes dl/dpitch of the tendons (m, 3),
and their F, k, b (m, 3). `body` holds parents and geometry of the recursion, and gravity.
"""

import numpy as np

from hil.compiled import njit
from hil.mechanics.recursion import accelerations
from hil.mechanics.rotations_kernel import attitudes, quaternion_rates


@njit(cache=True, error_model="numpy")
def torques(A, omega, activations, torque_max, viscosity, arms, tendons, N):  # type: ignore[no-untyped-def]
    """Compute torques (3, 3) on the links, each in its own frame.

    The inputs are activations (18 + m), then gammas (m). A pair's torque
    (`actuators.pair_torque`) acts on the joint's outer link; its reaction, transformed, acts on the
    inner link. A tendon's torque about the pitch axis of a link has the direction (0, sin, cos of
    the yaw, rotated) in the link's frame: the second row of B, which is bounded at all attitudes.
    """
    for i in range(3):
        for k in range(3):
            N[i, k] = 0.0
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
def _rates(q, omega, activations, muscles, body, room, q_rate, omega_rate):  # type: ignore[no-untyped-def]
    """Compute derivatives of quaternions and angular velocities."""
    torque_max, viscosity, arms, tendons = muscles
    parent, geo, gravity = body
    A, N, none, V_rate, Gamma, scratch = room
    attitudes(q, A)
    torques(A, omega, activations, torque_max, viscosity, arms, tendons, N)
    accelerations(
        parent, geo, True, A, omega, N, none, gravity, (0.0, 0.0, 0.0), scratch, V_rate, omega_rate,
        Gamma,
    )  # fmt: skip
    quaternion_rates(q, omega, q_rate)


@njit(cache=True, error_model="numpy")
def advance(q, omega, activations, muscles, body, h, n, q_room, w_room, room):  # type: ignore[no-untyped-def]
    """Take n steps of length h with the fourth-order Runge-Kutta method."""
    q_was, q_now, q_rate, q_sum = q_room
    w_was, w_now, w_rate, w_sum = w_room
    for _ in range(n):
        q_was[:], w_was[:], q_now[:], w_now[:] = q, omega, q, omega
        q_sum[:], w_sum[:] = 0.0, 0.0
        for stage in range(4):
            _rates(q_now, w_now, activations, muscles, body, room, q_rate, w_rate)
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
def look(q, lengths, y):  # type: ignore[no-untyped-def]
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
