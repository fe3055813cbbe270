"""Verify and repair, on recordings of a few rows."""

import errno
import os

import h5py
import numpy as np
import pytest

from hil.__main__ import main
from hil.errors import ConfigError, DeviceError
from hil.loop import loop
from hil.loop.frame import Column
from hil.loop.tap import EVENT, INPUT
from hil.record import layout, read, repair, superblock
from hil.record.raw_samples import RawSamples
from record.mutations import spoil

N = 20
SAMPLE = np.dtype([("t_s", "<f8"), ("volts", "<f8")])
PER_TICK = {"aux": 2, "daq": 3}  # of devices that are faster than the loop
MODEL = {"k": [1.0], "cells": ["a", "b"]}
EXPERIMENT = "[loop]\nperiod_s = 0.001\n[experiment]\nduration_s = 0.02\n"


@pytest.fixture
def run(tmp_path):
    """A sound recording of 20 rows, in chunks of 8; 2 and 3 samples of two devices a row."""
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
    raw = {
        name: RawSamples(SAMPLE, {"t_s": "s", "volts": "V"}, n, 100.0 * n, simulated=True)
        for name, n in PER_TICK.items()
    }
    layout.create(path, layout.Contents(columns, attributes, 8, model=MODEL, raw=raw))
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
        for name, n in PER_TICK.items():
            for column in file[f"raw/{name}"].values():
                column.resize(n * N, axis=0)
                column[:] = np.arange(n * N)
        file[layout.RECORDED][:] = N, 1, 1, 2 * N, 3 * N
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


@pytest.mark.parametrize("device", PER_TICK)
def test_samples_of_different_length_or_not_written_in_full_are_found(run, device):
    said = [f"raw/{device}: columns differ in length, or not written in full"]
    change(run, f"raw/{device}/volts", length=PER_TICK[device] * N - 1)
    assert repair.faults_of(run) == said
    change(run, f"raw/{device}/t_s", length=PER_TICK[device] * N - 1)
    assert repair.faults_of(run) == []
    change(run, layout.RECORDED, at=(3 + list(PER_TICK).index(device), 5))
    assert repair.faults_of(run) == said


def test_a_recording_without_a_row_has_no_time_that_falls(run):
    with h5py.File(run, "r+", libver=layout.LIBVER) as file:
        for column in file["ticks"].values():
            column.resize(0, axis=0)
        file[layout.RECORDED][0] = 0
    assert repair.faults_of(run) == []


def test_every_damaged_column_is_found_and_not_only_the_first(run):
    spoil(run, "ticks/busy_s", 0)
    spoil(run, "ticks/x", 19)
    change(run, "ticks/t_s", at=(10, 0.0))
    assert repair.faults_of(run) == [
        "busy_s: damaged, a stored checksum does not match",
        "t_s: does not rise from row to row",
        "x: damaged, a stored checksum does not match",
    ]


@pytest.mark.parametrize("name", ["raw/aux/volts", "raw/daq/t_s"])
def test_a_damaged_sample_of_any_fast_device_is_found(run, name):
    spoil(run, name, 0)
    assert repair.faults_of(run) == [f"{name}: damaged, a stored checksum does not match"]


def test_a_file_that_cannot_be_opened_is_a_fault_and_no_error(run):
    run.write_bytes(run.read_bytes()[:2000])
    (fault,) = repair.faults_of(run)
    assert str(run) not in fault


def test_a_column_that_another_program_has_stored_in_one_piece_hides_no_other(run):
    with h5py.File(run, "r+", libver=layout.LIBVER) as file:
        kept = dict(file["ticks/busy_s"].attrs)
        del file["ticks/busy_s"]
        file["ticks"].create_dataset("busy_s", data=np.zeros(N)).attrs.update(kept)
        file["ticks/x"].resize(25, axis=0)
    assert "x: claims 25 rows, 24 are stored" in repair.faults_of(run)


@pytest.mark.parametrize(
    "text",
    [
        "", "experiment = 3\n[loop]\nperiod_s = 0.001\n", EXPERIMENT.replace("0.001", "0.0"),
        EXPERIMENT.replace("0.02", "inf"), EXPERIMENT.replace("0.02", "nan"),
        EXPERIMENT.replace("0.02", '"long"'),
    ],
)  # fmt: skip
def test_an_experiment_without_a_duration_says_nothing_about_the_rows(run, text):
    with h5py.File(run, "r+") as file:
        file.attrs["experiment"] = text
    assert repair.faults_of(run) == []


@pytest.mark.parametrize(
    "error",
    [OSError(errno.EMFILE, "Too many open files"), OSError(errno.ENOMEM, ""), MemoryError()],
)
def test_what_this_computer_lacks_is_not_blamed_on_the_recording(run, error):
    with pytest.raises(type(error)) as caught, read.open_h5(run):
        raise error
    assert caught.value is error


@pytest.fixture
def cut(run):
    """The same recording, cut off after 17 rows: every column is longer."""
    change(run, "", outcome="running")
    change(run, layout.RECORDED, at=(slice(None), (17, 1, 1, 34, 51)))
    return run


def test_whole_samples_of_fast_devices_are_kept_with_their_rate(cut):
    change(cut, "raw/daq/volts", length=50)
    assert repair.recover(cut) == 17
    with h5py.File(cut) as file:
        assert file[layout.RECORDED][:].tolist() == [17, 1, 1, 34, 50]
        for name, n in (("aux", 34), ("daq", 50)):
            assert file[f"raw/{name}"].attrs["rate_Hz"] == 100.0 * PER_TICK[name]
            assert file[f"raw/{name}/volts"].attrs["units"] == "V"
            for column in ("t_s", "volts"):
                np.testing.assert_array_equal(file[f"raw/{name}/{column}"], np.arange(n))
    assert repair.faults_of(cut) == []


WITHOUT_CHECKSUM = "cut off within a write: last rows taken without their checksum: "


@pytest.mark.parametrize("n_rows", [15, 16, 17])
def test_rows_of_a_chunk_that_was_being_written_are_kept_and_named(cut, n_rows):
    """Chunks of 8: row 15 is the last of the second one, row 16 the first of the third."""
    change(cut, layout.RECORDED, at=(0, n_rows))
    for name in ("x", "cells_commanded"):
        spoil(cut, f"ticks/{name}", n_rows - 1)
    spoil(cut, "raw/daq/volts", 50)
    assert repair.recover(cut) == n_rows
    assert repair.faults_of(cut) == []
    with h5py.File(cut) as file:
        np.testing.assert_array_equal(file["ticks/x"], np.arange(n_rows))
        np.testing.assert_array_equal(
            file["ticks/cells_commanded"], [[k % 2, k % 2] for k in range(n_rows)]
        )
        np.testing.assert_array_equal(file["raw/daq/volts"], np.arange(51))
        assert file[layout.RECORDED][:].tolist() == [n_rows, 2, 1, 34, 51]
        _, event = file["events"][:].tolist()
        said = WITHOUT_CHECKSUM + "cells_commanded, x, raw/daq/volts"
        assert event == ((n_rows - 1) * 0.001, b"warning", b"recover", said.encode())


def test_samples_without_a_row_are_kept_too(cut):
    change(cut, layout.RECORDED, at=(0, 0))
    spoil(cut, "raw/aux/volts", 33)
    assert repair.recover(cut) == 0
    with h5py.File(cut) as file:
        assert file["events"][1]["t_s"] == 0.0
        np.testing.assert_array_equal(file["raw/aux/volts"], np.arange(34))


def test_another_chunk_than_the_last_that_is_damaged_is_an_error(cut):
    whole = cut.read_bytes()
    spoil(cut, "ticks/x", 3)
    with pytest.raises(ConfigError):
        repair.recover(cut)
    spoil(cut, "ticks/x", 3)  # back
    assert cut.read_bytes() == whole


def test_a_repaired_recording_has_its_texts_before_its_rows(cut):
    """There a torn one is noticed before HDF5 reads it for ever."""
    assert repair.recover(cut) == 17
    last_text = cut.read_bytes().rindex(b"GCOL")
    with h5py.File(cut) as file:
        columns = [*file["ticks"].values(), *file["raw/daq"].values(), file["events"]]
        assert min(column.id.get_chunk_info(0).byte_offset for column in columns) > last_text


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


def test_a_link_goes_on_leading_to_the_recording_that_is_repaired(cut):
    """It became a copy of its own, and the recording stayed as it was."""
    (cut.parent / "links").mkdir()
    link = cut.parent / "links" / "latest.h5"
    link.symlink_to(cut)
    assert repair.recover(link) == 17
    assert link.is_symlink()
    assert repair.faults_of(cut) == []
    assert repair.recover(cut) is None
    assert [path.name for path in link.parent.iterdir()] == ["latest.h5"]


def test_a_recording_is_left_as_it_is_only_if_it_has_ended_and_is_whole(run):
    change(run, "", outcome="running")  # killed after its last row
    assert repair.recover(run) == N
    change(run, layout.RECORDED, at=(0, 12))
    assert repair.recover(run) == 12
    assert repair.recover(run) is None


def test_a_repaired_copy_is_on_disk_before_it_takes_the_place_of_the_recording(cut, monkeypatch):
    """A power cut in between leaves the old file or the new one, and never an empty one."""
    seen, on_disk, fsync, replace = [], [], os.fsync, os.replace

    def synced(number):
        fsync(number)
        seen.append(("synced", os.fstat(number).st_ino))
        if (copy := cut.with_name("run.h5.recovering")).exists():
            on_disk.append(copy.read_bytes())

    def replaced(old, new):
        seen.append(("replaced", os.stat(old).st_ino))
        replace(old, new)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", replaced)
    repair.recover(cut)
    inode = cut.stat().st_ino
    assert seen[-2:] == [("synced", inode), ("replaced", inode)]
    monkeypatch.undo()
    cut.write_bytes(on_disk[-1])
    superblock.clear_flags(cut)
    assert repair.faults_of(cut) == []


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
    monkeypatch.setattr(superblock, "clear_flags", lambda path: pytest.fail("changes the file"))
    with pytest.raises(DeviceError, match="process 4711 still records into it"):
        repair.recover(cut)
    assert cut.read_bytes() == whole
    # one that ends within the time is waited for
    monkeypatch.setattr(superblock, "clear_flags", lambda path: False)
    writers = iter([4711, 4711, None])
    monkeypatch.setattr(repair.time, "monotonic", lambda: 0.0)
    monkeypatch.setattr(repair, "_writer_of", lambda path: next(writers))
    assert repair.recover(cut) == 17


@pytest.mark.parametrize(("cut_off", "done"), [(False, ""), (True, "{0}: repaired, 20 rows\n")])
def test_a_recording_without_times_is_not_called_whole(run, capsys, cut_off, done):
    change(run, "ticks/t_s", at=(7, np.nan))
    if cut_off:
        change(run, "", outcome="running")
    assert main(["recover", str(run)]) == 5
    said = f"{done}{{0}}: cannot be repaired: t_s: does not rise from row to row\n".format(run)
    assert capsys.readouterr().out == said


def test_no_file_is_one_line(tmp_path):
    with pytest.raises(ConfigError, match="no such file: give a recording made by hil run"):
        repair.recover(tmp_path / "none.h5")
    (tmp_path / "folder.h5").mkdir()  # "no such file: did you mean 'folder.h5'?"
    with pytest.raises(ConfigError, match=r"folder.h5: a folder: give a recording made by hil run"):
        repair.recover(tmp_path / "folder.h5")


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


def test_a_program_that_ends_while_a_writer_is_looked_for_does_not_matter(run, monkeypatch):
    scandir, gone = os.scandir, f"/proc/{os.getppid()}/fd"

    def without_it(path):
        if os.fspath(path) == gone:
            raise FileNotFoundError(2, "No such file or directory", gone)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", without_it)
    with run.open("rb+"):
        assert repair._writer_of(run) is None  # its own process does not count
