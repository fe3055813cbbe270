"""Writes the sheets for KiCad 6: `python firmware/board/sheet_file.py`.

It makes board.kicad_sch and cell.kicad_sch in firmware/board/kicad/.
"""

import itertools
from collections.abc import Iterator
from dataclasses import replace

import circuit
from circuit import CELLS, Netlist
from lands import POLES, Land, label
from layout import FILES
from sexp import identity, quoted, write
from sheet import (
    ANGLE,
    CELL_PINS,
    DOWN,
    GLOBAL,
    POWER,
    SHEET_SIZE,
    STEP,
    GRID_mm,
    Placed,
    Point,
    Sheet,
    board_sheet,
    cell_sheet,
    shape_of,
    sheet_place,
)  # fmt: skip
from symbols import Shape, Symbol


def _identity(*names: object) -> list:
    return ["uuid", identity(*names)]


def _mm(value: float) -> float:
    return round(value * GRID_mm, 4)


def _xy(point: Point) -> list:
    return [_mm(point[0]), _mm(point[1])]


def _effects(size_mm: float = 1.27, *justify: str, hide: bool = False) -> list:
    made: list = ["effects", ["font", ["size", size_mm, size_mm]]]
    if justify:
        made.append(["justify", *justify])
    return [*made, "hide"] if hide else made


STROKE = ["stroke", ["width", 0], ["type", "default"], ["color", 0, 0, 0, 0]]


def _strokes(symbol: Symbol) -> Iterator[list]:
    fill = ["fill", ["type", "background" if symbol.filled else "none"]]
    stroke = ["stroke", ["width", 0.2], ["type", "default"], ["color", 0, 0, 0, 0]]
    for kind, *values in symbol.strokes:
        if kind == "line":
            points = [["xy", _mm(x), _mm(-y)] for x, y in values]
            yield ["polyline", ["pts", *points], stroke, ["fill", ["type", "none"]]]
        elif kind == "rect":
            x0, y0, x1, y1 = values
            yield [
                "rectangle",
                ["start", _mm(x0), _mm(-y0)],
                ["end", _mm(x1), _mm(-y1)],
                stroke,
                fill,
            ]
        elif kind == "circle":
            x, y, r = values
            yield ["circle", ["center", _mm(x), _mm(-y)], ["radius", _mm(r)], stroke, fill]
        else:
            text, x, y = values
            yield ["text", quoted(text), ["at", _mm(x), _mm(-y), 0], _effects()]


def _library(key: str, shape: Shape) -> list:
    """A shape as a symbol of the file's own library."""
    first = shape.units[0]
    numbered = first.named or key in POLES
    made: list = ["symbol", quoted(f"hil:{key}"), ["pin_numbers", *([] if numbered else ["hide"])],
                  ["pin_names", ["offset", 0.6], *([] if first.named else ["hide"])],
                  ["in_bom", "yes"], ["on_board", "yes"]]  # fmt: skip
    if numbered:
        made.remove(["pin_numbers"])
    for k, (name, text) in enumerate((("Reference", "U"), ("Value", key), ("Footprint", ""))):
        made.append(["property", quoted(name), quoted(text), ["id", k], ["at", 0, 0, 0],
                     _effects(hide=k > 1)])  # fmt: skip
    for n, unit in enumerate(shape.units, 1):
        pins = [
            ["pin", "passive", "line", ["at", _mm(p.x), _mm(-p.y), (ANGLE[p.out] + 180) % 360],
             ["length", _mm(p.length)], ["name", quoted(p.name), _effects()],
             ["number", quoted(p.number), _effects(1.0)]]
            for p in unit.pins
        ]  # fmt: skip
        made.append(["symbol", quoted(f"{key}_{n}_1"), *_strokes(unit), *pins])
    return made


def _power(net: str) -> list:
    """The symbol of a supply or of ground."""
    down = net in DOWN
    lines = (
        [[(0, 0), (0, 1)], [(-1, 1), (1, 1)], [(-0.6, 1.5), (0.6, 1.5)], [(-0.2, 2), (0.2, 2)]]
        if down else [[(0, 0), (0, -1)], [(-0.6, -0.6), (0, -1.4), (0.6, -0.6)]]
    )  # fmt: skip
    made: list = ["symbol", quoted(f"hil:{net}"), ["power"], ["pin_names", ["offset", 0], "hide"],
                  ["in_bom", "no"], ["on_board", "no"]]  # fmt: skip
    for k, (name, text) in enumerate((("Reference", "#PWR"), ("Value", net))):
        made.append(["property", quoted(name), quoted(text), ["id", k],
                     ["at", 0, _mm(-3.2 if down else 2.4), 0], _effects(hide=not k)])  # fmt: skip
    graphics = [["polyline", ["pts", *(["xy", _mm(x), _mm(-y)] for x, y in line)],
                 ["stroke", ["width", 0.2], ["type", "default"], ["color", 0, 0, 0, 0]],
                 ["fill", ["type", "none"]]] for line in lines]  # fmt: skip
    pin = ["pin", "power_in", "line", ["at", 0, 0, 270 if down else 90], ["length", 0],
           ["name", quoted(net), _effects()], ["number", '"1"', _effects()], "hide"]  # fmt: skip
    return [
        *made,
        ["symbol", quoted(f"{net}_0_1"), *graphics],
        ["symbol", quoted(f"{net}_1_1"), pin],
    ]


def _texts(one: Placed) -> tuple[tuple, tuple]:
    """Places of a part's name and value: x, y and how they are aligned."""
    _, y0, x1, y1 = one.symbol.box
    if one.symbol.named:
        return (one.x, one.y + y0 - 1, "c"), (one.x, one.y + y1 + 1, "c")
    if x1 >= 4:  # a triangle or a gate
        return (one.x + 2, one.y - 5, "l"), (one.x + 2, one.y + 5, "l")
    if one.turn % 180 == 0:
        return (one.x + x1 + 0.8, one.y - 1, "l"), (one.x + x1 + 0.8, one.y + 1, "l")
    return (one.x, one.y - x1 - 1.8, "c"), (one.x, one.y + x1 + 1.8, "c")


def _value(land: Land, netlist: Netlist) -> str:
    return land.ref if land.ref in POLES else label(netlist.parts[land.units[0]]) or land.ref


def _symbol(one: Placed, root: str, netlist: Netlist) -> list:
    """A placed unit, in the file."""
    ref, value = one.land.ref, _value(one.land, netlist)
    made: list = [
        "symbol", ["lib_id", quoted(f"hil:{one.key}")], ["at", *_xy((one.x, one.y)), one.turn],
        ["unit", one.unit], ["in_bom", "yes"], ["on_board", "yes"], _identity(root, ref, one.unit),
    ]  # fmt: skip
    for k, (name, text) in enumerate(
        (("Reference", ref), ("Value", value), ("Footprint", one.land.footprint))
    ):
        x, y, side = _texts(one)[min(k, 1)]
        hide = k == 2 or (k == 1 and value == ref)
        # A justification is turned with its symbol.
        justify = {"c": (), "l": ("right" if one.turn == 180 else "left",)}[side]
        made.append([
            "property", quoted(name), quoted(text), ["id", k],
            ["at", *_xy((x, y)), one.turn % 180], _effects(1.27, *justify, hide=hide),
        ])  # fmt: skip
    pins = (["pin", quoted(p.number), _identity(root, ref, p.number)] for p in one.symbol.pins)
    return [*made, *pins]


def _instance(path: str, reference: str, unit: int, value: str, footprint: str) -> list:
    return ["path", quoted(path), ["reference", quoted(reference)], ["unit", unit],
            ["value", quoted(value)], ["footprint", quoted(footprint)]]  # fmt: skip


def _instances(sheet: Sheet, key: str, box: str, number: str, netlist: Netlist) -> Iterator[list]:
    """Path, name and unit of every symbol; a cell's sheet is read once for every box."""
    for one in sheet.placed:
        path = f"{box}/{identity(key, one.land.ref, one.unit)}"
        ref = one.land.ref[:-1] + number if number else one.land.ref
        value = _value(replace(one.land, ref=ref), netlist)
        yield _instance(path, ref, one.unit, value, one.land.footprint)
    for net, place, _ in sheet.labels:
        if net in POWER:
            path = f"{box}/{identity(key, net, place)}"
            yield _instance(path, f"#PWR{_number(key, place)}{number}", 1, net, "")


def _label(net: str, place: Point, out: str, cell: bool, key: str) -> list:
    """The name of a net at a point: a label, or for a supply an arrow."""
    if net in POWER:
        base = "d" if net in DOWN else "u"
        turn = (ANGLE[out] - ANGLE[base]) % 360
        dx, dy = STEP[out]
        away = 3.2 if net in DOWN else 2.4
        side = {"l": "right", "r": "left"}.get(out)
        x, y = place[0] + dx * (away if not side else away - 0.6), place[1] + dy * away
        # A justification is turned with its symbol.
        flipped = {"left": "right", "right": "left"}
        if side and turn in (180, 270):
            side = flipped[side]
        return ["symbol", ["lib_id", quoted(f"hil:{net}")], ["at", *_xy(place), turn], ["unit", 1],
                ["in_bom", "no"], ["on_board", "no"], _identity(key, net, place),
                ["property", '"Reference"', quoted(f"#PWR{_number(key, place)}"), ["id", 0],
                 ["at", *_xy(place), 0], _effects(hide=True)],
                ["property", '"Value"', quoted(net), ["id", 1], ["at", *_xy((x, y)), turn % 180],
                 _effects(1.27, *([side] if side else []))],
                ["pin", '"1"', _identity(key, net, place, "pin")]]  # fmt: skip
    at = ["at", *_xy(place), ANGLE[out]]
    side = "right" if out in "ld" else "left"
    if net in GLOBAL:
        return ["global_label", quoted(net), ["shape", "passive"], at, ["fields_autoplaced"],
                _effects(1.27, side), _identity(key, net, place)]  # fmt: skip
    if cell and net in CELL_PINS:
        shape = "input" if net == "GATE" else "output"
        return ["hierarchical_label", quoted(net), ["shape", shape], at, _effects(1.27, side),
                _identity(key, net, place)]  # fmt: skip
    return ["label", quoted(net), at, _effects(1.27, side, "bottom"), _identity(key, net, place)]


def _number(key: str, place: Point) -> str:
    return f"{'9' if key == 'cell' else '1'}{round(place[0]):03}{round(place[1]):03}"


def document(sheet: Sheet, netlist: Netlist, key: str) -> list:
    """A sheet as KiCad's S-expression."""
    cell = key == "cell"
    title = "One of twelve cells" if cell else "SMA driver board for twelve cells"
    shapes = {}
    for one in sheet.placed:
        part = netlist.parts[one.land.units[0]]
        shapes.setdefault(*shape_of(one.land, part.kind, part.fields))
    nets = sorted({net for net, *_ in sheet.labels} & POWER)
    made: list = ["kicad_sch", ["version", 20211123], ["generator", "eeschema"],
                  _identity("sheet", key), ["paper", '"A4"' if cell else '"A2"'],
                  ["title_block", ["title", quoted(title)],
                   ["comment", 1, '"Nobody has built it yet"']],
                  ["lib_symbols", *(_library(*item) for item in sorted(shapes.items())),
                   *(_power(net) for net in nets)]]  # fmt: skip
    ends = [end for wire in sheet.wires for end in wire]
    pins = [one.at(pin) for one in sheet.placed for pin in one.symbol.pins]
    for point in sorted({p for p in ends if ends.count(p) + pins.count(p) > 2}):
        made.append(["junction", ["at", *_xy(point)], ["diameter", 0], ["color", 0, 0, 0, 0],
                     _identity(key, "junction", point)])  # fmt: skip
    for point in sheet.unused:
        made.append(["no_connect", ["at", *_xy(point)], _identity(key, "unused", point)])
    for wire in sheet.wires:
        made.append(["wire", ["pts", ["xy", *_xy(wire[0])], ["xy", *_xy(wire[1])]], STROKE,
                     _identity(key, "wire", wire)])  # fmt: skip
    for block in sheet.frames:
        corners = ((0, 0), (block.wide, 0), (block.wide, block.high), (0, block.high), (0, 0))
        points = [["xy", *_xy((block.x + x, block.y + y))] for x, y in corners]
        dashed = ["stroke", ["width", 0], ["type", "dash"], ["color", 0, 0, 0, 0]]
        for a, c in itertools.pairwise(points):
            made.append(
                ["polyline", ["pts", a, c], dashed, _identity(key, "frame", block.title, a, c)]
            )
        made.append(["text", quoted(block.title), ["at", *_xy((block.x + 1, block.y + 3)), 0],
                     _effects(2.0, "left", "bottom"),
                     _identity(key, "title", block.title)])  # fmt: skip
        for text, x, y in block.notes:
            made.append(["text", quoted(text), ["at", *_xy((block.x + x, block.y + y)), 0],
                         _effects(1.27, "left", "bottom"),
                         _identity(key, "note", text)])  # fmt: skip
    made += [_label(*item, cell, key) for item in sheet.labels]
    made += [_symbol(one, key, netlist) for one in sheet.placed]
    return made


def _box(n: int) -> list:
    """The box of a cell on the board's sheet."""
    (x, y), (wide, high) = sheet_place(n), SHEET_SIZE
    pins = (("GATE", "input", x, y + 3, 180), ("CURRENT", "output", x + wide, y + 3, 0),
            ("TEMPERATURE", "output", x + wide, y + 7, 0))  # fmt: skip
    return [
        "sheet", ["at", *_xy((x, y))], ["size", _mm(wide), _mm(high)],
        ["stroke", ["width", 0.2], ["type", "solid"], ["color", 0, 0, 0, 0]],
        ["fill", ["color", 0, 0, 0, 0.0]], _identity("box", n),
        ["property", '"Sheet name"', quoted(f"cell {n}"), ["id", 0],
         ["at", *_xy((x, y - 0.6)), 0], _effects(1.27, "left", "bottom")],
        ["property", '"Sheet file"', '"cell.kicad_sch"', ["id", 1],
         ["at", *_xy((x, y + high + 0.6)), 0], _effects(1.27, "left", "top", hide=True)],
        *(["pin", quoted(name), kind, ["at", *_xy((px, py)), angle],
           _effects(1.27, "left" if angle else "right"), _identity("box", n, name)]
          for name, kind, px, py, angle in pins),
    ]  # fmt: skip


def files(netlist: Netlist) -> dict[str, str]:
    """Text of both sheets by the name of the file."""
    board, cell = board_sheet(netlist), cell_sheet(netlist)
    top = document(board, netlist, "board")
    pages = [["path", '"/"', ["page", '"1"']]]
    instances = list(_instances(board, "board", "", "", netlist))
    for n in range(CELLS):
        top.append(_box(n))
        path = f"/{identity('box', n)}"
        pages.append(["path", quoted(path), ["page", quoted(str(n + 2))]])
        instances += _instances(cell, "cell", path, str(n), netlist)
    top += [["sheet_instances", *pages], ["symbol_instances", *instances]]
    return {
        "board.kicad_sch": write(top).lstrip() + "\n",
        "cell.kicad_sch": write(document(cell, netlist, "cell")).lstrip() + "\n",
    }


def main() -> None:
    """Write both sheets."""
    FILES.mkdir(exist_ok=True)
    for name, made in files(circuit.board().netlist()).items():
        (FILES / name).write_text(made, encoding="utf-8")


if __name__ == "__main__":
    main()
