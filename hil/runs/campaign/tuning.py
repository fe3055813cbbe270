"""Search for the best setting of each controller of a campaign, by Optuna's sampler.

Settings are proposed in rounds of ROUND. What a round proposes follows from the campaign's seed and
from the results of the rounds before it alone: not from the number of processes, nor from the order
in which they finish, nor from an interruption.
"""

from __future__ import annotations

import logging
import math
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hil.config.values import Figures
from hil.errors import ConfigError, missing_extra, one_line
from hil.runs.campaign.expression import Expression
from hil.runs.campaign.tables import CampaignTables, same_level
from hil.runs.campaign.tune_tables import CONTROLLER, ParameterTable, TuneTable

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

ROUND = 4
"""Settings of a controller that are proposed at once: more run in parallel, fewer learn sooner."""
STREAM = 0x7E57  # keeps the draws of the search apart from those of plants and noise
EDGE = 0.01  # of a range, on its scale: a best setting so near its end may lie beyond it
Levels = Mapping[str, object]
Setting = Figures
Combination = tuple[str, Sequence[tuple[str, object]]]  # experiment; level of each factor


@dataclass(frozen=True)
class Controller:
    """One controller of a comparison: an experiment with the levels of its factors.

    Attributes
    ----------
    index : counts from 0 in the order of the campaign's file
    levels : of the factors that change the controller; other factors do not tell controllers apart
    parameters : what is tuned of it
    """

    index: int
    experiment: str
    levels: Levels
    parameters: Sequence[ParameterTable] = field(repr=False)

    def __str__(self) -> str:
        levels = [f"{name} {level}" for name, level in self.levels.items()]
        return ", ".join([Path(self.experiment).stem, *levels])

    def has(self, experiment: str, levels: Levels) -> bool:
        """Whether a trial of this experiment with these levels runs this controller."""
        mine = all(levels[name] == level for name, level in self.levels.items())
        return experiment == self.experiment and mine


@dataclass(frozen=True)
class Tried:
    """A setting with its result.

    Attributes
    ----------
    number : counts from 0 for each controller
    cost : mean over all runs; infinite if one of them has none
    broken : share of the runs that tripped, or in which the constraint did not hold
    """

    number: int
    setting: Setting
    cost: float
    broken: float

    @property
    def fits(self) -> bool:
        """Whether it may be chosen."""
        return self.broken == 0.0 and math.isfinite(self.cost)


def controllers_of(
    where: str,
    tables: CampaignTables,
    combinations: Sequence[Combination],
) -> list[Controller]:
    """The controllers of a campaign, in order of its combinations.

    Raises
    ------
    ConfigError
        A parameter is of no controller, or is also set by a factor.
    """
    if tables.tune is None:
        return []
    of_control = set()
    for name, table in tables.factors.items():
        if table.is_weight:
            of_control.add(name)
        keys = {key for label in table.labels for key in table.sets(label)}
        if any(key.startswith(CONTROLLER) or key == CONTROLLER[:-1] for key in keys):
            of_control.add(name)
        for i, p in enumerate(tables.tune.parameters):
            if p.key in keys:
                raise ConfigError(
                    f"{where}: tune.parameters.{i}: '{p.key}' is set by factors.{name} too: "
                    "remove one of them"
                )
    controllers: list[Controller] = []
    for experiment, pairs in combinations:
        levels = {name: level for name, level in pairs if name in of_control}
        if not any(one.experiment == experiment and one.levels == levels for one in controllers):
            whose = {"experiment": experiment, **levels}
            tuned = [p for p in tables.tune.parameters if _is_of(p, whose)]
            controllers.append(Controller(len(controllers), experiment, levels, tuned))
    for i, p in enumerate(tables.tune.parameters):
        if not any(p in one.parameters for one in controllers):
            choose = ["experiment", *sorted(of_control)]
            raise ConfigError(
                one_line(f"{where}: tune.parameters.{i}.of = {p.of!r}: no controller of the ")
                + f"comparison: name one by {', '.join(choose)}"
            )
    for one in controllers:
        counts = Counter(p.key for p in one.parameters)
        if twice := [key for key, n in counts.items() if n > 1]:
            raise ConfigError(
                f"{where}: tune.parameters: '{twice[0]}' is listed twice for {one.experiment}: "
                "tell the controllers apart with of"
            )
    return controllers


def _is_of(parameter: ParameterTable, whose: Levels) -> bool:
    of = parameter.of
    return all(name in whose and same_level(whose[name], of[name]) for name in of)


def ends_of(parameter: ParameterTable) -> list[object]:
    """The values that must be valid for all to be: both ends of a range, or every choice."""
    return list(parameter.choices) or [_number(parameter, end) for end in _ends(parameter)]


def _ends(parameter: ParameterTable) -> tuple[float, float]:
    assert parameter.low is not None  # unless it has choices, its table refuses it
    assert parameter.high is not None
    return parameter.low, parameter.high


def _number(parameter: ParameterTable, value: float) -> float | int:
    return int(value) if parameter.scale == "integer" else value


class Objective:
    """What a run of a setting costs, and whether it keeps the constraint.

    Parameters
    ----------
    where : the campaign's file, for messages

    Raises
    ------
    ConfigError
        Cost or constraint is no expression.
    """

    def __init__(self, where: str, table: TuneTable) -> None:
        self.cost = Expression(f"{where}: tune.cost", table.cost)
        self.constraint = None
        if table.constraint is not None:
            self.constraint = Expression(f"{where}: tune.constraint", table.constraint)

    def check(self, known: Sequence[str]) -> None:
        """Refuse names that are not among the figures of a trial."""
        self.cost.check(known, answers=False)
        if self.constraint is not None:
            self.constraint.check(known, answers=True)

    def of(self, number: int, setting: Setting, weights: Levels, runs: Sequence[Figures]) -> Tried:
        """The result of a setting from the results of its runs, at these weights of the cost."""
        costs, broken = [], 0
        for run in runs:
            figures = {**run.get("figures", {}), **weights}
            cost = self.cost.value(figures)
            costs.append(math.inf if cost is None else float(cost))
            kept = self.constraint is None or self.constraint.value(figures) is True
            broken += not (kept and run["outcome"] == "complete")
        mean = math.fsum(cost / len(costs) for cost in costs)  # the sum may exceed all numbers
        return Tried(number, setting, mean, broken / len(runs))


def proposed(
    controller: Controller, seed: int, tried: Sequence[Tried], n: int
) -> Iterator[tuple[int, Setting]]:
    """Number and setting of the next `n` proposals.

    Parameters
    ----------
    seed : of the campaign
    tried : all settings before them, in order

    Raises
    ------
    ConfigError
        Optuna is not installed.
    """
    optuna = _optuna()
    space = {p.key: _distribution(p) for p in controller.parameters}
    words = np.random.SeedSequence([seed, STREAM, controller.index, len(tried)])
    with warnings.catch_warnings():  # of what it calls experimental: the version is pinned
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        sampler = optuna.samplers.TPESampler(
            seed=int(words.generate_state(1)[0]), multivariate=True, constant_liar=True
        )
    study = optuna.create_study(sampler=sampler)
    study.add_trials(
        [
            optuna.trial.create_trial(
                value=one.cost, params=dict(one.setting), distributions=space,
                constraints={"broken": one.broken},
            )
            for one in tried
        ]
    )  # fmt: skip
    for number in range(len(tried), len(tried) + n):
        params = study.ask(space).params
        yield number, {p.key: params[p.key] for p in controller.parameters}


def _optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise missing_extra("[tune]", "tune") from None
    optuna.logging.set_verbosity(logging.ERROR)
    return optuna


def _distribution(parameter: ParameterTable) -> BaseDistribution:
    from optuna.distributions import (
        CategoricalDistribution,
        FloatDistribution,
        IntDistribution,
    )

    if parameter.choices:
        return CategoricalDistribution(parameter.choices)
    low, high = _ends(parameter)
    if parameter.scale == "integer":
        return IntDistribution(int(low), int(high))
    return FloatDistribution(low, high, log=parameter.scale == "log")


def best_of(tried: Sequence[Tried]) -> Tried | None:
    """The setting with the least cost among those that keep the constraint; None without one."""
    return min((one for one in tried if one.fits), key=lambda one: one.cost, default=None)


def at_edges(parameters: Sequence[ParameterTable], setting: Setting) -> list[str]:
    """For each value at the end of its range a text that says so."""
    lines = []
    for p in parameters:
        if p.choices:
            continue
        low, high = _ends(p)
        value = setting[p.key]
        at = (value - low) / (high - low)
        if p.scale == "log":
            at = math.log(value / low) / math.log(high / low)
        near = 0.0 if p.scale == "integer" else EDGE
        if at <= near:
            lines.append(f"{p.key} = {value:.4g} is at the lower end of its range")
        elif at >= 1.0 - near:
            lines.append(f"{p.key} = {value:.4g} is at the upper end of its range")
    return lines
