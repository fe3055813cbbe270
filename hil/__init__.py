"""Hardware-in-the-loop control and data acquisition for cellular actuator arrays.

Public: `open_run`, `load`, `run`, `runs`, `simulate`, `campaign` and `figure` here, and
`hil.models`; the rest is private.
"""

from __future__ import annotations

import os

# Compiled code is loaded from numba's cache. A file in the working folder must not say where it is.
os.environ.setdefault("NUMBA_CACHE_DIR", "")

TYPE_CHECKING = False  # typing.TYPE_CHECKING without importing typing: start-up counts

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Any

    import xarray as xr
    from matplotlib.figure import Figure

    from hil.experiment.loaded import Experiment

__all__ = ["campaign", "figure", "load", "open_run", "run", "runs", "simulate"]


def __getattr__(name: str) -> object:
    """`runs` is the package of that name, which can be called."""
    if name != "runs":
        raise AttributeError(f"module 'hil' has no attribute '{name}'")
    from importlib import import_module

    return import_module("hil.runs")


def load(path: str | Path, sets: tuple[str, ...] = (), **changes: object) -> Experiment:
    """Read and validate an experiment's configuration.

    Parameters
    ----------
    sets : `key.path=value` texts that change keys of the file
    changes : dict or class by table
        Tables that change those of the file, such as `guard={"force_max_N": 2.0}`. One of another
        `kind` takes the place of the file's. A class of the program can be the `kind`:
        `controller=Mine`, or with values for it, `controller={"kind": Mine, "gain": 2.0}`.

    Raises
    ------
    hil.errors.ConfigError
    """
    from hil.experiment.load import load as load_config

    config = load_config(path, sets, **changes)
    if config.tables.expect:  # else its import is not needed
        from hil.runs.check import refuse_unanswerable

        refuse_unanswerable(config)
    return config


def run(config: Experiment | str | Path, **options: object) -> Path:
    """Run an experiment and return the recording's path.

    Parameters
    ----------
    options : by name, any attribute of `hil.runs.plan.Plan` (such as `seed`, `backend`),
        `hil.runs.recording.Output` (`out`, `force`) and `hil.runs.session.View` (`progress`)

    Raises
    ------
    hil.errors.ConfigError, hil.errors.DeviceError
    KeyboardInterrupt
        A signal ended the run; the rig is off, and its recording is kept.
    """
    from hil.experiment.loaded import Experiment
    from hil.runs import session

    experiment = config if isinstance(config, Experiment) else load(config)
    result = session.run(*session.from_options(experiment, options))
    result.stop.pass_on()
    return result.path


def simulate(
    config: Experiment | str | Path, seed: int = 0, *, sets: tuple[str, ...] = (), **changes: object
) -> xr.Dataset:
    """Simulate an experiment in memory: the dataset of a run with this seed, without a file.

    Parameters
    ----------
    sets, changes : as `hil.load`, of an experiment's file

    Raises
    ------
    hil.errors.ConfigError, hil.errors.DeviceError
    """
    from hil.experiment.loaded import Experiment
    from hil.runs.simulate import simulate as simulate_run

    if not isinstance(config, Experiment):
        return simulate_run(load(config, sets, **changes), seed)
    if sets or changes:
        raise TypeError("simulate: an experiment is loaded already: give sets and changes to load")
    return simulate_run(config, seed)


def campaign(
    config: str | Path | Mapping[str, object],
    out: str | Path | None = None,
    *,
    jobs: int | None = None,
    scheduler: str | None = None,
    scheduler_security: str | Path | None = None,
    progress: bool = True,
) -> xr.Dataset:
    """Run a simulated campaign, as `hil campaign`; returns the table of all trials.

    The same call continues a campaign that was interrupted, and returns the table of a complete one
    at once.

    Parameters
    ----------
    config : file of the campaign, or a dict of its tables
        Experiments of a dict are relative to the working folder; its values may be NumPy's.
    out : folder of journal, page and recordings, the attribute `folder` of the table
        By default below `runs`; that of a dict is another one after every change.
    jobs : number of processes at most; by default one for each core
    scheduler, scheduler_security : address of a Dask cluster, and the file of its credentials
    progress : show progress, in a terminal or a notebook

    Raises
    ------
    hil.errors.ConfigError, hil.errors.DeviceError
    KeyboardInterrupt
        Page and table of the trials that were run are in the folder.
    """
    from hil.runs.campaign.from_python import table_of
    from hil.runs.campaign.runner import Options

    return table_of(
        config,
        out,
        Options(jobs=jobs, progress=progress),
        scheduler,
        scheduler_security,
    )


def figure(*runs: str | Path | xr.Dataset, **look: Any) -> Figure:
    """Draw runs for a paper, as `hil figure`; returns the Matplotlib figure.

    Parameters
    ----------
    runs : recordings, or what `open_run` and `simulate` return
    look : by name, any attribute of `hil.reports.figure.Look`, such as `what`, `width` and `style`

    Raises
    ------
    hil.errors.ConfigError
    TypeError
        An unknown name.
    """
    from pathlib import Path

    from hil.record.overview import view_of
    from hil.reports.figure import Look, names_of
    from hil.reports.figure import figure as drawn

    shown = Look(**look)
    opened = [
        view_of(Path(run), *shown.span_s) if isinstance(run, str | Path) else run for run in runs
    ]
    return drawn(opened, names_of(runs), shown)


def open_run(path: str | Path) -> xr.Dataset:
    """A recording as a labelled dataset, units as attributes; see `hil.record.read.open_run`."""
    from hil.record.read import open_run as read_run

    return read_run(path)
