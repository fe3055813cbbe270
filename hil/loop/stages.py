"""Interfaces of the stages of a tick: rig, estimator, control stage."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hil.loop.channels import Readings, RigLayout
from hil.loop.frame import Column, Commands, Frame
from hil.loop.states import States


@dataclass(frozen=True)
class Message:
    """A message of a device to the operator.

    Attributes
    ----------
    name, value, about : a value to record in `/inputs`, such as the `zero` of channel `about`;
        none if `name` is empty
    """

    level: str
    text: str
    name: str = ""
    value: float = math.nan
    about: str = ""


class LoopRig(Protocol):
    """A rig in a run: devices on a bench, simulated devices, or a replayed recording."""

    states: States

    @property
    def layout(self) -> RigLayout: ...

    @property
    def readings(self) -> Readings: ...

    @property
    def commands(self) -> Commands: ...

    def bind(self, frame: Frame) -> None:
        """Set the row that readings are written to and commands are taken from."""
        ...

    def arm(self) -> None:
        """Arm all devices at the start of a run, so that they execute commands."""
        ...

    def ready(self) -> bool:
        """Whether all power for the cells is on."""
        ...

    def has_cooled(self) -> bool:
        """Whether every board's heat budget permits arming."""
        ...

    def read(self, t_s: float) -> None:
        """Take the readings of the tick at t_s."""
        ...

    def write(self, t_s: float) -> None:
        """Issue the commands of the tick at t_s."""
        ...

    def tare(self, channel: str, newtons: float) -> None:
        """Subtract this force from a channel's readings from now on."""
        ...

    def has_news(self) -> bool:
        """Whether a device has a message; called at every tick."""
        ...

    def messages(self) -> list[tuple[str, Message]]:
        """Messages of the devices since the last call, with their names."""
        ...

    def troubles(self, on_s: NDArray[np.float64]) -> dict[str, list[str]]:
        """Details from the devices about the faults of this tick, by the fault's name."""
        ...


class Estimator(Protocol):
    """The stage of the tick that simulates the twin and estimates its state."""

    @property
    def columns(self) -> list[Column]: ...

    def bind(self, frame: Frame, readings: Readings, commands: Commands) -> None:
        """Set where to read and to write."""
        ...

    def step(self, n_periods: int) -> None:
        """Advance to the current tick, `n_periods` after the last one."""
        ...


@runtime_checkable
class StepsRows(Protocol):
    """An estimator that can step through the rows of a recording in one compiled call."""

    def step_rows(
        self, cells: NDArray[np.uint8], measured: NDArray[np.float64]
    ) -> NDArray[np.float64] | None:
        """Values (n, K) of its K columns at n successive ticks, as `step` gives them one by one.

        Parameters
        ----------
        cells : (n, N) array, cells on as reported
        measured : (n, S) array, reading of every channel; NaN if there is none

        Returns
        -------
        None if this estimator must take every step by itself; then nothing has changed.
        """
        ...


@runtime_checkable
class HotStart(Protocol):
    """An estimator whose SMA wires can start hot."""

    def assume_hot(self, wire_C: NDArray[np.float64]) -> None:
        """Set wires to austenite at these temperatures, (N,); NaN leaves a wire unchanged."""
        ...


class Control(Protocol):
    """The stage of the tick that turns set points and readings into commands.

    It only proposes commands: the guard can override them.
    """

    @property
    def columns(self) -> list[Column]:
        """Columns that it adds to every row: set points and demanded values."""
        ...

    def bind(self, frame: Frame, measured: NDArray[np.float64], commands: Commands) -> None:
        """Set where readings are (NaN if there is none) and where commands go."""
        ...

    def step(self, t_s: float) -> None:
        """One tick: write set points and proposed commands."""
        ...

    def restart(self) -> None:
        """Reset the controller's state, since the rig was idle and is armed again."""
        ...


class SetPoint(Protocol):
    """A set point that an operator can override.

    Attributes
    ----------
    held : the overriding set point; NaN: follow the configured one
    """

    held: float


@runtime_checkable
class Steered(Protocol):
    """A control stage whose set points can be overridden, by the names of their columns."""

    @property
    def set_points(self) -> Mapping[str, SetPoint]: ...

    def set_gain(self, key: str, value: float) -> None:
        """Change a gain, by its key in [controller].

        Raises
        ------
        KeyError
            There is no such gain.
        """
        ...
