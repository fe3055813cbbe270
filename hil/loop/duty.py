"""Duties: the share of the time for which a cell is on, as boards apply them."""

import numpy as np

from hil.compiled import njit

STEPS = 255  # a board applies a duty in whole 255ths
INVALID = -1.0


@njit(cache=True)
def steps_of(duty, steps_min):  # type: ignore[no-untyped-def]
    """Number of 255ths that a board applies for a duty; INVALID if it refuses this duty.

    A duty is 0, or between `steps_min` 255ths, the shortest in which a board can measure the
    current, and 1.
    """
    if not 0.0 <= duty <= 1.0:
        return INVALID
    steps = np.rint(STEPS * duty)
    return INVALID if duty > 0.0 and steps < steps_min else steps


@njit(cache=True)
def apply(steps_min, duty, cells):  # type: ignore[no-untyped-def]
    """Round duties in place and switch on the cells above 0; returns whether all are valid.

    A cell whose duty is invalid is off.
    """
    valid = True
    for n in range(len(duty)):
        steps = steps_of(duty[n], steps_min)
        if steps == INVALID:
            valid, steps = False, 0.0
        duty[n] = steps / STEPS
        cells[n] = steps > 0.0
    return valid


@njit(cache=True)
def keep_known(reported, duty):  # type: ignore[no-untyped-def]
    """Copy the duties that are known; NaN is unknown."""
    for n in range(len(duty)):
        if not np.isnan(reported[n]):
            duty[n] = reported[n]
