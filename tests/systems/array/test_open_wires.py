"""A wire breaks in mid-run: its board sets the cell apart, and controllers go on without it."""

import json

import numpy as np
import pytest

import hil
from hil.__main__ import main
from hil.devices.injection import Injection
from hil.devices.injection_tables import FaultTable
from hil.errors import ConfigError
from hil.experiment.load import load
from hil.runs.plan import Plan
from hil.runs.recording import Output
from hil.runs.replay import replay
from hil.runs.session import run as run_session

CELL = 2  # of the four, from 1
AT_S = 2.5
DRAWS_IT = 4  # a seed with which a broadcast switches that cell on after the break
LONGER = "experiment.duration_s=6.0"
SHORT = "experiment.duration_s=3.0"
ALLOWED = "devices.board.limits.open_cells_max=1"
LEVEL_N = 1.543 / 4.0  # four like cells
EVERY_PERIOD = "devices.board.every=1"
EMULATED = "board=emulated,daq=sim,supply=sim"
# Two scans; the tick in which the break falls, that of the next command, and one more where
# the answer to a broadcast takes the chip longer than a period. Commands in every millisecond
# stretch the chip's scan from 4 to 7 ms (docs/how-to/wire-limits.md).
SCAN_S = {"sim": 0.004, EMULATED: 0.007}
RIG = 'rig = "{rig}"\n[experiment]\nname = "a wire breaks"\nduration_s = 5.0\n'
SINE = '[reference]\nkind = "sine"\nmean_N = 0.6\namplitude_N = 0.3\nfrequency_Hz = 0.1\n'
GROUPS = """[controller]
kind = "groups"
groups = [["muscle.1", "muscle.2", "muscle.3", "muscle.4"]]
hysteresis = 0.2
dwell_s = 0.3
"""
OPTIMAL = """[controller]
kind = "optimal"
plan_s = 0.2
budget_s = 0.05
levels_per_tick = 2000
horizon_s = 5.0
"""
PID = """[controller]
kind = "pid"
k_p = 0.5
k_i_per_s = 0.5
k_d_s = 0.0
order = ["muscle.2", "muscle.1", "muscle.3", "muscle.4"]
hysteresis = 0.2
dwell_s = 0.3
"""
BROADCAST = """[controller]
kind = "broadcast"
law = "dead_beat"
error = "commanded"
period_s = 0.5
"""
FOLLOWING = {"groups": GROUPS, "optimal": OPTIMAL, "pid": PID, "broadcast": BROADCAST}
SCHEDULE = """[controller]
kind = "schedule"
steps = [{t_s = 0.5, on = "all"}]
"""


@pytest.fixture
def experiment(pytestconfig, tmp_path):
    """Loads an experiment on the rig of four wires, its board commanded in every period."""

    def loaded(controller, *sets):
        path = tmp_path / "breaks.toml"
        rig = pytestconfig.rootpath / "configs/wires4/rig.toml"
        reference = "" if controller is SCHEDULE else SINE
        path.write_text(RIG.format(rig=rig) + reference + controller)
        return load(path, [ALLOWED, EVERY_PERIOD, *sets])

    return loaded


def breaks(config, tmp_path, *more, at_s=AT_S, backend="sim", cell=CELL, seed=1, device="board"):
    """The run in which the wire breaks; its recording."""
    faults = [{"kind": "wire_open", "at_s": at_s, "cell": cell, "device": device}, *more]
    injection = Injection([FaultTable.model_validate(fault) for fault in faults])
    out = tmp_path / "run.h5"
    run_session(
        Plan(config, seed=seed, injection=injection, backend=backend), Output(out=out, force=True)
    )
    return out


def first_on_s(run, cell, after_s):
    """When the boards first report this cell on, from a time on."""
    on = (run.cells_reported.values[:, cell] == 1) & (run.t_s.values >= after_s)
    return float(run.t_s.values[np.flatnonzero(on)[0]])


def set_apart_s(run, cell):
    return float(run.t_s.values[np.flatnonzero(run.cells_open.values[:, cell])[0]])


@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize("controller", FOLLOWING)
def test_it_is_named_and_recruited_without(controller, experiment, tmp_path):
    named_and_recruited_without(controller, "sim", experiment, tmp_path)


@pytest.mark.slow
def test_so_it_is_by_the_board_s_own_chip(experiment, tmp_path):
    named_and_recruited_without("broadcast", EMULATED, experiment, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("controller", FOLLOWING)
def test_so_it_is_by_the_board_s_own_chip_with_every_controller(controller, experiment, tmp_path):
    named_and_recruited_without(controller, EMULATED, experiment, tmp_path)


def named_within_s(backend):
    return 2 * SCAN_S[backend] + 3 * 0.001 + 1e-9


def named_and_recruited_without(controller, backend, experiment, tmp_path):
    """Named so soon after being on, it is never on again; the force goes on to be followed."""
    config = experiment(FOLLOWING[controller])
    path = breaks(config, tmp_path, backend=backend, seed=DRAWS_IT)
    run = hil.open_run(path)
    assert run.attrs["outcome"] == "complete"
    cell, t_s = CELL - 1, run.t_s.values
    found_s = set_apart_s(run, cell)
    assert found_s - first_on_s(run, cell, AT_S) <= named_within_s(backend)
    later = t_s >= found_s
    assert not (run.cells_reported.values[later, cell] == 1).any()
    assert not (run.cells_commanded.values[t_s > found_s, cell] == 1).any()
    assert (run.cells_failed.values[later, cell] == 1).all()
    assert not run.cells_open.values[~later].any()
    assert run.cells_open.values.sum() == later.sum()  # no other cell
    # followed on, to within a cell: the wires are slow, no controller does better than that
    wished_N = run.force_reference_N.values[t_s > 3.5]
    error_N = run.force_measured_N.values[t_s > 3.5] - wished_N
    assert np.sqrt(np.mean(error_N**2)) < LEVEL_N
    assert (run.cells_reported.values[t_s > 3.5] == 1).any()
    assert replay(path) == (run.sizes["tick"], None)


@pytest.mark.slow
def test_it_is_an_event_in_the_summary_and_in_the_report(experiment, tmp_path, capsys):
    path = breaks(experiment(GROUPS, SHORT), tmp_path)
    run = hil.open_run(path)
    found_s = set_apart_s(run, CELL - 1)
    text = "muscle.2: electrically dead: open wire, found by its board"
    told = list(zip(run.event_t_s.values, run.event_text.values, strict=True))
    assert told.count((found_s, text)) == 1
    assert json.loads(run.attrs["summary"])["failed_cells"] == [
        {"cell": "muscle.2", "t_s": found_s, "found": text.partition(": ")[2]}
    ]
    assert main(["report", str(path), "--out", str(tmp_path)]) == 0
    assert f"{text} at {found_s:.3f} s" in (tmp_path / "run.html").read_text()


@pytest.mark.slow
def test_the_twin_leaves_the_cell_out(experiment, tmp_path):
    """Everything on: what is measured afterwards is the force of three, and so is the twin's."""
    run = hil.open_run(breaks(experiment(SCHEDULE, LONGER), tmp_path, at_s=4.0))
    assert run.attrs["outcome"] == "complete"
    before, after = (run.t_s.values > 3.9) & (run.t_s.values < 4.0), run.t_s.values > 5.95
    for column in (run.force_measured_N.values, run.force_model_N.values):
        assert column[after].mean() < column[before].mean()
    apart_N = run.force_measured_N.values[after].mean() - run.force_model_N.values[after].mean()
    assert abs(apart_N) < 0.25 * LEVEL_N


def test_a_wire_broken_before_the_run_is_set_apart_at_arming(experiment, tmp_path):
    run = hil.open_run(breaks(experiment(GROUPS, SHORT), tmp_path, at_s=0.0))
    assert run.attrs["outcome"] == "complete"
    assert run.cells_open.values[:, CELL - 1].all()
    assert not (run.cells_reported.values[:, CELL - 1] == 1).any()


@pytest.mark.slow
def test_one_more_than_allowed_turns_everything_off(experiment, tmp_path):
    more = {"kind": "wire_open", "at_s": 2.8, "cell": 4}
    run = hil.open_run(breaks(experiment(SCHEDULE, SHORT), tmp_path, more))
    assert run.attrs["outcome"] == "tripped"
    assert run.attrs["summary"]
    assert float(run.t_s.values[np.flatnonzero(run.fault_bits.values)[0]]) <= 2.8 + named_within_s(
        "sim"
    )
    assert not (run.cells_reported.values[-1] == 1).any()


@pytest.mark.slow
def test_without_the_limit_the_first_one_does(experiment, tmp_path):
    config = experiment(SCHEDULE, "devices.board.limits.open_cells_max=0")
    run = hil.open_run(breaks(config, tmp_path))
    assert run.attrs["outcome"] == "tripped"
    assert "cells_open" not in run
    assert "cells_failed" not in run


@pytest.mark.slow
def test_a_stuck_transistor_behind_a_cell_set_apart_turns_everything_off(experiment, tmp_path):
    """The wire makes contact again, and the gate does not keep the current off."""
    more = {"kind": "cell_leakage", "at_s": 2.8, "cell": CELL, "value": 0.15}
    run = hil.open_run(breaks(experiment(SCHEDULE, SHORT), tmp_path, more))
    assert run.attrs["outcome"] == "tripped"
    tripped = np.flatnonzero(run.fault_bits.values)[0]
    assert 2.8 <= float(run.t_s.values[tripped]) <= 2.8 + named_within_s("sim")
    assert run.cells_open.values[tripped, CELL - 1] == 1


@pytest.mark.slow
def test_of_two_boards_each_sets_its_own_apart(experiment, tmp_path):
    sets = [
        'devices.board.cells=["muscle.1", "muscle.2"]',
        'devices.other.kind="cell_board"',
        'devices.other.port="usb:HIL-0003"',
        'devices.other.cells=["muscle.3", "muscle.4"]',
        "devices.other.limits={open_cells_max=1, on_time_max_ms=20000, temperature_max_cC=12000}",
    ]
    more = {"kind": "wire_open", "at_s": 2.8, "cell": 1, "device": "other"}
    path = breaks(experiment(SCHEDULE, SHORT, *sets), tmp_path, more)
    run = hil.open_run(path)
    assert run.attrs["outcome"] == "complete"
    assert run.cells_open.values[-1].tolist() == [0, 1, 1, 0]
    assert run.cells_reported.values[-1].tolist() == [1, 0, 0, 1]
    assert replay(path) == (run.sizes["tick"], None)


@pytest.mark.slow
def test_the_tests_by_force_are_not_disturbed(configs, tmp_path):
    """The twin knows the cell as off, so that the force gives no reason to suspect another."""
    sets = ["devices.board_b.limits.open_cells_max=1", "experiment.duration_s=6.0"]
    config = load(configs / "array14/size_principle.toml", sets)
    run = hil.open_run(breaks(config, tmp_path, device="board_b", cell=3))
    assert run.attrs["outcome"] == "complete"
    states = run.cells_failed.values[-1]
    assert np.flatnonzero(states).tolist() == [9]  # the third of the second board: muscle.10
    assert set_apart_s(run, 9) - first_on_s(run, 9, AT_S) <= named_within_s("sim")
    assert run.cells_failed.values[run.t_s.values < set_apart_s(run, 9)].max() == 0


@pytest.mark.parametrize(
    ("sets", "says"),
    [
        (["devices.board.limits.open_cells_max=4"], "'board' has 4 cells.* choose at most 3"),
        (["devices.board.limits.open_cells_max=17"], "choose 0 to 16"),
    ],
)
def test_as_many_as_there_are_cells_are_refused(sets, says, experiment):
    """Then a supply that is gone would never be noticed."""
    with pytest.raises(ConfigError, match=says):
        experiment(GROUPS, *sets)
