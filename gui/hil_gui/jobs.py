"""Long work done in slices between frames, with a progress bar and a Cancel button."""

from collections.abc import Callable, Iterator
from time import perf_counter

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import QHBoxLayout, QProgressBar, QToolButton, QWidget

from hil_gui.plain import Label

SLICE_S = 0.02
"""Duration of one slice of work, s; then the next frame may be drawn."""


class Jobs(QWidget):
    """Runs one job at a time; hidden while there is none."""

    idle = Signal()  # a job has ended, and no other was started by its end

    def __init__(self) -> None:
        super().__init__()
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        self.label = Label("")
        self.bar = QProgressBar()
        self.bar.setRange(0, 100)
        self.bar.setFixedWidth(180)
        self.cancel_button = QToolButton()
        self.cancel_button.setText("Cancel")
        self.cancel_button.setToolTip("Cancel this work; results so far are kept (Esc)")
        self.cancel_button.clicked.connect(self.cancel)
        for widget in (self.label, self.bar, self.cancel_button):
            row.addWidget(widget)
        self._work: Iterator[float] | None = None
        self._done: Callable[[bool], None] = lambda is_complete: None
        self._timer = QTimer(self)
        self._timer.timeout.connect(self._slice)
        self.hide()

    @property
    def is_busy(self) -> bool:
        return self._work is not None

    def start(self, what: str, work: Iterator[float], done: Callable[[bool], None]) -> None:
        """Start a job; cancel the one in progress.

        Parameters
        ----------
        what : str
            Text beside the progress bar.
        work : iterator of float
            Does the work; yields the fraction done, 0 to 1.
        done : callable
            Called at the end: True if the work was completed, False if it was cancelled or failed.
        """
        self.cancel()
        self._work, self._done = work, done
        self.label.setText(what)
        self.bar.setValue(0)
        self.show()
        self._timer.start(0)
        self._slice()

    def cancel(self) -> None:
        """Cancel the job in progress, if any."""
        if self._work is not None:
            self._end(False)

    def _slice(self) -> None:
        began_s = perf_counter()
        while self._work is not None and perf_counter() - began_s < SLICE_S:
            try:
                self.bar.setValue(round(100 * next(self._work)))
            except StopIteration:
                self._end(True)
            except Exception:
                self._end(False)
                raise
        if self._work is None:
            self.idle.emit()

    def _end(self, is_complete: bool) -> None:
        self._timer.stop()
        self._work = None
        self.hide()
        self._done(is_complete)
