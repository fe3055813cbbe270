"""Into how many steps wires under stress divide a period of the loop.

A step solves for the force of its end and takes it as linear over the step, h
(`hil.systems.array.model.wire_step`). The array's own motion is exact. What is not is the part of a
wire: of an oscillation w its force misses the share (w h)^2 / 12. A wire that transforms gives way,
at most as if the spring k_ae of its cell were gone, and so changes the stiffness of its cell,

    Z(s) = Ke + s Kv + Kd (Ze + s Zv) / (s - I)                             while it holds
    Z*(s) = Ke + s Kv + (Kd - Kf k_ae) (Ze + s Zv) / (s - I + Kp k_ae)      while it gives way

by the share k(w) = |Z* - Z| / max(|Z*|, |Z|) at s = i w. It is small where a damper lies across the
wire and the oscillation is fast. Steps keep

    k(w) (w h)^2 <= RADIANS_MAX^2    up to the fastest oscillation of the array,
    w h <= TURN_MAX                  of the fastest one,

and h <= STEP_MAX_S. A cell of several internal states counts whole, k = 1. Then the force is within
0.5 % of its range of that of infinitely short steps (tests/systems/array/model/test_wire_step.py).
A period of more than STEPS_MAX steps is refused (`period_max_s`).
"""

from collections.abc import Mapping
from math import ceil

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import eigsh

from hil.mechanics.arrays import Array
from hil.systems.array.model.cell_array import EXACT_ORDER_MAX, CellArray
from hil.systems.array.model.wire_load import Loaded

STEP_MAX_S, RADIANS_MAX, TURN_MAX, STEPS_MAX = 0.001, 0.25, 2.0, 10_000
SLOWEST, FREQUENCIES = 1e-3, 60  # of the fastest oscillation; number that are looked at
DENSE_MAX = 50  # masses of which all frequencies are calculated for the fastest
DAMPED = 0.7  # damping ratio from which a mode is none that rings

Wires = Mapping[int, Loaded]  # by the number of their cell


def steps_per_period(model: CellArray, wires: Wires, period_s: float) -> int:
    """Number of equal steps into which wires under stress divide a period."""
    if not wires or not all(one.implicit for one in wires.values()):
        return 1
    return max(1, ceil(period_s / step_max_s(model, wires) * (1.0 - 1e-9)))


def period_max_s(model: CellArray, wires: Wires) -> float:
    """The longest period of a loop with such wires."""
    return STEPS_MAX * step_max_s(model, wires)


def step_max_s(model: CellArray, wires: Wires) -> float:
    """The longest step in which the law of wires under stress is accurate; see the module."""
    fastest = fastest_per_s(model)
    if fastest == 0.0:
        return STEP_MAX_S
    per_s = np.geomspace(SLOWEST * fastest, fastest, FREQUENCIES)
    felt = float((per_s * np.sqrt(share_of_wires(model, wires, per_s))).max())
    return min(STEP_MAX_S, RADIANS_MAX / felt if felt > 0.0 else np.inf, TURN_MAX / fastest)


def share_of_wires(model: CellArray, wires: Wires, per_s: Array) -> Array:
    """The largest share k of a wire in the stiffness of its cell, at every frequency; module."""
    c, cells = model.coefficients, np.array(list(wires))
    owners, first, n_states = np.unique(c.cell_of, return_index=True, return_counts=True)
    at = np.searchsorted(owners, cells)
    d, s = first[at], 1j * per_s[:, None]
    k_ae, rate_per_s = np.array([one.k_ae_N_per_m for one in wires.values()]), c.iota.diagonal()[d]
    plain, moved = c.Ke[cells] + s * c.Kv[cells], c.Ze[d] + s * c.Zv[d]
    holds = plain + c.Kd[d] * moved / (s - rate_per_s)
    gives_way = plain + (c.Kd[d] - c.Kf[cells] * k_ae) * moved / (s - rate_per_s + c.Kp[d] * k_ae)
    whole = np.maximum(abs(holds), abs(gives_way))
    whole[whole == 0.0] = 1.0  # a broken cell
    share = np.where(n_states[at] > 1, 1.0, abs(gives_way - holds) / whole)
    largest: Array = share.max(axis=1)
    return largest


def fastest_per_s(model: CellArray) -> float:
    """The fastest oscillation of the array, rad/s, or a bound; 0 if none rings."""
    if len(model.states) > EXACT_ORDER_MAX:
        return undamped_max_per_s(model)
    poles = np.linalg.eigvals(model.A)
    rings = (poles.imag != 0.0) & (-poles.real < DAMPED * np.abs(poles))
    return float(np.abs(poles[rings]).max(initial=0.0))


def undamped_max_per_s(model: CellArray) -> float:
    """The fastest oscillation of the array if no damper moved, rad/s; no mode rings faster.

    Its cells have the stiffness Ke + sum_q Kd_q Zv_q, that of a sudden stretch.
    """
    c, nodes = model.coefficients, model.nodes
    sudden = abs(c.Ke + np.bincount(c.cell_of, c.Kd * c.Zv, len(c.Ke)))
    free = np.flatnonzero(nodes.free)
    E = nodes.E[:, free] @ sp.diags_array(nodes.mass_kg[free] ** -0.5)
    springs = sp.diags_array(nodes.spring_N_per_m[free] / nodes.mass_kg[free])
    stiffness = E.T @ sp.diags_array(sudden) @ E + springs
    if len(free) < DENSE_MAX:
        return float(np.sqrt(np.linalg.eigvalsh(stiffness.toarray()).max(initial=0.0)))
    [largest] = eigsh(stiffness, k=1, return_eigenvectors=False)
    return float(np.sqrt(largest))
