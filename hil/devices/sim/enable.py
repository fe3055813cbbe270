"""Simulated enable lines: relays in the supply of a simulated plant's cells."""

import math
from collections.abc import Sequence

from hil.devices.injection import Injection
from hil.devices.sim.plant import SimPlant

SETTLED_WITHIN_S = 1e-9


class EnableLines:
    """The enable lines of a device, which go high and low together.

    Parameters
    ----------
    lines : their names
    settle_s : settling time of the power after they have gone high

    Attributes
    ----------
    high : whether they are commanded high
    t_s : time of the run, which the device sets
    """

    def __init__(
        self, device: str, lines: Sequence[str], settle_s: float, plant: SimPlant,
        injection: Injection | None,
    ) -> None:  # fmt: skip
        self._device, self.names, self._settle_s = device, tuple(lines), settle_s
        self._plant, self._injection = plant, injection
        self._settled_s = math.inf  # time of the run at which the power has settled
        self.high, self.t_s = False, 0.0

    def put(self, high: bool) -> None:
        """Set all lines; one that is stuck low stays low."""
        self.high = high
        for line in self.names:
            stuck = self._injection is not None and self._injection.active("enable_stuck_low", line)
            self._plant.enable(f"{self._device}/{line}", high and not stuck)

    def enable(self) -> None:
        """Set the lines high."""
        if self.names and not self.high:
            self.put(True)
            self._settled_s = self.t_s + self._settle_s

    def ready(self) -> bool:
        """Whether the power has settled."""
        return not self.names or self.t_s >= self._settled_s - SETTLED_WITHIN_S

    def wait(self) -> None:
        """Skip the settling time: before the first tick no simulated time passes."""
        if self.high:
            self._settled_s = -math.inf

    def disable(self) -> None:
        """Set the lines low."""
        self.put(False)
        self._settled_s = math.inf

    def tested(self) -> list[str]:
        """Set them low after the boards' self-test, which needed their power; what to say of it."""
        if not self.names:
            return []
        self.disable()
        return [f"{', '.join(self.names)} high during the boards' self-test, then low"]
