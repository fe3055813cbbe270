"""Reads the file of `hil topologies --cell`: one cell for all places."""

from pathlib import Path

from hil.config.files import Merged, read_toml
from hil.config.validate import validated
from hil.errors import ConfigError
from hil.experiment.load import load_model
from hil.systems.array.build import build_cell
from hil.systems.array.tables import CellFile
from hil.systems.array.topology.figures import LikeCells


def load_cell(path: Path) -> LikeCells:
    """Read a cell from a file.

    The file holds the table of a cell, at its top level or as `[cell]`, and optionally
    `force_on_N` (default 1 N). It can also be the file of a rig or an experiment if all cells of
    its model have the same static law, since the figures use only statics.

    Raises
    ------
    ConfigError
        The file is invalid; the message names file, key and remedy.
    """
    contents = read_toml(path)
    try:
        if "model" in contents or "rig" in contents:
            return _of_model(path)
        if "cell" not in contents:
            beside = {key: contents.pop(key) for key in ("force_on_N",) if key in contents}
            contents = {"cell": contents, **beside}
        table = validated(CellFile, Merged(contents, [(str(path), contents)]))
        return LikeCells(build_cell(table.cell), table.force_on_N)
    except ValueError as error:
        raise ConfigError(f"{path}: {error}") from None


def _of_model(path: Path) -> LikeCells:
    file = load_model(path)
    laws = [cell for array in file.model.arrays.values() for cell in array.cells]
    force_on_N = {law.force_on_N for law in file.activation()}
    if len({law.static for law in laws}) > 1 or len(force_on_N) > 1:
        raise ConfigError(f"{path}: its cells differ: give a file with one [cell] for all places")
    return LikeCells(laws[0], force_on_N.pop())
