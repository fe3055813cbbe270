"""Three links in a row, connected at two points: the module from which bodies are built.

Link 1 is the lowest. R is the joint below a link, S the joint above, both from its centre of mass.
As free bodies, V = [V1, O1, V2, O2, V3, O3] (18)::

    J V' = N + f + G + H_c Gamma

Every joint's force Gamma pushes its upper body and pulls its lower body: legs push the torso (+),
arms and neck hang on it (-). In the projection on V_n = [O1, Vm, O2, O3] (12), with V = H_a V_n and
V' = H_a V_n' + H_b, the forces of the two joints within the module drop out (H_d = H_a^T H_c is
zero for them)::

    H_a^T J H_a V_n' = H_a^T (N + f + G + H_c Gamma - J H_b)

Source: Hemami & Hemami, appendix A, eqs (16)-(23). Corrected misprints: (16) Gamma_13 for Gamma_23,
S11 for S1l, R1r and R1l for R2r and R2l; (10) its last two blocks in the order of (11); (22) lists
all V before all Omega, against (11), (19) and (20), and its derivative multiplies [O1', Vm', O2',
O3']; H1_b R12 for R22; H1_d has seven columns, -S11 + R1l for -S1l + R11, +R12 A2^T in row O2, and
A3^T in row O3.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from hil.errors import ModelError
from hil.mechanics.arrays import Array, Vector
from hil.mechanics.one_body import checked_inertia
from hil.mechanics.rotations import skew

LINKS, FREE, PROJECTED = 3, 18, 12


@dataclass(frozen=True)
class Link:
    """One rigid body; points are from its centre of mass, in its frame.

    Attributes
    ----------
    inertia_kg_m2 : (3,) or (3, 3), about the centre of mass
    bottom_m, top_m
        R and S: the joints below and above.
    points : further points by name
    """

    name: str
    mass_kg: float
    inertia_kg_m2: ArrayLike
    bottom_m: Vector
    top_m: Vector
    points: Mapping[str, Vector] = field(default_factory=dict)

    def point(self, name: str) -> Vector:
        """Return the position of a point; ModelError for an unknown name."""
        everything = {"bottom": self.bottom_m, "top": self.top_m, **self.points}
        if name not in everything:
            raise ModelError(
                f"link '{self.name}' has no point '{name}': choose {', '.join(everything)}"
            )
        return everything[name]


@dataclass(frozen=True)
class End:
    """Point of a joint force: link 0, 1 or 2 at r; sign +1 on an upper body, -1 on a lower."""

    link: int
    r_m: Vector
    sign: float


class Module:
    """Three links and their matrices.

    Attributes
    ----------
    J : (18, 18) array, masses and moments of inertia of the free bodies
    inner : ((End, End), (End, End)), joints 2 (links 1 and 2) and 3 (links 2 and 3)
    """

    def __init__(self, name: str, links: Sequence[Link]) -> None:
        if len(links) != LINKS:
            raise ModelError(f"module '{name}' has {len(links)} links: give three")
        if len({link.name for link in links}) != LINKS:
            raise ModelError(f"module '{name}': its links need three different names")
        self.name = name
        self.links = tuple(links)
        self.mass_kg = np.array([link.mass_kg for link in links], dtype=float)
        self.J = np.zeros((FREE, FREE))
        for i, link in enumerate(links):
            if not link.mass_kg > 0.0:
                raise ModelError(
                    f"module '{name}', link '{link.name}': mass_kg = {link.mass_kg}: must be "
                    "above 0"
                )
            try:
                J = checked_inertia(link.inertia_kg_m2)
            except ModelError as error:
                raise ModelError(f"module '{name}', link '{link.name}': {error}") from None
            self.J[6 * i : 6 * i + 3, 6 * i : 6 * i + 3] = link.mass_kg * np.eye(3)
            self.J[6 * i + 3 : 6 * i + 6, 6 * i + 3 : 6 * i + 6] = J
        one, two, three = links
        self.inner = (
            (End(1, two.bottom_m, 1.0), End(0, one.top_m, -1.0)),
            (End(2, three.bottom_m, 1.0), End(1, two.top_m, -1.0)),
        )

    def inertia(self, link: int) -> Array:
        """Return the inertia (3, 3) in the link's frame."""
        J: Array = self.J[6 * link + 3 : 6 * link + 6, 6 * link + 3 : 6 * link + 6]
        return J

    def f(self, omega: Array) -> Array:
        """Return [0, -O1 x J1 O1, ...] (18)."""
        out = np.zeros(FREE)
        for i in range(LINKS):
            out[6 * i + 3 : 6 * i + 6] = -np.cross(omega[i], self.inertia(i) @ omega[i])
        return out

    def G(self, gravity: ArrayLike) -> Array:
        """Return the weights (18)."""
        out = np.zeros(FREE)
        for i in range(LINKS):
            out[6 * i : 6 * i + 3] = self.mass_kg[i] * np.asarray(gravity, dtype=float)
        return out

    def N(self, torques: ArrayLike, forces: ArrayLike | None = None) -> Array:
        """Return torques (3, 3) in the links' frames and forces at centres of mass as (18,)."""
        out = np.zeros((LINKS, 6))
        out[:, 3:] = torques
        if forces is not None:
            out[:, :3] = forces
        return out.ravel()

    def H_c(self, A: Array, joints: Sequence[Sequence[End]]) -> Array:
        """Return the coefficient (18, 3 k) of joint forces, each given by its ends; eq (20)."""
        H = np.zeros((FREE, 3 * len(joints)))
        for k, ends in enumerate(joints):
            for end in ends:
                at, column = 6 * end.link, slice(3 * k, 3 * k + 3)
                H[at : at + 3, column] += end.sign * np.eye(3)
                H[at + 3 : at + 6, column] += end.sign * skew(end.r_m) @ A[end.link].T
        return H

    def H_a(self, A: Array) -> Array:
        """Return H_a of V = H_a V_n; (18, 12), from the holonomic constraints (21)."""
        one, two, three = self.links
        H = np.zeros((FREE, PROJECTED))
        for i in range(LINKS):
            H[6 * i : 6 * i + 3, 3:6] = np.eye(3)
        H[0:3, 0:3] = A[0] @ skew(one.top_m)
        H[0:3, 6:9] = -A[1] @ skew(two.bottom_m)
        H[12:15, 6:9] = -A[1] @ skew(two.top_m)
        H[12:15, 9:12] = A[2] @ skew(three.bottom_m)
        H[3:6, 0:3] = H[9:12, 6:9] = H[15:18, 9:12] = np.eye(3)
        return H

    def H_b(self, A: Array, omega: Array) -> Array:
        """Return the velocity-dependent part of V' = H_a V_n' + H_b; (18,)."""
        one, two, three = self.links

        def inward(i: int, r: Vector) -> Array:
            turned: Array = A[i] @ np.cross(omega[i], np.cross(omega[i], r))
            return turned

        H = np.zeros(FREE)
        H[0:3] = inward(1, two.bottom_m) - inward(0, one.top_m)
        H[12:15] = inward(1, two.top_m) - inward(2, three.bottom_m)
        return H

    def H_d(self, A: Array, joints: Sequence[Sequence[End]]) -> Array:
        """Return the coefficient of forces in the projected form, H_a^T H_c; (12, 3 k)."""
        H: Array = self.H_a(A).T @ self.H_c(A, joints)
        return H

    def projected(
        self, A: Array, omega: Array, torques: Array, gravity: ArrayLike,
        forces: ArrayLike | None = None,
    ) -> tuple[Array, Array]:  # fmt: skip
        """Return mass matrix (12, 12) and right side (12,) of eq (23), without joint forces."""
        H_a = self.H_a(A)
        pushed = self.N(torques, forces) + self.f(omega) + self.G(gravity)
        return H_a.T @ self.J @ H_a, H_a.T @ (pushed - self.J @ self.H_b(A, omega))

    def reach(self, link: int, r_m: Vector) -> dict[int, Array]:
        """Return a point's position from Xm, the sum of A_j c_j, as {link j: c_j}; eq (21)."""
        one, two, three = (
            (np.asarray(part.bottom_m), np.asarray(part.top_m)) for part in self.links
        )
        r = np.asarray(r_m, dtype=float)
        if link == 0:
            return {0: r - one[1], 1: two[0]}
        if link == 1:
            return {1: r}
        return {1: two[1], 2: r - three[0]}
