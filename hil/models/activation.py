"""From cells switched on and off to activation forces F.

`step`: F is there at once. `sigmoid` (SMA heating and cooling): a state theta per cell with
theta' = +rate while on, -rate while off, clipped to +-rate x delay; F = force_on/(1+exp(-theta)).
Switched on from rest this is F/(1+exp(-(rate t - rate delay))): half at `delay`. A cell at rest
sits at the lower stop; switched at any moment, F does not jump.

Source: MacNair & Ueda, activation profile of Fig. 10, corrected: the printed expression for
switching on falls.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numba import njit
from numpy.typing import NDArray


@dataclass(frozen=True)
class CellActivation:
    """Profile of one cell.

    Attributes
    ----------
    force_on_N : float
        F of an active cell.
    kind : {"step", "sigmoid"}
    rate_per_s, delay_s : float
        Of the sigmoid; the paper's SMA wire has 5/s and 1.2 s.
    """

    force_on_N: float
    kind: Literal["step", "sigmoid"] = "step"
    rate_per_s: float = 5.0
    delay_s: float = 1.2


class Activation:
    """The cells' activation over a fixed period.

    Attributes
    ----------
    theta : (N,) array
        State of the sigmoid cells.
    F_before_N, F_N : (N,) arrays
        Activation forces at the start (cells already switched) and end of the last period.
    """

    def __init__(self, cells: Sequence[CellActivation], period_s: float) -> None:
        self._force_on = np.array([c.force_on_N for c in cells])
        self._sigmoid = np.array([c.kind == "sigmoid" for c in cells])
        self._stop = np.array([c.rate_per_s * c.delay_s for c in cells])
        self._step = np.array([c.rate_per_s * period_s for c in cells])
        self.theta = np.empty(len(cells))
        self.F_before_N = np.empty(len(cells))
        self.F_N = np.empty(len(cells))
        self.reset()

    def reset(self) -> None:
        """All cells cold."""
        self.theta[:] = -self._stop
        rest = self._force_on / (1.0 + np.exp(self._stop))
        self.F_N[:] = np.where(self._sigmoid, rest, 0.0)
        self.F_before_N[:] = self.F_N

    def step(self, cells: NDArray[np.uint8]) -> None:
        """Advance one period with these cells (1 = on) held."""
        _step(
            cells,
            self._force_on,
            self._sigmoid,
            self._stop,
            self._step,
            self.theta,
            self.F_before_N,
            self.F_N,
        )


@njit(cache=True)
def _step(cells, force_on, sigmoid, stop, step, theta, F_before, F):  # type: ignore[no-untyped-def]
    for n in range(len(cells)):
        if sigmoid[n]:
            F_before[n] = F[n]
            change = step[n] if cells[n] == 1 else -step[n]
            theta[n] = min(stop[n], max(-stop[n], theta[n] + change))
            F[n] = force_on[n] / (1.0 + np.exp(-theta[n]))
        else:
            F[n] = force_on[n] if cells[n] == 1 else 0.0
            F_before[n] = F[n]
