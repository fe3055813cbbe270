"""Which cell has failed, and when: sequential tests for cells whose wires the model knows.

With z_n(t) the lag of cell n's austenite, s_n its share, the residual between measured force and
open-loop twin is

    e = sum_n s_n (a_n z_n + (r + r_n) u_n + (f + f_n) d_n) + b + w + noise

a healthy array's errors: of share a_n, of timing as a cell rises r_n and falls f_n, and as all do
r and f, as in warmer air (u_n and d_n are the lags of the rate at which its austenite last moved up
or down, kept where it came to rest in between), the transducer's zero b, and what wanders w, the
more the more moves. All are first-order Gauss-Markov with the standard deviations and times of
`WireRules`, so that a Kalman filter whitens e. A cell that dies at tau cools from then on whether
it is on or not: with z_n^tau the lag of a wire left to itself at tau,

    e gains  -s_n (z_n - z_n^tau)              electrically dead
             sum_m (s'_m - s_m) z_m            mechanically broken, from tau on

For every cell that is on, a hypothesis begins every `spawn_s` and lives for `life_s`. The filter is
linear: passed through it, the hypothesis' change is nu_h where the residual's is nu, and its log
likelihood ratio against a healthy array grows by

    (nu_h nu - nu_h^2 / 2) / S

with the change's own size and moment taken as uncertain, as those of a healthy cell are, and
integrated out. Such a ratio starts at 1 and is a martingale while the array is healthy: it exceeds
e^A with chance e^-A at most (Ville). An alarm at

    A = log(hypotheses begun a day / false alarms a day)

is hence false that often at most, if the errors are no larger than stated. The cell is named once
its hypotheses hold `sure` of the posterior, all having been as likely before; until then the cells
that share it are suspects.

Source: Willsky & Jones 1976 (generalised likelihood ratio on a Kalman filter's innovations);
Basseville & Nikiforov 1993, ch. 7; Ville 1939.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from hil.models.isolation import DAY_S, FAILED, HEALTHY, SUSPECT, Finding
from hil.models.sma_wire import advance
from hil.models.wire_cells import WireModel

Matrix = NDArray[np.float64]
Mask = NDArray[np.uint8]
ELECTRICAL, MECHANICAL = 0, 1
STILL = 1e-6


@dataclass(frozen=True)
class WireRules:
    """What a healthy array may do, and how often to be wrong.

    Attributes
    ----------
    sample_s : float
        Between samples.
    share, timing_s, common_s, wander_N, zero_N : float
        Standard deviations: of a cell's share, relative; of its timing; of all cells' timing; of
        what wanders; of the zero.
    stir : float
        What wanders grows by this part of what every cell's force moves.
    share_for_s, timing_for_s, wander_for_s : float
        How long each of them stays about the same.
    noise_N : float
        Of a sample.
    spawn_s, life_s : float
        Of hypotheses.
    sure : float
        Posterior that names a cell.
    confirm : int
        Samples in a row that must agree on it.
    false_alarms_per_day : float
    doubts_per_alarm : float
        How many times as often cells may be suspected without need.
    """

    sample_s: float = 0.05
    share: float = 0.05
    share_for_s: float = 60.0
    timing_s: float = 0.06
    common_s: float = 0.05
    timing_for_s: float = 50.0
    wander_N: float = 0.003
    wander_for_s: float = 1.0
    stir: float = 0.1
    zero_N: float = 0.002
    noise_N: float = 0.002
    spawn_s: float = 0.1
    life_s: float = 4.0
    sure: float = 0.99
    confirm: int = 2
    false_alarms_per_day: float = 1.0
    doubts_per_alarm: float = 1000.0


class WireFailures:
    """The tests; see the module.

    Parameters
    ----------
    broken_N : (N, N) array
        As `hil.models.isolation.broken_shares_N` gives them.

    Attributes
    ----------
    state : (N,) uint8 array
        0 healthy, 1 failed, 2 suspect.
    log_odds : float
        Of the likeliest failure not yet named.
    posterior : (N,) array
        Of each cell, given that one has failed.
    suspicion : (N,) array
        The posterior of every suspect while an alarm stands; else 0.
    gain : (N,) array
        What each cell gives over its share, as learned.
    findings : list of Finding
    """

    def __init__(
        self,
        rules: WireRules,
        cells: WireModel,
        broken_N: ArrayLike,
        period_s: float,
    ) -> None:
        self.rules = rules
        self._laws, self._rates = cells.laws, cells.rate_per_s
        self._direct, self._shares = cells.direct, cells.shares_N
        self._comes = np.zeros(len(self._direct))
        n = len(self._shares)
        broken = np.asarray(broken_N, dtype=float) - self._shares
        self._breaks = np.asarray(np.isfinite(broken).all(axis=1))
        self._broken = np.where(self._breaks[:, None], broken, 0.0)
        self._period_s = period_s
        self._every = max(1, round(rules.sample_s / period_s))
        h = self._every * period_s
        self._spawn = max(1, round(rules.spawn_s / h))
        n_alive = max(1, round(rules.life_s / (self._spawn * h)))
        sd = np.concatenate([np.full(n, rules.share), np.full(2 * n, rules.timing_s),
                             [rules.common_s] * 2, [rules.wander_N, rules.zero_N]])  # fmt: skip
        lasts_s = np.concatenate([np.full(n, rules.share_for_s),
                                  np.full(2 * n + 2, rules.timing_for_s),
                                  [rules.wander_for_s, rules.share_for_s]])  # fmt: skip
        self._keep = np.exp(-h / lasts_s)
        self._Q = sd**2 * (1.0 - self._keep**2)
        self._x, self._P = np.zeros(len(sd)), np.diag(sd**2)
        self._phi, self._gain = np.zeros((2, len(sd)))
        self._lag, self._xi, self._before = np.zeros((3, n))
        self._turn = np.zeros((3, n))
        # Hypotheses: kind, cell, place among those alive.
        shape = (2, n, n_alive)
        self._ghost = np.zeros((n, n_alive, 3))
        self._log = np.full(shape, -np.inf)
        self._sums = np.zeros((*shape, 5))
        self._filter = np.zeros((*shape, 2, len(sd)))
        self._own = np.array([rules.share**2, rules.timing_s**2 + rules.spawn_s**2 / 12.0])
        self._place = 0
        self._alive = np.ones(n, dtype=np.uint8)
        self.threshold = float(
            np.log(n * 2 * DAY_S / (self._spawn * h) / rules.false_alarms_per_day)
        )
        self.posterior, self.suspicion = np.zeros((2, n))
        self._leader, self._agreed = -1, 0
        self._tick = 0
        self._blind_until_s = -np.inf
        self.state = np.zeros(n, dtype=np.uint8)
        self.log_odds = 0.0
        self.findings: list[Finding] = []

    @property
    def gain(self) -> Matrix:
        return self._x[: len(self._shares)]

    def step(
        self, t_s: float, residual_N: float, T_C: Matrix, xi: Matrix, cells: Mask,
        n_periods: int = 1,
    ) -> None:  # fmt: skip
        """One tick: the residual (NaN where nothing was read), the twin's wires, cells on."""
        if n_periods > 0:
            _follow(self._rates, n_periods * self._period_s, xi, self._xi, self._lag, self._turn)
        self._tick += 1
        if self._tick % self._every:
            return
        h = self._every * self._period_s
        np.multiply(self._direct, xi, out=self._comes)
        self._comes += (1.0 - self._direct) * self._lag
        calm = self.log_odds < self.threshold  # or else none of the hypotheses may make way
        spawn = calm and (self._tick // self._every) % self._spawn == 0
        if spawn:
            self._place = (self._place + 1) % self._ghost.shape[1]
        blind = np.isnan(residual_N) or t_s < self._blind_until_s
        self.log_odds = _take(
            self._laws, self._shares, self._rates, self._direct, self._broken, self._breaks, h,
            T_C, xi, self._lag, self._comes, self._turn, self._before, cells, self._alive,
            0.0 if blind else residual_N, blind, self.rules.noise_N**2, self.rules.stir**2,
            self._keep, self._Q, self._x, self._P, self._phi, self._gain, self._ghost, self._log,
            self._sums, self._filter, self._own, spawn, self._place, self.posterior,
        )  # fmt: skip
        self._before[:] = self._comes
        self._judge(t_s)

    def _judge(self, t_s: float) -> None:
        self.state[self.state == SUSPECT] = HEALTHY
        self.suspicion[:] = 0.0
        rules, best = self.rules, int(self.posterior.argmax())
        if self.log_odds >= self.threshold - np.log(rules.doubts_per_alarm):
            suspects = (self.posterior >= 1.0 - rules.sure) & (self.state == HEALTHY)
            self.state[suspects] = SUSPECT
            np.multiply(self.posterior, suspects, out=self.suspicion)
        if self.log_odds < self.threshold:
            self._leader, self._agreed = -1, 0
            return
        certain = self.posterior[best] >= rules.sure
        self._agreed = self._agreed + 1 if certain and best == self._leader else int(certain)
        self._leader = best
        if self._agreed < rules.confirm:
            return
        kinds = self._log[:, best].max(axis=1)
        kind = "electrical" if kinds[ELECTRICAL] >= kinds[MECHANICAL] else "mechanical"
        self.findings.append(
            Finding(t_s, (best,), kind, self.log_odds, float(self.posterior[best]))
        )
        self.state[self.state == SUSPECT] = HEALTHY
        self.suspicion[:] = 0.0
        self.state[best] = FAILED
        self._begin_anew(t_s, best)

    def _begin_anew(self, t_s: float, cell: int) -> None:
        """The cell gives nothing from now on; all hypotheses go, and it cools meanwhile."""
        self._alive[cell] = 0
        self._log[:] = -np.inf
        self._leader, self._agreed = -1, 0
        self._blind_until_s = t_s + self.rules.life_s


@njit(cache=True)
def _follow(rates, h, xi_now, xi, lag, turn):  # type: ignore[no-untyped-def]
    """Lags, and what a second's error of timing makes of them: turn is (3, N), xi', up, down.

    Where austenite comes to rest between 0 and 1 the error of its last movement stays.
    """
    for n in range(len(lag)):
        a = np.exp(-rates[n] * h)
        ramp = 1.0 - (1.0 - a) / (rates[n] * h)
        lag[n] = a * lag[n] + (1.0 - a - ramp) * xi[n] + ramp * xi_now[n]
        moved = xi_now[n] - xi[n]
        if abs(moved) > STILL:
            turn[0, n] = moved / h
        elif xi_now[n] < STILL or xi_now[n] > 1.0 - STILL:
            turn[0, n] = 0.0
        turn[1, n] += (1.0 - a) * (max(0.0, turn[0, n]) - turn[1, n])
        turn[2, n] += (1.0 - a) * (min(0.0, turn[0, n]) - turn[2, n])
        xi[n] = xi_now[n]


@njit(cache=True)
def _take(  # type: ignore[no-untyped-def]
    laws, shares, rates, direct, broken, breaks, h, T, xi, lag, comes, turn, before, cells,
    alive, residual, blind, noise_N2, stir2, keep, Q, x, P, phi, gain, ghost, log, sums, filtered,
    spread, spawn, place, posterior,
):  # fmt: skip
    """A sample: predict and correct the errors, every hypothesis beside them; the largest log."""
    n, m, n_alive = len(shares), len(x), ghost.shape[1]
    for i in range(m):
        x[i] *= keep[i]
        for j in range(m):
            P[i, j] *= keep[i] * keep[j]
        P[i, i] += Q[i]
    for i in range(n):
        s = shares[i] if alive[i] else 0.0
        phi[i] = s * comes[i]
        rest = 1.0 - direct[i]
        phi[n + i] = s * (direct[i] * max(0.0, turn[0, i]) + rest * turn[1, i])
        phi[2 * n + i] = s * (direct[i] * min(0.0, turn[0, i]) + rest * turn[2, i])
        P[m - 2, m - 2] += stir2 * (s * (comes[i] - before[i])) ** 2
        if not alive[i]:
            residual += shares[i] * comes[i]
    phi[m - 2] = phi[m - 1] = 1.0
    phi[3 * n], phi[3 * n + 1] = phi[n : 2 * n].sum(), phi[2 * n : 3 * n].sum()
    S = noise_N2
    for i in range(m):
        total = 0.0
        for j in range(m):
            if phi[j] != 0.0:
                total += P[i, j] * phi[j]
        gain[i] = total
        S += phi[i] * total
    nu = residual
    for i in range(m):
        nu -= phi[i] * x[i]
    for i in range(m):
        gain[i] /= S
    # hypotheses
    top = -np.inf
    for c in range(n):
        if not alive[c]:
            continue
        a = np.exp(-rates[c] * h)
        ramp = 1.0 - (1.0 - a) / (rates[c] * h)
        change = 0.0
        for i in range(n):
            change += broken[c, i] * comes[i]
        for k in range(n_alive):
            old, was = ghost[c, k, 1], ghost[c, k, 2]
            was = direct[c] * old + (1.0 - direct[c]) * was
            ghost[c, k, 0], ghost[c, k, 1] = advance(laws[c], 0.0, ghost[c, k, 0], old, h)
            ghost[c, k, 2] = a * ghost[c, k, 2] + (1.0 - a - ramp) * old + ramp * ghost[c, k, 1]
            left = direct[c] * ghost[c, k, 1] + (1.0 - direct[c]) * ghost[c, k, 2]
            for kind in range(2):
                if log[kind, c, k] == -np.inf:
                    continue
                g, d = change, 0.0
                if kind == ELECTRICAL:
                    g = -shares[c] * (1.0 + x[c]) * (comes[c] - left)
                    d = -shares[c] * (left - was) / h
                own = filtered[kind, c, k]
                for i in range(m):
                    own[0, i] *= keep[i]
                    g -= phi[i] * own[0, i]
                if kind == ELECTRICAL:
                    for i in range(m):
                        own[1, i] *= keep[i]
                        d -= phi[i] * own[1, i]
                if not blind:
                    total = sums[kind, c, k]
                    total[0] += g * nu / S
                    total[1] += d * nu / S
                    total[2] += g * g / S
                    total[3] += g * d / S
                    total[4] += d * d / S
                    log[kind, c, k] = _evidence(total, spread)
                    for i in range(m):
                        own[0, i] += gain[i] * g
                    if kind == ELECTRICAL:
                        for i in range(m):
                            own[1, i] += gain[i] * d
                top = max(top, log[kind, c, k])
        if spawn:
            ghost[c, place, 0], ghost[c, place, 1], ghost[c, place, 2] = T[c], xi[c], lag[c]
            for kind in range(2):
                pulls = cells[c] or comes[c] > 0.01
                able = cells[c] if kind == ELECTRICAL else breaks[c] and pulls
                log[kind, c, place] = 0.0 if able and not blind else -np.inf
                filtered[kind, c, place] = 0.0
                sums[kind, c, place] = 0.0
    if not blind:
        for i in range(m):
            x[i] += gain[i] * nu
            for j in range(m):
                P[i, j] -= gain[i] * gain[j] * S
    total = 0.0
    for c in range(n):
        posterior[c] = 0.0
        if alive[c] and top > -np.inf:
            for k in range(n_alive):
                for kind in range(2):
                    posterior[c] += np.exp(log[kind, c, k] - top)
        total += posterior[c]
    if total > 0.0:
        for c in range(n):
            posterior[c] /= total
    return top


@njit(cache=True)
def _evidence(sums, spread):  # type: ignore[no-untyped-def]
    """Log ratio of a change g + p g + q d against none, p and q of these variances about zero."""
    u, v, gg, gd, dd = sums
    a, b = u - gg, v - gd
    m11, m22, m12 = 1.0 / spread[0] + gg, 1.0 / spread[1] + dd, gd
    det = m11 * m22 - m12 * m12
    fit = (m22 * a * a - 2.0 * m12 * a * b + m11 * b * b) / det
    return u - 0.5 * gg + 0.5 * fit - 0.5 * np.log(det * spread[0] * spread[1])
