"""A limb in Euler parameters, with Lagrange multipliers and Baumgarte stabilisation.

A body has q = (R, theta): centre of mass and four Euler parameters. With A = E Ebar^T (4) and
omega_bar = Gbar theta' (8), the equation of motion is

    [M  C_q^T] [q'']   [Q_e + Q_v                     ]
    [C_q  0  ] [lambda] = [Q_c - 2 alpha C' - beta^2 C]          (21), (24)

Constraints: a spherical joint makes two points coincide (19); a revolute joint also keeps two
directions of the parent perpendicular to the axis of the child; theta^T theta = 1. The moment in
(22) is in ground axes: Q_theta = G^T M.

Source: Makkonen 2021, section 2.1, after Shabana 2005 and Nikravesh 2008. This slow form is an
independent check of `minimal`.
"""

from itertools import pairwise

import numpy as np

from hil.mechanics.arrays import Array
from hil.mechanics.rotations import quaternion_of_attitude, skew
from hil.systems.leg.limb import GROUND, Joint, Limb

ALPHA_PER_S = 1000.0
BETA_PER_S = np.sqrt(2.0) / 0.001


def turn(theta: Array) -> Array:
    """Return the rotation matrix A of Euler parameters (3)."""
    e0, e = theta[0], theta[1:]
    A: Array = (2.0 * e0**2 - 1.0) * np.eye(3) + 2.0 * (np.outer(e, e) + e0 * skew(e))
    return A


def g_ground(theta: Array) -> Array:
    """Return G with omega = G theta', in ground axes (9)."""
    e0, e = theta[0], theta[1:]
    return 2.0 * np.column_stack((-e, skew(e) + e0 * np.eye(3)))


def g_body(theta: Array) -> Array:
    """Return Gbar with omega_bar = Gbar theta', in the body's axes (9)."""
    e0, e = theta[0], theta[1:]
    return 2.0 * np.column_stack((-e, -skew(e) + e0 * np.eye(3)))


class EulerLimb:
    """Equations of a limb in Euler parameters; bodies in the order of their joints.

    Attributes
    ----------
    n : number of coordinates, seven per body
    """

    def __init__(
        self, limb: Limb, alpha_per_s: float = ALPHA_PER_S, beta_per_s: float = BETA_PER_S
    ) -> None:
        self.limb, self._alpha, self._beta = limb, alpha_per_s, beta_per_s
        self.joints = limb.order()
        self.bodies = [limb.body(joint.child) for joint in self.joints]
        self._place = {body.name: i for i, body in enumerate(self.bodies)}
        self.n = 7 * len(self.bodies)

    def place(self, R: Array, A: Array) -> Array:
        """Return q for centres of mass (B, 3) and rotation matrices (B, 3, 3)."""
        return np.concatenate(
            [np.concatenate((r, quaternion_of_attitude(a))) for r, a in zip(R, A, strict=True)]
        )

    def rates(self, q: Array, v: Array, omega: Array) -> Array:
        """Return q' for velocities of the centres of mass and angular velocities (B, 3), ground."""
        return np.concatenate(
            [np.concatenate((v[i], 0.25 * g_ground(self._theta(q, i)).T @ omega[i]))
             for i in range(len(self.bodies))]
        )  # fmt: skip

    def _theta(self, q: Array, i: int) -> Array:
        return q[7 * i + 3 : 7 * i + 7]

    def mass_matrix(self, q: Array) -> Array:
        """(13)-(16)."""
        M = np.zeros((self.n, self.n))
        for i, body in enumerate(self.bodies):
            at = 7 * i
            M[at : at + 3, at : at + 3] = body.mass_kg * np.eye(3)
            G = g_body(self._theta(q, i))
            M[at + 3 : at + 7, at + 3 : at + 7] = G.T @ np.diag(body.inertia_kg_m2) @ G
        return M

    def forces(self, q: Array, q_dot: Array, tension_N: Array) -> Array:
        """Return Q_e + Q_v: gravity, tendons, joint damping, and (23)."""
        Q = np.zeros(self.n)
        for i, body in enumerate(self.bodies):
            at = 7 * i
            Q[at : at + 3] += body.mass_kg * np.array(self.limb.gravity_m_per_s2)
            theta_dot = self._theta(q_dot, i)
            omega = g_body(self._theta(q, i)) @ theta_dot
            Q[at + 3 : at + 7] -= 2.0 * g_body(theta_dot).T @ np.diag(body.inertia_kg_m2) @ omega
        for muscle, tension in zip(self.limb.muscles, tension_N, strict=True):
            points = [self._point(q, p.body, np.array(p.at_m)) for p in muscle.path]
            for k, (a, b) in enumerate(pairwise(points)):
                pull = tension * (b - a) / np.linalg.norm(b - a)
                self._push(Q, q, muscle.path[k].body, a, pull)
                self._push(Q, q, muscle.path[k + 1].body, b, -pull)
        for i, joint in enumerate(self.joints):
            if joint.damping_N_m_s_per_rad:
                self._damp(Q, q, q_dot, i, joint)
        return Q

    def _point(self, q: Array, body: str, at: Array) -> Array:
        if body == GROUND:
            return at
        i = self._place[body]
        return np.asarray(q[7 * i : 7 * i + 3] + turn(self._theta(q, i)) @ at)

    def _push(self, Q: Array, q: Array, body: str, at: Array, force: Array) -> None:
        if body != GROUND:
            i = self._place[body]
            Q[7 * i : 7 * i + 3] += force
            self._twist(Q, q, i, np.cross(at - q[7 * i : 7 * i + 3], force))

    def _twist(self, Q: Array, q: Array, i: int, moment: Array) -> None:
        Q[7 * i + 3 : 7 * i + 7] += g_ground(self._theta(q, i)).T @ moment  # (22)

    def _damp(self, Q: Array, q: Array, q_dot: Array, i: int, joint: Joint) -> None:
        """Add damping about the axis of a revolute joint; spherical joints have none (`Limb`)."""
        omega = g_ground(self._theta(q, i)) @ self._theta(q_dot, i)
        if joint.parent != GROUND:
            up = self._place[joint.parent]
            omega = omega - g_ground(self._theta(q, up)) @ self._theta(q_dot, up)
        axis = turn(self._theta(q, i)) @ (np.array(joint.axis) / np.linalg.norm(joint.axis))
        moment = -joint.damping_N_m_s_per_rad * (axis @ omega) * axis
        self._twist(Q, q, i, moment)
        if joint.parent != GROUND:
            self._twist(Q, q, self._place[joint.parent], -moment)

    def constraints(self, q: Array, q_dot: Array) -> tuple[Array, Array, Array]:
        """Return C, its Jacobian C_q, and Q_c = -(C_q q')_q q'."""
        C: list[float] = []
        rows: list[Array] = []
        Qc: list[float] = []
        for i, joint in enumerate(self.joints):
            up = self._place.get(joint.parent)
            ends = [(i, np.array(joint.at_child_m), 1.0)]
            gap = self._point(q, joint.child, np.array(joint.at_child_m))
            gap = gap - self._point(q, joint.parent, np.array(joint.at_parent_m))
            if up is not None:
                ends.append((up, np.array(joint.at_parent_m), -1.0))
            block, bias = np.zeros((3, self.n)), np.zeros(3)
            for k, at, sign in ends:
                A, G, omega = self._turning(q, q_dot, k)
                block[:, 7 * k : 7 * k + 3] += sign * np.eye(3)
                block[:, 7 * k + 3 : 7 * k + 7] -= sign * A @ skew(at) @ G  # (12)
                bias -= sign * A @ np.cross(omega, np.cross(omega, at))
            C += gap.tolist()
            rows += list(block)
            Qc += bias.tolist()
            if joint.kind == "revolute":
                for row, value, rest in self._square(q, q_dot, i, up, joint):
                    C.append(value)
                    rows.append(row)
                    Qc.append(rest)
        for i in range(len(self.bodies)):
            theta, theta_dot = self._theta(q, i), self._theta(q_dot, i)
            row = np.zeros(self.n)
            row[7 * i + 3 : 7 * i + 7] = 2.0 * theta
            C.append(float(theta @ theta) - 1.0)
            rows.append(row)
            Qc.append(-2.0 * float(theta_dot @ theta_dot))
        return np.array(C), np.array(rows), np.array(Qc)

    def _turning(self, q: Array, q_dot: Array, i: int) -> tuple[Array, Array, Array]:
        """Return A, Gbar and omega_bar of a body."""
        G = g_body(self._theta(q, i))
        return turn(self._theta(q, i)), G, G @ self._theta(q_dot, i)

    def _square(
        self, q: Array, q_dot: Array, i: int, up: int | None, joint: Joint
    ) -> list[tuple[Array, float, float]]:
        """Constrain two directions fixed in the parent to be perpendicular to the child's axis."""
        axis = np.array(joint.axis) / np.linalg.norm(joint.axis)
        other = np.eye(3)[int(np.argmin(np.abs(axis)))]
        first = np.cross(axis, other) / np.linalg.norm(np.cross(axis, other))
        A, G, w = self._turning(q, q_dot, i)
        child, child_dot = A @ axis, A @ np.cross(w, axis)
        child_bias = A @ np.cross(w, np.cross(w, axis))
        rows = []
        for direction in (first, np.cross(axis, first)):
            row = np.zeros(self.n)
            at, at_dot, at_bias = direction, np.zeros(3), np.zeros(3)
            if up is not None:
                B, H, u = self._turning(q, q_dot, up)
                at, at_dot = B @ direction, B @ np.cross(u, direction)
                at_bias = B @ np.cross(u, np.cross(u, direction))
                row[7 * up + 3 : 7 * up + 7] = -child @ B @ skew(direction) @ H
            row[7 * i + 3 : 7 * i + 7] = -at @ A @ skew(axis) @ G
            rest = -(at @ child_bias + 2.0 * at_dot @ child_dot + at_bias @ child)
            rows.append((row, float(at @ child), float(rest)))
        return rows

    def accelerations(self, q: Array, q_dot: Array, tension_N: Array) -> tuple[Array, Array]:
        """Return q'' and the multipliers, from (24) with (21)."""
        M, Q = self.mass_matrix(q), self.forces(q, q_dot, tension_N)
        C, Cq, Qc = self.constraints(q, q_dot)
        right = Qc - 2.0 * self._alpha * (Cq @ q_dot) - self._beta**2 * C
        # Scaling the multipliers to the masses improves conditioning and does not change q''.
        scale = float(np.abs(M).max())
        n, m = len(Q), len(C)
        whole = np.zeros((n + m, n + m))
        whole[:n, :n], whole[:n, n:], whole[n:, :n] = M, scale * Cq.T, scale * Cq
        answer: Array = np.asarray(
            np.linalg.solve(whole, np.concatenate((Q, scale * right))), dtype=float
        )
        multipliers: Array = scale * answer[n:]
        return answer[:n], multipliers

    def turning_rates(self, q: Array, q_dot: Array, q_ddot: Array) -> tuple[Array, Array]:
        """Return accelerations of centres of mass and angular accelerations (ground), (B, 3)."""
        n_bodies = len(self.bodies)
        linear: Array = np.zeros((n_bodies, 3))
        linear[:] = q_ddot.reshape(-1, 7)[:, :3]
        # omega' = G theta'', as G' theta' = 0
        turning: Array = np.zeros((n_bodies, 3))
        for i in range(n_bodies):
            turning[i] = g_ground(self._theta(q, i)) @ self._theta(q_ddot, i)
        return linear, turning
