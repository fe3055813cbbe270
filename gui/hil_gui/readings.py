"""Large readings, agreement of the twin, lateness of the loop."""

from math import isnan

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QGridLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget

from hil_gui.plain import Label
from hil_gui.run_data import RunData
from hil_gui.running import LATE_EDGES_S
from hil_gui.theme import SPACE, Theme, numbers
from hil_gui.units import si


class Numbers(QWidget):
    """Shows the newest readings and the twin's agreement so far."""

    def __init__(self) -> None:
        super().__init__()
        grid = QGridLayout(self)
        grid.setContentsMargins(SPACE, SPACE, SPACE, SPACE)
        grid.setHorizontalSpacing(SPACE)
        grid.setVerticalSpacing(2)
        self._captions: dict[str, QLabel] = {}
        self.values: dict[str, QLabel] = {}
        entries = [
            ("measured", "measured", "Newest reading"),
            ("model", "twin", "Model simulated beside the rig, open loop from the reported cells"),
            ("residual", "residual", "Measured minus twin"),
            ("rms", "RMS", "Root mean square of the residual since the start"),
            (
                "nrmse",
                "NRMSE",
                "RMS of the residual divided by the measured range, since the start",
            ),
            (
                "vaf",
                "VAF",
                "Variance accounted for: 1 - var(residual)/var(measured). "
                "'constant': not meaningful, because the signal hardly exceeds its noise",
            ),
        ]
        for i, (key, word, tip) in enumerate(entries):
            caption, value = Label(word), Label("–")
            caption.setProperty("role", "muted")
            value.setFont(numbers(15.0 if i < 3 else 11.0, bold=i < 3))
            value.setToolTip(tip)
            value.setAccessibleName(word)
            row, column = 2 * (i // 3), i % 3
            grid.addWidget(caption, row, column)
            grid.addWidget(value, row + 1, column)
            grid.setColumnStretch(column, 1)
            self._captions[key], self.values[key] = caption, value
        self.untold = Label("")
        self.untold.setProperty("role", "muted")
        self.untold.setWordWrap(True)
        self.untold.setMinimumHeight(2 * self.untold.fontMetrics().lineSpacing() + 2)
        self.untold.setAccessibleName("What the twin is not told of")
        self.untold.hide()
        grid.addWidget(self.untold, 4, 0, 1, 3)
        grid.setRowStretch(5, 1)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)

    def set_theme(self, theme: Theme) -> None:
        for key, name in (("measured", "measured"), ("model", "model"), ("residual", "residual")):
            self.values[key].setStyleSheet(f"color: {theme.colour(name).name()}")

    def show_run(self, data: RunData | None, now_s: float) -> None:
        for label in self.values.values():
            label.setText("–")
        told = f"The twin is not told of {data.about.untold}" if data and data.about.untold else ""
        self.untold.setText(told)
        self.untold.setVisible(bool(told))
        if data is None or data.signal is None or not data.n_rows:
            return
        row, (figures, _) = data.at(now_s), data.figures_at(now_s)
        units = data.signal.units
        measured, model = (row[data.signal.columns[k]] for k in ("measured", "model"))
        self.values["measured"].setText(_reading(measured, units))
        self.values["model"].setText(_reading(model, units))
        self.values["residual"].setText(si(measured - model, units, 3))
        self.values["rms"].setText(si(figures.rms, units, 3))
        self.values["nrmse"].setText(_percent(figures.nrmse))
        self.values["vaf"].setText("constant" if figures.held else _percent(figures.vaf))


def _reading(value: float, units: str) -> str:
    if isnan(value):
        return "–"
    return f"{value:.3f} {units}" if units == "N" else si(value, units)


def _percent(share: float) -> str:
    return "–" if isnan(share) else f"{100.0 * share:.2f} %"


class Timing(QWidget):
    """Histogram of how late the loop's ticks started."""

    def __init__(self) -> None:
        super().__init__()
        column = QVBoxLayout(self)
        column.setContentsMargins(SPACE, SPACE // 2, SPACE, SPACE // 2)
        self.plot = pg.PlotWidget(enableMenu=False)
        self.plot.setMouseEnabled(False, False)
        self.plot.hideButtons()
        self.plot.setMinimumHeight(96)
        self.plot.setLabel("bottom", "lateness of the ticks")
        self.plot.getAxis("left").setWidth(44)
        self.plot.setLogMode(False, False)
        ticks = [(e, w) for e, w in ((-6, "1 µs"), (-5, "10 µs"), (-4, "0.1 ms"), (-3, "1 ms"),
                                     (-2, "10 ms"))]  # fmt: skip
        self.plot.getAxis("bottom").setTicks([ticks])
        edges = np.log10(LATE_EDGES_S)
        self.bars = pg.BarGraphItem(x0=edges[:-1], x1=edges[1:], height=np.zeros(len(edges) - 1))
        self.plot.addItem(self.bars)
        self.period = pg.InfiniteLine(angle=90)
        self.plot.addItem(self.period, ignoreBounds=True)
        self.plot.setXRange(edges[0], edges[-1], padding=0.02)
        self.text = Label("")
        self.text.setProperty("role", "muted")
        self.text.setWordWrap(True)
        column.addWidget(self.plot, 1)
        column.addWidget(self.text)
        self._counts = np.zeros(0)

    def set_theme(self, theme: Theme) -> None:
        self.plot.setBackground(theme.surface)
        for name in ("left", "bottom"):
            axis = self.plot.getAxis(name)
            axis.setPen(theme.line)
            axis.setTextPen(theme.muted)
        self.bars.setOpts(brush=QColor(theme.accent), pen=QColor(theme.surface))
        self.period.setPen(pg.mkPen(theme.fault, style=Qt.PenStyle.DashLine))

    def show_run(self, data: RunData | None, now_s: float) -> None:
        if data is None or not data.n_rows:
            self._counts = np.zeros(len(LATE_EDGES_S) - 1)
            self.bars.setOpts(height=self._counts)
            self.plot.setYRange(0.0, 1.0, padding=0)
            self.text.setText("")
            return
        _, counts = data.figures_at(now_s)
        if not np.array_equal(counts, self._counts):
            self._counts = counts.copy()
            self.bars.setOpts(height=counts)
            self.plot.setYRange(0.0, max(1.1 * counts.max(), 1.0), padding=0)
        self.period.setValue(np.log10(data.about.period_s))
        row = data.at(now_s)
        if data.about.clock == "virtual":
            self.text.setText("virtual clock: timing not tested")
        else:
            share = counts[LATE_EDGES_S[:-1] >= data.about.period_s].sum() / max(counts.sum(), 1)
            lost = f", {data.n_lost} rows not shown here" if data.n_lost else ""
            self.text.setText(
                f"late {si(row.get('late_s', np.nan), 's', 3)}, busy "
                f"{si(row.get('busy_s', np.nan), 's', 3)}; "
                f"later than a period {100 * share:.2f} %{lost}"
            )
