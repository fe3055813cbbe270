"""Muscles that only pull: what their pairs and paths do, by virtual work."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hil.errors import ModelError
from hil.mechanics.muscle import Muscle
from hil.mechanics.rotations import attitude, omega_to_rates
from hil.systems.arm.actuators import Cap, Path, generalised_torques, pair_torque
from hil.systems.arm.control import GOAL, PAIR, _activate, pair
from hil.systems.arm.links import Arm
from hil.systems.arm.motion import Muscles, torques
from hil.systems.arm.pointing import printed_motion
from hil.systems.arm.system import ArmSystem, Pairs
from hil_studies.arm.readings import GAINS_N_M_PER_RAD

SMALL = st.floats(-3.0, 3.0)


@given(SMALL, st.floats(0.0, 2.0))
def test_a_pairs_difference_is_what_was_asked_for_whatever_the_co_activation(u, c):
    plus, minus = pair(u, c)
    assert min(plus, minus) >= c >= 0.0
    assert float(plus - minus) == pytest.approx(u, abs=1e-15 * (1.0 + abs(u) + c))


def nine_pairs(**values):
    """Pairs whose muscles are 18 outputs in a row; what is not given is 0."""
    pairs = np.zeros(9, PAIR)
    pairs["outputs"] = np.arange(18).reshape(9, 2)
    for name, value in values.items():
        pairs[name] = value
    return pairs


def test_the_control_stage_shares_torques_out_as_pairs_do():
    rng = np.random.default_rng(1)
    torque, t_max, c = rng.normal(0, 5, (3, 3)), np.repeat([40.0, 15.0, 4.0], 3), np.full(9, 0.1)
    A, omega, outputs = np.tile(np.eye(3), (3, 1, 1)), np.zeros((3, 3)), np.zeros(18)
    pairs = nine_pairs(high=5.0, torque_max=t_max, coactivation=c)
    _activate(np.array([(A, omega, torque)], GOAL), A, omega, pairs, 0.001, outputs)
    plus, minus = pair(torque.ravel() / t_max, c)
    np.testing.assert_allclose(outputs[::2], plus, rtol=1e-15)
    np.testing.assert_allclose(outputs[1::2], minus, rtol=1e-15)


@pytest.mark.parametrize("axis", range(3))
def test_the_control_stage_turns_a_link_towards_its_set_point(axis):
    turn = np.zeros((3, 3))
    turn[1, axis] = 1e-3  # small: Bryant angles are then the turn itself
    A, zero, outputs = attitude(np.zeros((3, 3))), np.zeros((3, 3)), np.zeros(18)
    goal = np.array([(attitude(turn), zero, zero)], GOAL)
    _activate(goal, A, zero, nine_pairs(k=2.0, torque_max=1.0, high=1.0), 0.001, outputs)
    wanted = np.zeros(18)
    wanted[2 * (3 + axis)] = 2e-3
    np.testing.assert_allclose(outputs, wanted, atol=1e-8)


def test_sharing_half_and_half_is_exact_only_above_the_published_co_activation():
    motion = printed_motion(np.linspace(0.0, 2.0, 2001))
    needed = Arm().pair_torques(motion.theta, motion.rate, motion.acceleration)
    u = needed / GAINS_N_M_PER_RAD[:, None]  # in units of the gain

    def lost(c):
        return np.abs(np.maximum(c + u / 2, 0) - np.maximum(c - u / 2, 0) - u).max()

    assert lost(1.835) == pytest.approx(0.0, abs=1e-12)
    assert lost(1.825) > 1e-3


@given(st.floats(0.0, 1.0), st.floats(0.0, 1.0), SMALL)
def test_a_pair_with_both_muscles_taut_is_linear_and_pulls_only(plus, minus, spin):
    t, b = 30.0, 2.0
    tau = float(pair_torque(plus, minus, spin, t, b))
    if t * min(plus, minus) >= 0.5 * b * abs(spin):
        assert tau == pytest.approx(t * (plus - minus) - b * spin, abs=1e-12)
    # one muscle at most slack: never more than the other can pull
    assert -(t * minus + max(0.5 * b * spin, 0.0)) <= tau <= t * plus + max(-0.5 * b * spin, 0.0)


@given(st.floats(0.0, 1.0), SMALL, SMALL, SMALL)
def test_no_muscle_ever_pushes(alpha, gamma, stretch, rate):
    assert Muscle(100.0, 50.0, 20.0).tension_N(alpha, gamma, stretch, rate) >= 0.0


def test_alpha_drives_gamma_sets_the_length_and_co_activation_keeps_both_taut():
    muscle, r = Muscle(100.0, 400.0, 8.0), 0.03
    plus, minus = Path(1, (Cap(-r, 0),)), Path(1, (Cap(r, 0),))
    theta, rate, goal, c, u = 0.2, 0.7, 0.25, 0.5, 0.1
    a = pair(u, c)
    tension = [
        muscle.tension_N(alpha, path.elongation_m([goal]), path.elongation_m([theta]),
                         path.slope()[0] * rate)
        for path, alpha in zip((plus, minus), a, strict=True)
    ]  # fmt: skip
    found = generalised_torques((plus, minus), tension, [theta])
    expected = r * 100 * u + 2 * r**2 * 400 * (goal - theta) - 2 * r**2 * 8 * rate
    np.testing.assert_allclose(found, [expected], atol=1e-12)


def sling(dl3=None):
    """Fig. 6: caps 1 and 2 under links at theta_1 and theta_2."""
    return Path(3, (Cap(0.02, 0), Cap(0.05, 1, 0)), dl3)


@given(SMALL, SMALL, SMALL)
def test_the_sling_lengthens_as_figure_6_says(theta_1, theta_2, theta_3):
    found = sling(lambda q: (0.01 * q[2] ** 2, np.array([0, 0, 0.02 * q[2]]))).elongation_m(
        [theta_1, theta_2, theta_3]
    )
    expected = 0.02 * theta_1 + 0.05 * (theta_2 - theta_1) + 0.01 * theta_3**2
    assert found == pytest.approx(expected, abs=1e-15)


@given(SMALL, SMALL, SMALL)
def test_a_moment_arm_is_minus_the_slope_of_the_path(theta_1, theta_2, theta_3):
    theta = np.array([theta_1, theta_2, theta_3])
    path = sling(lambda q: (0.01 * np.sin(q[2] - q[0]),
                            0.01 * np.cos(q[2] - q[0]) * np.array([-1.0, 0.0, 1.0])))  # fmt: skip
    for k, step in enumerate(1e-6 * np.eye(3)):
        slope = (path.elongation_m(theta + step) - path.elongation_m(theta - step)) / 2e-6
        assert path.arms_m(theta)[k] == pytest.approx(-slope, abs=1e-9)


def test_a_tendons_power_is_its_tension_times_its_shortening_in_space():
    rng = np.random.default_rng(3)
    slope, muscle = sling().slope(), np.array([200.0, 300.0, 15.0])
    for _ in range(20):
        theta, omega = rng.uniform(-1.3, 1.3, (3, 3)), rng.normal(0, 3, (3, 3))
        gamma = rng.uniform(-0.02, 0.02)
        N, alpha = np.empty((3, 3)), rng.uniform(0, 1)
        activations = np.concatenate((np.zeros(18), [alpha, gamma]))
        muscles = Muscles(np.zeros(9), np.zeros(9), slope[None], muscle[None])
        torques(attitude(theta), omega, activations, muscles, N)
        pitch_rate = np.einsum("kij,kj->ki", omega_to_rates(theta), omega)[:, 1]
        stretch, rate = slope @ theta[:, 1], slope @ pitch_rate
        tension = float(Muscle(200.0, 300.0, 15.0).tension_N(alpha, gamma, stretch, rate))
        assert np.sum(N * omega) == pytest.approx(-tension * rate, abs=1e-10 * (1 + tension))


def test_a_tendon_over_shoulder_and_elbow_lifts_both():
    arm, pairs = Arm(gravity_m_per_s2=1e-9), Pairs((30.0, 15.0, 4.0), (2.0, 0.4, 0.24))
    # raising is negative pitch: the tendon shortens with it
    biceps = Muscle(400.0), Path(3, (Cap(0.02, 0), Cap(0.03, 1, 0)))
    system = ArmSystem(arm, pairs, np.zeros(9), 0.001, {"biceps": biceps})
    assert system.inputs[-1] == "biceps.activation"
    system.step(np.zeros(0), np.concatenate((np.full(18, 0.2), [0.5])))
    assert system.y[4] < 0.0
    assert system.y[4] < system.y[1]


def test_a_cap_on_an_angle_that_is_not_there_is_refused():
    with pytest.raises(ModelError, match="there is no angle 3: they are 0 to 2"):
        Path(3, (Cap(0.02, 3),))
    with pytest.raises(ModelError, match="caps on the pitch of its three links"):
        ArmSystem(
            Arm(), Pairs((1.0, 1.0, 1.0), (0.0, 0.0, 0.0)), np.zeros(9), 0.001,
            {"odd": (Muscle(1.0), Path(2, (Cap(0.1, 0),)))},
        )  # fmt: skip
