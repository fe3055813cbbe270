"""Descriptor of a kind of system, looked up by the `kind` of `[model]`.

A `model` is built once from its table when a file is read: a `CellArray` for a cellular array,
otherwise the system itself. A `System` is simulated step by step; the twin and the simulated plant
are one system each.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from hil.config.table import Table
from hil.devices.tables import CellBoardTable
from hil.loop.channels import RigLayout
from hil.loop.stages import Control, Estimator
from hil.mechanics.sma.limits import CellWire
from hil.mechanics.system import System
from hil.plugins.descriptors import Lazy
from hil.rig.instruments import outputs_of
from hil.rig.run_tables import RigTables, RunTables

Faults = Iterator[tuple[str, str]]
"""Errors as (key, text) pairs."""


class KindOfTable(Protocol):
    """A table that names its kind of system or controller."""

    @property
    def kind(self) -> str: ...


class Model(Protocol):
    """A model of any kind of system; the functions of a kind take its own class."""

    @property
    def cell_names(self) -> Sequence[str]: ...

    @property
    def inputs(self) -> Sequence[str]: ...

    @property
    def outputs(self) -> Sequence[str]: ...


@dataclass(frozen=True)
class ModelRequest:
    """Arguments of `hil model`.

    Attributes
    ----------
    model : the model, built by its kind of system
    activation : activation of each cell
    period_s : period of the loop
    order : order of a reduced model; None for no reduction
    out : file for its matrices, or for a functional mock-up unit (.fmu)
    fmi : major version of the unit's interface
    boards : driver boards that the unit has; none: it has the model alone
    bode : file for a figure of the frequency response
    measured : folder of `hil test bode` whose points are laid over it
    """

    model: Any
    activation: Sequence[Any]
    period_s: float
    order: int | None = None
    out: Path | None = None
    fmi: int = 3
    boards: Mapping[str, CellBoardTable] = field(default_factory=dict)
    bode: Path | None = None
    measured: Path | None = None

    @property
    def forces_on_N(self) -> NDArray[np.float64]:
        """Force of each cell while on."""
        return np.array([cell.force_on_N for cell in self.activation])


ModelAsked = ModelRequest
"""The older name, for plug-ins that have it."""


@dataclass(frozen=True)
class Description:
    """Description of a model, from its kind of system.

    Attributes
    ----------
    facts : values for JSON
    lines : the same as text
    whole : whether it replaces the general description of a model
    """

    facts: dict[str, object]
    lines: list[str]
    whole: bool = False


Extent = Literal["quick", "usual", "full"]


@dataclass(frozen=True)
class BenchPart:
    """A part of `hil bench`.

    Attributes
    ----------
    measure : returns its figures, ready for JSON
    as_text : formats the figures as a table
    extent : the smallest of `quick`, `usual` and `full` that includes it by default
    """

    measure: Lazy
    as_text: Lazy
    extent: Extent = "full"


@dataclass(frozen=True)
class SystemRun:
    """A run's tables, and the model that they describe.

    Attributes
    ----------
    kind : kind of system of the model
    model : the model of `[model]`
    """

    kind: "SystemKind"
    tables: RunTables
    model: Any

    @property
    def period_s(self) -> float:
        """Period of the loop, s."""
        return self.tables.loop.period_s

    @property
    def duration_s(self) -> float:
        """Duration of the experiment, s."""
        return self.tables.experiment.duration_s

    @property
    def forces_on_N(self) -> list[float]:
        """Force of each cell while on."""
        return [a.force_on_N for a in self.kind.activation(self.tables.model)]


@dataclass(frozen=True)
class ControlInputs(SystemRun):
    """Inputs for building a control stage.

    Attributes
    ----------
    layout : layout of readings and commands
    estimator : the estimator of the same run
    seed : seed of random draws
    """

    layout: RigLayout
    estimator: Any
    seed: int


def plan_outputs(run: SystemRun) -> list[str]:
    """Energise plan of a controller that drives outputs: the range and rate of each output."""
    return [
        f"the controller decides: {name} between {output.min:g} and {output.max:g}, at most "
        f"{output.rate_max_per_s:g} per second"
        for name, output in outputs_of(run.tables.devices).items()
    ]


def never_s(tables: RunTables) -> float:
    """Default of `longest_wait_s`: the controller does the same at every tick."""
    return 0.0


def never(table: Table) -> bool:
    """Default of `modulates`: cells are on or off."""
    return False


def always(table: Table) -> bool:
    """`modulates` of a controller that only commands duties."""
    return True


@dataclass(frozen=True)
class ControllerKind:
    """A controller of a kind of system.

    Attributes
    ----------
    table : model of its `[controller]` table, including `kind`
    build : builds its control stage
    check : yields its errors on this rig and model
    plan : lines of the energise plan
    estimator : builds an estimator that replaces the system's; None to keep the system's
    longest_wait_s : time within which it has run each of its code paths once, s
    switches : switching times and the cells on from then, for a controller that knows them before
        the run
    settles : times of a schedule, and the force that each state settles at, N
    broadcasts : whether it sends a broadcast in every period, so that cells draw by themselves
    modulates : table -> whether it commands duties (`hil.loop.frame.Commands`), not on and off
    sections : recording -> sections that a report adds for this controller
    """

    table: type[Table]
    build: Callable[[ControlInputs], Control]
    check: Callable[[SystemRun], Faults]
    plan: Callable[[SystemRun], list[str]] = plan_outputs
    estimator: Callable[[RunTables, Any, RigLayout], Estimator] | None = None
    longest_wait_s: Callable[[RunTables], float] = never_s
    switches: Callable[[SystemRun], Iterator[tuple[float, NDArray[np.uint8]]]] | None = None
    settles: Callable[[SystemRun], Iterator[tuple[float, float]]] | None = None
    broadcasts: bool = False
    modulates: Callable[[Any], bool] = never
    sections: Lazy | None = None


def outputs_of_system(model: Model) -> Sequence[str]:
    """Outputs of a model."""
    return model.outputs


def inputs_of_system(model: Model) -> Sequence[str]:
    """Inputs of a model."""
    return model.inputs


class Fitting(NamedTuple):
    """What is fitted to a recording, as `hil identify` is told: parameters, and lists of values."""

    recording: Path
    free: tuple[str, ...]
    fix: tuple[str, ...]
    each: tuple[str, ...]


class Fitted(NamedTuple):
    """A model that was fitted to a recording.

    Attributes
    ----------
    fitted : value of every fitted parameter, by its key in `[model]`
    adequate : whether the model explains the recording
    known : keys of the model as fitted, and of the plant as it is, which would follow the model
    """

    fitted: Mapping[str, float]
    adequate: bool
    known: Mapping[str, object]


def nothing(*args: object) -> Faults:
    """Default check: yields no errors."""
    yield from ()


def no_lines(*args: object) -> list[Any]:
    """Default for a list that a system does not have."""
    return []


@dataclass(frozen=True)
class SystemKind:
    """A kind of system.

    Attributes
    ----------
    kind : the `kind` of `[model]`
    table : model of its `[model]` table; None for a plug-in class, which defines its own keys
    build : (table, period_s) -> model; raises ModelError with the key
    estimator : (tables, new system, layout) -> the twin or observer of a run
    controllers : its controllers by `kind`
    system : (table, model, period_s) -> a new system at rest; None: call `build` again
    foreign : it runs code of others, whose steps are timed before a run on the real clock
    code : key of its table that names the file of this code; a recording runs it only if trusted
    signals : model -> signals that a channel may measure
    inputs : model -> inputs that an output may drive
    signal_needed : whether every channel must name its signal
    check_rig : errors of the rig, in addition to those of any rig
    check_run : errors of the experiment, in addition to those of its controller
    check_reference : errors of the set points; called only if there are no other errors
    doubts : warnings about choices that the file leaves open
    force_signal : signal of the controlled force channel; None if no force is controlled
    default_signal : signal of a force channel that names none
    activation : activation model of each cell, its force over time
    observer : model of its `[observer]` table, for a system that has one
    observer_wait_s : time within which the estimator has run each of its code paths once, s
    wires : the SMA wire of every cell by name
    supply_V : keys of the model with the supply's voltage, and their values
    recorded : matrices and names of the model for the recording
    sections : recording -> sections that a report adds for this system
    figure : settings -> `hil.experiment.figure.Figure` for the window
    description : `ModelRequest` -> `Description` for `hil model`
    identified : (experiment, `Fitting`) -> None, which refuses what cannot be fitted, and the same
        -> `Fitted`
    levels_N : (tables, model) -> the controlled forces that cells on or off can hold; empty if they
        are too many to draw
    untold : (model's table, plant's table) -> what disturbs the simulated plant and the twin is not
        told of, in words
    """

    kind: str
    table: type[Table] | None
    build: Callable[[Any, float], Any]
    estimator: Callable[[RunTables, Any, RigLayout], Estimator]
    controllers: Mapping[str, ControllerKind]
    system: Callable[[Any, Any, float], System] | None = None
    foreign: bool = False
    code: str = ""
    signals: Callable[[Any], Sequence[str]] = outputs_of_system
    inputs: Callable[[Any], Sequence[str]] = inputs_of_system
    signal_needed: bool = True
    check_rig: Callable[[RigTables, Any], Faults] = nothing
    check_run: Callable[[SystemRun], Faults] = nothing
    check_reference: Callable[[SystemRun], Faults] = nothing
    doubts: Callable[[RigTables], list[str]] = no_lines
    force_signal: Callable[[RigTables, Any], str] | None = None
    default_signal: Callable[[Any], str] | None = None
    activation: Callable[[Any], list[Any]] = no_lines
    observer: type[Table] | None = None
    observer_wait_s: Callable[[RunTables], float] = never_s
    wires: Callable[[Any, Any], Mapping[str, CellWire]] | None = None
    supply_V: Callable[[Any], list[tuple[str, float]]] = no_lines
    recorded: Callable[[Any, Any], dict[str, Any]] = field(default=lambda table, model: {})
    sections: Lazy | None = None
    figure: Lazy | None = None
    description: Lazy | None = None
    identified: tuple[Lazy, Lazy] | None = None
    levels_N: Callable[[RunTables, Any], list[float]] = no_lines
    untold: Callable[[Any, Any], list[str]] = no_lines

    def new_system(self, table: KindOfTable, model: Model, period_s: float) -> System:
        """A new system of this model, at rest."""
        if self.system is None:
            made: System = self.build(table, period_s)
            return made
        return self.system(table, model, period_s)
