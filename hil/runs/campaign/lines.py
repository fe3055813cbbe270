"""Journal lines and recording attributes of a trial."""

import json
from datetime import UTC, datetime
from pathlib import Path

from hil.config.values import Figures
from hil.experiment.loaded import Experiment
from hil.runs.campaign.journal import Progress
from hil.runs.campaign.plan import Campaign, Trial
from hil.runs.recording import Result


def now() -> str:
    """The current time in UTC, ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def begin_line(trial: Trial, attempt: int, file: Path) -> dict[str, object]:
    """The journal line before an attempt."""
    return {"kind": "begin", **attempt_of(trial, attempt, file)}


def attempt_of(trial: Trial, attempt: int, file: Path) -> Figures:
    """The keys of a journal line that identify an attempt."""
    return {"trial": trial.number, "attempt": attempt, "file": str(file), "utc": now()}


def end_line(
    attempt: Figures,
    config: Experiment,
    result: Result,
    figures: Figures,
    took_s: float,
) -> Figures:
    """The journal line after an attempt that ended by itself or by the guard.

    Parameters
    ----------
    attempt : the keys of `attempt_of`
    """
    return {
        "kind": "end", **attempt,
        "outcome": result.outcome, "faults": result.summary["first_fault"],
        "error": result.summary["error"],
        "duration_s": config.tables.experiment.duration_s, "took_s": took_s, "figures": figures,
    }  # fmt: skip


def attributes_of(
    campaign: Campaign, trial: Trial, attempt: int, progress: Progress
) -> dict[str, str]:
    """Attributes of a trial's recording that describe its campaign."""
    facts = {
        "name": campaign.tables.campaign.name, "trial": trial.number, "attempt": attempt,
        "levels": dict(trial.levels), "repeat": trial.repeat, "block": trial.block,
        **({"plant": trial.plant, "drawn": campaign.listed(trial)} if trial.plant else {}),
        "tuned": dict(campaign.tuned.get(trial.combination, {})),
        "answers": progress.answers.get(0, {}) | progress.answers.get(trial.number, {}),
        "waited": progress.waits.get(trial.number),
    }  # fmt: skip
    return {"campaign": json.dumps(facts)}
