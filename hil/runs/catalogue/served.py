"""The runs of a folder as a tree for a Tiled server, whose configuration names `tree`.

Source: https://blueskyproject.io/tiled, adapters of Python objects.
"""

import time
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import xarray as xr
from tiled.adapters.array import ArrayAdapter
from tiled.adapters.mapping import MapAdapter
from tiled.adapters.xarray import DatasetAdapter
from tiled.structures.core import Spec

from hil.config.values import Figures
from hil.record.read import open_run
from hil.runs.catalogue.query import Catalogue, Filter

FRESH_S = 30.0  # for which the server's list of runs is kept
DATASETS = 4  # that are kept in memory


@lru_cache(DATASETS)
def _dataset(path: Path, modified_ns: int) -> xr.Dataset:
    return open_run(path)


class _Columns(Mapping[str, ArrayAdapter]):
    """Columns of a recording, which is read when one is asked for."""

    def __init__(self, path: Path, row: Figures) -> None:
        self._file = path, int(row["modified_ns"])

    def _adapters(self) -> DatasetAdapter:
        return DatasetAdapter.from_dataset(_dataset(*self._file))

    def __getitem__(self, name: str) -> ArrayAdapter:
        return self._adapters()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._adapters())

    def __len__(self) -> int:
        return len(self._adapters())


class Recording(DatasetAdapter):  # type: ignore[misc]
    """A recording as its dataset; the metadata, also in `attrs`, are its row of the index."""

    @classmethod
    def of_row(cls, folder: Path, row: Figures) -> "Recording":
        one = cls({}, metadata={**row, "attrs": row}, specs=[Spec("xarray_dataset")])
        one._mapping = _Columns(folder / row["path"], row)  # now, so that a list opens nothing
        return one

    def inlined_contents_enabled(self, depth: int) -> bool:
        return False

    async def approx_len(self) -> int:
        return 0


class Runs(Mapping[str, Recording]):
    """The runs of a folder, newest first, by their identity."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._until_s = folder, 0.0
        self._runs: dict[str, Recording] = {}

    def _now(self) -> dict[str, Recording]:
        if time.monotonic() > self._until_s:
            rows = Catalogue(self._folder).find(Filter(where="outcome <> 'unreadable'")).dicts()
            self._runs = {row["identity"]: Recording.of_row(self._folder, row) for row in rows}
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
