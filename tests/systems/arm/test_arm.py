"""The arm against an independent peer (pinocchio), laws, and print."""

import mujoco
import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hil.errors import ModelError
from hil.mechanics.recursion import Recursion
from hil.mechanics.rotations import (
    attitude,
    attitude_of_quaternion,
    quaternion_of_attitude,
    rates_to_omega,
    rates_to_omega_rate,
)
from hil.systems.arm.actuators import pair_torque
from hil.systems.arm.links import TABLE_1, Arm, Link
from hil.systems.arm.motion import Muscles, torques
from hil.systems.arm.pointing import angles_of, motion_through, printed_motion
from hil.systems.arm.system import ArmSystem, Pairs
from hil_studies.arm.speed import mujoco_xml, pinocchio_model

ARM = Arm()
PAIRS = Pairs((30.0, 15.0, 4.0), (2.0, 0.4, 0.24))
SLACK = Pairs((30.0, 15.0, 4.0), (0.0, 0.0, 0.0))
RNG = np.random.default_rng(7)


@pytest.fixture(scope="module")
def peer():
    """Table 1 with a spherical joint at every joint; its torques are the pairs', by definition."""
    return pinocchio_model(ARM)


def to_peer(A, omega, omega_rate):
    """Relative attitudes (x, y, z, w), velocities and accelerations in the outer link's frame."""
    q, v, a = [], [], []
    for i in range(3):
        R = A[i - 1].T @ A[i] if i else A[0]
        carried, carried_rate = (R.T @ x[i - 1] if i else np.zeros(3) for x in (omega, omega_rate))
        q += list(np.roll(quaternion_of_attitude(R), -1))
        v += list(omega[i] - carried)
        a += list(omega_rate[i] - carried_rate + np.cross(omega[i] - carried, carried))
    return np.array(q), np.array(v), np.array(a)


def random_motion():
    theta, rate, second = RNG.uniform(-1.2, 1.2, 9), RNG.normal(0, 3, 9), RNG.normal(0, 20, 9)
    B = rates_to_omega(theta.reshape(3, 3))
    omega = np.einsum("kij,kj->ki", B, rate.reshape(3, 3))
    turn = rates_to_omega_rate(theta.reshape(3, 3), rate.reshape(3, 3))
    omega_rate = np.einsum("kij,kj->ki", B, second.reshape(3, 3))
    omega_rate += np.einsum("kij,kj->ki", turn, rate.reshape(3, 3))
    return theta, rate, second, omega, omega_rate


def test_a_motions_torques_are_those_of_the_peer(peer):
    for _ in range(20):
        theta, rate, second, omega, omega_rate = random_motion()
        q, v, a = to_peer(attitude(theta.reshape(3, 3)), omega, omega_rate)
        expected = pin.rnea(peer, peer.createData(), q, v, a).reshape(3, 3)
        found = ARM.pair_torques(theta, rate, second)
        np.testing.assert_allclose(found, expected, atol=1e-10)


@pytest.mark.slow
def test_accelerations_under_activations_are_those_of_the_peer(peer):
    tree = Recursion(ARM.bodies(), fixed=True)
    t_max, b = PAIRS.of_nine()
    for _ in range(20):
        theta, _, _, omega, _ = random_motion()
        A, N, a = attitude(theta.reshape(3, 3)), np.empty((3, 3)), RNG.uniform(0, 1, 18)
        torques(A, omega, a, Muscles(t_max, b, *np.zeros((2, 0, 3))), N)
        tree.solve(A, omega, N, gravity=ARM.gravity)
        q, v, found = to_peer(A, omega, tree.omega_rate)
        tau = pair_torque(a[::2], a[1::2], v, t_max, b)
        expected = pin.aba(peer, peer.createData(), q, v, tau)
        np.testing.assert_allclose(found, expected, atol=1e-10 * np.abs(expected).max())


def test_mujoco_moves_the_same_arm_alike():
    tree, model = (
        Recursion(ARM.bodies(), fixed=True),
        mujoco.MjModel.from_xml_string(mujoco_xml(ARM)),
    )
    data = mujoco.MjData(model)
    theta, _, _, omega, _ = random_motion()
    A, N = attitude(theta.reshape(3, 3)), np.empty((3, 3))
    a = RNG.uniform(0, 1, 18)
    t_max, none = SLACK.of_nine()
    torques(A, omega, a, Muscles(t_max, none, *np.zeros((2, 0, 3))), N)
    tree.solve(A, omega, N, gravity=ARM.gravity)
    q, v, found = to_peer(A, omega, tree.omega_rate)
    data.qpos[:] = np.roll(q.reshape(3, 4), 1, axis=1).ravel()
    data.qvel[:], data.qfrc_applied[:] = v, t_max * (a[::2] - a[1::2])
    mujoco.mj_forward(model, data)
    np.testing.assert_allclose(found, data.qacc, rtol=1e-8, atol=1e-8 * np.abs(found).max())


def energy_J(system):
    A = attitude_of_quaternion(system.q)
    total, joint, speed = 0.0, np.zeros(3), np.zeros(3)
    for link, a, w in zip(TABLE_1, A, system.omega, strict=True):
        turn = np.cross(a @ w, a[:, 0])
        v, height = speed + link.com_m * turn, joint[2] + link.com_m * a[2, 0]
        total += 0.5 * link.mass_kg * v @ v + 0.5 * w @ (np.array(link.inertia_kg_m2) * w)
        total += link.mass_kg * 10.0 * height
        joint, speed = joint + link.length_m * a[:, 0], speed + link.length_m * turn
    return total


def test_a_falling_arm_keeps_its_energy_through_the_singular_attitude():
    system = ArmSystem(ARM, SLACK, np.zeros(9), 0.001)
    start, pitch = energy_J(system), 0.0
    for _ in range(600):
        system.step(np.zeros(0), np.zeros(18))
        pitch = max(pitch, system.y[1])
        assert abs(energy_J(system) - start) < 1e-7  # of 8 J that change hands; steps of 0.25 ms
    assert pitch > np.deg2rad(85.0)


def test_slack_muscles_only_take_energy_away():
    arm = Arm(gravity_m_per_s2=1e-12)
    system = ArmSystem(arm, PAIRS, np.full(9, 0.2), 0.001)
    system.omega[:] = RNG.normal(0, 5, (3, 3))
    seen = []
    for _ in range(300):
        A = attitude_of_quaternion(system.q)
        speed, T = np.zeros(3), 0.0
        for link, a, w in zip(TABLE_1, A, system.omega, strict=True):
            turn = np.cross(a @ w, a[:, 0])
            v = speed + link.com_m * turn
            T += 0.5 * link.mass_kg * v @ v + 0.5 * w @ (np.array(link.inertia_kg_m2) * w)
            speed = speed + link.length_m * turn
        seen.append(T)
        system.step(np.zeros(0), np.full(18, 0.1))
    assert np.all(np.diff(seen) <= 1e-12)
    assert seen[-1] < 0.5 * seen[0]


def test_the_step_keeps_the_angles_to_its_tolerance_over_the_movement():
    def run(step_s):
        system = ArmSystem(ARM, PAIRS, printed_motion(0.0).theta, 0.001, step_s=step_s)
        theta = []
        for k in range(1000):
            a = 0.3 + 0.25 * np.sin(0.011 * k * (1.0 + 0.1 * np.arange(18)))
            system.step(np.zeros(0), a)
            theta.append(system.y[:9].copy())
        return np.array(theta)

    # the tolerance that the module states; halving a fourth-order step shows what is left
    assert np.abs(run(0.00025) - run(0.000125)).max() < 1e-7


def test_the_movement_needs_the_printed_torques():
    motion = printed_motion(np.linspace(0.0, 2.0, 2001))
    needed = np.abs(ARM.pair_torques(motion.theta, motion.rate, motion.acceleration))
    np.testing.assert_allclose(needed.max(axis=(0, 2)), [18.99, 7.33, 1.00], atol=0.005)


def test_the_printed_rates_are_derivatives_of_the_printed_angles():
    t = np.linspace(0.1, 1.9, 50)
    before, at, after = printed_motion(t - 1e-5), printed_motion(t), printed_motion(t + 1e-5)
    np.testing.assert_allclose((after.theta - before.theta) / 2e-5, at.rate, atol=1e-8)
    np.testing.assert_allclose((after.rate - before.rate) / 2e-5, at.acceleration, atol=1e-7)


def test_the_fingertip_of_the_movement_leads_back_to_its_angles():
    theta = printed_motion(np.linspace(0.0, 2.0, 201)).theta
    found = angles_of(ARM, ARM.places_m(theta)[:, 2])
    np.testing.assert_allclose(found, theta, atol=1e-10)


@given(st.floats(0.15, 0.55), st.floats(-0.2, 0.2), st.floats(-0.3, 0.3))
def test_angles_put_the_fingertip_where_it_is_wanted(x, y, z):
    try:
        theta = angles_of(ARM, (x, y, z))
    except ModelError:
        near = np.sqrt(0.27**2 - y**2)
        assert not abs(near - 0.41) <= np.hypot(x, z) <= near + 0.41
        return
    np.testing.assert_allclose(ARM.places_m(theta)[2], (x, y, z), atol=1e-9)


@pytest.mark.parametrize(
    ("place", "says"),
    [
        ((0.9, 0.0, 0.0), "fingertip_m = [0.9, 0, 0]: out of reach: is 0.9 m out in its plane, "
                          "the arm reaches 0.14 to 0.68 there"),
        ((0.05, 0.0, 0.0), "out of reach: is 0.05 m out"),
        ((0.3, 0.3, 0.0), "out of reach: is 0.3 m to the side, the arm reaches 0 to 0.27 there"),
        ((0.3, float("nan"), 0.0), "give three numbers"),
        ((0.3, 0.1), "give three numbers"),
    ],
)  # fmt: skip
def test_an_unreachable_fingertip_is_refused_in_one_line(place, says):
    with pytest.raises(ModelError) as error:
        angles_of(ARM, place)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_a_way_through_fingertips_is_straight_smooth_and_at_rest_at_its_ends():
    t = np.linspace(0.0, 2.0, 401)
    goals = [[0.4, 0.1, 0.1], [0.5, -0.1, 0.2]]
    motion = motion_through(ARM, [0.5, 1.5], goals, t)
    tip = ARM.places_m(motion.theta)[:, 2]
    way = np.subtract(*goals[::-1])
    off = np.cross(tip - goals[0], way / np.linalg.norm(way))
    assert np.abs(off).max() < 1e-6  # of a quintic spline through 51 angles
    np.testing.assert_allclose(tip[[0, -1]], goals, atol=1e-9)
    assert not motion.rate[t <= 0.5].any()
    np.testing.assert_allclose(np.gradient(motion.theta, t, axis=0)[1:-1], motion.rate[1:-1],
                               atol=5e-3)  # fmt: skip


def test_a_way_that_leaves_the_arms_reach_or_straightens_it_is_refused():
    with pytest.raises(ModelError, match="out of reach"):
        motion_through(ARM, [0.0, 1.0], [[0.4, 0.0, 0.0], [-0.4, 0.0, 0.0]], [0.5])
    with pytest.raises(ModelError, match="straight there"):
        motion_through(ARM, [0.0, 1.0], [[0.4, 0.0, 0.0], [0.68, 0.0, 0.0]], [0.5])


def test_the_long_axis_exchanges_moments_and_nothing_else():
    turned = Arm(long_axis="x").inertia_kg_m2
    np.testing.assert_array_equal(turned, ARM.inertia_kg_m2[:, [2, 1, 0]])


@pytest.mark.parametrize(
    ("link", "says"),
    [
        (Link(2.4, (0.008, 0.008, -0.001), 0.14, 0.27), "hand.inertia_kg_m2: not positive"),
        (Link(2.4, (0.008, 0.008, 0.1), 0.14, 0.27), "hand.inertia_kg_m2: principal moments"),
        (Link(2.4, (0.008, 0.008, 0.001), 0.3, 0.27), "hand.com_m = 0.3: beyond the link's"),
    ],
)
def test_a_link_that_cannot_be_is_refused_by_name(link, says):
    with pytest.raises(ModelError, match=says):
        Arm(links=(*TABLE_1[:2], link))
