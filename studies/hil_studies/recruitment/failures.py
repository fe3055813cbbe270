"""The failures part of the recruitment study: how soon is a cell found that fails while on?

`WireFailures` uses only the force, with the wires as commissioned, on another day. A cell dies (no
longer heated) or breaks (carries no load). While a failure is certain but the cell is not,
`Diagnosis` can switch suspects one by one. Failure times are distributed over the period of the
set point. The rules were chosen on plants 50 000 to 50 139; the evaluation uses other plants.
"""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from hil.systems.array.failures.wire_failures import WireRules
from hil.systems.array.recruitment.diagnosis import Diagnosis
from hil_studies.recruitment import trial
from hil_studies.recruitment.commission import commissioned_plant
from hil_studies.recruitment.controllers import Setting, control_of, law_known, names_of
from hil_studies.recruitment.plant import PERIOD_S, WireLaw, nominal, reference
from hil_studies.recruitment.values import Values

RULES = WireRules()
FAILURE_CONTROLLERS = ("size principle", "optimal", "broadcast, LMS")
FIRST_S, SPREAD_S, WATCHED_S = 20.0, 10.0, 10.0
HEALTHY_S = 600.0
SEED = 70_000
WITHIN_S = 3.0
CELLS_MAX = 14  # with 100 cells no dead cell is found in time
HEALTHY, DIES, BREAKS = "healthy", "dies", "breaks"

Job = tuple[int, str, Setting, int, bool, str, WireLaw]
Each = Callable[..., Iterable[Any]]


def failures(
    values: "Values", tuned: dict[tuple[int, str], Setting], each: Each
) -> list[dict[str, Any]]:
    """Return a row for every array, controller, diagnosis setting and kind of failure."""
    able = [name for name in FAILURE_CONTROLLERS if name in values.controllers]
    return (
        []
        if not values.failure_seeds
        else [
            _row(values, n, name, tuned[n, name], swaps, how, each)
            for n in values.cells
            if n <= CELLS_MAX
            for name in names_of(values.plant, able)
            for swaps, how in _ways(name)
        ]
    )


def _ways(name: str) -> list[tuple[bool, str]]:
    """Return pairs: whether suspects are switched, and the kind of failure."""
    if name.startswith("broadcast"):  # has no addresses: suspects cannot be switched
        return [(False, DIES), (False, BREAKS)]
    return [(False, DIES), (True, DIES), (True, BREAKS)]


def _row(
    values: "Values", n: int, name: str, setting: Setting, swaps: bool, how: str, each: Each
) -> dict[str, Any]:
    law = values.plant
    jobs = [(n, name, setting, SEED + i, swaps, how, law) for i in range(values.failure_seeds)]
    if how == DIES and (swaps or name.startswith("broadcast")):
        n_healthy = max(1, round(3600.0 * values.healthy_hours / HEALTHY_S))
        jobs += [
            (n, name, setting, SEED + 10_000 + i, swaps, HEALTHY, law) for i in range(n_healthy)
        ]
    found = list(each("failures", one, jobs))
    failed = found[: values.failure_seeds]
    return {
        "n_cells": n,
        "controller": name,
        "swaps": swaps,
        "fails": how,
        "n": len(failed),
        "delays_s": [f[0] for f in failed],
        "wrong": sum(f[1] for f in failed),
        "false_alarms": sum(f[2] for f in found),
        "hours": sum(f[3] for f in found) / 3600.0,
        "largest_log_odds": max(f[4] for f in found),
        "threshold": found[0][5],
    }


def one(job: Job) -> tuple[float, int, int, float, float, float]:
    """Return the figures of one failure trial.

    These are: seconds until the failed cell is named, alone or with cells whose failure the force
    cannot distinguish (infinity: not within WATCHED_S); other cells named after the failure; cells
    named while all were healthy, and the duration of that time; the largest log odds in it; the
    threshold.
    """
    n, name, setting, seed, swaps, how, law = job
    truth, know = commissioned_plant(n, seed, law, law_known(law, name))
    follow = reference("sine", nominal(n).total_N)
    fails_s = HEALTHY_S if how == HEALTHY else FIRST_S + SPREAD_S * (0.37 * seed % 1.0)
    tests = trial.wire_failures(know, RULES)
    found = trial.run(
        know, control_of(know, name, setting, follow, seed), truth, follow, seed,
        duration_s=fails_s + (0.0 if how == HEALTHY else WATCHED_S), tests=tests,
        fails_s=fails_s, breaks=how == BREAKS,
        diagnosis=Diagnosis(know.static_gains_N) if swaps else None,
    )  # fmt: skip
    named = np.inf
    wrong = false = 0
    for t_s, cells in found.found:
        if t_s < fails_s:
            false += 1
        elif found.failed in cells:
            named = min(named, t_s - fails_s)
        else:
            wrong += 1
    highest = float(found.log_odds[: round(fails_s / PERIOD_S)].max())
    return float(named), wrong, false, fails_s, highest, tests.threshold
