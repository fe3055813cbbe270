"""Changes that a window may make during a run: fixed set points, gains."""

from dataclasses import dataclass, field
from math import isnan, nan
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hil.control.reference import Reference


@dataclass
class Steerable:
    """A reference that can be fixed at a value.

    Attributes
    ----------
    held : the fixed set point; NaN follows the configured reference
    """

    configured: Reference
    held: float = field(default=nan)

    def at(self, t_s: float) -> float:
        """Set point at t_s."""
        return self.configured.at(t_s) if isnan(self.held) else self.held

    def extremes(self, duration_s: float) -> tuple[float, float]:
        """Extremes of the configured reference."""
        return self.configured.extremes(duration_s)


@runtime_checkable
class Selective(Protocol):
    """A controller of cells that skips failed cells.

    Attributes
    ----------
    usable : (N,) uint8 array, 0 for cells that have failed; may change between steps
    """

    usable: NDArray[np.uint8]


@runtime_checkable
class Tunable(Protocol):
    """A controller whose gains may change while it runs."""

    def set_gain(self, key: str, value: float) -> None: ...
