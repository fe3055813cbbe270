"""Model of cells that are wires, for planning and failure tests: law, static gain, lag.

The force acts through the cell's damper, as in `hil.systems.array.failures.isolation`: the part c
acts at once, the rest through a first-order lag,

    f(t) = sum_n s_n (c_n xi_n + (1 - c_n) z_n),    z_n' = r_n (xi_n - z_n)

with the austenite fraction xi_n. The array's inertia is neglected.

A wire under stress transforms along branches that its own tension moves. Each branch is tabulated
as temperatures, at the stress that is at rest sigma_0 and rises in proportion to the wire's own
xi_n to sigma_1, its stress when all cells are on. For cells in parallel between fixed ends, which
do not load each other, this is the law's own stress at equilibrium; where cells load each other, it
leaves out the tension that depends on the others. The force in proportion to xi_n leaves out that
the stroke grows with stress.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hil.errors import ModelError
from hil.mechanics.arrays import Array, Records
from hil.mechanics.sma.limits import CellBranches
from hil.mechanics.sma.wire import wire_laws
from hil.systems.array.model.activation import CellActivation
from hil.systems.array.model.cell_array import CellArray
from hil.systems.array.model.lags import lags


@dataclass(frozen=True)
class WireModel:
    """Known parameters of every cell.

    Attributes
    ----------
    laws : (N,) array, from `hil.mechanics.sma.wire.wire_laws`
    knots_C : (N, N_KNOTS) array, heating and cooling branch (`hil.mechanics.sma.stressed`)
    static_gains_N, rate_per_s : (N,) arrays
        Static force of a cell that is on, and the rate of its lag.
    direct : (N,) array, the part c that acts at once
    """

    laws: Records
    knots_C: Array
    static_gains_N: Array
    rate_per_s: Array
    direct: Array


def wire_model(
    model: CellArray, activation: Sequence[CellActivation], static_gains_N: Array
) -> WireModel:
    """Return the model of an array whose cells are all wires.

    Raises
    ------
    ModelError
        A cell is not a wire, or has more than one internal state.
    """
    wires = [a.has_wire for a in activation]
    if not all(wires):
        none = "no cell is a wire: give activation.kind = 'sma' or 'thermal'"
        some = "some cells are wires and some are not: no plan or test has both"
        raise ModelError(some if any(wires) else none)
    lag = lags(model)
    return WireModel(
        wire_laws([a.wire for a in activation]),
        np.array([branches.working_C for branches in cell_branches(model, activation)]),
        static_gains_N,
        np.array([one.rate_per_s for one in lag]),
        np.array([one.direct for one in lag]),
    )


def cell_branches(model: CellArray, activation: Sequence[CellActivation]) -> list[CellBranches]:
    """Return the branches of every cell's wire under its stress; module, last paragraph."""
    contracted_N = model.solve_statics([a.force_on_N for a in activation]).tension_N
    return [
        CellBranches.unstressed(a.wire)
        if a.loaded is None
        else a.loaded.branches(a.wire, float(more_N))
        for a, more_N in zip(activation, contracted_N, strict=True)
    ]
