"""Outputs of a card: lines for cells and power, analogue outputs, and their watchdog."""

import contextlib
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from hil.devices.nidaq.channels import AnalogInput, CardPlan
from hil.devices.nidaq.errors import EXPIRED, describe
from hil.devices.nidaq.tasks import close_all
from hil.devices.nidaq.watchdog import Watchdogs
from hil.devices.nidaq.writers import AnalogWriter, LineWriter
from hil.errors import DeviceError
from hil.loop.stages import Message

FEEDS = 4  # feeds of the watchdog within its timeout


class Outputs:
    """Enable lines, lines of cells, shunt lines, actuators' outputs and watchdog of one card.

    Attributes
    ----------
    enabled : whether the enable lines are high, or not known to be low
    started : whether the watchdog, if any, is running and the outputs have been switched off
    expired : whether a watchdog was found expired: it holds the outputs in their safe states
    failed : whether an output could not be switched off since they were started
    """

    def __init__(self, name: str, plan: CardPlan) -> None:
        self._name, self._plan = name, plan
        self._watchdogs = Watchdogs(name, plan)
        self._fed_s = -np.inf
        self._lines: LineWriter | None = None
        self._cells: LineWriter | None = None
        self._analog: AnalogWriter | None = None
        self.enabled = self.started = self.expired = self.failed = False

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Outputs that an expired watchdog holds are off: no error then, but `expired`."""
        from nidaqmx.errors import DaqError

        try:
            yield
        except DaqError as error:
            if error.error_code not in EXPIRED:
                raise
            self.expired = True

    def check(self) -> None:
        """Refuse a card without the watchdog that the rig requires."""
        self._watchdogs.refuse_missing()

    def watch(self) -> list[Message]:
        """Start the watchdogs before any other task; returns messages about them."""
        return self._watchdogs.start()

    def start(self) -> list[Message]:
        """Start the watchdogs, then the outputs at their idle values; returns messages."""
        plan, messages = self._plan, self.watch()
        self.failed = False
        if plan.cells:  # low before an enable line can be high
            self._cells = LineWriter([plan.physical(line.terminal) for line in plan.cells])
            self._cells.set_all(False)
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
        """Set the actuators' values, in their own units."""
        if self._analog is not None:
            self._analog.put(values)

    def switch(self, levels: NDArray[np.uint8]) -> None:
        """Set the lines of the cells."""
        if self._cells is not None:
            self._cells.put(levels)

    @property
    def watchdogs(self) -> Watchdogs:
        """The watchdogs, for their proof before a run."""
        return self._watchdogs

    def enable(self, on: bool) -> None:
        """Set the enable lines; their task exists only after the watchdog has been started."""
        if self._lines is not None and on != self.enabled:
            self.enabled = True  # until the write confirms that they are low
            self._lines.set_all(on)
            self.enabled = on

    def feed_watchdog(self, t_s: float) -> None:
        """Feed the watchdog in the run, FEEDS times within its timeout."""
        if t_s - self._fed_s >= self._plan.watchdog_s / FEEDS:
            self.reset_watchdog()
            self._fed_s = t_s

    def reset_watchdog(self) -> None:
        """Feed the watchdog now."""
        self._watchdogs.reset()

    @contextlib.contextmanager
    def shunt(self, channel: AnalogInput) -> Iterator[None]:
        """Close the conditioner's shunt within the block."""
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
        """Set enable lines, then cells low and outputs idle, even if one fails; close the tasks.

        Raises
        ------
        DeviceError
            An output could not be switched off.
        """
        from nidaqmx.errors import DaqError

        failures = []
        actions: list[Callable[[], None]] = []
        if self._lines is not None:
            actions.append(lambda: self._lines.set_all(False))  # type: ignore[union-attr]
        if self._cells is not None:
            actions.append(lambda: self._cells.set_all(False))  # type: ignore[union-attr]
        if self._analog is not None:
            actions.append(self._analog.rest)
        for action in actions:
            try:
                with self.held():
                    action()
            except DaqError as error:
                failures.append(describe(self._name, error, "cannot be switched off"))
        self.enabled = False
        if failures:
            self.failed = True
            remedy = f"its watchdog does it within {self._plan.watchdog_s:g} s"
            if not self._watchdogs.running:
                remedy = "SWITCH THE CELLS' SUPPLY OFF BY HAND"
            raise DeviceError(f"{'; '.join(failures)}: {remedy}")
        self.close()  # a running watchdog would expire, and its chassis would then need a reset

    def close(self) -> None:
        """Close the tasks; the watchdogs last."""
        writers = [w for w in (self._lines, self._cells, self._analog) if w is not None]
        close_all([w.task for w in writers])
        self._lines = self._cells = self._analog = None
        self.started = False
        self._watchdogs.close()
