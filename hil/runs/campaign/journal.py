"""The journal of a campaign, and the progress derived from it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from hil.errors import ConfigError, one_line
from hil.platform.processes import may_be_running
from hil.record.append_log import Entry, read_log

JOURNAL = "journal.jsonl"


@dataclass
class Progress:
    """Progress of a campaign, from its journal.

    Attributes
    ----------
    head : its first line
    ends : entry of every trial's last attempt that ended
    settled : trials that are not run again: `complete`, or the reason for skipping them
    attempts : attempts begun, by trial
    waits, answers : the last ones of every trial; answers that belong to no trial are under 0
    open : attempts that have begun and not ended, by trial
    tried : settings that were tried of the controllers
    commissioned : what was fitted to plants
    why : reason of the last stop
    question : what the campaign waits for its operator to answer or do; empty if it does not wait
    session : when it began or went on, and the process that runs it
    """

    head: Entry = field(default_factory=dict)
    ends: dict[int, Entry] = field(default_factory=dict)
    settled: dict[int, str] = field(default_factory=dict)
    attempts: dict[int, int] = field(default_factory=dict)
    waits: dict[int, Entry] = field(default_factory=dict)
    answers: dict[int, dict[str, object]] = field(default_factory=dict)
    open: dict[int, Entry] = field(default_factory=dict)
    tried: list[Entry] = field(default_factory=list)
    commissioned: list[Entry] = field(default_factory=list)
    notes: list[Entry] = field(default_factory=list)
    why: str = ""
    question: str = ""
    session: Entry = field(default_factory=dict)

    @property
    def n_trials(self) -> int:
        return len(self.head["plan"])

    @property
    def left(self) -> list[int]:
        """Numbers of the trials that are still to be run."""
        return [t["trial"] for t in self.head["plan"] if t["trial"] not in self.settled]

    @property
    def is_cut_off(self) -> bool:
        """Whether its process has ended before it said why; False if another computer runs it."""
        return bool(self.left) and "pid" in self.session and not may_be_running(self.session)

    @property
    def n_complete(self) -> int:
        return sum(verdict == "complete" for verdict in self.settled.values())

    def left_s(self) -> float | None:
        """Estimated remaining time [s]; None before the first complete trial."""
        ended = [e for e in self.ends.values() if e["outcome"] == "complete"]
        asked_s = sum(e["duration_s"] for e in ended)
        if not ended or asked_s <= 0.0:
            return None
        pace = sum(e["took_s"] for e in ended) / asked_s
        waits_s = [w["took_s"] for w in self.waits.values()]
        wait_s = sum(waits_s) / len(waits_s) if waits_s else 0.0
        left = set(self.left)
        duration_s = [t["duration_s"] for t in self.head["plan"] if t["trial"] in left]
        return float(pace * sum(duration_s) + wait_s * len(left))


def progress_of(entries: Iterable[Entry]) -> Progress:
    """Progress from the lines of a journal."""
    p = Progress()
    for line in entries:
        entry = dict(line)
        trial = entry.get("trial", 0)
        match entry["kind"]:
            case "campaign":
                p.head = entry
            case "answer":
                p.answers.setdefault(trial, {})[entry["question"]] = entry["answer"]
            case "wait":
                p.waits[trial] = entry
            case "begin":
                p.attempts[trial] = entry["attempt"]
                p.open[trial] = entry
            case "end" if trial in p.settled:  # it ran again for its recording: all else stays
                if ends_alike(entry, p.ends[trial]):
                    p.ends[trial]["file"] = entry["file"]
            case "end":
                entry["begun_utc"] = p.open.pop(trial, entry)["utc"]
                p.attempts[trial] = entry.get("attempt", p.attempts.get(trial, 1))
                p.ends[trial] = entry
                if entry["outcome"] == "complete":
                    p.settled[trial] = "complete"
            case "cut":
                entry["begun_utc"] = p.open.pop(trial)["utc"]
                p.ends[trial] = entry
            case "tried":
                p.tried.append(entry)
            case "commissioned":
                p.commissioned.append(entry)
            case "skip":
                p.settled[trial] = entry["why"]
            case "stop":
                p.why, p.question = entry["why"], ""
            case "asked":
                p.question = entry["text"]
            case "session":
                p.why, p.question, p.session = "", "", entry
        if entry["kind"] in ("skip", "stop") or entry.get("outcome", "complete") != "complete":
            p.notes.append(entry)
    return p


def ends_alike(one: Entry, other: Entry) -> bool:
    """Whether two runs of a trial, of which one was recorded, have the same outcome and faults."""
    return (one["outcome"], one.get("faults")) == (other["outcome"], other.get("faults"))


def refuse_outside(path: Path, entries: Iterable[Mapping[str, object]]) -> None:
    """Refuse a journal whose recordings are outside its folder: hil must not touch files there.

    Raises
    ------
    ConfigError
        The journal names a file outside its folder.
    """
    for entry in entries:
        if "trial" in entry and "file" in entry:
            file = PurePosixPath(str(entry["file"]))
            if file.is_absolute() or ".." in file.parts or ":" in str(file):
                name = one_line(str(file))
                raise ConfigError(
                    f"{path}: trial {entry['trial']}: '{name}' is not a recording in its folder: "
                    "use the original journal"
                )


def read_progress(folder: Path) -> Progress:
    """Progress of the campaign in a folder.

    Raises
    ------
    ConfigError
        The folder has no campaign, or its journal is damaged.
    """
    path = folder / JOURNAL
    entries = read_log(path)
    refuse_outside(path, entries)
    progress = progress_of(entries)
    if not progress.head:
        raise ConfigError(
            f"{path}: no campaign has begun there: run the campaign, or give its --out"
        )
    return progress


def time_text(duration_s: float | None) -> str:
    """A duration [s] as text."""
    if duration_s is None:
        return "an unknown time"
    if duration_s < 90.0:
        return f"{duration_s:.0f} s"
    minutes = round(duration_s / 60.0)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"
