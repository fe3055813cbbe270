"""Figures of a run: those of its summary, and statistics of its columns."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from hil.config.values import Figures
from hil.experiment.expectations import MISSED, MeasureTable
from hil.loop.channels import signals_in
from hil.loop.frame import Column
from hil.mechanics.arrays import Array
from hil.record import metrics
from hil.record.read import n_whole_rows, open_h5
from hil.record.summary import plain

TAKES: dict[str, Callable[[Array], float]] = {
    "max": np.max, "min": np.min, "mean": np.mean, "last": lambda y: y[-1],
    "rms": metrics.rms, "std": np.std,
}  # fmt: skip
OF_FORCE = ("vaf", "residual_rms_N", "tracking_rms_N", "measured_max_N")
WEAR = "wear_per_h"
OF_RUNS = ("ambient_C", "missed_periods")
OF_SIGNALS = ("vaf", "residual_rms", "tracking_rms", "measured_max")


def names_of(columns: Iterable[str], measures: Iterable[str]) -> list[str]:
    """Names of the figures that a trial with these columns may have, its measures first."""
    columns = list(columns)
    signals = [signal.name for signal in signals_in(columns)]
    force = [f"force_{key}" for key in OF_FORCE if "force" in signals]
    others = [f"{name}_{key}" for name in signals if name != "force" for key in OF_SIGNALS]
    wear = [WEAR] if any(name.endswith("wire_model_C") for name in columns) else []
    return [*measures, *force, *others, *wear]


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
        columns = {name: file["ticks"][name][:n] for name in columns_of(measures)}
        return figures_in(columns, summary, measures)


def columns_of(measures: Mapping[str, MeasureTable]) -> set[str]:
    """The columns that `figures_in` takes."""
    return {"t_s"}.union(*(measure.columns for measure in measures.values()))


def figures_in(
    columns: Mapping[str, ArrayLike], summary: Figures, measures: Mapping[str, MeasureTable]
) -> dict[str, float | None]:
    """The same of columns that are in memory."""
    force = summary["force"]
    numbers = {f"force_{key}": force[key] for key in OF_FORCE if force.get(key) is not None}
    for name, signal in summary["signals"].items():
        numbers |= {f"{name}_{k}": signal[k] for k in OF_SIGNALS if signal.get(k) is not None}
    if summary["room"]:
        numbers["ambient_C"] = summary["room"]["ambient_C"]
    if summary.get("wear_per_h") is not None:
        numbers[WEAR] = summary["wear_per_h"]
    numbers["missed_periods"] = summary["timing"].get("missed")
    for name, figures in (("force", force), *summary["signals"].items()):
        if figures.get("held"):  # VAF is not meaningful for a constant signal
            numbers[f"{name}_vaf"] = None
    for name, measure in measures.items():
        numbers[name] = statistic(columns, measure)
    if "expectations" in summary:
        numbers[MISSED] = sum(not e["passed"] for e in summary["expectations"])
    return dict(plain(numbers))


def statistic(columns: Mapping[str, ArrayLike], measure: MeasureTable) -> float | None:
    """The statistic of a column; None where it has no number between these times."""
    t_s = np.asarray(columns["t_s"])
    to_s = np.inf if measure.to_s is None else measure.to_s
    y = np.asarray(columns[measure.column])
    if measure.less is not None:
        y = y - np.asarray(columns[measure.less])
    y = y[(t_s >= measure.from_s) & (t_s <= to_s)]
    y = y[np.isfinite(y)]
    return float(TAKES[measure.take](y)) if len(y) else None


def measure_faults(
    key: str, measure: MeasureTable, columns: Iterable[Column], duration_s: float
) -> Iterator[str]:
    """What is wrong with a measure of an experiment with these columns."""
    numbers = [c.name for c in columns if not c.flags and not c.n_cells]
    for name, column in zip(("column", "less"), measure.columns, strict=False):
        if column not in numbers:
            shown = ", ".join(n for n in numbers if not n.endswith("_stage_s"))
            yield f"{key}.{name} = '{column}': the rig has no column of that name: choose {shown}"
    if max(measure.from_s, measure.to_s or 0.0) > duration_s:
        yield f"{key}: looks beyond the experiment's {duration_s:g} s"
