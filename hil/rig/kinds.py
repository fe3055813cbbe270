"""Kinds of devices: one descriptor for each `kind` of `[devices.NAME]`, in one dict.

Installed packages add kinds through an entry point in the group GROUP that names a `DeviceKind`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Generic, Protocol, TypeVar

import numpy as np

from hil.devices.base import Device
from hil.devices.board.port import LOOK_S
from hil.devices.injection import Injection
from hil.devices.nidaq.emulated import EmulatedBench
from hil.devices.rate_divider import RateDivider
from hil.devices.sensor_tables import (
    FutekTable,
    IndicatorTable,
    LabJackTable,
    PhidgetTable,
    RemoteNidaqTable,
)
from hil.devices.sim.plant import SimPlant
from hil.devices.supply_table import SupplyTable
from hil.devices.tables import (
    ActuatorTable,
    CellBoardTable,
    DeviceTable,
    ImportedDeviceTable,
    NidaqTable,
)
from hil.loop.channels import RigLayout
from hil.loop.frame import unit_suffix
from hil.mechanics.system import System
from hil.plugins.descriptors import Lazy, installed
from hil.rig.run_tables import RigConfig

GROUP = "hil.device_kinds"
NAME_ENDS = 256  # separator of names in a random stream's key; greater than any byte of a name


class Paced(Protocol):
    """The table of a device that is read in every n-th period."""

    @property
    def every(self) -> int: ...


class Placed(Protocol):
    """The table of a device with channels and outputs."""

    @property
    def channels(self) -> Mapping[str, object]: ...

    @property
    def outputs(self) -> Mapping[str, ActuatorTable]: ...


T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True)
class DeviceInputs(Generic[T_co]):
    """Inputs for building a device of a rig, of which `T_co` is the class of its table.

    Attributes
    ----------
    table : the device's table
    number : index of the device among those of its role, from 0
    plant, system : the simulated plant, and the system that it steps
    bench : the bench of emulated cards
    backend : `sim`, `emulated` or `bench`
    behind_card : whether the plant runs on a card of its own
    advance_simulation : advances the simulated plant to a time
    now_s : clock for timing exchanges with devices
    sleep_s : sleeps for a duration
    wait_s : sleeps for a duration and calls `keep_alive` meanwhile
    keep_alive : keeps the power on, once
    """

    name: str
    table: T_co
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
    advance_simulation: Callable[[float], None]
    now_s: Callable[[], float]
    sleep_s: Callable[[float], None]
    wait_s: Callable[[float], None]
    keep_alive: Callable[[], None]

    @property
    def period_s(self) -> float:
        """Period of the loop, s."""
        return self.config.tables.loop.period_s

    def divider(
        self: "DeviceInputs[Paced]", indices: Sequence[int], gates: Sequence[int] = ()
    ) -> RateDivider | None:
        """Rate divider of the device; None if it is read in every period."""
        every = self.table.every
        return RateDivider(every, self.period_s, indices, gates) if every > 1 else None

    def draws(self, *names: str) -> np.random.Generator:
        """Random generator of this device, or of a channel of it."""
        return stream(self.seed, self.name, *names)

    def places(self: "DeviceInputs[Placed]") -> tuple[range, int]:
        """Indices of the device's channels, which are contiguous, and index of its first output."""
        channels, outputs = self.table.channels, self.table.outputs
        first = self.layout.index(next(iter(channels))) if channels else 0
        names = [f"{n}_commanded{unit_suffix(o.drives)}" for n, o in outputs.items()]
        output = self.layout.outputs.index(names[0]) if names else 0
        return range(first, first + len(channels)), output


def stream(seed: int, *names: str) -> np.random.Generator:
    """The random stream of a device, or of one of its channels, for this seed.

    It depends only on the seed and the names, so other devices of the rig do not change it.
    """
    key = [word for name in names for word in (*name.encode(), NAME_ENDS)]
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


def keeping_alive(
    sleep_s: Callable[[float], None], keep_alive: Callable[[], None]
) -> Callable[[float], None]:
    """Return a sleep that calls `keep_alive` at least every LOOK_S."""

    def wait_s(duration_s: float) -> None:
        while duration_s > 0.0:
            keep_alive()
            sleep_s(min(duration_s, LOOK_S))
            duration_s -= LOOK_S
        keep_alive()

    return wait_s


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
    driver_on : the backend that runs the driver of the bench without hardware
    """

    table: type[DeviceTable]
    build: Lazy
    missing: Lazy = nothing_missing
    driver_on: str = "sim"


Built = tuple[Device, RateDivider | None]

BUILT_IN: Mapping[str, DeviceKind] = {
    "cell_board": DeviceKind(
        CellBoardTable, "hil.rig.cell_board:build", "hil.rig.cell_board:missing", "pty"
    ),
    "nidaq": DeviceKind(NidaqTable, "hil.rig.cards:build", "hil.rig.cards:missing", "emulated"),
    "imported": DeviceKind(
        ImportedDeviceTable, "hil.rig.builders:imported", "hil.rig.builders:imported_missing"
    ),
    "serial_indicator": DeviceKind(
        IndicatorTable,
        "hil.rig.builders:serial_indicator",
        "hil.rig.builders:serial_indicator_missing",
    ),
    "futek": DeviceKind(FutekTable, "hil.rig.builders:futek", "hil.rig.builders:futek_missing"),
    "labjack": DeviceKind(
        LabJackTable, "hil.rig.builders:labjack", "hil.rig.builders:labjack_missing"
    ),
    "phidget_bridge": DeviceKind(
        PhidgetTable, "hil.rig.builders:phidget_bridge", "hil.rig.builders:phidget_bridge_missing"
    ),
    "nidaq_remote": DeviceKind(
        RemoteNidaqTable, "hil.rig.builders:nidaq_remote", "hil.rig.builders:nidaq_remote_missing"
    ),
    "supply": DeviceKind(SupplyTable, "hil.rig.builders:supply", "hil.rig.builders:supply_missing"),
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
