"""Optimal on/off control of cells that heat and cool, on their own laws.

Every so often a planner (`hil.models.wire_plan`) looks for the switches of the next seconds, from
where the twin says that every wire is: its temperature, its austenite, and what its lag holds. As
in `hil.control.optimal` the search has a budget in ticks and a stated number of steps a tick, so
that neither cost nor result depends on a clock, and what is applied when the budget is over is the
best plan found. What the observer's force has beyond the wires' is taken to stay: no error is left
standing.
"""

from typing import Protocol

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hil.control.controller import Belief
from hil.control.optimal import PlanRules, Turns, notice
from hil.control.reference import Reference

Matrix = NDArray[np.float64]
Mask = NDArray[np.uint8]


class Wires(Protocol):
    """The cells' own law."""

    shares_N: Matrix

    def set_air(self, T_C: float) -> None:
        """The air is so warm from now on."""
        ...

    def follow(self, t_s: float, xi: Matrix) -> float:
        """Let every lag come to now; the wires' force."""
        ...

    def ahead(self, lead_s: float, on: Mask, T_C: Matrix, xi: Matrix) -> Matrix:
        """Temperature, austenite and lag (N, 3) after a time with these cells on."""
        ...


class Planner(Protocol):
    """The search."""

    plan: Mask
    n_looked_at: int

    @property
    def finished(self) -> bool: ...

    def pose(
        self, state: Matrix, on: Mask, locked: NDArray[np.int64], usable: Mask, wanted_N: Matrix
    ) -> None: ...

    def search(self, n_steps: int) -> None: ...


class WireOptimal:
    """Plans and carries plans out.

    Parameters
    ----------
    rules : PlanRules
        `levels_per_tick` is the number of steps of a cell predicted a tick.
    wires, planner : Wires, Planner
        `hil.models.wire_plan` has both.

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
        wires: Wires,
        planner: Planner,
        reference: Reference,
        period_s: float,
    ) -> None:
        self._rules = rules
        self._wires = wires
        self._planner = planner
        self._reference = reference
        self._block_s = rules.plan_ticks * period_s
        self._lead_s = rules.budget_ticks * period_s
        n_cells, n_blocks = planner.plan.shape
        self._wanted = np.zeros(n_blocks)
        self._on: NDArray[np.uint8] = np.zeros(n_cells, dtype=np.uint8)
        self._since_s = np.full(n_cells, -np.inf)
        self._locked = np.zeros(n_cells, dtype=np.int64)
        self._times = np.array([rules.on_min_s, rules.off_min_s, self._lead_s, self._block_s])
        self._turns = Turns(rules)
        self.demand_N = float("nan")
        self.late = False

    @property
    def n_looked_at(self) -> int:
        """Steps of a cell predicted in the current search."""
        return self._planner.n_looked_at

    def step(self, t_s: float, belief: Belief, cells: NDArray[np.uint8]) -> None:
        """One tick: write the wished cells."""
        applies, poses, searches = self._turns.next()
        force_N = self._wires.follow(t_s, belief.xi)
        if applies:
            self.late = not self._planner.finished
            _apply(self._planner.plan, t_s, belief.usable, self._on, self._since_s)
            self.demand_N = float(self._wires.shares_N @ self._on)
        if poses:
            self._pose(t_s, belief, belief.force_N - force_N)
        if searches:
            self._planner.search(self._rules.levels_per_tick)
        cells[:] = self._on

    def _pose(self, t_s: float, belief: Belief, unknown_N: float) -> None:
        if np.isfinite(belief.ambient_C):
            self._wires.set_air(belief.ambient_C)
        _lock(self._times, t_s, belief.cells, belief.usable, self._on, self._since_s, self._locked)
        state = self._wires.ahead(self._lead_s, self._on, belief.T_C, belief.xi)
        for j in range(len(self._wanted)):
            after_s = self._lead_s + (j + 1) * self._block_s
            self._wanted[j] = self._reference.at(t_s + after_s) - unknown_N
        if not np.isnan(self._wanted[0]):
            self._planner.pose(state, self._on, self._locked, belief.usable, self._wanted)


@njit(cache=True)
def _lock(times, t_s, reported, usable, on, since_s, locked):  # type: ignore[no-untyped-def]
    """For how many blocks every cell must stay as it is."""
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
