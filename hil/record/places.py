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
from hil.record.errno_of import errno_of
from hil.record.layout import CACHE_B, LIBVER, RECORDED, places_of

CHECKSUM_B = 4  # that Fletcher's filter adds to a chunk
EMPTY_MAX_B = 2**26  # more than any recording has before its first row


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

        Where no line can be written, the next sync tries again: a run never ends for its log.
        """
        with contextlib.suppress(ConfigError, OSError):
            log = self._log or self._begun()
            new = dict(self._new_chunks(rows))
            log.add({"rows": dict(rows), "chunks": {name: at for name, at in new.items() if at}})
            log.entries.clear()
            for name, offsets in new.items():
                self._known[name] = self._known.get(name, 0) + len(offsets)

    def _begun(self) -> AppendLog:
        self._path.unlink(missing_ok=True)
        log = AppendLog(self._path)
        try:
            packed = base64.b85encode(zlib.compress(self._empty)).decode()
            log.add({"boot": boot(), "empty": packed})
        except ConfigError:
            log.close()
            raise
        self._log = log
        return log

    def _new_chunks(self, rows: Mapping[str, int]) -> Iterator[tuple[str, list[int]]]:
        for ring, n in rows.items():
            for dataset in datasets_of(self._file, ring):
                length, rest = dataset.chunks[0], (0,) * (dataset.ndim - 1)
                yield (
                    dataset.name,
                    [
                        dataset.id.get_chunk_info_by_coord((k * length, *rest)).byte_offset
                        for k in range(self._known.get(dataset.name, 0), -(-n // length))
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
    try:
        lines = read_log(places_of(path))
    except ConfigError:
        return False
    return bool(lines) and lines[0].get("boot") != boot()


def copy_synced_rows(path: Path, part: Path) -> int:
    """Make a recording of all rows up to the last sync; returns their number.

    Chunks keep the checksums that they have; the last one, which is not full, gets a new one.

    Raises
    ------
    ConfigError
        There is no log of this recording with a sync, or a checksum does not match.
    """
    log = places_of(path)
    try:
        head, *syncs = read_log(log)
        rows: dict[str, int] = syncs[-1]["rows"]
        chunks: dict[str, list[int]] = {}
        for sync in syncs:
            for name, offsets in sync["chunks"].items():
                chunks.setdefault(name, []).extend(offsets)
        unpacked = zlib.decompressobj()
        part.write_bytes(unpacked.decompress(base64.b85decode(head["empty"]), EMPTY_MAX_B))
        with (
            path.open("rb") as source,
            h5py.File(part, "r+", libver=LIBVER, rdcc_nbytes=CACHE_B) as file,
        ):
            for ring, n in rows.items():
                for dataset in datasets_of(file, ring):
                    _copy_chunks(source, dataset, n, chunks.get(dataset.name, []))
            file[RECORDED][:] = list(rows.values())  # in the order in which the recorder had them
            if (np.diff(file["ticks/t_s"][:]) < 0.0).any():
                raise ValueError("times go back")
        return rows["ticks"]
    except (ValueError, KeyError, TypeError, AttributeError, LookupError, OverflowError,
            RuntimeError, zlib.error) as error:  # fmt: skip
        raise _no_log(log) from error
    except OSError as error:
        if errno_of(error) is not None:
            raise
        raise _no_log(log) from error  # HDF5's word for a checksum


def _no_log(log: Path) -> ConfigError:
    return ConfigError(
        f"{log}: not a log of this recording with a sync to disk: "
        "remove it, and hil recover keeps what HDF5 can read"
    )


def _copy_chunks(source: BinaryIO, dataset: h5py.Dataset, n: int, offsets: list[int]) -> None:
    length, rest = dataset.chunks[0], (0,) * (dataset.ndim - 1)
    size_B = int(np.prod(dataset.chunks)) * dataset.dtype.itemsize
    stored_B = size_B + CHECKSUM_B * dataset.fletcher32
    if -(-n // length) != len(offsets):
        raise ValueError(f"{dataset.name}: {len(offsets)} chunks for {n} rows")
    dataset.resize(n, axis=0)
    for k, offset in enumerate(offsets):
        first = k * length
        source.seek(offset)
        stored = source.read(stored_B)
        if len(stored) < stored_B:
            raise ValueError(f"{dataset.name}: {offset} is beyond the end of the file")
        if first + length <= n:
            dataset.id.write_direct_chunk((first, *rest), stored)
            dataset[first : first + length]  # its checksum is compared
        else:
            values = np.frombuffer(stored, dataset.dtype, size_B // dataset.dtype.itemsize)
            dataset[first:] = values.reshape(dataset.chunks)[: n - first]
