"""Two antagonist muscles that move one joint: planned activations plus a PID on the deviation.

    u_raise = clip(p_raise + w),  u_lower = clip(p_lower - w),
    w = Kp e + Ki int(e) dt + Kd de/dt / (1 + T_f s),  e(t) = planned(t - delay) - measured(t)

p are the planned activations; the planned signal is the response of the model to them
(`hil.systems.leg.plan`). So e contains only model errors and disturbances. The derivative is
filtered. The integrator stops (anti-windup) while both activations are saturated and the error
would drive them further. If a reading is missing, the outputs keep their values.
"""

from dataclasses import dataclass
from math import isnan, nan

from hil.control.pid import PidGains
from hil.control.reference import Reference
from hil.loop.frame import Column, Commands, Frame
from hil.mechanics.arrays import Array


@dataclass(frozen=True)
class Movement:
    """A plan with one row per period: the channel's signal and the activations of both muscles."""

    signal: Array
    raises: Array
    lowers: Array


@dataclass(frozen=True)
class Wiring:
    """Indices of reading and commands; names and unit of the columns."""

    channel: int
    raises: int
    lowers: int
    reference_column: str
    planned_column: str
    units: str


class Antagonists:
    """Control stage of one joint with two muscles.

    Parameters
    ----------
    low, high : (2,) ranges of the outputs that raise and lower
    delay_periods : delay of the channel in periods
    """

    def __init__(
        self,
        reference: Reference,
        movement: Movement,
        gains: PidGains,
        wiring: Wiring,
        low: tuple[float, float],
        high: tuple[float, float],
        period_s: float,
        delay_periods: int = 0,
    ) -> None:
        self._follows, self._movement, self._gains, self._at = reference, movement, gains, wiring
        self._low, self._high, self._period_s = low, high, period_s
        self._delay = delay_periods
        self._last = len(movement.signal) - 1
        self.restart()

    @property
    def columns(self) -> list[Column]:
        at = self._at
        return [
            Column(at.reference_column, at.units, "reference", "set point"),
            Column(at.planned_column, at.units, "reference", "response to the planned activations"),
        ]

    def bind(self, frame: Frame, measured: Array, commands: Commands) -> None:
        self._set_points = frame.span([column.name for column in self.columns])
        self._measured = measured
        self._outputs = commands.outputs

    def restart(self) -> None:
        """Reset the integrator and the filter."""
        self._integral, self._filtered = 0.0, nan

    def step(self, t_s: float) -> None:
        m, now = self._movement, min(round(t_s / self._period_s), self._last)
        self._set_points[0] = self._follows.at(t_s)
        self._set_points[1] = m.signal[now]
        measured = float(self._measured[self._at.channel])
        if isnan(measured):
            return
        w = self._correction(float(m.signal[max(now - self._delay, 0)]) - measured,
                             float(m.raises[now]), float(m.lowers[now]))  # fmt: skip
        low, high = self._low, self._high
        self._outputs[self._at.raises] = min(max(float(m.raises[now]) + w, low[0]), high[0])
        self._outputs[self._at.lowers] = min(max(float(m.lowers[now]) - w, low[1]), high[1])

    def _correction(self, error: float, raises: float, lowers: float) -> float:
        g, h = self._gains, self._period_s
        if isnan(self._filtered):
            self._filtered = error
        change = h / (g.derivative_filter_s + h) * (error - self._filtered)
        self._filtered += change
        step = g.k_i_per_s * h * error
        w = g.k_p * error + self._integral + step + g.k_d_s * change / h
        (low_up, low_down), (high_up, high_down) = self._low, self._high
        full_up = raises + w > high_up and lowers - w < low_down
        full_down = lowers - w > high_down and raises + w < low_up
        if (full_up and step > 0.0) or (full_down and step < 0.0):
            return w - step
        self._integral += step
        return w
