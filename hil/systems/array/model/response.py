"""Responses of arrays over whole runs whose cell states are known."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from hil.compiled import njit
from hil.mechanics.arrays import Array, Indices
from hil.mechanics.discrete import LinearStepper, advanced
from hil.mechanics.sma.wire import step_wires
from hil.mechanics.system import Drive
from hil.platform.processes import cpus
from hil.systems.array.model.activation import switched
from hil.systems.array.model.system import NO_INPUTS, ArraySystem
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
    moves_m : (n, P) array, row k holds where the driven points are at the end of period k
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
    linear, now, still = system.linear, system.activation, not system.inputs
    if still and isinstance(linear, LinearStepper) and (now.only_wires or now.arrays is not None):
        columns = linear.discrete.columns_of(outputs)
        states: tuple[Any, ...] = linear.x, np.empty_like(linear.x), linear.y[outputs]
        if now.arrays is not None:
            _run(cells, now.arrays, columns, states, rows)
            return rows
        loaded = NO_WIRES if system.loaded is None else system.loaded.kernel
        wires = now.wires.arrays, system.period_s / system.steps, loaded, system.steps
        own = now.F_before_N, now.F_N, now.wires.state
        _run_wires(cells, wires, columns, states, own, of_wires, rows)
        return rows
    for k in range(len(rows)):
        if k:
            system.step(cells[k - 1], NO_INPUTS if still else moves_m[k - 1])
        rows[k, : len(outputs)] = system.y[outputs]
        rows[k, len(outputs) :] = system.wires.state[:2].ravel()[of_wires]
    return rows


@njit(cache=True, nogil=True)
def _run(cells, switching, columns, states, rows):  # type: ignore[no-untyped-def]
    force_on, kind, stop, rate, theta, F_before, F = switching
    Ad, B0, B1, C, D = columns
    x, x_next, y = states
    rows[0] = y
    for k in range(len(cells)):
        switched(cells[k], force_on, kind, stop, rate, theta, F_before, F)
        advanced(Ad, B0, B1, C, D, x, x_next, F_before, F, y)
        rows[k + 1] = y


@njit(cache=True, nogil=True)
def _run_wires(cells, wires, columns, states, own, of_wires, rows):  # type: ignore[no-untyped-def]
    Ad, B0, B1, C, D = columns
    unloaded, h, loaded, steps = wires
    x, x_next, y = states
    F_before, F, state = own
    n_cells, n_outputs = len(F), len(y)
    for k in range(len(rows)):
        for _ in range(steps if k else 0):
            step_wires(cells[k - 1], h, unloaded, F_before, F)
            if len(loaded.own):
                step_loaded(cells[k - 1], x, loaded, F_before, F, STILL)
            advanced(Ad, B0, B1, C, D, x, x_next, F_before, F, y)
        rows[k, :n_outputs] = y
        for i in range(len(of_wires)):
            rows[k, n_outputs + i] = state[of_wires[i] // n_cells, of_wires[i] % n_cells]
