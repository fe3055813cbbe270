"""Controllers of the force of a cellular array, from a schedule to optimal recruitment."""

from collections.abc import Callable, Iterator
from math import inf

import numpy as np
from numpy.typing import NDArray

from hil.control.build import build_reference, build_signal, check_signal
from hil.control.controller import CellController
from hil.control.pid import Pid, PidGains, Switching
from hil.control.reference import Ahead, Reference
from hil.control.schedule import Schedule
from hil.control.steering import Selective, Steerable
from hil.control.tables import (
    AntagonistTable,
    ForceReferenceTable,
    ModulateTable,
    PidTable,
    ScheduleTable,
    SignalsReferenceTable,
)
from hil.experiment.kind import ControlInputs, ControllerKind, Faults, SystemRun, always
from hil.rig.instruments import boards_of, force_channels, outputs_of, signals_of
from hil.rig.run_tables import RunTables
from hil.systems.array.build import LEVEL_MIN, cell_indices, recruited_force_N
from hil.systems.array.build_estimator import wire_estimator
from hil.systems.array.build_force import force_signal, nominal_of
from hil.systems.array.build_modulation import build_modulation, check_sides
from hil.systems.array.build_modulation import check as check_modulation
from hil.systems.array.build_recruitment import build_recruiter
from hil.systems.array.build_recruitment import check as check_recruitment
from hil.systems.array.checks import can_be_run, check_motion, check_order, check_schedule
from hil.systems.array.model.cell_array import CellArray
from hil.systems.array.modulation import BREAK_AT, Modulation, command_periods
from hil.systems.array.recruitment.control import Recruitment
from hil.systems.array.recruitment.diagnosis import Diagnosis
from hil.systems.array.recruitment.stage import ForceControl, MovingControl, OnTimeBreaks
from hil.systems.array.tables_recruitment import (
    BroadcastTable,
    GroupsTable,
    OptimalTable,
    PreviewTable,
    WiresTable,
)


def _follows(run: SystemRun) -> ForceReferenceTable | None:
    """Return the reference table of the force; None without a reference."""
    table = run.tables.reference
    return None if isinstance(table, SignalsReferenceTable) else table


def arrays_of(run: SystemRun) -> CellArray:
    """The arrays of a run, which are its model or a part of it."""
    arrays: CellArray = run.model if isinstance(run.model, CellArray) else run.model.arrays
    return arrays


def schedule_of(run: SystemRun) -> Schedule:
    """The schedule of `[controller]`."""
    arrays, table = arrays_of(run), run.tables.controller
    steps = [(s.t_s, cell_indices(s.on, arrays), cell_indices(s.off, arrays)) for s in table.steps]
    return Schedule(steps, arrays.n_cells)


def _pid_of(run: SystemRun, feedforward: Reference | None = None) -> Pid:
    """Return a PID on the static force levels of its cells, without cells that add no force."""
    model, table = run.model, run.tables.controller
    order = cell_indices(table.order or "all", model)
    gains = PidGains(table.k_p, table.k_i_per_s, table.k_d_s, table.derivative_filter_s)
    signal = force_signal(run.tables, model)
    levels_N = recruited_force_N(model, run.forces_on_N, order, signal)
    pulls = np.diff(levels_N) > LEVEL_MIN * levels_N.max()
    order = [cell for cell, pulls_one in zip(order, pulls, strict=True) if pulls_one]
    levels_N = np.concatenate(([0.0], levels_N[1:][pulls]))
    return Pid(
        gains,
        levels_N,
        order,
        Switching(table.hysteresis, table.dwell_s),
        run.period_s,
        feedforward,
    )


def _preview_s(run: SystemRun) -> float:
    """Return how far ahead the set point is taken; by default the commissioned cells' delay."""
    preview_s: float | None = run.tables.controller.preview_s
    return nominal_of(run.tables, run.model).delay_s if preview_s is None else preview_s


def _force_control(
    inputs: ControlInputs, cells: CellController, reference: Reference
) -> ForceControl:
    if isinstance(cells, Selective):
        cells.usable = inputs.estimator.estimate.usable
    force = inputs.layout.force
    return ForceControl(reference, cells, inputs.layout.index(force) if force else None)


def _build_modulate(inputs: ControlInputs) -> Modulation:
    return build_modulation(inputs, Steerable(build_reference(_follows(inputs))))


def _build_schedule(inputs: ControlInputs) -> ForceControl:
    cells = _force_control(inputs, schedule_of(inputs), build_reference(_follows(inputs)))
    curves = {
        _outputs(inputs).index(name): build_signal(table)
        for name, table in inputs.tables.controller.outputs.items()
    }
    return MovingControl(cells, curves) if curves else cells


def _outputs(run: SystemRun) -> list[str]:
    return [column.partition("_commanded")[0] for column in outputs_of(run.tables.devices)]


def _build_pid(inputs: ControlInputs) -> ForceControl:
    return _force_control(inputs, _pid_of(inputs), build_reference(_follows(inputs)))


def _build_preview(inputs: ControlInputs) -> ForceControl:
    follow = Steerable(build_reference(_follows(inputs)))
    return _force_control(inputs, _pid_of(inputs, Ahead(follow, _preview_s(inputs))), follow)


def _build_recruitment(inputs: ControlInputs) -> Recruitment:
    """Return the control stage of a recruitment controller, which uses the observer's estimate."""
    tables, nominal = inputs.tables, nominal_of(inputs.tables, inputs.model)
    follow = Steerable(build_reference(_follows(inputs)))
    looks = tables.observer.wire_failures
    diagnosis = None
    draws = isinstance(tables.controller, BroadcastTable)
    if looks is not None and looks.switch_suspects and not draws:
        diagnosis = Diagnosis(nominal.static_gains_N, looks.apart_s)
    # a command may wait for a board's next turn, and is reported in the one after it
    answer_ticks = 2 * max(board.every for board in boards_of(tables.devices).values()) - 1
    recruiter = build_recruiter(tables.controller, nominal, follow, inputs.seed, answer_ticks)
    breaks = _breaks(inputs) if _modulates(tables.controller) else None
    return Recruitment(follow, recruiter, inputs.estimator.estimate, diagnosis, breaks)


def _breaks(inputs: ControlInputs) -> OnTimeBreaks:
    """Return breaks of one command, before the guard's limit of the on-time."""
    turns = [board.every for board in boards_of(inputs.tables.devices).values()]
    most_ticks = np.floor(BREAK_AT * (inputs.tables.guard.cell_on_max_s or inf) / inputs.period_s)
    ticks = command_periods(inputs.period_s, inputs.period_s, turns)
    return OnTimeBreaks(inputs.model.n_cells, most_ticks, ticks)


def _modulates(table: object) -> bool:
    """`modulates` of the recruitment controllers."""
    return isinstance(table, OptimalTable) and table.modulates


def _check_schedule(run: SystemRun) -> Faults:
    yield from check_schedule(run.tables.controller, run.model)
    names, tables = _outputs(run), list(outputs_of(run.tables.devices).values())
    for name, curve in run.tables.controller.outputs.items():
        key = f"controller.outputs.{name}"
        if name not in names:
            choice = f"choose {', '.join(names)}" if names else "the rig has none"
            yield key, f"no output of that name: {choice}"
            continue
        wrong = list(check_signal(key, curve))
        yield from wrong or check_motion(key, curve, tables[names.index(name)], run)


def _needs_reference(run: SystemRun) -> Faults:
    if signals_of(run.tables.devices) and not force_channels(run.tables.devices):
        yield (
            f"controller.kind = '{run.tables.controller.kind}'",
            "no channel of kind 'force' measures what it controls: choose schedule, or add one",
        )
    if run.tables.reference is None:
        kind = run.tables.controller.kind
        yield "reference", f"missing: a {kind} controller needs one"


def _check_modulation(run: SystemRun) -> Faults:
    yield from _needs_reference(run)
    yield from check_modulation(run)


def _check_antagonist(run: SystemRun) -> Faults:
    yield from _check_modulation(run)
    if can_be_run(run):
        yield from check_sides(run)


def _check_pid(run: SystemRun) -> Faults:
    yield from _needs_reference(run)
    if can_be_run(run):
        yield from check_order(run)


def _check_preview(run: SystemRun) -> Faults:
    yield from _check_pid(run)
    preview_s = run.tables.controller.preview_s
    if preview_s is not None and preview_s > run.duration_s:
        yield (
            f"controller.preview_s = {preview_s:g}",
            f"longer than the run of {run.duration_s:g} s: give the delay of the cells",
        )


def _check_recruitment(run: SystemRun) -> Faults:
    yield from _needs_reference(run)
    if can_be_run(run):
        nominal = nominal_of(run.tables, run.model)
        yield from check_recruitment(run.tables.controller, run.tables.observer, nominal)


def _check_broadcast(run: SystemRun) -> Faults:
    yield from _check_recruitment(run)
    for name, device in boards_of(run.tables.devices).items():
        if device.every > 1:
            key = f"devices.{name}.every = {device.every}"
            yield key, "a broadcast is repeated in every period: give 1"


def plan_bounds(
    run: SystemRun, most: int | None = None, who: str = "the controller decides"
) -> list[str]:
    """Energise plan of a controller that decides during the run: what it can switch on."""
    n_cells = arrays_of(run).n_cells
    return [
        f"{who}: at most {n_cells if most is None else most} of {n_cells} cells at once, for up to "
        f"{run.duration_s:g} s, no cell longer than {run.tables.guard.cell_on_max_s:g} s"
    ]


def plan_broadcast(run: SystemRun) -> list[str]:
    """Energise plan of a broadcast controller."""
    return plan_bounds(run, who="the cells draw random numbers themselves")


def _plan_pid(run: SystemRun) -> list[str]:
    return plan_bounds(run, len(_pid_of(run).order))


def _plan_preview(run: SystemRun) -> list[str]:
    return [*_plan_pid(run), f"the set point is taken {_preview_s(run):.3g} s ahead"]


def _plan_groups(run: SystemRun) -> list[str]:
    return plan_bounds(run, sum(len(group) for group in run.tables.controller.groups))


def switches(run: SystemRun) -> Iterator[tuple[float, NDArray[np.uint8]]]:
    """The switching times of a schedule, and the cells that are on from then."""
    return schedule_of(run).switched(run.duration_s)


def plan_switches(run: SystemRun, settles: Callable[[NDArray[np.float64]], str]) -> list[str]:
    """Energise plan of a schedule; `settles` names the state that forces F (N,) lead to."""
    F_N, lines = np.array(run.forces_on_N), []
    for t_s, cells in switches(run):
        on = [name for name, lit in zip(arrays_of(run).cell_names, cells, strict=True) if lit]
        what = f"{len(on)} on: {', '.join(on)}" if on else "all off"
        lines.append(f"{t_s:8.3f} s  {what} (settles {settles(F_N * cells)})")
    return [*lines, f"{run.duration_s:8.3f} s  all off, the run ends"]


def _settles(run: SystemRun) -> Iterator[tuple[float, float]]:
    """The times of a schedule, and the controlled force at which it settles from then."""
    signal, F_N = force_signal(run.tables, run.model), np.array(run.forces_on_N)
    for t_s, cells in switches(run) if signal else ():
        yield t_s, run.model.force_at(signal, run.model.solve_statics(F_N * cells).tension_N)


def _plan_schedule(run: SystemRun) -> list[str]:
    model, signal = run.model, force_signal(run.tables, run.model)

    def settles(F_N: NDArray[np.float64]) -> str:
        if not signal:
            return "at a force that nothing measures"
        return f"at {model.force_at(signal, model.solve_statics(F_N).tension_N):.4g} N"

    moves = [
        f"output '{name}' moves from {low:g} to {high:g}"
        for name, table in run.tables.controller.outputs.items()
        for low, high in [build_signal(table).extremes(run.duration_s)]
    ]
    return [*moves, *plan_switches(run, settles)]


def looks_at_wires_s(tables: RunTables) -> float:
    """Return the time between two updates of wires that are learned or tested."""
    return float((tables.observer.wires or WiresTable()).sample_s)


def _optimal_wait_s(tables: RunTables) -> float:
    return max(float(tables.controller.budget_s), looks_at_wires_s(tables))


CONTROLLERS = {
    "schedule": ControllerKind(
        ScheduleTable, _build_schedule, _check_schedule, _plan_schedule, switches=switches,
        settles=_settles,
    ),
    "pid": ControllerKind(PidTable, _build_pid, _check_pid, _plan_pid),
    "preview": ControllerKind(PreviewTable, _build_preview, _check_preview, _plan_preview),
    "broadcast": ControllerKind(
        BroadcastTable, _build_recruitment, _check_broadcast, plan_broadcast, broadcasts=True
    ),
    "groups": ControllerKind(GroupsTable, _build_recruitment, _check_recruitment, _plan_groups),
    "modulate": ControllerKind(
        ModulateTable, _build_modulate, _check_modulation, plan_bounds, modulates=always
    ),
    "antagonist": ControllerKind(
        AntagonistTable, _build_modulate, _check_antagonist, plan_bounds, modulates=always
    ),
    "optimal": ControllerKind(
        OptimalTable, _build_recruitment, _check_recruitment, plan_bounds,
        estimator=wire_estimator, longest_wait_s=_optimal_wait_s, modulates=_modulates,
        sections="hil.reports.best:sections",
    ),
}  # fmt: skip
