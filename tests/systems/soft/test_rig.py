"""A soft finger on the loop: cells bend rubber, instruments say how far, control follows."""

import numpy as np
import pytest

import hil
from hil.__main__ import main
from hil.experiment.load import load
from systems.spoiling import commands

BEND, PRESS = "soft_finger/bend.toml", "soft_finger/press.toml"
BROADCAST = "soft_finger/broadcast.toml"


@pytest.fixture(scope="module")
def bend(configs, tmp_path_factory):
    return hil.run(load(configs / BEND), out=tmp_path_factory.mktemp("bend") / "run.h5")


@pytest.mark.slow
def test_the_curvature_comes_within_half_a_cell_of_its_set_points(bend):
    run = hil.open_run(bend)
    error = (run.bend_measured_1_per_m - run.bend_reference_1_per_m).values
    # A cell is worth 0.8 1/m, and the quantiser's hysteresis 0.2 of it more.
    for before_s in (2.3, 4.3):
        settled = (run.t_s.values > before_s - 0.2) & (run.t_s.values < before_s)
        assert np.abs(error[settled]).mean() < 0.8 * (0.5 + 0.2)
    assert run.bend_measured_1_per_m.attrs["units"] == "1/m"


@pytest.mark.slow
def test_the_twin_is_the_model_run_on_what_the_boards_reported(bend, configs):
    run = hil.open_run(bend)
    twin = load(configs / BEND).system()
    outputs = list(twin.outputs)
    tension = outputs.index("flexor.right_N")
    curvature = outputs.index("finger.curvature_1_per_m")
    y = [twin.y.copy()]
    for cells in run.cells_reported.values[1:]:
        twin.step(cells, np.zeros(0))
        y.append(twin.y.copy())
    np.testing.assert_array_equal(np.array(y)[:, tension], run.force_model_N.values)
    np.testing.assert_array_equal(np.array(y)[:, curvature], run.bend_model_1_per_m.values)


@pytest.mark.slow
def test_the_plant_differs_from_the_twin_as_its_stiffer_rubber_says(bend):
    # 7.5 % stiffer rubber and a heavier tip bend less under the same cells.
    run = hil.open_run(bend)
    high = (run.t_s.values > 4.0) & (run.t_s.values < 4.3)
    measured, model = (
        float(run[name].values[high].mean())
        for name in ("bend_measured_1_per_m", "bend_model_1_per_m")
    )
    assert 0.90 * model < measured < 0.99 * model


@pytest.mark.slow
def test_a_recording_names_its_cells(bend):
    assert hil.open_run(bend).cell.values.tolist() == [f"flexor.{n}" for n in range(1, 13)]


@pytest.mark.slow
def test_a_recording_replays(bend, capsys):
    assert main(["replay", str(bend)]) == 0
    assert "identical in 6000 rows" in capsys.readouterr().out


@pytest.mark.slow
def test_broadcast_brings_the_curvature_into_its_dead_zone(configs, tmp_path):
    run = hil.open_run(hil.run(load(configs / BROADCAST), seed=3, out=tmp_path / "run.h5"))
    # Dead beat leaves nothing to do within half of the largest step of the levels, 0.83 1/m, and
    # the sensor's noise; every draw halves what is left or better, three of them fit in.
    last = run.t_s.values > 8.2
    error = (run.bend_measured_1_per_m - run.bend_reference_1_per_m).values[last]
    assert abs(error.mean()) < 3.0 * 0.83
    drawn = run.cells_commanded.values
    assert set(np.unique(run.p_on.values)) > {0.0}
    changes = np.flatnonzero(np.any(np.diff(drawn, axis=0) != 0, axis=1)) + 1
    assert len(changes)
    # Cells change only at a broadcast, whose answer comes one tick later.
    since = np.minimum.reduce([np.abs(changes - k * 1600) for k in range(1, 6)])
    assert since.max() <= 2


@pytest.mark.slow
def test_the_finger_presses_on_the_plate_when_all_cells_pull(configs, tmp_path):
    run = hil.open_run(hil.run(load(configs / PRESS), out=tmp_path / "run.h5"))
    t_s, touch_N = run.t_s.values, run["touch.force_measured_N"].values
    assert np.abs(touch_N[t_s < 0.8]).max() < 0.006  # noise of 1 mN and the card's bits
    assert touch_N[(t_s > 1.5) & (t_s < 2.2)].mean() > 0.02
    assert np.abs(touch_N[t_s > 3.5]).max() < 0.006


@pytest.mark.slow
@pytest.mark.parametrize("experiment", [BEND, BROADCAST])
def test_what_happens_to_the_plant_after_the_reading_changes_no_command_of_the_tick(
    experiment, configs
):
    """The controller sees instruments alone."""
    n_ticks = 1700
    config = load(configs / experiment, ("experiment.duration_s=2.0",))

    def spoil(plant):
        soft, x, y = plant.soft.snapshot(), plant.linear.x.copy(), plant.y.copy()
        plant.soft.q[:], plant.soft.v[:] = 1.0, -50.0
        plant.linear.x[:], plant.y[:] = 1e3, -1e3

        def undo():
            plant.soft.restore(soft)
            plant.linear.x[:], plant.y[:] = x, y

        return undo

    quiet = commands(config, n_ticks)
    assert len({tuple(cells) for cells, _, _ in quiet}) > 1
    assert quiet == commands(config, n_ticks, spoil)


@pytest.mark.slow
def test_a_bend_beyond_its_limit_trips_and_all_cells_rest(configs, tmp_path):
    out = tmp_path / "run.h5"
    sets = ["--set", "guard.signals.bend.max=5.0", "--out", str(out)]
    assert main(["run", str(configs / BEND), *sets]) == 3
    run = hil.open_run(out)
    tripped = np.flatnonzero(run.fault_bits.values)[0]
    assert run.bend_measured_1_per_m.values[tripped] > 5.0
    assert not run.cells_commanded.values[tripped:].any()


@pytest.mark.slow
def test_a_model_whose_steps_fail_ends_the_run_in_one_line_with_its_recording_kept(
    configs, tmp_path, capsys
):
    out = tmp_path / "run.h5"
    # A plate of 1 GN/m: no step of the finger into it converges, however short.
    sets = ["--set", "model.ground.k_N_per_m=1e9"]
    assert main(["run", str(configs / PRESS), *sets, "--out", str(out)]) == 2
    said = capsys.readouterr().err.strip().splitlines()
    assert len(said) == 1
    assert "press.toml: model: a step of 0.001 s does not converge at t = 1." in said[0]
    run = hil.open_run(out)
    assert run.attrs["outcome"] == "aborted"
    assert 1000 < len(run.t_s) < 1200


def test_the_plan_says_what_would_be_switched_and_how_far_it_bends(configs, capsys):
    assert main(["check", str(configs / PRESS), "--energise-plan"]) == 0
    said = capsys.readouterr().out
    assert "0.300 s  12 on: flexor.1" in said
    assert "settles with finger at 9.01" in said
    assert "2.200 s  all off (settles with finger at 0 1/m)" in said


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("model.links.finger.youngs_Pa=0", "model.links.finger.youngs_Pa = 0: must be"),
        ("model.links.finger.loss_s=-0.1", "model.links.finger.loss_s = -0.1: must be"),
        ("model.links.finger.elastic_share=0", "model.links: joint 0 has no spring"),
        ("model.links.finger.branches=[[0.2, 0.0]]", "a branch needs a time above zero"),
        ("model.muscles.flexor.link=thumb", "model.muscles.flexor.link: 'thumb': choose finger"),
        ("model.muscles.flexor.end=0", "give 0 <= start < end <= 1"),
        ("model.points.tendon.support=fixed", "arrays.flexor.to: must be driven"),
        ("model.ground.normal=[0.0, 0.0]", "model.ground.normal: must not be zero"),
        ("devices.daq.channels.bend.signal=finger.bend", "the model has no such signal: choose"),
        ("devices.board.cells=[\"flexor.1\"]", "no gate for cell 'flexor.2'"),
        ("reference.signals.bend.value=[4.0, 17.0, 2.0]", "asks for 0 to 17; the cells give"),
        ("reference.signals.bend.value=[4.0]", "1 values for 3 times"),
        ("reference.signals.knee={kind=\"sine\", mean=1.0, amplitude=0.1, frequency_Hz=1.0}",
         "follows the set point of one channel"),
        ("controller.order=[1, 2, 2]", "cell '2' is listed twice"),
        ("controller.order=[1, 40]", "there is no cell 40"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_with_the_reason(change, message, configs, capsys):
    assert main(["check", str(configs / BEND), "--set", change]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("channel", "controller", "message"),
    [
        ("knee", 'kind = "pid"\nk_p = 1.0', "no such channel: choose tendon, touch, bend"),
        (
            "bend",
            'kind = "groups"\ngroups = [[1, 2]]',
            "'groups': is not for a model of kind 'soft_links': choose schedule, pid, broadcast",
        ),
        ("bend", 'kind = "broadcast"\nperiod_s = 1.6', "a soft rig forms it from the channel"),
        (
            "bend",
            'kind = "broadcast"\nerror = "measured"\nperiod_s = 1.6\ndead_zone_N = 0.1',
            "is a force: remove it",
        ),
        (
            "bend",
            'kind = "schedule"\nsteps = [{t_s = 0.0, on = "all"}]',
            "uses no reference: remove it",
        ),
        ("touch", 'kind = "pid"\nk_p = 1.0', "does not raise 'finger.touch_N'"),
    ],
)
def test_an_experiment_that_cannot_be_is_refused(channel, controller, message, rigs, capsys):
    path = rigs / "soft_finger" / "other.toml"
    path.write_text(
        'rig = "rig.toml"\n[experiment]\nname = "other"\nduration_s = 1.0\n'
        f'[reference]\nkind = "signals"\n[reference.signals.{channel}]\nkind = "sine"\n'
        f"mean = 0.0\namplitude = 0.0\nfrequency_Hz = 1.0\n[controller]\n{controller}\n"
    )
    assert main(["check", str(path)]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert "Traceback" not in said
