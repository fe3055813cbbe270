"""Transport bar: follow the newest row, play a recording, choose the time range in view."""

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtWidgets import QComboBox, QFrame, QHBoxLayout, QSlider, QToolButton

from hil_gui.plain import Label
from hil_gui.theme import SPACE, numbers
from hil_gui.timeline import SPANS_S, Timeline

SPEEDS = ("0.05", "0.1", "0.25", "0.5", "1", "2", "5", "10", "50")
STEPS = 10000


class Transport(QFrame):
    """Bar below the plots; its buttons `whole` and `cursor_button` are placed above the plots.

    Attributes
    ----------
    speed : float
        Playback speed: seconds of the run per second.
    """

    cursors = Signal(bool)

    def __init__(self, timeline: Timeline) -> None:
        super().__init__()
        self.setObjectName("panel")
        self._timeline = timeline
        self.speed = 1.0
        row = QHBoxLayout(self)
        row.setContentsMargins(SPACE, 4, SPACE, 4)
        row.setSpacing(SPACE // 2 + 2)
        self.play = self._button("▶", "Play from here at the chosen speed (P)", check=True)
        self.play.setAccessibleName("Play")
        self.speeds = QComboBox()
        self.speeds.addItems([f"{s} ×" for s in SPEEDS])
        self.speeds.setCurrentIndex(SPEEDS.index("1"))
        self.speeds.setToolTip("Playback speed: seconds of the run per second")
        self.speeds.setAccessibleName("Speed")
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setRange(0, STEPS)
        self.slider.setPageStep(STEPS // 20)
        self.slider.setToolTip("Instant that all panels show, s; arrow and Page keys move it")
        self.slider.setAccessibleName("Instant")
        self.time = Label("0.000 s")
        self.time.setFont(numbers(10.0))
        self.time.setMinimumWidth(84)
        self.time.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.newest = self._button("Newest", "Follow the newest row (Ctrl+End)", check=True)
        self.spans = QComboBox()
        self.spans.addItems([*SPANS_S, "other"])
        self.spans.setCurrentText("10 s")
        self.spans.setToolTip("Time range in view; the mouse wheel over a plot changes it too")
        self.spans.setAccessibleName("Time in view")
        self.whole = self._button(
            "Whole run", "Show the whole run with automatic y ranges (Ctrl+Home)"
        )
        self.cursor_button = self._button("Cursors", "Show two measuring cursors (C)", check=True)
        for widget in (self.play, self.speeds, self.slider, self.time, self.newest, self.spans):
            row.addWidget(widget, 1 if widget is self.slider else 0)
        self.play.toggled.connect(self._play_toggled)
        self.speeds.currentIndexChanged.connect(self._speed_chosen)
        self.slider.valueChanged.connect(self._slid)
        self.newest.clicked.connect(self._newest_clicked)
        self.spans.currentTextChanged.connect(self._span_chosen)
        self.whole.clicked.connect(timeline.show_all)
        self.cursor_button.toggled.connect(self.cursors)
        timeline.moved.connect(self.refresh)
        self.refresh()

    @staticmethod
    def _button(text: str, tip: str, *, check: bool = False) -> QToolButton:
        button = QToolButton()
        button.setText(text)
        button.setToolTip(tip)
        button.setCheckable(check)
        button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        return button

    @property
    def is_playing(self) -> bool:
        return self.play.isChecked()

    def advance(self, elapsed_s: float) -> None:
        """Advance a playing recording by this much wall-clock time."""
        line = self._timeline
        if not self.is_playing:
            return
        to_s = line.now_s + elapsed_s * self.speed
        if to_s >= line.end_s:
            self.play.setChecked(False)
        line.play_to(to_s)

    def _play_toggled(self, on: bool) -> None:
        self.play.setText("❚❚" if on else "▶")
        line = self._timeline
        if on and line.now_s >= line.end_s - 1e-9:
            line.go(0.0)

    def _speed_chosen(self, index: int) -> None:
        self.speed = float(SPEEDS[index])

    def _slid(self, value: int) -> None:
        self._timeline.go(self._timeline.end_s * value / STEPS)

    def _newest_clicked(self) -> None:
        self.play.setChecked(False)
        self._timeline.follow()

    def _span_chosen(self, text: str) -> None:
        if text in SPANS_S:
            self._timeline.set_span(SPANS_S[text])

    def refresh(self) -> None:
        """Refresh the bar from the timeline."""
        line = self._timeline
        with QSignalBlocker(self.slider), QSignalBlocker(self.spans):
            self.slider.setValue(round(STEPS * line.now_s / line.end_s) if line.end_s > 0.0 else 0)
            known = [word for word, span_s in SPANS_S.items() if span_s == line.span_s]
            self.spans.setCurrentText(known[0] if known else "other")
        self.time.setText(f"{line.now_s:.3f} s")
        self.newest.setChecked(line.follows)
