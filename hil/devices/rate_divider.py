"""A device that is read and commanded only every n-th period, `every = n` in its table.

In between it has no reading: its channels are invalid and NaN, its cells unknown, and the age of
its last reading grows. A command to switch off is sent at once in any period.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hil.devices.base import Device
from hil.loop.channels import Readings
from hil.loop.frame import CELL_UNKNOWN, Commands, Frame


class RateDivider:
    """Schedule of a device's turns, and the values of its channels in between.

    Parameters
    ----------
    every : int
        Periods from one turn to the next; the first tick is one.
    indices : its channels (or the board itself) among the readings' validity
    gates : cells behind a board; none of a card, whose outputs are set in every period
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
        self._last = -1  # number of the turn that was last taken
        self._came = False
        self._is_on = False
        self._of_last_tick_s = 0.0

    def bind(self, frame: Frame, readings: Readings, device: Device) -> None:
        """Set where the device writes."""
        times = (f"{device.name}_age_s", f"{device.name}_t_s")
        own = [c.name for c in device.columns if not c.flags and not c.n_cells]
        blank = [frame.index(name) for name in own if name not in times]
        self._blank = np.array(blank, dtype=np.int64)
        self._values, self._readings = frame.values, readings
        self._age = frame.index(times[0])

    def comes(self, t_s: float) -> bool:
        """Whether the device has its turn at this tick; a missed turn is made up at once."""
        turn = round(t_s / self._period_s) // self._every
        self._came = turn > self._last
        if self._came:
            self._last, self._of_last_tick_s = turn, t_s
        return self._came

    def leave_out(self, t_s: float) -> None:
        """There is no reading at this tick."""
        r = self._readings
        r.mark_valid(self._sources, 0)
        r.measured[self._indices[self._indices < len(r.measured)]] = math.nan
        r.cells_reported[self._gates] = CELL_UNKNOWN
        self._values[self._blank] = math.nan
        self._values[self._age] += t_s - self._of_last_tick_s
        self._of_last_tick_s = t_s

    def writes(self, commands: Commands) -> bool:
        """Whether it is commanded at this tick: in its turn, and when everything goes off."""
        if not len(self._gates):
            return True
        on = bool(commands.cells[self._gates].any())
        due = self._came or (self._is_on and not on)
        if due:
            self._is_on = on
        return due
