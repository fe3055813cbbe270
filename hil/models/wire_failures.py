"""Which cell has failed, and when: sequential tests for cells whose wires the model knows.

With z_n(t) the lag of cell n's austenite, s_n its share, the residual between measured force and
open-loop twin is

    e = sum_n s_n (a_n z_n + h_n dz_n/dh + c_n dz_n/dc + r dz_n/dr) - d F' + b + w + noise

a healthy array's errors: of share a_n; of the power h_n that heats a wire and of the convection
c_n that cools it, all three relative; of the air's temperature r in K; the delay d of the reading;
the transducer's zero b, and what wanders w, the more the more moves. The derivatives are those of
the wire's own law: beside every wire run three that have a little more power, a little more
convection and warmer air. All errors are first-order Gauss-Markov with the standard deviations and
times of `WireRules`, so that a Kalman filter whitens e. In calm hours what it has learned of power,
convection and air becomes the wires' own law. A cell that dies at tau cools from then on whether it
is on or not: with z_n^tau the lag of a wire left to itself at tau,

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

is hence false that often at most, if the errors are no larger than stated. A dead cell is named
once its hypotheses hold `sure` of the posterior, all having been as likely before; until then the
cells that share it are suspects. What is learned of the other errors loses what the death had put
there, and the array goes on as one without the cell.

A break is felt at once: breaks hold `sure` of the posterior, or the array rings, as readings
between two samples show that leave a straight line by `RINGS` times their noise. What it leaves
behind depends on stiffnesses that force has never shown. So every share is learned anew, with a
standard deviation of `share_anew`, beside a transient and with the ringing as noise. What has been
learned is held against every cell that pulled: it has lost its share, and the others' are those of
the array without it, give or take `LEFT` of every change; and against a knock that broke none.
Cells whose breaking leaves the same shares, as in a chain, are named together: force alone cannot
tell them apart. After that the array is not the one that was told, and no more is named.

Source: Willsky & Jones 1976 (generalised likelihood ratio on a Kalman filter's innovations);
Basseville & Nikiforov 1993, ch. 7; Ville 1939.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hil.models.isolation import DAY_S, FAILED, HEALTHY, SUSPECT, Finding
from hil.models.wire_bank import WireBank
from hil.models.wire_cells import WireModel
from hil.models.wire_filter import ELECTRICAL, MECHANICAL, PULLS, chances, fitted, take

Matrix = NDArray[np.float64]
Mask = NDArray[np.uint8]
BREAK = -2  # beside the numbers of cells
RINGS, READINGS_MIN = 4.0, 5
STILL, LEFT = 0.05, 0.3  # of a share, and of its change: how far it may be off after a break
ALIKE = 1e-6  # of the largest share: what two breaks may leave different
CALM, BELIEVE_S, BELIEVED = 3.0, 5.0, 0.5  # log odds, at most so often, from so much of sd on


@dataclass(frozen=True)
class WireRules:
    """What a healthy array may do, and how often to be wrong.

    Attributes
    ----------
    sample_s : float
        Between samples.
    share, heating, cooling : float
        Standard deviations, relative, of a cell's share, heating power and convection.
    room_K, delay_s, wander_N, zero_N : float
        Standard deviations: of the air's temperature, of the delay of the reading, of what
        wanders, of the zero.
    stir : float
        What wanders grows by this part of what every cell's force moves.
    same_for_s, wander_for_s : float
        How long all of these, and what wanders, stay about the same.
    moment_s : float
        Of when a cell that died fades.
    share_anew : float
        Of every share after a break, relative.
    doubt_for_s : float
        After so long an alarm that no single failure explains is given up.
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
    share: float = 0.02
    heating: float = 0.03
    cooling: float = 0.05
    room_K: float = 1.5
    delay_s: float = 0.02
    same_for_s: float = 300.0
    wander_N: float = 0.003
    wander_for_s: float = 1.0
    stir: float = 0.04
    moment_s: float = 0.03
    share_anew: float = 1.0
    doubt_for_s: float = 10.0
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
    posterior : (2, N) array
        Of each cell to be dead, and to be broken, given that one has failed.
    suspicion : (N,) array
        The posterior of every suspect while an alarm stands; else 0.
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
        self._bank = WireBank(cells)
        self._rates, self._direct, self._shares = cells.rate_per_s, cells.direct, cells.shares_N
        n = len(self._shares)
        broken = np.asarray(broken_N, dtype=float) - self._shares
        self._breaks = np.asarray(np.isfinite(broken).all(axis=1))
        self._broken = np.where(self._breaks[:, None], broken, 0.0)
        apart = np.abs(self._broken[:, None] - self._broken).max(axis=2)
        both = self._breaks[:, None] & self._breaks
        self._alike = np.asarray(both & (apart <= ALIKE * self._shares.max()))
        self._now = self._shares.copy()
        pulls = self._shares != 0.0
        self._left = np.where(pulls, self._broken / np.where(pulls, self._shares, 1.0), 0.0)
        self._period_s = period_s
        self._every = max(1, round(rules.sample_s / period_s))
        h = self._every * period_s
        self._spawn = max(1, round(rules.spawn_s / h))
        n_alive = max(1, round(rules.life_s / (self._spawn * h)))
        sd = np.concatenate([
            np.full(n, rules.share), np.full(n, rules.heating), np.full(n, rules.cooling),
            [rules.room_K, rules.delay_s, rules.zero_N, rules.wander_N],
        ])  # fmt: skip
        self._sd = sd
        lasts_s = np.full(len(sd), rules.same_for_s)
        lasts_s[-1] = rules.wander_for_s
        self._keep = np.exp(-h / lasts_s)
        self._Q = sd**2 * (1.0 - self._keep**2)
        self._x, self._P = np.zeros(len(sd)), np.diag(sd**2)
        self._phi, self._gain = np.zeros((2, len(sd)))
        self._before = np.zeros(n)
        # Hypotheses: kind, cell, place among those alive.
        shape = (2, n, n_alive)
        self._ghost = np.zeros((n, n_alive, 3))
        self._log = np.full(shape, -np.inf)
        self._sums = np.zeros((*shape, 5))
        self._filter = np.zeros((*shape, 2, len(sd)))
        self._own = np.array([rules.share**2, rules.moment_s**2 + rules.spawn_s**2 / 12.0])
        self._place = 0
        self._alive = np.ones(n, dtype=np.uint8)
        self.threshold = float(
            np.log(n * 2 * DAY_S / (self._spawn * h) / rules.false_alarms_per_day)
        )
        self.posterior, self.suspicion = np.zeros((2, n)), np.zeros(n)
        self._leader, self._agreed = -1, 0
        self._readings = np.zeros(self._every)
        line = np.arange(self._every) - 0.5 * (self._every - 1)
        self._line = line / max(1.0, float(np.sqrt(line @ line)))
        self._ringing = 0
        self._past, self._believed = np.zeros((4, len(sd))), np.zeros(len(sd))
        self._broke, self._pulled = False, np.zeros(n, dtype=bool)
        self._tick = 0
        self._blind_until_s, self._calm_s = -np.inf, 0.0
        self._believe_at_s = BELIEVE_S
        self.state = np.zeros(n, dtype=np.uint8)
        self.log_odds = 0.0
        self.findings: list[Finding] = []

    def set_air(self, T_C: float, *, settled: bool) -> None:
        """The air around the wires, as it is read."""
        self._bank.set_air(T_C, settled=settled)

    def step(
        self, t_s: float, residual_N: float, T_C: Matrix, xi: Matrix, cells: Mask,
        n_periods: int = 1,
    ) -> None:  # fmt: skip
        """One tick: the residual (NaN where nothing was read), the twin's wires, cells on."""
        self._bank.follow(n_periods * self._period_s, T_C, xi, cells)
        self._tick += 1
        self._readings[self._tick % self._every] = residual_N
        if self._tick % self._every:
            return
        residual_N, noise_N2 = self._sample(residual_N)
        bank, h = self._bank, self._every * self._period_s
        residual_N += bank.look(xi)
        # after an alarm none of the hypotheses may make way
        calm = self.log_odds < self.threshold and not self._broke
        spawn = calm and (self._tick // self._every) % self._spawn == 0
        if spawn:
            self._place = (self._place + 1) % self._ghost.shape[1]
        blind = np.isnan(residual_N) or t_s < self._blind_until_s
        self.log_odds = take(
            bank.laws[0], self._now, self._rates, self._direct, self._broken, self._breaks, h,
            bank.wires[0], bank.comes, bank.slopes, self._before, cells, self._alive,
            0.0 if blind else residual_N, blind, noise_N2, self.rules.stir**2,
            self._keep, self._Q, self._x, self._P, self._phi, self._gain, self._ghost, self._log,
            self._sums, self._filter, self._own, spawn, self._place, self.posterior,
        )  # fmt: skip
        self._before[:] = bank.comes
        if self.log_odds < CALM and t_s >= self._believe_at_s:
            self._believe()
            self._believe_at_s = t_s + BELIEVE_S
        self._past[:-1] = self._past[1:]
        self._past[-1] = self._x + self._believed
        self._judge(t_s)

    def _believe(self) -> None:
        """Make what has been learned of power, convection and air the wires' own law."""
        n = len(self._shares)
        law = slice(n, 3 * n + 1)
        learned = self._x[law].copy()
        if np.abs(learned / self._sd[law]).max() < BELIEVED:
            return
        self._believed[law] += learned
        self._x[law] = 0.0
        self._bank.believe(learned[:n], learned[n : 2 * n], float(learned[2 * n]))
        self._log[:] = -np.inf

    def _sample(self, residual_N: float) -> tuple[float, float]:
        """What to take of the readings since the last sample, and its variance."""
        rules, readings = self.rules, np.roll(self._readings, -1)
        n, still_N2 = len(readings), rules.noise_N**2
        if n < READINGS_MIN:
            return residual_N, still_N2
        left = readings - readings.mean() - self._line * (self._line @ readings)
        N2 = float(left @ left) / (n - 2)
        rings = N2 > RINGS**2 * still_N2
        self._ringing = self._ringing + 1 if rings else 0
        if self._ringing >= rules.confirm and not self._broke and self._breaks.any():
            self._learn_anew()
        if rings or self._broke:
            return float(readings.mean()), still_N2 + N2
        return residual_N, still_N2

    def _judge(self, t_s: float) -> None:
        self.state[self.state == SUSPECT] = HEALTHY
        self.suspicion[:] = 0.0
        if self._broke:
            self._look_for_the_broken(t_s)
            return
        rules, of_cell = self.rules, self.posterior.sum(axis=0)
        if self.log_odds >= self.threshold - np.log(rules.doubts_per_alarm):
            suspects = (of_cell >= 1.0 - rules.sure) & (self.state == HEALTHY)
            self.state[suspects] = SUSPECT
            np.multiply(of_cell, suspects, out=self.suspicion)
        if self.log_odds < self.threshold:
            self._leader, self._agreed = -1, 0
            self._calm_s = t_s
            return
        best = int(self.posterior[ELECTRICAL].argmax())
        chance = float(self.posterior[ELECTRICAL, best])
        broken = float(self.posterior[MECHANICAL].sum())
        if broken > chance:
            best, chance = BREAK, broken
        if not self._agree(best, chance >= rules.sure):
            if t_s - self._calm_s > rules.doubt_for_s:
                self._let_go()
            return
        if best == BREAK:
            self._learn_anew()
            return
        self._forget(best)
        self._name(t_s, (best,), "electrical", chance)
        self._broken[:, best] = 0.0
        self._blind_until_s = t_s + rules.life_s

    def _agree(self, best: int, certain: bool) -> bool:
        """So many samples in a row have agreed on it."""
        self._agreed = self._agreed + 1 if certain and best == self._leader else int(certain)
        self._leader = best
        return self._agreed >= self.rules.confirm

    def _name(self, t_s: float, cells: tuple[int, ...], kind: str, chance: float) -> None:
        """The array is one without these cells; all hypotheses go."""
        self.findings.append(Finding(t_s, cells, kind, self.log_odds, chance))
        which = list(cells)
        self.state[self.state == SUSPECT] = HEALTHY
        self.state[which] = FAILED
        self.suspicion[:] = 0.0
        self._now[which] = 0.0
        self._alive[which] = 0
        self._log[:] = -np.inf
        self._leader, self._agreed = -1, 0

    def _let_go(self) -> None:
        """No single failure explains it: it is an error larger than thought."""
        self._P[range(len(self._sd)), range(len(self._sd))] += self._sd**2
        self._log[:] = -np.inf
        self._leader, self._agreed = -1, 0

    def _learn_anew(self) -> None:
        """A cell broke: shares are wide open, and a transient dies away."""
        n = len(self._shares)
        self._x[:] = self._past[0] - self._believed
        self._P[:n] = self._P[:, :n] = 0.0
        self._P[range(n), range(n)] = self.rules.share_anew**2
        self._P[-1, -1] += self._shares.max() ** 2
        self._pulled = (self._bank.comes > PULLS) & self._breaks & (self._now != 0.0)
        self._log[:] = -np.inf
        self._leader, self._agreed = -1, 0
        self._broke = True

    def _look_for_the_broken(self, t_s: float) -> None:
        """Every cell that pulled, held against the shares learned anew."""
        n, sure = len(self._shares), self.rules.sure
        chance, knock = chances(
            self._x[:n],
            self._P[:n, :n],
            self._left,
            (STILL, LEFT),
            self.rules.share_anew,
            self._pulled,
        )
        together = self._alike @ chance
        suspects = (together > 1.0 - sure) & (self.state != FAILED)
        self.state[suspects] = SUSPECT
        np.multiply(chance, suspects, out=self.suspicion)
        best = int(together.argmax())
        if not self._agree(best, bool(max(together[best], knock) >= sure)):
            return
        self._broke = False
        if together[best] >= sure:
            cells = tuple(np.flatnonzero(self._alike[best]).tolist())
            self._name(t_s, cells, "mechanical", float(together[best]))
            self._breaks[:] = False
            self._blind_until_s = np.inf

    def _forget(self, cell: int) -> None:
        """Take out of the errors learned what its death has put there."""
        place = self._log[ELECTRICAL, cell].argmax()
        own = self._filter[ELECTRICAL, cell, place]
        self._x -= np.array(fitted(self._sums[ELECTRICAL, cell, place], self._own)) @ own
