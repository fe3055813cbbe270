"""A cellular array with its activation, stepped exactly: the plant and the twin alike."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hil.models.activation import Activation, CellActivation
from hil.models.cell_array import CellArray
from hil.models.discrete import LinearStepper, discretise
from hil.models.network import ModelError


class ArraySystem:
    """Cells on and off in, forces and positions out; one period a step.

    The memory is `activation.theta` and `linear.x`. A run starts cold and in equilibrium.
    External forces and driven points rest at zero.
    """

    def __init__(
        self, model: CellArray, activation: Sequence[CellActivation], period_s: float
    ) -> None:
        if len(activation) != model.n_cells:
            raise ModelError(f"{len(activation)} activations for {model.n_cells} cells")
        self.model = model
        self.activation = Activation(activation, period_s)
        n = model.n_cells
        A, B, C, D = model.A, model.B[:, :n], model.C, model.D[:, :n]
        rest = self.activation.F_N
        x0 = np.linalg.lstsq(A, -B @ rest, rcond=None)[0] if len(A) else np.zeros(0)
        self.linear = LinearStepper(discretise(A, B, C, D, period_s), x0, rest)

    @property
    def y(self) -> NDArray[np.float64]:
        """Outputs now, in the order of `model.outputs`."""
        return self.linear.y

    def step(self, cells: NDArray[np.uint8]) -> None:
        """Advance one period with these cells (1 = on) held."""
        self.activation.step(cells)
        self.linear.step(self.activation.F_before_N, self.activation.F_N)
