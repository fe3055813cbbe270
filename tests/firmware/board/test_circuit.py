"""The driver board's circuits: what they satisfy, and what each rule finds in a damaged one."""

import logging.config
import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy

import pytest

from lazily import Lazily

circuit, rules = Lazily("circuit"), Lazily("rules")
pytestmark = pytest.mark.xdist_group("circuit")  # SKiDL takes 3 s to load, 10 s in a worker


@pytest.fixture(scope="module")
def builds():
    """Both circuits in SKiDL, unchanged by any test.

    SKiDL reads the whole stack for every part: a thread of its own takes a tenth of the time.
    """
    with ThreadPoolExecutor(1) as short_stack:
        return tuple(short_stack.map(lambda make: make(), (circuit.board, circuit.modules)))


@pytest.fixture
def board(builds):
    return deepcopy(builds[0].netlist())


@pytest.fixture
def modules(builds):
    return deepcopy(builds[1].netlist())


def move(netlist, ref, pin, net):
    """Reconnect a pin of a part."""
    assert pin in netlist.parts[ref].pins
    netlist.parts[ref].pins[pin] = net


def bridge(netlist, a, c):
    """A wire between two nets."""
    netlist.parts["R_BRIDGE"] = circuit.Component(
        "R_BRIDGE", "", {"Ohm": 0.0}, {"1": a, "2": c}, {}
    )


def give(netlist, ref, **fields):
    """Another value for a part."""
    netlist.parts[ref].fields.update(fields)


def found_in(netlist):
    return "\n".join(rules.violations(netlist))


def test_both_circuits_satisfy_every_rule(builds, board, modules):
    assert rules.violations(board) == []
    assert rules.violations(modules) == []
    assert [circuit.electrical_rules(build) for build in builds] == [[], []]


def test_every_pin_of_the_firmware_is_in_the_map():
    wanted = {f"PB{n}" for n in range(6)} | {f"PC{n}" for n in range(6)} | {"ADC6", "ADC7"}
    assert set(rules.pin_map()) == wanted | {f"PD{n}" for n in range(8)}


def test_the_nano_has_the_pins_that_the_guide_for_arduinos_names():
    page = (rules.FIRMWARE.parent / "docs/how-to/arduino.md").read_text(encoding="utf-8")
    gates = [circuit.NANO[pin] for pin in circuit.GATE_PINS]
    assert re.search(r"gates 0 to 4 \| D8 to D12 ", page)
    assert gates[:5] == [f"D{n}" for n in range(8, 13)]
    assert re.search(r"gate 5, gate 11 \| A5, A4 ", page)
    assert (gates[5], gates[11]) == ("A5", "A4")
    assert re.search(r"gates 6 to 10 \| D3 to D7 ", page)
    assert gates[6:11] == [f"D{n}" for n in range(3, 8)]
    assert re.search(r"A6, A7 \|$", page, re.M)


# (what is damaged, how, a part of what the rules say)
DAMAGE = {
    "two gates swapped": (
        lambda b: (move(b, "R_G3", "1", "GATE4"), move(b, "R_G4", "1", "GATE3")),
        "gate 3 does not reach its transistor",
    ),
    "two pins of the chip swapped": (
        lambda b: (move(b, "U_CHIP", "PB0", "GATE5"), move(b, "U_CHIP", "PC5", "GATE0")),
        "PB0 carries 'GATE5' in place of 'GATE0'",
    ),
    "two sense inputs swapped": (
        lambda b: (
            move(b, "U_CURRENTS", "Y1", "CURRENT2"),
            move(b, "U_CURRENTS", "Y2", "CURRENT1"),
        ),
        "the current of cell 1 is not at input 1",
    ),
    "two address lines swapped": (
        lambda b: (move(b, "U_CURRENTS", "S0", "SEL1"), move(b, "U_CURRENTS", "S1", "SEL0")),
        "U_CURRENTS: S0 is not SEL0",
    ),
    "a pull-down missing": (lambda b: b.parts.pop("R_PD7"), "gate 7 has no resistor to ground"),
    "a pull-down of 1 MOhm": (
        lambda b: give(b, "R_PD7", Ohm=1e6),
        "gate 7: the leakage of a pin raises it to 1 V",
    ),
    "a shunt of 100 mOhm": (
        lambda b: give(b, "R_S2", Ohm=0.1),
        "cell 2: 2 A give 10 V",
    ),
    "a fuse of 7.5 A": (
        lambda b: give(b, "F_SUPPLY", A=7.5),
        "the fuse is larger than the relays' contacts bear, 6 A",
    ),
    "the fuse bridged": (
        lambda b: bridge(b, "SUPPLY_IN", "FUSED"),
        "the cells have power without F_SUPPLY",
    ),
    "the contact that opens with the e-stop bridged": (
        lambda b: bridge(b, "FUSED", "FEED"),
        "the cells have power without K2_NO1",
    ),
    "coils fed around the e-stop": (
        lambda b: bridge(b, "AUX", "COILS_FED"),
        "a coil is fed without the e-stop",
    ),
    "a welded relay restarts": (
        lambda b: bridge(b, "START_K2", "START_C"),
        "START is charged without K2_NC1",
    ),
    "START without its resistor": (
        lambda b: give(b, "R_START", Ohm=10.0),
        "a START button that sticks pulls the relays in",
    ),
    "a gate that the leak cut does not see": (
        lambda b: b.parts.pop("D_OR11"),
        "gate 11 is not in the sum of the gates",
    ),
    "a spare input that floats": (
        lambda b: move(b, "U_CURRENTS", "Y15", "NOWHERE"),
        "U_CURRENTS: input 15 floats",
    ),
    "joined grounds": (
        lambda b: bridge(b, "USB_GND", "GND"),
        "the computer's ground is joined to the board's",
    ),
    "no suppressor": (lambda b: b.parts.pop("D_CLAMP"), "the rail has no suppressor"),
    "a suppressor the wrong way round": (
        lambda b: (move(b, "D_CLAMP", "K", "GND"), move(b, "D_CLAMP", "A", "RAIL")),
        "the rail has no suppressor",
    ),
    "no diode at a coil": (lambda b: b.parts.pop("D_K2"), "the coil of K2 has no diode"),
    "a sensor's resistor to ground missing": (
        lambda b: b.parts.pop("R_MISSING4"),
        "cell 4: a sensor that is missing does not read 0 V",
    ),
    "ROOM without its upper resistor": (
        lambda b: b.parts.pop("R_ROOM_TOP"),
        "ROOM is 0.00 V",
    ),
    "a sum of the gates that floats": (
        lambda b: b.parts.pop("R_ANY"),
        "the sum of the gates floats",
    ),
    "a leak cut that waits for 0.7 s": (
        lambda b: give(b, "C_DELAY", F=10e-6),
        "the leak cut waits 0.693 s",
    ),
    "a leak cut without its delay's resistor": (
        lambda b: b.parts.pop("R_DELAY"),
        "the leak cut waits inf s",
    ),
    # 98 mV - 9 mV over 1.02 x 200, less 190 uV: 0.246 mV; 107 mV over 0.98 x 200, and 190 uV: 0.736
    "a shunt of 1 mOhm for all": (
        lambda b: give(b, "R_LEAK", Ohm=1e-3),
        "the leak cut trips between 0.246 and 0.736 A",
    ),
    "the leak cut's amplifier with output and input exchanged": (
        lambda b: (move(b, "U_LEAK", "OUT", "GND"), move(b, "U_LEAK", "IN-", "LEAK")),
        "U_LEAK.OUT is not LEAK",
    ),
    "a leak cut without its limit": (
        lambda b: b.parts.pop("R_LEAK_BOTTOM"),
        "the leak cut trips between 0 and inf A",
    ),
    "a leak cut with its comparator's inputs exchanged": (
        lambda b: (move(b, "U_CMP", "IN1-", "HALF"), move(b, "U_CMP", "IN2+", "LEAK_LIMIT")),
        "U_CMP.IN1- is not LEAK_LIMIT",
    ),
    "the return around the shunt of all": (
        lambda b: b.parts.pop("R_LEAK"),
        "the cells' current does not pass the shunt of all",
    ),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_board_is_found(name, board):
    damage, said = DAMAGE[name]
    damage(board)
    assert said in found_in(board)


# The cut, which is the same in both builds.
CUT_DAMAGE = {
    "the last relay's contact bridged": (
        lambda b: bridge(b, "FEED", "RAIL"),
        "the cells have power without K1_NO1",
    ),
    "K2 missing in PD2's loop": (
        lambda b: bridge(b, "LOOP_K2", "GND"),
        "PD2 is at ground without K2_NO2",
    ),
    "K1 in PD2's loop": (
        lambda b: (
            move(b, "K2_NO2", "2", "LOOP_K1"),
            b.parts.update(
                K1_NO2=circuit.Component(
                    "K1_NO2", "", {"contact": "K1"}, {"1": "LOOP_K1", "2": "GND"}, {}
                )
            ),
        ),
        "PD2's loop never closes while K1 rests",
    ),
    "the rail's divider before the last relay": (
        lambda b: move(b, "R_SUPPLY_TOP", "1", "FEED"),
        "input 15 of U_TEMPERATURES is not a divider at RAIL",
    ),
    "the divider before K1 behind the fuse": (
        lambda b: move(b, "R_FED_TOP", "1", "FUSED"),
        "input 15 of U_CURRENTS is not a divider at FEED",
    ),
    "the two dividers exchanged": (
        lambda b: (
            move(b, "U_CURRENTS", "Y15", "SUPPLY"),
            move(b, "U_TEMPERATURES", "Y15", "FED"),
        ),
        "input 15 of U_TEMPERATURES is not a divider at RAIL",
    ),
    "the two relays exchanged": (
        lambda b: (
            move(b, "K1_NO1", "1", "FUSED"),
            move(b, "K1_NO1", "2", "FEED"),
            move(b, "K2_NO1", "1", "FEED"),
            move(b, "K2_NO1", "2", "RAIL"),
        ),
        "K1 is not between K2 and the rail",
    ),
    "a wrong divider of the rail": (
        lambda b: give(b, "R_SUPPLY_TOP", Ohm=20e3),
        "input 15 of U_TEMPERATURES: the divider does not give 5 V at 20 V",
    ),
    # 47 ms ln(5 V / 0.5 V) for the pump, 38 ms for the relay, 40 kOhm 11 uF ln(18 V / 0.8 V)
    "10 uF at the rail": (
        lambda b: b.parts.update(
            C_BULK=circuit.Component("C_BULK", "", {"F": 10e-6}, {"1": "RAIL", "2": "GND"}, {})
        ),
        "RAIL is dead 1.52 s after the pump's stop",
    ),
    "a pump with direct current": (
        lambda b: bridge(b, "PUMP_R", "PUMP_C"),
        "the pump passes a steady level",
    ),
    "a pump at a gate": (
        lambda b: move(b, "U_PUMP", "A", "GATE0"),
        "the pump does not need SEL0",
    ),
    "a pump that is always permitted": (
        lambda b: move(b, "U_PUMP", "B", "VCC"),
        "the pump does not need PERMIT",
    ),
    "a permit that floats in reset": (
        lambda b: b.parts.pop("R_PERMIT"),
        "PERMIT floats while the chip is in reset",
    ),
    "a line of the scan that floats in reset": (
        lambda b: b.parts.pop("R_REST"),
        "SEL0 floats while the chip is in reset",
    ),
    "a coil that the pump does not switch": (
        lambda b: move(b, "K1_COIL", "2", "GND"),
        "the pump does not hold K1",
    ),
    "a pump that holds for seconds": (
        lambda b: give(b, "R_HOLD", Ohm=10e6),
        "the pump's time constant is 4.7 s",
    ),
}


@pytest.mark.parametrize("name", CUT_DAMAGE)
def test_a_damaged_cut_is_found_in_both_builds(name, board, modules):
    damage, said = CUT_DAMAGE[name]
    for build in (board, modules):
        damage(build)
        assert said in found_in(build)


def test_a_module_without_a_level_at_an_unused_temperature_is_found(modules):
    move(modules, "U_TEMPERATURES", "Y9", "GND")
    assert "the unused temperature 9 is not at ROOM" in found_in(modules)


def test_a_nano_wired_to_the_wrong_header_is_found(modules):
    modules.parts["U_NANO"].names["D8"] = "PB1"
    assert "D8 of the Nano is PB1, not PB0" in found_in(modules)


def test_the_list_of_parts_counts_the_parts_of_the_circuits(board, modules):
    for build, cells in ((board, circuit.CELLS), (modules, circuit.MODULE_CELLS)):
        placed = Counter(part.kind for part in build.parts.values() if part.kind)
        listed = {
            name: part.get("count", 0) + part.get("per_cell", 0) * cells
            for name, part in circuit.PARTS.items()
            if build.kind in part["builds"]
        }
        placed["estop"] = 1
        for name in ("start_button", "usb_isolator"):  # a button is drawn as its contacts; outside
            placed[name] = listed.get(name, 0)
        assert {k: v for k, v in placed.items() if v} == {k: v for k, v in listed.items() if v}


def test_skidl_finds_an_input_that_nothing_drives_and_two_outputs_on_one_net():
    logging.config.dictConfig({"version": 1})  # as any other package may do
    build = circuit.Build("board")
    pins = (
        (1, "A", circuit.IN),
        (2, "B", circuit.OUT),
        (3, "C", circuit.OUT),
        (4, "D", circuit.IN),
    )
    build.part("U1", pins, {"A": "ALONE", "B": "BOTH", "C": "BOTH", "D": "FLOATS"})
    build.part("U2", pins[3:], {"D": "FLOATS"})
    found = "\n".join(circuit.electrical_rules(build))
    assert "Only one pin" in found
    assert "Pin conflict on net BOTH" in found
    assert "Insufficient drive current on net FLOATS" in found
