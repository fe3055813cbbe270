"""A file from another program as columns with units; nothing of a rig is known here."""

from __future__ import annotations

import hashlib
import importlib
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hil.errors import ConfigError, missing_extra, one_line, remedy
from hil.runs.imports.tables import TextTable
from hil.runs.imports.units import split_header


@dataclass(frozen=True)
class Series:
    """One column.

    Attributes
    ----------
    values : (n,) array of float64, or of text
    unit : as the file states it; empty if it does not
    t_s : (n,) array, the column's own times, in formats that have them
    no_number : where in the file a column of text has its first text, and which
    """

    values: NDArray[Any]
    unit: str = ""
    t_s: NDArray[np.float64] | None = None
    no_number: str = ""


class Content(NamedTuple):
    """What a reader has taken from a file, and what it has left.

    Attributes
    ----------
    format : such as `CSV` or `TDMS`
    columns : by full name
    left : in words, what the file holds beyond the columns
    start : date and time at which the columns' own times are zero
    """

    format: str
    columns: dict[str, Series]
    left: list[str] = []  # noqa: RUF012 - never changed
    start: datetime | None = None


@dataclass(frozen=True)
class Source:
    """A file that was read.

    Attributes
    ----------
    format : such as `CSV` or `TDMS`
    columns : by full name; `column` also accepts a unique last part of it
    left : in words, what the file holds beyond the columns
    start : date and time at which the columns' own times are zero
    """

    path: Path
    format: str
    columns: Mapping[str, Series]
    sha256: str = ""
    left: tuple[str, ...] = ()
    start: datetime | None = None

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
            text = series.no_number or f"'{next(iter(series.values), '')!s:.40}'"
            raise ConfigError(
                one_line(
                    f"{where} = '{wanted}': {self.path.name}: {text} is no number: name another "
                    "column, or list the text in text.missing of its source"
                )
            )
        return series


def _last(name: str) -> str:
    return name.rstrip("/").rpartition("/")[2]


def by_full_name(items: Iterable[tuple[str, Series]]) -> dict[str, Series]:
    """Columns by name, with the unit that a name such as `force_N` states where nothing else does.

    The second one of a name gets a number.
    """
    columns: dict[str, Series] = {}
    for name, series in items:
        if not series.unit and (unit := split_header(_last(name).rpartition(".")[2])[1]):
            series = replace(series, unit=unit)
        free, n = name, 2
        while free in columns:
            free, n = f"{name} ({n})", n + 1
        columns[free] = series
    return columns


def refuse_read(target: Path, files: Iterable[Path], option: str) -> None:
    """ConfigError if a file would be written over one that is read; --force is for older results.

    Parameters
    ----------
    option : that names `target`
    """
    for file in files:
        if target.exists() and file.exists() and target.samefile(file):
            raise ConfigError(f"{target}: the import reads it: choose another {option}")


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
    ".abf": "neo", ".smr": "neo", ".smrx": "neo", ".rhd": "neo", ".rhs": "neo", ".vhdr": "neo",
}  # fmt: skip
SIGNATURES = ((b"TDSm", "tdms"), (b"MDF ", "mdf"), (b"PAR1", "parquet"), (b"\x89HDF", "hdf5"),
              (b"MATLAB 5.0", "mat"), (b"MATLAB 7.3", "mat"), (b"LabVIEW Measurement", "lvm"),
              (b"PK\x03\x04", "workbook"), (b"\xd0\xcf\x11\xe0", "workbook"))  # fmt: skip
READERS: Mapping[str, str] = {
    "text": "text", "lvm": "instrument", "workbook": "instrument", "neo": "instrument",
    "open_ephys": "instrument",
}  # fmt: skip
OPEN_EPHYS = "structure.oebin"  # the description beside the values of its binary format


def read_source(path: Path, table: TextTable) -> Source:
    """Read a file of any known format, recognised by its first bytes.

    Raises
    ------
    ConfigError
        In one line: the file, what is wrong with it, and the remedy.
    """
    kind, sha256 = _kind_of(path)
    read: Callable[[Path, TextTable], Content] = getattr(
        importlib.import_module(f"hil.runs.imports.{READERS.get(kind, 'binary')}_files"),
        f"read_{kind}",
    )
    try:
        content = read(path, table)
    except ConfigError:
        raise
    except Exception as error:  # readers of binary formats raise anything on a damaged file
        message = one_line(str(error) or type(error).__name__)[:160]
        raise ConfigError(
            f"{path}: cannot be read as {kind.upper()} ({message}): export it again, or as CSV"
        ) from None
    if not content.columns:
        rest = f"; it holds {'; '.join(content.left)}"[:200] if content.left else ""
        raise ConfigError(f"{path}: has no column of numbers{rest}: export it again, or as CSV")
    return Source(path, content.format, content.columns, sha256, tuple(content.left), content.start)


def _kind_of(path: Path) -> tuple[str, str]:
    """The format of a file or folder, and its hash."""
    if path.is_dir():
        described = sorted(path.rglob(OPEN_EPHYS))
        if not described:
            raise ConfigError(
                f"{path}: a folder without {OPEN_EPHYS}, so not one of Open Ephys: name the files "
                "in it"
            )
        return "open_ephys", hashlib.sha256(described[0].read_bytes()).hexdigest()
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
    kind = next((kind for bytes_, kind in SIGNATURES if head.startswith(bytes_)), None)
    return kind or BY_ENDING.get(path.suffix.lower(), "text"), sha256
