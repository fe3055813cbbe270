"""Serial ports: one kind of error, exclusive, and bytes both ways over a pty."""

import os
import pty

import pytest

from hil.devices.board.port import SerialPort
from hil.errors import DeviceError


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
