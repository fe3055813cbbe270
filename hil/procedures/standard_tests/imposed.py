"""`hil test isothermal` and `work-loop`: a stage moves one end of the wire.

The rig has a driven point, an output for the stage that moves it, the stage's own displacement
channel and a force channel. `isothermal` stretches the cells, off, by a ramp and back at each
temperature of the air. `work-loop` imposes x = A (1 - cos(2 pi f t)) while the cells are heated for
a share of every cycle, from one of several phases on, and computes the work of a cycle

    W = -integral of F dx

over it, with the tension F: above zero where the actuator drives the stage.

Source of the work loop: Josephson 1985, J. Exp. Biol. 114, 493-512.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from hil.config.table import Celsius, Positive, Table
from hil.devices.board import protocol
from hil.errors import ConfigError
from hil.mechanics.arrays import Array
from hil.pages.study import as_table, saved
from hil.pages.style import styled_figure
from hil.procedures.standard_tests.analysis import branch, interval, loop_area, mean_text
from hil.procedures.standard_tests.kind import Plan, Results, Trial, level_name
from hil.procedures.standard_tests.subject import Subject
from hil.rig.instruments import boards_of, outputs_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

START_S = 0.5
BINS, SLOPE_BINS = 100, 15  # of a stroke: where readings are averaged, and a stiffness fitted
POINTS = 64  # of a cycle's curve
COLDEST_C = -40.0  # of a chamber; assumed
mm = 1e3


class IsothermalValues(Table):
    """Ramps to `stroke_m` and back, `cycles` times, in air of each of `temperatures_C`."""

    stroke_m: Positive = 0.001
    rate_m_per_s: Positive = 0.0002
    hold_s: Positive = 1.0
    cycles: Annotated[int, Field(ge=1, le=1000)] = 3
    temperatures_C: Annotated[list[Celsius], Field(default=[])]


class WorkLoopValues(Table):
    """`cycles` of a stroke at `frequency_Hz`; heating starts at each of `phases` of a cycle.

    Phase 0 is the shortest length. The first cycle is left out.
    """

    stroke_m: Positive = 0.001
    frequency_Hz: Positive = 0.1
    cycles: Annotated[int, Field(ge=3, le=10_000)] = 5
    phases: Annotated[
        list[Annotated[float, Field(ge=0.0, lt=1.0)]],
        Field(min_length=1, default=[0.0, 0.25, 0.5, 0.75]),
    ]
    on_share: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.3


def plan_isothermal(values: IsothermalValues, subject: Subject) -> Plan:
    """The ramps, in air of every temperature."""
    stage = _stage(subject, values.stroke_m, values.rate_m_per_s, "rate_m_per_s")
    ramp_s, period_s = values.stroke_m / values.rate_m_per_s, subject.config.tables.loop.period_s
    if ramp_s < BINS * period_s:
        raise ConfigError(
            f"a stretch would take {ramp_s:.3g} s, fewer than {BINS} readings of {subject.rig}: "
            "raise stroke_m or lower rate_m_per_s"
        )
    parts_s = np.tile([ramp_s, values.hold_s, ramp_s, values.hold_s], values.cycles)
    t_s = np.concatenate([[0.0], START_S + np.concatenate([[0.0], np.cumsum(parts_s)])])
    x_m = np.concatenate([[0.0, 0.0], np.tile([1.0, 1.0, 0.0, 0.0], values.cycles)])
    curve = {"kind": "ramp", "t_s": t_s.tolist(), "value": (values.stroke_m * x_m).tolist()}
    factors = {}
    if values.temperatures_C:
        factors["air"] = _air(values.temperatures_C, subject)
    off = [{"t_s": 0.0, "off": "all"}]
    return Plan(float(t_s[-1]), off, factors=factors, outputs={stage: curve})


def _stage(subject: Subject, stroke_m: float, speed_m_per_s: float, key: str) -> str:
    """The output of the stage; ConfigError if it must not move so far or so fast."""
    name = subject.needs_stage()
    limits = {
        column.partition("_commanded")[0]: table
        for column, table in outputs_of(subject.config.tables.devices).items()
    }[name]
    if stroke_m > limits.max:
        raise ConfigError(
            f"stroke_m = {stroke_m:g}: {subject.rig} has a stage with max = "
            f"{limits.max:g}: lower it"
        )
    if speed_m_per_s > limits.rate_max_per_s:
        raise ConfigError(
            f"the stage would move at {speed_m_per_s:.4g} m/s; {subject.rig} has rate_max_per_s = "
            f"{limits.rate_max_per_s:g}: lower {key}"
        )
    return name


def _air(temperatures_C: Sequence[float], subject: Subject) -> dict[str, object]:
    """A campaign's factor of the air around the wires."""
    table = subject.config.tables.model
    wired = [n for n, a in table.arrays.items() if hasattr(a.activation[0], "ambient_C")]
    if not wired:
        raise ConfigError(f"{subject.rig}: temperatures_C: the rig has no wires: leave it out")
    if len(set(temperatures_C)) < len(temperatures_C):
        raise ConfigError("temperatures_C: a temperature is listed twice: list each once")
    low_C, high_C = min(temperatures_C), max(temperatures_C)
    boards = boards_of(subject.config.tables.devices).values()
    limits = [protocol.default_limits() | board.limits for board in boards]
    most_C = min(0.01 * limit["temperature_max_cC"] for limit in limits)
    if high_C >= most_C or low_C < COLDEST_C:
        raise ConfigError(
            f"temperatures_C: {low_C:g} to {high_C:g} degC, but a board of {subject.rig} allows "
            f"its clamps {COLDEST_C:g} to {most_C:g} degC: stay between, or raise its "
            "limits.temperature_max_cC"
        )
    levels = {
        level_name(T_C, "C").replace("-", "minus"): {
            f"{part}.arrays.{name}.activation.ambient_C": T_C
            for part in ("model", "plant")
            for name in wired
        }
        for T_C in temperatures_C
    }
    return {"levels": levels, "tell": "bring the air around the wire to {level} and wait"}


def analyse_isothermal(
    values: IsothermalValues, subject: Subject, trials: Sequence[Trial], out: Path
) -> Results:
    """Stiffness, force and dissipated work of every temperature."""
    rows, temperatures = [], []
    with styled_figure(7.0, 4.4) as figure:
        axis = figure.subplots()
        for trial in trials:
            T_C = float(np.nanmean(trial.run[subject.temperature].values[:50]))
            cycles = [
                _stretched(values, trial, subject, i, axis if i == 0 else None, f"{T_C:.0f} degC")
                for i in range(values.cycles)
            ]
            means = {key: interval(np.array([c[key] for c in cycles])) for key in cycles[0]}
            temperatures.append({"temperature_C": T_C, **means})
            rows.append([f"{T_C:.1f}", *(mean_text(*value) for value in means.values())])
        axis.set(xlabel="displacement of the stage [mm]", ylabel="force [N]")
        axis.legend(frameon=False)
        caption = "The first cycle at every temperature: readings averaged over the stroke."
        shown = [saved(out, "loops.png", figure, caption)]
    columns = [
        "air [degC]", "stiffness, start [N/mm]", "stiffness, end [N/mm]", "largest force [N]",
        "left at 0 [N]", "dissipated [mJ]", "wire [K]",
    ]  # fmt: skip
    return {
        "title": "isothermal: force over displacement at constant temperature of the air",
        "figures": shown,
        "tables": [as_table("Means over the cycles, with 95 % intervals", columns, rows)],
        "notes": [
            "Force is beyond what the wire carries where the stage is at 0. Stiffness is the slope "
            f"over the first and the last {SLOPE_BINS} % of the stretch, and includes the frame.",
            "The last column is how much the wire's temperature varies in a cycle: a wire that "
            "transforms heats and cools itself. Only a slow stretch is isothermal.",
            _source(subject),
        ],
        "temperatures": temperatures,
    }


def _stretched(
    values: IsothermalValues,
    trial: Trial,
    subject: Subject,
    i: int,
    axis: "Axes | None",
    label: str,
) -> dict[str, float]:
    """Figures of cycle i."""
    ramp_s, run = values.stroke_m / values.rate_m_per_s, trial.run
    from_s = START_S + 2.0 * i * (ramp_s + values.hold_s)
    t_s, x, F, T = (
        run[name].values
        for name in ("t_s", subject.displacement, subject.force, subject.temperature)
    )
    out = (t_s >= from_s) & (t_s < from_s + ramp_s)
    back = (t_s >= from_s + ramp_s + values.hold_s) & (t_s < from_s + 2.0 * ramp_s + values.hold_s)
    bin_mm = mm * values.stroke_m / BINS
    up, down = (branch(mm * x[part], F[part], bin_mm) for part in (out, back))
    if min(len(up[0]), len(down[0])) < 3 * SLOPE_BINS:
        raise ConfigError("too few readings over the stroke: raise stroke_m or lower rate_m_per_s")
    if axis is not None:
        [line] = axis.plot(*up, lw=1.2, label=label)
        axis.plot(*down, lw=1.2, ls="--", color=line.get_color())
    slopes = [
        float(np.polyfit(up[0][part], up[1][part], 1)[0])
        for part in (slice(SLOPE_BINS), slice(-SLOPE_BINS, None))
    ]
    cycle = (t_s >= from_s) & (t_s < from_s + 2.0 * (ramp_s + values.hold_s))
    return {
        "stiffness_start": slopes[0], "stiffness_end": slopes[1], "largest_N": float(up[1][-1]),
        "left_N": float(down[1][0]),
        "dissipated_mJ": loop_area(
            np.concatenate([up[0], down[0][::-1]]), np.concatenate([up[1], down[1][::-1]])
        ),
        "varies_K": float(np.ptp(branch(t_s[cycle], T[cycle], 0.1)[1])),
    }  # fmt: skip


def plan_work_loop(values: WorkLoopValues, subject: Subject) -> Plan:
    """A trial for every phase."""
    period_s, speed = 1.0 / values.frequency_Hz, np.pi * values.frequency_Hz * values.stroke_m
    stage = _stage(subject, values.stroke_m, speed, "frequency_Hz or stroke_m")
    subject.refuse_longer(values.on_share * period_s)
    n = POINTS * values.cycles
    if n > 100_000:
        raise ConfigError(f"cycles = {values.cycles}: at most {100_000 // POINTS}")
    phase = np.arange(n + 1) / POINTS
    t_s = np.concatenate([[0.0], START_S + period_s * phase])
    x_m = np.concatenate([[0.0], 0.5 * values.stroke_m * (1.0 - np.cos(2.0 * np.pi * phase))])
    x_m[np.abs(x_m) < 1e-12] = 0.0
    levels = [
        [
            {"t_s": round(START_S + (i + at) * period_s, 6), key: "all"}
            for i in range(values.cycles)
            for at, key in ((start, "on"), (start + values.on_share, "off"))
        ]
        for start in values.phases
    ]
    factor = {"key": "controller.steps", "levels": levels,
              "names": [level_name(start, "of_a_cycle") for start in values.phases]}  # fmt: skip
    curve = {"kind": "ramp", "t_s": t_s.tolist(), "value": x_m.tolist()}
    return Plan(float(t_s[-1]), levels[0], 1, {"heat": factor}, outputs={stage: curve})


def analyse_work_loop(
    values: WorkLoopValues, subject: Subject, trials: Sequence[Trial], out: Path
) -> Results:
    """Work and power of every phase, with intervals over its cycles."""
    rows, phases, period_s = [], [], 1.0 / values.frequency_Hz
    names = [level_name(start, "of_a_cycle") for start in values.phases]
    with styled_figure(7.0, 4.4) as figure:
        axis = figure.subplots()
        for trial in trials:
            start = values.phases[names.index(trial.levels["heat"])]
            t_s, x, F = (
                trial.run[name].values for name in ("t_s", subject.displacement, subject.force)
            )
            loops = [
                (t_s >= from_s) & (t_s < from_s + period_s)
                for from_s in START_S + period_s * np.arange(1, values.cycles)
            ]
            work_mJ = np.array([work_J(x[part], F[part]) for part in loops]) * 1e3
            peak = interval(np.array([float(np.nanmax(F[part])) for part in loops]))
            mean = interval(work_mJ)
            power = tuple(values.frequency_Hz * value for value in mean)
            phases.append({"phase": start, "work_mJ": mean, "power_mW": power})
            rows.append([f"{start:g}", *(mean_text(*one) for one in (mean, power, peak))])
            last = loops[-1]
            axis.plot(mm * x[last], F[last], lw=0.8, label=f"heated from {start:g}")
        axis.set(xlabel="displacement of the stage [mm]", ylabel="force [N]")
        axis.legend(frameon=False)
        caption = "The last cycle of every phase. Work is done where it runs anticlockwise."
        shown = [saved(out, "work-loops.png", figure, caption)]
    columns = ["heated from", "work a cycle [mJ]", "power [mW]", "largest force [N]"]
    return {
        "title": "work-loop: work of an imposed cycle of length",
        "figures": shown,
        "tables": [as_table("Means over the cycles, with 95 % intervals", columns, rows)],
        "notes": [
            "Work above zero is done by the actuator on the stage, below zero by the stage on it. "
            "The first cycle is left out.",
            f"Cells are on for {values.on_share:g} of a cycle of {period_s:g} s from the phase of "
            "the first column; phase 0 is the shortest length.",
        ],
        "phases": phases,
    }


def work_J(x_m: Array, F_N: Array) -> float:
    """Work -integral of F dx over a closed cycle, by the trapezoidal rule; NaN rows left out."""
    seen = np.isfinite(x_m) & np.isfinite(F_N)
    x, F = x_m[seen], F_N[seen]
    step = np.roll(x, -1) - x
    return -float(np.sum(0.5 * (F + np.roll(F, -1)) * step))


def _source(subject: Subject) -> str:
    source = "measured" if subject.measured else "the twin's: no instrument measures the wire"
    return f"The wire's temperature is {source} ({subject.temperature})."
