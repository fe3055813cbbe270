"""The driver of an NI card on a simulated library, whose cards sit on the rig's plant.

Everything above the library is what runs on a bench: `NiDaq`, and the unmodified `nidaqmx`. Below
it, `EmulatedBench` steps plant and cards together: outputs as they stand -> plant -> transducers
(delay, first-order low-pass, offset, noise) -> the cards' terminals.
"""

import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from hil.devices.base import RawSink
from hil.devices.injection import Injection
from hil.devices.nidaq.channels import AnalogInput, CardPlan, EncoderInput
from hil.devices.nidaq.driver import NiDaq
from hil.devices.nidaq.simdaq_border import simdaq_errors
from hil.devices.sim.gates import LineGates
from hil.devices.sim.plant import SimPlant
from hil.errors import DeviceError
from hil.loop.channels import Readings
from hil.loop.frame import Column, Commands, Frame
from hil.loop.stages import Message
from hil.mechanics.arrays import Array
from hil.mechanics.low_pass import low_pass
from hil.record.raw_samples import RawSamples

if TYPE_CHECKING:
    import simdaq
    from simdaq.terminals import Times


@dataclass(frozen=True)
class EmulatedSignal:
    """What sits on an input: the plant's output `output`, and what its transducer adds."""

    channel: AnalogInput | EncoderInput
    output: int
    bandwidth_Hz: float = math.inf
    noise_rms_raw: float = 0.0
    offset_raw: float = 0.0
    delay_periods: int = 0


@dataclass(frozen=True)
class EmulatedCard:
    """A card of the rig by the name of its product, and what is wired to it.

    Attributes
    ----------
    driven : the plant's input behind every analogue output
    draws : the random numbers of a channel, by its name
    transfer_s : how often it hands its samples over; 0: at once
    others : products of its chassis and of other modules, by name
    """

    name: str
    plan: CardPlan
    product: str
    signals: tuple[EmulatedSignal, ...]
    driven: tuple[int, ...]
    draws: Callable[[str], np.random.Generator]
    transfer_s: float = 0.0
    others: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Cable:
    """From an analogue output to an input, by NI's names, and the noise that it picks up."""

    source: str
    sink: str
    noise_rms_V: float
    rng: np.random.Generator


class EmulatedBench:
    """All simulated cards of a rig on one plant and one clock."""

    def __init__(
        self, plant: SimPlant, period_s: float, injection: Injection | None = None
    ) -> None:
        self._plant = plant
        self._period_s = period_s
        self._injection = injection
        self._cards: list[EmulatedCard] = []
        self._gates: dict[str, LineGates] = {}
        self._extra: list[tuple[str, str]] = []
        self._cables: list[Cable] = []
        self._levels: list[tuple[str, int]] = []
        self._system: simdaq.System | None = None
        self._wires: list[_Wire] = []
        self._start_s: float | None = None
        self._n = 0

    def add(self, card: EmulatedCard) -> None:
        """Put a card on the bench, before anything is opened."""
        self._cards.append(card)
        cells = [line.index for line in card.plan.cells]
        self._gates[card.plan.card] = LineGates(card.name, cells, self._plant, self._injection)

    def wire_plant_card(
        self, product: str, card: str, levels: list[tuple[str, int]], cables: list[Cable]
    ) -> None:
        """Wire a card that plays the array: outputs of the plant to its lines, by cables back."""
        self._extra.append((product, card))
        self._levels += levels
        self._cables += cables

    @simdaq_errors()
    def open(self) -> None:
        """Plug all cards in and let `nidaqmx` see them; again when they are there already."""
        if self._system is not None:
            return
        from simdaq import System, install

        # Free: what waits for samples before the run makes their time pass.
        self._system = system = System("free")
        for card in self._cards:
            self._plug_in(card)
            system.deliver_every(card.plan.card, card.transfer_s)
            for signal in card.signals:
                wire = _Wire(signal, card.draws(signal.channel.name), self._plant, self._period_s)
                system.feed(card.plan.physical(signal.channel.terminal), wire)
                self._wires.append(wire)
            for line in card.plan.lines_in:
                level = self._gate(card, line.name) if line.kind == "readback" else 1.0
                system.feed(card.plan.physical(line.terminal), level)
        if any(card.plan.clock_from or card.plan.start_from for card in self._cards):
            system.connect(*{system.cards[card.plan.card].engines.name for card in self._cards})
        for product, name in self._extra:
            if name not in {card.plan.card for card in self._cards}:
                system.add(product, name)
        for terminal, output in self._levels:
            system.feed(terminal, partial(self._level, output))
        for cable in self._cables:
            system.feed(cable.sink, partial(self._carried, cable))
        install(system)
        self.follow_lines()

    def _plug_in(self, card: EmulatedCard) -> None:
        """A card, its chassis first where it has one."""
        from simdaq import catalog

        products = {card.plan.card: card.product, **card.others}
        chassis = [name for name, product in products.items() if catalog.model(product).slots]
        for name in sorted(products, key=lambda name: name not in chassis):
            if name not in self.system.cards:
                inside = next((c for c in chassis if name.startswith(c) and name != c), None)
                self.system.add(products[name], name, chassis=inside)

    def pass_s(self, duration_s: float) -> None:
        """Let the cards' time pass before the run."""
        self.system.advance_to(self.system.now_s + duration_s)
        self.follow_lines()

    def follow_lines(self) -> None:
        """The lines as they stand let the cells have power and switch them, or do not."""
        for card in self._cards:
            for line in card.plan.lines_out:
                high = self.system.output(card.plan.physical(line.terminal)) > 0.5
                high = high and not _stuck_low(self._injection, line.name)
                self._plant.enable(f"{card.plan.card}/{line.name}", high)
            lines = self._gates[card.plan.card].lines
            for i, cell in enumerate(card.plan.cells):
                lines[i] = self.system.output(card.plan.physical(cell.terminal)) > 0.5

    def _gate(self, card: EmulatedCard, cell: str) -> "Callable[[Times], Array]":
        """Level of a cell's gate, for the line that reads it back."""
        gates = self._gates[card.plan.card]
        i = [line.cell for line in card.plan.cells].index(cell)
        return lambda t_s: np.full(np.shape(t_s), float(gates.levels()[i]))

    def _level(self, output: int, t_s: "Times") -> Array:
        return np.full(np.shape(t_s), self._plant.output(output))

    def _carried(self, cable: Cable, t_s: "Times") -> Array:
        noise_V = cable.noise_rms_V * cable.rng.standard_normal(np.shape(t_s))
        return self.system.output(cable.source) + noise_V

    @property
    def system(self) -> "simdaq.System":
        """The simulated cards, for faults to be put on them."""
        if self._system is None:
            raise DeviceError("the emulated cards are not open")
        return self._system

    def advance(self, t_s: float) -> None:
        """Bring plant and cards to t_s of the run, in whole periods."""
        if self._start_s is None:
            self._start_s = self.system.now_s
        n = round(t_s / self._period_s)
        while self._n < n:
            self._n += 1
            self._drive()
            self._plant.advance(self._n * self._period_s)
            now_s = self._start_s + self._n * self._period_s
            for wire in self._wires:
                wire.put(now_s)
            if self._injection is not None:
                self._disturb(self._injection)
            self.system.advance_to(now_s)

    def _disturb(self, injection: Injection) -> None:
        """Unplug cards, and hold back their samples, while such a fault lasts."""
        for card in self._cards:
            name = card.plan.card
            lost = any(injection.active("sensor_lost", c.name) for c in card.plan.inputs)
            late = injection.active("packets_late", card.name) is not None
            self.system.stall(name, stalled=lost or late)
            unplugged = injection.active("card_unplugged", card.name) is not None
            if unplugged and self.system.cards[name].plugged:
                self.system.unplug(name)

    @contextmanager
    def reserved(self, name: str) -> Iterator[None]:
        """Within the block another program holds a card's inputs, if such a fault is injected."""
        import nidaqmx
        from nidaqmx.constants import TaskMode

        if self._injection is None or not self._injection.active("card_reserved", name):
            yield
            return
        plan = next(card.plan for card in self._cards if card.name == name)
        with nidaqmx.Task("another program") as other:
            other.ai_channels.add_ai_voltage_chan(plan.physical(plan.analog[0].terminal))
            other.control(TaskMode.TASK_RESERVE)
            yield

    def report(self, readings: Readings) -> None:
        """What the boards report at this tick, before the plant comes to it."""
        self._plant.report(readings)

    def _drive(self) -> None:
        """The outputs as they stand act on the plant over the coming period."""
        for card in self._cards:
            for output, index in zip(card.plan.outputs, card.driven, strict=True):
                volts = self.system.output(card.plan.physical(output.terminal))
                self._plant.inputs[index] = output.units_per_V * volts
        self.follow_lines()


def _stuck_low(injection: Injection | None, line: str) -> bool:
    return injection is not None and injection.active("enable_stuck_low", line) is not None


class _Wire:
    """A transducer's end on a terminal: a line between the plant's steps, plus noise."""

    def __init__(
        self, signal: EmulatedSignal, rng: np.random.Generator, plant: SimPlant, period_s: float
    ) -> None:
        from simdaq import Track

        self._signal, self._plant, self._rng = signal, plant, rng
        self._low_pass = low_pass(signal.bandwidth_Hz, period_s)
        now = self._ideal()
        self._late = deque([now] * signal.delay_periods, maxlen=signal.delay_periods + 1)
        self._arrived, self._behind = now, 0.0
        self._track = Track(now)

    def _ideal(self) -> float:
        """Volts (V/V on a bridge input), or an encoder's revolutions, of the plant now."""
        value, channel = self._plant.output(self._signal.output), self._signal.channel
        if isinstance(channel, EncoderInput):
            encoder = channel.encoder
            return encoder.direction * (value - encoder.offset_rad) / (2.0 * math.pi)
        raw = channel.chain.raw(value) + self._signal.offset_raw
        return raw if channel.bridge is None else 1e-3 * raw

    def put(self, t_s: float) -> None:
        """The plant has come to t_s."""
        self._late.append(self._ideal())
        late, (keep, lag) = self._late[0], self._low_pass
        self._behind = keep * self._behind - lag * (late - self._arrived)
        self._arrived = late
        self._track.put(t_s, late + self._behind)

    def __call__(self, t_s: "Times") -> Array:
        """The signal at a time or an array of times."""
        clean: Array = self._track(t_s)
        rms = self._signal.noise_rms_raw
        if not rms:
            return clean
        channel = self._signal.channel
        if isinstance(channel, AnalogInput) and channel.bridge is not None:
            rms *= 1e-3
        return clean + rms * self._rng.standard_normal(np.shape(t_s))


class EmulatedDaq:
    """A card of an `EmulatedBench` behind its driver."""

    simulated = True

    def __init__(self, driver: NiDaq, bench: EmulatedBench) -> None:
        self.name = driver.name
        self._driver, self._bench = driver, bench

    @property
    def columns(self) -> list[Column]:
        return self._driver.columns

    @property
    def raw_samples(self) -> RawSamples | None:
        return self._driver.raw_samples

    def record_raw(self, sink: RawSink) -> None:
        self._driver.record_raw(sink)

    def bind(self, frame: Frame, readings: Readings) -> None:
        self._readings = readings
        self._driver.bind(frame, readings)

    def open(self) -> None:
        self._bench.open()
        with self._bench.reserved(self.name):
            self._driver.open()

    def enable(self) -> None:
        self._driver.enable()
        self._bench.follow_lines()

    def wait(self) -> None:
        self._driver.wait()

    def ready(self) -> bool:
        return self._driver.ready()

    def alive(self) -> None:
        self._driver.alive()

    def disable(self) -> None:
        self._driver.disable()
        self._bench.follow_lines()

    def self_test(self, say: Callable[[str], None]) -> list[str]:
        tested = self._driver.self_test(say)
        self._bench.follow_lines()
        return tested

    def arm(self) -> None:
        self._driver.arm()

    def messages(self) -> list[Message]:
        return self._driver.messages()

    def read(self, t_s: float) -> None:
        self._bench.report(self._readings)
        self._bench.advance(t_s)
        self._driver.read(t_s)

    def write(self, t_s: float, commands: Commands) -> None:
        self._driver.write(t_s, commands)

    def safe(self) -> None:
        self._driver.safe()
        self._bench.follow_lines()

    def close(self) -> None:
        self._driver.close()
