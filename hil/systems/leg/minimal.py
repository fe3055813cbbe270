"""A limb in joint angles, compiled: M(q) v' = Q(q, v, tensions), O(n^2), without allocation.

Every angle rotates a link about its joint; a spherical joint is three links, two without mass. The
outward pass computes positions, rotations and bias accelerations. The inward pass computes M from
composite bodies, and Q from the wrenches of inertia, gravity and tendons, all about the ground's
origin. A muscle pulls along the straight lines of its path.

Source: Featherstone 2008, *Rigid Body Dynamics Algorithms*, sections 5.3 and 6.2, in ground axes.
"""

from typing import NamedTuple

import numpy as np

from hil.compiled import njit
from hil.mechanics.arrays import Array, Indices, Vector
from hil.systems.leg.limb import GROUND, Limb


class Links(NamedTuple):
    """A limb as arrays with one row per link."""

    parent: Indices  # -1: the ground
    joint: Array  # (n, 3) joint position in the parent's axes, from the parent's joint
    axis: Array  # (n, 3) unit
    centre: Array  # (n, 3) from the joint to the centre of mass
    mass: Array
    inertia: Array  # (n, 3)
    damping: Array
    gravity: Array
    first: Indices  # (M + 1,) index of every muscle's first point
    point_link: Indices
    point: Array  # (P, 3) from the link's joint


class Work(NamedTuple):
    """Results of an evaluation, in ground axes."""

    turn: Array  # (n, 3, 3)
    place: Array  # (n, 3) position of the joint
    axis: Array  # (n, 3)
    w: Array
    v: Array
    alpha: Array
    a: Array
    force: Array
    moment: Array
    composite: Array  # (n, 10) mass, first moments, second moments xx yy zz xy xz yz
    M: Array
    Q: Array
    points: Array  # (P, 6) position and velocity of path points
    length: Array
    rate: Array


def links_of(limb: Limb) -> tuple[Links, dict[str, int]]:
    """Return the limb's arrays, and the link of each body."""
    rows: list[tuple[int, Vector, Vector, Vector, float, Vector, float]] = []
    body_link: dict[str, int] = {GROUND: -1}
    origin: dict[str, Array] = {GROUND: np.zeros(3)}  # from the joint to the centre of mass
    none = (0.0, 0.0, 0.0)
    for joint in limb.order():
        body = limb.body(joint.child)
        at = _vector(origin[joint.parent] + np.array(joint.at_parent_m))
        centre = _vector(-np.array(joint.at_child_m))
        axes = [_unit(joint.axis)] if joint.kind == "revolute" else _axes()
        parent = body_link[joint.parent]
        for i, axis in enumerate(axes):
            last = i == len(axes) - 1
            rows.append(
                (parent, at if i == 0 else none, axis, centre if last else none,
                 body.mass_kg if last else 0.0, body.inertia_kg_m2 if last else none,
                 joint.damping_N_m_s_per_rad)
            )  # fmt: skip
            parent = len(rows) - 1
        body_link[joint.child] = parent
        origin[joint.child] = np.array(centre)
    places = [point for muscle in limb.muscles for point in muscle.path]
    parents, *others = zip(*rows, strict=True)
    at_joint, axis_of, centre_of, mass, inertia, damping = (
        np.array(column, dtype=float) for column in others
    )
    links = Links(
        np.array(parents, dtype=np.int64),
        at_joint,
        axis_of,
        centre_of,
        mass,
        inertia,
        damping,
        np.array(limb.gravity_m_per_s2, dtype=float),
        np.cumsum([0, *(len(muscle.path) for muscle in limb.muscles)]).astype(np.int64),
        np.array([body_link[place.body] for place in places], dtype=np.int64),
        np.array(
            [origin[place.body] + np.array(place.at_m) for place in places], dtype=float
        ).reshape(-1, 3),
    )
    return links, body_link


def work_for(links: Links) -> Work:
    """Return arrays for one evaluation at a time."""
    n, p, m = len(links.parent), len(links.point), len(links.first) - 1
    vectors = [np.zeros((n, 3)) for _ in range(8)]
    place, axis, w, v, alpha, a, force, moment = vectors
    return Work(
        np.zeros((n, 3, 3)), place, axis, w, v, alpha, a, force, moment, np.zeros((n, 10)),
        np.zeros((n, n)), np.zeros(n), np.zeros((p, 6)), np.zeros(m), np.zeros(m),
    )  # fmt: skip


def _vector(v: Array) -> Vector:
    return float(v[0]), float(v[1]), float(v[2])


def _unit(axis: Vector) -> Vector:
    return _vector(np.array(axis) / np.linalg.norm(axis))


def _axes() -> list[Vector]:
    return [(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)]


@njit(cache=True, error_model="numpy", inline="always")
def _cross(ax, ay, az, bx, by, bz):  # type: ignore[no-untyped-def]
    return ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx


@njit(cache=True, error_model="numpy", inline="always")
def _turned(turn, i, x, y, z):  # type: ignore[no-untyped-def]
    return (
        turn[i, 0, 0] * x + turn[i, 0, 1] * y + turn[i, 0, 2] * z,
        turn[i, 1, 0] * x + turn[i, 1, 1] * y + turn[i, 1, 2] * z,
        turn[i, 2, 0] * x + turn[i, 2, 1] * y + turn[i, 2, 2] * z,
    )


# Rows are not taken as views: reference counting of views would dominate the run time.


@njit(cache=True, error_model="numpy")
def kinematics(p, k, q, v):  # type: ignore[no-untyped-def]
    """Compute positions, rotations, velocities and bias accelerations of links; path lengths."""
    turn, place, axes, omega, alpha, accel = k.turn, k.place, k.axis, k.w, k.alpha, k.a
    velocity, axis, joint, parent, gravity = k.v, p.axis, p.joint, p.parent, p.gravity
    for i in range(len(q)):
        up = parent[i]
        ax, ay, az = axis[i, 0], axis[i, 1], axis[i, 2]
        c, s = np.cos(q[i]), np.sin(q[i])
        t = 1.0 - c
        # Rodrigues' rotation formula
        b00, b01, b02 = c + t * ax * ax, t * ax * ay - s * az, t * ax * az + s * ay
        b10, b11, b12 = t * ax * ay + s * az, c + t * ay * ay, t * ay * az - s * ax
        b20, b21, b22 = t * ax * az - s * ay, t * ay * az + s * ax, c + t * az * az
        dx, dy, dz = joint[i, 0], joint[i, 1], joint[i, 2]
        if up < 0:
            turn[i, 0, 0], turn[i, 0, 1], turn[i, 0, 2] = b00, b01, b02
            turn[i, 1, 0], turn[i, 1, 1], turn[i, 1, 2] = b10, b11, b12
            turn[i, 2, 0], turn[i, 2, 1], turn[i, 2, 2] = b20, b21, b22
            place[i, 0], place[i, 1], place[i, 2] = dx, dy, dz
            wx = wy = wz = 0.0
            lx = ly = lz = 0.0
            velocity[i, 0] = velocity[i, 1] = velocity[i, 2] = 0.0
            # gravity is an upward acceleration of the ground
            accel[i, 0], accel[i, 1], accel[i, 2] = -gravity[0], -gravity[1], -gravity[2]
        else:
            for j in range(3):
                x, y, z = turn[up, j, 0], turn[up, j, 1], turn[up, j, 2]
                turn[i, j, 0] = x * b00 + y * b10 + z * b20
                turn[i, j, 1] = x * b01 + y * b11 + z * b21
                turn[i, j, 2] = x * b02 + y * b12 + z * b22
            dx, dy, dz = _turned(turn, up, dx, dy, dz)
            place[i, 0] = place[up, 0] + dx
            place[i, 1] = place[up, 1] + dy
            place[i, 2] = place[up, 2] + dz
            wx, wy, wz = omega[up, 0], omega[up, 1], omega[up, 2]
            lx, ly, lz = alpha[up, 0], alpha[up, 1], alpha[up, 2]
            gx, gy, gz = _cross(wx, wy, wz, dx, dy, dz)
            velocity[i, 0] = velocity[up, 0] + gx
            velocity[i, 1] = velocity[up, 1] + gy
            velocity[i, 2] = velocity[up, 2] + gz
            fx, fy, fz = _cross(lx, ly, lz, dx, dy, dz)
            gx, gy, gz = _cross(wx, wy, wz, gx, gy, gz)
            accel[i, 0] = accel[up, 0] + fx + gx
            accel[i, 1] = accel[up, 1] + fy + gy
            accel[i, 2] = accel[up, 2] + fz + gz
        hx, hy, hz = _turned(turn, i, ax, ay, az)
        axes[i, 0], axes[i, 1], axes[i, 2] = hx, hy, hz
        gx, gy, gz = _cross(wx, wy, wz, hx * v[i], hy * v[i], hz * v[i])
        alpha[i, 0], alpha[i, 1], alpha[i, 2] = lx + gx, ly + gy, lz + gz
        omega[i, 0], omega[i, 1], omega[i, 2] = wx + hx * v[i], wy + hy * v[i], wz + hz * v[i]
    points, point, on, first = k.points, p.point, p.point_link, p.first
    for i in range(len(on)):
        up = on[i]
        x, y, z = point[i, 0], point[i, 1], point[i, 2]
        if up < 0:
            points[i, 0], points[i, 1], points[i, 2] = x, y, z
            points[i, 3] = points[i, 4] = points[i, 5] = 0.0
        else:
            x, y, z = _turned(turn, up, x, y, z)
            gx, gy, gz = _cross(omega[up, 0], omega[up, 1], omega[up, 2], x, y, z)
            points[i, 0], points[i, 3] = place[up, 0] + x, velocity[up, 0] + gx
            points[i, 1], points[i, 4] = place[up, 1] + y, velocity[up, 1] + gy
            points[i, 2], points[i, 5] = place[up, 2] + z, velocity[up, 2] + gz
    for m in range(len(first) - 1):
        length = rate = 0.0
        for i in range(first[m], first[m + 1] - 1):
            dx = points[i + 1, 0] - points[i, 0]
            dy = points[i + 1, 1] - points[i, 1]
            dz = points[i + 1, 2] - points[i, 2]
            d = np.sqrt(dx * dx + dy * dy + dz * dz)
            if d == 0.0:  # two points at one place
                continue
            length += d
            rate += (
                dx * (points[i + 1, 3] - points[i, 3])
                + dy * (points[i + 1, 4] - points[i, 4])
                + dz * (points[i + 1, 5] - points[i, 5])
            ) / d
        k.length[m], k.rate[m] = length, rate


@njit(cache=True, error_model="numpy")
def _pull(force, moment, i, at, pull):  # type: ignore[no-untyped-def]
    """Subtract an external force from a link's `force` and `moment` of inertia and gravity."""
    (x, y, z), (fx, fy, fz) = at, pull
    force[i, 0] -= fx
    force[i, 1] -= fy
    force[i, 2] -= fz
    mx, my, mz = _cross(x, y, z, fx, fy, fz)
    moment[i, 0] -= mx
    moment[i, 1] -= my
    moment[i, 2] -= mz


@njit(cache=True, error_model="numpy")
def dynamics(p, k, v, tension):  # type: ignore[no-untyped-def]
    """Compute M and Q after `kinematics`, with one tension per muscle."""
    n, turn, place, axis = len(v), k.turn, k.place, k.axis
    force, moment, composite, Q, M = k.force, k.moment, k.composite, k.Q, k.M
    omega, alpha, accel, centre, inertia = k.w, k.alpha, k.a, p.centre, p.inertia
    for i in range(n):
        m = p.mass[i]
        r00, r01, r02 = turn[i, 0, 0], turn[i, 0, 1], turn[i, 0, 2]
        r10, r11, r12 = turn[i, 1, 0], turn[i, 1, 1], turn[i, 1, 2]
        r20, r21, r22 = turn[i, 2, 0], turn[i, 2, 1], turn[i, 2, 2]
        x, y, z = centre[i, 0], centre[i, 1], centre[i, 2]
        cx, cy, cz = (
            r00 * x + r01 * y + r02 * z,
            r10 * x + r11 * y + r12 * z,
            r20 * x + r21 * y + r22 * z,
        )
        wx, wy, wz = omega[i, 0], omega[i, 1], omega[i, 2]
        lx, ly, lz = alpha[i, 0], alpha[i, 1], alpha[i, 2]
        gx, gy, gz = _cross(wx, wy, wz, cx, cy, cz)
        gx, gy, gz = _cross(wx, wy, wz, gx, gy, gz)
        hx, hy, hz = _cross(lx, ly, lz, cx, cy, cz)
        fx = m * (accel[i, 0] + gx + hx)
        fy = m * (accel[i, 1] + gy + hy)
        fz = m * (accel[i, 2] + gz + hz)
        i0, i1, i2 = inertia[i, 0], inertia[i, 1], inertia[i, 2]
        xx = i0 * r00 * r00 + i1 * r01 * r01 + i2 * r02 * r02
        yy = i0 * r10 * r10 + i1 * r11 * r11 + i2 * r12 * r12
        zz = i0 * r20 * r20 + i1 * r21 * r21 + i2 * r22 * r22
        xy = i0 * r00 * r10 + i1 * r01 * r11 + i2 * r02 * r12
        xz = i0 * r00 * r20 + i1 * r01 * r21 + i2 * r02 * r22
        yz = i0 * r10 * r20 + i1 * r11 * r21 + i2 * r12 * r22
        hx = xx * wx + xy * wy + xz * wz
        hy = xy * wx + yy * wy + yz * wz
        hz = xz * wx + yz * wy + zz * wz
        gx, gy, gz = _cross(wx, wy, wz, hx, hy, hz)
        gx += xx * lx + xy * ly + xz * lz
        gy += xy * lx + yy * ly + yz * lz
        gz += xz * lx + yz * ly + zz * lz
        x, y, z = place[i, 0] + cx, place[i, 1] + cy, place[i, 2] + cz
        hx, hy, hz = _cross(x, y, z, fx, fy, fz)
        force[i, 0], force[i, 1], force[i, 2] = fx, fy, fz
        moment[i, 0], moment[i, 1], moment[i, 2] = gx + hx, gy + hy, gz + hz
        composite[i, 0], composite[i, 1], composite[i, 2] = m, m * x, m * y
        composite[i, 3] = m * z
        composite[i, 4] = xx + m * (y * y + z * z)
        composite[i, 5] = yy + m * (x * x + z * z)
        composite[i, 6] = zz + m * (x * x + y * y)
        composite[i, 7], composite[i, 8] = xy - m * x * y, xz - m * x * z
        composite[i, 9] = yz - m * y * z
    points, on = k.points, p.point_link
    for j in range(len(tension)):
        for i in range(p.first[j], p.first[j + 1] - 1):
            if on[i] == on[i + 1]:
                continue
            x, y, z = points[i, 0], points[i, 1], points[i, 2]
            ex, ey, ez = points[i + 1, 0], points[i + 1, 1], points[i + 1, 2]
            dx, dy, dz = ex - x, ey - y, ez - z
            d = np.sqrt(dx * dx + dy * dy + dz * dz)
            if d == 0.0:
                continue
            per = tension[j] / d
            if on[i] >= 0:
                _pull(force, moment, on[i], (x, y, z), (per * dx, per * dy, per * dz))
            if on[i + 1] >= 0:
                pull = (-per * dx, -per * dy, -per * dz)
                _pull(force, moment, on[i + 1], (ex, ey, ez), pull)
    for i in range(n - 1, -1, -1):
        ax, ay, az = axis[i, 0], axis[i, 1], axis[i, 2]
        # velocity of the ground's origin if the link rotates at 1 rad/s
        ox, oy, oz = _cross(place[i, 0], place[i, 1], place[i, 2], ax, ay, az)
        Q[i] = -p.damping[i] * v[i] - (
            ax * moment[i, 0] + ay * moment[i, 1] + az * moment[i, 2]
            + ox * force[i, 0] + oy * force[i, 1] + oz * force[i, 2]
        )  # fmt: skip
        m, sx, sy, sz = composite[i, 0], composite[i, 1], composite[i, 2], composite[i, 3]
        gx, gy, gz = _cross(ax, ay, az, sx, sy, sz)
        px, py, pz = m * ox + gx, m * oy + gy, m * oz + gz
        gx, gy, gz = _cross(sx, sy, sz, ox, oy, oz)
        xy, xz, yz = composite[i, 7], composite[i, 8], composite[i, 9]
        hx = gx + composite[i, 4] * ax + xy * ay + xz * az
        hy = gy + xy * ax + composite[i, 5] * ay + yz * az
        hz = gz + xz * ax + yz * ay + composite[i, 6] * az
        for j in range(i):
            M[i, j] = M[j, i] = 0.0
        j = i
        while j >= 0:
            ax, ay, az = axis[j, 0], axis[j, 1], axis[j, 2]
            ox, oy, oz = _cross(place[j, 0], place[j, 1], place[j, 2], ax, ay, az)
            M[i, j] = ax * hx + ay * hy + az * hz + ox * px + oy * py + oz * pz
            M[j, i] = M[i, j]
            j = p.parent[j]
        up = p.parent[i]
        if up >= 0:
            for j in range(3):
                force[up, j] += force[i, j]
                moment[up, j] += moment[i, j]
            for j in range(10):
                composite[up, j] += composite[i, j]


@njit(cache=True, error_model="numpy")
def solve(k, v_dot):  # type: ignore[no-untyped-def]
    """Solve M v' = Q by Cholesky factorisation in place of M."""
    M, n = k.M, len(v_dot)
    for i in range(n):
        for j in range(i + 1):
            s = M[i, j]
            for m in range(j):
                s -= M[i, m] * M[j, m]
            M[i, j] = np.sqrt(s) if i == j else s / M[j, j]
    for i in range(n):
        s = k.Q[i]
        for j in range(i):
            s -= M[i, j] * v_dot[j]
        v_dot[i] = s / M[i, i]
    for i in range(n - 1, -1, -1):
        s = v_dot[i]
        for j in range(i + 1, n):
            s -= M[j, i] * v_dot[j]
        v_dot[i] = s / M[i, i]


@njit(cache=True, error_model="numpy")
def accelerations(p, k, q, v, tension, v_dot):  # type: ignore[no-untyped-def]
    """Compute v' at angles q and rates v."""
    kinematics(p, k, q, v)
    dynamics(p, k, v, tension)
    solve(k, v_dot)


@njit(cache=True, error_model="numpy")
def energy(p, k, q, v):  # type: ignore[no-untyped-def]
    """Return kinetic and potential energy, J; potential is 0 for centres of mass at the origin."""
    kinematics(p, k, q, v)
    kinetic = potential = 0.0
    for i in range(len(q)):
        m, wx, wy, wz = p.mass[i], k.w[i, 0], k.w[i, 1], k.w[i, 2]
        cx, cy, cz = _turned(k.turn, i, p.centre[i, 0], p.centre[i, 1], p.centre[i, 2])
        gx, gy, gz = _cross(wx, wy, wz, cx, cy, cz)
        ux, uy, uz = k.v[i, 0] + gx, k.v[i, 1] + gy, k.v[i, 2] + gz
        kinetic += 0.5 * m * (ux * ux + uy * uy + uz * uz)
        for j in range(3):
            spin = k.turn[i, 0, j] * wx + k.turn[i, 1, j] * wy + k.turn[i, 2, j] * wz
            kinetic += 0.5 * p.inertia[i, j] * spin * spin
        x, y, z = k.place[i, 0] + cx, k.place[i, 1] + cy, k.place[i, 2] + cz
        potential -= m * (p.gravity[0] * x + p.gravity[1] * y + p.gravity[2] * z)
    return kinetic, potential
