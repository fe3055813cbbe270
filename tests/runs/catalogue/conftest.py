"""Recordings in a folder of their own, made of one short run with other attributes."""

import json
import os
import shutil

import h5py
import pytest

import hil


@pytest.fixture(scope="module")
def one_run(tmp_path_factory, configs):
    path = tmp_path_factory.mktemp("one") / "one.h5"
    config = hil.load(configs / "miga6/pid.toml", ("experiment.duration_s=0.05",))
    return hil.run(config, out=path)


def made_of(run, path, figures=None, **attributes):
    """A copy of the run with other root attributes, and `figures` of the force."""
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(run, path)
    with h5py.File(path, "r+", libver=("v110", "v110")) as file:
        for key, value in attributes.items():
            file.attrs[key] = value
        if figures:
            summary = json.loads(file.attrs["summary"])
            summary["force"] |= figures
            file.attrs["summary"] = json.dumps(summary)
    return path


@pytest.fixture
def make(one_run, tmp_path, monkeypatch):
    """Writes `runs/NAME`, of one run."""
    monkeypatch.chdir(tmp_path)
    return lambda name, **changes: made_of(one_run, tmp_path / "runs" / name, **changes)


def later(path, by_ns=1_000_000_000):
    """Change the file's time, as an editor does."""
    stat = path.stat()
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns + by_ns))
