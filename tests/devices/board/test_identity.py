"""The board that answers is the one that the rig's file means, at every opening."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from serial.tools import list_ports

import hil
from hil.devices.board.identity import UNMARKED, RigBoard
from hil.devices.board.port import port_path
from hil.errors import ConfigError, DeviceError
from hil.runs import assembly
from hil.runs.plan import Plan

RIG = Path("rig.toml")
TTY = "/dev/ttyUSB0"


def meant(address, serial, on_bench=True):
    return RigBoard(RIG, "board", address, serial, on_bench)


@pytest.mark.parametrize(
    ("address", "serial", "number"),
    [
        (TTY, "42", 42),
        ("usb:HIL-1", None, 42),
        ("usb:HIL-1", None, UNMARKED),  # only the one with that USB serial number is opened
        ("usb:HIL-1", "42", 42),
        ("usb:HIL-1", "usb:HIL-1", UNMARKED),
    ],
)
def test_a_board_that_its_rig_names_is_taken(address, serial, number):
    meant(address, serial).check(number)
    meant(address, serial, on_bench=False).check(number)


@pytest.mark.parametrize("on_bench", [True, False])
@pytest.mark.parametrize(
    ("address", "serial", "number", "seen"),
    [
        (TTY, "42", 43, "43"),
        (TTY, "42", UNMARKED, "none"),
        (TTY, "usb:HIL-1", UNMARKED, "none"),
        ("usb:HIL-1", "42", 43, "43"),
        ("usb:HIL-1", "42", UNMARKED, "usb:HIL-1"),
        ("usb:HIL-1", "usb:HIL-1", 42, "42"),
        ("usb:HIL-1", "usb:HIL-2", UNMARKED, "usb:HIL-1"),
    ],
)
def test_another_board_is_refused_on_the_bench_and_in_simulation(
    address, serial, number, seen, on_bench
):
    with pytest.raises(DeviceError) as refused:
        meant(address, serial, on_bench).check(number)
    said = str(refused.value)
    assert said.startswith(
        f"rig.toml: devices.board.serial = '{serial}': the board at {address} has serial {seen}: "
    )
    assert said.endswith(f'write serial = "{seen}"') == (seen != "none")


def test_a_device_path_alone_names_no_board_on_the_bench_and_any_in_simulation():
    with pytest.raises(ConfigError, match=r"^rig.toml: devices.board.serial: missing: .*ttyUSB0 "
                       r'.*: if the one there now is meant, write serial = "42"$'):  # fmt: skip
        meant(TTY, None).check(42)
    meant(TTY, None, on_bench=False).check(42)


@pytest.mark.parametrize(("usb", "remedy"), [("A7", 'port = "usb:A7"$'), (None, "docs/how-to")])
def test_a_board_without_a_number_is_known_by_its_usb_bridge_if_that_has_one(
    monkeypatch, tmp_path, usb, remedy
):
    (tmp_path / "ttyUSB0").touch()
    link = tmp_path / "board"
    link.symlink_to(tmp_path / "ttyUSB0")
    ports = [
        SimpleNamespace(device="/dev/ttyS0", serial_number="S0"),
        SimpleNamespace(device=os.path.realpath(link), serial_number=usb),
    ]
    monkeypatch.setattr(list_ports, "comports", lambda: ports)
    with pytest.raises(ConfigError, match=rf"no serial number of its own: .*{remedy}"):
        meant(str(link), None).check(UNMARKED)


@pytest.mark.parametrize("backend", ["sim", "emulated"])
def test_a_simulated_board_has_the_number_that_its_rig_names(configs, backend):
    for serial, seen in (("7", 7), ("usb:HIL-0001", UNMARKED), (None, 1)):
        sets = [] if serial is None else [f"devices.board.serial='{serial}'"]
        config = hil.load(configs / "miga6/all_on.toml", sets)
        rig = assembly.build(Plan(config, f"board={backend}")).rig
        with rig.opened():
            assert rig.identities()["board"]["serial"] == seen


def test_a_simulated_run_of_a_rig_that_names_another_usb_bridge_is_refused(configs, tmp_path):
    config = hil.load(configs / "miga6/all_on.toml", ["devices.board.serial='usb:HIL-0002'"])
    out = tmp_path / "run.h5"
    with pytest.raises(DeviceError, match=r"serial = 'usb:HIL-0002': .* serial usb:HIL-0001: "):
        hil.run(config, out=out)
    assert not out.exists()


@pytest.mark.parametrize("serial", ["HIL-1", "042", "-1", "usb:", ""])
def test_a_serial_number_that_no_board_reports_is_refused_when_the_file_is_read(configs, serial):
    with pytest.raises(ConfigError, match=r"devices.board.serial.*: give the number that hil dev"):
        hil.load(configs / "miga6/all_on.toml", [f"devices.board.serial='{serial}'"])


def test_two_boards_of_a_rig_have_two_serial_numbers(configs):
    sets = ["devices.board_a.serial='42'", "devices.board_b.serial=42"]
    with pytest.raises(ConfigError, match=r"devices.board_b.serial = '42': is also that of 'boa"):
        hil.load(configs / "array14/groups.toml", sets)


def test_two_boards_of_a_rig_have_two_ports(configs):
    sets = ["devices.board_b.port='usb:HIL-0003'"]
    with pytest.raises(ConfigError, match=r"devices.board_b.port = 'usb:HIL-0003': is also that o"):
        hil.load(configs / "array14/groups.toml", sets)


def test_a_usb_serial_number_that_two_bridges_have_names_neither(monkeypatch):
    ports = [SimpleNamespace(device=f"/dev/ttyUSB{i}", serial_number=s)
             for i, s in enumerate(("0001", "0002", "0001", None))]  # fmt: skip
    monkeypatch.setattr(list_ports, "comports", lambda: ports)
    assert port_path("board", "usb:0002") == "/dev/ttyUSB1"
    with pytest.raises(DeviceError, match=r"^board: /dev/ttyUSB0 and /dev/ttyUSB2 have the USB"):
        port_path("board", "usb:0001")
