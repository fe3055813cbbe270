"""The rig: opens, reads, writes, makes safe and closes all devices of a configuration."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hil.devices.base import Device, PowerSource, Sampler
from hil.devices.board import protocol
from hil.devices.board.arming import SUPPLY_EVERY_S, SUPPLY_S
from hil.devices.board.driver import CellBoard
from hil.devices.injection import FaultySystem, Injection
from hil.devices.injection_tables import FaultTable
from hil.devices.nidaq import plant_card
from hil.devices.nidaq.emulated import EmulatedBench
from hil.devices.rate_divider import RateDivider
from hil.devices.sim.plant import CURRENT_ON_A, SimPlant
from hil.devices.supply.driver import SupplyDevice
from hil.devices.tables import DeviceTable, Role
from hil.errors import ConfigError, DeviceError, StopError
from hil.loop.channels import (
    DUTY,
    DUTY_REPORTED,
    WORD_BITS,
    Readings,
    RigLayout,
    valid_columns,
)
from hil.loop.frame import Column, Commands, Frame, units
from hil.loop.guard import EXPIRED, STUCK, card_fault
from hil.loop.stages import Message
from hil.loop.states import States
from hil.loop.trip_report import merged
from hil.mechanics.system import System
from hil.plugins.descriptors import loaded
from hil.record.raw_samples import RawSamples
from hil.rig.calibrated import cards_of
from hil.rig.cards import build_plant_card
from hil.rig.instruments import boards_of, layout_of
from hil.rig.kinds import DeviceInputs, device_kind, keeping_alive
from hil.rig.run_tables import RigConfig, RigTables

BACKENDS = ("sim", "emulated", "pty", "bench")
DRIVERS = "drivers"
REALTIME_PLANT = f"{plant_card.NAME}=realtime"
# Boards first: a simulated plant behind a real board follows what that board reports.
ORDER: tuple[Role, ...] = ("board", "card", "instrument", "supply")


def _never() -> bool:
    return False


class Rig:
    """All devices of a run.

    Attributes
    ----------
    layout : RigLayout
    readings : readings of the devices at the current tick
    commands : commands to the devices, as views of the row
    stopped : whether a stop was requested; checked during waits
    states : the state machine of this rig
    """

    readings: Readings
    commands: Commands

    def __init__(
        self,
        devices: list[Device],
        layout: RigLayout,
        dividers: Sequence[RateDivider | None] = (),
        plant: SimPlant | None = None,
    ) -> None:
        self._plant = plant
        self.layout = layout
        self.states = States()
        self._devices = devices
        self._power_sources = [device for device in devices if isinstance(device, PowerSource)]
        self._coming_on = self._arms = False
        self.stopped: Callable[[], bool] = _never
        boards = [device for device in devices if isinstance(device, CellBoard)]
        self._all_boards = boards
        self._telling = boards if layout.isolates or layout.senses else []  # within a run
        self._dividers = list(dividers) or [None] * len(devices)
        self._any_divided = any(divider is not None for divider in self._dividers)
        several = sum(bool(c.force) for c in layout.channels) > 1
        self._tare = np.zeros(len(layout.channels))
        self._tared = False
        self._one_of_several = layout.force if several else ""

    @property
    def columns(self) -> list[Column]:
        sim = any(device.simulated for device in self._devices)
        columns = [column for device in self._devices for column in device.columns]
        columns += [
            Column(
                c.column("measured"),
                c.units,
                "measured",
                f"{'force' if c.force else 'reading'} on channel {c.name}",
                simulated=sim,
            )
            for c in self.layout.channels
        ]
        if self._one_of_several:
            columns.append(
                Column(
                    f"{self._one_of_several}.force_measured_N",
                    "N",
                    "measured",
                    "the same as force_measured_N",
                    simulated=sim,
                )
            )
        columns += [
            Column(name, units(name), "commanded", "value of an output from t_s on")
            for name in self.layout.outputs
        ]
        flags = (*(c.name for c in self.layout.channels), *self.layout.boards)
        columns += [
            Column(name, "1", "measured", "valid readings at this tick",
                   flags=flags[WORD_BITS * i : WORD_BITS * (i + 1)])
            for i, name in enumerate(valid_columns(len(flags)))
        ]  # fmt: skip
        if self.layout.n_cells:
            columns += [
                Column(
                    "cells_commanded",
                    "1",
                    "commanded",
                    "cells switched on (1) from t_s on",
                    n_cells=self.layout.n_cells,
                ),
                Column(
                    "cells_reported",
                    "1",
                    "measured",
                    "cells that the boards report on (1) at t_s",
                    n_cells=self.layout.n_cells,
                    simulated=sim,
                ),
            ]
        if self.layout.modulates:
            columns += [
                Column(
                    DUTY,
                    "1",
                    "commanded",
                    "share of the time for which a cell is on from t_s on, in whole 255ths",
                    n_cells=self.layout.n_cells,
                    fractions=True,
                ),
                Column(
                    DUTY_REPORTED,
                    "1",
                    "measured",
                    "the same as the boards have confirmed it at t_s; NaN if unknown",
                    n_cells=self.layout.n_cells,
                    fractions=True,
                    simulated=sim,
                ),
            ]
        if self.layout.isolates:
            columns.append(
                Column(
                    "cells_open",
                    "1",
                    "measured",
                    "cells isolated by their board (1): open wire",
                    n_cells=self.layout.n_cells,
                    simulated=sim,
                )
            )
        return columns

    @property
    def simulated(self) -> list[str]:
        """Names of the devices that are simulated."""
        return [device.name for device in self._devices if device.simulated]

    @property
    def wear_per_h(self) -> float | None:
        """`SimPlant.wear_per_h` of the simulated plant; None where a device is real."""
        whole = self._plant is not None and len(self.simulated) == len(self._devices)
        return self._plant.wear_per_h if self._plant is not None and whole else None

    def bind(self, frame: Frame) -> None:
        """Connect every device to its columns in the row."""
        self.readings, self.commands = self.layout.bind(frame)
        self._copies: list[tuple[int, int]] = []
        if self._one_of_several:
            column = frame.index(f"{self._one_of_several}.force_measured_N")
            self._copies.append((self.layout.index(self._one_of_several), column))
        self._card_flags = {
            name: next(c.flags for c in frame.columns if c.name == f"{name}_fault_bits")
            for name in self.layout.cards
        }
        raw = (c.name for c in frame.columns if c.name.endswith(".raw_V"))
        self._raw_at = {name.removesuffix(".raw_V"): frame.index(name) for name in raw}
        self._values, self._bits = frame.values, frame.bits
        self._card_faults_at = {
            name: frame.bit_index(f"{name}_fault_bits") for name in self.layout.cards
        }
        for device, divider in zip(self._devices, self._dividers, strict=True):
            device.bind(frame, self.readings)
            if divider is not None:
                divider.bind(frame, self.readings, device)

    def open(self) -> None:
        """Connect to all devices; on a failure those already open are closed again."""
        opened: list[Device] = []
        self._coming_on = True
        try:
            for device in self._devices:
                self._heed_stop()
                device.open()
                opened.append(device)
            self._heed_stop()
        except BaseException as error:  # an emulated board may lack its compiler, a person may stop
            with _also(error):
                _each([device.close for device in opened])
            raise
        finally:
            self._coming_on = False
        self.states.on("connect")

    def samplers(self) -> dict[str, tuple[Sampler, RawSamples]]:
        """Devices that sample faster than the loop, and their samples."""
        samplers: dict[str, tuple[Sampler, RawSamples]] = {}
        for device in self._devices:
            samples = device.raw_samples if isinstance(device, Sampler) else None
            if isinstance(device, Sampler) and samples is not None:
                samplers[device.name] = (device, samples)
        return samplers

    def self_test(self, say: Callable[[str], None]) -> list[str]:
        """Test the protection of every device; returns the results, one line per device.

        Power is on during the test, since a board tests its wires when armed, and off afterwards.
        """
        sources = {id(device) for device in self._power_sources}
        last = sorted(self._devices, key=lambda device: id(device) in sources)
        self.states.on("test")
        try:
            for board in self._all_boards:
                board.check_room()
            with self._power():
                tested = []
                for device in last:
                    self._forget_estops()
                    tested.append((device.name, device.self_test(say)))
                    self.keep_alive()
                self._forget_estops()
        except DeviceError:
            self.states.on("fault")
            raise
        self.states.on("pass")
        return [f"{name}: {', '.join(phrases)}" for name, phrases in tested if phrases]

    def _forget_estops(self) -> None:
        """Of several boards, clear what the test of one has left in those with the same e-stop."""
        for board in self._all_boards if len(self._all_boards) > 1 else ():
            board.forget_estop()

    def arm(self) -> None:
        """Allow switching, once all power is on.

        Boards verify that their limits match the rig's, and that every cell has a wire.
        """
        with self._power():
            self._close_relays()
            self._arms = True
            try:
                for device in self._devices:
                    device.arm()
                    self.keep_alive()
            finally:
                self._arms = False

    def _close_relays(self) -> None:
        """Close relay K1 of several boards before any is armed.

        An armed board trips without a command for 0.1 s, and the others' relays take as long. Of a
        relay that does not close, arming says so.
        """
        boards = self._all_boards
        for _ in range(round(SUPPLY_S / SUPPLY_EVERY_S)) if len(boards) > 1 else ():
            if self._relays_are_closed():
                return
            for board in boards:
                board.wait_for_relay()
            self.keep_alive()

    def _relays_are_closed(self) -> bool:
        closed = [board.close_relay() for board in self._all_boards]
        return all(closed)

    @contextlib.contextmanager
    def _power(self) -> Iterator[None]:
        """Switch power on: supplies, then the enable lines."""
        self._coming_on = True
        try:
            self.keep_alive()
            for device in reversed(self._power_sources):
                device.enable()
                device.wait()
                self.keep_alive()
            yield
        finally:
            self._coming_on = False

    def keep_alive(self) -> None:
        """Keep the power on, and boards armed; handle a stop request. Called during waits.

        Raises
        ------
        StopError
            A stop was requested before the run began.
        """
        for device in self._power_sources:
            device.alive()
        for board in self._all_boards if self._arms else ():
            board.feed()
        self._heed_stop()

    def _heed_stop(self) -> None:
        if self._coming_on and self.stopped():
            raise StopError("stopped before the run began")

    def ready(self) -> bool:
        """Return whether all power is on; each call switches on the next power source.

        The last one is relay K1 of every board.
        """
        for device in reversed(self._power_sources):
            device.enable()
            if not device.ready():
                return False
        return self._relays_are_closed()

    def identities(self) -> dict[str, protocol.Message]:
        """What every open board has reported of itself, by its name."""
        boards = self._all_boards
        return {board.name: board.identity for board in boards if board.identity is not None}

    def has_cooled(self) -> bool:
        """Return whether all boards can be armed without waiting."""
        return all(board.has_cooled() for board in self._all_boards)

    def messages(self) -> list[tuple[str, Message]]:
        """New messages of the devices, with the device's name."""
        return [(device.name, message) for device in self._devices for message in device.messages()]

    def has_news(self) -> bool:
        """Whether a device has a message since the last call of `messages`."""
        return bool(self._telling) and any(board.has_news for board in self._telling)

    def troubles(self, on_s: NDArray[np.float64]) -> dict[str, list[str]]:
        """Details from the devices about a trip, by the row of the interlocks.

        Parameters
        ----------
        on_s : duration for which each cell has been commanded on, s
        """
        troubles = [
            self._card_troubles(name, int(self._bits[at]))
            for name, at in self._card_faults_at.items()
        ]
        for device in self._devices:
            if isinstance(device, CellBoard):
                troubles.append(device.troubles(on_s))
            elif isinstance(device, SupplyDevice):
                troubles.append(device.troubles())
        return merged(troubles)

    def _card_troubles(self, name: str, bits: int) -> dict[str, list[str]]:
        """A card's fault bits as text, such as `daq: force_frozen (0.12 V)`."""
        troubles: dict[str, list[str]] = {}
        for i, flag in enumerate(self._card_flags[name]):
            if not bits >> i & 1:
                continue
            fault = card_fault(flag)
            if fault == "estop_open":
                troubles[fault] = [f"the e-stop loop that {name} reads is open"]
                continue
            if flag == EXPIRED:
                text = f"{name}: its watchdog has expired and holds its outputs: the program stood"
                troubles[fault] = [f"{text} still for longer than watchdog_s"]
                continue
            if fault == "gate_stuck":
                text = f"{name}: {flag.removesuffix(STUCK)} reads back another level than commanded"
                troubles.setdefault(fault, []).append(text)
                continue
            raw = next((r for r in self._raw_at if flag.startswith(f"{r}_")), "")
            volts = f"{self._values[self._raw_at[raw]]:.4g} V" if raw else ""
            if flag.endswith("_at_rail"):  # of a period with one such sample this is the mean
                end = f"a sample at an end of the input's range; their mean {volts}"
                text = f"{flag} ({end})"
            else:
                text = f"{flag} ({volts})" if volts else flag
            troubles.setdefault("channel_untrue", []).append(f"{name}: {text}")
        return troubles

    def tare(self, channel: str, newtons: float) -> None:
        """Subtract a force (N) from a channel's readings from now on; '' is the controlled one.

        Raises
        ------
        ValueError
            There is no such force channel.
        """
        name = channel or self.layout.force
        if name not in {c.name for c in self.layout.channels if c.force}:
            raise ValueError(f"there is no force channel '{channel}'")
        self._tare[self.layout.index(name)] += newtons
        self._tared = True

    def read(self, t_s: float) -> None:
        if self._any_divided:
            for device, divider in zip(self._devices, self._dividers, strict=True):
                if divider is None or divider.comes(t_s):
                    device.read(t_s)
                else:
                    divider.leave_out(t_s)
        else:
            for device in self._devices:
                device.read(t_s)
        if self._tared:
            self.readings.measured[:] -= self._tare
        for index, column in self._copies:
            self._values[column] = self.readings.measured[index]

    def write(self, t_s: float) -> None:
        if self._any_divided:
            for device, divider in zip(self._devices, self._dividers, strict=True):
                if divider is None or divider.writes(self.commands):
                    device.write(t_s, self.commands)
        else:
            for device in self._devices:
                device.write(t_s, self.commands)

    def safe(self) -> None:
        """Switch everything off, even if a device fails.

        Power goes off first, since that never blocks.
        """
        _each(
            [device.disable for device in self._power_sources]
            + [device.safe for device in self._devices]
        )

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """Connect to all devices; on every way out, switch everything off and close them."""
        self.open()
        try:
            yield
        except BaseException as error:
            with _also(error):
                self._end()
            raise
        else:
            self._end()

    def _end(self) -> None:
        try:
            self.safe()
        except DeviceError as error:
            with _also(error):
                self.close()
            raise
        else:
            self.close()

    def close(self) -> None:
        """Close all devices, even if some fail."""
        self.states.on("disconnect")
        _each([device.close for device in self._devices])


@contextlib.contextmanager
def _also(error: BaseException) -> Iterator[None]:
    """Add what fails in the block to the error that led there, which is raised after it.

    Raises
    ------
    DeviceError
        A device failed in the block. It has the message of both, if both are devices' failures.
    """
    try:
        yield
    except DeviceError as further:
        first = [str(error)] if isinstance(error, DeviceError) else []
        raise DeviceError("; ".join(dict.fromkeys([*first, str(further)]))) from error


def _each(actions: list[Callable[[], None]]) -> None:
    failures = []
    for action in actions:
        try:
            action()
        except BaseException as error:  # of any kind: the next device must still be handled
            failures.append(str(error) or type(error).__name__)
    if failures:
        raise DeviceError("; ".join(dict.fromkeys(failures)))


def _no_clock() -> float:
    return math.nan


def _no_time_passes(duration_s: float) -> None:
    """A sleep for rigs without a device on the bench."""


class HostTime(NamedTuple):
    """Time of the computer: a clock for timing exchanges with real boards, and a sleep."""

    now_s: Callable[[], float] = _no_clock
    sleep_s: Callable[[float], None] = _no_time_passes


NO_TIME = HostTime()


def parse_backend(text: str, tables: RigTables) -> dict[str, str]:
    """Parse --backend and return the backend of every device, by name.

    The text is `sim`, `emulated` or `bench`, or gives one for each device, such as
    `board=bench,daq=sim`. With `plant=realtime` the plant runs on its own card (`[plant_card]`),
    and devices that are not named are on the bench. `drivers` gives every device the backend that
    runs the driver of the bench without hardware, and `sim` where there is none or this computer
    lacks something for it.

    Raises
    ------
    ConfigError
        A backend or device is unknown, or this computer lacks something that a backend needs.
    """
    devices = tables.devices
    if text == DRIVERS:
        lacking = left_out(tables)
        kinds = {name: device_kind(table).driver_on for name, table in devices.items()}
        return {name: "sim" if name in lacking else kind for name, kind in kinds.items()}
    parts = [part.strip() for part in text.split(",")]
    behind_card = REALTIME_PLANT in parts
    chosen = dict.fromkeys(devices, "bench" if behind_card else "sim")
    for part in parts:
        name, equals, kind = part.partition("=")
        if part == REALTIME_PLANT:
            continue
        if not equals:
            name, kind = "", name
        if kind not in BACKENDS:
            raise ConfigError(
                f"--backend {text}: '{kind}' is not one of {', '.join(BACKENDS)}; and {DRIVERS} "
                "stands alone"
            )
        if name and name not in chosen:
            raise ConfigError(
                f"--backend {text}: the rig has no device '{name}', only {', '.join(devices)}"
            )
        chosen.update({name: kind} if name else dict.fromkeys(devices, kind))
    if behind_card:
        _check_plant_card(text, tables, set(chosen.values()))
    for name, kind in chosen.items():
        if kind == "pty" and device_kind(devices[name]).driver_on != kind:
            raise ConfigError(f"--backend {text}: '{name}' is no board: pty is for driver boards")
        if missing := loaded(device_kind(devices[name]).missing)(kind):
            raise ConfigError(f"--backend {text}: '{name}' {missing}")
    return chosen | ({plant_card.NAME: "realtime"} if behind_card else {})


def left_out(tables: RigTables) -> dict[str, str]:
    """What this computer lacks for the drivers of some devices, by the device's name."""
    reasons = {}
    for name, table in tables.devices.items():
        kind = device_kind(table)
        if missing := loaded(kind.missing)(kind.driver_on):
            reasons[name] = missing
    return reasons


def _check_plant_card(text: str, tables: RigTables, kinds: set[str]) -> None:
    if tables.plant_card is None:
        raise ConfigError(
            f"--backend {text}: the rig has no [plant_card] to run the plant on: add this table"
        )
    if "sim" in kinds or len(kinds) > 1:
        raise ConfigError(
            f"--backend {text}: plant=realtime connects to boards and cards by signals only: all "
            "of them must be on the bench, or all emulated"
        )


def _when_started(device: tuple[str, DeviceTable]) -> tuple[int, bool]:
    """Sorts devices by role; a card that waits for another one starts before it."""
    return ORDER.index(device[1].role), device[1].follows is None


def build_rig(
    config: RigConfig,
    seed: int,
    backends: Mapping[str, str] | None = None,
    time: HostTime = NO_TIME,
    injection: Injection | None = None,
    plant_system: System | None = None,
) -> Rig:
    """Build the rig of a configuration; its simulated devices share one plant.

    Parameters
    ----------
    backends : backend of every device, from `parse_backend`; by default all are `sim`
    time : of the computer, on a bench
    injection : faults for the simulated devices
    plant_system : the simulated plant in its state after an earlier run; by default a new one at
        rest
    """
    tables, period_s = config.tables, config.tables.loop.period_s

    def keep_alive() -> None:
        rig.keep_alive()

    system = plant_system or config.system(plant=True)
    if injection is not None:
        boards = boards_of(tables.devices)
        names = list(system.cell_names)

        def cell_of(fault: FaultTable) -> int:
            board = boards[fault.device or next(iter(boards))]
            return names.index(board.cells[fault.cell - 1])

        system = FaultySystem(system, injection, cell_of)
    kinds = backends or {}
    behind_card = kinds.get(plant_card.NAME) == "realtime"
    plant = SimPlant(plant_card.Loads(system) if behind_card else system, period_s, CURRENT_ON_A)
    if injection is not None:
        injection.advance_simulation = plant.advance
    layout = replace(layout_of(tables, system.cell_names), modulates=config.modulates)
    bench = EmulatedBench(plant, period_s, injection)
    cards = cards_of(tables.devices)
    advance = bench.advance if "emulated" in (kinds.get(n) for n in cards) else plant.advance
    devices: list[Device] = []
    dividers: list[RateDivider | None] = []
    if behind_card:
        on = bench if "emulated" in kinds.values() else None
        devices.append(build_plant_card(config, system, on, seed))
        dividers.append(None)
    numbers = dict.fromkeys(ORDER, 0)
    for name, table in sorted(tables.devices.items(), key=_when_started):
        inputs = DeviceInputs(
            name=name,
            table=table,
            number=numbers[table.role],
            config=config,
            layout=layout,
            plant=plant,
            system=system,
            bench=bench,
            backend=kinds.get(name, "sim"),
            behind_card=behind_card,
            seed=seed,
            injection=injection,
            advance_simulation=advance,
            now_s=time.now_s,
            sleep_s=time.sleep_s,
            wait_s=keeping_alive(time.sleep_s, keep_alive),
            keep_alive=keep_alive,
        )
        device, divider = loaded(device_kind(table).build)(inputs)
        devices.append(device)
        dividers.append(divider)
        numbers[table.role] += 1
    rig = Rig(devices, layout, dividers, plant)
    return rig
