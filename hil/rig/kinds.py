"""Kinds of devices: one descriptor for each `kind` of `[devices.NAME]`, in one dict.

Installed packages add kinds through an entry point in the group GROUP that names a `DeviceKind`.
"""

from collections.abc import Callable, Mapping, Sequence
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
from hil.rig.sensor_tables import (
    FutekTable,
    IndicatorTable,
    LabJackTable,
    PhidgetTable,
    RemoteNidaqTable,
)
from hil.rig.streams import stream
from hil.rig.supply_table import SupplyTable
from hil.rig.tables import (
    CellBoardTable,
    DeviceTable,
    ImportedDeviceTable,
    NidaqTable,
)

GROUP = "hil.device_kinds"


@dataclass(frozen=True)
class DeviceInputs:
    """Inputs for building a device of a rig.

    Attributes
    ----------
    table : the device's table
    number : index of the device among those of its role, from 0
    plant, system : the simulated plant, and the system that it steps
    bench : the bench of emulated cards
    backend : `sim`, `emulated` or `bench`
    behind_card : whether the plant runs on a card of its own
    come_to : advances the simulated plant to a time
    now_s : clock for timing exchanges with devices
    sleep_s : sleeps for a duration
    wait_s : sleeps for a duration and calls `keep_alive` meanwhile
    keep_alive : keeps the power on, once
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
        """Period of the loop, s."""
        return self.config.tables.loop.period_s

    def divider(self, indices: Sequence[int], gates: Sequence[int] = ()) -> RateDivider | None:
        """Rate divider of the device; None if it is read in every period."""
        every = self.table.every
        return RateDivider(every, self.period_s, indices, gates) if every > 1 else None

    def draws(self, *names: str) -> np.random.Generator:
        """Random generator of this device, or of a channel of it."""
        return stream(self.seed, self.name, *names)


def nothing_missing(backend: str) -> str:
    """Default of `DeviceKind.missing`: the device needs no extra package."""
    return ""


@dataclass(frozen=True)
class DeviceKind:
    """A kind of device.

    Attributes
    ----------
    table : model of its `[devices.NAME]` table, including `kind`
    build : `DeviceInputs` -> the device and its rate divider (None: every period)
    missing : backend -> what this computer lacks for it, with the remedy; empty if nothing
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
    "imported": DeviceKind(
        ImportedDeviceTable, "hil.rig.imported:build", "hil.rig.imported:missing"
    ),
    "serial_indicator": DeviceKind(
        IndicatorTable,
        "hil.rig.sensors:serial_indicator",
        "hil.rig.sensors:serial_indicator_missing",
    ),
    "futek": DeviceKind(FutekTable, "hil.rig.sensors:futek", "hil.rig.sensors:futek_missing"),
    "labjack": DeviceKind(
        LabJackTable, "hil.rig.sensors:labjack", "hil.rig.sensors:labjack_missing"
    ),
    "phidget_bridge": DeviceKind(
        PhidgetTable, "hil.rig.sensors:phidget_bridge", "hil.rig.sensors:phidget_bridge_missing"
    ),
    "nidaq_remote": DeviceKind(
        RemoteNidaqTable, "hil.rig.sensors:nidaq_remote", "hil.rig.sensors:nidaq_remote_missing"
    ),
    "supply": DeviceKind(SupplyTable, "hil.rig.supply:build", "hil.rig.supply:missing"),
}
PLUGIN = "hil.rig.plugin:build"  # builds the device of a class in a user's file


@cache
def device_kinds() -> Mapping[str, DeviceKind]:
    """Every kind of device, including those of installed packages.

    Raises
    ------
    ConfigError
        A package's kind cannot be imported, or its name is already taken.
    """
    return {**BUILT_IN, **installed(GROUP, BUILT_IN)}


def device_kind(table: DeviceTable) -> DeviceKind:
    """Descriptor of a device's kind; a plug-in if the kind is not listed."""
    return device_kinds().get(table.kind) or DeviceKind(type(table), PLUGIN)
