"""The guard: checks limits as levels every tick, and latches trips.

A condition lasts until a reading says otherwise. In a tick without a reading of its channel it
stands as the last reading left it, and its time counts on; a channel that has had no reading for
longer than readings may be old is stale, whether its device answers or not. The time of a condition
counts while any channel, device or cell has it, so one that moves to another is no new one.

In the tick of a trip the guard switches all cells off and sets all outputs to their idle values. A
trip is not reset within a run. Outside a trip the guard limits outputs to their range and rate of
change.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hil.compiled import njit
from hil.loop import duty, interlocks
from hil.loop.channels import Readings, RigLayout
from hil.loop.frame import Commands, Frame
from hil.loop.states import ENERGISED, States
from hil.loop.wire_watch import CLAMP, CURRENT, WatchedWire, WireWatch


def _cause(row: interlocks.Interlock) -> str:
    limit = f" ({row.key})" if row.key else ""
    return f"{row.signal}: {row.condition}{limit}"


def _whole_periods(periods: float) -> float:
    """Round down to whole periods, tolerating float error."""
    return float(np.floor(periods + 1e-9))


FAULTS = tuple(row.name for row in interlocks.LOOP)
CAUSES = {row.name: _cause(row) for row in interlocks.LOOP}
_BIT = {name: 1 << i for i, name in enumerate(FAULTS)}
_FORCE_HIGH = _BIT["force_high"]
_FORCE_NAN = _BIT["force_nan"]
_READING_STALE = _BIT["reading_stale"]
_LOOP_LATE = _BIT["loop_late"]
_CELL_ON_TOO_LONG = _BIT["cell_on_too_long"]
DEVICE_FAILED = _BIT["device_failed"]
RECORDER_DEAD = _BIT["recorder_dead"]
_SIGNAL_OUT_OF_RANGE = _BIT["signal_out_of_range"]
_OUTPUT_INVALID = _BIT["output_invalid"]
_ESTOP_OPEN = _BIT["estop_open"]
_FORCE_RATE_HIGH = _BIT["force_rate_high"]
_FORCE_JUMP = _BIT["force_jump"]
_FORCE_RESIDUAL_HIGH = _BIT["force_residual_high"]
_FORCE_NO_RISE = _BIT["force_no_rise"]
_SENSOR_FROZEN = _BIT["sensor_frozen"]
_SIGNAL_FAST = _BIT["signal_fast"]
_TOO_MANY_CELLS_ON = _BIT["too_many_cells_on"]
DISK_LOW = _BIT["disk_low"]
_BOARD_SILENT = _BIT["board_silent"]
OWN_CODE_FAILED = _BIT["own_code_failed"]
MACHINE_SLEPT = _BIT["machine_slept"]
_DUTY_INVALID = _BIT["duty_invalid"]
_CELL_ENERGY_HIGH = _BIT["cell_energy_high"]
_UNTRUE = {CURRENT: _BIT["current_untrue"], CLAMP: _BIT["clamp_untrue"]}

STUCK = "_stuck"  # ends the bit of a cell whose line differs from its command
NO_MODEL = -1  # column index of a channel without a model
WATCHED = np.dtype([("column", np.int64), ("mask", np.uint64), ("fault", np.int64)])
RISE_SHARE = 1.0 / 3.0  # smallest fraction of the twin's force that must be measured
FILTER_S = 0.01  # time constant of the low-pass filter of slopes, s
_LAST, _SLOPE, _SINCE, _SAME, _CHANGE, _MODEL, _FOUND = range(7)  # values kept for every channel


@dataclass(frozen=True)
class SignalLimits:
    """Limits of a channel's reading; the limit itself is allowed. Infinite means no limit.

    Attributes
    ----------
    jump_max : largest difference of two consecutive readings
    residual_max : largest difference from the twin
    rise_min : value of the twin above which the reading must be at least RISE_SHARE of it
    frozen_s : longest time without any change
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
    """Range, largest rate of change and idle value (`rest`) of an output."""

    min: float
    max: float
    rate_max_per_s: float
    rest: float = 0.0


@dataclass(frozen=True)
class CellHeat:
    """Heat budget of a cell whose current nobody measures (`hil.mechanics.sma.loop_budget`).

    Attributes
    ----------
    heats_K_per_s, time_constant_s : B' = heats - B / time_constant while the cell is on
    rise_max_K : largest B
    rise_K : B when the run begins
    """

    heats_K_per_s: float = 0.0
    time_constant_s: float = 1.0
    rise_max_K: float = np.inf
    rise_K: float = 0.0


@dataclass(frozen=True)
class Limits:
    """Absolute limits; a level at or below its limit is allowed.

    Attributes
    ----------
    hold_s : how long conditions must last, by name; default as in `hil.loop.interlocks`
    duty_min : smallest duty above 0 at which a board measures the current
    heat : heat budget of every cell; empty if boards measure all of them
    wires : cells of boards whose readings are compared with their wires
    """

    cell_on_max_s: float
    reading_age_max_s: float
    overruns_max: int
    signals: Sequence[SignalLimits] = ()
    outputs: Sequence[Envelope] = ()
    cells_on_max: int = 2**31
    hold_s: Mapping[str, float] = field(default_factory=dict)
    duty_min: float = 0.0
    heat: Sequence[CellHeat] = ()
    wires: Sequence[WatchedWire] = ()


@dataclass(frozen=True)
class Snapshot:
    """The values that the guard checked in the tick of a trip, before it switched everything off.

    Attributes
    ----------
    measured : last reading of every channel
    valid : whether every channel has had a reading
    model : the twin's value at that reading; NaN without a model
    unread_s : time since that reading
    slope_per_s : filtered slope of every channel
    change : difference from the previous reading of every channel
    same_s : time since every channel last changed
    ages_s : age of every device's reading
    on_s : time for which every cell has been commanded on
    cells, outputs : commands
    overruns : periods missed in a row
    duty : duty that was asked for, of every cell; empty unless the controller modulates
    rise_K : heat of every cell that has a budget, as a rise above the air
    """

    measured: NDArray[np.float64]
    valid: NDArray[np.bool_]
    model: NDArray[np.float64]
    unread_s: NDArray[np.float64]
    slope_per_s: NDArray[np.float64]
    change: NDArray[np.float64]
    same_s: NDArray[np.float64]
    ages_s: NDArray[np.float64]
    on_s: NDArray[np.float64]
    cells: NDArray[np.uint8]
    outputs: NDArray[np.float64]
    overruns: int
    duty: NDArray[np.float64]
    rise_K: NDArray[np.float64]


class Guard:
    """Checks readings and commands of every tick.

    Attributes
    ----------
    fault_bits : all faults since the start, bit i for FAULTS[i]; latched
    first_bits : the faults of the tick that tripped first
    seen : values in the last tick with a new fault
    states : state machine of the rig; commands are executed only while armed or running

    Parameters
    ----------
    states : the rig's state machine; by default one in state `ready`, as after a self-test
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
                # whole periods, so that rounding errors do not accumulate
                _whole_periods(limits.cell_on_max_s / period_s),
                limits.cells_on_max,
                period_s,
                _whole_periods(limits.reading_age_max_s / period_s),
            ]
        )
        self._signals = np.array(
            [
                (s.min, s.max, s.is_force, s.rate_max_per_s, s.jump_max, s.residual_max,
                 s.rise_min, _whole_periods(s.frozen_s / period_s))
                for s in limits.signals
            ],
            dtype=float,
        ).reshape(-1, 8)  # fmt: skip
        self._kept = np.full((len(limits.signals), 7), np.nan)
        self._kept[:, _SINCE], self._kept[:, _FOUND] = -1.0, 0.0  # the first tick is no gap
        hold_s = {row.name: row.held_s for row in interlocks.LOOP} | dict(limits.hold_s)
        self._hold_periods = np.array([_whole_periods(hold_s[name] / period_s) for name in FAULTS])
        self._held = np.zeros(len(FAULTS), dtype=np.int64)
        self._envelopes = np.array(
            [(e.min, e.max, e.rate_max_per_s * period_s, e.rest) for e in limits.outputs]
        ).reshape(-1, 4)
        self._rest = self._envelopes[:, 3]
        self._has_outputs = len(limits.outputs) > 0
        self._outputs_before = self._rest.copy()
        self._on_periods = np.full(n_cells, -1, dtype=np.int64)
        self._heat = np.array(
            [(h.heats_K_per_s * h.time_constant_s, period_s / h.time_constant_s, h.rise_max_K)
             for h in limits.heat]
        ).reshape(-1, 3)  # fmt: skip
        self._rise_K = np.array([h.rise_K for h in limits.heat], dtype=float)
        self._steps_min = round(limits.duty_min * duty.STEPS)
        self._watch = WireWatch(limits.wires, period_s) if limits.wires else None

    def bind(
        self,
        frame: Frame,
        layout: RigLayout,
        readings: Readings,
        commands: Commands,
        *,
        with_model: bool = True,
    ) -> None:
        """Look up the columns of this rig; outputs keep their idle value before the first tick.

        Parameters
        ----------
        with_model : whether to compare channels with their `model` columns, if they have one, and
            cells with their wires
        """
        self._readings, self._commands = readings, commands
        self._values, self._bits = frame.values, frame.bits
        self._valid = readings.valid_word.view(np.int64)
        known = {column.name for column in frame.columns} if with_model else set()
        models = [channel.column("model") for channel in layout.channels]
        self._model_at = _indices(frame.index(m) if m in known else NO_MODEL for m in models)
        self._ages_at = _indices(frame.index(f"{name}_age_s") for name in layout.devices)
        self._is_board = np.array([name in layout.boards for name in layout.devices], dtype=bool)
        self._watched = watched_bits(frame, layout)
        self._watched_on_boards = watched_bits(frame, layout, of_boards_only=True)
        self._watches = with_model and self._watch is not None
        if self._watch is not None:
            self._watch.bind(frame, readings)
        commands.outputs[:] = self._rest
        commands.enabled[:] = False
        self._asked_duty = commands.duty.copy()
        self._modulates = len(commands.duty) > 0

    def step(self, overruns: int, n_periods: int = 1) -> int:
        """Check one tick and limit its commands; returns all fault bits.

        `n_periods` is the number of periods since the last tick: cells stayed on during missed
        ticks.
        """
        cells, outputs = self._commands.cells, self._commands.outputs
        if self.states.now not in ENERGISED:
            self._put_to_rest()
        else:
            self._commands.enabled[:] = True
        found = 0
        if self._modulates:
            self._asked_duty[:] = self._commands.duty
            if not duty.apply(self._steps_min, self._commands.duty, cells):
                found = _DUTY_INVALID
        found |= _check(
            self._levels,
            self._signals,
            self._kept,
            self._readings.measured,
            self._values,
            self._model_at,
            self._valid,
            self._ages_at,
            self._is_board,
            overruns,
            n_periods,
            self._bits,
            self._watched,
            self._heat,
            self._rise_K,
            self._on_periods,
            cells,
        )
        if self._watches:
            found |= self._untrue(n_periods)
        if self._has_outputs:
            found |= _limit_outputs(self._envelopes, self._outputs_before, n_periods, outputs)
        found = _lasting(found, self._hold_periods, self._held, n_periods)
        if found:
            if found & ~self.fault_bits:
                self.seen = self._snapshot(overruns)
            self.trip(found)
        if self._has_outputs:
            self._outputs_before[:] = outputs
        return self.fault_bits

    def _untrue(self, n_periods: int) -> int:
        """Faults of cells whose readings their wires cannot have."""
        assert self._watch is not None
        untrue = self._watch.step(n_periods)
        return sum(fault for kind, fault in _UNTRUE.items() if untrue & kind)

    def troubles(self) -> dict[str, list[str]]:
        """Readings that wires cannot have, as text, by the row of the interlocks."""
        return {} if self._watch is None else self._watch.troubles()

    def trip_when_late(self, overruns: int) -> bool:
        """Trip if too many periods were missed in a row; returns whether it tripped."""
        late = bool(overruns >= self._levels[1])
        if late:
            self.seen = self._snapshot(overruns)
            self.trip(_LOOP_LATE)
        return late

    def trip_when_boards_failed(self) -> None:
        """Trip if boards have reported a fault since the last tick."""
        fresh = _found(self._bits, self._watched_on_boards) & ~self.fault_bits
        if fresh:
            self.seen = self._snapshot(0)
            self.trip(fresh)

    def _snapshot(self, overruns: int) -> Snapshot:
        r, last = self._readings, self._kept[:, _LAST]
        valid = r.valid[: len(last)]
        return Snapshot(
            measured=np.where(valid, r.measured, last),
            valid=valid | ~np.isnan(last),
            model=self._kept[:, _MODEL].copy(),
            unread_s=self._kept[:, _SINCE] * self._period_s,
            slope_per_s=self._kept[:, _SLOPE].copy(),
            change=self._kept[:, _CHANGE].copy(),
            same_s=self._kept[:, _SAME] * self._period_s,
            ages_s=self._values[self._ages_at],
            on_s=np.maximum(self._on_periods, 0) * self._period_s,
            cells=self._commands.cells.copy(),
            outputs=self._commands.outputs.copy(),
            overruns=overruns,
            duty=self._asked_duty.copy(),
            rise_K=self._rise_K.copy(),
        )

    def trip(self, bits: int) -> None:
        """Latch these faults, switch all cells off and set all outputs to their idle values."""
        if not self.fault_bits:
            self.first_bits = bits
        self.fault_bits |= bits
        self.states.on("estop" if bits & _ESTOP_OPEN else "fault")
        self._put_to_rest()

    @property
    def armed(self) -> bool:
        """Whether commands are executed."""
        return self.states.now in ENERGISED

    @property
    def running(self) -> bool:
        """Whether the rig is armed and all power is on."""
        return self.states.now == "running"

    def arm(self) -> bool:
        """Execute commands from the next tick on; False if the state does not allow it."""
        return self.states.on("arm")

    def begin(self) -> bool:
        """Enter state `running`, since all power is on; False if the state does not allow it."""
        return self.states.on("begin")

    def disarm(self) -> None:
        """Leave the armed state: everything stays off or idle until the next `arm`."""
        self.states.on("end")

    @property
    def commands_anything(self) -> bool:
        """Whether the last command had a cell on or an output off its idle value."""
        on = self._commands.cells.any() or (self._commands.outputs != self._rest).any()
        return bool(on)

    def _put_to_rest(self) -> None:
        self._commands.cells[:] = 0
        self._commands.duty[:] = 0.0
        self._commands.outputs[:] = self._rest
        self._commands.enabled[:] = False
        self._commands.broadcast.tick = 0  # no broadcast: the mask applies


def _indices(columns: Iterable[int]) -> NDArray[np.int64]:
    return np.array(list(columns), dtype=np.int64)


def watched_bits(
    frame: Frame, layout: RigLayout, *, of_boards_only: bool = False
) -> NDArray[np.void]:
    """Map the devices' fault bits to faults, looked up by name; returns rows of type WATCHED."""
    flags = {column.name: column.flags for column in frame.columns}
    rows: list[tuple[str, str, str]] = []  # column, bit, fault
    for name in layout.boards:
        rows += [(f"{name}_fault_bits", bit, "board_fault") for bit in flags[f"{name}_fault_bits"]]
        rows += [(f"{name}_link_bits", bit, bit) for bit in ("board_reset", "board_refused")]
        measured = f"{name}_resistance_bits"
        rows += [(measured, bit, "resistance_out_of_range") for bit in flags.get(measured, ())]
    if not of_boards_only:
        for name in layout.cards:
            column = f"{name}_fault_bits"
            rows += [(column, bit, card_fault(bit)) for bit in flags[column]]
        for name in layout.supplies:
            column = f"{name}_fault_bits"
            rows += [(column, bit, f"supply_{bit}") for bit in flags[column]]
    masks: dict[tuple[int, int], int] = {}
    for column, bit, fault in rows:
        key = frame.bit_index(column), _BIT[fault]
        masks[key] = masks.get(key, 0) | frame.flag(column, bit)
    watched = np.zeros(len(masks), dtype=WATCHED)
    for i, ((at, trip), mask) in enumerate(masks.items()):
        watched[i] = at, mask, trip
    return watched


def card_fault(bit: str) -> str:
    """The fault that a bit of a card's `<card>_fault_bits` means, by the bit's name."""
    if bit == "estop_open":
        return bit
    return "gate_stuck" if bit.endswith(STUCK) else "channel_untrue"


def names_of(bits: int) -> list[str]:
    """Names of the faults in a word of fault bits."""
    return [name for i, name in enumerate(FAULTS) if bits >> i & 1]


@njit(cache=True)
def _check(  # type: ignore[no-untyped-def]
    levels, signals, kept, measured, values, model_at, valid, ages_at, is_board, overruns,
    n_periods, bits, watched, heat, rise_K, on_periods, cells,
):  # fmt: skip
    age_max, overruns_max, on_periods_max, cells_on_max, period_s, unread_max = levels
    found = 0
    for i in range(len(signals)):
        if valid[0] >> i & 1:
            model = values[model_at[i]] if model_at[i] != NO_MODEL else np.nan
            kept[i, _FOUND] = _channel(signals[i], kept[i], measured[i], model, n_periods, period_s)
            kept[i, _MODEL] = model
        else:
            kept[i, _SINCE] += n_periods
        found |= int(kept[i, _FOUND])
        if kept[i, _SINCE] > unread_max:
            found |= _READING_STALE
    for i in range(len(ages_at)):
        if not values[ages_at[i]] <= age_max:
            found |= _READING_STALE
            if is_board[i]:
                found |= _BOARD_SILENT
    if overruns >= overruns_max:
        found |= _LOOP_LATE
    found |= _found(bits, watched)
    for n in range(len(heat)):  # before on_periods changes: it tells who has been on until now
        settles, share, most = heat[n]
        keep = np.exp(-share * n_periods)
        rise_K[n] = rise_K[n] * keep + (settles * (1.0 - keep) if on_periods[n] >= 0 else 0.0)
        if rise_K[n] > most:
            found |= _CELL_ENERGY_HIGH
    n_on = 0
    for n in range(len(cells)):
        if cells[n]:
            n_on += 1
            # -1 means off; a cell switched on in this tick has been on for 0 periods.
            on_periods[n] = on_periods[n] + n_periods if on_periods[n] >= 0 else 0
            if on_periods[n] + 1 > on_periods_max:
                found |= _CELL_ON_TOO_LONG
        else:
            on_periods[n] = -1
    if n_on > cells_on_max:
        found |= _TOO_MANY_CELLS_ON
    return found


@njit(cache=True)
def _found(bits, watched):  # type: ignore[no-untyped-def]
    """Faults whose bits the devices have set."""
    found = 0
    for row in watched:
        if bits[row["column"]] & row["mask"]:
            found |= row["fault"]
    return found


@njit(cache=True)
def _channel(limits, kept, value, model, n_periods, period_s):  # type: ignore[no-untyped-def]
    """Faults of one channel that has a reading at this tick."""
    low, high, is_force, rate_max, jump_max, residual_max, rise_min, frozen_max = limits
    if np.isnan(value):
        kept[_SINCE] += n_periods
        return _FORCE_NAN if is_force else _SIGNAL_OUT_OF_RANGE
    found = 0
    if not low <= value <= high:
        found |= _FORCE_HIGH if is_force else _SIGNAL_OUT_OF_RANGE
    if np.isnan(kept[_LAST]):
        kept[_SLOPE] = kept[_SAME] = kept[_CHANGE] = 0.0
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
    """Conditions that have lasted longer than their hold time."""
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
def _limit_outputs(envelopes, before, n_periods, outputs):  # type: ignore[no-untyped-def]
    """Limit every output to its range and rate; returns a fault if one is NaN."""
    found = 0
    for i in range(len(outputs)):
        low, high, change_max, _ = envelopes[i]
        if np.isnan(outputs[i]):
            found |= _OUTPUT_INVALID
            continue
        most = change_max * n_periods
        limited = min(max(outputs[i], before[i] - most), before[i] + most)
        outputs[i] = min(max(limited, low), high)
    return found
