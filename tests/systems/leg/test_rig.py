"""The muscle-driven leg on the loop: sensor, outputs, twin, guard, replay, report, refusals."""

import numpy as np
import pytest

import hil
from hil.__main__ import main
from hil.experiment.load import load
from hil_studies.leg.study import BEST_MM, error_mm
from hil_studies.leg.trial import configuration, run_trial, true_motion
from systems.spoiling import commands

UP, STILL, DOWN = "leg/up.toml", "leg/still.toml", "leg/down.toml"
STEP = 0.1 * 20.0 / 2**16  # an output's step of 16 bits, in activation


@pytest.fixture(scope="module")
def up(configs, tmp_path_factory):
    return hil.run(load(configs / UP), seed=3, out=tmp_path_factory.mktemp("leg") / "up.h5")


@pytest.mark.slow
def test_the_foot_follows_its_set_point_better_than_was_reached_before(up, configs):
    run = hil.open_run(up)
    done = np.stack([run.TA_commanded.values, run.SOL_commanded.values], axis=1)
    trace = true_motion(load(configs / UP), done)
    e = error_mm(trace)
    assert np.sqrt(np.mean(e**2)) < BEST_MM["up"]
    # what the sensor said is what the leg did, one period late, within noise of 5 um and a step
    said = run.height_measured_m.values[1:]
    assert np.abs(said - trace.height_m[:-1]).max() < 5.0 * 5e-6 + 3.1e-6
    assert trace.height_m[-1] - trace.height_m[0] == pytest.approx(0.02, abs=5e-5)


def test_activations_pass_sixteen_bits_and_keep_to_their_rate(up, configs):
    run = hil.open_run(up)
    done = np.stack([run.TA_commanded.values, run.SOL_commanded.values], axis=1)
    given = true_motion(load(configs / UP), done).activation
    np.testing.assert_allclose(given / STEP, np.round(given / STEP), atol=1e-6)
    assert np.abs(given - done).max() <= 0.5 * STEP * (1.0 + 1e-9)
    assert done.min() >= 0.001
    assert done.max() <= 1.0
    assert np.abs(np.diff(done, axis=0)).max() <= 500.0 * 1e-3 * (1.0 + 1e-9)
    # eight bits would do no better than a third of what holding takes, 0.0136
    assert 0.1 * 20.0 / 2**8 > 0.5 * 0.0136


def test_the_recording_keeps_the_twins_angles_and_tensions(up):
    run = hil.open_run(up)
    assert run["ankle.angle_model_rad"].attrs["units"] == "rad"
    np.testing.assert_array_equal(run["ankle.angle_model_rad"], run["angle_model_rad"])
    end = {m: float(run[f"{m}.tension_model_N"][-1]) for m in ("TA", "SOL")}
    # held 20 mm up it takes 27.46 and 6.84 N at rest; the foot is still creeping in
    assert end["TA"] == pytest.approx(27.46, abs=0.5)
    assert end["SOL"] == pytest.approx(6.84, abs=0.5)


@pytest.mark.slow
def test_the_recording_replays_row_by_row(up, capsys):
    assert main(["replay", str(up)]) == 0
    assert "identical in 2500 rows" in capsys.readouterr().out


def test_the_report_shows_height_and_activations(up, tmp_path):
    assert main(["report", str(up), "--out", str(tmp_path)]) == 0
    page = (tmp_path / "up.html").read_text()
    assert "height" in page
    assert (tmp_path / "up.png").stat().st_size > 10_000


@pytest.mark.slow
def test_activation_with_dynamics_of_its_own_is_planned_for(configs):
    """Thelen's 10 and 40 ms: the foot falls 3 mm before force is there, then stands."""
    dynamics = "activation={tau_act_s=0.01, tau_deact_s=0.04}"
    sets = [f"{table}.{dynamics}" for table in ("model", "plant")]
    trace = run_trial(configuration("still", [*sets, "experiment.duration_s=1.5"]), 2)
    e = error_mm(trace)
    assert 1.0 < e.max() < 4.0
    assert np.abs(e[-500:]).max() < 0.2
    assert trace.activation[-500:].std(axis=0).max() < 2e-3


@pytest.mark.slow
def test_both_muscles_may_be_kept_active(configs):
    trace = run_trial(configuration("down", ["controller.least=0.02"]))
    assert np.sqrt(np.mean(error_mm(trace) ** 2)) < 0.1
    assert trace.activation[100:].min() > 0.0199
    # twenty times the least of a relaxed muscle
    assert trace.tension_N[100:900].min() > 10.0


def by_angle(rigs, t_s, value, duration_s):
    """An experiment that follows the encoder instead of the laser."""
    path = rigs / "leg/angle.toml"
    path.write_text(
        f'rig = "rig.toml"\n[experiment]\nname = "by angle"\nduration_s = {duration_s}\n'
        '[reference]\nkind = "signals"\n[reference.signals.angle]\nkind = "ramp"\n'
        f"t_s = {t_s}\nvalue = {value}\n"
        '[controller]\nkind = "antagonists"\nchannel = "angle"\njoint = "ankle"\n'
        'raises = "TA"\nlowers = "SOL"\ndelay_s = 0.001\nk_p = 0.3\nk_i_per_s = 1.5\n'
        "k_d_s = 0.008\n"
    )
    return path


@pytest.mark.parametrize("channel", ["height", "angle"])
def test_what_happens_to_the_plant_after_the_reading_changes_no_command_of_the_tick(
    channel, configs, rigs
):
    """The controller sees instruments alone: recorded, late, noisy."""
    config = load(configs / UP, ["experiment.duration_s=0.3"])
    if channel == "angle":
        config = load(by_angle(rigs, [0.0, 0.3], [0.0, 0.02], 0.3))

    def spoil(plant):
        x, y, h = plant.stepper.x.copy(), plant.y.copy(), plant.stepper.scratch.control.copy()
        plant.stepper.x[:], plant.y[:] = 0.7, -55.0

        def undo():
            plant.stepper.x[:], plant.y[:], plant.stepper.scratch.control[:] = x, y, h

        return undo

    quiet = commands(config, 300, seed=5)
    assert len({str(tick) for tick in quiet}) > 50
    assert quiet == commands(config, 300, spoil, seed=5)


def test_the_angle_serves_as_well_as_the_height(rigs, tmp_path):
    path = by_angle(rigs, [0.1, 0.4], [0.0, -0.1], 0.6)
    run = hil.open_run(hil.run(load(path), out=tmp_path / "run.h5"))
    assert float(run.angle_measured_rad[-1]) == pytest.approx(-0.1, abs=1e-3)


@pytest.mark.slow
def test_nine_muscles_and_normal_masses_are_a_file_away(configs, tmp_path):
    """Hip, knee and ankle each by a PID on one muscle; the others hang along."""
    run = hil.open_run(hil.run(load(configs / "leg9/lift.toml"), out=tmp_path / "run.h5"))
    late = run.t_s.values > 0.5
    for joint, rms_rad in (("hip", 0.03), ("knee", 0.015), ("ankle", 0.01)):
        e = (run[f"{joint}_measured_rad"] - run[f"{joint}_reference_rad"]).values[late]
        assert np.sqrt(np.mean(e**2)) < rms_rad
    # two-joint muscles are carried along: the hamstrings tauten as the hip flexes
    assert float(run["HAM.tension_model_N"][2000]) > 2.0 * float(run["HAM.tension_model_N"][0])


def test_an_angle_beyond_its_limit_trips_and_the_muscles_rest(configs, tmp_path):
    out = tmp_path / "run.h5"
    sets = ["--set", "guard.signals.angle.max=0.06", "--out", str(out)]
    assert main(["run", str(configs / UP), *sets]) == 3
    run = hil.open_run(out)
    tripped = np.flatnonzero(run.fault_bits.values)[0]
    assert run.angle_measured_rad.values[tripped] > 0.06
    assert (run.TA_commanded.values[tripped:] == 0.001).all()
    # and the foot falls towards where relaxed muscles hold it, 9.23 mm below the start
    assert run.height_measured_m.values[-1] < run.height_measured_m.values[tripped] - 0.005


@pytest.mark.slow
def test_strength_that_is_not_the_models_is_made_up_for(configs, tmp_path):
    """20 % weaker muscles than the plan's, 5 ms late, 20 um of noise."""
    from hil_studies.leg.study import Values, _instruments

    config = _instruments("still", "robust", Values(strength=0.8))
    trace = run_trial(config, 1)
    assert np.sqrt(np.mean(error_mm(trace) ** 2)) < 0.34
    assert np.abs(error_mm(trace)[-500:]).max() < 0.1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("model.muscles.SOL.l_SEE_0_m=0.3", "no longer than its slack tendon of 0.3 m"),
        ('model.muscles.TA.path=[{body="shin", at_m=[0.0, 0.0, 0.0]}, {body="toes", '
         "at_m=[0.0, 0.0, 0.0]}]", "muscles.TA.path: there is no body 'toes': choose ground"),
        ("model.points.toe.body=toes", "points.toe.body: there is no body 'toes'"),
        ("model.joints.knee.parent=hip", "joints.knee.parent: there is no body 'hip'"),
        ("model.muscles.TA.F_max_N=-1.0", "model.muscles.TA.F_max_N = -1"),
        ("model.muscles.TA.l_CE_opt_m=1e-300", "model.muscles.TA.l_CE_opt_m = 1e-300: no model"),
        ("model.muscles.TA.F_e=0.9", "F_e = 0.9: a lengthening muscle gives more"),
        ("devices.daq.outputs.TA.max=1.5", "an activation is 0 to 1: 0.001 to 1.5 is not within"),
        ("devices.daq.outputs.TA.min=-0.1", "an activation is 0 to 1"),
        ("controller.least=1.5", "controller.least = 1.5: must be"),
        ("reference.signals.height.value=[-0.8406, -0.6406]", "beyond guard.signals.height"),
        ("reference.signals.height.value=[-0.8406, -0.899]", "would have to pull with"),
        ("reference.signals.height.value=[-0.8406, -0.84, -0.83]", "3 values for 2 times"),
        ("reference.signals.height.value=[-0.8406, -0.789]", "beyond guard.signals.height: -0.9"),
        ("controller.channel=heel", "no channel of that name: choose height, angle"),
        ("controller.joint=toes", "controller.joint = 'toes': there is none: choose hip"),
        ("controller.raises=SOL", "controller.raises = 'SOL': lowers it"),
        ("controller.lowers=GAS", "controller.lowers = 'GAS': no output of that name"),
        ("devices.daq.channels.height.signal=heel.z_m", "the model has no such signal: choose"),
        ("devices.daq.outputs.TA.drives=GAS.activation", "no such input: choose TA.activation"),
        ("model.bodies.foot.inertia_kg_m2=[1.0, 0.1, 0.1]", "not physical, 1 with 0.1 and 0.1"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_with_the_reason(change, message, configs, capsys):
    assert main(["check", str(configs / STILL), "--set", change]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert "Traceback" not in said


def test_a_controller_of_muscles_is_for_muscles(configs, rigs, capsys):
    other = rigs / "slider/steps.toml"
    text = other.read_text()
    head, _, _ = text.partition("[controller]")
    other.write_text(
        f'{head}[controller]\nkind = "antagonists"\nchannel = "slide"\njoint = "ankle"\n'
        'raises = "motor"\nlowers = "motor"\n'
    )
    assert main(["check", str(other)]) == 2
    said = capsys.readouterr().err
    assert "kind = 'antagonists': is not for a model of kind 'linear': choose signal_pid" in said
    assert main(["check", str(configs / STILL), "--set", "controller.kind=schedule"]) == 2


def test_the_plan_gives_the_bounds_of_every_activation(configs, capsys):
    assert main(["check", str(configs / STILL), "--energise-plan"]) == 0
    assert "TA_commanded between 0.001 and 1, at most 500 per second" in capsys.readouterr().out
