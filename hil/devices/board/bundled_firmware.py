"""The firmware shipped with this hil: its builds and images, and their hashes in `identify`."""

import hashlib
import struct
from functools import cache
from pathlib import Path

import numpy as np

from hil.devices.board import protocol
from hil.devices.board.native import NativeBoard, built, places_of
from hil.errors import ConfigError

ARDUINO = "arduino"
BUILDS = ("board", ARDUINO)
TAG = b"HILBOARD"  # in an image; its two hashes follow


def sources() -> list[Path]:
    """The files of the board as a library: its core, and its pins on a PC.

    Raises
    ------
    ConfigError
        They are neither in a checkout nor in the package.
    """
    for folder in (places_of("core")[0].parent, places_of("")[1].parent):
        core, host = folder / "core", folder / "port" / "host"
        if (core / "board.c").is_file():
            pins = [folder / "port" / "port.h", host / "libboard.h", host / "libboard.c"]
            return [*sorted(core.glob("*.h")), *sorted(core.glob("*.c")), *pins]
    raise ConfigError("the sources of the firmware are not installed: use a checkout of hil")


@cache
def shipped_hash(build: str = "board") -> int:
    """From the sources in a checkout; in a package from the image, or the simulated board.

    Raises
    ------
    ConfigError
        There is neither.
    """
    folder = places_of("")[1].parent
    if (folder / "Makefile").is_file():
        return source_hash(folder, build)
    if build != "board":
        return image_hashes(built(f"{build}.hex"))[1]
    board = NativeBoard(1, protocol.default_limits(), np.random.default_rng(0))
    board.write(protocol.encode("identify", 1))
    (identity,) = protocol.Decoder().feed(board.read(0.0))
    return int(identity["firmware_hash"])


def image_hashes(path: Path) -> tuple[int, int]:
    """Hashes of the protocol and of the firmware in an image, an Intel HEX file.

    Raises
    ------
    ConfigError
        It cannot be read, or is not the firmware of a driver board.
    """
    try:
        records = path.read_text(encoding="ascii").split()
        data = b"".join(bytes.fromhex(r[9:-2]) for r in records if r[7:9] == "00")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not an Intel HEX file"
        raise ConfigError(f"{path}: {reason}: give firmware/build/board.hex") from None
    at = data.find(TAG)
    if at < 0 or len(data) < at + len(TAG) + 8:
        raise ConfigError(f"{path}: not the firmware of a driver board")
    protocol_hash, firmware_hash = struct.unpack_from("<II", data, at + len(TAG))
    return protocol_hash, firmware_hash


def source_hash(folder: Path, build: str = "board") -> int:
    """FIRMWARE_HASH of firmware/Makefile: core, port.h and the chip's port, one after the other.

    That of another build has its name at the end.
    """
    core, chip = folder / "core", folder / "port" / "atmega328p"
    files = [*sorted(core.glob("*.c")), *sorted(core.glob("*.h")), folder / "port" / "port.h"]
    text = b"".join(path.read_bytes() for path in [*files, *sorted(chip.glob("*.c"))])
    text += b"" if build == "board" else build.encode()
    return int(hashlib.sha256(text).hexdigest()[:8], 16)
