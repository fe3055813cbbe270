"""The interface of every instrument."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hil.frame import Column, Commands, Frame
from hil.signals import TROUBLES
from hil.slots import Readings

ESTOP_OPEN = 1


@dataclass(frozen=True)
class Remark:
    """What a device has to say to people.

    Attributes
    ----------
    level : {"info", "warning"}
    name, value, about : a figure that the recording keeps with its inputs: the `zero` of a channel
    """

    level: str
    text: str
    name: str = ""
    value: float = math.nan
    about: str = ""


class Device(Protocol):
    """An instrument. Every method may raise DeviceError, and nothing else."""

    name: str
    simulated: bool

    @property
    def columns(self) -> list[Column]:
        """What it adds to every row."""
        ...

    def open(self) -> None:
        """Connect; energises nothing."""
        ...

    def bind(self, frame: Frame, readings: Readings) -> None:
        """Learn where to write, before the first tick."""
        ...

    def prove(self, say: Callable[[str], None]) -> list[str]:
        """Before a run: show what protects it, nothing on; what was proved, one phrase each.

        Parameters
        ----------
        say : asks somebody at the bench
        """
        ...

    def arm(self) -> None:
        """Allow switching, at the start of a run; devices that switch nothing ignore it."""
        ...

    def remarks(self) -> list[Remark]:
        """What it found since it was asked last: at connecting, at arming, in the run."""
        ...

    def read(self, t_s: float) -> None:
        """Take the reading of the tick at t_s."""
        ...

    def write(self, t_s: float, commands: Commands) -> None:
        """Issue the commands of the tick at t_s; devices that move nothing ignore them."""
        ...

    def safe(self) -> None:
        """Switch everything off; may be called at any time and any number of times."""
        ...

    def close(self) -> None: ...


@runtime_checkable
class Slow(Protocol):
    """A device that gives power, or lets it through: on before anything is armed."""

    def come_on(self) -> None:
        """Come on; told again, nothing changes."""
        ...

    def wait(self) -> None:
        """Return when it is on, at once in a tick, where it is known to be; DeviceError if not."""
        ...

    def ready(self) -> bool:
        """Whether it is on."""
        ...

    def alive(self) -> None:
        """The loop lives: whatever switches off without it has to hear so, now and then."""
        ...

    def cut(self) -> None:
        """Go off, at once; `safe` sees to it that it did."""
        ...


class RawSink(Protocol):
    """Where every sample of a device goes that samples faster than the loop ticks."""

    def push_many(self, rows: NDArray[np.void]) -> None: ...


@dataclass(frozen=True)
class RawSamples:
    """What a device samples faster than the loop ticks.

    Attributes
    ----------
    dtype : structured
        A sample of every channel with the device's own time `t_s`.
    units : dict of str
        Of every field.
    per_tick : int
    rate_Hz : float
    simulated : bool
    """

    dtype: np.dtype[np.void]
    units: Mapping[str, str]
    per_tick: int
    rate_Hz: float
    simulated: bool


@runtime_checkable
class Sampler(Protocol):
    """A device that may sample faster than the loop ticks."""

    name: str

    @property
    def raw_samples(self) -> RawSamples | None:
        """What it samples; None where it gives one reading a tick."""
        ...

    def record_raw(self, sink: RawSink) -> None:
        """Give every sample to this as well, from the next `open` on."""
        ...


def card_columns(
    name: str, analog: Sequence[str], lines: Sequence[str], simulated: bool
) -> list[Column]:
    """The columns that every card has beside its readings.

    The bits of `<card>_fault_bits` are an open e-stop, then the troubles of every analogue input;
    those of `<card>_line_bits` are the digital lines that are high.
    """
    flags = ("estop_open", *(f"{c}_{t}" for c in analog for t in TROUBLES.values()))
    about = f"what is wrong with {name} at this tick"
    columns = [Column(f"{name}_fault_bits", "1", "fault", about, flags=flags, simulated=simulated)]
    if lines:
        about = f"digital lines of {name} that are high"
        columns.append(
            Column(f"{name}_line_bits", "1", "measured", about, flags=tuple(lines),
                   simulated=simulated)
        )  # fmt: skip
    return columns


def card_fault(i: int, troubles: int) -> int:
    """The fault bits that these troubles of analogue input i make."""
    return troubles << (1 + len(TROUBLES) * i)


def time_columns(name: str, simulated: bool) -> list[Column]:
    """The columns that every device has."""
    return [
        Column(
            f"{name}_age_s",
            "s",
            "timing",
            f"age of {name}'s reading at the tick",
            simulated=simulated,
        ),
        Column(
            f"{name}_t_s", "s", "timing", f"{name}'s own clock at its reading", simulated=simulated
        ),
    ]
