"""Runs independent simulated trials in parallel with Dask; the order does not change a figure."""

import time
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from hil.errors import ConfigError, one_line
from hil.experiment.load import load
from hil.platform.parallel import Scheduler, through_dask
from hil.runs import session
from hil.runs.campaign.figures import figures_of
from hil.runs.campaign.plan import Campaign, Trial
from hil.runs.campaign.tables import CampaignTables
from hil.runs.plan import Plan
from hil.runs.recording import Output

FROM_TRIALS = 200
"""More trials than this run in parallel by default, because in series they take minutes."""


def check_apart(path: Path, tables: CampaignTables, backend: str, clock: str | None) -> None:
    """Refuse a campaign whose trials depend on each other.

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
                f"{path}: {key}: its trials come one after the other: leave --scheduler out"
            )


def run_apart(
    number: int,
    experiment: str,
    sets: list[str],
    seed: int,
    out: str,
    attributes: dict[str, str],
    tables: CampaignTables,
    strict: bool,
) -> dict[str, Any]:
    """Run one trial on a rig of its own, in any process; returns the keys of its journal line."""
    config = load(experiment, sets)
    began_s = time.monotonic()
    facts: dict[str, Any] = {"duration_s": config.tables.experiment.duration_s}
    try:
        result = session.run(
            Plan(config, clock="virtual", seed=seed, strict=strict),
            Output(out, force=True, attributes=attributes),
        )
    except Exception as error:  # any failure goes into the journal
        text = one_line(str(error)) or type(error).__name__
        return {**facts, "outcome": "failed", "error": text, "took_s": time.monotonic() - began_s}
    return {
        **facts,
        "outcome": result.outcome,
        "faults": result.summary["first_fault"],
        "error": result.summary["error"],
        "took_s": time.monotonic() - began_s,
        "figures": figures_of(result.path, result.summary, tables.measures),
    }


def run_parallel(
    campaign: Campaign,
    trials: list[tuple[Trial, Path, dict[str, str]]],
    scheduler: Scheduler | None,
    strict: bool,
) -> Any:
    """Yield the number of each trial with the result of `run_apart`, in order of completion."""
    items = [
        (
            trial.number, str((campaign.path.parent / trial.experiment).resolve()),
            campaign.sets(trial), trial.seed, str(out.resolve()), attributes,
        )
        for trial, out, attributes in trials
    ]  # fmt: skip
    work = partial(run_apart, tables=campaign.tables, strict=strict)
    with closing(through_dask(items, work, scheduler)) as finished:
        for item, result in finished:
            yield item[0], result
