"""The twin: the rig's model, simulated in parallel with the hardware.

It runs open loop from the cells that the boards report and the commanded outputs; it uses no
measurement. Systems whose open-loop model would drift have an observer instead.
"""

from collections.abc import Sequence

import numpy as np

from hil.compiled import njit
from hil.loop import duty
from hil.loop.channels import Channel, Readings, RigLayout
from hil.loop.frame import CELL_UNKNOWN, Column, Commands, Frame, unit_suffix, units
from hil.mechanics.system import Drive, System
from hil.rig.instruments import outputs_of, signals_of
from hil.rig.run_tables import RunTables


class LastDrive:
    """What the cells are driven with, as the boards last reported it.

    Attributes
    ----------
    cells : (N,) uint8 array, cells on
    duty : (N,) array, duties; empty unless the controller modulates
    """

    def __init__(self, n_cells: int) -> None:
        self.cells = np.zeros(n_cells, dtype=np.uint8)
        self.duty = np.zeros(0)

    def bind(self, readings: Readings) -> None:
        """Set where boards report."""
        self._reported, self._duty_reported = readings.cells_reported, readings.duty_reported
        self.duty = np.zeros(len(readings.duty_reported))

    def now(self) -> Drive:
        """The duties if the controller modulates, else the cells; an unknown one keeps its last."""
        keep_known(self._reported, self.cells)
        if not len(self.duty):
            return self.cells
        duty.keep_known(self._duty_reported, self.duty)
        return self.duty


class Twin:
    """Estimator that simulates the model open loop and predicts the reading of every channel.

    Parameters
    ----------
    outputs : sequence of int, index of the system output that each channel measures
    driven : sequence of int
        Index of the system input that each actuator's output sets; other inputs stay at 0.

    A system may name further outputs to record in its attribute `shown`.
    """

    def __init__(
        self,
        system: System,
        channels: Sequence[Channel],
        outputs: Sequence[int],
        driven: Sequence[int],
    ) -> None:
        self._system = system
        self._channels = channels
        self._shown: Sequence[str] = getattr(system, "shown", ())
        also = [list(system.outputs).index(name) for name in self._shown]
        self._outputs = np.array([*outputs, *also], dtype=np.int64)
        self._driven = np.array(driven, dtype=np.int64)
        self._inputs = np.zeros(len(system.inputs))
        self._drive = LastDrive(len(system.cell_names))
        self._started = False

    @property
    def columns(self) -> list[Column]:
        measured = [(c.column("model"), c.units, c.name) for c in self._channels]
        also = [
            (f"{name.removesuffix(unit_suffix(name))}_model{unit_suffix(name)}", units(name), name)
            for name in self._shown
        ]
        return [
            Column(column, unit, "model", f"{of} of the twin, run open loop on what was commanded")
            for column, unit, of in (*measured, *also)
        ]

    def bind(self, frame: Frame, readings: Readings, commands: Commands) -> None:
        self._model = frame.span([column.name for column in self.columns])
        self._drive.bind(readings)
        self._commanded = commands.outputs

    def step(self, n_periods: int) -> None:
        drive = self._drive.now()
        if self._started:
            self._inputs[self._driven] = self._commanded
            for _ in range(n_periods):
                self._system.step(drive, self._inputs)
        self._started = True
        self._model[:] = self._system.y[self._outputs]


def measured_outputs(
    tables: RunTables, system: System, layout: RigLayout
) -> tuple[list[Channel], list[int]]:
    """The channels that measure the model, and the index of the system output of each."""
    measured = signals_of(tables.devices)
    channels = [c for c in layout.channels if measured[c.name]]
    return channels, [list(system.outputs).index(measured[c.name]) for c in channels]


def driven_inputs(tables: RunTables, system: System) -> list[int]:
    """Index of the system input that each output of the rig sets."""
    return [list(system.inputs).index(o.drives) for o in outputs_of(tables.devices).values()]


def twin_of(tables: RunTables, system: System, layout: RigLayout) -> Twin:
    """Build the twin of a rig with this system."""
    channels, outputs = measured_outputs(tables, system, layout)
    return Twin(system, channels, outputs, driven_inputs(tables, system))


@njit(cache=True)
def keep_known(reported, cells):  # type: ignore[no-untyped-def]
    for n in range(len(cells)):
        if reported[n] != CELL_UNKNOWN:
            cells[n] = reported[n]
