"""The size principle: ordered groups of cells, recruited small first, released last first.

Demand becomes a number of cells along the order of the groups, with the same nearest-level
quantiser as the PID has. Within a group the cells take turns: the one that rested longest comes
on, the one that was on longest goes off, and at rest the group's longest-on cell is relieved every
`rotate_s` by its longest-rested one. A cell that went off rests for `rest_s` at least; while all
of a group's cells that are off still rest, the next group takes over.

The demand is

    u = r - d + Kp (r - y)

with y the observer's force and d its unknown-force disturbance: what the cells reported on do not
explain. d is the integral action; it follows the cells that are truly on, so that a guard that
holds them off, or a set point beyond what they give, winds nothing up.

Source: Henneman 1957 (size principle); MacNair & Ueda, Fig. 9 (groups).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

_DEMAND, _CHANGED_S, _ROTATED_S, _N_ON = range(4)


@dataclass(frozen=True)
class GroupRules:
    """Kp in N/N; times in s; `whole` recruits and releases a group at once, as in Fig. 9."""

    k_p: float = 0.0
    hysteresis: float = 0.1
    dwell_s: float = 0.1
    rest_s: float = 0.0
    rotate_s: float = 0.0
    whole: bool = False


class SizePrinciple:
    """Recruits ordered groups of cells.

    Parameters
    ----------
    groups : sequence of sequences of int
        Cells from 0, the first group recruited first. A cell in none stays off.
    static_gains_N : (N,) array
        What each cell adds to the static force.
    """

    def __init__(
        self, rules: GroupRules, groups: Sequence[Sequence[int]], static_gains_N: ArrayLike
    ) -> None:
        self._gains_N = np.array(static_gains_N, dtype=float)
        n_cells = len(self._gains_N)
        self.order = np.array([cell for group in groups for cell in group], dtype=np.int64)
        self._group = np.full(n_cells, -1, dtype=np.int64)
        for i, group in enumerate(groups):
            self._group[list(group)] = i
        self._rules = np.array(
            [rules.k_p, rules.hysteresis, rules.dwell_s, rules.rest_s, rules.rotate_s, rules.whole]
        )
        self._on = np.zeros(n_cells, dtype=np.uint8)
        self._since_s = np.full(n_cells, -np.inf)  # when each cell was switched last
        self._state = np.zeros(4)
        self._state[_CHANGED_S] = -np.inf

    @property
    def demand_N(self) -> float:
        return float(self._state[_DEMAND])

    def step(
        self,
        t_s: float,
        reference_N: float,
        force_N: float,
        disturbance_N: float,
        usable: NDArray[np.uint8],
        cells: NDArray[np.uint8],
    ) -> None:
        """One tick: write the wished cells; `usable` is 0 for those known to have failed."""
        _step(
            self._rules, self.order, self._group, self._gains_N, self._on, self._since_s,
            self._state, t_s, reference_N, force_N, disturbance_N, usable,
        )  # fmt: skip
        cells[:] = self._on


@njit(cache=True)
def _step(  # type: ignore[no-untyped-def]
    rules, order, group, gains_N, on, since_s, state, t_s, reference, force, disturbance, usable
):
    k_p, hysteresis, dwell_s, rest_s, rotate_s, whole = rules
    for n in order:
        if on[n] and not usable[n]:
            on[n], since_s[n] = 0, t_s
    held = top = 0.0
    for n in order:
        top += gains_N[n] if usable[n] else 0.0
        held += gains_N[n] if on[n] else 0.0
    if not (np.isnan(force) or np.isnan(reference)):
        wished = reference - disturbance + k_p * (reference - force)
        state[_DEMAND] = min(top, max(0.0, wished))
    demand = state[_DEMAND]
    if t_s - state[_CHANGED_S] >= dwell_s * (1.0 - 1e-9):
        changed = False
        for _ in range(len(order)):
            n = _next_on(order, group, on, since_s, usable, t_s, rest_s)
            size = _size(n, group, gains_N, order, on, usable, whole) if n >= 0 else 0.0
            if n < 0 or demand <= held + (0.5 + hysteresis) * size:
                break
            held += _switch(n, 1, group, gains_N, order, on, since_s, usable, t_s, whole)
            changed = True
        joined = changed
        for _ in range(len(order)):
            n = _next_off(order, group, on, since_s)
            size = _size(n, group, gains_N, order, on, usable, whole) if n >= 0 else 0.0
            if joined or n < 0 or demand >= held - (0.5 + hysteresis) * size:
                break
            held += _switch(n, 0, group, gains_N, order, on, since_s, usable, t_s, whole)
            changed = True
        if changed:
            state[_CHANGED_S] = t_s
    if rotate_s > 0.0 and not whole and t_s - state[_ROTATED_S] >= rotate_s * (1.0 - 1e-9):
        state[_ROTATED_S] = t_s
        _rotate(order, group, gains_N, on, since_s, usable, t_s, rest_s)


@njit(cache=True)
def _next_on(order, group, on, since_s, usable, t_s, rest_s):  # type: ignore[no-untyped-def]
    """The longest-rested cell of the first group that has one which may come on; -1 for none."""
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
def _next_off(order, group, on, since_s):  # type: ignore[no-untyped-def]
    """The longest-on cell of the last group that has one on; -1 for none."""
    best = -1
    for i in range(len(order) - 1, -1, -1):
        n = order[i]
        if best >= 0 and group[n] != group[best]:
            break
        if on[n] and (best < 0 or since_s[n] <= since_s[best]):
            best = n
    return best


@njit(cache=True)
def _size(n, group, gains_N, order, on, usable, whole):  # type: ignore[no-untyped-def]
    """What switching this cell (or its whole group with it) changes."""
    if not whole:
        return gains_N[n]
    size = 0.0
    for m in order:
        if group[m] == group[n] and usable[m] and on[m] == on[n]:
            size += gains_N[m]
    return size


@njit(cache=True)
def _switch(n, to, group, gains_N, order, on, since_s, usable, t_s, whole):  # type: ignore[no-untyped-def]
    change = 0.0
    for m in order:
        alike = m == n or (whole and group[m] == group[n] and usable[m])
        if alike and on[m] != to:
            on[m], since_s[m] = to, t_s
            change += gains_N[m] if to else -gains_N[m]
    return change


@njit(cache=True)
def _rotate(order, group, gains_N, on, since_s, usable, t_s, rest_s):  # type: ignore[no-untyped-def]
    """In every group the longest-on cell is relieved by the longest-rested of equal static gain."""
    for i in range(len(order)):
        first = i == 0 or group[order[i]] != group[order[i - 1]]
        if not first:
            continue
        tired = -1
        for n in order:
            theirs = group[n] == group[order[i]] and on[n]
            if theirs and (tired < 0 or since_s[n] < since_s[tired]):
                tired = n
        if tired < 0 or since_s[tired] >= t_s:
            continue
        fresh = -1
        for n in order:
            same = (
                group[n] == group[tired] and abs(gains_N[n] - gains_N[tired]) <= 1e-9 * gains_N[n]
            )
            ready = usable[n] and not on[n] and t_s - since_s[n] >= rest_s * (1.0 - 1e-9)
            if same and ready and (fresh < 0 or since_s[n] < since_s[fresh]):
                fresh = n
        if fresh >= 0:
            on[tired], since_s[tired] = 0, t_s
            on[fresh], since_s[fresh] = 1, t_s
