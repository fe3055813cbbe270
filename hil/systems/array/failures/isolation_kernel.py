"""Compiled part of `hil.systems.array.failures.isolation`: samples, learning, log odds."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hil.compiled import njit
from hil.mechanics.arrays import Array, Mask

ALL = 0  # index of the test on all data; test 1 uses the window


Records = NDArray[np.void]
Plain = tuple[Any, ...]  # a named tuple as a plain one: from Python it passes 0.6 us faster
# Of a cell: static gain, direct part of its lag and the share by which it follows in a period,
# lagged and total activation; whether it is on, and periods since it was switched.
CELL = np.dtype(
    [(name, float) for name in ("gain_N", "direct", "blend", "lagged", "c")]
    + [("on", np.uint8), ("since", np.int64)]
)
# Share of the old information that is kept at a sample, noise of a sample, relative doubt of the
# gain of a cell, and periods for which a cell is doubted.
NOISE = np.dtype([("keep", float), ("noise_N2", float), ("doubt", float), ("settle", np.int64)])


class Samples(NamedTuple):
    """Samples of the window, and the information L, v before it [0] and in it [1]."""

    phi: Array
    e: Array
    R: Array
    L: Array
    v: Array


class Learned(NamedTuple):
    """Mean `base` and covariance `P0` of healthy cells; both for each test, `drift` added."""

    base: Array
    P0: Array
    drift: Array
    mean: Array
    P: Array


class Failures(NamedTuple):
    """Every failure: its change of the gains, whether it is possible, log odds in both tests."""

    mu: Array
    possible: NDArray[np.bool_]
    log_B: Array


class Scratch(NamedTuple):
    """Both sides of a system of equations, and a failure's change of what was learned."""

    left: Array
    right: Array
    shift: Array


@njit(cache=True)
def follow(cells: Records, activation: Array, n_periods: int) -> None:
    """Advance every lag, and c, by these periods with this activation."""
    for _ in range(n_periods):
        for n in range(len(cells)):
            cell = cells[n]
            cell["lagged"] += cell["blend"] * (activation[n] - cell["lagged"])
            cell["c"] = cell["direct"] * activation[n] + (1.0 - cell["direct"]) * cell["lagged"]


@njit(cache=True)
def count_since(cells: Records, on: Mask, n_periods: int) -> None:
    """Update the number of periods since every cell was switched."""
    for n in range(len(cells)):
        cell = cells[n]
        cell["since"] = 0 if on[n] != cell["on"] else cell["since"] + n_periods
        cell["on"] = on[n]


@njit(cache=True)
def take(cells: Records, noise: Records, samples: Plain, at: int, residual_N: float) -> None:
    """Add a sample to the window; move the oldest one to the information before the window."""
    phi, e, R, L, v = samples
    n, m, rules = len(cells), len(v[0]), noise[0]
    for i in range(m):
        a = phi[at, i] / R[at]
        v[0, i] = rules["keep"] * v[0, i] + a * e[at]
        for j in range(m):
            L[0, i, j] = rules["keep"] * L[0, i, j] + a * phi[at, j]
    R[at] = rules["noise_N2"]
    for i in range(n):
        cell = cells[i]
        phi[at, i] = cell["gain_N"] * cell["c"]
        if cell["since"] < rules["settle"]:
            R[at] += (rules["doubt"] * cell["gain_N"]) ** 2
    phi[at, m - 1] = 1.0
    e[at] = residual_N
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
def judge(samples: Plain, learned: Plain, failures: Plain, scratch: Plain) -> tuple[float, int]:
    """Learn from the samples; return the largest log odds, and its test, -1 for none."""
    taken, knowledge, room = Samples(*samples), Learned(*learned), Scratch(*scratch)
    _learn(taken, knowledge, room)
    largest, best = -np.inf, -1
    for test in range(2):
        odds = _log_odds(taken, knowledge, test, Failures(*failures), room)
        if odds > largest:
            largest, best = odds, test
    return largest, best


@njit(cache=True)
def _learn(samples: Samples, learned: Learned, scratch: Scratch) -> None:
    """Compute mean and spread for both tests: [0] healthy cells, [1] learned before the window.

    With (I + L P0) X = (v - L base, I): P = P0 X, mean = base + P0 X_v.
    """
    L, v, left, right = samples.L, samples.v, scratch.left, scratch.right
    base, P0, drift, mean, P = learned
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
def _log_odds(
    samples: Samples, learned: Learned, test: int, failures: Failures, scratch: Scratch
) -> float:
    """Write the log odds (H,) of every failure against none; return the largest."""
    L, v, mean, P = samples.L, samples.v, learned.mean[test], learned.P[test]
    mu, log_B, (left, right, shift) = failures.mu, failures.log_B[test], scratch
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
        if not failures.possible[h]:
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
