"""Who hears whom: clocks and triggers of a task, from another task, a counter or a pin."""

from __future__ import annotations

from typing import Any

import numpy as np
from nidaqmx.constants import Edge, TriggerType

from simdaq import errors, names
from simdaq.bench import Bench
from simdaq.card import COUNTER_PINS, Card
from simdaq.channels import AnalogInput
from simdaq.errors import DaqmxError
from simdaq.task import RUNNING, Task
from simdaq.terminals import Pulses
from simdaq.timing import NONE, Edges, ExternalClock, InternalClock, Times, Trigger


def sample_clock(bench: Bench, task: Task, n: float) -> InternalClock | ExternalClock:
    """The clock of n samples that a task's timing and start trigger describe."""
    trigger = trigger_edges(bench, task.start_trigger, task)
    start_s = bench.now_s if trigger is None else None
    if task.has_own_clock:
        again = bool(task.properties.get(("trig", "start_retriggerable"), False))
        return InternalClock(
            task.rate_Hz, n, start_s, trigger, retriggerable=again, delay_s=task.start_delay_s
        )
    heard = edges(bench, task.timing.source, task.timing.edge, task)
    return ExternalClock(heard, n, trigger)


def edges(bench: Bench, terminal: str, edge: int, task: Task) -> Edges:
    """The edges of a terminal, as a function of an interval.

    Raises
    ------
    DaqmxError
        There is no such terminal.
    """
    device, rest = names.split(terminal)
    if not terminal.startswith("/"):
        device, rest = task.card.engines.name, terminal
    if device not in bench.cards:
        raise DaqmxError(errors.UNKNOWN_DEVICE_IN_TERMINAL, Source_Terminal=terminal)
    card = bench.cards[device]
    known = {name.lower(): name for name in card.terminal_names()}
    if rest.lower() not in known:
        raise DaqmxError(errors.NO_SUCH_TERMINAL, Source_Terminal=terminal)
    rest = known[rest.lower()]
    if rest.endswith(("/SampleClock", "/StartTrigger", "/ReferenceTrigger")):
        kind, _, what = rest.partition("/")
        return _signal_of(bench, card, kind, what)
    if rest.startswith("Ctr"):
        return _counter_edges(bench, card, rest, edge)
    return line_edges(bench, card, rest, edge)


def _signal_of(bench: Bench, card: Card, kind: str, what: str) -> Edges:
    """The sample clock or a trigger of whatever task runs on a card."""

    def found(after_s: float, until_s: float) -> Times:
        for task in bench.tasks.values():
            mine = task.kind == kind and task.channels and task.card.engines is card
            if not mine or task.state != RUNNING or task.run is None:
                continue
            if what == "SampleClock":
                return np.asarray(task.run.fresh, dtype=float)
            at_s: Any = task.reference_trigger.at_s
            if what == "StartTrigger":
                at_s = getattr(getattr(task.run, "clock", None), "start_s", None)
            if at_s is not None and after_s <= at_s <= until_s:
                return np.array([at_s])
        return NONE

    return found


def _counter_edges(bench: Bench, card: Card, rest: str, edge: int) -> Edges:
    number = int(rest[3])
    if rest.endswith("InternalOutput"):

        def of_output(after_s: float, until_s: float) -> Times:
            train = card.output(f"ctr{number}").train
            return NONE if train is None else edges_of(train, edge, after_s, until_s)

        return of_output
    pins = COUNTER_PINS[number]
    return line_edges(bench, card, pins[0 if rest.endswith("Source") else 1], edge)


def line_edges(bench: Bench, card: Card, short: str, edge: int) -> Edges:
    """Edges of a digital line: exact of `Pulses`, else where a step ends on another level."""
    level = [0.0 if card.pulses(short) is not None else card.level(short, bench.now_s)]

    def found(after_s: float, until_s: float) -> Times:
        pulses = card.pulses(short)
        if pulses is not None:
            return edges_of(pulses, edge, after_s, until_s)
        before, level[0] = level[0], card.level(short, until_s)
        wanted = 1.0 if edge == Edge.RISING.value else -1.0
        return np.array([until_s]) if level[0] - before == wanted else NONE

    return found


def trigger_edges(bench: Bench, trigger: Trigger, task: Task) -> Edges | None:
    """When a trigger fires; None: there is none."""
    if not trigger.present:
        return None
    if trigger.type == TriggerType.DIGITAL_EDGE.value:
        return edges(bench, trigger.source, trigger.edge, task)
    if trigger.type == TriggerType.ANALOG_EDGE.value:
        return _analog_edges(trigger, task)
    raise task.error(errors.START_TRIGGER_NOT_SUPPORTED)


def _analog_edges(trigger: Trigger, task: Task) -> Edges:
    """Crossings of a level, looked for at least once in the task's own sample period."""
    source = trigger.source
    channels = [
        c for c in task.channels
        if isinstance(c, AnalogInput) and source in (c.name, c.physical, c.short)
    ]  # fmt: skip
    if not channels:
        raise task.error(errors.NO_SUCH_TERMINAL, Source_Terminal=source)
    channel = channels[0]
    step_s = 1.0 / task.rate_Hz
    sign = 1.0 if trigger.edge == Edge.RISING.value else -1.0

    def found(after_s: float, until_s: float) -> Times:
        grid: Times = np.append(np.arange(after_s, until_s, step_s), until_s)
        above = sign * (channel.scaled(channel.sample(grid)) - trigger.level) > 0.0
        return np.asarray(grid[1:][above[1:] & ~above[:-1]])

    return found


def edges_of(pulses: Pulses, edge: int, after_s: float, until_s: float) -> Times:
    """Rising or falling edges of a pulse train in (after_s, until_s]."""
    if edge == Edge.RISING.value:
        return pulses.rising(after_s, until_s)
    return pulses.falling(after_s, until_s)
