"""Failed cells of a recording: which, when, and how they were detected."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hil.config.values import Figures

OPEN_WIRE = "electrically dead: open wire, found by its board"
BY_FORCE = "failed, found by the force"
_FAILED = 1  # value of a failed cell in column `cells_failed`


def failed_cells(
    t_s: NDArray[np.float64],
    names: Sequence[str],
    cells_open: NDArray[np.uint8] | None,
    cells_failed: NDArray[np.uint8] | None,
) -> list[Figures]:
    """List the failed cells in order of time, each as a dict of `cell`, `t_s` and `found`.

    Parameters
    ----------
    cells_open, cells_failed : (ticks, N) arrays or None
        The columns of these names; None if the recording lacks the column.
    """
    nothing = np.zeros((len(t_s), len(names)), dtype=np.uint8)
    opened = nothing if cells_open is None else cells_open
    failed = nothing if cells_failed is None else cells_failed == _FAILED
    entries = []
    for n, name in enumerate(names):
        rows = np.flatnonzero((opened[:, n] != 0) | failed[:, n])
        if len(rows):
            how = OPEN_WIRE if opened[rows[0], n] else BY_FORCE
            entries.append({"cell": name, "t_s": float(t_s[rows[0]]), "found": how})
    return sorted(entries, key=lambda entry: entry["t_s"])


def failure_lines(entries: Sequence[Figures]) -> list[str]:
    """Format the entries of `failed_cells`, one line for each cell."""
    return [f"{f['cell']}: {f['found']} at {f['t_s']:.3f} s" for f in entries]
