"""A wire under stress, stepped in time: its heat balance along the branches that stress moves.

`hil.mechanics.sma.stress` has the law and `hil.mechanics.sma.wire` the heat balance of a metre of
wire. Every branch is tabulated as the temperatures at PIECES + 1 equally spaced fractions of its
distribution, TAIL of which is cut off at either end, and is a line in between. `advance` holds the
stress. So a step has closed forms as the thermal law's has, goes from knot to knot, and depends on
its length by nothing but the stress, which `hil.systems.array.model.wire_step` lets change, and
`resistivity`, which counts as it is at the beginning.
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
from hil.mechanics.arrays import Array, Record, record_type
from hil.mechanics.sma.stress import GROUPS, Branch, LineBranch, REFERENCE_Pa, StressLaw
from hil.mechanics.sma.wire import heats, phi, time_to

PIECES = 32
TAIL = 0.005
AT_KNOT, ON_BRANCH_K = 1e-9, 1e-9  # what rounding leaves
SLOPED_STEPS, SLOPED_K = 100, 1e-11  # of Newton's method or, where it hardly helps, of halving

HEATING_KNOTS, COOLING_KNOTS, N_KNOTS = 0, PIECES + 1, 2 * (PIECES + 1)
"""Where the knots of both branches begin, and how many there are."""
AS_TABULATED = (0.0, 1.0, 0.0, 1.0)
"""The `place` of knots that are temperatures already, in deg C."""
BRANCH = record_type("middle_C", "K_per_Pa", "work_share", "widens_per_Pa")
STRESSED = record_type(
    "stroke_max", "stroke_more", "rate_per_Pa", "softer_per_Pa", "stress_per_work",
    "minor_loop_slope", knots_K=N_KNOTS, heating=BRANCH, cooling=BRANCH,
)  # fmt: skip
"""Constants of a wire's law under stress, as kernels take them."""


def constants_of(law: StressLaw) -> Record:
    """A law as kernels take it, a record of STRESSED."""
    c: Record = np.zeros(1, STRESSED)[0]
    c.knots_K = np.concatenate([knots_K(law.heating), knots_K(law.cooling)])
    for into, branch in ((c.heating, law.heating), (c.cooling, law.cooling)):
        into.middle_C, into.K_per_Pa = branch.middle_C, 1.0 / branch.slope_Pa_per_K
        into.work_share, into.widens_per_Pa = branch.work_share, branch.widens_per_Pa
    c.stroke_max, c.stroke_more = law.stroke_max, law.stroke_max - law.stroke_min
    c.rate_per_Pa = law.stroke_rate_per_Pa
    c.softer_per_Pa = 1.0 / law.modulus_M_Pa - 1.0 / law.modulus_A_Pa
    c.stress_per_work = REFERENCE_Pa / float(law.work_J_per_m3(REFERENCE_Pa))
    c.minor_loop_slope = law.minor_loop_slope
    return c


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
    remainder = c.stroke_more * np.exp(-c.rate_per_Pa * s)
    strain = c.stroke_max - remainder + c.softer_per_Pa * s
    return strain, c.rate_per_Pa * remainder + c.softer_per_Pa


@njit(cache=True, inline="always", error_model="numpy")
def places(c, s, slope):  # type: ignore[no-untyped-def]
    """Middles of the heating and cooling branch, deg C, and how much wider stress makes them.

    `slope` is the stroke's at this stress, as `stroke` gives it.
    """
    k, softer = c.rate_per_Pa, c.softer_per_Pa
    remainder = (slope - softer) / k
    work = c.stroke_max * s + (remainder - c.stroke_more) / k + 0.5 * softer * s * s
    moved = c.stress_per_work * work
    A, M = c.heating, c.cooling
    hot = ((1.0 - A.work_share) * s + A.work_share * moved) * A.K_per_Pa
    cold = ((1.0 - M.work_share) * s + M.work_share * moved) * M.K_per_Pa
    return (
        A.middle_C + hot,
        np.exp(A.widens_per_Pa * s),
        M.middle_C + cold,
        np.exp(M.widens_per_Pa * s),
    )


@njit(cache=True, inline="always", error_model="numpy")
def _on(knots, first, xi):  # type: ignore[no-untyped-def]
    """Where a branch is at a fraction, K above its middle; its knots begin at `first`."""
    j = min(PIECES - 1, int(xi * PIECES))
    low = knots[first + j]
    return low + (xi * PIECES - j) * (knots[first + j + 1] - low)


@njit(cache=True, error_model="numpy")
def branches(knots, place, fraction):  # type: ignore[no-untyped-def]
    """Temperatures of the heating and the cooling branch at a fraction; beyond 0 to 1 lines.

    `knots` (N_KNOTS,) are of both branches, `place` is from `places`.
    """
    inside = min(1.0, max(0.0, fraction))
    hot = _on(knots, HEATING_KNOTS, inside)
    hot += (fraction - inside) * (_on(knots, HEATING_KNOTS, 1.0) - _on(knots, HEATING_KNOTS, 0.0))
    cold = _on(knots, COOLING_KNOTS, inside)
    cold += (fraction - inside) * (_on(knots, COOLING_KNOTS, 1.0) - _on(knots, COOLING_KNOTS, 0.0))
    hot, cold = place[0] + place[1] * hot, place[2] + place[3] * cold
    return hot, min(hot, cold)


@njit(cache=True, inline="always", error_model="numpy")
def _ahead(knots, place, xi, rises):  # type: ignore[no-untyped-def]
    """The branch from xi to its next knot: temperature here, K per unit of xi, xi of the knot."""
    z = xi * PIECES
    if rises:
        j = min(PIECES - 1, int(z + AT_KNOT))
        low = knots[HEATING_KNOTS + j]
        width = place[1] * PIECES * (knots[HEATING_KNOTS + j + 1] - low)
        return place[0] + place[1] * low + width * (xi - j / PIECES), width, (j + 1.0) / PIECES
    j = max(0, int(np.ceil(z - AT_KNOT)) - 1)
    part, limit = z - j, j / PIECES
    hot, cold = knots[HEATING_KNOTS + j], knots[COOLING_KNOTS + j]
    hot_K = place[1] * (knots[HEATING_KNOTS + j + 1] - hot)
    cold_K = place[3] * (knots[COOLING_KNOTS + j + 1] - cold)
    hot, cold = place[0] + place[1] * hot, place[2] + place[3] * cold
    end, here = min(hot, cold), min(hot + part * hot_K, cold + part * cold_K)
    return here, (here - end) / part * PIECES, limit


@njit(cache=True, inline="always", error_model="numpy")
def moves(c, place, strain, T, heating):  # type: ignore[no-untyped-def]
    """K per pascal by which stress moves a branch where it is at T; `strain` is the stroke's."""
    branch = c.heating if heating else c.cooling
    middle_C = place[0] if heating else place[2]
    share = branch.work_share
    middle_K = ((1.0 - share) + share * c.stress_per_work * strain) * branch.K_per_Pa
    return middle_K + branch.widens_per_Pa * (T - middle_C)


@njit(cache=True, inline="always", error_model="numpy")
def settled(knots, place, per_xi, T, xi):  # type: ignore[no-untyped-def]
    """(T, xi) on or between the branches, as a jump of stress leaves them, and the branch's width.

    No heat is exchanged: dT = -per_xi dxi, with per_xi the latent heat over the heat capacity. The
    width is that of the branch that the wire is on, in K per unit of xi: negative for the cooling
    branch, 0 between the two and at the ends.
    """
    on = 0.0
    while xi < 1.0:
        meets, width, limit = _ahead(knots, place, xi, True)
        if T <= meets:
            break
        change = (T - meets) / (width + per_xi)
        if change < limit - xi:
            return T - per_xi * change, xi + change, width
        T, xi = T - per_xi * (limit - xi), limit
        on = width if xi < 1.0 else 0.0
    while xi > 0.0:
        meets, width, limit = _ahead(knots, place, xi, False)
        if T >= meets:
            break
        change = (T - meets) / (width + per_xi)
        if change > limit - xi:
            return T - per_xi * change, xi + change, -width
        T, xi = T - per_xi * (limit - xi), limit
        on = -width if xi > 0.0 else 0.0
    return T, xi, on


@njit(cache=True, inline="always", error_model="numpy")
def _share(knots, first, above_K):  # type: ignore[no-untyped-def]
    """The fraction that a branch has so far above its middle, and its slope per K."""
    low, high = first, first + PIECES
    if above_K <= knots[low]:
        return 0.0, 0.0
    if above_K >= knots[high]:
        return 1.0, 0.0
    while high - low > 1:
        middle = (low + high) // 2
        if above_K < knots[middle]:
            high = middle
        else:
            low = middle
    per_K = 1.0 / (PIECES * (knots[high] - knots[low]))
    return (low - first) / PIECES + (above_K - knots[low]) * per_K, per_K


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
    m = c.minor_loop_slope
    least, least_K = _share(c.knots_K, HEATING_KNOTS, (T - place[0]) / place[1])
    most, most_K = _share(c.knots_K, COOLING_KNOTS, (T - place[2]) / place[3])
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
    return (1.0 - c.minor_loop_slope) * parts[0] + c.minor_loop_slope / GROUPS * of_groups


@njit(cache=True, error_model="numpy")
def move_parts(c, place, parts, T):  # type: ignore[no-untyped-def]
    """Let the parts follow their branches to T."""
    least, least_K = _share(c.knots_K, HEATING_KNOTS, (T - place[0]) / place[1])
    most, _ = _share(c.knots_K, COOLING_KNOTS, (T - place[2]) / place[3])
    for k in range(GROUPS + 1):
        low, _ = _branch_of(k, least, least_K)
        parts[k] = min(max(parts[k], low), max(low, most))


@njit(cache=True, error_model="numpy")
def heat_parts(parts, xi):  # type: ignore[no-untyped-def]
    """Set the parts of a wire that was heated until it had xi."""
    for k in range(GROUPS + 1):
        parts[k], _ = _branch_of(k, xi, 0.0)


@njit(cache=True, error_model="numpy")
def advance(law, knots, place, duty, T, xi, remaining):  # type: ignore[no-untyped-def]
    """(T, xi) after a time at a constant duty and stress; as `hil.mechanics.sma.wire.advance`.

    `knots` (N_KNOTS,) are of both branches, `place` is from `places`.
    """
    C, L, G, T_a = law.C, law.L, law.G, law.T_a
    r_M, dr = law.r_martensite, law.r_change
    moved = (xi < 1.0 and T > _ahead(knots, place, xi, True)[0]) or (
        xi > 0.0 and T < _ahead(knots, place, xi, False)[0]
    )
    if moved:  # a call costs more than the rest of most steps
        T, xi, _ = settled(knots, place, L / C, T, xi)
    E2 = law.E2 * heats(law, T, xi)
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
            target, width, limit = _ahead(knots, place, xi, rises)
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
