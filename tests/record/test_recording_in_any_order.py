"""Rows into a recording that is killed at any byte of any write, and repaired: against lists."""

import ctypes
import os
import queue
import re
import threading
from functools import partial

import h5py
import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from hil.loop import tap as taps
from hil.loop.frame import Column, Frame
from hil.record import layout, read, recorder, repair
from hil.record.raw_samples import RawSamples

SAMPLE = np.dtype([("t_s", "<f8"), ("volts", "<f8")])
PER_TICK = 3
RINGS = ("ticks", "events", "inputs", "raw")
CAPACITY, CHUNK, PERCENT = st.integers(8, 40), st.integers(2, 12), st.integers(0, 100)
FLUSH_S, FSYNC_S = 1.0, 3.0
PAGE = 4096
WRITTEN = re.compile(r"(\d+)-\s*(\d+) \(.*?\) \(H5FD_MEM_(\w+)\) Written")
LOG_WRITES = 4  # H5FD_LOG_LOC_WRITE


def _log_driver(plist, log):
    plist.set_fapl_log(bytes(log), LOG_WRITES, 0)


class Noting:
    """h5py whose files note every write, in order, with HDF5's own driver for that."""

    def __init__(self, log):
        self.File = partial(h5py.File, driver="noting", log=log)

    def __getattr__(self, name):
        return getattr(h5py, name)


class Recorder:
    """The recorder in a thread that takes one look when it is told to."""

    def __init__(self, tap, path):
        self.ended, self.lives, self.now_s = False, True, 0.0
        self._go, self._done, self._failure = queue.Queue(), queue.Queue(), None
        self._thread = threading.Thread(target=self._record, args=(tap, path), daemon=True)

    def start(self):
        self._thread.start()
        self._wait()

    def monotonic(self):
        return self.now_s

    def sleep(self, seconds):
        """Nothing was due: the next look is ours to allow."""

    def watch(self, pid):
        def lives():
            self._done.put(None)
            self._go.get()
            return self.lives

        return lives

    def _record(self, tap, path):
        try:
            recorder.record(tap, path, FLUSH_S, FSYNC_S, 0)
        except BaseException as error:
            self._failure = error
        self.ended = True
        self._done.put(None)

    def _wait(self):
        self._done.get()
        if self._failure is not None:
            raise self._failure

    def look(self, seconds=0.0):
        self.now_s += seconds
        self._go.put(None)
        self._wait()

    def end(self):
        """The loop's process is gone."""
        self.lives = False
        while not self.ended:
            self.look()
        self._thread.join()


class RecordingInAnyOrder(RuleBasedStateMachine):
    """The model: the numbers of the rows that were taken from each ring, and of those flushed."""

    def __init__(self, folder, patch):
        super().__init__()
        self.folder, self.patch = folder, patch

    @initialize(capacity=CAPACITY, chunk=CHUNK)
    def begin(self, capacity, chunk):
        cells = Column("cells_commanded", "1", "commanded", "", n_cells=3)
        self.frame = Frame([*(Column(name, "s", "timing", "") for name in ("t_s", "x")), cells])
        self.path, self.log = self.folder / "run.h5", self.folder / "writes.log"
        raw = {"daq": RawSamples(SAMPLE, {"t_s": "s", "volts": "V"}, PER_TICK, 1e3, simulated=True)}
        contents = layout.Contents(self.frame.columns, {"experiment": ""}, chunk, raw=raw)
        layout.create(self.path, contents)
        self.tap = taps.create(self.frame.dtype, capacity, {"daq": (SAMPLE, 8 * capacity)})
        self.rings = dict(
            zip(RINGS, (self.tap.ticks, self.tap.events, self.tap.inputs, self.tap.raw["daq"]),
                strict=True)
        )  # fmt: skip
        self.pushed = dict.fromkeys(RINGS, 0)
        self.seen = dict.fromkeys(RINGS, 0)
        self.taken = {name: [] for name in RINGS}
        self.flushed = self.flushing = self.synced = dict.fromkeys(RINGS, 0)
        self.before, self.n_writes, self.closed = self.path.read_bytes(), 0, False
        self.recorder, self.looked, self.n_looks, self.unflushed_s = None, False, 0, 0.0
        self.patch.setattr(recorder, "h5py", Noting(self.log))
        self.recorder = Recorder(self.tap, self.path)
        self.patch.setattr(recorder, "parent_watch", self.recorder.watch)
        self.patch.setattr(recorder, "time", self.recorder)
        self.patch.setattr(os, "fsync", self.sync)
        self.recorder.start()

    @precondition(lambda self: self.closed)
    @rule(capacity=CAPACITY, chunk=CHUNK)
    def begin_another(self, capacity, chunk):
        self.teardown()
        self.begin(capacity, chunk)

    def sync(self, number):
        """All that the recorder has flushed until now survives a power cut."""
        self.synced = self.flushing

    @precondition(lambda self: not self.closed)
    @rule(n=st.integers(1, 60), samples=st.integers(0, 3 * PER_TICK))
    def tick(self, n, samples):
        for _ in range(n):
            k = self.pushed["ticks"]
            self.frame.values[:] = k
            self.frame.values[self.frame.index("x")] = -k
            self.frame.cells("cells_commanded")[:] = k % 7, (k + 1) % 7, (k + 2) % 7
            self.tap.ticks.push(self.frame.row)
            self.pushed["ticks"] += 1
        rows = np.zeros(samples, dtype=SAMPLE)
        rows["t_s"] = np.arange(samples) + self.pushed["raw"]
        rows["volts"] = -rows["t_s"]
        self.tap.raw["daq"].push_many(rows)
        self.pushed["raw"] += samples

    @precondition(lambda self: not self.closed)
    @rule(name=st.sampled_from(("events", "inputs")), n=st.integers(1, 70))
    def note(self, name, n):
        for _ in range(n):
            row = np.zeros(1, dtype=taps.EVENT if name == "events" else taps.INPUT)
            row["t_s"], row["text"] = self.pushed[name], b"%d" % self.pushed[name]
            self.rings[name].push(row)
            self.pushed[name] += 1

    def looks(self, due, act):
        """One look of the recorder, and what it has to take by it."""
        self.before, self.n_writes = self.path.read_bytes(), len(self.writes())
        self.looked, self.n_looks = True, self.n_looks + 1
        waiting = self.pushed["ticks"] - self.seen["ticks"]
        if due or waiting >= self.tap.ticks.capacity / 8:
            for name, ring in self.rings.items():
                at_once = ring.capacity // 8 if name == "raw" else 1
                oldest = self.pushed[name] + at_once - ring.capacity
                first = max(self.seen[name], oldest)
                self.taken[name] += range(first, self.pushed[name])
                self.seen[name] = self.pushed[name]
        self.flushed = self.flushing
        if due:
            self.flushing = {name: len(rows) for name, rows in self.taken.items()}
        act()

    @precondition(lambda self: not self.closed)
    @rule(seconds=st.sampled_from((0.0, 0.5, 1.0, 3.0)))
    def look(self, seconds):
        self.unflushed_s += seconds
        due = self.unflushed_s >= FLUSH_S
        if due:
            self.unflushed_s = 0.0
        self.looks(due, lambda: self.recorder.look(seconds))

    @precondition(lambda self: self.n_looks >= 4 and not self.closed)
    @rule(closes=st.booleans())
    def end(self, closes):
        """The loop closes the tap, or is killed: what is left is taken, flushed and synced."""
        if closes:
            self.tap.close_writer()
        self.closed = True
        self.looks(True, self.recorder.look if closes else self.recorder.end)
        assert self.synced == {name: len(rows) for name, rows in self.taken.items()}

    def writes(self):
        """First byte, size and kind of every write until now, in order."""
        ctypes.CDLL(None).fflush(None)  # the driver's log is a buffered file of C's library
        text = self.log.read_text() if self.log.exists() else ""
        return [
            (int(first), int(last) + 1 - int(first), kind)
            for first, last, kind in WRITTEN.findall(text)
        ]

    @precondition(lambda self: self.looked)
    @rule(at=PERCENT, byte=PERCENT)
    def kill_and_repair(self, at, byte):
        """The recorder is killed within its last look; what is repaired is a copy.

        A kill ends a write between two pages; within the data of a chunk, at any byte.
        """
        self.looked = False
        after, image = self.path.read_bytes(), bytearray(self.before)
        writes = self.writes()[self.n_writes :]
        kinds = [kind for _, _, kind in writes]
        last = at * len(writes) // 100
        if "SUPER" in kinds[:last]:  # it is closed, by this driver in another order than by sec2
            image, writes = bytearray(after), []
        for k, (first, size, kind) in enumerate(writes[: last + 1]):
            if k == last:
                counts = kind == "DRAW" and size == 8 * len(RINGS)
                size = byte * size // 100
                if kind != "DRAW" or counts:
                    size = max(0, (first + size) // PAGE * PAGE - first)
            image.extend(bytes(max(0, first + size - len(image))))
            image[first : first + size] = after[first : first + size]
        killed = self.folder / "killed.h5"
        killed.write_bytes(image)
        n = repair.recover(killed)
        assert n >= self.flushed["ticks"]
        assert repair.faults_of(killed) == []
        found = self.content(killed)
        for name, rows in self.taken.items():
            assert len(found[name]) >= self.flushed[name]
            assert found[name] == rows[: len(found[name])], name

    def content(self, path):
        """The numbers of the rows of every ring, each in all its columns."""
        with h5py.File(path) as file:
            t_s = file["ticks/t_s"][:]
            np.testing.assert_array_equal(file["ticks/x"], -t_s)
            cells = [[(k + i) % 7 for i in range(3)] for k in t_s]
            np.testing.assert_array_equal(file["ticks/cells_commanded"], np.reshape(cells, (-1, 3)))
            volts, sampled_s = (file[f"raw/daq/{name}"][:] for name in ("volts", "t_s"))
            np.testing.assert_array_equal(volts, -sampled_s)
            notes = {name: file[name][:] for name in ("events", "inputs")}
        torn = notes["events"]["source"] == b"recover"  # the repair's own event
        notes["events"] = notes["events"][~torn]
        for rows in notes.values():
            assert [int(text) for text in rows["text"]] == rows["t_s"].tolist()
        found = {"ticks": t_s, "raw": sampled_s} | {name: n["t_s"] for name, n in notes.items()}
        return {name: rows.astype(int).tolist() for name, rows in found.items()}

    @invariant()
    def what_was_taken_and_lost_is_told(self):
        if self.recorder is not None:
            assert self.tap.recorded == self.seen["ticks"]
            n_taken = {name: len(rows) for name, rows in self.taken.items()}
            assert self.tap.lost == sum(self.seen.values()) - sum(n_taken.values())

    def teardown(self):
        self.patch.undo()
        if hasattr(self, "recorder"):
            self.tap.close_writer()
            self.recorder.end()
            self.tap.unlink()
            self.log.unlink()


@pytest.mark.hypothesis
def test_whenever_a_recorder_is_killed_all_that_was_flushed_is_a_prefix_of_what_is_repaired(
    tmp_path, monkeypatch
):
    h5py.register_driver("noting", _log_driver)
    monkeypatch.setattr(taps, "_folder", lambda: tmp_path)
    monkeypatch.setattr(repair, "_writer_of", lambda path: None)
    for check in ("refuse_hostile", "refuse_malformed"):  # of what others made, at every opening
        monkeypatch.setattr(read, check, lambda file, path, attributes=None: None)
    fewer = settings(max_examples=settings().max_examples // 5)  # a repair takes 30 ms
    run_state_machine_as_test(
        lambda: RecordingInAnyOrder(tmp_path, pytest.MonkeyPatch()), settings=fewer
    )
    h5py.unregister_driver("noting")
