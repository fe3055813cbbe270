"""The last word on every command: limits as levels, looked at every tick, latched.

A trip turns all cells off and all outputs to rest at the same tick and keeps them there; it is
not undone within a run. Outputs never leave their range, nor move faster than their rate.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numba import njit

from hil.frame import Commands
from hil.slots import Readings

FAULTS = (
    "force_high",
    "force_nan",
    "reading_stale",
    "loop_late",
    "cell_on_too_long",
    "device_failed",
    "recorder_dead",
    "board_fault",
    "signal_out_of_range",
    "output_invalid",
    "estop_open",
    "channel_untrue",
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
    _SIGNAL_OUT_OF_RANGE,
    _OUTPUT_INVALID,
    _ESTOP_OPEN,
    _CHANNEL_UNTRUE,
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
    "signal_out_of_range": "a signal is beyond its limits in guard.signals",
    "output_invalid": "the controller asked an output for what is not a number",
    "estop_open": "the e-stop loop is open",
    "channel_untrue": "a channel is at its rail or frozen; its card's fault bits say which",
}


@dataclass(frozen=True)
class SignalLimits:
    """Smallest and largest value that a channel may read; both are allowed."""

    min: float = -np.inf
    max: float = np.inf
    is_force: bool = False


@dataclass(frozen=True)
class Envelope:
    """What an output may be told: its range, its largest rate, and its value at rest."""

    min: float
    max: float
    rate_max_per_s: float
    rest: float = 0.0


@dataclass(frozen=True)
class Limits:
    """Absolute limits; a level at or below its limit is allowed."""

    cell_on_max_s: float
    reading_age_max_s: float
    overruns_max: int
    signals: Sequence[SignalLimits] = ()
    outputs: Sequence[Envelope] = ()


class Guard:
    """Checks readings and commands of every tick.

    Attributes
    ----------
    fault_bits : int
        All faults since the start, bit i for FAULTS[i]; latched.
    first_bits : int
        Those of the tick that tripped.
    armed : bool
        Whether commands are let through at all.
    """

    def __init__(self, limits: Limits, n_cells: int, period_s: float) -> None:
        self.fault_bits = 0
        self.first_bits = 0
        self.armed = True
        self._levels = np.array(
            [
                limits.reading_age_max_s,
                limits.overruns_max,
                # in whole periods, so that no rounding adds up
                np.floor(limits.cell_on_max_s / period_s + 1e-9),
            ]
        )
        self._signals = np.array(
            [(s.min, s.max, s.is_force) for s in limits.signals], dtype=float
        ).reshape(-1, 3)
        self._envelopes = np.array(
            [(e.min, e.max, e.rate_max_per_s * period_s, e.rest) for e in limits.outputs]
        ).reshape(-1, 4)
        self._rest = self._envelopes[:, 3]
        self._has_outputs = len(limits.outputs) > 0
        self._outputs_before = self._rest.copy()
        self._on_periods = np.full(n_cells, -1, dtype=np.int64)

    def bind(self, readings: Readings, commands: Commands) -> None:
        """Learn what to look at; outputs stand at rest before the first tick."""
        self._readings = readings
        self._commands = commands
        commands.outputs[:] = self._rest
        commands.enabled[:] = False

    def step(self, overruns: int, n_periods: int = 1) -> int:
        """Check one tick and hold its commands within their limits; all fault bits.

        `n_periods` have passed since the last tick: cells stayed on while ticks were missed.
        """
        r, cells, outputs = self._readings, self._commands.cells, self._commands.outputs
        if self.fault_bits or not self.armed:
            self._put_to_rest()
        else:
            self._commands.enabled[:] = True
        found = _check(
            self._levels,
            self._signals,
            r.measured,
            r.valid,
            r.ages_s,
            overruns,
            n_periods,
            r.board_faults,
            r.card_faults,
            self._on_periods,
            cells,
        )
        if self._has_outputs:
            found |= _hold(self._envelopes, self._outputs_before, n_periods, outputs)
        if found:
            self.trip(found)
        if self._has_outputs:
            self._outputs_before[:] = outputs
        return self.fault_bits

    def trip_when_late(self, overruns: int) -> bool:
        """Trip if too many periods were missed in a row; whether they were."""
        late = bool(overruns >= self._levels[1])
        if late:
            self.trip(_LOOP_LATE)
        return late

    def trip(self, bits: int) -> None:
        """Latch these faults and put every command to rest."""
        if not self.fault_bits:
            self.first_bits = bits
        self.fault_bits |= bits
        self._put_to_rest()

    @property
    def commands_anything(self) -> bool:
        """Whether the last command had a cell on or an output away from rest."""
        on = self._commands.cells.any() or (self._commands.outputs != self._rest).any()
        return bool(on)

    def _put_to_rest(self) -> None:
        self._commands.cells[:] = 0
        self._commands.outputs[:] = self._rest
        self._commands.enabled[:] = False
        self._commands.broadcast.tick = 0  # the mask counts


def names_of(bits: int) -> list[str]:
    """The faults that a word of fault bits holds."""
    return [name for i, name in enumerate(FAULTS) if bits >> i & 1]


@njit(cache=True)
def _check(  # type: ignore[no-untyped-def]
    levels, signals, measured, valid, ages, overruns, n_periods, board_faults, card_faults,
    on_periods, cells,
):  # fmt: skip
    age_max, overruns_max, on_periods_max = levels
    found = 0
    for i in range(len(signals)):
        low, high, is_force = signals[i]
        if not valid[i]:
            continue
        if np.isnan(measured[i]):
            found |= _FORCE_NAN if is_force else _SIGNAL_OUT_OF_RANGE
        elif not low <= measured[i] <= high:
            found |= _FORCE_HIGH if is_force else _SIGNAL_OUT_OF_RANGE
    for age in ages:
        if not age <= age_max:
            found |= _READING_STALE
    if overruns >= overruns_max:
        found |= _LOOP_LATE
    for bits in board_faults:
        found |= _BOARD_FAULT if bits else 0
    for bits in card_faults:
        found |= _ESTOP_OPEN if bits & 1 else 0
        found |= _CHANNEL_UNTRUE if bits >> 1 else 0
    for n in range(len(cells)):
        if cells[n]:
            # -1 is off; a cell switched on now has been on for no period yet
            on_periods[n] = on_periods[n] + n_periods if on_periods[n] >= 0 else 0
            if on_periods[n] + 1 > on_periods_max:
                found |= _CELL_ON_TOO_LONG
        else:
            on_periods[n] = -1
    return found


@njit(cache=True)
def _hold(envelopes, before, n_periods, outputs):  # type: ignore[no-untyped-def]
    """Every output within its range and its rate; a fault where one is not a number."""
    found = 0
    for i in range(len(outputs)):
        low, high, change_max, _ = envelopes[i]
        if np.isnan(outputs[i]):
            found |= _OUTPUT_INVALID
            continue
        most = change_max * n_periods
        wished = min(max(outputs[i], before[i] - most), before[i] + most)
        outputs[i] = min(max(wished, low), high)
    return found
