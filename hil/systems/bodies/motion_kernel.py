"""Compiled part of `hil.systems.bodies.motion`: derivative of the state, and a Runge-Kutta step.

The state is x = [X_a, V_a, q (4 n), Omega (3 n)], bodies in the order of the tree.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hil.compiled import njit, put
from hil.mechanics.arrays import Array, Indices, Vector
from hil.mechanics.recursion import Loads, Rates, Tree, accelerations
from hil.mechanics.rotations_kernel import attitudes, quaternion_rates
from hil.systems.bodies.joints import Joints, joint_torques

LEAST_SHARE = 1e-10  # of the largest eigenvalue; smaller ones belong to dependent supports
BETA_PER_S = 50.0  # assumed; far below the rate of steps, far above the rates of a body
LOST = 0.5  # largest change of a quaternion's squared norm in a step


class Bodies(NamedTuple):
    """The tree of bodies (`hil.mechanics.recursion`), and forces on them."""

    parent: Indices
    geo: Array
    push: Array
    gravity: Array


class Ground(NamedTuple):
    """Supports, of bodies `feet` at `r`: which stand, where, and on which force."""

    feet: Indices
    r: Array
    stands: NDArray[np.bool_]
    anchor: Array
    support_N: Array


class Scratch(NamedTuple):
    """Arrays of the four stages, of the recursion, and of forces."""

    k: Array
    w: Array
    three: Array


@njit(cache=True, error_model="numpy")
def _cross(a, b, out):  # type: ignore[no-untyped-def]
    out[0] = a[1] * b[2] - a[2] * b[1]
    out[1] = a[2] * b[0] - a[0] * b[2]
    out[2] = a[0] * b[1] - a[1] * b[0]


@njit(cache=True, error_model="numpy")
def _least_norm(L, free):  # type: ignore[no-untyped-def]
    """Solve L f = free with symmetric L; where L is singular, f has the least norm."""
    values, vectors = np.linalg.eigh(L)
    f = np.zeros(len(free))
    for i in range(len(values)):
        if values[i] > LEAST_SHARE * values[-1]:
            f += vectors[:, i] * ((vectors[:, i] @ free) / values[i])
    return f


@njit(cache=True, error_model="numpy")
def rates(
    x: Array, dx: Array, bodies: Bodies, joints: Joints, ground: Ground, scratch: Scratch
) -> None:
    """Compute the derivative of the state; fill support_N."""
    parent, geo, gravity = bodies.parent, bodies.geo, bodies.gravity
    feet, r, stands, anchor, support_N = ground
    w, three = scratch.w, scratch.three
    n, m = len(parent), len(feet)
    q, omega = x[6 : 6 + 4 * n].reshape(n, 4), x[6 + 4 * n :].reshape(n, 3)
    dq, domega = dx[6 : 6 + 4 * n].reshape(n, 4), dx[6 + 4 * n :].reshape(n, 3)
    A = np.empty((n, 3, 3))
    attitudes(q, A)
    N, F, V_rate, omega_rate, Gamma = three[0], three[1], three[2], three[3], three[4]
    joint, speed, N0, F0 = three[5], three[6], three[7], three[8]
    N0[:] = 0.0
    put(bodies.push, F0)
    joint_torques(joints, A, omega, N0)
    rest_a = (0.0, 0.0, 0.0)
    support_N[:] = 0.0
    k = 3 * np.sum(stands)
    at, spin, lever, z = np.empty(3), np.empty(3), np.empty(3), np.empty(3)
    free, L, on = np.empty(k), np.empty((k, k)), np.empty(k // 3, dtype=np.int64)
    j = 0
    for s in range(m):
        if stands[s]:
            on[j] = s
            j += 1
    still = np.zeros((n, 3))
    # First without the ground, then with unit forces on each axis of each support, then with the
    # forces found. A single call site keeps the recursion from being compiled several times.
    for turn in range(k + 2 if k > 0 else 1):
        unit = turn - 1
        whole = turn == 0 or unit == k
        g = (gravity[0], gravity[1], gravity[2]) if whole else (0.0, 0.0, 0.0)
        if whole:
            put(N0, N)
            put(F0, F)
        else:
            N[:] = 0.0
            F[:] = 0.0
            free_axis = unit % 3
            axis = (
                1.0 if free_axis == 0 else 0.0, 1.0 if free_axis == 1 else 0.0,
                1.0 if free_axis == 2 else 0.0,
            )  # fmt: skip
            _push(A, N, F, feet[on[unit // 3]], r[on[unit // 3]], axis)
        if unit == k:
            f = _least_norm(L, free)
            for i in range(k // 3):
                s = on[i]
                for a in range(3):
                    support_N[s, a] = f[3 * i + a]
                _push(A, N, F, feet[s], r[s], (f[3 * i], f[3 * i + 1], f[3 * i + 2]))
        moving = omega if whole else still
        loads, results = Loads(N, F, g, rest_a), Rates(w, V_rate, omega_rate, Gamma)
        accelerations(Tree(parent, geo, False), A, moving, loads, results)
        if turn == 0 and k > 0:
            # Positions and velocities of the joints, from the root outwards: w holds omega, c, d.
            for i in range(n):
                p = parent[i]
                if p >= 0:
                    _cross(w[p, 0:3], w[i, 6:9], spin)
                for a in range(3):
                    if p < 0:
                        joint[i, a], speed[i, a] = x[a], x[3 + a]
                    else:
                        joint[i, a] = joint[p, a] + w[i, 6 + a]
                        speed[i, a] = speed[p, a] + spin[a]
            for i in range(k // 3):
                s, b = on[i], feet[on[i]]
                for a in range(3):
                    at[a] = A[b, a, 0] * r[s, 0] + A[b, a, 1] * r[s, 1] + A[b, a, 2] * r[s, 2]
                    lever[a] = w[b, 3 + a] + at[a]  # from the joint
                _point_rate(A, omega, V_rate, omega_rate, (b, r[s]), z)
                _cross(w[b, 0:3], lever, spin)
                for a in range(3):
                    displaced = joint[b, a] + lever[a] - anchor[s, a]
                    slide = speed[b, a] + spin[a]
                    free[3 * i + a] = -(z[a] + 2.0 * BETA_PER_S * slide + BETA_PER_S**2 * displaced)
        elif not whole:
            for i in range(k // 3):
                _point_rate(A, still, V_rate, omega_rate, (feet[on[i]], r[on[i]]), z)
                for a in range(3):
                    L[3 * i + a, unit] = z[a]
    for a in range(3):
        dx[a] = x[3 + a]
        dx[3 + a] = V_rate[0, a]
    quaternion_rates(q, omega, dq)
    for i in range(n):
        for a in range(3):
            domega[i, a] = omega_rate[i, a]


@njit(cache=True, error_model="numpy")
def _push(A: Array, N: Array, F: Array, b: int, r: Array, f: Vector) -> None:
    """Add a force at a body's point: as a force at its centre of mass, and a torque r x A^T f."""
    arm, torque = np.empty(3), np.empty(3)
    for a in range(3):
        F[b, a] += f[a]
        arm[a] = A[b, 0, a] * f[0] + A[b, 1, a] * f[1] + A[b, 2, a] * f[2]
    _cross(r, arm, torque)
    for a in range(3):
        N[b, a] += torque[a]


@njit(cache=True, error_model="numpy")
def _point_rate(A, omega, V_rate, omega_rate, point, out):  # type: ignore[no-untyped-def]
    """Write the acceleration of a body's point: V' + A (Omega' x r + Omega x (Omega x r))."""
    b, r = point
    to_own, inner, outer = np.empty(3), np.empty(3), np.empty(3)
    _cross(omega_rate[b], r, to_own)
    _cross(omega[b], r, inner)
    _cross(omega[b], inner, outer)
    for a in range(3):
        out[a] = V_rate[b, a]
        for e in range(3):
            out[a] += A[b, a, e] * (to_own[e] + outer[e])


@njit(cache=True, error_model="numpy")
def runge_kutta(
    h: float, x: Array, bodies: Bodies, joints: Joints, ground: Ground, scratch: Scratch
) -> bool:
    """Take one step; return False if it diverged. support_N holds the values at its start."""
    n, k, support_N = len(bodies.parent), scratch.k, ground.support_N
    y, first = np.empty(len(x)), np.empty_like(support_N)
    for stage in range(4):
        ahead = 0.0 if stage == 0 else (h if stage == 3 else 0.5 * h)
        for i in range(len(x)):
            y[i] = x[i] + (ahead * k[stage - 1, i] if stage > 0 else 0.0)
        rates(y, k[stage], bodies, joints, ground, scratch)
        if stage == 0:
            put(support_N, first)
    put(first, support_N)
    for i in range(len(x)):
        x[i] += h / 6.0 * (k[0, i] + 2.0 * k[1, i] + 2.0 * k[2, i] + k[3, i])
    for i in range(n):
        size = 0.0
        for a in range(4):
            size += x[6 + 4 * i + a] ** 2
        if not abs(size - 1.0) < LOST:
            return False
        size = np.sqrt(size)
        for a in range(4):
            x[6 + 4 * i + a] /= size
    return True
