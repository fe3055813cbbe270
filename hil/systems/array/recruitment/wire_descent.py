"""Descent over all duties of a plan at once, in steps that a tick has time for.

`hil.systems.array.recruitment.wire_descent_kernel` has the method. A step linearises one cell, or
sweeps once over its duties, or predicts its new forces.
"""

import numpy as np

from hil.systems.array.recruitment import wire_descent_kernel as kernel
from hil.systems.array.recruitment.wire_plan_kernel import Problem

SWEEPS = 6  # for one linearisation
PRODUCTS_A_STEP = 40  # multiplications that take as long as a predicted cell step
STEPS_A_DERIVATIVE = 5  # predicted cell steps a block: 4, and the products
DAMPING_FIRST, DAMPING_LEAST, DAMPING_MOST = 1e-2, 1e-3, 1e2
GAIN_LEAST = 1e-3  # relative gain below which the descent ends


class DutyDescent:
    """The descent.

    Attributes
    ----------
    finished : the last linearisation gained nothing worth another
    """

    def __init__(self, problem: Problem) -> None:
        self._problem, self._prices = problem, tuple(problem.prices)
        self._n_cells, self._n_blocks = n_cells, n_blocks = len(problem.plan), len(problem.error)
        self._by = np.zeros((2, n_cells, n_blocks, n_blocks))  # F, W
        self._rows = np.zeros((2, n_cells, n_blocks))  # v, H
        self._left = np.zeros(n_blocks), np.zeros((n_cells, n_blocks))
        self._trial, self._y = np.zeros((2, n_cells, n_blocks))
        self._damping = DAMPING_FIRST
        self._cost, self._trial_cost = 0.0, 0.0
        self._at = 0
        self.finished = True

    def begin(self) -> None:
        """Start at the present plan."""
        self._at, self.finished, self._damping = 0, False, DAMPING_FIRST

    @property
    def next_steps(self) -> int:
        """Predicted cell steps that the next step takes as long as."""
        turn = self._at // self._n_cells
        if turn == 0:
            return STEPS_A_DERIVATIVE * self._n_blocks
        return self._n_blocks if turn > SWEEPS else 2 * self._n_blocks**2 // PRODUCTS_A_STEP

    def step(self) -> None:
        """Do the next step: first every cell's derivatives, then sweeps, then its new forces."""
        turn, n = divmod(self._at, self._n_cells)
        self._at += 1
        if turn == 0:
            self._linearise(n)
        elif turn <= SWEEPS:
            if turn == 1 and n == 0:
                p = self._problem
                self._trial[:], self._left[0][:], self._left[1][:] = p.plan, p.error, self._rows[0]
            self._sweep(n)
        else:
            if n == 0:
                self._trial_cost = 0.0
            self._predict(n)
            if n == self._n_cells - 1:
                self._take_the_better()

    def _linearise(self, n: int) -> None:
        p, (v, H) = self._problem, self._rows
        if n == 0:
            self._cost = float(p.error @ p.error)
        H[n] = 0.0
        if p.usable[n]:
            self._cost += kernel.linearise(
                p.cell(n), self._prices, p.state[n], p.plan[n], p.locked[n],
                (self._by[0, n], self._by[1, n], v[n], H[n]),
            )  # fmt: skip

    def _sweep(self, n: int) -> None:
        p, (e, v) = self._problem, self._left
        kernel.sweep(
            (self._by[0, n], self._by[1, n], self._rows[1, n]), (e, v[n]), p.plan[n],
            self._trial[n], p.locked[n], (p.prices.power_N2, self._damping),
        )  # fmt: skip

    def _predict(self, n: int) -> None:
        p = self._problem
        if p.usable[n]:
            self._trial_cost += kernel.predict(
                p.cell(n), self._prices, p.state[n], self._trial[n], self._y[n]
            )

    def _take_the_better(self) -> None:
        p = self._problem
        error = p.error + (p.y - self._y)[p.usable != 0].sum(axis=0)
        cost = self._trial_cost + float(error @ error)
        if cost < self._cost:
            p.plan[:], p.error[:] = self._trial, error
            np.copyto(p.y, self._y, where=p.usable[:, None] != 0)
            self.finished = cost > self._cost * (1.0 - GAIN_LEAST)
            self._damping = max(DAMPING_LEAST, self._damping / 4.0)
            self._at = 0
        else:
            self._damping *= 8.0
            self.finished = self._damping > DAMPING_MOST
            self._at = self._n_cells  # the same derivatives
