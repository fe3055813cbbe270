"""`hil model RIG --bode`: the frequency response of an array drawn, with and without failures."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from hil.errors import ConfigError, writing
from hil.mechanics.arrays import Array
from hil.pages.style import CELL, MEASURED, MODEL, REFERENCE, styled_figure
from hil.platform.whole_files import whole
from hil.systems.array.model import frequency
from hil.systems.array.model.analysis import poles
from hil.systems.array.model.cell_array import CellArray

KEYS = ("frequency_Hz", "gain", "phase_rad", "coherence", "unit")
COLOURS = (MODEL, CELL, REFERENCE)


def read_measured(folder: Path) -> dict[str, Any]:
    """Return the result of `hil test bode` in a folder; ConfigError if there is none."""
    file = folder / "results.json"
    try:
        results = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        results = {}
    if not isinstance(results, dict) or not set(KEYS) <= results.keys():
        raise ConfigError(f"--measured {folder}: no result of 'hil test bode': give its --out")
    if results["unit"] != "N":
        raise ConfigError(
            f"--measured {folder}: measured displacement in {results['unit']}: --bode shows forces"
        )
    return results


def draw(
    model: CellArray, force_on_N: Array, file: Path, measured: dict[str, Any] | None
) -> dict[str, Any]:
    """Draw gain and phase of every array's force; return them with poles and zeros.

    A model with failed cells is compared with the same arrays whole.
    """
    failed = any(array.dead or array.broken for array in model.arrays.values())
    whole_array, f_Hz = frequency.intact(model), frequency.frequencies_Hz(model)
    facts: dict[str, Any] = {"frequency_Hz": f_Hz.tolist(), "outputs": {}}
    with styled_figure(7.4, 5.6) as figure:
        gain, phase = figure.subplots(2, 1, sharex=True)
        for name, colour in zip(model.arrays, COLOURS * len(model.arrays), strict=False):
            output = f"{name}.right_N"
            curves = [("as_configured", model, "-", f"{name}, failed cells" if failed else name)]
            if failed:
                curves.append(("whole", whole_array, "--", f"{name}, all cells whole"))
            response = facts["outputs"].setdefault(output, {})
            for key, drawn, style, label in curves:
                path = frequency.path(drawn, force_on_N, output)
                G = path.gain(f_Hz)
                gain.loglog(f_Hz, np.abs(G), style, color=colour, lw=1.3, label=label)
                phase.semilogx(f_Hz, np.rad2deg(np.unwrap(np.angle(G))), style, color=colour,
                               lw=1.3)  # fmt: skip
                response[key] = {
                    "gain_N": np.abs(G).tolist(), "phase_rad": np.angle(G).tolist(),
                    "poles": [pole.facts() for pole in poles(drawn)],
                    "zeros": [zero.facts() for zero in path.zeros()],
                }  # fmt: skip
        if measured is not None:
            at, known = np.array(measured["frequency_Hz"]), np.array(measured["coherence"]) > 0.6
            turned = np.unwrap(np.array(measured["phase_rad"])[known])
            gain.loglog(at[known], np.array(measured["gain"])[known], ".", color=MEASURED, ms=4,
                        label="measured, coherence > 0.6")  # fmt: skip
            phase.semilogx(at[known], np.rad2deg(turned), ".", color=MEASURED, ms=4)
        gain.set_ylabel("force for all cells on [N]")
        gain.legend(frameon=False)
        phase.set(xlabel="frequency [Hz]", ylabel="phase [deg]")
        with writing(file), whole(file) as part:
            figure.savefig(part, dpi=130, format=file.suffix[1:])
    return facts


def as_text(facts: dict[str, Any], file: Path) -> list[str]:
    """Return the zeros and, of whole arrays beside failed ones, the poles; where the figure is."""
    lines = []
    for output, response in facts["outputs"].items():
        what = f"from the share of cells on to {output}"
        lines += ["", *_listed(f"zeros, {what}", response["as_configured"]["zeros"])]
        if "whole" in response:
            lines += ["", *_listed("poles, all cells whole", response["whole"]["poles"])]
            lines += ["", *_listed(f"zeros, all cells whole, {what}", response["whole"]["zeros"])]
    return [*lines, "", f"frequency response: {file}"]


def _listed(title: str, values: list[dict[str, Any]]) -> list[str]:
    lines = [title, "        real [1/s]    frequency [Hz]   damping"]
    for value in values:
        times = f"x{value['count']}" if value["count"] > 1 else "  "
        lines.append(
            f"{times:>5} {value['real_per_s']:12.5g} {value['frequency_Hz']:16.5g} "
            f"{value['damping']:9.4g}"
        )
    return lines
