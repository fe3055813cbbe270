"""What the tables of a rig's devices say together: its channels, outputs and boards."""

from collections.abc import Mapping, Sequence

from hil.config import schema
from hil.config.cards import cards_of
from hil.config.supply import SupplyTable
from hil.frame import unit_suffix
from hil.slots import Channel, RigLayout

GATES = "by cell"  # how gates are numbered, which a broadcast's draws depend on
MAIN_FORCE = "force"  # name of the channel that is controlled unless the rig says otherwise


def channels_of(tables: schema.RigTables) -> tuple[Channel, ...]:
    """Every measured signal of a rig: the cards', then those of devices of one's own."""
    controlled = force_channel(tables)
    channels: list[Channel] = []
    for card in cards_of(tables.devices).values():
        for name, table in card.channels.items():
            if isinstance(table, schema.ForceChannelTable):
                channels.append(Channel(name, "_N", "main" if name == controlled else "further"))
            else:
                channels.append(Channel(name, unit_suffix(table.signal)))
    for own in own_devices(tables.devices).values():
        for name, reading in own.channels.items():
            if reading.signal is None:
                channels.append(Channel(name, "", unit=reading.units))
            else:
                channels.append(Channel(name, unit_suffix(reading.signal)))
    return tuple(channels)


def layout_of(tables: schema.RigTables, cells: Sequence[str]) -> RigLayout:
    """What a rig with these cells consists of: boards first, then cards."""
    devices = tables.devices
    boards = boards_of(devices)
    others = tuple(own_devices(devices))
    lines = [line for card in cards_of(devices).values() for line in card.lines.values()]
    return RigLayout(
        channels=channels_of(tables),
        outputs=tuple(outputs_of(devices)),
        boards=tuple(boards),
        devices=(*boards, *cards_of(devices), *others),
        others=others,
        supplies=tuple(supplies_of(devices)),
        n_cells=len(cells),
        gate_of=_gates_of(devices, cells),
        cell_names=tuple(cells),
        waits=bool(supplies_of(devices)) or any(line.kind == "enable" for line in lines),
        sets_apart=any(board.limits.get("open_cells_max", 0) > 0 for board in boards.values()),
    )


def _gates_of(devices: Mapping[str, schema.DeviceTable], cells: Sequence[str]) -> tuple[int, ...]:
    """The rig's number of every cell's gate: board after board, in the order of their cells."""
    places = [[cells.index(cell) for cell in board.cells] for board in boards_of(devices).values()]
    gates = [cell for board in sorted(places) for cell in board]
    return tuple(gates.index(cell) for cell in range(len(cells)))


def gates_in_the_file(
    devices: Mapping[str, schema.DeviceTable], cells: Sequence[str]
) -> tuple[int, ...]:
    """The same with the boards in the order of the file, as recordings without `gates` have it."""
    gates = [cell for board in boards_of(devices).values() for cell in board.cells]
    return tuple(gates.index(cell) for cell in cells)


def boards_of(devices: Mapping[str, schema.DeviceTable]) -> dict[str, schema.CellBoardTable]:
    """The driver boards."""
    return {n: d for n, d in devices.items() if isinstance(d, schema.CellBoardTable)}


def force_channels(
    devices: Mapping[str, schema.DeviceTable],
) -> dict[str, schema.ForceChannelTable]:
    """The force transducers."""
    return {
        name: channel
        for card in cards_of(devices).values()
        for name, channel in card.channels.items()
        if isinstance(channel, schema.ForceChannelTable)
    }


def force_channel(tables: schema.RigTables) -> str:
    """The channel whose force is controlled, observed and recorded as `force_measured_N`.

    It is `loop.force_channel`; where that is not given, the channel named `force`; where there is
    none of that name, the first one in the file. Empty on a rig without force channels.
    """
    forces = force_channels(tables.devices)
    if tables.loop.force_channel is not None:
        return tables.loop.force_channel
    return MAIN_FORCE if MAIN_FORCE in forces else next(iter(forces), "")


def force_channel_doubts(tables: schema.RigTables) -> list[str]:
    """A line where the file's order decides which force is controlled."""
    forces = force_channels(tables.devices)
    if len(forces) < 2 or tables.loop.force_channel is not None or MAIN_FORCE in forces:
        return []
    taken = force_channel(tables)
    return [
        f"loop.force_channel: missing: of the force channels {', '.join(forces)} the first in the "
        f"file, '{taken}', is controlled: name the one that is meant"
    ]


def with_force_channel(tables: schema.RunTables) -> schema.RunTables:
    """The same tables, saying which of several forces is controlled, for the recording."""
    if len(force_channels(tables.devices)) < 2 or tables.loop.force_channel is not None:
        return tables
    loop = tables.loop.model_copy(update={"force_channel": force_channel(tables)})
    return tables.model_copy(update={"loop": loop})


def supplies_of(devices: Mapping[str, schema.DeviceTable]) -> dict[str, SupplyTable]:
    """The bench supplies."""
    return {n: d for n, d in devices.items() if isinstance(d, SupplyTable)}


def own_devices(
    devices: Mapping[str, schema.DeviceTable],
) -> dict[str, schema.OwnDeviceTable]:
    """The devices of one's own."""
    return {n: d for n, d in devices.items() if isinstance(d, schema.OwnDeviceTable)}


def _instruments(
    devices: Mapping[str, schema.DeviceTable],
) -> list[schema.NidaqTable | schema.OwnDeviceTable]:
    return [*cards_of(devices).values(), *own_devices(devices).values()]


def signals_of(devices: Mapping[str, schema.DeviceTable]) -> dict[str, str]:
    """The signal that every channel measures, in the order of the readings."""
    return {
        name: channel.signal or ""
        for device in _instruments(devices)
        for name, channel in device.channels.items()
    }


def channel_of(measured: Mapping[str, str], signal: str) -> str:
    """The channel that measures a signal, of all channels' signals by name.

    Where several do it is the first one in the file, which `channel_doubts` tells of.
    """
    return next(name for name, what in measured.items() if what == signal)


def channel_doubts(measured: Mapping[str, str], needed: Sequence[str]) -> list[str]:
    """A line for each needed signal that several channels measure."""
    found = []
    for signal in needed:
        names = [name for name, what in measured.items() if what == signal]
        if len(names) > 1:
            found.append(
                f"devices: channels {', '.join(names)} measure '{signal}': '{names[0]}', the first "
                "of them, is followed"
            )
    return found


def outputs_of(
    devices: Mapping[str, schema.DeviceTable],
) -> dict[str, schema.ActuatorTable]:
    """Every output of a rig under the name of its column, in the order of the commands."""
    return {
        f"{name}_commanded{unit_suffix(table.drives)}": table
        for device in _instruments(devices)
        for name, table in device.outputs.items()
    }
