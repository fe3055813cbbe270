"""A limb moved by muscles as a stick figure: bones, and muscles coloured by their activation."""

from __future__ import annotations

from collections.abc import Sequence
from math import log10, nan
from typing import TYPE_CHECKING

import numpy as np
import pyqtgraph as pg
from numpy.typing import NDArray
from PySide6.QtGui import QColor

from hil_gui.run_data import RunData
from hil_gui.theme import LIGHT, Theme

if TYPE_CHECKING:
    from hil_gui.data import StickFigure

LEAST, MOST = 0.001, 1.0
"""Range of the colour scale of activation. It is logarithmic: holding a foot needs only 0.0136."""
MUSCLE_PX, BONE_PX = 5.0, 3.0
RELAXED_BELOW, NAMED_MAX = 0.002, 4
"""With more than NAMED_MAX muscles, those with activation below RELAXED_BELOW get no label."""


class LimbFigure:
    """Draws one limb in a plot."""

    def __init__(self, plot: pg.PlotWidget) -> None:
        self._plot = plot
        self._theme: Theme = LIGHT
        self._picture: StickFigure | None = None
        self._bones: list[pg.PlotDataItem] = []
        self._muscles: list[pg.PlotDataItem] = []
        self._labels: list[pg.TextItem] = []

    @property
    def is_shown(self) -> bool:
        return self._picture is not None

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.set_picture(self._picture)

    def set_picture(self, picture: StickFigure | None) -> None:
        """Draw this limb in its start pose; None removes the limb."""
        for item in (*self._bones, *self._muscles, *self._labels):
            self._plot.removeItem(item)
        self._picture = picture
        self._bones, self._muscles, self._labels = [], [], []
        if picture is None:
            return
        theme, plot = self._theme, self._plot
        bone = pg.mkPen(theme.muted, width=BONE_PX, cosmetic=True)
        for _ in picture.bones:
            curve = plot.plot(pen=bone, symbol="o", symbolSize=6, symbolPen=None,
                              symbolBrush=QColor(theme.muted))  # fmt: skip
            self._bones.append(curve)
        for _ in picture.muscles:
            self._muscles.append(plot.plot())
            label = pg.TextItem(color=theme.text)
            plot.addItem(label, ignoreBounds=True)
            self._labels.append(label)
        self.show(picture.start, [nan] * len(picture.muscles))
        plot.autoRange(padding=0.08)

    def show_run(self, data: RunData, now_s: float) -> None:
        """Draw the limb at an instant of a run."""
        picture = self._picture
        if picture is None or not all(data.has(name) for name in picture.angles):
            return
        row = data.at(now_s)
        angles = np.array([row[name] for name in picture.angles])
        if np.isfinite(angles).all():
            self.show(angles, [row.get(name, nan) for name in picture.activations])

    def show(self, angles: NDArray[np.float64], activations: Sequence[float]) -> None:
        """Draw the limb in this pose; an activation is NaN if unknown."""
        assert self._picture is not None
        bones, muscles = self._picture.place(angles)
        for curve, line in zip(self._bones, bones, strict=True):
            curve.setData(line[:, 0], line[:, 1])
        names = self._picture.muscles
        for i, (line, q) in enumerate(zip(muscles, activations, strict=True)):
            self._muscles[i].setPen(pg.mkPen(self.colour(q), width=MUSCLE_PX, cosmetic=True))
            self._muscles[i].setData(line[:, 0], line[:, 1])
            middle, forward = _middle(line, bones)
            relaxed = q < RELAXED_BELOW and len(names) > NAMED_MAX
            text = f"{names[i]} {q:.3f}" if q == q else names[i]
            self._labels[i].setText("" if relaxed else text)
            self._labels[i].setAnchor((-0.1 if forward else 1.1, 0.5))
            self._labels[i].setPos(*middle)

    def colour(self, activation: float) -> QColor:
        """Colour of a muscle: logarithmic scale from relaxed to fully active."""
        if activation != activation:
            return QColor(self._theme.line)
        span = log10(MOST) - log10(LEAST)
        share = (log10(min(max(activation, LEAST), MOST)) - log10(LEAST)) / span
        a, b = QColor(self._theme.line), QColor(self._theme.fault)
        mixed = [
            (1.0 - share) * x + share * y for x, y in zip(a.getRgbF(), b.getRgbF(), strict=True)
        ]
        return QColor.fromRgbF(*mixed)


def _middle(
    line: NDArray[np.float64], bones: Sequence[NDArray[np.float64]]
) -> tuple[tuple[float, float], bool]:
    """Midpoint of a muscle, and whether it lies in front of the bones at that height."""
    steps = np.linalg.norm(np.diff(line, axis=0), axis=1)
    along = np.concatenate(([0.0], np.cumsum(steps)))
    half = 0.5 * along[-1]
    x, y = (float(np.interp(half, along, line[:, k])) for k in (0, 1))
    joints = np.array(sorted((bone[0] for bone in bones), key=lambda at: at[1]))
    return (x, y), bool(x >= np.interp(y, joints[:, 1], joints[:, 0]))
