"""The clamp at a wire's end, against the conduction along the wire and Newton's law of cooling."""

from math import exp, pi

import numpy as np
import pytest

from hil.mechanics.sma.clamp import Clamps, end_loss_W_per_K
from hil.mechanics.sma.wire import SmaWire, SmaWires

WIRE = SmaWire(n_wires=4)


def test_what_the_ends_give_is_the_conduction_of_a_wire_cut_into_pieces():
    """A 0.1 m wire, heated evenly, its middle 90 K above air and clamps: 10 000 pieces."""
    n, length_m, rise_K = 10_000, 0.1, 90.0
    dx = length_m / n
    k_A = 18.0 * pi * 1e-8 / 4
    side = pi * 1e-4 * 125.0 * dx  # to the air, a piece
    along = k_A / dx
    # k A theta'' - h p theta + h p 90 = 0 between clamps at 0: a band of three
    diagonal = np.full(n, -2 * along - side)
    diagonal[[0, -1]] = -3 * along - side  # half a piece to either clamp
    from scipy.linalg import solve_banded

    bands = np.array([np.full(n, along), diagonal, np.full(n, along)])
    theta = solve_banded((1, 1), bands, np.full(n, -side * rise_K))
    assert theta[n // 2] == pytest.approx(rise_K)
    one_end_W = 2 * along * theta[0]
    assert end_loss_W_per_K(WIRE) == pytest.approx(4 * one_end_W / rise_K, rel=1e-3)


def test_a_clamp_follows_its_wires_by_a_tenth_in_half_a_minute():
    T_C = np.array([20.0])
    clamps = Clamps([WIRE], T_C, 0.001)
    loss = end_loss_W_per_K(WIRE) + 2.5e-3
    tau_s, settles_C = 0.1 / loss, 20.0 + 90.0 * end_loss_W_per_K(WIRE) / loss
    assert 20.0 < tau_s < 60.0
    for _ in range(10_000):
        clamps.step(np.array([110.0]), np.array([20.0]))
    assert T_C[0] == pytest.approx(settles_C + (20.0 - settles_C) * exp(-10.0 / tau_s))
    assert settles_C == pytest.approx(29.6, abs=0.1)


def test_a_burning_wire_does_not_reach_the_limit_at_its_clamp_within_a_second():
    """400 degC for a second: what `temperature_high` cannot see."""
    T_C = np.array([25.0])
    clamps = Clamps([WIRE], T_C, 0.001)
    for _ in range(1000):
        clamps.step(np.array([400.0]), np.array([25.0]))
    assert T_C[0] < 27.0


def test_cells_without_a_wire_have_no_clamp():
    wires = SmaWires([None, WIRE], np.ones(2))
    wires.reset(np.zeros(2), np.zeros(2))
    clamps = Clamps(wires.cells, wires.clamp_C, 0.001)
    clamps.step(np.array([np.nan, 80.0]), wires.air_C)
    assert np.isnan(wires.clamp_C[0])
    assert 25.0 < wires.clamp_C[1] < 25.1
