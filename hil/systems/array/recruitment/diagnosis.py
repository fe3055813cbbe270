"""Switches suspects deliberately to find which of several similar cells has failed.

The force cannot distinguish similar cells that are on together. While a failure is certain but the
cell is not, this stage switches off the most likely suspect that is on and switches on a healthy
cell with the nearest static gain instead; after `apart_s` it takes the next suspect. The other
suspects stay on, at the duties that they had. Switching off a dead cell does not change the force
as its model cools; switching off a healthy one does. The procedure ends once the cell is
identified. It overrides the commands of the recruiter, which sees the cells that really are on,
unless they switch all cells off.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hil.mechanics.system import Drive


class Diagnosis:
    """Overrides the commanded cells while suspects cannot be distinguished.

    Parameters
    ----------
    static_gains_N : (N,) array
    apart_s : time between switching two suspects
    """

    def __init__(self, static_gains_N: ArrayLike, apart_s: float = 0.5) -> None:
        self._gains_N = np.asarray(static_gains_N, dtype=float)
        self._apart_s = apart_s
        self._hold = np.full(len(self._gains_N), -1, dtype=np.int8)  # 0 off, 1 on, -1 as commanded
        self._duty = np.zeros(len(self._gains_N))  # of the cells that are held on
        self._last_s = -np.inf

    def restart(self) -> None:
        """Hold no cell."""
        self._hold[:] = -1
        self._last_s = -np.inf

    def step(
        self, t_s: float, suspicion: NDArray[np.float64], usable: NDArray[np.uint8],
        cells: Drive,
    ) -> None:  # fmt: skip
        """Overwrite the commanded cells if that helps to distinguish suspects.

        Parameters
        ----------
        suspicion : (N,) array
            Probability that each cell is the failed one; all 0 without a failure.
        """
        suspects = suspicion > 0.0
        if not suspects.any() or not cells.any():
            if self._last_s > -np.inf:
                self.restart()
            return
        if t_s - self._last_s >= self._apart_s:
            self._swap(suspicion, suspects, usable, cells)
            self._last_s = t_s
        cells[self._hold == 0] = 0
        held_on = (self._hold == 1) & (usable != 0)
        cells[held_on] = self._duty[held_on]

    def _swap(self, suspicion: NDArray[np.float64], suspects: NDArray[np.bool_],
              usable: NDArray[np.uint8], cells: Drive) -> None:  # fmt: skip
        on = suspects & (cells != 0) & (self._hold != 0)
        if on.sum() < 2:
            return
        new = on & (self._hold != 1)
        self._hold[on], self._duty[new] = 1, cells[new]
        out = int(np.where(on, suspicion, -1.0).argmax())
        self._hold[out] = 0
        free = ~suspects & (cells == 0) & (usable != 0) & (self._hold == -1)
        if free.any():
            far = np.where(free, np.abs(self._gains_N - self._gains_N[out]), np.inf)
            like = int(far.argmin())
            self._hold[like], self._duty[like] = 1, self._duty[out]
