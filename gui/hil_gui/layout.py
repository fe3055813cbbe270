"""Where everything stands in the main window."""

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QDockWidget,
    QHBoxLayout,
    QScrollArea,
    QSizePolicy,
    QTabBar,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from hil_gui import menus
from hil_gui.array_view import LIT_BY
from hil_gui.plain import Label
from hil_gui.theme import SPACE
from hil_gui.traces import WORDS

if TYPE_CHECKING:
    from hil_gui.window import Window

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
)
IN_FRONT = ("Control", "Lateness", "Events")


def build(window: "Window") -> None:
    """Put the panels around the plots; `first_layout` keeps this arrangement."""
    centre = QWidget()
    column = QVBoxLayout(centre)
    column.setContentsMargins(SPACE // 2, SPACE // 2, SPACE // 2, SPACE // 2)
    column.setSpacing(SPACE // 2 + 2)
    column.addLayout(_kind_buttons(window))
    column.addWidget(window.traces, 1)
    column.addWidget(window.transport)
    window.setCentralWidget(centre)
    top = QWidget()
    row = QVBoxLayout(top)
    row.setContentsMargins(SPACE // 2, 0, SPACE // 2, SPACE // 2)
    row.addWidget(window.header)
    window.setMenuWidget(menus.stack(window.menu_bar, top))
    for title, widget, area in (
        ("Control", _scrolling(window.bench.control), LEFT),
        ("Commissioning", _scrolling(window.bench.commissioning), LEFT),
        ("Columns", window.columns, LEFT),
        ("Array", _array_panel(window), RIGHT),
        ("Path", window.paths, RIGHT),
        ("Figures", window.numbers, RIGHT),
        ("Lateness", window.timing, RIGHT),
        ("Ages", window.ages, RIGHT),
        ("Events", window.log, BOTTOM),
        ("Cursor readings", window.cursor_table, BOTTOM),
        ("Compare", window.compare, BOTTOM),
    ):
        _dock(window, title, widget, area)
    docks = window.docks
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
    window.message = Label("")
    window.message.setObjectName("say")
    window.statusBar().setSizeGripEnabled(False)
    window.statusBar().addWidget(window.message, 1)
    window.statusBar().addPermanentWidget(window.jobs)
    window.first_layout = window.saveState()


def hide_stale_tabs(window: "Window") -> None:
    """Hide tab bars that belong to no group of docks.

    Qt 6.11 leaves some behind, where the docks were before they were put together.
    """
    docks = [dock for dock in window.docks.values() if not dock.isFloating()]
    places = [dock.geometry() for dock in docks if window.tabifiedDockWidgets(dock)]
    for bar in window.findChildren(QTabBar, options=Qt.FindChildOption.FindDirectChildrenOnly):
        top_left = bar.geometry().topLeft()
        if not any((p.left(), p.bottom() + 1) == top_left.toTuple() for p in places):
            bar.hide()


def _dock(window: "Window", title: str, widget: QWidget, area: Qt.DockWidgetArea) -> None:
    dock = QDockWidget(title, window)
    dock.setObjectName(title)
    widget.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
    dock.setWidget(widget)
    window.addDockWidget(area, dock)
    window.docks[title] = dock


def _kind_buttons(window: "Window") -> QHBoxLayout:
    """A button a curve, in its colour: shows and hides it."""
    row = QHBoxLayout()
    row.setSpacing(SPACE // 2)
    window.kind_buttons = {}
    for i, (kind, word) in enumerate(WORDS.items(), start=1):
        button = QToolButton()
        button.setText(word)
        button.setCheckable(True)
        button.setChecked(kind in window.traces.kinds_shown)
        button.setToolTip(f"Show or hide the curve (Ctrl+{i})")
        button.setShortcut(f"Ctrl+{i}")
        button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        button.toggled.connect(lambda on, k=kind: window.traces.show_kind(k, on))
        row.addWidget(button)
        window.kind_buttons[kind] = button
    window.legend = Label("")
    window.legend.setProperty("role", "muted")
    window.legend.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
    window.legend.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
    row.addWidget(window.legend, 1)
    row.addWidget(window.transport.whole)
    row.addWidget(window.transport.cursor_button)
    return row


def _array_panel(window: "Window") -> QWidget:
    tips = {
        "state": "Light cells by what the boards report",
        "duty": "Light cells by their share of on time in the last second",
        "heat": "Light cells by their wire's temperature, °C",
    }
    panel = QWidget()
    column = QVBoxLayout(panel)
    column.setContentsMargins(0, 0, 0, 0)
    column.setSpacing(0)
    row = QHBoxLayout()
    row.setContentsMargins(SPACE, 4, SPACE, 0)
    window.light_buttons = {}
    for word in LIT_BY:
        button = QToolButton()
        button.setText(word)
        button.setCheckable(True)
        button.setAutoExclusive(True)
        button.setChecked(word == "state")
        button.setToolTip(tips[word])
        button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        button.clicked.connect(lambda _, w=word: window.array.light_by(w))
        row.addWidget(button)
        window.light_buttons[word] = button
    row.addStretch(1)
    column.addLayout(row)
    column.addWidget(window.array, 1)
    return panel


def _scrolling(widget: QWidget) -> QScrollArea:
    area = QScrollArea()
    area.setWidgetResizable(True)
    area.setWidget(widget)
    area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    area.setMinimumWidth(280)
    return area
