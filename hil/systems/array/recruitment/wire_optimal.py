"""Optimal control of cells that are wires, with their heating and cooling laws.

At regular intervals a planner (`hil.systems.array.recruitment.wire_plan`) searches for the
switches, or the duties, of the next seconds. It uses the current estimate of the wires
(`hil.systems.array.wires.learning`): laws, static gains, and the temperature, austenite fraction
and lag state of every wire. As in `hil.systems.array.recruitment.optimal` the search has a budget
in ticks and a fixed number of steps per tick, so neither cost nor result depends on a clock. At the
end of the budget the best plan found is applied. The part of the force that the wires do not
explain is assumed constant, which removes steady-state errors.
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hil.compiled import njit
from hil.control.controller import ArrayEstimate
from hil.control.reference import Reference
from hil.loop.duty import STEPS
from hil.mechanics.arrays import Array, Mask, Records
from hil.systems.array.recruitment.optimal import Held, PlannedCells, PlanRules, Search, notice


class Planner(Search, Protocol):
    """Interface of `hil.systems.array.recruitment.wire_plan`."""

    def pose(
        self, wires: tuple[Records, Array, Array], on: Array, locked: NDArray[np.int64],
        usable: Mask, wanted_N: Array,
    ) -> None: ...  # fmt: skip


class WireOptimal(PlannedCells):
    """Plans with the current estimate of the wires.

    `levels_per_tick` of the rules is the number of predicted cell steps per tick.

    Parameters
    ----------
    steps_min : smallest duty above 0 that boards apply, in their steps (`hil.loop.duty.STEPS`)
    """

    def __init__(
        self, rules: PlanRules, planner: Planner, reference: Reference, steps_min: int
    ) -> None:
        n_cells, n_blocks = planner.plan.shape
        self._on = np.zeros(n_cells)
        super().__init__(rules, planner, self._on, reference)
        self._planner, self._steps_min = planner, float(steps_min)
        self._static_gains_N, self._wanted = np.zeros(n_cells), np.zeros(n_blocks)
        self._locked = np.zeros(n_cells, dtype=np.int64)

    def _apply(self, t_s: float, usable: Mask) -> None:
        _apply(self._planner.plan, t_s, usable, self._plain, self._steps_min)
        self.demand_N = float(self._static_gains_N @ self._on)

    def _pose(self, t_s: float, estimate: ArrayEstimate, reported: Mask) -> int:
        assert estimate.wires is not None  # the estimator has learned them
        _lock(self._plain, t_s, reported, estimate.usable, self._locked)
        wires = estimate.wires.look()
        _, self._static_gains_N[:], _ = wires
        rules = self._rules
        for j in range(len(self._wanted)):
            after_s = rules.lead_s + (j + 1) * rules.block_s
            self._wanted[j] = self._reference.at(t_s + after_s) - estimate.wires.unknown_N
        if not np.isnan(self._wanted[0]):
            self._planner.pose(wires, self._on, self._locked, estimate.usable, self._wanted)
        return self._planner.plan.size  # every cell is predicted once


@njit(cache=True)
def _lock(plain, t_s, reported, usable, locked):  # type: ignore[no-untyped-def]
    """Compute the number of blocks for which every cell must keep its state."""
    held = Held(*plain)
    on, since_s, (on_min, off_min, lead, block) = held
    for n in range(len(on)):
        notice(n, held, t_s, reported, usable)
        left = (on_min if on[n] else off_min) - (t_s + lead - since_s[n])
        locked[n] = int(np.ceil(max(0.0, left / block - 1e-9)))


@njit(cache=True)
def _apply(plan, t_s, usable, plain, steps_min):  # type: ignore[no-untyped-def]
    on, since_s, _ = plain
    for n in range(len(on)):
        steps = np.rint(STEPS * plan[n, 0])
        if 0.0 < steps < steps_min:
            steps = steps_min if 2.0 * steps >= steps_min else 0.0
        to = steps / STEPS if usable[n] else 0.0
        if on[n] != to:
            on[n], since_s[n] = to, t_s
