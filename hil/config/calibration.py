"""Calibration records: one immutable TOML file an act, with a hash of its own content.

A record says which article was calibrated, by whom, when, against what, and what came out. Its
`hash` is over everything else in the file, so that a value changed by hand is found.
"""

import datetime
import hashlib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, model_validator

from hil.config.files import Merged, read_toml
from hil.config.table import NotNegative, Positive, Table, Title
from hil.config.validate import validated
from hil.errors import ConfigError
from hil.signals import Chain


class ArticleTable(Table):
    """The physical thing: serial number included, as on its label."""

    name: Title
    maker: Title
    model: Title
    serial: Title
    capacity_N: Positive


class ActTable(Table):
    """Who, when, against what. `standard` is what it was compared with."""

    by: Title
    date: datetime.date
    valid_until: datetime.date
    method: Title
    standard: Title = ""
    certificate: Title = ""
    software: Title = ""

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

    `covariance_N2` is that of the coefficients; `residual_rms_N` that of the fit.
    """

    kind: Literal["polynomial"]
    coefficients_N: Annotated[list[float], Field(min_length=2, max_length=6)]
    covariance_N2: list[list[float]]
    range_mV_per_V: Annotated[list[float], Field(min_length=2, max_length=2)]
    residual_rms_N: NotNegative | None = None

    @model_validator(mode="after")
    def _fits_together(self) -> "PolynomialTable":
        n = len(self.coefficients_N)
        covariance = self.covariance_N2
        if len(covariance) != n or any(len(row) != n for row in covariance):
            raise ValueError(f"covariance_N2 must be {n} rows of {n}, one a coefficient")
        C = np.array(covariance)
        if not np.allclose(C, C.T) or np.linalg.eigvalsh(C).min() < -1e-9 * abs(C).max():
            raise ValueError("covariance_N2 is no covariance: symmetric, no negative variance")
        if self.coefficients_N[1] == 0.0:
            raise ValueError("coefficients_N has no linear term")
        if self.range_mV_per_V[0] >= self.range_mV_per_V[1]:
            raise ValueError("range_mV_per_V must rise")
        return self


class CommissioningTable(Table):
    """What a healthy channel shows; checks before a run compare with it."""

    zero_mV_per_V: float | None = None
    zero_tolerance_N: Positive | None = None
    noise_rms_mV_per_V: Positive | None = None
    shunt_mV_per_V: float | None = None
    shunt_tolerance_mV_per_V: Positive | None = None


class ForceTransducerRecord(Table):
    """A force transducer, alone or with its conditioner."""

    format: Literal["hil-calibration/1"]
    kind: Literal["force_transducer"]
    status: Literal["certificate", "measured", "literature", "assumed"]
    hash: str
    article: ArticleTable
    act: ActTable
    conditions: ConditionsTable
    conditioner: ConditionerTable | None = None
    model: PolynomialTable
    commissioning: CommissioningTable = CommissioningTable()


@dataclass(frozen=True)
class Calibration:
    """A record as read from its file.

    Attributes
    ----------
    path : Path
    text : str
        The file's content, which a recording keeps.
    record : ForceTransducerRecord
    """

    path: Path
    text: str
    record: ForceTransducerRecord

    @property
    def id(self) -> str:
        """Short name: file and the beginning of the hash."""
        return f"{self.path.stem}@{self.record.hash.removeprefix('sha256:')[:12]}"

    def chain(self, *, bridge: bool) -> Chain:
        """Volts (or, of a bridge card, mV/V) to newtons."""
        coefficients = self.record.model.coefficients_N
        conditioner = self.record.conditioner
        if bridge or conditioner is None:
            return Chain(1.0, 0.0, tuple(coefficients))
        return Chain.conditioned(
            conditioner.gain, conditioner.offset_V, conditioner.excitation_V, coefficients
        )

    def expired(self, today: datetime.date) -> bool:
        return today > self.record.act.valid_until

    def force_uncertainty_N(self, force_N: float) -> float:
        """Standard uncertainty of a force that the coefficients give: sqrt(g^T C g).

        g_k = r^k. Source: JCGM 100:2008 (GUM), eq. (13).
        """
        model = self.record.model
        r = Chain(1.0, 0.0, tuple(model.coefficients_N)).raw(force_N)
        g = r ** np.arange(len(model.coefficients_N))
        return float(np.sqrt(g @ np.array(model.covariance_N2) @ g))


def hash_of(table: Mapping[str, Any]) -> str:
    """`sha256:` of a record's content, its own `hash` left out."""
    content = {key: value for key, value in table.items() if key != "hash"}
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), default=str)
    return f"sha256:{hashlib.sha256(canonical.encode()).hexdigest()}"


def load_record(path: Path, *, named_by: str) -> Calibration:
    """Read a record and check it against its hash.

    Parameters
    ----------
    named_by : file and key that name it, for the error's line

    Raises
    ------
    ConfigError
        It is missing, wrong, or was changed by hand.
    """
    if not path.is_file():
        shown = path if str(path).isprintable() else repr(str(path))
        raise ConfigError(f"{named_by}: no such file: {shown}")
    return _parsed(path, read_toml(path), path.read_text(encoding="utf-8"))


def parse_record(path: Path, text: str) -> Calibration:
    """The record whose text a recording kept; `path` is named in errors."""
    return _parsed(path, tomllib.loads(text), text)


def _parsed(path: Path, table: dict[str, Any], text: str) -> Calibration:
    record = validated(ForceTransducerRecord, Merged(table, [(str(path), table)]))
    content = hash_of(table)
    if record.hash != content:
        raise ConfigError(
            f"{path}: hash: its content is not what was calibrated ({content[:19]}...): take the "
            "original file, or calibrate anew"
        )
    return Calibration(path, text, record)
