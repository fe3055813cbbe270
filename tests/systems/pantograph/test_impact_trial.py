"""A trial's analysis against the plant's true state, through quantised and noisy instruments."""

import numpy as np
import pytest

from hil.errors import ModelError
from hil.systems.pantograph.contact import Plate
from hil.systems.pantograph.impact import ASYMMETRIC_M, SYMMETRIC_M, predict
from hil.systems.pantograph.impact_trial import Uncertainty, analyse
from hil.systems.pantograph.linkage import Pantograph
from hil.systems.pantograph.system import PantographSystem, Sensor

RIG = Pantograph()
PERIOD_S = 2.5e-4
TICKS = 560
NO_TORQUE = np.zeros(2)
CELLS = np.zeros(0, dtype=np.uint8)


def recorded(place, gamma_deg, counts, *, mu=0.04, noise_N=0.02, tilt=0.0, seed=0):
    """Samples of a free flight into the plate, and the true tip, energies and forces."""
    speed = predict(RIG.inverse(place), gamma_deg, 0.01).speed_m_per_s[0]
    v = speed * np.array([np.sin(np.deg2rad(gamma_deg)), np.cos(np.deg2rad(gamma_deg))])
    start = RIG.inverse(np.array(place) - 0.02 * v / speed)
    plant = PantographSystem(RIG, Plate(place[1], mu=mu), start, Sensor(tilt), PERIOD_S, 0.0)
    plant.arm.x[2:4] = start.qdot(v)
    y, true = [], []
    for _ in range(TICKS):
        y.append(plant.y.copy())
        true.append(truth(plant.arm))
        plant.step(CELLS, NO_TORQUE)
    y, rng = np.array(y), np.random.default_rng(seed)
    step = 2.0 * np.pi / counts
    q = np.round(y[1:, :2] / step) * step
    force = y[1:, 2:4] + noise_N * rng.standard_normal((TICKS - 1, 2)) + [0.3, -0.2]  # and bias
    return PERIOD_S * np.arange(1, TICKS), q, force, np.array(true[1:])


def truth(arm):
    """T_c and T_a of the arm as it is, whether it touches, and the tip's speed along y."""
    _, _, _, vy, _, _ = arm.tip()
    pose = RIG.forward(arm.x[0], arm.x[1], "upper")
    W = pose.J_m @ np.linalg.solve(pose.M_kg_m2, pose.J_m.T)
    T_c = vy**2 / (2.0 * W[1, 1])
    return T_c, arm.kinetic_energy_J() - T_c, arm.in_contact, vy


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("gamma_deg", [0.0, 30.0])
@pytest.mark.parametrize("place", [SYMMETRIC_M, ASYMMETRIC_M])
def test_a_golden_trial_at_40k_counts_recovers_the_energies(place, gamma_deg, seed):
    """T_c before impact to 1 %, and during compression to 2 % (of T_c before it)."""
    t, q, force, true = recorded(place, gamma_deg, 40_000, seed=seed)
    trial = analyse(RIG, "upper", t, q, force)
    before = int(np.argmax(true[:, 2])) - 1
    T_c, T_a = true[before, :2]
    assert trial.T_c_J == pytest.approx(T_c, rel=0.01)
    assert trial.T_a_J == pytest.approx(T_a, abs=0.01 * (T_c + T_a))
    pressed = np.flatnonzero((true[:, 2] > 0) & (true[:, 3] > 0.0))
    assert len(pressed) > 12
    at = np.searchsorted(trial.t_s, t[pressed])
    np.testing.assert_allclose(trial.T_c_curve_J[at], true[pressed, 0], rtol=0, atol=0.02 * T_c)
    np.testing.assert_allclose(trial.T_a_curve_J[at], true[pressed, 1], rtol=0, atol=0.02 * T_c)
    assert trial.end_s == pytest.approx(t[pressed[-1]], abs=2 * PERIOD_S)


def test_differences_of_angles_alone_miss_the_compression_at_40k_counts():
    """Why the force is needed: the same trial, velocities from one period's differences."""
    t, q, _, true = recorded(SYMMETRIC_M, 0.0, 40_000)
    E = np.array([RIG.forward(a, b, "upper").E_m for a, b in q])
    v_y = np.gradient(E[:, 1], t)
    T_c = v_y**2 * 0.51264 / 2.0
    pressed = np.flatnonzero((true[:, 2] > 0) & (true[:, 3] > 0.0))
    assert np.abs(T_c - true[:, 0])[pressed].max() > 0.05 * true[0, 0]


def test_an_impulse_without_friction_is_the_ideal_one_and_stops_at_the_end_of_compression():
    t, q, force, _ = recorded(SYMMETRIC_M, 15.0, 400_000, mu=0.0, noise_N=0.0)
    trial = analyse(RIG, "upper", t, q, force)
    # The flight before the contact has changed the velocity a little: its own ideal impulse.
    pose = RIG.inverse(SYMMETRIC_M)
    m_y = 1.0 / (pose.A_m @ np.linalg.solve(pose.M_kg_m2, pose.A_m.T))[0, 0]
    v_y = trial.speed_m_per_s * np.cos(np.deg2rad(trial.gamma_deg))
    assert trial.impulse_n_N_s == pytest.approx(m_y * v_y, rel=2e-3)
    assert trial.impulse_t_N_s == pytest.approx(0.0, abs=1e-5)
    assert trial.T_a_after_J == pytest.approx(trial.T_a_J, abs=1e-5)
    whole = np.sum(force[:, 0] - 0.3) * PERIOD_S
    assert whole > 1.5 * trial.impulse_n_N_s  # restitution is left out


def test_friction_lowers_the_admissible_energy_with_the_sign_of_sliding():
    t, q, force, _ = recorded(SYMMETRIC_M, 30.0, 40_000, mu=0.05)
    trial = analyse(RIG, "upper", t, q, force)
    assert trial.impulse_t_N_s == pytest.approx(-0.05 * trial.impulse_n_N_s, rel=0.01)
    assert trial.T_a_after_J < trial.T_a_J


def test_stated_uncertainty_covers_what_repeats_show():
    """Spread of the figures over 12 draws of the noise, against the standard uncertainty said."""
    trials = []
    for seed in range(12):
        t, q, force, _ = recorded(SYMMETRIC_M, 30.0, 40_000, noise_N=0.3, seed=seed)
        trials.append(analyse(RIG, "upper", t, q, force))
    spread = np.std([trial.impulse_t_N_s for trial in trials], ddof=1)
    said = np.mean([trial.standard["impulse_t_N_s"] for trial in trials])
    assert said / 3.0 < spread < 3.0 * said


def test_misalignment_and_gain_are_in_the_uncertainty_said():
    t, q, force, _ = recorded(SYMMETRIC_M, 0.0, 40_000, noise_N=0.0, tilt=0.01)
    known = Uncertainty(force_gain=0.005, misalignment_rad=0.01)
    trial = analyse(RIG, "upper", t, q, force, known)
    # 0.01 of the normal impulse shows along the plate; friction at gamma = 0 is near zero.
    assert abs(trial.impulse_t_N_s) < 1.5 * trial.standard["impulse_t_N_s"]
    assert trial.standard["impulse_t_N_s"] == pytest.approx(0.01 * trial.impulse_n_N_s, rel=0.1)


@pytest.mark.parametrize("gain", [1.0, 0.97])
def test_angles_across_the_contact_show_the_sensors_gain(gain):
    t, q, force, _ = recorded(ASYMMETRIC_M, 15.0, 40_000)
    assert analyse(RIG, "upper", t, q, gain * force).closure == pytest.approx(1 / gain, rel=0.005)


def test_lost_samples_are_left_out():
    t, q, force, _ = recorded(SYMMETRIC_M, 0.0, 40_000)
    whole = analyse(RIG, "upper", t, q, force)
    q[100::17] = np.nan
    with_gaps = analyse(RIG, "upper", t, q, force)
    assert with_gaps.T_c_J == pytest.approx(whole.T_c_J, rel=0.01)
    assert with_gaps.impulse_n_N_s == pytest.approx(whole.impulse_n_N_s, rel=0.03)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t, q, f: (t, q, 0.0 * f), "no contact"),
        (lambda t, q, f: (t[:5], q[:5], f[:5]), "too few samples"),
        (lambda t, q, f: (t[395:], q[395:], f[395:]), "too little|no contact"),
        (lambda t, q, f: (t, q, 0.2 * f), "compression does not end"),
    ],
)
def test_a_trial_without_an_impact_is_said_to_be_none(change, message):
    t, q, force, _ = recorded(SYMMETRIC_M, 0.0, 40_000)
    with pytest.raises(ModelError, match=message):
        analyse(RIG, "upper", *change(t, q, force))
