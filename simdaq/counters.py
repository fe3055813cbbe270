"""Counters that measure: encoders, edges, frequencies, widths."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from nidaqmx.constants import CountDirection, Edge, EncoderType, UsageTypeCI

from simdaq import errors, scales
from simdaq.card import COUNTER_PINS, TIMEBASES
from simdaq.channels import Channel, Samples
from simdaq.errors import DaqmxError
from simdaq.terminals import Output, Pulses

COUNTS = 2**32
TICKS = 10304
DECODING = {EncoderType.X_1.value: 1, EncoderType.X_2.value: 2, EncoderType.X_4.value: 4}
ENCODERS = (UsageTypeCI.POSITION_ANGULAR_ENCODER, UsageTypeCI.POSITION_LINEAR_ENCODER)
VELOCITIES = (UsageTypeCI.VELOCITY_ANGULAR_ENCODER, UsageTypeCI.VELOCITY_LINEAR_ENCODER)
PAIRS = (UsageTypeCI.PULSE_FREQ, UsageTypeCI.PULSE_TIME, UsageTypeCI.PULSE_TICKS)
# The property that names the input, and the pin of the counter that it is by default.
TERMINALS = {
    UsageTypeCI.COUNT_EDGES: ("ci_count_edges_term", 0),
    UsageTypeCI.FREQUENCY: ("ci_freq_term", 1),
    UsageTypeCI.PERIOD: ("ci_period_term", 1),
    UsageTypeCI.PULSE_WIDTH_DIGITAL: ("ci_pulse_width_term", 1),
    UsageTypeCI.PULSE_WIDTH_DIGITAL_SEMI_PERIOD: ("ci_semi_period_term", 1),
    UsageTypeCI.PULSE_WIDTH_DIGITAL_TWO_EDGE_SEPARATION: ("ci_two_edge_sep_first_term", 1),
    UsageTypeCI.PULSE_FREQ: ("ci_pulse_freq_term", 1),
    UsageTypeCI.PULSE_TIME: ("ci_pulse_time_term", 1),
    UsageTypeCI.PULSE_TICKS: ("ci_pulse_ticks_term", 1),
    UsageTypeCI.DUTY_CYCLE: ("ci_duty_cycle_term", 1),
}
VELOCITY_WINDOW_S = 1e-4


@dataclass
class CounterInput(Channel):
    """A counter that measures.

    An encoder turns by the source of the counter, in revolutions (metres for a linear one); its
    count is the floor of lines passed since the start, and an index, once per revolution, sets it.
    Anything else hears a pulse train, on the counter or on the pin that its terminal names.
    """

    usage: UsageTypeCI = UsageTypeCI.COUNT_EDGES
    custom: scales.CustomScale | None = None
    per_count: float = 1.0
    offset: float = 0.0
    _begun_s: float = 0.0
    _base: float = 0.0
    _index_turn: float | None = None
    _last_turn: float = 0.0

    @property
    def rows(self) -> int:
        return 2 if self.usage in PAIRS else 1

    @property
    def has_periods(self) -> bool:
        return self.usage in TERMINALS and self.usage != UsageTypeCI.COUNT_EDGES

    @property
    def _counts_per_unit(self) -> float:
        """Counts in a revolution, or in a metre."""
        p = self.properties
        decoding = DECODING.get(p["ci_encoder_decoding_type"], 1)
        if "ci_lin_encoder_dist_per_pulse" in p:
            return decoding / float(p["ci_lin_encoder_dist_per_pulse"])
        return decoding * float(p["ci_ang_encoder_pulses_per_rev"])

    def begin(self, t_s: float) -> None:
        """The task starts: counting begins here."""
        self._begun_s = t_s
        self._index_turn = None
        if self.usage in ENCODERS:
            turn = self._turns(np.array([t_s]))[0]
            self._base = float(np.floor(turn * self._counts_per_unit + 1e-9))
            self._last_turn = float(turn)
        elif self.usage == UsageTypeCI.COUNT_EDGES:
            self._base = float(self._edges(np.array([t_s]))[0])

    def ready_s(self, now_s: float) -> float | None:
        """When there is a first measurement; None: nobody knows."""
        if self.usage in (UsageTypeCI.COUNT_EDGES, *ENCODERS, *VELOCITIES):
            return now_s
        train = self.train()
        if train is None:
            return None
        # Two rising edges after the start are the first whole period.
        first = train.count(self._begun_s)
        if first + 1.0 >= train.n:
            return None
        return float(train.first_s + train.period_s * (first + 1.0))

    def train(self) -> Pulses | None:
        """The pulse train that this counter hears."""
        own = self.card.pulses(self.short)
        if own is not None:
            return own
        key, pin = TERMINALS[self.usage]
        terminal = str(self.properties.get(key, ""))
        number = int(self.short.removeprefix("ctr"))
        if not terminal:
            return self.card.engines.pulses(COUNTER_PINS[number][pin])
        rest = terminal.lstrip("/").partition("/")[2] or terminal
        if rest.lower().endswith("internaloutput"):
            return self.card.output(f"ctr{rest[3]}").heard
        return self.card.engines.pulses(rest)

    def _counted_output(self) -> Output | None:
        """The counter output that this counter counts, if it does."""
        terminal = str(self.properties.get("ci_count_edges_term", ""))
        rest = terminal.lstrip("/").partition("/")[2] or terminal
        if not rest.lower().endswith("internaloutput"):
            return None
        return self.card.output(f"ctr{rest[3]}")

    def _turns(self, t_s: Samples) -> Samples:
        return np.broadcast_to(
            np.asarray(self.card.terminal(self.short).at(t_s), dtype=float), t_s.shape
        )

    def _edges(self, t_s: Samples) -> Samples:
        terminal = self.card.terminals.get(self.short)
        fed = terminal is not None and terminal.fed
        if fed and not isinstance(self.card.terminal(self.short).source, Pulses):
            return np.floor(self._turns(t_s) + 1e-9)
        falling = self.properties.get("ci_count_edges_active_edge") == Edge.FALLING.value
        output = self._counted_output()
        if output is not None and not falling:
            return np.broadcast_to(np.asarray(output.count(t_s), dtype=float), t_s.shape)
        train = self.train()
        if train is None:
            return np.zeros(t_s.shape)
        if falling:
            shifted = Pulses(train.period_s, train.high_s, train.first_s + train.high_s, train.n)
            return np.asarray(shifted.count(t_s))
        return np.asarray(train.count(t_s))

    def sample(self, t_s: Samples) -> Samples:
        if self.usage in ENCODERS:
            return self._positions(t_s)
        if self.usage == UsageTypeCI.COUNT_EDGES:
            return self._counts(t_s)
        if self.usage in VELOCITIES:
            window_s = VELOCITY_WINDOW_S
            passed = self._turns(t_s) - self._turns(t_s - window_s)
            return np.asarray(passed / window_s, dtype=float)
        train = self.train()
        if train is None:
            return np.zeros((self.rows, len(t_s)))
        return np.repeat(np.array(self._of(train))[:, None], len(t_s), axis=1)

    def _counts(self, t_s: Samples) -> Samples:
        passed = self._edges(t_s) - self._base
        down = self.properties.get("ci_count_edges_dir") == CountDirection.COUNT_DOWN.value
        counts = self.properties["ci_count_edges_initial_cnt"] + (-passed if down else passed)
        return np.asarray(np.mod(counts, COUNTS))

    def _positions(self, t_s: Samples) -> Samples:
        turns = self._turns(t_s)
        counts = np.floor(turns * self._counts_per_unit + 1e-9)
        if not self.properties.get("ci_encoder_z_index_enable"):
            return np.asarray(counts - self._base)
        base = np.empty(len(turns))
        for i, turn in enumerate(turns):
            before, after = np.floor(self._last_turn), np.floor(turn)
            if before != after:  # past the index: at a whole revolution
                self._index_turn = float(after if after > before else after + 1.0)
            self._last_turn = float(turn)
            base[i] = self._index_base()
        return np.asarray(counts - base)

    def _index_base(self) -> float:
        """Counts to take off, so that the position at the index is the index value."""
        if self._index_turn is None:
            return self._base
        start = self._index_turn * self._counts_per_unit
        value = float(self.properties["ci_encoder_z_index_val"])
        return start - (value - self.offset) / self.per_count

    def _of(self, train: Pulses) -> tuple[float, ...]:
        """One measurement of a pulse train, by the counter's timebase."""
        counters = self.card.engines.model.counters or self.card.model.counters
        assert counters is not None
        named = str(self.properties.get("ci_ctr_timebase_src", "")).rpartition("/")[2].lower()
        by_name = {name.lower(): value for name, value in TIMEBASES.items()}
        timebase_Hz = by_name.get(named, counters.timebase_Hz)
        period = max(np.floor(train.period_s * timebase_Hz + 1e-6), 1.0)
        high = max(np.floor(train.high_s * timebase_Hz + 1e-6), 1.0)
        low = period - high
        ticks = self._in_ticks()
        unit_s = 1.0 if ticks else 1.0 / timebase_Hz
        u = UsageTypeCI
        if self.usage == u.FREQUENCY:
            return (float(period if ticks else timebase_Hz / period),)
        if self.usage == u.PERIOD:
            return (float(period * unit_s),)
        if self.usage in (u.PULSE_WIDTH_DIGITAL, u.PULSE_WIDTH_DIGITAL_SEMI_PERIOD,
                          u.PULSE_WIDTH_DIGITAL_TWO_EDGE_SEPARATION):  # fmt: skip
            falling = self.properties.get("ci_pulse_width_starting_edge") == Edge.FALLING.value
            return (float((low if falling else high) * unit_s),)
        if self.usage == u.DUTY_CYCLE:
            return (float(high / period),)
        if self.usage == u.PULSE_FREQ:
            return (float(timebase_Hz / period), float(high / period))
        if self.usage == u.PULSE_TIME:
            return (float(high / timebase_Hz), float(low / timebase_Hz))
        return (float(high), float(low))

    def _in_ticks(self) -> bool:
        stem = TERMINALS[self.usage][0].removesuffix("_term").removesuffix("_first")
        return bool(self.properties.get(f"{stem}_units") == TICKS)

    def scaled(self, raw: Any) -> Any:
        value = self.offset + self.per_count * raw if self.usage in ENCODERS + VELOCITIES else raw
        return value if self.custom is None else self.custom.scaling(value)

    @property
    def computed(self) -> dict[str, Callable[[], Any]]:
        found: dict[str, Callable[[], Any]] = {
            "ci_ctr_timebase_rate": lambda: self.card.model.counters.timebase_Hz  # type: ignore[union-attr]
        }
        if self.usage in TERMINALS:
            key, pin = TERMINALS[self.usage]
            if not self.properties.get(key):
                number = int(self.short.removeprefix("ctr"))
                found[key] = lambda: f"/{self.card.engines.name}/{COUNTER_PINS[number][pin]}"
        return found

    def verify(self) -> None:
        counters = self.card.model.counters
        assert counters is not None
        if self.usage in ENCODERS + VELOCITIES and not counters.encoders:
            raise DaqmxError(
                errors.WRONG_CHANNEL_TYPE, "The counter cannot read an encoder.",
                Physical_Channel_Name=self.physical,
            )  # fmt: skip
