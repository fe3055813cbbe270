"""A simulated data acquisition card with force transducers on its analogue inputs.

force -> volts -> conditioner (first-order low-pass) -> offset and noise -> range -> bits.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hil.devices.device import Readings, time_columns
from hil.devices.sim_plant import SimPlant
from hil.frame import Column, Frame

NOISE_BLOCK = 4096


@dataclass(frozen=True)
class SimForceChannel:
    """One transducer: `output` is the plant's output it sits on."""

    name: str
    output: int
    newtons_per_V: float
    zero_V: float
    bandwidth_Hz: float
    noise_rms_V: float
    offset_V: float
    reading_lost_probability: float


class SimDaq:
    """Samples every channel once a tick.

    Parameters
    ----------
    slot : int
        Where the first channel's force and validity stand in the readings.
    """

    simulated = True

    def __init__(
        self,
        name: str,
        plant: SimPlant,
        channels: list[SimForceChannel],
        range_V: float,
        resolution_bits: int,
        period_s: float,
        rng: np.random.Generator,
        slot: int,
        device_slot: int,
    ) -> None:
        self.name = name
        self._plant = plant
        self._channels = channels
        self._range_V = range_V
        self._lsb_V = 2.0 * range_V / 2**resolution_bits
        self._rng = rng
        self._slot = slot
        self._device_slot = device_slot
        self._keep = [float(np.exp(-2.0 * np.pi * c.bandwidth_Hz * period_s)) for c in channels]
        self._noise = np.empty((NOISE_BLOCK, len(channels)))
        self._n = 0
        self._filtered_V = [0.0] * len(channels)
        self._last_t_s = [0.0] * len(channels)

    @property
    def columns(self) -> list[Column]:
        raw = [
            Column(
                f"{c.name}.raw_V",
                "V",
                "measured",
                f"voltage read on channel {c.name}",
                simulated=True,
            )
            for c in self._channels
        ]
        return [*time_columns(self.name, simulated=True), *raw]

    def open(self) -> None:
        for i, channel in enumerate(self._channels):
            self._filtered_V[i] = self._input_V(channel)

    def bind(self, frame: Frame, readings: Readings) -> None:
        self._values = frame.values
        self._age = frame.index(f"{self.name}_age_s")
        self._clock = frame.index(f"{self.name}_t_s")
        self._raw = [frame.index(f"{c.name}.raw_V") for c in self._channels]
        self._readings = readings

    def read(self, t_s: float) -> None:
        self._plant.report(self._readings.cells_reported)
        self._plant.advance(t_s)
        if self._n % NOISE_BLOCK == 0:
            self._rng.standard_normal(out=self._noise)
        noise = self._noise[self._n % NOISE_BLOCK]
        self._n += 1
        r = self._readings
        for i, channel in enumerate(self._channels):
            target_V = self._input_V(channel)
            self._filtered_V[i] = target_V + self._keep[i] * (self._filtered_V[i] - target_V)
            lost = channel.reading_lost_probability
            valid = not lost or self._rng.random() >= lost
            volts = float("nan")
            if valid:
                volts = self._filtered_V[i] + channel.offset_V + channel.noise_rms_V * noise[i]
                steps = round(volts / self._lsb_V)
                top = round(self._range_V / self._lsb_V)
                volts = min(max(steps, -top), top - 1) * self._lsb_V
                self._last_t_s[i] = t_s
            self._values[self._raw[i]] = volts
            r.forces_N[self._slot + i] = channel.newtons_per_V * (volts - channel.zero_V)
            r.valid[self._slot + i] = valid
        # A card is as old as its oldest channel: one dead wire must not hide behind others.
        last_t_s = min(self._last_t_s)
        age_s = t_s - last_t_s
        r.ages_s[self._device_slot] = age_s
        self._values[self._age] = age_s
        self._values[self._clock] = last_t_s

    def _input_V(self, channel: SimForceChannel) -> float:
        return self._plant.output(channel.output) / channel.newtons_per_V + channel.zero_V

    def write(self, t_s: float, cells: NDArray[np.uint8]) -> None:
        """A card with inputs only switches nothing."""

    def arm(self) -> None:
        """A card with inputs only switches nothing."""

    def safe(self) -> None:
        """Inputs are always safe."""

    def close(self) -> None:
        """Nothing is held."""
