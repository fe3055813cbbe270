"""Figures of topologies: force, stroke, levels, variability, robustness."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hil.systems.array.model.batch_statics import end_gains
from hil.systems.array.model.cells import Cell, miga
from hil.systems.array.model.fingerprint import Topology
from hil.systems.array.model.force_levels import count_levels

MIGA = miga(k_pe_N_per_m=20.0, k_se_N_per_m=386.52, k_ae_N_per_m=1000.0, b_N_s_per_m=500.0)
"""Cell of the Miga NanoMuscle array. Source: MacNair & Ueda."""
_BATCH_BYTES = 2**25
ROUNDING, SINGULAR = 1e-12, 1e-9
"""det(M) is a ratio of numbers of spanning trees: 0, or above 1e-6 for 16 cells."""


@dataclass(frozen=True)
class LikeCells:
    """The one cell that is used in all places of an array.

    Attributes
    ----------
    force_on_N : F of an active cell

    Raises
    ------
    ValueError
        K or phi F is not above zero: an active cell would not stretch or not pull.
    """

    cell: Cell = MIGA
    force_on_N: float = 1.0

    def __post_init__(self) -> None:
        K, phi = self.cell.static
        if not K > 0.0:
            raise ValueError(f"the cell's static stiffness is {K:g} N/m: it must be above zero")
        if not phi * self.force_on_N > 0.0:
            raise ValueError(
                f"an active cell pulls {phi * self.force_on_N:g} N when blocked: "
                "it must be above zero"
            )

    @property
    def pull_N(self) -> float:
        """Blocked force phi F of one active cell."""
        return self.cell.static[1] * self.force_on_N


@dataclass(frozen=True, slots=True)
class TopologyFigures:
    """Figures of one topology with like cells of the static law T = K e + phi F.

    With w_n the stretch of cell n per unit motion of the right end (left end fixed, no
    cell on), s_n = phi F w_n is the cell's static gain of the blocked force.

    Attributes
    ----------
    n_masses : both ends included
    blocked_force_N : both ends fixed, all cells on: sum(s)
    stroke_m : free contraction: motion of the right end to the left, all cells on, no force on it:
        sum(s) / (K sum of w over the cells that arrive at the right end)
    n_force_levels : distinct blocked forces over all on/off sets, including all off
    smallest_step_N : between neighbouring levels
    variance_N2 : of the blocked force with each cell on with probability 1/2: sum(s^2) / 4
    robustness : fraction of the blocked force left when one cell breaks mechanically and all others
        are on; the mean over the cells
    broken_worst, two_broken_worst : the same fraction in the worst case: the cell, or the two
        cells, that break are those whose loss leaves the least force
    dead_worst, two_dead_worst : worst cases of cells that stay off but keep their stiffness, as an
        electrical failure leaves them: 1 - max(s) / sum(s). Their mean is 1 - 1/N in any topology
    """

    fingerprint: str
    n_masses: int
    blocked_force_N: float
    stroke_m: float
    n_force_levels: int
    smallest_step_N: float
    variance_N2: float
    robustness: float
    broken_worst: float
    two_broken_worst: float
    dead_worst: float
    two_dead_worst: float


def figures(
    topologies: Iterable[Topology], cells: LikeCells | None = None
) -> list[TopologyFigures]:
    """Return the figures of topologies with equal numbers of cells, in their order.

    Topologies with equal numbers of masses are solved together.

    Parameters
    ----------
    topologies : iterable of Topology
    cells : default: Miga cells with F = 1 N
    """
    cells = cells or LikeCells()
    listed = list(topologies)
    by_masses: dict[int, list[int]] = {}
    for i, topology in enumerate(listed):
        by_masses.setdefault(topology.n_masses, []).append(i)
    by_index: dict[int, TopologyFigures] = {}
    for members in by_masses.values():
        n_cells = listed[members[0]].n_cells
        n_pairs = max(1, n_cells * (n_cells - 1) // 2)
        n_batch = max(1, _BATCH_BYTES // (8 * n_pairs * 6 * n_cells))
        for first in range(0, len(members), n_batch):
            batch = members[first : first + n_batch]
            rows = _figures([listed[i] for i in batch], cells)
            by_index.update(zip(batch, rows, strict=True))
    return [by_index[i] for i in range(len(listed))]


def _figures(batch: Sequence[Topology], cells: LikeCells) -> list[TopologyFigures]:
    """Return the figures of topologies with equal numbers of cells and masses."""
    K, pull_N = cells.cell.static[0], cells.pull_N
    n_masses = batch[0].n_masses
    left = np.array([topology.left for topology in batch])
    right = np.array([topology.right for topology in batch])
    P, h = _passed_on(left, right, n_masses), (right == n_masses - 1).astype(float)
    w = h - (P @ h[:, :, None])[:, :, 0]
    total = w.sum(axis=1)
    stiffness = (w * (right == n_masses - 1)).sum(axis=1)  # in units of one cell's K
    n_levels, smallest_step = count_levels(w)
    one, two = (_left_when_broken(left, right, P, h, k) / total[:, None] for k in (1, 2))
    largest = np.sort(w, axis=1)[:, ::-1].cumsum(axis=1)[:, :2] / total[:, None]
    return [
        TopologyFigures(
            fingerprint=topology.text,
            n_masses=n_masses,
            blocked_force_N=float(pull_N * total[i]),
            stroke_m=float(pull_N * total[i] / (K * stiffness[i])),
            n_force_levels=int(n_levels[i]),
            smallest_step_N=float(pull_N * smallest_step[i]),
            variance_N2=float(pull_N**2 * (w[i] @ w[i]) / 4.0),
            robustness=float(one[i].mean()),
            broken_worst=float(one[i].min()),
            two_broken_worst=float(two[i].min()),
            dead_worst=float(1.0 - largest[i, 0]),
            two_dead_worst=float(1.0 - largest[i, -1]),
        )
        for i, topology in enumerate(batch)
    ]


def _left_when_broken(
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    P: NDArray[np.float64],
    h: NDArray[np.float64],
    k: int,
) -> NDArray[np.float64]:
    """Return sum(w) without each set S of k cells, (S, sets); of one cell alone, the set is it.

    With u = 1 for the cells that are left and v = h for those of them at the right end::

        sum(w) = v u - v P u - (v P)_S M^-1 (P u)_S,   M = I - P_SS   (Woodbury)

    M is singular where masses float without S; these sets are solved by themselves.
    """
    n_cells, n_masses = left.shape[1], int(right.max()) + 1
    sets = np.array(list(itertools.combinations(range(n_cells), min(k, n_cells))))
    u = np.ones((len(sets), n_cells))
    np.put_along_axis(u, sets, 0.0, axis=1)
    v, Pu = h[:, None, :] * u, u @ P  # (S, sets, N); P is symmetric
    M = np.eye(sets.shape[1]) - P[:, sets[:, :, None], sets[:, None, :]]
    floats = np.abs(np.linalg.det(M)) < SINGULAR
    M[floats] = np.eye(sets.shape[1])
    vP_S, Pu_S = (np.take_along_axis(x, sets[None], axis=2) for x in (v @ P, Pu))
    coupled = np.linalg.solve(M, Pu_S[..., None])[..., 0]
    total: NDArray[np.float64] = (v * (u - Pu)).sum(axis=2) - (vP_S * coupled).sum(axis=2)
    array, which = np.nonzero(floats)
    if len(array):
        works = u[which].astype(bool)
        total[array, which] = _strain_parts(left[array], right[array], works, n_masses).sum(axis=1)
    total[np.abs(total) < ROUNDING] = 0.0
    return total


def _passed_on(
    left: NDArray[np.int64], right: NDArray[np.int64], n_masses: int
) -> NDArray[np.float64]:
    """Return P = E L^-1 E^T of arrays of like cells with unit stiffness, (S, N, N)."""
    unit = np.eye(n_masses)[:, 1:-1]
    E = unit[right] - unit[left]
    P: NDArray[np.float64] = E @ np.linalg.solve(np.swapaxes(E, -1, -2) @ E, np.swapaxes(E, -1, -2))
    return P


def _strain_parts(
    left: NDArray[np.int64], right: NDArray[np.int64], works: NDArray[np.bool_], n_masses: int
) -> NDArray[np.float64]:
    """Return the stretch of each like cell per unit motion of the right end, (S, N)."""
    ends = np.zeros(n_masses, dtype=bool)
    ends[[0, -1]] = True
    unit_stiffness = np.ones(left.shape[1])
    return end_gains(left, right, unit_stiffness, works, ends, right == n_masses - 1)
