"""What a standard test consists of."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import xarray as xr

from hil.config.table import Table
from hil.procedures.standard_tests.subject import Subject

Results = dict[str, object]


@dataclass(frozen=True)
class Plan:
    """The trials of a test: `duration_s` and `steps` of the experiment, repeats, and factors.

    `factors` are tables of a campaign's file; `outputs` are curves of a schedule.
    """

    duration_s: float
    steps: list[dict[str, object]]
    repeats: int = 1
    factors: Mapping[str, Any] = field(default_factory=dict)
    outputs: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Trial:
    """A complete trial: its levels by factor, and its recording."""

    levels: Mapping[str, Any]
    run: xr.Dataset


@dataclass(frozen=True)
class TestKind:
    """A test that is a campaign.

    Attributes
    ----------
    values : table of its settings
    plan : (values, subject) -> its trials
    analyse : (values, subject, trials, folder) -> results, as a study's (`hil.runs.study`)
    """

    __test__ = False  # pytest: not a class of tests

    values: type[Table]
    plan: Callable[[Any, Subject], Plan]
    analyse: Callable[[Any, Subject, Sequence[Trial], Path], Results]


def level_name(value: float, unit: str) -> str:
    """The name of a factor's level, `0_5_N` for 0.5 N: names have no decimal point."""
    return f"{value:g}".replace(".", "_") + f"_{unit}"
