"""Impulses at points on rough ground: unilateral contact with Coulomb friction.

Each point has a normal impulse and two tangential ones, and the velocities after it are
w = G lambda + u. Of each point, with t for its tangential and n for its normal components::

    lambda_n >= 0,  w_n >= 0,  lambda_n w_n = 0
    |lambda_t| <= mu lambda_n,  and if w_t is not zero  lambda_t = -mu lambda_n w_t / |w_t|

So every point opens, sticks (its three equations are w = 0) or slides. The laws of all points
together are the roots of Alart and Curnier's functions, where proj is the projection on the disk::

    lambda_n - max(0, lambda_n - rho w_n) = 0
    lambda_t - proj(lambda_t - rho w_t; radius mu max(0, lambda_n - rho w_n)) = 0

They are found by Newton's method, with half steps where whole ones do not help. In every iteration
each point has one of the three modes, and gives the equations of that mode. If points are on one
body, G is singular, and a step is the one of least norm. A solution exists for points on a plane
(Acary et al.); if Newton's method does not reach it from one start, others are tried.

Source: P. Alart & A. Curnier, Comput. Methods Appl. Mech. Eng. 92, 1991; V. Acary, F. Cadoux,
C. Lemarechal & J. Malick, ZAMM 91, 2011 (existence); J. J. Moreau, CISM 302, 1988 (law).
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hil.compiled import njit
from hil.errors import ModelError

Array = NDArray[np.float64]

STARTS = 200
ITERATIONS = 60
SETTLED = 1e-13  # residual of Newton's method, relative to the largest velocity
FULFILLED = 1e-10  # residual at which the law counts as fulfilled
DEPENDENT = 1e-11  # singular values below this share of the largest belong to dependent equations
ENOUGH = 1e-4  # fraction of the decrease of the residual that a whole step must give


def coulomb_impulses(G: ArrayLike, u: ArrayLike, mu: float) -> Array:
    """Return the impulses (points, 3) in N s, each (x, y, normal).

    If several give the same velocities, one of them is returned.

    Parameters
    ----------
    G : (3 k, 3 k) B M^-1 B^T in 1/kg, B the Jacobian of the k points, each (x, y, normal)
    u : (3 k,) velocities in m/s that the points would have without impulses
    mu : coefficient of friction

    Raises
    ------
    ModelError
        A value is not finite, or no solution is found.
    """
    mobility, free = np.asarray(G, dtype=np.float64), np.asarray(u, dtype=np.float64)
    if np.isfinite(mobility).all() and np.isfinite(free).all():
        # One size for all points, so that rho = 1: diagonal entries of G become 1 in the mean.
        size = np.repeat(1.0 / np.sqrt(np.diag(mobility).reshape(-1, 3).mean(axis=1)), 3)
        scaled = np.ascontiguousarray(size[:, None] * mobility * size)
        free = size * free
        fastest = float(np.abs(free).max())
        for impulse in _starts(scaled, free, mu):
            rest = _newton(scaled, free, float(mu), impulse, SETTLED * fastest)
            if rest <= FULFILLED * fastest:
                impulses: Array = (size * impulse).reshape(-1, 3)
                return impulses
    raise ModelError(
        f"friction = {mu:g}: the impulses of points on the ground are not found: "
        "lower the friction, or leave out supports that are close together"
    )


def _starts(G: Array, u: Array, mu: float) -> Iterator[Array]:
    """Yield impulses to start from: all points stick, then drawn ones, the same in every call."""
    yield np.asarray(np.linalg.lstsq(G, -u, rcond=DEPENDENT)[0], dtype=np.float64)
    rng, points = np.random.default_rng(0), len(u) // 3
    for _ in range(STARTS):
        normal = rng.exponential(np.abs(u).max(), points) * rng.integers(0, 2, points)
        along = mu * normal[:, None] * rng.normal(size=(points, 2))
        yield np.column_stack((along, normal)).ravel()


@njit(cache=True)
def _newton(G: Array, u: Array, mu: float, impulse: Array, settled: float) -> float:
    """Improve impulses until the residual has settled; return the residual."""
    m = len(u)
    rest, slope = np.empty(m), np.empty((m, m))
    new_rest, new_slope = np.empty(m), np.empty((m, m))
    _laws(G, u, mu, impulse, rest, slope)
    norm = np.sqrt((rest**2).sum())
    for _ in range(ITERATIONS):
        if norm <= settled:
            break
        step = np.linalg.lstsq(slope, -rest, DEPENDENT)[0]
        for share in (1.0, 0.5):  # not shorter: it would end in minima that are no roots
            new = impulse + share * step
            _laws(G, u, mu, new, new_rest, new_slope)
            new_norm = np.sqrt((new_rest**2).sum())
            if new_norm <= (1.0 - ENOUGH * share) * norm:
                break
        impulse[:], rest[:], slope[:], norm = new, new_rest, new_slope, new_norm
    w = G @ impulse + u
    for x in range(0, m, 3):
        if impulse[x + 2] <= max(w[x + 2], 0.0):  # opens: zero to the last digit
            impulse[x : x + 3] = 0.0
    return float(norm)


@njit(cache=True)
def _laws(G: Array, u: Array, mu: float, impulse: Array, rest: Array, slope: Array) -> None:
    """Fill Alart and Curnier's functions, rho = 1, and their derivatives."""
    w = G @ impulse + u
    slope[:] = 0.0
    for x in range(0, len(u), 3):
        y, n = x + 1, x + 2
        normal = impulse[n] - w[n]
        if normal <= 0.0:  # opens
            for a in range(x, x + 3):
                rest[a], slope[a, a] = impulse[a], 1.0
            continue
        rest[n] = w[n]
        slope[n] = G[n]
        px, py = impulse[x] - w[x], impulse[y] - w[y]
        size, radius = np.hypot(px, py), mu * normal
        if size <= radius:  # sticks
            rest[x], rest[y] = w[x], w[y]
            slope[x], slope[y] = G[x], G[y]
            continue
        ex, ey, shrinks = px / size, py / size, radius / size  # slides against (ex, ey)
        rest[x], rest[y] = impulse[x] - radius * ex, impulse[y] - radius * ey
        for j in range(len(u)):
            across = shrinks * (ey * ((j == x) - G[x, j]) - ex * ((j == y) - G[y, j]))
            grows = mu * ((j == n) - G[n, j])
            slope[x, j] = (j == x) - grows * ex - across * ey
            slope[y, j] = (j == y) - grows * ey + across * ex
