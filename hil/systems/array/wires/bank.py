"""The estimated wires, each with three copies that give derivatives of its force.

One copy has a little more power, one a little more convection, one warmer air. Their differences
from the wire give its derivatives with respect to each uncertain parameter of its law.
"""

import numpy as np

from hil.compiled import njit
from hil.mechanics.arrays import Array
from hil.mechanics.sma.stressed import AS_TABULATED, advance
from hil.mechanics.sma.wire import E2_AT, G_AT, T_A_AT
from hil.mechanics.system import Drive
from hil.systems.array.wires.cells import WireModel

HEATING, COOLING, ROOM = E2_AT, G_AT, T_A_AT  # their indices in a law
OFF, OFF_K = 0.02, 1.0  # a copy's offset: relative power and convection; air in K
STEPS = np.array([[OFF], [OFF], [OFF_K]])


class WireBank:
    """See the module.

    Attributes
    ----------
    knots_C : (N, N_KNOTS) array, the branches of every wire
    laws : (4, N, M) array: estimated; with more power; with more convection; in warmer air
    wires : (4, N, 3) array, temperature, austenite fraction and lag of each
    comes : (N,) array, force of each cell divided by its static gain
    slopes : (3, N) array, derivatives of `comes` with respect to relative power, relative
        convection, and the air temperature in K
    """

    def __init__(self, cells: WireModel) -> None:
        n = len(cells.static_gains_N)
        self._rates, self._direct, self._gains_N = (
            cells.rate_per_s,
            cells.direct,
            cells.static_gains_N,
        )
        self.knots_C = cells.knots_C
        self.laws = np.repeat(cells.laws[None], 4, axis=0)
        self.wires = np.full((4, n, 3), np.nan)
        self.comes, self.slopes = np.zeros(n), np.zeros((3, n))
        self._xi, self._lag = np.zeros((2, n))
        self._warmer_K = 0.0
        self._set_others()

    def follow(self, for_s: float, T_C: Array, xi: Array, cells: Drive) -> None:
        """Advance by a time with these cells on, given the state of the twin's wires."""
        if np.isnan(self.wires[0, 0, 1]):
            self.wires[:, :, 0], self.wires[:, :, 1], self.wires[:, :, 2] = T_C, xi, 0.0
            self.wires[3, :, 0] += OFF_K
        if for_s > 0.0:
            _follow(
                self._rates, for_s, xi, self._xi, self._lag, self.laws, self.knots_C, cells,
                self.wires,
            )  # fmt: skip

    def look(self, xi: Array) -> float:
        """Update `comes` and `slopes`; return the force of the twin's wires in N."""
        every = self._direct * self.wires[:, :, 1] + (1.0 - self._direct) * self.wires[:, :, 2]
        self.comes[:] = every[0]
        np.divide(every[1:] - every[0], STEPS, out=self.slopes)
        return float(self._gains_N @ (self._direct * xi + (1.0 - self._direct) * self._lag))

    def set_air(self, T_C: float, *, settled: bool) -> None:
        """Set the measured air temperature; settled wires are set to it too."""
        self.laws[:, :, ROOM] = T_C + self._warmer_K
        self.laws[3, :, ROOM] += OFF_K
        if settled:
            self.wires[:, :, 0] = self.laws[:, :, ROOM]

    def believe(self, heating: Array, cooling: Array, room_K: float) -> None:
        """Change every law by these amounts, and the wires' states by their derivatives."""
        law = self.laws[0]
        law[:, HEATING] *= 1.0 + heating
        law[:, COOLING] *= 1.0 + cooling
        law[:, ROOM] += room_K
        self._warmer_K += room_K
        self._set_others()
        by = np.vstack([heating, cooling, np.full(len(heating), room_K)]) / STEPS
        apart = self.wires[1:] - self.wires[0]
        base = self.wires[0] + (by[:, :, None] * apart).sum(axis=0)
        np.clip(base[:, 1:], 0.0, 1.0, out=base[:, 1:])
        self.wires[0] = base
        self.wires[1:] = base + apart

    def _set_others(self) -> None:
        self.laws[1:] = self.laws[0]
        self.laws[1, :, HEATING] *= 1.0 + OFF
        self.laws[2, :, COOLING] *= 1.0 + OFF
        self.laws[3, :, ROOM] += OFF_K


@njit(cache=True)
def _follow(rates, h, xi_now, xi, lag, laws, knots, cells, wires):  # type: ignore[no-untyped-def]
    """Advance the lags of the twin's wires and of the copies."""
    for n in range(len(lag)):
        a = np.exp(-rates[n] * h)
        ramp = 1.0 - (1.0 - a) / (rates[n] * h)
        lag[n] = a * lag[n] + (1.0 - a - ramp) * xi[n] + ramp * xi_now[n]
        xi[n] = xi_now[n]
        for kind in range(len(wires)):
            own = wires[kind, n]
            before = own[1]
            own[0], own[1] = advance(
                laws[kind, n], knots[n], AS_TABULATED, float(cells[n]), own[0], before, h
            )
            own[2] = a * own[2] + (1.0 - a - ramp) * before + ramp * own[1]
