"""The part of the recruitment study in which a cell that is on dies: when is it named?

Force alone is looked at, by `WireFailures` on the wires as they were commissioned, on another day;
the rules' standard deviations are up to twice those of the greatest likelihood on healthy tuning
plants: tighter ones name cells sooner, and wrong ones. While a failure is certain and the cell is
not, `Diagnosis` may switch suspects one by one. Moments of death are spread over the set point's
period.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from hil.control.diagnosis import Diagnosis
from hil.models.wire_failures import WireRules
from hil.studies import recruitment_trial as trial
from hil.studies.recruitment_commission import met
from hil.studies.recruitment_controllers import Setting, control_of
from hil.studies.recruitment_plant import PERIOD_S, nominal, reference

if TYPE_CHECKING:
    from hil.studies.recruitment import Values

RULES = WireRules()
FAILURE_CONTROLLERS = ("size principle", "optimal", "broadcast, LMS")
FIRST_S, SPREAD_S, WATCHED_S = 20.0, 10.0, 10.0
HEALTHY_S = 120.0
SEED = 10_000
WITHIN_S = 3.0
CELLS_MAX = 14  # with 100 cells no death is named in time
N_WAYS = 5  # to look at each array: controllers, and suspects switched or not

Job = tuple[int, str, Setting, int, bool, bool]
Each = Callable[..., Iterable[Any]]


def failures(
    values: "Values", tuned: dict[tuple[int, str], Setting], each: Each
) -> list[dict[str, Any]]:
    """A row for every array, controller, and way to look."""
    rows = []
    for n in (n for n in values.cells if n <= CELLS_MAX):
        for name in FAILURE_CONTROLLERS:
            # a broadcast names no cell: its suspects cannot be switched
            for swaps in (False,) if name.startswith("broadcast") else (False, True):
                n_deaths = values.failure_seeds
                jobs = [(n, name, tuned[n, name], SEED + i, swaps, True) for i in range(n_deaths)]
                n_healthy = max(1, round(3600.0 * values.healthy_hours / HEALTHY_S / N_WAYS))
                jobs += [(n, name, tuned[n, name], SEED + 1000 + i, swaps, False)
                         for i in range(n_healthy)]  # fmt: skip
                found = list(each("failures", one, jobs))
                rows.append({
                    "n_cells": n,
                    "controller": name,
                    "swaps": swaps,
                    "n": n_deaths,
                    "delays_s": [f[0] for f in found[:n_deaths]],
                    "wrong": sum(f[1] for f in found[:n_deaths]),
                    "false_alarms": sum(f[2] for f in found),
                    "hours": sum(f[3] for f in found) / 3600.0,
                    "largest_log_odds": max(f[4] for f in found),
                    "threshold": found[0][5],
                })  # fmt: skip
    return rows


def one(job: Job) -> tuple[float, int, int, float, float, float]:
    """Seconds until the cell that died is named (infinity: not within WATCHED_S); other cells named
    after it died; cells named while all were healthy, and for how many seconds they were; largest
    log odds meanwhile; the threshold.
    """
    n, name, setting, seed, swaps, dies = job
    truth, know = met(n, seed)
    follow = reference("sine", nominal(n).total_N)
    dies_s = FIRST_S + SPREAD_S * (0.37 * seed % 1.0) if dies else HEALTHY_S
    tests = trial.wire_failures(know, RULES)
    found = trial.run(
        know, control_of(know, name, setting, follow, seed), truth, follow, seed,
        duration_s=dies_s + (WATCHED_S if dies else 0.0), tests=tests, dies_s=dies_s,
        diagnosis=Diagnosis(know.shares_N) if swaps else None,
    )  # fmt: skip
    named = np.inf
    wrong = false = 0
    for t_s, cells in found.found:
        if t_s < dies_s:
            false += 1
        elif cells == (found.killed,):
            named = min(named, t_s - dies_s)
        else:
            wrong += 1
    highest = float(found.log_odds[: round(dies_s / PERIOD_S)].max())
    return float(named), wrong, false, dies_s, highest, tests.threshold
