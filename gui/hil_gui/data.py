"""Runs and configurations for the window; the only module here that imports hil.

What takes long to import is imported where it is used, so that the first frame need not wait.
"""

import contextlib
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hil import tap as taps
from hil.errors import ConfigError, DeviceError
from hil_gui.run_data import About, Column, Note

__all__ = ["ConfigError", "DeviceError"]

BLOCK = 8192
MOTION_S = 0.01
"""Period at which the array's motion is worked out for its picture."""


@dataclass(frozen=True)
class ArrayPicture:
    """One array as it is built: masses on a plane 1 by 1, cells as pairs of masses.

    Attributes
    ----------
    x, y : (M,) arrays
        Where masses are drawn at rest, layers from left (0) to right (1).
    moves : tuple of str
        For every mass the model's output that is its displacement in m; '' where it is held.
    cells : (N,) array
        The cells' places in the columns `cells_*`.
    dead, broken : frozenset of int
        Cells of this array, from 0, that heat nothing, and that hold nothing.
    """

    name: str
    ends: tuple[str, str]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    moves: tuple[str, ...]
    cells: NDArray[np.int64]
    dead: frozenset[int]
    broken: frozenset[int]


PICTURE_PERIOD_S = 0.001  # of a model that is built to be drawn only


class LimbPicture:
    """A limb moved by muscles, seen from its side: forward to the right, up.

    Attributes
    ----------
    bones : names of bodies
    muscles : names
    angles, activations : columns of a recording, one an angle and one a muscle
    start : (n,) array
        Angles at the start.
    """

    def __init__(self, table: Mapping[str, Any], outputs: Mapping[str, str]) -> None:
        from hil.config.build_limb import build_limb
        from hil.config.limb import LimbTable
        from hil.models.leg import minimal

        model = LimbTable.model_validate(dict(table))
        limb = build_limb(model)
        self._links, self._body_link = minimal.links_of(limb)
        self._work = minimal.work_for(self._links)
        self._kinematics = minimal.kinematics
        joints = limb.order()
        self.bones = tuple(joint.child for joint in joints)
        self.muscles = tuple(muscle.name for muscle in limb.muscles)
        self.angles = tuple(f"{name}.angle_model_rad" for name in limb.coordinates)
        self.activations = tuple(outputs.get(f"{name}.activation", "") for name in self.muscles)
        given = [a for j in joints for a in (j.angles_rad or (0.0,) * j.n_angles)]
        self.start = np.array(given, dtype=float)
        self._ends = {
            body: np.array([j.at_parent_m for j in joints if j.parent == body]).reshape(-1, 3)
            for body in self.bones
        }
        for body, ends in self._ends.items():
            if not len(ends):  # the last one: from its hindmost to its foremost place
                places = [p.at_m for m in limb.muscles for p in m.path if p.body == body]
                places += [p.at_m for p in model.points.values() if p.body == body]
                order = sorted(places, key=lambda place: place[1]) or [(0.0, 0.0, 0.0)]
                self._ends[body] = np.array([order[0], order[-1]], dtype=float)

    def place(
        self, angles: NDArray[np.float64]
    ) -> tuple[list[NDArray[np.float64]], list[NDArray[np.float64]]]:
        """Lines (k, 2) of bones and of muscles in this pose, m."""
        self._kinematics(self._links, self._work, angles, np.zeros(len(angles)))
        bones = []
        for body in self.bones:
            link = self._body_link[body]
            joint, turn = self._work.place[link], self._work.turn[link]
            ends = (self._ends[body] + self._links.centre[link]) @ turn.T + joint
            closed = [joint] if len(ends) > 1 else []
            bones.append(np.array([joint, *ends, *closed])[:, 1:].copy())
        first = self._links.first
        points = self._work.points[:, 1:3]
        muscles = [points[a:b].copy() for a, b in pairwise(first)]
        return bones, muscles


class BodyPicture:
    """A skeleton of rigid bodies as a stick figure: forward to the right, left into the depth, up.

    Its attributes are those of a `LimbPicture`, without muscles.
    """

    DEPTH = np.array([[1.0, 0.0], [0.7, 0.15], [0.0, 1.0]])
    """How front, left and up are drawn: an oblique view."""
    muscles: tuple[str, ...] = ()
    activations: tuple[str, ...] = ()

    def __init__(self, table: Mapping[str, Any]) -> None:
        from hil.config.bodies import BodiesTable
        from hil.config.build_bodies import build_bodies

        system = build_bodies(BodiesTable.model_validate(dict(table)), PICTURE_PERIOD_S)
        self._skeleton = system.motion.skeleton
        shown = system.shown
        self.angles = tuple(
            f"{name.rpartition('_')[0]}_model_{name.rpartition('_')[2]}" for name in shown
        )
        self.start = np.array([system.y[system.outputs.index(name)] for name in shown])
        self.bones = tuple(range(len(self._lines(self.start))))

    def _lines(self, pose: NDArray[np.float64]) -> NDArray[np.float64]:
        from hil.models.bodies.rotations import attitude

        A = attitude(pose[:-3].reshape(-1, 3))
        lines: NDArray[np.float64] = self._skeleton.lines(A)
        return lines + pose[-3:] - self._skeleton.centre_of_mass(A)

    def place(
        self, pose: NDArray[np.float64]
    ) -> tuple[list[NDArray[np.float64]], list[NDArray[np.float64]]]:
        """Lines (2, 2) of links in this pose: Bryant angles, then the centre of mass; m."""
        return list(self._lines(pose) @ self.DEPTH), []


def limb_picture(settings: Mapping[str, Any]) -> LimbPicture | BodyPicture | None:
    """The limb or the skeleton of a configuration; None on rigs of another kind."""
    model = settings.get("model", {})
    if model.get("kind") == "bodies":
        try:
            return BodyPicture(model)
        except ValueError:
            return None  # a recording of another version
    if model.get("kind") != "musculoskeletal":
        return None
    outputs = {
        str(output["drives"]): f"{name}_commanded"
        for device in settings.get("devices", {}).values()
        for name, output in device.get("outputs", {}).items()
    }
    try:
        return LimbPicture(model, outputs)
    except ValueError:
        return None  # a recording of another version


def causes() -> Mapping[str, str]:
    """What every fault of the guard means, in words."""
    from hil.guard import CAUSES

    return CAUSES


def warm_up() -> None:
    """Import what opening a run will need."""
    from hil import config  # noqa: F401
    from hil.models import array_system  # noqa: F401
    from hil.record import read  # noqa: F401


class File:
    """A recording, complete or still growing.

    Raises
    ------
    ConfigError
        It is missing, damaged, or no recording.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.n_rows = 0
        self._n_events = 0
        self._n_inputs = 0
        self.outcome = "running"
        self.summary: dict[str, Any] = {}
        with self._open() as (file, text_of, _):
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
                arrays=array_pictures(settings),
                limb=limb_picture(settings),
            )

    @contextlib.contextmanager
    def _open(self) -> Iterator[Any]:
        from hil.record.layout import text_of
        from hil.record.read import n_whole_rows, open_h5

        with open_h5(self.path) as file:
            yield file, text_of, n_whole_rows

    def blocks(self) -> Iterator[tuple[dict[str, NDArray[Any]], float]]:
        """Rows that were not taken before, in blocks, each with the share that is then done."""
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
        """How the run ended, as the file says."""
        with self._open() as (file, text_of, _):
            return str(text_of(file.attrs["outcome"]))

    def notes(self) -> list[Note]:
        """Events and inputs that were not taken before."""
        with self._open() as (file, _, _):
            events, inputs = file["events"][self._n_events :], file["inputs"][self._n_inputs :]
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
    )


def as_notes(events: NDArray[np.void], inputs: NDArray[np.void]) -> list[Note]:
    """Events and inputs as lines, in the order of time."""
    notes = [
        Note(float(e["t_s"]), *(e[k].decode(errors="replace") for k in ("level", "source", "text")))
        for e in events
    ]
    for i in inputs:
        name, text = (i[k].decode(errors="replace") for k in ("name", "text"))
        value = float(i["value"])
        said = text if name == "note" else f"{name} = {value:g} {text}".rstrip()
        if np.isnan(value) and name != "note":
            said = f"{name} {text}".rstrip()
        notes.append(Note(float(i["t_s"]), "note" if name == "note" else "input", "operator", said))
    return sorted(notes, key=lambda note: note.t_s)


class Live:
    """A run in another process, through its tap; what it asks of the loop are requests.

    Raises
    ------
    DeviceError
        The run is over.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        found = [path for number, path in taps.running() if number == pid]
        if not found:
            raise DeviceError("the run is over, or has not begun")
        try:
            self._tap = taps.attach(found[0])
        except (OSError, ValueError):
            raise DeviceError("the run is over, or of another version") from None
        self._path = found[0]
        self._taken = self._n_events = self._n_inputs = 0
        self._requests: taps.Requests | None = None
        self.n_lost = 0

    @property
    def is_recording(self) -> bool:
        """The recorder has the file open: it may be looked at."""
        return self._tap.recorder_ready

    @property
    def state(self) -> str:
        """The rig's, one of `hil.states.STATES`."""
        return self._tap.state

    @property
    def is_over(self) -> bool:
        """The loop has written its last row, or its process is gone."""
        return self._tap.closed or not any(pid == self.pid for pid, _ in taps.running())

    def skip(self, n_rows: int) -> None:
        """These rows have been taken from the file."""
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
        """Ask the loop for something; `hil.tap.Requests` has the names.

        Raises
        ------
        DeviceError
            Another window commands the run, or it is over.
        """
        if self._requests is None:
            self._requests = taps.Requests(self._path)
        return self._requests.send(name, value, text)

    def close(self) -> None:
        if self._requests is not None:
            self._requests.close()
            self._requests = None


def run_of(recording: Path) -> int | None:
    """The process whose run is being recorded there; None where there is none.

    Its recorder says so in its command line, on systems that have /proc.
    """
    wanted = recording.resolve()
    for pid, tap in taps.running():
        for entry in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                words = entry.read_bytes().decode(errors="replace").split("\0")
                if str(tap) in words[:-1]:
                    file = (entry.parent / "cwd").resolve() / words[words.index(str(tap)) + 1]
                    if file.resolve() == wanted:
                        return pid
    return None


def array_pictures(settings: Mapping[str, Any]) -> tuple[ArrayPicture, ...]:
    """The arrays of a configuration, laid out for drawing; none on rigs of another kind."""
    from hil.models.fingerprint import parse
    from hil.views import topology_picture

    model = settings.get("model", {})
    pictures, first = [], 0
    for name, table in model.get("arrays", {}).items():
        topology = parse(table["fingerprint"])
        x, y = topology_picture.positions(topology)
        inner = [f"{name}.x{m}_m" for m in range(2, topology.n_masses)]
        ends = (str(table["from"]), str(table["to"]))
        free = [model["points"][end]["support"] == "free" for end in ends]
        moves = [f"{end}.x_m" if is_free else "" for end, is_free in zip(ends, free, strict=True)]
        pictures.append(
            ArrayPicture(
                name=name,
                ends=ends,
                left=topology.left,
                right=topology.right,
                x=(x - x[0]) / (x[-1] - x[0]),
                y=y / topology_picture.HEIGHT,
                moves=(moves[0], *inner, moves[1]),
                cells=first + np.arange(topology.n_cells),
                dead=frozenset(n - 1 for n in table.get("dead_cells", ())),
                broken=frozenset(n - 1 for n in table.get("broken_cells", ())),
            )
        )
        first += topology.n_cells
    return tuple(pictures)


class Motion:
    """Displacements of an array's masses, from the twin's own equations.

    Recordings hold the twin's force but not where its masses are; the model that runs beside
    the hardware is run here once more on the reported cells, every MOTION_S.
    """

    def __init__(self, about: About) -> None:
        from hil.config.load import model_from_toml
        from hil.models.array_system import ArraySystem

        built = model_from_toml(about.path, dict(about.settings))
        if built is None:
            raise ConfigError(f"{about.path}: no array to draw")
        model, activation = built
        self._system = ArraySystem(model, activation, MOTION_S)
        outputs = model.outputs
        self.names = [name for name in outputs if name.endswith("_m")]
        self._rows = np.array([outputs.index(name) for name in self.names], dtype=np.int64)
        self._next_s = 0.0
        self._duty = np.zeros(len(about.cell_names))
        self._left_t_s = np.zeros(0)
        self._left_on = np.zeros((len(about.cell_names), 0))

    def take(
        self, t_s: NDArray[np.float64], cells: NDArray[np.uint8]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Come up to these rows (n,), (N, n): new times (m,) and displacements (D, m) in m."""
        t_s = np.concatenate((self._left_t_s, t_s))
        on = np.hstack((self._left_on, np.where(cells == 255, 0, cells)))
        times, moved = [], []
        while self._next_s + MOTION_S <= t_s[-1] + 1e-9:
            a, b = np.searchsorted(t_s, (self._next_s - 1e-9, self._next_s + MOTION_S - 1e-9))
            if b > a:
                self._duty = on[:, a:b].mean(axis=1)
            self._system.step(self._duty)
            self._next_s += MOTION_S
            times.append(self._next_s)
            moved.append(self._system.y[self._rows].copy())
        left = int(np.searchsorted(t_s, self._next_s - 1e-9))
        self._left_t_s, self._left_on = t_s[left:], on[:, left:]
        if not times:
            return np.zeros(0), np.zeros((len(self.names), 0))
        return np.array(times), np.array(moved).T


def load_settings(path: Path, sets: Mapping[str, str]) -> dict[str, Any]:
    """The whole configuration of an experiment with these keys changed, checked as `hil run` does.

    Raises
    ------
    ConfigError
        One line an error: file, key, value, remedy.
    """
    from hil.config import load

    config = load(path, [f"{key}={value}" for key, value in sets.items()])
    return dict(tomllib.loads(config.to_toml()))


def preview(path: Path, settings: Mapping[str, Any]) -> About:
    """The head of a run that has not begun: what its experiment says, no columns yet."""
    pictures = array_pictures(settings)
    return About(
        path=path,
        title=f"{path.resolve().parent.name}: {settings['experiment']['name']}",
        backend="",
        clock="",
        created_utc="",
        simulated="",
        columns=(),
        cell_names=tuple(f"{p.name}.{n + 1}" for p in pictures for n in range(len(p.left))),
        settings=settings,
        arrays=pictures,
        limb=limb_picture(settings),
    )


def rig_of(path: Path) -> Path:
    """The file of an experiment's rig: its own, where it names none."""
    with path.open("rb") as file:
        name = tomllib.load(file).get("rig")
    return path.resolve() if name is None else (path.parent / str(name)).resolve()


def rig_limits(path: Path) -> dict[str, float]:
    """The rig's own limits, which an experiment may tighten but not loosen."""
    with rig_of(path).open("rb") as file:
        limits = tomllib.load(file).get("guard", {})
    return {key: float(v) for key, v in limits.items() if isinstance(v, int | float)}
