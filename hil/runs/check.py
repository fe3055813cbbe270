"""`hil check`: validates a file of any kind."""

from collections.abc import Iterable
from pathlib import Path

from hil.calibration.files import load_any
from hil.config.files import read_merged, read_toml
from hil.errors import ConfigError
from hil.experiment import board_limits
from hil.experiment.load import check_model, check_rig, load, raise_all
from hil.experiment.plan import cells_beyond
from hil.runs.campaign.plan import load_campaign
from hil.runs.imports.importing import read_map


def check(path: str | Path, sets: Iterable[str] = ()) -> str:
    """Validate a file of any kind; returns the name of its kind.

    Raises
    ------
    ConfigError
        The file is invalid; one line an error.
    """
    path = Path(path)
    if "act" in read_toml(path):
        load_any(path, named_by=str(path))
        return "calibration record"
    if "campaign" in read_toml(path):
        load_campaign(path)
        return "campaign"
    if "sources" in read_toml(path):
        read_map(path)
        return "map of an import"
    merged = read_merged(path, sets)
    if "experiment" in merged.table or "controller" in merged.table:
        config = load(path, sets)
        boards = board_limits.protections(config.tables, config.models[0])
        raise_all(merged, [*cells_beyond(config), *board_limits.faults(boards)])
        if config.excuses:
            raise ConfigError("\n".join(config.excuses))
        return "experiment"
    if merged.table.keys() <= {"model", "plant"}:
        check_model(merged)
        return "model"
    check_rig(merged)
    return "rig"
