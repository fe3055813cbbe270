"""What the tables of a rig's devices say together: its channels, outputs and boards."""

from collections.abc import Mapping, Sequence

from hil.config import schema
from hil.config.cards import cards_of
from hil.frame import unit_suffix
from hil.slots import Channel, RigLayout


def layout_of(devices: Mapping[str, schema.DeviceTable], cells: Sequence[str]) -> RigLayout:
    """What a rig of these devices consists of: boards first, then cards."""
    channels: list[Channel] = []
    for card in cards_of(devices).values():
        for name, table in card.channels.items():
            if isinstance(table, schema.ForceChannelTable):
                force = "further" if any(c.force for c in channels) else "first"
                channels.append(Channel(name, "_N", force))  # type: ignore[arg-type]
            else:
                channels.append(Channel(name, unit_suffix(table.signal)))
    boards = {n: d for n, d in devices.items() if isinstance(d, schema.CellBoardTable)}
    gates = [cell for board in boards.values() for cell in board.cells]
    return RigLayout(
        channels=tuple(channels),
        outputs=tuple(outputs_of(devices)),
        boards=tuple(boards),
        devices=(*boards, *cards_of(devices)),
        n_cells=len(cells),
        gate_of=tuple(gates.index(cell) for cell in cells),
    )


def signals_of(devices: Mapping[str, schema.DeviceTable]) -> dict[str, str]:
    """The signal that every channel measures, in the order of the readings."""
    return {
        name: channel.signal or ""
        for card in cards_of(devices).values()
        for name, channel in card.channels.items()
    }


def outputs_of(devices: Mapping[str, schema.DeviceTable]) -> dict[str, schema.OutputTable]:
    """Every output of a rig under the name of its column, in the order of the commands."""
    return {
        f"{name}_commanded{unit_suffix(table.drives)}": table
        for card in cards_of(devices).values()
        for name, table in card.outputs.items()
    }
