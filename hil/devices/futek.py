"""A USB or digital instrument of FUTEK, by its maker's library.

A reading has the age of its request, which is no less than that of its sample; the filter of the
instrument's converter comes on top.
"""

import logging
from collections.abc import Mapping
from typing import Any

from hil.devices.indicator import G_M_PER_S2, NEWTONS
from hil.devices.latest import LatestReading, now_s
from hil.devices.sensor_tables import FutekTable
from hil.errors import DeviceError

LIBRARY = "futek_device_communication"
# FUTEK's names of units of force, in N.
UNITS: Mapping[str, float] = {
    "N": 1.0, "mN": 1e-3, "k_N": 1e3, "kg": G_M_PER_S2, "gram": 1e-3 * G_M_PER_S2,
    "lb": NEWTONS["lb"], "k_lb": 1e3 * NEWTONS["lb"], "oz": NEWTONS["oz"], "dyn": 1e-5,
    "k_dyn": 1e-2,
}  # fmt: skip


class Futek(LatestReading[FutekTable]):
    """The instrument on the bench; its readings are in N, by its own calibration."""

    def __init__(self, table: FutekTable) -> None:
        super().__init__(table, table.port, "try it with FUTEK's SENSIT")
        self._instrument: Any = None
        self._newtons = 1.0

    def _connect(self) -> None:
        import futek_device_communication as futek

        logging.getLogger(LIBRARY).addHandler(logging.NullHandler())  # else it prints its retries
        table = self._table
        instruments = futek.FutekSerialScanner.discover_devices(comports=[table.port])
        if not instruments:
            raise DeviceError("no FUTEK instrument answers: check port, cable and power")
        self._instrument = instruments[0]
        if table.rate_Hz is not None:
            self._instrument.set_sampling_rate_value(table.rate_Hz, table.input)
        unit = self._instrument.get_unit_of_measure(table.input).name
        if unit not in UNITS:
            raise DeviceError(f"gives '{unit}', not a force: set its unit with FUTEK's SENSIT")
        self._newtons = UNITS[unit]

    def _poll(self) -> None:
        asked_s = now_s()
        reading = self._instrument.get_reading(self._table.input)
        self.take((self._newtons * reading,), asked_s)

    def _disconnect(self) -> None:
        if self._instrument is not None:
            self._instrument.disconnect()
            self._instrument = None
