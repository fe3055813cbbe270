"""Runs of a calibration: the rig at rest, or one cell on and off, with `hil.runs.session.run`.

A procedure's run is an ordinary run: it is recorded, has the rig's limits and the self-test of the
boards, and is rehearsed before a bench is used. Nothing is switched without the guard.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hil.calibration.files import Calibration, Source, parse_any
from hil.calibration.sources import Sourced
from hil.config.files import read_merged
from hil.errors import ConfigError, StopError
from hil.experiment.load import load
from hil.experiment.loaded import Experiment
from hil.loop.channels import valid_rows
from hil.loop.frame import Frame
from hil.loop.requests import Stop
from hil.platform.whole_files import sha256_of
from hil.record.read import calibrations_of, open_head, open_run
from hil.rig.calibrated import cards_of
from hil.rig.instruments import MAIN_FORCE, force_channel
from hil.runs import assembly, session
from hil.runs.kept_code import config_of
from hil.runs.plan import Plan
from hil.runs.recording import Output
from hil.runs.trial import Trial
from hil.systems.array.model.cells import Cell
from hil.systems.array.tables import ModelTable

ENOUGH = "enough rows"


@dataclass(frozen=True)
class RigUsed:
    """The rig of a procedure: RIG.toml, its backend and the keys changed by `--set`."""

    path: Path
    backend: str = "sim"
    sets: tuple[str, ...] = ()

    def resting(self) -> Experiment:
        """The experiment of the file, or a rig with cells at rest."""
        merged = read_merged(self.path, self.sets).table
        return load(self.path, self.sets) if "experiment" in merged else self.config([], 1.0)

    def config(
        self, pulses: list[tuple[float, float]], duration_s: float, cell: int = 1
    ) -> Experiment:
        """An experiment in which one cell is on during every (on_s, off_s) pulse."""
        if "arrays" not in read_merged(self.path, self.sets).table.get("model", {}):
            raise ConfigError(
                f"{self.path}: has no cells, so nothing to schedule: name one of its experiments, "
                "or give --run RUN.h5"
            )
        steps = [
            f"{{t_s={t_s!r}, {word}=[{cell}]}}"
            for on_s, off_s in pulses
            for word, t_s in (("on", on_s), ("off", off_s))
        ]
        # A schedule needs at least one step; this one is after the end of the run.
        steps = steps or [f"{{t_s={duration_s + 1.0!r}, off='all'}}"]
        changes = [
            "experiment.name='calibration'",
            f"experiment.duration_s={duration_s!r}",
            "controller.kind='schedule'",
            f"controller.steps=[{', '.join(steps)}]",
        ]
        return load(self.path, [*self.sets, *changes])

    def run(self, config: Experiment, out: Path, seed: int) -> Path:
        """Run it; returns the recording. Raises ConfigError if the run is not complete."""
        result = session.run(
            Plan(config, backend=self.backend, seed=seed), Output(out=out, force=True)
        )
        if result.outcome != "complete":
            why = result.summary["first_cause"] or result.summary["stopped_by"] or "no cause"
            raise ConfigError(f"{out}: the run was {result.outcome}: {why}: nothing was calibrated")
        result.stop.pass_on()
        return result.path


class _ColumnSink(assembly.NoSink):
    """Stores some columns of a loop and stops it after `n_rows` rows."""

    def __init__(self, frame: Frame, columns: Sequence[str], n_rows: int) -> None:
        self._frame, self._n = frame, n_rows
        self.kept: dict[str, list[float]] = {name: [] for name in columns}
        self.stop = Stop()

    def push(self) -> bool:
        row = self._frame.row[0]
        for name, values in self.kept.items():
            values.append(float(row[name]))
        self._n -= 1
        if self._n <= 0:
            self.stop.reason = self.stop.reason or ENOUGH
        return True

    def event(self, t_s: float, level: str, source: str, text: str) -> None:
        if level in ("fault", "error"):
            raise ConfigError(f"{source}: {text}: nothing was read")


def at_rest(
    config: Experiment, backend: str, seed: int, columns: Sequence[str], duration_s: float
) -> dict[str, float]:
    """Means of some columns while the rig is not armed: all cells off, outputs idle.

    Raises
    ------
    ConfigError, DeviceError
        A column is unknown, or a channel cannot be read.
    """
    plan = Plan(config, backend, seed=seed)
    pipeline = assembly.build(plan)
    missing = [name for name in columns if name not in (c.name for c in pipeline.frame.columns)]
    if missing:
        raise ConfigError(f"{config.path}: the rig has no column {missing[0]}")
    rows = _ColumnSink(
        pipeline.frame, columns, max(2, round(duration_s / config.tables.loop.period_s))
    )
    parts = pipeline.context(plan.new_clock(), rows, armed=False)
    rows.stop = parts.inputs.stop
    with Trial(parts) as trial:
        trial.run()
        if rows.stop.reason != ENOUGH:
            raise StopError(f"stopped by {rows.stop.reason}")
    # The first row precedes the first sample of a card.
    return {name: float(np.nanmean(values[1:])) for name, values in rows.kept.items()}


def sha256(path: Path) -> str:
    return f"sha256:{sha256_of(path)}"


def simulated(path: Path) -> bool:
    """Whether a recording's readings come from a simulated device."""
    return bool(open_head(path).attrs.get("simulated"))


@dataclass(frozen=True)
class OneCell:
    """The only cell of a rig, between two fixed ends, with the calibration of its springs.

    Attributes
    ----------
    law : T = Ke e + Kd d + Kf F at e = 0
    k_se, k_ae : N/m
    springs : record of the springs
    transducer : record of the force channel
    force : name of that channel
    """

    law: Cell
    k_se: float
    k_ae: float
    springs: Source
    transducer: Calibration | None
    force: str = MAIN_FORCE

    @property
    def share(self) -> float:
        """Static gain, the share of F measured at rest: phi = k_se / (k_se + k_ae)."""
        return self.k_se / (self.k_se + self.k_ae)

    def share_u(self) -> float:
        """Standard uncertainty of `share`, from the springs' covariance."""
        K = self.k_se + self.k_ae
        return self._u({"k_se_N_per_m": self.k_ae / K**2, "k_ae_N_per_m": -self.k_se / K**2})

    def sum_u(self) -> float:
        """Standard uncertainty of k_se + k_ae [N/m]."""
        return self._u({"k_se_N_per_m": 1.0, "k_ae_N_per_m": 1.0})

    def _u(self, gradient: dict[str, float]) -> float:
        g = np.array([gradient.get(name, 0.0) for name in self.springs.names])
        return float(np.sqrt(g @ self.springs.covariance @ g))


def one_cell(config: Experiment, sources: Sequence[Sourced]) -> OneCell:
    """The cell of a one-cell rig, its springs' record among these sources of its tables.

    Raises
    ------
    ConfigError
        Another rig, or springs without a record.
    """
    from hil.systems.array.build import build_cell

    if config.kind.force_signal is None or config.model.n_cells != 1:
        raise ConfigError(
            f"{config.path}: this needs a rig of one cell between fixed ends, such as "
            "configs/miga1/rig.toml: a response of several cells has no single time"
        )
    table = cast(ModelTable, config.tables.model)
    (array,) = table.arrays.values()
    if any(point.support != "fixed" for point in table.points.values()):
        raise ConfigError(f"{config.path}: model.points: both ends must be fixed")
    (cell,) = array.cell
    k_se, k_ae = getattr(cell, "k_se_N_per_m", None), getattr(cell, "k_ae_N_per_m", None)
    named = [s.source for s in sources if s.table.endswith(".cell")]
    springs = [s for s in named if {"k_se_N_per_m", "k_ae_N_per_m"} <= set(s.names)]
    if k_se is None or k_ae is None or not springs:
        raise ConfigError(
            f"{config.path}: model.arrays: the cell names no record of its springs: "
            "hil calibrate spring_constants first, and name its record beside them"
        )
    force = force_channel(config.tables)
    transducer = config.records.get(force)
    return OneCell(build_cell(cell), k_se, k_ae, springs[0], transducer, force)


def pulses_of(run: xr.Dataset) -> list[tuple[int, int, int]]:
    """For every pulse of the first cell: rows of switch-on, switch-off and the end of its pause."""
    on = run.cells_commanded.values[:, 0] == 1
    edges = np.flatnonzero(np.diff(on.astype(int), prepend=0)).tolist()
    if len(edges) % 2:
        edges.append(len(on))
    ends = [*edges[2::2], len(on)]
    return [(edges[i], edges[i + 1], ends[i // 2]) for i in range(0, len(edges), 2)]


def force_of(run: xr.Dataset, path: Path, channel: str) -> NDArray[np.float64]:
    """The measured force [N]; ConfigError if a reading is missing or at a rail."""
    force_N = np.asarray(run.force_measured_N.values)
    missing = int(np.sum(~np.isfinite(force_N)))
    saturated = int(np.sum(~valid_rows(run, channel)))
    if missing or saturated:
        raise ConfigError(
            f"{path}: {missing or saturated} readings of the force are missing or at their rail "
            "(saturated): nothing can be fitted"
        )
    return force_N


def cell_of_recording(path: Path) -> OneCell:
    """The cell of a recording's configuration, with the stored record of its springs."""
    run = open_run(path)
    config = config_of(path, run)
    sources = []
    for kept in calibrations_of(path, "records").values():
        source = parse_any(path, kept["record"])
        if isinstance(source, Source):
            sources += [Sourced(table, source) for table in kept["tables"]]
    return one_cell(config, sources)


def plant_truth(kind: str, config: Experiment) -> dict[str, float]:
    """True values of the simulated rig, by the names of the record."""
    truth: dict[str, float] = {}
    if config.kind.force_signal is not None and kind in ("damping", "activation", "cell_force"):
        plant = cast(ModelTable, config.tables.plant)
        (array,) = plant.arrays.values()
        for table in (array.cell[0], array.activation[0], array):
            for key, value in table.model_dump().items():
                truth[key] = value[0] if isinstance(value, list) and len(value) == 1 else value
        for key in ("rate_per_s", "delay_s"):
            if truth.get(f"fall_{key}") is None:  # as it rises
                truth[f"fall_{key}"] = truth.get(key, float("nan"))
    else:
        for card in cards_of(config.tables.devices).values():
            for name, channel in card.channels.items():
                for key in ("offset_V", "noise_rms_V", "delay_s"):
                    if hasattr(channel.sim, key):
                        truth[f"{name}/{key}"] = getattr(channel.sim, key)
    return {k: v for k, v in truth.items() if isinstance(v, float | int)}
