"""Arrangement of the panels in the main window."""

from collections.abc import Iterable
from dataclasses import dataclass

from PySide6.QtCore import QByteArray, Qt
from PySide6.QtWidgets import (
    QDockWidget,
    QHBoxLayout,
    QMainWindow,
    QScrollArea,
    QSizePolicy,
    QTabBar,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from hil_gui import menus
from hil_gui.array_view import LIT_BY, ArrayView
from hil_gui.parts import Parts
from hil_gui.plain import Label
from hil_gui.theme import SPACE
from hil_gui.traces import WORDS, Traces

LEFT, RIGHT, BOTTOM = (
    Qt.DockWidgetArea.LeftDockWidgetArea,
    Qt.DockWidgetArea.RightDockWidgetArea,
    Qt.DockWidgetArea.BottomDockWidgetArea,
)
TABBED = (
    ("Control", "Commissioning"),
    ("Commissioning", "Columns"),
    ("Lateness", "Ages"),
    ("Events", "Cursor readings"),
    ("Cursor readings", "Compare"),
    ("Compare", "Runs"),
)
IN_FRONT = ("Control", "Lateness", "Events")


@dataclass(frozen=True)
class Layout:
    """Handles of the arrangement that the window needs later.

    Attributes
    ----------
    docks : dict
        Panels by title.
    kind_buttons : dict
        Button of each curve, by its kind.
    legend : Label
        Text beside these buttons: half-width of the band around the twin.
    first : QByteArray
        The default arrangement, for Reset layout.
    """

    docks: dict[str, QDockWidget]
    kind_buttons: dict[str, QToolButton]
    legend: Label
    first: QByteArray


def build(window: QMainWindow, parts: Parts) -> Layout:
    """Arrange the panels around the plots."""
    centre = QWidget()
    column = QVBoxLayout(centre)
    column.setContentsMargins(SPACE // 2, SPACE // 2, SPACE // 2, SPACE // 2)
    column.setSpacing(SPACE // 2 + 2)
    kind_buttons = _kind_buttons(parts.traces)
    legend = _legend()
    column.addLayout(_row(parts, kind_buttons.values(), legend))
    column.addWidget(parts.traces, 1)
    column.addWidget(parts.transport)
    window.setCentralWidget(centre)
    top = QWidget()
    row = QVBoxLayout(top)
    row.setContentsMargins(SPACE // 2, 0, SPACE // 2, SPACE // 2)
    row.addWidget(parts.header)
    window.setMenuWidget(menus.stack(parts.menu_bar, top))
    docks = {
        title: _dock(window, title, widget, area)
        for title, widget, area in (
            ("Control", _scrolling(parts.bench.control), LEFT),
            ("Commissioning", _scrolling(parts.commissioning), LEFT),
            ("Columns", parts.columns, LEFT),
            ("Array", _array_panel(parts.array), RIGHT),
            ("Path", parts.paths, RIGHT),
            ("Figures", parts.numbers, RIGHT),
            ("Lateness", parts.timing, RIGHT),
            ("Ages", parts.ages, RIGHT),
            ("Events", parts.log, BOTTOM),
            ("Cursor readings", parts.cursor_table, BOTTOM),
            ("Compare", parts.compare, BOTTOM),
            ("Runs", parts.runs, BOTTOM),
        )
    }
    for first, second in TABBED:
        window.tabifyDockWidget(docks[first], docks[second])
    for name in IN_FRONT:
        docks[name].raise_()
    docks["Path"].hide()
    window.setCorner(Qt.Corner.BottomLeftCorner, LEFT)
    window.setCorner(Qt.Corner.BottomRightCorner, RIGHT)
    across, down = Qt.Orientation.Horizontal, Qt.Orientation.Vertical
    window.resizeDocks([docks["Control"], docks["Array"]], [290, 300], across)
    window.resizeDocks([docks["Events"]], [112], down)
    window.resizeDocks([docks[n] for n in ("Array", "Figures", "Lateness")], [260, 110, 190], down)
    window.statusBar().setSizeGripEnabled(False)
    window.statusBar().addWidget(parts.session.message, 1)
    window.statusBar().addPermanentWidget(parts.session.jobs)
    return Layout(docks, kind_buttons, legend, window.saveState())


def hide_stale_tabs(window: QMainWindow, docks: Iterable[QDockWidget]) -> None:
    """Hide tab bars that belong to no group of docks.

    Qt 6.11 leaves some behind at the docks' former positions after it groups them.
    """
    docked = [dock for dock in docks if not dock.isFloating()]
    places = [dock.geometry() for dock in docked if window.tabifiedDockWidgets(dock)]
    for bar in window.findChildren(QTabBar, options=Qt.FindChildOption.FindDirectChildrenOnly):
        top_left = bar.geometry().topLeft()
        if not any((p.left(), p.bottom() + 1) == top_left.toTuple() for p in places):
            bar.hide()


def _dock(window: QMainWindow, title: str, widget: QWidget, area: Qt.DockWidgetArea) -> QDockWidget:
    dock = QDockWidget(title, window)
    dock.setObjectName(title)
    widget.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
    dock.setWidget(widget)
    window.addDockWidget(area, dock)
    return dock


def _kind_buttons(traces: Traces) -> dict[str, QToolButton]:
    """One button for each curve, in the curve's colour; it shows or hides the curve."""
    buttons = {}
    for i, (kind, word) in enumerate(WORDS.items(), start=1):
        button = QToolButton()
        button.setText(word)
        button.setCheckable(True)
        button.setChecked(kind in traces.kinds_shown)
        button.setToolTip(f"Show or hide the curve (Ctrl+{i})")
        button.setShortcut(f"Ctrl+{i}")
        button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        button.toggled.connect(lambda on, k=kind: traces.show_kind(k, on))
        buttons[kind] = button
    return buttons


def _legend() -> Label:
    legend = Label("")
    legend.setProperty("role", "muted")
    legend.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
    legend.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
    return legend


def _row(parts: Parts, kind_buttons: Iterable[QToolButton], legend: Label) -> QHBoxLayout:
    row = QHBoxLayout()
    row.setSpacing(SPACE // 2)
    for button in kind_buttons:
        row.addWidget(button)
    row.addWidget(legend, 1)
    row.addWidget(parts.transport.whole)
    row.addWidget(parts.transport.cursor_button)
    return row


def _array_panel(array: ArrayView) -> QWidget:
    tips = {
        "state": "Colour cells by the state that the boards report",
        "duty": "Colour cells by their duty cycle over the last second",
        "heat": "Colour cells by their wire temperature, °C",
    }
    panel = QWidget()
    column = QVBoxLayout(panel)
    column.setContentsMargins(0, 0, 0, 0)
    column.setSpacing(0)
    row = QHBoxLayout()
    row.setContentsMargins(SPACE, 4, SPACE, 0)
    for word in LIT_BY:
        button = QToolButton()
        button.setText(word)
        button.setCheckable(True)
        button.setAutoExclusive(True)
        button.setChecked(word == "state")
        button.setToolTip(tips[word])
        button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        button.clicked.connect(lambda _, w=word: array.light_by(w))
        row.addWidget(button)
    row.addStretch(1)
    column.addLayout(row)
    column.addWidget(array, 1)
    return panel


def _scrolling(widget: QWidget) -> QScrollArea:
    area = QScrollArea()
    area.setWidgetResizable(True)
    area.setWidget(widget)
    area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    area.setMinimumWidth(280)
    return area
