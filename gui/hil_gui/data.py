"""Recordings for the window; the only module here that imports hil."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hil import open_run
from hil.errors import ConfigError
from hil.guard import names_of

__all__ = ["ConfigError", "Recording", "read_recording"]


@dataclass(frozen=True)
class Recording:
    """What the window draws of a run; one sample a tick."""

    title: str
    simulated: bool
    outcome: str
    faults: list[str]
    t_s: NDArray[np.float64]
    measured_N: NDArray[np.float64]
    model_N: NDArray[np.float64]
    reference_N: NDArray[np.float64]
    cells_on: NDArray[np.uint8]
    cell_names: list[str]


def read_recording(path: Path) -> Recording:
    """Read a recording; ConfigError in one line where it is none."""
    run = open_run(path)
    bits = run.fault_bits.values
    return Recording(
        title=f"{run.attrs['experiment_file'].split('/')[0]}: {run.attrs['experiment_name']}",
        simulated=bool(run.attrs["simulated"]),
        outcome=run.attrs["outcome"],
        faults=names_of(int(bits[-1])) if len(bits) else [],
        t_s=run.t_s.values,
        measured_N=run.force_measured_N.values,
        model_N=run.force_model_N.values,
        reference_N=run.force_reference_N.values,
        cells_on=(run.cells_reported.values == 1).astype(np.uint8),
        cell_names=[str(name) for name in run.cell.values],
    )
