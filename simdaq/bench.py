"""Cards with their signals and faults, tasks, and reservations."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from simdaq import catalog, errors, names, rules
from simdaq.card import Card, Idle
from simdaq.channels import Channel
from simdaq.errors import DaqmxError, SetupError
from simdaq.scales import CustomScale, Scales
from simdaq.stored import Storage
from simdaq.task import COMMITTED, RESERVED, RUNNING, UNVERIFIED, VERIFIED, Task
from simdaq.terminals import Fault, Output, Source

UNIX_1904_S = 2_082_844_800


class Bench:
    """What a `System` consists of at an instant; `System` lets its time pass.

    Attributes
    ----------
    now_s : float
        The time; what runs on the cards has come this far.
    origin_unix_s : float
        What time it was in the world when the bench's was 0.
    last_created : str
        Names of the channels that the last call has created.
    """

    def __init__(self) -> None:
        self.cards: dict[str, Card] = {}
        self.tasks: dict[int, Task] = {}
        self.scales = Scales()
        self.storage = Storage()
        self.lock = threading.RLock()
        self.now_s = 0.0
        self.origin_unix_s = 0.0
        self.last_created = ""
        self._changed = threading.Condition(self.lock)  # what a wait looks at
        self._reserved: dict[tuple[str, str], Task] = {}
        self._next_handle = 1
        self._n_transitions_cleared = 0

    def since_1904(self, t_s: float) -> tuple[int, int]:
        """A time of the bench as NI-DAQmx gives it: 2**-64 s and s since 1904-01-01."""
        at_s = self.origin_unix_s + t_s + UNIX_1904_S
        return int((at_s % 1.0) * 2**64), int(at_s)

    # Cards, signals, faults

    def add(
        self, model: str, name: str, *, serial: int = 0, chassis: str | None = None,
        slot: int = 0, simulated: bool = True, idle: Idle = "zero",
        accessories: tuple[str, ...] = (),
    ) -> Card:  # fmt: skip
        """Plug a card in; a module needs its chassis' name.

        Parameters
        ----------
        simulated : what the card's `is_simulated` answers
        idle : inputs that nobody feeds are at "zero", or "simulated" as NI's simulated devices
            give them: analog inputs a noisy sine between their limits, digital lines a count

        Raises
        ------
        SetupError
            The model is not known, or the name is taken.
        """
        if name in self.cards:
            raise SetupError(f"card {name!r}: there is already one of this name")
        if chassis is not None and chassis not in self.cards:
            raise SetupError(f"card {name!r}: there is no chassis {chassis!r}")
        place = None if chassis is None else self.cards[chassis]
        card = Card(
            name, catalog.model(model), serial or 0x1A00000 + len(self.cards), place,
            slot=slot, simulated=simulated, idle=idle, accessories=accessories,
        )  # fmt: skip
        self.cards[name] = card
        card.neighbours = self.cards
        return card

    def connect(self, *names: str) -> None:
        """Lay a trigger cable (RTSI) between cards; those of one PXI chassis need none.

        Raises
        ------
        SetupError
            There is no such card.
        """
        for name in names:
            if name not in self.cards:
                raise SetupError(f"cable: there is no card {name!r}")
            self.cards[name].cabled |= set(names) - {name}

    def feed(self, terminal: str, source: Source) -> None:
        """Wire a signal to an input.

        A number, or a function of time in s that takes a float or an array. `Dev1/ai0`: volts
        (V/V where a bridge sits there, the sensor's own unit for other sensors); `Dev1/ctr0`: an
        encoder's angle in revolutions; `Dev1/port0/line0`: a level, high above 0.5; `Dev1/PFI0`,
        `Dev1/ctr0`: `Pulses`, or an `EdgeList`.
        """
        card, short = self._terminal(terminal)
        with self.lock:
            for pin in filter(None, (short, card.same_pin(short))):
                target = card.terminal(pin)
                target.source, target.fed = source, True

    def output(self, terminal: str) -> float:
        """What an output puts out now: volts of `Dev1/ao0`, 0 or 1 of `Dev1/port0/line0`."""
        card, short = self._terminal(terminal)
        with self.lock:
            return float(card.output(short).at(self.now_s))

    def watch(self, terminal: str) -> Output:
        """Record every change of an output: `changes` of the answer, a list of (t_s, value)."""
        card, short = self._terminal(terminal)
        output = card.output(short)
        output.watched = True
        return output

    def inject(self, terminal: str, fault: Fault | None) -> None:
        """Put a fault on an input, None for none: `stuck` at its value now, at a rail, or `nan`.

        NI's driver gives NaN for a channel that it cannot convert, such as an open thermocouple.
        """
        card, short = self._terminal(terminal)
        target = card.terminal(short)
        with self.lock:
            target.fault = None
            target.frozen = float(target.at(self.now_s))
            target.fault = fault

    def unplug(self, card: str) -> None:
        """Unplug a card: every task on it fails from now on."""
        with self.lock:
            self.cards[card].plugged = False
            self._changed.notify_all()

    def plug(self, card: str) -> None:
        """Plug a card in again: it starts as after power-on, all outputs at 0."""
        with self.lock:
            self._power_up(self.cards[card])
            self.cards[card].plugged = True

    def stall(self, card: str, *, stalled: bool = True) -> None:
        """Make a card deliver no samples, as when a bus hangs."""
        self.cards[card].stalled = stalled

    def deliver_every(self, card: str, seconds: float) -> None:
        """Make a card send its samples in packets, as on USB or Ethernet."""
        self.cards[card].transfer_s = seconds

    def _power_up(self, card: Card) -> None:
        card.expired = False
        for output in card.outputs.values():
            output.put(self.now_s, 0.0)
        for task in list(self.tasks.values()):
            if card in task.cards:
                self.stop(task)
                self.release(task, UNVERIFIED)

    def _terminal(self, terminal: str) -> tuple[Card, str]:
        device, short = names.split(terminal)
        if device not in self.cards or not short:
            raise SetupError(f"{terminal!r}: there is no such terminal")
        return self.cards[device], short.removeprefix("_")

    def card(self, name: str) -> Card:
        """The card of this name, or DaqmxError."""
        card = self.cards.get(name)
        if card is None:
            raise DaqmxError(errors.INVALID_DEVICE, Device_Specified=name)
        return card

    def scale(self, name: str) -> CustomScale:
        """The custom scale of this name, made by the program or saved; else DaqmxError."""
        if name not in self.scales and name in self.storage.scales:
            saved = self.storage.scales[name]
            self.scales.add(name, saved.kind, dict(saved.properties))
        return self.scales.get(name)

    # Tasks

    def create(self, name: str) -> Task:
        """A new task."""
        if any(t.name == name for t in self.tasks.values()) and name:
            raise DaqmxError(errors.DUPLICATE_TASK, Task_Name=name)
        handle = self._next_handle
        self._next_handle += 1
        task = Task(handle, name or f"_unnamedTask<{handle - 1}>")
        self.tasks[handle] = task
        return task

    def task(self, handle: int) -> Task:
        """The task behind a handle, or DaqmxError."""
        owner = self.tasks.get(handle)
        if owner is None:
            raise DaqmxError(errors.INVALID_TASK)
        return owner

    def clear(self, task: Task) -> None:
        """Stop and delete a task; its outputs keep their values."""
        self.stop(task)
        self._free(task)
        for channel in task.channels if task.kind == "do" else ():
            channel.card.drivers.subtract(channel.resources())
        if self.tasks.pop(task.handle, None) is not None:
            self._n_transitions_cleared += task.n_transitions

    @property
    def n_transitions(self) -> int:
        """Of all tasks from state to state."""
        return self._n_transitions_cleared + sum(t.n_transitions for t in self.tasks.values())

    def add_channels(self, task: Task, channels: Sequence[Channel]) -> None:
        """Add the channels that one call creates to a task."""
        for channel in channels:
            task.add(channel)
            self.release(task, UNVERIFIED)
            if task.kind == "do":
                channel.card.drivers.update(channel.resources())
        self.last_created = names.flatten(c.name for c in channels)

    # What tasks reserve

    def _must_have_engine(self, task: Task, chassis: Card) -> None:
        """Raise DaqmxError where other clocked inputs use all timing engines of a chassis.

        Source: "cDAQ-9185/9189 User Manual", "Analog Input Timing Engines".
        """
        family = {card.name for card in chassis.family}
        clocked = {
            other.handle: other
            for (card_name, resource), other in self._reserved.items()
            if resource == "ai" and card_name in family and other is not task
            and not other.timing.on_demand
        }  # fmt: skip
        if len(clocked) >= chassis.model.n_ai_engines:
            raise task.error(
                errors.RESERVED, Device=chassis.name, Resource="timing engines of analog inputs",
                Held_by_Task=names.flatten(other.name for other in clocked.values()),
            )  # fmt: skip

    def reserve(self, task: Task) -> None:
        """Reserve everything that a task needs, or nothing.

        Raises
        ------
        DaqmxError
            The cards cannot do what it asks, or another task holds something of it.
        """
        if task.state < VERIFIED:
            rules.verify(task)
        if task.state < RESERVED:
            self._must_be_free(task)
            for card, resource in task.resources():
                self._reserved[card.name, resource] = task
            task.state = RESERVED

    def commit(self, task: Task) -> None:
        """Reserve, and program the cards."""
        self.reserve(task)
        if task.state < COMMITTED:
            for channel in task.channels:
                channel.commit(self.now_s)
        task.state = max(task.state, COMMITTED)

    def release(self, task: Task, state: int) -> None:
        """Free what a task has reserved; its state becomes at most this one."""
        self._free(task)
        task.state = min(task.state, state)
        task.asked_state = min(task.asked_state, state)

    def stop(self, task: Task) -> None:
        """Stop; nothing happens to a task that does not run.

        The task returns to the state that the program asked for, which frees what the start has
        reserved implicitly (NI-DAQmx Help, "Task State Model").
        """
        if task.state == RUNNING:
            assert task.run is not None
            task.run.stop(self.now_s)
            task.implicit = False
            self._return_to_asked(task)
        task.pending = None

    def _return_to_asked(self, task: Task) -> None:
        task.state = COMMITTED
        task.state = max(task.asked_state, VERIFIED)
        if task.state < RESERVED:
            self._free(task)

    def _free(self, task: Task) -> None:
        for key in [k for k, holder in self._reserved.items() if holder is task]:
            del self._reserved[key]

    def _must_be_free(self, task: Task) -> None:
        """Raise DaqmxError where another task holds what this one needs.

        The watchdog of a chassis needs all of it, while it starts (NI, cDAQ-9185/9189 User Manual,
        "Watchdog Timer").
        """
        if task.kind == "watchdog" and task.device is not None and task.device.is_chassis:
            family = {card.name for card in task.device.family}
            for (card_name, _), other in self._reserved.items():
                if card_name in family and other is not task:
                    raise task.error(
                        errors.WATCHDOG_NOT_FIRST, Device=card_name, Held_by_Task=other.name
                    )
        if task.kind == "ai" and not task.timing.on_demand:
            for chassis in {card.chassis for card in task.cards if card.chassis is not None}:
                self._must_have_engine(task, chassis)
        for card, resource in task.resources():
            holder = self._reserved.get((card.name, resource))
            if holder is not None and holder is not task:
                raise task.error(
                    errors.RESERVED, Device=card.name, Resource=resource,
                    Held_by_Task=holder.name,
                )  # fmt: skip
