"""Scales, global channels and tasks that are saved, as NI MAX keeps them."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from simdaq import errors
from simdaq.channels import Channel
from simdaq.errors import DaqmxError
from simdaq.scales import CustomScale
from simdaq.timing import Timing, Trigger

if TYPE_CHECKING:
    from simdaq.task import Task


@dataclass(frozen=True)
class About:
    """Who saved something, and what NI MAX may do with it."""

    author: str = ""
    allow_interactive_editing: bool = True
    allow_interactive_deletion: bool = True


@dataclass
class SavedTask:
    """A task without its state."""

    channels: list[Channel]
    timing: Timing
    start_trigger: Trigger
    reference_trigger: Trigger
    properties: dict[tuple[str, str], Any] = field(default_factory=dict)


def copied(channel: Channel) -> Channel:
    """The same channel for another task."""
    return replace(channel, properties=dict(channel.properties))


class Storage:
    """What is saved, by name; `about` answers NI's Persisted... properties."""

    def __init__(self) -> None:
        self.scales: dict[str, CustomScale] = {}
        self.channels: dict[str, Channel] = {}
        self.tasks: dict[str, SavedTask] = {}
        self._about: dict[tuple[str, str], About] = {}

    def _kind(self, kind: str) -> tuple[dict[str, Any], int]:
        kinds: dict[str, tuple[dict[str, Any], int]] = {
            "scale": (self.scales, errors.NO_SUCH_SCALE),
            "chan": (self.channels, errors.NO_SUCH_GLOBAL_CHANNEL),
            "task": (self.tasks, errors.NOT_IN_STORAGE),
        }
        return kinds[kind]

    def find(self, kind: str, name: str) -> Any:
        """What is saved under a name; DaqmxError where there is nothing."""
        objects, code = self._kind(kind)
        if name not in objects:
            raise DaqmxError(code, Name=name)
        return objects[name]

    def about(self, kind: str, name: str, key: str) -> Any:
        """The author, or whether NI MAX may edit or delete it."""
        self.find(kind, name)
        return getattr(self._about.get((kind, name), About()), key)

    def delete(self, kind: str, name: str) -> None:
        """Forget it."""
        self.find(kind, name)
        del self._kind(kind)[0][name]
        self._about.pop((kind, name), None)

    def _save(self, kind: str, name: str, what: Any, about: About, *, overwrite: bool) -> None:
        place, _ = self._kind(kind)
        if name in place and not overwrite:
            raise DaqmxError(
                errors.DUPLICATE_TASK, "It is saved already: allow overwriting.", Name=name
            )
        place[name] = what
        self._about[kind, name] = about

    def save_scale(self, name: str, scale: CustomScale, about: About, *, overwrite: bool) -> None:
        """Keep a copy of a scale."""
        kept = copy.copy(scale)
        kept.properties = dict(scale.properties)
        self._save("scale", name, kept, about, overwrite=overwrite)

    def save_channel(self, name: str, channel: Channel, about: About, *, overwrite: bool) -> None:
        """Keep a copy of a channel under a global name."""
        kept = copied(channel)
        kept.name = name
        self._save("chan", name, kept, about, overwrite=overwrite)

    def save_task(self, name: str, task: Task, about: About, *, overwrite: bool) -> None:
        """Keep what a task consists of."""
        saved = SavedTask(
            [copied(c) for c in task.channels], replace(task.timing), replace(task.start_trigger),
            replace(task.reference_trigger), dict(task.properties),
        )  # fmt: skip
        self._save("task", name, saved, about, overwrite=overwrite)

    def names(self, kind: str) -> Mapping[str, Any]:
        """Everything of a kind, by name."""
        return self._kind(kind)[0]
