"""Routes: where the clocks and triggers of a task come from: another task, a counter, a pin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from nidaqmx.constants import (
    ActiveLevel,
    DigitalPatternCondition,
    Edge,
    Level,
    SampleTimingType,
    TriggerType,
    WindowTriggerCondition1,
    WindowTriggerCondition2,
)

from simdaq import errors, names
from simdaq.bench import UNIX_1904_S, Bench
from simdaq.card import Card
from simdaq.channels import AnalogInput
from simdaq.edges import of as edges_of
from simdaq.errors import DaqmxError
from simdaq.task import RUNNING, Task
from simdaq.timing import (
    NONE,
    Clock,
    Edges,
    ExternalClock,
    InternalClock,
    PausedClock,
    Times,
    Trigger,
)

JUST_BEFORE_S = 1e-9
NO_TRIGGER = TriggerType.NONE.value


def sample_clock(bench: Bench, task: Task, n: float) -> Clock:
    """The clock of n samples that a task's timing, start and pause trigger describe."""
    trigger = trigger_edges(bench, task.start_trigger, task)
    if task.kind in ("ci", "co") and trigger is None:
        trigger = arm_start(bench, task)
    clock: InternalClock | ExternalClock
    if task.has_own_clock:
        start_s = bench.now_s if trigger is None else None
        again = bool(task.properties.get(("trig", "start_retriggerable"), False))
        clock = InternalClock(
            task.rate_Hz, n, start_s, trigger, retriggerable=again, delay_s=task.start_delay_s
        )
    else:
        clock = ExternalClock(edges(bench, task.timing.source, task.timing.edge, task), n, trigger)
    paused = _pause(bench, task)
    return clock if paused is None else PausedClock(clock, n, paused)


def arm_start(bench: Bench, task: Task) -> Edges | None:
    """When the arm start trigger of a counter fires; None: there is none."""
    p = task.properties
    kind = p.get(("trig", "arm_start_trig_type"), NO_TRIGGER)
    if kind == TriggerType.TIME.value:
        return _time_edge(bench, p.get(("trig", "arm_start_time_when"), (0, 0)))
    if kind != TriggerType.DIGITAL_EDGE.value:
        return None
    edge = int(p.get(("trig", "arm_start_dig_edge_edge"), Edge.RISING.value))
    return edges(bench, str(p.get(("trig", "arm_start_dig_edge_src"), "")), edge, task)


def _pause(bench: Bench, task: Task) -> Callable[[Times], Any] | None:
    """Whether a task's clock is paused at given times; None: it has no pause trigger."""
    p = task.properties
    kind = p.get(("trig", "pause_trig_type"), NO_TRIGGER)
    if kind == NO_TRIGGER or task.kind in ("ci", "co"):  # a counter pauses, and not its clock
        return None
    if task.timing.type == SampleTimingType.BURST_HANDSHAKE.value:  # no peripheral pauses it
        return None
    if kind == TriggerType.DIGITAL_LEVEL.value:
        card, short = _pin(bench, str(p.get(("trig", "pause_dig_lvl_src"), "")), task)
        high = p.get(("trig", "pause_dig_lvl_when"), Level.HIGH.value) == Level.HIGH.value
        source = card.edges(f"/{card.name}/{short}")
        state: Callable[[Times], Any] = source or (lambda t: card.level(short, t))
        return lambda t: (np.broadcast_to(state(t), t.shape) > 0.5) == high
    if kind == TriggerType.ANALOG_LEVEL.value:
        watched = _watched(str(p.get(("trig", "pause_anlg_lvl_src"), "")), task)
        level = float(p.get(("trig", "pause_anlg_lvl_lvl"), 0.0))
        above = p.get(("trig", "pause_anlg_lvl_when")) != ActiveLevel.BELOW.value
        return lambda t: (watched(t) > level) == above
    if kind == TriggerType.ANALOG_WINDOW.value:
        watched = _watched(str(p.get(("trig", "pause_anlg_win_src"), "")), task)
        top = float(p.get(("trig", "pause_anlg_win_top"), 0.0))
        bottom = float(p.get(("trig", "pause_anlg_win_btm"), 0.0))
        outside = WindowTriggerCondition2.OUTSIDE_WINDOW.value
        inside = p.get(("trig", "pause_anlg_win_when")) != outside

        def paused(t: Times) -> Any:
            value = watched(t)
            return ((value > bottom) & (value < top)) == inside

        return paused
    raise task.error(errors.PROPERTY_NOT_SUPPORTED, Property="Pause.TrigType")


def _pin(bench: Bench, terminal: str, task: Task) -> tuple[Card, str]:
    """The card and the pin of a terminal."""
    name = task.qualified(terminal)
    must_exist(task, name)
    device, rest = names.split(name)
    return bench.card(device), rest


def must_exist(task: Task, terminal: str) -> None:
    """Raise DaqmxError where the task's own device has no such terminal."""
    engines = task.card.engines
    device, rest = names.split(terminal) if terminal.startswith("/") else (engines.name, terminal)
    known = {name.lower() for name in engines.terminal_names()}
    if device == engines.name and rest.lower() not in known:
        raise task.error(errors.NO_SUCH_TERMINAL, Source_Terminal=terminal)


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
    if rest == "ChangeDetectionEvent":
        return _signal_of(bench, card, "di", "SampleClock")
    if rest.endswith(("/SampleClock", "/StartTrigger", "/ReferenceTrigger")):
        kind, _, what = rest.partition("/")
        return _signal_of(bench, card, kind, what)
    source = card.edges(f"/{card.name}/{rest}")
    if source is not None:
        return edges_of(source, bench.now_s, rising=edge == Edge.RISING.value)
    return line_edges(bench, card, rest, edge)


def _signal_of(bench: Bench, card: Card, kind: str, what: str) -> Edges:
    """The sample clock or a trigger of whatever task runs on a card."""

    def between(after_s: float, until_s: float) -> Times:
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

    return between


def line_edges(bench: Bench, card: Card, short: str, edge: int) -> Edges:
    """Edges of a digital line: exact where they are known, else where a step ends on another
    level.
    """
    source = card.pulses(short)
    if source is not None:
        return edges_of(source, bench.now_s, rising=edge == Edge.RISING.value)
    level = [card.level(short, bench.now_s)]

    def between(after_s: float, until_s: float) -> Times:
        before, level[0] = level[0], card.level(short, until_s)
        wanted = 1.0 if edge == Edge.RISING.value else -1.0
        return np.array([until_s]) if level[0] - before == wanted else NONE

    return between


def trigger_edges(bench: Bench, trigger: Trigger, task: Task) -> Edges | None:
    """When a trigger fires; None: there is none."""
    if not trigger.present:
        return None
    if trigger.type == TriggerType.DIGITAL_EDGE.value:
        return edges(bench, trigger.source, trigger.edge, task)
    if trigger.type == TriggerType.ANALOG_EDGE.value:
        return _analog_edges(trigger.source, trigger.edge, trigger.level, task)
    if trigger.type == TriggerType.ANALOG_MULTI_EDGE.value:
        parts = zip(names.unflatten(trigger.source), trigger.slopes, trigger.levels, strict=True)
        return _any_of([_analog_edges(*part, task) for part in parts])
    if trigger.type == TriggerType.ANALOG_WINDOW.value:
        return _window_edges(trigger, task)
    if trigger.type == TriggerType.DIGITAL_PATTERN.value:
        return _pattern_edges(bench, trigger, task)
    if trigger.type == TriggerType.TIME.value:
        return _time_edge(bench, task.properties["trig", "start_time_when"])
    raise task.error(errors.START_TRIGGER_NOT_SUPPORTED)


def _any_of(alternatives: list[Edges]) -> Edges:
    def first(after_s: float, until_s: float) -> Times:
        return np.sort(np.concatenate([edges(after_s, until_s) for edges in alternatives]))

    return first


def _watched(source: str, task: Task) -> Callable[[Times], Any]:
    """What an analog trigger watches: a channel of the task, or volts at a pin such as APFI0."""
    for c in task.channels:
        if isinstance(c, AnalogInput) and source in (c.name, c.physical, c.short):
            return lambda t_s, c=c: c.scaled(c.sample(t_s))  # type: ignore[misc]
    engines = task.card.engines
    short = names.split(source)[1] if "/" in source else source
    if short.upper() in {f"APFI{i}" for i in range(engines.model.n_apfi)}:
        pin = engines.terminal(short.upper())
        return lambda t_s: np.broadcast_to(np.asarray(pin.at(t_s), dtype=float), np.shape(t_s))
    raise task.error(errors.NO_SUCH_TERMINAL, Source_Terminal=source)


def _rises(state: Callable[[Times], Any], task: Task) -> Edges:
    """When a condition becomes true, looked for at least once a sample period."""
    step_s = 1.0 / task.rate_Hz

    def between(after_s: float, until_s: float) -> Times:
        grid: Times = np.append(np.arange(after_s, until_s, step_s), until_s)
        true = state(grid)
        return np.asarray(grid[1:][true[1:] & ~true[:-1]])

    return between


def _analog_edges(source: str, slope: int, level: float, task: Task) -> Edges:
    watched = _watched(source, task)
    sign = 1.0 if slope == Edge.RISING.value else -1.0
    return _rises(lambda t: sign * (watched(t) - level) > 0.0, task)


def _window_edges(trigger: Trigger, task: Task) -> Edges:
    watched = _watched(trigger.source, task)
    entering = trigger.edge == WindowTriggerCondition1.ENTERING_WINDOW.value

    def inside(t_s: Times) -> Any:
        value = watched(t_s)
        within = (value > trigger.bottom) & (value < trigger.level)
        return within if entering else ~within

    return _rises(inside, task)


def _pattern_edges(bench: Bench, trigger: Trigger, task: Task) -> Edges:
    """Lines against a pattern of 0, 1 and X; the first character is the last line."""
    lines: list[tuple[Card, str]] = []
    for physical in names.unflatten(trigger.source):
        device, rest = names.split(physical)
        card = bench.card(device)
        lines += [(card, line) for line in card.lines(card.check(rest, "di"))]
    pattern = trigger.pattern.upper().replace(" ", "")
    if len(pattern) != len(lines) or set(pattern) - set("01X"):
        raise task.error(errors.BAD_VALUE, Property="DigPattern.Pattern", Requested_Value=pattern)
    wanted = list(zip(reversed(pattern), lines, strict=True))
    matches = trigger.edge == DigitalPatternCondition.PATTERN_MATCHES.value

    def state(t_s: Times) -> Any:
        equal = np.ones(np.shape(t_s), dtype=bool)
        for symbol, (card, line) in wanted:
            if symbol != "X":
                equal &= np.broadcast_to(card.level(line, t_s), np.shape(t_s)) == float(symbol)
        return equal if matches else ~equal

    return _rises(state, task)


def _time_edge(bench: Bench, when: tuple[int, int]) -> Edges:
    lsb, msb = when
    at_s = msb - UNIX_1904_S + lsb * 2.0**-64 - bench.origin_unix_s

    def between(after_s: float, until_s: float) -> Times:
        return np.array([max(at_s, after_s)]) if at_s <= until_s else NONE

    return between


def in_order(running: list[Task]) -> list[Task]:
    """Tasks, those whose clocks, triggers and pulses others hear before those others."""
    ranks: dict[int, int] = {}

    def rank(task: Task) -> int:
        if task.handle not in ranks:
            ranks[task.handle] = 0  # a circle of triggers ends here
            heard = [t for t in running if t is not task and _hears(task, t)]
            ranks[task.handle] = 1 + max((rank(t) for t in heard), default=0)
        return ranks[task.handle]

    return sorted(running, key=rank)


def _hears(task: Task, other: Task) -> bool:
    """A clock or a trigger of a task comes from another one, by its terminal's name."""
    if not task.channels or not other.channels:
        return False
    device = other.card.engines.name.lower()
    sources = [task.timing.source, task.start_trigger.source, task.reference_trigger.source]
    sources += [str(v) for (_, key), v in task.properties.items() if key.endswith("_src")]
    made = [f"/{device}/{other.kind}/"]
    if other.kind == "di":
        made.append(f"/{device}/changedetectionevent")
    made += [
        terminal.lower()
        for (owner, key), value in other.properties.items()
        if owner == "exported_signal" and key.endswith("_output_term")
        for terminal in names.unflatten(str(value))
    ]
    if other.kind == "co":
        made += [f"/{device}/{c.short}internaloutput" for c in other.channels]
        made += [str(getattr(c, "terminal", str)()).lower() for c in other.channels]
    return any(
        task.qualified(source).lower().startswith(one) for source in sources for one in made if one
    )


# What a task's exported signals are, by the property that says where they go.
SIGNALS = {
    "samp_clk_output_term": "{kind}/SampleClock",
    "start_trig_output_term": "{kind}/StartTrigger",
    "ref_trig_output_term": "{kind}/ReferenceTrigger",
    "change_detect_event_output_term": "ChangeDetectionEvent",
    "ctr_out_event_output_term": "{counter}InternalOutput",
}


def export(task: Task) -> None:
    """Let the pins of a task's cards carry the signals that it exports."""
    counter = task.channels[0].short.capitalize() if task.channels else ""
    for (owner, key), value in task.properties.items():
        if owner != "exported_signal" or key not in SIGNALS:
            continue
        for terminal in names.unflatten(str(value)):
            device, pin = names.split(terminal)
            card = task.card.neighbours.get(device)
            if card is not None:
                signal = SIGNALS[key].format(kind=task.kind, counter=counter)
                card.owner_of(pin).exports[pin] = signal


def withdraw(task: Task) -> None:
    """Take the signals off the pins."""
    kinds = tuple(SIGNALS[k].format(kind=task.kind, counter="") for k in SIGNALS)
    for card in {one for first in task.cards for one in first.family}:
        exports = card.exports
        for pin in [p for p, signal in exports.items() if signal in kinds and task.kind != "co"]:
            del exports[pin]


def log(task: Task, after_s: float) -> None:
    """Note what a task gave in this step, for those who count it."""
    clocks = task.card.engines.clocks if task.channels else {}
    run = task.run
    if not clocks or run is None:
        return
    clock = clocks.get(f"{task.kind}/sampleclock")
    if clock is not None and len(run.fresh):
        clock.add(np.asarray(run.fresh))
    changes = task.timing.type == SampleTimingType.CHANGE_DETECTION.value
    clock = clocks.get("changedetectionevent")
    if clock is not None and changes and len(run.fresh):
        clock.add(np.asarray(run.fresh))
    triggers = {"starttrigger": task.started_s, "referencetrigger": task.reference_trigger.at_s}
    for name, at_s in triggers.items():
        clock = clocks.get(f"{task.kind}/{name}")
        if clock is None or at_s is None or at_s < after_s:
            continue
        if clock.count(at_s) == clock.count(at_s - JUST_BEFORE_S):  # not noted yet
            clock.add(np.array([at_s]))
