"""Soft structures as trees of rigid bodies with one joint each and viscoelastic elements.

Body i is connected to body `parent` (or the base) by a joint that rotates about or slides along an
axis. Its frame is at the joint; at q = 0 it is the parent's frame, shifted by `joint_at_m` and
rotated by `joint_turn`. Joints with more degrees of freedom are chains of massless bodies.

Source: Iwamura et al., Fig. 2.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hil.errors import ModelError
from hil.mechanics.arrays import Array, Vector
from hil.systems.soft.element import Element, Material

X_AXIS, Y_AXIS, Z_AXIS = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
STANDARD_GRAVITY = (0.0, -9.81, 0.0)
BASE_SIZE = 24  # R (9, by rows), p, omega, v, alpha, a of the base
PLANAR_TOLERANCE = 1e-12


@dataclass(frozen=True)
class Body:
    """A rigid body with its joint; lengths are in the body's frame unless noted.

    Attributes
    ----------
    parent : index of the parent body, smaller than its own; -1 for the base
    mass_kg, centre_m
        Mass, and position of its centre.
    inertia_kg_m2 : (3,) or (3, 3), about the centre
    joint_at_m, joint_turn
        Position of the joint in the parent's frame, and rotation of the frame there, (3, 3).
    axis, slides
        The joint rotates about this axis or slides along it.
    element : None for a free joint
    rest : q0 in rad (m)
    """

    parent: int
    mass_kg: float
    inertia_kg_m2: ArrayLike
    centre_m: Vector = (0.0, 0.0, 0.0)
    joint_at_m: Vector = (0.0, 0.0, 0.0)
    joint_turn: ArrayLike = field(default_factory=lambda: np.eye(3))
    axis: Vector = Z_AXIS
    slides: bool = False
    element: Element | None = None
    rest: float = 0.0

    @property
    def inertia(self) -> Array:
        """Inertia (3, 3) about the centre."""
        inertia = np.asarray(self.inertia_kg_m2, dtype=float)
        return np.diag(inertia) if inertia.shape == (3,) else inertia


@dataclass(frozen=True)
class Place:
    """A point fixed to a body (-1: to the world), in that body's frame."""

    body: int
    at_m: Vector


@dataclass(frozen=True)
class Tendon:
    """A massless line through places, straight in between and without friction.

    Tension T = T0 + k (l - l0) + c l', with the input T0; never below zero if it only pulls.
    A tendon between two places on the skin is a surface-mounted actuator.
    """

    places: tuple[Place, ...]
    k_N_per_m: float = 0.0
    c_N_s_per_m: float = 0.0
    pulls_only: bool = True


@dataclass(frozen=True)
class Ground:
    """A half-space that pushes places out: f = (k d + c d')+ along the normal, friction mu.

    Penalty contact at depth d; friction is Coulomb's, smoothed below `slip_m_per_s`. Steps of 1 ms,
    which `kernel` then takes in up to `pieces_max` pieces, leave 0.02 to 0.15 mrad in the joints of
    a rubber beam of 4 segments that hits a ground of 200 to 2000 N/m, and up to 1.2 mrad with 6
    segments after repeated impacts.
    """

    normal: Vector
    at_m: Vector
    k_N_per_m: float
    c_N_s_per_m: float = 0.0
    friction: float = 0.0
    slip_m_per_s: float = 1e-3
    pieces_max: int = 16


@dataclass(frozen=True)
class SoftTree:
    """Bodies with all inputs and external forces.

    Attributes
    ----------
    bodies : tuple of Body
    gravity_m_per_s2 : (3,)
    drives : tuple of int
        Joints whose q0, q0' and torque are inputs (a servo is an element with a moving q0).
    loads : tuple of Place, places where forces in world axes are inputs
    tendons : tuple of Tendon
    touching, grounds : tuple of Place, tuple of Ground
        Every ground acts on every one of these places.
    base_moves : the base's pose, velocity and acceleration are inputs

    Raises
    ------
    ModelError
        The parts do not form a model; the message names the body.
    """

    bodies: tuple[Body, ...]
    gravity_m_per_s2: Vector = STANDARD_GRAVITY
    drives: tuple[int, ...] = ()
    loads: tuple[Place, ...] = ()
    tendons: tuple[Tendon, ...] = ()
    touching: tuple[Place, ...] = ()
    grounds: tuple[Ground, ...] = ()
    base_moves: bool = False

    def __post_init__(self) -> None:
        if not self.bodies:
            raise ModelError("soft tree: there is no body")
        for i, body in enumerate(self.bodies):
            _check_body(f"body {i}", i, body)
        n = len(self.bodies)
        for joint in self.drives:
            if not 0 <= joint < n:
                raise ModelError(f"drive of joint {joint}: there are joints 0 to {n - 1}")
        for tendon in self.tendons:
            if len(tendon.places) < 2:
                raise ModelError("a tendon needs two places or more")
        places = [*self.loads, *self.touching, *(p for t in self.tendons for p in t.places)]
        for place in places:
            if not -1 <= place.body < n:
                raise ModelError(f"place on body {place.body}: there are bodies -1 to {n - 1}")
        _check_held(self)

    @property
    def n(self) -> int:
        """Number of joints, one per body."""
        return len(self.bodies)

    @cached_property
    def branch_joint(self) -> NDArray[np.int64]:
        """The joint of every Maxwell branch."""
        each = [
            i
            for i, b in enumerate(self.bodies)
            if b.element is not None
            for _ in b.element.branches
        ]
        return np.array(each, dtype=np.int64)

    @cached_property
    def is_planar(self) -> bool:
        """Whether every joint rotates about z; the bodies then move in planes under any force."""
        flat = not self.base_moves
        for body in self.bodies:
            turn = np.asarray(body.joint_turn, dtype=float)
            out = [turn[2, 0], turn[2, 1], *np.subtract(body.axis, Z_AXIS), body.joint_at_m[2]]
            flat = flat and not body.slides and bool(np.abs(out).max() < PLANAR_TOLERANCE)
        return flat

    @cached_property
    def inputs(self) -> list[str]:
        """Names of the inputs u, in order."""
        names = []
        for joint in self.drives:
            names += [f"q{joint}.rest_rad", f"q{joint}.rest_rad_per_s", f"q{joint}.torque_N_m"]
        for i in range(len(self.loads)):
            names += [f"load{i}.{axis}_N" for axis in "xyz"]
        names += [f"tendon{i}.T0_N" for i in range(len(self.tendons))]
        if self.base_moves:
            parts = [f"base.R{i}{j}" for i in range(3) for j in range(3)]
            for what in ("p", "omega", "v", "alpha", "a"):
                parts += [f"base.{what}_{axis}" for axis in "xyz"]
            names += parts
        return names

    def rest_input(self) -> Array:
        """Return the inputs with drives at rest, no load, slack tendons and a fixed base."""
        u = np.zeros(len(self.inputs))
        for i, joint in enumerate(self.drives):
            u[3 * i] = self.bodies[joint].rest
        if self.base_moves:
            u[-BASE_SIZE:] = still_base()
        return u


def still_base() -> Array:
    """Return the base at the origin, at rest."""
    base = np.zeros(BASE_SIZE)
    base[:9] = np.eye(3).ravel()
    return base


def turn_z(angle_rad: float) -> Array:
    """Return a rotation about z, (3, 3)."""
    c, s = np.cos(angle_rad), np.sin(angle_rad)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


@dataclass(frozen=True)
class Beam:
    """A straight beam of rectangular section along x, to be cut into segments.

    Attributes
    ----------
    width_m, height_m : along z and y
    """

    length_m: float
    width_m: float
    height_m: float
    material: Material

    def __post_init__(self) -> None:
        for name in ("length_m", "width_m", "height_m"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value > 0.0):
                raise ModelError(f"beam: {name} = {value}: must be above zero")

    @property
    def EI_z_N_m2(self) -> float:
        """Bending stiffness in the x-y plane."""
        return self.material.youngs_Pa * self.width_m * self.height_m**3 / 12.0

    @property
    def EI_y_N_m2(self) -> float:
        """Bending stiffness in the x-z plane."""
        return self.material.youngs_Pa * self.height_m * self.width_m**3 / 12.0

    def curvature_per_m(self, q: Array) -> Array:
        """Return the curvature at every joint, from joint angles (..., N) in one plane."""
        share = np.full(q.shape[-1], self.length_m / q.shape[-1])
        share[0] *= 0.5
        return np.asarray(q / share)

    def strain(self, q: Array) -> Array:
        """Return the strain of the skin, height/2 from the middle; positive: tension for q > 0."""
        return 0.5 * self.height_m * self.curvature_per_m(q)

    def segments(
        self,
        n: int,
        *,
        first: int,
        parent: int,
        joint_at_m: Vector = (0.0, 0.0, 0.0),
        joint_turn: ArrayLike | None = None,
        spatial: bool = False,
        tip_mass_kg: float = 0.0,
    ) -> list[Body]:
        """Return n equal blocks of length s, clamped to the parent.

        A joint represents the bending of the adjacent half segments: EI/s, and 2 EI/s at the
        clamp. Spatial segments bend about y, then z; the first of the two bodies has no mass.

        Parameters
        ----------
        first : index of the first of these bodies
        tip_mass_kg : point mass at the end of the last segment
        """
        if n < 1:
            raise ModelError(f"beam: {n} segments: give at least 1")
        s = self.length_m / n
        mass = self.material.density_kg_per_m3 * s * self.width_m * self.height_m
        inertia = block_inertia(mass, s, self.height_m, self.width_m)
        bodies: list[Body] = []
        hang, at, turn = parent, joint_at_m, np.eye(3) if joint_turn is None else joint_turn
        for i in range(n):
            over_s = (2.0 if i == 0 else 1.0) / s
            centre: Vector = (0.5 * s, 0.0, 0.0)
            whole: tuple[float, Vector, Array] = (mass, centre, inertia)
            if i == n - 1 and tip_mass_kg > 0.0:
                whole = with_point_mass(mass, centre, inertia, tip_mass_kg, (s, 0.0, 0.0))
            if spatial:
                element = self.material.element(self.EI_y_N_m2 * over_s)
                bodies.append(
                    Body(hang, 0.0, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), at, turn, Y_AXIS,
                         element=element)
                )  # fmt: skip
                hang, at, turn = first + len(bodies) - 1, (0.0, 0.0, 0.0), np.eye(3)
            element = self.material.element(self.EI_z_N_m2 * over_s)
            bodies.append(Body(hang, whole[0], whole[2], whole[1], at, turn, element=element))
            hang, at, turn = first + len(bodies) - 1, (s, 0.0, 0.0), np.eye(3)
        return bodies


def block_inertia(mass_kg: float, x_m: float, y_m: float, z_m: float) -> Array:
    """Return the inertia of a block with these edges about its centre."""
    squares = np.square([x_m, y_m, z_m])
    return np.asarray(np.diag(mass_kg * (squares.sum() - squares) / 12.0))


def with_point_mass(
    mass_kg: float, centre_m: Vector, inertia_kg_m2: ArrayLike, point_kg: float, at_m: Vector
) -> tuple[float, Vector, Array]:
    """Return mass, centre and inertia of a body with an additional point mass."""
    total = mass_kg + point_kg
    centre = (mass_kg * np.asarray(centre_m) + point_kg * np.asarray(at_m)) / total
    inertia = np.array(inertia_kg_m2, dtype=float)
    for m, at in ((mass_kg, centre_m), (point_kg, at_m)):
        d = np.asarray(at) - centre
        inertia = inertia + m * (d @ d * np.eye(3) - np.outer(d, d))
    return total, (float(centre[0]), float(centre[1]), float(centre[2])), inertia


def _check_body(name: str, i: int, body: Body) -> None:
    if not -1 <= body.parent < i:
        raise ModelError(f"{name}: its parent {body.parent} must come before it (-1: the base)")
    if not (np.isfinite(body.mass_kg) and body.mass_kg >= 0.0):
        raise ModelError(f"{name}: mass_kg = {body.mass_kg}: must not be negative")
    if body.inertia.shape != (3, 3):
        raise ModelError(f"{name}: inertia_kg_m2 must be (3,) or (3, 3)")
    if not np.linalg.eigvalsh(body.inertia).min() >= -1e-12 * np.abs(body.inertia).max():
        raise ModelError(f"{name}: inertia_kg_m2 must not be negative")
    if abs(np.linalg.norm(body.axis) - 1.0) > PLANAR_TOLERANCE:
        raise ModelError(f"{name}: axis {body.axis}: must have length 1")
    turn = np.asarray(body.joint_turn, dtype=float)
    if turn.shape != (3, 3) or np.abs(turn @ turn.T - np.eye(3)).max() > 1e-9:
        raise ModelError(f"{name}: joint_turn is not a rotation")


def _check_held(tree: SoftTree) -> None:
    """Check that every body has inertia; otherwise its joint's acceleration is infinite."""
    carried = [body.mass_kg for body in tree.bodies]
    for i in range(tree.n - 1, -1, -1):
        parent = tree.bodies[i].parent
        if carried[i] <= 0.0 and not np.any(tree.bodies[i].inertia):
            raise ModelError(f"body {i}: neither it nor what it carries has mass")
        if parent >= 0:
            carried[parent] += carried[i]
