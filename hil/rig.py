"""Configuration -> open devices; read, write, safe and close over all of them."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from hil import wire
from hil.config import Config, board_limits, schema
from hil.config.cards import cards_of
from hil.config.instruments import layout_of, own_devices, supplies_of
from hil.config.supply import SupplyTable
from hil.devices import plant_card
from hil.devices.cell_board import BoardPlace, CellBoard
from hil.devices.device import Device, RawSamples, Remark, Sampler, Slow
from hil.devices.emulated_board import EmulatedBoard, check_tools
from hil.devices.emulated_daq import EmulatedBench
from hil.devices.injection import Chip, FaultyGates, FaultyPort, FaultySystem, Injection
from hil.devices.native_board import NativeBoard
from hil.devices.nidaq.channels import Place
from hil.devices.own import OwnPlace
from hil.devices.port import LOOK_S, Port, SerialPort
from hil.devices.proof import Operator, SimulatedOperator, SomebodyAtTheBench
from hil.devices.sim_plant import Gates, SimPlant
from hil.devices.supply import SupplyDevice
from hil.devices.turn import Turn
from hil.errors import ConfigError, DeviceError, StopError
from hil.frame import Column, Commands, Frame, unit_suffix, units
from hil.models.system import System
from hil.rig_cards import build_card, build_plant_card
from hil.rig_own import build_own
from hil.rig_supply import build_supply
from hil.slots import Readings, RigLayout
from hil.states import States
from hil.streams import stream
from hil.trip_report import merged

BACKENDS = ("sim", "emulated", "bench")
REALTIME_PLANT = f"{plant_card.NAME}=realtime"
ANSWER_SHARE = 0.5  # of a period that a board's answer is waited for
CURRENT_ON_A = 0.2  # of a simulated cell whose wire is not modelled: assumed


def _never() -> bool:
    return False


class Rig:
    """All devices of a run.

    Attributes
    ----------
    layout : RigLayout
    readings : Readings
        What the devices read at the current tick.
    commands : Commands
        What they are told, views of the row.
    stopped : callable
        Whether somebody wants everything to end; looked at while something is waited for.
    states : States
        The one machine of this rig.
    """

    readings: Readings
    commands: Commands

    def __init__(
        self, devices: list[Device], layout: RigLayout, turns: Sequence[Turn | None] = ()
    ) -> None:
        self.layout = layout
        self.states = States()
        self._devices = devices
        self._slow = [device for device in devices if isinstance(device, Slow)]
        self._coming_on = False
        self.stopped: Callable[[], bool] = _never
        boards = [device for device in devices if isinstance(device, CellBoard)]
        self._all_boards = boards
        self._boards = boards if layout.sets_apart else []
        self._turns = list(turns) or [None] * len(devices)
        self._paced = any(turn is not None for turn in self._turns)
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
        columns.append(
            Column(
                "valid_bits", "1", "measured", "readings that are there at this tick", flags=flags
            )
        )
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
        if self.layout.sets_apart:
            columns.append(
                Column(
                    "cells_open",
                    "1",
                    "measured",
                    "cells that their board set apart (1): electrically dead, found open",
                    n_cells=self.layout.n_cells,
                    simulated=sim,
                )
            )
        return columns

    @property
    def simulated(self) -> list[str]:
        """Names of the devices that are simulated."""
        return [device.name for device in self._devices if device.simulated]

    def bind(self, frame: Frame) -> None:
        """Give every device its place in the row."""
        self.readings, self.commands = self.layout.bind(frame)
        self._measured = frame.span([c.column("measured") for c in self.layout.channels])
        self._copies: list[tuple[int, int]] = []
        if self._one_of_several:
            own = frame.index(f"{self._one_of_several}.force_measured_N")
            self._copies.append((self.layout.slot(self._one_of_several), own))
        self._card_flags = {
            name: next(c.flags for c in frame.columns if c.name == f"{name}_fault_bits")
            for name in self.layout.cards
        }
        raw = (c.name for c in frame.columns if c.name.endswith(".raw_V"))
        self._raw_at = {name.removesuffix(".raw_V"): frame.index(name) for name in raw}
        self._values, self._bits = frame.values, frame.bits
        self._valid_bits = frame.bit_index("valid_bits")
        self._words: dict[bytes, int] = {}  # validity, a byte each, as the row's word
        for device, turn in zip(self._devices, self._turns, strict=True):
            device.bind(frame, self.readings)
            if turn is not None:
                turn.bind(frame, self.readings, device)

    def open(self) -> None:
        """Connect to all devices; on a failure those already open are closed again."""
        opened: list[Device] = []
        try:
            for device in self._devices:
                device.open()
                opened.append(device)
        except BaseException:  # a simulated card may also lack a compiler
            _each([device.close for device in opened])
            raise
        self.states.on("connect")

    def samplers(self) -> dict[str, tuple[Sampler, RawSamples]]:
        """Devices that sample faster than the loop ticks, and what."""
        found: dict[str, tuple[Sampler, RawSamples]] = {}
        for device in self._devices:
            samples = device.raw_samples if isinstance(device, Sampler) else None
            if isinstance(device, Sampler) and samples is not None:
                found[device.name] = (device, samples)
        return found

    def prove(self, say: Callable[[str], None]) -> list[str]:
        """Every device shows what protects it; what was proved, a line a device.

        Power is on meanwhile, since a board looks for its wires when it is armed, and off after.
        """
        slow = {id(device) for device in self._slow}
        last = sorted(self._devices, key=lambda device: id(device) in slow)
        self.states.on("test")
        try:
            with self._power():
                proved = []
                for device in last:
                    proved.append((device.name, device.prove(say)))
                    self.attend()
        except DeviceError:
            self.states.on("fault")
            raise
        self.states.on("pass")
        return [f"{name}: {', '.join(phrases)}" for name, phrases in proved if phrases]

    def arm(self) -> None:
        """Allow switching, once what has to come on is on.

        Boards prove that they and the rig mean the same limits, and that every cell has a wire.
        """
        with self._power():
            for device in self._devices:
                device.arm()
                self.attend()

    @contextlib.contextmanager
    def _power(self) -> Iterator[None]:
        """What has to come on is on: supplies, then the lines that let their power through."""
        self._coming_on = True
        try:
            self.attend()
            for device in reversed(self._slow):
                device.come_on()
                device.wait()
                self.attend()
            yield
        finally:
            self._coming_on = False

    def attend(self) -> None:
        """While something is waited for: power stays on, and a stop is heard.

        Raises
        ------
        StopError
            Somebody wants everything to end, and it has not begun.
        """
        for device in self._slow:
            device.alive()
        if self._coming_on and self.stopped():
            raise StopError

    def ready(self) -> bool:
        """Everything that has to come on is on; called until it is, it brings it on in order."""
        for device in reversed(self._slow):
            device.come_on()
            if not device.ready():
                return False
        return True

    def has_cooled(self) -> bool:
        """Boards may be armed at once; called until they may, within a tick."""
        return all(board.has_cooled() for board in self._all_boards)

    def remarks(self) -> list[tuple[str, Remark]]:
        """What devices have to say, each once, with the device's name."""
        return [(device.name, remark) for device in self._devices for remark in device.remarks()]

    def has_news(self) -> bool:
        """A device has something to say since `remarks` was called last."""
        return any(board.has_news for board in self._boards)

    def troubles(self, on_s: NDArray[np.float64]) -> dict[str, list[str]]:
        """What devices know of what tripped, by the row of the interlocks.

        Parameters
        ----------
        on_s : for how long every cell has been commanded on
        """
        cards = zip(self.layout.cards, self.readings.card_faults.tolist(), strict=True)
        found = [self._card_troubles(name, bits) for name, bits in cards]
        for device in self._devices:
            if isinstance(device, CellBoard):
                found.append(device.troubles(on_s))
            elif isinstance(device, SupplyDevice):
                found.append(device.troubles())
        return merged(found)

    def _card_troubles(self, name: str, bits: int) -> dict[str, list[str]]:
        """What a card's fault bits say, such as `daq: force_at_rail (9.99 V)`."""
        found: dict[str, list[str]] = {}
        for i, flag in enumerate(self._card_flags[name]):
            if not bits >> i & 1:
                continue
            if i == 0:
                found["estop_open"] = [f"the e-stop loop that {name} reads is open"]
                continue
            raw = next((r for r in self._raw_at if flag.startswith(f"{r}_")), "")
            volts = f" ({self._values[self._raw_at[raw]]:.4g} V)" if raw else ""
            found.setdefault("channel_untrue", []).append(f"{name}: {flag}{volts}")
        return found

    def tare(self, channel: str, newtons: float) -> None:
        """Take this off a force channel's readings from now on; '' is the controlled one.

        Raises
        ------
        ValueError
            There is no such force channel.
        """
        name = channel or self.layout.force
        if name not in {c.name for c in self.layout.channels if c.force}:
            raise ValueError(f"there is no force channel '{channel}'")
        self._tare[self.layout.slot(name)] += newtons
        self._tared = True

    def read(self, t_s: float) -> None:
        if self._paced:
            for device, turn in zip(self._devices, self._turns, strict=True):
                if turn is None or turn.comes(t_s):
                    device.read(t_s)
                else:
                    turn.leave_out(t_s)
        else:
            for device in self._devices:
                device.read(t_s)
        if self._tared:
            self.readings.measured[:] -= self._tare
        self._measured[:] = self.readings.measured
        for slot, column in self._copies:
            self._values[column] = self.readings.measured[slot]
        word = self._words.get(key := self.readings.valid.tobytes())
        if word is None:
            word = self._words[key] = sum(1 << i for i, there in enumerate(key) if there)
        self._bits[self._valid_bits] = word

    def write(self, t_s: float) -> None:
        if self._paced:
            for device, turn in zip(self._devices, self._turns, strict=True):
                if turn is None or turn.writes(self.commands):
                    device.write(t_s, self.commands)
        else:
            for device in self._devices:
                device.write(t_s, self.commands)

    def safe(self) -> None:
        """Switch everything off; one device's failure does not keep the others on.

        Power goes first, since that waits for nobody's answer.
        """
        _each([device.cut for device in self._slow] + [device.safe for device in self._devices])

    def close(self) -> None:
        """Let go of all devices, whichever fail."""
        self.states.on("disconnect")
        _each([device.close for device in self._devices])


def _each(actions: list[Callable[[], None]]) -> None:
    failures = []
    for action in actions:
        try:
            action()
        except Exception as error:  # whatever it is, the next device must have its turn
            failures.append(str(error) or type(error).__name__)
    if failures:
        raise DeviceError("; ".join(failures))


def _no_clock() -> float:
    return math.nan


def _no_time_passes(duration_s: float) -> None:
    """For rigs of which nothing is on a bench."""


def _power_of(tables: schema.RigTables) -> tuple[str, ...]:
    """What the cells' power passes, in words."""
    return (
        *(f"'{n}' ({supply.resource})" for n, supply in supplies_of(tables.devices).items()),
        *(
            f"enable line '{n}' ({line.terminal} of {card.card})"
            for card in cards_of(tables.devices).values()
            for n, line in card.lines.items()
            if line.kind == "enable"
        ),
    )


def _attended(
    sleep_s: Callable[[float], None], attend: Callable[[], None]
) -> Callable[[float], None]:
    """Lets time pass in pieces, and does this between them."""

    def wait_s(duration_s: float) -> None:
        while duration_s > 0.0:
            attend()
            sleep_s(min(duration_s, LOOK_S))
            duration_s -= LOOK_S
        attend()

    return wait_s


def _same(port: Port) -> Port:
    return port


def parse_backend(text: str, tables: schema.RigTables) -> dict[str, str]:
    """`sim`, `emulated`, `bench`, or one a device (`board=bench,daq=sim`): every device's backend.

    With `plant=realtime` the plant runs on a card of its own (`[plant_card]`), and devices that are
    not named are on the bench.

    Raises
    ------
    ConfigError
        An unknown backend or device, or a device that has no such backend.
    """
    devices = tables.devices
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
            raise ConfigError(f"--backend {text}: '{kind}' is none of {', '.join(BACKENDS)}")
        if name and name not in chosen:
            raise ConfigError(
                f"--backend {text}: the rig has no device '{name}', only {', '.join(devices)}"
            )
        chosen.update({name: kind} if name else dict.fromkeys(devices, kind))
    if behind_card:
        _check_plant_card(text, tables, set(chosen.values()))
    for name, kind in chosen.items():
        if kind == "emulated" and isinstance(devices[name], schema.CellBoardTable):
            check_tools()
        if kind != "sim" and isinstance(devices[name], schema.NidaqTable) and not _has_nidaqmx():
            raise ConfigError(
                f"--backend {text}: '{name}' needs an extra: pip install 'hil-arrays[daq]'"
            )
        if kind == "bench" and isinstance(devices[name], SupplyTable) and not _has_visa():
            raise ConfigError(
                f"--backend {text}: '{name}' needs an extra: pip install 'hil-arrays[supply]'"
            )
    return chosen | ({plant_card.NAME: "realtime"} if behind_card else {})


def _check_plant_card(text: str, tables: schema.RigTables, kinds: set[str]) -> None:
    if tables.plant_card is None:
        raise ConfigError(
            f"--backend {text}: the rig has no [plant_card], on which its plant could run"
        )
    if "sim" in kinds or len(kinds) > 1:
        raise ConfigError(
            f"--backend {text}: only signals join the plant to boards and cards: all of them are "
            "on the bench, or all emulated"
        )


def _has_visa() -> bool:
    return find_spec("pyvisa") is not None


def _has_nidaqmx() -> bool:
    return find_spec("nidaqmx") is not None


def _faulty(connect: Callable[[], Port], name: str, injection: Injection) -> Port:
    return FaultyPort(connect(), name, injection)


def _meddled(board: Chip, name: str, injection: Injection | None) -> Gates:
    return board if injection is None else FaultyGates(board, name, injection)


def _slots(
    device: schema.NidaqTable | schema.OwnDeviceTable, layout: RigLayout
) -> tuple[range, int]:
    """Where a device's channels stand, side by side, and its first output."""
    first = layout.slot(next(iter(device.channels))) if device.channels else 0
    outputs = [f"{n}_commanded{unit_suffix(o.drives)}" for n, o in device.outputs.items()]
    at = layout.outputs.index(outputs[0]) if outputs else 0
    return range(first, first + len(device.channels)), at


def _limits_on(injection: Injection | None, limits: dict[str, int]) -> dict[str, int]:
    return limits if injection is None else injection.limits(limits)


def build_rig(
    config: Config,
    seed: int,
    backends: Mapping[str, str] | None = None,
    now_s: Callable[[], float] = _no_clock,
    sleep_s: Callable[[float], None] = _no_time_passes,
    injection: Injection | None = None,
    plant_system: System | None = None,
) -> Rig:
    """The rig of a configuration; its simulated devices share one plant.

    Parameters
    ----------
    backends : of every device, as `parse_backend` gives them; by default all are simulated
    now_s : the clock by which exchanges with real boards are timed
    sleep_s : lets time pass at a bench
    injection : faults for the simulated devices
    plant_system : the simulated plant as an earlier run left it; by default a new one, at rest
    """
    tables, period_s = config.tables, config.tables.loop.period_s

    def attend() -> None:
        rig.attend()

    system = plant_system or config.system(plant=True)
    if injection is not None:
        system = FaultySystem(system, injection)
    kinds = backends or {}
    behind_card = kinds.get(plant_card.NAME) == "realtime"
    plant = SimPlant(plant_card.Loads(system) if behind_card else system, period_s, CURRENT_ON_A)
    if injection is not None:
        injection.come_to = plant.advance
    boards = {n: d for n, d in tables.devices.items() if isinstance(d, schema.CellBoardTable)}
    described = board_limits.protections(tables, system.cell_names)
    board_limits.refuse(config.path, [b for b in described if kinds.get(b.name) == "bench"])
    cards = cards_of(tables.devices)
    layout = layout_of(tables, system.cell_names)
    bench = EmulatedBench(plant, period_s, injection)
    wait_s = _attended(sleep_s, attend)
    come_to = bench.advance if "emulated" in (kinds.get(n) for n in cards) else plant.advance
    devices: list[Device] = []
    turns: list[Turn | None] = []
    if behind_card:
        on = bench if "emulated" in kinds.values() else None
        devices.append(build_plant_card(config, system, on, seed))
        turns.append(None)
    # Boards first: a simulated plant behind a real board follows what that board reports.
    for i, (name, board) in enumerate(boards.items()):
        cells = list(system.cell_names)
        place = BoardPlace(
            gates=tuple(cells.index(cell) for cell in board.cells),
            cell_names=tuple(board.cells),
            slot=len(layout.channels) + layout.boards.index(name),
            device_slot=layout.devices.index(name),
            first_gate=layout.gate_of[cells.index(board.cells[0])],
        )
        limits = wire.default_limits() | board.limits
        kind = kinds.get(name, "sim")
        connect: Callable[[], Port]
        operator: Operator
        if kind == "bench":
            connect = partial(SerialPort, name, board.port, now_s, now_s, attend)
            plant.follow(place.gates)
            operator = SomebodyAtTheBench(wait_s)
        elif kind == "emulated":
            chip = EmulatedBoard(i + 1, _limits_on(injection, limits))
            plant.wire(_meddled(chip, name, injection), place.gates)
            operator = SimulatedOperator(chip)
            connect = partial(SerialPort, name, chip.url, chip.sent_s, chip.arrived_s, attend)
        else:
            lost = board.sim.reply_lost_probability
            far_end = NativeBoard(i + 1, _limits_on(injection, limits), lost, stream(seed, name))
            plant.wire(_meddled(far_end, name, injection), place.gates)
            operator = SimulatedOperator(far_end)
            connect = partial(_same, far_end)
        if injection is not None:
            connect = partial(_faulty, connect, name, injection)
        devices.append(
            CellBoard(
                name,
                connect,
                place,
                limits,
                hold_s=board.hold_s,
                answer_timeout_s=ANSWER_SHARE * period_s,
                simulated=kind != "bench",
                operator=operator,
                estop=board.estop == "proved",
                power=_power_of(tables),
                come_to=come_to if kind == "emulated" else None,
            )
        )
        turns.append(
            Turn(board.every, period_s, [place.slot], place.device_slot, place.gates)
            if board.every > 1
            else None
        )
    for name, card in cards.items():
        device = layout.devices.index(name)
        slots, output_slot = _slots(card, layout)
        where = Place(slots.start, output_slot, device, card=layout.cards.index(name))
        on_simulated_card = kinds.get(name) == "emulated"
        devices.append(
            build_card(
                name,
                config,
                system,
                plant,
                where,
                partial(stream, seed, name),
                kinds.get(name, "sim"),
                bench,
                injection,
                sleep_s=_attended(bench.pass_s, attend) if on_simulated_card else wait_s,
                played=behind_card,
            )
        )
        turns.append(Turn(card.every, period_s, slots, device) if card.every > 1 else None)
    for name, own in own_devices(tables.devices).items():
        device = layout.devices.index(name)
        slots, output_slot = _slots(own, layout)
        at = OwnPlace(slots.start, output_slot, device)
        kind, draws = kinds.get(name, "sim"), partial(stream, seed, name)
        devices.append(build_own(name, config, system, plant, at, draws, kind, now_s))
        turns.append(Turn(own.every, period_s, slots, device) if own.every > 1 else None)
    for i, name in enumerate(supplies_of(tables.devices)):
        supply_kind = kinds.get(name, "sim")
        devices.append(build_supply(name, config, plant, i, supply_kind, now_s, sleep_s, injection))
        turns.append(None)
    rig = Rig(devices, layout, turns)
    return rig
