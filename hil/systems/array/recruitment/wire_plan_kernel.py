"""The arithmetic of `hil.systems.array.recruitment.wire_plan`, which says what it is for.

A `cell` is a wire's law, its branches, static gain, direct part, lag weights and the length of a
block; `prices` are those of a switch, of a change of austenite from 0 to 1, and of a block at full
power.
"""

import numpy as np

from hil.compiled import njit
from hil.mechanics.arrays import Array
from hil.mechanics.sma.stressed import AS_TABULATED, advance
from hil.mechanics.sma.wire import DR_AT, E2_AT, G_AT, R_M_AT, T_A_AT

AS_IT_IS, AS_PLANNED = 1, 2  # sequences that a search changes
OFF, ON, HOLD = 0, 1, 2  # levels that an interval may get


def lag_weights(rate_per_s: Array, h: float) -> Array:
    """(N, 3): z after h is w0 z + w1 xi before + w2 xi after, xi linear between."""
    a = np.exp(-rate_per_s * h)
    ramp = 1.0 - (1.0 - a) / (rate_per_s * h)
    return np.column_stack([a, 1.0 - a - ramp, ramp])


@njit(cache=True)
def step(cell, duty, T, xi, z):  # type: ignore[no-untyped-def]
    """Temperature, austenite and lag after a block, and the force of the cell."""
    law, knots, gain_N, direct, lag, h = cell
    T_new, xi_new = advance(law, knots, AS_TABULATED, duty, T, xi, h)
    z_new = lag[0] * z + lag[1] * xi + lag[2] * xi_new
    return T_new, xi_new, z_new, gain_N * (direct * xi_new + (1.0 - direct) * z_new)


@njit(cache=True)
def running(prices, duty, before, turned):  # type: ignore[no-untyped-def]
    """Cost of a block beside its error."""
    cost = prices[1] * abs(turned) + prices[2] * duty
    return cost + prices[0] if duty != before else cost


@njit(cache=True)
def hold(law, T, xi):  # type: ignore[no-untyped-def]
    """The duty that keeps a wire's temperature, and so its austenite."""
    r = law[R_M_AT] + law[DR_AT] * xi
    return min(1.0, max(0.0, law[G_AT] * (T - law[T_A_AT]) * r / law[E2_AT]))


@njit(cache=True)
def pose(cells, lead, state, on, locked, usable, wanted, plan, y, error):  # type: ignore[no-untyped-def]
    """Continue the plan by a block, predict every cell, and return the running cost."""
    laws, knots, gains_N, direct, lags, h = cells
    lead_lags, lead_s = lead
    n_cells, n_blocks = plan.shape
    error[:] = wanted
    for n in range(n_cells):
        first = laws[n], knots[n], gains_N[n], direct[n], lead_lags[n], lead_s
        T, xi, z, _ = step(first, on[n], state[n, 0], state[n, 1], state[n, 2])
        state[n, 0], state[n, 1], state[n, 2] = T, xi, z
        for b in range(n_blocks - 1):
            plan[n, b] = plan[n, b + 1]
        for b in range(n_blocks):
            if not usable[n]:
                plan[n, b] = 0.0
            elif b < locked[n]:
                plan[n, b] = on[n]
        cell = laws[n], knots[n], gains_N[n], direct[n], lags[n], h
        for b in range(n_blocks):
            T, xi, z, y[n, b] = step(cell, plan[n, b], T, xi, z)
            error[b] -= y[n, b]


@njit(cache=True)
def improve(  # type: ignore[no-untyped-def]
    cell, state, on, limits, prices, plan, y, error, room, at, best, n_steps
):
    """Continue the search for this cell's best change, for about this many steps.

    Returns predicted steps, whether a better sequence was found, and whether the search is
    complete. `at` holds its state: base (0: start), interval, block at which the base's error is
    too large.
    """
    locked, least, n_levels = limits
    rest, work, tried = room
    n_blocks = len(plan)
    base, cheapest, planned = tried[0], tried[1], tried[2]
    steps, better = 0, False
    if at[0] == 0:
        best[0] = 0.0
        before, x = on, state[1]
        T, xi, z = state
        for b in range(n_blocks):
            rest[b] = error[b] + y[b]
            T, xi, z, _ = step(cell, plan[b], T, xi, z)
            best[0] += error[b] * error[b] + running(prices, plan[b], before, xi - x)
            before, x = plan[b], xi
        planned[:] = plan
        at[0], at[1] = AS_IT_IS, -1
    while at[0] <= AS_PLANNED:
        if at[1] < 0:
            base[:] = planned
            if at[0] == AS_IT_IS:
                base[:] = on
            elif not np.any(planned != on):
                break
            at[2] = _prefix(cell, state, on, prices, base, rest, work[0], best[0])
            steps += at[2]
            whole = work[0, n_blocks, 3]
            if at[2] == n_blocks and whole < best[0] * (1.0 - 1e-12):
                best[0], better = whole, True
                cheapest[:] = base
            at[1] = locked * n_levels
        while at[1] < min(at[2] + 1, n_blocks) * n_levels:
            if steps >= n_steps:
                if better:
                    _take(cell, state, cheapest, rest, plan, y, error)
                return steps, better, False
            a = at[1] // n_levels
            level = at[1] % n_levels
            to = hold(cell[0], work[0, a, 0], work[0, a, 1]) if level == HOLD else float(level)
            if to != base[a]:
                more, cost = _stretch(
                    cell, on, (to, least, prices), base, rest, work, a, best[0], cheapest
                )
                steps += more
                if cost < best[0]:
                    best[0], better = cost, True
            at[1] += 1
        at[0] += 1
        at[1] = -1
    at[0] = 0
    if better:
        _take(cell, state, cheapest, rest, plan, y, error)
    return steps, better, True


@njit(cache=True)
def _take(cell, state, sequence, rest, plan, y, error):  # type: ignore[no-untyped-def]
    T, xi, z = state
    for b in range(len(plan)):
        plan[b] = sequence[b]
        T, xi, z, y[b] = step(cell, plan[b], T, xi, z)
        error[b] = rest[b] - y[b]


@njit(cache=True)
def _prefix(cell, state, on, prices, base, rest, first, best):  # type: ignore[no-untyped-def]
    """Predict the base from its start to its end, or until its error alone is too large."""
    first[0, 0], first[0, 1], first[0, 2], first[0, 3] = state[0], state[1], state[2], 0.0
    before = on
    for b in range(len(base)):
        T, xi, z, force_N = step(cell, base[b], first[b, 0], first[b, 1], first[b, 2])
        e = rest[b] - force_N
        first[b + 1, 0], first[b + 1, 1], first[b + 1, 2] = T, xi, z
        first[b + 1, 3] = first[b, 3] + e * e
        first[b + 1, 3] += running(prices, base[b], before, xi - first[b, 1])
        before = base[b]
        if first[b + 1, 3] >= best:
            return b
    return len(base)


@njit(cache=True)
def _stretch(cell, on, change, base, rest, work, a, best, cheapest):  # type: ignore[no-untyped-def]
    """Return predicted steps, and the least cost of the base with an interval changed from here.

    A sequence that costs less than `best` is written to `found`; without one, `best` is returned.
    """
    to, least, prices = change
    n_blocks = len(base)
    first, second = work[0], work[1]
    steps = 0
    second[a] = first[a]
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
        if second[c, 3] >= best:
            break
        if c < n_blocks and base[c] == to:
            continue
        cost = second[c, 3]
        was = to
        for b in range(c, n_blocks):
            x = xi
            T, xi, z, force_N = step(cell, base[b], T, xi, z)
            e = rest[b] - force_N
            cost += e * e + running(prices, base[b], was, xi - x)
            was = base[b]
            steps += 1
            if cost >= best:
                break
        if cost < best * (1.0 - 1e-12) and _holds(base, a, c, to, on, least):
            best = cost
            cheapest[:a], cheapest[a:c], cheapest[c:] = base[:a], to, base[c:]
    return steps, best


@njit(cache=True)
def _holds(base, a, c, to, on, least):  # type: ignore[no-untyped-def]
    """Whether no cell is switched twice within its minimum time on or off."""
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
