"""The panel of cells in figures: what each was reported to do, and when it failed."""

from __future__ import annotations

import json

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.ticker import MaxNLocator, NullLocator

from hil.loop.channels import DUTY, known_before
from hil.pages.style import CELL, FAULT

PIXELS = 1000  # intervals in which duties are averaged
GAPS_MAX = 60  # cells; gaps between more are thinner than pixels, and cells would look half on


def draw_cells(axis: Axes, run: xr.Dataset) -> None:
    """A row for every cell: filled while it is on, or as dark as its duty is large."""
    t_s, n_cells = run.t_s.values, run.sizes["cell"]
    if DUTY in run:
        _draw_duties(axis, run)
    else:
        _draw_switched(axis, run)
    for failure in json.loads(run.attrs.get("summary", "{}")).get("failed_cells", []):
        cell = [str(name) for name in run.cell.values].index(failure["cell"])
        if len(t_s) and t_s[0] <= failure["t_s"] <= t_s[-1]:
            axis.plot(failure["t_s"], cell + 1, "x", color=FAULT, ms=6, mew=2, clip_on=False)
    axis.yaxis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 5, 10]))
    axis.yaxis.set_minor_locator(NullLocator())
    axis.set_ylim(n_cells + 0.6, 0.4)
    if len(t_s) > 1:
        axis.set_xlim(t_s[0], t_s[-1])
    axis.set_ylabel("duty of cells" if DUTY in run else "cells on")


def _draw_duties(axis: Axes, run: xr.Dataset) -> None:
    """The mean duty of every cell in PIXELS intervals: the darker, the larger."""
    t_s, duty = run.t_s.values, run[DUTY].values
    starts = np.unique(np.linspace(0, len(t_s), PIXELS, endpoint=False).astype(int))
    mean = np.add.reduceat(duty, starts, axis=0) / np.diff([*starts, len(t_s)])[:, None]
    edges_s = [*t_s[starts], t_s[-1]]
    shades = LinearSegmentedColormap.from_list("duty", ["white", CELL])
    rows = 0.5 + np.arange(duty.shape[1] + 1)
    axis.pcolormesh(edges_s, rows, mean.T, cmap=shades, vmin=0.0, vmax=1.0, rasterized=True)


def _draw_switched(axis: Axes, run: xr.Dataset) -> None:
    cells, t_s = known_before(run.cells_reported.values), run.t_s.values
    gap = 0.2 if cells.shape[1] <= GAPS_MAX else 0.0
    for cell in range(cells.shape[1]):
        on = (cells[:, cell] == 1).astype(int)
        edges = np.flatnonzero(np.diff(np.concatenate(([0], on, [0]))))
        starts, ends = edges[::2], np.minimum(edges[1::2], len(t_s) - 1)
        spans = [(t_s[a], t_s[b] - t_s[a]) for a, b in zip(starts, ends, strict=True)]
        rows = (cell + 0.5 + 0.5 * gap, 1.0 - gap)
        axis.broken_barh(spans, rows, color=CELL, lw=0, antialiased=gap > 0.0)
