"""Tables of `[tune]` in a campaign's file: what is searched, and what a setting costs."""

from math import isfinite
from typing import Annotated, Literal

from pydantic import Field, model_validator

from hil.config.table import Table, Title
from hil.config.values import Figures

CONTROLLER = "controller."
EXACT = 2**53  # every integer up to it is a floating-point number


class ParameterTable(Table):
    """A key of the controller that is tuned, with its range.

    `key` is that of the merged configuration, as in `controller.k_p`. `low` is the smallest value,
    `high` the largest. `scale` is `linear`, `log` (equal ratios are equally likely), `integer`, or
    `choice` for one of `choices`. `of` restricts it to some controllers of the comparison:
    `experiment` and factors with the level that each must have.
    """

    key: Title
    scale: Literal["linear", "log", "integer", "choice"] = "linear"
    low: float | None = None
    high: float | None = None
    choices: list[bool | int | float | str] = []
    of: Figures = {}

    @model_validator(mode="after")
    def _has_its_range(self) -> "ParameterTable":
        low, high = self.low, self.high
        if not self.key.startswith(CONTROLLER):
            raise ValueError(f"key = '{self.key}': give a key of the controller ({CONTROLLER}...)")
        if self.scale == "choice":
            if len(self.choices) < 2 or low is not None or high is not None:
                raise ValueError("scale = 'choice' takes two choices or more, without low and high")
            return self
        if low is None or high is None or self.choices:
            raise ValueError(f"scale = '{self.scale}' takes low and high, and no choices")
        if low >= high:
            raise ValueError(f"low = {low:g} is not below high = {high:g}: exchange them")
        if not isfinite(high - low):
            raise ValueError(f"low = {low:g}, high = {high:g}: too far apart: narrow the range")
        if self.scale == "log" and low <= 0.0:
            raise ValueError(f"low = {low:g}: a range on the scale 'log' begins above 0")
        if self.scale == "integer":
            if not (low.is_integer() and high.is_integer()):
                raise ValueError(f"low = {low:g}, high = {high:g}: give whole numbers")
            if max(-low, high) > EXACT:
                raise ValueError(f"low = {low:g}, high = {high:g}: at most {EXACT} (2^53)")
        return self


class TuneTable(Table):
    """Search for the best setting of every controller, before the trials of the table.

    The mean of `cost` over simulated runs becomes as small as possible; `constraint` must hold in
    each run. Both are expressions of the campaign's measures and of the figures that every trial
    has. A setting is tried on `plants` plants, drawn like those of the table and never among them.
    `budget` is the number of settings that are tried of each controller.
    """

    cost: Title
    constraint: Title | None = None
    budget: Annotated[int, Field(ge=1, le=100_000)]
    plants: Annotated[int, Field(ge=1, le=10_000)] = 5
    parameters: Annotated[list[ParameterTable], Field(min_length=1)]
