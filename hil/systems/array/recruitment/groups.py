"""The size principle: ordered groups of cells, recruited small first, released last first.

A quantiser converts demand to a number of cells along the order of the groups; it is the
nearest-level quantiser of the PID. Within a group cells alternate: the cell with the longest rest
is switched on first, the cell with the longest on-time is switched off first. At constant demand,
every `rotate_s` the cell with the longest rest replaces the one with the longest on-time. A cell
that was switched off rests for at least `rest_s`. While all off cells of a group still rest, the
next group takes over.

The demand is

    u = r - d + Kp (r - y)

with the observer's force y and its disturbance d, which the cells reported on do not explain. d
provides the integral action. It follows the cells that really are on, so it does not wind up
when the guard holds cells off or the set point is out of reach.

Source: Henneman 1957 (size principle); MacNair & Ueda, Fig. 9 (groups).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hil.compiled import njit
from hil.mechanics.arrays import Array, Indices, Mask

_DEMAND, _CHANGED_S, _ROTATED_S, _N_ON = range(4)


@dataclass(frozen=True)
class GroupRules:
    """Kp in N/N; times in s; `whole` switches complete groups, as in Fig. 9."""

    k_p: float = 0.0
    hysteresis: float = 0.1
    dwell_s: float = 0.1
    rest_s: float = 0.0
    rotate_s: float = 0.0
    whole: bool = False


class Cells(NamedTuple):
    """Cells in their groups.

    Attributes
    ----------
    order : (M,) array, cells in the order of recruitment
    group : (N,) array, number of each cell's group; -1 for none
    gains_N : (N,) array, static force of each cell
    on, usable : (N,) arrays, commanded state, and 0 for cells known to have failed
    since_s : (N,) array, time of the last switch of each cell
    """

    order: Indices
    group: Indices
    gains_N: Array
    on: Mask
    since_s: Array
    usable: Mask


class SizePrinciple:
    """Recruits ordered groups of cells.

    Parameters
    ----------
    groups : sequence of sequences of int
        Cells from 0; the first group is recruited first. A cell in no group stays off.
    static_gains_N : (N,) array, static force of each cell
    """

    def __init__(
        self, rules: GroupRules, groups: Sequence[Sequence[int]], static_gains_N: ArrayLike
    ) -> None:
        gains_N = np.array(static_gains_N, dtype=float)
        n_cells = len(gains_N)
        self.order = np.array([cell for group in groups for cell in group], dtype=np.int64)
        group_of = np.full(n_cells, -1, dtype=np.int64)
        for i, group in enumerate(groups):
            group_of[list(group)] = i
        self._rules = np.array(
            [rules.k_p, rules.hysteresis, rules.dwell_s, rules.rest_s, rules.rotate_s, rules.whole]
        )
        self._on = np.zeros(n_cells, dtype=np.uint8)
        # `Cells` but for the last, a plain tuple: from Python a named one takes 9 us more.
        self._cells = self.order, group_of, gains_N, self._on, np.full(n_cells, -np.inf)
        self._state, self._t_s = np.zeros(4), 0.0
        self.restart()

    @property
    def demand_N(self) -> float:
        return float(self._state[_DEMAND])

    def restart(self) -> None:
        """All cells are off, those that were on since the last step; the dwell is over."""
        since_s = self._cells[-1]
        since_s[self._on != 0] = self._t_s
        self._on[:], self._state[:] = 0, 0.0
        self._state[_CHANGED_S] = -np.inf

    def step(
        self,
        t_s: float,
        reference_N: float,
        force_N: float,
        disturbance_N: float,
        usable: NDArray[np.uint8],
        cells: NDArray[np.uint8],
    ) -> None:
        """Write the commanded cells; `usable` is 0 for cells known to have failed."""
        signals, self._t_s = (reference_N, force_N, disturbance_N), t_s
        _step(self._cells, usable, self._rules, self._state, t_s, signals)
        cells[:] = self._on


@njit(cache=True)
def _step(plain, usable, rules, state, t_s, signals):  # type: ignore[no-untyped-def]
    cells = Cells(plain[0], plain[1], plain[2], plain[3], plain[4], usable)
    order, gains_N, on = cells.order, cells.gains_N, cells.on
    reference, force, disturbance = signals
    k_p, hysteresis, dwell_s, rest_s, rotate_s, whole = rules
    for n in order:
        if on[n] and not usable[n]:
            on[n], cells.since_s[n] = 0, t_s
    held = top = 0.0
    for n in order:
        top += gains_N[n] if usable[n] else 0.0
        held += gains_N[n] if on[n] else 0.0
    if not (np.isnan(force) or np.isnan(reference)):
        unlimited = reference - disturbance + k_p * (reference - force)
        state[_DEMAND] = min(top, max(0.0, unlimited))
    demand = state[_DEMAND]
    if t_s - state[_CHANGED_S] >= dwell_s * (1.0 - 1e-9):
        changed = False
        for _ in range(len(order)):
            n = _next_on(cells, t_s, rest_s)
            size = _size(cells, n, whole) if n >= 0 else 0.0
            if n < 0 or demand <= held + (0.5 + hysteresis) * size:
                break
            held += _switch(cells, n, 1, t_s, whole)
            changed = True
        joined = changed
        for _ in range(len(order)):
            n = _next_off(cells)
            size = _size(cells, n, whole) if n >= 0 else 0.0
            if joined or n < 0 or demand >= held - (0.5 + hysteresis) * size:
                break
            held += _switch(cells, n, 0, t_s, whole)
            changed = True
        if changed:
            state[_CHANGED_S] = t_s
    if rotate_s > 0.0 and not whole and t_s - state[_ROTATED_S] >= rotate_s * (1.0 - 1e-9):
        state[_ROTATED_S] = t_s
        _rotate(cells, t_s, rest_s)


@njit(cache=True)
def _next_on(cells, t_s, rest_s):  # type: ignore[no-untyped-def]
    """Return the longest-rested available cell of the first group that has one; -1 for none."""
    order, group, _, on, since_s, usable = cells
    best = -1
    for n in order:
        if best >= 0 and group[n] != group[best]:
            break
        if on[n] or not usable[n] or t_s - since_s[n] < rest_s * (1.0 - 1e-9):
            continue
        if best < 0 or since_s[n] < since_s[best]:
            best = n
    return best


@njit(cache=True)
def _next_off(cells):  # type: ignore[no-untyped-def]
    """Return the cell with the longest on-time of the last group with a cell on; -1 for none."""
    order, group, _, on, since_s, _ = cells
    best = -1
    for i in range(len(order) - 1, -1, -1):
        n = order[i]
        if best >= 0 and group[n] != group[best]:
            break
        if on[n] and (best < 0 or since_s[n] <= since_s[best]):
            best = n
    return best


@njit(cache=True)
def _size(cells, n, whole):  # type: ignore[no-untyped-def]
    """Return the force change of switching this cell (or its group, if `whole`)."""
    order, group, gains_N, on, _, usable = cells
    if not whole:
        return gains_N[n]
    size = 0.0
    for m in order:
        if group[m] == group[n] and usable[m] and on[m] == on[n]:
            size += gains_N[m]
    return size


@njit(cache=True)
def _switch(cells, n, to, t_s, whole):  # type: ignore[no-untyped-def]
    order, group, gains_N, on, since_s, usable = cells
    change = 0.0
    for m in order:
        alike = m == n or (whole and group[m] == group[n] and usable[m])
        if alike and on[m] != to:
            on[m], since_s[m] = to, t_s
            change += gains_N[m] if to else -gains_N[m]
    return change


@njit(cache=True)
def _rotate(cells, t_s, rest_s):  # type: ignore[no-untyped-def]
    """In every group, replace the longest-on cell that has a rested one of equal gain by it."""
    order, group, _, on, since_s, _ = cells
    for i in range(len(order)):
        first = i == 0 or group[order[i]] != group[order[i - 1]]
        if not first:
            continue
        tired = fresh = -1
        for n in order:
            theirs = group[n] == group[order[i]] and on[n] and since_s[n] < t_s
            if theirs and (tired < 0 or since_s[n] < since_s[tired]):
                like = _longest_rested_like(cells, n, t_s, rest_s)
                if like >= 0:
                    tired, fresh = n, like
        if tired >= 0:
            on[tired], since_s[tired] = 0, t_s
            on[fresh], since_s[fresh] = 1, t_s


@njit(cache=True)
def _longest_rested_like(cells, like, t_s, rest_s):  # type: ignore[no-untyped-def]
    """Return the longest-rested cell of this one's group and gain; -1 for none."""
    order, group, gains_N, on, since_s, usable = cells
    best = -1
    for n in order:
        same = group[n] == group[like] and abs(gains_N[n] - gains_N[like]) <= 1e-9 * gains_N[n]
        ready = usable[n] and not on[n] and t_s - since_s[n] >= rest_s * (1.0 - 1e-9)
        if same and ready and (best < 0 or since_s[n] < since_s[best]):
            best = n
    return best
