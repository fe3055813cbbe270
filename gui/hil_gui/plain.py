"""Text of recordings shown as it is: Qt takes whatever looks like HTML for HTML."""

import html

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QWidget


class Label(QLabel):
    """A label of plain text, whatever its text looks like."""

    def __init__(self, text: str = "", parent: QWidget | None = None) -> None:
        super().__init__(text, parent)
        self.setTextFormat(Qt.TextFormat.PlainText)


def tip(text: str) -> str:
    """What a tool tip or a message box is given so that it shows this text."""
    if "<" not in text:  # then it is never taken for HTML
        return text
    return f"<span>{html.escape(text)}</span>".replace("\n", "<br>")


def markup(text: str) -> str:
    """What a label or a legend of a plot, which is always HTML, is given to show this text."""
    return html.escape(text)
