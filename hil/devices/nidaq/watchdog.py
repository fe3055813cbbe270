"""The watchdogs behind a card's outputs: safe states that need no program.

A device has a watchdog of its own; the watchdog of a C Series module is its chassis', and holds
outputs of any of its modules. It has to start before any other task of the chassis. Once it has
expired, the chassis does nothing until it is reset. Source: NI, cDAQ-9185/9189 User Manual,
"Watchdog Timer".
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hil.devices.nidaq import abilities
from hil.devices.nidaq.channels import AnalogOutput, CardPlan, CellLine, Line, device_of
from hil.devices.nidaq.errors import describe
from hil.devices.nidaq.tasks import close_all
from hil.errors import DeviceError
from hil.loop.stages import Message

if TYPE_CHECKING:
    from nidaqmx.system.watchdog import WatchdogTask

UNWATCHED = "outputs stay as they are if the program is killed"


class Watchdogs:
    """One watchdog for every device, or chassis, that has outputs of the plan.

    Attributes
    ----------
    started : whether the watchdogs are running
    """

    def __init__(self, name: str, plan: CardPlan) -> None:
        self._name, self._plan = name, plan
        self._running: dict[str, WatchdogTask] = {}
        self.started = False

    def _owners(self) -> dict[str, tuple[list[Line | CellLine], list[AnalogOutput]]]:
        """Digital lines and analogue outputs by the device whose watchdog holds them."""
        plan = self._plan
        owners: dict[str, tuple[list[Line | CellLine], list[AnalogOutput]]] = {}
        outputs: tuple[Line | CellLine | AnalogOutput, ...] = (
            *plan.lines_out, *plan.cells, *plan.outputs
        )  # fmt: skip
        for output in outputs:
            device = abilities.find(self._name, device_of(plan.physical(output.terminal)))
            lines, voltages = owners.setdefault(str(abilities.owner_of(device).name), ([], []))
            if isinstance(output, AnalogOutput):
                voltages.append(output)
            else:
                lines.append(output)
        return owners

    def refuse_missing(self) -> None:
        """Before anything is energised: where a watchdog is required, it is there.

        Raises
        ------
        DeviceError
            A device has none.
        """
        from nidaqmx.constants import TaskMode
        from nidaqmx.errors import DaqError

        if self._plan.watchdog != "required":
            return
        for owner, (lines, voltages) in self._owners().items():
            made: list[WatchdogTask] = []
            try:
                self._make(owner, lines, voltages, made)
                made[0].control(TaskMode.TASK_VERIFY)
            except DaqError as error:
                raise self._missing(owner, error) from None
            finally:
                close_all(made)

    def start(self) -> list[Message]:
        """Start them, once; what is to be said about them.

        Raises
        ------
        DeviceError
            One that is required does not start.
        """
        from nidaqmx.errors import DaqError

        plan = self._plan
        if self.started:
            return []
        self.started = True
        if not plan.lines_out and not plan.outputs and not plan.cells:
            return []
        if plan.watchdog == "off":
            return [Message("warning", f"watchdog off: {UNWATCHED}")]
        messages = []
        for owner, (lines, voltages) in self._owners().items():
            made: list[WatchdogTask] = []
            try:
                warnings = self._make(owner, lines, voltages, made)
                made[0].start()
                if made[0].expired:
                    made[0].clear_expiration()
                    text = "the watchdog had expired in an earlier run: cleared"
                    warnings.append(Message("warning", text))
                self._running[owner] = made[0]
                messages += warnings
            except DaqError as error:
                close_all(made)
                if plan.watchdog == "required":
                    self.close()
                    raise self._missing(owner, error) from None
                why = describe(self._name, error, f"watchdog of {owner}")
                messages.append(Message("warning", f"no watchdog, {UNWATCHED}: {why}"))
        return messages

    def _missing(self, owner: str, error: Exception) -> DeviceError:
        why = describe(self._name, error, f"watchdog of {owner}")
        return DeviceError(f"{why}: take a device that has one, or watchdog = 'if_present'")

    def _make(
        self,
        owner: str,
        lines: Sequence[Line | CellLine],
        voltages: Sequence[AnalogOutput],
        made: "list[WatchdogTask]",
    ) -> list[Message]:
        """A watchdog with its states, which is added to `made`; what it covers."""
        from nidaqmx.constants import Level, WatchdogAOExpirState
        from nidaqmx.errors import DaqError
        from nidaqmx.system.watchdog import WatchdogTask
        from nidaqmx.types import AOExpirationState, DOExpirationState

        plan = self._plan
        made.append(dog := WatchdogTask(owner, timeout=plan.watchdog_s))
        covered, messages = [], []
        if lines:
            low = [DOExpirationState(plan.physical(x.terminal), Level.LOW) for x in lines]
            dog.cfg_watchdog_do_expir_states(low)
            if any(isinstance(x, CellLine) for x in lines):
                covered.append("cells off")
            if any(isinstance(x, Line) for x in lines):
                covered.append("enable lines low")
        if voltages:
            rest = [
                AOExpirationState(
                    plan.physical(x.terminal), x.rest / x.units_per_V, WatchdogAOExpirState.VOLTAGE
                )
                for x in voltages
            ]
            try:
                dog.cfg_watchdog_ao_expir_states(rest)
                covered.append("analogue outputs at rest")
            except DaqError as error:
                if not covered:
                    raise
                why = describe(self._name, error)
                text = f"the watchdog does not cover analogue outputs: {why}"
                messages.append(Message("warning", text))
        text = (
            f"watchdog: {', '.join(covered)} after {plan.watchdog_s:g} s without the program, "
            f"by {owner}"
        )
        return [Message("info", text), *messages]

    @property
    def running(self) -> bool:
        """Whether there is one, and it has been started."""
        return bool(self._running)

    def reset(self) -> None:
        """Feed them: the program lives."""
        for dog in self._running.values():
            dog.reset_timer()

    def expired(self) -> dict[str, bool]:
        """Whether the watchdog of each device has expired; then it is cleared."""
        expired_by_owner = {}
        for owner, dog in self._running.items():
            expired_by_owner[owner] = bool(dog.expired)
            if expired_by_owner[owner]:
                dog.clear_expiration()
        return expired_by_owner

    def may_expire(self) -> bool:
        """Whether all of them can go on after they have expired: none is that of a chassis."""
        devices = [abilities.find(self._name, owner) for owner in self._running]
        return not any(abilities.is_chassis(device) for device in devices)

    def close(self) -> None:
        """Let go of them; outputs stay as they are."""
        running, self._running = self._running, {}
        self.started = False
        close_all([*running.values()])
