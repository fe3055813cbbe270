"""The plant in place of the array, signal for signal: gates come in, the transducers' volts go out.

What is under test, boards with their firmware, wiring, cards and loop, cannot tell it from an array
but for the wires' currents. Once a tick the levels of the gates are read, the plant takes as many
periods as have passed with them, and its readings go out as voltages, which the rig's own card
measures in the period that follows.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hil.calibration.signal_chain import Chain
from hil.devices.base import time_columns
from hil.devices.nidaq import abilities
from hil.devices.nidaq.channels import Acquisition, AnalogOutput, CardPlan, Line
from hil.devices.nidaq.emulated import EmulatedBench
from hil.devices.nidaq.errors import said_by
from hil.devices.nidaq.lock import CardLock
from hil.devices.nidaq.tasks import LineReader, close_all
from hil.devices.nidaq.writers import AnalogWriter
from hil.loop.channels import Readings
from hil.loop.frame import Column, Commands, Frame
from hil.loop.stages import Message
from hil.mechanics.sma.wire import SmaWires
from hil.mechanics.system import Drive, System

NAME = "plant"


@dataclass(frozen=True)
class Played:
    """A transducer that the card plays: channel, terminal, the plant's output, and its chain."""

    channel: str
    terminal: str
    output: int
    chain: Chain


class Terminals(NamedTuple):
    """The card by its name, its inputs from the gates, its transducers, and their range."""

    card: str
    gates: Sequence[str]
    played: Sequence[Played]
    range_V: float


class PlantCard:
    """A device that is the plant.

    Parameters
    ----------
    system : the plant
    bench : the simulated cards it sits on; None where the card is a real one
    lock : it is not also one of the rig's own cards
    """

    name = NAME
    simulated = True

    def __init__(
        self,
        terminals: Terminals,
        system: System,
        bench: EmulatedBench | None,
        *,
        lock: bool,
    ) -> None:
        card, gates, played, range_V = terminals
        self._system, self._bench, self._played = system, bench, list(played)
        self._plan = CardPlan(
            card,
            Acquisition("on_demand", system.period_s),
            (),
            lines=tuple(Line(f"gate{i + 1}", line, "input") for i, line in enumerate(gates)),
            outputs=tuple(AnalogOutput(p.channel, p.terminal, 1.0, range_V) for p in played),
            watchdog="off",
        )
        self._wants_lock = lock
        self._lock: CardLock | None = None
        self._lines: LineReader | None = None
        self._writer: AnalogWriter | None = None
        self._inputs = np.zeros(len(system.inputs))
        self._volts = np.zeros(len(self._played))
        self._n = 0

    @property
    def columns(self) -> list[Column]:
        n_cells = len(self._system.cell_names)
        about = "gates that the plant's card sees high at t_s"
        return [
            *time_columns(self.name, True),
            Column("cells_driven", "1", "measured", about, n_cells=n_cells, simulated=True),
            *(
                Column(
                    f"{p.channel}.played_V", "V", "commanded",
                    f"volts of the plant's transducer {p.channel} from t_s on", simulated=True,
                )
                for p in self._played
            ),
        ]  # fmt: skip

    def bind(self, frame: Frame, readings: Readings) -> None:
        self._values = frame.values
        self._age_at = frame.index(f"{self.name}_age_s")
        self._clock_at = frame.index(f"{self.name}_t_s")
        self._played_at = [frame.index(f"{p.channel}.played_V") for p in self._played]
        self._driven = frame.cells("cells_driven")

    def open(self) -> None:
        """Find the card and put out what the resting plant's transducers give."""
        if self._bench is not None:
            self._bench.open()
        with said_by(self.name):
            card = abilities.find(self.name, self._plan.card)
            if self._wants_lock and not card.is_simulated:
                self._lock = CardLock(self.name, self._plan.card, int(card.serial_num))
            self._lines = LineReader(self._plan)
            self._lines.start()
            self._writer = AnalogWriter(self._plan, self._plan.outputs)
            self._put()

    def self_test(self, say: Callable[[str], None]) -> list[str]:
        """It switches nothing."""
        return []

    def arm(self) -> None:
        """It switches nothing."""

    def messages(self) -> list[Message]:
        return []

    def read(self, t_s: float) -> None:
        """The gates, and the plant up to this tick."""
        assert self._lines is not None
        if self._bench is not None:
            self._bench.advance(t_s)
        with said_by(self.name):
            self._driven[:] = self._lines.levels()
            n = round(t_s / self._system.period_s)
            while self._n < n:
                self._system.step(self._driven, self._inputs)
                self._n += 1
            self._put()
        self._values[self._age_at] = 0.0
        self._values[self._clock_at] = t_s
        self._values[self._played_at] = self._volts

    def _put(self) -> None:
        assert self._writer is not None
        y = self._system.y
        for i, played in enumerate(self._played):
            self._volts[i] = played.chain.raw(float(y[played.output]))
        self._writer.put(self._volts)

    def write(self, t_s: float, commands: Commands) -> None:
        """Ignored: the plant sees gates only."""

    def safe(self) -> None:
        """It switches nothing: its transducers go on showing the plant."""

    def close(self) -> None:
        close_all([w.task for w in (self._lines, self._writer) if w is not None])
        self._lines = self._writer = None
        if self._lock is not None:
            self._lock.release()
            self._lock = None


class Loads:
    """What emulated boards drive where the plant is behind a card: a resistor on every gate.

    Outputs are the levels of the gates.
    """

    inputs: Sequence[str] = ()

    def __init__(self, system: System) -> None:
        self.period_s = system.period_s
        self.cell_names = self.outputs = system.cell_names
        n_cells = len(system.cell_names)
        self.wires = SmaWires([None] * n_cells, np.zeros(n_cells))
        self.y: NDArray[np.float64] = np.zeros(n_cells)

    def step(self, drive: Drive, inputs: NDArray[np.float64]) -> None:
        self.y[:] = drive
