"""Counters that measure: encoders, edges, frequencies, widths."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from nidaqmx.constants import (
    CountDirection,
    CounterFrequencyMethod,
    Edge,
    EncoderType,
    Level,
    SampleTimingType,
    TriggerType,
    UsageTypeCI,
)
from numpy.typing import NDArray

from simdaq import edges, errors, scales
from simdaq.card import TIMEBASES, Card
from simdaq.channels import Channel, Samples
from simdaq.edge_measurements import Intervals
from simdaq.edges import EdgeList, Edges, EdgeSource, Pulses
from simdaq.errors import DaqmxError
from simdaq.run import SoftwareTimed
from simdaq.task import Task

COUNTS = 2**32
TICKS = 10304
DECODING = {EncoderType.X_1.value: 1, EncoderType.X_2.value: 2, EncoderType.X_4.value: 4}
ENCODERS = (UsageTypeCI.POSITION_ANGULAR_ENCODER, UsageTypeCI.POSITION_LINEAR_ENCODER)
VELOCITIES = (UsageTypeCI.VELOCITY_ANGULAR_ENCODER, UsageTypeCI.VELOCITY_LINEAR_ENCODER)
PAIRS = (UsageTypeCI.PULSE_FREQ, UsageTypeCI.PULSE_TIME, UsageTypeCI.PULSE_TICKS)
SOURCE, GATE, AUX = range(3)  # pins of a counter
# Stem of the properties of a measurement, and the pin that it hears by default. Source: NI "X
# Series User Manual", "Default Counter/Timer Pins".
MEASURED = {
    UsageTypeCI.COUNT_EDGES: ("ci_count_edges", SOURCE),
    UsageTypeCI.FREQUENCY: ("ci_freq", GATE),
    UsageTypeCI.PERIOD: ("ci_period", GATE),
    UsageTypeCI.PULSE_WIDTH_DIGITAL: ("ci_pulse_width", GATE),
    UsageTypeCI.PULSE_WIDTH_DIGITAL_SEMI_PERIOD: ("ci_semi_period", GATE),
    UsageTypeCI.PULSE_WIDTH_DIGITAL_TWO_EDGE_SEPARATION: ("ci_two_edge_sep", AUX),
    UsageTypeCI.PULSE_FREQ: ("ci_pulse_freq", GATE),
    UsageTypeCI.PULSE_TIME: ("ci_pulse_time", GATE),
    UsageTypeCI.PULSE_TICKS: ("ci_pulse_ticks", GATE),
    UsageTypeCI.DUTY_CYCLE: ("ci_duty_cycle", GATE),
}
# Pins of what else a counter hears, by the property that names the terminal.
OTHER_PINS = {
    "ci_encoder_a_input_term": SOURCE, "ci_encoder_b_input_term": AUX,
    "ci_encoder_z_input_term": GATE, "ci_velocity_encoder_a_input_term": SOURCE,
    "ci_velocity_encoder_b_input_term": AUX, "ci_count_edges_dir_term": AUX,
    "ci_two_edge_sep_second_term": GATE,
}  # fmt: skip
FIRST_TERMINAL = "ci_two_edge_sep_first_term"
LARGE_RANGE = CounterFrequencyMethod.LARGE_RANGE_2_COUNTERS.value
HIGH_FREQUENCY = CounterFrequencyMethod.HIGH_FREQUENCY_2_COUNTERS.value
TWO_COUNTERS = (LARGE_RANGE, HIGH_FREQUENCY)
AVERAGING = CounterFrequencyMethod.DYNAMIC_AVERAGING.value
VELOCITY_WINDOW_S = 1e-4


@dataclass(frozen=True)
class Control:
    """A digital signal that steers a count: known by its edges, or only as a level."""

    source: EdgeSource | None
    level: Callable[[Samples], Any]

    def changes(self, after_s: float, until_s: float) -> Samples:
        """When it changes in (after_s, until_s], where its edges are known."""
        if self.source is None:
            return np.empty(0)
        times = [
            self.source.time(np.arange(*self.source.count([after_s, until_s], rising=r)), rising=r)
            for r in (True, False)
        ]
        return np.concatenate(times)

    def high(self, t_s: Samples) -> Any:
        return np.asarray(self.level(t_s)) > 0.5


@dataclass
class CounterInput(Channel):
    """A counter that measures.

    An encoder turns by the source of the counter, in revolutions (metres for a linear one); its
    count is the floor of lines passed since the start, and an index, once per revolution, sets it.
    Anything else hears edges, on the counter or on the pin that its terminal names.

    Attributes
    ----------
    gate : what pauses the count, and the level at which it counts; None: nothing
    sample_clocked : a sample clock latches it: frequencies are means between two samples
    """

    usage: UsageTypeCI = UsageTypeCI.COUNT_EDGES
    custom: scales.CustomScale | None = None
    per_count: float = 1.0
    offset: float = 0.0
    gate: tuple[Control, bool] | None = None
    sample_clocked: bool = False
    _begun_s: float = 0.0
    _base: float = 0.0
    _index_turn: float | None = None
    _last_turn: float = 0.0
    _counted_s: float = 0.0  # counted so far, and what the source had given by then
    _counted: float = 0.0
    _heard: float = 0.0
    _mean_since: float = np.nan
    _mean: float = np.nan
    _source: EdgeSource | None = None

    @property
    def rows(self) -> int:
        return 2 if self.usage in PAIRS else 1

    @property
    def has_periods(self) -> bool:
        return self.usage in MEASURED and self.usage != UsageTypeCI.COUNT_EDGES

    @property
    def number(self) -> int:
        return int(self.short.removeprefix("ctr"))

    @property
    def owner(self) -> Card:
        return self.card.counter_owner

    def resources(self) -> list[str]:
        # The other counter of the pair makes the measurement time, or divides the signal.
        return [self.short, f"ctr{self.number ^ 1}"] if self._uses_two else [self.short]

    @property
    def _stem(self) -> str:
        return MEASURED[self.usage][0]

    @property
    def _method(self) -> int:
        return int(self.properties.get(f"{self._stem}_meas_meth", 0))

    @property
    def _uses_two(self) -> bool:
        return self.usage in MEASURED and self._method in TWO_COUNTERS

    @property
    def _time_s(self) -> float:
        return float(self.properties.get(f"{self._stem}_meas_time", 1e-3))

    @property
    def _divisor(self) -> int:
        return max(int(self.properties.get(f"{self._stem}_div", 4)), 1)

    @property
    def _counts_per_unit(self) -> float:
        """Counts in a revolution, or in a metre."""
        p = self.properties
        decoding = DECODING.get(p["ci_encoder_decoding_type"], 1)
        if "ci_lin_encoder_dist_per_pulse" in p:
            return decoding / float(p["ci_lin_encoder_dist_per_pulse"])
        return decoding * float(p["ci_ang_encoder_pulses_per_rev"])

    def begin(self, t_s: float) -> None:
        """The counter is armed: counting and measuring begin here."""
        self._begun_s = t_s
        self._index_turn = None
        self._mean_since = self._mean = np.nan
        if self.usage in ENCODERS:
            turn = self._turns(np.array([t_s]))[0]
            self._base = float(np.floor(turn * self._counts_per_unit + 1e-9))
            self._last_turn = float(turn)
        elif self.usage in MEASURED:
            self._source = self.heard()
            self._counted_s, self._counted = t_s, 0.0
            self._heard = float(self._passed(np.array([t_s]))[0])
            if self._source is not None:
                self._base = float(self._source.count(t_s, rising=self._starts_rising))

    # What it hears

    def terminal_of(self, key: str) -> str:
        """The terminal that a property names, by default a pin."""
        terminal = str(self.properties.get(key, ""))
        pin = OTHER_PINS.get(key)
        if pin is None:
            pin = SOURCE if self._uses_two else MEASURED[self.usage][1]
        name = self.card.pins(self.short)[pin]
        return terminal or (f"/{self.card.engines.name}/{name}" if name else "")

    @property
    def terminal_key(self) -> str:
        two = self.usage == UsageTypeCI.PULSE_WIDTH_DIGITAL_TWO_EDGE_SEPARATION
        return FIRST_TERMINAL if two else f"{self._stem}_term"

    def heard(self) -> EdgeSource | None:
        """The edges that this counter hears."""
        return self.card.pulses(self.short) or self.card.edges(self.terminal_of(self.terminal_key))

    def _turns(self, t_s: Samples) -> Samples:
        return np.broadcast_to(
            np.asarray(self.card.terminal(self.short).at(t_s), dtype=float), t_s.shape
        )

    @property
    def _starts_rising(self) -> bool:
        active = {
            UsageTypeCI.COUNT_EDGES: "active_edge",
            UsageTypeCI.PULSE_WIDTH_DIGITAL_TWO_EDGE_SEPARATION: "first_edge",
        }.get(self.usage, "starting_edge")
        return bool(self.properties.get(f"{self._stem}_{active}") != Edge.FALLING.value)

    def _passed(self, t_s: Samples) -> Samples:
        """Edges that came by until t_s."""
        terminal = self.card.terminals.get(self.short)
        fed = terminal is not None and terminal.fed
        if fed and not isinstance(self.card.terminal(self.short).source, Pulses | EdgeList):
            return np.floor(self._turns(t_s) + 1e-9)
        if self._source is None:
            self._source = self.heard()  # a counter may put its pulses out there only now
            if self._source is None:
                return np.zeros(t_s.shape)
            self._heard = float(self._source.count(self._counted_s, rising=self._starts_rising))
        return np.asarray(self._source.count(t_s, rising=self._starts_rising), dtype=float)

    # Measuring

    def sample(self, t_s: Samples) -> Samples:
        if self.usage in ENCODERS:
            return self._positions(t_s)
        if self.usage == UsageTypeCI.COUNT_EDGES:
            return self._counts(t_s)
        if self.usage in VELOCITIES:
            window_s = VELOCITY_WINDOW_S
            passed = self._turns(t_s) - self._turns(t_s - window_s)
            return np.asarray(passed / window_s, dtype=float)
        values = np.nan_to_num(self._measured(t_s), posinf=np.inf)
        return np.asarray(values.reshape(self.rows, len(t_s)))

    @property
    def initial_count(self) -> int:
        return int(self.properties.get("ci_count_edges_initial_cnt", 0))

    def count_now(self, t_s: float) -> int:
        """The count register."""
        return int(self._counts(np.array([t_s]))[0])

    @property
    def steered(self) -> bool:
        """Something pauses it or decides its direction."""
        counting = self.usage == UsageTypeCI.COUNT_EDGES
        return counting and (self.gate is not None or self._direction() is not None)

    def _counts(self, t_s: Samples) -> Samples:
        start_s = self._counted_s
        steering = [c for c in (self.gate[0] if self.gate else None, self._direction()) if c]
        changes = [c.changes(start_s, float(t_s[-1])) for c in steering]
        points = np.unique(np.concatenate([t_s, *changes])) if changes else t_s
        points = points[points >= start_s]
        passed = np.diff(self._passed(points), prepend=self._heard)
        # The signs hold from the point before; levels without known edges change between steps.
        before = np.concatenate(([start_s], points[:-1]))
        counted = self._counted + np.cumsum(passed * self._sign(before))
        counts = np.full(len(t_s), self._counted)
        if len(points):
            counts = np.interp(t_s, points, counted)
            self._counted_s, self._counted = float(points[-1]), float(counted[-1])
            self._heard += float(np.sum(passed))
        return np.asarray(np.mod(self.properties["ci_count_edges_initial_cnt"] + counts, COUNTS))

    def _direction(self) -> Control | None:
        """What decides the direction; None: the program has."""
        outside = CountDirection.EXTERNAL_SOURCE.value
        if self.properties.get("ci_count_edges_dir") != outside:
            return None
        return control(self.card, self.terminal_of("ci_count_edges_dir_term"))

    def _sign(self, t_s: Samples) -> Samples:
        """+1 where the count goes up, -1 down, 0 paused.

        Source: NI "X Series User Manual", "Controlling the Direction of Counting": high counts up.
        """
        direction = self._direction()
        if direction is not None:
            sign = np.where(direction.high(t_s), 1.0, -1.0)
        else:
            down = self.properties.get("ci_count_edges_dir") == CountDirection.COUNT_DOWN.value
            sign = np.full(t_s.shape, -1.0 if down else 1.0)
        if self.gate is None:
            return np.asarray(sign)
        pause, counts_high = self.gate
        return np.where(pause.high(t_s) == counts_high, sign, 0.0)

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

    def _intervals(self) -> Intervals | None:
        if self._source is None:
            return None
        return Intervals(self._source, self._starts_rising, self._base)

    @property
    def timebase_Hz(self) -> float:
        counters = self.owner.model.counters or self.card.model.counters
        assert counters is not None
        named = str(self.properties.get("ci_ctr_timebase_src", "")).rpartition("/")[2].lower()
        by_name = {name.lower(): value for name, value in TIMEBASES.items()}
        return by_name.get(named, counters.timebase_Hz)

    def _ticks(self, time_s: Samples) -> Samples:
        """Whole periods of the counter's timebase, at least one."""
        return np.maximum(np.floor(time_s * self.timebase_Hz + 1e-6), 1.0)

    def _measured(self, t_s: Samples) -> Samples:
        """The last complete measurement at each time; NaN where there is none."""
        intervals = self._intervals()
        if intervals is None:
            return np.full((self.rows, len(t_s)), np.nan)
        u, usage = UsageTypeCI, self.usage
        if usage in (u.FREQUENCY, u.PERIOD):
            ticks = self._period_ticks(intervals, t_s)
            in_ticks = self._in_ticks()
            if usage == u.FREQUENCY:
                return ticks if in_ticks else self.timebase_Hz / ticks
            return ticks if in_ticks else ticks / self.timebase_Hz
        if usage in (u.PULSE_WIDTH_DIGITAL, u.PULSE_WIDTH_DIGITAL_SEMI_PERIOD,
                     u.PULSE_WIDTH_DIGITAL_TWO_EDGE_SEPARATION):  # fmt: skip
            ticks = self._ticks(self._width(intervals, t_s))
            return ticks if self._in_ticks() else ticks / self.timebase_Hz
        first, second = intervals.parts(t_s)
        high, low = (first, second) if self._starts_rising else (second, first)
        period = self._ticks(first + second)
        high = np.minimum(self._ticks(high), np.maximum(period - 1.0, 1.0))
        low = period - high
        if usage == u.DUTY_CYCLE:
            return np.asarray(high / period)
        if usage == u.PULSE_FREQ:
            return np.stack((self.timebase_Hz / period, high / period))
        if usage == u.PULSE_TIME:
            return np.stack((high / self.timebase_Hz, low / self.timebase_Hz))
        return np.stack((high, low))

    def _width(self, intervals: Intervals, t_s: Samples) -> Samples:
        if self.usage == UsageTypeCI.PULSE_WIDTH_DIGITAL:
            return intervals.width(t_s)
        if self.usage == UsageTypeCI.PULSE_WIDTH_DIGITAL_SEMI_PERIOD:
            return intervals.half(t_s)
        second = self._second()
        if second is None:
            return np.full(len(t_s), np.nan)
        begin_s, end_s = intervals.to_edge_of(second, self._second_rising, t_s)
        return end_s - begin_s

    def _second(self) -> EdgeSource | None:
        return self.card.edges(self.terminal_of("ci_two_edge_sep_second_term"))

    @property
    def _second_rising(self) -> bool:
        return bool(self.properties.get("ci_two_edge_sep_second_edge") != Edge.FALLING.value)

    def _period_ticks(self, intervals: Intervals, t_s: Samples) -> Samples:
        """A period in ticks of the timebase, which need not be whole for a mean."""
        if self._method == HIGH_FREQUENCY:
            windows = np.floor((t_s - self._begun_s) / self._time_s + 1e-9)
            ends = self._begun_s + windows * self._time_s
            n = intervals.source.count(ends) - intervals.source.count(ends - self._time_s)
            with np.errstate(divide="ignore"):
                periods = np.where(windows >= 1.0, self.timebase_Hz * self._time_s / n, np.nan)
            return np.asarray(periods)
        if self._method == LARGE_RANGE:
            return self._ticks(intervals.cycles(t_s, self._divisor)) / self._divisor
        if self._method == AVERAGING:
            whole_s, n = intervals.within(t_s, self._time_s)
            return np.asarray(self._ticks(whole_s) / n)
        if self.sample_clocked and self.properties.get("ci_freq_enable_averaging", True):
            return self._mean_ticks(intervals, t_s)
        return self._ticks(intervals.cycles(t_s))

    def _mean_ticks(self, intervals: Intervals, t_s: Samples) -> Samples:
        """Mean periods between sample clocks; without a new edge the one before again."""
        periods = intervals.between(t_s, self._mean_since)
        self._mean_since = float(intervals.source.count(t_s[-1], rising=intervals.rising)) - 1.0
        known = np.where(np.isnan(periods), -1, np.arange(len(periods)))
        latest = np.maximum.accumulate(known)
        periods = np.where(latest >= 0, periods[np.maximum(latest, 0)], self._mean)
        self._mean = float(periods[-1])
        return np.asarray(periods * self.timebase_Hz)

    # When a measurement is complete

    def ready_s(self, now_s: float) -> float | None:
        """When there is a first measurement; None: nobody knows."""
        if self.usage in (UsageTypeCI.COUNT_EDGES, *ENCODERS, *VELOCITIES):
            return now_s
        if self._source is None:
            self._source = self.heard()
            if self._source is None:
                return None
        if self._method == HIGH_FREQUENCY or (
            self._method == AVERAGING and now_s < self._begun_s + self._time_s
        ):
            return self._begun_s + self._time_s
        if not np.isnan(np.ravel(self._measured(np.array([now_s])))[0]):
            return now_s
        return self._next_edge_s(now_s)

    def _next_edge_s(self, now_s: float) -> float | None:
        """When something may be complete: at the next edge that is known."""
        sources = [s for s in (self._source, self._second()) if s is not None]
        edges_s = [
            s.time(s.count(now_s, rising=r), rising=r) for s in sources for r in (True, False)
        ]
        later = [float(t) for t in edges_s if t > now_s]
        return min(later) if later else None

    def completions(self, now_s: float) -> Edges:
        """When measurements are complete from now on: these are the samples of implicit timing."""
        if self._method == HIGH_FREQUENCY:
            window_s = self._time_s
            return edges.of(Pulses(window_s, 0.5 * window_s, now_s + window_s), now_s, rising=True)
        source, rising = self._source, self._starts_rising
        if source is None:
            return lambda _after_s, _until_s: np.empty(0)
        heard = [edges.of(source, now_s, rising=r) for r in self._ends(rising)]
        if self.usage == UsageTypeCI.PULSE_WIDTH_DIGITAL_TWO_EDGE_SEPARATION:
            second = self._second()
            heard = [] if second is None else [edges.of(second, now_s, rising=self._second_rising)]

        def between(after_s: float, until_s: float) -> Samples:
            times = np.sort(np.concatenate([np.empty(0), *(h(after_s, until_s) for h in heard)]))
            if self._method == LARGE_RANGE:
                done = source.count(times, rising=rising) - 1.0 - self._base
                times = times[done % self._divisor == 0.0]
            return times[self._completes(times)] if len(times) else times

        return between

    def _completes(self, t_s: Samples) -> NDArray[np.bool_]:
        """Whether the edges at these times complete a measurement."""
        intervals, second = self._intervals(), self._second()
        two = self.usage == UsageTypeCI.PULSE_WIDTH_DIGITAL_TWO_EDGE_SEPARATION
        if two and intervals is not None and second is not None:
            begin_s, end_s = intervals.to_edge_of(second, self._second_rising, t_s)
            return np.asarray(~np.isnan(begin_s) & (end_s == t_s))
        return np.asarray(~np.isnan(np.atleast_2d(self._measured(t_s))[0]))

    def _ends(self, rising: bool) -> tuple[bool, ...]:
        """The edges that end a measurement which starts at a rising or falling edge."""
        if self.usage == UsageTypeCI.PULSE_WIDTH_DIGITAL:
            return (not rising,)
        if self.usage == UsageTypeCI.PULSE_WIDTH_DIGITAL_SEMI_PERIOD:
            return (True, False)
        return (rising,)

    def _in_ticks(self) -> bool:
        return bool(self.properties.get(f"{self._stem}_units") == TICKS)

    def scaled(self, raw: Any) -> Any:
        value = self.offset + self.per_count * raw if self.usage in ENCODERS + VELOCITIES else raw
        return value if self.custom is None else self.custom.scaling(value)

    @property
    def computed(self) -> dict[str, Callable[[], Any]]:
        getters: dict[str, Callable[[], Any]] = {"ci_ctr_timebase_rate": lambda: self.timebase_Hz}
        keys = list(OTHER_PINS)
        if self.usage in MEASURED:
            keys.append(self.terminal_key)
        for key in keys:
            getters[key] = partial(self.terminal_of, key)
        return getters

    def verify(self) -> None:
        for key, value in self.properties.items():
            if key.startswith("ci_") and key.endswith("_term") and value:
                self._must_exist(str(value))

    def _must_exist(self, terminal: str) -> None:
        """Raise DaqmxError where there is no such terminal."""
        device, _, rest = terminal.lstrip("/").partition("/")
        if not terminal.startswith("/") and device not in self.card.neighbours:
            device, rest = self.card.engines.name, terminal
        card = self.card.neighbours.get(device)
        if card is None:
            raise DaqmxError(errors.UNKNOWN_DEVICE_IN_TERMINAL, Source_Terminal=terminal)
        known = (*card.engines.terminal_names(), *card.terminal_names())
        if rest.lower() not in {name.lower() for name in known}:
            raise DaqmxError(errors.NO_SUCH_TERMINAL, Source_Terminal=terminal)


def prepare(task: Task) -> None:
    """Tell the counters of a task that starts what pauses them and what latches them."""
    for channel in task.channels:
        if isinstance(channel, CounterInput):
            channel.gate = pause(channel.card, task.properties)
            channel.sample_clocked = task.timing.type == SampleTimingType.SAMPLE_CLOCK.value


class CounterRun(SoftwareTimed):
    """Counters that are read on demand: they follow what steers them, from their arm trigger on."""

    def __init__(self, task: Task, armed: Edges | None) -> None:
        self._channels = [c for c in task.channels if isinstance(c, CounterInput)]
        self._armed = armed
        self.start_s: float | None = None

    @property
    def waits(self) -> bool:
        """The arm start trigger has not come."""
        return self._armed is not None

    def take(self, after_s: float, until_s: float) -> None:
        if self._armed is not None:
            times = self._armed(after_s, until_s)
            if not len(times):
                return
            self._armed, self.start_s = None, float(times[0])
            for channel in self._channels:
                channel.begin(self.start_s)

    def step(self, after_s: float, until_s: float) -> None:
        for channel in self._channels:
            if channel.steered and not self.waits:
                channel.count_now(until_s)


def control(card: Card, terminal: str) -> Control:
    """A terminal that steers a counter."""
    source = card.edges(terminal)
    if source is not None:
        return Control(source, source)
    rest = terminal.lstrip("/").partition("/")[2] or terminal
    device = terminal.lstrip("/").partition("/")[0]
    owner = card.neighbours.get(device, card).owner_of(rest)
    return Control(None, lambda t_s: owner.level(rest, t_s))


def pause(card: Card, properties: dict[tuple[str, str], Any]) -> tuple[Control, bool] | None:
    """The pause trigger of a counter's task, and the level at which it counts; None: it has none.

    Source: NI "X Series User Manual", "Pause Trigger" of counters: a digital level.
    """
    if properties.get(("trig", "pause_trig_type")) != TriggerType.DIGITAL_LEVEL.value:
        return None
    source = str(properties.get(("trig", "pause_dig_lvl_src"), ""))
    pauses = properties.get(("trig", "pause_dig_lvl_when"), Level.HIGH.value)
    return control(card, source), pauses != Level.HIGH.value
