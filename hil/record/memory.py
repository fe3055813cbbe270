"""A recording in memory: the rows that a file would have, without a recorder and shared memory."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import h5py
import numpy as np
from numpy.typing import NDArray

from hil.loop import tap as taps
from hil.loop.frame import Frame
from hil.record.layout import LIBVER, Columns, Contents, fill, write_outcome
from hil.record.read import dataset_of
from hil.record.recorder import Writer
from hil.record.sink import RingSink
from hil.record.summary import Recorded, summary_of

if TYPE_CHECKING:
    import xarray as xr

ROWS = 2048  # room at first


class Rows(taps.Ring):
    """Rows of a run that are all kept."""

    def __init__(self, dtype: np.dtype[np.void]) -> None:
        super().__init__(np.zeros(ROWS, dtype=dtype), np.zeros(1, dtype=np.int64))

    def push(self, row: NDArray[np.void]) -> None:
        """Append the one row of a (1,) array."""
        n = self._written.item(0)
        if n == self._capacity:
            self._grow(1)
        at = n * self._size
        self._memory[at : at + self._size] = row.tobytes()
        self._written[0] = n + 1

    def push_many(self, rows: NDArray[np.void]) -> None:
        """Append rows."""
        n, end = self.written, self.written + len(rows)
        self._grow(len(rows))
        self._rows[n:end] = rows
        self._written[0] = end

    def _grow(self, n_more: int) -> None:
        if (needed := self.written + n_more) > self._capacity:
            longer = np.zeros(max(needed, 2 * self._capacity), dtype=self._rows.dtype)
            longer[: self._capacity] = self._rows
            super().__init__(longer, self._written)

    def read(self, after: int) -> tuple[NDArray[np.void], int]:
        """Rows from number `after` on; none was overwritten."""
        return self.all[after:], 0

    @property
    def all(self) -> NDArray[np.void]:
        """All rows so far."""
        return self._rows[: self.written]


class MemorySink(RingSink):
    """Keeps the rows of one run in memory; waits for nothing and loses no row."""

    disk_low = ""
    file_harmed = ""

    def __init__(self, frame: Frame, contents: Contents) -> None:
        self.raw = {name: Rows(samples.dtype) for name, samples in contents.raw.items()}
        self._ticks, self._events = Rows(frame.dtype), Rows(taps.EVENT)
        super().__init__(taps.Rings(self._ticks, self._events, Rows(taps.INPUT), self.raw), frame)
        created = {"created_utc": datetime.now(UTC).isoformat(timespec="milliseconds")}
        self._contents = replace(contents, attributes={**created, **contents.attributes})

    def push(self) -> bool:
        """Take the current row."""
        self._ticks.push(self._row)
        return True

    def requests(self, tick: int) -> Sequence[tuple[str, float, str]]:
        """Nobody requests anything."""
        return ()

    def show_state(self, now: str) -> None:
        """Nobody looks."""

    def summary(self, period_s: float, clock: str, n_periods: int | None) -> dict[str, object]:
        """The figures of the rows so far; arguments as in `hil.record.summary.summarise`."""
        ticks, contents = self._ticks.all, self._contents
        cells = np.asarray(contents.model.get("cells", ()), dtype=str).tolist()
        columns = {name: ticks[name] for name in sorted(self._ticks.fields)}
        run = Recorded(len(ticks), columns, self._events.all, cells, contents.attributes)
        return summary_of(run, period_s, clock, n_periods)

    def dataset(self, outcome: str, summary: Mapping[str, object]) -> xr.Dataset:
        """The recording with its outcome, as `hil.open_run` returns one: of a file in memory."""
        name = uuid.uuid4().hex  # HDF5 tells open files apart by their names
        with h5py.File(name, "w", driver="core", backing_store=False, libver=LIBVER) as file:
            fill(file, self._contents)
            writer = Writer(self._rings, file)
            writer.take()
            writer.flush()
            write_outcome(file, outcome, summary)
            return dataset_of(file)

    def columns(self, names: Iterable[str]) -> Columns:
        """The rows so far of these columns."""
        ticks = self._ticks.all
        return {name: np.ascontiguousarray(ticks[name]) for name in names}
