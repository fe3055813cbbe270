"""What a card switches and drives, and the watchdog that does without the program."""

import contextlib
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from hil.devices.nidaq.channels import AnalogInput, CardPlan
from hil.devices.nidaq.errors import describe
from hil.devices.nidaq.tasks import close_all
from hil.devices.nidaq.watchdog import Watchdogs
from hil.devices.nidaq.writers import AnalogWriter, LineWriter
from hil.errors import DeviceError
from hil.loop.stages import Message

FEEDS = 4  # of the watchdog within its time


class Outputs:
    """Enable lines, shunt lines, actuators' outputs and watchdog of one card.

    Attributes
    ----------
    enabled : bool
        The enable lines are high.
    started : bool
        The watchdog runs, where there is one, and what is switched off is known to be.
    """

    def __init__(self, name: str, plan: CardPlan) -> None:
        self._name, self._plan = name, plan
        self._watchdogs = Watchdogs(name, plan)
        self._fed_s = -np.inf
        self._lines: LineWriter | None = None
        self._analog: AnalogWriter | None = None
        self.enabled = self.started = False

    def check(self) -> None:
        """Refuse a card without the watchdog that the rig requires."""
        self._watchdogs.refuse_missing()

    def watch(self) -> list[Message]:
        """Start the watchdogs, before any other task; what is to be said about them."""
        return self._watchdogs.start()

    def start(self) -> list[Message]:
        """Watchdogs first, then the outputs at rest; what is to be said about the watchdogs."""
        plan, messages = self._plan, self.watch()
        if plan.lines_out:
            self._lines = LineWriter([plan.physical(line.terminal) for line in plan.lines_out])
            self._lines.set_all(False)
        if plan.outputs:
            self._analog = AnalogWriter(plan, plan.outputs)
            self._analog.rest()
        self.reset_watchdog()
        self.started = True
        return messages

    def put(self, values: NDArray[np.float64]) -> None:
        """Actuators' values, in their own units."""
        if self._analog is not None:
            self._analog.put(values)

    def enable(self, on: bool) -> None:
        """Enable lines high or low; they go high only behind a watchdog that has been started."""
        if self._lines is not None and on != self.enabled:
            self.enabled = True  # until they are known to be low
            self._lines.set_all(on)
            self.enabled = on

    def feed_watchdog(self, t_s: float) -> None:
        """In the run: some times within the watchdog's own."""
        if t_s - self._fed_s >= self._plan.watchdog_s / FEEDS:
            self.reset_watchdog()
            self._fed_s = t_s

    def reset_watchdog(self) -> None:
        """The program lives."""
        self._watchdogs.reset()

    @contextlib.contextmanager
    def shunt(self, channel: AnalogInput) -> Iterator[None]:
        """The conditioner's shunt closed within the block."""
        line = LineWriter([self._plan.physical(channel.shunt_line)])
        try:
            line.set_all(True)
            yield
        finally:
            try:
                line.set_all(False)
            finally:
                line.task.close()

    def safe(self) -> None:
        """Enables low, outputs at rest, tasks closed; whatever fails, the other has its turn.

        Raises
        ------
        DeviceError
            Naming what could not be switched off.
        """
        from nidaqmx.errors import DaqError

        failures = []
        actions: list[Callable[[], None]] = []
        if self._lines is not None:
            actions.append(lambda: self._lines.set_all(False))  # type: ignore[union-attr]
        if self._analog is not None:
            actions.append(self._analog.rest)
        for action in actions:
            try:
                action()
            except DaqError as error:
                failures.append(describe(self._name, error, "cannot be switched off"))
        self.enabled = False
        if failures:
            raise DeviceError("; ".join(failures))
        self.close()  # a watchdog that runs on would expire, and a chassis wait for its reset

    def close(self) -> None:
        """Close the tasks; the watchdogs last."""
        writers = [w for w in (self._lines, self._analog) if w is not None]
        close_all([w.task for w in writers])
        self._lines = self._analog = None
        self.started = False
        self._watchdogs.close()
