"""Checks a whole campaign before anything runs, and prepares its folder."""

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from hil.errors import ConfigError, is_utf8
from hil.record.append_log import HeldError
from hil.record.sink import check_disk
from hil.runs.assembly import build
from hil.runs.campaign import page
from hil.runs.campaign.operator import operator_for
from hil.runs.campaign.parallel import check_apart
from hil.runs.campaign.plan import ERRORS_SHOWN, Campaign, Combination, Trial, load_campaign
from hil.runs.campaign.runner import Options, Runner, Say
from hil.runs.campaign.stream import PARQUET
from hil.runs.campaign.tuning import Objective
from hil.runs.campaign.waits import check_columns
from hil.runs.campaign.worst import ranking_of
from hil.runs.figures import OF_RUNS, names_of
from hil.runs.plan import Plan
from hil.runs.rehearsal import rehearse, rehearse_plugins

JOBS_A_CORE = 8  # assumed: each takes 0.4 GB, and more than one a core saves no time
PROGRAM = Path("the program")
"""Names a campaign that is in no file, in messages; its experiments are relative to the folder."""


@dataclass(frozen=True)
class Launch:
    """A campaign that is ready to run, with its folder."""

    campaign: Campaign
    folder: Path
    runner: Runner

    def run(self) -> int:
        """Run what is left of it, and write its page and tables; returns the exit code."""
        try:
            code = self.runner.run()
        except HeldError:
            raise  # page and tables are those of the other process
        except BaseException:
            with suppress(ConfigError):  # the error that came first is the one to show
                page.write_all(self.folder)
            raise
        page.write_all(self.folder)
        return code


def launch(
    source: Path | Mapping[str, object],
    options: Options,
    *,
    out: Path | None = None,
    answers: Path | None = None,
    say: Say,
) -> Launch:
    """Check every trial of a campaign, and prepare its folder.

    Parameters
    ----------
    source : file of the campaign, or its tables
    out : folder of journal and recordings
    answers : TOML file of answers to the campaign's questions
    say : receives a line of text for the operator

    Raises
    ------
    ConfigError
        The campaign cannot run to its end. Nothing was energised, and no journal was written.
    """
    path, contents = (source, None) if isinstance(source, Path) else (PROGRAM, source)
    for name in (path, out or path):
        if not is_utf8(str(name)):
            raise ConfigError(f"{name}: not a UTF-8 name, which page and tables need: rename it")
    campaign, clock = load_campaign(path, contents), options.clock
    tables, rehearsal = campaign.tables, options.rehearsal
    if rehearsal and (options.backend != "sim" or clock == "real"):
        raise ConfigError("--rehearse: uses the simulated rig and the virtual clock: leave "
        "--backend and --clock out")  # fmt: skip
    if options.jobs is not None and options.scheduler is not None:
        raise ConfigError("--jobs: a cluster has its own number of workers: leave it out")
    _check_jobs(options.jobs)
    on_bench = False
    for config in campaign.configs.values():
        plan = Plan(config, options.backend, clock or "", strict=options.strict)
        on_bench, clock = on_bench or plan.on_bench, plan.clock
    need_rows, row_B = _check_rows(campaign)
    options = replace(
        options,
        clock=clock,
        carries_on=rehearsal or tables.wait is not None,
        apart=_may_run_parallel(campaign, replace(options, clock=clock)),
    )
    operator = operator_for(path, tables, answers, rehearsal)
    _rehearse_all(campaign, on_bench)
    folder = _make_folder(out or _default_folder(campaign, rehearsal))
    left_MB = max(c.tables.guard.disk_free_min_MB for c in campaign.configs.values())
    check_disk(folder / "trials", need_rows, row_B, left_MB)
    return Launch(campaign, folder, Runner(campaign, folder, options, operator, say))


def _check_jobs(jobs: int | None) -> None:
    """Refuse no process, and so many that the memory of a usual computer cannot hold them."""
    most = JOBS_A_CORE * (os.cpu_count() or 1)
    if jobs is not None and jobs < 1:
        raise ConfigError(f"--jobs {jobs}: give 1 or more")
    if jobs is not None and jobs > most:
        raise ConfigError(f"--jobs {jobs}: give {most} or fewer, {JOBS_A_CORE} a core")


def _first(campaign: Campaign) -> dict[Combination, Trial]:
    """The first trial of every combination, in order."""
    trials: dict[Combination, Trial] = {}
    for trial in campaign.trials:
        trials.setdefault(trial.combination, trial)
    return trials


def _check_rows(campaign: Campaign) -> tuple[int, int]:
    """Number of rows of all trials and size of the largest row; ConfigError for unknown columns."""
    wrong: list[str] = []
    row_B, tune = 0, campaign.tables.tune
    objective = None if tune is None else Objective(str(campaign.path), tune)
    ranking = ranking_of(campaign.path, campaign.tables)
    for combination, trial in _first(campaign).items():
        config, where = campaign.configs[combination], f"{campaign.path}: trial {trial.number}"
        frame = build(Plan(config)).frame
        row_B = max(row_B, frame.dtype.itemsize)
        wrong += check_columns(where, campaign.tables, config, frame.columns)
        columns = [column.name for column in frame.columns]
        wrong += _taken_names(campaign, {*names_of(columns, ()), *OF_RUNS})
        names = names_of(columns, campaign.tables.measures)
        names = [*names, *campaign.tables.weights(trial.levels)]
        if objective is not None:
            objective.check(names)
        if ranking is not None:
            ranking.check(names, answers=False)
    if wrong:
        raise ConfigError("\n".join([*dict.fromkeys(wrong)][:ERRORS_SHOWN]))
    head, n_rows = campaign.tables.campaign, 0
    if head.keep == "all":
        n_rows = sum(campaign.configs[t.combination].n_ticks for t in campaign.trials)
    elif head.n_worst:
        n_rows = head.n_worst * sum(config.n_ticks for config in campaign.configs.values())
    return n_rows, row_B


def _taken_names(campaign: Campaign, figures: set[str]) -> list[str]:
    """Errors of names whose column in the table of all trials would be that of a figure."""
    tables = campaign.tables
    names = [f"factors.{name}" for name in tables.factors]
    names += [f"questions.{name}" for name, one in tables.questions.items() if one.when == "trial"]
    return [
        f"{campaign.path}: {name}: a figure of every trial has this name: change it"
        for name in names
        if name.partition(".")[2] in figures
    ]


def _rehearse_all(campaign: Campaign, on_bench: bool) -> None:
    """Rehearse every combination that is on a bench or has plug-in code."""
    for combination, trial in _first(campaign).items():
        config = campaign.configs[combination]
        try:
            rehearse_plugins(config, trial.seed)
            if on_bench:
                rehearse(config, trial.seed)
        except ConfigError as error:
            raise ConfigError(f"{campaign.path}: trial {trial.number}: {error}") from None


def _may_run_parallel(campaign: Campaign, options: Options) -> bool:
    """Whether the trials may run in parallel; ConfigError if not and something needs that."""
    path, tables = campaign.path, campaign.tables
    if tables.in_memory:
        needs = "[tune]" if tables.tune else "[spread]" if tables.spread else "campaign.keep"
        check_apart(path, tables, options.backend, options.clock, needs)
        return not options.rehearsal
    if options.rehearsal and options.scheduler is None:
        return False
    try:
        check_apart(path, tables, options.backend, options.clock)
    except ConfigError:
        if options.scheduler is not None:
            raise
        return False
    return True


def _make_folder(folder: Path) -> Path:
    for path in (folder, folder / "trials", folder / PARQUET):
        if path.exists() and not path.is_dir():
            raise ConfigError(f"{path}: not a folder: choose another --out")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"{folder}: cannot be made ({error.strerror}): choose another --out"
        ) from None
    return folder


def _default_folder(campaign: Campaign, rehearsal: bool) -> Path:
    path = campaign.path
    if rehearsal:
        return Path("runs") / f"rehearsal-{path.stem}-{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}"
    if path == PROGRAM:  # a change of its tables begins another one
        name = re.sub(r"\W+", "-", campaign.tables.campaign.name)
        return Path("runs") / f"campaign-{name}-{campaign.fingerprint()[:8]}"
    return Path("runs") / f"campaign-{path.stem}"
