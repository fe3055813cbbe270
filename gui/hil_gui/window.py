"""The main window: panels around the plots, and what moves rows to pixels."""

import os
import sys
from pathlib import Path
from time import perf_counter
from types import TracebackType

from PySide6.QtCore import QSettings, Qt, QTimer
from PySide6.QtGui import QCloseEvent, QShowEvent
from PySide6.QtWidgets import (
    QApplication,
    QDockWidget,
    QFileDialog,
    QMainWindow,
    QMenuBar,
    QMessageBox,
)

from hil_gui import layout, menus, theme
from hil_gui.array_view import ArrayView
from hil_gui.bench_day import BenchDay
from hil_gui.compare import Compare
from hil_gui.data import ConfigError, DeviceError, File, Live, causes, run_of
from hil_gui.exports import Exports
from hil_gui.feed import Feed
from hil_gui.header import Header
from hil_gui.jobs import Jobs
from hil_gui.path_view import PathView
from hil_gui.plain import tip
from hil_gui.readings import Numbers, Timing
from hil_gui.run_data import About, RunData
from hil_gui.tables import Ages, Columns, CursorTable, Log
from hil_gui.theme import THEMES
from hil_gui.timeline import Timeline
from hil_gui.traces import Traces
from hil_gui.transport import Transport

FRAME_MS = 25
NICE = 5
"""Where the loop may not have a real-time priority, the window steps back."""
SLOW_EVERY = 4
"""Frames between two refreshes of figures and tables."""
RECENT_MAX = 10
EMPTY_HINT = (
    "<b>Open an experiment</b> (.toml) to run it, or <b>a recording</b> (.h5) to look at it"
    "<br><br>Ctrl+O open &nbsp;·&nbsp; Ctrl+L lay a recording over &nbsp;·&nbsp; "
    "F12 emergency stop"
)
READY_HINT = (
    "F2 self-test &nbsp;·&nbsp; F8 connect &nbsp;·&nbsp; F3 tare &nbsp;·&nbsp; F4 arm "
    "&nbsp;·&nbsp; <b>F5 start</b><br><br>F5 alone does it all on the simulated rig"
)


class Window(QMainWindow):
    """Shows one run, live or recorded, and commands the bench."""

    def __init__(self, settings: QSettings | None = None) -> None:
        super().__init__()
        self.settings = settings if settings is not None else QSettings("hil-arrays", "hil")
        self.setWindowTitle("hil")
        self.setDockNestingEnabled(True)
        self.feed: Feed | None = None
        self.timeline = Timeline()
        self.traces = Traces(self.timeline)
        self.array = ArrayView()
        self.numbers, self.timing = Numbers(), Timing()
        self.ages, self.log, self.cursor_table = Ages(), Log(), CursorTable()
        self.columns, self.paths = Columns(), PathView()
        self.header = Header()
        self.transport = Transport(self.timeline)
        self.jobs = Jobs()
        self.menu_bar = QMenuBar()
        self.compare = Compare(self)
        self.exports = Exports(self)
        self.bench = BenchDay(self)
        self.docks: dict[str, QDockWidget] = {}
        layout.build(self)
        menus.build(self)
        self._connect()
        self._n_frames = self._n_said = 0
        self._last_s = perf_counter()
        self.set_theme(str(self.settings.value("theme", "system")))
        self.layout().activate()
        self.resize(1280, 720)
        self._restore()
        self._show_run(None)
        self._timer = QTimer(self)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self.frame)
        self._timer.start(FRAME_MS)

    def _connect(self) -> None:
        self.timeline.moved.connect(self._moved)
        self.columns.changed.connect(self.traces.choose)
        self.traces.cursors_moved.connect(self._show_cursors)
        self.transport.cursors.connect(self._switch_cursors)
        self.log.chosen.connect(self.timeline.go)
        self.header.start.connect(self.bench.start)
        self.header.stop.connect(self.bench.stop)
        self.header.estop.connect(self.bench.estop)

    def set_theme(self, name: str) -> None:
        """Light, dark, or as the desktop is (`system`)."""
        self.theme_name = name if name in (*THEMES, "system") else "system"
        chosen = theme.chosen(self.theme_name)
        theme.apply(QApplication.instance(), chosen)
        for part in (self.traces, self.array, self.numbers, self.timing, self.ages, self.log,
                     self.paths, self.header, self.compare):  # fmt: skip
            part.set_theme(chosen)
        for kind, button in self.kind_buttons.items():
            colour = chosen.colour(kind).name()
            button.setStyleSheet(
                f"QToolButton {{ border-left: 4px solid {colour}; color: {chosen.muted}; }}"
                f"QToolButton:checked {{ background: {chosen.surface}; color: {chosen.text};"
                f" border: 1px solid {chosen.line}; border-left: 4px solid {colour}; }}"
            )
        self.settings.setValue("theme", self.theme_name)

    # What is shown

    @property
    def data(self) -> RunData | None:
        return self.feed.data if self.feed else None

    def choose(self) -> None:
        """Ask for an experiment or a recording."""
        name, _ = QFileDialog.getOpenFileName(
            self, "Open", self.folder(), "Experiments and recordings (*.toml *.h5);;All files (*)"
        )
        if name:
            self.open(Path(name))

    def folder(self) -> str:
        """Where file dialogues begin."""
        recent = self.recent
        return str(Path(recent[0]).parent) if recent else str(Path.cwd())

    def open(self, path: Path) -> bool:
        """Open an experiment or a recording, or say why not; whether it could be."""
        try:
            self.load(path)
        except (ConfigError, DeviceError) as error:
            self.complain("This cannot be opened", str(error))
            return False
        return True

    def load(self, path: Path) -> None:
        """Open an experiment or a recording.

        Raises
        ------
        ConfigError, DeviceError
            It is neither; the text says what to do.
        """
        if path.suffix == ".toml":
            self.bench.open(path)
        else:
            self._open_recording(path)
        self._remember(path)

    def _open_recording(self, path: Path) -> None:
        feed = Feed(File(path))
        pid = run_of(path) if feed.file.outcome_now() == "running" else None
        if pid is not None and not self.bench.is_busy:
            self.bench.watch(pid, path)
            return
        self._show_feed(feed)
        self.timeline.set_span(None)
        self.jobs.start(f"Reading {path.name}", feed.load(), self._loaded)

    def _loaded(self, whole: bool) -> None:
        if self.feed is None:
            return
        if not whole:
            self.say("Reading was cancelled: what was read is shown")
        if self.feed.data.outcome != "running":
            self.timeline.follows = False
        self._refresh_run()

    def attach(self, pid: int, path: Path) -> None:
        """Show the run of another process live."""
        live = Live(pid)
        feed = Feed(File(path), live)
        for _ in feed.load():
            pass
        self._show_feed(feed)
        self.timeline.set_span(10.0)

    def try_attach(self, pid: int, path: Path) -> None:
        """Show a run as soon as it has begun."""
        if not path.exists():
            return
        try:
            if Live(pid).is_recording:
                self.attach(pid, path)
        except (ConfigError, DeviceError):
            return  # not yet, or just over

    def finish(self, path: Path, outcome: str) -> None:
        """The run recorded there has ended; its file says how, where that is not known."""
        feed = self.feed
        if feed is None or feed.about.path != path:
            if path.exists():
                self._open_recording(path)
            return
        feed.poll(perf_counter())
        feed.data.outcome = outcome or File(path).outcome_now()
        self.timeline.grow(feed.data.last_s)
        self._refresh_run()

    def _show_feed(self, feed: Feed) -> None:
        self.jobs.cancel()
        self.transport.play.setChecked(False)
        if self.feed is not None:
            self.feed.close()
        self.feed = feed
        self._show_run(feed.data)

    def show_preview(self, about: About) -> None:
        """An experiment that is not running yet: its title, and its array at rest."""
        if self.feed is not None:
            self.feed.close()
        self.feed = None
        self._show_run(None)
        self.array.set_pictures(about.arrays)
        self.paths.show_limb(about)
        self.docks["Path"].setVisible(self.paths.has_points)
        self.docks["Array"].setVisible(bool(about.arrays))
        self.setWindowTitle(about.title)
        self.header.set_run(about.title, f"{about.path.name} · not running", "")
        self.traces.set_hint(READY_HINT)

    def _show_run(self, data: RunData | None) -> None:
        self.timeline.clear()
        self._n_said = 0
        self.transport.cursor_button.setChecked(False)
        self.array.set_pictures(data.about.arrays if data else ())
        self.traces.set_hint(EMPTY_HINT)
        for part in (self.traces, self.ages, self.log, self.paths):
            part.set_run(data)
        self.columns.set_run(data, self.traces.chosen)
        self.docks["Path"].setVisible(self.paths.has_points)
        self.docks["Array"].setVisible(data is None or bool(data.about.arrays))
        if self.paths.has_points and not (data and data.about.arrays):
            docks = [self.docks[name] for name in ("Path", "Figures", "Lateness")]
            self.resizeDocks(docks, [300, 110, 150], Qt.Orientation.Vertical)
        self.bench.run_shown(data)
        if data is not None and data.signal is not None:
            for kind, button in self.kind_buttons.items():
                button.setVisible(kind in data.signal.columns)
        band = data.about.band if data else 0.0
        self.legend.setText(f"± {1e3 * band:.1f} mN" if band else "")
        trip = data.about.residual_max if data else float("inf")
        trips = f"\nThe guard trips at a residual of ± {trip:g} N" if trip < float("inf") else ""
        self.legend.setToolTip(
            "Band about the twin, and the residual's threshold: two standard deviations of the "
            f"transducer's noise{trips}"
        )
        self._refresh_run()

    def _refresh_run(self) -> None:
        data = self.data
        if data is None:
            self.header.set_run("hil", "Ctrl+O opens an experiment or a recording", "")
            self.setWindowTitle("hil")
        else:
            about = data.about
            mark = " — SIMULATED" if about.simulated else ""
            self.setWindowTitle(f"{about.title}{mark}")
            detail = f"{about.path.name} · {about.backend} · {about.clock} clock"
            self.header.set_run(about.title, detail, about.simulated)
        self._moved()
        self._refresh_slow()

    def frame(self) -> None:
        """Take new rows, move on, draw what changed."""
        now_s = perf_counter()
        elapsed_s, self._last_s = now_s - self._last_s, now_s
        self._n_frames += 1
        self.bench.poll()
        feed = self.feed
        if feed is not None and not self.jobs.is_busy:
            if feed.poll(now_s):
                self.timeline.grow(feed.data.last_s)
                self.traces.touch()
        elif feed is not None:
            self.timeline.grow(feed.data.last_s)
            self.traces.touch()
        self.transport.advance(elapsed_s)
        drawn = self.traces.redraw()
        if drawn and self._n_frames % 2 == 0:
            self._draw_instant()
        if self._n_frames % SLOW_EVERY == 0:
            self._refresh_slow()

    def _moved(self) -> None:
        self.traces.touch()
        self._draw_instant()

    def _draw_instant(self) -> None:
        feed, line = self.feed, self.timeline
        if feed is None:
            return
        cells = feed.cells_at(line.now_s)
        if cells is not None:
            self.array.show_state(cells, feed.moves_at(line.now_s))
        self.paths.show_run(feed.data, line.now_s)

    def _refresh_slow(self) -> None:
        data, now_s = self.data, self.timeline.now_s
        if data is not None and len(data.notes) > self._n_said:
            refused = [n.text for n in data.notes[self._n_said :] if n.level == "warning"]
            self._n_said = len(data.notes)
            if refused:
                self.say(refused[-1])
        for part in (self.numbers, self.timing, self.ages, self.log):
            part.show_run(data, now_s)
        self.transport.refresh()
        self.header.time.setText("" if data is None else f"{now_s:.1f} s")
        self.bench.show_state()
        if self.traces.cursors is not None and self.timeline.follows:
            self._show_cursors()

    def causes_in_words(self, now_s: float) -> str:
        """The faults latched by then, first cause first: who, how much, and which limit."""
        data = self.data
        names = [] if data is None else data.faults_at(now_s)
        words = causes() if names else {}
        said = {} if data is None else data.trip_texts
        return "; ".join(said.get(name, f"{name}: {words.get(name, name)}") for name in names)

    # Cursors

    def _switch_cursors(self, on: bool) -> None:
        line = self.timeline
        width_s = line.to_s - line.from_s
        places = (line.from_s + width_s / 3, line.from_s + 2 * width_s / 3) if on else None
        self.traces.set_cursors(places)
        if on:
            self.docks["Cursor readings"].show()
            self.docks["Cursor readings"].raise_()

    def _show_cursors(self) -> None:
        self.cursor_table.show_cursors(self.data, self.traces)

    # Keys

    def write_note(self) -> None:
        """Bring the note's field up."""
        self.docks["Control"].show()
        self.docks["Control"].raise_()
        self.bench.control.note.setFocus()

    def show_all(self) -> None:
        """The whole run, every range automatic."""
        self.traces.auto()
        self.timeline.show_all()

    def zoom(self, factor: float) -> None:
        """More or less time in view, about the instant shown."""
        line = self.timeline
        about_s = min(max(line.now_s, line.from_s), line.to_s)
        line.look(
            about_s - factor * (about_s - line.from_s), about_s + factor * (line.to_s - about_s)
        )

    def first_layout_again(self) -> None:
        """Panels as at the first start."""
        self.restoreState(self.first_layout)
        self.docks["Path"].setVisible(self.paths.has_points)
        QTimer.singleShot(0, lambda: layout.hide_stale_tabs(self))

    # Manners

    def say(self, text: str) -> None:
        """A remark that does not ask for attention."""
        self.message.setText(text)

    def complain(self, title: str, text: str) -> None:
        """Something went wrong; the text says what to do."""
        self.say(text.splitlines()[0] if text else title)
        QMessageBox.warning(self, title, tip(text))

    def say_defect(
        self, kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        """A defect of the window itself: one line, and the window goes on; so does the run."""
        if os.environ.get("HIL_DEBUG"):
            sys.__excepthook__(kind, error, trace)
        self.say(
            f"a defect of the window: {kind.__name__}: {error}: what runs goes on; "
            "HIL_DEBUG=1 hil gui prints its trace, to report it"
        )

    @property
    def recent(self) -> list[str]:
        """Files opened last, newest first."""
        kept = self.settings.value("recent", [])
        return [kept] if isinstance(kept, str) else list(kept or [])

    def _remember(self, path: Path) -> None:
        name = str(path.resolve())
        others = [kept for kept in self.recent if kept != name]
        self.settings.setValue("recent", [name, *others][:RECENT_MAX])
        menus.fill_recent(self)

    def _restore(self) -> None:
        for key, restore in (("geometry", self.restoreGeometry), ("layout", self.restoreState)):
            kept = self.settings.value(key)
            if kept is not None:
                restore(kept)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        QTimer.singleShot(0, lambda: layout.hide_stale_tabs(self))

    def closeEvent(self, event: QCloseEvent) -> None:
        if not self.bench.may_close():
            event.ignore()
            return
        self._timer.stop()
        self.jobs.cancel()
        if self.feed is not None:
            self.feed.close()
        self.settings.setValue("geometry", self.saveGeometry())
        self.settings.setValue("layout", self.saveState())
        event.accept()
