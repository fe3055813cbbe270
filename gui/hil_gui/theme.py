"""Colours, fonts and spacing of the window: light and dark themes, safe for colour blindness."""

from dataclasses import dataclass

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QFont, QPalette
from PySide6.QtWidgets import QApplication

SPACE = 8
"""Margin and distance between widgets, px; small gaps are half of it."""


@dataclass(frozen=True)
class Theme:
    """Colours of the window.

    The curve colours are Okabe & Ito's, lightened in the dark theme to the same contrast.
    """

    name: str
    window: str
    surface: str
    field: str
    line: str
    text: str
    muted: str
    accent: str
    on_accent: str
    measured: str
    model: str
    reference: str
    estimate: str
    residual: str
    cell: str
    cell_mixed: str
    cell_off: str
    ok: str
    warning: str
    fault: str
    on_fault: str
    series: tuple[str, ...]

    def colour(self, kind: str) -> QColor:
        """Colour of a curve by its kind, or any other colour of the theme by its name."""
        return QColor(getattr(self, {"demand": "muted"}.get(kind, kind)))


LIGHT = Theme(
    name="light",
    window="#eef0f2",
    surface="#ffffff",
    field="#ffffff",
    line="#cfd5da",
    text="#1b2127",
    muted="#5d6871",
    accent="#0072B2",
    on_accent="#ffffff",
    measured="#0072B2",
    model="#D55E00",
    reference="#1b2127",
    estimate="#AA4499",
    residual="#00805d",
    cell="#E69F00",
    cell_mixed="#f6d58f",
    cell_off="#e4e8eb",
    ok="#00805d",
    warning="#8f5e00",
    fault="#c4290a",
    on_fault="#ffffff",
    series=("#0072B2", "#D55E00", "#00805d", "#AA4499", "#8f5e00", "#44697d"),
)
DARK = Theme(
    name="dark",
    window="#15191d",
    surface="#1d2328",
    field="#151a1e",
    line="#39424a",
    text="#e6eaed",
    muted="#99a5ae",
    accent="#3a9bd6",
    on_accent="#0d1114",
    measured="#56B4E9",
    model="#ff8a3c",
    reference="#f2f4f5",
    estimate="#d58fc9",
    residual="#35c79c",
    cell="#f0b429",
    cell_mixed="#7d6428",
    cell_off="#2c343b",
    ok="#35c79c",
    warning="#f0b429",
    fault="#ff6a55",
    on_fault="#160503",
    series=("#56B4E9", "#ff8a3c", "#35c79c", "#d58fc9", "#f0b429", "#9fc2d4"),
)
THEMES = {"light": LIGHT, "dark": DARK}


def chosen(name: str) -> Theme:
    """Theme of this name; `system` follows the desktop."""
    if name in THEMES:
        return THEMES[name]
    scheme = QApplication.styleHints().colorScheme()
    return DARK if scheme == Qt.ColorScheme.Dark else LIGHT


def numbers(points: float, *, bold: bool = False) -> QFont:
    """The application's font with tabular digits, so that a changing value does not jump."""
    font = QFont(QApplication.font())
    font.setPointSizeF(points)
    font.setBold(bold)
    font.setFeature(QFont.Tag("tnum"), 1)
    return font


def apply(application: QApplication, theme: Theme) -> None:
    """Apply the theme to all widgets."""
    application.setStyle("Fusion")
    palette = QPalette()
    role = QPalette.ColorRole
    for which, colour in (
        (role.Window, theme.window),
        (role.WindowText, theme.text),
        (role.Base, theme.field),
        (role.AlternateBase, theme.window),
        (role.Text, theme.text),
        (role.Button, theme.surface),
        (role.ButtonText, theme.text),
        (role.ToolTipBase, theme.text),
        (role.ToolTipText, theme.surface),
        (role.Highlight, theme.accent),
        (role.HighlightedText, theme.on_accent),
        (role.PlaceholderText, theme.muted),
        (role.Mid, theme.line),
        (role.Dark, theme.line),
        (role.Link, theme.accent),
    ):
        palette.setColor(which, QColor(colour))
    for which in (role.WindowText, role.Text, role.ButtonText):
        palette.setColor(QPalette.ColorGroup.Disabled, which, QColor(theme.muted))
    application.setPalette(palette)
    application.setStyleSheet(_sheet(theme))


def _sheet(t: Theme) -> str:
    return f"""
QMainWindow, QDialog {{ background: {t.window}; }}
QMainWindow::separator {{ background: {t.window}; width: 6px; height: 6px; }}
QMainWindow::separator:hover {{ background: {t.accent}; }}
QDockWidget {{ color: {t.text}; font-weight: 600; }}
QDockWidget::title {{ background: {t.window}; padding: 5px 8px; text-align: left; }}
QDockWidget > QWidget, #panel {{ background: {t.surface}; border: 1px solid {t.line};
    border-radius: 4px; }}
QScrollArea, QScrollArea > QWidget > QWidget {{ background: {t.surface}; border: none; }}
QTabBar::tab {{ background: transparent; color: {t.muted}; padding: 5px 10px; border: none;
    border-bottom: 2px solid transparent; }}
QTabBar::tab:selected {{ color: {t.text}; border-bottom: 2px solid {t.accent}; }}
QTabBar::tab:hover {{ color: {t.text}; }}
QLabel {{ background: transparent; border: none; }}
QLabel#say {{ padding-left: 6px; }}
QLabel[role="muted"] {{ color: {t.muted}; }}
QLabel[role="heading"] {{ color: {t.muted}; font-weight: 600; padding-top: 6px; }}
QLabel[role="error"] {{ color: {t.fault}; }}
QPushButton, QToolButton {{ background: {t.surface}; color: {t.text}; border: 1px solid {t.line};
    border-radius: 4px; padding: 3px 8px; min-height: 17px; }}
QToolButton {{ padding: 2px 7px; }}
QPushButton:hover, QToolButton:hover {{ border-color: {t.accent}; }}
QPushButton:focus, QToolButton:focus, QLineEdit:focus {{ border: 2px solid {t.accent}; }}
QPushButton:pressed, QToolButton:pressed, QPushButton:checked, QToolButton:checked
    {{ background: {t.accent}; color: {t.on_accent}; border-color: {t.accent}; }}
QPushButton:checked:disabled {{ background: {t.line}; color: {t.text}; }}
QPushButton:disabled:!checked, QToolButton:disabled {{ color: {t.muted}; background: {t.window};
    border-color: {t.line}; }}
QPushButton[role="primary"] {{ background: {t.accent}; color: {t.on_accent};
    border-color: {t.accent}; font-weight: 600; }}
QPushButton[role="primary"]:disabled {{ background: {t.window}; color: {t.muted};
    border-color: {t.line}; }}
QPushButton[role="primary"]:focus {{ border: 2px solid {t.text}; }}
QPushButton[role="stop"] {{ border: 2px solid {t.fault}; color: {t.fault}; font-weight: 600; }}
QPushButton[role="stop"]:disabled {{ border: 1px solid {t.line}; color: {t.muted}; }}
QPushButton[role="estop"] {{ background: {t.fault}; color: {t.on_fault}; font-weight: 700;
    border: 2px solid {t.fault}; border-radius: 6px; padding: 4px 18px; }}
QPushButton[role="estop"]:focus, QPushButton[role="estop"]:hover {{ border: 2px solid {t.text}; }}
QLineEdit {{ background: {t.field}; color: {t.text}; border: 1px solid {t.line};
    border-radius: 4px; padding: 1px 5px; min-height: 18px; }}
QAbstractSpinBox QLineEdit {{ border: none; padding: 0; min-height: 0; }}
QLineEdit[bad="true"], QAbstractSpinBox[bad="true"] {{ border: 2px solid {t.fault}; }}
QLineEdit:disabled {{ color: {t.muted}; background: {t.window}; }}
QComboBox QAbstractItemView {{ background: {t.field}; color: {t.text};
    selection-background-color: {t.accent}; selection-color: {t.on_accent}; }}
QTableView, QTreeView, QListView, QPlainTextEdit {{ background: {t.surface}; color: {t.text};
    border: none; gridline-color: {t.line}; selection-background-color: {t.accent};
    selection-color: {t.on_accent}; }}
QHeaderView::section {{ background: {t.surface}; color: {t.muted}; border: none;
    border-bottom: 1px solid {t.line}; padding: 3px 6px; }}
QMenuBar {{ background: {t.window}; color: {t.text}; }}
QMenuBar::item:selected, QMenu::item:selected {{ background: {t.accent}; color: {t.on_accent}; }}
QMenu {{ background: {t.surface}; color: {t.text}; border: 1px solid {t.line}; }}
QMenu::item:disabled {{ color: {t.muted}; }}
QStatusBar {{ background: {t.window}; color: {t.muted}; }}
QStatusBar::item {{ border: none; }}
QToolTip {{ background: {t.text}; color: {t.surface}; border: none; padding: 4px; }}
QProgressBar {{ background: {t.field}; border: 1px solid {t.line}; border-radius: 4px;
    text-align: center; color: {t.text}; max-height: 16px; }}
QProgressBar::chunk {{ background: {t.accent}; border-radius: 3px; }}
QScrollBar:vertical {{ background: transparent; width: 10px; }}
QScrollBar:horizontal {{ background: transparent; height: 10px; }}
QScrollBar::handle {{ background: {t.line}; border-radius: 5px; min-width: 24px;
    min-height: 24px; }}
QScrollBar::add-line, QScrollBar::sub-line {{ width: 0; height: 0; }}
QScrollBar::add-page, QScrollBar::sub-page {{ background: transparent; }}
QSlider::groove:horizontal {{ background: {t.line}; height: 4px; border-radius: 2px; }}
QSlider::sub-page:horizontal {{ background: {t.accent}; height: 4px; border-radius: 2px; }}
QSlider::handle:horizontal {{ background: {t.accent}; width: 14px; height: 14px;
    margin: -6px 0; border-radius: 7px; }}
QSlider::handle:horizontal:focus {{ border: 2px solid {t.text}; }}
QSlider::handle:horizontal:disabled, QSlider::sub-page:horizontal:disabled
    {{ background: {t.line}; }}
QCheckBox {{ spacing: 6px; }}
"""
