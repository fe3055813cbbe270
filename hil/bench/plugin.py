"""`hil bench`: duration of a tick with a plug-in controller, reference or model."""

from pathlib import Path
from typing import Any

import numpy as np

from hil import bundled_configs
from hil.bench.table import as_table
from hil.experiment.load import load
from hil.record.read import open_run
from hil.runs import session

ROUNDS = 5
TICKS = 1000
# Compared: a stage of the tick, with built-in code and with the example's.
COMPARED = {
    "controller": ("control", "configs/miga6/pid.toml", "examples/own/controller.toml"),
    "reference": ("control", "configs/miga6/pid.toml", "examples/own/reference.toml"),
    "model": ("estimate", "configs/slider/steps.toml", "examples/own/model.toml"),
}


def measure(folder: Path) -> dict[str, Any]:
    """Medians of a stage, in turns on the virtual clock; times in s."""
    return {what: _compared(folder, *how) for what, how in COMPARED.items()}


def _compared(folder: Path, stage: str, built_in: str, own: str) -> dict[str, Any]:
    took: dict[str, list[float]] = {"built_in_s": [], "own_s": []}
    for _ in range(ROUNDS):
        for key, name in (("built_in_s", built_in), ("own_s", own)):
            period_s = load(bundled_configs.root() / name).tables.loop.period_s
            config = load(
                bundled_configs.root() / name, (f"experiment.duration_s={TICKS * period_s}",)
            )
            path = session.run(config, out=folder / "own.h5", force=True).path
            took[key].append(float(np.median(open_run(path)[f"{stage}_stage_s"])))
    return {"stage": stage, **{key: min(times) for key, times in took.items()}}


def as_text(figures: dict[str, Any]) -> str:
    """The figures as a table."""
    return as_table(
        (f"plug-in {what}, {row['stage']} stage", f"{1e6 * row['own_s']:.1f} us",
         f"with hil's {1e6 * row['built_in_s']:.1f} us")
        for what, row in figures.items()
    )  # fmt: skip
