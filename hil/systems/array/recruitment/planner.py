"""Search for the on/off plan that keeps a force nearest to its set point.

The cells that are on can change at each of M blocks and stay constant after the last. With J
samples, rho_j = set point minus predicted force without switching, and dL_b the static force
switched on at block b (negative: off), the plan minimises

    sum_j (rho_j - sum_b G_jb dL_b)^2 + price x (number of switches)

over the reachable levels of force. The force takes only the distinct levels of the array, and a
cell that was switched stays so for its minimum on or off time. With the factors G = Q L
(orthonormal columns of Q, lower triangular L) and z = Q^T rho,

    sum_j (...)^2 = |rho|^2 - |z|^2 + sum_b (z_b - sum_{i<=b} L_bi dL_i)^2

Each term depends only on the decisions so far. A partial sum is the exact minimum cost over all
real-valued continuations, and so a lower bound. Levels are tried outwards from the one that makes
the term zero, and abandoned when the bound exceeds the best plan found (a sphere decoder). Several
sets of unlike cells can give the same level: of these a block takes the one with the fewest
switches from the block before. The search is exact if every level has one set, or if neither
switches have a price nor cells a minimum time. Otherwise another set, with more switches now and
fewer later, may cost less.

The search keeps its state, so it can be distributed over ticks: `search` tries a number of
levels and returns. It starts from the previous plan, continued. That plan is used unless the
search finds a better one in time.

Source: Agrell, Eriksson, Vardy & Zeger 2002 (Schnorr-Euchner search); Geyer & Quevedo 2014
(sphere decoding for switched plants).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hil.mechanics.arrays import Array
from hil.systems.array.recruitment import planner_kernel as kernel

SETS_MAX = 20_000
SAME = 1e-9

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class LevelTable:
    """Distinct force levels of an array with few kinds of cells, and the sets of each level.

    Attributes
    ----------
    kind : (N,) array, kind of every cell; -1 for a cell that adds no force
    gain_N : (C,) array, static gain of a cell of each kind
    counts : (V, C) array, every set, as the number of cells of each kind that are on
    levels_N : (K,) array, ascending
    first, members : (K + 1,), (V,) arrays, sets of level k are members[first[k] : first[k + 1]]
    """

    kind: Counts
    gain_N: Array
    counts: Counts
    levels_N: Array
    first: Counts
    members: Counts


def level_table(static_gains_N: ArrayLike, kinds: Sequence[int] | None = None) -> LevelTable:
    """Return every set of like cells, sorted by force.

    Parameters
    ----------
    static_gains_N : (N,) array
    kinds : (N,) array, optional
        Interchangeable cells share a number; default: cells with equal static gain.

    Raises
    ------
    ValueError
        There are more than SETS_MAX sets, or no cell adds force.
    """
    gains_N = np.asarray(static_gains_N, dtype=float)
    tiny = SAME * float(np.abs(gains_N).sum())
    numbers: dict[tuple[int, int], int] = {}
    kind = np.full(len(gains_N), -1, dtype=np.int64)
    for n, gain_N in enumerate(gains_N):
        if abs(gain_N) > tiny:
            key = (round(gain_N / (10.0 * tiny)), 0 if kinds is None else kinds[n])
            kind[n] = numbers.setdefault(key, len(numbers))
    if not numbers:
        raise ValueError("no cell adds to the force")
    n_of = [int((kind == c).sum()) for c in range(len(numbers))]
    if np.prod([float(n + 1) for n in n_of]) > SETS_MAX:
        raise ValueError(
            f"{len(numbers)} kinds of cells make more than {SETS_MAX} sets: too many to plan with"
        )
    gain_N = np.array([gains_N[kind == c].mean() for c in range(len(numbers))])
    counts = np.array(list(product(*(range(n + 1) for n in n_of))), dtype=np.int64)
    force = counts @ gain_N
    rising = np.argsort(force, kind="stable")
    new = np.concatenate(([True], np.diff(force[rising]) > 100.0 * tiny))
    return LevelTable(
        kind=kind,
        gain_N=gain_N,
        counts=counts,
        levels_N=force[rising][new],
        first=np.append(np.flatnonzero(new), len(counts)).astype(np.int64),
        members=rising.astype(np.int64),
    )


class Planner:
    """The search for the best plan; the module gives the method.

    Parameters
    ----------
    G : (J, M) array, response at every sample to a unit static force switched on at each block
    price_N2 : cost of a switch, in the unit of the sum over samples
    on_blocks, off_blocks : int
        Minimum number of blocks for which a cell stays on, and off; 1 for no minimum.

    Attributes
    ----------
    plan : (M, C) array, number of cells of each kind that are on after every block
    cost_N2 : cost of the plan for the last problem
    finished : the search is complete: no levels cost less, each with the fewest switches
    n_looked_at : levels tried for the last problem
    """

    def __init__(
        self, table: LevelTable, G: ArrayLike, price_N2: float, on_blocks: int, off_blocks: int
    ) -> None:
        self.table = table
        g = np.asarray(G, dtype=float)
        n_blocks, n_kinds = g.shape[1], len(table.gain_N)
        q, r = np.linalg.qr(g[:, ::-1])
        if np.abs(np.diag(r)).min() <= 1e-9 * np.abs(g).max():
            raise ValueError("a block has no effect within the horizon: make the horizon longer")
        self._Q = np.ascontiguousarray(q[:, ::-1])
        self._z = np.zeros(n_blocks)
        self._rest_N2 = 0.0
        self.plan = np.zeros((n_blocks, n_kinds), dtype=np.int64)
        self._start = np.zeros(n_kinds, dtype=np.int64)
        self._n_of = np.zeros(n_kinds, dtype=np.int64)
        self._locked = np.zeros((2, n_kinds, n_blocks), dtype=np.int64)
        self._progress = np.array([(-1, 0, np.inf)], dtype=kernel.PROGRESS)
        levels = kernel.Levels(
            table.gain_N, table.counts, table.levels_N, table.first, table.members
        )
        problem = kernel.Problem(np.ascontiguousarray(r[::-1, ::-1]), self._z, price_N2)
        limits = kernel.Limits(
            np.array([on_blocks, off_blocks], dtype=np.int64), self._n_of, self._locked
        )
        search = kernel.Search(
            plan=self.plan,
            at=np.zeros((n_blocks + 1, n_kinds), dtype=np.int64),
            change=np.zeros((n_blocks, n_kinds), dtype=np.int64),
            blocks=np.zeros(n_blocks + 1, dtype=kernel.BLOCK),
            progress=self._progress,
        )
        self._all = tuple(levels), tuple(problem), tuple(limits), tuple(search)

    @property
    def cost_N2(self) -> float:
        return float(self._progress["best_N2"][0]) + self._rest_N2

    @property
    def finished(self) -> bool:
        return bool(self._progress["depth"][0] < 0)

    @property
    def n_looked_at(self) -> int:
        return int(self._progress["n_tried"][0])

    def pose(self, rho: Array, on: Counts, n_of: Counts, locked: Counts) -> None:
        """Start a new problem; the plan, continued by a block, is the first candidate.

        Parameters
        ----------
        rho : (J,) array
        on, n_of : (C,) arrays, number of cells of each kind that are on, and that exist
        locked : (2, C, M) array
            Cells that are on (first) and off (second) and must not switch yet at each block.
        """
        np.dot(rho, self._Q, out=self._z)
        self._rest_N2 = float(rho @ rho - self._z @ self._z)
        self._start[:] = on
        self._n_of[:] = n_of
        self._locked[:] = locked
        kernel.pose(*self._all, self._start)

    def search(self, n_levels: int) -> None:
        """Continue the search over at most this many levels."""
        kernel.continue_search(*self._all, n_levels)

    def stop(self) -> None:
        """Finish with the plan as it is, until the next problem."""
        self._progress["depth"] = -1
