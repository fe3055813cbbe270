"""Sequential tests of which cell has failed, and when, for cells with a known wire model.

A Kalman filter (`hil.systems.array.wires.filter`) with the error model of a healthy array whitens
the residual between measured force and open-loop twin. While no failure is likely, its estimates
of power, convection and air enter the wires' law. A cell that dies at tau cools from then on,
whether it is on or not: with z_n^tau the lag of a wire left to itself at tau,

    e gains  -s_n (z_n - z_n^tau)              electrically dead
             sum_m (s'_m - s_m) z_m            mechanically broken, from tau on

For every cell that is on, a hypothesis begins every `spawn_s` and lives for `life_s`. None begins
before cells have been on for `learn_for_s`: until then second-order effects of the day's laws could
look like a failure. The filter is linear: if the change of a hypothesis gives nu_h at its output
where the residual gives nu, its log likelihood ratio against a healthy array grows by

    (nu_h nu - nu_h^2 / 2) / S

integrated over the uncertain size and time of the change. This ratio starts at 1 and is a
martingale while the array is healthy, so it exceeds e^A with probability at most e^-A (Ville). An
alarm at

    A = log(hypotheses begun a day / false alarms a day)

therefore keeps the rate of false alarms if the errors are no larger than stated. A dead cell is
named once its hypotheses hold `sure` of the posterior, with equal priors; until then, the cells
that share it are suspects. Then the effect of the death is removed from the estimated errors, and
the array continues as one without the cell.

A break is detected at once: breaks hold `sure` of the posterior, or the array oscillates, which
readings between two samples show if they deviate from a straight line by `RINGS` times their noise.
Its effect depends on stiffnesses that the force has never shown. Every static gain is therefore
estimated again, with a standard deviation of `share_anew`, next to a transient and with the
oscillation as noise. The result is compared, for every cell that pulled, with the array without
that cell, within `LEFT` of every change; and with a disturbance that broke no cell. Cells whose
breaks give the same static gains, as in a chain, are named together, because the force cannot
distinguish them. After a break the configured array is no longer valid, and no more cells are
named.

Source: Willsky & Jones 1976 (generalised likelihood ratio on a Kalman filter's innovations);
Basseville & Nikiforov 1993, ch. 7; Ville 1939.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from hil.mechanics.arrays import Array
from hil.mechanics.system import Drive
from hil.systems.array.failures.isolation import DAY_S, FAILED, HEALTHY, SUSPECT, Finding
from hil.systems.array.failures.wire_hypotheses import (
    CELL,
    ELECTRICAL,
    MECHANICAL,
    PULLS,
    RATIO,
    Cells,
    Hypotheses,
    Sample,
    chances,
    fitted,
    hold,
)
from hil.systems.array.wires.cells import WireModel
from hil.systems.array.wires.filter import FilteredWires, WireErrors

BREAK = -2  # beside the numbers of cells
STILL, LEFT = 0.05, 0.3  # tolerance after a break, of a static gain and of its change
ALIKE = 1e-6  # of the largest static gain: difference below which two breaks are alike
CALM, FOLD_S = 3.0, 5.0  # log odds below which estimates enter the law; time between entries


@dataclass(frozen=True)
class WireRules:
    """Conditions for naming a cell, and accepted rate of false alarms.

    Attributes
    ----------
    learn_for_s : time with cells on before hypotheses begin; the day's laws are learned first
    moment_s : standard deviation of the time at which a dead cell fades
    share_anew : relative standard deviation of every static gain after a break
    doubt_for_s : time after which an alarm that no single failure explains is withdrawn
    spawn_s, life_s : time between new hypotheses, and their lifetime
    sure : posterior probability at which a cell is named
    confirm : consecutive samples that must agree
    doubts_per_alarm : rate of false suspicions over that of false alarms
    """

    learn_for_s: float = 10.0
    moment_s: float = 0.03
    share_anew: float = 1.0
    doubt_for_s: float = 10.0
    spawn_s: float = 0.1
    life_s: float = 4.0
    sure: float = 0.99
    confirm: int = 2
    false_alarms_per_day: float = 1.0
    doubts_per_alarm: float = 1000.0


class WireFailures(FilteredWires):
    """The failure tests.

    Parameters
    ----------
    broken_N : (N, N) array, from `hil.systems.array.failures.isolation.broken_gains_N`

    Attributes
    ----------
    state : (N,) uint8 array, 0 healthy, 1 failed, 2 suspect
    log_odds : of the most likely failure that is not yet named
    posterior : (2, N) array
        Probability of each cell to be dead, and to be broken, given that one has failed.
    suspicion : (N,) array, posterior of every suspect during an alarm; else 0
    findings : list of Finding
    """

    def __init__(
        self,
        rules: WireRules,
        errors: WireErrors,
        cells: WireModel,
        broken_N: ArrayLike,
        period_s: float,
    ) -> None:
        super().__init__(errors, cells, period_s)
        self.rules = rules
        gains_N, n = cells.static_gains_N, len(cells.static_gains_N)
        broken = np.asarray(broken_N, dtype=float) - gains_N
        can_break = np.asarray(np.isfinite(broken).all(axis=1))
        broken[~can_break] = 0.0
        apart = np.abs(broken[:, None] - broken).max(axis=2)
        both = can_break[:, None] & can_break
        self._alike = np.asarray(both & (apart <= ALIKE * gains_N.max()))
        pulls = gains_N != 0.0
        self._left = np.where(pulls, broken / np.where(pulls, gains_N, 1.0), 0.0)
        h = self._filter.sample_s
        self._spawn_s = max(1, round(rules.spawn_s / h)) * h
        self._waited_s = 0.0
        n_alive = max(1, round(rules.life_s / self._spawn_s))
        shape, bank = (2, n, n_alive), self._filter.bank
        each = np.zeros(n, CELL)
        each["rate_per_s"], each["direct"] = cells.rate_per_s, cells.direct
        each["can_break"], each["alive"] = can_break, True
        self._cells = Cells(bank.laws[0], bank.knots_C, each, broken)
        self._hypotheses = Hypotheses(
            ghost=np.zeros((n, n_alive, 3)),
            ratios=np.zeros(shape, RATIO),
            filtered=np.zeros((*shape, 2, len(self._filter.x))),
            variances=(errors.share**2, rules.moment_s**2 + rules.spawn_s**2 / 12.0),
            posterior=np.zeros((2, n)),
        )
        self._hypotheses.ratios["log"] = -np.inf
        self._n_alive, self._place = n_alive, 0
        self.threshold = float(np.log(n * 2 * DAY_S / self._spawn_s / rules.false_alarms_per_day))
        self.posterior, self.suspicion = self._hypotheses.posterior, np.zeros(n)
        self._leader, self._agreed = -1, 0
        self._ringing = 0
        self._past, self._folded = np.zeros((4, len(self._filter.x))), np.zeros(len(self._filter.x))
        self._broke, self._pulled = False, np.zeros(n, dtype=bool)
        self._blind_until_s, self._calm_s = -np.inf, 0.0
        self._fold_at_s, self._on_for_s = FOLD_S, 0.0
        self.state = np.zeros(n, dtype=np.uint8)
        self.log_odds = 0.0
        self.findings: list[Finding] = []

    def step(
        self, t_s: float, residual_N: float, T_C: Array, xi: Array, cells: Drive,
        n_periods: int = 1,
    ) -> None:  # fmt: skip
        """Process a tick; arguments as in `WireFilter.follow`."""
        kalman = self._filter
        if not kalman.follow(residual_N, T_C, xi, cells, n_periods):
            return
        force_N, noise_N2, rings = kalman.sample(xi, mean=self._broke)
        self._ringing = self._ringing + 1 if rings else 0
        if (
            self._ringing >= self.rules.confirm
            and not self._broke
            and self._cells.each["can_break"].any()
        ):
            self._learn_anew()
        blind = bool(np.isnan(force_N)) or t_s < self._blind_until_s
        kalman.predict(0.0 if blind else force_N, noise_N2)
        self._hold(cells, blind)
        if not blind:
            kalman.correct()
        if self.log_odds < CALM and t_s >= self._fold_at_s:
            self._fold_at_s = t_s + FOLD_S
            moved = kalman.fold()
            self._folded += moved
            if moved.any():
                self._hypotheses.ratios["log"] = -np.inf
        self._past[:-1] = self._past[1:]
        self._past[-1] = kalman.x + self._folded
        self._judge(t_s)

    def _hold(self, cells: Drive, blind: bool) -> None:
        """Update every hypothesis with the sample; begin new ones."""
        kalman = self._filter
        # during an alarm no hypothesis is replaced
        calm = self.log_odds < self.threshold and not self._broke
        self._on_for_s += kalman.passed_s * bool(cells.any())
        learned = self._on_for_s >= self.rules.learn_for_s
        self._waited_s += kalman.passed_s
        due = self._waited_s > self._spawn_s - 0.5 * kalman.sample_s
        if due:
            self._waited_s = 0.0
        spawn = calm and learned and due
        if spawn:
            self._place = (self._place + 1) % self._n_alive
        sample = Sample(
            kalman.estimate, kalman.nu, kalman.S, kalman.passed_s, kalman.bank.wires[0], cells
        )
        begin = self._place if spawn else -1
        self.log_odds = hold(self._cells, sample, self._hypotheses, blind, begin)

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
        self._cells.broken_N[:, best] = 0.0
        self._blind_until_s = t_s + rules.life_s

    def _agree(self, best: int, certain: bool) -> bool:
        """Return whether `confirm` consecutive samples agree on it."""
        self._agreed = self._agreed + 1 if certain and best == self._leader else int(certain)
        self._leader = best
        return self._agreed >= self.rules.confirm

    def _name(self, t_s: float, cells: tuple[int, ...], kind: str, chance: float) -> None:
        """Continue as an array without these cells, with no hypothesis left."""
        self.findings.append(Finding(t_s, cells, kind, self.log_odds, chance))
        which = list(cells)
        self.state[self.state == SUSPECT] = HEALTHY
        self.state[which] = FAILED
        self.suspicion[:] = 0.0
        self._filter.static_gains_N[which] = 0.0
        self._cells.each["alive"][which] = False
        self._hypotheses.ratios["log"] = -np.inf
        self._leader, self._agreed = -1, 0

    def _let_go(self) -> None:
        """Withdraw an alarm that no single failure explains: an error is larger than stated."""
        np.einsum("ii->i", self._filter.P)[:] += self._filter.sd**2
        self._hypotheses.ratios["log"] = -np.inf
        self._leader, self._agreed = -1, 0

    def _learn_anew(self) -> None:
        """After a break, estimate static gains and a transient again."""
        kalman, n = self._filter, len(self.state)
        kalman.x[:] = self._past[0] - self._folded
        kalman.P[:n] = kalman.P[:, :n] = 0.0
        kalman.P[range(n), range(n)] = self.rules.share_anew**2
        kalman.P[-1, -1] += kalman.static_gains_N.max() ** 2
        self._pulled = (
            (kalman.bank.comes > PULLS)
            & self._cells.each["can_break"]
            & (kalman.static_gains_N != 0.0)
        )
        self._hypotheses.ratios["log"] = -np.inf
        self._leader, self._agreed = -1, 0
        self._broke = True

    def _look_for_the_broken(self, t_s: float) -> None:
        """Compare each cell that pulled with the static gains estimated after the break."""
        n, sure = len(self.state), self.rules.sure
        chance, knock = chances(
            self._filter.x[:n],
            self._filter.P[:n, :n],
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
            self._cells.each["can_break"] = False
            self._blind_until_s = np.inf

    def _forget(self, cell: int) -> None:
        """Remove the effect of a cell's death from the estimated errors."""
        hypotheses = self._hypotheses
        ratios = hypotheses.ratios[ELECTRICAL, cell]
        place = ratios["log"].argmax()
        filtered = hypotheses.filtered[ELECTRICAL, cell, place]
        change = np.array(fitted(ratios["sums"][place], hypotheses.variances))
        self._filter.x -= change @ filtered
