"""A bank of Kalman filters, one for each failure, for `failures.cell_failures`."""

from typing import NamedTuple

import numpy as np

from hil.compiled import njit
from hil.mechanics.arrays import Array

GAIN, AUSTENITE, OHM, CONTRAST, N_BLOCKS = range(5)
"""Blocks of N errors in a filter's state; delay and disturbance of the force follow."""


class Bank(NamedTuple):
    """Filters (H) with M errors; the first one is of an array in which nothing new has failed.

    Attributes
    ----------
    log : (H,) array, log likelihood ratio to the first filter; -inf: not in use
    x, P : (H, M), (H, M, M) arrays, errors and their covariance
    Q : (H, M) array, variance that an error gains in a second
    rate_per_s : (M,) array, rates at which errors decay
    phi, gain : (M,) arrays, scratch
    """

    log: Array
    x: Array
    P: Array
    Q: Array
    rate_per_s: Array
    phi: Array
    gain: Array


@njit(cache=True)
def predict(bank: Bank, h_s: float, stirred: Array, stirred_N2: float) -> None:
    """Let every error decay and wander for a time; austenite and disturbance gain variances too."""
    n, m = len(stirred), len(bank.phi)
    keep, gains_s = np.exp(-bank.rate_per_s * h_s), np.full(m, h_s)
    for i in range(m):
        if bank.rate_per_s[i] > 0.0:
            gains_s[i] = (1.0 - keep[i] ** 2) / (2.0 * bank.rate_per_s[i])
    for f in range(len(bank.log)):
        if bank.log[f] == -np.inf:
            continue
        x, P, Q = bank.x[f], bank.P[f], bank.Q[f]
        for i in range(m):
            x[i] *= keep[i]
            for j in range(m):
                P[i, j] *= keep[i] * keep[j]
            P[i, i] += Q[i] * gains_s[i]
        for i in range(n):
            P[AUSTENITE * n + i, AUSTENITE * n + i] += stirred[i]
        P[m - 1, m - 1] += stirred_N2


@njit(cache=True)
def take_resistances(bank: Bank, xi: Array, contrast: Array, ratio: Array, noise2: float) -> None:
    """Correct by readings (N,) over the twin's resistance, at its austenite xi; NaN: no reading."""
    n = len(xi)
    for c in range(n):
        if np.isnan(ratio[c]):
            continue
        kappa = contrast[c]
        for f in range(len(bank.log)):
            if bank.log[f] == -np.inf:
                continue
            x, phi = bank.x[f], bank.phi
            wider, more = x[CONTRAST * n + c], x[AUSTENITE * n + c]
            phi[:] = 0.0
            phi[OHM * n + c] = 1.0
            phi[AUSTENITE * n + c] = kappa * (1.0 + wider)
            phi[CONTRAST * n + c] = kappa * (xi[c] + more)
            expected = x[OHM * n + c] + kappa * (more * (1.0 + wider) + xi[c] * wider)
            _correct(bank, f, ratio[c] - 1.0 - expected, noise2)
        _relate(bank.log)


@njit(cache=True)
def take_force(
    bank: Bank, gains_N: Array, xi: Array, moves_N_per_s: float, read: tuple[float, float]
) -> None:
    """Correct by a force less the twin's, and the variance of its noise."""
    n, m = len(xi), len(bank.phi)
    for f in range(len(bank.log)):
        if bank.log[f] == -np.inf:
            continue
        x, phi = bank.x[f], bank.phi
        phi[:] = 0.0
        phi[m - 2], phi[m - 1] = -moves_N_per_s, 1.0
        expected = x[m - 1] - moves_N_per_s * x[m - 2]
        for i in range(n):
            a, more = x[GAIN * n + i], x[AUSTENITE * n + i]
            phi[GAIN * n + i] = gains_N[i] * (xi[i] + more)
            phi[AUSTENITE * n + i] = gains_N[i] * (1.0 + a)
            expected += gains_N[i] * (a * xi[i] + (1.0 + a) * more)
        _correct(bank, f, read[0] - expected, read[1])
    _relate(bank.log)


@njit(cache=True)
def _correct(bank: Bank, f: int, nu: float, noise2: float) -> None:
    x, P, phi, gain = bank.x[f], bank.P[f], bank.phi, bank.gain
    m = len(phi)
    gain[:] = 0.0
    S = noise2
    for j in range(m):
        if phi[j] != 0.0:
            for i in range(m):
                gain[i] += P[j, i] * phi[j]
    for i in range(m):
        S += phi[i] * gain[i]
    for i in range(m):
        k = gain[i] / S
        x[i] += k * nu
        for j in range(m):
            P[i, j] -= k * gain[j]
    bank.log[f] -= 0.5 * (nu * nu / S + np.log(S))


@njit(cache=True)
def _relate(log: Array) -> None:
    first = log[0]
    for f in range(len(log)):
        log[f] -= first
