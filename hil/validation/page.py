"""Results of `hil report --validate`: lines for the terminal, JSON and one self-contained page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hil.config.values import Figures
from hil.errors import writing
from hil.identification import parameters
from hil.identification.identifiability import short
from hil.pages.html import embedded, rendered
from hil.pages.style import (
    CELL,
    FAULT,
    MEASURED,
    MODEL,
    RESIDUAL,
    decimated,
    mark_simulated,
    styled_figure,
)
from hil.platform.whole_files import write_whole
from hil.record.summary import plain
from hil.validation.band import Z_95
from hil.validation.figures import Figure as Interval
from hil.validation.validate import Criterion, Validated, drawn_band

NAMES = {
    "rms_max_N": ("RMS", "N", 1.0),
    "rms_max_m": ("RMS", "m", 1.0),
    "nrmse_max": ("NRMSE", "%", 100.0),
    "vaf_min": ("VAF", "%", 100.0),
    "coverage_min": ("coverage of the 95 % band", "%", 100.0),
    "peak_timing_max_s": ("timing of ripple peaks, RMS", "ms", 1e3),
}
BASES = {
    "recorded": "the recording's own configuration",
    "file": "a file, older than the run by its time stamp alone",
    "none": "nowhere",
}


def as_dict(runs: Sequence[Validated], page: Path) -> dict[str, object]:
    """The results for `--json`."""
    return dict(plain({"page": str(page), "accepted": all(v.accepted for v in runs),
                       "runs": [_one(v) for v in runs]}))  # fmt: skip


def _one(v: Validated) -> Figures:
    entry = _with_keys_of_force(v)
    if v.data.unit == "N":
        return entry
    entry["comparisons"] = [_in_metres(one) for one in entry["comparisons"]]
    return _in_metres(entry)


def _in_metres(table: dict[str, object]) -> dict[str, object]:
    return {
        key.removesuffix("_N") + "_m" if key.endswith("_N") else key: value
        for key, value in table.items()
    }


def _with_keys_of_force(v: Validated) -> Figures:
    figures, ripple = v.figures, v.ripple
    return {
        "run": str(v.recorded.path),
        "created_utc": v.recorded.run.attrs["created_utc"],
        "simulated": v.recorded.simulated,
        "accepted": v.accepted,
        "verdict": v.verdict(),
        "acceptance": {
            "written_in": v.basis,
            "sha256": v.acceptance_sha256,
            "criteria": [asdict(c) for c in v.criteria],
        },
        **{key: asdict(getattr(figures, key)) for key in ("rms_N", "nrmse", "vaf", "bias_N")},
        "n_readings": len(v.data.rows),
        "n_effective": figures.n_effective,
        "coverage": v.coverage,
        "coverage_of_recruitment": v.coverage_drawn,
        "ripple": None
        if ripple is None
        else {
            "peaks": ripple.n_peaks,
            "paired": len(ripple.late_s),
            "rms_s": ripple.rms_s,
            "rms_upper_s": ripple.upper_s(),
            "mean_s": float(ripple.late_s.mean()) if len(ripple.late_s) else None,
        },
        "comparisons": [
            {
                "what": c.what,
                "t_s": c.t_s,
                "S_N": c.simulated_N,
                "D_N": c.measured_N,
                "E_N": c.error_N,
                "u_input_N": c.u_input_N,
                "u_D_N": c.u_D_N,
                "u_num_N": c.u_num_N,
                "u_val_N": c.u_val_N,
                "error_told_from_uncertainty": c.resolved,
            }
            for c in v.comparisons
        ],
        "u_input_alone_N": dict(v.alone_N),
        "notes": list(v.notes),
    }


def as_text(runs: Sequence[Validated]) -> str:
    """A few lines a run."""
    lines = []
    for v in runs:
        f = v.figures
        lines += [
            f"{v.recorded.path}: {v.verdict()}",
            f"  RMS {_range(f.rms_N, 1e3, _places(v))} m{v.data.unit}, "
            f"NRMSE {_range(f.nrmse, 100, 2)} %, "
            f"VAF {_range(f.vaf, 100, 3)} %",
            f"  {100 * v.coverage:.1f} % of the readings within the 95 % band; "
            f"{len(v.data.rows)} readings are worth {f.n_effective:.0f} independent ones",
        ]
        if v.recruitment is not None:
            lines.append(
                f"  {100 * v.coverage_drawn:.1f} % within the band of recruitment "
                f"({v.recruitment.n_messages} broadcasts drawn again)"
            )
        lines += [f"  {_criterion(c)}" for c in v.criteria]
        lines += [f"  note: {note}" for note in v.notes]
    if len({v.recorded.simulated for v in runs}) > 1:
        lines.append("simulated and measured runs are mixed: their figures are not comparable")
    return "\n".join(lines)


def _places(v: Validated) -> int:
    """Places of mN or mm in the terminal."""
    return 1 if v.data.unit == "N" else 3


def _range(figure: Interval, scale: float, places: int) -> str:
    value, low, high = (scale * x for x in (figure.value, figure.low, figure.high))
    return f"{value:.{places}f} ({low:.{places}f} .. {high:.{places}f})"


def _criterion(c: Criterion) -> str:
    name, unit, scale = NAMES[c.key]
    sign = ">=" if c.key.endswith("_min") else "<="
    mark = "kept" if c.met else "NOT KEPT"
    worst = "" if c.worst == c.value else f", with its interval {scale * c.worst:.4g}"
    return (
        f"{name}: {scale * c.value:.4g}{worst} {unit}, asked {sign} {scale * c.limit:.4g}: {mark}"
    )


def draw(v: Validated) -> Figure:
    """Figure: measured and simulated force with band, error, timing of the peaks, E and u_val."""
    data = v.data
    panels = 3 + (v.recruitment is not None)
    heights = [2.6, 1.7, *([2.2] if v.recruitment is not None else []), 2.0]
    with styled_figure(9.0, 1.5 + sum(heights)) as figure:
        grid = figure.add_gridspec(panels, 2, height_ratios=heights)
        force = figure.add_subplot(grid[0, :])
        error = figure.add_subplot(grid[1, :], sharex=force)
        _force(force, v)
        _error(error, v)
        if v.recruitment is not None:
            _recruitment(figure.add_subplot(grid[2, :], sharex=force), v)
        _peaks(figure.add_subplot(grid[-1, 0]), v)
        _comparisons(figure.add_subplot(grid[-1, 1]), v)
        force.set_xlim(data.t_s[0], data.t_s[-1])
        figure.align_ylabels([force, error])
        figure.suptitle(
            f"{v.recorded.rig}: {v.recorded.run.attrs['experiment_name']}", parse_math=False,
            x=0.01, ha="left", fontweight="bold", fontsize=11,
        )  # fmt: skip
        if v.recorded.simulated:
            mark_simulated(figure, force)
    return figure


def _force(axis: Axes, v: Validated) -> None:
    t_s, simulated_N = v.data.t_s, v.uncertainty.simulated_N
    wide = Z_95 * v.uncertainty.u_val_N
    axis.fill_between(t_s, simulated_N - wide, simulated_N + wide, color=MODEL, alpha=0.18, lw=0,
                      label="95 % band of parameters and channel")  # fmt: skip
    axis.plot(*decimated(t_s, simulated_N), color=MODEL, lw=1.2, label="simulated")
    axis.plot(*decimated(t_s, v.data.measured), color=MEASURED, lw=0.8, label="measured")
    axis.set_ylabel(f"{v.data.quantity} [{v.data.unit}]")
    axis.margins(y=0.18)
    axis.legend(frameon=False, ncols=3, loc="upper right", fontsize=8)


def _error(axis: Axes, v: Validated) -> None:
    t_s = v.data.t_s
    error_mN = 1e3 * (v.data.measured - v.uncertainty.simulated_N)
    noise = Z_95 * 1e3 * v.uncertainty.u_D_N
    axis.fill_between(t_s, -noise, noise, color="0.88", lw=0, label="95 % of the channel alone")
    axis.plot(*decimated(t_s, error_mN), color=RESIDUAL, lw=0.6)
    axis.set(ylabel=f"measured −\nsimulated [m{v.data.unit}]", xlabel="time [s]")
    most = 1.5 * float(np.abs(error_mN).max())
    axis.set_ylim(-most, most)
    axis.legend(frameon=False, loc="upper right", fontsize=8)


def _recruitment(axis: Axes, v: Validated) -> None:
    assert v.recruitment is not None
    t_s, drawn = v.data.t_s, v.recruitment
    low, high = drawn_band(drawn, v.uncertainty)
    axis.fill_between(t_s, low, high, color=CELL, alpha=0.2, lw=0,
                      label="and of parameters and channel")  # fmt: skip
    axis.fill_between(t_s, drawn.low_N, drawn.high_N, color=CELL, alpha=0.35, lw=0,
                      label="95 % of recruitment")  # fmt: skip
    axis.plot(*decimated(t_s, drawn.mean_N), color=CELL, lw=1.2, label="mean of all draws")
    axis.plot(*decimated(t_s, v.data.measured), color=MEASURED, lw=0.8, label="measured")
    axis.set(ylabel="force with cells\ndrawn again [N]", xlabel="time [s]")
    axis.margins(y=0.22)
    axis.legend(frameon=False, ncols=4, loc="upper right", fontsize=8)


def _peaks(axis: Axes, v: Validated) -> None:
    ripple = v.ripple
    axis.set_title("when ripple peaks come", fontsize=9, color="0.3")
    if ripple is None or not len(ripple.late_s):
        axis.text(0.5, 0.5, "no ripple above the noise", ha="center", va="center", color="0.4",
                  transform=axis.transAxes)  # fmt: skip
        axis.set_axis_off()
        return
    axis.axhline(0.0, color="0.7", lw=0.8)
    axis.plot(ripple.t_s, 1e3 * ripple.late_s, ".", color=RESIDUAL, ms=3)
    axis.set(ylabel="measured later\nby [ms]", xlabel="time [s]")
    text = f"{len(ripple.late_s)} of {ripple.n_peaks} paired, RMS {1e3 * ripple.rms_s:.3g} ms"
    axis.text(0.99, 0.97, text, ha="right", va="top", transform=axis.transAxes, fontsize=8)
    axis.margins(y=0.3)


def _comparisons(axis: Axes, v: Validated) -> None:
    axis.set_title("E = S − D with ±2 u_val", fontsize=9, color="0.3")
    axis.axvline(0.0, color="0.7", lw=0.8)
    for i, c in enumerate(v.comparisons):
        color = FAULT if c.resolved else MEASURED
        axis.errorbar(1e3 * c.error_N, -i, xerr=2e3 * c.u_val_N, fmt="o", ms=4, color=color,
                      capsize=3, lw=1.0)  # fmt: skip
    axis.set_yticks(-np.arange(len(v.comparisons)), [_what(c) for c in v.comparisons], fontsize=8)
    axis.set_ylim(-len(v.comparisons) + 0.4, 0.6)
    axis.set_xlabel(f"[m{v.data.unit}]")


def _what(c: Any) -> str:
    return f"{c.what}, {c.t_s:.3g} s" if c.what == "settled" else c.what


def write_page(runs: Sequence[Validated], path: Path) -> None:
    """Write the page as one HTML file; ConfigError if it cannot be written."""
    text = rendered(
        "validation.html",
        title=f"{runs[0].recorded.rig}: validation",
        simulated=all(v.recorded.simulated for v in runs),
        mixed=len({v.recorded.simulated for v in runs}) > 1,
        trend=embedded(_trend(runs)) if len(runs) > 1 else "",
        runs=[_run(v) for v in runs],
    )
    with writing(path.parent, ": choose another --out"):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text)


def _trend(runs: Sequence[Validated]) -> Figure:
    """RMS and VAF of every run with their intervals, the earliest first."""
    with styled_figure(9.0, 2.4) as figure:
        left, right = figure.subplots(1, 2)
        at = np.arange(1, len(runs) + 1)
        for axis, label, scale, figures in (
            (left, f"RMS [m{runs[0].data.unit}]", 1e3, [v.figures.rms_N for v in runs]),
            (right, "VAF [%]", 100.0, [v.figures.vaf for v in runs]),
        ):
            value = np.array([f.value for f in figures]) * scale
            low = value - scale * np.array([f.low for f in figures])
            high = scale * np.array([f.high for f in figures]) - value
            axis.errorbar(at, value, yerr=[low, high], fmt="o", color=MEASURED, capsize=4, ms=5)
            axis.set_ylabel(label)
            axis.set_xticks(at, [v.recorded.path.stem for v in runs], fontsize=8)
            axis.set_xlim(0.5, len(runs) + 0.5)
        return figure


def _run(v: Validated) -> dict[str, object]:
    attrs, f, known = v.recorded.run.attrs, v.figures, v.known
    sigma = np.sqrt(np.diag(known.covariance))
    values = dict(zip(known.keys, _values(v), strict=True))
    return {
        "name": attrs["experiment_name"],
        "file": v.recorded.data.name,
        "created": attrs["created_utc"],
        "day": str(attrs["created_utc"])[:16].replace("T", " "),
        "seed": attrs["seed"],
        "outcome": attrs["outcome"],
        "sha256": v.data.sha256[:16],
        "simulated": v.recorded.simulated,
        "accepted": v.accepted,
        "verdict": f"{v.verdict()[0].upper()}{v.verdict()[1:]}",
        "rms": _range(f.rms_N, 1e3, _places(v)),
        "unit": v.data.unit,
        "quantity": v.data.quantity,
        "nrmse": _range(f.nrmse, 100, 2),
        "vaf": _range(f.vaf, 100, 2),
        "coverage": f"{100 * v.coverage:.1f} %",
        "criteria": [_row(c) for c in v.criteria],
        "basis": BASES[v.basis],
        "acceptance": v.acceptance_sha256[:16],
        "png": embedded(draw(v)),
        "figures": _figure_rows(v),
        "comparisons": [
            (
                _what(c),
                f"{c.simulated_N:.4f}",
                f"{c.measured_N:.4f}",
                f"{1e3 * c.error_N:+.2f}",
                f"{1e3 * c.u_input_N:.2f}",
                f"{1e3 * c.u_D_N:.2f}",
                f"{1e3 * c.u_num_N:.1g}",
                f"{1e3 * c.u_val_N:.2f}",
                f"{abs(c.error_N) / c.u_val_N:.2f}" if c.u_val_N > 0.0 else "–",
                "distinguishable from the uncertainty" if c.resolved else "within the uncertainty",
            )
            for c in v.comparisons
        ],
        "parameters": [
            (
                short(key),
                f"{values[key]:.6g}",
                f"{100 * s:.3g} %",
                f"{1e3 * v.alone_N[key]:.3g} m{v.data.unit}",
            )
            for key, s in zip(known.keys, sigma, strict=True)
        ],
        "records": [
            f"Transducer: {record.record.article.name}, serial {record.record.article.serial}, "
            f"{record.record.status}, {record.record.hash[:19]}."
            for record in v.recorded.config.records.values()
        ],
        "notes": [f"{note[0].upper()}{note[1:]}." for note in v.notes],
    }


def _values(v: Validated) -> list[float]:
    tables = parameters.tables_of(v.recorded.model)
    return [parameters.get(tables, key) for key in v.known.keys]


def _row(c: Criterion) -> tuple[str, str, str, str, bool]:
    name, unit, scale = NAMES[c.key]
    sign = "≥" if c.key.endswith("_min") else "≤"
    worst = "–" if c.worst == c.value else f"{scale * c.worst:.4g} {unit}"
    limit, value = (f"{scale * x:.4g} {unit}" for x in (c.limit, c.value))
    return name, f"{sign} {limit}", value, worst, c.met


def _figure_rows(v: Validated) -> list[tuple[str, str, str]]:
    f = v.figures

    def row(
        name: str, figure: Interval, scale: float, unit: str, places: int
    ) -> tuple[str, str, str]:
        ends = f"{scale * figure.low:.{places}f} .. {scale * figure.high:.{places}f}"
        return name, f"{scale * figure.value:.{places}f} {unit}", ends

    rows = [
        row("RMS of measured − simulated", f.rms_N, 1e3, f"m{v.data.unit}", _places(v) + 1),
        row("NRMSE (of the measured range)", f.nrmse, 100.0, "%", 3),
        row("VAF", f.vaf, 100.0, "%", 3),
        row("mean of measured − simulated", f.bias_N, 1e3, f"m{v.data.unit}", _places(v) + 1),
        ("readings within the 95 % band", f"{100 * v.coverage:.1f} %", ""),
    ]
    if v.recruitment is not None:
        rows.append(("within the band of recruitment", f"{100 * v.coverage_drawn:.1f} %", ""))
    if v.ripple is not None and len(v.ripple.late_s):
        rows.append(
            (
                f"timing of ripple peaks, RMS ({len(v.ripple.late_s)} of {v.ripple.n_peaks})",
                f"{1e3 * v.ripple.rms_s:.2f} ms",
                f"up to {1e3 * v.ripple.upper_s():.2f}",
            )
        )
    rows.append(
        ("independent readings", f"{f.n_effective:.0f} of {len(v.data.rows)}",
         f"blocks of {f.block}")
    )  # fmt: skip
    return rows
