"""`hil bench --only page`: what the page of a bench costs the loop and the processor.

In turns, runs at 1 kHz without a page, with a page that nobody watches, with one reader and with
three, each a process that takes every frame. The share of a core is that of the page's own process.
"""

import contextlib
import json
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from hil import bundled_configs
from hil.bench.recorder import cpu_time_s
from hil.bench.table import as_table
from hil.config.values import Figures
from hil.platform.processes import PYTHON

TURNS, RUN_S, SETTLE_S = 3, 12.0, 3.0
VARIANTS = {"alone": 0, "served": 0, "one": 1, "three": 3}  # readers
WORDS = re.compile(r"page: http://(\S+)/ ")


def measure(folder: Path) -> dict[str, object]:
    """Missed periods and lateness of every variant over all turns, and shares of a core."""
    turns: dict[str, list[Figures]] = {name: [] for name in VARIANTS}
    for turn in range(TURNS):
        for name, n_readers in VARIANTS.items():
            turns[name].append(_run(folder / f"{name}{turn}.h5", name != "alone", n_readers))
    return {
        name: {
            "missed": sum(one["missed"] for one in runs),
            "periods": sum(one["periods"] for one in runs),
            "late_p999_s": statistics.median(one["late_p999_s"] for one in runs),
            "core_share": statistics.median(one["core_share"] for one in runs),
            "frames_per_s": statistics.median(one["frames_per_s"] for one in runs),
        }
        for name, runs in turns.items()
    }


def _run(out: Path, served: bool, n_readers: int) -> dict[str, float]:
    experiment = bundled_configs.root() / "configs" / "miga6" / "all_on.toml"
    command = [*PYTHON, "-m", "hil", "run", str(experiment), "--clock", "real", "--json"]
    command += ["--duration", str(RUN_S), "--set", "loop.overrun=tolerate", "--out", str(out)]
    command += ["--page", "0"] if served else []
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        assert process.stdout is not None
        share = frames = 0.0
        if served:
            address = next(filter(None, map(WORDS.search, process.stderr)))[1]
            children = psutil.Process(process.pid).children()
            server = next(one for one in children if "hil.watch.serve" in one.cmdline())
            with _readers(address, n_readers) as readers:
                while not out.exists() and process.poll() is None:
                    time.sleep(0.1)
                time.sleep(SETTLE_S)
                began_s, used_s = time.monotonic(), cpu_time_s(server.pid)
                time.sleep(RUN_S - 2.0 * SETTLE_S)
                share = (cpu_time_s(server.pid) - used_s) / (time.monotonic() - began_s)
            frames = min((float(one.stdout.read()) for one in readers if one.stdout), default=0.0)
        timing = json.loads(process.stdout.read())["timing"]
        process.stderr.read()
        if served:
            server.kill()
    return {"missed": timing["missed"], "periods": timing["periods"], "core_share": share,
            "late_p999_s": timing["late_p999_s"], "frames_per_s": frames}  # fmt: skip


@contextlib.contextmanager
def _readers(address: str, number: int) -> Iterator[list["subprocess.Popen[str]"]]:
    command = [*PYTHON, "-m", "hil.bench.page", address]
    readers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
               for _ in range(number)]  # fmt: skip
    try:
        yield readers
    finally:
        for one in readers:
            one.wait()


def as_text(figures: Figures) -> str:
    """The figures as a table."""
    words = {"alone": "no page", "served": "a page that nobody watches", "one": "one reader",
             "three": "three readers"}  # fmt: skip
    rows = []
    for name, row in figures.items():
        missed = f"{row['missed']} of {row['periods']}"
        rows.append((f"1 kHz, {words[name]}: missed", missed, "no more than without a page"))
        rows.append(("  late, p99.9", f"{1e6 * row['late_p999_s']:.0f} us", ""))
        if name != "alone":
            aim = "0" if name == "served" else "below 3 %" if name == "one" else ""
            rows.append(("  share of a core", f"{100 * row['core_share']:.1f} %", aim))
        if row["frames_per_s"]:
            rows.append(("  frames/s", f"{row['frames_per_s']:.0f}", "20"))
    return as_table(rows)


def main() -> int:
    """Take every frame until the end; the frames a second go to standard output."""
    from websockets.exceptions import ConnectionClosed
    from websockets.sync.client import connect

    at_s: list[float] = []  # of frames with rows
    with connect(f"ws://{sys.argv[1]}/live", max_size=None) as link:
        with contextlib.suppress(ConnectionClosed, TimeoutError):
            while not at_s or at_s[-1] - at_s[0] < RUN_S - 2.0 * SETTLE_S:
                frame = json.loads(link.recv(None if not at_s else SETTLE_S))
                if frame["kind"] == "rows" and frame["n"] and not frame["history"]:
                    at_s.append(time.monotonic())
        print((len(at_s) - 1) / (at_s[-1] - at_s[0]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
