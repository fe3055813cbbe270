"""Articulated-body recursion of a planar tree, O(N), including the implicit element terms.

All quantities are in world axes and refer to the body's own joint, so the transformation from body
to parent is a shift r without rotation. With W = [alpha; a] (a of the point at the joint):

    W_i = X_i W_p + [x_i; 0] + [0; -omega_p^2 r_i],  X = [[1, 0, 0], [-r_y, 1, 0], [r_x, 0, 1]]
    F_i = I_i W_i + p_i + sum_children X^T F,        p_i = [0; -omega_i^2 m c_i]
    J^T F_i = f_i - kappa_i x_i                      (f: torque of drives and elements at q*, v*)

I articulated is symmetric: rows J, h1, h2; h1, A, B; h2, B, C. Gravity is an acceleration of the
base. Source: Iwamura et al., eqs (1)-(4); Featherstone 2008, ch. 7, for the recursion.
"""

import numpy as np

from hil.compiled import njit
from hil.systems.soft.tree import SoftTree

# Rows of `geo`: joint in the parent's frame, rotation there, mass, m c, inertia about the joint.
AX, AY, PHI, M, MCX, MCY, IO = range(7)
# Rows of `w`.
C, S, TH, OM, RX, RY, BX, BY, J, H1, H2, A, B, G, P0, P1, P2, U, INV, AL, ACX, ACY = range(22)
ROWS = 22


def geometry(tree: SoftTree) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Return the constants of every body for the recursion, (7, N)."""
    geo = np.empty((7, tree.n))
    for i, body in enumerate(tree.bodies):
        turn = np.asarray(body.joint_turn, dtype=float)
        cx, cy = body.centre_m[0], body.centre_m[1]
        m = body.mass_kg
        geo[:, i] = (
            body.joint_at_m[0], body.joint_at_m[1], np.arctan2(turn[1, 0], turn[0, 0]),
            m, m * cx, m * cy, body.inertia[2, 2] + m * (cx * cx + cy * cy),
        )  # fmt: skip
    return geo


@njit(cache=True, error_model="numpy")
def forward(parent, geo, q, v, w):  # type: ignore[no-untyped-def]
    """Compute rotations, rates and rigid-body terms of every body."""
    for i in range(len(parent)):
        p = parent[i]
        ax, ay = geo[AX, i], geo[AY, i]
        th, om, rx, ry = geo[PHI, i] + q[i], v[i], ax, ay
        om_p = 0.0
        if p >= 0:
            th += w[TH, p]
            om_p = w[OM, p]
            om += om_p
            rx = w[C, p] * ax - w[S, p] * ay
            ry = w[S, p] * ax + w[C, p] * ay
        c, s = np.cos(th), np.sin(th)
        mx = c * geo[MCX, i] - s * geo[MCY, i]
        my = s * geo[MCX, i] + c * geo[MCY, i]
        w[C, i], w[S, i], w[TH, i], w[OM, i] = c, s, th, om
        w[RX, i], w[RY, i] = rx, ry
        w[BX, i], w[BY, i] = -om_p * om_p * rx, -om_p * om_p * ry
        w[J, i], w[H1, i], w[H2, i] = geo[IO, i], -my, mx
        w[A, i], w[B, i], w[G, i] = geo[M, i], 0.0, geo[M, i]
        w[P0, i], w[P1, i], w[P2, i] = 0.0, -om * om * mx, -om * om * my


@njit(cache=True, error_model="numpy")
def poses(parent, w, pose):  # type: ignore[no-untyped-def]
    """Compute R, p, omega and velocity of every joint's frame, (N, 18), after `forward`."""
    for i in range(len(parent)):
        p = parent[i]
        rx, ry = w[RX, i], w[RY, i]
        x, y, vx, vy = rx, ry, 0.0, 0.0
        if p >= 0:
            x += pose[p, 9]
            y += pose[p, 10]
            vx = pose[p, 15] - w[OM, p] * ry
            vy = pose[p, 16] + w[OM, p] * rx
        pose[i, :] = 0.0
        pose[i, 0], pose[i, 1], pose[i, 3], pose[i, 4] = w[C, i], -w[S, i], w[S, i], w[C, i]
        pose[i, 8] = 1.0
        pose[i, 9], pose[i, 10] = x, y
        pose[i, 14] = w[OM, i]
        pose[i, 15], pose[i, 16] = vx, vy


@njit(cache=True, error_model="numpy")
def push(wrench, w):  # type: ignore[no-untyped-def]
    """Subtract external forces, (N, 6) moment about the joint and force, from the bias."""
    for i in range(len(wrench)):
        w[P0, i] -= wrench[i, 2]
        w[P1, i] -= wrench[i, 3]
        w[P2, i] -= wrench[i, 4]


@njit(cache=True, error_model="numpy")
def backward(parent, kappa, f, gravity, w, x):  # type: ignore[no-untyped-def]
    """Compute accelerations x of the joints."""
    for i in range(len(parent) - 1, -1, -1):
        j, h1, h2 = w[J, i], w[H1, i], w[H2, i]
        inv = 1.0 / (j + kappa[i])
        u = f[i] - w[P0, i]
        w[U, i], w[INV, i] = u, inv
        p = parent[i]
        if p < 0:
            continue
        rx, ry, bx, by = w[RX, i], w[RY, i], w[BX, i], w[BY, i]
        h1d, h2d, held = h1 * inv, h2 * inv, kappa[i] * inv
        i00, i01, i02 = j * held, h1 * held, h2 * held
        i11, i12, i22 = w[A, i] - h1 * h1d, w[B, i] - h1 * h2d, w[G, i] - h2 * h2d
        p1 = w[P1, i] + h1d * u + i11 * bx + i12 * by
        p2 = w[P2, i] + h2d * u + i12 * bx + i22 * by
        p0 = w[P0, i] + j * inv * u + i01 * bx + i02 * by
        s1 = i01 - ry * i11 + rx * i12
        s2 = i02 - ry * i12 + rx * i22
        w[J, p] += i00 - ry * (i01 + s1) + rx * (i02 + s2)
        w[H1, p] += s1
        w[H2, p] += s2
        w[A, p] += i11
        w[B, p] += i12
        w[G, p] += i22
        w[P0, p] += p0 - ry * p1 + rx * p2
        w[P1, p] += p1
        w[P2, p] += p2
    for i in range(len(parent)):
        p = parent[i]
        al, ax, ay = 0.0, -gravity[0], -gravity[1]
        if p >= 0:
            al = w[AL, p]
            ax = w[ACX, p] - al * w[RY, i] + w[BX, i]
            ay = w[ACY, p] + al * w[RX, i] + w[BY, i]
        x[i] = (w[U, i] - w[J, i] * al - w[H1, i] * ax - w[H2, i] * ay) * w[INV, i]
        w[AL, i], w[ACX, i], w[ACY, i] = al + x[i], ax, ay
