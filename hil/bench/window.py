"""`hil bench`, the window: frames a second, sample to pixel, memory.

`python -m hil.bench.window SECONDS` replaces a loop: it writes rows at 1 kHz, each with the time
at which it was written.
"""

import json
import os
import subprocess
import sys
import time

import numpy as np

from hil.bench.table import as_table
from hil.config.values import Figures
from hil.loop import tap as taps
from hil.platform import window
from hil.platform.processes import PYTHON

PERIOD_S = 0.001
N_CELLS = 6
FORCES = ("measured", "model", "estimate", "reference", "demand")
EXTRA = ("a.temperature_C", "b.temperature_C")


def measure(seconds: float) -> dict[str, object]:
    """Figures of `hil_gui.speed`, drawn off screen; empty if the window is not installed."""
    if not window.is_installed():
        return {}
    done = subprocess.run(
        [*PYTHON, "-m", "hil_gui.speed", str(seconds)],
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen"},
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(json.loads(done.stdout))


def as_text(figures: Figures) -> str:
    """The figures as a table."""
    if not figures:
        return "window: not installed"
    rows = [
        ("window: first frame after", f"{figures['first_frame_s']:.2f} s", "below 2 s"),
        (
            f"  {figures['n_curves']} curves over ten minutes at 1 kHz",
            f"{figures['frames_per_s']:.0f} frames/s",
            "30 or more",
        ),
        (
            "  sample to pixel, p95",
            f"{1e3 * figures['sample_to_pixel_p95_s']:.0f} ms",
            "below 100 ms",
        ),
        (
            "  memory after 10 / 60 minutes",
            f"{figures['after_10_min_MB']:.0f} / {figures['after_60_min_MB']:.0f} MB",
            "flat",
        ),
    ]
    return as_table(rows)


def _dtype() -> np.dtype[np.void]:
    names = ["t_s", "late_s", *(f"force_{kind}_N" for kind in FORCES), *EXTRA]
    fields: list[object] = [(name, "<f8") for name in names]
    return np.dtype([*fields, ("fault_bits", "<u8"), ("cells_reported", "u1", (N_CELLS,))])


def write(seconds: float) -> int:
    """Write rows for a duration; returns their number."""
    tap = taps.create(_dtype(), capacity=8192)
    tap.set_recorder_ready()
    print("ready", flush=True)
    rng = np.random.default_rng(1)
    row = np.zeros(1, _dtype())
    noise = 0.02 * rng.standard_normal((4096, len(FORCES)))
    n, start_s = 0, time.perf_counter()
    try:
        while n * PERIOD_S < seconds:
            time.sleep(max(start_s + n * PERIOD_S - time.perf_counter(), 0.0))
            row["t_s"] = time.perf_counter()
            for kind, value in zip(FORCES, noise[n % 4096], strict=True):
                row[f"force_{kind}_N"] = n // 3000 % 3 + value
            row["cells_reported"][0, :] = n // 1000 % 2
            tap.ticks.push(row)
            n += 1
    finally:
        tap.close_writer()
        tap.unlink()
    return n


if __name__ == "__main__":
    write(float(sys.argv[1]))
