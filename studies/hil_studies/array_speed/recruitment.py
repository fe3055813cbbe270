"""Measures the cost of recruitment per tick: estimator and controller of 14 cells, no devices."""

import statistics
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from hil import bundled_configs
from hil.experiment.load import load
from hil.runs import assembly
from hil.runs.plan import Plan
from hil.systems.array.estimate.observer import ForceObserver

EXPERIMENTS = {
    "PID": "pid",
    "broadcast": "broadcast",
    "size principle": "size_principle",
    "optimal": "optimal",
}
AS_WIRES = [
    "model.arrays.muscle.activation={kind='thermal'}",
    "ambient={ambient_C=25.0, ambient_uncertainty_C=0.5}",
]
WIRE_PLAN = [  # n_blocks and sample_s, which wires do not use, are set to their defaults
    "controller={n_blocks=4, sample_s=0.1, plan_s=0.05, budget_s=0.05, levels_per_tick=2000, "
    "horizon_s=3.0}",
]
MODULATED = ["controller={power='modulated', price=0.0, on_min_s=0.0, off_min_s=0.0}"]
TICKS = 4000
ROUNDS = 3
EVERY = 100


def compare() -> dict[str, Any]:
    """Return the cost of estimator and control per tick, in s, for every controller.

    `tick_p50_s` is the median tick. `dearest_s` is the slowest tick of a period of EVERY
    ticks (planning, search), as the median over periods. Both are also measured with the failure
    tests, which run at one tick of EVERY. For cells that are wires only the first two are
    measured; there the optimal controller uses another planner, which also plans modulated power,
    and learns the wires.
    """
    times = {}
    for name, experiment in EXPERIMENTS.items():
        bare = [_ticks(experiment, failures=False) for _ in range(ROUNDS)]
        tested = [_ticks(experiment, failures=True) for _ in range(ROUNDS)]
        times[name] = {
            "tick_p50_s": statistics.median(float(np.median(t)) for t in bare),
            "dearest_s": statistics.median(_dearest_s(t) for t in bare),
            "tested_p50_s": statistics.median(float(np.median(t)) for t in tested),
            "tested_dearest_s": statistics.median(_dearest_s(t) for t in tested),
        }
    as_wires = dict.fromkeys(EXPERIMENTS, AS_WIRES)
    as_wires["optimal"] = AS_WIRES + WIRE_PLAN
    as_wires["optimal, modulated"] = AS_WIRES + WIRE_PLAN + MODULATED
    for name, sets in as_wires.items():
        experiment = EXPERIMENTS[name.partition(",")[0]]
        wires = [_ticks(experiment, failures=False, sets=sets) for _ in range(ROUNDS)]
        times[f"{name}, wires"] = {
            "tick_p50_s": statistics.median(float(np.median(t)) for t in wires),
            "dearest_s": statistics.median(_dearest_s(t) for t in wires),
        }
    return times


def as_text(times: dict[str, Any]) -> str:
    """Return the figures as a table."""
    lines = [
        f"{'14 cells, estimate and control, a tick':<44}{'median':>12}{'slowest':>12}"
        f"{'with tests':>14}{'slowest':>12}"
    ]
    for name, row in times.items():
        aim = "" if name.startswith("optimal") else "   median below 30 us"
        each = [f"{1e6 * value:>9.1f} us" for value in row.values()]
        each[2:] = [f"  {each[2]}", each[3]] if len(each) > 2 else [" " * 26]
        lines.append(f"  {name:<42}{''.join(each)}{aim}")
    return "\n".join(lines)


def _dearest_s(times: np.ndarray) -> float:
    """Return the largest, over the ticks of a period, of the median over periods."""
    return float(np.median(times.reshape(-1, EVERY), axis=0).max())


def _ticks(experiment: str, *, failures: bool, sets: Sequence[str] = ()) -> np.ndarray:
    """Return the times of ticks; the readings follow the cells as on an ideal rig."""
    config = load(bundled_configs.root() / "configs" / "array14" / f"{experiment}.toml", sets)
    pipeline = assembly.build(Plan(config))
    estimator, control = pipeline.estimator, pipeline.control
    if not failures and isinstance(estimator, ForceObserver):
        estimator.isolation = None
    readings, commands = pipeline.rig.readings, pipeline.rig.commands
    t_at = pipeline.frame.index("t_s")
    every = (1 << readings.n_sources) - 1
    readings.mark_valid(every, every)
    force = pipeline.rig.layout.index(pipeline.rig.layout.force)
    times = np.empty(TICKS)
    for k in range(-20, TICKS):
        t_s = (k + 20) * config.tables.loop.period_s
        pipeline.frame.values[t_at] = t_s
        if len(commands.duty):
            np.greater(commands.duty, 0.0, out=commands.cells, casting="unsafe")
            readings.duty_reported[:] = commands.duty
        readings.measured[force] = 0.1 * commands.cells.sum()
        readings.cells_reported[:] = commands.cells
        began = time.perf_counter()
        estimator.step(1)
        control.step(t_s)
        if k >= 0:
            times[k] = time.perf_counter() - began
        if commands.broadcast.tick:  # the cells draw random numbers themselves
            commands.cells[:] = (np.arange(len(commands.cells)) + k // 250) % 3 == 0
    return times
