"""Compiled part of `hil.systems.array.recruitment.planner`: first candidate and search.

State of the search by depth b: the set before it `at`, the cells switched there `change`, their
static force `step_N`, the target level `aim`, the next levels below and above it `pointers`, and
the partial sum `cost`. `words` holds the depth (-1: finished) and the number of levels tried.
"""

import numpy as np

from hil.compiled import njit


@njit(cache=True)
def _free_to_switch(b, kind, least, locked, change, at, n_of):  # type: ignore[no-untyped-def]
    """Return how many cells of a kind can switch off, and on, at block b."""
    held_on, held_off = locked[0, kind, b], locked[1, kind, b]
    for i in range(max(0, b - least[0] + 1), b):
        held_on += max(0, change[i, kind])
    for i in range(max(0, b - least[1] + 1), b):
        held_off += max(0, -change[i, kind])
    on = at[b, kind]
    return max(0, on - held_on), max(0, n_of[kind] - on - held_off)


@njit(cache=True)
def _enter(b, gains_N, levels, L, z, at, step_N, pointers, aim):  # type: ignore[no-untyped-def]
    """Set the target to the level that makes this block's term zero."""
    now = 0.0
    for c in range(len(gains_N)):
        now += at[b, c] * gains_N[c]
    term = z[b]
    for i in range(b):
        term -= L[b, i] * step_N[i]
    aim[b] = now + term / L[b, b]
    right = np.searchsorted(levels, aim[b])
    pointers[b, 0] = right - 1
    pointers[b, 1] = right


@njit(cache=True)
def pose(  # type: ignore[no-untyped-def]
    gains_N, levels, L, z, price, least, start, n_of, locked, plan, at, change, step_N, pointers,
    aim, cost, words, best,
):  # fmt: skip
    """Continue the plan by a block as far as possible, and start the search for a better one."""
    n_blocks, n_kinds = plan.shape
    for b in range(n_blocks - 1):
        plan[b] = plan[b + 1]
    at[0] = start
    total = 0.0
    for b in range(n_blocks):
        step_N[b] = 0.0
        for c in range(n_kinds):
            off, on = _free_to_switch(b, c, least, locked, change, at, n_of)
            change[b, c] = min(on, max(-off, plan[b, c] - at[b, c]))
            at[b + 1, c] = at[b, c] + change[b, c]
            plan[b, c] = at[b + 1, c]
            step_N[b] += change[b, c] * gains_N[c]
            total += price * abs(change[b, c])
        term = z[b]
        for i in range(b + 1):
            term -= L[b, i] * step_N[i]
        total += term * term
    best[0] = total
    words[0], words[1] = 0, 0
    _enter(0, gains_N, levels, L, z, at, step_N, pointers, aim)


@njit(cache=True)
def search(  # type: ignore[no-untyped-def]
    gains_N, counts, levels, first, members, L, z, price, least, n_of, locked, plan, at, change,
    step_N, pointers, aim, cost, words, best, n_levels,
):  # fmt: skip
    """Continue the search over at most n_levels levels."""
    n_blocks, n_kinds = plan.shape
    b = words[0]
    for _ in range(n_levels):
        if b < 0:
            break
        left, right = pointers[b]
        below = aim[b] - levels[left] if left >= 0 else np.inf
        above = levels[right] - aim[b] if right < len(levels) else np.inf
        away = min(below, above) * L[b, b]
        if cost[b] + away * away >= best[0]:
            b -= 1
            continue
        if below <= above:
            level = left
            pointers[b, 0] -= 1
        else:
            level = right
            pointers[b, 1] += 1
        words[1] += 1
        chosen, fewest = -1, 1 << 30
        for m in range(first[level], first[level + 1]):
            switches = 0
            for c in range(n_kinds):
                off, on = _free_to_switch(b, c, least, locked, change, at, n_of)
                delta = counts[members[m], c] - at[b, c]
                if delta > on or -delta > off:
                    switches = 1 << 30
                    break
                switches += abs(delta)
            if switches < fewest:
                chosen, fewest = members[m], switches
        if chosen < 0:
            continue
        total = cost[b] + away * away + price * fewest
        if total >= best[0]:
            continue
        step_N[b] = 0.0
        for c in range(n_kinds):
            change[b, c] = counts[chosen, c] - at[b, c]
            at[b + 1, c] = counts[chosen, c]
            step_N[b] += change[b, c] * gains_N[c]
        if b == n_blocks - 1:
            best[0] = total
            for i in range(n_blocks):
                plan[i] = at[i + 1]
            continue
        cost[b + 1] = total
        b += 1
        _enter(b, gains_N, levels, L, z, at, step_N, pointers, aim)
    words[0] = b
