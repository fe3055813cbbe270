"""Checks of a rig or an experiment with a cellular array; each finding is a (key, text) pair."""

from collections import Counter
from math import floor

import numpy as np

from hil.control.build import build_reference, build_signal, check_times
from hil.control.tables import (
    RampReferenceTable,
    ScheduleTable,
    SignalsReferenceTable,
    SignalTable,
    StepsReferenceTable,
    TraceReferenceTable,
)
from hil.devices.board.resistance import measures
from hil.devices.tables import ActuatorTable
from hil.errors import ModelError
from hil.experiment.kind import Faults, SystemRun
from hil.rig.instruments import boards_of, force_channels, receives_only, signals_of
from hil.rig.run_tables import RigTables, RunTables
from hil.systems.array.build import (
    LEVEL_MIN,
    build_activation,
    cell_indices,
    recruited_force_N,
    wires_of,
)
from hil.systems.array.build_force import force_signal, nominal_of
from hil.systems.array.build_recruitment import reachable_N, unknown_cells
from hil.systems.array.model.cell_array import CellArray
from hil.systems.array.model.wire_steps import STEPS_MAX, period_max_s, steps_per_period
from hil.systems.array.tables_recruitment import GroupsTable

RIG_ORDER_MAX = 4000


def check_rig(tables: RigTables, model: CellArray) -> Faults:
    """Check that the array can be simulated and that a channel measures its force."""
    if len(model.states) > RIG_ORDER_MAX:
        yield "model", f"order {len(model.states)}: a rig's model may have {RIG_ORDER_MAX} states"
    if model.floating:
        names = ", ".join(model.floating[0][:4])
        yield "model", f"no support holds {names}: fix a point or repair the broken cells around it"
    yield from _check_period(tables, model)
    measured = signals_of(tables.devices)
    forces = force_channels(tables.devices)
    if forces and tables.guard.force_max_N is None and not receives_only(tables.devices):
        yield "guard.force_max_N", "missing: add it"
    moves = any(signal.endswith("_m") for signal in measured.values())
    if measured and not forces and not moves:
        yield (
            "devices",
            "no channel of kind 'force' or 'displacement': nothing would measure what the array "
            "does: give the transducer's channel kind = 'force' and newtons_per_V or a record, or "
            "kind = 'displacement' and metres_per_V",
        )
    wired = wires_of(tables.model, model)
    for channel, signal in measured.items():
        cell = signal.removesuffix(".wire_C")
        if cell != signal and cell not in wired:
            yield f"channel '{channel}'", f"signal = '{signal}': '{cell}' has no wire in [model]"


def _check_period(tables: RigTables, model: CellArray) -> Faults:
    """Check that wires under stress can follow the period of the loop."""
    cells = enumerate(build_activation(tables.model))
    loaded = {n: one.loaded for n, one in cells if one.loaded is not None}
    if not loaded or not model.states:
        return
    period_s = tables.loop.period_s
    if steps_per_period(model, loaded, period_s) > STEPS_MAX:
        yield (
            "loop.period_s",
            f"{period_s:g} s is too long for wires under stress in an array whose oscillations "
            f"are this fast: give at most {floor(1e6 * period_max_s(model, loaded)) * 1e-6:g} s",
        )


def can_be_run(run: SystemRun) -> bool:
    """Return whether the rig is sound enough for the checks of an experiment."""
    model = run.model
    is_measured = force_signal(run.tables, model) in model.outputs
    return is_measured and not model.floating and len(model.states) <= RIG_ORDER_MAX


def check_run(run: SystemRun) -> Faults:
    """Check that the observer can be built for the controlled force."""
    tables = run.tables
    if not can_be_run(run):
        return
    nominal = nominal_of(tables, run.model)
    try:
        nominal.check_observer(tables.observer)
        nominal.tests(tables.observer)
        if tables.observer.cell_failures is not None and not _senses(tables):
            yield (
                "observer.cell_failures",
                "no board measures resistance, by which a wire that has not transformed is told "
                "from one that does not pull: give a board's limits sense_every_ms = 100, or test "
                "by force alone with observer.wire_failures",
            )
        if tables.observer.wires is not None:
            nominal.wires(tables.observer)
    except ModelError as error:
        yield "observer", str(error)


def _senses(tables: RunTables) -> bool:
    return any(measures(board.limits) for board in boards_of(tables.devices).values())


def check_reference(run: SystemRun) -> Faults:
    """Check that the set points are within reach of the cells and within the guard's limit."""
    tables, table = run.tables, run.tables.reference
    if isinstance(table, SignalsReferenceTable):
        yield "reference.kind = 'signals'", "is for rigs without cells: choose steps, ramp or sine"
    if table is None or isinstance(table, SignalsReferenceTable):
        return
    if not can_be_run(run):
        return
    if isinstance(table, StepsReferenceTable | RampReferenceTable | TraceReferenceTable):
        faults = list(check_times("reference", table.t_s, table.force_N, "force_N"))
        if faults:
            yield from faults
            return
    low_N, high_N = build_reference(table).extremes(run.duration_s)
    least_N, most_N = reachable_N(tables.controller, nominal_of(tables, run.model))
    if high_N > most_N * (1.0 + LEVEL_MIN) or low_N < least_N * (1.0 + LEVEL_MIN):
        grouped = isinstance(tables.controller, GroupsTable)
        which = "its groups' cells" if grouped else "cells"
        yield (
            "reference",
            f"asks for {low_N:g} to {high_N:g} N; all {which} on give {least_N:.4g} to "
            f"{most_N:.4g} N",
        )
    furthest_N = high_N if high_N >= -low_N else low_N
    if tables.guard.force_max_N is not None and abs(furthest_N) > tables.guard.force_max_N:
        yield (
            "reference",
            f"asks for {furthest_N:g} N, beyond guard.force_max_N = {tables.guard.force_max_N:g}",
        )


def check_schedule(table: ScheduleTable, model: CellArray) -> Faults:
    """Check that the cells of a schedule exist."""
    for i, step in enumerate(table.steps):
        for key, cells in (("on", step.on), ("off", step.off)):
            if cells != "all":
                yield from unknown_cells(f"controller.steps.{i}.{key}", cells, model)


def check_motion(key: str, curve: SignalTable, output: ActuatorTable, run: SystemRun) -> Faults:
    """Check that a curve stays within the range and the rate that the guard allows its output."""
    motion = build_signal(curve)
    low, high = motion.extremes(run.duration_s)
    if low < output.min or high > output.max:
        yield (
            key,
            f"moves from {low:g} to {high:g}, beyond min = {output.min:g} or max = {output.max:g} "
            "of the output: stay within them",
        )
    t_s = np.arange(0.0, run.duration_s, max(run.period_s, 1e-4 * run.duration_s))
    values = np.array([motion.at(float(t)) for t in t_s])
    fastest = float(np.abs(np.diff(values)).max() / t_s[1]) if len(t_s) > 1 else 0.0
    if values[0] != 0.0:
        yield key, f"begins at {values[0]:g}: begin at 0, where the output is"
    if fastest > output.rate_max_per_s * (1.0 + 1e-9):
        yield (
            key,
            f"moves at {fastest:.4g} per second, faster than rate_max_per_s = "
            f"{output.rate_max_per_s:g} of the output: make it slower",
        )


def check_order(run: SystemRun) -> Faults:
    """Check the recruitment order of a PID: known cells, no duplicates, none lowers the force."""
    table, model = run.tables.controller, run.model
    order: list[int | str] = table.order if table.order is not None else [*model.cell_names]
    unknown = list(unknown_cells("controller.order", order, model))
    if unknown:
        yield from unknown
        return
    indices = cell_indices(order, model)
    twice = [cell for cell, count in Counter(indices).items() if count > 1]
    if twice:
        yield "controller.order", f"cell '{model.cell_names[twice[0]]}' is listed twice"
        return
    F_N = run.forces_on_N
    levels_N = recruited_force_N(model, F_N, indices, force_signal(run.tables, model))
    smallest_N = LEVEL_MIN * np.abs(levels_N).max()
    for cell, rise_N in zip(indices, np.diff(levels_N), strict=True):
        if rise_N < -smallest_N:
            yield (
                "controller.order",
                f"cell '{model.cell_names[cell]}' reduces the measured force by {-rise_N:.4g} N: "
                "give an order without it",
            )
            return
    if levels_N[-1] <= 0.0:
        yield "controller.order", "none of its cells adds to the measured force"
