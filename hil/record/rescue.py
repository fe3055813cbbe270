"""A recording that other programs harm while it is written: notice it, and keep what can be kept.

A file that is deleted, moved or replaced stays whole for the process that has it open, and is put
back when it is closed. Of one that is cut off nothing can be relied on: another recording begins
from the empty one, with the rows that the rings still hold.
"""

import contextlib
import os
import shutil
import sys
import tempfile
from pathlib import Path

import h5py

from hil.loop.tap import HARMS

KEPT_IN = "kept in "  # begins the recorder's last words if the recording had to be put back
_, DELETED, MOVED, CUT = HARMS
OBJECT = b"OHDR"  # HDF5 file format specification, "Version 2 Data Object Header Prefix"
SETTLED_B = 16  # with the checksum of a chunk


class OpenRecording:
    """A recording that HDF5 has open for writing.

    Parameters
    ----------
    path : its name
    file : HDF5's file
    empty : its content before the first row
    """

    def __init__(self, path: Path, file: h5py.File, empty: bytes) -> None:
        self._path = path
        self._fd = os.dup(file.id.get_vfd_handle())
        self._columns = list(file["ticks"].values())
        self._size_B = self._chunks = 0
        # Bytes that nothing changes any more; at first, what the last object begins with.
        self._settled, self._settled_at = OBJECT, empty.rfind(OBJECT)
        self._was_cut = False

    def note(self, rows: int) -> None:
        """So many rows are on file now."""
        self._was_cut = self._was_cut or self._is_cut()
        self._size_B = os.fstat(self._fd).st_size
        per_chunk = self._columns[0].chunks[0]
        if rows // per_chunk > self._chunks:
            self._chunks = rows // per_chunk
            first = (self._chunks - 1) * per_chunk
            places = [c.id.get_chunk_info_by_coord((first, *(0,) * (c.ndim - 1)))
                      for c in self._columns]  # fmt: skip
            last = max(places, key=lambda place: place.byte_offset)
            self._settled_at = last.byte_offset + last.size - SETTLED_B
            self._settled = self._read(SETTLED_B)

    def _is_cut(self) -> bool:
        """Whether it is shorter, or was until the next write, which leaves a gap before it."""
        is_short = os.fstat(self._fd).st_size < self._size_B
        return is_short or self._read(len(self._settled)) != self._settled

    def _read(self, n: int) -> bytes:
        if sys.platform == "win32":  # where HDF5 shares the position of its file with this one
            return self._settled
        return os.pread(self._fd, n, self._settled_at)

    def harm(self) -> str:
        """What another program has done to it, one of HARMS."""
        now = os.fstat(self._fd)
        if self._was_cut or self._is_cut():
            return CUT
        try:
            return "" if os.path.samestat(now, os.stat(self._path)) else MOVED
        except FileNotFoundError:
            return MOVED if now.st_nlink else DELETED

    def put_back(self) -> Path:
        """Copy it to its name or, if that is taken, to another one; returns the name."""
        part = self._path.with_name(f"{self._path.name}.{os.getpid()}.new")
        part.parent.mkdir(parents=True, exist_ok=True)
        try:
            with os.fdopen(os.dup(self._fd), "rb") as source, part.open("xb") as target:
                source.seek(0)
                shutil.copyfileobj(source, target)
                target.flush()
                os.fsync(target.fileno())
            name = free_name(self._path)
            os.replace(part, name)
        finally:
            part.unlink(missing_ok=True)
        return name

    def leave(self, file: h5py.File) -> None:
        """Close HDF5's file without another byte in the recording; it goes on in vain otherwise."""
        if not file.id.valid:
            return
        with tempfile.TemporaryFile() as spare, contextlib.suppress(OSError, RuntimeError):
            os.dup2(spare.fileno(), file.id.get_vfd_handle())
            file.close()

    def __enter__(self) -> "OpenRecording":
        return self

    def __exit__(self, *error: object) -> None:
        os.close(self._fd)


def free_name(path: Path) -> Path:
    """Return this name, or if it is taken the first free one of NAME-kept.h5, NAME-kept2.h5."""
    name, n = path, 1
    while name.exists():
        name = path.with_name(f"{path.stem}-kept{n if n > 1 else ''}{path.suffix}")
        n += 1
    return name
