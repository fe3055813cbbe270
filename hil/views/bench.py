"""`hil bench`: how fast it is on this machine, in one run."""

import statistics
import subprocess
import sys
import tempfile
import time
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
    bench_board,
    bench_daq,
    bench_impact,
    bench_models,
    bench_realtime,
    bench_recorder,
    bench_soft,
    bench_window,
)

REPEATS = 5
EXTENTS = {
    "quick": (bench_realtime.Plan(1, 0.5, (1000, 4000)), 2.0, 1000),
    "usual": (bench_realtime.Plan(2, 0.7), 3.0, 10_000),
    # A million ticks at 1 kHz, and ten minutes of recording: most of three hours.
    "full": (bench_realtime.Plan(50, 20.0), 600.0, 100_000),
}
STEPS = 20000
WINDOW_S = 3.0
FINGERPRINTS = {
    "6 cells": "-:1 | &1:2 | &1:1 &2:2 | &7:-1",
    "14 cells": "-:5 | &1:1 &E:1 &10:3 | &1:1 &6:2 &18:1 | &F:-1",
}


def measure(extent: str = "usual", *, progress: bool = False) -> dict[str, Any]:
    """All figures; times in s. The extents are those of EXTENTS: loops, seconds of
    recording, exchanges with an emulated board.
    """
    plan, recorder_s, exchanges = EXTENTS[extent]
    figures: dict[str, Any] = {"extent": extent, "start_up": _start_up()}
    figures["step"] = {name: _step(text) for name, text in FINGERPRINTS.items()}
    with tempfile.TemporaryDirectory() as folder:
        figures["virtual_run"] = _virtual_run(Path(folder))
        figures["real_time"] = bench_realtime.measure(plan, Path(folder), progress=progress)
        figures["impact"] = bench_impact.measure(Path(folder))
    figures["board"] = bench_board.measure(exchanges)
    figures["recorder"] = bench_recorder.measure(recorder_s)
    figures["daq"] = bench_daq.measure()
    figures["window"] = bench_window.measure(WINDOW_S)
    if extent != "quick":
        figures["models"] = bench_models.compare()
        figures["soft_links"] = bench_soft.cost_over_segments()
    return figures


def as_text(figures: dict[str, Any]) -> str:
    """The figures as tables."""
    virtual, start = figures["virtual_run"], figures["start_up"]
    asleep = figures["real_time"]["stages_s"]
    rows = [
        ("hil --help", f"{1e3 * start['help_s']:.0f} ms", "below 500 ms"),
        ("bare interpreter", f"{1e3 * start['bare_s']:.0f} ms", ""),
        *(
            (f"model step, {name}", f"{1e6 * step_s:.2f} us", "")
            for name, step_s in figures["step"].items()
        ),
        ("miga6, 5 s on the virtual clock", f"{virtual['loop_s']:.3f} s", "below 1 s"),
        ("  tick, median", f"{1e6 * virtual['tick_p50_s']:.1f} us", "below 20 us"),
        *(
            (f"    {name}", f"{1e6 * stage_s:.1f} us",
             f"{1e6 * asleep[name]:.1f} us on the real clock, woken for every tick")
            for name, stage_s in virtual["stages_s"].items()
        ),
    ]  # fmt: skip
    lines = [f"{what:<44} {figure:>16}   {aim}".rstrip() for what, figure, aim in rows]
    lines += ["", bench_realtime.as_text(figures["real_time"])]
    lines += ["", bench_impact.as_text(figures["impact"])]
    lines += ["", bench_board.as_text(figures["board"])]
    lines += ["", bench_recorder.as_text(figures["recorder"])]
    lines += ["", bench_daq.as_text(figures["daq"])]
    lines += ["", bench_window.as_text(figures["window"])]
    if "models" in figures:
        lines += ["", bench_models.as_text(figures["models"])]
        lines += ["", bench_soft.as_text(figures["soft_links"])]
    return "\n".join(lines)


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
