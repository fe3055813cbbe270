"""The interface of a running task, and registered callbacks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


class Run:
    """What a running task does; see `acquisition`, `generation`, `pulse_outputs`, `watchdog`."""

    fresh: Any = ()  # times of the samples of the last step, for those who share the clock

    def take(self, after_s: float, until_s: float) -> None:
        """Find out when something is due in (after_s, until_s]: before any task acts on it."""

    def step(self, after_s: float, until_s: float) -> None:
        """Take or put out what is due in (after_s, until_s]."""

    def stop(self, t_s: float) -> None:
        """Clean up when the task stops."""

    @property
    def done(self) -> bool:
        return False

    deadline_s: float = float("inf")  # when it does something by itself

    @property
    def planned(self) -> float:
        """Samples per channel of the whole run."""
        return float("inf")

    @property
    def total(self) -> int:
        """Samples per channel so far."""
        return 0

    def when(self, more: int) -> float | None:
        """When that many more samples will be there, or None where it is unknown."""
        del more
        return None


class SoftwareTimed(Run):
    """An on-demand task: every read or write is complete when it returns."""

    @property
    def done(self) -> bool:
        return True


@dataclass(eq=False)
class Event:
    """A registered callback: after every `n` samples, or at the end (n = 0).

    Attributes
    ----------
    acquired : bool
        Counts samples acquired into the buffer; False: samples transferred from it.
    seen : int
        Samples at the last call.
    thread : int or None
        The thread that runs the callback at this moment.
    registered : bool
        False after the program has unregistered it: it is not called again.
    """

    n: int
    call: Callable[..., Any]
    acquired: bool = True
    seen: int = 0
    thread: int | None = None
    registered: bool = True
