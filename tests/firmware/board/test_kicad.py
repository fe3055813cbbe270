"""The sheets and the layout in firmware/board/kicad, read by another reader.

simp_sexp parses the files. Nets of the sheets follow from coordinates as KiCad 6 defines them;
copper is drawn on a grid of 0.1 mm.
"""

import itertools
import os
import re
import shutil
import subprocess
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from math import cos, hypot, radians, sin

import numpy as np
import pytest
from matplotlib.path import Path as Outline
from scipy import ndimage
from simp_sexp import Sexp

from lazily import Lazily

pytestmark = pytest.mark.xdist_group("circuit")  # SKiDL takes 3 s to load, 10 s in a worker

circuit, lands, sheet_file, layout, picture = (
    Lazily(name) for name in ("circuit", "lands", "sheet_file", "layout", "picture")
)
KICAD = "/usr/bin/python3"  # has KiCad's module where KiCad is installed by the system
GRID_mm = 0.1
FUSE_A, CELL_A = 5.0, 1.9  # the largest fuse of the board; the highest current_max_mA


@pytest.fixture(scope="module")
def netlist():
    with ThreadPoolExecutor(1) as short_stack:
        return short_stack.submit(lambda: circuit.board().netlist()).result()


@pytest.fixture(scope="module")
def devices(netlist):
    return lands.lands(netlist)


def parts(item, *names):
    return [part for part in item if isinstance(part, list) and part and part[0] in names]


def one(item, name):
    (found,) = parts(item, name)
    return found


def load(name):
    return Sexp((layout.FILES / name).read_text(encoding="utf-8"))


def turned(x, y, degrees):
    """Counter-clockwise on a screen whose y points down."""
    c, s = cos(radians(degrees)), sin(radians(degrees))
    return x * c + y * s, y * c - x * s


# Nets of the sheets


class Wires:
    """Joins names and points of one sheet."""

    def __init__(self):
        self.root = {}

    def find(self, key):
        self.root.setdefault(key, key)
        while self.root[key] != key:
            key = self.root[key]
        return key

    def join(self, a, c):
        self.root[self.find(a)] = self.find(c)


def point(x, y):
    return round(100 * x), round(100 * y)


def read_sheet(root, place, path, references, wires):
    """Add a sheet to the wires; `place` is its name, `path` how the references name it."""
    shapes = {shape[1]: shape for shape in parts(one(root, "lib_symbols"), "symbol")}
    for wire in parts(root, "wire"):
        a, c = (point(*end[1:3]) for end in parts(one(wire, "pts"), "xy"))
        wires.join((place, a), (place, c))
    for label in parts(root, "label"):
        wires.join((place, point(*one(label, "at")[1:3])), (place, str(label[1])))
    for label in parts(root, "global_label"):
        wires.join((place, point(*one(label, "at")[1:3])), ("everywhere", str(label[1])))
    for label in parts(root, "hierarchical_label"):
        wires.join((place, point(*one(label, "at")[1:3])), (place, "pin", str(label[1])))
    found = []
    for symbol in parts(root, "symbol"):
        x, y, turn = one(symbol, "at")[1:4]
        shape, number = shapes[one(symbol, "lib_id")[1]], one(symbol, "unit")[1]
        name = shape[1].split(":")[1]
        units = [u for u in parts(shape, "symbol") if u[1] in (f"{name}_{number}_1", f"{name}_0_1")]
        for pin in (pin for unit in units for pin in parts(unit, "pin")):
            dx, dy = turned(one(pin, "at")[1], -one(pin, "at")[2], turn)
            at = (place, point(x + dx, y + dy))
            if parts(shape, "power"):
                wires.join(at, ("everywhere", parts(symbol, "property")[1][2]))
            else:
                reference = references[f"{path}/{one(symbol, 'uuid')[1]}"]
                found.append((reference, str(one(pin, "number")[1]), wires.find(at)))
    return found


def nets_of_the_sheets(board, cell):
    """Pins (reference, number) of every net, as sets."""
    references = {
        str(item[1]): str(one(item, "reference")[1])
        for item in parts(one(board, "symbol_instances"), "path")
    }
    wires = Wires()
    pins = read_sheet(board, "board", "", references, wires)
    for box in parts(board, "sheet"):
        name = one(box, "uuid")[1]
        assert parts(box, "property")[1][2] == "cell.kicad_sch"
        pins += read_sheet(cell, name, f"/{name}", references, wires)
        for pin in parts(box, "pin"):
            wires.join(("board", point(*one(pin, "at")[1:3])), (name, "pin", str(pin[1])))
    found = defaultdict(set)
    for reference, number, key in pins:
        found[wires.find(key)].add((reference, number))
    return {frozenset(net) for net in found.values() if len(net) > 1}


def nets_of_the_circuit(devices):
    found = defaultdict(set)
    for device in devices.values():
        for number, net in device.nets.items():
            found[net].add((device.ref, number))
    return {frozenset(net) for net in found.values()}


def test_every_pin_of_the_circuit_is_a_pad_of_one_device(netlist, devices):
    """POLES says which pads of a relay's terminals are a contact; all else is pin by pin."""
    placed = [unit for device in devices.values() for unit in device.units]
    assert sorted(placed) == sorted(netlist.parts)
    for part in netlist.parts.values():
        (device,) = (d for d in devices.values() if part.ref in d.units)
        if device.ref == part.ref:
            wanted = {n: part.pins[name] for n, name in part.names.items() if name in part.pins}
            assert device.nets == wanted
        else:
            pads = {pad for pad, net in device.nets.items() if net in part.pins.values()}
            assert len(pads) >= 2
    assert sum(len(d.nets) for d in devices.values()) == sum(
        len([name for name in part.names.values() if name in part.pins])
        for part in netlist.parts.values()
    )


def test_the_nets_of_the_sheets_are_those_of_the_circuit(devices):
    found = nets_of_the_sheets(load("board.kicad_sch"), load("cell.kicad_sch"))
    assert found == nets_of_the_circuit(devices)


def test_values_and_footprints_of_the_sheets_are_those_of_the_circuit(netlist, devices):
    for item in parts(one(load("board.kicad_sch"), "symbol_instances"), "path"):
        reference = str(one(item, "reference")[1])
        if not reference.startswith("#"):
            device = devices[reference]
            part = netlist.parts[device.units[0]]
            wanted = reference if reference in lands.POLES else lands.label(part) or reference
            assert str(one(item, "value")[1]) == wanted
            assert one(item, "footprint")[1] == device.footprint


@pytest.mark.parametrize("damage", ["a label of another name", "a wire less", "a wire more"])
def test_a_sheet_that_differs_from_the_circuit_is_found(damage, devices):
    board = load("board.kicad_sch")
    if damage == "a label of another name":
        next(item for item in parts(board, "label") if item[1] == "FED")[1] = "SUPPLY"
    elif damage == "a wire less":
        board.remove(parts(board, "wire")[3])
    else:
        first, second = (
            next(item for item in parts(board, "label") if item[1] == name)
            for name in ("SEL0", "SEL1")
        )
        ends = [["xy", *one(label, "at")[1:3]] for label in (first, second)]
        board.append(["wire", ["pts", *ends]])
    found = nets_of_the_sheets(board, load("cell.kicad_sch"))
    assert found != nets_of_the_circuit(devices)


def test_the_sheets_and_their_pictures_are_made_from_this_circuit(tmp_path, monkeypatch, netlist):
    for name, text in sheet_file.files(netlist).items():
        same = (layout.FILES / name).read_text(encoding="utf-8") == text
        assert same, "run: python firmware/board/sheet_file.py"
    committed = picture.IMAGES
    monkeypatch.setattr("picture.IMAGES", tmp_path)
    picture.sheets()
    for name in ("board-sheet.svg", "board-cut.svg", "board-cell.svg"):
        same = (tmp_path / name).read_bytes() == (committed / name).read_bytes()
        assert same, "run: python firmware/board/picture.py"


def _cover(a, c):
    return a[0] < c[2] and c[0] < a[2] and a[1] < c[3] and c[1] < a[3]


@pytest.mark.parametrize("name", ["board", "cell"])
def test_no_text_of_a_sheet_covers_another_or_a_wire(name):
    drawn = picture.sheet(layout.FILES / f"{name}.kicad_sch")
    assert len(drawn.texts) > 40
    for (text, *box), (other, *its) in itertools.combinations(drawn.texts, 2):
        assert not _cover(box, its), f"'{text}' covers '{other}'"
    for wire in parts(load(f"{name}.kicad_sch"), "wire"):
        xs, ys = zip(*(end[1:3] for end in parts(one(wire, "pts"), "xy")), strict=True)
        for text, *box in drawn.texts:
            assert not _cover(box, (min(xs), min(ys), max(xs), max(ys))), f"a wire crosses '{text}'"


# The board


@pytest.fixture(scope="module")
def board():
    return load("board.kicad_pcb")


def test_every_pad_of_the_board_has_the_net_of_the_circuit(board, devices):
    seen = {}
    for footprint in parts(board, "footprint"):
        (reference,) = (t[2] for t in parts(footprint, "fp_text") if t[1] == "reference")
        pads = {
            str(pad[1]): one(pad, "net")[2] for pad in parts(footprint, "pad") if parts(pad, "net")
        }
        if str(reference)[0] != "H":
            seen[reference] = (footprint[1], pads)
    wanted = {ref: (device.footprint, device.nets) for ref, device in devices.items()}
    assert seen == wanted, "run: python firmware/board/board_file.py, then kicad.py fill"


class Copper:
    """The copper of chosen nets on a grid, layer by layer."""

    def __init__(self, board):
        self.board = board
        self.pads, self.rounds, self.segments, self.fills = [], [], [], []
        for footprint in parts(board, "footprint"):
            x, y, *turn = one(footprint, "at")[1:]
            (reference,) = (t[2] for t in parts(footprint, "fp_text") if t[1] == "reference")
            for pad in parts(footprint, "pad"):
                dx, dy = turned(*one(pad, "at")[1:3], turn[0] if turn else 0)
                size = one(pad, "size")[1:3]
                angle = one(pad, "at")[3] if len(one(pad, "at")) > 3 else 0
                wide, high = size if round(angle) % 180 == 0 else size[::-1]
                net = one(pad, "net")[2] if parts(pad, "net") else ""
                names = one(pad, "layers")[1:]
                layers = [n for n in ("F.Cu", "B.Cu") if n in names or "*.Cu" in names]
                if pad[2] != "np_thru_hole":
                    self.pads.append(
                        ((reference, str(pad[1])), net, layers, (x + dx, y + dy, wide, high))
                    )
        names = {item[1]: item[2] for item in parts(board, "net")}
        for item in parts(board, "segment"):
            ends = *one(item, "start")[1:3], *one(item, "end")[1:3]
            self.segments.append(
                (names[one(item, "net")[1]], one(item, "layer")[1], one(item, "width")[1], ends)
            )
        for item in parts(board, "via"):
            self.rounds.append(
                (names[one(item, "net")[1]], one(item, "at")[1:3], one(item, "size")[1])
            )
        for zone in parts(board, "zone"):
            for filled in parts(zone, "filled_polygon"):
                points = [p[1:3] for p in parts(one(filled, "pts"), "xy")]
                self.fills.append((one(zone, "net_name")[1], one(filled, "layer")[1], points))
        x0, y0 = layout.PAGE_mm
        self.x = x0 + GRID_mm * np.arange(round(layout.WIDTH_mm / GRID_mm) + 1)
        self.y = y0 + GRID_mm * np.arange(round(layout.HEIGHT_mm / GRID_mm) + 1)

    def _window(self, x0, y0, x1, y1):
        rows = slice(*np.searchsorted(self.y, (y0 - GRID_mm, y1 + GRID_mm)))
        columns = slice(*np.searchsorted(self.x, (x0 - GRID_mm, x1 + GRID_mm)))
        return rows, columns, self.x[columns][None, :], self.y[rows][:, None]

    def _box(self, mask, x, y, wide, high):
        rows, columns, a, c = self._window(x - wide / 2, y - high / 2, x + wide / 2, y + high / 2)
        mask[rows, columns] |= (abs(a - x) <= wide / 2 + 1e-9) & (abs(c - y) <= high / 2 + 1e-9)

    def _line(self, mask, width, x0, y0, x1, y1):
        r = width / 2
        rows, columns, a, c = self._window(
            min(x0, x1) - r, min(y0, y1) - r, max(x0, x1) + r, max(y0, y1) + r
        )
        length = hypot(x1 - x0, y1 - y0) or 1.0
        along = ((a - x0) * (x1 - x0) + (c - y0) * (y1 - y0)) / length**2
        along = np.clip(along, 0, 1)
        mask[rows, columns] |= (
            np.hypot(a - x0 - along * (x1 - x0), c - y0 - along * (y1 - y0)) <= r + 1e-9
        )

    def _fill(self, mask, points):
        """The inside of a polygon: an edge toggles all that lies right of it, row by row."""
        toggle = np.zeros(mask.shape, bool)
        for (x0, y0), (x1, y1) in zip(points, points[1:] + points[:1], strict=True):
            (x0, y0), (x1, y1) = sorted(((x0, y0), (x1, y1)), key=lambda end: end[1])
            first, last = np.searchsorted(self.y, (y0, y1))
            for row in range(first, last):
                x = x0 + (x1 - x0) * (self.y[row] - y0) / (y1 - y0)
                column = np.searchsorted(self.x, x)
                if column < len(self.x):
                    toggle[row, column] ^= True
        mask |= np.logical_xor.accumulate(toggle, axis=1)

    def draw(self, layer, wanted, zones=True):
        """Where copper of the nets for which `wanted` is true lies on a layer."""
        mask = np.zeros((len(self.y), len(self.x)), bool)
        for key, net, layers, box in self.pads:
            if layer in layers and wanted(net, key):
                self._box(mask, *box)
        for net, its, width, ends in self.segments:
            if its == layer and wanted(net, None):
                self._line(mask, width, *ends)
        for net, at, size in self.rounds:
            if wanted(net, None):
                self._line(mask, size, *at, *at)
        for net, its, points in self.fills:
            if zones and its == layer and wanted(net, None):
                self._fill(mask, points)
        return mask

    def pad(self, reference, number):
        ((net, layers, box),) = (
            [n, ls, b] for key, n, ls, b in self.pads if key == (reference, number)
        )
        return net, layers, box


@pytest.fixture(scope="module")
def copper(board):
    return Copper(board)


def ipc_2221_mm(current_A, rise_K=10.0, copper_mm=0.035):
    """Least width of an outer track: IPC-2221, I = 0.048 dT^0.44 A^0.725, A in square mils."""
    area = (current_A / (0.048 * rise_K**0.44)) ** (1 / 0.725)
    return area * 0.0254**2 / copper_mm


def test_the_layout_computes_widths_as_ipc_2221_prints_them():
    # The standard's formula for 1 oz outside and 10 K: 0.30 mm for 1 A, 2.77 mm for 5 A
    assert ipc_2221_mm(1.0) == pytest.approx(0.30, abs=0.005)
    assert ipc_2221_mm(5.0) == pytest.approx(2.77, abs=0.03)
    assert layout.least_width_mm(5.0) == pytest.approx(ipc_2221_mm(5.0))


def joined(copper, net, pads, width_mm):
    """Whether copper of a width joins all pads: what a disc of that width can run through."""
    near = (width_mm - GRID_mm) / 2 / GRID_mm  # its middle may lie half a step beside a point
    areas = []
    for layer in ("F.Cu", "B.Cu"):
        mask = copper.draw(layer, lambda its, key: its == net, zones=net != "GND")
        areas.append(np.zeros(mask.shape, int))
        if mask.any():
            window = ndimage.find_objects(np.pad(mask, 1).astype(int))[0]
            window = tuple(slice(max(0, s.start - 2), s.stop) for s in window)
            core = ndimage.distance_transform_edt(mask[window]) >= near
            wide = ndimage.distance_transform_edt(~core) <= near
            areas[-1][window] = ndimage.label(wide, np.ones((3, 3)))[0]
    holes = [
        (None, ("F.Cu", "B.Cu"), (*at, size, size)) for its, at, size in copper.rounds if its == net
    ]
    own = [(key, layers, box) for key, its, layers, box in copper.pads if its == net]
    wires = Wires()
    for n, (key, layers, (x, y, wide, high)) in enumerate((*own, *holes)):
        for k, layer in enumerate(("F.Cu", "B.Cu")):
            if layer in layers:
                rows, columns, _, _ = copper._window(
                    x - wide / 2, y - high / 2, x + wide / 2, y + high / 2
                )
                for area in np.unique(areas[k][rows, columns]):
                    if area:
                        wires.join(("area", k, area), key or ("via", n))
    assert all(copper.pad(*pad)[0] == net for pad in pads)
    return len({wires.find(pad) for pad in pads}) == 1


def power_paths():
    """Net, current and pads of every path of the cells' current."""
    cells = range(circuit.CELLS)
    yield "SUPPLY_IN", FUSE_A, [("J_SUPPLY", "1"), ("F_SUPPLY", "1")]
    yield "FUSED", FUSE_A, [("F_SUPPLY", "2"), ("K2", "1")]
    yield "FEED", FUSE_A, [("K2", "2"), ("K1", "1")]
    yield "RAIL", FUSE_A, [("K1", "2"), *((f"J_CELL{n}", "1") for n in cells)]
    yield "RETURN", FUSE_A, [("R_LEAK", "1"), *((f"R_S{n}", "2") for n in cells)]
    yield "GND", FUSE_A, [("R_LEAK", "2"), ("J_SUPPLY", "2")]
    yield (
        "RAIL",
        CELL_A,
        [("J_CELL0", "1"), ("D_CLAMP", "1"), *((f"D_FREE{n}", "1") for n in cells)],
    )
    for n in cells:
        yield f"DRAIN{n}", CELL_A, [(f"J_CELL{n}", "2"), (f"Q{n}", "3"), (f"D_FREE{n}", "2")]
        yield f"SOURCE{n}", CELL_A, [(f"Q{n}", "2"), (f"R_S{n}", "1")]


@pytest.mark.slow
def test_copper_wide_enough_carries_the_cells_current_from_plug_to_plug(copper):
    for net, current_A, pads in power_paths():
        assert joined(copper, net, pads, ipc_2221_mm(current_A)), f"{net} at {current_A} A"


def test_copper_that_is_too_narrow_for_its_current_is_found(copper):
    """A tap of 0.2 mm: RAIL to its divider."""
    pads = [("K1", "2"), ("R_SUPPLY_TOP", "1")]
    assert not joined(copper, "RAIL", pads, ipc_2221_mm(CELL_A))
    assert joined(copper, "RAIL", pads, 0.2)


def test_each_amplifier_measures_at_its_own_shunt(copper):
    """Its minus pin leaves the return at the shunt's pad, not through the zone of all cells."""
    for n in range(circuit.CELLS):
        _, _, (x, y, wide, high) = copper.pad(f"U_I{n}", "4")
        _, _, (sx, sy, swide, shigh) = copper.pad(f"R_S{n}", "2")
        for net, layer, points in copper.fills:
            if net == "RETURN" and layer == "F.Cu":
                corners = [
                    (x + a * wide / 2, y + c * high / 2) for a in (-1, 0, 1) for c in (-1, 0, 1)
                ]
                assert not Outline(points).contains_points(corners).any()
        ends = [
            end for net, layer, _, (a, c, e, f) in copper.segments
            if (net, layer) == ("RETURN", "F.Cu")
            for end in ((a, c), (e, f))
            if abs(end[0] - sx) <= swide / 2 and abs(end[1] - sy) <= shigh / 2
        ]  # fmt: skip
        assert ends, f"cell {n}"


@pytest.mark.slow
def test_the_computers_copper_keeps_six_millimetres_from_the_boards(copper):
    """Pads without a net count with their part; the isolator alone bridges the gap."""

    def computers(net, key):
        return net.startswith("USB_") or (
            not net and key is not None and key[0] in ("U_USB", "J_USB")
        )

    def boards(net, key):
        return not computers(net, key) and (net or key[0] != "U_ISO")

    here = [copper.draw(layer, computers) for layer in ("F.Cu", "B.Cu")]
    there = [copper.draw(layer, boards) for layer in ("F.Cu", "B.Cu")]
    away = ndimage.distance_transform_edt(~(here[0] | here[1])) * GRID_mm
    assert away[there[0] | there[1]].min() >= 6.0 - 2 * GRID_mm
    assert away[there[0] | there[1]].min() < 8.0  # the isolator's own pads


def test_connectors_stand_at_the_edges_and_the_board_has_four_holes(board):
    x0, y0 = layout.PAGE_mm
    right, low = x0 + layout.WIDTH_mm, y0 + layout.HEIGHT_mm
    holes = 0
    for footprint in parts(board, "footprint"):
        (reference,) = (str(t[2]) for t in parts(footprint, "fp_text") if t[1] == "reference")
        x, y = one(footprint, "at")[1:3]
        holes += "MountingHole" in footprint[1]
        if re.match(r"J_(CELL|SUPPLY|AUX|USB)|K\d|ESTOP|START", reference):
            assert min(x - x0, y - y0, right - x, low - y) < 16.0, reference
    assert holes == 4


def kicad(*arguments):
    return subprocess.run(
        [KICAD, *arguments], check=True, capture_output=True, text=True, timeout=600
    )


@pytest.fixture
def need_kicad():
    found = subprocess.run([KICAD, "-c", "import pcbnew"], capture_output=True).returncode == 0
    if not found and not os.environ.get("CI"):
        pytest.skip("needs: sudo apt-get install --no-install-recommends kicad kicad-footprints")
    assert found


def report(folder):
    """Numbers of violations, unconnected pads and errors of footprints that KiCad reports."""
    kicad(
        str(layout.HERE / "kicad.py"),
        "check",
        str(folder / "board.kicad_pcb"),
        str(folder / "drc.txt"),
    )
    return [int(n) for n in re.findall(r"Found (\d+)", (folder / "drc.txt").read_text())]


@pytest.mark.slow
@pytest.mark.usefixtures("need_kicad")
def test_kicad_finds_no_violation_of_the_boards_rules(tmp_path):
    for name in ("board.kicad_pcb", "board.kicad_pro", "board.kicad_dru"):
        shutil.copy(layout.FILES / name, tmp_path)
    assert report(tmp_path) == [0, 0, 0]
    text = (tmp_path / "board.kicad_pcb").read_text(encoding="utf-8")
    first = text.index("\n  (segment")
    (tmp_path / "board.kicad_pcb").write_text(
        text[:first] + text[text.index("\n", first + 1) :], "utf-8"
    )
    assert report(tmp_path)[1] > 0, "a track less leaves pads unconnected"
    x, y = layout.PAGE_mm
    ends = f"(start {x + 140} {y + 52}) (end {x + 170} {y + 52})"
    across = f'(segment {ends} (width 0.2) (layer "B.Cu") (net 1))'
    (tmp_path / "board.kicad_pcb").write_text(text[:first] + "\n" + across + text[first:], "utf-8")
    assert report(tmp_path)[0] > 0, "a track into the isolation's gap is a violation"


@pytest.mark.slow
@pytest.mark.usefixtures("need_kicad")
def test_a_manufacturers_files_have_every_layer_and_every_hole(tmp_path, board):
    kicad(
        str(layout.HERE / "kicad.py"), "make", str(layout.FILES / "board.kicad_pcb"), str(tmp_path)
    )
    for layer in ("F_Cu", "B_Cu", "F_Mask", "B_Mask", "F_Paste", "F_Silkscreen", "Edge_Cuts"):
        assert (tmp_path / f"board-{layer}.gbr").read_text().endswith("M02*\n"), layer
    pads = [pad for part in parts(board, "footprint") for pad in parts(part, "pad")]
    plated = sum(pad[2] == "thru_hole" for pad in pads) + len(parts(board, "via"))
    bare = sum(pad[2] == "np_thru_hole" for pad in pads)
    for name, holes in (("PTH", plated), ("NPTH", bare)):
        drilled = (tmp_path / f"board-{name}.drl").read_text()
        assert len(re.findall(r"^X-?[\d.]+Y-?[\d.]+", drilled, re.M)) == holes, name


@pytest.mark.slow
@pytest.mark.usefixtures("need_kicad")
def test_the_layout_made_again_is_the_layout_that_is_kept(copper):
    made = layout.build()
    names = {number: name for name, number in made.nets.items()}
    x, y = layout.PAGE_mm

    def key(net, layer, width, a, c):
        ends = sorted((round(e[0], 3), round(e[1], 3)) for e in (a, c))
        return net, layer, width, *ends

    again = {
        key(names[net], layout.LAYERS[layer], width, (a[0] + x, a[1] + y), (c[0] + x, c[1] + y))
        for net, layer, width, a, c in made.tracks
    }
    kept = {key(net, layer, width, e[:2], e[2:]) for net, layer, width, e in copper.segments}
    vias = {(names[net], round(at[0] + x, 3), round(at[1] + y, 3)) for net, at, *_ in made.vias}
    assert vias == {(net, *at) for net, at, _ in copper.rounds}
    assert again == kept, "run: python firmware/board/board_file.py, then kicad.py fill"
