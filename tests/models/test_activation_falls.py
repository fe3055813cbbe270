"""A sigmoid whose fall has a rate and a delay of its own."""

import numpy as np
import pytest

from hil.models.activation import Activation, CellActivation

PERIOD_S = 0.001


def forces(cell, on_s, off_s):
    """F of one cell, on for a while, then off, after every period."""
    activation = Activation([cell], PERIOD_S)
    found = []
    for duration_s, drive in ((on_s, 1), (off_s, 0)):
        for _ in range(round(duration_s / PERIOD_S)):
            activation.step(np.array([drive], dtype=np.uint8))
            found.append(float(activation.F_N[0]))
    return np.array(found)


def test_half_is_reached_after_each_edges_own_delay_with_its_own_slope():
    """F / (1 + exp(-theta)): at half, dF/dt = F rate / 4."""
    cell = CellActivation(2.0, "sigmoid", 5.0, 1.2, fall_rate_per_s=2.0, fall_delay_s=2.5)
    F = forces(cell, 4.0, 6.0)
    rise, fall = round(1.2 / PERIOD_S) - 1, round((4.0 + 2.5) / PERIOD_S) - 1
    assert F[rise] == pytest.approx(1.0, abs=1e-9)
    assert F[fall] == pytest.approx(1.0, abs=1e-9)
    assert (F[rise + 1] - F[rise - 1]) / (2 * PERIOD_S) == pytest.approx(2.0 * 5.0 / 4, rel=1e-4)
    assert (F[fall + 1] - F[fall - 1]) / (2 * PERIOD_S) == pytest.approx(-2.0 * 2.0 / 4, rel=1e-4)


def test_at_its_ends_it_rests_at_each_edges_own_share():
    """Theta stops at rate_f delay_f = 5 above, at rate delay = 6 below."""
    cell = CellActivation(1.0, "sigmoid", 5.0, 1.2, fall_rate_per_s=2.0, fall_delay_s=2.5)
    F = forces(cell, 5.0, 8.0)
    assert F[round(5.0 / PERIOD_S) - 1] == pytest.approx(1.0 / (1.0 + np.exp(-5.0)), rel=1e-12)
    assert F[-1] == pytest.approx(1.0 / (1.0 + np.exp(6.0)), rel=1e-12)


def test_a_fall_that_is_given_as_the_rise_is_the_rise():
    one = CellActivation(1.0, "sigmoid", 5.0, 1.2)
    other = CellActivation(1.0, "sigmoid", 5.0, 1.2, fall_rate_per_s=5.0, fall_delay_s=1.2)
    np.testing.assert_array_equal(forces(one, 1.7, 2.0), forces(other, 1.7, 2.0))


def test_switched_off_halfway_it_falls_from_where_it_is():
    cell = CellActivation(1.0, "sigmoid", 5.0, 1.2, fall_rate_per_s=2.0, fall_delay_s=2.5)
    F = forces(cell, 1.2, 1.0)
    # Half after 1.2 s; a second later theta is -2.
    assert F[-1] == pytest.approx(1.0 / (1.0 + np.exp(2.0)), rel=1e-6)
