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
        self._now = np.zeros(1, kernel.PROGRESS)
        descent = kernel.Descent(
            F=by[0], W=by[1], v=rows[0], H=rows[1], e_left=np.zeros(n_blocks), v_left=rows[2],
            trial=rows[3], y=rows[4], now=self._now,
        )  # fmt: skip
        self._descent = tuple(descent)
        self.stop()

    @property
    def finished(self) -> bool:
        """The last linearisation gained nothing worth another."""
        return bool(self._now["finished"][0])

    def begin(self) -> None:
        """Start at the present plan."""
        self._now["step"] = self._now["finished"] = 0.0
        self._now["damping"] = kernel.DAMPING_FIRST

    def stop(self) -> None:
        """Leave the plan as it is."""
        self._now["finished"] = 1.0

    def search(self, done: int, n_steps: int) -> int:
        """Continue until it has finished or there is no time for its next step.

        `done` of the `n_steps` have been predicted before; returns how many have been after it.
        """
        return int(kernel.descend(self._problem, self._descent, done, n_steps))
