"""The least error of any on/off sequence on a given plant: a search with full information.

For one cell, with the others fixed, dynamic programming over the cell's own state (temperature,
austenite, lag) finds the best on/off sequence on a time grid: of all paths into a bin of
states the cheapest is kept. Sweeps over the cells continue until no cell improves the result. The
result is simulated on the same plant. Its error is what a controller with full knowledge,
including future set points, could achieve, or more, since the descent can end above the minimum.
The descent then continues with halved bins, which reduced the error by 7 % on the steps of
6 cells. `study_bound` gives the lower bound.
"""

import numpy as np

from hil.compiled import njit
from hil.control.reference import Reference
from hil.mechanics.arrays import Array, Mask
from hil.mechanics.sma.wire import T_A_AT, advance, wire_laws
from hil.systems.array.model.force_levels import static_gains_N
from hil.systems.array.model.response import responses
from hil.systems.array.model.system import ArraySystem
from hil_studies.recruitment.plant import PERIOD_S, RIGHT, Plant

GRID_S = 0.05
T_BIN_C, XI_BINS, LAG_BINS = 4.0, 10, 20
T_BINS = 50
FINER = (1, 2)
TOLERANCE = 1e-3


def least_error(
    truth: Plant, follow: Reference, start: Mask, *, sweeps: int = 12, counted_from_s: float = 0.0
) -> tuple[float, Mask]:
    """Return the RMS error (N) of the best sequence found, and the sequence (blocks, N).

    Parameters
    ----------
    start : (blocks, N) array, initial sequence
    counted_from_s : errors before it, in a lead-in, do not count
    """
    laws = wire_laws([a.wire for a in truth.activation])
    F_N = np.array([a.force_on_N for a in truth.activation])
    gains_N = static_gains_N(truth.model, F_N, RIGHT)
    c = truth.model.coefficients
    blend = -np.expm1(c.iota.diagonal() * PERIOD_S)  # iota is minus each cell's rate
    sub = round(GRID_S / PERIOD_S)
    n_ticks = len(start) * sub
    wanted = np.array([follow.at((k + 1) * PERIOD_S) for k in range(n_ticks)])
    counts = (np.arange(n_ticks) >= round(counted_from_s / PERIOD_S)).astype(float)
    able = np.flatnonzero(np.abs(gains_N) > 1e-12)
    on = start.copy()
    parts = np.zeros((len(gains_N), n_ticks))
    for n in able:
        parts[n] = _response(laws[n], gains_N[n], blend[n], PERIOD_S, sub, on[:, n])
    now = float(counts @ (wanted - parts.sum(axis=0)) ** 2)
    for finer in FINER:
        for _ in range(sweeps):
            before = now
            for n in able:
                rest = wanted - (parts.sum(axis=0) - parts[n])
                own = _best(
                    laws[n], gains_N[n], blend[n], PERIOD_S, sub, rest, counts, T_BIN_C / finer,
                    T_BINS * finer, XI_BINS * finer, LAG_BINS * finer,
                )  # fmt: skip
                part = _response(laws[n], gains_N[n], blend[n], PERIOD_S, sub, own)
                left = float(counts @ (rest - part) ** 2)
                if left < now:
                    now, on[:, n], parts[n] = left, own, part
            if now > before * (1.0 - TOLERANCE):
                break
    error_N = simulated(truth, follow, on)[0][counts > 0.0]
    return float(np.sqrt(np.mean(error_N**2))), on


def simulated(truth: Plant, follow: Reference, on: Mask) -> tuple[Array, float]:
    """Return the error (N) after every tick under a sequence (blocks, N), on the plant itself.

    Also return its wear: full cycles of transformation a second, mean over the wires.
    """
    held = np.repeat(on, round(GRID_S / PERIOD_S), axis=0)
    system, n = ArraySystem(truth.model, truth.activation, PERIOD_S), truth.model.n_cells
    output = np.array([truth.model.outputs.index(RIGHT)])
    [run] = responses([system], output, held, of_wires=n + np.arange(n))
    turned = float(np.abs(np.diff(run[:, 1:], axis=0)).mean(axis=1).sum())
    wanted = np.array([follow.at((k + 1) * PERIOD_S) for k in range(len(held))])
    return wanted - run[1:, 0], 0.5 * turned / (len(held) * PERIOD_S)


@njit(cache=True)
def _response(law, gain_N, blend, period_s, sub, on):  # type: ignore[no-untyped-def]
    """Return the force of a cell after every tick."""
    y = np.empty(len(on) * sub)
    T, xi, lag = law[T_A_AT], 0.0, 0.0
    for b in range(len(on)):
        for i in range(sub):
            T, xi = advance(law, float(on[b]), T, xi, period_s)
            lag += blend * (xi - lag)
            y[b * sub + i] = gain_N * lag
    return y


@njit(cache=True)
def _best(law, gain_N, blend, period_s, sub, rest, counts, T_bin, n_T, n_xi, n_lag):  # type: ignore[no-untyped-def]
    """Return the on/off sequence with the least error against `rest` (dynamic programming)."""
    n_blocks = len(rest) // sub
    n_bins = n_T * (n_xi + 1) * (n_lag + 1)
    where = np.full(n_bins, -1, dtype=np.int32)
    width = n_bins
    T, xi = np.empty((2, width)), np.empty((2, width))
    lag, cost = np.empty((2, width)), np.empty((2, width))
    came = np.empty((n_blocks, width), dtype=np.int32)
    did = np.empty((n_blocks, width), dtype=np.uint8)
    T[0, 0], xi[0, 0], lag[0, 0], cost[0, 0] = law[T_A_AT], 0.0, 0.0, 0.0
    n_now = 1
    for b in range(n_blocks):
        now, new = b % 2, 1 - b % 2
        where[:] = -1
        n_new = 0
        for k in range(n_now):
            for action in range(2):
                t, x, z, c = T[now, k], xi[now, k], lag[now, k], cost[now, k]
                for i in range(sub):
                    t, x = advance(law, float(action), t, x, period_s)
                    z += blend * (x - z)
                    e = rest[b * sub + i] - gain_N * z
                    c += counts[b * sub + i] * e * e
                i_T = min(n_T - 1, max(0, int((t - law[T_A_AT]) / T_bin)))
                i_x, i_z = int(x * n_xi), int(min(1.0, z) * n_lag)
                key = (i_T * (n_xi + 1) + i_x) * (n_lag + 1) + i_z
                at = where[key]
                if at < 0:
                    at = n_new
                    where[key] = at
                    n_new += 1
                elif c >= cost[new, at]:
                    continue
                T[new, at], xi[new, at], lag[new, at], cost[new, at] = t, x, z, c
                came[b, at], did[b, at] = k, action
        n_now = n_new
    last = n_blocks % 2
    at = 0
    for k in range(n_now):
        if cost[last, k] < cost[last, at]:
            at = k
    on = np.empty(n_blocks, dtype=np.uint8)
    for b in range(n_blocks - 1, -1, -1):
        on[b] = did[b, at]
        at = came[b, at]
    return on
