"""Tables of calibration records, one TOML file a session; `hil.calibration.files` reads them.

The record of a force transducer contains its polynomial. Every other record contains values under
the names of the configuration's keys, with their covariance.
"""

import datetime
from typing import Annotated, Literal

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field, model_validator

from hil.config.table import NotNegative, Positive, Table, Title

Status = Literal["certificate", "measured", "literature", "assumed", "simulated"]
Kind = Literal[
    "spring_constants", "damping", "activation", "cell_force", "masses", "encoder",
    "displacement_sensor", "pantograph_geometry", "daq_channel", "latency", "parameters",
    "bring_up",
]  # fmt: skip


class ThingTable(Table):
    """The calibrated article, with the serial number on its label."""

    name: Title
    maker: Title = ""
    model: Title = ""
    serial: Title


class ArticleTable(ThingTable):
    """A force transducer with its rated capacity."""

    maker: Title
    model: Title
    capacity_N: Positive


class ActTable(Table):
    """Operator, dates, method and reference standard of a calibration.

    `supersedes` has the hashes of the records that this one replaces from `date` on. Their own
    validity may end later, because a record is never changed.
    """

    by: Title
    date: datetime.date
    valid_until: datetime.date
    method: Title
    standard: Title = ""
    certificate: Title = ""
    software: Title = ""
    supersedes: list[str] = []

    @model_validator(mode="after")
    def _ends_later(self) -> "ActTable":
        if self.valid_until < self.date:
            raise ValueError("valid_until is before date")
        return self


class ConditionsTable(Table):
    temperature_C: float
    humidity_percent: NotNegative | None = None
    mounting: Title = ""


class ConditionerTable(Table):
    """V = offset_V + 1e-3 gain excitation_V r, with r in mV/V."""

    name: Title
    serial: Title
    gain: Positive
    offset_V: float = 0.0
    excitation_V: Positive
    bandwidth_Hz: Positive | None = None


class PolynomialTable(Table):
    """F = sum_k coefficients_N[k] r^k, r the deflection in mV/V within `range_mV_per_V`.

    `covariance_N2` is the covariance of the coefficients, `residual_rms_N` the residual of the fit.
    """

    kind: Literal["polynomial"]
    coefficients_N: Annotated[list[float], Field(min_length=2, max_length=6)]
    covariance_N2: list[list[float]]
    range_mV_per_V: Annotated[list[float], Field(min_length=2, max_length=2)]
    residual_rms_N: NotNegative | None = None

    @model_validator(mode="after")
    def _fits_together(self) -> "PolynomialTable":
        n = len(self.coefficients_N)
        refuse_no_covariance(self.covariance_N2, n, "covariance_N2", "coefficient")
        if self.coefficients_N[1] == 0.0:
            raise ValueError("coefficients_N has no linear term")
        if self.range_mV_per_V[0] >= self.range_mV_per_V[1]:
            raise ValueError("range_mV_per_V must rise")
        return self


class CommissioningTable(Table):
    """Readings of a healthy channel, with which the checks before a run compare."""

    zero_mV_per_V: float | None = None
    zero_tolerance_N: Positive | None = None
    noise_rms_mV_per_V: Positive | None = None
    shunt_mV_per_V: float | None = None
    shunt_tolerance_mV_per_V: Positive | None = None


class RawTable(Table):
    """The raw readings by column. `hash` covers `data`; `files` has hashes of recordings."""

    hash: str
    data: dict[str, list[float] | list[str]] = {}
    files: dict[str, str] = {}


class FitTable(Table):
    """Errors of a transducer under dead weights [N].

    Hysteresis is the largest difference between a decreasing and an increasing reading of one
    force. Nonlinearity is the largest distance from the line through the ends. Repeatability is the
    largest range of equal runs. Creep is the change under a constant load.
    `span_between_runs` is the relative standard deviation of the sensitivity from run to run. The
    lower limit factor is 2.4 standard deviations of the fit; `class_a_min_N` is 400 times this
    factor.

    Source: ASTM E74 (lower limit factor; lower limit of the loading range of class A).
    """

    residuals_N: list[float]
    degrees_of_freedom: Annotated[int, Field(ge=1)]
    lower_limit_factor_N: NotNegative
    class_a_min_N: NotNegative
    nonlinearity_N: NotNegative
    hysteresis_N: NotNegative | None = None
    repeatability_N: NotNegative | None = None
    creep_N: float | None = None
    effective_degrees_of_freedom: float | None = None
    span_between_runs: NotNegative | None = None


class ForceTransducerRecord(Table):
    """Record of a force transducer, alone or with its conditioner."""

    format: Literal["hil-calibration/1", "hil-calibration/2"]
    kind: Literal["force_transducer"]
    status: Status
    hash: str
    article: ArticleTable
    act: ActTable
    conditions: ConditionsTable
    conditioner: ConditionerTable | None = None
    model: PolynomialTable
    commissioning: CommissioningTable = CommissioningTable()
    raw: RawTable | None = None
    fit: FitTable | None = None


Basis = Literal["measured", "certificate", "published", "derived", "assumed"]


class ValuesTable(Table):
    """Fitted values: `names` are keys of the configuration's table that names the record.

    A name may be a path with numbers from 1 for entries of a list: `mass_kg.3`,
    `muscles.TA.path.2.at_m.1`. `covariance` is that of `values`, in products of their units;
    `uncertainties` replace it for independent values. `basis` states the origin of each value,
    `equation` the fitted equation.
    """

    kind: Title
    equation: Title = ""
    names: Annotated[list[Title], Field(min_length=1)]
    values: list[float]
    covariance: list[list[float]] = []
    uncertainties: list[NotNegative] = []
    basis: list[Basis] = []
    degrees_of_freedom: NotNegative | None = None
    residual_rms: NotNegative | None = None
    residuals: list[float] = []

    @model_validator(mode="after")
    def _fits_together(self) -> "ValuesTable":
        n = len(self.names)
        if len(set(self.names)) != n:
            raise ValueError("names has a duplicate")
        if len(self.values) != n or (self.basis and len(self.basis) != n):
            raise ValueError(f"values and basis must have {n} entries, one a name")
        if bool(self.covariance) == bool(self.uncertainties):
            raise ValueError("give covariance, or uncertainties where values are independent")
        if self.covariance:
            refuse_no_covariance(self.covariance, n, "covariance", "name")
        elif len(self.uncertainties) != n:
            raise ValueError(f"uncertainties must have {n} entries, one a name")
        return self


class ValuesRecord(Table):
    """Record of anything except a force transducer."""

    format: Literal["hil-calibration/2"]
    kind: Kind
    status: Status
    hash: str
    article: ThingTable
    act: ActTable
    conditions: ConditionsTable | None = None
    model: ValuesTable
    raw: RawTable | None = None
    notes: dict[str, Title] = {}


def refuse_no_covariance(matrix: ArrayLike, n: int, key: str, each: str) -> None:
    """ValueError for a matrix that is not a covariance of n values."""
    try:
        C = np.array(matrix, dtype=float)
    except ValueError:
        C = np.zeros(0)
    if C.shape != (n, n):
        raise ValueError(f"{key} must be {n} rows of {n}, one a {each}")
    # The units of the values differ, so the check uses correlations.
    scale = np.sqrt(np.abs(np.diag(C)))
    scale[scale == 0.0] = 1.0
    R = C / np.outer(scale, scale)
    if not np.allclose(R, R.T) or np.linalg.eigvalsh(R).min() < -1e-9 * max(1.0, np.abs(R).max()):
        raise ValueError(
            f"{key} is not a covariance: it must be symmetric and positive semidefinite"
        )
