"""A recorder that stands still, as one does behind a stalled disk, is found out."""

import os
import signal
import threading

from hil.loop.frame import Column, Frame
from hil.record import layout
from hil.record import sink as sinks
from hil.record.sink import Sink, Writing


def test_a_recorder_that_leaves_a_whole_ring_of_rows_behind_counts_as_dead(tmp_path):
    path = tmp_path / "run.h5"
    frame = Frame([Column("t_s", "s", "timing", "scheduled time")])
    layout.create(path, layout.Contents(frame.columns, {}, rows_per_chunk=256))
    sink = Sink(path, frame, Writing(0.001, 0.05, 5.0, lossless=False))
    sink.wait_ready()
    capacity = sink.tap.ticks.capacity
    os.kill(sink.pid, signal.SIGSTOP)
    taken = [sink.push() for _ in range(2 * capacity)]
    os.kill(sink.pid, signal.SIGCONT)
    first = taken.index(False)
    assert capacity <= first < 1.1 * capacity
    assert not sink.disk_low
    lost = sink.drain()
    assert 0 < lost < 2 * capacity


def test_whoever_waits_for_a_recorder_that_stands_still_is_told_which_process(
    tmp_path, monkeypatch, capfd
):
    monkeypatch.setattr(sinks, "SAY_EVERY_S", 0.1)
    path = tmp_path / "run.h5"
    frame = Frame([Column("t_s", "s", "timing", "scheduled time")])
    layout.create(path, layout.Contents(frame.columns, {}, rows_per_chunk=256))
    sink = Sink(path, frame, Writing(0.001, 0.05, 5.0, lossless=False))
    sink.wait_ready()
    os.kill(sink.pid, signal.SIGSTOP)
    assert sink.push()
    goes_on = threading.Timer(0.5, os.kill, (sink.pid, signal.SIGCONT))
    goes_on.start()
    assert sink.drain() == 0  # and every row is there
    goes_on.join()
    assert f"recorder: process {sink.pid} has not ended" in capfd.readouterr().err
