"""Where the rows of a recording stand on disk, so that a power cut loses no row that was synced.

HDF5 changes its own tables in place. Between two syncs, an operating system writes changed pages
to disk in any order: after a power cut, new tables may stand beside old ones, and HDF5 reads
nothing.
The rows stand in chunks that never move. So beside a recording that is being written lies a log,
`NAME.h5.places`. Its first line holds the recording before its first row; each further line the
number of rows at a sync, and the offsets of the chunks that are new since the sync before.
"""

import base64
import contextlib
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

import h5py
import numpy as np

from hil.errors import ConfigError
from hil.platform.processes import boot
from hil.record.append_log import AppendLog, read_log
from hil.record.layout import LIBVER, RECORDED, places_of

CHECKSUM_B = 4  # that Fletcher's filter adds to a chunk


class Places:
    """The log of a recording that HDF5 has open for writing, from its first sync on.

    Parameters
    ----------
    path, file : the recording
    empty : its content before the first row
    """

    def __init__(self, path: Path, file: h5py.File, empty: bytes) -> None:
        self._path, self._file, self._empty = places_of(path), file, empty
        self._log: AppendLog | None = None
        self._known: dict[str, int] = {}

    def add(self, rows: Mapping[str, int]) -> None:
        """Note that so many rows of each ring are on disk.

        A disk that takes no line of this log takes no rows either: the recorder says so.
        """
        with contextlib.suppress(ConfigError):
            if self._log is None:
                self._path.unlink(missing_ok=True)
                self._log = AppendLog(self._path)
                packed = base64.b85encode(zlib.compress(self._empty)).decode()
                self._log.add({"boot": boot(), "empty": packed})
            new = {name: offsets for name, offsets in self._new_chunks(rows) if offsets}
            self._log.add({"rows": dict(rows), "chunks": new})
            self._log.entries.clear()

    def _new_chunks(self, rows: Mapping[str, int]) -> Iterator[tuple[str, list[int]]]:
        for ring, n in rows.items():
            for dataset in datasets_of(self._file, ring):
                name, length = dataset.name, dataset.chunks[0]
                first = self._known.get(name, 0)
                self._known[name] = end = -(-n // length)
                rest = (0,) * (dataset.ndim - 1)
                yield (
                    name,
                    [
                        dataset.id.get_chunk_info_by_coord((k * length, *rest)).byte_offset
                        for k in range(first, end)
                    ],
                )

    def close(self) -> None:
        if self._log is not None:
            self._log.close()


def datasets_of(file: h5py.File, ring: str) -> list[h5py.Dataset]:
    """The datasets of a ring, by its name in the file."""
    item = file[ring]
    return [item] if isinstance(item, h5py.Dataset) else list(item.values())


def power_was_lost(path: Path) -> bool:
    """Whether this computer was started again since the recording was begun."""
    lines = read_log(places_of(path))
    return bool(lines) and lines[0]["boot"] != boot()


def copy_synced_rows(path: Path, part: Path) -> int | None:
    """Make a recording of all rows up to the last sync; returns their number, None if unknown.

    Chunks keep the checksums that they have; the last one, which is not full, gets a new one.
    """
    lines = read_log(places_of(path))
    if len(lines) < 2:
        return None
    head, *syncs = lines
    rows: dict[str, int] = syncs[-1]["rows"]
    chunks: dict[str, list[int]] = {}
    for sync in syncs:
        for name, offsets in sync["chunks"].items():
            chunks.setdefault(name, []).extend(offsets)
    part.write_bytes(zlib.decompress(base64.b85decode(head["empty"])))
    with path.open("rb") as source, h5py.File(part, "r+", libver=LIBVER) as file:
        for ring, n in rows.items():
            for dataset in datasets_of(file, ring):
                dataset.resize(n, axis=0)
                _copy_chunks(source, dataset, chunks.get(dataset.name, []))
        file[RECORDED][:] = list(rows.values())  # in the order in which the recorder had them
    return rows["ticks"]


def _copy_chunks(source: BinaryIO, dataset: h5py.Dataset, offsets: list[int]) -> None:
    length, n, rest = dataset.chunks[0], len(dataset), (0,) * (dataset.ndim - 1)
    size_B = int(np.prod(dataset.chunks)) * dataset.dtype.itemsize
    for k, offset in enumerate(offsets):
        first = k * length
        source.seek(offset)
        stored = source.read(size_B + CHECKSUM_B * dataset.fletcher32)
        if first + length <= n:
            dataset.id.write_direct_chunk((first, *rest), stored)
        else:
            values = np.frombuffer(stored, dataset.dtype, size_B // dataset.dtype.itemsize)
            dataset[first:] = values.reshape(dataset.chunks)[: n - first]
