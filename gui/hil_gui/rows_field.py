"""Entry field for rows: a list of tables, or lists of one length side by side, as a table."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import (
    QHBoxLayout,
    QHeaderView,
    QPushButton,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from hil_gui.fields import toml_text, unit_of, words_of
from hil_gui.theme import SPACE

ROWS_SHOWN = 8
ROW_PX = 24


class RowsField(QWidget):
    """Rows to add, remove and edit; an empty cell is a key that a row does not have.

    Parameters
    ----------
    columns : whether each key of a row is a list of names, by key
    rows : the values
    path : dotted path of the list of tables, or of the table whose lists are the columns
    is_list_of_tables : which of both it is
    """

    valueChanged = Signal(str)

    def __init__(
        self,
        columns: Mapping[str, bool],
        rows: Sequence[Mapping[str, Any]],
        path: str,
        is_list_of_tables: bool,
    ) -> None:
        super().__init__()
        self._lists, self._path, self._is_one = dict(columns), path, is_list_of_tables
        self.table = QTableWidget(0, len(columns))
        units = (unit_of(key) for key in columns)
        heads = [f"{words_of(key)} [{unit}]" if unit else words_of(key)
                 for key, unit in zip(columns, units, strict=True)]  # fmt: skip
        self.table.setHorizontalHeaderLabels(heads)
        header = self.table.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.Stretch)
        self.table.verticalHeader().setDefaultSectionSize(ROW_PX)
        for n, row in enumerate(rows):
            self.table.insertRow(n)
            self._fill(n, row)
        self.add_button, self.remove_button = QPushButton("Add row"), QPushButton("Remove row")
        self.add_button.setToolTip("A further row after the chosen one")
        self.remove_button.setToolTip("Remove the chosen row")
        self.add_button.clicked.connect(self.add)
        self.remove_button.clicked.connect(self.remove)
        buttons = QHBoxLayout()
        for button in (self.add_button, self.remove_button):
            buttons.addWidget(button, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, SPACE // 2)
        column.setSpacing(2)
        column.addWidget(self.table)
        column.addLayout(buttons)
        self.table.itemChanged.connect(self._changed)
        self._fit()

    def setAccessibleName(self, name: str) -> None:
        self.table.setAccessibleName(name)

    def text(self, path: str) -> str:
        """Value of a key as TOML: the whole list of tables, or the list of one column."""
        rows = [
            [self._value(r, c, is_list) for c, is_list in enumerate(self._lists.values())]
            for r in range(self.table.rowCount())
        ]
        if not self._is_one:
            column = list(self._lists).index(path.removeprefix(f"{self._path}."))
            return "[" + ", ".join(row[column] or '""' for row in rows) + "]"
        tables = [
            ", ".join(f"{k} = {v}" for k, v in zip(self._lists, row, strict=True) if v)
            for row in rows
        ]
        return "[" + ", ".join(f"{{{table}}}" for table in tables) + "]"

    def add(self) -> None:
        """Add a row after the chosen one, a second later than it, or after the last."""
        chosen = self.table.currentRow()
        n = self.table.rowCount() if chosen < 0 else chosen + 1
        above = {key: self.table.item(n - 1, c).text() for c, key in enumerate(self._lists) if n}
        self.table.insertRow(n)
        self._fill(n, {k: float(v) + 1.0 for k, v in above.items() if k == "t_s" and _is_number(v)})
        self.table.setCurrentCell(n, 0)
        self._changed()

    def remove(self) -> None:
        """Remove the chosen row, or the last; one stays."""
        if self.table.rowCount() > 1:
            chosen = self.table.currentRow()
            self.table.removeRow(self.table.rowCount() - 1 if chosen < 0 else chosen)
            self._changed()

    def _fill(self, n: int, row: Mapping[str, Any]) -> None:
        blocked = self.table.blockSignals(True)
        for c, key in enumerate(self._lists):
            value = row.get(key, "")
            shown = value if isinstance(value, str) else toml_text(value)
            if isinstance(value, list):
                shown = ", ".join(map(str, value))
            self.table.setItem(n, c, QTableWidgetItem(shown))
        self.table.blockSignals(blocked)

    def _value(self, row: int, column: int, is_list: bool) -> str:
        """TOML of a cell; empty if it has nothing."""
        text = self.table.item(row, column).text().strip()
        if is_list and text and text != "all":
            words = re.findall(r"[^\s,;]+", text)
            return toml_text([int(word) if word.isdigit() else word for word in words])
        number = text.replace(",", ".")
        return number if _is_number(number) else toml_text(text) if text else ""

    def _changed(self) -> None:
        self._fit()
        self.valueChanged.emit("")

    def _fit(self) -> None:
        rows = min(self.table.rowCount(), ROWS_SHOWN)
        self.table.setFixedHeight(ROW_PX * (rows + 1) + 8)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def columns_of(table: Mapping[str, Any]) -> dict[str, bool]:
    """Keys of a table whose values are lists of numbers of one length above 1; else none."""
    lists = {k: v for k, v in table.items() if isinstance(v, list) and v and all(
        isinstance(x, int | float) and not isinstance(x, bool) for x in v)}  # fmt: skip
    lengths = {len(v) for v in lists.values()}
    return dict.fromkeys(lists, False) if len(lists) > 1 and len(lengths) == 1 else {}
