"""`hil study recruitment`: all controllers on arrays of 6, 14 and 100 cells they were not told.

Every controller is tuned by one procedure: of its six settings in SETTINGS that with the least mean
error over the tuning plants and the three set points, without dead cells. The plants it is then
judged on are others. The optimum is that of `recruitment_optimum`.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from matplotlib.figure import Figure
from pydantic import BeforeValidator, Field

from hil.config.table import Table
from hil.control.broadcast import BroadcastLaw, Law
from hil.control.groups import GroupRules
from hil.control.reference import Reference
from hil.models.isolation import IsolationRules
from hil.progress import count_progress
from hil.studies import recruitment_trial as trial
from hil.studies.recruitment_optimum import GRID_S, least_error
from hil.views.style import CELL, MEASURED, MODEL, REFERENCE, mark_simulated, plot_style

SET_POINTS = ("steps", "sine", "reach")
TUNING_SEED = 100_000
BROADCASTS: dict[str, Law] = {
    "broadcast, dead beat": "dead_beat",
    "broadcast, LMS": "least_mean_square",
    "broadcast, |e|/N": "error_over_n",
    "broadcast, fixed gain": "fixed_gain",
}
CONTROLLERS = ("PID", *BROADCASTS, "size principle", "optimal")
ROTATE_S, REST_S = 6.0, 1.0
SWEEPS = {6: 12, 14: 12, 100: 2}  # at most, of the descent to the optimum

Setting = tuple[float, ...]
SETTINGS: dict[str, tuple[Setting, ...]] = {
    # k_p, k_i 1/s, dwell s
    "PID": ((0.1, 0.2, 0.2), (0.1, 0.4, 0.2), (0.1, 0.8, 0.2),
            (0.4, 0.2, 0.2), (0.4, 0.4, 0.2), (0.4, 0.8, 0.2)),
    # period s, dead zone over half the largest step, gain
    **dict.fromkeys(
        list(BROADCASTS)[:3],
        ((0.2, 1.0, 0.0), (0.5, 1.0, 0.0), (1.0, 1.0, 0.0),
         (0.2, 1.5, 0.0), (0.5, 1.5, 0.0), (1.0, 1.5, 0.0)),
    ),
    "broadcast, fixed gain": ((0.2, 1.0, 0.01), (0.2, 1.0, 0.03), (0.2, 1.0, 0.1),
                              (0.5, 1.0, 0.01), (0.5, 1.0, 0.03), (0.5, 1.0, 0.1)),
    # k_p, hysteresis, dwell s
    "size principle": ((0.0, 0.1, 0.1), (0.4, 0.1, 0.1), (0.8, 0.1, 0.1),
                       (0.0, 0.3, 0.1), (0.4, 0.3, 0.1), (0.8, 0.3, 0.1)),
    # price, least time on and off s, blocks
    "optimal": ((0.3, 2.0, 4), (1.0, 2.0, 4), (3.0, 2.0, 4),
                (1.0, 1.4, 4), (1.0, 2.0, 2), (1.0, 1.4, 2)),
}  # fmt: skip


Size = Literal[6, 14, 100]
Percent = Annotated[float, Field(ge=0.0, le=30.0)]


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


class Values(Table):
    """What `--set` may change: sizes, and how many plants of each kind.

    `workers` processes share the trials; by default as many as there are cores.
    """

    cells: Annotated[tuple[Size, ...], Field(min_length=1), BeforeValidator(_tuple)] = (6, 14, 100)
    dead_percent: Annotated[tuple[Percent, ...], Field(min_length=1), BeforeValidator(_tuple)] = (
        0.0, 10.0, 30.0,
    )  # fmt: skip
    seeds: Annotated[int, Field(ge=3, le=10_000)] = 6
    seeds_of_100: Annotated[int, Field(ge=3, le=10_000)] = 3
    tuning_seeds: Annotated[int, Field(ge=1, le=100)] = 1
    optimum_seeds: Annotated[int, Field(ge=1, le=1000)] = 1
    failure_seeds: Annotated[int, Field(ge=1, le=10_000)] = 8
    healthy_hours: Annotated[float, Field(gt=0.0, le=1000.0)] = 0.1
    workers: Annotated[int, Field(ge=1, le=256)] | None = None


def run(out: Path, values: Values) -> dict[str, Any]:
    """Run everything into the folder `out`; the results, as written to results.json."""
    workers = values.workers or os.cpu_count() or 1
    with ProcessPoolExecutor(workers) as pool:
        each = partial(_spread, pool)
        tuned = _tune(values, each)
        judged = _judge(values, tuned, each)
        optimum = _optimum(values, tuned, each)
        failures = _failures(values, tuned, each)
    figures = [
        _save(out, "traces.png", _draw_traces(values, tuned), _CAPTION_TRACES),
        _save(out, "errors.png", _draw_errors(values, judged, optimum), _CAPTION_ERRORS),
        _save(out, "failures.png", _draw_failures(failures), _CAPTION_FAILURES),
    ]
    ratios = _ratios(values, judged, optimum)
    return {
        "title": "Recruitment: every controller on plants that it was not told",
        "figures": figures,
        "tables": [
            *[_table(values, judged, optimum, n_cells) for n_cells in values.cells],
            _failure_table(failures),
            _tuned_table(values, tuned),
        ],
        "notes": _notes(values, judged, ratios, failures),
        "judged": {f"{n} cells, {dead:g} % dead, {name}": rows
                   for (n, dead, name), rows in judged.items()},
        "optimum": {f"{n} cells, {kind}, seed {seed}": error
                    for (n, kind, seed), error in optimum.items()},
        "ratio_to_optimum": ratios,
        "failures": failures,
        "settings": {f"{n} cells, {name}": setting for (n, name), setting in tuned.items()},
    }  # fmt: skip


def control_of(
    n_cells: int, name: str, setting: Setting, follow: Reference, seed: int
) -> trial.Control:
    """A controller with one of its settings."""
    know = trial.told(n_cells)
    if name == "PID":
        return trial.PidControl(know, *setting)
    if name in BROADCASTS:
        period_s, zone, gain = setting
        zone_N = 0.5 * zone * know.largest_step_N * (1.0 + 1e-9)
        law = BroadcastLaw(BROADCASTS[name], gain, zone_N, period_s)
        return trial.broadcast(know, law, seed)
    if name == "size principle":
        k_p, hysteresis, dwell_s = setting
        rules = GroupRules(k_p, hysteresis, dwell_s, rest_s=REST_S, rotate_s=ROTATE_S)
        return trial.size_principle(know, rules)
    price, least_s, n_blocks = setting
    planning = trial.Planning(price=price, least_s=least_s, n_blocks=int(n_blocks))
    return trial.optimal(know, follow, planning)


Job = tuple[int, float, str, Setting, str, int]
Each = Callable[[str, Callable[[Any], Any], list[Any]], Iterable[Any]]


def _spread(
    pool: ProcessPoolExecutor, what: str, work: Callable[[Any], Any], jobs: list[Any]
) -> Iterator[Any]:
    """Results in the order of the jobs, with a bar on a terminal."""
    with count_progress(what, len(jobs), wanted=True) as advance:
        for result in pool.map(work, jobs):
            advance(1)
            yield result


def one(job: Job) -> tuple[float, float, float]:
    """Error over what all cells give, switches a second and a cell, energy in J of one trial."""
    n_cells, dead_percent, name, setting, kind, seed = job
    know = trial.told(n_cells)
    follow = trial.reference(kind, know.total_N)
    truth = trial.plant(n_cells, seed, round(dead_percent * n_cells / 100.0))
    control = control_of(n_cells, name, setting, follow, seed)
    found = trial.run(n_cells, control, truth, follow, seed)
    return found.rmse_N / know.total_N, found.switches_per_s / n_cells, found.energy_J


def _tune(values: Values, each: Each) -> dict[tuple[int, str], Setting]:
    tuned: dict[tuple[int, str], Setting] = {}
    for n_cells in values.cells:
        for name in CONTROLLERS:
            jobs = [
                (n_cells, 0.0, name, setting, kind, TUNING_SEED + seed)
                for setting in SETTINGS[name]
                for seed in range(values.tuning_seeds)
                for kind in SET_POINTS
            ]
            errors = np.array([error for error, _, _ in each("tuning", one, jobs)])
            mean = errors.reshape(len(SETTINGS[name]), -1).mean(axis=1)
            tuned[n_cells, name] = SETTINGS[name][int(mean.argmin())]
    return tuned


Judged = dict[tuple[int, float, str], list[tuple[float, float, float]]]


def _judge(values: Values, tuned: dict[tuple[int, str], Setting], each: Each) -> Judged:
    """One trial a seed; set points take turns."""
    keys = [(n, dead, name) for n in values.cells for dead in values.dead_percent
            for name in CONTROLLERS]  # fmt: skip
    seeds = {key: values.seeds if key[0] < 100 else values.seeds_of_100 for key in keys}
    jobs = [
        (n, dead, name, tuned[n, name], SET_POINTS[seed % 3], seed)
        for n, dead, name in keys
        for seed in range(seeds[n, dead, name])
    ]
    found = iter(each("trials", one, jobs))
    return {key: [next(found) for _ in range(seeds[key])] for key in keys}


def _optimum(
    values: Values, tuned: dict[tuple[int, str], Setting], each: Each
) -> dict[tuple[int, str, int], float]:
    jobs = [
        (n, kind, seed, tuned[n, "optimal"])
        for n in values.cells
        for seed in range(values.optimum_seeds if n < 100 else -(-values.optimum_seeds // 4))
        for kind in SET_POINTS
    ]
    errors = each("optimum", _one_optimum, jobs)
    return {job[:3]: error for job, error in zip(jobs, errors, strict=True)}


def _one_optimum(job: tuple[int, str, int, Setting]) -> float:
    n_cells, kind, seed, _ = job
    know = trial.told(n_cells)
    follow = trial.reference(kind, know.total_N)
    blocks = round(16.0 / GRID_S)
    start = np.zeros((blocks, n_cells), dtype=np.uint8)
    truth = trial.plant(n_cells, seed, 0)
    error_N, _ = least_error(truth, follow, start, sweeps=SWEEPS[n_cells])
    return error_N / know.total_N


def _ratios(
    values: Values, judged: Judged, optimum: dict[tuple[int, str, int], float]
) -> dict[str, float]:
    """Mean over set points of error over optimum, no cell dead, on the optimum's own plants."""
    ratios = {}
    for n in values.cells:
        for name in CONTROLLERS:
            rows = judged.get((n, 0.0, name))
            if rows is None:
                continue
            own = []
            for i, kind in enumerate(SET_POINTS):
                errors = [row[0] for row in rows[i::3]]
                best = [e for (m, k, _), e in optimum.items() if m == n and k == kind]
                if errors:
                    own.append(float(np.mean(errors) / np.mean(best)))
            ratios[f"{n} cells, {name}"] = float(np.mean(own))
    return ratios


# Failures

# What a plant is, and what the tests are told to allow.
PLANTS: dict[str, tuple[dict[str, Any], IsolationRules]] = {
    "identified to 5 %": (
        {"wires": False, "most": 0.05},
        IsolationRules(settle_s=2.5, doubt=0.03, noise_N=0.01, window_s=1.5, spread=0.05),
    ),
    "off by 20 %": (
        {"wires": False},
        IsolationRules(settle_s=2.5, doubt=0.08, noise_N=0.01, window_s=1.5),
    ),
    "wires, not told": ({}, IsolationRules(noise_N=0.02)),
}
FAILURE_CONTROLLERS = ("size principle", "optimal", "broadcast, LMS")
DIES_S, WATCHED_S = 60.0, 30.0
FAILURE_CELLS = 14


def _failures(
    values: Values, tuned: dict[tuple[int, str], Setting], each: Each
) -> list[dict[str, Any]]:
    n = FAILURE_CELLS if FAILURE_CELLS in values.cells else values.cells[0]
    rows = []
    healthy_s = 3600.0 * values.healthy_hours / len(FAILURE_CONTROLLERS) / len(PLANTS)
    n_healthy = max(1, round(healthy_s / (DIES_S + WATCHED_S)))
    for plant in PLANTS:
        for name in FAILURE_CONTROLLERS:
            setting = tuned[n, name]
            jobs = [(n, name, setting, plant, seed, True) for seed in range(values.failure_seeds)]
            jobs += [(n, name, setting, plant, 500 + i, False) for i in range(n_healthy)]
            found = list(each("failures", _one_failure, jobs))
            deaths = found[: values.failure_seeds]
            rows.append({
                "plant": plant,
                "controller": name,
                "n_cells": n,
                "n": len(deaths),
                "delays_s": [named for named, _, _, _ in deaths],
                "class_delays_s": [among for _, among, _, _ in deaths],
                "wrong": sum(wrong for _, _, wrong, _ in deaths),
                "false_alarms": sum(false for _, _, _, false in found),
                "hours": (n_healthy * (DIES_S + WATCHED_S) + len(deaths) * DIES_S) / 3600.0,
            })  # fmt: skip
    return rows


def _one_failure(job: tuple[int, str, Setting, str, int, bool]) -> tuple[float, float, int, int]:
    """Seconds until the cell that died is named, and until a class with it is (infinity: never
    within WATCHED_S); cells wrongly named after it; false alarms without a failure.
    """
    n, name, setting, plant, seed, dies = job
    know = trial.told(n)
    follow = trial.reference("sine", know.total_N)
    options, rules = PLANTS[plant]
    truth = trial.plant(n, seed + 10_000, 0, **options)
    found = trial.run(
        n, control_of(n, name, setting, follow, seed), truth, follow, seed,
        duration_s=DIES_S + WATCHED_S, rules=rules, dies_s=DIES_S if dies else np.inf,
    )  # fmt: skip
    named = among = np.inf
    wrong = false = 0
    for t_s, cells in found.found:
        if t_s < DIES_S or not dies:
            false += 1
        elif found.killed in cells:
            among = min(among, t_s - DIES_S)
            if len(cells) == 1:
                named = min(named, t_s - DIES_S)
        elif len(cells) == 1:
            wrong += 1
    return float(named), float(among), wrong, false


# Page

_CAPTION_TRACES = (
    "One plant of 14 cells (or the first size asked for), three set points. The set point is "
    "known in advance to the optimal controller only, which therefore starts to heat before a "
    "step. Cells take about a second to heat and to cool, each as its own wire does."
)
_CAPTION_ERRORS = (
    "RMS error over what all cells give: mean and standard deviation over plants, each with its "
    "own parameters (off by up to 20 %), dead cells, noise and zero. Lines: the full-information "
    "optimum without dead cells, found by descent over the cells, each cell's sequence by dynamic "
    "programming on a grid of 0.1 s with states in bins of 4 K, a tenth of austenite and a "
    "twentieth of its lag; started from nothing or from a controller's sequence it ends within 2 %."
)
_CAPTION_FAILURES = (
    "A cell that is on dies at 60 s: share of the deaths after which it has been named (solid), or "
    "a class of cells that force has not told apart (dashed), over the time since. Left and middle "
    "the cells' activation is the one the tests were told, with forces, springs and dampers off by "
    "up to 5 and 20 %; right they are wires, of which the tests know a symmetrical sigmoid."
)


def _table(
    values: Values, judged: Judged, optimum: dict[tuple[int, str, int], float], n_cells: int
) -> dict[str, Any]:
    rows = []
    for name in CONTROLLERS:
        row = [name]
        for dead in values.dead_percent:
            errors, switches, energy = np.array(judged[n_cells, dead, name]).T
            row.append(
                f"{100 * errors.mean():.1f} ± {100 * errors.std(ddof=1):.1f} % · "
                f"{n_cells * switches.mean():.1f}/s · {energy.mean():.0f} J"
            )
        rows.append(row)
    best = [100.0 * e for (m, _, _), e in optimum.items() if m == n_cells]
    rows.append(["full-information optimum", f"{np.mean(best):.1f} %"]
                + [""] * (len(values.dead_percent) - 1))  # fmt: skip
    return {
        "title": f"{n_cells} cells: RMS error over all cells' force, switches a second, energy",
        "columns": ["", *[f"{dead:g} % dead" for dead in values.dead_percent]],
        "rows": rows,
    }


def _failure_table(failures: list[dict[str, Any]]) -> dict[str, Any]:
    rows = []
    for f in failures:
        delays, among = np.array(f["delays_s"]), np.array(f["class_delays_s"])
        rows.append([
            f"{f['plant']}, {f['controller']}",
            f"{100 * np.mean(among <= 3.0):.0f} %", f"{100 * np.mean(delays <= 3.0):.0f} %",
            f"{100 * np.mean(delays <= WATCHED_S):.0f} %",
            f"{f['wrong']} of {f['n']}",
            f"{f['false_alarms']} in {f['hours']:.1f} h",
        ])  # fmt: skip
    return {
        "title": f"A cell of {failures[0]['n_cells']} dies while it is on",
        "columns": ["", "class within 3 s", "named within 3 s", "named within 30 s",
                    "another named", "false alarms"],
        "rows": rows,
    }  # fmt: skip


def _tuned_table(values: Values, tuned: dict[tuple[int, str], Setting]) -> dict[str, Any]:
    return {
        "title": "Settings that the tuning chose (see SETTINGS in hil/studies/recruitment.py)",
        "columns": ["", *[f"{n} cells" for n in values.cells]],
        "rows": [
            [name, *[", ".join(f"{x:g}" for x in tuned[n, name]) for n in values.cells]]
            for name in CONTROLLERS
        ],
    }


def _notes(
    values: Values, judged: Judged, ratios: dict[str, float], failures: list[dict[str, Any]]
) -> list[str]:
    notes = [
        "Procedure: every controller has six settings and is given that of the least mean error "
        f"on {values.tuning_seeds} tuning plant(s) under all three set points, without dead cells; "
        "it is then judged on other plants, one set point a plant in turn.",
        "Told: the array's shape, nominal cells, a symmetrical sigmoid of activation. The plant: "
        "wires with hysteresis whose rise and fall take 0.7 and 1.1 s, every parameter off by up "
        "to 20 % (wires' convection 10 %, supply 5 %), force read 20 ms late with 2 mN of noise "
        "and a zero of up to 10 mN.",
    ]
    for n in values.cells:
        ratio_of = {name: ratios[f"{n} cells, {name}"] for name in CONTROLLERS
               if f"{n} cells, {name}" in ratios}  # fmt: skip
        if ratio_of:
            best = min(ratio_of, key=lambda name: ratio_of[name])
            said = ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratio_of.items())
            met = "reached" if ratio_of[best] <= 1.1 else "not reached"
            notes.append(
                f"{n} cells, error over the optimum's, mean over set points: {said}. Within 10 % "
                f"of the optimum: {met} (best: {best}, {100 * (ratio_of[best] - 1):.0f} % above)."
            )
    for plant in PLANTS:
        own = [f for f in failures if f["plant"] == plant]
        among, named = (
            100.0 * np.mean([d <= 3.0 for f in own for d in f[key]])
            for key in ("class_delays_s", "delays_s")
        )
        false, hours = (sum(f[key] for f in own) for key in ("false_alarms", "hours"))
        verdict = "reached" if named >= 95.0 and false * 24.0 <= hours else "not reached"
        notes.append(
            f"Failures, {plant}: {among:.0f} % of the deaths put down to a class with the cell in "
            f"it within 3 s, {named:.0f} % to the cell itself; {false} false alarms in {hours:.1f} "
            f"h. 95 % within 3 s with one false alarm a day at most: {verdict}."
        )
    notes.append(
        "Where each loses. PID: it waits for a force that comes a second late, and winds slowly. "
        "Broadcast: no addresses, so the spread of a draw remains, less with many cells, and the "
        "dead zone of half a step is left standing; |e|/N and fixed gains are slow far from the "
        "goal. Size principle: no preview, so the cells' delay stays in the error. Optimal: it "
        "trusts a symmetrical sigmoid; wires that fall later than they rise cost it most at steps, "
        "and where its search does not end within its budget the last plan holds. "
        "Failures: like cells that are on together are one to the force; they are told apart only "
        "as they take turns, and cells that always heat or cool are never still enough to judge."
    )
    return notes


def _draw_traces(values: Values, tuned: dict[tuple[int, str], Setting]) -> Figure:
    n = 14 if 14 in values.cells else values.cells[0]
    know = trial.told(n)
    names = ("PID", "broadcast, LMS", "size principle", "optimal")
    with plot_style():
        figure = Figure(figsize=(9.0, 7.0), layout="constrained")
        axes = figure.subplots(3, 1, sharex=True)
        for axis, kind in zip(axes, SET_POINTS, strict=True):
            follow = trial.reference(kind, know.total_N)
            for name, color in zip(names, (CELL, "#56B4E9", MODEL, MEASURED), strict=True):
                control = control_of(n, name, tuned[n, name], follow, 1)
                found = trial.run(n, control, trial.plant(n, 1, 0), follow, 1)
                t_s = trial.PERIOD_S * np.arange(len(found.force_N))
                axis.plot(t_s, found.force_N, color=color, lw=1.1, label=name)
            axis.plot(t_s, found.reference_N, color=REFERENCE, lw=0.8, ls="--", label="set point")
            axis.set_ylabel("force [N]")
            axis.margins(x=0.0, y=0.08)
        axes[0].set_title(f"{n} cells, one plant")
        axes[0].legend(frameon=False, ncols=5, loc="upper right", fontsize=8)
        axes[-1].set_xlabel("time [s]")
        mark_simulated(figure, axes[1])
    return figure


def _draw_errors(
    values: Values, judged: Judged, optimum: dict[tuple[int, str, int], float]
) -> Figure:
    with plot_style():
        figure = Figure(figsize=(9.0, 3.2 * len(values.cells)), layout="constrained")
        axes = np.atleast_1d(figure.subplots(len(values.cells), 1, sharex=True))
        width = 0.8 / len(values.dead_percent)
        shades = ("#0072B2", "#56B4E9", "#BBDDF2", "#DDEEF8")
        for axis, n in zip(axes, values.cells, strict=True):
            for i, dead in enumerate(values.dead_percent):
                errors = [np.array(judged[n, dead, name])[:, 0] for name in CONTROLLERS]
                at = np.arange(len(CONTROLLERS)) + (i - (len(values.dead_percent) - 1) / 2) * width
                axis.bar(at, [100 * e.mean() for e in errors], width,
                         yerr=[100 * e.std(ddof=1) for e in errors], color=shades[i % 4],
                         error_kw={"lw": 0.8, "ecolor": "0.3"},
                         label=f"{dead:g} % dead")  # fmt: skip
            best = 100 * np.mean([e for (m, _, _), e in optimum.items() if m == n])
            axis.axhline(best, color=REFERENCE, lw=1.0, ls="--", label="optimum, none dead")
            axis.set_title(f"{n} cells")
            axis.margins(y=0.25)
            axis.set_ylabel("RMS error [% of full force]")
            axis.set_xticks(range(len(CONTROLLERS)),
                            [name.replace(", ", ",\n") for name in CONTROLLERS])  # fmt: skip
        axes[0].legend(frameon=False, ncols=2, fontsize=8)
        mark_simulated(figure, axes[-1])
    return figure


def _draw_failures(failures: list[dict[str, Any]]) -> Figure:
    with plot_style():
        figure = Figure(figsize=(9.0, 3.6), layout="constrained")
        axes = figure.subplots(1, len(PLANTS), sharey=True)
        for axis, plant in zip(axes, PLANTS, strict=True):
            own = [f for f in failures if f["plant"] == plant]
            for f, color in zip(own, (MODEL, MEASURED, "#56B4E9"), strict=False):
                for key, style in (("delays_s", "-"), ("class_delays_s", "--")):
                    delays = np.sort(f[key])
                    seen = np.concatenate(([0.0], delays[np.isfinite(delays)], [WATCHED_S]))
                    share = np.concatenate((np.arange(len(seen) - 1), [len(seen) - 2])) / f["n"]
                    axis.step(seen, 100 * share, where="post", color=color, ls=style, lw=1.2,
                              label=f["controller"] if style == "-" else None)  # fmt: skip
            axis.axvline(3.0, color="0.75", lw=0.8)
            axis.set_title(plant, fontsize=8)
            axis.set_xlabel("time since the cell died [s]")
            axis.set_xlim(0.0, WATCHED_S)
        axes[0].set_ylabel("deaths found [%]")
        axes[0].set_ylim(0.0, 103.0)
        axes[0].legend(frameon=False, fontsize=8)
        mark_simulated(figure, axes[1])
    return figure


def _save(out: Path, name: str, figure: Figure, caption: str) -> dict[str, str]:
    figure.savefig(out / name, dpi=130)
    return {"file": name, "caption": caption}
