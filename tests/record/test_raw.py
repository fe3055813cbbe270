"""Samples of a device that samples faster than the loop ticks: written, cut off, recovered."""

import shutil

import h5py
import numpy as np
import pytest

import hil
from hil.__main__ import main
from hil.record.layout import LIBVER
from hil.record.read import open_raw
from hil.runs import session
from hil.runs.plan import Plan
from hil.runs.recording import Output


@pytest.fixture(scope="module")
def whole(configs, tmp_path_factory):
    """A recording of an emulated card with force and 2 991 samples; not to be changed."""
    out = tmp_path_factory.mktemp("raw") / "run.h5"
    config = hil.load(configs / "miga6/all_on.toml", ["experiment.duration_s=0.3"])
    session.run(Plan(config, backend="daq=emulated"), Output(out=out))
    return out


@pytest.fixture
def cut(whole, tmp_path):
    """The same, as a killed recorder leaves it: one column a flush ahead of the other."""
    path = tmp_path / "cut.h5"
    shutil.copyfile(whole, path)
    with h5py.File(path, "r+", libver=LIBVER) as file:
        file.attrs["outcome"] = "running"
        file["raw/daq/t_s"].resize(2500, axis=0)
        file["recorded_rows"][3] = 2400
    return path


def test_a_whole_recording_is_whole_with_its_samples(whole, capsys):
    assert main(["verify", str(whole)]) == 0
    assert open_raw(whole, "daq").sizes["sample"] == 2991


def test_a_cut_recording_is_read_and_recovered_to_its_whole_samples(cut, whole, capsys):
    assert main(["verify", str(cut)]) == 5
    assert "raw/daq: columns differ in length" in capsys.readouterr().out
    assert open_raw(cut, "daq").sizes["sample"] == 2400
    assert main(["recover", str(cut)]) == 0
    assert main(["verify", str(cut)]) == 0
    before, after = open_raw(whole, "daq"), open_raw(cut, "daq")
    assert after.attrs == before.attrs
    for name in ("t_s", "force.raw_V"):
        np.testing.assert_array_equal(after[name].values, before[name].values[:2400])
        assert after[name].attrs == before[name].attrs
    with h5py.File(cut) as file:
        assert file["raw/daq/force.raw_V"].fletcher32
        np.testing.assert_array_equal(file["recorded_rows"][:2], [300, len(file["events"])])


def test_a_damaged_chunk_of_samples_is_not_passed_over(cut):
    with h5py.File(cut, "r+", libver=LIBVER) as file:
        column = file["raw/daq/force.raw_V"]
        place = column.id.get_chunk_info(0)
    with cut.open("r+b") as raw:
        raw.seek(place.byte_offset + 64)
        raw.write(b"\xff" * 8)
    with pytest.raises(hil.errors.ConfigError, match="damaged"):
        open_raw(cut, "daq")
