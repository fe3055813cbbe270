"""What a rig's plant and twin have in common: the physics of one period, whatever it is of."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hil.mechanics.sma.wire import SmaWires

Drive = NDArray[np.uint8] | NDArray[np.float64]


class System(Protocol):
    """A plant or a twin: cells and inputs held over a period, outputs at its end.

    Names carry their units (`hil.loop.frame.unit_suffix`). A run starts at rest.

    Attributes
    ----------
    cell_names : (N,) names
        Cells on and off; none for a system without cells.
    inputs : (M,) names
        Of the values that actuators set, such as `ankle.TA_activation`.
    outputs : (P,) names
        Of what instruments can measure.
    wires : SmaWires
        Of the cells; NaN where a cell has none.
    """

    period_s: float

    @property
    def cell_names(self) -> Sequence[str]: ...

    @property
    def inputs(self) -> Sequence[str]: ...

    @property
    def outputs(self) -> Sequence[str]: ...

    @property
    def wires(self) -> SmaWires: ...

    @property
    def y(self) -> NDArray[np.float64]:
        """Outputs now, (P,)."""
        ...

    def step(self, drive: Drive, inputs: NDArray[np.float64]) -> None:
        """Advance one period: a duty 0 to 1 a cell (a mask: 0 or 1), and a value an input."""
        ...
