"""A skeleton as pinocchio's model: a free flyer and a spherical joint for every other body."""

import numpy as np

from hil.models.bodies.rotations import quaternion_of_attitude


class Peer:
    def __init__(self, skeleton):
        import pinocchio as pin

        self.pin, self.skeleton = pin, skeleton
        self.order, carried = skeleton.tree()
        self.parents = [body.parent for body in carried]
        self.model, self.ids = pin.Model(), []
        for i, body in enumerate(carried):
            own = np.array(body.own_m)
            if i == 0:
                kind, parent, place = pin.JointModelFreeFlyer(), 0, np.zeros(3)
            else:
                # Frames sit at joints here, points of the skeleton are from centres of mass.
                kind, parent = pin.JointModelSpherical(), self.ids[body.parent]
                place = np.array(body.at_m) - self._own(carried, body.parent)
            joint = self.model.addJoint(parent, kind, pin.SE3(np.eye(3), place), f"joint{i}")
            J = skeleton.J[self.order[i]]
            at = -own if i else np.zeros(3)
            self.model.appendBodyToJoint(
                joint, pin.Inertia(body.mass_kg, at, J), pin.SE3.Identity()
            )
            self.ids.append(joint)
        self.data = self.model.createData()
        self.carried = carried

    @staticmethod
    def _own(carried, i):
        return np.array(carried[i].own_m) if i else np.zeros(3)

    def state(self, A, omega, torques):
        """q, v and tau; the root's centre of mass at the origin and at rest."""
        A, omega = A[self.order], omega[self.order]
        q, v, tau = [np.zeros(3)], [np.zeros(3)], [np.zeros(3)]
        for i, p in enumerate(self.parents):
            R = A[i] if p < 0 else A[p].T @ A[i]
            w, x, y, z = quaternion_of_attitude(R)
            q.append([x, y, z, w])
            v.append(omega[i] if p < 0 else omega[i] - R.T @ omega[p])
            tau.append(np.zeros(3))
        place = {body: i for i, body in enumerate(self.order)}
        for joint, torque in zip(self.skeleton.joints, torques, strict=True):
            up, low = place[joint.upper], place[joint.lower]
            if self.parents[up] == low:
                tau[up + 1] = torque
            else:  # the tree's child is the joint's lower body: the opposite, in its frame
                tau[low + 1] = -A[low].T @ A[up] @ torque
        return np.concatenate(q), np.concatenate(v), np.concatenate(tau)

    def accelerations(self, A, omega, torques):
        q, v, tau = self.state(A, omega, torques)
        a = self.pin.aba(self.model, self.data, q, v, tau)
        return self._parts(q, v, a)

    def standing(self, A, omega, torques, held):
        """Accelerations and forces with points held, by its own masses and Jacobians."""
        pin, model, data = self.pin, self.model, self.data
        q, v, tau = self.state(A, omega, torques)
        M = pin.crba(model, data, q)
        M = np.triu(M) + np.triu(M, 1).T
        h = pin.nonLinearEffects(model, data, q, v)
        feet = [s for s in self.skeleton.supports if s.name in held]
        rows, drift = [], []
        pin.computeJointJacobians(model, data, q)
        pin.forwardKinematics(model, data, q, v, np.zeros(model.nv))
        for foot in feet:
            i = self.order.index(foot.body)
            r = np.array(foot.at_m) - self._own(self.carried, i)
            J = pin.getJointJacobian(model, data, self.ids[i], pin.ReferenceFrame.LOCAL)
            R = data.oMi[self.ids[i]].rotation
            rx = np.cross(np.eye(3), r)  # rx.T @ w = w x r
            rows.append(R @ (J[:3] + rx.T @ J[3:]))
            speed, rate = data.v[self.ids[i]], data.a[self.ids[i]]
            own = rate.linear + np.cross(speed.angular, speed.linear)
            turn = np.cross(rate.angular, r) + np.cross(speed.angular, np.cross(speed.angular, r))
            drift.append(R @ (own + turn))
        rows, drift = np.concatenate(rows), np.concatenate(drift)
        k = len(drift)
        matrix = np.block([[M, -rows.T], [rows, np.zeros((k, k))]])
        found = np.linalg.solve(matrix, np.concatenate((tau - h, -drift)))
        V_rate, omega_rate = self._parts(q, v, found[: model.nv])
        return V_rate, omega_rate, found[model.nv :].reshape(-1, 3)

    def _parts(self, q, v, a):
        pin, model, data = self.pin, self.model, self.data
        pin.forwardKinematics(model, data, q, v, a)
        V_rate, omega_rate = np.empty((2, self.skeleton.n, 3))
        for i, body in enumerate(self.order):
            R = data.oMi[self.ids[i]].rotation
            speed, rate = data.v[self.ids[i]], data.a[self.ids[i]]
            c = model.inertias[self.ids[i]].lever
            own = rate.linear + np.cross(speed.angular, speed.linear)
            turn = np.cross(rate.angular, c) + np.cross(speed.angular, np.cross(speed.angular, c))
            V_rate[body], omega_rate[body] = R @ (own + turn), rate.angular
        return V_rate, omega_rate
