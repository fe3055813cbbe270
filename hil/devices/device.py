"""The interface of every instrument, and where it puts what it reads."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hil.frame import Column, Frame


@dataclass(frozen=True)
class Readings:
    """What the devices of a rig have read at the current tick, one slot a source.

    Attributes
    ----------
    forces_N : (F,) array
        NaN where a channel gave no reading.
    valid : (F + B,) bool array
        Force channels, then boards: there is a reading of this tick.
    ages_s : (D,) array
        Age of every device's last reading.
    cells_reported : (N,) uint8 array
        1 on, 0 off, 255 not known.
    board_faults : (B,) int array
        Faults that each board has latched.
    """

    forces_N: NDArray[np.float64]
    valid: NDArray[np.bool_]
    ages_s: NDArray[np.float64]
    cells_reported: NDArray[np.uint8]
    board_faults: NDArray[np.int64]


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

    def read(self, t_s: float) -> None:
        """Take the reading of the tick at t_s."""
        ...

    def write(self, t_s: float, cells: NDArray[np.uint8]) -> None:
        """Issue the command of the tick at t_s; devices that switch nothing ignore it."""
        ...

    def safe(self) -> None:
        """Switch everything off; may be called at any time and any number of times."""
        ...

    def close(self) -> None: ...


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
