"""The control stage of rigs without arrays: a PID from a channel to an output."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan, nan

import numpy as np
from numpy.typing import NDArray

from hil.control.pid import PidGains, since_reading_s
from hil.control.reference import Reference
from hil.loop.frame import Column, Commands, Frame


@dataclass(frozen=True)
class SignalLoop:
    """Configuration of one control loop.

    Attributes
    ----------
    reference_column, units : column of the set point and its unit
    channel, output : indices of the reading and of the command
    low, high : range of the output
    """

    reference: Reference
    gains: PidGains
    reference_column: str
    units: str
    channel: int
    output: int
    low: float
    high: float


class SignalPid:
    """u = Kp e + Ki int(e) dt + Kd d(e)/dt / (1 + T_f s) for each loop, e = reference - measured.

    The derivative acts on the measured signal, so a step of the set point gives no derivative kick.
    While an output is at the end of its range, or lags behind what was demanded because the guard
    limits its rate, the integral ignores errors that would push it further. A missing reading
    leaves the output unchanged; dt is the time since the last reading.
    """

    def __init__(self, loops: Sequence[SignalLoop], period_s: float) -> None:
        self._loops = loops
        self._period_s = period_s
        self.restart()

    @property
    def columns(self) -> list[Column]:
        return [
            Column(loop.reference_column, loop.units, "reference", "set point")
            for loop in self._loops
        ]

    def bind(self, frame: Frame, measured: NDArray[np.float64], commands: Commands) -> None:
        self._reference = frame.span([column.name for column in self.columns])
        self._measured = measured
        self._outputs = commands.outputs

    def restart(self) -> None:
        """Reset integrals and filters; outputs start idle and move at the guard's rate limit."""
        self._integral = [0.0] * len(self._loops)
        self._filtered = [nan] * len(self._loops)
        self._read_s = [nan] * len(self._loops)
        self._demanded = [nan] * len(self._loops)

    def step(self, t_s: float) -> None:
        for i, loop in enumerate(self._loops):
            wanted = self._reference[i] = loop.reference.at(t_s)
            measured = float(self._measured[loop.channel])
            if not isnan(measured):
                passed_s = since_reading_s(self._read_s[i], t_s, self._period_s)
                self._read_s[i] = t_s
                self._demanded[i] = self._command(i, passed_s, wanted - measured, measured)
                self._outputs[loop.output] = self._demanded[i]

    def _command(self, i: int, h: float, error: float, measured: float) -> float:
        loop = self._loops[i]
        g = loop.gains
        if isnan(self._filtered[i]):
            self._filtered[i] = measured
        change = h / (g.derivative_filter_s + h) * (measured - self._filtered[i])
        self._filtered[i] += change
        step = g.k_i_per_s * h * error
        u = g.k_p * error + self._integral[i] + step - g.k_d_s * change / h
        output = self._outputs[loop.output]
        is_most = u > loop.high or output < self._demanded[i]
        is_least = u < loop.low or output > self._demanded[i]
        if (is_most and step > 0.0) or (is_least and step < 0.0):
            u -= step
        else:
            self._integral[i] += step
        return min(max(u, loop.low), loop.high)
