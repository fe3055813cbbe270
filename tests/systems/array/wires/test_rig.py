"""Wires planned with by their own law on a rig: from configuration to recording and replay."""

import numpy as np
import pytest

import hil
from hil.errors import ConfigError
from hil.experiment.load import load
from hil.runs.replay import replay

LEVEL_N = 1.543 / 4.0  # four like cells
SETS = [
    "observer.disturbance_N_per_sqrt_s=0.3",
    "observer.wire_failures={switch_suspects=true}",
]
READ_OFF = ["ambient={ambient_C=23.0, ambient_uncertainty_C=0.5}"]  # as the plant has it
EXPERIMENT = """
rig = "{rig}"
[experiment]
name = "wires planned with"
duration_s = 6.0
[reference]
kind = "sine"
mean_N = 0.8
amplitude_N = 0.3
frequency_Hz = 0.1
[controller]
kind = "optimal"
plan_s = 0.2
budget_s = 0.05
levels_per_tick = 2000
"""


@pytest.fixture
def planned(pytestconfig, tmp_path):
    """Loads the experiment with more lines for its controller, and more sets."""

    def loaded(more="horizon_s = 5.0", sets=(), room=READ_OFF):
        rig = pytestconfig.rootpath / "configs/wires4/rig.toml"
        path = tmp_path / "planned.toml"
        path.write_text(EXPERIMENT.format(rig=rig) + more)
        return load(path, [*SETS, *room, *sets])

    return loaded


@pytest.mark.slow
def test_wires_follow_a_sine_and_the_run_replays(planned, tmp_path):
    path = hil.run(planned(), out=tmp_path / "run.h5", seed=1)
    run = hil.open_run(path)
    error_N = (run.force_measured_N - run.force_reference_N).values[3500:]
    assert np.sqrt(np.mean(error_N**2)) < 0.5 * LEVEL_N  # the nearest level, and a little late
    assert not run.plan_late.values[3500:].any()
    assert not run.cells_failed.values.any()
    assert replay(path) == (run.sizes["tick"], None)


def test_a_plan_that_begins_before_the_board_reports_the_last_one_keeps_minimum_times(planned):
    """The board has its turn in every fourth tick; plans begin 3 ms after switches."""
    experiment = planned(
        "horizon_s = 4.0\non_min_s = 0.4\noff_min_s = 0.4",
        ["controller.budget_s=0.197", "experiment.duration_s=1.0"],
    )
    on = hil.simulate(experiment, seed=1).cells_commanded.values.astype(int)
    assert on.any()
    for switches in map(np.flatnonzero, np.diff(on, axis=0).T):
        assert (np.diff(switches) >= 400).all()


@pytest.mark.parametrize("key", ["n_blocks = 6", "sample_s = 0.05"])
def test_keys_that_wires_have_no_use_for_are_refused(planned, key):
    name = key.split()[0]
    with pytest.raises(ConfigError, match=f"controller.{name}.* is not for a model whose cells"):
        planned(f"horizon_s = 5.0\n{key}")


def test_a_plan_of_wires_has_blocks_and_no_samples(planned):
    """Its blocks are whole periods, whatever these are, and at most 400."""
    of_3_ms = ["loop.period_s=0.003", "controller.plan_s=0.099", "controller.budget_s=0.048"]
    assert planned("horizon_s = 2.97", of_3_ms)
    assert (
        planned("horizon_s = 25.0", ["controller.plan_s=1.0"]).tables.controller.horizon_s == 25.0
    )
    with pytest.raises(ConfigError, match=r"more than 400 times controller.plan_s = 0.01 s"):
        planned("horizon_s = 5.0", ["controller.plan_s=0.01", "controller.budget_s=0.01"])


@pytest.mark.parametrize("key", ["price = 0.1", "on_min_s = 0.1", "off_min_s = 0.1"])
def test_modulated_power_refuses_what_only_switches_have(planned, key):
    with pytest.raises(ConfigError, match=f"controller.{key.split()[0]}: is for switched power"):
        planned(f'horizon_s = 5.0\npower = "modulated"\n{key}')


@pytest.mark.parametrize(
    ("keys", "wear_s"),
    [("", 0.0015), ("price = 0.1", 0.0), ("price = 0.1\nwear_price_s = 0.01", 0.01)],
)
def test_a_price_of_switches_alone_means_what_it_meant(planned, keys, wear_s):
    assert planned(f"horizon_s = 5.0\n{keys}").tables.controller.wear_s == wear_s


@pytest.mark.parametrize("key", ["power = 'modulated'", "wear_price_s = 0.01", "energy_price = 1"])
def test_cells_that_are_no_wires_have_no_wear_and_no_duty(configs, key):
    with pytest.raises(ConfigError, match="is for a model whose cells are wires: leave it out"):
        load(configs / "array14/optimal.toml", [f"controller.{key}"])


@pytest.mark.slow
def test_modulated_wires_replay_and_come_nearer_than_switched_ones(planned, tmp_path):
    """And get breaks, at 0.9 of the longest time for which a cell may be on."""
    error_N = {}
    for power, limits in (("switched", []), ("modulated", ["guard.cell_on_max_s=2.0"])):
        sets = ["experiment.duration_s=4.5", *limits]
        config = planned(f"horizon_s = 3.0\npower = '{power}'", sets)
        path = hil.run(config, out=tmp_path / f"{power}.h5", seed=1)
        run = hil.open_run(path)
        error = (run.force_measured_N - run.force_reference_N).values[3000:]
        error_N[power] = np.sqrt(np.mean(error**2))
        assert run.attrs["outcome"] == "complete"
        assert replay(path) == (run.sizes["tick"], None)
    off = [np.flatnonzero(cell == 0) for cell in run.cells_commanded.values.T]
    longest = [np.diff(ticks).max() for ticks in off]  # ticks of 1 ms between two that are off
    assert 1700 < max(longest) <= 1801
    assert error_N["modulated"] < 0.5 * error_N["switched"]


def test_a_horizon_too_short_to_see_a_wire_pull_is_refused(planned):
    with pytest.raises(ConfigError, match=r"the wires need [23]\.\d s for 90 % of their force"):
        planned("horizon_s = 1.0")


def test_tests_of_both_kinds_at_once_are_refused(planned):
    one = "give one of failures, wire_failures and cell_failures"
    for other in ("failures", "cell_failures"):
        with pytest.raises(ConfigError, match=one):
            planned(sets=[f"observer.{other}={{}}"])


def test_tests_of_wires_are_refused_where_nobody_knows_how_warm_the_room_is(planned):
    with pytest.raises(ConfigError, match="can look like a dead cell"):
        planned(room=())


@pytest.mark.slow
def test_a_room_that_is_read_reaches_the_plan_and_the_tests(planned, tmp_path):
    """The plant's room is 2 K colder than the model's; the card has a thermometer."""
    room = [
        "ambient={ambient_channel='room', ambient_uncertainty_C=0.3}",
        "devices.daq.channels.room={kind='voltage', terminal='ai1', signal='ambient_C', "
        "units_per_V=10.0}",
    ]
    path = hil.run(planned(room=room), out=tmp_path / "run.h5", seed=1)
    run = hil.open_run(path)
    error_N = (run.force_measured_N - run.force_reference_N).values[3500:]
    assert np.sqrt(np.mean(error_N**2)) < 0.5 * LEVEL_N
    assert not run.cells_failed.values.any()
    assert replay(path) == (run.sizes["tick"], None)


@pytest.mark.parametrize("key", ["wires", "wire_failures", "cell_failures"])
def test_wires_are_refused_where_cells_are_none(configs, key):
    sets = [f"observer.{key}={{}}"]
    with pytest.raises(ConfigError, match=r"no cell is a wire: give activation\.kind = 'sma'"):
        load(configs / "miga6/pid.toml", sets)
