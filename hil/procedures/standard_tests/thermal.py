"""`hil test isobaric` and `isometric`: a wire heated and cooled under constant load or length.

Every cycle gives the transformation temperatures of both branches by tangents, the stroke (or
recovery force), and the width and area of the loop. Under several loads, the slope of stress over
each temperature is that of Clausius-Clapeyron.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from hil.config.table import Positive, Table
from hil.config.values import Figures
from hil.errors import ConfigError
from hil.mechanics.arrays import Array
from hil.pages.study import as_table, saved
from hil.pages.style import MEASURED, MODEL, styled_figure
from hil.procedures.standard_tests.analysis import branch, interval, loop_area, mean_text, tangents
from hil.procedures.standard_tests.kind import Plan, Results, Trial, level_name
from hil.procedures.standard_tests.subject import Subject

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAMES = ("A_s", "A_f", "M_s", "M_f")
START_S = 0.5


class Values(Table):
    """Settings: every cycle heats for `heat_s` and cools for `cool_s`."""

    cycles: Annotated[int, Field(ge=1, le=1000)] = 3
    heat_s: Positive = 8.0
    cool_s: Positive = 8.0


class IsobaricValues(Values):
    """`loads_N` repeats the test under other constant loads, which the operator hangs on."""

    loads_N: Annotated[list[Positive], Field(default=[])]


def plan_isometric(values: Values, subject: Subject) -> Plan:
    """The cycles at constant length."""
    subject.needs("force", "temperature")
    subject.refuse_longer(values.heat_s)
    return _cycles(values)


def _cycles(values: Values) -> Plan:
    """The cycles of one trial."""
    period_s = values.heat_s + values.cool_s
    steps: list[dict[str, object]] = []
    for i in range(values.cycles):
        on_s = START_S + i * period_s
        steps += [{"t_s": on_s, "on": "all"}, {"t_s": on_s + values.heat_s, "off": "all"}]
    return Plan(START_S + values.cycles * period_s, steps)


def plan_isobaric(values: IsobaricValues, subject: Subject) -> Plan:
    """The cycles under every load."""
    subject.needs("displacement", "temperature")
    subject.refuse_longer(values.heat_s)
    one = _cycles(values)
    if not values.loads_N:
        return one
    return Plan(one.duration_s, one.steps, 1, {"load_N": load_factor(values.loads_N, subject)})


def load_factor(loads_N: Sequence[float], subject: Subject) -> dict[str, object]:
    """A campaign's factor of weights on the free point of a rig with one wire.

    The stroke at rest depends on the load; `force_on_N` is k_ae times it.
    """
    table = subject.config.tables.model
    points = table.points.items()
    free = [name for name, p in points if p.support == "free" and not p.spring_N_per_m]
    active = subject.config.activation()
    if len(free) != 1 or len(table.arrays) != 1 or any(a.loaded is None for a in active):
        raise ConfigError(
            f"{subject.rig}: loads_N: needs one array of wires of kind 'sma' and "
            "one free point without a spring, as configs/isotonic has"
        )
    [(name, array)], law = table.arrays.items(), active[0].loaded
    area_m2 = active[0].wire.n_wires * 0.25 * np.pi * active[0].wire.diameter_m ** 2

    def full(load_N: float) -> float:
        """Stroke, as a strain, at the stress of a load."""
        stress_Pa = load_N / area_m2
        softer = 1.0 / law.law.modulus_M_Pa - 1.0 / law.law.modulus_A_Pa
        return float(law.law.stroke(stress_Pa) + softer * stress_Pa)

    n = active[0].wire.n_wires
    rest = full(n * law.pretension_N)
    levels = {
        level_name(load_N, "N"): {
            f"model.points.{free[0]}.mass_kg": load_N / 9.80665,
            f"model.arrays.{name}.activation.pretension_N": load_N / n,
            f"model.arrays.{name}.force_on_N": [
                float(f) * full(load_N) / rest for f in array.force_on_N
            ],
        }
        for load_N in loads_N
    }
    return {"levels": levels, "tell": "let {level} hang on the wire"}


def load_of(trial: Trial) -> float | None:
    """The load of a trial in N; None if it is the rig's own."""
    name = trial.levels.get("load_N")
    return None if name is None else float(name.removesuffix("_N").replace("_", "."))


def analyse_isobaric(
    values: IsobaricValues, subject: Subject, trials: Sequence[Trial], out: Path
) -> Results:
    """Temperatures, stroke and hysteresis under constant load."""
    title = "isobaric: cycles of temperature under constant load"
    shown = Shown(subject.displacement, 1e3, "mm", "displacement", "stroke", title)
    return _analyse(values, subject, trials, out, shown)


def analyse_isometric(
    values: Values, subject: Subject, trials: Sequence[Trial], out: Path
) -> Results:
    """Temperatures and recovery force at constant length."""
    title = "isometric: cycles of temperature at constant length"
    shown = Shown(subject.force, 1.0, "N", "force", "recovery force", title)
    return _analyse(values, subject, trials, out, shown)


@dataclass(frozen=True)
class Shown:
    """What is drawn over temperature: a column, its unit and scale to it, and words."""

    column: str
    scale: float
    unit: str
    what: str
    change: str
    title: str


def _analyse(
    values: Values, subject: Subject, trials: Sequence[Trial], out: Path, shown: Shown
) -> Results:
    temperature, unit = subject.temperature, shown.unit
    rows, figures, loads = [], [], []
    for trial in trials:
        t_s = trial.run.t_s.values
        T, y = trial.run[temperature].values, shown.scale * trial.run[shown.column].values
        load_N = load_of(trial)
        load = "" if load_N is None else f"{load_N:g}"
        per_cycle: list[dict[str, float]] = []
        with styled_figure(7.0, 4.4) as figure:
            axis = figure.subplots()
            for i in range(values.cycles):
                on_s = START_S + i * (values.heat_s + values.cool_s)
                per_cycle.append(_cycle(values, t_s, T, y, on_s, axis if i == 0 else None))
            axis.set(xlabel="temperature [degC]", ylabel=f"{shown.what} [{unit}]")
            axis.legend(frameon=False)
            name = f"loop{f'-{load}N' if load else ''}.png"
            caption = (
                f"First cycle{f' under {load} N' if load else ''}: readings in steps of 0.5 K, and "
                "the tangents that give the transformation temperatures."
            )
            figures.append(saved(out, name, figure, caption))
        means = {key: interval(np.array([c[key] for c in per_cycle])) for key in per_cycle[0]}
        loads.append({"load_N": load_N, **means})
        keys = (*NAMES, "change", "width_K", "area")
        rows.append([load or "as mounted", *(mean_text(*means[key]) for key in keys)])
    columns = [
        "load [N]", *(f"{name} [degC]" for name in NAMES), f"{shown.change} [{unit}]",
        "hysteresis [K]", f"area [{unit} K]",
    ]  # fmt: skip
    tables = [as_table("Means over the cycles, with 95 % intervals", columns, rows)]
    tables += _clausius(subject, loads)
    source = "measured" if subject.measured else "the twin's: no instrument measures the wire"
    notes = [
        f"The temperature is {source} ({temperature}).",
        "A_s, A_f, M_s, M_f: where the tangent of the steep part meets those of the cold and the "
        "hot end. ASTM E3097 describes such tests; this page follows its public abstract and is "
        "not a test report by that standard.",
        "The hysteresis is the distance of the branches at half of the change.",
    ]
    return {
        "title": shown.title,
        "figures": figures,
        "tables": tables,
        "notes": notes,
        "loads": loads,
    }


def _cycle(
    values: Values, t_s: Array, T: Array, y: Array, on_s: float, axis: "Axes | None"
) -> dict[str, float]:
    heating = (t_s >= on_s) & (t_s < on_s + values.heat_s)
    cooling = (t_s >= on_s + values.heat_s) & (t_s < on_s + values.heat_s + values.cool_s)
    up, down = branch(T[heating], y[heating]), branch(T[cooling], y[cooling])
    hot, cold = tangents(*up), tangents(*down)
    if axis is not None:
        for (T_b, y_b), lines, color, label in (
            (up, hot, MODEL, "heating"), (down, cold, MEASURED, "cooling"),
        ):  # fmt: skip
            axis.plot(T_b, y_b, ".", ms=3, color=color, label=label)
            steep_a, steep_b = lines.steep
            x = np.array([lines.lower_C, lines.upper_C])
            axis.plot(x, steep_a + steep_b * x, color="0.3", lw=0.9)
            axis.plot(x, steep_a + steep_b * x, "x", color="0.2", ms=6)
    middles = [np.interp(0.5, (y_b - y_b[0]) / (y_b[-1] - y_b[0]), T_b) for T_b, y_b in (up, down)]
    x = np.concatenate([up[0], down[0][::-1]])
    return {
        "A_s": hot.lower_C, "A_f": hot.upper_C, "M_s": cold.upper_C, "M_f": cold.lower_C,
        "change": float(up[1][-1] - up[1][0]), "width_K": float(middles[0] - middles[1]),
        "area": loop_area(x, np.concatenate([up[1], down[1][::-1]])),
    }  # fmt: skip


def _clausius(subject: Subject, means: list[Figures]) -> list[Figures]:
    """Slope of stress over every temperature, from at least two loads."""
    loads = np.array([f["load_N"] for f in means if f["load_N"]], dtype=float)
    if len(loads) < 2:
        return []
    wire = subject.config.activation()[0].wire
    stress_MPa = loads / (wire.n_wires * 0.25e6 * np.pi * wire.diameter_m**2)
    rows = []
    for name in NAMES:
        T_C = np.array([f[name][0] for f in means])
        rows.append([name, f"{np.polyfit(T_C, stress_MPa, 1)[0]:.3g}"])
    return [as_table("Stress over temperature (Clausius-Clapeyron)", ["", "MPa/K"], rows)]
