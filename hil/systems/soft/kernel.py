"""Generalized-alpha steps of a soft tree: implicit, of order 2, O(N), compiled.

With x the true and a the algorithmic acceleration, over a step h:

    (1 - am) a+ + am a = (1 - af) x+ + af x
    q+ = q + h v + h^2 ((1/2 - beta) a + beta a+) = q* + bh x+,  bh = h^2 beta (1 - af)/(1 - am)
    v+ = v + h ((1 - gamma) a + gamma a+)         = v* + gh x+,  gh = h gamma (1 - af)/(1 - am)

The element torques at the end of the step are linear in x+: kappa = k bh + c gh + sum kM Bc gh
is added to D of the articulated-body recursion. The remaining nonlinear equation is solved by
repeating the recursion at the last q+ and v+ until x+ converges. Stiffness never limits h. External
forces are evaluated at the end of the step, with the inputs of that time.

A contact bends the motion at an instant inside a step and excites vibrations that are faster than
the step. If a tree can touch a ground, a step is therefore taken in 1, 2, 4, ... equal pieces, such
that the error of each is below CONTACT_ERROR.

Source: Arnold & Bruls 2007; am, af, beta, gamma from the spectral radius: Chung & Hulbert 1993.
"""

import numpy as np

from hil.compiled import njit, put
from hil.systems.soft import outside, planar, spatial
from hil.systems.soft.element import branch_coefficients
from hil.systems.soft.parts import (  # fmt: skip
    AC,
    BC,
    ERROR,
    H_COEFFICIENTS,
    H_LAST,
    HALVINGS,
    KAPPA,
    KM,
    PASSES,
    PIECES,
    Q_NEW,
    Q_STAR,
    REST,
    REST_RATE,
    SHRINK,
    TAU,
    TORQUE,
    V_NEW,
    V_STAR,
    X_BEFORE,
    X_NEW,
    A,
    C,
    E,
    F,
    K,
    Q,
    R,
    T,
    V,
    X,
    Y,
    carve,
)
from hil.systems.soft.tree import BASE_SIZE

TOLERANCE = 1e-10  # relative to the largest acceleration: error of x+ left by the iteration
RATE_FLOOR = 1e-13  # rad/s: smaller changes of v+ are rounding errors
PASSES_MAX = 40
HALVINGS_MAX = 12
CONTACT_ERROR = 1e-6  # rad (m): what it gains and costs is in tests/systems/soft/test_contact.py
SOFTEST = 1e8  # s^2: softness at which inertia is negligible
SAG_TOLERANCE = 1e-13  # rad


@njit(cache=True, error_model="numpy")
def _inputs(p, u):  # type: ignore[no-untyped-def]
    """Distribute the inputs over joints and base."""
    for k in range(len(p.drives)):
        i = p.drives[k]
        p.joints[REST, i] = u[3 * k]
        p.joints[REST_RATE, i] = u[3 * k + 1]
        p.joints[TORQUE, i] = u[3 * k + 2]
    at = 3 * (len(p.drives) + p.n_loads) + len(p.lines)
    if len(u) > at:
        for k in range(BASE_SIZE):
            p.base[k] = u[at + k]


@njit(cache=True, error_model="numpy")
def _recursion(p, q, v, u, x):  # type: ignore[no-untyped-def]
    """Run one recursion: x from kappa and f of the joints, at q and v."""
    busy = len(p.body) > 0
    if p.is_planar:
        planar.forward(p.parent, p.geo_planar, q, v, p.w)
        if busy:
            planar.poses(p.parent, p.w, p.pose)
            outside.forces(p, p.pose, u)
            planar.push(p.wrench, p.w)
        planar.backward(p.parent, p.state[KAPPA], p.state[F], p.gravity, p.w, x)
    else:
        spatial.forward(p.parent, p.geo_spatial, q, v, p.base, p.w)
        if busy:
            outside.forces(p, p.w, u)
            spatial.push(p.wrench, p.w)
        joints, ground = (p.state[KAPPA], p.state[F]), (p.base, p.gravity)
        spatial.backward((p.parent, p.geo_spatial), joints, ground, p.w, x)


@njit(cache=True, error_model="numpy")
def kinematics(p, q, v):  # type: ignore[no-untyped-def]
    """Compute poses and rates of all bodies, (N, 18 or more)."""
    if p.is_planar:
        planar.forward(p.parent, p.geo_planar, q, v, p.w)
        planar.poses(p.parent, p.w, p.pose)
    else:
        spatial.forward(p.parent, p.geo_spatial, q, v, p.base, p.w)


@njit(cache=True, error_model="numpy")
def measure(ints, floats, q, v):  # type: ignore[no-untyped-def]
    """Compute positions of places and tendons in a state."""
    p = carve(ints, floats)
    kinematics(p, q, v)
    pose = p.pose if p.is_planar else p.w
    outside.locate(pose, p.body, p.at, p.place_x, p.place_v)
    outside.measure(p.body, p.starts, p.place_x, p.place_v, p.lines)


@njit(cache=True, error_model="numpy")
def explicit(ints, floats, q, v, softness):  # type: ignore[no-untyped-def]
    """X_NEW = (M + softness K)^-1 f(q, v) with constant branches; q'' for softness 0."""
    p = carve(ints, floats)
    s, b = p.state, p.branches
    _inputs(p, p.u)
    for i in range(len(q)):
        k = p.joints[K, i]
        s[KAPPA, i] = softness * k
        s[F, i] = (
            p.joints[TORQUE, i]
            - k * (q[i] - p.joints[REST, i])
            - p.joints[C, i] * (v[i] - p.joints[REST_RATE, i])
        )
    for k in range(len(p.branch_joint)):
        s[F, p.branch_joint[k]] -= b[R, k]
    _recursion(p, q, v, p.u, s[X_NEW])


@njit(cache=True, error_model="numpy")
def _attempt(p, h, u, error_max):  # type: ignore[no-untyped-def]
    """Try a step of h to the inputs u.

    Return False, without changes, if it does not converge or if its error is too large.
    """
    s, b, el, memory = p.state, p.branches, p.joints, p.memory
    am, af, beta, gamma = p.alpha
    n = s.shape[1]
    share = (1.0 - af) / (1.0 - am)
    bh, gh = h * h * beta * share, h * gamma * share
    _inputs(p, u)
    if memory[H_COEFFICIENTS] != h:
        for k in range(len(p.branch_joint)):
            b[E, k], ac, bc = branch_coefficients(h, b[TAU, k])
            b[AC, k], b[BC, k] = b[KM, k] * ac, b[KM, k] * bc
        memory[H_COEFFICIENTS] = h
    ratio = h / memory[H_LAST] if memory[H_LAST] > 0.0 else 0.0
    af_1, am_1 = af / (1.0 - am), am / (1.0 - am)
    # a belongs to an instant (am - af) h from x; a different h moves it.
    moved = ratio if ratio > 0.0 else 1.0
    for i in range(n):
        x, v = s[X, i], s[V, i]
        a = x + moved * (s[A, i] - x)
        old = af_1 * x - am_1 * a
        q_star = s[Q, i] + h * v + h * h * ((0.5 - beta) * a + beta * old)
        v_star = v + h * ((1.0 - gamma) * a + gamma * old)
        k, c = el[K, i], el[C, i]
        s[Q_STAR, i], s[V_STAR, i] = q_star, v_star
        s[KAPPA, i] = k * bh + c * gh
        s[F, i] = el[TORQUE, i] - k * (q_star - el[REST, i]) - c * (v_star - el[REST_RATE, i])
        s[Y, i] = x + ratio * (x - s[X_BEFORE, i])
    for k in range(len(p.branch_joint)):
        i = p.branch_joint[k]
        s[KAPPA, i] += b[BC, k] * gh
        s[F, i] -= b[E, k] * b[R, k] + b[AC, k] * s[V, i] + b[BC, k] * s[V_STAR, i]
    change_before, shrink, converged = 0.0, memory[SHRINK], False
    passes = 0
    while passes < PASSES_MAX and not converged:
        for i in range(n):
            s[Q_NEW, i] = s[Q_STAR, i] + bh * s[Y, i]
            s[V_NEW, i] = s[V_STAR, i] + gh * s[Y, i]
        _recursion(p, s[Q_NEW], s[V_NEW], u, s[X_NEW])
        passes += 1
        change, size, rate, total = 0.0, 0.0, 0.0, 0.0
        for i in range(n):
            x = s[X_NEW, i]
            change = max(change, abs(x - s[Y, i]))
            size = max(size, abs(x))
            rate = max(rate, abs(s[V_NEW, i]))
            total += x
            s[Y, i] = x
        if not np.isfinite(total):  # max() ignores NaN
            break
        if passes > 1 and change_before > 0.0:
            shrink = change / change_before
            if shrink > 2.0 and passes > 3:
                break
        change_before = change
        left = change * min(shrink, 1.0) / max(1.0 - shrink, 0.1)
        rounding = RATE_FLOOR + 1e-15 * rate
        converged = left <= TOLERANCE * size or gh * change <= rounding
        converged = converged or (passes > 4 and shrink > 0.3 and change <= 1e-8 * size)
    memory[PASSES] = passes
    if not converged:
        memory[SHRINK] = 1.0
        return False
    # The error of a step in q is h^3 (1/6 - (am - af)/2 - beta) x the 3rd derivative, (a+ - a)/h.
    cubic, error = h * h * abs(1.0 / 6.0 - 0.5 * (am - af) - beta), 0.0
    for i in range(n):
        x, x_old = s[Y, i], s[X, i]
        a = x_old + moved * (s[A, i] - x_old)
        error = max(error, cubic * abs(share * x + af_1 * x_old - am_1 * a - a))
    if error > error_max:
        return False
    memory[SHRINK] = min(1.0, max(shrink, 1e-6))
    for k in range(len(p.branch_joint)):
        i = p.branch_joint[k]
        v_new = s[V_STAR, i] + gh * s[Y, i]
        b[R, k] = b[E, k] * b[R, k] + b[AC, k] * s[V, i] + b[BC, k] * v_new
    for i in range(n):
        x, x_old = s[Y, i], s[X, i]
        a = x_old + moved * (s[A, i] - x_old)
        s[Q, i] = s[Q_STAR, i] + bh * x
        s[V, i] = s[V_STAR, i] + gh * x
        s[A, i] = share * x + af_1 * x_old - am_1 * a
        s[X_BEFORE, i] = x_old
        s[X, i] = x
    memory[H_LAST] = h
    memory[ERROR] = error
    memory[T] += h
    return True


@njit(cache=True, error_model="numpy")
def _advance(p, h, goal):  # type: ignore[no-untyped-def]
    """Take a step of h, in pieces if that is needed to converge or to keep a contact's error."""
    pieces, done, error, largest, pieces_max = 1, 0, 0.0, 0.0, 1
    if len(p.grounds) > 0 and p.starts[0] > p.n_loads:
        pieces_max = int(p.grounds[0, outside.GROUND_PIECES])
    if pieces_max > 1:
        pieces = max(1, int(p.memory[PIECES]))
    while done < pieces:
        share = (done + 1) / pieces
        for k in range(len(goal)):
            p.u[k] = p.u_last[k] + share * (goal[k] - p.u_last[k]) if pieces > 1 else goal[k]
        bounded = pieces < pieces_max
        if _attempt(p, h / pieces, p.u, CONTACT_ERROR if bounded else np.inf):
            done += 1
            error += p.memory[ERROR]
            largest = max(largest, p.memory[ERROR])
        elif pieces == 2**HALVINGS_MAX:
            return False
        else:
            pieces, done = 2 * pieces, 2 * done
            p.memory[HALVINGS] += 1
    # An error of order 3 grows 8 times in pieces twice as long.
    p.memory[PIECES] = pieces // 2 if 8.0 * largest < CONTACT_ERROR else pieces
    p.memory[ERROR] = error
    put(goal, p.u_last)
    return True


@njit(cache=True, error_model="numpy")
def run(ints, floats, h, u, path, every):  # type: ignore[no-untyped-def]
    """Take steps of h to the inputs in the rows of u; return the number of steps completed.

    Rows of `path` store q, v, x and R at the start and after every `every` steps (0: never).
    """
    p = carve(ints, floats)
    n = p.state.shape[1]
    for k in range(len(u) + 1):
        if k > 0 and not _advance(p, h, u[k - 1]):
            return k - 1
        if every > 0 and k % every == 0:
            row = path[k // every]
            put(p.state[Q], row)
            put(p.state[V], row[n:])
            put(p.state[X], row[2 * n :])
            put(p.branches[R], row[3 * n :])
    return len(u)
