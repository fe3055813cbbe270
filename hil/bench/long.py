"""`hil bench --only long`: recordings of days: processor time and memory of what reads one.

The recording has N_ROWS rows of `configs/miga6/pid.toml`, which repeat those of a short run. Each
command is a process of its own.
"""

import os
import re
import shutil
import sys
from pathlib import Path

import h5py
import numpy as np

from hil import bundled_configs
from hil.bench.table import as_table
from hil.config.values import Figures
from hil.errors import ConfigError
from hil.experiment.load import load
from hil.platform.processes import PYTHON
from hil.record.checksums import write_checksums
from hil.record.layout import LIBVER, RECORDED
from hil.runs import session
from hil.runs.plan import Plan
from hil.runs.recording import Output

N_ROWS = 5_000_000
DAY = 86_400_000  # rows, at 1 kHz
AT_ONCE = 500_000
BARE = "hil --help"  # what every command costs
COMMANDS = {
    "report": ("report",), "figure": ("figure", "--out", "f.png"), "verify": ("verify",),
    **{kind: ("export", "--to", kind) for kind in ("parquet", "csv", "mdf", "mcap")},
}  # fmt: skip
MEMORY_MAX_MB = 1000.0


def measure(folder: Path, n_rows: int = N_ROWS) -> dict[str, object]:
    """Processor time and peak memory of every command, for n_rows rows."""
    config = load(bundled_configs.root() / "configs" / "miga6" / "pid.toml")
    short = session.run(Plan(config), Output(out=folder / "short.h5")).path
    path = folder / "long.h5"
    _repeat(short, path, n_rows)
    commands = {BARE: _cost(folder, "--help")}
    for name, (command, *rest) in COMMANDS.items():
        commands[name] = _cost(folder, command, str(path), *rest)
    with h5py.File(path, "r+") as long:
        columns = len(long["ticks"])
    return {"rows": n_rows, "columns": columns, "bytes": path.stat().st_size, "commands": commands}


def _repeat(short: Path, path: Path, n_rows: int) -> None:
    """Write a recording that repeats the rows of another one."""
    shutil.copyfile(short, path)
    with h5py.File(path, "r+", libver=LIBVER) as file:
        t_s = file["ticks/t_s"][:]
        n, period_s = len(t_s), float(t_s[1] - t_s[0])
        for name, column in file["ticks"].items():
            once = column[:]
            column.resize(n_rows, axis=0)
            for first in range(0, n_rows, AT_ONCE):
                row = np.arange(first, min(first + AT_ONCE, n_rows))
                values = once[row % n]
                if name == "t_s" or name.endswith("_t_s"):
                    values = values + (row // n) * n * period_s
                column[first : first + len(row)] = values
        counts = file[RECORDED][:]
        counts[0] = n_rows
        file[RECORDED][:] = counts
        lasts = f"duration_s = {n_rows * period_s}"
        file.attrs["experiment"] = re.sub(
            r"(?m)^duration_s = .*$", lasts, str(file.attrs["experiment"]), count=1
        )
        write_checksums(file)


def _cost(folder: Path, *words: str) -> dict[str, float]:
    """Processor time and peak memory of a command of hil."""
    if sys.platform == "win32":
        raise ConfigError("hil bench: part long needs Linux or macOS: choose another with --only")
    pid = os.fork()
    if not pid:
        os.chdir(folder)
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
        os.execv(PYTHON[0], [*PYTHON, "-m", "hil", *words])
    _, status, used = os.wait4(pid, 0)
    if status:
        raise RuntimeError(f"hil {' '.join(words)}: ended with {os.waitstatus_to_exitcode(status)}")
    return {"processor_s": used.ru_utime + used.ru_stime, "peak_MB": used.ru_maxrss / 1024.0}


def as_text(figures: Figures) -> str:
    """A row a command: for the rows that were measured, and for those of a day."""
    n, bare = figures["rows"], figures["commands"][BARE]["processor_s"]
    rows = []
    for name, cost in figures["commands"].items():
        figure = f"{cost['processor_s']:.1f} s, {cost['peak_MB']:.0f} MB"
        taken_s = max(cost["processor_s"] - bare, 1e-9)
        speed = f"{n / taken_s / 1e6:.2f} M rows/s, a day {taken_s * DAY / n / 60:.1f} min"
        rows.append((name, figure, "" if name == BARE else f"{speed}; below {MEMORY_MAX_MB:g} MB"))
    head = f"long recordings, {n} rows x {figures['columns']} columns, processor time and memory"
    return f"{head}\n{as_table(rows)}"
