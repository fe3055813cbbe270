"""The recorder process: copies rows from the tap into the file and flushes them during the run.

Started as ``python -m hil.record.recorder TAP FILE FLUSH_S FSYNC_S PARENT``. It ends when the loop
has closed the tap, or when the loop's process has ended. It then writes the remaining rows and
closes the file. If the loop's process has not closed the tap, nobody else is left to finish the
recording: the recorder adds an event and the outcome `recovered`, and says so on the terminal.
"""

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import h5py
import numpy as np
from numpy.typing import NDArray

from hil.errors import one_line
from hil.loop import tap as taps
from hil.platform.processes import STOP_SIGNALS, parent_watch
from hil.record.errno_of import errno_of
from hil.record.held import held
from hil.record.layout import LIBVER, RAW, RECORDED, RINGS, finish, forget_places
from hil.record.places import Places
from hil.record.rescue import CUT, KEPT_IN, OpenRecording, free_name

POLL_S = 0.02
# Fill level of the ring at which rows are written before the next flush is due. A write takes
# about the same time for one row as for a thousand.
FULL_SHARE = 0.125
LEFT_ALONE = (
    "the program of this run ended without closing it: it was killed, or it crashed: boards and "
    "supplies switch off by themselves"
)


class Syncs(NamedTuple):
    """How often rows go to the file, and the file to disk; where they stand there."""

    flush_s: float
    fsync_s: float
    places: Places


def record(tap: taps.Tap, path: Path, flush_s: float, fsync_s: float, parent: int) -> Path:
    """Copy rows until the tap is closed or the loop's process has ended; returns the recording.

    It has another name if a program has deleted, moved, replaced or cut off the file meanwhile and
    its name is taken.
    """
    empty = path.read_bytes()
    # Without a lock of HDF5: the loop's process holds the file (hil.record.held), and so does this
    # one, in case it outlives the loop's.
    with held(path):
        file = h5py.File(path, "r+", libver=LIBVER, locking=False)
        recording, places = OpenRecording(path, file, empty), Places(path, file, empty)
        syncs = Syncs(flush_s, fsync_s, places)
        try:
            file.swmr_mode = True
            harm = _copy_rows(tap, file, recording, syncs, parent_watch(parent))
            if harm != CUT:
                file.close()
        except (OSError, RuntimeError):  # h5py raises both when a write fails
            recording.leave(file)
            harm = tap.harm = recording.harm()
            if harm != CUT:
                raise
        finally:
            places.close()
        if harm:  # the rows stand elsewhere now
            forget_places(path)
        with recording:
            if harm != CUT:
                return recording.put_back() if harm else path
            recording.leave(file)
    again = free_name(path)
    again.write_bytes(empty)
    return record(tap, again, flush_s, fsync_s, parent)


def _copy_rows(
    tap: taps.Tap,
    file: h5py.File,
    recording: OpenRecording,
    syncs: Syncs,
    parent_lives: Callable[[], bool],
) -> str:
    """Copy rows until the end, or until the file is cut off; returns its harm, one of HARMS."""
    writer = Writer(tap, file)
    tap.set_recorder_ready()
    flushed_s = synced_s = time.monotonic()
    last, harm = False, ""
    while not last:
        is_alone = not parent_lives() and not tap.closed
        last = is_alone or tap.closed
        now_s = time.monotonic()
        due = last or now_s - flushed_s >= syncs.flush_s
        if not due and tap.ticks.written - tap.recorded < FULL_SHARE * tap.ticks.capacity:
            time.sleep(POLL_S)
            continue
        if due:
            harm = recording.harm() or harm
            tap.harm = harm or tap.harm
            if harm == CUT:
                break
        if is_alone:
            _say_alone(tap)
        writer.take()
        tap.recorded, tap.lost = writer.taken, writer.lost
        if due:
            writer.flush()
            recording.note(writer.rows)
            flushed_s = now_s
        if last or now_s - synced_s >= syncs.fsync_s:
            os.fsync(file.id.get_vfd_handle())
            synced_s = now_s
            if not last:
                syncs.places.add(writer.flushed)
    return harm


def _say_alone(tap: taps.Tap) -> None:
    """Add an event, in place of the process that wrote them."""
    row, _ = tap.ticks.read(max(0, tap.ticks.written - 1))
    event = np.zeros(1, dtype=taps.EVENT)
    event[0] = (row["t_s"][-1] if len(row) else 0.0, "error", "recorder", LEFT_ALONE)
    tap.events.push(event)


class Writer:
    """Copies what stands in the rings of a tap into a recording.

    Attributes
    ----------
    flushed : rows of each ring that HDF5 has given to the operating system
    """

    def __init__(self, tap: taps.Rings, file: h5py.File) -> None:
        self._recorded = file[RECORDED]
        self._columns = [
            _Columns(tap.ticks, [(name, file["ticks"][name]) for name in file["ticks"]]),
            _Columns(tap.events, [("", file["events"])]),
            _Columns(tap.inputs, [("", file["inputs"])]),
            *(
                _Columns(ring, [(field, file[f"{RAW}/{name}/{field}"]) for field in ring.fields])
                for name, ring in sorted(tap.raw.items())
            ),
        ]
        self._rings = [*RINGS, *(f"{RAW}/{name}" for name in sorted(tap.raw))]
        self.flushed = dict.fromkeys(self._rings, 0)

    @property
    def taken(self) -> int:
        """Rows of ticks that were copied, or lost."""
        return self._columns[0].taken

    @property
    def lost(self) -> int:
        """Rows of any ring that were overwritten before they were copied."""
        return sum(columns.lost for columns in self._columns)

    @property
    def rows(self) -> int:
        """Rows of ticks in the recording."""
        return self._columns[0].rows

    def take(self) -> None:
        """Copy all new rows."""
        for columns in self._columns:
            columns.take()

    def flush(self) -> None:
        """Flush the columns, then the number of rows that are whole on file."""
        for columns in self._columns:
            columns.flush()
        rows = [columns.rows for columns in self._columns]
        self._recorded[:] = rows
        self._recorded.flush()
        self.flushed = dict(zip(self._rings, rows, strict=True))


class _Columns:
    """One ring and the datasets of its fields; '' means the whole row."""

    def __init__(self, ring: taps.Ring, datasets: list[tuple[str, h5py.Dataset]]) -> None:
        self._ring = ring
        self._datasets = datasets
        self.rows = 0
        self.taken = 0
        self.lost = 0

    def take(self) -> None:
        rows, lost = self._ring.read(self.taken)
        self.taken += lost + len(rows)
        self.lost += lost
        if not len(rows):
            return
        end = self.rows + len(rows)
        for name, dataset in self._datasets:
            _append(dataset.id, self.rows, np.ascontiguousarray(rows[name]) if name else rows)
        self.rows = end

    def flush(self) -> None:
        for _, dataset in self._datasets:
            dataset.flush()


def _append(dataset: h5py.h5d.DatasetID, at: int, values: NDArray[np.generic]) -> None:
    """Write rows from `at` on; uses h5py's low-level API, which takes half the time."""
    rest = (0,) * (values.ndim - 1)
    dataset.set_extent((at + len(values), *values.shape[1:]))
    space = dataset.get_space()
    space.select_hyperslab((at, *rest), values.shape)
    dataset.write(h5py.h5s.create_simple(values.shape), space, values)


def main() -> int:
    # The loop handles these signals; the recorder continues until the last row is written.
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    tap_path, path, flush_s, fsync_s, parent = sys.argv[1:]
    try:
        tap = taps.attach(Path(tap_path))
        kept = record(tap, Path(path), float(flush_s), float(fsync_s), int(parent))
        if not tap.closed:
            finish(kept, "recovered", {})
            tap.unlink()
            with contextlib.suppress(OSError):
                print(f"{kept}: {LEFT_ALONE}: {tap.recorded} rows are recorded", flush=True)
        elif kept != Path(path):
            print(f"{KEPT_IN}{kept}", file=sys.stderr)
    except (OSError, RuntimeError) as error:
        print(f"{path}: {_reason(error)}", file=sys.stderr)
        return 1
    return 0


def _reason(error: Exception) -> str:
    return os.strerror(number) if (number := errno_of(error)) else one_line(str(error))


if __name__ == "__main__":
    sys.exit(main())
