"""Simulated gates at the lines of a card or at a plug-in device: they only follow their levels."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hil.devices.injection import Injection
from hil.devices.sim.plant import SimPlant


class LineGates:
    """Gates without a board, as `hil.devices.sim.plant.Gates`.

    `line_stuck` holds the gate of `cell` at the level `value`, whatever its line does.

    Parameters
    ----------
    name : the device
    cells : index of each gate's cell in the rig

    Attributes
    ----------
    lines : (n,) uint8 array, levels that the device drives
    """

    def __init__(
        self, name: str, cells: Sequence[int], plant: SimPlant, injection: Injection | None
    ) -> None:
        self._name, self._injection = name, injection
        self.lines: NDArray[np.uint8] = np.zeros(len(cells), dtype=np.uint8)
        if len(cells):
            plant.wire(self, cells)

    def levels(self) -> NDArray[np.uint8]:
        """Levels of the gates now, which a readback sees."""
        levels = self.lines.copy()
        if self._injection is not None:
            for fault in self._injection.every("line_stuck", self._name):
                levels[fault.cell - 1] = fault.value > 0.0
        return levels

    def advance(self, duration_us: int) -> None:
        """Do nothing: gates have no time of their own."""

    def step(self, period_us: int) -> NDArray[np.float64]:
        """Duty of every gate over the coming period, 0 or 1."""
        duty = self.levels().astype(np.float64)
        if self._injection is not None and duty.any():
            end_s = self._injection.t_s + 1e-6 * period_us
            self._injection.last_on_s = max(self._injection.last_on_s, end_s)
        return duty

    def sense(self, cell: int, current_A: float, leakage_A: float, temperature_C: float) -> None:
        """Do nothing: nothing measures the cells."""

    def sense_supply(self, supply_V: float) -> None:
        """Do nothing, as `sense`."""

    def set_estop(self, is_open: bool) -> None:
        """Do nothing: a card reads the e-stop by a line of its own."""
