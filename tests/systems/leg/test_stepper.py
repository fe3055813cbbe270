"""Steps of a limb: order, error control, wall time's independence of the period."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.integrate

from hil.errors import ModelError
from hil.systems.leg.build import build_limb
from hil.systems.leg.muscle import ActivationTimes, Muscles
from hil.systems.leg.stepper import TOLERANCES, LimbStepper, Tolerances
from oracles import legs

LOOSE = Tolerances(rtol=1e3, angle_rad=1e3, rate_rad_per_s=1e3, length_m=1e3)
HOLD, LOW = np.array([0.01361, 0.001]), np.array([0.001, 0.0666])


@pytest.fixture(scope="module")
def leg(configs):
    return build_limb(legs.table(configs))


def toe_mm(stepper):
    link = stepper.body_link["foot"]
    at = np.array([0.0, 0.1, 0.0]) + stepper.links.centre[link]
    place = stepper.work.place[link] + stepper.work.turn[link] @ at
    return 1e3 * float(place[2])


def moved(limb, activations, period_s, tolerances=TOLERANCES, times=None):
    """Heights of the toe at every period's end."""
    stepper, heights = LimbStepper(limb, times, tolerances), []
    for u in activations:
        stepper.step(period_s, u)
        heights.append(toe_mm(stepper))
    return np.array(heights), stepper


@pytest.mark.slow
def test_the_method_is_of_fourth_order(leg):
    """On the triple pendulum, whose equations are smooth."""
    limb = replace(
        legs.pendulum(leg),
        bodies=tuple(replace(b, mass_kg=min(b.mass_kg, 9.0)) for b in leg.bodies),
    )

    def end(n):
        stepper = LimbStepper(limb, tolerances=LOOSE)
        stepper.x[:3] = 0.8, 0.9, -0.7
        for _ in range(n):
            stepper.scratch.control[0] = 1.0
            stepper.step(0.5 / n, np.zeros(0))
        return stepper.x.copy()

    other = LimbStepper(limb)
    exact = scipy.integrate.solve_ivp(
        lambda _, x: other.slope(x, np.zeros(0)), (0.0, 0.5),
        [0.8, 0.9, -0.7, 0.0, 0.0, 0.0], method="DOP853", rtol=1e-12, atol=1e-13,
    ).y[:, -1]  # fmt: skip
    errors = [np.abs(end(n) - exact).max() for n in (50, 100, 200)]
    order = np.log2(errors[0] / errors[-1]) / 2.0
    assert order > 3.5, errors


def test_without_path_rates_fibres_move_as_if_their_paths_stood_still(leg):
    still, moving = LimbStepper(leg, path_rates=False), LimbStepper(leg)
    x, u = still.x.copy(), np.array([0.05, 0.02])
    x[5] = 0.4  # rad/s at the ankle
    muscles = Muscles([m.hill for m in leg.muscles])
    for stepper, share in ((still, 0.0), (moving, 1.0)):
        slope = stepper.slope(x, u)
        rate, *_ = muscles.rates(x[6:], stepper.work.length, share * stepper.work.rate, u)
        np.testing.assert_allclose(slope[6:], rate, rtol=1e-12)


@pytest.mark.slow
def test_the_stiff_leg_moves_as_another_integrator_moves_it(leg):
    _, stepper = moved(leg, [HOLD] * 20 + [LOW] * 20, 1e-3)
    other = LimbStepper(leg)
    x = other.x.copy()
    for u in (HOLD, LOW):
        x = scipy.integrate.solve_ivp(
            lambda _, y, u=u: other.slope(y, u), (0.0, 0.02), x,
            method="Radau", rtol=1e-9, atol=1e-12,
        ).y[:, -1]  # fmt: skip
    # 40 steps of a relative tolerance of 1e-6
    np.testing.assert_allclose(stepper.x[:3], x[:3], atol=1e-7)
    np.testing.assert_allclose(stepper.x[6:], x[6:], atol=1e-8)


@pytest.mark.parametrize("period_s", [1e-3, 4e-3])
def test_half_as_long_steps_change_the_height_by_less_than_a_micrometre(leg, period_s):
    n = round(0.4 / period_s)
    rng = np.random.default_rng(5)
    u = [np.array([10.0 ** rng.uniform(-3, -1), 10.0 ** rng.uniform(-3, -1)]) for _ in range(n)]
    whole, stepper = moved(leg, u, period_s)
    assert np.ptp(whole) > 1.0
    # of a method of order 4, errors sixteen times smaller ask for half the length
    t, small = TOLERANCES, 1.0 / 16.0
    finer = Tolerances(
        small * t.rtol, small * t.angle_rad, small * t.rate_rad_per_s, small * t.length_m,
        h_max_s=0.5 * period_s,
    )  # fmt: skip
    half, halved = moved(leg, u, period_s, finer)
    assert halved.scratch.counts[0] > 1.6 * stepper.scratch.counts[0]
    assert np.abs(whole - half).max() < 1e-3  # mm


def test_the_period_that_asks_does_not_set_the_steps(leg):
    """The same inputs held for the same times: asked for every 0.25 ms or every 10 ms."""
    often, _ = moved(leg, [HOLD] * 400 + [LOW] * 400, 2.5e-4)
    seldom, _ = moved(leg, [HOLD] * 10 + [LOW] * 10, 1e-2)
    assert np.abs(often[39::40] - seldom).max() < 1e-3  # mm


def test_activation_with_dynamics_of_its_own_comes_later(leg):
    high = np.array([0.05, 0.001])
    at_once, _ = moved(leg, [high] * 60, 1e-3)
    late, stepper = moved(leg, [high] * 60, 1e-3, times=ActivationTimes())
    assert late[29] < at_once[29] - 0.1
    # after 60 ms of a tau of at most 10 ms (0.5 + 1.5 a) it is there
    assert abs(stepper.x[-2] - 0.05) < 1e-4


def test_a_state_that_is_no_number_ends_in_one_line(leg):
    stepper = LimbStepper(leg)
    stepper.x[0] = np.nan
    with pytest.raises(ModelError, match="does not converge"):
        stepper.step(1e-3, HOLD)


def test_a_muscle_too_short_at_the_start_is_named(configs):
    limb = build_limb(legs.table(configs, muscles={"SOL": {"l_SEE_0_m": 0.3}}))
    with pytest.raises(ModelError, match=r"muscles.SOL: its path of 0.2918 m is no longer than"):
        LimbStepper(limb)
