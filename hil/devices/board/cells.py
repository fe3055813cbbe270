"""The cells of a rig behind a board's gates: what it says of them, in the rig's readings."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hil.loop.channels import Readings
from hil.loop.failed_cells import OPEN_WIRE
from hil.loop.frame import CELL_UNKNOWN, Column, Frame
from hil.loop.stages import Message
from hil.mechanics.arrays import Mask


@dataclass(frozen=True)
class BoardPlace:
    """Position of a board in its rig.

    Attributes
    ----------
    gates : the model's cell (from 0) behind every gate
    cell_names : their names, gate by gate
    index : index of its validity in the readings
    first_gate : gates of the boards before it: a broadcast's draws go by the number of the gate
    """

    gates: tuple[int, ...]
    cell_names: tuple[str, ...]
    index: int
    first_gate: int = 0


class BoardCells:
    """Gate by gate, the cells of one board.

    Attributes
    ----------
    gates : their places in arrays of all the rig's cells
    bit : of every gate in a word
    open : isolated cells, as last answered
    """

    def __init__(self, place: BoardPlace, simulated: bool) -> None:
        first, self.n = place.gates[0], len(place.gates)
        in_a_row = place.gates == tuple(range(first, first + self.n))
        # A slice where it can be one: indexing by it takes a fifth of the time.
        self.gates = slice(first, first + self.n) if in_a_row else np.array(place.gates)
        self.bit = 1 << np.arange(self.n)
        self.open = self._reported_open = 0
        self._names, self._simulated = place.cell_names, simulated
        self._masks: dict[bytes, int] = {}
        self._patterns: dict[int, Mask] = {}

    @property
    def columns(self) -> list[Column]:
        return [
            column
            for cell in self._names
            for column in (
                Column(f"{cell}.current_A", "A", "measured", f"current of {cell}; NaN if not read",
                       simulated=self._simulated),
                Column(f"{cell}.temperature_C", "degC", "measured",
                       f"temperature of {cell}'s clamp; NaN if not read",
                       simulated=self._simulated),
            )
        ]  # fmt: skip

    def bind(self, frame: Frame, readings: Readings) -> None:
        self._wires = frame.span([column.name for column in self.columns])
        self._readings = readings

    def mask(self, cells: Mask) -> int:
        """The word that switches these of its cells on."""
        mask = self._masks.get(key := cells.tobytes())
        if mask is None:
            mask = self._masks[key] = int(self.bit[cells != 0].sum())
        return mask

    def among(self, bits: int) -> NDArray[np.bool_]:
        """Which gates this word has."""
        among: NDArray[np.bool_] = (bits & self.bit) != 0
        return among

    def begin(self) -> None:
        """A tick begins, in which no cell has been read yet."""
        self._wires.fill(math.nan)

    def unknown(self) -> None:
        """No answer: nobody knows what is on."""
        r = self._readings
        r.cells_reported[self.gates] = CELL_UNKNOWN
        if len(r.duty_reported):
            r.duty_reported[self.gates] = math.nan

    def report(self, cells_on: int, duty: NDArray[np.float64] | float) -> None:
        """These are on, at this duty."""
        r, pattern = self._readings, self._patterns.get(cells_on)
        if pattern is None:
            pattern = self._patterns[cells_on] = self.among(cells_on).astype(np.uint8)
        r.cells_reported[self.gates] = pattern
        if len(r.duty_reported):
            r.duty_reported[self.gates] = pattern * duty

    def show(
        self, first_cell: int, currents_mA: Sequence[int], temperatures_cC: Sequence[int]
    ) -> None:
        """These currents and temperatures were read, from this cell on."""
        wires, at, end = self._wires, 2 * first_cell, len(self._wires)
        for current_mA, temperature_cC in zip(currents_mA, temperatures_cC, strict=True):
            if at < end:
                wires[at] = 1e-3 * current_mA
                wires[at + 1] = 1e-2 * temperature_cC
            at += 2

    def reset(self, cells_open: int) -> None:
        """At arming these are isolated."""
        self._reported_open = 0
        self.set_apart(cells_open)

    def set_apart(self, cells_open: int) -> None:
        self.open = cells_open
        row = self._readings.cells_open
        if len(row):
            row[self.gates] = self.among(cells_open)

    @property
    def has_news(self) -> bool:
        """Whether a newly isolated cell has not been reported yet."""
        return bool(self.open & ~self._reported_open)

    def messages(self) -> list[Message]:
        """Newly isolated cells."""
        fresh, self._reported_open = self.open & ~self._reported_open, self.open
        names = [name for i, name in enumerate(self._names) if fresh >> i & 1]
        return [Message("warning", f"{name}: {OPEN_WIRE}") for name in names]
