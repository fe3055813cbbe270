"""A force indicator on a serial port.

A reading has the age of its sample: the time since the last byte of its line arrived. The
indicator's own filter comes on top.
"""

import contextlib
from typing import TYPE_CHECKING

from hil.devices.indicator import LINE_MAX, Lines, templates
from hil.devices.latest import LatestReading, now_s
from hil.devices.sensor_tables import IndicatorTable
from hil.errors import DeviceError

if TYPE_CHECKING:
    import serial

ANSWER_S = 0.25  # wait for an answer before the request is repeated
START_AGAIN_S = 1.0  # silence after which the command that starts the stream is repeated
WRITE_S = 1.0
POLL_S = 0.05  # longest wait of the reader, after which it looks whether to end


class SerialIndicator(LatestReading[IndicatorTable]):
    """The indicator on the bench."""

    def __init__(self, table: IndicatorTable) -> None:
        super().__init__(table, table.port, "check port and baud")
        template = templates()[table.template]
        self._request = (template["request"] if table.request is None else table.request).encode()
        self._start = template.get("start", "").encode() if table.request is None else b""
        pattern = table.pattern or template["pattern"]
        length = 0 if table.pattern else template.get("length", 0)
        self._lines = Lines(pattern, table.unit, begins_whole=bool(self._request), length=length)
        self._last_request: tuple[int, float] | None = None  # lines that had come, and when
        self._n_reported = 0  # lines left out by the last note
        self._port: serial.SerialBase | None = None

    def _connect(self) -> None:
        import serial

        table = self._table
        self._port = serial.serial_for_url(
            table.port, table.baud, bytesize=table.data_bits, parity=table.parity[0].upper(),
            stopbits=table.stop_bits, timeout=POLL_S, write_timeout=WRITE_S,
        )  # fmt: skip

    def _ask(self) -> None:
        """Send the request once its last answer has come, or has been waited for; else once."""
        import serial

        n_lines, sent_s = self._last_request or (-1, -ANSWER_S)
        answered = bool(self._request) and self._lines.n_lines > n_lines
        if not answered and now_s() - sent_s < (ANSWER_S if self._request else START_AGAIN_S):
            return
        self._lines.forget()
        # A write "times out" too where this thread had to wait for its turn: whether the indicator
        # is there is seen by its answers.
        with contextlib.suppress(serial.SerialTimeoutException):
            assert self._port is not None
            self._port.write(self._request or self._start)
        self._last_request = self._lines.n_lines, now_s()

    def _poll(self) -> None:
        assert self._port is not None
        if self._request or (self._start and self._is_silent()):
            self._ask()
        data = self._port.read(max(1, min(self._port.in_waiting, LINE_MAX)))
        self._lines.take(data, now_s())
        if self._lines.fault:
            raise DeviceError(self._lines.fault)
        if self._lines.last is not None:
            force_N, t_s = self._lines.last
            self.take((force_N,), t_s)

    def _is_silent(self) -> bool:
        last = self._lines.last
        return last is None or now_s() - last[1] > START_AGAIN_S

    def notes(self) -> list[str]:
        """The first, tenth, hundredth ... line that was left out, since the last call."""
        dropped = self._lines.dropped
        if dropped < max(1, 10 * self._n_reported):
            return []
        self._n_reported = dropped
        return [f"{dropped} lines left out that its template does not describe, the last "
                f"'{self._lines.dropped_last}'"]  # fmt: skip

    def _disconnect(self) -> None:
        if self._port is not None:
            self._port.close()
