"""Times of contraction and cooling: exact without latent heat; convection by hand."""

from math import log, pi

import pytest
from scipy.optimize import brentq

from hil.mechanics.sma.wire import SmaWire
from hil_studies.wires.heat import (
    FLEXINOL,
    MAKERS,
    contracts_and_cools_s,
    morgan_W_per_m2_K,
    times,
)


def test_without_latent_heat_both_times_are_those_of_newtons_cooling():
    wire = SmaWire(latent_heat_J_per_kg=0.0, austenite_Ohm_per_m=126.0)
    G = pi * 1e-4 * 125.0
    tau_s = 6450.0 * pi * 1e-8 / 4 * 450.0 / G
    settles_K = 126.0 * 0.2**2 / G
    hot_K = brentq(lambda T_C: FLEXINOL.least(T_C, 172e6) - 0.9, 50.0, 200.0) - 25.0
    warm_K = brentq(lambda T_C: FLEXINOL.most(T_C, 69e6) - 0.125, 30.0, 120.0) - 25.0
    contracts_s, cools_s = contracts_and_cools_s(FLEXINOL, wire, 0.2)
    assert contracts_s == pytest.approx(tau_s * log(settles_K / (settles_K - hot_K)), rel=0.02)
    assert cools_s == pytest.approx(tau_s * log(hot_K / warm_K), rel=0.02)


def test_convection_of_a_thin_wire_is_morgans():
    """0.1 mm at 100 degC in air of 25 degC, film 335.65 K: air of 0.0287 W/m K, 1.9e-5 m2/s."""
    Ra = 9.81 * 75.0 / 335.65 * 1e-12 / (1.9e-5) ** 2 * 0.71
    assert morgan_W_per_m2_K(1e-4, 100.0, 25.0) == pytest.approx(
        0.675 * Ra**0.058 * 0.0287 / 1e-4, rel=0.01
    )
    # the two formulas meet where one takes over from the other
    d_m = 1e-4 * (0.01 / Ra) ** (1.0 / 3.0)
    below, above = (morgan_W_per_m2_K(f * d_m, 100.0, 25.0) * f * d_m for f in (0.95, 1.05))
    assert above == pytest.approx(below, rel=0.04)


def test_a_thicker_wire_cools_more_slowly_as_in_the_makers_table():
    ours = [row["cools_s"] for row in times()][1:]
    printed = [cools_s for *_, cools_s in MAKERS.values()][1:]
    assert ours == sorted(ours)
    # latent and specific heat a metre rise with d^2, the loss with less than d
    assert ours[-1] / ours[0] == pytest.approx(printed[-1] / printed[0], rel=0.2)
