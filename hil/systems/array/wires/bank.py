"""The estimated wires, each with three copies that give derivatives of its force.

One copy has a little more power, one a little more convection, one warmer air. Their differences
from the wire give its derivatives with respect to each uncertain parameter of its law.
"""

import numpy as np
from numpy.typing import NDArray

from hil.compiled import njit
from hil.mechanics.arrays import Array, Records
from hil.mechanics.sma.stressed import AS_TABULATED, advance, branches
from hil.mechanics.system import Drive
from hil.systems.array.wires.cells import WireModel

OFF, OFF_K = 0.02, 1.0  # a copy's offset: relative power and convection; air in K
STEPS = np.array([[OFF], [OFF], [OFF_K]])


LAG = np.dtype([(name, float) for name in ("rate_per_s", "xi", "lagged_xi")])


class WireBank:
    """See the module.

    Attributes
    ----------
    knots_C : (N, N_KNOTS) array, the branches of every wire
    laws : (4, N) array: estimated; with more power; with more convection; in warmer air
    wires : (4, N, 3) array, temperature, austenite fraction and lag of each
    forces : (4, N) array, `comes` and `slopes`; its user may replace it by rows of its own array
    """

    def __init__(self, cells: WireModel) -> None:
        n = len(cells.static_gains_N)
        self._direct, self._gains_N = cells.direct, cells.static_gains_N
        self.knots_C = cells.knots_C
        self.laws = np.repeat(cells.laws[None], 4, axis=0)
        self.wires = np.full((4, n, 3), np.nan)
        self.forces = np.zeros((4, n))
        self._twin = np.zeros(n, LAG)
        self._twin["rate_per_s"] = cells.rate_per_s
        self._all = self.laws, self.knots_C, self.wires
        self._sums = np.zeros((4, n))
        self._sum_twin_N, self._n_summed = 0.0, 0
        self._warmer_K = 0.0
        self._set_others()

    @property
    def comes(self) -> Array:
        """(N,) array, force of each cell divided by its static gain."""
        comes: Array = self.forces[0]
        return comes

    @property
    def slopes(self) -> Array:
        """(3, N) array, derivatives of `comes` to relative power, convection, and air in K."""
        return self.forces[1:]

    def follow(self, for_s: float, T_C: Array, xi: Array, cells: Drive) -> None:
        """Advance by a time with these cells on, given the state of the twin's wires."""
        if np.isnan(self.wires[0, 0, 1]):
            self.wires[:, :, 0], self.wires[:, :, 1], self.wires[:, :, 2] = T_C, xi, 0.0
            self.wires[3, :, 0] += OFF_K
        if for_s > 0.0:
            _follow(self._all, self._twin, xi, cells, for_s)

    def look(self, xi: Array) -> float:
        """Update `comes` and `slopes`; return the force of the twin's wires in N."""
        every = self._direct * self.wires[:, :, 1] + (1.0 - self._direct) * self.wires[:, :, 2]
        self.comes[:] = every[0]
        np.divide(every[1:] - every[0], STEPS, out=self.slopes)
        return float(
            self._gains_N @ (self._direct * xi + (1.0 - self._direct) * self._twin["lagged_xi"])
        )

    def add(self, xi: Array) -> None:
        """Add the present forces to the means that `look_at_mean` returns."""
        self._sum_twin_N += _add(
            self.wires, self._twin, xi, (self._direct, self._gains_N), self._sums
        )
        self._n_summed += 1

    def look_at_mean(self) -> float:
        """Update `comes` and `slopes` as means since the last call; return the twin's mean in N."""
        n = self._n_summed
        self.comes[:] = self._sums[0] / n
        np.divide(self._sums[1:] / n - self.comes, STEPS, out=self.slopes)
        twin_N = self._sum_twin_N / n
        self._sums[:], self._sum_twin_N, self._n_summed = 0.0, 0.0, 0
        return twin_N

    def set_air(self, T_C: float, *, settled: bool) -> None:
        """Set the measured air temperature; settled wires are set to it too."""
        self.laws["T_a"] = T_C + self._warmer_K
        self.laws["T_a"][3] += OFF_K
        if settled:
            self.wires[:, :, 0] = self.laws["T_a"]

    def believe(self, heating: Array, cooling: Array, room_K: float) -> None:
        """Change every law by these amounts, and the wires' states by their derivatives."""
        law = self.laws[0]
        law["E2"] *= 1.0 + heating
        law["G"] *= 1.0 + cooling
        law["T_a"] += room_K
        self._warmer_K += room_K
        self._set_others()
        by = np.vstack([heating, cooling, np.full(len(heating), room_K)]) / STEPS
        apart = self.wires[1:] - self.wires[0]
        base = self.wires[0] + (by[:, :, None] * apart).sum(axis=0)
        self.wires[0] = base
        self.wires[1:] = base + apart
        for states in self.wires:
            confine(self.knots_C, states)

    def _set_others(self) -> None:
        self.laws[1:] = self.laws[0]
        self.laws["E2"][1] *= 1.0 + OFF
        self.laws["G"][2] *= 1.0 + OFF
        self.laws["T_a"][3] += OFF_K


@njit(cache=True)
def confine(knots_C: Array, states: Array) -> None:
    """Put wires (N, 3) at the nearest temperature between their branches; at 0 and 1 these end.

    Temperature and austenite are corrected apart. Beyond a branch a wire would transform at once,
    and the force, which has told the austenite, would be lost.
    """
    for n in range(len(states)):
        state = states[n]
        for k in (1, 2):
            state[k] = min(max(state[k], 0.0), 1.0)
        hot, cold = branches(knots_C[n], AS_TABULATED, state[1])
        if state[1] < 1.0:
            state[0] = min(state[0], hot)
        if state[1] > 0.0:
            state[0] = max(state[0], cold)


@njit(cache=True)
def _follow(
    wires: tuple[Records, Array, Array], twin: NDArray[np.void], xi: Array, cells: Drive, h_s: float
) -> None:
    """Advance the lags of the twin's wires and of the copies."""
    laws, knots_C, states = wires
    for n in range(len(twin)):
        lag = twin[n]
        a = np.exp(-lag["rate_per_s"] * h_s)
        ramp = 1.0 - (1.0 - a) / (lag["rate_per_s"] * h_s)
        lag["lagged_xi"] = a * lag["lagged_xi"] + (1.0 - a - ramp) * lag["xi"] + ramp * xi[n]
        lag["xi"] = xi[n]
        for kind in range(len(states)):
            state = states[kind, n]
            before = state[1]
            state[0], state[1] = advance(
                laws[kind, n], knots_C[n], AS_TABULATED, float(cells[n]), state[0],
                before, h_s,
            )  # fmt: skip
            state[2] = a * state[2] + (1.0 - a - ramp) * before + ramp * state[1]


@njit(cache=True)
def _add(
    states: Array, twin: NDArray[np.void], xi: Array, of: tuple[Array, Array], sums: Array
) -> float:
    """Add the force of every copy over its static gain to `sums`; return the twin's force."""
    direct, gains_N = of
    twin_N = 0.0
    for n in range(len(twin)):
        c = direct[n]
        for kind in range(len(states)):
            sums[kind, n] += c * states[kind, n, 1] + (1.0 - c) * states[kind, n, 2]
        twin_N += gains_N[n] * (c * xi[n] + (1.0 - c) * twin[n]["lagged_xi"])
    return twin_N
