"""A skeleton in motion: on the ground with both feet, one or none, compiled.

The state is X_a and V_a of the middle link of the first module, and a quaternion and Omega for
every body, so no attitude is singular. The accelerations come from the recursion. A standing
point is held by a force f. The response to unit forces determines f such that the acceleration of
the point is -2 beta v - beta^2 (x - x_0)::

    L f = -(a + 2 beta v + beta^2 (x - x_0)),   L = the supports' accelerations by unit forces

beta only prevents the accumulation of rounding errors: its term is zero for a point at rest at x_0.

Several points of one link can stand. Their distances are fixed, so L is singular and the forces
along the lines between them are not determined; of all solutions the one of least norm is taken.

If a point reaches the ground with a speed towards it, an impact occurs at this time within the
step: the inert-constraint kernel (`hil.mechanics.impact`) with the mass matrix of the projected
form and the rows of all points that then stand. If the ground would have to pull a point, or hold
it by more than `friction` times the normal impulse, the impact follows unilateral contact with
Coulomb friction (`hil.mechanics.coulomb`).

A standing point that the ground would have to pull is released. One whose force leaves the cone of
friction slides: it is not held. While a point slides, the law of contact and friction is solved at
the end of every step for all points that touch the ground, with the impulses that held standing
points during the step as a part of theirs; it decides which of them stand, slide and lift off.
Such steps are of first order (the others of fourth). A point lifts off or begins to slide one step
late.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike, NDArray

from hil.errors import ModelError
from hil.mechanics.arrays import Array, Vector
from hil.mechanics.coulomb import coulomb_impulses
from hil.mechanics.impact import decompose, independent_rows
from hil.mechanics.recursion import Recursion
from hil.mechanics.rotations import attitude, attitude_of_quaternion, quaternion, quaternion_rate
from hil.systems.bodies.forms import STANDARD_GRAVITY, mass_matrix, support_rows
from hil.systems.bodies.joints import (
    HOLD,
    Hold,
    Joints,
    dual,
    rotation_vector,
)
from hil.systems.bodies.motion_kernel import (
    BETA_PER_S,
    Bodies,
    Ground,
    Scratch,
    rates,
    runge_kutta,
)
from hil.systems.bodies.skeleton import Skeleton

TOUCH_M = 1e-9
STICKS_m_per_s = 1e-9
STILL = 1e-7  # part of the largest acceleration of a support that counts as none
HELD = 1e-9  # part of the largest force by which the cone of friction may be left


@dataclass(frozen=True)
class Landing:
    """An impact: supports after it, impulses of the ground, energies before it.

    Attributes
    ----------
    stands : names of the supports that stand afterwards
    slides : names of the supports that slide on the ground afterwards
    let_go : names of supports that stood before and that the ground would have had to pull
    impulse_N_s : (len(stands) + len(slides), 3)
    T_c_J, T_a_J : kinetic energy that the impact removes, and that it leaves
    """

    stands: tuple[str, ...]
    slides: tuple[str, ...]
    let_go: tuple[str, ...]
    impulse_N_s: Array
    T_c_J: float
    T_a_J: float


class BodyMotion:
    """A skeleton in motion, stepped by the classical Runge-Kutta method.

    Attributes
    ----------
    X_a, V_a : (3,) arrays
    q, omega : (n, 4) and (n, 3) arrays, in the skeleton's order of bodies
    stands, slides : (supports,) bool arrays; a point that slides touches the ground but is not held
    support_N : (supports, 3) array, force of the ground on every support
    u : (joints + supports, 3) array, c : (joints + supports,) array
        Torques and co-activation of the joints, then of the supports' joints with the ground.
    paired : (joints + supports,) array, whether muscles with a strength move the joint
    a : (joints + supports, 3, 2) array, activations of pairs with a strength, a+ and a-
    landings : list of (t_s, Landing)
    lift_offs, slips : lists of (t_s, name)
        Standing points that the ground released, and points that began to slide.
    """

    def __init__(
        self, skeleton: Skeleton, holds: Sequence[Hold] | None = None, *,
        gravity: Vector = STANDARD_GRAVITY, theta: ArrayLike | None = None, friction: float = 1.0,
    ) -> None:  # fmt: skip
        """Start at rest; theta (n, 3) are Bryant angles (default 0), also the joints' rest.

        The lowest support is placed on the ground, with all other supports at the same height.
        """
        from scipy.optimize import brentq  # 0.3 s, which runs of other systems save

        self._root = brentq
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
        self._holds = np.array([hold.values() for hold in holds], HOLD)
        self.paired: NDArray[np.bool_] = self._holds["strength"] > 0.0
        self._feet = np.array([self._back[s.body] for s in skeleton.supports], dtype=np.int64)
        self._r = np.array([s.at_m for s in skeleton.supports], dtype=float).reshape(-1, 3)
        self._gravity, self.friction = np.array(gravity, dtype=float), friction
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
        self.a = np.zeros((len(ends), 3, 2))
        self.push_N = np.zeros((n, 3))
        self.stands, self.slides = np.zeros(m, dtype=np.bool_), np.zeros(m, dtype=np.bool_)
        self._anchor, self.support_N = np.zeros((m, 3)), np.zeros((m, 3))
        self._sliding_N = np.zeros((m, 3))  # impulses of the last step, over its length
        self._scratch = Scratch(np.zeros((4, len(self._x))), np.zeros((n, 66)), np.zeros((9, n, 3)))
        self.landings: list[tuple[float, Landing]] = []
        self.lift_offs: list[tuple[float, str]] = []
        self.slips: list[tuple[float, str]] = []
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
        """Set Bryant angles (n, 3); the joints' rest does not change."""
        self._q[:] = quaternion(theta)[self._order]

    def stand(self, names: Sequence[str]) -> None:
        """Set the supports that stand, at their current positions; ModelError for a wrong name."""
        known = [s.name for s in self.skeleton.supports]
        for name in names:
            if name not in known:
                has = ", ".join(known) or "none"
                raise ModelError(f"support '{name}': unknown name: choose {has}")
        self.stands[:] = [name in names for name in known]
        self.slides[:] = False
        self._anchor[:] = self.feet_m()

    def feet_m(self) -> Array:
        """Return the positions of the supports, (supports, 3)."""
        A = self.A
        return np.array(
            [self.X_a + self.skeleton.point(A, s.body, s.at_m) for s in self.skeleton.supports]
        ).reshape(-1, 3)

    def centre_of_mass_m(self) -> Array:
        centre: Array = self.X_a + self.skeleton.centre_of_mass(self.A)
        return centre

    def momenta(self) -> tuple[Array, Array]:
        """Return linear momentum, and angular momentum about the centre of mass."""
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
        """Return kinetic energy plus potential energy of height, without joint springs."""
        weight = self.skeleton.mass_kg.sum() * self._gravity
        return self.kinetic_J() - float(weight @ self.centre_of_mass_m())

    def fastest_per_s(self, c: ArrayLike) -> tuple[float, str]:
        """Return the fastest rate of the joints at co-activations c, and the dominant joint.

        It is the larger of two values: the largest eigenvalue of viscosities over masses, and
        twice the largest frequency of the stiffness. Classical Runge-Kutta steps are stable up to
        2.7 over this rate.
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
        rows[:, 2] *= np.sqrt(self._holds["twist"])[:, None]
        feet = support_rows(s, A, [f.name for f in s.supports])
        states = [(self._n_joints, np.eye(len(M)))]  # in the air the supports' joints are open
        if len(feet):
            states.append((len(rows), scipy.linalg.null_space(feet)))
        candidates = []
        for n, Z in states:
            some = rows[:n] @ Z
            for gain, power, times in ((viscosity[:n], 1.0, 1.0), (stiffness[:n], 0.5, 2.0)):
                K = np.einsum("k,kia,kib->ab", gain, some, some)
                values, vectors = scipy.linalg.eigh(K, Z.T @ M @ Z)
                share = gain * ((some @ vectors[:, -1]) ** 2).sum(axis=1)
                candidates.append(
                    (times * max(float(values[-1]), 0.0) ** power, int(np.argmax(share)))
                )
        fastest, which = max(candidates)
        names = [j.name for j in s.joints] + [f.name for f in s.supports]
        return fastest, names[which]

    def gains(self, c: Array) -> tuple[Array, Array]:
        """Return stiffness N m/rad and viscosity N m s/rad of every joint at co-activations c."""
        holds = self._holds
        by_pair = c * holds["k_a"]
        return holds["k_p"] + by_pair, holds["d_p"] + holds["tau"] * by_pair

    def pitches(self) -> tuple[Array, Array, Array]:
        """Return every joint's pitch phi_y, its slope by the relative rotation, and its rate.

        phi is the rotation vector of `hil.systems.bodies.joints`; phi_y' = slope . Omega_r, with
        the slope (joints + supports, 3) in the upper body's frame.
        """
        A, omega = attitude_of_quaternion(self._q), self._omega
        n = len(self._lower)
        phi, slope, rate = np.zeros(3), np.zeros((n, 3)), np.zeros(n)
        pitch = np.zeros(n)
        for k, (lo, up) in enumerate(zip(self._lower, self._upper, strict=True)):
            R = A[up] if lo < 0 else A[lo].T @ A[up]
            rotation_vector(self._rest[k].T @ R, phi)
            pitch[k], slope[k, 1] = phi[1], 1.0
            dual(phi, slope[k])
            rate[k] = slope[k] @ (omega[up] - (0.0 if lo < 0 else R.T @ omega[lo]))
        return pitch, slope, rate

    # Steps.

    def step(self, h_s: float) -> None:
        """Take one step; release points that the ground would pull or cannot hold, land others.

        A point that reaches the ground lands when it does, and the step continues from there.
        """
        before = self._x.copy()
        above = ~(self.stands | self.slides.any())
        if above.any():
            above &= self.feet_m()[:, 2] > TOUCH_M
        self._integrate(h_s)
        part_s = h_s
        if above.any() and self.feet_m()[above, 2].min() < 0.0:
            part_s = self._landing_s(before, above, h_s)
        self.t_s += part_s
        if self.slides.any():
            self._touch(np.zeros_like(self.stands), h_s)
            return
        pulled, slipping = self._leaving()
        for i in np.flatnonzero(pulled):
            self.lift_offs.append((self.t_s, self.skeleton.supports[i].name))
        self.stands &= ~(pulled | slipping)
        self.support_N[pulled] = 0.0
        self._slide(slipping)
        released = pulled | slipping
        if not (self.stands | released).all():
            self._touch(released, part_s)
        if part_s < (1.0 - 1e-9) * h_s:
            self.step(h_s - part_s)

    def _integrate(self, h_s: float) -> None:
        try:
            whole = runge_kutta(h_s, self._x, *self._acting())
        except np.linalg.LinAlgError:  # the supports' equations are not finite
            whole = False
        if not whole:
            raise ModelError(
                f"the body's motion has no finite state at t = {self.t_s + h_s:.4g} s: lower the "
                "step, the stiffness or the viscosity of its joints"
            )

    def _landing_s(self, before: Array, above: NDArray[np.bool_], h_s: float) -> float:
        """Move on from `before` until the first of these points is on the ground; return when."""

        def lowest_m(part_s: float) -> float:
            self._x[:] = before
            self._integrate(part_s)
            return float(self.feet_m()[above, 2].min())

        part_s = float(self._root(lowest_m, 0.0, h_s, xtol=1e-12 * h_s))
        lowest_m(part_s)
        return part_s

    def _leaving(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return which standing points lift off and which slide; `support_N` becomes admissible.

        The forces of least norm may leave the cones of friction where others, with the same
        accelerations, do not.
        """
        pulled, slipping = np.zeros_like(self.stands), np.zeros_like(self.stands)
        at = np.flatnonzero(self.stands)
        held = self.support_N[at]
        if not self._outside(held).any():
            return pulled, slipping
        A, names = self.A, [self.skeleton.supports[i].name for i in at]
        rows = support_rows(self.skeleton, A, names)
        M = mass_matrix(self.skeleton, A)
        L = rows @ self._carried(M, rows)
        needed = L @ held.ravel()
        force = coulomb_impulses(L, -needed, self.friction)
        left = (L @ force.ravel() - needed).reshape(-1, 3)  # acceleration that is not prevented
        moves = np.abs(left) > STILL * np.abs(needed).max()
        pulled[at] = moves[:, 2]
        slipping[at] = moves[:, :2].any(axis=1) & ~moves[:, 2]
        self.support_N[at] = force
        return pulled, slipping

    def _carried(self, M: Array, rows: Array) -> Array:
        """Return M^-1 rows^T; ModelError if rounding leaves nothing of it."""
        with warnings.catch_warnings():
            warnings.simplefilter("error", scipy.linalg.LinAlgWarning)
            try:
                carried: Array = scipy.linalg.solve(M, rows.T, assume_a="pos")
            except (np.linalg.LinAlgError, scipy.linalg.LinAlgWarning):
                raise ModelError(
                    f"modules: masses or moments of inertia differ too much at t = {self.t_s:.4g} "
                    "s to solve for the ground's forces: make the lightest links heavier"
                ) from None
        return carried

    def _outside(self, force: Array) -> NDArray[np.bool_]:
        """Return which of these forces or impulses (k, 3) the friction cannot give."""
        outside: NDArray[np.bool_] = np.hypot(force[:, 0], force[:, 1]) > (
            self.friction * force[:, 2] + HELD * np.abs(force).max(initial=0.0)
        )
        return outside

    def _slide(self, on: NDArray[np.bool_]) -> None:
        for i in np.flatnonzero(on & ~self.slides):
            self.slips.append((self.t_s, self.skeleton.supports[i].name))
        self.slides |= on

    def balance(self) -> None:
        """Update `support_N` to the current state; nothing moves."""
        rates(self._x, self._scratch.k[0], *self._acting())
        self.support_N += self._sliding_N
        self._leaving()

    def _acting(self) -> tuple[Bodies, Joints, Ground, Scratch]:
        """What acts on the body now."""
        closed = np.concatenate((np.ones(self._n_joints, dtype=np.bool_), self.stands))
        return (
            Bodies(self._parent, self._geo, self.push_N[self._order], self._gravity),
            Joints(
                self._lower, self._upper, self._holds, self._rest, closed, self.u, self.c, self.a
            ),
            Ground(self._feet, self._r, self.stands, self._anchor, self.support_N),
            self._scratch,
        )

    def _touch(self, released: NDArray[np.bool_], h_s: float) -> None:
        """Land points that reach the ground; solve for all that touch it if one slides."""
        sliding = self.slides & ~released
        height = self.feet_m()[:, 2]
        at = ~self.stands & ~released & (height <= TOUCH_M)
        if at.any():
            rows = support_rows(self.skeleton, self.A, [s.name for s in self.skeleton.supports])
            at &= rows[2::3] @ self.velocity() < 0.0
        fresh = at & ~sliding
        self.slides &= at | released
        self._sliding_N[:] = 0.0
        if not (at.any() or (sliding.any() and self.stands.any())):
            return
        before = self.velocity()
        held = self.support_N * h_s if sliding.any() else np.zeros_like(self.support_N)
        landing, impulse = self._impact(at, held, h_s)
        if fresh.any():
            self.landings.append((self.t_s, landing))
            return
        self.lift_offs += [(self.t_s, name) for name in landing.let_go]
        # The forces of sliding points act during the whole step: they also move the bodies.
        self._sliding_N[:] = (impulse - held) / h_s
        self.support_N[:] = impulse / h_s
        moved = 0.5 * h_s * (self.velocity() - before)
        self._x[:3] += moved[3:6]
        turned = np.concatenate((moved[:3], moved[6:])).reshape(-1, 3)[self._order]
        self._q[:] += quaternion_rate(self._q, turned)
        self._q[:] /= np.linalg.norm(self._q, axis=1, keepdims=True)

    def velocity(self) -> Array:
        """Return rates of the projected coordinates: [O1, Vm, O2, O3] of module 1, then Omega."""
        omega = self.omega
        return np.concatenate((omega[0], self.V_a, omega[1:].ravel()))

    def _impact(self, near: NDArray[np.bool_], held: Array, h_s: float) -> tuple[Landing, Array]:
        """Compute the impact of these points together with those that stand.

        `held` (supports, 3) are the impulses with which the ground has held points that stand
        during the step, where another point slid: the law of friction is that of their sum with
        the impact's. Return the impact, and these sums.
        """
        skeleton, A, before = self.skeleton, self.A, self.stands.copy()
        names = [s.name for s in skeleton.supports]
        at = np.flatnonzero(before | near)
        M, v = mass_matrix(skeleton, A), self.velocity()
        rows = support_rows(skeleton, A, [names[i] for i in at])
        basis = independent_rows(rows)
        split = decompose(M, basis.T @ rows, v)
        after, impulse = split.qdot_after, (basis @ split.impulse).reshape(-1, 3)
        speed = (rows @ after).reshape(-1, 3)
        if self._outside(impulse).any() or self.slides[at].any() or held.any():
            carried = self._carried(M, rows)
            free = v - carried @ held[at].ravel()
            u = rows @ free
            sliding = self.slides[at]
            # A sliding point returns to the ground at beta, from the height that it will have.
            height = self.feet_m()[at, 2] - 0.5 * h_s * u[2::3]
            u[2::3] += sliding * BETA_PER_S * height / (1.0 + 0.5 * h_s * BETA_PER_S)
            u = basis @ (basis.T @ u)  # points of one link keep their distances
            G = rows @ carried
            impulse = coulomb_impulses(G, u, self.friction)
            after = free + carried @ impulse.ravel()
            speed = (G @ impulse.ravel() + u).reshape(-1, 3)
        touches = (impulse[:, 2] > 0.0) | (speed[:, 2] < STICKS_m_per_s)
        sticks = touches & (np.hypot(speed[:, 0], speed[:, 1]) < STICKS_m_per_s)
        self._x[3:6] = after[3:6]
        self.set_omega(np.concatenate((after[:3], after[6:])).reshape(-1, 3))
        self.stands[:] = False
        self.stands[at[sticks]] = True
        slides = np.zeros_like(self.slides)
        slides[at[touches & ~sticks]] = True
        self.slides &= slides
        self._slide(slides)
        feet, fresh = self.feet_m(), self.stands & ~before
        self._anchor[fresh] = feet[fresh]
        self._anchor[fresh, 2] = 0.0
        self.support_N[~(self.stands | self.slides)] = 0.0
        everywhere = np.zeros_like(self.support_N)
        everywhere[at] = impulse
        energy = 0.5 * float(after @ M @ after)
        landing = Landing(
            tuple(names[i] for i in at[sticks]), tuple(names[i] for i in at[touches & ~sticks]),
            tuple(names[i] for i in at[before[at] & ~touches]),
            np.concatenate((impulse[sticks], impulse[touches & ~sticks])),
            0.5 * float(v @ M @ v) - energy, energy,
        )  # fmt: skip
        return landing, everywhere
