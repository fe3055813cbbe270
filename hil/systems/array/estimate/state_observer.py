"""Twin and observer of a cellular array, stepped together with the cells that are on.

The twin runs open loop. The observer is the same model, corrected by the measured force with a
steady-state Kalman gain (`hil.mechanics.kalman`). A random-walk disturbance force accounts for
what the model does not explain: a dead or weak cell, or the zero offset of the transducer.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import isfinite
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hil.compiled import njit
from hil.errors import ModelError
from hil.mechanics.arrays import Array
from hil.mechanics.discrete import LinearStepper, advanced, corrected
from hil.mechanics.kalman import kalman_gain, kalman_gain_shown
from hil.mechanics.sma.wire import SmaWires
from hil.mechanics.system import Drive
from hil.systems.array.model.activation import switched
from hil.systems.array.model.cell_array import EXACT_ORDER_MAX, CellArray
from hil.systems.array.model.system import NO_INPUTS, ArraySystem

UNLIKE_ORDER_MAX = 2000


@dataclass(frozen=True)
class ObserverNoise:
    """Standard deviations of a cell's force over a period and of a reading; disturbance rate.

    A disturbance rate of 0 removes the disturbance from the observer.
    """

    cell_force_N: float
    force_N: float
    disturbance_N_per_sqrt_s: float = 0.0


@lru_cache(maxsize=4)
def observer_gain(
    model: CellArray, period_s: float, output: int, noise: ObserverNoise
) -> NDArray[np.float64]:
    """The Kalman gain, once a model; ModelError where no observer is stable."""
    noises = noise.cell_force_N, noise.force_N, noise.disturbance_N_per_sqrt_s
    gain = None
    if len(model.states) > EXACT_ORDER_MAX:
        A, B, C, _ = model.sparse
        rate_per_s = np.sqrt(abs(A).max())
        size = np.array([1.0 if "_per_s" in name else rate_per_s for name in model.states])
        to, back = sp.diags_array(size), sp.diags_array(1.0 / size)  # all states in m/s, and back
        scaled = to @ A @ back, to @ B[:, : model.n_cells], (C[[output]] @ back).toarray().ravel()
        gain = kalman_gain_shown(scaled, period_s, noises)
    if gain is None and len(model.states) > UNLIKE_ORDER_MAX:
        raise ModelError(
            f"order {len(model.states)}: of cells or masses that differ an observer may have "
            f"{UNLIKE_ORDER_MAX} states: give them one value"
        )
    if gain is None:
        return kalman_gain(model.discrete(period_s), output, *noises)
    gain[: len(size)] /= size
    return gain


class ArrayObserver:
    """Twin and observer on one output of an array.

    Attributes
    ----------
    twin : the model that runs open loop
    outputs : (3,) array, after `step`: the twin's force, the observer's force, and the disturbance
        included in it. May be replaced by a view of a frame's row.
    x : (n,) array, state of the observer
    gain : (n,) or (n + 1,) array, Kalman gain; the last element belongs to the disturbance
    """

    def __init__(self, system: ArraySystem, output: int, noise: ObserverNoise) -> None:
        self.twin = system
        self._output = output
        self.gain = observer_gain(system.model, system.period_s, output, noise)
        self._stepper = system.stepper()
        n = len(self._stepper.x)
        self._gain = np.ascontiguousarray(self.gain[:n])
        self._gain_d = float(self.gain[n]) if len(self.gain) > n else 0.0
        self._disturbance_N = np.zeros(1)
        self.outputs = np.zeros(3)
        self._kernel = self._one_kernel()

    def _one_kernel(self) -> tuple[Any, ...] | None:
        """Arguments of the compiled `_step`; None for wires, driven points and sparse models."""
        twin, observer = self.twin.linear, self._stepper
        now = self.twin.activation
        if now.has_wires or self.twin.inputs or not isinstance(twin, LinearStepper):
            return None
        if not isinstance(observer, LinearStepper):
            return None
        d = twin.discrete
        states = (twin.x, twin.y, observer.x, observer.y, np.empty_like(twin.x))
        correction = (self._gain, self._gain_d, self._output, self._disturbance_N)
        return now.arrays, d.columns, (d.C, d.D), states, correction

    @property
    def activation_N(self) -> NDArray[np.float64]:
        """Current F of every cell."""
        return self.twin.activation.F_N

    @property
    def theta(self) -> NDArray[np.float64]:
        """Current state of the sigmoid cells: theta of `hil.systems.array.model.activation`."""
        return self.twin.activation.theta

    @property
    def wires(self) -> SmaWires:
        """The twin's wires."""
        return self.twin.activation.wires

    @property
    def x(self) -> NDArray[np.float64]:
        return self._stepper.x

    @property
    def disturbance_N(self) -> float:
        """Disturbance force; the estimate includes it."""
        return float(self._disturbance_N[0])

    @property
    def twin_N(self) -> float:
        """Current force of the twin."""
        return float(self.twin.y[self._output])

    @property
    def estimate_N(self) -> float:
        """Current force of the observer."""
        return float(self._stepper.y[self._output]) + self.disturbance_N

    def step(self, cells: Drive, n_periods: int, force_N: float, inputs: Array = NO_INPUTS) -> None:
        """Advance to the next reading and correct with it; NaN means no reading."""
        if self._kernel is not None:
            _step(n_periods, cells, force_N, self.outputs, self._kernel)
            return
        self.advance(cells, n_periods, inputs)
        self.outputs[0] = self.twin_N
        if isfinite(force_N):
            self.correct(force_N)
        self.outputs[1], self.outputs[2] = self.estimate_N, self.disturbance_N

    def step_rows(
        self, cells: NDArray[np.uint8], force_N: NDArray[np.float64]
    ) -> NDArray[np.float64] | None:
        """`outputs` (n, 3) at successive ticks from the first; None without a compiled step."""
        if self._kernel is None:
            return None
        outputs = np.empty((len(cells), 3))
        _steps(cells, force_N, outputs, self._kernel)
        return outputs

    def set_ambient(self, T_a_C: float, *, settled: bool) -> None:
        """Set the ambient temperature; `settled` also sets the wires to it."""
        self.twin.wires.set_ambient(T_a_C, settled=settled)

    def advance(self, cells: Drive, n_periods: int, inputs: Array = NO_INPUTS) -> None:
        """Advance `n_periods` periods with these cells on, or with these duties."""
        for _ in range(n_periods):
            self.twin.step(cells, inputs)
            path = self.twin.path
            if isinstance(path, np.ndarray) and isinstance(self._stepper, LinearStepper):
                self._stepper.follow(path)
                continue
            for u in path:
                self._stepper.step(*u)

    def correct(self, force_N: float) -> None:
        """Correct state and disturbance with a reading of the current force."""
        error_N = force_N - self.estimate_N
        self._disturbance_N[0] += self._gain_d * error_N
        self._stepper.correct(self._gain, self._output, error_N, self.twin.u[1])


@njit(cache=True)
def _step(n_periods, cells, force_N, outputs, observer):  # type: ignore[no-untyped-def]
    """`ArrayObserver.step` in one compiled call."""
    switching, columns, rows, states, correction = observer
    F_before, F = switching[5], switching[6]
    x_twin, y_twin, x_observer, y_observer, scratch = states
    gain, gain_d, output, disturbance = correction
    for _ in range(n_periods):
        switched(cells, switching)
        advanced(columns, x_twin, scratch, F_before, F, y_twin)
        advanced(columns, x_observer, scratch, F_before, F, y_observer)
    if np.isfinite(force_N):
        error = force_N - (y_observer[output] + disturbance[0])
        disturbance[0] += gain_d * error
        y_observer[output] = corrected(rows, output, gain, error, x_observer, F)
    outputs[0] = y_twin[output]
    outputs[1] = y_observer[output] + disturbance[0]
    outputs[2] = disturbance[0]


@njit(cache=True)
def _steps(cells, force_N, outputs, observer):  # type: ignore[no-untyped-def]
    """`ArrayObserver.step` at every tick; no period has passed at the first one."""
    for i in range(len(cells)):
        _step(min(i, 1), cells[i], force_N[i], outputs[i], observer)
