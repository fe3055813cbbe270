"""A lower bound on the error of any on/off sequence, to compare with `study_optimum`.

The force is r - e = sum_n y_n, where y_n is one of the trajectories Y_n that cell n can produce.
For every direction u

    |e| |u| >= u . e = u . r - sum_n u . y_n >= u . r - sum_n max_{Y_n} u . y

so (u . r - sum_n h_n(u)) / |u| is a lower bound on the norm of the error: the distance of r from
the half-space that contains all sums. It is the Lagrangian dual (lambda = 2 s u with the best
scale s) of the least-squares problem. Its maximum over u is the least error over the convex hulls
of the Y_n; the difference from the optimum is the duality gap.

The array is linear from the cells' austenite fractions to the force: y_n = F_n g_n * xi_n with the
impulse response g_n of the same plant, including inertia. So h_n(u) = max sum_k mu_k xi_k with
mu = F_n g_n correlated with u, over the states of one wire. `study_outer` bounds it from
above. The bound therefore holds for every sequence that switches at ticks of 10 ms (hold 1), which
includes the sequences on the grid of the optimum.

u comes from the least error over the hulls of the trajectories found so far (column generation, or
fully corrective Frank-Wolfe; nonnegative least squares with the sums of weights as heavy rows),
moved half-way towards the best u so far (P. Wentges, Weighted Dantzig-Wolfe decomposition, 1997).
The bound holds for any u. The search therefore steps the wires only every 50 ms, which reduces
their drift within bins; the final bound uses finer bins and every tick.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls
from scipy.signal import fftconvolve

from hil.control.reference import Reference
from hil.mechanics.arrays import Array
from hil.mechanics.sma.wire import wire_laws
from hil.systems.array.model.system import ArraySystem
from hil_studies.recruitment.outer import Bins, OuterWire
from hil_studies.recruitment.plant import PERIOD_S, RIGHT, Plant

SEARCH = Bins(0.1, 50, 20)
SEARCH_TICKS = 5
PROOF = Bins(0.05, 100, 20)
HEAVY = 10.0  # weight of the rows that sum the weights, relative to |r|
SETTLED = 1e-3  # relative tolerance between the error over the hulls and the bound


@dataclass(frozen=True)
class Bound:
    """The bound, and the result of the search.

    Attributes
    ----------
    rmse_N : no sequence has a lower RMS error
    direction : (ticks,) array, the u that gives this bound
    """

    rmse_N: float
    direction: Array


def least_possible(
    truth: Plant,
    follow: Reference,
    n_ticks: int,
    *,
    hold: int = 1,
    rounds: int = 60,
    search: Bins = SEARCH,
    proof: Bins = PROOF,
) -> Bound:
    """Return a lower bound on the RMS error (N) of sequences that can switch every `hold` ticks.

    Parameters
    ----------
    rounds : largest number of rounds of the search for the direction
    search, proof : bins of the states for the search and for the final bound
    """
    wanted = np.array([follow.at((k + 1) * PERIOD_S) for k in range(n_ticks)])
    gains = responses(truth, n_ticks)
    able = np.flatnonzero(np.abs(gains).max(axis=1) > 1e-12)
    laws = wire_laws([a.wire for a in truth.activation])
    steps = SEARCH_TICKS * PERIOD_S
    direction = _search(
        wanted, gains[able], [OuterWire(laws[n], search, steps) for n in able],
        max(1, hold // SEARCH_TICKS), rounds,
    )  # fmt: skip
    most = sum(OuterWire(laws[n], proof).most(_earned(gains[n], direction), hold) for n in able)
    least = max(0.0, _height(wanted, direction, most))
    return Bound(least / np.sqrt(n_ticks), direction)


def responses(truth: Plant, n_ticks: int) -> Array:
    """Return the force after every tick, (N, ticks) in N, of a cell that is fully austenitic at
    the end of the first tick only.
    """
    output, n_cells = truth.model.outputs.index(RIGHT), truth.model.n_cells
    system = ArraySystem(truth.model, truth.activation, PERIOD_S)
    none = np.zeros(n_cells)
    gains = np.empty((n_cells, n_ticks))
    for n, a in enumerate(truth.activation):
        pulse = np.where(np.arange(n_cells) == n, a.force_on_N, 0.0)
        linear = system.stepper()
        for k in range(n_ticks):
            linear.step(pulse if k == 1 else none, pulse if k == 0 else none)
            gains[n, k] = linear.y[output]
    return gains


def _force(gain: Array, xi: Array) -> Array:
    return np.asarray(fftconvolve(gain, xi)[: len(xi)])


def _earned(gain: Array, direction: Array) -> Array:
    """Return mu: the contribution of a cell's austenite after every tick along the direction."""
    return _force(gain, direction[::-1])[::-1].copy()


def _height(wanted: Array, direction: Array, most: float) -> float:
    """Return the distance of `wanted` from {v: direction . v <= most}; negative inside."""
    if not direction.any():
        return 0.0
    return (float(direction @ wanted) - most) / float(np.linalg.norm(direction))


def _search(wanted: Array, gains: Array, wires: list[OuterWire], hold: int, rounds: int) -> Array:
    """Return the best direction found.

    The wires are stepped every SEARCH_TICKS, with xi linear in between.
    """
    n_cells, n_ticks = gains.shape
    ends = np.arange(SEARCH_TICKS, n_ticks + 1, SEARCH_TICKS)
    between = np.maximum(
        0.0, 1.0 - np.abs(np.arange(1, n_ticks + 1)[:, None] - ends) / SEARCH_TICKS
    )
    columns, owner = [np.zeros(n_ticks)] * n_cells, list(range(n_cells))
    heavy = HEAVY * float(np.linalg.norm(wanted))
    left, nearest = wanted, np.zeros(n_ticks)
    bound, better = 0.0, False
    for _ in range(rounds):
        u = 0.5 * (left + nearest) if better else left
        total = 0.0
        for n, wire in enumerate(wires):
            most, xi = wire.best(_earned(gains[n], u) @ between, hold)
            total += most
            columns.append(_force(gains[n], between @ xi))
            owner.append(n)
        height = _height(wanted, u, total)
        better = height > bound
        if better:
            bound, nearest = height, u * (height / np.linalg.norm(u))
        Y, own = np.array(columns).T, np.array(owner)
        sums = heavy * (own == np.arange(n_cells)[:, None])
        weights, _ = nnls(np.vstack((Y, sums)), np.concatenate((wanted, np.full(n_cells, heavy))))
        weights /= np.bincount(own, weights, n_cells)[own]
        left = wanted - Y @ weights
        relaxed = float(np.linalg.norm(left))
        if relaxed - bound <= SETTLED * relaxed:
            break
    return nearest if bound > 0.0 else left
