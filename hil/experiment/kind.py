"""What a kind of system brings: one descriptor, which everything else looks up by its `kind`.

A `model` is what a table describes, built once when a file is read: the array of a cellular array,
else the system itself. A `System` is stepped; the twin and the simulated plant are one each.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hil.config.table import Table
from hil.loop.channels import RigLayout
from hil.loop.stages import Control, Estimator
from hil.mechanics.sma.wire import SmaWire
from hil.mechanics.system import System
from hil.plugins.descriptors import Lazy
from hil.rig.instruments import outputs_of
from hil.rig.run_tables import RigTables, RunTables

Found = Iterator[tuple[str, str]]
"""What is wrong: (key, text) pairs."""


@dataclass(frozen=True)
class ModelAsked:
    """What `hil model` is asked for.

    Attributes
    ----------
    model : as its kind of system builds it
    forces_on_N : what each cell pulls while on
    order : of a reduction that is asked for
    out : file for its matrices
    """

    model: Any
    forces_on_N: NDArray[np.float64]
    order: int | None = None
    out: Path | None = None


@dataclass(frozen=True)
class Description:
    """What a kind of system says of a model.

    Attributes
    ----------
    facts : as JSON
    lines : the same for people
    whole : nothing else is said of the model
    """

    facts: dict[str, Any]
    lines: list[str]
    whole: bool = False


@dataclass(frozen=True)
class BenchPart:
    """A part of `hil bench`.

    Attributes
    ----------
    measure : its figures, as JSON takes them
    as_text : the figures as a table
    extent : the first of `quick`, `usual` and `full` that measures it unasked
    """

    measure: Lazy
    as_text: Lazy
    extent: Literal["quick", "usual", "full"] = "full"


@dataclass(frozen=True)
class SystemRun:
    """A run's tables, and the model that they describe.

    Attributes
    ----------
    kind : of the model
    model : of `[model]`
    """

    kind: "SystemKind"
    tables: RunTables
    model: Any

    @property
    def period_s(self) -> float:
        """Of the loop."""
        return self.tables.loop.period_s

    @property
    def duration_s(self) -> float:
        """Of the experiment."""
        return self.tables.experiment.duration_s

    @property
    def forces_on_N(self) -> list[float]:
        """What each cell pulls while on."""
        return [a.force_on_N for a in self.kind.activation(self.tables.model)]


@dataclass(frozen=True)
class ControlInputs(SystemRun):
    """What a control stage is built from.

    Attributes
    ----------
    layout : where readings and commands stand
    estimator : beside it in the tick
    seed : of random draws
    """

    layout: RigLayout
    estimator: Any
    seed: int


def plan_outputs(run: SystemRun) -> list[str]:
    """The energise plan of a controller that drives outputs: what each may do."""
    return [
        f"the controller decides: {name} between {output.min:g} and {output.max:g}, at most "
        f"{output.rate_max_per_s:g} a second"
        for name, output in outputs_of(run.tables.devices).items()
    ]


def never_s(tables: RunTables) -> float:
    """For controllers that do all they do at every tick."""
    return 0.0


@dataclass(frozen=True)
class ControllerKind:
    """A controller of a kind of system.

    Attributes
    ----------
    table : keys of its `[controller]`, its `kind` among them
    build : its control stage
    check : what is wrong with it on this rig and model
    plan : lines of the energise plan
    estimator : of its own, in place of the system's
    longest_wait_s : after which everything that it does not do at every tick has been done once
    switches : times and the cells on from then, of a controller that says so beforehand
    broadcasts : its cells draw by themselves, told so by a broadcast in every period
    sections : what a report adds to a run with it: recording -> sections of the page
    """

    table: type[Table]
    build: Callable[[ControlInputs], Control]
    check: Callable[[SystemRun], Found]
    plan: Callable[[SystemRun], list[str]] = plan_outputs
    estimator: Callable[[RunTables, Any, RigLayout], Estimator] | None = None
    longest_wait_s: Callable[[RunTables], float] = never_s
    switches: Callable[[SystemRun], Iterator[tuple[float, NDArray[np.uint8]]]] | None = None
    broadcasts: bool = False
    sections: Lazy | None = None


def outputs_of_system(model: Any) -> Sequence[str]:
    """For models that are systems: their outputs."""
    outputs: Sequence[str] = model.outputs
    return outputs


def nothing(*args: Any) -> Found:
    """No more than what every system is checked for."""
    yield from ()


def no_lines(*args: Any) -> list[Any]:
    """For systems that have none of these."""
    return []


@dataclass(frozen=True)
class SystemKind:
    """A kind of system.

    Attributes
    ----------
    kind : of `[model]`
    table : its keys; None for a plug-in class, whose keys are its own
    build : the model that a table describes, at a period; ModelError naming the key
    estimator : the twin or observer of a run: (tables, a new system, layout)
    controllers : by their `kind`
    system : a new system of this model, at rest: (table, model, period_s); None: build it anew
    signals : what a channel may measure of the model
    signal_needed : every channel says what it measures
    check_rig : what is wrong with the rig, beside what every rig is checked for
    check_run : what is wrong with an experiment, beside what its controller's check finds
    check_reference : what is wrong with the set points, once nothing else is
    doubts : lines on what the file leaves to be guessed
    force_signal : what the controlled force channel measures; empty where no force is controlled
    default_signal : what a force channel measures that does not say
    activation : how the force of each cell rises and falls
    observer : keys of `[observer]`, of a system that has one
    observer_wait_s : after which the estimator has done everything once
    wires : the wire of every cell by its name, and the most it may come to, deg C
    supply_V : keys of the model that say the supply's voltage, and their values
    recorded : matrices and names that a recording keeps of the model
    sections : what a report adds to every run: recording -> sections of the page
    figure : what the window draws: settings -> `hil.experiment.figure.Figure`
    description : what `hil model` says of the model beside its names: `ModelAsked` -> `Description`
    studies : modules of its studies by name (`hil.runs.study`)
    bench : its parts of `hil bench` by name
    """

    kind: str
    table: type[Table] | None
    build: Callable[[Any, float], Any]
    estimator: Callable[[RunTables, Any, RigLayout], Estimator]
    controllers: Mapping[str, ControllerKind]
    system: Callable[[Any, Any, float], System] | None = None
    signals: Callable[[Any], Sequence[str]] = outputs_of_system
    signal_needed: bool = True
    check_rig: Callable[[RigTables, Any], Found] = nothing
    check_run: Callable[[SystemRun], Found] = nothing
    check_reference: Callable[[SystemRun], Found] = nothing
    doubts: Callable[[RigTables], list[str]] = no_lines
    force_signal: Callable[[RigTables, Any], str] | None = None
    default_signal: Callable[[Any], str] | None = None
    activation: Callable[[Any], list[Any]] = no_lines
    observer: type[Table] | None = None
    observer_wait_s: Callable[[RunTables], float] = never_s
    wires: Callable[[Any, Any], Mapping[str, tuple[SmaWire, float]]] | None = None
    supply_V: Callable[[Any], list[tuple[str, float]]] = no_lines
    recorded: Callable[[Any, Any], dict[str, Any]] = field(default=lambda table, model: {})
    sections: Lazy | None = None
    figure: Lazy | None = None
    description: Lazy | None = None
    studies: Mapping[str, str] = field(default_factory=dict)
    bench: Mapping[str, BenchPart] = field(default_factory=dict)

    def new_system(self, table: Any, model: Any, period_s: float) -> System:
        """A new system of this model, at rest."""
        if self.system is None:
            made: System = self.build(table, period_s)
            return made
        return self.system(table, model, period_s)
