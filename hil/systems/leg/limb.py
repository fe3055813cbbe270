"""Parts of a limb: bodies, joints that connect them in a tree, muscles along paths.

At zero angles every body's axes are parallel to the ground's: x to the side, y forward, z up.
Points on a body are relative to its centre of mass.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from hil.errors import ModelError
from hil.mechanics.arrays import Vector
from hil.systems.leg.muscle import Hill

GROUND = "ground"


@dataclass(frozen=True)
class Body:
    """A rigid body; moments of inertia about its centre of mass, along its axes."""

    name: str
    mass_kg: float
    inertia_kg_m2: Vector


@dataclass(frozen=True)
class Joint:
    """Connects body `child` to `parent` (`ground` or another body) at a point of each.

    A spherical joint has three angles, about x, then the rotated y, then the rotated z; it is
    singular where the second is a right angle. Only revolute joints can have damping.
    """

    name: str
    kind: Literal["revolute", "spherical"]
    parent: str
    child: str
    at_parent_m: Vector
    at_child_m: Vector
    axis: Vector = (1.0, 0.0, 0.0)
    angles_rad: Sequence[float] = ()
    damping_N_m_s_per_rad: float = 0.0

    @property
    def n_angles(self) -> int:
        return 1 if self.kind == "revolute" else 3


@dataclass(frozen=True)
class PathPoint:
    """A point on a body, or on the ground."""

    body: str
    at_m: Vector


@dataclass(frozen=True)
class PathMuscle:
    """A muscle along straight lines through its points."""

    name: str
    hill: Hill
    path: tuple[PathPoint, ...]


@dataclass(frozen=True)
class Limb:
    """Bodies, one joint per body, and muscles; `order` sorts parents first.

    Raises
    ------
    ModelError
        A body has no joint or two joints, joints form a loop, a body is unknown, or a value is
        not physical. The message names the key.
    """

    bodies: tuple[Body, ...]
    joints: tuple[Joint, ...]
    muscles: tuple[PathMuscle, ...] = ()
    gravity_m_per_s2: Vector = (0.0, 0.0, -9.81)

    def __post_init__(self) -> None:
        names = [body.name for body in self.bodies]
        for body in self.bodies:
            low, middle, high = sorted(body.inertia_kg_m2)
            if not body.mass_kg > 0.0 or not low > 0.0:
                raise ModelError(f"bodies.{body.name}: mass and moments of inertia must be above 0")
            if high > low + middle + 1e-12:
                raise ModelError(
                    f"bodies.{body.name}.inertia_kg_m2: not physical, {high:g} with {low:g} and "
                    f"{middle:g}: the largest is at most the sum of the others"
                )
        for joint in self.joints:
            self._known(f"joints.{joint.name}.parent", joint.parent, [GROUND, *names])
            self._known(f"joints.{joint.name}.child", joint.child, names)
            if joint.kind == "revolute" and not np.any(joint.axis):
                raise ModelError(f"joints.{joint.name}.axis: must not be zero")
            if len(joint.angles_rad) not in (0, joint.n_angles):
                raise ModelError(
                    f"joints.{joint.name}.angles_rad: {len(joint.angles_rad)} given, a "
                    f"{joint.kind} joint has {joint.n_angles}"
                )
            if joint.kind == "spherical" and joint.damping_N_m_s_per_rad:
                raise ModelError(
                    f"joints.{joint.name}.damping_N_m_s_per_rad: is for revolute joints: remove it"
                )
        for name in names:
            n_joints = sum(joint.child == name for joint in self.joints)
            if n_joints != 1:
                raise ModelError(
                    f"bodies.{name}: is the child of {n_joints} joints: give every body one joint"
                )
        for muscle in self.muscles:
            for point in muscle.path:
                self._known(f"muscles.{muscle.name}.path", point.body, [GROUND, *names])
            if len(muscle.path) < 2:
                raise ModelError(f"muscles.{muscle.name}.path: give two points at least")
        self.order()

    @staticmethod
    def _known(key: str, name: str, names: list[str]) -> None:
        if name not in names:
            raise ModelError(f"{key}: there is no body '{name}': choose {', '.join(names)}")

    def order(self) -> tuple[Joint, ...]:
        """Return the joints in an order in which every parent precedes its children."""
        placed, ordered = {GROUND}, []
        waiting = list(self.joints)
        while waiting:
            ready = [joint for joint in waiting if joint.parent in placed]
            if not ready:
                names = ", ".join(joint.name for joint in waiting)
                raise ModelError(f"joints: {names} form a loop: connect one of them to the ground")
            ordered += ready
            placed |= {joint.child for joint in ready}
            waiting = [joint for joint in waiting if joint.child not in placed]
        return tuple(ordered)

    def body(self, name: str) -> Body:
        return next(body for body in self.bodies if body.name == name)

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Names of the angles, joint by joint in the order of `order()`."""
        return tuple(
            name
            for joint in self.order()
            for name in (
                (joint.name,)
                if joint.kind == "revolute"
                else tuple(f"{joint.name}_{axis}" for axis in "xyz")
            )
        )
