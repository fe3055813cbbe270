"""Topologies by brute force: labelled tables of cells, and all relabellings of their masses."""

import itertools
from functools import cache
from math import comb, factorial, prod


def layer_sizes(n_cells, layers=(1,)):
    """Every sequence 1, n_2, ..., 1 that n_cells cells can join."""
    if n_cells >= layers[-1]:
        yield (*layers, 1)
    for n_masses in range(1, n_cells):
        over = n_cells - max(layers[-1], n_masses)
        if over >= n_masses:
            yield from layer_sizes(over, (*layers, n_masses))


def labelled(layers, n_cells):
    """Every chain of tables cells[i][j] without an empty row or column, of n_cells in all."""
    if len(layers) == 1:
        if n_cells == 0:
            yield ()
        return
    n_left, n_right = layers[:2]
    for placed in range(max(n_left, n_right), n_cells + 1):
        for bars in itertools.combinations(range(placed + n_left * n_right - 1), placed):
            # stars and bars: place `placed` like cells in n_left * n_right boxes
            boxes = [0] * (n_left * n_right)
            for k, bar in enumerate(bars):
                boxes[bar - k] += 1
            table = tuple(tuple(boxes[i * n_right : (i + 1) * n_right]) for i in range(n_left))
            if all(map(any, table)) and all(map(any, zip(*table, strict=True))):
                for rest in labelled(layers[1:], n_cells - placed):
                    yield (table, *rest)


def relabelled(tables):
    """The chain of tables under every permutation of the masses of every interior layer."""
    sizes = [len(table) for table in tables] + [1]
    for moves in itertools.product(*(itertools.permutations(range(n)) for n in sizes)):
        yield tuple(
            tuple(tuple(table[i][j] for j in right) for i in left)
            for table, left, right in zip(tables, moves, moves[1:], strict=False)
        )


def mirror_image(tables):
    return tuple(tuple(zip(*table, strict=True)) for table in reversed(tables))


def least(tables):
    """Alike for two chains exactly where one is a relabelling of the other."""
    return min(relabelled(tables))


def n_automorphisms(tables):
    return sum(moved == tables for moved in relabelled(tables))


@cache
def n_tables(m, n, k):
    """Tables m x n of k like cells without an empty row or column, by inclusion and exclusion."""
    return sum(
        (-1) ** (m - a + n - b) * comb(m, a) * comb(n, b) * comb(a * b + k - 1, k)
        for a in range(1, m + 1)
        for b in range(1, n + 1)
    )


@cache
def n_chains(layers, n_cells):
    """Labelled chains of tables of n_cells cells."""
    if len(layers) == 1:
        return int(n_cells == 0)
    return sum(
        n_tables(*layers[:2], placed) * n_chains(layers[1:], n_cells - placed)
        for placed in range(max(layers[:2]), n_cells + 1)
    )


def n_labelled(n_cells):
    """By layers: labelled chains, and the relabellings prod(n_j!) of one."""
    return {
        layers: (n_chains(layers, n_cells), prod(map(factorial, layers)))
        for layers in layer_sizes(n_cells)
    }


def tables_of(topology):
    """Chain of tables of a project's topology."""
    starts = [0, *itertools.accumulate(topology.layers)]
    ends = list(zip(topology.left.tolist(), topology.right.tolist(), strict=True))
    return tuple(
        tuple(tuple(ends.count((i, j)) for j in range(b, c)) for i in range(a, b))
        for a, b, c in zip(starts, starts[1:], starts[2:], strict=False)
    )
