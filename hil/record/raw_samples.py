"""Description of samples that are recorded in addition to the ticks."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class RawSamples:
    """Samples of a device that is faster than the loop.

    Attributes
    ----------
    dtype : a sample of every channel with the device's own time `t_s`
    units : of every field
    per_tick : int
    rate_Hz : float
    simulated : bool
    """

    dtype: np.dtype[np.void]
    units: Mapping[str, str]
    per_tick: int
    rate_Hz: float
    simulated: bool
