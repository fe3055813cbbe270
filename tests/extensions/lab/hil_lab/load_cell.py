"""A force sensor that gives counts over a serial line."""

from typing import Annotated, Literal

from pydantic import Field

from hil.config.table import Name, Positive
from hil.devices.tables import ForceReadingTable, InstrumentTable
from hil.rig.kinds import DeviceKind
from hil.rig.plugin import instrument


class LoadCellTable(InstrumentTable):
    """A load cell behind a serial port; it reads one force."""

    kind: Literal["load_cell"]
    port: str
    newtons_per_count: Positive
    channels: Annotated[dict[Name, ForceReadingTable], Field(min_length=1, max_length=1)]


class LoadCell:
    """The sensor on the bench; simulated, hil reads the model in its place."""

    def __init__(self, table: LoadCellTable) -> None:
        self._table = table

    def open(self) -> None:
        import serial

        self._port = serial.Serial(self._table.port, timeout=0.01)

    def read(self, t_s: float) -> list[float]:
        """A force, N."""
        return [int(self._port.readline()) * self._table.newtons_per_count]

    def close(self) -> None:
        self._port.close()


DEVICE = DeviceKind(LoadCellTable, instrument(LoadCell))
