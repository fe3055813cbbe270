"""A task: its channels, its state machine, what it reserves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nidaqmx.constants import DigitalWidthUnits, ReadRelativeTo, SampleTimingType

from hil.devices.simdaq import errors, names, routes, tdms
from hil.devices.simdaq.card import Card
from hil.devices.simdaq.channels import Channel
from hil.devices.simdaq.errors import DaqmxError
from hil.devices.simdaq.timing import Edges, ExternalClock, InternalClock, Timing, Trigger

if TYPE_CHECKING:
    from hil.devices.simdaq.system import System

UNVERIFIED, VERIFIED, RESERVED, COMMITTED, RUNNING = range(5)


class Run:
    """What goes on while a task runs; see `inputs` and `outputs`."""

    fresh: Any = ()  # times of the samples of the last step, for those who share the clock

    def step(self, after_s: float, until_s: float) -> None:
        """Do what is due in (after_s, until_s]."""

    def stop(self, t_s: float) -> None:
        """Leave things as a stop leaves them."""

    @property
    def done(self) -> bool:
        return False

    deadline_s: float = float("inf")  # when it does something by itself

    @property
    def planned(self) -> float:
        """Samples per channel after which all is over."""
        return float("inf")

    @property
    def total(self) -> int:
        """Samples per channel so far."""
        return 0

    def when(self, more: int) -> float | None:
        """When that many more samples are there, if it can be known."""
        del more
        return None


@dataclass
class Event:
    """A callback after every `n` samples, or at the end (n = 0)."""

    n: int
    call: Callable[..., Any]
    seen: int = 0


class Task:
    """One task of a system.

    Attributes
    ----------
    kind : str
        ai, ao, di, do, ci, co, watchdog; empty while it has no channels.
    implicit : bool
        A read or a write has started it, and stops it again.
    state : int
        Of NI's task state model. A stop returns the task to where it was before its start, which
        frees what the start has reserved (NI-DAQmx Help, "Transitioning the State Backwards").
    """

    def __init__(self, system: System, handle: int, name: str) -> None:
        self.system = system
        self.handle = handle
        self.name = name
        self.kind = ""
        self.channels: list[Channel] = []
        self.device: Card | None = None  # whose watchdog this is
        self.timing = Timing()
        self.start_trigger = Trigger()
        self.reference_trigger = Trigger()
        self.properties: dict[tuple[str, str], Any] = {}
        self._state = self._before = UNVERIFIED
        self.implicit = False
        self.run: Run | None = None
        self.events: dict[str, Event] = {}
        self.done_told = False
        self.pending: DaqmxError | None = None
        self.written: Any = None  # samples waiting for a generation, (channels, samples)

    # Channels

    def add_all(self, channels: list[Channel]) -> None:
        """Take in what one call creates."""
        for channel in channels:
            self.add(channel)
        self.system.last_created = names.flatten(c.name for c in channels)

    def add(self, channel: Channel) -> None:
        """Take in one more channel."""
        if self.state == RUNNING:
            raise self.error(errors.RUNNING)
        if self.kind and self.kind != channel.kind:
            raise self.error(errors.MIXED_CHANNEL_TYPES, Channel_Name=channel.name)
        if any(c.name == channel.name for c in self.channels):
            raise self.error(errors.CHANNEL_ALREADY_IN_TASK, Channel_Name=channel.name)
        self.release(UNVERIFIED)
        self.written = None
        self.kind = channel.kind
        self.channels.append(channel)

    def channel(self, name: str) -> Channel:
        """The channel of this name, or DaqmxError."""
        for channel in self.channels:
            if channel.name == name:
                return channel
        raise self.error(errors.CHANNEL_NOT_IN_TASK, Channel_Name=name)

    @property
    def card(self) -> Card:
        """The card of the first channel."""
        if not self.channels:
            raise self.error(errors.NO_CHANNELS)
        return self.channels[0].card

    @property
    def cards(self) -> list[Card]:
        found: list[Card] = [] if self.device is None else [self.device]
        for channel in self.channels:
            if channel.card not in found:
                found.append(channel.card)
        return found

    @property
    def is_input(self) -> bool:
        return self.kind in ("ai", "di", "ci")

    # State

    @property
    def state(self) -> int:
        return self._state

    @state.setter
    def state(self, state: int) -> None:
        self.system.n_transitions += state != self._state
        self._state = state

    def error(self, code: int, note: str = "", /, **facts: object) -> DaqmxError:
        return DaqmxError(code, note, **facts, Task_Name=self.name)

    def verify(self) -> None:
        """Compare everything with what the cards can do.

        Raises
        ------
        DaqmxError
            Something they cannot.
        """
        if not self.channels:
            if self.device is not None:
                self.device.must_work()
                self.state = max(self.state, VERIFIED)
                return
            raise self.error(errors.NO_CHANNELS)
        for card in self.cards:
            card.must_work()
        try:
            for channel in self.channels:
                channel.verify()
            if self.timing.on_demand and tdms.wanted(self.properties.get(("read", "logging_mode"))):
                raise DaqmxError(errors.LOG_NEEDS_CLOCK)
            if not self.timing.on_demand:
                self._verify_clock()
        except DaqmxError as refusal:
            refusal.facts.append(f"Task Name: {self.name}")
            raise
        self.state = max(self.state, VERIFIED)

    def _verify_clock(self) -> None:
        timing = self.timing
        lowest = 2 if timing.type == SampleTimingType.SAMPLE_CLOCK.value else 1
        if timing.finite and timing.samples < lowest:
            raise DaqmxError(
                errors.BAD_VALUE, Property="SampQuant.SampPerChan",
                Requested_Value=timing.samples, Minimum_Value=lowest,
            )  # fmt: skip
        for card in self.cards:
            model = card.model
            if timing.single_point and not model.single_point:
                raise DaqmxError(
                    errors.BAD_VALUE, "The device has no hardware-timed single point mode.",
                    Property="SampQuant.SampMode", Device=card.name,
                )  # fmt: skip
            self._verify_timing_type(card)
            if timing.type == SampleTimingType.SAMPLE_CLOCK.value:
                if self.kind == "ci" and timing.source in ("", "OnboardClock"):
                    raise DaqmxError(errors.COUNTER_NEEDS_CLOCK, Device=card.name)
                highest_Hz, lowest_Hz, alone_Hz = self.rates(card)
                if highest_Hz == 0.0:
                    raise DaqmxError(errors.NO_BUFFER, Device=card.name)
                if not 0.0 < timing.rate_Hz <= alone_Hz * (1 + 1e-9):
                    raise DaqmxError(
                        errors.BAD_VALUE, Property="SampClk.Rate",
                        Requested_Value=timing.rate_Hz, Maximum_Value=alone_Hz, Device=card.name,
                    )  # fmt: skip
                if timing.rate_Hz > highest_Hz * (1 + 1e-9):
                    n = len([c for c in self.channels if c.card is card])
                    raise DaqmxError(
                        errors.TOO_MANY_CHANNELS_FOR_RATE, Requested_Rate=timing.rate_Hz,
                        Maximum_Rate=highest_Hz, Number_of_Channels=n, Device=card.name,
                    )  # fmt: skip
                if timing.rate_Hz < lowest_Hz * (1 - 1e-9):
                    raise DaqmxError(
                        errors.RATE_TOO_LOW, Requested_Value=timing.rate_Hz,
                        Minimum_Value=lowest_Hz, Device=card.name,
                    )  # fmt: skip

    def _verify_timing_type(self, card: Card) -> None:
        """The signal as its clock is for counters that time it, changes are for lines."""
        kind = self.timing.type
        periodic = all(c.has_periods for c in self.channels)
        implicit = kind == SampleTimingType.IMPLICIT.value
        changes = kind == SampleTimingType.CHANGE_DETECTION.value
        if (implicit and not periodic) or (changes and self.kind != "di"):
            raise DaqmxError(
                errors.BAD_VALUE, Property="SampTimingType", Requested_Value=kind,
                Device=card.name,
            )  # fmt: skip

    @property
    def rate_Hz(self) -> float:
        """The rate that the task's own clock really has: the next one up that it can make."""
        rate_Hz, source = self.timing.rate_Hz, self.timing.source
        if not self.channels or rate_Hz <= 0.0 or not routes.is_internal(source, self):
            return rate_Hz
        ai = self.card.model.ai
        if self.kind == "ai" and ai is not None and ai.delta_sigma:
            highest = ai.max_single_Hz
            return highest / min(max(int(highest / rate_Hz + 1e-9), 1), ai.delta_sigma)
        timebase_Hz = self.card.engines.model.timebase_Hz
        return timebase_Hz / max(int(timebase_Hz / rate_Hz + 1e-6), 1)

    def rates(self, card: Card) -> tuple[float, float, float]:
        """Highest and lowest clock of this task on a card, and the highest for one channel."""
        model = card.model
        mine = [c for c in self.channels if c.card is card]
        if self.kind == "ai" and model.ai is not None:
            ai = model.ai
            alone = ai.max_single_Hz
            if len(mine) == 1:
                return alone, ai.min_Hz, alone
            shared = ai.max_multi_Hz if ai.simultaneous else ai.max_multi_Hz / len(mine)
            return shared, ai.min_Hz, alone
        if self.kind == "ao" and model.ao is not None:
            return model.ao.max_Hz, 0.0, model.ao.max_Hz
        if self.kind in ("di", "do"):
            ports = {card.port_of(line) for c in mine for line in c.resources()}
            highest = min(model.ports[p].max_Hz for p in ports)
            return highest, 0.0, highest
        counters = model.counters
        if counters is None or not counters.buffered:
            return 0.0, 0.0, 0.0
        return counters.timebase_Hz / 4.0, 0.0, counters.timebase_Hz / 4.0

    def resources(self) -> list[tuple[Card, str]]:
        """What must be its own: channels, and for what a clock drives the timing engine too."""
        found: list[tuple[Card, str]] = []
        if self.device is not None:
            found.append((self.device, "watchdog"))
        for channel in self.channels:
            found += [(channel.card, r) for r in channel.resources() if self.kind != "ai"]
        for card in self.cards:
            if self.kind == "ai":  # one converter, one task
                found.append((card, "ai"))
            elif self.kind in ("ao", "di", "do") and not self.timing.on_demand:
                found.append((card, f"{self.kind} clock"))
        return list(dict.fromkeys(found))

    def reserve(self) -> None:
        """Take the resources, all or none.

        Raises
        ------
        DaqmxError
            Another task holds one of them.
        """
        if self.state < VERIFIED:
            self.verify()
        if self.state < RESERVED:
            self.system.reserve(self)
            self.state = RESERVED

    def commit(self) -> None:
        self.reserve()
        self.state = max(self.state, COMMITTED)

    def release(self, state: int) -> None:
        """Give resources back and fall to a lower state."""
        self.system.release(self)
        self.state = min(self.state, state)

    def start(self, *, implicit: bool = False) -> None:
        """Start; a running task says so."""
        if self.state == RUNNING:
            if implicit:
                return
            raise self.error(errors.RUNNING)
        for card in self.cards:
            card.must_work()
        before = self.state
        self.commit()
        self._before = max(before, VERIFIED)
        self.implicit = implicit
        self.pending = None
        self.done_told = False
        for event in self.events.values():
            event.seen = 0
        self.start_trigger.at_s = self.reference_trigger.at_s = None
        self.run = self.system.make_run(self)
        self.state = RUNNING
        self.system.step()

    def stop(self) -> None:
        """Stop; nothing happens to a task that does not run."""
        if self.state == RUNNING:
            assert self.run is not None
            self.run.stop(self.system.now_s)
            self.state = COMMITTED
            self.implicit = False
            if self._before < RESERVED:
                self.release(self._before)
            self.state = self._before
        self.pending = None

    @property
    def done(self) -> bool:
        """Not running, or everything it was asked for is over."""
        return self.state != RUNNING or self.run is None or self.run.done

    # Clocks

    def clock(self, n: float) -> InternalClock | ExternalClock:
        """The sample clock that the timing and the start trigger describe."""
        trigger = routes.trigger_edges(self.system, self.start_trigger, self)
        start_s = self.system.now_s if trigger is None else None
        source = self.timing.source
        if routes.is_internal(source, self):
            again = bool(self.properties.get(("trig", "start_retriggerable"), False))
            return InternalClock(
                self.rate_Hz, n, start_s, trigger, retriggerable=again,
                delay_s=self._delay_s(),
            )  # fmt: skip
        edges: Edges = routes.edges(self.system, source, self.timing.edge, self)
        return ExternalClock(edges, n, trigger)

    def _delay_s(self) -> float:
        delay = float(self.properties.get(("trig", "start_delay"), 0.0))
        units = self.properties.get(("trig", "start_delay_units"))
        if units == DigitalWidthUnits.SAMPLE_CLOCK_PERIODS.value:
            return delay / self.rate_Hz
        return delay

    def relative_to(self) -> tuple[int, int]:
        """Where a read begins, and its offset."""
        default = ReadRelativeTo.CURRENT_READ_POSITION.value
        return (
            int(self.properties.get(("read", "relative_to"), default)),
            int(self.properties.get(("read", "offset"), 0)),
        )
