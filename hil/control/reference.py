"""References: set points as functions of time."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from math import pi, sin
from typing import Protocol

import numpy as np


class Reference(Protocol):
    def at(self, t_s: float) -> float:
        """The set point at t_s."""
        ...

    def extremes(self, duration_s: float) -> tuple[float, float]:
        """Smallest and largest set point from 0 to duration_s."""
        ...


@dataclass(frozen=True)
class NoReference:
    """For runs that follow none: NaN."""

    def at(self, t_s: float) -> float:
        return float("nan")

    def extremes(self, duration_s: float) -> tuple[float, float]:
        return 0.0, 0.0


@dataclass(frozen=True)
class Steps:
    """Value `levels[i]` from `t_s[i]` on, 0 before the first."""

    t_s: Sequence[float]
    levels: Sequence[float]

    def at(self, t_s: float) -> float:
        i = bisect_right(self.t_s, t_s + 1e-9)
        return self.levels[i - 1] if i else 0.0

    def extremes(self, duration_s: float) -> tuple[float, float]:
        seen = [v for t, v in zip(self.t_s, self.levels, strict=True) if t <= duration_s]
        if not seen or self.t_s[0] > 0.0:
            seen.append(0.0)
        return min(seen), max(seen)


@dataclass(frozen=True)
class Ramp:
    """Straight lines between points; the first and last value hold outside."""

    t_s: Sequence[float]
    levels: Sequence[float]

    def at(self, t_s: float) -> float:
        i = bisect_right(self.t_s, t_s)
        if i == 0:
            return self.levels[0]
        if i == len(self.t_s):
            return self.levels[-1]
        t0, t1 = self.t_s[i - 1], self.t_s[i]
        a, b = self.levels[i - 1], self.levels[i]
        return a + (b - a) * (t_s - t0) / (t1 - t0)

    def extremes(self, duration_s: float) -> tuple[float, float]:
        seen = [v for t, v in zip(self.t_s, self.levels, strict=True) if t <= duration_s]
        seen += [self.at(0.0), self.at(duration_s)]
        return min(seen), max(seen)


@dataclass(frozen=True)
class Sine:
    """mean + amplitude sin(2 pi f t)."""

    mean: float
    amplitude: float
    frequency_Hz: float

    def at(self, t_s: float) -> float:
        return self.mean + self.amplitude * sin(2.0 * pi * self.frequency_Hz * t_s)

    def extremes(self, duration_s: float) -> tuple[float, float]:
        cycles = self.frequency_Hz * duration_s
        phase = np.linspace(0.0, min(cycles, 1.0), 1001)
        wave = self.amplitude * np.sin(2.0 * pi * phase)
        return self.mean + float(wave.min()), self.mean + float(wave.max())


@dataclass(frozen=True)
class Chirp:
    """mean + amplitude sin(2 pi (f_0 t + (f_1 - f_0) t^2 / (2 T))), f rising from f_0 to f_1 in T.

    After T the frequency stays at f_1, without a jump of phase.
    """

    mean: float
    amplitude: float
    from_Hz: float
    to_Hz: float
    sweep_s: float

    def cycles(self, t_s: float) -> float:
        swept_s = min(t_s, self.sweep_s)
        rise = (self.to_Hz - self.from_Hz) * swept_s**2 / (2.0 * self.sweep_s)
        return self.from_Hz * swept_s + rise + self.to_Hz * (t_s - swept_s)

    def at(self, t_s: float) -> float:
        return self.mean + self.amplitude * sin(2.0 * pi * self.cycles(t_s))

    def extremes(self, duration_s: float) -> tuple[float, float]:
        cycles = self.cycles(duration_s)  # rising in time, so that every phase up to it occurs
        phase = 2.0 * pi * np.linspace(0.0, min(cycles, 1.0), 1001)
        wave = self.amplitude * np.sin(phase)
        return self.mean + float(wave.min()), self.mean + float(wave.max())


@dataclass(frozen=True)
class Reach:
    """A point-to-point reach from from_value to to_value and, after a hold, back.

    With tau = (t - start) / move, the movement of least jerk:

        f = f_0 + (f_1 - f_0) (10 tau^3 - 15 tau^4 + 6 tau^5)

    Source: Flash & Hogan 1985, J. Neuroscience 5(7), eq. (3), for one coordinate.
    """

    from_value: float
    to_value: float
    start_s: float
    move_s: float
    hold_s: float
    returns: bool

    def at(self, t_s: float) -> float:
        progress = _least_jerk((t_s - self.start_s) / self.move_s)
        back = 0.0
        if self.returns:
            back = _least_jerk((t_s - self.start_s - self.move_s - self.hold_s) / self.move_s)
        return self.from_value + (self.to_value - self.from_value) * (progress - back)

    def extremes(self, duration_s: float) -> tuple[float, float]:
        seen = [self.from_value, self.at(min(duration_s, self.start_s + self.move_s))]
        return min(seen), max(seen)


@dataclass(frozen=True)
class Ahead:
    """The set point that another reference has `preview_s` later: r(t + preview)."""

    reference: Reference
    preview_s: float

    def at(self, t_s: float) -> float:
        return self.reference.at(t_s + self.preview_s)

    def extremes(self, duration_s: float) -> tuple[float, float]:
        """Extremes up to preview_s after the end."""
        return self.reference.extremes(duration_s + self.preview_s)


def _least_jerk(tau: float) -> float:
    tau = min(1.0, max(0.0, tau))
    return tau**3 * (10.0 - 15.0 * tau + 6.0 * tau**2)
