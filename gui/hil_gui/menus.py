"""Menus and keyboard shortcuts; they reach every control of the window."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QActionGroup, QKeySequence
from PySide6.QtWidgets import QDockWidget, QMainWindow, QMenu, QVBoxLayout, QWidget

from hil_gui.parts import Parts


class Commands(Protocol):
    """Commands that the main window provides to the menus."""

    def choose(self) -> None: ...

    def new_rig(self) -> None: ...

    def open(self, path: Path) -> bool: ...

    def save_experiment(self) -> None: ...

    def help(self) -> object: ...

    def close(self) -> bool: ...

    def write_note(self) -> None: ...

    def show_all(self) -> None: ...

    def zoom(self, factor: float) -> None: ...

    def set_theme(self, name: str) -> None: ...

    def reset_layout(self) -> None: ...


def stack(*widgets: QWidget) -> QWidget:
    """Stack widgets below each other without gaps."""
    holder = QWidget()
    column = QVBoxLayout(holder)
    column.setContentsMargins(0, 0, 0, 0)
    column.setSpacing(0)
    for widget in widgets:
        column.addWidget(widget)
    return holder


def build(
    window: QMainWindow, commands: Commands, parts: Parts, docks: Mapping[str, QDockWidget]
) -> QMenu:
    """Fill the menu bar; returns the menu of recent files."""
    bar = parts.menu_bar
    file = bar.addMenu("&File")
    file.addAction(_action(window, "&New rig …", "Ctrl+R", commands.new_rig))
    file.addAction(_action(window, "&Open …", "Ctrl+O", commands.choose))
    recent_menu = file.addMenu("Open &recent")
    fill_recent(recent_menu, parts.session.recent, commands.open)
    file.addAction(_action(window, "Over&lay a recording …", "Ctrl+L", parts.compare.choose))
    file.addAction(_action(window, "&Save experiment …", "Ctrl+S", commands.save_experiment))
    file.addSeparator()
    file.addAction(_action(window, "Open re&port", "Ctrl+P", parts.exports.report))
    file.addAction(_action(window, "Export &figure …", "Ctrl+E", parts.exports.choose_figure))
    file.addAction(_action(window, "Export &data …", "Ctrl+Shift+E", parts.exports.choose_data))
    file.addSeparator()
    file.addAction(_action(window, "&Quit", QKeySequence.StandardKey.Quit, commands.close))

    run = bar.addMenu("&Run")
    control, header = parts.bench.control, parts.header
    for text, key, button in (
        ("Self-&test", "F2", control.self_test),
        ("&Connect", "F8", control.connect_button),
        ("T&are", "F3", control.tare),
        ("Ar&m", "F4", control.arm),
        ("&Start", "F5", header.start_button),
        ("Sto&p", "F6", header.stop_button),
        ("&Reset", "F7", control.reset),
        ("&Hold set point", "Ctrl+H", control.hold),
    ):
        action = _action(window, text, key, button.click)
        action.setAutoRepeat(False)  # a key that is held would disarm, arm, disarm ...
        run.addAction(action)
    stop = _action(window, "&Emergency stop", "F12", header.estop_button.click)
    stop.setShortcuts(["F12", "Ctrl+Space"])
    stop.setShortcutContext(Qt.ShortcutContext.ApplicationShortcut)  # from message boxes too
    run.addAction(stop)
    run.addAction(_action(window, "Write a &note", "Ctrl+N", commands.write_note))

    view = bar.addMenu("&View")
    line, transport = parts.session.timeline, parts.transport
    for text, key, do in (
        ("&Play / pause", "P", transport.play.click),
        ("&Newest row", "Ctrl+End", transport.newest.click),
        ("&Whole run", "Ctrl+Home", commands.show_all),
        ("&Cursors", "C", transport.cursor_button.click),
        ("Zoom &in", "Ctrl++", lambda: commands.zoom(0.5)),
        ("Zoom &out", "Ctrl+-", lambda: commands.zoom(2.0)),
        ("Step &back", "Alt+Left", lambda: line.go(line.now_s - 0.1)),
        ("Step &forward", "Alt+Right", lambda: line.go(line.now_s + 0.1)),
    ):
        view.addAction(_action(window, text, key, do))
    view.addSeparator()
    themes = view.addMenu("&Theme")
    group = QActionGroup(window)
    for name in ("system", "light", "dark"):
        action = _action(window, name.capitalize(), None, lambda n=name: commands.set_theme(n))
        action.setCheckable(True)
        action.setChecked(parts.session.settings.value("theme", "system") == name)
        group.addAction(action)
        themes.addAction(action)

    panels = bar.addMenu("&Panels")
    for i, (name, dock) in enumerate(docks.items(), start=1):
        action = dock.toggleViewAction()
        if i <= 9:
            action.setShortcut(f"Alt+{i}")
        action.setToolTip(f"Show or hide {name}")
        panels.addAction(action)
    panels.addSeparator()
    panels.addAction(_action(window, "&Reset layout", None, commands.reset_layout))
    bar.addMenu("&Help").addAction(_action(window, "&Steps and keys", "F1", commands.help))
    return recent_menu


def fill_recent(menu: QMenu, recent: Sequence[str], open_file: Callable[[Path], object]) -> None:
    """Fill the menu of recent files."""
    menu.clear()
    for i, name in enumerate(recent, start=1):
        path = Path(name)
        text = (
            f"&{i} {path.parent.name}/{path.name}" if i < 10 else f"{path.parent.name}/{path.name}"
        )
        menu.addAction(_action(menu, text, None, lambda p=path: open_file(p)))
    menu.setEnabled(bool(recent))


def _action(
    parent: QWidget,
    text: str,
    key: str | QKeySequence.StandardKey | None,
    do: Callable[[], object],
) -> QAction:
    action = QAction(text, parent)
    if key is not None:
        action.setShortcut(QKeySequence(key))
    action.triggered.connect(lambda: do())
    return action
