"""Flashing with the real avrdude, against a bootloader played behind a pty."""

import contextlib
import json
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import threading
import tty

import numpy as np
import pytest

from firmware.boards import need_avr
from hil.__main__ import main
from hil.devices.board import bundled_firmware, flash, protocol
from hil.devices.board.native import NativeBoard, built

# Opcodes, answers and parameters of Atmel's application note AVR061 (STK500 protocol, 1.x).
OK, IN_SYNC, END = b"\x10", b"\x14", 0x20
SIGNATURE = bytes((0x1E, 0x95, 0x0F))  # ATmega328P
LENGTHS = {0x30: 0, 0x41: 1, 0x42: 20, 0x45: 5, 0x50: 0, 0x51: 0, 0x55: 2, 0x56: 4, 0x74: 3,
           0x75: 0}  # fmt: skip
SYNC, PARAMETER, LEAVE, ADDRESS, UNIVERSAL, PROGRAM, READ, SIGN = (
    0x30, 0x41, 0x51, 0x55, 0x56, 0x64, 0x74, 0x75,
)  # fmt: skip


class Bootloader:
    """A chip that is flashed, and runs the firmware's core afterwards."""

    def __init__(self, after=None):
        self.flash = bytearray(b"\xff" * 32768)
        self.left = False
        self._board = after or NativeBoard(42, protocol.default_limits(), np.random.default_rng(0))
        self._at = 0
        self._buffer = b""

    def take(self, data):
        """The answer to bytes from the line."""
        if self.left:
            self._board.write(data)
            return self._board.read(1.0)
        self._buffer += data
        answer = b""
        while (n := self._length()) and len(self._buffer) >= n:
            command, self._buffer = self._buffer[:n], self._buffer[n:]
            answer += IN_SYNC + self._do(command) + OK
        return answer

    def _length(self):
        """Bytes of the command that the buffer begins with, with its end; 0: not known yet."""
        if not self._buffer:
            return 0
        if self._buffer[0] == PROGRAM:
            return 5 + int.from_bytes(self._buffer[1:3], "big") if len(self._buffer) > 2 else 0
        if self._buffer[0] not in LENGTHS:
            self._buffer = self._buffer[1:]
            return self._length()
        return LENGTHS[self._buffer[0]] + 2

    def _do(self, command):
        assert command[-1] == END
        code, at = command[0], 2 * self._at
        if code == ADDRESS:
            self._at = int.from_bytes(command[1:3], "little")
        elif code == PROGRAM:
            self.flash[at : at + len(command) - 5] = command[4:-1]
        elif code == READ:
            return bytes(self.flash[at : at + int.from_bytes(command[1:3], "big")])
        elif code == SIGN:
            return SIGNATURE
        elif code in (PARAMETER, UNIVERSAL):
            return b"\x03"
        self.left = code == LEAVE
        return b""


@contextlib.contextmanager
def behind_a_pty(far):
    """Path of a terminal whose far end is this."""
    master, near = pty.openpty()
    tty.setraw(near)
    stop = threading.Event()

    def serve():
        while not stop.is_set():
            if select.select([master], [], [], 0.02)[0]:
                os.write(master, far.take(os.read(master, 4096)))

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield os.ttyname(near)
    finally:
        stop.set()
        thread.join()
        os.close(master)
        os.close(near)


def need_avrdude():
    """With CI set, a test without it fails."""
    if shutil.which("avrdude") is None and "CI" not in os.environ:
        pytest.skip("left out: avrdude is missing: sudo apt-get install avrdude")


@pytest.fixture(scope="module")
def image(build, tmp_path_factory):
    """The image, in whose place nothing of the checkout is touched."""
    need_avr()
    need_avrdude()
    folder = tmp_path_factory.mktemp("image")
    for name in ("board.hex", "arduino.hex"):
        shutil.copy(build("avr") / name, folder)
    return folder / "board.hex"


@pytest.mark.slow
def test_a_board_is_flashed_met_again_and_its_hash_compared(image, capsys):
    chip = Bootloader()
    with behind_a_pty(chip) as path:
        assert main(["board", "flash", path, "--image", str(image)]) == 0
    said = capsys.readouterr().out
    new = flash.image(image)
    assert f"firmware {new.firmware_hash:08x}" in said
    assert "serial 42" in said
    binary = image.with_suffix(".bin")
    subprocess.run(["avr-objcopy", "-I", "ihex", "-O", "binary", image, binary], check=True)
    assert chip.flash.startswith(binary.read_bytes())


def test_an_image_that_did_not_take_is_noticed(image, tmp_path, capsys):
    """The board behind this bootloader goes on to run what it always ran."""
    text = image.read_text().splitlines()
    data = b"".join(bytes.fromhex(line[9:-2]) for line in text if line[7:9] == "00")
    at = data.find(bundled_firmware.TAG) + len(bundled_firmware.TAG) + 4
    other = data[:at] + bytes(4) + data[at + 4 :]
    changed = tmp_path / "other.bin"
    changed.write_bytes(other)
    hexed = tmp_path / "other.hex"
    subprocess.run(["avr-objcopy", "-I", "binary", "-O", "ihex", changed, hexed], check=True)
    with behind_a_pty(Bootloader()) as path:
        assert main(["board", "flash", path, "--image", str(hexed)]) == 4
    said = capsys.readouterr().err
    assert re.search("runs firmware [0-9a-f]{8} after flashing 00000000: .*did not take", said)


def test_a_port_without_a_bootloader_is_one_line_with_what_to_check(image, capsys):
    class Other:
        def take(self, data):
            return bytes(len(data))

    with behind_a_pty(Other()) as path:
        assert main(["board", "flash", path, "--image", str(image)]) == 4
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert "jumper" in said[0]


@pytest.mark.parametrize("text", ["no hex\n", ":00000001FF\n"])
def test_what_is_no_firmware_is_refused_before_the_port_is_touched(tmp_path, capsys, text):
    need_avrdude()
    path = tmp_path / "bad.hex"
    path.write_text(text)
    assert main(["board", "flash", "/dev/nothing", "--image", str(path)]) == 2
    assert "bad.hex" in capsys.readouterr().err


def test_without_avrdude_its_package_is_named(image, capsys, monkeypatch):
    monkeypatch.setattr(flash.shutil, "which", lambda name: None)
    assert main(["board", "flash", "/dev/nothing", "--image", str(image)]) == 2
    assert "apt-get install avrdude" in capsys.readouterr().err


HOLD = "import sys, serial; s = serial.Serial(sys.argv[1], exclusive=True); print(); input()"


def test_a_port_held_by_another_process_is_named_with_its_holder(capsys, monkeypatch):
    board = subprocess.Popen([built("board_pty"), "6", "42"], stdout=subprocess.PIPE, text=True)
    path = board.stdout.readline().strip()
    holder = subprocess.Popen([sys.executable, "-c", HOLD, path], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True)  # fmt: skip
    try:
        holder.stdout.readline()
        assert main(["board", "limits", path]) == 4
        assert f"held by process {holder.pid}, python" in capsys.readouterr().err
        monkeypatch.setattr(
            "hil.devices.board.listing.serial_ports",
            lambda: [{"port": path, "usb": "X1", "what": "?"}],
        )
        assert main(["devices", "--identify"]) == 0
        assert f"held by process {holder.pid}" in capsys.readouterr().out
        holder.communicate("\n")
        assert main(["devices", "--identify"]) == 0
        assert "driver board 42, 6 cells, firmware " in capsys.readouterr().out
    finally:
        for process in (holder, board):
            process.terminate()
            process.wait(300)
            process.stdout.close()


# --- with a programmer: an avrdude that keeps what it is told to write ---

FAKE = """#!{python}
import json, sys
from pathlib import Path
kept = Path({state!r})
state = json.loads(kept.read_text())
words = sys.argv[1:]
state["runs"].append(words)
if "-e" in words:
    state["flash"] = []
for at, word in enumerate(words):
    if word != "-U":
        continue
    name, what, value = words[at + 1].split(":")[:3]
    if what == "r":
        print(hex(state["fuses"][name]))
    elif name == "flash":
        state["flash"].append(value)
    elif name not in state["stuck"]:
        state["fuses"][name] = int(value, 0)
kept.write_text(json.dumps(state))
"""


class Programmer:
    """What the chip at it holds, and how avrdude was called."""

    def __init__(self, folder, fuses=(0x62, 0xD9, 0xFF), stuck=()):
        self._kept = folder / "chip.json"
        names = dict(zip(flash.NAMES, fuses, strict=True))
        state = {"fuses": names, "flash": ["blinker.hex"], "runs": [], "stuck": stuck}
        self._kept.write_text(json.dumps(state))
        program = folder / "avrdude"
        program.write_text(FAKE.format(python=sys.executable, state=str(self._kept)))
        program.chmod(0o755)

    def __getitem__(self, name):
        return json.loads(self._kept.read_text())[name]


@pytest.fixture
def programmer(tmp_path, monkeypatch, image):
    """A fresh chip, at the factory's fuses, behind a programmer."""
    chip = Programmer(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    found = {"firmware_hash": flash.image(image).firmware_hash, "serial": 42, "n_cells": 12}
    checked = sum(1 << bit for bit in protocol.FAULTS.values())
    found |= {"faults_checked": checked}
    rest = {"scan_period_us": 4000, "limits": protocol.default_limits(), "wire_agrees": True}
    monkeypatch.setattr(
        flash.listing,
        "identity",
        lambda address: found | rest | {"fuses": tuple(chip["fuses"].values())},
    )
    return chip


def test_an_arduino_is_flashed_through_its_boot_loader_at_its_baud(programmer, image, monkeypatch):
    """`arduino` is the programmer by which avrdude means a boot loader of STK500 v1."""
    uno = image.with_name("arduino.hex")
    monkeypatch.setattr(flash, "places_of", lambda name: (image.with_name(name),) * 2)
    new = flash.image(None, "arduino")
    assert new.path == uno
    assert new.firmware_hash != flash.image(image).firmware_hash
    identity = flash.listing.identity("")
    lacking = protocol.FAULTS_MEASURED
    monkeypatch.setattr(
        flash.listing, "identity",
        lambda address: identity | {
            "firmware_hash": new.firmware_hash,
            "faults_checked": identity["faults_checked"] & ~lacking,
        },
    )  # fmt: skip
    words = ["board", "flash", "--port", "/dev/ttyACM0", "--build", "arduino", "--baud", "57600"]
    assert main(words) == 0
    (called,) = programmer["runs"]
    expected = [
        "-q",
        "-p",
        "atmega328p",
        "-c",
        "arduino",
        "-P",
        "/dev/ttyACM0",
        "-b",
        "57600",
        "-D",
    ]
    assert called[: len(expected)] == expected
    assert called[-2:] == ["-U", f"flash:w:{uno}:i"]


def test_after_flashing_an_arduino_what_it_cannot_find_is_said(programmer, image, capsys):
    assert main(["board", "flash", "/dev/board", "--image", str(image)]) == 0
    assert "it finds every fault" in capsys.readouterr().out
    found = flash.listing.identity("")
    text = flash.listing.checked_as_text(found["faults_checked"] & ~protocol.FAULTS_MEASURED)
    assert text == (
        "it measures nothing and cannot find current_high, current_low, current_when_off, "
        "temperature_high, temperature_range, scan_untrue, supply_stuck"
    )


@pytest.mark.parametrize("words", [["a", "--port", "b"], []])
def test_one_port_is_needed(words, capsys):
    assert main(["board", "flash", *words]) == 2
    assert "PORT" in capsys.readouterr().err


BY_PROGRAMMER = ["board", "flash", "/dev/board", "--programmer", "usbasp"]


def test_a_programmer_writes_fuses_and_an_erased_chip_and_reads_the_fuses_back(
    programmer, image, capsys
):
    """Full swing crystal, WDTON and EESAVE programmed, no boot loader, brown-out at 4.3 V."""
    assert main([*BY_PROGRAMMER, "--image", str(image)]) == 0
    assert programmer["fuses"] == {"lfuse": 0xF7, "hfuse": 0xC7, "efuse": 0xFC}
    assert programmer["flash"] == [str(image)]
    assert not any("-D" in words for words in programmer["runs"])
    assert all(["-c", "usbasp", "-P", "usb"] == words[3:7] for words in programmer["runs"])
    said = capsys.readouterr().out
    assert "fuses read back: low 0xF7, high 0xC7, extended 0xFC" in said
    assert "WRONG" not in said


def test_with_a_boot_loader_a_reset_begins_in_it(programmer, image, tmp_path):
    boot = tmp_path / "boot.hex"
    boot.write_text(":00000001FF\n")
    words = ["--image", str(image), "--boot-loader", str(boot)]
    assert main([*BY_PROGRAMMER, *words]) == 0
    assert programmer["fuses"]["hfuse"] == 0xC6
    assert programmer["flash"] == [str(image), str(boot)]


def test_the_fuses_alone_leave_program_and_start_as_they_are(programmer):
    """The factory's 0xD9 begins at 0 with a section of 2048 words."""
    assert main([*BY_PROGRAMMER, "--fuses"]) == 0
    assert programmer["fuses"] == {"lfuse": 0xF7, "hfuse": 0xC1, "efuse": 0xFC}
    assert programmer["flash"] == ["blinker.hex"]


def test_fuses_that_do_not_take_are_said(programmer, tmp_path, capsys):
    Programmer(tmp_path, stuck=["hfuse"])
    assert main([*BY_PROGRAMMER, "--fuses"]) == 4
    said = capsys.readouterr().err
    assert "high 0xD9" in said
    assert "did not take" in said


@pytest.mark.parametrize("option", [["--fuses"], ["--boot-loader", "boot.hex"]])
def test_a_boot_loader_cannot_write_fuses_nor_itself(programmer, option, capsys):
    assert main(["board", "flash", "/dev/board", *option]) == 2
    said = capsys.readouterr().err.strip()
    assert len(said.splitlines()) == 1
    assert "name a programmer" in said
    assert programmer["runs"] == []


def test_through_a_boot_loader_the_chip_is_not_erased_and_wrong_fuses_are_said(
    programmer, image, capsys
):
    assert main(["board", "flash", "/dev/board", "--image", str(image)]) == 0
    (words,) = programmer["runs"]
    assert "-D" in words
    assert "-e" not in words
    said = capsys.readouterr()
    assert "--programmer NAME --fuses" in said.err
    assert "WRONG: WDTON" in said.out
    assert "WRONG: BODLEVEL" in said.out
