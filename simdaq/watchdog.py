"""Watchdog tasks: outputs that go into their safe states when nobody resets the timer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from nidaqmx.constants import Level

from simdaq import errors, names
from simdaq.bench import Bench
from simdaq.defaults import default
from simdaq.run import Run
from simdaq.task import RESERVED, RUNNING, UNVERIFIED, Task

LEVELS = {Level.HIGH.value: 1.0, Level.LOW.value: 0.0, Level.TRISTATE.value: 0.0}
VOLTAGE = 10322


class WatchdogRun(Run):
    """A running timer.

    Attributes
    ----------
    deadline_s : float
        When it expires.
    """

    def __init__(self, bench: Bench, task: Task) -> None:
        self._bench = bench
        self.task = task
        self.expired = False
        self.reset()

    def reset(self) -> None:
        """Restart the timeout."""
        timeout_s = float(get(self.task, "", "timeout"))
        self.deadline_s = math.inf if timeout_s < 0.0 else self._bench.now_s + timeout_s

    def step(self, after_s: float, until_s: float) -> None:
        if self.expired or until_s < self.deadline_s:
            return
        self.expired = True
        if self.task.device is not None and self.task.device.is_chassis:
            self.task.device.expired = True
        for (kind, physical), state in states(self.task).items():
            device, rest = names.split(physical)
            card = self._bench.cards[device]
            if kind == "do" and state in LEVELS:
                for line in card.lines(rest):
                    card.output(line).put(self.deadline_s, LEVELS[int(state)])
            elif kind == "ao" and state is not None:
                card.output(rest).put(self.deadline_s, float(state))
            elif kind == "co" and state in LEVELS:
                card.output(rest.removeprefix("_")).put(self.deadline_s, LEVELS[int(state)])


def states(task: Task) -> dict[tuple[str, str], Any]:
    """Safe states by kind of output and physical channel."""
    values: dict[tuple[str, str], Any] = task.properties.setdefault(("watchdog", "states"), {})
    return values


def held_since_s(bench: Bench, card: object, kind: str) -> float:
    """When a watchdog took, or will take, this kind of output of a card; infinity: none does."""
    since_s = math.inf
    for task in bench.tasks.values():
        run = task.run
        if task.state != RUNNING or not isinstance(run, WatchdogRun):
            continue
        if any(
            of == kind and bench.cards[names.split(physical)[0]] is card
            for of, physical in states(task)
        ):
            since_s = min(since_s, run.deadline_s)
    return since_s


def configure(
    bench: Bench, task: int, kind: str, channel_names: str, values: Sequence[Any]
) -> None:
    """Set safe states of outputs of one kind."""
    owner = bench.task(task)
    if owner.state == RUNNING:
        raise owner.error(errors.PROPERTY_WHILE_RUNNING, Property="Watchdog.ExpirStates")
    physicals = names.unflatten(channel_names)
    levels = list(values)
    if len(levels) == 1:
        levels *= len(physicals)
    for physical, value in zip(physicals, levels, strict=True):
        device, rest = names.split(physical)
        card = bench.card(device)
        card.check(rest, kind)
        watched = owner.device
        if watched is None or card.engines is not watched.engines:
            raise owner.error(errors.BAD_VALUE, Physical_Channel_Name=physical)
        if kind not in watched.model.watchdog:
            raise owner.error(
                errors.NO_WATCHDOG, "Its watchdog does not reach this kind of output.",
                Physical_Channel_Name=physical,
            )  # fmt: skip
        states(owner)[kind, physical] = value
    bench.release(owner, UNVERIFIED)


def get(task: Task, lines: str, key: str) -> Any:
    """A property of a watchdog."""
    run = task.run
    if key == "expired":
        if task.state < RESERVED:
            raise task.error(errors.NOT_RUNNING)
        return isinstance(run, WatchdogRun) and run.expired
    kind = {"do_state": "do", "co_state": "co", "ao_state": "ao"}.get(key)
    if kind is not None:
        value = states(task).get((kind, names.unflatten(lines)[0]))
        return Level.NO_CHANGE.value if value is None else value
    if key == "ao_output_type":
        return VOLTAGE
    return task.properties.get(("watchdog", key), default("watchdog", key)[1])


def reset(task: Task, key: str) -> None:
    """Return a property of a watchdog to its default."""
    if task.state == RUNNING:
        raise task.error(errors.PROPERTY_WHILE_RUNNING, Property=key)
    task.properties.pop(("watchdog", key), None)


def put(bench: Bench, task: Task, lines: str, key: str, value: Any) -> None:
    """Set a property of a watchdog."""
    kind = {"do_state": "do", "co_state": "co", "ao_state": "ao"}.get(key)
    if kind is not None:
        configure(bench, task.handle, kind, lines, [value])
        return
    if task.state == RUNNING:
        raise task.error(errors.PROPERTY_WHILE_RUNNING, Property=key)
    task.properties["watchdog", key] = value
