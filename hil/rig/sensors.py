"""Instruments that measure: serial indicators, and those of FUTEK, LabJack and Phidgets."""

from collections.abc import Callable
from ctypes.util import find_library
from importlib.util import find_spec

from hil.devices.futek import Futek
from hil.devices.indicator_port import SerialIndicator
from hil.devices.labjack import LabJack
from hil.devices.nidaq.remote import RemoteCard
from hil.devices.phidget import PhidgetBridge
from hil.rig.plugin import instrument


def _needs(package: str, extra: str, library: str = "") -> Callable[[str], str]:
    """What this computer lacks for an instrument on the bench, for a `DeviceKind`."""

    def missing(backend: str) -> str:
        if backend != "bench":
            return ""
        if find_spec(package) is None:
            return f"needs an extra: pip install 'hil-arrays[{extra}]'"
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
