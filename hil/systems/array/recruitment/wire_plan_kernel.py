"""The arithmetic of `hil.systems.array.recruitment.wire_plan`, which says what it is for.

Kernels take plain tuples, which pass from Python sooner, and name their parts.
"""

from typing import NamedTuple

import numpy as np

from hil.compiled import borrowed, njit, put
from hil.mechanics.arrays import Array, Indices, Mask, Records, record_type
from hil.mechanics.sma.stressed import AS_TABULATED, N_KNOTS, advance
from hil.mechanics.sma.wire import LAW, heated_ohm_per_m

AS_IT_IS, AS_PLANNED = 1, 2  # sequences that a search changes
OFF, ON, HOLD = 0, 1, 2  # levels that an interval may get


CELL = record_type("gain_N", "direct", "block_s", law=LAW, knots_C=N_KNOTS, lag=3)
"""A cell, over blocks of one length: its static gain, and the part of it without a lag; law of its
wire, and knots of its branches; `lag_weights`."""


class PlanPrices(NamedTuple):
    """Prices in the unit of the sum of squared errors, N2.

    Attributes
    ----------
    switch_N2, turn_N2, power_N2 : of a switch; of a change of austenite from 0 to 1; of a block at
        full power
    """

    switch_N2: float = 0.0
    turn_N2: float = 0.0
    power_N2: float = 0.0


class Problem(NamedTuple):
    """A plan and what it is for; the search and the descent work on the same one.

    Attributes
    ----------
    cells : (N,) array of CELL
    state : (N, 3) array, temperature, austenite and lag at the first block
    on : (N,) array, duties before the first block
    locked : (N,) array, number of blocks for which a cell must not change
    usable : (N,) array
    plan, y : (N, M) arrays, duties, and the forces at the ends of the blocks
    error : (M,) array, set point minus force
    """

    cells: Records
    prices: PlanPrices
    state: Array
    on: Array
    locked: Indices
    usable: Mask
    plan: Array
    y: Array
    error: Array

    def plain(self) -> tuple[object, ...]:
        """What a kernel takes of all cells."""
        return self.cells, tuple(self.prices), *self[2:]


class Search(NamedTuple):
    """The search for a cell's best change.

    Attributes
    ----------
    least : (2,) array, blocks for which a cell stays off, and on
    rest : (M,) array, set point minus the force of all other cells
    first, second : (M + 1, 4) arrays
        Temperature, austenite, lag and cost before each block: of the base, and of its change.
    base, cheapest, planned : (M,) arrays
        The sequence that is changed, the best one so far, and the plan at the start.
    at : (3,) array, base (0: start), interval, block at which the base's error is too large
    best_N2 : (1,) array, cost of `cheapest`
    """

    least: Indices
    rest: Array
    first: Array
    second: Array
    base: Array
    cheapest: Array
    planned: Array
    at: Indices
    best_N2: Array


def lag_weights(rate_per_s: Array, h: float) -> Array:
    """(N, 3): z after h is w0 z + w1 xi before + w2 xi after, xi linear between."""
    a = np.exp(-rate_per_s * h)
    ramp = 1.0 - (1.0 - a) / (rate_per_s * h)
    return np.column_stack([a, 1.0 - a - ramp, ramp])


@njit(cache=True)
def step(cell, duty, T, xi, z):  # type: ignore[no-untyped-def]
    """Temperature, austenite and lag after a block, and the force of the cell."""
    return after(cell, (cell.lag, cell.block_s), duty, T, xi, z)


@njit(cache=True)
def after(cell, over, duty, T, xi, z):  # type: ignore[no-untyped-def]
    """As `step`, `over` another time: weights of its lag, and time in s."""
    lag, for_s = over
    T_new, xi_new = advance(cell.law, cell.knots_C, AS_TABULATED, duty, T, xi, for_s)
    z_new = lag[0] * z + lag[1] * xi + lag[2] * xi_new
    return T_new, xi_new, z_new, cell.gain_N * (cell.direct * xi_new + (1.0 - cell.direct) * z_new)


@njit(cache=True)
def running(prices, duty, before, turned):  # type: ignore[no-untyped-def]
    """Cost of a block beside its error."""
    cost = prices.turn_N2 * abs(turned) + prices.power_N2 * duty
    return cost + prices.switch_N2 if duty != before else cost


@njit(cache=True)
def hold(law, T, xi):  # type: ignore[no-untyped-def]
    """The duty that keeps a wire's temperature, and so its austenite."""
    r = heated_ohm_per_m(law, T, xi)
    return min(1.0, max(0.0, law.G * (T - law.T_a) * r / law.E2))


@njit(cache=True)
def named(problem):  # type: ignore[no-untyped-def]
    cells, prices, state, on, locked, usable, plan, y, error = borrowed(problem)
    return Problem(cells, PlanPrices(*prices), state, on, locked, usable, plan, y, error)


@njit(cache=True)
def pose(problem, lead_lags, lead_s, wanted):  # type: ignore[no-untyped-def]
    """Continue the plan by a block, and predict every cell; `lead_s` is until the first block."""
    p = named(problem)
    n_cells, n_blocks = p.plan.shape
    put(wanted, p.error)
    for n in range(n_cells):
        state, plan = p.state[n], p.plan[n]
        cell = p.cells[n]
        T, xi, z, _ = after(cell, (lead_lags[n], lead_s), p.on[n], state[0], state[1], state[2])
        state[0], state[1], state[2] = T, xi, z
        for b in range(n_blocks - 1):
            plan[b] = plan[b + 1]
        for b in range(n_blocks):
            if not p.usable[n]:
                plan[b] = 0.0
            elif b < p.locked[n]:
                plan[b] = p.on[n]
        for b in range(n_blocks):
            T, xi, z, p.y[n, b] = step(cell, plan[b], T, xi, z)
            p.error[b] -= p.y[n, b]


@njit(cache=True)
def improve(problem, n, search, n_levels, n_steps):  # type: ignore[no-untyped-def]
    """Continue the search for the best change of cell n, for about this many steps.

    Returns predicted steps, whether a better sequence was found, and whether the search is
    complete.
    """
    p, s = named(problem), Search(*borrowed(search))
    start, plan, on = p.state[n], p.plan[n], p.on[n]
    cell = p.cells[n]
    at, best_N2, n_blocks = s.at, s.best_N2, len(plan)
    steps, better = 0, False
    if at[0] == 0:
        best_N2[0] = 0.0
        before, x = on, start[1]
        T, xi, z = start
        for b in range(n_blocks):
            s.rest[b] = p.error[b] + p.y[n, b]
            T, xi, z, _ = step(cell, plan[b], T, xi, z)
            best_N2[0] += p.error[b] * p.error[b] + running(p.prices, plan[b], before, xi - x)
            before, x = plan[b], xi
        put(plan, s.planned)
        at[0], at[1] = AS_IT_IS, -1
    while at[0] <= AS_PLANNED:
        if at[1] < 0:
            put(s.planned, s.base)
            if at[0] == AS_IT_IS:
                s.base[:] = on
            elif not np.any(s.planned != on):
                break
            at[2] = _prefix(cell, p.prices, start, on, s)
            steps += at[2]
            whole_N2 = s.first[n_blocks, 3]
            if at[2] == n_blocks and whole_N2 < best_N2[0] * (1.0 - 1e-12):
                best_N2[0], better = whole_N2, True
                put(s.base, s.cheapest)
            at[1] = p.locked[n] * n_levels
        while at[1] < min(at[2] + 1, n_blocks) * n_levels:
            if steps >= n_steps:
                if better:
                    _take(p, n, cell, s)
                return steps, better, False
            a = at[1] // n_levels
            level = at[1] % n_levels
            to = hold(cell.law, s.first[a, 0], s.first[a, 1]) if level == HOLD else float(level)
            if to != s.base[a]:
                more, is_cheaper = _stretch(cell, p.prices, on, s, (a, to))
                steps += more
                better = better or is_cheaper
            at[1] += 1
        at[0] += 1
        at[1] = -1
    at[0] = 0
    if better:
        _take(p, n, cell, s)
    return steps, better, True


@njit(cache=True)
def _take(p, n, cell, s):  # type: ignore[no-untyped-def]
    """Make the cheapest sequence the plan of cell n."""
    T, xi, z = p.state[n]
    for b in range(len(s.cheapest)):
        p.plan[n, b] = s.cheapest[b]
        T, xi, z, p.y[n, b] = step(cell, s.cheapest[b], T, xi, z)
        p.error[b] = s.rest[b] - p.y[n, b]


@njit(cache=True)
def _prefix(cell, prices, start, on, s):  # type: ignore[no-untyped-def]
    """Predict the base from its start to its end, or until its error alone is too large."""
    base, first = s.base, s.first
    first[0, 0], first[0, 1], first[0, 2], first[0, 3] = start[0], start[1], start[2], 0.0
    before = on
    for b in range(len(base)):
        T, xi, z, force_N = step(cell, base[b], first[b, 0], first[b, 1], first[b, 2])
        e = s.rest[b] - force_N
        first[b + 1, 0], first[b + 1, 1], first[b + 1, 2] = T, xi, z
        first[b + 1, 3] = first[b, 3] + e * e
        first[b + 1, 3] += running(prices, base[b], before, xi - first[b, 1])
        before = base[b]
        if first[b + 1, 3] >= s.best_N2[0]:
            return b
    return len(base)


@njit(cache=True)
def _stretch(cell, prices, on, s, change):  # type: ignore[no-untyped-def]
    """Look for a cheaper sequence: the base with a duty in an interval from block a on.

    Returns predicted steps, and whether there is one.
    """
    a, to = change
    base, rest, first, second = s.base, s.rest, s.first, s.second
    n_blocks = len(base)
    steps, best_N2, is_cheaper = 0, s.best_N2[0], False
    put(first[a], second[a])
    before = base[a - 1] if a else on
    for c in range(a + 1, n_blocks + 1):
        b = c - 1
        x = second[b, 1]
        T, xi, z, force_N = step(cell, to, second[b, 0], x, second[b, 2])
        e = rest[b] - force_N
        second[c, 0], second[c, 1], second[c, 2] = T, xi, z
        second[c, 3] = second[b, 3] + e * e + running(prices, to, before, xi - x)
        before = to
        steps += 1
        if second[c, 3] >= best_N2:
            break
        if c < n_blocks and base[c] == to:
            continue
        cost_N2 = second[c, 3]
        was = to
        for b in range(c, n_blocks):
            x = xi
            T, xi, z, force_N = step(cell, base[b], T, xi, z)
            e = rest[b] - force_N
            cost_N2 += e * e + running(prices, base[b], was, xi - x)
            was = base[b]
            steps += 1
            if cost_N2 >= best_N2:
                break
        if cost_N2 < best_N2 * (1.0 - 1e-12) and _holds(base, (a, c, to), on, s.least):
            best_N2, is_cheaper = cost_N2, True
            put(base, s.cheapest)
            s.cheapest[a:c] = to
    s.best_N2[0] = best_N2
    return steps, is_cheaper


@njit(cache=True)
def _holds(base, interval, on, least):  # type: ignore[no-untyped-def]
    """Whether no cell is switched twice within its minimum time on or off."""
    a, c, to = interval
    if least[0] <= 1 and least[1] <= 1:
        return True
    since, was = -len(base), on
    for b in range(len(base)):
        now = to if a <= b < c else base[b]
        if now != was:
            if since >= 0 and b - since < least[int(was)]:
                return False
            since, was = b, now
    return True
