"""Which device each part of the netlist belongs to, and its footprint in KiCad's libraries.

Contacts and coil of a relay are parts of the netlist; on the board they are poles of one row of
terminals: the relays stand beside the board in sockets of their own, as e-stop and START do.
"""

import re
from dataclasses import dataclass

from circuit import PARTS, Component, Netlist

FOOTPRINTS = {
    "mosfet": "Package_TO_SOT_SMD:SOT-23",
    "or_switch": "Package_TO_SOT_SMD:SOT-23",
    "reference": "Package_TO_SOT_SMD:SOT-23",
    "sense": "Package_TO_SOT_SMD:SOT-23-5",
    "leak_sense": "Package_TO_SOT_SMD:SOT-23-5",
    "pump_gate": "Package_TO_SOT_SMD:SOT-23-5",
    "regulator": "Package_TO_SOT_THT:TO-92_Inline",
    "shunt": "Resistor_SMD:R_2512_6332Metric",
    "leak_shunt": "Resistor_SMD:R_2512_6332Metric",
    "comparator": "Package_SO:SOIC-8_3.9x4.9mm_P1.27mm",
    "isolator": "Package_SO:SOIC-16W_7.5x10.3mm_P1.27mm",
    "mux": "Package_SO:SOIC-24W_7.5x15.4mm_P1.27mm",
    "bridge": "Package_SO:SSOP-28_5.3x10.2mm_P0.65mm",
    "chip": "Package_QFP:TQFP-32_7x7mm_P0.8mm",
    "free_wheel": "Diode_SMD:D_SMA",
    "clamp": "Diode_SMD:D_SMB",
    "or_diode": "Diode_SMD:D_SOD-123",
    "start_capacitor": "Capacitor_THT:CP_Radial_D10.0mm_P5.00mm",
    "fuse": "Fuse:Fuseholder_Blade_ATO_Littelfuse_Pudenz_2_Pin",
    "supply_connector": "Connector_Phoenix_MSTB:"
    "PhoenixContact_MSTBA_2,5_2-G-5,08_1x02_P5.08mm_Horizontal",
    "auxiliary_supply": "Connector_BarrelJack:BarrelJack_CUI_PJ-102AH_Horizontal",
    "sensor": "Connector_JST:JST_XH_B3B-XH-A_1x03_P2.50mm_Vertical",
}
FOOTPRINTS["cell_connector"] = FOOTPRINTS["supply_connector"]
BY_REF = {
    "J_USB": "Connector_USB:USB_B_OST_USB-B1HSxx_Horizontal",
    "J_ISP": "Connector_PinHeader_2.54mm:PinHeader_2x03_P2.54mm_Vertical",
    "R_START": "Resistor_SMD:R_1206_3216Metric",
}
HEADER = "Connector_PinHeader_2.54mm:PinHeader_1x02_P2.54mm_Vertical"
TERMINALS = (
    "TerminalBlock_Phoenix:TerminalBlock_Phoenix_MKDS-1,5-{0}-5.08_1x{0:02}_P5.08mm_Horizontal"
)
POLES = {
    "K1": ("NO1", "NC1", "COIL"),
    "K2": ("NO1", "NO2", "NO3", "NC1", "COIL"),
    "ESTOP": ("NC1", "NC2"),
    "START": ("NO1",),
}
LARGE_F = 2e-6  # from here on a ceramic capacitor is 1206


@dataclass
class Land:
    """A device on the board.

    Attributes
    ----------
    ref, footprint : its reference, and library:name
    units : reference of each part of the netlist in it
    nets : net by number of the pad
    value : what is printed beside it
    """

    ref: str
    footprint: str
    units: list[str]
    nets: dict[str, str]
    value: str


def value(number: float, unit: str) -> str:
    """A value with its prefix, such as 10 kOhm."""
    prefixes = ((6, "M"), (3, "k"), (0, ""), (-3, "m"), (-6, "µ"), (-9, "n"), (-12, "p"))
    for power, prefix in prefixes:
        if number >= 0.9999 * 10**power and (power, unit) != (-3, "F"):
            return f"{number / 10**power:g} {prefix}{unit}"
    return f"{number:g} {unit}"


def label(part: Component) -> str:
    """Value or type of a part, as a drawing names it."""
    for field, unit in (("Ohm", "Ω"), ("F", "F"), ("H", "H"), ("Hz", "Hz"), ("A", "A")):
        if field in part.fields:
            return value(part.fields[field], unit)
    if FOOTPRINTS.get(part.kind) == FOOTPRINTS["supply_connector"]:
        return PLUG
    words = PARTS[part.kind]["part"].split() if part.kind else [TYPES.get(part.ref, "")]
    return next((word for word in words if re.search(r"\d", word)), "")


PLUG = "plug 5.08 mm"
TYPES = {"D_K1": "1N4148W", "D_K2": "1N4148W", "D_PUMP1": "BAT46W", "D_PUMP2": "BAT46W"}


def _footprint(part: Component) -> str:
    if part.ref in BY_REF:
        return BY_REF[part.ref]
    if part.kind in FOOTPRINTS:
        return FOOTPRINTS[part.kind]
    fields = part.fields
    if "Ohm" in fields:
        return "Resistor_SMD:R_0805_2012Metric"
    if "F" in fields:
        large = fields["F"] >= LARGE_F
        return f"Capacitor_SMD:C_{'1206_3216' if large else '0805_2012'}Metric"
    if "H" in fields:
        return "Inductor_SMD:L_0805_2012Metric"
    if "Hz" in fields:
        return "Crystal:Crystal_SMD_HC49-SD"
    if "diode" in fields:
        return "Diode_SMD:D_SOD-123"
    if "jumper" in fields or part.ref == "J_FLASH":
        return HEADER
    raise ValueError(f"{part.ref} has no footprint: add it to firmware/board/lands.py")


def lands(netlist: Netlist) -> dict[str, Land]:
    """Every device of the board by reference."""
    found: dict[str, Land] = {}
    for part in netlist.parts.values():
        device, _, contact = part.ref.partition("_")
        if device in POLES and contact in POLES[device]:
            poles = POLES[device]
            first = 2 * poles.index(contact) + 1
            land = found.setdefault(
                device, Land(device, TERMINALS.format(2 * len(poles)), [], {}, device)
            )
            land.units.append(part.ref)
            land.nets |= {str(first): part.pins["1"], str(first + 1): part.pins["2"]}
            continue
        nets = {n: part.pins[name] for n, name in part.names.items() if name in part.pins}
        found[part.ref] = Land(part.ref, _footprint(part), [part.ref], nets, label(part))
    return found
