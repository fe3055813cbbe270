"""What the control stage of every rig offers the loop, and what a controller of cells offers it."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hil.frame import Column, Commands, Frame


class Control(Protocol):
    """The stage of the tick that turns set points and readings into commands.

    It never moves anything itself: the guard has the last word.
    """

    @property
    def columns(self) -> list[Column]:
        """What it adds to every row: set points, and what it asks for."""
        ...

    def bind(self, frame: Frame, measured: NDArray[np.float64], commands: Commands) -> None:
        """Learn where readings stand (NaN where there is none) and where commands go."""
        ...

    def step(self, t_s: float) -> None:
        """One tick: write set points and wished commands."""
        ...


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
