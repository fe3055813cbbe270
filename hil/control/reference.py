"""References: force set points as functions of time."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from math import pi, sin
from typing import Protocol

import numpy as np


class Reference(Protocol):
    def force_N(self, t_s: float) -> float:
        """The set point at t_s."""
        ...

    def extremes_N(self, duration_s: float) -> tuple[float, float]:
        """Smallest and largest set point from 0 to duration_s."""
        ...


@dataclass(frozen=True)
class NoReference:
    """For runs that follow none: NaN."""

    def force_N(self, t_s: float) -> float:
        return float("nan")

    def extremes_N(self, duration_s: float) -> tuple[float, float]:
        return 0.0, 0.0


@dataclass(frozen=True)
class Steps:
    """Value `levels_N[i]` from `t_s[i]` on, 0 before the first."""

    t_s: Sequence[float]
    levels_N: Sequence[float]

    def force_N(self, t_s: float) -> float:
        i = bisect_right(self.t_s, t_s + 1e-9)
        return self.levels_N[i - 1] if i else 0.0

    def extremes_N(self, duration_s: float) -> tuple[float, float]:
        seen = [v for t, v in zip(self.t_s, self.levels_N, strict=True) if t <= duration_s]
        if not seen or self.t_s[0] > 0.0:
            seen.append(0.0)
        return min(seen), max(seen)


@dataclass(frozen=True)
class Ramp:
    """Straight lines between points; the first and last value hold outside."""

    t_s: Sequence[float]
    levels_N: Sequence[float]

    def force_N(self, t_s: float) -> float:
        i = bisect_right(self.t_s, t_s)
        if i == 0:
            return self.levels_N[0]
        if i == len(self.t_s):
            return self.levels_N[-1]
        t0, t1 = self.t_s[i - 1], self.t_s[i]
        a, b = self.levels_N[i - 1], self.levels_N[i]
        return a + (b - a) * (t_s - t0) / (t1 - t0)

    def extremes_N(self, duration_s: float) -> tuple[float, float]:
        seen = [v for t, v in zip(self.t_s, self.levels_N, strict=True) if t <= duration_s]
        seen += [self.force_N(0.0), self.force_N(duration_s)]
        return min(seen), max(seen)


@dataclass(frozen=True)
class Sine:
    """mean + amplitude sin(2 pi f t)."""

    mean_N: float
    amplitude_N: float
    frequency_Hz: float

    def force_N(self, t_s: float) -> float:
        return self.mean_N + self.amplitude_N * sin(2.0 * pi * self.frequency_Hz * t_s)

    def extremes_N(self, duration_s: float) -> tuple[float, float]:
        cycles = self.frequency_Hz * duration_s
        phase = np.linspace(0.0, min(cycles, 1.0), 1001)
        wave = self.amplitude_N * np.sin(2.0 * pi * phase)
        return self.mean_N + float(wave.min()), self.mean_N + float(wave.max())
