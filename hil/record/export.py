"""Recordings in other formats."""

import json
from hashlib import sha256
from pathlib import Path

import numpy as np
import scipy.io
import xarray as xr

from hil.errors import ConfigError, writing
from hil.platform.whole_files import whole
from hil.record.csv_text import as_field
from hil.record.mcap_file import write_mcap
from hil.record.progress import count_progress
from hil.record.read import open_run
from hil.record.table_files import write_mdf, write_parquet

#: Formats, and the ending of their files.
KINDS = {"csv": ".csv", "mat": ".mat", "mcap": ".mcap", "mdf": ".mf4", "parquet": ".parquet"}


def export(path: Path, kind: str, out: Path | None = None, *, progress: bool = False) -> Path:
    """Write a recording as one of KINDS; returns the path of the new file.

    An older export is overwritten.

    Raises
    ------
    ConfigError
        `path` is not a recording, or the new file cannot be written, has the ending of a recording
        or of another format, or would replace the file that the recording was imported from.
    """
    run = open_run(path)
    target = path.with_suffix(KINDS[kind]) if out is None else out
    others = {ending: other for other, ending in KINDS.items() if other != kind}
    if target.suffix in others:
        raise ConfigError(
            f"--out {target}: --to {kind} writes {KINDS[kind]}: add --to {others[target.suffix]}, "
            f"or name it {target.with_suffix(KINDS[kind]).name}"
        )
    if target.suffix == path.suffix:
        raise ConfigError(f"--out {target}: a recording: name it {target.stem}{KINDS[kind]}")
    if target.is_file() and sha256(target.read_bytes()).hexdigest() in _imported(run):
        raise ConfigError(f"{target}: {path.name} was imported from it: choose another --out")
    with writing(target), whole(target) as part:
        if kind == "mcap":
            with count_progress("ticks", run.sizes["tick"], progress) as done:
                write_mcap(run, part, done)
        else:
            writers = {"csv": _to_csv, "mat": _to_mat, "mdf": write_mdf, "parquet": write_parquet}
            writers[kind](run, part)
    return target


def _imported(run: xr.Dataset) -> set[str]:
    """SHA-256 of the files that a recording was imported from."""
    return {file["sha256"] for file in json.loads(run.attrs.get("imported", "{}")).get("files", ())}


def _to_csv(run: xr.Dataset, part: Path) -> None:
    """One line a tick, one column a value; cells become `cells_commanded.<cell>`.

    The first line has the column names, which include the units. A name that a spreadsheet would
    evaluate has an apostrophe in front (`hil.record.csv_text`). A column `source` marks recordings
    of simulated devices with SIMULATED, and imported ones with IMPORTED.
    """
    columns = {"t_s": run.t_s.values}
    for name in run.data_vars:
        variable = run[name]
        if variable.dims == ("tick",):
            columns[str(name)] = variable.values
        elif variable.dims == ("tick", "cell"):
            for i, cell in enumerate(run.cell.values):
                columns[f"{name}.{cell}"] = variable.values[:, i]
    table = xr.Dataset({k: ("tick", v) for k, v in columns.items()}).to_dataframe()
    if run.attrs.get("simulated"):
        table["source"] = "SIMULATED"
    elif "imported" in run.attrs:
        table["source"] = "IMPORTED"
    table.rename(columns=as_field).to_csv(part, index=False)


def _to_mat(run: xr.Dataset, part: Path) -> None:
    """Structures `ticks`, `units` and `attributes`; dots in names become underscores.

    `attributes.simulated` names the simulated devices; `cells` has the names of the cells.
    """
    ticks = {"t_s": run.t_s, **{str(name): run[name] for name in run.data_vars}}
    kept = {name.replace(".", "_"): v for name, v in ticks.items() if v.dims[0] == "tick"}
    content = {
        "ticks": {name: variable.values for name, variable in kept.items()},
        "units": {name: variable.attrs["units"] for name, variable in kept.items()},
        "attributes": {key: run.attrs[key] for key in run.attrs if key[0].islower()},
        "cells": np.array(run.cell.values if "cell" in run.coords else [], dtype=object),
    }
    scipy.io.savemat(part, content, appendmat=False, long_field_names=True, oned_as="column")
