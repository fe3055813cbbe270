"""Model of cells that are wires, for planning and failure tests: law, static gain, lag.

The force acts through the cell's damper, as in `hil.systems.array.isolation`: the part c acts at
once, the rest through a first-order lag,

    f(t) = sum_n s_n (c_n xi_n + (1 - c_n) z_n),    z_n' = r_n (xi_n - z_n)

with the austenite fraction xi_n. The array's inertia is neglected.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hil.errors import ModelError
from hil.mechanics.arrays import Array
from hil.mechanics.sma.wire import wire_laws
from hil.systems.array.activation import CellActivation
from hil.systems.array.cell_array import CellArray
from hil.systems.array.isolation import lags


@dataclass(frozen=True)
class WireModel:
    """Known parameters of every cell.

    Attributes
    ----------
    laws : (N, 13) array, from `hil.mechanics.sma.wire.wire_laws`
    static_gains_N, rate_per_s : (N,) arrays
        Static force of a cell that is on, and the rate of its lag.
    direct : (N,) array, the part c that acts at once
    """

    laws: Array
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
    if any(not a.has_wire for a in activation):
        raise ModelError("some cells are wires and some are not: they cannot be planned together")
    lag = lags(model)
    return WireModel(
        wire_laws([a.wire for a in activation]),
        static_gains_N,
        np.array([one.rate_per_s for one in lag]),
        np.array([one.direct for one in lag]),
    )
