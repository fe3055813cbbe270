"""`hil recalibrate RUN.h5 --with RECORD`: converts the raw readings of an old run again.

The old file stays. In the new file the channel's readings come from the same raw readings and the
same zero by the new calibration, and the estimator's columns (twin, observer, failed cells) are
computed again. Commands, set points, guard, times and events stay as recorded.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hil.calibration.files import Calibration, Record, Source, load_any
from hil.calibration.signal_chain import Chain, Encoder
from hil.config.values import Attributes, Figures
from hil.errors import ConfigError
from hil.loop.channels import Channel
from hil.platform.terminal import word
from hil.platform.whole_files import whole
from hil.procedures.rewrite import Exchange, as_taken, linear_of, rewrite, settle
from hil.record.read import calibrations_of, open_run
from hil.record.repair import CHANGED, faults_of
from hil.record.summary import summarise
from hil.rig.replay import ReplayRig
from hil.runs import assembly
from hil.runs.kept_code import config_of
from hil.runs.plan import Plan

KINDS = {
    "force_transducer": "force",
    "encoder": "encoder",
    "displacement_sensor": "displacement",
    "daq_channel": "voltage",
}


@dataclass(frozen=True)
class Recalibrated:
    """The new file, and the largest change of a reading."""

    path: Path
    channel: str
    largest_change: float
    unit: str
    messages: tuple[str, ...]


def recalibrate(
    path: Path, record_path: Path, channel: str | None = None, out: Path | None = None
) -> Recalibrated:
    """Write a recording whose readings of one channel come from another record.

    Parameters
    ----------
    channel : channel of the record; required if it fits several channels
    out : the new file; by default `RUN-recalibrated.h5` beside the old file

    Raises
    ------
    ConfigError
        The recording is incomplete, the record fits none of its channels, or `out` exists.
    """
    record = load_any(record_path, named_by="--with")
    run = open_run(path)
    if run.attrs["outcome"] == "running" or not run.sizes["tick"]:
        raise ConfigError(f"{path}: is incomplete: hil recover {word(path)} first")
    faults = faults_of(path)
    changes = [fault for fault in faults if fault.startswith(CHANGED)]
    if faults := [fault for fault in faults if fault not in changes]:
        raise ConfigError(f"{path}: {faults[0]}: hil recover {word(path)} first")
    kept = calibrations_of(path)
    name = _channel(path, kept, record, channel)
    if _raw_column(name, kept[name]) not in run:
        raise ConfigError(
            f"{path}: '{name}' has no raw readings: only those of a card in this computer are "
            "recorded: calibrate before the run"
        )
    out = out or path.with_name(f"{path.stem}-recalibrated.h5")
    if out.exists():
        raise ConfigError(f"{out}: exists already: choose another --out")
    config = config_of(path, run)
    period_s, clock = config.tables.loop.period_s, str(run.attrs["clock"])
    pipeline = assembly.build(Plan(config, seed=int(run.attrs.get("seed", 0))))
    place = next(c for c in pipeline.rig.layout.channels if c.name == name)
    taken = as_taken(path, kept[name]) if isinstance(record, Calibration) else None
    changed, messages = _readings(run, kept[name], place, (record, taken), period_s)
    messages += [f"the recording of the run is {change}" for change in changes]
    run[place.column("measured")].values[:] = changed
    if f"{name}.force_measured_N" in run:
        run[f"{name}.force_measured_N"].values[:] = changed
    columns = _estimated(run, pipeline, period_s)
    columns |= {
        column: run[column].values
        for column in (place.column("measured"), f"{name}.force_measured_N")
        if column in run
    }
    before = open_run(path)[place.column("measured")].values
    differences = np.abs(changed - before)[np.isfinite(changed - before)]
    n = config.n_ticks if run.attrs["outcome"] == "complete" else None
    try:
        with whole(out) as part:
            shutil.copyfile(path, part)
            rewrite(part, path, Exchange(name, kept[name], record), columns, messages)
            figures = summarise(part, period_s, clock, n)
            settle(part, figures, name, record, str(run.attrs["created_utc"]))
    except OSError as error:
        raise ConfigError(f"{out}: cannot be written ({error}): choose another --out") from None
    largest = float(differences.max(initial=0.0))
    return Recalibrated(out, name, largest, place.suffix.removeprefix("_"), tuple(messages))


def _channel(
    path: Path, kept: dict[str, dict[str, object]], record: Record, requested: str | None
) -> str:
    """The channel that this record belongs to."""
    kind = KINDS.get(record.record.kind)
    if kind is None:
        raise ConfigError(
            f"--with {record.path}: a record of kind '{record.record.kind}' does not convert "
            f"readings: give one of {', '.join(KINDS)}"
        )
    fitting = [name for name, entry in kept.items() if entry.get("kind", "force") == kind]
    if requested is not None:
        if requested not in fitting:
            choice = ", ".join(fitting) or "there is none"
            raise ConfigError(
                f"--channel {requested}: no {kind} channel of {path}: choose {choice}"
            )
        return requested
    serial = record.record.article.serial
    same = [name for name in fitting if kept[name].get("serial") == serial]
    for names in (same, fitting):
        if len(names) == 1:
            return names[0]
    if not fitting:
        raise ConfigError(f"{path}: has no {kind} channel, but {record.path.name} is for one")
    raise ConfigError(f"{path}: name its channel: --channel {' or '.join(fitting)}")


def _raw_column(name: str, entry: Attributes) -> str:
    """The column of a channel's raw readings."""
    unit = "counts" if entry.get("kind") == "encoder" else entry.get("raw_unit", "V")
    return f"{name}.raw_{unit.replace('/', '_per_')}"


def _readings(
    run: xr.Dataset,
    entry: Attributes,
    place: Channel,
    by: tuple[Record, Chain | None],
    period_s: float,
) -> tuple[NDArray[np.float64], list[str]]:
    """The channel's readings by the new record, and warnings about them.

    Parameters
    ----------
    entry : what the recording has of the channel's calibration
    by : the new record; of a force also the chain of the run, of which its zero and tares are
    """
    record, old = by
    if entry.get("kind") == "encoder":
        assert isinstance(record, Source)
        values = entry | dict(zip(record.names, record.values.tolist(), strict=True))
        encoder = Encoder(
            int(values["counts_per_turn"]), int(values["direction"]), float(values["offset_rad"])
        )
        return encoder.chain.value(run[_raw_column(place.name, entry)].values), []
    raw = run[_raw_column(place.name, entry)].values
    if isinstance(record, Source):
        values = dict(zip(record.names, record.values.tolist(), strict=True))
        units_per_V, zero_V = linear_of(values, entry)
        return Chain.linear(units_per_V, zero_V).value(raw), []
    if entry.get("raw_unit") == "mV/V" or record.record.conditioner is not None:
        new = record.chain(bridge=entry.get("raw_unit") == "mV/V")
    else:
        raise ConfigError(f"{record.path}: has no conditioner, and {place.name} was read in volts")
    assert old is not None
    messages = _beyond(record, new, raw)
    zeros = _inputs(run, "zero", place.name)
    if zeros:
        zero = zeros[-1][1]
        same = (old.raw_per_ratio, old.offset) == (new.raw_per_ratio, new.offset)
        # The zero is the same voltage with either conditioner.
        new = (
            Chain(new.raw_per_ratio, new.offset, new.coefficients, zero)
            if same
            else new.zeroed(old.offset + old.raw_per_ratio * zero)
        )
        old = Chain(old.raw_per_ratio, old.offset, old.coefficients, zero)
    return new.value(raw) - _tared(run, place, old, new, period_s), messages


def _beyond(record: Calibration, chain: Chain, raw: NDArray[np.float64]) -> list[str]:
    low, high = record.record.model.range_mV_per_V
    ratio = chain.ratio(raw[np.isfinite(raw)])
    outside = int(np.sum((ratio < low) | (ratio > high)))
    if not outside:
        return []
    return [f"{outside} readings lie outside of the {low:g} to {high:g} mV/V of the calibration"]


def _inputs(run: xr.Dataset, name: str, about: str) -> list[tuple[int, float]]:
    """(tick, value) of every input of this name for a channel."""
    rows = zip(
        run.input_tick.values.tolist(),
        run.input_name.values,
        run.input_value.values.tolist(),
        run.input_text.values,
        strict=True,
    )
    return [(tick, value) for tick, is_, value, text in rows if (is_, text) == (name, about)]


def _tared(
    run: xr.Dataset, place: Channel, old: Chain, new: Chain, period_s: float
) -> NDArray[np.float64]:
    """The tare of every row [N]: the same raw reading, converted by the new record."""
    ticks = np.rint(run.t_s.values / period_s)
    tared = np.zeros(len(ticks))
    requested = _inputs(run, "tare", place.name)
    if place.force == "main":
        requested += _inputs(run, "tare", "")
    total = 0.0
    for tick, newtons in sorted(requested):
        total += newtons
        in_new = total if old == new else new.value(old.raw(total))
        tared[ticks >= tick] = in_new
    return tared


def _estimated(run: xr.Dataset, pipeline: assembly.Pipeline, period_s: float) -> Figures:
    """The estimator's columns, computed again from the new readings."""
    rig = ReplayRig(run, pipeline.rig.layout)
    pipeline.bind(rig)
    frame, estimator = pipeline.frame, pipeline.estimator
    names = [column.name for column in estimator.columns if column.name in run]
    columns = {name: np.empty_like(run[name].values) for name in names}
    outputs = [run[name].values for name in pipeline.rig.layout.outputs]
    ticks = np.rint(run.t_s.values / period_s).astype(int)
    t_at = frame.index("t_s")
    for row, tick in enumerate(ticks.tolist()):
        frame.values[t_at] = run.t_s.values[row]
        rig.read(tick * period_s)
        estimator.step(tick - int(ticks[row - 1]) if row else 0)
        for name in names:
            columns[name][row] = frame.row[0][name]
        for i, values in enumerate(outputs):
            rig.commands.outputs[i] = values[row]
    return columns
