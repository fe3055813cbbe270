"""Builds arm, plate and sensor from the impact rig's tables."""

from hil.errors import ModelError
from hil.systems.pantograph.contact import Plate
from hil.systems.pantograph.linkage import Pantograph, Parameters
from hil.systems.pantograph.system import PantographSystem, Sensor
from hil.systems.pantograph.tables import PantographTable


def build_arm(table: PantographTable) -> Pantograph:
    """Return the mechanism alone; ModelError for invalid values."""
    q1, q3 = table.q1_range_rad, table.q3_range_rad
    return Pantograph(
        Parameters(**table.arm.model_dump(exclude={"record"})),
        None if q1 is None else (q1[0], q1[1]),
        None if q3 is None else (q3[0], q3[1]),
    )


def build_pantograph(table: PantographTable, period_s: float) -> PantographSystem:
    """Return arm, plate and sensor as a plant or a twin; a ModelError names the key."""
    rig = build_arm(table)
    try:
        home = rig.inverse(table.home_m, table.elbows)
    except ModelError as error:
        raise ModelError(f"home_m: {error}") from None
    plate = Plate(**table.plate.model_dump(exclude={"record"}))
    return PantographSystem(
        rig, plate, home, Sensor(table.sensor_turned_rad), period_s, table.damping_N_m_s_per_rad
    )
