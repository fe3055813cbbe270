"""Rate divider: reads and commands a device only in every n-th period (`every = n`).

In other periods it has no reading: its channels are invalid and NaN, its cells are unknown, and the
age of its last reading grows. A command that switches all cells off is sent in any period.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hil.devices.base import Device
from hil.loop.channels import Readings
from hil.loop.frame import CELL_UNKNOWN, Commands, Frame


class RateDivider:
    """Decides in which periods a device is read, and invalidates its readings in the others.

    Parameters
    ----------
    every : the device is read once in this many periods, starting with the first tick
    indices : bits of its channels, or of the board, in `valid_bits`
    gates : cells of a board; none for a card, whose outputs are set in every period
    """

    def __init__(
        self,
        every: int,
        period_s: float,
        indices: Sequence[int],
        gates: Sequence[int] = (),
    ) -> None:
        self._every = every
        self._period_s = period_s
        self._indices = np.array(indices)
        self._sources = sum(1 << index for index in indices)
        self._gates: NDArray[np.int64] = np.array(gates, dtype=np.int64)
        self._last = -1  # number of the last period group in which the device was read
        self._is_turn = False
        self._is_on = False
        self._of_last_tick_s = 0.0

    def bind(self, frame: Frame, readings: Readings, device: Device) -> None:
        """Look up the columns of the device."""
        times = (f"{device.name}_age_s", f"{device.name}_t_s")
        names = [c.name for c in device.columns if not c.flags and not c.n_cells]
        blank = [frame.index(name) for name in names if name not in times]
        self._blank = np.array(blank, dtype=np.int64)
        self._values, self._readings = frame.values, readings
        self._age = frame.index(times[0])

    def comes(self, t_s: float) -> bool:
        """Whether the device is read at this tick; after a missed reading, the next tick reads."""
        turn = round(t_s / self._period_s) // self._every
        self._is_turn = turn > self._last
        if self._is_turn:
            self._last, self._of_last_tick_s = turn, t_s
        return self._is_turn

    def leave_out(self, t_s: float) -> None:
        """Mark the device's readings invalid at this tick, and advance their age."""
        r = self._readings
        r.mark_valid(self._sources, 0)
        r.measured[self._indices[self._indices < len(r.measured)]] = math.nan
        r.cells_reported[self._gates] = CELL_UNKNOWN
        if len(r.duty_reported):
            r.duty_reported[self._gates] = math.nan
        self._values[self._blank] = math.nan
        self._values[self._age] += t_s - self._of_last_tick_s
        self._of_last_tick_s = t_s

    def writes(self, commands: Commands) -> bool:
        """Whether to command it at this tick: if it was read, or if all its cells go off."""
        if not len(self._gates):
            return True
        on = bool(commands.cells[self._gates].any())
        due = self._is_turn or (self._is_on and not on)
        if due:
            self._is_on = on
        return due
