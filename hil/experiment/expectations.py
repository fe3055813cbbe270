"""Figures of a run, and `[[expect]]`: what an experiment must reach to pass."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from hil.config.table import Name, NotNegative, Positive, Table, Title
from hil.errors import remedy
from hil.loop import interlocks

MISSED = "failed_expectations"  # column of a campaign's table
FAULTS = tuple(row.name for row in interlocks.LOOP)
Take = Literal["max", "min", "mean", "last", "rms", "std"]


class MeasureTable(Table):
    """A figure of every trial: a statistic of a column between two times of the experiment.

    With `less` it is that of the column less another one, such as the set point.
    """

    column: str
    less: str | None = None
    take: Take
    from_s: NotNegative = 0.0
    to_s: Positive | None = None
    unit: Title = ""

    @property
    def columns(self) -> list[str]:
        """The columns that it takes."""
        return [self.column, *([] if self.less is None else [self.less])]

    @model_validator(mode="after")
    def _ends_after_start(self) -> "MeasureTable":
        if self.to_s is not None and self.to_s <= self.from_s:
            raise ValueError(f"to_s = {self.to_s:g} is not after from_s = {self.from_s:g}")
        return self


class ExpectTable(Table):
    """One thing that a run must reach to pass: an outcome, or a figure within bounds.

    The figure is a `measure` that every run has, such as `force_tracking_rms_N`, or a statistic of
    a column, `less` another one, between two times, as a campaign's measure. It must lie `above`
    and `below` its bounds. Without an `outcome`, only a complete run passes; `first_fault` is an
    interlock that must have tripped it.
    """

    outcome: Literal["complete", "tripped"] | None = None
    first_fault: Name | None = None
    measure: Title | None = None
    column: str | None = None
    less: str | None = None
    take: Take | None = None
    from_s: NotNegative = 0.0
    to_s: Positive | None = None
    above: Annotated[float, Field(allow_inf_nan=False)] | None = None
    below: Annotated[float, Field(allow_inf_nan=False)] | None = None

    @model_validator(mode="after")
    def _is_one_thing(self) -> "ExpectTable":
        names = [n for n in ("outcome", "measure", "column") if getattr(self, n) is not None]
        if len(names) != 1:
            raise ValueError("give one of outcome, measure (of the summary) and column (with take)")
        if (self.column is None) != (self.take is None):
            raise ValueError("column and take belong together: give both")
        if self.less is not None and self.column is None:
            raise ValueError("less belongs to column: give both")
        if self.first_fault is not None and self.outcome != "tripped":
            raise ValueError("first_fault belongs to outcome = 'tripped'")
        if self.first_fault not in (None, *FAULTS):
            raise ValueError(
                f"first_fault = '{self.first_fault}': no interlock of the loop"
                f"{remedy(str(self.first_fault), FAULTS)}"
            )
        bounds = [bound for bound in (self.above, self.below) if bound is not None]
        if bool(bounds) == (self.outcome is not None):
            raise ValueError(
                "a figure needs a bound: give above or below"
                if self.outcome is None
                else "an outcome has no bounds: remove them"
            )
        if len(bounds) == 2 and bounds[0] >= bounds[1]:
            raise ValueError(f"above = {bounds[0]:g} is not below {bounds[1]:g}")
        _ = self.statistic
        return self

    @property
    def statistic(self) -> MeasureTable | None:
        """The statistic of a column, if that is expected."""
        if self.column is None or self.take is None:
            return None
        return MeasureTable(
            column=self.column, less=self.less, take=self.take, from_s=self.from_s, to_s=self.to_s
        )

    @property
    def what(self) -> str:
        """The figure or fact, as text."""
        if self.outcome is not None:
            return "outcome"
        if self.measure is not None:
            return self.measure
        to_s = "the end" if self.to_s is None else f"{self.to_s:g} s"
        less = "" if self.less is None else f" less {self.less}"
        return f"{self.take} of {self.column}{less} from {self.from_s:g} s to {to_s}"

    @property
    def bounds(self) -> str:
        """What it must be, as text."""
        if self.outcome is not None:
            return self.outcome + (f" by {self.first_fault}" if self.first_fault else "")
        bounds = {"above": self.above, "below": self.below}
        return " and ".join(f"{k} {value:g}" for k, value in bounds.items() if value is not None)
