"""What may be wrong with a healthy array of wires, and a Kalman filter that learns it.

With z_n(t) the lag of cell n's austenite, s_n its static gain, the residual between measured force
and open-loop twin is

    e = sum_n s_n (a_n z_n + h_n dz_n/dh + c_n dz_n/dc + r dz_n/dr) - d F' + b + w + noise

a healthy array's errors: of static gain a_n; of the power h_n that heats a wire and of the
convection c_n that cools it, all three relative; of the air's temperature r in K; the delay d of
the reading; the transducer's zero b, and what wanders w, the more the more moves. The derivatives
are those of the wire's own law: beside every wire run three that have a little more power, a little
more convection and warmer air (`hil.systems.array.sma.bank`). All errors are first-order
Gauss-Markov with the standard deviations and times of `WireErrors`, so that the filter whitens e.

Source: Anderson & Moore 1979, Optimal Filtering, ch. 3 and 5.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hil.systems.array.sma.bank import WireBank
from hil.systems.array.sma.cells import WireModel

Matrix = NDArray[np.float64]
Mask = NDArray[np.uint8]
RINGS, READINGS_MIN = 4.0, 5
WORTH = 0.5  # of a standard deviation: what is learned less of stays a derivative


@dataclass(frozen=True)
class WireErrors:
    """What a healthy array may do.

    Attributes
    ----------
    sample_s : float
        Between samples.
    share, heating, cooling : float
        Standard deviations, relative, of a cell's static gain, heating power and convection.
    room_K, delay_s, wander_N, zero_N : float
        Standard deviations: of the air's temperature, of the delay of the reading, of what
        wanders, of the zero.
    stir : float
        What wanders grows by this part of what every cell's force moves.
    same_for_s, wander_for_s : float
        How long all of these, and what wanders, stay about the same.
    noise_N : float
        Of a sample.
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
    zero_N: float = 0.002
    noise_N: float = 0.002


class WireFilter:
    """See the module. Every sample is predicted first, and then taken.

    Attributes
    ----------
    bank : WireBank
    static_gains_N : (N,) array
        As told; what is set to 0 gives nothing any longer.
    x, P : (3 N + 4,), (3 N + 4, 3 N + 4) arrays
        Errors in the order a, h, c, r, d, b, w, and their covariance.
    sd : (3 N + 4,) array
        Their standard deviations before anything is learned.
    phi, gain : (3 N + 4,) arrays
        How each error enters the sample predicted last, and what it learns of it.
    nu, S : float
        That sample's innovation (N), and its variance.
    """

    def __init__(self, errors: WireErrors, cells: WireModel, period_s: float) -> None:
        self.errors = errors
        self.bank = WireBank(cells)
        self.static_gains_N = cells.static_gains_N.copy()
        n = len(self.static_gains_N)
        self._period_s = period_s
        self._every = max(1, round(errors.sample_s / period_s))
        self.sample_s = self._every * period_s
        self.sd = np.concatenate([
            np.full(n, errors.share), np.full(n, errors.heating), np.full(n, errors.cooling),
            [errors.room_K, errors.delay_s, errors.zero_N, errors.wander_N],
        ])  # fmt: skip
        lasts_s = np.full(len(self.sd), errors.same_for_s)
        lasts_s[-1] = errors.wander_for_s
        self.keep = np.exp(-self.sample_s / lasts_s)
        self._Q = self.sd**2 * (1.0 - self.keep**2)
        self.x, self.P = np.zeros(len(self.sd)), np.diag(self.sd**2)
        self.phi, self.gain = np.zeros((2, len(self.sd)))
        self.nu, self.S = 0.0, 1.0
        self._before = np.zeros(n)
        self._readings = np.zeros(self._every)
        line = np.arange(self._every) - 0.5 * (self._every - 1)
        self._line = line / max(1.0, float(np.sqrt(line @ line)))
        self._tick = 0

    @property
    def n_samples(self) -> int:
        """So many have come."""
        return self._tick // self._every

    def follow(
        self, residual_N: float, T_C: Matrix, xi: Matrix, cells: Mask, n_periods: int
    ) -> bool:
        """One tick: the residual (NaN where nothing was read), the twin's wires, cells on.

        True where a sample is due.
        """
        self.bank.follow(n_periods * self._period_s, T_C, xi, cells)
        self._tick += 1
        self._readings[self._tick % self._every] = residual_N
        return self._tick % self._every == 0

    def sample(self, xi: Matrix, *, mean: bool) -> tuple[float, float, bool]:
        """The force to take in, the variance of its noise, and whether the readings ring.

        They do that leave a straight line by RINGS times their noise. Then, or where it is asked
        for, their mean is taken and the rest is noise; else the last one.
        """
        twin_N = self.bank.look(xi)
        readings = np.roll(self._readings, -1)
        n, still_N2 = len(readings), self.errors.noise_N**2
        last_N = float(readings[-1]) + twin_N
        if n < READINGS_MIN:
            return last_N, still_N2, False
        left = readings - readings.mean() - self._line * (self._line @ readings)
        N2 = float(left @ left) / (n - 2)
        rings = N2 > RINGS**2 * still_N2
        if rings or mean:
            return float(readings.mean()) + twin_N, still_N2 + N2, rings
        return last_N, still_N2, False

    def predict(self, force_N: float, noise_N2: float) -> None:
        """Let errors become older by a sample, and hold this force against them."""
        bank = self.bank
        self.nu, self.S = _predict(
            self.static_gains_N, bank.comes, bank.slopes, self._before, self.sample_s, force_N,
            noise_N2, self.errors.stir**2, self.keep, self._Q, self.x, self.P, self.phi, self.gain,
        )  # fmt: skip
        self._before[:] = bank.comes

    def correct(self) -> None:
        """Learn from the sample."""
        _correct(self.x, self.P, self.gain, self.nu, self.S)

    def fold(self) -> Matrix:
        """Make what has been learned of power, convection and air the wires' own law.

        How far x changed; nowhere while little has been learned.
        """
        n = len(self.static_gains_N)
        law = slice(n, 3 * n + 1)
        moved = np.zeros(len(self.x))
        if np.abs(self.x[law] / self.sd[law]).max() >= WORTH:
            moved[law] = self.x[law]
            self.x[law] = 0.0
            self.bank.believe(moved[n : 2 * n], moved[2 * n : 3 * n], float(moved[3 * n]))
        return moved


@njit(cache=True)
def _predict(  # type: ignore[no-untyped-def]
    gains_N, comes, slopes, before, h, force, noise_N2, stir2, keep, Q, x, P, phi, gain
):
    """The innovation and its variance."""
    n, m = len(gains_N), len(x)
    for i in range(m):
        x[i] *= keep[i]
        for j in range(m):
            P[i, j] *= keep[i] * keep[j]
        P[i, i] += Q[i]
    phi[3 * n : m] = 0.0
    nu = force
    for i in range(n):
        s = gains_N[i]
        moved = s * (comes[i] - before[i])
        phi[i] = s * comes[i]
        phi[n + i] = s * slopes[0, i]
        phi[2 * n + i] = s * slopes[1, i]
        phi[3 * n] += s * slopes[2, i]
        phi[3 * n + 1] -= moved / h
        P[m - 1, m - 1] += stir2 * moved**2
        nu -= s * comes[i]
    phi[m - 2] = phi[m - 1] = 1.0
    S = noise_N2
    for i in range(m):
        total = 0.0
        for j in range(m):
            if phi[j] != 0.0:
                total += P[i, j] * phi[j]
        gain[i] = total
        S += phi[i] * total
    for i in range(m):
        nu -= phi[i] * x[i]
    for i in range(m):
        gain[i] /= S
    return nu, S


@njit(cache=True)
def _correct(x, P, gain, nu, S):  # type: ignore[no-untyped-def]
    m = len(x)
    for i in range(m):
        x[i] += gain[i] * nu
        for j in range(m):
            P[i, j] -= gain[i] * gain[j] * S
