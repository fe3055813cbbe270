"""The twin of an array beside the controlled force: other channels, and the wires' temperatures."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hil.control.controller import ArrayEstimate
from hil.experiment.twin import LastDrive
from hil.loop.channels import Channel, Readings
from hil.loop.frame import Column, Commands, Frame
from hil.mechanics.sma.wire import SmaWires
from hil.systems.array.model.names import wire_signal
from hil.systems.array.model.system import ArraySystem

ROOM_RANGE_C = (-50.0, 100.0)  # readings outside this range are not plausible ambient temperatures


class TwinReadings:
    """Columns of the twin's displacements and wires.

    Parameters
    ----------
    system : the twin
    measured : channels that measure the model, and the signal of each
    """

    def __init__(self, system: ArraySystem, measured: Sequence[tuple[Channel, str]]) -> None:
        self._system = system
        self.channels = [(c, s) for c, s in measured if not c.force]
        self._wired = np.flatnonzero(np.isfinite(system.wires.T_C))
        names = [wire_signal(cell) for cell in system.cell_names]
        outputs = list(system.outputs)
        self._wire_at = [
            (i, names.index(s)) for i, (_, s) in enumerate(self.channels) if s in names
        ]
        plain = [(i, outputs.index(s)) for i, (_, s) in enumerate(self.channels) if s in outputs]
        self._at, self._from = np.array(plain, dtype=np.int64).reshape(-1, 2).T

    @property
    def columns(self) -> list[Column]:
        how = "of the twin, run open loop on cells_reported"
        names = self._system.cell_names
        return [
            *(Column(c.column("model"), c.units, "model", f"{s} {how}") for c, s in self.channels),
            *(
                Column(f"{names[n]}.wire_model_C", "degC", "model",
                       f"wire of {names[n]} in the twin, run open loop on cells_reported")
                for n in self._wired
            ),
        ]  # fmt: skip

    def bind(self, frame: Frame) -> None:
        self._values = frame.span([column.name for column in self.columns])

    def write(self) -> None:
        """Write the twin's present readings."""
        if not len(self._values):
            return
        T_C, n = self._system.wires.T_C, len(self.channels)
        self._values[self._at] = self._system.y[self._from]
        for i, cell in self._wire_at:
            self._values[i] = T_C[cell]
        self._values[n:] = T_C[self._wired]


class Motion:
    """The inputs of an array, its driven points, as the outputs were last commanded."""

    def __init__(self, system: ArraySystem, driven: Sequence[int]) -> None:
        self._driven = np.array(driven, dtype=np.int64)
        self._inputs = np.zeros(len(system.inputs))
        self._commanded = np.zeros(0)

    def bind(self, commands: Commands) -> None:
        """Set where outputs are commanded."""
        self._commanded = commands.outputs

    def now(self) -> NDArray[np.float64]:
        """The inputs until the next command; an input that no output sets stays at 0."""
        if len(self._driven):
            self._inputs[self._driven] = self._commanded
        return self._inputs


class ArrayTwin:
    """Estimator of an array without a force channel: the twin, run open loop.

    Parameters
    ----------
    ambient : index of the channel that measures the ambient temperature
    driven : index of the model's input that each output of the rig sets
    """

    isolation = None

    def __init__(
        self,
        system: ArraySystem,
        readings: TwinReadings,
        ambient: int | None = None,
        driven: Sequence[int] = (),
    ) -> None:
        self._motion = Motion(system, driven)
        self._system, self._twin, self._ambient = system, readings, ambient
        self._started = False
        n_cells = len(system.cell_names)
        self._drive = LastDrive(n_cells)
        self.estimate = ArrayEstimate(
            cells=self._drive.cells,
            usable=np.ones(n_cells, dtype=np.uint8),
            x=system.linear.x,
            theta=system.activation.theta,
            wires=None,
        )

    @property
    def columns(self) -> list[Column]:
        return self._twin.columns

    def bind(self, frame: Frame, readings: Readings, commands: Commands) -> None:
        self._twin.bind(frame)
        self._readings = readings
        self._drive.bind(readings)
        self._motion.bind(commands)

    def step(self, n_periods: int) -> None:
        r, started = self._readings, self._started
        self._started = True
        T_C = room_C(r, self._ambient)
        if np.isfinite(T_C):
            self._system.wires.set_ambient(T_C, settled=not started)
        drive, inputs = self._drive.now(), self._motion.now()
        for _ in range(n_periods if started else 0):
            self._system.step(drive, inputs)
        self._twin.write()

    def assume_hot(self, wire_C: NDArray[np.float64]) -> None:
        """Start the twin's wires (N,) as austenite at these temperatures; NaN skips a wire."""
        start_hot(self._system.wires, wire_C)


def room_C(readings: Readings, channel: int | None) -> float:
    """The measured ambient temperature; NaN without a plausible reading."""
    if channel is None:
        return float("nan")
    T_C = float(readings.measured[channel])
    return T_C if ROOM_RANGE_C[0] <= T_C <= ROOM_RANGE_C[1] else float("nan")


def start_hot(wires: SmaWires, wire_C: NDArray[np.float64]) -> None:
    """Set wires (N,) to austenite at these temperatures; NaN skips a wire."""
    known = np.isfinite(wires.T_C) & np.isfinite(wire_C)
    np.copyto(wires.T_C, wire_C, where=known)
    wires.xi[known] = 1.0
