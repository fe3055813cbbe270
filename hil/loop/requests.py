"""Requests from a window: they take effect between two ticks and are recorded.

Set points and gains go to the control stage, arming to the guard, a tare to the rig. A request
that takes effect is recorded in `/inputs` with its tick, so that a replay applies it at the same
tick. A refused request is recorded as an event with the reason.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite, isnan
from typing import Protocol

from hil.loop.channels import RigLayout
from hil.loop.guard import Guard
from hil.loop.stages import Control, Steered

TARE_SHARE_MAX = 0.05  # largest tare as a fraction of the guard's largest force

Request = tuple[str, float, str]


class RequestChannel(Protocol):
    """Source of requests, and destination of their results."""

    def requests(self, tick: int) -> Sequence[Request]:
        """Requests for this tick, each as name, value and text."""
        ...

    def input(self, tick: int, t_s: float, name: str, value: float, text: str = "") -> None:
        """Record a change that took effect."""
        ...

    def event(self, t_s: float, level: str, source: str, text: str) -> None:
        """Record an event."""
        ...


class Tared(Protocol):
    """A rig whose force channels can be set to zero."""

    @property
    def layout(self) -> RigLayout:
        """Its channels; a tare without a name is that of its controlled force."""
        ...

    def tare(self, channel: str, newtons: float) -> None:
        """Subtract a force from the channel's readings; ValueError with the reason if refused."""
        ...


@dataclass
class Stop:
    """Set by a signal or a window to end the run between two ticks.

    A signal to the process means more than this run: when the rig is off, `pass_on` hands it to
    whatever called the run, such as a loop over many.
    """

    reason: str = ""
    by_signal: bool = False

    def pass_on(self) -> None:
        """Raise KeyboardInterrupt if it was a signal."""
        if self.by_signal:
            raise KeyboardInterrupt(self.reason)


@dataclass
class Inputs:
    """Applies requests.

    Attributes
    ----------
    set_points : lowest and highest allowed value of every set point, by column
    tare_max_N : largest total tare of a force
    measured : function for the last reading of a set point's quantity, by column
    was_armed : whether the run has been armed, or starts armed
    """

    channel: RequestChannel
    control: Control
    guard: Guard
    rig: Tared
    set_points: dict[str, tuple[float, float]]
    tare_max_N: float
    measured: Mapping[str, Callable[[], float]] = field(default_factory=dict)
    stop: Stop = field(default_factory=Stop)
    was_armed: bool = False
    _tared_N: dict[str, float] = field(default_factory=dict)

    def apply(self, tick: int, t_s: float) -> bool:
        """Apply all requests for this tick; returns whether the run continues."""
        for name, value, text in self.channel.requests(tick):
            try:
                self._apply(name, value, text)
            except ValueError as why:
                self.channel.event(t_s, "warning", "window", f"refused: {name}: {why}")
            else:
                if name != "stop":
                    self.channel.input(tick, t_s, name, value, text)
        if self.stop.reason:
            self.channel.input(tick, t_s, "stop", 1.0, self.stop.reason)
            return False
        return True

    def _apply(self, name: str, value: float, text: str) -> None:
        if name in ("note", "start"):
            return
        if name == "stop":
            self.stop.reason = text or "a window"
        elif name == "arm":
            self._arm(value)
        elif name == "tare":
            self._tare(text, _finite(value))
        elif name.startswith("controller."):
            self._set_gain(name.removeprefix("controller."), value)
        else:
            self._hold(name, value)

    def _arm(self, value: float) -> None:
        if value not in (0.0, 1.0):
            raise ValueError(f"{value:g} is neither 0 nor 1")
        if value and self.guard.fault_bits:
            raise ValueError("the guard has tripped: start a new run")
        if not value:
            self.guard.disarm()
        elif not self.guard.armed:
            if not self.guard.arm():
                raise ValueError("the rig has not passed its self-test: start a new run")
            self.control.restart()
            if self.was_armed:
                self._hold_where_it_is()
            self.was_armed = True

    def _hold_where_it_is(self) -> None:
        """After re-arming, hold the last reading until the next request for a set point."""
        set_points = self.control.set_points if isinstance(self.control, Steered) else {}
        for name, set_point in set_points.items():
            if name in self.measured and isfinite(now := self.measured[name]()):
                low, high = self.set_points[name]
                set_point.held = min(max(now, low), high)

    def _tare(self, channel: str, newtons: float) -> None:
        if self.guard.commands_anything:
            raise ValueError("only while every cell is off and every output is idle")
        name = channel or self.rig.layout.force
        total_N = self._tared_N.get(name, 0.0) + newtons
        if abs(total_N) > self.tare_max_N:
            raise ValueError(
                f"a total tare of {total_N:g} N exceeds {self.tare_max_N:g} N, and the guard "
                "checks tared forces: remove the load, or calibrate"
            )
        self.rig.tare(channel, newtons)
        self.guard.tare(self.rig.layout.index(name), newtons)
        self._tared_N[name] = total_N

    def _set_gain(self, key: str, value: float) -> None:
        if not isinstance(self.control, Steered):
            raise ValueError("this control stage has no gains")
        if not 0.0 <= _finite(value):
            raise ValueError(f"{value:g} is below zero")
        try:
            self.control.set_gain(key, value)
        except KeyError:
            raise ValueError("this controller has no such gain") from None

    def _hold(self, name: str, value: float) -> None:
        set_points = self.control.set_points if isinstance(self.control, Steered) else {}
        if name not in set_points:
            known = ", ".join((*set_points, "controller.<gain>", "arm", "tare", "note", "stop"))
            raise ValueError(f"unknown: choose from {known}")
        low, high = self.set_points[name]
        if not (isnan(value) or low <= value <= high):
            raise ValueError(f"{value:g} is outside {low:g} to {high:g}")
        set_points[name].held = value


def _finite(value: float) -> float:
    if not isfinite(value):
        raise ValueError(f"{value:g} is not a finite number")
    return value
