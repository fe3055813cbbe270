"""Usage history of a specimen: cycles, time on and energy of every wire, faults, swaps.

Each specimen has a log. A run writes an entry before anything is energised, and another one with
the counts of its recording at its end. The next run counts a run that was killed in between. Runs
with simulated boards have a separate log, below `simulated/`.
"""

import contextlib
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import h5py
import numpy as np
from numpy.typing import NDArray

from hil.config.values import Figures
from hil.errors import ConfigError, one_line
from hil.experiment.loaded import Experiment
from hil.loop.channels import DUTY_REPORTED
from hil.loop.frame import CELL_UNKNOWN
from hil.loop.guard import names_of
from hil.platform.processes import may_be_running, this_process
from hil.platform.whole_files import write_whole
from hil.record.append_log import START, AppendLog, Entry, Place, parsed
from hil.record.layout import text_of
from hil.record.read import attributes_of, n_whole_rows, open_h5
from hil.record.summary import began_at
from hil.rig.instruments import boards_of

SIMULATED = "simulated"
COUNTS = ("cycles", "on_s", "energy_J")


@dataclass(frozen=True)
class Wire:
    """Method for the energy of a cell: V i of a supply, else R i^2, else none.

    The voltage that a supply measures takes precedence.

    Attributes
    ----------
    typed : whether `supply_V` comes from the specimen's table, not from the model
    """

    supply_V: float | None = None
    resistance_Ohm: float | None = None
    typed: bool = True

    @property
    def method(self) -> str:
        if self.supply_V is not None:
            whose = "specimen.supply_V" if self.typed else "the model's supply"
            return f"measured current times {self.supply_V:g} V, {whose}"
        if self.resistance_Ohm is not None:
            ohms = f"{self.resistance_Ohm:g} Ohm, specimen.wire_resistance_Ohm"
            return f"measured current squared times {ohms}"
        return "unknown: give specimen.supply_V or specimen.wire_resistance_Ohm"


@dataclass
class Totals:
    """Sums over a specimen's life, and for every cell since its last swap.

    Attributes
    ----------
    cells, since_swap : cycles, on_s, energy_J by cell; energy_J is None if it was never known
    open : runs that have begun and are not counted yet, by run
    cut_off : runs that another process counted
    """

    simulated: bool = False
    runs: int = 0
    duration_s: float = 0.0
    faults: Counter[str] = field(default_factory=Counter)
    cells: dict[str, dict[str, object]] = field(default_factory=dict)
    since_swap: dict[str, Figures] = field(default_factory=dict)
    swaps: list[Entry] = field(default_factory=list)
    notes: list[Entry] = field(default_factory=list)
    energy_from: dict[str, str] = field(default_factory=dict)
    open: dict[str, Entry] = field(default_factory=dict)
    cut_off: list[str] = field(default_factory=list)
    last_utc: str = ""

    @property
    def faults_in_all(self) -> int:
        return sum(self.faults.values())


class Logbook:
    """The log of one specimen, in a folder.

    Its sums up to some line are kept beside it, with the checksum of all bytes up to there: what
    has not changed is not parsed again.
    """

    def __init__(self, folder: Path, serial: str, *, simulated: bool) -> None:
        self.serial = serial
        self.simulated = simulated
        self.path = (folder / SIMULATED if simulated else folder) / f"{serial}.jsonl"

    def totals(self) -> Totals:
        """Sum up the log.

        Raises
        ------
        ConfigError
            The log is damaged, or of the other kind (simulated or not).
        """
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return Totals()
        except OSError as error:
            raise ConfigError(f"{self.path}: cannot be read ({error.strerror})") from None
        totals, place = self._kept(data)
        entries, place = parsed(self.path, data[place.size_B :], place)
        return self._checked(totals_of(entries, totals)) if place != START else totals

    def add(self, entry: Figures) -> None:
        """Append a line; waits for other writers."""
        totals, place = self._kept(self.path.read_bytes() if self.path.exists() else b"")
        with AppendLog(self.path, wait=True, after=place) as log:
            if log.place == START:
                log.add({"kind": "article", "serial": self.serial, "simulated": self.simulated})
            self._checked(totals_of(log.entries, totals))
            n_known = len(log.entries)
            log.add({**entry, "utc": _now()})
            self._keep(totals_of(log.entries[n_known:], totals), log.place)

    def settle(self, wires: Mapping[str, Wire]) -> None:
        """Count the runs whose process ended before it counted them."""
        for run, begun in self.totals().open.items():
            if not may_be_running(begun):
                self.add({"kind": "run", "run": run, "file": begun["file"], "cut": True,
                          **counted(Path(begun["file"]), wires)})  # fmt: skip

    @property
    def _sums(self) -> Path:
        return self.path.with_suffix(".sums.json")

    def _keep(self, totals: Totals, place: Place) -> None:
        sums = json.dumps({"place": place, "totals": vars(totals)})
        with contextlib.suppress(OSError):  # a full disk: the older sums stay true
            write_whole(self._sums, sums)

    def _kept(self, data: bytes) -> tuple[Totals, Place]:
        """Sums that were kept of this content, and the place up to which they go."""
        try:
            sums = json.loads(self._sums.read_text(encoding="utf-8"))
            totals, place = Totals(**sums["totals"]), Place(*sums["place"])
        except (OSError, ValueError, KeyError, TypeError):
            return Totals(), START  # none were kept, or another version's
        if not place.is_of(data):
            return Totals(), START
        totals.faults = Counter(totals.faults)
        return totals, place

    def _checked(self, totals: Totals) -> Totals:
        if totals.simulated != self.simulated:
            raise ConfigError(
                f"{self.path}: is the logbook of {'simulated' if totals.simulated else 'real'} "
                "runs: move it away"
            )
        return totals


def totals_of(entries: Sequence[Entry], before: Totals | None = None) -> Totals:
    """Sum up the entries of a logbook, into the sums before them if there are any.

    A run counts once, whoever counted it, and for the wires that it had when it began.
    """
    t = before or Totals()
    for entry in entries:
        match entry["kind"]:
            case "article":
                t.simulated = entry["simulated"]
            case "begin":
                t.open[entry["run"]] = entry
            case "run" if entry["run"] in t.open or not _is_known(entry, t):
                begun = t.open.pop(entry["run"], {})
                if entry.get("cut"):
                    t.cut_off.append(entry["run"])
                t.runs += 1
                t.last_utc = entry["utc"]
                t.duration_s += entry["duration_s"]
                t.faults.update(entry["faults"])
                for cell, counts in entry["cells"].items():
                    _sum(t.cells.setdefault(cell, dict.fromkeys(COUNTS)), counts)
                    if cell not in begun.get("swapped", ()):
                        _sum(t.since_swap.setdefault(cell, dict.fromkeys(COUNTS)), counts)
                    t.energy_from[cell] = counts["energy_from"]
            case "swap":
                t.swaps.append(entry)
                t.since_swap[entry["cell"]] = dict.fromkeys(COUNTS, 0)
                for begun in t.open.values():  # had the wire from before
                    begun["swapped"] = [*begun.get("swapped", ()), entry["cell"]]
            case "note":
                t.notes.append(entry)
    return t


def _is_known(entry: Entry, totals: Totals) -> bool:
    """Whether a run that is not open was counted: when two processes find it, both say so."""
    return bool(entry.get("cut")) or entry["run"] in totals.cut_off


def _sum(total: Figures, more: Figures) -> None:
    for key in COUNTS:
        if more[key] is not None:
            total[key] = (total[key] or 0) + more[key]


def logbook_of(config: Experiment, backends: Mapping[str, str]) -> Logbook | None:
    """The logbook of a run; None if its rig names no specimen."""
    specimen = config.tables.specimen
    if specimen is None:
        return None
    boards = list(boards_of(config.tables.devices))
    real = bool(boards) and all(backends.get(name) == "bench" for name in boards)
    return Logbook(config.logbook, specimen.serial, simulated=not real)


def wires_of(config: Experiment) -> dict[str, Wire]:
    """The energy method of every cell."""
    specimen, system = config.tables.specimen, config.system()
    wires = {}
    for i, cell in enumerate(system.cell_names):
        model_V = float(system.wires.supply_V[i])
        if specimen is not None and specimen.supply_V is not None:
            wires[cell] = Wire(specimen.supply_V)
        elif np.isfinite(model_V):
            wires[cell] = Wire(model_V, typed=False)
        elif specimen is not None and (ohms := specimen.wire_resistance_Ohm) is not None:
            wires[cell] = Wire(resistance_Ohm=ohms[i % len(ohms)])
        else:
            wires[cell] = Wire()
    return wires


@dataclass
class Recorded:
    """Where a run is recorded."""

    path: Path


@contextlib.contextmanager
def kept(book: Logbook | None, config: Experiment, path: Path) -> Iterator[Recorded]:
    """Write the begin of a run before the block, and its counts after, whatever its outcome.

    The block may change the path of the recording from which it is counted.

    Raises
    ------
    ConfigError
        The logbook is damaged or not writable; nothing was energised.
    """
    recorded = Recorded(path)
    if book is None:
        yield recorded
        return
    wires, run = wires_of(config), f"{os.getpid()}-{_now()}"
    book.settle(wires)
    file = str(path.resolve())
    book.add({"kind": "begin", "run": run, "file": file, **this_process()})
    try:
        yield recorded
    finally:
        file, counts = str(recorded.path.resolve()), counted(recorded.path, wires)
        book.add({"kind": "run", "run": run, "file": file, "cut": False, **counts})


def counted(path: Path, wires: Mapping[str, Wire]) -> dict[str, object]:
    """Counts of a recording for a logbook; zero if there is no recording."""
    nothing: dict[str, object] = {"outcome": "no recording", "duration_s": 0.0, "faults": [],
                               "cells": {}}  # fmt: skip
    if not path.is_file():
        return nothing
    try:
        with open_h5(path) as file:
            return _counted(file, wires)
    except ConfigError as error:
        return {**nothing, "outcome": one_line(f"not readable: {error}")}


def _counted(file: h5py.File, wires: Mapping[str, Wire]) -> dict[str, object]:
    n, ticks = n_whole_rows(file), file["ticks"]
    t_s = ticks["t_s"][:n]
    bits = int(ticks["fault_bits"][n - 1]) if n else 0
    cells = {}
    if n and "cells_reported" in ticks:
        period_s = float(np.median(np.diff(t_s))) if n > 1 else 0.0
        lasts_s = np.diff(t_s, append=t_s[-1] + period_s)
        names = [text_of(name) for name in file["model/cells"][:]]
        supply, volts = _supply(ticks, n)
        duty = ticks.get(DUTY_REPORTED)  # a current is measured while the gate is on
        for i, name in enumerate(names):
            on = _known(ticks["cells_reported"][:n, i])
            powered_s = lasts_s * (_held(duty[:n, i]) if duty is not None else on)
            current = ticks.get(f"{name}.current_A")
            wire = wires.get(name, Wire())
            measured = f"measured current times the voltage that '{supply}' measures"
            cells[name] = {
                "cycles": int(on[0]) + int(np.sum(np.diff(on.astype(np.int8)) == 1)),
                "on_s": float(np.sum(powered_s)),
                "energy_J": (
                    None
                    if current is None
                    else _energy_J(current[:n], lasts_s if duty is None else powered_s, wire, volts)
                ),
                "energy_from": wire.method if volts is None else measured,
            }
    return {
        "outcome": text_of(attributes_of(file).get("outcome", "")),
        "duration_s": float(t_s[-1] - t_s[began_at(ticks, n)]) if n else 0.0,
        "faults": names_of(bits),
        "cells": cells,
    }


def _known(reported: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """On or off at every row; a row without a report repeats the row before."""
    known = reported != CELL_UNKNOWN
    last = np.maximum.accumulate(np.where(known, np.arange(len(reported)), -1))
    return np.where(last >= 0, reported[last] == 1, False)


def _supply(ticks: h5py.Group, n: int) -> tuple[str, NDArray[np.float64] | None]:
    """Name of the only supply that a recording has, and its measured voltage at every row [V]."""
    supplies = [name.removesuffix("_on_told") for name in ticks if name.endswith("_on_told")]
    if len(supplies) != 1:
        return "", None
    return supplies[0], _held(ticks[f"{supplies[0]}_voltage_V"][:n])


def _held(y: NDArray[np.float64]) -> NDArray[np.float64]:
    """The last reading at every row, 0 before the first."""
    last = np.maximum.accumulate(np.where(np.isfinite(y), np.arange(len(y)), -1))
    return np.where(last >= 0, y[last], 0.0)


def _energy_J(
    current_A: NDArray[np.float64],
    lasts_s: NDArray[np.float64],
    wire: Wire,
    volts: NDArray[np.float64] | None,
) -> float | None:
    """Energy: the sum of power times duration.

    A reading holds until the next one; before the first reading the power is zero.
    """
    i_A = _held(current_A)
    if volts is not None:
        return float(np.sum(volts * i_A * lasts_s))
    if wire.supply_V is not None:
        return float(np.sum(wire.supply_V * i_A * lasts_s))
    if wire.resistance_Ohm is not None:
        return float(np.sum(wire.resistance_Ohm * i_A**2 * lasts_s))
    return None


def opening(book: Logbook) -> str:
    """One line on a logbook, for the start of a run.

    Raises
    ------
    ConfigError
        The logbook is damaged.
    """
    totals = book.totals()
    what = "SIMULATED specimen" if book.simulated else "specimen"
    if not totals.runs:
        return f"{what} {book.serial}: its first run in {book.path}"
    cells = totals.since_swap
    most = max(cells, key=lambda c: cells[c]["cycles"] or 0) if cells else ""
    hottest = max(cells, key=lambda c: cells[c]["on_s"] or 0.0) if cells else ""
    line = f"{what} {book.serial}: {totals.runs} runs"
    if cells:
        line += (
            f", most cycles {cells[most]['cycles']} ({most}), longest on "
            f"{cells[hottest]['on_s']:.0f} s ({hottest})"
        )
    return f"{line}, {totals.faults_in_all} faults, {len(totals.swaps)} swaps"


def books_in(folder: Path, *, simulated: bool) -> list[Logbook]:
    """All logbooks of a folder."""
    where = folder / SIMULATED if simulated else folder
    return [Logbook(folder, p.stem, simulated=simulated) for p in sorted(where.glob("*.jsonl"))]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")
