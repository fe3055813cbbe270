"""Plain text for Qt, which renders any text that looks like HTML as HTML."""

import html

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QWidget


class Label(QLabel):
    """A label that always shows plain text."""

    def __init__(self, text: str = "", parent: QWidget | None = None) -> None:
        super().__init__(text, parent)
        self.setTextFormat(Qt.TextFormat.PlainText)


def tip(text: str) -> str:
    """Escape a text for a tool tip or a message box."""
    if "<" not in text:  # Qt never takes it for HTML
        return text
    return f"<span>{html.escape(text)}</span>".replace("\n", "<br>")


def markup(text: str) -> str:
    """Escape a text for a label or legend of a plot, which always renders HTML."""
    return html.escape(text)
