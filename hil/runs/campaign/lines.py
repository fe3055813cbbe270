"""What a campaign writes down of a trial: lines of its journal, attributes of its recording."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hil.experiment.load import Config
from hil.runs import session
from hil.runs.campaign.journal import Progress
from hil.runs.campaign.plan import Campaign, Trial


def now() -> str:
    """The time that a line is written, in UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def begin_line(trial: Trial, attempt: int, file: Path) -> dict[str, Any]:
    """Before an attempt begins."""
    return {"kind": "begin", **attempt_of(trial, attempt, file)}


def attempt_of(trial: Trial, attempt: int, file: Path) -> dict[str, Any]:
    """Which attempt a line is of."""
    return {"trial": trial.number, "attempt": attempt, "file": str(file), "utc": now()}


def end_line(
    trial: Trial,
    attempt: int,
    file: Path,
    config: Config,
    result: session.Result,
    figures: dict[str, Any],
    took_s: float,
) -> dict[str, Any]:
    """After an attempt that came to an end by itself or by the guard."""
    return {
        "kind": "end", **attempt_of(trial, attempt, file),
        "outcome": result.outcome, "faults": result.summary["first_fault"],
        "error": result.summary["error"],
        "duration_s": config.tables.experiment.duration_s, "took_s": took_s, "figures": figures,
    }  # fmt: skip


def attributes_of(
    campaign: Campaign, trial: Trial, attempt: int, progress: Progress
) -> dict[str, str]:
    """What a trial's recording says of its campaign."""
    said = {
        "name": campaign.tables.campaign.name, "trial": trial.number, "attempt": attempt,
        "levels": dict(trial.levels), "repeat": trial.repeat, "block": trial.block,
        "answers": progress.answers.get(0, {}) | progress.answers.get(trial.number, {}),
        "waited": progress.waits.get(trial.number),
    }  # fmt: skip
    return {"campaign": json.dumps(said)}
