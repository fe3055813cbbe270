"""The twin: the rig's model run beside the hardware.

It runs open loop on the cells that the boards report and the outputs commanded; nothing measured
enters it. Systems whose model would drift away have an observer of their own.
"""

from collections.abc import Sequence

import numpy as np
from numba import njit

from hil.loop.channels import Channel, Readings, RigLayout
from hil.loop.frame import CELL_UNKNOWN, Column, Commands, Frame, unit_suffix, units
from hil.mechanics.system import System
from hil.rig.instruments import outputs_of, signals_of
from hil.rig.run_tables import RunTables


class Twin:
    """The model of any rig beside it: what every channel would read.

    Parameters
    ----------
    outputs : sequence of int
        Which of the system's outputs each channel measures.
    driven : sequence of int
        Which of the system's inputs each actuator's output sets; the others stay at 0.
    shown : names of outputs that recordings keep of the twin beside the channels
    """

    def __init__(
        self,
        system: System,
        channels: Sequence[Channel],
        outputs: Sequence[int],
        driven: Sequence[int],
        shown: Sequence[str] = (),
    ) -> None:
        self._system = system
        self._channels = channels
        self._shown = shown
        also = [list(system.outputs).index(name) for name in shown]
        self._outputs = np.array([*outputs, *also], dtype=np.int64)
        self._driven = np.array(driven, dtype=np.int64)
        self._inputs = np.zeros(len(system.inputs))
        self._cells = np.zeros(len(system.cell_names), dtype=np.uint8)
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
        self._reported = readings.cells_reported
        self._commanded = commands.outputs

    def step(self, n_periods: int) -> None:
        keep_known(self._reported, self._cells)
        if self._started:
            self._inputs[self._driven] = self._commanded
            for _ in range(n_periods):
                self._system.step(self._cells, self._inputs)
        self._started = True
        self._model[:] = self._system.y[self._outputs]


def measured_outputs(
    tables: RunTables, system: System, layout: RigLayout
) -> tuple[list[Channel], list[int]]:
    """The channels that measure the model, and which of the system's outputs each measures."""
    measured = signals_of(tables.devices)
    channels = [c for c in layout.channels if measured[c.name]]
    return channels, [list(system.outputs).index(measured[c.name]) for c in channels]


def driven_inputs(tables: RunTables, system: System) -> list[int]:
    """Which of the system's inputs each output of the rig sets."""
    return [list(system.inputs).index(o.drives) for o in outputs_of(tables.devices).values()]


def twin_of(
    tables: RunTables, system: System, layout: RigLayout, shown: Sequence[str] = ()
) -> Twin:
    """The twin of a rig with this system."""
    channels, outputs = measured_outputs(tables, system, layout)
    return Twin(system, channels, outputs, driven_inputs(tables, system), shown)


@njit(cache=True)
def keep_known(reported, cells):  # type: ignore[no-untyped-def]
    for n in range(len(cells)):
        if reported[n] != CELL_UNKNOWN:
            cells[n] = reported[n]
