"""Figures of every topology of N cells, in batches that run in parallel and can be resumed."""

import hashlib
import itertools
import json
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import astuple
from functools import partial
from pathlib import Path

from hil.errors import ConfigError
from hil.platform.parallel import Scheduler, through_dask, workers
from hil.record.append_log import AppendLog
from hil.record.progress import count_progress
from hil.systems.array.topology import topologies
from hil.systems.array.topology.figures import LikeCells, TopologyFigures, figures

CELLS_MAX = 16
"""16 cells have 1.4 million topologies; each further cell multiplies that by more than three."""
BATCH = 2000
IN_PROCESS_MAX = 50_000
"""Up to this number of topologies one process takes a few seconds; beyond it, Dask is used."""

Batch = tuple[int, int]
Rows = list[TopologyFigures]


def sweep(
    n_cells: int,
    cells: LikeCells,
    *,
    mirror: bool = False,
    out: Path | None = None,
    scheduler: Scheduler | None = None,
    progress: bool = False,
) -> Rows:
    """Return the figures of every topology of n_cells like cells, in the order of `topologies`.

    Parameters
    ----------
    n_cells : 1 to CELLS_MAX
    mirror : include only one of each pair of mirror images
    out : folder for finished batches; the same sweep resumes from it
    scheduler : a Dask scheduler. By default, more than IN_PROCESS_MAX topologies use a
        cluster of this machine's cores.
    progress : show a progress bar on a terminal

    Raises
    ------
    ConfigError
        n_cells is out of range, the folder cannot be written, Dask is not installed, or no
        scheduler answers.
    """
    if not 1 <= n_cells <= CELLS_MAX:
        raise ConfigError(f"{n_cells} cells: a table of all topologies is for 1 to {CELLS_MAX}")
    n_all = topologies.count(n_cells)
    batches = [(i, min(i + BATCH, n_all)) for i in range(0, n_all, BATCH)]
    done: dict[Batch, Rows] = {}
    with ExitStack() as stack:
        keep: Callable[[Batch, Rows], None] | None = None
        if out is not None and len(batches) > 1:
            journal = stack.enter_context(_Journal(out, n_cells, cells, mirror))
            done = {batch: rows for batch, rows in journal.kept.items() if batch in batches}
            keep = journal.keep
        todo = [batch for batch in batches if batch not in done]
        work = partial(figures_of_slice, n_cells=n_cells, cells=cells, mirror=mirror)
        if todo and (scheduler is not None or n_all > IN_PROCESS_MAX):
            finished = through_dask(todo, work, stack.enter_context(workers(scheduler)))
        else:
            finished = ((batch, work(*batch)) for batch in todo)
        stack.enter_context(closing(finished))
        advance = stack.enter_context(count_progress("topologies", n_all, progress))
        advance(sum(stop - start for start, stop in done))
        for batch, rows in finished:
            if keep is not None:
                keep(batch, rows)
            done[batch] = rows
            advance(batch[1] - batch[0])
    return list(itertools.chain.from_iterable(done[batch] for batch in batches))


def figures_of_slice(start: int, stop: int, n_cells: int, cells: LikeCells, mirror: bool) -> Rows:
    """Return the figures of topologies start to stop - 1; `mirror` drops mirror images."""
    candidates = topologies.topologies(n_cells, start, stop)
    if mirror:
        candidates = filter(topologies.stands_for_its_mirror_image, candidates)
    return figures(candidates, cells)


class _Journal:
    """Finished batches of one sweep, one line each, in a file named after the sweep."""

    def __init__(self, folder: Path, n_cells: int, cells: LikeCells, mirror: bool) -> None:
        K_N_per_m = cells.cell.static[0]
        what = {"n_cells": n_cells, "K_N_per_m": K_N_per_m, "pull_N": cells.pull_N,
                "mirror": mirror, "batch": BATCH, "format": 3}  # fmt: skip
        key = hashlib.sha256(json.dumps(what).encode()).hexdigest()[:12]
        self._log = AppendLog(folder / f"batches-{n_cells}-{key}.jsonl")
        if not self._log.entries:
            self._log.add(what)
        self.kept: dict[Batch, Rows] = {
            (entry["start"], entry["stop"]): [TopologyFigures(*row) for row in entry["rows"]]
            for entry in self._log.entries[1:]
        }

    def __enter__(self) -> "_Journal":
        return self

    def __exit__(self, *_: object) -> None:
        self._log.__exit__()

    def keep(self, batch: Batch, rows: Rows) -> None:
        """Write a finished batch to disk."""
        start, stop = batch
        self._log.add({"start": start, "stop": stop, "rows": [astuple(row) for row in rows]})
