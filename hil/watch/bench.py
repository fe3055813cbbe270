"""What can be seen of a bench from beside it: the run in progress, its rows, its campaign.

Everything is read: taps of runs, their recordings, the journal of a campaign, the cycles of a
fatigue test. Taps are mapped for reading only. What goes to a page is plain values for JSON, in
which a missing number is None.
"""

import json
import math
import time
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hil.config.values import Figures, TomlTable
from hil.errors import ConfigError, DeviceError
from hil.loop import tap as taps
from hil.loop.channels import Signal, known_before, signals_in
from hil.loop.frame import CELL_UNKNOWN, units
from hil.platform.processes import commands_with, is_running, started
from hil.procedures.standard_tests.cycles import Book, book_in
from hil.procedures.standard_tests.forecast import forecasts, siblings_of
from hil.record.layout import text_of
from hil.record.read import open_h5, summary_of
from hil.runs.campaign.journal import JOURNAL, Progress, read_progress

Z_95 = 1.96
HISTORY = 600  # points of a curve that a page gets when it connects
BINS = 2  # of the rows between two frames; of each the lowest and the highest are shown
EVENTS_MAX = 200
RECENT = 100  # rows in which the highest use of a limit is looked for
WIRE_COLUMNS = (
    ("current", "current_A", "A"), ("clamp", "temperature_C", "°C"),
    ("twin", "wire_model_C", "°C"), ("R", "resistance_Ohm", "Ω"),
)  # fmt: skip
ALIVE_S = 0.2
READ_SHARE = 0.02  # of the time may be spent on reading journals


class Limit(NamedTuple):
    """A limit and the columns that it bounds; of several columns the highest value counts.

    Attributes
    ----------
    minus : column to subtract first; the distance is bounded
    """

    name: str
    unit: str
    low: float
    high: float
    columns: tuple[str, ...]
    minus: str = ""

    def worst(self, rows: NDArray[np.void]) -> tuple[float, float]:
        """The value that uses most of the limit in these rows, and the share; NaN without one."""
        values = np.stack([rows[column] for column in self.columns]).astype(float)
        if self.minus:
            values = np.abs(values - rows[self.minus])
        used = self._used(values)
        if not np.isfinite(used).any():
            return math.nan, math.nan
        at = int(np.nanargmax(used))
        return float(values.flat[at]), float(used.flat[at])

    def _used(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The share of the limit that each value uses: 1 at either end, more beyond it.

        0 is at zero, or midway between two ends on one side of it; with one end alone on the far
        side of zero, infinitely far from that end.
        """
        low, high = self.low, self.high
        if low <= 0.0 <= high:
            limit = np.where(values >= 0.0, high, low)
            used = np.divide(values, limit, out=np.full_like(values, np.nan), where=limit != 0.0)
            if low < high:  # an end that is zero itself
                beyond = 1.0 + np.abs(values) / (high - low)
                used = np.where((limit == 0.0) & (values != 0.0), beyond, used)
            return used
        if math.isfinite(low) and math.isfinite(high):
            half = 0.5 * (high - low)
            apart = np.abs(values - 0.5 * (low + high))
            return np.asarray(1.0 + (apart - half) / (half or 0.5 * abs(high)))
        inward, end = (values, low) if low > 0.0 else (-values, -high)
        inside = inward >= end
        return np.where(inside, end / np.where(inside, inward, end), 2.0 - inward / end)


class Facts(NamedTuple):
    """What does not change during a run, from its recording."""

    title: str
    simulated: str
    backend: str
    clock: str
    created_utc: str
    period_s: float
    duration_s: float
    signals: tuple[Signal, ...]
    cells: tuple[str, ...]
    flags: tuple[str, ...]
    devices: tuple[str, ...]
    limits: tuple[Limit, ...]
    on_max_s: float
    noise_N: float
    wires: tuple[tuple[str, str, str], ...]


def facts_of(recording: Path) -> Facts:
    """Facts of a run, from the attributes of its recording.

    Raises
    ------
    ConfigError
        The recording cannot be read.
    """
    with open_h5(recording) as file:
        attrs = {key: text_of(value) for key, value in file.attrs.items()}
        columns = {name: dataset.ndim for name, dataset in file["ticks"].items()}
        flags = tuple(map(text_of, file["ticks/fault_bits"].attrs.get("flags", ())))
        cells = tuple(text_of(cell) for cell in file.get("model/cells", ()))
    settings = tomllib.loads(attrs["experiment"])
    guard, devices = settings.get("guard", {}), settings.get("devices", {})
    signals = tuple(signals_in([name for name, ndim in columns.items() if ndim == 1]))
    aged = tuple(name for name in devices if f"{name}_age_s" in columns)
    return Facts(
        title=f"{attrs['experiment_file'].split('/')[0]}: {attrs['experiment_name']}",
        simulated=attrs["simulated"],
        backend=attrs["backend"],
        clock=attrs["clock"],
        created_utc=attrs["created_utc"],
        period_s=float(settings["loop"]["period_s"]),
        duration_s=float(settings["experiment"]["duration_s"]),
        signals=signals,
        cells=cells if "cells_reported" in columns else (),
        flags=flags,
        devices=aged,
        limits=tuple(_limits(settings, signals, cells, aged, set(columns))),
        on_max_s=float(guard.get("cell_on_max_s") or math.inf) if cells else math.inf,
        noise_N=float(settings.get("observer", {}).get("force_noise_N", 0.0)),
        wires=tuple(w for w in WIRE_COLUMNS if any(f"{c}.{w[1]}" in columns for c in cells)),
    )


def _limits(
    settings: Figures,
    signals: Sequence[Signal],
    cells: Sequence[str],
    aged: Sequence[str],
    columns: set[str],
) -> Iterator[Limit]:
    """The limits of guard and boards whose values a row has."""
    guard, inf = settings.get("guard", {}), math.inf

    def of_cells(column: str, some: Sequence[str] = cells) -> tuple[str, ...]:
        return tuple(f"{c}.{column}" for c in some if f"{c}.{column}" in columns)

    devices = settings.get("devices", {})
    for s in signals:
        is_force = s.name == "force" or s.name.endswith(".force")
        channel = s.name.removesuffix(".force") if s.name != "force" else _main_force(settings)
        table = guard.get("signals", {}).get(channel, {})
        most = float(guard.get("force_max_N") or inf) if is_force else inf
        low, high = max(table.get("min", -inf), -most), min(table.get("max", inf), most)
        yield Limit(s.name, units(s.suffix), low, high, (s.measured,))
        if is_force:
            apart = float(guard.get("force_residual_max_N") or inf)
            yield Limit(f"residual of {s.name}", "N", -apart, apart, (s.measured,), minus=s.model)
    boards = {name: device for name, device in devices.items() if device.get("limits")}
    for board, device in boards.items():
        limits, members = device["limits"], device.get("cells", cells)
        for name, key, scale, column, unit in (
            ("current of a cell", "current_max_mA", 1e-3, "current_A", "A"),
            ("temperature of a clamp", "temperature_max_cC", 1e-2, "temperature_C", "°C"),
        ):
            if key in limits and (of := of_cells(column, members)):
                several = f" of {board}" if len(boards) > 1 else ""
                yield Limit(name + several, unit, -inf, scale * limits[key], of)
    hottest: dict[float, list[str]] = {}  # cells by the maximum of their wires
    for name, array in settings.get("model", {}).get("arrays", {}).items():
        members = [cell for cell in cells if cell.startswith(f"{name}.")]
        kinds = _listed(array.get("activation"))
        kinds = kinds * len(members) if len(kinds) == 1 else kinds
        for cell, kind in zip(members, kinds, strict=False):
            if most_C := kind.get("temperature_max_C"):
                hottest.setdefault(float(most_C), []).append(cell)
    for most_C, members in hottest.items():
        if of := of_cells("wire_model_C", members):
            several = f" up to {most_C:g} °C" if len(hottest) > 1 else ""
            yield Limit(f"wire of the twin{several}", "°C", -inf, most_C, of)
    if age_s := guard.get("reading_age_max_s"):
        for name in aged:
            if settings["devices"][name].get("kind") != "supply":
                yield Limit(f"age of {name}", "s", -inf, float(age_s), (f"{name}_age_s",))


def _main_force(settings: Figures) -> str:
    """The channel that is recorded as `force`, as `hil.rig.instruments.force_channel` has it."""
    forces = [
        name
        for device in settings.get("devices", {}).values()
        for name, channel in device.get("channels", {}).items()
        if channel.get("kind", "force") == "force"
    ]
    first = "force" if "force" in forces else next(iter(forces), "")
    return str(settings.get("loop", {}).get("force_channel") or first)


def _listed(value: TomlTable | list[TomlTable] | None) -> list[TomlTable]:
    return value if isinstance(value, list) else [] if value is None else [value]


class Run:
    """A run that is, or was, in progress: its tap, and its recording once that can be read.

    Attributes
    ----------
    pid : process of the loop
    name : of the tap, another one at every run
    """

    def __init__(self, pid: int, path: Path) -> None:
        self.pid, self.name = pid, path.name
        self.facts: Facts | None = None
        self._tap = taps.attach(path, read_only=True)
        self._since = started(pid)
        words = next(iter(commands_with(str(path))), None)
        self.recording = None if words is None else (words[1] / _after(words[0], str(path)))
        self._n = self._n_on = self._n_events = self._written = 0
        self._moved_s = time.monotonic()
        self._is_gone, self._asked_s = False, -math.inf
        self._on_since_s = np.zeros(0)
        self.events: list[tuple[float, str, str, str]] = []

    def look(self) -> bool:
        """Read its facts if there are none yet, and new events; whether there are facts."""
        if self.facts is None and self.recording is not None and self._tap.recorder_ready:
            try:
                self.facts = facts_of(self.recording)
            except (ConfigError, KeyError, ValueError):
                self.recording = None  # not readable: nothing is shown of it
        self._notice_rows()
        rows, lost = self._tap.events.read(self._n_events)
        self._n_events += lost + len(rows)
        self.events += [(t_s, *(w.decode(errors="replace") for w in words))
                        for t_s, *words in rows.tolist()]  # fmt: skip
        del self.events[:-EVENTS_MAX]
        return self.facts is not None

    @property
    def n_events(self) -> int:
        """Events since the start."""
        return self._n_events

    @property
    def is_over(self) -> bool:
        """Whether its loop has written its last row, or its process has ended."""
        return self._tap.closed or self.is_dead

    @property
    def is_dead(self) -> bool:
        """Whether its process has ended without closing the tap; looked at every ALIVE_S."""
        now_s = time.monotonic()
        if not self._is_gone and now_s - self._asked_s > ALIVE_S:
            self._asked_s, self._is_gone = now_s, not is_running(self.pid, self._since)
        return self._is_gone and not self._tap.closed

    @property
    def age_s(self) -> float:
        """Time since this process saw the count of rows change."""
        self._notice_rows()
        return time.monotonic() - self._moved_s

    def _notice_rows(self) -> None:
        if self._written != self.n_rows:
            self._written, self._moved_s = self.n_rows, time.monotonic()

    @property
    def n_rows(self) -> int:
        """Rows since the start."""
        return self._tap.ticks.written

    @property
    def fields(self) -> tuple[str, ...]:
        """Columns of a row."""
        return self._tap.ticks.fields

    def since(self, n: int) -> tuple[NDArray[np.void], int]:
        """The rows from number `n` on that the tap still has, and the number of the next one."""
        rows, lost = self._tap.ticks.read(n)
        return rows, n + lost + len(rows)

    def events_after(self, n: int) -> list[tuple[float, str, str, str]]:
        """Time, level, source and text of the events from number `n` on, of the last EVENTS_MAX."""
        return self.events[max(0, len(self.events) - self._n_events + n) :]

    @property
    def faults(self) -> list[str]:
        """The lines of its trip: who, how much, which limit."""
        return [text for _, level, _, text in self.events if level == "fault"]

    def about(self) -> Figures:
        """What a page must know before it shows rows."""
        f = self.facts
        assert f is not None
        return {
            "kind": "run", "id": self.name, "title": f.title, "simulated": f.simulated,
            "backend": f.backend, "clock": f.clock, "created": f.created_utc,
            "file": "" if self.recording is None else self.recording.name,
            "duration_s": f.duration_s, "cells": f.cells, "devices": f.devices,
            "signals": [
                {"name": s.name, "unit": units(s.suffix),
                 "band": Z_95 * f.noise_N if s.name == "force" else 0.0}
                for s in f.signals
            ],
            "limits": [
                [limit.name, limit.unit, _number(limit.low), _number(limit.high)]
                for limit in f.limits
            ] + ([["time on of a cell", "s", None, f.on_max_s]] if self._has_on_limit else []),
            "wires": [[name, unit] for name, _, unit in f.wires],
        }  # fmt: skip

    @property
    def _has_on_limit(self) -> bool:
        return self.facts is not None and math.isfinite(self.facts.on_max_s)

    def rows(self, *, history: bool = False) -> Figures:
        """The rows since the last call, thinned; with `history` all that the tap still has."""
        rows, self._n = self.since(0 if history else self._n)
        return self._shown(rows, self._n, history)

    def latest(self) -> Figures:
        """The last rows, and all since the last call, for whoever looks now and then."""
        rows, n = self.since(min(self._n_on, max(0, self.n_rows - RECENT)))
        return self._shown(rows, n, history=False)

    def _shown(self, rows: NDArray[np.void], n: int, history: bool) -> Figures:
        f = self.facts
        assert f is not None
        content: Figures = {
            "kind": "rows", "id": self.name, "age_s": round(self.age_s, 3),
            "state": self._tap.state, "over": self.is_over, "dead": self.is_dead, "n": len(rows),
            "history": history,
        }  # fmt: skip
        if not len(rows):
            return content
        last = rows[-1]
        content |= {
            "t_s": round(float(last["t_s"]), 4),
            "late_s": _number(float(rows["late_s"].max())),
            "faults": [name for i, name in enumerate(f.flags) if int(last["fault_bits"]) >> i & 1],
            "points": [self._points(s, rows, HISTORY if history else BINS) for s in f.signals],
            "last": [_last_reading(s, rows) for s in f.signals],
            "ages": [_number(float(last[f"{name}_age_s"])) for name in f.devices],
            "limits": [[*map(_number, limit.worst(rows[-RECENT:]))] for limit in f.limits],
        }
        if f.cells:
            content["cells"] = [
                [
                    None if value == CELL_UNKNOWN else int(value)
                    for value in known_before(rows[c])[-1]
                ]
                for c in ("cells_commanded", "cells_reported")
            ]
            names = rows.dtype.names or ()
            content["wires"] = [
                [_last(rows[c]) if (c := f"{cell}.{column}") in names else None
                 for cell in f.cells]
                for _, column, _ in f.wires
            ]  # fmt: skip
            if self._has_on_limit:
                on_s = self._time_on_s(rows, n)
                content["limits"].append([_number(on_s), _number(on_s / f.on_max_s)])
        return content

    def _points(
        self, signal: Signal, rows: NDArray[np.void], bins: int
    ) -> list[list[float | None]]:
        at = _extremes(rows[signal.measured], bins)
        curves = [rows["t_s"][at].round(4).tolist()]
        for column in (signal.measured, signal.model, signal.reference):
            values = rows[column][at].tolist() if column else []
            curves.append([_number(value) for value in values])
        return curves

    def _time_on_s(self, rows: NDArray[np.void], n: int) -> float:
        """The longest time for which a cell is on without a break, as far as it was watched.

        `n` is the number of the row after these; what was missed before them may have been a break.
        """
        t_s, on = rows["t_s"], rows["cells_commanded"] == 1
        if len(self._on_since_s) != on.shape[1] or n - len(rows) > self._n_on:
            self._on_since_s = np.full(on.shape[1], t_s[0])
        self._n_on = n
        off = np.where(on, -1, np.arange(len(on))[:, None]).max(axis=0)
        on_since_s = np.minimum(self._on_since_s, t_s[0])
        self._on_since_s = np.where(off >= 0, t_s[off], on_since_s)
        return float((t_s[-1] - self._on_since_s).max())


def _after(words: Sequence[str], word: str) -> str:
    return words[words.index(word) + 1]


def _extremes(values: NDArray[np.float64], bins: int) -> NDArray[np.int64]:
    """Indices of the lowest and the highest value of so many equal parts, in order."""
    n = len(values)
    if n <= 2 * bins:
        return np.arange(n)
    size = -(-n // bins)
    padded = np.full((-(-n // size), size), np.nan)
    padded.ravel()[:n] = values
    first, missing = size * np.arange(len(padded)), np.isnan(padded)
    low = np.where(missing, np.inf, padded).argmin(axis=1)
    high = np.where(missing, -np.inf, padded).argmax(axis=1)
    return np.unique(np.concatenate((first + low, first + high, [n - 1])))


def _last_reading(signal: Signal, rows: NDArray[np.void]) -> list[float | None]:
    """Measured and simulated value and set point of the last row with a reading, if one has it."""
    known = np.flatnonzero(np.isfinite(rows[signal.measured]))
    row = rows[known[-1] if len(known) else -1]
    columns = (signal.measured, signal.model, signal.reference)
    return [_number(float(row[column])) if column else None for column in columns]


def _last(values: NDArray[np.float64]) -> float | None:
    """The last value that is known."""
    known = values[np.isfinite(values)]
    return _number(float(known[-1])) if len(known) else None


def _number(value: float) -> float | None:
    """Six digits for JSON."""
    return float(f"{value:.6g}") if math.isfinite(value) else None


class Bench:
    """A folder with the runs whose recordings are in it, or the runs of one process.

    Attributes
    ----------
    run : the run in progress, or the last one that was; None if there was none
    """

    def __init__(self, folder: Path, parent: int = 0) -> None:
        self.folder, self.parent = folder.resolve(), parent
        self.run: Run | None = None
        self._is_read = False  # to its end, with its last events
        self._next_read_s = 0.0
        self._state: Figures = {}

    def look(self) -> None:
        """Look for the run in progress, and at its events."""
        if self.run is None or self._is_read:
            for pid, path in taps.running():
                if self.parent in (0, pid) and (self.run is None or path.name != self.run.name):
                    run = _attached(pid, path)
                    if run is not None and not run.is_over and self._is_here(run):
                        self.run = run
        if self.run is not None:
            self._is_read = self.run.is_over
            self.run.look()

    def _is_here(self, run: Run) -> bool:
        if self.parent:
            return True
        return run.recording is not None and self.folder in run.recording.resolve().parents

    def state(self) -> Figures:
        """Progress of the campaign and of the fatigue test of the folder, for a page.

        Reading it takes at most READ_SHARE of the time, however long the journal is.
        """
        began_s = time.monotonic()
        if began_s >= self._next_read_s:
            book = book_in(self.folder)
            self._state = {
                "kind": "bench",
                "campaign": _campaign(self.folder),
                "fatigue": None if book is None else _fatigue(book, self.folder),
            }
            took_s = time.monotonic() - began_s
            self._next_read_s = began_s + max(1.0, took_s / READ_SHARE)
        return self._state

    def last_recording(self) -> Path | None:
        """The recording of the last run, or the newest one in the folder; None without one."""
        if self.run is not None and self.run.recording is not None:
            return self.run.recording if self.run.recording.is_file() else None
        recordings = [*self.folder.glob("*.h5"), *self.folder.glob("trials/*.h5")]
        return max(recordings, key=lambda path: path.stat().st_mtime, default=None)


def _attached(pid: int, path: Path) -> Run | None:
    try:
        run = Run(pid, path)
    except (OSError, ValueError, DeviceError):
        return None  # it has just ended, or is of another version
    return None if run.recording is None else run  # its recorder is not there yet


def ending_of(recording: Path) -> Figures | None:
    """Outcome of a recording, with its faults and errors; None while it is not known."""
    try:
        with open_h5(recording) as file:
            outcome, summary = text_of(file.attrs["outcome"]), summary_of(file)
    except (ConfigError, KeyError):
        return None
    if outcome == "running":
        return None
    faults = summary.get("faults")
    why = [*(faults if isinstance(faults, list) else []), summary.get("error"),
           summary.get("stopped_by")]  # fmt: skip
    return {"kind": "end", "outcome": outcome, "why": [text for text in why if text],
            "file": recording.name}  # fmt: skip


def campaign_in(folder: Path) -> Progress | None:
    """Progress of the campaign of a folder, or of a standard test; None without one."""
    for place in (folder, folder / "campaign"):
        if (place / JOURNAL).is_file():
            try:
                return read_progress(place)
            except ConfigError:
                return None  # it is being written, or is damaged, which its own command says
    return None


def _campaign(folder: Path) -> Figures | None:
    p = campaign_in(folder)
    if p is None:
        return None
    facts: Figures = {
        "name": p.head["name"], "complete": p.n_complete, "settled": len(p.settled),
        "count": p.n_trials, "left_s": p.left_s(), "now": next(iter(p.open), None),
        "why": p.why, "asked": p.question,
    }  # fmt: skip
    if p.is_cut_off:
        facts |= {"now": None, "asked": "", "why": p.why or "its program was killed"}
    return facts


def _fatigue(book: Book, folder: Path) -> Figures:
    shown = book.summaries.thinned(HISTORY // 2)
    return {
        "cycles": book.summaries.n, "of": book.n_cycles, "unit": book.unit,
        "cycle": shown["cycle"].tolist(),
        "stroke": [_number(value) for value in shown["stroke"].tolist()],
        "forecast": [one.text for one in forecasts(book, list(siblings_of(folder)))],
        "rules": [[rule.name, _number(rule.change), rule.limit] for rule in book.rules()],
    }  # fmt: skip


def as_json(content: Figures | bool | None) -> str:
    """Text for a page."""
    return json.dumps(content, separators=(",", ":"), allow_nan=False)
