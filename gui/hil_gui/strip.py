"""One plot over time: curves drawn from bins, its own y range, and marks."""

import numpy as np
import pyqtgraph as pg
from numpy.typing import NDArray
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor

from hil_gui.plain import markup
from hil_gui.pyramid import Bins
from hil_gui.theme import Theme
from hil_gui.units import takes_prefix, written

LABEL_WIDTH_PX = 64
MARGIN = 0.08
"""Margin above and below the curves, as a fraction of their y range."""
LEGEND_PX = 22.0
"""Space above the curves for a legend, px."""


class TimeBox(pg.ViewBox):
    """Wheel and drag change the time range; over the y axis they change the y range."""

    def wheelEvent(self, event, axis=None):
        super().wheelEvent(event, axis=0 if axis is None else axis)

    def mouseDragEvent(self, event, axis=None):
        super().mouseDragEvent(event, axis=0 if axis is None else axis)


class Strip:
    """One plot of a stack that shares the time axis.

    Attributes
    ----------
    plot : pg.PlotItem
    is_auto : bool
        Whether the y range follows the curves; False after the user has changed y.
    legend_of : list of str
        Curves of other runs in the legend.
    """

    def __init__(self, label: str, units: str) -> None:
        self.box = TimeBox(enableMenu=False)
        self.plot = pg.PlotItem(viewBox=self.box, enableMenu=False)
        self.plot.hideButtons()
        self.plot.setLabel("left", markup(label), units=markup(written(units)) or None)
        self.plot.getAxis("left").setWidth(LABEL_WIDTH_PX)
        self.plot.getAxis("left").enableAutoSIPrefix(takes_prefix(units))
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
        """Get the curve of this name; create it if needed."""
        if key not in self.curves:
            self.curves[key] = pg.PlotCurveItem(antialias=False, skipFiniteCheck=False)
            self.plot.addItem(self.curves[key], ignoreBounds=True)
        style = Qt.PenStyle.DashLine if dashed else Qt.PenStyle.SolidLine
        self.curves[key].setPen(pg.mkPen(colour, width=1, style=style))
        return self.curves[key]

    def show_legend(self, theme: Theme, names: dict[str, str] | None = None) -> None:
        """Show a legend inside the plot; by default it lists all curves by their keys."""
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
        """Draw row `curve` of the bins."""
        self.draw_line(key, *bins.line(curve))

    def draw_line(self, key: str, x: NDArray[np.float64], y: NDArray[np.float64]) -> None:
        item = self.curves[key]
        if not item.isVisible():
            return
        is_finite = bool(np.isfinite(y).all())
        item.setData(x, y, connect="all" if is_finite else "finite", skipFiniteCheck=is_finite)
        self._shown[key] = (x, y)

    def reach(
        self,
        key: str,
        x: NDArray[np.float64],
        low: NDArray[np.float64],
        high: NDArray[np.float64],
    ) -> None:
        """Let the y range reach around a band as around a curve."""
        self._shown[f"{key} low"], self._shown[f"{key} high"] = (x, low), (x, high)

    def drawn(self, key: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Points (x, y) that a curve shows."""
        x, y = self.curves[key].getData()
        return (np.zeros(0), np.zeros(0)) if x is None else (x, y)

    def show(self, key: str, visible: bool) -> None:
        self.curves[key].setVisible(visible)
        if not visible:
            self._shown.pop(key, None)

    def settle(self, from_s: float, to_s: float, least: float = 0.0) -> None:
        """Set the time range, and fit the y range to the curves in it if `is_auto`.

        The y range grows at once but shrinks only when the curves use half of it or less, so that
        it does not change with every frame. `least` is the smallest y range.
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
        margin = MARGIN * (high - low)
        above = margin
        if self._legend is not None:
            share = min(LEGEND_PX / max(self.box.height(), 1.0), 0.5)
            above = (high - low + margin) * share / (1.0 - share)
        self._range = (low - margin, high + above)
        self.box.setYRange(*self._range, padding=0)

    def auto(self) -> None:
        """Let the y range follow the curves again."""
        self.is_auto, self._range = True, None

    def clear(self) -> None:
        """Remove all data and marks."""
        for item in self.curves.values():
            item.setData([], [])
        self._shown.clear()
        self.mark([])
        self.auto()

    def mark(self, times: list[tuple[float, QColor]]) -> None:
        """Draw vertical lines at these times; they replace the earlier ones."""
        for line in self._marks:
            self.plot.removeItem(line)
        self._marks = [
            pg.InfiniteLine(t_s, pen=pg.mkPen(colour, style=Qt.PenStyle.DashLine))
            for t_s, colour in times
        ]
        for line in self._marks:
            self.plot.addItem(line, ignoreBounds=True)

    def paint(self, theme: Theme) -> None:
        """Apply the theme's colours to the axes."""
        for name in ("left", "bottom", "top", "right"):
            axis = self.plot.getAxis(name)
            axis.setPen(theme.line)
            axis.setTextPen(theme.muted)
            axis.setTickPen(theme.line)
        self.box.setBackgroundColor(theme.surface)
        self.now.setPen(pg.mkPen(theme.text))
