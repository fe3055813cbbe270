"""`[validation]`: acceptance criteria of a model, defined before the run.

A recording stores them with its configuration, which shows that they are not newer than the run.
"""

from typing import Annotated

from pydantic import Field, model_validator

from hil.config.table import Positive, Table

Share = Annotated[float, Field(gt=0.0, le=1.0)]


class ValidationTable(Table):
    """Acceptance limits, at least one; the whole 95 % interval of a figure must meet its limit.

    The largest root mean square of the residual is `rms_max_N` where the force is compared, and
    `rms_max_m` where a displacement is.
    `coverage_min` is for the fraction of readings within the 95 % band of the combined uncertainty
    of model and channel. `peak_timing_max_s` is for the RMS of the measured minus simulated times
    of ripple peaks.
    """

    rms_max_N: Positive | None = None
    rms_max_m: Positive | None = None
    nrmse_max: Positive | None = None
    vaf_min: Share | None = None
    coverage_min: Share | None = None
    peak_timing_max_s: Positive | None = None

    @model_validator(mode="after")
    def _has_a_limit(self) -> "ValidationTable":
        if all(value is None for value in self.model_dump().values()):
            raise ValueError(
                f"has no limit: give at least one of {', '.join(type(self).model_fields)}"
            )
        return self


class ValidationFile(Table):
    """A separate file with acceptance limits, for a run without `[validation]`."""

    validation: ValidationTable
