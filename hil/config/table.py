"""Base class of configuration tables, and types of their values."""

import inspect
import re
from collections.abc import Callable
from typing import Annotated, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
)

T = TypeVar("T")
Positive = Annotated[float, Field(gt=0.0)]
NotNegative = Annotated[float, Field(ge=0.0)]
Delay = Annotated[float, Field(ge=0.0, le=10.0)]
Probability = Annotated[float, Field(ge=0.0, le=1.0)]
SupplyVoltage = Annotated[float, Field(gt=0.0, le=1000.0)]
OhmPerMetre = Annotated[float, Field(ge=1e-3, le=1e8)]  # covers any SMA wire
Celsius = Annotated[float, Field(ge=-273.0, le=1000.0)]
Pair = Annotated[list[float], Field(min_length=2, max_length=2)]


def as_list(value: T | list[T]) -> list[T]:
    return value if isinstance(value, list) else [value]


def _name(value: str) -> str:
    # Names become part of column and group names, in which '.' and '/' are separators.
    if not re.fullmatch(r"\w[\w-]*", value):
        raise ValueError("a name has only letters, digits, '_' and '-'")
    return value


def _slope(value: float) -> float:
    if value == 0.0:
        raise ValueError("must not be 0: a reading would have no effect")
    return value


def _title(value: str) -> str:
    if not value.isprintable():
        raise ValueError("must be one line of plain text")
    return value


def cell_list(value: object) -> list[int | str]:
    if not isinstance(value, list) or any(type(cell) not in (int, str) for cell in value):
        raise ValueError("must be a list of cell numbers (from 1) or names")
    return value


def _cells(value: object) -> object:
    return value if value == "all" else cell_list(value)


Name = Annotated[str, AfterValidator(_name)]
Title = Annotated[str, AfterValidator(_title)]
Slope = Annotated[float, AfterValidator(_slope)]  # units of a reading for one of its raw value
Address = Annotated[str, Field(min_length=1), AfterValidator(_title)]  # of a device or terminal
# Paths of the calibrations that a table's values come from (`hil.calibration.sources`).
Records = Annotated[list[str], BeforeValidator(as_list), Field(min_length=1)] | None
Cells = Annotated[Literal["all"] | list[int | str], PlainValidator(_cells)]


def same_named(kind: Callable[..., T], table: BaseModel) -> T:
    """Build a dataclass from the values of a table that have the names of its fields."""
    names = inspect.signature(kind).parameters
    return kind(
        **{name: getattr(table, name) for name in names if name in type(table).model_fields}
    )


class Table(BaseModel):
    """A TOML table: strict types, no unknown keys, no change after loading."""

    model_config = ConfigDict(
        strict=True, extra="forbid", frozen=True, allow_inf_nan=False, populate_by_name=True
    )
