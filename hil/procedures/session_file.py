"""The session file of `hil calibrate KIND SESSION.toml`.

[article]     the calibrated article, with its serial number
[act]         operator, standard, validity
[conditions]  ambient conditions such as the temperature
[procedure]   settings of the procedure
"""

import tomllib
from collections.abc import Mapping
from datetime import date, timedelta
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

from pydantic import Field

from hil.calibration.files import Record, files_in, load_any, may_be_of, overlaps
from hil.calibration.tables import ArticleTable, ConditionerTable, ConditionsTable, ThingTable
from hil.config.files import Merged, merge, parse_set, read_toml
from hil.config.table import Table, Title
from hil.config.validate import validated
from hil.errors import ConfigError, missing_file
from hil.platform.provenance import software


class SessionTable(Table):
    """Operator, standard with its certificate, and validity."""

    by: Title
    standard: Title = ""
    certificate: Title = ""
    valid_days: Annotated[int, Field(ge=1, le=36525)] = 365


S = TypeVar("S", bound=Table)


class SessionFile(Table, Generic[S]):
    """A session file whose `[procedure]` is a table of type S."""

    article: ThingTable
    act: SessionTable
    conditions: ConditionsTable
    procedure: S


class TransducerFile(SessionFile[S]):
    """A session file of a force transducer, with its signal conditioner."""

    article: ArticleTable
    conditioner: ConditionerTable | None = None


AnySession = SessionFile[Any]
A = TypeVar("A", bound=AnySession)


def read_session(path: Path | None, template: str, kind: type[A], sets: list[str]) -> A:
    """Read and validate a session file; without a file, the template, for a rehearsal.

    Raises
    ------
    ConfigError
        The file does not exist or is invalid; one line an error.
    """
    if path is not None and not path.exists():
        raise missing_file(path, f"create it with --template > {path}")
    table = tomllib.loads(template) if path is None else read_toml(path)
    name = "the template" if path is None else str(path)
    sources: list[tuple[str, Mapping[str, object]]] = [(name, table)]
    for text in sets:
        change = parse_set(text)
        sources.append((f"--set {text}", change))
        table = merge(table, change)
    return validated(kind, Merged(table, sources))


def session_of(
    session: AnySession, method: str, today: date, supersedes: list[Record], simulated: bool
) -> dict[str, object]:
    """`[article]`, `[act]`, `[conditions]` and the status of the future record."""
    return {
        "status": "simulated" if simulated else "measured",
        "article": session.article.model_dump(exclude_none=True),
        "act": {
            "by": session.act.by,
            "date": today,
            "valid_until": today + timedelta(days=session.act.valid_days),
            "method": method,
            "standard": session.act.standard,
            "certificate": session.act.certificate,
            "software": software_used(),
            "supersedes": [record.record.hash for record in supersedes],
        },
        "conditions": session.conditions.model_dump(exclude_none=True),
    }


def software_used() -> str:
    """Versions, as the records name them."""
    facts = software()
    return ", ".join(f"{key} {facts[key]}" for key in ("hil-arrays", "commit") if key in facts)


def refuse_overlap(path: Path, new: Record) -> None:
    """ConfigError if the folder has a record of the same article that is valid at the same time."""
    for other in files_in(path.parent):
        text = other.read_text(encoding="utf-8", errors="replace")
        if other == path or not may_be_of(text, new):
            continue
        old = load_any(other, named_by=str(other))
        if overlaps([old, new]):
            raise ConfigError(
                f"{other}: serial {new.record.article.serial} is calibrated until "
                f"{old.record.act.valid_until}: two records of one article would be valid: "
                f"add --supersedes {other}"
            )
