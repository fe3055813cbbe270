"""The impact rig: the experiment through loop, instruments, guard and recorder."""

import numpy as np
import pytest

import hil
from hil.__main__ import main
from hil.experiment.load import load
from hil.loop import loop
from hil.loop.clock import VirtualClock
from hil.runs import assembly, session
from hil.runs.plan import Plan
from hil.runs.recording import Output
from hil.systems.pantograph.control import APPROACH, CONTACT, DONE, PHASES
from hil.systems.pantograph.impact import ASYMMETRIC_M, predict
from hil.systems.pantograph.impact_trial import analyse
from hil.systems.pantograph.linkage import Pantograph

SYMMETRIC = "pantograph/impact_symmetric.toml"
ASYMMETRIC = "pantograph/impact_asymmetric.toml"
SHORT = ("controller.gamma_deg=[0.0, 30.0]", "controller.repeats=1", "controller.travel_s=0.4",
         "experiment.duration_s=2.2")  # fmt: skip
PERIOD_S = 2.5e-4


class Watched(assembly.NoSink):
    """Keeps every row, and where the plant truly was."""

    def __init__(self, pipeline):
        self.pipeline, self.rows, self.true = pipeline, [], []
        self.plant = pipeline.rig._devices[0]._plant
        self.arm = self.plant._system.arm

    def push(self):
        self.rows.append(self.pipeline.frame.row[0].copy())
        self.true.append((*self.arm.energies_J(), self.arm.in_contact, self.arm.tip()[3]))
        return True


def watch_only(watched, parts):
    """Leave the run as it is."""


def run_watched(configs, name, sets, before=watch_only):
    config = load(configs / name, sets)
    pipeline = assembly.build(Plan(config))
    watched = Watched(pipeline)
    parts = pipeline.context(VirtualClock(), watched)
    before(watched, parts)
    parts.rig.open()
    parts.rig.self_test(print)
    assert loop.run(parts) == "complete"
    return np.array(watched.rows), np.array(watched.true), config


@pytest.fixture(scope="module")
def golden(configs):
    return run_watched(configs, ASYMMETRIC, SHORT)


def trial_of(rows, number):
    chosen = (rows["trial"] == number) & np.isin(rows["phase"], (APPROACH, CONTACT))
    at = np.flatnonzero(chosen)
    q = np.column_stack((rows["q1_measured_rad"], rows["q3_measured_rad"]))
    force = np.column_stack((rows["force_measured_N"], rows["tangential.force_measured_N"]))
    return analyse(Pantograph(), "upper", rows["t_s"][at], q[at], force[at])


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 1])
def test_a_trial_through_the_rigs_instruments_recovers_the_plants_energies(golden, number):
    """T_c before impact to 1 %, during compression to 2 %, at 40 000 counts a turn."""
    rows, true, config = golden
    assert config.tables.devices["daq"].channels["q1"].counts_per_turn == 40_000
    trial = trial_of(rows, number)
    t = rows["t_s"] + PERIOD_S  # every instrument is a period late
    touching = (true[:, 2] > 0) & (rows["trial"] == number)
    before = int(np.argmax(touching)) - 1
    T_c, T_a = true[before, :2]
    assert trial.T_c_J == pytest.approx(T_c, rel=0.01)
    assert trial.T_a_J == pytest.approx(T_a, abs=0.01 * (T_c + T_a))
    pressed = np.flatnonzero(touching & (true[:, 3] > 0.0))
    assert len(pressed) > 12
    at = np.round((t[pressed] - trial.t_s[0]) / PERIOD_S).astype(int)
    np.testing.assert_allclose(trial.T_c_curve_J[at], true[pressed, 0], rtol=0, atol=0.02 * T_c)


@pytest.mark.slow
@pytest.mark.parametrize("name", [SYMMETRIC, ASYMMETRIC])
def test_every_trial_of_the_shipped_experiments_recovers_the_plants_energies(name, configs):
    rows, true, _ = run_watched(configs, name, ())
    misses = []
    for number in range(int(rows["trial"].max()) + 1):
        trial = trial_of(rows, number)
        touching = (true[:, 2] > 0) & (rows["trial"] == number)
        T_c = true[int(np.argmax(touching)) - 1, 0]
        pressed = np.flatnonzero(touching & (true[:, 3] > 0.0))
        at = np.round((rows["t_s"][pressed] + PERIOD_S - trial.t_s[0]) / PERIOD_S).astype(int)
        during = np.abs(trial.T_c_curve_J[at] - true[pressed, 0]).max() / T_c
        misses.append((abs(trial.T_c_J / T_c - 1.0), during))
    before, during = np.array(misses).max(axis=0)
    print(f"{name}: {len(misses)} trials, T_c missed by at most {before:.2%}, then {during:.2%}")
    assert before < 0.01
    assert during < 0.02


def test_the_approach_has_the_commanded_velocity_at_the_contact(golden):
    rows, _, _ = golden
    for number, gamma_deg in enumerate((0.0, 30.0)):
        wanted = predict(Pantograph().inverse(ASYMMETRIC_M), gamma_deg, 0.01)
        trial = trial_of(rows, number)
        assert trial.speed_m_per_s == pytest.approx(wanted.speed_m_per_s[0], rel=0.02)
        assert trial.gamma_deg == pytest.approx(gamma_deg, abs=1.0)


def test_every_trial_has_its_phases_in_order_and_the_tip_ends_at_rest(golden):
    rows, _, _ = golden
    retreat, rest, approach, contact, done = (
        PHASES.index(name) for name in ("retreat", "rest", "approach", "contact", "done")
    )
    phase = rows["phase"].astype(int)
    changes = phase[np.flatnonzero(np.diff(phase)) + 1].tolist()
    assert [phase[0], *changes] == [retreat, *[rest, approach, contact, retreat] * 2, done]
    last = rows[rows["phase"] == DONE][-1]
    assert last["tip_x_estimate_m"] == pytest.approx(last["tip_x_reference_m"], abs=5e-4)
    assert abs(last["tip_vy_estimate_m_per_s"]) < 5e-3


def test_the_observer_follows_the_plant_before_and_after_the_contact(golden):
    """Not within: its plate is 6 % stiffer, and 5 ms of contact as short as its memory."""
    rows, true, _ = golden
    said, scale = rows["T_c_estimate_J"], true[:, 0].max()
    for number in (0, 1):
        touching = np.flatnonzero((true[:, 2] > 0) & (rows["trial"] == number))
        before, after = touching[0] - 1, touching[-1] + 60
        assert said[before] == pytest.approx(true[before, 0], abs=0.02 * scale)
        assert said[after] == pytest.approx(true[after, 0], abs=0.05 * scale)


def test_torques_stay_within_range_and_rate(golden):
    rows, _, config = golden
    for name in ("torque1", "torque3"):
        torque, limits = rows[f"{name}_commanded_N_m"], config.tables.devices["daq"].outputs[name]
        assert limits.min <= torque.min() < torque.max() <= limits.max
        assert np.abs(np.diff(torque)).max() <= limits.rate_max_per_s * PERIOD_S * (1 + 1e-9)
        assert torque.any()


@pytest.mark.slow
def test_what_happens_to_the_plant_after_the_reading_changes_no_command_of_the_tick(configs):
    """The controller sees instruments alone."""
    sets = ("controller.gamma_deg=[30.0]", "controller.repeats=1", "experiment.duration_s=2.0",
            "controller.travel_s=0.3")  # fmt: skip

    def disturbed(watched, parts):
        arm, undo = watched.arm, []
        read, write = parts.rig.read, parts.rig.write

        def read_and_disturb(t_s):
            read(t_s)
            undo.append(arm.x.copy())
            arm.x[:] = [2.2, 0.9, 3.0, -2.0, 9.0, 9.0, 9.0, 9.0]
            watched.plant._system.look()

        def restore_and_write(t_s):
            arm.x[:] = undo.pop()
            watched.plant._system.look()
            write(t_s)

        parts.rig.read, parts.rig.write = read_and_disturb, restore_and_write

    plain, _, _ = run_watched(configs, SYMMETRIC, sets)
    other, _, _ = run_watched(configs, SYMMETRIC, sets, disturbed)
    assert (plain["phase"] == CONTACT).any()
    for name in ("torque1_commanded_N_m", "torque3_commanded_N_m", "phase", "q1_model_rad"):
        np.testing.assert_array_equal(plain[name], other[name])


@pytest.mark.slow
def test_a_plate_that_is_not_there_ends_the_approach_and_the_next_trial_follows(configs):
    rows, true, _ = run_watched(configs, SYMMETRIC, (*SHORT, "plant.plate.y_m=0.26"), watch_only)
    assert not true[:, 2].any()
    assert not (rows["phase"] == CONTACT).any()
    assert rows["trial"].max() == 1
    assert rows["phase"][-1] == DONE


@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize(
    ("change", "fault"),
    [("guard.force_max_N=20.0", "force_high"), ("guard.signals.q1.max=2.76", "signal_out")],
)
def test_beyond_a_limit_the_run_trips_and_the_motors_rest(change, fault, configs, tmp_path):
    out = tmp_path / "run.h5"
    sets = [part for text in (*SHORT, change) for part in ("--set", text)]
    assert main(["run", str(configs / SYMMETRIC), *sets, "--out", str(out)]) == 3
    run = hil.open_run(out)
    tripped = np.flatnonzero(run.fault_bits.values)[0]
    assert not run.torque1_commanded_N_m.values[tripped:].any()
    assert not run.torque3_commanded_N_m.values[tripped:].any()
    assert fault in " ".join(run.event_text.values.tolist())


@pytest.mark.slow
def test_the_recording_replays_row_by_row(configs, tmp_path, capsys):
    out = tmp_path / "run.h5"
    config = load(configs / SYMMETRIC, SHORT)
    session.run(Plan(config), Output(out=out))
    assert main(["replay", str(out)]) == 0
    assert "identical in 8800 rows" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("controller.contact_x_m=0.5", "controller.contact_x_m = 0.5: unreachable"),
        ("controller.gamma_deg=90", "gamma_deg = 90: the tip moves along the plate"),
        ("controller.gamma_deg=[0, 120]", "gamma_deg = 120: separating"),
        ("controller.repeats=50", "200 impacts take up to"),
        ("controller.cruise_s=0.9", "the approach leaves the workspace"),
        ("controller.coast_s=0.5", "is a part of cruise_s = 0.15"),
        ("controller.energy_J=0", "must be greater than 0"),
        ("model.home_m=[0.0, 0.3]", "model.home_m: y = 0.3 m is at or beyond the plate"),
        ("model.home_m=[0.5, 0.3]", "model.home_m: pose_m = [0.5, 0.3]: unreachable"),
        ("model.home_m=[0.1, 0.0]", "both assembly modes are possible"),
        ("model.q1_range_rad=[1.0, 2.6]", "q1 = 2.7876 rad, whose motor turns from 1 to 2.6"),
        ("model.q3_range_rad=[0.36, 0.5]", "home_m"),
        ("model.q3_range_rad=[0.5, 0.2]", "q3_range_rad = [0.5, 0.2]: give [least, largest]"),
        ("model.plate.step_s=0.001", "take a fiftieth of it or less"),
        ("model.arm.l_1_m=-1.0", "model.arm.l_1_m = -1.0: must be greater than 0"),
        ("model.arm.l_2_m=0.15", "l_2_m: too short"),
        ("devices.daq.channels.q1.signal=arm.q3_rad", "no channel measures 'arm.q1_rad'"),
        ("devices.daq.outputs.torque1.drives=arm.torque3_N_m", "arm.torque"),
        ("reference={kind='signals', signals={q1={kind='sine', mean=0.0, amplitude=0.0, "
         "frequency_Hz=1.0}}}", "sets its own set points"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_in_one_line(change, message, configs, capsys):
    assert main(["check", str(configs / SYMMETRIC), "--set", change]) == 2
    said = capsys.readouterr().err.strip().splitlines()
    assert any(message in line for line in said)
    assert len(said) <= 2


def test_the_impact_experiment_needs_its_rig(configs, capsys):
    sets = ["--set", "controller={kind='impact', contact_x_m=0.0, gamma_deg=0.0}"]
    assert main(["check", str(configs / "miga6/all_on.toml"), *sets]) == 2
    assert "Traceback" not in capsys.readouterr().err


FREE = """
rig = "rig.toml"
[experiment]
name = "an angle under PID"
duration_s = 0.05
[reference]
kind = "signals"
[reference.signals.{loop}]
kind = "steps"
t_s = [0.0]
value = [0.4]
[controller]
kind = "signal_pid"
[controller.loops.{loop}]
output = "torque3"
k_p = 0.01
"""


@pytest.mark.parametrize(("loop_on", "left_out"), [("q3", ["q1"]), ("normal", ["q1", "q3"])])
def test_an_arm_without_an_encoder_is_refused_whatever_controls_it(
    rigs, capsys, tmp_path, loop_on, left_out
):
    """Its observer follows both angles, even where nothing is fed back from them."""
    folder = rigs / "pantograph"
    file = folder / "free.toml"
    file.write_text(FREE.format(loop=loop_on))
    out = ["--out", str(tmp_path / "run.h5")]
    assert main(["check", str(file)]) == 0
    capsys.readouterr()
    text = (folder / "rig.toml").read_text()
    for name in left_out:
        for head in (f"[devices.daq.channels.{name}]", f"[guard.signals.{name}]"):
            start = text.index(head)
            end = text.find("\n[", start)
            while text[end + 2 :].startswith(f"devices.daq.channels.{name}."):
                end = text.find("\n[", end + 2)
            text = text[:start] + (text[end + 1 :] if end >= 0 else "")
    (folder / "rig.toml").write_text(text)
    checked = ("free.toml", "rig.toml", "impact_symmetric.toml")
    for words in (*(["check", str(folder / name)] for name in checked), ["run", str(file), *out]):
        assert main(words) == 2
        said = capsys.readouterr().err.splitlines()
        assert len(said) == len(left_out)
        for line, name in zip(said, left_out, strict=True):
            assert f"rig.toml: devices: no channel measures 'arm.{name}_rad'" in line
            assert "add one of kind 'encoder'" in line
