"""Overlay of other runs on the open one, aligned in time at a chosen event."""

from math import isnan, nan
from pathlib import Path

import numpy as np
from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QColor, QIcon, QPixmap
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QFileDialog,
    QHBoxLayout,
    QPushButton,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from hil_gui.data import ConfigError, File
from hil_gui.feed import Feed
from hil_gui.plain import Label
from hil_gui.run_data import RunData
from hil_gui.session import Session
from hil_gui.tables import plain_table
from hil_gui.theme import LIGHT, SPACE, Theme
from hil_gui.traces import Traces
from hil_gui.units import si

BEST_LAG = "best lag"
EVENTS = ("start of the run", "first cell on", "first step of the set point", "trip", "first note",
          BEST_LAG)  # fmt: skip
LAG_POINTS = 1 << 14
COLOURS = (3, 4, 5)
"""Indices into the theme's series of the colours that the open run does not use."""


def event_time_s(data: RunData, event: str) -> float:
    """Time of an event in a run; NaN if the run has no such event."""
    if event == "first cell on" and "cells_reported" in data.cells:
        t_s, on = data.cells["cells_reported"].samples(-np.inf, np.inf)
        rises = np.flatnonzero((on == 1).any(axis=0))
        return float(t_s[rises[0]]) if len(rises) else nan
    if event == "first step of the set point":
        if data.signal is None or "reference" not in data.signal.columns:
            return nan
        t_s, rows = data.values.samples(-np.inf, np.inf)
        reference = rows[data.index(data.signal.columns["reference"])]
        rises = np.flatnonzero(np.diff(reference) != 0.0)
        rises = rises[np.isfinite(reference[rises]) & np.isfinite(reference[rises + 1])]
        return float(t_s[rises[0] + 1]) if len(rises) else nan
    if event == "trip":
        return data.faults[0][0] if data.faults else nan
    if event == "first note":
        return next((note.t_s for note in data.notes if note.level == "note"), nan)
    return 0.0


def best_lag_s(main: RunData, other: RunData) -> float:
    """Time by which to shift a run so that its measured curve is nearest to the open one's.

    The mean square of their difference is least, over all shifts by which half a run overlaps.

    NaN where one has no measured signal.
    """
    curves = [curve for data in (main, other) if (curve := _measured(data)) is not None]
    if len(curves) < 2:
        return nan
    period_s = max(t_s[-1] - t_s[0] for t_s, _ in curves) / LAG_POINTS
    a, b = (np.interp(np.arange(t_s[0], t_s[-1], period_s), t_s, y) for t_s, y in curves)
    n = 2 * max(len(a), len(b))
    crossed = np.fft.irfft(np.fft.rfft(a, n) * np.conj(np.fft.rfft(b, n)), n)
    lags = np.arange(-(len(b) // 2), len(a) // 2 + 1)  # at least half of a run overlaps
    first, last = np.maximum(lags, 0), np.minimum(len(a), len(b) + lags)
    power_a, power_b = (np.concatenate(([0.0], np.cumsum(y**2))) for y in (a, b))
    squares = power_a[last] - power_a[first] + power_b[last - lags] - power_b[first - lags]
    lag = int(lags[np.argmin((squares - 2.0 * crossed[lags]) / (last - first))])
    return lag * period_s + curves[0][0][0] - curves[1][0][0]


def _measured(data: RunData) -> tuple[np.ndarray, np.ndarray] | None:
    """Times and values of the measured signal, where it is known."""
    if data.signal is None:
        return None
    t_s, rows = data.values.samples(-np.inf, np.inf)
    y = rows[data.index(data.signal.columns["measured"])]
    known = np.isfinite(y)
    return (t_s[known], y[known]) if known.sum() > 2 else None


class Compare(QWidget):
    """List of the overlaid runs and choice of the event that aligns them."""

    changed = Signal(set)  # paths of the runs that are overlaid, or are being read for it

    def __init__(self, session: Session, traces: Traces) -> None:
        super().__init__()
        self._session = session
        self._traces = traces
        self._theme = LIGHT
        self._runs: dict[Path, RunData] = {}
        self._waiting: list[Path] = []
        column = QVBoxLayout(self)
        column.setContentsMargins(SPACE, SPACE // 2, SPACE, SPACE // 2)
        column.setSpacing(SPACE // 2)
        row = QHBoxLayout()
        self.add_button = QPushButton("Overlay …")
        self.add_button.setToolTip("Choose recordings to draw over this one (Ctrl+L)")
        self.remove_button = QPushButton("Remove")
        self.remove_button.setToolTip("Remove the selected runs; all if none is selected")
        self.align = QComboBox()
        self.align.addItems(EVENTS)
        self.align.setToolTip("Event at which all runs are aligned")
        self.align.setAccessibleName("Align at")
        row.addWidget(self.add_button)
        row.addWidget(self.remove_button)
        row.addWidget(Label("align at"))
        row.addWidget(self.align)
        self.differences = QCheckBox("differences")
        self.differences.setToolTip(
            "Below the force draw each run minus the open one, in place of its residual"
        )
        row.addWidget(self.differences)
        row.addStretch(1)
        column.addLayout(row)
        self.table = QTableWidget(0, 5)
        plain_table(self.table, ["run", "time shift", "RMS", "NRMSE", "VAF"], wide=0)
        column.addWidget(self.table, 1)
        self.add_button.clicked.connect(self.choose)
        self.remove_button.clicked.connect(self.remove_selected)
        self.align.currentTextChanged.connect(self.refresh)
        self.differences.toggled.connect(self.refresh)
        session.jobs.idle.connect(self._next)

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.refresh()

    @property
    def paths(self) -> list[Path]:
        """The overlaid recordings."""
        return list(self._runs)

    def choose(self) -> None:
        """Ask for recordings."""
        folder = self._session.folder()
        names, _ = QFileDialog.getOpenFileNames(self, "Overlay", folder, "Recordings (*.h5)")
        self.add([Path(name) for name in names])

    def add(self, paths: list[Path]) -> None:
        """Read recordings one after another and overlay them."""
        self._waiting += [path.resolve() for path in paths]
        self._next()

    def tick(self, path: Path, on: bool) -> None:
        """Overlay a recording, or take it away."""
        if on:
            self.add([path])
        elif self._runs.pop(path, None) is not None:
            self.refresh()

    def _next(self) -> None:
        """Read the next one, unless something else is being read."""
        if not self._waiting or self._session.jobs.is_busy:
            self.refresh()
            return
        path = self._waiting.pop(0)
        try:
            feed = Feed(File(path))
        except ConfigError as error:
            self._session.complain("Not overlaid", str(error))
            self._next()
            return

        def done(is_complete: bool) -> None:
            if is_complete:
                self._runs[path] = feed.data
            else:
                self._waiting.clear()
                self.refresh()

        self._session.jobs.start(f"Reading {path.name}", feed.load(), done)

    def remove_selected(self) -> None:
        """Remove the selected runs; all of them if none is selected."""
        rows = sorted({index.row() for index in self.table.selectedIndexes()})
        paths = self.paths
        for path in [paths[i] for i in rows] if rows else paths:
            del self._runs[path]
        self.refresh()

    def refresh(self) -> None:
        """Align all runs at the event, fill the table and redraw."""
        event = self.align.currentText()
        main = self._session.data
        main_s = event_time_s(main, event) if main is not None else 0.0
        overlays: dict[str, tuple[RunData, float, QColor]] = {}
        self.table.setRowCount(len(self._runs))
        for i, (path, data) in enumerate(self._runs.items()):
            if event == BEST_LAG:
                shift_s = nan if main is None else best_lag_s(main, data)
            else:
                shift_s = main_s - event_time_s(data, event)
            colour = QColor(self._theme.series[COLOURS[i % len(COLOURS)]])
            if not isnan(shift_s):
                overlays[str(path)] = (data, shift_s, colour)
            figures, _ = data.figures_at(data.last_s)
            moved = "event missing" if isnan(shift_s) else f"{shift_s:+.3f} s"
            units = data.signal.units if data.signal else ""
            vaf = "constant" if figures.held else f"{100 * figures.vaf:.2f} %"
            texts = [path.name, moved, si(figures.rms, units, 3),
                     f"{100 * figures.nrmse:.2f} %", vaf]  # fmt: skip
            for j, text in enumerate(texts):
                self.table.setItem(i, j, QTableWidgetItem(text))
            swatch = QPixmap(12, 12)
            swatch.fill(colour)
            self.table.item(i, 0).setIcon(QIcon(swatch))
            self.table.item(i, 0).setData(Qt.ItemDataRole.ToolTipRole, str(path))
        self._traces.overlays = overlays
        self._traces.differences = self.differences.isChecked()
        self._traces.touch()
        self.changed.emit({*self._runs, *self._waiting})
