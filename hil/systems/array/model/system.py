"""A cellular array with its activation, stepped in time: used as plant and as twin."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hil.compiled import njit
from hil.errors import ModelError
from hil.mechanics.arrays import Indices
from hil.mechanics.discrete import LinearStepper, advanced
from hil.mechanics.system import Drive
from hil.systems.array.model.activation import Activation, CellActivation, switched
from hil.systems.array.model.cell_array import EXACT_ORDER_MAX, CellArray
from hil.systems.array.model.period import NO_WIRES, period
from hil.systems.array.model.sparse_step import SparseStepper
from hil.systems.array.model.wire_load import LoadedWires
from hil.systems.array.model.wire_rest import at_rest
from hil.systems.array.model.wire_step import step_loaded
from hil.systems.array.model.wire_steps import steps_per_period

NO_INPUTS: NDArray[np.float64] = np.zeros(0)

Stepper = LinearStepper | SparseStepper


class ArraySystem:
    """Steps an array by one period: cell drives in, forces and positions out.

    Up to EXACT_ORDER_MAX states, the step uses the matrix exponential. Larger arrays use a series
    that is summed cell by cell; `hil.systems.array.model.sparse_step` gives its error. Wires under
    stress divide the period into steps (`hil.systems.array.model.wire_steps`). The state is
    `activation.theta`, `activation.wires` and `linear.x`. A run starts in equilibrium at the
    temperature of the air, as come from the cold, with driven points at 0. External forces stay at
    zero.

    Attributes
    ----------
    inputs : `point.x_m` for every driven point; it moves there evenly within a period
    steps : number of steps of a period
    moves : (2, 2 P) array
        Position and velocity of every driven point at the beginning and end of the last step.
    u : inputs of the linear model at the beginning and at the end of the last step
    path : `u` of every step of the last period
    compiled : whether the compiled `period` has the rounding of `step`: not of several driven
        points that move within a period
    """

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
        under_stress = [
            (n, cell.wire, cell.loaded, cell.force_on_N)
            for n, cell in enumerate(activation)
            if cell.loaded is not None
        ]
        self.steps = steps_per_period(model, {one[0]: one[2] for one in under_stress}, period_s)
        self._step_s = period_s / self.steps
        self.activation = Activation(activation, self._step_s)
        self.wires = self.activation.wires
        warm = at_rest(model, activation)
        stressed = [n for n, *_ in under_stress]
        if warm is not None:
            for now, at_start in zip((self.wires.xi, self.activation.F_N), warm, strict=False):
                now[stressed] = at_start[stressed]
            self.activation.F_before_N[:] = self.activation.F_N
        self._rest_N = self.activation.F_N.copy()
        self.inputs = tuple(f"{name}.x_m" for name in model.driven)
        n_moves = 2 * len(self.inputs)
        self.moves = np.zeros((2, n_moves))
        self.u = self.activation.F_before_N, self.activation.F_N
        if n_moves:
            self.u = np.zeros(model.n_cells + n_moves), np.zeros(model.n_cells + n_moves)
        self.path = np.zeros((self.steps, *np.shape(self.u))) if self.steps > 1 else [self.u]
        self.linear = self.stepper()
        self.compiled = isinstance(self.linear, LinearStepper) and (
            len(self.inputs) < 2 or self.steps == 1
        )
        self.loaded: LoadedWires | None = None
        if under_stress:
            self.loaded = LoadedWires(model, under_stress, self.linear, self._step_s, self.wires)
            if warm is not None:
                self.loaded.begin(warm[2][stressed])
        self._kernel = self.kernel() if self.compiled and self.steps > 1 else None
        self._switched = self._switched_arrays()

    def _switched_arrays(self) -> tuple[Any, ...] | None:
        """What `_switched_step` takes after the drive; None with wires, inputs or many states."""
        linear, now = self.linear, self.activation
        if now.has_wires or self.inputs or not isinstance(linear, LinearStepper):
            return None
        return now.arrays, linear.discrete.columns, (linear.x, np.empty_like(linear.x)), linear.y

    def kernel(self, outputs: slice | Indices = slice(None)) -> tuple[Any, ...]:
        """What `period` takes, with these outputs; of a `compiled` system."""
        linear, now = self.linear, self.activation
        assert isinstance(linear, LinearStepper)
        loaded = NO_WIRES if self.loaded is None else self.loaded.kernel
        return (
            (self.steps, self._step_s, now.has_switched),
            (now.arrays, self.wires.arrays, loaded),
            linear.discrete.columns_of(outputs),
            (linear.x, np.empty_like(linear.x), linear.y[outputs]),
            (self.moves, *self.u),
        )

    def stepper(self) -> Stepper:
        """Return a new stepper of the linear part by steps, cold and in equilibrium."""
        rest = self._rest_N
        x0 = self.model.equilibrium(rest) if rest.any() else np.zeros(len(self.model.states))
        if len(x0) <= EXACT_ORDER_MAX:
            at_rest = np.concatenate([rest, np.zeros(len(self.moves[0]))])
            return LinearStepper(self.model.discrete(self._step_s), x0, at_rest)
        return SparseStepper(self.model, self._step_s, self.model.outputs, x0, rest)

    @property
    def y(self) -> NDArray[np.float64]:
        """Current outputs, in the order of `model.outputs`."""
        return self.linear.y

    def step(self, drive: Drive, inputs: NDArray[np.float64] = NO_INPUTS) -> None:
        """Advance one period with `drive` held constant: one duty (0 to 1) per cell.

        Without `inputs` driven points stay where they are.
        """
        if self._kernel is not None:
            period(drive, inputs if len(inputs) else self.moves[1, ::2], self._kernel, self.path)
            return
        if self._switched is not None:
            _switched_step(drive, *self._switched)
            return
        moves = self._path_m(inputs) if self.inputs else None
        for k in range(self.steps):
            if moves is not None:
                self._move(moves[k])
            self.activate(drive)
            if moves is not None:
                self._fill()
            self.linear.step(*self.u)
            if self.steps > 1:
                self.path[k][0][:], self.path[k][1][:] = self.u

    def _path_m(self, inputs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Where the driven points are at the end of every step of a period, a row each."""
        start_m = self.moves[1][::2]
        end_m = inputs if len(inputs) else start_m.copy()
        return end_m[None] if self.steps == 1 else np.linspace(start_m, end_m, self.steps + 1)[1:]

    def _move(self, inputs: NDArray[np.float64]) -> None:
        """Move the driven points from where they are, at a constant velocity, over a step."""
        before, after = self.moves
        before[::2] = after[::2]
        after[::2] = inputs
        before[1::2] = after[1::2] = (after[::2] - before[::2]) / self._step_s

    def _fill(self) -> None:
        """Put the cells' forces and the motion together."""
        now, n = self.activation, self.model.n_cells
        for u, F_N, moves in zip(self.u, (now.F_before_N, now.F_N), self.moves, strict=True):
            u[:n], u[n:] = F_N, moves

    def fail(self, cell: int, share: float) -> None:
        """Leave a cell this share of its tension from now on; with 0 it carries none.

        Raises
        ------
        ModelError
            Cells of an array with so many states cannot break or weaken during a run.
        """
        if not isinstance(self.linear, LinearStepper):
            raise ModelError(
                "a cell of an array with so many states cannot break or weaken during a run"
            )
        model = self.model
        self.model = model.with_weak(cell, share) if share > 0.0 else model.with_broken(cell)
        self.linear.becomes(self.model.discrete(self._step_s))
        if self.loaded is not None:
            self.loaded.feel(self.model, self.linear)
        if self._kernel is not None:
            self._kernel = self.kernel()
        self._switched = self._switched_arrays()

    def branches_C(self, fraction: NDArray[np.float64]) -> NDArray[np.float64]:
        """Temperatures of the wires' branches now, as `SmaWires.branches_C`."""
        branches = self.wires.branches_C(fraction)
        if self.loaded is not None:
            self.loaded.branches_C(fraction, branches)
        return branches

    def activate(self, drive: Drive) -> None:
        """Advance the cells' forces by one step; `step` then moves the array."""
        now = self.activation
        now.step(drive)
        if self.loaded is not None:
            if isinstance(self.linear, LinearStepper):
                kernel = self.loaded.kernel
                step_loaded(drive, self.linear.x, kernel, now.F_before_N, now.F_N, self.moves)
                return
            self.loaded.hold(now.F_before_N, now.F_N)
            if self.inputs:
                self._fill()
            self.loaded.step(drive, self.linear.forecast(*self.u), now.F_N)


@njit(cache=True)
def _switched_step(drive, switching, columns, states, y):  # type: ignore[no-untyped-def]
    """Switch the cells and move the array, by one period without steps."""
    x, x_next = states
    switched(drive, switching)
    advanced(columns, x, x_next, switching[5], switching[6], y)
