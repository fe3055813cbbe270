"""The board's circuit on two sheets: the board, and one of its twelve cells.

Parts, values and nets come from `circuit.py`; here stand only places. A pin that no wire reaches
gets the name of its net.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field

import symbols as s
from circuit import CELLS, Netlist
from lands import POLES, Land, lands
from layout import turned
from symbols import Pin, Shape, Symbol

GRID_mm = 1.27
POWER = {"GND", "USB_GND", "VCC", "AVCC", "AUX", "USB_5V"}  # drawn as arrows and ground
GLOBAL = {"RAIL", "RETURN", "ANY", "ROOM"}  # named on both sheets
DOWN = {"GND", "USB_GND"}
CELL_PINS = ("GATE", "CURRENT", "TEMPERATURE")
STEP = {"l": (-1, 0), "r": (1, 0), "u": (0, -1), "d": (0, 1)}
ANGLE = {"r": 0, "u": 90, "l": 180, "d": 270}

Point = tuple[float, float]


@dataclass
class Block:
    """A function of the board: its frame, places (x, y, turn) of its parts, and wires between.

    A wire is a line of points; a point may be the name of a pin, such as Q0.G.
    """

    title: str
    x: int
    y: int
    wide: int
    high: int
    parts: dict[str, tuple]
    wires: list[list] = field(default_factory=list)
    notes: list[tuple[str, int, int]] = field(default_factory=list)


def _numbered(names: str) -> list:
    """Pins of a box: 'number name', separated by commas; '-' leaves a place free."""
    return [None if item.strip() == "-" else tuple(item.split()) for item in names.split(",")]


_MUX = [
    (n, f"Y{k}") for k, n in enumerate((9, 8, 7, 6, 5, 4, 3, 2, 23, 22, 21, 20, 19, 18, 17, 16))
]
_MUX_SIDE = _numbered("1 Z,-,10 S0,11 S1,14 S2,13 S3,15 E,-,-,-,-,-,24 VCC,12 GND")
SHAPES: dict[str, Symbol | Shape] = {
    "mosfet": s.MOSFET, "or_switch": s.MOSFET, "sense": s.AMPLIFIER, "leak_sense": s.AMPLIFIER,
    "comparator": s.COMPARATOR, "pump_gate": s.GATE, "reference": s.ZENER, "clamp": s.ZENER,
    "free_wheel": s.SCHOTTKY, "or_diode": s.DIODE, "start_capacitor": s.POLARISED, "fuse": s.FUSE,
    "supply_connector": s.box([], _numbered("1 +,2 -"), 4, 4),
    "cell_connector": s.box(_numbered("1 +,2 -"), [], 4, 6),
    "auxiliary_supply": s.box([], _numbered("1 +,2 -"), 4, 4),
    "sensor": s.box([], _numbered("1 VDD,2 OUT,3 GND"), 8, 4),
    "regulator": s.box(_numbered("3 IN"), _numbered("1 OUT,2 GND"), 10),
    "mux": s.box(_MUX, _MUX_SIDE, 12),
    "isolator": s.box(
        _numbered("1 VCC1,7 EN1,-,3 INA,4 INB,5 INC,6 OUTD,-,2 GND1,8 GND1"),
        _numbered("16 VCC2,10 EN2,-,14 OUTA,13 OUTB,12 OUTC,11 IND,-,9 GND2,15 GND2"), 18),
    "bridge": s.box(
        _numbered("20 VCC,4 VCCIO,19 RESET,-,15 USBDP,16 USBDM,-,17 3V3OUT,-,7 GND,18 GND,21 GND,"
                  "25 AGND,26 TEST"),
        _numbered("1 TXD,5 RXD,2 DTR,3 RTS,11 CTS,9 DSR,10 DCD,6 RI,-,12 CBUS4,13 CBUS2,14 CBUS3,"
                  "22 CBUS1,23 CBUS0,27 OSCI,28 OSCO,8 NC8,24 NC24"), 20),
    "chip": s.box(
        _numbered("4 VCC,6 VCC,18 AVCC,20 AREF,-,29 RESET,7 XTAL1,8 XTAL2,-,30 PD0,31 PD1,32 PD2,"
                  "17 PB5,-,19 ADC6,22 ADC7,-,3 GND,5 GND,21 GND"),
        _numbered("12 PB0,13 PB1,14 PB2,15 PB3,16 PB4,28 PC5,1 PD3,2 PD4,9 PD5,10 PD6,11 PD7,"
                  "27 PC4,-,23 PC0,24 PC1,25 PC2,26 PC3"), 20),
    "J_USB": s.box([], _numbered("1 VBUS,2 D-,3 D+,4 GND"), 8),
    "J_ISP": s.box(_numbered("1 MISO,3 SCK,5 RST"), _numbered("2 5V,4 MOSI,6 0V"), 12),
    "J_FLASH": s.JUMPER, "Y_CHIP": s.CRYSTAL, "L_AVCC": s.INDUCTOR,
    "D_PUMP1": s.SCHOTTKY, "D_PUMP2": s.SCHOTTKY,
} | {name: s.poles(contacts) for name, contacts in POLES.items()}  # fmt: skip


def _row(names: str, x: int, y: int, step: int) -> dict[str, tuple]:
    return {name: (x + k * step, y) for k, name in enumerate(names.split())}


BLOCKS = [
    Block(
        "Cells' supply: fuse, K2, K1; the firmware reads FEED and RAIL", 8, 14, 158, 44,
        {"J_SUPPLY": (9, 12), "F_SUPPLY": (26, 9, 90), "K2:NO1": (40, 9, 90),
         "K1:NO1": (76, 9, 90), "D_CLAMP": (140, 16), "R_FED_TOP": (54, 19),
         "R_FED_BOTTOM": (54, 33),
         "C_FED": (72, 33), "R_SUPPLY_TOP": (94, 19), "R_SUPPLY_BOTTOM": (94, 33),
         "C_SUPPLY": (115, 33)},
        [["J_SUPPLY.+", "F_SUPPLY.1"], ["F_SUPPLY.2", "K2_NO1.1"],
         ["K2_NO1.2", (54, 9), "K1_NO1.1"], [(54, 9), "R_FED_TOP.1"],
         ["K1_NO1.2", (94, 9), (140, 9), (148, 9)],
         [(94, 9), "R_SUPPLY_TOP.1"], [(140, 9), "D_CLAMP.K"],
         ["R_FED_TOP.2", (54, 26), "R_FED_BOTTOM.1"], [(54, 26), (72, 26), (78, 26)],
         [(72, 26), "C_FED.1"], ["R_SUPPLY_TOP.2", (94, 26), "R_SUPPLY_BOTTOM.1"],
         [(94, 26), (115, 26), (121, 26)], [(115, 26), "C_SUPPLY.1"]],
    ),
    Block(
        "Master cut: e-stop and START feed the coils; K2 holds itself", 8, 62, 158, 44,
        {"ESTOP:NC1": (20, 10, 90), "K2:NO3": (60, 10, 90), "R_START": (34, 17),
         "K1:NC1": (46, 24, 90), "K2:NC1": (60, 24, 90), "C_START": (70, 32),
         "START:NO1": (82, 17, 180), "K1:COIL": (104, 18), "D_K1": (114, 18), "Q_PUMP": (103, 34),
         "K2:COIL": (134, 18), "D_K2": (144, 18), "Q_LEAK": (133, 34)},
        [["ESTOP_NC1.2", (34, 10), "K2_NO3.1"], [(34, 10), "R_START.1"],
         ["R_START.2", (34, 24), "K1_NC1.1"], ["K1_NC1.2", "K2_NC1.1"],
         ["K2_NC1.2", (70, 24), (82, 24), "START_NO1.1"], [(70, 24), "C_START.1"],
         ["START_NO1.2", (82, 10)],
         ["K2_NO3.2", (82, 10), (104, 10), (114, 10), (134, 10), (144, 10), "D_K2.K"],
         [(104, 10), "K1_COIL.1"], [(114, 10), "D_K1.K"], [(134, 10), "K2_COIL.1"],
         ["K1_COIL.2", (104, 25), "Q_PUMP.D"], [(104, 25), (114, 25), "D_K1.A"],
         ["K2_COIL.2", (134, 25), "Q_LEAK.D"], [(134, 25), (144, 25), "D_K2.A"]],
    ),
    Block(
        "Loop of PD2", 176, 62, 66, 44,
        {"R_LOOP": (18, 12), "ESTOP:NC2": (32, 19, 90), "K2:NO2": (48, 19, 90),
         "R_ESTOP": (18, 26)},
        [["R_LOOP.2", (18, 19), "R_ESTOP.1"], [(18, 19), "ESTOP_NC2.1"],
         ["ESTOP_NC2.2", "K2_NO2.1"]],
    ),
    Block(
        "Pump: K1 closes only while SEL0 turns and PB5 permits it", 8, 110, 158, 38,
        {"U_PUMP": (34, 14), "R_PUMP": (48, 14, 90), "C_PUMP": (60, 14, 90), "D_PUMP1": (70, 22),
         "D_PUMP2": (82, 14, 270), "C_HOLD": (94, 22), "R_HOLD": (108, 22),
         "R_REST": (12, 26), "R_PERMIT": (22, 26), "C_GATE": (142, 22)},
        [[(6, 12), (12, 12), "U_PUMP.A"], [(6, 16), (22, 16), "U_PUMP.B"], [(12, 12), "R_REST.1"],
         [(22, 16), "R_PERMIT.1"], ["U_PUMP.Y", "R_PUMP.1"], ["R_PUMP.2", "C_PUMP.1"],
         ["C_PUMP.2", (70, 14), "D_PUMP2.A"], [(70, 14), "D_PUMP1.K"],
         ["D_PUMP2.K", (94, 14), (108, 14), (118, 14)], [(94, 14), "C_HOLD.1"],
         [(108, 14), "R_HOLD.1"]],
    ),
    Block(
        "Leak cut: current while every gate is low opens K2", 8, 152, 158, 58,
        {"R_LEAK": (14, 18), "U_LEAK": (36, 18), "U_CMP:1": (60, 20), "R_LEAK_TOP": (38, 35),
         "R_LEAK_BOTTOM": (38, 47), "R_DELAY": (76, 12), "C_DELAY": (76, 28), "Q_ANY": (101, 28),
         "R_ANY": (92, 38), "U_CMP:2": (124, 22), "R_LEAK_GATE": (138, 14),
         "U_CMP:3": (114, 46), "C_CMP": (128, 46), "C_LEAK": (144, 46)},
        [[(14, 10), "R_LEAK.1"], [(14, 12), (24, 12), (24, 16), "U_LEAK.IN+"],
         ["R_LEAK.2", (14, 24)], [(14, 23), (24, 23), (24, 20), "U_LEAK.IN-"],
         ["U_LEAK.OUT", "U_CMP.IN1+"], ["R_LEAK_TOP.2", (38, 41), "R_LEAK_BOTTOM.1"],
         ["U_CMP.IN1-", (52, 22), (52, 41), (38, 41)],
         ["U_CMP.OUT1", (76, 20), (102, 20), "Q_ANY.D"],
         ["R_DELAY.2", (76, 20), "C_DELAY.1"], [(102, 20), (112, 20), (112, 24), "U_CMP.IN2-"],
         ["Q_ANY.G", (92, 28), (90, 28)], [(92, 28), "R_ANY.1"],
         ["U_CMP.OUT2", (138, 22), (144, 22)], ["R_LEAK_GATE.2", (138, 22)]],
    ),
    Block(
        "Logic supply", 176, 14, 66, 44,
        {"J_AUX": (9, 18), "C_AUX": (22, 24), "U_5V": (38, 16), "C_5V": (56, 24)},
        [["J_AUX.+", (22, 15), "U_5V.IN"], [(22, 15), "C_AUX.1"], [(22, 15), (22, 11)],
         ["U_5V.OUT", (56, 15), "C_5V.1"], [(56, 15), (56, 11)]],
    ),
    Block(
        "USB, isolated: nothing but the isolator joins the computer's side and the board's",
        252, 14, 208, 58,
        {"J_USB": (14, 20), "C_USB": (16, 44), "C_3V3": (34, 44), "U_USB": (76, 32),
         "C_ISO1": (126, 44),
         "U_ISO": (150, 24), "C_ISO2": (172, 44)},
        notes=[("the computer's side", 124, 9), ("the board's side", 162, 9)],
    ),
    Block(
        "Chip", 252, 76, 124, 84,
        {"U_CHIP": (88, 30), "Y_CHIP": (18, 14, 90), "C_X1": (10, 24), "C_X2": (26, 24),
         "L_AVCC": (10, 44), "C_AVCC": (10, 54), "C_AREF": (26, 54), "R_RESET": (42, 44),
         "C_DTR": (42, 54, 180),
         "J_FLASH": (42, 63, 180), "J_ISP": (88, 66)}
        | _row("C_VCC0 C_VCC1 C_VCC2 C_VCC3", 10, 74, 14),
        [[(8, 14), (10, 14), "Y_CHIP.1"], [(10, 14), "C_X1.1"],
         ["Y_CHIP.2", (26, 14), (28, 14)], [(26, 14), "C_X2.1"],
         ["L_AVCC.2", (10, 49), "C_AVCC.1"], [(10, 49), (16, 49)],
         ["R_RESET.2", (42, 49), "C_DTR.2"], [(42, 49), (48, 49)], ["C_DTR.1", "J_FLASH.2"]],
    ),
    Block(
        "Multiplexers: input n is cell n; 12 to 15 are references", 384, 76, 76, 84,
        {"U_CURRENTS": (38, 24), "U_TEMPERATURES": (38, 63)},
    ),
    Block(
        "References of both multiplexers", 176, 110, 66, 38,
        {"R_REF": (8, 11), "U_REF": (8, 23), "R_HALF_TOP": (26, 11), "R_HALF_BOTTOM": (26, 23),
         "C_HALF": (46, 23)},
        [["R_REF.2", (8, 17), "U_REF.1"], [(8, 17), (12, 17)],
         ["R_HALF_TOP.2", (26, 17), "R_HALF_BOTTOM.1"], [(26, 17), (46, 17), (52, 17)],
         [(46, 17), "C_HALF.1"]],
    ),
    Block("Twelve cells, each as on the sheet 'cell'", 252, 164, 208, 66, {}),
    Block(
        "Room's temperature, for inputs without a sensor", 176, 152, 66, 36,
        {"R_ROOM_TOP": (10, 11), "R_ROOM_BOTTOM": (10, 23), "C_ROOM": (36, 23)},
        [["R_ROOM_TOP.2", (10, 17), "R_ROOM_BOTTOM.1"], [(10, 17), (36, 17), (44, 17)],
         [(36, 17), "C_ROOM.1"]],
    ),
]  # fmt: skip
SHEETS = (4, 262, 172, 50, 19)  # columns, first box, steps between boxes
SHEET_SIZE = (16, 12)

CELL = Block(
    "One cell", 20, 20, 148, 118,
    {"D_OR": (36, 32), "R_G": (48, 40, 90), "R_PD": (58, 48), "Q": (69, 40), "D_FREE": (78, 22),
     "J_CELL": (94, 26), "R_S": (70, 56), "U_I": (98, 56), "C_VS": (122, 42), "R_F": (116, 56, 90),
     "C_F": (126, 64), "T": (28, 95), "J_ROOM": (48, 88), "R_T": (62, 94, 90), "C_T": (76, 102),
     "R_MISSING": (92, 102)},
    [[(20, 40), (36, 40), "R_G.1"], [(36, 40), "D_OR.A"], ["R_G.2", (58, 40), "Q.G"],
     [(58, 40), "R_PD.1"], ["Q.D", (70, 30), (78, 30), (85, 30), (85, 27), "J_CELL.2"],
     ["D_FREE.A", (78, 30)], [(70, 14), (78, 14), (85, 14), (85, 21), "J_CELL.1"],
     [(78, 14), "D_FREE.K"],
     ["Q.S", (70, 48), "R_S.1"], [(70, 48), (84, 48), (84, 54), "U_I.IN+"],
     ["R_S.2", (70, 64), (70, 68)], [(70, 64), (84, 64), (84, 58), "U_I.IN-"],
     ["U_I.OUT", "R_F.1"], ["R_F.2", (126, 56), (136, 56)], [(126, 56), "C_F.1"],
     ["T.OUT", (48, 94), "R_T.1"], ["J_ROOM.2", (48, 94)], ["R_T.2", (76, 94), (92, 94), (102, 94)],
     [(76, 94), "C_T.1"], [(92, 94), "R_MISSING.1"]],
    notes=[("SMA wire between + and -", 100, 24), ("sensor at the wire's clamp", 14, 107),
           ("closed where no sensor is: reads 26 C", 52, 84)],
)  # fmt: skip


# What stands on a sheet


@dataclass
class Placed:
    """A unit of a device at its place."""

    land: Land
    unit: int
    symbol: Symbol
    x: int
    y: int
    turn: int
    key: str  # of its shape in the file

    def at(self, pin: Pin) -> Point:
        """Where a pin is on the sheet."""
        dx, dy = turned((pin.x, pin.y), self.turn)
        return round(self.x + dx), round(self.y + dy)

    def out(self, pin: Pin) -> str:
        """The direction away from the body."""
        dx, dy = turned(STEP[pin.out], self.turn)
        return {step: name for name, step in STEP.items()}[(round(dx), round(dy))]


@dataclass
class Sheet:
    """Everything on one sheet, in grid steps."""

    placed: list[Placed] = field(default_factory=list)
    wires: list[tuple[Point, Point]] = field(default_factory=list)
    labels: list[tuple[str, Point, str]] = field(default_factory=list)
    unused: list[Point] = field(default_factory=list)
    frames: list[Block] = field(default_factory=list)


def shape_of(land: Land, kind: str, fields: dict) -> tuple[str, Shape]:
    """Name and shape of a device's symbol."""
    for name in (land.ref.rstrip("0123456789") if land.ref not in SHAPES else land.ref, kind):
        if name in SHAPES:
            shape = SHAPES[name]
            return name, shape if isinstance(shape, Shape) else Shape([shape])
    for name, shape in (("Ohm", s.RESISTOR), ("F", s.CAPACITOR), ("diode", s.DIODE),
                        ("jumper", s.JUMPER)):  # fmt: skip
        if name in fields:
            return {"Ohm": "R", "F": "C", "diode": "D", "jumper": "jumper"}[name], Shape([shape])
    raise ValueError(f"{land.ref} has no symbol: add it to firmware/board/sheet.py")


class Drawing:
    """A sheet under construction from the netlist.

    Attributes
    ----------
    cell : number of the cell whose parts and nets are drawn, or None for the board's sheet
    """

    def __init__(self, netlist: Netlist, cell: int | None) -> None:
        self.netlist, self.cell = netlist, cell
        self.devices = lands(netlist)
        self.sheet = Sheet()
        self.pins: dict[str, tuple[Point, str, str]] = {}  # place, direction, net by REF.PIN

    def block(self, block: Block) -> None:
        """Place the parts of a block and draw its wires."""
        self.sheet.frames.append(block)
        for name, (x, y, *turn) in block.parts.items():
            device, _, unit = name.partition(":")
            ref = device if self.cell is None else f"{device}{self.cell}"
            self._place(ref, unit, (block.x + x, block.y + y, turn[0] if turn else 0))
        for wire in block.wires:
            points = [self._point(block, end) for end in wire]
            for a, c in itertools.pairwise(points):
                if a[0] != c[0] and a[1] != c[1]:
                    raise ValueError(
                        f"{block.title}: a wire from {wire[0]} is neither level nor upright"
                    )
                self.sheet.wires.append((a, c))

    def _place(self, ref: str, unit: str, at: tuple[int, int, int]) -> None:
        land = self.devices[ref]
        part = self.netlist.parts[land.units[0]]
        key, shape = shape_of(land, part.kind, part.fields)
        number = int(unit or 1) if unit.isdigit() or not unit else POLES[ref].index(unit) + 1
        placed = Placed(land, number, shape.units[number - 1], *at, key)
        self.sheet.placed.append(placed)
        for pin in placed.symbol.pins:
            place, out = placed.at(pin), placed.out(pin)
            net = land.nets.get(pin.number, "")
            name = f"{ref}_{unit}" if ref in POLES else ref
            first = (int(pin.number) - 1) % 2 + 1 if ref in POLES else pin.number
            self.pins[f"{name}.{first}"] = self.pins[f"{name}.{pin.name}"] = (place, out, net)
            if not net:
                self.sheet.unused.append(place)

    def _point(self, block: Block, end: object) -> Point:
        if not isinstance(end, str):
            return block.x + end[0], block.y + end[1]
        ref, pin = end.rsplit(".", 1)
        return self.pins[f"{ref if self.cell is None else ref + str(self.cell)}.{pin}"][0]

    def name(self) -> None:
        """Split wires where others join, and name every group of pins that needs a name."""
        points = {place for place, _, _ in self.pins.values()}
        points |= {end for wire in self.sheet.wires for end in wire}
        self.sheet.wires = [part for wire in self.sheet.wires for part in _split(wire, points)]
        group = _groups(self.sheet.wires)
        named: dict[str, list] = {}
        seen: set[Point] = set()
        for place, out, net in self.pins.values():
            if net and place not in seen:
                seen.add(place)
                named.setdefault(net, []).append((place, out))
        for net, pins in sorted(named.items()):
            self._name_net(net, pins, group)

    def _name_net(self, net: str, pins: list[tuple[Point, str]], group: dict) -> None:
        groups: dict[Point, list[tuple[Point, str]]] = {}
        for place, out in pins:
            groups.setdefault(group.get(place, place), []).append((place, out))
        for root, members in groups.items():
            wired = [wire for wire in self.sheet.wires if group.get(wire[0]) == root]
            ends = [end for wire in wired for end in wire]
            free = [end for end in ends if ends.count(end) == 1 and end not in dict(members)]
            if free:
                other = next(a if c == free[0] else c for a, c in wired if free[0] in (a, c))
                self.sheet.labels.append((self._local(net), free[0], _direction(other, free[0])))
            elif net in POWER or len(groups) > 1 or self._leaves(net):
                # A pin of the group whose own place is free of wires, or its first
                place, out = members[0]
                if place in ends:
                    raise ValueError(f"{net}: give the wire at {place} a free end for its name")
                if net not in POWER or out not in ("u", "d") or (out == "d") != (net in DOWN):
                    step = STEP[out]
                    end = (place[0] + 2 * step[0], place[1] + 2 * step[1])
                    self.sheet.wires.append((place, end))
                    place = end
                self.sheet.labels.append((self._local(net), place, out))

    def _local(self, net: str) -> str:
        plain = net.rstrip("0123456789")
        if self.cell is not None and net.endswith(str(self.cell)) and plain != net:
            return plain
        return net

    def _leaves(self, net: str) -> bool:
        """Whether a net has pins on another sheet."""
        if self.cell is not None:
            return self._local(net) in (*CELL_PINS, *GLOBAL)
        return net in GLOBAL or any(net == f"{name}{n}" for name in CELL_PINS for n in range(CELLS))


def _direction(a: Point, c: Point) -> str:
    if a[0] == c[0]:
        return "u" if c[1] < a[1] else "d"
    return "l" if c[0] < a[0] else "r"


def _split(wire: tuple[Point, Point], points: set[Point]) -> Iterator[tuple[Point, Point]]:
    (x0, y0), (x1, y1) = wire
    on = [
        p for p in points
        if min(x0, x1) <= p[0] <= max(x0, x1) and min(y0, y1) <= p[1] <= max(y0, y1)
    ]  # fmt: skip
    on.sort(key=lambda p: (abs(p[0] - x0), abs(p[1] - y0)))
    yield from itertools.pairwise(on)


def _groups(wires: list[tuple[Point, Point]]) -> dict[Point, Point]:
    """One point for each group of joined wires, by every end."""
    root: dict[Point, Point] = {}

    def find(p: Point) -> Point:
        while root.setdefault(p, p) != p:
            p = root[p]
        return p

    for a, c in wires:
        root[find(a)] = find(c)
    return {p: find(p) for p in list(root)}


def board_sheet(netlist: Netlist) -> Sheet:
    """The sheet of the board."""
    made = Drawing(netlist, None)
    for block in BLOCKS:
        made.block(block)
    drawn = {one.land.ref for one in made.sheet.placed}
    cells = {f"{name}{n}" for name in CELL.parts for n in range(CELLS)}
    if missing := sorted(set(made.devices) - drawn - cells):
        raise ValueError(f"not on the sheet: {', '.join(missing)}")
    for n in range(CELLS):
        x, y = sheet_place(n)
        made.pins[f"cell{n}.GATE"] = ((x, y + 3), "l", f"GATE{n}")
        made.pins[f"cell{n}.CURRENT"] = ((x + SHEET_SIZE[0], y + 3), "r", f"CURRENT{n}")
        made.pins[f"cell{n}.TEMPERATURE"] = ((x + SHEET_SIZE[0], y + 7), "r", f"TEMPERATURE{n}")
    made.name()
    return made.sheet


def sheet_place(n: int) -> Point:
    """Upper left corner of a cell's box."""
    columns, x, y, right, down = SHEETS
    return x + 10 + right * (n % columns), y + 2 + down * (n // columns)


def cell_sheet(netlist: Netlist) -> Sheet:
    """The sheet of one cell, with the names of cell 0."""
    made = Drawing(netlist, 0)
    made.block(CELL)
    made.name()
    return made.sheet
