"""Tables of a campaign's file: experiments, factors, waiting rules, questions."""

import re
from collections.abc import Mapping
from math import isfinite
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from hil.config.table import Name, NotNegative, Positive, Table, Title
from hil.config.values import Figures, TomlTable
from hil.experiment.expectations import MISSED, MeasureTable
from hil.runs.campaign.tune_tables import TuneTable

PLANTS_MAX = 10_000
LOGNORMAL_MAX = 10.0  # relative deviation: a factor of e^10
FAILING = {"wires_open": "wire_open", "cells_break": "cell_broken", "cells_weaken": "cell_weak"}
"""Tables of cells that fail during a run, and the faults that they draw."""
TAKEN = ("trial", "experiment", "block", "repeat", "seed", "attempts", "outcome", "waited_s",
         "started_utc", "file", "faults", "error", "level", MISSED)  # fmt: skip
"""Columns of the table of all trials; a factor, question or measure may not have these names."""


WORST = "worst "


def same_level(one: object, other: object) -> bool:
    """Whether these are one level; true is not 1, and false not 0."""
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def _keep(value: str) -> str:
    if value in ("all", "tripped", "none") or re.fullmatch(WORST + r"[1-9]\d{0,3}", value):
        return value
    raise ValueError("give 'all', 'tripped', 'none' or, for the worst ten, 'worst 10'")


class CampaignHead(Table):
    """Experiments, repeats and order of a campaign.

    A campaign runs every combination of the factors' levels with every experiment, or the trials of
    `[[trials]]`; each `repeats` times. `order` is `listed` (as written, the last factor changes
    fastest), `random` (all trials shuffled) or `blocks` (shuffled within each block; blocks that
    are levels of a factor are also shuffled). A block is a repeat, or contains the trials of one
    level of the factor `block_by`, or consists of `block_size` trials with every combination
    equally often.

    With `plants`, every combination meets as many simulated plants, which `[spread]` draws; each
    plant has the same noise under every combination. `keep` says which recordings stay: of `all`
    trials, of those that `tripped`, of `none`, or as in `worst 10` of the worst ten of each
    combination; `hil campaign FILE --trial N` makes any again. `worst_by` is an expression of
    measures, the larger the worse, by default the cost of `[tune]`; a trial that trips is worse.
    With `exact` controllers and twin know all that a plant draws: what no commissioning surpasses.
    """

    name: Title
    experiments: Annotated[list[str], Field(min_length=1)]
    repeats: Annotated[int, Field(ge=1, le=10_000)] = 1
    order: Literal["listed", "random", "blocks"] = "listed"
    block_by: str | None = None
    block_size: Annotated[int, Field(ge=1)] | None = None
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    operator: Title = ""
    plants: Annotated[int, Field(ge=0, le=PLANTS_MAX)] = 0
    keep: Annotated[str, AfterValidator(_keep)] = "all"
    worst_by: Title | None = None
    exact: bool = False

    @property
    def n_worst(self) -> int:
        """Number of recordings of each combination that `keep = "worst N"` leaves."""
        return int(self.keep.removeprefix(WORST)) if self.keep.startswith(WORST) else 0

    @model_validator(mode="after")
    def _blocks_match_the_order(self) -> "CampaignHead":
        if self.order != "blocks" and (self.block_by or self.block_size):
            raise ValueError("block_by and block_size are for order = 'blocks'")
        if self.block_by and self.block_size:
            raise ValueError("give block_by or block_size, not both")
        return self


class FactorTable(Table):
    """A factor: a key of the merged configuration, several keys, or a manual setting.

    `levels` is a list of values of `key`, or a table of names with the keys that each sets. `names`
    are the labels of listed levels that are lists or tables. `tell` is the instruction to the
    operator when the level changes; it contains `{level}`. Without both, its numbers are a weight
    that `tune.cost` names: each controller is tuned once for every weight.
    """

    key: str | None = None
    levels: list[Any] | dict[Name, TomlTable]
    names: list[Name] | None = None
    unit: Title = ""
    tell: Title | None = None

    @model_validator(mode="after")
    def _is_consistent(self) -> "FactorTable":
        if not self.levels:
            raise ValueError("give at least one level")
        if isinstance(self.levels, dict):
            if self.key is not None or self.names is not None:
                raise ValueError("a table of levels sets its own keys: remove key and names")
            return self
        if self.names is not None and len(self.names) != len(self.levels):
            raise ValueError(f"{len(self.names)} names for {len(self.levels)} levels")
        plain = all(isinstance(level, str | int | float) for level in self.levels)
        if self.names is None and not plain:
            raise ValueError("levels that are lists or tables need names")
        for level in self.levels:
            if isinstance(level, str) and not (level and level.isprintable()):
                raise ValueError("a level that is a text must be one line of plain text")
            if isinstance(level, float) and not isfinite(level):
                raise ValueError(f"level {level:g} is not a finite number")
        seen: dict[object, object] = {}  # 1, 1.0 and true are one key
        for label in self.labels:
            other = seen.get(label, seen.get(str(label)))
            if other is not None and str(other) == str(label):
                raise ValueError(f"level {label} is listed twice")
            if other is not None:
                raise ValueError(f"levels {other} and {label} are one: remove one, or give names")
            seen |= {label: label, str(label): label}
        if self.tell is not None and "{level}" not in self.tell:
            raise ValueError("tell must contain {level}")
        return self

    @property
    def is_weight(self) -> bool:
        """Whether it changes nothing of a trial: neither its configuration nor what is by hand."""
        return self.key is None and self.tell is None and not isinstance(self.levels, dict)

    @property
    def labels(self) -> list[Any]:
        """The labels of the levels, in order."""
        if isinstance(self.levels, dict):
            return list(self.levels)
        return list(self.names or self.levels)

    def has(self, label: object) -> bool:
        """Whether it is the label of a level; true is not 1."""
        return any(same_level(label, one) for one in self.labels)

    def sets(self, label: Any) -> TomlTable:
        """The keys that a level sets, with their values."""
        if isinstance(self.levels, dict):
            return self.levels[label]
        at = self.labels.index(label)
        return {} if self.key is None else {self.key: self.levels[at]}


class ConditionTable(Table):
    """Every column that matches the pattern `column` (`*` matches all) is within the bounds."""

    column: str
    below: float | None = None
    above: float | None = None

    @model_validator(mode="after")
    def _has_a_bound(self) -> "ConditionTable":
        if self.below is None and self.above is None:
            raise ValueError("give below, above, or both")
        if self.below is not None and self.above is not None and self.below <= self.above:
            raise ValueError(f"nothing is below {self.below:g} and above {self.above:g}")
        return self


class WaitTable(Table):
    """Wait before every trial, with all off, until all conditions have held for `for_s`."""

    until: Annotated[list[ConditionTable], Field(min_length=1)]
    for_s: NotNegative = 0.0
    longest_s: Positive
    otherwise: Literal["stop", "skip", "ask", "go_on"] = "stop"


class PreconditionTable(ConditionTable):
    """A condition that must hold after the wait; `say` is the remedy if it does not."""

    say: Title = ""


class QuestionTable(Table):
    """A question at the start of a campaign and when it resumes, before each trial, or at the end.

    If `must` is given, any other answer stops the campaign. `rehearsed` is the answer in a
    rehearsal.
    """

    ask: Title
    when: Literal["start", "trial", "end"] = "start"
    kind: Literal["text", "number", "yes_no", "choice"] = "text"
    choices: list[Title] = []
    must: str | float | bool | None = None
    rehearsed: str | float | bool | None = None

    @model_validator(mode="after")
    def _can_be_answered(self) -> "QuestionTable":
        if (self.kind == "choice") != bool(self.choices):
            raise ValueError("choices are for kind = 'choice', which needs them")
        for key in ("must", "rehearsed"):
            value = getattr(self, key)
            if value is not None and not self.takes(value):
                raise ValueError(f"{key} = {value!r} is not an answer of kind '{self.kind}'")
        return self

    def takes(self, value: object) -> bool:
        """Whether the value is a valid answer."""
        if self.kind == "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        if self.kind == "yes_no":
            return isinstance(value, bool)
        return isinstance(value, str) and (not self.choices or value in self.choices)

    @property
    def scripted(self) -> str | float | bool:
        """The answer in a rehearsal."""
        for value in (self.rehearsed, self.must):
            if value is not None:
                return value
        if self.kind == "choice":
            return self.choices[0]
        return {"number": 0.0, "yes_no": True}.get(self.kind, "rehearsed")


class AfterTripTable(Table):
    """Action after a trip; `retry` repeats the trial up to `retries` times, then does `then`."""

    do: Literal["stop", "skip", "retry", "ask"] = "stop"
    retries: Annotated[int, Field(ge=1, le=100)] = 1
    then: Literal["stop", "skip"] = "stop"


class SpreadTable(Table):
    """How a key of the simulated plant differs from plant to plant.

    `relative` (of the key's value) or `absolute` is the standard deviation of a `normal`
    distribution, or half the width of a `uniform` one. Of a `lognormal` one, whose median is the
    key's value, `relative` is the standard deviation of the logarithm. `choice` takes one of
    `choices`.
    Each number of a list is drawn for itself; with `each` the one value of an array's `force_on_N`,
    `mass_kg`, `cell` or `activation` is drawn for every cell or mass.

    With `correlated_with`, another key of the spread, draws have this `correlation` with those of
    that key: of the two normal variables from which the values are made, entry by entry of lists.
    """

    distribution: Literal["normal", "uniform", "lognormal", "choice"] = "normal"
    relative: Positive | None = None
    absolute: Positive | None = None
    choices: list[Any] = []
    each: bool = False
    correlated_with: str | None = None
    correlation: Annotated[float, Field(ge=-1.0, le=1.0)] | None = None

    @model_validator(mode="after")
    def _has_its_width(self) -> "SpreadTable":
        if (self.correlated_with is None) != (self.correlation is None):
            raise ValueError("correlated_with and correlation belong together: give both")
        if self.correlation is not None and self.distribution == "choice":
            raise ValueError("a choice has no correlation")
        if self.distribution == "choice":
            if not self.choices or self.relative is not None or self.absolute is not None:
                raise ValueError("distribution = 'choice' takes choices alone")
            if self.each:
                raise ValueError("each is for numbers: a choice is one of the whole array")
        elif self.choices:
            raise ValueError("choices are for distribution = 'choice'")
        elif (self.relative is None) == (self.absolute is None):
            raise ValueError("give relative or absolute")
        elif self.distribution == "lognormal" and self.relative is None:
            raise ValueError("distribution = 'lognormal' takes relative")
        elif self.distribution == "lognormal" and (self.relative or 0.0) > LOGNORMAL_MAX:
            raise ValueError(
                f"relative = {self.relative:g}: at most {LOGNORMAL_MAX:g} if distribution = "
                "'lognormal', which multiplies by exp(relative) at one standard deviation"
            )
        return self


class FailingTable(Table):
    """Cells that fail during a run: each with this probability, at a time that is drawn evenly.

    With `[wires_open]` a cell's wire opens: it is electrically dead. With `[cells_break]` it
    carries no tension, whatever its wire does; with `[cells_weaken]` it keeps the share `left` of
    its tension. One that is dead or broken from the start is a choice of
    `plant.arrays.NAME.dead_cells` or `broken_cells` in `[spread]`.
    """

    probability: Annotated[float, Field(gt=0.0, le=1.0)]
    from_s: NotNegative = 0.0
    to_s: NotNegative

    @model_validator(mode="after")
    def _ends_after_start(self) -> Self:
        if self.to_s < self.from_s:
            raise ValueError(f"to_s = {self.to_s:g} is before from_s = {self.from_s:g}")
        return self


class WeakenedTable(FailingTable):
    """Cells that weaken during a run, to the share `left` of their tension; as `[cells_break]`."""

    left: Annotated[float, Field(gt=0.0, lt=1.0)]


class CommissionTable(Table):
    """What is known of a drawn plant: `hil identify` fits its model to an experiment on it.

    `experiment` is a schedule on the rig of the trials. `free`, `fix` and `each` are those of
    `hil identify`: parameters to fit or to hold, and lists that get a value for each entry.
    Controllers and twin then have the fitted model.
    """

    experiment: str
    free: list[str] = []
    fix: list[str] = []
    each: list[Literal["mass_kg", "force_on_N", "cell", "activation"]] = []


class CampaignTables(Table):
    """A campaign's file."""

    campaign: CampaignHead
    spread: dict[Title, SpreadTable] = {}
    factors: dict[Name, FactorTable] = {}
    trials: list[TomlTable] = []
    wait: WaitTable | None = None
    preconditions: list[PreconditionTable] = []
    questions: dict[Name, QuestionTable] = {}
    after_trip: AfterTripTable = AfterTripTable()
    measures: dict[Name, MeasureTable] = {}
    tune: TuneTable | None = None
    commission: CommissionTable | None = None
    wires_open: FailingTable | None = None
    cells_break: FailingTable | None = None
    cells_weaken: WeakenedTable | None = None

    @property
    def failing(self) -> dict[str, FailingTable]:
        """The tables of cells that fail during a run, by key."""
        tables = {key: getattr(self, key) for key in FAILING}
        return {key: table for key, table in tables.items() if table is not None}

    def weights(self, levels: Mapping[str, object]) -> Figures:
        """The levels of a trial that are weights of the cost."""
        return {name: levels[name] for name, of in self.factors.items() if of.is_weight}

    @property
    def worst_by(self) -> str | None:
        """Expression whose largest values are the worst; None if the file has none."""
        return self.campaign.worst_by or (None if self.tune is None else self.tune.cost)

    @property
    def in_memory(self) -> bool:
        """Whether trials are simulated without a file, on plants that are drawn, or tuned."""
        return bool(self.spread) or self.campaign.keep != "all" or self.tune is not None
