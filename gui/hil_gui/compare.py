"""Runs laid over the one that is open, all moved so that an event of theirs falls together."""

from math import isnan, nan
from pathlib import Path

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QIcon, QPixmap
from PySide6.QtWidgets import (
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

EVENTS = ("start of the run", "first cell on", "first step of the set point", "trip", "first note")
COLOURS = (3, 4, 5)
"""Places in the theme's series that the run which is open does not use."""


def event_time_s(data: RunData, event: str) -> float:
    """When an event came in a run; NaN where it did not."""
    if event == "first cell on" and "cells_reported" in data.cells:
        t_s, on = data.cells["cells_reported"].samples(-np.inf, np.inf)
        found = np.flatnonzero((on == 1).any(axis=0))
        return float(t_s[found[0]]) if len(found) else nan
    if event == "first step of the set point":
        if data.signal is None or "reference" not in data.signal.columns:
            return nan
        t_s, rows = data.values.samples(-np.inf, np.inf)
        reference = rows[data.index(data.signal.columns["reference"])]
        found = np.flatnonzero(np.diff(reference) != 0.0)
        found = found[np.isfinite(reference[found]) & np.isfinite(reference[found + 1])]
        return float(t_s[found[0] + 1]) if len(found) else nan
    if event == "trip":
        return data.faults[0][0] if data.faults else nan
    if event == "first note":
        return next((note.t_s for note in data.notes if note.level == "note"), nan)
    return 0.0


class Compare(QWidget):
    """The list of runs laid over, and at which event."""

    def __init__(self, session: Session, traces: Traces) -> None:
        super().__init__()
        self._session = session
        self._traces = traces
        self._theme = LIGHT
        self._runs: dict[str, RunData] = {}
        self._waiting: list[Path] = []
        column = QVBoxLayout(self)
        column.setContentsMargins(SPACE, SPACE // 2, SPACE, SPACE // 2)
        column.setSpacing(SPACE // 2)
        row = QHBoxLayout()
        self.add_button = QPushButton("Lay over …")
        self.add_button.setToolTip("Choose recordings to lay over this one (Ctrl+L)")
        self.remove_button = QPushButton("Take away")
        self.remove_button.setToolTip("Take the selected runs away")
        self.align = QComboBox()
        self.align.addItems(EVENTS)
        self.align.setToolTip("Event that falls together in all runs")
        self.align.setAccessibleName("Align at")
        row.addWidget(self.add_button)
        row.addWidget(self.remove_button)
        row.addWidget(Label("align at"))
        row.addWidget(self.align)
        row.addStretch(1)
        column.addLayout(row)
        self.table = QTableWidget(0, 5)
        plain_table(self.table, ["run", "moved by", "RMS", "NRMSE", "VAF"], wide=0)
        column.addWidget(self.table, 1)
        self.add_button.clicked.connect(self.choose)
        self.remove_button.clicked.connect(self.remove_selected)
        self.align.currentTextChanged.connect(self.refresh)

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.refresh()

    @property
    def names(self) -> list[str]:
        """Recordings laid over."""
        return list(self._runs)

    def choose(self) -> None:
        """Ask for recordings."""
        folder = self._session.folder()
        names, _ = QFileDialog.getOpenFileNames(self, "Lay over", folder, "Recordings (*.h5)")
        self.add([Path(name) for name in names])

    def add(self, paths: list[Path]) -> None:
        """Read recordings and lay them over, one after another."""
        self._waiting += paths
        self._next(True)

    def _next(self, whole: bool) -> None:
        if not whole:
            self._waiting.clear()
        if not self._waiting or self._session.jobs.is_busy:
            self.refresh()
            return
        path = self._waiting.pop(0)
        try:
            feed = Feed(File(path))
        except ConfigError as error:
            self._session.complain("This cannot be laid over", str(error))
            self._next(True)
            return

        def done(whole: bool) -> None:
            if whole:
                self._runs[str(path)] = feed.data
            self._next(whole)

        self._session.jobs.start(f"Reading {path.name}", feed.load(), done)

    def remove_selected(self) -> None:
        """Take the selected runs away; all of them where none is selected."""
        rows = sorted({index.row() for index in self.table.selectedIndexes()})
        names = self.names
        for name in [names[i] for i in rows] if rows else names:
            del self._runs[name]
        self.refresh()

    def refresh(self) -> None:
        """Move every run to where the event falls together, and draw them."""
        event = self.align.currentText()
        main = self._session.data
        main_s = event_time_s(main, event) if main is not None else 0.0
        overlays: dict[str, tuple[RunData, float, QColor]] = {}
        self.table.setRowCount(len(self._runs))
        for i, (name, data) in enumerate(self._runs.items()):
            shift_s = main_s - event_time_s(data, event)
            colour = QColor(self._theme.series[COLOURS[i % len(COLOURS)]])
            if not isnan(shift_s):
                overlays[name] = (data, shift_s, colour)
            figures, _ = data.figures_at(data.last_s)
            moved = "has no such event" if isnan(shift_s) else f"{shift_s:+.3f} s"
            units = data.signal.units if data.signal else ""
            vaf = "constant" if figures.held else f"{100 * figures.vaf:.2f} %"
            texts = [Path(name).name, moved, si(figures.rms, units, 3),
                     f"{100 * figures.nrmse:.2f} %", vaf]  # fmt: skip
            for j, text in enumerate(texts):
                self.table.setItem(i, j, QTableWidgetItem(text))
            swatch = QPixmap(12, 12)
            swatch.fill(colour)
            self.table.item(i, 0).setIcon(QIcon(swatch))
            self.table.item(i, 0).setData(Qt.ItemDataRole.ToolTipRole, name)
        self._traces.overlays = overlays
        self._traces.touch()
