"""A loop of strain over temperature from a text file or from a recording.

A recording has the channels temperature, strain and stress of a load frame, or is of an isotonic
rig such as `configs/isotonic`: wires of kind "sma" that carry a free point with a mass. Its loop is
the last heating and cooling of the recording, in means over equal steps of temperature. The strain
is the point's displacement over the wire's length, the stress is the weight over the area of the
wires. Both take the point's support as rigid, and the motion as slow.
"""

from pathlib import Path
from typing import cast

import numpy as np
import xarray as xr
from scipy.constants import g

from hil.config.table import as_list
from hil.config.values import TomlTable
from hil.errors import ConfigError, ModelError
from hil.experiment.loaded import Experiment
from hil.identification.wire_loops.loops import Loop, loop_of, read
from hil.loop.frame import CELL_UNKNOWN
from hil.mechanics.arrays import Array
from hil.record.read import experiment_of, open_head, open_run
from hil.rig.instruments import channels_of, signals_of
from hil.runs.kept_code import config_of
from hil.systems.array.tables import ModelTable, SmaTable

RECORDED = ("temperature_measured_C", "strain_measured", "stress_measured")
STEP_K = 0.5  # of temperature, over which readings of an isotonic rig are averaged
MPa = 1e6


def read_loop(path: Path, strength_MPa: float) -> Loop:
    """The loop in a text file, or in a recording.

    Raises
    ------
    ModelError
        In one line: the file, what is wrong with it, and the remedy.
    """
    if path.suffix != ".h5":
        return read(path, strength_MPa)
    try:
        run = open_run(path)
        columns = _of_frame(path, run) if _has_strain(run) else _of_weight(path, run)
    except ConfigError as error:
        raise ModelError(str(error)) from None
    return loop_of(str(path), columns, strength_MPa)


def is_loop(path: Path) -> bool:
    """Whether a file is read as a loop: all but recordings that have neither strain nor a weight.

    Raises
    ------
    ConfigError
        It ends in .h5 and is not a recording.
    """
    if path.suffix != ".h5":
        return True
    run = open_head(path)
    return _has_strain(run) or _weight_of(experiment_of(run)["model"]) is not None


def _has_strain(run: xr.Dataset) -> bool:
    return all(name in run for name in RECORDED)


def _of_frame(path: Path, run: xr.Dataset) -> Array:
    """Temperature, strain and stress of a load frame, without rows that lack one."""
    columns = [run[name].values * _factor(path, run[name].attrs["units"]) for name in RECORDED]
    rows = np.stack(columns, axis=1)
    new = np.concatenate(([True], np.any(np.diff(rows, axis=0) != 0.0, axis=1)))
    return np.asarray(rows[np.isfinite(rows).all(axis=1) & new])


def _factor(path: Path, unit: str) -> float:
    factors = {"degC": 1.0, "1": 1.0, "percent": 0.01, "MPa": 1.0, "Pa": 1e-6}
    if unit not in factors:
        raise ModelError(f"{path}: unit '{unit}': give one of {', '.join(factors)}")
    return factors[unit]


def _weight_of(model: TomlTable) -> str | None:
    """The free point, without a spring, that one array of wires carries; None if there is none."""
    if model.get("kind") != "cell_array":
        return None
    activations = [as_list(one.get("activation", {})) for one in model["arrays"].values()]
    kinds = [kind.get("kind") for of_array in activations for kind in of_array]
    free = [name for name, point in model["points"].items() if point["support"] == "free"]
    if kinds != ["sma"] or len(free) != 1 or model["points"][free[0]].get("spring_N_per_m"):
        return None
    return str(free[0])


def _of_weight(path: Path, run: xr.Dataset) -> Array:
    """Temperature, strain and stress of a wire that lifts a weight, over its last cycle."""
    point = _weight_of(experiment_of(run)["model"])
    if point is None:
        raise ModelError(
            f"{path}: has no column {', '.join(n for n in RECORDED if n not in run)}: give it the "
            "channels temperature (kind temperature), strain (units 1 or percent) and stress "
            "(units MPa), or a recording of a weight on a wire as in configs/isotonic"
        )
    config = config_of(path, run)
    model = cast(ModelTable, config.tables.model)
    [array] = model.arrays.values()
    wire = cast(SmaTable, array.activation[0])
    if len(config.model.cell_names) != 1:
        raise ModelError(f"{path}: its array has several cells: give runs of one cell")
    moved_m = _reading(path, run, config, f"{point}.x_m")
    T_C = _reading(path, run, config, f"{config.model.cell_names[0]}.wire_C")
    lifts = 1.0 if array.start == point else -1.0
    area_m2 = wire.n_wires * 0.25 * np.pi * wire.diameter_m**2
    stress_MPa = model.points[point].mass_kg * g / area_m2 / MPa
    reported = run.cells_reported.values[:, 0]
    known = np.flatnonzero(reported != CELL_UNKNOWN)
    starts = known[np.diff(reported[known].astype(int), prepend=0) == 1]
    if not len(starts):
        raise ModelError(f"{path}: its cell was never on: give a run that heats the wire")
    mask = np.isfinite(T_C) & np.isfinite(moved_m)
    mask[: starts[-1]] = False
    rows = np.column_stack([T_C, -lifts * moved_m / wire.length_m])[mask]
    hottest = int(np.argmax(rows[:, 0]))
    up, down = (_means(part) for part in (rows[: hottest + 1], rows[hottest:]))
    both = np.vstack([up, down[::-1]])
    return np.column_stack([both, np.full(len(both), stress_MPa)])


def _reading(path: Path, run: xr.Dataset, config: Experiment, signal: str) -> Array:
    """Readings of the channel that measures a signal."""
    names = [name for name, of in signals_of(config.tables.devices).items() if of == signal]
    if not names:
        raise ModelError(f"{path}: no channel measures {signal}: a loop needs one: add it")
    column = next(c for c in channels_of(config.tables) if c.name == names[0]).column("measured")
    return np.asarray(run[column].values, dtype=float)


def _means(rows: Array) -> Array:
    """Means over steps of STEP_K of the first column, in its rising order."""
    at = np.floor((rows[:, 0] - rows[:, 0].min()) / STEP_K).astype(int)
    n = np.bincount(at)
    sums = np.column_stack([np.bincount(at, column) for column in rows.T])
    return np.asarray(sums[n > 0] / n[n > 0, None])
