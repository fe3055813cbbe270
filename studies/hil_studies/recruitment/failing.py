"""`hil study recruitment-failures`: cells that break or weaken under the planner, named or not.

The campaign is `six/cells_that_fail.toml`. Of a run the first cell that fails counts, if none other
does within `WITHIN_S`. What a cell named before says of the rate of false alarms.
"""

import tomllib
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import xarray as xr
from pydantic import Field
from scipy.stats import binomtest, chi2

import hil
from hil.config.table import Table
from hil.experiment.load import load_rig
from hil.pages.study import as_table
from hil.systems.array.failures.isolation import FAILED, HEALTHY
from hil_studies.recruitment import study
from hil_studies.recruitment.study import WITHIN_S

SIX = study.FOLDER / "six"
KINDS = {"cells_break": "broken", "cells_weaken": "weak"}
PULLS = 0.2  # austenite by the resistance, from which a cell counts as one that pulls
COLD = 5  # readings of a cold wire, at the beginning
COLUMNS = ["plant", "set_point", "kind", "cell", "failed_s", "austenite", "suspected_after_s",
           "named_after_s", "others", "intact_s", "false_alarms"]  # fmt: skip


class Values(Table):
    """What `--set` may change: number of plants, each under two set points, and of processes.

    Without `stress` the branches of wires do not move with it.
    """

    seeds: Annotated[int, Field(ge=1, le=10_000)] = 12
    stress: bool = True
    workers: Annotated[int, Field(ge=1, le=256)] | None = None


def run(out: Path, values: Values) -> dict[str, Any]:
    """Run the campaign into the folder; the results, as written to results.json."""
    files = study.files_of(6, values.stress, out)
    tables = tomllib.loads((files / "cells_that_fail.toml").read_text(encoding="utf-8"))
    tables["campaign"] |= {"experiments": [str(files / "run.toml")], "plants": values.seeds}
    tables["commission"]["experiment"] = str(files / "pulses.toml")
    folder = out / "campaign"
    under = "6 cells under stress" if values.stress else "6 cells without stress"
    return results(folder, study.campaign_of(tables, folder, values.workers), under)


def results(folder: Path, trials: pd.DataFrame, title: str) -> dict[str, Any]:
    """The tables of a campaign's recordings."""
    rig = load_rig(SIX / "rig.toml")
    cells = {name: board.cells for name, board in rig.boards.items()}
    wire = rig.activation()[0].wire
    contrast = 1.0 - wire.austenite_Ohm_per_m / wire.martensite_Ohm_per_m
    rows = []
    for trial in trials.itertuples():
        run = hil.open_run(folder / str(trial.file))
        failing = [
            (when_s, KINDS[key], cells[board][n - 1])
            for key in KINDS
            for board, n, when_s in failures_of(str(getattr(trial, key, "")))
        ]
        rows.append([trial.plant, trial.set_point, *seen_in(run, sorted(failing), contrast)])
    seen = pd.DataFrame(rows, columns=COLUMNS)
    return study.made(
        "Recruitment: cells that fail",
        [],
        [named(seen, title), alarms(seen, title)],
        cells=study.plain_of(seen),
    )


def failures_of(text: str) -> list[tuple[str, int, float]]:
    """Board, number of the cell and time of every failure in a campaign's column."""
    words = [one.replace(":", "").split() for one in text.split(", ") if " s" in one]
    return [(board, int(n), float(when_s)) for board, n, when_s, _ in words]


def seen_in(
    run: xr.Dataset, failing: list[tuple[float, str, str]], contrast: float
) -> list[object]:
    """What a run shows of its first failure, in the order of `COLUMNS`."""
    t_s, failed = run.t_s.values, run.cells_failed.values
    end_s = failing[0][0] if failing else float(t_s[-1])
    false = int((failed[t_s < end_s] == FAILED).any(axis=0).sum())
    alone = failing and (len(failing) == 1 or failing[1][0] > end_s + WITHIN_S)
    if not alone or false or end_s + WITHIN_S > t_s[-1]:
        return ["", "", np.nan, np.nan, np.nan, np.nan, 0, end_s, false]
    _, kind, cell = failing[0]
    n = [str(name) for name in run.cell.values].index(cell)
    later = t_s >= end_s
    suspected_s = t_s[later & (failed[:, n] != HEALTHY)][:1]
    named_s = t_s[later & (failed[:, n] == FAILED)][:1]
    within = later & (t_s <= end_s + WITHIN_S)
    first = np.flatnonzero(within & (failed == FAILED).any(axis=1))[:1]
    others = int(len(first) > 0 and failed[first[0], n] != FAILED)
    ohm = run[f"{cell}.resistance_Ohm"].values
    read = np.isfinite(ohm)
    cold_Ohm = ohm[read][:COLD].mean()
    austenite = (1.0 - ohm[read & (t_s <= end_s)][-1] / cold_Ohm) / contrast
    after = [float(found_s[0]) - end_s if len(found_s) else np.inf
             for found_s in (suspected_s, named_s)]  # fmt: skip
    return [kind, cell, end_s, austenite, *after, others, end_s, false]


def named(seen: pd.DataFrame, title: str) -> dict[str, Any]:
    """The table of cells that failed, whether they pulled then or not."""
    rows = []
    for kind in KINDS.values():
        for which, of in (
            ("pulls", seen[(seen.kind == kind) & (seen.austenite >= PULLS)]),
            ("does not", seen[(seen.kind == kind) & (seen.austenite < PULLS)]),
        ):
            if not len(of):
                continue
            soon = of.named_after_s <= WITHIN_S
            low, high = binomtest(int(soon.sum()), len(of)).proportion_ci(method="wilson")
            rows.append([
                f"{kind}, {which}", f"{len(of)}",
                f"{100 * soon.mean():.0f} % ({100 * low:.0f} to {100 * high:.0f})",
                f"{of.named_after_s[soon].median():.2g} s" if soon.any() else "–",
                f"{100 * (of.suspected_after_s <= WITHIN_S).mean():.0f} %",
                f"{int(of.others.sum())}",
            ])  # fmt: skip
    return as_table(
        f"{title}: cells that fail (95 % interval; pulls: austenite above {PULLS:g})",
        ["", "cells", f"named within {WITHIN_S:g} s", "median", "suspected by then",
         "another was named"], rows,
    )  # fmt: skip


def alarms(seen: pd.DataFrame, title: str) -> dict[str, Any]:
    """The table of false alarms, with the exact interval of a Poisson rate."""
    n, hours = int(seen.false_alarms.sum()), float(seen.intact_s.sum()) / 3600.0
    low = chi2.ppf(0.025, 2 * n) / 2.0 if n else 0.0
    high = chi2.ppf(0.975, 2 * (n + 1)) / 2.0
    return as_table(
        f"{title}: cells named while all were intact",
        ["hours", "named", "an hour (95 % interval)"],
        [[f"{hours:.2f}", f"{n}", f"{n / hours:.1f} ({low / hours:.1f} to {high / hours:.1f})"]],
    )  # fmt: skip
