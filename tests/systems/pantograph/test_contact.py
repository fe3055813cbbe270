"""The arm against a plate: exact restitution, energy's balance, order, the ideal limit."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

from hil.errors import ModelError
from hil.mechanics.contact import friction_force, normal_force
from hil.systems.pantograph.contact import ArmOnPlate, Plate
from hil.systems.pantograph.impact import ASYMMETRIC_M, SYMMETRIC_M, predict
from hil.systems.pantograph.linkage import Pantograph

RIG = Pantograph()
REST = np.zeros(2)


def exact_restitution(alpha, v):
    """E of the law's closed integral, whatever the mass and the stiffness."""

    def left(x):
        return alpha * x - np.log1p(alpha * x)

    return brentq(lambda e: left(-e * v) - left(v), 1e-9, min(1.0, 1.0 / (alpha * v)) - 1e-12)


@pytest.mark.parametrize(("alpha", "v"), [(3.2, 0.2), (3.2, 0.05), (0.5, 1.0), (10.0, 0.3)])
@pytest.mark.parametrize("k", [1.3e4, 2.07e5])
def test_a_mass_leaves_at_the_exact_restitution(alpha, v, k):
    def motion(_, z):
        return [z[1], -normal_force(z[0], z[1], k, alpha) / 0.513]

    def leaves(_, z):
        return z[0]

    leaves.terminal, leaves.direction = True, -1.0
    found = solve_ivp(motion, (0.0, 1.0), [0.0, v], events=leaves, rtol=1e-10, atol=1e-13)
    assert -found.y[1, -1] / v == pytest.approx(exact_restitution(alpha, v), abs=1e-6)


def test_the_default_plate_gives_the_restitution_and_duration_it_says():
    assert exact_restitution(3.2, 0.2) == pytest.approx(0.7, abs=0.02)
    for k, duration_s in ((2.07e5, 0.005), (5.2e4, 0.010), (1.3e4, 0.020)):
        assert Plate(0.0, k).duration_s(0.51264) == pytest.approx(duration_s, rel=0.03)


def test_friction_opposes_sliding_and_saturates():
    assert friction_force(10.0, 0.5, 0.2, 1e-3) == pytest.approx(-2.0, rel=1e-5)
    assert friction_force(10.0, -0.5, 0.2, 1e-3) == pytest.approx(2.0, rel=1e-5)
    assert friction_force(10.0, 0.0, 0.2, 1e-3) == 0.0


def shot(plate, gamma_deg=30.0, back_m=0.004, damping=0.0, place=SYMMETRIC_M):
    """The arm on its way to the plate, 4 mm before it, and its kinetic energy."""
    place = np.array(place)
    speed = predict(RIG.inverse(place), gamma_deg, 0.01).speed_m_per_s[0]
    v = speed * np.array([np.sin(np.deg2rad(gamma_deg)), np.cos(np.deg2rad(gamma_deg))])
    start = RIG.inverse(place - back_m * v / speed)
    arm = ArmOnPlate(RIG, plate, start, damping)
    arm.x[2:4] = start.qdot(v)
    return arm, arm.kinetic_energy_J()


PLATE = Plate(SYMMETRIC_M[1])


def test_the_integrator_is_of_fourth_order_through_touch_and_release():
    def ended(step_s):
        arm, _ = shot(replace(PLATE, step_s=step_s))
        arm.advance(REST, 0.045)
        assert not arm.in_contact
        return arm.x[:4].copy()

    fine = ended(1e-5)
    errors = [np.abs(ended(h) - fine).max() for h in (1.6e-4, 8e-5, 4e-5)]
    assert errors[0] / errors[1] > 2**3.5
    assert errors[1] / errors[2] > 2**3.5


@pytest.mark.parametrize("damping", [0.0, 0.002])
def test_energy_is_accounted_for_at_every_moment(damping):
    arm, T_0 = shot(PLATE, damping=damping)
    torques = np.array([0.02, -0.03])
    for _ in range(180):
        arm.advance(torques, 2.5e-4)
        assert arm.kinetic_energy_J() - T_0 == pytest.approx(arm.x[4:].sum(), abs=1e-9 * T_0)
    assert arm.x[4] != 0.0
    assert arm.x[5] < 0.0
    assert arm.x[6] < 0.0
    assert (arm.x[7] < 0.0) == (damping > 0.0)


def test_an_elastic_plate_without_friction_gives_all_energy_back():
    arm, T_0 = shot(replace(PLATE, alpha_s_per_m=0.0, mu=0.0))
    arm.advance(REST, 0.045)
    assert arm.kinetic_energy_J() == pytest.approx(T_0, rel=1e-9)


def test_flight_conserves_energy():
    arm, T_0 = shot(PLATE, back_m=0.05)
    arm.advance(REST, 0.2)
    assert arm.x[5] == 0.0
    assert arm.kinetic_energy_J() == pytest.approx(T_0, rel=1e-9)


@pytest.mark.parametrize("period_s", [1e-4, 2.5e-4, 1e-3])
def test_the_contact_is_the_same_whatever_the_loops_period(period_s):
    whole, _ = shot(PLATE)
    whole.advance(REST, 0.045)
    arm, _ = shot(PLATE)
    for _ in range(round(0.045 / period_s)):
        arm.advance(REST, period_s)
    np.testing.assert_allclose(arm.x[:4], whole.x[:4], rtol=0.0, atol=1e-9)


@pytest.mark.parametrize("place", [SYMMETRIC_M, ASYMMETRIC_M])
@pytest.mark.parametrize("gamma_deg", [-20.0, 0.0, 30.0])
def test_compression_tends_to_the_ideal_event_as_the_plate_stiffens(place, gamma_deg):
    """To first order in the contact's duration: the pose turns while it lasts."""
    ideal = predict(RIG.inverse(place), gamma_deg, 0.01)
    misses = []
    for k in (5.2e4, 5.2e6):
        plate = Plate(place[1], k_N_per_m=k, mu=0.0, step_s=1e-4 / np.sqrt(k / 5.2e4))
        arm, _ = shot(plate, gamma_deg, back_m=1e-5, place=place)
        impulse, h = 0.0, 1e-6
        while not arm.in_contact:
            arm.advance(REST, h)
        f_before = arm.tip()[5]
        while arm.tip()[3] > 0.0:
            arm.advance(REST, h)
            f_n = arm.tip()[5]
            impulse, f_before = impulse + 0.5 * h * (f_before + f_n), f_n
        assert impulse == pytest.approx(ideal.impulse_N_s[0], rel=2e-3)  # sampled at h
        misses.append(abs(arm.kinetic_energy_J() - ideal.split.T_a_J[0]) / 0.01)
    assert misses[0] < 1e-3  # 10 ms
    assert misses[1] < 1e-4  # 1 ms


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: replace(PLATE, k_N_per_m=0.0), "plate.k_N_per_m = 0: must be above zero"),
        (lambda: replace(PLATE, mu=-0.1), "plate.mu = -0.1: must not be below zero"),
        (lambda: replace(PLATE, y_m=np.nan), "plate.y_m: must be finite"),
        (lambda: shot(replace(PLATE, step_s=3e-4)), "plate.step_s = 0.0003: a contact lasts"),
        (lambda: ArmOnPlate(RIG, PLATE, RIG.inverse((0.0, 0.23))), "at or beyond the plate"),
        (
            lambda: ArmOnPlate(
                RIG.with_(l_5_m=0.2), PLATE, RIG.with_(l_5_m=0.2).inverse((0.0, 0.2))
            ),
            "l_2_m: too short",
        ),
    ],
)
def test_what_cannot_be_integrated_is_refused_in_words(act, message):
    with pytest.raises(ModelError, match=message):
        act()
