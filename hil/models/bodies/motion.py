"""A skeleton in motion: on the ground with both feet, one or none, compiled.

The state is X_a and V_a of the first module's middle, a quaternion and Omega for every body: no
attitude is singular. Accelerations are the recursion's. A point that stands is held by a force f on
it, found from what unit forces do to it, so that its acceleration is -2 beta v - beta^2 (x - x_0)::

    L f = -(a + 2 beta v + beta^2 (x - x_0)),   L = the supports' accelerations by unit forces

beta only keeps rounding from adding up: its force is nought on a point that has not moved.

A point that reaches the ground with a speed towards it is an impact: the inert-constraint kernel
(`hil.models.impact`) with the masses of the projected form and the rows of all points that then
stand; a point on which the ground would have to pull (impulse or force) is let go.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numba import njit
from numpy.typing import ArrayLike, NDArray

from hil.models.bodies.forms import STANDARD_GRAVITY, mass_matrix, support_rows
from hil.models.bodies.joints import D_P, K_A, K_P, TAU, TWIST, Hold, joint_torques
from hil.models.bodies.module import Vector
from hil.models.bodies.recursion import Recursion, accelerations
from hil.models.bodies.rotations import attitude, attitude_of_quaternion, quaternion
from hil.models.bodies.skeleton import Skeleton
from hil.models.impact import decompose
from hil.models.network import ModelError

Array = NDArray[np.float64]
BETA_PER_S = 50.0  # assumed; far below the step's rate, far above a body's own
TOUCH_M = 1e-9
LOST = 0.5  # what a step may do to the square of a quaternion


@dataclass(frozen=True)
class Landing:
    """An impact: who stands after it, what the ground gave, energies before it.

    Attributes
    ----------
    stands : names of the supports that stand afterwards
    let_go : of those that stood before and the ground would have had to pull
    impulse_N_s : (len(stands), 3)
    T_c_J, T_a_J : what the impact takes, what it leaves
    """

    stands: tuple[str, ...]
    let_go: tuple[str, ...]
    impulse_N_s: Array
    T_c_J: float
    T_a_J: float


class BodyMotion:
    """A skeleton that moves, stepped by classical Runge-Kutta.

    Attributes
    ----------
    t_s : float
    X_a, V_a : (3,) arrays
    q, omega : (n, 4) and (n, 3) arrays
        In the skeleton's order of bodies.
    stands : (supports,) bool array
    support_N : (supports, 3) array
        Force of the ground on every support.
    u : (joints + supports, 3) array, c : (joints + supports,) array
        Torques and co-activation that the joints, then the supports' own with the ground, have.
    landings : list of (t_s, Landing)
    lift_offs : list of (t_s, name)
    """

    def __init__(
        self, skeleton: Skeleton, holds: Sequence[Hold] | None = None, *,
        gravity: Vector = STANDARD_GRAVITY, theta: ArrayLike | None = None,
    ) -> None:  # fmt: skip
        """At rest; theta (n, 3) are Bryant angles, by default 0, which are also the joints' rest.

        The lowest support is put on the ground and with it all at its height.
        """
        self.skeleton, n = skeleton, skeleton.n
        ends = [(j.lower, j.upper) for j in skeleton.joints]
        ends += [(-1, s.body) for s in skeleton.supports]
        holds = [Hold()] * len(ends) if holds is None else list(holds)
        if len(holds) != len(ends):
            raise ModelError(f"{len(holds)} joints' values given: {len(ends)} are there")
        order, carried = skeleton.tree()
        self._order = np.array(order)
        self._back = np.argsort(self._order)
        tree = Recursion(carried)
        self._parent, self._geo = tree.parent, tree.geo
        self._lower = np.array([-1 if a < 0 else self._back[a] for a, _ in ends], dtype=np.int64)
        self._upper = np.array([self._back[b] for _, b in ends], dtype=np.int64)
        self._table = np.array([hold.row() for hold in holds]).reshape(-1, 5)
        self._feet = np.array([self._back[s.body] for s in skeleton.supports], dtype=np.int64)
        self._r = np.array([s.at_m for s in skeleton.supports], dtype=float).reshape(-1, 3)
        self._gravity = np.array(gravity, dtype=float)
        self._n_joints = len(skeleton.joints)
        self.t_s = 0.0
        angles = np.zeros((n, 3)) if theta is None else np.asarray(theta, dtype=float)
        self._x = np.zeros(6 + 7 * n)
        self._q[:] = quaternion(angles)[self._order]
        A = attitude(angles)[self._order]
        self._rest = np.array([
            A[up] if lo < 0 else A[lo].T @ A[up]
            for lo, up in zip(self._lower, self._upper, strict=True)
        ]).reshape(-1, 3, 3)  # fmt: skip
        m = len(self._feet)
        self.u, self.c = np.zeros((len(ends), 3)), np.zeros(len(ends))
        self.push_N = np.zeros((n, 3))
        self.stands = np.zeros(m, dtype=np.bool_)
        self._anchor, self.support_N = np.zeros((m, 3)), np.zeros((m, 3))
        self._scratch = np.zeros((4, len(self._x))), np.zeros((n, 66)), np.zeros((9, n, 3))
        self.landings: list[tuple[float, Landing]] = []
        self.lift_offs: list[tuple[float, str]] = []
        if m:
            heights = self.feet_m()[:, 2]
            self._x[2] -= heights.min()
            self.stand([s.name for s, z in zip(skeleton.supports, heights, strict=True)
                        if z - heights.min() < TOUCH_M])  # fmt: skip

    # State, in the skeleton's order.

    @property
    def X_a(self) -> Array:
        return self._x[:3]

    @property
    def V_a(self) -> Array:
        return self._x[3:6]

    @property
    def _q(self) -> Array:
        return self._x[6 : 6 + 4 * self.skeleton.n].reshape(-1, 4)

    @property
    def _omega(self) -> Array:
        return self._x[6 + 4 * self.skeleton.n :].reshape(-1, 3)

    @property
    def A(self) -> Array:
        """Attitudes (n, 3, 3)."""
        return attitude_of_quaternion(self._q)[self._back]

    @property
    def omega(self) -> Array:
        """(n, 3), in the bodies' frames; a copy."""
        return self._omega[self._back]

    def set_omega(self, omega: ArrayLike) -> None:
        self._omega[:] = np.asarray(omega, dtype=float)[self._order]

    def set_attitudes(self, theta: ArrayLike) -> None:
        """Bryant angles (n, 3); the joints' rest stays as it was."""
        self._q[:] = quaternion(theta)[self._order]

    def stand(self, names: Sequence[str]) -> None:
        """The supports that stand, where they are now; ModelError for a name that is not there."""
        known = [s.name for s in self.skeleton.supports]
        for name in names:
            if name not in known:
                has = ", ".join(known) or "none"
                raise ModelError(f"support '{name}': there is none of this name: choose {has}")
        self.stands[:] = [name in names for name in known]
        self._anchor[:] = self.feet_m()

    def feet_m(self) -> Array:
        """Where the supports are, (supports, 3)."""
        A = self.A
        return np.array(
            [self.X_a + self.skeleton.point(A, s.body, s.at_m) for s in self.skeleton.supports]
        ).reshape(-1, 3)

    def centres_m(self) -> Array:
        """Centres of mass, (n, 3)."""
        centres: Array = self.X_a + self.skeleton.centres(self.A)
        return centres

    def centre_of_mass_m(self) -> Array:
        centre: Array = self.X_a + self.skeleton.centre_of_mass(self.A)
        return centre

    def momenta(self) -> tuple[Array, Array]:
        """Linear momentum, and angular momentum about the centre of mass."""
        s, A, omega = self.skeleton, self.A, self.omega
        V = s.velocities(self.V_a, A, omega)
        p = s.mass_kg @ V
        arm = s.centres(A) - s.centre_of_mass(A)
        spin = np.einsum("nij,njk,nk->i", A, s.J, omega)
        return p, np.cross(arm, s.mass_kg[:, None] * V).sum(axis=0) + spin

    def kinetic_J(self) -> float:
        s, omega = self.skeleton, self.omega
        V = s.velocities(self.V_a, self.A, omega)
        return 0.5 * float(
            s.mass_kg @ (V**2).sum(axis=1) + np.einsum("ni,nij,nj", omega, s.J, omega)
        )

    def energy_J(self) -> float:
        """Kinetic and of height; not that of the joints' springs."""
        weight = self.skeleton.mass_kg.sum() * self._gravity
        return self.kinetic_J() - float(weight @ self.centre_of_mass_m())

    def fastest_per_s(self, c: ArrayLike) -> tuple[float, str]:
        """The joints' fastest rate at co-activations c, and the joint that has most part in it.

        The larger of the viscosities' largest eigenvalue over the masses and twice the stiffness's
        largest frequency; classical Runge-Kutta steps stand 2.7 of it.
        """
        s, A = self.skeleton, self.A
        M = mass_matrix(s, A)
        stiffness, viscosity = self.gains(np.asarray(c, dtype=float))
        columns = [0, 6, 9, *range(12, len(M), 3)]
        rows = np.zeros((len(stiffness), 3, len(M)))
        ends = [(j.lower, j.upper) for j in s.joints] + [(-1, f.body) for f in s.supports]
        for row, (lower, upper) in zip(rows, ends, strict=True):
            row[:, columns[upper] : columns[upper] + 3] = np.eye(3)
            if lower >= 0:
                row[:, columns[lower] : columns[lower] + 3] = -A[upper].T @ A[lower]
        rows[:, 2] *= np.sqrt(self._table[:, TWIST])[:, None]
        feet = support_rows(s, A, [f.name for f in s.supports])
        states = [(self._n_joints, np.eye(len(M)))]  # in the air the supports' joints are open
        if len(feet):
            states.append((len(rows), scipy.linalg.null_space(feet)))
        found = []
        for n, Z in states:
            some = rows[:n] @ Z
            for gain, power, times in ((viscosity[:n], 1.0, 1.0), (stiffness[:n], 0.5, 2.0)):
                K = np.einsum("k,kia,kib->ab", gain, some, some)
                values, vectors = scipy.linalg.eigh(K, Z.T @ M @ Z)
                share = gain * ((some @ vectors[:, -1]) ** 2).sum(axis=1)
                found.append((times * max(float(values[-1]), 0.0) ** power, int(np.argmax(share))))
        fastest, which = max(found)
        names = [j.name for j in s.joints] + [f.name for f in s.supports]
        return fastest, names[which]

    def gains(self, c: Array) -> tuple[Array, Array]:
        """Stiffness N m/rad and viscosity N m s/rad of every joint at co-activations c."""
        t = self._table
        return t[:, K_P] + c * t[:, K_A], t[:, D_P] + t[:, TAU] * c * t[:, K_A]

    # Steps.

    def step(self, h_s: float) -> None:
        """One step; supports that the ground would have to pull are let go, others land."""
        k, w, three = self._scratch
        try:
            whole = _rk4(
                h_s, self._x, k, self._parent, self._geo, w, three, self._lower, self._upper,
                self._table, self._rest, self._closed(), self.u, self.c, self.push_N[self._order],
                self._gravity, self._feet, self._r, self.stands, self._anchor, self.support_N,
            )  # fmt: skip
        except np.linalg.LinAlgError:  # supports of numbers that are none
            whole = False
        self.t_s += h_s
        if not whole:
            raise ModelError(
                f"the body's motion has no finite state at t = {self.t_s:.4g} s: lower the step, "
                "the stiffness or the viscosity of its joints"
            )
        pulled = self.stands & (self.support_N[:, 2] < 0.0)
        for i in np.flatnonzero(pulled):
            self.lift_offs.append((self.t_s, self.skeleton.supports[i].name))
        self.stands &= ~pulled
        self.support_N[pulled] = 0.0
        if not (self.stands | pulled).all():
            self._touch(pulled)

    def balance(self) -> None:
        """Bring `support_N` up to the state as it is now; nothing moves."""
        k, w, three = self._scratch
        _rates(
            self._x, k[0], self._parent, self._geo, w, three, self._lower, self._upper,
            self._table, self._rest, self._closed(), self.u, self.c, self.push_N[self._order],
            self._gravity, self._feet, self._r, self.stands, self._anchor, self.support_N,
        )  # fmt: skip

    def _closed(self) -> NDArray[np.bool_]:
        return np.concatenate((np.ones(self._n_joints, dtype=np.bool_), self.stands))

    def _touch(self, let_go: NDArray[np.bool_]) -> None:
        at = self.feet_m()
        near = ~self.stands & ~let_go & (at[:, 2] <= 0.0)
        if not near.any():
            return
        rows = support_rows(self.skeleton, self.A, [s.name for s in self.skeleton.supports])
        towards = rows[2::3] @ self.velocity()
        near &= towards < 0.0
        if near.any():
            self.landings.append((self.t_s, self.land(near)))

    def velocity(self) -> Array:
        """Projected coordinates' rates: [O1, Vm, O2, O3] of the first module, then Omega."""
        omega = self.omega
        return np.concatenate((omega[0], self.V_a, omega[1:].ravel()))

    def land(self, near: NDArray[np.bool_]) -> Landing:
        """An impact of these supports, beside those that stand already."""
        skeleton, A = self.skeleton, self.A
        before, names = self.stands.copy(), [s.name for s in skeleton.supports]
        on = before | near
        M, v = mass_matrix(skeleton, A), self.velocity()
        while True:
            at = np.flatnonzero(on)
            split = decompose(M, support_rows(skeleton, A, [names[i] for i in at]), v)
            impulse = split.impulse.reshape(-1, 3)
            pulled = at[impulse[:, 2] < 0.0]
            if len(pulled) == 0 or len(at) == 1:
                break
            on[pulled[np.argmin(impulse[impulse[:, 2] < 0.0, 2])]] = False
        after = split.qdot_after
        self._x[3:6] = after[3:6]
        self.set_omega(np.concatenate((after[:3], after[6:])).reshape(-1, 3))
        self.stands[:] = on
        feet = self.feet_m()
        fresh = on & ~before
        self._anchor[fresh] = feet[fresh]
        self._anchor[fresh, 2] = 0.0
        gone = tuple(names[i] for i in np.flatnonzero(before & ~on))
        self.support_N[~on] = 0.0
        return Landing(
            tuple(names[i] for i in np.flatnonzero(on)), gone, impulse, float(split.T_c_J),
            float(split.T_a_J),
        )  # fmt: skip


@njit(cache=True, error_model="numpy")
def _attitudes(q, A):  # type: ignore[no-untyped-def]
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
def _cross(a, b, out):  # type: ignore[no-untyped-def]
    out[0] = a[1] * b[2] - a[2] * b[1]
    out[1] = a[2] * b[0] - a[0] * b[2]
    out[2] = a[0] * b[1] - a[1] * b[0]


@njit(cache=True, error_model="numpy")
def _rates(  # type: ignore[no-untyped-def]
    x, dx, parent, geo, w, three, lower, upper, table, rest, closed, u, c, push, gravity, feet, r,
    stands, anchor, support_N,
):  # fmt: skip
    """State's derivative; support_N is filled."""
    n, m = len(parent), len(feet)
    q, omega = x[6 : 6 + 4 * n].reshape(n, 4), x[6 + 4 * n :].reshape(n, 3)
    dq, domega = dx[6 : 6 + 4 * n].reshape(n, 4), dx[6 + 4 * n :].reshape(n, 3)
    A = np.empty((n, 3, 3))
    _attitudes(q, A)
    N, F, V_rate, omega_rate, Gamma = three[0], three[1], three[2], three[3], three[4]
    joint, speed, N0, F0 = three[5], three[6], three[7], three[8]
    N0[:] = 0.0
    F0[:] = push
    joint_torques(lower, upper, table, rest, closed, A, omega, u, c, N0)
    rest_a = (0.0, 0.0, 0.0)
    support_N[:] = 0.0
    k = 3 * np.sum(stands)
    at, arm, spin, lever, z = np.empty(3), np.empty(3), np.empty(3), np.empty(3), np.empty(3)
    free, L, on = np.empty(k), np.empty((k, k)), np.empty(k // 3, dtype=np.int64)
    j = 0
    for s in range(m):
        if stands[s]:
            on[j] = s
            j += 1
    still = np.zeros((n, 3))
    # Without the ground; then with a unit force on each axis of each support; then with the forces
    # found. One place calls the recursion, which compiles only once that way.
    for turn in range(k + 2 if k > 0 else 1):
        unit = turn - 1
        whole = turn == 0 or unit == k
        g = (gravity[0], gravity[1], gravity[2]) if whole else (0.0, 0.0, 0.0)
        if whole:
            N[:] = N0
            F[:] = F0
        else:
            N[:] = 0.0
            F[:] = 0.0
            free_axis = unit % 3
            _push(A, N, F, feet[on[unit // 3]], r[on[unit // 3]],
                  1.0 if free_axis == 0 else 0.0, 1.0 if free_axis == 1 else 0.0,
                  1.0 if free_axis == 2 else 0.0, arm, lever)  # fmt: skip
        if unit == k:
            f = np.linalg.solve(L, free)
            for i in range(k // 3):
                s = on[i]
                for a in range(3):
                    support_N[s, a] = f[3 * i + a]
                _push(A, N, F, feet[s], r[s], f[3 * i], f[3 * i + 1], f[3 * i + 2], arm, lever)
        moving = omega if whole else still
        accelerations(parent, geo, False, A, moving, N, F, g, rest_a, w, V_rate, omega_rate, Gamma)
        if turn == 0 and k > 0:
            # Places and speeds of the joints, from the root outwards: w holds omega, c, d.
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
                _point_rate(A, omega, V_rate, omega_rate, b, r[s], z)
                _cross(w[b, 0:3], lever, spin)
                for a in range(3):
                    gone = joint[b, a] + lever[a] - anchor[s, a]
                    slide = speed[b, a] + spin[a]
                    free[3 * i + a] = -(z[a] + 2.0 * BETA_PER_S * slide + BETA_PER_S**2 * gone)
        elif not whole:
            for i in range(k // 3):
                _point_rate(A, still, V_rate, omega_rate, feet[on[i]], r[on[i]], z)
                for a in range(3):
                    L[3 * i + a, unit] = z[a]
    for a in range(3):
        dx[a] = x[3 + a]
        dx[3 + a] = V_rate[0, a]
    for i in range(n):
        a, b, d, e = q[i, 0], q[i, 1], q[i, 2], q[i, 3]
        o, p, s = omega[i, 0], omega[i, 1], omega[i, 2]
        dq[i, 0] = 0.5 * (-b * o - d * p - e * s)
        dq[i, 1] = 0.5 * (a * o + d * s - e * p)
        dq[i, 2] = 0.5 * (a * p + e * o - b * s)
        dq[i, 3] = 0.5 * (a * s + b * p - d * o)
        for a3 in range(3):
            domega[i, a3] = omega_rate[i, a3]


@njit(cache=True, error_model="numpy")
def _push(A, N, F, b, r, fx, fy, fz, arm, lever):  # type: ignore[no-untyped-def]
    """Add a force on a body's point: at its centre of mass, with the torque r x A^T f."""
    F[b, 0] += fx
    F[b, 1] += fy
    F[b, 2] += fz
    for a in range(3):
        arm[a] = A[b, 0, a] * fx + A[b, 1, a] * fy + A[b, 2, a] * fz
    _cross(r, arm, lever)
    for a in range(3):
        N[b, a] += lever[a]


@njit(cache=True, error_model="numpy")
def _point_rate(A, omega, V_rate, omega_rate, b, r, out):  # type: ignore[no-untyped-def]
    """Acceleration of a body's point: V' + A (Omega' x r + Omega x (Omega x r))."""
    own, inner, outer = np.empty(3), np.empty(3), np.empty(3)
    _cross(omega_rate[b], r, own)
    _cross(omega[b], r, inner)
    _cross(omega[b], inner, outer)
    for a in range(3):
        out[a] = V_rate[b, a]
        for e in range(3):
            out[a] += A[b, a, e] * (own[e] + outer[e])


@njit(cache=True, error_model="numpy")
def _rk4(  # type: ignore[no-untyped-def]
    h, x, k, parent, geo, w, three, lower, upper, table, rest, closed, u, c, push, gravity, feet, r,
    stands, anchor, support_N,
):  # fmt: skip
    """One step of the state x; False where it blew up. support_N is that of its beginning."""
    n = len(parent)
    y, first = np.empty(len(x)), np.empty_like(support_N)
    for stage in range(4):
        ahead = 0.0 if stage == 0 else (h if stage == 3 else 0.5 * h)
        for i in range(len(x)):
            y[i] = x[i] + (ahead * k[stage - 1, i] if stage > 0 else 0.0)
        _rates(
            y, k[stage], parent, geo, w, three, lower, upper, table, rest, closed, u, c, push,
            gravity, feet, r, stands, anchor, support_N,
        )  # fmt: skip
        if stage == 0:
            first[:] = support_N
    support_N[:] = first
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
