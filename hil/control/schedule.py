"""A controller that switches cells at given times."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray


class Schedule:
    """Executes switching steps in order of time.

    Parameters
    ----------
    steps : sequence of (t_s, on, off)
        Cells, counted from 0, to switch at t_s; `off` is applied first.
    """

    demand_N = float("nan")

    def __init__(
        self, steps: Sequence[tuple[float, Sequence[int], Sequence[int]]], n_cells: int
    ) -> None:
        self._t_s: list[float] = []
        self._cells: list[NDArray[np.uint8]] = []
        cells = np.zeros(n_cells, dtype=np.uint8)
        for t_s, on, off in sorted(steps, key=lambda step: step[0]):
            cells = cells.copy()
            cells[list(off)] = 0
            cells[list(on)] = 1
            self._t_s.append(t_s)
            self._cells.append(cells)
        self._next = 0

    def switched(self, duration_s: float) -> Iterator[tuple[float, NDArray[np.uint8]]]:
        """Switching times before duration_s, each with the cells that are on from then."""
        later = [*self._t_s[1:], float("inf")]
        for t_s, next_s, cells in zip(self._t_s, later, self._cells, strict=True):
            if t_s < min(next_s, duration_s):
                yield t_s, cells

    def restart(self) -> None:
        """Does nothing: a schedule depends only on time."""

    def step(
        self, t_s: float, reference_N: float, force_N: float, cells: NDArray[np.uint8]
    ) -> None:
        while self._next < len(self._t_s) and self._t_s[self._next] <= t_s + 1e-9:
            self._next += 1
        cells[:] = self._cells[self._next - 1] if self._next else 0
