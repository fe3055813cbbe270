"""A device whose readings come from files (`hil import`); it can be simulated, not reached."""

from hil.errors import DeviceError
from hil.rig.plugin import instrument
from hil.rig.tables import ImportedDeviceTable

UNREACHABLE = "kind = 'imported': hil cannot reach it: import its files with hil import"


class ImportedDevice:
    """The device on the bench, which does not exist."""

    def __init__(self, table: ImportedDeviceTable) -> None:
        """Do nothing."""

    def open(self) -> None:
        """Raise DeviceError."""
        raise DeviceError(UNREACHABLE)

    def read(self, t_s: float) -> list[float]:
        """Raise DeviceError."""
        raise DeviceError(UNREACHABLE)


def missing(backend: str) -> str:
    """Why the backend does not exist; empty if it does."""
    return UNREACHABLE if backend == "bench" else ""


build = instrument(ImportedDevice)
