"""Articulated-body recursion of a spatial tree, O(N), including the implicit element terms.

As in `hil.systems.soft.planar`, all quantities are in world axes and refer to the body's own
joint. W = [alpha; a]; S = [s; 0] for a rotating and [0; s] for a sliding joint:

    alpha_i = alpha_p + s x + omega_p x s v                                      (turns)
    a_i     = a_p + alpha_p x r + omega_p x (omega_p x r) (+ s x + 2 omega_p x s v: slides)
    [M; F]_i = [[A, H], [H^T, G]] W_i + [omega x I omega; omega x (omega x m c)] + children's
    S^T [M; F]_i = f_i - kappa_i x_i

Rigid: A = I about the joint, H = m [c]x, G = m. Source: Iwamura et al., eqs (1)-(4); Featherstone
2008, ch. 7.
"""

import numpy as np

from hil.compiled import njit
from hil.systems.soft.tree import SoftTree

# Rows of `geo`: joint in the parent's frame (3), rotation there (9), axis (3), mass, m c (3),
# inertia about the joint (xx xy xz yy yz zz), slides.
AT, TURN, AXIS, M, MC, IO, SLIDES = 0, 3, 12, 15, 16, 19, 25
GEO = 26
# Rows of `w`, body by body: R (9), p, omega, v (as in `pose`), r, s, bias (6), A (xx xy xz yy yz
# zz), H (9, by rows), G (6), bias force (6), I S (6), u, 1/D, alpha, a.
R, P, OM, V, RR, SS, BI, A, H, G, PA, UU, U, INV, AL, AC = (
    0, 9, 12, 15, 18, 21, 24, 30, 36, 45, 51, 57, 63, 64, 65, 68,
)  # fmt: skip
ROWS = 71


def geometry(tree: SoftTree) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Return the constants of every body for the recursion, (N, 26)."""
    geo = np.empty((tree.n, GEO))
    for i, body in enumerate(tree.bodies):
        c, m = np.asarray(body.centre_m, dtype=float), body.mass_kg
        about = body.inertia + m * (c @ c * np.eye(3) - np.outer(c, c))
        geo[i, AT:TURN] = body.joint_at_m
        geo[i, TURN:AXIS] = np.asarray(body.joint_turn, dtype=float).ravel()
        geo[i, AXIS:M] = body.axis
        geo[i, M] = m
        geo[i, MC:IO] = m * c
        geo[i, IO:SLIDES] = about[np.triu_indices(3)]
        geo[i, SLIDES] = body.slides
    return geo


@njit(inline="always")
def _cross(a0, a1, a2, b0, b1, b2):  # type: ignore[no-untyped-def]
    return a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0


@njit(inline="always")
def _turned(w, i, x, y, z):  # type: ignore[no-untyped-def]
    """Return a vector of body i's frame in world axes."""
    return (
        w[i, 0] * x + w[i, 1] * y + w[i, 2] * z,
        w[i, 3] * x + w[i, 4] * y + w[i, 5] * z,
        w[i, 6] * x + w[i, 7] * y + w[i, 8] * z,
    )


@njit(inline="always")
def _set(w, i, at, three):  # type: ignore[no-untyped-def]
    w[i, at], w[i, at + 1], w[i, at + 2] = three


@njit(cache=True, error_model="numpy")
def _turn(geo, i, q, base, w, p):  # type: ignore[no-untyped-def]
    """R_i = R_p T (1 + sin q [a]x + (1 - cos q) [a]x^2)."""
    a0, a1, a2 = geo[i, AXIS], geo[i, AXIS + 1], geo[i, AXIS + 2]
    s, c1 = 0.0, 0.0
    if geo[i, SLIDES] == 0.0:
        half = np.sin(0.5 * q)
        s, c1 = np.sin(q), 2.0 * half * half
    e00, e11, e22 = 1.0 - c1 * (1 - a0 * a0), 1.0 - c1 * (1 - a1 * a1), 1.0 - c1 * (1 - a2 * a2)
    e01, e10 = c1 * a0 * a1 - s * a2, c1 * a0 * a1 + s * a2
    e02, e20 = c1 * a0 * a2 + s * a1, c1 * a0 * a2 - s * a1
    e12, e21 = c1 * a1 * a2 - s * a0, c1 * a1 * a2 + s * a0
    for row in range(3):
        if p >= 0:
            r0, r1, r2 = w[p, 3 * row], w[p, 3 * row + 1], w[p, 3 * row + 2]
        else:
            r0, r1, r2 = base[3 * row], base[3 * row + 1], base[3 * row + 2]
        t0 = r0 * geo[i, TURN] + r1 * geo[i, TURN + 3] + r2 * geo[i, TURN + 6]
        t1 = r0 * geo[i, TURN + 1] + r1 * geo[i, TURN + 4] + r2 * geo[i, TURN + 7]
        t2 = r0 * geo[i, TURN + 2] + r1 * geo[i, TURN + 5] + r2 * geo[i, TURN + 8]
        w[i, 3 * row] = t0 * e00 + t1 * e10 + t2 * e20
        w[i, 3 * row + 1] = t0 * e01 + t1 * e11 + t2 * e21
        w[i, 3 * row + 2] = t0 * e02 + t1 * e12 + t2 * e22


@njit(cache=True, error_model="numpy")
def forward(parent, geo, q, v, base, w):  # type: ignore[no-untyped-def]
    """Compute rotations, positions, rates and rigid-body terms of every body."""
    for i in range(len(parent)):
        p = parent[i]
        _turn(geo, i, q[i], base, w, p)
        s0, s1, s2 = _turned(w, i, geo[i, AXIS], geo[i, AXIS + 1], geo[i, AXIS + 2])
        if p >= 0:
            r0, r1, r2 = _turned(w, p, geo[i, AT], geo[i, AT + 1], geo[i, AT + 2])
            x0, x1, x2 = w[p, P], w[p, P + 1], w[p, P + 2]
            o0, o1, o2 = w[p, OM], w[p, OM + 1], w[p, OM + 2]
            v0, v1, v2 = w[p, V], w[p, V + 1], w[p, V + 2]
        else:
            a0, a1, a2 = geo[i, AT], geo[i, AT + 1], geo[i, AT + 2]
            r0 = base[0] * a0 + base[1] * a1 + base[2] * a2
            r1 = base[3] * a0 + base[4] * a1 + base[5] * a2
            r2 = base[6] * a0 + base[7] * a1 + base[8] * a2
            x0, x1, x2 = base[9], base[10], base[11]
            o0, o1, o2 = base[12], base[13], base[14]
            v0, v1, v2 = base[15], base[16], base[17]
        slides = geo[i, SLIDES] != 0.0
        w0, w1, w2 = s0 * v[i], s1 * v[i], s2 * v[i]
        if slides:
            r0, r1, r2 = r0 + s0 * q[i], r1 + s1 * q[i], r2 + s2 * q[i]
        d0, d1, d2 = _cross(o0, o1, o2, r0, r1, r2)
        k0, k1, k2 = _cross(o0, o1, o2, w0, w1, w2)
        l0, l1, l2 = _cross(o0, o1, o2, d0, d1, d2)
        _set(w, i, P, (x0 + r0, x1 + r1, x2 + r2))
        _set(w, i, RR, (r0, r1, r2))
        _set(w, i, SS, (s0, s1, s2))
        if slides:
            _set(w, i, OM, (o0, o1, o2))
            _set(w, i, V, (v0 + d0 + w0, v1 + d1 + w1, v2 + d2 + w2))
            _set(w, i, BI, (0.0, 0.0, 0.0))
            _set(w, i, BI + 3, (l0 + 2.0 * k0, l1 + 2.0 * k1, l2 + 2.0 * k2))
        else:
            _set(w, i, OM, (o0 + w0, o1 + w1, o2 + w2))
            _set(w, i, V, (v0 + d0, v1 + d1, v2 + d2))
            _set(w, i, BI, (k0, k1, k2))
            _set(w, i, BI + 3, (l0, l1, l2))
        _rigid(geo, i, w)


@njit(cache=True, error_model="numpy")
def _rigid(geo, i, w):  # type: ignore[no-untyped-def]
    """Compute inertia in world axes and bias force of one body."""
    m = geo[i, M]
    for k in range(A, UU):
        w[i, k] = 0.0
    if m == 0.0 and geo[i, IO] + geo[i, IO + 3] + geo[i, IO + 5] == 0.0:
        return
    c0, c1, c2 = _turned(w, i, geo[i, MC], geo[i, MC + 1], geo[i, MC + 2])
    xx, xy, xz = geo[i, IO], geo[i, IO + 1], geo[i, IO + 2]
    yy, yz, zz = geo[i, IO + 3], geo[i, IO + 4], geo[i, IO + 5]
    u0, u1, u2 = _turned(w, i, xx, xy, xz)  # columns of R I
    v0, v1, v2 = _turned(w, i, xy, yy, yz)
    t0, t1, t2 = _turned(w, i, xz, yz, zz)
    a00 = u0 * w[i, 0] + v0 * w[i, 1] + t0 * w[i, 2]
    a01 = u0 * w[i, 3] + v0 * w[i, 4] + t0 * w[i, 5]
    a02 = u0 * w[i, 6] + v0 * w[i, 7] + t0 * w[i, 8]
    a11 = u1 * w[i, 3] + v1 * w[i, 4] + t1 * w[i, 5]
    a12 = u1 * w[i, 6] + v1 * w[i, 7] + t1 * w[i, 8]
    a22 = u2 * w[i, 6] + v2 * w[i, 7] + t2 * w[i, 8]
    _set(w, i, A, (a00, a01, a02))
    _set(w, i, A + 3, (a11, a12, a22))
    w[i, H + 1], w[i, H + 2], w[i, H + 3] = -c2, c1, c2
    w[i, H + 5], w[i, H + 6], w[i, H + 7] = -c0, -c1, c0
    w[i, G], w[i, G + 3], w[i, G + 5] = m, m, m
    o0, o1, o2 = w[i, OM], w[i, OM + 1], w[i, OM + 2]
    l0 = a00 * o0 + a01 * o1 + a02 * o2
    l1 = a01 * o0 + a11 * o1 + a12 * o2
    l2 = a02 * o0 + a12 * o1 + a22 * o2
    _set(w, i, PA, _cross(o0, o1, o2, l0, l1, l2))
    d0, d1, d2 = _cross(o0, o1, o2, c0, c1, c2)
    _set(w, i, PA + 3, _cross(o0, o1, o2, d0, d1, d2))


@njit(cache=True, error_model="numpy")
def push(wrench, w):  # type: ignore[no-untyped-def]
    """Subtract external forces, (N, 6) moment about the joint and force, from the bias."""
    for i in range(len(wrench)):
        for k in range(6):
            w[i, PA + k] -= wrench[i, k]


@njit(cache=True, error_model="numpy")
def backward(tree, joints, ground, w, x):  # type: ignore[no-untyped-def]
    """Compute accelerations x of the joints; joints: (kappa, f), ground: (base, gravity)."""
    (parent, geo), (kappa, f), (base, g) = tree, joints, ground
    for i in range(len(parent) - 1, -1, -1):
        s0, s1, s2 = w[i, SS], w[i, SS + 1], w[i, SS + 2]
        if geo[i, SLIDES] == 0.0:
            u0 = w[i, A] * s0 + w[i, A + 1] * s1 + w[i, A + 2] * s2
            u1 = w[i, A + 1] * s0 + w[i, A + 3] * s1 + w[i, A + 4] * s2
            u2 = w[i, A + 2] * s0 + w[i, A + 4] * s1 + w[i, A + 5] * s2
            u3 = w[i, H] * s0 + w[i, H + 3] * s1 + w[i, H + 6] * s2
            u4 = w[i, H + 1] * s0 + w[i, H + 4] * s1 + w[i, H + 7] * s2
            u5 = w[i, H + 2] * s0 + w[i, H + 5] * s1 + w[i, H + 8] * s2
            d = u0 * s0 + u1 * s1 + u2 * s2
            u = f[i] - (s0 * w[i, PA] + s1 * w[i, PA + 1] + s2 * w[i, PA + 2])
        else:
            u0 = w[i, H] * s0 + w[i, H + 1] * s1 + w[i, H + 2] * s2
            u1 = w[i, H + 3] * s0 + w[i, H + 4] * s1 + w[i, H + 5] * s2
            u2 = w[i, H + 6] * s0 + w[i, H + 7] * s1 + w[i, H + 8] * s2
            u3 = w[i, G] * s0 + w[i, G + 1] * s1 + w[i, G + 2] * s2
            u4 = w[i, G + 1] * s0 + w[i, G + 3] * s1 + w[i, G + 4] * s2
            u5 = w[i, G + 2] * s0 + w[i, G + 4] * s1 + w[i, G + 5] * s2
            d = u3 * s0 + u4 * s1 + u5 * s2
            u = f[i] - (s0 * w[i, PA + 3] + s1 * w[i, PA + 4] + s2 * w[i, PA + 5])
        inv = 1.0 / (d + kappa[i])
        w[i, U], w[i, INV] = u, inv
        _set(w, i, UU, (u0, u1, u2))
        _set(w, i, UU + 3, (u3, u4, u5))
        p = parent[i]
        if p < 0:
            continue
        e0, e1, e2, e3, e4, e5 = u0 * inv, u1 * inv, u2 * inv, u3 * inv, u4 * inv, u5 * inv
        # I - U U^T / D, block by block
        a00, a01, a02 = w[i, A] - u0 * e0, w[i, A + 1] - u0 * e1, w[i, A + 2] - u0 * e2
        a11, a12, a22 = w[i, A + 3] - u1 * e1, w[i, A + 4] - u1 * e2, w[i, A + 5] - u2 * e2
        h00, h01, h02 = w[i, H] - u0 * e3, w[i, H + 1] - u0 * e4, w[i, H + 2] - u0 * e5
        h10, h11, h12 = w[i, H + 3] - u1 * e3, w[i, H + 4] - u1 * e4, w[i, H + 5] - u1 * e5
        h20, h21, h22 = w[i, H + 6] - u2 * e3, w[i, H + 7] - u2 * e4, w[i, H + 8] - u2 * e5
        g00, g01, g02 = w[i, G] - u3 * e3, w[i, G + 1] - u3 * e4, w[i, G + 2] - u3 * e5
        g11, g12, g22 = w[i, G + 3] - u4 * e4, w[i, G + 4] - u4 * e5, w[i, G + 5] - u5 * e5
        b0, b1, b2 = w[i, BI], w[i, BI + 1], w[i, BI + 2]
        b3, b4, b5 = w[i, BI + 3], w[i, BI + 4], w[i, BI + 5]
        m0 = w[i, PA] + e0 * u + a00 * b0 + a01 * b1 + a02 * b2 + h00 * b3 + h01 * b4 + h02 * b5
        m1 = w[i, PA + 1] + e1 * u + a01 * b0 + a11 * b1 + a12 * b2 + h10 * b3 + h11 * b4 + h12 * b5
        m2 = w[i, PA + 2] + e2 * u + a02 * b0 + a12 * b1 + a22 * b2 + h20 * b3 + h21 * b4 + h22 * b5
        f0 = w[i, PA + 3] + e3 * u + h00 * b0 + h10 * b1 + h20 * b2 + g00 * b3 + g01 * b4 + g02 * b5
        f1 = w[i, PA + 4] + e4 * u + h01 * b0 + h11 * b1 + h21 * b2 + g01 * b3 + g11 * b4 + g12 * b5
        f2 = w[i, PA + 5] + e5 * u + h02 * b0 + h12 * b1 + h22 * b2 + g02 * b3 + g12 * b4 + g22 * b5
        # to the parent's joint: H' = H + [r]x G, A' = A + ([r]x H^T)^T + [r]x H'^T
        r0, r1, r2 = w[i, RR], w[i, RR + 1], w[i, RR + 2]
        n00, n10, n20 = _cross(r0, r1, r2, g00, g01, g02)
        n01, n11, n21 = _cross(r0, r1, r2, g01, g11, g12)
        n02, n12, n22 = _cross(r0, r1, r2, g02, g12, g22)
        n00, n01, n02 = n00 + h00, n01 + h01, n02 + h02
        n10, n11, n12 = n10 + h10, n11 + h11, n12 + h12
        n20, n21, n22 = n20 + h20, n21 + h21, n22 + h22
        t00, t10, t20 = _cross(r0, r1, r2, h00, h01, h02)
        _, t11, t21 = _cross(r0, r1, r2, h10, h11, h12)
        _, _, t22 = _cross(r0, r1, r2, h20, h21, h22)
        z00, _, _ = _cross(r0, r1, r2, n00, n01, n02)
        z01, z11, _ = _cross(r0, r1, r2, n10, n11, n12)
        z02, z12, z22 = _cross(r0, r1, r2, n20, n21, n22)
        w[p, A] += a00 + t00 + z00
        w[p, A + 1] += a01 + t10 + z01
        w[p, A + 2] += a02 + t20 + z02
        w[p, A + 3] += a11 + t11 + z11
        w[p, A + 4] += a12 + t21 + z12
        w[p, A + 5] += a22 + t22 + z22
        w[p, H] += n00
        w[p, H + 1] += n01
        w[p, H + 2] += n02
        w[p, H + 3] += n10
        w[p, H + 4] += n11
        w[p, H + 5] += n12
        w[p, H + 6] += n20
        w[p, H + 7] += n21
        w[p, H + 8] += n22
        w[p, G] += g00
        w[p, G + 1] += g01
        w[p, G + 2] += g02
        w[p, G + 3] += g11
        w[p, G + 4] += g12
        w[p, G + 5] += g22
        k0, k1, k2 = _cross(r0, r1, r2, f0, f1, f2)
        w[p, PA] += m0 + k0
        w[p, PA + 1] += m1 + k1
        w[p, PA + 2] += m2 + k2
        w[p, PA + 3] += f0
        w[p, PA + 4] += f1
        w[p, PA + 5] += f2
    for i in range(len(parent)):
        p = parent[i]
        if p >= 0:
            l0, l1, l2 = w[p, AL], w[p, AL + 1], w[p, AL + 2]
            c0, c1, c2 = w[p, AC], w[p, AC + 1], w[p, AC + 2]
        else:
            l0, l1, l2 = base[18], base[19], base[20]
            c0, c1, c2 = base[21] - g[0], base[22] - g[1], base[23] - g[2]
        k0, k1, k2 = _cross(l0, l1, l2, w[i, RR], w[i, RR + 1], w[i, RR + 2])
        l0, l1, l2 = l0 + w[i, BI], l1 + w[i, BI + 1], l2 + w[i, BI + 2]
        c0 += k0 + w[i, BI + 3]
        c1 += k1 + w[i, BI + 4]
        c2 += k2 + w[i, BI + 5]
        u0, u1, u2 = w[i, UU], w[i, UU + 1], w[i, UU + 2]
        u3, u4, u5 = w[i, UU + 3], w[i, UU + 4], w[i, UU + 5]
        rest = w[i, U] - (u0 * l0 + u1 * l1 + u2 * l2 + u3 * c0 + u4 * c1 + u5 * c2)
        x[i] = rest * w[i, INV]
        s0, s1, s2 = w[i, SS] * x[i], w[i, SS + 1] * x[i], w[i, SS + 2] * x[i]
        if geo[i, SLIDES] == 0.0:
            l0, l1, l2 = l0 + s0, l1 + s1, l2 + s2
        else:
            c0, c1, c2 = c0 + s0, c1 + s1, c2 + s2
        _set(w, i, AL, (l0, l1, l2))
        _set(w, i, AC, (c0, c1, c2))
