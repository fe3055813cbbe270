"""Optimal on/off control: every so often the best plan for the next seconds, by exact search.

At the start of every plan the array's own model, from the observer's state, says what the force
will be if nothing is switched; `Planner` looks for the switches that bring it nearest to the set
point to come. It has `budget_s` for that, in equal pieces of a stated number of levels a tick, so
that what a tick costs and what comes out depend on no clock. When the budget is over, the plan's
first block is applied: the best one found, which is the last plan carried on where no better one
was. Cells of a kind take turns.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hil.control.controller import ArrayEstimate
from hil.control.reference import Reference
from hil.systems.array.recruitment.planner import LevelTable, Planner

Free = Callable[[ArrayEstimate, NDArray[np.uint8], NDArray[np.float64]], None]


@dataclass(frozen=True)
class PlanRules:
    """In ticks: between plans, for a search; and how far to look.

    Attributes
    ----------
    levels_per_tick : int
        Levels that the search tries a tick.
    on_min_s, off_min_s : float
        Smallest time a cell stays on, and off.
    """

    plan_ticks: int
    budget_ticks: int
    levels_per_tick: int
    on_min_s: float
    off_min_s: float


class Turns:
    """What is due in a tick: to apply the plan that was found, to pose the next, to search."""

    def __init__(self, rules: PlanRules) -> None:
        self._rules, self._tick = rules, 0

    def next(self) -> tuple[bool, bool, bool]:
        """Of the next tick: applying, posing, searching."""
        n, budget, tick = self._rules.plan_ticks, self._rules.budget_ticks, self._tick
        self._tick += 1
        phase = tick % n
        return phase == budget % n and tick >= budget, phase == 0, phase < budget


class Optimal:
    """Plans and carries plans out.

    Parameters
    ----------
    G : (J, M) array
        Response at J samples to a unit of static force switched on at each of M blocks.
    sample_s : float
        Between samples; the first is one of them after the plan is applied.
    price_N2 : float
        Of a switch; see `Planner`.
    free : function(belief, cells, y)
        Writes into y (J,) the force, disturbance included, at the samples if cells stay as given.

    Attributes
    ----------
    demand_N : float
        Static force of the cells that the plan has on.
    late : bool
        The last search was not at its end when its plan was due.
    """

    def __init__(
        self,
        rules: PlanRules,
        table: LevelTable,
        G: NDArray[np.float64],
        sample_s: float,
        price_N2: float,
        reference: Reference,
        free: Free,
        period_s: float,
    ) -> None:
        self._rules = rules
        self._table = table
        block_s = rules.plan_ticks * period_s
        blocks = [max(1, int(np.ceil(t_s / block_s - 1e-9)))
                  for t_s in (rules.on_min_s, rules.off_min_s)]  # fmt: skip
        self._planner = Planner(table, G, price_N2, *blocks)
        self._times_s = rules.budget_ticks * period_s + sample_s * np.arange(1, len(G) + 1)
        self._reference = reference
        self._free = free
        self._period_s = period_s
        n_cells, n_kinds, n_blocks = len(table.kind), len(table.gain_N), G.shape[1]
        self._y = np.zeros(len(G))
        self._rho = np.zeros(len(G))
        self._on = np.zeros(n_cells, dtype=np.uint8)
        self._since_s = np.full(n_cells, -np.inf)
        self._n_on = np.zeros(n_kinds, dtype=np.int64)
        self._n_of = np.zeros(n_kinds, dtype=np.int64)
        self._locked = np.zeros((2, n_kinds, n_blocks), dtype=np.int64)
        self._times = np.array(
            [rules.on_min_s, rules.off_min_s, rules.budget_ticks * period_s, block_s]
        )
        self._turns = Turns(rules)
        self.demand_N = float("nan")
        self.late = False

    @property
    def n_looked_at(self) -> int:
        """Levels tried in the current search."""
        return self._planner.n_looked_at

    def step(self, t_s: float, estimate: ArrayEstimate, cells: NDArray[np.uint8]) -> None:
        """One tick: write the wished cells."""
        applies, poses, searches = self._turns.next()
        if applies:
            self.late = not self._planner.finished
            _apply(
                self._table.kind, self._planner.plan[0], self._n_on, self._times, t_s,
                estimate.usable, self._on, self._since_s,
            )  # fmt: skip
            self.demand_N = float(self._planner.plan[0] @ self._table.gain_N)
        if poses:
            self._pose(t_s, estimate)
        if searches:
            self._planner.search(self._rules.levels_per_tick)
        cells[:] = self._on

    def _pose(self, t_s: float, estimate: ArrayEstimate) -> None:
        _count(
            self._table.kind, self._times, t_s, estimate.cells, estimate.usable, self._on,
            self._since_s, self._n_on, self._n_of, self._locked,
        )  # fmt: skip
        self._free(estimate, self._on, self._y)
        for j, after_s in enumerate(self._times_s):
            self._rho[j] = self._reference.at(t_s + after_s) - self._y[j]
        if not np.isnan(self._rho[0]):
            self._planner.pose(self._rho, self._n_on, self._n_of, self._locked)


@njit(cache=True)
def notice(n, t_s, reported, usable, on, since_s):  # type: ignore[no-untyped-def]
    """Cell n as it was reported; one that cannot be used goes off."""
    if reported[n] != on[n]:
        on[n], since_s[n] = reported[n], t_s
    if not usable[n] and on[n]:
        on[n], since_s[n] = 0, t_s


@njit(cache=True)
def _count(kind, times, t_s, reported, usable, on, since_s, n_on, n_of, locked):  # type: ignore[no-untyped-def]
    """What is on, what there is, and what may not be switched yet at each block."""
    on_min, off_min, lead, block = times
    n_on[:], n_of[:], locked[:] = 0, 0, 0
    for n in range(len(kind)):
        notice(n, t_s, reported, usable, on, since_s)
        c = kind[n]
        if c < 0 or not usable[n]:
            continue
        n_of[c] += 1
        n_on[c] += on[n]
        least = on_min if on[n] else off_min
        for b in range(locked.shape[2]):
            if t_s + lead + b * block - since_s[n] < least * (1.0 - 1e-9):
                locked[0 if on[n] else 1, c, b] += 1


@njit(cache=True)
def _apply(kind, wanted, n_on, times, t_s, usable, on, since_s):  # type: ignore[no-untyped-def]
    """Switch as many cells of each kind as the plan says, those first that stayed longest."""
    on_min, off_min = times[0], times[1]
    for c in range(len(wanted)):
        change = wanted[c] - n_on[c]
        to, least = (1, off_min) if change > 0 else (0, on_min)
        for _ in range(abs(change)):
            best = -1
            for n in range(len(kind)):
                ready = kind[n] == c and usable[n] and on[n] != to
                ready = ready and t_s - since_s[n] >= least * (1.0 - 1e-9)
                if ready and (best < 0 or since_s[n] < since_s[best]):
                    best = n
            if best >= 0:
                on[best], since_s[best] = to, t_s
