"""Replay: runs estimator, controller and guard on a recording's readings, in the same loop.

On the same kind of processor a run replays bit for bit. Another processor rounds differently in
compiled code and BLAS: there, commands and faults must be equal, and numbers must agree within
`ROUNDING`. A difference indicates changed software, a changed model, or a damaged file.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hil.errors import ConfigError
from hil.loop import guard
from hil.loop.clock import VirtualClock
from hil.loop.frame import Frame
from hil.loop.requests import Request, Stop
from hil.platform.provenance import processor
from hil.plugins import code as plugin_code
from hil.record.read import open_run, plugins_of
from hil.rig.instruments import gates_in_the_file
from hil.rig.replay import ReplayRig
from hil.runs import assembly
from hil.runs.imports.twin import model_columns
from hil.runs.kept_code import config_of
from hil.runs.plan import Plan
from hil.runs.trial import Trial

ROUNDING = 1e-6  # of a column's largest magnitude; up to 7e-11 was seen between two processors
COMPARED_ROLES = ("reference", "model", "commanded", "fault")
# A fault of the last row, which cannot be reproduced from the readings.
NOT_REPLAYED = guard.DEVICE_FAILED


@dataclass(frozen=True)
class Difference:
    """The first row and column in which recording and replay differ."""

    row: int
    t_s: float
    column: str
    recorded: object
    replayed: object


class _RecordedClock(VirtualClock):
    """A clock with the recording's ticks and lateness."""

    def __init__(
        self,
        t_s: NDArray[np.float64],
        late_s: NDArray[np.float64],
        fault_bits: NDArray[np.uint64],
        period_s: float,
    ):
        super().__init__()
        self._t_s, self._late_s, self._period_s = t_s, late_s, period_s
        slept = np.flatnonzero(fault_bits & np.uint64(guard.MACHINE_SLEPT))
        self._slept_row = int(slept[0]) if len(slept) else -1
        self._row = -1

    def slept_s(self) -> float:
        return float(self._row == self._slept_row)

    def sleep_until_s(self, deadline_s: float) -> float:
        self._row += 1
        return float(self._late_s[self._row])

    def now_s(self) -> float:
        # The middle of the period that begins at the next row: the loop rounds down to that row.
        following = min(self._row + 1, len(self._t_s) - 1)
        return float(self._t_s[following]) + self._period_s / 2.0


class _ComparingSink(assembly.NoSink):
    """Compares the loop's rows with the recorded ones; stores the first difference.

    It refuses the row before which the recorder or the disk failed in the run.
    """

    def __init__(self, run: xr.Dataset, frame: Frame, tolerance: float) -> None:
        compared = [
            c.name for c in frame.columns if c.role in COMPARED_ROLES and c.name in run.data_vars
        ]
        self._recorded = {name: run[name].values for name in ("t_s", *compared)}
        self._recorded["fault_bits"] = self._recorded["fault_bits"] & ~np.uint64(NOT_REPLAYED)
        self._margin = {
            name: tolerance * np.abs(values[np.isfinite(values)]).max(initial=0.0)
            for name, values in self._recorded.items()
            if values.dtype.kind == "f"
        }
        self._refused = {
            int(np.argmax(mask)) - 1: "as recorded" if fault == guard.DISK_LOW else ""
            for fault in (guard.DISK_LOW, guard.RECORDER_DEAD)
            if (mask := run.fault_bits.values & np.uint64(fault) != 0).any()
        }
        self._frame = frame
        self._requests: dict[int, list[Request]] = {}
        for i, tick in enumerate(run.input_tick.values.tolist()):
            name, value = str(run.input_name.values[i]), float(run.input_value.values[i])
            if name not in ("start", "stop", "zero"):
                request = (name, value, str(run.input_text.values[i]))
                self._requests.setdefault(tick, []).append(request)
        self.stop = Stop()
        self.rows = 0
        self.difference: Difference | None = None

    def push(self) -> bool:
        row, now = self.rows, self._frame.row[0]
        self.rows += 1
        for name, values in self._recorded.items():
            if not self._same(name, values[row], now[name]):
                t_s = float(self._recorded["t_s"][row])
                self.difference = Difference(
                    row, t_s, name, _as_python(values[row]), _as_python(now[name])
                )
                self.stop.reason = "difference"
                break
        if self.rows == len(self._recorded["t_s"]):
            self.stop.reason = "end"
        self.disk_low = self._refused.get(row, "")
        return row not in self._refused

    def _same(
        self, name: str, recorded: NDArray[np.generic], replayed: NDArray[np.generic]
    ) -> bool:
        if recorded.tobytes() == replayed.tobytes():
            return True  # bit for bit, as most values are: found ten times as fast
        if name not in self._margin:
            return np.array_equal(recorded, replayed)
        return np.allclose(recorded, replayed, rtol=0.0, atol=self._margin[name], equal_nan=True)

    def requests(self, tick: int) -> Sequence[Request]:
        """The recorded requests of this tick."""
        return self._requests.get(tick, ())


def tolerance_of(run: xr.Dataset) -> float:
    """Return 0 for a recording made on this kind of processor, else `ROUNDING`."""
    made_on = json.loads(run.attrs.get("software", "{}")).get("processor")
    return 0.0 if made_on == processor() else ROUNDING


class Replay(NamedTuple):
    """A replay: the number of rows compared, the first difference, and what ran again."""

    rows: int
    difference: Difference | None
    pipeline: assembly.Pipeline


def replay(path: Path, code: Mapping[str, str] | None = None) -> tuple[int, Difference | None]:
    """Replay a recording; returns the number of rows compared and the first difference.

    Raises as `replayed`.
    """
    done = replayed(path, code)
    return done.rows, done.difference


def replayed(path: Path, code: Mapping[str, str] | None = None) -> Replay:
    """Replay a recording.

    Parameters
    ----------
    code : sources by key that replace the recorded user code

    Raises
    ------
    UntrustedError
        The recording contains code that is not trusted; none of it was run.
    ConfigError
        The file is not a recording, or this version cannot load its configuration.
    """
    run = open_run(path)
    if not run.sizes["tick"]:
        raise ConfigError(f"{path}: has no rows")
    kept = plugins_of(path)
    config = config_of(path, run, code)
    for key, used in config.plugins.items():
        was = kept.get(key, {}).get("package", "")
        if used.package and used.source != kept.get(key, {}).get("source", used.source):
            raise ConfigError(
                f"{path}: {key}.kind = '{used.kind}': recorded with {was}, whose code differs "
                f"from that of {used.package}: install it to replay"
            )
    tables = config.tables
    pipeline = assembly.build(Plan(config, seed=int(run.attrs["seed"])))
    if "imported" in run.attrs:
        return Replay(run.sizes["tick"], _model_difference(run, pipeline), pipeline)
    layout = pipeline.rig.layout
    if "gates" not in run.attrs:
        gates = gates_in_the_file(config.tables.devices, config.system().cell_names)
        layout = replace(layout, gate_of=gates)
    rig = ReplayRig(run, layout)
    period_s = tables.loop.period_s
    clock = _RecordedClock(run.t_s.values, run.late_s.values, run.fault_bits.values, period_s)
    comparing = _ComparingSink(run, pipeline.frame, tolerance_of(run))
    starts = run.input_value.values[run.input_name.values == "start"]
    armed = bool(starts[0]) if len(starts) else True
    parts = pipeline.context(clock, comparing, rig=rig, armed=armed)
    comparing.stop = parts.inputs.stop
    n_ticks = round(float(run.t_s.values[-1]) / period_s) + 1
    with plugin_code.watched(), Trial(replace(parts, n_ticks=n_ticks)) as trial:
        trial.run()
    return Replay(comparing.rows, comparing.difference, pipeline)


def _model_difference(run: xr.Dataset, pipeline: assembly.Pipeline) -> Difference | None:
    """The first row and column in which the twin of an imported recording differs.

    No loop of hil made its rows: there is no controller and no guard to run again.
    """
    rows = {str(name): run[name].values for name in ("t_s", *run.data_vars)}
    tolerance, first = tolerance_of(run), None
    for name, again in model_columns(pipeline, rows).items():
        recorded = rows[name]
        same = recorded == again
        if recorded.dtype.kind == "f":
            margin = tolerance * np.abs(recorded[np.isfinite(recorded)]).max(initial=0.0)
            same = np.isclose(recorded, again, rtol=0.0, atol=margin, equal_nan=True)
        differs = np.flatnonzero(~same.reshape(len(same), -1).all(axis=1))
        if len(differs) and (first is None or differs[0] < first.row):
            k = int(differs[0])
            first = Difference(k, float(rows["t_s"][k]), name, _as_python(recorded[k]),
                               _as_python(again[k]))  # fmt: skip
    return first


def _as_python(value: object) -> object:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value
