"""Broadcast control: one message with two probabilities for all cells, without addresses.

Every cell draws its own random number. With N cells, n of them on,

    n+ = n + Bin(N - n, p) - Bin(n, q)

The laws are one-sided: too little force gives q = 0, too much gives p = 0. Within the dead zone
p = q = 0, which is absorbing. Forces are expressed as numbers of cells of the mean size
sum(s^2) / sum(s). For an error of e cells, with m such cells that can switch,

    dead beat            p = min(1, e / m)                      the expected next error is 0
    least mean square    p = (2 e - 1) / (2 (m - 1)), within 0..1; p = 1 for m <= 1 or e > m
    error over N         p = min(1, e / N)
    fixed gain           p = min(1, k e)

For different static gains s, E (e - sum(s_i b_i))^2 with b_i ~ Bernoulli(p) is smallest at
p = (2 e S_1 - S_2) / (2 (S_1^2 - S_2)), S_k = sum(s^k) over the cells that can switch. With
S_2 / S_1 of the whole array this gives the second line.

Source: Ueda, Odhner & Asada 2007, Int. J. Robotics Research 26(11-12), 1251-1265.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hil.compiled import njit
from hil.mechanics.arrays import Array

Law = Literal["dead_beat", "least_mean_square", "error_over_n", "fixed_gain"]
LAWS: tuple[Law, ...] = ("dead_beat", "least_mean_square", "error_over_n", "fixed_gain")
_DEAD_BEAT, _LEAST_MEAN_SQUARE, _ERROR_OVER_N = range(3)
_NEXT_S, _TICK, _P_ON, _Q_OFF, _DEMAND = range(5)


@dataclass(frozen=True)
class BroadcastLaw:
    """Law that turns an error into probabilities; fixed_gain uses `gain` (per cell of error)."""

    law: Law
    gain: float = 0.1
    dead_zone_N: float = 0.0
    period_s: float = 1.0


class Draw(NamedTuple):
    """A law, as its index in `LAWS` and numbers, for these cells; its state by index."""

    law: int
    gain: float
    dead_zone_N: float
    period_s: float
    gains_N: Array
    state: Array


class Broadcaster:
    """Computes p and q from the force error at every broadcast period.

    Parameters
    ----------
    static_gains_N : (N,) array, static force of each cell

    Attributes
    ----------
    p_on, q_off : probabilities of the last broadcast
    tick : number of the last broadcast, from 1; 0 before the first. Cells ignore a repeated number.
    """

    def __init__(self, law: BroadcastLaw, static_gains_N: ArrayLike) -> None:
        self._state = np.zeros(5)
        self._state[_DEMAND] = np.nan
        draw = Draw(
            LAWS.index(law.law), float(law.gain), float(law.dead_zone_N), float(law.period_s),
            np.array(static_gains_N, dtype=float), self._state,
        )  # fmt: skip
        self._draw = tuple(draw)  # plain, it passes to the kernel sooner

    @property
    def p_on(self) -> float:
        return float(self._state[_P_ON])

    @property
    def q_off(self) -> float:
        return float(self._state[_Q_OFF])

    @property
    def tick(self) -> int:
        return int(self._state[_TICK])

    @property
    def demand_N(self) -> float:
        """Set point at the last broadcast."""
        return float(self._state[_DEMAND])

    def restart(self) -> None:
        """Broadcast at the next tick: no message of before is drawn again."""
        self._state[_NEXT_S] = 0.0

    def step(
        self, t_s: float, reference_N: float, force_N: float, usable: NDArray[np.uint8]
    ) -> bool:
        """Process a tick; return whether a new broadcast is due.

        Parameters
        ----------
        force_N : force from which the error is formed: the measured force, or the force to which
            the cells that are on will settle. A broadcast that is due waits while it is NaN.
        usable : (N,) array, 1 for cells that are not known to have failed
        """
        return bool(_step(self._draw, t_s, reference_N, force_N, usable))


@njit(cache=True)
def probability(law, gain, error, movable, n_cells):  # type: ignore[no-untyped-def]
    """Return the probability that one of `movable` cells switches, given the error in cells."""
    if error <= 0.0 or movable <= 0.0:
        return 0.0
    if law == _DEAD_BEAT:
        p = error / movable
    elif law == _LEAST_MEAN_SQUARE:
        if movable <= 1.0 or error > movable:
            return 1.0
        p = (2.0 * error - 1.0) / (2.0 * (movable - 1.0))
    elif law == _ERROR_OVER_N:
        p = error / n_cells
    else:
        p = gain * error
    return min(1.0, max(0.0, p))


@njit(cache=True)
def _step(draw, t_s, reference, force, usable):  # type: ignore[no-untyped-def]
    d = Draw(*draw)
    period_s, gains_N, state = d.period_s, d.gains_N, d.state
    if t_s < state[_NEXT_S] - 1e-9 or np.isnan(force):
        return False
    while state[_NEXT_S] <= t_s + 1e-9:
        state[_NEXT_S] += period_s
    state[_TICK] += 1.0
    state[_DEMAND] = reference
    state[_P_ON], state[_Q_OFF] = 0.0, 0.0
    total = squares = 0.0
    for n in range(len(gains_N)):
        if usable[n]:
            total += gains_N[n]
            squares += gains_N[n] * gains_N[n]
    error = reference - force
    if not abs(error) > d.dead_zone_N or total <= 0.0:
        return True
    cell = squares / total
    on = min(total, max(0.0, force))
    n_cells = total / cell
    if error > 0.0:
        state[_P_ON] = probability(d.law, d.gain, error / cell, (total - on) / cell, n_cells)
    else:
        state[_Q_OFF] = probability(d.law, d.gain, -error / cell, on / cell, n_cells)
    return True
