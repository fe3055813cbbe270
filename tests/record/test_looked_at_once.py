"""A recording that was found sound is not looked at again while it is the same."""

import os
import shutil
from pathlib import Path

import h5py
import pytest

import hil
from hil.errors import ConfigError
from hil.record import read
from hil.record.layout import LIBVER
from hil.record.safe_open import OVERRIDE


@pytest.fixture
def run(all_on, tmp_path):
    return Path(shutil.copy(all_on, tmp_path / "run.h5"))


@pytest.fixture
def looked(monkeypatch):
    """The files that were looked at."""
    files, refuse = [], read.refuse_hostile
    monkeypatch.setattr(
        read, "refuse_hostile", lambda file, path: files.append(path) or refuse(file, path)
    )
    return files


def test_an_unchanged_file_is_looked_at_once(run, looked):
    for _ in range(3):
        hil.open_run(run)
    assert looked == [run]


def test_a_changed_file_is_looked_at_again(run, looked):
    hil.open_run(run)
    with h5py.File(run, "r+", libver=LIBVER) as file:
        file.attrs["operator"] = "somebody else"
    assert hil.open_run(run).attrs["operator"] == "somebody else"
    assert looked == [run, run]


def test_another_file_of_that_name_is_looked_at(run, tmp_path, looked):
    hil.open_run(run)
    other = Path(shutil.copy2(run, tmp_path / "other.h5"))  # with its times
    os.replace(other, run)
    hil.open_run(run)
    assert looked == [run, run]


def test_a_file_that_has_become_hostile_is_refused(run):
    hil.open_run(run)
    with h5py.File(run, "r+", libver=LIBVER) as file:
        file["elsewhere"] = h5py.ExternalLink("/etc/passwd", "/")
    with pytest.raises(ConfigError, match="elsewhere"):
        hil.open_run(run)


def test_a_file_that_was_refused_is_looked_at_again(run, looked):
    with h5py.File(run, "r+", libver=LIBVER) as file:
        file["elsewhere"] = h5py.ExternalLink("/etc/passwd", "/")
    for _ in range(2):
        with pytest.raises(ConfigError, match="elsewhere"):
            hil.open_run(run)
    assert looked == [run, run]


def test_of_many_files_the_last_are_known(run, tmp_path, looked, monkeypatch):
    monkeypatch.setattr(read, "_sound", {})
    monkeypatch.setattr(read, "SOUND_MAX", 2)
    runs = [Path(shutil.copy(run, tmp_path / f"{n}.h5")) for n in range(3)]
    for path in runs:
        hil.open_run(path)
    hil.open_run(runs[-1])
    assert looked == runs
    hil.open_run(runs[0])
    assert looked == [*runs, runs[0]]


def test_with_another_limit_of_memory_it_is_looked_at_again(run, looked, monkeypatch):
    hil.open_run(run)
    monkeypatch.setenv(OVERRIDE, "1e-6")  # 1000 bytes
    with pytest.raises(ConfigError, match="GB of memory"):
        hil.open_run(run)
    assert looked == [run, run]


def test_of_a_file_whose_head_was_read_the_rest_is_looked_at(run):
    with h5py.File(run, "r+", libver=LIBVER) as file:
        file["model/elsewhere"] = h5py.ExternalLink("/etc/passwd", "/")
    with read.open_h5(run, head=True):
        pass
    with pytest.raises(ConfigError, match="elsewhere"):
        hil.open_run(run)


def test_a_change_whose_time_was_set_back_is_noticed(run):
    with h5py.File(run, "r+", libver=LIBVER) as file:  # room for what comes
        file["elsewhere"] = h5py.ExternalLink("/etc/passwd", "/")
        del file["elsewhere"]
    hil.open_run(run)
    before = run.stat()
    with h5py.File(run, "r+", libver=LIBVER) as file:
        file["elsewhere"] = h5py.ExternalLink("/etc/passwd", "/")
    os.truncate(run, before.st_size)
    os.utime(run, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(ConfigError, match="elsewhere"):
        hil.open_run(run)
