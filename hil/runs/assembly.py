"""Builds the parts of a run from a configuration: rig, estimator, controller, guard."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hil.devices.injection import Injection
from hil.errors import ConfigError, PluginError
from hil.experiment import board_limits
from hil.experiment.kind import ControlInputs
from hil.experiment.load import Config
from hil.loop import guard, loop
from hil.loop import requests as inputs
from hil.loop.channels import RigLayout
from hil.loop.clock import Clock, RealClock, VirtualClock, sleep_s
from hil.loop.context import LoopContext, RowSink
from hil.loop.frame import Column, Commands, Frame
from hil.loop.stages import Control, Estimator
from hil.loop.trip_report import TripReport
from hil.loop.wait_condition import WaitCondition
from hil.mechanics.system import System
from hil.plugins import code as plugin_code
from hil.plugins.load import plugin_tables
from hil.rig.instruments import AMBIENT, outputs_of, signals_of
from hil.rig.replay import ReplayRig
from hil.rig.rig import Rig, build_rig
from hil.rig.run_tables import RunTables

REHEARSED_TICKS = 60_000  # a few seconds' work
TIMED_TICKS = 2000
PASSES_MAX = 6
TIMED_S = 2.0  # after which a rehearsal has seen enough
UNCOUNTED = 10  # first ticks, in which something may still compile
BUDGET_SHARE = 0.5  # of a period, that plug-in code may take where its table says nothing
HUNG_REHEARSED_S = 10.0  # of a first call, which may compile


class FaultyControl:
    """A control stage that commands NaN while the fault `controller_nan` is active.

    While `controller_raises` is active it raises, as user code would.
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
            raise PluginError("injected")


@dataclass(frozen=True)
class Pipeline:
    """A rig, and what estimates and controls on it, bound to one row."""

    rig: Rig
    estimator: Estimator
    control: Control
    frame: Frame

    def bind(self, rig: Rig | ReplayRig) -> None:
        """Bind rig, estimator and controller to the row."""
        rig.bind(self.frame)
        self.estimator.bind(self.frame, rig.readings, rig.commands)
        self.control.bind(self.frame, rig.readings.measured, rig.commands)


def build(
    config: Config,
    seed: int,
    backends: Mapping[str, str] | None = None,
    injection: Injection | None = None,
    plant: System | None = None,
) -> Pipeline:
    boards = board_limits.protections(config.tables, config.models[0])
    on_bench = [b for b in boards if (backends or {}).get(b.name) == "bench"]
    board_limits.refuse(config.path, on_bench)
    rig = build_rig(config, seed, backends, RealClock().now_s, sleep_s, injection, plant)
    kind, tables, layout = config.kind, config.tables, rig.layout
    estimator_of = config.controller.estimator or kind.estimator
    estimator = estimator_of(tables, config.system(), layout)
    given = ControlInputs(kind, tables, config.models[0], layout, estimator, seed)
    control = config.controller.build(given)
    if injection is not None:
        control = FaultyControl(control, injection)
    frame = Frame([*loop.columns(), *rig.columns, *estimator.columns, *control.columns])
    pipeline = Pipeline(rig, estimator, control, frame)
    pipeline.bind(rig)
    return pipeline


def parts_of(
    config: Config,
    pipeline: Pipeline,
    clock: Clock,
    sink: RowSink,
    rig: Rig | ReplayRig | None = None,
    armed: bool = True,
    until: WaitCondition | None = None,
) -> LoopContext:
    """What the loop works with; on another rig than the stages' own where one is given.

    A run that only waits is not armed, and its guard does not compare with the twin, which knows
    nothing of what was on before.
    """
    tables, period_s = config.tables, config.tables.loop.period_s
    rig = pipeline.rig if rig is None else rig
    pipeline.bind(rig)
    layout = pipeline.rig.layout
    limits = _limits(tables, layout)
    checks = guard.Guard(limits, layout.n_cells, period_s, rig.states)
    if until is not None:
        until.bind(pipeline.frame)
        armed = False
    checks.bind(pipeline.frame, layout, rig.readings, rig.commands, with_model=until is None)
    set_points = {
        channel.column("reference"): (signal.min, signal.max)
        for channel, signal in zip(layout.channels, limits.signals, strict=True)
    }
    measured = {
        channel.column("reference"): partial(rig.readings.measured.item, i)
        for i, channel in enumerate(layout.channels)
    }
    tare_max_N = inputs.TARE_SHARE_MAX * (tables.guard.force_max_N or np.inf)
    return LoopContext(
        clock=clock,
        rig=rig,
        estimator=pipeline.estimator,
        control=pipeline.control,
        guard=checks,
        inputs=inputs.Inputs(
            sink, pipeline.control, checks, rig, set_points, tare_max_N, measured, was_armed=armed
        ),
        frame=pipeline.frame,
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


def _limits(tables: RunTables, layout: RigLayout) -> guard.Limits:
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


def self_test(rig: Rig) -> None:
    """Connect to a rig and run its self-test; prompts the operator on the terminal."""
    rig.open()
    rig.self_test(ask_somebody)


def ask_somebody(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


def compile_tick(config: Config) -> None:
    """JIT-compile everything before the run, on a separate simulated rig.

    Two, and on to where a first sample of force has been looked at and a first plan applied.
    """
    pipeline = build(config, 0)
    self_test(pipeline.rig)
    n_ticks = 2 + round(_longest_wait_s(config) / config.tables.loop.period_s)
    loop.run(replace(parts_of(config, pipeline, VirtualClock(), NoSink()), n_ticks=n_ticks))
    pipeline.rig.close()


def _longest_wait_s(config: Config) -> float:
    """When everything that is not done at every tick has been done once."""
    waits_s = config.controller.longest_wait_s, config.kind.observer_wait_s
    return max(wait_s(config.tables) for wait_s in waits_s)


def rehearse(config: Config, seed: int) -> None:
    """The same run, or its first REHEARSED_TICKS, on a simulated rig before anything is opened.

    Raises
    ------
    ConfigError
        It tripped; with the cause and the time.
    """
    pipeline = build(config, seed)
    self_test(pipeline.rig)
    heard = HearingSink()
    parts = parts_of(config, pipeline, VirtualClock(), heard)
    parts = replace(parts, n_ticks=min(config.n_ticks, REHEARSED_TICKS), after_trip_ticks=0)
    outcome = loop.run(parts)
    t_s = float(parts.frame.values[parts.frame.index("t_s")])
    pipeline.rig.close()
    if outcome == "tripped":
        causes = ", ".join(heard.faults)
        raise ConfigError(
            f"{config.path}: its rehearsal on a simulated rig tripped at {t_s:g} s: {causes}: "
            "nothing was energised"
        )


def rehearse_plugins(config: Config, seed: int) -> list[str]:
    """Plug-in code on a simulated rig, timed before anything is opened; how long it takes.

    The same ticks twice, or up to PASSES_MAX times: what a tick costs is the least, so that neither
    compiling nor a machine that stalls now and then counts. Median and worst are within the budget.

    Raises
    ------
    ConfigError
        It fails, or takes too long.
    """
    stage_columns = {"model": "estimate_stage_s", "controller": "control_stage_s",
              "reference": "control_stage_s"}  # fmt: skip
    timed = {k: o for k, o in config.plugins.items() if k.partition(".")[0] in stage_columns}
    if not timed:
        return []
    took_s = np.zeros(0)
    names = sorted(set(stage_columns.values()))
    with plugin_code.watched(HUNG_REHEARSED_S):
        compile_tick(config)
        for n in range(1, PASSES_MAX + 1):
            again_s = _stage_times_s(config, seed, names)
            shared = min(len(took_s), len(again_s)) if n > 1 else 0
            took_s = np.minimum(took_s[:shared], again_s[:shared]) if n > 1 else again_s
            lines = []
            for key, used in timed.items():
                of_stage_s = took_s[:, names.index(stage_columns[key.partition(".")[0]])]
                lines.append(_within_budget(config, key, used, of_stage_s, last=n == PASSES_MAX))
            if n > 1 and all(lines):
                break
    return lines


def _stage_times_s(config: Config, seed: int, names: Sequence[str]) -> NDArray[np.float64]:
    """How long these stages took, tick by tick, in a rehearsal; ConfigError where it failed."""
    n_ticks = min(config.n_ticks, TIMED_TICKS)
    rehearsed = build(config, seed)
    sink = TimingSink(rehearsed.frame, names, n_ticks)
    self_test(rehearsed.rig)
    parts = parts_of(config, rehearsed, VirtualClock(), sink)
    sink.stop = parts.inputs.stop
    loop.run(replace(parts, n_ticks=n_ticks, after_trip_ticks=0))
    rehearsed.rig.close()
    if sink.failure:
        raise ConfigError(f"{config.path}: {sink.failure}: nothing was energised")
    return sink.took_s[: sink.rows]


def _within_budget(
    config: Config, key: str, used: plugin_code.Plugin, took_s: NDArray[np.float64], *, last: bool
) -> str:
    """How long it takes; empty where the worst tick is beyond the budget and may be tried again.

    Raises
    ------
    ConfigError
        The median is beyond the budget, or the worst tick still is.
    """
    period_s = config.tables.loop.period_s
    table = next(t for path, _, t in plugin_tables(config.tables) if ".".join(path) == key)
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
    """A sink that discards rows."""

    disk_low = ""

    def push(self) -> bool:
        return True

    def event(self, t_s: float, level: str, source: str, text: str) -> None:
        """Forgotten."""

    def requests(self, tick: int) -> Sequence[inputs.Request]:
        """No requests."""
        return ()

    def input(self, tick: int, t_s: float, name: str, value: float, text: str = "") -> None:
        """Forgotten."""


class HearingSink(NoSink):
    """A sink that stores the causes of a trip."""

    def __init__(self) -> None:
        self.faults: list[str] = []

    def event(self, t_s: float, level: str, source: str, text: str) -> None:
        if level == "fault":
            self.faults.append(text)


class TimingSink(NoSink):
    """Keeps how long some stages of every tick took, and why plug-in code failed."""

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
