"""The 95 % band of a run about its twin: one for the window, the figures and the validation.

    half width = 1.96 u_val,    u_val^2 = u_input^2 + u_D^2 + u_num^2

as `hil.validation.uncertainty` has them. A rig without records of its model's parameters has no
such band: then the half width is that of the channel's noise alone, and `without` says why.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from hil.calibration.files import Source
from hil.config.values import TomlTable
from hil.errors import ConfigError
from hil.identification import parameters
from hil.identification.grey_box import GreyBox
from hil.identification.known import Known, known_of
from hil.identification.noise import noise_of, stated_rms_N
from hil.identification.runs import (
    Recorded,
    RunData,
    ambient_channel,
    cells_between,
    moving,
    read_channel,
    read_run,
    sources_of,
)
from hil.loop.frame import CELL_UNKNOWN
from hil.mechanics.arrays import Array
from hil.record.read import experiment_of
from hil.validation.uncertainty import (
    MeasuringChannel,
    MovedModels,
    combined,
    spread,
    uncertainty_of,
)

Z_95 = 1.959963984540054
NO_RECORDS = "no calibration record states the uncertainty of the model's parameters"


@dataclass(frozen=True)
class Band:
    """Half widths of the band about the twin.

    Attributes
    ----------
    column : of the readings; empty where nothing is compared
    t_s : (k,) array, times of the readings
    half_width : (k,) array, of model and noise together; in N, or m of a displacement
    noise : half width of the channel's noise alone; 0 where it is unknown
    without : why the half width is that of the noise; empty if it is that of model and noise
    """

    column: str
    t_s: Array
    half_width: Array
    noise: float
    without: str = ""

    @property
    def name(self) -> str:
        """What it is of."""
        return "95 % of the noise alone" if self.without else "95 % band of model and noise"

    def share_inside(self, run: xr.Dataset) -> float:
        """Share of the readings within the band about the twin that ran."""
        rows = np.searchsorted(run.t_s.values, self.t_s - 1e-9)
        model = self.column.replace("_measured_", "_model_")
        residual = run[self.column].values[rows] - run[model].values[rows]
        is_known = np.isfinite(residual)
        return float(np.mean(np.abs(residual[is_known]) <= self.half_width[is_known]))


def band_of(path: Path, run: xr.Dataset) -> Band:
    """The band of a recording, as its validation has it, of its whole length."""
    try:
        return _of_model(path, run)
    except ConfigError as error:
        return noise_alone(run, str(error).partition("\n")[0].removeprefix(f"{path}: "))


def _of_model(path: Path, run: xr.Dataset) -> Band:
    recorded = read_run(path, displacements=True, run=run)
    known = known_parameters(recorded.config.tables.model, path)
    if not known.keys:
        raise ConfigError(NO_RECORDS)
    data = recorded.data
    channel = channel_of(recorded, sources_of(path))
    tables = parameters.tables_of(recorded.model)
    u_val = uncertainty_of(tables, data, known, channel).u_val_N
    t_s = run.t_s.values[0] + data.t_s
    return Band(recorded.column, t_s, Z_95 * u_val, Z_95 * _or_0(channel.noise_N))


def noise_alone(run: xr.Dataset, without: str) -> Band:
    """The band of the noise that the rig states, of a run whose model has none."""
    t_s = run.t_s.values
    noise = Z_95 * stated_noise_N(experiment_of(run))
    column = "force_measured_N" if noise > 0.0 and "force_measured_N" in run else ""
    return Band(column, t_s, np.full(len(t_s), noise), noise, without)


def stated_noise_N(experiment: TomlTable) -> float:
    """RMS noise of the force channel, as the rig states it for its observer; 0 if it does not."""
    return float(experiment.get("observer", {}).get("force_noise_N", 0.0))


def known_parameters(model: Any, path: Path) -> Known:
    """Covariance of a model's parameters, from the records in a recording."""
    tables = parameters.tables_of(model)
    return known_of(tables, sources_of(path))


def noise_rms_N(data: RunData) -> float:
    """RMS of the noise of a run's readings: at rest, with lines, or as the channel states it."""
    noise = noise_of([data])
    if noise.source == "rest":
        return float(np.hypot(noise.total_rms_N, noise.lines_rms_N))
    return stated_rms_N(data)


def means_of_noise(data: RunData) -> Callable[[int], float]:
    """The noise of a mean of so many consecutive readings: 0 where it is unknown.

    Readings of coloured noise, as at rest, are worth fewer; lines average out.
    """
    noise, stated_N = noise_of([data]), _or_0(stated_rms_N(data))
    if noise.source == "rest":
        return noise.mean_rms_N
    return lambda n: float(stated_N / np.sqrt(n))


def channel_of(recorded: Recorded, sources: list[tuple[Source, list[str]]]) -> MeasuringChannel:
    """What is known of the channel that measured a run."""
    data = recorded.data
    transducer = recorded.config.records.get(data.channel) if data.unit == "N" else None
    u_slope = slope_uncertainty(data.channel, sources) if data.unit == "m" else 0.0
    return MeasuringChannel(transducer, noise_rms_N(data), u_slope or 0.0)


def slope_uncertainty(channel: str, sources: list[tuple[Source, list[str]]]) -> float | None:
    """Relative standard uncertainty of a displacement sensor's slope; None without a record."""
    key = f".channels.{channel}"
    for source, tables in sources:
        if "metres_per_V" in source.names and any(table.endswith(key) for table in tables):
            at = source.names.index("metres_per_V")
            return float(np.sqrt(source.covariance[at][at]) / abs(source.values[at]))
    return None


def _or_0(value: float) -> float:
    return value if np.isfinite(value) else 0.0


class GrowingBand:
    """The band of a run whose rows come in blocks, as a window has them.

    It leaves out what only the whole run tells: the channel's low-pass and delay. Until the first
    cell is on the noise is what the channel states, then that of the rest. Where the air is
    measured, that of a block is the median of its readings; a report has the median of the run.

    Attributes
    ----------
    column : of the measured quantity
    noise : half width of the channel's noise alone, so far

    Raises
    ------
    ConfigError
        The run has no such band; the text says why.
    """

    def __init__(self, path: Path) -> None:
        compared = read_channel(path, displacements=True)
        known = known_parameters(compared.config.tables.model, path)
        if not known.keys:
            raise ConfigError(NO_RECORDS)
        self._compared, self.column = compared, compared.column
        self._period_s = compared.config.tables.loop.period_s
        box = GreyBox(parameters.tables_of(compared.config.tables.model), known.keys, ())
        self._models = MovedModels(box, known, compared.signal, self._period_s)
        self._moving = moving(compared.config)
        air = ambient_channel(compared.config)
        self._air = "" if air is None else air.column("measured")
        self._rest: list[Array] | None = []
        self._last: dict[str, Array] = {}
        self._row = 0
        u_slope = (
            slope_uncertainty(compared.channel, sources_of(path)) if compared.unit == "m" else 0.0
        )
        stated_N = stated_rms_N(self._run_of(np.zeros(0)))
        self._channel = MeasuringChannel(compared.transducer, stated_N, u_slope or 0.0)

    @property
    def noise(self) -> float:
        return Z_95 * _or_0(self._channel.noise_N)

    def take(self, rows: Mapping[str, Array]) -> Array:
        """Half width at every row of a block, (n,); the blocks come in order, without a gap."""
        reported, t_s = np.asarray(rows["cells_reported"]), np.asarray(rows["t_s"])
        measured = np.asarray(rows[self.column], dtype=float)
        row = np.rint(t_s / self._period_s).astype(np.int64)
        begins = not self._last
        if self._air:
            air_C = np.asarray(rows[self._air], dtype=float)
            air_C = air_C[np.isfinite(air_C)]
            if len(air_C):
                self._models.set_ambient(float(np.median(air_C)), settled=begins)
        if begins:
            self._row = int(row[0])
            self._last = {"cells_reported": np.zeros_like(reported[0])}
            self._last |= {column: 0.0 * np.asarray(rows[column])[0] for column in self._moving}
        known = np.vstack((self._last["cells_reported"], reported)).astype(np.uint8)
        at_row = np.concatenate(([self._row], row)) - self._row
        cells = cells_between(known, at_row)
        moves = np.zeros((len(cells), 1 + max(self._moving.values(), default=-1)))
        at = np.searchsorted(at_row, np.arange(len(cells)), side="right") - 1
        for column, point in self._moving.items():
            moves[:, point] = np.concatenate(([self._last[column]], rows[column]))[at]
            self._last[column] = np.asarray(rows[column])[-1]
        simulated, moved, halved = (
            values[..., at_row[1:]] for values in self._models.step(cells, moves)
        )
        filled = reported[-1] != CELL_UNKNOWN
        last = cells[-1] if len(cells) else self._last["cells_reported"]
        self._last["cells_reported"] = np.where(filled, reported[-1], last)
        self._row = int(row[-1])
        self._learn_noise(rows, measured, at_row[1:], np.hstack((cells, moves)) != 0.0)
        systematic = self._channel.systematic_N(np.where(np.isfinite(measured), measured, 0.0))
        u_D = self._channel.u_D_N(systematic, self._compared.reading.step_N)
        return Z_95 * combined(spread(moved, simulated), u_D, np.abs(halved - simulated))

    def _run_of(self, measured: Array) -> RunData:
        """Readings at rest as a run."""
        n, c = len(measured), self._compared
        cells = np.zeros((max(n - 1, 0), len(c.config.model.cell_names)), dtype=np.uint8)
        return RunData("", self._period_s, cells, np.arange(n), measured, c.signal, c.reading)

    def _learn_noise(
        self, rows: Mapping[str, Array], measured: Array, row: Array, on: Array
    ) -> None:
        """Take the noise from the readings before the first cell is on, once it is."""
        if self._rest is None:
            return
        acting = np.flatnonzero(on.any(axis=1))
        fresh = np.diff(rows[f"{self._compared.device}_t_s"], prepend=-np.inf) != 0.0
        still = row <= acting[0] if len(acting) else np.ones(len(row), dtype=bool)
        self._rest.append(measured[still & fresh & np.isfinite(measured)])
        if len(acting):
            noise_N = noise_rms_N(self._run_of(np.concatenate(self._rest)))
            self._channel = self._channel._replace(noise_N=noise_N)
            self._rest = None
