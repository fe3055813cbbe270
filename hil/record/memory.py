"""A recording in memory: the rows that a file would have, without a recorder and shared memory."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
from numpy.typing import NDArray

from hil.loop import tap as taps
from hil.loop.frame import Frame
from hil.record.layout import LIBVER, Contents, fill, write_outcome
from hil.record.read import dataset_of, n_whole_rows
from hil.record.recorder import Writer
from hil.record.sink import RingSink
from hil.record.summary import summary_of_rows

if TYPE_CHECKING:
    import xarray as xr

ROWS = 2048  # are written at once


def _ring(dtype: np.dtype[np.void], capacity: int) -> taps.Ring:
    n_written: NDArray[np.int64] = np.zeros(1, dtype=np.int64)
    return taps.Ring(np.zeros(capacity, dtype=dtype), n_written, at_once=capacity // 8)


class MemorySink(RingSink):
    """Takes the rows of one run into an HDF5 file in memory, as the recorder does into a file.

    It waits for nothing and loses no row. `close` frees the memory.
    """

    disk_low = ""
    file_harmed = ""

    def __init__(self, frame: Frame, contents: Contents) -> None:
        raw = {
            name: _ring(samples.dtype, 2 * samples.per_tick * ROWS)
            for name, samples in contents.raw.items()
        }
        rings = taps.Rings(
            ticks=_ring(frame.dtype, 2 * ROWS),
            events=_ring(taps.EVENT, 2 * ROWS),
            inputs=_ring(taps.INPUT, 2 * ROWS),
            raw=raw,
        )
        super().__init__(rings, frame)
        self.raw = raw
        name = uuid.uuid4().hex  # HDF5 tells open files apart by their names
        self._file = h5py.File(name, "w", driver="core", backing_store=False, libver=LIBVER)
        fill(self._file, contents)
        self._writer = Writer(rings, self._file)
        self._n_pushed = 0

    def push(self) -> bool:
        """Take the current row."""
        self._rings.ticks.push(self._row)
        self._copy_in_time()
        return True

    def event(self, t_s: float, level: str, source: str, text: str) -> None:
        super().event(t_s, level, source, text)
        self._copy_in_time()

    def input(self, tick: int, t_s: float, name: str, value: float, text: str = "") -> None:
        super().input(tick, t_s, name, value, text)
        self._copy_in_time()

    def _copy_in_time(self) -> None:
        """Copy the rings before any of them can be full."""
        self._n_pushed += 1
        if self._n_pushed % ROWS == 0:
            self._writer.take()

    def requests(self, tick: int) -> Sequence[tuple[str, float, str]]:
        """Nobody requests anything."""
        return ()

    def show_state(self, now: str) -> None:
        """Nobody looks."""

    def summary(self, period_s: float, clock: str, n_periods: int | None) -> dict[str, object]:
        """The figures of the rows so far; arguments as in `hil.record.summary.summarise`."""
        self._writer.take()
        self._writer.flush()
        return summary_of_rows(self._file, period_s, clock, n_periods)

    def dataset(self, outcome: str, summary: Mapping[str, object]) -> xr.Dataset:
        """The recording with its outcome, as `hil.open_run` returns one."""
        write_outcome(self._file, outcome, summary)
        return dataset_of(self._file)

    def columns(self, names: Iterable[str]) -> dict[str, NDArray[Any]]:
        """The rows so far of these columns; call it after `summary`."""
        n = n_whole_rows(self._file)
        return {name: self._file["ticks"][name][:n] for name in names}

    def close(self) -> None:
        """Free the memory."""
        self._file.close()
