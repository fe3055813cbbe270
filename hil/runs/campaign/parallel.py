"""Runs independent simulated trials in parallel with Dask; the order does not change a figure."""

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from functools import partial
from math import inf, isfinite
from pathlib import Path
from typing import Any, NamedTuple, Self

from hil.errors import ConfigError, one_line
from hil.experiment.load import load
from hil.experiment.loaded import Experiment
from hil.platform.parallel import Scheduler, through_dask, workers
from hil.runs import session
from hil.runs.campaign.figures import figures_in, figures_of
from hil.runs.campaign.plan import Campaign, Trial
from hil.runs.campaign.tables import CampaignTables
from hil.runs.plan import Plan
from hil.runs.recording import Output
from hil.runs.simulate import simulate

START_S = 12.0
"""Time until new processes have loaded all code; they must save more than that."""


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
    """A trial for a process that knows nothing of its campaign: what `run_apart` needs.

    Attributes
    ----------
    out : file for its recording; empty if it keeps none in any case
    """

    number: int
    experiment: str
    sets: list[str]
    seed: int
    out: str = ""
    attributes: Mapping[str, str] = {}


def work_of(campaign: Campaign, trial: Trial, number: int) -> Work:
    """A trial of a campaign as work, without a recording."""
    experiment = str((campaign.path.parent / trial.experiment).resolve())
    return Work(number, experiment, campaign.sets(trial), trial.seed)


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
        keep, result = tables.campaign.keep if work.out else "none", {}
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


class Workers:
    """Runs trials one after the other, and on all cores from the second on where that pays.

    A context manager; the processes that it starts serve until its end.

    Parameters
    ----------
    strict : refuse doubtful calibrations
    scheduler : a Dask cluster, which is used from the first trial on
    jobs : number of processes; None for one a core
    """

    def __init__(
        self,
        tables: CampaignTables,
        *,
        strict: bool = False,
        scheduler: Scheduler | None = None,
        jobs: int | None = None,
    ) -> None:
        self._one = partial(run_apart, tables=tables, strict=strict)
        self._scheduler = scheduler
        self._n = jobs or os.cpu_count() or 1
        self._least_s, self._n_run = inf, 0
        self._stack = ExitStack()
        self._client: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def run(self, works: Sequence[Work], later: int = 0) -> Iterator[tuple[Work, dict[str, Any]]]:
        """Yield each trial with the result of `run_apart`, in order of completion.

        Parameters
        ----------
        later : number of trials that are sure to be asked for after these
        """
        left = list(works)
        while left and not self._parallel(len(left) + later):
            work = left.pop(0)
            result = self._one(work)
            if self._n_run:  # the first one loads and compiles
                self._least_s = min(self._least_s, result["took_s"])
            self._n_run += 1
            yield work, result
        if left:
            if self._client is None:
                self._client = self._stack.enter_context(workers(self._scheduler, self._n))
            finished = through_dask([(work,) for work in left], self._one, self._client)
            with closing(finished):
                for (work,), result in finished:
                    yield work, result

    def _parallel(self, n_left: int) -> bool:
        if self._client is not None or self._scheduler is not None:
            return True
        saved_s = n_left * self._least_s * (1.0 - 1.0 / self._n)
        return isfinite(self._least_s) and saved_s > START_S
