"""Tables of the configuration -> models, references and controllers."""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from hil.config import schema
from hil.config.schema import ArrayTable, CellTable, ModelTable, SigmoidTable, ThermalTable
from hil.control import reference
from hil.control.controller import CellController
from hil.control.force import ForceControl
from hil.control.pid import Pid, PidGains
from hil.control.schedule import Schedule
from hil.models import CellArray, ModelError, cells, fingerprint
from hil.models.activation import CellActivation
from hil.models.cell_array import make_array
from hil.models.fingerprint import FingerprintError
from hil.models.network import Array, Point
from hil.models.sma_wire import SmaWire

LEVEL_MIN = 1e-9


def build_model(table: ModelTable) -> CellArray:
    """The linear model that `[model]` (or `[plant]`) describes.

    Raises
    ------
    ModelError
        Naming the key below the table.
    """
    points = {name: Point(p.support, p.mass_kg) for name, p in table.points.items()}
    return CellArray(points, {name: _array(name, a) for name, a in table.arrays.items()})


def build_activation(table: ModelTable) -> list[CellActivation]:
    """How every cell's force rises and falls, in input order."""
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
    return laws[table.kind](**table.model_dump(exclude={"kind"}))


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
            shape = {"rate_per_s": a.rate_per_s, "delay_s": a.delay_s}
        case ThermalTable() as a:
            try:
                wire = SmaWire(**a.model_dump(exclude={"kind"}, exclude_none=True))
            except ValueError as error:
                raise ModelError(f"arrays.{name}.activation: {error}") from None
            shape = {"wire": wire}
    return [CellActivation(force, table.activation.kind, **shape) for force in forces]


def build_reference(table: schema.ReferenceTable | None) -> reference.Reference:
    """The set point that `[reference]` describes."""
    match table:
        case None:
            return reference.NoReference()
        case schema.StepsReferenceTable():
            return reference.Steps(table.t_s, table.force_N)
        case schema.RampReferenceTable():
            return reference.Ramp(table.t_s, table.force_N)
        case schema.SineReferenceTable():
            return reference.Sine(table.mean_N, table.amplitude_N, table.frequency_Hz)


def build_control(tables: schema.RunTables, model: CellArray, signal: str) -> ForceControl:
    """The control stage of a run: what follows which set point."""
    F_N = [a.force_on_N for a in build_activation(tables.model)]
    controller = build_controller(tables.controller, model, F_N, signal, tables.loop.period_s)
    return ForceControl(build_reference(tables.reference), controller)


def build_controller(
    table: schema.ControllerTable, model: CellArray, F_N: list[float], signal: str, period_s: float
) -> CellController:
    """The controller that `[controller]` describes, for a model with these cell forces."""
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
    if cells == "all":
        return list(range(model.n_cells))
    """Cells, from 0, that a configuration names by number (from 1) or name."""
    return [c - 1 if isinstance(c, int) else model.cell_names.index(c) for c in cells]
