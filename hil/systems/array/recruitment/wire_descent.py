"""Descent over all duties of a plan at once, in steps that a tick has time for.

`hil.systems.array.recruitment.wire_descent_kernel` has the method.
"""

import numpy as np

from hil.systems.array.recruitment import wire_descent_kernel as kernel
from hil.systems.array.recruitment.wire_plan_kernel import Problem


class DutyDescent:
    """The descent; it has finished until `begin`."""

    def __init__(self, problem: Problem) -> None:
        n_cells, n_blocks = problem.plan.shape
        by = np.zeros((2, n_cells, n_blocks, n_blocks))
        rows = np.zeros((5, n_cells, n_blocks))
        self._problem = problem.plain()
        self._at, self._values = np.array([0, 1], dtype=np.int64), np.zeros(3)
        descent = kernel.Descent(
            F=by[0], W=by[1], v=rows[0], H=rows[1], e_left=np.zeros(n_blocks), v_left=rows[2],
            trial=rows[3], y=rows[4], at=self._at, values=self._values,
        )  # fmt: skip
        self._descent = tuple(descent)

    @property
    def finished(self) -> bool:
        """The last linearisation gained nothing worth another."""
        return bool(self._at[1])

    def begin(self) -> None:
        """Start at the present plan."""
        self._at[:], self._values[0] = 0, kernel.DAMPING_FIRST

    def stop(self) -> None:
        """Leave the plan as it is."""
        self._at[1] = 1

    def search(self, done: int, n_steps: int) -> int:
        """Continue until it has finished or there is no time for its next step.

        `done` of the `n_steps` have been predicted before; returns how many have been after it.
        """
        return int(kernel.descend(self._problem, self._descent, done, n_steps))
