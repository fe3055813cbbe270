"""The constants of an array's wires, as the C of a unit takes them (`c/wire.c`, `c/unit.c`)."""

from collections.abc import Sequence

import numpy as np

from hil.errors import ModelError
from hil.mechanics.arrays import Array
from hil.mechanics.discrete import discretise
from hil.mechanics.sma import clamp, resistance, stressed, wire
from hil.systems.array.fmu.variables import SUPPLY_MAX_V
from hil.systems.array.model import wire_load as loaded
from hil.systems.array.model import wire_step
from hil.systems.array.model.activation import CellActivation
from hil.systems.array.model.cell_array import CellArray
from hil.systems.array.model.system import ArraySystem

#: Where the rows LAW and OWN have their constants, by their names here and in C.
PLACES = {
    name: getattr(module, name)
    for module, names in (
        (wire, ("C_AT", "L_AT", "G_AT", "T_A_AT", "E2_AT", "R_M_AT", "DR_AT", "A_S_AT", "A_F_AT",
                "M_S_AT", "M_F_AT", "CELL_V_AT", "CELL_OHM_M_AT", "STRAIN_AT", "VARIES_AT",
                "MOVES_AT")),
        (stressed, ("HEATING_AT", "COOLING_AT", "MIDDLE_AT", "PER_PA_AT", "SHARE_AT", "WIDENS_AT",
                    "OF_BRANCH", "H_MAX_AT", "MORE_AT", "RATE_AT", "SOFTER_AT", "PHI_AT")),
        (wire_step, ("AREA_AT", "PULL_AT", "FORCE_ON_AT", "K_AE_AT", "REST_AT", "GAIN_AT",
                     "IMPLICIT_AT", "HELD_STEPS", "NEWTON_STEPS", "SWEEPS_MAX")),
    )
    for name in names
} | {
    "N_LAW": wire.MOVES_AT + resistance.N_CONSTANTS,
    "WIRE_PIECES": wire.PIECES,
    "STRESSED_PIECES": stressed.PIECES,
}  # fmt: skip
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
    strain = np.array([law[wire.STRAIN_AT] for law in bank.laws]) * (1.0 - bank.xi[where])
    for n, f_N, row in zip(under_stress, tension_N, rows, strict=True):
        h, _ = stressed.stroke(row, f_N / row[wire_step.AREA_AT])
        strain[np.searchsorted(where, n)] = (1.0 - bank.xi[n]) * h
    at_rest = [bank.T_C[where], bank.xi[where], strain, bank.resistance_Ohm[where],
               np.zeros(len(where))]  # fmt: skip
    numbers = {
        "AD": discrete.Ad,
        "B0": discrete.B0,
        "B1": discrete.B1,
        "LAW": bank.laws.reshape(len(where), PLACES["N_LAW"]),
        "WIRE_AT_REST": np.array(at_rest),
        "FORCE_AT_REST_N": system.activation.F_N[where],
        "CLAMP_SHARE": clamps.share,
        "CLAMP_KEEPS": clamps.keeps,
        "TENSION_AT_REST_N": tension_N,
        "OWN": np.array(rows).reshape(len(rows), -1 if rows else 1),
        "STRETCH_PER": per if rows else np.zeros((1, 0)),
    }
    return numbers, {
        "STEPS_OF_PERIOD": np.array([system.steps]),
        "COUPLED": np.array([int(coupled)]),
        "CELL_OF_WIRE": where,
        "WIRE_OF_LOADED": np.searchsorted(where, under_stress).astype(int),
    }
