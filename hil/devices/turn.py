"""A device that has its turn in some periods only, `every = n` in its table.

In between it has no reading: its channels are invalid and NaN, its cells not known, and the age of
what it read last grows; nothing is repeated. Off is commanded at once all the same.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hil.devices.device import Device
from hil.frame import CELL_UNKNOWN, Commands, Frame
from hil.slots import Readings


class Turn:
    """When a device is read and commanded, and what its slots hold otherwise.

    Parameters
    ----------
    every : int
        Periods from one turn to the next; the first tick is one.
    slots : its channels (or the board itself) among the readings' validity
    device_slot : its place among the ages
    gates : cells behind a board; none of a card, whose outputs are set in every period
    """

    def __init__(
        self,
        every: int,
        period_s: float,
        slots: Sequence[int],
        device_slot: int,
        gates: Sequence[int] = (),
    ) -> None:
        self._every = every
        self._period_s = period_s
        self._slots = np.array(slots)
        self._device_slot = device_slot
        self._gates: NDArray[np.int64] = np.array(gates, dtype=np.int64)
        self._last = -1  # number of the turn that was last taken
        self._came = False
        self._is_on = False
        self._of_last_tick_s = 0.0

    def bind(self, frame: Frame, readings: Readings, device: Device) -> None:
        """Learn where the device writes."""
        times = (f"{device.name}_age_s", f"{device.name}_t_s")
        own = [c.name for c in device.columns if not c.flags and not c.n_cells]
        blank = [frame.index(name) for name in own if name not in times]
        self._blank = np.array(blank, dtype=np.int64)
        self._values, self._readings = frame.values, readings
        self._age = frame.index(times[0])

    def comes(self, t_s: float) -> bool:
        """Whether the device has its turn at this tick; a missed one is made up for at once."""
        turn = round(t_s / self._period_s) // self._every
        self._came = turn > self._last
        if self._came:
            self._last, self._of_last_tick_s = turn, t_s
        return self._came

    def leave_out(self, t_s: float) -> None:
        """There is no reading at this tick."""
        r = self._readings
        r.valid[self._slots] = False
        r.measured[self._slots[self._slots < len(r.measured)]] = math.nan
        r.cells_reported[self._gates] = CELL_UNKNOWN
        self._values[self._blank] = math.nan
        age_s = float(r.ages_s[self._device_slot]) + (t_s - self._of_last_tick_s)
        self._of_last_tick_s = t_s
        r.ages_s[self._device_slot] = age_s
        self._values[self._age] = age_s

    def writes(self, commands: Commands) -> bool:
        """Whether it is commanded at this tick: in its turn, and when everything goes off."""
        if not len(self._gates):
            return True
        on = bool(commands.cells[self._gates].any())
        due = self._came or (self._is_on and not on)
        if due:
            self._is_on = on
        return due
