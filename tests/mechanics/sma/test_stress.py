"""The law under stress keeps to Clausius-Clapeyron, closed minor loops and the second law."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import brentq

from hil.mechanics.sma.stress import (
    GROUPS,
    Branch,
    LineBranch,
    REFERENCE_Pa,
    StressLaw,
)
from hil.mechanics.sma.stressed import constants_of, places, settled_sloped, stroke

HEATING = Branch(84.0, 8e6, 1.2, shoulder_ratio=8.0, shoulder_at_K=-4.0, core_share=0.5)
COOLING = Branch(56.0, 7.5e6, 1.3, shoulder_ratio=8.0, shoulder_at_K=-4.0, core_share=0.5)
LAW = StressLaw(
    HEATING, COOLING, stroke_min=0.01, stroke_max=0.04, stroke_rate_per_Pa=1.2e-8,
    modulus_A_Pa=70e9, modulus_M_Pa=28e9,
)  # fmt: skip
CONSTANT = StressLaw(HEATING, COOLING, stroke_min=0.04, stroke_max=0.04, stroke_rate_per_Pa=1e-8)


def where_half(law, side, stress_Pa):
    T_C = np.linspace(0.0, 200.0, 200_001)
    return np.interp(0.5, side(T_C, stress_Pa), T_C)


def test_a_constant_stroke_gives_the_straight_line_of_clausius_clapeyron():
    at = [where_half(CONSTANT, CONSTANT.least, s) for s in (0.0, 100e6, 300e6)]
    assert at[1] - at[0] == pytest.approx(100.0 / 8.0, abs=2e-3)
    assert at[2] - at[0] == pytest.approx(300.0 / 8.0, abs=2e-3)
    cold = [where_half(CONSTANT, CONSTANT.most, s) for s in (0.0, 150e6)]
    assert cold[1] - cold[0] == pytest.approx(150.0 / 7.5, abs=2e-3)


def test_the_slope_follows_the_transformation_strain_when_work_alone_moves_it():
    branch = Branch(84.0, 8e6, 1.2, work_share=1.0)
    strains, slopes = [], []
    for stress_Pa in (20e6, 100e6, 250e6):
        around = LAW.middle_C(branch, [stress_Pa - 1e3, stress_Pa + 1e3])
        slopes.append(np.diff(around)[0] / 2e3)
        both = LAW.strain([0.0, 1.0], 60.0, stress_Pa, 60.0)
        strains.append(both[0] - both[1])
    # d T / d sigma = (difference of the phases' strains) / (rho ds), at any stress.
    assert np.array(slopes) / slopes[0] == pytest.approx(np.array(strains) / strains[0], rel=1e-6)


def test_work_is_the_integral_of_the_difference_between_the_phases():
    expected, _ = quad(
        lambda s: float(np.diff(LAW.strain([1.0, 0.0], 60.0, s, 60.0))[0]), 0.0, 220e6
    )
    assert LAW.work_J_per_m3(220e6) == pytest.approx(expected, rel=1e-9)


def test_the_slope_up_to_the_reference_is_the_one_stated():
    rise_K = LAW.middle_C(HEATING, REFERENCE_Pa) - LAW.middle_C(HEATING, 0.0)
    assert REFERENCE_Pa / rise_K == pytest.approx(8e6)


def test_a_minor_loop_of_temperature_returns_to_its_point():
    xi = LAW.moved(0.0, 84.0, 50e6)
    came_by = float(xi)
    assert 0.1 < came_by < 0.9
    for T_C in (*np.linspace(84.0, 60.0, 50), *np.linspace(60.0, 84.0, 50)):
        xi = LAW.moved(xi, T_C, 50e6)
    assert float(xi) == pytest.approx(came_by, abs=1e-12)
    larger = LAW.moved(xi, 95.0, 50e6)
    assert float(larger) == pytest.approx(float(LAW.moved(0.0, 95.0, 50e6)), abs=1e-12)


def test_a_minor_loop_of_stress_returns_to_its_point():
    xi = LAW.moved(0.0, 92.0, 60e6)
    came_by = float(xi)
    for stress_Pa in (*np.linspace(60e6, 160e6, 50), *np.linspace(160e6, 60e6, 50)):
        xi = LAW.moved(xi, 92.0, stress_Pa)
    assert float(xi) == pytest.approx(came_by, abs=1e-12)


def test_a_closed_loop_of_temperature_and_stress_takes_work_and_never_gives_it():
    """Second law: around a whole cycle under load, heat becomes work only against hysteresis."""
    T_C = np.concatenate([np.linspace(20.0, 160.0, 4000), np.linspace(160.0, 20.0, 4000)])
    xi, along = LAW.moved(0.0, 20.0, 100e6), []
    for T in T_C:
        xi = LAW.moved(xi, T, 100e6)
        along.append(float(xi))
    entropy_loop = np.trapezoid(T_C, along)  # of T d xi: heat taken in hot, given off cold
    assert entropy_loop > 0.0
    hysteresis_K = float(LAW.middle_C(HEATING, 100e6) - LAW.middle_C(COOLING, 100e6))
    assert entropy_loop == pytest.approx(hysteresis_K, rel=0.03)


def test_cold_and_hot_ends_have_all_of_one_phase():
    assert float(LAW.most(-200.0, 200e6)) < 1e-6
    assert float(LAW.least(400.0, 200e6)) > 1.0 - 1e-6


def test_strain_of_austenite_is_elastic_and_of_martensite_has_the_stroke():
    assert float(LAW.strain(1.0, 100.0, 140e6, 100.0)) == pytest.approx(140e6 / 70e9)
    whole = 140e6 / 28e9 + 0.04 - 0.03 * np.exp(-1.68)
    assert float(LAW.strain(0.0, 100.0, 140e6, 100.0)) == pytest.approx(whole)


def driven(turns_C, xi=0.0, stress_Pa=100e6):
    """Austenite at every turning point; both branches rise with T, so a way needs no points."""
    found = []
    for T_C in turns_C:
        xi = float(LAW.moved(xi, T_C, stress_Pa))
        found.append(xi)
    return found


NESTED = st.lists(st.floats(0.0, 1.0), min_size=3, max_size=7, unique=True)


@given(NESTED, NESTED, st.floats(0.0, 300e6))
def test_minor_loops_return_to_their_points_and_larger_ones_wipe_them_out(lows, highs, stress_Pa):
    """Turning points within each other, then out again past all of them (Preisach's memory)."""
    n = min(len(lows), len(highs))
    ups = 150.0 - 65.0 * np.sort(highs)[:n]
    downs = 20.0 + 65.0 * np.sort(lows)[:n]
    inward = np.column_stack([ups, downs]).ravel()
    states = driven(inward, stress_Pa=stress_Pa)
    outward = driven(inward[::-1][1:], states[-1], stress_Pa)
    assert outward == pytest.approx(states[::-1][1:], abs=1e-12)
    [with_loops] = driven([160.0], driven([10.0], states[-1], stress_Pa)[-1], stress_Pa)
    assert with_loops == driven([160.0], 0.0, stress_Pa)[-1]


@settings(max_examples=settings().max_examples // 4)
@given(st.lists(st.tuples(st.floats(20.0, 150.0), st.floats(0.0, 300e6)), min_size=2, max_size=6))
def test_a_cycle_of_temperature_and_stress_closes_once_it_has_been_gone_through(corners):
    """The way between corners is a line in both; the second and third time give the same loop."""
    ends = np.array([*corners, corners[0]])
    way = np.concatenate([np.linspace(a, b, 40) for a, b in itertools.pairwise(ends)])
    xi, loops = 0.0, []
    for _ in range(3):
        loop = []
        for T_C, stress_Pa in way:
            xi = float(LAW.moved(xi, T_C, stress_Pa))
            loop.append(xi)
        loops.append(loop)
    assert loops[2] == loops[1]


def test_an_excursion_from_between_the_branches_that_reaches_one_ends_in_another_state():
    resting = float(LAW.moved(LAW.moved(0.0, 84.0, 50e6), 75.0, 50e6))
    xi = resting
    for T_C in (78.0, 75.0):  # reaches no branch
        xi = float(LAW.moved(xi, T_C, 50e6))
    assert xi == resting
    for T_C in (30.0, 75.0):
        xi = float(LAW.moved(xi, T_C, 50e6))
    assert abs(xi - resting) > 0.05


SLOPES = st.floats(0.0, 1.0)
PATHS = st.lists(st.tuples(st.floats(20.0, 150.0), st.floats(0.0, 300e6)), min_size=2, max_size=8)
LINES = StressLaw(
    LineBranch(93.0, 1e30, 10.0), LineBranch(67.0, 1e30, 10.0),
    stroke_min=0.04, stroke_max=0.04, stroke_rate_per_Pa=1e-8,
)  # fmt: skip


def along(law, points, parts=None):
    """Austenite of a wire, cold at first, at every point (T_C, stress_Pa) of a path."""
    parts, found = law.parts(0.0) if parts is None else parts, []
    for T_C, stress_Pa in points:
        parts = law.parts_moved(parts, T_C, stress_Pa)
        found.append(law.whole(parts))
    return found


@given(SLOPES, PATHS)
def test_no_path_leaves_the_branches_whatever_the_slope_of_minor_loops(slope, points):
    law = replace(LAW, minor_loop_slope=slope)
    for (T_C, stress_Pa), xi in zip(points, along(law, points), strict=True):
        assert law.least(T_C, stress_Pa) - 1e-12 <= xi
        # Where the branches overlap, some groups are above both.
        overlap = min(law.least(T_C, stress_Pa), 1.0 - law.most(T_C, stress_Pa))
        assert xi <= law.most(T_C, stress_Pa) + slope * overlap + 1e-12


@given(SLOPES)
def test_the_outer_loop_is_the_same_for_every_slope_of_minor_loops(slope):
    law, T_C = replace(LINES, minor_loop_slope=slope), np.linspace(40.0, 120.0, 161)
    way = [(T, 0.0) for T in (*T_C, *T_C[::-1])]
    expected = np.concatenate([law.least(T_C, 0.0), law.most(T_C[::-1], 0.0)])
    np.testing.assert_allclose(along(law, way), expected, atol=1e-12)


@given(NESTED, NESTED, SLOPES, st.floats(0.0, 300e6))
def test_minor_loops_that_slope_close_and_larger_ones_wipe_them_out(lows, highs, slope, stress_Pa):
    law, n = replace(LAW, minor_loop_slope=slope), min(len(lows), len(highs))
    ups = 150.0 - 65.0 * np.sort(highs)[:n]
    downs = 20.0 + 65.0 * np.sort(lows)[:n]
    inward = np.column_stack([ups, downs]).ravel()
    states = along(law, [(T_C, stress_Pa) for T_C in (*inward, *inward[::-1][1:])])
    assert states[2 * n :] == pytest.approx(states[: 2 * n][::-1][1:], abs=1e-12)


@pytest.mark.parametrize("slope", [0.4, 1.0])
@pytest.mark.parametrize("top_C", [90.0, 93.0, 97.0, 120.0])
def test_minor_loops_are_those_of_grains_that_are_counted(slope, top_C):
    """Preisach's relays: of 400 x 400 the cooling tells nothing of the heating, of 400 all."""
    share = (np.arange(400) + 0.5) / 400
    heats_C, cools_C = np.meshgrid(88.0 + 10.0 * share, 62.0 + 10.0 * share)
    free, bound = np.zeros((400, 400), dtype=bool), np.zeros(400, dtype=bool)
    way_C = [top_C, 71.0, 69.0, 66.0, 91.0, 95.0, 64.0, 63.0]
    found = along(replace(LINES, minor_loop_slope=slope), [(T_C, 0.0) for T_C in way_C])
    for T_C, xi in zip(way_C, found, strict=True):
        free = (free | (heats_C < T_C)) & (cools_C < T_C if T_C < 75.0 else True)
        bound = (bound | (heats_C[0] < T_C)) & (cools_C[:, 0] < T_C if T_C < 75.0 else True)
        counted = slope * free.mean() + (1.0 - slope) * bound.mean()
        assert xi == pytest.approx(counted, abs=0.25 / GROUPS)  # of a group that is cut


@pytest.mark.parametrize("slope", [0.2, 1.0])
@pytest.mark.parametrize("trial_C", [55.0, 66.0, 70.0, 85.0, 92.0, 110.0])
def test_the_kernel_puts_a_wire_where_the_heat_line_meets_the_law(slope, trial_C):
    """Against a root finder on the uncompiled law; straight branches have exact knots."""
    law, per_xi = replace(LINES, minor_loop_slope=slope), 40.0
    c, parts = (
        constants_of(law),
        law.parts_moved(law.parts_moved(law.parts(0.0), 93.0, 0.0), 70.0, 0.0),
    )
    T_C, xi, _, _ = settled_sloped(c, places(c, 0.0, stroke(c, 0.0)[1]), parts, per_xi, trial_C)

    def off_K(T):
        return T - trial_C + per_xi * (law.whole(law.parts_moved(parts, T, 0.0)) - law.whole(parts))

    expected_C = brentq(off_K, trial_C - per_xi, trial_C + per_xi, xtol=1e-12)
    assert T_C == pytest.approx(expected_C, abs=1e-9)
    assert xi == pytest.approx(law.whole(law.parts_moved(parts, expected_C, 0.0)), abs=1e-9)
