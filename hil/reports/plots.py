"""Curves of a run for its page, where they can be zoomed and read: panels as JSON for uPlot."""

import json
from collections.abc import Iterator
from itertools import cycle
from typing import NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hil.config.values import Figures
from hil.loop.channels import known_before, signals_in
from hil.loop.frame import units
from hil.pages.style import CELL, FAULT, MEASURED, MODEL, REFERENCE, RESIDUAL
from hil.validation.band import Band

Values = NDArray[np.float64]
POINTS_MAX = 6000  # of a curve; beyond, the least and the largest of each stretch
NUMBERS_MAX = 250_000  # of a page, at some 8 bytes
LATE = "#777777"
COLORS = (CELL, MEASURED, RESIDUAL, MODEL, FAULT, LATE)


class Curve(NamedTuple):
    """A curve of a panel: its name, colour, values in every row, and whether it is dashed."""

    label: str
    color: str
    values: Values
    dashed: bool = False


class Panel(NamedTuple):
    """Curves with a common axis; `steps` are drawn as steps, a row for each."""

    label: str
    curves: list[Curve]
    steps: bool = False


def plots_json(run: xr.Dataset, band: Band) -> str:
    """Panels, times and marks of a run, ready for a script of a page."""
    panels = [panel for panel in _panels(run, band) if panel.curves]
    n_curves = 1 + sum(len(panel.curves) for panel in panels)
    most = max(200, min(POINTS_MAX, NUMBERS_MAX // n_curves))
    t_s = run.t_s.values
    texts = [_panel_json(panel, most) for panel in panels]
    times = _numbers(_times(t_s, most), digits=9)
    text = f'{{"t_s": {times}, "marks": {json.dumps(marks(run))}, "panels": [{", ".join(texts)}]}}'
    return text.replace("<", "\\u003c")  # no tag and no comment may begin in it


def _panel_json(panel: Panel, most: int) -> str:
    """A panel; its values as text of few digits, which `json` cannot."""
    curves = []
    for c in panel.curves:
        facts = json.dumps({"label": c.label, "color": c.color, "dashed": c.dashed})
        curves.append(f'{facts[:-1]}, "values": {_numbers(shortened(c.values, most))}}}')
    facts = json.dumps({"label": panel.label, "steps": panel.steps})
    return f'{facts[:-1]}, "curves": [{", ".join(curves)}]}}'


def _panels(run: xr.Dataset, band: Band) -> Iterator[Panel]:
    for signal in signals_in(str(name) for name in run.data_vars):
        unit = units(signal.suffix)
        measured, model = run[signal.measured].values, run[signal.model].values
        curves = [Curve("measured", MEASURED, measured), Curve("simulated (twin)", MODEL, model)]
        if signal.reference is not None and np.isfinite(run[signal.reference].values).any():
            curves.append(Curve("set point", REFERENCE, run[signal.reference].values, True))
        if band.column == signal.measured and not band.without:
            half = np.interp(run.t_s.values, band.t_s, band.half_width)
            curves += [Curve(f"{band.name}, {end}", MODEL, model + sign * half, True)
                       for end, sign in (("lower", -1.0), ("upper", 1.0))]  # fmt: skip
        yield Panel(f"{signal.name} [{unit}]", curves)
        residual = [Curve("measured − simulated", RESIDUAL, measured - model)]
        yield Panel(f"difference [{unit}]", residual)
    outputs = [str(n) for n in run.data_vars if str(n).partition("_commanded")[1]]
    outputs = [name for name in outputs if run[name].ndim == 1]
    for unit in dict.fromkeys(map(units, outputs)):
        alike = [name for name in outputs if units(name) == unit]
        yield Panel(f"commanded [{unit}]", [
            Curve(name.partition("_commanded")[0], color, run[name].values)
            for name, color in zip(alike, cycle(COLORS), strict=False)
        ])  # fmt: skip
    if "cells_reported" in run:
        on = known_before(run.cells_reported.values) == 1
        rows = [Curve(f"cell {i + 1}", CELL, i + 1 + 0.8 * on[:, i]) for i in range(on.shape[1])]
        yield Panel("cells on", rows, steps=True)
    if run.attrs.get("clock") == "real":
        yield Panel("late [µs]", [Curve("late", LATE, 1e6 * run.late_s.values)])


def marks(run: xr.Dataset) -> list[Figures]:
    """Events that are no mere information, and the trip, with their time and colour.

    Late ticks have a panel of their own.
    """
    run = run.isel(event=run.event_source.values != "kernel")
    rows = zip(run.event_t_s.values, run.event_level.values, run.event_text.values, strict=True)
    return [
        {"t_s": float(t), "level": str(level), "text": str(text),
         "color": LATE if level == "warning" else FAULT}
        for t, level, text in rows if level != "info" and np.isfinite(t)
    ]  # fmt: skip


def shortened(values: Values, most: int) -> Values:
    """At most so many values: of each stretch of rows the least and the largest, in their order."""
    if len(values) <= most:
        return values
    rows = _stretches(values, most)
    known = np.where(np.isfinite(rows), rows, np.nan)
    empty = np.isnan(known).all(axis=1)
    known[empty] = 0.0
    at = np.sort(np.stack((np.nanargmin(known, axis=1), np.nanargmax(known, axis=1)), axis=1))
    two = np.take_along_axis(known, at, axis=1)
    two[empty] = np.nan
    return two.ravel()


def _times(t_s: Values, most: int) -> Values:
    """The times of `shortened` values: the first and the middle one of each stretch."""
    if len(t_s) <= most:
        return t_s
    rows = _stretches(t_s, most)
    return rows[:, [0, rows.shape[1] // 2]].ravel()


def _stretches(values: Values, most: int) -> Values:
    """Rows of one length each; the last value fills the last row."""
    long = -(-2 * len(values) // most)
    return np.pad(values, (0, -len(values) % long), mode="edge").reshape(-1, long)


def _numbers(values: Values, digits: int = 5) -> str:
    shown = (f"{v:.{digits}g}" if np.isfinite(v) else "null" for v in values.tolist())
    return f"[{','.join(shown)}]"
