"""Upper bound on the output of one wire along a direction (outer approximation).

The quantity is max sum_k mu_k xi_k over all on/off sequences of a wire from the cold state, with
xi_k the austenite fraction after tick k and mu of any sign. It uses dynamic programming over bins
of the state (T, xi). Whole bins cover the states that a bin can reach in a tick, and a bin
contributes the largest value of any state in it. The value therefore belongs to a wire that can
also drift within every bin: an upper bound that decreases to the maximum as the bins are halved.

Two corners give the image of a bin, because the wire is monotone: a state that is hotter and more
austenitic than another stays so under the same sequence (Kamke's condition: at equal T, more
austenite means no less power, no more latent heat to supply while heating, and no less to
release while cooling; at equal xi on a branch the states are equal). `advance` keeps this up to
the linearisation of its power over a 16th of a branch, within

    E2 dr^2 / r^3 / 256 * h / C  <  1e-3 K,    1e-4 of austenite

for a tick h of 10 ms. The images are widened by these amounts.

States lie on or between four curves: cold (xi = 0), the heating branch, hot (xi = 1), the
cooling branch, and within the hysteresis, where xi is constant. The curves have bins along them.
Within the hysteresis, xi has coarse bins and stays in its bin, so the error occurs once per
reversal and not at every tick.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hil.compiled import njit
from hil.errors import ModelError
from hil.mechanics.arrays import Array
from hil.mechanics.sma.wire import (
    A_F_AT,
    A_S_AT,
    DR_AT,
    E2_AT,
    G_AT,
    M_F_AT,
    M_S_AT,
    R_M_AT,
    T_A_AT,
    advance,
)
from hil_studies.recruitment.plant import PERIOD_S

WIDER_K, WIDER_XI = 1e-3, 1e-4
COLD, HEATING, HOT, COOLING, WITHIN = range(5)


@dataclass(frozen=True)
class Bins:
    """Resolution of the states.

    Attributes
    ----------
    T_K : bin width of temperature
    n_columns, n_fine : int
        Bins of austenite within the hysteresis; bins along the branches for each of these.
    """

    T_K: float = 0.2
    n_columns: int = 25
    n_fine: int = 20


class OuterWire:
    """Bins of one wire, and the bins that each can reach in a tick.

    Parameters
    ----------
    law : (M,) array, from `hil.mechanics.sma.wire.wire_laws`
    period_s : length of a tick; the bound is proven for at most 10 ms

    Raises
    ------
    ModelError
        With the supply on, the wire does not reach the end of its transition.
    """

    def __init__(self, law: Array, bins: Bins, period_s: float = PERIOD_S) -> None:
        power = law[E2_AT] / max(law[R_M_AT], law[R_M_AT] + law[DR_AT])
        if law[T_A_AT] + power / law[G_AT] < law[A_F_AT]:
            raise ModelError("a wire that never gets hot enough has no outer bound here")
        self.law = law
        self.T_K = bins.T_K
        self.counts = _counts(law, bins.T_K, bins.n_columns, bins.n_fine)
        self._moves = _moves(law, self.counts, bins.T_K, period_s)

    def __len__(self) -> int:
        return len(self._moves[0])

    def bin_of(self, T_C: float, xi: float) -> int:
        """Return the bin of a state."""
        return int(_bin_of(self.law, self.counts, self.T_K, T_C, xi))

    def covers(self, on: int, at: int) -> set[int]:
        """Return the bins that contain every state reachable from the bin `at` in a tick."""
        _, _, first, start, end = self._moves
        moves = range(first[on, at], first[on, at + 1])
        return {b for i in moves for b in range(start[on, i], end[on, i])}

    def most(self, mu: Array, hold: int) -> float:
        """Return an upper bound of max sum_k mu_k xi_k, switching every `hold` ticks at most."""
        none = np.empty((0, 2, len(self)), dtype=np.int32)
        return self._most(mu, hold, none)[0]

    def best(self, mu: Array, hold: int) -> tuple[float, Array]:
        """Return the bound, and the austenite fraction of the drifting wire after every tick."""
        went = np.empty((len(mu), 2, len(self)), dtype=np.int32)
        most, on = self._most(mu, hold, went)
        xi = np.empty(len(mu))
        low, high, *_ = self._moves
        _follow(mu, hold, on, low, high, went, xi)
        return most, xi

    def _most(self, mu: Array, hold: int, went: NDArray[np.int32]) -> tuple[float, int]:
        low, high, first, start, end = self._moves
        most, on = _most(mu, hold, low, high, first, start, end, went)
        return float(most), int(on)


@njit(cache=True)
def _counts(law, T_bin, n_columns, n_fine):  # type: ignore[no-untyped-def]
    """Return the numbers of bins: cold, branch, hot, columns, bins in each column."""
    T_a, A_s, A_f, M_s, M_f = law[T_A_AT], law[A_S_AT], law[A_F_AT], law[M_S_AT], law[M_F_AT]
    top = T_a + law[E2_AT] / min(law[R_M_AT], law[R_M_AT] + law[DR_AT]) / law[G_AT] + 1.0
    within = max(A_s - M_f + (A_f - A_s) / n_columns, A_f - M_s + (M_s - M_f) / n_columns)
    counts = np.empty(5, dtype=np.int64)
    counts[0] = int(np.ceil((A_s - T_a) / T_bin))
    counts[1] = n_columns * n_fine
    counts[2] = int(np.ceil((top - M_s) / T_bin))
    counts[3] = n_columns
    counts[4] = int(np.ceil(within / T_bin))
    return counts


@njit(cache=True)
def _bin_of(law, counts, T_bin, T, xi):  # type: ignore[no-untyped-def]
    n_cold, n_branch, n_hot, n_columns, n_within = counts
    T_a, A_s, A_f, M_s, M_f = law[T_A_AT], law[A_S_AT], law[A_F_AT], law[M_S_AT], law[M_F_AT]
    if xi <= 0.0:
        return min(n_cold - 1, int((T - T_a) / T_bin))
    if xi >= 1.0:
        return n_cold + n_branch + min(n_hot - 1, max(0, int((T - M_s) / T_bin)))
    if T >= A_s + (A_f - A_s) * xi - 1e-9:
        return n_cold + min(n_branch - 1, int(xi * n_branch))
    if T <= M_f + (M_s - M_f) * xi + 1e-9:
        return n_cold + n_branch + n_hot + min(n_branch - 1, int(xi * n_branch))
    column = min(n_columns - 1, int(xi * n_columns))
    base = M_f + (M_s - M_f) * column / n_columns
    row = min(n_within - 1, max(0, int((T - base) / T_bin)))
    return n_cold + 2 * n_branch + n_hot + column * n_within + row


@njit(cache=True)
def _corners(law, counts, T_bin, at):  # type: ignore[no-untyped-def]
    """Return curve, column, and least and greatest states (T, xi) of a bin.

    Within the hysteresis the corners are limited to states that a wire can have; a bin without
    such a state has column -1.
    """
    n_cold, n_branch, n_hot, n_columns, n_within = counts
    T_a, A_s, M_s, M_f = law[T_A_AT], law[A_S_AT], law[M_S_AT], law[M_F_AT]
    heating, cooling = law[A_F_AT] - A_s, M_s - M_f
    n_fine = n_branch // n_columns
    if at < n_cold:
        T = T_a + at * T_bin
        return COLD, 0, T, 0.0, min(A_s, T + T_bin), 0.0
    at -= n_cold
    if at < n_branch:
        low, high = at / n_branch, (at + 1) / n_branch
        return HEATING, at // n_fine, A_s + heating * low, low, A_s + heating * high, high
    at -= n_branch
    if at < n_hot:
        T = M_s + at * T_bin
        return HOT, n_columns - 1, T, 1.0, T + T_bin, 1.0
    at -= n_hot
    if at < n_branch:
        low, high = at / n_branch, (at + 1) / n_branch
        return COOLING, at // n_fine, M_f + cooling * low, low, M_f + cooling * high, high
    at -= n_branch
    column = at // n_within
    low, high = column / n_columns, (column + 1) / n_columns
    T0 = M_f + cooling * low + (at % n_within) * T_bin
    T1 = min(T0 + T_bin, A_s + heating * high)
    if T0 > T1:
        return WITHIN, -1, T0, low, T0, low
    least, most = max(low, (T0 - A_s) / heating), min(high, (T1 - M_f) / cooling)
    return WITHIN, column, T0, least, T1, most


@njit(cache=True)
def _moves(law, counts, T_bin, period_s):  # type: ignore[no-untyped-def]
    """Return least and greatest xi of every bin, and the ranges of bins that cover its images.

    The ranges of bin b, off and on (a = 0, 1), have the indices first[a, b] to
    first[a, b + 1] - 1; each range includes its `start` and excludes its `end`.
    """
    n_cold, n_branch, n_hot, n_columns, n_within = counts
    n = n_cold + 2 * n_branch + n_hot + n_columns * n_within
    low, high = np.empty(n), np.empty(n)
    first = np.zeros((2, n + 1), dtype=np.int64)
    start, end = np.empty((2, 4 * n), dtype=np.int32), np.empty((2, 4 * n), dtype=np.int32)
    for a in range(2):
        c = 0
        for b in range(n):
            curve, column, T0, xi0, T1, xi1 = _corners(law, counts, T_bin, b)
            low[b], high[b] = xi0, xi1
            if column >= 0:
                T0, xi0 = advance(law, float(a), T0, xi0, period_s)
                T1, xi1 = advance(law, float(a), T1, xi1, period_s)
                c = _cover(
                    law, counts, T_bin, curve, column, a == 1, T0 - WIDER_K,
                    max(0.0, xi0 - WIDER_XI), T1 + WIDER_K, min(1.0, xi1 + WIDER_XI),
                    start[a], end[a], c,
                )  # fmt: skip
            first[a, b + 1] = c
    return low, high, first, start, end


@njit(cache=True)
def _cover(law, counts, T_bin, curve, column, on, T0, xi0, T1, xi1, start, end, c):  # type: ignore[no-untyped-def]
    """Append the bins that cover the images of a curve from (T0, xi0) to (T1, xi1)."""
    n_cold, n_branch, n_hot, n_columns, n_within = counts
    T_a, A_s, M_s, M_f = law[T_A_AT], law[A_S_AT], law[M_S_AT], law[M_F_AT]
    heating, cooling = law[A_F_AT] - A_s, M_s - M_f
    if xi0 <= 0.0 and T0 <= A_s and (curve == COLD or not on):
        least, most = (T0 - T_a) / T_bin, (min(T1, A_s) - T_a) / T_bin
        c = _range(least, most, n_cold, 0, start, end, c)
    if xi1 >= 1.0 and T1 >= M_s and (curve == HOT or on):
        least, most = (max(T0, M_s) - M_s) / T_bin, (T1 - M_s) / T_bin
        c = _range(least, most, n_hot, n_cold + n_branch, start, end, c)
    if on and curve != HOT:
        least, most = max(xi0, (T0 - A_s) / heating), min(xi1, (T1 - A_s) / heating)
        if 0.0 <= most and least <= most:
            c = _range(least * n_branch, most * n_branch, n_branch, n_cold, start, end, c)
    if not on and curve != COLD:
        least, most = max(xi0, (T0 - M_f) / cooling), min(xi1, (T1 - M_f) / cooling)
        if 0.0 <= most and least <= most:
            offset = n_cold + n_branch + n_hot
            c = _range(least * n_branch, most * n_branch, n_branch, offset, start, end, c)
    if curve == WITHIN or (curve == HEATING and not on) or (curve == COOLING and on):
        base = M_f + cooling * column / n_columns
        least, most = max(T0, base), min(T1, A_s + heating * (column + 1) / n_columns)
        if least <= most:
            offset = n_cold + 2 * n_branch + n_hot + column * n_within
            least, most = (least - base) / T_bin, (most - base) / T_bin
            c = _range(least, most, n_within, offset, start, end, c)
    return c


@njit(cache=True)
def _range(least, most, n, offset, start, end, c):  # type: ignore[no-untyped-def]
    """Append the bins from `least` to `most`, in bins, of the n bins from the offset."""
    low = min(n - 1, max(0, int(np.floor(least))))
    start[c] = offset + low
    end[c] = offset + 1 + max(low, min(n - 1, int(np.ceil(most)) - 1))
    return c + 1


@njit(cache=True)
def _most(mu, hold, low, high, first, start, end, went):  # type: ignore[no-untyped-def]
    """Return the largest sum of a wire from the cold, and whether it is on at first.

    Unless `went` is empty, went[k, a, b] becomes the bin after tick k if bin b was off or
    on (a = 0, 1), as its complement -1 - b if the wire is on in the hold that begins there.
    """
    n = len(low)
    value, fresh, earned = np.zeros((2, n)), np.zeros((2, n)), np.zeros((2, n))
    for k in range(len(mu) - 1, -1, -1):
        free = (k + 1) % hold == 0
        for b in range(n):
            more = mu[k] * (high[b] if mu[k] > 0.0 else low[b])
            if free:
                earned[0, b] = max(value[0, b], value[1, b]) + more
                earned[1, b] = earned[0, b]
            else:
                earned[0, b] = value[0, b] + more
                earned[1, b] = value[1, b] + more
        for a in range(2):
            for b in range(n):
                most, to = -np.inf, 0
                for i in range(first[a, b], first[a, b + 1]):
                    for j in range(start[a, i], end[a, i]):
                        if earned[a, j] > most:
                            most, to = earned[a, j], j
                if len(went):
                    went[k, a, b] = -1 - to if free and value[1, to] > value[0, to] else to
                fresh[a, b] = most
        value, fresh = fresh, value
    return max(value[0, 0], value[1, 0]), int(value[1, 0] > value[0, 0])


@njit(cache=True)
def _follow(mu, hold, on, low, high, went, xi):  # type: ignore[no-untyped-def]
    """Write the xi of the path that `_most` found."""
    at = 0
    for k in range(len(mu)):
        at = went[k, on, at]
        if (k + 1) % hold == 0:
            on = int(at < 0)
        if at < 0:
            at = -1 - at
        xi[k] = high[at] if mu[k] > 0.0 else low[at]
