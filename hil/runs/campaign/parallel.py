"""Runs independent simulated trials in parallel with Dask; the order does not change a figure."""

import os
import platform
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Self

from hil.config.values import Figures
from hil.devices.injection import Injection
from hil.devices.injection_tables import FaultTable
from hil.errors import ConfigError, DeviceError, one_line
from hil.experiment.load import load
from hil.platform.parallel import (
    Pace,
    Scheduler,
    refuse_other,
    refuse_others,
    through_dask,
    workers,
)
from hil.platform.provenance import numerics
from hil.platform.whole_files import write_whole
from hil.record.append_log import Entry
from hil.runs import session
from hil.runs.campaign.bundle import Bundle, bundle_of, unpacked
from hil.runs.campaign.commission import commissioned, known_of
from hil.runs.campaign.journal import ends_alike
from hil.runs.campaign.plan import Campaign, Trial, as_sets
from hil.runs.campaign.plants import in_tables
from hil.runs.campaign.tables import CampaignTables, CommissionTable
from hil.runs.figures import columns_of, figures_in, figures_of
from hil.runs.plan import Plan
from hil.runs.recording import Output
from hil.runs.simulate import simulated

BATCH = 8  # trials at most that go to a worker, and are lost with it, at once
BATCHES = 4  # for each worker at least, so that none waits long for the last
BATCH_S = 1.0  # that a batch takes, for the same reason


def check_apart(
    path: Path, tables: CampaignTables, backend: str, clock: str | None, option: str = "--scheduler"
) -> None:
    """Refuse a campaign whose trials depend on each other, though `option` runs them apart.

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
                f"{path}: {key}: its trials come one after the other: leave {option} out"
            )


Run = Callable[["Work"], Figures]


class Work(NamedTuple):
    """A trial for a process that knows nothing of its campaign: what `run_apart` needs.

    Attributes
    ----------
    keep : its recording stays: `all`, if it `tripped`, `none`
    out : file for its recording
    commissions : whether it fits the model of its plant instead
    faults : are injected into the rig
    """

    number: int
    experiment: str
    sets: list[str]
    seed: int
    keep: str = "none"
    out: str = ""
    attributes: Mapping[str, str] = {}
    commissions: bool = False
    faults: Sequence[FaultTable] = ()


def work_of(campaign: Campaign, trial: Trial, number: int) -> Work:
    """A trial of a campaign as work, without a recording."""
    experiment = os.path.abspath(campaign.path.parent / trial.experiment)
    faults = campaign.faults(trial)
    return Work(number, experiment, campaign.sets(trial), trial.seed, faults=faults)


def commissioning_of(campaign: Campaign, trial: Trial, table: CommissionTable) -> Work:
    """The commissioning of a trial's plant as work."""
    experiment = os.path.abspath(campaign.path.parent / table.experiment)
    assert campaign.commission is not None
    sets = as_sets(in_tables(campaign.drawn(trial), campaign.commission))
    return Work(trial.plant, experiment, sets, trial.seed, commissions=True)


def known_for(
    campaign: Campaign, trial: Trial, entries: Sequence[Entry]
) -> dict[int, Mapping[str, object]]:
    """What is known of a trial's plant, from a journal, or from its commissioning now.

    Raises
    ------
    ConfigError
        The plant cannot be commissioned.
    """
    table = campaign.tables.commission
    known = known_of(entries)
    if table is None or trial.plant in known:
        return known
    [mine] = [one for one in campaign.commissioning() if one.plant == trial.plant]
    result = commissioned(commissioning_of(campaign, mine, table), table)
    if result["outcome"] == "failed":
        raise ConfigError(f"{campaign.path}: plant {trial.plant}: {result['error']}")
    return {trial.plant: result["known"]}


def run_apart(work: Work, tables: CampaignTables, strict: bool) -> Figures:
    """Run one trial on a rig of its own, in any process; returns the keys of its journal line.

    Of one with a recording also its `name`, another one if that of `work.out` was taken meanwhile.

    A trial whose recording does not stay runs in memory. One that trips there runs again, into a
    file, if those stay. One whose controller is refused, knowing this plant, does not run.
    """
    began_s = time.monotonic()
    facts: Figures = {}
    try:
        if work.commissions and tables.commission is not None:
            return commissioned(work, tables.commission) | {"took_s": time.monotonic() - began_s}
        try:
            config = load(work.experiment, work.sets)
        except ConfigError as error:
            return {
                "outcome": "refused",
                "faults": [],
                "error": one_line(str(error)),
                "took_s": 0.0,
            }
        facts["duration_s"] = config.tables.experiment.duration_s
        injection = Injection(work.faults) if work.faults else None
        plan = Plan(config, clock="virtual", seed=work.seed, injection=injection, strict=strict)
        result = {} if work.keep == "all" else _in_memory(plan, tables)
        if work.keep == "all" or (work.keep == "tripped" and result["outcome"] == "tripped"):
            output = Output(work.out, force=True, attributes=work.attributes)
            again = replace(plan, injection=Injection(work.faults) if work.faults else None)
            recorded = _recorded(again, output, tables)
            if result and not ends_alike(recorded, result):
                why = recorded["error"] or ", ".join(recorded["faults"]) or recorded["outcome"]
                raise DeviceError(f"its recording failed: {why}")
            result = recorded
    except Exception as error:  # any failure goes into the journal
        text = one_line(str(error)) or type(error).__name__
        return {**facts, "outcome": "failed", "error": text, "took_s": time.monotonic() - began_s}
    return {**facts, **result, "took_s": time.monotonic() - began_s}


def _in_memory(plan: Plan, tables: CampaignTables) -> Figures:
    outcome, summary, columns = simulated(plan, columns_of(tables.measures))
    figures = figures_in(columns, summary, tables.measures)
    return {
        "outcome": outcome, "faults": summary["first_fault"],
        "error": summary["error"], "figures": figures, "file": "",
    }  # fmt: skip


def _recorded(plan: Plan, output: Output, tables: CampaignTables) -> Figures:
    result = session.run(plan, output)
    result.stop.pass_on()
    return {
        "outcome": result.outcome, "faults": result.summary["first_fault"],
        "error": result.summary["error"],
        "figures": figures_of(result.path, result.summary, tables.measures),
        "name": result.path.name,
    }  # fmt: skip


def run_batch(
    works: Sequence[Work], bundle: Bundle, versions: Mapping[str, str], run: Run
) -> list[Figures]:
    """Run trials on a computer that shares no folder with that of the campaign.

    Recordings that stay are among the results, as `recording`.

    Parameters
    ----------
    versions : of the campaign's computer
    run : `run_apart` with all but the work

    Raises
    ------
    ConfigError
        This computer has other versions.
    """
    refuse_other(numerics(), versions, f"worker {platform.node()}")
    folder, results = unpacked(bundle), []
    for work in works:
        experiment = folder / Path(work.experiment).relative_to(bundle.root)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            out = Path(scratch) / "trial.h5"
            result = run(work._replace(experiment=str(experiment), out=str(out)))
            kept = out.with_name(result.pop("name", out.name))
            if kept.is_file():
                result["recording"] = kept.read_bytes()
            results.append(result)
    return results


def run_here(works: Sequence[Work], run: Run) -> list[Figures]:
    """Run trials on the computer of the campaign, in another process."""
    return [run(work) for work in works]


class Workers:
    """Runs trials one after the other, and on all cores from where on that pays.

    A context manager; the processes that it starts serve until its end.

    Parameters
    ----------
    pace : of trials that have been run
    strict : refuse doubtful calibrations
    scheduler : a Dask cluster, which is used from the first trial on
    """

    def __init__(
        self,
        campaign: Campaign,
        pace: Pace,
        *,
        strict: bool = False,
        scheduler: Scheduler | None = None,
    ) -> None:
        self._one = partial(run_apart, tables=campaign.tables, strict=strict)
        self._campaign, self._pace, self._scheduler = campaign, pace, scheduler
        self._stack = ExitStack()
        self._client: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def run(self, works: Sequence[Work], later: int = 0) -> Iterator[tuple[Work, Figures]]:
        """Yield each trial with the result of `run_apart`, in order of completion.

        Parameters
        ----------
        later : number of trials that are sure to be asked for after these

        Raises
        ------
        ConfigError
            A file that they read has changed.
        """
        left = list(works)
        while left and not self._parallel(len(left) + later):
            work = left.pop(0)
            result = self._one(work)
            self._pace.note(result["took_s"])
            self._campaign.refuse_changed_files()
            yield work, result
        if left:
            yield from self._through_dask(left)

    def _through_dask(self, works: list[Work]) -> Iterator[tuple[Work, Figures]]:
        if self._client is None:
            self._client = self._stack.enter_context(workers(self._scheduler, self._pace.jobs))
            self._batch: Callable[[Sequence[Work]], list[Figures]]
            self._batch = partial(run_here, run=self._one)
            if self._scheduler is not None:
                refuse_others(self._client)
                self._campaign.refuse_changed_files()  # from here on workers have them as they are
                commission = self._campaign.commission
                more = () if commission is None else (commission,)
                bundle = bundle_of([*self._campaign.configs.values(), *more])
                self._batch = partial(run_batch, bundle=bundle, versions=numerics(), run=self._one)
        n_workers = max(1, len(self._client.scheduler_info()["workers"]))
        each = -(-len(works) // (BATCHES * n_workers))
        size = int(min(BATCH, each, self._pace.pieces_in(BATCH_S)))
        batches = [(tuple(works[i : i + size]),) for i in range(0, len(works), size)]
        with closing(through_dask(batches, self._batch, self._client)) as finished:
            for (batch,), results in finished:
                if self._scheduler is None:
                    self._campaign.refuse_changed_files()
                for work, result in zip(batch, results, strict=True):
                    if (recording := result.pop("recording", None)) is not None:
                        Path(work.out).parent.mkdir(parents=True, exist_ok=True)
                        write_whole(Path(work.out), recording)
                    yield work, result

    def _parallel(self, n_left: int) -> bool:
        if self._client is not None or self._scheduler is not None:
            return True
        return self._pace.pays(n_left)
