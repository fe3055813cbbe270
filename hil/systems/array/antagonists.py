"""Cells that pull on a transducer from two sides: each makes up for what the other still pulls.

The net force is that of the cells with a positive static gain less that of the others. For the
demand u

    F_1* = max(b, F_2 + u),    F_2* = max(b, F_1 - u)                                           (1)

with the pulls F of both sides and the least pull b. So the force changes as fast as wires heat, in
both directions, although wires cool slowly. F is the twin's, with half of the measured surplus on
each side.

Source: an antagonistic pair under force control, Teh & Featherstone 2008, An Architecture for Fast
and Accurate Control of Shape Memory Alloy Actuators, Int. J. Robotics Research 27(5). (1) is this
project's.
"""

import numpy as np
from numpy.typing import NDArray

from hil.mechanics.arrays import Array
from hil.systems.array.model.system import ArraySystem
from hil.systems.array.modulation import Fractions
from hil.systems.array.recruitment.wire_duties import WireDuties


class Antagonists:
    """Two sides; the cells of a side take the same fraction of their contraction.

    Parameters
    ----------
    gains_N : (N,) array, static force of every cell; its sign is the side
    forces_on_N : (N,) array, force of every cell's activation
    twin : its activation has the forces of the cells
    least_N : b of equation (1)
    """

    def __init__(
        self, gains_N: Array, forces_on_N: Array, twin: ArraySystem, least_N: float
    ) -> None:
        self._gains_N, self._forces_on_N = np.abs(gains_N), forces_on_N
        self._twin, self._least_N = twin, least_N
        self._first, self._second = gains_N > 0.0, gains_N < 0.0
        self.pulls = self._first | self._second

    def fractions(self, demand_N: float, surplus_N: float, able: NDArray[np.bool_]) -> Fractions:
        wanted, measured = np.zeros(len(able)), self._twin.activation.F_N / self._forces_on_N
        sides, pulls_N, wholes_N = (self._first, self._second), [], []
        for side, half_N in zip(sides, (0.5 * surplus_N, -0.5 * surplus_N), strict=True):
            whole_N = float(self._gains_N[side & able].sum()) or np.inf
            measured[side] += half_N / whole_N
            pulls_N.append(float(self._gains_N[side] @ measured[side]))
            wholes_N.append(whole_N)
        asked_N = pulls_N[1] + demand_N, pulls_N[0] - demand_N
        for side, side_N, whole_N in zip(sides, asked_N, wholes_N, strict=True):
            wanted[side] = max(self._least_N, side_N) / whole_N
        return Fractions(wanted, measured)

    def at_ends(self, duties: WireDuties, able: NDArray[np.bool_]) -> tuple[bool, bool]:
        first, second = self._first & able, self._second & able
        return bool(duties.high[first].all()), bool(duties.high[second].all())
