"""Runs independent simulated trials in parallel with Dask; the order does not change a figure."""

import json
import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from hil.errors import ConfigError, one_line
from hil.experiment.load import load
from hil.experiment.loaded import Experiment
from hil.platform.parallel import Scheduler, through_dask
from hil.runs import session
from hil.runs.campaign.figures import figures_in, figures_of
from hil.runs.campaign.plan import Campaign, Trial
from hil.runs.campaign.tables import CampaignTables
from hil.runs.plan import Plan
from hil.runs.recording import Output
from hil.runs.simulate import simulate

FROM_TRIALS = 20
"""More trials than this run in parallel by default; starting the processes takes some seconds."""


def check_apart(
    path: Path, tables: CampaignTables, backend: str, clock: str | None, asked: str = "--scheduler"
) -> None:
    """Refuse a campaign whose trials depend on each other, though what is `asked` needs that.

    Raises
    ------
    ConfigError
        The message has the key that makes them dependent.
    """
    ties = {
        f"--backend {backend}": backend != "sim",
        "--clock real": clock == "real",
        "wait": tables.wait is not None,
        "preconditions": bool(tables.preconditions),
        "after_trip.do = 'ask'": tables.after_trip.do == "ask",
    }
    ties |= {f"questions.{n}": q.when == "trial" for n, q in tables.questions.items()}
    ties |= {f"factors.{n}.tell": f.tell is not None for n, f in tables.factors.items()}
    for key, tied in ties.items():
        if tied:
            raise ConfigError(
                f"{path}: {key}: its trials come one after the other: leave {asked} out"
            )


class Work(NamedTuple):
    """A trial for a process that knows nothing of its campaign: what `run_apart` needs."""

    number: int
    experiment: str
    sets: list[str]
    seed: int
    out: str
    attributes: dict[str, str]


def run_apart(work: Work, tables: CampaignTables, strict: bool) -> dict[str, Any]:
    """Run one trial on a rig of its own, in any process; returns the keys of its journal line.

    A trial whose recording does not stay runs in memory. One that trips there runs again, into a
    file, if those stay.
    """
    began_s = time.monotonic()
    facts: dict[str, Any] = {}
    try:
        config = load(work.experiment, work.sets)
        facts["duration_s"] = config.tables.experiment.duration_s
        plan = Plan(config, clock="virtual", seed=work.seed, strict=strict)
        keep, result = tables.campaign.keep, {}
        if keep != "all":
            result = _in_memory(config, work.seed, tables)
        if keep == "all" or (keep == "tripped" and result["outcome"] == "tripped"):
            output = Output(work.out, force=True, attributes=work.attributes)
            result = _recorded(plan, output, tables)
    except Exception as error:  # any failure goes into the journal
        text = one_line(str(error)) or type(error).__name__
        return {**facts, "outcome": "failed", "error": text, "took_s": time.monotonic() - began_s}
    return {**facts, **result, "took_s": time.monotonic() - began_s}


def _in_memory(config: Experiment, seed: int, tables: CampaignTables) -> dict[str, Any]:
    run = simulate(config, seed)
    summary = json.loads(run.attrs["summary"])
    columns = {m.column: run[m.column].values for m in tables.measures.values()}
    figures = figures_in(columns | {"t_s": run.t_s.values}, summary, tables.measures)
    return {
        "outcome": run.attrs["outcome"], "faults": summary["first_fault"],
        "error": summary["error"], "figures": figures, "file": "",
    }  # fmt: skip


def _recorded(plan: Plan, output: Output, tables: CampaignTables) -> dict[str, Any]:
    result = session.run(plan, output)
    return {
        "outcome": result.outcome, "faults": result.summary["first_fault"],
        "error": result.summary["error"],
        "figures": figures_of(result.path, result.summary, tables.measures),
    }  # fmt: skip


def run_each(
    campaign: Campaign,
    trials: list[tuple[Trial, Path, dict[str, str]]],
    strict: bool,
    scheduler: Scheduler | None,
    in_series: bool,
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number of each trial with the result of `run_apart`, in order of completion."""
    items = [
        (
            Work(
                trial.number, str((campaign.path.parent / trial.experiment).resolve()),
                campaign.sets(trial), trial.seed, str(out.resolve()), attributes,
            ),
        )
        for trial, out, attributes in trials
    ]  # fmt: skip
    run = partial(run_apart, tables=campaign.tables, strict=strict)
    if in_series:
        yield from ((work.number, run(work)) for (work,) in items)
        return
    with closing(through_dask(items, run, scheduler)) as finished:
        for (work,), result in finished:
            yield work.number, result
