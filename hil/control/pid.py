"""PID on force; the output in newtons is quantised to a number of cells.

    u = u_0 + Kp e + Ki int(e) dt + Kd d(e)/dt / (1 + T_f s),   e = reference - measured

The derivative acts on the measured force, filtered with T_f, so a step of the set point gives no
derivative kick. Anti-windup: while u is outside the range from no cell to all cells, the integral
ignores errors that would push it further out. Bumpless start: the first tick sets the integral so
that u starts at the measured force.

With a feedforward f(t), u_0 is f(t) and the integral starts at zero:

    u = f + Kp e + Ki int(e) dt + Kd d(e)/dt / (1 + T_f s)

If f is the set point that the reference has one delay later, a plant that follows u after this
delay leaves no error for the feedback: f(t) = r(t + T) and y(t) = u(t - T) give y = r.

Failed cells are skipped; the levels are then those of the
other cells.

Source: Astrom & Murray, Feedback Systems, ch. 11 (derivative filter, anti-windup), ch. 12
(feedforward).
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from hil.compiled import njit
from hil.control.reference import Reference

_INTEGRAL, _FILTERED, _DERIVATIVE, _N_ON, _STARTED, _DEMAND, _CHANGED_S = range(7)


@dataclass(frozen=True)
class PidGains:
    """Kp [N/N], Ki [1/s], Kd [s], and the time constant of the derivative's filter [s]."""

    k_p: float
    k_i_per_s: float
    k_d_s: float
    derivative_filter_s: float


class Pid:
    """PID with a nearest-level quantiser.

    Parameters
    ----------
    levels_N : (K+1,) array, static force with the first 0..K cells of `order` on; increasing
    order : sequence of int, cells, from 0, in the order in which they are recruited
    hysteresis : a cell joins or leaves when u is this share of its step beyond the middle between
        two levels
    dwell_s : shortest time between two changes of the number of cells. Cells that switch faster
        than they act excite the array's modes without useful force.
    feedforward : force [N] that is added to the PID's output; None starts bumpless instead

    Attributes
    ----------
    usable : (N,) uint8 array, 0 for cells that have failed
    """

    def __init__(
        self,
        gains: PidGains,
        levels_N: NDArray[np.float64],
        order: Sequence[int],
        hysteresis: float,
        dwell_s: float,
        period_s: float,
        feedforward: Reference | None = None,
    ) -> None:
        rise = np.diff(levels_N)
        if np.any(rise <= 0.0):
            raise ValueError("the levels do not increase: the order has a cell that adds no force")
        self._gains = np.array(
            [gains.k_p, gains.k_i_per_s, gains.k_d_s, gains.derivative_filter_s, period_s]
        )
        self._levels = np.asarray(levels_N, dtype=float)
        self.order = np.array(order, dtype=np.int64)
        self.usable = np.ones(max(order, default=-1) + 1, dtype=np.uint8)
        self._left = np.zeros(len(self.order), dtype=np.int64), np.zeros(len(self._levels))
        self._hysteresis = hysteresis
        self._dwell_s = dwell_s
        self._feedforward = feedforward
        self._state = np.zeros(7)
        self._state[_CHANGED_S] = -np.inf

    def set_gain(self, key: str, value: float) -> None:
        """Change a gain by its name in `PidGains`, from the next step on."""
        places = {field.name: i for i, field in enumerate(fields(PidGains))}
        self._gains[places[key]] = value

    @property
    def demand_N(self) -> float:
        return float(self._state[_DEMAND])

    def restart(self) -> None:
        """Start again from the measured force, with no cell on."""
        self._state[:] = 0.0
        self._state[_CHANGED_S] = -np.inf

    def step(
        self, t_s: float, reference_N: float, force_N: float, cells: NDArray[np.uint8]
    ) -> None:
        feedforward = self._feedforward
        _step(
            self._gains,
            self._levels,
            self.order,
            self.usable,
            *self._left,
            self._hysteresis,
            self._dwell_s,
            self._state,
            t_s,
            reference_N,
            force_N,
            feedforward is None,
            0.0 if feedforward is None else feedforward.at(t_s),
            cells,
        )


@njit(cache=True)
def _leave(order, levels, usable, order_left, levels_left):  # type: ignore[no-untyped-def]
    """Write order and levels of the usable cells; returns their number."""
    n = 0
    levels_left[0] = levels[0]
    for i in range(len(order)):
        if usable[order[i]]:
            order_left[n] = order[i]
            # no cell skipped so far: copies the level, because a sum would add rounding errors
            none_skipped = n == i
            step = levels[i + 1] - levels[i]
            levels_left[n + 1] = levels[i + 1] if none_skipped else levels_left[n] + step
            n += 1
    return n


@njit(cache=True)
def _step(  # type: ignore[no-untyped-def]
    gains, all_levels, all_order, usable, order_left, levels_left, hysteresis, dwell_s, state, t_s,
    reference, force, bumpless, feedforward, cells,
):  # fmt: skip
    n_left = _leave(all_order, all_levels, usable, order_left, levels_left)
    order, levels = order_left[:n_left], levels_left[: n_left + 1]
    k_p, k_i, k_d, filter_s, period_s = gains
    if not np.isnan(force):
        error = reference - force
        if state[_STARTED] == 0.0:
            state[_STARTED] = 1.0
            state[_INTEGRAL] = force - k_p * error if bumpless else 0.0
            state[_FILTERED] = force
        blend = period_s / (filter_s + period_s)
        change = blend * (force - state[_FILTERED])
        state[_FILTERED] += change
        state[_DERIVATIVE] = change / period_s
        step = k_i * period_s * error
        pid = k_p * error + state[_INTEGRAL] + step - k_d * state[_DERIVATIVE]
        demand = feedforward + pid
        winding_up = (demand > levels[-1] and error > 0.0) or (demand < levels[0] and error < 0.0)
        if winding_up:
            demand -= step
        else:
            state[_INTEGRAL] += step
        state[_DEMAND] = min(levels[-1], max(levels[0], demand))
    n_on = min(int(state[_N_ON]), len(order))
    wanted = state[_DEMAND]
    while n_on < len(order):
        size = levels[n_on + 1] - levels[n_on]
        if wanted <= levels[n_on] + (0.5 + hysteresis) * size:
            break
        n_on += 1
    while n_on > 0:
        size = levels[n_on] - levels[n_on - 1]
        if wanted >= levels[n_on] - (0.5 + hysteresis) * size:
            break
        n_on -= 1
    if n_on != state[_N_ON]:
        if t_s - state[_CHANGED_S] < dwell_s * (1.0 - 1e-9):
            n_on = min(int(state[_N_ON]), len(order))
        else:
            state[_N_ON], state[_CHANGED_S] = n_on, t_s
    cells[:] = 0
    for i in range(n_on):
        cells[order[i]] = 1
