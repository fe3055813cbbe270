"""Data of a run for the panels: its columns over time, live or from a file.

Rows arrive in blocks; each block maps a column to its values (a structured array works too). A live
run uses a fixed amount of memory; a recording keeps every sample.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hil_gui.pyramid import Pyramid
from hil_gui.running import Figures, Running, lateness_counts

LIVE_CAPACITY = 1 << 17
"""Number of samples that a live run keeps individually: two minutes at 1 kHz."""
RESIDUAL = "residual"
BAND = "band"
"""Row of `RunData.values` with the half width of the 95 % band of model and noise."""
GUARD_STATE = "guard_state"
KINDS = ("measured", "model", "estimate", "reference", "demand")
_SIGNAL = re.compile(rf"(.+)_({'|'.join(KINDS)})_([A-Za-z_]+)")
REPORTED, UNKNOWN = "cells_reported", 255
DUTY = "cells_duty"  # column of a run whose controller modulates
_NOT_DRAWN = ("_stage_s", ".raw_V", "_t_s")


@dataclass(frozen=True)
class Column:
    """Metadata of a column.

    Attributes
    ----------
    n_cells : int
        0 for a column of floats.
    fractions : bool
        A column of cells has floats: duties.
    """

    name: str
    units: str
    role: str
    description: str
    n_cells: int = 0
    flags: tuple[str, ...] = ()
    fractions: bool = False


@dataclass(frozen=True)
class About:
    """Metadata of a run: everything that does not change while it runs.

    Attributes
    ----------
    simulated : str
        Text about readings from simulated devices; empty if no device is simulated.
    untold : str
        What disturbs the simulated rig and the twin is not told of; empty if there is nothing.
    settings : mapping
        The merged configuration.
    figure : Figure or None
        What is drawn of the system (`hil.experiment.figure`); None before it is known.
    sha256 : str
        Hash of the configuration, its calibrations and code; empty in older recordings.
    levels_N : tuple of float
        Forces that cells on or off can hold; empty if power is modulated, or they are many.
    """

    path: Path
    title: str
    backend: str
    clock: str
    created_utc: str
    simulated: str
    columns: tuple[Column, ...]
    cell_names: tuple[str, ...]
    settings: Mapping[str, Any]
    figure: Any = None
    sha256: str = ""
    untold: str = ""
    levels_N: tuple[float, ...] = ()

    def column(self, name: str) -> Column | None:
        return next((c for c in self.columns if c.name == name), None)

    @property
    def arrays(self) -> tuple[Any, ...]:
        """Pictures of networks of cells."""
        return () if self.figure is None else tuple(self.figure.arrays)

    @property
    def mechanism(self) -> Any:
        """The stick figure; None where there is none."""
        return None if self.figure is None else self.figure.mechanism

    @property
    def period_s(self) -> float:
        return float(self.settings["loop"]["period_s"])

    @property
    def duration_s(self) -> float:
        """Configured duration, s."""
        return float(self.settings["experiment"]["duration_s"])

    @property
    def every(self) -> int:
        """Rows from one report of a board to its next, of the board asked least often."""
        devices = self.settings.get("devices", {}).values()
        return max([1, *(int(d.get("every", 1)) for d in devices if "cells" in d)])

    @property
    def guard_states(self) -> dict[int, str]:
        """Names of the states by number, from the description of column `guard_state`."""
        column = self.column(GUARD_STATE)
        states = re.findall(r"(\d+) (\w+)", column.description) if column is not None else []
        return {int(number): word for number, word in states}

    @property
    def residual_max(self) -> float:
        """Residual at which the guard trips, N; infinite if it does not check the residual."""
        if self.column("force_measured_N") is None:
            return np.inf
        return float(self.settings.get("guard", {}).get("force_residual_max_N", np.inf))

    def limits(self, quantity: str) -> tuple[float, float]:
        """Smallest and largest value of a signal that the guard permits, in the signal's unit."""
        guard = self.settings.get("guard", {})
        table = guard.get("signals", {}).get(quantity, {})
        most = float(guard.get("force_max_N", np.inf)) if quantity == "force" else np.inf
        low = 0.0 if quantity == "force" else -np.inf
        return float(table.get("min", low)), float(table.get("max", most))


@dataclass(frozen=True)
class Signal:
    """A quantity that is both measured and simulated: its columns by kind."""

    quantity: str
    units: str
    columns: Mapping[str, str]


def find_signals(columns: tuple[Column, ...]) -> list[Signal]:
    """Find the quantities with a measured and a simulated column.

    The force comes first, then quantities with a set point, then the others.
    """
    by_name: dict[str, dict[str, Column]] = {}
    for column in columns:
        match = _SIGNAL.fullmatch(column.name)
        if match:
            by_name.setdefault(match[1], {})[match[2]] = column
    signals = [
        Signal(name, kinds["measured"].units, {k: c.name for k, c in kinds.items()})
        for name, kinds in by_name.items()
        if "measured" in kinds and "model" in kinds
    ]
    return sorted(
        signals, key=lambda s: (s.quantity != "force", "reference" not in s.columns, s.quantity)
    )


_POINT = re.compile(r"(?P<before>(^|.*[._]))x(?P<role>(_[a-z]+)?)_m$")
_SHOWN_ROLES = ("_estimate", "", "_model", "_measured")


def find_points(columns: tuple[Column, ...]) -> dict[str, list[tuple[str, ...]]]:
    """Find the columns of points, by their role.

    The columns of a point are for example `<point>x_estimate_m`, `<point>y_estimate_m` and, if it
    exists, `<point>z_estimate_m`, in this order.
    """
    names = {c.name for c in columns}
    points: dict[str, list[tuple[str, ...]]] = {}
    for column in columns:
        if (match := _POINT.match(column.name)) is None:
            continue
        of = [f"{match['before']}{axis}{match['role']}_m" for axis in "xyz"]
        if of[1] in names:
            points.setdefault(match["role"], []).append(tuple(n for n in of if n in names))
    return points


def find_paths(
    columns: tuple[Column, ...],
) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """Points of a body, and the set point of the last one (none or one).

    It takes the role with the most points. On a tie the estimate comes first, then columns without
    a role, the model, the measurement.
    """
    points = find_points(columns)
    shown = [role for role in _SHOWN_ROLES if role in points]
    if not shown:
        return [], []
    return points[max(shown, key=lambda role: len(points[role]))], points.get("_reference", [])[-1:]


@dataclass(frozen=True)
class Note:
    """An event or an input of a run, as a line of text."""

    t_s: float
    level: str
    source: str
    text: str


class Reports:
    """States of cells between the reports of boards that are not asked in every row.

    An unknown state (255) is the last report if that is less than `rows` rows ago.
    """

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._last: NDArray[np.uint8] | None = None
        self._age: NDArray[np.int64] = np.zeros(0, dtype=np.int64)

    def held(self, states: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """The next rows (n, N), with unknown states filled in."""
        row = np.arange(len(states))[:, None]
        if self._last is None:
            self._last = np.full(states.shape[1], UNKNOWN, dtype=np.uint8)
            self._age = np.full(states.shape[1], self._rows)
        at = np.maximum.accumulate(np.where(states != UNKNOWN, row, -self._age), axis=0)
        known = np.take_along_axis(states, np.maximum(at, 0), axis=0)
        last = np.where(at < 0, self._last, known)
        self._last, self._age = last[-1], len(states) - at[-1]
        return np.where(row - at < self._rows, last, UNKNOWN).astype(np.uint8)


@dataclass
class RunData:
    """Rows of a run so far.

    Attributes
    ----------
    faults : list of (t_s, name)
        Latched faults in the order of time.
    outcome : str
        Outcome as in the recording; `running` until it is known.
    n_lost : int
        Rows of a live run that were overwritten before the window read them.
    begun_s : float
        When the run was armed, from which its time counts; NaN before.
    noise : float
        Half width of the 95 % band of the channel's noise alone; 0 if it is unknown.
    no_band : str
        Why there is no band of model and noise; empty if there is one.
    """

    about: About
    capacity: int | None = None
    outcome: str = "running"
    faults: list[tuple[float, str]] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    n_lost: int = 0
    begun_s: float = float("nan")
    noise: float = 0.0
    no_band: str = ""

    def __post_init__(self) -> None:
        about = self.about
        self.signals = find_signals(about.columns)
        floats = [c for c in about.columns if not c.flags and not c.n_cells and c.name != "t_s"]
        self.names = [c.name for c in floats if not c.name.endswith(_NOT_DRAWN)]
        self._index = {name: i for i, name in enumerate([*self.names, BAND, RESIDUAL])}
        self.values = Pyramid(len(self._index), self.capacity)
        self._cells = [c for c in about.columns if c.n_cells]
        self.cells = {
            c.name: Pyramid(c.n_cells, self.capacity, np.float64 if c.fractions else np.uint8)
            for c in self._cells
        }
        self._reports = Reports(about.every)
        self._flags = about.column("fault_bits")
        self._seen_bits = 0
        self._running = Running()
        self.latest: dict[str, float] = {}

    @property
    def n_rows(self) -> int:
        return self.values.n_samples

    @property
    def last_s(self) -> float:
        """Time of the newest row; 0 before there is one."""
        return self.values.last_s if self.n_rows else 0.0

    @property
    def signal(self) -> Signal | None:
        """The main quantity, the first of `signals`; None if there is none."""
        return self.signals[0] if self.signals else None

    @property
    def has_begun(self) -> bool:
        """Whether the run has been armed."""
        return self.begun_s == self.begun_s

    def time_text(self, t_s: float) -> str:
        """Time of the run, from its arming on; before it, that it waits."""
        if not self.has(GUARD_STATE):
            return f"{t_s:.1f} s"
        return f"{t_s - self.begun_s:.1f} s" if t_s >= self.begun_s else "waits"

    def index(self, name: str) -> int:
        """Index of a column in `values`."""
        return self._index[name]

    def has(self, name: str) -> bool:
        return name in self._index

    def append(
        self,
        rows: Mapping[str, NDArray[Any]] | NDArray[np.void],
        half_width: NDArray[np.float64] | None = None,
    ) -> None:
        """Append rows, later than all before, and the half width of their band."""
        t_s = np.ascontiguousarray(rows["t_s"])
        if not len(t_s):
            return
        block = np.empty((len(self._index), len(t_s)))
        for i, name in enumerate(self.names):
            block[i] = rows[name]
        nothing = np.full(len(t_s), np.nan)
        measured, model = nothing, nothing
        if self.signal is not None:
            measured, model = (
                block[self._index[self.signal.columns[k]]] for k in ("measured", "model")
            )
        block[-1] = measured - model
        block[-2] = np.nan if half_width is None else half_width
        self.values.append(t_s, block)
        for column in self._cells:
            states = rows[column.name]
            if column.name == REPORTED:
                states = self._reports.held(states)
            self.cells[column.name].append(t_s, np.ascontiguousarray(states.T))
        late_s = block[self._index["late_s"]] if self.has("late_s") else nothing
        self._running.add(t_s, measured, model, late_s)
        self._note_faults(t_s, np.asarray(rows["fault_bits"]))
        if self.has(GUARD_STATE) and not self.has_begun:
            states = self.about.guard_states
            armed = [number for number, word in states.items() if word in ("armed", "running")]
            begun = np.isin(rows[GUARD_STATE], armed)
            if begun.any():
                self.begun_s = float(t_s[np.argmax(begun)])

    def _note_faults(self, t_s: NDArray[np.float64], bits: NDArray[np.uint64]) -> None:
        if self._flags is None or int(bits[-1]) == self._seen_bits:
            return
        for i in np.flatnonzero(np.diff(bits, prepend=np.uint64(self._seen_bits))):
            new = int(bits[i]) & ~self._seen_bits
            self.faults += [
                (float(t_s[i]), name) for k, name in enumerate(self._flags.flags) if new >> k & 1
            ]
            self._seen_bits = int(bits[i])

    def at(self, t_s: float) -> dict[str, float]:
        """Values of every drawn column at or before a time."""
        row = self.values.at(t_s)
        return {name: float(row[i]) for name, i in self._index.items()}

    def cells_at(self, name: str, t_s: float) -> NDArray[np.uint8]:
        """States of the cells at or before a time: 1 on, 0 off, 255 unknown."""
        if name not in self.cells or not self.n_rows:
            return np.full(len(self.about.cell_names), 255, dtype=np.uint8)
        return self.cells[name].at(t_s).astype(np.uint8)

    def figures_at(self, t_s: float) -> tuple[Figures, NDArray[np.int64]]:
        """Agreement from the start to a time, and the lateness histogram (`LATE_EDGES_S`)."""
        if t_s >= self.last_s:
            return self._running.now
        since_s, agreement, late = self._running.checkpoint(t_s)
        _, rows = self.values.samples(np.nextafter(since_s, np.inf), np.nextafter(t_s, np.inf))
        if self.signal is not None:
            measured, model = (
                rows[self._index[self.signal.columns[k]]] for k in ("measured", "model")
            )
            agreement.add(measured, model)
        if self.has("late_s"):
            late += lateness_counts(rows[self._index["late_s"]])
        return agreement.figures, late

    def state_at(self, t_s: float) -> str:
        """State of the guard at or before a time; empty if the run has no such column."""
        if not self.has(GUARD_STATE) or not self.n_rows:
            return ""
        number = self.values.at(t_s)[self._index[GUARD_STATE]]
        return "" if np.isnan(number) else self.about.guard_states.get(int(number), "")

    @property
    def trip_texts(self) -> dict[str, str]:
        """Time and message of the first event of every fault, by the fault's name."""
        events = [n for n in self.notes if n.level == "fault" and n.source == "guard"]
        return {n.text.partition(":")[0]: f"{n.t_s:.3f} s: {n.text}" for n in reversed(events)}

    def faults_at(self, t_s: float) -> list[str]:
        """Faults latched at or before a time, the first cause first."""
        return [name for since_s, name in self.faults if since_s <= t_s]
