"""What is printed on the board: titles, poles of the terminals, and the parts' names."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

import circuit
from lands import POLES
from layout import (
    CELL,
    HOLES,
    PLACES,
    STRIP,
    COLUMN_mm,
    FIRST_mm,
    HEIGHT_mm,
    Placed,
    PLUGS_mm,
    WIDTH_mm,
)  # fmt: skip
from router import Box
from sexp import child, numbers, turned

TITLED = ("J_CELL", "J_USB", "J_FLASH", "J_ISP", "J_AUX")  # and every pole of a terminal
GAP, EDGE, STROKE_mm = 0.12, 0.8, 0.12


@dataclass
class Label:
    """A text in print, by its middle; `turn` is 0 or 90."""

    text: str
    x: float
    y: float
    size: float
    turn: int = 0

    def box(self) -> Box:
        """What it covers."""
        wide, high = 0.5 * self.size * (len(self.text) + 0.4), 0.75 * self.size
        if self.turn:
            wide, high = high, wide
        return Box(0, 0, self.x - wide, self.y - high, self.x + wide, self.y + high)


def _cover(a: Box, c: Box) -> bool:
    return a.x0 < c.x1 + GAP and c.x0 < a.x1 + GAP and a.y0 < c.y1 + GAP and c.y0 < a.y1 + GAP


def _printed(one: Placed) -> Iterator[Box]:
    """Boxes of the strokes that a footprint prints."""
    for part in one.shape:
        if not (isinstance(part, list) and child(part, "layer")[1:] == ['"F.SilkS"']):
            continue
        ends = [
            numbers(child(part, end))[:2] for end in ("start", "mid", "end") if child(part, end)
        ]
        if part[0] == "fp_circle":
            (x, y), rim = numbers(child(part, "center")), numbers(child(part, "end"))
            r = math.dist((x, y), rim)
            ends = [[x - r, y - r], [x + r, y + r]]
        if part[0] in ("fp_line", "fp_arc", "fp_circle"):
            xs, ys = zip(*(turned((x, y), one.turn) for x, y in ends), strict=True)
            w = STROKE_mm / 2
            yield Box(0, 0, one.x + min(xs) - w, one.y + min(ys) - w, one.x + max(xs) + w,
                      one.y + max(ys) + w)  # fmt: skip


def _extent(one: Placed) -> Box:
    """The box of a footprint's pads and print."""
    boxes = [box for _, box in one.pads] + list(_printed(one))
    return Box(0, 0, min(b.x0 for b in boxes), min(b.y0 for b in boxes),
               max(b.x1 for b in boxes), max(b.y1 for b in boxes))  # fmt: skip


def _titles() -> Iterator[Label]:
    """Texts with places of their own."""
    for n in range(circuit.CELLS):
        x = FIRST_mm + n * COLUMN_mm
        yield Label(f"CELL {n}", x, STRIP[0] + 1.3, 1.4)
        yield Label("+", x - 4.4, PLUGS_mm, 1.4)
        yield Label("-", x + 4.4, PLUGS_mm, 1.4)
    for relay in ("K1", "K2"):
        x, y, _ = PLACES[relay]
        for k, pole in enumerate(POLES[relay]):
            yield Label(f"{relay} {pole}", x + 9.6, y + 5.08 * (2 * k + 0.5), 1.0)
    for name in ("ESTOP", "START"):
        x, y, _ = PLACES[name]
        for k, pole in enumerate(POLES[name]):
            yield Label(f"{name} {pole}", x - 5.08 * (2 * k + 0.5), y + 7.2, 1.0)
    yield from (
        Label("CELLS' SUPPLY", 3.0, 108.0, 1.0, 90), Label("+", 15.4, 119.4, 1.4),
        Label("-", 15.0, 122.0, 1.4), Label("12 V", 75.0, 18.2, 1.2),
        Label("FLASH", 118.8, 23.9, 1.0), Label("ISP", 122.3, 31.4, 1.0),
        Label("USB", 178.5, 31.0, 1.2), Label("COMPUTER'S SIDE", 172.0, 46.0, 1.4),
        Label("ISOLATION", 150.0, 44.0, 1.4, 90),
        Label("DRIVER BOARD FOR 12 CELLS", 124.0, 6.0, 2.0),
        Label("supply 17.4 V, 5 A at most; not a certified safety function", 124.0, 9.6, 1.2),
        Label("PUMP", 50.0, 33.0, 1.4), Label("LEAK CUT", 50.0, 52.5, 1.4),
        Label("CURRENTS", 82.0, 57.6, 1.2), Label("TEMPERATURES", 132.0, 57.6, 1.2),
    )  # fmt: skip


def labels(placed: dict[str, Placed]) -> list[Label]:
    """All texts: titles, and each part's name where there is room.

    Raises
    ------
    ValueError
        A name has no room.
    """
    taken = [box for one in placed.values() for _, box in one.pads]
    taken += [box for one in placed.values() for box in _printed(one)]
    taken += [Box(0, 0, x - 3.3, y - 3.3, x + 3.3, y + 3.3) for x, y in HOLES]
    made = list(_titles())
    for ref, one in placed.items():
        plain = re.sub(r"\d+$", "", ref)
        name = plain if plain in CELL else ref
        if plain in TITLED or ref in POLES:
            continue
        for label in _around(name.removeprefix("J_") if plain == "J_ROOM" else name, _extent(one)):
            box = label.box()
            inside = box.x0 > EDGE and box.y0 > EDGE and box.x1 < WIDTH_mm - EDGE
            others = (*taken, *(other.box() for other in made))
            if inside and box.y1 < HEIGHT_mm - EDGE and not any(_cover(box, its) for its in others):
                made.append(label)
                break
        else:
            raise ValueError(f"no room to print the name of {ref}")
    return made


def _around(text: str, around: Box) -> Iterator[Label]:
    """Places for a name around a part, the nearest first."""
    middle = (around.x0 + around.x1) / 2, (around.y0 + around.y1) / 2
    for size in (0.9, 0.8, 0.7):
        probe = Label(text, 0, 0, size).box()
        wide, high = probe.x1, probe.y1
        for away in (0.2, 0.5, 0.9, 1.4):
            for shift in (0.0, 0.7, -0.7, 1.4, -1.4, 2.1, -2.1):
                yield Label(text, middle[0] + shift, around.y0 - high - away, size)
                yield Label(text, middle[0] + shift, around.y1 + high + away, size)
                yield Label(text, around.x0 - wide - away, middle[1] + shift, size)
                yield Label(text, around.x1 + wide + away, middle[1] + shift, size)
                yield Label(text, around.x0 - high - away, middle[1] + shift, size, 90)
                yield Label(text, around.x1 + high + away, middle[1] + shift, size, 90)
