"""Compiled part of `hil.systems.array.failures.isolation`: samples, learning, log odds.

L[0], v[0] are the information of the samples before the window; L[1], v[1] that of the window.
"""

import numpy as np

from hil.compiled import njit

ALL = 0  # index of the test on all data; test 1 uses the window


@njit(cache=True)
def follow(activation, direct, blend, lagged, c):  # type: ignore[no-untyped-def]
    """Advance every lag, and c, by one period with this activation."""
    for n in range(len(c)):
        lagged[n] += blend[n] * (activation[n] - lagged[n])
        c[n] = direct[n] * activation[n] + (1.0 - direct[n]) * lagged[n]


@njit(cache=True)
def count_since(cells, n_periods, on, since):  # type: ignore[no-untyped-def]
    """Update the number of periods since every cell was switched."""
    for n in range(len(cells)):
        since[n] = 0 if cells[n] != on[n] else since[n] + n_periods
        on[n] = cells[n]


@njit(cache=True)
def take(  # type: ignore[no-untyped-def]
    gains_N, c, residual, keep, noise_N2, doubt, since, settle, at, phi, e, R, L, v
):
    """Add a sample to the window; move the oldest one to the information before the window."""
    n, m = len(gains_N), len(v[0])
    for i in range(m):
        a = phi[at, i] / R[at]
        v[0, i] = keep * v[0, i] + a * e[at]
        for j in range(m):
            L[0, i, j] = keep * L[0, i, j] + a * phi[at, j]
    R[at] = noise_N2
    for i in range(n):
        phi[at, i] = gains_N[i] * c[i]
        if since[i] < settle:
            R[at] += (doubt * gains_N[i]) ** 2
    phi[at, m - 1] = 1.0
    e[at] = residual
    L[1], v[1] = 0.0, 0.0
    for k in range(len(e)):
        for i in range(m):
            a = phi[k, i] / R[k]
            if a != 0.0:
                v[1, i] += a * e[k]
                for j in range(m):
                    L[1, i, j] += a * phi[k, j]


@njit(cache=True)
def _solve(left, right):  # type: ignore[no-untyped-def]
    """Overwrite right (m, k) with left^-1 right, by elimination with row pivoting."""
    m, k = right.shape
    for i in range(m):
        pivot = i
        for r in range(i + 1, m):
            if abs(left[r, i]) > abs(left[pivot, i]):
                pivot = r
        if pivot != i:
            for j in range(m):
                left[i, j], left[pivot, j] = left[pivot, j], left[i, j]
            for j in range(k):
                right[i, j], right[pivot, j] = right[pivot, j], right[i, j]
        for r in range(i + 1, m):
            factor = left[r, i] / left[i, i]
            if factor != 0.0:
                for j in range(i, m):
                    left[r, j] -= factor * left[i, j]
                for j in range(k):
                    right[r, j] -= factor * right[i, j]
    for i in range(m - 1, -1, -1):
        for r in range(i + 1, m):
            if left[i, r] != 0.0:
                for j in range(k):
                    right[i, j] -= left[i, r] * right[r, j]
        for j in range(k):
            right[i, j] /= left[i, i]


@njit(cache=True)
def learn(L, v, base, P0, drift, left, right, P, mean):  # type: ignore[no-untyped-def]
    """Compute mean and spread for both tests: [0] healthy cells, [1] learned before the window.

    With (I + L P0) X = (v - L base, I): P = P0 X, mean = base + P0 X_v.
    """
    m = len(base)
    for i in range(m):
        rest = v[0, i]
        for j in range(m):
            total = 1.0 if i == j else 0.0
            for k in range(m):
                total += L[0, i, k] * P0[k, j]
            left[i, j] = total
            right[i, j + 1] = 1.0 if i == j else 0.0
            rest -= L[0, i, j] * base[j]
        right[i, 0] = rest
    _solve(left, right)
    for i in range(m):
        mean[0, i] = mean[1, i] = base[i]
        for j in range(m):
            mean[1, i] += P0[i, j] * right[j, 0]
            P[0, i, j] = P0[i, j]
            P[1, i, j] = drift[i] if i == j else 0.0
            for k in range(m):
                P[1, i, j] += P0[i, k] * right[k, j + 1]


@njit(cache=True)
def log_odds(  # type: ignore[no-untyped-def]
    L, v, test, P, mean, mu, possible, left, right, shift, log_B
):
    """Write the log odds (H,) of every failure against none; return the largest. 0: all data."""
    m, n = len(mean), mu.shape[1]
    for i in range(m):
        rest = v[1, i] + (v[0, i] if test == ALL else 0.0)
        for j in range(m):
            right[i, j + 1] = L[1, i, j] + (L[0, i, j] if test == ALL else 0.0)
            rest -= right[i, j + 1] * mean[j]
        right[i, 0] = rest
    for i in range(m):
        for j in range(m):
            total = 1.0 if i == j else 0.0
            for k in range(m):
                total += right[i, k + 1] * P[k, j]
            left[i, j] = total
    _solve(left, right)
    largest = -np.inf
    for h in range(len(mu)):
        log_B[h] = -np.inf
        if not possible[h]:
            continue
        for i in range(n):
            shift[i] = mu[h, i] * (1.0 + mean[i])
        total = 0.0
        for i in range(m):
            if shift[i] != 0.0:
                inner = right[i, 0]
                for j in range(m):
                    inner -= 0.5 * right[i, j + 1] * shift[j]
                total += shift[i] * inner
        log_B[h] = total
        largest = max(largest, total)
    return largest
