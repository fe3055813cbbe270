"""The controlled force of an array: which channel measures it and which cells produce it."""

from functools import lru_cache

from hil.rig.instruments import force_channel, force_channels
from hil.rig.run_tables import RigTables
from hil.systems.array.build import build_activation
from hil.systems.array.build_recruitment import NominalArray
from hil.systems.array.model.activation import CellActivation
from hil.systems.array.model.cell_array import CellArray


def force_signal(tables: RigTables, model: CellArray) -> str:
    """Return the signal that the controlled force channel measures; empty without a channel."""
    channel = force_channels(tables.devices).get(force_channel(tables))
    return "" if channel is None else channel.signal or right_end(model)


def right_end(model: CellArray) -> str:
    """Return the default signal of a force channel: the right end of the first array."""
    return f"{next(iter(model.arrays))}.right_N"


def nominal_of(tables: RigTables, model: CellArray) -> NominalArray:
    """Return the nominal array, which recruitment controllers and the observer use.

    It is the same object for the same model.
    """
    signal = force_signal(tables, model)
    return _nominal(model, tuple(build_activation(tables.model)), signal, tables.loop.period_s)


@lru_cache(maxsize=4)
def _nominal(
    model: CellArray, activation: tuple[CellActivation, ...], signal: str, period_s: float
) -> NominalArray:
    return NominalArray(model, activation, signal, period_s)
