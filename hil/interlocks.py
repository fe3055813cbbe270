"""The interlocks as a table: what may go wrong, how it is noticed, what is done, how fast, where.

The guard's fault bits and docs/safety.md come from here. Rows that a board enforces are named as
in firmware/core/wire.h.
"""

from dataclasses import dataclass
from typing import Literal

Where = Literal["loop", "board", "connect", "card", "supply"]


@dataclass(frozen=True)
class Interlock:
    """One row.

    Attributes
    ----------
    name : of its fault bit
    hazard, signal, condition : what it prevents, what it looks at, and when it trips
    key : where its limit stands; empty where it has none to choose
    held_s : how long the condition must last, by default; `guard.hold_s.<name>` sets another
    action : what is done at once, and stays
    reaction : largest time from the condition, held, to gates off
    where : who enforces it
    """

    name: str
    hazard: str
    signal: str
    condition: str
    key: str
    held_s: float
    action: str
    reaction: str
    where: Where


_OFF = "all off, supply off"
_TICKS = "2 ticks"
_BOARD = "2 ms"


def _loop(
    name: str, hazard: str, signal: str, condition: str, key: str = "", held_s: float = 0.0,
    reaction: str = _TICKS,
) -> Interlock:  # fmt: skip
    return Interlock(name, hazard, signal, condition, key, held_s, _OFF, reaction, "loop")


def _board(name: str, hazard: str, signal: str, condition: str, key: str) -> Interlock:
    return Interlock(name, hazard, signal, condition, key, 0.0, "all off", _BOARD, "board")


# In the order of the bits of `fault_bits`; recordings rely on it: new rows go at the end.
LOOP = (
    _loop("force_high", "a spring or the transducer breaks", "every force",
          "beyond its limit in either direction", "guard.force_max_N"),
    _loop("force_nan", "control goes on blindly", "every force", "is not a number"),
    _loop("reading_stale", "control goes on with old readings", "age of every device's reading",
          "older than its limit", "guard.reading_age_max_s"),
    _loop("loop_late", "commands come too late", "periods missed in a row",
          "as many as its limit, with loop.overrun = 'trip'", "loop.overruns_max"),
    _loop("cell_on_too_long", "a wire overheats", "every cell's command",
          "on without a break for longer than its limit", "guard.cell_on_max_s"),
    _loop("device_failed", "nothing can be switched off in order", "every device",
          "fails, goes missing or is unplugged",
          reaction="the board's own: `hold_s` of its last command"),
    _loop("recorder_dead", "a run leaves no trace", "the recorder's process",
          "has stopped, or leaves a ring of rows behind", reaction="0.5 s"),
    _loop("board_fault", "cells act by halves", "faults that a board has latched", "any"),
    _loop("signal_out_of_range", "a joint or an end stop breaks", "every other channel",
          "beyond its limits, or not a number", "guard.signals.<channel>.min, .max"),
    _loop("output_invalid", "an actuator jumps", "every output's wish", "is not a number"),
    _loop("estop_open", "somebody is in danger", "the e-stop loop read by a card", "open",
          "devices.<card>.lines"),
    _loop("channel_untrue", "control goes on blindly", "every channel of a card",
          "at its rail, open or frozen, as its card finds"),
    _loop("force_rate_high", "a spring snaps", "filtered slope of every force",
          "steeper than its limit", "guard.force_rate_max_N_per_s", 0.005),
    _loop("force_jump", "a loose contact is taken for a force", "two readings of a force in a row",
          "further apart than its limit", "guard.force_jump_max_N"),
    _loop("force_residual_high", "the rig is not what its model says",
          "measured force less the twin's", "larger than its limit",
          "guard.force_residual_max_N", 0.1),
    _loop("force_no_rise", "cells heat and nothing pulls: broken wire, wrong gate, slack",
          "measured force over the twin's",
          "below a third while the twin's is beyond its limit", "guard.force_rise_min_N", 0.5),
    _loop("sensor_frozen", "control goes on blindly", "every channel",
          "the same reading for longer than its limit", "guard.frozen_s"),
    _loop("signal_fast", "an encoder miscounts", "slope of every other channel",
          "steeper than its limit", "guard.signals.<channel>.rate_max_per_s"),
    _loop("too_many_cells_on", "the supply is overloaded", "number of cells commanded on",
          "more than its limit", "guard.cells_on_max"),
    _loop("disk_low", "a run leaves no trace", "free space where the recording is",
          "below its limit, looked at once a second", "guard.disk_free_min_MB", reaction="1 s"),
    _loop("board_silent", "nobody knows what the cells do", "age of every board's answer",
          "older than its limit", "guard.reading_age_max_s"),
    _loop("own_code_failed", "control goes on blindly",
          "controller, reference or model of one's own",
          "raises, gives no number or no command, or has not returned after 1 s"),
    _loop("supply_silent", "nobody knows what the cells are fed", "age of every supply's answer",
          "older than its limit", "devices.<supply>.answer_max_s"),
    _loop("supply_wrong", "wires get more than was meant, or nothing",
          "every supply's output and voltage, as it measures them",
          "not what it was told, some time after it was", "devices.<supply>.voltage_tolerance_V"),
    _loop("supply_not_off", "wires go on heating after the cut",
          "every supply's output, as it says, after it was told to be off",
          "not off in time", "devices.<supply>.obey_max_s"),
    _loop("board_reset", "cells do nothing, and their board has forgotten how hot they are",
          "state and own time in every answer of an armed board",
          "disarmed without having been told, or its time has run back"),
    _loop("board_refused", "cells are not what they were commanded to be",
          "result and state in every answer of an armed board",
          "anything but done and armed, and no fault that it names itself",
          reaction="2 ticks; where it refuses that too, `hold_s` of its last command"),
    _loop("machine_slept", "nobody was there while power was on", "the machine's two clocks",
          "the one that goes on while the machine sleeps is ahead of the other, while armed",
          reaction="2 ticks after it has woken"),
)  # fmt: skip

BOARD = (
    _board("host_silent", "the host hangs with cells on", "time since a valid command",
           "longer than its limit; a command's own hold ends it sooner", "silence_max_ms"),
    _board("estop_open", "somebody is in danger", "the e-stop input", "open", ""),
    _board("cell_on_too_long", "a wire overheats", "every gate", "on without a break for longer",
           "on_time_max_ms"),
    _board("cell_energy_high", "a wire overheats",
           "every cell's heat: its current squared over time, less what air carries away",
           "more than its limit; a reset counts as all of it", "heat_max_cA2ms, "
           "heat_time_constant_ms"),
    _board("too_many_cells_on", "the supply is overloaded", "number of gates on",
           "more than its limit", "cells_on_max"),
    _board("current_high", "a shorted wire burns", "every cell's current", "beyond its limit",
           "current_max_mA"),
    _board("current_low", "a broken wire: its cell does nothing", "a cell's current while on",
           "below its limit, in more cells since arming than may be open",
           "current_on_min_mA, open_cells_max"),
    _board("current_when_off", "a shorted transistor heats for ever",
           "a cell's current while off", "beyond its limit", "current_off_max_mA"),
    _board("temperature_high", "the mount or the room overheats; a wire is not seen here",
           "temperature of every cell's clamp", "beyond its limit", "temperature_max_cC"),
    _board("temperature_range", "a broken sensor hides a hot mount", "every temperature input",
           "outside its limits", "temperature_counts_min, _max"),
    _board("scan_stale", "the board's eyes are closed", "age of the board's own readings",
           "older than its limit", "scan_age_max_ms"),
    _board("gate_stuck", "a gate opens by itself", "every gate's pin",
           "not as commanded; registers are written anew every scan", ""),
    _board("scan_untrue", "control goes on with readings of other cells, or of none",
           "references at spare inputs of both multiplexers, one a scan",
           "more than 4 % of full scale from their levels", ""),
    _board("limits_corrupt", "limits are not what anybody set", "the table's CRC", "wrong", ""),
)  # fmt: skip

OTHER = (
    Interlock("config_mismatch", "board and rig mean different limits", "the table's CRC",
              "differs when the rig is connected or armed", "devices.<board>.limits", 0.0,
              "refused before anything is on", "before arming", "connect"),
    Interlock("wire_open", "one broken wire stops the whole array",
              "a cell's current while on, and at arming",
              "below `current_on_min_mA`, in no more cells since arming than may be open",
              "open_cells_max", 0.0,
              "its cell off and set apart until armed anew; the others go on, no fault",
              "2 ms", "board"),
    Interlock("firmware_hung", "the board's program stands still", "its hardware watchdog",
              "not fed while link, control and converter are well", "", 0.0,
              "all off; a reset restarts nothing", "the chip's watchdog, 120 ms", "board"),
    Interlock("host_gone", "outputs of a card stay where they were", "the card's watchdog, which "
              "runs before an enable line goes high",
              "not reset in time, on cards that have one", "devices.<card>.watchdog_s", 0.0,
              "enable lines low", "devices.<card>.watchdog_s", "card"),
    Interlock("loop_gone", "the supply stays on without anybody", "the loop's sign of life, as the "
              "supply's own process sees it",
              "none, its process has gone, or the machine has slept", "", 0.5,
              "supply off, for as long as it is told to be on", "one answer", "supply"),
)  # fmt: skip

RESET = (
    "Latched, with the first cause and all causes, until the rig is let go of. `hil run` starts "
    "another run: the condition must be gone, and cells are off until the rig has proved itself "
    "and is armed again."
)
