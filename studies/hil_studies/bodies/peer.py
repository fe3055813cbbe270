"""A skeleton as a pinocchio model: a free flyer and a spherical joint for every other body.

Used by tests, the study and the benchmark; requires the extra `[bodies]`.
"""

from collections.abc import Sequence

import numpy as np

from hil.mechanics.arrays import Array
from hil.mechanics.rotations import quaternion_of_attitude
from hil.systems.bodies.forms import held_supports
from hil.systems.bodies.skeleton import Skeleton


class Peer:
    """Pinocchio's accelerations of a skeleton whose root's centre of mass is at rest at 0.

    Its frames are at joints; results are for centres of mass, as in `systems.bodies.forms`.
    """

    def __init__(self, skeleton: Skeleton) -> None:
        import pinocchio as pin

        self._pin, self.skeleton = pin, skeleton
        self.order, carried = skeleton.tree()
        self._parents = [body.parent for body in carried]
        self._on_body = [
            np.array(body.own_m) if i else np.zeros(3) for i, body in enumerate(carried)
        ]
        self.model = pin.Model()
        self._ids: list[int] = []
        for i, body in enumerate(carried):
            if i == 0:
                kind, parent, place = pin.JointModelFreeFlyer(), 0, np.zeros(3)
            else:
                kind, parent = pin.JointModelSpherical(), self._ids[body.parent]
                place = np.array(body.at_m) - self._on_body[body.parent]
            joint = self.model.addJoint(parent, kind, pin.SE3(np.eye(3), place), f"joint{i}")
            inertia = pin.Inertia(body.mass_kg, -self._on_body[i], skeleton.J[self.order[i]])
            self.model.appendBodyToJoint(joint, inertia, pin.SE3.Identity())
            self._ids.append(joint)
        self.data = self.model.createData()

    def state(self, A: Array, omega: Array, torques: Array) -> tuple[Array, Array, Array]:
        """Return pinocchio's q, v and tau for attitudes, Omega and joint torques."""
        A, omega = A[self.order], omega[self.order]
        q, v, tau = [np.zeros(3)], [np.zeros(3)], [np.zeros(3)]
        for i, p in enumerate(self._parents):
            R = A[i] if p < 0 else A[p].T @ A[i]
            w, x, y, z = quaternion_of_attitude(R)
            q.append(np.array([x, y, z, w]))
            v.append(omega[i] if p < 0 else omega[i] - R.T @ omega[p])
            tau.append(np.zeros(3))
        place = {body: i for i, body in enumerate(self.order)}
        for joint, torque in zip(self.skeleton.joints, torques, strict=True):
            up, low = place[joint.upper], place[joint.lower]
            if self._parents[up] == low:
                tau[up + 1] = torque
            else:  # the tree's child is the joint's lower body: opposite torque, in its frame
                tau[low + 1] = -A[low].T @ A[up] @ torque
        return np.concatenate(q), np.concatenate(v), np.concatenate(tau)

    def accelerations(self, A: Array, omega: Array, torques: Array) -> tuple[Array, Array]:
        """Return V' (n, 3) of the centres of mass and Omega' (n, 3), without ground."""
        q, v, tau = self.state(A, omega, torques)
        return self._parts(q, v, self._pin.aba(self.model, self.data, q, v, tau))

    def standing(
        self, A: Array, omega: Array, torques: Array, held: Sequence[str]
    ) -> tuple[Array, Array, Array]:
        """Return the same with held points, and the ground's forces, from masses and Jacobians."""
        pin, model, data = self._pin, self.model, self.data
        q, v, tau = self.state(A, omega, torques)
        M = np.triu(pin.crba(model, data, q))
        M = M + np.triu(M, 1).T
        h = pin.nonLinearEffects(model, data, q, v)
        rows, drift = [], []
        pin.computeJointJacobians(model, data, q)
        pin.forwardKinematics(model, data, q, v, np.zeros(model.nv))
        for foot in held_supports(self.skeleton, held):
            i = self.order.index(foot.body)
            r = np.array(foot.at_m) - self._on_body[i]
            J = pin.getJointJacobian(model, data, self._ids[i], pin.ReferenceFrame.LOCAL)
            R = data.oMi[self._ids[i]].rotation
            rows.append(R @ (J[:3] + np.cross(np.eye(3), r).T @ J[3:]))
            drift.append(self._rate_at(i, r))
        B, k = np.concatenate(rows), 3 * len(rows)
        matrix = np.block([[M, -B.T], [B, np.zeros((k, k))]])
        solution = np.linalg.lstsq(
            matrix, np.concatenate((tau - h, -np.concatenate(drift))), rcond=1e-12
        )[0]
        V_rate, omega_rate = self._parts(q, v, solution[: model.nv])
        return V_rate, omega_rate, solution[model.nv :].reshape(-1, 3)

    def _parts(self, q: Array, v: Array, a: Array) -> tuple[Array, Array]:
        self._pin.forwardKinematics(self.model, self.data, q, v, a)
        V_rate, omega_rate = np.empty((2, self.skeleton.n, 3))
        for i, body in enumerate(self.order):
            V_rate[body] = self._rate_at(i, -self._on_body[i])
            omega_rate[body] = self.data.a[self._ids[i]].angular
        return V_rate, omega_rate

    def _rate_at(self, i: int, r: Array) -> Array:
        """Return the acceleration, in inertial axes, of body i's point at r from its joint."""
        speed, rate = self.data.v[self._ids[i]], self.data.a[self._ids[i]]
        of_point = rate.linear + np.cross(speed.angular, speed.linear)
        turn = np.cross(rate.angular, r) + np.cross(speed.angular, np.cross(speed.angular, r))
        turned: Array = self.data.oMi[self._ids[i]].rotation @ (of_point + turn)
        return turned
