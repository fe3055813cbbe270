"""Public physics: arrays of cells, their laws and wires, and impacts."""

from hil.errors import ModelError
from hil.mechanics import impact
from hil.mechanics.sma.wire import SmaWire
from hil.systems.array.model import cells
from hil.systems.array.model.activation import CellActivation
from hil.systems.array.model.cell_array import CellArray

__all__ = ["CellActivation", "CellArray", "ModelError", "SmaWire", "cells", "impact"]
