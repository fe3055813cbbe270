"""Points in the plane or in space: the end effector's path, or a body as a stick figure.

`limb_figure` draws limbs with muscles.
"""

import pyqtgraph as pg
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QVBoxLayout, QWidget

from hil_gui.limb_figure import LimbFigure
from hil_gui.run_data import About, RunData, find_paths
from hil_gui.theme import Theme

TRAIL_S = 5.0
"""Duration of the path drawn behind its point, s."""

Point = tuple[str, ...]


class Plane(pg.PlotWidget):
    """One view of the points: one coordinate horizontal, another vertical."""

    def __init__(self) -> None:
        super().__init__(enableMenu=False)
        self.hideButtons()
        self.setAspectLocked(True)
        self.wanted = self.plot()
        self.trail = self.plot()
        self.figure = self.plot(symbol="o", symbolSize=7)

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

    def clear_curves(self) -> None:
        for curve in (self.trail, self.wanted, self.figure):
            curve.setData([], [])

    def draw(
        self, data: RunData, now_s: float, points: list[Point], wanted: list[Point], axes: str
    ) -> None:
        """Draw the points now and the path of the last one.

        `axes` names the horizontal and the vertical coordinate, such as "xz".
        """
        across, up = ("xyz".index(axis) for axis in axes)
        self.setLabel("bottom", axes[0], units="m")
        self.setLabel("left", axes[1], units="m")
        row = data.at(now_s)
        self.figure.setData([row[p[across]] for p in points], [row[p[up]] for p in points])
        bins = data.values.view(max(now_s - TRAIL_S, 0.0), now_s, 800)
        for curve, some in ((self.trail, points), (self.wanted, wanted)):
            for point in some[-1:]:
                x, y = data.index(point[across]), data.index(point[up])
                curve.setData(bins.low[x], bins.low[y], connect="finite")


class PathView(QWidget):
    """Draws points: the path of the last one, and lines that join several to a stick figure.

    A dashed line shows the set point of the last point. Points in space are shown from the side
    and from above. The side view looks along the horizontal axis in which the points spread least.
    """

    def __init__(self) -> None:
        super().__init__()
        self.side, self.above = Plane(), Plane()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        for plane in (self.side, self.above):
            layout.addWidget(plane)
        self.above.hide()
        self.limb = LimbFigure(self.side)
        self._points: list[Point] = []
        self._wanted: list[Point] = []
        self._across = ""

    def set_theme(self, theme: Theme) -> None:
        for plane in (self.side, self.above):
            plane.set_theme(theme)
        self.limb.set_theme(theme)

    @property
    def has_points(self) -> bool:
        return bool(self._points) or self.limb.is_shown

    def show_limb(self, about: About | None) -> None:
        """Draw the limb of a rig that has one, in its start pose."""
        self.limb.set_picture(about.mechanism if about else None)
        if self.limb.is_shown:
            self.side.setLabel("bottom", "forward", units="m")
            self.side.setLabel("left", "up", units="m")

    def set_run(self, data: RunData | None) -> None:
        columns = () if data is None else tuple(c for c in data.about.columns if data.has(c.name))
        self._points, self._wanted = find_paths(columns)
        self._across = ""
        in_space = bool(self._points) and all(len(p) == 3 for p in self._points + self._wanted)
        self.above.setVisible(in_space)
        for plane in (self.side, self.above):
            plane.clear_curves()
        self.show_limb(data.about if data else None)

    def show_run(self, data: RunData | None, now_s: float) -> None:
        if data is not None and data.n_rows:
            self.limb.show_run(data, now_s)
        if not self._points or data is None or not data.n_rows:
            return
        if self.above.isHidden():
            self.side.draw(data, now_s, self._points, self._wanted, "xy")
            return
        if not self._across:
            row = data.at(now_s)
            x, y = ([row[p[i]] for p in self._points] for i in (0, 1))
            self._across = "x" if max(x) - min(x) >= max(y) - min(y) else "y"
        self.side.draw(data, now_s, self._points, self._wanted, f"{self._across}z")
        self.above.draw(data, now_s, self._points, self._wanted, "xy")
