"""Gates of a card's cells, read back: a cell whose gate differs from its command is stuck."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hil.devices.nidaq.channels import CellLine, Line
from hil.loop.guard import STUCK

LOOKS = 2  # differing readings in a row: one may be taken while a gate switches


class ReadBack:
    """Compares the levels of gates with the levels that were written a tick before.

    Parameters
    ----------
    lines_in : every line that the card reads, in order; those of kind `readback` are gates
    switches : every line that switches a cell, in order
    """

    def __init__(self, lines_in: Sequence[Line], switches: Sequence[CellLine]) -> None:
        lines = [line.name for line in lines_in]
        cells = [line.cell for line in switches]
        self._cells = tuple(line.name for line in lines_in if line.kind == "readback")
        self._line_of = np.array([lines.index(cell) for cell in self._cells], dtype=np.int64)
        self._switch_of = np.array([cells.index(cell) for cell in self._cells], dtype=np.int64)
        self._streak = np.zeros(len(self._cells), dtype=np.int64)
        self._seen: NDArray[np.bool_] = np.zeros(len(self._cells), dtype=bool)
        self._bits: list[int] = []

    def bind(self, flags: Sequence[str]) -> None:
        """Look up the bit of every cell in the card's fault bits."""
        self._bits = [1 << flags.index(f"{cell}{STUCK}") for cell in self._cells]

    def look(self, levels: NDArray[np.bool_], switched: NDArray[np.uint8]) -> int:
        """Fault bits of the cells whose gates have differed LOOKS times in a row.

        Parameters
        ----------
        levels : of all lines that are read
        switched : levels that were written to the cells in the tick before
        """
        if not len(self._cells):
            return 0
        self._seen = levels[self._line_of]
        differs = self._seen != switched[self._switch_of]
        self._streak = np.where(differs, self._streak + 1, 0)
        return sum(bit for bit, n in zip(self._bits, self._streak, strict=True) if n >= LOOKS)

    def reported(self, switched: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """What is known of every cell: the level of its gate, or else of its line."""
        states = switched.copy()
        states[self._switch_of] = self._seen
        return states
