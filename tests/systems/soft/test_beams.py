"""Chains of segments tend to the beams they stand for, with order 2 in their number."""

import numpy as np
import pytest
import scipy.integrate
import scipy.optimize

from hil.systems.soft.element import Material
from hil.systems.soft.stepper import SoftStepper
from hil.systems.soft.tree import Beam, Place, SoftTree
from hil_studies.soft_chain.cases import rubber_beam
from hil_studies.soft_chain.outputs import trace_m

WEIGHTLESS = (0.0, 0.0, 0.0)


def elastica_tip(P_N, EI, L):
    """Euler's elastica: EI theta'' = P cos theta, theta(0) = 0, theta'(L) = 0, by shooting."""

    def end(bend):
        return scipy.integrate.solve_ivp(
            lambda s, y: [y[1], P_N / EI * np.cos(y[0]), np.cos(y[0]), np.sin(y[0])],
            (0.0, L), [0.0, bend, 0.0, 0.0], rtol=1e-12, atol=1e-14,
        ).y[:, -1]  # fmt: skip

    return end(scipy.optimize.brentq(lambda bend: end(bend)[1], -1.01 * P_N * L / EI, 0.0))[2:]


@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize("spatial", [False, True])
def test_a_tip_load_bends_the_chain_to_eulers_elastica(spatial):
    beam = rubber_beam("voigt")
    exact = elastica_tip(3.0, beam.EI_z_N_m2, beam.length_m)
    assert exact[1] < -0.1  # far from small
    errors = []
    for n in (8, 16, 32):
        bodies = beam.segments(n, first=0, parent=-1, spatial=spatial)
        end = Place(len(bodies) - 1, (beam.length_m / n, 0.0, 0.0))
        tree = SoftTree(tuple(bodies), gravity_m_per_s2=WEIGHTLESS, loads=(end,))
        stepper = SoftStepper(tree)
        stepper.relax(np.array([0.0, -3.0, 0.0]))
        tip = trace_m(stepper, end, stepper.q[None])[0]
        assert tip[2] == 0.0
        errors.append(np.linalg.norm(tip[:2] - exact))
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.02)
    assert errors[1] / errors[2] == pytest.approx(4.0, rel=0.02)
    assert errors[2] < 1e-4


def test_a_load_across_bends_a_wide_beam_less():
    # In small deflection P L^3 / 3 EI with the section's own moment in that plane.
    beam, P_N, n = rubber_beam("voigt"), 1e-3, 32
    bodies = beam.segments(n, first=0, parent=-1, spatial=True)
    end = Place(len(bodies) - 1, (beam.length_m / n, 0.0, 0.0))
    stepper = SoftStepper(SoftTree(tuple(bodies), gravity_m_per_s2=WEIGHTLESS, loads=(end,)))
    stepper.relax(np.array([0.0, 0.0, P_N]))
    tip = trace_m(stepper, end, stepper.q[None])[0]
    # The chain's own sum is P L^3 / 3 EI (1 + 1/(2 n^2)).
    assert tip[2] == pytest.approx(P_N * 0.3**3 / (3.0 * beam.EI_y_N_m2), rel=1e-3)
    assert beam.EI_y_N_m2 == pytest.approx(beam.EI_z_N_m2 * 1.5**2)


def first_Hz(beam, n, tip_mass_kg):
    bodies = beam.segments(n, first=0, parent=-1, tip_mass_kg=tip_mass_kg)
    stepper = SoftStepper(SoftTree(tuple(bodies), gravity_m_per_s2=WEIGHTLESS))
    small = 1e-6  # rad, where the elements' torque is all there is
    A = [stepper.accelerations(row, np.zeros(n)) / small for row in small * np.eye(n)]
    return np.sqrt(np.abs(np.linalg.eigvals(np.array(A))).min()) / (2.0 * np.pi)


@pytest.mark.parametrize(("tip_mass_kg", "expected_Hz"), [(0.0, 2.4202), (0.05, 1.7005)])
def test_the_first_bending_frequency_tends_to_euler_bernoulli(tip_mass_kg, expected_Hz):
    # Euler and Bernoulli leave out rotary inertia, so the same beam is made flat: a hundredth of
    # the height, ten thousand times the modulus and a hundred times the density.
    thin = Beam(0.30, 0.03, 0.0002, Material(5e6 * 100.0**3, 1100.0 * 100.0))
    assert thin.EI_z_N_m2 == pytest.approx(0.1)
    errors = [first_Hz(thin, n, tip_mass_kg) - expected_Hz for n in (8, 16, 48)]
    assert abs(errors[2]) < 6e-4  # (1/48)^2 of it, and the expected figure's last digit
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.05)
    # The block's own rotary inertia takes off (pi h / 2 L)^2 / 12 at most.
    block = first_Hz(rubber_beam("voigt"), 48, tip_mass_kg)
    assert 0.0 < first_Hz(thin, 48, tip_mass_kg) - block < 0.0036


def test_curvature_and_strain_are_those_of_a_circle_under_a_pure_moment():
    # A couple at the end bends a beam into a circle of curvature M / EI.
    beam, moment, n = rubber_beam("voigt"), 0.2, 12
    bodies = beam.segments(n, first=0, parent=-1)
    s = beam.length_m / n
    force_N = moment / 0.01
    places = (Place(n - 1, (s, 0.005, 0.0)), Place(n - 1, (s, -0.005, 0.0)))
    tree = SoftTree(tuple(bodies), gravity_m_per_s2=WEIGHTLESS, loads=places)
    stepper = SoftStepper(tree)
    for _ in range(60):  # the couple follows the tip's turn
        turn = stepper.q.sum()
        ahead = force_N * np.array([np.cos(turn), np.sin(turn), 0.0])
        stepper.relax(np.concatenate((-ahead, ahead)))
    assert beam.curvature_per_m(stepper.q) == pytest.approx(np.full(n, moment / 0.1), rel=1e-9)
    assert beam.strain(stepper.q) == pytest.approx(np.full(n, 0.01 * moment / 0.1), rel=1e-9)
