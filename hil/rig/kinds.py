"""The kinds of devices, by the `kind` of `[devices.NAME]`: a descriptor each, in one dict.

Installed packages bring more, by an entry point in the group GROUP that names a `DeviceKind`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from hil.devices.base import Device
from hil.devices.injection import Injection
from hil.devices.nidaq.emulated import EmulatedBench
from hil.devices.rate_divider import RateDivider
from hil.devices.sim.plant import SimPlant
from hil.loop.channels import RigLayout
from hil.mechanics.system import System
from hil.plugins.descriptors import Lazy, installed
from hil.rig.run_tables import RigConfig
from hil.rig.streams import stream
from hil.rig.supply_table import SupplyTable
from hil.rig.tables import CellBoardTable, DeviceTable, NidaqTable

GROUP = "hil.device_kinds"


@dataclass(frozen=True)
class DeviceInputs:
    """What a device of a rig is built from.

    Attributes
    ----------
    table : of the device
    number : of the device among those of its role, from 0
    plant, system : the simulated plant, and the system that it steps
    bench : of emulated cards
    backend : `sim`, `emulated` or `bench`
    behind_card : the plant runs on a card of its own
    come_to : brings the simulated plant to a time
    now_s : the clock by which exchanges are timed
    sleep_s : lets time pass; `wait_s` keeps the power on meanwhile, as `keep_alive` does at once
    """

    name: str
    table: Any
    number: int
    config: RigConfig
    layout: RigLayout
    plant: SimPlant
    system: System
    bench: EmulatedBench
    backend: str
    behind_card: bool
    seed: int
    injection: Injection | None
    come_to: Callable[[float], None]
    now_s: Callable[[], float]
    sleep_s: Callable[[float], None]
    wait_s: Callable[[float], None]
    keep_alive: Callable[[], None]

    @property
    def period_s(self) -> float:
        """Of the loop."""
        return self.config.tables.loop.period_s

    def draws(self, *names: str) -> np.random.Generator:
        """The random numbers of this device, or of a channel of it."""
        return stream(self.seed, self.name, *names)


def nothing_missing(backend: str) -> str:
    """For devices that need nothing but hil."""
    return ""


@dataclass(frozen=True)
class DeviceKind:
    """A kind of device.

    Attributes
    ----------
    table : keys of its `[devices.NAME]`, its `kind` among them
    build : `DeviceInputs` -> the device, or a simulated one, and its turn where it has one
    missing : what this machine lacks for a backend, with the remedy; empty where nothing
    """

    table: type[DeviceTable]
    build: Lazy
    missing: Lazy = nothing_missing


Built = tuple[Device, RateDivider | None]

BUILT_IN: Mapping[str, DeviceKind] = {
    "cell_board": DeviceKind(
        CellBoardTable, "hil.rig.cell_board:build", "hil.rig.cell_board:missing"
    ),
    "nidaq": DeviceKind(NidaqTable, "hil.rig.cards:build", "hil.rig.cards:missing"),
    "supply": DeviceKind(SupplyTable, "hil.rig.supply:build", "hil.rig.supply:missing"),
}
PLUGIN = "hil.rig.plugin:build"  # of a class in a user's file, or of a package


@cache
def device_kinds() -> Mapping[str, DeviceKind]:
    """Every kind of device, those of installed packages among them.

    Raises
    ------
    ConfigError
        An installed one does not import, or takes a kind that is taken.
    """
    return {**BUILT_IN, **installed(GROUP, BUILT_IN)}


def device_kind(table: DeviceTable) -> DeviceKind:
    """The kind of a device."""
    return device_kinds().get(table.kind) or DeviceKind(type(table), PLUGIN)
