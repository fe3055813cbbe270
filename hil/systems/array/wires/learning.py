"""Estimates the wires during a run: the configured wires, corrected by the measured force.

A Kalman filter (`hil.systems.array.wires.filter`) estimates the errors of static gain, power,
convection and air from the force. Every FOLD_S the errors of the laws move into the laws; the rest
is a first-order correction of the wires' state. A sample is the mean of all readings since the last
one, and what it is compared with is the mean of the model's forces at the same ticks, so that every
reading counts with its own age. The force that the wires do not explain has two parts. One is the
filter's estimate of zero and disturbance: the noise of readings reaches a plan only as far as it
passes the filter. An innovation beyond JUMP standard deviations is a jump of that force, whose
variance grows by it. The other is known: the twin's force less that of its wires in proportion to
their austenite, since cells load each other and the stroke of a wire grows with stress. A plan
takes both as they are now for all of its horizon.

If the mean of nu^2 / S over SURPRISED_FOR_S exceeds SURPRISED, the array is no longer healthy: a
cell may have died. The relative uncertainty of every static gain is then raised by ANEW.

Source: Ljung 1979 (the extended Kalman filter as a parameter estimator); Xia, Rao, Ying & Shen 1994
(a filter that forgets when its innovations are too large).
"""

import numpy as np

from hil.compiled import njit, put
from hil.mechanics.arrays import Array, Records
from hil.mechanics.system import Drive
from hil.systems.array.wires.bank import OFF, OFF_K, confine
from hil.systems.array.wires.cells import WireModel
from hil.systems.array.wires.filter import FilteredWires, WireErrors

FOLD_S = 5.0
SURPRISED, SURPRISED_FOR_S, ANEW = 2.0, 1.0, 0.1
JUMP = 4.0  # standard deviations of an innovation beyond which the unknown force has jumped


class LearnedWires(FilteredWires):
    """Wire models that are corrected during the run.

    Attributes
    ----------
    unknown_N : estimated force that the wires do not explain
    surprise : mean of nu^2 / S; 1 while the filter's model is correct
    """

    def __init__(self, errors: WireErrors, cells: WireModel, period_s: float) -> None:
        super().__init__(errors, cells, period_s, averages=True)
        self._fold_at_s = FOLD_S
        state = np.zeros((len(cells.laws), 3))
        self._present = cells.laws.copy(), cells.static_gains_N.copy(), state
        self._sum_twin_N, self._n_summed = 0.0, 0
        self.unknown_N = 0.0
        self.surprise = 1.0

    def step(
        self, t_s: float, force_N: tuple[float, float], wires: tuple[Array, Array], cells: Drive,
        n_periods: int = 1,
    ) -> None:  # fmt: skip
        """Process a tick.

        Parameters
        ----------
        force_N : the reading less the twin's force (NaN without a reading), and the twin's
        wires : temperature and austenite of the twin's wires, (N,) arrays
        cells : powers of the cells
        """
        kalman, (residual_N, twin_N) = self._filter, force_N
        if not np.isnan(residual_N):
            self._sum_twin_N, self._n_summed = self._sum_twin_N + twin_N, self._n_summed + 1
        if not kalman.follow(residual_N, *wires, cells, n_periods):
            return
        residual_N, wires_N, noise_N2 = kalman.mean_sample()
        blind = bool(np.isnan(residual_N))
        if blind:
            kalman.bank.look(wires[1])  # the wires' forces go on meanwhile
        kalman.predict(0.0 if blind else residual_N + wires_N, noise_N2)
        if blind:
            return
        squares = kalman.nu**2 / kalman.S
        if squares > JUMP**2:
            kalman.widen_disturbance(kalman.nu**2)
        kalman.correct()
        n = len(kalman.static_gains_N)
        apart_N = self._sum_twin_N / self._n_summed - wires_N
        self._sum_twin_N, self._n_summed = 0.0, 0
        self.unknown_N = float(kalman.x[-2] + kalman.x[-1]) + apart_N
        fades = min(1.0, kalman.passed_s / SURPRISED_FOR_S)
        self.surprise += fades * (squares - self.surprise)
        if self.surprise > SURPRISED:
            kalman.P[range(n), range(n)] += ANEW**2
            self.surprise = 1.0
        if t_s >= self._fold_at_s:
            kalman.fold()
            self._fold_at_s = t_s + FOLD_S

    def look(self) -> tuple[Records, Array, Array]:
        """Return law (N,), static gain (N,), and temperature, austenite and lag (N, 3)."""
        kalman = self._filter
        bank = kalman.bank
        told = bank.laws[0], kalman.static_gains_N, bank.knots_C
        _look(told, bank.wires, kalman.x, self._present)
        return self._present


@njit(cache=True)
def _look(told, wires, x, present):  # type: ignore[no-untyped-def]
    nominal, nominal_N, knots_C = told
    laws, gains_N, state = present
    n = len(gains_N)
    put(nominal, laws)
    for i in range(n):
        heating, cooling, warmer = x[n + i], x[2 * n + i], x[3 * n]
        gains_N[i] = nominal_N[i] * (1.0 + min(max(x[i], -1.0), 1.0))
        law = laws[i]
        law.E2 *= 1.0 + heating
        law.G *= 1.0 + cooling
        law.T_a += warmer
        for k in range(3):
            at = wires[0, i, k]
            state[i, k] = (
                at
                + heating / OFF * (wires[1, i, k] - at)
                + cooling / OFF * (wires[2, i, k] - at)
                + warmer / OFF_K * (wires[3, i, k] - at)
            )
    confine(knots_C, state)
