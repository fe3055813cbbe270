"""The loop's side of a recording, with a recorder that is only there in name."""

import os
import shutil
from types import SimpleNamespace

import numpy as np
import pytest

from hil.errors import ConfigError, DeviceError
from hil.loop.frame import Column, Frame
from hil.record import sink as sinks
from hil.record.raw_samples import RawSamples
from hil.record.sink import Sink, Writing


class Process:
    """A recorder that says its last words and ends when asked."""

    pid = 4711

    def __init__(self, words=""):
        self.words, self.returncode, self.ended, self.asked = words, None, False, 0

    def poll(self):
        self.asked += 1
        return self.returncode

    def communicate(self, timeout):
        assert self.ended or self.returncode is not None or self.tap.closed, "it would wait forever"
        self.returncode = self.returncode or 0
        return None, self.words


@pytest.fixture
def started(tmp_path, monkeypatch):
    """Start a sink; its process, its words, and the disk that it sees."""
    made, disk = [], SimpleNamespace(free=10**12)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: disk)

    def start(period_s=0.01, lossless=False, process=None, disk_free_min_MB=0.0, **more):
        process = process or Process()
        words = []

        def popen(command, **options):
            words.append((command, options))
            return process

        monkeypatch.setattr(sinks.subprocess, "Popen", popen)
        frame = Frame([Column("t_s", "s", "timing", "")])
        sink = Sink(
            tmp_path / "run.h5", frame,
            Writing(period_s, 0.5, 5.0, lossless, disk_free_min_MB), **more,
        )  # fmt: skip
        process.tap = sink.tap
        made.append(sink)
        return SimpleNamespace(sink=sink, process=process, words=words, disk=disk, frame=frame)

    yield start
    for sink in made:
        sink.tap.unlink()


def test_the_recorder_gets_its_tap_its_file_its_intervals_and_its_parent(started):
    run = started()
    ((command, options),) = run.words
    assert command[1:] == [
        "-P", "-m", "hil.record.recorder", str(run.sink.tap.path), str(run.sink.path), "0.5", "5.0",
        str(os.getpid()),
    ]  # fmt: skip
    assert options["start_new_session"]  # Ctrl-C in the terminal does not reach it


@pytest.mark.parametrize(("period_s", "rows"), [(0.01, 4096), (0.001, 5000), (1e-4, 50000)])
def test_the_ring_holds_five_seconds_and_that_of_samples_twice_as_many(started, period_s, rows):
    sample = np.dtype([("t_s", "<f8")])
    raw = RawSamples(dtype=sample, units={"t_s": "s"}, rate_Hz=1e4, per_tick=3, simulated=True)
    tap = started(period_s, raw={"daq": raw}).sink.tap
    assert tap.ticks.capacity == rows
    assert tap.raw["daq"].capacity == 6 * rows


def push(run, n):
    """Push rows; the numbers of those that were refused."""
    return [k for k in range(n) if not run.sink.push()]


def test_rows_are_refused_once_the_recorder_has_died(started):
    run = started()
    assert push(run, 200) == []
    run.process.returncode = -9
    refused = push(run, 200)
    assert refused
    assert refused[0] < sinks.CHECK_EVERY
    assert not run.sink.disk_low


@pytest.mark.parametrize(("period_s", "within"), [(0.001, 64), (0.1, 5), (2.0, 1)])
def test_rows_are_refused_within_a_flush_of_half_a_second_once_the_recording_is_harmed(
    started, period_s, within
):
    run = started(period_s)
    assert push(run, 200) == []
    run.sink.tap.harm = "was deleted"
    refused = push(run, 200)
    assert refused[0] < within
    assert refused[-1] >= 200 - within
    assert run.sink.file_harmed == "run.h5 was deleted"


def test_a_recording_that_was_put_back_elsewhere_has_its_name(started):
    run = started(process=Process("/data/run-kept.h5".join(("kept in ", "\n"))))
    run.sink.drain()
    assert str(run.sink.path) == "/data/run-kept.h5"


def test_rows_are_refused_once_the_recorder_is_a_whole_ring_behind(started):
    run = started()
    assert push(run, 4000) == []
    run.sink.tap.recorded = 4000
    assert push(run, 4096) == []
    run.sink.tap.recorded = 4000
    refused = push(run, 2 * sinks.CHECK_EVERY)
    assert refused
    run.sink.tap.recorded = 9000
    assert push(run, 2 * sinks.CHECK_EVERY) == []


def test_a_recorder_that_is_a_ring_behind_and_no_more_is_not_stalled(started):
    run = started()
    assert push(run, 4096) == []
    assert push(run, 50) == [3]  # row 4100: every 50 rows of 0.01 s it is looked at


@pytest.mark.parametrize(("period_s", "looks"), [(0.001, 1), (0.01, 6), (0.1, 64)])
def test_the_disk_is_looked_at_about_once_a_second_and_not_in_every_tick(
    started, monkeypatch, period_s, looks
):
    """Rows 50, 150, 250, 350, 450 and 550 of 640, 0.01 s apart: every 50 there is time for it."""
    run, seen = started(period_s), []
    monkeypatch.setattr(shutil, "disk_usage", lambda path: seen.append(path) or run.disk)
    assert push(run, 640) == []
    assert seen == [run.sink.path.parent] * looks


def test_without_a_limit_a_full_disk_refuses_no_row(started):
    run = started()
    assert run.sink.disk_low == ""
    run.disk.free = 0
    assert push(run, 200) == []


def test_rows_are_refused_while_the_disk_is_low_and_the_reason_is_given(started):
    run = started(period_s=0.1, disk_free_min_MB=500.0)
    run.disk.free = 500_000_000  # at the limit
    assert push(run, 200) == []
    run.disk.free = 499_999_900
    assert push(run, 5) == [4]  # row 205
    run.disk.free = 499_000_000
    assert push(run, 200)
    assert run.sink.disk_low.startswith("499 MB free where run.h5 is, limit 500 MB")
    run.disk.free = 501_000_000
    push(run, 200)
    assert not run.sink.disk_low


def test_on_a_virtual_clock_the_loop_waits_for_the_recorder_and_not_for_a_dead_one(
    started, monkeypatch
):
    run = started(lossless=True)
    waits = []

    def later(seconds):
        waits.append(run.sink.tap.ticks.written - run.sink.tap.recorded)
        run.sink.tap.recorded = run.sink.tap.ticks.written

    monkeypatch.setattr(sinks.time, "sleep", later)
    assert push(run, 9000) == []
    assert len(waits) >= 2
    assert max(waits) < 4096  # never so many that the ring would be overwritten
    run.process.returncode = 1
    monkeypatch.setattr(sinks.time, "sleep", lambda s: pytest.fail("it waits for a dead process"))
    assert push(run, 9000)


def test_a_real_loop_never_waits(started, monkeypatch):
    run = started()
    monkeypatch.setattr(sinks.time, "sleep", lambda s: pytest.fail("it waits"))
    assert push(run, 9000)


def test_a_recorder_that_is_ready_is_waited_for_and_one_that_does_not_start_is_named(
    started, monkeypatch
):
    run, waits = started(), []

    def later(seconds):
        waits.append(seconds)
        run.sink.tap.set_recorder_ready()

    monkeypatch.setattr(sinks.time, "sleep", later)
    with monkeypatch.context() as patch:  # at 30 s it is not yet too late
        now = iter([0.0, 30.0])
        patch.setattr(sinks.time, "monotonic", lambda: next(now))
        run.sink.wait_ready()
    assert len(waits) == 1
    assert 0.0 < waits[0] < 0.1
    run = started(process=Process("Traceback\nImportError: no h5py\n"))
    run.process.returncode = 1
    with pytest.raises(DeviceError, match="recorder: did not start: ImportError: no h5py"):
        run.sink.wait_ready()
    run = started()
    now = iter([0.0, 30.0, 30.1])
    monkeypatch.setattr(sinks.time, "monotonic", lambda: next(now))
    monkeypatch.setattr(sinks.time, "sleep", lambda s: None)
    with pytest.raises(DeviceError, match="no answer within 30 s"):
        run.sink.wait_ready()


def test_the_end_closes_the_tap_and_tells_what_was_lost(started):
    run = started()
    run.sink.tap.lost = 12
    assert run.sink.drain() == 12
    assert run.sink.tap.closed
    assert not run.sink.tap.path.exists()


@pytest.mark.parametrize(("words", "said"), [("", "was killed"), ("a\nb\nrun.h5: full\n", "full")])
def test_a_recorder_that_failed_is_one_line(started, words, said):
    run = started(process=Process(words))
    run.process.returncode = 1
    with pytest.raises(DeviceError, match=f"^recorder: .*{said}$"):
        run.sink.drain()
    assert not run.sink.tap.path.exists()


def test_the_tap_is_there_until_its_recorder_has_ended(started):
    run = started()
    there, communicate = [], run.process.communicate

    def noted(timeout):
        there.append(run.sink.tap.path.exists())
        return communicate(timeout)

    run.process.communicate = noted
    run.sink.drain()
    assert there == [True]
    assert not run.sink.tap.path.exists()


def test_a_run_that_did_not_start_leaves_no_tap(started):
    run = started()
    run.sink.abandon()
    run.sink.abandon()  # the tap need not be there
    assert run.sink.tap.closed
    assert not run.sink.tap.path.exists()


def test_events_and_inputs_reach_the_ring_cut_to_their_length(started):
    run = started()
    run.sink.event(1.5, "fault", "guard", "x" * 300)
    run.sink.input(3, 0.5, "note", 2.0, "y" * 300)
    (event,), _ = run.sink.tap.events.read(0)
    assert event.tolist() == (1.5, b"fault", b"guard", b"x" * 256)
    (one,), _ = run.sink.tap.inputs.read(0)
    assert one.tolist() == (3, 0.5, b"note", 2.0, b"y" * 256)
    run.sink.show_state("armed")
    assert run.sink.tap.state == "armed"


@pytest.mark.parametrize("more_B", [0, -1])
@pytest.mark.parametrize(("limit_MB", "left_B"), [(0.0, 64 * 2**20), (100.0, 100_000_000)])
def test_a_run_whose_rows_would_fill_the_disk_is_refused(
    tmp_path, monkeypatch, more_B, limit_MB, left_B
):
    """Its rows and a tenth, and 64 MiB in reserve, or as much as its guard wants to be free."""
    free = int(1.1 * 1000 * 800) + left_B + more_B
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=free))
    if more_B == 0:
        sinks.check_disk(tmp_path / "run.h5", 1000, 800, limit_MB)
    else:
        said = f"{free / 1e6:.0f} MB free on the disk, this run needs {free / 1e6:.0f} MB"
        with pytest.raises(ConfigError, match=said):
            sinks.check_disk(tmp_path / "run.h5", 1000, 800, limit_MB)
