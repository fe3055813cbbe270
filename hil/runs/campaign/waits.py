"""Waits before a trial: the loop and its guard monitor the rig, which is never armed."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hil.errors import ConfigError, StopError
from hil.experiment.board_limits import thermal_cells
from hil.experiment.loaded import Experiment
from hil.loop import guard
from hil.loop.frame import Column
from hil.loop.stages import HotStart
from hil.loop.wait_condition import Condition, WaitCondition
from hil.mechanics.system import System
from hil.runs.assembly import NoSink, Pipeline, build
from hil.runs.campaign.tables import CampaignTables, ConditionTable
from hil.runs.figures import measure_faults
from hil.runs.plan import Plan
from hil.runs.rehearsal import compile_tick
from hil.runs.trial import Trial

LOOKS_S = 0.1
"""Observation time if there are preconditions only."""


@dataclass(frozen=True)
class Waited:
    """How a wait ended.

    Attributes
    ----------
    ended : {"met", "late", "unfit", "tripped", "aborted"}
        The conditions held; they did not hold in time; a precondition does not hold; the guard
            tripped; a signal ended the wait.
    waited_s : float
    readings : the last reading of every monitored quantity
    why : the conditions that do not hold, or the faults
    """

    ended: str
    waited_s: float
    readings: dict[str, float | None]
    why: list[str]


def conditions(tables: Sequence[ConditionTable]) -> list[Condition]:
    """The conditions in the form that the loop checks."""
    inf = float("inf")
    return [
        Condition(
            t.column, inf if t.below is None else t.below, -inf if t.above is None else t.above
        )
        for t in tables
    ]


def check_columns(
    where: str, tables: CampaignTables, config: Experiment, columns: Sequence[Column]
) -> list[str]:
    """Errors of conditions and measures that this configuration does not support.

    They name unknown columns, or times beyond the end of the experiment.
    """
    wrong = []
    rules = [(f"wait.until.{i}", c) for i, c in enumerate(tables.wait.until)] if tables.wait else []
    rules += [(f"preconditions.{i}", c) for i, c in enumerate(tables.preconditions)]
    for key, table in rules:
        try:
            conditions([table])[0].names(columns)
        except ConfigError as error:
            wrong.append(f"{where}: {key}.{error}")
    duration_s = config.tables.experiment.duration_s
    for name, measure in tables.measures.items():
        faults = measure_faults(f"measures.{name}", measure, columns, duration_s)
        wrong += [f"{where}: {fault}" for fault in faults]
    return wrong


def wait(
    config: Experiment,
    tables: CampaignTables,
    *,
    clock: str | None,
    backend: str,
    seed: int,
    plant: System | None,
) -> Waited:
    """Wait until the campaign's conditions hold, then check its preconditions.

    The temperature that a board measures (`CELL.temperature_C`) is that of the clamp. The wire's
    own temperature comes only from its model (`CELL.wire_model_C`), which starts each wait at the
    highest temperature that the wire may reach.

    Raises
    ------
    ConfigError, DeviceError
        As `hil.runs.session.run`.
    """
    rule, fit = tables.wait, conditions(tables.preconditions)
    until = WaitCondition([], LOOKS_S, LOOKS_S, fit)
    if rule is not None:
        until = WaitCondition(conditions(rule.until), rule.for_s, rule.longest_s, fit)
    outcome, why = _run_loop(config, until, clock, backend, seed, plant)
    late, unfit = until.missing()
    ended = {"tripped": "tripped", "aborted": "aborted"}.get(outcome, "met")
    if ended == "met" and not until.met:
        ended, why = "late", late or [f"not yet for {rule.for_s:g} s" if rule else ""]
    elif ended == "met" and unfit:
        ended, why = "unfit", unfit + [t.say for t in tables.preconditions if t.say]
    return Waited(ended, until.waited_s, until.readings(), why)


def _run_loop(
    config: Experiment,
    until: WaitCondition,
    clock: str | None,
    backend: str,
    seed: int,
    plant: System | None,
) -> tuple[str, list[str]]:
    """The outcome of the loop, and the faults that tripped it or the signal that ended it."""
    plan = Plan(config, backend, clock or "", seed, plant=plant)
    pipeline = build(plan)
    if plan.clock == "real":
        compile_tick(config)
    _assume_hot(config, pipeline)
    parts = pipeline.context(plan.new_clock(), NoSink(), until=until)
    trial = Trial(parts)
    with contextlib.suppress(StopError), trial:
        pipeline.rig.safe()  # sets a supply's off state before the first tick reads it
        trial.run()
    faults, stopped_by = guard.names_of(parts.guard.first_bits), parts.inputs.stop.reason
    return trial.outcome, faults or ([stopped_by] if stopped_by else [])


def _assume_hot(config: Experiment, pipeline: Pipeline) -> None:
    """Start the twin's wires at their maximum temperature: their history is unknown."""
    if isinstance(pipeline.estimator, HotStart):
        cells = config.model.cell_names
        hottest = thermal_cells(config.tables.model, config.model)
        hottest_C = [hottest[c].temperature_max_C if c in hottest else np.nan for c in cells]
        pipeline.estimator.assume_hot(np.array(hottest_C))
