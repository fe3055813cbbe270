"""The table of a functional mock-up unit as plant or twin."""

from typing import Annotated, Literal

from pydantic import Field

from hil.config.table import Positive, Table


class FmuTable(Table):
    """A functional mock-up unit (FMU) of FMI 2.0 or 3.0, run in a process of its own.

    `inputs`, `outputs` and `cells` give the unit's variable for every name in hil. Names of inputs
    and outputs end with their unit; values are converted if the variable declares a unit. A cell's
    variable gets its duty, 0 to 1. `start` sets parameters before initialisation. `interface`
    defaults to co-simulation if the unit has it. A step longer than `step_max_s` is a fault.
    """

    kind: Literal["fmu"]
    file: str
    interface: Literal["co_simulation", "model_exchange"] | None = None
    cells: dict[str, str] = {}
    inputs: dict[str, str] = {}
    outputs: Annotated[dict[str, str], Field(min_length=1)]
    start: dict[str, float] = {}
    tolerance: Positive = 1e-6
    step_max_s: Positive = 5.0
