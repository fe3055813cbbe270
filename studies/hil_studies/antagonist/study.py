"""`hil study antagonist`: an antagonist pair of wires under force control, after a published one.

Two wires pull on a transducer from opposite sides. Its force is that of the first wire less that of
the second. Anchor: Teh & Featherstone 2008, An Architecture for Fast and Accurate Control of Shape
Memory Alloy Actuators, Int. J. Robotics Research 27(5), abstract: force accuracy as high as 1 mN in
a range of +-3 N, force rate as high as 50 N/s.

The pair is `configs/antagonist`, simulated as `hil run` simulates it: with its board, its limits,
its transducer and the controller of `hil.systems.array.antagonists`.
"""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from pydantic import Field

import hil
from hil import bundled_configs
from hil.config.table import Positive, Table
from hil.mechanics.arrays import Array
from hil.pages.study import as_table, check, saved
from hil.pages.style import MEASURED, MODEL, mark_simulated, styled_figure

LEVELS_N = (0.0, 0.4, -0.4, 0.8, -0.8, 0.0)
HELD_S, SETTLE_S = 2.5, 1.0  # of a level; after a step, before its error counts
SINE_N, SINES_HZ = 0.6, (0.1, 0.25, 0.5, 1.0)
RANGE_N = 1.6
RATE_S = 0.02  # over which a force rate is taken


class Values(Table):
    """What `--set` may change: the gains of the controller, and the number of noises."""

    least_N: Annotated[float, Field(ge=0.0, le=3.0)] = 0.2
    k_p: Annotated[float, Field(ge=0.0)] = 2.5
    k_i_per_s: Annotated[float, Field(ge=0.0)] = 6.0
    response_s: Positive = 0.015
    dead_band: Annotated[float, Field(ge=0.0, le=0.1)] = 0.0025
    seeds: Annotated[int, Field(ge=1, le=100)] = 4


def run(out: Path, values: Values) -> dict[str, Any]:
    """Run steps and sines; the results, as written to results.json."""
    n_levels = len(LEVELS_N)
    steps = {"kind": "steps", "t_s": [HELD_S * k for k in range(n_levels)], "force_N": [*LEVELS_N]}
    stairs = [follow(values, steps, HELD_S * n_levels, seed) for seed in range(values.seeds)]
    sines = {
        f"{f_Hz:g} Hz": follow(
            values,
            {"kind": "sine", "mean_N": 0.0, "amplitude_N": SINE_N, "frequency_Hz": f_Hz},
            max(2.0 / f_Hz, 4.0),
        )
        for f_Hz in SINES_HZ
    }
    rises, falls = np.min([slews_N_per_s(steps) for steps in stairs], axis=0).tolist()
    held_N = np.concatenate([held_error_N(steps) for steps in stairs])
    worst_mean_N = float(np.abs(held_N.mean(axis=1)).max())
    errors_N = {name: rms(sine_error_N(sine)) for name, sine in sines.items()}
    rows = [
        ["steps, held", f"{1e3 * rms(held_N):.1f} mN", _share(rms(held_N)), "1 mN"],
        ["steps, largest mean", f"{1e3 * worst_mean_N:.1f} mN", _share(worst_mean_N), "1 mN"],
        *(
            [f"sine of {SINE_N:g} N, {name}", f"{1e3 * one:.0f} mN", _share(one), "-"]
            for name, one in errors_N.items()
        ),
    ]
    return {
        "title": "An antagonistic pair of wires, after Teh & Featherstone",
        "held_rms_N": rms(held_N),
        "held_mean_N": worst_mean_N,
        "slew_N_per_s": {"rise": rises, "fall": falls},
        "sine_rms_N": errors_N,
        "tables": [as_table("Error of the measured force (RMS)",
                            ["", "here", f"of {RANGE_N:g} N", "theirs"], rows)],
        "checks": [
            check("largest force rate, up and down", min(rises, falls), "50", "N/s",
                  agrees=min(rises, falls) >= 50.0),
            check("RMS error while held", 1e3 * rms(held_N), "1", "mN",
                  agrees=rms(held_N) <= 1e-3),
        ],
        "figures": [saved(out, "antagonist.png", _drawn(stairs[0], sines["0.25 Hz"]), _CAPTION)],
        "notes": [
            "Errors are of the measured force, whose noise is 2.2 mN a sample.",
            "The force rate is that of 4 V. A higher voltage is faster, but a fault then heats a "
            "wire more before the board trips, and the heat budget that is left holds less force.",
            "Theirs is a measured pair with another transducer, and with external motion; here the "
            "ends are fixed, and plant and twin are the same law with other values.",
        ],
    }  # fmt: skip


def follow(
    values: Values, reference: dict[str, Any], duration_s: float, seed: int = 0
) -> xr.Dataset:
    """Simulate the pair along a reference; the seed is that of the noise."""
    gains = values.model_dump(exclude={"seeds"})
    config = hil.load(
        bundled_configs.root() / "configs" / "antagonist" / "steps.toml",
        (f"experiment.duration_s={duration_s}", *(f"controller.{k}={v}" for k, v in gains.items())),
        reference=reference,
    )
    return hil.simulate(config, seed)


def error_N(run: xr.Dataset) -> Array:
    """Measured force less its set point, of every tick that has a reading."""
    error = (run.force_measured_N - run.force_reference_N).values
    return np.asarray(error[np.isfinite(error)])


def held_error_N(steps: xr.Dataset) -> Array:
    """(levels, samples) error from SETTLE_S after every step on."""
    n = round(HELD_S / float(np.diff(steps.t_s.values[:2])[0]))
    error = (steps.force_measured_N - steps.force_reference_N).values.reshape(-1, n)
    return np.asarray(error[:, round(n * SETTLE_S / HELD_S) :])


def slews_N_per_s(steps: xr.Dataset) -> tuple[float, float]:
    """Largest rates over RATE_S of the force, averaged over half of that time, up and down."""
    force_N = steps.force_measured_N.values
    n = round(RATE_S / float(np.diff(steps.t_s.values[:2])[0]))
    smooth_N = np.convolve(force_N[np.isfinite(force_N)], np.full(n // 2, 2.0 / n), "valid")
    rates = (smooth_N[n:] - smooth_N[:-n]) / RATE_S
    return float(rates.max()), float(-rates.min())


def sine_error_N(sine: xr.Dataset) -> Array:
    """Error after the first half."""
    error = error_N(sine)
    return error[len(error) // 2 :]


def rms(error_N: Array) -> float:
    """Root mean square."""
    return float(np.sqrt(np.mean(error_N**2)))


def _share(error_N: float) -> str:
    return f"{100.0 * error_N / RANGE_N:.2g} %"


_CAPTION = (
    "Two Flexinol wires of 0.1 mm, one against the other, on the loop of `hil run`: steps, duties "
    "and the twin's temperatures, and a sine of 0.25 Hz."
)


def _drawn(steps: xr.Dataset, sine: xr.Dataset) -> Figure:
    with styled_figure(8.0, 7.0) as figure:
        force, duty, wire, waves = figure.subplots(4, 1, height_ratios=[3, 1.3, 1.3, 2])
        for axis, run in ((force, steps), (waves, sine)):
            t_s = run.t_s
            axis.plot(t_s, run.force_measured_N, color=MEASURED, lw=0.8, label="measured")
            axis.plot(t_s, run.force_reference_N, color="0.3", ls="--", lw=0.9, label="set point")
            axis.set_ylabel("force [N]")
        force.legend(frameon=False, loc="lower left")
        for i, (name, colour) in enumerate((("first", MEASURED), ("second", MODEL))):
            duty.plot(steps.t_s, steps.cells_duty[:, i], color=colour, lw=0.6)
            wire.plot(steps.t_s, steps[f"{name}.1.wire_model_C"], color=colour, lw=0.9, label=name)
        wire.legend(frameon=False, loc="lower left", ncols=2)
        duty.set_ylabel("duty")
        wire.set_ylabel("wire [°C]")
        waves.set_xlabel("time [s]")
        mark_simulated(figure, force)
    return figure
