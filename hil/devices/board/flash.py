"""`hil board flash`: firmware and fuses into a board, with avrdude."""

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from hil.devices.board import bundled_firmware, fuses, listing, protocol
from hil.devices.board.native import places_of
from hil.devices.board.port import port_path
from hil.errors import ConfigError, DeviceError
from hil.platform.terminal import say

BOOT_LOADER = "arduino"  # what avrdude calls a bootloader that speaks STK500 v1, such as Optiboot
BAUD = 115_200
NAMES = ("lfuse", "hfuse", "efuse")
TIMEOUT_S = 120.0
ATTEMPTS = 3  # of avrdude, to meet the bootloader: 5 s each
RESTARTS = 5  # attempts to meet the new firmware: the bootloader waits a second before it


@dataclass(frozen=True)
class Image:
    """Firmware to be flashed, and the identity that it will report."""

    path: Path
    wire_hash: int
    firmware_hash: int


def image(path: Path | None, build: str = "board") -> Image:
    """The shipped image of a build, or a named Intel HEX file.

    Raises
    ------
    ConfigError
        It does not exist, or is not the firmware of a driver board.
    """
    places = places_of(f"{build}.hex")
    file = path or next((p for p in places if p.is_file()), None)
    if file is None:
        raise ConfigError(
            f"{places[-1]}: the image has not been built: make -C firmware avr "
            "(needs: apt-get install gcc-avr avr-libc), or name one with --image FILE.hex"
        )
    return Image(file, *bundled_firmware.image_hashes(file))


@dataclass(frozen=True)
class Writing:
    """What is written into a board, and through what.

    Attributes
    ----------
    image : an Intel HEX file; None: the shipped image of `build`
    build : `board`, or `arduino` for one without multiplexers
    programmer, programmer_port : at the board's six pins; None: its boot loader
    boot_loader : an Intel HEX file, written beside the image
    fuses_alone : no image
    baud : of the boot loader; 57 600 on Nanos sold before 2018
    """

    image: Path | None
    build: str
    programmer: str | None
    programmer_port: str
    boot_loader: Path | None
    fuses_alone: bool
    baud: int = BAUD


def flashed(address: str, writing: Writing) -> protocol.Fields:
    """Write image or fuses with avrdude, then query the board; returns its identity.

    A programmer erases the chip, boot loader included, writes the fuses and reads them back. A boot
    loader can do neither: there the board's own reading of its fuses is shown.

    Raises
    ------
    ConfigError
        avrdude is missing, options conflict, or the image has another protocol version.
    DeviceError
        avrdude failed, or the board reports a different identity.
    """
    if writing.programmer is None and (writing.fuses_alone or writing.boot_loader):
        what = "--fuses" if writing.fuses_alone else "--boot-loader"
        raise ConfigError(
            f"{what}: a boot loader can write neither fuses nor itself: name a programmer at the "
            "board's six pins (--programmer usbasp, ...); hil board limits PORT shows the fuses"
        )
    if writing.fuses_alone and (writing.image or writing.boot_loader):
        raise ConfigError("--fuses writes the fuses alone: leave out --image and --boot-loader")
    if shutil.which("avrdude") is None:
        raise ConfigError("hil board flash needs avrdude: sudo apt-get install avrdude")
    new = None if writing.fuses_alone else image(writing.image, writing.build)
    if new is not None and new.wire_hash != protocol.WIRE_HASH:
        raise ConfigError(
            f"{new.path}: speaks another version of the protocol than this hil: use the shipped "
            f"image"
        )
    if writing.programmer is None:
        assert new is not None
        port = port_path("board", address)
        _avrdude(address, ["-c", BOOT_LOADER, "-P", port, "-b", str(writing.baud), "-D",
                           "-x", f"attempts={ATTEMPTS}", *_flash_words(new.path)])  # fmt: skip
        return _confirm(address, new)
    at = ["-c", writing.programmer, "-P", writing.programmer_port]
    high = fuses.high(writing.boot_loader is not None)
    if new is None:  # where a reset begins depends on what is in the chip
        boots = fuses.BOOTSZ1 | fuses.BOOTSZ0 | fuses.BOOTRST
        high = high & ~boots | _read_fuses(address, at)[1] & boots
    goal = (fuses.LOW, high, fuses.EXTENDED)
    images = [] if new is None else [*_flash_words(new.path), *_flash_words(writing.boot_loader)]
    # -e: the chip is erased first, since only ones can become zeros; fuses first, for EESAVE
    set_fuses = [word for n, value in zip(NAMES, goal, strict=True)
                 for word in ("-U", f"{n}:w:0x{value:02X}:m")]  # fmt: skip
    _avrdude(address, [*at, *set_fuses])
    if images:
        _avrdude(address, [*at, "-e", *images])
    readback = _read_fuses(address, at)
    say(f"fuses read back: {fuses.as_text(readback)}")
    if (*readback[:2], readback[2] & fuses.BODLEVEL) != (*goal[:2], goal[2] & fuses.BODLEVEL):
        raise DeviceError(
            f"board: {address}: its fuses are {fuses.as_text(readback)} after "
            f"{fuses.as_text(goal)} was written: they did not take"
        )
    return _confirm(address, new)


def _flash_words(path: Path | None) -> list[str]:
    return ["-U", f"flash:w:{path}:i"] if path else []


def _avrdude(address: str, arguments: list[str]) -> str:
    """Run avrdude; returns its output."""
    try:
        done = subprocess.run(
            ["avrdude", "-q", "-p", "atmega328p", *arguments],
            capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise DeviceError(f"board: {address}: avrdude took longer than {TIMEOUT_S:g} s") from None
    if done.returncode != 0:
        raise DeviceError(f"board: {address}: avrdude: {_reason(done.stderr)}")
    return done.stdout


def _read_fuses(address: str, at: list[str]) -> tuple[int, int, int]:
    reading = [word for name in NAMES for word in ("-U", f"{name}:r:-:h")]
    texts = re.findall(r"^0x([0-9a-fA-F]{1,2})$", _avrdude(address, [*at, *reading]), re.MULTILINE)
    if len(texts) != len(NAMES):
        raise DeviceError(f"board: {address}: avrdude read no fuses")
    low, high, extended = (int(byte, 16) for byte in texts)
    return low, high, extended


def _confirm(address: str, new: Image | None) -> protocol.Fields:
    """The identity of the board with its new firmware."""
    identity = _identify(address)
    if new is not None and identity["firmware_hash"] != new.firmware_hash:
        raise DeviceError(
            f"board: {address}: runs firmware {identity['firmware_hash']:08x} after flashing "
            f"{new.firmware_hash:08x}: the image did not take"
        )
    if fuses.problems(identity["fuses"]):
        say(
            "its fuses do not protect, and a boot loader cannot write them: no run is armed before "
            f"hil board flash {address} --programmer NAME --fuses, unless the rig accepts them as "
            'delivered (fuses = "as_delivered")',
            file=sys.stderr,
        )
    return identity


def _reason(output: str) -> str:
    """Avrdude's own first complaint."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    wrong = [line for line in lines if "error" in line or "not in sync" in line]
    first = (wrong or lines or ["no message"])[0].removeprefix("avrdude: ")
    return f"{first}: is the board powered, and its flashing jumper closed?"


def _identify(address: str) -> protocol.Fields:
    for _ in range(RESTARTS - 1):
        try:
            return listing.identity(address)
        except DeviceError:
            continue
    return listing.identity(address)
