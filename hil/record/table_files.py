"""Exports a recording as Apache Parquet or ASAM MDF 4.1, with the unit of every column.

The columns are those of the CSV export: one a value, cells as `cells_commanded.<cell>`. Their
units, roles and descriptions are metadata of the columns; the recording's attributes are metadata
of the file. Events are comments of the MDF file; Parquet has them as JSON metadata.
"""

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hil.errors import missing_extra

Columns = Iterator[tuple[str, NDArray[np.generic], dict[str, str]]]


def columns_of(run: xr.Dataset) -> Columns:
    """Name, values and facts (units, role, description) of every column with a row a tick."""
    for name in ("t_s", *map(str, run.data_vars)):
        variable = run[name]
        keys = ("units", "role", "description", "source")
        facts = {key: str(variable.attrs[key]) for key in keys if key in variable.attrs}
        if variable.dims == ("tick",):
            yield name, variable.values, facts
        elif variable.dims == ("tick", "cell"):
            for i, cell in enumerate(run.cell.values):
                yield f"{name}.{cell}", np.ascontiguousarray(variable.values[:, i]), facts


def write_parquet(run: xr.Dataset, part: Path) -> None:
    """Write Parquet; ConfigError if the package pyarrow is not installed."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise missing_extra("Parquet", "export") from None
    fields, arrays = [], []
    for name, values, facts in columns_of(run):
        array = pyarrow.array(values)
        arrays.append(array)
        fields.append(pyarrow.field(name, array.type, metadata=facts))
    about = {key: json.dumps(_plain(value)) for key, value in run.attrs.items()}
    about["events"] = json.dumps(_events(run))
    schema = pyarrow.schema(fields, metadata=about)
    parquet.write_table(pyarrow.Table.from_arrays(arrays, schema=schema), part)


def write_mdf(run: xr.Dataset, part: Path) -> None:
    """Write MDF 4.1; ConfigError if the package asammdf is not installed."""
    try:
        from asammdf import MDF, Signal
    except ImportError:
        raise missing_extra("MDF", "export") from None
    t_s, words = run.t_s.values, ("role", "description", "source")
    signals = []
    for name, values, facts in columns_of(run):
        if name != "t_s":
            about = "; ".join(facts[key] for key in words if key in facts)
            signals.append(Signal(values, t_s, facts.get("units", ""), name, comment=about))
    with MDF(version="4.10") as file:
        file.start_time = datetime.fromisoformat(run.attrs["created_utc"])
        file.append(signals, comment="ticks", common_timebase=True)
        attributes = {key: _plain(value) for key, value in run.attrs.items()}
        file.header.comment = json.dumps({**attributes, "events": _events(run)})
        with part.open("wb+") as written:  # to a name it would add its ending
            file.save(written)


def _events(run: xr.Dataset) -> list[dict[str, object]]:
    keys = ("t_s", "level", "source", "text")
    columns = [run[f"event_{key}"].values.tolist() for key in keys]
    return [dict(zip(keys, row, strict=True)) for row in zip(*columns, strict=True)]


def _plain(value: object) -> object:
    """An attribute as JSON has it."""
    return value.item() if isinstance(value, np.generic) else value
