"""`hil study recruitment`: all controllers on arrays of 6 and 14 cells with unknown errors.

Every plant is commissioned first: each cell is pulsed twice (`study_commission`). Every
controller except UNTOLD and EXACT uses the result; "optimal" also learns the wires during the
trial. Trials run on the same plant on another day, in two series: with a lead-in, in which the
set point moves from rest to its first value, and from rest, where cold wires should pull at once.
One procedure tunes all controllers (`study_tuning`): it searches the least mean cost, error plus
weighted wear, over the tuning plants and the three set points, with a lead-in, without dead cells,
on a grid that widens until the optimum is inside. The evaluation uses other plants. Dead cells die
after commissioning, and no controller knows of them. `study_optimum` computes the optimum for the
plant and set point of each trial. `study_law` compares controllers by two laws of the wires.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hil.control.reference import Reference
from hil.platform.provenance import software
from hil.record.progress import count_progress
from hil_studies.recruitment import failures, page, scores, trial
from hil_studies.recruitment import law as laws
from hil_studies.recruitment.bound import least_possible
from hil_studies.recruitment.commission import commissioned_plant, exact_array
from hil_studies.recruitment.controllers import (
    EXACT,
    OLD_LAW,
    UNTOLD,
    Setting,
    control_of,
    law_known,
)
from hil_studies.recruitment.optimum import GRID_S, least_error, simulated
from hil_studies.recruitment.plant import (
    LEAD_S,
    PERIOD_S,
    SET_POINTS,
    Led,
    WireLaw,
    dead_cells,
    later,
    nominal,
    plant,
    reference,
)
from hil_studies.recruitment.tuning import AXES, tune
from hil_studies.recruitment.values import (
    Bounds,
    Judged,
    Optima,
    Optimum,
    Score,
    Start,
    Values,
)

SWEEPS = {6: 12, 14: 12, 100: 2}  # largest number of sweeps of the descent to the optimum
BOUND_ROUNDS = 60  # largest number of rounds of the search for a lower bound
N_TICKS = 1600  # length of a trial
LATE_TICKS = 200  # after these an error is late
TUNING_SEED = 100_000


def run(out: Path, values: Values) -> dict[str, Any]:
    """Run the whole study into the folder `out`; return the results, as in results.json."""
    workers = values.workers or os.cpu_count() or 1
    with ProcessPoolExecutor(workers) as pool:
        each = partial(_in_parallel, pool)
        tuned = _tune(values, each)
        judged = _judge(values, tuned, each)
        optima = _optima(values, each)
        bounds = _bounds(values, optima, each)
        found = failures.failures(values, tuned, each)
    ratios = scores.ratios(judged, optima, bounds)
    return {
        "title": "Recruitment: every controller on plants with unknown errors"
        + ", wires under stress" * (values.plant == "sma"),
        "made_by": software(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "figures": page.figures(out, values, tuned, judged, optima, found),
        "tables": [*scores.tables(values, judged, optima, bounds, ratios),
                   *page.tables(values, tuned, found), *laws.tables(judged)],
        "notes": [*page.notes(values, found), *scores.notes(ratios, optima, bounds)],
        "judged": {_key(start): rows for start, rows in judged.items()},
        "judged_columns": Score._fields,
        "optimum": {f"{n} cells, {SET_POINTS[seed % 3]}, seed {seed}": best._asdict()
                    for (n, seed), best in optima.items()},
        "bound": {f"{n} cells, {SET_POINTS[seed % 3]}, seed {seed}": error
                  for (n, seed), error in bounds.items()},
        "law_without_stress": laws.differences(judged),
        "ratios": {f"{n} cells, {name}": {what: mean._asdict() for what, mean in row.items()}
                   for (n, name), row in ratios.items()},
        "failures": found,
        "settings": {f"{n} cells, {name}": setting for (n, name), setting in tuned.items()},
    }  # fmt: skip


def _key(start: Start) -> str:
    told = "with lead-in" if start.led else "from rest"
    return f"{start.n_cells} cells, {start.dead:g} % dead, {start.name}, {told}"


class Job(NamedTuple):
    """One trial."""

    n_cells: int
    dead_percent: float
    name: str
    setting: Setting
    kind: str
    seed: int
    law: WireLaw
    led: bool = False


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


def one(job: Job) -> Score:
    """Return the figures of a trial."""
    n_cells, seed = job.n_cells, job.seed
    truth, know = commissioned_plant(n_cells, seed, job.law, law_known(job.law, job.name))
    if job.name == UNTOLD:
        know = nominal(n_cells)
    elif job.name == EXACT:
        know = exact_array(truth, seed)
    total_N = nominal(n_cells).total_N
    lead_s = LEAD_S if job.led else 0.0
    follow = _follow(job.kind, total_N, job.led)
    dead = dead_cells(n_cells, seed, round(job.dead_percent * n_cells / 100.0))
    control = control_of(know, job.name, job.setting, follow, seed)
    found = trial.run(
        know, control, truth, follow, seed, dead=dead,
        duration_s=N_TICKS * PERIOD_S + lead_s, counted_from_s=lead_s,
    )  # fmt: skip
    late_N = (found.force_N - found.reference_N)[LATE_TICKS:]
    return Score(
        found.rmse_N / total_N, found.switches_per_s / n_cells, found.energy_J,
        float(np.sqrt(np.mean(late_N**2))) / total_N, found.wear_per_s,
    )  # fmt: skip


def _follow(kind: str, total_N: float, led: bool) -> Reference:
    follow = reference(kind, total_N)
    return Led(follow) if led else follow


def _tune(values: Values, each: Each) -> dict[tuple[int, str], Setting]:
    def costs(n: int, name: str, settings: list[Setting]) -> list[float]:
        jobs = [
            Job(n, 0.0, name, setting, kind, TUNING_SEED + seed, values.plant, led=True)
            for seed in range(values.tuning_seeds)
            for setting in settings
            for kind in SET_POINTS
        ]
        scores_of = each(f"tuning {name}", one, jobs, len(SET_POINTS))
        cost = [score.cost(values.wear_weight_s) for score in scores_of]
        return list(np.reshape(cost, (values.tuning_seeds, len(settings), -1)).mean(axis=(0, 2)))

    tuned: dict[tuple[int, str], Setting] = {
        (n, name): tune(name, AXES[name.removesuffix(OLD_LAW)], partial(costs, n, name))
        for n in values.cells
        for name in values.names
        if name != EXACT
    }
    for n in values.cells:
        if EXACT in values.names_for(n):
            tuned[n, EXACT] = tuned[n, "optimal"]
    return tuned


def _judge(values: Values, tuned: dict[tuple[int, str], Setting], each: Each) -> Judged:
    """Run both series; the set points alternate with the seeds. From rest no cell is dead."""
    series = [(dead, True) for dead in values.dead_percent] + [(0.0, False)]
    judged: Judged = {}
    for n in values.cells:
        names = values.names_for(n)
        jobs = [
            Job(n, dead, name, tuned[n, name], SET_POINTS[seed % 3], seed, values.plant, led)
            for seed in range(values.seeds if n < 100 else values.seeds_of_100)
            for dead, led in series
            for name in names
        ]
        rows = each(f"trials of {n} cells", one, jobs, len(series) * len(names))
        for job, row in zip(jobs, rows, strict=True):
            start = Start(n, job.dead_percent, job.name, job.led)
            judged.setdefault(start, []).append(row)
    return judged


def _optima(values: Values, each: Each) -> Optima:
    jobs = [
        (n, seed)
        for n in values.optimum_cells
        if n in values.cells
        if values.plant == "thermal"  # its search and bound take wires that do not load each other
        for seed in range(min(values.optimum_seeds, values.seeds if n < 100
                              else values.seeds_of_100))
    ]  # fmt: skip
    return dict(zip(jobs, each("optimum", _one_optimum, jobs), strict=True))


def _one_optimum(job: tuple[int, int]) -> Optimum:
    n_cells, seed = job
    total_N = nominal(n_cells).total_N
    truth = later(plant(n_cells, seed), seed)

    def best(led: bool) -> tuple[float, float, float]:
        lead_s = LEAD_S if led else 0.0
        follow = _follow(SET_POINTS[seed % 3], total_N, led)
        start = np.zeros((round((N_TICKS * PERIOD_S + lead_s) / GRID_S), n_cells), dtype=np.uint8)
        error_N, on = least_error(
            truth, follow, start, sweeps=SWEEPS[n_cells], counted_from_s=lead_s
        )
        all_N, wear_per_s = simulated(truth, follow, on)
        late_N = all_N[round(lead_s / PERIOD_S) + LATE_TICKS :]
        return error_N / total_N, float(np.sqrt(np.mean(late_N**2))) / total_N, wear_per_s

    (error, late, _), (led, _, wear_per_s) = best(False), best(True)
    return Optimum(error, late, led, wear_per_s)


def _bounds(values: Values, optima: Optima, each: Each) -> Bounds:
    """Compute lower bounds on the error of any sequence, on the plants with an optimum."""
    jobs = [(n, seed) for n, seed in optima if seed < values.bound_seeds]
    return dict(zip(jobs, each("bounds", _one_bound, jobs), strict=True))


def _one_bound(job: tuple[int, int]) -> float:
    n_cells, seed = job
    total_N = nominal(n_cells).total_N
    follow = reference(SET_POINTS[seed % 3], total_N)
    truth = later(plant(n_cells, seed), seed)
    return least_possible(truth, follow, N_TICKS, rounds=BOUND_ROUNDS).rmse_N / total_N
