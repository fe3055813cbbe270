"""Configuration -> open devices; read, write, safe and close over all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from hil import wire
from hil.config import Config, schema
from hil.config.crosscheck import force_signal
from hil.devices.cell_board import BoardPlace, CellBoard
from hil.devices.device import Channel, Device, Readings, RigLayout
from hil.devices.native_board import NativeBoard
from hil.devices.port import Port, SerialPort
from hil.devices.sim_daq import SimChannel, SimDaq, SimOutput
from hil.devices.sim_plant import SimPlant
from hil.errors import ConfigError, DeviceError
from hil.frame import Column, Commands, Frame, unit_suffix, units
from hil.models.system import System

BACKENDS = ("sim", "bench")
ANSWER_SHARE = 0.5  # of a period that a board's answer is waited for
COUNTS_MAX = float(2**31 - 1)
CURRENT_ON_A = 0.2  # of a simulated cell whose wire is not modelled: assumed


class Rig:
    """All devices of a run.

    Attributes
    ----------
    layout : RigLayout
    readings : Readings
        What the devices read at the current tick.
    commands : Commands
        What they are told, views of the row.
    """

    readings: Readings
    commands: Commands

    def __init__(self, devices: list[Device], layout: RigLayout) -> None:
        self.layout = layout
        self._devices = devices
        forces = [c for c in layout.channels if c.force]
        self._tare = np.zeros(len(layout.channels))
        self._tared = False
        self._first_of_several = forces[0].name if len(forces) > 1 else ""

    @property
    def columns(self) -> list[Column]:
        sim = any(device.simulated for device in self._devices)
        columns = [column for device in self._devices for column in device.columns]
        columns += [
            Column(
                c.column("measured"),
                units(c.suffix),
                "measured",
                f"{'force' if c.force else 'reading'} on channel {c.name}",
                simulated=sim,
            )
            for c in self.layout.channels
        ]
        if self._first_of_several:
            columns.append(
                Column(
                    f"{self._first_of_several}.force_measured_N",
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
        if self._first_of_several:
            first = next(i for i, c in enumerate(self.layout.channels) if c.force)
            own = frame.index(f"{self._first_of_several}.force_measured_N")
            self._copies.append((first, own))
        self._values, self._bits = frame.values, frame.bits
        self._valid_bits = frame.bit_index("valid_bits")
        self._weights = [1 << i for i in range(len(self.readings.valid))]
        for device in self._devices:
            device.bind(frame, self.readings)

    def open(self) -> None:
        """Connect to all devices; on a failure those already open are closed again."""
        opened: list[Device] = []
        try:
            for device in self._devices:
                device.open()
                opened.append(device)
        except DeviceError:
            _each([device.close for device in opened])
            raise

    def arm(self) -> None:
        """Allow switching: boards prove that they and the rig mean the same limits."""
        for device in self._devices:
            device.arm()

    def tare(self, channel: str, newtons: float) -> None:
        """Take this off a force channel's readings from now on; the first one is also ''.

        Raises
        ------
        ValueError
            There is no such force channel.
        """
        forces = {c.name: i for i, c in enumerate(self.layout.channels) if c.force}
        if not forces or (channel and channel not in forces):
            raise ValueError(f"there is no force channel '{channel}'")
        self._tare[forces[channel] if channel else min(forces.values())] += newtons
        self._tared = True

    def read(self, t_s: float) -> None:
        for device in self._devices:
            device.read(t_s)
        if self._tared:
            self.readings.measured[:] -= self._tare
        self._measured[:] = self.readings.measured
        for slot, column in self._copies:
            self._values[column] = self.readings.measured[slot]
        valid = self.readings.valid.tolist()
        self._bits[self._valid_bits] = sum(
            weight for weight, there in zip(self._weights, valid, strict=True) if there
        )

    def write(self, t_s: float) -> None:
        for device in self._devices:
            device.write(t_s, self.commands)

    def safe(self) -> None:
        """Switch everything off; one device's failure does not keep the others on."""
        _each([device.safe for device in self._devices])

    def close(self) -> None:
        """Let go of all devices, whichever fail."""
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


def _same(port: Port) -> Port:
    return port


def parse_backend(text: str, devices: Mapping[str, schema.DeviceTable]) -> dict[str, str]:
    """`sim`, `bench`, or one a device such as `board=bench,daq=sim`: every device's backend.

    Raises
    ------
    ConfigError
        An unknown backend or device, or a device that has no such backend.
    """
    chosen = dict.fromkeys(devices, "sim")
    for part in text.split(","):
        name, equals, kind = part.strip().partition("=")
        if not equals:
            name, kind = "", name
        if kind not in BACKENDS:
            raise ConfigError(f"--backend {text}: '{kind}' is none of {', '.join(BACKENDS)}")
        if name and name not in chosen:
            raise ConfigError(
                f"--backend {text}: the rig has no device '{name}', only {', '.join(devices)}"
            )
        chosen.update({name: kind} if name else dict.fromkeys(devices, kind))
    for name, kind in chosen.items():
        if kind == "bench" and isinstance(devices[name], schema.NidaqTable):
            raise ConfigError(
                f"--backend {text}: '{name}': this version has no driver for the card itself: "
                f"add {name}=sim"
            )
    return chosen


def layout_of(devices: Mapping[str, schema.DeviceTable], n_cells: int) -> RigLayout:
    """What a rig of these devices consists of: boards first, then cards."""
    channels: list[Channel] = []
    for card in cards_of(devices).values():
        for name, table in card.channels.items():
            if isinstance(table, schema.ForceChannelTable):
                force = "further" if any(c.force for c in channels) else "first"
                channels.append(Channel(name, "_N", force))  # type: ignore[arg-type]
            else:
                channels.append(Channel(name, unit_suffix(table.signal)))
    boards = tuple(n for n, d in devices.items() if isinstance(d, schema.CellBoardTable))
    return RigLayout(
        channels=tuple(channels),
        outputs=tuple(outputs_of(devices)),
        boards=boards,
        devices=(*boards, *cards_of(devices)),
        n_cells=n_cells,
    )


def cards_of(devices: Mapping[str, schema.DeviceTable]) -> dict[str, schema.NidaqTable]:
    """The data acquisition cards among the devices."""
    return {name: d for name, d in devices.items() if isinstance(d, schema.NidaqTable)}


def outputs_of(devices: Mapping[str, schema.DeviceTable]) -> dict[str, schema.OutputTable]:
    """Every output of a rig under the name of its column, in the order of the commands."""
    return {
        f"{name}_commanded{unit_suffix(table.drives)}": table
        for card in cards_of(devices).values()
        for name, table in card.outputs.items()
    }


def build_rig(config: Config, seed: int, backends: Mapping[str, str] | None = None) -> Rig:
    """The rig of a configuration; its simulated devices share one plant.

    Parameters
    ----------
    backends : of every device, as `parse_backend` gives them; by default all are simulated
    """
    tables, period_s = config.tables, config.tables.loop.period_s
    system = config.system(plant=True)
    plant = SimPlant(system, period_s, CURRENT_ON_A)
    boards = {n: d for n, d in tables.devices.items() if isinstance(d, schema.CellBoardTable)}
    cards = cards_of(tables.devices)
    layout = layout_of(tables.devices, len(system.cell_names))
    streams = np.random.SeedSequence(seed).spawn(len(tables.devices))
    rngs = dict(zip(tables.devices, map(np.random.default_rng, streams), strict=True))
    devices: list[Device] = []
    # Boards first: a simulated plant behind a real board follows what that board reports.
    for i, (name, board) in enumerate(boards.items()):
        cells = list(system.cell_names)
        place = BoardPlace(
            gates=tuple(cells.index(cell) for cell in board.cells),
            cell_names=tuple(board.cells),
            slot=len(layout.channels) + i,
            device_slot=i,
        )
        limits = wire.default_limits() | board.limits
        on_bench = backends is not None and backends[name] == "bench"
        connect: Callable[[], Port]
        if on_bench:
            connect = partial(SerialPort, name, board.port)
            plant.follow(place.gates)
        else:
            lost = board.sim.reply_lost_probability
            far_end = NativeBoard(i + 1, limits, lost, rngs[name])
            plant.wire(far_end, place.gates)
            connect = partial(_same, far_end)
        devices.append(
            CellBoard(
                name,
                connect,
                place,
                limits,
                hold_s=board.hold_s,
                answer_timeout_s=ANSWER_SHARE * period_s,
                simulated=not on_bench,
            )
        )
    slot = output_slot = 0
    for i, (name, card) in enumerate(cards.items(), start=len(boards)):
        own = [_sim_channel(n, c, card, config, system) for n, c in card.channels.items()]
        step_V = 2.0 * card.range_V / 2**card.resolution_bits
        outputs = [
            SimOutput(list(system.inputs).index(o.drives), o.units_per_V, step_V, card.range_V)
            for o in card.outputs.values()
        ]
        devices.append(
            SimDaq(name, plant, own, outputs, period_s, rngs[name], slot, output_slot, i)
        )
        slot, output_slot = slot + len(own), output_slot + len(outputs)
    return Rig(devices, layout)


def _sim_channel(
    name: str,
    table: schema.AnyChannelTable,
    card: schema.NidaqTable,
    config: Config,
    system: System,
) -> SimChannel:
    delay_periods = round(table.sim.delay_s / config.tables.loop.period_s)
    lost = table.sim.reading_lost_probability
    if isinstance(table, schema.EncoderChannelTable):
        return SimChannel(
            name=name,
            output=list(system.outputs).index(table.signal),
            raw_unit="counts",
            units_per_raw=2.0 * np.pi / table.counts_per_turn,
            zero_raw=0.0,
            step_raw=1.0,
            low_raw=-COUNTS_MAX,
            high_raw=COUNTS_MAX,
            bandwidth_Hz=np.inf,
            noise_rms_raw=0.0,
            offset_raw=0.0,
            delay_periods=delay_periods,
            reading_lost_probability=lost,
        )
    if isinstance(table, schema.ForceChannelTable):
        signal = table.signal or force_signal(config.tables, config.model)
        units_per_V = table.newtons_per_V
    else:
        signal, units_per_V = table.signal, table.units_per_V
    step_V = 2.0 * card.range_V / 2**card.resolution_bits
    return SimChannel(
        name=name,
        output=list(system.outputs).index(signal),
        raw_unit="V",
        units_per_raw=units_per_V,
        zero_raw=table.zero_V,
        step_raw=step_V,
        low_raw=-card.range_V,
        high_raw=card.range_V - step_V,
        bandwidth_Hz=table.sim.bandwidth_Hz,
        noise_rms_raw=table.sim.noise_rms_V,
        offset_raw=table.sim.offset_V,
        delay_periods=delay_periods,
        reading_lost_probability=lost,
    )
