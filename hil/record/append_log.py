"""An append-only file of lines that detects its own damage.

Every line is a JSON object with its own `crc`: the CRC-32 of the line without it, continued from
the previous line. This detects a changed, lost or moved line. `add` returns after the line is on
disk. An incomplete last line, left by a killed process, is removed when the file is opened again.
"""

import json
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

from hil.config.values import Figures
from hil.errors import ConfigError, one_line, writing
from hil.platform import locks

Entry = Figures


class HeldError(ConfigError):
    """Another process writes to the file."""


class AppendLog:
    """An open append-only log, locked against other processes until it is closed.

    Parameters
    ----------
    path : the file; it and its folder are created if missing
    wait : wait until another process releases it; else HeldError

    Attributes
    ----------
    entries : content of the file, line by line, without the checksums
    torn : its last line was cut off and has been removed

    Raises
    ------
    HeldError
        Another process has it open.
    ConfigError
        The file cannot be written, or is damaged before its last line.
    """

    def __init__(self, path: Path, *, wait: bool = False) -> None:
        self.path = path
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file: BinaryIO = path.open("a+b")
        try:
            locks.acquire(self._file, wait=wait)
        except OSError:
            self._file.close()
            raise HeldError(f"{path}: another process writes to it: let it end first") from None
        try:
            self.entries, whole_B, self._crc = _parsed(path, path.read_bytes())
        except BaseException:
            self._file.close()
            raise
        self.torn = whole_B < path.stat().st_size
        if self.torn:
            self._file.truncate(whole_B)

    def __enter__(self) -> "AppendLog":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, entry: Mapping[str, object]) -> None:
        """Append a line and sync it to disk.

        Raises
        ------
        ConfigError
            The disk is full; the existing lines stay intact.
        """
        text = json.dumps(entry, allow_nan=False)
        crc = zlib.crc32(text.encode(), self._crc)
        line = (json.dumps({**entry, "crc": crc}, allow_nan=False) + "\n").encode()
        before_B = os.fstat(self._file.fileno()).st_size
        try:
            self._file.write(line)
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            self._file.truncate(before_B)
            raise ConfigError(f"{self.path}: cannot be written ({error.strerror})") from None
        self._crc = crc
        self.entries.append(json.loads(text))


def read_log(path: Path) -> list[Entry]:
    """Entries of an append-only log, read only; empty if there is none.

    Raises
    ------
    ConfigError
        The file cannot be read, or is damaged before its last line.
    """
    try:
        return _parsed(path, path.read_bytes())[0]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from None


def _parsed(path: Path, data: bytes) -> tuple[list[Entry], int, int]:
    """Entries, their size in bytes, and the checksum after the last one."""
    entries: list[Entry] = []
    whole_B = crc = 0
    lines = data.split(b"\n")
    for number, line in enumerate(lines[:-1], start=1):  # omits an incomplete last line
        try:
            entry = json.loads(line)
            stated = entry.pop("crc")
            checksum = zlib.crc32(json.dumps(entry).encode(), crc)
        except (ValueError, KeyError, AttributeError, TypeError):
            stated, checksum = 0, -1
        if stated != checksum:
            if number == len(lines) - 1 and not lines[-1]:
                break  # the last line, whose content did not reach the disk
            raise ConfigError(
                one_line(f"{path}: line {number} is damaged, or a line before it is missing: ")
                + "restore a copy, or move the file away"
            )
        entries.append(entry)
        whole_B, crc = whole_B + len(line) + 1, checksum
    return entries, whole_B, crc
