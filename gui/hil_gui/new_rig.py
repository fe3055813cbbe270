"""Form of `hil new rig`: the questions of the command, its drawing while one answers, its rig."""

from pathlib import Path

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QFontDatabase
from PySide6.QtWidgets import (
    QApplication,
    QComboBox,
    QDialog,
    QFileDialog,
    QFormLayout,
    QHBoxLayout,
    QLineEdit,
    QPlainTextEdit,
    QProgressBar,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from hil_gui.data import ConfigError, questions, sketch
from hil_gui.fields import unit_of, words_of
from hil_gui.plain import Label, tip
from hil_gui.runner import Command, option_words
from hil_gui.theme import SPACE

PAUSE_MS, POLL_MS = 200, 100


class NewRig(QDialog):
    """Asks what is on a bench, and writes, checks and simulates its rig in a process of its own.

    Attributes
    ----------
    made : Signal
        Emitted with the first experiment when the rig is to be opened.
    """

    made = Signal(Path)

    def __init__(self, parent: QWidget, beside: Path) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("New rig")
        self.resize(940, 560)
        self.command: Command | None = None
        self._made: Path | None = None
        self.fields: dict[str, QComboBox | QLineEdit] = {}
        form = QFormLayout()
        form.setVerticalSpacing(4)
        for question in questions():
            field = self._field(question.choices, question.is_open, question.default)
            field.setToolTip(tip(question.text))
            field.setAccessibleName(question.text)
            unit = unit_of(question.key)
            form.addRow(Label(words_of(question.key) + (f" [{unit}]" if unit else "")), field)
            self.fields[question.key] = field
        self.folder = QLineEdit(str(beside / "my_rig"))
        self.folder.setToolTip("Folder of the new files: rig.toml and first_cell.toml")
        self.folder.setAccessibleName("Folder of the rig")
        choose = QPushButton("…")
        choose.setToolTip("Choose the folder")
        choose.clicked.connect(self._choose)
        row = QHBoxLayout()
        row.addWidget(self.folder, 1)
        row.addWidget(choose)
        form.addRow(Label("folder"), row)
        self.about = Label("")
        self.about.setProperty("role", "muted")
        self.about.setWordWrap(True)
        form.addRow(self.about)
        QApplication.instance().focusChanged.connect(self._explain)

        self.shown = QPlainTextEdit()
        self.shown.setReadOnly(True)
        self.shown.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self.shown.setAccessibleName("The array, then what was made")
        self.problem = Label("")
        self.problem.setProperty("role", "error")
        self.problem.setWordWrap(True)
        self.problem.setAccessibleName("What is missing")
        self.bar = QProgressBar()
        self.bar.setRange(0, 0)
        self.bar.hide()
        self.make_button, cancel = QPushButton("Make the rig"), QPushButton("Close")
        self.make_button.setProperty("role", "primary")
        self.make_button.setToolTip("Write the files, check them, run the first cell simulated")
        self.make_button.setDefault(True)
        self.make_button.clicked.connect(self.make)
        cancel.setAutoDefault(False)
        cancel.clicked.connect(self.reject)
        buttons = QHBoxLayout()
        buttons.addWidget(self.bar, 1)
        buttons.addStretch(1)
        buttons.addWidget(cancel)
        buttons.addWidget(self.make_button)
        right = QVBoxLayout()
        right.addWidget(self.shown, 1)
        right.addWidget(self.problem)
        right.addLayout(buttons)
        whole = QHBoxLayout(self)
        whole.setContentsMargins(SPACE, SPACE, SPACE, SPACE)
        whole.setSpacing(2 * SPACE)
        whole.addLayout(form, 4)
        whole.addLayout(right, 5)
        self._pause, self._poll = QTimer(self), QTimer(self)
        self._pause.setSingleShot(True)
        self._pause.setInterval(PAUSE_MS)
        self._pause.timeout.connect(self.draw)
        self._poll.timeout.connect(self._look)
        self.draw()

    def _field(self, words: tuple[str, ...], is_open: bool, default: str) -> QComboBox | QLineEdit:
        if not words:
            field = QLineEdit()
            field.setPlaceholderText(default or "chosen by hil")
            field.textChanged.connect(self._edited)
            return field
        box = QComboBox()
        box.setEditable(is_open)
        box.addItems(words)
        box.setPlaceholderText("choose")
        box.setCurrentIndex(words.index(default) if default else -1)
        if is_open:
            box.lineEdit().setPlaceholderText("choose, or write")
        box.currentTextChanged.connect(self._edited)
        return box

    def _edited(self) -> None:
        self._pause.start()

    def _explain(self, old: QWidget | None, new: QWidget | None) -> None:
        if new in (*self.fields.values(), self.folder):
            self.about.setText(new.accessibleName())

    def _choose(self) -> None:
        if name := QFileDialog.getExistingDirectory(self, "Folder of the rig", self.folder.text()):
            self.folder.setText(name)

    @property
    def answers(self) -> dict[str, str]:
        """What is answered, as the options of the command."""
        texts = {
            key: field.currentText() if isinstance(field, QComboBox) else field.text()
            for key, field in self.fields.items()
        }
        return {key: text.strip() for key, text in texts.items() if text.strip()}

    def draw(self) -> None:
        """Draw the array that is described, or say what is missing."""
        try:
            lines, problem = sketch(self.answers), ""
        except ConfigError as error:
            lines = []
            problem = str(error).splitlines()[0].replace("hil new rig: --", "")
        self.shown.setPlainText("\n".join(lines))
        self.problem.setText(problem)
        self.make_button.setEnabled(not problem)

    def make(self) -> None:
        """Write, check and simulate the rig; afterwards, open its first experiment."""
        if self._made is not None:
            self.made.emit(self._made)
            self.accept()
            return
        folder = self.folder.text().strip()
        self.command = Command(["new", "rig", folder, *option_words(self.answers), "--json"])
        self._lock(True)
        self._poll.start(POLL_MS)

    def _lock(self, busy: bool) -> None:
        self.bar.setVisible(busy)
        for widget in (*self.fields.values(), self.folder, self.make_button):
            widget.setEnabled(not busy)
        if busy:
            self.problem.setText("")
            self.shown.appendPlainText("\nsearching limits that protect the wires, simulating …")

    def _look(self) -> None:
        """Show the end of the command."""
        assert self.command is not None
        code = self.command.exit_code
        if code is None:
            return
        self._poll.stop()
        command, self.command = self.command, None
        self._lock(False)
        if code != 0:
            self.draw()
            self.problem.setText(command.error_text)
            return
        made = command.result
        still = ["", "still to be measured or calibrated:", *made["open"]]
        lines = [*made["drawing"], "", *made["checked"], *made["ran"], *still]
        self.shown.setPlainText("\n".join(lines))
        self._made = Path(made["files"][1])
        for field in (*self.fields.values(), self.folder):
            field.setEnabled(False)
        self.make_button.setText("Open its first experiment")

    def done(self, result: int) -> None:
        """Close; a rig that is half made is removed by its command."""
        self._poll.stop()
        if self.command is not None:
            self.command.stop()
            self.command = None
        super().done(result)
