"""A force indicator on a serial port.

A reading has the age of its sample: the time since the last byte of its line arrived. The
indicator's own filter comes on top.
"""

from typing import TYPE_CHECKING

from hil.devices.indicator import LINE_MAX, Lines, templates
from hil.devices.latest import LatestReading, now_s
from hil.devices.sensor_tables import IndicatorTable
from hil.errors import DeviceError

if TYPE_CHECKING:
    import serial

POLL_S = 0.05  # longest wait of the reader, after which it looks whether to end


class SerialIndicator(LatestReading[IndicatorTable]):
    """The indicator on the bench."""

    def __init__(self, table: IndicatorTable) -> None:
        super().__init__(table, table.port, "check port and baud")
        template = templates()[table.template]
        self._request = (template["request"] if table.request is None else table.request).encode()
        pattern = table.pattern or template["pattern"]
        self._lines = Lines(pattern, table.unit, begins_whole=bool(self._request))
        self._port: serial.SerialBase | None = None

    def _connect(self) -> None:
        import serial

        table = self._table
        self._port = serial.serial_for_url(
            table.port, table.baud, bytesize=table.data_bits, parity=table.parity[0].upper(),
            stopbits=table.stop_bits, timeout=POLL_S, write_timeout=1.0,
        )  # fmt: skip

    def _poll(self) -> None:
        assert self._port is not None
        if self._request:
            self._port.write(self._request)
        self._lines.take(self._port.read_until(b"\n", LINE_MAX), now_s())
        if self._lines.fault:
            raise DeviceError(self._lines.fault)
        if self._lines.last is not None:
            force_N, t_s = self._lines.last
            self.take((force_N,), t_s)

    def _disconnect(self) -> None:
        if self._port is not None:
            self._port.close()
