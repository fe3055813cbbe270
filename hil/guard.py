"""The last word on every command: limits as levels, looked at every tick, latched.

A trip turns all cells off at the same tick and keeps them off; it is not undone within a run.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

FAULTS = (
    "force_high",
    "force_nan",
    "reading_stale",
    "loop_late",
    "cell_on_too_long",
    "device_failed",
    "recorder_dead",
    "board_fault",
)
(
    _FORCE_HIGH,
    _FORCE_NAN,
    _READING_STALE,
    _LOOP_LATE,
    _CELL_ON_TOO_LONG,
    DEVICE_FAILED,
    RECORDER_DEAD,
    _BOARD_FAULT,
) = (1 << i for i in range(len(FAULTS)))

CAUSES = {
    "force_high": "a force is beyond guard.force_max_N",
    "force_nan": "a force reading is not a number",
    "reading_stale": "a device has given no new reading for guard.reading_age_max_s",
    "loop_late": "loop.overruns_max periods were missed in a row",
    "cell_on_too_long": "a cell has been on without a break for guard.cell_on_max_s",
    "device_failed": "a device failed or went missing",
    "recorder_dead": "the recorder has stopped",
    "board_fault": "a board has switched its cells off by itself; its own fault bits say why",
}


@dataclass(frozen=True)
class Limits:
    """Absolute limits; a level at or below its limit is allowed."""

    force_max_N: float
    cell_on_max_s: float
    reading_age_max_s: float
    overruns_max: int


class Guard:
    """Checks readings and command of every tick.

    Attributes
    ----------
    fault_bits : int
        All faults since the start, bit i for FAULTS[i]; latched.
    first_bits : int
        Those of the tick that tripped.
    """

    def __init__(self, limits: Limits, n_cells: int, period_s: float) -> None:
        self.fault_bits = 0
        self.first_bits = 0
        self._limits = np.array(
            [
                limits.force_max_N,
                limits.reading_age_max_s,
                limits.overruns_max,
                # in whole periods, so that no rounding adds up
                np.floor(limits.cell_on_max_s / period_s + 1e-9),
            ]
        )
        self._on_periods = np.full(n_cells, -1, dtype=np.int64)

    def step(
        self,
        forces_N: NDArray[np.float64],
        valid: NDArray[np.bool_],
        ages_s: NDArray[np.float64],
        overruns: int,
        cells: NDArray[np.uint8],
        n_periods: int = 1,
        board_faulted: bool = False,
    ) -> int:
        """Check one tick and, once tripped, turn the command `cells` off; all fault bits.

        `n_periods` have passed since the last tick: cells stayed on while ticks were missed.
        """
        if self.fault_bits:
            cells[:] = 0
        found = _check(
            self._limits, forces_N, valid, ages_s, overruns, n_periods, self._on_periods, cells
        )
        if board_faulted:
            found |= _BOARD_FAULT
        if found:
            self.trip(found)
        if self.fault_bits:
            cells[:] = 0
        return self.fault_bits

    def trip(self, bits: int) -> None:
        """Latch these faults."""
        if not self.fault_bits:
            self.first_bits = bits
        self.fault_bits |= bits


def names_of(bits: int) -> list[str]:
    """The faults that a word of fault bits holds."""
    return [name for i, name in enumerate(FAULTS) if bits >> i & 1]


@njit(cache=True)
def _check(  # type: ignore[no-untyped-def]
    limits, forces, valid, ages, overruns, n_periods, on_periods, cells
):
    force_max, age_max, overruns_max, on_periods_max = limits
    found = 0
    for i in range(len(forces)):
        if not valid[i]:
            continue
        if np.isnan(forces[i]):
            found |= _FORCE_NAN
        elif abs(forces[i]) > force_max:
            found |= _FORCE_HIGH
    for age in ages:
        if not age <= age_max:
            found |= _READING_STALE
    if overruns >= overruns_max:
        found |= _LOOP_LATE
    for n in range(len(cells)):
        if cells[n]:
            # -1 is off; a cell switched on now has been on for no period yet
            on_periods[n] = on_periods[n] + n_periods if on_periods[n] >= 0 else 0
            if on_periods[n] + 1 > on_periods_max:
                found |= _CELL_ON_TOO_LONG
        else:
            on_periods[n] = -1
    return found
