"""Fills a board's zones, checks its rules and writes its Gerber files, with the Python of KiCad 6.

`/usr/bin/python3 firmware/board/kicad.py fill BOARD` saves the board with its zones filled;
`check BOARD REPORT` writes KiCad's report of the design rules, `make BOARD FOLDER` Gerber and drill
files.
"""

import math
import sys

import pcbnew

LAYERS = (
    "F.Cu",
    "B.Cu",
    "F.Mask",
    "B.Mask",
    "F.Paste",
    "F.Silkscreen",
    "B.Silkscreen",
    "Edge.Cuts",
)
DETAIL_nm = 10_000


def fill(board: "pcbnew.BOARD") -> None:
    """Fill all zones, DETAIL_nm farther from others than the rules ask: `_thin_out` moves edges."""
    settings = board.GetDesignSettings()
    settings.m_HoleClearance += DETAIL_nm
    for zone in board.Zones():
        zone.SetLocalClearance(zone.GetLocalClearance() + DETAIL_nm)
    pcbnew.ZONE_FILLER(board).Fill(board.Zones())
    settings.m_HoleClearance -= DETAIL_nm
    for zone in board.Zones():
        zone.SetLocalClearance(zone.GetLocalClearance() - DETAIL_nm)
        for layer in zone.GetLayerSet().Seq():
            _thin_out(zone, layer)


def make(board: "pcbnew.BOARD", folder: str) -> None:
    """Write what a manufacturer needs: a Gerber file of every layer, and the drills."""
    plot = pcbnew.PLOT_CONTROLLER(board)
    options = plot.GetPlotOptions()
    options.SetOutputDirectory(folder)
    options.SetUseGerberProtelExtensions(False)
    options.SetSubtractMaskFromSilk(True)
    for name in LAYERS:
        layer = board.GetLayerID(name)
        plot.SetLayer(layer)
        plot.OpenPlotfile(name.replace(".", "_"), pcbnew.PLOT_FORMAT_GERBER, name)
        plot.PlotLayer()
    plot.ClosePlot()
    drills = pcbnew.EXCELLON_WRITER(board)
    drills.SetFormat(True)
    drills.SetOptions(False, False, pcbnew.wxPoint(0, 0), False)
    drills.CreateDrillandMapFilesSet(folder, True, False)


def _thin_out(zone: "pcbnew.ZONE", layer: int) -> None:
    """Leave out corners of a filled zone that change its edge by less than DETAIL_nm."""
    filled = zone.GetFilledPolysList(layer)
    made = pcbnew.SHAPE_POLY_SET()
    for n in range(filled.OutlineCount()):
        line = filled.Outline(n)
        points = [(line.CPoint(k).x, line.CPoint(k).y) for k in range(line.PointCount())]
        made.NewOutline()
        for x, y in _thin(points):
            made.Append(x, y)
    zone.SetFilledPolysList(layer, made)


def _thin(points: list) -> list:
    """Source: D. Douglas and T. Peucker 1973."""
    keep, stack = {0, len(points) - 1}, [(0, len(points) - 1)]
    while stack:
        first, last = stack.pop()
        (x0, y0), (x1, y1) = points[first], points[last]
        length = math.hypot(x1 - x0, y1 - y0)
        far, worst = 0.0, first
        for k in range(first + 1, last):
            dx, dy = points[k][0] - x0, points[k][1] - y0
            away = abs(dx * (y1 - y0) - dy * (x1 - x0)) / length if length else math.hypot(dx, dy)
            if away > far:
                far, worst = away, k
        if far > DETAIL_nm:
            keep.add(worst)
            stack += [(first, worst), (worst, last)]
    return [points[k] for k in sorted(keep)]


def main() -> None:
    """Fill or check."""
    what, path, *report = sys.argv[1:]
    board = pcbnew.LoadBoard(path)
    if what == "fill":
        fill(board)
        pcbnew.SaveBoard(path, board, True)
    elif what == "check":
        if not pcbnew.WriteDRCReport(board, *report, pcbnew.EDA_UNITS_MILLIMETRES, True):
            sys.exit("KiCad wrote no report")
    else:
        make(board, *report)


if __name__ == "__main__":
    main()
