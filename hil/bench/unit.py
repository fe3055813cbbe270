"""`hil bench`, functional mock-up units: a unit as plant, and an exported unit in FMPy.

The unit is the array of `configs/miga6`, exported as FMI 3.0 for co-simulation.
"""

import shutil
import statistics
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from hil import bundled_configs
from hil.bench.table import as_table
from hil.config.values import Figures
from hil.experiment.load import load_model
from hil.systems.array.fmu.export import TARGETS, export
from hil.systems.fmu.description import described
from hil.systems.fmu.system import UnitSystem
from hil.systems.fmu.tables import FmuTable

PERIOD_S = 0.001
STEPS = 4000
SIMULATED_S = 5.0
OUTPUT = "muscle.right_N"


def measure(folder: Path) -> dict[str, object]:
    """Median and slowest step as plant, speed in FMPy; empty without FMPy or a compiler."""
    if find_spec("fmpy") is None or shutil.which(TARGETS[0][0]) is None:
        return {}
    import fmpy

    file = folder / "unit.fmu"
    rig = load_model(bundled_configs.root() / "configs" / "miga6" / "rig.toml")
    export(rig.model, rig.activation(), PERIOD_S, file)
    took_s = _steps(file, rig.model.cell_names)
    began = time.perf_counter()
    fmpy.simulate_fmu(
        str(file), fmi_type="CoSimulation", stop_time=SIMULATED_S, step_size=PERIOD_S,
        output_interval=PERIOD_S, output=[OUTPUT],
    )  # fmt: skip
    return {
        "step_p50_s": statistics.median(took_s),
        "step_p99_s": float(np.quantile(took_s, 0.99)),
        "times_real_time": SIMULATED_S / (time.perf_counter() - began),
    }


def _steps(file: Path, cells: tuple[str, ...]) -> list[float]:
    """Durations of steps through the unit's process."""
    duties = {cell: f"{cell}.duty" for cell in cells}
    table = FmuTable(kind="fmu", file=str(file), cells=duties, outputs={OUTPUT: OUTPUT})
    system = UnitSystem(described(table, PERIOD_S))
    on, none = np.ones(len(cells)), np.zeros(0)
    took_s = []
    for _ in range(STEPS):
        began = time.perf_counter()
        system.step(on, none)
        took_s.append(time.perf_counter() - began)
    return took_s


def as_text(figures: Figures) -> str:
    """The figures as a table."""
    if not figures:
        return "functional mock-up units: not measured without the extra 'fmu' and a C compiler"
    rows = [
        ("FMU of miga6 as plant, a tick, median", f"{1e6 * figures['step_p50_s']:.0f} us",
         "below 50 us"),
        ("  99 % of the ticks", f"{1e6 * figures['step_p99_s']:.0f} us", ""),
        ("  in FMPy at 1 kHz", f"{figures['times_real_time']:.0f} x", "20 times real time or more"),
    ]  # fmt: skip
    return as_table(rows)
