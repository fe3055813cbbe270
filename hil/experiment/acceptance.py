"""`[validation]`: what a model must do to be accepted, written down before the run.

A recording keeps it with its configuration, so that it is as old as the run.
"""

from typing import Annotated

from pydantic import Field, model_validator

from hil.config.table import Positive, Table

Share = Annotated[float, Field(gt=0.0, le=1.0)]


class ValidationTable(Table):
    """Limits that the whole 95 % interval of a figure must keep; at least one.

    `coverage_min` is of the readings that lie within the 95 % band of the model's uncertainty and
    the channel's; `peak_timing_max_s` the RMS of measured less simulated times of ripple peaks.
    """

    rms_max_N: Positive | None = None
    nrmse_max: Positive | None = None
    vaf_min: Share | None = None
    coverage_min: Share | None = None
    peak_timing_max_s: Positive | None = None

    @model_validator(mode="after")
    def _asks_for_something(self) -> "ValidationTable":
        if all(value is None for value in self.model_dump().values()):
            raise ValueError(f"asks for nothing: give {', '.join(type(self).model_fields)}")
        return self


class ValidationFile(Table):
    """A file of its own, for a run that was made without `[validation]`."""

    validation: ValidationTable
