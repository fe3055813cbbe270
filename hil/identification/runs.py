"""Reads the data of a recording for identification and validation: cells, force and channel."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, cast

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hil.calibration.files import Calibration, Source, parse_any, transducers_of
from hil.config.values import Attributes
from hil.errors import ConfigError, one_line
from hil.experiment.loaded import Experiment
from hil.loop.channels import DUTY, Channel, require_columns, valid_rows
from hil.loop.frame import CELL_UNKNOWN
from hil.mechanics.arrays import Array
from hil.mechanics.low_pass import low_pass
from hil.platform.whole_files import sha256_of
from hil.record.overview import PART, first_rows
from hil.record.read import calibrations_of
from hil.rig.calibrated import cards_of, per_tick, range_raw
from hil.rig.instruments import channels_of, device_of, force_channel, outputs_of, signals_of
from hil.runs.kept_code import config_of
from hil.systems.array.tables import ModelTable

ROWS_MIN = 200


@dataclass(frozen=True)
class Reading:
    """Properties of a channel's readings.

    Attributes
    ----------
    delay_s : age of a reading at the row that has it first
    bandwidth_Hz : bandwidth of the conditioner's first-order low-pass; infinite without a filter
    step_N : one step of the converter
    noise_rms_N : noise at commissioning or as stated, without quantisation; NaN if unknown
    slope_uncertainty : relative standard uncertainty of the transducer's slope
    """

    delay_s: float = 0.0
    bandwidth_Hz: float = np.inf
    step_N: float = 0.0
    noise_rms_N: float = np.nan
    slope_uncertainty: float = 0.0

    def of(self, force_N: Array, period_s: float) -> Array:
        """Readings of a force that is given at every period: low-pass, then delay."""
        keep, lag = low_pass(self.bandwidth_Hz, period_s)
        read = _low_pass(force_N, keep, lag) if keep else force_N
        late = self.delay_s / period_s
        if late <= 0.0:
            return read
        at = np.arange(len(read)) - late
        return np.asarray(np.interp(at, np.arange(len(read)), read))


def _low_pass(x: Array, keep: float, lag: float) -> Array:
    from scipy.signal import lfilter

    y, _ = lfilter([1.0 - lag, lag - keep], [1.0, -keep], x, zi=[lag * x[0]])
    return np.asarray(y)


@dataclass(frozen=True)
class RunData:
    """Data of one run.

    Attributes
    ----------
    cells : (n, N) uint8 array, cells on over each period from the first row to the last
    rows : (k,) int array, period after which each reading was taken, 0 for the first row
    measured : (k,) array, valid readings, in `unit`
    signal : the corresponding output of the model, such as `muscle.right_N`
    sha256 : hash of the file
    ambient_C : median of the measured temperature of the air; NaN if it is not measured
    channel : name of the channel
    moves_m : (n, P) array, where every driven point is at the end of each period; P = 0 without any
    unit : "N" of a force, "m" of a displacement; what fits forces has `_N` in its names
    """

    name: str
    period_s: float
    cells: NDArray[np.uint8]
    rows: NDArray[np.int64]
    measured: Array
    signal: str
    reading: Reading = field(default_factory=Reading)
    sha256: str = ""
    ambient_C: float = np.nan
    unit: Literal["N", "m"] = "N"
    channel: str = ""
    moves_m: Array = field(default_factory=lambda: np.zeros((0, 0)))

    @property
    def quantity(self) -> str:
        """What is measured, in words."""
        return "force" if self.unit == "N" else "displacement"

    @property
    def t_s(self) -> Array:
        return np.asarray(self.rows * self.period_s, dtype=float)

    @property
    def interval_s(self) -> float:
        """Time from one reading to the next, the median: an instrument may be slower than rows."""
        return self.period_s * float(np.median(np.diff(self.rows)))

    @property
    def switches(self) -> NDArray[np.int64]:
        """Periods that start with the switching of a cell."""
        before = np.vstack((np.zeros((1, self.cells.shape[1])), self.cells[:-1]))
        return np.flatnonzero((self.cells != before).any(axis=1))

    @property
    def first_on(self) -> int:
        """First period with a cell on or a driven point moved; the number of periods if none is."""
        moved = self.moves_m[: len(self.cells)] if self.moves_m.shape[1] else self.cells[:, :0]
        on = np.flatnonzero((np.hstack((self.cells, moved)) != 0).any(axis=1))
        return int(on[0]) if len(on) else len(self.cells)


@dataclass(frozen=True)
class Recorded:
    """A recording with its configuration, for a comparison with its model."""

    path: Path
    run: xr.Dataset
    config: Experiment
    calibrations: dict[str, Attributes]
    data: RunData
    column: str

    @property
    def model(self) -> ModelTable:
        """The table of the model; `read_run` refuses rigs of other kinds."""
        return cast(ModelTable, self.config.tables.model)

    @property
    def simulated(self) -> bool:
        return bool(self.run.attrs.get("simulated"))

    @property
    def rig(self) -> str:
        return str(self.run.attrs["experiment_file"]).split("/")[0]


@dataclass(frozen=True)
class Compared:
    """A recording, and its channel that is compared with an output of its model.

    Attributes
    ----------
    channel, column : the channel's name, and the column of its readings
    signal, unit, reading : as in `RunData`
    device : that takes the readings
    transducer : record of a force channel; None if it has none
    """

    run: xr.Dataset
    config: Experiment
    calibrations: dict[str, Attributes]
    channel: str
    column: str
    signal: str
    unit: Literal["N", "m"]
    device: str
    reading: Reading
    transducer: Calibration | None


def read_channel(
    path: Path, *, displacements: bool = False, run: xr.Dataset | None = None
) -> Compared:
    """Read a recording of an array, which may still grow; `run` is the recording if it is open.

    Its force is taken; with `displacements`, on a rig without a force channel, the first measured
    displacement of the model. Of a long recording the first rows are taken, over which a model can
    be simulated at once (`hil.record.overview.first_rows`).

    Raises
    ------
    ConfigError
        The file is not a recording of a cellular array with a force.
    """
    run = first_rows(path) if run is None else run
    config = config_of(path, run)
    return channel_of(path, run, config, calibrations_of(path), displacements=displacements)


def channel_of(
    path: Path,
    run: xr.Dataset,
    config: Experiment,
    calibrations: dict[str, Attributes],
    *,
    displacements: bool = False,
) -> Compared:
    """What `read_channel` reads, of a recording or of what `hil.simulate` returned.

    Parameters
    ----------
    path : names it in messages
    calibrations : kept with it, by channel

    Raises
    ------
    ConfigError
        It is not of a cellular array with a force.
    """
    records = transducers_of(path, calibrations)
    if not isinstance(config.tables.model, ModelTable):
        kind = config.tables.model.kind
        raise ConfigError(f"{path}: a run of a rig of kind '{kind}': give runs of a cell_array")
    name, column, signal, unit = _measured_channel(path, run, config, displacements)
    if signal not in config.model.outputs:
        raise ConfigError(
            one_line(f"{path}: force_signal = '{signal}': its model has no such output")
        )
    device = device_of(config.tables.devices, name)
    require_columns(run, ("cells_reported", f"{device}_t_s", f"{device}_age_s"))
    if DUTY in run:
        raise ConfigError(f"{path}: its cells were modulated: give runs that switch on and off")
    if run.sizes["cell"] != len(config.model.cell_names):
        raise ConfigError(f"{path}: its rows are of {run.sizes['cell']} cells, its experiment of "
                          f"{len(config.model.cell_names)}: use the original file")  # fmt: skip
    reading = _reading(run, config, records, name)
    transducer = records.get(name) if unit == "N" else None
    return Compared(
        run, config, calibrations, name, column, signal, unit, device, reading, transducer
    )


def read_run(path: Path, *, displacements: bool = False, run: xr.Dataset | None = None) -> Recorded:
    """Read a recording of an array, as `read_channel`, with its readings.

    Raises
    ------
    ConfigError
        As `read_channel`, or it has too few readings.
    """
    compared = read_channel(path, displacements=displacements, run=run)
    sha256 = sha256_of(path)
    data = replace(readings_of(path, compared), sha256=sha256)
    return Recorded(
        path, compared.run, compared.config, compared.calibrations, data, compared.column
    )


def readings_of(path: Path, compared: Compared) -> RunData:
    """The readings of a channel, with the cells that were on.

    Raises
    ------
    ConfigError
        There are too few readings.
    """
    run, config, name = compared.run, compared.config, compared.channel
    column, device = compared.column, compared.device
    mask = valid_rows(run, name) & _fresh(run, device)
    measured = np.where(mask, run[column].values, np.nan)
    period_s = config.tables.loop.period_s
    row = np.rint(run.t_s.values / period_s).astype(np.int64)
    mask = np.isfinite(measured)
    if mask.sum() < ROWS_MIN:
        raise ConfigError(
            f"{path}: {int(mask.sum())} readings of {name}: at least {ROWS_MIN} are needed"
        )
    start = row[0]
    return RunData(
        f"{path.name} ({run.attrs[PART]})" if PART in run.attrs else path.name,
        period_s,
        cells_between(run.cells_reported.values, row - start),
        (row - start)[mask],
        measured[mask],
        compared.signal,
        compared.reading,
        ambient_C=_ambient_C(run, config),
        unit=compared.unit,
        channel=name,
        moves_m=_moves_m(run, config, row - start),
    )


def _measured_channel(
    path: Path, run: xr.Dataset, config: Experiment, displacements: bool
) -> tuple[str, str, str, Literal["N", "m"]]:
    """Channel, column, signal and unit."""
    force = force_channel(config.tables)
    if force and "force_measured_N" in run:
        return force, "force_measured_N", str(run.attrs.get("force_signal", "")), "N"
    for channel in channels_of(config.tables) if displacements else ():
        signal = signals_of(config.tables.devices)[channel.name]
        column = channel.column("measured")
        if signal in config.model.inputs:  # where a stage is says nothing of the model
            continue
        if channel.suffix == "_m" and signal in config.model.outputs and column in run:
            return channel.name, column, signal, "m"
    or_what = " and no displacement of its model" if displacements else ""
    raise ConfigError(f"{path}: has no force_measured_N: the rig has no force channel{or_what}")


def ambient_channel(config: Experiment) -> Channel | None:
    """The channel that measures the temperature of the air; None if none does."""
    table = config.tables.ambient
    if table is None or table.ambient_channel is None:
        return None
    [channel] = [one for one in channels_of(config.tables) if one.name == table.ambient_channel]
    return channel


def _ambient_C(run: xr.Dataset, config: Experiment) -> float:
    channel = ambient_channel(config)
    if channel is None:
        return float("nan")
    measured = run[channel.column("measured")].values[valid_rows(run, channel.name)]
    return float(np.median(measured)) if len(measured) else float("nan")


def _fresh(run: xr.Dataset, device: str) -> NDArray[np.bool_]:
    """Rows with a new reading of the device; other rows repeat the last one."""
    taken_s = run[f"{device}_t_s"].values
    return np.asarray(np.diff(taken_s, prepend=-np.inf) != 0.0)


def cells_between(reported: NDArray[np.uint8], row: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Cells on over every period from the first row to the last.

    A report holds since the previous one: a board that is read every few ticks obeyed its commands
    at the first of them. (The twin has the report at the last, and is late by as much.) After the
    last report its state stays; before the first, cells are off.
    """
    n, known = len(reported), reported != CELL_UNKNOWN
    ticks = np.arange(n)[:, None]
    following = np.minimum.accumulate(np.where(known, ticks, n)[::-1])[::-1]
    last = np.where(known, ticks, -1).max(axis=0)
    source = np.where(following < n, following, last)
    states = np.where(source >= 0, np.take_along_axis(reported, np.maximum(source, 0), 0), 0)
    # The report of a row applies to all periods since the previous row.
    at = np.searchsorted(row, np.arange(1, row[-1] + 1))
    return np.ascontiguousarray(states[at], dtype=np.uint8)


def _moves_m(run: xr.Dataset, config: Experiment, row: NDArray[np.int64]) -> Array:
    """Where outputs commanded every driven point; without an output a point stays at 0."""
    moves = np.zeros((row[-1], len(config.model.driven)))
    # The command of a row holds for all periods until the next row.
    at = np.searchsorted(row, np.arange(row[-1]), side="right") - 1
    for column, point in moving(config).items():
        require_columns(run, (column,))
        moves[:, point] = run[column].values[at]
    return moves


def moving(config: Experiment) -> dict[str, int]:
    """Columns of the outputs that move driven points, with the points' numbers."""
    driven = [f"{name}.x_m" for name in config.model.driven]
    outputs = outputs_of(config.tables.devices)
    return {k: driven.index(o.drives) for k, o in outputs.items() if o.drives in driven}


def _reading(
    run: xr.Dataset, config: Experiment, records: dict[str, Calibration], name: str
) -> Reading:
    """Of the channel of this name."""
    device = device_of(config.tables.devices, name)
    channel = config.tables.devices[device].channels[name]
    # A row without a new reading has the age of the last one, which has grown since.
    ages_s = run[f"{device}_age_s"].values[valid_rows(run, name) & _fresh(run, device)]
    delay_s = float(np.median(ages_s)) if len(ages_s) else 0.0
    if "imported" in run.attrs:  # another program's instruments: what they filter is not known
        return Reading(delay_s)
    card = cards_of(config.tables.devices).get(device)
    if card is None:  # an instrument gives values: what it rounds and filters is its own affair
        simulated = run[f"{device}_age_s"].attrs.get("source") == "SIMULATED"
        noise_N = channel.sim.noise_rms if simulated else np.nan
        slope = _of_record(records[name], True)[1] if name in records else 0.0
        return Reading(delay_s, noise_rms_N=noise_N, slope_uncertainty=slope)
    record = records.get(name)
    slope = abs(channel.chain(record).slope())
    span = 2.0 * range_raw(card, channel, record)
    raw = f"{name}.raw_mV_per_V" if f"{name}.raw_mV_per_V" in run else f"{name}.raw_V"
    require_columns(run, (raw,))
    stands_in = run[raw].attrs.get("source") == "SIMULATED"
    bandwidth_Hz, noise_rms = np.inf, np.nan
    interval_s = card.every * config.tables.loop.period_s
    mean_of = 1
    if record is not None:
        noise_rms, relative = _of_record(record, channel.bridge is not None)
        conditioner = record.record.conditioner
        if conditioner is not None and conditioner.bandwidth_Hz is not None:
            bandwidth_Hz = conditioner.bandwidth_Hz
        mean_of = per_tick(card, interval_s)
    else:
        relative = 0.0
    if stands_in:
        delay_s += round(channel.sim.delay_s / interval_s) * interval_s  # as the card does it
        bandwidth_Hz, noise_rms = channel.sim.bandwidth_Hz, channel.sim.noise_rms_V
        mean_of = 1
    return Reading(
        delay_s,
        bandwidth_Hz,
        slope * span / 2.0**card.resolution_bits,
        slope * noise_rms / np.sqrt(mean_of),
        relative,
    )


def _of_record(record: Calibration, bridge: bool) -> tuple[float, float]:
    """Raw noise RMS (NaN where unknown) and relative uncertainty of the slope."""
    model, noise = record.record.model, record.record.commissioning.noise_rms_mV_per_V
    relative = float(np.sqrt(model.covariance_N2[1][1])) / abs(model.coefficients_N[1])
    if noise is None:
        return np.nan, relative
    conditioner = record.record.conditioner
    per_ratio = 1.0 if bridge or conditioner is None else record.chain(bridge=False).raw_per_ratio
    return noise * per_ratio, relative


def sources_of(path: Path) -> list[tuple[Source, list[str]]]:
    """The records that the model of a recording used, each with the tables that named it."""
    kept = calibrations_of(path, "records")
    sources = []
    for entry in kept.values():
        source = parse_any(path, entry["record"])
        if isinstance(source, Source):
            sources.append((source, list(entry["tables"])))
    return sources
