"""What the parts of the window share: the run shown, its time line, work under way, messages."""

from pathlib import Path

from PySide6.QtCore import QSettings
from PySide6.QtWidgets import QMessageBox, QWidget

from hil_gui.data import causes
from hil_gui.feed import Feed
from hil_gui.jobs import Jobs
from hil_gui.plain import Label, tip
from hil_gui.run_data import RunData
from hil_gui.timeline import Timeline

RECENT_MAX = 10


class Session:
    """The run that is shown, and what every part may do with it.

    Attributes
    ----------
    feed : Feed or None
        The run that is shown.
    message : Label
        The last message.
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
        """Close the feed that was shown and take this one."""
        if self.feed is not None:
            self.feed.close()
        self.feed = feed

    @property
    def recent(self) -> list[str]:
        """Files opened last, newest first."""
        kept = self.settings.value("recent", [])
        return [kept] if isinstance(kept, str) else list(kept or [])

    def remember(self, path: Path) -> None:
        """Put a file at the head of those opened last."""
        name = str(path.resolve())
        others = [kept for kept in self.recent if kept != name]
        self.settings.setValue("recent", [name, *others][:RECENT_MAX])

    def folder(self) -> str:
        """Where file dialogues begin."""
        recent = self.recent
        return str(Path(recent[0]).parent) if recent else str(Path.cwd())

    def say(self, text: str) -> None:
        """A message that does not ask for attention."""
        self.message.setText(text)

    def complain(self, title: str, text: str) -> None:
        """Something went wrong; the text says what to do."""
        self.say(text.splitlines()[0] if text else title)
        QMessageBox.warning(self._parent, title, tip(text))

    def causes_in_words(self, now_s: float) -> str:
        """The faults latched by then, first cause first: who, how much, and which limit."""
        data = self.data
        names = [] if data is None else data.faults_at(now_s)
        words = causes() if names else {}
        said = {} if data is None else data.trip_texts
        return "; ".join(said.get(name, f"{name}: {words.get(name, name)}") for name in names)
