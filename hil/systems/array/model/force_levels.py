"""Static force of a cellular array for sets of cells: static gains, levels, mean, variance.

The static law is linear: the force at an end is the sum of the static gains of the cells that are
on, f = sum_n a_n s_n with a_n = 1 for a cell that is on. All figures follow from the N gains.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hil.compiled import njit
from hil.errors import ModelError
from hil.systems.array.model.cell_array import CellArray

LEVELS_MAX = 2**20
SAME_LEVEL = 1e-9
"""Levels closer than this fraction of a cell's own blocked force count as one level.

Rounding leaves about 1e-15. The gains of N like cells are fractions whose common denominator is
the number of spanning trees of the network, so their distinct levels differ by far more.
"""


def static_gains_N(model: CellArray, force_on_N: ArrayLike, output: str) -> NDArray[np.float64]:
    """Return the static force at `output` of each cell alone, in N, (K,).

    Parameters
    ----------
    force_on_N : (K,) array, F of every cell while on
    output : `array.left_N` or `array.right_N`
    """
    F_N: NDArray[np.float64] = np.asarray(force_on_N, dtype=float)
    return model.static_gain(output) * F_N


def levels_N(static_gains_N: ArrayLike, cell_N: float | None = None) -> NDArray[np.float64]:
    """Return the distinct sums of the static gains over all on/off sets, ascending, in N.

    Sums are built cell by cell and equal ones are merged at once, so the cost is the number of
    cells times the number of levels, not 2^N.

    Parameters
    ----------
    cell_N : blocked force of the strongest cell by itself, by which rounding is judged; default:
        the largest gain. An array that a broken cell has cut has gains of rounding alone.

    Raises
    ------
    ModelError
        There are more than LEVELS_MAX levels.
    """
    gains_N = np.asarray(static_gains_N, dtype=float)
    own_N = float(np.abs(gains_N).max(initial=0.0)) if cell_N is None else cell_N
    levels = _distinct_sums(gains_N, SAME_LEVEL * own_N, LEVELS_MAX)
    if not len(levels):
        raise ModelError(
            f"{len(gains_N)} cells have more than {LEVELS_MAX} force levels: too many to list"
        )
    return np.asarray(levels)


def force_levels_N(model: CellArray, force_on_N: ArrayLike, output: str) -> NDArray[np.float64]:
    """Return the distinct static forces at `output`, ascending; see `levels_N`."""
    own_N = np.abs(model.coefficients.phi * np.asarray(force_on_N, dtype=float))
    return levels_N(static_gains_N(model, force_on_N, output), float(own_N.max(initial=0.0)))


def count_levels(
    gains_N: NDArray[np.float64],
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the number of levels and the smallest step between neighbours, for many arrays.

    Parameters
    ----------
    gains_N : (B, N) array, static gains of B arrays of N cells

    Returns
    -------
    n_levels : (B,) array
    smallest_step : (B,) array, in the unit of the gains; 0 for a single level

    Raises
    ------
    ModelError
        One of the arrays has more than LEVELS_MAX levels.
    """
    n_levels, smallest_step = _count_levels(
        np.ascontiguousarray(gains_N, dtype=float), SAME_LEVEL, LEVELS_MAX
    )
    if not np.all(n_levels):
        raise ModelError(f"an array has more than {LEVELS_MAX} force levels: too many to list")
    return n_levels, smallest_step


@njit(cache=True)
def _distinct_sums(
    gains_N: NDArray[np.float64], tolerance: float, n_max: int
) -> NDArray[np.float64]:
    """Return the subset sums, ascending, merged within the tolerance; empty beyond n_max."""
    sums = np.zeros(1)
    for gain_N in gains_N:
        n = len(sums)
        merged = np.empty(2 * n)
        n_merged, i, j = 0, 0, 0
        while i < n or j < n:
            if j == n or (i < n and sums[i] <= sums[j] + gain_N):
                value = sums[i]
                i += 1
            else:
                value = sums[j] + gain_N
                j += 1
            if n_merged == 0 or value - merged[n_merged - 1] > tolerance:
                merged[n_merged] = value
                n_merged += 1
        if n_merged > n_max:
            return np.empty(0)
        sums = merged[:n_merged].copy()
    return sums


@njit(cache=True)
def _count_levels(
    gains_N: NDArray[np.float64], same_level: float, n_max: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    n_arrays = len(gains_N)
    n_levels = np.zeros(n_arrays, dtype=np.int64)
    smallest_step = np.zeros(n_arrays)
    for b in range(n_arrays):
        levels = _distinct_sums(gains_N[b], same_level * np.abs(gains_N[b]).max(), n_max)
        n_levels[b] = len(levels)
        if len(levels) > 1:
            smallest_step[b] = np.min(np.diff(levels))
    return n_levels, smallest_step
