"""A long recording as rows that can be drawn: those with the extremes of its curves.

The rows are divided into stretches of one length. Of each stretch stay the first row, the rows with
the least and the largest value of every curve that a report draws and of every difference between
a reading and its model, the first rows with another state of cells or another fault, and the first
report of every cell. They are the recording's own rows, as recorded: no value is made up, and no
peak of these curves is lost.
They are found in one pass and kept beside the recording, as `RUN.h5.overview`.
"""

from __future__ import annotations

import contextlib
import os
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hil.errors import ConfigError
from hil.loop.channels import known_before, signals_in
from hil.loop.frame import CELL_UNKNOWN
from hil.platform.whole_files import whole
from hil.record.progress import count_progress
from hil.record.read import BLOCK_ROWS, Blocks, open_blocks

ROWS_MAX = 500_000  # of a recording that is drawn with all its rows
STRETCHES = 3000
CHANGES_MAX = 4  # of cells or faults in a stretch
CELLS = "cells_reported"
KEY = "overview"  # attribute: how many of how many rows
PART = "part"  # attribute of a run that is cut
OF = "of the recording"  # of its file: rows, size, time of change, stretches
Values = NDArray[Any]
Rows = dict[str, Values]


def view_of(
    path: Path, from_s: float = -np.inf, to_s: float = np.inf, *, progress: bool = False
) -> xr.Dataset:
    """A recording as `open_run` returns one; of more than ROWS_MAX rows those of the overview.

    A part of a long recording has all its rows if they are no more. The attribute `overview` says
    how many rows of how many there are.

    Raises
    ------
    ConfigError
        The file is missing or not a recording.
    """
    with open_blocks(path) as blocks:
        if blocks.n_rows > ROWS_MAX:
            first, end = blocks.rows_between(from_s, to_s)
            if end - first > ROWS_MAX:
                return _with_rows(blocks, _kept_or_made(path, blocks, progress))
            return blocks.rows(first, end)
        return blocks.rows(0, blocks.n_rows)


def first_rows(path: Path) -> xr.Dataset:
    """A recording as `open_run` returns one; of more than ROWS_MAX rows the first ROWS_MAX.

    The attribute `part` then says so.

    Raises
    ------
    ConfigError
        The file is missing or not a recording.
    """
    with open_blocks(path) as blocks:
        run = blocks.rows(0, min(blocks.n_rows, ROWS_MAX))
        if blocks.n_rows > ROWS_MAX:
            run.attrs[PART] = f"the first {ROWS_MAX} of {blocks.n_rows} rows"
    return run


def _with_rows(blocks: Blocks, rows: Rows) -> xr.Dataset:
    head = blocks.head
    variables = {name: (head[name].dims, values, head[name].attrs) for name, values in rows.items()}
    t_s = variables.pop("t_s")
    run = xr.Dataset(
        variables, coords={"t_s": t_s, **head.coords.drop_vars("t_s")}, attrs=head.attrs
    )
    notes = {name: head[name] for name in head.data_vars if head[name].dims[0] != "tick"}
    run = run.assign(notes)
    run.attrs[KEY] = (
        f"{len(rows['t_s'])} of {blocks.n_rows} rows: first, least and largest of every "
        f"{_long(blocks.n_rows)}"
    )
    run.encoding["source"] = head.encoding["source"]
    return run


def _long(n_rows: int) -> int:
    """Rows of a stretch."""
    return -(-n_rows // STRETCHES)


def _kept_or_made(path: Path, blocks: Blocks, progress: bool) -> Rows:
    """The overview beside the recording, as long as it is of this file; else a new one."""
    beside = path.with_name(f"{path.name}.{KEY}")
    status = os.stat(path)
    of = np.array([blocks.n_rows, status.st_size, status.st_mtime_ns, STRETCHES], dtype=np.int64)
    if (kept := _kept(beside, of, blocks)) is not None:
        return kept
    with count_progress("rows", blocks.n_rows, progress) as done:
        rows = _made(blocks, done)
    made: dict[str, Any] = {OF: of, **rows}
    with (
        contextlib.suppress(OSError, ConfigError),
        whole(beside) as part,
        part.open("wb") as part_file,
    ):
        np.savez(part_file, **made)  # not in a folder of others
    return rows


def _kept(beside: Path, of: Values, blocks: Blocks) -> Rows | None:
    """What the file of an overview has, if it is of this recording and nothing but numbers."""
    try:
        with zipfile.ZipFile(beside) as archive:
            packed = any(item.compress_type != zipfile.ZIP_STORED for item in archive.infolist())
        if packed:  # may be larger than the memory
            return None
        with np.load(beside, allow_pickle=False) as file:
            if set(file.files) != {OF, *blocks.columns} or not np.array_equal(file[OF], of):
                return None
            rows = {name: file[name] for name in blocks.columns}
    except (OSError, ValueError, KeyError, EOFError, MemoryError, zipfile.BadZipFile):
        return None
    alike = [blocks.head[name].values for name in rows]
    n = len(rows["t_s"]) if rows["t_s"].ndim else -1
    for values, like in zip(rows.values(), alike, strict=True):
        if values.dtype != like.dtype or values.shape != (n, *like.shape[1:]):
            return None
    return rows


def _made(blocks: Blocks, done: Callable[[int], None]) -> Rows:
    long = _long(blocks.n_rows)
    parts: list[Rows] = []
    last: Rows = {}
    for first in range(0, blocks.n_rows, step := long * max(1, BLOCK_ROWS // long)):
        rows = blocks.columns_of(first, min(first + step, blocks.n_rows))
        states = _states(rows, last)
        picked = _picked(rows, states, long)
        parts.append({name: values[picked] for name, values in rows.items()})
        last = {name: values[-1:] for name, values in states.items()}
        done(len(rows["t_s"]))
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _states(rows: Rows, last: Rows) -> Rows:
    """Faults and cells in the row before a block and in its rows; unknown cells as last known."""
    states = {
        name: np.concatenate((last.get(name, rows[name][:1]), rows[name]))
        for name in ("fault_bits", CELLS)
        if name in rows
    }
    if CELLS in rows:
        states[CELLS] = known_before(states[CELLS])
    return states


def _picked(rows: Rows, states: Rows, long: int) -> NDArray[np.int64]:
    """Numbers of the rows of a block that stay; the last row of all stays too."""
    n = len(rows["t_s"])
    firsts = np.arange(0, n, long)
    stay: list[Values] = [firsts, np.array([n - 1])]
    for curve in _curves(rows):
        stay += [
            _extremes(curve, long, np.argmin, np.inf),
            _extremes(curve, long, np.argmax, -np.inf),
        ]
    for values in states.values():
        changed = np.flatnonzero((np.diff(values.reshape(n + 1, -1), axis=0) != 0).any(axis=1))
        _, first, counts = np.unique(changed // long, return_index=True, return_counts=True)
        rank = np.arange(len(changed)) - np.repeat(first, counts)
        changed = changed[rank < CHANGES_MAX]
        stay += [changed, np.maximum(changed - 1, 0)]
    if CELLS in rows:
        known = np.pad(rows[CELLS] != CELL_UNKNOWN, ((0, -n % long), (0, 0)))
        reported = known.reshape(len(firsts), long, -1).argmax(axis=1)
        stay.append((firsts[:, None] + reported).ravel())
    return np.unique(np.concatenate(stay)).astype(np.int64)


def _curves(rows: Mapping[str, Values]) -> list[Values]:
    """What reports draw, and differences of readings and models."""
    signals = signals_in(rows)
    names = {name for s in signals for name in (s.measured, s.model, s.reference) if name}
    names |= {n for n in rows if "_commanded" in n or n.endswith(".tension_model_N")}
    curves = [rows[name] for name in sorted({*names, "late_s"}) if rows[name].ndim == 1]
    return curves + [rows[s.measured] - rows[s.model] for s in signals]


def _extremes(y: Values, long: int, extreme: Callable[..., Any], never: float) -> Values:
    """The row of the extreme in every stretch."""
    padded = np.full(-(-len(y) // long) * long, never)
    padded[: len(y)] = np.where(np.isnan(y), never, y)
    stretches = padded.reshape(-1, long)
    rows = extreme(stretches, axis=1) + long * np.arange(len(stretches))
    return np.asarray(np.minimum(rows, len(y) - 1))
