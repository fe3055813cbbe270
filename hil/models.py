"""Public physics: arrays of cells, their laws, and impacts."""

from hil.errors import ModelError
from hil.mechanics import impact
from hil.systems.array.model import cells
from hil.systems.array.model.cell_array import CellArray

__all__ = ["CellArray", "ModelError", "cells", "impact"]
