"""Signals on a card's terminals: inputs, their faults, outputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from simdaq.edges import EdgeSource, Joined, LineEdges, Pulses, Resumed

Times = Any  # a time in s or an array of them
Source = float | Callable[[Times], Any]
Fault = Literal["stuck", "high rail", "low rail", "nan"]


class Track:
    """A signal that somebody else computes step by step: linear between points, level after.

    A plant puts its value at the end of every step; samples that a card takes within the step
    are read from the line between both ends.
    """

    def __init__(self, value: float = 0.0) -> None:
        self._t0_s = self._t1_s = 0.0
        self._v0 = self._v1 = value
        self._slope_per_s = 0.0

    def put(self, t_s: float, value: float) -> None:
        """Set the signal's value at t_s."""
        self._t0_s, self._v0 = self._t1_s, self._v1
        self._t1_s, self._v1 = t_s, value
        step_s = t_s - self._t0_s
        self._slope_per_s = (value - self._v0) / step_s if step_s > 0.0 else 0.0

    def __call__(self, t_s: Times) -> Any:
        if isinstance(t_s, float):
            behind_s = min(max(self._t1_s - t_s, 0.0), self._t1_s - self._t0_s)
            return self._v1 - self._slope_per_s * behind_s
        behind = np.clip(self._t1_s - t_s, 0.0, self._t1_s - self._t0_s)
        return self._v1 - self._slope_per_s * behind


@dataclass
class Terminal:
    """An input: what is wired to it, and what is broken about it."""

    source: Source = 0.0
    fault: Fault | None = None
    frozen: float = 0.0
    fed: bool = False  # somebody has wired it; else it carries the scene's default

    def at(self, t_s: Times) -> Any:
        """Its signal at one or several times; a rail is an infinity, which the converter clips."""
        if self.fault is not None:
            if self.fault == "stuck":
                return self.frozen
            if self.fault == "nan":
                return np.nan
            return np.inf if self.fault == "high rail" else -np.inf
        source = self.source
        return source(t_s) if callable(source) else source


@dataclass
class Output:
    """An output: its level now, since when, and on demand every change."""

    value: float = 0.0
    since_s: float = 0.0
    watched: bool = False
    changes: list[tuple[float, float]] = field(default_factory=list)
    _block_s: NDArray[np.float64] | None = None  # times of the last block, with values before it
    _block: NDArray[np.float64] | None = None
    _edges: LineEdges | None = None

    def heard(self) -> LineEdges:
        """Its edges from now on, for counters and triggers on the same pin."""
        if self._edges is None:
            self._edges = LineEdges(self.value, self.since_s)
        return self._edges

    def put(self, t_s: float, value: float) -> None:
        if self._edges is not None:
            self._edges.put(t_s, value)
        if self.watched and value != self.value:
            self.changes.append((t_s, value))
        self._block_s = np.array([-np.inf, t_s])
        self._block = np.array([self.value, value])
        self.value, self.since_s = value, t_s

    def put_block(self, t_s: NDArray[np.float64], values: NDArray[np.float64]) -> None:
        """Take the levels that a clocked generation put out in one step."""
        if not len(t_s):
            return
        if self._edges is not None:
            for one_s, value in zip(t_s.tolist(), values.tolist(), strict=True):
                self._edges.put(one_s, value)
        if self.watched:
            before = np.concatenate(([self.value], values[:-1]))
            kept = values != before
            self.changes += zip(t_s[kept].tolist(), values[kept].tolist(), strict=True)
        self._block_s = np.concatenate(([-np.inf], t_s))
        self._block = np.concatenate(([self.value], values))
        self.value, self.since_s = float(values[-1]), float(t_s[-1])

    def at(self, t_s: Times) -> Any:
        """The level at a time, or at an array of times within the last step."""
        if isinstance(t_s, float) or self._block_s is None or self._block is None:
            return self.value
        return self._block[np.searchsorted(self._block_s, t_s, side="right") - 1]


@dataclass
class PulseOutput(Output):
    """The output of a counter; its edges are known exactly, and not recorded among the changes.

    Attributes
    ----------
    edges : all of its edges
    train : what goes out now
    """

    edges: Joined = field(default_factory=Joined)
    train: EdgeSource | None = None

    def put(self, t_s: float, value: float) -> None:
        """Stay at a level."""
        before = self.at(t_s)
        if self.watched and value != before:
            self.changes.append((t_s, value))
        self.edges.cut(t_s)
        if value != before:
            self.edges.step(t_s, rising=value > before)
        self.value, self.since_s, self.train = value, t_s, None

    def put_train(self, t_s: float, train: EdgeSource, *, inverted: bool) -> None:
        """Follow a pulse train from now on."""
        self.put(t_s, 1.0 if inverted else 0.0)
        self.edges.add(train, inverted=inverted)
        self.train = train

    def put_trains(self, train: Pulses, begins_s: Times, *, inverted: bool) -> None:
        """Trains that are over already, each `begins_s` later, from the idle level and back."""
        k = np.arange(train.n) * train.period_s
        begin, end = (
            (train.first_s + part_s + begins_s[:, None] + k).ravel()
            for part_s in (0.0, train.high_s)
        )
        self.edges.cut(float(begins_s[0]))
        self.edges.record(*((end, begin) if inverted else (begin, end)))
        self.value, self.since_s = float(inverted), float(end[-1])
        self.train = replace(train, first_s=train.first_s + float(begins_s[-1]))

    def change(self, t_s: float, period_s: float, first_part_s: float, *, inverted: bool) -> None:
        """Go on with other pulses when the present one ends.

        Source: NI-DAQmx Help, "Changing Pulse Width or Frequency during a Generation".
        """
        train, last = self.train, self.edges.last()
        if not isinstance(train, Pulses) or not isinstance(last, Pulses | Resumed):
            return
        n = float(np.clip(train.count(t_s), 0.0, train.n))
        end_s = train.first_s + n * train.period_s
        follows = Pulses(period_s, first_part_s, end_s, train.n - n)
        if n > 0.0:
            self.edges.replace_last(last.limited(n))
            self.edges.add(follows, inverted=inverted)
        else:  # its first pulse has not begun
            self.edges.replace_last(follows)
        self.train = follows

    def pause(self, t_s: float) -> None:
        """Stay at the present level, in the middle of a train."""
        self.edges.cut(t_s)

    def resume(self, paused_s: float, t_s: float) -> None:
        """Go on with what a pause has cut off."""
        train = self.train
        if isinstance(train, Pulses):
            inverted = self.edges.inverted
            before = {r: float(train.count(paused_s, rising=r)) for r in (True, False)}
            rest = Resumed(train, t_s - paused_s, before)
            self.edges.add(rest, inverted=inverted)
            self.train = rest.later

    def at(self, t_s: Times) -> Any:
        """The level at a time, or at an array of times."""
        level = self.edges(t_s)
        return float(level) if np.ndim(level) == 0 else level
