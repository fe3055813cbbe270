"""Cells that are wires, as planning and tests for failures take them: law, static gain, lag.

Static force comes through the cell's damper as in `hil.systems.array.isolation`: the part c at
once, the rest through a first-order lag,

    f(t) = sum_n s_n (c_n xi_n + (1 - c_n) z_n),    z_n' = r_n (xi_n - z_n)

with the austenite fraction xi_n; the array's inertia is left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hil.errors import ModelError
from hil.mechanics.sma.wire import wire_laws
from hil.systems.array.activation import CellActivation
from hil.systems.array.cell_array import CellArray
from hil.systems.array.isolation import lags

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class WireModel:
    """What is known of every cell.

    Attributes
    ----------
    laws : (N, 13) array
        As `hil.mechanics.sma.wire.wire_laws` gives them.
    static_gains_N, rate_per_s : (N,) arrays
        Static force of a cell long on, and the rate of the lag that it comes through.
    direct : (N,) array
        The part c that comes at once.
    """

    laws: Matrix
    static_gains_N: Matrix
    rate_per_s: Matrix
    direct: Matrix


def wire_model(
    model: CellArray, activation: Sequence[CellActivation], static_gains_N: Matrix
) -> WireModel:
    """What is known of an array whose cells are all wires.

    Raises
    ------
    ModelError
        A cell that is no wire, or one with more than one internal state.
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
