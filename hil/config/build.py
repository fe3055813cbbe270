"""Tables of the configuration -> models, references and controllers."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hil.config import recruit_schema, schema
from hil.config.arm import ArmTable
from hil.config.bodies import BodiesTable
from hil.config.build_arm import build_arm_system
from hil.config.build_bodies import build_bodies
from hil.config.build_limb import build_limb_system
from hil.config.build_pantograph import build_pantograph
from hil.config.build_soft import build_soft
from hil.config.instruments import outputs_of
from hil.config.limb import LimbTable
from hil.config.own import OwnTable
from hil.config.pantograph import PantographTable
from hil.config.recruitment import Told, build_recruiter, indices
from hil.config.schema import ArrayTable, CellTable, ModelTable, SigmoidTable, ThermalTable
from hil.control import reference
from hil.control.controller import Belief, CellController
from hil.control.diagnosis import Diagnosis
from hil.control.force import ForceControl
from hil.control.own import OwnControl, OwnReference
from hil.control.pid import Pid, PidGains
from hil.control.recruit import Recruitment
from hil.control.schedule import Schedule
from hil.control.signals import SignalLoop, SignalPid
from hil.control.steering import Selective, Steerable
from hil.models import CellArray, ModelError, cells, fingerprint
from hil.models.activation import CellActivation
from hil.models.cell_array import make_array
from hil.models.fingerprint import FingerprintError
from hil.models.linear import LinearSystem
from hil.models.network import Array, Point
from hil.models.own import OwnSystem
from hil.models.sma_wire import SmaWire
from hil.models.system import System
from hil.own import Facts
from hil.slots import RigLayout

LEVEL_MIN = 1e-9


def build_model(table: ModelTable | schema.SoftTable) -> CellArray:
    """The linear model that `[model]` (or `[plant]`) describes.

    Raises
    ------
    ModelError
        Naming the key below the table.
    """
    points = {name: Point(p.support, p.mass_kg) for name, p in table.points.items()}
    return CellArray(points, {name: _array(name, a) for name, a in table.arrays.items()})


def build_activation(table: schema.AnyModelTable) -> list[CellActivation]:
    """How every cell's force rises and falls, in input order; none where there are no cells."""
    if not isinstance(table, ModelTable | schema.SoftTable):
        return []
    return [a for name, array in table.arrays.items() for a in _activations(name, array)]


def _array(name: str, table: ArrayTable) -> Array:
    laws = []
    for n, cell in enumerate(table.cell, start=1):
        try:
            laws.append(build_cell(cell))
        except ValueError as error:
            where = f"arrays.{name}.cell" + (f" {n}" if len(table.cell) > 1 else "")
            raise ModelError(f"{where}: {error}") from None
    try:
        return make_array(
            table.fingerprint,
            cell=laws,
            mass_kg=table.mass_kg[0] if len(table.mass_kg) == 1 else table.mass_kg,
            start=table.start,
            end=table.end,
            dead_cells=table.dead_cells,
            broken_cells=table.broken_cells,
        )
    except FingerprintError as error:
        raise ModelError(f"arrays.{name}.fingerprint: {error}") from None


def build_cell(table: CellTable) -> cells.Cell:
    """The cell that a table of any kind describes; ValueError where its values make none."""
    laws: dict[str, Callable[..., cells.Cell]] = {
        "hill": cells.hill,
        "miga": cells.miga,
        "two_damper": cells.two_damper,
        "custom": cells.custom,
    }
    return laws[table.kind](**table.model_dump(exclude={"kind", "record"}))


def _activations(name: str, table: ArrayTable) -> list[CellActivation]:
    n_cells = fingerprint.parse(table.fingerprint).n_cells
    forces = table.force_on_N * n_cells if len(table.force_on_N) == 1 else table.force_on_N
    if len(forces) != n_cells:
        raise ModelError(
            f"arrays.{name}.force_on_N: {len(forces)} forces given, the fingerprint has "
            f"{n_cells} cells: give one number for all or a list of {n_cells}"
        )
    shape: dict[str, Any] = {}
    match table.activation:
        case SigmoidTable() as a:
            shape = a.model_dump(exclude={"kind", "record"})
        case ThermalTable() as a:
            try:
                wire = build_wire(a)
            except ValueError as error:
                raise ModelError(f"arrays.{name}.activation: {error}") from None
            shape = {"wire": wire}
    return [CellActivation(force, table.activation.kind, **shape) for force in forces]


def build_wire(table: ThermalTable | schema.BoardWireTable) -> SmaWire:
    """The wire that a table describes; ValueError where its values make none."""
    beside = {"kind", "record", "temperature_max_C"}
    return SmaWire(**table.model_dump(exclude=beside, exclude_none=True))


def build_system(table: schema.SystemTable, period_s: float) -> System:
    """The system of a model that is no cellular array; ModelError where it makes none."""
    if isinstance(table, OwnTable):
        return OwnSystem(table.own, period_s)
    if isinstance(table, PantographTable):
        return build_pantograph(table, period_s)
    if isinstance(table, BodiesTable):
        return build_bodies(table, period_s)
    if isinstance(table, schema.SoftTable):
        return build_soft(table, build_model(table), build_activation(table), period_s)
    if isinstance(table, ArmTable):
        return build_arm_system(table, period_s)
    if isinstance(table, LimbTable):
        return build_limb_system(table, period_s)
    return LinearSystem(table.A, table.B, table.C, table.D, table.inputs, table.outputs, period_s)


def build_signal(table: schema.SignalTable) -> reference.Reference:
    """One channel's set point."""
    match table:
        case schema.SignalStepsTable():
            return reference.Steps(table.t_s, table.value)
        case schema.SignalRampTable():
            return reference.Ramp(table.t_s, table.value)
        case schema.SignalSineTable():
            return reference.Sine(table.mean, table.amplitude, table.frequency_Hz)
        case OwnTable():
            return OwnReference(table.own)


def build_signal_pid(
    loops: Mapping[str, schema.SignalLoopTable],
    signals: Mapping[str, schema.SignalTable],
    layout: RigLayout,
    outputs: Mapping[str, schema.ActuatorTable],
    period_s: float,
) -> SignalPid:
    """The control stage of a rig that is no array.

    Parameters
    ----------
    outputs : of every card, under the names of their columns
    """
    channels = {c.name: (i, c) for i, c in enumerate(layout.channels)}
    names = list(outputs)
    made = []
    for channel_name, loop in loops.items():
        slot, channel = channels[channel_name]
        column = next(n for n in names if n.partition("_commanded")[0] == loop.output)
        made.append(
            SignalLoop(
                reference=build_signal(signals[channel_name]),
                gains=PidGains(loop.k_p, loop.k_i_per_s, loop.k_d_s, loop.derivative_filter_s),
                reference_column=channel.column("reference"),
                units=channel.units,
                channel=slot,
                output=names.index(column),
                low=outputs[column].min,
                high=outputs[column].max,
            )
        )
    return SignalPid(made, period_s)


def build_reference(table: schema.ForceReferenceTable | None) -> reference.Reference:
    """The force's set point that `[reference]` describes."""
    match table:
        case None:
            return reference.NoReference()
        case schema.StepsReferenceTable():
            return reference.Steps(table.t_s, table.force_N)
        case schema.RampReferenceTable():
            return reference.Ramp(table.t_s, table.force_N)
        case schema.SineReferenceTable():
            return reference.Sine(table.mean_N, table.amplitude_N, table.frequency_Hz)
        case recruit_schema.ChirpReferenceTable():
            return reference.Chirp(
                table.mean_N, table.amplitude_N, table.from_Hz, table.to_Hz, table.sweep_s
            )
        case recruit_schema.ReachReferenceTable():
            return reference.Reach(
                table.from_N, table.to_N, table.start_s, table.move_s, table.hold_s, table.returns
            )
        case recruit_schema.TraceReferenceTable():
            return reference.Ramp(table.t_s, table.force_N)
        case OwnTable():
            return OwnReference(table.own)


def build_own_control(
    table: OwnTable,
    follows: schema.ReferenceTable | None,
    tables: schema.RunTables,
    cells: Sequence[str],
    model: CellArray | None,
    layout: RigLayout,
) -> OwnControl:
    """The control stage of one's own controller, told what there is on this rig."""
    outputs = outputs_of(tables.devices)
    references: dict[str, tuple[Steerable, str]] = {}
    if model is not None:
        force = None if isinstance(follows, schema.SignalsReferenceTable) else follows
        references["force_reference_N"] = (Steerable(build_reference(force)), "N")
        names = ["force"]
    else:
        signals = follows.signals if isinstance(follows, schema.SignalsReferenceTable) else {}
        channels = {c.name: c for c in layout.channels}
        names = [name for name in signals if name in channels]
        for name in names:
            column = channels[name].column("reference")
            references[column] = (Steerable(build_signal(signals[name])), channels[name].units)
    facts = Facts(
        period_s=tables.loop.period_s,
        channels=tuple(c.name for c in layout.channels),
        units=tuple(c.units for c in layout.channels),
        references=tuple(names),
        cells=tuple(cells),
        force_on_N=tuple(a.force_on_N for a in build_activation(tables.model)),
        outputs=tuple(name.partition("_commanded")[0] for name in outputs),
        lowest=tuple(o.min for o in outputs.values()),
        highest=tuple(o.max for o in outputs.values()),
        model=model,
        force=layout.force,
    )
    return OwnControl(table.own, facts, references)


def told_of(tables: schema.RigTables, model: CellArray, signal: str) -> Told:
    """What a recruitment controller and the observer know of the rig."""
    return Told(model, build_activation(tables.model), signal, tables.loop.period_s)


def build_recruitment(
    table: schema.RecruitTable,
    follows: schema.ForceReferenceTable | None,
    told: Told,
    belief: Belief,
    seed: int,
    observer: schema.ObserverTable,
) -> Recruitment:
    """The control stage of a recruiter that looks at this belief; `seed` is of the cells' draws."""
    follow = Steerable(build_reference(follows))
    looks = observer.wire_failures
    diagnosis = None
    if looks is not None and looks.switch_suspects and table.kind != "broadcast":
        diagnosis = Diagnosis(told.shares_N, looks.apart_s)
    return Recruitment(follow, build_recruiter(table, told, follow, seed), belief, diagnosis)


def build_force_control(
    controller: schema.CellControllerTable,
    follows: schema.ForceReferenceTable | None,
    model: CellArray,
    F_N: list[float],
    signal: str,
    layout: RigLayout,
    period_s: float,
    usable: NDArray[np.uint8] | None = None,
) -> ForceControl:
    """The control stage of a cellular array, whose active cells have these forces.

    `usable` is where it stands which cells have not failed.
    """
    cells = build_controller(controller, model, F_N, signal, period_s)
    if usable is not None and isinstance(cells, Selective):
        cells.usable = usable
    return ForceControl(build_reference(follows), cells, layout.slot(layout.force))


def build_controller(
    table: schema.CellControllerTable,
    model: CellArray,
    F_N: list[float],
    signal: str,
    period_s: float,
) -> CellController:
    """The controller of masks that `[controller]` describes, for a model with these cell forces."""
    if isinstance(table, schema.ScheduleTable):
        steps = [
            (s.t_s, cell_indices(s.on, model), cell_indices(s.off, model)) for s in table.steps
        ]
        return Schedule(steps, model.n_cells)
    order = cell_indices(table.order or "all", model)
    gains = PidGains(table.k_p, table.k_i_per_s, table.k_d_s, table.derivative_filter_s)
    levels_N = recruited_force_N(model, F_N, order, signal)
    # Dead cells, and those that the transducer does not feel, add nothing.
    pulls = np.diff(levels_N) > LEVEL_MIN * levels_N.max()
    order = [cell for cell, there in zip(order, pulls, strict=True) if there]
    levels_N = np.concatenate(([0.0], levels_N[1:][pulls]))
    return Pid(gains, levels_N, order, table.hysteresis, table.dwell_s, period_s)


def recruited_force_N(
    model: CellArray, F_N: list[float], order: list[int], signal: str
) -> np.ndarray:
    """Static force with the first 0, 1, 2, ... cells of the order on."""
    levels = [0.0]
    on = np.zeros(model.n_cells)
    for cell in order:
        on[cell] = F_N[cell]
        levels.append(model.force_at(signal, model.solve_statics(on).tension_N))
    return np.array(levels)


def cell_indices(cells: Literal["all"] | list[int | str], model: CellArray) -> list[int]:
    """Cells, from 0, that a configuration names by number (from 1) or name, or all of them."""
    return list(range(model.n_cells)) if cells == "all" else indices(cells, model)
