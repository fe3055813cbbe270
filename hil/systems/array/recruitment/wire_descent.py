"""Descent over all duties of a plan at once, in steps that a tick has time for.

`hil.systems.array.recruitment.wire_descent_kernel` has the method. A step linearises one cell, or
sweeps once over all duties, or predicts the new plan.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hil.mechanics.arrays import Array, Mask
from hil.systems.array.recruitment import wire_descent_kernel as kernel

SWEEPS = 6  # for one linearisation
PRODUCTS_A_STEP = 40  # multiplications that take as long as a predicted cell step
STEPS_A_DERIVATIVE = 5  # predicted cell steps a block: 4, and the products
DAMPING_FIRST, DAMPING_LEAST, DAMPING_MOST = 1e-2, 1e-3, 1e2
GAIN_LEAST = 1e-3  # relative gain below which the descent ends


class Problem(NamedTuple):
    """A plan and what it is for; the search and the descent work on the same one.

    Attributes
    ----------
    cells : laws (N, 13), knots (N, K), static gains (N,), direct parts (N,), lag weights (N, 3),
        length of a block (s)
    prices : of a switch, a change of austenite from 0 to 1, and a block at full power, N2
    state : (N, 3) array, temperature, austenite and lag at the first block
    on : (N,) array, duties before the first block
    locked : (N,) array, number of blocks for which a cell must not change
    usable : (N,) array
    plan, y : (N, M) arrays, duties, and the forces at the ends of the blocks
    error : (M,) array, set point minus force
    """

    cells: tuple[Array, Array, Array, Array, Array, float]
    prices: tuple[float, float, float]
    state: Array
    on: Array
    locked: NDArray[np.int64]
    usable: Mask
    plan: Array
    y: Array
    error: Array

    def cell(self, n: int) -> tuple[Array, Array, float, float, Array, float]:
        """What a kernel takes of one cell."""
        laws, knots_C, gains_N, direct, lag, block_s = self.cells
        return laws[n], knots_C[n], gains_N[n], direct[n], lag[n], block_s


class DutyDescent:
    """The descent.

    Attributes
    ----------
    finished : the last linearisation gained nothing worth another
    n_cells, n_blocks : size of a plan
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self.n_cells: int = len(problem.plan)
        self.n_blocks: int = len(problem.error)
        n_cells, n_blocks = self.n_cells, self.n_blocks
        self._by = np.zeros((2, n_cells, n_blocks, n_blocks))
        self._rows = np.zeros((2, n_cells, n_blocks))  # v, H
        self._left = np.zeros(n_blocks), np.zeros((n_cells, n_blocks))
        self._trial, self._y = np.zeros((2, n_cells, n_blocks))
        self._damping = DAMPING_FIRST
        self._at = 0
        self.finished = True

    def begin(self) -> None:
        """Start at the present plan."""
        self._at, self.finished, self._damping = 0, False, DAMPING_FIRST

    @property
    def next_steps(self) -> int:
        """Predicted cell steps that the next step takes as long as."""
        n_cells, n_blocks = self.n_cells, self.n_blocks
        if self._at < n_cells:
            return STEPS_A_DERIVATIVE * n_blocks
        if self._at < n_cells + SWEEPS:
            return 2 * n_cells * n_blocks**2 // PRODUCTS_A_STEP
        return 2 * n_cells * n_blocks

    def step(self) -> None:
        """Do the next step."""
        p, n_cells = self._problem, self.n_cells
        v, H = self._rows
        if self._at < n_cells:
            n = self._at
            H[n] = 0.0
            if p.usable[n] and p.cells[2][n] != 0.0:
                kernel.linearise(
                    p.cell(n), p.prices, p.state[n], p.plan[n], p.locked[n],
                    (self._by[0, n], self._by[1, n]), (v[n], H[n]),
                )  # fmt: skip
        elif self._at < n_cells + SWEEPS:
            if self._at == n_cells:
                self._trial[:], self._left[0][:], self._left[1][:] = p.plan, p.error, v
            kernel.sweep(
                (self._by[0], self._by[1], H), self._left, p.plan, self._trial, p.locked,
                p.prices[2], self._damping,
            )  # fmt: skip
        else:
            self._take_the_better()
            return
        self._at += 1

    def _take_the_better(self) -> None:
        p = self._problem
        wanted = p.error + p.y.sum(axis=0)
        before = kernel.predict(p.cells, p.prices, p.state, p.on, p.plan, self._y)
        before += float(p.error @ p.error)
        now = kernel.predict(p.cells, p.prices, p.state, p.on, self._trial, self._y)
        error = wanted - self._y.sum(axis=0)
        now += float(error @ error)
        if now < before:
            p.plan[:], p.y[:], p.error[:] = self._trial, self._y, error
            self.finished = now > before * (1.0 - GAIN_LEAST)
            self._damping = max(DAMPING_LEAST, self._damping / 4.0)
            self._at = 0
        else:
            self._damping *= 8.0
            self.finished = self._damping > DAMPING_MOST
            self._at = self.n_cells  # the same derivatives
