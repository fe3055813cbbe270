"""Places and routes the board of `circuit.py` on two layers; footprints are KiCad's own."""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import circuit
import numpy as np
from lands import Land, lands
from router import (
    NOBODY,
    Box,
    CLEARANCE_mm,
    Grid,
    Job,
    TRACK_mm,
    VIA_DRILL_mm,
    VIA_mm,
    route,
    segments,
)  # fmt: skip
from scipy.ndimage import binary_erosion, binary_opening, label
from sexp import child, read, turned

HERE = Path(__file__).parent
FILES = HERE / "kicad"
LIBRARIES = Path("/usr/share/kicad/footprints")
WIDTH_mm, HEIGHT_mm = 200.0, 137.0
PAGE_mm = (100.0, 60.0)  # of the board's corner on the sheet
EDGE_mm = 0.5
COLUMN_mm, FIRST_mm = 14.0, 31.0  # of the cells: from one to the next, and the first
PLUGS_mm = HEIGHT_mm - 10.4  # pads of the cells' plugs; their faces end at the board's edge
ISOLATION_mm = 6.0
STITCH_mm = 5.0
SUPPLY_mm, SUPPLY_A = 3.5, 5.0  # width of a track that carries the current of all cells: the fuse
CELL_mm, CELL_A = 1.2, 1.9  # of one cell: the highest current_max_mA
SOLID = ("RAIL", "RETURN")  # zones that join pads without thermal spokes

Point = tuple[float, float]

# Parts of one cell: place from the middle between its plug's pads, and turn in degrees.
CELL = {
    "J_CELL": (-2.54, 0, 0),
    "D_FREE": (-4.5, -6.5, 90),
    "Q": (2.0, -6.0, 270),
    "R_S": (0.6, -12.0, 90),
    "U_I": (-3.3, -12.1, 90),
    "C_VS": (-6.0, -12.0, 270),
    "R_PD": (3.7, -11.0, 90),
    "R_G": (5.8, -8.8, 270),
    "T": (-2.5, -24.0, 0),
    "J_ROOM": (-5.0, -29.4, 90),
    "R_F": (3.6, -28.4, 0),
    "C_F": (3.6, -30.6, 0),
    "R_T": (-4.6, -32.4, 0),
    "C_T": (-4.6, -34.6, 0),
    "D_OR": (3.6, -33.0, 0),
    "R_MISSING": (3.6, -35.4, 0),
}
# Wide copper of one cell: net (or TRACK for a thin one that measures), width, points.
CELL_TRACKS = (
    ("DRAIN", CELL_mm, ((2.54, 0), (2.54, -3.0), (2.0, -5.06))),
    ("DRAIN", CELL_mm, ((2.0, -5.06), (-1.6, -5.06), (-1.9, -5.4), (-1.9, -8.5), (-4.5, -8.5))),
    ("SOURCE", CELL_mm, ((1.05, -6.94), (1.05, -9.04))),
    ("RAIL", 1.6, ((-4.5, -4.5), (-4.5, -2.0), (-2.54, 0))),
    ("SOURCE", TRACK_mm, ((-2.35, -10.96), (-0.6, -10.96), (-0.6, -9.3))),
    ("RETURN", TRACK_mm, ((-2.35, -13.24), (-0.6, -13.24), (-0.6, -14.7))),
)
PLACES = {
    # supply, in the order of its current along the left edge
    "J_SUPPLY": (11.5, 119.0, 270), "F_SUPPLY": (17.5, 113.0, 90), "K2": (6.5, 14.0, 270),
    "K1": (6.5, 66.0, 270), "D_CLAMP": (22.0, 80.0, 270), "R_LEAK": (20.0, 124.0, 180),
    "U_LEAK": (20.0, 128.6, 180), "C_LEAK": (15.4, 130.6, 0),
    "R_FED_TOP": (29.0, 71.0, 0), "R_FED_BOTTOM": (29.0, 74.5, 0),
    "C_FED": (29.0, 78.0, 0), "R_SUPPLY_TOP": (46.0, 74.5, 0), "R_SUPPLY_BOTTOM": (46.0, 78.0, 0),
    "C_SUPPLY": (46.0, 81.5, 0),
    # master cut
    "ESTOP": (46.0, 6.5, 180), "START": (60.0, 6.5, 180), "C_START": (36.0, 25.0, 0),
    "R_START": (54.0, 16.0, 0), "R_LOOP": (47.0, 16.0, 0), "R_ESTOP": (47.0, 19.0, 0),
    "D_K1": (26.5, 40.0, 270), "Q_PUMP": (31.5, 40.0, 0), "D_K2": (26.5, 60.0, 270),
    "Q_LEAK": (31.5, 60.0, 0),
    "U_PUMP": (62.0, 40.0, 180), "C_GATE": (62.0, 36.0, 0), "R_REST": (67.0, 38.0, 90),
    "R_PERMIT": (67.0, 42.4, 90), "R_PUMP": (57.0, 40.0, 0),
    "C_PUMP": (52.0, 40.0, 180), "D_PUMP1": (48.0, 43.0, 270), "D_PUMP2": (44.5, 40.0, 180),
    "C_HOLD": (40.0, 41.0, 270), "R_HOLD": (37.0, 41.0, 270),
    "U_CMP": (50.0, 60.0, 180), "C_CMP": (44.0, 63.0, 90), "R_LEAK_TOP": (57.0, 56.0, 0),
    "R_LEAK_BOTTOM": (57.0, 58.6, 0), "R_DELAY": (42.0, 56.0, 0), "C_DELAY": (42.0, 58.6, 0),
    "Q_ANY": (57.5, 63.5, 0), "R_ANY": (57.0, 67.5, 0), "R_LEAK_GATE": (37.0, 63.0, 90),
    # logic supply
    "J_AUX": (75.0, 14.5, 180), "C_AUX": (84.5, 12.0, 90), "U_5V": (90.0, 8.0, 90),
    "C_5V": (94.5, 8.0, 90),
    # chip
    "U_CHIP": (105.0, 40.0, 0), "C_VCC0": (96.4, 39.4, 90), "C_VCC1": (96.4, 35.4, 90),
    "Y_CHIP": (91.0, 46.0, 90), "C_X1": (96.4, 44.5, 90), "C_X2": (96.4, 48.5, 90),
    "L_AVCC": (119.5, 43.0, 0), "C_AVCC": (114.5, 42.0, 270), "C_AREF": (114.5, 37.8, 90),
    "R_RESET": (107.0, 30.0, 90), "C_DTR": (111.0, 28.0, 0), "J_FLASH": (117.5, 27.0, 90),
    "J_ISP": (121.0, 34.0, 0),
    # multiplexers and references
    "U_CURRENTS": (82.0, 66.0, 90), "U_TEMPERATURES": (132.0, 66.0, 90),
    "C_VCC2": (71.0, 66.0, 90), "C_VCC3": (143.0, 66.0, 90),
    "R_REF": (101.0, 60.0, 0), "U_REF": (107.0, 60.5, 0), "R_HALF_TOP": (101.0, 63.5, 0),
    "R_HALF_BOTTOM": (101.0, 66.0, 0), "C_HALF": (107.0, 66.0, 0), "R_ROOM_TOP": (101.0, 69.5, 0),
    "R_ROOM_BOTTOM": (101.0, 72.0, 0), "C_ROOM": (107.0, 72.0, 0),
    # computer's side
    "J_USB": (184.7, 30.0, 0), "U_USB": (170.0, 26.0, 180), "C_3V3": (170.0, 34.0, 0),
    "C_USB": (177.5, 38.0, 90), "U_ISO": (150.0, 26.0, 180), "C_ISO1": (158.5, 21.0, 90),
    "C_ISO2": (141.4, 21.0, 90),
}  # fmt: skip
for _n in range(circuit.CELLS):
    for _name, (_x, _y, _turn) in CELL.items():
        PLACES[f"{_name}{_n}"] = (FIRST_mm + _n * COLUMN_mm + _x, PLUGS_mm + _y, _turn)

HOLES = ((4.5, 4.5), (195.5, 4.5), (4.5, 132.5), (195.5, 132.5))
# Net, layer, width, points of the wide tracks outside the cells.
TRACKS = [
    ("SUPPLY_IN", 0, SUPPLY_mm, ((11.5, 119.0), (17.5, 113.0))),
    ("FUSED", 0, SUPPLY_mm, ((17.5, 103.8), (17.5, 14.0), (6.5, 14.0))),
    ("FEED", 0, SUPPLY_mm, ((6.5, 19.08), (13.0, 19.08), (13.0, 66.0), (6.5, 66.0))),
    ("RAIL", 1, SUPPLY_mm, ((6.5, 71.08), (22.5, 71.08), (22.5, 122.0))),
    ("GND", 0, SUPPLY_mm, ((11.5, 124.08), (17.04, 124.0))),
    ("RAIL", 0, CELL_mm, ((22.0, 77.85), (22.0, 74.2))),
    ("RETURN", 0, TRACK_mm, ((21.14, 127.65), (22.6, 126.2), (22.6, 125.2))),
    ("GND", 0, TRACK_mm, ((18.86, 127.65), (17.4, 126.2), (17.4, 125.2))),
]
VIAS = [("RAIL", (x, y)) for x in (21.2, 22.8) for y in (74.2, 75.4)]
LEFT, RIGHT = FIRST_mm - COLUMN_mm / 2, FIRST_mm + (circuit.CELLS - 0.5) * COLUMN_mm
STRIP = (PLUGS_mm - 18.5, PLUGS_mm - 14.3)  # of RETURN, above the shunts
# Net, layer, priority, outline.
ZONES = [
    ("RAIL", 1, 1, ((20.75, PLUGS_mm - 7), (RIGHT, PLUGS_mm - 7), (RIGHT, PLUGS_mm + 4),
                    (20.75, PLUGS_mm + 4))),
    ("RETURN", 0, 1, ((20.7, STRIP[0]), (RIGHT, STRIP[0]), (RIGHT, STRIP[1]), (24.4, STRIP[1]),
                      (24.4, 126.0), (20.7, 126.0))),
]  # fmt: skip
# Tracks around the chip cut the ground planes: its pins have tracks of their own to capacitors.
CHIP_GROUND = ("U_CHIP", "C_VCC0", "C_VCC1", "C_AVCC", "C_AREF")
BARRIER = (147.0, 153.2, 48.0, 54.2)  # left and right of it; its lower edge inside and outside
E = EDGE_mm
MAIN = ((E, E), (BARRIER[0], E), (BARRIER[0], BARRIER[3]), (WIDTH_mm - E, BARRIER[3]),
        (WIDTH_mm - E, HEIGHT_mm - E), (E, HEIGHT_mm - E))  # fmt: skip
COMPUTER = ((BARRIER[1], E), (WIDTH_mm - E, E), (WIDTH_mm - E, BARRIER[2]),
            (BARRIER[1], BARRIER[2]))  # fmt: skip
ZONES += [("GND", layer, 0, MAIN) for layer in (0, 1)]
ZONES += [("USB_GND", layer, 0, COMPUTER) for layer in (0, 1)]
LAYERS = ("F.Cu", "B.Cu")


def least_width_mm(current_A: float, rise_K: float = 10.0, copper_mm: float = 0.035) -> float:
    """Width of an outer track that a current warms by so much. Source: IPC-2221 (1998), 6.2."""
    square_mils = (current_A / (0.048 * rise_K**0.44)) ** (1 / 0.725)
    return square_mils * 0.0254**2 / copper_mm


@dataclass
class Placed:
    """A device at its place: its footprint and the boxes of its pads and holes."""

    land: Land
    x: float
    y: float
    turn: float
    shape: list
    pads: list[tuple[str, Box]] = field(default_factory=list)
    smd: list[Box] = field(default_factory=list)


def place(land: Land, at: tuple[float, float, float], nets: dict[str, int]) -> Placed:
    """Read a footprint and compute where its pads are."""
    library, name = land.footprint.split(":")
    shape = read((LIBRARIES / f"{library}.pretty" / f"{name}.kicad_mod").read_text("utf-8"))
    made = Placed(land, *at, shape)
    for pad in (part for part in shape if part[0] == "pad"):
        local = [float(v) for v in child(pad, "at")[1:]]
        wide, high = (float(v) for v in child(pad, "size")[1:])
        if round(made.turn + (local[2] if len(local) > 2 else 0)) % 180:
            wide, high = high, wide
        dx, dy = turned((local[0], local[1]), made.turn)
        x, y = made.x + dx, made.y + dy
        number = pad[1].strip('"')
        net = nets.get(land.nets.get(number, ""), NOBODY)
        layer = 0 if pad[2] == "smd" else 2
        box = Box(net, layer, x - wide / 2, y - high / 2, x + wide / 2, y + high / 2)
        box.drill = pad[2] == "np_thru_hole"
        if pad[3] in ("circle", "oval"):
            box.round = min(wide, high) / 2 * (1 - math.sqrt(0.5))
        made.pads.append((number, box))
    return made


def strokes(net: int, layer: int, width: float, points: tuple[Point, ...]) -> Iterator[Box]:
    """Boxes that cover a track of any direction."""
    for (x0, y0), (x1, y1) in itertools.pairwise(points):
        steps = 1 if x0 == x1 or y0 == y1 else math.ceil(math.hypot(x1 - x0, y1 - y0) / 0.2)
        for k in range(steps):
            a, c = k / steps, (k + 1) / steps
            xs = sorted((x0 + a * (x1 - x0), x0 + c * (x1 - x0)))
            ys = sorted((y0 + a * (y1 - y0), y0 + c * (y1 - y0)))
            yield Box(net, layer, xs[0] - width / 2, ys[0] - width / 2, xs[1] + width / 2,
                      ys[1] + width / 2)  # fmt: skip


@dataclass
class Board:
    """The board with its copper: tracks (net, layer, width, from, to), vias (net, place)."""

    nets: dict[str, int]
    placed: dict[str, Placed]
    tracks: list[tuple[int, int, float, Point, Point]] = field(default_factory=list)
    vias: list[tuple[int, Point, float, float]] = field(default_factory=list)


def _fixed(board: Board) -> None:
    """The wide copper, and the tracks to amplifiers from their shunts."""
    for name, layer, width, points in TRACKS:
        for a, c in itertools.pairwise(points):
            board.tracks.append((board.nets[name], layer, width, a, c))
    for n in range(circuit.CELLS):
        x, y = FIRST_mm + n * COLUMN_mm, PLUGS_mm
        for name, width, points in CELL_TRACKS:
            net = board.nets.get(f"{name}{n}") or board.nets[name]
            for a, c in itertools.pairwise(points):
                ends = (x + a[0], y + a[1]), (x + c[0], y + c[1])
                board.tracks.append((net, 0, width, *ends))
    for name, at in VIAS:
        board.vias.append((board.nets[name], at, 0.8, 0.4))


def _grid(board: Board) -> Grid:
    """What pads, fixed copper, zones, barrier and edges leave to the tracks."""
    grid = Grid(WIDTH_mm, HEIGHT_mm)
    edges = ((-1, -1, WIDTH_mm + 1, 0), (-1, HEIGHT_mm, WIDTH_mm + 1, HEIGHT_mm + 1),
             (-1, -1, 0, HEIGHT_mm + 1), (WIDTH_mm, -1, WIDTH_mm + 1, HEIGHT_mm + 1))  # fmt: skip
    for edge in edges:
        grid.block(Box(NOBODY, 2, *edge), EDGE_mm)
    for x, y in HOLES:
        grid.block(Box(NOBODY, 2, x - 3.2, y - 3.2, x + 3.2, y + 3.2))
    left, right, inside, outside = BARRIER
    gap = (Box(NOBODY, 2, left, 0, right, outside), Box(NOBODY, 2, left, inside, WIDTH_mm, outside))
    pads = [box for one in board.placed.values() for _, box in one.pads]
    for box in gap:
        grid.block(box, -TRACK_mm / 2)
    for box in pads:
        grid.block(box)
    for net, layer, width, a, c in board.tracks:
        for box in strokes(net, layer, width, (a, c)):
            grid.block(box)
    for net, (x, y), size, _ in board.vias:
        grid.block(Box(net, 2, x - size / 2, y - size / 2, x + size / 2, y + size / 2))
        grid.no_via(Box(net, 2, x, y, x, y), (size + VIA_mm) / 2 + CLEARANCE_mm)
    for name, layer, priority, outline in ZONES:
        if priority:
            for box in _inside(board.nets[name], layer, outline):
                grid.block(box)
    for box in pads:
        grid.no_via(box, VIA_mm / 2 + (0.25 if box.layer == 2 else 0.05))
    return grid


def _inside(net: int, layer: int, outline: tuple[Point, ...]) -> Iterator[Box]:
    """Boxes that fill an outline of right angles."""
    ys = sorted({y for _, y in outline})
    for y0, y1 in itertools.pairwise(ys):
        middle = (y0 + y1) / 2
        ends = zip(outline, (*outline[1:], outline[0]), strict=True)
        xs = sorted(a[0] for a, c in ends if min(a[1], c[1]) < middle < max(a[1], c[1]))
        for x0, x1 in zip(xs[::2], xs[1::2], strict=True):
            yield Box(net, layer, x0, y0, x1, y1)


def _jobs(board: Board) -> list[Job]:
    """Every connection: trees of signals, and a via to the ground plane from every pad of it."""
    ends: dict[int, list[Box]] = {}
    for one in board.placed.values():
        for _, box in one.pads:
            if box.net > 0:
                ends.setdefault(box.net, []).append(box)
    jobs = []
    planes = {board.nets["GND"], board.nets["USB_GND"]}
    fixed = {net for net, *_ in board.tracks}
    for net, boxes in sorted(ends.items()):
        if net in planes:
            jobs += [Job(net, [box]) for box in boxes if box.layer == 0]
        elif net not in fixed:
            jobs.append(Job(net, boxes))
    by_name = board.nets
    for name, ref in (("RAIL", "R_SUPPLY_TOP"), ("FEED", "R_FED_TOP")):
        tap = next(box for _, box in board.placed[ref].pads if box.net == by_name[name])
        start = next(track for track in board.tracks if track[0] == by_name[name])
        boxes = strokes(start[0], start[1], start[2], (start[3], start[4]))
        jobs.append(Job(by_name[name], [next(boxes), tap]))
    around = [box for ref in CHIP_GROUND for _, box in board.placed[ref].pads]
    jobs.append(Job(by_name["GND"], [box for box in around if box.net == by_name["GND"]]))
    return sorted(jobs, key=_length)


def _length(job: Job) -> float:
    xs = [v for box in job.ends for v in (box.x0, box.x1)]
    ys = [v for box in job.ends for v in (box.y0, box.y1)]
    return max(xs) - min(xs) + max(ys) - min(ys)


def _stitch(board: Board, grid: Grid, jobs: list[Job]) -> None:
    """Vias between the ground planes of both layers: to every area, and one within STITCH_mm.

    A plane is where a track of ground may be, and its neighbours: KiCad fills nothing that is as
    narrow as the least width of a zone, a track's.
    """
    for name, outline in (("GND", MAIN), ("USB_GND", COMPUTER)):
        net = board.nets[name]
        for path in (path for job in jobs if job.net == net for path in job.path):
            grid.stamp(path, -1)
        inside = np.zeros(grid.shape[1:], bool)
        for box in _inside(net, 2, outline):
            inside[grid.rows(box.y0, box.y1), grid.rows(box.x0, box.x1)] = True
        free = ((grid.track == 0) | (grid.track == net)) & (grid.tracks == 0)
        planes = free & binary_erosion(inside)
        square = np.ones((3, 3))
        areas = np.stack([label(binary_opening(plane, square), square)[0] for plane in planes])
        areas[1][areas[1] > 0] += areas[0].max()
        there = [at for of, at, *_ in board.vias if of == net]
        joined = [{*areas[:, row, column]} - {0} for row, column in map(grid.node, there)]
        nodes = np.argwhere((grid.via == 0) & (grid.vias == 0) & areas.all(axis=0))
        pairs = areas[:, nodes[:, 0], nodes[:, 1]].T
        _, first = np.unique(pairs, axis=0, return_index=True)
        reached = {int(np.bincount(areas[0][areas[0] > 0]).argmax())}
        grown = True
        while grown:
            before = len(reached)
            for pair in joined:
                reached |= pair if pair & reached else set()
            for k in sorted(first):
                if len(reached & {*pairs[k]}) == 1:
                    reached |= {*pairs[k]}
                    there.append(grid.place(nodes[k]))
            grown = len(reached) > before
        for node, pair in zip(nodes, pairs, strict=True):
            at = grid.place(node)
            if {*pair} <= reached and min(math.dist(at, its) for its in there) > STITCH_mm:
                there.append(at)
        board.vias += [(net, at, VIA_mm, VIA_DRILL_mm) for at in there[len(joined) :]]


def build() -> Board:
    """Place, route and stitch the board."""
    for width_mm, current_A in ((SUPPLY_mm, SUPPLY_A), (CELL_mm, CELL_A)):
        if width_mm < least_width_mm(current_A):
            raise ValueError(f"{width_mm} mm do not carry {current_A} A")
    netlist = circuit.board().netlist()
    devices = lands(netlist)
    if missing := sorted(set(devices) ^ set(PLACES)):
        raise ValueError(f"place in layout.py and part in circuit.py differ: {', '.join(missing)}")
    nets = {name: i for i, name in enumerate(sorted(netlist.nets()), 1)}
    board = Board(nets, {ref: place(devices[ref], PLACES[ref], nets) for ref in sorted(devices)})
    _fixed(board)
    grid = _grid(board)
    jobs = _jobs(board)
    route(grid, jobs)
    for job in jobs:
        tracks, vias = segments(job.path)
        board.tracks += [(job.net, layer, TRACK_mm, a, c) for layer, a, c in tracks]
        board.vias += [(job.net, at, VIA_mm, VIA_DRILL_mm) for at in sorted(set(vias))]
    _stitch(board, grid, jobs)
    return board
