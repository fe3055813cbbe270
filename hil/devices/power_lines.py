"""Plug-in instruments that also hold enable lines: relays in the cells' supply.

The class has `hold(on)`, which asks for a level, never blocks, and is called again in every period;
and `follows()`, which tells whether every relay reads back as it was asked for, and raises
DeviceError once one does not.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hil.devices.plugin import PluginDevice, SimPluginDevice
from hil.devices.sim.enable import EnableLines
from hil.errors import DeviceError
from hil.loop.channels import Readings
from hil.loop.frame import Commands, Frame

LOOK_S, LATE_S = 0.01, 1.0  # between looks at the relays; for them, beside the settling time


@dataclass(frozen=True)
class Power:
    """The enable lines of an instrument.

    Attributes
    ----------
    lines : where each is, by its name
    settle_s : settling time of the power
    sleep_s : waits in real time, and holds the lines meanwhile
    """

    lines: dict[str, str]
    settle_s: float
    sleep_s: Callable[[float], None]

    @property
    def names(self) -> str:
        return ", ".join(f"'{name}' ({where})" for name, where in self.lines.items())


class PoweringDevice(PluginDevice):
    """A plug-in device on the bench whose enable lines switch the cells' power.

    Parameters
    ----------
    power : its enable lines
    arguments : of `PluginDevice`
    """

    def __init__(self, power: Power, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._power, self._high, self._closed_s = power, False, 0.0

    def _hold(self) -> None:
        self._ask("hold", self._high)

    def _follows(self) -> bool:
        if self._used is None:
            raise DeviceError(f"{self.name}: is not open")
        try:
            return bool(self._used.call("follows"))
        except DeviceError as error:
            raise DeviceError(f"{self.name}: {error}") from None

    def _until_it_follows(self) -> None:
        """Wait until the relays are as asked for; DeviceError if they are not in time."""
        end_s = self._now_s() + self._power.settle_s + LATE_S
        while not self._follows():
            if self._now_s() > end_s:
                level = "high" if self._high else "low"
                raise DeviceError(
                    f"{self.name}: {self._power.names} does not read back {level}: check the "
                    "relay, and the wire from its second contact"
                )
            self._power.sleep_s(LOOK_S)

    def enable(self) -> None:
        """Ask for power; idempotent."""
        if not self._high:
            self._high, self._closed_s = True, self._now_s()
        self._hold()

    def ready(self) -> bool:
        """Whether the relays are closed, and the power has settled."""
        settled = self._now_s() - self._closed_s >= self._power.settle_s
        return self._high and settled and self._follows()

    def wait(self) -> None:
        """Block until the power has settled."""
        self._until_it_follows()
        if not self.ready():
            self._power.sleep_s(self._power.settle_s)

    def alive(self) -> None:
        """Hold the lines as they are."""
        self._hold()

    def disable(self) -> None:
        """Ask for no power, at once; `safe` verifies it."""
        self._high = False
        self._hold()

    def self_test(self, say: Callable[[str], None]) -> list[str]:
        """Prove that every relay opens, after the boards' self-test, which needed its power."""
        tested = super().self_test(say)
        self.disable()
        self._until_it_follows()
        return [*tested, f"{', '.join(self._power.lines)} read back high, then low"]

    def write(self, t_s: float, commands: Commands) -> None:
        if not commands.enabled[0]:
            self._high = False
        self._hold()
        super().write(t_s, commands)

    def safe(self) -> None:
        """Switch the power off and see that it is off, then all that `PluginDevice` has."""
        self._high = False
        try:
            if self._used is not None:
                self._hold()
                self._until_it_follows()
        finally:
            super().safe()


class SimPoweringDevice(SimPluginDevice):
    """The simulated device: its lines switch the power of the simulated plant."""

    def __init__(self, lines: Sequence[str], settle_s: float, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._power = EnableLines(self.name, lines, settle_s, self._plant, self._injection)
        self.enable, self.ready = self._power.enable, self._power.ready
        self.wait, self.disable = self._power.wait, self._power.disable

    def bind(self, frame: Frame, readings: Readings) -> None:
        super().bind(frame, readings)
        self._power.put(False)

    def alive(self) -> None:
        """Do nothing: it has no watchdog."""

    def self_test(self, say: Callable[[str], None]) -> list[str]:
        """Open the relays after the boards' self-test."""
        return self._power.tested()

    def read(self, t_s: float) -> None:
        self._power.t_s = t_s
        super().read(t_s)

    def write(self, t_s: float, commands: Commands) -> None:
        if not commands.enabled[0]:
            self._power.disable()
        self._power.put(self._power.high)
        super().write(t_s, commands)

    def safe(self) -> None:
        self._power.disable()
        super().safe()
