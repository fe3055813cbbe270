"""Rows from the loop to whoever looks: rings in one mapped file.

The loop writes, never waits and never looks back; the recorder and any window map the same
file and read. A ring is overwritten when it is full: a reader that falls a whole ring behind
sees it by the count of rows written and says how many it lost.

The file lies under /dev/shm where there is one. Not `multiprocessing.shared_memory`: on
Python 3.11 a process that only attaches unlinks the memory when it exits.
"""

import json
import mmap
import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hil.errors import DeviceError

_MAGIC = b"hil-tap/1\0"
_HEADER = 65536
_NAME = re.compile(r"hil-(\d+)-[0-9a-f]+\.tap")

EVENT = np.dtype(
    [("t_s", "<f8"), ("level", "S8"), ("source", "S32"), ("text", "S256")],
)
INPUT = np.dtype(
    [("tick", "<i8"), ("t_s", "<f8"), ("name", "S64"), ("value", "<f8"), ("text", "S256")],
)


class Ring:
    """Fixed-size rows, one writer, any number of readers."""

    def __init__(self, rows: NDArray[np.void], written: NDArray[np.int64]) -> None:
        self._rows = rows
        self._written = written
        self._capacity = len(rows)
        self._bytes = rows.view(np.uint8).reshape(self._capacity, rows.dtype.itemsize)

    @property
    def capacity(self) -> int:
        return self._capacity

    @property
    def written(self) -> int:
        """Rows written since the start."""
        return int(self._written[0])

    def push(self, row: NDArray[np.void]) -> None:
        """Append the one row of a (1,) array."""
        count = int(self._written[0])
        self._bytes[count % self._capacity] = row.view(np.uint8)
        self._written[0] = count + 1

    def read(self, after: int) -> tuple[NDArray[np.void], int]:
        """Rows after the first `after`, and how many were overwritten before they were read."""
        written = self.written
        start = max(after, written - self._capacity)
        picked = np.arange(start, written) % self._capacity
        rows = self._rows[picked]
        # What the writer overwrote while we copied must not pass for a whole row; the row
        # it is writing now is not counted yet, hence the + 1.
        safe = max(start, self.written + 1 - self._capacity)
        return rows[safe - start :], safe - after


class Tap:
    """The mapped file: rings `ticks`, `events`, `inputs` and a few words about the run."""

    def __init__(
        self,
        path: Path,
        mapped: mmap.mmap,
        layout: Mapping[str, dict[str, int]],
        dtypes: Mapping[str, np.dtype[np.void]],
    ) -> None:
        self.path = path
        self._mapped = mapped
        words = np.frombuffer(mapped, dtype=np.int64, count=8, offset=_HEADER)
        self._words = words
        self.ticks, self.events, self.inputs = (
            Ring(
                np.frombuffer(
                    mapped,
                    dtypes[name],
                    count=layout[name]["capacity"],
                    offset=layout[name]["offset"],
                ),
                words[i : i + 1],
            )
            for i, name in enumerate(("ticks", "events", "inputs"))
        )

    @property
    def closed(self) -> bool:
        """The loop has written its last row."""
        return bool(self._words[3])

    def close_writer(self) -> None:
        self._words[3] = 1

    @property
    def recorded(self) -> int:
        """Rows that the recorder has taken."""
        return int(self._words[4])

    @recorded.setter
    def recorded(self, count: int) -> None:
        self._words[4] = count

    @property
    def lost(self) -> int:
        """Rows that were overwritten before the recorder took them."""
        return int(self._words[5])

    @lost.setter
    def lost(self, count: int) -> None:
        self._words[5] = count

    @property
    def recorder_ready(self) -> bool:
        return bool(self._words[6])

    def set_recorder_ready(self) -> None:
        self._words[6] = 1

    def unlink(self) -> None:
        self.path.unlink(missing_ok=True)


def create(dtype: np.dtype[np.void], capacity: int) -> Tap:
    """A new tap for rows of this type; also removes those of loops that were killed."""
    folder = _folder()
    _remove_stale(folder)
    path = folder / f"hil-{os.getpid()}-{os.urandom(4).hex()}.tap"
    dtypes = {"ticks": dtype, "events": EVENT, "inputs": INPUT}
    capacities = {"ticks": capacity, "events": 1024, "inputs": 1024}
    layout: dict[str, dict[str, int]] = {}
    offset = _HEADER + mmap.PAGESIZE
    for name, count in capacities.items():
        layout[name] = {"offset": offset, "capacity": count}
        size = count * dtypes[name].itemsize
        offset += -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
    header = (
        _MAGIC
        + json.dumps(
            {
                name: {**layout[name], "itemsize": d.itemsize, "fields": _fields(d)}
                for name, d in dtypes.items()
            }
        ).encode()
    )
    if len(header) > _HEADER:
        raise ValueError(f"too many columns for a tap: header of {len(header)} bytes")
    with path.open("xb+") as file:
        try:
            # Now, because memory that runs out later would kill the loop.
            os.posix_fallocate(file.fileno(), 0, offset)
        except OSError as error:
            path.unlink()
            raise DeviceError(
                f"{folder}: no room for a tap of {offset / 1e6:.0f} MB ({error.strerror}): "
                "free some, or take a longer loop.period_s"
            ) from None
        file.write(header)
        file.flush()
        mapped = mmap.mmap(file.fileno(), offset)
    return Tap(path, mapped, layout, dtypes)


def attach(path: Path) -> Tap:
    """Map an existing tap."""
    with path.open("rb+") as file:
        mapped = mmap.mmap(file.fileno(), 0)
    header = mapped[:_HEADER].rstrip(b"\0")
    if not header.startswith(_MAGIC):
        raise ValueError(f"{path} is no tap of this version")
    layout = json.loads(header[len(_MAGIC) :])
    dtypes = {
        name: np.dtype(
            {
                "names": [f[0] for f in ring["fields"]],
                "formats": [(f[1], tuple(f[2])) if f[2] else f[1] for f in ring["fields"]],
                "offsets": [f[3] for f in ring["fields"]],
                "itemsize": ring["itemsize"],
            }
        )
        for name, ring in layout.items()
    }
    return Tap(path, mapped, layout, dtypes)


def _fields(dtype: np.dtype[np.void]) -> list[tuple[str, str, list[int], int]]:
    fields = []
    for name in dtype.names or ():
        kind = dtype[name]
        fields.append((name, kind.base.str, list(kind.shape), int(dtype.fields[name][1])))  # type: ignore[index]
    return fields


def _folder() -> Path:
    memory = Path("/dev/shm")
    return memory if memory.is_dir() and os.access(memory, os.W_OK) else Path(tempfile.gettempdir())


def _remove_stale(folder: Path) -> None:
    for path in folder.glob("hil-*.tap"):
        match = _NAME.fullmatch(path.name)
        if match and not _is_running(int(match[1])):
            path.unlink(missing_ok=True)


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
