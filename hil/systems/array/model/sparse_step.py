"""Stepping of large arrays; the cost is proportional to the number of cells.

Over one period the solution is a polynomial of h A applied to the state, summed term by term:
t_k = h c_k/c_{k-1} A t_{k-1}; the inputs enter the first two terms. A is never formed: one pass
over cells and masses applies it. The polynomial is the Chebyshev series of exp on the imaginary
segment [-i theta, i theta], which suits lightly damped arrays. It is truncated where its remainder
falls below REMAINDER relative to the state, at every step. The only other error is rounding.

A mass where many cells meet oscillates so fast that the period would need many substeps. Such hubs
are eliminated: the rest r of the state moves with the hubs held at 0, its series gives the pull of
the cells at the hubs as a polynomial p(s), and what is left is linear in few numbers,

    z(h) = (0, r_0(h)) + R (x_hub(0), v_hub(0), coefficients of p)

R (len(z), columns) holds the responses of the whole network, calculated once by the same series in
substeps, or from those of a shorter time. p is a Taylor polynomial, so that with hubs the series is
Taylor's too. Hubs are chosen by the cost of a step.

Source: Tal-Ezer & Kosloff 1984 (Chebyshev propagation); J_k from DLMF 10.12.1. Elimination: the
variation of constants, with the hubs as inputs of the rest [derived here].
"""

from collections.abc import Sequence
from dataclasses import replace
from math import ceil, exp
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
import scipy.special
from numpy.typing import ArrayLike, NDArray

from hil.compiled import njit
from hil.mechanics.arrays import Array
from hil.systems.array.model.cell_array import CellArray
from hil.systems.array.model.network import Coefficients, Nodes

REMAINDER = 1e-12
THETA_MIN, THETA_MAX = 0.05, 2.0
SERIES_MAX = 60
HUB_COST = 0.3  # of a column of R at one state, over that of a cell in one term of the series
HUBS_GAIN = 0.7  # of the cost that remains with more hubs
PLAIN_MAX = 4  # substeps without hubs by which R is calculated, over those with hubs


def rate_bounds_per_s(nodes: Nodes, c: Coefficients) -> tuple[float, float]:
    """Return upper bounds on the oscillating and the damped part of |A|.

    In the energy norm (kinetic and elastic), with g_k^2 = max over masses of
    2 sum k / mass (cells at the mass): springs give omega = g_Ke, or the internal states' own
    rate |iota| where that is larger; dampers give g_Kv^2; internal states give |iota| and their
    coupling g_k with k = |Kd| (|Ze|/omega + |Zv|).
    """

    def largest(weight: ArrayLike, spring: Array | float = 0.0) -> float:
        return float(np.max(_per_mass(nodes, weight, spring), initial=0.0))

    omega = float(np.sqrt(largest(abs(c.Ke), nodes.spring_N_per_m)))
    damped = largest(abs(c.Kv))
    if len(c.Kd):
        rate = float(abs(c.iota).sum(axis=1).max())
        omega = max(omega, rate)
        drive = np.abs(c.Kd) * (np.abs(c.Ze) / max(omega, np.finfo(float).tiny) + np.abs(c.Zv))
        damped += rate + float(np.sqrt(largest(np.bincount(c.cell_of, drive, len(c.Ke)))))
    return omega, damped


def _per_mass(nodes: Nodes, weight: ArrayLike, spring: Array | float = 0.0) -> Array:
    """2 sum weight / mass over the cells at every mass that moves freely; (n,)."""
    at_left = np.bincount(nodes.left, weight, nodes.n)
    total = at_left + np.bincount(nodes.right, weight, nodes.n) + 0.5 * spring
    per_mass: Array = np.where(nodes.free, 2.0 * total / nodes.mass_kg, 0.0)
    return per_mass


def series(omega_h: float, damped_h: float) -> Array:
    """Return ratios c_k/c_{k-1}, k = 1..m, of the polynomial sum_k c_k z^k approximating exp(z).

    exp(i theta s) = J_0(theta) + 2 sum_k i^k J_k(theta) T_k(s). At a distance r theta from the
    segment, |T_k| <= exp(k asinh r); this bound decides where the series is truncated.
    """
    theta = max(omega_h + damped_h, THETA_MIN)
    off = np.arcsinh(damped_h / theta)
    k = np.arange(SERIES_MAX)
    bessel = scipy.special.jv(k, theta)
    rest = np.cumsum((2.0 * np.abs(bessel) * np.exp(k * off))[::-1])[::-1]
    order = max(2, int(np.argmax(rest < REMAINDER)) - 1)
    chebyshev = 2.0 * 1j ** k[: order + 1] * bessel[: order + 1]
    chebyshev[0] /= 2.0
    c = (np.polynomial.chebyshev.cheb2poly(chebyshev) / (1j * theta) ** k[: order + 1]).real
    c[0] = 1.0
    ratios: Array = c[1:] / c[:-1]
    return ratios


def taylor(theta: float) -> Array:
    """Return ratios c_k/c_{k-1} = 1/k, k = 1..m, with the remainder of exp below REMAINDER."""
    order, term = 2, 0.5 * theta**2
    while term * exp(theta) > REMAINDER:
        order += 1
        term *= theta / order
    return np.asarray(1.0 / np.arange(1, order + 1))


class _Division(NamedTuple):
    """Hubs (k,), number of substeps of a period, and ratios of the series."""

    hubs: NDArray[np.int64]
    substeps: int
    ratios: Array


def _divided(nodes: Nodes, c: Coefficients, hubs: NDArray[np.int64], period_s: float) -> _Division:
    """The division of a period with these hubs."""
    rest = replace(nodes, free=nodes.free & ~np.isin(np.arange(nodes.n), hubs))
    omega, damped = (period_s * rate for rate in rate_bounds_per_s(rest, c))
    substeps = max(1, ceil((omega + damped) / THETA_MAX))
    theta = omega / substeps, damped / substeps
    return _Division(hubs, substeps, taylor(sum(theta)) if len(hubs) else series(*theta))


def _division(nodes: Nodes, c: Coefficients, period_s: float) -> _Division:
    """The division of a period that costs least, with the stiffest masses as hubs, or none."""
    drive = np.bincount(c.cell_of, np.abs(c.Kd * c.Zv), len(c.Ke))
    stiff = _per_mass(nodes, np.abs(c.Ke) + np.abs(c.Kv) / period_s + drive)
    stiffest = np.argsort(-stiff, kind="stable")[: np.count_nonzero(stiff)]
    n_states = 2 * nodes.n + len(c.cell_of)

    def cost(one: _Division) -> float:
        order, k = len(one.ratios), len(one.hubs)
        a_step = order * (len(c.Ke) + len(c.cell_of)) + HUB_COST * k * (2 + order) * n_states
        return one.substeps * a_step

    best = _divided(nodes, c, stiffest[:0], period_s)
    for k in (1, 2, 4, 8, 16):
        one = _divided(nodes, c, stiffest[:k], period_s)
        if cost(one) < HUBS_GAIN * cost(best):
            best = one
    return best


Index = NDArray[np.uint32]  # half the memory traffic of the default


class _Network(NamedTuple):
    """Constants and scratch arrays of cells, internal states and masses, one row each.

    Few arrays with rows: to pass an array from Python costs 0.1 us.
    """

    ends: Index  # left and right mass of every cell
    cells: Array  # Ke, Kv, Kf
    cells_now: Array  # stretch, its rate, and force of the cells
    cell_of: Index  # of every internal state
    internals: Array  # Kd, Ze, Zv, Kp, diagonal of iota
    internals_now: Array  # term of the series, and rate
    pairs: Index  # rows and columns of the other entries of iota
    iota: Array  # of these pairs
    masses: Array  # 1/m, 0 for a hub or a mass that cannot move; springs; terms of x, v; pull
    has_velocity: bool  # any Kv or Zv
    hubs: Index
    responses: Array  # R of the module
    hubs_now: Array  # what R multiplies


def _network(nodes: Nodes, c: Coefficients, hubs: NDArray[np.int64], responses: Array) -> _Network:
    iota = c.iota.tocoo()
    off = iota.row != iota.col
    inverse = np.where(nodes.free, 1.0 / nodes.mass_kg, 0.0)
    inverse[hubs] = 0.0
    return _Network(
        np.array([nodes.left, nodes.right], dtype=np.uint32),
        np.array([c.Ke, c.Kv, c.Kf]), np.zeros((3, len(c.Ke))), c.cell_of.astype(np.uint32),
        np.array([c.Kd, c.Ze, c.Zv, c.Kp, c.iota.diagonal()]), np.zeros((2, len(c.cell_of))),
        np.array([iota.row[off], iota.col[off]], dtype=np.uint32), iota.data[off],
        np.array([inverse, nodes.spring_N_per_m, *np.zeros((3, nodes.n))]),
        bool(np.any(c.Kv) or np.any(c.Zv)),
        hubs.astype(np.uint32), responses, np.zeros(responses.shape[1]),
    )  # fmt: skip


def _responses(
    nodes: Nodes, c: Coefficients, hubs: NDArray[np.int64], h_s: float, order: int
) -> Array:
    """R of the module: the state after h_s from x = 1 m, from v = 1 m/s and under a pull (s/h_s)^j.

    The pull at a hub is that of a cell more whose internal states are a_i' = (i + 1) a_{i+1} / h_s
    with T = a_0: from a_j = 1 it has a_0 = (s / h_s)^j.
    """
    n, n_cells, n_hubs, n_internal = nodes.n, len(c.Ke), len(hubs), len(c.cell_of)
    wide = replace(
        nodes,
        mass_kg=np.append(nodes.mass_kg, 1.0),
        spring_N_per_m=np.append(nodes.spring_N_per_m, 0.0),
        free=np.append(nodes.free, False),
        left=np.concatenate([nodes.left, hubs]),
        right=np.concatenate([nodes.right, np.full(n_hubs, n)]),
    )
    none, chains = np.zeros(n_hubs), np.zeros(n_hubs * order)
    chain = sp.diags_array(np.arange(1, order) / h_s, offsets=1, shape=(order, order))
    pulls = replace(
        c,
        Ke=np.append(c.Ke, none),
        Kv=np.append(c.Kv, none),
        Kf=np.append(c.Kf, none),
        Ze=np.append(c.Ze, chains),
        Zv=np.append(c.Zv, chains),
        Kp=np.append(c.Kp, chains),
        Kd=np.append(c.Kd, np.tile(np.arange(order) == 0, n_hubs)),
        cell_of=np.append(c.cell_of, np.repeat(np.arange(n_cells, n_cells + n_hubs), order)),
        iota=sp.csr_array(sp.block_diag([c.iota, *[chain] * n_hubs])),
    )
    first, F = 2 * (n + 1) + n_internal, np.zeros(n_cells + n_hubs)
    kept = np.delete(np.arange(first), [n, 2 * n + 1])
    one, shorter = _divided(wide, pulls, hubs[:0], h_s), np.zeros((0, 0))
    held = _divided(wide, pulls, hubs, h_s)
    if one.substeps > PLAIN_MAX * held.substeps:
        one = held._replace(substeps=max(2, held.substeps))
        inner = _responses(nodes, c, hubs, h_s / one.substeps, len(one.ratios))
        shorter = np.zeros((first + n_hubs * order, inner.shape[1]))
        shorter[kept] = inner
    network = _network(wide, pulls, one.hubs, shorter)
    starts = [*hubs, *(n + 1 + hubs)]
    starts += [first + i * order + j for j in range(order) for i in range(n_hubs)]
    responses = np.zeros((len(starts), first + n_hubs * order))
    for z, start in zip(responses, starts, strict=True):
        z[start] = 1.0
        for _ in range(one.substeps):
            _advance(network, h_s / one.substeps * one.ratios, F, F, z)
    return np.ascontiguousarray(responses[:, kept].T)


class SparseStepper:
    """State of a large array, stepped by a compiled pass over cells and masses.

    Parameters
    ----------
    outputs : sequence of str, outputs of the model that `y` holds
    x0 : (n,) array, state at first
    F0 : (N,) array, forces of the cells at first, when driven points are at 0

    Attributes
    ----------
    y : (p,) array, current outputs
    order, substeps : degree of the polynomial, and number of substeps per period
    n_hubs : number of masses that are eliminated
    """

    def __init__(
        self,
        model: CellArray,
        period_s: float,
        outputs: Sequence[str],
        x0: ArrayLike,
        F0: ArrayLike,
    ) -> None:
        nodes, c = model.nodes, model.coefficients
        hubs, self.substeps, ratios = _division(nodes, c, period_s)
        self.order, self.n_hubs = len(ratios), len(hubs)
        self._steps_s = period_s / self.substeps * ratios
        none = np.zeros((0, 0))
        responses = (
            _responses(nodes, c, hubs, period_s / self.substeps, self.order) if len(hubs) else none
        )
        self._network = _network(nodes, c, hubs, responses)
        self._n_cells, self._order = len(c.Ke), model.state_order
        self._z = np.zeros(2 * nodes.n + len(c.cell_of))
        self._z[self._order] = x0
        at = [list(model.points).index(name) for name in model.driven]
        self._driven = np.array([[i, nodes.n + i] for i in at], dtype=np.int64).ravel()

        rows = [model.outputs.index(name) for name in outputs]
        C, D = model.sparse[2][rows], model.sparse[3][rows]
        moves = [model.inputs.index(f"{p}.{q}") for p in model.driven for q in ("x_m", "v_m_per_s")]
        of_z = np.concatenate([self._order, self._driven])
        spread = sp.csr_array(
            (np.ones(len(of_z)), (np.arange(len(of_z)), of_z)), shape=(len(of_z), len(self._z))
        )
        self._C = sp.csr_array(sp.hstack([C, D[:, moves]]) @ spread)
        self._D = sp.csr_array(D[:, : self._n_cells])
        self.y: Array = self._C @ self._z + self._D @ np.asarray(F0, dtype=float)

    @property
    def x(self) -> Array:
        """Current state, in the order of `model.states`."""
        return self._z[self._order]

    def correct(self, gain: Array, output: int, error: float, u: Array) -> None:
        """Add gain x error to the state and update the outputs."""
        self._z[self._order] += gain * error
        self.y[:] = self._C @ self._z + self._D @ u[: self._n_cells]

    def run(self, F: Array) -> Array:
        """Return outputs (k, p) after each of k periods, with forces F (k, N) held constant."""
        y = np.empty((len(F), len(self.y)))
        for k, held in enumerate(F):
            self.step(held, held)
            y[k] = self.y
        return y

    def step(self, u0: Array, u1: Array) -> None:
        """Advance one period with the inputs linear from u0 to u1.

        They are the cells' forces, then position and velocity of every driven point, as of
        `CellArray.discrete`.
        """
        self._z_after(u0, u1, self._z)
        self.y[:] = self._C @ self._z
        if self._D.nnz:
            self.y += self._D @ u1[: self._n_cells]

    def forecast(self, u0: Array, u1: Array) -> Array:
        """Return the state (n,) that `step` would reach."""
        return self._z_after(u0, u1, self._z.copy())[self._order]

    def ramp_response(self, cell: int) -> Array:
        """Return the state (n,) after a period from rest in which one cell's F rises to 1 N."""
        u = np.zeros((2, self._n_cells + len(self._driven)))
        u[1, cell] = 1.0
        return self._z_after(u[0], u[1], np.zeros_like(self._z))[self._order]

    def _z_after(self, u0: Array, u1: Array, z: Array) -> Array:
        """Advance z, the state of all masses, by a period."""
        n = self._n_cells
        z[self._driven] = u0[n:]
        change = (u1[:n] - u0[:n]) / self.substeps
        for i in range(self.substeps):
            start = u0[:n] + i * change if i else u0[:n]
            _advance(self._network, self._steps_s, start, change, z)
        z[self._driven] = u1[n:]
        return z


@njit(cache=True)
def _advance(network: _Network, steps_s: Array, F: Array, dF: Array, z: Array) -> None:
    """Add the terms of the series to the state z; steps_s (m,) holds h c_k/c_{k-1}."""
    left, right = network.ends[0], network.ends[1]
    Ke, Kv, Kf = network.cells[0], network.cells[1], network.cells[2]
    e, rate_e, T = network.cells_now[0], network.cells_now[1], network.cells_now[2]
    cell_of, has_velocity = network.cell_of, network.has_velocity
    Kd, Ze, Zv = network.internals[0], network.internals[1], network.internals[2]
    Kp, iota = network.internals[3], network.internals[4]
    d_k, more = network.internals_now[0], network.internals_now[1]
    row, col = network.pairs[0], network.pairs[1]
    iota_off = network.iota
    W, spring, x_k = network.masses[0], network.masses[1], network.masses[2]
    v_k, pull = network.masses[3], network.masses[4]
    hubs, at_hubs, n_hubs = network.hubs, network.hubs_now, len(network.hubs)
    x, v, d = z[: len(W)], z[len(W) : 2 * len(W)], z[2 * len(W) :]
    for i in range(n_hubs):
        at_hubs[i], at_hubs[n_hubs + i] = x[hubs[i]], v[hubs[i]]
        x[hubs[i]] = v[hubs[i]] = 0.0
    x_k[:], v_k[:], d_k[:] = x, v, d
    for k in range(1, len(steps_s) + 1):
        c = steps_s[k - 1]
        for n in range(len(left)):
            e[n] = x_k[right[n]] - x_k[left[n]]
            T[n] = Ke[n] * e[n]
        mixed = has_velocity or len(row) > 0 or k <= 2
        if mixed:
            more[:] = 0.0
        for i in range(len(row)):
            more[row[i]] += iota_off[i] * d_k[col[i]]
        if has_velocity:
            for n in range(len(left)):
                rate_e[n] = v_k[right[n]] - v_k[left[n]]
                T[n] += Kv[n] * rate_e[n]
            for r in range(len(cell_of)):
                more[r] += Zv[r] * rate_e[cell_of[r]]
        if k <= 2:
            force = F if k == 1 else dF
            for n in range(len(left)):
                T[n] += Kf[n] * force[n]
            for r in range(len(cell_of)):
                more[r] += Kp[r] * force[cell_of[r]]
        for r in range(len(cell_of)):
            n = cell_of[r]
            T[n] += Kd[r] * d_k[r]
            rate = Ze[r] * e[n] + iota[r] * d_k[r]
            if mixed:
                rate += more[r]
            d_k[r] = c * rate
            d[r] += d_k[r]
        for m in range(len(x)):
            pull[m] = -spring[m] * x_k[m]
        for n in range(len(left)):
            pull[left[n]] += T[n]
            pull[right[n]] -= T[n]
        for i in range(n_hubs):
            at_hubs[(k + 1) * n_hubs + i] = pull[hubs[i]]
        for m in range(len(x)):
            x_k[m] = c * v_k[m]
            v_k[m] = c * W[m] * pull[m]
            x[m] += x_k[m]
            v[m] += v_k[m]
    if n_hubs:
        for m in range(len(z)):
            total = 0.0
            for i in range(len(at_hubs)):
                total += network.responses[m, i] * at_hubs[i]
            z[m] += total
