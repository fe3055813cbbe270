"""A task: its channels, timing and state, and what it needs of its cards."""

from __future__ import annotations

from typing import Any

from nidaqmx.constants import DigitalWidthUnits, ReadRelativeTo, SampleTimingType

from simdaq import errors, names, tdms
from simdaq.card import Card
from simdaq.channels import Channel, DigitalLines
from simdaq.errors import DaqmxError
from simdaq.run import Event, Run
from simdaq.timing import Timing, Trigger

LEAST_PRETRIGGER = 2
LEAST_POSTTRIGGER = 2  # samples after a reference trigger
# Of the sample clocks of M and X Series; NI, "What Sample Rates Is my DAQ Board Actually Capable of
# Achieving?", 5 February 2024.
SLOW_TIMEBASE_Hz, DIVISOR_MAX = 100e3, 2**32
SLOWEST_Hz = SLOW_TIMEBASE_Hz / DIVISOR_MAX
UNVERIFIED, VERIFIED, RESERVED, COMMITTED, RUNNING = range(5)


class Task:
    """One task of a system.

    Attributes
    ----------
    kind : str
        ai, ao, di, do, ci, co, watchdog; empty while it has no channels.
    implicit : bool
        A read or a write has started it, and stops it again.
    state : int
        Of NI's task state model; `Bench` and `System` change it.
    asked_state : int
        The state that the program asked for with `Task.control`. A stop returns the task to it,
        which frees what a start or a write has reserved implicitly.
    n_transitions : int
        Changes of `state` so far.
    """

    def __init__(self, handle: int, name: str) -> None:
        self.handle = handle
        self.name = name
        self.kind = ""
        self.channels: list[Channel] = []
        self.device: Card | None = None  # whose watchdog this is
        self.timing = Timing()
        self.start_trigger = Trigger()
        self.reference_trigger = Trigger()
        self.properties: dict[tuple[str, str], Any] = {}
        self._state = self.asked_state = UNVERIFIED
        self.n_transitions = 0
        self.implicit = False
        self.run: Run | None = None
        self.events: dict[str, Event] = {}
        self.done_told = False
        self.pending: DaqmxError | None = None
        self.written: Any = None  # samples waiting for a generation, (channels, samples)

    # Channels

    def add(self, channel: Channel) -> None:
        """Take in one more channel; see `Bench.add_channels`."""
        if self.state == RUNNING:
            raise self.error(errors.RUNNING)
        if self.kind and self.kind != channel.kind:
            raise self.error(errors.MIXED_CHANNEL_TYPES, Channel_Name=channel.name)
        if any(c.name == channel.name for c in self.channels):
            raise self.error(errors.CHANNEL_ALREADY_IN_TASK, Channel_Name=channel.name)
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
        cards: list[Card] = [] if self.device is None else [self.device]
        for channel in self.channels:
            if channel.card not in cards:
                cards.append(channel.card)
        return cards

    @property
    def is_input(self) -> bool:
        return self.kind in ("ai", "di", "ci")

    def qualified(self, terminal: str) -> str:
        """A terminal with its device: `PFI0` -> `/Dev1/PFI0`; other names stay as they are."""
        if terminal.startswith("/") or not self.channels:
            return terminal
        engines = self.card.engines
        known = {name.lower(): name for name in engines.terminal_names()}
        spelling = known.get(terminal.lower())
        return terminal if spelling is None else f"/{engines.name}/{spelling}"

    def destination(self, terminals: str) -> str:
        """Terminals that a signal goes out at, with their device.

        Raises
        ------
        DaqmxError
            The task's device has no such terminal.
        """
        full_names = [self.qualified(one) for one in names.unflatten(terminals)]
        for one in full_names:
            if not one.startswith("/"):
                raise self.error(errors.NO_SUCH_DESTINATION, Destination_Terminal=one)
        return names.flatten(full_names)

    # State

    @property
    def state(self) -> int:
        return self._state

    @state.setter
    def state(self, state: int) -> None:
        self.n_transitions += state != self._state
        self._state = state

    def error(self, code: int, note: str = "", /, **facts: object) -> DaqmxError:
        return DaqmxError(code, note, **facts, Task_Name=self.name)

    def verify(self) -> None:
        """Check the whole task against what its cards can do.

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
            self._verify_routes()
            triggered = self.start_trigger.present or self.reference_trigger.present
            if self.timing.on_demand and triggered and self.kind in ("ai", "ao", "di", "do"):
                raise DaqmxError(errors.TRIGGER_ON_DEMAND)
            if not self.timing.on_demand:
                self._verify_clock()
        except DaqmxError as refusal:
            refusal.facts.append(f"Task Name: {self.name}")
            raise
        self.state = max(self.state, VERIFIED)

    def _verify_routes(self) -> None:
        for (owner, key), value in self.properties.items():
            if owner == "exported_signal" and key.endswith("_output_term"):
                self.destination(value)

    def verify_samples(self) -> None:
        """Raise DaqmxError for fewer samples than a finite task can have."""
        timing = self.timing
        lowest = 2 if timing.type == SampleTimingType.SAMPLE_CLOCK.value else 1
        if timing.finite and timing.samples < lowest:
            raise DaqmxError(
                errors.BAD_VALUE, Property="SampQuant.SampPerChan",
                Requested_Value=timing.samples, Minimum_Value=lowest,
            )  # fmt: skip

    def _verify_clock(self) -> None:
        timing = self.timing
        self.verify_samples()
        if self.reference_trigger.present:
            self._verify_reference()
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

    def _verify_reference(self) -> None:
        """Raise DaqmxError for a reference trigger that such an acquisition cannot have."""
        if not self.timing.finite:
            raise DaqmxError(errors.REFERENCE_WHEN_CONTINUOUS)
        most = self.timing.samples - LEAST_POSTTRIGGER
        if self.reference_trigger.pretrigger < LEAST_PRETRIGGER:
            raise DaqmxError(
                errors.BAD_VALUE, Property="Ref.PretrigSamples",
                Requested_Value=self.reference_trigger.pretrigger, Minimum_Value=LEAST_PRETRIGGER,
            )  # fmt: skip
        if self.reference_trigger.pretrigger > most:
            raise DaqmxError(
                errors.TOO_MANY_PRETRIGGER, Property="Ref.PretrigSamples",
                Requested_Value=self.reference_trigger.pretrigger, Maximum_Value=most,
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
        """The actual rate of the task's own clock: the next higher one that the card can make."""
        rate_Hz = self.timing.rate_Hz
        if not self.channels or rate_Hz <= 0.0 or not self.has_own_clock:
            return rate_Hz
        ai = self.card.model.ai
        if self.kind == "ai" and ai is not None and ai.delta_sigma:
            highest = ai.max_single_Hz
            return highest / min(max(int(highest / rate_Hz + 1e-9), 1), ai.delta_sigma)
        timebase_Hz = self.timebase_Hz
        return timebase_Hz / max(int(timebase_Hz / rate_Hz + 1e-6), 1)

    @property
    def timebase_Hz(self) -> float:
        """The timebase that the sample clock divides: the fast one, as far as its divisor goes."""
        fast_Hz = self.card.engines.model.timebase_Hz
        return fast_Hz if self.timing.rate_Hz >= fast_Hz / DIVISOR_MAX else SLOW_TIMEBASE_Hz

    def rates(self, card: Card) -> tuple[float, float, float]:
        """Highest and lowest clock of this task on a card, and the highest for one channel."""
        model = card.model
        mine = [c for c in self.channels if c.card is card]
        if self.kind == "ai" and model.ai is not None:
            ai = model.ai
            alone, lowest = ai.max_single_Hz, ai.min_Hz or SLOWEST_Hz
            if len(mine) == 1:
                return alone, lowest, alone
            shared = ai.max_multi_Hz if ai.simultaneous else ai.max_multi_Hz / len(mine)
            return shared, lowest, alone
        if self.kind == "ao" and model.ao is not None:
            return model.ao.max_Hz, SLOWEST_Hz, model.ao.max_Hz
        if self.kind in ("di", "do"):
            ports = {card.port_of(line) for c in mine
                     if isinstance(c, DigitalLines) for line in c.lines}  # fmt: skip
            highest = min(model.ports[p].max_Hz for p in ports)
            return highest, SLOWEST_Hz, highest
        counters = model.counters
        if counters is None or not counters.buffered:
            return 0.0, 0.0, 0.0
        return counters.timebase_Hz / 4.0, SLOWEST_Hz, counters.timebase_Hz / 4.0

    def resources(self) -> list[tuple[Card, str]]:
        """What the task reserves: its channels, and the timing engine where a clock drives it."""
        resources: list[tuple[Card, str]] = []
        if self.device is not None:
            resources.append((self.device, "watchdog"))
        for channel in self.channels:
            holder = channel.card.counter_owner if self.kind in ("ci", "co") else channel.card
            resources += [(holder, r) for r in channel.resources() if self.kind != "ai"]
        for card in self.cards:
            if self.kind == "ai":  # one converter, one task
                resources.append((card, "ai"))
            elif self.kind in ("ao", "di", "do") and not self.timing.on_demand:
                resources.append((card, f"{self.kind} clock"))
        return list(dict.fromkeys(resources))

    @property
    def started_s(self) -> float | None:
        """When the start trigger came, which is also when the first sample did."""
        clock = getattr(self.run, "clock", self.run)
        return None if clock is None else getattr(clock, "start_s", None)

    @property
    def done(self) -> bool:
        """Whether it does not run, or has finished."""
        return self.state != RUNNING or self.run is None or self.run.done

    # Clocks and reading

    @property
    def has_own_clock(self) -> bool:
        """Whether the card generates the sample clock itself."""
        source = self.timing.source
        if source in ("", "OnboardClock"):
            return True
        if not self.channels:
            return False
        clock = f"{self.kind}/SampleClock".lower()
        return source.lower() in (clock, f"/{self.card.engines.name.lower()}/{clock}")

    @property
    def start_delay_s(self) -> float:
        """From the start trigger to the first sample."""
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
