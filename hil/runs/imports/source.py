"""A file from another program as columns with units; nothing of a rig is known here."""

from __future__ import annotations

import hashlib
import importlib
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hil.errors import ConfigError, missing_extra, one_line, remedy
from hil.runs.imports.tables import TextTable


@dataclass(frozen=True)
class Series:
    """One column.

    Attributes
    ----------
    values : (n,) array of float64, or of text
    unit : as the file states it; empty if it does not
    t_s : (n,) array, the column's own times, in formats that have them
    """

    values: NDArray[Any]
    unit: str = ""
    t_s: NDArray[np.float64] | None = None


@dataclass(frozen=True)
class Source:
    """A file that was read.

    Attributes
    ----------
    format : such as `CSV` or `TDMS`
    columns : by full name; `column` also accepts a unique last part of it
    """

    path: Path
    format: str
    columns: Mapping[str, Series]
    sha256: str = ""

    @property
    def simulated(self) -> bool:
        """Whether its readings are simulated: `hil export` writes so in a column `source`."""
        marks = self.columns.get("source")
        return marks is not None and "SIMULATED" in set(marks.values[:1])

    def name_of(self, wanted: str, where: str) -> str:
        """The full name of a column.

        Raises
        ------
        ConfigError
            There is none of that name, or there are several.
        """
        if wanted in self.columns:
            return wanted
        near = [name for name in self.columns if _last(name) == wanted]
        if len(near) == 1:
            return near[0]
        if near:
            raise ConfigError(f"{where} = '{wanted}': {self.path.name} has {', '.join(near)}")
        known = list(self.columns)
        listed = remedy(wanted, known[:40])
        more = f" and {len(known) - 40} more" if len(known) > 40 and "did you" not in listed else ""
        raise ConfigError(
            one_line(f"{where} = '{wanted}': {self.path.name} has no such column{listed}{more}")
        )

    def column(self, wanted: str, where: str) -> Series:
        """A column of numbers, by its name."""
        series = self.columns[self.name_of(wanted, where)]
        if series.values.dtype.kind not in "fiub":
            text = next((v for v in series.values if not _is_number(v)), "")
            raise ConfigError(
                one_line(
                    f"{where} = '{wanted}': '{str(text)[:40]}' in {self.path.name} is no number: "
                    "name another column, or list the text in text.missing of its source"
                )
            )
        return series


def _is_number(text: str) -> bool:
    try:
        float(text)
    except (TypeError, ValueError):
        return False
    return True


def _last(name: str) -> str:
    return name.rstrip("/").rpartition("/")[2]


def by_full_name(items: Iterable[tuple[str, Series]]) -> dict[str, Series]:
    """Columns by name; the second one of a name gets a number."""
    columns: dict[str, Series] = {}
    for name, series in items:
        free, n = name, 2
        while free in columns:
            free, n = f"{name} ({n})", n + 1
        columns[free] = series
    return columns


def package(name: str, what: str) -> ModuleType:
    """An optional package; ConfigError with the remedy if it is not installed.

    Its log is silenced: what is wrong with a file becomes one line here.
    """
    try:
        module = importlib.import_module(name)
    except ImportError:
        raise missing_extra(what, "import") from None
    root = name.partition(".")[0]
    for logger in (root, *logging.root.manager.loggerDict):  # some modules set their own level
        if logger == root or logger.startswith(f"{root}."):
            logging.getLogger(logger).setLevel(logging.CRITICAL)
    return module


BY_ENDING: Mapping[str, str] = {
    ".tdms": "tdms", ".mat": "mat", ".mf4": "mdf", ".mdf": "mdf", ".dat": "text", ".h5": "hdf5",
    ".hdf5": "hdf5", ".hdf": "hdf5", ".nxs": "hdf5", ".parquet": "parquet", ".pq": "parquet",
}  # fmt: skip
SIGNATURES = ((b"TDSm", "tdms"), (b"MDF ", "mdf"), (b"PAR1", "parquet"), (b"\x89HDF", "hdf5"),
              (b"MATLAB 5.0", "mat"), (b"MATLAB 7.3", "mat"))  # fmt: skip
WORKBOOKS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")


def read_source(path: Path, table: TextTable) -> Source:
    """Read a file of any known format, recognised by its first bytes.

    Raises
    ------
    ConfigError
        In one line: the file, what is wrong with it, and the remedy.
    """
    try:
        with path.open("rb") as file:
            head = file.read(512)
            file.seek(0)
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ConfigError(
            f"{path}: cannot be read ({error.strerror}): check the path and its permissions"
        ) from None
    if not head:
        raise ConfigError(f"{path}: is empty: export it again")
    if head.startswith(WORKBOOKS):
        raise ConfigError(f"{path}: a workbook of a spreadsheet: save the sheet as CSV")
    kind = next((kind for bytes_, kind in SIGNATURES if head.startswith(bytes_)), None)
    kind = kind or BY_ENDING.get(path.suffix.lower(), "text")
    module = "text" if kind == "text" else "binary"
    read: Callable[[Path, TextTable], tuple[str, dict[str, Series]]] = getattr(
        importlib.import_module(f"hil.runs.imports.{module}_files"), f"read_{kind}"
    )
    try:
        name, columns = read(path, table)
    except ConfigError:
        raise
    except Exception as error:  # readers of binary formats raise anything on a damaged file
        said = one_line(str(error) or type(error).__name__)[:160]
        raise ConfigError(
            f"{path}: cannot be read as {kind.upper()} ({said}): export it again, or as CSV"
        ) from None
    if not columns:
        raise ConfigError(f"{path}: has no column of numbers: export it again, or as CSV")
    return Source(path, name, columns, sha256)
