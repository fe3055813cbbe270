"""Random plants of a campaign: what each draws, and what a figure is over all of them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import stats

from hil.errors import ConfigError
from hil.experiment.loaded import Experiment
from hil.runs.campaign.tables import CampaignTables, SpreadTable

PLANT, SIM = "plant.", ".sim."
WORST_SHOWN = 5


def drawn_plants(
    where: str, tables: CampaignTables, base: Experiment, numbers: Iterable[int]
) -> tuple[Mapping[str, Any], ...]:
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
    return tuple(
        {key: _draw(tables, number, key, middle) for key, middle in middles.items()}
        for number in numbers
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
        value = value.get(part) if isinstance(value, Mapping) else getattr(value, part, None)
    several = value if isinstance(value, list) else [value]
    if not several or any(isinstance(v, bool) or not isinstance(v, int | float) for v in several):
        raise ConfigError(f"{name}: the rig has no number there: {value!r}: check the key")
    return _for_each(name, key, several, base) if table.each else value


def _for_each(name: str, key: str, value: list[Any], base: Experiment) -> list[Any]:
    """The one value of a list as that of every cell or mass."""
    what, _, last = key.rpartition(".")
    arrays = getattr(base.model, "arrays", {}) if what.startswith("plant.arrays.") else {}
    array = arrays.get(what.removeprefix("plant.arrays."))
    if array is None or last not in ("force_on_N", "mass_kg"):
        raise ConfigError(
            f"{name}: each is for plant.arrays.NAME.force_on_N and plant.arrays.NAME.mass_kg"
        )
    topology = array.topology
    n = topology.n_cells if last == "force_on_N" else topology.n_masses
    return value * n if len(value) == 1 else value


def _draw(tables: CampaignTables, number: int, key: str, middle: Any) -> Any:
    table = tables.spread[key]
    rng = np.random.default_rng([tables.campaign.seed, number, *key.encode()])
    if table.distribution == "choice":
        return table.choices[int(rng.integers(len(table.choices)))]
    if isinstance(middle, list):
        return [_about(table, float(v), rng) for v in middle]
    return _about(table, float(middle), rng)


def _about(table: SpreadTable, middle: float, rng: np.random.Generator) -> float:
    share = 0.0 if table.relative is None else table.relative
    if table.distribution == "lognormal":
        return float(middle * np.exp(share * rng.standard_normal()))
    width = share * abs(middle) if table.absolute is None else table.absolute
    unit = rng.standard_normal() if table.distribution == "normal" else rng.uniform(-1.0, 1.0)
    return float(middle + width * unit)


def extremes_of(table: SpreadTable, drawn: Sequence[Any]) -> list[int]:
    """Indices of the draws with the smallest and the largest number, or of each choice."""
    if table.distribution == "choice":
        return [drawn.index(choice) for choice in table.choices if choice in drawn]
    numbers = [value if isinstance(value, list) else [value] for value in drawn]
    least = min(range(len(drawn)), key=lambda i: min(numbers[i]))
    return [least, max(range(len(drawn)), key=lambda i: max(numbers[i]))]


def compared(
    rows: Sequence[Mapping[str, Any]], measure: str, label: str
) -> tuple[list[str], list[list[str]]]:
    """A table of a measure over all plants: columns and rows, one a combination.

    Differences are paired: each plant against itself under the first combination. Intervals hold
    95 %, by Student's t.

    Parameters
    ----------
    rows : of the table of all trials; those without the measure do not count
    label : column that names the combination
    """
    by: dict[str, dict[Any, float]] = {}
    for row in rows:
        if isinstance(row.get(measure), int | float):
            by.setdefault(str(row[label]), {})[row["plant"], row["repeat"]] = row[measure]
    first = next(iter(by.values()), {})
    made = []
    for name, values in by.items():
        pairs = [values[k] - first[k] for k in values if k in first]
        worst = sorted(values, key=lambda k: -values[k])[:WORST_SHOWN]
        made.append(
            [
                name, str(len(values)), _interval(list(values.values())),
                "-" if values is first else _interval(pairs),
                ", ".join(f"{plant}: {values[plant, repeat]:.4g}" for plant, repeat in worst),
            ]
        )  # fmt: skip
    return ["", "plants", "mean", "less the first", "largest, by plant"], made


def _interval(values: Sequence[float]) -> str:
    if len(values) < 2:
        return f"{values[0]:.4g}" if values else "-"
    half = stats.sem(values) * stats.t.ppf(0.975, len(values) - 1)
    return f"{np.mean(values):.4g} ± {half:.2g}"
