"""A bound from below on what any on/off sequence leaves: the full-information optimum's other side.

The force is r - e = sum_n y_n, each y_n one of the trajectories Y_n that cell n's sequences give.
For every direction u

    |e| |u| >= u . e = u . r - sum_n u . y_n >= u . r - sum_n max_{Y_n} u . y

so that (u . r - sum_n h_n(u)) / |u| bounds the error's norm from below: how far r is from the
half-space that holds all sums. It is the Lagrangian dual (lambda = 2 s u, the best scale s taken)
of the least squares; over all u its greatest value is the least error of the convex hulls of
the Y_n, and the difference to the optimum is the duality gap.

The array is linear from the cells' austenite fractions to the force: y_n = F_n g_n * xi_n with the
impulse response g_n of the very plant, inertia and all. So h_n(u) = max sum_k mu_k xi_k with
mu = F_n g_n correlated with u, over one wire's own states: `recruitment_outer` bounds it from
above. The bound therefore holds for every sequence on the ticks of 10 ms (hold 1), of which those
on the optimum's grid are some.

u comes from the least error over the hulls of what was found so far (column generation, or fully
corrective Frank-Wolfe; nonnegative least squares with the sums of weights as heavy rows), drawn
half-way towards the best u so far (P. Wentges, Weighted Dantzig-Wolfe decomposition, 1997).
Whatever u is, the bound holds: the search looks at the wires every 50 ms only, where bins leave
them less to drift, and what it ends with is proven on finer bins and at every tick.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls
from scipy.signal import fftconvolve

from hil.control.reference import Reference
from hil.mechanics.sma.wire import wire_laws
from hil.systems.array.recruitment.study_outer import Bins, OuterWire
from hil.systems.array.recruitment.study_plant import PERIOD_S, RIGHT, Plant
from hil.systems.array.system import ArraySystem

SEARCH = Bins(0.1, 50, 20)
SEARCH_TICKS = 5
PROOF = Bins(0.05, 100, 20)
HEAVY = 10.0  # of the rows that sum weights, over |r|
SETTLED = 1e-3  # relative, of the error over the hulls above the bound

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Bound:
    """What was proven and where the search ended.

    Attributes
    ----------
    rmse_N : float
        No sequence leaves a lower RMS error than this.
    direction : (ticks,) array
        The u that proves it.
    relaxed_N : float
        RMS error over the hulls of what drifting wires gave: the search's own bound would end
        no higher than this, on its bins.
    """

    rmse_N: float
    direction: Vector
    relaxed_N: float


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
    """A bound from below on the RMS error (N) of all sequences that may switch every `hold` ticks.

    Parameters
    ----------
    rounds : int
        At most, of the search for the direction.
    search, proof : Bins
        Of the states while searching, and for the figure itself.
    """
    wanted = np.array([follow.at((k + 1) * PERIOD_S) for k in range(n_ticks)])
    gains = responses(truth, n_ticks)
    able = np.flatnonzero(np.abs(gains).max(axis=1) > 1e-12)
    laws = wire_laws([a.wire for a in truth.activation])
    steps = SEARCH_TICKS * PERIOD_S
    direction, relaxed = _search(
        wanted, gains[able], [OuterWire(laws[n], search, steps) for n in able],
        max(1, hold // SEARCH_TICKS), rounds,
    )  # fmt: skip
    most = sum(OuterWire(laws[n], proof).most(_earned(gains[n], direction), hold) for n in able)
    least = max(0.0, _height(wanted, direction, most))
    return Bound(least / np.sqrt(n_ticks), direction, relaxed)


def responses(truth: Plant, n_ticks: int) -> Vector:
    """Force after every tick, (N, ticks) in N, of a cell that was fully austenitic after the first
    tick alone.
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


def _force(gain: Vector, xi: Vector) -> Vector:
    return np.asarray(fftconvolve(gain, xi)[: len(xi)])


def _earned(gain: Vector, direction: Vector) -> Vector:
    """mu: what a cell's austenite after every tick is worth along the direction."""
    return _force(gain, direction[::-1])[::-1].copy()


def _height(wanted: Vector, direction: Vector, most: float) -> float:
    """Distance of what is wanted from the half-space {v: direction . v <= most}; < 0 inside."""
    if not direction.any():
        return 0.0
    return (float(direction @ wanted) - most) / float(np.linalg.norm(direction))


def _search(
    wanted: Vector, gains: Vector, wires: list[OuterWire], hold: int, rounds: int
) -> tuple[Vector, float]:
    """Best direction found, and the RMS error over the hulls of what was found.

    Wires are looked at every SEARCH_TICKS only, xi linear in between.
    """
    n_cells, n_ticks = gains.shape
    ends = np.arange(SEARCH_TICKS, n_ticks + 1, SEARCH_TICKS)
    between = np.maximum(
        0.0, 1.0 - np.abs(np.arange(1, n_ticks + 1)[:, None] - ends) / SEARCH_TICKS
    )
    columns, owner = [np.zeros(n_ticks)] * n_cells, list(range(n_cells))
    heavy = HEAVY * float(np.linalg.norm(wanted))
    left, nearest = wanted, np.zeros(n_ticks)
    bound, relaxed = 0.0, np.inf
    better = False
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
    return nearest if bound > 0.0 else left, relaxed / np.sqrt(n_ticks)
