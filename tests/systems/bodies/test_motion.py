"""The body in motion: conservation in the air, contact made and broken, joints that hold."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.integrate

from hil.errors import ModelError
from hil.mechanics.rotations import attitude, attitude_of_quaternion, quaternion_rate, skew
from hil.systems.bodies.forms import Acting, mass_matrix, projected, support_rows
from hil.systems.bodies.joints import HOLD, Hold, Joints, joint_torques, rotation_vector
from hil.systems.bodies.motion import BodyMotion
from hil.systems.bodies.system import BodySystem, Push, holds_of
from systems.bodies.skeletons import shipped

BODY = shipped("body")
BOTH = ("right_toe", "left_toe")
WEIGHT_N = BODY.mass_kg.sum() * 9.81
STIFF = {
    "all": Hold(5.0, 0.5, 1500.0, 0.01, 0.02),
    "right_toe": Hold(0.0, 0.0, 1500.0, 0.03, 0.02),
    "left_toe": Hold(0.0, 0.0, 1500.0, 0.03, 0.02),
    "right_arm": Hold(0.1, 0.01, 10.0, 0.02, 0.5),
    "left_arm": Hold(0.1, 0.01, 10.0, 0.02, 0.5),
    "neck": Hold(1.0, 0.05, 60.0, 0.01),
}
HOLDS = holds_of(BODY, STIFF)


def flying(rng):
    motion = BodyMotion(BODY)
    motion.set_attitudes(rng.uniform(-0.5, 0.5, (18, 3)))
    motion.X_a[2] += 5.0
    motion.stand([])
    motion.V_a[:] = rng.normal(size=3)
    motion.set_omega(rng.normal(size=(18, 3)))
    return motion


def test_a_body_in_the_air_keeps_its_momenta_and_its_energy():
    motion = flying(np.random.default_rng(1))
    (p0, L0), E0 = motion.momenta(), motion.energy_J()
    for _ in range(300):
        motion.step(1e-3)
    p, L = motion.momenta()
    assert np.abs(L - L0).max() < 1e-9  # Runge-Kutta of fourth order at 1 ms; 1e-12 found
    assert np.abs(p - p0 - [0.0, 0.0, -0.3 * WEIGHT_N]).max() < 1e-9
    assert abs(motion.energy_J() - E0) < 1e-9 * E0


def test_passive_joints_keep_angular_momentum_and_their_viscosity_takes_energy():
    for hold, steps in ((Hold(0.2, 0.005, 0.0, 0.0, 0.5), 400), (Hold(0.0, 0.005), 100)):
        motion = BodyMotion(BODY, [hold] * 17 + [Hold()] * 2)
        motion._x[:] = flying(np.random.default_rng(2))._x
        motion.stand([])
        (_, L0), energies = motion.momenta(), []
        for _ in range(steps):
            energies.append(motion.energy_J())
            motion.step(5e-4)
        assert np.abs(motion.momenta()[1] - L0).max() < 1e-9
        if hold.passive_N_m_per_rad == 0.0:  # else springs take and give as well
            assert np.all(np.diff(energies) < 0.0)


def test_the_motions_derivative_is_the_projected_forms():
    rng = np.random.default_rng(3)
    for held in ((), BOTH[:1], BOTH):
        motion = BodyMotion(BODY)
        motion.set_attitudes(rng.uniform(-0.5, 0.5, (18, 3)))
        motion.stand(held)
        motion.u[:17] = rng.normal(size=(17, 3))
        # At rest, so that nothing but b = 0 keeps the feet where they are.
        now = Acting(motion.A, motion.omega, BODY.paired(motion.A, motion.u[:17]), held)
        answer = projected(BODY, now)
        motion.balance()
        on = [s.name in held for s in BODY.supports]
        assert np.allclose(motion.support_N[on], answer.support_N, rtol=1e-10, atol=1e-9)
        h = 1e-6
        motion.step(h)
        expected = answer.omega_rate
        assert np.allclose(
            motion.omega / h, expected, rtol=1e-3, atol=1e-3 * np.abs(expected).max()
        )


def test_upright_the_body_stands_still_without_any_torque():
    # An equilibrium, if an unstable one: it takes long for rounding to grow.
    motion = BodyMotion(BODY)
    for _ in range(100):
        motion.step(1e-3)
    assert motion.support_N[:, 2].sum() == pytest.approx(WEIGHT_N, rel=1e-12)
    assert np.abs(motion.omega).max() < 1e-9
    assert np.abs(motion.feet_m()[:, 2]).max() < 1e-12


@pytest.mark.slow
def test_co_activation_holds_a_pushed_body_up_and_relaxed_it_falls():
    heights = []
    for c in (1.0, 0.0):
        system = BodySystem(BodyMotion(BODY, HOLDS), 0.002, coactivation=c,
                            pushes=[Push(2, (40.0, 0.0, 0.0), 0.0, 0.2)])  # fmt: skip
        inputs = np.zeros(len(system.inputs))
        for _ in range(500):
            system.step(None, inputs)
        heights.append(system.motion.centre_of_mass_m()[2])
        feet = system.motion.feet_m()
        assert np.abs(feet[system.motion.stands, 2]).max(initial=0.0) < 1e-4
    start = BodyMotion(BODY).centre_of_mass_m()[2]
    assert heights[0] > start - 0.01
    assert heights[1] < start - 0.1


def test_a_body_that_lands_on_one_foot_then_the_other_obeys_the_kernel():
    theta = np.zeros((18, 3))
    theta[3:6, 1] = 0.15  # right leg a little forward: its toe is higher
    motion = BodyMotion(BODY, HOLDS, theta=theta)
    motion.c[:] = 1.0
    motion.X_a[2] += 0.5 * 9.81 * 0.1**2  # lands at the end of a step, after 0.1 s
    motion.stand([])
    motion.V_a[0] = 0.2
    kinetic_before = None
    for _ in range(1500):
        v, A, stood = motion.velocity(), motion.A, motion.stands.copy()
        events = len(motion.landings)
        kinetic_before = motion.kinetic_J()
        motion.step(2e-4)
        if len(motion.landings) > events and not stood.any():
            break
    t_s, landing = motion.landings[0]
    assert landing.stands == ("left_toe",)
    assert t_s == pytest.approx(0.1, abs=1e-12)
    rows = support_rows(BODY, motion.A, landing.stands)
    assert np.abs(rows @ motion.velocity()).max() < 1e-12
    M = mass_matrix(BODY, motion.A)
    impulse = landing.impulse_N_s
    assert impulse[0, 2] > 0.0
    assert landing.T_a_J == pytest.approx(motion.kinetic_J(), rel=1e-12)
    assert landing.T_c_J + landing.T_a_J == pytest.approx(kinetic_before, rel=1e-2)  # a step apart
    gained = M @ motion.velocity() - mass_matrix(BODY, A) @ v
    # The body's momentum changes by the impulse, and by its weight during the step.
    assert np.abs(gained[3:6] - impulse.sum(axis=0)).max() < 2e-4 * WEIGHT_N * 1.5
    for _ in range(3000):
        motion.step(2e-4)
        if motion.stands.all():
            break
    assert motion.stands.all()
    assert motion.landings[-1][1].stands == BOTH


def test_a_point_lands_when_it_reaches_the_ground_and_steps_stay_of_fourth_order():
    def fallen(h):
        motion = BodyMotion(BODY)
        theta = np.zeros((18, 3))
        theta[:, 0] = 0.05  # to a side: one toe is lower
        motion.set_attitudes(theta)
        motion.X_a[2] += 0.02 - motion.feet_m()[:, 2].min()
        motion.stand([])
        for _ in range(round(0.12 / h)):
            motion.step(h)
        # Falls from rest without turning: z = g t^2 / 2.
        assert motion.landings[0][0] == pytest.approx(np.sqrt(2 * 0.02 / 9.81), abs=1e-12)
        assert motion.t_s == pytest.approx(0.12, abs=1e-12)
        return np.concatenate((motion.X_a, motion.V_a, motion.omega.ravel()))

    coarse, middle, fine, finest = (fallen(h) for h in (2e-3, 1e-3, 5e-4, 2.5e-4))
    first, second, third = (
        np.abs(a - b).max() for a, b in ((coarse, middle), (middle, fine), (fine, finest))
    )
    assert first / second > 12.0  # 2^4 = 16
    assert second / third > 12.0


def test_a_foot_that_the_ground_would_have_to_pull_lets_go():
    motion = BodyMotion(BODY, HOLDS)
    motion.c[:] = 1.0
    motion.push_N[1] = [0.0, 0.0, 1.2 * WEIGHT_N]
    motion.step(1e-3)
    assert {name for _, name in motion.lift_offs} == set(BOTH)
    assert not motion.stands.any()
    assert not motion.support_N.any()
    for _ in range(50):
        motion.step(1e-3)
    assert motion.feet_m()[:, 2].min() > 0.0
    motion.push_N[:] = 0.0
    for _ in range(600):
        motion.step(1e-3)
        if motion.stands.any():
            break
    assert motion.stands.any()


def test_rotation_vectors_undo_exponentials():
    rng, phi = np.random.default_rng(4), np.empty(3)
    for size in (1e-9, 1e-3, 1.0, 3.0):
        given = rng.normal(size=3)
        given *= size / np.linalg.norm(given)
        half = size / 2.0
        q = np.concatenate(([np.cos(half)], np.sin(half) * given / size))
        rotation_vector(attitude_of_quaternion(q), phi)
        assert np.allclose(phi, given, rtol=1e-7, atol=1e-12)


def test_a_joints_torque_is_the_slope_of_its_energy():
    rng = np.random.default_rng(5)
    holds = np.array([Hold(3.0, 0.0, 2.0, 0.1, 0.3).values()], HOLD)
    A, omega = attitude(rng.uniform(-1, 1, (2, 3))), np.zeros((2, 3))
    rest = attitude(rng.uniform(-0.3, 0.3, (1, 3)))
    K = np.diag([4.0, 4.0, 1.2])  # half co-activated: 3 + 0.5 x 2, and 0.3 of it

    def energy(A):
        phi = np.empty(3)
        rotation_vector(rest[0].T @ A[0].T @ A[1], phi)
        return phi @ K @ phi / 2.0

    N, none = np.zeros((2, 3)), np.zeros((1, 3))
    one = (np.array([0]), np.array([1]), holds, rest, np.array([True]), none, np.array([0.5]),
           np.zeros((1, 3, 2)))  # fmt: skip
    joint_torques(Joints(*one), A, omega, N)
    h = 1e-6
    for body in (0, 1):
        for axis in range(3):
            ahead, back = A.copy(), A.copy()
            ahead[body] = A[body] @ (np.eye(3) + h * skew(np.eye(3)[axis]))
            back[body] = A[body] @ (np.eye(3) - h * skew(np.eye(3)[axis]))
            slope = (energy(ahead) - energy(back)) / (2 * h)
            assert N[body, axis] == pytest.approx(-slope, abs=1e-7)
    assert np.abs(A[0] @ N[0] + A[1] @ N[1]).max() < 1e-12


def test_co_activation_adds_stiffness_and_viscosity_to_the_passive_ones():
    """k_p + c k_a and d_p + tau c k_a, by hand: 3 + 0.5 x 2, and 0.5 + 0.1 x 1."""
    kept = SimpleNamespace(_holds=np.array([Hold(3.0, 0.5, 2.0, 0.1).values()], HOLD))
    stiffness, viscosity = BodyMotion.gains(kept, np.array([0.5]))
    assert (stiffness[0], viscosity[0]) == pytest.approx((4.0, 0.6))


def test_viscosity_acts_against_the_relative_turning():
    holds = np.array([Hold(0.0, 2.0).values()], HOLD)
    A = attitude([[0.1, 0.2, 0.3], [-0.2, 0.4, 0.1]])
    omega = np.array([[0.3, 0.1, -0.2], [1.0, -0.5, 0.7]])
    N = np.zeros((2, 3))
    rest = np.swapaxes(A[:1], 1, 2) @ A[1:]
    one = (np.array([0]), np.array([1]), holds, rest, np.array([True]), np.zeros((1, 3)),
           np.zeros(1), np.zeros((1, 3, 2)))  # fmt: skip
    joint_torques(Joints(*one), A, omega, N)
    relative = omega[1] - A[1].T @ A[0] @ omega[0]
    assert np.allclose(N[1], -2.0 * relative, atol=1e-14)
    power = (N * omega).sum()
    assert power == pytest.approx(-2.0 * relative @ relative, rel=1e-12)


def test_one_free_body_in_the_skeleton_turns_as_the_one_body_does():
    # The middle of the torso alone in a tree whose other links are a millionth of it.
    rng = np.random.default_rng(6)
    q, omega = np.array([1.0, 0.0, 0.0, 0.0]), rng.normal(size=3)
    J = BODY.J[1]

    def rates(_t, x):
        return np.concatenate(
            (quaternion_rate(x[:4], x[4:]), np.linalg.solve(J, -np.cross(x[4:], J @ x[4:])))
        )

    from hil.systems.bodies.module import Link, Module
    from hil.systems.bodies.skeleton import Skeleton

    light = [Link(n, 1e-9, [1e-9] * 3, (0, 0, 0), (0, 0, 0)) for n in "ab"]
    heavy = Link("c", 10.0, J, (0, 0, 0), (0, 0, 0))
    motion = BodyMotion(Skeleton([Module("m", [light[0], heavy, light[1]])], {}, {}))
    motion.set_omega(np.array([[0.0] * 3, omega, [0.0] * 3]))
    for _ in range(500):
        motion.step(1e-3)
    x = scipy.integrate.solve_ivp(
        rates, (0.0, 0.5), np.concatenate((q, omega)), rtol=1e-12, atol=1e-13
    ).y[:, -1]
    assert np.allclose(motion.A[1], attitude_of_quaternion(x[:4]), atol=1e-8)


def test_values_that_no_joint_can_have_are_refused_in_one_line():
    with pytest.raises(ModelError, match=r"holds\.elbow: no such joint"):
        holds_of(BODY, {"elbow": Hold()})
    with pytest.raises(ModelError, match="must not be below zero"):
        BodyMotion(BODY, [Hold(-1.0)] * 19)
    with pytest.raises(ModelError, match="steps a period where 100"):
        BodySystem(BodyMotion(BODY, holds_of(BODY, {"all": Hold(0.0, 1e5)})), 0.01)
    with pytest.raises(ModelError, match="support 'heel'"):
        BodyMotion(BODY).stand(["heel"])


def test_steps_that_blow_up_say_so():
    motion = BodyMotion(BODY, [Hold(0.0, 1e4)] * 17 + [Hold()] * 2)
    motion.set_attitudes(np.random.default_rng(7).uniform(-0.1, 0.1, (18, 3)))

    def run():
        for _ in range(200):
            motion.step(1e-2)

    motion.u[:] = 1.0
    with pytest.raises(ModelError, match="no finite state"):
        run()
