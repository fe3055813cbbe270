"""What a window may change about control in mid-run: set points held, gains."""

from dataclasses import dataclass, field
from math import isnan, nan
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hil.control.reference import Reference


@dataclass
class Steerable:
    """A reference that can be held at a value.

    Attributes
    ----------
    held : float
        The set point while it is a number; the configured one is followed at NaN.
    """

    configured: Reference
    held: float = field(default=nan)

    def at(self, t_s: float) -> float:
        """The set point at t_s."""
        return self.configured.at(t_s) if isnan(self.held) else self.held

    def extremes(self, duration_s: float) -> tuple[float, float]:
        """Of the configured reference."""
        return self.configured.extremes(duration_s)


@runtime_checkable
class Selective(Protocol):
    """A controller of cells that leaves out those which cannot be used.

    Attributes
    ----------
    usable : (N,) uint8 array
        0 for cells that have failed; looked at in every step, changed by whoever finds out.
    """

    usable: NDArray[np.uint8]


@runtime_checkable
class Tunable(Protocol):
    """A controller whose gains may change while it runs."""

    def set_gain(self, key: str, value: float) -> None: ...
