"""`hil.simulate`: the rows of a run without a file, a recorder or shared memory."""

import importlib
import json
import linecache
import multiprocessing
import os
import pickle
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import psutil
import pytest
import xarray as xr

import hil
from hil.errors import ConfigError
from hil.experiment.load import load
from hil.runs import session
from hil.runs.plan import Plan
from hil.runs.recording import Output
from hil.runs.replay import replay
from hil.runs.simulate import simulate

TAKEN_TIMES = (
    "busy_s",
    *(f"{stage}_stage_s" for stage in ("read", "estimate", "control", "guard", "write")),
)
OF_A_COMPUTER = ("loop_s", "timing")


def equal(simulated, recorded):
    """The variables and attributes in which two runs differ, but for the time they took."""
    assert list(simulated.variables) == list(recorded.variables)
    differ = [
        name
        for name in recorded.variables
        if name not in TAKEN_TIMES
        and simulated[name].values.tobytes() != recorded[name].values.tobytes()
    ]
    for name in recorded.variables:
        assert simulated[name].attrs == recorded[name].attrs
    assert simulated.attrs.keys() == recorded.attrs.keys()
    differ += [
        key
        for key in recorded.attrs
        if key not in ("created_utc", "summary") and simulated.attrs[key] != recorded.attrs[key]
    ]
    summaries = [json.loads(run.attrs["summary"]) for run in (simulated, recorded)]
    differ += [
        key
        for key in summaries[1]
        if key not in OF_A_COMPUTER and summaries[0][key] != summaries[1][key]
    ]
    return differ


@pytest.mark.slow_beyond(2)
@pytest.mark.parametrize("experiment", ["miga6/broadcast", "wires4/hold", "array14/pid", "leg/up"])
def test_a_simulation_has_every_row_event_and_figure_of_a_recorded_run(
    configs, tmp_path, experiment
):
    config = load(configs / f"{experiment}.toml", ["experiment.duration_s=0.5"])
    recorded = hil.open_run(session.run(Plan(config, seed=5), Output(out=tmp_path / "run.h5")).path)
    assert equal(simulate(config, seed=5), recorded) == []


def test_a_simulation_trips_as_a_recorded_run_does(configs, tmp_path):
    config = load(configs / "miga6/all_on.toml", ["guard.force_max_N=1.0"])
    recorded = hil.open_run(session.run(Plan(config), Output(out=tmp_path / "run.h5")).path)
    simulated = simulate(config)
    assert recorded.attrs["outcome"] == "tripped"
    assert equal(simulated, recorded) == []


def test_more_rows_than_are_written_at_once_are_all_there(configs):
    config = load(configs / "miga6/all_on.toml", ["experiment.duration_s=5.0"])
    run = simulate(config)
    assert run.t_s.values == pytest.approx(np.arange(5000) * 0.001)


def test_a_simulation_leaves_no_file_process_or_shared_memory(configs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shared = Path("/dev/shm")
    before = {*shared.iterdir()} if shared.is_dir() else set()
    hil.simulate(configs / "miga6/all_on.toml", sets=("experiment.duration_s=0.1",))
    mine = psutil.Process().children(recursive=True)
    assert [p for p in mine if "hil.record.recorder" in " ".join(p.cmdline())] == []
    names = {path.name for path in ({*shared.iterdir()} if before else set()) - before}
    assert not [name for name in names if f"-{os.getpid()}-" in name]
    assert list(tmp_path.iterdir()) == []


def forces_N(path, seed):
    run = hil.simulate(path, seed=seed, sets=("experiment.duration_s=0.2",))
    return run.force_measured_N.values.tobytes()


@pytest.mark.slow
def test_simulations_in_threads_and_processes_are_those_of_one_after_the_other(configs):
    path, seeds = configs / "miga6/pid.toml", range(4)
    one_by_one = [forces_N(path, seed) for seed in seeds]
    assert len({*one_by_one}) == len(one_by_one)
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(forces_N, [path] * 4, seeds)) == one_by_one
    spawning = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawning) as processes:
        assert list(processes.map(forces_N, [path] * 2, seeds)) == one_by_one[:2]


def test_an_experiment_can_be_sent_to_another_process(configs):
    """The factors of its array cannot be; a loaded experiment has them."""
    config = load(configs / "miga6/pid.toml", ("experiment.duration_s=0.05",))
    assert not equal(hil.simulate(pickle.loads(pickle.dumps(config))), hil.simulate(config))


def test_a_seed_or_a_fault_that_cannot_be_is_refused_in_one_line(configs):
    config = load(configs / "miga6/all_on.toml")
    with pytest.raises(ConfigError, match="seed -1: give a whole number"):
        simulate(config, seed=-1)


CELL = """
import numpy as np


class Half:
    def __init__(self, facts, values):
        self.n_on = facts.n_commands // 2 + values["more"]

    def step(self, now):
        return np.arange(6) < self.n_on
"""


@pytest.fixture
def half():
    """A controller as a notebook's cell defines it: its text is in no file."""
    name = "<cell-7>"
    linecache.cache[name] = (len(CELL), None, CELL.splitlines(keepends=True), name)
    names = {"__name__": "__main__"}
    exec(compile(CELL, name, "exec"), names)
    yield names["Half"]
    del linecache.cache[name]


@pytest.mark.parametrize("more", [0, 2])
def test_a_controller_of_a_notebooks_cell_runs_and_is_kept_for_a_replay(
    configs, tmp_path, half, more
):
    path = configs / "miga6/pid.toml"
    changes = {
        "controller": {"kind": half, "more": more},
        "experiment": {"duration_s": 0.1},
    }
    run = hil.simulate(path, **changes)
    assert run.cells_commanded.values.sum(axis=1).tolist()[1:] == [3 + more] * 99
    recorded = hil.run(hil.load(path, **changes), out=tmp_path / "run.h5")
    # Only a recorded run times the class and says so.
    assert all(name.startswith("event_") for name in equal(run, hil.open_run(recorded)))
    assert replay(recorded) == (100, None)


def test_a_class_without_a_text_is_refused_before_anything_runs(configs, half):
    del linecache.cache["<cell-7>"]
    try:
        with pytest.raises(ConfigError, match=r"^the program: controller.kind = '__main__.py:Half"):
            hil.load(configs / "miga6/pid.toml", controller=half)
    finally:
        linecache.cache["<cell-7>"] = (0, None, [], "<cell-7>")


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"controller": 3}, "the program: controller = 3: give a table or a class"),
        ({"guards": {}}, "the program: guards: "),
        ({"guard": {"force_max_N": 99.0}}, "the program: guard.force_max_N = 99: looser"),
    ],
)
def test_a_change_that_cannot_be_is_refused_in_one_line(configs, changes, line):
    with pytest.raises(ConfigError) as refused:
        hil.simulate(configs / "miga6/pid.toml", **changes)
    assert str(refused.value).startswith(line)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("file", "sets", "changes"),
    [
        (
            "miga6/all_on",
            ("model.arrays.muscle.mass_kg=0.05", "model.arrays.muscle.force_on_N=0.5"),
            {"model": {"arrays": {"muscle": {"mass_kg": 0.05, "force_on_N": 0.5}}}},
        ),
        (
            "wires4/hold",
            ("ambient={ambient_C=31.0, ambient_uncertainty_C=1.0}",),
            {"ambient": {"ambient_C": 31.0, "ambient_uncertainty_C": 1.0}},
        ),
        (
            "miga6/pid",
            ("reference={kind='trace', file='trace.csv'}",),
            {"reference": {"kind": "trace", "file": "trace.csv"}},
        ),
    ],
)
def test_changes_of_a_program_mean_what_they_mean_in_a_file(rigs, file, sets, changes):
    """A change of the model is one of the plant too, air is that of the wires, a trace is read."""
    (rigs / "miga6/trace.csv").write_text("t_s,force_N\n0.0,0.1\n0.2,0.5\n")
    path = rigs / f"{file}.toml"
    assert hil.load(path, **changes).tables == hil.load(path, sets).tables


def test_a_program_gives_arrays_series_tuples_and_ranges(configs):
    force_N = xr.DataArray([0.5, 1.0])
    config = hil.load(
        configs / "miga6/pid.toml",
        reference={"kind": "steps", "t_s": range(2), "force_N": pd.Series([0.1, 0.2])},
        guard={"force_max_N": force_N.max()},
        plant={"arrays": {"muscle": {"dead_cells": np.array([2])}}},
        devices={"daq": {"channels": {"force": {"sim": {"noise_rms_V": np.float64(0.001)}}}}},
    )
    tables = config.tables
    assert (tables.reference.t_s, tables.reference.force_N) == ([0.0, 1.0], [0.1, 0.2])
    assert tables.plant.arrays["muscle"].dead_cells == [2]
    assert tables.guard.force_max_N == 1.0


def test_a_model_of_another_kind_is_the_plant_too(pytestconfig, monkeypatch):
    """With the differences of the file where it names the same class."""
    examples = pytestconfig.rootpath / "examples/own"
    monkeypatch.syspath_prepend(examples)
    model = importlib.import_module("model").MyModel
    tables = hil.load(examples / "model.toml", model=model).tables
    assert (tables.model.mass_kg, tables.plant.mass_kg) == (0.2, 0.22)
    other = type("Other", (model,), {"step": model.step})
    tables = hil.load(examples / "model.toml", model=other).tables
    assert tables.plant == tables.model
    assert tables.plant.plugin.cls is other


def test_a_table_of_another_kind_takes_the_place_of_the_files(configs):
    steps = [{"t_s": 0.0, "on": [2]}]
    config = hil.load(configs / "miga6/pid.toml", controller={"kind": "schedule", "steps": steps})
    assert config.tables.controller.kind == "schedule"
    with pytest.raises(TypeError, match="loaded already"):
        hil.simulate(config, controller=half)
