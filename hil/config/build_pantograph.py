"""The impact rig's tables -> plant, observer's model, and control stage."""

from collections.abc import Iterator, Mapping

import numpy as np

from hil.config import schema
from hil.config.instruments import channel_of
from hil.config.pantograph import ImpactTable, PantographTable
from hil.control.impact import Case, Gains, ImpactControl, Timing
from hil.models import ModelError
from hil.models.pantograph import Pantograph, Parameters
from hil.models.pantograph_contact import Plate
from hil.models.pantograph_motion import ArmMotion, run_ups
from hil.models.pantograph_system import PantographSystem, Sensor
from hil.slots import RigLayout

ANGLES, NORMAL, TANGENTIAL = PantographSystem.outputs[:2], *PantographSystem.outputs[2:4]
TORQUES = PantographSystem.inputs
FOLLOWED = (*ANGLES, NORMAL)  # signals that the impact experiment feeds back


def build_arm(table: PantographTable) -> Pantograph:
    """The mechanism alone; ModelError where its values make none."""
    q1, q3 = table.q1_range_rad, table.q3_range_rad
    return Pantograph(
        Parameters(**table.arm.model_dump(exclude={"record"})),
        None if q1 is None else (q1[0], q1[1]),
        None if q3 is None else (q3[0], q3[1]),
    )


def build_pantograph(table: PantographTable, period_s: float) -> PantographSystem:
    """Arm, plate and sensor as a plant or a twin; ModelError naming the key."""
    rig = build_arm(table)
    try:
        home = rig.inverse(table.home_m, table.elbows)
    except ModelError as error:
        raise ModelError(f"home_m: {error}") from None
    plate = Plate(**table.plate.model_dump(exclude={"record"}))
    return PantographSystem(
        rig, plate, home, Sensor(table.sensor_turned_rad), period_s, table.damping_N_m_s_per_rad
    )


def contact_m(table: ImpactTable, model: PantographTable) -> tuple[float, float]:
    """Where the tip meets the plate."""
    return table.contact_x_m, model.plate.y_m


def timing_of(table: ImpactTable) -> Timing:
    """How long the phases last."""
    return Timing(
        table.travel_s, table.rest_s, table.accelerate_s, table.cruise_s, table.coast_s,
        table.contact_s, table.retreat_s, table.miss_s,
    )  # fmt: skip


def build_impact_control(
    table: ImpactTable, model: PantographTable, measured: Mapping[str, str], layout: RigLayout,
    outputs: Mapping[str, schema.ActuatorTable], period_s: float,
) -> ImpactControl:  # fmt: skip
    """The control stage of the impact experiment.

    Parameters
    ----------
    measured : the signal of every channel
    layout : where the channels stand among the readings
    outputs : of every card, in the order of the commands

    Raises
    ------
    ModelError
        Impacts that the arm cannot reach.
    """
    rig, timing, place = build_arm(model), timing_of(table), contact_m(table, model)
    velocities, starts = run_ups(
        rig, place, model.elbows, table.gamma_deg, table.energy_J, timing.run_up_s
    )
    cases = [
        Case(float(np.deg2rad(gamma)), (v[0], v[1]), (start[0], start[1]))
        for gamma, v, start in zip(
            table.gamma_deg, velocities.tolist(), starts.tolist(), strict=True
        )
    ]
    at = {signal: layout.slot(channel_of(measured, signal)) for signal in FOLLOWED}
    drives = [output.drives for output in outputs.values()]
    torques = drives.index(TORQUES[0]), drives.index(TORQUES[1])
    limits = list(outputs.values())
    return ImpactControl(
        arm=ArmMotion(rig, place, model.elbows, model.damping_N_m_s_per_rad),
        cases=cases,
        repeats=table.repeats,
        timing=timing,
        gains=Gains(
            table.k_p_N_m_per_rad, table.k_i_N_m_per_rad_s, table.k_d_N_m_s_per_rad,
            table.derivative_filter_s,
        ),
        touch_N=table.touch_N,
        torque_max_N_m=min(min(limits[i].max, -limits[i].min) for i in torques),
        period_s=period_s,
        angles=(at[ANGLES[0]], at[ANGLES[1]]),
        normal=at[NORMAL],
        torques=torques,
    )  # fmt: skip


def check_impact(
    table: ImpactTable, model: schema.AnyModelTable, measured: Mapping[str, str],
    layout: RigLayout, outputs: Mapping[str, schema.ActuatorTable], period_s: float,
    duration_s: float,
) -> Iterator[tuple[str, str]]:  # fmt: skip
    """The experiment against its rig: (key, text) pairs."""
    if not isinstance(model, PantographTable):
        yield "controller.kind = 'impact'", "is for a model of kind pantograph"
        return
    missing = [s for s in (*ANGLES, NORMAL, TANGENTIAL) if s not in measured.values()]
    drives = {output.drives for output in outputs.values()}
    for signal in missing:
        yield "devices", f"no channel measures '{signal}', which the impact experiment needs"
    for drive in TORQUES:
        if drive not in drives:
            yield "devices", f"no output drives '{drive}', which the impact experiment needs"
            missing.append(drive)
    if missing:
        return
    if table.coast_s >= table.cruise_s:
        yield (
            f"controller.coast_s = {table.coast_s:g}",
            f"is a part of cruise_s = {table.cruise_s:g}: choose a smaller one",
        )
    try:
        build_arm(model).inverse(contact_m(table, model), model.elbows)
    except ModelError as error:
        said = str(error).partition(": ")[2]
        yield f"controller.contact_x_m = {table.contact_x_m:g}", f"{said} (y is the plate's)"
        return
    try:
        control = build_impact_control(table, model, measured, layout, outputs, period_s)
    except ModelError as error:
        yield "controller", str(error)
        return
    if duration_s < control.duration_s - period_s:
        yield (
            f"experiment.duration_s = {duration_s:g}",
            f"{control.repeats * len(control.cases)} impacts take up to {control.duration_s:.2f} "
            "s: make it longer, or repeats smaller",
        )
