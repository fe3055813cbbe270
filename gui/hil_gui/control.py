"""Control page: set up a run, prepare the rig, send requests to the running loop."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtWidgets import (
    QButtonGroup,
    QCheckBox,
    QFormLayout,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from hil_gui.data import FOXGLOVE_PORT, ConfigError, load_settings, rig_limits, row_keys
from hil_gui.fields import (
    LARGEST,
    NumberField,
    field_for,
    mark,
    toml_text,
    unit_of,
    words_of,
)
from hil_gui.plain import Label, tip
from hil_gui.rows_field import RowsField, columns_of
from hil_gui.theme import SPACE

SECTIONS = {
    "experiment": "Run",
    "reference": "Reference",
    "controller": "Controller",
    "guard": "Limits",
}
CHECK_MS = 120
"""Pause in typing after which the configuration is checked, ms."""


class Control(QWidget):
    """Form of an experiment's values, and the buttons of a run.

    Attributes
    ----------
    settings : mapping or None
        The configuration as last checked; None if it is not valid.
    sha256 : str
        Hash of all that decides what it does; empty if it is not valid.
    """

    changed = Signal()
    gain_changed = Signal(str, float)

    def __init__(self) -> None:
        super().__init__()
        self.path: Path | None = None
        self.settings: dict[str, Any] | None = None
        self.sha256 = ""
        self.is_locked = False
        self._filed: dict[str, Any] = {}
        self._limits: Mapping[str, float] = {}
        self._filed_texts: dict[str, str] = {}
        self.fields: dict[str, QWidget] = {}
        column = QVBoxLayout(self)
        column.setContentsMargins(SPACE, SPACE, SPACE, SPACE)
        column.setSpacing(SPACE // 2)
        self.open_button = _button("Open experiment …", "Choose an experiment, .toml (Ctrl+O)")
        column.addWidget(self.open_button)
        self.name = Label("No experiment is open")
        self.name.setWordWrap(True)
        column.addWidget(self.name)
        column.addLayout(self._backends())
        column.addLayout(self._viewers())
        column.addLayout(self._steps())
        self.form = QVBoxLayout()
        self.form.setSpacing(2)
        column.addLayout(self.form)
        self.problem = Label("")
        self.problem.setProperty("role", "error")
        self.problem.setWordWrap(True)
        self.problem.setAccessibleName("Configuration errors")
        column.addWidget(self.problem)
        column.addWidget(_heading("While it runs"))
        column.addLayout(self._requests())
        column.addStretch(1)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(CHECK_MS)
        self._timer.timeout.connect(self.check)

    def _backends(self) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(0)
        self.backends = QButtonGroup(self)
        self.simulate = _button("Simulate", "Run on the simulated rig, in real time", check=True)
        self.bench = _button("Bench", "Run on the hardware; needs a self-test first", check=True)
        self.simulate.setChecked(True)
        for button in (self.simulate, self.bench):
            self.backends.addButton(button)
            row.addWidget(button, 1)
        return row

    def _viewers(self) -> QGridLayout:
        """Whether Start serves the run to Foxglove, and where it is served now."""
        grid = QGridLayout()
        self.foxglove = QCheckBox("Serve to Foxglove")
        self.foxglove.setToolTip("Serve the next run live, read-only, to viewers on this computer")
        self.port = QSpinBox()
        self.port.setRange(0, 65535)
        self.port.setSpecialValueText("any")
        self.port.setValue(FOXGLOVE_PORT)
        self.port.setToolTip("Port of the server; any: one that is free")
        self.port.setAccessibleName("Port for Foxglove")
        self.served = Label("")
        self.served.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.served.setAccessibleName("Address for Foxglove")
        self.served.hide()
        grid.addWidget(self.foxglove, 0, 0)
        grid.addWidget(self.port, 0, 1)
        grid.addWidget(self.served, 1, 0, 1, 2)
        grid.setColumnStretch(0, 1)
        return grid

    @property
    def foxglove_port(self) -> int | None:
        """Port at which the next run is served to Foxglove; None: it is not."""
        return self.port.value() if self.foxglove.isChecked() else None

    def show_served(self, address: str) -> None:
        """Show where the run in progress is served; empty: it is not."""
        self.served.setText(f"served at {address}" if address else "")
        self.served.setVisible(bool(address))

    def _steps(self) -> QGridLayout:
        """Buttons that prepare a run, in the order in which they are used."""
        grid = QGridLayout()
        grid.setSpacing(SPACE // 2)
        self.self_test = _button(
            "Self-test", "Run on simulated devices and the virtual clock; must not trip (F2)"
        )
        self.tare = _button(
            "Tare", "Make the mean of the last second the zero of the force, N (F3)"
        )
        self.arm = _button("Arm", "Permit Start to switch cells; press again to disarm (F4)")
        self.reset = _button("Reset", "Acknowledge a trip after removing its cause (F7)")
        self.connect_button = _button("Connect", "Read the rig with all outputs off (F8)")
        order = (self.self_test, self.connect_button, self.tare, self.arm)
        for i, button in enumerate(order):
            grid.addWidget(button, i // 2, i % 2)
        grid.addWidget(self.reset, 2, 0, 1, 2)
        return grid

    def _requests(self) -> QFormLayout:
        form = _form()
        self.set_point = NumberField("N")
        self.set_point.setToolTip("Set point to hold from the next tick on, in the unit shown")
        self.hold = _button("Hold", "Hold this set point (Ctrl+H)")
        self.release = _button("Release", "Return to the configured reference")
        form.addRow(_word("set point"), self.set_point)
        row = QHBoxLayout()
        row.setSpacing(SPACE // 2)
        for button in (self.hold, self.release):
            row.addWidget(button, 1)
        form.addRow("", row)
        self.note = QLineEdit()
        self.note.setPlaceholderText("observation")
        self.note.setMaxLength(250)
        self.note.setToolTip("Note for the recording, with a time stamp (Ctrl+N)")
        self.add_note = _button("Add", "Record the note")
        line = QHBoxLayout()
        line.setSpacing(SPACE // 2)
        line.addWidget(self.note, 1)
        line.addWidget(self.add_note)
        form.addRow(_word("note"), line)
        return form

    # The experiment

    def open(self, path: Path) -> None:
        """Show an experiment's values.

        Raises
        ------
        ConfigError
            The file is not valid; the experiment that was open stays open.
        """
        settings, _ = load_settings(path, {})
        self.path = path
        self.name.setText(f"{path.resolve().parent.name} / {path.name}")
        self.name.setToolTip(tip(str(path.resolve())))
        self._limits = rig_limits(path)
        self._build(settings, self._limits)
        self.check()

    def _build(self, settings: Mapping[str, Any], limits: Mapping[str, float]) -> None:
        while self.form.count():
            item = self.form.takeAt(0)
            _discard(item)
        self.fields, self._filed, self._filed_texts = {}, {}, {}
        for section, title in SECTIONS.items():
            table = settings.get(section)
            if not table:
                continue
            kind = table.get("kind")
            self.form.addWidget(_heading(f"{title}: {kind}" if kind else title))
            form = _form()
            for path, value in _leaves(section, table):
                high = limits.get(path.removeprefix("guard."), LARGEST)
                field = self._field(path, value, table, high)
                field.setAccessibleName(path)
                is_first = field not in self.fields.values()
                self.fields[path], self._filed[path] = field, value
                self._filed_texts[path] = text_of(field, value, path)
                mark(field, False, self._tip(path, high))
                if not is_first:  # a further column of the same rows
                    continue
                field.valueChanged.connect(self._edited)
                if isinstance(field, NumberField):
                    field.editingFinished.connect(lambda p=path: self._finished(p))
                if isinstance(field, RowsField):
                    form.addRow(field)
                else:
                    form.addRow(_word(words_of(path)), field)
            self.form.addLayout(form)

    def _field(self, path: str, value: Any, table: Mapping[str, Any], high: float) -> QWidget:
        """Entry field of a key; rows share one."""
        above, _, key = path.rpartition(".")
        if isinstance(value, list) and value and all(isinstance(row, Mapping) for row in value):
            return RowsField(row_keys(self.path, path), value, path, is_list_of_tables=True)
        columns = columns_of(table) if above.count(".") == 0 else {}
        if key in columns:
            known = (self.fields.get(f"{above}.{other}") for other in columns)
            rows = [dict(zip(columns, row, strict=True))
                    for row in zip(*(table[k] for k in columns), strict=True)]  # fmt: skip
            widget = next((field for field in known if field is not None), None)
            return widget or RowsField(columns, rows, above, is_list_of_tables=False)
        return field_for(path, value, high=high)

    @staticmethod
    def _tip(path: str, high: float) -> str:
        unit = unit_of(path)
        text = f"{path}, in {unit}" if unit else path
        return f"{text}; the rig allows up to {high:g} {unit}" if high < LARGEST else text

    def _edited(self) -> None:
        self._timer.start()

    def _finished(self, path: str) -> None:
        """Send a gain that was changed during a run; it takes effect at once."""
        field = self.fields.get(path)
        if self.is_locked and path.startswith("controller.") and isinstance(field, NumberField):
            self.gain_changed.emit(path, field.value())

    @property
    def sets(self) -> dict[str, str]:
        """Keys whose fields differ from the file, with the field values as TOML."""
        changed = {}
        for path, field in self.fields.items():
            text = text_of(field, self._filed[path], path)
            if text != self._filed_texts[path]:
                changed[path] = text
        return changed

    def check(self) -> None:
        """Check the configuration as `hil run` does, and mark every invalid field."""
        self._timer.stop()
        if self.path is None:
            return
        try:
            self._refuse_changed()
            self.settings, self.sha256 = load_settings(self.path, self.sets)
            lines: list[str] = []
        except ConfigError as error:
            self.settings, self.sha256, lines = None, "", str(error).splitlines()
        for path, field in self.fields.items():
            about = [line for line in lines if f" {path}" in line or line.startswith(path)]
            high = self._limits.get(path.removeprefix("guard."), LARGEST)
            mark(field, bool(about), "\n".join(about) or self._tip(path, high))
        self.problem.setText("\n".join(line.split(": ", 1)[-1] for line in lines))
        self.changed.emit()

    def _refuse_changed(self) -> None:
        """A file that says something else by now is opened again before anything runs.

        Otherwise the fields would show one value, and the run would have another.
        """
        settings, _ = load_settings(self.path, {})
        if repr(dict(_shown(settings))) != repr(self._filed):
            raise ConfigError(
                f"{self.path}: a file was changed since it was opened: open it again (Ctrl+O)"
            )

    @property
    def backend(self) -> str:
        return "bench" if self.bench.isChecked() else "sim"

    def lock(self, locked: bool) -> None:
        """Lock the form during a run; only numbers of the controller stay editable."""
        self.is_locked = locked
        for path, field in self.fields.items():
            gain = path.startswith("controller.") and isinstance(field, NumberField)
            field.setEnabled(gain or not locked)
        for widget in (self.open_button, self.simulate, self.bench, self.foxglove, self.port):
            widget.setEnabled(not locked)


def text_of(field: QWidget, like: Any, path: str) -> str:
    """Value of a key's field as TOML; an integer stays an integer."""
    if isinstance(field, RowsField):
        return field.text(path)
    if isinstance(field, NumberField):
        return str(round(field.value())) if isinstance(like, int) else repr(field.value())
    return toml_text(field.text()) if isinstance(like, str) else field.text()


def _shown(settings: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield every value that has a field, with its dotted path."""
    for section in SECTIONS:
        yield from _leaves(section, settings.get(section) or {})


def _leaves(path: str, table: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield every value of a table and its subtables with its dotted path, except `kind`."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _leaves(f"{path}.{key}", value)
        elif key != "kind":
            yield f"{path}.{key}", value


def _button(text: str, tip: str, *, check: bool = False) -> QPushButton:
    button = QPushButton(text)
    button.setToolTip(tip)
    button.setCheckable(check)
    return button


def _heading(text: str) -> QLabel:
    label = Label(text)
    label.setProperty("role", "heading")
    return label


def _word(text: str) -> QLabel:
    label = Label(text)
    label.setProperty("role", "muted")
    label.setMinimumWidth(76)
    return label


def _form() -> QFormLayout:
    form = QFormLayout()
    form.setContentsMargins(0, 0, 0, 0)
    form.setHorizontalSpacing(SPACE)
    form.setVerticalSpacing(4)
    form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.ExpandingFieldsGrow)
    return form


def _discard(item: Any) -> None:
    if item.widget() is not None:
        item.widget().deleteLater()
    elif item.layout() is not None:
        while item.layout().count():
            _discard(item.layout().takeAt(0))
        item.layout().deleteLater()
