"""Impulsive (inert) constraints: how much kinetic energy a sudden change of topology removes.

The constraint A q'+ = 0 is imposed suddenly on M(q), q'-. The tangent space splits, orthogonally
with respect to M, into the constrained and the admissible directions::

    P_c = M^-1 A^T (A M^-1 A^T)^-1 A,   P_a = I - P_c
    v_c = P_c q',  v_a = P_a q',  T = T_c + T_a
    lambda = -(A M^-1 A^T)^-1 A q'-,    q'+ = P_a q'-,    xi = T_c / T

An ideal constraint removes all of T_c and leaves T_a unchanged. No inverse is computed: with
M = L L^T and the QR factors of L^-1 A^T = Q R, y = Q^T L^T q'-, R lambda = -y and T_c = y.y / 2.

Source: Font-Llagunes & Koevecses, "Analytical and Experimental Studies of the Dynamics of Variable
Topology Systems", eqs (3)-(22).
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hil.compiled import njit
from hil.errors import ModelError
from hil.mechanics.arrays import Array

# A pivot or row below this fraction of its own size counts as zero; laws hold to 1e-10 above it.
LEAST_PIVOT = 1e-11
LEAST_ROW = 1e-8


@dataclass(frozen=True)
class Decomposition:
    """Decomposition of one event, or of k events with a leading axis k on every array.

    Attributes
    ----------
    P_c, P_a : (n, n) arrays, projectors on the constrained and the admissible directions
    v_c, v_a : (n,) arrays, the two parts of q'-
    T_c_J, T_a_J, xi : kinetic energies before the event; xi = T_c / T, 0 at rest
    impulse : (m,) array, constraint impulse lambda, one value per row of A; zero if separating
    qdot_after : (n,) array, q'+; equals q'- if separating
    separating : the contact opens or does not close, so the constraint does not act
    """

    v_c: Array
    v_a: Array
    T_c_J: Any  # a float, or a (k,) array
    T_a_J: Any
    xi: Any
    impulse: Array
    qdot_after: Array
    separating: Any
    _L: Array
    _Q: Array

    @property
    def P_c(self) -> Array:
        Q_T = np.swapaxes(self._Q, -1, -2)
        L_T = np.swapaxes(self._L, -1, -2)
        projector: Array = np.linalg.solve(L_T, self._Q) @ (Q_T @ L_T)
        return projector

    @property
    def P_a(self) -> Array:
        return np.eye(self._L.shape[-1]) - self.P_c


def decompose(
    M: ArrayLike, A: ArrayLike, qdot: ArrayLike, *, closing: ArrayLike | None = None
) -> Decomposition:
    """Decompose a motion at the ideal impulsive constraints A q'+ = 0.

    Parameters
    ----------
    M : (n, n) symmetric positive definite mass matrix
    A : (m, n) constraint Jacobian, m <= n
    qdot : (n,) velocities just before
    closing : (m,), optional, makes the contact one-sided: combination of rows for which the speed
        `closing @ A @ qdot` is above zero on approach. By default the constraint acts both ways.

    Raises
    ------
    ModelError
        Shapes do not match, values are not finite, M is not positive definite or is
        ill-conditioned, or a row of A is zero or depends on the rows before it.
    """
    M, A, qdot = (np.asarray(part, dtype=float) for part in (M, A, qdot))
    if M.ndim != 2 or A.ndim != 2 or qdot.ndim != 1:
        raise _misfit("(n, n), (m, n) and (n,)", M.shape, A.shape, qdot.shape)
    many = decompose_many(M[None], A[None], qdot[None], closing=closing)
    return Decomposition(
        many.v_c[0], many.v_a[0], float(many.T_c_J[0]), float(many.T_a_J[0]), float(many.xi[0]),
        many.impulse[0], many.qdot_after[0], bool(many.separating[0]), many._L[0], many._Q[0],
    )  # fmt: skip


def independent_rows(A: Array) -> Array:
    """Return U (m, r), orthonormal, such that the rows of U^T A are independent and span A's.

    U lambda, with lambda the impulse of `decompose` for U^T A, is the impulse of least norm where
    rows of A depend on each other. U is the identity where none do.
    """
    U, size, _ = np.linalg.svd(A, full_matrices=False)
    counts = size > LEAST_ROW * size[0]
    rows: Array = np.eye(len(A)) if len(counts) == len(A) and counts.all() else U[:, counts]
    return rows


def decompose_many(
    M: ArrayLike, A: ArrayLike, qdot: ArrayLike, *, closing: ArrayLike | None = None
) -> Decomposition:
    """Apply `decompose` to k events at once: (k, n, n), (k, m, n), (k, n); compiled."""
    M, A, qdot = (np.ascontiguousarray(part, dtype=float) for part in (M, A, qdot))
    k, n = qdot.shape if qdot.ndim == 2 else (-1, -1)
    if M.shape != (k, n, n) or A.ndim != 3 or A.shape[::2] != (k, n) or not 1 <= A.shape[1] <= n:
        raise _misfit("(k, n, n), (k, m, n) and (k, n)", M.shape, A.shape, qdot.shape)
    toward = np.zeros(A.shape[1]) if closing is None else np.asarray(closing, dtype=float)
    if toward.shape != A.shape[1:2]:
        raise ModelError(f"closing: {toward.shape} given: one number for every row of A")
    for name, part in (("M", M), ("A", A), ("qdot", qdot), ("closing", toward)):
        if not np.all(np.isfinite(part)):
            raise ModelError(f"{name}: every value must be finite")
    size = np.sqrt(np.abs(np.einsum("kii->ki", M)))
    if np.any(np.abs(M - M.swapaxes(1, 2)) > 1e-9 * size[:, :, None] * size[:, None, :]):
        raise ModelError("M: must be symmetric")
    m = A.shape[1]
    v_c, v_a, after = np.empty((k, n)), np.empty((k, n)), np.empty((k, n))
    T_c, T_a, impulse = np.empty(k), np.empty(k), np.empty((k, m))
    L, Q = np.zeros((k, n, n)), np.empty((k, n, m))
    separating = np.zeros(k, dtype=np.bool_)
    parts = _Parts(v_c, v_a, T_c, T_a, impulse, after, separating, L, Q)
    at, what, where = _split(M, A, qdot, toward, parts)
    if at >= 0:
        event = f"event {at}: " if k > 1 else ""
        if what == _NOT_POSITIVE:
            raise ModelError(
                f"{event}M: not positive definite, or ill-conditioned, at coordinate {where}: "
                "a coordinate without mass, or one too many"
            )
        raise ModelError(
            f"{event}A: row {where} is zero or repeats the rows before it: leave it out"
        )
    T = T_c + T_a
    xi = np.divide(T_c, T, out=np.zeros(k), where=T > 0.0)
    return Decomposition(v_c, v_a, T_c, T_a, xi, impulse, after, separating, L, Q)


@dataclass(frozen=True)
class NonIdeal:
    """Result of a constraint with non-ideal forces.

    Attributes
    ----------
    impulse : (m,) array
        lambda; its sum with `impulse_nonideal` is the impulse of the ideal constraint.
    impulse_nonideal : (m,) array
        Lambda: the part of f_N in the constrained directions, P_c^T f_N = A^T Lambda.
    f_N : (n,) array, generalised impulse of the non-ideal forces
    qdot_after : (n,) array
    T_a_after_J : kinetic energy after the event; all of T_c is lost, as in the ideal case
    """

    impulse: Array
    impulse_nonideal: Array
    f_N: Array
    qdot_after: Array
    T_a_after_J: float


def nonideal(
    M: ArrayLike, A: ArrayLike, qdot: ArrayLike, *,
    f_0: ArrayLike | None = None, D: ArrayLike | None = None,
) -> NonIdeal:  # fmt: skip
    """Return the event with generalised impulses f_N = f_0 + D lambda besides the constraint's.

    f_0 (n,) is a given impulse, such as a measured tangential impulse times its Jacobian. D (n, m)
    is a law proportional to lambda, such as sliding friction D = -mu s B^T with the tangential
    Jacobian B and the sign s of sliding (which must not change: see `NonIdeal.qdot_after`)::

        (A M^-1 A^T + A M^-1 D) lambda = -A (q'- + M^-1 f_0),  q'+ = v_a + P_a M^-1 f_N

    Source: the paper's eqs (18)-(21).

    Raises
    ------
    ModelError
        As for `decompose`; or friction is so large that the contact jams (no lambda stops the
        approach).
    """
    M, A, qdot = (np.asarray(part, dtype=float) for part in (M, A, qdot))
    ideal = decompose(M, A, qdot)
    m, n = A.shape
    f = np.zeros(n) if f_0 is None else np.asarray(f_0, dtype=float)
    law = np.zeros((n, m)) if D is None else np.asarray(D, dtype=float)
    if f.shape != (n,) or law.shape != (n, m):
        raise _misfit("f_0 (n,) and D (n, m)", f.shape, law.shape)
    if not (np.all(np.isfinite(f)) and np.all(np.isfinite(law))):
        raise ModelError("f_0, D: every value must be finite")
    mobility = A @ np.linalg.solve(M, np.column_stack((A.T, law, f)))
    S, coupled, loaded = mobility[:, :m], mobility[:, m : 2 * m], mobility[:, -1]
    share = np.eye(m) + np.linalg.solve(S, coupled)
    if np.linalg.det(share) <= LEAST_ROW:
        raise ModelError("D: friction this large jams the contact: no impulse ends the approach")
    free = ideal.impulse - np.linalg.solve(S, loaded)
    impulse = np.asarray(np.linalg.solve(share, free), dtype=np.float64)
    f_N = np.asarray(f + law @ impulse, dtype=np.float64)
    after: Array = ideal.v_a + ideal.P_a @ np.linalg.solve(M, f_N)
    return NonIdeal(impulse, ideal.impulse - impulse, f_N, after, float(after @ M @ after) / 2.0)


def _misfit(wanted: str, *shapes: tuple[int, ...]) -> ModelError:
    shown = ", ".join(str(shape) for shape in shapes)
    return ModelError(f"shapes {shown} do not fit: give {wanted}")


_NOT_POSITIVE, _REPEATED = 1, 2


class _Parts(NamedTuple):
    """Results of `_split`, a row an event, as in `Decomposition`."""

    v_c: Array
    v_a: Array
    T_c: Array
    T_a: Array
    impulse: Array
    after: Array
    separating: NDArray[np.bool_]
    L: Array
    Q: Array


@njit(cache=True)
def _split(M: Array, A: Array, qdot: Array, closing: Array, parts: _Parts) -> tuple[int, int, int]:
    """Fill every event's row; return (event, reason, row) of the first failure, or -1."""
    v_c, v_a, T_c, T_a, impulse, after, separating, L, Q = parts
    k, m, n = A.shape
    R = np.zeros((m, m))
    w, y = np.empty(n), np.empty(m)
    for e in range(k):
        # M = L L^T
        for i in range(n):
            for j in range(i + 1):
                s = M[e, i, j]
                for r in range(j):
                    s -= L[e, i, r] * L[e, j, r]
                if i == j:
                    if not s > LEAST_PIVOT * M[e, i, i]:
                        return e, _NOT_POSITIVE, i
                    L[e, i, i] = np.sqrt(s)
                else:
                    L[e, i, j] = s / L[e, j, j]
        # L^-1 A^T = Q R, orthogonalised twice
        for c in range(m):
            size = 0.0
            for i in range(n):
                s = A[e, c, i]
                for r in range(i):
                    s -= L[e, i, r] * Q[e, r, c]
                Q[e, i, c] = s / L[e, i, i]
                size += Q[e, i, c] ** 2
            for b in range(c):
                R[b, c] = 0.0
            for _ in range(2):
                for b in range(c):
                    s = 0.0
                    for i in range(n):
                        s += Q[e, i, b] * Q[e, i, c]
                    R[b, c] += s
                    for i in range(n):
                        Q[e, i, c] -= s * Q[e, i, b]
            left = 0.0
            for i in range(n):
                left += Q[e, i, c] ** 2
            if not left > LEAST_ROW**2 * size:
                return e, _REPEATED, c
            R[c, c] = np.sqrt(left)
            for i in range(n):
                Q[e, i, c] /= R[c, c]
        # w = L^T q', y = Q^T w, w_a = w - Q y
        speed = 0.0
        for i in range(n):
            w[i] = 0.0
            for j in range(i, n):
                w[i] += L[e, j, i] * qdot[e, j]
        for c in range(m):
            y[c] = 0.0
            along = 0.0
            for i in range(n):
                y[c] += Q[e, i, c] * w[i]
                along += A[e, c, i] * qdot[e, i]
            speed += closing[c] * along
        T_c[e] = T_a[e] = 0.0
        for i in range(n):
            v_c[e, i] = 0.0
            for c in range(m):
                v_c[e, i] += Q[e, i, c] * y[c]
            v_a[e, i] = w[i] - v_c[e, i]
            T_a[e] += v_a[e, i] ** 2 / 2.0
        for c in range(m):
            T_c[e] += y[c] ** 2 / 2.0
        # R lambda = -y;  L^T v = w
        for c in range(m - 1, -1, -1):
            s = -y[c]
            for b in range(c + 1, m):
                s -= R[c, b] * impulse[e, b]
            impulse[e, c] = s / R[c, c]
        for i in range(n - 1, -1, -1):
            for j in range(i + 1, n):
                v_c[e, i] -= L[e, j, i] * v_c[e, j]
                v_a[e, i] -= L[e, j, i] * v_a[e, j]
            v_c[e, i] /= L[e, i, i]
            v_a[e, i] /= L[e, i, i]
            after[e, i] = v_a[e, i]
        one_sided = False
        for c in range(m):
            one_sided |= closing[c] != 0.0
        if one_sided and speed <= 0.0:
            separating[e] = True
            for i in range(n):
                after[e, i] = qdot[e, i]
            for c in range(m):
                impulse[e, c] = 0.0
    return -1, 0, 0
