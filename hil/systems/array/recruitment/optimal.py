"""Optimal on/off control: at regular intervals, a search over levels of force finds a plan.

At the start of every plan the array's own model predicts, from the observer's state, the force
without any switching. `Planner` searches for the switches that bring the force nearest to the
coming set point. The search has `budget_s`, divided into equal steps of a fixed number of levels
per tick, so neither the cost of a tick nor the result depends on a clock. At the end of the budget
the first block of the best plan found is applied; this is the previous plan, continued, if the
search found no better one. Cells of the same kind alternate.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from hil.compiled import njit
from hil.control.controller import ArrayEstimate
from hil.control.reference import Reference
from hil.mechanics.arrays import Array, Mask
from hil.mechanics.system import Drive
from hil.systems.array.model.prediction import Prediction, free_response
from hil.systems.array.recruitment.planner import LevelTable, Planner


@dataclass(frozen=True)
class PlanRules:
    """Length of a plan and of a search in ticks; effort and limits of the search.

    Attributes
    ----------
    period_s : length of a tick
    levels_per_tick : number of levels that the search tries per tick
    on_min_s, off_min_s : minimum times for which a cell stays on, and off
    answer_ticks : ticks after which boards have reported what was commanded
    """

    plan_ticks: int
    budget_ticks: int
    levels_per_tick: int
    on_min_s: float
    off_min_s: float
    period_s: float
    answer_ticks: int = 1

    @property
    def unanswered_s(self) -> float:
        """Time after a command in which boards may report what was before it."""
        return (self.answer_ticks - 0.5) * self.period_s

    @property
    def block_s(self) -> float:
        """Time from plan to plan."""
        return self.plan_ticks * self.period_s

    @property
    def lead_s(self) -> float:
        """Time from the pose of a plan to its first switches."""
        return self.budget_ticks * self.period_s

    def least_blocks(self) -> list[int]:
        """Minimum number of plans for which a cell stays on, and off."""
        return [
            max(1, int(np.ceil(t_s / self.block_s - 1e-9)))
            for t_s in (self.on_min_s, self.off_min_s)
        ]


class Held(NamedTuple):
    """Commanded states of the cells, and for how long they keep them.

    Attributes
    ----------
    on : (N,) array, on or off, or duties
    since_s : (N,) array, time of the last switch of each cell
    times_s : (4,) array, minimum times on and off, lead of a plan, time from plan to plan
    """

    on: Drive
    since_s: Array
    times_s: Array


class PlanSchedule:
    """Schedule of planning: in which ticks to apply a plan, to pose a new one, to search."""

    def __init__(self, rules: PlanRules) -> None:
        self._rules, self._tick = rules, 0

    def next(self) -> tuple[bool, bool, bool]:
        """Return for the next tick: apply, pose, search."""
        n, budget, tick = self._rules.plan_ticks, self._rules.budget_ticks, self._tick
        self._tick += 1
        phase = tick % n
        return phase == budget % n and tick >= budget, phase == 0, phase < budget


class Search(Protocol):
    """Interface of the search for the best plan."""

    @property
    def plan(self) -> NDArray[Any]: ...

    @property
    def n_looked_at(self) -> int: ...

    @property
    def finished(self) -> bool: ...

    def search(self, n_steps: int, /) -> None: ...

    def stop(self) -> None: ...


class PlannedCells(ABC):
    """Runs the search of a plan in its budget, and applies the plan when it is due.

    Attributes
    ----------
    demand_N : static force of the cells that the plan has on
    late : the last search had not finished when its plan was due
    """

    def __init__(self, rules: PlanRules, search: Search, on: Drive, reference: Reference) -> None:
        self._rules, self._search, self._reference = rules, search, reference
        self._schedule = PlanSchedule(rules)
        times_s = np.array([rules.on_min_s, rules.off_min_s, rules.lead_s, rules.block_s])
        self._held = Held(on, np.full(len(on), -np.inf), times_s)
        self._plain = tuple(self._held)  # from Python it passes faster than a named tuple
        self.demand_N = float("nan")
        self.late = False

    @property
    def n_looked_at(self) -> int:
        """Levels, or predicted cell steps, tried in the current search."""
        return self._search.n_looked_at

    def step(self, t_s: float, estimate: ArrayEstimate, cells: Drive) -> None:
        """Write the commanded cells, or duties, of this tick."""
        applies, poses, searches = self._schedule.next()
        if applies:
            self.late = not self._search.finished
            self._apply(t_s, estimate.usable)
        n_steps = self._rules.levels_per_tick
        if poses:
            on, since_s, _ = self._held
            unanswered = t_s - since_s < self._rules.unanswered_s
            reported = np.where(unanswered, on > 0, estimate.cells).astype(np.uint8)
            posing = self._pose(t_s, estimate, reported)
            if self._rules.budget_ticks > 1:  # the other ticks have their whole search
                n_steps = max(n_steps - posing, n_steps // 2)
        if searches:
            self._search.search(n_steps)
        cells[:] = self._held.on

    def restart(self) -> None:
        """All cells were off: they stay off until a plan that is posed from now on is due."""
        self._schedule = PlanSchedule(self._rules)
        self._held.on[:], self._held.since_s[:] = 0, -np.inf
        self._search.stop()
        self._search.plan[:] = 0
        self.demand_N, self.late = float("nan"), False

    @abstractmethod
    def _apply(self, t_s: float, usable: NDArray[np.uint8]) -> None:
        """Switch cells as the first block of the plan says."""

    @abstractmethod
    def _pose(self, t_s: float, estimate: ArrayEstimate, reported: Mask) -> int:
        """Start the search for the next plan; `reported` are the cells on.

        Returns its cost, in steps of the search.
        """


class Optimal(PlannedCells):
    """Plans with the levels of force of an array with few kinds of cells.

    Parameters
    ----------
    G : (J, M) array, response at J samples to a unit static force switched on at each of M blocks
    prediction : gives the force at the samples if no cell is switched; the first sample is one
        sample time after the plan is applied
    price_N2 : cost of a switch; see `Planner`
    """

    def __init__(
        self,
        rules: PlanRules,
        table: LevelTable,
        G: NDArray[np.float64],
        prediction: Prediction,
        price_N2: float,
        reference: Reference,
    ) -> None:
        self._planner = Planner(table, G, price_N2, *rules.least_blocks())
        self._on = np.zeros(len(table.kind), dtype=np.uint8)
        super().__init__(rules, self._planner, self._on, reference)
        self._table, self._prediction = table, tuple(prediction)
        self._times_s = rules.lead_s + prediction.sample_s * np.arange(1, len(G) + 1)
        self._work = np.zeros(len(G) + 2)
        n_kinds, n_blocks = len(table.gain_N), G.shape[1]
        self._y, self._rho = np.zeros((2, len(G)))
        self._n_on, self._n_of = np.zeros((2, n_kinds), dtype=np.int64)
        self._locked = np.zeros((2, n_kinds, n_blocks), dtype=np.int64)

    def _apply(self, t_s: float, usable: NDArray[np.uint8]) -> None:
        plan = self._planner.plan[0]
        _apply(self._table.kind, plan - self._n_on, self._plain, t_s, usable)
        self.demand_N = float(plan @ self._table.gain_N)

    def _pose(self, t_s: float, estimate: ArrayEstimate, reported: Mask) -> int:
        counts = self._n_on, self._n_of, self._locked
        _count(self._table.kind, self._plain, t_s, reported, estimate.usable, counts)
        free_response(self._prediction, estimate.x, estimate.theta, self._on, self._y, self._work)
        self._y += estimate.disturbance_N
        for j, after_s in enumerate(self._times_s):
            self._rho[j] = self._reference.at(t_s + after_s) - self._y[j]
        if not np.isnan(self._rho[0]):
            self._planner.pose(self._rho, self._n_on, self._n_of, self._locked)
        return 0


@njit(cache=True)
def notice(n, held, t_s, reported, usable):  # type: ignore[no-untyped-def]
    """Update cell n from its reported state; an unusable cell is set off."""
    on, since_s = held.on, held.since_s
    if (reported[n] != 0) != (on[n] > 0):
        on[n], since_s[n] = reported[n], t_s
    if not usable[n] and on[n]:
        on[n], since_s[n] = 0, t_s


@njit(cache=True)
def _count(kind, plain, t_s, reported, usable, counts):  # type: ignore[no-untyped-def]
    """Count cells on, usable cells, and cells that must not switch yet at each block."""
    held = Held(*plain)
    on, since_s, (on_min, off_min, lead, block) = held
    n_on, n_of, locked = counts
    n_on[:], n_of[:], locked[:] = 0, 0, 0
    for n in range(len(kind)):
        notice(n, held, t_s, reported, usable)
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
def _apply(kind, changes, plain, t_s, usable):  # type: ignore[no-untyped-def]
    """Switch the planned number of cells of each kind, the longest unchanged ones first."""
    on, since_s, times_s = plain
    on_min, off_min = times_s[0], times_s[1]
    for c in range(len(changes)):
        change = changes[c]
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
