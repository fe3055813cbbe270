"""A force indicator on a serial port.

A thread reads the port, because the indicator sends at its own rate. A reading has the age of its
sample: the time since the last byte of its line arrived. The indicator's own filter comes on top.
"""

from __future__ import annotations

import threading
import time
from typing import Any

from hil.devices.indicator import LINE_MAX, Lines, templates
from hil.errors import DeviceError, one_line

FIRST_S = 3.0  # wait for the first reading
POLL_S = 0.05  # longest wait of the reader, after which it looks whether to end


class SerialIndicator:
    """The indicator on the bench. Its table is `hil.rig.tables.IndicatorTable`.

    Attributes
    ----------
    age_s, taken_s : age of the sample that `read` gave last, and its time since `open`
    """

    def __init__(self, table: Any) -> None:
        template = templates()[table.template]
        self._table = table
        self._request = (template["request"] if table.request is None else table.request).encode()
        pattern = table.pattern or template["pattern"]
        self._lines = Lines(pattern, table.unit, begins_whole=bool(self._request))
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._line: Any = None
        self._opened_s = 0.0
        self.age_s = self.taken_s = 0.0

    def open(self) -> None:
        """Open the port and wait for the first reading."""
        import serial

        table = self._table
        try:
            self._line = serial.serial_for_url(
                table.port, table.baud, bytesize=table.data_bits, parity=table.parity[0].upper(),
                stopbits=table.stop_bits, timeout=POLL_S, write_timeout=1.0,
            )  # fmt: skip
        except (serial.SerialException, ValueError, OSError) as error:
            raise DeviceError(f"{table.port}: cannot be opened ({one_line(str(error))})") from None
        self._opened_s = time.monotonic()
        self._thread = threading.Thread(target=self._receive, daemon=True, name="indicator")
        self._thread.start()
        end_s = time.monotonic() + FIRST_S
        while self._lines.last is None and not self._lines.fault and time.monotonic() < end_s:
            time.sleep(0.01)
        if self._lines.last is None:
            fault = (
                self._lines.fault or f"sent no reading within {FIRST_S:g} s: check port and baud"
            )
            self.close()
            raise DeviceError(f"{table.port}: {fault}")

    def _receive(self) -> None:
        """Read until the end; the port's errors become the fault of the lines."""
        try:
            while not self._ended.is_set() and not self._lines.fault:
                if self._request:
                    self._line.write(self._request)
                self._lines.take(self._line.read_until(b"\n", LINE_MAX), time.monotonic())
        except Exception as error:  # pyserial raises TypeError too, on a port that has gone
            said = one_line(str(error)).partition(" (")[0]
            self._lines.fault = f"the port is gone ({said}): plug it in again"

    def read(self, t_s: float) -> tuple[float]:
        """Force in N; raises DeviceError if the indicator cannot be read any more."""
        if self._lines.fault:
            raise DeviceError(f"{self._table.port}: {self._lines.fault}")
        assert self._lines.last is not None  # open waits for it
        force_N, taken_s = self._lines.last
        self.age_s = time.monotonic() - taken_s
        self.taken_s = taken_s - self._opened_s
        return (force_N,)

    def close(self) -> None:
        """End the thread and close the port."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join(2.0)
        if self._line is not None:
            self._line.close()
