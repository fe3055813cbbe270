"""Two antagonist muscles that move one joint: planned activations plus a PID on the deviation.

    added:     u_raise = clip(p_raise + w),            u_lower = clip(p_lower - w)
    relative:  u_raise = clip((p_raise + c) e^w - c),  u_lower = clip((p_lower + c) e^-w - c)
    w = Kp e + Ki int(e) dt + Kd de/dt / (1 + T_f s),  e(t) = planned(t - delay) - measured(t)

p are the planned activations; the planned signal is the response of the model's joint to them
(`hil.systems.leg.plan`). So e contains only model errors, disturbances and motion of other joints.
The derivative is filtered. The integrator stops (anti-windup) while both activations are saturated
and the error would drive them further. If a reading is missing, the outputs keep their values.

A muscle that is short needs more activation for the same force, F = q F_max F_isom(l_CE). Equal
relative changes of q, not equal changes, therefore change the joint's moment by about as much in
every pose. c is the activation below which changes are absolute, so that relaxed muscles respond.
"""

from dataclasses import dataclass
from math import exp, isnan, log, nan

from hil.control.pid import PidGains, since_reading_s
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
    """Indices of reading and commands; names and unit of the columns.

    Attributes
    ----------
    low, high : (2,) ranges of the outputs that raise and lower
    delay_periods : delay of the channel in periods
    """

    channel: int
    raises: int
    lowers: int
    low: tuple[float, float]
    high: tuple[float, float]
    delay_periods: int
    reference_column: str
    planned_column: str
    units: str


class Antagonists:
    """Control stage of one joint with two muscles.

    Parameters
    ----------
    relative_from : c of a relative correction; None: the correction is added
    """

    def __init__(
        self,
        reference: Reference,
        movement: Movement,
        gains: PidGains,
        wiring: Wiring,
        period_s: float,
        relative_from: float | None = None,
    ) -> None:
        self._follows, self._movement, self._gains, self._at = reference, movement, gains, wiring
        self._low, self._high, self._period_s = wiring.low, wiring.high, period_s
        self._delay, self._relative_from = wiring.delay_periods, relative_from
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
        self._integral = 0.0
        self._filtered = self._read_s = nan

    def step(self, t_s: float) -> None:
        m, now = self._movement, min(round(t_s / self._period_s), self._last)
        self._set_points[0] = self._follows.at(t_s)
        self._set_points[1] = m.signal[now]
        measured = float(self._measured[self._at.channel])
        if isnan(measured):
            return
        passed_s = since_reading_s(self._read_s, t_s, self._period_s)
        self._read_s = t_s
        outputs, at = self._outputs, self._at
        outputs[at.raises], outputs[at.lowers] = self._corrected(
            float(m.signal[max(now - self._delay, 0)]) - measured, passed_s,
            float(m.raises[now]), float(m.lowers[now]),
        )  # fmt: skip

    def _corrected(
        self, error: float, h: float, raises: float, lowers: float
    ) -> tuple[float, float]:
        """Return both activations within their ranges; `h` is the time since the last reading."""
        g = self._gains
        if isnan(self._filtered):
            self._filtered = error
        change = h / (g.derivative_filter_s + h) * (error - self._filtered)
        self._filtered += change
        step = g.k_i_per_s * h * error
        w = g.k_p * error + self._integral + step + g.k_d_s * change / h
        up, down = self._moved(raises, lowers, w)
        (low_up, low_down), (high_up, high_down) = self._low, self._high
        full_up = up > high_up and down < low_down
        full_down = down > high_down and up < low_up
        if (full_up and step > 0.0) or (full_down and step < 0.0):
            up, down = self._moved(raises, lowers, w - step)
        else:
            self._integral += step
        return min(max(up, low_up), high_up), min(max(down, low_down), high_down)

    def _moved(self, raises: float, lowers: float, w: float) -> tuple[float, float]:
        c = self._relative_from
        if c is None:
            return raises + w, lowers - w
        full = log((1.0 + c) / c)  # moves every activation beyond 0 or 1
        w = min(max(w, -full), full)
        return (raises + c) * exp(w) - c, (lowers + c) * exp(-w) - c
