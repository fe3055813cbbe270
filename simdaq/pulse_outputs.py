"""Counters that make pulses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from nidaqmx.constants import Level

from simdaq import routes
from simdaq.bench import Bench
from simdaq.card import COUNTER_PINS
from simdaq.channels import Channel
from simdaq.run import Run
from simdaq.task import Task
from simdaq.terminals import Output, Pulses
from simdaq.timing import Times


@dataclass
class CounterOutput(Channel):
    """A counter that makes pulses: `high_s` and `low_s` of one, `delay_s` before the first."""

    high_s: float = 0.5
    low_s: float = 0.5
    delay_s: float = 0.0

    @property
    def has_periods(self) -> bool:
        return True

    @property
    def output(self) -> Output:
        return self.card.output(self.short)

    @property
    def idle_high(self) -> bool:
        return bool(self.properties.get("co_pulse_idle_state") == Level.HIGH.value)

    def changed(self, key: str, now_s: float) -> None:
        """Apply a property of the pulse that was set, also to a running train."""
        p, period_s = self.properties, self.high_s + self.low_s
        duty = self.high_s / period_s
        if key == "co_pulse_freq":
            period_s = 1.0 / p[key]
            self.high_s, self.low_s = duty * period_s, (1.0 - duty) * period_s
        elif key == "co_pulse_duty_cyc":
            self.high_s, self.low_s = p[key] * period_s, (1.0 - p[key]) * period_s
        elif key in ("co_pulse_high_time", "co_pulse_low_time"):
            self.high_s = p.get("co_pulse_high_time", self.high_s)
            self.low_s = p.get("co_pulse_low_time", self.low_s)
        self.retime(now_s)

    def retime(self, now_s: float) -> None:
        """Apply the pulse that is set now to a running train."""
        train = self.output.train
        if train is not None:
            self.output.train = Pulses(self.high_s + self.low_s, self.high_s, now_s, train.n)

    @property
    def computed(self) -> dict[str, Callable[[], Any]]:
        period_s = self.high_s + self.low_s
        number = int(self.short.removeprefix("ctr"))
        pin = COUNTER_PINS[number][3]
        given = self.properties.get("co_pulse_term", "")
        return {
            "co_pulse_freq": lambda: 1.0 / period_s,
            "co_pulse_duty_cyc": lambda: self.high_s / period_s,
            "co_pulse_high_time": lambda: self.high_s,
            "co_pulse_low_time": lambda: self.low_s,
            "co_pulse_term": lambda: given or f"/{self.card.engines.name}/{pin}",
            "co_output_state": lambda: Level.LOW.value,
            "co_pulse_done": lambda: self.output.train is None,
        }


class PulseRun(Run):
    """Pulses going out: `n` of them, one after the other, or a train without end.

    With pulses written (`task.written`, rows high and low of every pulse in s), those in turn.
    """

    def __init__(self, bench: Bench, task: Task) -> None:
        self.task = task
        timing = task.timing
        if timing.on_demand:
            self._planned = 1.0
        else:
            self._planned = float(timing.samples) if timing.finite else np.inf
        self._trigger = routes.trigger_edges(bench, task.start_trigger, task)
        if self._trigger is None:
            self._trigger = routes.arm_start(bench, task)
        self._start_s: float | None = None
        self._sent = 0.0
        self._next_s = 0.0
        self._pairs = task.written if not timing.on_demand else None
        self._over = False
        if self._trigger is None:
            self._begin(bench.now_s)

    @property
    def done(self) -> bool:
        return self._over

    @property
    def planned(self) -> float:
        return self._planned

    @property
    def total(self) -> int:
        return int(self._sent)

    def _channels(self) -> list[CounterOutput]:
        return [c for c in self.task.channels if isinstance(c, CounterOutput)]

    def _begin(self, t_s: float) -> None:
        self._start_s = t_s
        for channel in self._channels():
            first_s = t_s + channel.delay_s
            self._next_s = first_s
            period_s = channel.high_s + channel.low_s
            if self._pairs is None:
                train = Pulses(period_s, channel.high_s, first_s, self.planned)
                channel.output.put_train(t_s, train, inverted=channel.idle_high)

    def when(self, more: int) -> float | None:
        channels = self._channels()
        if self._start_s is None or not channels:
            return None
        period_s = channels[0].high_s + channels[0].low_s
        if self._pairs is not None:
            return self._next_s
        return self._start_s + channels[0].delay_s + (self._sent + more) * period_s

    def step(self, after_s: float, until_s: float) -> None:
        if self._trigger is not None and self._start_s is None:
            edges: Times = self._trigger(after_s, until_s)
            if len(edges):
                self._begin(float(edges[0]))
        if self._start_s is None or self._over:
            return
        if self._pairs is not None:
            self._step_pairs(until_s)
            return
        for channel in self._channels():
            train = channel.output.train
            if train is not None:
                passed = (until_s - train.first_s) / train.period_s
                self._sent = float(np.clip(np.floor(passed + 1e-9), 0.0, self.planned))
        if self._sent >= self.planned:
            self._finish(until_s)

    def _step_pairs(self, until_s: float) -> None:
        channel = self._channels()[0]
        assert self._pairs is not None
        while self._next_s <= until_s:
            if self._sent >= self.planned:
                self._finish(self._next_s)
                return
            high_s, low_s = self._pairs[:, int(self._sent) % self._pairs.shape[1]]
            train = Pulses(high_s + low_s, high_s, self._next_s, 1.0)
            channel.output.put_train(self._next_s, train, inverted=channel.idle_high)
            self._next_s += high_s + low_s
            self._sent += 1.0

    def _finish(self, t_s: float) -> None:
        self._over = True
        self.stop(t_s)

    def stop(self, t_s: float) -> None:
        for channel in self._channels():
            channel.output.put(t_s, 1.0 if channel.idle_high else 0.0)
