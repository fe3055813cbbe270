"""`hil study recruitment`: controllers that recruit cells, on random commissioned plants.

The campaigns are files beside this one, which `hil campaign` runs too: `six/controllers.toml`,
`fourteen/controllers.toml` and `six/failures.toml`. A controller is that of `hil run`; rig, board,
transducer, commissioning and tuning are those of a campaign. Here their tables become a page.
"""

import textwrap
import tomllib
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure
from pydantic import AfterValidator, BeforeValidator, Field
from scipy.stats import binomtest
from scipy.stats import t as student

import hil
from hil.config.table import Table
from hil.errors import ConfigError
from hil.experiment.load import load_rig
from hil.pages.study import as_table, saved
from hil.pages.style import (
    CELL,
    MEASURED,
    MODEL,
    REFERENCE,
    RESIDUAL,
    mark_simulated,
    styled_figure,
)
from hil.platform.provenance import software
from hil.systems.array.model.cell_array import CellArray
from hil.systems.array.model.force_levels import static_gains_N
from hil_studies.recruitment import variants

FOLDER = Path(__file__).parent
SIZES = {6: "six", 14: "fourteen", 100: "hundred"}
CONTROLLERS = (
    "PID", "broadcast", "size_principle", "preview", "modulate", "optimal", "optimal_modulated",
)  # fmt: skip
FORMER = {"size principle": "size_principle", **dict.fromkeys(
    ("broadcast, dead beat", "broadcast, LMS", "broadcast, |e|/N", "broadcast, fixed gain"),
    "broadcast",
)}  # fmt: skip
"""Names that earlier versions took; which law a broadcast has is tuned now."""
BEST = "optimal_modulated"
UNTOLD = f"{BEST}, not commissioned"
EXACT = f"{BEST}, exact plant"
WITHIN_S = 3.0
COLORS = dict(
    zip(
        CONTROLLERS, (CELL, "#56B4E9", MODEL, RESIDUAL, "#CC79A7", "#999999", MEASURED), strict=True
    )
)

Tables = dict[str, Any]


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _sizes(value: Any) -> Any:
    sizes = value if isinstance(value, list | tuple) else ()
    if not sizes or any(type(one) is not int or one not in SIZES for one in sizes):
        raise ValueError("must be a list of 6, 14 and 100")
    return tuple(dict.fromkeys(sizes))


def _known(names: tuple[str, ...]) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(FORMER.get(name, name) for name in names))
    for name in names:
        if name not in CONTROLLERS:
            raise ValueError(f"no controller '{name}': choose {', '.join(CONTROLLERS)}")
    return names


Controllers = Annotated[
    tuple[str, ...], Field(min_length=1), BeforeValidator(_tuple), AfterValidator(_known)
]


class Values(Table):
    """What `--set` may change: sizes, controllers, numbers of plants, and the budget of the tuning.

    `seeds` is the number of plants in the tables, each under every set point; `tuning_seeds` that
    of the plants to tune on, `budget` the number of settings that are tried of each controller,
    `wear_weight_s` the weight of wear in what a setting costs. `failure_seeds` plants of six cells
    under stress have wires that open. Without `stress` the branches of wires do not move with it.
    `workers` processes share the trials; default: the number of cores.
    """

    cells: Annotated[tuple[int, ...], BeforeValidator(_sizes)] = (6,)
    controllers: Controllers = CONTROLLERS
    seeds: Annotated[int, Field(ge=1, le=10_000)] = 12
    tuning_seeds: Annotated[int, Field(ge=1, le=100)] = 1
    budget: Annotated[int, Field(ge=1, le=10_000)] = 6
    wear_weight_s: Annotated[float, Field(ge=0.0, le=100.0)] = 0.25
    failure_seeds: Annotated[int, Field(ge=0, le=10_000)] = 12
    stress: bool = True
    workers: Annotated[int, Field(ge=1, le=256)] | None = None


class Size(NamedTuple):
    """What was found of one size.

    Attributes
    ----------
    stress : whether the branches of its wires move with stress
    full_N : force of all nominal cells
    trials : a row for each trial
    traced : recordings of one plant, by controller and set point
    """

    n_cells: int
    stress: bool
    full_N: float
    trials: pd.DataFrame
    traced: dict[tuple[str, str], xr.Dataset]

    @property
    def title(self) -> str:
        return f"{self.n_cells} cells{'' if self.stress else ' without stress'}"


def run(out: Path, values: Values) -> dict[str, Any]:
    """Run the campaigns into the folder; the results, as written to results.json."""
    sizes = [_size(out, values, n) for n in values.cells]
    openings = failures(out, values) if values.stress and 6 in values.cells else pd.DataFrame()
    figures = [
        saved(out, f"errors{one.n_cells}.png", _draw_errors(one), _CAPTION_ERRORS) for one in sizes
    ]
    figures += [
        saved(out, f"traces{one.n_cells}.png", _draw_traces(one), _CAPTION_TRACES) for one in sizes
    ]
    tables = [
        *(table for one in sizes for table in (errors(one), settings(one))),
        *([named(openings)] if len(openings) else []),
    ]
    return made(
        "Recruitment: controllers on commissioned plants that differ", figures, tables,
        full_N={str(one.n_cells): one.full_N for one in sizes},
        trials={str(one.n_cells): plain_of(one.trials) for one in sizes},
        failures=plain_of(openings),
    )  # fmt: skip


def made(title: str, figures: list[Any], tables: list[Any], **more: Any) -> dict[str, Any]:
    """Results of a study of recruitment, as written to results.json."""
    return {
        "title": title, "made_by": software(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"), "figures": figures,
        "tables": tables, "notes": list(_NOTES), **more,
    }  # fmt: skip


def files_of(n_cells: int, stress: bool, out: Path) -> Path:
    """The folder with rig and campaigns of a size."""
    changes = [] if stress else [variants.without_stress]
    if n_cells == 100:
        changes.append(variants.of_100_cells)
    source = FOLDER / SIZES[min(n_cells, 14)]
    return variants.written(source, out / SIZES[n_cells], changes) if changes else source


def tables_of(values: Values, folder: Path, name: str = "controllers") -> Tables:
    """The tables of a campaign's file, with what `--set` has changed."""
    tables = tomllib.loads((folder / f"{name}.toml").read_text(encoding="utf-8"))
    tables["campaign"] |= {"experiments": [str(folder / "run.toml")], "plants": values.seeds}
    levels = tables["factors"]["controller"]["levels"]
    chosen = {key: level for key, level in levels.items() if key in values.controllers}
    tables["factors"]["controller"]["levels"] = chosen
    if "commission" in tables:
        tables["commission"]["experiment"] = str(folder / "pulses.toml")
    if "tune" in tables:
        tune = tables["tune"]
        tune |= {"budget": values.budget, "plants": values.tuning_seeds}
        tune["cost"] = tune["cost"].replace("0.25", repr(values.wear_weight_s))
        tune["parameters"] = [p for p in tune["parameters"] if p["of"]["controller"] in chosen]
    return tables


def _size(out: Path, values: Values, n_cells: int) -> Size:
    """Run the campaign of one size, and the planner on its plants not commissioned, and exact."""
    files = files_of(n_cells, values.stress, out)
    tables = tables_of(values, files)
    folder = out / SIZES[n_cells]
    trials = complete_of(campaign_of(tables, folder / "controllers", values.workers))
    full_N = full_force_N(files)
    once = {**tables, "campaign": {**tables["campaign"], "plants": 1, "keep": "all"}}
    once["factors"] = {**tables["factors"], "controller": {"levels": _tuned(tables, trials)}}
    del once["tune"]
    kept = campaign_of(once, folder / "traces", values.workers)
    traced = {
        (str(row.controller), str(row.set_point)): hil.open_run(folder / "traces" / str(row.file))
        for row in kept.itertuples()
    }
    if BEST in values.controllers:
        untold = {**tables, "factors": {**tables["factors"], "controller": {
            "levels": {BEST: _tuned(tables, trials)[BEST]}}}}  # fmt: skip
        del untold["tune"]
        commissions = untold.pop("commission", None)
        exact = {**untold, "campaign": {**untold["campaign"], "exact": True}}
        for name, of_these in ((UNTOLD, untold), (EXACT, exact))[0 if commissions else 1 :]:
            where = folder / name.partition(", ")[2].replace(" ", "_")
            more = complete_of(campaign_of(of_these, where, values.workers))
            trials = pd.concat([trials, more.assign(controller=name)], ignore_index=True)
    return Size(n_cells, values.stress, full_N, trials, traced)


def campaign_of(tables: Tables, folder: Path, workers: int | None) -> pd.DataFrame:
    """Run a campaign; the table of its trials that have figures."""
    table = hil.campaign(tables, folder, jobs=workers, progress=True)
    frame = table.to_dataframe().reset_index()
    ran = frame[frame.outcome.isin(["complete", "tripped"])]
    if ran.empty:
        raise ConfigError(f"{folder}: no trial ran: {frame.error.iloc[0]}")
    return ran


def complete_of(trials: pd.DataFrame) -> pd.DataFrame:
    """The trials of plants on which none of their combinations tripped: comparisons are paired."""
    tripped = set(trials[trials.outcome != "complete"].plant)
    return trials[~trials.plant.isin(tripped)]


def _tuned(tables: Tables, trials: pd.DataFrame) -> Tables:
    """The controllers with the settings that tuning chose."""
    tuned = {}
    for name, level in tables["factors"]["controller"]["levels"].items():
        keys = [p["key"] for p in tables["tune"]["parameters"] if p["of"]["controller"] == name]
        row = trials[trials.controller == name].iloc[0]
        best = {key.removeprefix("controller."): _number(row[key]) for key in keys}
        tuned[name] = {"controller": {**level["controller"], **best}}
    return tuned


def _number(value: Any) -> Any:
    try:
        return float(value)
    except ValueError:
        return str(value)


def full_force_N(folder: Path) -> float:
    """Static force of all cells of the nominal array."""
    rig = load_rig(folder / "rig.toml")
    model, cells_N = rig.models[0], np.array([one.force_on_N for one in rig.activation()])
    assert isinstance(model, CellArray)
    return float(static_gains_N(model, cells_N, "muscle.right_N").sum())


def errors(one: Size) -> dict[str, Any]:
    """The table of errors, wear and energy."""
    points = list(dict.fromkeys(one.trials.set_point))
    rows = []
    for name, of in one.trials.groupby("controller", sort=False):
        by_plant = of.groupby("plant")
        share = 100.0 / one.full_N
        energy_J = 8.0 * 20.0 * of.supply_A
        rows.append([
            str(name), mean_of(share * by_plant.error_N.mean()),
            *[mean_of(share * of[of.set_point == point].error_N) for point in points],
            mean_of(share * by_plant.from_rest_N.mean()), f"{of.wear_per_h.mean():.0f}",
            f"{energy_J.mean():.0f}",
        ])  # fmt: skip
    n_plants = one.trials.plant.nunique()
    return as_table(
        f"{one.title}, {n_plants} plants under {len(points)} set points: RMS error [% of "
        f"{one.full_N:.2f} N], mean over plants and its 95 % interval",
        ["", "error", *points, "from rest", "wear [cycles/h]", "energy [J]"], rows,
    )  # fmt: skip


def mean_of(x: Iterable[float]) -> str:
    """A mean with its 95 % interval by Student's t."""
    values = np.array(list(x))
    if len(values) < 2:
        return f"{values.mean():.2f}"
    half = student.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return f"{values.mean():.2f} ± {half:.2f}"


def settings(one: Size) -> dict[str, Any]:
    """The table of what tuning chose."""
    rows = []
    tuned = one.trials[~one.trials.controller.isin([UNTOLD, EXACT])]
    for name, of in tuned.groupby("controller", sort=False):
        row = of.iloc[0]
        keys = [key for key in row.index if key.startswith("controller.")]
        best = {key.removeprefix("controller."): _number(row[key]) for key in keys}
        told = [f"{k} = {v:.3g}" if isinstance(v, float) else f"{k} = {v}"
                for k, v in best.items() if v == v and v != ""]  # fmt: skip
        rows.append([str(name), ", ".join(told), str(row["tuning"]) or "–"])
    return as_table(f"{one.title}: settings selected by tuning",
                    ["", "setting", "at the edge of its range"], rows)  # fmt: skip


def failures(out: Path, values: Values) -> pd.DataFrame:
    """For every wire that opened: when it did, and when and by what it was found; false alarms."""
    columns = ["controller", "plant", "cell", "opened_s", "after_s", "by"]
    tables = tables_of(values, FOLDER / "six", "failures")
    if not (values.failure_seeds and tables["factors"]["controller"]["levels"]):
        return pd.DataFrame(columns=columns)
    tables["campaign"]["plants"] = values.failure_seeds
    folder = out / "six" / "failures"
    boards = load_rig(FOLDER / "six" / "rig.toml").tables.devices
    rows = []
    for trial in campaign_of(tables, folder, values.workers).itertuples():
        run = hil.open_run(folder / str(trial.file))
        opened = {}
        for text in filter(None, str(trial.wires_open).split(", ")):
            board, gate, when_s = text.replace(":", "").split()[:3]
            opened[boards[board].cells[int(gate) - 1]] = float(when_s)
        for n, cell in enumerate(f"muscle.{k}" for k in range(1, 7)):
            named_s = run.t_s.values[run.cells_failed.values[:, n] == 1][:1].tolist()
            at_s, by = opened.get(cell, np.inf), "named"
            if not named_s and trial.outcome == "tripped" and at_s < run.t_s.values[-1]:
                named_s, by = [float(run.t_s.values[-1])], str(trial.faults)
            if named_s and named_s[0] < at_s:
                rows.append([trial.controller, trial.plant, cell, at_s, np.nan, "false alarm"])
            elif cell in opened and (named_s or trial.outcome == "complete"):
                after_s = named_s[0] - at_s if named_s else np.inf
                rows.append([trial.controller, trial.plant, cell, at_s, after_s, by])
    return pd.DataFrame(rows, columns=columns)


def named(openings: pd.DataFrame) -> dict[str, Any]:
    """The table of wires that open."""
    rows = []
    for name, of in openings.groupby("controller", sort=False):
        opened = of[of.by != "false alarm"]
        n, soon = len(opened), int((opened.after_s <= WITHIN_S).sum())
        if not n:
            continue
        low, high = binomtest(soon, n).proportion_ci(method="wilson")
        tripped = opened[~opened.by.isin(["named"])]
        rows.append([
            str(name), f"{n}", f"{100 * soon / n:.0f} % ({100 * low:.0f} to {100 * high:.0f})",
            f"{opened.after_s.median():.2g} s", f"{len(tripped)}",
            f"{int((of.by == 'false alarm').sum())}",
        ])  # fmt: skip
    return as_table(
        "6 cells: wires that open during a run, whether their cells are on or off (95 % interval)",
        ["", "wires", f"found within {WITHIN_S:g} s", "median", "of them by a trip",
         "false alarms"], rows,
    )  # fmt: skip


def plain_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a table, for JSON."""
    return [
        {str(k): v for k, v in row.items() if v == v and v != ""}
        for row in frame.to_dict("records")
    ]


_CAPTION_ERRORS = (
    "RMS error after the first 4 s over the force of all cells, and wear: mean over commissioned "
    "plants that differ, with its 95 % interval. Every controller is tuned with the same budget."
)
_CAPTION_TRACES = (
    "One plant of the table, three set points. Preview and the planner know the set point in "
    "advance and heat before a step. The first 4 s (grey) do not count: the wires begin cold."
)
_NOTES = (
    "Plants of 100 cells are not commissioned. Every other plant is: each cell has a pulse, and "
    "`hil identify` fits every wire's force, convection and latent heat to the readings; the air "
    "is measured. Controllers and twin know the fit; the planner that is not commissioned knows "
    "the nominal rig, that of the exact plant all that is drawn. Tuning is on plants of its own.",
    "The readings have 2 mN of noise and are 20 ms late; the board's answer comes a period later. "
    "Errors are of the measured force.",
    "Wear is full transformations there and back in an hour, mean over the wires; small cycles "
    "count by their size. A setting costs its error over full force + weight x wear a second.",
    "A wire that opens while its cell is off is named when the cell is recruited next.",
)


def _draw_errors(one: Size) -> Figure:
    points = list(dict.fromkeys(one.trials.set_point))
    names = list(dict.fromkeys(one.trials.controller))
    with styled_figure(9.0, 4.6) as figure:
        error, wear = figure.subplots(2, 1, sharex=True, height_ratios=[2, 1])
        at = np.arange(len(names))
        for i, point in enumerate(points):
            of = one.trials[one.trials.set_point == point].groupby("controller")
            x = at + (i - 1) * 0.25
            for axis, column, scale in (
                (error, "error_N", 100.0 / one.full_N),
                (wear, "wear_per_h", 1.0),
            ):
                mean = scale * of[column].mean().loc[names]
                half = scale * of[column].sem().loc[names] * student.ppf(0.975, of.size().min() - 1)
                axis.bar(x, mean, 0.25, yerr=half, color=("#0072B2", "#56B4E9", "#BBDDF2")[i],
                         label=point, error_kw={"lw": 0.8, "ecolor": "0.3"})  # fmt: skip
        error.set_ylim(bottom=0.0)
        wear.set_ylim(bottom=0.0)
        error.set_ylabel("RMS error [% of full force]")
        wear.set_ylabel("wear [cycles/h]")
        wear.set_xticks(at, [textwrap.fill(name.replace("_", " "), 12) for name in names])
        error.legend(frameon=False, ncols=3)
        error.set_title(f"{one.title}, {one.trials.plant.nunique()} plants")
        mark_simulated(figure, error)
    return figure


def _draw_traces(one: Size) -> Figure:
    points = list(dict.fromkeys(point for _, point in one.traced))
    with styled_figure(9.0, 7.0) as figure:
        axes = figure.subplots(len(points), 1, sharex=True)
        for axis, point in zip(axes, points, strict=True):
            axis.axvspan(0.0, 4.0, color="0.93", lw=0.0)
            for name, color in COLORS.items():
                if (run := one.traced.get((name, point))) is not None:
                    axis.plot(run.t_s, run.force_measured_N, color=color, lw=1.0,
                              label=name.replace("_", " "))  # fmt: skip
                    wanted = run
            axis.plot(wanted.t_s, wanted.force_reference_N, color=REFERENCE, lw=0.8, ls="--",
                      label="set point")  # fmt: skip
            axis.set_ylabel(f"{point}: force [N]")
            axis.margins(x=0.0, y=0.08)
        axes[0].legend(frameon=False, ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.02))
        axes[-1].set_xlabel("time [s]")
        mark_simulated(figure, axes[1])
    return figure
