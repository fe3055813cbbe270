"""What every controller offers the loop."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Controller(Protocol):
    """Turns set point and measurement into cells on and off.

    A controller never switches anything itself: the guard has the last word.
    """

    @property
    def demand_N(self) -> float:
        """Force asked for at this tick; NaN for a controller that asks for none."""
        ...

    def step(
        self, t_s: float, reference_N: float, force_N: float, cells: NDArray[np.uint8]
    ) -> None:
        """One tick: write the wished cells (1 = on). `force_N` is NaN where none was read."""
        ...
