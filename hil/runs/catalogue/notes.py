"""Notes, stars and tags of runs, in `notes.jsonl` beside the recordings; no recording changes."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from hil.errors import ConfigError, is_utf8
from hil.record.append_log import AppendLog, read_log

FILE = "notes.jsonl"
RunsAt = Callable[[Sequence[str], Sequence[str]], Iterable[tuple[str, str, str]]]
ACTIONS = ("note", "star", "unstar", "tag", "untag")


@dataclass
class Remarks:
    """What was said of one run."""

    notes: list[str] = field(default_factory=list)
    star: bool = False
    tags: list[str] = field(default_factory=list)


def remarks_in(folder: Path, runs_at: RunsAt) -> dict[str, Remarks]:
    """What was said of every run, by its identity.

    What was said of a file that could not be read is said of the run that is at its path now, if
    the file has become readable since: it had the identity of its bytes.

    Parameters
    ----------
    runs_at : path, identity and time in UTC of the runs with one of these paths or identities

    Raises
    ------
    ConfigError
        The file is damaged.
    """
    runs: dict[str, Remarks] = {}
    entries = read_log(folder / FILE)
    unread = {str(e["path"]): str(e.get("identity")) for e in entries if "path" in e}
    rows = list(runs_at([*unread], [*unread.values()])) if unread else []
    identities = {identity for _, identity, _ in rows}
    by_path = {path: (identity, begun_utc) for path, identity, begun_utc in rows}
    for entry in entries:
        identity = str(entry.get("identity"))
        if "path" in entry and identity not in identities:
            now, begun_utc = by_path.get(str(entry["path"]), (identity, ""))
            older = begun_utc <= str(entry.get("utc"))[: len(begun_utc)]  # else another run
            identity = now if older else identity
        remarks = runs.setdefault(identity, Remarks())
        text = str(entry.get("text", ""))
        match entry.get("action"):
            case "note":
                remarks.notes.append(text)
            case "star" | "unstar" as action:
                remarks.star = action == "star"
            case "tag" if text not in remarks.tags:
                remarks.tags.append(text)
            case "untag" if text in remarks.tags:
                remarks.tags.remove(text)
    return runs


def remark(folder: Path, identity: str, action: str, texts: Sequence[str], path: str = "") -> None:
    """Add a note, a star or tags to a run, or take them away; waits for other writers.

    Parameters
    ----------
    path : of a file that cannot be read, below the folder

    Raises
    ------
    ConfigError
        An action without its text, a text that is no UTF-8, a tag with a comma, or the file cannot
        be written.
    """
    from hil.platform.provenance import user

    starred = action in ("star", "unstar")
    texts = [text.strip() for text in texts]
    if starred == bool(texts) or not all(texts):
        what = "takes no text" if starred else "needs a text"
        raise ConfigError(
            f"hil runs {action}: {what}: hil runs {action} RUN{'' if starred else ' TEXT'}"
        )
    if action in ("tag", "untag") and any("," in text for text in texts):
        raise ConfigError(f"hil runs {action}: a tag has no comma: give several tags as words")
    if not all(map(is_utf8, texts)):
        raise ConfigError(f"hil runs {action}: not UTF-8 text: write it with other letters")
    lines = [""] if starred else [" ".join(texts)] if action == "note" else texts
    with AppendLog(folder / FILE, wait=True) as log:
        for text in lines:
            log.add({"identity": identity, **({"path": path} if path else {}),
                     "action": action, "text": text, "by": user(),
                     "utc": datetime.now(UTC).isoformat(timespec="seconds")})  # fmt: skip
