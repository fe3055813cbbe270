"""Impulses at points that land on rough ground: unilateral contact with Coulomb friction.

Each point has a normal impulse and two tangential ones, and the velocities after it are
w = G lambda + u. Of each point, with t for its tangential and n for its normal components::

    lambda_n >= 0,  w_n >= 0,  lambda_n w_n = 0
    |lambda_t| <= mu lambda_n,  and if w_t is not zero  lambda_t = -mu lambda_n w_t / |w_t|

The points are solved in turn, each exactly with the impulses of the others, until nothing changes
(nonlinear Gauss-Seidel).

Source: J. J. Moreau, "Unilateral contact and dry friction in finite freedom dynamics", CISM 302,
1988; M. Jean, "The non-smooth contact dynamics method", Comput. Methods Appl. Mech. Eng. 177, 1999.
"""

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from hil.errors import ModelError

Array = NDArray[np.float64]

SWEEPS_MAX = 20_000
SETTLED = 1e-11  # largest change of a velocity in a sweep, relative to the largest velocity
DIRECTIONS = 72  # first grid of sliding directions, 5 degrees apart
HALVINGS = 60


def coulomb_impulses(G: ArrayLike, u: ArrayLike, mu: float) -> Array:
    """Return the impulses (points, 3) in N s, each (x, y, normal).

    Parameters
    ----------
    G : (3 k, 3 k) B M^-1 B^T in 1/kg, B the Jacobian of the k points, each (x, y, normal)
    u : (3 k,) velocities in m/s that the points would have without impulses
    mu : coefficient of friction

    Raises
    ------
    ModelError
        A value is not finite, or the sweeps do not settle.
    """
    G, u = np.ascontiguousarray(G, dtype=float), np.ascontiguousarray(u, dtype=float)
    impulse = np.zeros(len(u))
    finite = np.isfinite(G).all() and np.isfinite(u).all()
    if not finite or not _sweep(G, u, float(mu), impulse):
        raise ModelError(
            f"friction = {mu:g}: the impulses of points on the ground do not settle: "
            "lower the friction, or leave out supports that are close together"
        )
    return impulse.reshape(-1, 3)


@njit(cache=True)
def _sweep(G: Array, u: Array, mu: float, impulse: Array) -> bool:
    """Solve every point in turn until nothing changes; False if that never happens."""
    one, before = np.empty(3), np.empty(len(u))
    fastest = np.abs(u).max()
    for _ in range(SWEEPS_MAX):
        before[:] = impulse
        for k in range(0, len(u), 3):
            w = u[k : k + 3].copy()
            for a in range(3):
                for b in range(len(u)):
                    if not k <= b < k + 3:
                        w[a] += G[k + a, b] * impulse[b]
            if not _one(G[k : k + 3, k : k + 3], w, mu, one):
                return False
            impulse[k : k + 3] = one
        # Velocities, not impulses: those of points on one body can pass on between them.
        if np.abs(G @ (impulse - before)).max() <= SETTLED * fastest:
            return True
    return False


@njit(cache=True)
def _one(G: Array, w: Array, mu: float, out: Array) -> bool:
    """Solve one point: it opens, sticks or slides; w are its velocities without its impulse."""
    out[:] = 0.0
    if w[2] >= 0.0:
        return True
    stick = np.linalg.solve(G, -w)
    if stick[2] >= 0.0 and np.hypot(stick[0], stick[1]) <= mu * stick[2]:
        out[:] = stick
        return True
    step = 2.0 * np.pi / DIRECTIONS
    low = 0.0
    side, _, _ = _turned(G, w, mu, low)
    for i in range(1, DIRECTIONS + 2):  # one overlaps: a root can lie at the first direction
        high = i * step
        next_side, _, _ = _turned(G, w, mu, high)
        if side * next_side <= 0.0:
            a, b, at_a = low, high, side
            for _ in range(HALVINGS):
                middle = 0.5 * (a + b)
                at_middle, _, _ = _turned(G, w, mu, middle)
                if at_a * at_middle <= 0.0:
                    b = middle
                else:
                    a, at_a = middle, at_middle
            angle = 0.5 * (a + b)
            _, along, normal = _turned(G, w, mu, angle)
            if normal >= 0.0 and along >= 0.0:
                out[0] = -mu * normal * np.cos(angle)
                out[1] = -mu * normal * np.sin(angle)
                out[2] = normal
                return True
        low, side = high, next_side
    return False


@njit(cache=True)
def _turned(G: Array, w: Array, mu: float, angle: float) -> tuple[float, float, float]:
    """Let the point slide along `angle`: its velocity across and along it, and lambda_n.

    The angle is right where the velocity across it is zero and that along it is not negative.
    """
    x, y = np.cos(angle), np.sin(angle)
    share = G[2, 2] - mu * (G[2, 0] * x + G[2, 1] * y)
    if share <= 0.0:
        return np.nan, np.nan, np.nan
    normal = -w[2] / share
    vx = w[0] + normal * (G[0, 2] - mu * (G[0, 0] * x + G[0, 1] * y))
    vy = w[1] + normal * (G[1, 2] - mu * (G[1, 0] * x + G[1, 1] * y))
    return x * vy - y * vx, x * vx + y * vy, normal
