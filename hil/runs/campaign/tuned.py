"""Results of tuning, as a campaign's journal has them: for its table, its page and its trials."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf, isfinite

import numpy as np
from matplotlib.figure import Figure

from hil.errors import ConfigError
from hil.pages.style import mark_simulated, styled_figure
from hil.record.append_log import Entry
from hil.runs.campaign.journal import Progress
from hil.runs.campaign.plan import Campaign, Combination
from hil.runs.campaign.tune_tables import CONTROLLER, ParameterTable
from hil.runs.campaign.tuning import Controller, Setting, Tried, at_edges, best_of

TRIED = "tried"  # kind of a journal's line


def tried_of(entries: Iterable[Entry], controller: int) -> list[Tried]:
    """The settings of a controller in a journal, by number."""
    trials = [
        Tried(e["number"], e["setting"], inf if e["cost"] is None else e["cost"], e["broken"])
        for e in entries
        if e["kind"] == TRIED and e["controller"] == controller
    ]
    return sorted(trials, key=lambda one: one.number)


def entry_of(controller: Controller, tried: Tried) -> Entry:
    """The line of a journal for a setting."""
    return {
        "kind": TRIED, "controller": controller.index, "number": tried.number,
        "setting": dict(tried.setting), "cost": tried.cost if isfinite(tried.cost) else None,
        "broken": tried.broken,
    }  # fmt: skip


def head_of(campaign: Campaign) -> Entry:
    """What the first line of a journal says of tuning."""
    controllers = [
        {
            "experiment": one.experiment, "levels": dict(one.levels),
            "parameters": [p.model_dump() for p in one.parameters],
        }
        for one in campaign.controllers
    ]  # fmt: skip
    table = campaign.tables.tune
    return {} if table is None else {"tune": table.model_dump(), "controllers": controllers}


def settings_of(campaign: Campaign, entries: Sequence[Entry]) -> dict[Combination, Setting]:
    """The best setting of every combination whose controller is tuned.

    Raises
    ------
    ConfigError
        A controller has not had its budget, or none of its settings keeps the constraint.
    """
    tuned: dict[Combination, Setting] = {}
    for controller in campaign.controllers:
        tried, table = tried_of(entries, controller.index), campaign.tables.tune
        if not controller.parameters or table is None:
            continue
        if len(tried) < table.budget:
            raise ConfigError(
                f"{campaign.path}: {controller} is not tuned yet: run the campaign first, or give "
                "its --out"
            )
        best = best_of(tried)
        if best is None and any(one.broken == 0.0 for one in tried):
            raise ConfigError(
                f"{campaign.path}: tune.cost = '{table.cost}': no finite number on all plants for "
                f"any of {len(tried)} settings of {controller}: change it, and give another --out"
            )
        if best is None:
            raise ConfigError(
                f"{campaign.path}: tune: none of {len(tried)} settings of {controller} keeps the "
                "constraint without a trip on all plants: change the ranges or the constraint, "
                "and give another --out"
            )
        mine = (c for c in campaign.configs if controller.has(c[0], dict(c[1])))
        tuned |= dict.fromkeys(mine, best.setting)
    return tuned


@dataclass(frozen=True)
class Tuning:
    """What tuning of one controller has come to.

    Attributes
    ----------
    best : None before a setting fits
    warnings : a text for each value of it at the end of its range
    """

    controller: Controller
    tried: Sequence[Tried]
    best: Tried | None
    warnings: Sequence[str]

    def __str__(self) -> str:
        if self.best is None:
            return f"{self.controller}: no setting of {len(self.tried)} fits"
        values = ", ".join(f"{key} = {_shown(value)}" for key, value in self.best.setting.items())
        return f"tuned {self.controller}: {values}: cost {self.best.cost:.4g}"


def tunings_of(p: Progress) -> list[Tuning]:
    """Every controller that a campaign tunes."""
    tunings = []
    for i, one in enumerate(p.head.get("controllers", [])):
        parameters = [ParameterTable.model_validate(table) for table in one["parameters"]]
        controller = Controller(i, one["experiment"], one["levels"], parameters)
        tried = tried_of(p.tried, i)
        best = best_of(tried)
        edges = at_edges(parameters, best.setting) if best else []
        if parameters:
            tunings.append(Tuning(controller, tried, best, edges))
    return tunings


def columns_of(tunings: Sequence[Tuning], plan: Entry) -> dict[str, object]:
    """Columns of the table of all trials: the setting of this trial, and its warnings."""
    if not tunings:
        return {}
    keys = (p.key for one in tunings for p in one.controller.parameters)
    columns: dict[str, object] = dict.fromkeys([*keys, "tuning"])
    for one in tunings:
        if one.best is not None and one.controller.has(plan["experiment"], plan["levels"]):
            columns |= dict(one.best.setting)
            columns["tuning"] = "; ".join(one.warnings)
    return columns


def section_of(tunings: Sequence[Tuning]) -> tuple[list[str], list[list[str]], list[str]]:
    """The page's table of all controllers: columns, rows and warnings."""
    keys = list(dict.fromkeys(p.key for one in tunings for p in one.controller.parameters))
    rows, warnings = [], []
    for one in tunings:
        setting = {} if one.best is None else one.best.setting
        n_broken = sum(tried.broken > 0.0 for tried in one.tried)
        rows.append(
            [
                str(one.controller), *(_shown(setting.get(key)) for key in keys),
                "–" if one.best is None else f"{one.best.cost:.4g}",
                str(len(one.tried)), str(n_broken),
            ]
        )  # fmt: skip
        warnings += [f"{one.controller}: {line}: widen it" for line in one.warnings]
    keys = [key.removeprefix(CONTROLLER) for key in keys]
    return ["", *keys, "cost", "settings tried", "of them broke the constraint"], rows, warnings


def _shown(value: object) -> str:
    if value is None:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def draw_search(tunings: Sequence[Tuning]) -> Figure | None:
    """The least cost so far over the number of settings, a line for each controller."""
    if not any(one.best for one in tunings):
        return None
    with styled_figure(8.0, 3.0) as figure:
        axis = figure.subplots()
        for one in tunings:
            costs = [tried.cost if tried.fits else inf for tried in one.tried]
            least = np.minimum.accumulate(costs)
            least[np.isinf(least)] = np.nan
            numbers = np.arange(1, len(costs) + 1)
            [line] = axis.step(numbers, least, where="post", label=str(one.controller), lw=1.2)
            shown = np.isfinite(costs)
            axis.plot(numbers[shown], np.array(costs)[shown], ".", color=line.get_color(),
                      alpha=0.4, ms=4)  # fmt: skip
        axis.set_xlabel("settings tried")
        axis.set_ylabel("cost")
        figure.legend(loc="outside upper left", ncols=4, frameon=False, fontsize=8)
        mark_simulated(figure, axis, 20.0)
    return figure
