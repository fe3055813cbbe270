"""Serial ports: one kind of error, exclusive, and bytes both ways over a pty."""

import os
import pty

import pytest

from hil.devices.board import listing
from hil.devices.board.link import ATTEMPTS, PATIENT_S, Link
from hil.devices.board.port import ANSWER_S, SerialPort
from hil.errors import DeviceError
from hil.procedures.bring_up.line import Line


@pytest.fixture
def line():
    far, near = pty.openpty()
    yield far, os.ttyname(near)
    for end in (far, near):
        os.close(end)


def test_bytes_go_both_ways(line):
    far, path = line
    port = SerialPort("board", path)
    port.write(b"\x01\x00")
    assert os.read(far, 10) == b"\x01\x00"
    os.write(far, b"\x02\x03\x00")
    received = b""
    while len(received) < 3:
        received += port.read(1.0)
    assert received == b"\x02\x03\x00"
    port.close()


def test_nothing_arrives_within_the_time_given(line):
    port = SerialPort("board", line[1])
    assert port.read(0.001) == b""
    port.close()


def test_a_port_that_is_not_there_is_named():
    with pytest.raises(DeviceError, match="board: /dev/nothing-here cannot be opened"):
        SerialPort("board", "/dev/nothing-here")


def test_a_board_that_is_not_plugged_in_is_named_by_its_serial_number():
    with pytest.raises(DeviceError, match="no board with USB serial number HIL-9999"):
        SerialPort("board", "usb:HIL-9999")


def test_a_second_opener_is_refused(line):
    port = SerialPort("board", line[1])
    with pytest.raises(DeviceError, match="cannot be opened"):
        SerialPort("second", line[1])
    port.close()


def test_an_unplugged_port_is_a_device_error():
    far, near = pty.openpty()
    port = SerialPort("board", os.ttyname(near))
    os.close(near)
    os.close(far)

    def use():
        for _ in range(3):
            port.write(b"\x00")
            port.read(0.01)

    with pytest.raises(DeviceError, match="board: "):
        use()


class Chatterer:
    """Another device at the port: it sends a line every 50 ms of the port's own clock."""

    def __init__(self, *_):
        self._now_s = 0.0

    def write(self, data): ...

    def read(self, timeout_s):
        self._now_s += min(timeout_s, 0.05)
        assert self._now_s < 60.0, "waits for ever"
        return b"T = 21.4 C\r\n" if timeout_s >= 0.05 else b""

    def sent_s(self):
        return self._now_s

    arrived_s = sent_s

    def close(self): ...


def test_a_device_that_never_falls_silent_is_told_from_a_board_in_time(monkeypatch):
    port = Chatterer()
    link = Link("board", lambda: port, 0.05, 0.0005, simulated=False)
    link.open()
    with pytest.raises(DeviceError, match="board: does not answer"):
        link.ask("identify")
    assert port.sent_s() <= ATTEMPTS * (PATIENT_S + ANSWER_S + 0.05)
    monkeypatch.setattr(listing, "SerialPort", Chatterer)
    with pytest.raises(DeviceError, match="no answer: is this a driver board"):
        listing.identity("/dev/ttyACM0")
    with pytest.raises(DeviceError, match="board: does not answer"):
        Line("board", Chatterer(), None).meet()
