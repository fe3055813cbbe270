"""Reads recordings as labelled arrays."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import time
import tomllib
import traceback
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import h5py
import numpy as np
from numpy.typing import NDArray

from hil.config.values import Attributes, TomlTable
from hil.errors import ConfigError, missing_file, one_line
from hil.record import superblock
from hil.record.content import (
    REMEDY,
    MalformedError,
    refuse_malformed,
    refuse_malformed_head,
)
from hil.record.global_heap import torn_heap_at
from hil.record.held import may_be_held
from hil.record.layout import (
    CACHE_B,
    FORMAT,
    PLUGINS,
    RAW,
    RECORDED,
    RINGS,
    Columns,
    text_of,
)
from hil.record.safe_open import (
    OVERRIDE,
    refuse_hostile,
    refuse_hostile_head,
    refuse_larger_than_memory,
)

if TYPE_CHECKING:
    import xarray as xr


TRUNCATED = re.compile(r"truncated file: eof = (\d+), .*stored_eof = (\d+)")  # as HDF5 says it
TURNING = "already open for"  # so does a file whose writer allows no reader
TURNING_S = 0.5
# Of a file that the caller writes, or of this computer.
OF_OTHERS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EMFILE, errno.ENFILE, errno.ENOMEM}
BLOCK_ROWS = 65_536  # rows of a long recording that are in memory at once
SOUND_MAX = 1000
_sound: dict[Path, tuple[object, ...]] = {}  # files that were looked at, as they were then


class DamagedError(ConfigError):
    """A recording that cannot be read, or not in full."""


@contextlib.contextmanager
def open_h5(path: str | Path, *, head: bool = False) -> Iterator[h5py.File]:
    """Open a recording for reading, even if it is still being written or was cut off.

    Parameters
    ----------
    head : check only the attributes of the file, and those of its calibrations for their size

    Raises
    ------
    ConfigError
        The file is missing, not HDF5, or not a recording.
    DamagedError
        The file cannot be opened, or a read inside the `with` block failed.
    """
    path = Path(path)
    try:
        if path.is_dir():
            raise ConfigError(f"{path}: a folder: give a recording made by hil run")
        if not path.is_file():
            raise missing_file(path, "give a recording made by hil run")
        path.open("rb").close()
    except OSError as error:
        raise ConfigError(
            f"{path}: cannot be read ({error.strerror}): check the path and its permissions"
        ) from None
    if not h5py.is_hdf5(path):
        raise ConfigError(f"{path}: not an HDF5 file: give a recording made by hil run")
    with contextlib.ExitStack() as opened:
        with _damage_named(path):
            file = opened.enter_context(_open(path))
            if text_of(file.attrs.get("format", "")) != FORMAT:
                raise ConfigError(f"{path}: {_other_format(text_of(file.attrs.get('format', '')))}")
            _refuse(file, path, head=head)
        with _damage_named(path, sound=True):
            yield file


def _refuse(file: h5py.File, path: Path, *, head: bool) -> None:
    """Refuse what no run writes; a file that this process has found sound and that is still the
    same is not looked at again.
    """
    state = None if file.driver == "fileobj" else _state(os.fstat(file.id.get_vfd_handle()))
    if state and _sound.get(path) == state:
        return
    if head:
        refuse_malformed_head(path, refuse_hostile_head(file, path))
        return
    refuse_malformed(file, path, refuse_hostile(file, path))
    if state is None:  # left open by its writer, and soon repaired
        return
    if len(_sound) >= SOUND_MAX:
        _sound.clear()
    _sound[path] = state


def _state(facts: os.stat_result) -> tuple[object, ...]:
    times = facts.st_mtime_ns, facts.st_ctime_ns  # the first may be set, the second may not
    return facts.st_dev, facts.st_ino, facts.st_size, *times, os.environ.get(OVERRIDE)


@contextlib.contextmanager
def _damage_named(path: Path, *, sound: bool = False) -> Iterator[None]:
    """DamagedError for what cannot be read in the block.

    In a file that was found `sound`, only the system and HDF5 find damage: any other error is one
    of this program.
    """
    try:
        yield
    except (OSError, RuntimeError, LookupError, ValueError, TypeError) as error:
        if getattr(error, "errno", None) in OF_OTHERS:
            raise
        if sound and not (isinstance(error, OSError) or _is_raised_by_h5py(error)):
            raise
        if part := TRUNCATED.search(str(error)):
            raise _incomplete(path, int(part[1]), int(part[2])) from None
        raise _damaged(path, one_line(str(error))) from None


def _is_raised_by_h5py(error: Exception) -> bool:
    frames = (frame for frame, _ in traceback.walk_tb(error.__traceback__))
    return any(frame.f_globals.get("__name__", "").startswith("h5py.") for frame in frames)


def _damaged(path: Path, what: str) -> DamagedError:
    return DamagedError(
        f"{path}: damaged ({what}): hil recover repairs one that was cut off; copy a bad copy again"
    )


def _open(path: Path) -> contextlib.AbstractContextManager[h5py.File]:
    """Open the file; a recorder allows no reader at the moment in which it opens or ends it."""
    if _sound.get(path) != _state(path.stat()) and (at := torn_heap_at(path)) is not None:
        raise _damaged(path, f"its texts at byte {at}")
    deadline_s = time.monotonic() + TURNING_S
    while True:
        marked_B = superblock.marked_end_B(path)
        size_B = path.stat().st_size  # after the mark: a recording that grows is never short
        late = time.monotonic() > deadline_s
        if size_B < marked_B:  # HDF5 would wait for its writer, as below
            if late:
                raise _incomplete(path, size_B, marked_B)
            time.sleep(0.01)  # a recorder that ends the file marks its end before it writes so far
            continue
        try:
            if marked_B and not may_be_held(path):
                return _left_open(path)
            # SWMR mode only for a writer: without one HDF5 retries a damaged file for minutes.
            # No lock: a reader must not keep the recorder from the file.
            file: contextlib.AbstractContextManager[h5py.File]
            file = h5py.File(path, "r", swmr=marked_B > 0, locking=False, rdcc_nbytes=CACHE_B)
            return file
        except OSError as error:
            if TURNING not in str(error) or late:
                raise
        time.sleep(0.01)


@contextlib.contextmanager
def _left_open(path: Path) -> Iterator[h5py.File]:
    """A file that its writer left without ending it."""
    with superblock.Cleared(path) as source, h5py.File(source, "r", rdcc_nbytes=CACHE_B) as file:
        yield file


def _incomplete(path: Path, here_B: int, all_B: int) -> DamagedError:
    return DamagedError(
        f"{path}: only {here_B} of its {all_B} bytes are here: copy the whole file again"
    )


def _other_format(file_format: str) -> str:
    """Why a file of another format cannot be read."""
    name, _, number = FORMAT.rpartition("/")
    other = re.fullmatch(rf"{name}/(\d+)", file_format)
    if other and int(other[1]) > int(number):
        return f"written by a newer hil ({file_format}, this one reads {FORMAT}): update hil"
    return f"not a recording of format {FORMAT}"


def attributes_of(file: h5py.File) -> dict[str, object]:
    """Root attributes without incomplete ones, which a killed process leaves.

    A run without an outcome counts as running.
    """
    attributes = {}
    for key in file.attrs:
        try:
            attributes[key] = file.attrs[key]
        except OSError:
            continue
    return {"outcome": "running"} | attributes


def n_whole_rows(file: h5py.File, ring: str = "ticks") -> int:
    """Number of complete rows: of `ticks` (in every column), `events` or `inputs`.

    A dataset may be longer than its written part if the disk was full; HDF5 reads the remainder as
    zeros.
    """
    datasets = file["ticks"].values() if ring == "ticks" else [file[ring]]
    lengths = [len(dataset) for dataset in datasets]
    if RECORDED in file:
        # Files of the first versions have only the count of ticks.
        lengths += file[RECORDED][RINGS.index(ring) :][:1].tolist()
    return min(lengths, default=0)


def n_whole_samples(file: h5py.File, device: str) -> int:
    """Number of samples of `/raw/<device>` that are complete in every channel."""
    lengths = [len(dataset) for dataset in file[RAW][device].values()]
    at = len(RINGS) + sorted(file[RAW]).index(device)
    return min([*lengths, *file[RECORDED][at:][:1].tolist()], default=0)


def open_raw(path: str | Path, device: str) -> xr.Dataset:
    """All samples of a device that samples faster than the loop.

    The dimension is `sample` with the coordinate `t_s`, the device's own clock from its start.

    Raises
    ------
    ConfigError
        The file is missing or not a recording, or the device has one reading a tick.
    """
    import xarray as xr

    with open_h5(path) as file:
        devices = list(file.get(RAW, ()))
        if device not in devices:
            raise ConfigError(
                f"{path}: has no samples of '{device}': there are {', '.join(devices) or 'none'}"
            )
        group, n = file[RAW][device], n_whole_samples(file, device)
        refuse_larger_than_memory(list(group.values()), Path(path))
        variables = {
            name: xr.Variable(
                ("sample",), dataset[:n], {key: _plain(v) for key, v in dataset.attrs.items()}
            )
            for name, dataset in group.items()
        }
        attrs = {key: _plain(value) for key, value in group.attrs.items()}
    return xr.Dataset(variables, coords={"t_s": variables.pop("t_s")}, attrs=attrs)


def calibrations_of(path: str | Path, folder: str = "calibration") -> dict[str, Attributes]:
    """Calibrations stored in a recording, by channel.

    The folder `records` has the records of other values by file; `tables` names their tables.
    """
    with open_h5(path) as file:
        return {
            name: {key: _plain(value) for key, value in group.attrs.items()}
            for name, group in file.get(folder, {}).items()
        }


def experiment_of(run: xr.Dataset) -> TomlTable:
    """The configuration of a run from `open_run`, as tables.

    Raises
    ------
    ConfigError
        The configuration is missing or not TOML.
    """
    return experiment_in(run.attrs, run.encoding["source"])


def experiment_in(attributes: Attributes, path: str | Path) -> TomlTable:
    """The configuration in a recording's attributes; errors name `path`."""
    try:
        return tomllib.loads(text_of(attributes["experiment"]))
    except KeyError:
        raise ConfigError(
            f"{path}: has no attribute 'experiment': made by another program"
        ) from None
    except (ValueError, RecursionError) as error:
        message = one_line(str(error)) or type(error).__name__
        raise ConfigError(f"{path}: attribute 'experiment' is not TOML ({message})") from None


def plugins_of(path: str | Path) -> dict[str, dict[str, str]]:
    """The plug-in code of a recording, by key."""
    with open_h5(path) as file:
        return {
            name: {key: text_of(value) for key, value in dataset.attrs.items()}
            | {"source": dataset[:].tobytes().decode()}
            for name, dataset in file.get(PLUGINS, {}).items()
        }


def summary_of(file: h5py.File) -> dict[str, object]:
    """The summary of the run; empty for an unfinished run."""
    return dict(json.loads(text_of(attributes_of(file).get("summary", "{}"))))


def open_run(path: str | Path) -> xr.Dataset:
    """A recording as an `xarray.Dataset`.

    Dimensions are `tick` (with the coordinate `t_s`), `cell` (the model's input order), `event`
    and `input`. Every variable carries `units`, `role` and `description`; the dataset's
    attributes are the recording's, with `summary` as JSON text.

    Raises
    ------
    ConfigError
        The file is missing or not a recording.
    """
    with open_blocks(path) as blocks:
        return blocks.rows(0, blocks.n_rows)


def open_head(path: str | Path) -> xr.Dataset:
    """What `open_run` returns, without rows: of a recording that may be larger than memory.

    Raises
    ------
    ConfigError
        The file is missing or not a recording.
    """
    with open_blocks(path) as blocks:
        return blocks.head


def dataset_of(file: h5py.File) -> xr.Dataset:
    """The rows, events and inputs of an open recording, as `open_run` returns them."""
    return _with_notes(file, ticks_of(file, file.filename, slice(n_whole_rows(file))))


def ticks_of(file: h5py.File, path: str | Path, rows: slice) -> xr.Dataset:
    """Rows of an open recording; without events, inputs and attributes.

    Raises
    ------
    MalformedError
        A row has no time.
    """
    import xarray as xr

    variables: dict[str, xr.Variable] = {}
    for name, dataset in file["ticks"].items():
        dims = ("tick", "cell")[: dataset.ndim]
        attrs = {key: _plain(value) for key, value in dataset.attrs.items() if key[0].islower()}
        variables[name] = xr.Variable(dims, dataset[rows], attrs)
    _refuse_without_time(variables["t_s"].values, path)
    coords: dict[str, object] = {"t_s": variables.pop("t_s")}
    if "model/cells" in file and len(cells := file["model/cells"][:]):
        coords["cell"] = ("cell", [text_of(cell) for cell in cells])
    return xr.Dataset(variables, coords=coords)


def _refuse_without_time(t_s: NDArray[np.float64], path: object) -> None:
    if not np.isfinite(t_s).all():
        raise MalformedError(f"{path}: 'ticks/t_s' has rows without a time: {REMEDY}")


def _with_notes(file: h5py.File, run: xr.Dataset) -> xr.Dataset:
    """Rows with the recording's events, inputs and attributes."""
    notes = {}
    for ring, dim in (("events", "event"), ("inputs", "input")):
        noted = file[ring][: n_whole_rows(file, ring)]
        for field in noted.dtype.names:
            values = noted[field]
            if values.dtype.kind == "S":
                values = np.char.decode(values, "utf-8", "replace")
            notes[f"{dim}_{field}"] = ((dim,), values)
    attrs = {key: _plain(value) for key, value in attributes_of(file).items()}
    return run.assign(notes).assign_attrs(attrs)


class Blocks:
    """A recording whose rows are read BLOCK_ROWS at a time: iterating yields them as datasets.

    Attributes
    ----------
    n_rows : rows that are complete
    """

    def __init__(self, file: h5py.File, path: Path) -> None:
        self._file, self._path = file, path
        self.n_rows = n_whole_rows(file)

    @cached_property
    def head(self) -> xr.Dataset:
        """What `open_run` returns of it, without rows."""
        return self.rows(0, 0)

    def __iter__(self) -> Iterator[xr.Dataset]:
        import xarray as xr

        head = self.head
        for first in range(0, self.n_rows, BLOCK_ROWS):
            values = self.columns_of(first, min(first + BLOCK_ROWS, self.n_rows))
            rows = {name: (head[name].dims, of, head[name].attrs) for name, of in values.items()}
            cells = {name: head.coords[name] for name in head.coords if name != "t_s"}
            yield xr.Dataset(rows, coords=cells).set_coords("t_s")

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self._file["ticks"])

    def columns_of(self, first: int, end: int) -> Columns:
        """The rows from `first` up to `end` as plain arrays, by column.

        Raises
        ------
        DamagedError
            They cannot be read.
        MalformedError
            A row has no time.
        """
        with _damage_named(self._path):  # here, before whoever writes takes it for its own error
            columns = {name: column[first:end] for name, column in self._file["ticks"].items()}
            _refuse_without_time(columns["t_s"], self._path)
            return columns

    def rows(self, first: int, end: int) -> xr.Dataset:
        """These rows with the recording's events, inputs and attributes.

        Raises
        ------
        ConfigError
            They are larger than the memory.
        """
        if end > first and end - first == self.n_rows:
            columns = [*self._file["ticks"].values(), self._file["events"]]
            refuse_larger_than_memory(columns, self._path)
        run = _with_notes(self._file, ticks_of(self._file, self._path, slice(first, end)))
        run.encoding["source"] = str(self._path)
        return run

    def rows_between(self, from_s: float, to_s: float) -> tuple[int, int]:
        """First and end of the rows with these times, which rise."""
        t_s = self._file["ticks/t_s"]
        first = bisect_left(t_s, from_s, 0, self.n_rows)
        return first, bisect_right(t_s, to_s, first, self.n_rows)


@contextlib.contextmanager
def open_blocks(path: str | Path) -> Iterator[Blocks]:
    """Open a recording that may be larger than memory.

    Raises
    ------
    ConfigError
        The file is missing or not a recording.
    """
    with open_h5(path) as file:
        yield Blocks(file, Path(path))


def _plain(value: object) -> object:
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, np.ndarray):
        return [_plain(item) for item in value.tolist()]
    return value.item() if isinstance(value, np.generic) else value
