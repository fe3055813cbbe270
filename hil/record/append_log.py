"""An append-only file of lines that detects its own damage.

Every line is a JSON object with its own `crc`: the CRC-32 of the line without it, continued from
the previous line. This detects a changed, lost or moved line. `add` returns after the line is on
disk. An incomplete last line, left by a killed process, is removed when the file is opened again.
"""

import contextlib
import json
import os
import zlib
from collections.abc import Mapping
from io import FileIO
from pathlib import Path
from typing import NamedTuple

from hil.config.values import Figures
from hil.errors import ConfigError, one_line, writing
from hil.platform import locks

Entry = Figures


class HeldError(ConfigError):
    """Another process writes to the file."""


class Place(NamedTuple):
    """The end of a line: bytes before it, checksum of the entries so far, and of those bytes."""

    size_B: int = 0
    crc: int = 0
    bytes_crc: int = 0

    def moved(self, line: bytes, crc: int) -> "Place":
        """The end of the next line."""
        return Place(self.size_B + len(line), crc, zlib.crc32(line, self.bytes_crc))

    def is_of(self, data: bytes) -> bool:
        """Whether a log's content is unchanged up to here."""
        size_B = self.size_B
        return len(data) >= size_B and zlib.crc32(memoryview(data)[:size_B]) == self.bytes_crc


START = Place()


class AppendLog:
    """An open append-only log, locked against other processes until it is closed.

    Parameters
    ----------
    path : the file; it and its folder are created if missing
    wait : wait until another process releases it; else HeldError
    after : read only the lines after this place, which the caller knows

    Attributes
    ----------
    entries : content of the file, line by line, without the checksums
    place : its end
    torn : its last line was cut off and has been removed

    Raises
    ------
    HeldError
        Another process has it open.
    ConfigError
        The file cannot be written, or is damaged before its last line.
    """

    def __init__(self, path: Path, *, wait: bool = False, after: Place = START) -> None:
        self.path = path
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            # Without a buffer, which would keep a line that did not fit and try it again.
            self._file: FileIO = path.open("a+b", buffering=0)
        try:
            locks.acquire(self._file, wait=wait)
        except OSError:
            self._file.close()
            raise HeldError(f"{path}: another process writes to it: let it end first") from None
        try:
            self._file.seek(after.size_B)
            self.entries, self.place = parsed(path, self._file.read(), after)
        except BaseException:
            self._file.close()
            raise
        self.torn = self.place.size_B < path.stat().st_size
        if self.torn:
            self._file.truncate(self.place.size_B)

    def __enter__(self) -> "AppendLog":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._file.close()

    def add(self, entry: Mapping[str, object]) -> None:
        """Append a line and sync it to disk.

        If an exception such as KeyboardInterrupt ends it, the line does not count: the next one
        takes its place.

        Raises
        ------
        ConfigError
            The disk is full; the existing lines stay intact.
        """
        text = json.dumps(entry, allow_nan=False)
        crc = zlib.crc32(text.encode(), self.place.crc)
        line = (json.dumps({**entry, "crc": crc}, allow_nan=False) + "\n").encode()
        kept, place = json.loads(text), self.place.moved(line, crc)
        before_B = self.place.size_B
        try:
            self._file.truncate(before_B)  # removes a line that an exception left there
            left = memoryview(line)
            while left:  # a disk that fills up takes a part
                left = left[self._file.write(left) :]
            os.fsync(self._file.fileno())
        except OSError as error:
            with contextlib.suppress(OSError):  # of a disk that is gone, or read-only since
                self._file.truncate(before_B)
            raise ConfigError(f"{self.path}: cannot be written ({error.strerror})") from None
        self.place = place
        self.entries.append(kept)


def read_log(path: Path) -> list[Entry]:
    """Entries of an append-only log, read only; empty if there is none.

    Raises
    ------
    ConfigError
        The file cannot be read, or is damaged before its last line.
    """
    try:
        return parsed(path, path.read_bytes())[0]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from None


def parsed(path: Path, rest: bytes, after: Place = START) -> tuple[list[Entry], Place]:
    """The entries in the rest of a log after a place, and the end of the last of them.

    Raises
    ------
    ConfigError
        The content is damaged before its last line.
    """
    entries: list[Entry] = []
    place = after
    lines = rest.split(b"\n")
    for i, line in enumerate(lines[:-1]):  # omits an incomplete last line
        try:
            entry = json.loads(line)
            stated = entry.pop("crc")
            checksum = zlib.crc32(json.dumps(entry).encode(), place.crc)
        except (ValueError, KeyError, AttributeError, TypeError):
            stated, checksum = 0, -1
        if stated != checksum:
            if i == len(lines) - 2 and not lines[-1]:
                break  # the last line, whose content did not reach the disk
            number = path.read_bytes().count(b"\n", 0, after.size_B) + i + 1
            raise ConfigError(
                one_line(f"{path}: line {number} is damaged, or a line before it is missing: ")
                + "restore a copy, or move the file away"
            )
        entries.append(entry)
        place = place.moved(line + b"\n", checksum)
    return entries, place
