"""Virtual channels: what a task measures or drives, from terminal to number and back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simdaq import errors, scales
from simdaq.card import Card
from simdaq.errors import DaqmxError
from simdaq.terminals import Output, Terminal

Samples = NDArray[np.float64]


@dataclass
class Channel:
    """What all channels have; `properties` go by the package's names."""

    name: str
    physical: str
    kind: str
    card: Card
    short: str
    properties: dict[str, Any] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Numbers in one sample."""
        return 1

    @property
    def has_periods(self) -> bool:
        """Its own signal can be its clock."""
        return False

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


@dataclass
class AnalogInput(Channel):
    """One input of a converter.

    Attributes
    ----------
    curve : what the converter measures (V, or V/V of a bridge) -> channel units
    shift : float
        V/V that a closed shunt adds.
    physical_signal : bool
        The terminal's source is taken in channel units; a thermocouple is fed in degrees.
    """

    curve: scales.Scaling = scales.identity
    custom: scales.CustomScale | None = None
    physical_signal: bool = False
    shift: float = 0.0
    lsb: float = 1.0
    top: int = 1
    range_: float = 10.0
    terminal: Terminal = field(default_factory=Terminal)

    def __post_init__(self) -> None:
        ai = self.card.model.ai
        assert ai is not None
        self.terminal = self.card.terminal(self.short)
        self.top = 2 ** (ai.bits - 1)
        self.fit_range()

    def fit_range(self) -> None:
        """Take the smallest range of the card that holds the limits asked for."""
        ai = self.card.model.ai
        assert ai is not None
        wanted = max(abs(self.properties["ai_min"]), abs(self.properties["ai_max"]))
        if self.physical_signal or self.custom is not None or self.curve is not scales.identity:
            self.range_ = ai.ranges[-1] if not self.physical_signal else max(wanted, 1e-12)
        else:
            self.range_ = next((r for r in ai.ranges if r >= wanted * (1 - 1e-9)), ai.ranges[-1])
        self.lsb = self.range_ / self.top

    def bridge_changed(self) -> None:
        """The shunt was closed or opened: V/V that it adds to the bridge.

        A resistor S across one arm R of a bridge of four equal ones: R / (4 S + 2 R).
        """
        ai, p = self.card.model.ai, self.properties
        assert ai is not None
        arm, own = p.get("ai_bridge_nom_resistance", 0.0), ai.shunt_Ohm
        shunt = p.get("ai_bridge_shunt_cal_shunt_cal_a_actual_resistance", own)
        closed = p.get("ai_bridge_shunt_cal_enable", False)
        self.shift = arm / (4.0 * shunt + 2.0 * arm) if closed else 0.0

    def verify(self) -> None:
        ai = self.card.model.ai
        assert ai is not None
        low, high = self.properties["ai_min"], self.properties["ai_max"]
        if not low < high:
            raise DaqmxError(
                errors.BAD_VALUE, Property="AI.Max", Requested_Value=high, Minimum_Value=low,
                Channel_Name=self.name,
            )  # fmt: skip
        if self.curve is scales.identity and self.custom is None and not self.physical_signal:
            for label, value in (("AI.Min", low), ("AI.Max", high)):
                if abs(value) > ai.ranges[-1] * (1 + 1e-9):
                    raise DaqmxError(
                        errors.BAD_VALUE, Property=label, Requested_Value=value,
                        Maximum_Value=ai.ranges[-1], Minimum_Value=-ai.ranges[-1],
                        Channel_Name=self.name,
                    )  # fmt: skip

    def sample(self, t_s: Samples) -> Samples:
        signal = np.asarray(self.terminal.at(t_s), dtype=float) + self.shift
        codes = np.rint(signal / self.lsb)
        # A converter has no NaN: what is not a number reads as its upper end.
        return np.broadcast_to(np.fmax(np.fmin(codes, self.top - 1), -self.top), t_s.shape)

    def sample_now(self, t_s: float) -> float:
        """One raw sample without arrays."""
        steps = (float(self.terminal.at(t_s)) + self.shift) / self.lsb
        if not -self.top <= steps <= self.top - 1:  # also what is not a number
            return float(-self.top if steps < 0.0 else self.top - 1)
        return float(round(steps))

    def scaled(self, raw: Any) -> Any:
        value = raw * self.lsb
        if self.curve is not scales.identity:
            p = self.properties
            gain = p.get("ai_bridge_shunt_cal_gain_adjust", 1.0)
            value = self.curve(gain * (value - p.get("ai_bridge_initial_ratio", 0.0)))
        return value if self.custom is None else self.custom.scaling(value)


@dataclass
class AnalogOutput(Channel):
    """One output of a converter, in volts."""

    custom: scales.CustomScale | None = None

    @property
    def output(self) -> Output:
        return self.card.output(self.short)

    def verify(self) -> None:
        ao = self.card.model.ao
        assert ao is not None
        for label, value in (("AO.Min", self.properties["ao_min"]),
                             ("AO.Max", self.properties["ao_max"])):  # fmt: skip
            if abs(value) > ao.ranges[-1] * (1 + 1e-9):
                raise DaqmxError(
                    errors.BAD_VALUE, Property=label, Requested_Value=value,
                    Maximum_Value=ao.ranges[-1], Minimum_Value=-ao.ranges[-1],
                    Channel_Name=self.name,
                )  # fmt: skip

    def quantised(self, values: Samples) -> Samples:
        """Volts that the converter can make of these.

        Raises
        ------
        DaqmxError
            A value is outside the channel's limits.
        """
        ao = self.card.model.ao
        assert ao is not None
        if self.custom is not None:
            values = np.asarray(self.custom.scaling(values))
        bound = ao.ranges[-1]
        low = max(self.properties["ao_min"], -bound) if self.custom is None else -bound
        high = min(self.properties["ao_max"], bound) if self.custom is None else bound
        slack = 1e-9 * bound
        if not bool(np.all((values >= low - slack) & (values <= high + slack))):
            raise DaqmxError(
                errors.BAD_AO_DATA, Channel_Name=self.name, Maximum_Value=high, Minimum_Value=low
            )
        top = 2 ** (ao.bits - 1)
        lsb = bound / top
        return np.asarray(np.clip(np.rint(values / lsb), -top, top - 1) * lsb)


@dataclass
class DigitalLines(Channel):
    """One or several lines as one channel; input or output."""

    lines: tuple[str, ...] = ()
    position: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        ports = {self.card.port_of(line) for line in self.lines}
        if len(ports) == 1:  # a word in port layout: line i of the port is bit i
            self.position = tuple(int(line.rpartition("line")[2]) for line in self.lines)
        else:
            self.position = tuple(range(len(self.lines)))

    def resources(self) -> list[str]:
        return list(self.lines)

    @property
    def inverted(self) -> bool:
        return bool(self.properties.get(f"{self.kind}_invert_lines", False))

    def sample(self, t_s: Samples) -> Samples:
        word = np.zeros(t_s.shape)
        for line, bit in zip(self.lines, self.position, strict=True):
            terminal = self.card.terminals.get(line)
            if line not in self.card.outputs or (terminal is not None and terminal.fed):
                level = np.asarray(self.card.terminal(line).at(t_s)) > 0.5
            else:
                level = np.array([self.card.outputs[line].at(float(t)) > 0.5 for t in t_s])
            word += np.where(level != self.inverted, float(1 << bit), 0.0)
        return word

    def sample_now(self, t_s: float) -> float:
        word = 0
        for line, bit in zip(self.lines, self.position, strict=True):
            if (self.card.level(line, t_s) > 0.5) != self.inverted:
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
