"""Counters that make pulses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from nidaqmx.constants import Level

from simdaq import counters, edges, errors, names, routes
from simdaq.bench import Bench
from simdaq.channels import Channel
from simdaq.edges import EdgeSource, PulseCycle, Pulses, Times
from simdaq.errors import DaqmxError
from simdaq.run import Run
from simdaq.task import Task
from simdaq.terminals import PulseOutput
from simdaq.timing import NONE

OUT = 3  # pin of a counter
TINY_S = 1e-12
PULSES_MAX = 1000  # of a trigger, whose edges are kept as times at once


@dataclass
class CounterOutput(Channel):
    """A counter that makes pulses: `high_s` and `low_s` of one, `delay_s` before the first."""

    high_s: float = 0.5
    low_s: float = 0.5
    delay_s: float = 0.0

    def __post_init__(self) -> None:
        self.coerce()

    @property
    def has_periods(self) -> bool:
        return True

    @property
    def output(self) -> PulseOutput:
        return self.card.pulse_output(self.short)

    @property
    def timebase_Hz(self) -> float:
        counters = self.card.counter_owner.model.counters or self.card.model.counters
        assert counters is not None
        return counters.timebase_Hz

    def coerce(self) -> None:
        """Take pulses that are whole periods of the counter's timebase, two at least.

        Source: NI "X Series User Manual", "Counter Output Applications".
        """
        timebase_Hz = self.timebase_Hz
        self.high_s = max(round(self.high_s * timebase_Hz), 2) / timebase_Hz
        self.low_s = max(round(self.low_s * timebase_Hz), 2) / timebase_Hz

    def train(self, first_s: float, n: float) -> Pulses:
        """Its pulses: each active first, then idle."""
        active_s = self.low_s if self.idle_high else self.high_s
        return Pulses(self.high_s + self.low_s, active_s, first_s, n)

    @property
    def idle_high(self) -> bool:
        return bool(self.properties.get("co_pulse_idle_state") == Level.HIGH.value)

    @property
    def tick_s(self) -> float:
        """Period of the timebase that pulses by ticks count; one from outside counts as 100 MHz."""
        named = str(self.properties.get("co_ctr_timebase_src", "")).lower().rpartition("/")[2]
        return {"20mhztimebase": 5e-8, "100khztimebase": 1e-5}.get(named, 1e-8)

    @property
    def idle(self) -> float:
        """Its level while nothing goes out."""
        return 1.0 if self.idle_high else 0.0

    def commit(self, t_s: float) -> None:
        if self.output.at(t_s) != self.idle:
            self.output.put(t_s, self.idle)

    def n_ended(self, t_s: float) -> float:
        """Pulses whose active part has ended, of all that the counter has made."""
        return float(self.output.edges.count(t_s, rising=self.idle_high))

    def ends(self, k: float) -> float:
        """When the active part of a pulse ends."""
        return float(self.output.edges.time(k, rising=self.idle_high))

    def changed(self, key: str, now_s: float) -> None:
        """Apply a property of the pulse that was set, also to a running train."""
        p, period_s = self.properties, self.high_s + self.low_s
        duty = self.high_s / period_s
        if key == "co_pulse_freq":
            period_s = 1.0 / p[key]
            self.high_s, self.low_s = duty * period_s, (1.0 - duty) * period_s
        elif key == "co_pulse_duty_cyc":
            self.high_s, self.low_s = p[key] * period_s, (1.0 - p[key]) * period_s
        elif key in ("co_pulse_high_time", "co_pulse_high_ticks"):
            self.high_s = p[key] * (self.tick_s if key.endswith("ticks") else 1.0)
        elif key in ("co_pulse_low_time", "co_pulse_low_ticks"):
            self.low_s = p[key] * (self.tick_s if key.endswith("ticks") else 1.0)
        elif key in ("co_pulse_freq_initial_delay", "co_pulse_time_initial_delay"):
            self.delay_s = p[key]
        elif key == "co_pulse_ticks_initial_delay":
            self.delay_s = p[key] * self.tick_s
        elif key == "co_pulse_term":
            self.route()
        self.retime(now_s)

    def refuse(self, key: str, value: Any) -> None:
        """Raise DaqmxError for a pulse that the counter cannot make."""
        wrong = (key == "co_pulse_duty_cyc" and not 0.0 < value < 1.0) or (
            key in ("co_pulse_freq", "co_pulse_high_time", "co_pulse_low_time",
                    "co_pulse_high_ticks", "co_pulse_low_ticks") and value <= 0
        )  # fmt: skip
        wrong = wrong or (key.endswith("_initial_delay") and value < 0)
        highest_Hz = self.timebase_Hz / 4.0
        if wrong or (key == "co_pulse_freq" and value > highest_Hz):
            raise DaqmxError(
                errors.BAD_VALUE, Property=key, Requested_Value=value, Channel_Name=self.name
            )

    def retime(self, now_s: float) -> None:
        """Make the pulses that are set now, in a running train from its next pulse on."""
        self.coerce()
        following = self.train(now_s, 1.0)
        self.output.change(now_s, following.period_s, following.high_s, inverted=self.idle_high)

    def terminal(self) -> str:
        """Where the pulses go out; empty where the counter has no pin."""
        terminal = str(self.properties.get("co_pulse_term", ""))
        pin = self.card.pins(self.short)[OUT]
        engines = self.card.engines
        return terminal or (f"/{engines.name}/{pin}" if pin else "")

    def route(self) -> None:
        """Let the pulses be heard at their terminal."""
        device, pin = names.split(self.terminal()) if self.terminal() else ("", "")
        if device in self.card.neighbours:
            self.card.neighbours[device].owner_of(pin).routed[pin] = self.output

    @property
    def computed(self) -> dict[str, Callable[[], Any]]:
        period_s = self.high_s + self.low_s
        return {
            "co_pulse_freq": lambda: 1.0 / period_s,
            "co_pulse_duty_cyc": lambda: self.high_s / period_s,
            "co_pulse_high_time": lambda: self.high_s,
            "co_pulse_low_time": lambda: self.low_s,
            "co_pulse_term": self.terminal,
            "co_ctr_timebase_rate": lambda: self.timebase_Hz,
            "co_pulse_done": lambda: self.output.train is None,
        }


def task_output(task: Task) -> EdgeSource:
    """Edges of the first counter of a task: its counter output event."""
    return task.channels[0].card.pulse_output(task.channels[0].short).edges


class PulseRun(Run):
    """Pulses going out: `n` of them, one after the other, or a train without end.

    With pulses written (`task.written`, rows high and low of every pulse in s), those in turn.
    A retriggerable task makes `n` pulses at every trigger that comes while none go out.
    """

    def __init__(self, bench: Bench, task: Task) -> None:
        self.task = task
        timing = task.timing
        if timing.on_demand:
            self._planned = 1.0
        else:
            self._planned = float(timing.samples) if timing.finite else np.inf
        self._events = edges.of(task_output(task), bench.now_s, rising=True)
        self._trigger = routes.trigger_edges(bench, task.start_trigger, task)
        if self._trigger is None:
            self._trigger = routes.arm_start(bench, task)
        self._again = bool(task.properties.get(("trig", "start_retriggerable"), False))
        self._start_s: float | None = None
        self._total = 0
        self._idle_since_s = bench.now_s  # triggers that come earlier find it busy
        self._pairs = task.written if not timing.on_demand else None
        self._over = False
        self._paused_s: float | None = None
        self._gate = counters.pause(task.card, task.properties)
        for channel in self._channels():
            channel.route()
        self._ended_before = self._channels()[0].n_ended(bench.now_s)
        if self._trigger is None:
            self._begin(bench.now_s)

    @property
    def done(self) -> bool:
        return self._over

    @property
    def planned(self) -> float:
        return np.inf if self._again else self._planned

    @property
    def total(self) -> int:
        return self._total

    @property
    def start_s(self) -> float | None:
        """When the start trigger came."""
        return self._start_s

    def _channels(self) -> list[CounterOutput]:
        return [c for c in self.task.channels if isinstance(c, CounterOutput)]

    def _begin(self, t_s: float) -> None:
        self._start_s = t_s
        for channel in self._channels():
            first_s = t_s + channel.delay_s
            train: EdgeSource = channel.train(first_s, self._planned)
            if self._pairs is not None:
                idle_s, active_s = self._pairs if channel.idle_high else self._pairs[::-1]
                train = PulseCycle(idle_s, active_s, first_s, self._planned)
            channel.output.put_train(t_s, train, inverted=channel.idle_high)

    def _end_s(self) -> float:
        """When the last pulse ends."""
        ends = [0.0]
        for channel in self._channels():
            train = channel.output.train
            if isinstance(train, PulseCycle):
                ends.append(train.end_s())
            elif isinstance(train, Pulses):
                ends.append(train.first_s + train.n * train.period_s)
        return max(ends)

    def when(self, more: int) -> float | None:
        channels = self._channels()
        if self._start_s is None or not channels or self._paused_s is not None:
            return None
        if self.total + more >= self.planned:
            return self._end_s()
        at_s = channels[0].ends(self._ended_before + self.total + more - 1)
        return at_s if np.isfinite(at_s) else None

    def take(self, after_s: float, until_s: float) -> None:
        if self._over:
            return
        triggers = NONE if self._trigger is None else self._trigger(after_s, until_s)
        while not self._over:
            if self._start_s is None:
                triggers = self._answer(triggers[triggers >= self._idle_since_s], until_s)
                if not len(triggers):
                    break
                self._begin(float(triggers[0]))
            self._follow_gate(after_s, until_s)
            end_s = self._end_s()
            if self._paused_s is not None or end_s > until_s + TINY_S:
                break
            if self._again:
                self._start_s, self._idle_since_s = None, end_s
            else:
                self._over = True
                self.stop(end_s)
        self._total = int(self._channels()[0].n_ended(until_s) - self._ended_before)
        self.fresh = self._events(after_s, until_s)

    def _answer(self, triggers: Times, until_s: float) -> Times:
        """Make the pulses of triggers that are over by until_s; returns the triggers left.

        A trigger while pulses go out is not heard.
        """
        if not self._again or self._gate is not None or self._pairs is not None:
            return triggers
        if self._planned > PULSES_MAX:
            return triggers
        channels = self._channels()
        trains = [channel.train(channel.delay_s, self._planned) for channel in channels]
        lasts_s = max(train.first_s + train.n * train.period_s for train in trains)
        heard = triggers
        if (np.diff(triggers) < lasts_s - TINY_S).any():
            times: list[float] = []
            for t_s in triggers.tolist():
                if not times or t_s >= times[-1] + lasts_s - TINY_S:
                    times.append(t_s)
            heard = np.array(times)
        over = heard[heard + lasts_s <= until_s + TINY_S]
        if not len(over):
            return triggers
        for channel, train in zip(channels, trains, strict=True):
            channel.output.put_trains(train, over, inverted=channel.idle_high)
        self._idle_since_s = float(over[-1]) + lasts_s - TINY_S
        return triggers[triggers >= self._idle_since_s]

    def _shortest_s(self) -> float:
        """A time that a train can tell from none."""
        trains = [channel.output.train for channel in self._channels()]
        return max(2.0 * edges.TINY * t.period_s for t in trains if isinstance(t, Pulses))

    def _follow_gate(self, after_s: float, until_s: float) -> None:
        """Pause and go on where the pause trigger changes."""
        if self._gate is None:
            return
        gate, counts_high = self._gate
        begin_s = max(after_s, self._start_s or 0.0)
        points = np.unique(np.append(gate.changes(begin_s, until_s), begin_s))
        for t_s, high in zip(points, np.atleast_1d(gate.high(points)), strict=True):
            if high != counts_high and self._paused_s is None:
                self._paused_s = float(t_s)
                if t_s == self._start_s:  # no edge comes out, not even that of the start
                    self._paused_s -= self._shortest_s()
                for channel in self._channels():
                    channel.output.pause(self._paused_s)
            elif high == counts_high and self._paused_s is not None:
                for channel in self._channels():
                    channel.output.resume(self._paused_s, float(t_s))
                self._paused_s = None

    def stop(self, t_s: float) -> None:
        for channel in self._channels():
            if channel.output.train is not None:  # a watchdog may have taken the output
                channel.output.put(t_s, channel.idle)
