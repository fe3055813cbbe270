"""A rig made of a recording: every read gives the row that was read then; writes go nowhere."""

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hil import wire
from hil.devices.device import Remark
from hil.frame import CELL_UNKNOWN, Frame
from hil.slots import RigLayout, valid_rows
from hil.states import NUMBERS, States


class ReplayRig:
    """Stands in for `hil.rig.Rig` in the loop.

    Parameters
    ----------
    run : a recording, as `hil.open_run` gives it
    like : the rig that it was recorded on
    """

    def __init__(self, run: xr.Dataset, like: RigLayout) -> None:
        self.layout = like
        self.states = States("ready")  # as it was then
        self._row = -1
        boards, devices = like.boards, like.devices
        self._measured = np.stack([run[c.column("measured")].values for c in like.channels], axis=1)
        sources = (*(channel.name for channel in like.channels), *boards)
        self._valid = np.stack([valid_rows(run, name) for name in sources], axis=1)
        self._ages = np.stack([run[f"{name}_age_s"].values for name in devices], axis=1)
        n_rows = run.sizes["tick"]
        none = np.zeros((n_rows, 0), dtype=np.uint8)
        self._reported = run.cells_reported.values if boards else none
        self._open = run.cells_open.values if like.sets_apart else none
        self._faults = np.zeros((n_rows, len(boards)), dtype=np.int64)
        self._unknown = none
        if boards:
            self._unknown = np.asarray(run.cells_commanded.values == CELL_UNKNOWN)
        self._drawn_tick: NDArray[np.int64] = np.zeros(like.n_cells, dtype=np.int64)
        for i, name in enumerate(boards):
            self._faults[:, i] = run[f"{name}_fault_bits"].values
        self._links = np.zeros_like(self._faults)
        for i, name in enumerate(boards):
            if f"{name}_link_bits" in run:  # not in recordings made before boards had any
                self._links[:, i] = run[f"{name}_link_bits"].values
        self._card_faults = np.zeros((n_rows, len(like.cards)), dtype=np.int64)
        for i, name in enumerate(like.cards):
            if f"{name}_fault_bits" in run:  # not in recordings made before cards had any
                self._card_faults[:, i] = run[f"{name}_fault_bits"].values

        self._supply_faults = np.zeros((n_rows, len(like.supplies)), dtype=np.int64)
        for i, name in enumerate(like.supplies):
            self._supply_faults[:, i] = run[f"{name}_fault_bits"].values
        self._waits = like.waits
        self._running = run.guard_state.values == NUMBERS["running"]

    def bind(self, frame: Frame) -> None:
        """Give every reading its place in the row."""
        self.readings, self.commands = self.layout.bind(frame)
        names = (*self.layout.boards, *self.layout.cards, *self.layout.supplies)
        self._fault_bits = [frame.bit_index(f"{name}_fault_bits") for name in names]
        self._fault_bits += [frame.bit_index(f"{name}_link_bits") for name in self.layout.boards]
        self._bits = frame.bits

    def arm(self) -> None:
        """Nothing can be switched."""

    def ready(self) -> bool:
        """What had to come on was on at the row that comes next."""
        return not self._waits or bool(self._running[self._row + 1])

    def has_cooled(self) -> bool:
        return True

    def remarks(self) -> list[tuple[str, Remark]]:
        """The recording has them."""
        return []

    def has_news(self) -> bool:
        """The recording has it."""
        return False

    def troubles(self, on_s: NDArray[np.float64]) -> dict[str, list[str]]:
        """The recording says what they were."""
        return {}

    def tare(self, channel: str, newtons: float) -> None:
        """The recorded readings are tared."""

    def read(self, t_s: float) -> None:
        """The next row's readings."""
        self._row += 1
        r, k = self.readings, self._row
        r.measured[:] = self._measured[k]
        r.valid[:] = self._valid[k]
        r.ages_s[:] = self._ages[k]
        r.cells_reported[:] = self._reported[k]
        r.board_faults[:] = self._faults[k]
        r.board_links[:] = self._links[k]
        r.cells_open[:] = self._open[k]
        if self.commands.broadcast.tick:  # what was reported was drawn already
            self._drawn_tick[self._reported[k] != CELL_UNKNOWN] = self.commands.broadcast.tick
        r.card_faults[:] = self._card_faults[k]
        r.supply_faults[:] = self._supply_faults[k]
        faults = (*r.board_faults, *r.card_faults, *r.supply_faults, *r.board_links)
        for column, bits in zip(self._fault_bits, faults, strict=True):
            self._bits[column] = bits

    def write(self, t_s: float) -> None:
        """Commands go nowhere; a broadcast's cells draw again, where the recording knew them."""
        message, cells = self.commands.broadcast, self.commands.cells
        if not message.tick:
            return
        p, q = (wire.probability_per_65536(x) for x in (message.p_on, message.q_off))
        unknown = self._unknown[self._row]
        for n, gate in enumerate(self.layout.gate_of):
            if self._drawn_tick[n] == message.tick:
                continue
            if unknown[n]:
                cells[n] = CELL_UNKNOWN
                continue
            self._drawn_tick[n] = message.tick
            if self.layout.sets_apart and self._open[self._row, n]:
                cells[n] = 0  # its board sees to that
                continue
            chance = q if cells[n] else p
            drawn = wire.draw(message.seed, message.tick, gate)
            if chance == wire.PROBABILITY_ONE or drawn < chance:
                cells[n] = not cells[n]
