"""Error model of a healthy array of wires, and a Kalman filter that estimates the errors.

With z_n(t) the lag of cell n's austenite, s_n its static gain, the residual between measured force
and open-loop twin is

    e = sum_n s_n (a_n z_n + h_n dz_n/dh + c_n dz_n/dc + r dz_n/dr) - d F' + b + w + noise

with the relative errors of static gain a_n, heating power h_n and convection c_n, the error r of
the air temperature in K, the delay d of the reading, the transducer's zero b, and a disturbance w
that grows while cells move. The derivatives come from copies of every wire with more power, more
convection and warmer air (`hil.systems.array.wires.bank`). All errors are first-order Gauss-Markov
processes with the standard deviations and times of `WireErrors`, so that the filter whitens e.

Source: Anderson & Moore 1979, Optimal Filtering, ch. 3 and 5.
"""

from dataclasses import dataclass

import numpy as np

from hil.compiled import njit
from hil.mechanics.arrays import Array
from hil.mechanics.system import Drive
from hil.systems.array.wires.bank import WireBank
from hil.systems.array.wires.cells import WireModel

RINGS, READINGS_MIN = 4.0, 5
WORTH = 0.5  # in standard deviations: a smaller change does not enter the law


@dataclass(frozen=True)
class WireErrors:
    """Errors of a healthy array.

    Attributes
    ----------
    sample_s : time between samples; after missed periods a sample may be longer
    share, heating, cooling : float
        Standard deviations, relative, of a cell's static gain, heating power and convection.
    room_K, delay_s, wander_N, zero_N : standard deviations of the air temperature, the delay of the
        reading, the disturbance and the zero
    stir : growth of the disturbance over the change of every cell's force
    same_for_s, wander_for_s : time constants of the errors, and of the disturbance
    noise_N : standard deviation of a sample
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


Estimate = tuple[Array, Array, Array]
"""What kernels take of a filter: errors with the rows x, keep, Q, phi, gain; P; cells with the rows
static gain, `comes` of the last sample, `comes` now, and the three of `slopes`."""


class WireFilter:
    """The filter. Every sample is predicted, then used for a correction.

    Attributes
    ----------
    static_gains_N : (N,) array, as configured; 0 for a failed cell
    x, P : (3 N + 4,), (3 N + 4, 3 N + 4) arrays
        Errors in the order a, h, c, r, d, b, w, and their covariance.
    sd : (3 N + 4,) array, their initial standard deviations
    phi : (3 N + 4,) array, derivative of the last predicted sample with respect to each error
    estimate : all of these for the kernels; also the share `keep` and the variance `Q` of each
        error that a sample period leaves and adds, and the `gain` of its last correction
    nu, S : innovation of that sample (N), and its variance
    """

    def __init__(
        self, errors: WireErrors, cells: WireModel, period_s: float, *, averages: bool
    ) -> None:
        self.errors, self._averages = errors, averages
        self.bank = WireBank(cells)
        n = len(cells.static_gains_N)
        cells_now = np.array([cells.static_gains_N, np.zeros(n), *self.bank.forces])
        self.static_gains_N, self.bank.forces = cells_now[0], cells_now[2:]
        self._period_s = period_s
        self._every = max(1, round(errors.sample_s / period_s))
        self.sample_s = self._every * period_s
        self.sd = np.concatenate([
            np.full(n, errors.share), np.full(n, errors.heating), np.full(n, errors.cooling),
            [errors.room_K, errors.delay_s, errors.zero_N, errors.wander_N],
        ])  # fmt: skip
        self._lasts_s = np.full(len(self.sd), errors.same_for_s)
        self._lasts_s[-1] = errors.wander_for_s
        errors_now = np.zeros((5, len(self.sd)))
        self.x, _, _, self.phi, _ = errors_now
        self.P = np.diag(self.sd**2)
        self.estimate: Estimate = errors_now, self.P, cells_now
        self.nu, self.S = 0.0, 1.0
        self._readings = np.full(self._every, np.nan)
        self._n_periods = self._n_kept = 0
        self._is_due = False
        self._keep(self._every)

    @property
    def passed_s(self) -> float:
        """Length of the last sample."""
        return self._n_periods * self._period_s

    def _keep(self, n_periods: int) -> None:
        """Set what a sample of so many periods leaves of each error, and the variance it adds."""
        _, keep, Q, _, _ = self.estimate[0]
        keep[:] = np.exp(-n_periods * self._period_s / self._lasts_s)
        Q[:] = self.sd**2 * (1.0 - keep**2)
        self._n_kept = n_periods

    def follow(
        self, residual_N: float, T_C: Array, xi: Array, cells: Drive, n_periods: int
    ) -> bool:
        """Process a tick: residual (NaN without a reading), the twin's wires, cells on.

        Returns whether a sample is due; one that is no mean waits for a reading.
        """
        self.bank.follow(n_periods * self._period_s, T_C, xi, cells)
        if self._is_due:  # the first tick of a sample
            self._n_periods = 0
            self._readings.fill(np.nan)
        self._n_periods += max(1, n_periods)
        self._readings[min(self._n_periods, self._every) % self._every] = residual_N
        if self._averages and not np.isnan(residual_N):
            self.bank.add(xi)
        has_force = self._averages or not np.isnan(residual_N)
        self._is_due = has_force and self._n_periods >= self._every
        return self._is_due

    def sample(self, xi: Array, *, mean: bool) -> tuple[float, float, bool]:
        """Return force, variance of its noise, and whether the readings oscillate.

        They do if they deviate from a straight line by RINGS times their noise. Then, or if `mean`
        is set, the force is their mean and the deviations count as noise; else it is the last one.
        """
        twin_N = self.bank.look(xi)
        in_order = np.roll(self._readings, -1)
        period = np.flatnonzero(~np.isnan(in_order))
        readings, still_N2 = in_order[period], self.errors.noise_N**2
        last_N, n = float(in_order[-1]) + twin_N, len(readings)
        if n < READINGS_MIN:
            return last_N, still_N2, False
        line = period - period.mean()
        line /= np.sqrt(line @ line)
        left = readings - readings.mean() - line * (line @ readings)
        N2 = float(left @ left) / (n - 2)
        rings = N2 > RINGS**2 * still_N2
        if rings or mean:
            return float(readings.mean()) + twin_N, still_N2 + N2, rings
        return last_N, still_N2, False

    def mean_sample(self) -> tuple[float, float, float]:
        """Return means of residual and twin's wires since the last sample, and noise variance.

        The model's forces are means over the same ticks, so every reading counts with its own age.
        Without a reading the residual is NaN.
        """
        readings = self._readings[~np.isnan(self._readings)]
        n = len(readings)
        if n == 0:
            return float("nan"), 0.0, 0.0
        return float(readings.mean()), self.bank.look_at_mean(), self.errors.noise_N**2 / n

    def predict(self, force_N: float, noise_N2: float) -> None:
        """Predict the errors at this sample, and its innovation."""
        if self._n_periods != self._n_kept:
            self._keep(self._n_periods)
        self.nu, self.S = _predict(
            self.estimate, self.passed_s, self.errors.stir**2, force_N, noise_N2
        )

    def widen_disturbance(self, N2: float) -> None:
        """Add to the variance of the disturbance after a prediction, before its correction."""
        gain = self.estimate[0][4]
        self.P[-1, -1] += N2
        gain *= self.S
        gain[-1] += N2
        self.S += N2
        gain /= self.S

    def correct(self) -> None:
        """Correct the errors by the sample."""
        _correct(self.estimate, self.nu, self.S)

    def fold(self) -> Array:
        """Move the estimated errors of power, convection and air into the wires' law.

        Returns the change of x, which is 0 while all estimates are small (WORTH).
        """
        n = len(self.static_gains_N)
        law = slice(n, 3 * n + 1)
        moved = np.zeros(len(self.x))
        if np.abs(self.x[law] / self.sd[law]).max() >= WORTH:
            moved[law] = self.x[law]
            self.x[law] = 0.0
            heating, cooling, room_K = moved[n : 2 * n], moved[2 * n : 3 * n], moved[3 * n]
            self.bank.believe(heating, cooling, float(room_K))
            slopes = self.bank.slopes  # like the forces `before`, of the last sample
            before = self.estimate[2][1]
            before += heating * slopes[0] + cooling * slopes[1] + room_K * slopes[2]
        return moved


class FilteredWires:
    """Wires whose errors a filter estimates from the force."""

    def __init__(
        self, errors: WireErrors, cells: WireModel, period_s: float, *, averages: bool = False
    ) -> None:
        self._filter = WireFilter(errors, cells, period_s, averages=averages)

    def set_air(self, T_C: float, *, settled: bool) -> None:
        """Set the measured air temperature; settled wires take it too."""
        self._filter.bank.set_air(T_C, settled=settled)


@njit(cache=True)
def _predict(
    estimate: Estimate, h_s: float, stir2: float, force_N: float, noise_N2: float
) -> tuple[float, float]:
    """Return the innovation and its variance."""
    errors, P, cells = estimate
    x, keep, Q, phi, gain = errors[0], errors[1], errors[2], errors[3], errors[4]
    gains_N, before, comes, slopes = cells[0], cells[1], cells[2], cells[3:]
    n, m = len(gains_N), len(x)
    for i in range(m):
        x[i] *= keep[i]
        for j in range(m):
            P[i, j] *= keep[i] * keep[j]
        P[i, i] += Q[i]
    phi[3 * n : m] = 0.0
    nu = force_N
    for i in range(n):
        s = gains_N[i]
        moved = s * (comes[i] - before[i])
        phi[i] = s * comes[i]
        phi[n + i] = s * slopes[0, i]
        phi[2 * n + i] = s * slopes[1, i]
        phi[3 * n] += s * slopes[2, i]
        phi[3 * n + 1] -= moved / h_s
        P[m - 1, m - 1] += stir2 * moved**2
        nu -= s * comes[i]
        before[i] = comes[i]
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
def _correct(estimate: Estimate, nu: float, S: float) -> None:
    errors, P, _ = estimate
    x, gain = errors[0], errors[4]
    m = len(x)
    for i in range(m):
        x[i] += gain[i] * nu
        for j in range(m):
            P[i, j] -= gain[i] * gain[j] * S
