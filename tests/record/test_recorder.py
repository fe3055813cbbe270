"""The recorder within this process: what it writes, when it is safe on disk, and when it ends."""

import os
import shutil
import signal
import sys
from types import SimpleNamespace

import h5py
import numpy as np
import pytest

from hil.loop import tap as taps
from hil.loop.frame import Column, Frame
from hil.platform.processes import STOP_SIGNALS, parent_watch
from hil.record import layout, places, recorder


class Bench:
    """A tap, and the file that the recorder fills from it."""

    def __init__(self, folder, capacity=64):
        cells = Column("cells", "1", "commanded", "", n_cells=3)
        self.frame = Frame([*(Column(name, "s", "timing", "") for name in ("t_s", "x")), cells])
        self.path = folder / "run.h5"
        layout.create(self.path, layout.Contents(self.frame.columns, {}, rows_per_chunk=16))
        self.tap = taps.create(self.frame.dtype, capacity)

    def push(self, n, first=0):
        for k in range(first, first + n):
            self.frame.values[:] = k, -k
            self.frame.cells("cells")[:] = k, k + 1, k + 2
            self.tap.ticks.push(self.frame.row)

    def record(self, flush_s=0.0, fsync_s=1e9, parent=None):
        self.kept = recorder.record(self.tap, self.path, flush_s, fsync_s, parent or os.getppid())
        with h5py.File(self.kept, swmr=True) as file:
            assert file["ticks/x"][:].tolist() == (-file["ticks/t_s"][:]).tolist()
            rows = [[t_s, t_s + 1, t_s + 2] for t_s in file["ticks/t_s"][:]]
            assert file["ticks/cells"][:].tolist() == rows
            return file["ticks/t_s"][:].tolist(), file[layout.RECORDED][:].tolist()


@pytest.fixture
def bench(tmp_path):
    made = Bench(tmp_path)
    yield made
    made.tap.unlink()


def noting(bench, synced, what):
    """A sync that notes something if it is the recording's, not that of the log beside it."""

    def sync(number):
        if os.path.samestat(os.fstat(number), bench.path.stat()):
            synced.append(what())

    return sync


def stuck(seconds):
    raise AssertionError("it waits for a loop that is over")


def test_when_the_loop_has_closed_the_tap_all_rows_are_there_and_on_disk(bench, monkeypatch):
    """On disk: a power cut after the run loses nothing of it."""
    synced, fsync = [], os.fsync

    def noted(number):
        fsync(number)
        synced.append(os.fstat(number).st_ino)

    monkeypatch.setattr(os, "fsync", noted)
    monkeypatch.setattr(recorder.time, "sleep", stuck)
    bench.push(40)
    event = np.zeros(1, dtype=taps.EVENT)
    bench.tap.events.push(event)
    bench.tap.close_writer()
    rows, counts = bench.record()
    assert rows == list(range(40))
    assert counts == [40, 1, 0]
    assert (bench.tap.recorded, bench.tap.lost, bench.tap.recorder_ready) == (40, 0, True)
    assert synced == [bench.path.stat().st_ino]


@pytest.mark.parametrize("fsync_s", [0.0, 1e9])
def test_a_recording_is_synced_to_disk_as_often_as_asked_while_the_run_goes_on(
    bench, monkeypatch, fsync_s
):
    synced = []
    monkeypatch.setattr(os, "fsync", noting(bench, synced, lambda: bench.tap.recorded))
    times = []

    def watch(pid):
        """The loop writes three rows at each look, and is gone at the fourth."""

        def lives():
            times.append(len(times))
            bench.push(3, 3 * times[-1])
            return len(times) < 4

        return lives

    monkeypatch.setattr(recorder, "parent_watch", watch)
    monkeypatch.setattr(recorder.time, "sleep", stuck)
    assert bench.record(fsync_s=fsync_s)[1] == [12, 1, 0]  # an event: the loop is gone
    assert synced == ([3, 6, 9, 12] if fsync_s == 0.0 else [12])


def test_a_recorder_whose_loop_is_dead_writes_what_is_left_and_ends(bench, monkeypatch):
    """Nobody closes the tap of a loop that was killed."""
    monkeypatch.setattr(recorder.time, "sleep", stuck)
    bench.push(7)
    rows, counts = bench.record(flush_s=1e9, parent=os.getpid())  # its parent is another process
    assert (rows, counts) == (list(range(7)), [7, 1, 0])
    with h5py.File(bench.path) as file:
        t_s, level, source, text = file["events"][0]
    assert (t_s, level, source) == (6.0, b"error", b"recorder")
    assert text.startswith(b"the program of this run ended without closing it")


def deleted(bench):
    bench.path.unlink()


def moved(bench):
    bench.path.rename(bench.path.with_name("elsewhere.h5"))


def replaced(bench):
    other = bench.path.with_name("other.h5")
    other.write_bytes(b"theirs")
    other.rename(bench.path)


def cut_to(size_B):
    def cut(bench):
        os.truncate(bench.path, size_B)

    return cut


def cut_by_a_byte(bench):
    os.truncate(bench.path, bench.path.stat().st_size - 1)


def written_over(bench):
    bench.path.write_bytes(b"theirs")  # as a shell does with > run.h5


@pytest.fixture
def harmed(bench, monkeypatch):
    """Record rows, five a flush; before the last flush but one this happens."""

    def record(harm, flushes=3):
        clock, at = [0.0], SimpleNamespace(told=[], left=None)

        def later(seconds):
            at.told.append(bench.tap.harm)
            if len(at.told) == flushes - 1:
                harm(bench)
                at.left = bench.path.read_bytes() if bench.path.exists() else None
            bench.push(5, bench.tap.ticks.written)
            clock[0] += 1.0
            if len(at.told) == flushes:
                bench.tap.close_writer()

        monkeypatch.setattr(recorder.time, "monotonic", lambda: clock[0])
        monkeypatch.setattr(recorder.time, "sleep", later)
        at.rows, (at.count, *_) = bench.record(flush_s=1.0)
        return at

    return record


@pytest.mark.parametrize(
    ("harm", "said"),
    [(deleted, "was deleted"), (moved, "was moved away or replaced"),
     (replaced, "was moved away or replaced")],
)  # fmt: skip
def test_a_recording_that_is_taken_away_is_noticed_within_a_flush_and_put_back_whole(
    bench, harmed, harm, said
):
    at = harmed(harm)
    assert (at.rows, at.count) == (list(range(15)), 15)
    assert at.told == ["", "", said]
    name = "run-kept.h5" if harm is replaced else "run.h5"
    assert bench.kept == bench.path.with_name(name)
    left = {"run.h5", "elsewhere.h5"} if harm is moved else {"run.h5", name}
    assert {path.name for path in bench.path.parent.iterdir()} == left
    if harm is replaced:
        assert bench.path.read_bytes() == b"theirs"


@pytest.mark.parametrize("harm", [cut_to(0), cut_to(5000), cut_by_a_byte, written_over])
def test_of_a_recording_that_is_cut_off_the_rows_in_the_ring_are_kept_in_another(
    bench, harmed, harm
):
    at = harmed(harm)
    assert (at.rows, at.count) == (list(range(15)), 15)  # the ring has room for 64
    assert at.told == ["", "", "was cut off"]
    assert bench.kept == bench.path.with_name("run-kept.h5")
    assert {path.name for path in bench.path.parent.iterdir()} == {"run.h5", "run-kept.h5"}
    assert bench.path.read_bytes() == at.left  # not a byte more: it may be another's by now


def test_a_whole_recording_is_not_cut_off_where_its_bytes_cannot_be_read_meanwhile(
    bench, harmed, monkeypatch
):
    """On Windows; a recorder that takes it for cut off begins another one for ever."""
    monkeypatch.setattr(sys, "platform", "win32")
    at = harmed(lambda bench: None, flushes=12)
    monkeypatch.undo()
    assert at.rows == list(range(60))
    assert [path.name for path in bench.path.parent.iterdir()] == ["run.h5"]


@pytest.mark.parametrize(("first", "size_B"), [(5, 6), (40, 6), (40, "all but the last chunks")])
def test_a_recording_that_is_cut_off_in_the_midst_of_a_write_is_noticed_after_it(
    bench, harmed, monkeypatch, first, size_B
):
    """The write makes the file longer again; what was there before reads as zeros."""
    append, cut = recorder._append, []

    def meanwhile(dataset, at, values):
        if at == first and not cut:
            cut.append(bench.path.stat().st_size)
            os.truncate(bench.path, size_B if size_B == 6 else bench.path.stat().st_size // 2)
        append(dataset, at, values)

    monkeypatch.setattr(recorder, "_append", meanwhile)
    at = harmed(lambda bench: None, flushes=12)
    assert cut
    assert at.rows == list(range(60))
    assert bench.kept == bench.path.with_name("run-kept.h5")


def test_of_a_long_run_that_is_cut_off_the_last_ring_of_rows_is_kept(bench, harmed):
    at = harmed(cut_to(0), flushes=44)
    assert at.rows == list(range(int(at.rows[0]), 220))
    assert at.count == len(at.rows) == 220 - bench.tap.lost
    assert 60 <= at.count <= 64


def test_a_process_knows_its_parent_from_another():
    assert parent_watch(os.getppid())()
    assert not parent_watch(os.getpid())()


def test_between_flushes_it_waits_until_the_ring_fills(bench, monkeypatch):
    waits = []

    def later(seconds):
        waits.append((seconds, bench.tap.recorded, bench.tap.ticks.written))
        # bit 2 of the superblock's flags: a reader may open it while it grows, or after a kill
        assert bench.path.read_bytes()[11] & 4
        bench.push(4, bench.tap.ticks.written)
        if len(waits) == 6:
            bench.tap.close_writer()

    monkeypatch.setattr(recorder.time, "sleep", later)
    rows, counts = bench.record(flush_s=1e9)
    assert rows == list(range(24))
    assert counts == [24, 0, 0]
    assert all(0.0 < seconds <= 0.1 for seconds, _, _ in waits)
    # 64 rows, of which an eighth is 8: it waits with 0 and with 4 rows, and writes 8
    assert [written - recorded for _, recorded, written in waits] == [0, 4, 0, 4, 0, 4]


def test_rows_are_flushed_and_synced_as_often_as_asked(bench, monkeypatch):
    """A kill loses no more than flush_s, a power cut no more than fsync_s."""
    clock, recorded, synced = [100.0], [], []
    monkeypatch.setattr(recorder.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(os, "fsync", noting(bench, synced, lambda: clock[0]))

    def later(seconds):
        recorded.append(bench.tap.recorded)
        shutil.copy(bench.path, killed := bench.path.with_name("killed.h5"))
        with h5py.File(killed, swmr=True) as file:  # what a kill would leave now
            assert file["ticks/x"][:].tolist() == [-k for k in range(recorded[-1])]
            assert file[layout.RECORDED][0] == recorded[-1]
        bench.push(1, len(recorded) - 1)
        clock[0] += 0.25
        if len(recorded) == 14:
            bench.tap.close_writer()

    monkeypatch.setattr(recorder.time, "sleep", later)
    assert bench.record(flush_s=1.0, fsync_s=2.0)[1] == [14, 0, 0]
    assert recorded == [0] * 4 + [4] * 4 + [8] * 4 + [12] * 2
    assert synced == [102.0, 103.5]


def test_rows_are_flushed_before_their_number_is_and_all_of_them_are(bench, monkeypatch):
    """A kill in between leaves more rows than are counted, never fewer."""
    seen, flush = [], h5py.Dataset.flush

    def noted(dataset):
        seen.append((dataset.name, int(dataset.file[layout.RECORDED][0])))
        flush(dataset)

    monkeypatch.setattr(h5py.Dataset, "flush", noted)
    bench.push(5)
    bench.tap.close_writer()
    bench.record()
    *rows, count = seen
    names = ("ticks/cells", "ticks/t_s", "ticks/x", "events", "inputs")
    assert sorted(rows) == sorted((f"/{name}", 0) for name in names)
    assert count == (f"/{layout.RECORDED}", 5)


def test_rows_that_the_ring_has_lost_are_counted_and_the_rest_is_in_order(bench):
    bench.push(100)
    bench.tap.close_writer()
    rows, counts = bench.record()
    assert rows == list(range(100 - len(rows), 100))
    assert 0 < len(rows) <= 64
    assert counts == [len(rows), 0, 0]
    assert (bench.tap.recorded, bench.tap.lost) == (100, 100 - len(rows))


def test_rows_that_come_while_the_last_ones_are_read_are_recorded_too(bench, monkeypatch):
    """The loop writes its last rows and closes the tap between a look and the next."""
    bench.push(5)
    read = bench.tap.ticks.read

    def read_and_close(after):
        rows = read(after)
        if not bench.tap.closed:
            bench.push(3, first=5)
            bench.tap.close_writer()
        return rows

    monkeypatch.setattr(bench.tap.ticks, "read", read_and_close)
    monkeypatch.setattr(recorder.time, "sleep", stuck)
    assert bench.record()[0] == list(range(8))


def test_events_that_were_lost_are_counted_as_well_as_rows(bench):
    event = np.zeros(1, dtype=taps.EVENT)
    for _ in range(bench.tap.events.capacity + 10):
        bench.tap.events.push(event)
    bench.tap.close_writer()
    _, counts = bench.record()
    assert bench.tap.lost == bench.tap.events.written - counts[1] > 0


@pytest.fixture
def signals():
    before = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    yield before
    for number, handler in before.items():
        signal.signal(number, handler)


def test_signals_that_stop_the_loop_do_not_stop_its_recorder(bench, monkeypatch, signals):
    """Ctrl-C, a hang-up or a shutdown ends the loop, whose last rows must still be recorded."""

    def interrupted(tap, path, flush_s, fsync_s, parent):
        assert (tap.path, path, flush_s, fsync_s, parent) == (
            bench.tap.path, bench.path, 0.5, 5.0, 12,
        )  # fmt: skip
        for number in STOP_SIGNALS:
            os.kill(os.getpid(), number)
        done.append(True)
        bench.tap.close_writer()
        return path

    done = []
    monkeypatch.setattr(recorder, "record", interrupted)
    words = ["recorder", str(bench.tap.path), str(bench.path), "0.5", "5.0", "12"]
    monkeypatch.setattr(sys, "argv", words)
    for number in STOP_SIGNALS:  # what would be noticed is an exception, not the end of the tests
        signal.signal(number, lambda *_: pytest.fail("interrupted"))
    assert recorder.main() == 0
    assert done


def test_a_recorder_that_outlives_its_loop_finishes_the_recording_and_says_so(
    bench, monkeypatch, signals, capfd
):
    bench.push(7)
    words = [str(bench.tap.path), str(bench.path), "0.5", "5.0", str(os.getpid())]  # no parent
    monkeypatch.setattr(sys, "argv", ["recorder", *words])
    assert recorder.main() == 0
    said = capfd.readouterr().out.splitlines()
    assert said == [f"{bench.path}: {recorder.LEFT_ALONE}: 7 rows are recorded"]
    assert not bench.tap.path.exists()
    with h5py.File(bench.path) as file:
        assert file.attrs["outcome"] == "recovered"
        assert len(file["ticks/t_s"]) == 7


@pytest.mark.parametrize(("kind", "number"), [(OSError, [28]), (OSError, []), (RuntimeError, [])])
def test_a_disk_that_is_full_is_named_without_what_hdf5_says_of_it(
    bench, monkeypatch, signals, capsys, kind, number
):
    """As h5py 3.12 words it."""
    dump = (
        "[Errno 28] Can't synchronously write data (file write failed: time = Tue Nov 24 10:11:12"
        " 2026\n, filename = 'run.h5', file descriptor = 9, errno = 28, error message = 'No space"
        " left on device', buf = 0x7f10, total write size = 4096, bytes this sub-write = 4096)"
    )
    bench.tap.close_writer()
    words = ["recorder", str(bench.tap.path), str(bench.path), "0.5", "5.0", str(os.getppid())]
    monkeypatch.setattr(sys, "argv", words)

    def fails(*_):
        raise kind(*number, dump)

    monkeypatch.setattr(recorder, "_copy_rows", fails)
    assert recorder.main() == 1
    assert capsys.readouterr().err == f"{bench.path}: No space left on device\n"


def test_a_write_that_fails_is_one_line_with_the_file(bench, monkeypatch, signals, capsys):
    words = ["recorder", str(bench.tap.path), str(bench.path), "0.5", "5.0", "12"]
    monkeypatch.setattr(sys, "argv", words)
    for error in (OSError("no space\nleft"), RuntimeError("no space left")):

        def fails(*_, error=error):
            raise error

        monkeypatch.setattr(recorder, "record", fails)
        assert recorder.main() == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith(f"{bench.path}: no space")


def test_the_log_of_places_names_only_rows_that_were_flushed_and_synced_before(bench, monkeypatch):
    """Rows that HDF5 still holds, or that no sync has reached, may be gone after a power cut."""
    fsync, order, noted = os.fsync, [], []
    add = places.Places.add

    def sync(number):
        fsync(number)
        if os.path.samestat(os.fstat(number), bench.path.stat()):
            order.append("synced")

    def note(log, rows):
        order.append("noted")
        noted.append((rows["ticks"], bench.tap.recorded))
        add(log, rows)

    def later(seconds):
        bench.push(10, bench.tap.ticks.written)
        if len(noted) == 4:
            bench.tap.close_writer()

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(places.Places, "add", note)
    monkeypatch.setattr(recorder.time, "sleep", later)
    assert len(bench.record(flush_s=1e9, fsync_s=0.0)[0]) == bench.tap.ticks.written
    assert order == ["synced", "noted"] * 4 + ["synced"]
    assert [flushed for flushed, _ in noted] == [0] * 4
    assert noted[-1][1] > 0
