"""`hil study recruitment`: all controllers on arrays of 6, 14 and 100 cells with unknown errors.

Every plant is commissioned first: each cell is pulsed twice (`study_commission`). Every
controller except UNTOLD uses the result; "optimal" also learns the wires during the trial. Trials
run on the same plant on another day. One procedure tunes all controllers (`study_tuning`): it
searches the least mean error over the tuning plants and the three set points, without dead cells,
on a grid that widens until the optimum is inside. The evaluation uses other plants. Dead cells die
after commissioning, and no controller knows of them. `study_optimum` computes the optimum for the
plant and set point of each trial. `study_law` compares controllers by two laws of the wires.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hil.record.progress import count_progress
from hil.systems.array.recruitment import study_failures as failures
from hil.systems.array.recruitment import study_law as laws
from hil.systems.array.recruitment import study_page as page
from hil.systems.array.recruitment import study_trial as trial
from hil.systems.array.recruitment.study_bound import least_possible
from hil.systems.array.recruitment.study_commission import commissioned_plant
from hil.systems.array.recruitment.study_controllers import (
    OLD_LAW,
    UNTOLD,
    Setting,
    control_of,
    law_known,
)
from hil.systems.array.recruitment.study_optimum import GRID_S, least_error
from hil.systems.array.recruitment.study_plant import (
    PERIOD_S,
    SET_POINTS,
    WireLaw,
    dead_cells,
    later,
    nominal,
    plant,
    reference,
)
from hil.systems.array.recruitment.study_tuning import AXES, tune
from hil.systems.array.recruitment.study_values import Judged, Optimum, Values

SWEEPS = {6: 12, 14: 12, 100: 2}  # largest number of sweeps of the descent to the optimum
BOUND_ROUNDS = 60  # largest number of rounds of the search for a lower bound
BOUND_CELLS_MAX = 14  # a plant of 100 cells takes ten minutes
N_TICKS = 1600  # length of a trial
TUNING_SEED = 100_000


def run(out: Path, values: Values) -> dict[str, Any]:
    """Run the whole study into the folder `out`; return the results, as in results.json."""
    workers = values.workers or os.cpu_count() or 1
    with ProcessPoolExecutor(workers) as pool:
        each = partial(_in_parallel, pool)
        tuned = _tune(values, each)
        judged = _judge(values, tuned, each)
        optimum = _optimum(values, each)
        bounds = _bounds(values, optimum, each)
        found = failures.failures(values, tuned, each)
    ratios = _ratios(values, judged, optimum)
    at_most = _ratios(values, judged, bounds)
    at_least = _ratios(values, judged, {job: optimum[job] for job in bounds})
    return {
        "title": "Recruitment: every controller on plants with unknown errors"
        + ", wires under stress" * (values.plant == "sma"),
        "figures": page.figures(out, values, tuned, judged, optimum, found),
        "tables": [*page.tables(values, tuned, judged, optimum, bounds, found),
                   *laws.tables(values, judged)],
        "notes": [*page.notes(values, ratios, found),
                  *page.bracket(values, optimum, bounds, at_least, at_most)],
        "judged": {f"{n} cells, {dead:g} % dead, {name}": rows
                   for (n, dead, name), rows in judged.items()},
        "optimum": {f"{n} cells, {SET_POINTS[seed % 3]}, seed {seed}": error
                    for (n, seed), error in optimum.items()},
        "bound": {f"{n} cells, {SET_POINTS[seed % 3]}, seed {seed}": error
                  for (n, seed), error in bounds.items()},
        "law_without_stress": laws.differences(values, judged),
        "ratio_to_optimum": ratios,
        "ratio_to_bound": at_most,
        "failures": found,
        "settings": {f"{n} cells, {name}": setting for (n, name), setting in tuned.items()},
    }  # fmt: skip


Job = tuple[int, float, str, Setting, str, int, WireLaw]
Each = Callable[..., Iterable[Any]]


def _in_parallel(
    pool: ProcessPoolExecutor,
    what: str,
    work: Callable[[Any], Any],
    jobs: list[Any],
    together: int = 1,
) -> Iterator[Any]:
    """Yield results in the order of the jobs, with a progress bar on a terminal.

    `together` jobs go to one process: trials of one plant, which is then commissioned only once.
    """
    with count_progress(what, len(jobs), wanted=True) as advance:
        for result in pool.map(work, jobs, chunksize=together):
            advance(1)
            yield result


def one(job: Job) -> tuple[float, float, float]:
    """Return a trial's relative error, switches per second and cell, and energy in J."""
    n_cells, dead_percent, name, setting, kind, seed, law = job
    truth, commissioned = commissioned_plant(n_cells, seed, law, law_known(law, name))
    know = nominal(n_cells) if name == UNTOLD else commissioned
    total_N = nominal(n_cells).total_N
    follow = reference(kind, total_N)
    dead = dead_cells(n_cells, seed, round(dead_percent * n_cells / 100.0))
    control = control_of(know, name, setting, follow, seed)
    found = trial.run(know, control, truth, follow, seed, dead=dead)
    return found.rmse_N / total_N, found.switches_per_s / n_cells, found.energy_J


def _tune(values: Values, each: Each) -> dict[tuple[int, str], Setting]:
    def errors(n: int, name: str, settings: list[Setting]) -> list[float]:
        jobs = [
            (n, 0.0, name, setting, kind, TUNING_SEED + seed, values.plant)
            for seed in range(values.tuning_seeds)
            for setting in settings
            for kind in SET_POINTS
        ]
        found = [error for error, _, _ in each(f"tuning {name}", one, jobs, len(SET_POINTS))]
        return list(np.reshape(found, (values.tuning_seeds, len(settings), -1)).mean(axis=(0, 2)))

    return {
        (n, name): tune(name, AXES[name.removesuffix(OLD_LAW)], partial(errors, n, name))
        for n in values.cells
        for name in values.names
    }


def _judge(values: Values, tuned: dict[tuple[int, str], Setting], each: Each) -> Judged:
    """Run one trial per seed; the set points alternate."""
    jobs = [
        (n, dead, name, tuned[n, name], SET_POINTS[seed % 3], seed, values.plant)
        for n in values.cells
        for seed in range(values.seeds if n < 100 else values.seeds_of_100)
        for dead in values.dead_percent
        for name in values.names
    ]
    together = len(values.dead_percent) * len(values.names)
    judged: Judged = {}
    for job, row in zip(jobs, each("trials", one, jobs, together), strict=True):
        judged.setdefault(job[:3], []).append(row)
    return judged


def _optimum(values: Values, each: Each) -> Optimum:
    jobs = [
        (n, seed)
        for n in values.cells
        if values.plant == "thermal"  # its search and bound take wires that do not load each other
        for seed in range(min(values.optimum_seeds, values.seeds if n < 100
                              else values.seeds_of_100))
    ]  # fmt: skip
    return dict(zip(jobs, each("optimum", _one_optimum, jobs), strict=True))


def _one_optimum(job: tuple[int, int]) -> float:
    n_cells, seed = job
    total_N = nominal(n_cells).total_N
    follow = reference(SET_POINTS[seed % 3], total_N)
    start = np.zeros((round(N_TICKS * PERIOD_S / GRID_S), n_cells), dtype=np.uint8)
    truth = later(plant(n_cells, seed), seed)
    error_N, _ = least_error(truth, follow, start, sweeps=SWEEPS[n_cells])
    return error_N / total_N


def _bounds(values: Values, optimum: Optimum, each: Each) -> Optimum:
    """Compute lower bounds on the error of any sequence, on the plants with an optimum."""
    jobs = [(n, seed) for n, seed in optimum if n <= BOUND_CELLS_MAX and seed < values.bound_seeds]
    return dict(zip(jobs, each("bounds", _one_bound, jobs), strict=True))


def _one_bound(job: tuple[int, int]) -> float:
    n_cells, seed = job
    total_N = nominal(n_cells).total_N
    follow = reference(SET_POINTS[seed % 3], total_N)
    truth = later(plant(n_cells, seed), seed)
    return least_possible(truth, follow, N_TICKS, rounds=BOUND_ROUNDS).rmse_N / total_N


def _ratios(values: Values, judged: Judged, optimum: Optimum) -> dict[str, float]:
    """Return, averaged over set points, mean error over mean optimum on the same plants."""
    ratios = {}
    for n in values.cells:
        for name in values.names:
            rows = judged.get((n, 0.0, name))
            if rows is None:
                continue
            own = []
            for i in range(len(SET_POINTS)):
                seeds = [seed for (m, seed) in optimum if m == n and seed % 3 == i]
                if not seeds:
                    continue
                error = np.mean([rows[seed][0] for seed in seeds])
                own.append(float(error / np.mean([optimum[n, seed] for seed in seeds])))
            if own:
                ratios[f"{n} cells, {name}"] = float(np.mean(own))
    return ratios
