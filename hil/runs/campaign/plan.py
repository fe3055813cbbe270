"""The trials of a campaign's file in run order, each with a validated configuration."""

import hashlib
import itertools
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from hil.config.files import Merged, read_toml
from hil.config.validate import validated
from hil.devices.injection_tables import FaultTable
from hil.errors import ConfigError, one_line
from hil.experiment.load import load
from hil.experiment.loaded import Experiment
from hil.platform.whole_files import sha256_of
from hil.runs.campaign.bundle import files_of
from hil.runs.campaign.commission import load_commission
from hil.runs.campaign.plants import PLANT, drawn_plants, extremes_of, failing_cells, in_tables
from hil.runs.campaign.tables import FAILING, PLANTS_MAX, TAKEN, CampaignTables
from hil.runs.campaign.tuning import Controller, Objective, controllers_of, ends_of

Drawn = Mapping[str, Sequence[Mapping[str, object]]]
Combination = tuple[str, tuple[tuple[str, object], ...]]
"""The experiment, and for every factor the label of its level."""
TRIALS_MAX = 100_000
ERRORS_SHOWN = 5
MODEL = "model."


@dataclass(frozen=True)
class Trial:
    """One run of a campaign.

    Attributes
    ----------
    number : counts from 1 in run order
    experiment : file, as the campaign names it
    levels : the label of the level, by factor
    repeat, block : count from 1; without blocks all trials are in block 1
    seed : seed of all random draws of the run
    plant : counts from 1; 0 without `[spread]`
    """

    number: int
    experiment: str
    levels: Mapping[str, object]
    repeat: int
    block: int
    seed: int
    plant: int = 0

    @property
    def combination(self) -> Combination:
        return self.experiment, tuple(self.levels.items())

    def __str__(self) -> str:
        levels = [f"{name} {label}" for name, label in self.levels.items()]
        plant = [f"plant {self.plant}"] if self.plant else []
        return ", ".join([Path(self.experiment).stem, *levels, *plant, f"repeat {self.repeat}"])


@dataclass(frozen=True)
class Campaign:
    """A validated campaign.

    Attributes
    ----------
    configs : configuration of every combination that occurs, with the plant of the files
    plants : what every plant draws, by key; by experiment
    tuning_plants : the same of the plants to tune on, which are numbered from PLANTS_MAX + 1
    controllers : of `[tune]`
    tuned : the setting of every combination that was tuned, by key
    commission : the experiment that commissions plants; None if they are not
    known : what every commissioned plant changes, by key
    files : hash of each file that a trial reads
    """

    path: Path
    tables: CampaignTables
    trials: Sequence[Trial]
    configs: Mapping[Combination, Experiment] = field(repr=False)
    plants: Drawn = field(default_factory=dict, repr=False)
    tuning_plants: Drawn = field(default_factory=dict, repr=False)
    controllers: Sequence[Controller] = ()
    tuned: Mapping[Combination, Mapping[str, object]] = field(default_factory=dict)
    commission: Experiment | None = field(default=None, repr=False)
    known: Mapping[int, Mapping[str, object]] = field(default_factory=dict, repr=False)
    files: Mapping[Path, str] = field(default_factory=dict, repr=False)

    def config(self, trial: Trial) -> Experiment:
        """The configuration of a trial; that of a drawn plant is loaded each time."""
        if not trial.plant and trial.combination not in self.tuned:
            return self.configs[trial.combination]
        return load(self.path.parent / trial.experiment, self.sets(trial))

    def drawn(self, trial: Trial) -> Mapping[str, object]:
        """What the trial's plant draws, by key."""
        if trial.plant > PLANTS_MAX:
            return self.tuning_plants[trial.experiment][trial.plant - PLANTS_MAX - 1]
        return self.plants[trial.experiment][trial.plant - 1] if trial.plant else {}

    def faults(self, trial: Trial) -> list[FaultTable]:
        """The cells that fail in the trial, as on every trial with its plant."""
        return [fault for of in self._failing(trial).values() for fault in of]

    def _failing(self, trial: Trial) -> dict[str, list[FaultTable]]:
        plant = self.tables.campaign.seed, trial.plant
        devices = self.configs[trial.combination].tables.devices
        return {
            key: failing_cells(key, table, plant, devices)
            for key, table in self.tables.failing.items()
        }

    def listed(self, trial: Trial) -> dict[str, object]:
        """What the trial's plant draws, with its cells that fail, for a row of a table."""
        failing = {
            key: ", ".join(f"{one.device} {one.cell}: {one.at_s:.3f} s" for one in faults)
            for key, faults in self._failing(trial).items()
        }
        return {**self.drawn(trial), **failing}

    def sets(self, trial: Trial) -> list[str]:
        """The changes of a trial to its experiment, in the form of `--set`."""
        tuned = as_sets(self.tuned.get(trial.combination, {}))
        known = as_sets(self.known.get(trial.plant, {}))
        plant = in_tables(self.drawn(trial), self.configs[trial.combination])
        if self.tables.campaign.exact:
            known = as_sets({
                f"{MODEL}{key.removeprefix(PLANT)}": value
                for key, value in plant.items() if key.startswith(PLANT)
            })  # fmt: skip
        return _sets(self.tables, trial.combination) + tuned + as_sets(plant) + known

    def commissioning(self) -> list[Trial]:
        """The runs that commission every plant."""
        if self.tables.commission is None:
            return []
        head, name = self.tables.campaign, self.trials[0].experiment
        numbers = range(1, len(self.plants[name]) + 1)
        of_tuning = range(PLANTS_MAX + 1, PLANTS_MAX + 1 + len(self.tuning_plants.get(name, ())))
        return [
            Trial(0, name, {}, 1, 1, _pair_seed(head.seed, plant, 0), plant)
            for plant in (*numbers, *of_tuning)
        ]

    def tuning_trials(self, controller: Controller) -> list[Trial]:
        """The runs of one of its settings: on every plant to tune on, all other levels."""
        head, tune = self.tables.campaign, self.tables.tune
        combinations = [c for c in self.configs if controller.has(c[0], dict(c[1]))]
        return [
            Trial(
                0, experiment, dict(levels), 1, 1, _pair_seed(head.seed, PLANTS_MAX + plant, 1),
                PLANTS_MAX + plant if self.tables.spread else 0,
            )
            for plant in range(1, tune.plants + 1 if tune else 1)
            for experiment, levels in combinations
        ]  # fmt: skip

    @property
    def duration_s(self) -> float:
        """Duration of all trials without waits [s]."""
        return sum(self.duration_of(t) for t in self.trials)

    def duration_of(self, trial: Trial) -> float:
        """Duration of a trial, which no plant changes [s]."""
        return self.configs[trial.combination].tables.experiment.duration_s

    def fingerprint(self) -> str:
        """SHA-256 of the file and of every trial with its complete configuration."""
        text_of = {c: config.to_toml() for c, config in self.configs.items()}
        what = [self.tables.model_dump_json()]
        what += [
            f"{t} {t.seed} {text_of[t.combination]} {self.listed(t) if t.plant else ''}".rstrip(" ")
            for t in self.trials
        ]
        return hashlib.sha256("\n".join(what).encode()).hexdigest()

    def contents(self) -> str:
        """SHA-256 of what its files name: calibrations, code, units, the commissioning."""
        configs = [*self.configs.values(), *([self.commission] if self.commission else [])]
        return hashlib.sha256("\n".join(one.sha256 for one in configs).encode()).hexdigest()

    def refuse_changed_files(self) -> None:
        """Refuse to go on with files that are not as they were when the campaign was loaded.

        Raises
        ------
        ConfigError
            Trials on drawn plants load them anew: they would not be of one campaign.
        """
        for path, sha256 in self.files.items():
            with suppress(OSError):
                if sha256_of(path) == sha256:
                    continue
            raise ConfigError(
                f"{path}: has changed while the campaign ran: the trials until then are kept: undo "
                "the change to continue, or start again with another --out"
            )


def load_campaign(path: Path, contents: Mapping[str, object] | None = None) -> Campaign:
    """Read a campaign and validate every trial.

    Parameters
    ----------
    contents : the tables of a campaign that is in no file; `path` names it in messages

    Raises
    ------
    ConfigError
        The campaign or a trial is invalid; one line an error.
    """
    contents = read_toml(path) if contents is None else dict(contents)
    if "campaign" not in contents:
        raise ConfigError(
            f"{path}: no [campaign]: give the file of a campaign; hil run runs experiments"
        )
    spread = contents.get("spread")
    for key, table in spread.items() if isinstance(spread, dict) else ():
        if isinstance(table, dict) and any(isinstance(value, dict) for value in table.values()):
            raise ConfigError(
                f'{path}: spread.{key}: a key without quotes: write [spread."{key}. ... "]'
            )
    tables = validated(CampaignTables, Merged(contents, [(str(path), contents)]))
    if bool(tables.spread) != bool(tables.campaign.plants):
        raise ConfigError(f"{path}: campaign.plants and [spread] belong together: give both")
    if tables.campaign.exact and (tables.commission is not None or not tables.spread):
        raise ConfigError(
            f"{path}: campaign.exact: what [spread] draws is known then: give [spread], and no "
            "[commission]"
        )
    for key in ("commission", *FAILING):
        if getattr(tables, key) is not None and not tables.spread:
            raise ConfigError(f"{path}: {key}: no plant is drawn: add [spread], or leave it out")
    _refuse_taken_names(path, tables)
    _refuse_idle_factors(path, tables)
    combinations = _combinations(path, tables)
    trials = _ordered(path, tables, combinations)
    configs, wrong = {}, {}
    for trial in trials:
        if trial.combination in configs or trial.combination in wrong:
            continue
        try:
            sets = _sets(tables, trial.combination)
            configs[trial.combination] = load(path.parent / trial.experiment, sets)
        except ConfigError as error:
            levels = ", ".join(f"{name} {label}" for name, label in trial.levels.items())
            wrong[trial.combination] = "\n".join(
                f"{path}: trial {trial.number}{f' ({levels})' if levels else ''}: {line}"
                for line in str(error).splitlines()
            )
    if wrong:
        lines = [*wrong.values()][:ERRORS_SHOWN]
        if len(wrong) > ERRORS_SHOWN:
            lines.append(f"{path}: and {len(wrong) - ERRORS_SHOWN} more combinations are refused")
        raise ConfigError("\n".join(lines))

    def drawn(numbers: range) -> Drawn:
        return {
            name: drawn_plants(str(path), tables, config, numbers)
            for (name, _), config in configs.items()
        }

    plants = drawn(range(1, tables.campaign.plants + 1)) if tables.spread else {}
    for_tuning = tables.tune.plants if tables.tune and tables.spread else 0
    campaign = Campaign(
        path, tables, trials, configs, plants,
        drawn(range(PLANTS_MAX + 1, PLANTS_MAX + 1 + for_tuning)) if for_tuning else {},
        controllers_of(str(path), tables, combinations),
    )  # fmt: skip
    if tables.commission is not None:
        named = {name: config for (name, _), config in configs.items()}
        commission = load_commission(str(path), tables.commission, named.items())
        campaign = replace(campaign, commission=commission)
    loaded = [*configs.values(), *([campaign.commission] if campaign.commission else [])]
    paths = {file for config in loaded for file in files_of(config)}
    campaign = replace(campaign, files={file: sha256_of(file) for file in sorted(paths)})
    _try_extremes(campaign)
    _try_ranges(campaign)
    return campaign


def _try_extremes(campaign: Campaign) -> None:
    """Refuse a spread of which some draw is no valid plant: the extremes, or each choice."""
    if not campaign.plants:
        return
    (experiment, plants), first = next(iter(campaign.plants.items())), campaign.trials[0]
    sets = _sets(campaign.tables, first.combination)
    every = [*plants, *campaign.tuning_plants.get(experiment, ())]
    for key, table in campaign.tables.spread.items():
        drawn = [plant[key] for plant in every]
        for i in extremes_of(table, drawn):
            try:
                change = in_tables({key: drawn[i]}, campaign.configs[first.combination])
                load(campaign.path.parent / experiment, [*sets, *as_sets(change)])
            except ConfigError as error:
                line = str(error).splitlines()[0]
                number = i + 1 if i < len(plants) else PLANTS_MAX + i + 1 - len(plants)
                raise ConfigError(
                    f"{campaign.path}: spread.'{key}': plant {number} draws {drawn[i]!r}: {line}"
                ) from None


def _try_ranges(campaign: Campaign) -> None:
    """Refuse a parameter that its controller does not have, or whose range has no valid end."""
    if campaign.tables.tune is None:
        return
    Objective(str(campaign.path), campaign.tables.tune)
    for controller in campaign.controllers:
        first = campaign.tuning_trials(controller)[0]
        for i, parameter in enumerate(campaign.tables.tune.parameters):
            for value in ends_of(parameter) if parameter in controller.parameters else ():
                change = as_sets({parameter.key: value})
                try:
                    load(campaign.path.parent / first.experiment, [*campaign.sets(first), *change])
                except ConfigError as error:
                    line = str(error).splitlines()[0].removeprefix(f"--set {change[0]}: ")
                    raise ConfigError(
                        f"{campaign.path}: tune.parameters.{i} of {controller}: {line}"
                    ) from None


def _refuse_taken_names(path: Path, tables: CampaignTables) -> None:
    seen = {*TAKEN, *["plant"] * bool(tables.spread), *["tuning"] * bool(tables.tune)}
    for key in ("factors", "questions", "measures"):
        for name in getattr(tables, key):
            if name in seen:
                raise ConfigError(f"{path}: {key}.{name}: the name '{name}' is taken: change it")
            seen.add(name)


def _refuse_idle_factors(path: Path, tables: CampaignTables) -> None:
    """Refuse a factor that changes neither a trial nor the cost of tuning."""
    idle = {name: table for name, table in tables.factors.items() if table.is_weight}
    tune = tables.tune
    priced = Objective(str(path), tune).cost.names if idle and tune else []
    for name, table in idle.items():
        numbers = all(type(label) in (int, float) for label in table.labels)
        if name not in priced or not numbers:
            raise ConfigError(
                f"{path}: factors.{name}: give key, or tell for an instruction to the operator, or "
                "numbers and its name in tune.cost"
            )


def _combinations(path: Path, tables: CampaignTables) -> list[Combination]:
    """Every combination of experiment and levels once, in listed order."""
    head, factors = tables.campaign, tables.factors
    twice = [name for name, n in Counter(head.experiments).items() if n > 1]
    if twice:
        raise ConfigError(f"{path}: campaign.experiments: '{twice[0]}' is listed twice")
    if not tables.trials:
        labels = [table.labels for table in factors.values()]
        n_all = len(head.experiments) * int(np.prod([float(len(of)) for of in labels]))
        n_trials = n_all * head.repeats * max(1, head.plants)
        if n_trials > TRIALS_MAX:
            raise ConfigError(f"{path}: campaign: {n_trials} trials: at most {TRIALS_MAX}")
        return [
            (name, tuple(zip(factors, row, strict=True)))
            for name, *row in itertools.product(head.experiments, *labels)
        ]
    combinations = []
    for i, row in enumerate(tables.trials):
        where = f"{path}: trials.{i}"
        experiment = row.get("experiment", head.experiments[0])
        if experiment not in head.experiments:
            raise ConfigError(
                one_line(f"{where}.experiment = {experiment!r}: ")
                + f"choose {', '.join(head.experiments)}"
            )
        if "experiment" not in row and len(head.experiments) > 1:
            raise ConfigError(f"{where}: give the experiment: {', '.join(head.experiments)}")
        for name in row:
            if name not in (*factors, "experiment"):
                raise ConfigError(one_line(f"{where}.{name}: there is no factor of that name"))
        for name, table in factors.items():
            if name not in row:
                raise ConfigError(f"{where}.{name}: missing: every factor has a level")
            if not table.has(row[name]):
                raise ConfigError(
                    one_line(f"{where}.{name} = {row[name]!r}: no level of it: ")
                    + f"choose {', '.join(map(str, table.labels))}"
                )
        combinations.append((experiment, tuple((name, row[name]) for name in factors)))
    return combinations


def _ordered(path: Path, tables: CampaignTables, combinations: list[Combination]) -> list[Trial]:
    """Trials in run order; the random order depends only on the seed."""
    head = tables.campaign
    order_seed, *seeds = np.random.SeedSequence(head.seed).spawn(
        1 + head.repeats * len(combinations)
    )
    rng = np.random.default_rng(order_seed)
    listed = [
        (combination, repeat)
        for repeat in range(1, head.repeats + 1)
        for combination in combinations
    ]
    seed_of = [_seed_of(s) for s in seeds]
    plant_of = [0] * len(listed)
    if head.plants:
        met = [(*one, plant) for plant in range(1, head.plants + 1) for one in listed]
        listed, plant_of = [one[:2] for one in met], [one[2] for one in met]
        pairs = {
            pair: _pair_seed(head.seed, *pair)
            for pair in itertools.product(range(1, head.plants + 1), range(1, head.repeats + 1))
        }
        seed_of = [pairs[plant, repeat] for _, repeat, plant in met]
    every = list(range(len(listed)))
    blocks = [every]
    if head.order == "random":
        blocks = [_shuffled(every, rng)]
    elif head.order == "blocks":
        blocks = _blocks(path, tables, listed, rng)
    return [
        Trial(
            number,
            listed[i][0][0],
            dict(listed[i][0][1]),
            listed[i][1],
            block,
            seed_of[i],
            plant_of[i],
        )
        for number, (block, i) in enumerate(
            ((b, i) for b, block_of in enumerate(blocks, start=1) for i in block_of), start=1
        )
    ]


def _blocks(
    path: Path,
    tables: CampaignTables,
    listed: list[tuple[Combination, int]],
    rng: np.random.Generator,
) -> list[list[int]]:
    """Trials by block, each block shuffled."""
    head, every = tables.campaign, range(len(listed))
    if head.block_size is not None:
        n_all, n_each = len(listed), len(listed) // head.repeats
        if head.block_size % n_each or n_all % head.block_size:
            fitting = [n for n in range(n_each, n_all + 1, n_each) if n_all % n == 0]
            raise ConfigError(
                f"{path}: campaign.block_size = {head.block_size}: blocks that hold each of "
                f"{n_each} combinations equally often do not divide {n_all} trials: choose "
                f"{', '.join(map(str, fitting))}"
            )
        return [
            _shuffled(every[i : i + head.block_size], rng) for i in range(0, n_all, head.block_size)
        ]
    if head.block_by in (None, "repeat"):
        return [
            _shuffled([i for i in every if listed[i][1] == repeat], rng)
            for repeat in range(1, head.repeats + 1)
        ]
    by = str(head.block_by)
    if by != "experiment" and by not in tables.factors:
        known = ["repeat", "experiment", *tables.factors]
        raise ConfigError(f"{path}: campaign.block_by = '{by}': choose {', '.join(known)}")

    def level(i: int) -> object:
        (experiment, levels), _ = listed[i]
        return experiment if by == "experiment" else dict(levels)[by]

    members: dict[object, list[int]] = {}
    for i in every:
        members.setdefault(level(i), []).append(i)
    sizes = {str(label): len(block) for label, block in members.items()}
    if len(set(sizes.values())) > 1:
        counts = ", ".join(f"{n} at {label}" for label, n in sizes.items())
        raise ConfigError(
            f"{path}: campaign.block_by = '{by}': the blocks are not of one size: {counts} trials: "
            "list equally many trials of each level, or choose another order"
        )
    blocks = [_shuffled(block, rng) for block in members.values()]
    return [blocks[i] for i in _shuffled(range(len(blocks)), rng)]


def _seed_of(sequence: np.random.SeedSequence) -> int:
    return int(sequence.generate_state(1, np.uint64)[0] >> np.uint64(1))


def _pair_seed(seed: int, plant: int, repeat: int) -> int:
    """Seed of all runs with this plant and repeat."""
    return _seed_of(np.random.SeedSequence([seed, plant, repeat]))


def _shuffled(items: Sequence[int], rng: np.random.Generator) -> list[int]:
    return [items[i] for i in rng.permutation(len(items))]


def _sets(tables: CampaignTables, combination: Combination) -> list[str]:
    sets: dict[str, object] = {}
    for name, label in combination[1]:
        sets |= tables.factors[name].sets(label)
    return as_sets(sets)


def as_sets(values: Mapping[str, object]) -> list[str]:
    """Values by key in the form of `--set`."""
    return [f"{key}={_inline(value)}" for key, value in values.items()]


def _inline(value: object) -> str:
    """A value as one line of TOML."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_as_json(k)} = {_inline(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    if isinstance(value, float):
        return float.__repr__(value)  # inf and nan as TOML has them
    return _as_json(value) if isinstance(value, str | bool | int) else str(value)


def _as_json(value: str | bool | int) -> str:
    """A value as JSON that is TOML too, which has no pairs of escapes for one character."""
    return json.dumps(value, ensure_ascii=False)
