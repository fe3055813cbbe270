"""`hil board flash`: the firmware into a board, through its bootloader and avrdude."""

import shutil
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hil import wire
from hil.devices.native_board import places_of
from hil.devices.port import port_path
from hil.errors import ConfigError, DeviceError
from hil.views import boards

PROGRAMMER = "arduino"  # what avrdude calls a bootloader that speaks STK500 v1, such as Optiboot
BAUD = 115_200
TAG = b"HILBOARD"  # in the image; its two hashes follow
TIMEOUT_S = 120.0
ATTEMPTS = 3  # of avrdude, to meet the bootloader: 5 s each
RESTARTS = 5  # attempts to meet the new firmware: the bootloader waits a second before it


@dataclass(frozen=True)
class Image:
    """Firmware to be flashed, and what it will say of itself."""

    path: Path
    wire_hash: int
    firmware_hash: int


def image(path: Path | None) -> Image:
    """The shipped image, or a named Intel HEX file.

    Raises
    ------
    ConfigError
        There is none, or it is not the firmware of a driver board.
    """
    found = path or next((p for p in places_of("board.hex") if p.is_file()), None)
    if found is None:
        raise ConfigError(
            f"{places_of('board.hex')[-1]}: the image has not been built: make -C firmware avr "
            "(needs: apt-get install gcc-avr avr-libc), or name one with --image FILE.hex"
        )
    try:
        records = found.read_text(encoding="ascii").split()
        data = b"".join(bytes.fromhex(r[9:-2]) for r in records if r[7:9] == "00")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "no Intel HEX file"
        raise ConfigError(f"{found}: {reason}: give firmware/build/board.hex") from None
    at = data.find(TAG)
    if at < 0 or len(data) < at + len(TAG) + 8:
        raise ConfigError(f"{found}: not the firmware of a driver board")
    hashes = struct.unpack_from("<II", data, at + len(TAG))
    return Image(found, *hashes)


def flash(address: str, new: Image, programmer: str = PROGRAMMER) -> dict[str, Any]:
    """Write an image with avrdude, then meet the board and compare hashes; its identity.

    Raises
    ------
    ConfigError
        avrdude is not there, or the image speaks another wire than this hil.
    DeviceError
        avrdude failed, or the board says it is something else.
    """
    if shutil.which("avrdude") is None:
        raise ConfigError("hil board flash needs avrdude: sudo apt-get install avrdude")
    if new.wire_hash != wire.WIRE_HASH:
        raise ConfigError(
            f"{new.path}: speaks another version of the wire than this hil: take its own image"
        )
    path = port_path("board", address)
    command = ["avrdude", "-q", "-p", "atmega328p", "-c", programmer, "-P", path]
    command += ["-b", str(BAUD), "-D", "-U", f"flash:w:{new.path}:i"]
    if programmer == PROGRAMMER:
        command += ["-x", f"attempts={ATTEMPTS}"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise DeviceError(f"board: {address}: avrdude took longer than {TIMEOUT_S:g} s") from None
    if done.returncode != 0:
        raise DeviceError(f"board: {address}: avrdude: {_reason(done.stderr)}")
    found = _meet(address)
    if found["firmware_hash"] != new.firmware_hash:
        raise DeviceError(
            f"board: {address}: runs firmware {found['firmware_hash']:08x} after flashing "
            f"{new.firmware_hash:08x}: the image did not take"
        )
    return found


def _reason(said: str) -> str:
    """Avrdude's own first complaint."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    wrong = [line for line in lines if "error" in line or "not in sync" in line]
    first = (wrong or lines or ["no message"])[0].removeprefix("avrdude: ")
    return f"{first}: is the board powered, and its flashing jumper closed?"


def _meet(address: str) -> dict[str, Any]:
    for _ in range(RESTARTS - 1):
        try:
            return boards.identity(address)
        except DeviceError:
            continue
    return boards.identity(address)
