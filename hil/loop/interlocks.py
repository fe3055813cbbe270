"""The table of interlocks: hazard, detection, action, reaction time and place of action.

The guard's fault bits and docs/safety.md are generated from this table. Rows that a board enforces
have the names of firmware/core/protocol.h.
"""

from dataclasses import dataclass
from typing import Literal

Where = Literal["loop", "board", "connect", "card", "supply"]


@dataclass(frozen=True)
class Interlock:
    """One row of the table.

    Attributes
    ----------
    name : name of its fault bit
    hazard : what it prevents
    signal : what it checks
    condition : when it trips
    key : configuration key of its limit; empty if the limit is fixed
    held_s : default time for which the condition must last; `guard.hold_s.<name>` overrides it
    action : what it does at once and latches
    reaction : longest time from the condition, after its hold time, to gates off
    where : component that enforces it
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


# In the order of the bits of `fault_bits`. Recordings depend on it: add new rows at the end.
LOOP = (
    _loop("force_high", "a spring or the transducer breaks", "every force",
          "beyond its limit in either direction", "guard.force_max_N"),
    _loop("force_nan", "control without a valid reading", "every force", "is not a number"),
    _loop("reading_stale", "control with old readings", "age of every device's reading",
          "older than its limit", "guard.reading_age_max_s"),
    _loop("loop_late", "commands come too late", "periods missed in a row",
          "reach their limit, with loop.overrun = 'trip'", "loop.overruns_max"),
    _loop("cell_on_too_long", "a wire overheats", "every cell's command",
          "on without a break for longer than its limit", "guard.cell_on_max_s"),
    _loop("device_failed", "no orderly shutdown possible", "every device",
          "fails, goes missing or is unplugged",
          reaction="the board's own: `hold_s` of its last command"),
    _loop("recorder_dead", "a run without a recording", "the recorder's process",
          "has stopped, or lags by a full ring buffer of rows", reaction="0.5 s"),
    _loop("board_fault", "partial actuation", "faults that a board has latched", "any"),
    _loop("signal_out_of_range", "a joint or an end stop breaks", "every other channel",
          "beyond its limits, or not a number", "guard.signals.<channel>.min, .max"),
    _loop("output_invalid", "an actuator jumps", "every output's command", "is not a number"),
    _loop("estop_open", "a person is in danger", "the e-stop loop read by a card", "open",
          "devices.<card>.lines"),
    _loop("channel_untrue", "control without a valid reading", "every channel of a card",
          "at its rail, open or frozen, as its card reports"),
    _loop("force_rate_high", "a spring snaps", "filtered slope of every force",
          "steeper than its limit", "guard.force_rate_max_N_per_s", 0.005),
    _loop("force_jump", "a loose contact is mistaken for a force",
          "two consecutive readings of a force",
          "further apart than its limit", "guard.force_jump_max_N"),
    _loop("force_residual_high", "the rig differs from its model",
          "measured force less the twin's", "larger than its limit",
          "guard.force_residual_max_N", 0.1),
    _loop("force_no_rise", "cells heat without force: broken wire, wrong gate, slack",
          "measured force over the twin's",
          "below a third while the twin's is beyond its limit", "guard.force_rise_min_N", 0.5),
    _loop("sensor_frozen", "control without a valid reading", "every channel",
          "the same reading for longer than its limit", "guard.frozen_s"),
    _loop("signal_fast", "an encoder miscounts", "slope of every other channel",
          "steeper than its limit", "guard.signals.<channel>.rate_max_per_s"),
    _loop("too_many_cells_on", "the supply is overloaded", "number of cells commanded on",
          "more than its limit", "guard.cells_on_max"),
    _loop("disk_low", "a run without a recording", "free space where the recording is",
          "below its limit, checked once a second", "guard.disk_free_min_MB", reaction="1 s"),
    _loop("board_silent", "the state of the cells is unknown", "age of every board's answer",
          "older than its limit", "guard.reading_age_max_s"),
    _loop("own_code_failed", "control without a valid command",
          "user-written controller, reference or model",
          "raises an exception, returns no number or no command, or takes longer than 1 s"),
    _loop("supply_silent", "the cells' supply is unknown", "age of every supply's answer",
          "older than its limit", "devices.<supply>.answer_max_s"),
    _loop("supply_wrong", "wires get too much voltage, or none",
          "every supply's output and voltage, as it measures them",
          "differs from the command some time after it", "devices.<supply>.voltage_tolerance_V"),
    _loop("supply_not_off", "wires continue to heat after switch-off",
          "every supply's output, as it reports it, after the command to switch off",
          "not off in time", "devices.<supply>.obey_max_s"),
    _loop("board_reset", "cells are off, and their board has lost their heat budget",
          "state and clock in every answer of an armed board",
          "disarmed without a command, or its clock has run backwards"),
    _loop("board_refused", "cells differ from their commands",
          "result and state in every answer of an armed board",
          "command not done or board not armed, without a reported fault",
          reaction="2 ticks; if it refuses that too, `hold_s` of its last command"),
    _loop("machine_slept", "power was on while no program ran", "the computer's two clocks",
          "the one that runs during sleep is ahead of the other, while armed",
          reaction="2 ticks after it has woken"),
)  # fmt: skip

BOARD = (
    _board("host_silent", "the host hangs with cells on", "time since a valid command",
           "longer than its limit; a command's own hold ends it sooner", "silence_max_ms"),
    _board("estop_open", "a person is in danger", "the e-stop input", "open", ""),
    _board("cell_on_too_long", "a wire overheats", "every gate", "on without a break for longer",
           "on_time_max_ms"),
    _board("cell_energy_high", "a wire overheats",
           "every cell's heat: its current squared over time, less the cooling by air",
           "more than its limit; after a reset all of it counts as used", "heat_max_cA2ms, "
           "heat_time_constant_ms"),
    _board("too_many_cells_on", "the supply is overloaded", "number of gates on",
           "more than its limit", "cells_on_max"),
    _board("current_high", "a shorted wire burns", "every cell's current", "beyond its limit",
           "current_max_mA"),
    _board("current_low", "a broken wire: its cell does nothing", "a cell's current while on",
           "below its limit, in more cells since arming than the limit of open cells",
           "current_on_min_mA, open_cells_max"),
    _board("current_when_off", "a shorted transistor heats permanently",
           "a cell's current while off", "beyond its limit", "current_off_max_mA"),
    _board("temperature_high", "the mount or the room overheats; this does not protect a wire",
           "temperature of every cell's clamp", "beyond its limit", "temperature_max_cC"),
    _board("temperature_range", "a broken sensor hides a hot mount", "every temperature input",
           "outside its limits", "temperature_counts_min, _max"),
    _board("scan_stale", "sensing stopped", "age of the board's own readings",
           "older than its limit", "scan_age_max_ms"),
    _board("gate_stuck", "a gate opens by itself", "every gate's pin",
           "not as commanded; registers are rewritten every scan", ""),
    _board("scan_untrue", "control with readings of other cells, or of none",
           "references at spare inputs of both multiplexers, one per scan",
           "more than 4 % of full scale from their levels", ""),
    _board("limits_corrupt", "limits differ from those that were set",
           "the table's CRC: at boot, at arming, and in operation at least once a second",
           "wrong", ""),
)  # fmt: skip

OTHER = (
    Interlock("config_mismatch", "board and rig have different limits", "the table's CRC",
              "differs when the rig is connected or armed", "devices.<board>.limits", 0.0,
              "refused before anything is on", "before arming", "connect"),
    Interlock("wire_open", "one broken wire stops the whole array",
              "a cell's current while on, and at arming",
              "below `current_on_min_mA`, in at most `open_cells_max` cells since arming",
              "open_cells_max", 0.0,
              "the cell off and isolated until the next arming; other cells continue, no fault",
              "2 ms", "board"),
    Interlock("firmware_hung", "the board's program hangs", "its hardware watchdog",
              "not fed; the main loop feeds it while link, control and converter work", "", 0.0,
              "all off; a reset restarts nothing", "the chip's watchdog, 120 ms", "board"),
    Interlock("host_gone", "outputs of a card keep their values", "the card's watchdog, which "
              "runs before an enable line goes high",
              "not reset in time, on cards that have one", "devices.<card>.watchdog_s", 0.0,
              "enable lines low", "devices.<card>.watchdog_s", "card"),
    Interlock("loop_gone", "the supply stays on without a program", "the loop's heartbeat, as "
              "the supply's own process sees it",
              "missing, its process has ended, or the computer has slept", "", 0.5,
              "supply off, regardless of commands", "one answer", "supply"),
)  # fmt: skip

RESET = (
    "Trips are latched, with the first cause and all causes, until the rig is disconnected. To "
    "continue, remove the cause and start another run with `hil run`. Cells stay off until the rig "
    "has passed its self-test and is armed again."
)
