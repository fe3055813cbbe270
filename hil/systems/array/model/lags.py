"""The lag of a cell's force behind its activation, by the kind of cell."""

from dataclasses import dataclass

import numpy as np

from hil.errors import ModelError
from hil.systems.array.model.cell_array import CellArray


@dataclass(frozen=True)
class Lag:
    """Response of a cell's static force: a direct part and a first-order lag."""

    direct: float
    rate_per_s: float


def lags(model: CellArray) -> list[Lag]:
    """Return the lag of every cell, without the array's inertia; at most one internal state.

    The isometric force of like cells is sum(gain_n) times phi(s)/phi(0). With one internal
    state phi(s) = Kf + Kd Kp / (s - I).
    """
    c = model.coefficients
    lags_of_cells = []
    for n in range(model.n_cells):
        states = np.flatnonzero(c.cell_of == n)
        if len(states) > 1:
            raise ModelError(
                f"cell {n + 1} has {len(states)} internal states: the tests support at most one"
            )
        phi = float(c.phi[n])
        if len(states) == 0 or phi == 0.0:
            lags_of_cells.append(Lag(1.0, 1.0))
        else:
            lags_of_cells.append(Lag(float(c.Kf[n]) / phi, -float(c.iota.diagonal()[states[0]])))
    return lags_of_cells
