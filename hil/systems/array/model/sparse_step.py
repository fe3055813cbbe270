"""Stepping of large arrays; the cost is proportional to the number of cells.

Over one period the solution is a polynomial of h A applied to the state, summed term by term:
t_k = h c_k/c_{k-1} A t_{k-1}; the inputs enter the first two terms. A is never formed: one pass
over cells and masses applies it. The polynomial is the Chebyshev series of exp on the imaginary
segment [-i theta, i theta], which suits lightly damped arrays. It is truncated where its remainder
falls below REMAINDER relative to the state, at every step. The only other error is rounding.

Source: Tal-Ezer & Kosloff 1984 (Chebyshev propagation); J_k from DLMF 10.12.1.
"""

from collections.abc import Sequence
from math import ceil
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import scipy.special
from numpy.typing import ArrayLike, NDArray

from hil.compiled import njit
from hil.errors import ModelError
from hil.mechanics.arrays import Array
from hil.systems.array.model.cell_array import CellArray
from hil.systems.array.model.network import Coefficients, Nodes

REMAINDER = 1e-12
THETA_MIN, THETA_MAX = 0.05, 2.0
SERIES_MAX = 60


def rate_bounds_per_s(nodes: Nodes, c: Coefficients) -> tuple[float, float]:
    """Return upper bounds on the oscillating and the damped part of |A|.

    In the energy norm (kinetic and elastic), with g_k^2 = max over masses of
    2 sum k / mass (cells at the mass): springs give omega = g_Ke, or the internal states' own
    rate |iota| where that is larger; dampers give g_Kv^2; internal states give |iota| and their
    coupling g_k with k = |Kd| (|Ze|/omega + |Zv|).
    """

    def largest(weight: NDArray[Any]) -> float:
        at_left = np.bincount(nodes.left, weight, nodes.n)
        total = at_left + np.bincount(nodes.right, weight, nodes.n)
        return float(np.max(np.where(nodes.free, 2.0 * total / nodes.mass_kg, 0.0), initial=0.0))

    omega = float(np.sqrt(largest(abs(c.Ke))))
    damped = largest(abs(c.Kv))
    if len(c.Kd):
        rate = float(abs(c.iota).sum(axis=1).max())
        omega = max(omega, rate)
        drive = np.abs(c.Kd) * (np.abs(c.Ze) / max(omega, np.finfo(float).tiny) + np.abs(c.Zv))
        damped += rate + float(np.sqrt(largest(np.bincount(c.cell_of, drive, len(c.Ke)))))
    return omega, damped


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
    masses: Array  # 1/m, 0 for a mass that cannot move; terms of x and v, and pull
    has_velocity: bool  # any Kv or Zv


class SparseStepper:
    """State of a large array, stepped by a compiled pass over cells and masses.

    Parameters
    ----------
    model : without driven points
    outputs : sequence of str, outputs of the model that `y` holds

    Attributes
    ----------
    y : (p,) array, current outputs
    order, substeps : degree of the polynomial, and number of substeps per period
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
        if nodes.driven.any():
            raise ModelError(
                "a network this large cannot be simulated with driven points: free them"
            )
        if nodes.spring_N_per_m.any():
            raise ModelError(
                "a network this large cannot be simulated with bias springs: use cells as springs"
            )
        omega, damped = (period_s * rate for rate in rate_bounds_per_s(nodes, c))
        self.substeps = max(1, ceil((omega + damped) / THETA_MAX))
        ratios = series(omega / self.substeps, damped / self.substeps)
        self.order = len(ratios)
        self._steps_s = period_s / self.substeps * ratios

        n, n_internal = nodes.n, len(c.cell_of)
        iota = c.iota.tocoo()
        off = iota.row != iota.col
        n_cells = len(c.Ke)
        self._network = _Network(
            np.array([nodes.left, nodes.right], dtype=np.uint32),
            np.array([c.Ke, c.Kv, c.Kf]), np.zeros((3, n_cells)), c.cell_of.astype(np.uint32),
            np.array([c.Kd, c.Ze, c.Zv, c.Kp, c.iota.diagonal()]), np.zeros((2, n_internal)),
            np.array([iota.row[off], iota.col[off]], dtype=np.uint32), iota.data[off],
            np.array([np.where(nodes.free, 1.0 / nodes.mass_kg, 0.0), *np.zeros((3, n))]),
            bool(np.any(c.Kv) or np.any(c.Zv)),
        )  # fmt: skip

        self._order = model.state_order
        self._z = np.zeros(2 * n + n_internal)
        self._z[self._order] = x0

        rows = [model.outputs.index(name) for name in outputs]
        spread = sp.csr_array(
            (np.ones(len(self._order)), (np.arange(len(self._order)), self._order)),
            shape=(len(self._order), len(self._z)),
        )
        self._C = sp.csr_array(model.sparse[2][rows] @ spread)
        self._D = sp.csr_array(model.sparse[3][rows][:, :n_cells])
        self.y: Array = self._C @ self._z + self._D @ np.asarray(F0, dtype=float)

    @property
    def x(self) -> Array:
        """Current state, in the order of `model.states`."""
        return self._z[self._order]

    def correct(self, gain: Array, output: int, error: float, F: Array) -> None:
        """Add gain x error to the state and update the outputs."""
        self._z[self._order] += gain * error
        self.y[:] = self._C @ self._z + self._D @ F

    def run(self, F: Array) -> Array:
        """Return outputs (k, p) after each of k periods, with forces F (k, N) held constant."""
        y = np.empty((len(F), len(self.y)))
        for k, held in enumerate(F):
            self.step(held, held)
            y[k] = self.y
        return y

    def step(self, F0: Array, F1: Array) -> None:
        """Advance one period with the cells' forces linear from F0 to F1."""
        change = (F1 - F0) / self.substeps
        for i in range(self.substeps):
            start = F0 + i * change if i else F0
            _advance(self._network, self._steps_s, start, change, self._z)
        self.y[:] = self._C @ self._z
        if self._D.nnz:
            self.y += self._D @ F1


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
    W, x_k, v_k, pull = network.masses[0], network.masses[1], network.masses[2], network.masses[3]
    x, v, d = z[: len(W)], z[len(W) : 2 * len(W)], z[2 * len(W) :]
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
        pull[:] = 0.0
        for n in range(len(left)):
            pull[left[n]] += T[n]
            pull[right[n]] -= T[n]
        for m in range(len(x)):
            x_k[m] = c * v_k[m]
            v_k[m] = c * W[m] * pull[m]
            x[m] += x_k[m]
            v[m] += v_k[m]
