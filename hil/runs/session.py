"""One run from configuration to recording; leaves the rig safe on every exit path."""

import contextlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from hil.config.values import Figures
from hil.errors import ConfigError, ModelError, StopError, one_line
from hil.experiment.loaded import Experiment
from hil.loop.lateness import LatenessCauses
from hil.platform.terminal import say
from hil.platform.window import watch_this_run
from hil.plugins import code as plugin_code
from hil.record import live
from hil.record.door import Address
from hil.record.held import Replaced, held
from hil.record.progress import doing, show_progress
from hil.record.sink import Sink, check_disk
from hil.runs import expectations, recording
from hil.runs import logbook as logbooks
from hil.runs.assembly import Pipeline, build
from hil.runs.calibration_status import CalibrationStatus, strangers
from hil.runs.catalogue import index
from hil.runs.opened import interrupted_by_signals, stop_on_signals
from hil.runs.plan import Plan
from hil.runs.recording import Output, Result
from hil.runs.rehearsal import compile_tick, rehearse, rehearse_plugins, time_foreign
from hil.runs.trial import Trial


@dataclass(frozen=True)
class View:
    """Who watches a run.

    Attributes
    ----------
    progress : draw a progress bar on the terminal
    label : label of the progress bar
    window : show the run live in a window
    attended : started by a window: say every step of the start
    armed : start armed; else keep everything off until a window arms the run
    foxglove : serve the run live to Foxglove at this address
    """

    progress: bool = False
    label: str = "running"
    window: bool = False
    attended: bool = False
    armed: bool = True
    foxglove: Address | None = None


def from_options(config: Experiment, options: Figures) -> tuple[Plan, Output, View]:
    """The arguments of `run` from the names of all their attributes.

    Raises
    ------
    ConfigError
        As `Plan`, or an attribute that a recording cannot hold.
    TypeError
        An unknown name.
    """
    names = [{f.name for f in fields(kind) if f.init} - {"config"} for kind in (Plan, Output, View)]
    if unknown := set(options) - set().union(*names):
        raise TypeError(
            f"run() has no option {', '.join(sorted(unknown))}: "
            f"it has {', '.join(sorted(set().union(*names)))}"
        )
    plan, output, view = ({k: v for k, v in options.items() if k in of} for of in names)
    recording.refuse_attributes(output.get("attributes", {}))
    return Plan(config, **plan), Output(**output), View(**view)


def run(plan: Plan, output: Output = Output(), view: View = View()) -> Result:  # noqa: B008
    """Run an experiment and record it.

    Raises
    ------
    ConfigError
        The output is refused, or a rehearsal fails; no device was opened. Or the model itself
        failed during the run and everything is off.
    DeviceError
        A device failed; the recording is kept.
    """
    config = plan.config
    if not view.armed and plan.clock == "virtual":
        raise ConfigError("--disarmed: a run on the virtual clock cannot be armed: --clock real")
    if view.foxglove is not None:
        live.require_foxglove()
    for line in plan.status.warnings(on_bench=True) if plan.on_bench else ():
        say(f"warning: {line}", file=sys.stderr)
    path = output.path(config)
    timed = _rehearsed(plan, view)
    pipeline = build(plan)
    expectations.check(config, pipeline.frame.columns)
    raw_B = sum(s.per_tick * s.dtype.itemsize for _, s in pipeline.rig.samplers().values())
    row_B = pipeline.frame.dtype.itemsize + raw_B
    check_disk(path, config.n_ticks, row_B, config.tables.guard.disk_free_min_MB)
    book = logbooks.logbook_of(config, plan.backends)
    attributes: dict[str, str | int | float] = {}
    if book is not None:
        # From the recording of a run that was killed, which this one may replace.
        book.settle(logbooks.wires_of(config))
        attributes |= {"article": book.serial, "logbook": logbooks.opening(book)}
    attributes |= output.attributes
    with interrupted_by_signals(), Replaced(path) as previous:
        contents = recording.contents_of(plan, pipeline, attributes)
        created_utc = recording.create(path, contents, output.force)
        previous.created()
        title = f"hil: {config.rig_name}/{config.path.stem}"
        viewer = live.Server(view.foxglove, title, created_utc)
        try:
            with (
                held(path), plugin_code.watched(), logbooks.kept(book, config, path) as log, viewer,
            ):  # fmt: skip
                sink = recording.recorder(path, plan, pipeline, previous)
                trial = _prepared(plan, pipeline, sink, view, viewer)
                result = _recorded(plan, trial, sink, view, timed, previous)
                log.path = result.path
        except ModelError as error:
            # A step of the model failed. Everything is off and the recording is kept.
            raise ConfigError(one_line(f"{config.path}: model: {error}")) from None
    index.add(result.path)
    return result


def _rehearsed(plan: Plan, view: View) -> list[str]:
    """Rehearse the run as far as it needs; returns what to note of its plug-in code."""
    config = plan.config
    timed = [*rehearse_plugins(config, plan.seed), *recording.trust_code(config, "hil run")]
    timed += time_foreign(config) if plan.clock == "real" else []
    if plan.on_bench:
        with doing("rehearsing it on a simulated rig", view.progress, view.attended):
            rehearse(config, plan.seed)
    return timed


def _prepared(plan: Plan, pipeline: Pipeline, sink: Sink, view: View, viewer: live.Server) -> Trial:
    """The trial of a run, compiled and watched; abandons the recorder if that fails."""
    try:
        recording.connect(sink, plan, pipeline)
        viewer.start(sink.tap.path, pipeline.frame.columns, plan.config.models[0].cell_names)
        with doing("compiling, and trying the first ticks", view.progress, view.attended):
            compile_tick(plan.config)
        context = pipeline.context(plan.new_clock(), sink, armed=view.armed)
        if plan.clock == "real":
            context = replace(context, lateness=LatenessCauses(sink.event, context.period_s))
        if url := viewer.wait_ready():
            say(f"foxglove: {url}", file=sys.stderr)
    except BaseException:
        sink.abandon()
        raise
    return Trial(context)


def _recorded(
    plan: Plan, trial: Trial, sink: Sink, view: View, timed: Sequence[str], previous: Replaced
) -> Result:
    """Open the rig, test it and run the loop; the recording gets an outcome, whatever happens."""
    is_open, error, status = False, "", plan.status
    stop = trial.context.inputs.stop
    with stop_on_signals(stop):
        try:
            with contextlib.ExitStack() as stack:
                with doing("opening the devices", view.progress, view.attended):
                    stack.enter_context(trial)
                status = _with_strangers(plan, trial.context.rig)
                is_open = True
                sink.wait_ready()
                if view.window:
                    watch_this_run(sink.path)
                label = view.label if view.progress else ""
                with show_progress(sink.tap.path, plan.config.n_ticks, label):
                    recording.note_start(trial.context, plan, status, timed)
                    with doing("self-test of the rig", view.progress, view.attended):
                        trial.self_test()
                    trial.run()
            trial.look_back()
        except StopError:
            trial.outcome = "aborted"
        except BaseException as failure:
            error = str(failure) or type(failure).__name__
            raise
        finally:
            if is_open:
                result = recording.close(sink, trial, plan, error, status)
                previous.finished()
            else:
                sink.abandon()
    if not is_open:
        raise KeyboardInterrupt(stop.reason)
    return result


def _with_strangers(plan: Plan, rig: Any) -> CalibrationStatus:
    """The status with the boards that are not those of their bring-up, as they report themselves.

    Raises
    ------
    ConfigError
        The run is strict and there is such a board.
    """
    config, status = plan.config, plan.status
    real = {k: v for k, v in rig.identities().items() if k not in rig.simulated}
    lines = [f"{config.path}: {x}" for x in strangers(config.tables.devices, config.sources, real)]
    if plan.strict and lines:
        raise ConfigError(f"--strict: {'; '.join(lines)}")
    for line in lines:
        say(f"warning: {line}", file=sys.stderr)
    return replace(status, not_brought_up=[*status.not_brought_up, *lines])
