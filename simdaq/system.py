"""Simulated cards in time, independent of how a program reaches them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from simdaq import counters, errors, routes
from simdaq.acquisition import InputRun
from simdaq.bench import Bench
from simdaq.channels import is_infinite
from simdaq.counters import CounterRun
from simdaq.errors import DaqmxError
from simdaq.generation import OutputRun
from simdaq.pulse_outputs import PulseRun
from simdaq.run import Event, Run, SoftwareTimed
from simdaq.task import RUNNING, Task
from simdaq.timing import NONE
from simdaq.watchdog import WatchdogRun

LOOK_S = 1e-3  # how often a wait looks again where nobody knows when something will come
PATIENCE_S = 3600.0  # of a wait without timeout on a clock that runs only while one waits
STEP_S = 0.05  # longest step on wall time: bounds the memory of a step after a pause
SOFTWARE_TIMED = SoftwareTimed()


@dataclass
class Plant:
    """A simulation that moves in steps of its own.

    Attributes
    ----------
    step : brings it to a time, in s
    next_s : float
        End of its next step.
    """

    step_s: float
    step: Callable[[float], None]
    next_s: float = 0.0


def _already_registered(task: Task, kind: str) -> int:
    if kind == "every_n":
        return errors.EVERY_N_REGISTERED[task.is_input]
    return {"done": errors.DONE_REGISTERED, "signal": errors.SIGNAL_REGISTERED}[kind]


class System(Bench):
    """Simulated cards and the tasks on them, in time.

    Parameters
    ----------
    pace : how time goes on
        "held": only by `advance_to`, and a call that would have to wait times out at once;
        "free": by itself while a call waits, in no time, and by `advance_to`;
        a function: it tells the time in s, as a wall clock does.
    """

    def __init__(self, pace: str | Callable[[], float] = "held") -> None:
        super().__init__()
        self._pace = pace if isinstance(pace, str) else "wall"
        self._wall_s = pace if callable(pace) else None
        self._due: list[tuple[Event, tuple[Any, ...]]] = []
        self._dispatcher: threading.Thread | None = None
        self._plants: list[Plant] = []
        self._order: list[Task] = []
        self._order_of: tuple[tuple[int, int], ...] = ()

    def couple(self, plant: Plant) -> None:
        """Step a plant as time passes, its outputs and inputs at the end of every step."""
        self._plants.append(plant)

    # Time

    def advance_to(self, t_s: float) -> None:
        """Advance time to t_s: take samples, update outputs, call callbacks.

        A callback runs at the very time of its event; time does not run backwards.
        """
        while True:
            with self.lock:
                event_s = self._next_event_s()
                stop_s = t_s if event_s is None else min(max(event_s, self.now_s), t_s)
                self._step_to(stop_s)
                due, self._due = self._due, []
            for event, arguments in due:
                self._call(event, arguments)
            if self.now_s >= t_s and not due:
                return

    def catch_up(self, within_s: float = 0.0) -> None:
        """Advance to the present, on wall time, or to within so many seconds of it."""
        if self._wall_s is None:
            return
        present_s = self._wall_s()
        if present_s - self.now_s < within_s:
            return
        while any(t.state == RUNNING for t in self.tasks.values()) and (
            present_s - self.now_s > STEP_S
        ):
            self._step_to(self.now_s + STEP_S)
        self._step_to(present_s)

    def _step_to(self, t_s: float) -> None:
        for plant in self._plants:
            while plant.next_s <= t_s:
                until_s = plant.next_s
                plant.step(until_s)
                plant.next_s = until_s + plant.step_s
                self._run_to(until_s)
        self._run_to(t_s)

    def _run_to(self, t_s: float) -> None:
        after_s, self.now_s = self.now_s, max(t_s, self.now_s)
        running = self._in_order()
        for task in running:
            assert task.run is not None
            task.run.take(after_s, self.now_s)
            routes.log(task, after_s)
        # Outputs come before their watchdog, and before the inputs that may read them.
        for task in sorted(running, key=lambda t: (t.is_input, t.kind == "watchdog")):
            assert task.run is not None
            task.run.step(after_s, self.now_s)
            self._tell(task)
        for task in running:
            if task.run is not None:
                task.run.fresh = NONE
        if self._due and self._wall_s is not None:
            self._changed.notify_all()

    def _in_order(self) -> list[Task]:
        """Tasks that run, those whose clocks and triggers others share before those."""
        running = [t for t in self.tasks.values() if t.state == RUNNING and t.run is not None]
        key = tuple((t.handle, t.n_transitions) for t in running)
        if key != self._order_of:
            self._order_of, self._order = key, routes.in_order(running)
        return self._order

    def _tell(self, task: Task) -> None:
        run, event = task.run, task.events.get("every_n")
        assert run is not None
        if event is not None:
            while run.total - event.seen >= event.n:
                event.seen += event.n
                self._due.append((event, (event.n,)))
        event = task.events.get("done")
        over = run.done and not isinstance(run, SoftwareTimed)
        if event is not None and over and not task.done_told:
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
        """Register a callback for an event of a task; None unregisters it.

        Unregistering blocks while another thread runs the callback, so that the program can free
        what the callback uses.

        Raises
        ------
        DaqmxError
            The task runs, or a callback is registered already.
        """
        if event is None:
            earlier_event = task.events.pop(kind, None)
            if earlier_event is not None:
                self._unregister(earlier_event)
            return
        if task.state == RUNNING:
            raise task.error(errors.REGISTER_WHILE_RUNNING)
        if kind in task.events:
            raise task.error(_already_registered(task, kind))
        if kind == "every_n" and event.n < 1:
            raise task.error(errors.EVERY_N_ZERO)
        if kind == "every_n" and task.kind and event.acquired != task.is_input:
            raise task.error(errors.EVERY_N_WRONG_DIRECTION[task.is_input])
        task.events[kind] = event
        if self._wall_s is not None and self._dispatcher is None:
            self._dispatcher = threading.Thread(
                target=self._dispatch, name="simulated NI-DAQmx events", daemon=True
            )
            self._dispatcher.start()

    def stop(self, task: Task) -> None:
        # What a task has finished is still told, as NI's driver does from a thread of its own.
        events = [event for kind, event in task.events.items() if kind != "done"]
        self._due = [call for call in self._due if call[0] not in events]
        super().stop(task)
        with self.lock:
            self._changed.notify_all()  # a read of another thread waits no longer

    def clear(self, task: Task) -> None:
        for kind in list(task.events):
            self.listen(task, kind, None)
        routes.withdraw(task)
        super().clear(task)

    def _unregister(self, event: Event) -> None:
        """Drop the calls that are due, and wait for the one under way in another thread."""
        event.registered = False
        while event.thread not in (None, threading.get_ident()):
            self._changed.wait()

    def _call(self, event: Event, arguments: tuple[Any, ...]) -> None:
        """Run a callback outside the lock, unless the program has unregistered it meanwhile."""
        with self.lock:
            if not event.registered:
                return
            event.thread = threading.get_ident()
        try:
            event.call(*arguments)
        finally:
            with self.lock:
                event.thread = None
                self._changed.notify_all()

    def _dispatch(self) -> None:
        """Run callbacks when they are due on wall time, from a thread of their own."""
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
                self._call(event, arguments)

    # Starting

    def start(self, task: Task, *, implicit: bool = False) -> None:
        """Start a task; starting one that runs is an error, unless a read or a write does it."""
        if task.state == RUNNING:
            if implicit:
                return
            raise task.error(errors.RUNNING)
        for card in task.cards:
            card.must_work()
        self.commit(task)
        task.implicit = implicit
        task.pending = None
        task.done_told = False
        for event in task.events.values():
            event.seen = 0
        task.start_trigger.at_s = task.reference_trigger.at_s = None
        try:
            task.run = self._make_run(task)
        except DaqmxError:
            self._return_to_asked(task)
            raise
        task.state = RUNNING
        self._step_to(self.now_s)  # what is due at this very moment, such as the first sample

    def _make_run(self, task: Task) -> Run:
        if task.kind == "ci":
            counters.prepare(task)
        if task.kind == "co":
            return PulseRun(self, task)
        if task.kind == "watchdog":
            return WatchdogRun(self, task)
        if task.timing.on_demand:
            for channel in task.channels:
                channel.begin(self.now_s)
            armed = routes.arm_start(self, task) if task.kind == "ci" else None
            return CounterRun(task, armed) if task.kind == "ci" else SOFTWARE_TIMED
        return OutputRun(self, task) if task.kind in ("ao", "do") else InputRun(self, task)
