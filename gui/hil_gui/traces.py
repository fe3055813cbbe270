"""The stack of plots over time: measured over simulated, residual, chosen columns, cells."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyqtgraph as pg
from numpy.typing import NDArray
from PySide6.QtCore import QMimeData, Qt, Signal
from PySide6.QtGui import QColor, QDragEnterEvent, QDragMoveEvent, QDropEvent

from hil_gui.plain import Label, markup
from hil_gui.pyramid import Bins
from hil_gui.run_data import BAND, DUTY, KINDS, RESIDUAL, RunData
from hil_gui.strip import LABEL_WIDTH_PX, Strip
from hil_gui.theme import LIGHT, Theme
from hil_gui.timeline import Timeline

WORDS = {
    "measured": "measured",
    "model": "twin",
    "estimate": "observer",
    "reference": "reference",
    "demand": "demand",
}
SHOWN_AT_FIRST = ("measured", "model", "reference")
MARKS_MAX = 60
CHOSEN_MAX = 8
LABELS_MAX = 4
WIDE = 5.0
"""Band over largest residual, above which the residual's plot does not reach around all of it."""


def _files(data: QMimeData) -> list[Path]:
    """Recordings and experiments among what is dragged."""
    paths = [Path(url.toLocalFile()) for url in data.urls() if url.isLocalFile()]
    return [path for path in paths if path.suffix in (".h5", ".toml")]


class Traces(pg.GraphicsLayoutWidget):
    """Plots of one run and of overlaid runs.

    Attributes
    ----------
    strips : dict of str to Strip
        `signal`, `residual`, `cells`, and one plot for each unit among the chosen columns.
    overlays : dict of str to (RunData, float, QColor)
        Overlaid runs: data, time shift (s, positive is later) and colour.
    differences : bool
        Draw each overlaid run minus the open one, in place of its residual.
    """

    cursors_moved = Signal()
    dropped = Signal(list)  # paths of files

    def __init__(self, timeline: Timeline) -> None:
        super().__init__()
        self._timeline = timeline
        self._data: RunData | None = None
        self._theme = LIGHT
        self.strips: dict[str, Strip] = {}
        self.kinds_shown = set(SHOWN_AT_FIRST)
        self.chosen: list[str] = []
        self.overlays: dict[str, tuple[RunData, float, QColor]] = {}
        self.differences = False
        self.cursors: tuple[float, float] | None = None
        self._cursor_lines: list[tuple[pg.InfiniteLine, pg.InfiniteLine]] = []
        self.ci.layout.setContentsMargins(4, 4, 10, 4)
        self.ci.layout.setSpacing(4)
        self.setMinimumSize(360, 240)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAcceptDrops(True)
        self.setAccessibleName("Plots over time")
        self._n_marks = (-1, -1)
        self._dirty = True
        self.hint = Label(parent=self)
        self.hint.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.hint.setWordWrap(True)
        self.hint.setProperty("role", "muted")

    def set_hint(self, text: str) -> None:
        """Set the hint that is shown while there is nothing to draw."""
        self.hint.setText(text)

    def resizeEvent(self, event) -> None:
        super().resizeEvent(event)
        if hasattr(self, "hint"):  # Qt resizes during __init__, before the hint exists
            self.hint.setGeometry(self.rect().adjusted(24, 24, -24, -24))
        self._dirty = True

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if _files(event.mimeData()):
            event.acceptProposedAction()

    def dragMoveEvent(self, event: QDragMoveEvent) -> None:
        event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        event.acceptProposedAction()
        self.dropped.emit(_files(event.mimeData()))

    @property
    def colours(self) -> Theme:
        return self._theme

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.setBackground(theme.surface)
        if self.strips:
            self.build()

    def set_run(self, data: RunData | None) -> None:
        """Show this run, which may have no rows yet; None shows the hint."""
        self._data = data
        self.hint.setVisible(data is None)
        self.cursors = None
        self.chosen = [] if data is None else self._first_choice(data)
        self.build()

    @staticmethod
    def _first_choice(data: RunData) -> list[str]:
        """Default columns beside the main signal: the further signals, and the commands."""
        taken = set(data.signal.columns.values()) if data.signal else set()
        further = [
            signal.columns[kind] for signal in data.signals[1:] for kind in ("measured", "model")
        ]
        commanded = [c.name for c in data.about.columns if c.role == "commanded"]
        wanted = [*further, *commanded]
        return [name for name in wanted if data.has(name) and name not in taken][:CHOSEN_MAX]

    def choose(self, names: list[str]) -> None:
        """Draw these columns in addition to the main signal."""
        self.chosen = names
        self.build()

    def build(self) -> None:
        """Create the plots for this run's columns."""
        ranges = {name: (s.is_auto, s.box.viewRange()[1]) for name, s in self.strips.items()}
        self.ci.clear()
        self.strips, self._cursor_lines = {}, []
        data, theme = self._data, self._theme
        if data is not None:
            if data.signal is not None:
                quantity, units = data.signal.quantity, data.signal.units
                signal = self._add("signal", quantity.replace("_", " "), units, 5)
                self._bands = {"signal": self._add_band(signal)}
                for level_N in data.about.levels_N if quantity == "force" else ():
                    level = pg.InfiniteLine(level_N, angle=0, pen=theme.line)
                    level.setZValue(-10)
                    signal.plot.addItem(level, ignoreBounds=True)
                for kind in KINDS:
                    if kind in data.signal.columns:
                        signal.curve(kind, theme.colour(kind), dashed=kind == "reference")
                        signal.show(kind, kind in self.kinds_shown)
                residual = self._add("residual", "residual", units, 2)
                self._bands["residual"] = self._add_band(residual)
                residual.curve(RESIDUAL, theme.colour("residual"))
                self._band_said = ""
                self._band_text = pg.LabelItem(color=theme.muted, size="8pt")
                self._band_text.setParentItem(residual.box)
                self._band_text.anchor((0, 0), (0, 0), offset=(6, -3))
                zero = pg.InfiniteLine(0.0, angle=0, pen=theme.line)
                residual.plot.addItem(zero, ignoreBounds=True)
                if np.isfinite(data.about.residual_max):
                    for sign in (-1, 1):
                        place = sign * data.about.residual_max
                        line = pg.InfiniteLine(place, angle=0, pen=pg.mkPen(theme.fault))
                        residual.plot.addItem(line, ignoreBounds=True)
                pen = pg.mkPen(theme.warning, style=Qt.PenStyle.DashLine)
                self._noise_lines = [pg.InfiniteLine(0.0, angle=0, pen=pen) for _ in range(2)]
                for line in self._noise_lines:
                    residual.plot.addItem(line, ignoreBounds=True)
            for units, names in self._by_units(data).items():
                strip = self._add(f"in {units}", "", "" if units == "1" else units, 3)
                for i, name in enumerate(names):
                    strip.curve(name, QColor(theme.series[i % len(theme.series)]))
                strip.show_legend(theme)
            if "cells_reported" in data.cells:
                self._add_raster(data)
        for name, strip in self.strips.items():
            is_auto, y = ranges.get(name, (True, None))
            strip.is_auto = is_auto
            if not is_auto and y is not None:
                strip.box.setYRange(*y, padding=0)
        self._finish()

    def _add(self, name: str, label: str, units: str, stretch: int) -> Strip:
        strip = Strip(label, units)
        strip.paint(self._theme)
        row = len(self.strips)
        self.addItem(strip.plot, row=row, col=0)
        self.ci.layout.setRowStretchFactor(row, stretch)
        strip.box.sigRangeChangedManually.connect(self._moved_by_hand)
        self.strips[name] = strip
        return strip

    def _add_band(self, strip: Strip) -> pg.BarGraphItem:
        # Vertical bars, because filling one long polygon takes 25 ms per frame.
        colour = self._theme.colour("model")
        colour.setAlpha(50)
        band = pg.BarGraphItem(x0=[], x1=[], y0=[], y1=[], pen=None, brush=colour)
        band.setZValue(-5)
        strip.plot.addItem(band, ignoreBounds=True)
        return band

    def show_band(self, text: str) -> None:
        """Say in the residual's plot what band and noise are."""
        if "residual" in self.strips and text != self._band_said:
            self._band_said, ground = text, QColor(self._theme.surface).name()
            self._band_text.setText(
                f'<span style="background-color:{ground}">{markup(text)}</span>'
            )

    def _by_units(self, data: RunData) -> dict[str, list[str]]:
        groups: dict[str, list[str]] = {}
        for name in self.chosen:
            column = data.about.column(name)
            if column is not None and data.has(name):
                groups.setdefault(column.units, []).append(name)
        return groups

    def _add_raster(self, data: RunData) -> None:
        n_cells, theme = len(data.about.cell_names), self._theme
        modulated = DUTY in data.cells
        strip = self._add("cells", "duty of cells" if modulated else "cells on", "", 2)
        self.raster = pg.ImageItem(axisOrder="row-major", autoDownsample=False)
        strip.plot.addItem(self.raster, ignoreBounds=True)
        rows = [theme.surface, theme.cell_mixed, theme.cell, theme.line]
        colours = np.array([QColor(c).getRgb() for c in rows], np.uint8)
        if modulated:  # from off to always on
            ends = colours[[0, 2]].astype(float)
            shares = np.linspace(0.0, 1.0, 256)[:, None]
            colours = (ends[0] + shares * (ends[1] - ends[0])).astype(np.uint8)
        self.raster.setLookupTable(colours)
        self._raster_levels = (0, 1) if modulated else (0, 3)
        self.raster.setLevels(self._raster_levels)
        strip.box.invertY(True)
        strip.box.setYRange(0.4, n_cells + 0.6, padding=0)
        strip.is_auto = False
        step = -(-n_cells // LABELS_MAX)
        strip.plot.getAxis("left").setTicks([[(n, str(n)) for n in range(1, n_cells + 1, step)]])

    def _finish(self) -> None:
        strips = list(self.strips.values())
        for i, strip in enumerate(strips):
            last = i == len(strips) - 1
            strip.plot.getAxis("bottom").setStyle(showValues=last)
            if last:
                strip.plot.setLabel("bottom", "time", units="s")
                strip.plot.getAxis("bottom").enableAutoSIPrefix(False)
        self._n_marks = (-1, -1)
        self._place_cursors()
        self.touch()
        self.redraw()

    def show_kind(self, kind: str, visible: bool) -> None:
        """Show or hide measured, model (the twin), estimate, reference or demand."""
        (self.kinds_shown.add if visible else self.kinds_shown.discard)(kind)
        strip = self.strips.get("signal")
        if strip is not None and kind in strip.curves:
            strip.show(kind, visible)
        self.touch()

    def _moved_by_hand(self, mask: list[bool]) -> None:
        if mask[0]:
            box = self.sender()
            self._timeline.look(*box.viewRange()[0])
        self.touch()

    def auto(self) -> None:
        """Let every y range follow the curves again."""
        for name, strip in self.strips.items():
            if name != "cells":
                strip.auto()
        self.touch()

    def touch(self) -> None:
        """Request drawing at the next `redraw`."""
        self._dirty = True

    def redraw(self) -> bool:
        """Draw the range in view if something changed; returns whether it did."""
        if not self._dirty or self._data is None or not self.strips:
            return False
        self._dirty = False
        data, line = self._data, self._timeline
        # About one bin per pixel; each bin is drawn as two points.
        n_max = max(200, int(self.width() - LABEL_WIDTH_PX))
        bins = data.values.view(line.from_s, line.to_s, n_max)
        if "signal" in self.strips:
            self._draw_band(bins)
        for name, strip in self.strips.items():
            if name == "cells":
                self._draw_cells(strip, n_max)
                continue
            for key in strip.curves:
                if key.startswith("over:"):
                    continue
                column = data.signal.columns.get(key, key) if data.signal else key
                strip.draw(key, bins, data.index(column))
            self._draw_overlays(name, strip, n_max)
            least = self._least(bins) if name == "residual" else 0.0
            strip.settle(line.from_s, line.to_s, least)
        self._draw_marks()
        for strip in self.strips.values():
            strip.now.setVisible(not line.follows)
            strip.now.setValue(line.now_s)
        return True

    def _least(self, bins: Bins) -> float:
        """Smallest range of the residual: it shows the noise, and a band of the residual's size."""
        data = self._data
        if not len(bins.t_s):
            return 0.0
        half = bins.high[data.index(BAND)]
        residual = data.index(RESIDUAL)
        most = np.abs([bins.low[residual], bins.high[residual]])
        widest = half[np.isfinite(half)].max(initial=0.0)
        largest = most[np.isfinite(most)].max(initial=data.noise)
        return 2.2 * widest if widest <= WIDE * largest else 4.0 * data.noise

    def _draw_band(self, bins: Bins) -> None:
        data = self._data
        for sign, line in zip((-1.0, 1.0), self._noise_lines, strict=True):
            line.setValue(sign * data.noise)
            line.setVisible(data.noise > 0.0)
        half, i = bins.high[data.index(BAND)], data.index(data.signal.columns["model"])
        known = np.isfinite(half[:-1]) & np.isfinite(bins.low[i, :-1])
        valid = np.flatnonzero(known) if len(bins.t_s) else []
        places = {"x0": bins.t_s[valid], "x1": bins.t_s[1:][valid]}
        half = half[valid]
        low, high = bins.low[i][valid] - half, bins.high[i][valid] + half
        self._bands["signal"].setOpts(**places, y0=low, y1=high)
        self._bands["residual"].setOpts(**places, y0=-half, y1=half)
        self.strips["signal"].reach("band", bins.t_s[valid], low, high)

    def _draw_overlays(self, name: str, strip: Strip, n_max: int) -> None:
        if name not in ("signal", "residual"):
            return
        wanted = {f"over:{key}": value for key, value in self.overlays.items()}
        for key in [k for k in strip.curves if k.startswith("over:") and k not in wanted]:
            strip.plot.removeItem(strip.curves.pop(key))
            strip._shown.pop(key, None)
        for key, (other, shift_s, colour) in wanted.items():
            if other.signal is None:
                continue
            strip.curve(key, colour)
            if name == "residual" and self.differences:
                strip.draw_line(key, *self._difference(other, shift_s, n_max))
                continue
            column = RESIDUAL if name == "residual" else other.signal.columns["measured"]
            line = self._timeline
            bins = other.values.view(line.from_s - shift_s, line.to_s - shift_s, n_max)
            x, y = bins.line(other.index(column))
            strip.draw_line(key, x + shift_s, y)
        if name == "signal" and strip.legend_of != list(wanted):
            strip.legend_of = list(wanted)
            strip.show_legend(self._theme, {k: Path(k.removeprefix("over:")).stem for k in wanted})

    def _difference(
        self, other: RunData, shift_s: float, n_max: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Another run's measured curve minus the open one's, in the range in view."""
        line, curves = self._timeline, []
        for data, moved_s in ((self._data, 0.0), (other, shift_s)):
            t_s, rows = data.values.samples(line.from_s - moved_s, line.to_s - moved_s)
            step = max(1, len(t_s) // (2 * n_max))
            column = data.index(data.signal.columns["measured"])
            curves.append((t_s[::step] + moved_s, rows[column, ::step]))
        (open_s, open_y), (t_s, y) = curves
        if not len(open_s):
            return t_s[:0], y[:0]
        return t_s, y - np.interp(t_s, open_s, open_y, left=np.nan, right=np.nan)

    def _draw_cells(self, strip: Strip, n_max: int) -> None:
        modulated = DUTY in self._data.cells
        line = self._timeline
        cells = self._data.cells[DUTY if modulated else "cells_reported"]
        strip.box.setXRange(line.from_s, line.to_s, padding=0)
        bins = cells.view(line.from_s, line.to_s, n_max)
        edges = np.linspace(line.from_s, line.to_s, n_max + 1)[:-1]
        if not len(bins.t_s):
            self.raster.clear()
            return
        at = np.clip(np.searchsorted(bins.t_s, edges, "right") - 1, 0, None)
        if modulated:
            shade = 0.5 * (bins.low + bins.high)
        else:
            shade = np.where(bins.high == 255, 3, bins.low + bins.high).astype(np.uint8)
        image = np.take(shade, at, axis=1)  # an index leaves strides that Qt draws nothing of
        image[:, (edges < bins.t_s[0]) | (edges > self._data.last_s)] = 0
        self.raster.setImage(image, autoLevels=False, levels=self._raster_levels)
        self.raster.setRect(line.from_s, 0.5, line.to_s - line.from_s, len(image))

    def _draw_marks(self) -> None:
        data = self._data
        state = (len(data.faults), len(data.notes))
        if state == self._n_marks:
            return
        self._n_marks = state
        notes = [n.t_s for n in data.notes if n.level == "note"][-MARKS_MAX:]
        times = [(t_s, self._theme.colour("muted")) for t_s in notes]
        times += [(t_s, self._theme.colour("fault")) for t_s, _ in data.faults[:1]]
        for strip in self.strips.values():
            strip.mark(times)

    # Cursors

    def set_cursors(self, places: tuple[float, float] | None) -> None:
        """Show two draggable vertical lines A and B at these times, s; None hides them."""
        self.cursors = places
        self._place_cursors()
        self.cursors_moved.emit()

    def _place_cursors(self) -> None:
        for strip, lines in zip(self.strips.values(), self._cursor_lines, strict=False):
            for line in lines:
                strip.plot.removeItem(line)
        self._cursor_lines = []
        if self.cursors is None:
            return
        for i, strip in enumerate(self.strips.values()):
            pair = tuple(
                self._cursor(strip, which, name if i == 0 else "")
                for which, name in enumerate("AB")
            )
            self._cursor_lines.append(pair)

    def _cursor(self, strip: Strip, which: int, name: str) -> pg.InfiniteLine:
        line = pg.InfiniteLine(
            self.cursors[which],
            movable=True,
            pen=pg.mkPen(self._theme.accent),
            label=name or None,
            labelOpts={
                "position": 0.94,
                "color": self._theme.on_accent,
                "fill": self._theme.accent,
            },
        )
        line.setZValue(30)
        line.sigPositionChanged.connect(self._mover(which))
        strip.plot.addItem(line, ignoreBounds=True)
        return line

    def _mover(self, which: int) -> Callable[[pg.InfiniteLine], None]:
        def moved(line: pg.InfiniteLine) -> None:
            places = list(self.cursors)
            if places[which] == line.value():
                return
            places[which] = line.value()
            self.cursors = (places[0], places[1])
            for pair in self._cursor_lines:
                pair[which].setValue(line.value())
            self.cursors_moved.emit()

        return moved
