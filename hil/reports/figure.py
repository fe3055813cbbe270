"""Figures for papers: vector files of a given width, with fonts inside, of one run or several."""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import matplotlib
import matplotlib.style
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hil.config.values import Figures
from hil.errors import ConfigError, missing_extra, one_line, remedy, writing
from hil.loop.channels import DUTY, Signal, known_before, signals_in
from hil.loop.frame import units
from hil.pages.style import CELL, FAULT, MEASURED, MODEL, REFERENCE, RESIDUAL, decimated
from hil.platform.whole_files import whole
from hil.reports.cells import draw_cells

FORMATS = (".pdf", ".svg", ".pgf", ".png")
MM_PER = {"mm": 1.0, "cm": 10.0, "in": 25.4, "pt": 25.4 / 72.0}
JOURNALS = ("ieee", "nature")  # of SciencePlots
PANEL_MM, CELLS_MM, MARGIN_MM, CHARACTER_MM = 34.0, 20.0, 20.0, 1.8
LEGEND = 3  # names in a row of it
OURS = {
    "font.size": 8.0, "axes.spines.top": False, "axes.spines.right": False, "axes.linewidth": 0.6,
    "lines.linewidth": 0.9, "legend.frameon": False,
}  # fmt: skip
EMBEDDED = {"pdf.fonttype": 42, "svg.fonttype": "path", "savefig.dpi": 600}
COLOURS = (MEASURED, MODEL, RESIDUAL, "#CC79A7", CELL, "#56B4E9")  # of runs laid over each other


@dataclass(frozen=True)
class Look:
    """How a figure looks.

    Attributes
    ----------
    what : its panels: names of signals, `residual`, `cells`, or columns of the recording
    from_s, to_s : part of the time
    width : with its unit, mm, cm, in or pt; a column of most journals is 88 mm wide
    style : `ieee` or `nature` (extra `figures`), or a matplotlib style, by name or file
    overlay : several runs in the same axes, else side by side
    """

    what: Sequence[str] = ("force", "residual", "cells")
    from_s: float | None = None
    to_s: float | None = None
    width: str = "88mm"
    style: str = ""
    overlay: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.what, str):  # one panel, from Python
            object.__setattr__(self, "what", (self.what,))

    @property
    def span_s(self) -> tuple[float, float]:
        """From when to when; infinite where it is left out."""
        from_s = -np.inf if self.from_s is None else self.from_s
        return from_s, np.inf if self.to_s is None else self.to_s


def figure(runs: Sequence[xr.Dataset], names: Sequence[str], look: Look) -> Figure:
    """Draw runs.

    Parameters
    ----------
    names : of the runs, for a legend or titles

    Raises
    ------
    ConfigError
        A panel, width, style or time that cannot be.
    """
    if not runs:
        raise ConfigError("a figure needs a run: give a recording, or what hil.simulate returns")
    width_mm = _width_mm(look.width)
    cut = [_cut(run, name, look) for run, name in zip(runs, names, strict=True)]
    for run, name in zip(cut, names, strict=True):
        _check_panels(run, name, look.what)
    beside = [[i] for i in range(len(cut))] if not look.overlay else [list(range(len(cut)))]
    room_mm = (width_mm - MARGIN_MM) / (LEGEND if look.overlay else len(cut))
    names = [_short(name, room_mm) for name in names]
    heights_mm = [CELLS_MM if what == "cells" else PANEL_MM for what in look.what]
    with _styled(look.style):
        size = (width_mm / 25.4, (sum(heights_mm) + 8.0) / 25.4)
        drawn = Figure(figsize=size, layout="constrained")
        axes = drawn.subplots(len(heights_mm), len(beside), sharex="col", sharey="row",
                              squeeze=False, height_ratios=heights_mm)  # fmt: skip
        for column, members in enumerate(beside):
            for row, what in enumerate(look.what):
                axis = axes[row, column]
                if len(members) > 1:
                    _lay_over(axis, what, [cut[i] for i in members], names)
                else:
                    _draw(axis, what, cut[members[0]])
                if column:
                    axis.set_ylabel("")
            if len(beside) > 1:
                title = axes[0, column].set_title(
                    names[column], parse_math=False, loc="left", fontsize="medium"
                )
                title.set_in_layout(False)
        drawn.supxlabel("time [s]", fontsize="medium")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        drawn.legend(handles, labels, loc="outside upper right", ncols=LEGEND, frameon=False,
                     borderaxespad=0.1, handlelength=1.4, columnspacing=1.0)  # fmt: skip
        drawn.align_ylabels(axes[:, 0])
        if any(run.attrs.get("simulated") for run in cut):
            drawn.text(0.995, 0.005, "SIMULATED", ha="right", va="bottom", fontsize=6, color=FAULT)
    return drawn


def names_of(runs: Sequence[str | Path | xr.Dataset]) -> list[str]:
    """Names of runs in a figure: of their files, or of their experiments."""
    return [
        Path(run).stem if isinstance(run, str | Path) else str(run.attrs["experiment_name"])
        for run in runs
    ]


def save(drawn: Figure, file: Path, look: Look, command: str) -> None:
    """Write a figure, with the command that makes it again in the file.

    Raises
    ------
    ConfigError
        The file cannot be written, or has no ending of a figure.
    """
    ending = file.suffix.lower()
    if ending not in FORMATS:
        raise ConfigError(f"--out {file}: no format of a figure: give {', '.join(FORMATS)}")
    if ending == ".pgf" and shutil.which(str(matplotlib.rcParams["pgf.texsystem"])) is None:
        raise ConfigError(
            f"--out {file}: needs {matplotlib.rcParams['pgf.texsystem']} of LaTeX: install it, or "
            "give a .pdf"
        )
    keys = {".pdf": "Subject", ".svg": "Description", ".png": "Description", ".pgf": "Subject"}
    with _styled(look.style), writing(file), whole(file) as part:
        try:
            drawn.savefig(part, format=ending[1:], metadata={keys[ending]: command})
        except RuntimeError as error:  # LaTeX, which the style asks for
            raise ConfigError(f"--style {look.style}: {one_line(str(error))}") from None


def _short(name: str, room_mm: float) -> str:
    """The name, without its middle where it is longer than the room."""
    n = max(8, int(room_mm / CHARACTER_MM))
    return name if len(name) <= n else f"{name[: n // 2]}…{name[n // 2 + 1 - n :]}"


def _width_mm(text: str) -> float:
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(mm|cm|in|pt)\s*", text)
    if match is None or not 20.0 <= float(match[1]) * MM_PER[match[2]] <= 1000.0:
        raise ConfigError(f"--width {text}: give a width from 20 mm to 1 m, such as 88mm or 3.5in")
    return float(match[1]) * MM_PER[match[2]]


def _cut(run: xr.Dataset, name: str, look: Look) -> xr.Dataset:
    """The part of the run that is shown."""
    t_s = run.t_s.values
    from_s, to_s = look.span_s
    if not from_s < to_s:
        raise ConfigError(f"--to {to_s:g}: is not after --from {from_s:g}")
    part = run.isel(tick=(t_s >= from_s) & (t_s <= to_s))
    if not part.sizes["tick"]:
        ends = f"{t_s[0]:g} to {t_s[-1]:g} s" if len(t_s) else "without a row"
        raise ConfigError(f"{name}: has no row from {from_s:g} to {to_s:g} s: it is {ends}")
    return part


def _check_panels(run: xr.Dataset, name: str, what: Sequence[str]) -> None:
    signals = [signal.name for signal in signals_in(str(n) for n in run.data_vars)]
    columns = [str(n) for n in run.data_vars if run[n].dims == ("tick",)]
    panels = [*signals, *["residual"] * bool(signals), *["cells"] * ("cells_reported" in run)]
    if not what:
        raise ConfigError(f"--what: empty: choose {', '.join(panels)}")
    for i, panel in enumerate(what):
        if panel in what[:i]:
            raise ConfigError(f"--what {','.join(what)}: {panel} twice: give it once")
        if panel not in panels and panel not in columns:
            known = panels if panel not in columns else columns
            raise ConfigError(
                f"--what {panel}: {name} has none{remedy(panel, known)}, or a column of hil export"
            )


@contextlib.contextmanager
def _styled(style: str) -> Iterator[None]:
    """The style of a journal or of a file, with embedded fonts and Matplotlib's own text."""
    chain: list[str | Figures] = [OURS]
    if style in JOURNALS:
        package = find_spec("scienceplots")
        if package is None or package.origin is None:
            raise missing_extra(f"--style {style}", "figures")
        files = Path(package.origin).parent / "styles"  # its import warns: it registers them all
        names = ("science", f"journals/{style}", "misc/no-latex")
        chain = [str(files / f"{name}.mplstyle") for name in names]
    elif style:
        chain = [style]
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(matplotlib.style.context([*chain, EMBEDDED]))
        except (OSError, ValueError) as error:
            if Path(style).is_file():
                what = f"not a style of Matplotlib: {one_line(str(error))}"
                raise ConfigError(f"--style {style}: {what}") from None
            known = [*JOURNALS, *matplotlib.style.available]
            raise ConfigError(
                f"--style {style}: no such style or file{remedy(style, known)}"
            ) from None
        yield


def _signal(run: xr.Dataset, name: str) -> Signal | None:
    """The signal of this name; the first one for `residual`; None if there is none."""
    signals = signals_in(str(n) for n in run.data_vars)
    return next((s for s in signals if name in (s.name, "residual")), None)


def _curves(run: xr.Dataset, what: str) -> tuple[str, list[tuple[str, str, str, np.ndarray]]]:
    """Label of the axis, and label, colour, line and values of its curves, the main one first."""
    signal = _signal(run, what)
    if what == "cells":
        if DUTY in run:
            return "sum of duties", [("sum of duties", CELL, "-", run[DUTY].values.sum(axis=1))]
        on = known_before(run.cells_reported.values) == 1
        return "cells on", [("cells on", CELL, "-", on.sum(axis=1))]
    if signal is None:
        unit = run[what].attrs["units"].replace("degC", "°C")
        return f"{what} [{unit}]", [(what, MEASURED, "-", run[what].values)]
    measured, model = run[signal.measured].values, run[signal.model].values
    unit = units(signal.suffix)
    if what == "residual":
        return f"residual [{unit}]", [("measured − simulated", RESIDUAL, "-", measured - model)]
    curves = [("measured", MEASURED, "-", measured), ("simulated", MODEL, "-", model)]
    if signal.reference is not None and np.isfinite(run[signal.reference].values).any():
        curves.append(("set point", REFERENCE, "--", run[signal.reference].values))
    return f"{signal.name} [{unit}]", curves


def _draw(axis: Axes, what: str, run: xr.Dataset) -> None:
    """One run."""
    if what == "cells":
        draw_cells(axis, run)
        return
    label, curves = _curves(run, what)
    if what == "residual":
        axis.axhline(0.0, color="0.7", lw=0.6)
    for name, colour, line, values in curves:
        _plot(axis, run, values, line, colour, name)
    axis.set_ylabel(label)


def _plot(
    axis: Axes, run: xr.Dataset, values: np.ndarray, line: str, colour: str, label: str
) -> None:
    """A curve through the readings; between those of a slow device there are none."""
    at = np.isfinite(values)
    axis.plot(*decimated(run.t_s.values[at], values[at]), line, color=colour, label=label)


def _lay_over(axis: Axes, what: str, runs: Sequence[xr.Dataset], names: Sequence[str]) -> None:
    """The main curve of every run, and the set point of the first."""
    for i, (run, name) in enumerate(zip(runs, names, strict=True)):
        label, curves = _curves(run, what)
        colour = COLOURS[i % len(COLOURS)]
        _plot(axis, run, curves[0][3], "-", colour, name)
        for other, _, line, values in curves[1:]:
            if other == "set point" and i == 0:
                _plot(axis, run, values, line, REFERENCE, other)
        axis.set_ylabel(label)
