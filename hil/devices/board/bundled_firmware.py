"""The hash of the firmware shipped with this hil, as a board reports it in `identify`."""

import hashlib
from functools import cache
from pathlib import Path

import numpy as np

from hil.devices.board import protocol
from hil.devices.board.native import NativeBoard, places_of


@cache
def shipped_hash() -> int:
    """From the sources in a checkout; from the simulated board, made of them, in a package.

    Raises
    ------
    ConfigError
        There is neither.
    """
    folder = places_of("")[1].parent
    if (folder / "Makefile").is_file():
        return source_hash(folder)
    board = NativeBoard(1, protocol.default_limits(), 0.0, np.random.default_rng(0))
    board.write(protocol.encode("identify", 1))
    (identity,) = protocol.Decoder().feed(board.read(0.0))
    return int(identity["firmware_hash"])


def source_hash(folder: Path) -> int:
    """FIRMWARE_HASH of firmware/Makefile: core, port.h and the chip's port, one after the other."""
    core, chip = folder / "core", folder / "port" / "atmega328p"
    files = [*sorted(core.glob("*.c")), *sorted(core.glob("*.h")), folder / "port" / "port.h"]
    text = b"".join(path.read_bytes() for path in [*files, *sorted(chip.glob("*.c"))])
    return int(hashlib.sha256(text).hexdigest()[:8], 16)
