"""The impact experiment on its rig: building the control stage, and checks."""

import numpy as np

from hil.config.table import same_named
from hil.errors import ModelError
from hil.experiment.kind import ControlInputs, ControllerKind, Faults, SystemRun
from hil.experiment.signal_pid import SIGNAL_PID
from hil.loop.channels import RigLayout
from hil.rig.instruments import channel_doubts, channel_of, layout_of, outputs_of, signals_of
from hil.rig.run_tables import RigTables
from hil.systems.pantograph.build import build_arm
from hil.systems.pantograph.control import Case, Gains, ImpactControl, Timing, Wiring
from hil.systems.pantograph.motion import ArmMotion, run_ups
from hil.systems.pantograph.system import PantographSystem
from hil.systems.pantograph.tables import ImpactTable, PantographTable

ANGLES, NORMAL, TANGENTIAL = PantographSystem.outputs[:2], *PantographSystem.outputs[2:4]
TORQUES = PantographSystem.inputs
FOLLOWED = (*ANGLES, NORMAL)  # signals that the impact experiment feeds back


def contact_m(table: ImpactTable, model: PantographTable) -> tuple[float, float]:
    """Return the point at which the tip meets the plate."""
    return table.contact_x_m, model.plate.y_m


def _control(run: SystemRun, layout: RigLayout) -> ImpactControl:
    """Return the control stage; ModelError for impacts that the arm cannot reach."""
    table, model, period_s = run.tables.controller, run.tables.model, run.period_s
    measured, outputs = signals_of(run.tables.devices), outputs_of(run.tables.devices)
    rig, timing, place = build_arm(model), same_named(Timing, table), contact_m(table, model)
    velocities, starts = run_ups(
        rig, place, model.elbows, table.gamma_deg, table.energy_J, timing.run_up_s
    )
    cases = [
        Case(float(np.deg2rad(gamma)), (v[0], v[1]), (start[0], start[1]))
        for gamma, v, start in zip(
            table.gamma_deg, velocities.tolist(), starts.tolist(), strict=True
        )
    ]
    at = {signal: layout.index(channel_of(measured, signal)) for signal in FOLLOWED}
    drives = [output.drives for output in outputs.values()]
    torques = drives.index(TORQUES[0]), drives.index(TORQUES[1])
    limits = list(outputs.values())
    return ImpactControl(
        arm=ArmMotion(rig, place, model.elbows, model.damping_N_m_s_per_rad),
        cases=cases,
        timing=timing,
        gains=same_named(Gains, table),
        wiring=Wiring(
            (at[ANGLES[0]], at[ANGLES[1]]), at[NORMAL], torques,
            min(min(limits[i].max, -limits[i].min) for i in torques),
        ),
        period_s=period_s,
    )  # fmt: skip


def check_angles(tables: RigTables, model: object) -> Faults:
    """Check that channels measure the angles that the observer needs."""
    measured = signals_of(tables.devices)
    for signal in ANGLES:
        if signal not in measured.values():
            yield (
                "devices",
                f"no channel measures '{signal}', by which the arm is followed: add one of kind "
                f"'encoder' with signal = '{signal}'",
            )


def _build(inputs: ControlInputs) -> ImpactControl:
    return _control(inputs, inputs.layout)


def _check(run: SystemRun) -> Faults:
    tables, table, model = run.tables, run.tables.controller, run.tables.model
    if tables.reference is not None:
        yield "reference", "the impact experiment sets its own set points: remove it"
    measured, outputs = signals_of(tables.devices), outputs_of(tables.devices)
    if any(check_angles(tables, run.model)):
        return  # the rig's check reports this
    missing = [s for s in (NORMAL, TANGENTIAL) if s not in measured.values()]
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
        text = str(error).partition(": ")[2]
        yield f"controller.contact_x_m = {table.contact_x_m:g}", f"{text} (y is the plate's)"
        return
    try:
        control = _control(run, layout_of(tables, ()))
    except ModelError as error:
        yield "controller", str(error)
        return
    if run.duration_s < control.duration_s - run.period_s:
        yield (
            f"experiment.duration_s = {run.duration_s:g}",
            f"{control.n_trials} impacts take up to {control.duration_s:.2f} "
            "s: make it longer, or repeats smaller",
        )


def doubts(tables: RigTables) -> list[str]:
    """Return a warning for each feedback signal that several channels measure."""
    return channel_doubts(signals_of(tables.devices), FOLLOWED)


CONTROLLERS = {**SIGNAL_PID, "impact": ControllerKind(
    ImpactTable, _build, _check, sections="hil.systems.pantograph.report:sections"
)}  # fmt: skip
