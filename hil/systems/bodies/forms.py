"""Accelerations and forces of a skeleton in three forms: free bodies, modules, projected.

With V the coordinates of a form, J its masses, h the acting forces, H the coefficient of the
constraint forces that remain, and H^T V' = -b the constraints (joints stay together, feet that
stand do not move)::

    J V' = h + H Gamma,    (H^T J^-1 H) Gamma = -(b + H^T J^-1 h)

Every form returns the forces that it keeps: those of all joints (`free_bodies`), those between
modules (`modules`), or those of the supports only (`projected`). `joint_forces` computes the forces
of all joints from the accelerations by Newton's law.

Source: Hemami & Hemami, eqs (12), (13), (19), (23); forces by elimination, Hemami & Wyman 1979.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike

from hil.errors import ModelError
from hil.mechanics.arrays import Array, Vector
from hil.mechanics.impact import independent_rows
from hil.mechanics.rotations import skew
from hil.systems.bodies.module import LINKS, PROJECTED
from hil.systems.bodies.skeleton import Joint, Skeleton, Support

STANDARD_GRAVITY: Vector = (0.0, 0.0, -9.81)


@dataclass(frozen=True)
class Acting:
    """State of a skeleton at an instant, and the torques and forces on it.

    Attributes
    ----------
    A : (n, 3, 3) attitudes
    omega : (n, 3) angular velocities, in the bodies' frames
    N : (n, 3) torques on the bodies, in their frames (see `Skeleton.paired`)
    held : names of the supports that stand still on the ground
    F : (n, 3) or None, forces at the centres of mass besides weight
    """

    A: Array
    omega: Array
    N: Array
    held: Sequence[str] = ()
    F: Array | None = None
    gravity: Vector = STANDARD_GRAVITY


@dataclass(frozen=True)
class Answer:
    """Result of a form.

    Attributes
    ----------
    V_rate : (n, 3) of the centres of mass, inertial
    omega_rate : (n, 3) in the bodies' frames
    support_N : (held, 3) ground force on each held support
    joint_N : (k, 3) forces of the joints that the form keeps: all, connections or none
    """

    V_rate: Array
    omega_rate: Array
    support_N: Array
    joint_N: Array


def held_supports(skeleton: Skeleton, names: Sequence[str]) -> list[Support]:
    """Return the supports of these names; ModelError for an unknown name."""
    known = {support.name: support for support in skeleton.supports}
    for name in names:
        if name not in known:
            has = ", ".join(known) or "none"
            raise ModelError(f"support '{name}': unknown name: choose {has}")
    return [known[name] for name in names]


def free_bodies(skeleton: Skeleton, now: Acting) -> Answer:
    """Solve with 108 coordinates of six modules, [V1, O1, V2, O2, ...], and all joint forces."""
    n, feet = skeleton.n, held_supports(skeleton, now.held)
    inverse = np.zeros((6 * n, 6 * n))
    h = np.zeros(6 * n)
    for m, module in enumerate(skeleton.modules):
        at, links = slice(18 * m, 18 * m + 18), slice(LINKS * m, LINKS * m + LINKS)
        inverse[at, at] = np.linalg.inv(module.J)
        F = None if now.F is None else now.F[links]
        h[at] = module.N(now.N[links], F) + module.f(now.omega[links]) + module.G(now.gravity)
    H, b = _ends(skeleton.joints, feet, now)
    V_rate, Gamma = _eliminated(lambda x: inverse @ x, h, H, b)
    k = 3 * len(skeleton.joints)
    parts = V_rate.reshape(n, 2, 3)
    return Answer(parts[:, 0], parts[:, 1], Gamma[k:].reshape(-1, 3), Gamma[:k].reshape(-1, 3))


def modules(skeleton: Skeleton, now: Acting) -> Answer:
    """Solve with 72 coordinates of six modules, [O1, Vm, O2, O3] each, and forces between them."""
    feet = held_supports(skeleton, now.held)
    masses, h, H_a, H_b = _modules(skeleton, now)
    joints = skeleton.connections
    H_c, b = _ends(joints, feet, now)
    H, size = np.zeros((PROJECTED * len(masses), H_c.shape[1])), len(masses)
    for m in range(size):
        rows = slice(PROJECTED * m, PROJECTED * (m + 1))
        H[rows] = H_a[m].T @ H_c[18 * m : 18 * m + 18]
        b = b + H_c[18 * m : 18 * m + 18].T @ H_b[m]
    factors = [scipy.linalg.cho_factor(J) for J in masses]

    def solve(x: Array) -> Array:
        parts = [
            scipy.linalg.cho_solve(factors[m], x[PROJECTED * m : PROJECTED * (m + 1)])
            for m in range(size)
        ]
        return np.concatenate(parts)

    V_n_rate, Gamma = _eliminated(solve, h, H, b)
    k = 3 * len(joints)
    V = np.concatenate(
        [H_a[m] @ V_n_rate[PROJECTED * m : PROJECTED * (m + 1)] + H_b[m] for m in range(size)]
    ).reshape(-1, 2, 3)
    return Answer(V[:, 0], V[:, 1], Gamma[k:].reshape(-1, 3), Gamma[:k].reshape(-1, 3))


def projected(skeleton: Skeleton, now: Acting) -> Answer:
    """Solve with 57 coordinates of six modules: those of the first and the others' attitudes.

    Of the constraint forces only those of the supports remain in the equations.
    """
    feet = held_supports(skeleton, now.held)
    masses, h, own_a, own_b = _modules(skeleton, now)
    H_a, H_b = strips(skeleton, now.A, now.omega)
    dimension = H_a[0].shape[1]
    J, right = np.zeros((dimension, dimension)), np.zeros(dimension)
    for m, strip in enumerate(H_a):
        J += strip.T @ masses[m] @ strip
        right += strip.T @ (h[PROJECTED * m : PROJECTED * (m + 1)] - masses[m] @ H_b[m])
    H_c, b = _ends((), feet, now)
    whole = np.concatenate([block @ strip for block, strip in zip(own_a, H_a, strict=True)])
    drift = np.concatenate([a @ x + y for a, x, y in zip(own_a, H_b, own_b, strict=True)])
    factor = scipy.linalg.cho_factor(J)
    V_rate, Gamma = _eliminated(
        lambda x: scipy.linalg.cho_solve(factor, x), right, whole.T @ H_c, b + H_c.T @ drift
    )
    V = (whole @ V_rate + drift).reshape(-1, 2, 3)
    return Answer(V[:, 0], V[:, 1], Gamma.reshape(-1, 3), np.zeros((0, 3)))


FORMS: dict[str, Callable[[Skeleton, Acting], Answer]] = {
    "free bodies": free_bodies,
    "modules": modules,
    "projected": projected,
}


def strips(skeleton: Skeleton, A: Array, omega: Array | None) -> tuple[list[Array], list[Array]]:
    """Return H_a1, H_a2, ... of eq (13): each module's [O1, Vm, O2, O3] from the projected ones.

    The columns are [O1, Vm, O2, O3] of the first module, then [O1, O2, O3] of every other. The
    second list holds the velocity-dependent terms of the rates; they are zero without `omega`.
    """
    dimension = skeleton.dimensions[2]
    columns = [0, 6, 9, *range(12, dimension, 3)]  # of the bodies' Omega
    H_a, H_b = [], []
    for m in range(len(skeleton.modules)):
        strip, drift = np.zeros((PROJECTED, dimension)), np.zeros(PROJECTED)
        middle = skeleton.C_m[LINKS * m + 1]
        strip[3:6, 3:6] = np.eye(3)
        for j in np.flatnonzero(middle.any(axis=1)):
            strip[3:6, columns[j] : columns[j] + 3] -= A[j] @ skew(middle[j])
            if omega is not None:
                drift[3:6] += A[j] @ np.cross(omega[j], np.cross(omega[j], middle[j]))
        for row, i in zip((0, 6, 9), range(LINKS), strict=True):
            at = columns[LINKS * m + i]
            strip[row : row + 3, at : at + 3] = np.eye(3)
        H_a.append(strip)
        H_b.append(drift)
    return H_a, H_b


def mass_matrix(skeleton: Skeleton, A: Array) -> Array:
    """Return the mass matrix of the projected form, (57, 57) for six modules."""
    H_a, _ = strips(skeleton, A, None)
    J = np.zeros((skeleton.dimensions[2],) * 2)
    for m, module in enumerate(skeleton.modules):
        whole = module.H_a(A[LINKS * m : LINKS * (m + 1)]) @ H_a[m]
        J += whole.T @ module.J @ whole
    return J


def support_rows(skeleton: Skeleton, A: Array, names: Sequence[str]) -> Array:
    """Return the map from projected coordinates to velocities of these supports, (3 k, 57)."""
    still = np.zeros((skeleton.n, 3))
    feet = held_supports(skeleton, names)
    H_c, _ = _ends((), feet, Acting(A, still, still))
    H_a, _ = strips(skeleton, A, None)
    whole = np.concatenate(
        [module.H_a(A[LINKS * m : LINKS * (m + 1)]) @ H_a[m]
         for m, module in enumerate(skeleton.modules)]
    )  # fmt: skip
    rows: Array = H_c.T @ whole
    return rows


def joint_forces(skeleton: Skeleton, now: Acting, answer: Answer) -> Array:
    """Return the force of every joint on its upper body, (joints, 3), by Newton's law.

    The bodies beyond a joint are accelerated by weight, applied forces, the ground, and the joint.
    """
    needed = skeleton.mass_kg[:, None] * (answer.V_rate - np.asarray(now.gravity))
    if now.F is not None:
        needed = needed - now.F
    for foot, force in zip(held_supports(skeleton, now.held), answer.support_N, strict=True):
        needed[foot.body] -= force
    forces = np.empty((len(skeleton.joints), 3))
    for k, joint in enumerate(skeleton.joints):
        beyond, others = {joint.upper}, [j for j in skeleton.joints if j is not joint]
        grown = True
        while grown:
            grown = False
            for other in others:
                if (other.lower in beyond) != (other.upper in beyond):
                    beyond |= {other.lower, other.upper}
                    grown = True
        forces[k] = needed[sorted(beyond)].sum(axis=0)
    return forces


def momentum_rates(skeleton: Skeleton, now: Acting, answer: Answer) -> tuple[Array, Array]:
    """Return d/dt of linear momentum, and of angular momentum about the centre of mass, (3,)."""
    push = skeleton.mass_kg[:, None] * answer.V_rate
    arm = skeleton.centres(now.A) - skeleton.centre_of_mass(now.A)
    spin = np.einsum("nij,nj->ni", skeleton.J, answer.omega_rate)
    spin = spin + np.cross(now.omega, np.einsum("nij,nj->ni", skeleton.J, now.omega))
    turn = np.cross(arm, push) + np.einsum("nij,nj->ni", now.A, spin)
    return push.sum(axis=0), turn.sum(axis=0)


def _modules(
    skeleton: Skeleton, now: Acting
) -> tuple[list[Array], Array, list[Array], list[Array]]:
    masses, h, H_a, H_b = [], [], [], []
    for m, module in enumerate(skeleton.modules):
        links = slice(LINKS * m, LINKS * m + LINKS)
        F = None if now.F is None else now.F[links]
        J, right = module.projected(now.A[links], now.omega[links], now.N[links], now.gravity, F)
        masses.append(J)
        h.append(right)
        H_a.append(module.H_a(now.A[links]))
        H_b.append(module.H_b(now.A[links], now.omega[links]))
    return masses, np.concatenate(h), H_a, H_b


def _ends(joints: Sequence[Joint], feet: Sequence[Support], now: Acting) -> tuple[Array, Array]:
    """Return H of the free bodies (eq (20)), and b, the velocity-dependent terms of H^T V'."""
    H = np.zeros((6 * len(now.A), 3 * (len(joints) + len(feet))))
    b = np.zeros(H.shape[1])
    ends = [(k, j.upper, j.upper_m, 1.0) for k, j in enumerate(joints)]
    ends += [(k, j.lower, j.lower_m, -1.0) for k, j in enumerate(joints)]
    ends += [(k, foot.body, foot.at_m, 1.0) for k, foot in enumerate(feet, start=len(joints))]
    for k, body, r, sign in ends:
        column, at, omega = slice(3 * k, 3 * k + 3), 6 * body, now.omega[body]
        H[at : at + 3, column] += sign * np.eye(3)
        H[at + 3 : at + 6, column] += sign * skew(r) @ now.A[body].T
        b[column] += sign * now.A[body] @ np.cross(omega, np.cross(omega, r))
    return H, b


def _eliminated(
    solve: Callable[[Array], Array], h: ArrayLike, H: Array, b: Array
) -> tuple[Array, Array]:
    """Return V' and Gamma by substituting the accelerations into the constraints.

    Several supports of one link make the equations singular: then Gamma is of least norm.
    """
    free = solve(np.asarray(h, dtype=float))
    if H.shape[1] == 0:
        return free, np.zeros(0)
    carried = np.column_stack([solve(column) for column in H.T])
    U = independent_rows(H.T)
    multipliers = scipy.linalg.solve(
        U.T @ H.T @ carried @ U, -U.T @ (b + H.T @ free), assume_a="pos"
    )
    Gamma = U @ multipliers
    return free + carried @ Gamma, Gamma
