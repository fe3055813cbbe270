"""What two recordings say they were made with, and what their rows show of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING

import numpy as np

from hil.config.values import Attributes
from hil.errors import one_line
from hil.loop.channels import signals_in
from hil.record import metrics
from hil.record.read import experiment_of

if TYPE_CHECKING:
    import xarray as xr

LAG_MAX_S = 0.2
SCATTER = {"noise": 0.05, "gain": 0.005, "current": 0.02, "supply": 0.005}
"""Relative scatter of what rows show, from one run to the next; a difference is counted in it."""
SCATTER_C, SCATTER_LOST = 0.5, 1e-3


@dataclass(frozen=True)
class Shown:
    """A condition that the rows show: its value in both runs, and the difference in scatters."""

    name: str
    was: float
    now: float
    units: str
    score: float

    def text(self) -> str:
        """One line."""
        return f"{self.name}: {self.was:.4g} -> {self.now:.4g} {self.units}".rstrip()


def stated(a: xr.Dataset, b: xr.Dataset) -> Iterator[tuple[str, str, str]]:
    """Differences of software, room and circumstances, as the recordings state them."""
    for title, one, other in (
        ("", _circumstances(a.attrs), _circumstances(b.attrs)),
        ("software ", _json(a.attrs, "software"), _json(b.attrs, "software")),
    ):
        for key in dict.fromkeys((*one, *other)):
            if one.get(key) != other.get(key):
                yield title + key, _text(one.get(key)), _text(other.get(key))


def _circumstances(attrs: Attributes) -> Attributes:
    keys = ("experiment_file", "outcome", "operator", "article", "backend", "clock", "ambient_C")
    return {key: attrs[key] for key in keys if key in attrs}


def _json(attrs: Attributes, key: str) -> Attributes:
    return dict(json.loads(attrs.get(key, "{}")))


def _text(value: object) -> str:
    return "not stated" if value is None else one_line(str(value))


def shown(a: xr.Dataset, b: xr.Dataset) -> list[Shown]:
    """What the rows of both show of noise, delay, gain, currents, supply, temperature and timing.

    The largest difference is first, in multiples of what two runs of one rig may differ in.
    """
    one, other = _conditions(a), _conditions(b)
    differences = []
    for name, (was, scatter, units) in one.items():
        now, scatter_now, _ = other.get(name, (np.nan, 0.0, ""))
        if isfinite(was) and isfinite(now) and was != now:
            score = abs(now - was) / max(scatter, scatter_now, 1e-12)
            differences.append(Shown(name, was, now, units, score))
    return sorted(differences, key=lambda condition: -condition.score)


def _conditions(run: xr.Dataset) -> Mapping[str, tuple[float, float, str]]:
    """Value, scatter and units of every condition by name."""
    facts: dict[str, tuple[float, float, str]] = {}
    t_s = run.t_s.values
    period_s = float(experiment_of(run)["loop"]["period_s"])
    names = [str(name) for name in run.data_vars]
    for signal in signals_in(names):
        y, model = run[signal.measured].values, run[signal.model].values
        known = np.isfinite(y) & np.isfinite(model)
        if known.sum() < 10:
            continue
        every_s = np.arange(t_s[known][0], t_s[known][-1], period_s)  # lost ticks are no delay
        y, model = (np.interp(every_s, t_s[known], curve[known]) for curve in (y, model))
        units = str(run[signal.measured].attrs["units"])
        noise = metrics.noise_rms(y)
        facts[f"noise of {signal.name}"] = noise, SCATTER["noise"] * noise, units
        if np.ptp(model) > 10.0 * noise:
            lag_s = _lag_s(y, model, period_s)
            facts[f"delay of {signal.name} behind the twin"] = lag_s, period_s, "s"
            shifted, of_model = _aligned(y, model, round(lag_s / period_s))
            gain = float(np.polyfit(of_model, shifted, 1)[0])
            facts[f"gain of {signal.name} over the twin"] = gain, SCATTER["gain"], ""
    lost = round(t_s[-1] / period_s) + 1 - len(t_s)
    facts["lost ticks"] = lost, SCATTER_LOST * len(t_s), ""
    on = run.cells_reported.values == 1 if "cells_reported" in run else None
    for i, cell in enumerate(run.cell.values if on is not None and "cell" in run.coords else ()):
        column = f"{cell}.current_A"
        if on is not None and column in run and on[:, i].any():
            current_A = float(np.nanmean(run[column].values[on[:, i]]))
            facts[f"current of {cell} while on"] = current_A, SCATTER["current"] * current_A, "A"
    for name in names:
        values = run[name].values
        if name.endswith("_voltage_V") and np.isfinite(values).any():
            volts = float(np.nanmean(values))
            facts[name] = volts, SCATTER["supply"] * abs(volts), "V"
        elif name.endswith(".temperature_C") and np.isfinite(values).any():
            facts[f"{name} at the start"] = float(values[np.isfinite(values)][0]), SCATTER_C, "degC"
    if "ambient_C" in run.attrs:
        facts["room"] = float(run.attrs["ambient_C"]), SCATTER_C, "degC"
    return facts


def _lag_s(y: np.ndarray, model: np.ndarray, period_s: float) -> float:
    """Delay of a curve behind another, at the largest correlation of the two."""
    n_max = max(1, min(len(y) // 4, round(LAG_MAX_S / period_s)))
    lags = range(-n_max, n_max + 1)
    scores = [np.corrcoef(*_aligned(y, model, lag))[0, 1] for lag in lags]
    return (int(np.argmax(scores)) - n_max) * period_s


def _aligned(y: np.ndarray, model: np.ndarray, lag: int) -> tuple[np.ndarray, np.ndarray]:
    if lag > 0:
        return y[lag:], model[:-lag]
    return (y[:lag], model[-lag:]) if lag < 0 else (y, model)
