"""`hil bench`, the index of runs: making it, adding to it, and questions to 10 000 rows of it.

The recordings are one of `configs/miga6/pid.toml` under many names.
"""

import json
import os
import statistics
import subprocess
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from hil import bundled_configs
from hil.bench.table import as_table
from hil.config.values import Figures
from hil.experiment.load import load
from hil.platform import window
from hil.platform.processes import PYTHON
from hil.runs import session
from hil.runs.catalogue import index
from hil.runs.catalogue.query import Catalogue, Filter
from hil.runs.plan import Plan
from hil.runs.recording import Output

RECORDINGS, TIMES, COLUMNS = 1000, 10, 80
REPEATS = 5


def measure(folder: Path) -> dict[str, object]:
    """Times of the index; empty without DuckDB."""
    if find_spec("duckdb") is None:
        return {}
    import duckdb

    config = load(bundled_configs.root() / "configs" / "miga6" / "pid.toml")
    recording = session.run(Plan(config), Output(out=folder / "one.h5")).path
    runs = folder / "many"
    _link(recording, runs / "0")
    began = time.perf_counter()
    Catalogue(runs, rebuild=True)
    rebuild_s = time.perf_counter() - began
    for i in range(1, TIMES):
        _link(recording, runs / str(i))
    file = runs / index.NAME / index.FILE
    several = f"""
        COPY (SELECT * REPLACE (i || substr(path, 2) AS path,
                                substr(md5(i || path), 1, 16) AS identity,
                                rms_N * (1.0 + hash(i || path) % 1000 / 1000.0) AS rms_N)
              FROM read_parquet('{file}'), range({TIMES}) AS times(i)) TO '{file}.more'
              (FORMAT parquet)
    """
    duckdb.connect().execute(several)
    os.replace(f"{file}.more", file)
    catalogue = Catalogue(runs)
    columns = tuple(catalogue.columns[:COLUMNS])
    wanted = Filter(
        where="rms_N < 1.05 * (SELECT min(rms_N) FROM runs) AND controller_kind = 'pid'",
        columns=columns,
    )
    return {
        "rows": catalogue.sql("SELECT count(*) FROM runs").rows[0][0],
        "rebuild_s": rebuild_s,
        "filter_s": _median_s(lambda: catalogue.find(wanted)),
        "command_s": _command_s(runs, folder / "compiled"),
        "add_s": _median_s(lambda: index.add(runs / "0" / "0.h5")),
        **_in_the_window(runs),
    }


def _in_the_window(folder: Path) -> dict[str, object]:
    """Time of the window's list, drawn off screen; empty if the window is not installed."""
    if not window.is_installed():
        return {}
    done = subprocess.run(
        [*PYTHON, "-m", "hil_gui.speed", "runs", str(folder)],
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen"},
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(json.loads(done.stdout))


def _link(recording: Path, folder: Path) -> None:
    folder.mkdir(parents=True)
    for i in range(RECORDINGS):
        os.link(recording, folder / f"{i}.h5")


def _command_s(folder: Path, compiled: Path) -> float:
    """Time of `hil runs`, with modules that an earlier start has compiled."""
    words = [*PYTHON, "-m", "hil", "runs", "--folder", str(folder), "--limit", "40"]
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(compiled)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def command() -> None:
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL, env=environment)

    command()
    return _median_s(command)


def _median_s(action: Callable[[], object]) -> float:
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        action()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def as_text(figures: Figures) -> str:
    """The figures as a table."""
    if not figures:
        return "index of runs: not measured without the extra 'catalogue'"
    rows = [
        (f"index of {RECORDINGS} recordings, from the files", f"{figures['rebuild_s']:.1f} s",
         "below 20 s"),
        (f"filter of {figures['rows']} runs, {COLUMNS} columns",
         f"{1e3 * figures['filter_s']:.0f} ms", "below 50 ms"),
        ("  hil runs, in all", f"{figures['command_s']:.2f} s", "below 0.4 s"),
        ("  adding the row of a run", f"{1e3 * figures['add_s']:.1f} ms", "below 20 ms"),
    ]  # fmt: skip
    if "list_s" in figures:
        rows.append(("  in the window's list", f"{figures['list_s']:.2f} s", "below 0.3 s"))
    return as_table(rows)
