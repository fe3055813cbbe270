"""Monte Carlo simulation of a broadcast run: its cells are drawn again with the sent p and q.

Every cell draws independently, n+ = n + Bin(N - n, p) - Bin(n, q). The same messages give another
mask at every draw, and the variance of the force over many draws is the variance of recruitment.
Between two messages the cells do not change, but a rig that is disarmed switches them off. Where
the air is measured, its median over the run is that of the wires.

Source: Ueda, Odhner & Asada 2007, Int. J. Robotics Research 26(11-12).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hil.identification.grey_box import GreyBox
from hil.identification.runs import RunData
from hil.loop.states import NUMBERS
from hil.mechanics.arrays import Array
from hil.systems.array.build import build_activation, build_model
from hil.systems.array.model.response import responses
from hil.systems.array.model.system import ArraySystem

DRAWS, AT_ONCE = 300, 20
OFF = (0.0, 1.0)  # p and q with which all cells go off, and nothing is drawn


@dataclass(frozen=True)
class Recruitment:
    """Statistics of the simulated force over all draws, at every reading.

    Attributes
    ----------
    mean_N, low_N, high_N : (k,) arrays, mean and ends of the central 95 % interval
    sd_N : (k,) array
    n_messages : of which something is drawn
    """

    mean_N: Array
    low_N: Array
    high_N: Array
    sd_N: Array
    n_messages: int


def messages_of(run: xr.Dataset, period_s: float) -> list[tuple[int, float, float]]:
    """Period from which it holds, p and q of every broadcast of a recording.

    Where the rig has switched all cells off, as one that is disarmed, p is 0 and q is 1.
    """
    tick = run.broadcast_tick.values
    begins = np.diff(np.nan_to_num(tick), prepend=0.0) != 0.0
    ends = np.zeros_like(begins)
    if "guard_state" in run:
        runs = run.guard_state.values == NUMBERS["running"]
        ends[1:] = runs[:-1] & ~runs[1:]
    at = periods_of(run, period_s)
    return [
        (int(at[k]), *(OFF if ends[k] else (float(run.p_on.values[k]), float(run.q_off.values[k]))))
        for k in np.flatnonzero(begins | ends)
    ]


def cells_open_of(run: xr.Dataset, period_s: float) -> NDArray[np.uint8] | None:
    """(n, N) cells that a board had isolated over every period; None if boards do not isolate."""
    if "cells_open" not in run:
        return None
    at = periods_of(run, period_s)
    row = np.searchsorted(at, np.arange(at[-1] + 1), side="right") - 1
    return np.asarray(run.cells_open.values[row], dtype=np.uint8)


def periods_of(run: xr.Dataset, period_s: float) -> NDArray[np.int64]:
    """The period that begins at each row, 0 at the first; a period that was missed has no row."""
    tick = np.rint(run.t_s.values / period_s).astype(np.int64)
    return np.asarray(tick - tick[0])


def draw_again(
    box: GreyBox,
    data: RunData,
    messages: list[tuple[int, float, float]],
    seed: int = 0,
    done: Callable[[int], None] = lambda n_more: None,
    cells_open: NDArray[np.uint8] | None = None,
) -> Recruitment:
    """Simulate the force with cells that are drawn again at every message.

    Parameters
    ----------
    messages : period, p and q of every broadcast
    done : is called with the number of further draws
    cells_open : (n, N) cells that a board had isolated over every period; they are always off
    """
    table = box.table_at(box.start)
    model, activation = build_model(table), build_activation(table)
    at = model.outputs.index(data.signal)
    rng = np.random.default_rng(seed)
    n, n_cells = data.cells.shape
    forces = []
    edges = [min(period, n) for period, _, _ in messages] + [n]

    def drawn() -> NDArray[np.uint8]:
        cells = np.zeros((n, n_cells), dtype=np.uint8)
        on = np.zeros(n_cells, dtype=bool)
        for (period, p, q), end in zip(messages, edges[1:], strict=True):
            u = rng.random(n_cells)
            on = np.where(on, u >= q, u < p)
            cells[period:end] = on
        if cells_open is not None:
            cells[: len(cells_open)][cells_open[:n] != 0] = 0
        return cells

    for _ in range(0, DRAWS, AT_ONCE):
        systems = [ArraySystem(model, activation, data.period_s) for _ in range(AT_ONCE)]
        for system in systems:
            if np.isfinite(data.ambient_C):
                system.wires.set_ambient(data.ambient_C, settled=True)
        cells = [drawn() for _ in systems]
        for force_N in responses(systems, np.array([at]), cells, data.moves_m):
            forces.append(data.reading.of(force_N[:, 0], data.period_s)[data.rows])
        done(AT_ONCE)
    low, high = np.quantile(forces, (0.025, 0.975), axis=0)
    n_messages = sum((p, q) != OFF for _, p, q in messages)
    return Recruitment(np.mean(forces, axis=0), low, high, np.std(forces, axis=0), n_messages)
