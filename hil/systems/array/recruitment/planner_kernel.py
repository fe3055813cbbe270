"""Compiled part of `hil.systems.array.recruitment.planner`: first candidate and search."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hil.compiled import njit, put
from hil.mechanics.arrays import Array, Indices

Plain = tuple[Any, ...]  # a named tuple as a plain one: from Python it passes 0.6 us faster
# Small functions are inlined: called, they make a search a third slower.


BLOCK = np.dtype(
    [("step_N", float), ("aim_N", float), ("below", np.int64), ("above", np.int64),
     ("cost_N2", float)]
)  # fmt: skip
PROGRESS = np.dtype([("depth", np.int64), ("n_tried", np.int64), ("best_N2", float)])


class Levels(NamedTuple):
    """Fields of `planner.LevelTable`."""

    gains_N: Array
    counts: Indices
    levels_N: Array
    first: Indices
    members: Indices


class Limits(NamedTuple):
    """Which cells can switch.

    Attributes
    ----------
    least : (2,) array, minimum number of blocks on, and off
    n_of : (C,) array, number of cells of each kind
    locked : (2, C, M) array, cells on, and off, that must not switch yet at each block
    """

    least: Indices
    n_of: Indices
    locked: Indices


class Problem(NamedTuple):
    """The module of the planner defines z, L and the price."""

    L: Array
    z: Array
    price_N2: float


class Search(NamedTuple):
    """State of the search by block, which is its depth.

    Attributes
    ----------
    plan : (M, C) array, best plan so far
    at : (M + 1, C) array, the set before each block
    change : (M, C) array, cells that are switched there
    blocks : (M + 1,) records `BLOCK`: their static force, the target level, the next levels below
        and above it, and the partial sum before the block
    progress : (1,) record `PROGRESS`: depth (-1: finished), levels tried, cost of `plan`
    """

    plan: Indices
    at: Indices
    change: Indices
    blocks: NDArray[np.void]
    progress: NDArray[np.void]


@njit(cache=True, inline="always")
def _free_to_switch(
    b: int, kind: int, limits: Limits, at: Indices, change: Indices
) -> tuple[int, int]:
    """Return how many cells of a kind can switch off, and on, at block b."""
    least, n_of, locked = limits
    held_on, held_off = locked[0, kind, b], locked[1, kind, b]
    for i in range(max(0, b - least[0] + 1), b):
        held_on += max(0, change[i, kind])
    for i in range(max(0, b - least[1] + 1), b):
        held_off += max(0, -change[i, kind])
    on = at[b, kind]
    return max(0, on - held_on), max(0, n_of[kind] - on - held_off)


@njit(cache=True, inline="always")
def _enter(b: int, levels: Levels, problem: Problem, search: Search) -> None:
    """Set the target to the level that makes this block's term zero."""
    now = 0.0
    for c in range(len(levels.gains_N)):
        now += search.at[b, c] * levels.gains_N[c]
    term = problem.z[b]
    for i in range(b):
        term -= problem.L[b, i] * search.blocks[i]["step_N"]
    block = search.blocks[b]
    block["aim_N"] = now + term / problem.L[b, b]
    above = np.searchsorted(levels.levels_N, block["aim_N"])
    block["below"], block["above"] = above - 1, above


@njit(cache=True)
def pose(levels: Plain, problem: Plain, limits: Plain, search: Plain, start: Indices) -> None:
    """Continue the plan by a block as far as possible, and start the search for a better one."""
    table, posed, state = Levels(*levels), Problem(*problem), Search(*search)
    bounds = Limits(*limits)
    plan, at, change, blocks = state.plan, state.at, state.change, state.blocks
    n_blocks, n_kinds = plan.shape
    for b in range(n_blocks - 1):
        put(plan[b + 1], plan[b])
    put(start, at[0])
    total = 0.0
    for b in range(n_blocks):
        step_N = 0.0
        for c in range(n_kinds):
            off, on = _free_to_switch(b, c, bounds, at, change)
            change[b, c] = min(on, max(-off, plan[b, c] - at[b, c]))
            at[b + 1, c] = at[b, c] + change[b, c]
            plan[b, c] = at[b + 1, c]
            step_N += change[b, c] * table.gains_N[c]
            total += posed.price_N2 * abs(change[b, c])
        blocks[b]["step_N"] = step_N
        term = posed.z[b]
        for i in range(b + 1):
            term -= posed.L[b, i] * blocks[i]["step_N"]
        total += term * term
    progress = state.progress[0]
    progress["depth"], progress["n_tried"], progress["best_N2"] = 0, 0, total
    _enter(0, table, posed, state)


@njit(cache=True)
def continue_search(
    levels: Plain, problem: Plain, limits: Plain, search: Plain, n_levels: int
) -> None:
    """Continue the search over at most n_levels levels."""
    table, posed, state = Levels(*levels), Problem(*problem), Search(*search)
    bounds = Limits(*limits)
    levels_N, L, progress = table.levels_N, posed.L, state.progress[0]
    plan, at, change, blocks = state.plan, state.at, state.change, state.blocks
    n_blocks, n_kinds = plan.shape
    b = progress["depth"]
    for _ in range(n_levels):
        if b < 0:
            break
        block = blocks[b]
        left, right = block["below"], block["above"]
        below = block["aim_N"] - levels_N[left] if left >= 0 else np.inf
        above = levels_N[right] - block["aim_N"] if right < len(levels_N) else np.inf
        away = min(below, above) * L[b, b]
        if block["cost_N2"] + away * away >= progress["best_N2"]:
            b -= 1
            continue
        if below <= above:
            level = left
            block["below"] -= 1
        else:
            level = right
            block["above"] += 1
        progress["n_tried"] += 1
        chosen, fewest = -1, 1 << 30
        for m in range(table.first[level], table.first[level + 1]):
            switches = 0
            for c in range(n_kinds):
                off, on = _free_to_switch(b, c, bounds, at, change)
                delta = table.counts[table.members[m], c] - at[b, c]
                if delta > on or -delta > off:
                    switches = 1 << 30
                    break
                switches += abs(delta)
            if switches < fewest:
                chosen, fewest = table.members[m], switches
        if chosen < 0:
            continue
        total = block["cost_N2"] + away * away + posed.price_N2 * fewest
        if total >= progress["best_N2"]:
            continue
        step_N = 0.0
        for c in range(n_kinds):
            change[b, c] = table.counts[chosen, c] - at[b, c]
            at[b + 1, c] = table.counts[chosen, c]
            step_N += change[b, c] * table.gains_N[c]
        block["step_N"] = step_N
        if b == n_blocks - 1:
            progress["best_N2"] = total
            for i in range(n_blocks):
                put(at[i + 1], plan[i])
            continue
        blocks[b + 1]["cost_N2"] = total
        b += 1
        _enter(b, table, posed, state)
    progress["depth"] = b
