"""Attitudes: Bryant angles, rotation matrices and quaternions.

A = Rx(t1) Ry(t2) Rz(t3) transforms vectors from the body's frame to the inertial frame. Omega (in
the body's frame) and the rates of the angles are related by::

    Theta' = B Omega,   B^-1 = [[c2 c3, s3, 0], [-c2 s3, c3, 0], [s2, 0, 1]]

B^-1 is singular, and B does not exist, where cos t2 = 0. A quaternion q = [w, x, y, z] has no
singularity: q' = q * [0, Omega] / 2. Every function accepts any number of leading axes.

Source: Hemami & Hemami, eqs (3), (15), which determines the order of rotations. The paper says
that B is singular at t2 = pi/2; in fact B^-1 is singular and B is infinite there.
"""

import numpy as np
from numpy.typing import ArrayLike

from hil.mechanics.arrays import Array


def skew(w: ArrayLike) -> Array:
    """Return the cross-product matrix, skew(w) v = w x v; (..., 3) -> (..., 3, 3)."""
    w = np.asarray(w, dtype=float)
    zero = np.zeros(w.shape[:-1])
    x, y, z = w[..., 0], w[..., 1], w[..., 2]
    return _matrix(((zero, -z, y), (z, zero, -x), (-y, x, zero)))


def attitude(theta: ArrayLike) -> Array:
    """A = Rx(t1) Ry(t2) Rz(t3) of Bryant angles in rad; (..., 3) -> (..., 3, 3)."""
    s1, s2, s3, c1, c2, c3 = _sines(theta)
    return _matrix(
        (
            (c2 * c3, -c2 * s3, s2),
            (c1 * s3 + s1 * s2 * c3, c1 * c3 - s1 * s2 * s3, -s1 * c2),
            (s1 * s3 - c1 * s2 * c3, s1 * c3 + c1 * s2 * s3, c1 * c2),
        )
    )


def angles(A: ArrayLike) -> Array:
    """Return the Bryant angles of A, t2 in [-pi/2, pi/2]; (..., 3, 3) -> (..., 3).

    At t2 = +-pi/2 only t1 + t3 (t1 - t3) is defined; t1 is then set to 0.
    """
    A = np.asarray(A, dtype=float)
    c2 = np.hypot(A[..., 0, 0], A[..., 0, 1])
    t2 = np.arctan2(A[..., 0, 2], c2)
    t1 = np.where(c2 > 1e-9, np.arctan2(-A[..., 1, 2], A[..., 2, 2]), 0.0)
    s1, c1 = np.sin(t1), np.cos(t1)
    # Second row of Rx(-t1) A: [s3, c3, 0].
    t3 = np.arctan2(c1 * A[..., 1, 0] + s1 * A[..., 2, 0], c1 * A[..., 1, 1] + s1 * A[..., 2, 1])
    return np.stack((t1, t2, t3), axis=-1)


def rates_to_omega(theta: ArrayLike) -> Array:
    """B^-1 in Omega = B^-1 Theta'; (..., 3) -> (..., 3, 3)."""
    _, s2, s3, _, c2, c3 = _sines(theta)
    zero, one = np.zeros_like(s2), np.ones_like(s2)
    return _matrix(((c2 * c3, s3, zero), (-c2 * s3, c3, zero), (s2, zero, one)))


def omega_to_rates(theta: ArrayLike) -> Array:
    """B in Theta' = B Omega; (..., 3) -> (..., 3, 3). Infinite where cos t2 = 0."""
    _, s2, s3, _, c2, c3 = _sines(theta)
    zero, one = np.zeros_like(s2), np.ones_like(s2)
    return _matrix(((c3 / c2, -s3 / c2, zero), (s3, c3, zero), (-s2 * c3 / c2, s2 * s3 / c2, one)))


def rates_to_omega_rate(theta: ArrayLike, theta_rate: ArrayLike) -> Array:
    """d(B^-1)/dt for these angle rates; (..., 3) -> (..., 3, 3)."""
    _, s2, s3, _, c2, c3 = _sines(theta)
    d2, d3 = np.moveaxis(np.asarray(theta_rate, dtype=float), -1, 0)[1:]
    zero = np.zeros_like(s2)
    return _matrix(
        (
            (-s2 * c3 * d2 - c2 * s3 * d3, c3 * d3, zero),
            (s2 * s3 * d2 - c2 * c3 * d3, -s3 * d3, zero),
            (c2 * d2, zero, zero),
        )
    )


def omega_to_rates_slopes(theta: ArrayLike) -> Array:
    """dB/dTheta_k, (..., 3) -> (..., 3, 3, 3); k is the first of the last three axes."""
    _, s2, s3, _, c2, c3 = _sines(theta)
    zero = np.zeros_like(s2)
    t2, u2 = s2 / c2, 1.0 / c2**2  # d(1/c2) = s2/c2^2, d(s2/c2) = 1/c2^2
    by_1 = _matrix(((zero,) * 3,) * 3)
    by_2 = _matrix(((c3 * t2 / c2, -s3 * t2 / c2, zero), (zero,) * 3, (-c3 * u2, s3 * u2, zero)))
    by_3 = _matrix(((-s3 / c2, -c3 / c2, zero), (c3, -s3, zero), (t2 * s3, t2 * c3, zero)))
    return np.stack((by_1, by_2, by_3), axis=-3)


def quaternion(theta: ArrayLike) -> Array:
    """The quaternion qx(t1) qy(t2) qz(t3), [w, x, y, z]; (..., 3) -> (..., 4)."""
    s1, s2, s3, c1, c2, c3 = _sines(0.5 * np.asarray(theta, dtype=float))
    return np.stack(
        (
            c1 * c2 * c3 - s1 * s2 * s3,
            s1 * c2 * c3 + c1 * s2 * s3,
            c1 * s2 * c3 - s1 * c2 * s3,
            c1 * c2 * s3 + s1 * s2 * c3,
        ),
        axis=-1,
    )


def attitude_of_quaternion(q: ArrayLike) -> Array:
    """Return A of a quaternion, which need not have unit length; (..., 4) -> (..., 3, 3)."""
    q = np.asarray(q, dtype=float)
    w, x, y, z = np.moveaxis(q, -1, 0)
    k = 2.0 / (w * w + x * x + y * y + z * z)
    return _matrix(
        (
            (1.0 - k * (y * y + z * z), k * (x * y - w * z), k * (x * z + w * y)),
            (k * (x * y + w * z), 1.0 - k * (x * x + z * z), k * (y * z - w * x)),
            (k * (x * z - w * y), k * (y * z + w * x), 1.0 - k * (x * x + y * y)),
        )
    )


def quaternion_rate(q: ArrayLike, omega: ArrayLike) -> Array:
    """Return the rate q * [0, Omega] / 2 of a quaternion; (..., 4) and (..., 3) -> (..., 4)."""
    w, x, y, z = np.moveaxis(np.asarray(q, dtype=float), -1, 0)
    p, r, s = np.moveaxis(np.asarray(omega, dtype=float), -1, 0)
    return 0.5 * np.stack(
        (
            -x * p - y * r - z * s,
            w * p + y * s - z * r,
            w * r + z * p - x * s,
            w * s + x * r - y * p,
        ),
        axis=-1,
    )


def quaternion_of_attitude(A: ArrayLike) -> Array:
    """Return the quaternion of A with w >= 0, from its largest component; (..., 4)."""
    A = np.asarray(A, dtype=float)
    d = np.einsum("...ii->...i", A)
    trace = d.sum(axis=-1)
    squares = np.concatenate((1.0 + trace[..., None], 1.0 - trace[..., None] + 2.0 * d), axis=-1)
    a, b, c = A[..., 2, 1], A[..., 0, 2], A[..., 1, 0]
    e, f, g = A[..., 1, 2], A[..., 2, 0], A[..., 0, 1]
    t = np.moveaxis(squares, -1, 0)
    # Row k: 4 q_k times the quaternion.
    rows = _matrix(
        (
            (t[0], a - e, b - f, c - g),
            (a - e, t[1], g + c, b + f),
            (b - f, g + c, t[2], a + e),
            (c - g, b + f, a + e, t[3]),
        )
    )
    best = np.argmax(squares, axis=-1)[..., None, None]
    q = np.take_along_axis(rows, best, axis=-2)[..., 0, :]
    q = q / np.linalg.norm(q, axis=-1, keepdims=True)
    positive: Array = np.where(q[..., :1] < 0.0, -q, q)
    return positive


def _sines(theta: ArrayLike) -> tuple[Array, Array, Array, Array, Array, Array]:
    t = np.asarray(theta, dtype=float)
    s, c = np.sin(t), np.cos(t)
    return s[..., 0], s[..., 1], s[..., 2], c[..., 0], c[..., 1], c[..., 2]


def _matrix(rows: tuple[tuple[Array, ...], ...]) -> Array:
    # np.stack takes ten times as long for one matrix
    matrix = np.empty((*np.shape(rows[0][0]), len(rows), len(rows[0])))
    for i, row in enumerate(rows):
        for k, entry in enumerate(row):
            matrix[..., i, k] = entry
    return matrix
