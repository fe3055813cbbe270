"""`hil study leg`: published values, what was reached before, and the keys of its results."""

import json

import numpy as np
import pytest
import scipy.integrate

from hil.__main__ import main
from hil.experiment.load import load
from hil.systems.leg.system import LimbSystem
from hil_studies.leg.study import Values, _instruments, error_mm
from hil_studies.leg.thesis import (
    LENGTHS,
    STANDARD,
    TABLE_3,
    WEAK_D,
    Sensing,
    _lengths,
    simulate,
)
from hil_studies.leg.trial import run_trial

START_M = -0.8406


def study(out, *sets):
    words = [word for text in sets for word in ("--set", text)]
    assert main(["study", "leg", *words, "--out", str(out)]) == 0
    return json.loads((out / "results.json").read_text())


def still(configs, reading, sensing, duration_s=1.0):
    system = load(configs / "leg/still.toml").system(plant=True)
    assert isinstance(system, LimbSystem)
    target = np.full(round(1000 * duration_s), START_M)
    return simulate(system, "toe", target, reading, sensing)


@pytest.mark.slow
def test_standard_labels_drop_the_foot_by_a_third_of_a_millimetre(tmp_path):
    """leg.md: 0.33 mm, and the statics at the end."""
    found = study(tmp_path, "scenario=still", "controller=thesis")
    assert found["drop_mm"] == pytest.approx(0.33, abs=5e-3)
    assert found["settle_s"] == 0.0
    assert found["q_TA"][-1] == pytest.approx(0.01361, abs=2e-4)
    # a fifth of a millimetre low still, which takes 0.2 N more
    assert found["F_TA_N"][-1] == pytest.approx(24.60, abs=0.3)
    assert found["F_SOL_N"][-1] == pytest.approx(3.44, abs=0.3)
    lengths = {len(found[key]) for key in ("t_s", "F_TA_N", "F_SOL_N", "q_TA", "q_SOL")}
    assert lengths == {2500}
    assert found["F_TA_N"][0] == pytest.approx(9.579, abs=1e-3)
    assert found["q_TA"][0] == 0.001
    e = 1e3 * (np.array(found["target_m"]) - np.array(found["height_m"]))
    assert found["rms_mm"] == pytest.approx(np.sqrt(np.mean(e**2)))
    assert found["max_mm"] == pytest.approx(np.abs(e).max())
    assert (tmp_path / "still.png").stat().st_size > 20_000


@pytest.mark.slow
def test_a_weakened_derivative_drops_it_by_three_millimetres_and_swings_downwards(tmp_path):
    """leg.md: 2.9 mm, there again within 0.56 s, oscillation in the downward movement."""
    found = study(tmp_path, "scenario=down", "controller=thesis_weak_d")
    assert found["drop_mm"] == pytest.approx(2.9, abs=0.05)
    assert found["settle_5_percent_of_drop_s"] == pytest.approx(0.56, abs=0.01)
    assert np.std(found["q_SOL"][-500:]) > 0.02
    # (26) pushes a little where a fibre is carried along too fast; it is said
    assert found["tension_min_N"] < 0.0
    assert any("pushes" in note for note in found["notes"])


def test_the_law_is_as_good_as_continuous_and_chatters_at_a_kilohertz(configs):
    """leg.md: chatters when sampled more seldom than every 0.25 to 0.5 ms."""
    one = still(configs, STANDARD, Sensing(), 0.2)
    half = still(configs, STANDARD, Sensing(period_s=5e-5), 0.2)
    assert abs(error_mm(one).max() - error_mm(half).max()) < 1e-3
    for period_s, chatters in ((2.5e-4, False), (5e-4, True), (1e-3, True)):
        trace = still(configs, STANDARD, Sensing(period_s, False), 0.5)
        swing = trace.activation[-200:, 0].std()
        assert (swing > 0.02) == chatters, (period_s, swing)
    calm = still(configs, WEAK_D, Sensing(1e-3, False))
    assert calm.activation[-200:, 0].std() < 1e-3


def lengths_m(angle_rad):
    """Lengths of TA and SOL at an angle of the ankle, from Tables 4 and 5; (y, z) in the shin."""
    c, s = np.cos(angle_rad), np.sin(angle_rad)
    turn = np.array([[c, -s], [s, c]])
    centre = np.array([0.0, -0.2433]) + turn @ (0.0636, -0.0148)
    TA = [centre + turn @ (0.0044, -0.0092), np.array([0.033, -0.2083]), np.array([0.018, 0.0247])]
    SOL = [centre + turn @ (-0.1126, 0.0038), np.array([-0.002, 0.0337])]
    return np.array([sum(np.linalg.norm(np.diff(p, axis=0), axis=1)) for p in (TA, SOL)])


@pytest.mark.parametrize("path_rates", [True, False])
def test_the_pid_on_lengths_moves_the_leg_as_another_integrator_does(configs, path_rates):
    """Implicit Runge-Kutta over the closed loop; lengths by plane geometry, rates by differences.

    The law is held over 0.1 ms in the study and continuous here: 0.33 mm of drop differ by 1 um.
    """
    config = load(configs / "leg/still.toml", [f"plant.path_rates={str(path_rates).lower()}"])
    system = config.system(plant=True)
    trace = simulate(system, "toe", np.full(61, START_M), LENGTHS, Sensing())
    other = config.system(plant=True).stepper
    n, start, rise = len(other.x), lengths_m(0.0), 1e-6

    def closed(_, x):
        q, rate = x[2], x[5]
        e = lengths_m(q) - start
        e_dot = (lengths_m(q + rise) - lengths_m(q - rise)) / (2.0 * rise) * rate
        u = np.clip(np.sum(TABLE_3.T * (e, x[n:], e_dot), axis=0), 0.001, 1.0)
        return np.concatenate([other.slope(x[:n].copy(), u), e])

    x = scipy.integrate.solve_ivp(
        closed, (0.0, 0.06), [*other.x, 0.0, 0.0], method="Radau", rtol=1e-7, atol=1e-9
    ).y[:, -1]
    other.x[:] = x[:n]
    other.look(np.full(2, 0.001))
    foot = other.body_link["foot"]
    at = np.array([0.0, 0.1, 0.0]) + other.links.centre[foot]
    height_m = (other.work.place[foot] + other.work.turn[foot] @ at)[2]
    assert START_M - height_m > 3e-4
    assert trace.height_m[-1] == pytest.approx(height_m, abs=3e-6)


def test_the_target_lengths_are_those_of_the_plane_leg_at_the_target_height(configs):
    system = load(configs / "leg/still.toml").system(plant=True)
    angles = np.linspace(-0.15, 0.1, 7)
    # the toe is 0.1 m before the foot's centre of mass
    heights = START_M + 0.1636 * np.sin(angles) + 0.0148 * (1.0 - np.cos(angles))
    found = _lengths(system.stepper, system.points["toe"], heights)
    np.testing.assert_allclose(found, [lengths_m(a) for a in angles], atol=2e-7)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scenario", "controller", "best_mm"),
    [("up_down", "precise", 0.054), ("down", "robust", 0.34), ("still", "precise", 0.044)],
)
def test_the_better_controller_stays_below_what_was_reached_before(
    scenario, controller, best_mm, tmp_path
):
    found = study(tmp_path, f"scenario={scenario}", f"controller={controller}")
    assert found["rms_mm"] < best_mm
    assert found["settle_s"] == 0.0
    assert all(check["agrees"] for check in found["checks"])


@pytest.mark.slow
def test_every_case_and_the_comparison_under_delay_noise_and_strength(tmp_path):
    """leg.md had 0.34 to 0.57 mm with muscles as modelled; the thesis's PID does not hold."""
    found = study(tmp_path)
    assert set(found["cases"]) == {"still", "up", "down", "up_down"}
    for cases in found["cases"].values():
        assert cases["precise"]["rms_mm"] < cases["thesis"]["rms_mm"]
    rows = found["tables"][1]["rows"]
    assert len(rows) == 12
    errors = found["tables"][2]["rows"]
    assert len(errors) == 15
    for name, *rms_mm, _ in errors:
        assert max(float(v) for v in rms_mm) < 1.0, name
    for _, controller, *rms_mm in rows:
        assert all((float(v) < 0.34) == (controller == "robust") for v in rms_mm)
    said = {check["what"]: check["verdict"] for check in found["checks"]}
    assert said["still, thesis: drop as in Fig. 12"] == "NOT reproduced"
    assert said["still, thesis_weak_d: drop as in Fig. 12"] == "agrees"
    # an earlier, independent program: 78.2 N, 51.6 N, drop 1.05 mm
    down = found["cases"]["down"]["thesis_lengths"]
    assert down["F_TA_N"][-1] == pytest.approx(78.2, abs=2.0)
    assert down["F_SOL_N"][-1] == pytest.approx(51.6, abs=2.0)
    assert down["drop_mm"] == pytest.approx(1.05, abs=0.02)
    readings = {what.partition(": ")[0].partition(", ")[2] for what in said if "Fig. 12" in what}
    assert len(readings) == 6
    for reading in readings:  # no single one gives all
        own = {said[what] for what in said if f", {reading}: " in what and "Fig" in what}
        assert own == {"agrees", "NOT reproduced"}, reading


@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize(
    ("scenario", "changes"),
    [
        ("down", {"tendon_TA": 0.98, "tendon_SOL": 1.02}),
        ("down", {"tendon_SOL": 1.02}),
        ("up", {"strength_TA": 1.3, "strength_SOL": 0.7}),
        ("still", {"payload_kg": 2.0}),
        ("down", {"told_delay_s": 0.0}),
    ],
)
def test_the_robust_controller_stays_below_a_millimetre_on_a_plant_that_is_not_its_model(
    scenario, changes
):
    """The worst cases of the study's table; an added correction left 0.1 to 6.8 mm."""
    trace = run_trial(_instruments(scenario, "robust", Values(**changes)), 0)
    assert np.sqrt(np.mean(error_mm(trace) ** 2)) < 1.0


def test_values_of_the_study_change_the_plant_and_what_the_controller_is_told():
    values = Values(strength=0.5, strength_TA=1.2, tendon_SOL=0.99, payload_kg=2.0,
                    told_delay_s=0.003)  # fmt: skip
    config = _instruments("still", "robust", values)
    plant, model = config.tables.plant, config.tables.model
    assert plant.muscles["TA"].F_max_N == pytest.approx(0.6 * 1528.0)
    assert plant.muscles["SOL"].F_max_N == pytest.approx(0.5 * 3883.0)
    assert plant.muscles["TA"].l_SEE_0_m == 0.223
    assert plant.muscles["SOL"].l_SEE_0_m == pytest.approx(0.99 * 0.245)
    assert plant.bodies["foot"].mass_kg == pytest.approx(3.5666)
    assert model.bodies["foot"].mass_kg == 1.5666
    assert model.muscles["TA"].F_max_N == 1528.0
    assert config.tables.controller.delay_s == 0.003
    assert config.tables.devices["daq"].channels["height"].sim.delay_s == 0.005


@pytest.mark.slow
@pytest.mark.parametrize("strength", [0.8, 1.2])
def test_muscles_a_fifth_off_are_made_up_for(strength, tmp_path):
    """leg.md had 0.34 mm at best with 5 ms of delay and 20 um of noise, muscles as modelled."""
    found = study(tmp_path, "scenario=up", "controller=robust", f"strength={strength}")
    assert found["rms_mm"] < 0.34


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("scenario=jump", "scenario = 'jump'"),
        ("controller=best", "controller = 'best'"),
        ("strength=0.1", "strength = 0.1"),
        ("delay=0.01", "this study has scenario, controller, strength"),
    ],
)
def test_values_that_the_study_cannot_take_are_refused(change, message, tmp_path, capsys):
    assert main(["study", "leg", "--set", change, "--out", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert "Traceback" not in said
