"""Figures of a trial: those of its summary, and the campaign's own measures."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hil.config.values import Figures
from hil.loop.channels import signals_in
from hil.record import metrics
from hil.record.read import n_whole_rows, open_h5
from hil.record.summary import plain
from hil.runs.campaign.tables import MeasureTable

TAKES: dict[str, Callable[[Any], Any]] = {
    "max": np.max, "min": np.min, "mean": np.mean, "last": lambda y: y[-1],
    "rms": metrics.rms, "std": np.std,
}  # fmt: skip
OF_FORCE = ("vaf", "residual_rms_N", "tracking_rms_N", "measured_max_N")
OF_SIGNALS = ("vaf", "residual_rms", "tracking_rms", "measured_max")


def names_of(columns: Iterable[str], measures: Iterable[str]) -> list[str]:
    """Names of the figures that a trial with these columns may have, its measures first."""
    signals = [signal.name for signal in signals_in(columns)]
    force = [f"force_{key}" for key in OF_FORCE if "force" in signals]
    others = [f"{name}_{key}" for name in signals if name != "force" for key in OF_SIGNALS]
    return [*measures, *force, *others]


def figures_of(
    path: Path, summary: Figures, measures: Mapping[str, MeasureTable]
) -> dict[str, float | None]:
    """Figures of a trial by column of the table of all trials; None if unknown.

    Parameters
    ----------
    path : recording of the trial
    summary : summary of the recording
    measures : the campaign's own figures, by name
    """
    with open_h5(path) as file:
        n = n_whole_rows(file)
        columns = {m.column: file["ticks"][m.column][:n] for m in measures.values()}
        return figures_in(columns | {"t_s": file["ticks/t_s"][:n]}, summary, measures)


def figures_in(
    columns: Mapping[str, Any], summary: Mapping[str, Any], measures: Mapping[str, MeasureTable]
) -> dict[str, float | None]:
    """The same of columns that are in memory, `t_s` among them."""
    force = summary["force"]
    numbers = {f"force_{key}": force[key] for key in OF_FORCE if force.get(key) is not None}
    for name, signal in summary["signals"].items():
        numbers |= {f"{name}_{k}": signal[k] for k in OF_SIGNALS if signal.get(k) is not None}
    if summary["room"]:
        numbers["ambient_C"] = summary["room"]["ambient_C"]
    numbers["missed_periods"] = summary["timing"].get("missed")
    for name, figures in (("force", force), *summary["signals"].items()):
        if figures.get("held"):  # VAF is not meaningful for a constant signal
            numbers[f"{name}_vaf"] = None
    t_s = np.asarray(columns["t_s"])
    for name, measure in measures.items():
        to_s = np.inf if measure.to_s is None else measure.to_s
        y = np.asarray(columns[measure.column])[(t_s >= measure.from_s) & (t_s <= to_s)]
        y = y[np.isfinite(y)]
        numbers[name] = TAKES[measure.take](y) if len(y) else None
    return dict(plain(numbers))
