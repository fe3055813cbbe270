"""`hil study faults`: trips every interlock by an injected fault and measures the reaction time.

A fault enters at the plant, a pin, the protocol or a process (`hil.devices.injection`). The
reaction time runs from the injection to the end of the last period in which a gate was on. It
includes the time that a condition takes to build up and must persist. It is measured at the gates
on the plant's clock, outside loop and guard.
"""

import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from hil import bundled_configs
from hil.config.table import Table
from hil.devices.board.protocol import fault_names
from hil.devices.injection import Injection
from hil.devices.injection_tables import FaultTable
from hil.errors import ConfigError, DeviceError
from hil.experiment.load import load
from hil.loop.guard import names_of
from hil.record.read import open_run
from hil.record.repair import faults_of, recover
from hil.rig.instruments import boards_of
from hil.runs import session

AT_S = 0.8
AFTER_S = 0.2  # simulated time of the plant after the run
NO_TIME_S = 1e-9  # no fault is injected: the run itself exceeds a limit
LOOP_BOUND_S = 0.002
BOARD_BOUND_S = 0.002
SCAN_S = 0.004  # of the board; a condition must persist for two scans, and one may have begun


class Values(Table):
    """Device backend into which the faults are injected."""

    backend: Literal["sim", "emulated"] = "sim"


@dataclass(frozen=True)
class Scenario:
    """A fault and the required reaction.

    Attributes
    ----------
    row : row of `hil.loop.interlocks` that must be among the causes of the trip
    where : part that must detect the fault: loop, board or connect
    due_s : longest time from the fault until its condition has built up and persisted
    bound_s : longest reaction time after that
    at_s : time at which the fault begins, or the run exceeds a limit
    """

    row: str
    kind: str
    due_s: float
    where: str = "loop"
    value: float = 0.0
    rig: str = "miga6/all_on.toml"
    sets: tuple[str, ...] = ()
    bound_s: float = LOOP_BOUND_S
    clock: str = "virtual"
    for_s: float | None = None
    at_s: float = AT_S
    cell: int = 1
    device: str | None = None
    also: tuple[FaultTable, ...] = field(default_factory=tuple)
    backends: tuple[str, ...] = ("sim", "emulated")


def _board(row: str, kind: str, value: float = 0.0, **changes: Any) -> Scenario:
    due_s = changes.pop("due_s", 3 * SCAN_S)
    return Scenario(row, kind, due_s, "board", value, bound_s=BOARD_BOUND_S, **changes)


_ESTOP_LINE = 'devices.daq.lines.loop={terminal="port0/line0", kind="estop"}'
_FEW = "controller.steps=[{t_s=0.0, on=[2, 3]}]"
_ONE_OPEN = "devices.board.limits.open_cells_max=1"
_SLIDER = "slider/steps.toml"
_TWO_BOARDS = "array14/groups.toml"
_ALL = ("controller.steps=[{t_s=0.0, on='all'}]",)
_BROADCAST = "miga6/broadcast.toml"
_WIRES = "wires4/hold.toml"
_ENABLE_LINE = 'devices.daq.lines.feed={terminal="port0/line1", kind="enable"}'
_UNSEEN = "devices.board.limits.current_on_min_mA=0"
_SOON_OFF = "devices.supply.obey_max_s=0.3"
_FAST = "guard.signals.slide.rate_max_per_s=0.05"

SCENARIOS = (
    Scenario("force_high", "force_offset", 0.0, value=8.0),
    Scenario("force_nan", "sensor_nan", 0.0, backends=("sim",)),
    Scenario("reading_stale", "sensor_lost", 0.050, backends=("sim",)),
    Scenario("loop_late", "machine_stalls", 0.025, for_s=0.025),
    Scenario("cell_on_too_long", "machine_stalls", 0.0, for_s=NO_TIME_S,
             sets=("guard.cell_on_max_s=0.8",)),
    Scenario("device_failed", "port_unplugged", 0.0, bound_s=0.055),
    Scenario("recorder_dead", "recorder_killed", 0.0, bound_s=0.5, clock="real",
             sets=("loop.overrun='skip'",)),
    Scenario("board_fault", "cell_temperature", 3 * SCAN_S, value=95.0),
    Scenario("signal_out_of_range", "sensor_nan", 0.0, rig=_SLIDER, backends=("sim",)),
    Scenario("output_invalid", "controller_nan", 0.0, rig=_SLIDER),
    Scenario("estop_open", "card_estop_open", 0.0, sets=(_ESTOP_LINE,)),
    Scenario("channel_untrue", "sensor_rail", 0.0),
    # ln(1 / (1 - 60/90)) filter times, and 5 ms persistence
    Scenario("force_rate_high", "force_ramp", 0.011 + 0.005, value=90.0),
    Scenario("force_jump", "force_offset", 0.0, value=1.5),
    # 0.5 N at 5 N/s, and 0.1 s persistence
    Scenario("force_residual_high", "force_ramp", 0.1 + 0.1, value=5.0),
    Scenario("force_no_rise", "force_lost", 0.5, rig="silicone4/levels.toml",
             sets=("controller.steps=[{t_s=0.0, on=[1]}]", "guard.force_rise_min_N=0.2"),
             at_s=2.0),
    Scenario("sensor_frozen", "sensor_stuck", 0.1),
    # the slide is driven from 0.3 s on and has reached 0.05 m/s a tick later
    Scenario("signal_fast", "machine_stalls", 0.001, for_s=NO_TIME_S, rig=_SLIDER, sets=(_FAST,),
             at_s=0.3),
    Scenario("too_many_cells_on", "machine_stalls", 0.0, for_s=NO_TIME_S,
             sets=("guard.cells_on_max=3", "controller.steps=[{t_s=0.8, on='all'}]")),
    Scenario("disk_low", "machine_stalls", 0.0, for_s=NO_TIME_S, bound_s=1.0, at_s=0.0,
             sets=("guard.disk_free_min_MB=1e9",)),
    Scenario("board_silent", "board_silent", 0.050),
    Scenario("machine_slept", "machine_sleeps", 0.0, value=30.0),
    Scenario("own_code_failed", "controller_raises", 0.0),
    Scenario("supply_silent", "supply_mute", 1.0, rig=_WIRES),
    # polled every 0.1 s, answers 0.03 s later
    Scenario("supply_wrong", "supply_voltage", 0.13, value=9.0, rig=_WIRES),
    # the boards would detect the missing current first: that check is disabled here
    Scenario("supply_wrong", "supply_drops", 0.13, rig=_WIRES, sets=(_UNSEEN,)),
    Scenario("board_fault", "supply_drops", 3 * SCAN_S, rig=_WIRES),
    Scenario("supply_not_off", "supply_stays_on", 0.0, rig=_WIRES, sets=(_SOON_OFF,), also=(
        FaultTable(kind="force_offset", at_s=AT_S, value=8.0),)),
    Scenario("supply_not_off", "supply_late", 0.0, value=1.0, rig=_WIRES, sets=(_SOON_OFF,), also=(
        FaultTable(kind="force_offset", at_s=AT_S, value=8.0),)),
    # a cut line, a dead relay
    Scenario("board_fault", "enable_stuck_low", 3 * SCAN_S, sets=(_ENABLE_LINE,)),
    # the other board's cells stay on until the loop detects the reset
    Scenario("board_reset", "board_reset", 0.0, rig=_TWO_BOARDS, sets=_ALL, device="board_a"),
    Scenario("board_reset", "board_reset", 0.03, rig=_TWO_BOARDS, sets=_ALL, device="board_a",
             for_s=0.03),
    Scenario("board_reset", "board_reset", 0.0, rig=_BROADCAST),
    Scenario("board_refused", "command_refused", 0.0, for_s=0.0015),
    Scenario("board_refused", "command_refused", 0.0, bound_s=0.055),
    Scenario("board_refused", "command_refused", 0.0, rig=_BROADCAST, bound_s=0.055),
    _board("host_silent", "host_silent", due_s=0.050, for_s=0.2),
    _board("estop_open", "estop_open", due_s=0.001),
    # checked once a scan
    _board("cell_on_too_long", "machine_stalls", for_s=0.03, at_s=0.79, due_s=0.01 + SCAN_S,
           sets=("devices.board.limits.on_time_max_ms=800", "guard.cell_on_max_s=0.8",
                 "loop.overrun='skip'")),
    _board("cell_energy_high", "cell_current", 1.1, due_s=0.5,
           sets=("devices.board.limits.heat_max_cA2ms=1000000",)),
    _board("too_many_cells_on", "machine_stalls", for_s=NO_TIME_S, due_s=0.0,
           sets=("devices.board.limits.cells_on_max=3", "controller.steps=[{t_s=0.8, on='all'}]")),
    # the heat limit is above what 1.5 A gives until then
    _board("current_high", "cell_current", 1.5,
           sets=("devices.board.limits.heat_max_cA2ms=1000000",)),
    _board("current_low", "cell_current", 0.0),
    _board("current_when_off", "cell_leakage", 0.5, sets=(_FEW,)),
    # the allowed number of open cells is reached, and an isolated cell is still monitored
    _board("current_low", "wire_open", cell=2, sets=(_ONE_OPEN,), also=(
        FaultTable(kind="wire_open", at_s=0.5, cell=5),)),
    _board("current_when_off", "cell_leakage", 0.5, cell=5, sets=(_ONE_OPEN,), also=(
        FaultTable(kind="wire_open", at_s=0.5, cell=5),)),
    _board("temperature_high", "cell_temperature", 95.0),
    _board("temperature_range", "cell_temperature", -50.0),
    _board("gate_stuck", "gate_stuck_low", cell=2),
    # bit 0: the cells of a pair read alike; each reference is read once in three scans, and a scan
    # takes longer while commands arrive every millisecond
    _board("scan_untrue", "address_stuck", due_s=10 * SCAN_S),
    _board("scan_stale", "converter_dead", due_s=0.020 + SCAN_S),
    _board("limits_corrupt", "limits_spoilt", due_s=1.0),
    Scenario("config_mismatch", "limits_differ", 0.0, "connect"),
    # two faults at once
    Scenario("sensor_frozen", "sensor_stuck", 0.1, also=(
        FaultTable(kind="link_slow", at_s=AT_S),)),
    Scenario("board_silent", "board_silent", 0.050, also=(
        FaultTable(kind="force_offset", at_s=AT_S, value=0.3),)),
    _board("host_silent", "frame_torn", due_s=0.050, for_s=0.2, also=(
        FaultTable(kind="sensor_stuck", at_s=AT_S),)),
)  # fmt: skip


def run(out: Path, values: Values) -> dict[str, Any]:
    """Run all scenarios; returns rows and checks, and writes the rows as a table to faults.md."""
    chosen = [s for s in SCENARIOS if values.backend in s.backends]
    rows = [inject(scenario, values.backend) for scenario in chosen]
    left_out = sorted({s.row for s in SCENARIOS} - {s.row for s in chosen})
    notes = [
        "Gates off after: time from the fault until the last gate is off, in whole periods of 1 ms "
        "on the plant's clock; nothing is subtracted. Until due: the longest share of it in which "
        "the condition builds up, persists and is sampled. The bound covers both.",
        f"backend {values.backend}: {len(rows)} injections"
        + (f"; not possible there: {', '.join(left_out)}" if left_out else ""),
    ]
    (out / "faults.md").write_text(_table(rows, notes), encoding="utf-8")
    return {
        "title": f"Every interlock, tripped by a fault ({values.backend})",
        "rows": rows,
        "checks": [
            {
                "what": f"{row['where']}: {row['row']} by {row['fault']}",
                "value": 1e3 * row["reaction_s"],
                "expected": f"<= {1e3 * row['bound_s']:g}",
                "unit": "ms",
                "agrees": row["passes"],
            }
            for row in rows
        ],
        "notes": notes,
        "figures": [],
    }


def _table(rows: list[dict[str, Any]], notes: list[str]) -> str:
    lines = [
        *notes,
        "",
        "| row | who | fault | tripped | gates off after | until due | bound | all off "
        "| recording whole |",
        "|---|---|---|---|---:|---:|---:|---|---|",
    ]
    for r in rows:
        found = r["board_faults"] if r["where"] == "board" else r["tripped"]
        what = ", ".join(found) or r["ended"]
        lines.append(
            f"| `{r['row']}` | {r['where']} | {r['fault']} | {what} | "
            f"{1e3 * r['reaction_s']:.0f} ms | {1e3 * r['due_s']:.0f} ms | "
            f"{1e3 * r['bound_s']:.0f} ms | "
            f"{'yes' if r['all_off'] else 'NO'} | {'yes' if r['recording_whole'] else 'NO'} |"
        )
    return "\n".join([*lines, ""])


def inject(scenario: Scenario, backend: str) -> dict[str, Any]:
    """Run one scenario; returns the trip causes, the reaction time and whether it passes."""
    s = scenario
    fault = FaultTable.model_validate(
        {
            "kind": s.kind,
            "at_s": s.at_s,
            "value": s.value,
            "for_s": s.for_s,
            "cell": s.cell,
            "device": s.device,
        }
    )
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
            session.run(config, out=path, injection=injection, backend=backends, clock=s.clock)
        except (DeviceError, ConfigError) as failure:
            ended = str(failure).replace(str(path), path.name)
        injection.go_on(AFTER_S)
        if "hil recover" in ended:
            recover(path)
        if path.is_file() and s.where != "connect":
            tripped, board_faults = _what_tripped(path, boards_of(config.tables.devices))
            said = _said(path, s)
            whole = not faults_of(path)
        else:
            tripped, board_faults, whole, said = [], [], not path.is_file(), ended
    if s.where == "connect":
        noticed = "limits" in ended
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
        "said": said,
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


def _said(path: Path, scenario: Scenario) -> str:
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
