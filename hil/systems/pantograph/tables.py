"""The impact rig's tables: the arm on its plate, and the experiment."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from hil.config.table import NotNegative, Positive, Records, Table, as_list
from hil.systems.pantograph.contact import Plate
from hil.systems.pantograph.linkage import Elbows, Parameters

ARM, PLATE = Parameters(), Plate(0.0)
Place = Annotated[list[float], Field(min_length=2, max_length=2)]
Seconds = Annotated[float, Field(gt=0.0, le=60.0)]


class ArmTable(Table):
    """Lengths, positions of centres of mass, masses, inertias; defaults are Table II."""

    l_1_m: Positive = ARM.l_1_m
    l_2_m: Positive = ARM.l_2_m
    a_1_m: Positive = ARM.a_1_m
    a_2_m: Positive = ARM.a_2_m
    l_5_m: Positive = ARM.l_5_m
    m_1_kg: Positive = ARM.m_1_kg
    m_2_kg: Positive = ARM.m_2_kg
    m_EE_kg: Positive = ARM.m_EE_kg
    I_1_kg_m2: Positive = ARM.I_1_kg_m2
    I_2_kg_m2: Positive = ARM.I_2_kg_m2
    record: Records = None


class PlateTable(Table):
    """The plate, normal to y, and its contact (`hil.systems.pantograph.contact.Plate`)."""

    y_m: float
    k_N_per_m: Positive = PLATE.k_N_per_m
    alpha_s_per_m: NotNegative = PLATE.alpha_s_per_m
    mu: NotNegative = PLATE.mu
    slip_m_per_s: Positive = PLATE.slip_m_per_s
    step_s: Positive = PLATE.step_s
    record: Records = None


class PantographTable(Table):
    """A pantograph in front of a flat plate; it starts at rest with its tip at `home_m`.

    `q1_range_rad` and `q3_range_rad` are the motors' ranges: commands stay within them.
    `sensor_turned_rad` is the rotation of the force sensor from the plate's normal.
    """

    kind: Literal["pantograph"]
    home_m: Place
    elbows: Elbows = "outward"
    q1_range_rad: Place | None = None
    q3_range_rad: Place | None = None
    damping_N_m_s_per_rad: NotNegative = 0.0
    sensor_turned_rad: Annotated[float, Field(ge=-0.5, le=0.5)] = 0.0
    arm: ArmTable = ArmTable()
    plate: PlateTable


class ImpactTable(Table):
    """Impacts of the tip on the plate (`hil.systems.pantograph.control`).

    The tip meets the plate at `contact_x_m`, at each angle of `gamma_deg` in turn, with the
    kinetic energy `energy_J`, `repeats` times. `force_gain_uncertainty` (relative) and
    `sensor_turned_uncertainty_rad` are standard uncertainties that the report uses.
    """

    kind: Literal["impact"]
    contact_x_m: float
    gamma_deg: Annotated[list[float], BeforeValidator(as_list), Field(min_length=1, max_length=100)]
    energy_J: Positive = 0.01
    repeats: Annotated[int, Field(ge=1, le=1000)] = 1
    touch_N: Positive = 0.5
    travel_s: Seconds = 1.0
    rest_s: Seconds = 0.1
    accelerate_s: Seconds = 0.15
    cruise_s: Seconds = 0.15
    coast_s: NotNegative = 0.05
    contact_s: Seconds = 0.035
    retreat_s: Seconds = 0.35
    miss_s: Seconds = 0.05
    k_p_N_m_per_rad: NotNegative = 26.0
    k_i_N_m_per_rad_s: NotNegative = 100.0
    k_d_N_m_s_per_rad: NotNegative = 0.9
    derivative_filter_s: Positive = 0.005
    force_gain_uncertainty: NotNegative = 0.005
    sensor_turned_uncertainty_rad: NotNegative = 0.005
