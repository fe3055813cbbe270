"""The search against a mixed-integer programme and against looking at every plan."""

from itertools import product

import numpy as np
import pytest
import scipy.optimize as so
from hypothesis import given, settings
from hypothesis import strategies as st

from hil.systems.array.recruitment.planner import Planner, level_table

MIGA6 = np.array([0.6004, 0.2573, 0.3431, 0.2573, 0.1716, 0.1716])


def lag_response(n_samples, n_blocks, per_block, share=0.25):
    """G of a first-order lag that goes a quarter of the way a sample."""
    g = 1.0 - (1.0 - share) ** np.arange(1, n_samples + 1)
    G = np.zeros((n_samples, n_blocks))
    for b in range(n_blocks):
        G[b * per_block :, b] = g[: n_samples - b * per_block]
    return G


def feasible_change(on, n_of, b, history, locked, least):
    """Smallest and largest change of every kind at block b, from the words of the rule."""
    low, high = [], []
    for c in range(len(on)):
        held_on = locked[0, c, b] + sum(max(0, h[c]) for h in history[max(0, b - least[0] + 1) :])
        held_off = locked[1, c, b] + sum(max(0, -h[c]) for h in history[max(0, b - least[1] + 1) :])
        low.append(-max(0, on[c] - held_on))
        high.append(max(0, n_of[c] - on[c] - held_off))
    return low, high


def fewest_switches(table, now, changes):
    """Of the changes to sets of one force the one with the fewest switches; the first of equals."""
    of_level = {}
    for change in changes:
        force_N = float(np.dot(np.add(now, change), table.gain_N))
        of_level.setdefault(force_N, []).append(change)
    return [min(several, key=lambda change: np.abs(change).sum()) for several in of_level.values()]


def best_by_looking_at_all(table, G, rho, price, least, on, n_of, locked, *, by_level=False):
    """Least cost over every sequence of sets, or of levels with the fewest switches in a block."""
    best = np.inf

    def walk(b, now, history, steps):
        nonlocal best
        if b == G.shape[1]:
            switches = sum(abs(x) for h in history for x in h)
            best = min(best, float(((rho - G @ np.array(steps)) ** 2).sum()) + price * switches)
            return
        low, high = feasible_change(now, n_of, b, history, locked, least)
        changes = product(*(range(a, z + 1) for a, z in zip(low, high, strict=True)))
        for delta in fewest_switches(table, now, changes) if by_level else changes:
            new = [n + d for n, d in zip(now, delta, strict=True)]
            walk(b + 1, new, [*history, delta], [*steps, float(np.dot(delta, table.gain_N))])

    walk(0, list(on), [], [])
    return best


def _solved(table, G, rho, price, least, on, n_of, locked):
    planner = Planner(table, G, price, *least)
    planner.pose(rho, np.array(on), np.array(n_of), locked)
    planner.search(10_000_000)
    assert planner.finished
    return planner


def _no_lock(table, n_blocks):
    return np.zeros((2, len(table.gain_N), n_blocks), dtype=np.int64)


@settings(deadline=None, max_examples=settings().max_examples // 2)
@given(
    seed=st.integers(0, 10_000),
    least=st.tuples(st.integers(1, 3), st.integers(1, 3)),
)
def test_without_a_price_the_search_finds_the_best_of_all_plans(seed, least):
    rng = np.random.default_rng(seed)
    gains_N = rng.choice([0.2, 0.3, 0.5], size=4)
    table = level_table(gains_N)
    G = lag_response(8, 3, 2)
    n_of = np.array([(gains_N == s).sum() for s in table.gain_N])
    on = np.array([rng.integers(0, n + 1) for n in n_of])
    rho = rng.normal(0.0, 0.4, 8)
    args = (table, G, rho, 0.0, least, on, n_of, _no_lock(table, 3))
    if least == (1, 1):  # any set can be reached: the levels alone decide
        assert _solved(*args).cost_N2 == pytest.approx(best_by_looking_at_all(*args), abs=1e-12)
    else:
        assert _solved(*args).cost_N2 >= best_by_looking_at_all(*args) - 1e-12


def priced(gains_N, seed, price):
    """A problem with a price, minimum times, and cells of the first kind locked."""
    rng = np.random.default_rng(seed)
    table = level_table(gains_N)
    n_of = np.bincount(table.kind)
    least = (int(rng.integers(1, 4)), int(rng.integers(1, 4)))
    on = rng.integers(0, n_of + 1)
    locked = np.zeros((2, len(n_of), 4), dtype=np.int64)
    locked[0, 0, 0] = rng.integers(0, on[0] + 1)
    locked[1, 0, :2] = rng.integers(0, n_of[0] - on[0] + 1)
    rho = rng.normal(0.0, 0.4, 8)
    return table, lag_response(8, 4, 2), rho, price, least, on, n_of, locked


@settings(deadline=None, max_examples=settings().max_examples // 4)
@given(
    gains_N=st.sampled_from([[0.2] * 5, [0.1, 0.2, 0.4]]),
    seed=st.integers(0, 10_000),
    price=st.sampled_from([0.002, 0.01, 0.05]),
)
def test_where_every_level_is_one_set_it_finds_the_best_of_all_plans(gains_N, seed, price):
    """Whatever the price, the minimum times and the locks."""
    args = priced(gains_N, seed, price)
    assert _solved(*args).cost_N2 == pytest.approx(best_by_looking_at_all(*args), abs=1e-12)


@settings(deadline=None, max_examples=settings().max_examples // 4)
@given(seed=st.integers(0, 10_000), price=st.sampled_from([0.002, 0.01, 0.05]))
def test_of_unlike_sets_with_one_force_no_levels_cost_less_with_the_fewest_switches(seed, price):
    """Cells of 1/8, 1/4 and 3/8 N; what the search begins with may cost less than any of these."""
    args = priced([0.125, 0.25, 0.375], seed, price)
    by_level = best_by_looking_at_all(*args, by_level=True)
    assert best_by_looking_at_all(*args) - 1e-12 <= _solved(*args).cost_N2 <= by_level + 1e-12


def milp_optimum(table, G, rho, price, on, n_of):
    """The same problem with absolute instead of squared errors, as HiGHS solves it.

    Columns: changes up and down of every kind and block (integer), then the errors' sizes.
    """
    J, M = G.shape
    C = len(table.gain_N)
    n_int = 2 * M * C
    cost = np.concatenate([np.full(n_int, price), np.ones(J)])
    effect = np.zeros((J, n_int))
    for b in range(M):
        for c in range(C):
            effect[:, b * C + c] = G[:, b] * table.gain_N[c]
            effect[:, M * C + b * C + c] = -G[:, b] * table.gain_N[c]
    eye = np.eye(J)
    rows = [
        so.LinearConstraint(np.hstack([effect, eye]), lb=rho),
        so.LinearConstraint(np.hstack([-effect, eye]), lb=-rho),
    ]
    count = np.zeros((M * C, n_int + J))
    for b in range(M):
        for c in range(C):
            for i in range(b + 1):
                count[b * C + c, i * C + c] = 1.0
                count[b * C + c, M * C + i * C + c] = -1.0
    rows.append(
        so.LinearConstraint(count, lb=np.tile(-np.array(on), M), ub=np.tile(np.array(n_of) - on, M))
    )
    found = so.milp(
        cost, constraints=rows, integrality=np.concatenate([np.ones(n_int), np.zeros(J)]),
        bounds=so.Bounds(0.0, np.inf),
    )  # fmt: skip
    assert found.success
    changes = found.x[: M * C] - found.x[M * C : n_int]
    return np.rint(changes).reshape(M, C) @ table.gain_N, found.fun


@pytest.mark.parametrize("seed", range(6))
def test_a_mixed_integer_solver_finds_no_plan_of_less_squared_error(seed):
    """HiGHS minimises absolute errors; its plan is one the search must not lose against.

    And the other way round: the search's plan costs HiGHS's objective at least its optimum.
    """
    rng = np.random.default_rng(seed)
    table = level_table(MIGA6)
    n_of = np.bincount(table.kind)
    on = np.array([rng.integers(0, n + 1) for n in n_of])
    G = lag_response(12, 4, 3)
    rho = np.cumsum(rng.normal(0.0, 0.12, 12))
    planner = _solved(table, G, rho, 0.0, (1, 1), on, n_of, _no_lock(table, 4))
    steps, absolute = milp_optimum(table, G, rho, 0.0, on, n_of)
    assert planner.cost_N2 <= float(((rho - G @ steps) ** 2).sum()) + 1e-9
    own = np.diff(np.vstack([on, planner.plan]), axis=0) @ table.gain_N
    assert float(((rho - G @ own) ** 2).sum()) == pytest.approx(planner.cost_N2, abs=1e-9)
    assert np.abs(rho - G @ own).sum() >= absolute - 1e-6


def test_the_level_table_has_the_levels_of_all_subsets():
    table = level_table(MIGA6)
    sums = np.array([np.dot(MIGA6, on) for on in product((0, 1), repeat=6)])
    assert np.allclose(table.levels_N, np.unique(np.round(sums, 9)), atol=1e-8)
    assert len(table.members) == len(table.counts) == 36


def test_a_search_spread_over_ticks_ends_where_one_in_a_piece_does():
    rng = np.random.default_rng(5)
    table = level_table(MIGA6)
    n_of, on = np.bincount(table.kind), np.zeros(4, dtype=np.int64)
    G, rho = lag_response(12, 4, 3), rng.normal(0.4, 0.3, 12)
    whole = _solved(table, G, rho, 0.001, (1, 1), on, n_of, _no_lock(table, 4))
    pieces = Planner(table, G, 0.001, 1, 1)
    pieces.pose(rho, on, n_of, _no_lock(table, 4))
    costs = [pieces.cost_N2]
    while not pieces.finished:
        pieces.search(7)
        costs.append(pieces.cost_N2)
    assert np.array_equal(pieces.plan, whole.plan)
    assert np.all(np.diff(costs) <= 0.0)


def test_a_search_without_time_keeps_the_last_plan_carried_on():
    table = level_table(np.full(4, 0.25))
    planner = Planner(table, lag_response(8, 4, 2), 0.0, 1, 1)
    planner.plan[:, 0] = [1, 2, 3, 4]
    planner.pose(np.zeros(8), np.array([1]), np.array([4]), _no_lock(table, 4))
    planner.search(0)
    assert not planner.finished
    assert planner.plan[:, 0].tolist() == [2, 3, 4, 4]


def test_a_search_that_is_stopped_ends_with_the_plan_that_it_has():
    table = level_table(np.full(4, 0.25))
    planner = Planner(table, lag_response(8, 4, 2), 0.0, 1, 1)
    planner.pose(np.full(8, 0.7), np.array([0]), np.array([4]), _no_lock(table, 4))
    planner.stop()
    planner.search(10_000)
    assert planner.finished
    assert not planner.plan.any()


def test_too_many_sets_and_no_force_are_refused():
    with pytest.raises(ValueError, match="too many to plan with"):
        level_table(np.repeat(np.arange(1.0, 9.0), 6))
    with pytest.raises(ValueError, match="no cell adds"):
        level_table(np.zeros(4))


@settings(deadline=None, max_examples=50)
@given(seed=st.integers(0, 10_000))
def test_a_plan_that_is_not_searched_costs_what_its_steps_do(seed):
    """|rho - G f|^2 and the price of every switch, in NumPy, before and after the search."""
    rng = np.random.default_rng(seed)
    table, G = level_table([0.5, 0.5, 0.2]), lag_response(8, 3, 2)
    planner = Planner(table, G, 0.01, 1, 1)
    on, n_of = np.array([1, 0]), np.array([2, 1])
    for n_levels in (0, 10_000):
        rho = rng.normal(0.0, 0.4, 8)
        planner.pose(rho, on, n_of, _no_lock(table, 3))
        planner.search(n_levels)
        assert (planner.n_looked_at > 0) == (n_levels > 0)
        change = np.diff(np.vstack((on, planner.plan)), axis=0)
        cost = ((rho - G @ (change @ table.gain_N)) ** 2).sum() + 0.01 * np.abs(change).sum()
        assert planner.cost_N2 == pytest.approx(cost, rel=1e-9, abs=1e-12)


def test_the_plan_that_is_carried_on_switches_no_cell_that_must_stay():
    """Without a search the last plan, here of no cell, is what is done."""
    table = level_table(np.full(5, 0.2))
    planner = Planner(table, lag_response(8, 4, 2), 0.0, 1, 1)
    locked = np.zeros((2, 1, 4), dtype=np.int64)
    locked[0, 0] = [3, 2, 0, 0]  # of the three that are on
    planner.pose(np.zeros(8), np.array([3]), np.array([5]), locked)
    assert planner.plan.ravel().tolist() == [3, 2, 0, 0]


def test_cells_of_one_force_that_are_said_to_be_unlike_are_two_kinds():
    table = level_table([0.2, 0.2, 0.2], kinds=[0, 1, 0])
    assert table.kind.tolist() == [0, 1, 0]
    assert sorted(map(tuple, table.counts)) == [(a, b) for a in range(3) for b in range(2)]
