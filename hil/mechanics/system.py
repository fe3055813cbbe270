"""Interface that a rig's plant and twin share: the physics of one period."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hil.mechanics.sma.wire import SmaWires

Drive = NDArray[np.uint8] | NDArray[np.float64]


class System(Protocol):
    """A plant or a twin: cells and inputs are held over a period; outputs are those at its end.

    Names carry their units (`hil.loop.frame.unit_suffix`). A run starts at rest.

    Attributes
    ----------
    cell_names : (N,) names, cells that are switched; empty for a system without cells
    inputs : (M,) names, values that actuators set, such as `ankle.TA_activation`
    outputs : (P,) names, values that instruments can measure
    wires : wires of the cells; NaN for a cell without one
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
        """Current outputs, (P,)."""
        ...

    def step(self, drive: Drive, inputs: NDArray[np.float64]) -> None:
        """Advance one period with a duty (0 to 1) per cell and a value per input."""
        ...


class Wrapped:
    """A system around another, whose outputs it changes: the base of those that do."""

    def __init__(self, inner: System) -> None:
        self._inner = inner
        self.period_s = inner.period_s
        self.y = np.array(inner.y)

    @property
    def cell_names(self) -> Sequence[str]:
        return self._inner.cell_names

    @property
    def inputs(self) -> Sequence[str]:
        return self._inner.inputs

    @property
    def outputs(self) -> Sequence[str]:
        return self._inner.outputs

    @property
    def wires(self) -> SmaWires:
        return self._inner.wires


@runtime_checkable
class Fails(Protocol):
    """A plant whose cells may break or weaken during a run."""

    def fail(self, cell: int, share: float) -> None:
        """Leave a cell (from 0) this share of its tension; with 0 it carries no tension."""
        ...
