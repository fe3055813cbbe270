"""`hil bench`: how fast it is on this machine, in one run."""

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hil import loop, session, shipped
from hil.config import load
from hil.models import CellArray, cells
from hil.models.activation import CellActivation
from hil.models.array_system import ArraySystem
from hil.record.read import open_run
from hil.views import (
    bench_arm,
    bench_board,
    bench_bodies,
    bench_control,
    bench_daq,
    bench_impact,
    bench_leg,
    bench_models,
    bench_own,
    bench_realtime,
    bench_recorder,
    bench_soft,
    bench_window,
)

REPEATS = 5
QUICK = ("start_up", "step", "virtual_run", "real_time", "recorder")
USUAL = (*QUICK, "impact", "leg", "recruitment", "own", "board", "daq", "window")
PARTS = (*USUAL, "models", "soft_links", "bodies", "arm")


@dataclass(frozen=True)
class Extent:
    """Which parts by default, and how long: the loops, the recorder in s, a board's exchanges."""

    parts: Sequence[str]
    loops: bench_realtime.Plan
    recorder_s: float
    exchanges: int


EXTENTS = {
    "quick": Extent(QUICK, bench_realtime.Plan(1, 0.5, (1000, 4000)), 2.0, 1000),
    "usual": Extent(USUAL, bench_realtime.Plan(2, 0.5), 3.0, 2000),
    # A million ticks at 1 kHz, and ten minutes of recording: most of three hours.
    "full": Extent(PARTS, bench_realtime.Plan(50, 20.0), 600.0, 100_000),
}
STEPS = 20000
WINDOW_S = 3.0
FINGERPRINTS = {
    "6 cells": "-:1 | &1:2 | &1:1 &2:2 | &7:-1",
    "14 cells": "-:5 | &1:1 &E:1 &10:3 | &1:1 &6:2 &18:1 | &F:-1",
}


def measure(
    extent: str = "usual", only: Sequence[str] = (), *, progress: bool = False
) -> dict[str, Any]:
    """The figures of an extent's parts, or of these parts only; times in s."""
    plan = EXTENTS[extent]
    figures: dict[str, Any] = {"extent": extent}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        parts: dict[str, Callable[[], Any]] = {
            "start_up": _start_up,
            "step": lambda: {name: _step(text) for name, text in FINGERPRINTS.items()},
            "virtual_run": lambda: _virtual_run(folder),
            "real_time": lambda: bench_realtime.measure(plan.loops, folder, progress=progress),
            "recorder": lambda: bench_recorder.measure(plan.recorder_s),
            "impact": lambda: bench_impact.measure(folder),
            "leg": bench_leg.compare,
            "recruitment": bench_control.compare,
            "own": lambda: bench_own.measure(folder),
            "board": lambda: bench_board.measure(plan.exchanges),
            "daq": bench_daq.measure,
            "window": lambda: bench_window.measure(WINDOW_S),
            "models": bench_models.compare,
            "soft_links": bench_soft.cost_over_segments,
            "bodies": bench_bodies.cost,
            "arm": bench_arm.compare,
        }
        for part, measured in parts.items():
            if part in (only or plan.parts):
                figures[part] = measured()
    return figures


def as_text(figures: dict[str, Any]) -> str:
    """The figures as tables."""
    tables: dict[str, Callable[[Any], str]] = {
        "start_up": _start_up_text,
        "step": _step_text,
        "virtual_run": lambda tick: _tick_text(tick, figures.get("real_time")),
        "real_time": bench_realtime.as_text,
        "recorder": bench_recorder.as_text,
        "impact": bench_impact.as_text,
        "leg": bench_leg.as_text,
        "recruitment": bench_control.as_text,
        "own": bench_own.as_text,
        "board": bench_board.as_text,
        "daq": bench_daq.as_text,
        "window": bench_window.as_text,
        "models": bench_models.as_text,
        "soft_links": bench_soft.as_text,
        "bodies": bench_bodies.as_text,
        "arm": bench_arm.as_text,
    }
    return "\n\n".join(text(figures[part]) for part, text in tables.items() if part in figures)


def _table(rows: list[tuple[str, str, str]]) -> str:
    return "\n".join(f"{what:<44} {figure:>16}   {aim}".rstrip() for what, figure, aim in rows)


def _start_up_text(start: dict[str, float]) -> str:
    return _table(
        [
            ("hil --help", f"{1e3 * start['help_s']:.0f} ms", "below 500 ms"),
            ("bare interpreter", f"{1e3 * start['bare_s']:.0f} ms", ""),
        ]
    )


def _step_text(steps: dict[str, float]) -> str:
    return _table([(f"model step, {n}", f"{1e6 * t_s:.2f} us", "") for n, t_s in steps.items()])


def _tick_text(virtual: dict[str, Any], real: dict[str, Any] | None) -> str:
    rows = [
        ("miga6, 5 s on the virtual clock", f"{virtual['loop_s']:.3f} s", "below 1 s"),
        ("  tick, median", f"{1e6 * virtual['tick_p50_s']:.1f} us", "below 20 us"),
    ]
    for name, stage_s in virtual["stages_s"].items():
        asleep = "" if real is None else f"{1e6 * real['stages_s'][name]:.1f} us when woken for it"
        rows.append((f"    {name}", f"{1e6 * stage_s:.1f} us", asleep))
    return _table(rows)


def _start_up() -> dict[str, float]:
    return {
        "help_s": _whole_process([sys.executable, "-m", "hil", "--help"]),
        "bare_s": _whole_process([sys.executable, "-c", "pass"]),
    }


def _whole_process(command: list[str]) -> float:
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def _step(fingerprint: str) -> float:
    """One exact step of plant or twin, called from Python."""
    cell = cells.miga(
        k_pe_N_per_m=20.0, k_se_N_per_m=386.52, k_ae_N_per_m=1000.0, b_N_s_per_m=500.0
    )
    model = CellArray.from_fingerprint(fingerprint, cell=cell, mass_kg=0.01583)
    system = ArraySystem(model, [CellActivation(1.0)] * model.n_cells, 0.001)
    on = np.ones(model.n_cells, dtype=np.uint8)
    system.step(on)
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        for _ in range(STEPS):
            system.step(on)
        times.append((time.perf_counter() - began) / STEPS)
    return statistics.median(times)


def _experiment() -> Path:
    return shipped.root() / "configs" / "miga6" / "all_on.toml"


def _virtual_run(folder: Path) -> dict[str, Any]:
    loops_s = []
    config = load(_experiment())
    for i in range(REPEATS):
        result = session.run(config, out=folder / f"virtual{i}.h5")
        loops_s.append(result.summary["loop_s"])
    run = open_run(result.path)
    return {
        "loop_s": statistics.median(loops_s),
        "tick_p50_s": float(run.busy_s.median()),
        "stages_s": {name: float(run[f"{name}_stage_s"].median()) for name in loop.STAGES},
    }
