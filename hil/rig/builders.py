"""Devices that are neither boards nor cards: what builds each, and what a computer lacks."""

from collections.abc import Callable
from ctypes.util import find_library
from importlib.util import find_spec

from hil.devices.futek import Futek
from hil.devices.indicator_port import SerialIndicator
from hil.devices.labjack import LabJack
from hil.devices.nidaq.remote import RemoteCard
from hil.devices.phidget import PhidgetBridge
from hil.devices.supply.driver import Settings, Supply
from hil.devices.supply.sim import SimSupply
from hil.devices.supply_table import SupplyTable
from hil.devices.tables import ImportedDeviceTable
from hil.errors import DeviceError, install
from hil.rig.kinds import Built, DeviceInputs
from hil.rig.plugin import instrument

UNREACHABLE = "kind = 'imported': hil cannot reach it: import its files with hil import"
JOB = ("resource", "dialect", "channel", "visa", "baud", "voltage_V", "current_A", "poll_s",
       "answer_max_s")  # fmt: skip
ALIVE_S = 0.5  # without a sign of life for so long, or for two periods, a loop has hung


def _needs(package: str, extra: str, library: str = "") -> Callable[[str], str]:
    """What this computer lacks for an instrument on the bench, for a `DeviceKind`."""

    def missing(backend: str) -> str:
        if backend != "bench":
            return ""
        if find_spec(package) is None:
            return f"needs an extra: {install(extra)}"
        if library and find_library(library) is None:
            return f"needs the library {library} of its maker: install it"
        return ""

    return missing


serial_indicator = instrument(SerialIndicator)
serial_indicator_missing = _needs("serial", "daq")
futek = instrument(Futek)
futek_missing = _needs("futek_device_communication", "instruments")
labjack = instrument(LabJack)
labjack_missing = _needs("labjack", "instruments", "LabJackM")
phidget_bridge = instrument(PhidgetBridge)
phidget_bridge_missing = _needs("Phidget22", "instruments")
nidaq_remote = instrument(RemoteCard)
nidaq_remote_missing = _needs("nidaqmx", "daq")
supply_missing = _needs("pyvisa", "supply")


class ImportedDevice:
    """A device whose readings come from files; on the bench it does not exist."""

    def __init__(self, table: ImportedDeviceTable) -> None:
        """Do nothing."""

    def open(self) -> None:
        """Raise DeviceError."""
        raise DeviceError(UNREACHABLE)

    def read(self, t_s: float) -> list[float]:
        """Raise DeviceError."""
        raise DeviceError(UNREACHABLE)


def imported_missing(backend: str) -> str:
    """Why the backend does not exist; empty if it does."""
    return UNREACHABLE if backend == "bench" else ""


imported = instrument(ImportedDevice)


def supply(inputs: DeviceInputs[SupplyTable]) -> Built:
    """Build the supply on the bench, or a simulated one on any other backend."""
    name, table = inputs.name, inputs.table
    settings = Settings(
        table.voltage_V,
        table.current_A,
        table.voltage_tolerance_V,
        table.answer_max_s,
        table.obey_max_s,
    )
    if inputs.backend == "bench":
        alive_s = max(ALIVE_S, 2.0 * inputs.config.tables.loop.period_s)
        job = table.model_dump(include=set(JOB)) | {"alive_s": alive_s}
        return Supply(name, settings, job, inputs.now_s, inputs.sleep_s), None
    return SimSupply(name, settings, inputs.plant, table, inputs.injection), None
