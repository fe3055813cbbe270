"""The compiled period of an array: its cells, its wires and its linear part, by steps.

`ArraySystem.step` is this for one period, `hil.systems.array.model.response` for a whole run.
"""

import numpy as np

from hil.compiled import borrowed, njit, put
from hil.mechanics.discrete import advanced
from hil.mechanics.sma.wire import LAW, step_wires
from hil.systems.array.model.activation import switched
from hil.systems.array.model.wire_step import CELL, LOAD, StressedWires, step_loaded

NOTHING = np.zeros((0, 0))
NO_WIRES = StressedWires(
    0.0, False, np.zeros((2, 0), dtype=np.int64), np.zeros(0, CELL), np.zeros(0, LAW), NOTHING,
    NOTHING, np.zeros(0, LOAD), np.zeros(0),
)  # fmt: skip


@njit(cache=True)
def _move(moves, start_m, end_m, step, h):  # type: ignore[no-untyped-def]
    """Move the driven points by a step (number, of how many), as `ArraySystem` does."""
    for p in range(len(start_m)):
        x_m = end_m[p]
        if step[0] < step[1]:
            x_m = step[0] * ((x_m - start_m[p]) / step[1]) + start_m[p]
        before_m, moves[0, 2 * p], moves[1, 2 * p] = moves[1, 2 * p], moves[1, 2 * p], x_m
        moves[0, 2 * p + 1] = moves[1, 2 * p + 1] = (x_m - before_m) / h


@njit(cache=True)
def period(drive, end_m, system, path):  # type: ignore[no-untyped-def]
    """Advance by a period with these duties; driven points come to `end_m` at its end.

    `system` has (number of steps, their duration, whether a cell is no wire), what makes the
    forces, columns of the linear part, its states, and (moves, u at the beginning of a step, and at
    its end). `path` (steps, 2, K) becomes the u of every step, unless it is empty.
    """
    (n_steps, h, some_switched), forces, columns, states, motion = system
    drive, columns, motion = borrowed(drive), borrowed(columns), borrowed(motion)
    (x, x_next, y), (moves, u0, u1) = borrowed(states), motion
    switching, unloaded, loaded = borrowed(forces)
    F_before, F = switching[5], switching[6]
    n_cells = len(F)
    start_m = moves[1, ::2].copy()
    for step in range(n_steps):
        if len(start_m):
            _move(moves, start_m, end_m, (step + 1, n_steps), h)
        step_wires(drive, h, unloaded, F_before, F)
        if some_switched:
            switched(drive, switching)
        if len(loaded.constants):
            step_loaded(drive, x, loaded, F_before, F, moves)
        if len(start_m):
            put(F_before, u0)
            put(moves[0], u0[n_cells:])
            put(F, u1)
            put(moves[1], u1[n_cells:])
        advanced(columns, x, x_next, u0, u1, y)
        if len(path):
            put(u0, path[step, 0])
            put(u1, path[step, 1])
