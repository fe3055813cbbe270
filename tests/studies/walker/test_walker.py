"""Heel strikes and passive steps: closed form, unreduced bodies, published gaits, laws."""

import numpy as np
import pytest

from hil.errors import ModelError
from hil_studies.walker.gait import PassiveWalker, multipliers
from hil_studies.walker.model import Walker, heel_strikes, largest_lift_off_deg
from oracles.impacts import WalkerBodies, energy

RANDOM = np.random.default_rng(11)


def bodies(walker):
    m, _, m_H, m_T = walker.masses_kg
    return WalkerBodies(m, m_H, m_T, walker.l_m, walker.b_m, walker.l_T_m, walker.R_m)


STRIKES = [
    (RANDOM.uniform(5, 80), RANDOM.uniform(0, 0.6), 10 ** RANDOM.uniform(-1, 1),
     RANDOM.uniform(-25, 25)) for _ in range(20)
]  # fmt: skip


@pytest.mark.parametrize(("theta", "rho", "mu", "torso"), STRIKES)
def test_a_heel_strike_is_that_of_the_unreduced_bodies(theta, rho, mu, torso):
    walker = Walker(rho=rho, mu=mu)
    found = heel_strikes(walker, theta, torso, 1.3)
    oracle = bodies(walker)
    before, after, impulse, old_sole = oracle.heel_strike(np.deg2rad(theta), np.deg2rad(torso), 1.3)
    T = energy(oracle.mass, before)
    assert found.split.T_a_J[0] == pytest.approx(energy(oracle.mass, after), rel=1e-10)
    assert found.split.T_c_J[0] == pytest.approx(T - energy(oracle.mass, after), abs=1e-10 * T)
    np.testing.assert_allclose(found.split.impulse[0], impulse, rtol=0, atol=1e-10 * impulse[1])
    assert bool(found.lift_off[0]) == bool(old_sole[1] > 0.0)


@pytest.mark.parametrize(("theta", "rho", "mu", "torso"), STRIKES)
def test_the_energy_lost_has_the_closed_form(theta, rho, mu, torso):
    """T_c = lambda_n (1 - rho) l w sin(theta / 2)."""
    found = heel_strikes(Walker(rho=rho, mu=mu), theta, torso, 0.7)
    lambda_n = found.split.impulse[0, 1]
    closed = lambda_n * (1.0 - rho) * 0.8 * 0.7 * np.sin(np.deg2rad(theta / 2.0))
    assert found.split.T_c_J[0] == pytest.approx(closed, rel=1e-10)


def test_the_derived_figures_at_40_degrees_are_reproduced():
    found = heel_strikes(Walker(), 40.0)
    assert found.split.T_c_J[0] == pytest.approx(2.0476, abs=5e-5)
    assert found.split.T_a_J[0] == pytest.approx(5.2643, abs=5e-5)
    np.testing.assert_allclose(found.split.impulse[0], [-2.637, 9.978], atol=5e-4)
    assert found.lift_off[0]
    assert found.friction_needed[0] == pytest.approx(2.637 / 9.978, abs=1e-4)


def test_point_feet_lose_lift_off_beyond_the_derived_angle():
    angle = largest_lift_off_deg(Walker(rho=0.0))
    assert angle == pytest.approx(44.48, abs=5e-3)  # the paper prints 43
    near = heel_strikes(Walker(rho=0.0), [angle - 1e-3, angle + 1e-3])
    assert near.lift_off.tolist() == [True, False]


FLIGHTS = [(rho, RANDOM.uniform(-1.0, 1.0, 4)) for rho in (0.0, 0.25, 0.5) for _ in range(4)]


@pytest.mark.parametrize(("rho", "z"), FLIGHTS)
def test_flight_is_that_of_the_unreduced_bodies(rho, z):
    # Without lever the torso is a mass at the hip; its angle is held.
    walker = Walker(rho=rho, l_T_m=0.0)
    passive = PassiveWalker(walker, 2.0)
    found = passive.accelerations_rad_per_s2(z)
    expected = bodies(walker).accelerations(z, passive.g_m_per_s2, np.deg2rad(2.0))
    np.testing.assert_allclose(found, expected, atol=1e-7 * (1.0 + np.abs(expected).max()))


@pytest.mark.parametrize("rho", [0.0, 0.25, 0.5])
def test_energy_is_conserved_in_flight_and_lost_only_at_heel_strikes(rho):
    passive = PassiveWalker(Walker(rho=rho, l_T_m=0.0), 1.0)
    step = passive.step(passive.gait())
    kinetic, potential = passive.energy_J(step.z)
    total = kinetic + potential
    np.testing.assert_allclose(total, total[0], rtol=0.0, atol=1e-7 * kinetic.max())


@pytest.mark.parametrize("rho", [0.0, 0.25, 0.5])
def test_in_a_gait_the_slope_pays_for_the_heel_strike(rho):
    walker = Walker(rho=rho, l_T_m=0.0)
    passive = PassiveWalker(walker, 1.0)
    theta, *_ = gait = passive.gait()
    step = passive.step(gait)
    # From sole to sole along the slope: the chord of the legs and the rolling of the foot.
    length = 2.0 * (walker.l_m - walker.R_m) * np.sin(theta / 2.0) + walker.R_m * theta
    drop = passive.mass_kg * passive.g_m_per_s2 * length * np.sin(passive.slope_rad)
    assert step.T_c_J == pytest.approx(drop, rel=1e-7)


def test_the_simplest_walker_has_its_published_gait():
    """Point feet that weigh a thousandth of the hip, slope 0.009 rad, l = g = 1.

    theta, its rate and the swing leg's are those of P. Bhounsule's program for Garcia et al. 1998.
    """
    passive = PassiveWalker(
        Walker(rho=0.0, mu=1.0, m_W_kg=1.002, m_H_kg=0.998, l_m=1.0, b_m=1.0, l_T_m=0.0),
        np.rad2deg(0.009), 1.0,
    )  # fmt: skip
    theta, w3, w4 = passive.fixed_point([0.4, 0.2, 0.18])
    assert theta == pytest.approx(0.400322144339512, abs=1e-7)
    assert w3 == pytest.approx(0.199906060087682, abs=1e-7)
    assert w4 - w3 == pytest.approx(-0.015805473227965, abs=1e-7)


def test_the_compass_gait_is_stable_and_repeats_over_many_heel_strikes():
    passive = PassiveWalker(Walker(l_T_m=0.0), 2.0)
    gait = passive.gait()
    values = multipliers(passive.slope_of_map(gait))
    assert np.all(np.abs(values) < 1.0)
    steps = passive.walk(gait * [1.02, 0.99, 1.01], 60)
    miss = np.array([np.abs(s.after - gait).max() for s in steps])
    assert miss[-1] < 1e-8
    # The pace at which a disturbance dies out is the largest multiplier's.
    pace = (miss[25] / miss[5]) ** (1.0 / 20.0)
    assert pace == pytest.approx(np.abs(values[0]), abs=0.05)


@pytest.mark.slow
def test_heel_strikes_are_found_between_samples():
    passive = PassiveWalker(Walker(l_T_m=0.0), 2.0)
    gait = passive.gait()
    fine, coarse = passive.step(gait), passive.step(gait, samples_s=0.1)
    assert coarse.t_s[-1] == pytest.approx(fine.t_s[-1], abs=1e-9)
    np.testing.assert_allclose(np.diff(coarse.t_s)[:-1], 0.1, atol=1e-12)
    assert 0.0 < np.diff(coarse.t_s)[-1] < 0.1
    for step in (fine, coarse):
        assert step.z[-1, 0] + step.z[-1, 1] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: Walker(mu=0.0), "mu = 0: must be above zero"),
        (lambda: Walker(rho=1.0), "rho = 1: choose"),
        (lambda: Walker(m_W_kg=5.0), "must be above m_H_kg"),
        (lambda: heel_strikes(Walker(), 0.0), "theta_deg = 0"),
        (lambda: heel_strikes(Walker(), 200.0), "theta_deg = 200"),
        (lambda: heel_strikes(Walker(), 40.0, rate_rad_per_s=-1.0), "separating"),
        (lambda: heel_strikes(Walker(), 40.0, np.nan), "torso_deg: must be finite"),
        (lambda: heel_strikes(Walker(l_T_m=0.0), 40.0), "give it a lever"),
        (lambda: PassiveWalker(Walker(l_T_m=0.0), -1.0), "slope_deg = -1"),
        (lambda: PassiveWalker(Walker(l_T_m=0.0), 20.0).gait(), "no gait found on a slope of 20"),
        (lambda: PassiveWalker(Walker(l_T_m=0.0), 1.0).step([0.5, -3.0, 0.0]), "falls"),
    ],
)
def test_what_cannot_walk_is_refused_in_words(act, message):
    with pytest.raises(ModelError, match=message):
        act()
