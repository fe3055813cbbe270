"""Judgement of every step of a bring-up: what must be seen, and what to check first if it was not.

A judgement is a function of what was read alone, so that a record can be judged again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hil.config.values import Figures
from hil.procedures.bring_up.setup import Setup

GATE_LOW_V = 0.5  # a logic-level MOSFET begins to conduct at 1 V or more
CUT_V = 0.5  # left of the supply once it is cut
SUPPLY_SHARE = 0.1  # by which the supply may be off
DIVIDER_SHARE, DIVIDER_V = 0.05, 0.16  # of the supply's dividers: 1 % each, meter; two steps
DRIVES_SHARE = 0.25  # of the load's current, which an input at least reads if its gate drives it
GAIN_SHARE = 0.05  # of a current: shunt, amplifier and reference at 1 to 2 % each, and the meter
GAIN_COUNTS = 2.0  # of the converter, besides
LOAD_SHARE = 0.2  # of the meter's reading against load and supply
WIRE_LOW, WIRE_HIGH = 0.7, 1.2  # of the current of an intact wire: its mount, its temperature
ROUNDING = 1e-9  # of a sum, in its unit
POWER_OF_TWO = 0.15  # of a ratio, within which it is two or a half

Reading = Figures

#: What to check first if a board has latched this.
CHECKS = {
    "scan_untrue": "the address lines PC0 to PC3 at both multiplexers, the references at their "
                   "inputs 12 to 14, and AVCC, which must be 5 V",
    "scan_stale": "AVCC and the converter's inputs ADC6 and ADC7",
    "temperature_range": "the temperature sensor at this cell: its supply, its plug",
    "temperature_high": "the temperature sensor at this cell, and what heats it",
    "current_when_off": "the MOSFET at this output, which conducts with its gate off, and the "
                        "offset of its amplifier",
    "current_high": "a short at this output, and the resistance of its load",
    "current_low": "the load or wire at this output, the cells' supply, its fuse and the relay",
    "gate_stuck": "a short at this gate's pin",
    "estop_open": "the e-stop, which must be released, and its loop to PD2",
    "supply_stuck": "relay K1 and K2, of which one is welded or bridged, K1's transistor, and the "
                    "pump at PB5 and SEL0, which must rest",
    "limits_corrupt": "the board's table: hil board limits PORT --set LIMIT=VALUE stores it anew",
    "memory_corrupt": "the board's program: hil board flash PORT; if it comes back, another chip",
    "host_silent": "the USB cable and the load on this computer",
    "cell_energy_high": "the load's resistance, and what its current reads",
    "cell_on_too_long": "on_time_max_ms of the board's limits",
    "too_many_cells_on": "cells_on_max of the board's limits",
}  # fmt: skip
PULSED = "the MOSFET at this output, its gate's resistor and track, its shunt and its amplifier"
RESETS = {
    "watchdog": ("watchdog", "the chip's clock did stop (XTAL1), and WDTON of its fuses"),
    "brown_out": ("brown_out", "the 5 V did sag at the chip, not at its plug alone, and BODLEVEL "
                               "of its fuses"),
}  # fmt: skip


@dataclass(frozen=True)
class Failure:
    """What failed in a step, and what to check first."""

    what: str
    check: str


def failure(key: str, reading: Reading, setup: Setup) -> Failure | None:
    """Judge the reading of a step; None: what must be seen was seen.

    Parameters
    ----------
    reading : `typed`, what somebody read off a meter, and what the board was asked for
    """
    kind, _, number = key.partition(".")
    if kind == "current":
        return _current(reading, setup, int(number) - 1)
    return _JUDGES[kind](reading, setup)


def _gates_in_reset(reading: Reading, setup: Setup) -> Failure | None:
    if not abs(reading["typed"]) <= GATE_LOW_V:  # negative with the meter's leads exchanged
        return Failure(
            f"a gate is at {reading['typed']:g} V in reset, and {GATE_LOW_V:g} V is the most that "
            "keeps its MOSFET off",
            "the 10 kOhm from this gate to ground",
        )
    if not reading["reset_by"]:
        return Failure("the board was not reset meanwhile", "the line to RESET, and its button")
    return None


def _reset_by(cause: str) -> Callable[[Reading, Setup], Failure | None]:
    def judge(reading: Reading, setup: Setup) -> Failure | None:
        wanted, check = RESETS[cause]
        if reading["reset_by"] == wanted:
            return None
        words = {"": "the board was not reset"}
        by = words.get(reading["reset_by"], f"the board was reset by {reading['reset_by']}")
        return Failure(f"{by}, and should have been by {wanted}", check)

    return judge


def _inputs(reading: Reading, setup: Setup) -> Failure | None:
    """With bit 2 or 3 of an address at 1, inputs 8 to 11 or 4 to 7 read references."""
    cells = set(reading["fault_cells"])
    for bit, block in ((2, range(8, 12)), (3, range(4, 8))):
        if len(cells) >= len(block) - 1 and cells <= set(block):
            return Failure(
                f"the board finds {reading['faults'][0]}{_at(reading['fault_cells'], setup)} with "
                f"nothing connected: bit {bit} of its multiplexers' address stays at 1",
                CHECKS["scan_untrue"],
            )
    return _idle(reading, setup)


def _idle(reading: Reading, setup: Setup) -> Failure | None:
    """Nothing latched with every gate off."""
    return _latched(reading, setup, "with every gate off")


def _latched(reading: Reading, setup: Setup, when: str) -> Failure | None:
    if not reading["faults"]:
        return None
    first = reading["faults"][0]
    return Failure(
        f"the board finds {first}{_at(reading['fault_cells'], setup)} {when}",
        CHECKS[first],
    )


def _at(cells: Sequence[int], setup: Setup) -> str:
    names = [_output(i, setup) for i in cells]
    return f" at {', '.join(names)}" if names else ""


def _output(i: int, setup: Setup) -> str:
    return f"output {i + 1}" + (f" ({setup.cells[i]})" if i < len(setup.cells) else "")


def _estop_seen(reading: Reading, setup: Setup) -> Failure | None:
    if reading["seen"] == "yes":
        return None
    return Failure(
        "the e-stop was not seen, open and then closed",
        "the second pair of its contacts and the line to PD2, which must open when it is pressed",
    )


def _open_loads(reading: Reading, setup: Setup) -> Failure | None:
    for i, one in enumerate(reading["outputs"]):
        if not one["faults"] and one["result"] != "done":
            return _refused(one, setup, f"as {_output(i, setup)} is tried")
        if not looks_open(one, i):
            return Failure(
                f"{_output(i, setup)} has no load, and the board finds "
                f"{', '.join(one['faults']) or 'none missing'}{_at(one['fault_cells'], setup)}",
                "the offset of its amplifier, current_on_min_mA of the board's limits, and that "
                "nothing is connected",
            )
    return _output_left_out(reading["outputs"], setup)


def looks_open(reading: Reading, output: int) -> bool:
    """Whether the board found the load of this output missing, and of no other."""
    return bool(reading["faults"] == ["current_low"] and reading["fault_cells"] == [output])


def _output_left_out(readings: Sequence[Reading], setup: Setup) -> Failure | None:
    if len(readings) == len(setup.cells):
        return None
    return Failure("not every output was tried", "the readings, which were changed")


def _rail_dead(reading: Reading, setup: Setup) -> Failure | None:
    latched = _latched(reading, setup, "with the supply on and relay K1 open")
    if latched is not None:
        return latched
    if abs(reading["typed"]) <= CUT_V:
        return None
    return Failure(
        f"{reading['typed']:g} V are behind relay K1 with the board not armed, and {CUT_V:g} V is "
        f"the most; the board reads {reading['rail_V']:.1f} V",
        "relay K1 and what bridges it; then the divider at input 15 of the temperatures",
    )


def _supply(reading: Reading, setup: Setup) -> Failure | None:
    off = _latched(reading, setup, "with the supply on and every gate off")
    if off is not None:
        return off
    place = "before relay K1" if setup.measures else "at the loads"
    if abs(reading["typed"] - setup.supply_V) > SUPPLY_SHARE * setup.supply_V + ROUNDING:
        return Failure(
            f"the cells' supply is {reading['typed']:g} V {place}, and should be "
            f"{setup.supply_V:g} V within {100 * SUPPLY_SHARE:g} %",
            "the supply's setting and current limit, the fuse, and the relay's contacts",
        )
    if not setup.measures or _are_alike(reading["feed_V"], reading["typed"]):
        return None
    return Failure(
        f"the board reads {reading['feed_V']:.2f} V before relay K1, and the meter "
        f"{reading['typed']:g} V",
        "the divider at input 15 of the currents, and supply_full_scale_mV of the board's limits",
    )


def _are_alike(one_V: float, other_V: float) -> bool:
    return abs(one_V - other_V) <= DIVIDER_SHARE * abs(other_V) + DIVIDER_V


def _relay(reading: Reading, setup: Setup) -> Failure | None:
    closed, opened = reading["closed"], reading["opened"]
    if reading["faults"]:
        return _refused(reading, setup, "as relay K1 is tried")
    if reading["result"] != "not_armed" or not _are_alike(closed["rail_V"], closed["feed_V"]):
        return Failure(
            f"relay K1 is to close, and the board reads {closed['feed_V']:.2f} V before it and "
            f"{closed['rail_V']:.2f} V behind it",
            "its coil and contact, the pump at PB5 and SEL0 with its transistor, and the divider "
            "at input 15 of the temperatures",
        )
    if opened["rail_V"] <= CUT_V and _are_alike(opened["feed_V"], closed["feed_V"]):
        return None
    return Failure(
        f"relay K1 is to open, and the board reads {opened['feed_V']:.2f} V before it and "
        f"{opened['rail_V']:.2f} V behind it",
        "its contact and its transistor, and what holds the rail up",
    )


def _leaks(reading: Reading, setup: Setup) -> Failure | None:
    if reading["faults"] or reading["result"] != "not_armed":
        return _refused(reading, setup, "with relay K1 closed and every gate off")
    return None


def _estop_cuts(reading: Reading, setup: Setup) -> Failure | None:
    if not reading["open"]:
        return Failure("the board does not see the e-stop open", "that it is pressed, and its loop")
    if max(abs(reading["typed"]), reading.get("feed_V", 0.0)) <= CUT_V:
        return None
    place, relay = ("before relay K1", "K2") if setup.measures else ("at the loads", "the relay")
    by_board = f", {reading['feed_V']:.1f} V by the board" if setup.measures else ""
    return Failure(
        f"{reading['typed']:g} V are left {place} with the e-stop pressed{by_board}, and "
        f"{CUT_V:g} V is the most",
        f"{relay}: whether its contacts are welded, and its coil in series with the e-stop",
    )


def drives_itself(reading: Reading, setup: Setup, gate: int) -> bool:
    """Whether this gate drives its own input, and no other."""
    return _gate(reading, setup, gate) is None


def _gate(reading: Reading, setup: Setup, gate: int) -> Failure | None:
    label = _output(gate, setup)
    others = [i for i in reading["fault_cells"] if i != gate]
    if "current_when_off" in reading["faults"] and others:
        seen = ", ".join(str(i + 1) for i in others)
        return Failure(
            f"gate {gate + 1} drives the current of input {seen}: swapped, or connected to it",
            f"the wires from gates {gate + 1} and {seen} to their MOSFETs, then those from their "
            "shunts to the multiplexer",
        )
    if reading["faults"] or reading["result"] != "done":
        return _refused(reading, setup, f"with gate {gate + 1} on")
    I_A = reading["current_A"][gate]
    if I_A >= DRIVES_SHARE * setup.load_A:
        return None
    return Failure(
        f"gate {gate + 1} is on and {label} reads {I_A:.3f} A, with a load that draws "
        f"{setup.load_A:.3f} A",
        f"the load there; then {PULSED}",
    )


def _refused(reading: Reading, setup: Setup, when: str) -> Failure:
    latched = _latched(reading, setup, when)
    return latched or Failure(
        f"the board answers {reading['result']} {when}",
        "its 5 V, which may sag and reset it, and the USB cable",
    )


def _gates(reading: Reading, setup: Setup) -> Failure | None:
    wrong = (_gate(one, setup, i) for i, one in enumerate(reading["gates"]))
    return next(filter(None, wrong), None) or _output_left_out(reading["gates"], setup)


def _current(reading: Reading, setup: Setup, cell: int) -> Failure | None:
    if reading["faults"] or reading["result"] != "done":
        return _refused(reading, setup, f"while gate {cell + 1} was on to be read")
    meter_A, label = reading["typed"], _output(cell, setup)
    if abs(meter_A - setup.load_A) > LOAD_SHARE * setup.load_A + ROUNDING:
        return Failure(
            f"the ammeter reads {meter_A:g} A at {label}, and {setup.load_Ohm:g} Ohm at "
            f"{setup.supply_V:g} V draw {setup.load_A:.3f} A",
            "the load's resistance, that the ammeter is in line and in amperes, and that gate "
            f"{cell + 1} switches this output",
        )
    if not setup.measures:
        return None
    board_A = reading["current_A"][cell]
    if abs(board_A - meter_A) <= GAIN_SHARE * meter_A + GAIN_COUNTS * setup.count_A:
        return None
    ratio = board_A / meter_A
    for gain, words in ((2.0, "twice"), (0.5, "half of")):
        if abs(ratio / gain - 1.0) <= POWER_OF_TWO:
            return Failure(
                f"{label} reads {board_A:.3f} A, {words} the {meter_A:g} A of the ammeter: the "
                "gain is off by two",
                "the type of its amplifier, its shunt, and current_full_scale_mA of the board's "
                "limits",
            )
    return Failure(
        f"{label} reads {board_A:.3f} A, {ratio:.3g} times the {meter_A:g} A of the ammeter, and "
        f"may be off by {100 * GAIN_SHARE:g} %",
        "its shunt and amplifier, and AVCC",
    )


def _shorted(reading: Reading, setup: Setup) -> Failure | None:
    if reading["faults"] == ["current_high"] and reading["fault_cells"] == [0]:
        return None
    faults = ", ".join(reading["faults"]) or "no fault"
    return Failure(
        f"{_output(0, setup)} is shorted, and the board finds {faults}"
        f"{_at(reading['fault_cells'], setup)}",
        "that the link is at output 1, and the current limit of the supply, which must be above "
        f"{1e-3 * setup.table['current_max_mA']:g} A",
    )


def _silence(reading: Reading, setup: Setup) -> Failure | None:
    if reading["result"] != "done":
        return _refused(reading, setup, "as it is armed with every load")
    if reading["faults"] == ["host_silent"]:
        return None
    return Failure(
        "left without commands, the board did not stop by itself",
        "its firmware; do not use this board",
    )


def _wire(reading: Reading, setup: Setup) -> Failure | None:
    if reading["faults"] or reading["result"] != "done":
        return _refused(reading, setup, "with the wire on")
    if not setup.measures:
        return None
    I_A = reading["current_A"]
    if setup.wire_A is not None:
        low_A, high_A = WIRE_LOW * setup.wire_A, WIRE_HIGH * setup.wire_A
        if not low_A <= I_A[0] <= high_A:
            return Failure(
                f"the wire draws {I_A[0]:.3f} A, and the rig's draws {low_A:.3f} to {high_A:.3f} A",
                "its length and diameter, its crimps, and supply_V of the rig",
            )
    return None


def _wire_stopped(reading: Reading, setup: Setup) -> Failure | None:
    if reading["faults"][:1] == ["estop_open"]:
        return None
    if reading["faults"]:
        return _refused(reading, setup, "with the wire on")
    return Failure(
        "the wire was on to its end, and the e-stop was not seen open",
        "that it was pressed in time; then its loop to PD2",
    )


_JUDGES: dict[str, Callable[[Reading, Setup], Failure | None]] = {
    "gates_in_reset": _gates_in_reset,
    "inputs": _inputs,
    "estop_seen": _estop_seen,
    "watchdog": _reset_by("watchdog"),
    "brown_out": _reset_by("brown_out"),
    "open_loads": _open_loads,
    "rail_dead": _rail_dead,
    "supply": _supply,
    "relay": _relay,
    "estop_cuts": _estop_cuts,
    "estop_released": _idle,
    "leaks": _leaks,
    "gates": _gates,
    "shorted": _shorted,
    "silence": _silence,
    "wire": _wire,
    "wire_stopped": _wire_stopped,
}
