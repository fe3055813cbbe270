"""The results of a campaign as an HTML page, tables and a few lines of text."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hil.config.values import Figures
from hil.errors import writing
from hil.loop.channels import signals_in
from hil.pages.html import embedded, rendered
from hil.pages.style import CELL, FAULT, MEASURED, MODEL, RESIDUAL, mark_simulated, styled_figure
from hil.platform.whole_files import whole, write_whole
from hil.record.read import n_whole_rows, open_h5
from hil.runs.campaign.distributions import draw_distributions, worst_rows
from hil.runs.campaign.journal import JOURNAL, Progress, read_progress, time_text
from hil.runs.campaign.plants import compared
from hil.runs.campaign.table import as_csv, as_dataset, drawn_columns, rows_of
from hil.runs.campaign.tuned import columns_of, draw_search, section_of, tunings_of

PAGE, CSV, NETCDF = "campaign.html", "trials.csv", "trials.nc"
PANELS_MAX = 12
CURVES_MAX = 8
POINTS = 600
FIGURES_MAX = 4
SMALL = 20.0
ALWAYS = ("outcome", "attempts")
PREFERRED = ("_residual_rms", "_tracking_rms", "_measured_max")


def write_all(folder: Path) -> list[Path]:
    """Write page and tables of the campaign in a folder; does nothing without a journal.

    Returns
    -------
    list of Path
        The written files.

    Raises
    ------
    ConfigError
        The folder cannot be written.
    """
    if not (folder / JOURNAL).is_file():
        return []
    p = read_progress(folder)
    paths = [folder / name for name in (CSV, NETCDF, PAGE)]
    with writing(paths[0]):
        write_whole(paths[0], as_csv(rows_of(p)))
    with writing(paths[1]), whole(paths[1]) as part:
        as_dataset(p).to_netcdf(part, engine="scipy")
    with writing(paths[2]):
        write_whole(paths[2], page(folder, p))
    return paths


def as_json(folder: Path, p: Progress) -> dict[str, object]:
    """Progress and every trial, as values for JSON."""
    return {
        "folder": str(folder), "page": str(folder / PAGE), "table": str(folder / CSV),
        "name": p.head["name"], "backend": p.head["backend"], "rehearsal": p.head["rehearsal"],
        "count": p.n_trials, "complete": p.n_complete, "left": p.left, "left_s": p.left_s(),
        "stopped_by": p.why, "answers": p.answers.get(0, {}), "trials": rows_of(p),
    }  # fmt: skip


def as_text(folder: Path, p: Progress) -> str:
    """Progress as a few lines for the terminal."""
    what = "rehearsal of " if p.head["rehearsal"] else ""
    lines = [f"{what}{p.head['name']}: {p.n_complete} of {p.n_trials} trials are complete"]
    for number, verdict in p.settled.items():
        if verdict != "complete":
            lines.append(f"  trial {number} is left out: {verdict}")
    if p.left:
        lines.append(f"  {len(p.left)} left, {time_text(p.left_s())}; next is trial {p.left[0]}")
        if p.why:
            lines.append(f"  stopped: {p.why}; run the same command to continue")
    lines.append(f"  {folder / PAGE}, {folder / CSV}, {folder / NETCDF}")
    return "\n".join(lines)


def page(folder: Path, p: Progress) -> str:
    """The page as one HTML file with embedded figures and links to the recordings."""
    rows, simulated = rows_of(p), p.head["backend"] != "bench"
    tunings = tunings_of(p)
    drawn = {
        key for plan in p.head["plan"] for key in (*drawn_columns(plan), *columns_of(tunings, plan))
    }
    left_out = {"seed", "file", "error", "started_utc", *drawn}
    shown = [k for k in rows[0] if k not in left_out]
    shown = [k for k in shown if k in ALWAYS or any(row[k] not in (None, "") for row in rows)]
    if len({row["experiment"] for row in rows}) == 1:
        shown.remove("experiment")
    figures = [
        ("Measured signals and the twin", _draw_signals(folder, p, simulated)),
        ("Factors", _draw_factors(p, rows, simulated)),
        ("Figures in trial order", _draw_order(rows, simulated)),
    ]
    search = draw_search(tunings)
    labelled = _labelled(p, rows)
    measures = _figures_shown(labelled, list(p.head.get("measures", []))) if labelled else []
    plants = [(_heading(name), compared(labelled, name, "")) for name in measures]
    spread = draw_distributions(labelled, measures)
    return rendered(
        "campaign.html",
        title=p.head["name"],
        file=p.head["file"],
        simulated=simulated,
        rehearsal=p.head["rehearsal"],
        backend=p.head["backend"],
        operator=p.head["operator"],
        count=p.n_trials,
        complete=p.n_complete,
        left=len(p.left),
        why=p.why,
        answers=[(q, _shown(a)) for q, a in p.answers.get(0, {}).items()],
        notes=_notes(p),
        figures=[
            (title, embedded(figure, dpi=130)) for title, figure in figures if figure is not None
        ],
        plants=plants,
        spread=None if spread is None else embedded(spread, dpi=130),
        worst=worst_rows(p, labelled, measures),
        tune=p.head.get("tune"),
        tuning=section_of(tunings),
        search=None if search is None else embedded(search, dpi=130),
        columns=[_heading(key) for key in shown] + ["recording"],
        rows=[
            (
                [_shown(row[key]) for key in shown],
                row["file"],
                row["outcome"] not in ("complete", "to do"),
            )
            for row in rows
        ],
        software=list(p.head["software"].items()),
    )


def _labelled(p: Progress, rows: list[dict[str, object]]) -> list[dict[str, object]]:
    """The rows of drawn plants, with the name of their combination in the column ''."""
    if "plant" not in p.head["plan"][0]:
        return []
    several = len({plan["experiment"] for plan in p.head["plan"]}) > 1
    labelled = []
    for row, plan in zip(rows, p.head["plan"], strict=True):
        label = _label(plan["levels"], plan["experiment"])
        if several and plan["levels"]:
            label = f"{Path(plan['experiment']).stem}: {label}"
        labelled.append(row | {"": label})
    return labelled


def _notes(p: Progress) -> list[tuple[str, str]]:
    notes = []
    for note in p.notes:
        what = note.get("why") or note.get("error") or ", ".join(note.get("faults", []))
        kind = note.get("outcome") or {"skip": "left out", "stop": "stopped"}[note["kind"]]
        trial = f"trial {note['trial']}" if "trial" in note else ""
        notes.append((trial, f"{kind}: {what}" if what else kind))
    return notes


def _heading(key: str) -> str:
    return key.replace("_", " ")


def _shown(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _label(levels: dict[str, object], experiment: str) -> str:
    label = ", ".join(f"{_heading(name)} {value}" for name, value in levels.items())
    return label or Path(experiment).stem


def _draw_signals(folder: Path, p: Progress, simulated: bool) -> Figure | None:
    """The first signal of every complete trial: a panel a combination, repeats overlaid."""
    panels: dict[str, list[Path]] = {}
    several = len({plan["experiment"] for plan in p.head["plan"]}) > 1
    for plan in sorted(p.head["plan"], key=_by_levels):
        end = p.ends.get(plan["trial"], {})
        path = folder / end.get("file", "")
        if end.get("outcome") == "complete" and path.is_file():
            label = _label(plan["levels"], plan["experiment"])
            label = f"{Path(plan['experiment']).stem}: {label}" if several else label
            panels.setdefault(label, []).append(path)
    if not panels:
        return None
    n = min(len(panels), PANELS_MAX)
    n_across = min(n, 3 if n not in (4, 8) else 4)
    n_down = -(-n // n_across)
    with styled_figure(10.5, 0.7 + 1.9 * n_down) as figure:
        axes = figure.subplots(n_down, n_across, sharex=True, sharey=True, squeeze=False).ravel()
        for axis, (label, paths) in zip(axes, panels.items(), strict=False):
            for i, path in enumerate(paths[:CURVES_MAX]):
                _draw_curve(axis, path, i == 0)
            axis.set_title(label, fontsize=9, parse_math=False)
        for axis in axes[n:]:
            axis.set_axis_off()
        axes[0].legend(frameon=False, fontsize=7)
        figure.supxlabel("time [s]", fontsize=9)
        if simulated:
            mark_simulated(figure, axes[0], SMALL)
            figure.suptitle(" ", fontsize=10)
        if len(panels) > n:
            figure.suptitle(f"{n} of {len(panels)} combinations", x=0.01, ha="left", fontsize=9)
    return figure


def _by_levels(plan: Figures) -> tuple[object, ...]:
    """Sort key of a trial: numeric levels by value, others by name."""
    levels = plan["levels"].values()
    keys = [(0, v, "") if isinstance(v, int | float) else (1, 0.0, str(v)) for v in levels]
    return (plan["experiment"], *keys, plan["repeat"])


def _draw_curve(axis: Axes, path: Path, first: bool) -> None:
    with open_h5(path) as file:
        n, ticks = n_whole_rows(file), file["ticks"]
        signals = signals_in(ticks)
        if not signals or not n:
            return
        step = max(1, n // POINTS)
        t_s = ticks["t_s"][:n:step]
        measured, model = ticks[signals[0].measured][:n:step], ticks[signals[0].model][:n:step]
        unit = ticks[signals[0].measured].attrs["units"]
    labels = ("measured", "simulated (twin)") if first else ("_", "_")
    axis.plot(t_s, measured, color=MEASURED, lw=0.7, alpha=0.8, label=labels[0])
    axis.plot(t_s, model, color=MODEL, lw=0.7, alpha=0.8, label=labels[1])
    place = axis.get_subplotspec()
    if first and place is not None and place.is_first_col():
        axis.set_ylabel(f"{signals[0].name} [{unit}]", parse_math=False)


def _figures_shown(rows: list[dict[str, object]], measures: list[str]) -> list[str]:
    """The figures to draw: the campaign's own measures, else the preferred ones."""
    candidates = measures or [
        key for part in PREFERRED for key in rows[0] if key.removesuffix("_N").endswith(part)
    ]
    known = [k for k in candidates if any(isinstance(r.get(k), float | int) for r in rows)]
    return known[:FIGURES_MAX]


def _measures(rows: list[dict[str, object]]) -> list[str]:
    keys = list(rows[0])
    return keys[keys.index("missed_periods") + 1 :] if "missed_periods" in keys else []


def _draw_factors(p: Progress, rows: list[dict[str, object]], simulated: bool) -> Figure | None:
    """Every figure over every factor: trials as dots, means as a line."""
    varied = {
        name: list(dict.fromkeys(row[name] for row in rows))
        for name in (*p.head["plan"][0]["levels"], "experiment", "block")
    }
    complete = [row for row in rows if row["outcome"] == "complete"]
    factors = {name: levels for name, levels in varied.items() if len(levels) > 1}
    shown = _figures_shown(rows, _measures(rows))
    if not factors or not shown:
        return None
    with styled_figure(max(6.0, 2.7 * len(factors)), 0.6 + 2.1 * len(shown)) as figure:
        axes = figure.subplots(len(shown), len(factors), squeeze=False, sharey="row")
        for (i, key), (j, (name, levels)) in itertools.product(
            enumerate(shown), enumerate(factors.items())
        ):
            axis = axes[i, j]
            if all(isinstance(level, float | int) for level in levels):
                levels = sorted(levels)
            means = []
            for at, level in enumerate(levels):
                y = np.array([r[key] for r in complete if r[name] == level and r[key] is not None])
                spread = np.linspace(-0.12, 0.12, len(y)) if len(y) > 1 else np.zeros(len(y))
                axis.plot(at + spread, y, ".", color=MEASURED, alpha=0.6, ms=5)
                means.append(y.mean() if len(y) else np.nan)
            axis.plot(range(len(levels)), means, "_-", color="0.25", ms=16, lw=0.8)
            names = [Path(str(v)).stem if name == "experiment" else str(v) for v in levels]
            axis.set_xticks(range(len(levels)), [_short(label) for label in names])
            axis.set_xlim(-0.5, len(levels) - 0.5)
            axis.margins(y=0.15)
            if i == len(shown) - 1:
                axis.set_xlabel(_heading(name))
            if j == 0:
                axis.set_ylabel(_heading(key), parse_math=False)
        if simulated:
            figure.suptitle(" ", fontsize=10)
            mark_simulated(figure, axes[0, 0], SMALL)
    return figure


def _short(text: str) -> str:
    return text if len(text) <= 14 else text[:13] + "…"


def _draw_order(rows: list[Figures], simulated: bool) -> Figure | None:
    """Figures and waits over the number of the trial, which shows drift."""
    shown = _figures_shown(rows, _measures(rows))
    if any(row["waited_s"] for row in rows):
        shown = [*shown, "waited_s"]
    if not shown:
        return None
    numbers = np.array([row["trial"] for row in rows])
    borders = [b["trial"] - 0.5 for a, b in itertools.pairwise(rows) if a["block"] != b["block"]]
    with styled_figure(10.5, 0.6 + 1.5 * len(shown)) as figure:
        axes = figure.subplots(len(shown), 1, sharex=True, squeeze=False)[:, 0]
        for axis, key in zip(axes, shown, strict=True):
            y = np.array([np.nan if row[key] is None else row[key] for row in rows], dtype=float)
            if key == "waited_s":
                axis.bar(numbers, y, color=CELL, width=0.7)
            else:
                axis.plot(numbers, y, "o-", color=RESIDUAL, lw=0.6, ms=3.5)
            axis.set_ylabel(_heading(key), fontsize=8, parse_math=False)
            for border in borders:
                axis.axvline(border, color="0.8", lw=0.8)
            for row in rows:
                if row["outcome"] not in ("complete", "to do"):
                    axis.axvspan(row["trial"] - 0.5, row["trial"] + 0.5, color=FAULT, alpha=0.12)
        axes[-1].set_xlabel("trial")
        axes[-1].set_xlim(0.0, len(rows) + 1.0)
        figure.align_ylabels(axes)
        if simulated:
            figure.suptitle(" ", fontsize=10)
            mark_simulated(figure, axes[0])
    return figure
