"""Least squares with uncertainty, and checks that refuse wrong readings.

    y = X p + e,   p^ = (X^T X)^-1 X^T y,   s^2 = |y - X p^|^2 / nu,   C = s^2 (X^T X)^-1

with nu = n - k degrees of freedom. With independent normal errors of one variance,
(p^_i - p_i) / sqrt(C_ii) has Student's t distribution with nu degrees of freedom, and
p^_i +- t_{0.975, nu} sqrt(C_ii) contains the true value in 95 % of all sessions. The nonlinear fit
uses the Jacobian at its solution as X.

Source: JCGM 100:2008 (GUM), 4.2, G.3 and H.3; Draper & Smith, Applied Regression Analysis, ch. 2.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import least_squares

from hil.errors import ConfigError

CONDITION_MAX = 1e7  # of the matrix with columns scaled to unit length
GRAVITY_M_PER_S2 = 9.80665
UNIT_SLIPS = {
    1e3: "1000: kg, not g (N, not mN)",
    1e-3: "1000: kg, not t (N, not kN)",
    GRAVITY_M_PER_S2: "g = 9.81: kilograms, not newtons",
    1.0 / GRAVITY_M_PER_S2: "g = 9.81: newtons, not kilograms",
    1e3 * GRAVITY_M_PER_S2: "1000 g: kilograms, not millinewtons",
    1e3 / GRAVITY_M_PER_S2: "1000 / g: newtons, not grams",
}
SLIP_WITHIN = 0.2
DIFFERS = 0.35  # relative difference above which a figure is refused


@dataclass(frozen=True)
class Fit:
    """Values with their covariance.

    Attributes
    ----------
    names : tuple of str
    values : (k,) array
    covariance : (k, k) array
    residuals : (n,) array
    sigma : standard deviation of one reading
    dof : int
    """

    names: tuple[str, ...]
    values: NDArray[np.float64]
    covariance: NDArray[np.float64]
    residuals: NDArray[np.float64]
    sigma: float
    dof: int


def linear(X: ArrayLike, y: ArrayLike, names: Sequence[str], what: str) -> Fit:
    """Ordinary least squares, p = (X^T X)^-1 X^T y.

    Parameters
    ----------
    X : (n, k) array
    y : (n,) array
    names : of the k values, for messages
    what : start of an error message

    Raises
    ------
    ConfigError
        There are fewer than k + 2 readings, or X is nearly rank deficient.
    """
    A, b = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
    n, k = A.shape
    _refuse_few(n, k, what)
    scale = np.linalg.norm(A, axis=0)
    _refuse_collinear(A, scale, names, what)
    Q, R = np.linalg.qr(A / scale)
    p = np.linalg.solve(R, Q.T @ b) / scale
    residuals = b - A @ p
    inverse = np.linalg.inv(R) / scale[:, None]
    s2 = float(residuals @ residuals) / (n - k)
    return Fit(tuple(names), p, s2 * inverse @ inverse.T, residuals, float(np.sqrt(s2)), n - k)


def nonlinear(
    misfit: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    start: ArrayLike,
    names: Sequence[str],
    what: str,
    bounds: tuple[ArrayLike, ArrayLike] = (-np.inf, np.inf),
) -> Fit:
    """Nonlinear least squares: minimises |misfit(p)|^2 from a start value.

    Parameters
    ----------
    misfit : (k,) values -> (n,) model less readings
    start : (k,) array
    names : of the k values, for messages
    what : start of an error message
    bounds : lower and upper bounds of the values

    Raises
    ------
    ConfigError
        As `linear`, or the fit does not converge.
    """
    p0 = np.asarray(start, dtype=float)
    _refuse_few(len(misfit(p0)), len(p0), what)
    x_scale = np.where(p0 == 0.0, 1.0, np.abs(p0))
    optimum = least_squares(misfit, p0, x_scale=x_scale, bounds=bounds)
    if not optimum.success:
        raise ConfigError(f"{what}: the fit does not converge: are these the right readings?")
    n, k = optimum.jac.shape
    scale = np.linalg.norm(optimum.jac, axis=0)
    _refuse_collinear(optimum.jac, scale, names, what)
    _, R = np.linalg.qr(optimum.jac / scale)
    inverse = np.linalg.inv(R) / scale[:, None]
    s2 = 2.0 * optimum.cost / (n - k)
    C = s2 * inverse @ inverse.T
    return Fit(tuple(names), optimum.x, C, -optimum.fun, float(np.sqrt(s2)), n - k)


def _refuse_few(n: int, k: int, what: str) -> None:
    if n < k + 2:
        raise ConfigError(
            f"{what}: {n} readings are too few for {k} values with an uncertainty: at least {k + 2}"
        )


def _refuse_collinear(
    A: NDArray[np.float64], scale: NDArray[np.float64], names: Sequence[str], what: str
) -> None:
    dead = [name for name, length in zip(names, scale, strict=True) if length == 0.0]
    if dead:
        raise ConfigError(f"{what}: the readings do not determine {', '.join(dead)}")
    _, s, Vt = np.linalg.svd(A / scale, full_matrices=False)
    if s[-1] * CONDITION_MAX < s[0]:
        parts = np.abs(Vt[-1])
        together = [n for n, part in zip(names, parts, strict=True) if part > 0.1 * parts.max()]
        raise ConfigError(
            f"{what}: a collinear set: the readings cannot separate {' and '.join(together)}: "
            "spread them wider"
        )


def refuse_unit_slip(value: float, expected: float, what: str, remedy: str) -> None:
    """Refuse a figure that differs from the expected one by a factor of about g or 1000.

    Raises
    ------
    ConfigError
        The message names the unit that is probably right.
    """
    ratio = value / expected if expected else np.inf
    for slip, words in UNIT_SLIPS.items():
        if abs(ratio / slip - 1.0) < SLIP_WITHIN:
            raise ConfigError(
                f"{what} is {value:.4g}, expected about {expected:.4g}: off by {words}: {remedy}"
            )


def refuse_implausible(value: float, expected: float, what: str) -> None:
    """ConfigError for a figure that differs from the expected one by more than `DIFFERS`."""
    if not abs(value - expected) < DIFFERS * abs(expected):
        raise ConfigError(
            f"{what} is {value:.4g}, expected about {expected:.4g}: something else was measured, "
            "or the expected figure is wrong"
        )


def refuse_saturated(readings: ArrayLike, limit: float, unit: str, what: str) -> None:
    """ConfigError for readings that are NaN or at the end of the range."""
    values = np.asarray(readings, dtype=float)
    at = np.flatnonzero(~np.isfinite(values) | (np.abs(values) >= 0.9995 * limit))
    if len(at):
        raise ConfigError(
            f"{what}: reading {at[0] + 1} of {len(values)}, {values[at[0]]:g} {unit}, is "
            f"saturated: the range ends at {limit:g} {unit}"
        )


def refuse_stuck(loads: ArrayLike, readings: ArrayLike, unit: str, what: str) -> None:
    """ConfigError for a reading that does not follow its load: saturated, stuck, weight missing.

    Between neighbouring loads the slope must be at least a quarter of the median slope.
    """
    x, y = np.asarray(loads, dtype=float), np.asarray(readings, dtype=float)
    order = np.argsort(x, kind="stable")
    levels = np.unique(x)
    if len(levels) < 3:
        return
    mean = np.array([y[order][x[order] == level].mean() for level in levels])
    slopes = np.diff(mean) / np.diff(levels)
    median = np.median(slopes)
    for i, slope in enumerate(slopes):
        if slope * np.sign(median) < 0.25 * abs(median):
            raise ConfigError(
                f"{what}: the reading hardly changes from {levels[i]:.4g} to {levels[i + 1]:.4g} "
                f"{unit}: saturated, stuck, or a missing load"
            )
