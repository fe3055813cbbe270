"""The difference of two runs as text and as a page, with its causes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hil.config.values import Figures
from hil.errors import ConfigError
from hil.loop.channels import signals_in
from hil.pages.html import embedded, rendered
from hil.pages.style import (
    MEASURED,
    MODEL,
    REFERENCE,
    RESIDUAL,
    decimated,
    mark_simulated,
    styled_figure,
)
from hil.platform.whole_files import write_whole
from hil.record.read import open_run
from hil.runs.diff.causes import Explained, explain
from hil.runs.diff.facts import Shown, shown, stated
from hil.runs.diff.setup import Setup, setup_of

SHOWN_MAX = 12
NOTICEABLE = 1.0  # scatters
SMALL = 0.005  # of the difference


@dataclass
class Difference:
    """Two runs and why they differ; `unexplained` says why that is not known."""

    runs: tuple[xr.Dataset, xr.Dataset]
    paths: tuple[Path, Path]
    stated: list[tuple[str, str, str]]
    shown: list[Shown]
    explained: Explained | None = None
    unexplained: str = ""
    twin_stands_in: bool = False


def difference(a: Path, b: Path, figure: str = "", *, progress: bool = False) -> Difference:
    """Compare two recordings, and run them again to find why they differ.

    Raises
    ------
    ConfigError
        A file is no recording, or has no rows, or there is no such figure.
    """
    runs = open_run(a), open_run(b)
    for path, run in zip((a, b), runs, strict=True):
        if not run.sizes["tick"]:
            raise ConfigError(f"{path}: has no rows, so nothing to compare: give another run")
    comparison = Difference(runs, (a, b), list(stated(*runs)), shown(*runs))
    try:
        setups: tuple[Setup, Setup] = setup_of(a), setup_of(b)
    except ConfigError as error:
        comparison.unexplained = str(error).split("\n")[0]
        return comparison
    comparison.twin_stands_in = not all(setup.simulated for setup in setups)
    comparison.explained = explain(*setups, figure, progress=progress)
    return comparison


def as_dict(comparison: Difference) -> Figures:
    """All of it as values for JSON."""
    e = comparison.explained
    return {
        "runs": list(map(str, comparison.paths)),
        "stated": [{"what": what, "a": a, "b": b} for what, a, b in comparison.stated],
        "shown": [vars(condition) for condition in comparison.shown],
        "unexplained": comparison.unexplained,
        "explained": e and {
            "figure": e.figure, "a": e.recorded[0], "b": e.recorded[1],
            "again_a": e.again[0], "again_b": e.again[1], "chance": e.chance,
            "difference": e.difference, "together": e.together, "software": e.software,
            "causes": [{"name": c.name, "values": c.values, "effects": c.effects,
                        "refused": c.refused} for c in e.causes],
        },
    }  # fmt: skip


def lines(comparison: Difference) -> Iterator[str]:
    """A few lines for the terminal."""
    yield f"a: {comparison.paths[0]}"
    yield f"b: {comparison.paths[1]}"
    for what, a, b in comparison.stated:
        yield f"  {what}: {a} -> {b}"
    noticed = [condition for condition in comparison.shown if condition.score >= NOTICEABLE]
    if noticed:
        yield "the rows show, largest difference first"
        yield from (f"  {condition.text()}" for condition in noticed[:SHOWN_MAX])
    e = comparison.explained
    if e is None:
        yield f"why: not known: {comparison.unexplained}"
        return
    values = [f"{of[e.figure]:.4g}" for of in e.recorded]
    if not e.causes and not e.difference:
        yield f"why: they do not differ: {e.figure} is {values[0]} in both"
        return
    yield f"why: {e.figure} differs by {e.difference:+.4g}, from {' to '.join(values)}"
    for effect, share, text in _rows(e):
        yield f"  {effect:>10}  {share:>6}  {text}"
    yield f"  another seed changes it by {e.chance.get(e.figure, 0.0):.2g}"
    yield _how(comparison)


def _how(comparison: Difference) -> str:
    if comparison.twin_stands_in:
        return ("the plant was not run again: the twin stands for it, with the recorded difference "
                "of measured and simulated as disturbance")  # fmt: skip
    return "both runs were simulated again, and each with one part of the other at a time"


def _rows(e: Explained) -> Iterator[tuple[str, str, str]]:
    """Effect, share and text of every cause, then of what remains."""
    rest = [(e.together, "remainder: what the causes do only together"),
            (e.software, "remainder: other software, or what no configuration has")]  # fmt: skip
    for cause in e.causes:
        if cause.refused:
            yield "", "", f"{cause.text()} (cannot be exchanged alone: {cause.refused})"
        else:
            yield _effect(e, cause.effects.get(e.figure, 0.0), cause.text())
    for remainder, text in rest:
        if abs(remainder) > SMALL * abs(e.difference):
            yield _effect(e, remainder, text)


def _effect(e: Explained, value: float, text: str) -> tuple[str, str, str]:
    share = f"{100.0 * value / e.difference:.0f} %" if e.difference else ""
    return f"{value:+.3g}", share, text


def _brief(name: str) -> str:
    """A cause by the end of its key."""
    title, _, key = name.partition(": ")
    last = key.rpartition(".")[2]
    return f"{title}: {last}" if last else title[:40]


def write_page(comparison: Difference, path: Path) -> None:
    """Write the page as one HTML file; ConfigError if it cannot be written."""
    from hil.errors import writing

    e = comparison.explained
    simulated = any(run.attrs.get("simulated") for run in comparison.runs)
    others = [] if e is None else [
        (name, *(f"{of[name]:.4g}" for of in e.recorded),
         f"{e.recorded[1][name] - e.recorded[0][name]:+.3g}",
         *(f"{cause.effects.get(name, 0.0):+.3g}" for cause in e.causes[:4]))
        for name in e.recorded[0] if name in e.recorded[1]
    ]  # fmt: skip
    text = rendered(
        "diff.html",
        title=f"{comparison.paths[0].stem} and {comparison.paths[1].stem}",
        simulated=simulated,
        paths=list(map(str, comparison.paths)),
        stated=comparison.stated,
        shown=[(s.name, f"{s.was:.4g}", f"{s.now:.4g}", s.units, f"{s.score:.1f}")
               for s in comparison.shown[:SHOWN_MAX]],
        unexplained=comparison.unexplained,
        figure="" if e is None else e.figure,
        values=() if e is None else [f"{of[e.figure]:.4g}" for of in e.recorded],
        difference="" if e is None else f"{e.difference:+.4g}",
        chance="" if e is None else f"{e.chance.get(e.figure, 0.0):.2g}",
        causes=[] if e is None else list(_rows(e)),
        names=[] if e is None else [_brief(cause.name) for cause in e.causes[:4]],
        others=others,
        how=_how(comparison),
        png=embedded(draw(comparison, simulated=simulated), dpi=130),
    )  # fmt: skip
    with writing(path):
        write_whole(path, text)


def draw(comparison: Difference, *, simulated: bool) -> Figure:
    """Both measured curves of the first common signal, their difference, and the effects."""
    a, b = comparison.runs
    common = [s for s in signals_in(map(str, a.data_vars)) if s.measured in b]
    e = comparison.explained
    n = (2 if common else 0) + (e is not None)
    with styled_figure(10.0, 0.6 + 2.3 * max(n, 1)) as figure:
        axes = figure.subplots(max(n, 1), 1, squeeze=False)[:, 0]
        if common:
            _draw_curves(axes, a, b, common[0].measured, common[0].reference)
            axes[1].sharex(axes[0])
        if e is not None:
            _draw_effects(axes[-1], e)
        if simulated:
            mark_simulated(figure, axes[0])
    return figure


def _draw_curves(
    axes: np.ndarray, a: xr.Dataset, b: xr.Dataset, column: str, reference: str | None
) -> None:
    units = a[column].attrs["units"]
    # Most rows of a slow device have no reading.
    a_s, of_a, b_s, of_b = (
        values[np.isfinite(run[column].values)]
        for run in (a, b)
        for values in (run.t_s.values, run[column].values)
    )
    for t_s, values, colour, name in ((a_s, of_a, MEASURED, "a"), (b_s, of_b, MODEL, "b")):
        axes[0].plot(*decimated(t_s, values), color=colour, lw=0.8, label=name)
    if reference and reference in a:
        curve = decimated(a.t_s.values, a[reference].values)
        axes[0].plot(*curve, color=REFERENCE, lw=0.7, ls="--", label="set point of a")
    axes[0].legend(frameon=False, ncols=3)
    axes[0].set_ylabel(f"{column.partition('_measured')[0]} [{units}]", parse_math=False)
    if len(b_s):
        at_s = a_s[a_s <= b_s[-1]]
        apart = np.interp(at_s, b_s, of_b) - of_a[: len(at_s)]
        axes[1].plot(*decimated(at_s, apart), color=RESIDUAL, lw=0.8)
    axes[1].set_ylabel(f"b minus a [{units}]", parse_math=False)
    axes[1].set_xlabel("time [s]")


def _draw_effects(axis: Axes, e: Explained) -> None:
    rows = [(c.name, c.effects.get(e.figure, 0.0)) for c in e.causes if not c.refused][:8]
    rows += [("together", e.together), ("software, and unknown", e.software)]
    names, values = zip(*reversed(rows), strict=True)
    axis.barh(range(len(rows)), values, color=MEASURED, height=0.6)
    axis.axvline(0.0, color="0.4", lw=0.6)
    axis.axvline(e.difference, color="#CC3311", lw=0.8, ls="--")
    axis.set_yticks(range(len(rows)), [_brief(name) for name in names], parse_math=False)
    axis.set_xlabel(f"effect on {e.figure}; dashed: the whole difference", parse_math=False)
