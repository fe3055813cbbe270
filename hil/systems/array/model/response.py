"""Responses of arrays over whole runs whose cell states are known."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from hil.compiled import borrowed, njit
from hil.mechanics.arrays import Array, Indices
from hil.mechanics.discrete import LinearStepper, advanced
from hil.mechanics.sma.wire import step_wires
from hil.mechanics.system import Drive
from hil.platform.processes import cpus
from hil.systems.array.model.activation import switched
from hil.systems.array.model.system import ArraySystem
from hil.systems.array.model.wire_step import StressedWires, step_loaded

NOTHING = np.zeros((0, 0))
NO_WIRES = StressedWires(0.0, False, np.zeros((2, 0), dtype=np.int64), *(NOTHING,) * 5, np.zeros(0))
STILL = np.zeros((2, 0))
NONE = np.zeros(0, dtype=np.int64)


def responses(
    systems: Sequence[ArraySystem],
    outputs: Indices,
    cells: Drive | Sequence[Drive],
    moves_m: Array = STILL,
    of_wires: Indices = NONE,
) -> list[Array]:
    """Return quantities of new systems, initially and after each period, (n + 1, p + w) each.

    All processors step the systems at once, each by the kernels of `ArraySystem.step`.

    Parameters
    ----------
    outputs : (p,) array, of `ArraySystem.outputs`
    cells : (n, N) array, or one for every system
        Row k holds the cells that are on, or their duties, during period k.
    moves_m : (n, P) array
        Row k holds where the driven points are at the end of period k; by default they stay at 0.
    of_wires : (w,) array, n for the temperature of cell n's wire (from 0), N + n for its austenite
    """
    every = [cells] * len(systems) if isinstance(cells, np.ndarray) and cells.ndim == 2 else cells
    with ThreadPoolExecutor(len(cpus())) as threads:
        return list(
            threads.map(
                lambda one, on: _response(one, on, moves_m, outputs, of_wires), systems, every
            )
        )


def response(system: ArraySystem, output: int, cells: Drive, moves_m: Array = STILL) -> Array:
    """Return one output of a new system, initially and after each period, (n + 1,)."""
    return _response(system, cells, moves_m, np.array([output]), NONE)[:, 0]


def _response(
    system: ArraySystem, cells: Drive, moves_m: Array, outputs: Indices, of_wires: Indices
) -> Array:
    rows = np.empty((len(cells) + 1, len(outputs) + len(of_wires)))
    linear, now, wires = system.linear, system.activation, system.wires
    still = np.zeros((len(cells), len(system.inputs)))
    moves_m = moves_m[: len(cells)] if moves_m.size else still
    # Of several driven points within a period only ArraySystem has the rounding.
    if isinstance(linear, LinearStepper) and (len(system.inputs) < 2 or system.steps == 1):
        loaded = NO_WIRES if system.loaded is None else system.loaded.kernel
        steps = system.steps, system.period_s / system.steps, now.has_switched
        states = linear.x, np.empty_like(linear.x), linear.y[outputs], wires.state
        columns = linear.discrete.columns_of(outputs)
        forces = now.arrays, wires.arrays, loaded
        motion = moves_m, system.moves, *system.u
        _run(cells, (steps, forces, (columns, *states), motion), of_wires, rows)
        return rows
    for k in range(len(rows)):
        if k:
            system.step(cells[k - 1], moves_m[k - 1])
        rows[k, : len(outputs)] = system.y[outputs]
        rows[k, len(outputs) :] = wires.state[:2].ravel()[of_wires]
    return rows


@njit(cache=True)
def _move(moves, start_m, end_m, step, h):  # type: ignore[no-untyped-def]
    """Move the driven points by a step (number, of how many), as `ArraySystem` does."""
    for p in range(len(start_m)):
        x_m = end_m[p]
        if step[0] < step[1]:
            x_m = step[0] * ((x_m - start_m[p]) / step[1]) + start_m[p]
        before_m, moves[0, 2 * p], moves[1, 2 * p] = moves[1, 2 * p], moves[1, 2 * p], x_m
        moves[0, 2 * p + 1] = moves[1, 2 * p + 1] = (x_m - before_m) / h


@njit(cache=True, nogil=True)
def _run(cells, system, of_wires, rows):  # type: ignore[no-untyped-def]
    """`ArraySystem.step` for every period."""
    steps, forces, linear, motion = system
    n_steps, h, some_switched = steps
    cells, motion, linear = borrowed(cells), borrowed(motion), borrowed(linear)
    switching, unloaded, loaded = borrowed(forces)
    F_before, F = switching[5], switching[6]
    columns, x, x_next, y, state = linear
    moves_m, moves, u0, u1 = motion
    n_cells, n_outputs, n_driven = len(F), len(y), moves_m.shape[1]
    start_m = np.zeros(n_driven)
    for k in range(len(rows)):
        for step in range(n_steps if k else 0):
            if n_driven:
                if step == 0:
                    start_m[:] = moves[1, ::2]
                _move(moves, start_m, moves_m[k - 1], (step + 1, n_steps), h)
            step_wires(cells[k - 1], h, unloaded, F_before, F)
            if some_switched:
                switched(cells[k - 1], switching)
            if len(loaded.own):
                step_loaded(cells[k - 1], x, loaded, F_before, F, moves)
            if n_driven:
                u0[:n_cells], u0[n_cells:] = F_before, moves[0]
                u1[:n_cells], u1[n_cells:] = F, moves[1]
            advanced(columns, x, x_next, u0, u1, y)
        rows[k, :n_outputs] = y
        for i in range(len(of_wires)):
            rows[k, n_outputs + i] = state[of_wires[i] // n_cells, of_wires[i] % n_cells]
