"""An experiment as a device of ophyd-async, for plans of bluesky.

The experiment runs in a process of its own, `hil run`, so that the RunEngine's threads do not
delay its loop.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from math import nan
from pathlib import Path

from bluesky.protocols import Triggerable
from ophyd_async.core import (
    AsyncStatus,
    SignalRW,
    StandardReadable,
    StandardReadableFormat,
    soft_signal_r_and_setter,
    soft_signal_rw,
)

from hil.config.files import read_merged
from hil.errors import ConfigError, DeviceError
from hil.experiment.load import load
from hil.loop.channels import signals_in
from hil.loop.frame import units
from hil.platform.processes import PYTHON
from hil.runs.assembly import build
from hil.runs.figures import OF_FORCE, OF_SIGNALS, figures_of
from hil.runs.plan import Plan

WITHOUT_UNIT = "vaf"


class Experiment(StandardReadable, Triggerable):
    """An experiment file as a device: `trigger` runs it, and the readings are its summary.

    Parameters
    ----------
    path : experiment file
    settings : keys of the file that plans may set, by the name of their signal, such as
        `{"k_p": "controller.k_p"}`; each has a number in the file
    backend : `sim`, or a backend for each device (`board=bench,daq=sim`)
    options : other words for `hil run`, such as `("--seed", "7", "--strict")`
    name : name of the device; by default that of its variable in `init_devices`

    Attributes
    ----------
    NAME of `settings` : the setting, in the unit of its key
    recording : file of the last run
    force_vaf, force_residual_rms_N, SIGNAL_tracking_rms, missed_periods, ... : figures of the
        summary, as in the table of a campaign; NaN if the run has no such figure

    Raises
    ------
    ConfigError
        The file or a key is refused.
    DeviceError
        `trigger`: the run was refused, tripped, failed or was interrupted. The plan ends, and
        everything is off.
    """

    def __init__(
        self,
        path: str | Path,
        settings: Mapping[str, str] | None = None,
        *,
        backend: str = "sim",
        options: Sequence[str] = (),
        name: str = "",
    ) -> None:
        self._path = Path(path)
        self._words = ["--backend", backend, *options]
        self._process: asyncio.subprocess.Process | None = None
        self._settings: list[tuple[str, SignalRW[float]]] = []
        table, figures = read_merged(self._path).table, _figures(self._path)
        for taken in {"recording", *figures} & {*(settings or {})}:
            raise ConfigError(f"{path}: settings: {taken} is a reading: choose another name")
        with self.add_children_as_readables():
            for signal_name, key in (settings or {}).items():
                signal = soft_signal_rw(float, _number(table, key, self._path))
                setattr(self, signal_name, signal)
                self._settings.append((key, signal))
            self.recording, self._set_recording = soft_signal_r_and_setter(str)
        self._figures = {}
        with self.add_children_as_readables(StandardReadableFormat.HINTED_SIGNAL):
            for figure, unit in figures.items():
                readable, self._figures[figure] = soft_signal_r_and_setter(float, nan, units=unit)
                setattr(self, figure, readable)
        super().__init__(name)

    @AsyncStatus.wrap
    async def trigger(self) -> None:
        """Run the experiment with the present settings, and take its summary as readings."""
        sets = [
            f"--set={key}={_in_toml(await signal.get_value())}" for key, signal in self._settings
        ]
        words = ["run", str(self._path), "--json", *self._words, *sets]
        self._process = await asyncio.create_subprocess_exec(
            *PYTHON, "-m", "hil", *words,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        try:
            output, complaints = await self._process.communicate()
        finally:
            await self._end()
        if not output:
            lines = complaints.decode().strip().splitlines()
            raise DeviceError(lines[-1] if lines else f"{self._path}: the run was interrupted")
        summary = json.loads(output)
        if summary["outcome"] != "complete":
            why = summary["first_cause"] or f"stopped by {summary['stopped_by']}"
            raise DeviceError(f"{summary['file']}: {summary['outcome']}: {why}")
        self._set_recording(str(Path(summary["file"]).resolve()))
        figures = figures_of(Path(summary["file"]), summary, {})
        for figure, put in self._figures.items():
            value = figures.get(figure)
            put(nan if value is None else float(value))

    @AsyncStatus.wrap
    async def unstage(self) -> None:
        """End a run that a plan has left, as after an abort; everything is off afterwards."""
        await self._end()
        await super().unstage()

    async def _end(self) -> None:
        """Ask the run to end, as Ctrl-C does, and wait until its rig is safe."""
        if self._process is not None and self._process.returncode is None:
            self._process.terminate()
            await self._process.wait()


def _number(table: Mapping[str, object], key: str, path: Path) -> float:
    """Value of a key such as `controller.k_p`."""
    entry: object = table
    for word in key.split("."):
        entry = entry.get(word) if isinstance(entry, Mapping) else None
    if isinstance(entry, bool) or not isinstance(entry, int | float):
        raise ConfigError(f"{path}: {key}: not a number in this file: a setting needs one")
    return float(entry)


def _in_toml(value: float) -> str:
    """A number as text; without a decimal point if it is whole, as keys that count have it."""
    return repr(int(value) if value.is_integer() else value)


def _figures(path: Path) -> dict[str, str]:
    """Names and units of the figures that a run of the experiment may have."""
    unit_by_figure = {"missed_periods": "1"}
    for signal in signals_in(column.name for column in build(Plan(load(path))).frame.columns):
        for figure in OF_FORCE if signal.name == "force" else OF_SIGNALS:
            unit = "1" if figure == WITHOUT_UNIT else units(signal.suffix)
            unit_by_figure[f"{signal.name}_{figure}"] = unit
    return unit_by_figure
