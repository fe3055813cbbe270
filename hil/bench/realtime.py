"""Compares the loop with a C loop on the same CPU, in turns, with and without machine stalls.

The C loop (`hil/native/reference_loop.c`) is compiled with the system's compiler. It has the same
priority as the loop and polls for the same time before a deadline. Without a compiler it is left
out. A further copy with a higher priority runs on each CPU: if it wakes more than STALL_S late, the
machine has stalled. Each figure is given over all ticks (raw) and over those without a stall.
"""

import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hil.config.values import Figures
from hil.platform import realtime, window
from hil.platform.processes import PYTHON, cpus, family

SOURCE = Path(__file__).resolve().parents[1] / "native" / "reference_loop.c"
STALL_S = 100e-6
WITNESS_PERIOD_S = 200e-6
WITNESS_PRIORITY = 99
RATES_HZ = (1000, 2000, 4000, 8000)
VARIANTS = {
    "c": "C loop",
    "alone": "this loop, alone",
    "beside": "this loop, recorder and window running",
}
HELD_SHARE = 0.001  # of the periods that may be missed where a rate counts as held

Ticks = NDArray[np.float64]


@dataclass(frozen=True)
class Plan:
    """Duration: at each rate, `rounds` turns of `n_s` seconds for each variant."""

    rounds: int
    n_s: float
    rates_Hz: Sequence[int] = RATES_HZ


def compiler() -> str | None:
    """The system's C compiler, if there is one."""
    return shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


def measure(plan: Plan, folder: Path, *, progress: bool = False) -> dict[str, object]:
    """All figures; times in s. Temporary programs and recordings are in the folder."""
    program = _compiled(folder)
    cpu = max(cpus())  # where `realtime.prepared` puts the loop
    runs: dict[tuple[int, str], list[Ticks]] = {}
    answers: dict[str, list[Figures]] = {"alone": [], "beside": []}
    variants = [variant for variant in VARIANTS if program is not None or variant != "c"]
    with _witnesses(program, folder) as stalls, _worker(folder) as worker, _window() as drawn:
        with drawn.shown(True):  # load and compile everything first
            worker.run(1000, 100, recorded=False)
        for i in range(plan.rounds):
            for rate_Hz in plan.rates_Hz:
                for variant in variants if i % 2 == 0 else variants[::-1]:
                    if progress:
                        print(f"\r{rate_Hz} Hz, {VARIANTS[variant]:<45}", end="", file=sys.stderr)
                    n_ticks = round(rate_Hz * plan.n_s)
                    if variant == "c":
                        ticks = _run_c(program, cpu, rate_Hz, n_ticks, folder)
                    else:
                        with drawn.shown(variant == "beside"):
                            ticks, answer = worker.run(rate_Hz, n_ticks, variant == "beside")
                        answers[variant].append(answer)
                    runs.setdefault((rate_Hz, variant), []).append(ticks)
    if progress:
        print(f"\r{'':60}\r", end="", file=sys.stderr)
    spans = np.array(sorted((t[0, 0], t[-1, 1]) for turns in runs.values() for t in turns))
    within = {n: s[overlapping(s[:, 0], s[:, 1], spans)] for n, s in stalls.items()}
    here = within.get(cpu, np.empty((0, 2)))
    return {
        "cpu": cpu,
        "c_compiler": compiler(),
        "granted": answers["alone"][0]["granted"],
        "spin_s": realtime.spin_s(None, 0.001),
        "window": drawn.text,
        "rows_lost": sum(answer["lost"] for answer in answers["beside"]),
        "stall_s": STALL_S,
        "stalls": {
            str(n): {"n": len(s), "longest_s": float(np.diff(s).max(initial=0.0))}
            for n, s in within.items()
        },
        "loops": [
            {"rate_Hz": rate_Hz, "variant": variant,
             **figures(runs[rate_Hz, variant], 1.0 / rate_Hz, here)}
            for rate_Hz in plan.rates_Hz for variant in variants
        ],
        "stages_s": {
            stage: statistics.median(answer["stages_s"][stage] for answer in answers["alone"])
            for stage in answers["alone"][0]["stages_s"]
        },
    }  # fmt: skip


def figures(parts: Sequence[Ticks], period_s: float, stalls: Ticks) -> dict[str, object]:
    """Lateness and missed periods of some runs, over all ticks and over those free of stalls.

    Parameters
    ----------
    parts : arrays (n, 2 or 3) of deadline, wake-up and, where known, work of every tick
    stalls : (m, 2) array of their begin and end, in order of time
    """
    late, spoilt, missed, missed_free, busy = [], [], 0, 0, []
    for ticks in parts:
        deadline_s, woke_s = ticks[:, 0], ticks[:, 1]
        late.append(woke_s - deadline_s)
        busy.append(ticks[:, 2] if ticks.shape[1] > 2 else np.full(len(ticks), np.nan))
        # Whatever happens after the previous deadline can make a tick late.
        before_s = np.concatenate((deadline_s[:1] - period_s, deadline_s[:-1]))
        hit = overlapping(before_s, woke_s, stalls)
        spoilt.append(hit)
        skipped = np.rint(np.diff(deadline_s, prepend=before_s[:1]) / period_s).astype(int) - 1
        passed = (late[-1] > period_s).astype(int)
        missed += int((skipped + passed).sum())
        missed_free += int((skipped + passed)[~hit].sum())
    late_s, hit, busy_s = np.concatenate(late), np.concatenate(spoilt), np.concatenate(busy)
    n_periods = len(late_s) + missed
    free_s = late_s[~hit]
    return {
        "periods": n_periods,
        "spoilt": int(hit.sum()),
        "raw": {**_quantiles(late_s), "missed": missed},
        "stall_free": {**_quantiles(free_s), "missed": missed_free},
        "held": missed_free <= HELD_SHARE * n_periods,
        "busy_p50_s": float(np.median(busy_s)) if len(busy_s) else float("nan"),
    }


def overlapping(begin_s: Ticks, end_s: Ticks, stalls: Ticks) -> NDArray[np.bool_]:
    """Whether a stall overlaps each interval; stalls are sorted and disjoint."""
    if not len(stalls):
        return np.zeros(len(begin_s), dtype=bool)
    following = np.searchsorted(stalls[:, 1], begin_s)
    has_next = following < len(stalls)
    begins = stalls[np.minimum(following, len(stalls) - 1), 0]
    hit: NDArray[np.bool_] = has_next & (begins <= end_s)
    return hit


def as_text(report: Figures) -> str:
    """The figures as a table, stall-free first and the raw ones in brackets, in us."""
    lines = [
        f"late at wake-up in us, stall-free (raw); in turns on CPU {report['cpu']}; "
        f"{report['granted']['priority']}, memory {report['granted']['memory']}; "
        f"spin at 1 kHz {1e6 * report['spin_s']:.0f} us",
        f"{'rate':>7}  {'':<40}{'p50':>12}{'p99':>14}{'p99.9':>16}{'max':>16}{'missed':>18}",
    ]
    for row in report["loops"]:
        free, raw = row["stall_free"], row["raw"]
        cells = [
            f"{1e6 * free[key]:.0f} ({1e6 * raw[key]:.0f})"
            for key in ("p50_s", "p99_s", "p999_s", "max_s")
        ]
        missed = f"{free['missed']} ({raw['missed']}) of {row['periods']}"
        lines.append(
            f"{row['rate_Hz']:>4} Hz  {VARIANTS[row['variant']]:<40}{cells[0]:>12}{cells[1]:>14}"
            f"{cells[2]:>16}{cells[3]:>16}{missed:>22}"
        )
    if report["c_compiler"] is None:
        lines.append("C loop: not measured, this machine has no C compiler: apt-get install gcc;")
        lines.append("without it stalls of the machine are not marked either")
    for cpu, stalls in report["stalls"].items():
        lines.append(
            f"CPU {cpu} stalled {stalls['n']} times for more than "
            f"{1e6 * report['stall_s']:.0f} us during the runs, for at most "
            f"{1e3 * stalls['longest_s']:.2f} ms"
        )
    lines.append(f"in parallel: recorder ({report['rows_lost']} rows lost), {report['window']}")
    return "\n".join(lines)


def _quantiles(late_s: Ticks) -> dict[str, float]:
    if not len(late_s):
        return dict.fromkeys(("p50_s", "p99_s", "p999_s", "max_s"), float("nan"))
    p50, p99, p999 = np.quantile(late_s, (0.5, 0.99, 0.999))
    return {"p50_s": p50, "p99_s": p99, "p999_s": p999, "max_s": float(late_s.max())}


def _compiled(folder: Path) -> Path | None:
    """The compiled C loop; None without a compiler."""
    cc = compiler()
    if cc is None:
        return None
    program = folder / "reference_loop"
    command = [cc, "-std=gnu11", "-O2", "-o", str(program), str(SOURCE)]
    subprocess.run(command, check=True)
    return program


def _run_c(program: Path | None, cpu: int, rate_Hz: int, n_ticks: int, folder: Path) -> Ticks:
    out = folder / "c.ticks"
    spin_ns = round(1e9 * realtime.spin_s(None, 1.0 / rate_Hz))
    words = [cpu, realtime.PRIORITY, round(1e9 / rate_Hz), spin_ns, n_ticks, -1, out]
    subprocess.run([str(program), *map(str, words)], check=True, stdout=subprocess.DEVNULL)
    return _read(out)


def _read(path: Path) -> Ticks:
    return 1e-9 * np.fromfile(path, dtype="<i8").reshape(-1, 2)


@contextlib.contextmanager
def _witnesses(program: Path | None, folder: Path) -> Iterator[dict[int, Ticks]]:
    """Watch every CPU; returns begin and end of its stalls afterwards, by CPU."""
    stalls: dict[int, Ticks] = {}
    if program is None:
        yield stalls
        return
    words = [WITNESS_PRIORITY, round(1e9 * WITNESS_PERIOD_S), 0, 0, round(1e9 * STALL_S)]
    processes = {
        cpu: subprocess.Popen(
            [str(program), str(cpu), *map(str, words), str(folder / f"witness{cpu}")],
            stdout=subprocess.DEVNULL,
        )
        for cpu in cpus()
    }
    try:
        yield stalls
    finally:
        for process in processes.values():
            process.terminate()
        for process in processes.values():
            process.wait()
    stalls.update({cpu: _read(folder / f"witness{cpu}") for cpu in processes})


class _Worker:
    """The loop under test in a separate process, `hil.bench.worker`."""

    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        self._process = process
        self._folder = folder

    def run(self, rate_Hz: int, n_ticks: int, recorded: bool) -> tuple[Ticks, dict[str, object]]:
        out = self._folder / "ticks.npy"
        order = {
            "period_s": 1.0 / rate_Hz,
            "n_ticks": n_ticks,
            "recorded": str(self._folder / "beside.h5") if recorded else None,
            "out": str(out),
        }
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise ValueError("the worker has no pipes")
        print(json.dumps(order), file=stdin, flush=True)
        answer = stdout.readline()
        if not answer:
            raise RuntimeError(f"the loop under test ended with {self._process.wait()}")
        return np.load(out), json.loads(answer)


@contextlib.contextmanager
def _worker(folder: Path) -> Iterator[_Worker]:
    # It ends when its standard input is closed at the end of the block.
    with subprocess.Popen(
        [*PYTHON, "-m", "hil.bench.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield _Worker(process, folder)


class _Window:
    """A window that draws off screen, if it is installed; it is stopped while not shown."""

    def __init__(self, process: subprocess.Popen[bytes] | None) -> None:
        self._process = process
        self.text = "the window is not installed" if process is None else "a window drawing live"

    @contextlib.contextmanager
    def shown(self, wanted: bool) -> Iterator[None]:
        """Show it within the block, if wanted."""
        if self._process is None or not wanted:
            yield
            return
        for process in family(self._process.pid):
            process.resume()
        try:
            yield
        finally:
            for process in family(self._process.pid):
                process.suspend()


@contextlib.contextmanager
def _window() -> Iterator[_Window]:
    if not window.is_installed():
        yield _Window(None)
        return
    process = subprocess.Popen(
        [*PYTHON, "-m", "hil_gui.speed", "forever"],
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield _Window(process)
    finally:
        for one in family(process.pid):
            one.kill()
        process.wait()
