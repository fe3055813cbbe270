"""Times of contraction and cooling: exact without latent heat; convection by hand."""

from dataclasses import replace
from math import inf, log, pi

import pytest
from scipy.optimize import brentq

from hil.mechanics.sma.wire import SmaWire
from hil.systems.array.build_wire import law_of
from hil.systems.array.tables import SmaTable
from hil_studies.wires.heat import (
    FLEXINOL,
    MAKERS,
    contracts_and_cools_s,
    morgan_W_per_m2_K,
    times,
)


@pytest.fixture(scope="module")
def rows():
    return times()


def test_without_latent_heat_both_times_are_those_of_newtons_cooling():
    wire = SmaWire(latent_heat_J_per_kg=0.0, austenite_Ohm_per_m=126.0)
    G = pi * 1e-4 * 125.0
    tau_s = 6450.0 * pi * 1e-8 / 4 * 450.0 / G
    settles_K = 126.0 * 0.2**2 / G
    hot_K = brentq(lambda T_C: FLEXINOL.least(T_C, 172e6) - 0.875, 50.0, 200.0) - 25.0
    warm_K = brentq(lambda T_C: FLEXINOL.most(T_C, 69e6) - 0.125, 30.0, 120.0) - 25.0
    contracts_s, cools_s = contracts_and_cools_s(FLEXINOL, wire, 0.2)
    assert contracts_s == pytest.approx(tau_s * log(settles_K / (settles_K - hot_K)), rel=0.02)
    assert cools_s == pytest.approx(tau_s * log(hot_K / warm_K), rel=0.02)


def test_the_latent_heat_is_that_of_clausius_and_clapeyron():
    """T ds = T C H / rho; H is 0.0405 in the mean from 0 to 150 MPa, C and T as fitted."""
    taken, given = FLEXINOL.latent_heat_J_per_kg(6450.0)
    assert taken == pytest.approx(351.45 * 8.3e6 * 0.0405 / 6450.0, rel=0.005)
    assert given == pytest.approx(329.45 * 7.5e6 * 0.0405 / 6450.0, rel=0.005)
    default = SmaTable(kind="sma")
    of_table = law_of(default, SmaWire()).latent_heat_J_per_kg(6450.0)
    for one in ((given, taken), sorted(of_table)):
        assert one[0] < default.latent_heat_J_per_kg < one[1]


def test_stress_and_temperature_along_a_branch_rise_by_the_same_latent_heat():
    """dT/dsigma = T (H + S sigma) / (rho L): a difference quotient of the branch's middle."""
    law = replace(FLEXINOL, stroke_min=0.04, stroke_max=0.04)
    one = replace(law.heating, work_share=1.0)
    taken, _ = replace(law, heating=one).latent_heat_J_per_kg(6450.0)
    per_Pa = float(law.middle_C(one, 151e6) - law.middle_C(one, 150e6)) / 1e6
    assert per_Pa == pytest.approx((78.3 + 273.15) * 0.04 / (6450.0 * taken), rel=1e-6)


def test_the_makers_table_from_0_10_mm_on_and_the_two_wires_that_never_contract(rows):
    of = {row["diameter_mm"]: row for row in rows}
    assert list(of) == list(MAKERS)
    never = [d for d, row in of.items() if row["contracts_s"] == inf]
    assert never == [0.025, 0.038]
    thick = [row for d, row in of.items() if d >= 0.10]
    assert all(0.89 < row["contracts_s"] < 1.2 for row in thick)
    assert all(0.89 < row["cools_s"] / row["makers_cools_s"] < 1.2 for row in thick)


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


def test_a_thicker_wire_cools_more_slowly_as_in_the_makers_table(rows):
    ours = [row["cools_s"] for row in rows][3:]
    printed = [cools_s for *_, cools_s in MAKERS.values()][3:]
    assert ours == sorted(ours)
    # latent and specific heat a metre rise with d^2, the loss with less than d
    assert ours[-1] / ours[0] == pytest.approx(printed[-1] / printed[0], rel=0.2)
