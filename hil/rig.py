"""Configuration -> open devices; read, write, safe and close over all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from hil import wire
from hil.config import Config, schema
from hil.config.crosscheck import force_signal
from hil.devices.cell_board import BoardPlace, CellBoard
from hil.devices.device import Device, Readings
from hil.devices.native_board import NativeBoard
from hil.devices.port import Port, SerialPort
from hil.devices.sim_daq import SimDaq, SimForceChannel
from hil.devices.sim_plant import SimPlant
from hil.errors import ConfigError, DeviceError
from hil.frame import Column, Frame
from hil.models.array_system import ArraySystem

BACKENDS = ("sim", "bench")
ANSWER_SHARE = 0.5  # of a period that a board's answer is waited for
CURRENT_ON_A = 0.2  # of a simulated cell whose wire is not modelled: assumed


class Rig:
    """All devices of a run.

    Attributes
    ----------
    readings : Readings
        What they read at the current tick.
    cells_commanded : (N,) uint8 array
        The command, a view of the row.
    """

    readings: Readings

    def __init__(
        self, devices: list[Device], channels: list[str], boards: list[str], n_cells: int
    ) -> None:
        self._devices = devices
        self._channels = channels
        self._boards = boards
        self._n_cells = n_cells

    @property
    def columns(self) -> list[Column]:
        sim = any(device.simulated for device in self._devices)
        columns = [column for device in self._devices for column in device.columns]
        columns.append(
            Column(
                "force_measured_N",
                "N",
                "measured",
                f"force on channel {self._channels[0]}",
                simulated=sim,
            )
        )
        if len(self._channels) > 1:
            columns += [
                Column(
                    f"{name}.force_measured_N",
                    "N",
                    "measured",
                    f"force on channel {name}",
                    simulated=sim,
                )
                for name in self._channels
            ]
        return [
            *columns,
            Column(
                "valid_bits",
                "1",
                "measured",
                "readings that are there at this tick",
                flags=(*self._channels, *self._boards),
            ),
            Column(
                "cells_commanded",
                "1",
                "commanded",
                "cells switched on (1) from t_s on",
                n_cells=self._n_cells,
            ),
            Column(
                "cells_reported",
                "1",
                "measured",
                "cells that the boards report on (1) at t_s",
                n_cells=self._n_cells,
                simulated=sim,
            ),
        ]

    @property
    def simulated(self) -> list[str]:
        """Names of the devices that are simulated."""
        return [device.name for device in self._devices if device.simulated]

    def bind(self, frame: Frame) -> None:
        """Give every device its place in the row."""
        n_channels = len(self._channels)
        self.cells_commanded = frame.cells("cells_commanded")
        self.readings = Readings(
            forces_N=np.full(n_channels, np.nan),
            valid=np.zeros(n_channels + len(self._boards), dtype=bool),
            ages_s=np.zeros(len(self._devices)),
            cells_reported=frame.cells("cells_reported"),
            board_faults=np.zeros(len(self._boards), dtype=np.int64),
        )
        self._values, self._bits = frame.values, frame.bits
        self._valid_bits = frame.bit_index("valid_bits")
        self._force = frame.index("force_measured_N")
        self._each = [
            frame.index(f"{name}.force_measured_N") for name in self._channels if n_channels > 1
        ]
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

    def read(self, t_s: float) -> None:
        for device in self._devices:
            device.read(t_s)
        r = self.readings
        self._values[self._force] = r.forces_N[0]
        for i, column in enumerate(self._each):
            self._values[column] = r.forces_N[i]
        valid = r.valid.tolist()
        self._bits[self._valid_bits] = sum(
            weight for weight, there in zip(self._weights, valid, strict=True) if there
        )

    def write(self, t_s: float) -> None:
        for device in self._devices:
            device.write(t_s, self.cells_commanded)

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


def build_rig(config: Config, seed: int, backends: Mapping[str, str] | None = None) -> Rig:
    """The rig of a configuration; its simulated devices share one plant.

    Parameters
    ----------
    backends : of every device, as `parse_backend` gives them; by default all are simulated
    """
    tables, period_s = config.tables, config.tables.loop.period_s
    system = ArraySystem(config.plant, config.activation(plant=True), period_s)
    plant = SimPlant(system, period_s, CURRENT_ON_A)
    boards = {n: d for n, d in tables.devices.items() if isinstance(d, schema.CellBoardTable)}
    cards = {n: d for n, d in tables.devices.items() if isinstance(d, schema.NidaqTable)}
    channels = [name for card in cards.values() for name in card.channels]
    streams = np.random.SeedSequence(seed).spawn(len(tables.devices))
    rngs = dict(zip(tables.devices, map(np.random.default_rng, streams), strict=True))
    devices: list[Device] = []
    # Boards first: a simulated plant behind a real board follows what that board reports.
    for i, (name, board) in enumerate(boards.items()):
        cells = config.model.cell_names
        place = BoardPlace(
            gates=tuple(cells.index(cell) for cell in board.cells),
            cell_names=tuple(board.cells),
            slot=len(channels) + i,
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
    first_channel = 0
    for i, (name, card) in enumerate(cards.items(), start=len(boards)):
        own = [
            SimForceChannel(
                name=channel_name,
                output=config.plant.outputs.index(
                    channel.signal or force_signal(tables, config.model)
                ),
                newtons_per_V=channel.newtons_per_V,
                zero_V=channel.zero_V,
                bandwidth_Hz=channel.sim.bandwidth_Hz,
                noise_rms_V=channel.sim.noise_rms_V,
                offset_V=channel.sim.offset_V,
                reading_lost_probability=channel.sim.reading_lost_probability,
            )
            for channel_name, channel in card.channels.items()
        ]
        devices.append(
            SimDaq(
                name,
                plant,
                own,
                card.range_V,
                card.resolution_bits,
                period_s,
                rngs[name],
                first_channel,
                i,
            )
        )
        first_channel += len(own)
    return Rig(devices, channels, list(boards), config.model.n_cells)
