"""A cellular array with its activation, stepped in time: used as plant and as twin."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hil.errors import ModelError
from hil.mechanics.discrete import Discrete, LinearStepper
from hil.mechanics.system import Drive
from hil.systems.array.activation import Activation, CellActivation
from hil.systems.array.cell_array import CellArray
from hil.systems.array.sma.loaded import LoadedWires
from hil.systems.array.sparse_step import SparseStepper

EXACT_ORDER_MAX = 200
NO_INPUTS: NDArray[np.float64] = np.zeros(0)

Stepper = LinearStepper | SparseStepper


class ArraySystem:
    """Steps an array by one period: cell drives in, forces and positions out.

    Up to EXACT_ORDER_MAX states, the step uses the matrix exponential. Larger arrays use a
    series that is summed cell by cell; `hil.systems.array.sparse_step` gives its error. The state
    is `activation.theta`, `activation.wires` and `linear.x`. A run starts cold and in equilibrium.
    External forces and the motion of driven points stay at zero.
    """

    inputs: tuple[str, ...] = ()

    def __init__(
        self, model: CellArray, activation: Sequence[CellActivation], period_s: float
    ) -> None:
        if len(activation) != model.n_cells:
            raise ModelError(f"{len(activation)} activations for {model.n_cells} cells")
        self.model = model
        self.cells = activation
        self.period_s = period_s
        self.cell_names = model.cell_names
        self.outputs = model.outputs
        self.activation = Activation(activation, period_s)
        self.wires = self.activation.wires
        self.linear = self.stepper()
        under_stress = [
            (n, cell.wire, cell.loaded, cell.force_on_N)
            for n, cell in enumerate(activation)
            if cell.loaded is not None
        ]
        self.loaded: LoadedWires | None = None
        if under_stress:
            self.loaded = LoadedWires(model, under_stress, self.linear, self.wires)

    def discrete(self) -> Discrete:
        """Return the model discretised exactly, with the cells' forces as its inputs."""
        return self.model.discrete(self.period_s)

    def stepper(self) -> Stepper:
        """Return a new stepper of the linear part, cold and in equilibrium."""
        rest = Activation(self.cells, self.period_s).F_N
        x0 = self.model.equilibrium(rest) if rest.any() else np.zeros(len(self.model.states))
        if len(x0) <= EXACT_ORDER_MAX:
            return LinearStepper(self.discrete(), x0, rest)
        return SparseStepper(self.model, self.period_s, self.model.outputs, x0, rest)

    @property
    def y(self) -> NDArray[np.float64]:
        """Current outputs, in the order of `model.outputs`."""
        return self.linear.y

    def step(self, drive: Drive, inputs: NDArray[np.float64] = NO_INPUTS) -> None:
        """Advance one period with `drive` held constant: one duty (0 to 1) per cell."""
        self.activate(drive)
        self.linear.step(self.activation.F_before_N, self.activation.F_N)

    def branches_C(self, fraction: NDArray[np.float64]) -> NDArray[np.float64]:
        """Temperatures of the wires' branches now, as `SmaWires.branches_C`."""
        found = self.wires.branches_C(fraction)
        if self.loaded is not None:
            self.loaded.branches_C(fraction, found)
        return found

    def activate(self, drive: Drive) -> None:
        """Advance the cells' forces by one period; `step` then moves the array."""
        now = self.activation
        now.step(drive)
        if self.loaded is not None:
            self.loaded.step(drive, self.period_s, self.linear.x, now.F_before_N, now.F_N)
