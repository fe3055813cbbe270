"""Statics of many small networks at once, each with its own set of failed cells."""

import numpy as np
from numpy.typing import NDArray

from hil.mechanics.arrays import Array

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def held_masses(left: Ints, right: Ints, live: Bools, fixed: Bools) -> Bools:
    """Return the masses that live cells connect to a fixed mass, fixed masses included.

    Parameters
    ----------
    left, right : (N,) or (S, N) int arrays
        End masses of every cell, in each system or the same in all.
    live : (S, N) bool array, cells that carry load
    fixed : (M,) bool array, masses that do not move

    Returns
    -------
    (S, M) bool array
    """
    n_systems, n_cells = live.shape
    held = np.tile(fixed, (n_systems, 1))
    rows = np.arange(n_systems)
    left, right = np.broadcast_to(left, live.shape), np.broadcast_to(right, live.shape)
    n_held = -1
    while n_held != (n_held := int(held.sum())):
        for n in (*range(n_cells), *reversed(range(n_cells))):
            a, b = left[:, n], right[:, n]
            joined = live[:, n] & (held[rows, a] | held[rows, b])
            held[rows, a] |= joined
            held[rows, b] |= joined
    return held


def end_gains(
    left: Ints, right: Ints, K_N_per_m: Array, works: Bools, fixed: Bools, at_end: Bools
) -> Array:
    """Return the static force at an end per newton of every cell's force, in N/N.

    Same as `CellArray.static_gain`, for S systems at once and without phi::

        g = h - E z,    E^T K E z = E^T K h    (free masses only)

    Floating masses are excluded from the solve. Cells at a floating mass and broken cells have
    g = 0. The result contains no NaN.

    Parameters
    ----------
    left, right : (N,) or (S, N) int arrays
        End masses of every cell, in each system or the same in all.
    K_N_per_m : (N,) array, static stiffness of every intact cell
    works : (S, N) bool array, False for a mechanically broken cell
    fixed : (M,) bool array, masses that do not move
    at_end : (N,) or (S, N) bool array, cells whose tensions the force sums: h

    Returns
    -------
    (S, N) array
    """
    K = K_N_per_m * works
    held = held_masses(left, right, K != 0.0, fixed)
    free = np.flatnonzero(~fixed)
    h = np.broadcast_to(at_end, works.shape).astype(float)
    unit = np.eye(len(fixed))
    E = (unit[right] - unit[left])[..., free]
    E_T = np.swapaxes(E, -1, -2)
    solved = held[:, free]
    # A floating mass keeps only the diagonal 1 of its row, which makes its z equal 0.
    L = (E_T * K[:, None, :]) @ E * (solved[:, :, None] & solved[:, None, :])
    L += np.where(solved, 0.0, 1.0)[:, :, None] * np.eye(len(free))
    load = (E_T @ (K * h)[:, :, None])[:, :, 0] * solved
    z = np.linalg.solve(L, load[:, :, None])
    gain = h - (E @ z)[:, :, 0]
    rows = np.arange(len(works))[:, None]
    left, right = np.broadcast_to(left, works.shape), np.broadcast_to(right, works.shape)
    return np.where(works & held[rows, left] & held[rows, right], gain, 0.0)
