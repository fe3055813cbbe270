"""Tables beside the plots: reading ages, events, cursor readings, list of columns."""

import re

import numpy as np
from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QColor
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QListWidget,
    QListWidgetItem,
    QTableWidget,
    QTableWidgetItem,
)

from hil_gui.plain import tip
from hil_gui.run_data import RunData
from hil_gui.theme import LIGHT, Theme
from hil_gui.traces import WORDS, Traces
from hil_gui.units import si


def plain_table(table: QTableWidget, heads: list[str], wide: int = -1) -> None:
    table.setHorizontalHeaderLabels(heads)
    table.verticalHeader().hide()
    table.verticalHeader().setDefaultSectionSize(22)
    table.setShowGrid(False)
    table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
    table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
    table.setTabKeyNavigation(False)
    header = table.horizontalHeader()
    header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
    header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
    header.setSectionResizeMode(
        wide if wide >= 0 else len(heads) - 1, QHeaderView.ResizeMode.Stretch
    )


def _by_number(name: str) -> list[tuple[int, str]]:
    """Sort key that puts `muscle.2` before `muscle.10`."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", name)]


class Ages(QTableWidget):
    """Age of every device's reading at the tick, and its limit."""

    def __init__(self) -> None:
        super().__init__(0, 3)
        plain_table(self, ["device", "age", "limit"])
        self._theme = LIGHT
        self._limit_s = float("nan")

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme

    def set_run(self, data: RunData | None) -> None:
        names = [] if data is None else [n for n in data.names if n.endswith("_age_s")]
        self.setRowCount(len(names))
        guard = {} if data is None else data.about.settings.get("guard", {})
        self._limit_s = float(guard.get("reading_age_max_s", "nan"))
        for i, name in enumerate(names):
            for j, text in enumerate((name.removesuffix("_age_s"), "–", si(self._limit_s, "s"))):
                self.setItem(i, j, QTableWidgetItem(text))
            self.item(i, 0).setData(Qt.ItemDataRole.UserRole, name)

    def show_run(self, data: RunData | None, now_s: float) -> None:
        if data is None or not data.n_rows:
            return
        row = data.at(now_s)
        for i in range(self.rowCount()):
            age_s = row[self.item(i, 0).data(Qt.ItemDataRole.UserRole)]
            item = self.item(i, 1)
            item.setText(si(age_s, "s", 3))
            stale = not age_s <= self._limit_s
            item.setForeground(QColor(self._theme.fault if stale else self._theme.text))


class Log(QTableWidget):
    """Events, operator inputs and notes, newest last."""

    chosen = Signal(float)

    def __init__(self) -> None:
        super().__init__(0, 3)
        plain_table(self, ["time", "source", "event"])
        self._theme = LIGHT
        self._n = 0
        self._run: RunData | None = None
        self.itemActivated.connect(self._activated)
        self.setToolTip("Enter or double click: go to that instant")

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.set_run(self._run)

    def set_run(self, data: RunData | None) -> None:
        self.setRowCount(0)
        self._n, self._run = 0, data
        self.show_run(data, 0.0)

    def show_run(self, data: RunData | None, now_s: float) -> None:
        del now_s
        new = [] if data is None else data.notes[self._n :]
        if not new:
            return
        self._n += len(new)
        colours = {"fault": "fault", "error": "fault", "warning": "warning", "note": "accent"}
        for note in new:
            i = self.rowCount()
            self.insertRow(i)
            for j, text in enumerate((f"{note.t_s:.3f} s", note.source, note.text)):
                item = QTableWidgetItem(text)
                item.setForeground(QColor(getattr(self._theme, colours.get(note.level, "text"))))
                item.setData(Qt.ItemDataRole.UserRole, note.t_s)
                item.setToolTip(tip(text))
                self.setItem(i, j, item)
        self.scrollToBottom()

    def _activated(self, item: QTableWidgetItem) -> None:
        self.chosen.emit(float(item.data(Qt.ItemDataRole.UserRole)))


class CursorTable(QTableWidget):
    """Readings of the two cursors on every drawn curve."""

    HEADS = ("curve", "A", "B", "B − A", "mean", "RMS", "min", "max")

    def __init__(self) -> None:
        super().__init__(0, len(self.HEADS))
        plain_table(self, list(self.HEADS), wide=0)
        self.setToolTip("Drag cursors A and B in the plots; C shows and hides them")

    def show_cursors(self, data: RunData | None, traces: Traces) -> None:
        if data is None or traces.cursors is None or not data.n_rows:
            self.setRowCount(0)
            return
        a_s, b_s = traces.cursors
        rows = [("time", "s", a_s, b_s, None)]
        _, inside = data.values.samples(min(a_s, b_s), np.nextafter(max(a_s, b_s), np.inf))
        at = [data.values.at(t) for t in (a_s, b_s)]
        for column, units, word in self._curves(data, traces):
            i = data.index(column)
            rows.append((word, units, float(at[0][i]), float(at[1][i]), inside[i]))
        self.setRowCount(len(rows))
        for r, (word, units, a, b, between) in enumerate(rows):
            stats = ["", "", "", ""]
            if between is not None and np.isfinite(between).any():
                x = between[np.isfinite(between)]
                stats = [x.mean(), np.sqrt(np.mean(x**2)), x.min(), x.max()]
                stats = [si(float(v), units) for v in stats]
            texts = [word, si(a, units, 6), si(b, units, 6), si(b - a, units, 6), *stats]
            for j, text in enumerate(texts):
                self.setItem(r, j, QTableWidgetItem(text))

    @staticmethod
    def _curves(data: RunData, traces: Traces) -> list[tuple[str, str, str]]:
        curves = []
        if data.signal is not None:
            for kind in WORDS:
                if kind in traces.kinds_shown and kind in data.signal.columns:
                    curves.append((data.signal.columns[kind], data.signal.units, WORDS[kind]))
            curves.append(("residual", data.signal.units, "residual"))
        for name in traces.chosen:
            column = data.about.column(name)
            if column is not None and data.has(name):
                curves.append((name, column.units, name))
        return curves


class Columns(QListWidget):
    """List of all columns of the run; the checked ones are drawn."""

    changed = Signal(list)

    def __init__(self) -> None:
        super().__init__()
        self.setToolTip("Space checks a column: it is drawn in the plot of its unit")
        self.itemChanged.connect(self._emit)

    def set_run(self, data: RunData | None, chosen: list[str]) -> None:
        self.blockSignals(True)
        self.clear()
        for name in [] if data is None else sorted(data.names, key=_by_number):
            column = data.about.column(name)
            units = column.units.replace("degC", "°C")
            item = QListWidgetItem(f"{name}   [{units}]")
            item.setData(Qt.ItemDataRole.UserRole, name)
            item.setToolTip(tip(column.description))
            item.setFlags(item.flags() | Qt.ItemFlag.ItemIsUserCheckable)
            on = name in chosen
            item.setCheckState(Qt.CheckState.Checked if on else Qt.CheckState.Unchecked)
            self.addItem(item)
        self.blockSignals(False)

    def _emit(self) -> None:
        items = [self.item(i) for i in range(self.count())]
        names = [i.data(Qt.ItemDataRole.UserRole) for i in items
                 if i.checkState() == Qt.CheckState.Checked]  # fmt: skip
        self.changed.emit(names)
