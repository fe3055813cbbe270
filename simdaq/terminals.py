"""Signals on a card's terminals: inputs, their faults, outputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Times = Any  # a time in s or an array of them
Source = float | Callable[[Times], Any]
Fault = Literal["stuck", "high rail", "low rail"]


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


@dataclass(frozen=True)
class Pulses:
    """A regular pulse train on a digital line: `n` pulses, each high first `high_s`, then low.

    The first rising edge is at `first_s`.
    """

    period_s: float
    high_s: float
    first_s: float = 0.0
    n: float = np.inf

    def rising(self, after_s: float, until_s: float) -> NDArray[np.float64]:
        """Times of rising edges in (after_s, until_s]."""
        return self._edges(after_s, until_s, self.first_s)

    def falling(self, after_s: float, until_s: float) -> NDArray[np.float64]:
        """Times of falling edges in (after_s, until_s]."""
        return self._edges(after_s, until_s, self.first_s + self.high_s)

    def _edges(self, after_s: float, until_s: float, first_s: float) -> NDArray[np.float64]:
        tiny = 1e-9
        first = max(np.floor((after_s - first_s) / self.period_s + tiny) + 1.0, 0.0)
        last = min(np.floor((until_s - first_s) / self.period_s + tiny), self.n - 1.0)
        return first_s + self.period_s * np.arange(first, last + 1.0)

    def count(self, t_s: Times) -> Any:
        """Rising edges up to and including t_s."""
        cycles = np.floor((np.asarray(t_s) - self.first_s) / self.period_s + 1e-9) + 1.0
        return np.clip(cycles, 0.0, self.n)

    def __call__(self, t_s: Times) -> Any:
        """The level, 0.0 or 1.0."""
        since_s = np.asarray(t_s) - self.first_s
        k = np.floor(since_s / self.period_s + 1e-9)
        inside = since_s - k * self.period_s < self.high_s - 1e-9 * self.period_s
        return np.where(inside & (k >= 0.0) & (k < self.n), 1.0, 0.0)


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
    train: Pulses | None = None
    n_before: float = 0.0  # rising edges of earlier trains
    past: Pulses | None = None  # the last train, which others may still have to hear
    inverted: bool = False
    _block_s: NDArray[np.float64] | None = None  # times of the last block, with values before it
    _block: NDArray[np.float64] | None = None

    def put(self, t_s: float, value: float) -> None:
        if self.watched and value != self.value:
            self.changes.append((t_s, value))
        self._block_s = np.array([-np.inf, t_s])
        self._block = np.array([self.at(t_s), value])
        self.value, self.since_s = value, t_s
        self._end_train(t_s)

    def _end_train(self, t_s: float) -> None:
        if self.train is not None:
            self.n_before += float(self.train.count(t_s))
            self.past = self.train
        self.train = None

    def count(self, t_s: Times) -> Any:
        """Rising edges of all pulse trains so far."""
        return self.n_before + (0.0 if self.train is None else self.train.count(t_s))

    def put_train(self, t_s: float, train: Pulses, *, inverted: bool) -> None:
        """Follow a pulse train from now on; its edges are not recorded among the changes."""
        self._end_train(t_s)
        self.since_s, self.train, self.inverted = t_s, train, inverted

    @property
    def heard(self) -> Pulses | None:
        """The pulse train that goes out, or the last one that did."""
        return self.train or self.past

    def put_block(self, t_s: NDArray[np.float64], values: NDArray[np.float64]) -> None:
        """Take the levels that a clocked generation put out in one step."""
        if not len(t_s):
            return
        if self.watched:
            before = np.concatenate(([self.value], values[:-1]))
            kept = values != before
            self.changes += zip(t_s[kept].tolist(), values[kept].tolist(), strict=True)
        self._block_s = np.concatenate(([-np.inf], t_s))
        self._block = np.concatenate(([self.value], values))
        self.value, self.since_s = float(values[-1]), float(t_s[-1])
        self.train = None

    def at(self, t_s: Times) -> Any:
        """The level at a time, or at an array of times within the last step."""
        if self.train is not None:
            level = self.train(t_s)
            level = 1.0 - level if self.inverted else level
            return float(level) if isinstance(t_s, float) else level
        if isinstance(t_s, float) or self._block_s is None or self._block is None:
            return self.value
        return self._block[np.searchsorted(self._block_s, t_s, side="right") - 1]
