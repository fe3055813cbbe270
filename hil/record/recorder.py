"""The recorder process: copies rows from the tap into the file and flushes them during the run.

Started as ``python -m hil.record.recorder TAP FILE FLUSH_S FSYNC_S``. It ends when the loop
has closed the tap, or when the loop's process has ended. It then writes the remaining rows and
closes the file. Without the loop the outcome stays `running` until `hil recover` repairs the file.
"""

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from hil.errors import one_line
from hil.loop import tap as taps
from hil.platform.processes import STOP_SIGNALS, parent_watch
from hil.record.layout import LIBVER, RECORDED

POLL_S = 0.02
# Fill level of the ring at which rows are written before the next flush is due. A write takes
# about the same time for one row as for a thousand.
FULL_SHARE = 0.125


def record(tap: taps.Tap, path: Path, flush_s: float, fsync_s: float, parent: int) -> None:
    """Copy rows until the tap is closed or the loop's process has ended."""
    # Without a lock of HDF5: the loop's process holds the file (hil.record.held).
    with h5py.File(path, "r+", libver=LIBVER, locking=False) as file:
        file.swmr_mode = True
        sinks = [
            _Sink(tap.ticks, [(name, file["ticks"][name]) for name in file["ticks"]]),
            _Sink(tap.events, [("", file["events"])]),
            _Sink(tap.inputs, [("", file["inputs"])]),
            *(
                _Sink(ring, [(field, file[f"raw/{name}/{field}"]) for field in ring.fields])
                for name, ring in sorted(tap.raw.items())
            ),
        ]
        parent_lives = parent_watch(parent)
        tap.set_recorder_ready()
        flushed_s = synced_s = time.monotonic()
        while True:
            last = tap.closed or not parent_lives()
            now_s = time.monotonic()
            due = last or now_s - flushed_s >= flush_s
            if not due and tap.ticks.written - tap.recorded < FULL_SHARE * tap.ticks.capacity:
                time.sleep(POLL_S)
                continue
            for sink in sinks:
                sink.take()
            tap.recorded, tap.lost = sinks[0].taken, sum(sink.lost for sink in sinks)
            if due:
                for sink in sinks:
                    sink.flush()
                file[RECORDED][:] = [sink.rows for sink in sinks]
                file[RECORDED].flush()
                flushed_s = now_s
            if last or now_s - synced_s >= fsync_s:
                os.fsync(file.id.get_vfd_handle())
                synced_s = now_s
            if last:
                break


class _Sink:
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


def _append(dataset: h5py.h5d.DatasetID, at: int, values: np.ndarray[Any, Any]) -> None:
    """Write rows from `at` on; uses h5py's low-level API, which takes half the time."""
    rest = (0,) * (values.ndim - 1)
    dataset.set_extent((at + len(values), *values.shape[1:]))
    there = dataset.get_space()
    there.select_hyperslab((at, *rest), values.shape)
    dataset.write(h5py.h5s.create_simple(values.shape), there, values)


def main() -> int:
    # The loop handles these signals; the recorder continues until the last row is written.
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    tap_path, path, flush_s, fsync_s, parent = sys.argv[1:]
    try:
        record(taps.attach(Path(tap_path)), Path(path), float(flush_s), float(fsync_s), int(parent))
    except (OSError, RuntimeError) as error:  # h5py raises both when a write fails
        print(f"{path}: {one_line(str(error))}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
