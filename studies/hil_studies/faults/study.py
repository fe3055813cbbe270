"""`hil study faults`: trips every interlock by an injected fault and measures the reaction time.

A fault enters at the plant, a pin, the protocol or a process (`hil.devices.injection`). The
reaction time runs from the injection to the end of the last period in which a gate was on. It
includes the time that a condition takes to build up and must persist. It is measured at the gates
on the plant's clock, outside loop and guard.
"""

import tempfile
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field

from hil import bundled_configs
from hil.config.table import Table
from hil.devices.board.protocol import fault_names
from hil.devices.injection import Injection
from hil.devices.injection_tables import FaultTable
from hil.errors import ConfigError, DeviceError
from hil.experiment.load import load
from hil.loop.guard import names_of
from hil.pages.study import as_markdown, check
from hil.platform.parallel import on_all_cores
from hil.platform.whole_files import write_whole
from hil.record.progress import count_progress
from hil.record.read import open_run
from hil.record.repair import faults_of, recover
from hil.rig.instruments import boards_of
from hil.runs import session
from hil.runs.plan import Plan
from hil.runs.recording import Output

NO_TIME_S = 1e-9  # no fault is injected: the run itself exceeds a limit
AFTER_S = 0.2  # simulated time of the plant after the run
SAID_BEFORE = {"config_mismatch": "limits", "device_failed": "held by another"}  # a run
COLUMNS = ["row", "who", "fault", "tripped", "gates off after", "until due", "bound", "all off",
           "recording whole"]  # fmt: skip
ALIGNED = ["---"] * 4 + ["---:"] * 3 + ["---"] * 2


class Values(Table):
    """Device backend into which the faults are injected."""

    backend: Literal["sim", "emulated"] = "sim"


class Scenario(FaultTable):
    """A fault and the required reaction; `scenarios.toml` explains the keys."""

    row: str
    due_s: float
    at_s: float = 0.8
    where: str = "loop"
    rig: str = "miga6/all_on.toml"
    sets: list[str] = Field(default_factory=list)
    bound_s: float = 0.002
    clock: str = "virtual"
    also: list[FaultTable] = Field(default_factory=list)
    backends: list[str] = Field(default_factory=lambda: ["sim", "emulated"])


_FILE = Path(__file__).with_name("scenarios.toml")
SCENARIOS = tuple(
    Scenario.model_validate(row)
    for row in tomllib.loads(_FILE.read_text(encoding="utf-8"))["scenario"]
)


def run(out: Path, values: Values) -> dict[str, Any]:
    """Run all scenarios; returns rows and checks, and writes the rows as a table to faults.md."""
    chosen = [i for i, s in enumerate(SCENARIOS) if values.backend in s.backends]
    # What depends on the computer's own clock runs first, alone.
    first = sorted(chosen, key=lambda i: SCENARIOS[i].clock == "virtual")
    row_of = {}
    with count_progress("faults", len(chosen), wanted=True) as done:
        for (i, _), row in on_all_cores([(i, values.backend) for i in first], _injected):
            row_of[i] = row
            done(1)
    rows = [row_of[i] for i in chosen]
    left_out = sorted({s.row for s in SCENARIOS} - {SCENARIOS[i].row for i in chosen})
    notes = [
        "Gates off after: time from the fault until the last gate is off, in whole periods of 1 ms "
        "on the plant's clock; nothing is subtracted. Until due: the longest share of it in which "
        "the condition builds up, persists and is sampled. The bound covers both.",
        f"backend {values.backend}: {len(rows)} injections"
        + (f"; not possible there: {', '.join(left_out)}" if left_out else ""),
    ]
    text = "\n".join([*notes, "", *as_markdown(COLUMNS, [_row(row) for row in rows], ALIGNED), ""])
    write_whole(out / "faults.md", text)
    return {
        "title": f"Every interlock, tripped by a fault ({values.backend})",
        "rows": rows,
        "checks": [
            check(
                f"{row['where']}: {row['row']} by {row['fault']}",
                1e3 * row["reaction_s"],
                f"<= {1e3 * row['bound_s']:g}",
                "ms",
                agrees=row["passes"],
            )
            for row in rows
        ],
        "notes": notes,
        "figures": [],
    }


def _row(r: dict[str, Any]) -> list[str]:
    causes = r["board_faults"] if r["where"] == "board" else r["tripped"]
    times = [f"{1e3 * r[key]:.0f} ms" for key in ("reaction_s", "due_s", "bound_s")]
    held = ["yes" if r[key] else "NO" for key in ("all_off", "recording_whole")]
    what = ", ".join(causes) or r["ended"]
    return [f"`{r['row']}`", r["where"], r["fault"], what, *times, *held]


def _injected(number: int, backend: str) -> dict[str, Any]:
    return inject(SCENARIOS[number], backend)


def inject(scenario: Scenario, backend: str) -> dict[str, Any]:
    """Run one scenario; returns the trip causes, the reaction time and whether it passes."""
    s = scenario
    fault = FaultTable.model_validate(s.model_dump(include=set(FaultTable.model_fields)))
    injection = Injection([fault, *s.also])
    config = load(
        bundled_configs.root() / "configs" / s.rig,
        (*s.sets, f"experiment.duration_s={s.at_s + 1.0}"),
    )
    names = [*config.tables.devices]
    backends = ",".join(f"{name}={backend}" for name in names)
    ended = ""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.h5"
        try:
            session.run(
                Plan(config, injection=injection, backend=backends, clock=s.clock), Output(out=path)
            )
        except (DeviceError, ConfigError) as failure:
            ended = str(failure).replace(str(path), path.name)
        injection.go_on(AFTER_S)
        if "hil recover" in ended:
            recover(path)
        if path.is_file() and s.where != "connect":
            tripped, board_faults = _what_tripped(path, boards_of(config.tables.devices))
            text = _event(path, s)
            whole = not faults_of(path)
        else:
            tripped, board_faults, text = [], [], ended
            whole = not path.is_file() or not faults_of(path)
    if s.where == "connect":
        noticed = SAID_BEFORE.get(s.row, s.row) in ended
    elif s.kind == "recorder_killed":
        noticed = "recorder" in ended
    else:
        noticed = s.row in (board_faults if s.where == "board" else tripped)
    reaction_s = max(0.0, injection.last_on_s - s.at_s)
    bound_s = s.due_s + s.bound_s
    all_off = injection.t_s == 0.0 or injection.last_on_s < injection.t_s
    return {
        "row": s.row,
        "where": s.where,
        "backend": backend,
        "fault": " + ".join([_name(s), *(also.kind for also in s.also)]),
        "tripped": tripped,
        "board_faults": board_faults,
        "ended": ended,
        "said": text,
        "reaction_s": round(reaction_s, 6),
        "due_s": s.due_s,
        "bound_s": round(bound_s, 6),
        "all_off": all_off,
        "recording_whole": whole,
        "passes": bool(noticed and all_off and whole and reaction_s <= bound_s + 1e-9),
    }


def _name(scenario: Scenario) -> str:
    if scenario.for_s == NO_TIME_S:
        return "a run that exceeds it"
    return scenario.kind


def _event(path: Path, scenario: Scenario) -> str:
    """The recorded event of this fault: device, value and limit."""
    run = open_run(path)
    texts = map(str, run.event_text.values[run.event_level.values == "fault"])
    of_board = scenario.where == "board"
    begins = "board_fault: " if of_board else f"{scenario.row}: "
    mentions = f" {scenario.row}: " if of_board else ""
    return next((t for t in texts if t.startswith(begins) and mentions in t), "")


def _what_tripped(path: Path, boards: Iterable[str]) -> tuple[list[str], list[str]]:
    run = open_run(path)
    bits = int(run.fault_bits.values[-1]) if run.sizes["tick"] else 0
    latched = 0
    for board in boards:
        latched |= int(np.bitwise_or.reduce(run[f"{board}_fault_bits"].values))
    return names_of(bits), fault_names(latched)
