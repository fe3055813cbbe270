"""Texts of an HDF5 file in its global heaps, of which HDF5 reads a torn one for ever.

A power cut or a bad copy may leave zeros in a heap. HDF5 takes them for an object without length,
does not get past it, and no signal interrupts it (HDFGroup/hdf5 issue 1707).

A heap is signature and version (8 bytes), its size, and objects: an index (2 bytes), 6 other bytes,
a length, and as many bytes, filled up to a multiple of 8. Index 0 is the free rest, whose length
has its own 16 bytes in it.

Source: HDF5 file format specification, "Global heap".
"""

import re
import struct
from pathlib import Path
from typing import BinaryIO

_HEAP = re.compile(rb"GCOL\x01\0\0\0")
_HEAD_B = 16  # of a heap, and of an object
_OBJECT = struct.Struct("<H6xQ")
_END_B = 8 * 2**20  # a recording has its texts before the first and after the last row


def torn_heap_at(path: Path, *, everywhere: bool = False) -> int | None:
    """Where a heap begins that HDF5 would not get through, near either end or in all of a file."""
    size = path.stat().st_size
    with path.open("rb") as file:
        for first in range(0, size, _END_B) if everywhere else {0, max(0, size - _END_B)}:
            file.seek(first)
            for heap in _HEAP.finditer(file.read(_END_B + _HEAD_B)):
                if _is_torn(file, first + heap.start(), size):
                    return first + heap.start()
    return None


def _is_torn(file: BinaryIO, at: int, size: int) -> bool:
    file.seek(at + 8)
    end = min(size, at + int.from_bytes(file.read(8), "little"))
    at += _HEAD_B
    while at + _HEAD_B <= end:
        file.seek(at)
        index, length = _OBJECT.unpack(file.read(_HEAD_B))
        if index == 0 and length < _HEAD_B:
            return True
        at += length if index == 0 else _HEAD_B + -(-length // 8) * 8
    return False
