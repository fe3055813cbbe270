"""A campaign from its file to its folder: everything is looked at before anything is run."""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from hil.errors import ConfigError
from hil.record.sink import check_disk
from hil.runs.assembly import build, rehearse, rehearse_plugins
from hil.runs.campaign.journal import JOURNAL
from hil.runs.campaign.operator import operator_for
from hil.runs.campaign.parallel import check_apart
from hil.runs.campaign.plan import WRONG_SAID, Campaign, Combination, Trial, load_campaign
from hil.runs.campaign.runner import Options, Runner, Say
from hil.runs.campaign.waits import check_columns
from hil.runs.session import status_now, where_it_runs


@dataclass(frozen=True)
class Launch:
    """A campaign that can be run, and where."""

    campaign: Campaign
    folder: Path
    runner: Runner


def launch(
    path: Path,
    *,
    out: Path | None,
    backend: str,
    clock: str | None,
    rehearsal: bool,
    answers: Path | None,
    scheduler: str | None,
    strict: bool,
    progress: bool,
    say: Say,
) -> Launch:
    """Look at every trial of a campaign, and make it ready to run.

    Raises
    ------
    ConfigError
        It cannot be run to its end; nothing was energised, and no journal begun.
    """
    campaign = load_campaign(path)
    tables = campaign.tables
    if rehearsal and (backend != "sim" or clock == "real"):
        raise ConfigError("--rehearse: is on the simulated rig and the virtual clock: leave "
                          "--backend and --clock out")  # fmt: skip
    on_bench = False
    for config in campaign.configs.values():
        backends, clock = where_it_runs(config, backend, clock)
        on_bench = on_bench or "bench" in backends.values()
        status_now(config, backends, strict=strict)
    need_rows, row_B = _look_at_rows(campaign)
    apart = _apart(campaign, backend, clock, rehearsal, scheduler)
    operator = operator_for(path, tables, answers, rehearsal)
    _look_at_runs(campaign, on_bench)
    folder = _made(out or _folder(path, rehearsal), rehearsal)
    check_disk(folder / "trials", need_rows, row_B)
    options = Options(
        backend=backend,
        clock=clock,
        rehearsal=rehearsal,
        strict=strict,
        progress=progress,
        scheduler=scheduler,
        carries_on=rehearsal or tables.wait is not None,
        apart=apart,
    )
    return Launch(campaign, folder, Runner(campaign, folder, options, operator, say))


def _first(campaign: Campaign) -> dict[Combination, Trial]:
    """The first trial of every combination, in their order."""
    found: dict[Combination, Trial] = {}
    for trial in campaign.trials:
        found.setdefault(trial.combination, trial)
    return found


def _look_at_rows(campaign: Campaign) -> tuple[int, int]:
    """How many rows there will be and how large the largest is; ConfigError for unknown columns."""
    wrong: list[str] = []
    row_B = 0
    for combination, trial in _first(campaign).items():
        config, where = campaign.configs[combination], f"{campaign.path}: trial {trial.number}"
        frame = build(config, 0).frame
        row_B = max(row_B, frame.dtype.itemsize)
        wrong += check_columns(where, campaign.tables, config, frame.columns)
    if wrong:
        raise ConfigError("\n".join(wrong[:WRONG_SAID]))
    return sum(campaign.config(t).n_ticks for t in campaign.trials), row_B


def _look_at_runs(campaign: Campaign, on_bench: bool) -> None:
    """Rehearse every combination where that can tell whether it will run."""
    for combination, trial in _first(campaign).items():
        config = campaign.configs[combination]
        try:
            rehearse_plugins(config, trial.seed)
            if on_bench:
                rehearse(config, trial.seed)
        except ConfigError as error:
            raise ConfigError(f"{campaign.path}: trial {trial.number}: {error}") from None


def _apart(
    campaign: Campaign, backend: str, clock: str | None, rehearsal: bool, scheduler: str | None
) -> bool:
    """Whether the trials may be run apart; ConfigError where they are to, and may not."""
    if rehearsal and scheduler is None:
        return False
    try:
        check_apart(campaign.path, campaign.tables, backend, clock)
    except ConfigError:
        if scheduler is not None:
            raise
        return False
    return True


def _made(folder: Path, rehearsal: bool) -> Path:
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder}: not a folder: choose another --out")
    if rehearsal and (folder / JOURNAL).exists():
        raise ConfigError(f"{folder}: holds a campaign already: choose another --out")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"{folder}: cannot be made ({error.strerror}): choose another --out"
        ) from None
    return folder


def _folder(path: Path, rehearsal: bool) -> Path:
    if rehearsal:
        return Path("runs") / f"rehearsal-{path.stem}-{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}"
    return Path("runs") / f"campaign-{path.stem}"
