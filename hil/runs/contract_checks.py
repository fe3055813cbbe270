"""Contract of user-written controllers, references, models and devices.

Each check is a function without arguments that raises `PluginError`, or `AssertionError` with one
line. A controller is tested on a substitute plant: cells that each add to a force, or an output
that moves a slide. With an experiment it has the facts and columns of its rig, and its time is that
of a rehearsal; else it has six cells, or, if it fails on these, the slide.
"""

import ast
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from hil.config.files import Merged
from hil.control.plugin import PluginControl, check_cells, readable
from hil.devices.board.protocol import DUTY_MIN_PER_255
from hil.devices.tables import PluginDeviceTable
from hil.errors import ConfigError, PluginError
from hil.experiment.load import load
from hil.experiment.loaded import Experiment
from hil.loop.duty import STEPS
from hil.plugins.code import Facts, Now, Plugin, Used, read_only, real
from hil.plugins.load import METHODS, PluginTable, Role, load_plugins
from hil.runs import rehearsal
from hil.runs.assembly import build
from hil.runs.plan import Plan

if TYPE_CHECKING:
    from hil.plugins.system import PluginSystem

Check = Callable[[], object]
N_TICKS = 500
PERIOD_S = 0.001  # of the substitute plants
TIMED = "takes at most half a period"
CELLS = Facts(
    PERIOD_S,
    channels=("force",),
    units=("N",),
    references=("force",),
    cells=tuple(f"muscle.{i}" for i in range(1, 7)),
    force_on_N=(1.0,) * 6,
    force="force",
    duty_min=DUTY_MIN_PER_255 / STEPS,
)
SLIDE = Facts(
    PERIOD_S, ("slide",), ("m",), ("slide",), outputs=("motor",), lowest=(-5.0,), highest=(5.0,)
)


@dataclass(frozen=True)
class Place:
    """What a controller is told of its rig.

    Attributes
    ----------
    columns : of twin and observer, which it may read
    """

    facts: Facts
    columns: Sequence[str] = ()


def checks_of(file: Path, experiment: Path | None, opened: bool) -> list[tuple[str, Check]]:
    """All checks of a file's classes, each with a name.

    Parameters
    ----------
    experiment : configuration that uses the file; adds a rehearsal of this experiment
    opened : whether the checks may open a device

    Raises
    ------
    ConfigError
        The file does not load, has no class with the methods of a role, or `experiment` uses none.
    """
    if experiment is not None:
        config = load(experiment)
        used = {
            key: plugin for key, plugin in config.plugins.items() if plugin.file.resolve() == file
        }
        if not used:
            raise ConfigError(f"{experiment}: uses no class of {file}")
        plugins = [(_role_of_key(key), plugin) for key, plugin in used.items() if key != "plant"]
        last = [("rehearsal: fits its rig, in time", partial(_rehearsed, experiment))]
        places = [_place_of(config)] if "controller" in used else []
        period_s = config.tables.loop.period_s
    else:
        plugins, last, places, period_s = _classes(file), [], [Place(CELLS), Place(SLIDE)], PERIOD_S
    makers: dict[Role, Callable[[Plugin], list[tuple[str, Check]]]] = {
        "controller": partial(_of_controller, places=places),
        "reference": _of_reference,
        "model": partial(_of_model, period_s=period_s),
        "device": partial(_of_device, opened=opened),
    }
    checks: list[tuple[str, Check]] = []
    for role, plugin in plugins:
        checks += [(f"{plugin.cls.__name__}: {n}", c) for n, c in makers[role](plugin)]
    return [(name, check) for name, check in checks if not (last and name.endswith(TIMED))] + last


def _place_of(config: Experiment) -> Place:
    """What the controller of an experiment is told."""
    pipeline = build(Plan(config))
    assert isinstance(pipeline.control, PluginControl)
    return Place(pipeline.control.facts, readable(pipeline.frame.columns))


def _role_of_key(key: str) -> Role:
    roles: dict[str, Role] = {"controller": "controller", "reference": "reference",
                              "model": "model", "devices": "device"}  # fmt: skip
    return roles[key.partition(".")[0]]


def _classes(file: Path) -> list[tuple[Role, Plugin]]:
    """The classes of a file that have the methods of a role, made with their default values."""
    try:
        nodes = ast.parse(file.read_text(encoding="utf-8")).body
    except (SyntaxError, UnicodeDecodeError) as error:
        line = getattr(error, "lineno", 1)
        raise ConfigError(f"{file}, line {line}: {error}") from None
    plugins = []
    for node in nodes:
        role = _role(node) if isinstance(node, ast.ClassDef) else None
        if role is not None and isinstance(node, ast.ClassDef):
            kind = f"{file.name}:{node.name}"
            make = PluginDeviceTable if role == "device" else PluginTable
            table = make(kind=kind)
            tables = _Tables(role, table)
            try:
                load_plugins(tables, Merged({}, [(str(file), {})]))
            except ConfigError as error:
                raise ConfigError(
                    f"{error} (with --hil-experiment EXPERIMENT.toml it gets the values of the "
                    "experiment)"
                    if ": missing: add it" in str(error)
                    else str(error)
                ) from None
            plugins.append((role, table.plugin))
    if not plugins:
        methods = "; ".join(f"{role}: {', '.join(names)}" for role, names in METHODS.items())
        raise ConfigError(f"{file}: has no class with the methods of a {methods}")
    return plugins


class _Tables:
    """A configuration that contains only one user's table."""

    def __init__(self, role: Role, table: PluginTable) -> None:
        self.devices = {"device": table} if role == "device" else {}
        if role != "device":
            setattr(self, role, table)


def _role(node: ast.ClassDef) -> Role | None:
    methods = {f.name: len(f.args.args) for f in node.body if isinstance(f, ast.FunctionDef)}
    if {"open", "read", "close"} <= methods.keys():
        return "device"
    if "at" in methods:
        return "reference"
    if "step" in methods:
        return "model" if methods["step"] > 2 else "controller"
    return None


def _rehearsed(experiment: Path) -> None:
    rehearsal.rehearse_plugins(load(experiment), 0)


def _in_time(
    plugin: Plugin, method: str, timed: Callable[[], list[float]], period_s: float
) -> None:
    """Refuse a method that exceeds its budget.

    The cost of a call is the minimum over a few passes, which excludes stalls of the computer.
    """
    took_s = timed()
    budget_s = rehearsal.BUDGET_SHARE * period_s
    for _ in range(rehearsal.PASSES_MAX):
        took_s = [min(both) for both in zip(took_s, timed(), strict=True)]
        if max(took_s) <= budget_s:
            return
    plugin.refuse(
        method,
        f"{method}() takes {1e3 * median(took_s):.3g} ms at the median, {1e3 * max(took_s):.3g} ms "
        f"at worst, beyond {1e3 * budget_s:.3g} ms, half a period",
    )


# Controllers


def _of_controller(plugin: Plugin, places: Sequence[Place]) -> list[tuple[str, Check]]:
    place = next((one for one in places if _fits(plugin, one)), places[0])
    return [
        ("gives a command for every cell and output", partial(_run_controller, plugin, place)),
        ("works without a reading or a set point", partial(_blind, plugin, place)),
        ("is reproducible", partial(_is_reproducible, plugin, place)),
        (TIMED, partial(_controller_in_time, plugin, place)),
    ]


def _fits(plugin: Plugin, place: Place) -> bool:
    try:
        _run_controller(plugin, place)
    except PluginError:
        return False
    return True


def _run_controller(
    plugin: Plugin, place: Place, missing: int = 0, took_s: list[float] | None = None
) -> list[list[float]]:
    """Commands of a controller in a loop with the substitute plant.

    Every `missing`-th reading is NaN, and every second of these set points too.
    """
    facts = place.facts
    made = plugin.make(facts)
    rng = np.random.default_rng(1)
    state, commands = 0.0, []
    cells = np.zeros(len(facts.cells), dtype=np.uint8)
    index = {name: i for i, name in enumerate(place.columns)}
    for k in range(N_TICKS):
        reference = 0.5 + 0.5 * (k >= N_TICKS // 2) if len(cells) else 0.02
        blind = bool(missing) and k % missing == 0
        measured = math.nan if blind else state + 1e-3 * rng.standard_normal()
        wanted = math.nan if blind and k % 2 else reference
        now = Now(
            k * facts.period_s,
            read_only(np.full(len(facts.references), wanted)),
            read_only(np.full(len(facts.channels), measured)),
            read_only(cells),
            np.full(len(index), state),
            index,
        )
        before = (now.reference.tobytes(), now.measured.tobytes(), now.cells.tobytes())
        began_s = perf_counter()
        step_values = made.numbers("step", facts.n_commands, now)
        if took_s is not None:
            took_s.append(perf_counter() - began_s)
        if before != (now.reference.tobytes(), now.measured.tobytes(), now.cells.tobytes()):
            plugin.refuse("step", "step() changes its arguments")
        switched = step_values[: len(cells)]
        check_cells(plugin, switched, facts.duty_min)
        cells[:] = switched > 0.0
        driven = float(step_values[len(cells) :].sum()) * 1e-3
        pulled = 0.01 * (0.35 * float(switched.sum()) - state)
        state += pulled if len(cells) else driven * facts.period_s
        commands.append(step_values.tolist())
    return commands


def _blind(plugin: Plugin, place: Place) -> None:
    _run_controller(plugin, place, missing=7)


def _is_reproducible(plugin: Plugin, place: Place) -> None:
    first, second = _run_controller(plugin, place), _run_controller(plugin, place)
    for k, (a, b) in enumerate(zip(first, second, strict=True)):
        if a != b:
            plugin.refuse(
                "step", f"step() gives another answer at tick {k} when made anew: a replay "
                "would differ: draw from a seeded generator, keep nothing in the class",
            )  # fmt: skip


def _controller_in_time(plugin: Plugin, place: Place) -> None:
    def timed() -> list[float]:
        took_s: list[float] = []
        _run_controller(plugin, place, took_s=took_s)
        return took_s

    _in_time(plugin, "step", timed, place.facts.period_s)


# References


def _of_reference(plugin: Plugin) -> list[tuple[str, Check]]:
    return [
        ("gives a number at every time", partial(_numbers, plugin)),
        ("depends on time alone", partial(_of_time_alone, plugin)),
        (TIMED, partial(_reference_in_time, plugin)),
    ]


def _numbers(plugin: Plugin) -> None:
    made = plugin.make()
    for t_s in np.linspace(0.0, 60.0, 6001).tolist():
        made.number("at", t_s)


def _of_time_alone(plugin: Plugin) -> None:
    made, other = plugin.make(), plugin.make()
    times = np.linspace(0.0, 20.0, 401).tolist()
    forward = [made.number("at", t_s) for t_s in times]
    backward = [other.number("at", t_s) for t_s in reversed(times)][::-1]
    for t_s, a, b in zip(times, forward, backward, strict=True):
        if a != b:
            plugin.refuse("at", f"at({t_s:g}) gives {a:g}, and {b:g} when called in another order")


def _reference_in_time(plugin: Plugin) -> None:
    def timed() -> list[float]:
        made, took_s = plugin.make(), []
        for k in range(N_TICKS):
            began_s = perf_counter()
            made.number("at", k * PERIOD_S)
            took_s.append(perf_counter() - began_s)
        return took_s

    _in_time(plugin, "at", timed, PERIOD_S)


# Models


def _of_model(plugin: Plugin, period_s: float) -> list[tuple[str, Check]]:
    return [
        ("is a system with names and outputs at rest", partial(_system, plugin, period_s)),
        ("gives its outputs a period later", partial(_run_model, plugin, period_s)),
        ("is reproducible", partial(_model_repeats, plugin, period_s)),
        (TIMED, partial(_model_in_time, plugin)),
    ]


def _system(plugin: Plugin, period_s: float) -> "PluginSystem":
    from hil.plugins.system import PluginSystem

    return PluginSystem(plugin, period_s)


def _run_model(
    plugin: Plugin, period_s: float, took_s: list[float] | None = None
) -> list[list[float]]:
    system = _system(plugin, period_s)
    rng = np.random.default_rng(1)
    outputs = []
    for k in range(N_TICKS):
        drive = (rng.random(len(system.cell_names)) < 0.5).astype(np.float64)
        inputs = (
            0.01 * rng.standard_normal(len(system.inputs)) if k else np.zeros(len(system.inputs))
        )
        began_s = perf_counter()
        system.step(drive, inputs)
        if took_s is not None:
            took_s.append(perf_counter() - began_s)
        outputs.append(system.y.tolist())
    return outputs


def _model_repeats(plugin: Plugin, period_s: float) -> None:
    if _run_model(plugin, period_s) != _run_model(plugin, period_s):
        plugin.refuse(
            "step", "step() gives another answer when made anew: keep nothing in the class"
        )


def _model_in_time(plugin: Plugin) -> None:
    def timed() -> list[float]:
        took_s: list[float] = []
        _run_model(plugin, PERIOD_S, took_s)
        return took_s

    _in_time(plugin, "step", timed, PERIOD_S)


# Devices


def _of_device(plugin: Plugin, opened: bool) -> list[tuple[str, Check]]:
    checks: list[tuple[str, Check]] = [("is made without being opened", partial(_made, plugin))]
    if opened or callable(getattr(plugin.cls, "pretend", None)):
        how = "open" if opened else "pretend"
        checks += [
            (f"reads numbers ({how})", partial(_read, plugin, how)),
            (f"is closed twice ({how})", partial(_closed_twice, plugin, how)),
        ]
    return checks


def _made(plugin: Plugin) -> None:
    plugin.make()


def _opened(plugin: Plugin, how: str) -> Used:
    made = plugin.make()
    made.call(how)
    return made


def _read(plugin: Plugin, how: str) -> None:
    made = _opened(plugin, how)
    try:
        shape = None
        for k in range(50):
            answer = made.call("read", k * PERIOD_S)
            try:
                values = real(answer).astype(np.float64)
            except (TypeError, ValueError, OverflowError):
                plugin.refuse("read", f"read() gives {answer!r}: give an array of numbers")
            if values.ndim != 1 or (shape is not None and values.shape != shape):
                plugin.refuse("read", f"read() gives shape {values.shape}: give a number a channel")
            shape = values.shape
    finally:
        made.call("close")


def _closed_twice(plugin: Plugin, how: str) -> None:
    made = _opened(plugin, how)
    if hasattr(made.made, "safe"):
        made.call("safe")
    made.call("close")
    made.call("close")
