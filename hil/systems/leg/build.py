"""Builds limbs (bodies, joints, muscles) from their tables."""

from hil.errors import ModelError
from hil.mechanics.arrays import Vector
from hil.systems.leg.limb import Body, Joint, Limb, PathMuscle, PathPoint
from hil.systems.leg.muscle import ActivationTimes, Hill
from hil.systems.leg.system import LimbSystem
from hil.systems.leg.tables import LimbTable, MuscleTable, PlaceTable


def build_limb(table: LimbTable) -> Limb:
    """Return bodies, joints and muscles; a ModelError names the key."""
    bodies = tuple(
        Body(name, b.mass_kg * b.mass_scale, _vector(b.inertia_kg_m2))
        for name, b in table.bodies.items()
    )
    joints = tuple(
        Joint(name, j.kind, j.parent, j.child, _vector(j.at_parent_m), _vector(j.at_child_m),
              _vector(j.axis), tuple(j.angles_rad), j.damping_N_m_s_per_rad)
        for name, j in table.joints.items()
    )  # fmt: skip
    muscles = tuple(_muscle(name, m) for name, m in table.muscles.items())
    return Limb(bodies, joints, muscles, _vector(table.gravity_m_per_s2))


def build_limb_system(table: LimbTable, period_s: float) -> LimbSystem:
    """Return the limb as a plant or a twin; a ModelError names the key."""
    points = {name: place(point) for name, point in table.points.items()}
    return LimbSystem(
        build_limb(table), points, period_s, activation_times(table), table.path_rates
    )


def activation_times(table: LimbTable) -> ActivationTimes | None:
    return None if table.activation is None else ActivationTimes(**table.activation.model_dump())


def _muscle(name: str, table: MuscleTable) -> PathMuscle:
    try:
        hill = Hill(**table.model_dump(exclude={"path"}))
    except ModelError as error:
        raise ModelError(f"muscles.{name}.{error}") from None
    return PathMuscle(name, hill, tuple(place(point) for point in table.path))


def place(table: PlaceTable) -> PathPoint:
    return PathPoint(table.body, _vector(table.at_m))


def _vector(values: list[float]) -> Vector:
    return values[0], values[1], values[2]
