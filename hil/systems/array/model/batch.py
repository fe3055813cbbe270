"""Many parameter sets of one array with its wires, open loop: `CellArray.batch`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hil.errors import ModelError, remedy
from hil.mechanics.arrays import Array, Indices
from hil.systems.array.model.activation import CellActivation
from hil.systems.array.model.cell_array import CellArray
from hil.systems.array.model.cells import Cell
from hil.systems.array.model.names import austenite_signal, wire_signal
from hil.systems.array.model.response import responses
from hil.systems.array.model.system import ArraySystem

if TYPE_CHECKING:
    import xarray as xr

UNITS = {"_N": "N", "_m": "m", "_C": "degC", "austenite": "1"}
SIGNED = ("_C", "_at_K", "e_per_K", "_share")  # ends of names of values that may be negative
OF_ARRAY = ("mass_kg", "cell")
SAME_SPRING = 1e-6  # relative: what rounding leaves of a stiffness

Parameters = Mapping[str, ArrayLike | Sequence[Cell]]
Sets = dict[str, NDArray[Any]]  # of every parameter its values, or cells, in every set


def batch(
    array: CellArray,
    parameters: Parameters,
    commands: ArrayLike,
    activation: Sequence[CellActivation],
    period_s: float,
    outputs: Sequence[str] | None,
) -> xr.Dataset:
    """The function behind `CellArray.batch`, which describes it."""
    import xarray as xr  # 0.4 s, which most commands save

    if not (np.isfinite(period_s) and period_s > 0.0):
        raise ModelError(f"period_s = {period_s:g}: must be above zero")
    values, n_sets = _values(parameters, array.n_cells)
    systems = [_system(array, values, i, activation, period_s) for i in range(n_sets)]
    duties = _commands(commands, n_sets, array.n_cells)
    names = list(array.outputs if outputs is None else outputs)
    at, of_wires = _recorded(systems[0], names)
    runs = np.array(responses(systems, at, duties, of_wires=of_wires))
    t_s = period_s * np.arange(runs.shape[1])
    coordinates: dict[str, object] = {"t_s": ("t_s", t_s, {"units": "s"})}
    for key, each in values.items():
        if key != "cell":
            coordinates[key] = (("set", "cell")[: each.ndim], each)
    recorded = sorted(names, key=lambda name: name not in array.outputs)  # outputs, then wires
    columns = {
        name: (("set", "t_s"), runs[:, :, recorded.index(name)], {"units": _unit(name)})
        for name in names
    }
    return xr.Dataset(columns, coordinates)


def _values(parameters: Parameters, n_cells: int) -> tuple[Sets, int]:
    """The values as arrays, (N,) or (N, K) each, and N."""
    if not isinstance(parameters, Mapping):
        raise ModelError("parameters: give a mapping of names to values, {'mass_kg': [...]}")
    values: Sets = {}
    for key, value in parameters.items():
        try:
            each = np.array(value, dtype=object if key == "cell" else float)
        except (TypeError, ValueError):
            raise ModelError(f"parameters: '{key}' is no array of numbers") from None
        if key == "cell" and not all(isinstance(one, Cell) for one in each.flat):
            raise ModelError("parameters: 'cell': give cells, as hil.models.cells.miga()")
        wide = each.ndim == 2 and key not in OF_ARRAY and each.shape[1] == n_cells
        if each.ndim != 1 and not wide:
            more = "" if key in OF_ARRAY else f", or {n_cells}, one a cell"
            raise ModelError(
                f"parameters: '{key}' has the shape {each.shape}: give one value for every set"
                f"{more}"
            )
        values[key] = each
    lengths = {key: len(each) for key, each in values.items()}
    if len(set(lengths.values())) > 1:
        given_as = ", ".join(f"{n} of '{key}'" for key, n in lengths.items())
        raise ModelError(f"parameters: {given_as}: give all as many values as there are sets")
    n_sets = next(iter(lengths.values()), 1)
    if n_sets == 0:
        raise ModelError("parameters: there is no set: give one value at least")
    return values, n_sets


def _system(
    array: CellArray,
    values: Sets,
    i: int,
    activation: Sequence[CellActivation],
    period_s: float,
) -> ArraySystem:
    """The array with parameter set i, at rest."""
    cells = list(activation)
    try:
        for key, each in values.items():
            if key not in OF_ARRAY:
                of_cells = np.broadcast_to(each[i], len(cells)).tolist()
                cells = [
                    _replaced(one, key, key, x) for one, x in zip(cells, of_cells, strict=True)
                ]
        if "cell" in values:
            _check_spring(values["cell"][i], cells)
        return ArraySystem(_model(array, values, i), cells, period_s)
    except ValueError as error:
        raise ModelError(f"set {i}: {error}") from None


def _check_spring(cell: Cell, activation: Sequence[CellActivation]) -> None:
    """Refuse wires under stress whose stiffness is not that of the cell's own spring.

    Of the cells with one internal state, k_ae = (I + Ze) / Kp.
    """
    if cell.n_internal != 1 or cell.Kp[0] == 0.0:
        return
    k_ae = float((cell.I[0, 0] + cell.Ze[0]) / cell.Kp[0])
    for one in activation:
        if one.loaded is not None and abs(one.loaded.k_ae_N_per_m - k_ae) > SAME_SPRING * k_ae:
            raise ValueError(
                f"loaded.k_ae_N_per_m = {one.loaded.k_ae_N_per_m:g}, and its cell has {k_ae:g}: "
                "give 'loaded.k_ae_N_per_m' the same"
            )


def _model(array: CellArray, values: Sets, i: int) -> CellArray:
    """The array with masses and cells of parameter set i."""
    if not set(OF_ARRAY) & set(values):
        return array
    parts = dict(array.arrays)
    for name, part in parts.items():
        if "mass_kg" in values:
            part = replace(part, mass_kg=np.full_like(part.mass_kg, values["mass_kg"][i]))
        if "cell" in values:
            part = replace(part, cells=(values["cell"][i],))
        parts[name] = part
    return CellArray(array.points, parts)


def _replaced(one: Any, path: str, key: str, value: float) -> Any:
    """A frozen record with the field at a dotted path changed."""
    head, _, rest = path.partition(".")
    known = [field.name for field in fields(one)] if is_dataclass(one) else []
    if head not in known:
        choices = [*known, *OF_ARRAY] if path == key else known
        raise ModelError(f"parameters: '{key}': no '{head}'{remedy(head, choices)}")
    if not rest and not np.isfinite(value):
        raise ModelError(f"{key} = {value}: must be finite")
    if not rest and value < 0.0 and not head.endswith(SIGNED):
        raise ModelError(f"{key} = {value:g}: must not be negative")
    if not rest and isinstance(getattr(one, head), int) and value % 1.0:
        raise ModelError(f"{key} = {value:g}: must be a whole number")
    return replace(
        one, **{head: _replaced(getattr(one, head), rest, key, value) if rest else value}
    )


def _commands(commands: ArrayLike, n_sets: int, n_cells: int) -> Array:
    duties = np.asarray(commands, dtype=float)
    if duties.ndim not in (2, 3) or duties.shape[-1] != n_cells or duties.shape[:-2] not in (
        (), (n_sets,),
    ):  # fmt: skip
        raise ModelError(
            f"commands: the shape {duties.shape} is not (periods, {n_cells}), nor "
            f"({n_sets}, periods, {n_cells}) for one table a set"
        )
    wrong = ~((duties >= 0.0) & (duties <= 1.0))
    if wrong.any():
        raise ModelError(f"commands: {duties[wrong][0]:g} is no duty: give 0 (off) to 1 (on)")
    return duties


def _recorded(system: ArraySystem, names: Sequence[str]) -> tuple[Indices, Indices]:
    """Indices of outputs, and of temperatures and austenite of wires, as `responses` counts."""
    wires = [i for i, cell in enumerate(system.cells) if cell.has_wire]
    of_wires = {wire_signal(system.cell_names[i]): i for i in wires}
    of_wires |= {austenite_signal(system.cell_names[i]): len(system.cells) + i for i in wires}
    known = [*system.outputs, *of_wires]
    for name in names:
        if name not in known:
            raise ModelError(f"outputs: '{name}' is no output of this array{remedy(name, known)}")
    at = [system.outputs.index(name) for name in names if name in system.outputs]
    columns = [of_wires[name] for name in names if name in of_wires]
    return np.array(at, dtype=np.int64), np.array(columns, dtype=np.int64)


def _unit(name: str) -> str:
    return next(unit for end, unit in UNITS.items() if name.endswith(end))
