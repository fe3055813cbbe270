"""A wire under stress, stepped in time: its heat balance along the branches that stress moves.

`hil.mechanics.sma.stress` has the law and `hil.mechanics.sma.wire` the heat balance of a metre of
wire. Every branch is tabulated as the temperatures at PIECES + 1 equally spaced fractions of its
distribution, TAIL of which is cut off at either end, and is a line in between. Stress is held over
a period. So a step has closed forms as the thermal law's has, goes from knot to knot, and depends
on the period by nothing but the stress.

Where stress has moved a branch across the wire's state, the wire transforms at once and without
exchange of heat, C dT = -L dxi, until it is on the branch again.

Left out of the heat balance: the mechanical work, which at 216 MPa and 4 % is 6 % of the latent
heat of TCF1140.
"""

import numpy as np
from numba import njit

from hil.mechanics.arrays import Array
from hil.mechanics.sma.stress import Branch, LineBranch, REFERENCE_Pa, StressLaw
from hil.mechanics.sma.wire import (
    C_AT,
    DR_AT,
    E2_AT,
    G_AT,
    L_AT,
    R_M_AT,
    T_A_AT,
    phi,
    time_to,
)

PIECES = 32
TAIL = 0.005

# Where a row of `row` has each constant; of a branch the cooling one follows the heating one.
MIDDLE_AT, PER_PA_AT, SHARE_AT, WIDENS_AT, OF_BRANCH = 0, 1, 2, 3, 4
H_MAX_AT, MORE_AT, RATE_AT, SOFTER_AT, PHI_AT = 8, 9, 10, 11, 12
HEATING_AT = 13
COOLING_AT = HEATING_AT + PIECES + 1
N_CONSTANTS = COOLING_AT + PIECES + 1


def row(law: StressLaw) -> Array:
    """A law as the kernel takes it, (N_CONSTANTS,): constants, then the knots of both branches."""
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
    ]
    return np.concatenate([constants, knots_K(law.heating), knots_K(law.cooling)])


def knots_K(branch: Branch) -> Array:
    """How far above the middle equal fractions of a branch have transformed, without stress."""
    if isinstance(branch, LineBranch):
        return np.linspace(-0.5, 0.5, PIECES + 1) * branch.core_K
    reach_K = 20.0 * branch.core_K * branch.shoulder_ratio + abs(branch.shoulder_at_K)
    u_K = np.linspace(-reach_K, reach_K, 20001)
    shares = np.linspace(TAIL, 1.0 - TAIL, PIECES + 1)
    return np.interp(shares, branch.distribution(u_K), u_K)


@njit(cache=True)
def stroke(c, s):  # type: ignore[no-untyped-def]
    """H + S sigma, the strain of martensite beyond austenite's, and its slope with stress."""
    gone = c[MORE_AT] * np.exp(-c[RATE_AT] * s)
    return c[H_MAX_AT] - gone + c[SOFTER_AT] * s, c[RATE_AT] * gone + c[SOFTER_AT]


@njit(cache=True)
def places(c, s, slope):  # type: ignore[no-untyped-def]
    """Middles of the heating and cooling branch, deg C, and how much wider stress makes them.

    `slope` is the stroke's at this stress, as `stroke` gives it.
    """
    k, softer = c[RATE_AT], c[SOFTER_AT]
    gone = (slope - softer) / k
    work = c[H_MAX_AT] * s + (gone - c[MORE_AT]) / k + 0.5 * softer * s * s
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


@njit(cache=True)
def _on(c, first, xi):  # type: ignore[no-untyped-def]
    """Where a branch is at a fraction, K above its middle; its knots begin at `first`."""
    j = min(PIECES - 1, int(xi * PIECES))
    low = c[first + j]
    return low + (xi * PIECES - j) * (c[first + j + 1] - low)


@njit(cache=True)
def _meets(c, place, xi, rises):  # type: ignore[no-untyped-def]
    """The temperature at which a wire that warms, or cools, begins to transform at xi."""
    hot = place[0] + place[1] * _on(c, HEATING_AT, xi)
    if rises:
        return hot
    return min(hot, place[2] + place[3] * _on(c, COOLING_AT, xi))


@njit(cache=True)
def _piece(xi, rises):  # type: ignore[no-untyped-def]
    """The knot that comes next on the way."""
    if rises:
        return min(1.0, (int(xi * PIECES + 1e-9) + 1.0) / PIECES)
    return max(0.0, (np.ceil(xi * PIECES - 1e-9) - 1.0) / PIECES)


@njit(cache=True)
def settled(law, c, place, T, xi):  # type: ignore[no-untyped-def]
    """(T, xi) on or between the branches, as a jump of stress leaves them: no heat is exchanged."""
    for rises in (True, False):
        sign = 1.0 if rises else -1.0
        while xi < 1.0 if rises else xi > 0.0:
            meets = _meets(c, place, xi, rises)
            if sign * (T - meets) <= 0.0:
                break
            limit = _piece(xi, rises)
            width = (_meets(c, place, limit, rises) - meets) / (limit - xi)
            change = (T - meets) / (width + law[L_AT] / law[C_AT])
            ends = sign * (xi + change - limit) < 0.0
            if not ends:
                change = limit - xi
            xi = xi + change if ends else limit
            T -= law[L_AT] / law[C_AT] * change
            if ends:
                break
    return T, xi


@njit(cache=True)
def advance(law, c, place, duty, T, xi, remaining):  # type: ignore[no-untyped-def]
    """(T, xi) after a time at a constant duty and stress; as `hil.mechanics.sma.wire.advance`.

    c begins with `row`, place is from `places`.
    """
    C, L, G, T_a, E2 = law[C_AT], law[L_AT], law[G_AT], law[T_A_AT], law[E2_AT]
    r_M, dr = law[R_M_AT], law[DR_AT]
    T, xi = settled(law, c, place, T, xi)
    while remaining > 0.0:
        r = r_M + dr * xi
        P = duty * E2 / r
        q = P - G * (T - T_a)
        if q == 0.0:
            break
        rises = q > 0.0
        movable = xi < 1.0 if rises else xi > 0.0
        meets = _meets(c, place, xi, rises)
        along = movable and (T - meets) * q >= 0.0
        limit, capacity, slope, target, width = xi, C, 0.0, meets, 1.0
        if along:
            limit = _piece(xi, rises)
            target = _meets(c, place, limit, rises)
            width = max((target - meets) / (limit - xi), 1e-9)
            capacity, slope = C + L / width, -P * dr / (r * width)
        rate = (G - slope) / capacity
        T_next = T + q / capacity * remaining * phi(rate * remaining)
        took = remaining
        if movable and (T_next - target) * q >= 0.0:
            took = min(remaining, max(0.0, time_to(target - T, q / capacity, rate)))
            T_next = target
        if along:
            xi = limit if T_next == target else xi + (T_next - T) / width
            xi = min(1.0, max(0.0, xi))
        # Rounding must not carry a cooling wire past the air.
        T = T_next if rises else max(T_next, T_a)
        remaining -= took
    return T, xi
