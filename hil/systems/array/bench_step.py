"""`hil bench`: cost of a step of an array's model."""

import statistics
import time

import numpy as np

from hil.systems.array import cells
from hil.systems.array.activation import CellActivation
from hil.systems.array.cell_array import CellArray
from hil.systems.array.system import ArraySystem

REPEATS = 5
STEPS = 20000
FINGERPRINTS = {
    "6 cells": "-:1 | &1:2 | &1:1 &2:2 | &7:-1",
    "14 cells": "-:5 | &1:1 &E:1 &10:3 | &1:1 &6:2 &18:1 | &F:-1",
}


def measure() -> dict[str, float]:
    """Return the median time of a step in s, by array."""
    return {name: _step_s(text) for name, text in FINGERPRINTS.items()}


def _step_s(fingerprint: str) -> float:
    """Return the time of one exact step, called from Python."""
    cell = cells.miga(
        k_pe_N_per_m=20.0, k_se_N_per_m=386.52, k_ae_N_per_m=1000.0, b_N_s_per_m=500.0
    )
    model = CellArray.from_fingerprint(fingerprint, cell=cell, mass_kg=0.01583)
    system = ArraySystem(model, [CellActivation(1.0)] * model.n_cells, 0.001)
    on = np.ones(model.n_cells, dtype=np.uint8)
    system.step(on)
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        for _ in range(STEPS):
            system.step(on)
        times.append((time.perf_counter() - began) / STEPS)
    return statistics.median(times)


def as_text(steps: dict[str, float]) -> str:
    """Return the figures as a table."""
    return "\n".join(
        f"{f'model step, {name}':<44} {f'{1e6 * t_s:.2f} us':>16}" for name, t_s in steps.items()
    )
