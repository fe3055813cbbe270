"""Pictures of the sheets and of the board for the documentation, made from KiCad's files alone.

`python firmware/board/picture.py` writes board-sheet.svg, board-cut.svg, board-cell.svg,
board-top.png and board-bottom.png in docs/images/.
"""

from html import escape
from pathlib import Path
from typing import NamedTuple

from layout import FILES, SOLID, HEIGHT_mm, PAGE_mm, WIDTH_mm
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Polygon, Rectangle
from sexp import bare, child, children, numbers, read, turned
from sheet import BLOCKS, CELL, GRID_mm

IMAGES = Path(__file__).parents[2] / "docs" / "images"
CUT_RIGHT = 250  # blocks at the left of it cut the supply, or feed what does
STARTS = {True: "start", False: "end"}  # of a text at the left or right end of its line
INK, WIRE, NAME, FILL, FRAME = "#702020", "#207020", "#104080", "#fffbe8", "#8888aa"
LETTER = 0.62  # mean width of a letter of its height, sans-serif


class Style(NamedTuple):
    """How a text stands: anchor is start, middle or end of its line."""

    size: float
    colour: str
    anchor: str = "middle"
    upright: bool = False
    middle: bool = True  # of its height at the place, not its base


class Svg:
    """Strokes and texts of a sheet, in mm.

    Attributes
    ----------
    items : element of the file, and the place that decides whether it is in a part of the picture
    texts : text and the box that it covers
    """

    def __init__(self) -> None:
        self.items: list[tuple[str, tuple[float, float]]] = []
        self.texts: list[tuple[str, float, float, float, float]] = []

    def line(
        self, points: list, colour: str, width: float = 0.2, fill: str = "none", dash: str = ""
    ) -> None:
        """Draw a line through points."""
        path = " ".join(f"{x:.2f},{y:.2f}" for x, y in points)
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        line = (
            f'<polyline points="{path}" stroke="{colour}" stroke-width="{width}" '
            f'fill="{fill}"{dashed}/>'
        )
        self.items.append((line, (points[0][0], points[0][1])))

    def circle(self, x: float, y: float, r: float, colour: str, fill: str) -> None:
        """Draw a circle."""
        circle = (
            f'<circle cx="{x:.2f}" cy="{y:.2f}" r="{r:.2f}" stroke="{colour}" stroke-width="0.2" '
            f'fill="{fill}"/>'
        )
        self.items.append((circle, (x, y)))

    def text(self, text: str, x: float, y: float, style: Style) -> None:
        """Print a text."""
        size = style.size
        wide = LETTER * size * len(text)
        start = {"start": 0.0, "middle": -wide / 2, "end": -wide}[style.anchor]
        top = -size / 2 if style.middle else -size
        box = (x + start, y + top, x + start + wide, y + top + size)
        if style.upright:
            box = (x + top, y - start - wide, x + top + size, y - start)
        self.texts.append((text, *box))
        base = y + 0.36 * size if style.middle else y
        turn = f' transform="rotate(-90 {x:.2f} {y:.2f})"' if style.upright else ""
        item = (
            f'<text x="{x:.2f}" y="{base:.2f}" font-size="{size:.2f}" fill="{style.colour}" '
            f'text-anchor="{style.anchor}"{turn}>{escape(text)}</text>'
        )
        self.items.append((item, (x, y)))

    def part(self, x0: float, y0: float, x1: float, y1: float) -> str:
        """The file of what is in a rectangle."""
        inside = [line for line, (x, y) in self.items if x0 <= x <= x1 and y0 <= y <= y1]
        size = f"{x0:g} {y0:g} {x1 - x0:g} {y1 - y0:g}"
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{size}" font-family="sans-serif" '
            'stroke-linecap="round" stroke-linejoin="round">'
        )
        paper = f'<rect x="{x0:g}" y="{y0:g}" width="100%" height="100%" fill="white"/>'
        return "\n".join([head, paper, *inside, "</svg>", ""])


def _justify(item: list) -> tuple[str, ...]:
    return tuple(child(child(item, "effects"), "justify")[1:])


def _size(item: list) -> float:
    return numbers(child(child(child(item, "effects"), "font"), "size"))[0]


def _anchor(justify: tuple[str, ...], turn: float) -> str:
    anchor = "start" if "left" in justify else "end" if "right" in justify else "middle"
    if round(turn) % 360 in (180, 270):
        anchor = {"start": "end", "end": "start", "middle": "middle"}[anchor]
    return anchor


def _graphics(svg: Svg, unit: list, place) -> None:
    """Strokes and pins of a unit of a symbol; `place` brings its points to the sheet."""
    for item in unit[2:]:
        kind = item[0]
        filled = child(child(item, "fill"), "type") == ["type", "background"]
        if kind == "polyline":
            svg.line([place(numbers(p)) for p in children(child(item, "pts"), "xy")], INK, 0.25)
        elif kind == "rectangle":
            (x0, y0), (x1, y1) = numbers(child(item, "start")), numbers(child(item, "end"))
            corners = ((x0, y0), (x1, y0), (x1, y1), (x0, y1), (x0, y0))
            svg.line([place(p) for p in corners], INK, 0.25, FILL if filled else "none")
        elif kind == "circle":
            x, y = place(numbers(child(item, "center")))
            svg.circle(x, y, numbers(child(item, "radius"))[0], INK, "white")
        elif kind == "text":
            x, y = place(numbers(child(item, "at"))[:2])
            svg.text(bare(item[1]), x, y, Style(1.27, INK))


def _pins(svg: Svg, symbol: list, unit: list, place) -> None:
    named = "hide" not in child(symbol, "pin_names")
    numbered = "hide" not in child(symbol, "pin_numbers")
    for pin in children(unit, "pin"):
        x, y, angle = numbers(child(pin, "at"))
        length = numbers(child(pin, "length"))[0]
        if not length:
            continue
        step = turned((1, 0), angle)
        end = (x + step[0] * length, y - step[1] * length)
        svg.line([place((x, y)), place(end)], INK, 0.2)
        (x0, y0), (x1, y1) = place((x, y)), place(end)
        number, name = (bare(child(pin, what)[1]) for what in ("number", "name"))
        if numbered and x0 == x1:
            svg.text(number, x0 - 0.6, (y0 + y1) / 2, Style(0.9, FRAME, "end"))
        elif numbered:
            svg.text(number, (x0 + x1) / 2, y1 - 0.75, Style(0.9, FRAME))
        if named:
            left = x1 > x0
            svg.text(name, x1 + (0.6 if left else -0.6), y1, Style(1.27, INK, STARTS[left]))


def sheet(path: Path, reference: str = "") -> Svg:
    """The picture of a sheet; `reference` stands for the 0 of a cell's names."""
    root = read(path.read_text(encoding="utf-8"))
    made = Svg()
    library = {bare(s[1]): s for s in children(child(root, "lib_symbols"), "symbol")}
    for line in children(root, "polyline"):
        made.line([numbers(p) for p in children(child(line, "pts"), "xy")], FRAME, 0.2, dash="2 1")
    for wire in children(root, "wire"):
        made.line([numbers(p) for p in children(child(wire, "pts"), "xy")], WIRE, 0.2)
    for dot in children(root, "junction"):
        made.circle(*numbers(child(dot, "at")), 0.4, WIRE, WIRE)
    for cross in children(root, "no_connect"):
        x, y = numbers(child(cross, "at"))
        for d in (0.5, -0.5):
            made.line([(x - 0.5, y - d), (x + 0.5, y + d)], NAME, 0.2)
    for symbol in children(root, "symbol"):
        _symbol(made, symbol, library[bare(child(symbol, "lib_id")[1])], reference)
    for kind in ("label", "global_label", "hierarchical_label"):
        for item in children(root, kind):
            _label(made, item)
    for item in children(root, "text"):
        x, y = numbers(child(item, "at"))[:2]
        size = _size(item)
        style = Style(size, FRAME if size < 2 else INK, _anchor(_justify(item), 0), middle=False)
        made.text(bare(item[1]), x, y, style)
    for item in children(root, "sheet"):
        _box(made, item)
    return made


def _symbol(made: Svg, symbol: list, shape: list, reference: str) -> None:
    at = numbers(child(symbol, "at"))
    number = int(child(symbol, "unit")[1])

    def place(point):
        dx, dy = turned((point[0], -point[1]), at[2])
        return at[0] + dx, at[1] + dy

    name = bare(child(symbol, "lib_id")[1]).split(":")[1]
    for unit in children(shape, "symbol"):
        if bare(unit[1]) in (f"{name}_{number}_1", f"{name}_0_1"):
            _graphics(made, unit, place)
            _pins(made, shape, unit, place)
    for item in children(symbol, "property"):
        if "hide" in child(item, "effects"):
            continue
        x, y, turn = numbers(child(item, "at"))
        text = bare(item[2])
        if reference and bare(item[1]) == "Reference":
            text = text.removesuffix("0") + reference
        colour = NAME if bare(item[1]) == "Reference" else INK
        upright = round(turn + at[2]) % 180 == 90
        made.text(text, x, y, Style(1.27, colour, _anchor(_justify(item), at[2]), upright))


def _label(made: Svg, item: list) -> None:
    x, y, turn = numbers(child(item, "at"))
    text, size, upright = bare(item[1]), _size(item), round(turn) % 180 == 90
    style = Style(size, NAME, STARTS[turn in (0, 90)], upright)
    if item[0] == "label":
        aside, above = (0.3, 0.0) if upright else (0.0, 0.3)
        made.text(text, x - aside, y - above, style._replace(middle=False))
        return
    dx, dy = turned((1, 0), turn)
    made.text(text, x + dx, y + dy, style)
    long = LETTER * size * len(text) + 1.6
    flag = ((0, 0), (0.8, 1), (long, 1), (long, -1), (0.8, -1), (0, 0))
    made.line([(x + a * dx - c * dy, y + a * dy + c * dx) for a, c in flag], NAME, 0.15)


def _box(made: Svg, item: list) -> None:
    (x, y), (wide, high) = numbers(child(item, "at")), numbers(child(item, "size"))
    corners = ((x, y), (x + wide, y), (x + wide, y + high), (x, y + high), (x, y))
    made.line(list(corners), INK, 0.3, FILL)
    name = child(item, "property")
    at = numbers(child(name, "at"))
    made.text(bare(name[2]), at[0], at[1], Style(1.6, INK, "start", middle=False))
    for pin in children(item, "pin"):
        px, py, turn = numbers(child(pin, "at"))
        left = turn == 180
        made.text(bare(pin[1]), px + (1 if left else -1), py, Style(1.27, NAME, STARTS[left]))


# The board


def board(side: str) -> Figure:
    """The copper of one side, and the print of the upper one; the lower is seen from above."""
    root = read((FILES / "board.kicad_pcb").read_text(encoding="utf-8"))
    layer = f'"{side}.Cu"'
    figure = Figure(figsize=(WIDTH_mm / 16, HEIGHT_mm / 16), dpi=150)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(-1, WIDTH_mm + 1), ylim=(HEIGHT_mm + 1, -1), aspect="equal")
    axes.axis("off")
    axes.add_patch(Rectangle((0, 0), WIDTH_mm, HEIGHT_mm, fc="#f7f7f2", ec="black", lw=1))
    colour = "#b03a2e" if side == "F" else "#2e5fb0"
    for zone in children(root, "zone"):
        for filled in children(zone, "filled_polygon"):
            points = [_on_board(numbers(p)) for p in children(child(filled, "pts"), "xy")]
            if bare(child(filled, "layer")[1]) == f"{side}.Cu":
                net = bare(child(zone, "net_name")[1])
                alpha = 0.5 if net in SOLID else 0.18
                axes.add_patch(Polygon(points, fc=colour, ec="none", alpha=alpha))
    tracks = [t for t in children(root, "segment") if child(t, "layer")[1] == layer]
    ends = [[_on_board(numbers(child(t, end))) for end in ("start", "end")] for t in tracks]
    point = 72 * figure.get_figwidth() / (WIDTH_mm + 2)
    widths = [numbers(child(t, "width"))[0] * point for t in tracks]
    axes.add_collection(LineCollection(ends, linewidths=widths, colors=colour, capstyle="round"))
    for via in children(root, "via"):
        at = _on_board(numbers(child(via, "at")))
        axes.add_patch(Circle(at, 0.3, fc="#555555", ec="none"))
    for footprint in children(root, "footprint"):
        _footprint(axes, footprint, side, point)
    if side == "F":
        for text in children(root, "gr_text"):
            x, y, *turn = numbers(child(text, "at"))
            axes.text(
                *_on_board((x, y)), bare(text[1]), ha="center", va="center",
                fontsize=0.85 * point * _size(text), rotation=turn[0] if turn else 0,
            )  # fmt: skip
    return figure


def _on_board(point: list[float] | tuple[float, float]) -> tuple[float, float]:
    return point[0] - PAGE_mm[0], point[1] - PAGE_mm[1]


def _footprint(axes: Axes, item: list, side: str, point: float) -> None:
    """Pads and, above, the printed lines of a footprint."""
    x, y, *turn = numbers(child(item, "at"))
    angle = turn[0] if turn else 0.0

    def place(local):
        dx, dy = turned((local[0], local[1]), angle)
        return _on_board((x + dx, y + dy))

    for pad in children(item, "pad"):
        layers = " ".join(child(pad, "layers"))
        if "*.Cu" not in layers and f"{side}.Cu" not in layers:
            continue
        at = numbers(child(pad, "at"))
        wide, high = numbers(child(pad, "size"))
        if round(at[2] if len(at) > 2 else 0) % 180:
            wide, high = high, wide
        a, c = place(at)
        square = Rectangle((a - wide / 2, c - high / 2), wide, high, fc="#d9a400", ec="none")
        axes.add_patch(Circle((a, c), wide / 2, fc="#d9a400") if pad[3] == "circle" else square)
        if child(pad, "drill"):
            drill = min(numbers(child(pad, "drill")) or [1.0])
            axes.add_patch(Circle((a, c), drill / 2, fc="white", ec="none"))
    lines = [
        [place(numbers(child(line, end))) for end in ("start", "end")]
        for line in children(item, "fp_line")
        if child(line, "layer")[1] == f'"{side}.SilkS"'
    ]
    axes.add_collection(LineCollection(lines, linewidths=0.12 * point, colors="#333333"))


def sheets() -> None:
    """Write the pictures of the sheets: both, and of the board's the part that cuts the supply."""
    board, cell = sheet(FILES / "board.kicad_sch"), sheet(FILES / "cell.kicad_sch", "n")
    cut = [block for block in BLOCKS if block.x < CUT_RIGHT]
    for name, made, blocks in (
        ("sheet", board, BLOCKS),
        ("cut", board, cut),
        ("cell", cell, [CELL]),
    ):
        x0 = min(block.x for block in blocks) - 1
        y0 = min(block.y for block in blocks) - 1
        x1 = max(block.x + block.wide for block in blocks) + 1
        y1 = max(block.y + block.high for block in blocks) + 1
        part = made.part(*(GRID_mm * edge for edge in (x0, y0, x1, y1)))
        (IMAGES / f"board-{name}.svg").write_text(part, encoding="utf-8")


def main() -> None:
    """Write the pictures."""
    sheets()
    for name, side in (("top", "F"), ("bottom", "B")):
        board(side).savefig(IMAGES / f"board-{name}.png", metadata={"Software": None})


if __name__ == "__main__":
    main()
