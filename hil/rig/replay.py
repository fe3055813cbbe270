"""A replayed rig: reads return the recorded rows; writes have no effect."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hil.devices.board import protocol
from hil.errors import ConfigError
from hil.loop.channels import (
    DUTY,
    DUTY_REPORTED,
    WORD_BITS,
    RigLayout,
    require_columns,
    valid_columns,
    valid_rows,
)
from hil.loop.frame import CELL_UNKNOWN, Frame
from hil.loop.stages import Message
from hil.loop.states import NUMBERS, States

if TYPE_CHECKING:
    import xarray as xr


class ReplayRig:
    """Replaces `hil.rig.rig.Rig` in the loop.

    Parameters
    ----------
    run : a recording, as `hil.open_run` returns it
    like : layout of the rig on which it was recorded

    Raises
    ------
    ConfigError
        The recording does not have the columns or the cells of this rig.
    """

    def __init__(self, run: xr.Dataset, like: RigLayout) -> None:
        self.layout = like
        _require_columns_of(run, like)
        self.states = States("ready")  # the recorded rig was ready at the first row
        self._row = -1
        boards, devices = like.boards, like.devices
        self._measured = np.stack([run[c.column("measured")].values for c in like.channels], axis=1)
        sources = (*(channel.name for channel in like.channels), *boards)
        n_rows = run.sizes["tick"]
        self._valid = np.zeros((n_rows, len(valid_columns(len(sources)))), dtype=np.uint64)
        for i, name in enumerate(sources):
            word, bit = divmod(i, WORD_BITS)
            self._valid[:, word] |= valid_rows(run, name).astype(np.uint64) << np.uint64(bit)
        self._ages = np.stack([run[f"{name}_age_s"].values for name in devices], axis=1)
        none = np.zeros((n_rows, 0), dtype=np.uint8)
        self._reported = run.cells_reported.values if like.n_cells else none
        self._open = run.cells_open.values if like.isolates else none
        self._duty = run[DUTY_REPORTED].values if like.modulates else np.zeros((n_rows, 0))
        self._unknown = none
        if like.n_cells:
            self._unknown = np.asarray(run.cells_commanded.values == CELL_UNKNOWN)
        self._drawn_tick: NDArray[np.int64] = np.zeros(like.n_cells, dtype=np.int64)
        self._bit_columns = {
            name: run[name].values.astype(np.uint64) for name in _bit_columns(like) if name in run
        }  # old recordings have no link bits of boards and no fault bits of cards
        state = run.guard_state.values
        before = np.concatenate(([NUMBERS["ready"]], state[:-1]))
        trips = np.isin(state, [NUMBERS["fault"], NUMBERS["estop"]])
        # A row shows the state at its end: one that was armed and trips had its power on.
        self._running = (state == NUMBERS["running"]) | trips & (before == NUMBERS["ready"])

    def bind(self, frame: Frame) -> None:
        """Connect every reading to its column in the row."""
        self.readings, self.commands = self.layout.bind(frame)
        self._values, self._bits = frame.values, frame.bits
        self._ages_at = np.array([frame.index(f"{d}_age_s") for d in self.layout.devices], int)
        self._bits_at = [(frame.bit_index(n), column) for n, column in self._bit_columns.items()]

    def arm(self) -> None:
        """Do nothing: a recording switches no cells."""

    def ready(self) -> bool:
        """Whether all power was on at the next row, relay K1 of every board included."""
        return bool(self._running[self._row + 1])

    def has_cooled(self) -> bool:
        return True

    def messages(self) -> list[tuple[str, Message]]:
        """Return none: the recorded events contain them."""
        return []

    def has_news(self) -> bool:
        """Return False: the recorded events contain the messages."""
        return False

    def troubles(self, on_s: NDArray[np.float64]) -> dict[str, list[str]]:
        """Return none: the recorded events contain them."""
        return {}

    def tare(self, channel: str, newtons: float) -> None:
        """Do nothing: the recorded readings are already tared."""

    def read(self, t_s: float) -> None:
        """Copy the readings of the next recorded row."""
        self._row += 1
        r, k = self.readings, self._row
        r.measured[:] = self._measured[k]
        r.valid_words[:] = self._valid[k]
        self._values[self._ages_at] = self._ages[k]
        r.cells_reported[:] = self._reported[k]
        r.cells_open[:] = self._open[k]
        r.duty_reported[:] = self._duty[k]
        if self.commands.broadcast.tick:  # cells with a report have made their draw already
            self._drawn_tick[self._reported[k] != CELL_UNKNOWN] = self.commands.broadcast.tick
        for at, column in self._bits_at:
            self._bits[at] = column[k]

    def write(self, t_s: float) -> None:
        """Ignore commands, but repeat the draws of a broadcast for the cells.

        A cell whose commanded state was recorded as unknown stays unknown.
        """
        message, cells = self.commands.broadcast, self.commands.cells
        if not message.tick:
            return
        p, q = (protocol.probability_per_65536(x) for x in (message.p_on, message.q_off))
        unknown = self._unknown[self._row]
        for n, gate in enumerate(self.layout.gate_of):
            if self._drawn_tick[n] == message.tick:
                continue
            if unknown[n]:
                cells[n] = CELL_UNKNOWN
                continue
            self._drawn_tick[n] = message.tick
            if self.layout.isolates and self._open[self._row, n]:
                cells[n] = 0  # the board keeps an isolated cell off
                continue
            chance = q if cells[n] else p
            drawn = protocol.draw(message.seed, message.tick, gate)
            if chance == protocol.PROBABILITY_ONE or drawn < chance:
                cells[n] = not cells[n]


def _bit_columns(like: RigLayout) -> list[str]:
    """The columns in which devices report faults."""
    names = [f"{name}_fault_bits" for name in (*like.boards, *like.cards, *like.supplies)]
    kinds = ("link", "resistance")
    return names + [f"{name}_{kind}_bits" for name in like.boards for kind in kinds]


def _require_columns_of(run: xr.Dataset, like: RigLayout) -> None:
    names = [c.column("measured") for c in like.channels]
    names += [f"{name}_age_s" for name in like.devices]
    names += [f"{name}_fault_bits" for name in (*like.boards, *like.supplies)]
    names += ["late_s", "fault_bits", "valid_bits", "guard_state", *like.outputs]
    names += ["cells_reported", "cells_commanded"] if like.n_cells else []
    names += ["cells_open"] if like.isolates else []
    names += [DUTY, DUTY_REPORTED] if like.modulates else []
    require_columns(run, names)
    n_cells = run.sizes["cell"] if like.n_cells else 0
    if n_cells != like.n_cells:
        raise ConfigError(
            f"{run.encoding['source']}: its rows have {n_cells} cells, its experiment has "
            f"{like.n_cells}: use the original file"
        )
