"""Pairs of muscles and tendons of a body: they only pull, and keep momenta and virtual work."""

import numpy as np
import pytest

from hil.errors import ModelError
from hil.mechanics.muscle import Muscle
from hil.mechanics.rotations import attitude
from hil.systems.arm.actuators import pair_torque
from hil.systems.bodies.build import build_bodies, load_skeleton
from hil.systems.bodies.joints import HOLD, Hold, Joints, joint_torques
from hil.systems.bodies.motion import BodyMotion
from hil.systems.bodies.system import BodySystem, Push, Tendon, holds_of
from systems.bodies.skeletons import shipped

BODY = shipped("body")
KNEE = [j.name for j in BODY.joints].index("right_leg.thigh")
ANKLE = [j.name for j in BODY.joints].index("right_leg.shank")


def torque(hold, spin, a, theta=0.0, c=0.5):
    """Torque about y on the upper of two bodies that differ by this pitch and rate."""
    A = attitude([[0.0, 0.0, 0.0], [0.0, theta, 0.0]])
    omega, N = np.array([[0.0, 0.0, 0.0], [0.0, spin, 0.0]]), np.zeros((2, 3))
    pairs = np.full((1, 3, 2), c)
    pairs[0, 1] = a
    one = (np.array([0]), np.array([1]), np.array([hold.values()], HOLD), np.eye(3)[None],
           np.array([True]), np.zeros((1, 3)), np.array([c]), pairs)  # fmt: skip
    joint_torques(Joints(*one), A, omega, N)
    assert N[0] == pytest.approx(-A[1] @ N[1], abs=1e-12)
    return N[1, 1]


@pytest.mark.parametrize("a", [(0.5, 0.5), (0.9, 0.1), (0.0, 0.4), (0.0, 0.0)])
@pytest.mark.parametrize("spin", [0.0, 2.0, -30.0])
def test_a_pair_gives_the_torque_of_two_muscles_that_only_pull(a, spin):
    """The arm's pair, whose viscosity is shared by two muscles; here c tau k_a = 0.5 N m s."""
    hold = Hold(active_N_m_per_rad=50.0, viscosity_s=0.02, strength_N_m=8.0)
    assert torque(hold, spin, a) == pytest.approx(pair_torque(*a, spin, 8.0, 0.5), abs=1e-12)


def test_a_pair_holds_no_more_than_its_strength_and_passive_structures_hold_beside_it():
    weak = Hold(3.0, 0.0, 100.0, 0.0, 1.0, 4.0)
    # 50 N m/rad by half co-activation: at 0.01 rad both muscles pull, at 1 rad one is slack
    assert torque(weak, 0.0, (0.5, 0.5), 0.01) == pytest.approx(-0.53, rel=1e-12)
    slack = -(4.0 * 0.5 + 0.5 * 50.0)
    assert torque(weak, 0.0, (0.5, 0.5), 1.0) == pytest.approx(slack - 3.0, rel=1e-12)


@pytest.mark.slow
def test_pairs_that_are_never_slack_move_the_body_as_holds_without_a_strength_do():
    moved = []
    for strength_N_m in (0.0, 1e5):
        holds = holds_of(BODY, {"all": Hold(5.0, 0.5, 1500.0, 0.01, 0.02, strength_N_m)})
        system = BodySystem(BodyMotion(BODY, holds, theta=np.full((18, 3), 0.02)), 0.002)
        system.motion.V_a[0] = 0.05
        for _ in range(50):
            system.step(None, np.zeros(len(system.inputs)))
        moved.append(system.motion.A)
    # sums of 1e5 N m are rounded to 1e-11 N m
    np.testing.assert_allclose(moved[1], moved[0], rtol=0.0, atol=1e-9)


def flying(tendons, **holds):
    rng = np.random.default_rng(3)
    motion = BodyMotion(BODY, holds_of(BODY, {"all": Hold(**holds)}))
    system = BodySystem(motion, 2.5e-4, tendons=tendons)
    system.motion.set_attitudes(rng.uniform(-0.3, 0.3, (18, 3)))
    system.motion.X_a[2] += 5.0
    system.motion.stand([])
    system.motion.set_omega(rng.normal(size=(18, 3)))
    return system


def test_muscles_change_no_momentum_of_a_body_in_the_air():
    calf = Tendon(Muscle(800.0, 5000.0, 20.0), (ANKLE, KNEE), (0.04, -0.02))
    system = flying({"calf": calf}, active_N_m_per_rad=5.0, strength_N_m=10.0)
    _, spin = system.motion.momenta()
    inputs = np.zeros(len(system.inputs))
    inputs[list(system.inputs).index("calf.activation")] = 0.7
    inputs[list(system.inputs).index("right_hip.roll_plus.activation")] = 0.4
    before = system.motion.A
    for _ in range(200):
        system.step(None, inputs)
    assert np.abs(system.motion.A - before).max() > 1e-2
    # of fourth order in the step: 4e-6 N m s at 1 ms, 2e-8 at 0.25 ms
    np.testing.assert_allclose(system.motion.momenta()[1], spin, rtol=0.0, atol=1e-7)


def test_two_caps_at_a_joint_pull_as_one_of_both_radii():
    """Virtual work: the elongation (r1 + r2) phi is that of one cap."""
    moved = []
    for radii_m in ((0.03,), (0.04, -0.01)):
        tendon = Tendon(Muscle(800.0, 5000.0, 20.0), (KNEE,) * len(radii_m), radii_m)
        system = flying({"calf": tendon})
        inputs = np.zeros(len(system.inputs))
        inputs[list(system.inputs).index("calf.activation")] = 0.7
        for _ in range(40):
            system.step(None, inputs)
        moved.append(system.motion.A)
    np.testing.assert_allclose(moved[1], moved[0], rtol=0.0, atol=1e-12)


@pytest.mark.parametrize(("from_s", "to_s"), [(0.0101, 0.0176), (0.0044, 0.0047)])
def test_a_push_gives_the_body_its_force_times_its_time_whatever_the_steps_are(from_s, to_s):
    motion = BodyMotion(BODY, gravity=(0.0, 0.0, 0.0))
    motion.X_a[2] += 5.0
    motion.stand([])
    push = Push(BODY.names.index("torso.upper"), (40.0, 0.0, -10.0), from_s, to_s)
    system = BodySystem(motion, 0.001, pushes=[push])
    for _ in range(40):
        system.step(None, np.zeros(len(system.inputs)))
    impulse_N_s = np.array(push.force_N) * (to_s - from_s)
    # of fourth order in the step: 1e-7
    np.testing.assert_allclose(motion.momenta()[0], impulse_N_s, rtol=0.0, atol=1e-6)


def test_a_joints_pitch_changes_at_the_rate_that_its_slope_gives():
    """So a tendon's power, -T r slope . Omega_r, is -T times the rate of its elongation."""
    system = flying({}, passive_N_m_s_per_rad=0.01)
    motion, h = system.motion, 1e-5
    (before, _, _), _ = motion.pitches(), motion.step(h)
    _, _, rate = motion.pitches()
    motion.step(h)
    after, _, _ = motion.pitches()
    np.testing.assert_allclose((after - before) / (2.0 * h), rate, atol=1e-5)


def test_a_tendon_over_a_joint_that_is_not_there_is_refused_with_the_joints(configs):
    _, table = load_skeleton(configs / "body/rig.toml", [
        "model.tendons.calf={force_max_N=1.0, caps=[{radius_m=0.04, joint='ankle'}]}"
    ])  # fmt: skip
    with pytest.raises(ModelError, match=r"tendons\.calf\.caps: no joint 'ankle': choose torso"):
        build_bodies(table, 0.002)
