"""Which cell has failed: what the force says against what the cells reported on should give.

With c_n(t) the activation of cell n through the lag of its kind (1 for a cell long on) and s_n its
share, the residual between measured force and open-loop twin is

    e(t) = sum_n delta_n s_n c_n(t) + b + noise

Healthy cells differ by small delta_n ~ N(0, spread^2); an electrically dead cell n has
delta_n = -1; a mechanically broken one moves every share, delta_m = s'_m / s_m - 1; b is the
transducer's zero. Samples are `sample_s` apart, their noise what the transducer has and, while
cells rise and fall, what `timing_s` of error in their timing makes of it. From the samples'
information L = sum(phi phi^T / R), v = sum(phi e / R), phi = (s_1 c_1, ..., s_N c_N, 1), the
odds of "mean mu instead of zero" under the healthy spread P_0 are exact for Gaussian noise:

    log B = mu^T (I + L P_0)^-1 (v - L mu / 2)

L and v forget with two time constants: a short memory is quick, a long one tells cells apart that
are mostly on together. A failure is announced when log B passes

    log(n_hypotheses x 86400 s / memory x n_memories / false alarms a day)

since a likelihood ratio exceeds 1/eps with chance eps at most (Ville's inequality) in each stretch
of a memory. Hypotheses whose log B is within `tie` of the best cannot be told apart: they are named
as a class. Found failures move the null hypothesis, and the search goes on for the next.

Source: Basseville & Nikiforov 1993, Detection of Abrupt Changes, ch. 2 and 7 (likelihood ratios);
Kass & Raftery 1995 (Bayes factors).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from hil.models.activation import CellActivation
from hil.models.cell_array import CellArray
from hil.models.network import ModelError
from hil.models.recruitment import shares_N

HEALTHY, FAILED, SUSPECT = 0, 1, 2
DAY_S = 86400.0

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class IsolationRules:
    """Attributes
    ----------
    sample_s : float
        Between samples; far enough apart for their noise to be independent.
    memories_s : sequence of float
        Time constants of forgetting.
    spread : float
        Standard deviation of a healthy cell's share, relative.
    timing_s : float
        Standard deviation of when a cell rises or falls.
    noise_N, zero_N : float
        Of a sample; of the transducer's zero.
    tie : float
        Log odds within which two failures cannot be told apart.
    false_alarms_per_day : float
    """

    sample_s: float = 0.1
    memories_s: tuple[float, ...] = (1.5, 20.0)
    spread: float = 0.12
    timing_s: float = 0.2
    noise_N: float = 0.01
    zero_N: float = 0.02
    tie: float = 3.0
    false_alarms_per_day: float = 1.0


@dataclass(frozen=True)
class Finding:
    """What was announced.

    Attributes
    ----------
    t_s : float
    cells : tuple of int
        The cell (from 0), or the class of cells that force has not told apart.
    kind : {"electrical", "mechanical"}
        The more likely one.
    log_odds : float
        Of the failure against none.
    probability : float
        Of the class among all single failures, none and "something else", equally likely before.
    """

    t_s: float
    cells: tuple[int, ...]
    kind: str
    log_odds: float
    probability: float


@dataclass(frozen=True)
class Lag:
    """How a cell's static force comes: at once (`direct`) and through a first-order lag."""

    direct: float
    rate_per_s: float


def lags(model: CellArray) -> list[Lag]:
    """Of every cell, with the array's inertia left out; at most one internal state a cell.

    Isometric force of like cells is sum(share_n) through phi(s)/phi(0), and with one internal
    state phi(s) = Kf + Kd Kp / (s - I).
    """
    c = model.coefficients
    found = []
    for n in range(model.n_cells):
        own = np.flatnonzero(c.cell_of == n)
        if len(own) > 1:
            raise ModelError(
                f"cell {n + 1} has {len(own)} internal states: failures are told of cells with one"
            )
        phi = float(c.phi[n])
        if len(own) == 0 or phi == 0.0:
            found.append(Lag(1.0, 1.0))
        else:
            found.append(Lag(float(c.Kf[n]) / phi, -float(c.iota.diagonal()[own[0]])))
    return found


def broken_shares_N(model: CellArray, activation: Sequence[CellActivation], output: str) -> Matrix:
    """Shares (N, N) when cell n (row) is mechanically broken; NaN where nothing is left to hold."""
    F_N = np.array([a.force_on_N for a in activation])
    rows = np.full((model.n_cells, model.n_cells), np.nan)
    for n in range(model.n_cells):
        arrays, first = {}, 0
        for name, array in model.arrays.items():
            size = array.topology.n_cells
            inside = first <= n < first + size
            arrays[name] = replace(array, broken=array.broken | {n - first}) if inside else array
            first += size
        rows[n] = shares_N(CellArray(model.points, arrays), F_N, output)
    return rows


class Isolation:
    """Sequential tests of every single failure.

    Parameters
    ----------
    shares_N : (N,) array
    broken_N : (N, N) array
        As `broken_shares_N` gives them.
    lag : sequence of Lag
        Of every cell.

    Attributes
    ----------
    state : (N,) uint8 array
        0 healthy, 1 failed, 2 one of a class with a failure in it.
    log_odds : float
        Of the likeliest failure not yet announced.
    findings : list of Finding
    """

    def __init__(
        self,
        rules: IsolationRules,
        shares_N: ArrayLike,
        broken_N: ArrayLike,
        lag: Sequence[Lag],
        period_s: float,
    ) -> None:
        self._rules = rules
        self._shares: Matrix = np.array(shares_N, dtype=float)
        n = len(self._shares)
        self._every = max(1, round(rules.sample_s / period_s))
        self._keep = np.array(
            [np.exp(-self._every * period_s / memory_s) for memory_s in rules.memories_s]
        )
        self._direct = np.array([one.direct for one in lag])
        self._blend = -np.expm1(-np.array([one.rate_per_s for one in lag]) * period_s)
        self._lagged = np.zeros(n)
        self._c = np.zeros(n)
        self._c_before = np.zeros(n)
        self._mu = _means(self._shares, np.asarray(broken_N, dtype=float))
        able = np.abs(self._shares) > 1e-9 * np.abs(self._shares).sum()
        self._possible = np.concatenate([able, able & np.isfinite(self._mu[n:]).all(axis=1)])
        self._mu[~self._possible] = 0.0
        self._base = np.zeros(n + 1)
        self._P0 = np.append(np.full(n, rules.spread**2), rules.zero_N**2)
        self._wide = np.append(np.full(n, 1.0), rules.zero_N**2)
        self._L = np.zeros((len(self._keep), n + 1, n + 1))
        self._v = np.zeros((len(self._keep), n + 1))
        self._left, self._right = np.zeros((n + 1, n + 1)), np.zeros((n + 1, n + 2))
        self._log_B = np.zeros((len(self._keep), 2 * n))
        self.threshold = float(
            np.log(
                self._possible.sum() * DAY_S / min(rules.memories_s) * len(self._keep)
                / rules.false_alarms_per_day
            )
        )  # fmt: skip
        self._tick = 0
        self.state = np.zeros(n, dtype=np.uint8)
        self.log_odds = 0.0
        self.findings: list[Finding] = []

    def step(self, t_s: float, residual_N: float, activation: Matrix, n_periods: int = 1) -> None:
        """One tick: the residual (NaN where nothing was read) and every cell's F over its F on."""
        for _ in range(n_periods):
            _lag(activation, self._direct, self._blend, self._lagged, self._c)
        self._tick += 1
        if self._tick % self._every:
            return
        rules = self._rules
        if not np.isnan(residual_N):
            _inform(
                self._shares, self._c, self._c_before, residual_N, self._keep,
                rules.noise_N**2, rules.timing_s / rules.sample_s, self._L, self._v,
            )  # fmt: skip
            self._judge(t_s)
        self._c_before[:] = self._c

    def _judge(self, t_s: float) -> None:
        self.log_odds, best = -np.inf, -1
        for k in range(len(self._keep)):
            top = _log_odds(
                self._L[k], self._v[k], self._base, self._P0, self._mu, self._possible,
                self._left, self._right, self._log_B[k],
            )  # fmt: skip
            if top > self.log_odds:
                self.log_odds, best = top, k
        if best < 0 or self.log_odds < self.threshold:
            return
        L = self._L[best]
        other = wide_log_odds(L, self._v[best] - L @ self._base, self._P0, self._wide)
        if other > self.log_odds:
            return  # something else fits better than any single failure: wait for more
        self._announce(t_s, self._log_B[best], other)

    def _announce(self, t_s: float, log_B: Matrix, other: float) -> None:
        n = len(self._shares)
        best = int(log_B.argmax())
        weights = np.exp(np.append(log_B[self._possible], [other, 0.0]) - log_B[best])
        tied = np.flatnonzero(log_B >= log_B[best] - self._rules.tie)
        cells = tuple(sorted({int(h) % n for h in tied}))
        self.state[list(cells)] = np.maximum(self.state[list(cells)], SUSPECT)
        if len(cells) > 1 and self.findings and self.findings[-1].cells == cells:
            return
        share = float(np.exp(log_B[tied] - log_B[best]).sum() / weights.sum())
        kind = "electrical" if best < n else "mechanical"
        self.findings.append(Finding(t_s, cells, kind, float(log_B[best]), share))
        if len(cells) == 1:
            self.state[self.state == SUSPECT] = HEALTHY
            self.state[cells[0]] = FAILED
            self._base += self._mu[best]
            self._possible[[cells[0], n + cells[0]]] = False


def _means(shares: Matrix, broken: Matrix) -> Matrix:
    """Mean (2N, N + 1) of (delta, b) for every cell dead, then every cell broken."""
    n = len(shares)
    mu = np.zeros((2 * n, n + 1))
    mu[:n, :n] = -np.eye(n)
    safe = np.where(shares == 0.0, 1.0, shares)
    mu[n:, :n] = np.where(shares == 0.0, 0.0, broken / safe - 1.0)
    return mu


@njit(cache=True)
def _log_odds(L, v, base, P0, mu, possible, left, right, log_B):  # type: ignore[no-untyped-def]
    """Log odds (H,) of every mean against none, given what was found before; their largest.

    left = I + L P0 is eliminated with row pivoting, and with it right = (v - L base, L).
    """
    m = len(v)
    for i in range(m):
        rest = v[i]
        for j in range(m):
            left[i, j] = L[i, j] * P0[j] + (1.0 if i == j else 0.0)
            right[i, j + 1] = L[i, j]
            rest -= L[i, j] * base[j]
        right[i, 0] = rest
    for i in range(m):
        pivot = i
        for r in range(i + 1, m):
            if abs(left[r, i]) > abs(left[pivot, i]):
                pivot = r
        if pivot != i:
            for j in range(m):
                left[i, j], left[pivot, j] = left[pivot, j], left[i, j]
            for j in range(m + 1):
                right[i, j], right[pivot, j] = right[pivot, j], right[i, j]
        for r in range(i + 1, m):
            factor = left[r, i] / left[i, i]
            if factor != 0.0:
                for j in range(i, m):
                    left[r, j] -= factor * left[i, j]
                for j in range(m + 1):
                    right[r, j] -= factor * right[i, j]
    for i in range(m - 1, -1, -1):
        for j in range(m + 1):
            total = right[i, j]
            for r in range(i + 1, m):
                total -= left[i, r] * right[r, j]
            right[i, j] = total / left[i, i]
    largest = -np.inf
    for h in range(len(mu)):
        log_B[h] = -np.inf
        if not possible[h]:
            continue
        total = 0.0
        for i in range(m):
            if mu[h, i] != 0.0:
                inner = right[i, 0]
                for j in range(m):
                    inner -= 0.5 * right[i, j + 1] * mu[h, j]
                total += mu[h, i] * inner
        log_B[h] = total
        largest = max(largest, total)
    return largest


def wide_log_odds(L: Matrix, v: Matrix, P0: Matrix, wide: Matrix) -> float:
    """Log odds of a spread `wide` against P0, both about zero."""

    def evidence(P: Matrix) -> float:
        root = np.sqrt(P)
        inner = np.eye(len(v)) + root[:, None] * L * root
        u = root * v
        return float(0.5 * u @ np.linalg.solve(inner, u) - 0.5 * np.linalg.slogdet(inner)[1])

    return evidence(wide) - evidence(P0)


@njit(cache=True)
def _lag(activation, direct, blend, lagged, c):  # type: ignore[no-untyped-def]
    for n in range(len(c)):
        lagged[n] += blend[n] * (activation[n] - lagged[n])
        c[n] = direct[n] * activation[n] + (1.0 - direct[n]) * lagged[n]


@njit(cache=True)
def _inform(shares, c, c_before, residual, keep, noise_N2, timing, L, v):  # type: ignore[no-untyped-def]
    """Forget a little, and take in a sample."""
    n = len(shares)
    variance = noise_N2
    for i in range(n):
        moved = timing * shares[i] * (c[i] - c_before[i])
        variance += moved * moved
    for k in range(len(keep)):
        L[k] *= keep[k]
        v[k] *= keep[k]
        for i in range(n + 1):
            a = shares[i] * c[i] if i < n else 1.0
            v[k, i] += a * residual / variance
            for j in range(n + 1):
                b = shares[j] * c[j] if j < n else 1.0
                L[k, i, j] += a * b / variance
