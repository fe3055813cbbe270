"""Plug-in devices: the user's class on the bench, readings of the plant in simulation."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

import numpy as np
from numpy.typing import NDArray

from hil.calibration.signal_chain import Chain
from hil.devices.base import time_columns
from hil.devices.injection import Injection
from hil.devices.latest import LatestReading
from hil.devices.sim.gates import LineGates
from hil.devices.sim.plant import SimPlant
from hil.errors import DeviceError, PluginError
from hil.loop.channels import Readings
from hil.loop.frame import Column, Commands, Frame
from hil.loop.stages import Message
from hil.plugins.code import Plugin, Used, read_only, real

PROOF_READS = 50


@dataclass(frozen=True)
class PluginPlace:
    """Indices of its first channel, its first output and its cells in readings and commands.

    Attributes
    ----------
    rest : idle value of every output
    """

    channel: int
    output: int
    cells: Sequence[int] = ()
    rest: Sequence[float] = ()


@dataclass(frozen=True)
class DeadMan:
    """How a device that switches cells is tested before a run.

    Attributes
    ----------
    proven_s : time without a command after which it must have switched all cells off
    cools_s : time with all cells off in which any wire has cooled
    sleep_s : waits in real time
    """

    proven_s: float
    cools_s: float
    sleep_s: Callable[[float], None]


@dataclass(frozen=True)
class PluginChannel:
    """A channel, and its simulated reading: output `signal` of the plant, or `value` if None."""

    name: str
    signal: int | None
    value: float
    noise_rms: float


@dataclass(frozen=True)
class PluginBench:
    """What only a real device has.

    Attributes
    ----------
    now_s : clock for timing its calls
    budget_s : longest time that a call of `read` may take
    chains : conversion of the channels that give raw readings, by their place
    dead_man : of a device that switches cells
    """

    now_s: Callable[[], float]
    budget_s: float
    chains: Mapping[int, Chain] = field(default_factory=dict)
    dead_man: DeadMan | None = None


@dataclass(frozen=True)
class PluginSim:
    """What only a simulated device has.

    Attributes
    ----------
    driven : index of the plant's input that each output sets
    draws : random generator of a channel, by its name
    injection : faults of its channels
    """

    plant: SimPlant
    driven: Sequence[int]
    draws: Callable[[str], np.random.Generator]
    injection: Injection | None = None


class PluginDevice:
    """A user's class with `open()`, `read(t_s)` and `close()`, on the bench.

    `read` returns one number for each channel; NaN if it has no reading. A class whose samples are
    older than the call has `age_s`, their age, and `taken_s`, their time by its own clock. A class
    with outputs also has `write(values)` and `safe()`. A class that switches cells has
    `switch(cells)`, 1 for each cell that is to be on, and `stopped()`, whether its hardware has
    switched all of them off by itself. `open` constructs the object.
    """

    simulated = False

    def __init__(
        self,
        name: str,
        plugin: Plugin,
        channels: Sequence[str],
        place: PluginPlace,
        bench: PluginBench,
    ) -> None:
        self.name = name
        self._dead_man = bench.dead_man
        self._cells_at = np.array(place.cells, dtype=np.int64)
        self._switched = np.zeros(len(place.cells), dtype=np.uint8)
        self._chains = dict(bench.chains)
        self._plugin = plugin
        self._channels = len(channels)
        self._rest = np.array(place.rest, dtype=np.float64)
        self._place = place
        self._now_s = bench.now_s
        self._budget_s = bench.budget_s
        self._used: Used | None = None
        self._last_t_s = 0.0
        self._sample_age_s = 0.0
        self._taken_s: float | None = None
        self._clock_s = 0.0

    @property
    def columns(self) -> list[Column]:
        return time_columns(self.name, self.simulated)

    def bind(self, frame: Frame, readings: Readings) -> None:
        self._values, self._readings = frame.values, readings
        self._age_at = frame.index(f"{self.name}_age_s")
        self._clock_at = frame.index(f"{self.name}_t_s")

    def _ask(self, method: str, *args: object) -> None:
        if self._used is not None and hasattr(self._used.made, method):
            try:
                self._used.call(method, *args)
            except (PluginError, DeviceError) as error:
                raise DeviceError(f"{self.name}: {error}") from None

    def _take(self, t_s: float) -> NDArray[np.float64]:
        if self._used is None:
            raise DeviceError(f"{self.name}: is not open")
        try:
            answer = real(self._used.call("read", t_s)).astype(np.float64, copy=False)
            self._sample_age_s = float(getattr(self._used.made, "age_s", 0.0))
            self._taken_s = float(getattr(self._used.made, "taken_s", t_s - self._sample_age_s))
        except (PluginError, DeviceError) as error:
            raise DeviceError(f"{self.name}: {error}") from None
        except (TypeError, ValueError, OverflowError):
            answer = np.zeros((0, 0))
        if answer.shape != (self._channels,):
            line = self._plugin.lines.get("read", 1)
            raise DeviceError(
                f"{self.name}: {self._plugin.file}, line {line}, class "
                f"{self._plugin.cls.__name__}: read() must return {self._channels} numbers, "
                "one for each channel"
            )
        if self._chains:
            answer = answer.copy()  # the class may keep the array
            for i, chain in self._chains.items():
                answer[i] = chain.value(float(answer[i]))
        return answer

    def open(self) -> None:
        try:
            self._used = self._plugin.make()
        except PluginError as error:
            raise DeviceError(f"{self.name}: {error}") from None
        self._ask("open")

    def self_test(self, say: Callable[[str], None]) -> list[str]:
        """Test that a reading meets its time budget, with nothing on."""
        took_s = []
        for _ in range(PROOF_READS):
            began_s = self._now_s()
            self._take(0.0)
            took_s.append(self._now_s() - began_s)
        worst_s = sorted(took_s)[-2]  # a single stall of the computer is not the device's fault
        timing = (
            f"read() takes {1e3 * median(took_s):.3g} ms at the median, {1e3 * worst_s:.3g} ms at "
            f"worst, of {1e3 * self._budget_s:.3g} ms"
        )
        if worst_s > self._budget_s:
            line = self._plugin.lines.get("read", 1)
            raise DeviceError(
                f"{self.name}: {self._plugin.file}, line {line}, class "
                f"{self._plugin.cls.__name__}: {timing}: make it faster, or give the device a "
                "larger every"
            )
        return [timing, *([] if self._dead_man is None else [self._prove(self._dead_man)])]

    def _prove(self, dead_man: DeadMan) -> str:
        """Send no command, with all cells off: its hardware must stop by itself."""
        self._switch_all_off()
        if self._stopped():
            raise DeviceError(
                f"{self.name}: stopped() is true at once after switch(): it must tell whether the "
                "hardware has switched off by itself since then"
            )
        dead_man.sleep_s(dead_man.proven_s)
        if not self._stopped():
            raise DeviceError(
                f"{self.name}: left alone for {dead_man.proven_s:g} s it did not stop by itself: "
                "do not switch cells with it"
            )
        dead_man.sleep_s(dead_man.cools_s)
        return f"stops by itself within {dead_man.proven_s:g} s"

    def _stopped(self) -> bool:
        if self._used is None:
            raise DeviceError(f"{self.name}: is not open")
        try:
            return bool(self._used.call("stopped"))
        except (PluginError, DeviceError) as error:
            raise DeviceError(f"{self.name}: {error}") from None

    def _switch_all_off(self) -> None:
        self._switched[:] = 0
        if len(self._switched):
            self._ask("switch", read_only(self._switched))

    def arm(self) -> None:
        """Do nothing: its outputs always follow the commands."""

    def messages(self) -> list[Message]:
        """What an instrument of hil has noted since the last call; a user's class tells nothing."""
        used = getattr(self, "_used", None)
        notes = used.notes() if isinstance(used, LatestReading) else []
        return [Message("warning", text) for text in notes]

    def read(self, t_s: float) -> None:
        answer = self._take(t_s)
        self._give(t_s, answer)

    def _report(self) -> None:
        """Of its cells nothing is known but the last command."""
        if len(self._cells_at):
            self._readings.cells_reported[self._cells_at] = self._switched

    def _give(self, t_s: float, answer: NDArray[np.float64]) -> None:
        r, first = self._readings, self._place.channel
        valid = np.isfinite(answer)
        self._report()
        r.measured[first : first + len(answer)] = np.where(valid, answer, np.nan)
        every = (1 << len(answer)) - 1
        finite_bits = sum(1 << i for i, finite in enumerate(valid.tolist()) if finite)
        r.mark_valid(every << first, finite_bits << first)
        if valid.all():
            self._last_t_s = t_s - self._sample_age_s
            self._clock_s = self._taken_s if self._taken_s is not None else self._last_t_s
        age_s = t_s - self._last_t_s
        self._values[self._age_at] = age_s
        self._values[self._clock_at] = self._clock_s

    def write(self, t_s: float, commands: Commands) -> None:
        n, first = len(self._rest), self._place.output
        if len(self._cells_at):
            np.take(commands.cells, self._cells_at, out=self._switched)
            self._ask("switch", read_only(self._switched))
        if n:
            self._ask("write", read_only(commands.outputs[first : first + n]))

    def safe(self) -> None:
        """Switch all cells off, set outputs idle, then call the class's `safe`, whatever fails."""
        try:
            self._switch_all_off()
        finally:
            try:
                if len(self._rest):
                    self._ask("write", read_only(self._rest))
            finally:
                self._ask("safe")

    def close(self) -> None:
        try:
            self._ask("close")
        finally:
            self._used = None


class SimPluginDevice(PluginDevice):
    """The simulated device, without the user's class: noisy readings of the plant, and outputs."""

    simulated = True

    def __init__(
        self,
        name: str,
        plugin: Plugin,
        channels: Sequence[PluginChannel],
        place: PluginPlace,
        sim: PluginSim,
    ) -> None:
        self._gates = LineGates(name, place.cells, sim.plant, sim.injection)
        bench = PluginBench(lambda: 0.0, 0.0)  # its calls are not timed
        super().__init__(name, plugin, [c.name for c in channels], place, bench)
        self._injection = sim.injection
        self._stuck = np.zeros(len(channels))
        self._sim = channels
        self._plant = sim.plant
        self._driven = sim.driven
        self._draws = [sim.draws(channel.name) for channel in channels]
        self._noise = np.array([c.noise_rms for c in channels])

    def open(self) -> None:
        """Do nothing."""

    def self_test(self, say: Callable[[str], None]) -> list[str]:
        """Test nothing."""
        return []

    def read(self, t_s: float) -> None:
        self._plant.advance(t_s)
        truth = [c.value if c.signal is None else self._plant.output(c.signal) for c in self._sim]
        noise = self._noise * np.array([draws.standard_normal() for draws in self._draws])
        readings = np.array(truth, dtype=np.float64) + noise
        if self._injection is not None:
            self._break(readings, self._injection)
        self._give(t_s, readings)

    def _break(self, readings: NDArray[np.float64], now: Injection) -> None:
        """Replace the readings of channels with injected faults."""
        for i, channel in enumerate(self._sim):
            if now.active("sensor_stuck", channel.name):
                readings[i] = self._stuck[i]
                continue
            self._stuck[i] = readings[i]
            if now.active("sensor_lost", channel.name) or now.active("sensor_nan", channel.name):
                readings[i] = np.nan

    def write(self, t_s: float, commands: Commands) -> None:
        if len(self._cells_at):
            np.take(commands.cells, self._cells_at, out=self._switched)
            self._gates.lines[:] = self._switched
        for i, index in enumerate(self._driven):
            self._plant.inputs[index] = commands.outputs[self._place.output + i]

    def safe(self) -> None:
        self._switched[:] = self._gates.lines[:] = 0
        for index, value in zip(self._driven, self._rest, strict=True):
            self._plant.inputs[index] = value

    def close(self) -> None:
        """Do nothing."""
