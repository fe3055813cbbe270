"""Attitudes against products of elementary turns, SciPy's Rotation and finite differences."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from hil.mechanics.rotations import (
    angles,
    attitude,
    attitude_of_quaternion,
    omega_to_rates,
    omega_to_rates_slopes,
    quaternion,
    quaternion_of_attitude,
    quaternion_rate,
    rates_to_omega,
    rates_to_omega_rate,
    skew,
)
from hil.systems.bodies import segments

RNG = np.random.default_rng(13)
THETA = RNG.uniform(-1.4, 1.4, (50, 3))
RATES = RNG.normal(size=(50, 3))
H = 1e-6


def test_the_attitude_is_a_roll_then_a_pitch_then_a_yaw():
    expected = Rotation.from_euler("XYZ", THETA)
    assert np.allclose(attitude(THETA), expected.as_matrix(), atol=1e-15, rtol=0.0)


def test_the_long_axes_of_an_arm_stand_as_equation_15_prints_them():
    t2, t3 = 0.7, -0.4
    arm = attitude([0.0, t2, t3]) @ [1.0, 0.0, 0.0]
    printed = [np.cos(t2) * np.cos(t3), np.sin(t3), -np.sin(t2) * np.cos(t3)]
    assert np.allclose(arm, printed, atol=1e-15)


def test_angles_undo_the_attitude():
    assert np.allclose(angles(attitude(THETA)), THETA, atol=1e-13)


@pytest.mark.parametrize("t2", [np.pi / 2, -np.pi / 2])
def test_angles_at_the_singularity_give_the_attitude_back(t2):
    A = attitude([0.4, t2, 0.3])
    assert np.allclose(attitude(angles(A)), A, atol=1e-9)


def test_rates_of_the_angles_give_the_angular_velocity_of_the_attitude():
    A_rate = (attitude(THETA + H * RATES) - attitude(THETA - H * RATES)) / (2.0 * H)
    spin = np.swapaxes(attitude(THETA), -1, -2) @ A_rate
    omega = np.einsum("nij,nj->ni", rates_to_omega(THETA), RATES)
    assert np.allclose(spin, skew(omega), atol=1e-8)  # central difference, h^2 and rounding / h


def test_the_two_matrices_of_rates_are_inverse():
    assert np.allclose(omega_to_rates(THETA) @ rates_to_omega(THETA), np.eye(3), atol=1e-14)


def test_the_inverse_is_singular_at_a_right_angle_of_pitch_and_not_the_other():
    assert abs(np.linalg.det(rates_to_omega([0.3, np.pi / 2, 0.2]))) < 1e-15
    near = np.linalg.det(omega_to_rates([0.3, np.pi / 2 - 1e-6, 0.2]))
    assert near == pytest.approx(1e6, rel=1e-6)


def test_derivatives_of_the_matrices_of_rates_are_their_differences():
    difference = (rates_to_omega(THETA + H * RATES) - rates_to_omega(THETA - H * RATES)) / (2 * H)
    assert np.allclose(rates_to_omega_rate(THETA, RATES), difference, atol=1e-8)
    mild = 0.6 * THETA  # 1/cos^2 magnifies the differences' error
    for k in range(3):
        step = np.eye(3)[k] * H
        difference = (omega_to_rates(mild + step) - omega_to_rates(mild - step)) / (2 * H)
        assert np.allclose(omega_to_rates_slopes(mild)[:, k], difference, atol=1e-8)


def test_quaternions_turn_as_angles_do():
    q = quaternion(THETA)
    assert np.allclose(attitude_of_quaternion(3.0 * q), attitude(THETA), atol=1e-14)
    again = quaternion_of_attitude(attitude(THETA))
    assert np.allclose(again, np.where(q[:, :1] < 0.0, -q, q), atol=1e-14)


def test_every_half_turn_has_a_quaternion():
    for axis in np.eye(3):
        A = 2.0 * np.outer(axis, axis) - np.eye(3)
        assert np.allclose(attitude_of_quaternion(quaternion_of_attitude(A)), A, atol=1e-15)


def test_the_rate_of_a_quaternion_is_that_of_its_attitude():
    q = quaternion(THETA)
    omega = np.einsum("nij,nj->ni", rates_to_omega(THETA), RATES)
    q_rate = (quaternion(THETA + H * RATES) - quaternion(THETA - H * RATES)) / (2.0 * H)
    assert np.allclose(quaternion_rate(q, omega), q_rate, atol=1e-8)


def test_the_segments_of_a_body_weigh_the_whole_body():
    single = ("head", "upper_trunk", "mid_trunk", "lower_trunk")
    table = segments.SEGMENTS
    total = sum(table[name].mass * (1 if name in single else 2) for name in table)
    assert total == pytest.approx(1.0, abs=1e-12)
