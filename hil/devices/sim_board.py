"""A simulated SMA driver board: gates that switch the plant's cells, a reply that may get lost."""

import numpy as np
from numpy.typing import NDArray

from hil.devices.device import Readings, time_columns
from hil.devices.sim_plant import SimPlant
from hil.frame import CELL_UNKNOWN, Column, Frame


class SimBoard:
    """Switches at once what it is told and reports what its gates do.

    Parameters
    ----------
    gates : sequence of int
        The model's cell (from 0) behind every gate.
    slot, device_slot : int
        Where its validity and age stand in the readings.
    """

    simulated = True

    def __init__(
        self,
        name: str,
        plant: SimPlant,
        gates: list[int],
        reply_lost_probability: float,
        rng: np.random.Generator,
        slot: int,
        device_slot: int,
    ) -> None:
        self.name = name
        self._plant = plant
        self._gates = np.array(gates)
        self._lost = reply_lost_probability
        self._rng = rng
        self._slot = slot
        self._device_slot = device_slot
        self._last_t_s = 0.0

    @property
    def columns(self) -> list[Column]:
        return time_columns(self.name, simulated=True)

    def open(self) -> None:
        self.safe()

    def bind(self, frame: Frame, readings: Readings) -> None:
        self._values = frame.values
        self._age = frame.index(f"{self.name}_age_s")
        self._clock = frame.index(f"{self.name}_t_s")
        self._readings = readings

    def read(self, t_s: float) -> None:
        self._plant.advance(t_s)
        r = self._readings
        answered = not self._lost or self._rng.random() >= self._lost
        r.valid[self._slot] = answered
        if answered:
            r.cells_reported[self._gates] = self._plant.cells[self._gates]
            self._last_t_s = t_s
        else:
            r.cells_reported[self._gates] = CELL_UNKNOWN
        age_s = t_s - self._last_t_s
        r.ages_s[self._device_slot] = age_s
        self._values[self._age] = age_s
        self._values[self._clock] = self._last_t_s

    def write(self, t_s: float, cells: NDArray[np.uint8]) -> None:
        self._plant.cells[self._gates] = cells[self._gates]

    def safe(self) -> None:
        self._plant.cells[self._gates] = 0

    def close(self) -> None:
        self.safe()
