"""One run from configuration to recording; leaves the rig safe on every exit path."""

import contextlib
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import Any

from hil.calibration import sources
from hil.devices.injection import Injection
from hil.errors import ConfigError, DeviceError, ModelError, StopError, one_line
from hil.experiment.loaded import Experiment
from hil.loop import guard
from hil.loop.clock import Clock, RealClock, StallingClock, VirtualClock, sees_sleep
from hil.loop.context import LoopContext
from hil.loop.lateness import LatenessCauses
from hil.mechanics.system import System
from hil.platform import realtime, sleep
from hil.platform.processes import kill
from hil.platform.provenance import software, user
from hil.platform.terminal import say
from hil.platform.window import watch_this_run
from hil.plugins import code as plugin_code
from hil.plugins import trust
from hil.record import layout, live
from hil.record.held import Replaced, held, refuse_held
from hil.record.progress import show_progress
from hil.record.repair import describe, recover
from hil.record.sink import Sink, check_disk
from hil.record.summary import plain, summarise
from hil.rig import calibrated
from hil.rig.injection_check import refuse_absent
from hil.rig.instruments import GATES
from hil.rig.rig import Rig, parse_backend
from hil.runs import logbook as logbooks
from hil.runs.assembly import Pipeline, build, parts_of
from hil.runs.calibration_status import CalibrationStatus, status_of_rig, strangers
from hil.runs.opened import interrupted_by_signals, stop_on_signals
from hil.runs.rehearsal import compile_tick, rehearse, rehearse_plugins, time_foreign
from hil.runs.trial import Trial

OTHER_FORMATS = (".csv", ".mat", ".mcap", ".mf4", ".parquet")  # of `hil export`


@dataclass(frozen=True)
class Result:
    """Outcome of a run, path and summary of its recording."""

    path: Path
    outcome: str
    summary: dict[str, Any]


def run(
    config: Experiment,
    *,
    clock: str | None = None,
    backend: str = "sim",
    seed: int = 0,
    out: str | Path | None = None,
    force: bool = False,
    progress: bool = False,
    armed: bool = True,
    window: bool = False,
    foxglove: live.Address | None = None,
    strict: bool = False,
    injection: Injection | None = None,
    plant: System | None = None,
    attributes: Mapping[str, str | int | float] | None = None,
    label: str = "running",
) -> Result:
    """Run an experiment and record it.

    Parameters
    ----------
    clock : {"virtual", "real"}, by default virtual, and real when a device is on the bench
    backend : `sim`, or a backend for each device (`board=bench,daq=sim`)
    seed : seed of all random draws; the same seed on the virtual clock repeats every value
    out : path of the recording; by default `runs/<rig>-<experiment>-<UTC>.h5`
    force : overwrite an existing file
    progress : draw a progress bar on the terminal
    armed : start armed; else keep everything off until a window arms the run
    window : show the run live in a window
    foxglove : serve the run live to Foxglove at this address
    strict : bool
        Refuse calibrations that have expired, are missing or are ambiguous. On a bench also refuse
        values that are assumed or rehearsed, and boards whose limits are not known to protect the
        wires. Otherwise these are warnings in the recording, and on a bench also on the terminal.
    injection : faults for a simulated rig
    plant : the simulated plant in the state of an earlier run; by default a new one, at rest
    attributes : additional root attributes of the recording
    label : label of the progress bar

    Raises
    ------
    ConfigError
        The configuration or an argument is refused; no device was opened, or the model itself
        failed during the run and everything is off.
    DeviceError
        A device failed; the recording is kept.
    """
    backends, clock = where_it_runs(config, backend, clock)
    refuse_run(config, backends, clock, seed, injection)
    on_bench = "bench" in backends.values()
    if not armed and clock == "virtual":
        raise ConfigError("--disarmed: a run on the virtual clock cannot be armed: --clock real")
    if foxglove is not None:
        live.require_foxglove()
    status = status_now(config, backends, strict=strict)
    if on_bench:
        for line in status.warnings(on_bench=True):
            say(f"warning: {line}", file=sys.stderr)
    path = output_path(config, out, force)
    timed = [*rehearse_plugins(config, seed), *trust_code(config, "hil run")]
    timed += time_foreign(config) if clock == "real" else []
    if on_bench:
        rehearse(config, seed)
    pipeline = build(config, seed, backends, injection, plant)
    raw_B = sum(s.per_tick * s.dtype.itemsize for _, s in pipeline.rig.samplers().values())
    check_disk(path, config.n_ticks, pipeline.frame.dtype.itemsize + raw_B)
    book = logbooks.logbook_of(config, backends)
    extra_attributes: dict[str, str | int | float] = {}
    if book is not None:
        extra_attributes |= {"article": book.serial, "logbook": logbooks.opening(book)}
    with interrupted_by_signals(), Replaced(path) as previous:
        where: dict[str, str | int] = {"backend": backend, "clock": clock, "seed": seed}
        more = {**extra_attributes, **(attributes or {})}
        created_utc = _create(path, contents_of(config, pipeline, where, more), force)
        previous.created()
        bar = label if progress else ""
        viewer = live.Server(foxglove, f"hil: {config.rig_name}/{config.path.stem}", created_utc)
        try:
            with (
                held(path), plugin_code.watched(), logbooks.kept(book, config, path) as log, viewer,
            ):  # fmt: skip
                result = _run_recorded(
                    config,
                    path,
                    pipeline,
                    clock,
                    bar,
                    armed,
                    window,
                    viewer,
                    injection,
                    status,
                    timed,
                    on_bench,
                    strict,
                    previous,
                )
                log.path = result.path
                return result
        except ModelError as error:
            # A step of the model failed. Everything is off and the recording is kept.
            raise ConfigError(one_line(f"{config.path}: model: {error}")) from None


def refuse_run(
    config: Experiment,
    backends: Mapping[str, str],
    clock: str,
    seed: int,
    injection: Injection | None,
) -> None:
    """Refuse a seed that is none, and faults that this rig cannot have.

    Raises
    ------
    ConfigError
    """
    if not 0 <= seed < 2**63:
        raise ConfigError(f"--seed {seed}: give a whole number from 0 to 2^63 - 1")
    if injection is None:
        return
    if bench := [name for name, kind in backends.items() if kind == "bench"]:
        raise ConfigError(f"--inject: not on a bench: --backend {bench[0]}=bench")
    tables = config.tables
    refuse_absent(
        injection.faults, tables.devices, backends, clock, config.n_ticks, tables.loop.period_s
    )


def status_now(
    config: Experiment, backends: Mapping[str, str], *, strict: bool
) -> CalibrationStatus:
    """Status of a configuration's calibrations today, and of board limits on the bench.

    Raises
    ------
    ConfigError
        `strict` is set and the status has findings that it refuses.
    """
    real = {name for name, kind in backends.items() if kind == "bench"}
    status = status_of_rig(config, _today(), real)
    status = replace(
        status,
        unprotected=[f"{config.path}: {line}" for line in status.unprotected],
        not_brought_up=[f"{config.path}: {line}" for line in status.not_brought_up],
    )
    on_bench = bool(real)
    if strict and (refused := status.refused(on_bench=on_bench)):
        raise ConfigError(f"--strict: {'; '.join(refused)}")
    return status


def _with_strangers(
    status: CalibrationStatus, config: Experiment, rig: Rig, *, strict: bool
) -> CalibrationStatus:
    """The status with the boards that are not those of their bring-up, as they report themselves.

    Raises
    ------
    ConfigError
        `strict` is set and there is such a board.
    """
    real = {k: v for k, v in rig.identities().items() if k not in rig.simulated}
    found = [f"{config.path}: {x}" for x in strangers(config.tables.devices, config.sources, real)]
    if strict and found:
        raise ConfigError(f"--strict: {'; '.join(found)}")
    for line in found:
        say(f"warning: {line}", file=sys.stderr)
    return replace(status, not_brought_up=[*status.not_brought_up, *found])


def where_it_runs(
    config: Experiment, backend: str, clock: str | None
) -> tuple[dict[str, str], str]:
    """Backend of every device, and the clock: real when a device is on the bench, else virtual.

    Raises
    ------
    ConfigError
        An unknown backend or clock, or a bench on the virtual clock.
    """
    backends = parse_backend(backend, config.tables)
    on_bench = "bench" in backends.values()
    clock = clock or ("real" if on_bench else "virtual")
    if on_bench and clock == "virtual":
        raise ConfigError(f"--clock virtual: --backend {backend} runs in real time")
    if clock not in ("virtual", "real"):
        raise ConfigError(f"--clock {clock}: choose virtual or real")
    return backends, clock


def _run_recorded(
    config: Experiment,
    path: Path,
    pipeline: Pipeline,
    clock_name: str,
    bar: str,
    armed: bool,
    window: bool,
    viewer: live.Server,
    injection: Injection | None,
    status: CalibrationStatus,
    timed: list[str],
    on_bench: bool,
    strict: bool,
    previous: Replaced,
) -> Result:
    record = config.tables.record
    table = config.tables.loop
    spin_s = realtime.spin_s(table.spin_s, table.period_s)
    clock: Clock = RealClock(spin_s) if clock_name == "real" else VirtualClock()
    if injection is not None and clock_name == "virtual":
        clock = StallingClock(injection.stall_s, injection.asleep_s)
    samplers = pipeline.rig.samplers()
    sink = Sink(
        path,
        pipeline.frame,
        period_s=config.tables.loop.period_s,
        flush_s=record.flush_s,
        fsync_s=record.fsync_s,
        lossless=clock_name == "virtual",
        raw={name: samples for name, (_, samples) in samplers.items()},
        disk_free_min_MB=config.tables.guard.disk_free_min_MB,
        begun=previous.started,
    )
    try:
        for name, (device, _) in samplers.items():
            device.record_raw(sink.tap.raw[name])
        if injection is not None:
            injection.at_start("recorder_killed", partial(kill, sink.pid))
        viewer.start(sink.tap.path, pipeline.frame.columns, config.models[0].cell_names)
        compile_tick(config)
        parts = parts_of(config, pipeline, clock, sink, armed=armed)
        if clock_name == "real":
            lateness = LatenessCauses(sink.event, parts.period_s)
            parts = replace(parts, lateness=lateness)
        pipeline.rig.states.tell = sink.show_state
        if url := viewer.wait_ready():
            say(f"foxglove: {url}", file=sys.stderr)
    except BaseException:
        sink.abandon()
        raise
    is_open, error, trial = False, "", Trial(parts)
    with stop_on_signals(parts.inputs.stop):
        try:
            with trial:
                status = _with_strangers(status, config, pipeline.rig, strict=strict)
                is_open = True
                sink.wait_ready()
                if window:
                    watch_this_run(path)
                with _awake(clock_name, sink), show_progress(sink.tap.path, config.n_ticks, bar):
                    note_start(parts, config, status.events(on_bench=on_bench), timed)
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
                result = _close(sink, trial, error, status)
                previous.finished()
            else:
                sink.abandon()
    if not is_open:
        raise KeyboardInterrupt(parts.inputs.stop.reason)
    return result


def _close(sink: Sink, trial: Trial, error: str, status: CalibrationStatus) -> Result:
    parts, outcome = trial.context, trial.outcome
    note_end(parts, outcome, error)
    try:
        lost = sink.drain()
    except DeviceError as failed:  # too late for an event: goes to the terminal
        kept = [_recovered(sink.path)] if sink.tap.ticks.written else []
        raise DeviceError("; ".join([*_failed_before(parts, error), str(failed), *kept])) from None
    n_periods = parts.n_ticks if outcome == "complete" else None
    figures = summarise(sink.path, parts.period_s, parts.clock.name, n_periods)
    summary = summary_of(trial, status, error=error, rows_lost=lost) | figures
    if isinstance(parts.clock, RealClock):
        summary["timing"]["started_monotonic_s"] = parts.clock.started_s
        summary["timing"]["kernel"] = plain(trial.kernel)
    layout.finish(sink.path, outcome, summary)
    return Result(sink.path, outcome, summary)


def _recovered(path: Path) -> str:
    """Repair a recording whose recorder has failed; returns what is left of it as text."""
    try:
        rows = recover(path)
    except (ConfigError, DeviceError):
        return f"what it wrote is in {path}: free some space, then hil recover {path}"
    return f"its {describe(path)['rows'] if rows is None else rows} rows are kept in {path}"


def note_start(
    parts: LoopContext,
    config: Experiment,
    calibration: Iterable[tuple[str, str]],
    timed: Iterable[str],
) -> None:
    """Record how a run starts, what is doubtful about its rig, and the times of plug-in code."""
    sink = parts.sink
    sink.input(0, 0.0, "start", float(parts.armed))
    how = "" if parts.armed else ", not armed"
    sink.event(0.0, "info", "session", f"started on the {parts.clock.name} clock{how}")
    for level, line in calibration:
        sink.event(0.0, level, "calibration", line)
    for line in config.doubts:
        sink.event(0.0, "warning", "configuration", line)
    for line in timed:
        sink.event(0.0, "info", "own code", line)


def note_end(parts: LoopContext, outcome: str, error: str) -> None:
    """Record how a run ended."""
    t_s = float(parts.frame.values[parts.frame.index("t_s")])
    if parts.inputs.stop.reason:
        parts.sink.event(t_s, "warning", "operator", f"stopped by {parts.inputs.stop.reason}")
    if error:
        parts.sink.event(t_s, "error", "session", error)
    parts.sink.event(t_s, "info", "session", f"ended: {outcome}")


def summary_of(
    trial: Trial, status: CalibrationStatus, *, error: str = "", rows_lost: int = 0
) -> dict[str, Any]:
    """The summary of a trial, without the figures of its rows."""
    checks = trial.context.guard
    return {
        "outcome": trial.outcome,
        "first_fault": guard.names_of(checks.first_bits),
        "faults": guard.names_of(checks.fault_bits),
        "stopped_by": trial.context.inputs.stop.reason,
        "error": error,
        "rows_lost": rows_lost,
        "loop_s": plain(trial.loop_s),
        "calibration": status.as_dict(),
    }


def _failed_before(parts: LoopContext, error: str) -> Iterator[str]:
    """Causes that ended a run, except a failed recorder, one phrase each."""
    other_bits = parts.guard.fault_bits & ~(guard.RECORDER_DEAD | guard.DEVICE_FAILED)
    if other_bits:
        yield f"tripped by {', '.join(guard.names_of(other_bits))}"
    if error:
        yield error


@contextlib.contextmanager
def _awake(clock_name: str, sink: Sink) -> Iterator[None]:
    """On the real clock, prevent sleep of the computer; records the result as an event."""
    if clock_name != "real":
        yield
        return
    with sleep.held_off() as how:
        level = "warning" if how.startswith(sleep.NOT_HELD) else "info"
        detected = "" if sees_sleep() else ", and is not detected on this system"
        sink.event(0.0, level, "realtime", f"sleep of the machine {how}{detected}")
        yield


def output_path(config: Experiment, out: str | Path | None, force: bool) -> Path:
    """Path of the recording; ConfigError if it cannot be written or exists already."""
    if out is None:
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
        path = Path("runs") / f"{config.rig_name}-{config.path.stem}-{stamp}.h5"
    else:
        path = Path(out)
        if path.suffix in OTHER_FORMATS:
            raise ConfigError(
                f"{path}: a recording is an HDF5 file: name it {path.with_suffix('.h5').name}, and "
                "make other formats of it with hil export"
            )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        there = path.exists()
    except OSError as error:
        raise ConfigError(
            f"{path}: cannot be made ({error.strerror}): choose another --out"
        ) from None
    if there and not path.is_file():
        what = "a folder" if path.is_dir() else "not a regular file"
        raise ConfigError(f"{path}: {what}: give --out the name of a file")
    if there:
        refuse_held(path)
    if there and not force:
        raise _exists_already(path)
    if not os.access(path.parent, os.W_OK):
        raise ConfigError(f"{path.parent}: may not be written: choose another --out")
    return path


def _exists_already(path: Path) -> ConfigError:
    return ConfigError(f"{path}: exists already: choose another --out, or overwrite with --force")


def contents_of(
    config: Experiment,
    pipeline: Pipeline,
    where: Mapping[str, str | int],
    more: Mapping[str, str | int | float],
) -> layout.Contents:
    """What the recording of a run holds before its first row.

    Parameters
    ----------
    where : `backend`, `clock` and `seed` of the run
    more : additional root attributes
    """
    tables = config.tables
    simulated = pipeline.rig.simulated
    attributes: dict[str, str | int | float] = {
        **_ambient(config),
        **more,
        **where,
        "experiment": config.to_toml(),
        **config.hashes,
        "experiment_name": tables.experiment.name,
        "experiment_file": f"{config.rig_name}/{config.path.name}",
        "software": json.dumps(software()),
        "operator": tables.experiment.operator or user(),
        "gates": GATES,
        "simulated": f"SIMULATED: {', '.join(simulated)}" if simulated else "",
    }
    if config.force_signal:
        attributes["force_signal"] = config.force_signal
    return layout.Contents(
        pipeline.frame.columns,
        attributes,
        rows_per_chunk=int(min(4096, max(256, 1.0 / tables.loop.period_s))),
        calibration=calibrated.calibrations(tables, config.records, _today()),
        records=sources.kept(config.sources, _today()),
        model=model_arrays(config),
        raw={name: samples for name, (_, samples) in pipeline.rig.samplers().items()},
        plugins=_sources(config),
    )


def _create(path: Path, contents: layout.Contents, force: bool) -> str:
    """Create the recording; returns the time that it was created."""
    try:
        return layout.create(path, contents, overwrite=force)
    except FileExistsError:
        raise _exists_already(path) from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written ({error}): choose another --out") from None


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


def _sources(config: Experiment) -> dict[str, dict[str, str]]:
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


def model_arrays(config: Experiment) -> dict[str, Any]:
    """The twin as `/model` of the recording: names, and matrices if it is linear."""
    table, model = config.tables.model, config.models[0]
    names: dict[str, Any] = {"inputs": list(model.inputs), "outputs": list(model.outputs)}
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


def _today() -> date:
    return datetime.now(UTC).date()
