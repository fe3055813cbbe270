"""Channels, outputs and boards of a rig, collected from its device tables."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from hil.devices.supply_table import SupplyTable
from hil.devices.tables import (
    ActuatorTable,
    CellBoardTable,
    DeviceTable,
    InstrumentTable,
    Role,
)
from hil.loop.channels import Channel, RigLayout
from hil.loop.frame import unit_suffix
from hil.rig.calibrated import cards_of, of_role
from hil.rig.run_tables import RigTables, RunTables

T = TypeVar("T", bound=RunTables)
GATES = "by cell"  # how gates are numbered; the random draws of a broadcast depend on it
AMBIENT = "ambient_C"  # signal of a channel for the ambient temperature, not a model output
IMPORTED = "imported"  # kind of a device that hil cannot reach
MAIN_FORCE = "force"  # name of the controlled channel unless the rig names another


def channels_of(tables: RigTables) -> tuple[Channel, ...]:
    """Every measured channel of a rig: the cards', then those of plug-in devices."""
    controlled = force_channel(tables)
    channels: list[Channel] = []
    for device in _instruments(tables.devices):
        for name, table in device.channels.items():
            if table.force:
                channels.append(Channel(name, "_N", "main" if name == controlled else "further"))
            elif table.signal is None and not table.suffix:
                channels.append(Channel(name, "", unit=table.units))
            else:
                channels.append(Channel(name, table.suffix or unit_suffix(table.signal)))
    return tuple(channels)


def layout_of(tables: RigTables, cells: Sequence[str]) -> RigLayout:
    """The layout of a rig with these cells: boards first, then cards."""
    devices = tables.devices
    boards = boards_of(devices)
    plug_ins = tuple(plugin_devices(devices))
    return RigLayout(
        channels=channels_of(tables),
        outputs=tuple(outputs_of(devices)),
        boards=tuple(boards),
        devices=(*boards, *cards_of(devices), *plug_ins),
        others=plug_ins,
        supplies=tuple(supplies_of(devices)),
        n_cells=len(cells),
        gate_of=_gates_of(devices, cells),
        cell_names=tuple(cells),
        isolates=any(board.limits.get("open_cells_max", 0) > 0 for board in boards.values()),
        senses=any(board.limits.get("sense_every_ms", 0) > 0 for board in boards.values()),
    )


def _gates_of(devices: Mapping[str, DeviceTable], cells: Sequence[str]) -> tuple[int, ...]:
    """Index of each cell's gate in the rig, numbered board by board in the order of the cells."""
    places = [[cells.index(cell) for cell in d.cells_switched] for d in switching(devices).values()]
    gates = [cell for board in sorted(places) for cell in board]
    if receives_only(devices):
        gates = list(range(len(cells)))
    return tuple(gates.index(cell) for cell in range(len(cells)))


def gates_in_the_file(devices: Mapping[str, DeviceTable], cells: Sequence[str]) -> tuple[int, ...]:
    """Gate indices with the boards in file order, as in recordings without attribute `gates`."""
    gates = [cell for board in boards_of(devices).values() for cell in board.cells]
    return tuple(gates.index(cell) for cell in cells)


def switching(devices: Mapping[str, DeviceTable]) -> dict[str, Any]:
    """The devices that switch cells: boards first, then cards, then plug-in devices."""
    order: tuple[Role, ...] = ("board", "card", "instrument")
    return {
        name: device
        for role in order
        for name, device in of_role(role, devices).items()
        if device.cells_switched
    }


def receives_only(devices: Mapping[str, DeviceTable]) -> bool:
    """Whether all readings come from files (`hil import`): nothing is switched, or guarded."""
    return all(device.kind == IMPORTED for device in devices.values())


def can_be_cut(devices: Mapping[str, DeviceTable]) -> bool:
    """Whether a trip can switch the cells' supply off: by an enable line, or by the supply."""
    return bool(supplies_of(devices)) or any(device.enable_lines for device in devices.values())


def boards_of(devices: Mapping[str, DeviceTable]) -> dict[str, CellBoardTable]:
    """The driver boards."""
    return of_role("board", devices)


def force_channels(
    devices: Mapping[str, DeviceTable],
) -> dict[str, Any]:
    """The force channels: those of cards, then those of instruments."""
    return {
        name: channel
        for device in _instruments(devices)
        for name, channel in device.channels.items()
        if channel.force
    }


def device_of(devices: Mapping[str, DeviceTable], channel: str) -> str:
    """The name of the card or instrument that has this channel."""
    return next(
        name
        for name, device in (cards_of(devices) | plugin_devices(devices)).items()
        if channel in device.channels
    )


def force_channel(tables: RigTables) -> str:
    """The channel whose force is controlled, observed and recorded as `force_measured_N`.

    It is `loop.force_channel`; without that key, the channel named `force`; if none has that
    name, the first one in the file. Empty on a rig without force channels.
    """
    forces = force_channels(tables.devices)
    if tables.loop.force_channel is not None:
        return tables.loop.force_channel
    return MAIN_FORCE if MAIN_FORCE in forces else next(iter(forces), "")


def force_channel_doubts(tables: RigTables) -> list[str]:
    """A warning if the controlled force depends on the order in the file."""
    forces = force_channels(tables.devices)
    if len(forces) < 2 or tables.loop.force_channel is not None or MAIN_FORCE in forces:
        return []
    taken = force_channel(tables)
    return [
        f"loop.force_channel: missing: the rig has the force channels {', '.join(forces)}, and "
        f"the first in the file, '{taken}', is controlled: set loop.force_channel"
    ]


def with_force_channel(tables: T) -> T:
    """Copy of the tables with `loop.force_channel` set, for the recording."""
    if len(force_channels(tables.devices)) < 2 or tables.loop.force_channel is not None:
        return tables
    loop = tables.loop.model_copy(update={"force_channel": force_channel(tables)})
    return tables.model_copy(update={"loop": loop})


def supplies_of(devices: Mapping[str, DeviceTable]) -> dict[str, SupplyTable]:
    """The bench supplies."""
    return of_role("supply", devices)


def plugin_devices(
    devices: Mapping[str, DeviceTable],
) -> dict[str, InstrumentTable]:
    """Instruments that are not cards: plug-in devices from files and packages."""
    return of_role("instrument", devices)


def _instruments(
    devices: Mapping[str, DeviceTable],
) -> list[Any]:
    """Devices with channels and outputs, in the order of the readings."""
    return [*cards_of(devices).values(), *plugin_devices(devices).values()]


def signals_of(devices: Mapping[str, DeviceTable]) -> dict[str, str]:
    """Signal that each channel measures, in the order of the readings; '' if none."""
    return {
        name: channel.signal or ""
        for device in _instruments(devices)
        for name, channel in device.channels.items()
    }


def channel_of(measured: Mapping[str, str], signal: str) -> str:
    """Name of the channel that measures a signal; `measured` maps channels to signals.

    If there are several, it is the first one in the file, and `channel_doubts` warns.
    """
    return next(name for name, what in measured.items() if what == signal)


def channel_doubts(measured: Mapping[str, str], needed: Sequence[str]) -> list[str]:
    """A warning for each needed signal that several channels measure."""
    doubts = []
    for signal in needed:
        names = [name for name, what in measured.items() if what == signal]
        if len(names) > 1:
            doubts.append(
                f"devices: channels {', '.join(names)} measure '{signal}': hil uses the first, "
                f"'{names[0]}'"
            )
    return doubts


def outputs_of(
    devices: Mapping[str, DeviceTable],
) -> dict[str, ActuatorTable]:
    """Every output of a rig by the name of its column, in the order of the commands."""
    return {
        f"{name}_commanded{unit_suffix(table.drives)}": table
        for device in _instruments(devices)
        for name, table in device.outputs.items()
    }
