"""Ring buffers in one memory-mapped file: rows from the loop, requests from a window.

The loop writes and never blocks. The recorder and any window map the same file and read it. The
writer overwrites a full ring; a reader that lags by more than a ring detects this from the count of
written rows and reports how many rows it lost.

The ring `requests` has the opposite direction: one writer (`Requests`, in the window) and one
reader, the loop, which reads it between two ticks. It is never overwritten: a full ring refuses
requests. Stopping a run does not depend on it, because a signal also ends the run.

The file is in /dev/shm if that exists. Only its owner can read and write it, so that no other user
can command a loop. `multiprocessing.shared_memory` is not used: on Python 3.11 a process that only
attaches unlinks the memory when it exits.
"""

import errno
import json
import mmap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hil.errors import DeviceError
from hil.loop.states import NUMBERS
from hil.platform import locks, shared_memory

_MAGIC = b"hil-tap/5\0"
_HEADER = 2**20  # of the columns of ten thousand cells

EVENT = np.dtype(
    [("t_s", "<f8"), ("level", "S8"), ("source", "S32"), ("text", "S256")],
)
INPUT = np.dtype(
    [("tick", "<i8"), ("t_s", "<f8"), ("name", "S64"), ("value", "<f8"), ("text", "S256")],
)
REQUEST = np.dtype([("name", "S64"), ("value", "<f8"), ("text", "S256")])

# Words after the header: row counts of the rings in this order, then the status words below.
_RINGS = ("ticks", "events", "inputs", "requests")
_CLOSED, _RECORDED, _LOST, _READY, _TAKEN, _STATE, _HARM = range(len(_RINGS), len(_RINGS) + 7)
_N_WORDS = _HARM + 1
HARMS = ("", "was deleted", "was moved away or replaced", "was cut off")  # by another program
_RAW = "raw/"


class Ring:
    """Ring buffer of fixed-size rows with one writer and any number of readers."""

    def __init__(
        self, rows: NDArray[np.void], written: NDArray[np.int64], at_once: int = 1
    ) -> None:
        self._rows = rows
        self._written = written
        self._at_once = at_once  # largest number of rows written before the count is updated
        self._capacity = len(rows)
        self._bytes = rows.view(np.uint8).reshape(self._capacity, rows.dtype.itemsize)
        self._size, self._memory = rows.dtype.itemsize, self._bytes.reshape(-1).data

    @property
    def capacity(self) -> int:
        return self._capacity

    @property
    def fields(self) -> tuple[str, ...]:
        return self._rows.dtype.names or ()

    @property
    def written(self) -> int:
        """Rows written since the start."""
        return int(self._written[0])

    def push(self, row: NDArray[np.void]) -> None:
        """Append the one row of a (1,) array."""
        count = int(self._written[0])
        at = count % self._capacity * self._size
        self._memory[at : at + self._size] = row.tobytes()
        self._written[0] = count + 1

    def push_many(self, rows: NDArray[np.void]) -> None:
        """Append rows."""
        for start in range(0, len(rows), self._at_once):
            part = rows[start : start + self._at_once]
            count, n = int(self._written[0]), len(part)
            data = part.view(np.uint8).reshape(n, -1)
            at = count % self._capacity
            before_end = min(n, self._capacity - at)
            self._bytes[at : at + before_end] = data[:before_end]
            self._bytes[: n - before_end] = data[before_end:]
            self._written[0] = count + n

    def read(self, after: int) -> tuple[NDArray[np.void], int]:
        """Rows from number `after` on, and how many of them were overwritten before this call."""
        written = self.written
        start = max(after, written - self._capacity)
        picked = np.arange(start, written) % self._capacity
        rows = self._rows[picked]
        # Drop rows that may have been overwritten during the copy, including those that the writer
        # is writing now, which are not counted yet.
        safe = max(start, self.written + self._at_once - self._capacity)
        return rows[safe - start :], safe - after


@dataclass
class Rings:
    """Rings that a recording is written from."""

    ticks: Ring
    events: Ring
    inputs: Ring
    raw: Mapping[str, Ring]


class Tap(Rings):
    """The mapped file: its rings, and status words of the run."""

    def __init__(
        self,
        path: Path,
        mapped: mmap.mmap,
        layout: Mapping[str, dict[str, int]],
        dtypes: Mapping[str, np.dtype[np.void]],
    ) -> None:
        self.path = path
        self._mapped = mapped
        raw = [name for name in layout if name.startswith(_RAW)]
        words = np.frombuffer(mapped, dtype=np.int64, count=_N_WORDS + len(raw), offset=_HEADER)
        self._words = words

        def ring(name: str, word: int, at_once: int = 1) -> Ring:
            count, offset = layout[name]["capacity"], layout[name]["offset"]
            rows = np.frombuffer(mapped, dtypes[name], count=count, offset=offset)
            return Ring(rows, words[word : word + 1], at_once)

        self.ticks, self.events, self.inputs, self.requests = (
            ring(name, i) for i, name in enumerate(_RINGS)
        )
        self.raw = {
            name.removeprefix(_RAW): ring(name, i, max(1, layout[name]["capacity"] // 8))
            for i, name in enumerate(raw, start=_N_WORDS)
        }
        self._n_taken = self.taken

    @property
    def closed(self) -> bool:
        """Whether the loop has written its last row."""
        return bool(self._words[_CLOSED])

    def close_writer(self) -> None:
        self._words[_CLOSED] = 1

    @property
    def recorded(self) -> int:
        """Rows that the recorder has read."""
        return int(self._words[_RECORDED])

    @recorded.setter
    def recorded(self, count: int) -> None:
        self._words[_RECORDED] = count

    @property
    def lost(self) -> int:
        """Rows that were overwritten before the recorder read them."""
        return int(self._words[_LOST])

    @lost.setter
    def lost(self, count: int) -> None:
        self._words[_LOST] = count

    @property
    def recorder_ready(self) -> bool:
        return bool(self._words[_READY])

    def set_recorder_ready(self) -> None:
        self._words[_READY] = 1

    @property
    def harm(self) -> str:
        """What another program has done to the recording during the run, one of HARMS."""
        return HARMS[self._words[_HARM]]

    @harm.setter
    def harm(self, what: str) -> None:
        self._words[_HARM] = HARMS.index(what)

    @property
    def state(self) -> str:
        """The rig's state, one of `hil.loop.states.STATES`."""
        number = int(self._words[_STATE])
        return next(name for name, n in NUMBERS.items() if n == number)

    @state.setter
    def state(self, now: str) -> None:
        self._words[_STATE] = NUMBERS[now]

    @property
    def taken(self) -> int:
        """Number of requests that the loop has read."""
        return int(self._words[_TAKEN])

    def take_requests(self) -> list[tuple[str, float, str]]:
        """Requests since the last call as (name, value, text); only the loop calls this."""
        if self.requests.written == self._n_taken:
            return []
        rows, lost = self.requests.read(self._n_taken)
        self._n_taken += lost + len(rows)
        self._words[_TAKEN] = self._n_taken
        return [
            (row["name"].decode(errors="replace"), float(row["value"]),
             row["text"].decode(errors="replace"))
            for row in rows
        ]  # fmt: skip

    def unlink(self) -> None:
        shared_memory.remove(self.path)


class Requests:
    """The window's end of the request ring; only one window at a time can hold it.

    A request that the loop accepts takes effect at its next tick and is recorded in `/inputs`. A
    refused request is recorded as an event. The names, with their value and text:

    ==================== ================================================================
    `force_reference_N`  set point to hold from now on; NaN: the configured reference
    `controller.<gain>`  a gain by its key in the configuration, such as `controller.k_p`
    `arm`                1: cells may be switched; 0: all off until the next 1
    `tare`               force in N to subtract from channel `text` from now on (empty: the
                         controlled force), in addition to earlier tares
    `note`               `text` is a note of the operator
    `stop`               ends the run safely; `text` is who stopped it
    ==================== ================================================================

    Parameters
    ----------
    path : the run's tap, from `running`

    Raises
    ------
    DeviceError
        Another window holds it, or the run is over.

    Examples
    --------
    >>> with Requests(running()[0][1]) as requests:  # doctest: +SKIP
    ...     number = requests.send("force_reference_N", 2.5)
    ...     requests.taken >= number  # whether the loop has read it
    """

    def __init__(self, path: Path) -> None:
        try:
            self._file = shared_memory.open_private(path)
        except FileNotFoundError:
            raise DeviceError(f"{path}: the run is over") from None
        except OSError as error:
            raise DeviceError(f"{path}: cannot be opened ({error.strerror})") from None
        try:
            # The kernel releases the lock when this process ends.
            locks.acquire(self._file)
            self._tap = attach(path)
        except BlockingIOError:
            self._file.close()
            raise DeviceError(f"{path}: another window already controls this run") from None
        except (OSError, ValueError):
            self._file.close()
            raise DeviceError(f"{path}: the run is over, or uses another version of hil") from None
        self._row = np.zeros(1, dtype=REQUEST)

    def send(self, name: str, value: float = float("nan"), text: str = "") -> int:
        """Send a request; returns its number, from 1, to compare with `taken`.

        Raises
        ------
        DeviceError
            The run is over, or the ring is full because the loop reads no requests.
        """
        ring = self._tap.requests
        if self._tap.closed:
            raise DeviceError(f"{name}: not sent, the run is over")
        if ring.written - self._tap.taken >= ring.capacity - 1:
            raise DeviceError(f"{name}: not sent, the loop reads no requests: stop it with Ctrl-C")
        self._row[0] = (name.encode()[:64], value, text.encode()[:256])
        ring.push(self._row)
        return ring.written

    @property
    def taken(self) -> int:
        """Number of the last request that the loop has read."""
        return self._tap.taken

    def close(self) -> None:
        """Release the ring for another window."""
        self._file.close()

    def __enter__(self) -> "Requests":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def running() -> list[tuple[int, Path]]:
    """Process id and tap of every run of this user in progress, in order of process id."""
    return sorted(shared_memory.of_live_processes(_folder(), "tap"))


def create(
    dtype: np.dtype[np.void],
    capacity: int,
    raw: Mapping[str, tuple[np.dtype[np.void], int]] | None = None,
) -> Tap:
    """Create a tap for rows of this type; also remove taps of processes that were killed.

    Parameters
    ----------
    capacity : rows of the ring `ticks`
    raw : type and capacity of the ring of every device that samples faster than the loop, by name

    Raises
    ------
    DeviceError
        There is no room for the file.
    """
    folder = _folder()
    shared_memory.sweep(folder)
    dtypes = {"ticks": dtype, "events": EVENT, "inputs": INPUT, "requests": REQUEST}
    capacities = {"ticks": capacity, "events": 1024, "inputs": 1024, "requests": 256}
    for name, (sample, count) in (raw or {}).items():
        dtypes[_RAW + name], capacities[_RAW + name] = sample, count
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
    path, opened = shared_memory.create(folder, "tap")
    with opened as file:
        try:
            shared_memory.reserve(file, offset)  # too little memory later would kill the loop
        except OSError as error:
            file.close()
            path.unlink()
            remedy = "raise ulimit -f" if error.errno == errno.EFBIG else "free some space"
            raise DeviceError(
                f"{folder}: no room for a tap of {offset / 1e6:.0f} MB ({error.strerror}): "
                f"{remedy}, or set a longer loop.period_s"
            ) from None
        file.write(header)
        file.flush()
        mapped = mmap.mmap(file.fileno(), offset)
    return Tap(path, mapped, layout, dtypes)


def attach(path: Path, *, read_only: bool = False) -> Tap:
    """Map an existing tap of this user; DeviceError if another user owns it.

    With `read_only` the process cannot write to it, whatever it does.
    """
    access = mmap.ACCESS_READ if read_only else mmap.ACCESS_WRITE
    with shared_memory.open_private(path) as file:
        mapped = mmap.mmap(file.fileno(), 0, access=access)
    header = mapped[:_HEADER].rstrip(b"\0")
    if not header.startswith(_MAGIC):
        raise ValueError(f"{path} is not a tap of this version of hil")
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
    fields: Mapping[str, Any] = dtype.fields or {}
    return [
        (name, fields[name][0].base.str, list(fields[name][0].shape), int(fields[name][1]))
        for name in dtype.names or ()
    ]


def _folder() -> Path:
    return shared_memory.folder()
