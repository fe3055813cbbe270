"""Entry fields made from a configuration: a number with its unit, or a value as TOML."""

import json
from collections.abc import Mapping
from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtGui import QValidator
from PySide6.QtWidgets import QDoubleSpinBox, QLineEdit, QSizePolicy, QWidget

_UNITS = {"N", "s", "m", "Hz", "A", "V", "C", "kg", "J", "K", "W", "rad", "Ohm", "m2", "m3", "per"}
LARGEST = 1e9


def unit_of(key: str) -> str:
    """Unit in a key's suffix: `k_i_per_s` gives 1/s; empty if the key has no unit."""
    words = _split(key)[1]
    over, _, under = " ".join(words).partition("per")
    text = "·".join(over.split()) or ("1" if under else "")
    text += f"/{'·'.join(under.split())}" if under else ""
    return text.replace("C", "°C")


def words_of(path: str) -> str:
    """Label for a key, without its unit: `guard.cell_on_max_s` gives `cell on max`.

    In a table of tables the inner table's name comes first: `controller.loops.slide.k_p` gives
    `slide k p`.
    """
    above = path.split(".")[1:-1]
    return " ".join([*above[-1:], *_split(path)[0]])


def _split(path: str) -> tuple[list[str], list[str]]:
    """Words and units of a key."""
    parts = path.split(".")[-1].split("_")
    start = len(parts)
    while start > 1 and parts[start - 1] in _UNITS:
        start -= 1
    return parts[:start], parts[start:] if parts[start:] != ["per"] else []


def toml_text(value: Any) -> str:
    """A value as TOML on one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{k} = {toml_text(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(toml_text(v) for v in value) + "]"
    return repr(value)


class NumberField(QDoubleSpinBox):
    """Entry field for a number in SI units.

    One step is a tenth of the leading digit's place value.
    """

    def __init__(self, units: str, *, low: float = -LARGEST, high: float = LARGEST) -> None:
        super().__init__()
        self.setDecimals(9)
        self.setRange(low, high)
        self.setStepType(QDoubleSpinBox.StepType.AdaptiveDecimalStepType)
        self.setSuffix(f" {units}" if units else "")
        self.setKeyboardTracking(True)
        self.setAccelerated(True)
        self.setMinimumWidth(80)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def textFromValue(self, value: float) -> str:
        return f"{value:.9g}"

    def valueFromText(self, text: str) -> float:
        try:
            return float(self._bare(text))
        except ValueError:
            return self.value()

    def validate(self, text: str, position: int) -> tuple[QValidator.State, str, int]:
        bare = self._bare(text)
        try:
            inside = self.minimum() <= float(bare) <= self.maximum()
        except ValueError:
            begun = bare == "" or bare[-1] in "-+.eE,"
            state = QValidator.State.Intermediate if begun else QValidator.State.Invalid
            return state, text, position
        state = QValidator.State.Acceptable if inside else QValidator.State.Intermediate
        return state, text, position

    def _bare(self, text: str) -> str:
        return text.removesuffix(self.suffix()).strip().replace(",", ".")

    def wheelEvent(self, event) -> None:
        """Change the value only with keyboard focus: scrolling the page must not change it."""
        if self.hasFocus():
            super().wheelEvent(event)
        else:
            event.ignore()


class TextField(QLineEdit):
    """Entry field for a text, or for any other value as TOML."""

    valueChanged = Signal(str)

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.setCursorPosition(0)
        self.textChanged.connect(self.valueChanged)


def field_for(key: str, value: Any, *, high: float = LARGEST) -> QWidget:
    """Entry field for a configuration key, filled with its value."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        field: QWidget = NumberField(unit_of(key), high=high)
        field.setValue(float(value))
        if isinstance(value, int):
            field.setDecimals(0)
        return field
    return TextField(value if isinstance(value, str) else toml_text(value))


def mark(field: QWidget, bad: bool, tip: str) -> None:
    """Show whether a field's value is invalid."""
    field.setToolTip(tip)
    if bool(field.property("bad")) != bad:
        field.setProperty("bad", bad)
        field.style().unpolish(field)
        field.style().polish(field)
