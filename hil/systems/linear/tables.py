"""The table of a linear system."""

from typing import Annotated, Literal

from pydantic import Field

from hil.config.table import Table


class LinearTable(Table):
    """A linear system, x' = A x + B u, y = C x + D u, from rest.

    Names of `inputs` and `outputs` end with their unit, such as `motor.force_N`; a name
    without a unit is dimensionless.
    """

    kind: Literal["linear"]
    inputs: Annotated[list[str], Field(min_length=1)]
    outputs: Annotated[list[str], Field(min_length=1)]
    A: list[list[float]]
    B: list[list[float]]
    C: list[list[float]]
    D: list[list[float]] | None = None
