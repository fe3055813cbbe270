"""The kinds of cells, by the `kind` of `[model.arrays.NAME.cell]`, in one dict.

An installed package can add kinds through an entry point in GROUP that refers to a `CellKind`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

from pydantic import Field

from hil.config.table import NotNegative, Positive, Records, Table
from hil.plugins.descriptors import installed
from hil.systems.array.model import cells

GROUP = "hil.cells"


@dataclass(frozen=True)
class CellKind:
    """A kind of cell.

    Attributes
    ----------
    table : its configuration keys, including `kind`
    build : returns the cell from the other keys, passed by name; ValueError for invalid values
    """

    table: type[Table]
    build: Callable[..., cells.Cell]


class SpringCellTable(Table):
    """Three springs and one damper."""

    k_pe_N_per_m: NotNegative
    k_se_N_per_m: Positive
    k_ae_N_per_m: Positive
    b_N_s_per_m: Positive
    record: Records = None


class HillCellTable(SpringCellTable):
    """A Hill cell: three springs, one damper."""

    kind: Literal["hill"]


class MigaCellTable(SpringCellTable):
    """A Miga cell: three springs, one damper."""

    kind: Literal["miga"]


class TwoDamperCellTable(Table):
    kind: Literal["two_damper"]
    k_pe_N_per_m: NotNegative
    k_se_N_per_m: Positive
    k_ae_N_per_m: Positive
    b_se_N_s_per_m: Positive
    b_ae_N_s_per_m: Positive
    record: Records = None


class CustomCellTable(Table):
    """Coefficients as arrays; see `hil.systems.array.model.cells`."""

    kind: Literal["custom"]
    Ke: float = 0.0
    Kv: float = 0.0
    Kf: float = 0.0
    Kd: list[float] = Field(default=[])
    Ze: list[float] = Field(default=[])
    Zv: list[float] = Field(default=[])
    I: list[list[float]] = Field(default=[])  # noqa: E741  the paper's letter (iota)
    Kp: list[float] = Field(default=[])


BUILT_IN: Mapping[str, CellKind] = {
    "hill": CellKind(HillCellTable, cells.hill),
    "miga": CellKind(MigaCellTable, cells.miga),
    "two_damper": CellKind(TwoDamperCellTable, cells.two_damper),
    "custom": CellKind(CustomCellTable, cells.custom),
}


@cache
def cell_kinds() -> Mapping[str, CellKind]:
    """Return every kind of cell, including those of installed packages.

    Raises
    ------
    ConfigError
        An installed kind cannot be imported, or its name is already in use.
    """
    return {**BUILT_IN, **installed(GROUP, BUILT_IN)}
