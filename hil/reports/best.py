"""How far a planner's run was from the best sequence found, and what the distance is due to.

A replay of the run ends with the wires that its planner has learned. Every sequence here is tried
on that array (`hil.systems.array.recruitment.best`). The run's own and the best one found meet the
force that this array does not explain too, as it was measured. It also takes the place of the plant
in simulations of the same planner that differ in one thing each:

    noise      the transducer is perfect: no noise, delay, offset, or lost reading
    knowledge  planner and twin know this array exactly
    price      nothing costs but the error
    search     a plan has MORE times the steps of search

A wire that takes more power is one that needs less heat: its heat capacity, latent heat and
convection are divided by 1 + h, so that the current stays what it is.

`hil replay --best` writes the figures beside the recording, where `hil report` finds them.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hil.calibration.files import transducers_of
from hil.config.files import merge
from hil.config.values import Figures, TomlTable
from hil.errors import ConfigError, ModelError, writing
from hil.experiment.load import from_toml
from hil.experiment.loaded import Experiment
from hil.identification.parameters import expanded, tables_of
from hil.loop.channels import DUTY_REPORTED
from hil.loop.frame import CELL_UNKNOWN
from hil.mechanics.arrays import Array, Indices
from hil.mechanics.sma.wire import wire_laws
from hil.pages.section import Section
from hil.platform.whole_files import write_whole
from hil.record.read import calibrations_of, experiment_of, open_run
from hil.runs.plan import Plan
from hil.runs.replay import Replay, replayed
from hil.runs.simulate import simulated
from hil.systems.array.build_force import force_signal, nominal_of
from hil.systems.array.model.cell_array import CellArray
from hil.systems.array.model.system import ArraySystem
from hil.systems.array.recruitment.best import Arrays, Course, Sequence, best_sequence

FROM_S = 2.0  # before, cold wires cannot follow
SAMPLE_S = 0.01  # between two comparisons with the set point
REACH = 1.0  # horizons of the planner
MORE = 20
STEPS_MOST = 1_000_000  # of the search a tick, as its table allows
SWAPS = {
    "as it was": "the same planner, simulated on that array",
    "noise": "  without noise and delay",
    "knowledge": "  with that array known",
    "price": "  without prices",
    "search": f"  with {MORE} times the search",
}
ENDING = "-best.json"
MISSING = "Not computed yet, or damaged: hil replay --best {}, then report."
PERFECT = ("noise_rms_V", "noise_rms", "delay_s", "offset_V", "reading_lost_probability")
STILL_S = 3600.0  # for which a reading without noise may stay the same
FREE = ("wear_price_s", "energy_price", "price")
WARM = ("specific_heat_J_per_kg_K", "latent_heat_J_per_kg", "convection_W_per_m2_K")


def best_of(path: Path, code: Mapping[str, str] | None = None) -> Figures:
    """Search for the best sequence of a planner's run; the figures, which it writes too.

    Parameters
    ----------
    code : sources by key that replace the recorded user code

    Raises
    ------
    ConfigError
        The run had no planner, is too short, does not replay, or its array cannot be searched; or
        the figures cannot be written.
    """
    run, written = open_run(path), path.with_name(path.stem + ENDING)
    if written.is_dir():
        raise ConfigError(f"{written}: a folder, where the figures are written: move it away")
    kind = experiment_of(run).get("controller", {}).get("kind")
    if kind != "optimal":
        raise ConfigError(f"{path}: controller.kind = '{kind}': --best is for a planner (optimal)")
    done = replayed(path, code)
    if done.difference is not None:
        raise ConfigError(
            f"{path}: replays with a difference from {done.difference.t_s:g} s on, so that what "
            "its planner had learned is not known: run the experiment again"
        )
    failed = run.cells_failed.values[-1] == 1 if "cells_failed" in run else np.zeros(0, dtype=bool)
    columns = {str(name): run[name].values for name in run.data_vars}
    try:
        track = _Track(path, experiment_of(run), done, np.flatnonzero(failed))
        late, whole = (track.judged(columns, from_s) for from_s in (FROM_S, 0.0))
        swapped = {name: track.simulated(name, int(run.attrs["seed"])) for name in SWAPS}
    except ModelError as error:
        raise ConfigError(f"{path}: {error}") from None
    figures = {"from_s": FROM_S, **late, "from_rest": whole, "swapped": swapped}
    with writing(written):
        write_whole(written, json.dumps(figures, indent=2) + "\n")
    return figures


def as_text(path: Path, figures: Figures) -> str:
    """The figures in lines; every error also as a multiple of the best one."""
    best_N = figures["best"]["error_rms_N"]
    own_N = figures["own"]["error_rms_N"]
    lines = [
        f"{path}: {own_N / best_N:.2f} times the error of the best sequence found: RMS after "
        f"{figures['from_s']:g} s {own_N:.4g} N, best {best_N:.4g} N, on its array as learned"
    ]
    if "from_rest" in figures:  # not in files of before December 2026
        own_N, least_N = (figures["from_rest"][name]["error_rms_N"] for name in ("own", "best"))
        what = f"{own_N:.4g} N, {own_N / least_N:.2f} times the best one from rest"
        lines.append(f"  {'the run, from rest on':<44}{what}")
    for name, text in SWAPS.items():
        of = figures["swapped"][name]
        what = f"no figure, {of.get('outcome')}"
        if "error_rms_N" in of:
            what = f"{of['error_rms_N']:.4g} N, {of['error_rms_N'] / best_N:.2f} times"
        lines.append(f"  {text:<44}{what}")
    return "\n".join(lines)


def _figures(of: Sequence, course: Course) -> Figures:
    return {"error_rms_N": course.rms_N(of.force_N), "cycles": of.cycles}


class _Track:
    """The array that a planner had learned, and how sequences on it are judged.

    A period here is as many of the loop's as fit into SAMPLE_S and divide a plan.

    Parameters
    ----------
    table : the run's configuration
    done : the replay, at its end
    failed : cells that had failed
    """

    def __init__(self, path: Path, table: TomlTable, done: Replay, failed: Indices) -> None:
        self._path, self._table = path, table
        self.config = config = done.pipeline.config
        self._planner, self._period_s = config.tables.controller, config.tables.loop.period_s
        self._ticks = round(self._planner.plan_s / self._period_s)
        most = max(1, int(SAMPLE_S / self._period_s * (1.0 + 1e-9)))
        self._every = max(n for n in range(1, most + 1) if self._ticks % n == 0)
        self._learned = _learned(config, done.pipeline.estimator)
        gains_N = nominal_of(config.tables, config.model).static_gains_N
        self._live = np.setdiff1d(np.flatnonzero(gains_N), failed)
        on_it = self._changed({"plant": self._learned})
        plant, activation = on_it.models[1], on_it.kind.activation(on_it.tables.plant)
        period_s = self._every * self._period_s
        assert isinstance(plant, CellArray)  # a planner is of no other kind
        self.arrays = Arrays(
            lambda: ArraySystem(plant, activation, period_s),
            plant.outputs.index(force_signal(config.tables, config.model)),
        )

    def judged(self, columns: Mapping[str, NDArray[Any]], from_s: float) -> Figures:
        """What the run's own sequence leaves from then on, and the best one that is found."""
        sequence, course = self.course(columns, from_s, with_the_rest=True)
        best = best_sequence(self.arrays, course, sequence, modulated=self.config.modulates)
        ran = self.arrays.run(sequence)
        return {"own": _figures(ran, course), "best": _figures(best, course)}

    def course(
        self,
        columns: Mapping[str, NDArray[Any]],
        from_s: float = FROM_S,
        *,
        with_the_rest: bool = False,
    ) -> tuple[Array, Course]:
        """The powers of a run (n, N) from its first command, and what they are judged by.

        `with_the_rest` the force that the array does not explain, a mean over a plan, acts on every
        sequence as on the run's own.
        """
        powers, every = _powers(columns, modulated=self.config.modulates), self._every
        changes = np.flatnonzero((np.diff(powers, axis=0) != 0.0).any(axis=1)) + 1
        first = int(np.bincount(changes % self._ticks).argmax()) if len(changes) else 0
        n = (len(powers) - first) // every
        sequence = powers[first : first + n * every].reshape(n, every, -1).mean(axis=1)
        at = first + every * np.arange(1, n + 1)
        wanted_N = columns["force_reference_N"][at]
        counts = np.isfinite(wanted_N) & (self._period_s * at >= from_s)
        if not counts.any():
            raise ConfigError(f"{self._path}: no set point after {from_s:g} s: give a longer run")
        per_block = self._ticks // every
        if with_the_rest:
            rest_N = columns["force_measured_N"][at] - self.arrays.run(sequence).force_N
            wanted_N = wanted_N - _smooth(rest_N, per_block)
        ends = np.append(np.arange(0, n, per_block), n)
        reach = round(REACH * self._planner.horizon_s / (every * self._period_s))
        wanted_N = np.where(counts, wanted_N, 0.0)
        return sequence, Course(wanted_N, counts.astype(float), ends, reach, self._live)

    def simulated(self, swap: str, seed: int) -> Figures:
        """What the same planner does on the array as learned, with one thing swapped."""
        change: TomlTable = {"plant": self._learned}
        if swap == "noise":
            change |= {key: _perfect(self._table[key]) for key in ("devices", "guard")}
        elif swap == "knowledge":
            change["model"] = self._learned
        elif swap == "price":
            free = dict.fromkeys((key for key in FREE if getattr(self._planner, key)), 0.0)
            # by its default wear has a price on wires, and a switch of other cells
            free["wear_price_s" if self.arrays.has_wires else "price"] = 0.0
            change["controller"] = free
        elif swap == "search":
            steps = min(STEPS_MOST, MORE * self._planner.levels_per_tick)
            change["controller"] = {"levels_per_tick": steps}
        names = ["force_reference_N", "cells_reported"]
        names += [DUTY_REPORTED] if self.config.modulates else []
        outcome, _, columns = simulated(Plan(self._changed(change), seed=seed), names)
        if outcome != "complete":
            return {"outcome": outcome}
        sequence, course = self.course(columns)
        return _figures(self.arrays.run(sequence), course)

    def _changed(self, change: TomlTable) -> Experiment:
        """The run's configuration, with these tables changed."""
        records = transducers_of(self._path, calibrations_of(self._path))
        return from_toml(self._path, merge(self._table, change), records)


def _smooth(values: Array, n: int) -> Array:
    """Means of about n values around each; missing ones do not count."""
    known, ones = np.isfinite(values), np.ones(min(n, len(values)))
    sums = np.convolve(np.where(known, values, 0.0), ones, "same")
    means: Array = sums / np.maximum(1.0, np.convolve(known, ones, "same"))
    return means


def _powers(columns: Mapping[str, NDArray[Any]], *, modulated: bool) -> Array:
    """Power of every cell from every tick to the next, as boards reported it; (ticks - 1, N)."""
    reported = columns[DUTY_REPORTED if modulated else "cells_reported"].astype(float)
    unknown = np.isnan(reported) if modulated else reported == CELL_UNKNOWN
    known = np.where(unknown, 0, np.arange(len(reported))[:, None])  # the last one that is known
    reported[unknown] = 0.0
    latest = np.take_along_axis(reported, np.maximum.accumulate(known, axis=0), axis=0)
    return latest[1:]


def _learned(config: Experiment, estimator: Any) -> TomlTable:
    """The table of the array with what its planner had learned: forces, heats, convection, air."""
    tables = expanded(tables_of(config.tables.model), ("force_on_N", "activation"))
    wires = estimator.estimate.wires
    if wires is None:  # cells without heating are known as they are
        return tables
    nominal = nominal_of(config.tables, config.model)
    laws, gains_N, _ = wires.look()
    before = wire_laws([cell.wire for cell in nominal.activation])
    heating, cooling = laws["E2"] / before["E2"], laws["G"] / before["G"]
    n = 0
    for array in tables["arrays"].values():
        for i, cell in enumerate(array["activation"]):
            share = gains_N[n] / nominal.static_gains_N[n] if nominal.static_gains_N[n] else 1.0
            array["force_on_N"][i] *= max(float(share), 1e-3)  # a force of a cell is above 0
            for key in WARM:
                cell[key] /= float(heating[n])
            cell["convection_W_per_m2_K"] *= float(cooling[n])
            cell["ambient_C"] = float(laws["T_a"][n])
            cell.pop("record", None)
            n += 1
    return tables


def _perfect(table: TomlTable) -> TomlTable:
    """Devices or guard, for transducers that show the present force and may show no change."""
    perfect: TomlTable = {}
    for key, value in table.items():
        if key == "frozen_s":
            perfect[key] = STILL_S
        elif isinstance(value, dict):
            perfect[key] = _perfect(value)
        else:
            perfect[key] = 0.0 if key in PERFECT else value
    return perfect


def sections(run: xr.Dataset) -> list[Section]:
    """The section of `hil report` on a planner's run."""
    path = Path(run.encoding["source"])
    written, title = path.with_name(path.stem + ENDING), "Distance from the best sequence"
    try:
        figures = json.loads(written.read_text(encoding="utf-8"))
        first, *rows = as_text(path, figures).splitlines()
    except (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError,
            RecursionError):  # fmt: skip
        return [Section(title, [MISSING.format(path.name)])]
    parted = [[row[:46].strip(), *row[46:].split(", ")] for row in rows]
    told = [f"{first.removeprefix(f'{path}: ')}. The rest shows what one change alone does."]
    return [Section(title, told, None, ["", "error", "over the best"], parted)]
