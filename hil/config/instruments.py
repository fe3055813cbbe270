"""What the tables of a rig's devices say together: its channels, outputs and boards."""

from collections.abc import Mapping, Sequence

from hil.config import schema
from hil.config.cards import cards_of
from hil.config.supply import SupplyTable
from hil.frame import unit_suffix
from hil.slots import Channel, RigLayout


def layout_of(devices: Mapping[str, schema.DeviceTable], cells: Sequence[str]) -> RigLayout:
    """What a rig of these devices consists of: boards first, then cards."""
    channels: list[Channel] = []
    for card in cards_of(devices).values():
        for name, table in card.channels.items():
            if isinstance(table, schema.ForceChannelTable):
                further = any(c.force for c in channels)
                channels.append(Channel(name, "_N", "further" if further else "first"))
            else:
                channels.append(Channel(name, unit_suffix(table.signal)))
    for own in own_devices(devices).values():
        for name, reading in own.channels.items():
            if reading.signal is None:
                channels.append(Channel(name, "", unit=reading.units))
            else:
                channels.append(Channel(name, unit_suffix(reading.signal)))
    boards = {n: d for n, d in devices.items() if isinstance(d, schema.CellBoardTable)}
    others = tuple(own_devices(devices))
    lines = [line for card in cards_of(devices).values() for line in card.lines.values()]
    gates = [cell for board in boards.values() for cell in board.cells]
    return RigLayout(
        channels=tuple(channels),
        outputs=tuple(outputs_of(devices)),
        boards=tuple(boards),
        devices=(*boards, *cards_of(devices), *others),
        others=others,
        supplies=tuple(supplies_of(devices)),
        n_cells=len(cells),
        gate_of=tuple(gates.index(cell) for cell in cells),
        waits=bool(supplies_of(devices)) or any(line.kind == "enable" for line in lines),
        sets_apart=any(board.limits.get("open_cells_max", 0) > 0 for board in boards.values()),
    )


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


def outputs_of(
    devices: Mapping[str, schema.DeviceTable],
) -> dict[str, schema.ActuatorTable]:
    """Every output of a rig under the name of its column, in the order of the commands."""
    return {
        f"{name}_commanded{unit_suffix(table.drives)}": table
        for device in _instruments(devices)
        for name, table in device.outputs.items()
    }
