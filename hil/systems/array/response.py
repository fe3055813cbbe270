"""Response of an array over a whole run whose cell states are known."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hil.mechanics.discrete import LinearStepper, advanced
from hil.systems.array.activation import switched
from hil.systems.array.system import ArraySystem


def response(system: ArraySystem, output: int, cells: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Return one output of a new system, initially and after each period, (n + 1,).

    Parameters
    ----------
    cells : (n, N) array, row k holds the cells that are on during period k
    """
    y = np.empty(len(cells) + 1)
    linear, switching = system.linear, system.activation.arrays
    if switching is not None and isinstance(linear, LinearStepper):
        d = linear.discrete
        rows = np.ascontiguousarray(d.C[output : output + 1]), d.D[output : output + 1].copy()
        one = linear.y[output : output + 1]
        states = linear.x, np.empty_like(linear.x), one
        _run(cells, switching, (d.Ad, d.B0, d.B1, *rows), states, y)
        return y
    y[0] = system.y[output]
    for k, on in enumerate(cells, start=1):
        system.step(on)
        y[k] = system.y[output]
    return y


@njit(cache=True)
def _run(  # type: ignore[no-untyped-def]
    cells, switching, matrices, states, ys
):
    force_on, kind, stop, rate, theta, F_before, F = switching
    Ad, B0, B1, C, D = matrices
    x, x_next, y = states
    ys[0] = y[0]
    for k in range(len(cells)):
        switched(cells[k], force_on, kind, stop, rate, theta, F_before, F)
        advanced(Ad, B0, B1, C, D, x, x_next, F_before, F, y)
        ys[k + 1] = y[0]
