"""Modules of three links connected by point joints into a tree: a body, a hand, a torso.

The first module keeps its translation; those of the others follow from it and from all attitudes:
every centre of mass is X_i = X_a + sum of A_j C_ij with constant C. With M modules there are 18 M
coordinates of free bodies, 12 M of modules, 12 + 9 (M - 1) projected: 108, 72 and 57 for six.

Source: Hemami & Hemami, section 4. Corrected misprints in (13): S11 for S2l and S21 (X22, X32),
A13 R13 for A23 R23, A13 S1* for A23 S1* and A12 S12 for A22 S12 (X42, X52, X62).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hil.errors import ModelError
from hil.mechanics.arrays import Array, Vector
from hil.mechanics.recursion import Carried
from hil.systems.bodies.module import LINKS, Link, Module


@dataclass(frozen=True)
class Joint:
    """A point joint between two bodies, given by index; points from the centres of mass."""

    name: str
    lower: int
    lower_m: Vector
    upper: int
    upper_m: Vector


@dataclass(frozen=True)
class Support:
    """A point of a body that can stand on the ground."""

    name: str
    body: int
    at_m: Vector


class Skeleton:
    """Modules, the connections between them, and their supports.

    Parameters
    ----------
    modules : in order; the first one keeps its translation
    connections : name to (lower, upper), each "module.link.point"
    supports : name to "module.link.point"

    Attributes
    ----------
    names : of the bodies, "module.link"
    joints : first the two within each module, module by module, then the connections
    C_m : (n, n, 3) array
        X_i = X_a + sum over j of A_j C_m[i, j]; X_a is the centre of the first module's link 2.

    Raises
    ------
    ModelError
        A connection refers to an unknown point, a module is not connected, or a loop is closed.
    """

    def __init__(
        self,
        modules: Sequence[Module],
        connections: Mapping[str, tuple[str, str]],
        supports: Mapping[str, str],
    ) -> None:
        if not modules:
            raise ModelError("modules: give at least one")
        for i, module in enumerate(modules):
            if module.name in [other.name for other in modules[:i]]:
                raise ModelError(f"modules: two are called '{module.name}': rename one")
        self.modules = tuple(modules)
        self._at = {module.name: i for i, module in enumerate(modules)}
        self.links: tuple[Link, ...] = tuple(link for m in modules for link in m.links)
        self.names = tuple(f"{m.name}.{link.name}" for m in modules for link in m.links)
        self.n = len(self.links)
        self.mass_kg = np.array([link.mass_kg for link in self.links], dtype=float)
        self.J = np.array([m.inertia(i) for m in modules for i in range(LINKS)])
        inner = [
            Joint(f"{m.name}.{m.links[i + 1].name}", LINKS * k + i, m.links[i].top_m,
                  LINKS * k + i + 1, m.links[i + 1].bottom_m)
            for k, m in enumerate(modules) for i in (0, 1)
        ]  # fmt: skip
        outer = [self._connection(name, ends) for name, ends in connections.items()]
        self.joints = (*inner, *outer)
        self.supports = tuple(
            Support(name, *self._place(f"supports.{name}", at)) for name, at in supports.items()
        )
        self.way = self._ways(outer)
        self.C_m = self._reaches(outer)

    @property
    def connections(self) -> tuple[Joint, ...]:
        """The joints between modules."""
        return self.joints[(LINKS - 1) * len(self.modules) :]

    @property
    def dimensions(self) -> tuple[int, int, int]:
        """Number of coordinates of the three forms."""
        m = len(self.modules)
        return 18 * m, 12 * m, 12 + 9 * (m - 1)

    def point(self, A: Array, body: int, r_m: Vector) -> Array:
        """Return the position of a point, from X_a."""
        at: Array = np.einsum("jik,jk->i", A, self.C_m[body]) + A[body] @ r_m
        return at

    def centres(self, A: Array) -> Array:
        """Return the centres of mass, (n, 3), from X_a."""
        X: Array = np.einsum("jab,ijb->ia", A, self.C_m)
        return X

    def lines(self, A: Array) -> Array:
        """Return a stick figure: ends of lines from X_a, (lines, 2, 3).

        The links come first, from bottom to top, then lines to connections that are not at a
        link's end.
        """
        X = self.centres(A)
        ends = [(i, link.bottom_m, link.top_m) for i, link in enumerate(self.links)]
        for joint in self.connections:
            for body, at, end in (
                (joint.lower, joint.lower_m, self.links[joint.lower].top_m),
                (joint.upper, joint.upper_m, self.links[joint.upper].bottom_m),
            ):
                if at not in (self.links[body].bottom_m, self.links[body].top_m):
                    ends.append((body, end, at))
        return np.array([[X[i] + A[i] @ r for r in pair] for i, *pair in ends])

    def centre_of_mass(self, A: Array) -> Array:
        """Return the total centre of mass, from X_a."""
        c: Array = self.mass_kg @ self.centres(A) / self.mass_kg.sum()
        return c

    def velocities(self, V_a: Array, A: Array, omega: Array) -> Array:
        """Return velocities of the centres of mass, (n, 3), from V_a and the rotations."""
        V: Array = V_a + np.einsum("jab,ijb->ia", A, np.cross(omega[None], self.C_m))
        return V

    def paired(self, A: Array, torques: Array) -> Array:
        """Return joint torques as torques on the bodies, each in its body's frame, (n, 3).

        Parameters
        ----------
        torques : (joints, 3)
            On the upper body, in the upper body's frame. The opposite torque on the lower body
            is transformed to its own frame; otherwise angular momentum is not conserved.
        """
        N = np.zeros((self.n, 3))
        for joint, torque in zip(self.joints, torques, strict=True):
            N[joint.upper] += torque
            N[joint.lower] -= A[joint.lower].T @ (A[joint.upper] @ torque)
        return N

    def tree(self) -> tuple[list[int], list[Carried]]:
        """Return the bodies for `hil.mechanics.recursion.Recursion`: order, and bodies.

        The root is the first module's link 2; `order[i]` is the skeleton's index of the tree's
        body i.
        """
        order: list[int] = []
        carried: list[Carried] = []
        nowhere = (0.0, 0.0, 0.0)
        todo = [(1, -1, nowhere, nowhere)]
        while todo:  # depth first: every branch is contiguous
            at, parent, r_link, r_parent = todo.pop()
            link = self.links[at]
            carried.append(Carried(parent, link.mass_kg, link.inertia_kg_m2, r_link, r_parent))
            order.append(at)
            came_from = order[parent] if parent >= 0 else -1
            for joint in self.joints:
                for one, r_one, other, r_other in (
                    (joint.lower, joint.lower_m, joint.upper, joint.upper_m),
                    (joint.upper, joint.upper_m, joint.lower, joint.lower_m),
                ):
                    if one == at and other != came_from:
                        todo.append((other, len(order) - 1, r_other, r_one))
        return order, carried

    def _place(self, key: str, text: str) -> tuple[int, Vector]:
        parts = text.split(".")
        if len(parts) != 3:
            raise ModelError(f"{key} = '{text}': give 'module.link.point'")
        module, link, point = parts
        if module not in self._at:
            raise ModelError(f"{key}: no module '{module}': choose {', '.join(self._at)}")
        m = self._at[module]
        names = [part.name for part in self.modules[m].links]
        if link not in names:
            raise ModelError(
                f"{key}: module '{module}' has no link '{link}': choose {', '.join(names)}"
            )
        i = names.index(link)
        try:
            return LINKS * m + i, self.modules[m].links[i].point(point)
        except ModelError as error:
            raise ModelError(f"{key}: {error}") from None

    def _connection(self, name: str, ends: tuple[str, str]) -> Joint:
        lower, lower_m = self._place(f"connections.{name}.lower", ends[0])
        upper, upper_m = self._place(f"connections.{name}.upper", ends[1])
        if lower // LINKS == upper // LINKS:
            raise ModelError(
                f"connections.{name}: joins module '{self.modules[lower // LINKS].name}' to "
                "itself, a closed loop: the three links of a module are joined already"
            )
        return Joint(name, lower, lower_m, upper, upper_m)

    def _ways(self, outer: Sequence[Joint]) -> dict[int, Joint]:
        """Return, for each module but the first, its connection towards the first, in order."""
        joined = list(range(len(self.modules)))
        for joint in outer:
            one, other = (joined[body // LINKS] for body in (joint.lower, joint.upper))
            if one == other:
                a, b = (self.modules[body // LINKS].name for body in (joint.lower, joint.upper))
                raise ModelError(
                    f"connections.{joint.name}: closes a loop: '{a}' and '{b}' are connected "
                    "already; a skeleton of modules is a tree"
                )
            joined = [one if to == other else to for to in joined]
        loose = [m.name for m, to in zip(self.modules, joined, strict=True) if to != joined[0]]
        if loose:
            raise ModelError(
                f"module '{loose[0]}': not connected to '{self.modules[0].name}': give a connection"
            )
        ways: dict[int, Joint] = {}
        reached = [0]
        for module in reached:
            for joint in outer:
                ends = joint.lower // LINKS, joint.upper // LINKS
                for near, far in (ends, ends[::-1]):
                    if near == module and far not in reached:
                        ways[far] = joint
                        reached.append(far)
        return ways

    def _reaches(self, outer: Sequence[Joint]) -> Array:
        C = np.zeros((self.n, self.n, 3))
        for m, module in enumerate(self.modules):  # from the module's own link 2
            for i in range(LINKS):
                for j, c in module.reach(i, (0.0, 0.0, 0.0)).items():
                    C[LINKS * m + i, LINKS * m + j] = c
        for m, joint in self.way.items():
            near, far = (joint.lower, joint.lower_m), (joint.upper, joint.upper_m)
            if near[0] // LINKS != m:
                near, far = far, near
            to_point = C[far[0]].copy()
            to_point[far[0]] += far[1]
            to_point -= C[near[0]]
            to_point[near[0]] -= near[1]
            C[LINKS * m : LINKS * (m + 1)] += to_point
        return C
