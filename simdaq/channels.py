"""Virtual channels: what a task measures or drives, from terminal to number and back."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from nidaqmx.constants import TerminalConfiguration, UsageTypeAO
from numpy.typing import NDArray

from simdaq import errors, scales, strain_gages
from simdaq.card import Card
from simdaq.errors import DaqmxError
from simdaq.terminals import Output, Terminal

Samples = NDArray[np.float64]
SINE, SINE_HZ = 0.97, 10.0


@dataclass
class Channel:
    """What all channels have; `properties` go by the package's names."""

    name: str
    physical: str
    kind: str
    card: Card
    short: str
    properties: dict[str, Any] = field(default_factory=dict)
    initial: dict[str, Any] = field(default_factory=dict)  # of properties that were set since

    @property
    def rows(self) -> int:
        """Numbers in one sample."""
        return 1

    @property
    def has_periods(self) -> bool:
        """Its own signal can be its clock."""
        return False

    def commit(self, t_s: float) -> None:
        """Its card is programmed."""

    def begin(self, t_s: float) -> None:
        """Its task starts."""

    def ready_s(self, now_s: float) -> float | None:
        """When there is a first sample without a clock."""
        return now_s

    def resources(self) -> list[str]:
        """What it occupies on its card while its task is reserved."""
        return [self.short]

    def sample(self, t_s: Samples) -> Samples:
        """Raw samples at these times."""
        raise DaqmxError(errors.WRONG_CHANNEL_TYPE, Channel_Name=self.name)

    def scaled(self, raw: Any) -> Any:
        """In the channel's units."""
        return raw

    def verify(self) -> None:
        """Raise DaqmxError for a property that the card cannot have."""


class SimulatedSine:
    """A noisy sine from -1 to 1, as NI's simulated devices give it (NI-DAQmx Help, "NI-DAQmx
    Simulated Devices"); frequency and noise are this package's.
    """

    def __init__(self, channel: int) -> None:
        self._phase = 0.25 * np.pi * channel
        self._rng = np.random.default_rng(channel)

    def __call__(self, t_s: Samples) -> Samples:
        sine = SINE * np.sin(2.0 * np.pi * SINE_HZ * np.asarray(t_s) + self._phase)
        noise = (1.0 - SINE) * self._rng.uniform(-1.0, 1.0, np.shape(t_s))
        return np.asarray(sine + noise)


@dataclass
class AnalogInput(Channel):
    """One input of a converter.

    Attributes
    ----------
    curve : what the converter measures (V, or V/V of a bridge) -> channel units
    from_fed : what a terminal is fed with -> what the converter measures
        Sensors are fed in their physical unit: a thermocouple in degC.
    shift : float
        V/V that a closed shunt adds.
    physical_signal : bool
        The converter counts in channel units.
    """

    curve: scales.Scaling = scales.identity
    from_fed: scales.Scaling = scales.identity
    custom: scales.CustomScale | None = None
    physical_signal: bool = False
    shift: float = 0.0
    lsb: float = 1.0
    top: int = 1
    range_: float = 10.0
    terminal: Terminal = field(default_factory=Terminal)

    def __post_init__(self) -> None:
        back = self.card.read_back(self.short)
        if back is not None:
            self.terminal = Terminal(source=back.at, fed=True)
        else:
            self.terminal = self.card.terminal(self.short)
        number = re.sub(r"\D", "", self.short)
        self._simulated = SimulatedSine(int(number or 0))
        self.fit_range()

    @property
    def bits(self) -> int:
        """Resolution of the converter as the input is wired."""
        ai = self.card.model.ai
        assert ai is not None
        single = self.properties.get("ai_term_cfg") == TerminalConfiguration.RSE.value
        return ai.single_ended_bits if single and ai.single_ended_bits else ai.bits

    def fit_range(self) -> None:
        """Take the smallest range of the card that holds the limits asked for."""
        ai = self.card.model.ai
        assert ai is not None
        self.top = 2 ** (self.bits - 1)
        self.properties.pop("forced_range", None)
        if "ai_min" not in self.properties or "ai_max" not in self.properties:
            return
        wanted = max(abs(self.properties["ai_min"]), abs(self.properties["ai_max"]))
        if "ai_strain_gage_cfg" in self.properties:
            wanted = max(abs(self.from_fed(wanted)), abs(self.from_fed(-wanted)))
            self.range_ = next((r for r in ai.ranges if r >= wanted), ai.ranges[-1])
        elif self.physical_signal or self.custom is not None or self.curve is not scales.identity:
            self.range_ = ai.ranges[-1] if not self.physical_signal else max(wanted, 1e-12)
        else:
            self.range_ = next((r for r in ai.ranges if r >= wanted * (1 - 1e-9)), ai.ranges[-1])
        self.lsb = self.range_ / self.top

    def force_range(self, range_: float) -> None:
        """Use the card's smallest range that holds this one, whatever the limits."""
        ai = self.card.model.ai
        assert ai is not None
        self.properties["forced_range"] = range_
        self.range_ = next((r for r in ai.ranges if r >= range_ * (1 - 1e-9)), ai.ranges[-1])
        self.lsb = self.range_ / self.top

    def refit(self) -> None:
        """Fit the range to the limits, unless the program has set a range."""
        if "forced_range" not in self.properties:
            self.fit_range()

    def bridge_changed(self) -> None:
        """The shunt was closed or opened: V/V that it adds to the bridge.

        A resistor S across one arm R of a bridge of four equal ones: R / (4 S + 2 R).
        """
        ai, p = self.card.model.ai, self.properties
        assert ai is not None
        arm, shunt_Ohm = p.get("ai_bridge_nom_resistance", 0.0), ai.shunt_Ohm
        shunt = p.get("ai_bridge_shunt_cal_shunt_cal_a_actual_resistance", shunt_Ohm)
        closed = p.get("ai_bridge_shunt_cal_enable", False)
        self.shift = arm / (4.0 * shunt + 2.0 * arm) if closed else 0.0
        if "ai_strain_gage_cfg" in p:
            self.curve = strain_gages.strain_of(p, ratiometric=ai.ratiometric)

    def verify(self) -> None:
        ai = self.card.model.ai
        assert ai is not None
        low, high = self.properties["ai_min"], self.properties["ai_max"]
        if not low < high:
            raise DaqmxError(
                errors.BAD_VALUE, Property="AI.Max", Requested_Value=high, Minimum_Value=low,
                Channel_Name=self.name,
            )  # fmt: skip
        highest = ai.ranges[-1]
        if self.properties.get("ai_term_cfg") == TerminalConfiguration.RSE.value:
            highest = min(highest, ai.single_ended_V)
        if self.curve is scales.identity and self.custom is None and not self.physical_signal:
            for label, value in (("AI.Min", low), ("AI.Max", high)):
                if abs(value) > highest * (1 + 1e-9):
                    raise DaqmxError(
                        errors.BAD_VALUE, Property=label, Requested_Value=value,
                        Maximum_Value=highest, Minimum_Value=-highest,
                        Channel_Name=self.name,
                    )  # fmt: skip

    def sample(self, t_s: Samples) -> Samples:
        if self.is_simulated:
            return self._within_limits(self._simulated(t_s))
        if self.terminal.fault == "nan":
            return np.full(t_s.shape, np.nan)
        signal = np.asarray(self.from_fed(self.terminal.at(t_s)), dtype=float) + self.shift
        codes = np.rint(signal / self.lsb)
        # A converter has no NaN: what is not a number reads as its upper end.
        return np.broadcast_to(np.fmax(np.fmin(codes, self.top - 1), -self.top), t_s.shape)

    def sample_now(self, t_s: float) -> float:
        """One raw sample without arrays."""
        if self.is_simulated:
            return float(self.sample(np.array([t_s]))[0])
        if self.terminal.fault == "nan":
            return float("nan")
        steps = (float(self.from_fed(self.terminal.at(t_s))) + self.shift) / self.lsb
        if not -self.top <= steps <= self.top - 1:  # also what is not a number
            return float(-self.top if steps < 0.0 else self.top - 1)
        return float(round(steps))

    @property
    def is_simulated(self) -> bool:
        """Nobody feeds it: it gives what NI's simulated devices give."""
        idle = self.card.idle == "simulated" and self.terminal.fault is None
        return idle and not self.terminal.fed and not self.card.is_fed(self.short)

    def _within_limits(self, share: Samples) -> Samples:
        """Codes of a signal between the channel's limits; `share` runs from -1 to 1.

        The upper limit itself is not reached, as the highest code of a converter is one step below
        its full scale.
        """
        low, high = self.properties["ai_min"], self.properties["ai_max"]
        wanted = 0.5 * (low + high) + 0.5 * (high - low) * share
        codes = np.arange(-self.top, self.top, max(self.top // 2048, 1), dtype=float)
        values = np.asarray(self.scaled(codes), dtype=float)
        order = np.argsort(values)
        exact = np.interp(wanted, values[order], codes[order])
        bounds = np.sort(np.interp([low, high], values[order], codes[order]))
        lowest = np.ceil(bounds[0])
        highest = max(np.floor(bounds[1]) - 1.0, lowest)
        inside = np.clip(np.floor(exact), lowest, highest)
        return np.asarray(np.clip(inside, -self.top, self.top - 1))

    @property
    def at_rest(self) -> float:
        """What the converter measures of the bridge at rest, as the program has set it."""
        ai, p = self.card.model.ai, self.properties
        assert ai is not None
        volts, excitation_V = p.get("ai_bridge_initial_voltage", 0.0), p.get("ai_excit_val", 0.0)
        if ai.ratiometric and excitation_V:
            volts /= excitation_V
        return float(p.get("ai_bridge_initial_ratio", 0.0) + volts)

    def scaled(self, raw: Any) -> Any:
        value = raw * self.lsb
        if self.curve is not scales.identity:
            p = self.properties
            gain = p.get("ai_bridge_shunt_cal_gain_adjust", 1.0)
            value = self.curve(gain * (value - self.at_rest))
        return value if self.custom is None else self.custom.scaling(value)


@dataclass
class AnalogOutput(Channel):
    """One output of a converter, V or A."""

    custom: scales.CustomScale | None = None

    @property
    def output(self) -> Output:
        return self.card.output(self.short)

    @property
    def bounds(self) -> tuple[float, float]:
        """What the converter can generate, V or A."""
        ao = self.card.model.ao
        assert ao is not None
        current = self.properties["ao_output_type"] == UsageTypeAO.CURRENT.value
        if current:
            return 0.0, ao.current_ranges_A[-1]
        high = ao.ranges[-1]
        return (0.0 if ao.unipolar else -high), high

    @property
    def lsb(self) -> float:
        """One step of the converter, V or A."""
        ao = self.card.model.ao
        assert ao is not None
        low, high = self.bounds
        return float((high - low) / 2**ao.bits if low == 0.0 else high / 2 ** (ao.bits - 1))

    def verify(self) -> None:
        if self.custom is not None:
            return
        low, high = self.bounds
        slack = 1e-9 * high
        for label, value in (("AO.Min", self.properties["ao_min"]),
                             ("AO.Max", self.properties["ao_max"])):  # fmt: skip
            if not low - slack <= value <= high + slack:
                raise DaqmxError(
                    errors.BAD_VALUE, Property=label, Requested_Value=value,
                    Maximum_Value=high, Minimum_Value=low, Channel_Name=self.name,
                )  # fmt: skip

    def quantised(self, values: Samples) -> Samples:
        """Values in the channel's units -> V or A, as the converter can generate them.

        Raises
        ------
        DaqmxError
            A value is outside the channel's limits.
        """
        bottom, top = self.bounds
        widest = (bottom, top) if self.custom is None else self.custom.bounds
        low = max(self.properties["ao_min"], widest[0])
        high = min(self.properties["ao_max"], widest[1])
        self._must_be_within(values, low, high)
        if self.custom is not None:
            values = np.asarray(self.custom.unscaling(values))
            self._must_be_within(values, bottom, top)
        lsb = self.lsb
        return np.asarray(np.clip(np.rint(values / lsb) * lsb, bottom, top - lsb))

    def of_codes(self, codes: Samples) -> Samples:
        """Codes of the converter -> the channel's units."""
        values = codes * self.lsb
        return values if self.custom is None else np.asarray(self.custom.scaling(values))

    def _must_be_within(self, values: Samples, low: float, high: float) -> None:
        slack = 1e-9 * max(abs(low), abs(high))
        if not bool(np.all((values >= low - slack) & (values <= high + slack))):
            raise DaqmxError(
                errors.BAD_AO_DATA, Channel_Name=self.name, Maximum_Value=high, Minimum_Value=low
            )


@dataclass
class DigitalLines(Channel):
    """One or several lines as one channel; input or output."""

    lines: tuple[str, ...] = ()
    position: tuple[int, ...] = ()
    whole_ports: tuple[str, ...] = ()  # ports that were named as such
    n_sampled: int = 0

    def __post_init__(self) -> None:
        ports = {self.card.port_of(line) for line in self.lines}
        if len(ports) == 1:  # a word in port layout: line i of the port is bit i
            self.position = tuple(int(line.rpartition("line")[2]) for line in self.lines)
        else:
            self.position = tuple(range(len(self.lines)))

    def resources(self) -> list[str]:
        # An input that leaves its lines driven reserves nothing (DI.Tristate, NI-DAQmx Help).
        if self.kind == "di" and self.properties.get("di_tristate") is False:
            return []
        return list(self.lines)

    @property
    def inverted(self) -> bool:
        return bool(self.properties.get(f"{self.kind}_invert_lines", False))

    def sample(self, t_s: Samples) -> Samples:
        word = np.zeros(t_s.shape)
        count = self.n_sampled + np.arange(len(t_s))
        self.n_sampled += len(t_s)
        for line, bit in zip(self.lines, self.position, strict=True):
            if self.card.counts(line):
                level = (count >> self._weight(line)) & 1 == 1
            else:
                level = np.asarray(self.card.level(line, t_s)) > 0.5
            word += np.where(level != self.inverted, float(1 << bit), 0.0)
        return word

    def sample_now(self, t_s: float) -> float:
        word = 0
        for line, bit in zip(self.lines, self.position, strict=True):
            if self.card.counts(line):
                level = bool((self.n_sampled >> self._weight(line)) & 1)
            else:
                level = self.card.level(line, t_s) > 0.5
            if level != self.inverted:
                word |= 1 << bit
        self.n_sampled += 1
        return float(word)

    @property
    def waveform_order(self) -> list[int]:
        """Indices of `lines` as columns of a waveform: whole ports run from the highest line."""
        order: list[int] = []
        i = 0
        while i < len(self.lines):
            port = self.lines[i].partition("/")[0]
            n = len(self.card.lines(port)) if port in self.whole_ports else 1
            order += reversed(range(i, i + n)) if n > 1 else [i]
            i += n
        return order

    @staticmethod
    def _weight(line: str) -> int:
        """Bit of the count that a line of a simulated device shows: each eight lines count."""
        return int(line.rpartition("line")[2]) % 8

    def driven(self, t_s: float) -> float:
        """The word that the card itself drives."""
        word = 0
        for line, bit in zip(self.lines, self.position, strict=True):
            if (self.card.output(line).at(t_s) > 0.5) != self.inverted:
                word |= 1 << bit
        return float(word)

    def bits(self, word: int) -> list[int]:
        """Line by line, in the channel's order."""
        return [(word >> bit) & 1 for bit in self.position]

    def word(self, bits: Sequence[int]) -> int:
        return sum(1 << p for p, bit in zip(self.position, bits, strict=False) if bit)

    def drive(self, t_s: float, word: int) -> None:
        """Put a word out."""
        for line, bit in zip(self.lines, self.position, strict=True):
            level = ((word >> bit) & 1) != self.inverted
            self.card.output(line).put(t_s, 1.0 if level else 0.0)

    def drive_block(self, t_s: Samples, words: Samples) -> None:
        whole = words.astype(np.uint64)
        for line, bit in zip(self.lines, self.position, strict=True):
            level = ((whole >> np.uint64(bit)) & np.uint64(1)).astype(float)
            self.card.output(line).put_block(t_s, 1.0 - level if self.inverted else level)


def is_infinite(timeout_s: float) -> bool:
    """NI's «wait infinitely» is any negative timeout."""
    return timeout_s < 0.0 or math.isinf(timeout_s)
