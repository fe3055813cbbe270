"""The whole: cards, tasks, one clock. Nothing here knows how a program talks to it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from hil.devices.simdaq import catalog, errors, names, routes, watchdog
from hil.devices.simdaq.acquisition import InputRun
from hil.devices.simdaq.card import Card
from hil.devices.simdaq.channels import is_infinite
from hil.devices.simdaq.errors import DaqmxError
from hil.devices.simdaq.outputs import OutputRun
from hil.devices.simdaq.pulse_outputs import PulseRun
from hil.devices.simdaq.scales import Scales
from hil.devices.simdaq.task import RUNNING, UNVERIFIED, Event, Run, Task
from hil.devices.simdaq.terminals import Fault, Output, Source
from hil.devices.simdaq.timing import NONE
from hil.devices.simdaq.watchdog import WatchdogRun
from hil.errors import ConfigError

LOOK_S = 1e-3  # how often a wait looks again where nobody knows when something will come
PATIENCE_S = 3600.0  # of a wait without timeout on a clock that runs only while one waits
SOFTWARE_TIMED = Run()


class System:
    """Simulated cards and the tasks on them.

    Parameters
    ----------
    pace : how time goes on
        "held": only by `advance_to`, and a call that would have to wait times out at once;
        "free": by itself while a call waits, in no time, and by `advance_to`;
        a function: it tells the time in s, as a wall clock does.
    """

    def __init__(self, pace: str | Callable[[], float] = "held") -> None:
        self.cards: dict[str, Card] = {}
        self.tasks: dict[int, Task] = {}
        self.scales = Scales()
        self.lock = threading.RLock()
        self._changed = threading.Condition(self.lock)
        self._pace = pace if isinstance(pace, str) else "wall"
        self._wall_s = pace if callable(pace) else None
        self._reserved: dict[tuple[str, str], Task] = {}
        self._next_handle = 1
        self._due: list[tuple[Event, tuple[Any, ...]]] = []
        self._dispatcher: threading.Thread | None = None
        self.n_transitions = 0  # of all tasks from state to state
        self.now_s = 0.0
        self.origin_unix_s = 0.0  # what time it was in the world when the system's was 0
        self.last_created = ""  # names of the channels that the last call has created

    # The bench: cards, signals, faults

    def add(self, model: str, name: str, *, serial: int = 0, chassis: str | None = None) -> Card:
        """Plug a card in; a module needs its chassis' name.

        Raises
        ------
        ConfigError
            The model is not known, or the name is taken.
        """
        if name in self.cards:
            raise ConfigError(f"card {name!r}: there is already one of this name")
        if chassis is not None and chassis not in self.cards:
            raise ConfigError(f"card {name!r}: there is no chassis {chassis!r}")
        place = None if chassis is None else self.cards[chassis]
        card = Card(name, catalog.model(model), serial or 0x1A00000 + len(self.cards), place)
        self.cards[name] = card
        return card

    def feed(self, terminal: str, source: Source) -> None:
        """Wire a signal to an input.

        A number, or a function of time in s that takes a float or an array. `Dev1/ai0`: volts
        (V/V where a bridge sits there, the sensor's own unit for other sensors); `Dev1/ctr0`: an
        encoder's angle in revolutions; `Dev1/port0/line0`: a level, high above 0.5; `Dev1/PFI0`,
        `Dev1/ctr0`: `Pulses`.
        """
        card, short = self._terminal(terminal)
        with self.lock:
            found = card.terminal(short)
            found.source, found.fed = source, True

    def output(self, terminal: str) -> float:
        """What an output puts out now: volts of `Dev1/ao0`, 0 or 1 of `Dev1/port0/line0`."""
        card, short = self._terminal(terminal)
        with self.lock:
            return card.output(short).at(self.now_s)

    def watch(self, terminal: str) -> Output:
        """Record every change of an output: `changes` of the answer, a list of (t_s, value)."""
        card, short = self._terminal(terminal)
        found = card.output(short)
        found.watched = True
        return found

    def inject(self, terminal: str, fault: Fault | None) -> None:
        """Break an input: `stuck` at its value now, `high rail`, `low rail`; None mends it."""
        card, short = self._terminal(terminal)
        found = card.terminal(short)
        with self.lock:
            found.fault = None
            found.frozen = float(found.at(self.now_s))
            found.fault = fault

    def unplug(self, card: str) -> None:
        """Pull a card's cable: every task on it fails from now on, its outputs are gone."""
        with self.lock:
            self.cards[card].plugged = False
            self._changed.notify_all()

    def plug(self, card: str) -> None:
        """Put it back: it comes up as after power-on, all outputs at 0."""
        with self.lock:
            self._power_up(self.cards[card])
            self.cards[card].plugged = True

    def stall(self, card: str, *, stalled: bool = True) -> None:
        """Make a card deliver no samples, as when a bus hangs."""
        self.cards[card].stalled = stalled

    def deliver_every(self, card: str, seconds: float) -> None:
        """Make a card hand its samples over in packets, as on USB or Ethernet."""
        self.cards[card].transfer_s = seconds

    def _power_up(self, card: Card) -> None:
        card.expired = False
        for output in card.outputs.values():
            output.put(self.now_s, 0.0)
        for task in list(self.tasks.values()):
            if card in task.cards:
                task.stop()
                task.release(UNVERIFIED)

    def _terminal(self, terminal: str) -> tuple[Card, str]:
        device, short = names.split(terminal)
        if device not in self.cards or not short:
            raise ConfigError(f"{terminal!r}: there is no such terminal")
        return self.cards[device], short.removeprefix("_")

    def card(self, name: str) -> Card:
        """The card of this name, or DaqmxError."""
        found = self.cards.get(name)
        if found is None:
            raise DaqmxError(errors.INVALID_DEVICE, Device_Specified=name)
        return found

    # Time

    def advance_to(self, t_s: float) -> None:
        """Let the time come to t_s: samples are taken, outputs put out, callbacks called.

        A callback runs at the very time of its event; time does not run backwards.
        """
        while True:
            with self.lock:
                event_s = self._next_event_s()
                stop_s = t_s if event_s is None else min(max(event_s, self.now_s), t_s)
                self._step_to(stop_s)
                due, self._due = self._due, []
            for event, arguments in due:
                event.call(*arguments)
            if self.now_s >= t_s and not due:
                return

    def step(self) -> None:
        """Do what is due at this very moment, such as the first sample of a task."""
        self._step_to(self.now_s)

    def catch_up(self) -> None:
        """On a wall clock, come to the present."""
        if self._wall_s is not None:
            self._step_to(max(self._wall_s(), self.now_s))

    def _step_to(self, t_s: float) -> None:
        after_s, self.now_s = self.now_s, max(t_s, self.now_s)
        running = [t for t in self.tasks.values() if t.state == RUNNING and t.run is not None]
        # Those whose clock others share come first.
        running.sort(key=lambda t: not routes.is_internal(t.timing.source, t))
        for task in running:
            assert task.run is not None
            task.run.step(after_s, self.now_s)
            self._tell(task)
        for task in running:
            if task.run is not None:
                task.run.fresh = NONE
        if self._due and self._wall_s is not None:
            self._changed.notify_all()

    def _tell(self, task: Task) -> None:
        run, event = task.run, task.events.get("every_n")
        assert run is not None
        if event is not None:
            while run.total - event.seen >= event.n:
                event.seen += event.n
                self._due.append((event, (event.n,)))
        event = task.events.get("done")
        if event is not None and run.done and not task.done_told:
            task.done_told = True
            code = 0 if task.pending is None else task.pending.code
            self._due.append((event, (code,)))
        event = task.events.get("signal")
        if event is not None:
            self._due += [(event, ())] * len(run.fresh)

    def _next_event_s(self) -> float | None:
        soonest: float | None = None
        for task in self.tasks.values():
            if task.state != RUNNING or task.run is None:
                continue
            if self.now_s < task.run.deadline_s < (soonest or np.inf):
                soonest = task.run.deadline_s
            if not task.events:
                continue
            event = task.events.get("every_n")
            more = [1] if "signal" in task.events else []
            if event is not None:
                more.append(event.n - (task.run.total - event.seen))
            if "done" in task.events and np.isfinite(task.run.planned):
                more.append(int(task.run.planned) - task.run.total)
            for n in more:
                when_s = task.run.when(max(n, 1)) if not task.run.done else None
                if when_s is not None and (soonest is None or when_s < soonest):
                    soonest = when_s
        return soonest

    def wait(
        self,
        ready: Callable[[], bool],
        when: Callable[[], float | None],
        timeout_s: float,
    ) -> bool:
        """Wait, as this system's time allows, until ready; False: the timeout came first."""
        if ready():
            return True
        if self._pace == "held":
            return False
        patience_s = PATIENCE_S if self._pace == "free" else np.inf
        deadline_s = self.now_s + (patience_s if is_infinite(timeout_s) else timeout_s)
        while not ready():
            if self.now_s >= deadline_s:
                return False
            known_s = when()
            # What was due and has not come is looked for like what nobody knows of.
            look_s = known_s if known_s and known_s > self.now_s else self.now_s + LOOK_S
            self._pass_time(min(look_s, deadline_s))
        return True

    def _pass_time(self, until_s: float) -> None:
        if self._wall_s is None:
            self.advance_to(until_s)
            return
        self._changed.wait(max(until_s - self._wall_s(), 1e-5))
        self.catch_up()

    def listen(self, task: Task, kind: str, event: Event | None) -> None:
        """Call back on an event of a task; None ends that."""
        if event is None:
            task.events.pop(kind, None)
            return
        task.events[kind] = event
        if self._wall_s is not None and self._dispatcher is None:
            self._dispatcher = threading.Thread(
                target=self._dispatch, name="simulated NI-DAQmx events", daemon=True
            )
            self._dispatcher.start()

    def _dispatch(self) -> None:
        """On a wall clock: call callbacks when they are due, from a thread of their own."""
        assert self._wall_s is not None
        while True:
            with self.lock:
                self.catch_up()
                due, self._due = self._due, []
                if not due:
                    event_s = self._next_event_s()
                    pause_s = 10 * LOOK_S if event_s is None else event_s - self.now_s
                    self._changed.wait(min(max(pause_s, 1e-4), 10 * LOOK_S))
            for event, arguments in due:
                event.call(*arguments)

    # Tasks

    def create(self, name: str) -> Task:
        """A new task."""
        if any(t.name == name for t in self.tasks.values()) and name:
            raise DaqmxError(errors.DUPLICATE_TASK, Task_Name=name)
        handle = self._next_handle
        self._next_handle += 1
        task = Task(self, handle, name or f"_unnamedTask<{handle - 1}>")
        self.tasks[handle] = task
        return task

    def task(self, handle: int) -> Task:
        """The task behind a handle, or DaqmxError."""
        found = self.tasks.get(handle)
        if found is None:
            raise DaqmxError(errors.INVALID_TASK)
        return found

    def clear(self, task: Task) -> None:
        """Stop a task and forget it; its outputs stay as they are."""
        task.stop()
        self.release(task)
        self.tasks.pop(task.handle, None)

    def must_be_free(self, task: Task) -> None:
        """Raise DaqmxError where another task holds what this one needs.

        The watchdog of a chassis needs all of it, while it starts (NI, cDAQ-9185/9189 User Manual,
        "Watchdog Timer").
        """
        if task.kind == "watchdog" and task.device is not None and task.device.is_chassis:
            names = {card.name for card in task.device.family}
            for (card_name, _), other in self._reserved.items():
                if card_name in names and other is not task:
                    raise task.error(
                        errors.WATCHDOG_NOT_FIRST, Device=card_name, Held_by_Task=other.name
                    )
        for card, resource in task.resources():
            holder = self._reserved.get((card.name, resource))
            if holder is not None and holder is not task:
                raise task.error(
                    errors.RESERVED, Device=card.name, Resource=resource,
                    Held_by_Task=holder.name,
                )  # fmt: skip

    def reserve(self, task: Task) -> None:
        """Give a task what it needs, all or nothing."""
        self.must_be_free(task)
        for card, resource in task.resources():
            self._reserved[card.name, resource] = task

    def release(self, task: Task) -> None:
        for key in [k for k, holder in self._reserved.items() if holder is task]:
            del self._reserved[key]

    def make_run(self, task: Task) -> Run:
        """What starts when the task starts."""
        if task.kind == "co":
            return PulseRun(task)
        if task.kind == "watchdog":
            return WatchdogRun(task)
        if task.timing.on_demand:
            for channel in task.channels:
                channel.begin(self.now_s)
            return SOFTWARE_TIMED
        return OutputRun(task) if task.kind in ("ao", "do") else InputRun(task)

    def has_expired(self, card: Card, kind: str) -> bool:
        """A watchdog holds these outputs in their safe states."""
        return watchdog.holds(self, card, kind)
