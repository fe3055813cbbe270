"""The one plant behind every simulated device of a rig."""

import numpy as np
from numpy.typing import NDArray

from hil.models.array_system import ArraySystem


class SimPlant:
    """A cellular array that simulated devices switch and measure.

    Attributes
    ----------
    cells : (N,) uint8 array
        Gates as they are now; boards write their own.
    """

    def __init__(self, system: ArraySystem, period_s: float) -> None:
        self._system = system
        self._period_s = period_s
        self._n = 0
        self.cells: NDArray[np.uint8] = np.zeros(system.model.n_cells, dtype=np.uint8)

    def advance(self, t_s: float) -> None:
        """Bring the plant to t_s, gates held, in whole periods."""
        n = round(t_s / self._period_s)
        while self._n < n:
            self._system.step(self.cells)
            self._n += 1

    def output(self, index: int) -> float:
        """One of the model's outputs, now."""
        return float(self._system.y[index])
