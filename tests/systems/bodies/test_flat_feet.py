"""Feet with a heel and a toe: several points of one link stand, land and slide."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from hil.mechanics.rotations import attitude
from hil.systems.bodies.forms import Acting, free_bodies, modules, projected
from hil.systems.bodies.module import Link, Module
from hil.systems.bodies.motion import BodyMotion
from hil.systems.bodies.skeleton import Skeleton
from hil_studies.bodies.peer import Peer
from systems.bodies.skeletons import flat_footed

BODY, THETA, HOLDS = flat_footed()
FEET = tuple(s.name for s in BODY.supports)
WEIGHT_N = BODY.mass_kg.sum() * 9.81
SOLE = [(x, y, -0.05) for x in (-0.2, 0.2) for y in (-0.1, 0.1)]


def sledge(friction):
    """A box of 10 kg on four corners, with two links of a milligram on top of it."""
    J = [10.0 * (a * a + b * b) / 12.0 for a, b in ((0.2, 0.1), (0.4, 0.1), (0.4, 0.2))]
    corners = {f"c{i}": at for i, at in enumerate(SOLE)}
    box = Link("box", 10.0, J, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), corners)
    light = [Link(name, 1e-6, [1e-9] * 3, (0, 0, 0), (0, 0, 0)) for name in "ab"]
    skeleton = Skeleton(
        [Module("m", [box, *light])], {}, {name: f"m.box.{name}" for name in corners}
    )
    return BodyMotion(skeleton, friction=friction)


@pytest.mark.parametrize("held", [FEET, FEET[:3], FEET[:2]])
def test_forces_of_heel_and_toe_are_pinocchios_least_norm_forces(held):
    rng = np.random.default_rng(len(held))
    peer = Peer(BODY)
    for _ in range(3):
        A = attitude(THETA + rng.uniform(-0.2, 0.2, (18, 3)))
        torques = rng.normal(size=(17, 3))
        now = Acting(A, np.zeros((18, 3)), BODY.paired(A, torques), held)
        V_rate, omega_rate, support_N = peer.standing(A, now.omega, torques, held)
        for form in (free_bodies, modules, projected):
            answer = form(BODY, now)
            assert answer.support_N == pytest.approx(support_N, rel=1e-8, abs=1e-6)
            assert answer.omega_rate == pytest.approx(omega_rate, rel=1e-8, abs=1e-6)
            assert answer.V_rate == pytest.approx(V_rate, rel=1e-8, abs=1e-6)


def test_the_recursion_gives_the_same_forces_and_keeps_the_feet_where_they_are():
    rng = np.random.default_rng(5)
    motion = BodyMotion(BODY, theta=THETA)
    motion.set_attitudes(THETA + rng.uniform(-0.2, 0.2, (18, 3)))
    motion.stand(FEET)
    motion.u[:17] = rng.normal(size=(17, 3))
    now = Acting(motion.A, motion.omega, BODY.paired(motion.A, motion.u[:17]), FEET)
    motion.balance()
    expected = projected(BODY, now).support_N
    assert motion.support_N == pytest.approx(expected, rel=1e-8, abs=1e-6)


def test_a_body_on_flat_feet_stands_and_the_ground_carries_its_weight():
    motion = BodyMotion(BODY, HOLDS, theta=THETA)
    motion.c[:] = 1.0
    for _ in range(100):
        motion.step(1e-3)
    assert motion.stands.all()
    assert motion.support_N[:, 2].sum() == pytest.approx(WEIGHT_N, rel=0.02)  # it settles
    assert not motion.slips


@pytest.mark.slow
def test_feet_that_land_need_no_more_friction_than_the_ground_has():
    seen = 0
    for friction in (0.1, 0.4):
        motion = BodyMotion(BODY, HOLDS, theta=THETA, friction=friction)
        motion.c[:] = 1.0
        motion.set_attitudes(THETA + np.array([0.0, 0.1, 0.0]))
        motion.X_a[2] += 0.02 - motion.feet_m()[:, 2].min()
        motion.stand([])
        motion.V_a[0] = 1.0
        for _ in range(1500):
            motion.step(1e-4)
            force = motion.support_N
            allowed = friction * force[:, 2] + 1e-6 * WEIGHT_N
            held = motion.stands | motion.slides
            assert (np.hypot(force[held, 0], force[held, 1]) <= allowed[held]).all()
        assert motion.landings
        for _, landing in motion.landings:
            x, y, z = landing.impulse_N_s.T
            assert (np.hypot(x, y) <= friction * z + 1e-9 * z.max()).all()
            assert landing.T_c_J > 0.0
            seen += len(landing.slides)
        assert np.abs(motion.feet_m()[motion.stands | motion.slides, 2]).max(initial=0.0) < 2e-4
    assert seen > 0


def test_a_box_that_falls_flat_gives_its_momentum_to_its_corners():
    motion = sledge(1.0)
    motion.X_a[2] += 1e-6
    motion.stand([])
    motion.V_a[:] = [0.5, 0.0, -2.0]
    motion.step(1e-6)
    (_, landing), *others = motion.landings
    assert not others
    assert sorted(landing.stands) == ["c0", "c1", "c2", "c3"]
    assert landing.impulse_N_s.sum(axis=0) == pytest.approx([-5.0, 0.0, 20.0], rel=1e-4, abs=1e-9)
    along = landing.impulse_N_s[:, 1]  # of least norm: nothing acts between the corners
    assert np.abs(along).max() < 1e-9
    assert landing.T_c_J == pytest.approx(0.5 * 10.0 * (0.5**2 + 2.0**2), rel=1e-4)


@pytest.mark.slow
def test_a_box_on_four_corners_slides_as_far_as_coulomb_says_and_stops():
    mu, speed = 0.3, 1.0
    motion = sledge(mu)
    motion.stand([])
    motion.slides[:] = True
    motion.V_a[:] = [speed * 0.8, speed * 0.6, 0.0]
    start, h, energy = motion.X_a.copy(), 5e-4, motion.kinetic_J()
    while motion.slides.any() or not motion.stands.all():
        motion.step(h)
        assert motion.t_s < 1.0
        if motion.slides.all():
            total = motion.support_N.sum(axis=0)
            assert np.hypot(*total[:2]) == pytest.approx(mu * total[2], rel=1e-6)
            assert total[2] == pytest.approx(98.1, rel=1e-3)
        assert motion.kinetic_J() <= energy + 1e-12
        energy = motion.kinetic_J()
    # v0 / (mu g) and v0^2 / (2 mu g), a step apart
    assert motion.t_s == pytest.approx(speed / (mu * 9.81), abs=3 * h)
    gone = motion.X_a - start
    assert np.hypot(*gone[:2]) == pytest.approx(speed**2 / (2 * mu * 9.81), abs=3e-3)
    assert gone[1] / gone[0] == pytest.approx(0.75, rel=1e-6)
    assert abs(gone[2]) < 1e-5


@pytest.mark.slow
def test_a_box_that_is_pushed_slides_when_the_push_exceeds_friction():
    weight_N = 10.0 * 9.81
    for push, slides in ((0.29, False), (0.31, True)):
        motion = sledge(0.3)
        motion.push_N[0] = [push * weight_N, 0.0, 0.0]
        for _ in range(200):
            motion.step(1e-3)
        assert bool(motion.slips) is slides
        assert not motion.landings  # it never leaves the ground
        travelled = 0.5 * 0.01 * 9.81 * 0.2**2 if slides else 0.0
        assert motion.X_a[0] == pytest.approx(travelled, abs=2e-5)


def test_corners_ahead_of_a_sliding_box_carry_what_statics_says():
    # Friction acts 0.05 m below the centre of mass, corners are 0.2 m ahead of it and behind it.
    mu = 0.3
    motion = sledge(mu)
    motion.stand([])
    motion.slides[:] = True
    motion.V_a[:] = [1.0, 0.0, 0.0]
    for _ in range(100):
        motion.step(1e-3)
    assert motion.slides.all()
    x, y, z = motion.support_N.T
    ahead = np.sign([at[0] for at in SOLE])
    assert z == pytest.approx(98.1 / 4 * (1.0 + ahead * mu * 0.05 / 0.2), rel=1e-3)
    assert x == pytest.approx(-mu * z, rel=1e-6)
    assert y == pytest.approx(0.0, abs=1e-6)


@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize("h", [1e-3, 5e-4])
def test_a_foot_whose_toes_slide_turns_about_its_heel_as_its_equation_says(h):
    # A plate on a heel and two toes, its centre of mass in their plane: the heel carries half of
    # the weight and every toe a quarter. Pushed beyond the toes it turns about the heel, which
    # stands, and I psi'' = F a cos(psi) - 2 mu N_toe r. The step in which it begins is held.
    mass, mu, push_N, arm, r = 10.0, 0.5, 23.0, 0.5, float(np.hypot(0.4, 0.1))
    points = {"heel": (-0.2, 0.0, 0.0), "left": (0.2, 0.1, 0.0), "right": (0.2, -0.1, 0.0)}
    plate = Link("plate", mass, [0.05, 0.15, 0.2], (0, 0, 0), (0.3, 0.0, 0.0), points)
    light = [Link(name, 1e-6, [1e-9] * 3, (0, 0, 0), (0, 0, 0)) for name in "ab"]
    skeleton = Skeleton(
        [Module("m", [plate, *light])], {}, {name: f"m.plate.{name}" for name in points}
    )
    motion = BodyMotion(skeleton, friction=mu)
    motion.push_N[1] = [0.0, push_N, 0.0]  # on a light link, at the joint with the plate
    for _ in range(round(0.3 / h)):
        motion.step(h)
    weight_N, inertia = mass * 9.81, 0.2 + mass * 0.2**2

    def rate(_, state):
        moment = push_N * arm * np.cos(state[0]) - 2.0 * mu * weight_N / 4.0 * r
        return [state[1], moment / inertia]

    psi, rate_per_s = solve_ivp(rate, (0.0, 0.3 - h), [0.0, 0.0], rtol=1e-10, atol=1e-12).y[:, -1]
    assert list(motion.stands) == [True, False, False]
    assert list(motion.slides) == [False, True, True]
    assert [name for _, name in motion.slips] == ["left", "right"]  # no mode changes again
    assert not motion.lift_offs
    assert not motion.landings
    assert np.arctan2(motion.A[0, 1, 0], motion.A[0, 0, 0]) == pytest.approx(psi, abs=0.1 * h)
    assert motion.omega[0, 2] == pytest.approx(rate_per_s, abs=0.3 * h)
    assert motion.feet_m()[0] == pytest.approx([-0.5, 0.0, 0.0], abs=1e-6)
    heel, *toes = motion.support_N
    assert heel[2] == pytest.approx(weight_N / 2.0, rel=1e-6)
    for toe, at in zip(toes, motion.feet_m()[1:], strict=True):
        assert toe[2] == pytest.approx(weight_N / 4.0, rel=1e-3)
        away = np.cross([0.0, 0.0, 1.0], at - motion.feet_m()[0])  # its direction of sliding
        assert toe[:2] == pytest.approx(-mu * toe[2] * away[:2] / r, rel=2e-3, abs=1e-2)
    # Newton's law: the centre of mass, 0.2 m from the heel, moves on a circle.
    turning = (push_N * arm * np.cos(psi) - 2.0 * mu * weight_N / 4.0 * r) / inertia
    along, across = np.array([np.cos(psi), np.sin(psi)]), np.array([-np.sin(psi), np.cos(psi)])
    needed = mass * 0.2 * (turning * across - rate_per_s**2 * along) - [0.0, push_N]
    assert heel[:2] == pytest.approx(needed - sum(toe[:2] for toe in toes), abs=0.1)
    # The forces of an instant are those of the step that led to it.
    step_N = motion.support_N.copy()
    motion.balance()
    assert motion.support_N == pytest.approx(step_N, abs=0.1)
