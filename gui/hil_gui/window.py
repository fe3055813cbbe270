"""The main window: panels around the plots, and the frame timer that updates them."""

import os
import sys
from pathlib import Path
from time import perf_counter
from types import TracebackType

from PySide6.QtCore import QSettings, Qt, QTimer
from PySide6.QtGui import QCloseEvent, QShowEvent
from PySide6.QtWidgets import (
    QApplication,
    QDialog,
    QFileDialog,
    QMainWindow,
)

from hil_gui import layout, menus, theme
from hil_gui.data import ConfigError, DeviceError, File, Live, run_of, save_experiment
from hil_gui.feed import Feed
from hil_gui.help import show_help
from hil_gui.new_rig import NewRig
from hil_gui.parts import Parts
from hil_gui.plain import tip
from hil_gui.run_data import BAND, About, RunData
from hil_gui.session import Session
from hil_gui.theme import THEMES
from hil_gui.units import si

FRAME_MS = 25
"""Niceness of the window: the loop comes first even without a real-time priority."""
SLOW_EVERY = 4
"""Number of frames between two refreshes of figures and tables."""
EMPTY_HINT = (
    "Open an experiment (.toml) to run it, or a recording (.h5) to view it\n\n"
    "Ctrl+O open  ·  Ctrl+L overlay a recording  ·  F1 help  ·  F12 emergency stop"
)
READY_HINT = (
    "F2 self-test  ·  F8 connect  ·  F3 tare  ·  F4 arm  ·  F5 start\n\n"
    "On the simulated rig F5 alone is enough"
)


class Window(QMainWindow):
    """Shows one run, live or recorded, and controls the bench."""

    def __init__(self, settings: QSettings | None = None) -> None:
        super().__init__()
        self.settings = settings if settings is not None else QSettings("hil-arrays", "hil")
        self.setWindowTitle("hil")
        self.setDockNestingEnabled(True)
        self.session = Session(self.settings, self)
        self.timeline, self.jobs = self.session.timeline, self.session.jobs
        self.parts = parts = Parts(self.session, self)
        self.traces, self.array, self.paths = parts.traces, parts.array, parts.paths
        self.columns, self.log, self.cursor_table = parts.columns, parts.log, parts.cursor_table
        self.numbers, self.timing, self.ages = parts.numbers, parts.timing, parts.ages
        self.header, self.transport, self.bench = parts.header, parts.transport, parts.bench
        self.compare, self.runs = parts.compare, parts.runs
        self.arrangement = layout.build(self, parts)
        self.docks, self.kind_buttons = self.arrangement.docks, self.arrangement.kind_buttons
        self.recent_menu = menus.build(self, self, parts, self.docks)
        self._connect()
        self._n_frames = self._n_notes_shown = 0
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
        self.runs.chosen.connect(self.open)
        self.runs.model.ticked.connect(self.compare.tick)
        self.compare.changed.connect(self.runs.model.show_overlaid)
        self.traces.dropped.connect(self.take)
        self.header.start.connect(self.bench.start)
        self.header.stop.connect(self.bench.stop)
        self.header.estop.connect(self.bench.estop)

    def set_theme(self, name: str) -> None:
        """Use theme `light`, `dark` or `system`, which follows the desktop."""
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
    def feed(self) -> Feed | None:
        return self.session.feed

    @property
    def data(self) -> RunData | None:
        return self.session.data

    def choose(self) -> None:
        """Ask for an experiment or a recording."""
        name, _ = QFileDialog.getOpenFileName(
            self,
            "Open",
            self.session.folder(),
            "Experiments and recordings (*.toml *.h5);;All files (*)",
        )
        if name:
            self.open(Path(name))

    def new_rig(self) -> None:
        """Ask what is on a bench, and write a rig of it."""
        dialog = NewRig(self, Path(self.session.folder()))
        dialog.made.connect(self.open)
        dialog.show()  # not modal: the emergency stop stays within reach

    def save_experiment(self) -> None:
        """Ask for a file, and write the open experiment with the values of its fields to it."""
        path = self.bench.control.path
        if path is None or self.bench.control.settings is None:
            text = (
                "Open an experiment first (Ctrl+O)" if path is None else "Correct its errors first"
            )
            self.session.complain("Not saved", text)
            return
        start = str(path.with_stem(f"{path.stem}-2"))
        name, _ = QFileDialog.getSaveFileName(
            self, "Save experiment", start, "Experiments (*.toml)"
        )
        if name:
            self.save(Path(name))

    def save(self, out: Path) -> None:
        """Write the open experiment with the values of its fields, and open that file."""
        control = self.bench.control
        control.check()
        if control.settings is None:
            self.session.complain("Not saved", control.problem.text())
            return
        try:
            save_experiment(control.path, control.sets, out)
        except ConfigError as error:
            self.session.complain("Not saved", str(error))
            return
        if self.open(out):
            self.session.say(f"Saved: {out}")

    def help(self) -> QDialog:
        """Show the steps of a run and every key."""
        return show_help(self)

    def open(self, path: Path) -> bool:
        """Open an experiment or a recording; returns whether it succeeded.

        It shows the reason if the file cannot be opened.
        """
        try:
            self.load(path)
        except (ConfigError, DeviceError) as error:
            self.session.complain("Cannot be opened", str(error))
            return False
        return True

    def take(self, paths: list[Path]) -> None:
        """Overlay recordings on the open run; open what is no recording, or if there is none."""
        first, *more = paths
        if self.data is None or first.suffix == ".toml":
            self.open(first)
            paths = more
        self.compare.add([path for path in paths if path.suffix == ".h5"])

    def load(self, path: Path) -> None:
        """Open an experiment or a recording.

        Raises
        ------
        ConfigError, DeviceError
            The file is neither, or is not valid.
        """
        if path.suffix == ".toml":
            self.bench.open(path)
            self._bring_up("Control")
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

    def _loaded(self, is_complete: bool) -> None:
        if self.feed is None:
            return
        if not is_complete:
            self.session.say("Reading was cancelled: only the rows read so far are shown")
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
        """Show a run if its recorder has started."""
        if not path.exists():
            return
        try:
            if Live(pid).is_recording:
                self.attach(pid, path)
        except (ConfigError, DeviceError):
            return  # not started yet, or just over

    def finish(self, path: Path, outcome: str) -> None:
        """Show the end of a run; an empty outcome is read from its recording."""
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
        self.session.show(feed)
        self._show_run(feed.data)

    def show_preview(self, about: About) -> None:
        """Show an experiment before its run: its title, and its array at rest."""
        self.session.show(None)
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
        self._n_notes_shown = 0
        self.transport.cursor_button.setChecked(False)
        self.array.set_pictures(data.about.arrays if data else ())
        self.traces.set_hint(EMPTY_HINT)
        for part in (self.traces, self.ages, self.log, self.paths):
            part.set_run(data)
        self.columns.set_run(data, self.traces.chosen)
        self.runs.show_run()
        self.docks["Path"].setVisible(self.paths.has_points)
        self.docks["Array"].setVisible(data is None or bool(data.about.arrays))
        if self.paths.has_points and not (data and data.about.arrays):
            docks = [self.docks[name] for name in ("Path", "Figures", "Lateness")]
            self.resizeDocks(docks, [300, 110, 150], Qt.Orientation.Vertical)
        self.bench.run_shown(data)
        if data is not None and data.signal is not None:
            for kind, button in self.kind_buttons.items():
                button.setVisible(kind in data.signal.columns)
        self._refresh_run()

    def _show_band(self, data: RunData | None, now_s: float) -> None:
        """Half widths at an instant, and what they are of."""
        if data is None or data.signal is None:
            self.arrangement.legend.setText("")
            return
        half = data.at(now_s)[BAND] if data.n_rows else float("nan")
        units = data.signal.units
        band = f"95 % band of model and noise ± {si(half, units, 3)}"
        noise = f"noise alone ± {si(data.noise, units, 3)}"
        known = ((band, half == half), (noise, data.noise > 0.0))
        self.traces.show_band(", ".join(text for text, is_known in known if is_known))
        shown = half if half == half else data.noise
        self.arrangement.legend.setText(f"± {si(shown, units, 3)}" if shown else "")
        trip = data.about.residual_max
        trips = f"\nThe guard trips at a residual of ± {trip:g} N" if trip < float("inf") else ""
        what = (
            f"No band of model and noise: {data.no_band}"
            if data.no_band
            else "Shaded, about the twin and about zero residual: 95 % band of model and noise, "
            "from the calibration records of the model's parameters and of the channel"
        )
        self.arrangement.legend.setToolTip(
            tip(f"{what}\nDashed: 95 % of the channel's noise alone{trips}")
        )

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
            if about.backend == "imported":
                detail = f"{about.path.name} · imported, not measured by hil"
            self.header.set_run(about.title, detail, about.simulated)
        self._moved()
        self._refresh_slow()

    def frame(self) -> None:
        """Read new rows, advance playback, draw what changed."""
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
        if data is not None and len(data.notes) > self._n_notes_shown:
            refused = [n.text for n in data.notes[self._n_notes_shown :] if n.level == "warning"]
            self._n_notes_shown = len(data.notes)
            if refused:
                self.session.say(refused[-1])
        for part in (self.numbers, self.timing, self.ages, self.log):
            part.show_run(data, now_s)
        self.transport.refresh()
        self._show_band(data, now_s)
        self.header.time.setText("" if data is None else data.time_text(now_s))
        self.bench.show_state()
        if self.traces.cursors is not None and self.timeline.follows:
            self._show_cursors()

    # Cursors

    def _switch_cursors(self, on: bool) -> None:
        line = self.timeline
        width_s = line.to_s - line.from_s
        places = (line.from_s + width_s / 3, line.from_s + 2 * width_s / 3) if on else None
        self.traces.set_cursors(places)
        if on:
            self._bring_up("Cursor readings")

    def _show_cursors(self) -> None:
        self.cursor_table.show_cursors(self.data, self.traces)

    # Keys

    def write_note(self) -> None:
        """Show the note field and focus it."""
        self._bring_up("Control")
        self.bench.control.note.setFocus()

    def _bring_up(self, title: str) -> None:
        self.docks[title].show()
        self.docks[title].raise_()

    def show_all(self) -> None:
        """Show the whole run with automatic y ranges."""
        self.traces.auto()
        self.timeline.show_all()

    def zoom(self, factor: float) -> None:
        """Scale the time range in view about the shown instant; `factor` below 1 zooms in."""
        line = self.timeline
        about_s = min(max(line.now_s, line.from_s), line.to_s)
        line.look(
            about_s - factor * (about_s - line.from_s), about_s + factor * (line.to_s - about_s)
        )

    def reset_layout(self) -> None:
        """Restore the default arrangement of the panels."""
        self.restoreState(self.arrangement.first)
        self.docks["Path"].setVisible(self.paths.has_points)
        QTimer.singleShot(0, self._hide_stale_tabs)

    def _hide_stale_tabs(self) -> None:
        layout.hide_stale_tabs(self, self.docks.values())

    # Errors, settings, closing

    def report_internal_error(
        self, kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        """Show an internal error of the window in one line; the window and the run continue."""
        if os.environ.get("HIL_DEBUG"):
            sys.__excepthook__(kind, error, trace)
        self.session.say(
            f"internal error of the window: {kind.__name__}: {error}: the run continues; "
            "to report it, run HIL_DEBUG=1 hil gui, which prints the traceback"
        )

    def _remember(self, path: Path) -> None:
        self.session.remember(path)
        menus.fill_recent(self.recent_menu, self.session.recent, self.open)

    def _restore(self) -> None:
        for key, restore in (("geometry", self.restoreGeometry), ("layout", self.restoreState)):
            kept = self.settings.value(key)
            if kept is not None:
                restore(kept)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        QTimer.singleShot(0, self._hide_stale_tabs)

    def closeEvent(self, event: QCloseEvent) -> None:
        if not self.bench.may_close(self):
            event.ignore()
            return
        self._timer.stop()
        self.jobs.cancel()
        self.session.show(None)
        self.settings.setValue("geometry", self.saveGeometry())
        self.settings.setValue("layout", self.saveState())
        event.accept()
