"""`hil bench`: measures speed on this machine."""

import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from hil import bundled_configs
from hil.bench import board as bench_board
from hil.bench import catalogue as bench_catalogue
from hil.bench import daq as bench_daq
from hil.bench import long as bench_long
from hil.bench import page as bench_page
from hil.bench import plugin as bench_plugin
from hil.bench import realtime as bench_realtime
from hil.bench import recorder as bench_recorder
from hil.bench import unit as bench_unit
from hil.bench import window as bench_window
from hil.bench.table import as_table
from hil.config.values import Figures
from hil.errors import ConfigError, remedy
from hil.experiment.kind import BenchPart
from hil.experiment.load import load
from hil.experiment.registry import bench_parts, loaded
from hil.loop.stopwatch import STAGES
from hil.platform.processes import PYTHON
from hil.record.read import open_run
from hil.runs import session
from hil.runs.plan import Plan
from hil.runs.recording import Output
from hil.runs.simulate import simulated

REPEATS = 5
SLOW_TRIAL = ("loop.period_s=0.01", "experiment.duration_s=16.0", "devices.board.hold_s=0.1")
QUICK = ("start_up", "virtual_run", "real_time", "recorder")
USUAL = (*QUICK, "own", "unit", "board", "daq", "window", "catalogue")
EXTENT_NAMES = ("quick", "usual", "full")


@dataclass(frozen=True)
class Extent:
    """Default parts and their length: of the loops, of the recorder in s, a board's exchanges."""

    name: str
    loops: bench_realtime.Plan
    recorder_s: float
    exchanges: int

    @property
    def parts(self) -> Sequence[str]:
        """Parts that are measured by default, then those of installed packages."""
        covered = EXTENT_NAMES[: EXTENT_NAMES.index(self.name) + 1]
        always = {"quick": QUICK, "usual": USUAL, "full": (*USUAL, "page", "long")}[self.name]
        names = (name for name, part in bench_parts().items() if part.extent in covered)
        return *always, *names


EXTENTS = {
    "quick": Extent("quick", bench_realtime.Plan(1, 0.5, (1000, 4000)), 2.0, 1000),
    "usual": Extent("usual", bench_realtime.Plan(2, 0.5), 3.0, 2000),
    # A million ticks at 1 kHz, and ten minutes of recording: most of three hours.
    "full": Extent("full", bench_realtime.Plan(50, 20.0), 600.0, 100_000),
}
WINDOW_S = 3.0


def measure(
    extent: str = "usual", only: Sequence[str] = (), *, progress: bool = False
) -> dict[str, object]:
    """The figures of an extent's parts, or of these parts only; times in s.

    Raises
    ------
    ConfigError
        There is no such part.
    """
    plan = EXTENTS[extent]
    figures: dict[str, object] = {"extent": extent}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        parts: dict[str, Callable[[], object]] = {
            "start_up": _start_up,
            "virtual_run": lambda: _virtual_run(folder),
            "real_time": lambda: bench_realtime.measure(plan.loops, folder, progress=progress),
            "recorder": lambda: bench_recorder.measure(plan.recorder_s),
            "own": lambda: bench_plugin.measure(folder),
            "unit": lambda: bench_unit.measure(folder),
            "board": lambda: bench_board.measure(plan.exchanges),
            "daq": bench_daq.measure,
            "window": lambda: bench_window.measure(WINDOW_S),
            "page": lambda: bench_page.measure(folder),
            "catalogue": lambda: bench_catalogue.measure(folder),
            "long": lambda: bench_long.measure(folder),
        } | {name: partial(_measured, part) for name, part in bench_parts().items()}
        for part in only:
            if part not in parts:
                raise ConfigError(f"--only {part}: unknown{remedy(part, parts)}")
        for part, measured in parts.items():
            if part in (only or plan.parts):
                figures[part] = measured()
    return figures


def _measured(part: BenchPart) -> object:
    return loaded(part.measure)()


def as_text(figures: Figures) -> str:
    """The figures as tables."""
    tables: dict[str, Callable[[Any], str]] = {
        "start_up": _start_up_text,
        "virtual_run": lambda tick: _tick_text(tick, figures.get("real_time")),
        "real_time": bench_realtime.as_text,
        "recorder": bench_recorder.as_text,
        "own": bench_plugin.as_text,
        "unit": bench_unit.as_text,
        "board": bench_board.as_text,
        "daq": bench_daq.as_text,
        "window": bench_window.as_text,
        "page": bench_page.as_text,
        "catalogue": bench_catalogue.as_text,
        "long": bench_long.as_text,
    }
    tables |= {name: loaded(part.as_text) for name, part in bench_parts().items()
               if name in figures}  # fmt: skip
    return "\n\n".join(text(figures[part]) for part, text in tables.items() if part in figures)


def _start_up_text(start: dict[str, float]) -> str:
    return as_table(
        [
            ("hil --help", f"{1e3 * start['help_s']:.0f} ms", "below 500 ms"),
            ("bare interpreter", f"{1e3 * start['bare_s']:.0f} ms", ""),
        ]
    )


def _tick_text(virtual: Figures, real: Figures | None) -> str:
    rows = [
        ("miga6, 5 s on the virtual clock", f"{virtual['loop_s']:.3f} s", "below 1 s"),
        ("  tick, median", f"{1e6 * virtual['tick_p50_s']:.1f} us", "below 20 us"),
    ]
    for name, stage_s in virtual["stages_s"].items():
        asleep = "" if real is None else f"{1e6 * real['stages_s'][name]:.1f} us on the real clock"
        rows.append((f"    {name}", f"{1e6 * stage_s:.1f} us", asleep))
    cpu, trials = f"{virtual['trial_s']:.3f} s of a processor", f"{virtual['trials_per_s']:.1f} /s"
    rows.append(("  8 s under PID, in memory", cpu, "below 0.15 s"))
    rows.append(("  trials of 16 s at 10 ms, a core", trials, "20 /s or more"))
    return as_table(rows)


def _start_up() -> dict[str, float]:
    return {
        "help_s": _whole_process([*PYTHON, "-m", "hil", "--help"]),
        "bare_s": _whole_process([*PYTHON, "-c", "pass"]),
    }


def _whole_process(command: list[str]) -> float:
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def _experiment() -> Path:
    return bundled_configs.root() / "configs" / "miga6" / "all_on.toml"


def _trial_s(sets: Sequence[str] = ()) -> float:
    """Processor time of a trial in memory, from its file to its figures; median."""
    times = []
    for _ in range(REPEATS):
        began = time.process_time()
        simulated(Plan(load(_experiment().with_name("pid.toml"), sets)), ["force_measured_N"])
        times.append(time.process_time() - began)
    return statistics.median(times)


def _virtual_run(folder: Path) -> dict[str, object]:
    loops_s = []
    config = load(_experiment())
    for i in range(REPEATS):
        result = session.run(Plan(config), Output(out=folder / f"virtual{i}.h5"))
        loops_s.append(result.summary["loop_s"])
    run = open_run(result.path)
    return {
        "loop_s": statistics.median(loops_s),
        "trial_s": _trial_s(),
        "trials_per_s": 1.0 / _trial_s(SLOW_TRIAL),
        "tick_p50_s": float(run.busy_s.median()),
        "stages_s": {name: float(run[f"{name}_stage_s"].median()) for name in STAGES},
    }
