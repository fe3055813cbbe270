"""Benchmark of the window for `hil bench`: `python -m hil_gui.speed [SECONDS]` prints JSON.

With `forever` it draws at the window's frame rate until it is killed, to measure how drawing
affects a loop. With `runs FOLDER` it measures the list of runs alone.

For the latency a process writes rows to a tap at 1 kHz, as a loop does, each with the time of
writing. Both processes use the same clock, so the age of the newest drawn sample is measured when
its frame is complete.
"""

import json
import math
import subprocess
import sys
import tempfile
import time
from collections import deque
from pathlib import Path

import numpy as np
import psutil
from PySide6.QtCore import QSettings
from PySide6.QtWidgets import QApplication

from hil_gui.data import PYTHON, DeviceError, Live, be_nice
from hil_gui.run_data import LIVE_CAPACITY, About, Column, RunData
from hil_gui.window import FRAME_MS, Window

PERIOD_S = 0.001
DRAWN_S = 600.0
KINDS = ("measured", "model", "estimate", "reference", "demand")
EXTRA = ("a.temperature_C", "b.temperature_C")
N_CELLS = 6


def about() -> About:
    """Metadata of a run with eight curves: five forces, the residual, two temperatures."""
    roles = {"model": "model", "estimate": "model", "reference": "reference", "demand": "commanded"}
    columns = [Column("t_s", "s", "timing", ""), Column("late_s", "s", "timing", "")]
    columns += [Column(f"force_{k}_N", "N", roles.get(k, "measured"), "") for k in KINDS]
    columns += [Column(name, "degC", "measured", "") for name in EXTRA]
    columns += [Column("fault_bits", "1", "fault", "", flags=("force_high",))]
    columns += [Column("cells_reported", "1", "measured", "", n_cells=N_CELLS)]
    return About(
        path=Path("speed.h5"),
        title="speed",
        backend="sim",
        clock="real",
        created_utc="",
        simulated="SIMULATED",
        columns=tuple(columns),
        cell_names=tuple(f"muscle.{n}" for n in range(1, N_CELLS + 1)),
        settings={
            "loop": {"period_s": PERIOD_S},
            "experiment": {"duration_s": DRAWN_S},
            "observer": {"force_noise_N": 0.002},
        },
    )


def rows(t_s: np.ndarray, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Rows of such a run: a noisy force that follows steps."""
    step = np.floor(t_s / 3.0) % 3.0
    block = {"t_s": t_s, "late_s": rng.gamma(4.0, 5e-6, len(t_s))}
    for i, kind in enumerate(KINDS):
        block[f"force_{kind}_N"] = step + 0.02 * i + 0.02 * rng.standard_normal(len(t_s))
    for i, name in enumerate(EXTRA):
        block[name] = 40.0 + 30.0 * np.sin(t_s / (5.0 + i)) + rng.standard_normal(len(t_s))
    block["fault_bits"] = np.zeros(len(t_s), dtype=np.uint64)
    on = np.arange(N_CELLS) < 2 * step[:, None]
    return {**block, "cells_reported": on.astype(np.uint8)}


def _window(folder: Path) -> Window:
    window = Window(QSettings(str(folder / "settings.ini"), QSettings.Format.IniFormat))
    window.resize(1280, 720)
    window.show()
    window._timer.stop()
    return window


def _show(window: Window, data: RunData) -> None:
    window._show_run(data)
    window.traces.choose(list(EXTRA))
    for kind in KINDS:
        window.kind_buttons[kind].setChecked(True)


def redraw(window: Window, seconds: float, frame_s: float = 0.0) -> dict[str, float]:
    """Measure frames per second with eight curves over ten minutes, and new rows in each frame.

    `frame_s` is the shortest time between the starts of two frames, s.
    """
    application, data, rng = QApplication.instance(), RunData(about(), LIVE_CAPACITY), None
    rng = np.random.default_rng(1)
    data.append(rows(np.arange(0.0, DRAWN_S, PERIOD_S), rng))
    _show(window, data)
    window.timeline.set_span(DRAWN_S)
    frames_s, end_s = deque(maxlen=1000), time.perf_counter() + seconds
    t_s = DRAWN_S
    while time.perf_counter() < end_s:
        block = rows(t_s + PERIOD_S * np.arange(33), rng)
        t_s += 33 * PERIOD_S
        began_s = time.perf_counter()
        data.append(block)
        window.timeline.grow(data.last_s)
        window.traces.touch()
        window.traces.redraw()
        application.processEvents()
        frames_s.append(time.perf_counter() - began_s)
        time.sleep(max(began_s + frame_s - time.perf_counter(), 0.0))
    n_curves = sum(len(strip.curves) for strip in window.traces.strips.values())
    # the first two lay things out
    median_s = float(np.median(list(frames_s)[2:] or frames_s))
    return {"n_curves": n_curves, "frame_s": median_s, "frames_per_s": 1.0 / median_s}


def latency(window: Window, seconds: float) -> dict[str, float]:
    """Age of the newest sample when its frame is drawn, at the window's own rate of frames."""
    application = QApplication.instance()
    data = RunData(about(), LIVE_CAPACITY)
    _show(window, data)
    window.timeline.set_span(10.0)
    words = [*PYTHON, "-m", "hil.bench.window", str(seconds + 2.0)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as writer:
        writer.stdout.readline()
        live = Live(writer.pid)
        ages_s, next_s, end_s = [], time.perf_counter(), time.perf_counter() + seconds
        previous_s = time.perf_counter()
        start_s = None
        while time.perf_counter() < end_s:
            next_s += 0.025
            time.sleep(max(next_s - time.perf_counter(), 0.0))
            block = live.rows()
            if not len(block):
                continue
            start_s = float(block["t_s"][0]) if start_s is None else start_s
            block["t_s"] -= start_s
            data.append(block)
            window.timeline.grow(data.last_s)
            window.traces.touch()
            window.traces.redraw()
            application.processEvents()
            now_s = time.perf_counter()
            # A sample waits for the next frame; the oldest of the new ones waits longest.
            ages_s.append(now_s - start_s - data.last_s + (now_s - previous_s))
            previous_s = now_s
    return {"sample_to_pixel_p95_s": float(np.quantile(ages_s, 0.95)), "rows_lost": live.n_lost}


def memory() -> dict[str, float]:
    """Measure the resident memory after ten minutes and after an hour of rows, MB."""
    data, rng, sizes = RunData(about(), LIVE_CAPACITY), np.random.default_rng(1), {}
    block = rows(np.arange(0.0, 30.0, PERIOD_S), rng)
    for half_minute in range(120):
        data.append({**block, "t_s": block["t_s"] + 30.0 * half_minute})
        if half_minute in (19, 119):
            key = "after_10_min_MB" if half_minute == 19 else "after_60_min_MB"
            sizes[key] = psutil.Process().memory_info().rss / 1e6
    return sizes


def first_frame() -> float:
    """Measure the time from the start of the process to its first frame, s."""
    code = (
        "import sys, time\n"
        "from PySide6.QtCore import QSettings\n"
        "from PySide6.QtWidgets import QApplication\n"
        "from hil_gui.window import Window\n"
        "application = QApplication([])\n"
        "window = Window(QSettings(sys.argv[1], QSettings.Format.IniFormat))\n"
        "window.show()\n"
        "window.grab()\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        began_s = time.perf_counter()
        subprocess.run([*PYTHON, "-c", code, f"{folder}/s.ini"], check=True)
        return time.perf_counter() - began_s


def list_runs(window: Window, folder: Path) -> dict[str, float]:
    """Measure the time from the index of a folder to all of its runs in the panel, s."""
    application = QApplication.instance()
    window.docks["Runs"].raise_()
    took_s = []
    for _ in range(3):
        began_s = time.perf_counter()
        window.runs.look(folder)
        while window.jobs.is_busy:
            application.processEvents()
        window.grab()
        took_s.append(time.perf_counter() - began_s)
    return {"n_runs": window.runs.model.rowCount(), "list_s": min(took_s)}


def main() -> int:
    forever, listed = sys.argv[1:] == ["forever"], sys.argv[1:2] == ["runs"]
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 and not (forever or listed) else 4.0
    application = QApplication(sys.argv[:1])
    with tempfile.TemporaryDirectory() as folder:
        window = _window(Path(folder))
        application.processEvents()
        if listed:
            print(json.dumps(list_runs(window, Path(sys.argv[2]))))
            return 0
        if forever:
            be_nice()
            redraw(window, math.inf, FRAME_MS * 1e-3)
        try:
            results = {
                "first_frame_s": first_frame(),
                **redraw(window, seconds),
                **latency(window, seconds),
                **memory(),
            }
        except DeviceError as error:
            print(error, file=sys.stderr)
            return 1
        print(json.dumps(results))
        window.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
