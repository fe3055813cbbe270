"""Time range in view, and the instant that all panels show."""

from PySide6.QtCore import QObject, Signal

SPANS_S = {"2 s": 2.0, "10 s": 10.0, "30 s": 30.0, "1 min": 60.0, "10 min": 600.0, "all": None}
LEAST_S = 1e-3


class Timeline(QObject):
    """Time range in view and the current instant.

    Attributes
    ----------
    from_s, to_s : float
        Range in view.
    end_s : float
        Time of the newest row.
    now_s : float
        The instant at which states and figures are shown.
    span_s : float or None
        Width of the view; None shows the whole run.
    follows : bool
        Whether `now_s` and the view follow the newest row.
    """

    moved = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.clear()

    def clear(self) -> None:
        """Reset to the state before the first row."""
        self.end_s = self.now_s = 0.0
        self.from_s, self.to_s = 0.0, 10.0
        self.span_s: float | None = 10.0
        self.follows = True
        self.moved.emit()

    def grow(self, end_s: float) -> None:
        """Set the time of the newest row."""
        self.end_s = end_s
        if self.follows:
            self.now_s = end_s
            self._follow()

    def follow(self) -> None:
        """Go to the newest row and follow it."""
        self.follows = True
        self.now_s = self.end_s
        self._follow()
        self.moved.emit()

    def set_span(self, span_s: float | None) -> None:
        """Set the width of the view, which ends at `now_s`; None shows the whole run."""
        self.span_s = span_s
        self._follow()
        self.moved.emit()

    def look(self, from_s: float, to_s: float) -> None:
        """Show this range; stop following if the newest row is outside it."""
        width_s = max(to_s - from_s, LEAST_S)
        self.from_s, self.to_s = from_s, from_s + width_s
        if self.follows and not self.from_s <= self.end_s <= self.to_s:
            self.follows = False
        self.span_s = width_s
        self.moved.emit()

    def go(self, now_s: float) -> None:
        """Go to an instant and stop following; the view moves only if the instant is outside."""
        self.now_s = min(max(now_s, 0.0), self.end_s)
        self.follows = False
        if not self.from_s <= self.now_s <= self.to_s:
            self._follow()
        self.moved.emit()

    def play_to(self, now_s: float) -> None:
        """Go to an instant while playing; the view moves along as in a live run."""
        self.now_s = min(max(now_s, 0.0), self.end_s)
        self.follows = False
        if self.span_s is not None:
            self._follow()
        self.moved.emit()

    def show_all(self) -> None:
        """Show the whole run."""
        self.set_span(None)

    def _follow(self) -> None:
        if self.span_s is None:
            self.from_s, self.to_s = 0.0, max(self.end_s, LEAST_S)
        elif self.now_s <= self.span_s:
            self.from_s, self.to_s = 0.0, self.span_s
        else:
            self.from_s, self.to_s = self.now_s - self.span_s, self.now_s
