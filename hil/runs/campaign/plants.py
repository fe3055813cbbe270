"""Random plants of a campaign: what each draws, and what a figure is over all of them."""

import copy
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from hil.config.table import Table
from hil.config.values import Figures, TomlTable
from hil.devices.injection_tables import FaultTable
from hil.devices.tables import DeviceTable
from hil.errors import ConfigError, remedy
from hil.experiment.loaded import Experiment
from hil.rig.instruments import boards_of
from hil.runs.campaign.tables import FAILING, CampaignTables, FailingTable, SpreadTable

PLANT, SIM = "plant.", ".sim."
WORST_SHOWN = 5


def drawn_plants(
    where: str, tables: CampaignTables, base: Experiment, numbers: Iterable[int]
) -> tuple[Figures, ...]:
    """For the plants with these numbers the drawn value of each key in `[spread]`.

    A value follows from the seed of the campaign, the plant's number and the key alone: another key
    or more plants change none.

    Parameters
    ----------
    where : the campaign's file, for messages
    base : an experiment, whose tables hold the values about which is drawn

    Raises
    ------
    ConfigError
        A key is not one of the plant or of its instruments, or has no value to draw about.
    """
    middles = {key: _middle(where, key, table, base) for key, table in tables.spread.items()}
    for key in tables.spread:
        _check_correlation(f"{where}: spread.'{key}'", tables, middles, key)
    return tuple(
        {key: _draw(tables, number, key, middles) for key in middles} for number in numbers
    )


def _middle(where: str, key: str, table: SpreadTable, base: Experiment) -> Any:
    """The value about which is drawn, a number or a list."""
    name = f"{where}: spread.'{key}'"
    if not (key.startswith(PLANT) or (key.startswith("devices.") and SIM in key)):
        raise ConfigError(
            f"{name}: a key that the controller knows: spread one of the simulated plant "
            f"(plant....) or of a simulated instrument (devices.NAME....{SIM.strip('.')}....)"
        )
    if table.distribution == "choice":
        return None
    value: Any = base.tables
    for part in key.split("."):
        value = [_below(one, part) for one in value] if of_cells(value) else _below(value, part)
    several = _as_list(value)
    if not several or any(isinstance(v, bool) or not isinstance(v, int | float) for v in several):
        raise ConfigError(f"{name}: the rig has no number there: {value!r}: check the key")
    if table.relative is not None and not any(several):
        raise ConfigError(
            f"{name}.relative = {table.relative:g}: the rig has {value!r} there, and any part of 0 "
            "is 0: give absolute, with distribution = 'normal' or 'uniform'"
        )
    if table.each:
        return _for_each(name, key, several, base)
    return several[0] if of_table(key) and len(several) == 1 else value


def _below(value: object, part: str) -> Any:
    return value.get(part) if isinstance(value, Mapping) else getattr(value, part, None)


def of_cells(value: object) -> bool:
    """Whether this is a list of tables, such as those of cells."""
    return isinstance(value, list) and bool(value) and isinstance(value[0], Table)


def of_table(key: str) -> tuple[str, str, str] | None:
    """Array, table and the key in it, of a key of an array's `cell` or `activation`."""
    match = re.fullmatch(r"plant\.arrays\.([^.]+)\.(cell|activation)\.(.+)", key)
    return None if match is None else (match[1], match[2], match[3])


def _for_each(name: str, key: str, value: list[float], base: Experiment) -> list[float]:
    """The one value as that of every cell or mass."""
    array, _, last = key.removeprefix("plant.arrays.").partition(".")
    arrays = getattr(base.model, "arrays", {})
    if array not in arrays or not (of_table(key) or last in ("force_on_N", "mass_kg")):
        raise ConfigError(
            f"{name}: each is for the cells of an array: plant.arrays.NAME.force_on_N, mass_kg, "
            "cell.KEY or activation.KEY"
        )
    topology = arrays[array].topology
    n = topology.n_masses if last == "mass_kg" else topology.n_cells
    return value * n if len(value) == 1 else value


def failing_cells(
    key: str, table: FailingTable, plant: tuple[int, int], devices: Mapping[str, DeviceTable]
) -> list[FaultTable]:
    """The cells that fail on a plant, as faults of a run.

    Parameters
    ----------
    key : of FAILING
    plant : seed of the campaign and number of the plant
    """
    rng = _generator(*plant, key=key)
    kind, left = FAILING[key], getattr(table, "left", 0.0)
    failing = []
    for name, board in boards_of(devices).items():
        for cell in range(1, len(board.cells) + 1):
            chance, at_s = rng.random(), rng.uniform(table.from_s, table.to_s)
            if chance < table.probability:
                failing.append(
                    FaultTable(kind=kind, at_s=at_s, cell=cell, device=name, value=left)  # type: ignore[arg-type]
                )
    return failing


def in_tables(drawn: Mapping[str, object], base: Experiment) -> dict[str, object]:
    """Keys to set for what a plant draws; a value for each cell takes a whole list of tables."""
    parts = {key: place for key in drawn if (place := of_table(key))}
    lists = {parts[key][:2] for key in parts if isinstance(drawn[key], list)}
    made: dict[str, object] = {}
    tables: dict[str, list[TomlTable]] = {}
    for key, value in drawn.items():
        if key not in parts or parts[key][:2] not in lists:
            made[key] = value
            continue
        array, kind, rest = parts[key]
        whole = f"{PLANT}arrays.{array}.{kind}"
        if whole not in tables:
            tables[whole] = _dumped(getattr(base.tables.plant.arrays[array], kind))
            if len(tables[whole]) == 1:
                n_cells = base.model.arrays[array].topology.n_cells
                tables[whole] = [copy.deepcopy(tables[whole][0]) for _ in range(n_cells)]
        values = value if isinstance(value, list) else [value] * len(tables[whole])
        for table, one in zip(tables[whole], values, strict=True):
            _put(table, rest, one)
    return made | tables


def _dumped(tables: Sequence[Table]) -> list[TomlTable]:
    """Tables as plain values, without the records that their drawn values depart from."""
    return [one.model_dump(by_alias=True, exclude_none=True, exclude={"record"}) for one in tables]


def _put(table: TomlTable, key: str, value: object) -> None:
    *path, last = key.split(".")
    for part in path:
        table = table[part]
    table[last] = value


def _check_correlation(name: str, tables: CampaignTables, middles: Figures, key: str) -> None:
    """Refuse a correlation with a key that is not drawn for itself, or of other entries."""
    other = tables.spread[key].correlated_with
    if other is None:
        return
    if other == key or other not in tables.spread:
        known = [name for name in tables.spread if name != key]
        raise ConfigError(f"{name}.correlated_with = '{other}': not drawn{remedy(other, known)}")
    if tables.spread[other].distribution == "choice" or tables.spread[other].correlated_with:
        raise ConfigError(
            f"{name}.correlated_with = '{other}': must be a number that is drawn for itself"
        )
    n, n_other = (len(_as_list(middles[one])) for one in (key, other))
    if n_other not in (1, n):
        raise ConfigError(
            f"{name}.correlated_with = '{other}': draws {n_other} numbers, this key {n}: give one "
            "for all, or as many"
        )


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _draw(tables: CampaignTables, number: int, key: str, middles: Figures) -> Any:
    table, middle = tables.spread[key], middles[key]
    if table.distribution == "choice":
        rng = _generator(tables.campaign.seed, number, key=key)
        return table.choices[int(rng.integers(len(table.choices)))]
    several = _as_list(middle)
    units = _units(tables, number, key, len(several))
    if table.correlated_with is not None and table.correlation is not None:
        r, other = table.correlation, tables.spread[table.correlated_with]
        n_other = len(_as_list(middles[table.correlated_with]))
        theirs = _normal(other, _units(tables, number, table.correlated_with, n_other))
        mixed = r * theirs + np.sqrt(1.0 - r**2) * _normal(table, units)
        units = 2.0 * stats.norm.cdf(mixed) - 1.0 if table.distribution == "uniform" else mixed
    values = [_about(table, float(v), float(u)) for v, u in zip(several, units, strict=True)]
    return values if isinstance(middle, list) else values[0]


def _generator(*numbers: int, key: str) -> np.random.Generator:
    """As `default_rng([*numbers, *key.encode()])`, which converts the bytes one by one."""
    words: list[Any] = [*numbers, np.array([*key.encode()], np.uint32)]
    return np.random.default_rng(words)


def _units(tables: CampaignTables, number: int, key: str, n: int) -> NDArray[np.float64]:
    """N draws of the key: of a normal variable, or between -1 and 1."""
    rng = _generator(tables.campaign.seed, number, key=key)
    if tables.spread[key].distribution == "uniform":
        return rng.uniform(-1.0, 1.0, n)
    return rng.standard_normal(n)


def _normal(table: SpreadTable, units: NDArray[np.float64]) -> NDArray[np.float64]:
    """The normal variables of draws."""
    if table.distribution != "uniform":
        return units
    normal: NDArray[np.float64] = stats.norm.ppf(0.5 * (units + 1.0))
    return normal


def _about(table: SpreadTable, middle: float, unit: float) -> float:
    share = 0.0 if table.relative is None else table.relative
    if table.distribution == "lognormal":
        return middle * float(np.exp(share * unit))
    width = share * abs(middle) if table.absolute is None else table.absolute
    return float(middle + width * unit)


def extremes_of(table: SpreadTable, drawn: Sequence[object]) -> list[int]:
    """Indices of the draws with the smallest and the largest number, or of each choice."""
    if table.distribution == "choice":
        texts, choices = [repr(one) for one in drawn], map(repr, table.choices)  # 1 is not true
        return [texts.index(choice) for choice in choices if choice in texts]
    numbers = [_as_list(value) for value in drawn]
    least = min(range(len(drawn)), key=lambda i: min(numbers[i]))
    return [least, max(range(len(drawn)), key=lambda i: max(numbers[i]))]


def compared(
    rows: Sequence[Figures], measure: str, label: str
) -> tuple[list[str], list[list[str]]]:
    """A table of a measure over all plants: columns and rows, one a combination.

    Differences are paired: each plant and repeat against itself under the first combination. A
    plant counts once, with the mean over its repeats. Intervals hold 95 %, by Student's t.

    Parameters
    ----------
    rows : of the table of all trials; those that tripped, or without the measure, do not count
    label : column that names the combination
    """
    by: dict[str, dict[tuple[int, int], float]] = {}
    for row in rows:
        values = by.setdefault(str(row[label]), {})
        if has_figure(row, measure):
            values[row["plant"], row["repeat"]] = row[measure]
    first = next(iter(by.values()), {})
    made = []
    for name, values in by.items():
        means = of_plants(values)
        pairs = of_plants({k: values[k] - first[k] for k in values if k in first})
        worst = sorted(means, key=lambda plant: -means[plant])[:WORST_SHOWN]
        made.append(
            [
                name, str(len(means)), _interval(list(means.values())),
                "-" if values is first else _interval(list(pairs.values())),
                ", ".join(f"{plant}: {means[plant]:.4g}" for plant in worst),
            ]
        )  # fmt: skip
    return ["", "plants", "mean", "less the first", "largest, by plant"], made


def has_figure(row: Figures, measure: str) -> bool:
    """Whether a trial counts for this measure; one that tripped saw a part of its experiment."""
    return row["outcome"] == "complete" and isinstance(row.get(measure), int | float)


def of_plants(values: Mapping[tuple[int, int], float]) -> dict[int, float]:
    """By plant the mean over its repeats, of values by plant and repeat."""
    by: dict[int, list[float]] = {}
    for (plant, _), value in values.items():
        by.setdefault(plant, []).append(value)
    return {plant: sum(several) / len(several) for plant, several in by.items()}


def _interval(values: Sequence[float]) -> str:
    if len(values) < 2:
        return f"{values[0]:.4g}" if values else "-"
    half = stats.sem(values) * stats.t.ppf(0.975, len(values) - 1)
    return f"{np.mean(values):.4g} ± {half:.2g}"
