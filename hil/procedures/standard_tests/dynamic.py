"""`hil test step-battery`, `bode` and `force-velocity`: how fast an actuator follows."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from hil.config.table import Positive, Table
from hil.errors import ConfigError
from hil.loop.channels import known_before
from hil.pages.study import as_table, saved
from hil.pages.style import CELL, MEASURED, MODEL, decimated, styled_figure
from hil.procedures.standard_tests.analysis import (
    frequency_response,
    interval,
    mean_text,
    step_response,
)
from hil.procedures.standard_tests.kind import Plan, Results, Trial, level_name
from hil.procedures.standard_tests.subject import Subject
from hil.procedures.standard_tests.thermal import load_factor, load_of

START_S = 0.5
BEFORE_S = 0.3  # of readings before a switching, whose mean is the level there


class StepValues(Table):
    """Steps of `heat_s` each, in random order, every one followed by `cool_s` off."""

    heat_s: Annotated[list[Positive], Field(min_length=1, default=[1.0, 2.0, 4.0, 8.0])]
    cool_s: Positive = 8.0
    repeats: Annotated[int, Field(ge=1, le=100)] = 3


class BodeValues(Table):
    """Cells on or off at random, a new draw every `bit_s`, after `settle_s`."""

    bit_s: Positive = 0.2
    settle_s: Positive = 5.0
    duration_s: Positive = 120.0
    window_s: Positive = 20.0
    seed: Annotated[int, Field(ge=0)] = 1


class VelocityValues(Table):
    """One contraction under each load, which the operator hangs on."""

    loads_N: Annotated[list[Positive], Field(min_length=2, default=[0.4, 0.8, 1.2, 1.6])]
    heat_s: Positive = 8.0
    cool_s: Positive = 8.0


def plan_steps(values: StepValues, subject: Subject) -> Plan:
    """A trial for each duration."""
    subject.needs("output")
    subject.refuse_longer(max(values.heat_s))
    levels = [
        [{"t_s": START_S, "on": "all"}, {"t_s": START_S + heat_s, "off": "all"}]
        for heat_s in values.heat_s
    ]
    factor = {"key": "controller.steps", "levels": levels, "unit": "s",
              "names": [level_name(heat_s, "s") for heat_s in values.heat_s]}  # fmt: skip
    duration_s = START_S + max(values.heat_s) + values.cool_s
    return Plan(duration_s, levels[0], values.repeats, {"heat": factor})


def analyse_steps(
    values: StepValues, subject: Subject, trials: Sequence[Trial], out: Path
) -> Results:
    """Delay, rise and fall time and stroke of every duration, with intervals over its repeats."""
    column, scale, unit = _output(subject)
    steps: dict[float, list[tuple[float, ...]]] = {}
    with styled_figure(8.0, 4.2) as figure:
        axis = figure.subplots()
        for trial in trials:
            heat_s = next(h for h in values.heat_s if level_name(h, "s") == trial.levels["heat"])
            t_s, y = trial.run.t_s.values, scale * trial.run[column].values
            rest, top = _level(t_s, y, START_S), _level(t_s, y, START_S + heat_s)
            on = t_s >= START_S
            rise = step_response(t_s[on], y[on], rest, top)
            off = t_s >= START_S + heat_s
            end = _level(t_s, y, float(t_s[-1]))
            fall = step_response(t_s[off], y[off], top, end)
            first = heat_s not in steps
            figures = (rise.change, rise.delay_s, rise.rise_s, fall.delay_s, fall.rise_s)
            steps.setdefault(heat_s, []).append(figures)
            if first:
                axis.plot(*decimated(t_s, y), lw=1.0, label=f"on for {heat_s:g} s")
        axis.set(xlabel="time [s]", ylabel=f"{_what(subject)} [{unit}]")
        axis.legend(frameon=False)
        shown = [saved(out, "steps.png", figure, "The first response of each duration.")]
    rows = [
        [
            f"{heat_s:g}",
            *(mean_text(*interval(np.array(v))) for v in zip(*steps[heat_s], strict=True)),
        ]
        for heat_s in sorted(steps)
    ]
    columns = ["on [s]", f"change [{unit}]", "delay [s]", "rise 10-90 % [s]",
               "delay off [s]", "fall 90-10 % [s]"]  # fmt: skip
    return {
        "title": "step-battery: heating steps of several durations",
        "figures": shown,
        "tables": [as_table("Means over the repeats, with 95 % intervals", columns, rows)],
        "notes": [
            "The change of a step is from the level before it to the level when it ends. A wire "
            "that has not finished contracting by then has a shorter rise time.",
        ],
        "steps": {f"{heat_s:g}": steps[heat_s] for heat_s in sorted(steps)},
    }


def plan_bode(values: BodeValues, subject: Subject) -> Plan:
    """One trial of random switching."""
    subject.needs("output")
    n = round(values.duration_s / values.bit_s)
    if n > 100_000:
        raise ConfigError(f"duration_s / bit_s = {n} draws: at most 100000: raise bit_s")
    bits = np.random.default_rng(values.seed).integers(0, 2, n)
    steps: list[dict[str, object]] = [{"t_s": START_S, "off": "all"}]
    for i in np.flatnonzero(np.diff(bits, prepend=0)):
        key = "on" if bits[i] else "off"
        steps.append({"t_s": round(START_S + i * values.bit_s, 6), key: "all"})
    longest_s = values.bit_s * max(map(len, "".join(map(str, bits)).split("0")))
    subject.refuse_longer(longest_s)
    return Plan(START_S + values.duration_s, steps)


def analyse_bode(
    values: BodeValues, subject: Subject, trials: Sequence[Trial], out: Path
) -> Results:
    """Frequency response from the share of cells that are on to the output, with coherence."""
    column, scale, unit = _output(subject)
    run = trials[0].run
    cells = known_before(run.cells_reported.values)
    period_s = subject.config.tables.loop.period_s
    used = run.t_s.values >= START_S + values.settle_s
    u, y = (cells == 1).mean(axis=1)[used], scale * run[column].values[used]
    if not np.isfinite(y).all():
        raise ConfigError(f"{column}: has no reading in some ticks: give the channel every tick")
    response = frequency_response(u, y, 1.0 / period_s, values.window_s)
    shown = response.frequency_Hz <= 0.5 / values.bit_s
    f, gain, gamma2 = response.frequency_Hz[shown], response.gain[shown], response.coherence[shown]
    with styled_figure(7.0, 6.4) as figure:
        axes = figure.subplots(3, 1, sharex=True)
        axes[0].loglog(f, np.abs(gain), ".-", color=MEASURED, lw=0.8)
        axes[0].set_ylabel(f"gain [{unit}]")
        axes[1].semilogx(f, np.unwrap(np.angle(gain)) * 180.0 / np.pi, ".-", color=MODEL, lw=0.8)
        axes[1].set_ylabel("phase [deg]")
        axes[2].semilogx(f, gamma2, ".-", color=CELL, lw=0.8)
        axes[2].set(ylabel="coherence", xlabel="frequency [Hz]", ylim=(0.0, 1.05))
        caption = "Frequency response from the share of cells on, and its coherence."
        figures = [saved(out, "bode.png", figure, caption)]
    width = response.bandwidth_Hz
    rows = [
        ["bandwidth (-3 dB) [Hz]", f"{width:.4g}" if np.isfinite(width) else "not found"],
        [f"gain at {f[0]:.3g} Hz [{unit}]", f"{abs(gain[0]):.4g}"],
        ["least coherence up to 1 Hz", f"{gamma2[f <= max(1.0, f[0])].min():.3f}"],
    ]
    return {
        "title": "bode: frequency response to random switching",
        "figures": figures,
        "tables": [as_table("Figures", ["", ""], rows)],
        "notes": [
            "The input is the share of cells that are on. The bandwidth is relative to the lowest "
            "frequency, 1 / window_s, and is stated only where the coherence is above 0.6. A wire "
            "with hysteresis is not linear: gain and bandwidth hold for this amplitude.",
        ],
        "bandwidth_Hz": width, "frequency_Hz": f, "gain": np.abs(gain),
        "phase_rad": np.angle(gain), "coherence": gamma2, "unit": unit,
    }  # fmt: skip


def plan_velocity(values: VelocityValues, subject: Subject) -> Plan:
    """A contraction under every load."""
    subject.needs("displacement")
    subject.refuse_longer(values.heat_s)
    steps = [
        {"t_s": START_S, "on": "all"},
        {"t_s": START_S + values.heat_s, "off": "all"},
    ]
    duration_s = START_S + values.heat_s + values.cool_s
    return Plan(duration_s, steps, 1, {"load_N": load_factor(values.loads_N, subject)})


def analyse_velocity(
    values: VelocityValues, subject: Subject, trials: Sequence[Trial], out: Path
) -> Results:
    """Stroke, peak velocity and mean power of the contraction under each load."""
    column = subject.displacement
    rows, loads = [], []
    for trial in trials:
        load_N = load_of(trial) or 0.0
        t_s, x_m = trial.run.t_s.values, trial.run[column].values
        on = (t_s >= START_S) & (t_s < START_S + values.heat_s)
        rest, top = _level(t_s, x_m, START_S), _level(t_s, x_m, START_S + values.heat_s)
        rise = step_response(t_s[on], x_m[on], rest, top)
        v = 0.8 * rise.change / rise.rise_s
        rows.append([f"{load_N:g}", f"{1e3 * rise.change:.4g}", f"{1e3 * v:.4g}",
                     f"{1e3 * load_N * v:.4g}"])  # fmt: skip
        loads.append({"load_N": load_N, "stroke_m": rise.change, "velocity_m_per_s": v})
    with styled_figure(6.0, 4.0) as figure:
        axis = figure.subplots()
        force, speed = ([row[key] for row in loads] for key in ("load_N", "velocity_m_per_s"))
        axis.plot(force, 1e3 * np.array(speed), "o-", color=MEASURED)
        axis.set(xlabel="load [N]", ylabel="velocity [mm/s]", ylim=(0.0, None))
        figures = [saved(out, "velocity.png", figure, "Velocity of contraction over load.")]
    columns = ["load [N]", "stroke [mm]", "velocity [mm/s]", "power [mW]"]
    return {
        "title": "force-velocity: contraction under several loads",
        "figures": figures,
        "tables": [as_table("Contraction under each load", columns, rows)],
        "notes": ["The velocity is the mean from 10 to 90 % of the stroke; heating sets it."],
        "loads": loads,
    }


def _output(subject: Subject) -> tuple[str, float, str]:
    """Column, scale and unit of what is shown."""
    return (subject.output, 1e3, "mm") if subject.displacement else (subject.output, 1.0, "N")


def _what(subject: Subject) -> str:
    return "displacement" if subject.displacement else "force"


def _level(t_s: NDArray[np.float64], y: NDArray[np.float64], until_s: float) -> float:
    """Mean of the readings in BEFORE_S before a time."""
    return float(np.nanmean(y[(t_s >= until_s - BEFORE_S) & (t_s < until_s)]))
