"""Runs and configurations for the window; the only module of the window that imports hil.

Slow imports are inside the functions that use them, so that the first frame appears early.
"""

from __future__ import annotations

import contextlib
import json
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hil.errors import ConfigError, DeviceError
from hil.loop import tap as taps
from hil.platform.processes import (
    APART,
    LEAVE,
    PYTHON,
    STEP,
    ask_to_stop,
    be_nice,
    commands_with,
    is_alive,
)
from hil.record.live import PORT as FOXGLOVE_PORT
from hil_gui.run_data import About, Column, Note, Signal

if TYPE_CHECKING:
    from hil.experiment.figure import Figure

__all__ = ["APART", "FOXGLOVE_PORT", "LEAVE", "PYTHON", "STEP", "ConfigError", "DeviceError",
           "ask_to_stop", "be_nice", "is_alive"]  # fmt: skip

BLOCK = 8192
MOTION_S = 0.01
"""Time step at which the masses' motion is computed for its schematic, s."""


def drawn(settings: Mapping[str, Any]) -> Figure:
    """What the window draws of the system of a configuration."""
    from hil.experiment.figure import figure_of

    return figure_of(settings)


def causes() -> Mapping[str, str]:
    """Meaning of every fault of the guard, by its name."""
    from hil.loop.guard import CAUSES

    return CAUSES


def warm_up() -> None:
    """Import the modules that opening a run needs."""
    from hil import config  # noqa: F401
    from hil.experiment.registry import systems
    from hil.record import read  # noqa: F401

    systems()


class Runs:
    """The index of a folder of recordings.

    Raises
    ------
    ConfigError
        As `hil.runs.catalogue.query.Catalogue`.
    """

    def __init__(self, folder: Path) -> None:
        from hil.runs.catalogue.query import Catalogue

        self._catalogue = Catalogue(folder)

    def find(self, text: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Columns, the path first, and rows, newest first, by words or an expression."""
        from hil.runs.catalogue.query import SHOWN, Filter, of_words

        columns = ("path", *(name for name in SHOWN if name != "path"))
        answer = self._catalogue.find(Filter(where=of_words(text), columns=columns))
        return answer.columns, answer.rows

    @staticmethod
    def text(value: object) -> str:
        """A value as the list shows it."""
        from hil.runs.catalogue.query import shown

        return "" if value is None else shown(value)


def small_curves(recording: Path) -> tuple[bool, list[tuple[str, list[tuple[float, float]]]]]:
    """Whether a run is simulated; colours and points of its small curves."""
    from hil.reports.runs_page import thumbnail

    simulated, curves = thumbnail(recording)
    pairs = [(colour, [point.split(",") for point in points.split()]) for colour, points in curves]
    return simulated, [(colour, [(float(x), float(y)) for x, y in of]) for colour, of in pairs]


class File:
    """A recording, complete or still growing.

    Raises
    ------
    ConfigError
        The file is missing, damaged, or not a recording.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.n_rows = 0
        self._n_events = 0
        self._n_inputs = 0
        self.outcome = "running"
        self.summary: dict[str, Any] = {}
        with self._open() as (file, text_of, n_whole_rows):
            self.n_at_first = n_whole_rows(file)
            attrs = {key: text_of(value) for key, value in dict(file.attrs).items()}
            settings = tomllib.loads(attrs["experiment"])
            cells = [text_of(cell) for cell in file.get("model/cells", ())]
            if not cells and "cells_reported" in file["ticks"]:
                cells = [str(n + 1) for n in range(file["ticks/cells_reported"].shape[1])]
            self.about = About(
                path=path,
                title=f"{attrs['experiment_file'].split('/')[0]}: {attrs['experiment_name']}",
                backend=attrs["backend"],
                clock=attrs["clock"],
                created_utc=attrs["created_utc"],
                simulated=attrs["simulated"],
                columns=tuple(
                    _column(name, d, text_of)
                    for name, d in sorted(
                        file["ticks"].items(), key=lambda item: int(item[1].attrs.get("place", 0))
                    )
                ),
                cell_names=tuple(cells),
                settings=settings,
                figure=drawn(settings),
                sha256=attrs.get("configuration_sha256", ""),
                untold=attrs.get("untold", ""),
                levels_N=tuple(json.loads(attrs.get("force_levels_N", "[]"))),
            )

    @contextlib.contextmanager
    def _open(self) -> Iterator[Any]:
        from hil.record.layout import text_of
        from hil.record.read import n_whole_rows, open_h5

        with open_h5(self.path) as file:
            yield file, text_of, n_whole_rows

    def blocks(self) -> Iterator[tuple[dict[str, NDArray[Any]], float]]:
        """Yield the rows since the last call in blocks, each with the fraction read so far."""
        with self._open() as (file, text_of, n_whole_rows):
            end = n_whole_rows(file)
            ticks = dict(file["ticks"].items())
            while self.n_rows < end:
                a, b = self.n_rows, min(self.n_rows + BLOCK, end)
                block = {name: dataset[a:b] for name, dataset in ticks.items()}
                self.n_rows = b
                yield block, b / end
            self.outcome = text_of(file.attrs["outcome"])
            from hil.record.read import summary_of

            self.summary = summary_of(file)

    def outcome_now(self) -> str:
        """Outcome of the run as the file has it now."""
        with self._open() as (file, text_of, _):
            return str(text_of(file.attrs["outcome"]))

    def notes(self) -> list[Note]:
        """Events and inputs since the last call."""
        with self._open() as (file, _, n_whole_rows):
            events = file["events"][self._n_events : n_whole_rows(file, "events")]
            inputs = file["inputs"][self._n_inputs : n_whole_rows(file, "inputs")]
        self._n_events += len(events)
        self._n_inputs += len(inputs)
        return as_notes(events, inputs)


def _column(name: str, dataset: Any, text_of: Any) -> Column:
    attrs = dict(dataset.attrs)
    return Column(
        name=name,
        units=text_of(attrs["units"]),
        role=text_of(attrs["role"]),
        description=text_of(attrs["description"]),
        n_cells=dataset.shape[1] if dataset.ndim == 2 else 0,
        flags=tuple(text_of(flag) for flag in attrs.get("flags", ())),
        fractions=dataset.ndim == 2 and dataset.dtype.kind == "f",
    )


def as_notes(events: NDArray[np.void], inputs: NDArray[np.void]) -> list[Note]:
    """Convert events and inputs to notes, in the order of time."""
    notes = [
        Note(float(e["t_s"]), *(e[k].decode(errors="replace") for k in ("level", "source", "text")))
        for e in events
    ]
    for i in inputs:
        name, text = (i[k].decode(errors="replace") for k in ("name", "text"))
        value = float(i["value"])
        line = text if name == "note" else f"{name} = {value:g} {text}".rstrip()
        if np.isnan(value) and name != "note":
            line = f"{name} {text}".rstrip()
        notes.append(Note(float(i["t_s"]), "note" if name == "note" else "input", "operator", line))
    return sorted(notes, key=lambda note: note.t_s)


class Live:
    """A run in another process: reads its rows and sends it requests through its tap.

    Raises
    ------
    DeviceError
        The run is over, has not started, or has another version.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        paths = [path for number, path in taps.running() if number == pid]
        if not paths:
            raise DeviceError("the run is over, or has not started")
        try:
            self._tap = taps.attach(paths[0])
        except (OSError, ValueError):
            raise DeviceError("the run is over, or uses another version of hil") from None
        self._path = paths[0]
        self._taken = self._n_events = self._n_inputs = 0
        self._requests: taps.Requests | None = None
        self.n_lost = 0

    @property
    def is_recording(self) -> bool:
        """Whether the recorder has created the file, so that it can be read."""
        return self._tap.recorder_ready

    @property
    def state(self) -> str:
        """State of the rig, one of `hil.loop.states.STATES`."""
        return self._tap.state

    @property
    def is_over(self) -> bool:
        """Whether the loop has written its last row, or its process has ended."""
        return self._tap.closed or not any(pid == self.pid for pid, _ in taps.running())

    @property
    def n_rows(self) -> int:
        """Rows of the file that were taken."""
        return self._taken - self._tap.lost

    @property
    def has_overtaken(self) -> bool:
        """Whether rows that were not taken yet are in the file only."""
        return self._tap.ticks.written - self._taken > self._tap.ticks.capacity

    def skip(self, n_rows: int) -> None:
        """Skip rows that were already read from the file."""
        self._taken = n_rows + self._tap.lost

    def rows(self) -> NDArray[np.void]:
        """Rows since the last call."""
        rows, lost = self._tap.ticks.read(self._taken)
        self._taken += lost + len(rows)
        self.n_lost += lost
        return rows

    def notes(self) -> list[Note]:
        """Events and inputs since the last call."""
        events, lost = self._tap.events.read(self._n_events)
        self._n_events += lost + len(events)
        inputs, lost = self._tap.inputs.read(self._n_inputs)
        self._n_inputs += lost + len(inputs)
        return as_notes(events, inputs)

    def send(self, name: str, value: float = float("nan"), text: str = "") -> int:
        """Send a request to the loop; `hil.loop.tap.Requests` lists the names.

        Raises
        ------
        DeviceError
            Another window controls the run, or the run is over.
        """
        if self._requests is None:
            self._requests = taps.Requests(self._path)
        return self._requests.send(name, value, text)

    def close(self) -> None:
        if self._requests is not None:
            self._requests.close()
            self._requests = None


def rows_of(pid: int) -> int:
    """Number of rows that a run in another process has made; 0 before it has begun."""
    for number, path in taps.running():
        if number == pid:
            with contextlib.suppress(OSError, ValueError):
                return taps.attach(path).ticks.written
    return 0


def run_of(recording: Path) -> int | None:
    """Process id of the run that is recorded to this file; None if there is none.

    It reads the command line of the run's recorder.
    """
    wanted = recording.resolve()
    for pid, tap in taps.running():
        for words, folder in commands_with(str(tap)):
            if (folder / words[words.index(str(tap)) + 1]).resolve() == wanted:
                return pid
    return None


class Motion:
    """Displacements of the drawn masses, recomputed with the twin's model.

    A recording holds the twin's force but not the positions of its masses. So the twin is
    simulated here again from the reported cells, with time step MOTION_S.
    """

    def __init__(self, about: About) -> None:
        from hil.experiment.load import model_from_toml

        if about.figure is None or not about.figure.moving:
            raise ConfigError(f"{about.path}: its figure has no masses that move")
        model = model_from_toml(about.path, dict(about.settings))
        self._system = model.system(period_s=MOTION_S)
        self._inputs = np.zeros(len(self._system.inputs))
        outputs = list(self._system.outputs)
        self.names = [name for name in outputs if name.endswith("_m")]
        self._rows = np.array([outputs.index(name) for name in self.names], dtype=np.int64)
        self._next_s = 0.0
        self._duty = np.zeros(len(about.cell_names))
        self._left_t_s = np.zeros(0)
        self._left_on = np.zeros((len(about.cell_names), 0))

    def take(
        self, t_s: NDArray[np.float64], cells: NDArray[np.uint8] | NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Advance the model over new rows.

        Parameters
        ----------
        t_s : (n,) array
        cells : (N, n) array
            Reported state of the N cells, 255 (unknown) counts as off; or their duties.

        Returns
        -------
        t_s : (m,) array
            Times of the new model steps.
        displacements_m : (D, m) array
            Displacements `names` at these times.
        """
        t_s = np.concatenate((self._left_t_s, t_s))
        on = np.hstack((self._left_on, np.where(cells == 255, 0, cells)))
        times, moved = [], []
        while self._next_s + MOTION_S <= t_s[-1] + 1e-9:
            a, b = np.searchsorted(t_s, (self._next_s - 1e-9, self._next_s + MOTION_S - 1e-9))
            if b > a:
                self._duty = on[:, a:b].mean(axis=1)
            self._system.step(self._duty, self._inputs)
            self._next_s += MOTION_S
            times.append(self._next_s)
            moved.append(self._system.y[self._rows].copy())
        left = int(np.searchsorted(t_s, self._next_s - 1e-9))
        self._left_t_s, self._left_on = t_s[left:], on[:, left:]
        if not times:
            return np.zeros(0), np.zeros((len(self.names), 0))
        return np.array(times), np.array(moved).T


class Band:
    """The 95 % band of model and noise along a run, as its report and its validation have it.

    Attributes
    ----------
    noise : float
        Half width of the band of the channel's noise alone; 0 if it is unknown.
    without : str
        Why there is no band of model and noise; empty if there is one.
    """

    def __init__(self, about: About, signal: Signal | None, without: str = "") -> None:
        from hil.validation.band import Z_95, GrowingBand, stated_noise_N

        self.without, self._growing = without, None
        self.noise = 0.0
        measured = "" if signal is None else signal.columns["measured"]
        if measured == "force_measured_N":
            self.noise = Z_95 * stated_noise_N(about.settings)
        if without:
            return
        try:
            growing = GrowingBand(about.path)
        except ConfigError as error:
            self.without = str(error).removeprefix(f"{about.path}: ")
        else:
            if growing.column == measured:
                self._growing, self.noise = growing, growing.noise
            else:
                self.without = f"it is known of {growing.column} only"

    def take(self, rows: Mapping[str, Any] | NDArray[np.void]) -> NDArray[np.float64] | None:
        """Half width at every further row, (n,); None without a band."""
        if self._growing is None:
            return None
        half_width = self._growing.take(rows)
        self.noise = self._growing.noise
        return half_width


def load_settings(path: Path, sets: Mapping[str, str]) -> tuple[dict[str, Any], str]:
    """Load an experiment with these keys changed, and check it as `hil run` does.

    Returns
    -------
    settings : dict
        The merged configuration.
    sha256 : str
        Hash of the configuration, its calibrations and code, as in the recording of its run.

    Raises
    ------
    ConfigError
        One line for each error: file, key, value, remedy.
    """
    from hil.experiment.load import load

    config = load(path, [f"{key}={value}" for key, value in sets.items()])
    return tomllib.loads(config.to_toml()), config.sha256


def save_experiment(path: Path, sets: Mapping[str, str], out: Path) -> None:
    """Write an experiment with these keys changed; its comments and order stay.

    Raises
    ------
    ConfigError
        `out` is not beside the experiment, whose other files are named relative to it, or is the
        rig, or cannot be written.
    """
    from hil.errors import writing
    from hil.platform.whole_files import write_whole

    if out.suffix != ".toml" or out.resolve() == rig_of(path):
        raise ConfigError(f"{out}: give a file of its own that ends in .toml")
    if out.resolve().parent != path.resolve().parent:
        raise ConfigError(f"{out}: names files relative to {path.parent}: save it there")
    with writing(out):
        text = path.read_text(encoding="utf-8")
        write_whole(out, changed_toml(text, sets))


def changed_toml(text: str, sets: Mapping[str, str]) -> str:
    """A TOML text with values changed; its comments, order and layout stay."""
    import tomlkit
    from tomlkit.exceptions import ParseError
    from tomlkit.items import InlineTable

    from hil.config.files import parse_set

    document = tomlkit.parse(text)
    for key, value in sets.items():
        *above, last = key.split(".")
        table: Any = document
        for part in above:
            is_inline = isinstance(table, InlineTable)
            table = table.setdefault(part, tomlkit.inline_table() if is_inline else tomlkit.table())
        try:
            table[last] = tomlkit.value(value.strip())
        except ParseError:
            table[last] = tomlkit.item(parse_set(f"value={value}")["value"])
    return tomlkit.dumps(document)


class Question(NamedTuple):
    """A question of `hil new rig`; `is_open` where an answer need not be one of the choices."""

    key: str
    text: str
    default: str
    choices: tuple[str, ...]
    is_open: bool


def questions() -> list[Question]:
    """What `hil new rig` asks."""
    from hil.procedures.new_rig import Answers, choices, default
    from hil.procedures.questions import QUESTIONS

    return [
        Question(key, text, default(key), choices(key), Answers.model_fields[key].annotation is str)
        for key, text in QUESTIONS.items()
    ]


def sketch(answers: Mapping[str, str]) -> list[str]:
    """The array of these answers as text; ConfigError says what is missing."""
    from hil.procedures import new_rig

    return new_rig.sketch(new_rig.answers_of(answers, None, str))


def row_keys(path: Path, key: str) -> dict[str, bool]:
    """Keys that a row of a list of tables may have; whether each is a list of names."""
    from hil.experiment.load import load

    value: Any = load(path).tables
    for part in key.split("."):
        value = value[part] if isinstance(value, Mapping) else getattr(value, part)
    fields = type(value[0]).model_fields
    return {name: "list" in str(info) for name, info in fields.items()}


def preview(path: Path, settings: Mapping[str, Any]) -> About:
    """Metadata of a run that has not started, from its experiment; it has no columns yet."""
    picture = drawn(settings)
    return About(
        path=path,
        title=f"{path.resolve().parent.name}: {settings['experiment']['name']}",
        backend="",
        clock="",
        created_utc="",
        simulated="",
        columns=(),
        cell_names=tuple(f"{p.name}.{n + 1}" for p in picture.arrays for n in range(len(p.left))),
        settings=settings,
        figure=picture,
    )


def rig_of(path: Path) -> Path:
    """Rig file of an experiment; the experiment's own file if it names no rig."""
    with path.open("rb") as file:
        name = tomllib.load(file).get("rig")
    return path.resolve() if name is None else (path.parent / str(name)).resolve()


def rig_limits(path: Path) -> dict[str, float]:
    """Guard limits of the rig file; an experiment may tighten them but not loosen them."""
    with rig_of(path).open("rb") as file:
        limits = tomllib.load(file).get("guard", {})
    return {key: float(v) for key, v in limits.items() if isinstance(v, int | float)}
