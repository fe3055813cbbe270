"""Enumerates every topology of N cells once, up to relabelling of masses and mirror image.

The cells between two neighbouring layers are a `Joint`: an m x n table of counts without an
empty row or column. Two tables are equivalent if a permutation of their rows and any permutation
of their columns turns one into the other. The permitted row permutations depend on the layers to
the left: they are the automorphisms of that part, acting on its last layer (a `Group`). Hence

    topologies up to relabelling  =  chains of orbits of joints,

with each orbit under the group that the previous orbits leave. The code generates one
representative per orbit and the group that it leaves. The remaining chain depends only on that
group and on the number of cells left. Both are cached. So no labelled duplicate is stored, the
topologies can be counted without generating them, and a slice can be generated without the
topologies before it.

Source: the layer rule is MacNair & Ueda, eq. (12); orderly generation after Read 1978, "Every
one a winner".
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from operator import itemgetter
from typing import Any

import numpy as np

from hil.systems.array.model.fingerprint import Topology

Column = tuple[int, ...]
"""Number of cells that arrive at one mass from each mass of the previous layer."""
Joint = tuple[Column, ...]
"""All cells between two layers: one column per mass of the right layer."""
Group = tuple[tuple[int, ...], ...]
"""Permutations of a layer's masses that leave everything to the left unchanged."""

_LEFT_END: Group = ((0,),)


def count(n_cells: int) -> int:
    """Return the number of topologies of n_cells cells up to isomorphism, without generating them.

    Raises
    ------
    ValueError
        n_cells is below 1.
    """
    _check(n_cells)
    return _n_chains(_LEFT_END, n_cells)


def topologies(n_cells: int, start: int = 0, stop: int | None = None) -> Iterator[Topology]:
    """Yield every topology of n_cells cells once, always in the same order.

    Parameters
    ----------
    n_cells : at least 1
    start, stop : slice, as in `range`; skipping to `start` is cheap

    Yields
    ------
    Topology
        In canonical form: `canonical` returns it unchanged.

    Raises
    ------
    ValueError
        n_cells is below 1, or start is negative.
    """
    _check(n_cells)
    if start < 0:
        raise ValueError(f"start = {start}: a slice starts at 0 or later")
    n_wanted = None if stop is None else max(0, stop - start)
    for joints in itertools.islice(_chains(_LEFT_END, n_cells, start), n_wanted):
        yield _topology(joints)


def canonical(topology: Topology) -> Topology:
    """Return the same topology with masses and cells numbered in canonical order."""
    return _topology(_canonical(_joints(topology)))


def mirrored(topology: Topology) -> Topology:
    """Return the mirror image (left and right exchanged) in canonical form."""
    return _topology(_canonical(_reversed(_joints(topology))))


def stands_for_its_mirror_image(topology: Topology) -> bool:
    """Return True for one topology of each mirror pair, and for a mirror-symmetric topology.

    Parameters
    ----------
    topology : in canonical form, as `topologies` yields it
    """
    joints = _joints(topology)
    return joints <= _canonical(_reversed(joints))


def _check(n_cells: int) -> None:
    if n_cells < 1:
        raise ValueError(f"{n_cells} cells: an array has at least 1")


# Between topologies and joints


def _topology(joints: tuple[Joint, ...]) -> Topology:
    layers = [1]
    left: list[int] = []
    right: list[int] = []
    first = 0
    for joint in joints:
        n_left = layers[-1]
        for i in range(n_left):
            for j, column in enumerate(joint):
                left += [first + i] * column[i]
                right += [first + n_left + j] * column[i]
        first += n_left
        layers.append(len(joint))
    return Topology(tuple(layers), np.array(left), np.array(right))


def _joints(topology: Topology) -> tuple[Joint, ...]:
    n_cells = dict[tuple[int, int], int]()
    for ends in zip(topology.left.tolist(), topology.right.tolist(), strict=True):
        n_cells[ends] = n_cells.get(ends, 0) + 1
    starts = [0, *itertools.accumulate(topology.layers)]
    layers = [range(a, b) for a, b in itertools.pairwise(starts)]
    return tuple(
        tuple(tuple(n_cells.get((i, j), 0) for i in before) for j in after)
        for before, after in itertools.pairwise(layers)
    )


def _reversed(joints: tuple[Joint, ...]) -> tuple[Joint, ...]:
    return tuple(tuple(zip(*joint, strict=True)) for joint in reversed(joints))


def _canonical(joints: tuple[Joint, ...]) -> tuple[Joint, ...]:
    """Return the least chain of joints, layer by layer.

    If several permutations lead to the least joint, any of them will do: they differ by a member
    of the group that the joint leaves, and the search for the next joint covers that group.
    """
    group = _LEFT_END
    order: tuple[int, ...] = (0,)
    chain = []
    for joint in joints:
        columns = [tuple(column[i] for i in order) for column in joint]
        place = sorted(range(len(columns)), key=columns.__getitem__)
        least, moved = _least(group, tuple(columns[j] for j in place))
        order = tuple(place[j] for j in moved)
        chain.append(least)
        group = _group_left(group, least)
    return tuple(chain)


@cache
def _least(group: Group, joint: Joint) -> tuple[Joint, tuple[int, ...]]:
    """Return the least joint of an orbit, and the order of the columns of `joint` that gives it."""
    best: tuple[Joint, tuple[int, ...]] | None = None
    for permutation in group:
        columns = [tuple(column[i] for i in permutation) for column in joint]
        order = sorted(range(len(columns)), key=columns.__getitem__)
        candidate = tuple(columns[j] for j in order)
        if best is None or candidate < best[0]:
            best = candidate, tuple(order)
    assert best is not None
    return best


# Orbits of joints


@cache
def _orbits(group: Group, n_cells: int, n_right: int) -> tuple[tuple[Joint, Group], ...]:
    """Return one joint per orbit, and the group it leaves: n_cells cells to n_right masses."""
    orbits = []
    for joint in _sorted_joints(len(group[0]), n_cells, n_right):
        if _is_least(group, joint):
            orbits.append((joint, _group_left(group, joint)))
    return tuple(orbits)


def _sorted_joints(n_left: int, n_cells: int, n_right: int) -> Iterator[Joint]:
    """Yield the joints whose columns do not decrease, built row by row.

    Columns that are equal so far must not decrease in the next row, so each set of columns
    occurs once.
    """

    def extend(rows: list[Column], tied: list[bool], n_over: int) -> Iterator[Joint]:
        n_rows_over = n_left - len(rows)
        if not n_rows_over:
            joint = tuple(zip(*rows, strict=True))
            if any(joint[0]):  # the least column comes first; it must not be empty
                yield joint
            return
        fewest = n_over if n_rows_over == 1 else 1
        for n_row in range(fewest, n_over - n_rows_over + 2):
            for row in _compositions(n_row, n_right):
                if all(row[j] <= row[j + 1] for j in range(n_right - 1) if tied[j]):
                    still = [tied[j] and row[j] == row[j + 1] for j in range(n_right - 1)]
                    yield from extend([*rows, row], still, n_over - n_row)

    yield from extend([], [True] * (n_right - 1), n_cells)


@cache
def _compositions(total: int, n_parts: int) -> tuple[Column, ...]:
    """Return all n_parts-tuples of integers >= 0 with this sum, in ascending order."""
    if n_parts == 1:
        return ((total,),)
    return tuple(
        (first, *rest)
        for first in range(total + 1)
        for rest in _compositions(total - first, n_parts - 1)
    )


@cache
def _pickers(group: Group) -> tuple[Callable[[Sequence[int]], Any], ...]:
    """Return the permutations as functions, without the identity."""
    return tuple(itemgetter(*p) for p in group if any(i != j for i, j in enumerate(p)))


def _is_least(group: Group, joint: Joint) -> bool:
    return all(tuple(sorted(map(pick, joint))) >= joint for pick in _pickers(group))


@cache
def _group_left(group: Group, joint: Joint) -> Group:
    """Return the column permutations that some row permutation of the group compensates."""
    positions: dict[Column, list[int]] = {}
    for j, column in enumerate(joint):
        positions.setdefault(column, []).append(j)
    within = [list(itertools.permutations(places)) for places in positions.values()]
    kept = set()
    for permutation in group:
        arrived: dict[Column, list[int]] = {column: [] for column in positions}
        for j, column in enumerate(joint):
            places = arrived.get(tuple(column[i] for i in permutation))
            if places is None:
                break
            places.append(j)
        if any(len(arrived[column]) != len(places) for column, places in positions.items()):
            continue
        origin = list(itertools.chain.from_iterable(arrived.values()))
        for choice in itertools.product(*within):
            images = itertools.chain.from_iterable(choice)
            move = dict(zip(origin, images, strict=True))
            kept.add(tuple(move[j] for j in range(len(joint))))
    return tuple(sorted(kept))


# Chains of joints


@cache
def _choices(group: Group, n_cells: int) -> tuple[tuple[Joint, Group, int], ...]:
    """Return the possible next joints, the groups they leave, and the number of cells left over.

    Either all cells go to the right end, or every mass of the next layer needs a cell that
    leaves it.
    """
    choices = [(joint, left, 0) for joint, left in _orbits(group, n_cells, 1)]
    for n_placed in range(n_cells - 1, len(group[0]) - 1, -1):
        n_over = n_cells - n_placed
        for n_right in range(1, min(n_placed, n_over) + 1):
            choices += [(joint, left, n_over) for joint, left in _orbits(group, n_placed, n_right)]
    return tuple(choices)


@cache
def _n_chains(group: Group, n_cells: int) -> int:
    return sum(
        _n_chains(left, n_over) if n_over else 1 for _, left, n_over in _choices(group, n_cells)
    )


def _chains(group: Group, n_cells: int, start: int) -> Iterator[tuple[Joint, ...]]:
    """Yield chains of joints that use n_cells cells, from index `start`."""
    for joint, left, n_over in _choices(group, n_cells):
        n_here = _n_chains(left, n_over) if n_over else 1
        if start >= n_here:
            start -= n_here
            continue
        if n_over:
            for rest in _chains(left, n_over, start):
                yield (joint, *rest)
        else:
            yield (joint,)
        start = 0
