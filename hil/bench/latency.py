"""`hil doctor --loopback`: latency from a step at the ADC to the edge of a gate.

The gate of the rig's first cell is connected to the input of its force channel. A relay replaces
the controller: it switches the cell on when the reading is low and off when it is high. The system
oscillates, and half a cycle is the time from one edge of the gate through ADC, tick, command and
board to the next. With simulated and emulated devices the plant is this wire.

Every other channel that is connected to the gate too shows the edges as well. The times that the
devices state for one edge give the offsets between them (`hil.bench.offsets`).
"""

from dataclasses import replace
from math import isnan

import numpy as np
from numpy.typing import NDArray

from hil.bench.offsets import edges_of, offsets
from hil.config.values import Figures
from hil.errors import ConfigError, DeviceError, StopError
from hil.experiment.loaded import Experiment
from hil.loop.channels import RigLayout
from hil.loop.frame import CELL_UNKNOWN, Column, Commands, Frame
from hil.mechanics.system import Drive, System
from hil.rig.instruments import device_of, layout_of, switching
from hil.runs import assembly
from hil.runs.plan import Plan
from hil.runs.trial import Trial

LEARN_S = 0.1  # off, then on, to learn both readings of the channel
PERIODS_MAX = 2.0
SHARE = 0.5  # of the largest force, or jump of it, that the guard permits


class _Wire:
    """A plant that is a wire: the force channel has a signal while the first cell is on."""

    def __init__(self, system: System, signal: int, level: float) -> None:
        self.period_s = system.period_s
        self.cell_names, self.inputs = system.cell_names, system.inputs
        self.outputs, self.wires = system.outputs, system.wires
        self.y: NDArray[np.float64] = np.zeros(len(system.outputs))
        self._signal, self._level = signal, level

    def step(self, drive: Drive, inputs: NDArray[np.float64]) -> None:
        self.y[self._signal] = self._level if drive[0] >= 0.5 else 0.0


def _wired_back(config: Experiment) -> System:
    """The wire from the first cell's gate to the force channel, as the simulated plant."""
    system = config.system(plant=True)
    signal = list(system.outputs).index(config.force_signal)
    guard = config.tables.guard
    most_N = min(guard.force_jump_max_N or 1.0, guard.force_max_N or 1.0)
    return _Wire(system, signal, SHARE * most_N)


class _Relay:
    """On below the middle of both learnt readings, off above; a missing reading changes nothing."""

    columns: list[Column] = []  # noqa: RUF012  never changed

    def __init__(self, learn_ticks: int, channel: int) -> None:
        self._channel = channel
        self._learn_ticks = learn_ticks
        self._n = 0
        self.low: list[float] = []
        self.high: list[float] = []

    def bind(self, frame: Frame, measured: NDArray[np.float64], commands: Commands) -> None:
        self._reading = measured[self._channel : self._channel + 1]
        self._cells = commands.cells

    def restart(self) -> None:
        """A relay has no state to reset."""

    def step(self, t_s: float) -> None:
        reading, n = float(self._reading[0]), self._n
        self._n += 1
        self._cells[1:] = 0
        if n < 2 * self._learn_ticks:
            self._cells[0] = n >= self._learn_ticks
            if n % self._learn_ticks > self._learn_ticks // 2:
                (self.high if self._cells[0] else self.low).append(reading)
            self._on = True
        elif not isnan(reading):
            self._on = reading < self.middle
        if n >= 2 * self._learn_ticks:
            self._cells[0] = self._on

    @property
    def follows(self) -> bool:
        """Whether the readings with the gate on differ from those with it off."""
        apart = abs(float(np.nanmedian(self.high) - np.nanmedian(self.low)))
        return apart > float(np.nanmax(self.low) - np.nanmin(self.low)) + float(
            np.nanmax(self.high) - np.nanmin(self.high)
        )

    @property
    def middle(self) -> float:
        return 0.5 * float(np.nanmedian(self.low) + np.nanmedian(self.high))


class _Edges(assembly.NoSink):
    """Keeps the row of every tick."""

    def __init__(self, frame: Frame, n_ticks: int) -> None:
        self._row = frame.row
        self._rows = np.zeros(n_ticks, dtype=frame.dtype)
        self.n = 0

    @property
    def rows(self) -> NDArray[np.void]:
        """The rows so far."""
        return self._rows[: self.n]

    def push(self) -> bool:
        self._rows[self.n] = self._row[0]
        self.n += 1
        return True

    def event(self, t_s: float, level: str, source: str, text: str) -> None:
        if level in ("fault", "error"):
            raise DeviceError(f"loop-back: {text}")


def measure(config: Experiment, backend: str, duration_s: float) -> dict[str, object]:
    """Latency of the whole stack; times in s.

    Raises
    ------
    DeviceError
        A device failed, the guard tripped, or the channel does not follow the gate.
    """
    plan = Plan(config, backend)
    layout = layout_of(config.tables, config.system().cell_names)
    if not layout.force or not layout.n_cells:
        raise ConfigError(
            f"{config.path}: --loopback switches a cell and reads a force: give a rig with both"
        )
    period_s = config.tables.loop.period_s
    learn_ticks = round(LEARN_S / period_s)
    n_ticks = 2 * learn_ticks + round(duration_s / period_s)
    if not plan.on_bench:
        plan = replace(plan, plant=_wired_back(config))
    built = assembly.build(plan)
    relay = _Relay(learn_ticks, layout.index(layout.force))
    pipeline = replace(built, control=relay)
    edges = _Edges(pipeline.frame, n_ticks)
    parts = replace(pipeline.context(plan.new_clock(), edges), n_ticks=n_ticks)
    with Trial(parts) as trial:
        trial.self_test()
        if trial.run() == "aborted":
            raise StopError(f"stopped by {parts.inputs.stop.reason}")
    cell = config.system().cell_names[0]
    measured = edges.rows[2 * learn_ticks :]
    t_s, on = measured["t_s"] + measured["late_s"], measured["cells_commanded"][:, 0] == 1
    changes_s = t_s[1:][on[1:] != on[:-1]]
    half_cycles_s = np.diff(changes_s)
    if len(half_cycles_s) < 10 or not relay.follows:
        raise DeviceError(
            f"loop-back: channel '{layout.force}' does not follow the gate of cell '{cell}': "
            f"it read {np.nanmedian(relay.low):.3g} with the gate off and "
            f"{np.nanmedian(relay.high):.3g} with it on: wire the gate to the channel's input"
        )
    p50_s, p99_s = np.quantile(half_cycles_s, (0.5, 0.99))
    return {
        "edges": len(changes_s),
        "p50_s": float(p50_s),
        "p99_s": float(p99_s),
        "max_s": float(half_cycles_s.max()),
        "p99_periods": float(p99_s) / period_s,
        "period_s": period_s,
        "offsets": _offsets(config, layout, edges.rows, learn_ticks),
        "backend": dict(plan.backends),
    }


def _offsets(
    config: Experiment, layout: RigLayout, rows: NDArray[np.void], learn_ticks: int
) -> Figures:
    """Offset of every channel that follows the gate, to the device that switches it."""

    def edges(device: str, mask: NDArray[np.bool_], on: NDArray[np.bool_]) -> NDArray[np.float64]:
        taken_s = rows["t_s"] - rows[f"{device}_age_s"]
        mask = mask & np.isfinite(taken_s)
        return edges_of(taken_s[mask], on[mask])

    edge_times_s = {}
    late_in = np.arange(learn_ticks) > learn_ticks // 2
    for channel in layout.channels:
        values = rows[channel.column("measured")]
        low, high = values[:learn_ticks][late_in], values[learn_ticks : 2 * learn_ticks][late_in]
        rise = float(np.nanmedian(high) - np.nanmedian(low))
        if abs(rise) > np.nanmax(low) - np.nanmin(low) + np.nanmax(high) - np.nanmin(high):
            middle = 0.5 * (np.nanmedian(low) + np.nanmedian(high))
            device = device_of(config.tables.devices, channel.name)
            on = (values > middle) == (rise > 0.0)
            edge_times_s[f"{channel.name} of {device}"] = edges(device, np.isfinite(values), on)
    commanded, reported = rows["cells_commanded"][:, 0] == 1, rows["cells_reported"][:, 0]
    commanded_s = rows["t_s"][1:][commanded[1:] != commanded[:-1]]
    cell, devices = layout.cell_names[0], switching(config.tables.devices)
    switch = next(name for name, device in devices.items() if cell in device.cells_switched)
    reference = edges(switch, reported != CELL_UNKNOWN, reported == 1)
    return offsets(commanded_s, reference, edge_times_s)
