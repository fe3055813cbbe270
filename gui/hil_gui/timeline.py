"""Which stretch of time is in view, and the instant that all panels show."""

from PySide6.QtCore import QObject, Signal

SPANS_S = {"2 s": 2.0, "10 s": 10.0, "30 s": 30.0, "1 min": 60.0, "10 min": 600.0, "all": None}
LEAST_S = 1e-3


class Timeline(QObject):
    """From, to, and now; while it follows, now is the newest row and moves the view.

    Attributes
    ----------
    end_s : float
        Time of the newest row.
    now_s : float
        The instant at which states and figures are shown.
    span_s : float or None
        Width of the view while it follows; None shows everything.
    """

    moved = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.clear()

    def clear(self) -> None:
        """As before the first row."""
        self.end_s = self.now_s = 0.0
        self.from_s, self.to_s = 0.0, 10.0
        self.span_s: float | None = 10.0
        self.follows = True
        self.moved.emit()

    def grow(self, end_s: float) -> None:
        """There are rows up to here."""
        self.end_s = end_s
        if self.follows:
            self.now_s = end_s
            self._follow()

    def follow(self) -> None:
        """Go to the newest row and stay with it."""
        self.follows = True
        self.now_s = self.end_s
        self._follow()
        self.moved.emit()

    def set_span(self, span_s: float | None) -> None:
        """How much time is in view, up to now; None for the whole run."""
        self.span_s = span_s
        self._follow()
        self.moved.emit()

    def look(self, from_s: float, to_s: float) -> None:
        """Show this stretch; looking away from the newest row ends following."""
        width_s = max(to_s - from_s, LEAST_S)
        self.from_s, self.to_s = from_s, from_s + width_s
        if self.follows and not self.from_s <= self.end_s <= self.to_s:
            self.follows = False
        self.span_s = width_s
        self.moved.emit()

    def go(self, now_s: float) -> None:
        """Show the states at an instant; the view comes along when it lies outside."""
        self.now_s = min(max(now_s, 0.0), self.end_s)
        self.follows = False
        if not self.from_s <= self.now_s <= self.to_s:
            self._follow()
        self.moved.emit()

    def play_to(self, now_s: float) -> None:
        """As `go`, and the view moves along as it did when the run was live."""
        self.now_s = min(max(now_s, 0.0), self.end_s)
        self.follows = False
        if self.span_s is not None:
            self._follow()
        self.moved.emit()

    def show_all(self) -> None:
        """The whole run."""
        self.set_span(None)

    def _follow(self) -> None:
        if self.span_s is None:
            self.from_s, self.to_s = 0.0, max(self.end_s, LEAST_S)
        elif self.now_s <= self.span_s:
            self.from_s, self.to_s = 0.0, self.span_s
        else:
            self.from_s, self.to_s = self.now_s - self.span_s, self.now_s
