"""PID on force; the output in newtons is quantised to a number of cells.

    u = u_0 + Kp e + Ki int(e) dt + Kd d(e)/dt / (1 + T_f s),   e = reference - measured

The derivative acts on the measured force, filtered with T_f, so a step of the set point gives no
derivative kick. Anti-windup: while u is outside the range from no cell to all cells, the integral
ignores errors that would push it further out. Bumpless start: the first tick sets the integral so
that u starts at the measured force. dt is the time since the last reading: where a force is read in
some ticks only, or ticks are missed, the integral has the same rate.

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
from dataclasses import astuple, dataclass
from math import isnan

import numpy as np
from numpy.typing import NDArray

from hil.compiled import njit
from hil.control.reference import Reference
from hil.mechanics.arrays import Array, Indices, Mask


@dataclass(frozen=True)
class PidGains:
    """Kp [N/N], Ki [1/s], Kd [s], and the time constant of the derivative's filter [s]."""

    k_p: float
    k_i_per_s: float
    k_d_s: float
    derivative_filter_s: float


@dataclass(frozen=True)
class Switching:
    """When a cell joins or leaves.

    Attributes
    ----------
    hysteresis : a cell joins or leaves when u is this share of its step beyond the middle between
        two levels
    dwell_s : shortest time between two changes of the number of cells. Cells that switch faster
        than they act excite the array's modes without useful force.
    """

    hysteresis: float
    dwell_s: float


def since_reading_s(before_s: float, t_s: float, period_s: float) -> float:
    """Time since the last reading, in whole periods; a period where `before_s` is NaN, for none."""
    return period_s if isnan(before_s) else period_s * max(1, round((t_s - before_s) / period_s))


LAW = np.dtype([(name, float) for name in (
    "k_p", "k_i_per_s", "k_d_s", "derivative_filter_s", "hysteresis", "dwell_s", "period_s")]
    + [("bumpless", bool)])  # fmt: skip
STATE = np.dtype([(name, float) for name in (
    "integral_N", "filtered_N", "derivative_N_per_s", "demand_N", "read_s", "changed_s")]
    + [("n_on", np.int64), ("started", bool)])  # fmt: skip


class Pid:
    """PID with a nearest-level quantiser.

    Parameters
    ----------
    levels_N : (K+1,) array, static force with the first 0..K cells of `order` on; increasing
    order : sequence of int, cells, from 0, in the order in which they are recruited
    feedforward : force [N] that is added to the PID's output; None starts bumpless instead

    Attributes
    ----------
    usable : (N,) uint8 array, 0 for cells that have failed
    """

    def __init__(
        self,
        gains: PidGains,
        levels_N: Array,
        order: Sequence[int],
        switching: Switching,
        period_s: float,
        feedforward: Reference | None = None,
    ) -> None:
        rise = np.diff(levels_N)
        if np.any(rise <= 0.0):
            raise ValueError("the levels do not increase: the order has a cell that adds no force")
        law = (*astuple(gains), *astuple(switching), period_s, feedforward is None)
        self._law = np.array([law], dtype=LAW)
        self._levels = np.asarray(levels_N, dtype=float)
        self.order = np.array(order, dtype=np.int64)
        self.usable = np.ones(max(order, default=-1) + 1, dtype=np.uint8)
        self._left = np.zeros_like(self.order), np.zeros_like(self._levels)
        self._usable = b"unknown"
        self._feedforward = feedforward
        self._state = np.zeros(1, dtype=STATE)
        self._demanded_N: Array = self._state["demand_N"]
        self.restart()

    def set_gain(self, key: str, value: float) -> None:
        """Change a gain by its name in `PidGains`, from the next step on; else KeyError."""
        if key not in PidGains.__dataclass_fields__:
            raise KeyError(key)
        self._law[key] = value

    @property
    def demand_N(self) -> float:
        return self._demanded_N.item(0)

    def restart(self) -> None:
        """Start again from the measured force, with no cell on."""
        self._state[:] = np.zeros(1, dtype=STATE)
        self._state["changed_s"] = -np.inf

    def step(self, t_s: float, reference_N: float, force_N: float, cells: Mask) -> None:
        usable, feedforward = self.usable.tobytes(), self._feedforward
        if usable != self._usable:
            n = _leave(self.order, self._levels, self.usable, *self._left)
            self._usable, self._now = usable, (self._left[0][:n], self._left[1][: n + 1])
        law, state, (order, levels_N) = self._law, self._state, self._now
        ahead_N = 0.0 if feedforward is None else feedforward.at(t_s)
        _demand(law, state, levels_N, t_s, (reference_N, force_N, ahead_N))
        _recruit(law, state, levels_N, order, t_s, cells)


@njit(cache=True)
def _leave(
    order: Indices, levels: Array, usable: Mask, order_left: Indices, levels_left: Array
) -> int:
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
def _demand(
    law: NDArray[np.void], state: NDArray[np.void], levels: Array, t_s: float,
    signals: tuple[float, float, float],
) -> None:  # fmt: skip
    """Compute the demand; without a reading the last one stands."""
    k, s, (reference, force, feedforward) = law[0], state[0], signals
    if np.isnan(force):
        return
    least, most, error = levels[0], levels[-1], reference - force
    passed_s = k["period_s"]
    if s["started"]:  # whole periods
        passed_s *= max(1.0, np.rint((t_s - s["read_s"]) / k["period_s"]))
    s["read_s"] = t_s
    if not s["started"]:
        s["started"] = True
        s["integral_N"] = force - k["k_p"] * error if k["bumpless"] else 0.0
        s["filtered_N"] = force
    blend = passed_s / (k["derivative_filter_s"] + passed_s)
    change = blend * (force - s["filtered_N"])
    s["filtered_N"] += change
    s["derivative_N_per_s"] = change / passed_s
    step = k["k_i_per_s"] * passed_s * error
    pid = k["k_p"] * error + s["integral_N"] + step - k["k_d_s"] * s["derivative_N_per_s"]
    demand = feedforward + pid
    winding_up = (demand > most and error > 0.0) or (demand < least and error < 0.0)
    if winding_up:
        demand -= step
    else:
        s["integral_N"] += step
    s["demand_N"] = min(most, max(least, demand))


@njit(cache=True)
def _recruit(
    law: NDArray[np.void], state: NDArray[np.void], levels: Array, order: Indices, t_s: float,
    cells: Mask,
) -> None:  # fmt: skip
    """Switch on the number of cells whose level is nearest to the demand."""
    k, s = law[0], state[0]
    wanted, beyond = s["demand_N"], 0.5 + k["hysteresis"]
    n_on = min(s["n_on"], len(order))
    while n_on < len(order):
        size = levels[n_on + 1] - levels[n_on]
        if wanted <= levels[n_on] + beyond * size:
            break
        n_on += 1
    while n_on > 0:
        size = levels[n_on] - levels[n_on - 1]
        if wanted >= levels[n_on] - beyond * size:
            break
        n_on -= 1
    if n_on != s["n_on"]:
        if t_s - s["changed_s"] < k["dwell_s"] * (1.0 - 1e-9):
            n_on = min(s["n_on"], len(order))
        else:
            s["n_on"], s["changed_s"] = n_on, t_s
    cells[:] = 0
    for i in range(n_on):
        cells[order[i]] = 1
