"""Help of the window: the steps of a run, and every key."""

from collections.abc import Iterable
from html import escape

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QDialog, QTextBrowser, QVBoxLayout, QWidget

STEPS = (
    "Open an experiment (.toml) to run it, or a recording (.h5) to view it: Ctrl+O, or drag it.",
    "Self-test (F2) runs it on simulated devices. On the simulated rig Start (F5) alone is enough.",
    "On the bench: Connect (F8) reads all devices with everything off, Tare (F3) sets the zero, "
    "Arm (F4) permits, Start (F5) switches cells.",
    "Stop (F6) ends the run safely. Emergency stop (F12) does it at once and latches; it does not "
    "replace the one of the bench. After a trip read the cause in the header, then Reset (F7).",
)


def help_text(actions: Iterable[QAction]) -> str:
    """The steps, and the keys of these actions, as HTML."""
    steps = "".join(f"<li>{escape(step)}</li>" for step in STEPS)
    shape = QKeySequence.SequenceFormat.NativeText
    rows = "".join(
        f"<tr><td><b>{escape(keys)}</b>&nbsp;&nbsp;</td><td>{escape(action.text())}</td></tr>"
        for action in actions
        if (keys := ", ".join(key.toString(shape) for key in action.shortcuts()))
    ).replace("&amp;", "")  # marks the letter of a menu
    return (
        f"<h3>A run</h3><ol>{steps}</ol><h3>Keys</h3><table>{rows}</table>"
        "<p>Every control says what it does when the pointer rests on it.</p>"
    )


def show_help(parent: QWidget) -> QDialog:
    """Open the help beside the window, which stays usable."""
    dialog = QDialog(parent)
    dialog.setWindowTitle("Help")
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    text = QTextBrowser()
    text.setHtml(help_text(parent.findChildren(QAction)))
    text.setAccessibleName("Help")
    QVBoxLayout(dialog).addWidget(text)
    dialog.resize(620, 560)
    dialog.show()
    return dialog
