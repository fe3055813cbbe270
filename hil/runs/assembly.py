"""Builds the parts of a run from a configuration: rig, estimator, controller, guard."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hil.devices.board import protocol
from hil.devices.injection import Injection
from hil.errors import ConfigError, PluginError
from hil.experiment import board_limits, loop_limits
from hil.experiment.kind import ControlInputs
from hil.experiment.load import Config
from hil.experiment.registry import system_kind
from hil.loop import duty, guard, loop
from hil.loop import requests as inputs
from hil.loop.channels import RigLayout
from hil.loop.clock import Clock, RealClock, VirtualClock, sleep_s
from hil.loop.context import LoopContext, RowSink
from hil.loop.frame import Column, Commands, Frame
from hil.loop.stages import Control, Estimator
from hil.loop.trip_report import TripReport
from hil.loop.wait_condition import WaitCondition
from hil.mechanics.sma.loop_budget import SHARE_TO_ARM, HeatBudget
from hil.mechanics.system import System
from hil.plugins import code as plugin_code
from hil.plugins.load import plugin_tables
from hil.rig.instruments import AMBIENT, outputs_of, signals_of
from hil.rig.replay import ReplayRig
from hil.rig.rig import Rig, build_rig
from hil.rig.run_tables import RunTables

REHEARSED_TICKS = 60_000  # takes a few seconds
TIMED_TICKS = 2000
PASSES_MAX = 6
TIMED_STEPS = 300  # of a system that runs code of others
TIMED_S = 2.0  # of stage time, after which a timed rehearsal stops
UNCOUNTED = 10  # first ticks, in which JIT compilation may still take place
BUDGET_SHARE = 0.5  # of a period: budget of plug-in code whose table has no `budget_s`
HUNG_REHEARSED_S = 10.0  # timeout of a call; a first call may compile


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
        self._outputs, self._duty = commands.outputs, commands.duty
        self._inner.bind(frame, measured, commands)

    def restart(self) -> None:
        self._inner.restart()

    def step(self, t_s: float) -> None:
        self._inner.step(t_s)
        if self._injection.active("controller_nan"):
            self._outputs[:] = self._duty[:] = np.nan
        if self._injection.active("controller_raises"):
            raise PluginError("injected")


@dataclass(frozen=True)
class Pipeline:
    """A rig with its estimator and its control stage, bound to one row."""

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
    """Build the rig, estimator and control stage of a configuration and bind them to one row.

    Raises
    ------
    ConfigError
        The limits of a board on the bench are refused, or what excuses a slow computer there.
    """
    if config.excuses and "bench" in (backends or {}).values():
        raise ConfigError("\n".join(f"{line} (on the bench)" for line in config.excuses))
    boards = board_limits.protections(config.tables, config.models[0])
    on_bench = [b for b in boards if (backends or {}).get(b.name) == "bench"]
    board_limits.refuse(config.path, on_bench)
    modulates = config.modulates
    rig = build_rig(config, seed, backends, RealClock().now_s, sleep_s, injection, plant, modulates)
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
    """Build the context of the loop from a pipeline.

    Parameters
    ----------
    rig : replaces the rig of the pipeline, such as a `ReplayRig`
    armed : whether the run starts armed
    until : condition of a run that only waits. Such a run is not armed, and its guard does not
        compare readings with the twin, because the twin does not know the history of the cells.
    """
    tables, period_s = config.tables, config.tables.loop.period_s
    rig = pipeline.rig if rig is None else rig
    pipeline.bind(rig)
    layout = pipeline.rig.layout
    limits = _limits(tables, layout, loop_limits.budgets(tables, config.models[0]))
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


def _limits(
    tables: RunTables, layout: RigLayout, budgets: Mapping[str, HeatBudget]
) -> guard.Limits:
    g, force_max_N = tables.guard, tables.guard.force_max_N or np.inf
    signals, measured = [], signals_of(tables.devices)
    for channel in layout.channels:
        own = g.signals.get(channel.name)
        low, high = (-np.inf, np.inf) if own is None else (own.min, own.max)
        is_ambient = measured[channel.name] == AMBIENT  # may be constant for hours
        frozen_s = np.inf if is_ambient else g.frozen_s or np.inf
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
        duty_min=protocol.DUTY_MIN_PER_255 / duty.STEPS,
        heat=[_heat(budgets.get(cell)) for cell in layout.cell_names] if budgets else (),
        signals=signals,
        outputs=[
            guard.Envelope(o.min, o.max, o.rate_max_per_s, rest=min(max(0.0, o.min), o.max))
            for o in outputs_of(tables.devices).values()
        ],
    )


def _heat(budget: HeatBudget | None) -> guard.CellHeat:
    """The heat of a cell as the guard keeps it; a cell without a budget has no limit there."""
    if budget is None:
        return guard.CellHeat()
    return guard.CellHeat(
        budget.heats_K_per_s,
        budget.time_constant_s,
        budget.rise_max_K,
        SHARE_TO_ARM * budget.rise_max_K,  # the self-test has waited for it
    )


def ask_somebody(what: str) -> None:
    """Prompt the operator on the terminal."""
    print(what, file=sys.stderr, flush=True)


def compile_tick(config: Config) -> None:
    """JIT-compile everything before the run, on a separate simulated rig.

    Runs two ticks and as many more as the estimator needs for its first force sample and the
    controller for its first plan.
    """
    pipeline = build(config, 0)
    n_ticks = 2 + round(_longest_wait_s(config) / config.tables.loop.period_s)
    parts = parts_of(config, pipeline, VirtualClock(), NoSink())
    run_simulated(pipeline.rig, replace(parts, n_ticks=n_ticks))


def run_simulated(rig: Rig, parts: LoopContext) -> str:
    """Test a simulated rig and run the loop on it; returns the outcome."""
    with rig.opened():
        rig.self_test(ask_somebody)
        return loop.run(parts)


def _longest_wait_s(config: Config) -> float:
    """Time after which every stage has run once, also those that do not run at every tick."""
    waits_s = config.controller.longest_wait_s, config.kind.observer_wait_s
    return max(wait_s(config.tables) for wait_s in waits_s)


def rehearse(config: Config, seed: int) -> None:
    """Run the first REHEARSED_TICKS of an experiment on a simulated rig, before any device opens.

    Raises
    ------
    ConfigError
        The guard tripped; the message has the cause and the time.
    """
    pipeline = build(config, seed)
    fault_sink = FaultSink()
    parts = parts_of(config, pipeline, VirtualClock(), fault_sink)
    parts = replace(parts, n_ticks=min(config.n_ticks, REHEARSED_TICKS), after_trip_ticks=0)
    outcome = run_simulated(pipeline.rig, parts)
    t_s = float(parts.frame.values[parts.frame.index("t_s")])
    if outcome == "tripped":
        causes = ", ".join(fault_sink.faults)
        raise ConfigError(
            f"{config.path}: its rehearsal on a simulated rig tripped at {t_s:g} s: {causes}: "
            "nothing was energised"
        )


def time_foreign(config: Config) -> list[str]:
    """Time the steps of systems that run code of others, before a run on the real clock.

    Raises
    ------
    ConfigError
        One step in a hundred takes longer than the loop's period.
    """
    lines, period_s = [], config.tables.loop.period_s
    for key in ("model", "plant"):
        if not system_kind(getattr(config.tables, key)).foreign:
            continue
        taken_s = _step_s(config.system(plant=key == "plant"))
        text = f"{key}: 99 % of its steps take at most {1e6 * taken_s:.0f} us"
        if taken_s > period_s:
            raise ConfigError(
                f"{config.path}: {text}, and the loop's period is {1e6 * period_s:.0f} us: "
                "use --clock virtual, or lengthen loop.period_s"
            )
        lines.append(text)
    return lines


def _step_s(system: System) -> float:
    """The 99th percentile of the time of TIMED_STEPS steps at rest."""
    drive, inputs = np.zeros(len(system.cell_names)), np.zeros(len(system.inputs))
    durations_s = []
    for _ in range(TIMED_STEPS):
        start_s = perf_counter()
        system.step(drive, inputs)
        durations_s.append(perf_counter() - start_s)
    return float(np.quantile(durations_s, 0.99))


def rehearse_plugins(config: Config, seed: int) -> list[str]:
    """Time plug-in code on a simulated rig, before any device opens.

    The same ticks run two to PASSES_MAX times. The cost of a tick is the minimum over the passes,
    which excludes compilation and stalls of the computer. Median and maximum over the ticks must
    be within the budget.

    Returns
    -------
    list of str
        The measured times, a line for each class.

    Raises
    ------
    ConfigError
        The code fails, or takes too long.
    """
    stage_columns = {"model": "estimate_stage_s", "controller": "control_stage_s",
              "reference": "control_stage_s"}  # fmt: skip
    timed = {k: o for k, o in config.plugins.items() if k.partition(".")[0] in stage_columns}
    if not timed:
        return []
    stage_s = np.zeros(0)
    names = sorted(set(stage_columns.values()))
    with plugin_code.watched(HUNG_REHEARSED_S):
        compile_tick(config)
        for n in range(1, PASSES_MAX + 1):
            again_s = _stage_times_s(config, seed, names)
            shared = min(len(stage_s), len(again_s)) if n > 1 else 0
            stage_s = np.minimum(stage_s[:shared], again_s[:shared]) if n > 1 else again_s
            lines = []
            for key, plugin in timed.items():
                of_stage_s = stage_s[:, names.index(stage_columns[key.partition(".")[0]])]
                lines.append(_within_budget(config, key, plugin, of_stage_s, last=n == PASSES_MAX))
            if n > 1 and all(lines):
                break
    return lines


def _stage_times_s(config: Config, seed: int, names: Sequence[str]) -> NDArray[np.float64]:
    """(n_ticks, n_stages) durations of the stages in a rehearsal [s]; ConfigError if it failed."""
    n_ticks = min(config.n_ticks, TIMED_TICKS)
    rehearsed = build(config, seed)
    sink = TimingSink(rehearsed.frame, names, n_ticks)
    parts = parts_of(config, rehearsed, VirtualClock(), sink)
    sink.stop = parts.inputs.stop
    run_simulated(rehearsed.rig, replace(parts, n_ticks=n_ticks, after_trip_ticks=0))
    if sink.failure:
        raise ConfigError(f"{config.path}: {sink.failure}: nothing was energised")
    return sink.stage_s[: sink.rows]


def _within_budget(
    config: Config,
    key: str,
    plugin: plugin_code.Plugin,
    stage_s: NDArray[np.float64],
    *,
    last: bool,
) -> str:
    """The measured time as text; empty if only the worst tick exceeds the budget before `last`.

    Raises
    ------
    ConfigError
        The median exceeds the budget, or the worst tick does in the last pass.
    """
    period_s = config.tables.loop.period_s
    table = next(t for path, _, t in plugin_tables(config.tables) if ".".join(path) == key)
    budget_s = table.budget_s or BUDGET_SHARE * period_s
    median_s, worst_s = float(np.median(stage_s)), float(stage_s.max())
    timing = (
        f"{plugin.kind} takes {1e3 * median_s:.3g} ms at the median, {1e3 * worst_s:.3g} ms at "
        f"worst of {len(stage_s)} rehearsed ticks; its budget is {1e3 * budget_s:.3g} ms of a "
        f"period of {1e3 * period_s:.3g} ms"
    )
    if median_s > budget_s or (last and worst_s > budget_s):
        raise ConfigError(
            f"{config.path}: {key}: {plugin.file}, line {plugin.lines.get('', 1)}, class "
            f"{plugin.cls.__name__}: {timing}: make it faster, or set loop.period_s or "
            f"{key}.budget_s"
        )
    return timing if worst_s <= budget_s else ""


class NoSink:
    """A sink that discards rows."""

    disk_low = file_harmed = ""

    def push(self) -> bool:
        return True

    def event(self, t_s: float, level: str, source: str, text: str) -> None:
        """Does nothing."""

    def requests(self, tick: int) -> Sequence[inputs.Request]:
        """No requests."""
        return ()

    def input(self, tick: int, t_s: float, name: str, value: float, text: str = "") -> None:
        """Does nothing."""


class FaultSink(NoSink):
    """A sink that stores the causes of a trip."""

    def __init__(self) -> None:
        self.faults: list[str] = []

    def event(self, t_s: float, level: str, source: str, text: str) -> None:
        if level == "fault":
            self.faults.append(text)


class TimingSink(NoSink):
    """A sink that stores the durations of some stages, and why plug-in code failed."""

    def __init__(self, frame: Frame, names: Sequence[str], n_rows: int) -> None:
        self.names = list(names)
        self._values = frame.values
        self._at = [frame.index(name) for name in names]
        self.stage_s = np.zeros((n_rows, len(names)))
        self.rows = 0
        self.failure = ""
        self.stop = inputs.Stop()
        self._left_s = TIMED_S

    def push(self) -> bool:
        stage_s = self.stage_s[self.rows] = self._values[self._at]
        self.rows += 1
        if self.rows > UNCOUNTED:
            self._left_s -= float(stage_s.sum())
        if self._left_s < 0.0:
            self.stop.reason = "rehearsal is long enough"
        return True

    def event(self, t_s: float, level: str, source: str, text: str) -> None:
        name, _, why = text.partition(": ")
        if name == "own_code_failed":
            self.failure = f"rehearsed on a simulated rig, at {t_s:g} s: {why}"
