"""The force of an array that is controlled: what measures it, and what its cells give."""

from hil.rig.instruments import force_channel, force_channels
from hil.rig.run_tables import RigTables
from hil.systems.array.build import build_activation
from hil.systems.array.cell_array import CellArray
from hil.systems.array.recruitment.build import NominalArray


def force_signal(tables: RigTables, model: CellArray) -> str:
    """What the controlled force channel measures; empty where the rig has none."""
    channel = force_channels(tables.devices).get(force_channel(tables))
    return "" if channel is None else channel.signal or right_end(model)


def right_end(model: CellArray) -> str:
    """What a force channel measures that does not say: the first array's right end."""
    return f"{next(iter(model.arrays))}.right_N"


def nominal_of(tables: RigTables, model: CellArray) -> NominalArray:
    """What a recruitment controller and the observer know of the rig."""
    signal = force_signal(tables, model)
    return NominalArray(model, build_activation(tables.model), signal, tables.loop.period_s)
