"""What the control stage of every rig offers the loop, and what a controller of cells offers it."""

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Wires(Protocol):
    """Wires as they are believed to be, learned while they work."""

    unknown_N: float
    """Force that they do not explain."""

    def look(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Law (N, 13) and share (N,) of every wire; temperature, austenite and lag (N, 3), now."""
        ...


@dataclass
class ArrayEstimate:
    """What the estimator makes of an array at the current tick, for controllers that ask.

    Attributes
    ----------
    cells : (N,) uint8 array
        Cells on, as last reported.
    usable : (N,) uint8 array
        0 for cells found to have failed.
    x, theta : (n,), (N,) arrays
        The observer's state, and the memory of the cells' activation.
    force_N, disturbance_N : float
        The observer's force, and the part of it that no cell accounts for.
    wires : Wires, optional
        Where the cells are wires and somebody plans with them.
    suspicion : (N,) array
        Chance of each cell to be one that failed, while a failure is certain and the cell is not.
    """

    cells: NDArray[np.uint8]
    usable: NDArray[np.uint8]
    x: NDArray[np.float64]
    theta: NDArray[np.float64]
    force_N: float = float("nan")
    disturbance_N: float = 0.0
    wires: Wires | None = None
    suspicion: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))


class CellController(Protocol):
    """Turns a force's set point and measurement into cells on and off."""

    @property
    def demand_N(self) -> float:
        """Force asked for at this tick; NaN for a controller that asks for none."""
        ...

    def step(
        self, t_s: float, reference_N: float, force_N: float, cells: NDArray[np.uint8]
    ) -> None:
        """One tick: write the wished cells (1 = on). `force_N` is NaN where none was read."""
        ...

    def restart(self) -> None:
        """Forget what has added up: all cells were off, and are armed again."""
        ...
