"""Rehearsals on a simulated rig before any device opens: compilation, limits, plug-ins' times."""

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from hil.errors import ConfigError, StopError
from hil.experiment.loaded import Experiment
from hil.experiment.registry import system_kind
from hil.loop import requests
from hil.loop.clock import VirtualClock
from hil.loop.context import LoopContext
from hil.loop.frame import Frame
from hil.mechanics.system import System
from hil.plugins import code as plugin_code
from hil.plugins.load import plugin_tables
from hil.runs.assembly import NoSink, build
from hil.runs.plan import Plan
from hil.runs.trial import Trial

REHEARSED_TICKS = 60_000  # takes a few seconds
TIMED_TICKS = 2000
PASSES_MAX = 6
TIMED_STEPS = 300  # of a system that runs code of others
TIMED_S = 2.0  # of stage time, after which a timed rehearsal stops
UNCOUNTED = 10  # first ticks, in which JIT compilation may still take place
BUDGET_SHARE = 0.5  # of a period: budget of plug-in code whose table has no `budget_s`
HUNG_REHEARSED_S = 10.0  # timeout of a call; a first call may compile


def compile_tick(config: Experiment) -> None:
    """JIT-compile everything before the run, on a separate simulated rig.

    Runs two ticks and as many more as the estimator needs for its first force sample and the
    controller for its first plan.
    """
    pipeline = build(Plan(config))
    n_ticks = 2 + round(_longest_wait_s(config) / config.tables.loop.period_s)
    parts = pipeline.context(VirtualClock(), NoSink())
    run_simulated(replace(parts, n_ticks=n_ticks))


def run_simulated(context: LoopContext) -> str:
    """Test a simulated rig and run the loop on it; returns the outcome.

    Raises
    ------
    KeyboardInterrupt
        A signal came: the run that follows must not begin.
    """
    trial = Trial(context)
    with contextlib.suppress(StopError), trial:
        trial.self_test()
        trial.run()
    context.inputs.stop.pass_on()
    return trial.outcome


def _longest_wait_s(config: Experiment) -> float:
    """Time after which every stage has run once, also those that do not run at every tick."""
    waits_s = config.controller.longest_wait_s, config.kind.observer_wait_s
    return max(wait_s(config.tables) for wait_s in waits_s)


def rehearse(config: Experiment, seed: int) -> None:
    """Run the first REHEARSED_TICKS of an experiment on a simulated rig, before any device opens.

    Raises
    ------
    ConfigError
        The guard tripped; the message has the cause and the time.
    """
    pipeline = build(Plan(config, seed=seed))
    fault_sink = FaultSink()
    parts = pipeline.context(VirtualClock(), fault_sink)
    parts = replace(parts, n_ticks=min(config.n_ticks, REHEARSED_TICKS), after_trip_ticks=0)
    outcome = run_simulated(parts)
    t_s = float(parts.frame.values[parts.frame.index("t_s")])
    if outcome == "tripped":
        causes = ", ".join(fault_sink.faults)
        raise ConfigError(
            f"{config.path}: its rehearsal on a simulated rig tripped at {t_s:g} s: {causes}: "
            "nothing was energised"
        )


def time_foreign(config: Experiment) -> list[str]:
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


def rehearse_plugins(config: Experiment, seed: int) -> list[str]:
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


def _stage_times_s(config: Experiment, seed: int, names: Sequence[str]) -> NDArray[np.float64]:
    """(n_ticks, n_stages) durations of the stages in a rehearsal [s]; ConfigError if it failed."""
    n_ticks = min(config.n_ticks, TIMED_TICKS)
    rehearsed = build(Plan(config, seed=seed))
    sink = TimingSink(rehearsed.frame, names, n_ticks)
    parts = rehearsed.context(VirtualClock(), sink)
    sink.stop = parts.inputs.stop
    run_simulated(replace(parts, n_ticks=n_ticks, after_trip_ticks=0))
    if sink.failure:
        raise ConfigError(f"{config.path}: {sink.failure}: nothing was energised")
    return sink.stage_s[: sink.rows]


def _within_budget(
    config: Experiment,
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
        self.stop = requests.Stop()
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
