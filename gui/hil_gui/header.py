"""Header that is always visible: the run, the guard's state, start and stop."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QSizePolicy, QVBoxLayout

from hil_gui.plain import Label, tip
from hil_gui.theme import LIGHT, SPACE, Theme, numbers

STATE_WORDS = {
    "": ("no file open", "muted"),
    "checking": ("SELF-TEST", "accent"),
    "reading": ("READING", "accent"),
    "starting": ("STARTING", "accent"),
    "off": ("OFF", "muted"),
    "connected": ("CONNECTED", "accent"),
    "self_test": ("SELF-TEST", "accent"),
    "ready": ("READY", "ok"),
    "armed": ("ARMED", "warning"),
    "running": ("RUNNING", "warning"),
    "fault": ("FAULT", "fault"),
    "tripped": ("TRIPPED", "fault"),
    "estop": ("E-STOP", "fault"),
    "complete": ("COMPLETE", "ok"),
    "aborted": ("STOPPED", "warning"),
    "recovered": ("RECOVERED", "warning"),
    "lost": ("LOOP DIED", "fault"),
}

FILLED = ("fault", "tripped", "estop", "armed", "running", "lost")


class Header(QFrame):
    """Title, SIMULATED mark, state, causes, time; Start, Stop and the emergency stop."""

    start = Signal()
    stop = Signal()
    estop = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("panel")
        row = QHBoxLayout(self)
        row.setContentsMargins(SPACE + 4, 6, SPACE, 6)
        row.setSpacing(SPACE + 4)
        words = QVBoxLayout()
        words.setSpacing(0)
        self.title = Label("hil")
        self.title.setFont(numbers(11.0, bold=True))
        self.detail = Label("")
        self.detail.setProperty("role", "muted")
        words.addWidget(self.title)
        words.addWidget(self.detail)
        row.addLayout(words)
        self.mark = Label("SIMULATED")
        self.mark.setToolTip("Readings come from simulated devices")
        self.mark.hide()
        row.addWidget(self.mark, 0, Qt.AlignmentFlag.AlignVCenter)
        self.state = Label("")
        self.state.setFont(numbers(12.0, bold=True))
        self.state.setAccessibleName("Guard state")
        self.state.setAlignment(Qt.AlignmentFlag.AlignCenter)
        row.addWidget(self.state, 0, Qt.AlignmentFlag.AlignVCenter)
        self.causes = Label("")
        self.causes.setWordWrap(True)
        self.causes.setAccessibleName("Causes")
        self.causes.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.causes.setMaximumHeight(44)
        row.addWidget(self.causes, 1)
        self.time = Label("")
        self.time.setFont(numbers(14.0, bold=True))
        self.time.setAccessibleName("Time of the run")
        row.addWidget(self.time)
        self.start_button = self._button("Start", "primary", "F5", "Start a run of this experiment")
        self.stop_button = self._button(
            "Stop", "stop", "F6", "End the run safely: cells off, recording closed"
        )
        self.estop_button = self._button(
            "E-STOP", "estop", "F12 or Ctrl+Space", "All cells off at once and latched"
        )
        self.estop_button.setFont(numbers(13.0, bold=True))
        self.estop_button.setMinimumSize(120, 44)
        self.start_button.clicked.connect(self.start)
        self.stop_button.clicked.connect(self.stop)
        self.estop_button.clicked.connect(self.estop)
        for button in (self.start_button, self.stop_button):
            button.setMinimumSize(72, 36)
        for button in (self.start_button, self.stop_button, self.estop_button):
            row.addWidget(button)
        self._theme = LIGHT
        self._is_live = True
        self.shown = ""

    @staticmethod
    def _button(text: str, role: str, keys: str, tip: str) -> QPushButton:
        button = QPushButton(text)
        button.setProperty("role", role)
        button.setToolTip(f"{tip} ({keys})")
        button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        return button

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.mark.setStyleSheet(
            f"color: {theme.warning}; border: 1px solid {theme.warning}; border-radius: 3px;"
            "padding: 1px 6px; font-weight: 700;"
        )
        self._paint_state()

    def set_run(self, title: str, detail: str, simulated: str) -> None:
        self.title.setText(title)
        self.detail.setText(detail)
        self.mark.setVisible(bool(simulated))
        self.mark.setToolTip(tip(simulated))

    def set_state(self, state: str, causes: str = "", *, is_live: bool = True) -> None:
        """Show the guard's state and its causes.

        Parameters
        ----------
        state : str
            A key of `STATE_WORDS`.
        causes : str
            Causes separated by semicolons; the first is shown, the tool tip lists all.
        is_live : bool
            Whether the state is live. Only a live state or a fault has a filled background.
        """
        first, *further = causes.split("; ") if causes else [""]
        more = f"  (+ {len(further)} more)" if further else ""
        self.causes.setText(f"{first}{more}")
        self.causes.setToolTip(tip("\n".join([first, *further])))
        if (state, is_live) != (self.shown, self._is_live):
            self.shown, self._is_live = state, is_live
            self._paint_state()

    def _paint_state(self) -> None:
        word, name = STATE_WORDS.get(self.shown, (self.shown.upper(), "accent"))
        theme = self._theme
        colour = getattr(theme, name)
        ink, ground = colour, "transparent"
        if self.shown in FILLED and (self._is_live or name == "fault"):
            ink, ground = theme.on_fault if name == "fault" else theme.surface, colour
        self.state.setText(word)
        self.state.setStyleSheet(
            f"color: {ink}; background: {ground}; border: 1px solid {colour};"
            "border-radius: 4px; padding: 5px 12px;"
        )
        self.causes.setStyleSheet(f"color: {theme.fault if name == 'fault' else theme.muted}")
