"""What a board's budget lets a wire come to, against wires heated step by step."""

from dataclasses import replace
from math import exp, inf, log, pi

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from hil.devices.board.scan import scan_s
from hil.mechanics.sma import limits
from hil.mechanics.sma.limits import (
    COOLING_LEAST,
    Bench,
    CellBranches,
    CellWire,
    NoTableError,
    Thermal,
    held_for_s,
    peak,
    protecting,
)
from hil.mechanics.sma.stress import Branch, StressLaw
from hil.mechanics.sma.stressed import N_KNOTS, advance, constants_of, knots_C, places, stroke
from hil.mechanics.sma.wire import SmaWire, wire_laws
from oracles.sma_wires import Wires

WIRE = SmaWire(n_wires=4, supply_V=8.0)
CELL = CellWire("a.1", WIRE)
BENCH = Bench(
    cold_C=15.0, warm_C=30.0, supply_V=8.0, supply_A=0.8, scan_s=4.35e-3, current_error=0.03
)
TABLE = {
    "current_full_scale_mA": 2000,
    "scan_age_max_ms": 20,
    "persistence_scans": 2,
    "cells_on_max": 12,
}
DT_S = 2e-4


def thermal(**values):
    given = {"heat_max_A2s": 0.02, "time_constant_s": 0.7, "current_max_A": 0.22,
             "full_scale_A": 2.0, "scan_age_max_s": 0.02, "persistence_scans": 2}  # fmt: skip
    return Thermal(**{**given, **values})


@settings(max_examples=settings().max_examples // 5)
@given(st.integers(0, 2**32 - 1))
def test_a_hot_wire_is_never_above_what_the_budget_says(seed):
    """The proposition, of a hundred wires whose currents jump at random, 20 s long."""
    rng = np.random.default_rng(seed)
    wires = Wires(WIRE, 100, 20.0)
    K = 126.0 / (6450.0 * pi * 1e-8 / 4 * 450.0)  # r_M / C, by hand
    assert CELL.heating_K_per_A2s == pytest.approx(K)
    tau_s = wires.wire.capacity_J_per_m_K / wires.G
    H = np.zeros(100)
    i2 = np.zeros(100)
    for _ in range(2000):
        jump = rng.random(100) < 0.1
        i2[jump] = rng.choice([0.0, 0.02, 0.03, 0.05, 0.3], jump.sum())
        wires.step(i2, 10 * DT_S)
        H += (i2 - H / tau_s) * 10 * DT_S
        hot = wires.T_C >= WIRE.A_f_C
        assert (wires.T_C[hot] - 20.0 <= K * H[hot] + 0.5).all()  # a step heats by half a kelvin


MOST_Pa = 300e6
MEASURED = StressLaw(
    Branch(78.3, 8.3e6, 1.05, 8.2, -3.9, 0.52, 2.0e-9),
    Branch(56.3, 7.5e6, 1.23, 8.0, -3.4, 0.52, 0.8e-9),
    stroke_min=0.02, stroke_max=0.04, stroke_rate_per_Pa=1.2e-8,
    modulus_A_Pa=70e9, modulus_M_Pa=28e9,
)  # fmt: skip
STRESSED_C = knots_C(MEASURED, MEASURED.heating, MOST_Pa)
LOADED = replace(CELL, branches=CellBranches(tuple(np.zeros(N_KNOTS)), tuple(STRESSED_C)))


@pytest.mark.slow
@settings(max_examples=settings().max_examples // 5)
@given(st.integers(0, 2**32 - 1))
def test_no_stress_takes_a_wire_above_what_the_budget_says(seed):
    """The proposition: current and stress jump at random, and r is at most r_M."""
    rng = np.random.default_rng(seed)
    air_C, h = 20.0, 2e-3
    [law] = wire_laws([replace(WIRE, ambient_C=air_C)])
    law.E2 = 1.0  # the kernel's duty is then r^2 I^2, in V^2/m^2
    c, tau_s = constants_of(MEASURED), WIRE.capacity_J_per_m_K / WIRE.loss_W_per_m_K
    T_C, xi, H, i2, stress_Pa = air_C, 0.0, 0.0, 0.0, 0.0
    for _ in range(3000):
        if rng.random() < 0.02:
            i2 = rng.choice([0.0, 0.0, 0.02, 0.03, 0.05, 0.3])
        if rng.random() < 0.01:
            stress_Pa = rng.choice([0.0, MOST_Pa, rng.uniform(0.0, MOST_Pa)])
        r = 126.0 - 13.0 * xi
        place = places(c, stress_Pa, stroke(c, stress_Pa)[1])
        T_C, xi = advance(law, c.knots_K, place, r * r * i2, T_C, xi, h)
        if H > 0.03:
            i2 = 0.0
        H = H * exp(-h / tau_s) + i2 * tau_s * (1.0 - exp(-h / tau_s))
        # within a step r falls by a hundredth, and the current rises as much
        assert T_C <= LOADED.highest_C(air_C + 1.02 * CELL.heating_K_per_A2s * H) + 1e-6


@pytest.mark.parametrize("budget_C", [40.0, 90.0, 130.0, 170.0, 300.0])
def test_the_highest_temperature_balances_latent_heat_by_the_law(budget_C):
    """Against a root of T - (L / C) (1 - F(T)) = T_air + K H, with the law's own F."""
    latent_K = 24.2e3 / 450.0
    expected_C = brentq(
        lambda T_C: T_C - latent_K * (1.0 - MEASURED.least(T_C, MOST_Pa)) - budget_C, 0.0, 400.0
    )
    # the knots leave out half a per cent at either end
    assert LOADED.highest_C(budget_C) == pytest.approx(expected_C, abs=0.006 * latent_K)


def test_a_budget_that_forgets_faster_than_the_wire_cools_allows_more():
    """Half the time constant: a current may settle at twice the heat that is believed."""
    tau_s = CELL.time_constant_s
    slow = thermal(time_constant_s=tau_s, scan_age_max_s=0.0, current_max_A=0.0)
    fast = replace(slow, time_constant_s=tau_s / 2)
    bench = replace(BENCH, supply_A=0.0)
    rises_K = [peak(CELL, t, bench).warm_C - 30.0 for t in (slow, fast)]
    assert rises_K[1] == pytest.approx(2 * rises_K[0])
    # and a wire does: the current whose heat settles just below the limit is never stopped
    believed_A = (fast.heat_max_A2s / fast.time_constant_s) ** 0.5
    wires = Wires(WIRE, 1, 30.0, COOLING_LEAST)
    for _ in range(10_000):
        wires.step(np.array([believed_A**2 / (1 - BENCH.current_error) ** 2]), 5 * DT_S)
    assert 0.85 * rises_K[1] < wires.peak_C[0] - 30.0 < rises_K[1]


def test_the_table_that_protects_is_the_largest_that_does():
    table = protecting([CELL], BENCH, TABLE)
    at = peak(CELL, Thermal.of({**TABLE, **table}), BENCH)
    assert at.protected
    assert at.worst_C == at.warm_C == pytest.approx(CELL.temperature_max_C, abs=0.01)
    assert at.warm_C - at.cold_C == pytest.approx(15.0)
    more = {**table, "heat_max_cA2ms": table["heat_max_cA2ms"] + 100}
    assert not peak(CELL, Thermal.of({**TABLE, **more}), BENCH).protected


def test_the_entries_of_the_table_are_those_of_a_calculation_by_hand():
    table = protecting([CELL], BENCH, TABLE)
    C = 6450.0 * pi * (1e-4) ** 2 / 4 * 450.0
    G = pi * 1e-4 * 125.0
    assert table["heat_time_constant_ms"] == pytest.approx(1e3 * C / (0.85 * G), abs=1)
    # 8 V over four wires of 0.1 m at 113 Ohm/m, and a quarter more
    assert table["current_max_mA"] == pytest.approx(1.25 * 8000 / 45.2, abs=1)
    # a short: one scan of 4.85 ms at 0.8 A, beyond a budget that is full
    left_A2s = (180 - 30) * C / 126.0 - 0.64 * 4.85e-3
    assert table["heat_max_cA2ms"] == pytest.approx(1e7 * left_A2s * 0.97**2, abs=1)
    # and what 25 mA heat for ever, in the least cooling
    leaks = protecting([CELL], replace(BENCH, leak_A=0.025), TABLE)
    left_A2s -= 0.025**2 * C / (0.85 * G)
    assert leaks["heat_max_cA2ms"] == pytest.approx(1e7 * left_A2s * 0.97**2, abs=1)


def test_a_wire_that_conducts_while_its_cell_is_off_is_within_its_peak():
    """Held at the budget's limit by its duty, with the leak beside it that nobody counts."""
    bench = replace(BENCH, supply_A=0.0, current_error=0.0, leak_A=0.1)
    at = thermal(heat_max_A2s=0.01, time_constant_s=1.0, scan_age_max_s=0.0)
    wires = Wires(WIRE, 1, 30.0, COOLING_LEAST)
    for _ in range(10_000):
        wires.step(np.array([0.01 / CELL.time_constant_s + 0.1**2]), 5 * DT_S)
    assert wires.peak_C[0] > peak(CELL, at, replace(bench, leak_A=0.0)).warm_C
    assert wires.peak_C[0] < peak(CELL, at, bench).warm_C


def test_a_short_beyond_the_full_scale_is_counted_for_as_long_as_nothing_sees_it():
    """The sensor says 2 A of 5 A: three scans pass before current_high."""
    late = thermal(current_max_A=0.1).late_A2s(replace(BENCH, supply_A=5.0))
    assert late == pytest.approx((3 * 25.0 - 2 * 4.0) * 4.85e-3)
    within = thermal(current_max_A=0.1).late_A2s(replace(BENCH, supply_A=1.5))
    assert within == pytest.approx(2.25 * 4.85e-3)
    unknown = thermal(current_max_A=0.1).late_A2s(replace(BENCH, supply_A=None))
    assert unknown == pytest.approx(4.0 * 4.85e-3)


def test_a_scan_that_takes_longer_lets_a_short_flow_for_longer_until_its_age_trips():
    """At 0.8 A, 0.64 A2s a second; the age of 20 ms is counted in whole milliseconds."""
    late = [thermal(current_max_A=0.1).late_A2s(replace(BENCH, scan_s=s)) for s in (7e-3, 0.1, inf)]
    assert late == pytest.approx([0.64 * 7.5e-3, 0.64 * 22.5e-3, 0.64 * 22.5e-3])


def test_a_scan_is_longer_the_faster_commands_come_and_unbounded_beyond_what_was_measured():
    every_s = np.geomspace(1e-3, 1.0, 200)
    masks, broadcasts = (
        [scan_s(kind, float(s)) for s in every_s] for kind in ("set_mask", "broadcast")
    )
    assert masks == sorted(masks, reverse=True)
    assert broadcasts == sorted(broadcasts, reverse=True)
    assert all(b >= m for m, b in zip(masks, broadcasts, strict=True))
    assert scan_s("set_mask", 1.9e-3) == scan_s("set_mask", 1e-3) > scan_s("set_mask", 2e-3)
    assert scan_s("set_mask", 2 * 0.001) == scan_s("set_mask", 0.002)
    assert scan_s("set_mask", 0.9e-3) == inf


@pytest.mark.parametrize(("current_max_A", "times"), [(0.197, 1.0), (0.198, 16.0), (1.9, 16.0)])
def test_a_sensor_that_ends_below_the_limit_of_the_current_lets_through_more_than_is_counted(
    current_max_A, times
):
    """Beyond 0.2 A a board may read 198 mA: 0.8 A counts for a sixteenth where that is allowed."""
    blind = thermal(full_scale_A=0.2, current_max_A=current_max_A)
    rise_K = peak(CELL, blind, BENCH).warm_C - BENCH.warm_C
    counted_K = CELL.heating_K_per_A2s * 0.02 / (1.0 - BENCH.current_error) ** 2
    late_K = CELL.heating_K_per_A2s * blind.late_A2s(BENCH)
    assert rise_K == pytest.approx(times * counted_K + late_K)


def test_no_table_is_written_for_a_sensor_that_ends_below_an_ordinary_current():
    """8 V drive 177 mA through the contracted wires."""
    with pytest.raises(NoTableError, match=r"'a\.1' draws 0\.177 A from 8 V.*ends at 0\.158 A"):
        protecting([CELL], BENCH, {**TABLE, "current_full_scale_mA": 160})
    limited = replace(BENCH, supply_A=0.3)
    table = protecting([CELL], limited, {**TABLE, "current_full_scale_mA": 200})
    assert table["current_max_mA"] == 197  # the largest that a reading can pass


def test_a_dead_converter_is_counted_until_the_scan_is_too_old():
    late = thermal(current_max_A=1.0).late_A2s(replace(BENCH, supply_A=0.2))
    assert late == pytest.approx(1.0 * 0.022)


@pytest.mark.parametrize(
    ("current_A", "trips_s"), [(0.1, inf), (0.2, 0.7 * 1.252763), (1.0, 0.7 * 0.028988)]
)
def test_a_current_is_let_flow_until_the_budget_is_full(current_A, trips_s):
    """By the law, rounded up: the sensor of 2 A has 1024 counts, 1 % of 0.2 A."""
    found_s = held_for_s(current_A, thermal(), 1e-3)
    reading_s, rounded = 3.25e-3, 1.0 + 2.0 * 2.0 / 1024 / current_A
    assert found_s <= trips_s + reading_s
    if trips_s < inf:
        full = 0.02 / (0.7 * (rounded * current_A) ** 2 * (1.0 + 4e-6 / reading_s + 0.5e-3))
        assert found_s >= -0.7 * log(1.0 - full) - 2.0 * reading_s
        assert current_A**2 * 0.7 * (1 - exp(-trips_s / 0.7)) == pytest.approx(0.02, rel=1e-4)


def test_a_wire_contracts_in_the_makers_second_and_not_at_all_where_air_takes_all():
    maker = CellWire("a.1", SmaWire())
    assert maker.contracts_in_s(0.2 * 12.6, 25.0) == pytest.approx(1.0, abs=0.35)
    assert maker.contracts_in_s(0.1 * 12.6, 25.0) == inf


def test_cells_that_differ_too_much_for_one_table_are_named():
    thick = replace(WIRE, diameter_m=200e-6, martensite_Ohm_per_m=31.5, austenite_Ohm_per_m=28.25)
    cells = [CELL, CellWire("a.2", replace(thick, supply_V=8.0))]
    with pytest.raises(NoTableError) as caught:
        protecting(cells, BENCH, TABLE)
    assert "'a.2'" in str(caught.value)
    assert "'a.1'" in str(caught.value)
    assert "boards of their own" in str(caught.value)


def test_a_supply_that_burns_a_wire_within_a_scan_has_no_table():
    with pytest.raises(NoTableError, match="limit the supply's current"):
        protecting([CELL], replace(BENCH, supply_A=20.0), TABLE)


def test_wires_in_parallel_are_told_to_be_in_series():
    """The board sees their sum, which the last one carries when the others have broken."""
    parallel = CellWire("a.1", SmaWire(n_wires=4, wiring="parallel", supply_V=2.0))
    with pytest.raises(NoTableError, match="wire them in series"):
        protecting([parallel], replace(BENCH, supply_V=2.0), TABLE)


def test_a_wire_that_needs_no_latent_heat_contracts_when_its_exponential_says():
    """T = T_a + P / G (1 - exp(-t / tau)) until it has the temperature of CONTRACTED."""
    wire = SmaWire(latent_heat_J_per_kg=0.0, austenite_Ohm_per_m=126.0, supply_V=4.0)
    power, loss = wire.field_V_per_m**2 / 126.0, wire.loss_W_per_m_K
    tau_s = wire.capacity_J_per_m_K / loss
    rise_K = wire.A_s_C + limits.CONTRACTED * (wire.A_f_C - wire.A_s_C) - 25.0
    takes_s = -tau_s * np.log(1.0 - rise_K * loss / power)
    found_s = CellWire("one", wire).contracts_in_s(4.0, 25.0)
    assert takes_s <= found_s < takes_s + 1.001 * tau_s / limits.STEPS_A_TIME_CONSTANT
