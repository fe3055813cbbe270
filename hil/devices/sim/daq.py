"""A simulated data acquisition card: transducers, encoders and actuators on one plant.

Inputs: signal -> volts or counts -> delay -> first-order low-pass -> offset and noise -> range ->
quantisation. Outputs: value -> volts -> range -> quantisation -> value, held until the next one.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from hil.calibration.signal_chain import AT_RAIL, Chain
from hil.devices.base import ESTOP_OPEN, card_columns, card_fault, time_columns
from hil.devices.injection import Injection
from hil.devices.nidaq.channels import CellLine, Line, Place
from hil.devices.nidaq.read_back import ReadBack
from hil.devices.sim.enable import EnableLines
from hil.devices.sim.gates import LineGates
from hil.devices.sim.plant import SimPlant
from hil.loop.channels import Readings
from hil.loop.frame import Column, Commands, Frame
from hil.loop.stages import Message
from hil.mechanics.low_pass import low_pass

NOISE_BLOCK = 4096


@dataclass(frozen=True)
class SimChannel:
    """One instrument, which measures the plant's output with index `output`.

    Raw values are in V, mV/V or counts, quantised in steps of `step_raw` from `low_raw` to
    `high_raw`; `chain` converts them to a reading. An infinite bandwidth means no low-pass. With
    `tare` the offset before the run is subtracted.
    """

    name: str
    output: int
    raw_unit: Literal["V", "mV_per_V", "counts"]
    chain: Chain
    step_raw: float
    low_raw: float
    high_raw: float
    bandwidth_Hz: float
    noise_rms_raw: float
    offset_raw: float
    delay_periods: int
    reading_lost_probability: float
    tare: bool = False

    @property
    def raw_column(self) -> str:
        return f"{self.name}.raw_{self.raw_unit}"

    def digitised(self, raw: float) -> float:
        """Quantise a raw value to the nearest step within the range."""
        low, high, step = self.low_raw, self.high_raw, self.step_raw
        if not low <= raw <= high:
            raw = min(max(raw, low - step), high + step)
        level = round(raw / step) * step
        return level if low <= level <= high else min(max(level, low), high)


@dataclass(frozen=True)
class SimOutput:
    """An analogue output that sets the plant's input `input` (index); value = units_per_V volts."""

    input: int
    units_per_V: float
    step_V: float
    range_V: float

    def set_to(self, value: float) -> float:
        """Quantise a value to the nearest one that the output can generate."""
        volts = round(value / self.units_per_V / self.step_V) * self.step_V
        return self.units_per_V * min(max(volts, -self.range_V), self.range_V - self.step_V)


@dataclass(frozen=True)
class SimCard:
    """What is connected to a card.

    Attributes
    ----------
    place : indices of its first channel and output in the rig's readings and commands
    lines : digital lines; every e-stop loop is closed unless a fault opens it
    switches : lines that switch cells
    enable_settle_s : settling time of the power after the enable lines have gone high
    """

    name: str
    channels: Sequence[SimChannel]
    outputs: Sequence[SimOutput]
    place: Place
    lines: Sequence[Line] = ()
    switches: Sequence[CellLine] = ()
    enable_settle_s: float = 0.0


class SimDaq:
    """Samples every channel and sets every output once per tick.

    Parameters
    ----------
    draws : random generator of a channel, by its name
    """

    simulated = True

    def __init__(
        self,
        card: SimCard,
        plant: SimPlant,
        period_s: float,
        draws: Callable[[str], np.random.Generator],
        injection: Injection | None = None,
    ) -> None:
        channels, lines, switches, place = card.channels, card.lines, card.switches, card.place
        self.name = card.name
        self._plant = plant
        self._channels = channels
        self._outputs = card.outputs
        self._draws = [draws(channel.name) for channel in channels]
        self._place = place
        self._sources = ((1 << len(channels)) - 1) << place.channel
        self._analog = [i for i, c in enumerate(channels) if c.raw_unit != "counts"]
        self._at_rail = [
            card_fault(self._analog.index(i), AT_RAIL) if i in self._analog else 0
            for i in range(len(channels))
        ]
        self._chains = [c.chain for c in channels]
        self._has_estop = any(line.kind == "estop" for line in lines)
        lines_in = [line for line in lines if line.kind != "enable"]
        self._lines_in = [line.name for line in lines_in]
        cells = [line.index for line in switches]
        self._cells_at = np.array(cells, dtype=np.int64)
        self._switched = np.zeros(len(cells), dtype=np.uint8)
        self._gates = LineGates(card.name, cells, plant, injection)
        self._read_back = ReadBack(lines_in, switches)
        names = [line.cell for line in switches]
        self._gate_of_line = {
            i: names.index(line.name) for i, line in enumerate(lines_in) if line.kind == "readback"
        }
        out = [line.name for line in lines if line.kind == "enable"]
        self._power = EnableLines(card.name, out, card.enable_settle_s, plant, injection)
        self._lines_out = out
        self._low_pass = [low_pass(c.bandwidth_Hz, period_s) for c in channels]
        self._noise: list[list[float]] = []
        self._n = 0
        self._arrived = [0.0] * len(channels)
        self._behind = [0.0] * len(channels)
        self._late: list[deque[float]] = []
        self._last_t_s = [0.0] * len(channels)
        self._injection = injection
        self._stuck = [0.0] * len(channels)
        self._messages: list[Message] = []

    @property
    def columns(self) -> list[Column]:
        raw = [
            Column(
                c.raw_column,
                {"V": "V", "mV_per_V": "mV/V", "counts": "1"}[c.raw_unit],
                "measured",
                f"{c.raw_unit} read on channel {c.name}",
                simulated=True,
            )
            for c in self._channels
        ]
        names = [self._channels[i].name for i in self._analog]
        lines = [*self._lines_in, *self._lines_out]
        gates = [self._lines_in[i] for i in self._gate_of_line]
        card = card_columns(self.name, names, lines, simulated=True, read_back=gates)
        return [*time_columns(self.name, simulated=True), *raw, *card]

    def open(self) -> None:
        self._power.put(False)
        self._arrived = [self._input_raw(channel) for channel in self._channels]
        self._behind = [0.0] * len(self._channels)
        self._chains = [
            c.chain.zeroed(raw + c.offset_raw) if c.tare else c.chain
            for c, raw in zip(self._channels, self._arrived, strict=True)
        ]
        self._messages = [
            Message("info", f"{c.name}: zero taken", "zero", chain.zero_ratio, c.name)
            for c, chain in zip(self._channels, self._chains, strict=True)
            if c.tare
        ]
        self._late = [
            deque([now] * c.delay_periods, maxlen=c.delay_periods + 1)
            for c, now in zip(self._channels, self._arrived, strict=True)
        ]

    def bind(self, frame: Frame, readings: Readings) -> None:
        self._values = frame.values
        self._age = frame.index(f"{self.name}_age_s")
        self._clock = frame.index(f"{self.name}_t_s")
        self._bits = frame.bits
        self._faults_at = frame.bit_index(f"{self.name}_fault_bits")
        flags = next(c.flags for c in frame.columns if c.name == f"{self.name}_fault_bits")
        self._read_back.bind(flags)
        some = self._lines_in or self._lines_out
        self._lines_at = frame.bit_index(f"{self.name}_line_bits") if some else -1
        self._raw = [frame.index(c.raw_column) for c in self._channels]
        self._readings = readings

    def read(self, t_s: float) -> None:
        self._power.t_s = t_s
        self._plant.report(self._readings)
        self._plant.advance(t_s)
        at = self._n % NOISE_BLOCK
        if at == 0:
            self._noise = [draws.standard_normal(NOISE_BLOCK).tolist() for draws in self._draws]
        self._n += 1
        r, faults, valid_bits, values = self._readings, 0, 0, self._values
        for i, channel in enumerate(self._channels):
            late = self._late[i]
            late.append(self._input_raw(channel))
            now, (keep, lag) = late[0], self._low_pass[i]
            behind = keep * self._behind[i] - lag * (now - self._arrived[i])
            self._arrived[i], self._behind[i] = now, behind
            lost = channel.reading_lost_probability
            valid = not lost or self._draws[i].random() >= lost
            raw = float("nan")
            if valid:
                raw = channel.digitised(
                    now + behind + channel.offset_raw + channel.noise_rms_raw * self._noise[i][at]
                )
                if self._injection is not None:
                    raw, valid = self._broken(i, raw, self._injection)
                if valid:
                    self._last_t_s[i] = t_s
            values[self._raw[i]] = raw
            index = self._place.channel + i
            r.measured[index] = self._chains[i].value(raw)
            at_rail = self._at_rail[i]
            if at_rail and (raw <= channel.low_raw or raw >= channel.high_raw):
                faults |= at_rail
                valid = False
            if valid:
                valid_bits |= 1 << index
        r.mark_valid(self._sources, valid_bits)
        estop_open = self._injection is not None and self._injection.active(
            "card_estop_open", self.name
        )
        if estop_open and self._has_estop:
            faults |= ESTOP_OPEN
        if self._lines_in:
            faults |= self._read_lines()
        if len(self._cells_at):
            r.cells_reported[self._cells_at] = self._read_back.reported(self._switched)
        self._bits[self._faults_at] = faults
        # The card's age is that of its oldest channel, so that one lost channel is noticed.
        last_t_s = min(self._last_t_s)
        values[self._age] = t_s - last_t_s
        values[self._clock] = last_t_s

    def _read_lines(self) -> int:
        """Read all lines, of which only gates can be low; returns the fault bits of gates."""
        levels, gates = np.ones(len(self._lines_in), dtype=bool), self._gates.levels()
        for line, gate in self._gate_of_line.items():
            levels[line] = gates[gate] > 0
        self._bits[self._lines_at] = sum(1 << i for i, high in enumerate(levels) if high)
        return self._read_back.look(levels, self._switched)

    def _broken(self, i: int, raw: float, now: Injection) -> tuple[float, bool]:
        """Reading of a transducer with injected faults, and whether it is valid."""
        channel = self._channels[i]
        if now.active("sensor_stuck", channel.name):
            return self._stuck[i], True
        self._stuck[i] = raw
        if now.active("sensor_rail", channel.name):
            return channel.high_raw, True
        if now.active("sensor_lost", channel.name):
            return float("nan"), False
        return (float("nan") if now.active("sensor_nan", channel.name) else raw), True

    def _input_raw(self, channel: SimChannel) -> float:
        return channel.chain.raw(self._plant.output(channel.output))

    def write(self, t_s: float, commands: Commands) -> None:
        if len(self._cells_at):
            np.take(commands.cells, self._cells_at, out=self._switched)
            self._gates.lines[:] = self._switched
        for i, output in enumerate(self._outputs, start=self._place.output):
            self._plant.inputs[output.input] = output.set_to(float(commands.outputs[i]))
        if self._lines_out:
            if not commands.enabled[0]:
                self.disable()
            power = self._power
            power.put(power.high)
            high = (1 << len(self._lines_out)) - 1 << len(self._lines_in)
            before = int(self._bits[self._lines_at]) & ~high
            self._bits[self._lines_at] = before | (high if power.high else 0)

    def enable(self) -> None:
        """Set the enable lines high."""
        self._power.enable()

    def ready(self) -> bool:
        """Whether the power has settled."""
        return self._power.ready()

    def wait(self) -> None:
        """Skip the settling time: before the first tick no simulated time passes."""
        self._power.wait()

    def alive(self) -> None:
        """Do nothing: it has no watchdog."""

    def disable(self) -> None:
        """Set the enable lines low."""
        self._power.disable()

    def self_test(self, say: Callable[[str], None]) -> list[str]:
        """Set the enable lines low after the boards' self-test, which needed their power."""
        return self._power.tested()

    def arm(self) -> None:
        """Do nothing: outputs always follow the commands."""

    def messages(self) -> list[Message]:
        """Tared zeros, in the form of a card's messages; recalibration of old runs needs them."""
        messages, self._messages = self._messages, []
        return messages

    def safe(self) -> None:
        """Set all outputs to zero, the enable lines and the lines of cells low."""
        self.disable()
        self._switched[:] = self._gates.lines[:] = 0
        for output in self._outputs:
            self._plant.inputs[output.input] = 0.0

    def close(self) -> None:
        """Do nothing."""
