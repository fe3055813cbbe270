"""Optimal on/off control of cells that are wires, with their heating and cooling laws.

At regular intervals a planner (`hil.systems.array.sma.plan`) searches for the switches of the next
seconds. It uses the current estimate of the wires (`hil.systems.array.sma.learning`): laws, static
gains, and the temperature, austenite fraction and lag state of every wire. As in
`hil.systems.array.recruitment.optimal` the search has a budget in ticks and a fixed number of
steps per tick, so neither cost nor result depends on a clock. At the end of the budget the best
plan found is applied. The part of the force that the wires do not explain is assumed constant,
which removes steady-state errors.
"""

from typing import Protocol

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hil.control.controller import ArrayEstimate
from hil.control.reference import Reference
from hil.systems.array.recruitment.optimal import PlanRules, PlanSchedule, notice

Matrix = NDArray[np.float64]
Mask = NDArray[np.uint8]


class Planner(Protocol):
    """Interface of the search."""

    plan: Mask
    n_looked_at: int

    @property
    def finished(self) -> bool: ...

    def pose(
        self, wires: tuple[Matrix, Matrix, Matrix], on: Mask, locked: NDArray[np.int64],
        usable: Mask, wanted_N: Matrix,
    ) -> None: ...  # fmt: skip

    def search(self, n_steps: int) -> None: ...


class WireOptimal:
    """Plans and applies the plans.

    Parameters
    ----------
    rules : PlanRules
        `levels_per_tick` is the number of predicted cell steps per tick.
    planner : Planner
        From `hil.systems.array.sma.plan`.

    Attributes
    ----------
    demand_N : float
        Static force of the cells that the plan has on.
    late : bool
        The last search had not finished when its plan was due.
    """

    def __init__(
        self,
        rules: PlanRules,
        planner: Planner,
        reference: Reference,
        period_s: float,
    ) -> None:
        self._rules = rules
        self._planner = planner
        self._reference = reference
        self._block_s = rules.plan_ticks * period_s
        self._lead_s = rules.budget_ticks * period_s
        n_cells, n_blocks = planner.plan.shape
        self._static_gains_N = np.zeros(n_cells)
        self._wanted = np.zeros(n_blocks)
        self._on: NDArray[np.uint8] = np.zeros(n_cells, dtype=np.uint8)
        self._since_s = np.full(n_cells, -np.inf)
        self._locked = np.zeros(n_cells, dtype=np.int64)
        self._times = np.array([rules.on_min_s, rules.off_min_s, self._lead_s, self._block_s])
        self._schedule = PlanSchedule(rules)
        self.demand_N = float("nan")
        self.late = False

    @property
    def n_looked_at(self) -> int:
        """Number of predicted cell steps in the current search."""
        return self._planner.n_looked_at

    def step(self, t_s: float, estimate: ArrayEstimate, cells: NDArray[np.uint8]) -> None:
        """Write the commanded cells of this tick."""
        applies, poses, searches = self._schedule.next()
        if applies:
            self.late = not self._planner.finished
            _apply(self._planner.plan, t_s, estimate.usable, self._on, self._since_s)
            self.demand_N = float(self._static_gains_N @ self._on)
        if poses:
            self._pose(t_s, estimate)
        if searches:
            self._planner.search(self._rules.levels_per_tick)
        cells[:] = self._on

    def _pose(self, t_s: float, estimate: ArrayEstimate) -> None:
        assert estimate.wires is not None  # the estimator has learned them
        _lock(
            self._times, t_s, estimate.cells, estimate.usable, self._on, self._since_s, self._locked
        )
        wires = estimate.wires.look()
        self._static_gains_N[:] = wires[1]
        for j in range(len(self._wanted)):
            after_s = self._lead_s + (j + 1) * self._block_s
            self._wanted[j] = self._reference.at(t_s + after_s) - estimate.wires.unknown_N
        if not np.isnan(self._wanted[0]):
            self._planner.pose(wires, self._on, self._locked, estimate.usable, self._wanted)


@njit(cache=True)
def _lock(times, t_s, reported, usable, on, since_s, locked):  # type: ignore[no-untyped-def]
    """Compute the number of blocks for which every cell must keep its state."""
    on_min, off_min, lead, block = times
    for n in range(len(on)):
        notice(n, t_s, reported, usable, on, since_s)
        left = (on_min if on[n] else off_min) - (t_s + lead - since_s[n])
        locked[n] = max(0, int(np.ceil(left / block - 1e-9)))


@njit(cache=True)
def _apply(plan, t_s, usable, on, since_s):  # type: ignore[no-untyped-def]
    for n in range(len(on)):
        to = plan[n, 0] if usable[n] else 0
        if on[n] != to:
            on[n], since_s[n] = to, t_s
