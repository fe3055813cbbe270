"""Physics only: no I/O, no clock."""

from hil.models import impact
from hil.models.cell_array import CellArray
from hil.models.network import ModelError

__all__ = ["CellArray", "ModelError", "impact"]
