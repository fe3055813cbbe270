"""What holds the foot still, against the published values, and rehearsed movements."""

import numpy as np
import pytest

from hil.errors import ModelError
from hil.systems.leg.build import build_limb
from hil.systems.leg.limb import PathPoint
from hil.systems.leg.plan import PlanSettings, rehearse, smoothed
from hil.systems.leg.statics import JointStatics
from hil.systems.leg.stepper import LimbStepper
from oracles import legs

TOE = PathPoint("foot", (0.0, 0.1, 0.0))
START_M = -0.8406  # Fig. 10: 0.17 + 0.2258 + 0.1867 + 0.2433 + 0.0148


@pytest.fixture
def statics(configs):
    limb = build_limb(legs.table(configs))
    return JointStatics(LimbStepper(limb), "ankle", TOE, ("TA", "SOL"))


@pytest.mark.parametrize(
    ("lift_mm", "q_TA", "F_TA_N", "F_SOL_N"),
    [(0.0, 0.01361, 24.60, 3.44), (20.0, 0.01915, 27.46, 6.84)],
)
def test_holding_still_takes_the_published_activation_and_forces(
    statics, lift_mm, q_TA, F_TA_N, F_SOL_N
):
    held = statics.holding(START_M + 1e-3 * lift_mm)
    assert abs(held.activation[0] - q_TA) < 5e-6
    assert held.activation[1] == 0.001
    np.testing.assert_allclose(held.tension_N, [F_TA_N, F_SOL_N], atol=5e-3)


def test_relaxed_the_foot_hangs_as_low_as_published(statics):
    drop_mm = 1e3 * (statics.height(statics.rest().angle_rad) - START_M)
    assert abs(drop_mm + 9.23) < 5e-3


def test_what_statics_say_holds_the_moving_model_still(statics):
    held = statics.holding(START_M + 0.01)
    stepper = statics.stepper
    joint = stepper.limb.coordinates.index("ankle")
    stepper.x[joint] = held.angle_rad
    l_ce = [
        length - m_length
        for length, m_length in zip(*_paths_and_tendons(statics, held), strict=True)
    ]
    stepper.x[2 * stepper.n_q : 2 * stepper.n_q + 2] = l_ce
    slope = stepper.slope(stepper.x, held.activation)
    # The foot's weight of 1 N m is left to the shin of 1300 kg m2 and its neighbour; without
    # muscles it would be 50 rad/s2.
    assert abs(slope[stepper.n_q + joint]) < 1e-2
    np.testing.assert_allclose(slope[2 * stepper.n_q :], 0.0, atol=1e-9)


def _paths_and_tendons(statics, held):
    from hil.systems.leg import muscle

    statics.arms(held.angle_rad)
    lengths = statics.stepper.work.length.copy()
    rows = statics.stepper.scratch.muscles
    return lengths, [muscle.serial_length(p, f) for p, f in zip(rows, held.tension_N, strict=True)]


def test_arms_are_slopes_of_the_paths(statics):
    h = 1e-6
    for angle in (-0.3, 0.0, 0.25):
        lengths = []
        for side in (h, -h):
            statics.arms(angle + side)
            lengths.append(statics.stepper.work.length.copy())
        slope = (lengths[0] - lengths[1]) / (2.0 * h)
        np.testing.assert_allclose(statics.arms(angle), -slope, atol=1e-9)


def test_a_height_finds_its_angle_and_one_out_of_reach_is_refused(statics):
    for angle in (-0.4, 0.0, 0.3):
        assert abs(statics.angle(statics.height(angle)) - angle) < 1e-12
    with pytest.raises(ModelError, match="out of reach"):
        statics.angle(-0.5)
    with pytest.raises(ModelError, match=r"out of reach: 'SOL' would have to pull"):
        statics.holding(START_M - 0.12)


@pytest.mark.parametrize(
    ("joint", "muscles", "message"),
    [
        ("toes", ("TA", "SOL"), "joint = 'toes': there is none: choose hip, knee, ankle"),
        ("ankle", ("GAS", "SOL"), "raises = 'GAS': no muscle: choose TA, SOL"),
        ("ankle", ("SOL", "TA"), "raises = 'SOL': lowers it"),
        ("hip", ("TA", "SOL"), "raises = 'TA': lowers it, or does not move it"),
    ],
)
def test_muscles_that_do_not_move_the_joint_so_are_refused(joint, muscles, message, configs):
    stepper = LimbStepper(build_limb(legs.table(configs)))
    with pytest.raises(ModelError, match=message):
        JointStatics(stepper, joint, TOE, muscles)


def test_a_rehearsal_follows_its_set_point_and_played_back_does_it_again(statics):
    t_s = 1e-3 * np.arange(600)
    wanted = START_M + np.interp(t_s, [0.1, 0.4], [0.0, 0.01])
    plan = rehearse(statics, wanted, 1e-3)
    off_mm = 1e3 * (wanted - plan.height_m)
    # leg.md's better controller has 0.054 mm on this movement
    assert np.sqrt(np.mean(off_mm**2)) < 0.03
    assert plan.activation.min() >= 0.001
    assert plan.activation.max() <= 1.0
    stepper = statics.stepper
    stepper.start(np.array([0.001, 0.001]))
    at = stepper.limb.coordinates.index("ankle")
    for k in range(600):
        assert statics.height(float(stepper.x[at])) == plan.height_m[k]
        stepper.step(1e-3, plan.activation[k])


def test_a_rehearsal_keeps_to_the_rate_of_its_outputs(statics):
    wanted = np.full(100, START_M)
    plan = rehearse(statics, wanted, 1e-3, PlanSettings(rate_max_per_s=5.0))
    assert np.abs(np.diff(plan.activation, axis=0)).max() <= 5e-3 * (1.0 + 1e-9)


def test_smoothing_leaves_straight_lines_as_they_are():
    line = np.linspace(2.0, 5.0, 200)
    np.testing.assert_allclose(smoothed(line, 11)[20:-20], line[20:-20], atol=1e-13)
    assert smoothed(np.full(50, 3.0), 10) == pytest.approx(np.full(50, 3.0))
