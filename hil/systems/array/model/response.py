"""Responses of arrays over whole runs whose cell states are known."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from hil.compiled import borrowed, njit, put
from hil.mechanics.arrays import Array, Indices
from hil.mechanics.system import Drive
from hil.platform.processes import cpus
from hil.systems.array.model.period import period
from hil.systems.array.model.system import ArraySystem

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
    wires = system.wires
    still = np.zeros((len(cells), len(system.inputs)))
    moves_m = moves_m[: len(cells)] if moves_m.size else still
    if system.compiled:
        unwritten = np.zeros((0, 2, 0))
        _run(cells, moves_m, system.kernel(outputs), (of_wires, wires.state, unwritten), rows)
        return rows
    for k in range(len(rows)):
        if k:
            system.step(cells[k - 1], moves_m[k - 1])
        rows[k, : len(outputs)] = system.y[outputs]
        rows[k, len(outputs) :] = wires.state[:2].ravel()[of_wires]
    return rows


@njit(cache=True, nogil=True)
def _run(cells, moves_m, system, wires, rows):  # type: ignore[no-untyped-def]
    """`ArraySystem.step` for every period."""
    of_wires, state, unwritten = borrowed(wires)
    cells, moves_m, system = borrowed(cells), borrowed(moves_m), borrowed(system)
    y, n_cells = system[3][2], len(system[1][0][6])
    n_outputs = len(y)
    for k in range(len(rows)):
        if k:
            period(cells[k - 1], moves_m[k - 1], system, unwritten)
        put(y, rows[k])
        for i in range(len(of_wires)):
            rows[k, n_outputs + i] = state[of_wires[i] // n_cells, of_wires[i] % n_cells]
