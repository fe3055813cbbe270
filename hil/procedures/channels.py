"""`hil calibrate daq_channel` and `latency`: offset, noise and delay of a channel.

Offset and noise are mean and standard deviation of the raw voltage at rest. Slow drift correlates
neighbouring readings, so the uncertainty of the mean is computed from the means of 20 batches. The
uncertainty of the noise is s / sqrt(2 nu).

Latency is the shift delta for which measured(t) = a model(t - delta) + c fits best; the twin's
curve is interpolated between rows. Errors of the twin enter the latency: calibrate springs, damping
and activation first.

Source: JCGM 100:2008 (GUM), 4.2.3, E.4.3 (of a standard deviation); Law & Kelton, Simulation
Modeling and Analysis, ch. 9 (batch means).
"""

from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from hil.config.table import Positive, Table
from hil.errors import ConfigError
from hil.loop.channels import signals_in
from hil.procedures.fits import nonlinear, refuse_saturated
from hil.record.read import calibrations_of, open_run

BATCHES = 20
READINGS_MIN = 10 * BATCHES
AMPLITUDE_MIN = 10.0


class Settings(Table):
    duration_s: Positive = 5.0
    range_V: Positive = 10.0
    discarded_s: Annotated[float, Field(ge=0.0)] = 0.1

    def schedule(self) -> tuple[list[tuple[float, float]], float]:
        """(on, off) times of the pulses, none, and the duration [s]."""
        return [], self.duration_s


def daq_channel(
    path: Path, settings: Settings, channel: str | None
) -> dict[str, dict[str, object]]:
    """Offset and noise of one channel, or of every channel that is read in volts.

    Raises
    ------
    ConfigError
        Cells were on, a reading is saturated, or the readings are too few.
    """
    run, kept = open_run(path), calibrations_of(path)
    if "cells_reported" in run and np.any(run.cells_reported.values == 1):
        raise ConfigError(f"{path}: cells were on: take a run with everything at rest")
    figures = {}
    for name in _named(path, [n for n in kept if f"{n}.raw_V" in run], channel):
        V = run[f"{name}.raw_V"].values[run.t_s.values >= settings.discarded_s]
        V = V[~np.isnan(V)]  # a device with `every` is not read in every row
        refuse_saturated(V, settings.range_V, "V", f"daq_channel {name}")
        if len(V) < READINGS_MIN:
            raise ConfigError(f"daq_channel {name}: {len(V)} readings are too few: {READINGS_MIN}")
        figures[name] = _offset_and_noise(V)
    return figures


def _offset_and_noise(V: NDArray[np.float64]) -> dict[str, object]:
    n_used = len(V) // BATCHES * BATCHES
    means = V[:n_used].reshape(BATCHES, -1).mean(axis=1)
    offset, noise = float(V[:n_used].mean()), float(V.std(ddof=1))
    u_offset = float(means.std(ddof=1)) / np.sqrt(BATCHES)
    u_noise = noise / np.sqrt(2.0 * (len(V) - 1))
    # The uncertainty of independent readings; drift or hum makes it several times as large.
    white = noise / np.sqrt(n_used)
    messages = [f"offset {1e3 * offset:.4g} mV, noise {1e3 * noise:.4g} mV rms"]
    if u_offset > 2.0 * white:
        messages.append(
            f"it drifts: the uncertainty of the mean is {u_offset / white:.1f} times that of noise"
        )
    steps = np.unique(np.diff(np.unique(V)).round(12))
    if len(steps) and noise < 0.5 * float(steps.min()):
        messages.append(
            "the noise is below half a step of the card: the mean may be wrong by half a step"
        )
    return {
        "values": {"offset_V": offset, "noise_rms_V": noise},
        "covariance": np.diag([u_offset**2, u_noise**2]),
        "equation": "mean and standard deviation at rest",
        "dof": BATCHES - 1,
        "raw": {"batch_mean_V": means},
        "said": messages,
    }


def latency(path: Path, channel: str | None) -> dict[str, dict[str, object]]:
    """Delay of one channel, or of every channel that moved, against the twin.

    Raises
    ------
    ConfigError
        No channel moved enough, or the twin does not fit.
    """
    run = open_run(path)
    names = list(calibrations_of(path))
    t = run.t_s.values
    results, still = {}, []
    force_names = iter([n for n in names if f"{n}.raw_V" in run or f"{n}.raw_mV_per_V" in run])
    for signal in signals_in(str(name) for name in run.data_vars):
        name = signal.name if signal.name in names else next(force_names, signal.name)
        if channel is not None and name != channel:
            continue
        y, m = run[signal.measured].values, run[signal.model].values
        mask = np.isfinite(y) & np.isfinite(m)
        result = _shift(t[mask], y[mask], m[mask], name)
        if result is None:
            still.append(name)
        else:
            results[name] = result
    if not results:
        raise ConfigError(
            f"{path}: latency: {', '.join(still) or 'no channel of that name'}: moves too "
            "little relative to its noise: switch a cell, or move an axis"
        )
    return results


def _shift(
    t: NDArray[np.float64], y: NDArray[np.float64], m: NDArray[np.float64], name: str
) -> dict[str, object] | None:
    period_s = float(np.median(np.diff(t)))
    noise = float(np.std(np.diff(y, 2)) / np.sqrt(6.0))
    if np.ptp(m) < AMPLITUDE_MIN * max(noise, 1e-12):
        return None
    first = int(np.argmax(np.abs(m - m[0]) > 0.02 * np.ptp(m)))

    def curve(p: NDArray[np.float64]) -> NDArray[np.float64]:
        delta, a, c = p
        return np.asarray(a * np.interp(t - delta, t, m) + c)

    start = [period_s, 1.0, 0.0]
    bounds = ([-0.5, 0.1, -np.inf], [0.5, 10.0, np.inf])
    used = t > t[0] + 0.5 * min(0.5, t[first] - t[0] + period_s)
    fit = nonlinear(lambda p: (curve(p) - y)[used], start, ("delay", "scale", "zero"),
                    f"latency {name}", bounds)  # fmt: skip
    messages = [f"{name}: {1e3 * fit.values[0]:.4g} ms late, scale {fit.values[1]:.5g}"]
    if fit.sigma > 1.5 * noise:
        raise ConfigError(
            f"latency {name}: {fit.sigma / noise:.1f} times the noise remains as residual: "
            "the twin differs from the plant: calibrate springs, damping and activation first"
        )
    return {
        "values": {"delay_s": float(fit.values[0])},
        "covariance": [[float(fit.covariance[0, 0])]],
        "equation": "measured(t) = a model(t - delay) + c",
        "dof": fit.dof,
        "residual_rms": fit.sigma,
        "raw": {"scale": [float(fit.values[1])], "zero": [float(fit.values[2])]},
        "said": messages,
    }


def _named(path: Path, channels: list[str], channel: str | None) -> list[str]:
    names = [name for name in channels if channel in (None, name)]
    if not names:
        raise ConfigError(f"{path}: --channel {channel}: choose {', '.join(channels) or 'none'}")
    return names
