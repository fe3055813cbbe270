"""Readers of binary formats: TDMS, MATLAB, MDF4, HDF5, Parquet."""

from __future__ import annotations

import contextlib
import gc
import io
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import h5py
import numpy as np
from numpy.typing import NDArray

from hil.errors import ConfigError, one_line
from hil.record.global_heap import torn_heap_at
from hil.record.layout import text_of
from hil.runs.imports.source import Content, Series, by_full_name, package
from hil.runs.imports.tables import TextTable

if TYPE_CHECKING:
    from nptdms import TdmsChannel

COLUMNS_MAX = 4096  # of a matrix: the longer side is time
FILL, PACKED = ("_FillValue", "missing_value"), ("scale_factor", "add_offset")  # of netCDF
STRUCTURES_MAX = 256  # of an array of structures or a cell array


def read_tdms(path: Path, table: TextTable) -> Content:
    """Channels as `group/channel`, with their times where they have an increment.

    Times count from the earliest start of a waveform, so that channels of several rates and starts
    stay where they were to each other. TDMS stores them in UTC.

    Source: National Instruments, TDMS File Format Internal Structure, time stamps.
    """
    nptdms = package("nptdms", f"{path}: TDMS")
    file = nptdms.TdmsFile.read(path)
    left: list[str] = []
    channels = [channel for group in file.groups() for channel in group.channels()]
    starts = [s for c in channels if (s := c.properties.get("wf_start_time")) is not None]
    first = min((np.datetime64(start) for start in starts), default=None)
    columns = by_full_name(_tdms(channels, first, left))
    start = None if first is None else first.astype("M8[us]").item().replace(tzinfo=UTC)
    return Content("TDMS", columns, left, start)


def _tdms(
    channels: list[TdmsChannel], first: np.datetime64 | None, left: list[str]
) -> Iterator[tuple[str, Series]]:
    for channel in channels:
        values, about = _floats(channel[:]), channel.properties
        if values is None or not len(values):
            kind = "texts" if len(channel) else "no values"
            left.append(f"{channel.group_name}/{channel.name} ({kind})")
            continue
        times = None
        if "wf_increment" in about:
            begin_s = about.get("wf_start_offset", 0.0)
            if first is not None and "wf_start_time" in about:
                late = np.datetime64(about["wf_start_time"]) - first
                begin_s += late / np.timedelta64(1, "s")
            times = begin_s + about["wf_increment"] * np.arange(len(values))
        unit = about.get("unit_string", "")
        yield f"{channel.group_name}/{channel.name}", Series(values, str(unit), times)


def read_mat(path: Path, table: TextTable) -> Content:
    """Vectors and columns of matrices; members of structures as `structure.member`."""
    if h5py.is_hdf5(path):
        return read_hdf5(path, table)._replace(format="MAT 7.3")
    import scipy.io

    content = scipy.io.loadmat(path, simplify_cells=True, appendmat=False)
    left: list[str] = []
    return Content("MAT 5", by_full_name(_members("", content, left)), left)


def _members(
    within: str, content: Mapping[str, object], left: list[str]
) -> Iterator[tuple[str, Series]]:
    for name, value in content.items():
        if name.startswith("__") and name != "__function_workspace__":
            continue
        full = f"{within}.{name}" if within else name
        several = isinstance(value, list) or np.asarray(value).dtype.kind == "O"
        if isinstance(value, dict):
            yield from _members(full, value, left)
        elif several and len(value) <= STRUCTURES_MAX:  # type: ignore[arg-type]
            numbered = {str(i): item for i, item in enumerate(value, start=1)}  # type: ignore[var-annotated, arg-type]
            yield from _members(full, numbered, left)
        elif isinstance(value, np.ndarray) and value.dtype.kind in "fiub" and value.size > 1:
            yield from _columns(full, value, "", left)
        elif name == "__function_workspace__":
            left.append("objects of MATLAB classes, such as tables: write them with struct()")
        else:
            left.append(f"{full} ({_kind(value)})")


def _kind(value: object) -> str:
    if isinstance(value, np.generic | float | int) or getattr(value, "size", 0) == 1:
        return f"one number, {value}"
    return "texts" if isinstance(value, str) or _is_text(value) else "neither vector nor matrix"


def _is_text(value: object) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in "US"


def read_mdf(path: Path, table: TextTable) -> Content:
    """Channels of MDF 3 and 4, each with the times of its group."""
    asammdf = package("asammdf", f"{path}: MDF")
    # asammdf raises again in the destructor of what it could not open: read from memory, and let
    # that happen here, where it is not printed.
    message = ""
    left: list[str] = []
    with _quiet_destructors():
        try:
            columns = _mdf(asammdf, path.read_bytes(), left)
        except Exception as error:
            message = one_line(str(error) or type(error).__name__)[:120]
    if message:
        raise ConfigError(f"{path}: cannot be read as MDF ({message}): export it again")
    return Content("MDF", by_full_name(columns), left)


def _mdf(asammdf: ModuleType, content: bytes, left: list[str]) -> list[tuple[str, Series]]:
    columns = []
    with asammdf.MDF(io.BytesIO(content)) as file:
        for channel in (channel for group in file.groups for channel in group.channels):
            if _has_formula(channel.conversion):
                raise ConfigError(
                    f"channel {channel.name} has a formula, which could be any code: store the "
                    "values that it gives"
                )
        for signal in file.iter_channels(skip_master=True):
            values = _floats(signal.samples)
            if values is not None and len(values):
                times = np.asarray(signal.timestamps, dtype=float)
                columns.append((signal.name, Series(values, signal.unit or "", times)))
            else:
                left.append(f"{signal.name} (texts)")
    return columns


def _has_formula(conversion: object) -> bool:
    """Whether a conversion, or one that it refers to, is a formula: asammdf executes its text."""
    if conversion is None:
        return False
    inner = getattr(conversion, "referenced_blocks", None) or {}
    return bool(getattr(conversion, "formula", "")) or any(
        _has_formula(block) for block in inner.values() if not isinstance(block, bytes | str)
    )


@contextlib.contextmanager
def _quiet_destructors() -> Iterator[None]:
    """Errors of destructors in the block are not printed."""
    hook, sys.unraisablehook = sys.unraisablehook, lambda unraisable: None
    try:
        yield
    finally:
        gc.collect()
        sys.unraisablehook = hook


def read_hdf5(path: Path, table: TextTable) -> Content:
    """Datasets of numbers by their path; units from the attribute `units` or `unit`.

    Fields of a table (a compound type) are `dataset/field`. Where netCDF marks missing values, they
    are missing.

    Source: CF Metadata Conventions 1.11, sections 2.5.1 and 8.1.
    """
    if (at := torn_heap_at(path, everywhere=True)) is not None:
        raise ConfigError(f"{path}: damaged (its texts at byte {at}): copy the file again")
    left: list[str] = []
    with h5py.File(path, "r", locking=False) as file:
        if text_of(file.attrs.get("format", "")).startswith("hil-run/"):
            raise ConfigError(f"{path}: a recording of hil already: use it as it is")
        sets: list[tuple[str, h5py.Dataset]] = []

        def note(name: str, item: object) -> None:
            if not isinstance(item, h5py.Dataset):
                return
            if item.external or item.is_virtual:
                raise ConfigError(
                    f"{path}: {name}: its values are in other files, which an import does not "
                    "open: copy them into this file"
                )
            sets.append((name, item))

        file.visititems(note)
        columns = []
        for name, item in sets:
            unit = item.attrs.get("units", item.attrs.get("unit", ""))
            unit = text_of(unit) if np.ndim(unit) == 0 else ""
            if item.dtype.names and item.ndim == 1:
                for field in item.dtype.names:
                    columns += list(_columns(f"{name}/{field}", item[field], "", left))
            elif item.dtype.kind in "fiub" and item.ndim in (1, 2):
                columns += list(_columns(name, _without_fill(item), unit, left))
                if packed := [key for key in PACKED if key in item.attrs]:
                    values = [f"{key} {str(item.attrs[key]).strip('[]')}" for key in packed]
                    how = "not applied: give scale and offset of its column"
                    left.append(f"{name} ({', '.join(values)}, {how})")
            else:
                what = f"{item.ndim} dimensions" if item.dtype.kind in "fiub" else "no numbers"
                left.append(f"{name} ({what})")
    return Content("HDF5", by_full_name(columns), left)


def _without_fill(dataset: h5py.Dataset) -> NDArray[np.generic]:
    """Values of a dataset; NaN where they are one of those that stand for none."""
    values = dataset[:]
    marks = [dataset.attrs[key] for key in FILL if key in dataset.attrs]
    marks = [mark for mark in map(np.ravel, marks) if mark.dtype.kind in "fiu"]
    if not marks:
        return np.asarray(values)
    return np.where(np.isin(values, np.concatenate(marks)), np.nan, values.astype(np.float64))


def read_parquet(path: Path, table: TextTable) -> Content:
    """Columns of numbers and of times; units from the metadata `unit` or `units` of a field."""
    parquet = package("pyarrow.parquet", f"{path}: Parquet")
    content = parquet.read_table(path)
    columns, left = [], []
    for field, column in zip(content.schema, content.columns, strict=True):
        values = _floats(column.to_numpy())
        if values is None:
            left.append(f"{field.name} (no numbers)")
        else:
            about = field.metadata or {}
            unit = about.get(b"unit", about.get(b"units", b""))
            columns.append((field.name, Series(values, unit.decode("utf-8", "replace"))))
    return Content("Parquet", by_full_name(columns), left)


def _columns(
    name: str, values: NDArray[np.generic], unit: str, left: list[str]
) -> Iterator[tuple[str, Series]]:
    """A vector, or the columns of a matrix along its longer side."""
    numbers = _floats(np.squeeze(values)) if values.ndim == 2 else _floats(values)
    if numbers is None or numbers.ndim not in (1, 2) or numbers.size < 2:
        left.append(f"{name} ({_kind(values)})")
        return
    if numbers.ndim == 1:
        yield name, Series(numbers, unit)
        return
    rows = numbers if numbers.shape[0] >= numbers.shape[1] else numbers.T
    if rows.shape[1] > COLUMNS_MAX:
        left.append(f"{name} ({rows.shape[1]} columns)")
        return
    for i in range(rows.shape[1]):
        yield f"{name}.{i + 1}", Series(np.ascontiguousarray(rows[:, i]), unit)


def _floats(values: object) -> NDArray[np.float64] | None:
    """Numbers as float64, times as seconds from the first; None for anything else."""
    array = np.asarray(values)
    if array.dtype.kind == "M":
        known = array[~np.isnat(array)]
        since = array - known[0] if len(known) else array.astype("m8[ns]")
        return np.asarray(since / np.timedelta64(1, "s"), dtype=float)
    if array.dtype.kind in "fiub":
        return array.astype(np.float64, copy=False)
    return None
