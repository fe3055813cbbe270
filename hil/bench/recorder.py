"""Feeds the recorder at a fixed rate: ``python -m hil.bench.recorder SECONDS``.

A loop without other work writes RATE_HZ rows of N_COLUMNS numbers per second. The figures are the
recorder's share of one core, as counted by the kernel, and the number of rows that it lost.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from hil.config.values import Figures
from hil.loop import loop
from hil.loop.clock import RealClock
from hil.loop.frame import Column, Frame
from hil.platform import realtime
from hil.platform.processes import PYTHON
from hil.platform.provenance import software
from hil.record import layout
from hil.record.read import open_h5
from hil.record.sink import Sink, Writing

RATE_HZ = 10_000
N_COLUMNS = 64
SHARE_MAX = 0.06


def measure(duration_s: float) -> dict[str, object]:
    """Run the recorder beside a paced loop in a process of its own; times in s."""
    command = [*PYTHON, "-m", "hil.bench.recorder", repr(duration_s)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return dict(json.loads(done.stdout))


def as_text(figures: Figures) -> str:
    return (
        f"recorder, {figures['rate_Hz']:g} Hz x {figures['n_columns']} columns for "
        f"{figures['duration_s']:.0f} s: {100.0 * figures['core_share']:.1f} % of a core "
        f"(aim: below {100.0 * SHARE_MAX:.0f} %), {figures['rows_lost']} rows lost of "
        f"{figures['rows']}, {figures['bytes_per_row']:.0f} B a row on file"
    )


def feed(duration_s: float, path: Path) -> dict[str, object]:
    """Write rows to a recorder at this rate, for a duration."""
    of_every_run = loop.columns()
    n_bits = sum(bool(column.flags) for column in of_every_run)
    numbers = range(len(of_every_run) - n_bits, N_COLUMNS)
    columns = [*of_every_run, *(Column(f"c{i}_N", "N", "measured", "a number") for i in numbers)]
    frame = Frame(columns)
    period_s = 1.0 / RATE_HZ
    about: dict[str, str | int | float] = {
        "experiment_file": "bench", "experiment_name": "recorder", "clock": "real", "seed": 0,
        "software": json.dumps(software()),
    }  # fmt: skip
    layout.create(path, layout.Contents(frame.columns, about, rows_per_chunk=4096))
    sink = Sink(path, frame, Writing(period_s, 0.25, 5.0, lossless=False))
    sink.wait_ready()
    n_rows = round(duration_s * RATE_HZ)
    values = np.random.default_rng(0).standard_normal((1024, N_COLUMNS))
    clock = RealClock()
    with realtime.prepared():
        before_s = cpu_time_s(sink.pid)
        clock.start()
        n = pushed = 0
        while n < n_rows:
            clock.sleep_until_s(n * period_s)
            # Writes all rows that are due, late ones at once, so that the recorder's rate is fixed.
            due = min(n_rows, int(clock.now_s() / period_s) + 1)
            for k in range(n, due):
                frame.values[:] = values[k & 1023]
                frame.values[0] = k * period_s
                sink.push()
                pushed += 1
            n = due
        took_s = clock.now_s()
        used_s = cpu_time_s(sink.pid) - before_s
    lost = sink.drain()
    with open_h5(path) as file:
        kept = len(file["ticks/t_s"])
    return {
        "rate_Hz": RATE_HZ,
        "n_columns": N_COLUMNS,
        "duration_s": took_s,
        "core_share": used_s / took_s,
        "rows": pushed,
        "rows_kept": kept,
        "rows_lost": lost,
        "bytes_per_row": path.stat().st_size / max(1, kept),
    }


def cpu_time_s(pid: int) -> float:
    """CPU time of a process."""
    return 1e-9 * int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(feed(float(sys.argv[1]), Path(folder) / "fed.h5")))
    return 0


if __name__ == "__main__":
    sys.exit(main())
