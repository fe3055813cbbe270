"""The recording of a run: where it goes, what it holds before its first row, and how it ends."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from numbers import Real
from pathlib import Path

from hil.calibration import sources
from hil.config.values import Figures
from hil.errors import ConfigError, DeviceError, is_utf8, one_line
from hil.experiment.loaded import Experiment
from hil.loop import guard
from hil.loop.clock import RealClock
from hil.loop.context import LoopContext
from hil.loop.requests import Stop
from hil.platform.processes import kill
from hil.platform.provenance import software, user
from hil.platform.terminal import word
from hil.plugins import trust
from hil.record import layout
from hil.record.content import ROOT
from hil.record.held import Replaced, refuse_held
from hil.record.read import open_h5
from hil.record.repair import describe, recover
from hil.record.sink import Sink, Writing
from hil.record.summary import plain, summarise
from hil.rig import calibrated
from hil.rig.instruments import GATES
from hil.rig.rig import Rig
from hil.runs.assembly import Pipeline
from hil.runs.calibration_status import CalibrationStatus
from hil.runs.expectations import columns_of, judged
from hil.runs.plan import Plan, today
from hil.runs.trial import Trial

WRITTEN = {*ROOT, "NX_class", "default", "format", "gates", "logbook"}  # attributes of every run
OTHER_FORMATS = (".csv", ".mat", ".mcap", ".mf4", ".parquet")  # of `hil export`


@dataclass(frozen=True)
class Output:
    """Where a run is recorded.

    Attributes
    ----------
    out : path of the recording; by default `runs/<rig>-<experiment>-<UTC>.h5`
    force : overwrite an existing file
    attributes : additional root attributes of the recording
    """

    out: str | Path | None = None
    force: bool = False
    attributes: Mapping[str, str | int | float] = field(default_factory=dict)

    def path(self, config: Experiment) -> Path:
        """Path of the recording.

        Raises
        ------
        ConfigError
            It cannot be written, or exists already.
        """
        if self.out is None:
            stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
            path = Path("runs") / f"{config.rig_name}-{config.path.stem}-{stamp}.h5"
        else:
            path = Path(self.out)
        if path.suffix in OTHER_FORMATS:
            raise ConfigError(
                f"{path}: a recording is an HDF5 file: name it {path.with_suffix('.h5').name}, and "
                "make other formats of it with hil export"
            )
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            exists = path.exists()
        except OSError as error:
            raise ConfigError(
                f"{path}: cannot be made ({error.strerror}): choose another --out"
            ) from None
        if exists and not path.is_file():
            what = "a folder" if path.is_dir() else "not a regular file"
            raise ConfigError(f"{path}: {what}: give --out the name of a file")
        if exists:
            refuse_held(path)
        if exists and not self.force:
            raise _exists_already(path)
        if not os.access(path.parent, os.W_OK):
            raise ConfigError(f"{path.parent}: may not be written: choose another --out")
        return path


def refuse_attributes(attributes: Mapping[str, object]) -> None:
    """Refuse attributes of a program that a recording cannot hold, or has itself.

    Raises
    ------
    ConfigError
        The name and what to give.
    """
    for name, value in attributes.items():
        where = f"attributes: {one_line(repr(name))}"
        if name in WRITTEN:
            raise ConfigError(f"{where}: a run writes this one itself: choose another name")
        if not (name and _is_text(name)):
            raise ConfigError(f"{where}: give a text as its name")
        if not (isinstance(value, Real) or _is_text(value)):
            raise ConfigError(f"{where} = {one_line(repr(value))}: give a number or a text")


def _is_text(value: object) -> bool:
    return isinstance(value, str) and "\0" not in value and is_utf8(value)


def _exists_already(path: Path) -> ConfigError:
    return ConfigError(f"{path}: exists already: choose another --out, or overwrite with --force")


@dataclass(frozen=True)
class Result:
    """Outcome of a run, path and summary of its recording, and what stopped it before its end."""

    path: Path
    outcome: str
    summary: Figures
    stop: Stop


def contents_of(
    plan: Plan, pipeline: Pipeline, attributes: Mapping[str, str | int | float]
) -> layout.Contents:
    """What the recording of a run holds before its first row, with these additional attributes."""
    config, tables = plan.config, plan.config.tables
    simulated = pipeline.rig.simulated
    known: dict[str, str | int | float] = {
        **_ambient(config),
        **attributes,
        "backend": plan.backend,
        "clock": plan.clock,
        "seed": plan.seed,
        "experiment": config.to_toml(),
        **config.hashes,
        "experiment_name": tables.experiment.name,
        "experiment_file": f"{config.rig_name}/{config.path.name}",
        "software": json.dumps(software()),
        "operator": tables.experiment.operator or user(),
        "gates": GATES,
        "simulated": f"SIMULATED: {', '.join(simulated)}" if simulated else "",
    }
    alike = simulated and tables.plant.kind == tables.model.kind
    if alike and (untold := config.kind.untold(tables.model, tables.plant)):
        known["untold"] = "; ".join(untold)
    if plan.injection is not None:
        faults = [fault.model_dump(exclude_none=True) for fault in plan.injection.faults]
        known["injected"] = json.dumps(faults)
    if config.force_signal:
        known["force_signal"] = config.force_signal
        followed = tables.reference is not None and not config.modulates
        if followed and (levels_N := config.kind.levels_N(tables, config.model)):
            known["force_levels_N"] = json.dumps(levels_N)
    return layout.Contents(
        pipeline.frame.columns,
        known,
        rows_per_chunk=int(min(4096, max(256, 1.0 / tables.loop.period_s))),
        calibration=calibrated.calibrations(tables, config.records, today()),
        records=sources.kept(config.sources, today()),
        model=model_arrays(config),
        raw={name: samples for name, (_, samples) in pipeline.rig.samplers().items()},
        plugins=_plugin_sources(config),
    )


def create(path: Path, contents: layout.Contents, force: bool) -> str:
    """Create the recording; returns the time that it was created."""
    try:
        return layout.create(path, contents, overwrite=force)
    except FileExistsError:
        raise _exists_already(path) from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written ({error}): choose another --out") from None


def recorder(path: Path, plan: Plan, pipeline: Pipeline, previous: Replaced) -> Sink:
    """Start the process that writes the rows of a run; the caller closes or abandons it."""
    tables, samplers = plan.config.tables, pipeline.rig.samplers()
    return Sink(
        path,
        pipeline.frame,
        Writing(
            tables.loop.period_s,
            tables.record.flush_s,
            tables.record.fsync_s,
            lossless=plan.clock == "virtual",
            disk_free_min_MB=tables.guard.disk_free_min_MB,
        ),
        raw={name: samples for name, (_, samples) in samplers.items()},
        begun=previous.started,
    )


def connect(sink: Sink, plan: Plan, pipeline: Pipeline) -> None:
    """Have fast devices, faults and the rig's state reach the recorder."""
    for name, (device, _) in pipeline.rig.samplers().items():
        device.record_raw(sink.tap.raw[name])
    if plan.injection is not None:
        plan.injection.at_start("recorder_killed", partial(kill, sink.pid))
    pipeline.rig.states.tell = sink.show_state


def close(sink: Sink, trial: Trial, plan: Plan, error: str, status: CalibrationStatus) -> Result:
    """End a recording with its outcome and summary, judged by what is expected of the run.

    Raises
    ------
    DeviceError
        The recorder has failed; what is left of the recording is kept.
    """
    context, outcome = trial.context, trial.outcome
    note_end(context, outcome, error)
    try:
        lost = sink.drain()
    except DeviceError as failed:  # too late for an event: goes to the terminal
        kept = [_recovered(sink.path)] if sink.tap.ticks.written else []
        causes = [*_failed_before(context, error), str(failed), *kept]
        raise DeviceError("; ".join(causes)) from None
    n_periods = context.n_ticks if outcome == "complete" else None
    figures = summarise(sink.path, context.period_s, context.clock.name, n_periods)
    summary = summary_of(trial, status, error=error, rows_lost=lost) | figures
    if isinstance(context.clock, RealClock):
        summary["timing"]["started_monotonic_s"] = context.clock.started_s
        summary["timing"]["kernel"] = plain(trial.kernel)
    if expected := plan.config.tables.expect:
        with open_h5(sink.path) as file:
            columns = {name: file["ticks"][name][:] for name in columns_of(expected)}
        summary["expectations"] = plain(judged(expected, columns, summary))
    layout.finish(sink.path, outcome, summary)
    return Result(sink.path, outcome, summary, context.inputs.stop)


def _recovered(path: Path) -> str:
    """Repair a recording whose recorder has failed; returns what is left of it as text."""
    try:
        rows = recover(path)
    except (ConfigError, DeviceError):
        return f"what it wrote is in {path}: free some space, then hil recover {word(path)}"
    return f"its {describe(path)['rows'] if rows is None else rows} rows are kept in {path}"


def note_start(
    context: LoopContext, plan: Plan, status: CalibrationStatus, timed: Iterable[str]
) -> None:
    """Record how a run starts, what is doubtful about its rig, and the times of plug-in code."""
    sink = context.sink
    sink.input(0, 0.0, "start", float(context.armed))
    how = "" if context.armed else ", not armed"
    sink.event(0.0, "info", "session", f"started on the {context.clock.name} clock{how}")
    for level, line in status.events(on_bench=plan.on_bench):
        sink.event(0.0, level, "calibration", line)
    for line in plan.config.doubts:
        sink.event(0.0, "warning", "configuration", line)
    for line in timed:
        sink.event(0.0, "info", "own code", line)


def note_end(context: LoopContext, outcome: str, error: str) -> None:
    """Record how a run ended."""
    t_s = float(context.frame.values[context.frame.index("t_s")])
    if context.inputs.stop.reason:
        context.sink.event(t_s, "warning", "operator", f"stopped by {context.inputs.stop.reason}")
    if error:
        context.sink.event(t_s, "error", "session", error)
    context.sink.event(t_s, "info", "session", f"ended: {outcome}")


def summary_of(
    trial: Trial, status: CalibrationStatus, *, error: str = "", rows_lost: int = 0
) -> Figures:
    """The summary of a trial, without the figures of its rows."""
    checks, rig = trial.context.guard, trial.context.rig
    return {
        "outcome": trial.outcome,
        "first_fault": guard.names_of(checks.first_bits),
        "faults": guard.names_of(checks.fault_bits),
        "stopped_by": trial.context.inputs.stop.reason,
        "error": error,
        "rows_lost": rows_lost,
        "loop_s": plain(trial.loop_s),
        "wear_per_h": rig.wear_per_h if isinstance(rig, Rig) else None,
        "calibration": status.as_dict(),
    }


def _failed_before(context: LoopContext, error: str) -> Iterator[str]:
    """Causes that ended a run, except a failed recorder, one phrase each."""
    other_bits = context.guard.fault_bits & ~(guard.RECORDER_DEAD | guard.DEVICE_FAILED)
    if other_bits:
        yield f"tripped by {', '.join(guard.names_of(other_bits))}"
    if error:
        yield error


def trust_code(config: Experiment, command: str) -> list[str]:
    """Trust the user's code of this run for a replay; returns a line if that cannot be stored."""
    try:
        for used in config.plugins.values():
            if not used.package:
                trust.trust(trust.sha256_of(used.source), f"{used.file.name}, by {command}")
        for unit in config.units.values():
            trust.trust(unit.sha256, f"{unit.file.name}, by {command}")
    except ConfigError as error:
        return [f"a replay will ask whether to trust it: {one_line(str(error))}"]
    return []


def _plugin_sources(config: Experiment) -> dict[str, dict[str, str]]:
    """The user's code of a run, in the form that the recording stores."""
    return {
        key: {
            "kind": used.kind,
            "file": used.file.name,
            "package": used.package,
            "sha256": trust.sha256_of(used.source),
            "source": used.source,
        }
        for key, used in config.plugins.items()
    }


def model_arrays(config: Experiment) -> dict[str, object]:
    """The twin as `/model` of the recording: names, and matrices if it is linear."""
    table, model = config.tables.model, config.models[0]
    names: dict[str, object] = {"inputs": list(model.inputs), "outputs": list(model.outputs)}
    if model.cell_names:
        names["cells"] = list(model.cell_names)
        names["force_on_N"] = config.run.forces_on_N
    return names | config.kind.recorded(table, model)


def _ambient(config: Experiment) -> dict[str, str | float]:
    """The ambient temperature as recording attributes; a measured one is in its column."""
    table = config.tables.ambient
    if table is None:
        return {}
    known = {"ambient_uncertainty_C": table.ambient_uncertainty_C or 0.0}
    if table.ambient_C is not None:
        return {**known, "ambient_C": table.ambient_C, "ambient_from": "read off"}
    return {**known, "ambient_from": f"channel {table.ambient_channel}"}
