"""A sigmoid whose fall has a rate and a delay of its own."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hil.systems.array.model.activation import Activation, CellActivation

PERIOD_S = 0.001


def logistic(theta):
    return 1.0 / (1.0 + np.exp(-theta))


SPAN = logistic(5) - logistic(-6)


def forces(cell, on_s, off_s):
    """F of one cell, on for a while, then off, after every period."""
    activation = Activation([cell], PERIOD_S)
    found = []
    for duration_s, drive in ((on_s, 1), (off_s, 0)):
        for _ in range(round(duration_s / PERIOD_S)):
            activation.step(np.array([drive], dtype=np.uint8))
            found.append(float(activation.F_N[0]))
    return np.array(found)


UNLIKE = {"rate_per_s": 5.0, "delay_s": 1.2, "fall_rate_per_s": 2.0, "fall_delay_s": 2.5}


def test_half_is_reached_after_each_edges_own_delay_with_its_own_slope():
    """F / (1 + exp(-theta)): at half, dF/dt = F rate / 4."""
    cell = CellActivation(2.0, "sigmoid", **UNLIKE, law="unscaled")
    F = forces(cell, 4.0, 6.0)
    rise, fall = round(1.2 / PERIOD_S) - 1, round((4.0 + 2.5) / PERIOD_S) - 1
    assert F[rise] == pytest.approx(1.0, abs=1e-9)
    assert F[fall] == pytest.approx(1.0, abs=1e-9)
    assert (F[rise + 1] - F[rise - 1]) / (2 * PERIOD_S) == pytest.approx(2.0 * 5.0 / 4, rel=1e-4)
    assert (F[fall + 1] - F[fall - 1]) / (2 * PERIOD_S) == pytest.approx(-2.0 * 2.0 / 4, rel=1e-4)


def test_at_its_ends_it_rests_at_each_edges_own_share():
    """Theta stops at rate_f delay_f = 5 above, at rate delay = 6 below; unscaled."""
    cell = CellActivation(1.0, "sigmoid", **UNLIKE, law="unscaled")
    F = forces(cell, 5.0, 8.0)
    assert F[round(5.0 / PERIOD_S) - 1] == pytest.approx(1.0 / (1.0 + np.exp(-5.0)), rel=1e-12)
    assert F[-1] == pytest.approx(1.0 / (1.0 + np.exp(6.0)), rel=1e-12)


def test_a_fall_that_is_given_as_the_rise_is_the_rise():
    one = CellActivation(1.0, "sigmoid", 5.0, 1.2)
    other = CellActivation(1.0, "sigmoid", 5.0, 1.2, fall_rate_per_s=5.0, fall_delay_s=1.2)
    np.testing.assert_array_equal(forces(one, 1.7, 2.0), forces(other, 1.7, 2.0))


def test_switched_off_halfway_it_falls_from_where_it_is():
    F = forces(CellActivation(1.0, "sigmoid", **UNLIKE), 1.2, 1.0)
    # Theta is 0 after 1.2 s, -2 a second later; its stops are -6 and 5.
    assert F[1199] == pytest.approx((logistic(0) - logistic(-6)) / SPAN, rel=1e-9)
    assert F[-1] == pytest.approx((logistic(-2) - logistic(-6)) / SPAN, rel=1e-6)


@given(
    rate=st.floats(0.05, 1000.0),
    delay_s=st.floats(1e-9, 0.02),
    fall_rate=st.none() | st.floats(0.05, 1000.0),
    fall_delay_s=st.none() | st.floats(1e-9, 0.02),
    force_N=st.floats(1e-3, 100.0),
)
def test_off_is_no_force_and_fully_on_is_all_of_it(rate, delay_s, fall_rate, fall_delay_s, force_N):
    """Whatever the delay: unscaled, a cell with rate x delay = 1 pulls 27 % while off."""
    cell = CellActivation(
        force_N, "sigmoid", rate, delay_s, fall_rate_per_s=fall_rate, fall_delay_s=fall_delay_s
    )
    n_rise, n_fall = (
        int(np.ceil((cell.stops[0] + cell.stops[1]) / r / PERIOD_S)) + 1 for r in cell.rates_per_s
    )
    assume(max(n_rise, n_fall) < 20_000)
    activation = Activation([cell], PERIOD_S)
    assert activation.F_N[0] == 0.0
    on, off = np.ones(1, dtype=np.uint8), np.zeros(1, dtype=np.uint8)
    before_N = 0.0
    for _ in range(n_rise):
        activation.step(on)
        assert before_N <= activation.F_N[0] <= force_N
        before_N = activation.F_N[0]
    assert activation.F_N[0] == force_N
    for _ in range(n_fall):
        activation.step(off)
    assert activation.F_N[0] == 0.0


def test_without_figures_of_its_own_a_sigmoid_is_the_paper_s_wire():
    """Fig. 10 of MacNair & Ueda: F / (1 + exp(-(5 t - 6)))."""
    F = forces(CellActivation(2.0, "sigmoid", law="unscaled"), 2.0, 0.0)
    for t_s in (0.3, 1.2, 1.9):
        wanted_N = 2.0 / (1.0 + np.exp(-(5.0 * t_s - 6.0)))
        assert F[round(t_s / PERIOD_S) - 1] == pytest.approx(wanted_N, rel=1e-9)


def test_a_step_is_all_or_nothing_and_at_once():
    """From a duty of a half on; what is no duty is off."""
    activation = Activation([CellActivation(2.0), CellActivation(3.0)], PERIOD_S)
    assert activation.F_N.tolist() == [0.0, 0.0]
    for drive, wanted_N in (
        ([0.5, 0.49], [2.0, 0.0]), ([1.0, 0.5], [2.0, 3.0]), ([0.0, 1.01], [0.0, 0.0]),
        ([np.nan, 1.0], [0.0, 3.0]),
    ):  # fmt: skip
        activation.step(np.array(drive))
        assert activation.F_before_N.tolist() == activation.F_N.tolist() == wanted_N
    activation.reset()
    assert activation.F_N.tolist() == [0.0, 0.0]


def test_the_force_before_a_period_is_the_one_after_the_last():
    """No force jumps where a cell's is continuous."""
    activation = Activation([CellActivation(2.0, "sigmoid")], PERIOD_S)
    after_N = 0.0
    for drive in (1, 1, 0, 1, 0):
        activation.step(np.array([drive], dtype=np.uint8))
        assert activation.F_before_N[0] == after_N
        after_N = float(activation.F_N[0])


def test_a_wire_becomes_hot_and_cold_again_and_the_cells_beside_it_go_their_way():
    cells = [CellActivation(2.0, "thermal"), CellActivation(3.0), CellActivation(1.0, "sigmoid")]
    activation = Activation(cells, 0.01)
    assert activation.has_wires
    assert activation.has_switched
    assert not Activation(cells[:1], 0.01).has_switched
    assert Activation(cells[1:], 0.01).arrays is not None
    for _ in range(1000):
        activation.step(np.ones(3))
    assert activation.F_N.tolist() == [2.0, 3.0, 1.0]
    for _ in range(6000):
        activation.step(np.zeros(3))
    assert activation.F_N.tolist() == [0.0, 0.0, 0.0]


def test_unscaled_a_cell_at_rest_keeps_its_share_and_all_others_pull_nothing():
    """Theta rests at -6: 2 N / (1 + e^6)."""
    kinds = [CellActivation(2.0, "sigmoid", law="unscaled"), CellActivation(2.0, "sigmoid"),
             CellActivation(2.0), CellActivation(2.0, "thermal")]  # fmt: skip
    activation = Activation(kinds, PERIOD_S)
    assert activation.F_N.tolist() == [pytest.approx(2.0 / (1.0 + np.exp(6.0))), 0.0, 0.0, 0.0]
    assert activation.F_before_N.tolist() == activation.F_N.tolist()


def test_every_cell_falls_with_its_own_rate():
    rates = {"rate_per_s": 50.0, "delay_s": 0.12, "fall_delay_s": 0.1}
    cells = [CellActivation(2.0, "sigmoid", **rates, fall_rate_per_s=r) for r in (20.0, 70.0)]
    both = Activation(cells, PERIOD_S)
    for drive in [1] * 300 + [0] * 80:
        both.step(np.array([drive] * 2, dtype=np.uint8))
    alone = [forces(cell, 0.3, 0.08)[-1] for cell in cells]
    np.testing.assert_allclose(both.F_N, alone, rtol=1e-12)
    assert 0.1 < alone[0] < alone[1] < 1.9 or 0.1 < alone[1] < alone[0] < 1.9
