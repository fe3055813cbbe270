"""Compiled versions of functions in `hil.mechanics.rotations`: attitudes, quaternion rates."""

from hil.compiled import njit


@njit(cache=True, error_model="numpy")
def attitudes(q, A):  # type: ignore[no-untyped-def]
    """`attitude_of_quaternion`: q (n, 4) -> A (n, 3, 3)."""
    for i in range(len(q)):
        w, x, y, z = q[i, 0], q[i, 1], q[i, 2], q[i, 3]
        k = 2.0 / (w * w + x * x + y * y + z * z)
        A[i, 0, 0], A[i, 0, 1], A[i, 0, 2] = (
            1.0 - k * (y * y + z * z), k * (x * y - w * z), k * (x * z + w * y))  # fmt: skip
        A[i, 1, 0], A[i, 1, 1], A[i, 1, 2] = (
            k * (x * y + w * z), 1.0 - k * (x * x + z * z), k * (y * z - w * x))  # fmt: skip
        A[i, 2, 0], A[i, 2, 1], A[i, 2, 2] = (
            k * (x * z - w * y), k * (y * z + w * x), 1.0 - k * (x * x + y * y))  # fmt: skip


@njit(cache=True, error_model="numpy")
def quaternion_rates(q, omega, q_rate):  # type: ignore[no-untyped-def]
    """`quaternion_rate`: q (n, 4), omega (n, 3) -> q_rate (n, 4)."""
    for i in range(len(q)):
        w, x, y, z = q[i, 0], q[i, 1], q[i, 2], q[i, 3]
        p, r, s = omega[i, 0], omega[i, 1], omega[i, 2]
        q_rate[i, 0] = 0.5 * (-x * p - y * r - z * s)
        q_rate[i, 1] = 0.5 * (w * p + y * s - z * r)
        q_rate[i, 2] = 0.5 * (w * r + z * p - x * s)
        q_rate[i, 3] = 0.5 * (w * s + x * r - y * p)
