"""A simulated data acquisition card: transducers, encoders and actuators on one plant.

In: signal -> volts or counts -> delay -> first-order low-pass -> offset and noise -> range -> bits.
Out: value -> volts -> range -> bits -> value, held until the next.
"""

from collections import deque
from dataclasses import dataclass

import numpy as np

from hil.devices.device import Readings, time_columns
from hil.devices.sim_plant import SimPlant
from hil.frame import Column, Commands, Frame

NOISE_BLOCK = 4096


@dataclass(frozen=True)
class SimChannel:
    """One instrument: `output` is the plant's output it sits on; raw is volts or counts.

    A reading is units_per_raw (raw - zero_raw), raw a whole number of steps of `step_raw`
    from `low_raw` to `high_raw`. A bandwidth of infinity passes everything.
    """

    name: str
    output: int
    raw_unit: str
    units_per_raw: float
    zero_raw: float
    step_raw: float
    low_raw: float
    high_raw: float
    bandwidth_Hz: float
    noise_rms_raw: float
    offset_raw: float
    delay_periods: int
    reading_lost_probability: float

    @property
    def raw_column(self) -> str:
        return f"{self.name}.raw_{self.raw_unit}"

    def digitised(self, raw: float) -> float:
        """The whole step nearest to a raw value, within the range."""
        return min(max(round(raw / self.step_raw) * self.step_raw, self.low_raw), self.high_raw)


@dataclass(frozen=True)
class SimOutput:
    """An analogue output that sets the plant's input `input`; value = units_per_V volts."""

    input: int
    units_per_V: float
    step_V: float
    range_V: float

    def set_to(self, value: float) -> float:
        """The value that the output's bits can give, nearest to the one asked for."""
        volts = round(value / self.units_per_V / self.step_V) * self.step_V
        return self.units_per_V * min(max(volts, -self.range_V), self.range_V - self.step_V)


class SimDaq:
    """Samples every channel and sets every output once a tick.

    Parameters
    ----------
    slot : int
        Where the first channel's reading and validity stand in the readings.
    output_slot : int
        Where the first output's value stands among the commands.
    """

    simulated = True

    def __init__(
        self,
        name: str,
        plant: SimPlant,
        channels: list[SimChannel],
        outputs: list[SimOutput],
        period_s: float,
        rng: np.random.Generator,
        slot: int,
        output_slot: int,
        device_slot: int,
    ) -> None:
        self.name = name
        self._plant = plant
        self._channels = channels
        self._outputs = outputs
        self._rng = rng
        self._slot = slot
        self._output_slot = output_slot
        self._device_slot = device_slot
        self._keep = [float(np.exp(-2.0 * np.pi * c.bandwidth_Hz * period_s)) for c in channels]
        self._noise = np.empty((NOISE_BLOCK, len(channels)))
        self._n = 0
        self._filtered = [0.0] * len(channels)
        self._late: list[deque[float]] = []
        self._last_t_s = [0.0] * len(channels)

    @property
    def columns(self) -> list[Column]:
        raw = [
            Column(
                c.raw_column,
                {"V": "V", "counts": "1"}[c.raw_unit],
                "measured",
                f"{c.raw_unit} read on channel {c.name}",
                simulated=True,
            )
            for c in self._channels
        ]
        return [*time_columns(self.name, simulated=True), *raw]

    def open(self) -> None:
        self._filtered = [self._input_raw(channel) for channel in self._channels]
        self._late = [
            deque([now] * c.delay_periods, maxlen=c.delay_periods + 1)
            for c, now in zip(self._channels, self._filtered, strict=True)
        ]

    def bind(self, frame: Frame, readings: Readings) -> None:
        self._values = frame.values
        self._age = frame.index(f"{self.name}_age_s")
        self._clock = frame.index(f"{self.name}_t_s")
        self._raw = [frame.index(c.raw_column) for c in self._channels]
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
            late = self._late[i]
            late.append(self._input_raw(channel))
            self._filtered[i] = late[0] + self._keep[i] * (self._filtered[i] - late[0])
            lost = channel.reading_lost_probability
            valid = not lost or self._rng.random() >= lost
            raw = float("nan")
            if valid:
                raw = channel.digitised(
                    self._filtered[i] + channel.offset_raw + channel.noise_rms_raw * noise[i]
                )
                self._last_t_s[i] = t_s
            self._values[self._raw[i]] = raw
            r.measured[self._slot + i] = channel.units_per_raw * (raw - channel.zero_raw)
            r.valid[self._slot + i] = valid
        # A card is as old as its oldest channel: one dead wire must not hide behind others.
        last_t_s = min(self._last_t_s)
        age_s = t_s - last_t_s
        r.ages_s[self._device_slot] = age_s
        self._values[self._age] = age_s
        self._values[self._clock] = last_t_s

    def _input_raw(self, channel: SimChannel) -> float:
        return self._plant.output(channel.output) / channel.units_per_raw + channel.zero_raw

    def write(self, t_s: float, commands: Commands) -> None:
        for i, output in enumerate(self._outputs, start=self._output_slot):
            self._plant.inputs[output.input] = output.set_to(float(commands.outputs[i]))

    def arm(self) -> None:
        """Outputs follow the commands at once."""

    def safe(self) -> None:
        """All outputs to zero."""
        for output in self._outputs:
            self._plant.inputs[output.input] = 0.0

    def close(self) -> None:
        """Nothing is held."""
