"""`hil board bring-up`: guides through the steps, judges each, and writes the board's record.

Every reading is in a journal before the next step, so the same command goes on where it stopped.
A failure ends it at once, with everything off; the stage in which it happened is repeated, since
whoever repairs a board changes it.
"""

import contextlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hil.calibration.files import files_in, load_any
from hil.calibration.write import raw_table, values_table
from hil.devices.board import fuses, protocol
from hil.devices.board.bundled_firmware import ARDUINO
from hil.devices.board.emulated import EmulatedBoard
from hil.devices.board.identity import serial_of
from hil.devices.board.ineffective import without_effect
from hil.devices.board.native import NativeBoard
from hil.devices.board.port import Port, SerialPort
from hil.errors import ConfigError, DeviceError
from hil.loop.requests import Stop
from hil.procedures.bring_up.bench import Chip, SimulatedBench, check_faults
from hil.procedures.bring_up.judge import Failure, Reading, failure
from hil.procedures.bring_up.line import Line
from hil.procedures.bring_up.people import Guided, Person, Rehearsing, tell
from hil.procedures.bring_up.setup import Setup, of_port, of_rig
from hil.procedures.bring_up.steps import Act, connections, steps_of
from hil.procedures.procedure import Journal, Readings, Step, gather
from hil.procedures.run import Done, remove_rehearsal, written
from hil.procedures.session_file import software_used
from hil.runs.opened import interrupted_by_signals, stop_on_signals

KIND = "bring_up"
RATIO, CURRENT = "current_ratio", "current_A"  # names of the record's values
EQUATIONS = {
    True: "current by the ammeter = current_ratio.n times the board's, gate n",
    False: "current_A.n by the ammeter, gate n",
}
UNITS = {"current": "A"}
METHOD = "hil board bring-up"
VALID_DAYS = 365
METER_SHARE = 0.01  # half-width of the error of a hand meter, of its reading; assumed uniform
REHEARSED_SERIAL = 1
BACKENDS = ("emulated", "sim")
TABLE = "limits"  # key of the board's own table in the journal


@dataclass(frozen=True)
class BringUpRequest:
    """Arguments of the command line.

    Attributes
    ----------
    rig : RIG.toml, or None for a board without one
    by : the operator, who signs
    meter : the meter, with its serial number
    faults : that a rehearsal has in its wiring
    backend : of a rehearsal: `emulated`, the chip, or `sim`, its code compiled for this machine
    """

    rig: Path | None = None
    port: str | None = None
    board: str | None = None
    by: str = ""
    meter: str = ""
    load_Ohm: float | None = None
    supply_V: float | None = None
    sets: tuple[str, ...] = ()
    out: Path | None = None
    undo: int = 0
    rehearse: bool = False
    faults: tuple[str, ...] = ()
    backend: str = "emulated"
    seed: int = 0


@dataclass(frozen=True)
class Failed:
    """Where a bring-up ended, and why."""

    key: str
    failure: Failure
    journal: Path | None

    def as_text(self) -> str:
        again = f"; the same command then repeats this stage ({self.journal})"
        return (
            f"{self.key} FAILED: {self.failure.what}\n"
            f"check first: {self.failure.check}\n"
            "every gate is off and the board disarmed: switch the cells' supply off, and leave "
            f"no wire connected{again if self.journal else ''}"
        )


class _FailedError(Exception):
    def __init__(self, step: Act, cause: Failure) -> None:
        super().__init__(cause.what)
        self.step, self.cause = step, cause


def bring_up(request: BringUpRequest, played: tuple[Port, Guided] | None = None) -> Done | Failed:
    """Guide through every step that the journal lacks; the record, or the step that failed.

    Parameters
    ----------
    played : another board and who works at it; by default the one at the setup's address and
        somebody at this terminal, or for a rehearsal a simulated bench

    Raises
    ------
    ConfigError
        The input is wrong, or a file cannot be written.
    DeviceError
        The board is missing, is unplugged, or is another one.
    """
    setup = _setup(request)
    truth: dict[str, float] = {}
    if played is None and request.rehearse:
        port, bench = _simulated(request, setup)
        played = port, Rehearsing(bench)
        truth = {f"{RATIO}.{i}": 1.0 / float(gain) for i, gain in enumerate(bench.gain, start=1)}
    elif played is None:
        person = Person()
        clock = person.now_s
        played = SerialPort(setup.name, setup.address, clock, clock), person
    line = Line(setup.name, *played)
    with interrupted_by_signals(), _left_alone(line) as limits:
        return _guide(request, setup, line, played[1], limits, truth)


@contextlib.contextmanager
def _left_alone(line: Line) -> Iterator[dict[str, int]]:
    """On every way out everything is off, and the board has its own table, which is yielded."""
    limits: dict[str, int] = {}
    try:
        yield limits
    except BaseException:
        with contextlib.suppress(DeviceError), stop_on_signals(Stop()):  # the first is being told
            line.leave(limits)
        raise
    else:
        with stop_on_signals(Stop()):
            line.leave(limits)


def _setup(request: BringUpRequest) -> Setup:
    if (request.rig is None) == (request.port is None):
        raise ConfigError("hil board bring-up: give either RIG.toml, or --port PORT without a rig")
    if request.faults and not request.rehearse:
        raise ConfigError("--fault belongs to --rehearse")
    if not request.rehearse and not request.by.strip():
        raise ConfigError('hil board bring-up: give --by "NAME", who signs the record')
    if not request.rehearse and not request.meter.strip():
        raise ConfigError('hil board bring-up: give --meter "MAKE AND NUMBER", for the record')
    for option, text in (("--by", request.by), ("--meter", request.meter)):
        if not text.isprintable():
            raise ConfigError(f"{option} {text!r}: give one line of plain text")
    if request.out is not None and request.out.suffix == ".journal":
        raise ConfigError(f"--out {request.out}: is the journal's name: choose another, FILE.toml")
    check_faults(request.faults)
    for option, value in (("--load", request.load_Ohm), ("--supply", request.supply_V)):
        if value is not None and not 0.0 < value < math.inf:
            raise ConfigError(f"{option} {value:g}: give a number above 0")
    if request.seed < 0:
        raise ConfigError(f"--seed {request.seed}: give a number from 0 on")
    if request.undo < 0:
        raise ConfigError(f"--undo {request.undo}: give a number from 0 on")
    if request.rig is not None:
        setup = of_rig(request.rig, request.sets, request.board, request.load_Ohm, request.supply_V)
        return replace(setup, firmware_hash=None, serial=None) if request.rehearse else setup
    assert request.port is not None
    if request.rehearse:
        raise ConfigError("--rehearse: needs a RIG.toml, whose board it plays")
    if request.board is not None:
        raise ConfigError("--board chooses a board of a RIG.toml")
    return of_port(request.port, request.load_Ohm, request.supply_V)


def _simulated(request: BringUpRequest, setup: Setup) -> tuple[Port, SimulatedBench]:
    limits = dict(setup.table)
    chip: Chip
    if request.backend == "emulated":
        emulated = EmulatedBoard(REHEARSED_SERIAL, limits, "board" if setup.measures else ARDUINO)
        port: Port = SerialPort(setup.name, emulated.url, emulated.sent_s, emulated.arrived_s)
        chip = emulated
    else:
        rng = np.random.default_rng(request.seed)
        native = NativeBoard(REHEARSED_SERIAL, limits, rng, measures=setup.measures)
        port = chip = native
    return port, SimulatedBench(chip, setup, request.faults, request.seed)


def _guide(
    request: BringUpRequest,
    setup: Setup,
    line: Line,
    guided: Guided,
    limits: dict[str, int],
    truth: dict[str, float],
) -> Done | Failed:
    """Guide through the steps of the board; `limits` gets its table once that is known."""
    identity = line.open()
    serial = serial_of(identity["serial"], setup.address)
    out = _out(request, serial)
    _earlier(out, serial)  # one that cannot be read is refused before anything is done
    if not setup.cells:
        setup = replace(setup, cells=("",) * identity["n_cells"])
    mismatch = _wrong_board(setup, identity)
    if mismatch is not None:
        return Failed("identity", mismatch, None)
    if setup.limits is not None:
        mismatch = _changed_limits(setup, identity["limits"])
        if mismatch is not None:
            return Failed("identity", mismatch, None)
        setup.check_load()
    journal = _journal(request, setup, serial, out, identity)
    setup = replace(setup, limits=_kept_table(journal, identity["limits"]))
    mismatch = _changed_limits(setup, identity["limits"])
    if mismatch is not None:
        return Failed("identity", mismatch, None)
    setup.check_load()
    limits |= setup.table
    line.use(limits)
    try:
        steps = _gathered(setup, line, guided, journal, request)
    except _FailedError as failed:
        return _ended(failed, setup, journal, request)
    except KeyboardInterrupt:
        if request.rehearse:
            journal.close()
        else:
            tell(f"{journal.path} keeps the readings: run the same command to continue")
        raise
    done = _record(request, setup, Article(serial, identity, out), journal, steps, truth)
    journal.close()
    return done


def _out(request: BringUpRequest, serial: str) -> Path:
    """The record's path; refused if it exists."""
    if request.out is not None:
        out = request.out
    elif request.rehearse:
        out = Path("runs") / f"rehearsal-{KIND}-{request.seed}.toml"
    else:
        out = Path("calibration") / f"{KIND}-{_plain(serial)}-{_today()}.toml"
    if request.rehearse:
        remove_rehearsal(out)
    if out.exists():
        raise ConfigError(f"{out}: exists already: a record is never changed: choose another --out")
    return out


def _today() -> date:
    return datetime.now(UTC).date()


def _wrong_board(setup: Setup, identity: protocol.Message) -> Failure | None:
    """Serial number, firmware, build, gates and fuses."""
    serial = serial_of(identity["serial"], setup.address)
    if setup.serial not in (None, serial):
        return Failure(
            f"it has serial {serial}, not {setup.serial}",
            "connect the board that is meant, or correct devices.BOARD.serial of the rig",
        )
    firmware_hash = identity["firmware_hash"]
    if setup.firmware_hash not in (None, firmware_hash):
        return Failure(
            f"it runs firmware {firmware_hash:08x}, not {setup.firmware_hash:08x}",
            "hil board flash PORT, or devices.BOARD.firmware of the rig",
        )
    every = sum(1 << bit for bit in protocol.FAULTS.values())
    expected = every if setup.measures else every & ~protocol.FAULTS_MEASURED
    if identity["faults_checked"] != expected:
        return Failure("its firmware is another build than the rig's", "devices.BOARD.build")
    if identity["n_cells"] < len(setup.cells):
        return Failure(
            f"it has {identity['n_cells']} gates, and the rig {len(setup.cells)} cells",
            "devices.BOARD.cells",
        )
    wrong = fuses.problems(identity["fuses"])
    if wrong and not setup.as_delivered:
        return Failure(
            f"its fuses ({fuses.as_text(identity['fuses'])}) do not protect: {'; '.join(wrong)}",
            "hil board flash PORT --programmer NAME --fuses",
        )
    return None


def _changed_limits(setup: Setup, limits: dict[str, int]) -> Failure | None:
    """The table must be the board's own, or the one for loads that a stopped bring-up has left.

    And the board's own must leave every protection its effect.
    """
    if limits in (dict(setup.table), setup.loads_table()):
        for key, text in without_effect(setup.table, measures=setup.measures):
            remedy = f"hil board limits PORT --set {key}=VALUE"
            return Failure(f"limits: {key} = {setup.table[key]}: {text}", remedy)
        return None
    key = next(key for key, value in setup.table.items() if limits[key] != value)
    return Failure(
        f"limits differ: {key} is {limits[key]} on the board, and should be {setup.table[key]}",
        f"hil board limits PORT --set {key}={setup.table[key]}",
    )


def _journal(
    request: BringUpRequest, setup: Setup, serial: str, out: Path, identity: protocol.Message
) -> Journal:
    """The journal of this board on this bench, with the board's own table."""
    beside = (
        out if request.out or request.rehearse else out.with_name(f"{KIND}-{_plain(serial)}.toml")
    )
    path = beside.with_suffix(".journal")
    if request.rehearse:
        path.unlink(missing_ok=True)
    of: dict[str, object] = {
        "kind": KIND, "serial": serial, "firmware": identity["firmware_hash"],
        "rehearse": request.rehearse, "cells": setup.cells, "limits": setup.limits,
        "load_Ohm": setup.load_Ohm, "supply_V": setup.supply_V, "estop": setup.estop,
    }  # fmt: skip
    journal = Journal(path, of)
    taken = [key for key in journal.readings if key != TABLE]
    for key in taken[::-1][: request.undo]:
        journal.undo(key)
    n = len(journal.readings.keys() - {TABLE})
    if not n:  # a board's own table may have been changed since
        journal.add(TABLE, dict(setup.limits or identity["limits"]))
    if n:
        tell(f"{journal.path}: continues after {n} steps")
    return journal


def _kept_table(journal: Journal, limits: Mapping[str, int]) -> dict[str, int]:
    """The board's own table in the journal, with the limits that the board has."""
    table = journal.readings.get(TABLE)
    if not isinstance(table, dict) or table.keys() != limits.keys():
        raise journal.damaged()
    if not all(isinstance(value, int) for value in table.values()):
        raise journal.damaged()
    return table


def _plain(serial: str) -> str:
    return "".join(c if c.isalnum() or c in "-_" else "-" for c in serial)


def _gathered(
    setup: Setup, line: Line, guided: Guided, journal: Journal, request: BringUpRequest
) -> list[Act]:
    """Take every step that the journal lacks; all of them, with nothing that failed."""
    steps = steps_of(setup)
    wired: list[str] = []  # the stage, once the bench was wired for one

    def read(step: Step, i: int) -> dict[str, object] | None:
        assert isinstance(step, Act)
        at = f"[{i + 1}/{len(steps)}]"
        if wired != [step.stage]:
            line.use(setup.table)
            guided.connect(step.stage, connections(step.stage, setup))
            wired[:] = [step.stage]
        reading = _taken(step, at, setup, line, guided)
        if reading is None:
            return None
        cause = failure(step.key, reading, setup)
        if cause is not None:
            raise _FailedError(step, cause)
        return reading

    _judge_kept(steps, journal, setup)
    gather(steps, journal, read)
    return steps


def _judge_kept(steps: Sequence[Act], journal: Journal, setup: Setup) -> None:
    """Before anything is switched on: somebody may have changed the journal."""
    for step in steps:
        if step.key not in journal.readings:
            continue
        try:
            cause = failure(step.key, journal.readings[step.key], setup)
        except (KeyError, IndexError, TypeError):
            raise journal.damaged() from None
        if cause is not None:
            raise _FailedError(step, cause)


def _taken(
    step: Act, at: str, setup: Setup, line: Line, guided: Guided
) -> dict[str, object] | None:
    """What was typed and what the board was asked for; None: undo the step before."""
    if step.marks:
        line.mark()
    if step.unit and not step.looks_first:
        typed = guided.measure(step, at)
        if typed is None:
            return None
        return {"typed": typed, **_looked(step, setup, line, guided)}
    if not step.waits:
        tell(f"{at} {step.prompt}")
    elif not guided.do(step, at):
        return None
    reading = _looked(step, setup, line, guided)
    if not step.looks_first or reading["faults"] or reading["result"] != "done":
        return reading
    typed = guided.measure(replace(step, prompt="    what the ammeter showed"), "")
    return None if typed is None else {"typed": typed, **reading}


def _looked(step: Act, setup: Setup, line: Line, guided: Guided) -> dict[str, object]:
    line.use(setup.loads_table() if step.loads_table else setup.table)
    return step.look(line, setup, guided)


def _ended(failed: _FailedError, setup: Setup, journal: Journal, request: BringUpRequest) -> Failed:
    """The stage of the failure is forgotten: whoever repairs a board changes it."""
    step, cause = failed.step, failed.cause
    if request.rehearse:
        journal.close()
        return Failed(step.key, cause, None)
    for other in steps_of(setup):
        if other.stage == step.stage and other.key in journal.readings:
            journal.undo(other.key)
    return Failed(step.key, cause, journal.path)


class Article(NamedTuple):
    """The board, and the path of its record."""

    serial: str
    identity: protocol.Message
    out: Path


def _record(
    request: BringUpRequest,
    setup: Setup,
    article: Article,
    journal: Journal,
    steps: Sequence[Act],
    truth: dict[str, float],
) -> Done:
    """Write the record, which replaces every earlier one of this board in its folder."""
    serial, identity, out = article
    readings = journal.readings
    status = "simulated" if request.rehearse else "measured"
    values, covariance = _values(setup, readings)
    today = _today()
    table = {
        "kind": KIND,
        "status": status,
        "article": {"name": "driver board", "serial": serial},
        "act": {
            "by": request.by or "rehearsal",
            "date": today,
            "valid_until": today + timedelta(days=VALID_DAYS),
            "method": METHOD,
            "standard": request.meter,
            "software": software_used(),
            "supersedes": [] if request.rehearse else _earlier(out, serial),
        },
        "model": values_table(
            "one reading a gate", values, covariance, equation=EQUATIONS[setup.measures],
            basis=["measured"] * len(values),
        ),
        "notes": {
            "firmware": f"{identity['firmware_hash']:08x}",
            "fuses": fuses.as_text(identity["fuses"]),
            "cells": ", ".join(setup.cells) if setup.cells[0] else f"{len(setup.cells)} gates",
            "load": f"{setup.load_Ohm:g} Ohm at {setup.supply_V:g} V",
            "estop": "seen to cut the supply" if setup.estop else "none",
        },
        "raw": raw_table({
            "step": [step.key for step in steps],
            "must": [step.prompt for step in steps],
            "reading": [json.dumps(readings[step.key], sort_keys=True) for step in steps],
        }),
    }  # fmt: skip
    sentences = tuple(f"{step.key}: {as_seen(step.key, readings[step.key])}" for step in steps)
    return written(out, table, {"said": sentences}, truth)


def _values(setup: Setup, readings: Readings) -> tuple[dict[str, float], NDArray[np.float64]]:
    """What the ammeter read over what the board read; of a board that measures nothing, the first.

    The variance is that of the meter's error and of a count of the board's converter, both taken
    as uniform: JCGM 100:2008 (GUM), 4.3.7, eq. (7), and 5.1.6, eq. (12).
    """
    values, variances = {}, []
    for i in range(len(setup.cells)):
        reading = readings[f"current.{i + 1}"]
        relative = METER_SHARE**2 / 3.0
        value, name = reading["typed"], CURRENT
        if setup.measures:
            board_A = reading["current_A"][i]
            relative += (setup.count_A / board_A) ** 2 / 12.0
            value, name = value / board_A, RATIO
        values[f"{name}.{i + 1}"] = value
        variances.append(relative * value**2)
    return values, np.diag(variances)


def _earlier(out: Path, serial: str) -> list[str]:
    """Hashes of this board's records in the folder."""
    hashes = []
    for path in files_in(out.parent):
        text = path.read_text(encoding="utf-8", errors="replace")
        if KIND not in text or serial not in text:
            continue
        record = load_any(path, named_by=str(path)).record
        if (record.kind, record.article.serial) == (KIND, serial) and record.status == "measured":
            hashes.append(record.hash)
    return hashes


def as_seen(key: str, reading: Reading) -> str:
    """What was seen in a step, in a few words."""
    words = []
    if "typed" in reading:
        words.append(f"{reading['typed']:g} {UNITS.get(key.partition('.')[0], 'V')} by the meter")
    if "feed_V" in reading:
        place = "rail_V" if key == "rail_dead" else "feed_V"
        words.append(f"{reading[place]:.2g} V by the board")
    if "closed" in reading:
        volts = (reading[how]["rail_V"] for how in ("closed", "opened"))
        words.append("{:.2g} V behind it closed, {:.2g} V open".format(*volts))
    if reading.get("seen") == "yes":
        words.append("open, then closed")
    if reading.get("reset_by"):
        words.append(f"reset by {reading['reset_by']}")
    for output in reading.get("outputs", []):
        words.append(f"{output['fault_cells'][0] + 1} open")
    for i, gate in enumerate(reading.get("gates", [])):
        words.append(f"{i + 1}: {gate['current_A'][i]:.3f} A")
    kind, _, number = key.partition(".")
    if kind in ("current", "wire") and any(reading["current_A"]):
        words.append(f"{reading['current_A'][int(number or 1) - 1]:.3f} A by the board")
    if reading.get("faults"):
        words.append(", ".join(reading["faults"]))
    return ", ".join(words) or "nothing latched"
