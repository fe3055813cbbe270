"""The compiled step of wires under stress: heat, stress and force, solved together.

`hil.systems.array.model.wire_load` has the equations. The heat balance of a step is solved in
closed form at the stress of its beginning, and gives T* and xi*. What a stress that changes evenly
over the step moves, is of first order in that change. With half of it on the average over h,

    (C + h G / 2) (T - T*) + (L + h P' / 2) (xi - xi*) = 0,    P' = -dP/dxi

are the states that the wire's heat allows at the end of the step. Of these it has the one between
its branches at the stress of the end that is nearest to where it began: xi stays or follows a
branch (`hil.mechanics.sma.stressed.settled`). So T, xi, stress and force of the end fulfil every
equation, however far stress has moved the branches, and the error is of second order in h.

Where minor loops slope, the line is that of the trapezoidal rule from the beginning of the step,
T* = T + h q / (C + h G / 2) with the heat flow q of the beginning and xi* = xi, and xi follows
equation (6) of `hil.mechanics.sma.stress` along it (`hil.mechanics.sma.stressed.settled_sloped`).

A wire with `coupling = "held"` keeps T* and xi*, whatever its stress has become: the law of older
recordings, of first order, which rings where a wire pulls a mass.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hil.compiled import borrowed, njit
from hil.mechanics.arrays import Array, Records, record_type
from hil.mechanics.sma.stress import GROUPS
from hil.mechanics.sma.stressed import (
    STRESSED,
    advance,
    heat_parts,
    move_parts,
    moves,
    places,
    settled,
    settled_sloped,
    stroke,
    whole,
)
from hil.mechanics.sma.wire import heats, ohm_per_m_of

HELD_STEPS, NEWTON_STEPS, SWEEPS_MAX = 5, 30, 30
HELD_SOLVED = (
    1e-3  # of a newton and of the pull of rest: what is left is of the order of its square
)
# Of the force of a contraction and of the pull of rest. What is left, of the order of CLOSE squared
# and a share of SOLVED, must not show in derivatives (STEP_OF_WIRES of `hil.identification`).
CLOSE = 1e-7
SOLVED = 1e-11  # of the change by a sweep over coupled wires
SAME = 1e-6  # of austenite and that of its parts; another value was set from outside

CELL = record_type(
    "area_m2", "pull_N", "force_on_N", "k_ae_N_per_m", "rest_strain", "own_m_per_N", "implicit",
    law=STRESSED,
)  # fmt: skip
"""Constants of a cell's wires: pull_N of all at rest; own_m_per_N: how far their force stretches
them within a step."""
LOAD = record_type("tension_N", "T_C", "xi", "trial", "began", "per_xi", "strain", parts=GROUPS + 1)
"""Tension of a wire's cell, its T and xi; T and xi from which it settles; latent heat over heat
capacity; strain of its martensite; the parts of its austenite where minor loops slope."""


class StressedWires(NamedTuple):
    """The m wires under stress of a model with N cells.

    Attributes
    ----------
    h : step, s
    coupled : whether the force of a wire stretches another one within a step
    at : (2, m) array, index of a wire's cell, and of its law in `laws`
    constants : (m,) array of CELL (`wire_load.constants`)
    laws, state : of `hil.mechanics.sma.wire.SmaWires`
    stretch_per : (K, m) array
        Stretches after a step per force after it, state, force before, motion of driven points
        before and after. Wires are columns, for vector instructions. Of an array whose step is
        sparse only the forces after, (N, m).
    loads : (m,) array of LOAD
    free : (m,) array, stretches after the step with the other wires' forces as they are
    """

    h: float
    coupled: bool
    at: NDArray[np.int64]
    constants: Records
    laws: Records
    state: Array
    stretch_per: Array
    loads: Records
    free: Array


@njit(cache=True, error_model="numpy")
def step_loaded(drive, x, wires, F_before, F, motion):  # type: ignore[no-untyped-def]
    """Advance wires by a step, with these duties held, from the state x of the array.

    `motion` has position and velocity of every driven point, before and after the step. F_before
    and F (N,) are the cells' forces.
    """
    wires = borrowed(wires)
    at, free, per = wires.at, wires.free, wires.stretch_per
    for i in range(len(free)):
        F_before[at[0, i]] = F[at[0, i]]
    free[:] = 0.0
    _add(per, len(F), x, free)
    _add(per, len(F) + len(x), F_before, free)
    _add(per, 0, F, free)
    _add(per, 2 * len(F) + len(x), motion[0], free)
    _add(per, 2 * len(F) + len(x) + motion.shape[1], motion[1], free)
    solve_loaded(drive, wires, F)


@njit(cache=True, error_model="numpy")
def solve_loaded(drive, wires, F):  # type: ignore[no-untyped-def]
    """Advance wires by a step from `wires.free`, with these duties held; F (N,) is theirs before.

    F becomes that after the step.
    """
    wires = borrowed(wires)
    at, loads, free, per = wires.at, wires.loads, wires.free, wires.stretch_per
    constants, laws, state = wires.constants, wires.laws, wires.state
    for sweep in range(SWEEPS_MAX if wires.coupled else 1):
        solved = True
        for i in range(len(constants)):
            n, c, load = at[0, i], constants[i], loads[i]
            at_stress = _at_stress(c, load.tension_N)
            if sweep == 0:
                load.T_C, load.xi = state[0, n], state[1, n]
                _heat(laws[at[1, i]], c, load, at_stress[2], _duty(drive[n]), wires.h)
            force = _force(c, load, free[i], at_stress)
            change = force - F[n]
            for k in range(len(free)):  # the other wires feel it
                free[k] += per[n, k] * change
            F[n] = force
            solved = solved and abs(change) <= SOLVED * (c.force_on_N + c.pull_N)
        if solved:
            break
    for i in range(len(constants)):
        n, law, load = at[0, i], laws[at[1, i]], loads[i]
        if constants[i].law.minor_loop_slope > 0.0:
            _keep_parts(constants[i], load)
        T, xi = load.T_C, load.xi
        ohm = law.cell_Ohm_m * ohm_per_m_of(law, T, xi, (1.0 - xi) * load.strain)
        state[0, n], state[1, n] = T, xi
        state[2, n], state[3, n] = _duty(drive[n]) * law.cell_V / ohm, ohm


@njit(inline="always", error_model="numpy")
def _duty(of_cell):  # type: ignore[no-untyped-def]
    return min(1.0, float(of_cell)) if of_cell > 0 else 0.0


@njit(cache=True, error_model="numpy")
def _add(per, first, values, into):  # type: ignore[no-untyped-def]
    """Add to `into` what these values move every wire; row by row, without a sum to reorder."""
    for j in range(len(values)):
        for k in range(len(into)):
            into[k] += per[first + j, k] * values[j]


@njit(inline="always", error_model="numpy")
def _at_stress(c, tension):  # type: ignore[no-untyped-def]
    """Strain of a wire's martensite, its slope, and the place of its branches."""
    stress = tension / c.area_m2
    strain, slope = stroke(c.law, stress)
    return strain, slope, places(c.law, stress, slope)


@njit(inline="always", error_model="numpy")
def _heat(law, c, load, place, duty, h):  # type: ignore[no-untyped-def]
    """Solve the heat balance of a wire at the stress of the beginning, where its branches are."""
    began = load.xi
    if c.law.minor_loop_slope > 0.0:
        _heat_sloped(law, c, load, duty, h)
        return
    T, xi = advance(law, c.law.knots_K, place, duty, load.T_C, began, h)
    r = law.r_martensite + law.r_change * xi
    latent = law.L + 0.5 * h * duty * law.E2 * law.r_change / (r * r)
    per_xi = latent / (law.C + 0.5 * h * law.G)
    load.T_C, load.xi = T, xi
    load.trial, load.began, load.per_xi = T + per_xi * (xi - began), began, per_xi


@njit(inline="always", error_model="numpy")
def _heat_sloped(law, c, load, duty, h):  # type: ignore[no-untyped-def]
    """The states that the heat balance allows at the end of a step, by the trapezoidal rule."""
    T, xi, parts = load.T_C, load.xi, load.parts
    if abs(whole(c.law, parts) - xi) > SAME:
        heat_parts(parts, xi)
    r = law.r_martensite + law.r_change * xi
    P = duty * law.E2 * heats(law, T, xi) / r
    capacity = law.C + 0.5 * h * law.G
    load.trial = T + h * (P - law.G * (T - law.T_a)) / capacity
    load.began = xi
    load.per_xi = (law.L + 0.5 * h * P * law.r_change / r) / capacity


@njit(inline="always", error_model="numpy")
def _keep_parts(c, load):  # type: ignore[no-untyped-def]
    """Take the parts of the austenite to the temperature and stress of the end of a step."""
    _, _, place = _at_stress(c, load.tension_N)
    move_parts(c.law, place, load.parts, load.T_C)
    xi = whole(c.law, load.parts)
    load.T_C -= load.per_xi * (xi - load.xi)
    load.xi = xi


@njit(inline="always", error_model="numpy")
def _force(c, load, free, at_stress):  # type: ignore[no-untyped-def]
    """Solve a wire's tension, f - known - eases F(f) = 0, which rises with f; return F.

    It begins with the tension of `load`, at which `at_stress` is.
    """
    on, k_ae, rest = c.force_on_N, c.k_ae_N_per_m, c.rest_strain
    eases, known = 1.0 + k_ae * c.own_m_per_N, c.pull_N + k_ae * free
    held = c.implicit == 0.0
    close = HELD_SOLVED * (1.0 + c.pull_N) if held else CLOSE * (on + c.pull_N)
    f, low, high = load.tension_N, 0.0, np.inf
    strain, slope, place = at_stress
    for _ in range(HELD_STEPS if held else NEWTON_STEPS):
        loses = 0.0 if held else _settle(c, load, place, strain)
        share = (1.0 - load.xi) * on / rest
        off = f - known - eases * (on - share * strain)
        lost = eases * on / rest * loses * strain
        change = off / (1.0 + eases * share * slope / c.area_m2 + lost)
        before, f = f, max(0.0, f - change)
        if not held:
            low, high = (low, before) if off > 0.0 else (before, high)
            if not low <= f <= high:
                f = 0.5 * (low + high)
            _follow(load, loses * (f - before))
        if abs(change) < close or f == before:
            break
        strain, slope, place = _at_stress(c, f)
    load.tension_N, load.strain = f, strain
    return (f - known) / eases


@njit(inline="always", error_model="numpy")
def _settle(c, load, place, strain):  # type: ignore[no-untyped-def]
    """Settle a wire where its branches are; return how much less austenite a newton more leaves."""
    law, per_xi = c.law, load.per_xi
    if law.minor_loop_slope > 0.0:
        T, xi, per_K, up_K = settled_sloped(law, place, load.parts, per_xi, load.trial)
        load.T_C, load.xi = T, xi
        moved = up_K * moves(law, place, strain, T, True)
        moved += (per_K - up_K) * moves(law, place, strain, T, False)
        return moved / (c.area_m2 * (1.0 + per_xi * per_K))
    T, xi, width = settled(law.knots_K, place, per_xi, load.trial, load.began)
    load.T_C, load.xi = T, xi
    if width == 0.0:
        return 0.0
    return moves(law, place, strain, T, width > 0.0) / (c.area_m2 * (abs(width) + per_xi))


@njit(inline="always", error_model="numpy")
def _follow(load, less):  # type: ignore[no-untyped-def]
    """Let a wire follow the last change of its tension along its branch."""
    xi = min(1.0, max(0.0, load.xi - less))
    load.T_C -= load.per_xi * (xi - load.xi)
    load.xi = xi
