"""Builds cells, arrays, activation and force levels from the tables of cellular arrays."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from hil.config.values import TomlTable
from hil.devices.switch_tables import build_wire
from hil.errors import ModelError
from hil.experiment.kind import KindOfTable
from hil.mechanics.sma.limits import CellBranches, CellWire
from hil.systems.array.build_recruitment import indices
from hil.systems.array.build_wire import loaded_wire
from hil.systems.array.model import cells, fingerprint
from hil.systems.array.model.activation import CellActivation
from hil.systems.array.model.cell_array import CellArray, make_array
from hil.systems.array.model.cell_kinds import cell_kinds
from hil.systems.array.model.fingerprint import FingerprintError
from hil.systems.array.model.network import Array, Point
from hil.systems.array.tables import (
    ActivationTable,
    ArrayTable,
    CellArraysTable,
    SigmoidTable,
    SmaTable,
    ThermalTable,
    WireTable,
)
from hil.systems.array.wires.cells import cell_branches

LEVEL_MIN = 1e-9


def build_model(table: CellArraysTable) -> CellArray:
    """Return the linear model that `[model]` (or `[plant]`) describes.

    Raises
    ------
    ModelError
        The values do not form a model; the message names the key below the table.
    """
    points = {
        name: Point(p.support, p.mass_kg, p.spring_N_per_m) for name, p in table.points.items()
    }
    return CellArray(points, {name: _array(name, a) for name, a in table.arrays.items()})


def build_activation(table: CellArraysTable) -> list[CellActivation]:
    """Return the activation of every cell, in input order."""
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


def build_cell(table: Any) -> cells.Cell:
    """Return the cell that a table describes; ValueError if its values are invalid."""
    kind = cell_kinds()[table.kind]
    return kind.build(**table.model_dump(exclude={"kind", "record"}))


def _activations(name: str, table: ArrayTable) -> list[CellActivation]:
    n_cells = fingerprint.parse(table.fingerprint).n_cells
    forces = table.force_on_N * n_cells if len(table.force_on_N) == 1 else table.force_on_N
    if len(forces) != n_cells:
        raise ModelError(
            f"arrays.{name}.force_on_N: {len(forces)} forces given, the fingerprint has "
            f"{n_cells} cells: give one number for all or a list of {n_cells}"
        )
    kinds = activation_tables(table)
    if len(kinds) != n_cells:
        raise ModelError(
            f"arrays.{name}.activation: {len(kinds)} tables given, the fingerprint has {n_cells} "
            f"cells: give one table for all or a list of {n_cells}"
        )
    laws = table.cell * n_cells if len(table.cell) == 1 else table.cell
    built: list[CellActivation] = []
    last: tuple[float, ActivationTable, KindOfTable] | None = None
    for n, values in enumerate(zip(forces, kinds, laws, strict=True), start=1):
        if last is not None and all(a is b for a, b in zip(values, last, strict=True)):
            built.append(built[-1])  # cells of one table are alike
            continue
        last = values
        try:
            built.append(_activation(*values))
        except ValueError as error:
            which = f" {n}" if len(table.activation) > 1 else ""
            raise ModelError(f"arrays.{name}.activation{which}: {error}") from None
    return built


def activation_tables(table: ArrayTable) -> Sequence[ActivationTable]:
    """The activation of every cell; one table is that of all cells."""
    n_cells = fingerprint.parse(table.fingerprint).n_cells
    return table.activation * n_cells if len(table.activation) == 1 else table.activation


def _activation(force_on_N: float, table: ActivationTable, cell: KindOfTable) -> CellActivation:
    """A cell's activation; ValueError if its values are invalid."""
    if isinstance(table, SmaTable):
        wire, loaded = loaded_wire(table, build_wire(table), cell, force_on_N)
        return CellActivation(force_on_N, "sma", wire=wire, loaded=loaded)
    shape: TomlTable = {}
    if isinstance(table, SigmoidTable):
        shape = table.model_dump(exclude={"kind", "record"})
    elif isinstance(table, ThermalTable):
        shape = {"wire": build_wire(table)}
    return CellActivation(force_on_N, table.kind, **shape)


def cell_wires(
    table: CellArraysTable, cell_names: Sequence[str], branches: Sequence[CellBranches | None]
) -> dict[str, CellWire]:
    """Return the wires of the cells that have one, by name of the cell."""
    kinds = [kind for array in table.arrays.values() for kind in activation_tables(array)]
    return {
        name: CellWire(name, one.wire, kind.temperature_max_C, branch)
        for name, kind, one, branch in zip(
            cell_names, kinds, build_activation(table), branches, strict=True
        )
        if isinstance(kind, WireTable)
    }


def wires_of(table: CellArraysTable, model: CellArray) -> dict[str, CellWire]:
    """Return the wires of an array's cells, with their branches under stress, by name."""
    branches = cell_branches(model, build_activation(table))
    return cell_wires(table, model.cell_names, branches)


def recruited_force_N(
    model: CellArray, F_N: list[float], order: list[int], signal: str
) -> np.ndarray:
    """Return the static force with the first 0, 1, 2, ... cells of `order` on, in N."""
    levels = [0.0]
    on = np.zeros(model.n_cells)
    for cell in order:
        on[cell] = F_N[cell]
        levels.append(model.force_at(signal, model.solve_statics(on).tension_N))
    return np.array(levels)


def cell_indices(cells: Literal["all"] | list[int | str], model: CellArray) -> list[int]:
    """Return the 0-based indices of cells given by number (from 1), by name, or as "all"."""
    return list(range(model.n_cells)) if cells == "all" else indices(cells, model)
