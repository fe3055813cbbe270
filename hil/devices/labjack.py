"""Analogue inputs of a LabJack T4, T7 or T8, by its maker's library LJM.

The inputs are read in command-response mode. A reading has the age of its request, which is no
less than that of its sample.
"""

from math import nan
from typing import Any

from hil.devices.latest import LatestReading, now_s
from hil.devices.sensor_tables import LabJackTable

NO_READING = -9999.0  # LJM's value of an input that it could not read
GROUND = 199  # LJM's number of ground as the negative input
MV_PER_V = 1e3


class LabJack(LatestReading[LabJackTable]):
    """The LabJack on the bench; its readings are in V, or in mV/V with an `excitation_V`."""

    def __init__(self, table: LabJackTable) -> None:
        super().__init__(table, f"LabJack {table.identifier}", "try it with LabJack's Kipling")
        channels = table.channels.values()
        self._names = [channel.terminal for channel in channels]
        self._scales = [
            1.0 if channel.excitation_V is None else MV_PER_V / channel.excitation_V
            for channel in channels
        ]
        self._ljm: Any = None
        self._handle: int | None = None

    def _connect(self) -> None:
        from labjack import ljm

        table = self._table
        self._ljm = ljm
        self._handle = ljm.openS(table.model, table.connection, table.identifier)
        settings: dict[str, float] = {}
        for channel in table.channels.values():
            if channel.range_V is not None:
                settings[f"{channel.terminal}_RANGE"] = channel.range_V
            if channel.negative is not None:
                minus = channel.negative.removeprefix("AIN")
                number = GROUND if minus == "GND" else int(minus)
                settings[f"{channel.terminal}_NEGATIVE_CH"] = number
        if settings:
            ljm.eWriteNames(self._handle, len(settings), list(settings), list(settings.values()))

    def _poll(self) -> None:
        asked_s = now_s()
        volts = self._ljm.eReadNames(self._handle, len(self._names), self._names)
        pairs = zip(volts, self._scales, strict=True)
        self.take([nan if v == NO_READING else v * scale for v, scale in pairs], asked_s)

    def _disconnect(self) -> None:
        if self._handle is not None:
            self._ljm.close(self._handle)
            self._handle = None
