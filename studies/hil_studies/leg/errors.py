"""Errors of the model that `hil study leg` gives the plant, and how `robust` copes with them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from hil.mechanics.arrays import Array
from hil.pages.study import as_table, check, saved
from hil.pages.style import FAULT, MEASURED, styled_figure
from hil_studies.leg.thesis import Trace

MUSCLE, TENDON, PAYLOAD_KG = 0.3, 0.02, 2.0
ERRORS: dict[str, dict[str, float]] = {
    "none": {},
    "muscles +30 %": {"strength_TA": 1.0 + MUSCLE, "strength_SOL": 1.0 + MUSCLE},
    "muscles -30 %": {"strength_TA": 1.0 - MUSCLE, "strength_SOL": 1.0 - MUSCLE},
    "TA +30 %, SOL -30 %": {"strength_TA": 1.0 + MUSCLE, "strength_SOL": 1.0 - MUSCLE},
    "TA -30 %, SOL +30 %": {"strength_TA": 1.0 - MUSCLE, "strength_SOL": 1.0 + MUSCLE},
    "tendon of TA +2 %": {"tendon_TA": 1.0 + TENDON},
    "tendon of TA -2 %": {"tendon_TA": 1.0 - TENDON},
    "tendon of SOL +2 %": {"tendon_SOL": 1.0 + TENDON},
    "tendon of SOL -2 %": {"tendon_SOL": 1.0 - TENDON},
    "tendons +2 %": {"tendon_TA": 1.0 + TENDON, "tendon_SOL": 1.0 + TENDON},
    "tendons -2 %": {"tendon_TA": 1.0 - TENDON, "tendon_SOL": 1.0 - TENDON},
    "tendons: TA +2 %, SOL -2 %": {"tendon_TA": 1.0 + TENDON, "tendon_SOL": 1.0 - TENDON},
    "tendons: TA -2 %, SOL +2 %": {"tendon_TA": 1.0 - TENDON, "tendon_SOL": 1.0 + TENDON},
    "delay of 5 ms not told": {"told_delay_s": 0.0},
    "payload of 2 kg": {"payload_kg": PAYLOAD_KG},
}
"""Values of the study (`hil_studies.leg.study.Values`) by the name of the error."""
LARGER: dict[str, dict[str, float]] = {
    "tendons -3 %": {"tendon_TA": 0.97, "tendon_SOL": 0.97},
    "tendons +5 %": {"tendon_TA": 1.05, "tendon_SOL": 1.05},
    "tendons -5 %": {"tendon_TA": 0.95, "tendon_SOL": 0.95},
    "tendons: TA +3 %, SOL -3 %": {"tendon_TA": 1.03, "tendon_SOL": 0.97},
    "tendons: TA -3 %, SOL +3 %": {"tendon_TA": 0.97, "tendon_SOL": 1.03},
}
"""Beyond what the gains were chosen for."""
LAST = 300
"""Number of periods at the end of a run in which the remaining error is sought."""
LIMIT_MM, SATURATED = 1.0, 0.999


def error_mm(trace: Trace) -> Array:
    """Return target minus height in mm."""
    return np.asarray(1e3 * (trace.target_m - trace.height_m))


def rms_mm(trace: Trace) -> float:
    return float(np.sqrt(np.mean(error_mm(trace) ** 2)))


def compare_errors(
    out: Path, scenarios: tuple[str, ...], trial: Callable[[str, dict[str, float]], Trace]
) -> tuple[list[dict[str, Any]], dict[str, Any], dict[str, str]]:
    """Run `robust` on plants that differ from its model; return tables, check and figure.

    Parameters
    ----------
    trial : motion of the leg in a scenario with these values of the study
    """
    traces, larger = (
        {name: {s: trial(s, values) for s in scenarios} for name, values in errors.items()}
        for errors in (ERRORS, LARGER)
    )
    worst = max(rms_mm(t) for by_scenario in traces.values() for t in by_scenario.values())
    columns = ["error of the model", *scenarios, "at the end"]
    tables = [
        as_table(
            "robust on a plant that differs from the model, RMS in mm; at the end: largest error "
            f"of the last {LAST} ms",
            columns,
            [_row(name, by_scenario) for name, by_scenario in traces.items()],
        ),
        as_table(
            "robust on a plant that differs more, RMS in mm; saturated: movements in which a "
            "muscle is fully active",
            [*columns, "saturated"],
            [[*_row(name, by), _saturated(by)] for name, by in larger.items()],
        ),
    ]
    told = check("robust, model errors: largest RMS", worst, f"< {LIMIT_MM:g}", "mm",
                 agrees=worst < LIMIT_MM)  # fmt: skip
    return tables, told, _save(out, {name: traces[name][scenarios[-1]] for name in ERRORS})


def _row(name: str, traces: dict[str, Trace]) -> list[str]:
    left = max(float(np.abs(error_mm(trace)[-LAST:]).max()) for trace in traces.values())
    return [name, *(f"{rms_mm(trace):.3f}" for trace in traces.values()), f"{left:.3f}"]


def _saturated(traces: dict[str, Trace]) -> str:
    full = [name for name, t in traces.items() if (t.activation >= SATURATED).any()]
    return ", ".join(full) or "-"


def _save(out: Path, traces: dict[str, Trace]) -> dict[str, str]:
    with styled_figure(9.0, 1.0 + 0.4 * len(traces)) as figure:
        axes = figure.subplots(-(-len(traces) // 3), 3, sharex=True, sharey=True)
        for axis, (name, trace) in zip(axes.flat, traces.items(), strict=True):
            axis.axhline(0.0, color="0.8", lw=0.6)
            axis.plot(trace.t_s, error_mm(trace), color=MEASURED, lw=0.8)
            axis.set_title(f"{name}: RMS {rms_mm(trace):.2f} mm", fontsize=8)
        figure.supylabel("target − height [mm]", fontsize=9)
        figure.supxlabel("time [s]", fontsize=9)
        figure.text(0.99, 0.995, "SIMULATED", ha="right", va="top", fontweight="bold", color=FAULT)
        return saved(out, "errors.png", figure, "robust on plants that differ from its model.")
