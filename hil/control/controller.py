"""Interfaces of cell controllers, and the estimate of an array that they use."""

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hil.mechanics.arrays import Records


class Wires(Protocol):
    """Estimated parameters and states of the wires, learned during the run."""

    unknown_N: float
    """Estimated force that the wires do not explain."""

    def look(self) -> tuple[Records, NDArray[np.float64], NDArray[np.float64]]:
        """Law (N,), static gain (N,), and temperature, austenite and lag (N, 3) of the wires.

        A law is a record of `hil.mechanics.sma.wire.LAW`.
        """
        ...


@dataclass
class ArrayEstimate:
    """The estimate of an array at the current tick, for controllers.

    Attributes
    ----------
    cells : (N,) uint8 array, cells on, as last reported
    usable : (N,) uint8 array, 0 for cells found to have failed
    x, theta : (n,), (N,) arrays, the observer's state, and the state of the cells' activation
    force_N, disturbance_N : the observer's force, and the part of it that no cell explains
    wires : the estimate of the wires, if a planner uses it
    suspicion : (N,) array, probability of each cell to be the failed one, while it is certain that
        a cell has failed but not which
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
    """Switches cells from the set point and the measurement of a force."""

    @property
    def demand_N(self) -> float:
        """Force demanded at this tick [N]; NaN for a controller without a demand."""
        ...

    def step(
        self, t_s: float, reference_N: float, force_N: float, cells: NDArray[np.uint8]
    ) -> None:
        """Run one tick: write `cells` (1 = on). `force_N` is NaN without a reading."""
        ...

    def restart(self) -> None:
        """Reset integrals and memory: all cells were off and the run is armed again."""
        ...
