"""Points in the plane: the end effector's path, or a body as a stick figure.

A limb with muscles is drawn as `limb_figure` draws it.
"""

import pyqtgraph as pg
from PySide6.QtCore import Qt

from hil_gui.limb_figure import LimbFigure
from hil_gui.run_data import About, RunData, find_paths
from hil_gui.theme import Theme

TRAIL_S = 5.0
"""How much of a path is drawn behind its point."""


class PathView(pg.PlotWidget):
    """Points in the plane: one draws its path, several are joined to a stick figure.

    The reference of the last point is a dashed line.
    """

    def __init__(self) -> None:
        super().__init__(enableMenu=False)
        self.hideButtons()
        self.setAspectLocked(True)
        self.setLabel("bottom", "x", units="m")
        self.setLabel("left", "y", units="m")
        self.wanted = self.plot()
        self.trail = self.plot()
        self.figure = self.plot(symbol="o", symbolSize=7)
        self.limb = LimbFigure(self)
        self._pairs: list[tuple[str, str]] = []
        self._wanted: list[tuple[str, str]] = []

    def set_theme(self, theme: Theme) -> None:
        self.setBackground(theme.surface)
        for name in ("left", "bottom"):
            self.getAxis(name).setPen(theme.line)
            self.getAxis(name).setTextPen(theme.muted)
        self.trail.setPen(pg.mkPen(theme.measured))
        self.wanted.setPen(pg.mkPen(theme.muted, style=Qt.PenStyle.DashLine))
        self.figure.setPen(pg.mkPen(theme.text, width=2))
        self.figure.setSymbolBrush(theme.cell)
        self.figure.setSymbolPen(theme.text)
        self.limb.set_theme(theme)

    @property
    def has_points(self) -> bool:
        return bool(self._pairs) or self.limb.is_shown

    def show_limb(self, about: About | None) -> None:
        """The limb of a rig that has one, as it starts."""
        self.limb.set_picture(about.limb if about else None)
        forward = self.limb.is_shown
        self.setLabel("bottom", "forward" if forward else "x", units="m")
        self.setLabel("left", "up" if forward else "y", units="m")

    def set_run(self, data: RunData | None) -> None:
        pairs = [] if data is None else find_paths(data.about.columns)
        pairs = [p for p in pairs if data is not None and data.has(p[0]) and data.has(p[1])]
        self._pairs = [p for p in pairs if "_reference_" not in p[0]]
        self._wanted = [p for p in pairs if "_reference_" in p[0]][-1:] if self._pairs else []
        for curve in (self.trail, self.wanted, self.figure):
            curve.setData([], [])
        self.show_limb(data.about if data else None)

    def show_run(self, data: RunData | None, now_s: float) -> None:
        if data is not None and data.n_rows:
            self.limb.show_run(data, now_s)
        if not self._pairs or data is None or not data.n_rows:
            return
        row = data.at(now_s)
        self.figure.setData([row[x] for x, _ in self._pairs], [row[y] for _, y in self._pairs])
        bins = data.values.view(max(now_s - TRAIL_S, 0.0), now_s, 800)
        for curve, pairs in ((self.trail, self._pairs), (self.wanted, self._wanted)):
            for names in pairs[-1:]:
                x, y = (data.index(name) for name in names)
                curve.setData(bins.low[x], bins.low[y], connect="finite")
