"""`hil bench`: cost of the impact rig at its 4 kHz, and rate of decompositions in a sweep."""

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hil import bundled_configs
from hil.experiment.load import load
from hil.loop.stopwatch import STAGES
from hil.mechanics.impact import decompose_many
from hil.record.read import open_run
from hil.runs import session
from hil.runs.plan import Plan
from hil.runs.recording import Output
from hil.systems.pantograph.impact import SYMMETRIC_M
from hil.systems.pantograph.linkage import Pantograph

EVENTS = 100_000
ONE_EACH = ("controller.gamma_deg=[0.0, 30.0]", "controller.repeats=1",
            "experiment.duration_s=3.0", "loop.overrun='skip'")  # fmt: skip


def measure(folder: Path, sets: Sequence[str] = ONE_EACH) -> dict[str, Any]:
    """Measure two impacts on the virtual and on the real clock, and a sweep; times in s."""
    experiment = bundled_configs.root() / "configs" / "pantograph" / "impact_symmetric.toml"
    config = load(experiment, sets)
    on_virtual = session.run(Plan(config), Output(out=folder / "impact-virtual.h5"))
    run = open_run(on_virtual.path)
    on_real = session.run(Plan(config, clock="real"), Output(out=folder / "impact-real.h5"))
    return {
        "period_s": config.tables.loop.period_s,
        "tick_p50_s": float(np.median(run.busy_s)),
        "stages_s": {name: float(np.median(run[f"{name}_stage_s"])) for name in STAGES},
        "real": on_real.summary["timing"],
        "decompositions_per_s": _decompositions_per_s(),
    }


def measure_in_turn() -> dict[str, Any]:
    """Run `measure` with its recordings in a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        return measure(Path(folder))


def _decompositions_per_s() -> float:
    pose = Pantograph().inverse(SYMMETRIC_M)
    M = np.tile(pose.M_kg_m2, (EVENTS, 1, 1))
    A = np.tile(pose.A_m, (EVENTS, 1, 1))
    qdot = np.ones((EVENTS, 2))
    decompose_many(M[:1], A[:1], qdot[:1])
    began = time.perf_counter()
    decompose_many(M, A, qdot)
    return EVENTS / (time.perf_counter() - began)


def as_text(figures: dict[str, Any]) -> str:
    """Return the figures as a table."""
    real, period_us = figures["real"], 1e6 * figures["period_s"]
    rows = [
        ("impact rig, tick on the virtual clock, median", f"{1e6 * figures['tick_p50_s']:.1f} us",
         f"of {period_us:g} us"),
        *((f"    {name}", f"{1e6 * stage_s:.1f} us", "")
          for name, stage_s in figures["stages_s"].items()),
        ("  on the real clock", f"{real['missed']} of {real['periods']}", "periods missed"),
        ("  late, p99", f"{1e6 * real['late_p99_s']:.0f} us", ""),
        ("decompositions in a sweep", f"{figures['decompositions_per_s']:.3g} /s", "above 1e4"),
    ]  # fmt: skip
    return "\n".join(f"{what:<44} {figure:>16}   {aim}".rstrip() for what, figure, aim in rows)
