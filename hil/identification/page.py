"""The result of `hil identify` as text, JSON, a figure and a page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hil.config.values import Figures
from hil.errors import writing
from hil.identification.adequacy import COARSE_S, FALSE_ALARM, UNSEEN
from hil.identification.fit import UNSETTLED
from hil.identification.identifiability import short
from hil.identification.identify import Identified, Parameter
from hil.identification.runs import Recorded
from hil.pages.html import embedded, rendered
from hil.pages.style import MEASURED, MODEL, RESIDUAL, decimated, mark_simulated, styled_figure
from hil.platform.whole_files import write_whole
from hil.record.summary import plain

ZOOM_S = 0.6
GROWTH_SEEN = 3.0  # standard uncertainties from which a growth of the noise is reported
ALL_IN = "σ all in"
REMEDY = (
    "add the effect, or free parameters that are held at wrong values (--each mass_kg, "
    "--each cell, --free NAME)"
)
SOURCES = {
    "rest": "from the rest before the first cell goes on",
    "channel": "as stated for the channel",
    "residual": "unknown without the model",
}


def as_dict(recorded: Sequence[Recorded], model: Identified) -> Figures:
    """The result for `--json`."""
    adequacy, noise = model.adequacy, model.noise
    return dict(
        plain(
            {
                "runs": [str(r.path) for r in recorded],
                "simulated": any(r.simulated for r in recorded),
                "parameters": [
                    {
                        "name": p.key,
                        "start": p.start,
                        "value": p.value,
                        "interval_95": [p.low, p.high],
                        "fisher_95": list(p.fisher),
                        "bootstrap_95": None if p.resampled is None else list(p.resampled),
                        "relative_uncertainty": p.relative,
                        "relative_uncertainty_all_in": p.relative_combined,
                        "at_bound": p.at_bound,
                    }
                    for p in model.parameters
                ],
                "covariance": model.covariance,
                "held": model.held,
                "held_with_uncertainty": list(model.stated),
                "not_told_apart": [
                    {
                        "factors": weak.factors,
                        "change_N": weak.change_N,
                        "structural": weak.structural,
                        "text": weak.sentence(model.held),
                    }
                    for weak in model.weak
                ],
                "noise": {
                    "rms_N": noise.total_rms_N,
                    "ar": noise.ar,
                    "source": noise.source,
                    "lines_Hz": list(noise.lines_Hz),
                    "lines_rms_N": noise.lines_rms_N,
                    "growth_per_N": _growth_per_N(model),
                },
                "residual": {
                    "rms_N": model.fit.rms_N,
                    "settled": model.fit.settled,
                    "adequate": adequacy.adequate,
                    "false_alarm": FALSE_ALARM,
                    "tests": {test.name: test.p for test in adequacy.tests},
                    "text": adequacy.sentence(),
                },
            }
        )
    )


def as_text(model: Identified) -> str:
    """The result for the terminal."""
    names = [short(p.key) for p in model.parameters]
    wide = max(map(len, names))
    lines = [
        f"{'':{wide}}  {'was':>10}  {'is':>12}  {ALL_IN:>8}  95 % of the fit         bootstrap"
    ]
    for name, p in zip(names, model.parameters, strict=True):
        boot = "–" if p.resampled is None else _interval(p, p.resampled)
        bound = "  AT ITS BOUND" if p.at_bound else ""
        lines.append(
            f"{name:{wide}}  {p.start:>10.6g}  {_digits(p, p.value):>12}  "
            f"{100 * p.relative_combined:>6.2g} %  "
            f"{_interval(p, (p.low, p.high)):<22}  {boot}{bound}"
        )
    if model.held:
        lines.append(f"held as configured: {_held(model)}")
    lines += [f"- {weak.sentence(model.held)}" for weak in model.weak]
    lines.append(_noise_sentence(model))
    if not model.fit.settled:
        lines.append(UNSETTLED)
    lines += [model.adequacy.sentence(), UNSEEN]
    if not model.adequacy.adequate:
        lines.append(f"intervals do not include missing effects: {REMEDY}")
    return "\n".join(lines)


def _held(model: Identified) -> str:
    """The held values, with the relative standard uncertainty if a record states it."""
    n = len(model.parameters)
    sigma = np.sqrt(np.diag(model.covariance))[n:]
    uncertainty = {key: f" (σ {100 * s / model.held[key]:.2g} %)"
            for key, s in zip(model.stated, sigma, strict=True)}  # fmt: skip
    return ", ".join(
        f"{short(key)} = {value:.6g}{uncertainty.get(key, '')}" for key, value in model.held.items()
    )


def _noise_sentence(model: Identified) -> str:
    noise = model.noise
    if noise.source == "residual":
        return "noise: unknown, since it is not stated and no run begins at rest"
    colour = f"coloured (order {len(noise.ar)})" if len(noise.ar) else "white"
    text = f"noise: {1e3 * noise.total_rms_N:.3g} mN RMS, {colour}, {SOURCES[noise.source]}"
    if noise.lines_Hz:
        where = ", ".join(f"{f_Hz:.4g}" for f_Hz in noise.lines_Hz)
        text += f"; with lines at {where} Hz ({1e3 * noise.lines_rms_N:.2g} mN RMS), removed"
    if model.growth.per_N2**2 > GROWTH_SEEN**2 * model.growth.variance:
        text += f"; grows with the force by {1e3 * _growth_per_N(model):.2g} mN RMS per newton"
    return text


def _growth_per_N(model: Identified) -> float:
    """Growth k of the noise, of variance sigma_0^2 + (k F)^2."""
    return model.noise.total_rms_N * float(np.sqrt(model.growth.per_N2))


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}"


def _digits(p: Parameter, value: float) -> str:
    """A value to two digits of its standard uncertainty."""
    sigma = p.relative * p.value
    if not (np.isfinite(sigma) and sigma > 0.0):
        return f"{value:.6g}"
    places = max(0, 1 - int(np.floor(np.log10(sigma))))
    return f"{value:.{places}f}" if places <= 9 else f"{value:.6g}"


def _interval(p: Parameter, ends: tuple[float, float]) -> str:
    return f"{_digits(p, ends[0])} .. {_digits(p, ends[1])}"


def draw(recorded: Sequence[Recorded], model: Identified) -> Figure:
    """Figure of force and fitted model, residuals before and after the fit, and intervals."""
    data, box, fit = recorded[0].data, model.box, model.fit
    before_N = box.readings(box.start)[0]
    after_N = data.measured - fit.residual_N[0]
    with styled_figure(9.0, 9.6) as figure:
        grid = figure.add_gridspec(4, 2, height_ratios=(2.4, 1.5, 1.5, 2.0))
        full = figure.add_subplot(grid[0, 0])
        zoom = figure.add_subplot(grid[0, 1])
        first = figure.add_subplot(grid[1, :])
        last = figure.add_subplot(grid[2, :], sharex=first)
        lags = figure.add_subplot(grid[3, 0])
        bars = figure.add_subplot(grid[3, 1])
        for axis in (full, zoom):
            axis.plot(*decimated(data.t_s, data.measured), color=MEASURED, lw=0.9, label="measured")
            axis.plot(*decimated(data.t_s, after_N), color=MODEL, lw=0.9, label="fitted model")
            axis.set_xlabel("time [s]")
        full.set_ylabel("force [N]")
        full.margins(y=0.16)
        full.legend(frameon=False, ncols=2, loc="upper left")
        start_s = _busiest_s(data.t_s, data.measured)
        zoom.set_xlim(start_s, start_s + ZOOM_S)
        zoom.set_title("where it moves most", fontsize=9, color="0.3")
        _residual(first, model, data.t_s, data.measured - before_N, "as configured")
        _residual(last, model, data.t_s, fit.residual_N[0], "fitted")
        last.set_xlabel("time [s]")
        _lags(lags, model, data.interval_s)
        _bars(bars, model.parameters)
        title = f"{recorded[0].rig}: parameters from {len(recorded)} run" + "s" * (
            len(recorded) > 1
        )
        figure.suptitle(title, parse_math=False, x=0.01, ha="left", fontweight="bold", fontsize=11)
        if any(r.simulated for r in recorded):
            mark_simulated(figure, full)
    return figure


def _busiest_s(t_s: np.ndarray, force_N: np.ndarray) -> float:
    step = np.concatenate(([0.0], np.abs(np.diff(force_N))))
    width = max(1, int(np.searchsorted(t_s, t_s[0] + ZOOM_S)))
    moving = np.convolve(step, np.ones(width), "valid")
    return float(t_s[int(np.argmax(moving))])


def _residual(axis: Axes, model: Identified, t_s: np.ndarray, r_N: np.ndarray, what: str) -> None:
    rms_mN = 1e3 * float(np.sqrt(np.mean(r_N**2)))
    if model.noise.source != "residual":
        band = 2e3 * model.noise.total_rms_N
        axis.axhspan(-band, band, color="0.88", lw=0, label=f"±2σ of the noise, {band:.1f} mN")
        axis.legend(frameon=False, loc="upper right")
    axis.plot(*decimated(t_s, 1e3 * r_N), color=RESIDUAL, lw=0.6)
    axis.set_ylabel("measured −\nmodel [mN]")
    axis.set_title(f"{what}: RMS {rms_mN:.3g} mN", fontsize=9, color="0.3")
    axis.margins(x=0.01)
    most = 1.5e3 * float(np.abs(r_N).max())  # leaves room for the legend
    axis.set_ylim(-most, most)


def _lags(axis: Axes, model: Identified, interval_s: float) -> None:
    x = model.fit.white - model.fit.white.mean()
    n = min(100, len(x) // 4)
    power = float(x @ x)
    r = np.array([float(x[k:] @ x[: len(x) - k]) / power for k in range(1, n)])
    limit = 1.96 / np.sqrt(len(x))
    axis.axhspan(-limit, limit, color="0.88", lw=0, label="95 % of white noise")
    axis.vlines(1e3 * interval_s * np.arange(1, n), 0.0, r, color=RESIDUAL, lw=1.0)
    axis.axhline(0.0, color="0.7", lw=0.8)
    axis.set(xlabel="lag [ms]", ylabel="correlation of\nthe residual")
    axis.legend(frameon=False, loc="upper right")
    most = max(3.0 * limit, 1.3 * float(np.abs(r).max()))
    axis.set_ylim(-most, most)


def _bars(axis: Axes, parameters: Sequence[Parameter]) -> None:
    """Both intervals of every parameter, relative to the estimate, in standard uncertainties."""
    for i, p in enumerate(parameters):
        at, sigma = -float(i), p.relative
        for ends, shift, color, label in (
            (p.fisher, 0.12, MEASURED, "Fisher information"),
            (p.resampled, -0.12, MODEL, "bootstrap"),
        ):
            if ends is None or not sigma > 0.0:
                continue
            low, high = (np.log(end / p.value) / sigma for end in ends)
            axis.plot([low, high], [at + shift] * 2, color=color, lw=3.0, solid_capstyle="butt",
                      label=label if i == 0 else None)  # fmt: skip
    axis.axvline(0.0, color="0.7", lw=0.8)
    axis.set_yticks(-np.arange(len(parameters)))
    labels = [f"{short(p.key)}\n±{196 * p.relative:.2g} %" for p in parameters]
    axis.set_yticklabels(labels, fontsize=8)
    axis.set_ylim(-len(parameters) + 0.3, 0.9)
    axis.set_xlabel("95 % interval about the estimate [standard uncertainties]")
    axis.legend(frameon=False, loc="upper right", ncols=2, fontsize=8)


TESTS = {
    "size": "size of the residual",
    "slow": f"size of its means over {1e3 * COARSE_S:g} ms",
    "whiteness": "whiteness (Ljung-Box, 20 lags)",
    "runs": "runs of equal signs",
}


def write_page(recorded: Sequence[Recorded], model: Identified, path: Path) -> None:
    """Write the page as one HTML file; ConfigError if it cannot be written."""
    adequacy = model.adequacy
    text = rendered(
        "identification.html",
        title=f"{recorded[0].rig}: identified parameters",
        simulated=any(r.simulated for r in recorded),
        sub=f"{len(recorded)} run{'s' * (len(recorded) > 1)} · least squares of the array's own "
        "equations to recorded force",
        adequate=adequacy.adequate,
        verdict=". ".join(
            _sentence(text)
            for text in (*([] if model.fit.settled else [UNSETTLED]), adequacy.sentence(), UNSEEN)
        ),
        remedy="" if adequacy.adequate else _sentence(REMEDY),
        rows=[
            [
                short(p.key) + (" (at its bound)" if p.at_bound else ""),
                f"{p.start:.6g}",
                _digits(p, p.value),
                _interval(p, (p.low, p.high)),
                "–" if p.resampled is None else _interval(p, p.resampled),
                f"{100 * p.relative:.2g} %",
                f"{100 * p.relative_combined:.2g} %",
            ]
            for p in model.parameters
        ],
        held=_held(model),
        weak=[weak.sentence(model.held) for weak in model.weak],
        png=embedded(draw(recorded, model)),
        noise=_sentence(_noise_sentence(model)),
        level=f"{adequacy.level:.2g}",
        alarm=f"{100 * FALSE_ALARM:g} %",
        tests=[
            (TESTS[t.name], f"{t.p:.2g}", t.finding if t in adequacy.failed else "like noise",
             t in adequacy.failed)
            for t in adequacy.tests
        ],
        runs=[
            (r.data.name, len(r.data.rows), f"{1e3 * z:+.3g} mN", r.data.sha256[:16])
            for r, z in zip(recorded, model.fit.zero_N, strict=True)
        ],
    )  # fmt: skip
    with writing(path, ": choose another --page"):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text)
