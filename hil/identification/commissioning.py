"""Fits the model of an array to the run that commissions it; see `hil.experiment.kind.Fitting`."""

from collections.abc import Iterable, Mapping
from typing import Any

from hil.errors import ConfigError
from hil.experiment.kind import Fitted, Fitting
from hil.experiment.loaded import Experiment
from hil.identification import parameters
from hil.identification.identify import Options, identify_files


def check(config: Experiment, fitting: Fitting) -> None:
    """Refuse an experiment that does not switch cells, and names that no parameter has.

    Raises
    ------
    ConfigError
        The message begins with the key of `Fitting`, or with `experiment`.
    """
    if config.modulates:
        raise ConfigError("experiment: its controller commands duties: give one that switches "
                          "cells on and off, such as a schedule")  # fmt: skip
    tables = parameters.expanded(parameters.tables_of(config.tables.model), fitting.each)
    known = parameters.candidates(tables)
    parameters.matching(fitting.free, known, "free:")
    parameters.matching(fitting.fix, known, "fix:")


def fit(config: Experiment, fitting: Fitting) -> Fitted:
    """Fit the model to a recording of this experiment.

    Raises
    ------
    ConfigError
        As `hil.identification.identify.identify_files`.
    """
    options = Options(fitting.free, fitting.fix, fitting.each, bootstrap=0, weak=False)
    _, model = identify_files([fitting.recording], options)
    values = {one.key: one.value for one in model.parameters}
    return Fitted(values, model.adequacy.adequate, _known(config, values, fitting.each))


def _known(
    config: Experiment, fitted: Mapping[str, float], each: Iterable[str]
) -> dict[str, object]:
    model = parameters.expanded(parameters.tables_of(config.tables.model), each)
    plant = parameters.tables_of(config.tables.plant)
    for key, value in fitted.items():
        parameters.put(model, key, value)
    known: dict[str, object] = {}
    for key in dict.fromkeys(map(_whole, fitted)):
        known |= {f"model.{key}": _value(model, key), f"plant.{key}": _value(plant, key)}
    return known


def _whole(key: str) -> str:
    """The key of the value or list that an entry of a list is in."""
    parts = key.split(".")
    return ".".join(parts[: next((i for i, p in enumerate(parts) if p.isdigit()), len(parts))])


def _value(tables: parameters.Tables, key: str) -> object:
    value: Any = tables
    for part in key.split("."):
        value = value[0][part] if isinstance(value, list) else value[part]
    return [_plain(one) for one in value] if isinstance(value, list) else value


def _plain(value: object) -> object:
    """A value of a list; a table without the records that its fitted values depart from."""
    return {k: v for k, v in value.items() if k != "record"} if isinstance(value, dict) else value
