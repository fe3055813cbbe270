"""Verify and repair, on recordings of a few rows."""

import os

import h5py
import numpy as np
import pytest

from hil.errors import ConfigError, DeviceError
from hil.loop import loop
from hil.loop.frame import Column
from hil.loop.tap import EVENT, INPUT
from hil.record import layout, repair

N = 20
MODEL = {"k": [1.0], "cells": ["a", "b"]}
EXPERIMENT = "[loop]\nperiod_s = 0.001\n[experiment]\nduration_s = 0.02\n"


@pytest.fixture
def run(tmp_path):
    """A sound recording of 20 rows, in chunks of 8."""
    path = tmp_path / "run.h5"
    columns = [
        *loop.columns(),
        Column("x", "1", "measured", ""),
        Column("cells_commanded", "1", "commanded", "", n_cells=2),
    ]
    attributes = {
        "experiment": EXPERIMENT, "experiment_file": "a.toml", "experiment_name": "a",
        "clock": "virtual", "seed": 1, "software": "{}",
    }  # fmt: skip
    layout.create(path, columns, attributes, rows_per_chunk=8, calibration={}, model=MODEL)
    with h5py.File(path, "r+", libver=layout.LIBVER) as file:
        for name, column in file["ticks"].items():
            column.resize(N, axis=0)
            rows = np.arange(N) * (0.001 if name == "t_s" else 1)
            column[:] = rows if column.ndim == 1 else rows[:, None] % 2
        for name, dtype in (("events", EVENT), ("inputs", INPUT)):
            file[name].resize(1, axis=0)
            one = np.zeros(1, dtype=dtype)
            if name == "inputs":
                one["name"], one["value"] = b"start", 1.0
            file[name][:] = one
        file[layout.RECORDED][:] = N, 1, 1
        file.attrs["outcome"] = "complete"
    return path


def change(path, name, **more):
    """Change a recording where `name` says, as a fault or a kill would."""
    with h5py.File(path, "r+", libver=layout.LIBVER) as file:
        for key, value in more.items():
            if key == "at":
                file[name][value[0]] = value[1]
            elif key == "length":
                file[name].resize(value, axis=0)
            elif key == "outcome":
                file.attrs["outcome"] = value


def test_a_sound_recording_has_no_faults(run):
    assert repair.faults_of(run) == []


@pytest.mark.parametrize(("row", "t_s"), [(10, 0.009), (10, 0.0085), (19, 0.0), (1, 0.0), (5, 9e9)])
def test_time_that_stands_still_or_falls_is_found(run, row, t_s):
    change(run, "ticks/t_s", at=(row, t_s))
    assert repair.faults_of(run) == ["t_s: does not rise from row to row"]


def test_what_is_no_number_does_not_rise(run):
    change(run, "ticks/t_s", at=(7, np.nan))
    assert repair.faults_of(run) == ["t_s: does not rise from row to row"]


def test_an_outcome_that_is_none_and_a_run_that_has_not_ended_are_found(run):
    change(run, "", outcome="fine")
    (fault,) = repair.faults_of(run)
    assert fault.startswith("outcome 'fine' is not one of ")
    change(run, "", outcome="running")
    (fault,) = repair.faults_of(run)
    assert "repair it with hil recover" in fault


@pytest.mark.parametrize("length", [N - 1, N + 1])
def test_columns_of_different_length_are_found_with_the_shortest(run, length):
    change(run, "ticks/x", length=length)
    faults = repair.faults_of(run)
    short, few, many = ("x", N - 1, N) if length < N else ("busy_s", N, N + 1)
    assert f"columns differ in length, from {few} ({short}) to {many} rows" in faults


def test_rows_that_were_not_written_in_full_are_found(run):
    change(run, layout.RECORDED, at=(0, N - 3))
    assert f"only {N - 3} of {N} rows were written in full" in repair.faults_of(run)


def test_rows_beyond_the_experiment_are_found_and_a_run_armed_later_may_be_longer(run):
    text = EXPERIMENT.replace("0.02", "0.019")
    with h5py.File(run, "r+") as file:
        file.attrs["experiment"] = text
    assert repair.faults_of(run) == ["20 rows: its experiment has 19 ticks"]
    start = np.zeros(1, dtype=INPUT)
    start["name"] = b"start"  # with the value 0: nothing was armed
    change(run, "inputs", at=(slice(None), start))
    assert repair.faults_of(run) == []


def test_rows_without_data_are_found(run):
    change(run, "events", length=65)
    assert "events: claims 65 rows, 64 are stored" in repair.faults_of(run)


@pytest.fixture
def cut(run):
    """The same recording, cut off after 17 rows: one column is longer."""
    change(run, "", outcome="running")
    change(run, layout.RECORDED, at=(0, 17))
    return run


def test_a_cut_off_recording_keeps_every_whole_row_and_is_sound(cut):
    assert repair.recover(cut) == 17
    assert repair.faults_of(cut) == []
    with h5py.File(cut) as file:
        assert file.attrs["outcome"] == "recovered"
        assert file.attrs["experiment"] == EXPERIMENT
        np.testing.assert_array_equal(file["ticks/x"], np.arange(17))
        assert file["ticks/x"].attrs["role"] == "measured"
        assert file["ticks"].attrs["axes"] == "t_s"
        assert file["model/k"][:].tolist() == [1.0]
        assert (len(file["events"]), len(file["inputs"])) == (1, 1)
        assert file["ticks/x"].fletcher32
    assert repair.recover(cut) is None  # intact by now


def test_a_repaired_copy_is_on_disk_before_it_takes_the_place_of_the_recording(cut, monkeypatch):
    """A power cut in between leaves the old file or the new one, and never an empty one."""
    seen, fsync, replace = [], os.fsync, os.replace

    def synced(number):
        fsync(number)
        seen.append(("synced", os.fstat(number).st_ino))

    def replaced(old, new):
        seen.append(("replaced", os.stat(old).st_ino))
        replace(old, new)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", replaced)
    repair.recover(cut)
    inode = cut.stat().st_ino
    assert seen[-2:] == [("synced", inode), ("replaced", inode)]


def test_a_repair_that_fails_leaves_the_recording_and_nothing_else(cut, monkeypatch):
    whole = cut.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(ConfigError, match=r"cannot be repaired in its folder \(No space left"):
        repair.recover(cut)
    assert cut.read_bytes() == whole
    assert [path.name for path in cut.parent.iterdir()] == ["run.h5"]


def test_what_another_repair_left_is_no_obstacle(cut):
    cut.with_name("run.h5.recovering").write_bytes(b"half")
    assert repair.recover(cut) == 17
    assert [path.name for path in cut.parent.iterdir()] == ["run.h5"]


def test_a_recording_that_is_still_written_is_left_alone(cut, monkeypatch):
    whole = cut.read_bytes()
    now = iter(range(0, 1000, 6))
    monkeypatch.setattr(repair.time, "monotonic", lambda: next(now))
    monkeypatch.setattr(repair.time, "sleep", lambda s: None)
    monkeypatch.setattr(repair, "_writer_of", lambda path: 4711)
    with pytest.raises(DeviceError, match="process 4711 still records into it"):
        repair.recover(cut)
    assert cut.read_bytes() == whole
    # one that ends within the time is waited for
    writers = iter([4711, 4711, None])
    monkeypatch.setattr(repair.time, "monotonic", lambda: 0.0)
    monkeypatch.setattr(repair, "_writer_of", lambda path: next(writers))
    assert repair.recover(cut) == 17


def test_no_file_is_one_line(tmp_path):
    with pytest.raises(ConfigError, match="no such file: give a recording made by hil run"):
        repair.recover(tmp_path / "none.h5")


def test_a_recording_is_described_in_short(run):
    facts = repair.describe(run)
    assert facts.pop("created_utc")
    assert facts == {"file": str(run), "rows": N, "outcome": "complete"}


def test_a_process_that_has_the_file_open_for_writing_is_found_and_a_reader_is_not(run):
    """Another one than this: this process opens it for the repair."""
    assert repair._writer_of(run) is None
    for mode, writes in (("rb", False), ("r+b", True), ("ab", True)):
        with run.open(mode):
            child = os.fork()
            if child == 0:
                found = repair._writer_of(run)
                os._exit(0 if found == (os.getppid() if writes else None) else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
            assert repair._writer_of(run) is None
