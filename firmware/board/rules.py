"""What a circuit of the driver board must satisfy, beside SKiDL's electrical rules.

Each rule yields a line for every violation. Pins come from the firmware's `pins.h`, limits from its
`protocol.h`, ratings from `parts.toml`. `python firmware/board/rules.py` checks both circuits and
prints their nets.
"""

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from math import inf, log, prod
from pathlib import Path

from circuit import (
    CELLS,
    MODULE_CELLS,
    NANO,
    PARTS,
    Component,
    Netlist,
    board,
    electrical_rules,
    modules,
)  # fmt: skip

FIRMWARE = Path(__file__).parents[1]
PIN_LEAKAGE_A = 1e-6  # of an input, most: DS40002061, DC characteristics
SUPPLY_V = 5.0
LEAK_SEEN_A = 0.075  # hil/experiment/board_parts.py warns of cells that draw less
LEAK_DELAY_S = (0.05, 0.09)  # the page says within 90 ms
COMPARATOR_V, LEAK_OFFSET_V = 9e-3, 190e-6  # offsets, most: LM393 over temperature; INA180
LONGEST_GAP_S = 0.0175  # between two changes of SEL0: a scan under commands, firmware/README.md
CUT_S = 0.4  # the firmware waits at least so long for a dead rail once it is cut
RELAY_S, COIL_S = 0.03, 0.008  # a relay's release with its diode, assumed; the coil's: spice.py
DEAD_V = 0.8  # 41 counts of 20 V
RAIL_F = 1e-6  # assumed: leads, diodes and modules at the rail, beside its capacitors


def violations(build: Netlist) -> list[str]:
    """Every violation of every rule."""
    found = []
    for rule in RULES:
        if rule not in BOARD_ONLY or build.kind == "board":
            found += [f"{rule.__name__}: {line}" for line in rule(build)]
    return found


# The firmware's own definitions


def pin_map() -> dict[str, str]:
    """Net of every pin in the comment of `pins.h`, such as PB0: GATE0.

    The masks of the code must say the same.
    """
    text = (FIRMWARE / "port" / "atmega328p" / "pins.h").read_text(encoding="utf-8")
    found = {"PD0": "RXD", "PD1": "TXD", "PD2": "ESTOP", "PB5": "PERMIT"}
    for first, last, pins in re.findall(r"^ \* gate +(\d+)(?:\.\.(\d+))? +(\S+)", text, re.M):
        numbers = range(int(first), int(last or first) + 1)
        found |= {pin: f"GATE{n}" for n, pin in zip(numbers, _pins(pins), strict=True)}
    (select,) = re.findall(r"select 0\.\.3 +(\S+)", text)
    found |= {pin: f"SEL{n}" for n, pin in enumerate(_pins(select))}
    (current,) = re.findall(r"CHANNEL_CURRENT = (\d)", text)
    (heat,) = re.findall(r"CHANNEL_TEMPERATURE = (\d)", text)
    found |= {f"ADC{current}": "CURRENTS", f"ADC{heat}": "TEMPERATURES"}
    masks = {name: int(value, 16) for name, value in re.findall(r"(\w+_[BCD]) = (0x\w+)", text)}
    for letter in "BCD":
        gates = sum(
            1 << int(pin[2]) for pin, net in found.items() if pin[1] == letter and "GATE" in net
        )
        if masks[f"GATES_{letter}"] != gates:
            raise ValueError(f"pins.h: GATES_{letter} does not agree with its comment")
    return found


def _pins(text: str) -> list[str]:
    first, *last = text.split("..")
    ends = (int(first[2]), int((last or [first])[0][2]))
    return [f"{first[:2]}{n}" for n in range(ends[0], ends[1] + 1)]


def limits() -> dict[str, tuple[int, int, int]]:
    """Default, lowest and highest value of every limit in `protocol.h`."""
    text = (FIRMWARE / "core" / "protocol.h").read_text(encoding="utf-8")
    rows = re.findall(r"L\(\w+, (\w+), (-?\d+), (-?\d+), (-?\d+)\)", text)
    return {name: (int(a), int(b), int(c)) for name, a, b, c in rows}


# The circuit as a graph


def net_of(build: Netlist, ref: str, pin: str) -> str:
    """The net at a pin; empty if part or net is missing."""
    return build.parts[ref].pins.get(pin, "") if ref in build.parts else ""


def between(build: Netlist, a: str, c: str, field: str) -> list[float]:
    """Values of the parts with this field between two nets."""
    return [
        part.fields[field]
        for part in build.parts.values()
        if field in part.fields and sorted(part.pins.values()) == sorted((a, c))
    ]


def _conducts(part: Component) -> bool:
    """Whether direct current can pass between its two poles; a source joins nothing."""
    sources = ("J_AUX", "J_SUPPLY")
    return len(part.pins) == 2 and "F" not in part.fields and not part.ref.startswith(sources)


def reach(
    build: Netlist,
    start: str,
    without: Iterable[str],
    through: Callable[[Component], bool] = _conducts,
) -> set[str]:
    """Nets that direct current can reach from a net, without the parts whose names begin so."""
    left, found = tuple(without), {start}
    edges = [
        set(part.pins.values())
        for part in build.parts.values()
        if through(part) and not (left and part.ref.startswith(left))
    ]
    grown = True
    while grown:
        new = {net for nets in edges if found & nets for net in nets} - found
        found |= new
        grown = bool(new)
    return found


# The rules


def pins_of_the_firmware(build: Netlist) -> Iterator[str]:
    """Every net of `pins.h` is at its pin of the chip or of the Nano."""
    chip = "U_CHIP" if build.kind == "board" else "U_NANO"
    for pin, net in pin_map().items():
        spare = build.kind == "modules" and (
            pin in ("PD0", "PD1") or (net[:4] == "GATE" and int(net[4:]) >= MODULE_CELLS)
        )
        found = net_of(build, chip, pin)
        if found != ("" if spare else net):
            yield f"{pin} carries '{found}' in place of '{'' if spare else net}'"
        names = build.parts[chip].names
        if build.kind == "modules" and not spare and names.get(NANO[pin]) != pin:
            yield f"{NANO[pin]} of the Nano is {names.get(NANO[pin])}, not {pin}"


def each_gate_drives_its_own_sense_input(build: Netlist) -> Iterator[str]:
    """Gate n switches the cell whose current and temperature the firmware reads at address n."""
    for n in range(CELLS if build.kind == "board" else MODULE_CELLS):
        if build.kind == "board":
            series = between(build, f"GATE{n}", net_of(build, f"Q{n}", "G"), "Ohm")
            source = net_of(build, f"Q{n}", "S")
            current = net_of(build, f"U_I{n}", "OUT")
            if net_of(build, f"U_I{n}", "IN+") != source or source == "RETURN":
                yield f"the amplifier of cell {n} does not measure at its transistor"
            if not between(build, source, "RETURN", "Ohm"):
                yield f"cell {n} has no shunt"
            filtered = net_of(build, "U_CURRENTS", f"Y{n}")
            if not between(build, current, filtered, "Ohm"):
                yield f"the current of cell {n} is not at input {n} of its multiplexer"
        else:
            series = [0.0] if net_of(build, f"Q{n}", "SIG") == f"GATE{n}" else []
            if net_of(build, f"U_I{n}", "VOUT") != net_of(build, "U_CURRENTS", f"Y{n}"):
                yield f"the current of cell {n} is not at input {n} of its multiplexer"
        if not series:
            yield f"gate {n} does not reach its transistor"
        heat = net_of(build, "U_TEMPERATURES", f"Y{n}")
        if not between(build, net_of(build, f"T{n}", "OUT"), heat, "Ohm"):
            yield f"the temperature of cell {n} is not at input {n} of its multiplexer"
        if not between(build, heat, "GND", "Ohm"):
            yield f"cell {n}: a sensor that is missing does not read 0 V"


def references_at_their_inputs(build: Netlist) -> Iterator[str]:
    """Inputs 12 to 15 have the levels that `pins.h` gives, and the address lines are in order."""
    for mux in ("U_CURRENTS", "U_TEMPERATURES"):
        for n, net in ((12, "AVCC"), (13, "REF4096"), (14, "HALF")):
            if net_of(build, mux, f"Y{n}") != net:
                yield f"{mux}: input {n} is not {net}"
        for n in range(4):
            if net_of(build, mux, f"S{n}") != f"SEL{n}":
                yield f"{mux}: S{n} is not SEL{n}"
        if net_of(build, mux, "E") != "GND":
            yield f"{mux}: is not enabled"
    if net_of(build, "U_CURRENTS", "Z") != "CURRENTS":
        yield "the currents' multiplexer does not feed ADC6"
    if net_of(build, "U_TEMPERATURES", "Z") != "TEMPERATURES":
        yield "the temperatures' multiplexer does not feed ADC7"
    top, bottom = between(build, "AVCC", "HALF", "Ohm"), between(build, "HALF", "GND", "Ohm")
    if not top or top != bottom:
        yield "HALF is not half of AVCC"


def supply_is_sensed_on_both_sides(build: Netlist) -> Iterator[str]:
    """Input 15 of the temperatures is the rail, and of the currents the supply before K1."""
    full_V = 1e-3 * limits()["supply_full_scale_mV"][0]
    behind, before = net_of(build, "K1_NO1", "2"), net_of(build, "K1_NO1", "1")
    for mux, place in (("U_TEMPERATURES", behind), ("U_CURRENTS", before)):
        level = net_of(build, mux, "Y15")
        top, bottom = between(build, place, level, "Ohm"), between(build, level, "GND", "Ohm")
        if not top or not bottom:
            yield f"input 15 of {mux} is not a divider at {place}"
        elif abs(SUPPLY_V * (1 + top[0] / bottom[0]) / full_V - 1) > 0.01:
            yield f"input 15 of {mux}: the divider does not give 5 V at {full_V:g} V"
    if behind != "RAIL" or net_of(build, "K2_NO1", "2") != before:
        yield "K1 is not between K2 and the rail"


def rail_dies_in_time(build: Netlist) -> Iterator[str]:
    """Pump, relay and discharge take less time than the firmware waits for a dead rail."""
    hold = between(build, "PUMP", "GND", "F")[:1], between(build, "PUMP", "GND", "Ohm")[:1]
    pump_s = prod(hold[0] + hold[1]) * log(SUPPLY_V / PARTS["mosfet"]["threshold_min_V"])
    for net, level in (("RAIL", "SUPPLY"), ("FEED", "FED")):
        loads = [sum(between(build, net, level, "Ohm") + between(build, level, "GND", "Ohm"))]
        loads += between(build, net, "GND", "Ohm")
        farad = RAIL_F + sum(between(build, net, "GND", "F"))
        ohm = 1.0 / sum(1.0 / load for load in loads) if all(loads) else inf
        dies_s = ohm * farad * log(PARTS["clamp"]["stand_off_V"] / DEAD_V)
        if pump_s + COIL_S + RELAY_S + dies_s > CUT_S:
            yield f"{net} is dead {pump_s + COIL_S + RELAY_S + dies_s:.3g} s after the pump's stop"


def spare_inputs_have_levels(build: Netlist) -> Iterator[str]:
    """No multiplexer input floats; unused temperatures read a room's temperature."""
    joined = build.nets()
    low, high = (limits()[f"temperature_counts_{end}"][0] for end in ("min", "max"))
    for mux in ("U_CURRENTS", "U_TEMPERATURES"):
        for n in range(16):
            net = net_of(build, mux, f"Y{n}")
            if len(joined.get(net, ())) < 2:
                yield f"{mux}: input {n} floats"
    top, bottom = between(build, "AVCC", "ROOM", "Ohm"), between(build, "ROOM", "GND", "Ohm")
    level_V = SUPPLY_V * bottom[0] / (top[0] + bottom[0]) if top and bottom else 0.0
    if not low < 1023 * level_V / SUPPLY_V < high or not 15 <= 100 * (level_V - 0.5) <= 40:
        yield f"ROOM is {level_V:.2f} V, not a room's temperature"
    if build.kind == "modules":
        for n in range(MODULE_CELLS, CELLS):
            if net_of(build, "U_CURRENTS", f"Y{n}") != "GND":
                yield f"the unused current {n} is not at ground"
            if net_of(build, "U_TEMPERATURES", f"Y{n}") != "ROOM":
                yield f"the unused temperature {n} is not at ROOM"


def sense_covers_the_limits(build: Netlist) -> Iterator[str]:
    """5 V are `current_full_scale_mA`; the highest `current_max_mA` can still be measured."""
    sense = PARTS["sense"]
    full_A = 1e-3 * limits()["current_full_scale_mA"][0]
    highest_A = 1e-3 * limits()["current_max_mA"][2]
    for n in range(CELLS):
        (shunt_Ohm,) = between(build, net_of(build, f"Q{n}", "S"), "RETURN", "Ohm") or (0.0,)
        volts_per_A = shunt_Ohm * sense["gain"]
        if abs(volts_per_A * full_A / SUPPLY_V - 1) > 0.01:
            yield f"cell {n}: {full_A:g} A give {volts_per_A * full_A:g} V"
        errors = 1 + sense["gain_error"] + PARTS["shunt"]["tolerance"]
        offset_V = sense["gain"] * (sense["offset_V"] + 40 * sense["offset_drift_V_per_K"])
        most_V = volts_per_A * highest_A * errors + offset_V
        if most_V > SUPPLY_V * 0.988 - sense["swing_to_supply_V"]:
            yield f"cell {n}: {highest_A:g} A saturate the amplifier"
        if shunt_Ohm * full_A**2 > 0.5 * PARTS["shunt"]["power_W"]:
            yield f"cell {n}: full scale heats the shunt beyond half its rating"


def gates_are_low_in_reset(build: Netlist) -> Iterator[str]:
    """A resistor holds every gate below its threshold, unpowered and against a pin's leakage."""
    least_V = PARTS["mosfet"]["threshold_min_V"]
    for n in range(CELLS):
        ohms = between(build, net_of(build, f"Q{n}", "G"), "GND", "Ohm")
        if not ohms:
            yield f"gate {n} has no resistor to ground"
        elif PIN_LEAKAGE_A * ohms[0] > 0.1 * least_V:
            yield f"gate {n}: the leakage of a pin raises it to {PIN_LEAKAGE_A * ohms[0]:.2g} V"
        drive = between(build, f"GATE{n}", net_of(build, f"Q{n}", "G"), "Ohm")
        if ohms and drive and 4.1 * ohms[0] / (ohms[0] + drive[0] + 40) < 2.5:
            yield f"gate {n}: below 2.5 V when the chip's supply is at the brown-out level"


def supply_passes_fuse_and_relays(build: Netlist) -> Iterator[str]:
    """Current reaches the cells only through the fuse and every relay, within their ratings."""
    kind = "relay" if build.kind == "board" else "relay_module"
    if "RAIL" not in reach(build, "SUPPLY_IN", ["J_CELL"]):
        yield "the supply does not reach the cells"
    for ref in ("F_SUPPLY", "K1_NO1", "K2_NO1"):
        if "RAIL" in reach(build, "SUPPLY_IN", [ref, "J_CELL"], lambda p: _conducts(p)
                           and not {"GND", "VCC", "AVCC"} & set(p.pins.values())):  # fmt: skip
            yield f"the cells have power without {ref}"
    fuse = build.parts.get("F_SUPPLY")
    bears = {
        "the relays' contacts": PARTS[kind]["contact_A"],
        "the supply's connector": PARTS["supply_connector"]["current_A"],
    }
    for what, most_A in bears.items():
        if fuse is None or fuse.fields["A"] > most_A:
            yield f"the fuse is larger than {what} bear, {most_A:g} A"


def transistors_bear_the_clamp(build: Netlist) -> Iterator[str]:
    """The suppressor at the rail clamps below the transistors' voltage and above the supply's."""
    clamp = build.parts.get("D_CLAMP")
    if clamp is None or clamp.pins != {"K": "RAIL", "A": "GND"}:
        yield "the rail has no suppressor"
    if PARTS["clamp"]["clamps_V"] > PARTS["mosfet"]["drain_V"]:
        yield "the suppressor clamps above the transistors' voltage"
    for n in range(CELLS):
        free = build.parts.get(f"D_FREE{n}")
        if free is None or free.pins != {"K": "RAIL", "A": net_of(build, f"Q{n}", "D")}:
            yield f"cell {n} has no diode to the rail"


def estop_opens_coils_and_loop(build: Netlist) -> Iterator[str]:
    """One contact of the e-stop feeds the coils, the other closes PD2's loop with K2's.

    K1 rests while the board is disarmed: with its contact in the loop nothing could be armed.
    """
    fed = reach(build, "AUX", ["ESTOP", "K1_COIL", "K2_COIL", "D_K"])
    if "COILS" in fed or "START_C" in fed:
        yield "a coil is fed without the e-stop"
    for ref in ("ESTOP_NC2", "K2_NO2"):
        if "GND" in reach(build, "ESTOP", [ref, "R_LOOP"]):
            yield f"PD2 is at ground without {ref}"
    if "GND" not in reach(build, "ESTOP", ["R_LOOP", "K1"]):
        yield "PD2's loop never closes while K1 rests"
    pull = between(build, "VCC", "LOOP", "Ohm")
    if not pull:
        yield "PD2's loop has no pull-up"


def relays_hold_and_restart_by_hand(build: Netlist) -> Iterator[str]:
    """Coils are fed through K2's own contact; START only discharges a capacitor."""
    if "COILS" in reach(build, "COILS_FED", ["K2_NO3", "START", "K1_COIL", "K2_COIL", "D_K"]):
        yield "the coils hold without K2_NO3"
    for ref in ("K1_NC1", "K2_NC1"):
        if "START_C" in reach(build, "COILS_FED", [ref, "START_NO1", "K1_NO3", "K2_NO3"]):
            yield f"START is charged without {ref}: a welded relay would restart"
    charge = between(build, "COILS_FED", "START_K1", "Ohm")
    coil_Ohm = PARTS["relay"]["coil_Ohm"]
    if not charge or 12.6 * coil_Ohm / (coil_Ohm + charge[0]) > 0.5 * 0.75 * 12:
        yield "a START button that sticks pulls the relays in"
    if not between(build, "START_C", "GND", "F"):
        yield "START has no capacitor"


def coils_have_diodes(build: Netlist) -> Iterator[str]:
    """A coil's current goes on through its diode when the coil is switched off."""
    for name in ("K1", "K2"):
        pins = {"K": "COILS", "A": net_of(build, f"{name}_COIL", "2")}
        if not any(part.pins == pins for part in build.parts.values()):
            yield f"the coil of {name} has no diode, which its transistor needs"


def pump_needs_scan_and_permit(build: Netlist) -> Iterator[str]:
    """K1 is held by an address line of the scan through a capacitor, while PB5 permits it.

    Both rest at ground in reset: a boot loader blinks PB5, a programmer clocks it, and neither
    turns the scan.
    """
    gate, fed = net_of(build, "Q_PUMP", "G"), net_of(build, "U_PUMP", "Y")
    aside = ["R_HOLD", "C_HOLD", "D_PUMP1"]
    if {fed, *(f"SEL{n}" for n in range(4))} & reach(build, gate, aside):
        yield "the pump passes a steady level"
    if fed not in reach(build, gate, aside, lambda p: len(p.pins) == 2):
        yield "the pump is not fed by its gate"
    for pin, net in (("A", "SEL0"), ("B", "PERMIT")):
        if net_of(build, "U_PUMP", pin) != net:
            yield f"the pump does not need {net}"
        if not between(build, net, "GND", "Ohm"):
            yield f"{net} floats while the chip is in reset"
    if net_of(build, "Q_PUMP", "D") != net_of(build, "K1_COIL", "2"):
        yield "the pump does not hold K1"
    hold, drain = between(build, gate, "GND", "F"), between(build, gate, "GND", "Ohm")
    if not hold or not drain:
        yield "the pump never drops"
    elif not 2 * LONGEST_GAP_S < hold[0] * drain[0] < 0.06:
        yield f"the pump's time constant is {hold[0] * drain[0]:.3g} s"


def leak_drops_the_relays(build: Netlist) -> Iterator[str]:
    """All cells' current passes one shunt; current while every gate is low opens K2."""
    for n in range(CELLS):
        diode = build.parts.get(f"D_OR{n}")
        if diode is None or diode.pins != {"K": "ANY", "A": f"GATE{n}"}:
            yield f"gate {n} is not in the sum of the gates"
    if not between(build, "RETURN", "GND", "Ohm"):
        yield "the cells' current does not pass the shunt of all"
    wired = (("U_LEAK", "IN+", "RETURN"), ("U_CMP", "IN1+", "LEAK"), ("U_CMP", "OUT1", "DELAY"),
             ("U_CMP", "IN1-", "LEAK_LIMIT"), ("U_CMP", "IN2+", "HALF"),
             ("U_LEAK", "OUT", "LEAK"), ("U_LEAK", "IN-", "GND"),
             ("Q_ANY", "G", "ANY"), ("Q_ANY", "D", "DELAY"), ("U_CMP", "IN2-", "DELAY"),
             ("U_CMP", "OUT2", "LEAK_GATE"), ("Q_LEAK", "G", "LEAK_GATE"))  # fmt: skip
    for ref, pin, net in wired:
        if net_of(build, ref, pin) != net:
            yield f"{ref}.{pin} is not {net}"
    if net_of(build, "Q_LEAK", "D") != net_of(build, "K2_COIL", "2"):
        yield "the leak cut does not hold K2"
    if not between(build, "ANY", "GND", "Ohm"):
        yield "the sum of the gates floats when no gate is high"
    if not between(build, "VCC", "LEAK_GATE", "Ohm"):
        yield "nothing closes K2"
    least_A, most_A = _leak_A(build)
    if not 0.0 < least_A < most_A <= LEAK_SEEN_A:
        yield f"the leak cut trips between {least_A:.3g} and {most_A:.3g} A"
    charge, wait = between(build, "VCC", "DELAY", "Ohm"), between(build, "DELAY", "GND", "F")
    delay_s = log(2.0) * charge[0] * wait[0] if charge and wait else inf
    if not LEAK_DELAY_S[0] < 0.89 * delay_s < 1.11 * delay_s < LEAK_DELAY_S[1]:
        yield f"the leak cut waits {delay_s:.3g} s"


def _leak_A(build: Netlist) -> tuple[float, float]:
    """Lowest and highest current at which the comparator of the leak cut may switch."""
    ends = ("AVCC", "LEAK_LIMIT"), ("LEAK_LIMIT", "GND"), ("RETURN", "GND")
    found = [between(build, *pair, "Ohm") for pair in ends]
    if not all(found):
        return 0.0, inf
    (top, *_), (bottom, *_), (shunt, *_) = found
    limit_V, gain = SUPPLY_V * bottom / (top + bottom), PARTS["leak_sense"]["gain"]
    least, most = (
        (limit_V + sign * COMPARATOR_V) / (gain * (1 - 0.02 * sign)) + sign * LEAK_OFFSET_V
        for sign in (-1, 1)
    )
    return least / shunt, most / shunt


def computer_is_isolated(build: Netlist) -> Iterator[str]:
    """No part but the isolator joins the computer's side and the cells' side."""
    side = reach(build, "USB_GND", ["U_ISO"], lambda p: True)
    if side & {"GND", "VCC", "RAIL"}:
        yield "the computer's ground is joined to the board's"
    if net_of(build, "U_ISO", "GND1") != "USB_GND":
        yield "the isolator has no ground on the computer's side"


RULES = (
    pins_of_the_firmware, each_gate_drives_its_own_sense_input, references_at_their_inputs,
    supply_is_sensed_on_both_sides, rail_dies_in_time, spare_inputs_have_levels,
    sense_covers_the_limits, gates_are_low_in_reset, supply_passes_fuse_and_relays,
    transistors_bear_the_clamp, estop_opens_coils_and_loop, relays_hold_and_restart_by_hand,
    coils_have_diodes, pump_needs_scan_and_permit, leak_drops_the_relays, computer_is_isolated,
)  # fmt: skip
BOARD_ONLY = (
    sense_covers_the_limits, gates_are_low_in_reset, transistors_bear_the_clamp,
    relays_hold_and_restart_by_hand, leak_drops_the_relays, computer_is_isolated,
)  # fmt: skip


def _main() -> int:
    found = 0
    for build in (board(), modules()):
        netlist = build.netlist()
        for line in [*electrical_rules(build), *violations(netlist)]:
            print(f"{build.kind}: {line}")
            found += 1
        for name, pins in sorted(netlist.nets().items()):
            print(f"{build.kind}  {name}: {', '.join(sorted(pins))}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(_main())
