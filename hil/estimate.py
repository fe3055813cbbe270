"""The twin and the observer: the rig's model run beside the hardware.

The twin runs open loop on the cells that the boards report and the outputs commanded; nothing
measured enters it. The observer of an array is the same model corrected by the measured force
with the steady-state Kalman gain

    x_hat += P C^T (C P C^T + R)^-1 (y - y_hat)

with P from the discrete Riccati equation, process noise on every cell's force.

Source: Anderson & Moore, Optimal Filtering, ch. 4.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from hil.errors import ConfigError
from hil.frame import CELL_UNKNOWN, Column, Commands, Frame, units
from hil.models.array_system import ArraySystem
from hil.models.discrete import Discrete
from hil.models.system import System
from hil.slots import Channel, Readings


class Estimator(Protocol):
    """The stage of the tick that says what the readings should be."""

    @property
    def columns(self) -> list[Column]: ...

    def bind(self, frame: Frame, readings: Readings, commands: Commands) -> None:
        """Learn where to read and to write."""
        ...

    def step(self, n_periods: int) -> None:
        """Come to the current tick, this many periods after the last one."""
        ...


class Twin:
    """The model of any rig beside it: what every channel would read.

    Parameters
    ----------
    outputs : sequence of int
        Which of the system's outputs each channel measures.
    """

    def __init__(self, system: System, channels: Sequence[Channel], outputs: Sequence[int]) -> None:
        self._system = system
        self._channels = channels
        self._outputs = np.array(outputs, dtype=np.int64)
        self._cells = np.zeros(len(system.cell_names), dtype=np.uint8)
        self._started = False

    @property
    def columns(self) -> list[Column]:
        return [
            Column(
                c.column("model"),
                units(c.suffix),
                "model",
                f"{c.name} of the twin, run open loop on what was commanded",
            )
            for c in self._channels
        ]

    def bind(self, frame: Frame, readings: Readings, commands: Commands) -> None:
        self._model = frame.span([column.name for column in self.columns])
        self._reported = readings.cells_reported
        self._inputs = commands.outputs

    def step(self, n_periods: int) -> None:
        known = self._reported != CELL_UNKNOWN
        np.copyto(self._cells, self._reported, where=known)
        if self._started:
            for _ in range(n_periods):
                self._system.step(self._cells, self._inputs)
        self._started = True
        self._model[:] = self._system.y[self._outputs]


class ForceObserver:
    """Twin and observer of a cellular array.

    Parameters
    ----------
    system : ArraySystem
        The rig's model.
    output : int
        Which of its outputs the first force channel measures.
    cell_force_noise_N, force_noise_N : float
        Standard deviations of every cell's force over a period, and of the reading.
    """

    def __init__(
        self, system: ArraySystem, output: int, cell_force_noise_N: float, force_noise_N: float
    ) -> None:
        self._twin = system
        self._output = output
        discrete = system.discrete()
        self.gain = kalman_gain(discrete, output, cell_force_noise_N, force_noise_N)
        self._observer = system.stepper()
        self._cells = np.zeros(system.model.n_cells, dtype=np.uint8)
        self._started = False

    @property
    def columns(self) -> list[Column]:
        return [
            Column("force_model_N", "N", "model", "twin run open loop on cells_reported"),
            Column("force_estimate_N", "N", "model", "observer corrected by the measured force"),
        ]

    def bind(self, frame: Frame, readings: Readings, commands: Commands) -> None:
        self._values = frame.values
        self._model = frame.index("force_model_N")
        self._estimate = frame.index("force_estimate_N")
        self._readings = readings

    def step(self, n_periods: int) -> None:
        r = self._readings
        known = r.cells_reported != CELL_UNKNOWN
        np.copyto(self._cells, r.cells_reported, where=known)
        if self._started:
            activation = self._twin.activation
            for _ in range(n_periods):
                self._twin.step(self._cells)
                self._observer.step(activation.F_before_N, activation.F_N)
        self._started = True
        force_N = r.measured[0]
        if r.valid[0] and np.isfinite(force_N):
            error_N = force_N - self._observer.y[self._output]
            self._observer.correct(self.gain, self._output, error_N, self._twin.activation.F_N)
        self._values[self._model] = self._twin.y[self._output]
        self._values[self._estimate] = self._observer.y[self._output]


def kalman_gain(
    discrete: Discrete, output: int, cell_force_noise_N: float, force_noise_N: float
) -> NDArray[np.float64]:
    """Steady-state filter gain (n,) for one measured output.

    Raises
    ------
    ConfigError
        No stable observer exists.
    """
    Ad, C = discrete.Ad, discrete.C[output : output + 1]
    B = discrete.B0 + discrete.B1
    Q = cell_force_noise_N**2 * B @ B.T
    R = np.array([[force_noise_N**2]])
    try:
        P = scipy.linalg.solve_discrete_are(Ad.T, C.T, Q, R)
    except (np.linalg.LinAlgError, ValueError) as error:
        raise ConfigError(f"observer: no stable observer for this model: {error}") from None
    gain: NDArray[np.float64] = (P @ C.T / (C @ P @ C.T + R)).ravel()
    return gain
