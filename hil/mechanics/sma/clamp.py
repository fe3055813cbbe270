"""The clamp that holds the end of a cell's wires, where the board's temperature sensor sits.

It takes heat from its n wires, each a fin that is as hot as its middle but for a short way before
the end, and gives it to the air:

    C_c T_c' = n g (T - T_c) - G_c (T_c - T_a),    g = sqrt(pi d h  k pi d^2 / 4)

with the wire's temperature T, its diameter d, convection h and conductivity k. The way is
sqrt(k d / (4 h)), 2 mm for a wire of 0.1 mm. With T held over a period the step is exact. What the
clamp takes from the wire is left out of the wire's own balance: 2 g is 4 % of G l for 0.1 m.

Source: a fin's base, as in any book of heat transfer (Incropera & DeWitt, Fundamentals of Heat and
Mass Transfer, table 3.4, case D).
"""

from collections.abc import Sequence
from math import pi, sqrt

import numpy as np
from numpy.typing import NDArray

from hil.compiled import njit
from hil.mechanics.sma.wire import SmaWire


def end_loss_W_per_K(wire: SmaWire) -> float:
    """What the ends of a cell's wires give to the clamp, n g in the module."""
    area_m2 = pi * wire.diameter_m**2 / 4.0
    fin = sqrt(wire.loss_W_per_m_K * wire.conductivity_W_per_m_K * area_m2)
    return wire.n_wires * fin


def clamp_share(wire: SmaWire) -> float:
    """N g / (n g + G_c): how far above the air a clamp settles, over its wires."""
    from_wire = end_loss_W_per_K(wire)
    return from_wire / (from_wire + wire.clamp_loss_W_per_K)


class Clamps:
    """The clamps of a plant's cells, one a cell; those without a wire are left alone.

    Parameters
    ----------
    T_C : (N,) array, their temperatures, changed in place

    Attributes
    ----------
    share : (n,) array, of the clamps of n wires: n g / (n g + G_c), how far they follow the wires
    keeps : (n,) array, share of their distance to where they settle that is left after a period
    """

    def __init__(
        self, wires: Sequence[SmaWire | None], T_C: NDArray[np.float64], period_s: float
    ) -> None:
        self._T_C = T_C
        self._where = np.array([n for n, wire in enumerate(wires) if wire is not None], dtype=int)
        present = [wire for wire in wires if wire is not None]
        from_wire = np.array([end_loss_W_per_K(wire) for wire in present])
        total = from_wire + np.array([wire.clamp_loss_W_per_K for wire in present])
        capacity = np.array([wire.clamp_capacity_J_per_K for wire in present])
        self.share = np.array([clamp_share(wire) for wire in present])
        self.keeps = np.exp(-total / capacity * period_s)

    def step(self, wire_C: NDArray[np.float64], air_C: NDArray[np.float64]) -> None:
        """Advance one period beside wires (N,) in airs (of the cells with a wire) this hot."""
        _step(self._where, self.share, self.keeps, wire_C, air_C, self._T_C)


@njit(cache=True)
def _step(where, share, keeps, wire_C, air_C, T_C):  # type: ignore[no-untyped-def]
    for i in range(len(where)):
        n = where[i]
        settles_C = air_C[i] + share[i] * (wire_C[n] - air_C[i])
        T_C[n] = settles_C + keeps[i] * (T_C[n] - settles_C)
