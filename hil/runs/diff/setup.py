"""What a recording was made with, in a form in which parts can be exchanged and run again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hil.calibration.files import Calibration, transducers_of
from hil.calibration.signal_chain import Chain
from hil.config.files import Merged
from hil.config.validate import validated
from hil.config.values import Attributes, TomlTable
from hil.devices.injection import Injection
from hil.devices.injection_tables import FaultFile, FaultTable
from hil.errors import ConfigError
from hil.experiment.load import from_toml
from hil.experiment.recorded import as_it_meant
from hil.loop.channels import Signal, signals_in
from hil.mechanics.system import Drive, System, Wrapped
from hil.record import metrics
from hil.record.read import calibrations_of, experiment_of, open_run
from hil.record.summary import signal_figures
from hil.rig.instruments import signals_of
from hil.runs.kept_code import config_of, kept_code
from hil.runs.simulate import simulate

if TYPE_CHECKING:
    import xarray as xr

SHOWN = ("tracking_rms", "residual_rms", "measured_max")


class DisturbedSystem(Wrapped):
    """A system whose outputs are read otherwise: recorded disturbances added, then converted.

    Parameters
    ----------
    added : (n,) values by output, one a period; the last one holds
    read : conversion by output: as what a reading of a value is taken
    """

    def __init__(
        self,
        inner: System,
        added: Mapping[str, NDArray[np.float64]],
        read: Mapping[str, tuple[Chain, Chain]],
    ) -> None:
        super().__init__(inner)
        places = {name: i for i, name in enumerate(inner.outputs)}
        self._added = [(places[name], values) for name, values in added.items() if name in places]
        self._read = [(places[name], chains) for name, chains in read.items() if name in places]
        self._n = 0
        self._disturb()

    def step(self, drive: Drive, inputs: NDArray[np.float64]) -> None:
        self._inner.step(drive, inputs)
        self._n += 1
        self._disturb()

    def _disturb(self) -> None:
        self.y[:] = self._inner.y
        for i, values in self._added:
            self.y[i] += values[min(self._n, len(values) - 1)]
        for i, (from_chain, to_chain) in self._read:
            self.y[i] = to_chain.value(from_chain.raw(float(self.y[i])))


@dataclass(frozen=True)
class Setup:
    """Everything that a run can be made of again.

    Attributes
    ----------
    run : the recording
    tables, records, code, seed, faults : what `hil run` had
    read_with : chain of each channel that converts its voltage; `chains` were those of the run
    disturbed : by output, measured minus simulated, which stands for what the twin does not know;
        empty for a simulated run, whose plant runs again
    later : the readings were converted again after the run
    """

    run: xr.Dataset
    tables: TomlTable
    records: Mapping[str, Calibration]
    code: Mapping[str, str]
    seed: int
    faults: Sequence[FaultTable]
    chains: Mapping[str, Chain]
    read_with: Mapping[str, Chain]
    disturbed: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    later: bool = False
    simulated: bool = True

    @property
    def path(self) -> Path:
        return Path(self.run.encoding["source"])

    def again(self) -> xr.Dataset:
        """Run it again, on the virtual clock and simulated devices.

        Raises
        ------
        ConfigError
            Its parts do not fit each other.
        """
        config = from_toml(self.path, self.tables, self.records, self.code)
        injection = Injection(self.faults) if self.faults else None
        outputs = signals_of(config.tables.devices)
        force = config.force_signal or config.default_signal
        read = {
            outputs.get(channel) or force: (self.chains[channel], chain)
            for channel, chain in self.read_with.items()
            if channel in self.chains and chain != self.chains[channel]
        }
        plant = None
        if self.disturbed or (read and not self.later):
            system = config.system(plant=self.simulated)
            plant = DisturbedSystem(system, self.disturbed, {} if self.later else read)
        again = simulate(config, self.seed, injection=injection, plant=plant)
        if self.later:
            _convert(again, self.chains, self.read_with)
        return again


def setup_of(path: Path) -> Setup:
    """The parts of a recording.

    Raises
    ------
    UntrustedError
        It contains code that is not trusted.
    ConfigError
        It cannot be run again: imported, without rows, or not of this version.
    """
    run = open_run(path)
    if "imported" in run.attrs:
        raise ConfigError(f"{path}: imported: no loop of hil made it, so it cannot run again")
    if not run.sizes["tick"]:
        raise ConfigError(f"{path}: has no rows")
    config_of(path, run)  # refuses what is not trusted, and what this version cannot load
    kept = calibrations_of(path)
    now = {name: Chain.recorded(entry) for name, entry in kept.items() if _is_linear(entry)}
    was = {name: _as_run(path, entry, now[name]) for name, entry in kept.items() if name in now}
    tables = as_it_meant(experiment_of(run))
    simulated = "bench" not in str(run.attrs["backend"])
    setup = Setup(
        run, tables, transducers_of(path, kept),
        {c.key: c.source for c in kept_code(path) if c.key != "plant"},
        int(run.attrs["seed"]), _faults(path, run), was, now,
        later="recalibrated" in run.attrs, simulated=simulated,
    )  # fmt: skip
    return setup if simulated else _with_twin(setup)


def _is_linear(entry: Attributes) -> bool:
    return entry.get("kind", "force") != "encoder" and (
        "coefficients" in entry or "newtons_per_V" in entry or "units_per_V" in entry
    )


def _as_run(path: Path, entry: Attributes, now: Chain) -> Chain:
    """The chain with which the run was controlled."""
    if not (text := entry.get("was_record")):
        return now
    record = transducers_of(path, {"": {"record": text}}).get("")
    return now if record is None else record.chain(bridge=entry.get("raw_unit") == "mV/V")


def _faults(path: Path, run: xr.Dataset) -> list[FaultTable]:
    """Injected faults, and on a real clock each gap of the rows as a stall."""
    tables = json.loads(run.attrs.get("injected", "[]"))
    if run.attrs["clock"] == "real":
        period_s = float(experiment_of(run)["loop"]["period_s"])
        t_s = run.t_s.values
        for k in np.flatnonzero(np.diff(t_s) > 1.5 * period_s):
            stalled_s = float(t_s[k + 1] - t_s[k]) - 0.5 * period_s
            tables.append({"kind": "machine_stalls", "at_s": float(t_s[k]), "for_s": stalled_s})
    if not tables:
        return []
    table = {"fault": tables}
    return list(validated(FaultFile, Merged(table, [(str(path), table)])).fault)


def _with_twin(setup: Setup) -> Setup:
    """A run at the bench: its twin, with what it did not know as recorded, stands for the plant."""
    config = from_toml(setup.path, setup.tables, setup.records, setup.code)
    outputs = {
        name: s or config.force_signal for name, s in signals_of(config.tables.devices).items()
    }
    disturbed = {}
    for signal in signals_in(map(str, setup.run.data_vars)):
        channel = config.tables.loop.force_channel if signal.name == "force" else signal.name
        output = outputs.get(channel or "", config.force_signal if signal.name == "force" else "")
        if output:
            disturbed[output] = _held(setup.run, signal)
    tables = {**setup.tables, "plant": setup.tables["model"], "devices": _noiseless(setup.tables)}
    return replace(setup, tables=tables, disturbed=disturbed)


def _held(run: xr.Dataset, signal: Signal) -> NDArray[np.float64]:
    """Measured minus simulated in every period; a missing one repeats the one before."""
    period_s = float(experiment_of(run)["loop"]["period_s"])
    residual = run[signal.measured].values - run[signal.model].values
    ticks = np.rint(run.t_s.values / period_s).astype(int)
    known = np.isfinite(residual)
    at = np.searchsorted(ticks[known], np.arange(ticks[-1] + 1), side="right") - 1
    return np.asarray(np.where(at < 0, 0.0, residual[known][np.maximum(at, 0)]))


def _noiseless(tables: TomlTable) -> TomlTable:
    """The devices without simulated noise and offset, which the residual contains."""
    devices = json.loads(json.dumps(tables["devices"], default=str))
    for device in devices.values():
        for channel in device.get("channels", {}).values():
            for key in channel.get("sim") or {}:
                if key.startswith(("noise", "offset")):
                    channel["sim"][key] = 0.0
    return dict(devices)


def _convert(run: xr.Dataset, was: Mapping[str, Chain], now: Mapping[str, Chain]) -> None:
    """Convert the readings of a run again, after it."""
    for channel, chain in now.items():
        for column in (f"{channel}_measured_N", f"{channel}.force_measured_N", "force_measured_N"):
            old = was.get(channel)
            if column in run and old is not None and old != chain:
                values = run[column].values
                run[column].values[:] = [
                    chain.value(old.raw(float(y))) if np.isfinite(y) else y for y in values
                ]
                break


def figures_of(run: xr.Dataset) -> dict[str, float]:
    """Figures of a run's rows, by name: of every signal, and of the loop."""
    figures: dict[str, float] = {}
    for signal in signals_in(map(str, run.data_vars)):
        measured, model = run[signal.measured].values, run[signal.model].values
        reference = (
            np.full(len(measured), np.nan)
            if signal.reference is None
            else run[signal.reference].values
        )
        known = measured[np.isfinite(measured)]
        values = signal_figures(measured, model, reference)
        values |= {
            "noise": metrics.noise_rms(known),
            "mean": float(np.mean(known)) if len(known) else np.nan,
        }
        for key in (*SHOWN, "mean", "noise"):
            value = values.get(key)
            if isinstance(value, float | int | np.floating) and np.isfinite(value):
                figures[f"{signal.name}_{key}{signal.suffix}"] = float(value)
    period_s = float(np.median(np.diff(run.t_s.values))) if run.sizes["tick"] > 1 else 0.0
    end_s = float(run.t_s.values[-1])
    figures["duration_s"] = end_s
    figures["missed_periods"] = round(end_s / period_s) + 1 - run.sizes["tick"] if period_s else 0.0
    return figures


def leaves(
    table: Mapping[str, object], path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], object]]:
    """Every value of nested tables with its path; lists are values."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from leaves(value, (*path, key))
        else:
            yield (*path, key), value
