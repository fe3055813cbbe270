"""Failure isolation: which cell has failed, from measured force and cells reported on.

Let c_n(t) be the activation of cell n after the lag of its kind (1 for a cell long on) and s_n its
static gain. The residual between measured force and open-loop twin is

    e(t) = sum_n delta_n s_n c_n(t) + b + noise

Healthy cells differ by small delta_n ~ N(0, spread^2). An electrically dead cell n has
delta_n = -1. A mechanically broken cell changes every static gain, delta_m by mu_m (1 + delta_m)
with mu_m = s'_m / s_m - 1. b is the zero offset of the transducer. Samples are `sample_s` apart.
Their noise is that of the transducer plus, for `settle_s` after a cell was switched, `doubt` times
its static gain, because the model is uncertain while a cell heats or cools. The samples give the
information L = sum(phi phi^T / R), v = sum(phi e / R), phi = (s_1 c_1, ..., s_N c_N, 1). The
log odds of the mean m + mu against m, both with covariance P, are exact for Gaussian noise:

    log B = mu^T (I + L P)^-1 (v - L (m + mu / 2))

Two tests run side by side. The first uses all data of the last `memory_s` with m = 0 and the
spread of healthy cells; it finds cells that were dead from the start, once they have been on and
off often enough. The second uses only the last `window_s`, with m and P learned from the data
before the window (plus `drift`); it finds cells that fail during the run, whose static gain has
been learned by then. A failure is announced when log B exceeds

    log(n_hypotheses x 2 tests x 86400 s / window / false alarms a day)

since a likelihood ratio exceeds 1/eps with probability at most eps (Ville's inequality) in each
window. Two more conditions apply. No model with several deviations at once (every delta_n free)
may explain the data better. And the verdict must persist for `confirm_s`, because a cell that has
just died still pulls while it cools, and looks like a smaller failure.

Hypotheses whose log B is within `tie` of the best are indistinguishable; they are announced as a
class. After an announcement the failure becomes part of the null hypothesis of the test that found
it: what that one had learned is kept, both restart once the cell has cooled, and the search for the
next failure goes on.

Source: Basseville & Nikiforov 1993, Detection of Abrupt Changes, ch. 2 and 7 (likelihood ratios);
Kass & Raftery 1995 (Bayes factors).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hil.mechanics.arrays import Array
from hil.systems.array.failures import isolation_kernel as kernel
from hil.systems.array.model.activation import CellActivation
from hil.systems.array.model.cell_array import CellArray
from hil.systems.array.model.force_levels import static_gains_N
from hil.systems.array.model.lags import Lag

HEALTHY, FAILED, SUSPECT = 0, 1, 2
DAY_S = 86400.0


@dataclass(frozen=True)
class IsolationRules:
    """Tolerances of a healthy array, and accepted rate of false alarms.

    Attributes
    ----------
    sample_s : time between samples
    window_s, memory_s : window of the second test, memory of the first
    spread, drift : relative standard deviation of a healthy cell's static gain: among cells, and of
        one cell from its learned value
    settle_s, doubt : float
        Time after a switch during which a cell's static gain is uncertain; relative uncertainty.
    noise_N, zero_N : standard deviations of a sample and of the transducer's zero offset
    confirm_s : time for which a verdict must persist
    tie : difference in log odds below which two failures are indistinguishable
    """

    sample_s: float = 0.1
    window_s: float = 2.0
    memory_s: float = 60.0
    spread: float = 0.16
    drift: float = 0.03
    settle_s: float = 2.0
    doubt: float = 0.35
    noise_N: float = 0.02
    zero_N: float = 0.02
    confirm_s: float = 0.8
    tie: float = 3.0
    false_alarms_per_day: float = 1.0


@dataclass(frozen=True)
class Finding:
    """An announced failure.

    Attributes
    ----------
    cells : tuple of int
        The cell (from 0), or the class of cells that the force does not distinguish.
    kind : {"electrical", "mechanical", "weak"}, the more likely kind
    log_odds : of the failure against no failure
    probability : of the class among all single failures, no failure and "other", with equal priors
    """

    t_s: float
    cells: tuple[int, ...]
    kind: str
    log_odds: float
    probability: float


def broken_gains_N(model: CellArray, activation: Sequence[CellActivation], output: str) -> Array:
    """Return static gains (N, N) with cell n (row) mechanically broken; NaN if none can hold.

    Like cells side by side have the same row but for their own two places.
    """
    F_N = np.array([a.force_on_N for a in activation])
    rows = np.full((model.n_cells, model.n_cells), np.nan)
    nodes, c, weights = model.nodes, model.coefficients, model.weights_at(output)
    facts = zip(nodes.left, nodes.right, c.K_static, c.phi, F_N, weights, strict=True)
    alike: dict[tuple[float, ...], int] = {}
    for n, of_cell in enumerate(facts):
        first = alike.setdefault(of_cell, n)
        if first == n:
            rows[n] = static_gains_N(model.with_broken(n), F_N, output)
        else:
            rows[n] = rows[first]
            rows[n, [first, n]] = rows[n, [n, first]]
    return rows


class Isolation:
    """Sequential tests of every single failure.

    Parameters
    ----------
    static_gains_N : (N,) array
    broken_N : (N, N) array, from `broken_gains_N`
    lag : sequence of Lag, of every cell

    Attributes
    ----------
    state : (N,) uint8 array, 0 healthy, 1 failed, 2 member of a class that contains a failure
    log_odds : of the most likely failure that is not yet announced
    findings : list of Finding
    """

    def __init__(
        self,
        rules: IsolationRules,
        static_gains_N: ArrayLike,
        broken_N: ArrayLike,
        lag: Sequence[Lag],
        period_s: float,
    ) -> None:
        self._rules = rules
        self._gains_N: Array = np.array(static_gains_N, dtype=float)
        n = len(self._gains_N)
        self._every = max(1, round(rules.sample_s / period_s))
        n_window = max(1, round(rules.window_s / (self._every * period_s)))
        settle = max(1, round(rules.settle_s / period_s))
        keep = float(np.exp(-self._every * period_s / rules.memory_s))
        noise = (keep, rules.noise_N**2, rules.doubt, settle)
        self._noise = np.array([noise], dtype=kernel.NOISE)
        self._array = np.zeros(n, dtype=kernel.CELL)
        self._array["gain_N"], self._array["since"] = self._gains_N, settle
        self._array["direct"] = [one.direct for one in lag]
        self._array["blend"] = -np.expm1(-np.array([one.rate_per_s for one in lag]) * period_s)
        mu = _changes(self._gains_N, np.asarray(broken_N, dtype=float))
        able = np.abs(self._gains_N) > 1e-9 * np.abs(self._gains_N).sum()
        possible = np.concatenate([able, able & np.isfinite(mu[n:]).all(axis=1)])
        mu[~possible] = 0.0
        self._failures = kernel.Failures(mu, possible, np.zeros((2, 2 * n)))
        m = n + 1
        self._learned = kernel.Learned(
            base=np.zeros(m),
            P0=np.diag(np.append(np.full(n, rules.spread**2), rules.zero_N**2)),
            drift=np.append(np.full(n, rules.drift**2), (0.1 * rules.zero_N) ** 2),
            mean=np.zeros((2, m)),
            P=np.zeros((2, m, m)),
        )
        self._samples = kernel.Samples(
            np.zeros((n_window, m)), np.zeros(n_window), np.full(n_window, np.inf),
            np.zeros((2, m, m)), np.zeros((2, m)),
        )  # fmt: skip
        scratch = np.zeros((m, m)), np.zeros((m, m + 1)), np.zeros(m)
        self._all = (tuple(self._samples), tuple(self._learned), tuple(self._failures), scratch)
        self.threshold = float(
            np.log(2.0 * possible.sum() * DAY_S / rules.window_s / rules.false_alarms_per_day)
        )
        self._confirm = max(1, round(rules.confirm_s / (self._every * period_s)))
        self._cells: frozenset[int] = frozenset()  # cells common to all recent verdicts
        self._agreed = 0  # consecutive verdicts with a cell in common
        self._tick = self._n_samples = 0
        self._blind_until_s = -np.inf
        self.state = np.zeros(n, dtype=np.uint8)
        self.log_odds = 0.0
        self.findings: list[Finding] = []

    def step(
        self,
        t_s: float,
        residual_N: float,
        activation: Array,
        cells: NDArray[np.uint8],
        n_periods: int = 1,
    ) -> None:
        """Process a tick: residual (NaN without a reading), activation (0 to 1), cells on."""
        kernel.follow(self._array, activation, n_periods)
        kernel.count_since(self._array, cells, n_periods)
        self._tick += 1
        if self._tick < self._every or np.isnan(residual_N):
            return  # a sample that is due waits for a reading
        self._tick = 0
        if t_s >= self._blind_until_s:
            at = self._n_samples % len(self._samples.e)
            kernel.take(self._array, self._noise, self._all[0], at, residual_N)
            self._n_samples += 1
            self._judge(t_s)

    def _judge(self, t_s: float) -> None:
        self.log_odds, best = kernel.judge(*self._all)
        if best < 0 or self.log_odds < self.threshold:
            self._agreed = 0
            return
        L, v = self._samples.L[best], self._samples.v[best]
        if best == kernel.ALL:
            L, v = self._samples.L.sum(axis=0), self._samples.v.sum(axis=0)
        log_B = self._failures.log_B[best]
        other = wide_log_odds(L, v - L @ self._learned.mean[best], self._learned.P[best])
        if other > self.log_odds:
            return
        self._announce(t_s, best, log_B, other)

    def _announce(self, t_s: float, test: int, log_B: Array, other: float) -> None:
        """Announce a verdict that has persisted for `confirm_s`."""
        n = len(self._gains_N)
        best = int(log_B.argmax())
        tied = np.flatnonzero(log_B >= log_B[best] - self._rules.tie)
        now = frozenset(int(h) % n for h in tied)
        common = self._cells & now
        self._cells, self._agreed = (common, self._agreed + 1) if common else (now, 1)
        if self._agreed < self._confirm:
            return
        cells = tuple(sorted(now))
        if self.findings and self.findings[-1].cells == cells:
            return
        weights = np.exp(np.append(log_B[self._failures.possible], [other, 0.0]) - log_B[best])
        share = float(np.exp(log_B[tied] - log_B[best]).sum() / weights.sum())
        kind = "electrical" if best < n else "mechanical"
        self.findings.append(Finding(t_s, cells, kind, float(log_B[best]), share))
        self.state[self.state == SUSPECT] = HEALTHY
        self.state[list(cells)] = FAILED if len(cells) == 1 else SUSPECT
        if len(cells) == 1:
            self._restart(t_s, test, cells[0], best)

    def _restart(self, t_s: float, test: int, cell: int, failure: int) -> None:
        """Restart the tests; the null hypothesis is now that of this test, with this failure."""
        n = len(self._gains_N)
        learned, samples = self._learned, self._samples
        change = self._failures.mu[failure] * (1.0 + learned.mean[test, :n])
        learned.base[:] = learned.mean[test]
        learned.base[:n] += change
        learned.P0[:] = learned.P[test]
        learned.P0[cell], learned.P0[:, cell] = 0.0, 0.0
        learned.P0[cell, cell] = learned.drift[cell]
        self._failures.possible[[cell, n + cell]] = False
        samples.phi[:], samples.e[:], samples.R[:] = 0.0, 0.0, np.inf
        samples.L[:], samples.v[:] = 0.0, 0.0
        self._cells, self._agreed = frozenset(), 0
        self._blind_until_s = t_s + self._rules.settle_s


def _changes(gains_N: Array, broken: Array) -> Array:
    """Return relative gain changes (2N, N): each cell dead, then each cell broken."""
    safe = np.where(gains_N == 0.0, 1.0, gains_N)
    return np.vstack([-np.eye(len(gains_N)), np.where(gains_N == 0.0, 0.0, broken / safe - 1.0)])


def wide_log_odds(L: Array, v: Array, P: Array) -> float:
    """Return the log odds of all gains free (spread 1) against the spread P, about one mean."""

    def evidence(spread: Array) -> float:
        inner = np.eye(len(v)) + L @ spread
        gain = float(v @ spread @ np.linalg.solve(inner, v))
        return 0.5 * gain - 0.5 * float(np.linalg.slogdet(inner)[1])

    n = len(v) - 1
    wide = P.copy()
    wide[np.arange(n), np.arange(n)] += 1.0
    return evidence(wide) - evidence(P)
