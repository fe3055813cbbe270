"""`hil check`: validates a file of any kind."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from hil.calibration.files import Record, load_any
from hil.config.files import read_merged, read_toml
from hil.errors import ConfigError
from hil.experiment import board_limits
from hil.experiment.load import check_rig, load, load_model
from hil.experiment.loaded import Experiment, LoadedModel
from hil.experiment.plan import trips
from hil.experiment.source_checks import as_lines, raise_all
from hil.runs import expectations
from hil.runs.assembly import build
from hil.runs.campaign.plan import Campaign, load_campaign
from hil.runs.imports.importing import read_map
from hil.runs.plan import Plan


class Checked(NamedTuple):
    """A valid file: the name of its kind, and what it describes; None for the map of an import."""

    kind: str
    content: LoadedModel | Record | Campaign | None


def check(path: str | Path, sets: Iterable[str] = ()) -> Checked:
    """Validate a file of any kind.

    Raises
    ------
    ConfigError
        The file is invalid; one line an error.
    """
    path = Path(path)
    if "act" in read_toml(path):
        return Checked("calibration record", load_any(path, named_by=str(path)))
    if "campaign" in read_toml(path):
        return Checked("campaign", load_campaign(path))
    if "sources" in read_toml(path):
        read_map(path)
        return Checked("map of an import", None)
    table = read_merged(path, sets).table
    if "experiment" in table or "controller" in table:
        return Checked("experiment", _experiment(path, sets))
    if table.keys() <= {"model", "plant"}:
        model = load_model(path, sets)
        _ = model.models, model.sources
        return Checked("model", model)
    return Checked("rig", check_rig(path, sets))


def _experiment(path: Path, sets: Iterable[str]) -> Experiment:
    """Load an experiment, and check what only a bench would refuse."""
    loaded = load(path, sets)
    faults = [*trips(loaded), *board_limits.faults(loaded.protections)]
    if faults and loaded.unusual:  # which is why
        faults = faults[:1]
        lines = as_lines(loaded.merged, faults)
        raise ConfigError("\n".join([loaded.unusual[0], *lines]))
    raise_all(loaded.merged, faults)
    if loaded.excuses:
        raise ConfigError("\n".join(loaded.excuses))
    refuse_unanswerable(loaded)
    return loaded


def refuse_unanswerable(config: Experiment) -> None:
    """Refuse an `[[expect]]` that a run of this experiment cannot answer; ConfigError."""
    if config.tables.expect:
        expectations.check(config, build(Plan(config)).frame.columns)
