"""What two recordings say they were made with, and what their rows show of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, NamedTuple

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
        noise = metrics.noise_rms(y[known])
        every_s = np.arange(t_s[known][0], t_s[known][-1], period_s)  # lost ticks are no delay
        y, model = (np.interp(every_s, t_s[known], curve[known]) for curve in (y, model))
        units = str(run[signal.measured].attrs["units"])
        facts[f"noise of {signal.name}"] = noise, SCATTER["noise"] * noise, units
        if np.ptp(model) > 10.0 * noise and np.ptp(y) > 0.0:
            fit = _behind(y, model, period_s, noise**2 / known.mean())
            facts[f"delay of {signal.name} behind the twin"] = fit.lag_s, fit.lag_scatter_s, "s"
            facts[f"gain of {signal.name} over the twin"] = fit.gain, fit.gain_scatter, ""
    lost = round(t_s[-1] / period_s) + 1 - len(t_s)
    facts["lost ticks"] = lost, SCATTER_LOST * len(t_s), ""
    on = run.cells_reported.values == 1 if "cells_reported" in run else None
    for i, cell in enumerate(run.cell.values if on is not None and "cell" in run.coords else ()):
        column = f"{cell}.current_A"
        if on is None or column not in run:
            continue
        readings = run[column].values[on[:, i]]
        if np.isfinite(readings).any():
            current_A = float(np.nanmean(readings))
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


class _Fit(NamedTuple):
    """Delay and gain of a curve over another, and how far those are apart that fit as well."""

    lag_s: float
    lag_scatter_s: float
    gain: float
    gain_scatter: float


def _behind(y: np.ndarray, model: np.ndarray, period_s: float, noise_var: float) -> _Fit:
    """Delay at the largest correlation of two curves, with the gain there.

    A delayed exponential is another exponential: of a curve that only rises, noise leaves open how
    late and how high it is. Delays fit as well where the sum of squares of the residual is within
    9 `noise_var` of the least one, as of three standard deviations. All are compared with the whole
    of `y`, the model held at its ends: another part of `y` has another correlation.
    """
    n_max = max(1, min(len(y) // 4, round(LAG_MAX_S / period_s)))
    lags = np.arange(-n_max, n_max + 1)
    places = np.arange(len(y))
    of_models = [model[np.clip(places - lag, 0, len(y) - 1)] for lag in lags]
    with np.errstate(invalid="ignore"):  # NaN of a part in which the model rests
        scores = np.array([np.corrcoef(y, part)[0, 1] for part in of_models])
    explained = np.sum((y - y.mean()) ** 2) * scores * np.abs(scores)
    best = int(np.nanargmax(explained))
    alike = np.flatnonzero(explained >= explained[best] - 9.0 * noise_var)
    first, last = alike[0], alike[-1]
    gains = [float(np.polyfit(of_models[i], y, 1)[0]) for i in (best, first, last)]
    return _Fit(
        float(lags[best] * period_s), float(max(1, last - first) * period_s),
        gains[0], max(SCATTER["gain"], float(np.ptp(gains))),
    )  # fmt: skip
