"""A linear system, used as plant and as twin."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hil.errors import ModelError
from hil.mechanics.discrete import LinearStepper, discretise
from hil.mechanics.sma.wire import SmaWires
from hil.mechanics.system import Drive


class LinearSystem:
    """x' = A x + B u, y = C x + D u from rest, stepped exactly for u constant over a period.

    Parameters
    ----------
    A, B, C, D : (n, n), (n, M), (P, n), (P, M) arrays, D may be None for zero
    inputs, outputs : names that end with their unit

    Raises
    ------
    ModelError
        The shapes of the matrices do not match.
    """

    cell_names: tuple[str, ...] = ()

    def __init__(
        self,
        A: ArrayLike,
        B: ArrayLike,
        C: ArrayLike,
        D: ArrayLike | None,
        inputs: Sequence[str],
        outputs: Sequence[str],
        period_s: float,
    ) -> None:
        self.inputs, self.outputs, self.period_s = tuple(inputs), tuple(outputs), period_s
        n, m, p = len(np.asarray(A, dtype=object)), len(inputs), len(outputs)
        shapes = {"A": (A, (n, n)), "B": (B, (n, m)), "C": (C, (p, n)),
                  "D": (np.zeros((p, m)) if D is None else D, (p, m))}  # fmt: skip
        a, b, c, d = (_matrix(name, entries, shape) for name, (entries, shape) in shapes.items())
        self.wires = SmaWires([], np.zeros(0))
        try:
            discrete = discretise(a, b, c, d, period_s)
        except ModelError:
            text = f"A: the state overflows within {period_s:g} s"
            raise ModelError(text) from None
        self.linear = LinearStepper(discrete, np.zeros(n), np.zeros(m))

    @property
    def y(self) -> NDArray[np.float64]:
        return self.linear.y

    def step(self, drive: Drive, inputs: NDArray[np.float64]) -> None:
        """Advance one period with these inputs held constant."""
        self.linear.step(inputs, inputs)


def _matrix(name: str, entries: ArrayLike, shape: tuple[int, int]) -> NDArray[np.float64]:
    try:
        matrix = np.asarray(entries, dtype=float)
    except ValueError:
        raise ModelError(f"{name}: its rows are not equally long") from None
    if matrix.shape != shape:
        raise ModelError(
            f"{name}: has the shape {matrix.shape}, states, inputs and outputs ask for {shape}"
        )
    return matrix
