"""State that the parts of the window share: the shown run, its timeline, jobs, messages."""

from pathlib import Path

from PySide6.QtCore import QSettings, Qt
from PySide6.QtWidgets import QMessageBox, QWidget

from hil_gui.data import causes
from hil_gui.feed import Feed
from hil_gui.jobs import Jobs
from hil_gui.plain import Label, tip
from hil_gui.run_data import RunData
from hil_gui.timeline import Timeline

RECENT_MAX = 10


class Session:
    """State shared by the parts of the window.

    Attributes
    ----------
    feed : Feed or None
        The run that is shown.
    message : Label
        Label with the last message.
    """

    def __init__(self, settings: QSettings, parent: QWidget) -> None:
        self.settings = settings
        self.feed: Feed | None = None
        self.timeline = Timeline()
        self.jobs = Jobs()
        self.message = Label("")
        self.message.setObjectName("say")
        self._parent = parent

    @property
    def data(self) -> RunData | None:
        return self.feed.data if self.feed else None

    def show(self, feed: Feed | None) -> None:
        """Close the feed shown so far and show this one."""
        if self.feed is not None:
            self.feed.close()
        self.feed = feed

    @property
    def recent(self) -> list[str]:
        """Recent files, newest first."""
        kept = self.settings.value("recent", [])
        return [kept] if isinstance(kept, str) else list(kept or [])

    def remember(self, path: Path) -> None:
        """Add a file to the front of the recent files."""
        name = str(path.resolve())
        older = [kept for kept in self.recent if kept != name]
        self.settings.setValue("recent", [name, *older][:RECENT_MAX])

    def folder(self) -> str:
        """Initial folder of file dialogues."""
        recent = self.recent
        return str(Path(recent[0]).parent) if recent else str(Path.cwd())

    def say(self, text: str) -> None:
        """Show a message in the status bar."""
        self.message.setText(text)

    def complain(self, title: str, text: str) -> None:
        """Show a problem and its remedy in a message box and in the status bar.

        The box holds nothing up: with one that did, the emergency stop would wait for its button.
        """
        self.say(text.splitlines()[0] if text else title)
        box = QMessageBox(self._parent)
        box.setIcon(QMessageBox.Icon.Warning)
        box.setWindowTitle(title)
        box.setText(tip(text))
        box.setModal(False)
        box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        box.show()

    def causes_in_words(self, now_s: float) -> str:
        """Describe the faults latched at or before a time, the first cause first.

        The text of a fault is the guard's event; if there is none, the fault's general meaning.
        """
        data = self.data
        names = [] if data is None else data.faults_at(now_s)
        meanings = causes() if names else {}
        texts = {} if data is None else data.trip_texts
        return "; ".join(texts.get(name, f"{name}: {meanings.get(name, name)}") for name in names)
