"""A campaign from a program or a notebook."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from hil.config.values import as_in_file
from hil.errors import ConfigError
from hil.platform.parallel import scheduler_of
from hil.platform.terminal import say
from hil.runs.campaign.journal import read_progress
from hil.runs.campaign.launch import PROGRAM, launch
from hil.runs.campaign.runner import INTERRUPTED, Options
from hil.runs.campaign.table import as_dataset

if TYPE_CHECKING:
    import xarray as xr


def table_of(
    config: str | Path | Mapping[str, object],
    out: str | Path | None,
    options: Options,
    scheduler: str | None,
    security: str | Path | None,
) -> xr.Dataset:
    """Run a campaign; returns the table of all trials. See `hil.campaign`."""
    source = as_in_file(config, _refuse) if isinstance(config, Mapping) else Path(config)
    cluster = scheduler_of(scheduler, None if security is None else Path(security))
    started = launch(
        source,
        replace(options, scheduler=cluster),
        out=None if out is None else Path(out),
        say=say if options.progress else _nothing,
    )
    if started.run() == INTERRUPTED:
        raise KeyboardInterrupt(f"interrupted: the same call goes on in {started.folder}")
    table = as_dataset(read_progress(started.folder))
    return table.assign_attrs(folder=str(started.folder))


def _refuse(key: str, cls: type) -> None:
    raise ConfigError(
        f"{PROGRAM}: {key} = {cls.__name__}: a campaign loads classes from files: write it to one, "
        f"and name it 'FILE.py:{cls.__name__}'"
    )


def _nothing(text: str) -> None:
    """Say nothing."""
