"""One plot over time: curves drawn from bins, its own range of y, marks and two cursors."""

import numpy as np
import pyqtgraph as pg
from numpy.typing import NDArray
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor

from hil_gui.plain import markup
from hil_gui.pyramid import Bins
from hil_gui.theme import Theme

LABEL_WIDTH_PX = 64
MARGIN = 0.08
"""Of the range of y, left free above and below."""
LEGEND_PX = 22.0
"""Left free above the curves where a legend stands."""


class TimeBox(pg.ViewBox):
    """Wheel and drag move time; over the axis of y they move y."""

    def wheelEvent(self, event, axis=None):
        super().wheelEvent(event, axis=0 if axis is None else axis)

    def mouseDragEvent(self, event, axis=None):
        super().mouseDragEvent(event, axis=0 if axis is None else axis)


class Strip:
    """A plot in a stack whose members share time.

    Attributes
    ----------
    plot : pg.PlotItem
    is_auto : bool
        Whether the range of y follows the curves; ends when the user moves y.
    legend_of : list of str
        Curves of other runs that the legend names.
    """

    def __init__(self, label: str, units: str) -> None:
        self.box = TimeBox(enableMenu=False)
        self.plot = pg.PlotItem(viewBox=self.box, enableMenu=False)
        self.plot.hideButtons()
        self.plot.setLabel("left", markup(label), units=markup(units) or None)
        self.plot.getAxis("left").setWidth(LABEL_WIDTH_PX)
        self.plot.getAxis("left").enableAutoSIPrefix(bool(units))
        self.curves: dict[str, pg.PlotCurveItem] = {}
        self._shown: dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]] = {}
        self._range: tuple[float, float] | None = None
        self.is_auto = True
        self.now = pg.InfiniteLine(angle=90, movable=False)
        self.now.setZValue(20)
        self.now.hide()
        self.plot.addItem(self.now, ignoreBounds=True)
        self._marks: list[pg.InfiniteLine] = []
        self._legend: pg.LegendItem | None = None
        self.legend_of: list[str] = []
        self.box.sigRangeChangedManually.connect(self._moved)

    def _moved(self, mask: list[bool]) -> None:
        if mask[1]:
            self.is_auto = False

    def curve(self, key: str, colour: QColor, *, dashed: bool = False) -> pg.PlotCurveItem:
        """The curve of this name, made where there is none."""
        if key not in self.curves:
            self.curves[key] = pg.PlotCurveItem(antialias=False, skipFiniteCheck=False)
            self.plot.addItem(self.curves[key], ignoreBounds=True)
        style = Qt.PenStyle.DashLine if dashed else Qt.PenStyle.SolidLine
        self.curves[key].setPen(pg.mkPen(colour, width=1, style=style))
        return self.curves[key]

    def show_legend(self, theme: Theme, names: dict[str, str] | None = None) -> None:
        """Name the curves in a row inside the plot; by default all, by their keys."""
        if self._legend is None:
            self._legend = pg.LegendItem(
                offset=(LABEL_WIDTH_PX // 8, 1), colCount=4, verSpacing=-6, horSpacing=14
            )
            self._legend.setParentItem(self.box)
        self._legend.clear()
        self._legend.setLabelTextSize("8pt")
        self._legend.setLabelTextColor(theme.muted)
        for key, name in ({k: k for k in self.curves} if names is None else names).items():
            self._legend.addItem(self.curves[key], markup(name))

    def draw(self, key: str, bins: Bins, curve: int) -> None:
        """Give a curve the bins of its column."""
        self.draw_line(key, *bins.line(curve))

    def draw_line(self, key: str, x: NDArray[np.float64], y: NDArray[np.float64]) -> None:
        item = self.curves[key]
        if not item.isVisible():
            return
        whole = bool(np.isfinite(y).all())
        item.setData(x, y, connect="all" if whole else "finite", skipFiniteCheck=whole)
        self._shown[key] = (x, y)

    def drawn(self, key: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The line that a curve shows."""
        x, y = self.curves[key].getData()
        return (np.zeros(0), np.zeros(0)) if x is None else (x, y)

    def show(self, key: str, visible: bool) -> None:
        self.curves[key].setVisible(visible)
        if not visible:
            self._shown.pop(key, None)

    def settle(self, from_s: float, to_s: float, least: float = 0.0) -> None:
        """Show this stretch of time, and all that is drawn in it.

        The range of y grows at once and shrinks only when half of it is empty, so that it does
        not wander; `least` is the smallest range.
        """
        self.box.setXRange(from_s, to_s, padding=0)
        if not self.is_auto:
            return
        lows, highs = [], []
        for x, y in self._shown.values():
            a, b = np.searchsorted(x, (from_s, to_s))
            inside = y[max(a - 1, 0) : b + 1]
            inside = inside[np.isfinite(inside)]
            if len(inside):
                lows.append(inside.min())
                highs.append(inside.max())
        if not lows:
            return
        low, high = min(lows), max(highs)
        missing = max(least, 1e-9 * max(abs(low), abs(high)), 1e-12) - (high - low)
        if missing > 0.0:
            low, high = low - missing / 2, high + missing / 2
        if self._range is not None:
            old_low, old_high = self._range
            fits = old_low <= low and high <= old_high
            if fits and high - low > 0.5 * (old_high - old_low):
                return
        room = MARGIN * (high - low)
        above = room
        if self._legend is not None:
            share = min(LEGEND_PX / max(self.box.height(), 1.0), 0.5)
            above = (high - low + room) * share / (1.0 - share)
        self._range = (low - room, high + above)
        self.box.setYRange(*self._range, padding=0)

    def auto(self) -> None:
        """Let the range of y follow the curves again."""
        self.is_auto, self._range = True, None

    def clear(self) -> None:
        """No data in any curve."""
        for item in self.curves.values():
            item.setData([], [])
        self._shown.clear()
        self.mark([])
        self.auto()

    def mark(self, times: list[tuple[float, QColor]]) -> None:
        """Upright lines at these times."""
        for line in self._marks:
            self.plot.removeItem(line)
        self._marks = [
            pg.InfiniteLine(t_s, pen=pg.mkPen(colour, style=Qt.PenStyle.DashLine))
            for t_s, colour in times
        ]
        for line in self._marks:
            self.plot.addItem(line, ignoreBounds=True)

    def paint(self, theme: Theme) -> None:
        """Give axes the theme's colours."""
        for name in ("left", "bottom", "top", "right"):
            axis = self.plot.getAxis(name)
            axis.setPen(theme.line)
            axis.setTextPen(theme.muted)
            axis.setTickPen(theme.line)
        self.box.setBackgroundColor(theme.surface)
        self.now.setPen(pg.mkPen(theme.text))
