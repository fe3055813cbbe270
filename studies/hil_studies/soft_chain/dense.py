"""Dense form of the same trees, M(q) q'' + h(q, v) = f, as an independent check.

It uses spatial vectors about the world's origin, [omega; v of the body at the origin], without a
recursion over articulated inertias. With S_i = [a; p x a] for a rotating and [0; a] for a sliding
joint i,

    V_k = sum_i S_i v_i,  A_k = sum_i (V_i x S_i) v_i - [0; g]     (i: joints that carry body k)
    M_ij = S_i^T (sum_k I_k) S_j,  h_j = S_j^T sum_k (I_k A_k + V_k x* I_k V_k)   (k: carried by j)

O(N^3). Only for trees on a fixed base, without tendons or ground.
Source: Featherstone 2008, ch. 6.
"""

import numpy as np
from scipy.spatial.transform import Rotation

from hil.errors import ModelError
from hil.mechanics.arrays import Array
from hil.systems.soft.element import branch_coefficients
from hil.systems.soft.stepper import AlphaParameters
from hil.systems.soft.tree import SoftTree

TOLERANCE = 1e-10
PASSES_MAX = 60


class DenseForm:
    """Mass matrix and remaining terms of the equations of motion of a soft tree."""

    def __init__(self, tree: SoftTree) -> None:
        if tree.base_moves or tree.tendons or tree.touching:
            raise ModelError("the dense form has no moving base, tendon or contact")
        n, bodies = tree.n, tree.bodies
        self.tree = tree
        self._turn = [np.asarray(b.joint_turn, dtype=float) for b in bodies]
        self._mass = np.array([b.mass_kg for b in bodies])
        self._centre = np.array([b.centre_m for b in bodies], dtype=float)
        self._inertia = np.array([b.inertia for b in bodies])
        # Row i: the bodies that joint i carries.
        self._carries = np.eye(n, dtype=bool)
        for i, body in enumerate(bodies):
            if body.parent >= 0:
                self._carries[:, i] |= self._carries[:, body.parent]

    def __call__(self, q: Array, v: Array) -> tuple[Array, Array]:
        """Return M (N, N) and h (N,)."""
        tree, n = self.tree, self.tree.n
        R, p, S = np.empty((n, 3, 3)), np.empty((n, 3)), np.zeros((n, 6))
        for i, body in enumerate(tree.bodies):
            R0, p0 = (R[body.parent], p[body.parent]) if body.parent >= 0 else (np.eye(3), 0.0)
            R[i] = R0 @ self._turn[i]
            a = R[i] @ body.axis
            p[i] = p0 + R0 @ body.joint_at_m
            if body.slides:
                p[i] += a * q[i]
                S[i, 3:] = a
            else:
                R[i] = R[i] @ Rotation.from_rotvec(q[i] * np.asarray(body.axis)).as_matrix()
                S[i, :3], S[i, 3:] = a, np.cross(p[i], a)
        V = self._carries.T @ (S * v[:, None])
        rest = np.concatenate((np.zeros(3), -np.asarray(tree.gravity_m_per_s2)))
        A = rest + self._carries.T @ (_motion_cross(V, S) * v[:, None])
        inertia = self._inertias(R, p)
        momentum = np.einsum("kij,kj->ki", inertia, V)
        F = np.einsum("kij,kj->ki", inertia, A)
        F[:, :3] += np.cross(V[:, :3], momentum[:, :3]) + np.cross(V[:, 3:], momentum[:, 3:])
        F[:, 3:] += np.cross(V[:, :3], momentum[:, 3:])
        carried = np.tensordot(self._carries.astype(float), inertia, 1)
        half = np.where(self._carries, S @ np.einsum("kij,kj->ki", carried, S).T, 0.0)
        M = half + half.T - np.diag(np.diag(half))
        return M, np.einsum("ki,ki->k", S, self._carries @ F)

    def _inertias(self, R: Array, p: Array) -> Array:
        """Return the inertias of all bodies about the world's origin, (N, 6, 6)."""
        c = p + np.einsum("kij,kj->ki", R, self._centre)
        m = self._mass[:, None, None]
        mc = m * np.cross(np.eye(3), c[:, None, :])  # m [c]x
        squares = np.einsum("ki,ki->k", c, c)[:, None, None] * np.eye(3)
        inertia = np.zeros((len(c), 6, 6))
        inertia[:, :3, :3] = R @ self._inertia @ R.transpose(0, 2, 1)
        inertia[:, :3, :3] += m * (squares - np.einsum("ki,kj->kij", c, c))
        inertia[:, :3, 3:], inertia[:, 3:, :3] = mc, -mc
        inertia[:, 3:, 3:] = m * np.eye(3)
        return inertia


class DenseStepper:
    """Generalized-alpha steps of the dense form: the same equations as the recursion's stepper.

    Elements, drives and the exact step of the branches are those of `hil.systems.soft.stepper`.
    """

    def __init__(self, tree: SoftTree, spectral_radius: float = 0.8) -> None:
        self.form = DenseForm(tree)
        self._alpha = AlphaParameters(spectral_radius).values
        elements = [body.element for body in tree.bodies]
        self._k = np.array([0.0 if e is None else e.k for e in elements])
        self._c = np.array([0.0 if e is None else e.c for e in elements])
        pairs = [pair for e in elements if e is not None for pair in e.branches]
        self._kM, self._tau = np.array(pairs).reshape(-1, 2).T
        self._at = tree.branch_joint
        self._drives = list(tree.drives)
        n = tree.n
        self.q = np.array([body.rest for body in tree.bodies])
        self.v, self.R = np.zeros(n), np.zeros(len(self._at))
        self._rest, self._rest_rate, self._torque = self.q.copy(), np.zeros(n), np.zeros(n)
        M, h = self.form(self.q, self.v)
        self.x = np.asarray(np.linalg.solve(M, -h), dtype=float)
        self.a = self.x.copy()

    def step(self, h_s: float, u: Array) -> None:
        """Advance by h_s to the inputs u (drives only)."""
        am, af, beta, gamma = self._alpha
        share = (1.0 - af) / (1.0 - am)
        bh, gh = h_s**2 * beta * share, h_s * gamma * share
        old = (af * self.x - am * self.a) / (1.0 - am)
        q_star = self.q + h_s * self.v + h_s**2 * ((0.5 - beta) * self.a + beta * old)
        v_star = self.v + h_s * ((1.0 - gamma) * self.a + gamma * old)
        driven = u.reshape(-1, 3).T
        self._rest[self._drives], self._rest_rate[self._drives] = driven[0], driven[1]
        self._torque[self._drives] = driven[2]
        E, Ac, Bc = np.array([branch_coefficients(h_s, tau) for tau in self._tau]).reshape(-1, 3).T
        x = self.x
        for _ in range(PASSES_MAX):
            q, v = q_star + bh * x, v_star + gh * x
            M, h = self.form(q, v)
            Q = self._k * (q_star - self._rest) + self._c * (v_star - self._rest_rate)
            slope = self._k * bh + self._c * gh
            v0, v1 = self.v[self._at], v_star[self._at]
            np.add.at(Q, self._at, E * self.R + self._kM * (Ac * v0 + Bc * v1))
            np.add.at(slope, self._at, self._kM * Bc * gh)
            before, x = (
                x,
                np.asarray(np.linalg.solve(M + np.diag(slope), self._torque - h - Q), dtype=float),
            )
            if np.abs(x - before).max() <= TOLERANCE * np.abs(x).max():
                break
        else:
            raise ModelError(f"the dense step of {h_s:g} s does not converge")
        v = v_star + gh * x
        self.R = E * self.R + self._kM * (Ac * self.v[self._at] + Bc * v[self._at])
        self.a = share * x + old
        self.q, self.v, self.x = q_star + bh * x, v, x


def _motion_cross(V: Array, S: Array) -> Array:
    """Return the motion cross products V x S, (N, 6)."""
    turn = np.cross(V[:, :3], S[:, :3])
    return np.hstack((turn, np.cross(V[:, 3:], S[:, :3]) + np.cross(V[:, :3], S[:, 3:])))
