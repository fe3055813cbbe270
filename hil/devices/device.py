"""The interface of every instrument, and where it puts what it reads."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hil.frame import Column, Commands, Frame
from hil.signals import TROUBLES

ESTOP_OPEN = 1


@dataclass(frozen=True)
class Channel:
    """One measured signal of a rig, and the names of its columns.

    The first force channel is the rig's force; any other force is named after its channel.

    Attributes
    ----------
    suffix : str
        The unit at the end of its names, as `hil.frame.unit_suffix` gives it.
    force : {"", "first", "further"}
        Whether it is a force, and which.
    """

    name: str
    suffix: str
    force: Literal["", "first", "further"] = ""

    def column(self, role: str) -> str:
        """The column of this role, such as `force_measured_N` or `height_model_m`."""
        if self.force == "first":
            return f"force_{role}_N"
        own = f"{self.name}.force" if self.force else self.name
        return f"{own}_{role}{self.suffix}"


@dataclass(frozen=True)
class Readings:
    """What the devices of a rig have read at the current tick, one slot a source.

    Attributes
    ----------
    measured : (S,) array
        Every channel in its own unit; NaN where it gave no reading.
    valid : (S + B,) bool array
        Channels, then boards: there is a reading of this tick.
    ages_s : (D,) array
        Age of every device's last reading.
    cells_reported : (N,) uint8 array
        1 on, 0 off, 255 not known.
    board_faults : (B,) int array
        Faults that each board has latched.
    card_faults : (C,) int array
        What is wrong with each card at this tick: bit 0 an open e-stop loop, the others a channel.
    """

    measured: NDArray[np.float64]
    valid: NDArray[np.bool_]
    ages_s: NDArray[np.float64]
    cells_reported: NDArray[np.uint8]
    board_faults: NDArray[np.int64]
    card_faults: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


@dataclass(frozen=True)
class RigLayout:
    """What a rig consists of, in the order of its readings and commands.

    Attributes
    ----------
    channels : every measured signal
    outputs : columns of the actuators' outputs
    boards : names of the driver boards
    devices : names of all devices
    n_cells : int
    """

    channels: tuple[Channel, ...]
    outputs: tuple[str, ...]
    boards: tuple[str, ...]
    devices: tuple[str, ...]
    n_cells: int

    @property
    def cards(self) -> tuple[str, ...]:
        """Names of the data acquisition cards."""
        return tuple(name for name in self.devices if name not in self.boards)

    def bind(self, frame: Frame) -> tuple[Readings, Commands]:
        """Slots for the readings, and views of the row for the commands."""
        none = np.zeros(0, dtype=np.uint8)
        readings = Readings(
            measured=np.full(len(self.channels), np.nan),
            valid=np.zeros(len(self.channels) + len(self.boards), dtype=bool),
            ages_s=np.zeros(len(self.devices)),
            cells_reported=frame.cells("cells_reported") if self.n_cells else none,
            board_faults=np.zeros(len(self.boards), dtype=np.int64),
            card_faults=np.zeros(len(self.cards), dtype=np.int64),
        )
        cells = frame.cells("cells_commanded") if self.n_cells else none
        return readings, Commands(cells, frame.span(self.outputs))


@dataclass(frozen=True)
class Remark:
    """What a device has to say to people.

    Attributes
    ----------
    level : {"info", "warning"}
    name, value : a figure among it that the recording keeps with its inputs, such as a zero
    """

    level: str
    text: str
    name: str = ""
    value: float = math.nan


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

    def arm(self) -> None:
        """Allow switching, at the start of a run; devices that switch nothing ignore it."""
        ...

    def remarks(self) -> list[Remark]:
        """What it found at connecting and arming, each once."""
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


class RawSink(Protocol):
    """Where every sample of a device goes that samples faster than the loop ticks."""

    def push_many(self, rows: NDArray[np.void]) -> None: ...


@runtime_checkable
class Sampler(Protocol):
    """A device that may sample faster than the loop ticks."""

    name: str

    @property
    def raw_dtype(self) -> np.dtype[np.void] | None:
        """A sample of every channel with the device's time `t_s`; None where it does not."""
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
