"""Response of an array over a whole run whose cell states are known."""

import numpy as np
from numpy.typing import NDArray

from hil.compiled import njit
from hil.mechanics.discrete import LinearStepper, advanced
from hil.mechanics.sma.wire import step_wires
from hil.systems.array.model.activation import switched
from hil.systems.array.model.system import NO_INPUTS, ArraySystem
from hil.systems.array.model.wire_step import StressedWires, step_loaded

NOTHING = np.zeros((0, 0))
NO_WIRES = StressedWires(0.0, False, np.zeros((2, 0), dtype=np.int64), *(NOTHING,) * 5, np.zeros(0))
STILL = np.zeros((2, 0))


def response(
    system: ArraySystem, output: int, cells: NDArray[np.uint8], moves_m: NDArray[np.float64] = STILL
) -> NDArray[np.float64]:
    """Return one output of a new system, initially and after each period, (n + 1,).

    Parameters
    ----------
    cells : (n, N) array, row k holds the cells that are on during period k
    moves_m : (n, P) array, row k holds where the driven points are at the end of period k
    """
    y = np.empty(len(cells) + 1)
    linear, switching = system.linear, system.activation.arrays
    still = not system.inputs
    if still and switching is not None and isinstance(linear, LinearStepper):
        d = linear.discrete
        rows = np.ascontiguousarray(d.C[output : output + 1]), d.D[output : output + 1].copy()
        one = linear.y[output : output + 1]
        states = linear.x, np.empty_like(linear.x), one
        _run(cells, switching, (d.Ad, d.B0, d.B1, *rows), states, y)
        return y
    if still and system.activation.only_wires and isinstance(linear, LinearStepper):
        d, now = linear.discrete, system.activation
        matrices = d.Ad, d.B0, d.B1, d.C, d.D
        all_states = linear.x, np.empty_like(linear.x), linear.y, now.F_before_N, now.F_N
        loaded = NO_WIRES if system.loaded is None else system.loaded.kernel
        wires = (now.wires.arrays, system.period_s / system.steps, loaded, system.steps)
        _run_wires(cells, wires, matrices, all_states, output, y)
        return y
    y[0] = system.y[output]
    for k, on in enumerate(cells, start=1):
        system.step(on, NO_INPUTS if still else moves_m[k - 1])
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


@njit(cache=True)
def _run_wires(cells, wires, matrices, states, output, ys):  # type: ignore[no-untyped-def]
    unloaded, h, loaded, steps = wires
    Ad, B0, B1, C, D = matrices
    x, x_next, y, F_before, F = states
    ys[0] = y[output]
    for k in range(len(cells)):
        for _ in range(steps):
            step_wires(cells[k], h, unloaded, F_before, F)
            if len(loaded.own):
                step_loaded(cells[k], x, loaded, F_before, F, STILL)
            advanced(Ad, B0, B1, C, D, x, x_next, F_before, F, y)
        ys[k + 1] = y[output]
