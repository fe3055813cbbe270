"""`hil calibrate KIND`: takes readings, fits them and writes a record."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from hil.calibration.files import Record, load_any, parse_any
from hil.calibration.write import raw_table, signed, values_table, write_record
from hil.config.files import parse_set
from hil.config.values import Figures
from hil.errors import ConfigError, remedy
from hil.procedures.kinds import KINDS, ON_RIG, TYPED, OnRig, session_kind, template
from hil.procedures.on_rig import (
    RigUsed,
    at_rest,
    cell_of_recording,
    one_cell,
    plant_truth,
    sha256,
    simulated,
)
from hil.procedures.procedure import Journal, Read, Rehearsal, Step, Typed, ask, gather
from hil.procedures.session_file import AnySession, read_session, refuse_overlap, session_of
from hil.rig.calibrated import cards_of
from hil.rig.instruments import channels_of, device_of

REHEARSAL = "REHEARSAL"  # serial number of the templates
READ_S = 1.0  # averaging time of a channel at rest


@dataclass(frozen=True)
class CalibrationRequest:
    """Arguments of the command line.

    Attributes
    ----------
    session : the session file, or None for a rehearsal with the template
    rig : RIG.toml of the channel to read or of the cell to switch
    run : a recording that replaces a new run
    undo : number of readings to undo before continuing
    """

    kind: str
    session: Path | None = None
    sets: tuple[str, ...] = ()
    rehearse: bool = False
    seed: int = 0
    rig: Path | None = None
    run: Path | None = None
    backend: str = "sim"
    channel: str | None = None
    out: Path | None = None
    supersedes: tuple[Path, ...] = ()
    undo: int = 0


@dataclass(frozen=True)
class Done:
    """A written record, messages, and the true values of a rehearsal."""

    path: Path
    record: Record
    messages: tuple[str, ...]
    truth: dict[str, float]


def calibrate(request: CalibrationRequest) -> list[Done]:
    """Run a procedure, starting after the last reading of its journal, and write its records.

    Raises
    ------
    ConfigError
        The input is wrong, or the readings cannot be fitted.
    """
    if request.kind not in KINDS:
        hint = remedy(request.kind, (*KINDS, "literature"))
        raise ConfigError(f"calibrate '{request.kind}': unknown{hint}")
    if request.session is None and not request.rehearse:
        raise ConfigError(
            f"calibrate {request.kind}: give its session file (create it with "
            f"hil calibrate {request.kind} --template > session.toml), or --rehearse"
        )
    for option, number in (("--seed", request.seed), ("--undo", request.undo)):
        if number < 0:
            raise ConfigError(f"{option} {number}: give a number from 0 on")
    session_sets = tuple(text for text in request.sets if _is_of_the_session(text))
    rig_sets = tuple(text for text in request.sets if not _is_of_the_session(text))
    table_type = session_kind(request.kind)
    session = read_session(request.session, template(request.kind), table_type, list(session_sets))
    supersedes = [load_any(path, named_by="--supersedes") for path in request.supersedes]
    today = datetime.now(UTC).date()
    out = request.out or _default_out(request, session, today)
    if request.rehearse:
        remove_rehearsal(out)
    elif session.article.serial == REHEARSAL:
        raise ConfigError(
            f"{request.session}: article.serial = '{REHEARSAL}': give the one on its label, "
            "or --rehearse"
        )
    if out.exists():
        raise ConfigError(f"{out}: exists already: a record is never changed: choose another --out")
    act = _Act(request, session, out, supersedes, today, rig_sets)
    if request.kind in TYPED:
        return [_typed(act, TYPED[request.kind])]
    return _on_rig(act, ON_RIG[request.kind])


@dataclass(frozen=True)
class _Act:
    """The request, with the session file as read and the settings of the rig."""

    request: CalibrationRequest
    session: AnySession
    out: Path
    supersedes: list[Record]
    today: date
    rig_sets: tuple[str, ...]


def remove_rehearsal(out: Path) -> None:
    """Delete the record of an earlier rehearsal."""
    if out.is_file() and load_any(out, named_by=str(out)).record.status == "simulated":
        out.unlink()


def _is_of_the_session(text: str) -> bool:
    return next(iter(parse_set(text))) in (
        "article", "act", "conditions", "conditioner", "procedure"
    )  # fmt: skip


def _default_out(request: CalibrationRequest, session: AnySession, today: date | None) -> Path:
    serial = "".join(c if c.isalnum() or c in "-_" else "-" for c in session.article.serial)
    if request.rehearse:
        return Path("runs") / f"rehearsal-{request.kind}-{request.seed}.toml"
    dated = "" if today is None else f"-{today}"
    return Path("calibration") / f"{request.kind}-{serial}{dated}.toml"


def _typed(act: _Act, procedure: Typed[Any]) -> Done:
    request, session = act.request, act.session
    steps = procedure.steps(session)
    journal = _journal(act, [step.key for step in steps])
    rehearsal: Rehearsal | None = None
    simulated_reading = request.rehearse
    read: Read
    if request.rehearse:
        known = rehearsal = procedure.rehearsal(session, request.seed)

        def read_known(step: Step, i: int) -> float:
            return float(known.read(step, request.seed * 100_003 + i))

        read = read_known
    else:
        channel = None
        if request.rig is not None:
            channel = _resting_channel(request, act.rig_sets)
            simulated_reading = request.backend != "bench"
        read = ask(len(steps), channel)
    try:
        readings = gather(steps, journal, read)
    except KeyboardInterrupt:
        print(
            f"{journal.path} keeps the readings: run the same command to continue", file=sys.stderr
        )
        raise
    if not all(isinstance(value, int | float) for value in readings.values()):
        raise journal.damaged()
    try:
        results = procedure.finish(session, readings)
    except ConfigError as error:
        if request.rehearse:
            journal.close()
            raise
        raise ConfigError(
            f"{error} (the readings stay in {journal.path}: --undo N takes the last N back)"
        ) from None
    table = _table(act, procedure.KIND, procedure.METHOD, simulated_reading, results)
    done = written(act.out, table, results, rehearsal.truth if rehearsal else {})
    journal.close()
    return done


def _journal(act: _Act, keys: list[str]) -> Journal:
    """The journal of a session; it accepts only the same readings of the same article.

    Typed readings stay valid when the session file is corrected. Readings that a program took
    depend on the settings and are refused after a change.
    """
    request, session = act.request, act.session
    of: dict[str, object] = {
        "kind": request.kind, "serial": session.article.serial, "steps": keys,
        "how": [request.rehearse, str(request.rig), str(request.run), request.backend,
                request.channel],
    }  # fmt: skip
    if request.rehearse or request.rig is not None:
        of |= {"act": session.model_dump(mode="json"), "seed": request.seed, "sets": request.sets}
    # Without the date: a procedure may continue on the next day.
    beside = act.out if request.out or request.rehearse else _default_out(request, session, None)
    journal = Journal(beside.with_suffix(".journal"), of)
    for key in [key for key in keys if key in journal.readings][::-1][: request.undo]:
        journal.undo(key)
    if journal.readings:
        print(f"{journal.path}: continues after {len(journal.readings)} readings", file=sys.stderr)
    return journal


def _resting_channel(request: CalibrationRequest, sets: tuple[str, ...]) -> Callable[[str], float]:
    """A function that reads a channel with everything off for READ_S, in the requested unit."""
    assert request.rig is not None
    config = RigUsed(request.rig, request.backend, sets).resting()
    places = {place.name: place for place in channels_of(config.tables)}
    if request.channel not in places:
        raise ConfigError(f"--channel {request.channel}: name the one to read: {', '.join(places)}")
    place, record = places[request.channel], config.records.get(request.channel)
    device = device_of(config.tables.devices, place.name)
    card = cards_of(config.tables.devices).get(device)
    table = None if card is None else card.channels[place.name]
    if table is not None and table.kind == "encoder":
        raise ConfigError(
            f"--channel {place.name}: an encoder's counts restart whenever the card is opened: "
            "type them from one display, such as that of hil gui"
        )
    raw = "V" if getattr(table, "bridge", None) is None else "mV_per_V"
    channel_unit = place.suffix.removeprefix("_")

    def read(unit: str) -> float:
        if unit != channel_unit and table is None:
            raise ConfigError(
                f"--channel {place.name}: its instrument gives {channel_unit} alone, this "
                f"procedure needs {unit}: type what its own program shows"
            )
        if unit == channel_unit and table is not None and table.tare:
            raise ConfigError(
                f"--channel {place.name}: every reading would be its new zero, whatever hangs on "
                f"it: add --set devices.{device}.channels.{place.name}.tare=false"
            )
        wanted = place.column("measured") if unit == channel_unit else f"{place.name}.raw_{raw}"
        value = at_rest(config, request.backend, request.seed, [wanted], READ_S)[wanted]
        if unit in (channel_unit, raw, raw.replace("_per_", "/")):
            return value
        if unit == "mV/V" and record is not None:
            # Converts back to the input of the conditioner of the channel's record.
            return record.chain(bridge=False).ratio(value)
        raise ConfigError(
            f"--channel {place.name}: gives {channel_unit} and {raw}, this procedure needs {unit}"
        )

    return read


def _on_rig(act: _Act, procedure: OnRig) -> list[Done]:
    request, out, settings = act.request, act.out, act.session.procedure
    if (request.rig is None) == (request.run is None):
        raise ConfigError(
            f"calibrate {request.kind}: give either --rig RIG.toml for a new run, or --run RUN.h5"
        )
    truth: dict[str, float] = {}
    journal = _journal(act, ["recording"])
    if request.rig is not None:
        used = RigUsed(request.rig, request.backend, act.rig_sets)
        config = used.config(*settings.schedule())
        cell = one_cell(config, config.sources) if procedure.cell else None
        recording = out.with_suffix(".h5")
        step = Step("recording", "the rig runs by itself", "")
        done = gather([step], journal, lambda s, i: str(used.run(config, recording, request.seed)))
        path = Path(done["recording"])
        if not path.is_file():
            raise ConfigError(f"{path}: the recording does not exist: remove {journal.path}")
        truth = plant_truth(request.kind, config) if request.backend == "sim" else {}
    else:
        assert request.run is not None
        path = request.run
        cell = cell_of_recording(path) if procedure.cell else None
    try:
        results = procedure.finish(path, cell, settings, request.channel)
    except ConfigError:
        journal.close()  # keeps the recording for inspection; the rig can run again
        raise
    records = []
    for name, values in results.items():
        values["files"] = {path.name: sha256(path)}
        table = _table(act, request.kind, procedure.method, simulated(path), values)
        if name and len(results) > 1:
            table["article"]["serial"] += f" {name}"
        target = out if not name or len(results) == 1 else out.with_stem(f"{out.stem}-{name}")
        records.append(written(target, table, values, _known(truth, name)))
    journal.close()
    return records


def _known(truth: dict[str, float], name: str) -> dict[str, float]:
    """The true values of one channel."""
    values = {k.removeprefix(f"{name}/"): v for k, v in truth.items() if k.startswith(f"{name}/")}
    return values or {k: v for k, v in truth.items() if "/" not in k}


def _table(act: _Act, kind: str, method: str, simulated_reading: bool, results: Figures) -> Figures:
    common = session_of(act.session, method, act.today, act.supersedes, simulated_reading)
    if "status" in results and not simulated_reading:
        common["status"] = results["status"]
    table = {"kind": kind, **common}
    if results.get("conditioner"):
        table["conditioner"] = results["conditioner"]
    if "model" in results:
        table["model"] = results["model"]
        if "fit" in results:
            table["fit"] = results["fit"]
    else:
        residuals = results.get("residuals")
        table["model"] = values_table(
            "least squares", results["values"], results["covariance"],
            equation=results["equation"], basis=["measured"] * len(results["values"]),
            degrees_of_freedom=float(results["dof"]),
            residuals=None if residuals is None else [float(r) for r in residuals],
            residual_rms=results.get("residual_rms"),
        )  # fmt: skip
    table["raw"] = raw_table(results["raw"], results.get("files"))
    return table


def written(out: Path, table: Figures, results: Figures, truth: dict[str, float]) -> Done:
    """Write a record, unless it and another one of its article would be valid at the same time."""
    record = parse_any(out, signed(table))
    if record.record.status != "simulated":
        refuse_overlap(out, record)
    comment = ""
    if record.record.status == "simulated":
        comment = "SIMULATED: a rehearsal. No article of this serial number was calibrated."
    written = write_record(out, table, comment)
    return Done(out, written, tuple(results.get("said", ())), truth)
