"""The loop's heat budget of wires whose current nobody measures: no command can burn one."""

from dataclasses import replace
from math import exp, inf, pi

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hil.loop.guard import CellHeat, Guard, Limits, names_of
from hil.mechanics.sma.limits import COOLING_LEAST, SUPPLY_ERROR, CellBranches, CellWire
from hil.mechanics.sma.loop_budget import SHARE_TO_ARM, budget_of, peak_C
from hil.mechanics.sma.stressed import AS_TABULATED, advance
from hil.mechanics.sma.wire import SmaWire, wire_laws
from hil.runs.assembly import _heat
from rows import BoundGuard

PERIOD_S = 0.01
DEAD_MAN_S = 0.05
LATE_S = DEAD_MAN_S + 2 * PERIOD_S
WARM_C, COLD_C = 30.0, 15.0
FLEXINOL = CellWire("wire.1", SmaWire(supply_V=4.0))


def guard_of(budget, rise_K=None):
    """A guard of one cell, armed, at the share that a self-test has waited for."""
    start_K = SHARE_TO_ARM * budget.rise_max_K if rise_K is None else rise_K
    heat = CellHeat(budget.heats_K_per_s, budget.time_constant_s, budget.rise_max_K, start_K)
    guard = Guard(Limits(inf, inf, 2**62, heat=[heat]), 1, PERIOD_S)
    assert guard.arm()
    return guard, BoundGuard(guard, n_cells=1)


class WorstWire:
    """The wire in the least cooling, the warmest air and at the highest supply, on its own law."""

    def __init__(self, cell, budget, air_C):
        wire = replace(
            cell.wire,
            supply_V=cell.wire.cell_V * (1.0 + SUPPLY_ERROR),
            convection_W_per_m2_K=COOLING_LEAST * cell.wire.convection_W_per_m2_K,
            ambient_C=air_C,
        )
        self._law = wire_laws([wire])[0]
        self._knots_C = np.array(CellBranches.unstressed(wire).working_C)
        self.T_C, self.xi = air_C + SHARE_TO_ARM * budget.rise_max_K, 0.0
        self.hottest_C = self.T_C

    def step(self, on, duration_s):
        self.T_C, self.xi = self.after(on, duration_s)
        self.hottest_C = max(self.hottest_C, self.T_C)

    def after(self, on, duration_s):
        return advance(
            self._law, self._knots_C, AS_TABULATED, float(on), self.T_C, self.xi, duration_s
        )


def test_a_budget_is_the_heat_equation_of_the_wire_without_its_latent_heat():
    """0.1 mm NiTi on 4 V over 0.1 m, 3 % more: by hand from mass, resistance and surface."""
    budget = budget_of(FLEXINOL, 4.0, WARM_C, LATE_S)
    area_m2 = pi * (100e-6) ** 2 / 4.0
    capacity_J_per_m_K = 6450.0 * area_m2 * 450.0
    power_W_per_m = (1.03 * 40.0) ** 2 / 113.0  # the less resistance, the more power
    loss_W_per_m_K = pi * 100e-6 * 0.85 * 125.0
    assert budget.heats_K_per_s == pytest.approx(power_W_per_m / capacity_J_per_m_K)
    assert budget.time_constant_s == pytest.approx(capacity_J_per_m_K / loss_W_per_m_K)
    late_K = power_W_per_m / capacity_J_per_m_K * LATE_S
    assert budget.rise_max_K == pytest.approx(180.0 - 30.0 - late_K)
    assert peak_C(FLEXINOL, budget, WARM_C) == pytest.approx(180.0)
    assert peak_C(FLEXINOL, budget, COLD_C) < 180.0


def test_waiting_for_a_run_cools_a_full_budget_to_the_share_that_a_run_may_begin_with():
    budget = budget_of(FLEXINOL, 4.0, WARM_C, LATE_S)
    left_K = budget.rise_max_K * exp(-budget.cools_in_s / budget.time_constant_s)
    assert left_K == pytest.approx(budget.rise_max_K / 8.0)


@pytest.mark.parametrize("supply_V", [1.5, 2.5, 4.0])
def test_a_run_begins_with_what_a_run_that_died_may_have_left(supply_V):
    """It held the line high for ever, or died with a full budget until the dead man acted."""
    budget = budget_of(FLEXINOL, supply_V, WARM_C, LATE_S)
    full_K = min(budget.rise_max_K, budget.settles_K)
    left_K = budget.after_s(full_K, True, budget.late_s)
    assert budget.after_s(left_K, False, budget.cools_in_s) <= budget.begins_K
    assert budget.begins_K >= budget.rise_max_K / 8.0
    table = _heat(budget)
    assert (table.rise_max_K, table.rise_K) == (budget.rise_max_K, budget.begins_K)


def test_wires_in_series_share_the_supply_and_wires_in_parallel_do_not():
    one = budget_of(FLEXINOL, 4.0, WARM_C, LATE_S)
    of = {
        wiring: budget_of(
            CellWire("c", replace(FLEXINOL.wire, n_wires=2, wiring=wiring)), 4.0, WARM_C, LATE_S
        )
        for wiring in ("series", "parallel")
    }
    assert of["parallel"].heats_K_per_s == pytest.approx(one.heats_K_per_s)
    assert of["series"].heats_K_per_s == pytest.approx(one.heats_K_per_s / 4.0)


def test_a_cell_held_on_trips_when_its_budget_is_used_up_and_says_how_hot():
    budget = budget_of(FLEXINOL, 4.0, WARM_C, LATE_S)
    guard, row = guard_of(budget, rise_K=0.0)
    ticks = 0
    while not guard.fault_bits:
        assert ticks * PERIOD_S < 2.0 * budget.held_for_s()
        row.commands.cells[:] = 1
        guard.step(0)
        ticks += 1
    assert names_of(guard.fault_bits) == ["cell_energy_high"]
    assert ticks * PERIOD_S == pytest.approx(budget.held_for_s(), abs=2 * PERIOD_S)
    assert guard.seen.rise_K[0] > budget.rise_max_K
    assert row.commands.cells[0] == 0
    for _ in range(200):  # latched, however much it cools
        row.commands.cells[:] = 1
        guard.step(0)
        assert row.commands.cells[0] == 0


def test_missed_periods_count_with_what_was_on_before_them():
    budget = budget_of(FLEXINOL, 4.0, WARM_C, LATE_S)
    for before, missed, trips in ((1, 60, True), (0, 60, False), (1, 3, False)):
        guard, row = guard_of(budget, rise_K=0.0)
        row.commands.cells[:] = before
        guard.step(0)
        row.commands.cells[:] = 1 - before
        guard.step(0, missed)
        assert bool(guard.fault_bits) is trips, (before, missed)


def test_cells_without_a_budget_never_trip_by_heat():
    guard = Guard(Limits(inf, inf, 2**62, heat=[CellHeat(), CellHeat(1e3, 1.0, 5.0)]), 2, PERIOD_S)
    assert guard.arm()
    row = BoundGuard(guard, n_cells=2)
    for _ in range(100):
        row.commands.cells[:] = 1, 0
        assert guard.step(0) == 0


TICKS = st.lists(st.tuples(st.booleans(), st.integers(1, 5)), min_size=1, max_size=150)
WIRES = st.builds(
    lambda um, V_per_m, h, most_C, latent: CellWire(
        "c",
        SmaWire(
            diameter_m=1e-6 * um,
            supply_V=0.1 * V_per_m,
            convection_W_per_m2_K=h,
            martensite_Ohm_per_m=126.0 * (100.0 / um) ** 2,
            austenite_Ohm_per_m=113.0 * (100.0 / um) ** 2,
            latent_heat_J_per_kg=latent,
        ),
        most_C,
    ),
    st.sampled_from([50.0, 100.0, 250.0]),
    st.floats(15.0, 60.0),
    st.floats(60.0, 200.0),
    st.floats(120.0, 250.0),
    st.sampled_from([24.2e3, 0.0]),  # without it nothing delays the heating
)


@given(cell=WIRES, ticks=TICKS, held=st.booleans(), warm=st.booleans())
def test_whatever_is_commanded_and_whenever_the_program_dies_no_wire_passes_its_maximum(
    cell, ticks, held, warm
):
    """`ticks`: the command, and the periods until the next look; `held`: on as long as it may be.

    The program dies after every tick in turn: the dead man leaves the line as it is for its time
    and two ticks more.
    """
    budget = budget_of(cell, cell.wire.cell_V, WARM_C, LATE_S)
    if budget.rise_max_K <= 0.0:
        return  # refused before any run
    guard, row = guard_of(budget)
    wire = WorstWire(cell, budget, WARM_C if warm else COLD_C)
    on, died_C = 0, wire.T_C
    for wish, periods in [*((True, 1) for _ in range(100 * held)), *ticks]:
        wire.step(on, periods * PERIOD_S)
        row.commands.cells[:] = wish
        guard.step(0, periods)
        on = int(row.commands.cells[0])
        died_C = max(died_C, wire.after(on, LATE_S)[0])
    most_C = cell.temperature_max_C
    assert max(wire.hottest_C, died_C) <= max(most_C, cell.wire.A_f_C) + 1e-6


def test_the_bound_is_tight_a_wire_without_latent_heat_comes_within_its_margins_of_its_maximum():
    """Otherwise the bound could be kept by never letting a wire get warm."""
    cell = replace(FLEXINOL, wire=replace(FLEXINOL.wire, latent_heat_J_per_kg=0.0))
    budget = budget_of(cell, 4.0, WARM_C, LATE_S)
    guard, row = guard_of(budget)
    wire = WorstWire(cell, budget, WARM_C)
    on, died_C = 0, 0.0
    for _ in range(round(2.0 * budget.held_for_s() / PERIOD_S)):
        if guard.fault_bits:
            break
        wire.step(on, PERIOD_S)
        row.commands.cells[:] = 1
        guard.step(0)
        on = int(row.commands.cells[0])
        died_C = max(died_C, wire.after(on, LATE_S)[0])
    assert 150.0 < died_C <= 180.0  # martensite resists more than the budget assumes
