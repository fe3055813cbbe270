"""`hil bench`: what a step of an array's model costs, and of a wire in it, by either law.

A cell-step is one cell over one step of the model, of which a period of 1 ms may have several.
"""

import statistics
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hil.platform.processes import cpus
from hil.systems.array.model import cells
from hil.systems.array.model.activation import CellActivation
from hil.systems.array.model.cell_array import CellArray
from hil.systems.array.model.response import responses
from hil.systems.array.model.system import ArraySystem
from hil.systems.array.model.wire_load import Loaded
from hil_studies.wires.heat import FLEXINOL

REPEATS = 5
STEPS = 20000
K_AE = 1000.0
STEP = CellActivation(1.0)
WIRES = {
    "without stress": CellActivation(1.0, "thermal"),
    "under stress": CellActivation(1.0, "sma", loaded=Loaded(FLEXINOL, 1.0, K_AE)),
}
FINGERPRINTS = {
    "6 cells": "-:1 | &1:2 | &1:1 &2:2 | &7:-1",
    "14 cells": "-:5 | &1:1 &E:1 &10:3 | &1:1 &6:2 &18:1 | &F:-1",
}
LARGE_CELLS, LARGE_STEPS = 10_000, 50
BATCH_PERIODS = 2000


def common_mass(n_cells: int) -> str:
    """Fingerprint of two layers of cells on one mass."""
    every = f"&{2 ** (n_cells // 2) - 1:X}"
    return f"-:{n_cells // 2} | {every}:{n_cells // 2} | {every}:-1"


def strands(n_strands: int, n_cells: int) -> str:
    """Fingerprint of strands of n_cells each, side by side."""
    layer = " ".join(f"&{1 << i:X}:1" for i in range(n_strands))
    return f"-:{n_strands} | {f'{layer} | ' * (n_cells - 1)}&{2**n_strands - 1:X}:-1"


def measure() -> dict[str, float]:
    """Median time of a step, s, by array, and of one wire's part in a bank of 14, by its law."""
    steps = {f"model step, {name}": _step_s(text, STEP) for name, text in FINGERPRINTS.items()}
    large = {
        f"{LARGE_CELLS} cells on one mass": common_mass(LARGE_CELLS),
        f"{LARGE_CELLS} cells in strands of 10": strands(LARGE_CELLS // 10, 10),
    }
    for name, text in large.items():
        steps[f"model step, {name}"] = _step_s(text, STEP, LARGE_STEPS)
    for kind, one in WIRES.items():
        steps[f"wire step in a bank of 14, {kind}"] = _wire_s(FINGERPRINTS["14 cells"], one)
    for kind, one in WIRES.items():
        steps[f"cell-step of 6 wires {kind}, in the loop"] = _cell_step_s(one)
        steps[f"cell-step of 6 wires {kind}, in a batch"] = _batch_s(one)
    return steps


def _cell_step_s(one: CellActivation) -> float:
    """One cell's part in a step of `ArraySystem.step`, called from Python."""
    system, on = _array(FINGERPRINTS["6 cells"], one)
    return _median_s(lambda: system.step(on)) / (len(on) * system.steps)


def _batch_s(one: CellActivation) -> float:
    """One cell's part in a step of `CellArray.batch`, times the processors that are used."""
    random, times = np.random.default_rng(0), []
    commands = np.repeat(random.choice([0.0, 1.0], (BATCH_PERIODS // 500, 6)), 500, axis=0)
    n_sets = 2 * len(cpus())
    for _ in range(REPEATS + 1):
        sets = [_array(FINGERPRINTS["6 cells"], one)[0] for _ in range(n_sets)]
        began = time.perf_counter()
        responses(sets, np.array([1]), commands)
        took_s = (time.perf_counter() - began) * len(cpus())
        times.append(took_s / (n_sets * commands.size * sets[0].steps))
    return statistics.median(times[1:])


def _array(fingerprint: str, one: CellActivation) -> tuple[ArraySystem, NDArray[np.uint8]]:
    """A system with these cells, all of which are on."""
    cell = cells.miga(k_pe_N_per_m=20.0, k_se_N_per_m=386.52, k_ae_N_per_m=K_AE, b_N_s_per_m=500.0)
    model = CellArray.from_fingerprint(fingerprint, cell=cell, mass_kg=0.01583)
    system = ArraySystem(model, [one] * model.n_cells, 0.001)
    return system, np.ones(model.n_cells, dtype=np.uint8)


def _step_s(fingerprint: str, one: CellActivation, n_steps: int = STEPS) -> float:
    """One exact step of plant or twin, called from Python."""
    system, on = _array(fingerprint, one)
    return _median_s(lambda: system.step(on), n_steps)


def _wire_s(fingerprint: str, one: CellActivation) -> float:
    """One wire's part in the step of all activations, without the array's linear step."""
    system, on = _array(fingerprint, one)
    return _median_s(lambda: system.activate(on)) / len(on)


def _median_s(call: Callable[[], None], n_calls: int = STEPS) -> float:
    """Time of a call once it is compiled."""
    call()
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        for _ in range(n_calls):
            call()
        times.append((time.perf_counter() - began) / n_calls)
    return statistics.median(times)


def as_text(steps: dict[str, float]) -> str:
    """The figures as a table."""
    return "\n".join(f"{name:<52} {f'{1e6 * t_s:.2f} us':>16}" for name, t_s in steps.items())
