"""A cell whose series spring is made of two in series."""

from typing import Literal

from hil.config.table import NotNegative, Positive, Records, Table
from hil.systems.array.model import cells
from hil.systems.array.model.cell_kinds import CellKind


class SoftCellTable(Table):
    """A Miga cell with a second series spring."""

    kind: Literal["soft"]
    k_pe_N_per_m: NotNegative
    k_se_N_per_m: Positive
    k_soft_N_per_m: Positive
    k_ae_N_per_m: Positive
    b_N_s_per_m: Positive
    record: Records = None


def build(k_se_N_per_m: float, k_soft_N_per_m: float, **others: float) -> cells.Cell:
    """The cell; 1/k = 1/k_se + 1/k_soft."""
    k_N_per_m = 1.0 / (1.0 / k_se_N_per_m + 1.0 / k_soft_N_per_m)
    return cells.miga(k_se_N_per_m=k_N_per_m, **others)


CELL = CellKind(SoftCellTable, build)
