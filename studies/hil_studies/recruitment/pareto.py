"""`hil study recruitment-pareto`: error against wear and energy, each controller tuned per weight.

Plants, rig, commissioning, set points and controllers are those of `hil study recruitment`. Every
controller is tuned once for every pair of weights, with the same budget: a setting costs

    error / full force + (weight of wear) x wear a second + (weight of energy) x electric power
"""

from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pydantic import BeforeValidator, Field
from scipy.stats import t as student

from hil.config.table import NotNegative, Table
from hil.mechanics.arrays import Array
from hil.pages.study import as_table, saved
from hil.pages.style import mark_simulated, styled_figure
from hil_studies.recruitment import study
from hil_studies.recruitment.study import BEST, COLORS, mean_of

SUPPLY_V, DURATION_S = 8.0, 20.0
WEIGHTS = "wear_weight_s", "energy_weight_per_W"
KEPT = "controller", *WEIGHTS, "set_point", "plant", "error_N", "wear_per_h", "supply_A"
PLANNERS = "optimal", "optimal_modulated"

Weights = Annotated[tuple[NotNegative, ...], BeforeValidator(tuple)]


class Values(Table):
    """What `--set` may change: size, plants, settings that are tried, and the weights.

    A weight of wear is the error over full force that a cycle of wear a second is worth, one of
    energy that of a watt; without a weight the error alone counts. `seeds` plants are in the
    tables, and `budget` settings of each controller are tried for every weight. `workers` processes
    share the trials; default: the number of cores. Without `stress` the branches of wires do not
    move with it.
    """

    cells: Literal[6, 14, 100] = 6
    stress: bool = True
    controllers: study.Controllers = study.CONTROLLERS
    seeds: Annotated[int, Field(ge=2, le=10_000)] = 16
    budget: Annotated[int, Field(ge=1, le=10_000)] = 6
    wear_weights_s: Weights = (0.1, 0.4, 1.6)
    energy_weights_per_W: Weights = (0.02, 0.08)
    workers: Annotated[int, Field(ge=1, le=256)] | None = None


def tables_of(values: Values, files: Path) -> dict[str, Any]:
    """The tables of the campaign: those of the recruitment study, with the weights as factors."""
    of_study = study.Values(
        cells=(values.cells,), seeds=values.seeds, budget=values.budget,
        controllers=values.controllers,
    )  # fmt: skip
    tables = study.tables_of(of_study, files)
    factors, tune = tables["factors"], tables["tune"]
    weights = [
        (0.0, 0.0),
        *((wear, 0.0) for wear in values.wear_weights_s),
        *((0.0, energy) for energy in values.energy_weights_per_W),
    ]
    for i, name in enumerate(WEIGHTS):
        factors[name] = {"levels": sorted({pair[i] for pair in weights})}
    tables["trials"] = [
        {"controller": controller, "set_point": point, **dict(zip(WEIGHTS, pair, strict=True))}
        for controller in factors["controller"]["levels"]
        for pair in weights
        for point in factors["set_point"]["levels"]
    ]
    error = tune["cost"].split(" + ")[0]
    tune["cost"] = (
        f"{error} + wear_weight_s * wear_per_h / 3600 + energy_weight_per_W * {SUPPLY_V} * supply_A"
    )
    tune["parameters"] = [p for p in tune["parameters"] if p["key"] != "controller.plan_s"] + [
        {"key": "controller.energy_price", "scale": "log", "low": 1e-5, "high": 0.05,
         "of": {"controller": name}} for name in PLANNERS if name in values.controllers
    ]  # fmt: skip
    tables["campaign"]["name"] = f"error, wear and energy of {values.cells} cells"
    return tables


def run(out: Path, values: Values) -> dict[str, Any]:
    """Run the campaign into the folder; the results, as written to results.json."""
    files = study.files_of(values.cells, values.stress, out)
    ran = study.campaign_of(tables_of(values, files), out / "campaign", values.workers)
    return results(out, study.complete_of(ran), values, files)


def results(out: Path, trials: pd.DataFrame, values: Values, files: Path) -> dict[str, Any]:
    """Table and figure of the trials of those plants that have all of them."""
    n_cells = values.cells
    counts = trials.groupby("plant").size()
    trials = trials[trials.plant.isin(counts[counts == counts.max()].index)]
    n_plants = trials.plant.nunique()
    title = f"{n_cells} cells{'' if values.stress else ' without stress'}, {n_plants} plants"
    by_plant = plants_of(trials, study.full_force_N(files))
    return study.made(
        "Recruitment: error against wear and energy", [saved(out, f"pareto{n_cells}.png",
        _draw(by_plant, title), _CAPTION)], [table_of(by_plant, title)],
        trials={str(n_cells): study.plain_of(trials[list(KEPT)])},
    )  # fmt: skip


def plants_of(trials: pd.DataFrame, full_N: float) -> pd.DataFrame:
    """Error [%], wear [cycles/h] and energy [J] of every plant, means over the set points."""
    of = trials.assign(
        error=100.0 * trials.error_N / full_N, energy_J=SUPPLY_V * DURATION_S * trials.supply_A
    )
    keys = ["controller", *WEIGHTS, "plant"]
    columns = ["error", "wear_per_h", "energy_J"]
    return of.groupby(keys, sort=False)[columns].mean().reset_index()


def table_of(by_plant: pd.DataFrame, title: str) -> dict[str, Any]:
    """A row for each controller and weight; differences from the best planner, if it is among
    them, are paired.
    """
    rows = []
    best = by_plant[by_plant.controller == BEST].set_index([*WEIGHTS, "plant"]).error
    for (name, wear, energy), of in by_plant.groupby(["controller", *WEIGHTS], sort=False):
        errors = of.set_index([*WEIGHTS, "plant"]).error
        compared = name != BEST and len(best) > 0
        more = mean_of((errors - best.loc[errors.index]).tolist()) if compared else "–"
        weight = f"wear {wear:g} s" if wear else f"energy {energy:g} /W" if energy else "none"
        rows.append([
            str(name), weight, mean_of(of.error), more, f"{of.wear_per_h.mean():.0f}",
            f"{of.energy_J.mean():.0f}",
        ])  # fmt: skip
    return as_table(
        f"{title}: mean over three set points and its 95 % interval over plants",
        ["", "weight", "error [%]", f"less that of {BEST}", "wear [cycles/h]", "energy [J]"], rows,
    )  # fmt: skip


def _draw(by_plant: pd.DataFrame, title: str) -> Figure:
    with styled_figure(9.0, 4.4) as figure:
        wear, energy = figure.subplots(1, 2, sharey=True)
        for axis, other, column, label in (
            (wear, "energy_weight_per_W", "wear_per_h", "wear [cycles/h]"),
            (energy, "wear_weight_s", "energy_J", "energy of 20 s [J]"),
        ):
            _draw_fronts(axis, by_plant[by_plant[other] == 0.0], column)
            axis.set_xlabel(label)
            axis.set_xlim(left=0.0)
        wear.set_yscale("log")
        for which in (wear.yaxis.set_major_formatter, wear.yaxis.set_minor_formatter):
            which("{x:g}")
        wear.set_ylabel("RMS error [% of full force]")
        figure.legend(*wear.get_legend_handles_labels(), loc="outside lower center", ncols=4,
                      frameon=False)  # fmt: skip
        figure.suptitle(title, fontsize=10)
        mark_simulated(figure, wear)
    return figure


def _draw_fronts(axis: Axes, by_plant: pd.DataFrame, column: str) -> None:
    for name, of in by_plant.groupby("controller", sort=False):
        by_weight = of.groupby([*WEIGHTS])
        mean, n = by_weight[["error", column]].mean(), by_weight.size().min()
        half = student.ppf(0.975, n - 1) * by_weight[["error", column]].sem()
        color = COLORS[str(name)]
        axis.errorbar(
            mean[column], mean.error, half.error, half[column], fmt="o", ms=3.5, elinewidth=0.7,
            color=color, label=str(name).replace("_", " "),
        )  # fmt: skip
        x, y = front_of(mean[column].to_numpy(), mean.error.to_numpy())
        axis.plot(x, y, color=color, lw=1.2)


def front_of(x: Array, y: Array) -> tuple[Array, Array]:
    """The points that no other one beats in both, by rising x."""
    order = np.lexsort((y, x))
    x, y = x[order], y[order]
    best = y <= np.minimum.accumulate(y)
    return x[best], y[best]


_CAPTION = (
    "Each point is a controller tuned with the same budget at one weight: the error alone, and "
    "weights of wear (left) or of energy (right). Bars: 95 % intervals of the mean over plants. "
    "Lines join the points that no other one of the same controller beats in both."
)
