"""Exports a recording as CSV, Apache Parquet or ASAM MDF 4.1, a block of its rows at a time.

There is a column a value; cells are `cells_commanded.<cell>`. In Parquet and MDF units, roles and
descriptions are metadata of the columns, the recording's attributes metadata of the file. Events
are comments of the MDF file; Parquet has them as JSON metadata.
"""

import json
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hil.errors import missing_extra
from hil.record.csv_text import as_line
from hil.record.read import Blocks

Done = Callable[[int], None]
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


def write_csv(blocks: Blocks, part: Path, done: Done) -> None:
    """One line a tick, one column a value; a missing value is empty.

    The first line has the column names, which include the units. A name that a spreadsheet would
    evaluate has an apostrophe in front (`hil.record.csv_text`). A column `source` marks recordings
    of simulated devices with SIMULATED, and imported ones with IMPORTED. `done` is called with the
    number of further ticks done.
    """
    attrs = blocks.head.attrs
    imported = "IMPORTED" if "imported" in attrs else ""
    source = "SIMULATED" if attrs.get("simulated") else imported
    names = [name for name, _, _ in columns_of(blocks.head)]
    with part.open("wb") as file:
        file.write(as_line([*names, *["source"] * bool(source)]).encode())
        for block in blocks:
            columns = {name: values for name, values, _ in columns_of(block)}
            _write_lines(columns, source, file)
            done(block.sizes["tick"])


def _write_lines(columns: dict[str, NDArray[np.generic]], source: str, part_file: BinaryIO) -> None:
    try:
        import pyarrow
        from pyarrow import csv
    except ImportError:  # six times as slow, and part of the core
        import pandas as pd

        table = pd.DataFrame(columns)
        if source:
            table["source"] = source
        table.to_csv(part_file, header=False, index=False)
        return
    arrays = {name: pyarrow.array(values, from_pandas=True) for name, values in columns.items()}
    if source:
        arrays["source"] = pyarrow.repeat(source, len(columns["t_s"]))
    csv.write_csv(
        pyarrow.table(arrays),
        part_file,
        csv.WriteOptions(include_header=False, quoting_style="none"),
    )


def write_parquet(blocks: Blocks, part: Path, done: Done) -> None:
    """Write Parquet, a row group a block; ConfigError if the package pyarrow is not installed."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise missing_extra("Parquet", "export") from None
    head = blocks.head
    about = {key: json.dumps(_plain(value)) for key, value in head.attrs.items()}
    about["events"] = json.dumps(_events(head))
    fields = [
        pyarrow.field(name, pyarrow.from_numpy_dtype(values.dtype), metadata=facts)
        for name, values, facts in columns_of(head)
    ]
    schema = pyarrow.schema(fields, metadata=about)
    # Readings have noise: a dictionary of them is built, found too large and dropped.
    few = [field.name for field in fields if pyarrow.types.is_integer(field.type)]
    with parquet.ParquetWriter(part, schema, use_dictionary=few) as file:
        for block in blocks:
            arrays = [pyarrow.array(values) for _, values, _ in columns_of(block)]
            file.write(pyarrow.Table.from_arrays(arrays, schema=schema))
            done(block.sizes["tick"])


def write_mdf(blocks: Blocks, part: Path, done: Done) -> None:
    """Write MDF 4.1; ConfigError if the package asammdf is not installed."""
    try:
        from asammdf import MDF, Signal
    except ImportError:
        raise missing_extra("MDF", "export") from None
    head, words = blocks.head, ("role", "description", "source")
    with MDF(version="4.10") as file:
        file.start_time = datetime.fromisoformat(head.attrs["created_utc"])
        for i, block in enumerate(blocks):
            columns = {name: values for name, values, _ in columns_of(block)}
            t_s = columns.pop("t_s")
            if i == 0:
                signals = []
                for name, values, facts in columns_of(block):
                    if name != "t_s":
                        about = "; ".join(facts[key] for key in words if key in facts)
                        unit = facts.get("units", "")
                        signals.append(Signal(values, t_s, unit, name, comment=about))
                file.append(signals, comment="ticks", common_timebase=True)
            else:
                file.extend(0, [(t_s, None), *((values, None) for values in columns.values())])
            done(block.sizes["tick"])
        attributes = {key: _plain(value) for key, value in head.attrs.items()}
        file.header.comment = json.dumps({**attributes, "events": _events(head)})
        with part.open("wb+") as written:  # to a name it would add its ending
            file.save(written)


def _events(run: xr.Dataset) -> list[dict[str, object]]:
    keys = ("t_s", "level", "source", "text")
    columns = [run[f"event_{key}"].values.tolist() for key in keys]
    return [dict(zip(keys, row, strict=True)) for row in zip(*columns, strict=True)]


def _plain(value: object) -> object:
    """An attribute as JSON has it."""
    return value.item() if isinstance(value, np.generic) else value
