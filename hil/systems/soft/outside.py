"""External forces on a soft tree: loads, tendons and contact with half-spaces."""

import numpy as np

from hil.compiled import njit, put
from hil.systems.soft.tree import SoftTree

# Rows of `lines`: k, c, l0, pulls only; then results of the last evaluation: l, l', T.
K, DAMP, L0, PULLS, LENGTH, RATE, TENSION = range(7)
GROUND_K, GROUND_PIECES = 6, 10  # columns of `grounds`


def places(tree: SoftTree):  # type: ignore[no-untyped-def]
    """Return bodies and points of loads, contacts and tendons, and each tendon's first index."""
    each = [*tree.loads, *tree.touching, *(p for t in tree.tendons for p in t.places)]
    starts = np.cumsum([0, *(len(t.places) for t in tree.tendons)])
    return (
        np.array([p.body for p in each], dtype=np.int64),
        np.array([p.at_m for p in each], dtype=float).reshape(-1, 3),
        starts + len(tree.loads) + len(tree.touching),
    )


def lines(tree: SoftTree):  # type: ignore[no-untyped-def]
    """Return the tendon table, (tendons, 7)."""
    table = np.zeros((len(tree.tendons), 7))
    for i, tendon in enumerate(tree.tendons):
        table[i, :L0] = tendon.k_N_per_m, tendon.c_N_s_per_m
        table[i, PULLS] = tendon.pulls_only
    return table


def grounds(tree: SoftTree):  # type: ignore[no-untyped-def]
    """Return the half-spaces, (grounds, 11): normal, point, k, c, friction, slip, pieces."""
    table = [
        (*np.asarray(g.normal) / np.linalg.norm(g.normal), *g.at_m, g.k_N_per_m, g.c_N_s_per_m,
         g.friction, g.slip_m_per_s, g.pieces_max)
        for g in tree.grounds
    ]  # fmt: skip
    return np.array(table).reshape(-1, 11)


@njit(cache=True, error_model="numpy")
def locate(pose, body, at, x, v):  # type: ignore[no-untyped-def]
    """Compute position and velocity of places in the world; `pose` is from `planar.poses`."""
    for k in range(len(body)):
        i = body[k]
        if i < 0:
            put(at[k], x[k])
            v[k] = 0.0
            continue
        for row in range(3):
            arm = 0.0
            for column in range(3):
                arm += pose[i, 3 * row + column] * at[k, column]
            x[k, row] = arm
        ox, oy, oz = pose[i, 12], pose[i, 13], pose[i, 14]
        v[k, 0] = pose[i, 15] + oy * x[k, 2] - oz * x[k, 1]
        v[k, 1] = pose[i, 16] + oz * x[k, 0] - ox * x[k, 2]
        v[k, 2] = pose[i, 17] + ox * x[k, 1] - oy * x[k, 0]
        for row in range(3):
            x[k, row] += pose[i, 9 + row]


@njit(cache=True, error_model="numpy")
def _add(wrench, pose, i, x, f):  # type: ignore[no-untyped-def]
    if i < 0:
        return
    fx, fy, fz = f
    dx, dy, dz = x[0] - pose[i, 9], x[1] - pose[i, 10], x[2] - pose[i, 11]
    wrench[i, 0] += dy * fz - dz * fy
    wrench[i, 1] += dz * fx - dx * fz
    wrench[i, 2] += dx * fy - dy * fx
    wrench[i, 3] += fx
    wrench[i, 4] += fy
    wrench[i, 5] += fz


@njit(cache=True, error_model="numpy")
def measure(body, starts, x, v, lines):  # type: ignore[no-untyped-def]
    """Compute length of every tendon and its rate, after `locate`."""
    for n in range(len(lines)):
        length, rate = 0.0, 0.0
        for k in range(starts[n], starts[n + 1] - 1):
            d0, d1, d2 = x[k + 1, 0] - x[k, 0], x[k + 1, 1] - x[k, 1], x[k + 1, 2] - x[k, 2]
            piece = np.sqrt(d0 * d0 + d1 * d1 + d2 * d2)
            length += piece
            if piece > 0.0:
                rate += (
                    d0 * (v[k + 1, 0] - v[k, 0])
                    + d1 * (v[k + 1, 1] - v[k, 1])
                    + d2 * (v[k + 1, 2] - v[k, 2])
                ) / piece
        lines[n, LENGTH], lines[n, RATE] = length, rate


@njit(cache=True, error_model="numpy")
def forces(p, pose, u):  # type: ignore[no-untyped-def]
    """Compute moment about the joint and force on every body, (N, 6), after the poses."""
    body, starts, lines, grounds = p.body, p.starts, p.lines, p.grounds
    n_loads, n_drives, x, v, wrench = p.n_loads, len(p.drives), p.place_x, p.place_v, p.wrench
    wrench[:] = 0.0
    locate(pose, body, p.at, x, v)
    for k in range(n_loads):
        j = 3 * (n_drives + k)
        _add(wrench, pose, body[k], x[k], (u[j], u[j + 1], u[j + 2]))
    for k in range(n_loads, starts[0]):
        for g in range(len(grounds)):
            n0, n1, n2 = grounds[g, 0], grounds[g, 1], grounds[g, 2]
            depth = (
                n0 * (grounds[g, 3] - x[k, 0])
                + n1 * (grounds[g, 4] - x[k, 1])
                + n2 * (grounds[g, 5] - x[k, 2])
            )
            if depth <= 0.0:
                continue
            leaving = n0 * v[k, 0] + n1 * v[k, 1] + n2 * v[k, 2]
            normal = max(0.0, grounds[g, 6] * depth - grounds[g, 7] * leaving)
            t0, t1, t2 = v[k, 0] - n0 * leaving, v[k, 1] - n1 * leaving, v[k, 2] - n2 * leaving
            slip = np.sqrt(t0 * t0 + t1 * t1 + t2 * t2 + grounds[g, 9] ** 2)
            drag = grounds[g, 8] * normal / slip
            _add(
                wrench, pose, body[k], x[k],
                (normal * n0 - drag * t0, normal * n1 - drag * t1, normal * n2 - drag * t2),
            )  # fmt: skip
    measure(body, starts, x, v, lines)
    for n in range(len(lines)):
        tension = u[3 * (n_drives + n_loads) + n]
        tension += lines[n, K] * (lines[n, LENGTH] - lines[n, L0]) + lines[n, DAMP] * lines[n, RATE]
        if lines[n, PULLS] != 0.0:
            tension = max(0.0, tension)
        lines[n, TENSION] = tension
        for k in range(starts[n], starts[n + 1] - 1):
            d0, d1, d2 = x[k + 1, 0] - x[k, 0], x[k + 1, 1] - x[k, 1], x[k + 1, 2] - x[k, 2]
            piece = np.sqrt(d0 * d0 + d1 * d1 + d2 * d2)
            if piece > 0.0:
                scale = tension / piece
                f0, f1, f2 = scale * d0, scale * d1, scale * d2
                _add(wrench, pose, body[k], x[k], (f0, f1, f2))
                _add(wrench, pose, body[k + 1], x[k + 1], (-f0, -f1, -f2))
