"""Messages of a bench: what is due, and sending it until it has arrived, through Apprise.

`[notify]` is in a file of this machine, which no recording contains: `machine.toml` in the user's
folder of configurations (`~/.config/hil`), or else in `/etc/hil`.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import platform
import re
import shutil
import stat
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import psutil
from pydantic import Field

from hil.config.files import Merged, read_toml
from hil.config.table import Positive, Table
from hil.config.validate import validated
from hil.errors import ConfigError, writing
from hil.platform.private_files import is_private, state_folder
from hil.platform.processes import boot, is_running, started
from hil.platform.whole_files import write_whole
from hil.watch.serve import machine_file

if TYPE_CHECKING:
    from apprise import Apprise

    from hil.watch.bench import Bench, Run

Event = Literal["ended", "tripped", "waiting", "stalled", "disk", "rule", "died", "back"]
EVENTS: tuple[Event, ...] = (
    "ended", "tripped", "waiting", "stalled", "disk", "rule", "died", "back",
)  # fmt: skip
RETRY_S = 4.0
# What an error of the file quotes of it: an address, and so perhaps a password.
NO_TOML = re.compile(r"(: line \d+: not valid TOML).*", re.S)
VALUE = re.compile(r"^(.*?: notify(?:\.urls[\w.]*)?) = .*: ", re.M)
TRIPPED, RULE = 3, 5  # exit codes
RECOVERED_SHARE = 1.1  # of the limit that must be free again before the disk is low once more


class NotifyTable(Table):
    """Who gets which messages: addresses as Apprise takes them.

    Attributes
    ----------
    stalled_s : time without a row after which a run has stalled
    disk_free_min_MB : with less than this free where the recordings are, the disk is low
    """

    urls: Annotated[list[str], Field(min_length=1)]
    events: list[Event] = Field(default_factory=lambda: list(EVENTS))
    stalled_s: Positive = 5.0
    disk_free_min_MB: Positive = 1000.0


class MachineTable(Table):
    """What belongs to this machine and to no rig."""

    notify: NotifyTable | None = None


def notify_table() -> NotifyTable | None:
    """`[notify]` of this machine; None without one.

    Raises
    ------
    ConfigError
        The file is not valid, others may write it, or Apprise is missing or knows no such address.
    """
    path = machine_file()
    if path is None:
        return None
    status = path.stat()
    is_of_root = status.st_uid == 0 and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    if not (is_private(status) or is_of_root):
        raise ConfigError(f"{path}: others may write it: chmod 600 {path}")
    try:
        contents = read_toml(path)
        table = validated(MachineTable, Merged(contents, [(str(path), contents)])).notify
    except ConfigError as error:
        raise ConfigError(
            VALUE.sub(r"\1: ", NO_TOML.sub(r"\1: check its quotes", str(error)))
        ) from None
    if table is None:
        return None
    if find_spec("apprise") is None:
        raise ConfigError(f"{path}: notify needs an extra: pip install 'hil-arrays[notify]'")
    for i, url in enumerate(table.urls):
        _server(f"{path}: notify.urls.{i}", url)
    return table


def _server(where: str, url: str) -> Apprise:
    """The address as Apprise sends to it; its text may hold a password and is never printed."""
    import apprise

    quiet = logging.getLogger("apprise")
    quiet.addHandler(logging.NullHandler())
    quiet.propagate = False
    server = apprise.Apprise()
    with warnings.catch_warnings():  # it imports modules that Python drops
        warnings.simplefilter("ignore", DeprecationWarning)
        is_known = server.add(url)
    if not is_known:
        scheme = url.partition("://")[0] if "://" in url else "no scheme"
        raise ConfigError(
            f"{where}: not an address that Apprise knows ({scheme}): see github.com/caronc/apprise"
        )
    return server


class Message(NamedTuple):
    """One message; `event` says what it is about.

    Attributes
    ----------
    to : addresses where it has not arrived, by `_tag`; empty for all
    """

    event: Event
    title: str
    body: str
    to: tuple[str, ...] = ()

    def is_for(self, url: str, urls: list[str]) -> bool:
        """Whether it is still due at one of these addresses; at all if they are others now."""
        missing = [one for one in urls if _tag(one) in self.to] or urls
        return url in missing


def _tag(url: str) -> str:
    """What tells an address from others and does not tell its password."""
    return hashlib.sha256(url.encode()).hexdigest()[:8]


class Recipient(threading.Thread):
    """Sends to one address, in order, each message until it has arrived.

    Attributes
    ----------
    pending : messages that have not arrived
    """

    def __init__(
        self, name: str, url: str, say: Callable[[str], None], arrived: Callable[[], None]
    ) -> None:
        super().__init__(daemon=True)
        self.url, self._name, self._say, self._arrived = url, name, say, arrived
        self._server = _server(name, url)
        self._wake = threading.Event()
        self.pending: list[Message] = []
        self._has_failed = False

    def put(self, message: Message) -> None:
        self.pending.append(message)
        self._wake.set()

    def send(self, message: Message) -> bool:
        """Try once; whether it has arrived."""
        from apprise import NotifyFormat

        try:
            return bool(
                self._server.notify(
                    body=message.body, title=message.title, body_format=NotifyFormat.TEXT
                )
            )
        except Exception:  # of a service's own code: as good as not reached
            return False

    def run(self) -> None:
        while True:
            self._wake.wait(RETRY_S if self.pending else None)
            self._wake.clear()
            while self.pending and self.send(self.pending[0]):
                del self.pending[0]
                self._arrived()
                self._has_failed = False
            if self.pending and not self._has_failed:
                self._has_failed = True
                self._say(f"{self._name} cannot be reached: the run goes on, it is tried again")


class Outbox:
    """All addresses of this machine; `arrived` is called whenever a message has arrived at one."""

    def __init__(
        self,
        table: NotifyTable,
        say: Callable[[str], None],
        arrived: Callable[[], None] = lambda: None,
    ) -> None:
        self._table = table
        self.recipients = [
            Recipient(_name(i, url), url, say, arrived) for i, url in enumerate(table.urls)
        ]
        for one in self.recipients:
            one.start()

    def put(self, message: Message) -> None:
        """Send to all where it is due, if the event is wanted."""
        if message.event in self._table.events:
            for one in self.recipients:
                if message.is_for(one.url, self._table.urls):
                    one.put(message._replace(to=()))

    @property
    def pending(self) -> list[Message]:
        """Messages that have not arrived everywhere, with the addresses where they have not."""
        missing: dict[Message, tuple[str, ...]] = {}
        for one in self.recipients:
            for message in list(one.pending):
                missing[message] = (*missing.get(message, ()), _tag(one.url))
        return [message._replace(to=to) for message, to in missing.items()]


TEST = Message("ended", "hil: a test", f"messages of {platform.node()} arrive here")


@dataclass
class Watch:
    """What is due about the command of a bench, each message once."""

    what: str
    table: NotifyTable
    _question: str = ""
    _tripped: str = ""
    _stalled: str = ""
    _disk_is_low: bool = False
    _told: set[str] = field(default_factory=set)

    def due(self, bench: Bench) -> Iterator[Message]:
        """Messages about the run in progress, its disk and its campaign."""
        run = bench.run
        if run is not None and run.facts is not None:
            yield from self._of_run(run)
        campaign = bench.state().get("campaign")
        question = campaign["asked"] if campaign else ""
        if question and question != self._question:
            yield self._message("waiting", "waits for its operator", question)
        self._question = question
        free_MB = _free_MB(bench.folder)
        if free_MB < self.table.disk_free_min_MB and not self._disk_is_low:
            text = f"{free_MB:.0f} MB free in {bench.folder}, "
            text += f"limit {self.table.disk_free_min_MB:g} MB (notify.disk_free_min_MB)"
            yield self._message("disk", "disk low", text)
        floor_MB = self.table.disk_free_min_MB
        self._disk_is_low = free_MB < floor_MB * (RECOVERED_SHARE if self._disk_is_low else 1.0)

    def _of_run(self, run: Run) -> Iterator[Message]:
        if run.faults and self._tripped != run.name:
            self._tripped = run.name
            dead = any(line.startswith("recorder_dead") for line in run.faults)
            lines = [*run.faults, "everything is off", _origin(run)]
            event: Event = "died" if dead else "tripped"
            word = "RECORDER DEAD, tripped" if dead else "TRIPPED"
            yield self._message(event, word, "\n".join(lines))
        if run.is_dead and "died" not in self._told:
            self._told.add("died")
            text = "the program ended without closing its run: it was killed, or it crashed; "
            text += f"boards and supplies switch off by themselves\n{_origin(run)}"
            yield self._message("died", "PROGRAM DIED", text)
        stands = run.n_rows > 0 and not run.is_over and run.age_s > self.table.stalled_s
        if stands and self._stalled != run.name:
            text = f"no row for {run.age_s:.0f} s, limit {self.table.stalled_s:g} s "
            text += f"(notify.stalled_s)\n{_origin(run)}"
            yield self._message("stalled", "STALLED", text)
        self._stalled = run.name if stands else ""

    def at_end(self, code: int | None, text: str, bench: Bench) -> Iterator[Message]:
        """Messages about the end of the command."""
        run = bench.run
        origin = "" if run is None or run.facts is None else f"\n{_origin(run)}"
        if code is None:
            if "died" not in self._told:
                yield self._message("died", "PROGRAM DIED", f"it was killed, or it crashed{origin}")
        elif code == RULE and text:
            yield self._message("rule", "stopped by its rule", f"{text}{origin}")
        elif code != TRIPPED or not self._tripped:
            event: Event = "tripped" if code == TRIPPED else "ended"
            words = {0: "ended", 130: "interrupted", TRIPPED: "TRIPPED"}
            word = words.get(code, f"ended with exit code {code}")
            yield self._message(event, word, f"{text or word}{origin}")

    def _message(self, event: Event, words: str, body: str) -> Message:
        title = f"{self.what}: {words}"
        return Message(event, title, f"{body}\n{platform.node()}, {_now()}")


def _origin(run: Run) -> str:
    facts = run.facts
    assert facts is not None
    where = "" if run.recording is None else f"\nrecording: {run.recording}"
    return f"{facts.title}{f' ({facts.simulated})' if facts.simulated else ''}{where}"


def _free_MB(folder: Path) -> float:
    try:
        return 1e-6 * shutil.disk_usage(folder).free
    except OSError:
        return float("inf")  # the folder is not there any more: nothing is recorded there


def _now() -> str:
    return datetime.now(UTC).isoformat(sep=" ", timespec="seconds")


class Marker:
    """A private file of a command in progress, which stays if the command is cut off."""

    def __init__(self, what: str, folder: Path) -> None:
        pid = os.getpid()
        self._path = marker_folder() / f"{pid}-{started(pid)}.json"
        self._facts = {"what": what, "folder": str(folder), "begun": _now(), "pid": pid,
                       "since": started(pid), "boot": boot()}  # fmt: skip
        self._written: list[Message] | None = None
        self._lock = threading.Lock()

    def note(self, pending: list[Message]) -> None:
        """Keep what has not arrived; without a disk the file stays as it is."""
        with self._lock, contextlib.suppress(OSError):
            if pending != self._written:
                self._written = pending
                self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                write_whole(self._path, json.dumps({**self._facts, "pending": pending}))

    def leave(self, pending: list[Message]) -> None:
        """Note that the command is over, and what the next one has to send if this one cannot."""
        self._facts["is_over"] = True
        self._written = None
        self.note(pending)

    def remove(self) -> None:
        self._path.unlink(missing_ok=True)


def marker_folder() -> Path:
    return state_folder() / "watched"


def cut_off() -> list[Message]:
    """Messages about commands that were in progress when this computer ended, or what watched them.

    Their markers are removed: each is told once, by whoever removes it.
    """
    messages: list[Message] = []
    for path in sorted(marker_folder().glob("*.json")):
        due = []
        with writing(path), contextlib.suppress(FileNotFoundError):  # another command tells it
            try:
                facts = json.loads(path.read_text(encoding="utf-8"))
                here = facts["boot"] == boot()
                if here and is_running(facts["pid"], facts["since"]):
                    continue
                for event, title, body, *to in facts["pending"]:
                    due.append(Message(event, title, body, tuple(*to)))
                if not facts.get("is_over"):
                    due.append(_back(facts, here))
            except (ValueError, KeyError, TypeError):
                pass  # cut off while it was written
            path.unlink()
            messages += due
    return messages


def _back(facts: Mapping[str, str], here: bool) -> Message:
    restarted = datetime.fromtimestamp(psutil.boot_time(), UTC)
    why = f"this computer was restarted at {restarted:%F %T} UTC"
    if here:
        why = "the process that watches it was killed"
    words = "was no longer watched" if here else "host is back after a restart"
    text = (
        f"{why}; the command began at {facts['begun']} and was not over\n"
        f"recordings: {facts['folder']}; hil recover repairs one that was cut off, and the same "
        f"command continues a campaign or a test\n{platform.node()}, {_now()}"
    )
    return Message("back", f"{facts['what']}: {words}", text)


def send_now(
    messages: list[Message], table: NotifyTable, *, keep: bool = False
) -> list[tuple[str, bool]]:
    """Send messages once and wait; every address, and whether all have arrived there.

    With `keep`, those that have not are left to the next command, also if this one is killed.
    """
    marker = Marker("notify", Path.cwd()) if keep else None
    if marker is not None:
        marker.leave(messages)
    results = []
    missing: dict[Message, tuple[str, ...]] = {}
    for i, url in enumerate(table.urls):
        one = Recipient(_name(i, url), url, lambda text: None, lambda: None)
        due = [message for message in messages if message.is_for(url, table.urls)]
        lost = [message for message in due if not one.send(message)]
        missing |= {message: (*missing.get(message, ()), _tag(url)) for message in lost}
        results.append((_name(i, url), not lost))
    if marker is not None and missing:
        marker.leave([message._replace(to=to) for message, to in missing.items()])
    elif marker is not None:
        marker.remove()
    return results


def _name(i: int, url: str) -> str:
    """An address without what is secret about it."""
    return f"notify.urls.{i} ({url.partition('://')[0]})"


class Post:
    """Sends what is due about a command, from its start until everything has arrived."""

    def __init__(self, what: str, folder: Path, table: NotifyTable, say: Callable[[str], None]):
        self._marker, self._watch = Marker(what, folder), Watch(what, table)
        left = cut_off()
        self._outbox = Outbox(table, say, lambda: self._marker.note(self._outbox.pending))
        for message in left:
            self._outbox.put(message)
        self._marker.note(self._outbox.pending)

    def look(self, bench: Bench) -> None:
        """Send what is due now."""
        for message in self._watch.due(bench):
            self._outbox.put(message)
        self._marker.note(self._outbox.pending)

    def end(self, code: int | None, text: str, bench: Bench) -> None:
        """Send how the command has ended; None is the code of one that was killed."""
        self.look(bench)
        for message in self._watch.at_end(code, text, bench):
            self._outbox.put(message)
        self._marker.leave(self._outbox.pending)

    @property
    def is_done(self) -> bool:
        """Whether everything has arrived."""
        return not self._outbox.pending

    def close(self) -> None:
        """Forget the command, which is over, or leave what has not arrived to the next one."""
        if self.is_done:
            self._marker.remove()
        else:
            self._marker.leave(self._outbox.pending)
