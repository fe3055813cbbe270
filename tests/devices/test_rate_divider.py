"""Devices that have their turn in every n-th period: nothing is repeated, nothing runs out."""

import numpy as np
import pytest

import hil
from hil.errors import ConfigError
from hil.experiment.load import load
from hil.loop.frame import CELL_UNKNOWN
from hil.runs import assembly
from hil.runs.plan import Plan
from hil.runs.replay import replay

PACED = ("devices.board.every=4", "devices.daq.every=3", "experiment.duration_s=1.2")


@pytest.fixture(scope="module")
def paced(configs, tmp_path_factory):
    out = tmp_path_factory.mktemp("paced") / "run.h5"
    sets = (*PACED, "controller.steps=[{t_s=0.0, on='all'}, {t_s=0.9, off='all'}]")
    return hil.run(load(configs / "miga6/all_on.toml", sets), out=out)


def test_a_reading_stands_in_its_turns_only(paced):
    run = hil.open_run(paced)
    ticks = np.arange(1200)
    read, answered = (run.valid_bits.values & bit != 0 for bit in (1, 2))
    np.testing.assert_array_equal(read, ticks % 3 == 0)
    np.testing.assert_array_equal(answered, ticks % 4 == 0)
    for name in ("force_measured_N", "force.raw_V"):
        np.testing.assert_array_equal(np.isfinite(run[name].values), read)
    known = (run.cells_reported.values != CELL_UNKNOWN).all(axis=1)
    np.testing.assert_array_equal(known, answered)
    # one answer holds four cells in turn, so that a current is not in every answer
    assert not np.isfinite(run["muscle.1.current_A"].values[~answered]).any()
    assert np.isfinite(run["muscle.1.current_A"].values[answered]).any()


def test_the_age_of_a_reading_grows_until_the_next_turn(paced):
    run = hil.open_run(paced)
    ticks = np.arange(1200)
    np.testing.assert_allclose(run.daq_age_s, 0.001 * (ticks % 3), atol=1e-12)
    # an answer is as old as the command that it answers, of the turn before
    np.testing.assert_allclose(run.board_age_s[4:], 0.001 * (4 + ticks[4:] % 4), atol=1e-12)


def test_commands_wait_for_the_boards_turn_and_off_does_not(paced, configs):
    run = hil.open_run(paced)
    reported = run.cells_reported.values
    known = (reported != CELL_UNKNOWN).all(axis=1)
    on = reported.all(axis=1) & known
    assert np.flatnonzero(on)[0] == 4
    pipeline = assembly.build(Plan(load(configs / "miga6/all_on.toml", PACED)))
    turn = pipeline.rig._dividers[0]
    commands = pipeline.rig.commands
    commands.cells[:] = 1
    assert turn.comes(0.900)
    assert turn.writes(commands)
    assert not turn.comes(0.901)
    assert not turn.writes(commands)
    commands.cells[0] = 0
    assert not turn.writes(commands)
    commands.cells[:] = 0
    assert not turn.comes(0.902)
    assert turn.writes(commands)
    assert not turn.writes(commands)


def test_a_turn_that_was_missed_comes_at_the_next_tick(configs):
    pipeline = assembly.build(Plan(load(configs / "miga6/all_on.toml", PACED)))
    turn = pipeline.rig._dividers[0]
    came = [tick for tick in (0, 1, 3, 5, 6, 7, 8, 9, 17, 18, 20) if turn.comes(0.001 * tick)]
    assert came == [0, 5, 8, 17, 20]


def test_the_twin_holds_the_cells_between_answers(paced, configs, tmp_path):
    run = hil.open_run(paced)
    sets = ("experiment.duration_s=1.2", "controller.steps=[{t_s=0.0, on='all'}]")
    each = hil.open_run(hil.run(load(configs / "miga6/all_on.toml", sets), out=tmp_path / "e.h5"))
    # on from row 4 instead of row 1: three periods later
    np.testing.assert_allclose(
        run.force_model_N.values[4:900], each.force_model_N.values[1:897], atol=1e-12
    )


@pytest.mark.slow
def test_a_paced_run_replays_bit_for_bit(configs, tmp_path):
    config = load(configs / "miga6/pid.toml", PACED)
    assert replay(hil.run(config, out=tmp_path / "run.h5")) == (1200, None)


@pytest.mark.parametrize(
    ("sets", "says"),
    [
        (("devices.daq.every=50",), "reading_age_max_s = 0.05"),
        (("devices.board.every=60", "guard.reading_age_max_s=0.05"), "devices.board.every = 60"),
        (("devices.board.every=20", "devices.board.hold_s=0.02"), "expires after hold_s = 0.02"),
        (("devices.daq.every=0",), "devices.daq.every"),
    ],
)
def test_a_turn_so_long_that_something_runs_out_is_refused(configs, sets, says):
    with pytest.raises(ConfigError, match=says):
        load(configs / "miga6/all_on.toml", sets)
