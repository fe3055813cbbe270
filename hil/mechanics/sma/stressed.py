"""A wire under stress, stepped in time: its heat balance along the branches that stress moves.

`hil.mechanics.sma.stress` has the law and `hil.mechanics.sma.wire` the heat balance of a metre of
wire. Every branch is tabulated as the temperatures at PIECES + 1 equally spaced fractions of its
distribution, TAIL of which is cut off at either end, and is a line in between. `advance` holds the
stress. So a step has closed forms as the thermal law's has, goes from knot to knot, and depends on
its length by nothing but the stress, which `hil.systems.array.model.wire_step` lets change.
Between the branches `advance` and `settled` keep the austenite; `settled_sloped` does not.

Where stress has moved a branch across the wire's state, the wire transforms at once and without
exchange of heat, C dT = -L dxi, until it is on the branch again.

Left out of the heat balance: the mechanical work, which at 216 MPa and 4 % is 6 % of the latent
heat of TCF1140.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from hil.compiled import njit
from hil.mechanics.arrays import Array
from hil.mechanics.sma.stress import GROUPS, Branch, LineBranch, REFERENCE_Pa, StressLaw
from hil.mechanics.sma.wire import (
    C_AT,
    DR_AT,
    E2_AT,
    G_AT,
    L_AT,
    R_M_AT,
    T_A_AT,
    heats,
    phi,
    time_to,
)

PIECES = 32
TAIL = 0.005
AT_KNOT, ON_BRANCH_K = 1e-9, 1e-9  # what rounding leaves
SLOPED_STEPS, SLOPED_K = 100, 1e-11  # of Newton's method or, where it hardly helps, of halving

# Where a row of `row` has each constant. The knots come first: they are all that `advance` reads.
HEATING_AT, COOLING_AT, N_KNOTS = 0, PIECES + 1, 2 * (PIECES + 1)
MIDDLE_AT, PER_PA_AT, SHARE_AT, WIDENS_AT = range(N_KNOTS, N_KNOTS + 4)
OF_BRANCH = 4  # constants of the heating branch; the cooling branch's follow
H_MAX_AT, MORE_AT, RATE_AT, SOFTER_AT, PHI_AT, MINOR_AT = range(N_KNOTS + 8, N_KNOTS + 14)
N_CONSTANTS = N_KNOTS + 14
AS_TABULATED = (0.0, 1.0, 0.0, 1.0)
"""The `place` of knots that are temperatures already, in deg C."""


def row(law: StressLaw) -> Array:
    """A law as the kernel takes it, (N_CONSTANTS,): the knots of both branches, then constants."""
    sides = [
        value
        for side in (law.heating, law.cooling)
        for value in (side.middle_C, 1.0 / side.slope_Pa_per_K, side.work_share, side.widens_per_Pa)
    ]
    constants = [
        *sides,
        law.stroke_max,
        law.stroke_max - law.stroke_min,
        law.stroke_rate_per_Pa,
        1.0 / law.modulus_M_Pa - 1.0 / law.modulus_A_Pa,
        REFERENCE_Pa / float(law.work_J_per_m3(REFERENCE_Pa)),
        law.minor_loop_slope,
    ]
    return np.concatenate([knots_K(law.heating), knots_K(law.cooling), constants])


def knots_C(law: StressLaw, branch: Branch, stress_Pa: ArrayLike) -> Array:
    """Temperatures at which equal fractions of a branch have transformed, each at its stress."""
    s = np.asarray(stress_Pa, dtype=float)
    return np.asarray(law.middle_C(branch, s) + np.exp(branch.widens_per_Pa * s) * knots_K(branch))


@lru_cache(maxsize=1024)  # cells share branches, and parameter sets too
def knots_K(branch: Branch) -> Array:
    """How far above the middle equal fractions of a branch have transformed, without stress."""
    if isinstance(branch, LineBranch):
        return np.linspace(-0.5, 0.5, PIECES + 1) * branch.core_K
    reach_K = 20.0 * branch.core_K * branch.shoulder_ratio + abs(branch.shoulder_at_K)
    u_K = np.linspace(-reach_K, reach_K, 20001)
    shares = np.linspace(TAIL, 1.0 - TAIL, PIECES + 1)
    return np.interp(shares, branch.distribution(u_K), u_K)


@njit(cache=True, inline="always", error_model="numpy")
def stroke(c, s):  # type: ignore[no-untyped-def]
    """H + S sigma, the strain of martensite beyond austenite's, and its slope with stress."""
    remainder = c[MORE_AT] * np.exp(-c[RATE_AT] * s)
    return c[H_MAX_AT] - remainder + c[SOFTER_AT] * s, c[RATE_AT] * remainder + c[SOFTER_AT]


@njit(cache=True, inline="always", error_model="numpy")
def places(c, s, slope):  # type: ignore[no-untyped-def]
    """Middles of the heating and cooling branch, deg C, and how much wider stress makes them.

    `slope` is the stroke's at this stress, as `stroke` gives it.
    """
    k, softer = c[RATE_AT], c[SOFTER_AT]
    remainder = (slope - softer) / k
    work = c[H_MAX_AT] * s + (remainder - c[MORE_AT]) / k + 0.5 * softer * s * s
    moved = c[PHI_AT] * work
    A, M = 0, OF_BRANCH
    hot = ((1.0 - c[A + SHARE_AT]) * s + c[A + SHARE_AT] * moved) * c[A + PER_PA_AT]
    cold = ((1.0 - c[M + SHARE_AT]) * s + c[M + SHARE_AT] * moved) * c[M + PER_PA_AT]
    return (
        c[A + MIDDLE_AT] + hot,
        np.exp(c[A + WIDENS_AT] * s),
        c[M + MIDDLE_AT] + cold,
        np.exp(c[M + WIDENS_AT] * s),
    )


@njit(cache=True, inline="always", error_model="numpy")
def _on(c, first, xi):  # type: ignore[no-untyped-def]
    """Where a branch is at a fraction, K above its middle; its knots begin at `first`."""
    j = min(PIECES - 1, int(xi * PIECES))
    low = c[first + j]
    return low + (xi * PIECES - j) * (c[first + j + 1] - low)


@njit(cache=True, error_model="numpy")
def branches(c, place, fraction):  # type: ignore[no-untyped-def]
    """Temperatures of the heating and the cooling branch at a fraction; beyond 0 to 1 lines.

    c begins with `row`, place is from `places`.
    """
    inside = min(1.0, max(0.0, fraction))
    hot = _on(c, HEATING_AT, inside)
    hot += (fraction - inside) * (_on(c, HEATING_AT, 1.0) - _on(c, HEATING_AT, 0.0))
    cold = _on(c, COOLING_AT, inside)
    cold += (fraction - inside) * (_on(c, COOLING_AT, 1.0) - _on(c, COOLING_AT, 0.0))
    hot, cold = place[0] + place[1] * hot, place[2] + place[3] * cold
    return hot, min(hot, cold)


@njit(cache=True, inline="always", error_model="numpy")
def _ahead(c, place, xi, rises):  # type: ignore[no-untyped-def]
    """The branch from xi to its next knot: temperature here, K per unit of xi, xi of the knot."""
    z = xi * PIECES
    if rises:
        j = min(PIECES - 1, int(z + AT_KNOT))
        low = c[HEATING_AT + j]
        width = place[1] * PIECES * (c[HEATING_AT + j + 1] - low)
        return place[0] + place[1] * low + width * (xi - j / PIECES), width, (j + 1.0) / PIECES
    j = max(0, int(np.ceil(z - AT_KNOT)) - 1)
    part, limit = z - j, j / PIECES
    hot, cold = c[HEATING_AT + j], c[COOLING_AT + j]
    hot_K = place[1] * (c[HEATING_AT + j + 1] - hot)
    cold_K = place[3] * (c[COOLING_AT + j + 1] - cold)
    hot, cold = place[0] + place[1] * hot, place[2] + place[3] * cold
    end, here = min(hot, cold), min(hot + part * hot_K, cold + part * cold_K)
    return here, (here - end) / part * PIECES, limit


@njit(cache=True, inline="always", error_model="numpy")
def moves(c, place, strain, T, heating):  # type: ignore[no-untyped-def]
    """K per pascal by which stress moves a branch where it is at T; `strain` is the stroke's."""
    at, of = (0, 0) if heating else (OF_BRANCH, 2)
    share = c[at + SHARE_AT]
    middle_K = ((1.0 - share) + share * c[PHI_AT] * strain) * c[at + PER_PA_AT]
    return middle_K + c[at + WIDENS_AT] * (T - place[of])


@njit(cache=True, inline="always", error_model="numpy")
def settled(c, place, per_xi, T, xi):  # type: ignore[no-untyped-def]
    """(T, xi) on or between the branches, as a jump of stress leaves them, and the branch's width.

    No heat is exchanged: dT = -per_xi dxi, with per_xi the latent heat over the heat capacity. The
    width is that of the branch that the wire is on, in K per unit of xi: negative for the cooling
    branch, 0 between the two and at the ends.
    """
    on = 0.0
    while xi < 1.0:
        meets, width, limit = _ahead(c, place, xi, True)
        if T <= meets:
            break
        change = (T - meets) / (width + per_xi)
        if change < limit - xi:
            return T - per_xi * change, xi + change, width
        T, xi = T - per_xi * (limit - xi), limit
        on = width if xi < 1.0 else 0.0
    while xi > 0.0:
        meets, width, limit = _ahead(c, place, xi, False)
        if T >= meets:
            break
        change = (T - meets) / (width + per_xi)
        if change > limit - xi:
            return T - per_xi * change, xi + change, -width
        T, xi = T - per_xi * (limit - xi), limit
        on = -width if xi > 0.0 else 0.0
    return T, xi, on


@njit(cache=True, inline="always", error_model="numpy")
def _share(c, first, above_K):  # type: ignore[no-untyped-def]
    """The fraction that a branch has so far above its middle, and its slope per K."""
    low, high = first, first + PIECES
    if above_K <= c[low]:
        return 0.0, 0.0
    if above_K >= c[high]:
        return 1.0, 0.0
    while high - low > 1:
        middle = (low + high) // 2
        if above_K < c[middle]:
            high = middle
        else:
            low = middle
    per_K = 1.0 / (PIECES * (c[high] - c[low]))
    return (low - first) / PIECES + (above_K - c[low]) * per_K, per_K


@njit(cache=True, inline="always", error_model="numpy")
def _branch_of(k, least, least_K):  # type: ignore[no-untyped-def]
    """A_k of equation (6) of `hil.mechanics.sma.stress`, and its slope per K."""
    if k == 0:
        return least, least_K
    low = GROUPS * least - (k - 1.0)
    return (low, GROUPS * least_K) if 0.0 < low < 1.0 else (min(1.0, max(0.0, low)), 0.0)


@njit(cache=True, inline="always", error_model="numpy")
def _sloped(c, place, parts, T):  # type: ignore[no-untyped-def]
    """Austenite of the parts at T, its slope per K, and what heating branches have of the slope."""
    m = c[MINOR_AT]
    least, least_K = _share(c, HEATING_AT, (T - place[0]) / place[1])
    most, most_K = _share(c, COOLING_AT, (T - place[2]) / place[3])
    xi, up_K, down_K = 0.0, 0.0, 0.0
    for k in range(GROUPS + 1):
        weight = m / GROUPS if k > 0 else 1.0 - m
        low, low_K = _branch_of(k, least, least_K / place[1])
        if parts[k] <= low or most <= low:
            xi, up_K = xi + weight * low, up_K + weight * low_K
        elif parts[k] >= most:
            xi, down_K = xi + weight * most, down_K + weight * most_K / place[3]
        else:
            xi += weight * parts[k]
    return xi, up_K + down_K, up_K


@njit(cache=True, error_model="numpy")
def settled_sloped(c, place, parts, per_xi, trial):  # type: ignore[no-untyped-def]
    """As `settled`, with minor loops that slope: T, xi, and the slopes of `_sloped`.

    Of T = trial - per_xi (xi - began) and the law, both monotone, the one common point. `parts`
    are those where the path began, of which `whole` is the austenite, and stay as they are.
    """
    began = whole(c, parts)
    low, high = trial - per_xi * (1.0 - began), trial + per_xi * began
    T, off_before = trial, np.inf
    for _ in range(SLOPED_STEPS):
        xi, slope, up = _sloped(c, place, parts, T)
        off = T - trial + per_xi * (xi - began)
        low, high = (low, T) if off > 0.0 else (T, high)
        before, T = T, T - off / (1.0 + per_xi * slope)
        if abs(off) > 0.5 * off_before or not low <= T <= high:
            T = 0.5 * (low + high)
        off_before = abs(off)
        if abs(T - before) < SLOPED_K:
            break
    xi, slope, up = _sloped(c, place, parts, T)
    return trial - per_xi * (xi - began), xi, slope, up


@njit(cache=True, inline="always", error_model="numpy")
def whole(c, parts):  # type: ignore[no-untyped-def]
    """The austenite fraction of equation (6)."""
    of_groups = 0.0
    for k in range(1, GROUPS + 1):
        of_groups += parts[k]
    return (1.0 - c[MINOR_AT]) * parts[0] + c[MINOR_AT] / GROUPS * of_groups


@njit(cache=True, error_model="numpy")
def move_parts(c, place, parts, T):  # type: ignore[no-untyped-def]
    """Let the parts follow their branches to T."""
    least, least_K = _share(c, HEATING_AT, (T - place[0]) / place[1])
    most, _ = _share(c, COOLING_AT, (T - place[2]) / place[3])
    for k in range(GROUPS + 1):
        low, _ = _branch_of(k, least, least_K)
        parts[k] = min(max(parts[k], low), max(low, most))


@njit(cache=True, error_model="numpy")
def heat_parts(parts, xi):  # type: ignore[no-untyped-def]
    """Set the parts of a wire that was heated until it had xi."""
    for k in range(GROUPS + 1):
        parts[k], _ = _branch_of(k, xi, 0.0)


@njit(cache=True, error_model="numpy")
def advance(law, c, place, duty, T, xi, remaining):  # type: ignore[no-untyped-def]
    """(T, xi) after a time at a constant duty and stress; as `hil.mechanics.sma.wire.advance`.

    c begins with the knots of both branches, as `row` does; place is from `places`.
    """
    C, L, G, T_a, E2 = law[C_AT], law[L_AT], law[G_AT], law[T_A_AT], law[E2_AT]
    r_M, dr = law[R_M_AT], law[DR_AT]
    moved = (xi < 1.0 and T > _ahead(c, place, xi, True)[0]) or (
        xi > 0.0 and T < _ahead(c, place, xi, False)[0]
    )
    if moved:  # a call costs more than the rest of most steps
        T, xi, _ = settled(c, place, law[L_AT] / law[C_AT], T, xi)
    E2 *= heats(law, T, xi)
    while remaining > 0.0:
        r = r_M + dr * xi
        P = duty * E2 / r
        q = P - G * (T - T_a)
        if q == 0.0:
            break
        rises = q > 0.0
        movable = xi < 1.0 if rises else xi > 0.0
        capacity, slope, target, limit, width, along = C, 0.0, T, xi, 1.0, False
        if movable:
            target, width, limit = _ahead(c, place, xi, rises)
            along = (T - target) * q >= -ON_BRANCH_K * abs(q)
            if along:
                width = max(width, 1e-9)
                target += width * (limit - xi)
                capacity, slope = C + L / width, -P * dr / (r * width)
        speed, rate = q / capacity, (G - slope) / capacity
        T_next = T + speed * remaining * phi(rate * remaining)
        took = remaining
        reached = movable and (T_next - target) * q >= 0.0
        if reached:
            took = min(remaining, max(0.0, time_to(target - T, speed, rate)))
            T_next = target
        if along:
            xi = limit if reached else min(1.0, max(0.0, xi + (T_next - T) / width))
        # Rounding must not carry a cooling wire past the air.
        T = T_next if rises else max(T_next, T_a)
        remaining -= took
    return T, xi
