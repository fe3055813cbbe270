"""The constants of an array's wires, as the C of a unit takes them (`c/wire.c`, `c/unit.c`)."""

from collections.abc import Sequence

import numpy as np

from hil.errors import ModelError
from hil.mechanics.arrays import Array, Record, Records
from hil.mechanics.discrete import discretise
from hil.mechanics.sma import clamp, stressed, wire
from hil.systems.array.fmu.variables import SUPPLY_MAX_V
from hil.systems.array.model import wire_load as loaded
from hil.systems.array.model import wire_step
from hil.systems.array.model.activation import CellActivation
from hil.systems.array.model.cell_array import CellArray
from hil.systems.array.model.system import ArraySystem


def _places(of: np.dtype[Record]) -> dict[str, int]:
    """Index of every field among the numbers of a record, by its name in C."""
    offsets_B = {name: field[1] for name, field in (of.fields or {}).items()}
    return {f"{name.upper()}_AT": offset_B // SIZE_B for name, offset_B in offsets_B.items()}


SIZE_B = np.dtype(float).itemsize
#: Where the rows LAW and CELL have their constants, by their names in C.
PLACES = {
    **_places(wire.LAW),
    **_places(stressed.STRESSED),
    **_places(stressed.BRANCH),
    **_places(wire_step.CELL),
    "HEATING_KNOTS": stressed.HEATING_KNOTS,
    "COOLING_KNOTS": stressed.COOLING_KNOTS,
    "HELD_STEPS": wire_step.HELD_STEPS,
    "NEWTON_STEPS": wire_step.NEWTON_STEPS,
    "SWEEPS_MAX": wire_step.SWEEPS_MAX,
    "N_LAW": wire.LAW.itemsize // SIZE_B,
    "WIRE_PIECES": wire.PIECES,
    "STRESSED_PIECES": stressed.PIECES,
}
NUMBERS = {
    "AT_KNOT": stressed.AT_KNOT,
    "ON_BRANCH_K": stressed.ON_BRANCH_K,
    "HELD_SOLVED": wire_step.HELD_SOLVED,
    "CLOSE": wire_step.CLOSE,
    "SOLVED": wire_step.SOLVED,
    "SUPPLY_MAX_V": SUPPLY_MAX_V,
}


def arrays(
    model: CellArray, cells: Sequence[CellActivation], period_s: float
) -> tuple[dict[str, Array], dict[str, Array]]:
    """Return the arrays of numbers and of indices, by their names in C.

    Raises
    ------
    ModelError
        Minor loops slope, which the C does not know.
    """
    slopes = [one.loaded.law.minor_loop_slope for one in cells if one.loaded is not None]
    if any(slopes):
        raise ModelError(
            f"minor_loop_slope = {max(slopes):g}: minor loops of an FMU are flat: give 0"
        )
    system = ArraySystem(model, cells, period_s)
    discrete = discretise(model.A, model.B, model.C, model.D, period_s / system.steps)
    coupled = system.loaded is not None and system.loaded.kernel.coupled
    bank, clamps = system.wires, clamp.Clamps(system.wires.cells, system.wires.clamp_C, period_s)
    where = np.array([n for n, cell in enumerate(cells) if cell.has_wire], dtype=int)
    under_stress = where[[cells[n].loaded is not None for n in where]]
    tension_N = np.zeros(0) if system.loaded is None else system.loaded.tension_N
    at = loaded.stretch_states(model, under_stress)
    per = loaded.stretch_per(discrete, model.n_cells, at)
    rows = [
        loaded.constants(cells[n].wire, load, cells[n].force_on_N, own_m_per_N)
        for n, own_m_per_N in zip(under_stress, loaded.taken_own(per, under_stress), strict=True)
        if (load := cells[n].loaded) is not None
    ]
    strain = bank.laws["strain"] * (1.0 - bank.xi[where])
    for n, f_N, row in zip(under_stress, tension_N, rows, strict=True):
        h, _ = stressed.stroke(row.law, f_N / row.area_m2)
        strain[np.searchsorted(where, n)] = (1.0 - bank.xi[n]) * h
    at_rest = [bank.T_C[where], bank.xi[where], strain, bank.resistance_Ohm[where],
               np.zeros(len(where))]  # fmt: skip
    numbers = {
        "AD": discrete.Ad,
        "B0": discrete.B0,
        "B1": discrete.B1,
        "LAW": _numbers(bank.laws),
        "WIRE_AT_REST": np.array(at_rest),
        "FORCE_AT_REST_N": system.activation.F_N[where],
        "CLAMP_SHARE": clamps.share,
        "CLAMP_KEEPS": clamps.keeps,
        "TENSION_AT_REST_N": tension_N,
        "CELL": _numbers(np.array(rows, wire_step.CELL)),
        "STRETCH_PER": per if rows else np.zeros((1, 0)),
    }
    return numbers, {
        "STEPS_OF_PERIOD": np.array([system.steps]),
        "COUPLED": np.array([int(coupled)]),
        "CELL_OF_WIRE": where,
        "WIRE_OF_LOADED": np.searchsorted(where, under_stress).astype(int),
    }


def _numbers(records: Records) -> Array:
    """Records as rows of numbers; one column where there are none."""
    n = len(records)
    return records.view(float).reshape(n, -1) if n else np.zeros((0, 1))
