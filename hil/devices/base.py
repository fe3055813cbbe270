"""The interface of every instrument."""

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hil.calibration.signal_chain import TROUBLES
from hil.loop.channels import Readings
from hil.loop.frame import Column, Commands, Frame
from hil.loop.guard import EXPIRED, STUCK
from hil.loop.stages import Message
from hil.record.raw_samples import RawSamples

ESTOP_OPEN = 1


class Device(Protocol):
    """An instrument. Its methods may raise DeviceError and no other exception."""

    name: str
    simulated: bool

    @property
    def columns(self) -> list[Column]:
        """Columns it adds to every row."""
        ...

    def open(self) -> None:
        """Connect to the instrument without switching anything on."""
        ...

    def bind(self, frame: Frame, readings: Readings) -> None:
        """Set where to write, before the first tick."""
        ...

    def self_test(self, say: Callable[[str], None]) -> list[str]:
        """Test its protection before a run, with nothing on; returns one phrase per result.

        Parameters
        ----------
        say : prompts the operator at the bench
        """
        ...

    def arm(self) -> None:
        """Allow switching, at the start of a run; devices that switch nothing ignore it."""
        ...

    def messages(self) -> list[Message]:
        """New messages since the last call: from connecting, arming or the run."""
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
class PowerSource(Protocol):
    """A device that supplies or switches power: on before anything is armed."""

    def enable(self) -> None:
        """Switch on; idempotent."""
        ...

    def wait(self) -> None:
        """Block until it is on; never blocks inside a tick. DeviceError if it does not come on."""
        ...

    def ready(self) -> bool:
        """Whether it is on."""
        ...

    def alive(self) -> None:
        """Feed the watchdog of this device."""
        ...

    def disable(self) -> None:
        """Switch off at once; `safe` verifies it."""
        ...


class RawSink(Protocol):
    """Destination of all samples of a device that samples faster than the loop."""

    def push_many(self, rows: NDArray[np.void]) -> None: ...


@runtime_checkable
class Sampler(Protocol):
    """A device that may sample faster than the loop."""

    name: str

    @property
    def raw_samples(self) -> RawSamples | None:
        """Description of its samples; None if it gives one reading per tick."""
        ...

    def record_raw(self, sink: RawSink) -> None:
        """Also push every sample to `sink`, from the next `open` on."""
        ...


def card_columns(
    name: str,
    analog: Sequence[str],
    lines: Sequence[str],
    simulated: bool,
    read_back: Sequence[str] = (),
) -> list[Column]:
    """Columns of a card in addition to its readings.

    The bits of `<card>_fault_bits` are an open e-stop, then the troubles of every analogue input,
    then a stuck gate of every cell that is read back, and a watchdog that has expired.
    The bits of `<card>_line_bits` are the digital lines that are high.
    """
    flags = (
        "estop_open",
        *(f"{c}_{t}" for c in analog for t in TROUBLES.values()),
        *(f"{cell}{STUCK}" for cell in read_back),
        EXPIRED,
    )
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
    """Fault bits of the card for these troubles of analogue input i."""
    return troubles << (1 + len(TROUBLES) * i)


def time_columns(name: str, simulated: bool) -> list[Column]:
    """Timing columns of a device."""
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
