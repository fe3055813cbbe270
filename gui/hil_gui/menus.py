"""Menus and keys; every control of the window can be reached from here."""

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtGui import QAction, QActionGroup, QKeySequence
from PySide6.QtWidgets import QMenuBar, QVBoxLayout, QWidget

if TYPE_CHECKING:
    from collections.abc import Callable

    from hil_gui.window import Window


def stack(*widgets: QWidget) -> QWidget:
    """Widgets one below the other without a gap."""
    holder = QWidget()
    column = QVBoxLayout(holder)
    column.setContentsMargins(0, 0, 0, 0)
    column.setSpacing(0)
    for widget in widgets:
        column.addWidget(widget)
    return holder


def build(window: "Window") -> None:
    """Fill the menu bar; called once, after the docks exist."""
    bar: QMenuBar = window.menu_bar
    file = bar.addMenu("&File")
    file.addAction(_action(window, "&Open …", "Ctrl+O", window.choose))
    window.recent_menu = file.addMenu("Open &recent")
    fill_recent(window)
    file.addAction(_action(window, "&Lay a recording over …", "Ctrl+L", window.compare.choose))
    file.addSeparator()
    file.addAction(_action(window, "Export &figure …", "Ctrl+E", window.exports.choose_figure))
    file.addAction(_action(window, "Export &data …", "Ctrl+Shift+E", window.exports.choose_data))
    file.addSeparator()
    file.addAction(_action(window, "&Quit", QKeySequence.StandardKey.Quit, window.close))

    run = bar.addMenu("&Run")
    bench = window.bench
    for text, key, button in (
        ("Self-&test", "F2", bench.control.self_test),
        ("&Connect", "F8", bench.control.connect_button),
        ("T&are", "F3", bench.control.tare),
        ("Ar&m", "F4", bench.control.arm),
        ("&Start", "F5", window.header.start_button),
        ("Sto&p", "F6", window.header.stop_button),
        ("&Reset", "F7", bench.control.reset),
        ("&Hold set point", "Ctrl+H", bench.control.hold),
    ):
        run.addAction(_action(window, text, key, button.click))
    stop = _action(window, "&Emergency stop", "F12", window.header.estop_button.click)
    stop.setShortcuts(["F12", "Ctrl+Space"])
    run.addAction(stop)
    run.addAction(_action(window, "Write a &note", "Ctrl+N", window.write_note))

    view = bar.addMenu("&View")
    line, transport = window.timeline, window.transport
    for text, key, do in (
        ("&Play / pause", "P", transport.play.click),
        ("&Newest row", "Ctrl+End", transport.newest.click),
        ("&Whole run", "Ctrl+Home", window.show_all),
        ("&Cursors", "C", transport.cursor_button.click),
        ("Zoom &in", "Ctrl++", lambda: window.zoom(0.5)),
        ("Zoom &out", "Ctrl+-", lambda: window.zoom(2.0)),
        ("Step &back", "Alt+Left", lambda: line.go(line.now_s - 0.1)),
        ("Step &on", "Alt+Right", lambda: line.go(line.now_s + 0.1)),
    ):
        view.addAction(_action(window, text, key, do))
    view.addSeparator()
    themes = view.addMenu("&Theme")
    group = QActionGroup(window)
    for name in ("system", "light", "dark"):
        action = _action(window, name.capitalize(), None, lambda n=name: window.set_theme(n))
        action.setCheckable(True)
        action.setChecked(window.settings.value("theme", "system") == name)
        group.addAction(action)
        themes.addAction(action)

    panels = bar.addMenu("&Panels")
    for i, (name, dock) in enumerate(window.docks.items(), start=1):
        action = dock.toggleViewAction()
        if i <= 9:
            action.setShortcut(f"Alt+{i}")
        action.setToolTip(f"Show or hide {name}")
        panels.addAction(action)
    panels.addSeparator()
    panels.addAction(_action(window, "&First layout again", None, window.first_layout_again))


def fill_recent(window: "Window") -> None:
    """The files opened last."""
    menu = window.recent_menu
    menu.clear()
    for i, name in enumerate(window.recent, start=1):
        path = Path(name)
        text = (
            f"&{i} {path.parent.name}/{path.name}" if i < 10 else f"{path.parent.name}/{path.name}"
        )
        menu.addAction(_action(window, text, None, lambda p=path: window.open(p)))
    menu.setEnabled(bool(window.recent))


def _action(
    window: "Window",
    text: str,
    key: "str | QKeySequence.StandardKey | None",
    do: "Callable[[], object]",
) -> QAction:
    action = QAction(text, window)
    if key is not None:
        action.setShortcut(QKeySequence(key))
    action.triggered.connect(lambda: do())
    return action
