"""Recordings in other formats."""

import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import scipy.io
import xarray as xr

from hil.errors import ConfigError, writing
from hil.platform.whole_files import sha256_of, whole
from hil.record.mcap_file import write_mcap
from hil.record.progress import count_progress
from hil.record.read import Blocks, open_blocks, open_run
from hil.record.table_files import write_csv, write_mdf, write_parquet

#: Formats, and the ending of their files.
KINDS = {"csv": ".csv", "mat": ".mat", "mcap": ".mcap", "mdf": ".mf4", "parquet": ".parquet"}
MAT_MAX_B = 2**31  # of a variable in a .mat file, such as `ticks`
FIELD_MAX = 63  # letters of a field in MATLAB; SciPy leaves one out that begins with _ or a digit


def export(path: Path, kind: str, out: Path | None = None, *, progress: bool = False) -> Path:
    """Write a recording as one of KINDS; returns the path of the new file.

    An older export is overwritten. The rows go through memory a part at a time, but for MATLAB,
    whose files are made in memory.

    Raises
    ------
    ConfigError
        `path` is not a recording, or too long for MATLAB; or the new file cannot be written, has
        the ending of a recording or of another format, or would replace the file that the recording
        was imported from.
    """
    target = path.with_suffix(KINDS[kind]) if out is None else out
    others = {ending: other for other, ending in KINDS.items() if other != kind}
    if target.suffix in others:
        raise ConfigError(
            f"--out {target}: --to {kind} writes {KINDS[kind]}: add --to {others[target.suffix]}, "
            f"or name it {target.with_suffix(KINDS[kind]).name}"
        )
    if target.suffix == path.suffix != KINDS[kind]:
        raise ConfigError(f"--out {target}: a recording: name it {target.stem}{KINDS[kind]}")
    with open_blocks(path) as blocks:
        if kind == "mat":
            _refuse_beyond_matlab(blocks, path)
        imported = _imported(blocks.head)
        if imported and target.is_file() and sha256_of(target) in imported:
            raise ConfigError(f"{target}: {path.name} was imported from it: choose another --out")
        with (
            writing(target),
            whole(target) as part,
            count_progress("ticks", blocks.n_rows, progress) as done,
        ):
            if kind == "mat":
                _to_mat(open_run(path), part)
            else:
                writers = {
                    "csv": write_csv, "mcap": write_mcap, "mdf": write_mdf,
                    "parquet": write_parquet,
                }  # fmt: skip
                writers[kind](blocks, part, done)
    return target


def _imported(run: xr.Dataset) -> set[str]:
    """SHA-256 of the files that a recording was imported from."""
    return {file["sha256"] for file in json.loads(run.attrs.get("imported", "{}")).get("files", ())}


def _refuse_beyond_matlab(blocks: Blocks, path: Path) -> None:
    row = blocks.columns_of(0, min(1, blocks.n_rows))
    size_B = blocks.n_rows * sum(values.nbytes for values in row.values())
    if size_B > MAT_MAX_B:
        raise ConfigError(
            f"{path}: {size_B / 1e9:.3g} GB of rows: a .mat file may have "
            f"{MAT_MAX_B / 1e9:.3g} GB: use --to parquet, which MATLAB reads by parquetread"
        )


def _to_mat(run: xr.Dataset, part: Path) -> None:
    """Structures `ticks`, `units`, `columns` and `attributes`, by the names of `_fields`.

    `columns` has the names of the columns as the recording has them, `attributes.simulated` those
    of the simulated devices, `cells` those of the cells.
    """
    ticks = {"t_s": run.t_s, **{str(name): run[name] for name in run.data_vars}}
    ticks = {name: variable for name, variable in ticks.items() if variable.dims[0] == "tick"}
    fields = _fields(ticks)
    kept = {field: ticks[name] for field, name in fields.items()}
    content = {
        "ticks": {name: variable.values for name, variable in kept.items()},
        "units": {name: variable.attrs["units"] for name, variable in kept.items()},
        "columns": fields,
        "attributes": {key: run.attrs[key] for key in run.attrs if key[0].islower()},
        "cells": np.array(run.cell.values if "cell" in run.coords else [], dtype=object),
    }
    scipy.io.savemat(part, content, appendmat=False, long_field_names=True, oned_as="column")


def _fields(names: Iterable[str]) -> dict[str, str]:
    """Names by the field that MATLAB has for each, which begins with a letter.

    Dots, and letters that a field cannot have, become underscores; what is too long is cut off.
    """
    fields: dict[str, str] = {}
    for name in names:
        plain = "".join(c if c.isascii() and c != "." else "_" for c in name)
        field = plain = (plain if plain[0].isalpha() else f"x{plain}")[:FIELD_MAX]
        n = 2
        while field in fields:
            field, n = f"{plain[: FIELD_MAX - 1 - len(str(n))]}_{n}", n + 1
        fields[field] = name
    return fields
