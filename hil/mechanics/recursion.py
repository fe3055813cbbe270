"""Accelerations of a tree of bodies with point joints, O(N), compiled.

A point joint transmits a force but no moment. So body i with all it carries responds to the
acceleration a of its joint with a force only, Gamma = K a + p. With I the moment of inertia about
the joint, c the vector to the centre of mass, d the vectors to the joints of the carried bodies and
b = omega x (omega x d), all in inertial axes::

    E = I - sum d^ K d^,   H = m c^ + sum d^ K,   G = m + sum K
    n = N + c x (m g + F) - omega x I omega - sum d x (K b + p)
    q = m omega x (omega x c) - m g - F + sum (K b + p)
    alpha = E^-1 (n - H a),   K_i = G - H^T E^-1 H,   p_i = q + H^T E^-1 n

The first pass goes from the leaves to the root. The second goes outwards from the root, where
K a + p = 0 (free root) or the joint's acceleration is given. These are the equations of the
free-body form in `hil.systems.bodies.skeleton`, solved with matrices of at most 3 x 3.

Source: Featherstone, Rigid Body Dynamics Algorithms, 2008, ch. 7, for point joints [derived here].
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hil.compiled import njit
from hil.errors import ModelError
from hil.mechanics.arrays import Array, Indices, Vector
from hil.mechanics.one_body import checked_inertia

# Columns of `geo`: mass, own joint and joint on the parent (from the centres of mass), J.
M, ON_BODY, ON_PARENT, J = 0, 1, 4, 7
GEO = 16
# Columns of `w`: omega, c, d, b; E^-1 n; E^-1 H (9); K (6: xx xy xz yy yz zz), p; alpha, a.
OM, C, D, B, Y, X, K, P, AL, AC = 0, 3, 6, 9, 12, 15, 24, 30, 33, 36
# Sums over the carried bodies: E (6), H (9), G (6), n, q.
SE, SH, SG, SN, SQ = 39, 45, 54, 60, 63
ROWS = 66


@dataclass(frozen=True)
class Carried:
    """A body of a tree; points relative to centres of mass, each in its own body's frame.

    Attributes
    ----------
    parent : index of the body that carries it, smaller than its own; -1 for the root
    own_m, at_m
        Position of its joint on itself, and on the parent (unused for a fixed root).
    """

    parent: int
    mass_kg: float
    inertia_kg_m2: ArrayLike
    own_m: Vector = (0.0, 0.0, 0.0)
    at_m: Vector = (0.0, 0.0, 0.0)


class Tree(NamedTuple):
    """Parents, and a row of constants of every body; whether the root is on a fixed joint."""

    parent: Indices
    geo: Array
    fixed: bool


class Loads(NamedTuple):
    """Torques and forces on bodies (`Recursion.solve`); acceleration of a fixed root's joint."""

    N: Array
    F: Array
    gravity: Vector
    a_root: Vector


class Rates(NamedTuple):
    """Scratch, and the results of `Recursion`."""

    w: Array
    V_rate: Array
    omega_rate: Array
    Gamma: Array


class Recursion:
    """Accelerations and joint forces of a tree, free in space or with its root on a fixed joint.

    Attributes
    ----------
    n : number of bodies
    V_rate, omega_rate : (n, 3) arrays, results of the last `solve`: accelerations of the centres of
        mass in the inertial frame, and Omega' in each body's frame
    Gamma : (n, 3) array
        Force that each body's joint exerts on it, inertial frame; zero at a free root.
    """

    def __init__(self, bodies: Sequence[Carried], *, fixed: bool = False) -> None:
        self.n = len(bodies)
        self.fixed = fixed
        self.parent = np.array([body.parent for body in bodies], dtype=np.int64)
        if self.n == 0 or self.parent[0] != -1:
            raise ModelError("bodies: the first one must be the root, parent -1")
        for i in range(1, self.n):
            if not 0 <= self.parent[i] < i:
                raise ModelError(f"body {i}: parent {self.parent[i]}: give one from 0 to {i - 1}")
        self.geo = np.zeros((self.n, GEO))
        for row, body in zip(self.geo, bodies, strict=True):
            if not body.mass_kg > 0.0:
                raise ModelError(f"mass_kg = {body.mass_kg}: must be above 0")
            row[M] = body.mass_kg
            row[ON_BODY : ON_BODY + 3] = body.own_m
            row[ON_PARENT : ON_PARENT + 3] = body.at_m
            row[J:] = checked_inertia(body.inertia_kg_m2).ravel()
        if not fixed:
            self.geo[0, ON_BODY : ON_BODY + 3] = 0.0  # a free root moves with its centre of mass
        self._w = np.zeros((self.n, ROWS))
        self._none = np.zeros((self.n, 3))
        self.V_rate, self.omega_rate, self.Gamma = (np.zeros((self.n, 3)) for _ in range(3))

    def solve(
        self, A: Array, omega: Array, N: Array, F: Array | None = None,
        gravity: Vector = (0.0, 0.0, -9.81), a_root: Vector = (0.0, 0.0, 0.0),
    ) -> None:  # fmt: skip
        """Compute the results.

        Parameters
        ----------
        A : (n, 3, 3) attitudes
        omega, N : (n, 3), in each body's frame
            N is the total torque on a body, including reactions of its neighbours.
        F : (n, 3), inertial
            Forces at the centres of mass besides weight.
        a_root : acceleration of a fixed root's joint
        """
        loads = Loads(N, self._none if F is None else F, gravity, a_root)
        rates = Rates(self._w, self.V_rate, self.omega_rate, self.Gamma)
        accelerations(Tree(self.parent, self.geo, self.fixed), A, omega, loads, rates)


@njit(inline="always")
def _cross(a, b):  # type: ignore[no-untyped-def]
    return (
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    )


@njit(inline="always")
def _three(w, i, at):  # type: ignore[no-untyped-def]
    return w[i, at], w[i, at + 1], w[i, at + 2]


@njit(inline="always")
def _turned(A, i, x):  # type: ignore[no-untyped-def]
    return (
        A[i, 0, 0] * x[0] + A[i, 0, 1] * x[1] + A[i, 0, 2] * x[2],
        A[i, 1, 0] * x[0] + A[i, 1, 1] * x[1] + A[i, 1, 2] * x[2],
        A[i, 2, 0] * x[0] + A[i, 2, 1] * x[1] + A[i, 2, 2] * x[2],
    )


@njit(inline="always")
def _back(A, i, x):  # type: ignore[no-untyped-def]
    return (
        A[i, 0, 0] * x[0] + A[i, 1, 0] * x[1] + A[i, 2, 0] * x[2],
        A[i, 0, 1] * x[0] + A[i, 1, 1] * x[1] + A[i, 2, 1] * x[2],
        A[i, 0, 2] * x[0] + A[i, 1, 2] * x[1] + A[i, 2, 2] * x[2],
    )


@njit(inline="always")
def _sym(k, x):  # type: ignore[no-untyped-def]
    """Return a symmetric matrix (xx xy xz yy yz zz) times a vector."""
    return (
        k[0] * x[0] + k[1] * x[1] + k[2] * x[2],
        k[1] * x[0] + k[3] * x[1] + k[4] * x[2],
        k[2] * x[0] + k[4] * x[1] + k[5] * x[2],
    )


@njit(inline="always")
def _inverse(e):  # type: ignore[no-untyped-def]
    """Return the inverse of a symmetric matrix in the same storage, by cofactors."""
    a = e[3] * e[5] - e[4] * e[4]
    b = e[2] * e[4] - e[1] * e[5]
    c = e[1] * e[4] - e[2] * e[3]
    k = 1.0 / (e[0] * a + e[1] * b + e[2] * c)
    return (
        a * k, b * k, c * k, (e[0] * e[5] - e[2] * e[2]) * k,
        (e[1] * e[2] - e[0] * e[4]) * k, (e[0] * e[3] - e[1] * e[1]) * k,
    )  # fmt: skip


@njit(cache=True, error_model="numpy")
def accelerations(tree: Tree, A: Array, omega: Array, loads: Loads, rates: Rates) -> None:
    """Evaluate the equations of the module."""
    parent, geo, fixed = tree
    N, F, gravity, a_root = loads
    w, V_rate, omega_rate, Gamma = rates
    n = len(parent)
    for i in range(n):
        p = parent[i]
        om = _turned(A, i, (omega[i, 0], omega[i, 1], omega[i, 2]))
        to_own = _turned(A, i, (geo[i, ON_BODY], geo[i, ON_BODY + 1], geo[i, ON_BODY + 2]))
        for k in range(3):
            w[i, OM + k] = om[k]
            w[i, C + k] = -to_own[k]
        if p >= 0:
            at = _turned(A, p, (geo[i, ON_PARENT], geo[i, ON_PARENT + 1], geo[i, ON_PARENT + 2]))
            d = (at[0] + w[p, C], at[1] + w[p, C + 1], at[2] + w[p, C + 2])
            omp = _three(w, p, OM)
            b = _cross(omp, _cross(omp, d))
            for k in range(3):
                w[i, D + k] = d[k]
                w[i, B + k] = b[k]
        for k in range(SE, ROWS):
            w[i, k] = 0.0
    for i in range(n - 1, -1, -1):
        m, p = geo[i, M], parent[i]
        om, c = _three(w, i, OM), _three(w, i, C)
        # J in inertial axes: A J A^T; first the rows of A J.
        j0, j1, j2 = _three(geo, i, J), _three(geo, i, J + 3), _three(geo, i, J + 6)
        t0, t1, t2 = _turned(A, i, j0), _turned(A, i, j1), _turned(A, i, j2)
        r0 = (A[i, 0, 0], A[i, 0, 1], A[i, 0, 2])
        r1 = (A[i, 1, 0], A[i, 1, 1], A[i, 1, 2])
        r2 = (A[i, 2, 0], A[i, 2, 1], A[i, 2, 2])
        jxx = t0[0] * r0[0] + t1[0] * r0[1] + t2[0] * r0[2]
        jxy = t0[0] * r1[0] + t1[0] * r1[1] + t2[0] * r1[2]
        jxz = t0[0] * r2[0] + t1[0] * r2[1] + t2[0] * r2[2]
        jyy = t0[1] * r1[0] + t1[1] * r1[1] + t2[1] * r1[2]
        jyz = t0[1] * r2[0] + t1[1] * r2[1] + t2[1] * r2[2]
        jzz = t0[2] * r2[0] + t1[2] * r2[1] + t2[2] * r2[2]
        cc = c[0] * c[0] + c[1] * c[1] + c[2] * c[2]
        inertia = (
            jxx + m * (cc - c[0] * c[0]), jxy - m * c[0] * c[1], jxz - m * c[0] * c[2],
            jyy + m * (cc - c[1] * c[1]), jyz - m * c[1] * c[2], jzz + m * (cc - c[2] * c[2]),
        )  # fmt: skip
        e = (
            inertia[0] + w[i, SE], inertia[1] + w[i, SE + 1], inertia[2] + w[i, SE + 2],
            inertia[3] + w[i, SE + 3], inertia[4] + w[i, SE + 4], inertia[5] + w[i, SE + 5],
        )  # fmt: skip
        mc = (m * c[0], m * c[1], m * c[2])
        h0 = (w[i, SH], w[i, SH + 1] - mc[2], w[i, SH + 2] + mc[1])
        h1 = (w[i, SH + 3] + mc[2], w[i, SH + 4], w[i, SH + 5] - mc[0])
        h2 = (w[i, SH + 6] - mc[1], w[i, SH + 7] + mc[0], w[i, SH + 8])
        push = (
            m * gravity[0] + F[i, 0], m * gravity[1] + F[i, 1], m * gravity[2] + F[i, 2]
        )  # fmt: skip
        lever, spin = _cross(c, push), _cross(om, _sym(inertia, om))
        torque = _turned(A, i, (N[i, 0], N[i, 1], N[i, 2]))
        turning = _cross(om, _cross(om, mc))
        nn = (
            torque[0] + lever[0] - spin[0] + w[i, SN],
            torque[1] + lever[1] - spin[1] + w[i, SN + 1],
            torque[2] + lever[2] - spin[2] + w[i, SN + 2],
        )
        q = (
            turning[0] - push[0] + w[i, SQ],
            turning[1] - push[1] + w[i, SQ + 1],
            turning[2] - push[2] + w[i, SQ + 2],
        )
        f = _inverse(e)
        y = _sym(f, nn)
        x0 = _sym(f, (h0[0], h1[0], h2[0]))  # columns of E^-1 H
        x1 = _sym(f, (h0[1], h1[1], h2[1]))
        x2 = _sym(f, (h0[2], h1[2], h2[2]))
        kk = (
            m + w[i, SG] - (h0[0] * x0[0] + h1[0] * x0[1] + h2[0] * x0[2]),
            w[i, SG + 1] - (h0[0] * x1[0] + h1[0] * x1[1] + h2[0] * x1[2]),
            w[i, SG + 2] - (h0[0] * x2[0] + h1[0] * x2[1] + h2[0] * x2[2]),
            m + w[i, SG + 3] - (h0[1] * x1[0] + h1[1] * x1[1] + h2[1] * x1[2]),
            w[i, SG + 4] - (h0[1] * x2[0] + h1[1] * x2[1] + h2[1] * x2[2]),
            m + w[i, SG + 5] - (h0[2] * x2[0] + h1[2] * x2[1] + h2[2] * x2[2]),
        )
        pp = (
            q[0] + h0[0] * y[0] + h1[0] * y[1] + h2[0] * y[2],
            q[1] + h0[1] * y[0] + h1[1] * y[1] + h2[1] * y[2],
            q[2] + h0[2] * y[0] + h1[2] * y[1] + h2[2] * y[2],
        )
        for k in range(3):
            w[i, Y + k] = y[k]
            w[i, X + 3 * k] = x0[k]
            w[i, X + 3 * k + 1] = x1[k]
            w[i, X + 3 * k + 2] = x2[k]
            w[i, P + k] = pp[k]
        for k in range(6):
            w[i, K + k] = kk[k]
        if p >= 0:
            d, b = _three(w, i, D), _three(w, i, B)
            kb = _sym(kk, b)
            g = (kb[0] + pp[0], kb[1] + pp[1], kb[2] + pp[2])
            turn = _cross(d, g)
            # d^ K, column by column (K is symmetric), then -(d^ K) d^ = -d^ (K d^).
            s0 = _cross(d, (kk[0], kk[1], kk[2]))
            s1 = _cross(d, (kk[1], kk[3], kk[4]))
            s2 = _cross(d, (kk[2], kk[4], kk[5]))
            for k in range(3):
                w[p, SQ + k] += g[k]
                w[p, SN + k] -= turn[k]
                w[p, SH + 3 * k] += s0[k]
                w[p, SH + 3 * k + 1] += s1[k]
                w[p, SH + 3 * k + 2] += s2[k]
            for k in range(6):
                w[p, SG + k] += kk[k]
            # Row r of -S d^ is d x (row r of S): S d^ v = S (d x v).
            u0 = _cross(d, (s0[0], s1[0], s2[0]))
            u1 = _cross(d, (s0[1], s1[1], s2[1]))
            u2 = _cross(d, (s0[2], s1[2], s2[2]))
            w[p, SE] += u0[0]
            w[p, SE + 1] += u0[1]
            w[p, SE + 2] += u0[2]
            w[p, SE + 3] += u1[1]
            w[p, SE + 4] += u1[2]
            w[p, SE + 5] += u2[2]
    for i in range(n):
        p = parent[i]
        kk = (w[i, K], w[i, K + 1], w[i, K + 2], w[i, K + 3], w[i, K + 4], w[i, K + 5])
        pp = _three(w, i, P)
        if p >= 0:
            turn = _cross(_three(w, p, AL), _three(w, i, D))
            a = (
                w[p, AC] + turn[0] + w[i, B],
                w[p, AC + 1] + turn[1] + w[i, B + 1],
                w[p, AC + 2] + turn[2] + w[i, B + 2],
            )
        elif fixed:
            a = (a_root[0], a_root[1], a_root[2])
        else:
            a = _sym(_inverse(kk), (-pp[0], -pp[1], -pp[2]))
        for k in range(3):
            w[i, AC + k] = a[k]
            w[i, AL + k] = w[i, Y + k] - (
                w[i, X + 3 * k] * a[0] + w[i, X + 3 * k + 1] * a[1] + w[i, X + 3 * k + 2] * a[2]
            )
        ka = _sym(kk, a)
        al, om, c = _three(w, i, AL), _three(w, i, OM), _three(w, i, C)
        turn, inward = _cross(al, c), _cross(om, _cross(om, c))
        to_own = _back(A, i, al)
        for k in range(3):
            V_rate[i, k] = a[k] + turn[k] + inward[k]
            omega_rate[i, k] = to_own[k]
            Gamma[i, k] = ka[k] + pp[k] if p >= 0 or fixed else 0.0
