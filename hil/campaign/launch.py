"""A campaign from its file to its folder: everything is looked at before anything is run."""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from hil.assembly import build
from hil.campaign.journal import JOURNAL
from hil.campaign.operator import operator_for
from hil.campaign.runner import Options, Runner, Say
from hil.campaign.spread import check_apart
from hil.campaign.waits import check_columns
from hil.config.campaign_plan import Campaign, load_campaign
from hil.errors import ConfigError
from hil.record.sink import check_disk
from hil.session import where_it_runs


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
    for config in campaign.configs.values():
        _, clock = where_it_runs(config, backend, clock)
    wrong, need_rows, row_B = [], 0, 0
    for trial in campaign.trials:
        need_rows += campaign.config(trial).n_ticks
    first = {t.combination: t for t in reversed(campaign.trials)}
    for combination, trial in sorted(first.items(), key=lambda item: item[1].number):
        config = campaign.configs[combination]
        frame = build(config, 0).frame
        row_B = max(row_B, frame.dtype.itemsize)
        wrong += check_columns(f"{path}: trial {trial.number}", tables, config, frame.columns)
    if wrong:
        raise ConfigError("\n".join(wrong))
    apart = tables.wait is None and not rehearsal
    if scheduler is not None:
        check_apart(path, tables, backend, clock)
    elif apart:
        try:
            check_apart(path, tables, backend, clock)
        except ConfigError:
            apart = False
    operator = operator_for(path, tables, answers, rehearsal)
    folder = out or _folder(path, rehearsal)
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


def _folder(path: Path, rehearsal: bool) -> Path:
    if rehearsal:
        return Path("runs") / f"rehearsal-{path.stem}-{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}"
    return Path("runs") / f"campaign-{path.stem}"
