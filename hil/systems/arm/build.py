"""Builds links, muscles and the system from the arm's tables."""

from collections.abc import Sequence

from hil.errors import ModelError
from hil.mechanics.muscle import Muscle
from hil.systems.arm.actuators import Cap, Path
from hil.systems.arm.links import LINKS, Arm, Link
from hil.systems.arm.system import PITCHES, ArmSystem, Pairs
from hil.systems.arm.tables import ArmTable


def build_arm(table: ArmTable) -> Arm:
    """Return links and gravity; a ModelError names the key."""
    upper_arm, forearm, hand = (
        Link(link.mass_kg, _three(link.inertia_kg_m2), link.com_m, link.length_m)
        for link in (table.links.upper_arm, table.links.forearm, table.links.hand)
    )
    try:
        return Arm((upper_arm, forearm, hand), table.gravity_m_per_s2, table.long_axis)
    except ModelError as error:
        raise ModelError(f"links.{error}") from None


def _three(values: Sequence[float]) -> tuple[float, float, float]:
    return values[0], values[1], values[2]


def _pairs(table: ArmTable) -> Pairs:
    return Pairs(_three(table.torque_max_N_m), _three(table.viscosity_N_m_s_per_rad))


def build_arm_system(table: ArmTable, period_s: float) -> ArmSystem:
    """Return the arm as a plant or a model; a ModelError names the key."""
    tendons = {}
    for name, tendon in table.tendons.items():
        caps = tuple(
            Cap(c.radius_m, LINKS.index(c.pitch), None if c.minus is None else LINKS.index(c.minus))
            for c in tendon.caps
        )
        muscle = Muscle(tendon.force_max_N, tendon.stiffness_N_per_m, tendon.viscosity_N_s_per_m)
        tendons[name] = muscle, Path(PITCHES, caps)
    return ArmSystem(build_arm(table), _pairs(table), table.start_rad, period_s, tendons)
