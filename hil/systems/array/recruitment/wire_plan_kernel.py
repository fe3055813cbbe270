"""The arithmetic of `hil.systems.array.recruitment.wire_plan`, which says what it is for."""

import numpy as np

from hil.compiled import njit
from hil.mechanics.arrays import Array
from hil.mechanics.sma.stressed import AS_TABULATED, advance

AS_IT_IS, AS_PLANNED = 1, 2  # sequences that a search changes


def lag_weights(rate_per_s: Array, h: float) -> Array:
    """(N, 3): z after h is w0 z + w1 xi before + w2 xi after, xi linear between."""
    a = np.exp(-rate_per_s * h)
    ramp = 1.0 - (1.0 - a) / (rate_per_s * h)
    return np.column_stack([a, 1.0 - a - ramp, ramp])


@njit(cache=True)
def _step(law, knots, lag, h, on, T, xi, z):  # type: ignore[no-untyped-def]
    T_new, xi_new = advance(law, knots, AS_TABULATED, on, T, xi, h)
    return T_new, xi_new, lag[0] * z + lag[1] * xi + lag[2] * xi_new


@njit(cache=True)
def pose(  # type: ignore[no-untyped-def]
    laws, knots, gains_N, direct, lead_lag, lag, lead, h, state, on, locked, usable, wanted, plan,
    y, error,
):  # fmt: skip
    n_cells, n_blocks = plan.shape
    error[:] = wanted
    for n in range(n_cells):
        T, xi, z = state[n]
        T, xi, z = _step(laws[n], knots[n], lead_lag[n], lead, float(on[n]), T, xi, z)
        state[n, 0], state[n, 1], state[n, 2] = T, xi, z
        for b in range(n_blocks - 1):
            plan[n, b] = plan[n, b + 1]
        for b in range(n_blocks):
            if not usable[n]:
                plan[n, b] = 0
            elif b < locked[n]:
                plan[n, b] = on[n]
        for b in range(n_blocks):
            T, xi, z = _step(laws[n], knots[n], lag[n], h, float(plan[n, b]), T, xi, z)
            y[n, b] = gains_N[n] * (direct[n] * xi + (1.0 - direct[n]) * z)
            error[b] -= y[n, b]


@njit(cache=True)
def improve(  # type: ignore[no-untyped-def]
    law, knots, gain_N, direct, lag, h, state, on, locked, least, price, plan, y, error, rest, work,
    tried, at, best, n_steps,
):  # fmt: skip
    """Continue the search for this cell's best change, for about this many steps.

    Returns predicted steps, whether a better sequence was found, and whether the search is
    complete. `at` holds its state: base (0: start), interval, block at which the base's error is
    too large.
    """
    n_blocks = len(plan)
    base, found, planned = tried[0], tried[1], tried[2]
    steps, better = 0, False
    if at[0] == 0:
        best[0] = 0.0
        before = on
        for b in range(n_blocks):
            rest[b] = error[b] + y[b]
            best[0] += error[b] * error[b]
            if plan[b] != before:
                best[0] += price
            before = plan[b]
        planned[:] = plan
        at[0], at[1] = AS_IT_IS, -1
    while at[0] <= AS_PLANNED:
        if at[1] < 0:
            base[:] = planned
            if at[0] == AS_IT_IS:
                base[:] = on
            elif not np.any(planned != on):
                break
            at[2] = _prefix(
                law, knots, gain_N, direct, lag, h, state, on, price, base, rest, work[0], best[0]
            )
            steps += at[2]
            whole = work[0, n_blocks, 3]
            if at[2] == n_blocks and whole < best[0] * (1.0 - 1e-12):
                best[0], better = whole, True
                found[:] = base
            at[1] = locked
        while at[1] < min(at[2] + 1, n_blocks):
            if steps >= n_steps:
                if better:
                    _take(law, knots, gain_N, direct, lag, h, state, found, rest, plan, y, error)
                return steps, better, False
            more, cost = _stretch(
                law, knots, gain_N, direct, lag, h, on, least, price, base, rest, work, at[1],
                best[0], found,
            )  # fmt: skip
            steps += more
            if cost < best[0]:
                best[0], better = cost, True
            at[1] += 1
        at[0] += 1
        at[1] = -1
    at[0] = 0
    if better:
        _take(law, knots, gain_N, direct, lag, h, state, found, rest, plan, y, error)
    return steps, better, True


@njit(cache=True)
def _take(law, knots, gain_N, direct, lag, h, state, found, rest, plan, y, error):  # type: ignore[no-untyped-def]
    T, xi, z = state
    for b in range(len(plan)):
        plan[b] = found[b]
        T, xi, z = _step(law, knots, lag, h, float(plan[b]), T, xi, z)
        y[b] = gain_N * (direct * xi + (1.0 - direct) * z)
        error[b] = rest[b] - y[b]


@njit(cache=True)
def _prefix(law, knots, gain_N, direct, lag, h, state, on, price, base, rest, first, best):  # type: ignore[no-untyped-def]
    """Predict the base from its start to its end, or until its error alone is too large."""
    first[0, 0], first[0, 1], first[0, 2], first[0, 3] = state[0], state[1], state[2], 0.0
    before = on
    for b in range(len(base)):
        T, xi, z = _step(law, knots, lag, h, float(base[b]), first[b, 0], first[b, 1], first[b, 2])
        e = rest[b] - gain_N * (direct * xi + (1.0 - direct) * z)
        first[b + 1, 0], first[b + 1, 1], first[b + 1, 2] = T, xi, z
        first[b + 1, 3] = first[b, 3] + e * e
        if base[b] != before:
            first[b + 1, 3] += price
        before = base[b]
        if first[b + 1, 3] >= best:
            return b
    return len(base)


@njit(cache=True)
def _stretch(  # type: ignore[no-untyped-def]
    law, knots, gain_N, direct, lag, h, on, least, price, base, rest, work, a, best, found
):
    """Return predicted steps, and the least cost of the base with an interval changed from here.

    A sequence that costs less than `best` is written to `found`; without one, `best` is returned.
    """
    n_blocks = len(base)
    first, second = work[0], work[1]
    to, steps = 1 - base[a], 0
    second[a] = first[a]
    if to != (base[a - 1] if a else on):
        second[a, 3] += price
    if second[a, 3] >= best:
        return steps, best
    for c in range(a + 1, n_blocks + 1):
        b = c - 1
        T, xi, z = _step(law, knots, lag, h, float(to), second[b, 0], second[b, 1], second[b, 2])
        e = rest[b] - gain_N * (direct * xi + (1.0 - direct) * z)
        second[c, 0], second[c, 1], second[c, 2] = T, xi, z
        second[c, 3] = second[b, 3] + e * e
        steps += 1
        if second[c, 3] >= best:
            break
        if c < n_blocks and base[c] == to:
            continue
        T, xi, z, cost = second[c, 0], second[c, 1], second[c, 2], second[c, 3]
        was = to
        for b in range(c, n_blocks):
            if base[b] != was:
                cost += price
            was = base[b]
            T, xi, z = _step(law, knots, lag, h, float(was), T, xi, z)
            e = rest[b] - gain_N * (direct * xi + (1.0 - direct) * z)
            cost += e * e
            steps += 1
            if cost >= best:
                break
        if cost < best * (1.0 - 1e-12) and _holds(base, a, c, to, on, least):
            best = cost
            found[:a], found[a:c], found[c:] = base[:a], to, base[c:]
    return steps, best


@njit(cache=True)
def _holds(base, a, c, to, on, least):  # type: ignore[no-untyped-def]
    """Whether no cell is switched twice within its minimum time on or off."""
    since, was = -len(base), on
    for b in range(len(base)):
        now = to if a <= b < c else base[b]
        if now != was:
            if since >= 0 and b - since < least[was]:
                return False
            since, was = b, now
    return True
