"""A configuration as the parts of a run: rig, estimator, controller and guard, bound to one row."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hil import guard, inputs, loop, own
from hil.clock import Clock, RealClock, VirtualClock, sleep_s
from hil.config import Config, schema
from hil.config.arm import ArmTable, PointingTable
from hil.config.build import (
    build_activation,
    build_force_control,
    build_own_control,
    build_recruitment,
    build_signal,
    build_signal_pid,
    told_of,
)
from hil.config.build_arm import build_pointing
from hil.config.build_limb import build_antagonists
from hil.config.build_pantograph import build_impact_control
from hil.config.build_soft import build_soft_control
from hil.config.crosscheck import AMBIENT, force_signal
from hil.config.instruments import outputs_of, signals_of
from hil.config.limb import AntagonistsTable, LimbTable
from hil.config.own import OwnTable, own_tables
from hil.config.pantograph import ImpactTable, PantographTable
from hil.config.recruit_schema import OptimalTable, WiresTable
from hil.control.controller import Control
from hil.devices.injection import Injection
from hil.devices.replay import ReplayRig
from hil.errors import ConfigError, OwnError
from hil.estimate import ArmObserver, Estimator, ForceObserver, Twin
from hil.estimate_arm import LinkObserver, link_observer
from hil.frame import Column, Commands, Frame
from hil.models.arm.system import ArmSystem
from hil.models.bodies.system import BodySystem
from hil.models.leg.system import LimbSystem
from hil.models.pantograph_system import PantographSystem
from hil.models.soft.arrays import SoftArraySystem
from hil.models.system import System
from hil.rig import Rig, build_rig
from hil.slots import RigLayout
from hil.trip_report import TripReport
from hil.waiting import Until

REHEARSED_TICKS = 60_000  # a few seconds' work
TIMED_TICKS = 2000
PASSES_MAX = 6
TIMED_S = 2.0  # after which a rehearsal has seen enough
UNCOUNTED = 10  # first ticks, in which something may still compile
BUDGET_SHARE = 0.5  # of a period, that code of one's own may take where its table says nothing
HUNG_REHEARSED_S = 10.0  # of a first call, which may compile


class FaultyControl:
    """A control stage that asks for what is no number while `controller_nan` is there.

    While `controller_raises` is there it fails as one's own would.
    """

    def __init__(self, inner: Control, injection: Injection) -> None:
        self._inner = inner
        self._injection = injection

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    @property
    def columns(self) -> list[Column]:
        return self._inner.columns

    def bind(self, frame: Frame, measured: NDArray[np.float64], commands: Commands) -> None:
        self._outputs = commands.outputs
        self._inner.bind(frame, measured, commands)

    def restart(self) -> None:
        self._inner.restart()

    def step(self, t_s: float) -> None:
        self._inner.step(t_s)
        if self._injection.active("controller_nan"):
            self._outputs[:] = np.nan
        if self._injection.active("controller_raises"):
            raise OwnError("injected")


@dataclass(frozen=True)
class Stages:
    """A rig, and what estimates and controls on it, bound to one row."""

    rig: Rig
    estimator: Estimator
    control: Control
    frame: Frame

    def bind(self, rig: Rig | ReplayRig) -> None:
        """Let this rig fill the row, and the others work on what it read."""
        rig.bind(self.frame)
        self.estimator.bind(self.frame, rig.readings, rig.commands)
        self.control.bind(self.frame, rig.readings.measured, rig.commands)


def build(
    config: Config,
    seed: int,
    backends: Mapping[str, str] | None = None,
    injection: Injection | None = None,
    plant: System | None = None,
) -> Stages:
    rig = build_rig(config, seed, backends, RealClock().now_s, sleep_s, injection, plant)
    estimator = _estimator(config, rig.layout)
    control = _control(config, rig.layout, estimator, seed)
    if injection is not None:
        control = FaultyControl(control, injection)
    frame = Frame([*loop.columns(), *rig.columns, *estimator.columns, *control.columns])
    stages = Stages(rig, estimator, control, frame)
    stages.bind(rig)
    return stages


def _estimator(config: Config, layout: RigLayout) -> Estimator:
    tables = config.tables
    if config.arrays is None:
        twin = config.system()
        measured = signals_of(tables.devices)
        channels = [c for c in layout.channels if measured[c.name]]
        outputs = [list(twin.outputs).index(measured[c.name]) for c in channels]
        driven = [list(twin.inputs).index(o.drives) for o in outputs_of(tables.devices).values()]
        if isinstance(twin, ArmSystem) and isinstance(tables.controller, PointingTable):
            return link_observer(tables.controller, twin, layout, tables.devices)
        if isinstance(twin, PantographSystem):
            slots = [layout.slot(c.name) for c in channels]
            return ArmObserver(twin, channels, outputs, slots, driven)
        shown = twin.shown if isinstance(twin, LimbSystem | BodySystem) else ()
        return Twin(twin, channels, outputs, driven, shown)
    signal = force_signal(tables, config.model)
    told = told_of(tables, config.model, signal)
    plans = isinstance(tables.controller, OptimalTable) and told.has_wires
    around = tables.surroundings
    room = None if around is None else around.ambient_channel
    return ForceObserver(
        told.observer(tables.observer),
        np.array([a.force_on_N for a in told.activation]),
        layout.slot(layout.force),
        told.tests(tables.observer),
        told.wires(tables.observer) if plans else None,
        None if room is None else layout.slot(room),
        layout.sets_apart,
        config.model.cell_names,
    )


def _control(config: Config, layout: RigLayout, estimator: Estimator, seed: int) -> Control:
    tables, period_s = config.tables, config.tables.loop.period_s
    controller, follows = tables.controller, tables.reference
    if isinstance(controller, OwnTable):
        cells = list(config.system().cell_names)
        model = None if config.arrays is None else config.model
        return build_own_control(controller, follows, tables, cells, model, layout)
    if isinstance(controller, schema.SignalPidTable):
        signals = follows.signals if isinstance(follows, schema.SignalsReferenceTable) else {}
        outputs = outputs_of(tables.devices)
        return build_signal_pid(controller.loops, signals, layout, outputs, period_s)
    if isinstance(tables.model, schema.SoftTable):
        return _soft_control(config, layout, seed)
    if isinstance(controller, AntagonistsTable):
        return _antagonists(config, layout, controller)
    if isinstance(controller, PointingTable):
        assert isinstance(tables.model, ArmTable)  # crosscheck saw to it
        assert isinstance(estimator, LinkObserver)
        return build_pointing(
            controller, tables.model, estimator.belief, layout.channels,
            signals_of(tables.devices), outputs_of(tables.devices), period_s,
        )  # fmt: skip
    if isinstance(controller, ImpactTable):
        assert isinstance(tables.model, PantographTable)  # crosscheck saw to it
        outputs, measured = outputs_of(tables.devices), signals_of(tables.devices)
        return build_impact_control(controller, tables.model, measured, layout, outputs, period_s)
    F_N = [a.force_on_N for a in config.activation()]
    signal = force_signal(tables, config.model)
    force = None if isinstance(follows, schema.SignalsReferenceTable) else follows
    if isinstance(estimator, ForceObserver) and isinstance(controller, schema.RecruitTable):
        told = told_of(tables, config.model, signal)
        return build_recruitment(controller, force, told, estimator.belief, seed, tables.observer)
    if isinstance(controller, schema.RecruitTable):
        raise ConfigError(f"controller.kind = '{controller.kind}': this rig has no cells")
    usable = estimator.belief.usable if isinstance(estimator, ForceObserver) else None
    return build_force_control(
        controller, force, config.model, F_N, signal, layout, period_s, usable
    )


def _soft_control(config: Config, layout: RigLayout, seed: int) -> Control:
    """On the twin's statics: what the plant does with the same cells is for the loop to find."""
    tables, twin = config.tables, config.system()
    assert isinstance(twin, SoftArraySystem)
    follows = tables.reference
    signals = follows.signals if isinstance(follows, schema.SignalsReferenceTable) else {}
    measured = signals_of(tables.devices)
    channels = {c.name: (i, c, measured[c.name]) for i, c in enumerate(layout.channels)}
    return build_soft_control(
        tables.controller,
        {name: build_signal(signal) for name, signal in signals.items()},
        twin,
        [a.force_on_N for a in build_activation(tables.model)],
        channels,
        seed,
    )


def _antagonists(config: Config, layout: RigLayout, controller: AntagonistsTable) -> Control:
    tables, measured = config.tables, signals_of(config.tables.devices)
    assert isinstance(tables.model, LimbTable)  # crosscheck saw to it
    assert isinstance(tables.reference, schema.SignalsReferenceTable)
    return build_antagonists(
        controller,
        tables.model,
        build_signal(tables.reference.signals[controller.channel]),
        {c.name: (i, c, measured[c.name]) for i, c in enumerate(layout.channels)},
        outputs_of(tables.devices),
        tables.loop.period_s,
        config.n_ticks,
    )


def parts_of(
    config: Config,
    stages: Stages,
    clock: Clock,
    sink: loop.RowSink,
    rig: Rig | ReplayRig | None = None,
    armed: bool = True,
    until: Until | None = None,
) -> loop.Parts:
    """What the loop works with; on another rig than the stages' own where one is given.

    A run that only waits is not armed, and its guard does not compare with the twin, which knows
    nothing of what was on before.
    """
    tables, period_s = config.tables, config.tables.loop.period_s
    rig = stages.rig if rig is None else rig
    stages.bind(rig)
    layout = stages.rig.layout
    limits = _limits(tables, layout)
    checks = guard.Guard(limits, layout.n_cells, period_s, rig.states)
    there = {column.name for column in stages.frame.columns}
    models = [channel.column("model") for channel in layout.channels]
    model_at = [stages.frame.index(name) if name in there else -1 for name in models]
    if until is not None:
        until.bind(stages.frame)
        armed, model_at = False, []
    boards = [layout.devices.index(name) for name in layout.boards]
    checks.bind(rig.readings, rig.commands, stages.frame.values, model_at, boards)
    set_points = {
        channel.column("reference"): (signal.min, signal.max)
        for channel, signal in zip(layout.channels, limits.signals, strict=True)
    }
    measured = {
        channel.column("reference"): partial(rig.readings.measured.item, i)
        for i, channel in enumerate(layout.channels)
    }
    tare_max_N = inputs.TARE_SHARE_MAX * (tables.guard.force_max_N or np.inf)
    return loop.Parts(
        clock=clock,
        rig=rig,
        estimator=stages.estimator,
        control=stages.control,
        guard=checks,
        inputs=inputs.Inputs(
            sink, stages.control, checks, rig, set_points, tare_max_N, measured, was_armed=armed
        ),
        frame=stages.frame,
        report=TripReport(limits, layout, period_s, tables.guard.force_max_N or np.inf),
        sink=sink,
        period_s=period_s,
        n_ticks=config.n_ticks,
        after_trip_ticks=round(tables.loop.after_trip_s / period_s),
        armed=armed,
        tolerated_overruns=(
            tables.loop.overruns_max if tables.loop.overrun == "tolerate" else None
        ),
        until=until,
    )


def _limits(tables: schema.RunTables, layout: RigLayout) -> guard.Limits:
    g, force_max_N = tables.guard, tables.guard.force_max_N or np.inf
    signals, measured = [], signals_of(tables.devices)
    for channel in layout.channels:
        own = g.signals.get(channel.name)
        low, high = (-np.inf, np.inf) if own is None else (own.min, own.max)
        room = measured[channel.name] == AMBIENT  # may stand still all day
        frozen_s = np.inf if room else g.frozen_s or np.inf
        if not channel.force:
            rate = np.inf if own is None else own.rate_max_per_s or np.inf
            signals.append(guard.SignalLimits(low, high, rate_max_per_s=rate, frozen_s=frozen_s))
            continue
        signals.append(
            guard.SignalLimits(
                min=max(low, -force_max_N),
                max=min(high, force_max_N),
                is_force=True,
                rate_max_per_s=g.force_rate_max_N_per_s or np.inf,
                jump_max=g.force_jump_max_N or np.inf,
                residual_max=g.force_residual_max_N or np.inf,
                rise_min=g.force_rise_min_N or np.inf,
                frozen_s=frozen_s,
            )
        )
    return guard.Limits(
        cell_on_max_s=g.cell_on_max_s or np.inf,
        reading_age_max_s=g.reading_age_max_s,
        overruns_max=tables.loop.overruns_max if tables.loop.overrun == "trip" else 2**62,
        cells_on_max=g.cells_on_max or layout.n_cells,
        hold_s=g.hold_s,
        signals=signals,
        outputs=[
            guard.Envelope(o.min, o.max, o.rate_max_per_s, rest=min(max(0.0, o.min), o.max))
            for o in outputs_of(tables.devices).values()
        ],
    )


def prove(rig: Rig) -> None:
    """Connect to a rig and let it prove itself; somebody beside it is asked on the terminal."""
    rig.open()
    rig.prove(ask_somebody)


def ask_somebody(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


def compile_tick(config: Config) -> None:
    """Run ticks on a simulated rig of their own, so that no tick of the run compiles.

    Two, and on to where a first sample of force has been looked at and a first plan applied.
    """
    stages = build(config, 0)
    prove(stages.rig)
    n_ticks = 2 + round(_rarest_s(config.tables) / config.tables.loop.period_s)
    loop.run(replace(parts_of(config, stages, VirtualClock(), NoSink()), n_ticks=n_ticks))
    stages.rig.close()


def _rarest_s(tables: schema.RunTables) -> float:
    """When everything that is not done at every tick has been done once."""
    observer, controller = tables.observer, tables.controller
    budget_s = controller.budget_s if isinstance(controller, OptimalTable) else 0.0
    wires_s = (observer.wires or WiresTable()).sample_s
    failures_s = 0.0 if observer.failures is None else observer.failures.sample_s
    looks_at_wires = budget_s > 0.0 or observer.wire_failures is not None
    return max(budget_s, failures_s, wires_s if looks_at_wires else 0.0)


def rehearse(config: Config, seed: int) -> None:
    """The same run, or its first REHEARSED_TICKS, on a simulated rig before anything is opened.

    Raises
    ------
    ConfigError
        It tripped; with the cause and the time.
    """
    stages = build(config, seed)
    prove(stages.rig)
    heard = HearingSink()
    parts = parts_of(config, stages, VirtualClock(), heard)
    parts = replace(parts, n_ticks=min(config.n_ticks, REHEARSED_TICKS), after_trip_ticks=0)
    outcome = loop.run(parts)
    t_s = float(parts.frame.values[parts.frame.index("t_s")])
    stages.rig.close()
    if outcome == "tripped":
        causes = ", ".join(heard.faults)
        raise ConfigError(
            f"{config.path}: its rehearsal on a simulated rig tripped at {t_s:g} s: {causes}: "
            "nothing was energised"
        )


def rehearse_own(config: Config, seed: int) -> list[str]:
    """Code of one's own on a simulated rig, timed before anything is opened; how long it takes.

    The same ticks twice, or up to PASSES_MAX times: what a tick costs is the least, so that neither
    compiling nor a machine that stalls now and then counts. Median and worst are within the budget.

    Raises
    ------
    ConfigError
        It fails, or takes too long.
    """
    stages = {"model": "estimate_stage_s", "controller": "control_stage_s",
              "reference": "control_stage_s"}  # fmt: skip
    timed = {k: o for k, o in config.own.items() if k.partition(".")[0] in stages}
    if not timed:
        return []
    took_s = np.zeros(0)
    names = sorted(set(stages.values()))
    with own.watched(HUNG_REHEARSED_S):
        compile_tick(config)
        for n in range(1, PASSES_MAX + 1):
            again_s = _stage_times_s(config, seed, names)
            shared = min(len(took_s), len(again_s)) if n > 1 else 0
            took_s = np.minimum(took_s[:shared], again_s[:shared]) if n > 1 else again_s
            lines = []
            for key, used in timed.items():
                of_stage_s = took_s[:, names.index(stages[key.partition(".")[0]])]
                lines.append(_within_budget(config, key, used, of_stage_s, last=n == PASSES_MAX))
            if n > 1 and all(lines):
                break
    return lines


def _stage_times_s(config: Config, seed: int, names: Sequence[str]) -> NDArray[np.float64]:
    """How long these stages took, tick by tick, in a rehearsal; ConfigError where it failed."""
    n_ticks = min(config.n_ticks, TIMED_TICKS)
    rehearsed = build(config, seed)
    sink = TimingSink(rehearsed.frame, names, n_ticks)
    prove(rehearsed.rig)
    parts = parts_of(config, rehearsed, VirtualClock(), sink)
    sink.stop = parts.inputs.stop
    loop.run(replace(parts, n_ticks=n_ticks, after_trip_ticks=0))
    rehearsed.rig.close()
    if sink.failure:
        raise ConfigError(f"{config.path}: {sink.failure}: nothing was energised")
    return sink.took_s[: sink.rows]


def _within_budget(
    config: Config, key: str, used: own.Own, took_s: NDArray[np.float64], *, last: bool
) -> str:
    """How long it takes; empty where the worst tick is beyond the budget and may be tried again.

    Raises
    ------
    ConfigError
        The median is beyond the budget, or the worst tick still is.
    """
    period_s = config.tables.loop.period_s
    table = next(t for path, _, t in own_tables(config.tables) if ".".join(path) == key)
    budget_s = table.budget_s or BUDGET_SHARE * period_s
    median_s, worst_s = float(np.median(took_s)), float(took_s.max())
    said = (
        f"{used.kind} takes {1e3 * median_s:.3g} ms at the median, {1e3 * worst_s:.3g} ms at worst"
        f" of {len(took_s)} rehearsed ticks; its budget is {1e3 * budget_s:.3g} ms of a period of "
        f"{1e3 * period_s:.3g} ms"
    )
    if median_s > budget_s or (last and worst_s > budget_s):
        raise ConfigError(
            f"{config.path}: {key}: {used.file}, line {used.lines.get('', 1)}, class "
            f"{used.cls.__name__}: {said}: make it faster, or set loop.period_s or {key}.budget_s"
        )
    return said if worst_s <= budget_s else ""


class NoSink:
    """Takes rows and keeps none."""

    disk_low = ""

    def push(self) -> bool:
        return True

    def event(self, t_s: float, level: str, source: str, text: str) -> None:
        """Forgotten."""

    def requests(self, tick: int) -> Sequence[inputs.Request]:
        """Nobody asks."""
        return ()

    def input(self, tick: int, t_s: float, name: str, value: float, text: str = "") -> None:
        """Forgotten."""


class HearingSink(NoSink):
    """Keeps what tripped."""

    def __init__(self) -> None:
        self.faults: list[str] = []

    def event(self, t_s: float, level: str, source: str, text: str) -> None:
        if level == "fault":
            self.faults.append(text)


class TimingSink(NoSink):
    """Keeps how long some stages of every tick took, and why code of one's own failed."""

    def __init__(self, frame: Frame, names: Sequence[str], n_rows: int) -> None:
        self.names = list(names)
        self._values = frame.values
        self._at = [frame.index(name) for name in names]
        self.took_s = np.zeros((n_rows, len(names)))
        self.rows = 0
        self.failure = ""
        self.stop = inputs.Stop()
        self._left_s = TIMED_S

    def push(self) -> bool:
        took_s = self.took_s[self.rows] = self._values[self._at]
        self.rows += 1
        if self.rows > UNCOUNTED:
            self._left_s -= float(took_s.sum())
        if self._left_s < 0.0:
            self.stop.reason = "enough was seen"
        return True

    def event(self, t_s: float, level: str, source: str, text: str) -> None:
        name, _, why = text.partition(": ")
        if name == "own_code_failed":
            self.failure = f"rehearsed on a simulated rig, at {t_s:g} s: {why}"
