"""The recording file, format `hil-run/1`; every object in it is created before the first row.

HDF5 with `libver=("v110", "v110")` supports the single-writer-multiple-reader mode and readers back
to HDF5 1.10. In this mode datasets can grow, but no object can be created.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
from numpy.typing import NDArray

from hil.loop.channels import signals_in
from hil.loop.frame import CELL_UNKNOWN, Column
from hil.loop.tap import EVENT, INPUT
from hil.record.checksums import write_checksums
from hil.record.held import refuse_held

if TYPE_CHECKING:
    from hil.record.raw_samples import (
        RawSamples,
    )  # its numba would dominate the recorder's start-up time

Columns = dict[str, NDArray[Any]]  # of a recording, by name: each of its own type
FORMAT = "hil-run/1"
LIBVER = ("v110", "v110")
CACHE_B = 2**20  # of a column that is open; HDF5 takes 8 MiB, and there may be hundreds
RECORDED = "recorded_rows"
RINGS = ("ticks", "events", "inputs")  # the order of the counts in RECORDED, raw after them
RAW = "raw"
PLUGINS = "own"
OUTCOMES = ("running", "complete", "tripped", "aborted", "recovered")


@dataclass(frozen=True)
class Contents:
    """What a recording holds before its first row.

    Attributes
    ----------
    attributes : root attributes
    calibration, records : calibrations of the channels, and records of other values by file
    model : arrays of `/model`
    raw : devices that sample faster than the loop
    plugins : plug-in code by key: its `source`, and facts about it
    """

    columns: Sequence[Column]
    attributes: Mapping[str, str | int | float | bool]
    rows_per_chunk: int
    calibration: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    records: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    model: Mapping[str, object] = field(default_factory=dict)
    raw: Mapping[str, RawSamples] = field(default_factory=dict)
    plugins: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def create(path: Path, contents: Contents, *, overwrite: bool = True) -> str:
    """Create the file with all groups, datasets and attributes, without rows.

    Returns its `created_utc`, which is now unless the attributes have one. The file gets its final
    name when it is complete, so an incomplete file is never visible.

    Raises
    ------
    FileExistsError
        Not `overwrite`, and there is a file of this name by now.
    ConfigError
        A run writes a file of this name.
    """
    partial = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        with h5py.File(partial, "w", libver=LIBVER) as file:
            fill(file, contents)
            created_utc = text_of(file.attrs["created_utc"])
        refuse_held(path)
        if not overwrite and path.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        os.replace(partial, path)
        forget_places(path)
        return created_utc
    finally:
        partial.unlink(missing_ok=True)


def fill(file: h5py.File, contents: Contents) -> None:
    """Write everything that a recording holds before its first row into an empty file."""
    _write_attributes(file, contents.attributes)
    _create_ticks(file, contents.columns, contents.rows_per_chunk)
    _create_raw(file, contents.raw, contents.rows_per_chunk)
    create_recorded(file, [0] * (len(RINGS) + len(contents.raw)))
    for name, dtype in (("events", EVENT), ("inputs", INPUT)):
        file.create_dataset(name, shape=(0,), maxshape=(None,), dtype=dtype, chunks=(64,))
    for folder, kept in (("calibration", contents.calibration), ("records", contents.records)):
        for name, record in kept.items():
            group = file.create_group(f"{folder}/{name}")
            for key, value in record.items():
                group.attrs[key] = value
    group = file.create_group("model")
    for folder in ("calibration", "records", "model"):
        if folder in file:
            file[folder].attrs["NX_class"] = "NXcollection"
    for name, value in contents.model.items():
        array = np.asarray(value)
        if array.dtype.kind == "U":
            array = np.char.encode(array, "utf-8") if array.size else np.zeros(0, dtype="S1")
        group.create_dataset(name, data=array)
    _write_plugins(file, contents.plugins)


def _write_attributes(file: h5py.File, attributes: Mapping[str, str | int | float | bool]) -> None:
    file.attrs["NX_class"] = "NXroot"
    file.attrs["default"] = "ticks"
    file.attrs["format"] = FORMAT
    file.attrs["created_utc"] = datetime.now(UTC).isoformat(timespec="milliseconds")
    for name, value in attributes.items():
        file.attrs[name] = value
    file.attrs["outcome"] = "running"
    file.attrs["summary"] = "{}"


def _create_ticks(file: h5py.File, columns: Sequence[Column], rows_per_chunk: int) -> None:
    ticks = file.create_group("ticks")
    ticks.attrs["NX_class"] = "NXdata"
    ticks.attrs["axes"] = "t_s"
    shown = _default_plot([c.name for c in columns if not c.n_cells])
    ticks.attrs["signal"] = shown[0]
    if shown[1:]:
        ticks.attrs["auxiliary_signals"] = shown[1:]
    for place, column in enumerate(columns):
        base, shape = column.dtype.base, column.dtype.shape
        dataset = ticks.create_dataset(
            column.name,
            shape=(0, *shape),
            maxshape=(None, *shape),
            dtype=base,
            chunks=(rows_per_chunk, *shape),
            fletcher32=True,
        )
        dataset.attrs["units"] = column.units
        dataset.attrs["role"] = column.role
        dataset.attrs["description"] = column.description
        dataset.attrs["place"] = place  # in the row; HDF5 lists names by alphabet
        if column.simulated:
            dataset.attrs["source"] = "SIMULATED"
        if column.flags:
            dataset.attrs["flags"] = list(column.flags)
        if column.n_cells and not column.fractions:
            dataset.attrs["missing"] = np.uint8(CELL_UNKNOWN)


def _default_plot(names: Sequence[str]) -> list[str]:
    """Columns that a viewer of NeXus files shows first: a signal, then its model and set point."""
    if signals := signals_in(names):
        first = signals[0]
        return [name for name in (first.measured, first.model, first.reference) if name]
    return [next((name for name in names if "_measured" in name), "t_s")]


def _write_plugins(file: h5py.File, plugins: Mapping[str, Mapping[str, str]]) -> None:
    """Write plug-in code by key: the source as a dataset, facts about it as attributes."""
    for key, facts in plugins.items():
        text = np.frombuffer(facts["source"].encode(), dtype=np.uint8)
        dataset = file.create_dataset(f"{PLUGINS}/{key}", data=text)
        dataset.attrs["description"] = "UTF-8 text of the file"
        for name, value in facts.items():
            if name != "source":
                dataset.attrs[name] = value


def _create_raw(file: h5py.File, raw: Mapping[str, RawSamples], rows_per_chunk: int) -> None:
    """Create datasets for the samples of devices that sample faster than the loop."""
    for name, samples in sorted(raw.items()):
        group = file.create_group(f"{RAW}/{name}")
        group.attrs["NX_class"] = "NXdata"
        group.attrs["axes"] = "t_s"
        group.attrs["signal"] = next((f for f in samples.dtype.names or () if f != "t_s"), "t_s")
        group.attrs["rate_Hz"] = samples.rate_Hz
        group.attrs["description"] = f"every sample of {name}, t_s by its own clock from its start"
        for channel in samples.dtype.names or ():
            dataset = group.create_dataset(
                channel,
                shape=(0,),
                maxshape=(None,),
                dtype=samples.dtype[channel],
                chunks=(min(65536, samples.per_tick * rows_per_chunk),),
                fletcher32=True,
            )
            dataset.attrs["units"] = samples.units[channel]
            if samples.simulated:
                dataset.attrs["source"] = "SIMULATED"


def create_recorded(file: h5py.File, n_rows: Sequence[int]) -> None:
    """Create the dataset of the numbers of rows that are complete on file, in every column."""
    recorded = file.create_dataset(RECORDED, data=np.array(n_rows, dtype=np.int64))
    about = f"rows that are whole on file: {', '.join(RINGS)}, then raw by device"
    recorded.attrs["description"] = about


def places_of(path: Path) -> Path:
    """Log of where rows stand (`hil.record.places`), there until the recording is finished."""
    return path.with_name(path.name + ".places")


def forget_places(path: Path) -> None:
    """Remove that log; one that cannot be removed is in nobody's way."""
    with contextlib.suppress(OSError):
        places_of(path).unlink(missing_ok=True)


def finish(path: Path, outcome: str, summary: Mapping[str, object]) -> None:
    """Write outcome and checksums into the file of a run that has all its rows; sync it to disk."""
    if outcome not in OUTCOMES:
        raise ValueError(f"outcome '{outcome}' is not one of {OUTCOMES}")
    with h5py.File(path, "r+", libver=LIBVER, locking=False) as file:  # the run holds it
        write_outcome(file, outcome, summary)
        write_checksums(file)
    with path.open("rb+") as written:
        os.fsync(written.fileno())
    forget_places(path)


def write_outcome(file: h5py.File, outcome: str, summary: Mapping[str, object]) -> None:
    """The same of an open recording."""
    file.attrs["summary"] = json.dumps(summary)
    file.attrs["outcome"] = outcome


def text_of(value: object) -> str:
    """An attribute or fixed-length string as text."""
    return value.decode() if isinstance(value, bytes) else str(value)
