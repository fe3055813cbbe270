"""Likelihoods of failures from a filter's innovations, for `failures.wire_failures`."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hil.compiled import njit
from hil.mechanics.arrays import Array, Records
from hil.mechanics.sma.stressed import AS_TABULATED, advance
from hil.mechanics.system import Drive
from hil.systems.array.wires.filter import Estimate

ELECTRICAL, MECHANICAL = 0, 1
PULLS = 0.01  # of its force: a cell whose breaking can be felt


CELL = np.dtype([("rate_per_s", float), ("direct", float), ("can_break", bool), ("alive", bool)])
RATIO = np.dtype([("log", float), ("sums", float, 5)])


class Cells(NamedTuple):
    """Every cell: its law, the knots of its branches, lag and condition (records `CELL`).

    `broken_N` (N, N) holds the changes of all static gains in N if a cell (row) breaks.
    """

    laws: Records
    knots_C: Array
    each: NDArray[np.void]
    broken_N: Array


class Sample(NamedTuple):
    """A predicted sample: the filter's estimate, innovation and its variance; the wires."""

    estimate: Estimate
    nu_N: float
    S_N2: float
    h_s: float
    wires: Array
    on: Drive


class Hypotheses(NamedTuple):
    """By kind, cell and place among those alive.

    Attributes
    ----------
    ghost : (N, K, 3) array, temperature, austenite and lag of a wire left to itself; no kind
    ratios : (2, N, K) records `RATIO`: log likelihood ratio to a healthy array, -inf for none; its
        sums of nu_h nu, nu_t nu, nu_h^2, nu_h nu_t and nu_t^2 over S, t for the time of the change
    filtered : (2, N, K, 2, m) array, errors that the filter would take for the change, and for a
        change of its time
    variances : of the relative size of the change, and of its time in s^2
    posterior : (2, N) array
    """

    ghost: Array
    ratios: NDArray[np.void]
    filtered: Array
    variances: tuple[float, float]
    posterior: Array


@njit(cache=True)
def hold(cells: Cells, sample: Sample, hypotheses: Hypotheses, blind: bool, begin: int) -> float:
    """Update every hypothesis with a predicted sample; return the largest log odds.

    New hypotheses begin at the place `begin`, if it is not negative.
    """
    ghost, ratios, all_filtered, variances, posterior = hypotheses
    estimate, nu, S, h, wires, on = sample
    errors, _, forces = estimate
    gains_N, comes = forces[0], forces[2]
    x, keep, phi, gain = errors[0], errors[1], errors[3], errors[4]
    n, m, n_alive = len(gains_N), len(x), ghost.shape[1]
    top = -np.inf
    for c in range(n):
        cell = cells.each[c]
        if not cell["alive"]:
            continue
        rate, direct, gain_N = cell["rate_per_s"], cell["direct"], gains_N[c]
        a = np.exp(-rate * h)
        ramp = 1.0 - (1.0 - a) / (rate * h)
        change = 0.0
        for i in range(n):
            change += cells.broken_N[c, i] * comes[i]
        for k in range(n_alive):
            before = ghost[c, k, 1]
            active_before = direct * before + (1.0 - direct) * ghost[c, k, 2]
            ghost[c, k, 0], ghost[c, k, 1] = advance(
                cells.laws[c], cells.knots_C[c], AS_TABULATED, 0.0, ghost[c, k, 0], before, h
            )
            ghost[c, k, 2] = a * ghost[c, k, 2] + (1.0 - a - ramp) * before + ramp * ghost[c, k, 1]
            active = direct * ghost[c, k, 1] + (1.0 - direct) * ghost[c, k, 2]
            for kind in range(2):
                ratio = ratios[kind, c, k]
                if ratio["log"] == -np.inf:
                    continue
                g, d = change, 0.0
                if kind == ELECTRICAL:
                    g = -gain_N * (1.0 + x[c]) * (comes[c] - active)
                    d = -gain_N * (active - active_before) / h
                filtered = all_filtered[kind, c, k]
                for i in range(m):
                    filtered[0, i] *= keep[i]
                    g -= phi[i] * filtered[0, i]
                if kind == ELECTRICAL:
                    for i in range(m):
                        filtered[1, i] *= keep[i]
                        d -= phi[i] * filtered[1, i]
                if not blind:
                    sums = ratio["sums"]
                    sums[0] += g * nu / S
                    sums[1] += d * nu / S
                    sums[2] += g * g / S
                    sums[3] += g * d / S
                    sums[4] += d * d / S
                    ratio["log"] = _evidence(sums, variances)
                    for i in range(m):
                        filtered[0, i] += gain[i] * g
                    if kind == ELECTRICAL:
                        for i in range(m):
                            filtered[1, i] += gain[i] * d
                top = max(top, ratio["log"])
        if begin >= 0:
            ghost[c, begin] = wires[c]
            for kind in range(2):
                pulls = on[c] or comes[c] > PULLS
                able = on[c] if kind == ELECTRICAL else cell["can_break"] and pulls
                ratios[kind, c, begin]["log"] = 0.0 if able and not blind else -np.inf
                ratios[kind, c, begin]["sums"][:] = 0.0
                all_filtered[kind, c, begin] = 0.0
    total = 0.0
    posterior[:] = 0.0
    for c in range(n):
        if cells.each[c]["alive"] and top > -np.inf:
            for kind in range(2):
                for k in range(n_alive):
                    posterior[kind, c] += np.exp(ratios[kind, c, k]["log"] - top)
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


def fitted(sums: Array, variances: tuple[float, float]) -> tuple[float, float]:
    """Return size and time of a change: 1 + p and q with the highest likelihood."""
    u, v, gg, gd, dd = sums
    m = np.array([[1.0 / variances[0] + gg, gd], [gd, 1.0 / variances[1] + dd]])
    p, q = np.linalg.solve(m, [u - gg, v - gd])
    return 1.0 + float(p), float(q)


@njit(cache=True)
def _evidence(sums: Array, variances: tuple[float, float]) -> float:
    """Log likelihood ratio of a change g + p g + q d, with p and q of these variances about 0."""
    u, v, gg, gd, dd = sums
    a, b = u - gg, v - gd
    m11, m22, m12 = 1.0 / variances[0] + gg, 1.0 / variances[1] + dd, gd
    det = m11 * m22 - m12 * m12
    fit = (m22 * a * a - 2.0 * m12 * a * b + m11 * b * b) / det
    log_ratio: float = u - 0.5 * gg + 0.5 * fit - 0.5 * np.log(det * variances[0] * variances[1])
    return log_ratio
