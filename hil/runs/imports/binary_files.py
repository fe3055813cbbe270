"""Readers of binary formats: TDMS, MATLAB, MDF4, HDF5, Parquet."""

from __future__ import annotations

import contextlib
import gc
import io
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import h5py
import numpy as np
from numpy.typing import NDArray

from hil.errors import ConfigError, one_line
from hil.record.layout import text_of
from hil.runs.imports.source import Series, by_full_name, package
from hil.runs.imports.tables import TextTable

if TYPE_CHECKING:
    from nptdms import TdmsFile

COLUMNS_MAX = 4096  # of a matrix: the longer side is time


def read_tdms(path: Path, table: TextTable) -> tuple[str, dict[str, Series]]:
    """Channels as `group/channel`, with their times where the file has an increment."""
    nptdms = package("nptdms", f"{path}: TDMS")
    return "TDMS", by_full_name(_tdms(nptdms.TdmsFile.read(path)))


def _tdms(file: TdmsFile) -> Iterator[tuple[str, Series]]:
    for group in file.groups():
        for channel in group.channels():
            values, times = _floats(channel[:]), None
            if values is None or not len(values):
                continue
            if "wf_increment" in channel.properties:
                times = np.asarray(channel.time_track(), dtype=float)
            unit = channel.properties.get("unit_string", "")
            yield f"{group.name}/{channel.name}", Series(values, str(unit), times)


def read_mat(path: Path, table: TextTable) -> tuple[str, dict[str, Series]]:
    """Vectors and columns of matrices; members of structures as `structure.member`."""
    if h5py.is_hdf5(path):
        return "MAT 7.3", read_hdf5(path, table)[1]
    import scipy.io

    content = scipy.io.loadmat(path, simplify_cells=True, appendmat=False)
    return "MAT 5", by_full_name(_members("", content))


def _members(within: str, content: Mapping[str, object]) -> Iterator[tuple[str, Series]]:
    for name, value in content.items():
        if name.startswith("__"):
            continue
        full = f"{within}.{name}" if within else name
        if isinstance(value, dict):
            yield from _members(full, value)
        elif isinstance(value, np.ndarray):
            yield from _columns(full, value, "")


def read_mdf(path: Path, table: TextTable) -> tuple[str, dict[str, Series]]:
    """Channels of MDF 3 and 4, each with the times of its group."""
    asammdf = package("asammdf", f"{path}: MDF")
    # asammdf raises again in the destructor of what it could not open: read from memory, and let
    # that happen here, where it is not printed.
    said = ""
    with _quiet_destructors():
        try:
            columns = _mdf(asammdf, path.read_bytes())
        except Exception as error:
            said = one_line(str(error) or type(error).__name__)[:120]
    if said:
        raise ConfigError(f"{path}: cannot be read as MDF ({said}): export it again")
    return "MDF", by_full_name(columns)


def _mdf(asammdf: ModuleType, content: bytes) -> list[tuple[str, Series]]:
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


def read_hdf5(path: Path, table: TextTable) -> tuple[str, dict[str, Series]]:
    """Datasets of numbers by their path; units from the attribute `units` or `unit`."""
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
            if item.dtype.kind in "fiub" and item.ndim in (1, 2):
                sets.append((name, item))

        file.visititems(note)
        columns = []
        for name, item in sets:
            unit = item.attrs.get("units", item.attrs.get("unit", ""))
            columns += list(_columns(name, item[:], text_of(unit) if np.ndim(unit) == 0 else ""))
    return "HDF5", by_full_name(columns)


def read_parquet(path: Path, table: TextTable) -> tuple[str, dict[str, Series]]:
    """Columns of numbers and of times; units from the metadata `unit` or `units` of a field."""
    parquet = package("pyarrow.parquet", f"{path}: Parquet")
    content = parquet.read_table(path)
    columns = []
    for field, column in zip(content.schema, content.columns, strict=True):
        values = _floats(column.to_numpy())
        if values is not None:
            about = field.metadata or {}
            unit = about.get(b"unit", about.get(b"units", b""))
            columns.append((field.name, Series(values, unit.decode("utf-8", "replace"))))
    return "Parquet", by_full_name(columns)


def _columns(name: str, values: NDArray[np.generic], unit: str) -> Iterator[tuple[str, Series]]:
    """A vector, or the columns of a matrix along its longer side."""
    numbers = _floats(np.squeeze(values)) if values.ndim == 2 else _floats(values)
    if numbers is None or numbers.ndim == 0 or not numbers.size:
        return
    if numbers.ndim == 1:
        yield name, Series(numbers, unit)
        return
    rows = numbers if numbers.shape[0] >= numbers.shape[1] else numbers.T
    if rows.shape[1] <= COLUMNS_MAX:
        for i in range(rows.shape[1]):
            yield f"{name}.{i + 1}", Series(np.ascontiguousarray(rows[:, i]), unit)


def _floats(values: object) -> NDArray[np.float64] | None:
    """Numbers as float64, times as seconds from the first; None for anything else."""
    array = np.asarray(values)
    if array.dtype.kind == "M":
        since = array - array[0] if len(array) else array.astype("m8[ns]")
        return np.asarray(since / np.timedelta64(1, "s"), dtype=float)
    if array.dtype.kind in "fiub":
        return array.astype(np.float64, copy=False)
    return None
