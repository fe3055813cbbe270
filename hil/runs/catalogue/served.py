"""The runs of a folder as a tree for a Tiled server, whose configuration names `tree`.

Source: https://blueskyproject.io/tiled, adapters of Python objects.
"""

import time
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import xarray as xr
from fastapi import HTTPException
from tiled.adapters.array import ArrayAdapter
from tiled.adapters.mapping import MapAdapter
from tiled.adapters.xarray import DatasetAdapter
from tiled.structures.core import Spec

from hil.config.values import Figures
from hil.errors import ConfigError
from hil.record.read import open_run
from hil.runs.catalogue.query import Catalogue, Filter

FRESH_S = 30.0  # for which the server's list of runs is kept
DATASETS = 4  # that are kept in memory
SERVED = "outcome NOT IN ('unreadable', 'running')"
File = tuple[Path, int]  # and when it was changed, in ns


@lru_cache(DATASETS)
def _dataset(path: Path, modified_ns: int) -> xr.Dataset:
    run = open_run(path)
    if path.stat().st_mtime_ns != modified_ns:
        raise ConfigError(f"{path}: has changed since it was listed: list the runs again")
    return run


class _Columns(Mapping[str, ArrayAdapter]):
    """Columns of a recording, which is read when one is asked for.

    One that cannot be read is added to `unreadable`, and answered as not found, in its one line.
    """

    def __init__(self, file: File, unreadable: set[File]) -> None:
        self._file, self._unreadable = file, unreadable

    def _adapters(self) -> DatasetAdapter:
        try:
            return DatasetAdapter.from_dataset(_dataset(*self._file))
        except ConfigError as error:
            self._unreadable.add(self._file)
            raise HTTPException(404, str(error)) from None

    def __getitem__(self, name: str) -> ArrayAdapter:
        return self._adapters()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._adapters())

    def __len__(self) -> int:
        return len(self._adapters())


class Recording(DatasetAdapter):  # type: ignore[misc]
    """A recording as its dataset; the metadata, also in `attrs`, are its row of the index."""

    @classmethod
    def of_row(cls, row: Figures, columns: _Columns) -> "Recording":
        one = cls({}, metadata={**row, "attrs": row}, specs=[Spec("xarray_dataset")])
        one._mapping = columns  # now, so that a list opens nothing
        return one

    def inlined_contents_enabled(self, depth: int) -> bool:
        return False

    async def approx_len(self) -> int:
        return 0


class Runs(Mapping[str, Recording]):
    """The runs of a folder that have ended, newest first, by their identity.

    The recording of a run in progress has other rows with every request.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._until_s = folder, 0.0
        self._runs: dict[str, Recording] = {}
        self._unreadable: set[File] = set()

    def _now(self) -> dict[str, Recording]:
        if time.monotonic() > self._until_s:
            rows = Catalogue(self._folder).find(Filter(where=SERVED)).dicts()
            files = [(self._folder / row["path"], int(row["modified_ns"])) for row in rows]
            self._runs = {
                row["identity"]: Recording.of_row(row, _Columns(file, self._unreadable))
                for row, file in zip(rows, files, strict=True)
                if file not in self._unreadable
            }
            self._until_s = time.monotonic() + FRESH_S
        return self._runs

    def __getitem__(self, identity: str) -> Recording:
        return self._now()[identity]

    def __iter__(self) -> Iterator[str]:
        return iter(self._now())

    def __len__(self) -> int:
        return len(self._now())


def tree(folder: str = "runs") -> Any:
    """The tree of a folder, for `trees` in the configuration of `tiled serve config`.

    Raises
    ------
    ConfigError
        As `hil.runs.catalogue.query.Catalogue`.
    """
    return MapAdapter(Runs(Path(folder)))
