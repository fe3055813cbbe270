"""`hil devices` lists instruments with lines that a rig takes as they are."""

import sys
import tomllib
from types import SimpleNamespace

import futek_device_communication as futek
import Phidget22.Devices.Manager  # noqa: F401  in sys.modules, whose name a class hides
import pytest
from labjack.ljm import ljm as ljm_module
from Phidget22.ChannelClass import ChannelClass
from Phidget22.Phidget import Phidget

from hil.__main__ import main
from hil.devices import instrument_listing as listing
from hil.rig.kinds import device_kinds


def table_of(instrument):
    """The pasted lines as their kind's table."""
    device = tomllib.loads(instrument.table)["devices"]["cell"]
    return device_kinds()[device["kind"]].table.model_validate(device)


@pytest.fixture
def ljm(monkeypatch):
    """LabJack's library with a T7 that is found on USB and in the network, and a T4."""

    class Library:
        def LJM_ListAllS(self, kind, connection, n, types, connections, serials, addresses):
            rows = [(7, 1, 470012345), (7, 3, 470012345), (4, 1, 440010001)]
            n._obj.value = len(rows)
            for i, row in enumerate(rows):
                types._obj[i], connections._obj[i], serials._obj[i] = row
            return 0

    monkeypatch.setattr(ljm_module, "_staticLib", Library())
    monkeypatch.setattr(listing, "find_library", lambda name: name)


def test_each_labjack_is_listed_once_by_its_serial_number(ljm):
    found = listing.labjacks()
    assert [one.what for one in found] == ["LabJack T7 470012345, USB", "LabJack T4 440010001, USB"]
    tables = [table_of(one) for one in found]
    assert [(t.model, t.identifier) for t in tables] == [("T7", "470012345"), ("T4", "440010001")]


def test_phidgets_report_themselves(monkeypatch):
    def channel(serial, name, kind):
        return SimpleNamespace(
            getChannelClass=lambda: kind, getDeviceSerialNumber=lambda: serial,
            getHubPort=lambda: 0, getIsHubPortDevice=lambda: 0, getDeviceName=lambda: name,
        )  # fmt: skip

    class Attached:
        def setOnAttachHandler(self, handler):
            self.handler = handler

        def open(self):
            bridge = ChannelClass.PHIDCHCLASS_VOLTAGERATIOINPUT
            for _ in range(4):  # one for each input
                self.handler(self, channel(141519, "PhidgetBridge 4-Input", bridge))
            light = ChannelClass.PHIDCHCLASS_LIGHTSENSOR
            self.handler(self, channel(99, "light sensor", light))

        def close(self):
            pass

    monkeypatch.setattr(sys.modules["Phidget22.Devices.Manager"], "Manager", Attached)
    monkeypatch.setattr(listing, "PHIDGETS_S", 0.0)
    (found,) = listing.phidgets()
    assert found.what == "PhidgetBridge 4-Input 141519"
    assert table_of(found).serial == 141519


def test_where_phidgets_library_is_not_installed_none_is_listed(monkeypatch):
    def missing():
        raise OSError("phidget22.dll")

    monkeypatch.setattr(Phidget, "getLibraryVersion", missing)
    assert listing.phidgets() == []


def test_an_instrument_of_futek_is_asked_at_its_port_and_left(monkeypatch):
    left = []

    class USB225:
        def disconnect(self):
            left.append(self)

    def discovered(comports):
        return [USB225()] if comports == ["/dev/ttyUSB1"] else []

    monkeypatch.setattr(futek.FutekSerialScanner, "discover_devices", discovered)
    (found,) = listing.futeks(["/dev/ttyUSB0", "/dev/ttyUSB1"])
    assert found.what == "FUTEK USB225 at /dev/ttyUSB1"
    assert table_of(found).port == "/dev/ttyUSB1"
    assert len(left) == 1


@pytest.mark.parametrize(
    ("heard", "template", "unit"),
    [(b"345  kg\r\n" + 3 * b"ST,GS,+0012.345  kg\r\n", "and", "kg"),
     (b".3 N\r\n" + 3 * b"12.345 N\r\n", "number_unit", "N")],
)  # fmt: skip
def test_an_indicator_is_known_by_the_lines_that_it_sends(heard, template, unit):
    found = listing.indicator("/dev/ttyUSB0", 9600, heard)
    table = table_of(found)
    assert (table.template, table.unit, table.baud) == (template, unit, 9600)


def test_noise_on_a_port_is_no_indicator():
    assert listing.indicator("/dev/ttyUSB0", 9600, b"\xff\x00\x91\r\n?!x\r\n\x12") is None


def test_the_command_prints_the_lines_to_paste(ljm, capsys):
    assert main(["devices"]) == 0
    said = capsys.readouterr().out
    assert 'LabJack T7 470012345, USB\n    [devices.cell]\n    kind = "labjack"\n' in said
    assert "--identify also asks FUTEK's instruments" in said
