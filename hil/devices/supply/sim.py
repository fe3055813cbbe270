"""A simulated bench supply that powers the cells of the plant."""

from collections import deque
from collections.abc import Callable

from hil.devices.injection import Injection
from hil.devices.sim.plant import SimPlant
from hil.devices.supply.driver import Answer, Settings, SupplyDevice
from hil.devices.supply_table import SupplyTable
from hil.errors import DeviceError
from hil.loop.frame import Commands

ON_WITHIN_S = 1e-9


class SimSupply(SupplyDevice):
    """Simulates delays of commands and answers, the current limit, and the measured current."""

    simulated = True

    def __init__(
        self,
        name: str,
        settings: Settings,
        plant: SimPlant,
        table: SupplyTable,
        injection: Injection | None = None,
    ) -> None:
        super().__init__(name, settings)
        self._plant = plant
        self._poll_s = table.poll_s
        self._obey_s, self._answer_s = table.sim.obey_s, table.sim.answer_s
        self._injection = injection
        self._on = False
        self._commands: deque[tuple[float, bool]] = deque()  # time of execution, output on
        self._answers: deque[Answer] = deque()  # not yet arrived
        self._asked_s = -self._poll_s
        self._t_s = 0.0

    def _fault(self, kind: str) -> float | None:
        injection = None if self._injection is None else self._injection.active(kind, self.name)
        return None if injection is None else injection.value

    def open(self) -> None:
        """Switch the output off."""
        self._switch(False)
        self.watch.since_s = self._t_s
        self.answer = Answer(self._t_s, self._t_s, 0.0, 0.0, 0.0)

    def _switch(self, on: bool) -> None:
        self._on = on
        self._set_supply()

    def _volts(self) -> float:
        wrong = self._fault("supply_voltage")
        return self.settings.voltage_V if wrong is None else wrong

    def _set_supply(self) -> None:
        self._plant.set_supply(self._volts() if self._on else 0.0, self.settings.current_A)

    def _tell(self, want_on: bool, t_s: float) -> None:
        if self.watch.tell(want_on, t_s):
            self._commands.append(
                (t_s + self._obey_s + (self._fault("supply_late") or 0.0), want_on)
            )

    def enable(self) -> None:
        """Command the output on; `ready` returns whether it is on."""
        self._tell(True, self._t_s)

    def arm(self) -> None:
        """Do nothing: the output is already on."""

    def alive(self) -> None:
        """Do nothing: it has no watchdog."""

    def disable(self) -> None:
        """Command the output off; `safe` verifies it."""
        self._tell(False, self._t_s)

    def ready(self) -> bool:
        """Whether it reports its output on at the set voltage."""
        return self.watch.want_on and self.watch.confirmed(self.answer)

    def wait(self) -> None:
        """Switch on at once: before the first tick no simulated time passes."""
        if self.ready():
            return
        if self._fault("supply_mute") is not None:
            raise DeviceError(f"{self.name}: commanded on, no answer")
        self._commands.clear()
        self._switch(True)
        volts, amps = self._volts(), 0.0
        self.answer = Answer(self._t_s, self._t_s, volts, amps, 1.0)
        if not self.ready():
            raise DeviceError(
                f"{self.name}: commanded on, it reports output on, {volts:.4g} V, {amps:.3g} A"
            )

    def self_test(self, say: Callable[[str], None]) -> list[str]:
        """Switch off after the boards' self-test, which needed its power."""
        self.safe()
        return ["was on at its voltage, and off when switched off"]

    def read(self, t_s: float) -> None:
        self._plant.advance(t_s)
        self._t_s = t_s
        while self._commands and self._commands[0][0] <= t_s + ON_WITHIN_S:
            _, on = self._commands.popleft()
            if on or self._fault("supply_stays_on") is None:
                self._switch(on)
        if self._on and self._fault("supply_drops") is not None:
            self._switch(False)
        self._set_supply()
        mute = self._fault("supply_mute") is not None
        if t_s >= self._asked_s + self._poll_s - ON_WITHIN_S and not mute:
            self._asked_s = t_s
            volts, amps = self._plant.fed() if self._on else (0.0, 0.0)
            self._answers.append(Answer(t_s, t_s + self._answer_s, volts, amps, float(self._on)))
        while self._answers and self._answers[0].t_s <= t_s + ON_WITHIN_S:
            self.answer = self._answers.popleft()
        self._note(t_s, t_s)

    def write(self, t_s: float, commands: Commands) -> None:
        self._tell(bool(commands.enabled[0]), t_s)

    def safe(self) -> None:
        """Switch the output off.

        Raises
        ------
        DeviceError
            An injected fault keeps it on or silent; the same error as on the bench.
        """
        if self._fault("supply_mute") is not None:
            raise DeviceError(f"{self.name}: commanded off, no answer: SWITCH IT OFF BY HAND")
        if self._fault("supply_stays_on") is not None:
            raise DeviceError(
                f"{self.name}: commanded off, it reports output on, {self._volts():.4g} V: "
                "SWITCH IT OFF BY HAND"
            )
        self._commands.clear()
        self._switch(False)
        self.watch.tell(False, self._t_s)
        self.answer = Answer(self._t_s, self._t_s, 0.0, 0.0, 0.0)

    def close(self) -> None:
        """Do nothing."""
