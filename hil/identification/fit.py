"""Bounded least squares: the parameters, their covariance, and a bootstrap.

    min over theta, z of  sum_r |w (y_r - readings_r(theta) - z_r)|^2 / s^2

with w the filter that whitens the noise. The covariance is the inverse Fisher information,
(J^T J)^-1 s^2 (Kay, Estimation Theory, ch. 3), or its form for noise that grows with the force
(White 1980, Econometrica 48). A lightly damped array rings for seconds. A wrong stiffness is then
soon out of phase, and the sum has many minima. The fit therefore starts with the first
WINDOW_PERIODS periods of the fastest mode after the first switching and extends this window by the
factor GROWTH each time.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import least_squares

from hil.errors import ConfigError
from hil.identification import parameters
from hil.identification.grey_box import GreyBox, with_zeros
from hil.identification.noise import Noise
from hil.mechanics.arrays import Array
from hil.systems.array.build import build_model

BOUND_FACTOR = 5.0  # a parameter stays between a fifth and five times its start value
WINDOW_PERIODS = 10.0
GROWTH = 4.0
STEPS_OF_A_FIT = 100
STEPS_MAX, STEPS_MAX_OF_A_PART = 40, 8  # of the whole run, and of a window
UNSETTLED = (
    "the fit had not settled when it ended, and its values would move on: give a start nearer to "
    "them, or free fewer"
)
AT_ONCE, READINGS_AT_ONCE = 20, 2_000_000  # refits of the bootstrap, and all that they read
SHIFT = 1e-3  # of a residual's square: what a fit leaves moves no value by 0.05 of its uncertainty
PRIOR = 0.1  # standard deviation of the logarithm while only a part of the run is fitted
TRIES = (0.0, 0.03, -0.03)  # shifts of all start stiffnesses, in the logarithm


@dataclass(frozen=True)
class Fit:
    """Result of the least-squares fit.

    Attributes
    ----------
    theta : (P,) array, logarithms of the free parameters
    zero_N : (R,) array, the channel's zero in every run
    residual_N : list of (k,) arrays
        Readings less model and zero of every run.
    white : (n,) array, all residuals after the whitening filter [N]
    J : (n, P + R) array, sensitivities of the whitened readings to theta and the zeros [N]
    at_bound : tuple of str, parameters that ended at a bound
    scale : (n,) array
        Standard deviation of the noise of every entry of `white` over that at rest.
    settled : whether the fit ended before STEPS_MAX
    """

    theta: Array
    zero_N: Array
    residual_N: list[Array]
    white: Array
    J: Array
    at_bound: tuple[str, ...]
    scale: Array
    settled: bool = True

    @property
    def degrees_of_freedom(self) -> int:
        return len(self.white) - int(self.J.shape[1])

    @property
    def rms_N(self) -> float:
        """Standard deviation of the innovations, from the residual."""
        return float(np.sqrt(self.white @ self.white / self.degrees_of_freedom))

    @property
    def covariance(self) -> Array:
        """(P, P) covariance of theta, J^+ diag(s_k^2) J^+T, with s_k proportional to `scale`."""
        to_theta = np.linalg.pinv(self.J)[: len(self.theta)]
        s_N = self.rms_N * self.scale / np.sqrt(np.mean(self.scale**2))
        return np.asarray((to_theta * s_N**2) @ to_theta.T)


def fit(box: GreyBox, noise: Noise, done: Callable[[int], None] = lambda n_more: None) -> Fit:
    """Fit the free parameters to all runs.

    Each window is larger than the one before and starts from its result; the last one is the whole
    run. If the first window leaves more than twice the noise, it is repeated from other start
    values. `done` is called with the number of further steps, about STEPS_OF_A_FIT in total.
    """
    scale = noise.rms_N if np.isfinite(noise.rms_N) else 1e-3
    n = len(box.free)
    first, *later_windows = _windows(box)
    share = STEPS_OF_A_FIT // (1 + len(later_windows))
    stiff = np.array([".k_" in key or "mass_kg" in key for key in box.free], dtype=float)
    best, least, is_settled = np.zeros(0), np.inf, False
    for shift in TRIES if later_windows and stiff.any() else TRIES[:1]:
        start = box.start + shift * stiff
        zeros = [_first_zero_N(box, start, i) for i in range(len(box.runs))]
        x, cost, settled = _solve(box, noise, np.concatenate((start, zeros)), first, scale, start)
        if cost < least:
            best, least, is_settled = x, cost, settled
        if least < 4.0:
            break
    done(share)
    x, start = best, best[:n]
    for until in later_windows:
        x, _, is_settled = _solve(box, noise, x, until, scale, start)
        done(share)
    theta, zero_N = x[:n], x[n:]
    residual_N = [
        run.measured - y - z
        for run, y, z in zip(box.runs, box.readings(theta), zero_N, strict=True)
    ]
    J = _white(noise, with_zeros(box.sensitivities(theta)))
    (low, _), (high, _) = _bounds(box)
    at_edge = (theta <= low + 1e-3) | (theta >= high - 1e-3)
    at_bound = tuple(key for key, at in zip(box.free, at_edge, strict=True) if at)
    white = _white(noise, residual_N)
    return Fit(theta, zero_N, residual_N, white, J, at_bound, np.ones(len(white)), is_settled)


def _first_zero_N(box: GreyBox, theta: Array, i: int) -> float:
    run = box.runs[i]
    n = max(1, min(50, int(np.searchsorted(run.rows, run.first_on, side="right"))))
    until = max(1, int(run.rows[n - 1]))  # a later period than the n-th where readings are missing
    model_N = box.readings(theta, [until] * len(box.runs))[i]
    return float(np.mean(run.measured[:n] - model_N[:n]))


def _windows(box: GreyBox) -> list[list[int] | None]:
    """Number of periods of every run in each stage; None for all."""
    if not box.free:
        return [None]
    poles = np.linalg.eigvals(build_model(box.table_at(box.start)).A)
    fastest = np.abs(poles.imag).max(initial=0.0) / (2.0 * np.pi)
    if fastest <= 0.0:
        return [None]
    stages: list[list[int] | None] = []
    window_s = WINDOW_PERIODS / fastest
    while window_s < max(len(run.cells) * run.period_s for run in box.runs) / GROWTH:
        stages.append([run.first_on + round(window_s / run.period_s) for run in box.runs])
        window_s *= GROWTH
    return [*stages, None]


def _solve(
    box: GreyBox,
    noise: Noise,
    x0: Array,
    until: Sequence[int] | None,
    scale: float,
    start: Array,
) -> tuple[Array, float, bool]:
    """Theta and zeros, the mean square residual over that of the noise, and whether it settled.

    While only a part of a run is fitted, a prior draws the parameters `towards` the start.
    """
    towards = None if until is None else start
    n, n_runs = len(box.free), len(box.runs)

    def residuals(x: Array) -> Array:
        try:
            readings = box.readings(x[:n], until)
        except ConfigError:  # no model has these parameters: the step is too long
            return np.full_like(residuals_at_start, np.nan)
        return of(x, readings)

    def of(x: Array, readings: list[Array]) -> Array:
        parts = [
            (run.measured[: len(y)] - y - z)
            for run, y, z in zip(box.runs, readings, x[n:], strict=True)
        ]
        prior = np.zeros(0) if towards is None else (x[:n] - towards) / PRIOR
        return np.concatenate([_white(noise, parts) / scale, prior])

    def jacobian(x: Array) -> Array:
        J = -_white(noise, with_zeros(box.sensitivities(x[:n], until, central=False))) / scale
        if towards is None:
            return J
        return np.vstack((J, np.hstack((np.eye(n) / PRIOR, np.zeros((n, n_runs))))))

    low, high = (np.append(bound, np.full(n_runs, s * np.inf)) for bound, s in _bounds(box))
    start_x = np.clip(x0, low + 1e-9, high - 1e-9)
    residuals_at_start = of(start_x, box.readings(start_x[:n], until))
    solution = least_squares(
        residuals,
        start_x,
        jacobian,
        bounds=(low, high),
        x_scale="jac",
        ftol=min(1e-6, SHIFT / len(residuals_at_start)) if towards is None else 1e-3,
        xtol=1e-9 if towards is None else 1e-6,
        gtol=None,
        max_nfev=STEPS_MAX if towards is None else STEPS_MAX_OF_A_PART,
    )
    mean_square = 2.0 * float(solution.cost) / len(solution.fun)
    return np.asarray(solution.x), mean_square, bool(solution.status > 0)


def _bounds(box: GreyBox) -> tuple[tuple[Array, int], tuple[Array, int]]:
    """Least theta with -1, greatest with 1."""
    reach = np.log(BOUND_FACTOR)
    least, most = parameters.log_limits(box.free)
    return (np.maximum(box.start - reach, least), -1), (np.minimum(box.start + reach, most), 1)


def _white(noise: Noise, parts: Sequence[Array]) -> Array:
    return np.concatenate([noise.whitened(part) for part in parts])


class Resampling(NamedTuple):
    """How often noise is drawn, with which seed, and how many samples stay together in a draw."""

    n_times: int
    seed: int
    block: int


def bootstrap(
    box: GreyBox,
    noise: Noise,
    solution: Fit,
    resampling: Resampling,
    done: Callable[[int], None],
) -> Array:
    """(n_times, P) theta of refits to readings with resampled noise.

    Blocks of `block` whitened residuals are drawn with replacement, which keeps the remaining
    correlation (Kunsch 1989, moving blocks). A refit takes two steps with the Jacobian of the fit;
    the second step uses the model's readings at the first, which is shorter where it has no model.
    """
    n_times, seed, block = resampling
    rng = np.random.default_rng(seed)
    n, n_white = len(solution.theta), len(solution.white)
    to_x = np.linalg.pinv(solution.J)
    centre = _white(noise, [y + z for y, z in zip(box.readings(solution.theta), solution.zero_N,
                                                  strict=True)])  # fmt: skip
    block = min(max(block, 1), n_white // 2)
    per = -(-n_white // block)
    # Corrects the residual's variance for the degrees of freedom.
    wide = np.sqrt(n_white / solution.degrees_of_freedom)
    starts = rng.integers(0, n_white - block + 1, (n_times, per))
    drawn = np.empty((n_times, n))
    at_once = min(AT_ONCE, -(-READINGS_AT_ONCE // n_white))
    for some in np.array_split(np.arange(n_times), -(-n_times // at_once)):
        at = starts[some][:, :, None] + np.arange(block)
        noises_N = wide * solution.white[at.reshape(len(some), -1)[:, :n_white]]
        x = noises_N @ to_x.T
        try:
            refits = box.all_readings(solution.theta + x[:, :n])
        except ConfigError:  # a first step is too long: there is no such model
            x *= np.array([[box.reach(solution.theta, step[:n])] for step in x])
            refits = box.all_readings(solution.theta + x[:, :n])
        for i, readings_x, noise_N, readings in zip(some, x, noises_N, refits, strict=True):
            y = [y + z for y, z in zip(readings, solution.zero_N + readings_x[n:], strict=True)]
            drawn[i] = (
                solution.theta + (readings_x + to_x @ (noise_N - (_white(noise, y) - centre)))[:n]
            )
        done(len(some))
    return np.clip(drawn, *parameters.log_limits(box.free))
