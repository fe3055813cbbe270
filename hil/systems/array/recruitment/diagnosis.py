"""A deliberate switch to tell suspects apart: like cells that are on together are one to the force.

While a failure is certain and the cell is not, the likeliest suspect that is on is switched off,
a healthy cell of the nearest static gain on in its place, and after `apart_s` the next one; the
others stay on meanwhile. A suspect that is dead takes no force along as its model cools; one that
is healthy does. All of it ends once the cell is named. The recruiter's wishes are overridden, not
changed: it sees what is on.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray


class Diagnosis:
    """See the module.

    Parameters
    ----------
    static_gains_N : (N,) array
    apart_s : float
        Between switching two suspects.
    """

    def __init__(self, static_gains_N: ArrayLike, apart_s: float = 0.5) -> None:
        self._gains_N = np.asarray(static_gains_N, dtype=float)
        self._apart_s = apart_s
        self._hold = np.full(len(self._gains_N), -1, dtype=np.int8)  # 0 off, 1 on, -1 as wished
        self._last_s = -np.inf

    def step(
        self, t_s: float, suspicion: NDArray[np.float64], usable: NDArray[np.uint8],
        cells: NDArray[np.uint8],
    ) -> None:  # fmt: skip
        """Overwrite the wished cells where that tells suspects apart.

        Parameters
        ----------
        suspicion : (N,) array
            Chance of each cell to be the one that failed; all 0 while none has.
        """
        suspects = suspicion > 0.0
        if not suspects.any():
            if self._last_s > -np.inf:
                self._hold[:] = -1
                self._last_s = -np.inf
            return
        if t_s - self._last_s >= self._apart_s:
            self._swap(suspicion, suspects, usable, cells)
            self._last_s = t_s
        cells[self._hold == 0] = 0
        cells[(self._hold == 1) & (usable != 0)] = 1

    def _swap(self, suspicion: NDArray[np.float64], suspects: NDArray[np.bool_],
              usable: NDArray[np.uint8], cells: NDArray[np.uint8]) -> None:  # fmt: skip
        on = suspects & (cells != 0) & (self._hold != 0)
        if on.sum() < 2:
            return
        self._hold[on] = 1
        out = int(np.where(on, suspicion, -1.0).argmax())
        self._hold[out] = 0
        free = ~suspects & (cells == 0) & (usable != 0) & (self._hold == -1)
        if free.any():
            far = np.where(free, np.abs(self._gains_N - self._gains_N[out]), np.inf)
            self._hold[int(far.argmin())] = 1
