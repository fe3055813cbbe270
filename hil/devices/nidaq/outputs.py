"""What a card switches and drives, and the watchdog that does without the program."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hil.devices.device import Remark
from hil.devices.nidaq.channels import AnalogInput, CardPlan
from hil.devices.nidaq.errors import describe
from hil.devices.nidaq.tasks import close_all
from hil.devices.nidaq.writers import AnalogWriter, LineWriter
from hil.errors import DeviceError

UNWATCHED = "outputs stay as they are if the program is killed"
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
        self._watchdog: Any = None
        self._fed_s = -np.inf
        self._lines: LineWriter | None = None
        self._analog: AnalogWriter | None = None
        self.enabled = self.started = False

    def start(self) -> list[Remark]:
        """Watchdog first, then the outputs at rest; what is to be said about the watchdog."""
        plan, remarks = self._plan, self._start_watchdog()
        if plan.lines_out:
            self._lines = LineWriter([plan.physical(line.terminal) for line in plan.lines_out])
            self._lines.set_all(False)
        if plan.outputs:
            self._analog = AnalogWriter(plan, plan.outputs)
            self._analog.rest()
        self.reset_watchdog()
        self.started = True
        return remarks

    def _start_watchdog(self) -> list[Remark]:
        from nidaqmx.errors import DaqError

        plan = self._plan
        if not plan.lines_out and not plan.outputs:
            return []
        if plan.watchdog == "off":
            return [Remark("warning", f"watchdog off: {UNWATCHED}")]
        try:
            return self._watch()
        except DaqError as error:
            self._drop_watchdog()
            why = describe(self._name, error, "watchdog")
            if plan.watchdog == "required":
                raise DeviceError(f"{why}: take another card, or 'if_present'") from None
            return [Remark("warning", f"no watchdog, {UNWATCHED}: {why}")]

    def _watch(self) -> list[Remark]:
        from nidaqmx.constants import Level, WatchdogAOExpirState
        from nidaqmx.errors import DaqError
        from nidaqmx.system.watchdog import WatchdogTask
        from nidaqmx.types import AOExpirationState, DOExpirationState

        plan = self._plan
        terminals = [x.terminal for x in plan.lines_out] + [x.terminal for x in plan.outputs]
        device = plan.physical(terminals[0]).split("/")[0]
        self._watchdog = dog = WatchdogTask(device, timeout=plan.watchdog_s)
        remarks, covered = [], []
        if plan.lines_out:
            low = [DOExpirationState(plan.physical(x.terminal), Level.LOW) for x in plan.lines_out]
            dog.cfg_watchdog_do_expir_states(low)
            covered.append("enable lines low")
        if plan.outputs:
            rest = [
                AOExpirationState(
                    plan.physical(x.terminal), x.rest / x.units_per_V, WatchdogAOExpirState.VOLTAGE
                )
                for x in plan.outputs
            ]
            try:
                dog.cfg_watchdog_ao_expir_states(rest)
                covered.append("analogue outputs at rest")
            except DaqError as error:
                if not covered:
                    raise
                why = describe(self._name, error)
                remarks.append(
                    Remark("warning", f"the watchdog does not cover analogue outputs: {why}")
                )
        dog.start()
        if dog.expired:
            dog.clear_expiration()
            remarks.append(Remark("warning", "the watchdog had expired in an earlier run: cleared"))
        text = f"watchdog: {', '.join(covered)} after {plan.watchdog_s:g} s without the program"
        return [Remark("info", text), *remarks]

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
        if self._watchdog is not None:
            self._watchdog.reset_timer()

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
        """Enables low, outputs to 0 V; whatever fails, the other has its turn.

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

    def close(self) -> None:
        """Close the tasks; the watchdog last."""
        writers = [w for w in (self._lines, self._analog) if w is not None]
        close_all([w.task for w in writers])
        self._lines = self._analog = None
        self.started = False
        self._drop_watchdog()

    def _drop_watchdog(self) -> None:
        if self._watchdog is not None:
            close_all([self._watchdog])
            self._watchdog = None
