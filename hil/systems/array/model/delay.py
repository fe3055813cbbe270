"""Mean delay of an array's force after its cells switch."""

from collections.abc import Sequence

import numpy as np

from hil.systems.array.model.activation import CellActivation
from hil.systems.array.model.cell_array import CellArray
from hil.systems.array.model.force_levels import static_gains_N
from hil.systems.array.model.response import response
from hil.systems.array.model.system import ArraySystem

SETTLE_S, STEP_MIN_S = 30.0, 0.01


def mean_delay_s(
    model: CellArray, activation: Sequence[CellActivation], signal: str, period_s: float
) -> float:
    """Return the mean of the delays of a rise and of the fall after it, in s.

    All cells that add to the signal y are on for SETTLE_S, then off for as long:

        T = (int (1 - y / y_s) dt + int (y / y_s) dt) / 2

    with the settled y_s; the first integral is over the rise, the second over the fall. For a
    linear array both are its first moment: the pure delay that leaves the same lag on a ramp.
    Source: Elmore 1948, J. Applied Physics 19(1), eq. (3).
    """
    F_N = np.array([a.force_on_N for a in activation])
    system = ArraySystem(model, activation, max(period_s, STEP_MIN_S))
    output = model.outputs.index(signal)
    n = round(SETTLE_S / system.period_s)
    on = (static_gains_N(model, F_N, signal) > 0.0).astype(np.uint8)
    y = response(system, output, np.repeat([on, 0 * on], n, axis=0))[1:]
    settled = y[n - 1]
    left = np.concatenate(([1.0], 1.0 - y[:n] / settled)), np.concatenate(([1.0], y[n:] / settled))
    return 0.5 * sum(float(np.trapezoid(share, dx=system.period_s)) for share in left)
