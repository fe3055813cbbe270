"""One recording: measured over simulated force, their difference, and the cells."""

from pathlib import Path

import numpy as np
import pyqtgraph as pg
from PySide6.QtGui import QAction, QColor, QKeySequence
from PySide6.QtWidgets import QFileDialog, QLabel, QMainWindow, QMessageBox

from hil_gui.data import ConfigError, Recording, read_recording

# Okabe & Ito's colours, as in the report.
MEASURED, MODEL, REFERENCE, RESIDUAL, CELL, FAULT = (
    "#0072B2",
    "#D55E00",
    "#000000",
    "#009E73",
    "#E69F00",
    "#CC3311",
)
LABEL_WIDTH_PX = 62


class Window(QMainWindow):
    """Shows one recording at a time; drag to move, wheel to zoom, all plots share time."""

    def __init__(self) -> None:
        super().__init__()
        self.resize(1100, 760)
        self.setWindowTitle("hil")
        open_action = QAction("&Open recording ...", self)
        open_action.setShortcut(QKeySequence.StandardKey.Open)
        open_action.setToolTip("Open a recording (.h5)")
        open_action.triggered.connect(self.choose)
        reset_action = QAction("&Whole run", self)
        reset_action.setShortcut("Home")
        reset_action.setToolTip("Show the whole run again")
        reset_action.triggered.connect(self.show_all)
        for action in (open_action, reset_action):
            self.menuBar().addAction(action)
        self.state = QLabel("Open a recording with Ctrl+O")
        self.statusBar().addWidget(self.state)

        self.canvas = pg.GraphicsLayoutWidget()
        self.setCentralWidget(self.canvas)
        self.force = self._plot(0, "force", "N", 4)
        self.residual = self._plot(1, "difference", "N", 2)
        self.cells = self._plot(2, "cells on", "", 2)
        self.cells.setLabel("bottom", "time", units="s")
        for plot in (self.residual, self.cells):
            plot.setXLink(self.force)
        self.force.addLegend(offset=(-10, 10), brush="#ffffffd0")
        self.measured_curve = self.force.plot(pen=MEASURED, name="measured")
        self.model_curve = self.force.plot(pen=pg.mkPen(MODEL, width=1), name="simulated (twin)")
        dashed = pg.mkPen(REFERENCE, style=pg.QtCore.Qt.PenStyle.DashLine)
        self.reference_curve = self.force.plot(pen=dashed, name="reference")
        self.residual_curve = self.residual.plot(pen=RESIDUAL)
        for curve in (self.measured_curve, self.model_curve, self.residual_curve):
            curve.setDownsampling(auto=True, method="peak")
            curve.setClipToView(True)
        self.raster = pg.ImageItem(axisOrder="row-major")
        self.raster.setLookupTable(np.array([[255, 255, 255, 0], QColor(CELL).getRgb()], np.uint8))
        self.cells.addItem(self.raster)
        self.cells.invertY(True)

    def _plot(self, row: int, label: str, units: str, stretch: int) -> pg.PlotItem:
        plot = self.canvas.addPlot(row=row, col=0)
        plot.setLabel("left", label, units=units)
        plot.getAxis("left").setWidth(LABEL_WIDTH_PX)
        self.canvas.ci.layout.setRowStretchFactor(row, stretch)
        return plot

    def choose(self) -> None:
        """Ask for a recording."""
        name, _ = QFileDialog.getOpenFileName(self, "Open recording", "runs", "Recordings (*.h5)")
        if name:
            self.open(Path(name))

    def open(self, path: Path) -> bool:
        """Show a recording; whether it could be read."""
        try:
            recording = read_recording(path)
        except ConfigError as error:
            QMessageBox.warning(self, "This cannot be opened", str(error))
            return False
        self.show_recording(recording)
        return True

    def show_recording(self, run: Recording) -> None:
        """Draw a run."""
        mark = " — SIMULATED" if run.simulated else ""
        self.setWindowTitle(f"{run.title}{mark}")
        self.force.setTitle(f"{run.title}{mark}", size="11pt")
        causes = f": {', '.join(run.faults)}" if run.faults else ""
        self.state.setText(f"{run.outcome}{causes}   {len(run.t_s)} rows")
        self.state.setStyleSheet(f"color: {FAULT}; font-weight: bold" if run.faults else "")
        self.measured_curve.setData(run.t_s, run.measured_N)
        self.model_curve.setData(run.t_s, run.model_N)
        self.reference_curve.setData(run.t_s, run.reference_N, connect="finite")
        self.residual_curve.setData(run.t_s, run.measured_N - run.model_N)
        self.raster.setImage(run.cells_on.T, levels=(0, 1))
        end_s = run.t_s[-1] if len(run.t_s) else 1.0
        n_cells = len(run.cell_names)
        self.raster.setRect(0.0, 0.5, max(end_s, 1e-9), n_cells)
        step = max(1, n_cells // 7)
        numbers = [(n, str(n)) for n in range(1, n_cells + 1, step)]
        self.cells.getAxis("left").setTicks([numbers])
        self.cells.setYRange(0.4, n_cells + 0.6, padding=0)
        self.show_all()

    def show_all(self) -> None:
        """The whole run in view."""
        self.force.enableAutoRange()
        self.residual.enableAutoRange()
