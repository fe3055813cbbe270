"""Status of a run's calibrations: doubtful ones, and wires without a description."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any

from hil.calibration.files import (
    Calibration,
    Record,
    Source,
    files_in,
    load_any,
    may_be_of,
    overlaps,
)
from hil.calibration.sources import BRING_UP, Sourced
from hil.devices.board import protocol
from hil.devices.board.identity import serial_of
from hil.devices.sensor_tables import VoltsForceTable
from hil.devices.tables import CellBoardTable, DeviceTable
from hil.errors import ConfigError, DeviceError
from hil.experiment import loop_limits
from hil.experiment.board_limits import doubts
from hil.experiment.loaded import LoadedModel, LoadedRig
from hil.experiment.plan import unusual
from hil.rig.calibrated import cards_of, of_role
from hil.rig.instruments import boards_of

REMEDY = "run hil calibrate, then name the record in the rig"
BRING_UP_REMEDY = "run hil board bring-up, then name the record in the rig"


@dataclass(frozen=True)
class CalibrationStatus:
    """Findings about the calibrations of a run, a line each.

    Attributes
    ----------
    expired : not valid any more
    ambiguous : another calibration of the same article is also valid, or supersedes this one
    departed : `--set` changed a calibrated value
    rehearsed : made on a simulated rig
    assumed : not measured
    without_record : names of the channels without a calibration
    unprotected : boards whose limits are not known to protect the wires
    not_brought_up : boards on the bench without a record of their first power-up
    unusual : values that are possible but unusual, and plans that may meet a limit
    """

    expired: list[str] = field(default_factory=list)
    ambiguous: list[str] = field(default_factory=list)
    departed: list[str] = field(default_factory=list)
    rehearsed: list[str] = field(default_factory=list)
    assumed: list[str] = field(default_factory=list)
    without_record: list[str] = field(default_factory=list)
    unprotected: list[str] = field(default_factory=list)
    not_brought_up: list[str] = field(default_factory=list)
    unusual: list[str] = field(default_factory=list)

    def refused(self, *, on_bench: bool) -> list[str]:
        """Findings that a strict run refuses; on a bench also values that were not measured."""
        unmeasured = [*self.rehearsed, *self.assumed] if on_bench else []
        return [
            *(f"{line}: calibrate again" for line in self.expired),
            *self.ambiguous,
            *(f"{line}: {REMEDY}" for line in unmeasured),
            *(f"{name}: has no calibration record" for name in self.without_record),
            *self.unusual,
            *([*self.unprotected, *self.not_brought_up] if on_bench else []),
        ]

    def warnings(self, *, on_bench: bool) -> list[str]:
        """Findings to warn about; on a bench also values that were not measured."""
        lines = [*self.expired, *self.ambiguous, *self.departed, *self.unusual]
        if not on_bench:
            return lines
        return [*lines, *self._unmeasured(), *self.unprotected, *self.not_brought_up]

    def events(self, *, on_bench: bool) -> Iterator[tuple[str, str]]:
        """Level and text of every line for the recording."""
        yield from (("warning", line) for line in self.warnings(on_bench=on_bench))
        if not on_bench:
            yield from (("info", line) for line in self._unmeasured())

    def _unmeasured(self) -> list[str]:
        missing = [f"no calibration record: {', '.join(self.without_record)}"]
        return [*self.rehearsed, *self.assumed, *(missing if self.without_record else [])]

    def as_dict(self) -> dict[str, list[str]]:
        return asdict(self)


def status_of(
    devices: Mapping[str, DeviceTable],
    records: Mapping[str, Calibration],
    sources: Sequence[Sourced],
    today: date,
    unprotected: Sequence[str] = (),
    not_brought_up: Sequence[str] = (),
) -> CalibrationStatus:
    """Check every calibration that a configuration names, and the other files in its folder.

    Parameters
    ----------
    records : calibrations of the channels, by channel
    sources : calibrations of the model's tables
    today : date on which they must be valid
    unprotected : a line for each board whose limits are not known to protect the wires
    not_brought_up : a line for each board without a record of its first power-up
    """
    used: list[tuple[str, Record]] = [*records.items(), *((s.table, s.source) for s in sources)]
    once = {calibration.path: (name, calibration) for name, calibration in reversed(used)}
    known = {path: calibration for path, (_, calibration) in once.items()}
    departed = [line for s in sources for line in s.departures]
    status = CalibrationStatus(
        departed=departed, unprotected=list(unprotected), not_brought_up=list(not_brought_up)
    )
    for name, calibration in used:
        _note(status, name, calibration, today)
    texts = {folder: _texts_of(folder) for folder in {path.parent for path in known}}
    for name, calibration in once.values():
        neighbours = texts[calibration.path.parent]
        rivals = _rivals(calibration, neighbours, known, today)
        status.ambiguous.extend(f"{name}: {line}" for line in rivals)
    status.without_record.extend(_without_record(devices))
    return status


def _without_record(devices: Mapping[str, DeviceTable]) -> Iterator[str]:
    """Channels of cards without a record, and forces of instruments that give volts."""
    for card in cards_of(devices).values():
        yield from (n for n, c in card.channels.items() if getattr(c, "record", None) is None)
    for instrument in of_role("instrument", devices).values():
        for name, channel in instrument.channels.items():
            if isinstance(channel, VoltsForceTable) and channel.record is None:
                yield name


def _brought_up(sources: Sequence[Sourced]) -> dict[str, Source]:
    """Records of a first power-up, by the board that names them."""
    return {
        s.table.removeprefix("devices."): s.source
        for s in sources
        if s.source.record.kind == BRING_UP
    }


def not_brought_up(
    devices: Mapping[str, DeviceTable], sources: Sequence[Sourced], on_bench: Collection[str]
) -> list[str]:
    """A line for each of these boards that names no record of its first power-up."""
    named = _brought_up(sources)
    return [
        f"devices.{name}: has no record of a bring-up: {BRING_UP_REMEDY}"
        for name in boards_of(devices)
        if name in on_bench and name not in named
    ]


def strangers(
    devices: Mapping[str, DeviceTable],
    sources: Sequence[Sourced],
    identities: Mapping[str, protocol.Message],
) -> list[str]:
    """A line for each open board that is not the one of its bring-up, or has other firmware since.

    Parameters
    ----------
    identities : what the boards on the bench have reported, by their names
    """
    lines = []
    named = _brought_up(sources)
    for name, board in boards_of(devices).items():
        source, identity = named.get(name), identities.get(name)
        if source is None or identity is None:
            continue
        answers = (_serial(identity, board), f"{identity['firmware_hash']:08x}")
        record = (source.record.article.serial, source.record.notes.get("firmware", ""))
        for what, answer, stated in zip(("serial", "firmware"), answers, record, strict=True):
            if answer != stated:
                lines.append(
                    f"devices.{name}: this board has {what} {answer}, and its bring-up "
                    f"{source.id} was of {what} {stated}: {BRING_UP_REMEDY}"
                )
    return lines


def _serial(identity: protocol.Message, board: CellBoardTable) -> str:
    try:
        return serial_of(identity["serial"], board.port)
    except DeviceError:
        return "none"


def status_of_rig(
    rig: LoadedRig, today: date, on_bench: Collection[str] | None = None
) -> CalibrationStatus:
    """Status of a rig's calibrations, and of what protects its wires.

    Parameters
    ----------
    on_bench : names of the devices that are on the bench; by default all
    """
    devices = rig.tables.devices
    real = devices if on_bench is None else on_bench
    boards = [board for board in rig.protections if board.name in real]
    loops = [one for one in rig.loop_protections if one.name in real]
    unprotected = [*doubts(boards), *loop_limits.doubts(loops, rig.tables)]
    missing = not_brought_up(devices, rig.sources, real)
    status = status_of(devices, rig.records, rig.sources, today, unprotected, missing)
    return replace(status, unusual=unusual(rig))


def statuses_of(content: Any, today: date) -> list[CalibrationStatus]:
    """Status of the calibrations that a checked file names, or of a calibration itself.

    Parameters
    ----------
    content : of `hil.runs.check.Checked`
    """
    match content:
        case LoadedRig():
            return [status_of_rig(content, today)]
        case LoadedModel():
            return [status_of({}, {}, content.sources, today)]
        case Calibration() | Source():
            return [_status(content, today)]
        case None:
            return []
    return [status_of_rig(config, today) for config in content.configs.values()]


def _status(calibration: Record, today: date) -> CalibrationStatus:
    status = CalibrationStatus()
    _note(status, calibration.path.stem, calibration, today)
    return status


def _note(status: CalibrationStatus, name: str, calibration: Record, today: date) -> None:
    """Add the findings about one calibration."""
    label = f"{name}: calibration {calibration.id}"
    if calibration.expired(today):
        status.expired.append(f"{label} expired on {calibration.record.act.valid_until}")
    if calibration.record.status == "simulated":
        status.rehearsed.append(f"{label} comes from a rehearsal on a simulated rig")
    if calibration.record.status == "assumed":
        status.assumed.append(f"{label} is assumed: nobody has measured it")
    elif not isinstance(calibration, Calibration) and "assumed" in calibration.record.model.basis:
        names = [
            value
            for value, basis in zip(calibration.names, calibration.record.model.basis, strict=True)
            if basis == "assumed"
        ]
        status.assumed.append(f"{label}: {', '.join(names)} assumed: nobody has measured it")


def _texts_of(folder: Path) -> dict[Path, str | OSError]:
    """The texts of the TOML files in a folder; the error of one that cannot be read."""
    texts: dict[Path, str | OSError] = {}
    for path in files_in(folder):
        try:
            texts[path] = path.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            texts[path] = error
    return texts


def _rivals(
    calibration: Record,
    texts: dict[Path, str | OSError],
    known: dict[Path, Record],
    today: date,
) -> Iterator[str]:
    """Other calibrations of the same specimen in the folder that are also valid or supersede it."""
    for path, text in texts.items():
        if isinstance(text, OSError):
            yield f"its neighbour cannot be read: {text}"
            continue
        # Parses a file only if it contains the kind and serial number: folders grow.
        if path.name == calibration.path.name or not may_be_of(text, calibration):
            continue
        try:
            other = known.get(path) or load_any(path, named_by=str(path))
        except ConfigError as error:
            yield f"its neighbour cannot be read: {error}"
            continue
        act = other.record.act
        if calibration.record.hash in act.supersedes and act.date <= today:
            yield f"{calibration.path.name} is superseded by {path.name} since {act.date}"
        yield from overlaps([calibration, other])
