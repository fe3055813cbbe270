"""Likelihoods of failures from a filter's innovations, for `failures.wire_failures`."""

import numpy as np
from numpy.typing import NDArray

from hil.compiled import njit
from hil.mechanics.arrays import Array
from hil.mechanics.sma.stressed import AS_TABULATED, advance

ELECTRICAL, MECHANICAL = 0, 1
PULLS = 0.01  # of its force: a cell whose breaking can be felt


@njit(cache=True)
def hold(  # type: ignore[no-untyped-def]
    laws, knots, gains_N, rates, direct, broken, breaks, h, wires, comes, cells, alive, blind, keep,
    x, phi, gain, nu, S, ghost, log, sums, filtered, spread, spawn, place, posterior,
):  # fmt: skip
    """Update every hypothesis with a predicted sample; return the largest log odds."""
    n, m, n_alive = len(gains_N), len(x), ghost.shape[1]
    top = -np.inf
    for c in range(n):
        if not alive[c]:
            continue
        a = np.exp(-rates[c] * h)
        ramp = 1.0 - (1.0 - a) / (rates[c] * h)
        change = 0.0
        for i in range(n):
            change += broken[c, i] * comes[i]
        for k in range(n_alive):
            old, was = ghost[c, k, 1], ghost[c, k, 2]
            was = direct[c] * old + (1.0 - direct[c]) * was
            ghost[c, k, 0], ghost[c, k, 1] = advance(
                laws[c], knots[c], AS_TABULATED, 0.0, ghost[c, k, 0], old, h
            )
            ghost[c, k, 2] = a * ghost[c, k, 2] + (1.0 - a - ramp) * old + ramp * ghost[c, k, 1]
            left = direct[c] * ghost[c, k, 1] + (1.0 - direct[c]) * ghost[c, k, 2]
            for kind in range(2):
                if log[kind, c, k] == -np.inf:
                    continue
                g, d = change, 0.0
                if kind == ELECTRICAL:
                    g = -gains_N[c] * (1.0 + x[c]) * (comes[c] - left)
                    d = -gains_N[c] * (left - was) / h
                own = filtered[kind, c, k]
                for i in range(m):
                    own[0, i] *= keep[i]
                    g -= phi[i] * own[0, i]
                if kind == ELECTRICAL:
                    for i in range(m):
                        own[1, i] *= keep[i]
                        d -= phi[i] * own[1, i]
                if not blind:
                    total = sums[kind, c, k]
                    total[0] += g * nu / S
                    total[1] += d * nu / S
                    total[2] += g * g / S
                    total[3] += g * d / S
                    total[4] += d * d / S
                    log[kind, c, k] = _evidence(total, spread)
                    for i in range(m):
                        own[0, i] += gain[i] * g
                    if kind == ELECTRICAL:
                        for i in range(m):
                            own[1, i] += gain[i] * d
                top = max(top, log[kind, c, k])
        if spawn:
            ghost[c, place] = wires[c]
            for kind in range(2):
                pulls = cells[c] or comes[c] > PULLS
                able = cells[c] if kind == ELECTRICAL else breaks[c] and pulls
                log[kind, c, place] = 0.0 if able and not blind else -np.inf
                filtered[kind, c, place] = 0.0
                sums[kind, c, place] = 0.0
    total = 0.0
    posterior[:] = 0.0
    for c in range(n):
        if alive[c] and top > -np.inf:
            for kind in range(2):
                for k in range(n_alive):
                    posterior[kind, c] += np.exp(log[kind, c, k] - top)
                total += posterior[kind, c]
    if total > 0.0:
        posterior /= total
    return top


def chances(
    x: Array,
    P: Array,
    left: Array,
    spread: tuple[float, float],
    anew: float,
    pulled: NDArray[np.bool_],
) -> tuple[Array, float]:
    """Return the probability of each cell to be the broken one, and of no broken cell.

    The likelihood of the static gains, without the prior of their estimation, is multiplied with
    one Gaussian per cell, whose mean is the cell's row of `left`.
    """
    m = np.vstack([left, np.zeros(len(x))])
    held = 1.0 / (spread[0] + spread[1] * np.abs(m)) ** 2
    inverse = np.linalg.inv(P)
    info = inverse - np.eye(len(x)) / anew**2
    eta = inverse @ x + held * m
    precision = info + held[:, :, None] * np.eye(len(x))
    fit = np.linalg.solve(precision, eta[:, :, None])[:, :, 0]
    log = 0.5 * ((eta * fit).sum(axis=1) - (held * m * m).sum(axis=1) + np.log(held).sum(axis=1)
                 - np.linalg.slogdet(precision)[1])  # fmt: skip
    log[:-1][~pulled] = -np.inf
    chance = np.exp(log - log.max())
    chance /= chance.sum()
    return chance[:-1], float(chance[-1])


def fitted(sums: Array, spread: Array) -> tuple[float, float]:
    """Return size and time of a change: 1 + p and q with the highest likelihood."""
    u, v, gg, gd, dd = sums
    m = np.array([[1.0 / spread[0] + gg, gd], [gd, 1.0 / spread[1] + dd]])
    p, q = np.linalg.solve(m, [u - gg, v - gd])
    return 1.0 + float(p), float(q)


@njit(cache=True)
def _evidence(sums, spread):  # type: ignore[no-untyped-def]
    """Log likelihood ratio of a change g + p g + q d, with p and q of these variances about 0."""
    u, v, gg, gd, dd = sums
    a, b = u - gg, v - gd
    m11, m22, m12 = 1.0 / spread[0] + gg, 1.0 / spread[1] + dd, gd
    det = m11 * m22 - m12 * m12
    fit = (m22 * a * a - 2.0 * m12 * a * b + m11 * b * b) / det
    return u - 0.5 * gg + 0.5 * fit - 0.5 * np.log(det * spread[0] * spread[1])
