"""Plans of cells that heat and cool, against every sequence and a run of the very cells."""

import itertools

import numpy as np
import pytest
from scipy.optimize import differential_evolution

from hil.control.controller import ArrayEstimate
from hil.control.reference import NoReference, Steps
from hil.control.steering import Steerable
from hil.errors import ModelError
from hil.mechanics.sma.resistance import Resistivity
from hil.mechanics.sma.wire import SmaWire, SmaWires, wire_laws
from hil.systems.array.model import cells
from hil.systems.array.model.activation import CellActivation
from hil.systems.array.model.cell_array import CellArray
from hil.systems.array.model.force_levels import static_gains_N
from hil.systems.array.model.system import ArraySystem
from hil.systems.array.recruitment.optimal import PlannedCells, PlanRules
from hil.systems.array.recruitment.wire_descent import DutyDescent
from hil.systems.array.recruitment.wire_optimal import WireOptimal
from hil.systems.array.recruitment.wire_plan import PlanGrid, WirePlanner
from hil.systems.array.recruitment.wire_plan_kernel import PlanPrices, hold
from hil.systems.array.wires.cells import wire_model

LEAD_S, BLOCK_S, N_BLOCKS = 1e-3, 0.1, 10
RIGHT = "array.right_N"
MIGA = cells.miga(k_pe_N_per_m=20.0, k_se_N_per_m=386.52, k_ae_N_per_m=1000.0, b_N_s_per_m=500.0)
ARRAY = CellArray.from_fingerprint("-:3 | &7:-1", cell=MIGA, mass_kg=0.01583)
ACTIVATION = [CellActivation(4.0, "thermal", wire=SmaWire(specific_heat_J_per_kg_K=c))
              for c in (200.0, 300.0, 400.0)]  # fmt: skip
SHARES = static_gains_N(ARRAY, [4.0] * 3, RIGHT)
COLD = np.column_stack([np.full(3, 25.0), np.zeros(3), np.zeros(3)])
OFF = np.zeros(3, dtype=np.uint8)


def planner(price=0.0, least=(1, 1), prices=None, n_blocks=N_BLOCKS, modulated=False):
    model = wire_model(ARRAY, ACTIVATION, SHARES)
    grid = PlanGrid(LEAD_S, BLOCK_S, n_blocks, *least)
    return WirePlanner(model, grid, prices or PlanPrices(price), modulated=modulated)


def posed(p, wanted, on=OFF, locked=(0, 0, 0), usable=(1, 1, 1), state=COLD):
    model = wire_model(ARRAY, ACTIVATION, SHARES)
    wires = model.laws, model.static_gains_N, state
    p.pose(wires, on, np.array(locked), np.array(usable, dtype=np.uint8), np.asarray(wanted))
    return p


def force_of(plan):
    """The array itself, its masses and fine steps included, at every block's end."""
    system = ArraySystem(ARRAY, ACTIVATION, 0.002)
    y = []
    for on in plan.T:
        for _ in range(50):
            system.step(on)
        y.append(system.y[ARRAY.outputs.index(RIGHT)])
    return np.array(y)


@pytest.mark.parametrize("modulated", [False, True])
def test_what_a_plan_promises_the_array_does(modulated):
    wanted = np.linspace(0.0, 2.0, N_BLOCKS)
    p = posed(planner(modulated=modulated), wanted)
    p.search(10**9)
    assert bool(((p.plan > 0.0) & (p.plan < 1.0)).any()) == modulated
    # the lag takes austenite as linear over a block of 0.1 s, in a third of a second's lag
    assert wanted - p.error_N == pytest.approx(force_of(p.plan), abs=0.03 * SHARES.sum())


@pytest.mark.parametrize("prices", [(0.0, 0.0, 0.0), (0.02, 0.0, 0.0), (0.0, 0.05, 0.01)])
def test_no_other_sequence_of_one_cell_is_better(prices):
    """All sequences of at most two switches, and all that differ from the plan in one stretch."""
    wanted = np.cumsum(np.random.default_rng(1).normal(0.15, 0.2, N_BLOCKS))
    p = posed(planner(prices=PlanPrices(*prices)), wanted)
    p.search(10**9)
    assert p.finished
    best = _cost(p.plan, p.error_N, prices)
    for n in range(3):
        for plan_n in [*_sequences(), *_changed(p.plan[n])]:
            plan = p.plan.copy()
            plan[n] = plan_n
            assert _cost(plan, _error(plan, wanted), prices) >= best - 1e-4 * best


def _cost(plan, error_N, prices):
    """Errors, switches, austenite that a stepper of its own sees change, and power."""
    of_switch, of_turn, of_power = prices
    cost = float(error_N @ error_N) + of_switch * _switches(plan) + of_power * plan.sum()
    return cost + of_turn * _turned(plan)


def _turned(plan):
    """Sum of all changes of austenite from block to block, by the wires without a planner."""
    wires, F = SmaWires([a.wire for a in ACTIVATION], np.ones(3)), np.zeros((2, 3))
    wires.reset(F[0], F[1])
    wires.step(np.zeros(3), LEAD_S, F[0], F[1])
    xi = [wires.xi.copy()]
    for duty in plan.T:
        for _ in range(20):
            wires.step(duty, BLOCK_S / 20, F[0], F[1])
        xi.append(wires.xi.copy())
    return float(np.abs(np.diff(xi, axis=0)).sum())


@pytest.mark.slow
@pytest.mark.parametrize("prices", [(0.0, 0.02, 0.005), (0.0, 0.0, 0.0)])
def test_modulated_power_is_planned_as_well_as_a_search_of_its_own_finds(prices):
    """Differential evolution over all duties, which knows no derivative and no interval."""
    n_blocks, usable = 6, (1, 1, 0)
    wanted = np.array([0.0, 0.05, 0.15, 0.3, 0.3, 0.3])
    p = posed(planner(prices=PlanPrices(*prices), n_blocks=n_blocks, modulated=True), wanted,
              usable=usable)  # fmt: skip
    p.search(10**9)

    def cost(duties):
        plan = np.vstack([duties.reshape(2, n_blocks), np.zeros(n_blocks)])
        return _cost(plan, _error(plan, wanted), prices)

    found = differential_evolution(cost, [(0.0, 1.0)] * 2 * n_blocks, maxiter=25, popsize=5, rng=3)
    assert _cost(p.plan, p.error_N, prices) <= found.fun * 1.01 + 1e-6


def test_a_wire_that_is_priced_for_wear_is_held():
    """Half contracted between its branches, as wanted: its power is what it loses to the air."""
    T_C = 80.0
    state = np.column_stack([[T_C, 25.0, 25.0], [0.5, 0.0, 0.0], [0.5, 0.0, 0.0]])
    p = planner(prices=PlanPrices(0.0, 1e-3), modulated=True)
    posed(p, np.full(N_BLOCKS, 0.5 * SHARES[0]), state=state, usable=(1, 0, 0))
    p.search(10**9)
    assert p.error_N == pytest.approx(0.0, abs=1e-9)
    wire = ACTIVATION[0].wire
    r_Ohm_per_m = 0.5 * (wire.martensite_Ohm_per_m + wire.austenite_Ohm_per_m)
    loss_W_per_m = wire.loss_W_per_m_K * (T_C - wire.ambient_C)
    held = loss_W_per_m * r_Ohm_per_m / wire.field_V_per_m**2
    # it may cool by 13 K or warm by 13 K to its branches, of 55 K above the air
    assert p.plan[0].mean() == pytest.approx(held, rel=13.0 / 55.0)


def test_a_duty_that_holds_is_that_of_the_resistance_at_its_temperature():
    """With r(T) = r_phases (1 + a (T - T0)): P = D E^2 / r is what the wire loses to the air."""
    per_K, at_C, T_C, xi = 1e-3, 25.0, 80.0, 0.5
    wire = SmaWire(resistivity=Resistivity(per_K, per_K, at_C=at_C))
    duty = hold(wire_laws([wire])[0], T_C, xi)
    r_Ohm_per_m = 0.5 * (126.0 + 113.0) * (1.0 + per_K * (T_C - at_C))
    loss_W_per_m = wire.loss_W_per_m_K * (T_C - wire.ambient_C)
    assert duty * wire.field_V_per_m**2 / r_Ohm_per_m == pytest.approx(loss_W_per_m)


def _sequences():
    yield np.zeros(N_BLOCKS, dtype=np.uint8)
    for a in range(N_BLOCKS):
        for b in range(a + 1, N_BLOCKS + 1):
            row = np.zeros(N_BLOCKS, dtype=np.uint8)
            row[a:b] = 1
            yield row


def _changed(row):
    for a in range(N_BLOCKS):
        for b in range(a + 1, N_BLOCKS + 1):
            other = row.copy()
            other[a:b] = 1 - row[a]
            yield other


def _switches(plan):
    return int((np.diff(np.hstack([OFF[:, None], plan]).astype(int)) != 0).sum())


def _error(plan, wanted):
    """Of a plan that is only posed: carried on by a block, it is given a block early."""
    longer = planner(n_blocks=len(wanted) + 1)
    longer.plan[:, 1:] = plan
    posed(longer, np.append(wanted, 0.0))
    return longer.error_N[: len(wanted)]


def test_cells_that_are_locked_or_lost_are_left_alone():
    p = posed(planner(), np.full(N_BLOCKS, 3.0), locked=(4, 0, 0), usable=(1, 1, 0))
    p.search(10**9)
    assert not p.plan[0, :4].any()
    assert p.plan[1].any()
    assert not p.plan[2].any()


def test_cells_stay_on_and_off_for_as_long_as_they_must():
    """The same wishes without such times have shorter ones."""
    rng = np.random.default_rng(4)
    shortest = {}
    for least in ((1, 1), (3, 2)):
        p, runs = planner(least=least), {0: [], 1: []}
        for _ in range(20):
            posed(p, np.cumsum(rng.normal(0.15, 0.3, N_BLOCKS)))
            p.search(10**9)
            for row in np.hstack([OFF[:, None], p.plan]).astype(int):
                at = np.flatnonzero(np.diff(row)) + 1
                for begins, ends in itertools.pairwise(at):
                    runs[row[begins]].append(ends - begins)
            p.plan[:] = 0
        shortest[least] = min(runs[1]), min(runs[0])
    assert shortest[1, 1] == (1, 1)
    assert shortest[3, 2] == (3, 2)


def test_the_plan_begins_where_the_wires_are_after_the_lead():
    """On all along: one block later is where a lead of a block begins."""
    model, on, locked = wire_model(ARRAY, ACTIVATION, SHARES), OFF + 1, (N_BLOCKS,) * 3
    late = WirePlanner(model, PlanGrid(BLOCK_S, BLOCK_S, N_BLOCKS), PlanPrices())
    posed(late, np.zeros(N_BLOCKS), on=on, locked=locked)
    soon = posed(planner(), np.zeros(N_BLOCKS), on=on, locked=locked)
    assert late.error_N[-1] < -0.5 * SHARES.sum()
    assert late.error_N[:-1] == pytest.approx(soon.error_N[1:], abs=0.01 * SHARES.sum())


def test_a_switch_that_gains_less_than_its_price_is_not_made():
    wanted = np.full(N_BLOCKS, 0.1)
    p = posed(planner(price=float(wanted @ wanted)), wanted)
    p.search(10**9)
    assert not p.plan.any()


@pytest.mark.parametrize("modulated", [False, True])
def test_a_search_cut_off_leaves_no_worse_a_plan(modulated):
    wanted = np.linspace(0.0, 2.5, N_BLOCKS)
    p = posed(planner(modulated=modulated), wanted)
    costs = [float(p.error_N @ p.error_N)]
    for _ in range(40):
        p.search(20)
        costs.append(float(p.error_N @ p.error_N))
    assert np.all(np.diff(costs) <= 1e-12)
    assert costs[-1] < 0.5 * costs[0]


def test_a_search_in_pieces_ends_where_one_at_a_stretch_does():
    wanted = np.linspace(0.0, 2.5, N_BLOCKS)
    whole = posed(planner(price=0.01), wanted)
    whole.search(10**9)
    pieces = posed(planner(price=0.01), wanted)
    while not pieces.finished:
        before = pieces.n_looked_at
        pieces.search(7)
        # a stretch that begins now is looked at to its end
        assert pieces.n_looked_at - before <= 7 + N_BLOCKS + N_BLOCKS * (N_BLOCKS + 1) // 2
    assert np.array_equal(pieces.plan, whole.plan)
    assert pieces.n_looked_at == whole.n_looked_at


def test_a_cell_whose_search_is_always_cut_off_leaves_the_others_theirs():
    p = planner()
    for _ in range(6):
        posed(p, np.full(N_BLOCKS, SHARES.sum()))
        p.search(5 * N_BLOCKS)
    assert p.plan.any(axis=1).all()


def test_a_search_with_no_time_for_descent_and_changes_has_them_in_turns():
    """Wires that are cold have no derivatives: without a change of an interval no duty leaves 0."""
    p, state = planner(modulated=True, prices=PlanPrices(turn_N2=1e-4)), COLD
    for _ in range(12):
        posed(p, np.full(N_BLOCKS, SHARES.sum()), state=state.copy())
        p.search(10 * N_BLOCKS)
    assert p.plan.any(axis=1).all()


def test_a_wire_that_is_lost_keeps_its_force_however_the_descent_changes_the_others():
    """It is warm and cools: what it still pulls is part of the error, and of no change."""
    warm = np.array([[91.0, 0.3, 0.3], [91.0, 0.3, 0.3], [90.0, 1.0, 1.0]])
    wanted = np.full(N_BLOCKS, 0.6 * SHARES.sum())
    p = posed(planner(modulated=True), wanted, usable=(1, 1, 0), state=warm)
    cooling_N = wanted - p.error_N
    cooling_N -= p._problem.y[:2].sum(axis=0)
    assert cooling_N[0] > 0.1 * SHARES[2]
    p._descent.begin()
    p._descent.search(0, 10**6)
    assert p.plan[:2].any()
    pulled_N = p._problem.y
    np.testing.assert_allclose(pulled_N[2], cooling_N, atol=1e-12)
    np.testing.assert_allclose(wanted - p.error_N, pulled_N.sum(axis=0), atol=1e-12)


def test_a_search_with_less_time_than_a_step_takes_goes_on_all_the_same():
    p = posed(planner(modulated=True), np.full(N_BLOCKS, 0.6 * SHARES.sum()))
    for _ in range(2000):
        p.search(1)
        if p.finished:
            break
    assert p.finished


def test_a_descent_counts_its_steps_as_what_they_take():
    """A linearised block takes 5 predicted ones, a sweep over M blocks 2 M^2 / 40."""
    descent = posed(planner(modulated=True), np.full(N_BLOCKS, 0.6 * SHARES.sum()))._descent
    descent.begin()
    sweep = 2 * N_BLOCKS**2 // 40
    most = 3 * 5 * N_BLOCKS + 3 * 6 * sweep
    assert descent.search(0, most - 1) == most - sweep
    assert descent.search(0, sweep) == sweep
    assert descent.search(0, 3 * N_BLOCKS - 1) == 2 * N_BLOCKS  # of three cells' new forces


def test_a_search_with_time_for_both_begins_with_the_descent(monkeypatch):
    begun, begin = [], DutyDescent.begin
    monkeypatch.setattr(DutyDescent, "begin", lambda descent: (begun.append(1), begin(descent)))
    p = posed(planner(modulated=True), np.full(N_BLOCKS, SHARES.sum()))
    p.search(10**6)
    before = len(begun)
    posed(p, np.full(N_BLOCKS, SHARES.sum()))
    assert (before > 0, len(begun)) == (True, before + 1)


def test_wires_beside_cells_that_are_none_are_refused():
    with pytest.raises(ModelError, match="some cells are wires and some are not"):
        wire_model(ARRAY, [*ACTIVATION[:2], CellActivation(4.0)], SHARES)


@pytest.mark.parametrize(
    ("budget", "posing", "searched"),
    [(5, 30, [70, 100, 100, 100, 100, 70]), (5, 80, [50, 100, 100, 100, 100, 50]),
     (1, 80, [100, 0, 0, 0, 0, 100])],
)  # fmt: skip
def test_what_posing_a_plan_costs_is_taken_from_the_search_of_its_tick(budget, posing, searched):
    """At most half, and nothing where the search has no other tick."""
    search, cells, off = Counted(), np.zeros(2), np.zeros(2, dtype=np.uint8)
    planned = Planned(PlanRules(5, budget, 100, 0.0, 0.0, 0.01), search, cells, NoReference())
    planned.posing = posing
    for tick in range(6):
        search.steps.append(0)
        planned.step(0.01 * tick, ArrayEstimate(off, np.ones_like(off), cells, cells), cells)
    assert search.steps == searched


class Wires:
    unknown_N = 0.0

    def look(self):
        model = wire_model(ARRAY, ACTIVATION, SHARES)
        return model.laws, model.static_gains_N, COLD


def estimate_of(on):
    return ArrayEstimate(on.astype(np.uint8), OFF + 1, COLD[0], COLD[0], wires=Wires())


class Counted:
    n_looked_at, finished = 0, True

    def __init__(self):
        self.steps = []

    def search(self, n_steps):
        self.steps[-1] += n_steps


class Planned(PlannedCells):
    """Has all cells on; `posed` are those that it was told of."""

    posing = 0

    def __init__(self, *args):
        super().__init__(*args)
        self.posed = []

    def _apply(self, t_s, usable):
        self._held.on[:], self._held.since_s[:] = 1.0, t_s

    def _pose(self, t_s, estimate, reported):
        self.posed.append(reported.tolist())
        return self.posing


def test_a_plan_applied_as_the_next_is_posed_is_not_taken_back():
    """With a budget of a whole plan both are in one tick, before any board could report."""
    rules, search = PlanRules(5, 5, 1, 0.0, 0.0, 0.01), Counted()
    planned = Planned(rules, search, np.zeros(2), NoReference())
    off, cells = np.zeros(2, dtype=np.uint8), np.zeros(2)
    for tick in range(6):
        search.steps.append(0)
        planned.step(0.01 * tick, ArrayEstimate(off, np.ones_like(off), cells, cells), cells)
    assert planned.posed == [[0, 0], [1, 1]]
    assert cells.tolist() == [1.0, 1.0]


@pytest.mark.parametrize(("answer_ticks", "seen"), [(2, [0, 0]), (3, [1, 1])])
def test_a_report_of_before_the_last_switch_does_not_take_it_back(answer_ticks, seen):
    """A board that is read once in two ticks reports a switch after up to three."""
    rules, search = PlanRules(5, 3, 1, 0.0, 0.0, 0.01, answer_ticks), Counted()
    planned = Planned(rules, search, np.zeros(2), NoReference())
    off, cells = np.zeros(2, dtype=np.uint8), np.zeros(2)
    for tick in range(6):
        search.steps.append(0)
        planned.step(0.01 * tick, ArrayEstimate(off, np.ones_like(off), cells, cells), cells)
    assert planned.posed == [[0, 0], seen]


def test_every_cell_is_predicted_once_as_a_plan_is_posed():
    class Unsearched(Counted):
        plan = np.zeros((3, N_BLOCKS))

        def pose(self, *problem):
            pass

    search = Unsearched()
    planned = WireOptimal(PlanRules(5, 2, 100, 0.0, 0.0, 0.01), search, Steps((0.0,), (1.0,)), 0)
    search.steps.append(0)
    planned.step(0.0, estimate_of(OFF), np.zeros(3))
    assert search.steps == [100 - 3 * N_BLOCKS]


def armed_again(set_point_N, rules, *, modulated=False):
    """The cells that go on within 35 ticks of a restart; before it 2 N are wanted."""
    reference = Steerable(NoReference())
    reference.held = 2.0
    planned = WireOptimal(rules, planner(modulated=modulated), reference, 16)
    cells = np.zeros(3)
    for tick in range(25):
        planned.step(0.01 * tick, estimate_of(cells > 0.0), cells)
    assert cells.any()
    reference.held = set_point_N
    planned.restart()
    on, cells = np.zeros((2, 3))
    for tick in range(25, 60):
        planned.step(0.01 * tick, estimate_of(cells > 0.0), cells)
        on = np.maximum(on, cells)
    return on


@pytest.mark.parametrize(("modulated", "per_tick"), [(False, 40), (True, 400)])
def test_a_search_of_before_the_arming_is_stopped(modulated, per_tick):
    """Without a set point nothing is posed: the search that was underway must not go on."""
    rules = PlanRules(10, 3, per_tick, 0.0, 0.0, 0.01)
    assert not armed_again(np.nan, rules, modulated=modulated).any()


def test_a_cell_that_was_on_before_the_arming_need_not_stay_off():
    """Its minimum time off is a minute; what it did before the arming does not count."""
    assert armed_again(2.0, PlanRules(10, 3, 10_000, 0.0, 60.0, 0.01)).any()
