"""Writes the layout for KiCad 6: `python firmware/board/board_file.py`.

It makes board.kicad_pcb and its rules in firmware/board/kicad/. `kicad.py`, in KiCad's own Python,
then fills the zones.
"""

import json

from lands import Land
from layout import (
    FILES,
    HOLES,
    LAYERS,
    LIBRARIES,
    SOLID,
    ZONES,
    Board,
    CLEARANCE_mm,
    HEIGHT_mm,
    ISOLATION_mm,
    PAGE_mm,
    Placed,
    TRACK_mm,
    VIA_DRILL_mm,
    VIA_mm,
    WIDTH_mm,
    build,
)  # fmt: skip
from sexp import child, identity, quoted, read, write
from silk import labels


def _stamp(*names: object) -> list:
    return ["tstamp", identity(*names)]


def _footprint(one: Placed, nets: dict[str, int]) -> list:
    """The footprint of a device with its nets."""
    land, ref = one.land, one.land.ref
    library, name = land.footprint.split(":")
    made: list = ["footprint", quoted(f"{library}:{name}"), ["layer", '"F.Cu"'],
                  _stamp(ref), _at(one.x, one.y, one.turn)]  # fmt: skip
    for k, part in enumerate(one.shape[2:]):
        if part[0] in ("attr", "model"):
            made.append(part)
        elif part[0] == "pad":
            part = [p for p in part if not (isinstance(p, list) and p[0] in ("at", "tstamp"))]
            local = [float(v) for v in child(one.shape[2 + k], "at")[1:]]
            angle = one.turn + (local[2] if len(local) > 2 else 0)
            part.insert(4, ["at", local[0], local[1], angle % 360])
            net = land.nets.get(part[1].strip('"'))
            if net:
                part.append(["net", nets[net], quoted(net)])
            made.append([*part, _stamp(ref, k)])
        elif part[0] in ("fp_line", "fp_circle", "fp_arc", "fp_poly", "fp_rect"):
            if child(part, "layer")[1] != '"F.Fab"':
                part = [p for p in part if not (isinstance(p, list) and p[0] == "tstamp")]
                made.append([*part, _stamp(ref, k)])
        elif part[0] == "fp_text" and part[1] in ("reference", "value"):
            text = ref if part[1] == "reference" else land.value
            effects = ["effects", ["font", ["size", 0.6, 0.6], ["thickness", 0.1]]]
            hide = ["hide"] if part[1] == "value" else []
            made.append(["fp_text", part[1], quoted(text), ["at", 0, 0, one.turn % 180],
                         ["layer", '"F.Fab"'], *hide, effects, _stamp(ref, k)])  # fmt: skip
    return made


def _at(x: float, y: float, turn: float | None = None) -> list:
    at: list = ["at", float(PAGE_mm[0] + x), float(PAGE_mm[1] + y)]
    return at if turn is None else [*at, turn]


def _zone(number: int, board: Board) -> list:
    name, layer, priority, outline = ZONES[number]
    join = ["connect_pads", *(["yes"] if name in SOLID else []), ["clearance", CLEARANCE_mm]]
    points = [["xy", PAGE_mm[0] + x, PAGE_mm[1] + y] for x, y in outline]
    fill = ["fill", "yes", ["thermal_gap", 0.3], ["thermal_bridge_width", 0.4]]
    area = ["polygon", ["pts", *points]]
    return ["zone", ["net", board.nets[name]], ["net_name", quoted(name)],
            ["layer", quoted(LAYERS[layer])], _stamp("zone", number), ["hatch", "edge", 0.5],
            ["priority", priority], join, ["min_thickness", 0.2], fill, area]  # fmt: skip


def document(board: Board) -> list:
    """The board as KiCad's S-expression."""
    rows = ((0, "F.Cu", "signal"), (31, "B.Cu", "signal"), (34, "B.Paste", "user"),
            (35, "F.Paste", "user"), (36, "B.SilkS", "user"), (37, "F.SilkS", "user"),
            (38, "B.Mask", "user"), (39, "F.Mask", "user"), (44, "Edge.Cuts", "user"),
            (45, "Margin", "user"), (46, "B.CrtYd", "user"), (47, "F.CrtYd", "user"),
            (48, "B.Fab", "user"), (49, "F.Fab", "user"))  # fmt: skip
    made: list = ["kicad_pcb", ["version", 20211014], ["generator", "pcbnew"],
                  ["general", ["thickness", 1.6]], ["paper", '"A3"'],
                  ["layers", *([n, quoted(name), kind] for n, name, kind in rows)],
                  ["setup", ["pad_to_mask_clearance", 0.05]], ["net", 0, '""']]  # fmt: skip
    made += [["net", n, quoted(name)] for name, n in board.nets.items()]
    made += [_footprint(one, board.nets) for one in board.placed.values()]
    hole = read((LIBRARIES / "MountingHole.pretty/MountingHole_3.2mm_M3.kicad_mod").read_text())
    for n, (x, y) in enumerate(HOLES):
        land = Land(f"H{n}", "MountingHole:MountingHole_3.2mm_M3", [], {}, "M3")
        made.append(_footprint(Placed(land, x, y, 0.0, hole), board.nets))
    corners = ((0.0, 0.0), (WIDTH_mm, 0.0), (WIDTH_mm, HEIGHT_mm), (0.0, HEIGHT_mm))
    for k, (a, c) in enumerate(zip(corners, (*corners[1:], corners[0]), strict=True)):
        made.append(["gr_line", ["start", *_at(*a)[1:]], ["end", *_at(*c)[1:]],
                     ["layer", '"Edge.Cuts"'], ["width", 0.1], _stamp("edge", k)])  # fmt: skip
    for k, one in enumerate(labels(board.placed)):
        font = ["font", ["size", one.size, one.size], ["thickness", round(0.15 * one.size, 3)]]
        made.append(["gr_text", quoted(one.text), _at(one.x, one.y, one.turn),
                     ["layer", '"F.SilkS"'], _stamp("text", k), ["effects", font]])  # fmt: skip
    for k, (net, layer, width, a, c) in enumerate(board.tracks):
        made.append(["segment", ["start", *_at(*a)[1:]], ["end", *_at(*c)[1:]], ["width", width],
                     ["layer", quoted(LAYERS[layer])], ["net", net],
                     _stamp("track", k)])  # fmt: skip
    for k, (net, at, size, drill) in enumerate(board.vias):
        made.append(["via", _at(*at), ["size", size], ["drill", drill],
                     ["layers", '"F.Cu"', '"B.Cu"'], ["net", net], _stamp("via", k)])  # fmt: skip
    made += [_zone(k, board) for k in range(len(ZONES))]
    return made


RULES = f"""(version 1)
(rule isolation
  (condition "A.NetClass == 'computer' && B.NetClass != 'computer' && B.NetName != ''")
  (constraint clearance (min {ISOLATION_mm:g}mm)))
"""


def project(nets: dict[str, int]) -> dict:
    """KiCad's project: the net classes and the least sizes that the check of the rules applies."""

    def kind(name: str, members: list[str]) -> dict:
        return {"name": name, "nets": members, "clearance": 0.15, "track_width": TRACK_mm,
                "via_diameter": VIA_mm, "via_drill": VIA_DRILL_mm}  # fmt: skip

    computer = [name for name in nets if name.startswith("USB_")]
    supply = [name for name in nets if name in ("SUPPLY_IN", "FUSED", "FEED", "RAIL", "RETURN")]
    rules = {"min_clearance": 0.15, "min_track_width": TRACK_mm, "min_via_diameter": VIA_mm,
             "min_through_hole_diameter": VIA_DRILL_mm, "min_hole_to_hole": 0.25,
             "min_hole_clearance": 0.2, "min_via_annular_width": 0.15,
             "min_copper_edge_clearance": 0.4}  # fmt: skip
    return {
        "board": {"design_settings": {"rules": rules}},
        "meta": {"filename": "board.kicad_pro", "version": 1},
        "net_settings": {
            "classes": [kind("Default", []), kind("computer", computer), kind("supply", supply)],
            "meta": {"version": 2},
        },
    }


def main() -> None:
    """Write the board and its rules."""
    board = build()
    FILES.mkdir(exist_ok=True)
    (FILES / "board.kicad_pcb").write_text(write(document(board)).lstrip() + "\n", "utf-8")
    (FILES / "board.kicad_pro").write_text(json.dumps(project(board.nets), indent=1) + "\n")
    (FILES / "board.kicad_dru").write_text(RULES)


if __name__ == "__main__":
    main()
