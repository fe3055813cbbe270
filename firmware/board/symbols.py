"""Symbols of the sheets: pins and strokes in grid steps of 1.27 mm, y downwards.

Pins of a symbol with two poles stand above and below; the first is above.
"""

from dataclasses import dataclass, field

Stroke = (
    tuple  # ("line", points...), ("rect", x0, y0, x1, y1), ("circle", x, y, r), ("text", s, x, y)
)


@dataclass
class Pin:
    """A pin: `x`, `y` is where a wire joins it, `out` the direction away from the body."""

    number: str
    name: str
    x: int
    y: int
    out: str
    length: int = 2


@dataclass
class Symbol:
    """The strokes and pins of one unit of a symbol; `named` prints its pins' names and numbers."""

    strokes: list[Stroke]
    pins: list[Pin]
    named: bool = False
    box: tuple[float, float, float, float] = (-1, -2, 1, 2)
    filled: bool = False


@dataclass
class Shape:
    """A symbol of one or more units."""

    units: list[Symbol] = field(default_factory=list)


def two_poles(*strokes: Stroke, names: tuple[str, str] = ("1", "2"), length: int = 1,
              numbers: tuple[str, str] = ("1", "2")) -> Symbol:  # fmt: skip
    """A symbol with a pin above and one below."""
    pins = [
        Pin(numbers[0], names[0], 0, -3, "u", length),
        Pin(numbers[1], names[1], 0, 3, "d", length),
    ]
    return Symbol(list(strokes), pins)


RESISTOR = two_poles(("rect", -0.8, -2, 0.8, 2))
CAPACITOR = two_poles(
    ("line", (-1.5, -0.5), (1.5, -0.5)), ("line", (-1.5, 0.5), (1.5, 0.5)),
    ("line", (0, -2), (0, -0.5)), ("line", (0, 2), (0, 0.5)),
)  # fmt: skip
POLARISED = two_poles(*CAPACITOR.strokes, ("line", (-1.6, -1.4), (-0.8, -1.4)),
                      ("line", (-1.2, -1.8), (-1.2, -1.0)))  # fmt: skip
_DIODE = (("line", (0, -2), (0, 2)), ("line", (-1, 1), (1, 1), (0, -1), (-1, 1)))
DIODE = two_poles(*_DIODE, ("line", (-1, -1), (1, -1)), names=("K", "A"))
SCHOTTKY = two_poles(*_DIODE, ("line", (-1, -0.5), (-1, -1), (1, -1), (1, -1.5)), names=("K", "A"))
ZENER = two_poles(*_DIODE, ("line", (-1.3, -0.6), (-1, -1), (1, -1), (1.3, -1.4)), names=("K", "A"))
INDUCTOR = two_poles(
    ("line", *((0.7 * s, y) for y, s in ((-2, 0), (-1.5, 1), (-1, 0), (-0.5, 1), (0, 0), (0.5, 1),
                                         (1, 0), (1.5, 1), (2, 0)))),
)  # fmt: skip
FUSE = two_poles(("rect", -0.8, -2, 0.8, 2), ("line", (0, -2), (0, 2)))
CRYSTAL = two_poles(
    ("rect", -1.5, -0.6, 1.5, 0.6), ("line", (-1.5, -1.1), (1.5, -1.1)),
    ("line", (-1.5, 1.1), (1.5, 1.1)), ("line", (0, -2), (0, -1.1)), ("line", (0, 2), (0, 1.1)),
)  # fmt: skip
_OPEN = (("circle", 0, -1.7, 0.3), ("circle", 0, 1.7, 0.3))
JUMPER = two_poles(*_OPEN, ("line", (-0.9, -1.7), (-0.9, 1.7)))


def _contact(first: int, closed: bool) -> Symbol:
    blade = (
        ("line", (0, 1.5), (-1.2, -1.2)) if not closed
        else ("line", (0, 1.5), (0.6, -1.6), (-0.6, -1.4), (0, -1.4))
    )  # fmt: skip
    return two_poles(*_OPEN, blade, numbers=(str(first), str(first + 1)))


def _coil(first: int) -> Symbol:
    body = (("rect", -2, -1.2, 2, 1.2), ("line", (-1, 1.2), (1, -1.2)))
    lines = (("line", (0, -2), (0, -1.2)), ("line", (0, 2), (0, 1.2)))
    made = two_poles(*body, *lines, numbers=(str(first), str(first + 1)))
    made.box = (-2, -2, 2, 2)
    return made


def poles(names: tuple[str, ...]) -> Shape:
    """A relay or button: contacts NO and NC, and a coil."""
    made = Shape()
    for k, name in enumerate(names):
        first = 2 * k + 1
        made.units.append(_coil(first) if name == "COIL" else _contact(first, name[:2] == "NC"))
    return made


MOSFET = Symbol(
    [("line", (-2, 0), (-1.2, 0)), ("line", (-1.2, -2), (-1.2, 2)),
     ("line", (-0.6, -2.2), (-0.6, -0.8)),
     ("line", (-0.6, -0.6), (-0.6, 0.6)), ("line", (-0.6, 0.8), (-0.6, 2.2)),
     ("line", (-0.6, -1.5), (1, -1.5), (1, -2.5)), ("line", (-0.6, 1.5), (1, 1.5), (1, 2.5)),
     ("line", (-0.6, 0), (1, 0), (1, 1.5)), ("line", (0.2, -0.4), (-0.5, 0), (0.2, 0.4))],
    [Pin("1", "G", -4, 0, "l"), Pin("3", "D", 1, -4, "u", 1), Pin("2", "S", 1, 4, "d", 1)],
    box=(-2, -3, 2, 3),
)  # fmt: skip


def _triangle(pins: list[Pin], *strokes: Stroke) -> Symbol:
    signs = (("text", "+", -3, -2), ("text", "-", -3, 2))
    body = ("line", (-4, -5), (-4, 5), (5, 0), (-4, -5))
    return Symbol([body, *signs, *strokes], pins, box=(-4, -5, 5, 5))


AMPLIFIER = _triangle(
    [Pin("3", "IN+", -6, -2, "l"), Pin("4", "IN-", -6, 2, "l"), Pin("1", "OUT", 7, 0, "r"),
     Pin("5", "VS", 0, -5, "u", 2), Pin("2", "GND", 0, 5, "d", 2)],
)  # fmt: skip
COMPARATOR = Shape([
    _triangle([Pin("3", "IN1+", -6, -2, "l"), Pin("2", "IN1-", -6, 2, "l"),
               Pin("1", "OUT1", 7, 0, "r")]),
    _triangle([Pin("5", "IN2+", -6, -2, "l"), Pin("6", "IN2-", -6, 2, "l"),
               Pin("7", "OUT2", 7, 0, "r")]),
    Symbol([("rect", -2, -3, 2, 3)], [Pin("8", "VCC", 0, -5, "u"), Pin("4", "GND", 0, 5, "d")],
           box=(-2, -3, 2, 3)),
])  # fmt: skip
GATE = Symbol(
    [("line", (0, -4), (-4, -4), (-4, 4), (0, 4)), ("text", "&", -1, 0),
     ("line", *((3.4 * c, 4 * s) for c, s in ((0, -1), (0.5, -0.866), (0.866, -0.5), (1, 0),
                                              (0.866, 0.5), (0.5, 0.866), (0, 1)))),
     ("line", (3.4, 0), (5, 0))],
    [Pin("1", "A", -6, -2, "l"), Pin("2", "B", -6, 2, "l"), Pin("4", "Y", 7, 0, "r"),
     Pin("5", "VCC", -1, -6, "u"), Pin("3", "GND", -1, 6, "d")],
    box=(-4, -4, 4, 4),
)  # fmt: skip


def box(left: list, right: list, wide: int, step: int = 2) -> Symbol:
    """A rectangle with pins (number, name) at its sides; None leaves a place free."""
    rows = max(len(left), len(right))
    top = -(rows * step // 2) - 1
    low = top + rows * step + 1
    pins = []
    for out, side, x in (("l", left, -wide // 2 - 3), ("r", right, wide // 2 + 3)):
        for k, pin in enumerate(side):
            if pin is not None:
                pins.append(Pin(str(pin[0]), pin[1], x, top + 2 + (k * step), out, 3))
    half = wide // 2
    return Symbol([("rect", -half, top, half, low + 1)], pins, named=True,
                  box=(-half, top, half, low + 1), filled=True)  # fmt: skip
