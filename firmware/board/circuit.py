"""The driver board as a netlist: one board for twelve cells, and bought modules for six.

The values of resistors and capacitors stand here; numbers and ratings of parts in `parts.toml`.
`python firmware/board/rules.py` checks both circuits and prints their nets.
"""

import contextlib
import io
import logging
import tempfile
import tomllib
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# SKiDL opens logs in the working folder, misses KiCad's libraries, which are not used, makes
# Python warn of its strings when it is compiled, and makes every later logger one of its own.
with (
    tempfile.TemporaryDirectory() as folder,
    contextlib.chdir(folder),
    contextlib.redirect_stderr(io.StringIO()),
    warnings.catch_warnings(action="ignore"),
):
    import skidl
    from skidl import SKIDL, Circuit, Net, Part, Pin
    from skidl.logger import stop_log_file_output
    from skidl.pin import pin_drives, pin_types

    stop_log_file_output()
    logging.setLoggerClass(logging.Logger)

PARTS = tomllib.loads((Path(__file__).parent / "parts.toml").read_text(encoding="utf-8"))

IN, OUT, PASSIVE = pin_types.INPUT, pin_types.OUTPUT, pin_types.PASSIVE
POWER, SUPPLIES = pin_types.PWRIN, pin_types.PWROUT
COLLECTOR, OPEN = pin_types.OPENCOLL, pin_types.NOCONNECT

CELLS, MODULE_CELLS = 12, 6
REFERENCES = (12, 13, 14)
SUPPLY_INPUT = 15

# Ohm and farad. Resistors are 1 %, capacitors X7R 10 %, unless a comment says otherwise.
GATE_OHM, PULL_DOWN_OHM = 220.0, 10e3
SHUNT_OHM, LEAK_SHUNT_OHM = 0.05, 0.01
FILTER_OHM, FILTER_F = 1e3, 1e-9
SENSOR_OHM, SENSOR_F, SENSOR_MISSING_OHM = 1e3, 100e-9, 100e3
SUPPLY_TOP_OHM, SUPPLY_BOTTOM_OHM, SUPPLY_F = 30e3, 10e3, 100e-9
HALF_OHM = 10e3
ROOM_TOP_OHM, ROOM_BOTTOM_OHM = 10e3, 1.8e3
PUMP_OHM, PUMP_F, HOLD_F, HOLD_OHM = 220.0, 100e-9, 470e-9, 100e3
REST_OHM, PERMIT_OHM = 100e3, 10e3  # to ground: the scan's line and the permit rest low in reset
LEAK_TOP_OHM, LEAK_BOTTOM_OHM = 100e3, 2e3
LEAK_DELAY_OHM, LEAK_DELAY_F = 100e3, 1e-6
LEAK_RELAY_OHM = 10e3
OR_OHM = 100e3
LOOP_OHM, LOOP_SERIES_OHM = 1e3, 1e3
START_OHM, START_F = 1e3, 1000e-6  # the capacitor 20 %


def _words(text: str) -> list[str]:
    return text.split()


GATE_PINS = (*(f"PB{n}" for n in range(5)), "PC5", *(f"PD{n}" for n in range(3, 8)), "PC4")
SELECT_PINS = ("PC0", "PC1", "PC2", "PC3")

# ATmega328P, TQFP-32: DS40002061, section 1. Pin 1 first.
ATMEGA = _words(
    "PD3 PD4 GND VCC GND VCC XTAL1 XTAL2 PD5 PD6 PD7 PB0 PB1 PB2 PB3 PB4 PB5 AVCC "
    "ADC6 AREF GND ADC7 PC0 PC1 PC2 PC3 PC4 PC5 RESET PD0 PD1 PD2"
)
# The header of a Nano: the chip's pin and the name on the module.
NANO = dict(zip(ATMEGA, ATMEGA, strict=False)) | {
    "PD0": "D0", "PD1": "D1", **{f"PD{n}": f"D{n}" for n in range(2, 8)},
    **{f"PB{n}": f"D{n + 8}" for n in range(6)}, **{f"PC{n}": f"A{n}" for n in range(6)},
    "ADC6": "A6", "ADC7": "A7", "VCC": "5V",
}  # fmt: skip


@dataclass
class Component:
    """A part of a finished circuit.

    Attributes
    ----------
    ref, kind : its reference, and its table in `parts.toml` or nothing
    fields : its values
    pins : net of every pin by the pin's name; GND of several pins is one
    names : name of every pin by its number
    """

    ref: str
    kind: str
    fields: dict[str, Any]
    pins: dict[str, str]
    names: dict[str, str]


@dataclass
class Netlist:
    """A finished circuit: its parts by reference."""

    kind: str
    parts: dict[str, Component]

    def nets(self) -> dict[str, list[str]]:
        """Pins of every net, such as Q0.G."""
        found: dict[str, list[str]] = {}
        for one in self.parts.values():
            for pin, net in one.pins.items():
                found.setdefault(net, []).append(f"{one.ref}.{pin}")
        return found


class Build:
    """A circuit under construction.

    Attributes
    ----------
    circuit : the SKiDL circuit
    kind : "board" or "modules"
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.circuit = Circuit()
        self.circuit.no_files = True
        self._nets: dict[str, Net] = {}

    def net(self, name: str) -> Net:
        """The net of this name."""
        if name not in self._nets:
            self._nets[name] = Net(name, circuit=self.circuit)
        return self._nets[name]

    def netlist(self) -> Netlist:
        """The finished circuit."""
        parts = {}
        for one in self.circuit.parts:
            pins = {p.name: p.net.name for p in one.pins if p.net is not None}
            names = {p.num: p.name for p in one.pins}
            values = dict(one.fields)
            parts[one.ref] = Component(one.ref, values.pop("kind"), values, pins, names)
        return Netlist(self.kind, parts)

    def part(self, ref, pins, nets, kind="", **values):
        """Add a part.

        Parameters
        ----------
        pins : (number, name, type) of each pin
        nets : net name by pin name; a pin of type OPEN has none
        kind : its table in `parts.toml`
        """
        made = Part(
            name=kind or ref, ref=ref, tool=SKIDL, circuit=self.circuit,
            pins=[Pin(num=str(number), name=name, func=func) for number, name, func in pins],
        )  # fmt: skip
        made.fields["kind"] = kind
        for key, value in values.items():
            made.fields[key] = value
        for pin in made.pins:
            if pin.func != OPEN:
                pin += self.net(nets[pin.name])
        return made

    def two(self, ref, a, b, kind="", **values):
        """Add a part of two poles."""
        pins = ((1, "1", PASSIVE), (2, "2", PASSIVE))
        return self.part(ref, pins, {"1": a, "2": b}, kind, **values)

    def resistor(self, ref, a, b, ohm):
        """Add a resistor."""
        return self.two(ref, a, b, Ohm=ohm)

    def capacitor(self, ref, a, b, farad, kind=""):
        """Add a capacitor."""
        return self.two(ref, a, b, kind, F=farad)

    def contact(self, ref, a, b):
        """Add a contact of a button or relay, by the name of its device and the contact's."""
        return self.two(ref, a, b, contact=ref.split("_")[0])


def _powered(nets: Build, *names: str) -> None:
    for name in names:
        nets.net(name).drive = pin_drives.POWER


def _diode(b: Build, ref: str, anode: str, cathode: str, kind: str = "") -> None:
    pins = ((1, "K", PASSIVE), (2, "A", PASSIVE))
    b.part(ref, pins, {"A": anode, "K": cathode}, kind, diode=True)


def _mosfet(b: Build, ref: str, gate: str, drain: str, source: str, cell: int | None) -> None:
    pins = ((1, "G", IN), (2, "S", PASSIVE), (3, "D", PASSIVE))
    b.part(ref, pins, {"G": gate, "S": source, "D": drain}, "mosfet", cell=cell)


def _amplifier(b: Build, ref: str, out: str, plus: str, minus: str, kind: str) -> None:
    pins = ((1, "OUT", OUT), (2, "GND", POWER), (3, "IN+", IN), (4, "IN-", IN), (5, "VS", POWER))
    nets = {"OUT": out, "GND": "GND", "IN+": plus, "IN-": minus, "VS": "AVCC"}
    b.part(ref, pins, nets, kind)


def _multiplexer(b: Build, ref: str, common: str, inputs: dict[int, str], kind: str) -> None:
    order = _words("Z Y7 Y6 Y5 Y4 Y3 Y2 Y1 Y0 S0 S1 GND S3 S2 E Y15 Y14 Y13 Y12 Y11 Y10 Y9 Y8 VCC")
    types = {"Z": PASSIVE, "GND": POWER, "VCC": POWER, "E": IN}
    pins = [
        (number, name, types.get(name, PASSIVE if name[0] == "Y" else IN))
        for number, name in enumerate(order, 1)
    ]
    nets = {f"Y{n}": inputs[n] for n in range(16)} | {f"S{n}": f"SEL{n}" for n in range(4)}
    b.part(ref, pins, nets | {"Z": common, "GND": "GND", "VCC": "VCC", "E": "GND"}, kind)


def _references(b: Build) -> dict[int, str]:
    """The levels at inputs 12, 13 and 14 of both multiplexers."""
    b.resistor("R_REF", "AVCC", "REF4096", 820.0)
    b.two("U_REF", "REF4096", "GND", "reference", volts=4.096)
    b.resistor("R_HALF_TOP", "AVCC", "HALF", HALF_OHM)
    b.resistor("R_HALF_BOTTOM", "HALF", "GND", HALF_OHM)
    b.capacitor("C_HALF", "HALF", "GND", 100e-9)
    return {12: "AVCC", 13: "REF4096", 14: "HALF"}


def _supply_inputs(b: Build) -> None:
    """The supply behind the last relay and before it, at input 15 of the two multiplexers.

    Both divide alike. They are all that loads the rail once it is cut.
    """
    for net, level in (("RAIL", "SUPPLY"), ("FEED", "FED")):
        b.resistor(f"R_{level}_TOP", net, level, SUPPLY_TOP_OHM)
        b.resistor(f"R_{level}_BOTTOM", level, "GND", SUPPLY_BOTTOM_OHM)
        b.capacitor(f"C_{level}", level, "GND", SUPPLY_F)


def _room(b: Build) -> None:
    """The level of 26 C for temperature inputs without a sensor: the firmware checks all twelve."""
    b.resistor("R_ROOM_TOP", "AVCC", "ROOM", ROOM_TOP_OHM)
    b.resistor("R_ROOM_BOTTOM", "ROOM", "GND", ROOM_BOTTOM_OHM)
    b.capacitor("C_ROOM", "ROOM", "GND", 100e-9)


def _sensor(b: Build, n: int) -> None:
    pins = ((1, "VDD", POWER), (2, "OUT", OUT), (3, "GND", POWER))
    b.part(f"T{n}", pins, {"VDD": "VCC", "OUT": f"SENSOR{n}", "GND": "GND"}, "sensor", cell=n)
    b.resistor(f"R_T{n}", f"SENSOR{n}", f"TEMPERATURE{n}", SENSOR_OHM)
    b.capacitor(f"C_T{n}", f"TEMPERATURE{n}", "GND", SENSOR_F)
    b.resistor(f"R_MISSING{n}", f"TEMPERATURE{n}", "GND", SENSOR_MISSING_OHM)


def _cell(b: Build, n: int) -> None:
    """Gate, shunt, amplifier, sensor and plug of one cell."""
    b.resistor(f"R_G{n}", f"GATE{n}", f"DRIVE{n}", GATE_OHM)
    b.resistor(f"R_PD{n}", f"DRIVE{n}", "GND", PULL_DOWN_OHM)
    _mosfet(b, f"Q{n}", f"DRIVE{n}", f"DRAIN{n}", f"SOURCE{n}", n)
    _diode(b, f"D_FREE{n}", f"DRAIN{n}", "RAIL", "free_wheel")
    b.two(f"R_S{n}", f"SOURCE{n}", "RETURN", "shunt", Ohm=SHUNT_OHM)
    _amplifier(b, f"U_I{n}", f"AMPLIFIED{n}", f"SOURCE{n}", "RETURN", "sense")
    b.capacitor(f"C_VS{n}", "AVCC", "GND", 100e-9)
    b.resistor(f"R_F{n}", f"AMPLIFIED{n}", f"CURRENT{n}", FILTER_OHM)
    b.capacitor(f"C_F{n}", f"CURRENT{n}", "GND", FILTER_F)
    _diode(b, f"D_OR{n}", f"GATE{n}", "ANY", "or_diode")
    b.two(f"J_CELL{n}", "RAIL", f"DRAIN{n}", "cell_connector", cell=n)
    _sensor(b, n)
    b.two(f"J_ROOM{n}", "ROOM", f"SENSOR{n}", jumper=True)  # in place of a sensor


def _chip(b: Build) -> None:
    """The chip, its crystal, reset and programming header."""
    types = {"VCC": POWER, "GND": POWER, "AVCC": POWER, "AREF": PASSIVE, "XTAL1": PASSIVE}
    types |= {"XTAL2": PASSIVE, "ADC6": IN, "ADC7": IN, "RESET": IN, "PD0": IN, "PD2": IN}
    nets = {"VCC": "VCC", "GND": "GND", "AVCC": "AVCC", "AREF": "AREF", "PB5": "PERMIT"}
    nets |= {"XTAL1": "XTAL1", "XTAL2": "XTAL2", "ADC6": "CURRENTS", "ADC7": "TEMPERATURES"}
    nets |= {"RESET": "RESET", "PD0": "RXD", "PD1": "TXD", "PD2": "ESTOP"}
    nets |= {pin: f"GATE{n}" for n, pin in enumerate(GATE_PINS)}
    nets |= {pin: f"SEL{n}" for n, pin in enumerate(SELECT_PINS)}
    pins = [(n, name, types.get(name, OUT)) for n, name in enumerate(ATMEGA, 1)]
    b.part("U_CHIP", pins, nets, "chip")
    for n in range(4):  # two pins of the chip, two multiplexers
        b.capacitor(f"C_VCC{n}", "VCC", "GND", 100e-9)
    b.two("L_AVCC", "VCC", "AVCC", H=10e-6)
    b.capacitor("C_AVCC", "AVCC", "GND", 100e-9)
    b.capacitor("C_AREF", "AREF", "GND", 100e-9)
    b.two("Y_CHIP", "XTAL1", "XTAL2", Hz=16e6)
    b.capacitor("C_X1", "XTAL1", "GND", 22e-12)
    b.capacitor("C_X2", "XTAL2", "GND", 22e-12)
    b.resistor("R_RESET", "VCC", "RESET", 10e3)
    b.two("J_FLASH", "DTR", "DTR_C", contact="J_FLASH")
    b.capacitor("C_DTR", "DTR_C", "RESET", 100e-9)
    header = ("MISO", "5V", "SCK", "MOSI", "RST", "0V")
    nets = {
        "MISO": "GATE4",
        "5V": "VCC",
        "SCK": "PERMIT",
        "MOSI": "GATE3",
        "RST": "RESET",
        "0V": "GND",
    }
    b.part("J_ISP", [(n, name, PASSIVE) for n, name in enumerate(header, 1)], nets)


def _usb(b: Build) -> None:
    """USB socket and bridge on the computer's side; the isolator; nothing else joins the sides."""
    pins = [(1, "VBUS", SUPPLIES), (2, "D-", PASSIVE), (3, "D+", PASSIVE), (4, "GND", SUPPLIES)]
    nets = {"VBUS": "USB_5V", "D-": "USB_DM", "D+": "USB_DP", "GND": "USB_GND"}
    b.part("J_USB", pins, nets)
    order = _words(
        "TXD DTR RTS VCCIO RXD RI GND NC8 DSR DCD CTS CBUS4 CBUS2 CBUS3 USBDP USBDM "
        "3V3OUT GND RESET VCC GND CBUS1 CBUS0 NC24 AGND TEST OSCI OSCO"
    )
    used = {"TXD": "USB_TXD", "DTR": "USB_DTR", "RXD": "USB_RXD", "VCCIO": "USB_5V"}
    used |= {"VCC": "USB_5V", "RESET": "USB_5V", "USBDP": "USB_DP", "USBDM": "USB_DM"}
    used |= {"3V3OUT": "USB_3V3", "GND": "USB_GND", "AGND": "USB_GND", "TEST": "USB_GND"}
    used |= {"CTS": "USB_GND", "DSR": "USB_GND", "DCD": "USB_GND", "RI": "USB_GND"}
    types = {"TXD": OUT, "DTR": OUT, "RXD": IN, "VCCIO": POWER, "VCC": POWER, "RESET": IN}
    types |= {"GND": POWER, "AGND": POWER, "3V3OUT": PASSIVE, "TEST": IN}
    types |= dict.fromkeys(("CTS", "DSR", "DCD", "RI"), IN)
    pins = [
        (n, name, types.get(name, PASSIVE) if name in used else OPEN)
        for n, name in enumerate(order, 1)
    ]
    b.part("U_USB", pins, used, "bridge")
    b.capacitor("C_3V3", "USB_3V3", "USB_GND", 100e-9)
    b.capacitor("C_USB", "USB_5V", "USB_GND", 4.7e-6)
    order = _words("VCC1 GND1 INA INB INC OUTD EN1 GND1 GND2 EN2 IND OUTC OUTB OUTA GND2 VCC2")
    types = {"VCC1": POWER, "VCC2": POWER, "GND1": POWER, "GND2": POWER}
    types |= {f"OUT{x}": OUT for x in "ABD"} | {"OUTC": OPEN}
    nets = {"VCC1": "USB_5V", "GND1": "USB_GND", "INA": "USB_TXD", "INB": "USB_DTR"}
    nets |= {"INC": "USB_GND", "OUTD": "USB_RXD", "EN1": "USB_5V", "GND2": "GND", "EN2": "VCC"}
    nets |= {"IND": "TXD", "OUTB": "DTR", "OUTA": "RXD", "VCC2": "VCC"}
    b.part("U_ISO", [(n, x, types.get(x, IN)) for n, x in enumerate(order, 1)], nets, "isolator")
    b.capacitor("C_ISO1", "USB_5V", "USB_GND", 100e-9)
    b.capacitor("C_ISO2", "VCC", "GND", 100e-9)


def _logic_supply(b: Build) -> None:
    pins = ((1, "+", SUPPLIES), (2, "-", SUPPLIES))
    b.part("J_AUX", pins, {"+": "AUX", "-": "GND"}, "auxiliary_supply")
    pins = ((1, "OUT", SUPPLIES), (2, "GND", POWER), (3, "IN", POWER))
    b.part("U_5V", pins, {"OUT": "VCC", "GND": "GND", "IN": "AUX"}, "regulator")
    b.capacitor("C_AUX", "AUX", "GND", 10e-6)
    b.capacitor("C_5V", "VCC", "GND", 10e-6)


def _cells_supply(b: Build, fuse_A: float) -> None:
    """From the supply's plug through fuse and relay contacts to the cells, and back."""
    pins = ((1, "+", SUPPLIES), (2, "-", PASSIVE))
    b.part("J_SUPPLY", pins, {"+": "SUPPLY_IN", "-": "GND"}, "supply_connector")
    b.two("F_SUPPLY", "SUPPLY_IN", "FUSED", "fuse", A=fuse_A)
    b.contact("K2_NO1", "FUSED", "FEED")
    b.contact("K1_NO1", "FEED", "RAIL")


def _pump(b: Build) -> None:
    """Holds K1 while the scan turns SEL0 and the firmware permits it; a steady level does not."""
    b.resistor("R_REST", "SEL0", "GND", REST_OHM)
    b.resistor("R_PERMIT", "PERMIT", "GND", PERMIT_OHM)
    b.resistor("R_PUMP", "PUMP_IN", "PUMP_R", PUMP_OHM)
    b.capacitor("C_PUMP", "PUMP_R", "PUMP_C", PUMP_F)
    _diode(b, "D_PUMP1", "GND", "PUMP_C")
    _diode(b, "D_PUMP2", "PUMP_C", "PUMP")
    b.capacitor("C_HOLD", "PUMP", "GND", HOLD_F)
    b.resistor("R_HOLD", "PUMP", "GND", HOLD_OHM)


def _loop(b: Build) -> None:
    """What PD2 reads: the e-stop, and the relay that it opens."""
    b.resistor("R_LOOP", "VCC", "LOOP", LOOP_OHM)
    b.contact("ESTOP_NC2", "LOOP", "LOOP_K2")
    b.contact("K2_NO2", "LOOP_K2", "GND")
    b.resistor("R_ESTOP", "LOOP", "ESTOP", LOOP_SERIES_OHM)


def _master_cut(b: Build) -> None:
    """K2 holds itself; e-stop and leak cut open it, START closes it. The pump closes K1."""
    b.contact("ESTOP_NC1", "AUX", "COILS_FED")
    b.contact("K2_NO3", "COILS_FED", "COILS")
    b.resistor("R_START", "COILS_FED", "START_K1", START_OHM)
    b.contact("K1_NC1", "START_K1", "START_K2")
    b.contact("K2_NC1", "START_K2", "START_C")
    b.capacitor("C_START", "START_C", "GND", START_F, "start_capacitor")
    b.contact("START_NO1", "START_C", "COILS")
    for name, low in (("K1", "COIL1"), ("K2", "COIL2")):
        b.two(f"{name}_COIL", "COILS", low, "relay", coil=name)
        _diode(b, f"D_{name}", low, "COILS")
    _mosfet(b, "Q_PUMP", "PUMP", "COIL1", "GND", None)
    pins = ((1, "A", IN), (2, "B", IN), (3, "GND", POWER), (4, "Y", OUT), (5, "VCC", POWER))
    nets = {"A": "SEL0", "B": "PERMIT", "GND": "GND", "Y": "PUMP_IN", "VCC": "VCC"}
    b.part("U_PUMP", pins, nets, "pump_gate")
    b.capacitor("C_GATE", "VCC", "GND", 100e-9)
    _pump(b)
    _leak_cut(b)
    _loop(b)


def _leak_cut(b: Build) -> None:
    """Opens K2 when current flows although no gate is high."""
    b.two("R_LEAK", "RETURN", "GND", "leak_shunt", Ohm=LEAK_SHUNT_OHM)
    _amplifier(b, "U_LEAK", "LEAK", "RETURN", "GND", "leak_sense")
    b.capacitor("C_LEAK", "AVCC", "GND", 100e-9)
    b.resistor("R_LEAK_TOP", "AVCC", "LEAK_LIMIT", LEAK_TOP_OHM)
    b.resistor("R_LEAK_BOTTOM", "LEAK_LIMIT", "GND", LEAK_BOTTOM_OHM)
    names = ["OUT1", "IN1-", "IN1+", "GND", "IN2+", "IN2-", "OUT2", "VCC"]
    types = {"OUT1": COLLECTOR, "OUT2": COLLECTOR, "GND": POWER, "VCC": POWER}
    nets = {"OUT1": "DELAY", "IN1-": "LEAK_LIMIT", "IN1+": "LEAK", "GND": "GND", "VCC": "VCC"}
    nets |= {"IN2+": "HALF", "IN2-": "DELAY", "OUT2": "LEAK_GATE"}
    b.part("U_CMP", [(n, x, types.get(x, IN)) for n, x in enumerate(names, 1)], nets, "comparator")
    b.capacitor("C_CMP", "VCC", "GND", 100e-9)
    b.resistor("R_DELAY", "VCC", "DELAY", LEAK_DELAY_OHM)
    b.capacitor("C_DELAY", "DELAY", "GND", LEAK_DELAY_F)
    b.resistor("R_ANY", "ANY", "GND", OR_OHM)
    pins = ((1, "G", IN), (2, "S", PASSIVE), (3, "D", PASSIVE))
    b.part("Q_ANY", pins, {"G": "ANY", "S": "GND", "D": "DELAY"}, "or_switch")
    b.resistor("R_LEAK_GATE", "VCC", "LEAK_GATE", LEAK_RELAY_OHM)
    _mosfet(b, "Q_LEAK", "LEAK_GATE", "COIL2", "GND", None)


def board(fuse_A: float = 5.0) -> Build:
    """One board for twelve cells."""
    b = Build("board")
    _powered(b, "GND", "VCC", "AVCC", "USB_GND")
    _chip(b)
    _usb(b)
    _logic_supply(b)
    _cells_supply(b, fuse_A)
    _diode(b, "D_CLAMP", "GND", "RAIL", "clamp")
    known = _references(b)
    _supply_inputs(b)
    _room(b)
    for n in range(CELLS):
        _cell(b, n)
    cells = range(CELLS)
    currents = {n: f"CURRENT{n}" for n in cells} | known | {SUPPLY_INPUT: "FED"}
    heats = {n: f"TEMPERATURE{n}" for n in cells} | known | {SUPPLY_INPUT: "SUPPLY"}
    _multiplexer(b, "U_CURRENTS", "CURRENTS", currents, "mux")
    _multiplexer(b, "U_TEMPERATURES", "TEMPERATURES", heats, "mux")
    _master_cut(b)
    return b


def modules(fuse_A: float = 5.0) -> Build:
    """Bought modules for six cells, the same firmware image."""
    b = Build("modules")
    _powered(b, "GND", "VCC")
    used = {"PB5": "PERMIT", "PD2": "ESTOP", "ADC6": "CURRENTS", "ADC7": "TEMPERATURES"}
    used |= {pin: f"GATE{n}" for n, pin in enumerate(GATE_PINS) if n < MODULE_CELLS}
    used |= {pin: f"SEL{n}" for n, pin in enumerate(SELECT_PINS)}
    used |= {"VCC": "VCC", "GND": "GND", "VIN": "AUX"}
    types = {"VCC": SUPPLIES, "GND": POWER, "VIN": POWER, "PD2": IN, "ADC6": IN, "ADC7": IN}
    names = [*sorted({*GATE_PINS, *SELECT_PINS, "PB5", "PD2", "ADC6", "ADC7"}), "VCC", "GND", "VIN"]
    pins = [(NANO.get(x, x), x, types.get(x, OUT) if x in used else OPEN) for x in names]
    b.part("U_NANO", pins, used, "nano")
    b.part("J_AUX", ((1, "+", SUPPLIES), (2, "-", SUPPLIES)), {"+": "AUX", "-": "GND"},
           "auxiliary_supply")  # fmt: skip
    b.two("L_AVCC", "VCC", "AVCC", H=0.0)  # a wire: the Nano has its inductor on the module
    _powered(b, "AVCC")
    _cells_supply(b, fuse_A)
    known = _references(b)
    _supply_inputs(b)
    _room(b)
    for n in range(MODULE_CELLS):
        pins = ((1, "VIN+", PASSIVE), (2, "VIN-", PASSIVE), (3, "VOUT", OUT), (4, "GND", POWER))
        nets = {"VIN+": "RAIL", "VIN-": f"CELL{n}", "VOUT": f"CURRENT{n}", "GND": "GND"}
        b.part(f"U_I{n}", pins, nets, "sense_module", cell=n)
        b.two(f"J_CELL{n}", f"CELL{n}", f"DRAIN{n}", cell=n)
        pins = ((1, "SIG", IN), (2, "LOAD-", PASSIVE), (3, "GND", POWER))
        nets = {"SIG": f"GATE{n}", "LOAD-": f"DRAIN{n}", "GND": "GND"}
        b.part(f"Q{n}", pins, nets, "mosfet_module", cell=n)
        _sensor(b, n)
    spare = range(MODULE_CELLS, CELLS)
    currents = {n: f"CURRENT{n}" for n in range(MODULE_CELLS)} | dict.fromkeys(spare, "GND")
    heats = {n: f"TEMPERATURE{n}" for n in range(MODULE_CELLS)} | dict.fromkeys(spare, "ROOM")
    currents |= known | {SUPPLY_INPUT: "FED"}
    heats |= known | {SUPPLY_INPUT: "SUPPLY"}
    _multiplexer(b, "U_CURRENTS", "CURRENTS", currents, "mux_module")
    _multiplexer(b, "U_TEMPERATURES", "TEMPERATURES", heats, "mux_module")
    b.contact("ESTOP_NC1", "AUX", "COILS")
    for name, low in (("K1", "COIL1"), ("K2", "GND")):
        b.two(f"{name}_COIL", "COILS", low, "relay_module", coil=name)
        _diode(b, f"D_{name}", low, "COILS")
    _pump_of_modules(b)
    _loop(b)
    return b


def _pump_of_modules(b: Build) -> None:
    """The pump on a strip board: one of four gates, and a transistor with leads."""
    names = _words("A B Y 2A 2B 2Y GND 3Y 3A 3B 4Y 4A 4B VCC")
    types = {"GND": POWER, "VCC": POWER, "Y": OUT} | dict.fromkeys(("2Y", "3Y", "4Y"), OPEN)
    nets = dict.fromkeys(names, "GND") | {"A": "SEL0", "B": "PERMIT", "Y": "PUMP_IN", "VCC": "VCC"}
    b.part("U_PUMP", [(n, x, types.get(x, IN)) for n, x in enumerate(names, 1)], nets,
           "pump_gate_module")  # fmt: skip
    b.capacitor("C_GATE", "VCC", "GND", 100e-9)
    _pump(b)
    pins = ((1, "D", PASSIVE), (2, "G", IN), (3, "S", PASSIVE))
    b.part("Q_PUMP", pins, {"D": "COIL1", "G": "PUMP", "S": "GND"}, "pump_switch")


def electrical_rules(build: Build) -> list[str]:
    """What SKiDL's electrical rules find: floating inputs, drivers in conflict, missing power."""
    found: list[str] = []

    class Collect(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.levelno >= logging.WARNING:
                found.append(record.getMessage())

    collect = Collect()
    # A program that sets up its own logging disables the loggers of all others.
    skidl.erc_logger.disabled = False
    skidl.erc_logger.addHandler(collect)
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            build.circuit.ERC()
    finally:
        skidl.erc_logger.removeHandler(collect)
    return found
