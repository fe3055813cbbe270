"""The last word on every command: limits as levels, looked at every tick, latched.

A trip turns all cells off and all outputs to rest at the same tick and keeps them there; it is
not undone within a run. Outputs never leave their range, nor move faster than their rate.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hil import interlocks
from hil.frame import Commands
from hil.slots import Readings
from hil.states import ENERGISED, States


def _cause(row: interlocks.Interlock) -> str:
    limit = f" ({row.key})" if row.key else ""
    return f"{row.signal}: {row.condition}{limit}"


def _whole(periods: float) -> float:
    """So many whole periods, however the quotient was rounded."""
    return float(np.floor(periods + 1e-9))


FAULTS = tuple(row.name for row in interlocks.LOOP)
CAUSES = {row.name: _cause(row) for row in interlocks.LOOP}
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
    _FORCE_RATE_HIGH,
    _FORCE_JUMP,
    _FORCE_RESIDUAL_HIGH,
    _FORCE_NO_RISE,
    _SENSOR_FROZEN,
    _SIGNAL_FAST,
    _TOO_MANY_CELLS_ON,
    DISK_LOW,
    _BOARD_SILENT,
    OWN_CODE_FAILED,
    _SUPPLY_SILENT,
    _SUPPLY_WRONG,
    _SUPPLY_NOT_OFF,
    _BOARD_RESET,
    _BOARD_REFUSED,
    MACHINE_SLEPT,
) = (1 << i for i in range(len(FAULTS)))

NO_VALUES: NDArray[np.float64] = np.zeros(0)
RISE_SHARE = 1.0 / 3.0  # of the twin's force that a measured one must have
FILTER_S = 0.01  # of the slopes
_LAST, _SLOPE, _SINCE, _SAME, _CHANGE = range(5)  # what is kept of every channel


@dataclass(frozen=True)
class SignalLimits:
    """What a channel may read; every limit is allowed, and infinite where there is none.

    Attributes
    ----------
    residual_max : largest difference from the twin
    rise_min : from where on the twin's value must show in the reading
    frozen_s : longest time without the least change
    """

    min: float = -np.inf
    max: float = np.inf
    is_force: bool = False
    rate_max_per_s: float = np.inf
    jump_max: float = np.inf
    residual_max: float = np.inf
    rise_min: float = np.inf
    frozen_s: float = np.inf


@dataclass(frozen=True)
class Envelope:
    """What an output may be told: its range, its largest rate, and its value at rest."""

    min: float
    max: float
    rate_max_per_s: float
    rest: float = 0.0


@dataclass(frozen=True)
class Limits:
    """Absolute limits; a level at or below its limit is allowed.

    Attributes
    ----------
    hold_s : how long conditions must last, by name, where not as `hil.interlocks` has it
    """

    cell_on_max_s: float
    reading_age_max_s: float
    overruns_max: int
    signals: Sequence[SignalLimits] = ()
    outputs: Sequence[Envelope] = ()
    cells_on_max: int = 2**31
    hold_s: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Snapshot:
    """What a guard looked at in a tick in which something tripped, before all went off.

    Attributes
    ----------
    measured, valid, model, slope_per_s, change, same_s : of every channel: its reading and whether
        there is one, the twin's value, its filtered slope, the step from the reading before, and
        for how long it has been the same
    ages_s : of every device's reading
    on_s : for how long every cell has been commanded on
    cells, outputs : commanded
    overruns : periods missed in a row
    """

    measured: NDArray[np.float64]
    valid: NDArray[np.bool_]
    model: NDArray[np.float64]
    slope_per_s: NDArray[np.float64]
    change: NDArray[np.float64]
    same_s: NDArray[np.float64]
    ages_s: NDArray[np.float64]
    on_s: NDArray[np.float64]
    cells: NDArray[np.uint8]
    outputs: NDArray[np.float64]
    overruns: int


class Guard:
    """Checks readings and commands of every tick.

    Attributes
    ----------
    fault_bits : int
        All faults since the start, bit i for FAULTS[i]; latched.
    first_bits : int
        Those of the tick that tripped.
    seen : Snapshot or None
        Of the last tick in which a fault was new.
    states : States
        Commands are let through only while armed or running.

    Parameters
    ----------
    states : the rig's; by default of one that has passed its self-test
    """

    def __init__(
        self, limits: Limits, n_cells: int, period_s: float, states: States | None = None
    ) -> None:
        self.fault_bits = 0
        self.first_bits = 0
        self.seen: Snapshot | None = None
        self._period_s = period_s
        self.states = States("ready") if states is None else states
        self._levels = np.array(
            [
                limits.reading_age_max_s,
                limits.overruns_max,
                # in whole periods, so that no rounding adds up
                _whole(limits.cell_on_max_s / period_s),
                limits.cells_on_max,
                period_s,
            ]
        )
        self._signals = np.array(
            [
                (s.min, s.max, s.is_force, s.rate_max_per_s, s.jump_max, s.residual_max,
                 s.rise_min, _whole(s.frozen_s / period_s))
                for s in limits.signals
            ],
            dtype=float,
        ).reshape(-1, 8)  # fmt: skip
        self._kept = np.full((len(limits.signals), 5), np.nan)
        hold_s = {row.name: row.held_s for row in interlocks.LOOP} | dict(limits.hold_s)
        self._hold_periods = np.array([_whole(hold_s[name] / period_s) for name in FAULTS])
        self._held = np.zeros(len(FAULTS), dtype=np.int64)
        self._envelopes = np.array(
            [(e.min, e.max, e.rate_max_per_s * period_s, e.rest) for e in limits.outputs]
        ).reshape(-1, 4)
        self._rest = self._envelopes[:, 3]
        self._has_outputs = len(limits.outputs) > 0
        self._outputs_before = self._rest.copy()
        self._on_periods = np.full(n_cells, -1, dtype=np.int64)

    def bind(
        self,
        readings: Readings,
        commands: Commands,
        values: NDArray[np.float64] = NO_VALUES,
        model_at: Sequence[int] = (),
        boards: Sequence[int] = (),
    ) -> None:
        """Learn what to look at; outputs stand at rest before the first tick.

        Parameters
        ----------
        values, model_at : the row's values, and where the twin's stand of every channel
            -1 where it says nothing of one; none where there is no twin.
        boards : which of the devices are boards
        """
        self._readings = readings
        self._commands = commands
        self._values = values
        self._model_at = np.full(len(self._signals), -1, dtype=np.int64)
        if len(model_at):
            self._model_at[:] = model_at
        self._is_board = np.zeros(len(readings.ages_s), dtype=np.bool_)
        self._is_board[list(boards)] = True
        commands.outputs[:] = self._rest
        commands.enabled[:] = False

    def step(self, overruns: int, n_periods: int = 1) -> int:
        """Check one tick and hold its commands within their limits; all fault bits.

        `n_periods` have passed since the last tick: cells stayed on while ticks were missed.
        """
        r, cells, outputs = self._readings, self._commands.cells, self._commands.outputs
        if self.states.now not in ENERGISED:
            self._put_to_rest()
        else:
            self._commands.enabled[:] = True
        found = _check(
            self._levels,
            self._signals,
            self._kept,
            r.measured,
            self._values,
            self._model_at,
            r.valid,
            r.ages_s,
            self._is_board,
            overruns,
            n_periods,
            r.board_faults,
            r.board_links,
            r.card_faults,
            r.supply_faults,
            self._on_periods,
            cells,
        )
        if self._has_outputs:
            found |= _hold(self._envelopes, self._outputs_before, n_periods, outputs)
        found = _lasting(found, self._hold_periods, self._held, n_periods)
        if found:
            if found & ~self.fault_bits:
                self.seen = self._look(overruns)
            self.trip(found)
        if self._has_outputs:
            self._outputs_before[:] = outputs
        return self.fault_bits

    def trip_when_late(self, overruns: int) -> bool:
        """Trip if too many periods were missed in a row; whether they were."""
        late = bool(overruns >= self._levels[1])
        if late:
            self.seen = self._look(overruns)
            self.trip(_LOOP_LATE)
        return late

    def _look(self, overruns: int) -> Snapshot:
        r, n = self._readings, len(self._signals)
        there = self._model_at >= 0
        model = np.full(n, np.nan)
        model[there] = self._values[self._model_at[there]]
        return Snapshot(
            measured=r.measured.copy(),
            valid=r.valid.copy(),
            model=model,
            slope_per_s=self._kept[:, _SLOPE].copy(),
            change=self._kept[:, _CHANGE].copy(),
            same_s=self._kept[:, _SAME] * self._period_s,
            ages_s=r.ages_s.copy(),
            on_s=np.maximum(self._on_periods, 0) * self._period_s,
            cells=self._commands.cells.copy(),
            outputs=self._commands.outputs.copy(),
            overruns=overruns,
        )

    def trip(self, bits: int) -> None:
        """Latch these faults and put every command to rest."""
        if not self.fault_bits:
            self.first_bits = bits
        self.fault_bits |= bits
        self.states.on("estop" if bits & _ESTOP_OPEN else "fault")
        self._put_to_rest()

    @property
    def armed(self) -> bool:
        """Whether commands are let through at all."""
        return self.states.now in ENERGISED

    @property
    def running(self) -> bool:
        """Armed, and whatever had to come on first is on."""
        return self.states.now == "running"

    def arm(self) -> bool:
        """Let commands through from the next tick on; False where the state does not allow it."""
        return self.states.on("arm")

    def begin(self) -> bool:
        """What had to come on first is on."""
        return self.states.on("begin")

    def disarm(self) -> None:
        """Everything to rest until armed again."""
        self.states.on("end")

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
    levels, signals, kept, measured, values, model_at, valid, ages, is_board, overruns, n_periods,
    board_faults, board_links, card_faults, supply_faults, on_periods, cells,
):  # fmt: skip
    age_max, overruns_max, on_periods_max, cells_on_max, period_s = levels
    found = 0
    for i in range(len(signals)):
        if valid[i]:
            model = values[model_at[i]] if model_at[i] >= 0 else np.nan
            found |= _channel(signals[i], kept[i], measured[i], model, n_periods, period_s)
        else:
            kept[i, _SINCE] += n_periods
    for i in range(len(ages)):
        if not ages[i] <= age_max:
            found |= _READING_STALE
            if is_board[i]:
                found |= _BOARD_SILENT
    if overruns >= overruns_max:
        found |= _LOOP_LATE
    for bits in board_faults:
        found |= _BOARD_FAULT if bits else 0
    for bits in board_links:
        found |= _BOARD_RESET if bits & 1 else 0
        found |= _BOARD_REFUSED if bits & 2 else 0
    for bits in card_faults:
        found |= _ESTOP_OPEN if bits & 1 else 0
        found |= _CHANNEL_UNTRUE if bits >> 1 else 0
    for bits in supply_faults:
        found |= _SUPPLY_SILENT if bits & 1 else 0
        found |= _SUPPLY_WRONG if bits & 2 else 0
        found |= _SUPPLY_NOT_OFF if bits & 4 else 0
    n_on = 0
    for n in range(len(cells)):
        if cells[n]:
            n_on += 1
            # -1 is off; a cell switched on now has been on for no period yet
            on_periods[n] = on_periods[n] + n_periods if on_periods[n] >= 0 else 0
            if on_periods[n] + 1 > on_periods_max:
                found |= _CELL_ON_TOO_LONG
        else:
            on_periods[n] = -1
    if n_on > cells_on_max:
        found |= _TOO_MANY_CELLS_ON
    return found


@njit(cache=True)
def _channel(limits, kept, value, model, n_periods, period_s):  # type: ignore[no-untyped-def]
    """What is wrong with one channel that has a reading at this tick."""
    low, high, is_force, rate_max, jump_max, residual_max, rise_min, frozen_max = limits
    if np.isnan(value):
        return _FORCE_NAN if is_force else _SIGNAL_OUT_OF_RANGE
    found = 0
    if not low <= value <= high:
        found |= _FORCE_HIGH if is_force else _SIGNAL_OUT_OF_RANGE
    if np.isnan(kept[_LAST]):
        kept[_SLOPE] = kept[_SINCE] = kept[_SAME] = kept[_CHANGE] = 0.0
    else:
        passed = kept[_SINCE] + n_periods
        change = kept[_CHANGE] = value - kept[_LAST]
        if abs(change) > jump_max:
            found |= _FORCE_JUMP
        elapsed_s = passed * period_s
        kept[_SLOPE] += elapsed_s / (FILTER_S + elapsed_s) * (change / elapsed_s - kept[_SLOPE])
        if abs(kept[_SLOPE]) > rate_max:
            found |= _FORCE_RATE_HIGH if is_force else _SIGNAL_FAST
        kept[_SAME] = kept[_SAME] + passed if change == 0.0 else 0.0
        if kept[_SAME] > frozen_max:
            found |= _SENSOR_FROZEN
    kept[_LAST], kept[_SINCE] = value, 0.0
    if abs(value - model) > residual_max:
        found |= _FORCE_RESIDUAL_HIGH
    if model > rise_min and value < RISE_SHARE * model:
        found |= _FORCE_NO_RISE
    return found


@njit(cache=True)
def _lasting(found, hold_periods, held, n_periods):  # type: ignore[no-untyped-def]
    """Those of the conditions found that have lasted long enough."""
    lasting = 0
    for i in range(len(held)):
        if found >> i & 1:
            held[i] = held[i] + n_periods if held[i] > 0 else 1
            if held[i] > hold_periods[i]:
                lasting |= 1 << i
        else:
            held[i] = 0
    return lasting


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
