"""The "open for writing" mark that a killed process leaves in an HDF5 file.

HDF5 refuses to open a file whose version 3 superblock still carries consistency flags. The
superblock is signature (8 bytes), version, two sizes, the flags, four addresses, and a
checksum of all that comes before it.

Source: HDF5 file format specification, "Superblock (versions 2 and 3)"; the checksum is
Bob Jenkins' lookup3 (hashlittle, 2006, public domain).
"""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_SIGNATURE = b"\x89HDF\r\n\x1a\n"
_FLAGS_AT = 11
_SIZE_MAX = 12 + 4 * 255 + 4
_MASK = 0xFFFFFFFF


def marked_end_B(path: Path) -> int:
    """Where an undamaged superblock with the mark says that the file ends; 0 without them.

    Its writer has written at least so far.
    """
    with path.open("rb") as file:
        block = _marked_block(file.read(_SIZE_MAX))
    return 0 if block is None else int.from_bytes(block[_end_at(block)], "little")


def clear_flags(path: Path) -> bool:
    """Clear the mark in place; returns whether there was one.

    A killed writer also leaves an end-of-file address before the end of its data, beyond which HDF5
    does not read. It is set to the real end of the file, as `h5clear --increment` does.
    """
    with path.open("rb+") as file:
        head = _cleared(file.read(_SIZE_MAX), os.fstat(file.fileno()).st_size)
        if not head:
            return False
        file.seek(0)
        file.write(head)
        file.flush()
        os.fsync(file.fileno())
    return True


class Cleared(io.FileIO):
    """A file for reading that looks as `clear_flags` would leave it, and stays as it is."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._head = _cleared(self.read(_SIZE_MAX), os.fstat(self.fileno()).st_size)

    def readinto(self, buffer: WriteableBuffer, /) -> int | None:
        at = self.tell()
        n = super().readinto(buffer)
        head = self._head[at : at + (n or 0)]
        memoryview(buffer)[: len(head)] = head
        return n


def _cleared(head: bytes, size_B: int) -> bytes:
    """The superblock without the mark, for a file of this size; empty if there is none."""
    block = _marked_block(head)
    if block is None:
        return b""
    block[_FLAGS_AT] = 0
    end = _end_at(block)
    size = max(int.from_bytes(block[end], "little"), size_B)
    block[end] = size.to_bytes(block[9], "little")
    return bytes(block) + checksum(bytes(block)).to_bytes(4, "little")


def _end_at(block: bytearray) -> slice:
    """Place of the end-of-file address."""
    width = block[9]
    return slice(12 + 2 * width, 12 + 3 * width)


def _marked_block(head: bytes) -> bytearray | None:
    """The superblock without its checksum; None if damaged or without the mark."""
    if len(head) < 12 or head[:8] != _SIGNATURE or head[8] != 3 or head[_FLAGS_AT] == 0:
        return None
    size = 12 + 4 * head[9]
    block, stored = head[:size], head[size : size + 4]
    return bytearray(block) if stored == checksum(block).to_bytes(4, "little") else None


def checksum(data: bytes) -> int:
    """Jenkins lookup3 hashlittle of the bytes with initial value 0."""
    a = b = c = (0xDEADBEEF + len(data)) & _MASK
    at = 0
    while len(data) - at > 12:
        a, b, c = (_add(v, data[at + 4 * i : at + 4 * i + 4]) for i, v in enumerate((a, b, c)))
        a, c = (a - c) & _MASK ^ _rot(c, 4), (c + b) & _MASK
        b, a = (b - a) & _MASK ^ _rot(a, 6), (a + c) & _MASK
        c, b = (c - b) & _MASK ^ _rot(b, 8), (b + a) & _MASK
        a, c = (a - c) & _MASK ^ _rot(c, 16), (c + b) & _MASK
        b, a = (b - a) & _MASK ^ _rot(a, 19), (a + c) & _MASK
        c, b = (c - b) & _MASK ^ _rot(b, 4), (b + a) & _MASK
        at += 12
    tail = data[at:]
    if not tail:
        return c
    a, b, c = (_add(v, tail[4 * i : 4 * i + 4]) for i, v in enumerate((a, b, c)))
    c = ((c ^ b) - _rot(b, 14)) & _MASK
    a = ((a ^ c) - _rot(c, 11)) & _MASK
    b = ((b ^ a) - _rot(a, 25)) & _MASK
    c = ((c ^ b) - _rot(b, 16)) & _MASK
    a = ((a ^ c) - _rot(c, 4)) & _MASK
    b = ((b ^ a) - _rot(a, 14)) & _MASK
    return ((c ^ b) - _rot(b, 24)) & _MASK


def _add(value: int, word: bytes) -> int:
    return (value + int.from_bytes(word, "little")) & _MASK


def _rot(value: int, by: int) -> int:
    return (value << by | value >> (32 - by)) & _MASK
