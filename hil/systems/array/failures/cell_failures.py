"""Sequential tests of which wire no longer pulls, from the force and every wire's resistance.

The force alone cannot tell a wire that has lost its force from one that has not transformed, and
under stress the twin errs in just that. Resistance says how far a wire has transformed. With the
twin's force F', austenite xi_n and resistance R'_n, and the static gains s_n, readings are

    F - F' = sum_n s_n (a_n xi_n + (1 + a_n) e_n) - d dF'/dt + w + noise
    R_n / R'_n - 1 = r_n + k_n ((1 + c_n) e_n + c_n xi_n) + noise

with the errors of static gain a_n, austenite e_n, resistance r_n and of its contrast
k_n = (R_A - R_M) / R_M by c_n, the delay d of the force and a disturbance w that grows while cells
move. A Kalman filter estimates them, linearised at its estimate; austenite and disturbance fade
with their time constants. A resistance counts at its own age. One that repeats the last reading
has its rounding error too, and counts again after `repeat_s` only: a cell that is held would else
prove an error of its resistance anew with every reading.

A failure is the same filter with other static gains, and more freedom for the austenite of every
wire under stress whose tension it changes: one that lost its load transforms at lower temperatures.

    weak      a_n falls by one half, give or take a quarter
    broken    every a_m takes that of the array without cell n, within `LEFT` of each change

For cells with a gain both begin every `spawn_s` and live for `life_s`. The likelihood of a
filter's readings over that of the healthy one starts at 1, and exceeds e^A with probability e^-A at
most while the array is healthy and its errors are as stated (Ville). Those of a commissioned twin
are not: in healthy runs the highest log odds of 10 s exceeded a level by 4.5 in the mean, not by
1. The exponential tail of these runs gives one alarm a day at A = 36, so that the alarm is at

    A = `EXCESS` log(hypotheses begun a day / false alarms a day)

A cell is named once its failures hold `sure` of the posterior, with equal priors, for `confirm_s`:
after a break the array rings, and readings that deviate from a straight line by `RINGS` times their
noise count as noisy as they are. Cells in a row lose their load together, whichever of them breaks:
they are named together. So are cells whose breaks take the same from the cells that pull now, such
as the only one that pulls and one that it pulls through. After a break the array is no longer the
configured one, and none is named; a cell that was named weak may still break.
A failure that hardly changes what any cell pulls with is not tested: nothing would show it. A cell
that does not pull may be one that others pull through, and is tested for a break.

Source: Willsky & Jones 1976 (likelihood ratios of jumps); Blom & Bar-Shalom 1988 (a filter for each
hypothesis); Ville 1939.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hil.mechanics.arrays import Array
from hil.systems.array.failures import cell_failures_kernel as kernel
from hil.systems.array.failures.cell_failures_kernel import AUSTENITE, GAIN, OHM
from hil.systems.array.failures.isolation import DAY_S, FAILED, HEALTHY, SUSPECT, Finding
from hil.systems.array.wires.filter import RINGS, WireErrors

WEAK, WEAK_WITHIN = -0.5, 0.25  # mean and standard deviation of what a weak cell loses
LEFT = 0.3  # of the change of every static gain by a break
LOOSE = 0.4  # standard deviation of the austenite of a wire that has lost its load
SLACK = 0.1  # the same of a wire that keeps a part
JOLT = 0.15  # of the force that a failure takes, in its first second
PULLS = 0.1  # austenite that a failure takes from a cell, if it is tested
LOST = -10.0  # log odds at which a hypothesis ends
EXCESS = 2.25  # of the log odds of healthy runs (six cells, 0.28 h) over those of stated errors
ALIKE = 0.2  # readings that differ by less, in units of the resolution, are one that repeats
OLDEST_S = 0.5  # age of a resistance that still counts


@dataclass(frozen=True)
class CellRules:
    """Errors of a healthy array beside `WireErrors`, and conditions for naming a cell.

    Attributes
    ----------
    share : standard deviation of a static gain, relative
    austenite, austenite_s : error of the twin's austenite at first, and how long an error lasts
    austenite_per_sqrt_s, stir : what the error gains at rest, and over the change of austenite
    resistance, contrast : of a wire's resistance, and of the change by austenite, relative
    resolution : of a reading of resistance, relative
    repeat_s : time after which a reading that repeats the last one counts again
    learn_for_s : time before hypotheses begin
    spawn_s, life_s : time between new hypotheses, and their lifetime
    sure, confirm_s : posterior at which a cell is named, and for how long it must hold
    doubt_for_s : time after which an alarm that no single failure explains is withdrawn
    """

    sample_s: float = 0.1
    share: float = 0.06
    austenite: float = 0.02
    austenite_s: float = 20.0
    austenite_per_sqrt_s: float = 0.012
    stir: float = 0.3
    resistance: float = 0.03
    contrast: float = 0.2
    resolution: float = 0.0025
    repeat_s: float = 2.0
    learn_for_s: float = 5.0
    spawn_s: float = 0.1
    life_s: float = 4.5
    sure: float = 0.99
    confirm_s: float = 0.5
    doubt_for_s: float = 5.0
    false_alarms_per_day: float = 1.0


@dataclass(frozen=True)
class SensedWires:
    """The nominal wires: static gains (N,), those with a broken cell (row), and R_A / R_M - 1.

    `stressed` says which wires' branches move with their load.
    """

    static_gains_N: Array
    broken_N: ArrayLike
    contrast: Array
    stressed: ArrayLike = True


class CellFailures:
    """The failure tests.

    Attributes
    ----------
    state : (N,) uint8 array, 0 healthy, 1 failed, 2 suspect
    log_odds : of the most likely failure that is not yet named; -inf if none is tested
    suspicion : (N,) array, posterior of every suspect during an alarm; else 0
    findings : list of Finding
    """

    def __init__(
        self, rules: CellRules, errors: WireErrors, wires: SensedWires, period_s: float
    ) -> None:
        self._rules, self._errors, self._period_s = rules, errors, period_s
        self._gains_N, self._contrast = wires.static_gains_N, wires.contrast
        self._stressed = np.asarray(wires.stressed, dtype=float)
        n = len(self._gains_N)
        self._failures, self._shift, self._within = _failures_of(wires)
        loses = np.clip(-self._shift, 0.0, 1.0)  # a share of each cell's pull
        self._loses = loses / loses.max(axis=1, keepdims=True)
        self._every = max(1, round(rules.sample_s / period_s))
        self._sample_s = self._every * period_s
        self._spawn = max(1, round(rules.spawn_s / self._sample_s))
        self._places = max(1, round(rules.life_s / (self._spawn * self._sample_s)))
        self._confirm = max(1, round(rules.confirm_s / self._sample_s))
        blocks = [rules.share, rules.austenite, rules.resistance, rules.contrast]
        self._sd = np.append(np.repeat(blocks, n), [errors.delay_s, errors.wander_N])
        m, count = len(self._sd), 1 + self._places * len(self._failures)
        rate_per_s = np.zeros(m)
        rate_per_s[AUSTENITE * n : OHM * n] = 1.0 / rules.austenite_s
        rate_per_s[-1] = 1.0 / errors.wander_for_s
        self._Q = 2.0 * rate_per_s * self._sd**2
        self._Q[AUSTENITE * n : OHM * n] = rules.austenite_per_sqrt_s**2
        self._Q[GAIN * n : AUSTENITE * n] = rules.share**2 / errors.same_for_s
        self._bank = kernel.Bank(
            np.full(count, -np.inf), np.zeros((count, m)), np.zeros((count, m, m)),
            np.tile(self._Q, (count, 1)), rate_per_s, np.zeros(m), np.zeros(m),
        )  # fmt: skip
        self._bank.log[0], self._bank.P[0] = 0.0, np.diag(self._sd**2)
        kept = round(OLDEST_S / period_s) + 1
        self._xi, self._ohm = np.zeros((kept, n)), np.ones((kept, n))
        self._counted_Ohm, self._counted_at = np.full(n, np.inf), np.zeros(n, dtype=np.int64)
        self._residuals_N, self._forces_N = np.zeros(self._every), np.zeros(self._every)
        self._sampled_xi = np.zeros((self._every, n))
        self._before: tuple[Array, float] | None = None
        self._moved_N2 = 0.0  # in the last sample: the reading of it comes in part in the next
        begun_per_day = len(self._failures) * DAY_S / rules.spawn_s
        self.threshold = EXCESS * float(np.log(begun_per_day / rules.false_alarms_per_day))
        self._tick = self._place = self._agreed = self._alarmed = 0
        self._at = self._sampled_at = -1  # periods: of this tick, and of the end of a sample
        self._leader: tuple[int, ...] = ()
        self._broke = False
        self._learns_until_s = rules.learn_for_s
        self.state = np.zeros(n, dtype=np.uint8)
        self.suspicion = np.zeros(n)
        self.log_odds = 0.0
        self.findings: list[Finding] = []

    def step(
        self, t_s: float, force_N: tuple[float, float], twin: tuple[Array, Array],
        read: Array, n_periods: int = 1,
    ) -> None:  # fmt: skip
        """Process a tick.

        Parameters
        ----------
        force_N : force less the twin's (NaN without a reading), and the twin's
        twin : austenite and resistance of every wire, (N,) arrays
        read : (2, N) array, resistances and their ages; NaN without a reading
        n_periods : since the last tick; in those that were missed the twin counts as it is now
        """
        if self._broke:
            self.log_odds = -np.inf
            return
        before, self._at = self._at, self._at + (n_periods if self._tick else 1)
        place, self._tick = self._tick % self._every, self._tick + 1
        kept = len(self._xi)
        since = np.arange(max(before, self._at - kept) + 1, self._at + 1) % kept
        self._xi[since], self._ohm[since] = twin
        self._take_resistances(self._at, *read)
        self._residuals_N[place], self._forces_N[place] = force_N
        self._sampled_xi[-1 - place] = twin[0]
        if place == self._every - 1:
            self._take_force()
            self._judge(t_s)

    def _take_resistances(self, at: int, ohms: Array, ages_s: Array) -> None:
        if np.isnan(ohms).all():
            return
        ticks = np.nan_to_num(ages_s / self._period_s, nan=np.inf)
        counts = ~np.isnan(ohms) & (ticks < min(at + 1, len(self._xi)) - 0.5)
        near = np.abs(ohms / self._counted_Ohm - 1.0) < ALIKE * self._rules.resolution
        counts &= ~near | (at - self._counted_at > self._rules.repeat_s / self._period_s)
        self._counted_Ohm[counts], self._counted_at[counts] = ohms[counts], at
        was = (at - np.where(counts, np.rint(ticks), 0.0).astype(np.int64)) % len(self._xi)
        cells = np.arange(len(ohms))
        ratio = np.where(counts, ohms / self._ohm[was, cells], np.nan)
        xi = self._xi[was, cells]
        noise2 = self._rules.resolution**2
        kernel.take_resistances(self._bank, xi, self._contrast, ratio, noise2)

    def _take_force(self) -> None:
        """Correct by the mean of a sample's readings; between two samples errors wander."""
        h_s = (self._at - self._sampled_at) * self._period_s
        self._sampled_at = self._at
        xi = self._sampled_xi.mean(axis=0)
        twin_N = float(self._forces_N.mean())
        xi_before, before_N = self._before or (xi, twin_N)
        self._before = xi, twin_N
        stirred = (self._rules.stir * (xi - xi_before)) ** 2
        moved_N = self._errors.stir * self._gains_N * (xi - xi_before)
        moved_N2, late_N2 = float(moved_N @ moved_N), self._moved_N2
        self._moved_N2 = moved_N2
        kernel.predict(self._bank, h_s, stirred, moved_N2 + late_N2)
        at = np.flatnonzero(~np.isnan(self._residuals_N))
        if not len(at):
            return
        e, line = self._residuals_N[at], at - at.mean()
        line /= max(1.0, float(np.sqrt(line @ line)))
        off = e - e.mean() - line * (line @ e)
        rings_N2, noise_N2 = float(off @ off) / max(1, len(e) - 2), self._errors.noise_N**2
        if rings_N2 <= RINGS**2 * noise_N2:
            rings_N2 = noise_N2 / len(e)
        moves_N_per_s = (twin_N - before_N) / h_s
        read = float(e.mean()), rings_N2 + (0.5 * self._errors.zero_N) ** 2 / len(e)
        kernel.take_force(self._bank, self._gains_N, xi, moves_N_per_s, read)

    def _judge(self, t_s: float) -> None:
        bank, rules = self._bank, self._rules
        log = bank.log[1:].reshape(self._places, -1)
        self.log_odds = float(log.max())
        self.state[self.state == SUSPECT] = HEALTHY
        self.suspicion[:] = 0.0
        if self.log_odds < self.threshold:
            self._agreed = self._alarmed = 0
            log[log < LOST] = -np.inf
            samples = self._tick // self._every
            if t_s >= self._learns_until_s and samples % self._spawn == 0:
                self._begin()
            return
        self._alarmed += 1
        chance = np.exp(log - self.log_odds).sum(axis=0)
        chance /= chance.sum()
        for (cells, _), one in zip(self._failures, chance, strict=True):
            self.suspicion[list(cells)] += one
        suspects = (self.suspicion > 1.0 - rules.sure) & (self.state == HEALTHY)
        self.suspicion[~suspects] = 0.0
        self.state[suspects] = SUSPECT
        best = self._alike(int(chance.argmax()))
        among = [set(cells) <= set(best) for cells, _ in self._failures]
        probability = float(chance[among].sum())
        certain = probability >= rules.sure
        self._agreed = self._agreed + 1 if certain and best == self._leader else int(certain)
        self._leader = best
        if self._agreed >= self._confirm:
            self._name(t_s, best, probability, log)
        elif self._alarmed * self._sample_s > rules.doubt_for_s:
            np.einsum("ii->i", bank.P[0])[:] += self._sd**2
            self._restart(t_s)

    def _alike(self, failure: int) -> tuple[int, ...]:
        """Cells of a failure, and of all that take the same from those that pull now."""
        assert self._before is not None
        takes_N = self._shift * self._before[0] * self._gains_N
        apart_N = np.abs(takes_N - takes_N[failure]).max(axis=1)
        most_N = LEFT * np.abs(takes_N[failure]).max()
        cells, kind = self._failures[failure]
        return tuple(sorted({
            c for (others, other), off_N in zip(self._failures, apart_N, strict=True)
            if others == cells or (kind == other == "mechanical" and off_N <= most_N)
            for c in others
        }))  # fmt: skip

    def _begin(self) -> None:
        """Begin a hypothesis of every failure that changes what a cell pulls with."""
        bank, n = self._bank, len(self._gains_N)
        count = len(self._failures)
        x, P = bank.x[0], bank.P[0]
        assert self._before is not None
        xi = self._before[0] + x[AUSTENITE * n : OHM * n]
        self._place = (self._place + 1) % self._places
        of = slice(1 + self._place * count, 1 + (self._place + 1) * count)
        bank.x[of], bank.P[of], bank.Q[of] = x, P, self._Q
        gains = 1.0 + x[GAIN * n : AUSTENITE * n]
        bank.x[of, GAIN * n : AUSTENITE * n] = gains * (1.0 + self._shift) - 1.0
        diagonal = np.einsum("hii->hi", bank.P[of])
        diagonal[:, GAIN * n : AUSTENITE * n] += self._within
        slack = np.array([[SLACK if kind == "weak" else LOOSE] for _, kind in self._failures])
        loose2 = self._stressed * (slack * np.minimum(0.0, self._shift)) ** 2
        diagonal[:, AUSTENITE * n : OHM * n] += 0.01 * loose2
        bank.Q[of, AUSTENITE * n : OHM * n] += loose2
        diagonal[:, -1] += (JOLT * (np.abs(self._shift * xi) @ self._gains_N)) ** 2
        known = [
            kind == "weak" and all(self.state[c] == FAILED for c in cells)
            for cells, kind in self._failures
        ]
        taken = (xi * self._loses).max(axis=1)
        bank.log[of] = np.where((taken > PULLS) & ~np.array(known), 0.0, -np.inf)

    def _name(
        self, t_s: float, cells: tuple[int, ...], chance: float, log: NDArray[np.float64]
    ) -> None:
        """Announce it; the array goes on as one in which these cells have failed."""
        mine = np.array([set(one) <= set(cells) for one, _ in self._failures])
        place, failure = np.unravel_index(np.where(mine, log, -np.inf).argmax(), log.shape)
        kind = self._failures[failure][1]
        self.findings.append(Finding(t_s, cells, kind, self.log_odds, chance))
        self.state[self.state == SUSPECT] = HEALTHY
        self.state[list(cells)] = FAILED
        self.suspicion[:] = 0.0
        adopted = 1 + int(place) * log.shape[1] + int(failure)
        self._bank.x[0], self._bank.P[0] = self._bank.x[adopted], self._bank.P[adopted]
        self._broke = kind == "mechanical"
        self._restart(t_s)

    def _restart(self, t_s: float) -> None:
        self._bank.log[1:] = -np.inf
        self._bank.log[0] = 0.0
        self._agreed = self._alarmed = 0
        self._learns_until_s = t_s + self._rules.life_s


def _failures_of(
    wires: SensedWires,
) -> tuple[list[tuple[tuple[int, ...], str]], Array, Array]:
    """Cells and kind of every failure; changes of all static gains, and the variances of these."""
    gains_N, broken_N = wires.static_gains_N, np.asarray(wires.broken_N, dtype=float)
    n = len(gains_N)
    pulls = np.abs(gains_N) > 1e-9 * np.abs(gains_N).sum()
    safe_N = np.where(pulls, gains_N, 1.0)
    failures: list[tuple[tuple[int, ...], str]] = []
    shifts, within = [], []
    for c in np.flatnonzero(pulls):
        failures.append(((int(c),), "weak"))
        shifts.append(WEAK * np.eye(n)[c])
        within.append(WEAK_WITHIN**2 * np.eye(n)[c])
    left = set(np.flatnonzero(pulls & np.isfinite(broken_N).all(axis=1)).tolist())
    while left:
        first = min(left)
        alike = np.abs(broken_N - broken_N[first]).max(axis=1) <= 1e-6 * np.abs(gains_N).max()
        cells = tuple(c for c in sorted(left) if alike[c])
        left -= set(cells)
        shift = np.where(pulls, broken_N[first] / safe_N - 1.0, 0.0)
        failures.append((cells, "mechanical"))
        shifts.append(shift)
        within.append(np.where(shift > -1.0 + 1e-9, (LEFT * shift) ** 2, 0.0))
    return failures, np.array(shifts), np.array(within)
