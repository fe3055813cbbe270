"""Commissions a campaign's plants: identifies each before its trials, from a run of the same loop.

What is fitted becomes the model that the controllers know. The plant stays as it was drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from hil.config.values import Figures
from hil.errors import ConfigError
from hil.experiment.kind import Fitting
from hil.experiment.load import load
from hil.experiment.loaded import Experiment
from hil.plugins.descriptors import loaded
from hil.record.append_log import Entry
from hil.runs import session
from hil.runs.campaign.tables import CommissionTable
from hil.runs.plan import Plan
from hil.runs.recording import Output

if TYPE_CHECKING:
    from hil.runs.campaign.parallel import Work

COMMISSIONED = "commissioned"  # kind of a journal's line


def load_commission(
    where: str, table: CommissionTable, configs: Iterable[tuple[str, Experiment]]
) -> Experiment:
    """The experiment that commissions a plant.

    Raises
    ------
    ConfigError
        It is refused, cannot be fitted to, or is of another rig than one of the campaign.
    """
    key = f"{where}: commission"
    try:
        config = load(Path(where).parent / table.experiment)
    except ConfigError as error:
        raise ConfigError(f"{key}.experiment: {str(error).splitlines()[0]}") from None
    for name, other in configs:
        for part in ("model", "plant"):
            if getattr(other.tables, part) != getattr(config.tables, part):
                raise ConfigError(
                    f"{key}.experiment = '{table.experiment}': its [{part}] is not that of "
                    f"{name}: a plant is commissioned on the rig of its trials"
                )
    if config.kind.identified is None:
        raise ConfigError(f"{key}: a model of kind '{config.tables.model.kind}' is not identified: "
                          "leave [commission] out")  # fmt: skip
    check, _ = (loaded(one) for one in config.kind.identified)
    try:
        check(config, fitting_of(table))
    except ConfigError as error:
        raise ConfigError(f"{key}.{error}") from None
    return config


def fitting_of(table: CommissionTable, recording: Path = Path()) -> Fitting:
    """What is fitted to a recording."""
    return Fitting(recording, tuple(table.free), tuple(table.fix), tuple(table.each))


def commissioned(work: Work, table: CommissionTable) -> Figures:
    """Run the experiment on one plant and fit its model; returns the keys of its journal line."""
    config = load(work.experiment, work.sets)
    assert config.kind.identified is not None
    _, fit = (loaded(one) for one in config.kind.identified)
    with TemporaryDirectory() as folder:
        output = Output(Path(folder) / "commission.h5")
        result = session.run(Plan(config, clock="virtual", seed=work.seed), output)
        result.stop.pass_on()
        if result.outcome != "complete":
            why = ", ".join(result.summary["first_fault"]) or result.outcome
            return {"outcome": "failed", "error": f"its commissioning: {why}"}
        fitted = fit(config, fitting_of(table, result.path))
    return {"outcome": "complete", **fitted._asdict()}


def entry_of(plant: int, result: Figures) -> Entry:
    """The line of a journal for a plant."""
    keys = ("fitted", "adequate", "known")
    return {"kind": COMMISSIONED, "plant": plant, **{key: result[key] for key in keys}}


def known_of(entries: Iterable[Entry]) -> dict[int, Mapping[str, object]]:
    """What a journal has of every plant that is commissioned: values by key."""
    return dict(_lines(entries, "known"))


def _lines(entries: Iterable[Entry], key: str) -> Iterator[tuple[int, Figures]]:
    return ((one["plant"], one[key]) for one in entries if one["kind"] == COMMISSIONED)


def columns_of(entries: Iterable[Entry], plant: int) -> dict[str, object]:
    """Columns of the table of all trials: what was fitted to this plant."""
    fitted = dict(_lines(entries, "fitted"))
    names = {key: None for values in fitted.values() for key in values}
    return {f"model.{key}": fitted.get(plant, names)[key] for key in names}
