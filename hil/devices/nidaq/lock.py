"""A card belongs to one run at a time."""

import fcntl
import os
import tempfile
from pathlib import Path
from typing import TextIO

from hil.errors import DeviceError


class CardLock:
    """Held from opening a card until it is closed, or its holder is gone.

    The library reserves what a task uses, not the card: two runs on different channels of one
    card would take each other's clock and watchdog.

    Raises
    ------
    DeviceError
        Another process holds the card; it is named.
    """

    def __init__(self, name: str, card: str, serial: int) -> None:
        path = Path(tempfile.gettempdir()) / f"hil-nidaq-{serial:08X}.lock"
        try:
            self._file: TextIO = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+")
        except OSError as error:
            raise DeviceError(f"{name}: {path} cannot be opened: {error.strerror}") from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = self._file.read().strip() or "unknown"
            self._file.close()
            raise DeviceError(f"{name}: {card} is held by process {holder}") from None
        self._file.truncate(0)
        self._file.write(str(os.getpid()))
        self._file.flush()

    def release(self) -> None:
        self._file.close()
