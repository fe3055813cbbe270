"""The page's part on drawn plants: distributions of figures, and the worst plants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from operator import itemgetter

import numpy as np
from matplotlib.figure import Figure

from hil.config.values import Figures
from hil.pages.style import mark_simulated, styled_figure
from hil.runs.campaign.expression import Expression
from hil.runs.campaign.journal import Progress
from hil.runs.campaign.plants import has_figure, of_plants
from hil.runs.campaign.table import drawn_columns

LEAST = 3  # plants of which a distribution is drawn
SHOWN = 5  # worst plants of each combination
Rows = Sequence[Figures]


def draw_distributions(rows: Rows, measures: Sequence[str]) -> Figure | None:
    """For each figure the share of plants below a value, a line for each combination.

    A plant counts once, with the mean over its repeats. Trials that tripped do not count.

    Parameters
    ----------
    rows : of drawn plants, with the name of their combination in the column ''
    """
    names = list(dict.fromkeys(row[""] for row in rows))
    values = {
        (name, key): np.sort(list(of_plants({
            (row["plant"], row["repeat"]): row[key]
            for row in rows if row[""] == name and has_figure(row, key)
        }).values()))
        for name in names
        for key in measures
    }  # fmt: skip
    if not values or max(len(of) for of in values.values()) < LEAST:
        return None
    with styled_figure(10.5, 3.0) as figure:
        axes = figure.subplots(1, len(measures), sharey=True, squeeze=False)[0]
        for axis, key in zip(axes, measures, strict=True):
            for name in names:
                of = values[name, key]
                share = np.arange(len(of) + 1) / max(1, len(of))
                axis.step(
                    [*of[:1], *of], share if len(of) else [], where="post", label=name, lw=1.2
                )
            axis.set_xlabel(key.replace("_", " "), fontsize=8, parse_math=False)
        axes[0].set_ylabel("share of plants")
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper left", ncols=4,
                      frameon=False, fontsize=8)  # fmt: skip
        mark_simulated(figure, axes[0], 20.0)
    return figure


def worst_rows(
    p: Progress, rows: Rows, measures: Sequence[str]
) -> tuple[str, list[str], list[tuple[list[str], str]]] | None:
    """The worst plants of every combination: by what, columns, and rows with their recordings.

    A plant has the mean over its repeats, and is shown with its worst trial.

    Parameters
    ----------
    rows : as for `draw_distributions`
    measures : figures, of which the first says what is worst unless the campaign does
    """
    by = p.head.get("worst_by") or next(iter(measures), None)
    if not rows or by is None:
        return None
    value_of: Callable[[Figures], float | None] = itemgetter(by)
    if p.head.get("worst_by"):
        value_of = Expression(str(p.head["file"]), by).value
    drawn = list(dict.fromkeys(key for plan in p.head["plan"] for key in drawn_columns(plan)))
    ranked: dict[str, dict[int, list[tuple[float, Figures]]]] = {}
    for row in rows:
        if row["outcome"] in ("complete", "tripped"):
            value = value_of(row)
            badness = inf if row["outcome"] == "tripped" or value is None else float(value)
            runs = ranked.setdefault(row[""], {}).setdefault(row["plant"], [])
            runs.append((badness, row))
    shown = []
    for of in ranked.values():
        plants = [
            (sum(badness for badness, _ in runs) / len(runs), max(runs, key=itemgetter(0))[1])
            for runs in of.values()
        ]
        plants.sort(key=lambda one: -one[0])
        for badness, row in plants[:SHOWN]:
            unknown = "tripped" if row["outcome"] == "tripped" else "unknown"
            value_text = unknown if badness == inf else f"{badness:.4g}"
            cells = [row[""], row["plant"], row["trial"], value_text, *(row[key] for key in drawn)]
            shown.append(([_text(cell) for cell in cells], row["file"]))
    short = [key.removeprefix("plant.").removeprefix("arrays.") for key in drawn]
    return by, ["", "plant", "trial", "value", *short], shown


def _text(cell: object) -> str:
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)
