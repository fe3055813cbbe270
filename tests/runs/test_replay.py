"""A recording goes through the very loop again: the same, or the first difference is named."""

import json
import shutil

import h5py
import numpy as np
import pytest

import hil
from hil.__main__ import main
from hil.runs.replay import replay

# Runs on the real clock want the machine one at a time.
pytestmark = pytest.mark.xdist_group("real time")

SHORT = ("experiment.duration_s=0.8",)
RUNS = {
    "a schedule": (
        "miga6/all_on.toml",
        (*SHORT, "controller.steps=[{t_s=0.0, on='all'}, {t_s=0.5, off='all'}]"),
    ),
    "a pid": ("miga6/pid.toml", ()),
    "two boards": ("array14/pid.toml", ("experiment.duration_s=2.0",)),
    "a trip": ("miga6/all_on.toml", ("guard.force_max_N=1.0",)),
    "lost readings": (
        "miga6/pid.toml",
        (
            "devices.board.sim.reply_lost_probability=0.2",
            "devices.daq.channels.force.sim.reading_lost_probability=0.2",
        ),
    ),
}


@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize("name", RUNS)
def test_a_run_on_the_virtual_clock_replays_bit_for_bit(name, configs, tmp_path):
    experiment, sets = RUNS[name]
    path = hil.run(hil.load(configs / experiment, sets), out=tmp_path / "run.h5", seed=3)
    rows, difference = replay(path)
    assert difference is None
    assert rows == hil.open_run(path).sizes["tick"]


@pytest.mark.slow
def test_a_run_on_the_real_clock_replays_too(configs, tmp_path):
    sets = ("experiment.duration_s=0.5", "loop.overrun='skip'", "devices.board.hold_s=0.1")
    path = hil.run(hil.load(configs / "miga6/pid.toml", sets), clock="real", out=tmp_path / "r.h5")
    rows, difference = replay(path)
    assert difference is None
    assert rows == hil.open_run(path).sizes["tick"]


@pytest.fixture(scope="module")
def short(configs, tmp_path_factory):
    """A recording of 800 ticks; not to be changed."""
    config = hil.load(configs / "miga6/all_on.toml", SHORT)
    return hil.run(config, seed=1, out=tmp_path_factory.mktemp("short") / "run.h5")


@pytest.mark.parametrize(
    ("column", "row", "change", "named"),
    [
        ("force_model_N", 700, 1e-15, "force_model_N"),
        ("force_measured_N", 700, 0.01, "force_estimate_N"),
        ("cells_reported", 700, 1, "force_model_N"),
        ("cells_commanded", 700, 1, "cells_commanded"),
        ("fault_bits", 700, 1, "fault_bits"),
    ],
)
def test_the_first_tick_and_column_that_differ_are_named(
    short, tmp_path, capsys, column, row, change, named
):
    path = tmp_path / "changed.h5"
    shutil.copyfile(short, path)
    with h5py.File(path, "r+") as file:
        values = file["ticks"][column]
        old = values[row]
        values[row] = old ^ 1 if values.dtype.kind == "u" else np.float64(old) + change
    assert main(["replay", str(path), "--json"]) == 5
    said = json.loads(capsys.readouterr().out)
    assert said["identical"] is False
    assert said["difference"]["column"] == named
    assert said["difference"]["row"] == row
    assert said["difference"]["t_s"] == pytest.approx(0.001 * row)


@pytest.mark.parametrize(
    ("column", "change", "same"),
    [
        ("force_model_N", 1e-12, True),
        ("force_model_N", 1e-3, False),
        ("cells_commanded", 1, False),
        ("fault_bits", 1, False),
    ],
)
def test_a_recording_of_another_processor_has_the_same_decisions_and_rounded_numbers(
    short, tmp_path, capsys, column, change, same
):
    path = tmp_path / "elsewhere.h5"
    shutil.copyfile(short, path)
    with h5py.File(path, "r+") as file:
        software = json.loads(file.attrs["software"])
        file.attrs["software"] = json.dumps({**software, "processor": "z80"})
        values = file["ticks"][column]
        old = values[700]
        values[700] = old ^ 1 if values.dtype.kind == "u" else np.float64(old) + change
    assert main(["replay", str(path)]) == (0 if same else 5)
    said = capsys.readouterr().out
    assert ("identical in 800 rows but for rounding" in said) is same


def test_a_recording_that_does_not_say_how_it_began_was_armed(short, tmp_path):
    """Its cells are on; a run that began disarmed would differ in the first tick."""
    path = tmp_path / "older.h5"
    shutil.copyfile(short, path)
    with h5py.File(path, "r+") as file:
        file["inputs"].resize(0, axis=0)
    assert replay(path) == (800, None)


def test_what_cannot_be_replayed_says_why(tmp_path, capsys):
    path = tmp_path / "notes.h5"
    path.write_text("nothing")
    assert main(["replay", str(path)]) == 2
    assert str(path) in capsys.readouterr().err
