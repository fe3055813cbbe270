"""The guard: checks limits as levels every tick, and latches trips.

A condition lasts until a reading says otherwise. In a tick without a reading of its channel it
stands as the last reading left it, and its time counts on; a channel that has had no reading for
longer than readings may be old is stale, whether its device answers or not. The time of a condition
counts while any channel, device or cell has it, so one that moves to another is no new one.

In the tick of a trip the guard switches all cells off and sets all outputs to their idle values. A
trip is not reset within a run. Outside a trip the guard limits outputs to their range and rate of
change.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hil.compiled import njit
from hil.loop import duty, interlocks
from hil.loop.channels import Readings, RigLayout
from hil.loop.frame import Commands, Frame
from hil.loop.states import ENERGISED, States
from hil.loop.wire_watch import CLAMP, CURRENT, WatchedWire, WireWatch
from hil.mechanics.arrays import Array, Indices, Mask


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

EXPIRED = "watchdog_expired"  # bit of a card whose watchdog holds its outputs
STUCK = "_stuck"  # ends the bit of a cell whose line differs from its command
NO_MODEL = -1  # column index of a channel without a model
WATCHED = np.dtype([("column", np.int64), ("mask", np.uint64), ("fault", np.int64)])
AGED = np.dtype([("column", np.int64), ("max_s", float), ("is_board", bool)], align=True)
CHANNEL = np.dtype(
    [(name, float) for name in (
        # limits
        "min", "max", "rate_max_per_s", "jump_max", "residual_max", "rise_min", "frozen_periods",
        "unread_periods_max",
        # what is kept from tick to tick
        "last", "slope_per_s", "unread_periods", "same_periods", "change", "model")]
    + [("is_force", bool), ("model_column", np.int64), ("faults", np.int64)], align=True
)  # fmt: skip
CELL = np.dtype(
    [("settles_K", float), ("share", float), ("rise_max_K", float), ("rise_K", float),
     ("on_periods_max", float), ("on_periods", np.int64)]
)  # fmt: skip
OUTPUT = np.dtype([(name, float) for name in ("min", "max", "change_max", "rest", "before")])
RISE_SHARE = 1.0 / 3.0  # smallest fraction of the twin's force that must be measured
FILTER_S = 0.01  # time constant of the low-pass filter of slopes, s


@dataclass(frozen=True)
class SignalLimits:
    """Limits of a channel's reading; the limit itself is allowed. Infinite means no limit.

    Attributes
    ----------
    jump_max : largest difference of two consecutive readings
    residual_max : largest difference from the twin
    rise_min : value of the twin above which the reading must be at least RISE_SHARE of it
    frozen_s : longest time without any change
    rate_key, max_key : configuration keys of `rate_max_per_s` and `max` where they are not the
        usual ones
    """

    min: float = -np.inf
    max: float = np.inf
    is_force: bool = False
    rate_max_per_s: float = np.inf
    jump_max: float = np.inf
    residual_max: float = np.inf
    rise_min: float = np.inf
    frozen_s: float = np.inf
    rate_key: str = ""
    max_key: str = ""


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
        self._limits = limits
        self._channels = np.zeros(len(limits.signals), dtype=CHANNEL)
        for name in ("min", "max", "rate_max_per_s", "jump_max", "residual_max", "rise_min",
                     "is_force"):  # fmt: skip
            self._channels[name] = [getattr(signal, name) for signal in limits.signals]
        # whole periods, so that rounding errors do not accumulate
        self._channels["frozen_periods"] = [
            _whole_periods(signal.frozen_s / period_s) for signal in limits.signals
        ]
        self._channels["unread_periods_max"] = _whole_periods(limits.reading_age_max_s / period_s)
        for name in ("last", "slope_per_s", "same_periods", "change", "model"):
            self._channels[name] = np.nan
        self._channels["unread_periods"] = -1.0  # the first tick is no gap
        hold_s = {row.name: row.held_s for row in interlocks.LOOP} | dict(limits.hold_s)
        self._hold_periods = np.array([_whole_periods(hold_s[name] / period_s) for name in FAULTS])
        self._held, self._lasts = np.zeros(len(FAULTS), dtype=np.int64), False  # any of them
        self._outputs = np.array(
            [(e.min, e.max, e.rate_max_per_s * period_s, e.rest, e.rest) for e in limits.outputs],
            dtype=OUTPUT,
        )
        self._rest = self._outputs["rest"]
        self._has_outputs = len(limits.outputs) > 0
        on_periods_max = _whole_periods(limits.cell_on_max_s / period_s)
        self._cells = np.array(
            [
                (h.heats_K_per_s * h.time_constant_s, period_s / h.time_constant_s, h.rise_max_K,
                 h.rise_K, on_periods_max, -1)
                for h in (*limits.heat, *[CellHeat()] * (n_cells - len(limits.heat)))
            ],
            dtype=CELL,
        )  # fmt: skip
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
        self._valid = readings.valid_words[:1].view(np.int64)
        known = {column.name for column in frame.columns} if with_model else set()
        models = [channel.column("model") for channel in layout.channels]
        self._channels["model_column"] = [
            frame.index(m) if m in known else NO_MODEL for m in models
        ]
        age_max_s = self._limits.reading_age_max_s
        self._aged = np.array(
            [(frame.index(f"{name}_age_s"), age_max_s, name in layout.boards)
             for name in layout.devices], dtype=AGED,
        )  # fmt: skip
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
            self._commands.enabled.fill(True)
        faults = 0
        if self._modulates:
            self._asked_duty[:] = self._commands.duty
            if not duty.apply(self._steps_min, self._commands.duty, cells):
                faults = _DUTY_INVALID
        if self._is_late(overruns):
            faults |= _LOOP_LATE
        r = self._readings
        faults |= _in_channels(
            self._channels, r.measured, self._valid, self._values, n_periods, self._period_s
        )
        faults |= _of_devices(self._aged, self._values, self._watched, self._bits)
        if self._limits.heat:
            faults |= _heat(self._cells, n_periods)
        faults |= _in_cells(self._cells, cells, n_periods, self._limits.cells_on_max)
        if self._watches:
            faults |= self._untrue(n_periods)
        if self._has_outputs:
            faults |= _limit_outputs(self._outputs, n_periods, outputs)
        if faults or self._lasts:
            self._lasts = faults != 0
            faults = _lasting(faults, self._hold_periods, self._held, n_periods)
        if faults:
            if faults & ~self.fault_bits:
                self.seen = self._snapshot(overruns)
            self.trip(faults)
        if self._has_outputs:
            self._outputs["before"] = outputs
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
        late = self._is_late(overruns)
        if late:
            self.seen = self._snapshot(overruns)
            self.trip(_LOOP_LATE)
        return late

    def _is_late(self, overruns: int) -> bool:
        return overruns >= self._limits.overruns_max

    def trip_when_boards_failed(self) -> None:
        """Trip if boards have reported a fault since the last tick."""
        fresh = _device_faults(self._bits, self._watched_on_boards) & ~self.fault_bits
        if fresh:
            self.seen = self._snapshot(0)
            self.trip(fresh)

    def _snapshot(self, overruns: int) -> Snapshot:
        r, kept, last = self._readings, self._channels, self._channels["last"]
        valid = r.valid[: len(last)]
        return Snapshot(
            measured=np.where(valid, r.measured, last),
            valid=valid | ~np.isnan(last),
            model=kept["model"].copy(),
            unread_s=kept["unread_periods"] * self._period_s,
            slope_per_s=kept["slope_per_s"].copy(),
            change=kept["change"].copy(),
            same_s=kept["same_periods"] * self._period_s,
            ages_s=self._values[self._aged["column"]],
            on_s=np.maximum(self._cells["on_periods"], 0) * self._period_s,
            cells=self._commands.cells.copy(),
            outputs=self._commands.outputs.copy(),
            overruns=overruns,
            duty=self._asked_duty.copy(),
            rise_K=self._cells["rise_K"][: len(self._limits.heat)].copy(),
        )

    def trip(self, bits: int) -> None:
        """Latch these faults, switch all cells off and set all outputs to their idle values."""
        if not self.fault_bits:
            self.first_bits = bits
        self.fault_bits |= bits
        self.states.on("estop" if bits & _ESTOP_OPEN else "fault")
        self._put_to_rest()
        self._outputs["before"] = self._rest  # the next tick does not lead them there slowly

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

    def last_reading(self, channel: int) -> float:
        """The last reading of a channel; NaN if there has been none."""
        return float(self._channels["last"][channel])

    def tare(self, channel: int, newtons: float) -> None:
        """Subtract a tare from the last reading: a tare is no change of the force."""
        self._channels["last"][channel] -= newtons

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
    if bit == EXPIRED:
        return "device_failed"
    return "gate_stuck" if bit.endswith(STUCK) else "channel_untrue"


def names_of(bits: int) -> list[str]:
    """Names of the faults in a word of fault bits."""
    return [name for i, name in enumerate(FAULTS) if bits >> i & 1]


@njit(cache=True)
def _in_channels(
    channels: NDArray[np.void], measured: Array, valid: Indices, values: Array, n_periods: int,
    period_s: float,
) -> int:  # fmt: skip
    """Faults of all channels."""
    faults = 0
    for i in range(len(channels)):
        channel = channels[i]
        if valid[0] >> i & 1:
            at = channel["model_column"]
            channel["model"] = values[at] if at != NO_MODEL else np.nan
            channel["faults"] = _in_channel(channel, measured[i], n_periods, period_s)
        else:
            channel["unread_periods"] += n_periods
        faults |= channel["faults"]
        if channel["unread_periods"] > channel["unread_periods_max"]:
            faults |= _READING_STALE
    return faults


@njit(cache=True)
def _in_channel(channel: np.void, value: float, n_periods: int, period_s: float) -> int:
    """Faults of one channel that has a reading at this tick."""
    if np.isnan(value):
        channel["unread_periods"] += n_periods
        return _FORCE_NAN if channel["is_force"] else _SIGNAL_OUT_OF_RANGE
    faults = 0
    if not channel["min"] <= value <= channel["max"]:
        faults |= _FORCE_HIGH if channel["is_force"] else _SIGNAL_OUT_OF_RANGE
    if np.isnan(channel["last"]):
        channel["slope_per_s"] = channel["same_periods"] = channel["change"] = 0.0
    else:
        passed = channel["unread_periods"] + n_periods
        change = channel["change"] = value - channel["last"]
        if abs(change) > channel["jump_max"]:
            faults |= _FORCE_JUMP
        elapsed_s = passed * period_s
        slope = channel["slope_per_s"]
        slope += elapsed_s / (FILTER_S + elapsed_s) * (change / elapsed_s - slope)
        channel["slope_per_s"] = slope
        if abs(slope) > channel["rate_max_per_s"]:
            faults |= _FORCE_RATE_HIGH if channel["is_force"] else _SIGNAL_FAST
        channel["same_periods"] = channel["same_periods"] + passed if change == 0.0 else 0.0
        if channel["same_periods"] > channel["frozen_periods"]:
            faults |= _SENSOR_FROZEN
    channel["last"], channel["unread_periods"] = value, 0.0
    if abs(value - channel["model"]) > channel["residual_max"]:
        faults |= _FORCE_RESIDUAL_HIGH
    if channel["model"] > channel["rise_min"] and value < RISE_SHARE * channel["model"]:
        faults |= _FORCE_NO_RISE
    return faults


@njit(cache=True)
def _of_devices(
    aged: NDArray[np.void], values: Array, watched: NDArray[np.void], bits: NDArray[np.uint64]
) -> int:
    """Faults that devices have set, and devices whose readings are old."""
    faults = _device_faults(bits, watched)
    for device in aged:
        if not values[device["column"]] <= device["max_s"]:
            faults |= _READING_STALE
            if device["is_board"]:
                faults |= _BOARD_SILENT
    return faults


@njit(cache=True)
def _device_faults(bits: NDArray[np.uint64], watched: NDArray[np.void]) -> int:
    """Faults whose bits the devices have set."""
    faults = 0
    for row in watched:
        if bits[row["column"]] & row["mask"]:
            faults |= row["fault"]
    return faults


@njit(cache=True)
def _heat(kept: NDArray[np.void], n_periods: int) -> int:
    """Faults of cells that have too much heat; before `_in_cells`, of who has been on until now."""
    faults = 0
    for cell in kept:
        keep = np.exp(-cell["share"] * n_periods)
        heated_K = cell["settles_K"] * (1.0 - keep) if cell["on_periods"] >= 0 else 0.0
        cell["rise_K"] = cell["rise_K"] * keep + heated_K
        if cell["rise_K"] > cell["rise_max_K"]:
            faults |= _CELL_ENERGY_HIGH
    return faults


@njit(cache=True)
def _in_cells(kept: NDArray[np.void], cells: Mask, n_periods: int, cells_on_max: int) -> int:
    """Faults of cells that have been on for too long, or are too many."""
    faults, n_on = 0, 0
    for n in range(len(cells)):
        cell = kept[n]
        if cells[n]:
            n_on += 1
            # -1 means off; a cell switched on in this tick has been on for 0 periods.
            cell["on_periods"] = cell["on_periods"] + n_periods if cell["on_periods"] >= 0 else 0
            if cell["on_periods"] + 1 > cell["on_periods_max"]:
                faults |= _CELL_ON_TOO_LONG
        else:
            cell["on_periods"] = -1
    if n_on > cells_on_max:
        faults |= _TOO_MANY_CELLS_ON
    return faults


@njit(cache=True)
def _lasting(faults: int, hold_periods: Array, held: Indices, n_periods: int) -> int:
    """Conditions that have lasted longer than their hold time."""
    lasting = 0
    for i in range(len(held)):
        if faults >> i & 1:
            held[i] = held[i] + n_periods if held[i] > 0 else 1
            if held[i] > hold_periods[i]:
                lasting |= 1 << i
        else:
            held[i] = 0
    return lasting


@njit(cache=True)
def _limit_outputs(limits: NDArray[np.void], n_periods: int, outputs: Array) -> int:
    """Limit every output to its range and rate; returns a fault if one is NaN."""
    faults = 0
    for i in range(len(outputs)):
        limit, before = limits[i], limits[i]["before"]
        if np.isnan(outputs[i]):
            faults |= _OUTPUT_INVALID
            continue
        most = limit["change_max"] * n_periods
        limited = min(max(outputs[i], before - most), before + most)
        outputs[i] = min(max(limited, limit["min"]), limit["max"])
    return faults
