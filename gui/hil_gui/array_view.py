"""Schematic of an array: masses, springs and cells, moving with the model's displacements."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from math import atan2, degrees, hypot
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from hil_gui.theme import LIGHT, Theme

if TYPE_CHECKING:
    from hil_gui.data import ArrayPicture

LIT_BY = ("state", "duty", "heat")
COLD_C, HOT_C = 20.0, 110.0
"""Range of the temperature colour scale, °C: ambient to above Flexinol HT's austenite finish."""
REACH = 0.3
"""Largest drawn displacement, as a fraction of the distance between layers."""
BESIDE_PX = 19.0
"""Distance between cells that join the same two masses, px."""
MARGIN_PX, SPRING_PX = 34.0, 44.0
"""Beside an end: to the edge, and what its bias spring takes more."""
DETAILED_MAX = 60
"""An array with more cells is drawn with plain lines."""


@dataclass(frozen=True)
class Cells:
    """State of every cell at one instant; every array has shape (N,).

    Attributes
    ----------
    reported, commanded : array of uint8
        1 on, 0 off, 255 unknown.
    duty : array of float
        Fraction of the last second that the cell was on, 0 to 1.
    heat_C : array of float
        Wire temperature in °C; NaN if unknown.
    failed : array of bool
        Cells found failed or open; they are crossed out.
    """

    reported: NDArray[np.uint8]
    commanded: NDArray[np.uint8]
    duty: NDArray[np.float64]
    heat_C: NDArray[np.float64]
    failed: NDArray[np.bool_]


class ArrayView(QWidget):
    """Draws arrays below each other: masses as circles, each cell as a spring and an actuator."""

    def __init__(self) -> None:
        super().__init__()
        self.setMinimumSize(292, 110)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setAccessibleName("Array schematic")
        self.lit_by = "state"
        self.scale = 0.0
        self._theme = LIGHT
        self._pictures: tuple[ArrayPicture, ...] = ()
        self._cells: Cells | None = None
        self._moved_m: dict[str, float] = {}
        self._largest_m = 0.0

    def sizeHint(self) -> QSize:
        return QSize(300, 190)

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.update()

    def set_pictures(self, pictures: tuple[ArrayPicture, ...]) -> None:
        self._pictures = pictures
        self._cells, self._moved_m, self._largest_m = None, {}, 0.0
        self.update()

    def show_state(self, cells: Cells, moved_m: dict[str, float]) -> None:
        """Draw one instant: the cells, and the masses' displacements (m) by model output name."""
        self._cells, self._moved_m = cells, moved_m
        self._largest_m = max([self._largest_m, *(abs(v) for v in moved_m.values())])
        self.update()

    def light_by(self, what: str) -> None:
        self.lit_by = what
        self.update()

    # Drawing

    def paintEvent(self, event) -> None:
        painter = QPainter(self)
        try:
            self.paint(painter, QRectF(self.rect()))
        except Exception:  # PySide 6.11 crashes if an exception leaves a paint event
            sys.excepthook(*sys.exc_info())
        finally:
            painter.end()

    def paint(self, painter: QPainter, area: QRectF) -> None:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.fillRect(area, QColor(self._theme.surface))
        if not self._pictures:
            painter.setPen(QColor(self._theme.muted))
            text = "No array to show: open an experiment or a recording that has one"
            painter.drawText(area, Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap, text)
            return
        legend_px = 20.0
        height = (area.height() - legend_px) / len(self._pictures)
        for i, picture in enumerate(self._pictures):
            place = QRectF(area.left(), area.top() + i * height, area.width(), height)
            self._paint_array(painter, picture, place)
        self._paint_legend(
            painter, QRectF(area.left(), area.bottom() - legend_px, area.width(), legend_px)
        )

    def places(self, picture: ArrayPicture, area: QRectF) -> NDArray[np.float64]:
        """Positions of the masses in px, (M, 2), with displacements magnified by `scale` (px/m)."""
        left, right = (MARGIN_PX + SPRING_PX * sprung for sprung in picture.sprung)
        width, height = area.width() - left - right, area.height() - 2 * 16.0
        x = area.left() + left + width * picture.x
        off = picture.y - 0.5
        most = float(np.abs(off).max())
        y = area.top() + 16.0 + height * (0.5 + off * (0.34 / most if most > 0.0 else 1.0))
        spacing = width / max(len(set(np.round(picture.x, 6))) - 1, 1)
        self.scale = REACH * spacing / self._largest_m if self._largest_m > 1e-9 else 0.0
        moved = np.array([self._moved_m.get(name, 0.0) for name in picture.moves])
        return np.column_stack((x + self.scale * moved, y))

    @staticmethod
    def attachments(
        picture: ArrayPicture, at: NDArray[np.float64], area: QRectF
    ) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """Start and end point of every cell in px.

        Cells that share a wall, or both masses, are drawn side by side.
        """
        last = len(at) - 1
        starts, ends = at[picture.left].copy(), at[picture.right].copy()
        for mass, here, end, side in (
            (0, starts, ends, picture.left),
            (last, ends, starts, picture.right),
        ):
            cells = np.flatnonzero(side == mass)
            order = cells[np.argsort(end[cells, 1], kind="stable")]
            spacing_px = min((area.height() - 60.0) / max(len(cells) - 1, 1), 40.0)
            here[order, 1] += spacing_px * (np.arange(len(order)) - (len(order) - 1) / 2.0)
        pairs = list(zip(picture.left.tolist(), picture.right.tolist(), strict=True))
        for pair in set(pairs):
            alike = [n for n, other in enumerate(pairs) if other == pair]
            aside = BESIDE_PX * (np.arange(len(alike)) - (len(alike) - 1) / 2.0)
            for mass, here in ((pair[0], starts), (pair[1], ends)):
                if mass not in (0, last):
                    here[alike, 1] += aside
        return list(zip(starts, ends, strict=True))

    def _paint_array(self, painter: QPainter, picture: ArrayPicture, area: QRectF) -> None:
        theme, at = self._theme, self.places(picture, area)
        detailed = len(picture.left) <= DETAILED_MAX
        joints = self.attachments(picture, at, area)
        for n, (a, b) in enumerate(joints):
            painter.setPen(QPen(QColor(theme.muted), 1.3))
            for end, mass in ((a, picture.left[n]), (b, picture.right[n])):
                if mass not in (0, len(at) - 1):
                    painter.drawLine(QPointF(*end), QPointF(*at[mass]))
            self._paint_cell(painter, picture, n, a, b, detailed)
        painter.setPen(QPen(QColor(theme.text), 1.2))
        painter.setBrush(QColor(theme.surface))
        last = len(at) - 1
        radius = 6.0 if detailed else 3.0
        for m, (x, y) in enumerate(at):
            if m in (0, last):
                side, place = (picture.left, 0) if m == 0 else (picture.right, 1)
                ys = [joint[place][1] for n, joint in enumerate(joints) if side[n] == m]
                self._paint_end(painter, x, [y, *ys], area, picture, m == 0)
            else:
                painter.drawEllipse(QPointF(x, y), radius, radius)
        painter.setPen(QColor(theme.muted))
        for m, name in ((0, picture.ends[0]), (last, picture.ends[1])):
            left = m == 0
            box = QRectF(
                area.left() + 4 if left else area.right() - 104, area.bottom() - 15, 100, 14
            )
            side = Qt.AlignmentFlag.AlignLeft if left else Qt.AlignmentFlag.AlignRight
            painter.drawText(box, side | Qt.AlignmentFlag.AlignVCenter, name)

    def _paint_end(
        self,
        painter: QPainter,
        x: float,
        ys: Sequence[float],
        area: QRectF,
        picture: ArrayPicture,
        left: bool,
    ) -> None:
        """Draw a wall at a fixed end; at a free end a block that its cells touch, its spring."""
        theme = self._theme
        if not picture.moves[0 if left else -1]:
            self._paint_wall(painter, x, area.top() + 10, area.bottom() - 20, left)
            return
        low, high = min(ys) - 14.0, max(ys) + 14.0
        if picture.sprung[0 if left else 1]:
            middle, out = 0.5 * (low + high), -1.0 if left else 1.0
            wall = x + out * (9.0 + SPRING_PX)
            painter.save()
            painter.setPen(QPen(QColor(theme.muted), 1.3))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.translate(min(x + 9.0 * out, wall), middle)
            painter.drawPath(_spring(0.0, SPRING_PX))
            painter.restore()
            self._paint_wall(painter, wall, middle - 22.0, middle + 22.0, left)
        painter.setBrush(QColor(theme.line))
        painter.drawRect(QRectF(x - 9, low, 18, high - low))
        painter.setBrush(QColor(theme.surface))

    def _paint_wall(
        self, painter: QPainter, x: float, top: float, bottom: float, left: bool
    ) -> None:
        theme = self._theme
        painter.setPen(QPen(QColor(theme.text), 2.0))
        painter.drawLine(QPointF(x, top), QPointF(x, bottom))
        painter.setPen(QPen(QColor(theme.muted), 1.0))
        out = -7.0 if left else 7.0
        for k in np.arange(top + 6, bottom + 1, 8.0):
            painter.drawLine(QPointF(x, k - 6), QPointF(x + out, k))
        painter.setPen(QPen(QColor(theme.text), 1.2))

    def _paint_cell(
        self,
        painter: QPainter,
        picture: ArrayPicture,
        n: int,
        a: NDArray[np.float64],
        b: NDArray[np.float64],
        detailed: bool,
    ) -> None:
        """Draw the cell's spring and actuator in series from a to b."""
        theme = self._theme
        length = max(hypot(b[0] - a[0], b[1] - a[1]), 1.0)
        angle = atan2(b[1] - a[1], b[0] - a[0])
        painter.save()
        painter.translate(a[0], a[1])
        painter.rotate(degrees(angle))
        fill, known = self._fill(int(picture.cells[n])), self._cells
        has_failed = known is not None and bool(known.failed[picture.cells[n]])
        if picture_broken := n in picture.broken:
            painter.setOpacity(0.45)
        if not detailed:
            painter.setPen(QPen(QColor(theme.fault) if has_failed else fill, 2.5))
            painter.drawLine(QPointF(0, 0), QPointF(length, 0))
            painter.restore()
            return
        painter.setPen(QPen(QColor(theme.muted), 1.3))
        stem = 0.06 * length
        painter.drawLine(QPointF(0, 0), QPointF(stem, 0))
        painter.drawPath(_spring(stem, 0.36 * length))
        body_height = min(15.0, 0.6 * length)
        body = QRectF(0.36 * length, -body_height / 2, 0.36 * length, body_height)
        painter.drawLine(QPointF(body.right(), 0), QPointF(length, 0))
        painter.setPen(QPen(QColor(theme.text), 1.1))
        painter.setBrush(fill)
        painter.drawRoundedRect(body, 3, 3)
        self._paint_number(painter, n, body, fill, angle)
        if picture_broken or n in picture.dead or has_failed:
            painter.setOpacity(1.0)
            painter.setPen(QPen(QColor(theme.fault), 2.0))
            cross = body.adjusted(2, -3, -2, 3)
            painter.drawLine(cross.topLeft(), cross.bottomRight())
            painter.drawLine(cross.bottomLeft(), cross.topRight())
        painter.restore()

    @staticmethod
    def _paint_number(painter: QPainter, n: int, body: QRectF, fill: QColor, angle: float) -> None:
        if body.width() < 16.0:
            return
        painter.save()
        painter.translate(body.center())
        painter.rotate(-degrees(angle))
        font = painter.font()
        font.setPixelSize(10)
        font.setBold(True)
        painter.setFont(font)
        painter.setPen(QColor("#101010") if fill.lightnessF() > 0.45 else QColor("#f4f4f4"))
        painter.drawText(QRectF(-20, -8, 40, 16), Qt.AlignmentFlag.AlignCenter, str(n + 1))
        painter.restore()

    def _fill(self, cell: int) -> QColor:
        theme, cells = self._theme, self._cells
        if cells is None:
            return QColor(theme.cell_off)
        if self.lit_by == "heat":
            heat_C = float(cells.heat_C[cell])
            if np.isnan(heat_C):
                return QColor(theme.line)
            return _between(theme.cell_off, theme.fault, (heat_C - COLD_C) / (HOT_C - COLD_C))
        if self.lit_by == "duty":
            return _between(theme.cell_off, theme.cell, float(cells.duty[cell]))
        reported = int(cells.reported[cell])
        if reported == 255:
            return QColor(theme.line)
        if reported:
            return QColor(theme.cell)
        return QColor(theme.cell_mixed if cells.commanded[cell] == 1 else theme.cell_off)

    def _paint_legend(self, painter: QPainter, area: QRectF) -> None:
        theme = self._theme
        entries = {
            "state": [("on", theme.cell), ("commanded", theme.cell_mixed), ("off", theme.cell_off),
                      ("unknown", theme.line)],
            "duty": [("off", theme.cell_off), ("always on", theme.cell)],
            "heat": [(f"{COLD_C:g} °C", theme.cell_off), (f"{HOT_C:g} °C", theme.fault)],
        }[self.lit_by]  # fmt: skip
        font = painter.font()
        font.setPixelSize(11)
        painter.setFont(font)
        x, middle = area.left() + 8, area.center().y()
        for word, colour in entries:
            painter.setPen(QPen(QColor(theme.text), 0.8))
            painter.setBrush(QColor(colour))
            painter.drawRoundedRect(QRectF(x, middle - 5, 10, 10), 2, 2)
            painter.setPen(QColor(theme.muted))
            width = painter.fontMetrics().horizontalAdvance(word)
            painter.drawText(QPointF(x + 14, middle + 4), word)
            x += width + 26
        if self.scale > 0.0 and self._largest_m > 0.0:
            word = f"largest displacement {1e3 * self._largest_m:.2g} mm"
            width = painter.fontMetrics().horizontalAdvance(word)
            if x + width < area.right() - 8:
                painter.drawText(QPointF(area.right() - 8 - width, middle + 4), word)


def _spring(start: float, end: float) -> QPainterPath:
    path = QPainterPath(QPointF(start, 0.0))
    lead = 0.12 * (end - start)
    turns = 6
    width = (end - start - 2 * lead) / turns
    path.lineTo(start + lead, 0.0)
    for k in range(turns):
        path.lineTo(start + lead + (k + 0.5) * width, 5.0 if k % 2 else -5.0)
    path.lineTo(end - lead, 0.0)
    path.lineTo(end, 0.0)
    return path


def _between(low: str, high: str, share: float) -> QColor:
    """Interpolate between two colours; `share` is clipped to 0..1, NaN gives `low`."""
    share = min(max(share, 0.0), 1.0) if share == share else 0.0
    a, b = QColor(low), QColor(high)
    mixed = [
        round((1 - share) * p + share * q) for p, q in zip(a.getRgb(), b.getRgb(), strict=True)
    ]
    return QColor(*mixed)
