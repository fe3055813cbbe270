"""The report of a recording, a figure and a page: signals, residual, cells, timing, events."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import xarray as xr
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from hil.config.values import Attributes, Figures
from hil.errors import writing
from hil.experiment.registry import controllers_of, loaded, named
from hil.loop.channels import Signal, signals_in
from hil.loop.failed_cells import failure_lines
from hil.loop.frame import units
from hil.loop.guard import CAUSES, names_of
from hil.pages.html import embedded, rendered
from hil.pages.section import Section
from hil.pages.style import (
    CELL,
    FAULT,
    MEASURED,
    MODEL,
    POINTS_MAX,
    REFERENCE,
    RESIDUAL,
    decimated,
    mark_imported,
    mark_simulated,
    styled_figure,
)
from hil.pages.vendored import plotting
from hil.platform.whole_files import write_whole
from hil.record.overview import KEY, view_of
from hil.record.read import calibrations_of, experiment_of
from hil.record.summary import (
    calibration_lines,
    expectation_lines,
    fit_text,
    summarise,
    untold_lines,
)
from hil.reports.cells import draw_cells
from hil.reports.plots import marks, plots_json
from hil.validation.band import Band, band_of, noise_alone

OUTPUTS_APART = 6  # more outputs share one panel
LEAST_P = 0.001  # a smaller probability says no more
LONG = "the model would be simulated over all rows at once"
WIDE = 5.0  # band over largest residual, above which the residual's panel does not show all of it


def write_report(
    path: Path, out: Path | None = None, *, progress: bool = False
) -> tuple[Path, Path]:
    """Write figure (PNG) and page (HTML) beside the recording or into `out`; returns their paths.

    A long recording is drawn by its overview (`hil.record.overview`), and the page says so.

    Raises
    ------
    ConfigError
        The file is not a recording, or the folder cannot be written.
    """
    run = view_of(path, progress=progress)
    if run.attrs.get("summary", "{}") == "{}":  # the run was cut off before it wrote a summary
        period_s = experiment_of(run)["loop"]["period_s"]
        run.attrs["summary"] = json.dumps(summarise(path, period_s, run.attrs["clock"]))
    folder = path.parent if out is None else out
    png_path = folder / f"{path.stem}.png"
    html_path = folder / f"{path.stem}.html"
    band = band_of(path, run) if KEY not in run.attrs else noise_alone(run, LONG)
    png = embedded(draw(run, band))  # drawn once: that takes longer than all else
    sections = sections_of(run)
    text = page(run, png, path, band, sections)
    with writing(folder, ": choose another --out"):
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(png_path, base64.b64decode(png))
        for section in sections:
            for ending, content in section.files.items():
                write_whole(folder / f"{path.stem}{ending}", content)
        write_whole(html_path, text)
    return png_path, html_path


def sections_of(run: xr.Dataset) -> list[Section]:
    """Sections that the run's system and controller add to the page."""
    if KEY in run.attrs:  # they need every row
        return []
    tables = experiment_of(run)
    system = named(tables.get("model", {}).get("kind"))
    if system is None:  # a plug-in class, or a package that is not installed
        return []
    controller = controllers_of(system).get(tables["controller"]["kind"])
    added = [system.sections, None if controller is None else controller.sections]
    return [section for lazy in added if lazy is not None for section in loaded(lazy)(run)]


def draw(run: xr.Dataset, band: Band) -> Figure:
    """Figure: signals and band, residual, cells, and lateness on the real clock."""
    panels = _panels(run, band)
    heights = [height for height, _ in panels]
    with styled_figure(9.0, 1.6 + 1.0 * sum(heights)) as figure:
        axes = figure.subplots(len(heights), 1, sharex=True, height_ratios=heights, squeeze=False)
        axes = axes[:, 0]
        for axis, (_, draw_panel) in zip(axes, panels, strict=True):
            draw_panel(axis, run)
        axes[-1].set_xlabel("time [s]")
        for axis in axes:
            _mark_faults(axis, run)
        figure.align_ylabels(axes)
        title = f"{run.attrs['experiment_file'].split('/')[0]}: {run.attrs['experiment_name']}"
        figure.suptitle(title, parse_math=False, x=0.01, ha="left", fontweight="bold", fontsize=11)
        if run.attrs.get("simulated"):
            mark_simulated(figure, axes[0])
        if "imported" in run.attrs:
            mark_imported(figure)
    return figure


def _panels(run: xr.Dataset, band: Band) -> list[tuple[float, Callable[[Axes, xr.Dataset], None]]]:
    """Height and draw function of every panel: signals with their twins, commands, lateness."""
    panels: list[tuple[float, Callable[[Axes, xr.Dataset], None]]] = []
    for signal in signals_in(str(name) for name in run.data_vars):
        if signal.name == "force":
            panels += [
                (3.2, partial(_draw_forces, band=band)),
                (1.7, partial(_draw_residual, band=band)),
            ]
        else:
            of_signal = band if band.column == signal.measured else None
            panels.append((2.2, partial(_draw_signal, signal=signal, band=of_signal)))
            if signal.suffix == "_m":
                panels.append((1.3, partial(_draw_difference, signal=signal, band=of_signal)))
    outputs = [str(n) for n in run.data_vars if str(n).partition("_commanded")[1]]
    outputs = [name for name in outputs if run[name].ndim == 1]
    for unit in dict.fromkeys(map(units, outputs)):
        alike = [name for name in outputs if units(name) == unit]
        if len(alike) > OUTPUTS_APART:
            panels.append((0.25 * len(alike), partial(_draw_outputs, names=alike)))
        else:
            panels += [(1.3, partial(_draw_output, name=name)) for name in alike]
    if _tensions(run):
        panels.append((1.6, _draw_tensions))
    if "cells_reported" in run:
        panels.append((1.3, draw_cells))
    if run.attrs.get("clock") == "real":
        panels.append((1.1, _draw_lateness))
    return panels


def _draw_forces(axis: Axes, run: xr.Dataset, band: Band) -> None:
    t_s = run.t_s.values
    force = _figures(run).get("force", {})
    _fill_band(axis, run, band, "force_model_N")
    measured = _readings(t_s, run.force_measured_N.values)
    axis.plot(*measured, color=MEASURED, lw=0.9, label="measured")
    axis.plot(
        *decimated(t_s, run.force_model_N.values), color=MODEL, lw=1.3, label="simulated (twin)"
    )
    if "force_reference_N" in run and np.isfinite(run.force_reference_N.values).any():
        axis.plot(
            *decimated(t_s, run.force_reference_N.values),
            color=REFERENCE,
            lw=1.0,
            ls="--",
            label="set point",
        )
    axis.set_ylabel("force [N]")
    if force.get("vaf") is not None:
        axis.set_title(
            f"{fit_text(force)}, RMS {1000 * force['residual_rms_N']:.1f} mN{_inside(run, band)}",
            fontsize=9,
            color="0.3",
            loc="left",
            pad=22.0,  # above the legend
        )
    _legend_above(axis)
    axis.margins(x=0.01, y=0.12)
    _draw_levels(axis, json.loads(run.attrs.get("force_levels_N", "[]")))


def _readings(t_s: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A decimated curve through the readings; most rows of a slow device have none."""
    known = np.isfinite(values)
    return decimated(t_s[known], values[known])


def _draw_levels(axis: Axes, levels_N: Sequence[float]) -> None:
    """Lines at the forces that cells on or off can hold, as far as the axis reaches."""
    low_N, high_N = axis.get_ylim()
    across = axis.get_yaxis_transform()
    shown_N = [level_N for level_N in levels_N if low_N < level_N < high_N]
    for level_N in shown_N:
        line = Line2D([0.0, 1.0], [level_N] * 2, transform=across, color="0.82", lw=0.7, zorder=0.5)
        axis.add_artist(line)
    if shown_N:
        axis.text(0.998, shown_N[-1], "attainable levels", transform=across, ha="right",
                  va="bottom", fontsize=7, color="0.5")  # fmt: skip


def _fill_band(axis: Axes, run: xr.Dataset, band: Band, model: str) -> None:
    """Draw the band about the twin; the noise alone only in the residual's panel."""
    if band.without or not band.column:
        return
    some = slice(None, None, max(1, len(band.t_s) // POINTS_MAX))
    t_s, half = band.t_s[some], band.half_width[some]
    twin = run[model].values[np.searchsorted(run.t_s.values, t_s - 1e-9)]
    axis.fill_between(t_s, twin - half, twin + half, color=MODEL, alpha=0.16, lw=0, label=band.name)


def _inside(run: xr.Dataset, band: Band) -> str:
    if band.without or not band.column:
        return ""
    return f"; {100.0 * band.share_inside(run):.1f} % of the readings in the band"


def _legend_above(axis: Axes) -> None:
    """A legend that covers no curve."""
    axis.legend(
        frameon=False, ncols=4, loc="lower right", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.0,
        borderpad=0.2,
    )  # fmt: skip


def _draw_signal(axis: Axes, run: xr.Dataset, signal: Signal, band: Band | None) -> None:
    t_s = run.t_s.values
    if band is not None:
        _fill_band(axis, run, band, signal.model)
    curves = [
        (signal.measured, MEASURED, "-", "measured"),
        (signal.model, MODEL, "-", "simulated (twin)"),
    ]
    if signal.reference is not None:
        curves.append((signal.reference, REFERENCE, "--", "set point"))
    for name, color, style, label in curves:
        curve_of = _readings if name == signal.measured else decimated
        axis.plot(*curve_of(t_s, run[name].values), color=color, lw=1.0, ls=style, label=label)
    axis.set_ylabel(f"{signal.name} [{units(signal.suffix)}]")
    _legend_above(axis)
    axis.margins(x=0.01, y=0.15)


def _draw_difference(axis: Axes, run: xr.Dataset, signal: Signal, band: Band | None) -> None:
    difference_um = 1e6 * (run[signal.measured].values - run[signal.model].values)
    axis.axhline(0.0, color="0.7", lw=0.8)
    axis.plot(*_readings(run.t_s.values, difference_um), color=RESIDUAL, lw=0.7)
    if band is not None:
        _band_of_residual(axis, band, 1e6, "µm", difference_um)
    axis.set_ylabel("measured −\nsimulated [µm]")
    axis.margins(x=0.01)


def _tensions(run: xr.Dataset) -> list[str]:
    """Columns of the twin's muscles."""
    return [str(name) for name in run.data_vars if str(name).endswith(".tension_model_N")]


def _draw_tensions(axis: Axes, run: xr.Dataset) -> None:
    for name in _tensions(run):
        label = name.partition(".")[0]
        axis.plot(*decimated(run.t_s.values, run[name].values), lw=1.0, label=label)
    axis.set_ylabel("tendons,\nsimulated [N]")
    axis.legend(frameon=False, ncols=9, loc="upper left", fontsize=8)
    axis.margins(x=0.01, y=0.3)


def _draw_output(axis: Axes, run: xr.Dataset, name: str) -> None:
    axis.plot(*decimated(run.t_s.values, run[name].values), color=CELL, lw=0.9)
    axis.set_ylabel(f"{name.partition('_commanded')[0]}\n[{units(name)}]")
    axis.margins(x=0.01, y=0.12)


def _draw_outputs(axis: Axes, run: xr.Dataset, names: list[str]) -> None:
    """Draw many outputs as rows of an image; dark means large."""
    t_s, step = run.t_s.values, max(1, len(run.t_s) // (POINTS_MAX // 4))
    rows = np.array([run[name].values[::step] for name in names])
    edges = (float(t_s[0]), float(t_s[-1]), len(names) - 0.5, -0.5)
    image = axis.imshow(rows, aspect="auto", interpolation="nearest", cmap="cividis_r",
                        extent=edges)  # fmt: skip
    axis.set_yticks(range(len(names)), [name.partition("_commanded")[0] for name in names],
                    fontsize=7)  # fmt: skip
    axis.figure.colorbar(image, ax=axis, label=f"commanded [{units(names[0])}]", fraction=0.04)


def _draw_residual(axis: Axes, run: xr.Dataset, band: Band) -> None:
    residual_mN = 1000.0 * (run.force_measured_N.values - run.force_model_N.values)
    axis.axhline(0.0, color="0.7", lw=0.8)
    axis.plot(*_readings(run.t_s.values, residual_mN), color=RESIDUAL, lw=0.7)
    axis.set_ylabel("measured −\nsimulated [mN]")
    if band.column == "force_measured_N":
        _band_of_residual(axis, band, 1e3, "mN", residual_mN)


def _band_of_residual(
    axis: Axes, band: Band, scale: float, unit: str, residual: np.ndarray
) -> None:
    """Draw the band about zero and the noise alone; a much wider band leaves the panel."""
    some = slice(None, None, max(1, len(band.t_s) // POINTS_MAX))
    half, noise = scale * band.half_width[some], scale * band.noise
    widest = float(half.max(initial=0.0))
    most = float(np.nanmax(np.abs(residual), initial=0.0))
    if not band.without:
        label = f"{band.name}, up to ±{widest:.3g} {unit}"
        axis.fill_between(band.t_s[some], -half, half, color=MODEL, alpha=0.16, lw=0, label=label)
    if noise > 0.0:
        label = f"noise alone, ±{noise:.2g} {unit}"
        axis.axhspan(-noise, noise, color="0.55", alpha=0.45, lw=0, label=label, zorder=0.5)
    if widest > WIDE * most:
        top = 1.6 * max(most, noise)
        axis.set_ylim(-top, top)
    _legend_above(axis)


def _draw_lateness(axis: Axes, run: xr.Dataset) -> None:
    t_s, timing = run.t_s.values, _figures(run).get("timing", {})
    axis.plot(*decimated(t_s, 1e6 * run.late_s.values), color="0.35", lw=0.6)
    period_s = experiment_of(run)["loop"]["period_s"]
    missed_s = t_s[1:][np.diff(t_s) > 1.5 * period_s]
    if len(missed_s) and KEY not in run.attrs:
        axis.plot(missed_s, np.zeros(len(missed_s)), "|", color=FAULT, ms=7, clip_on=False,
                  label="periods missed before")  # fmt: skip
        _legend_above(axis)
    axis.set_ylabel("late [µs]")
    axis.set_title(str(timing.get("verdict", "")), fontsize=9, color="0.3", loc="left")


def _mark_faults(axis: Axes, run: xr.Dataset) -> None:
    tripped = np.flatnonzero(run.fault_bits.values)
    if len(tripped):
        t_s = float(run.t_s.values[tripped[0]])
        axis.axvline(t_s, color=FAULT, lw=1.2)
        place = axis.get_subplotspec()
        if place is not None and place.is_first_row():
            names = ", ".join(names_of(int(run.fault_bits.values[tripped[0]])))
            axis.annotate(
                f"tripped: {names}",
                (t_s, 0.02),
                xycoords=("data", "axes fraction"),
                xytext=(4, 0),
                textcoords="offset points",
                color=FAULT,
            )


def _figures(run: xr.Dataset) -> Figures:
    return dict(json.loads(run.attrs.get("summary", "{}")))


def page(
    run: xr.Dataset, png: str, path: Path, band: Band, sections: Sequence[Section] = ()
) -> str:
    """The report as one HTML file; `png` is its figure as base64 text."""
    summary, attrs = _figures(run), run.attrs
    experiment = attrs["experiment"]
    return rendered(
        "run.html",
        title=f"{attrs['experiment_file'].split('/')[0]}: {attrs['experiment_name']}",
        simulated=bool(attrs.get("simulated")),
        file=path.name,
        created=attrs["created_utc"],
        clock=attrs["clock"],
        seed=attrs["seed"],
        outcome=attrs["outcome"],
        recalibrated=json.loads(attrs.get("recalibrated", "[]")),
        imported=_import_lines(json.loads(attrs.get("imported", "{}"))),
        faults=_causes(summary),
        failed_cells=failure_lines(summary.get("failed_cells", [])),
        expected=[
            (row["passed"], line)
            for row, line in zip(
                summary.get("expectations", []), expectation_lines(summary), strict=True
            )
        ],
        untold=untold_lines(summary),
        overview=_overview_text(run),
        png=png,
        curves=Markup(plots_json(run, band)),
        marks=[f"{m['t_s']:.3f} s: {m['text']}" for m in marks(run) if m["level"] == "warning"],
        vendored={key: Markup(text) for key, text in plotting().items()},
        sections=[(s, None if s.figure is None else embedded(s.figure)) for s in sections],
        signals=_signal_rows(summary.get("signals", {})),
        force=_force_rows(summary.get("force", {}), _band_rows(run, band))
        if "force_measured_N" in run
        else [],
        responses=[_response_row(r) for r in summary.get("responses", [])],
        clocks=_clock_rows(summary.get("clocks", {})) if _in_real_time(summary) else [],
        timing=[
            *_timing_rows(summary.get("timing", {})),
            *(_exchange_rows(summary.get("exchanges", {})) if _in_real_time(summary) else ()),
        ],
        events=[
            (f"{t:.3f} s", level, source, text)
            for t, level, source, text in zip(
                run.event_t_s.values,
                run.event_level.values,
                run.event_source.values,
                run.event_text.values,
                strict=True,
            )
        ],
        channels=_channel_rows(calibrations_of(path), _units_of(run)),
        flags=calibration_lines(summary.get("calibration", {})),
        records=_record_rows(calibrations_of(path, "records")),
        software=list(json.loads(attrs["software"]).items()),
        toml=experiment,
    )


def _overview_text(run: xr.Dataset) -> str:
    """What the page of a long run shows of it; empty for one that is drawn with all rows."""
    if KEY not in run.attrs:
        return ""
    return (
        f"drawn from {run.attrs[KEY]}; figures in tables are of all rows; no band of the model and "
        "no sections of the controller, which need all rows at once"
    )


def _import_lines(facts: Figures) -> list[str]:
    """Where an imported recording comes from: its files, their clocks, its columns."""
    lines = []
    for file in facts.get("files", []):
        clock = file["clock"]
        line = f"{file['file']} ({file['format']}, sha256 {file['sha256'][:12]}): {clock['method']}"
        if clock.get("pairs") is not None and clock["offset_s"]:
            line += f", offset {_number(clock['offset_s'], 's', digits=6)}"
        if clock.get("drift_ppm_standard_error") is not None:
            error = _number(clock["drift_ppm_standard_error"], "ppm", digits=2)
            line += f", drift {_number(clock['drift_ppm'], digits=3)} ± {error}"
        lines.append(line)
    for column in facts.get("columns", []):
        lines.append(
            f"{column['to']}: {column['column']} in {column['unit']}, {column['method']}; "
            f"{column['rows_without']} rows without a reading"
        )
    return lines


def _causes(summary: Figures) -> list[str]:
    """The causes of the trip; old recordings have only the name of the fault."""
    known = [f"{cause['t_s']:.3f} s: {cause['text']}" for cause in summary.get("causes", [])]
    return known or [
        f"{name}: {CAUSES.get(name, 'unknown to this version')}"
        for name in summary.get("first_fault", [])
    ]


def _number(value: float | None, unit: str = "", scale: float = 1.0, digits: int = 4) -> str:
    return "–" if value is None else f"{scale * value:.{digits}g}{unit and ' ' + unit}"


def _in_real_time(summary: Figures) -> bool:
    """Whether clocks ran; on a virtual clock nothing is late, and answers take no time."""
    return bool(summary.get("timing", {}).get("clock") != "virtual")


def _p(value: float | None) -> str:
    """A probability, without the digits that mean nothing."""
    if value is None:
        return "–"
    return f"p < {LEAST_P:g}" if value < LEAST_P else f"{value:.3g}"


def _duration(value_s: float | None) -> str:
    """A time with the unit that suits it, such as 14.8 ms."""
    if value_s is None or not np.isfinite(value_s):
        return "–"
    size = abs(value_s)
    for least_s, scale, unit in ((1.0, 1.0, "s"), (1e-3, 1e3, "ms")):
        if size >= least_s:
            return f"{scale * value_s:.3g} {unit}"
    return f"{1e6 * value_s:.3g} µs"


def _band_rows(run: xr.Dataset, band: Band) -> list[tuple[str, str]]:
    """The band and the noise alone; why there is only the noise."""
    if band.column != "force_measured_N":
        return []
    noise = ("noise alone, 95 %", f"±{_number(band.noise, 'mN', 1e3, 3)}")
    if band.without:
        return [noise, ("no band of the model", band.without)]
    widest = f"up to ±{_number(float(band.half_width.max()), 'mN', 1e3, 3)}"
    share = f"{100.0 * band.share_inside(run):.1f} % of the readings inside"
    return [(band.name, f"{widest}, {share}"), noise]


def _force_rows(force: Figures, band: list[tuple[str, str]]) -> list[tuple[str, str]]:
    if not force:
        return [("no readings", "–")]
    white = "only sensor noise" if force["residual_white"] else "more than sensor noise"
    rows = [
        ("RMS of measured − simulated", _number(force["residual_rms_N"], "mN", 1e3)),
        ("largest difference", _number(force["residual_max_N"], "mN", 1e3)),
        *band,
        (
            "NRMSE (of the measured range)",
            "–" if force.get("held") else _number(force["nrmse"], "%", 100.0),
        ),
        ("VAF", _vaf(force)),
        ("residual is", white),
        ("Ljung-Box p (20 lags)", _p(force["p_uncorrelated"])),
        ("zero-mean p", _p(force["p_zero_mean"])),
    ]
    if "tracking_rms_N" in force:
        rows.append(("RMS of measured − reference", _number(force["tracking_rms_N"], "N")))
    return rows


def _vaf(figures: Figures) -> str:
    return "constant" if figures.get("held") else _number(figures.get("vaf"), "%", 100.0, 6)


def _signal_rows(signals: dict[str, Figures]) -> list[list[str]]:
    return [
        [
            name,
            _number(figures.get("residual_rms"), figures["units"]),
            _vaf(figures),
            _number(figures.get("tracking_rms"), figures["units"]),
        ]
        for name, figures in signals.items()
    ]


def _response_row(r: Figures) -> list[str]:
    return [
        _number(r["t_s"], "s"),
        str(r["cells_on"]),
        _number(r.get("measured_final_N"), "N"),
        _number(r.get("model_final_N"), "N"),
        _number(r.get("measured_settling_s"), "s", digits=3),
        _number(r.get("model_settling_s"), "s", digits=3),
        _number(r.get("measured_overshoot"), "%", 100.0, 3),
        _number(r.get("model_overshoot"), "%", 100.0, 3),
    ]


def _timing_rows(timing: Figures) -> list[tuple[str, str]]:
    rows = [("verdict", str(timing.get("verdict", "the run did not end")))]
    for key, value in timing.items():
        if key.endswith("_s") and key != "started_monotonic_s":
            if value or _in_real_time({"timing": timing}):
                rows.append((key[:-2].replace("_", " "), _duration(value)))
        elif not key.endswith("_s") and key not in ("verdict", "clock", "kernel"):
            rows.append((key.replace("_", " "), str(value)))
    for key, value in timing.get("kernel", {}).items():
        in_s = key.endswith("_s")
        text = _duration(value) if in_s else _number(value)
        rows.append((f"kernel: {key.removesuffix('_s').replace('_', ' ')}", text))
    return rows


def _clock_rows(clocks: dict[str, Figures]) -> list[list[str]]:
    """Every device's clock against the loop's; omits devices with too few readings."""
    return [
        [
            name,
            _duration(clock["offset_s"]),
            f"{clock['drift_ppm']:.2f} ± {clock['drift_ppm_standard_error']:.2g} ppm",
            _duration(clock["residual_rms_s"]),
        ]
        for name, clock in clocks.items()
        if clock
    ]


def _exchange_rows(exchanges: dict[str, Figures]) -> list[tuple[str, str]]:
    """Round-trip times of the boards; old recordings have none."""
    rows = []
    for board, figures in exchanges.items():
        for key, value in figures.items():
            what = f"{board}: {key.removesuffix('_s').replace('_', ' ')}"
            text = _duration(value) if key.endswith("_s") else str(value)
            rows.append((what, text))
    return rows


def _units_of(run: xr.Dataset) -> dict[str, str]:
    """Units of the readings of every channel."""
    measured = [name for name in map(str, run.data_vars) if "_measured_" in name]
    return {name.partition("_measured_")[0]: run[name].attrs["units"] for name in measured}


def _channel_rows(
    calibrations: dict[str, Attributes], units_of: Mapping[str, str]
) -> list[list[str]]:
    """Channel, terminal, conversion of the raw reading to its units, and calibration."""
    return [
        [name, kept["terminal"], _meaning(kept, units_of.get(name, "1")), _calibration(kept)]
        for name, kept in calibrations.items()
    ]


def _record_rows(records: dict[str, Attributes]) -> list[list[str]]:
    """Tables of the configuration with the calibration records of their values."""
    return [
        [
            ", ".join(kept["tables"]),
            f"{kept['article']}, serial {kept['serial']}",
            f"{kept['record_id']}, {kept['status']}, {_until(kept)}",
        ]
        for kept in records.values()
    ]


def _until(kept: dict[str, object]) -> str:
    return f"{'EXPIRED on' if kept['expired'] else 'valid until'} {kept['valid_until']}"


def _meaning(kept: Attributes, unit: str) -> str:
    kind, raw_unit = kept.get("kind", "force"), kept.get("raw_unit", "V")
    if kind == "encoder":
        return f"{kept['counts_per_turn']} counts a turn"
    if "coefficients" in kept:
        slope, offset = kept["coefficients"][1] / kept["raw_per_ratio"], kept["raw_offset"]
    else:  # a recording of a version without calibration records
        slope, offset = kept.get("newtons_per_V", kept.get("units_per_V")), kept["zero_V"]
    per = f"{'N' if kind == 'force' else unit}/{raw_unit}".replace("mV/V", "(mV/V)")
    return f"{slope:g} {per}, zero at {offset:g} {raw_unit}"


def _calibration(kept: Attributes) -> str:
    if "record_id" not in kept:
        return "no record"
    until = _until(kept)
    facts = [kept["record_id"], kept["status"], until]
    if "uncertainty_N" in kept:  # of a force
        u_N = float(kept["uncertainty_N"])
        sigma = f"σ {1e3 * u_N:.0f} mN" if math.isfinite(u_N) else "no σ known"
        facts.insert(2, f"{sigma} at {kept['capacity_N']:g} N")
    return f"{kept['article']}, serial {kept['serial']}: {', '.join(facts)}"
