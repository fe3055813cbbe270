"""Bench workflow: open experiments, start and stop runs, send requests to the loop."""

from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Protocol

import numpy as np
from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QMessageBox, QWidget

from hil_gui.control import Control
from hil_gui.data import DeviceError, File, ask_to_stop, is_alive, preview, rows_of
from hil_gui.fields import LARGEST
from hil_gui.header import Header
from hil_gui.permission import Permission, Subject
from hil_gui.run_data import About, RunData
from hil_gui.runner import Command, recording_path, run_words
from hil_gui.session import Session

TARE_S, LOOK_S = 1.0, 0.1
BAD_INPUT, TRIPPED, INTERRUPTED = 2, 3, 130


class Viewer(Protocol):
    """What `BenchDay` needs from the main window to show runs."""

    def choose(self) -> None: ...

    def show_preview(self, about: About) -> None: ...

    def try_attach(self, pid: int, path: Path) -> None: ...

    def finish(self, path: Path, outcome: str) -> None: ...


class BenchDay(QObject):
    """Actions behind the buttons of the window.

    Attributes
    ----------
    command : Command or None
        The running `hil run` that this window started, as a run or as a self-test.
    trials : list of Path
        Recordings made by this window.
    permission : Permission
        What was tested and armed, and what must be acknowledged before the next start.
    ended : Signal
        Emitted when a run that this window started has ended, or did not start: (it has rows).
    shown : Signal
        Emitted after a refresh of the state: (a run is live, a run may start).
    """

    ended = Signal(bool)
    shown = Signal(bool, bool)

    def __init__(self, session: Session, header: Header, viewer: Viewer) -> None:
        super().__init__()
        self._session = session
        self._header = header
        self._viewer = viewer
        self.control = Control()
        self.command: Command | None = None
        self.trials: list[Path] = []
        self.permission = Permission()
        self._doing = ""
        self._out: Path | None = None
        self._pid: int | None = None
        self._next: Path | None = None  # to connect once its self-test has passed
        self._begin_when_live = False
        control = self.control
        control.open_button.clicked.connect(viewer.choose)
        control.self_test.clicked.connect(self.self_test)
        control.tare.clicked.connect(self.tare)
        control.connect_button.clicked.connect(self.connect_rig)
        control.arm.clicked.connect(self.arm)
        control.reset.clicked.connect(self.reset)
        control.hold.clicked.connect(lambda: self.set_point(control.set_point.value()))
        control.release.clicked.connect(lambda: self.set_point(float("nan")))
        control.add_note.clicked.connect(self.add_note)
        control.note.returnPressed.connect(self.add_note)
        control.gain_changed.connect(self.send)
        control.changed.connect(self._checked)

    # Opening

    def open(self, path: Path) -> None:
        """Open and show an experiment.

        Raises
        ------
        ConfigError
            The experiment is not valid.
        """
        self.control.open(path)
        self.permission.withdraw()
        if not self.is_busy:
            self._viewer.show_preview(preview(path, self.control.settings))
        self._session.say(f"{path} is valid: F2 runs its self-test, F5 starts it")

    @property
    def data(self):
        """The run that is shown."""
        return self._session.data

    @property
    def folder(self) -> Path:
        """Folder for recordings, the same as for `hil run`."""
        return Path("runs")

    def watch(self, pid: int, path: Path) -> None:
        """Show a run that another process started; Stop and E-STOP work on it."""
        self._pid, self._out, self._doing = pid, path, "run"
        self.permission.withdraw()

    # Starting and ending

    def _begin(
        self, doing: str, clock: str, sets: dict[str, str], experiment: Path | None = None
    ) -> None:
        control = self.control
        experiment = control.path if experiment is None else experiment
        folder = self.folder
        folder.mkdir(parents=True, exist_ok=True)
        self._out = recording_path(experiment, folder)
        backend = control.backend if doing == "run" else "sim"
        port = control.foxglove_port if doing == "run" else None
        words = run_words(
            experiment, self._out, backend=backend, clock=clock, sets=sets, foxglove_port=port
        )
        words += ["--disarmed"] if doing == "run" else []
        self.command = Command(words, attended=True)
        self._pid, self._doing = self.command.pid, doing
        self.control.lock(True)
        self.show_state()

    def self_test(self) -> None:
        """Run the same configuration on simulated devices and the virtual clock."""
        if self._may_begin():
            self._rehearse(self.control.sets)

    def _rehearse(self, sets: dict[str, str], experiment: Path | None = None) -> None:
        self._begin("rehearsal", "virtual", sets, experiment)
        self._session.jobs.start("Self-test", self._self_test_progress(), self._self_test_done)

    def _self_test_progress(self):
        """Yield the share of the rows that it has made, looking ten times a second."""
        command, share, looked_s = self.command, 0.0, 0.0
        settings = self.control.settings or {}
        period_s = settings.get("loop", {}).get("period_s", 1.0)
        n_rows = max(1.0, settings.get("experiment", {}).get("duration_s", 1.0) / period_s)
        while command.exit_code is None:
            if perf_counter() - looked_s > LOOK_S:
                looked_s, share = perf_counter(), min(1.0, rows_of(command.pid) / n_rows)
                if share == 0.0 and command.latest_line:
                    self._session.jobs.label.setText(f"Self-test: {command.latest_line}")
            yield share

    def _self_test_done(self, is_complete: bool) -> None:
        command, self.command = self.command, None
        self._pid, self._doing = None, ""
        following, self._next = self._next, None
        self.control.lock(False)
        passed = is_complete and command.exit_code == 0
        if not is_complete:
            command.stop()
            self._session.say("The self-test was cancelled")
        elif passed:
            self.permission.add_tested(File(self._out).about.sha256)
            self._session.say(f"Self-test passed: {self._out.name}")
        elif command.exit_code == TRIPPED:
            cause = ", ".join(command.result.get("first_fault", []))
            self._session.complain("Self-test", f"The self-test tripped ({cause}): {self._out}")
        else:
            self._session.complain("Self-test", command.error_text)
        if following is not None:
            if passed and self._may_begin():
                self._begin("run", "real", {}, following)
            else:
                self.ended.emit(False)
        self.show_state()

    def connect_rig(self) -> None:
        """Open the devices and read them with all outputs off, until Start."""
        if self._may_begin() and self._may(self.permission.to_connect):
            self._begin_when_live = False
            self._begin("run", "real", self.control.sets)

    def start(self) -> None:
        """Start the experiment; connect to the rig first if needed."""
        if self._waits:
            self._arm_run()
        elif self._may_begin() and self._may(self.permission.to_switch):
            self._begin_when_live = True
            self._begin("run", "real", self.control.sets)

    def start_file(self, experiment: Path) -> bool:
        """Start another experiment on this rig without opening it; returns whether it started.

        On the bench it is tested in simulation, then connected: Arm and Start switch its cells.
        """
        if not self._may_begin():
            return False
        self.permission.withdraw()  # it was for the open experiment
        if self.control.backend == "bench":
            self._next = experiment
            self._rehearse({}, experiment)
        else:
            self._begin_when_live = True
            self._begin("run", "real", {}, experiment)
        return True

    # Who may switch cells

    @property
    def _waits(self) -> bool:
        """Whether a rig is connected whose run has not begun."""
        return self._is_live and not self.data.has_begun

    @property
    def _subject(self) -> Subject:
        if not self._is_live:
            return Subject(self.control.sha256, self.control.backend == "bench")
        about = self.data.about
        if self.command is None:
            return Subject(about.sha256, "bench" in about.backend, of_others=True)
        return Subject(about.sha256, self.control.backend == "bench")

    @property
    def permitted(self) -> bool:
        """Whether the operator has armed what Start would begin."""
        return self.permission.holds_for(self._subject)

    def _checked(self) -> None:
        """Withdraw the permission if the open experiment is no longer what was armed."""
        if not self.is_busy and not self.permitted:
            self.permission.withdraw()
        self.show_state()

    def _may(self, rule: Callable[[Subject], str]) -> bool:
        """Whether a rule asks nothing more of the operator; otherwise says what it asks."""
        missing = rule(self._subject)
        if missing:
            self._session.complain("Not started", missing)
        return not missing

    def _arm_run(self) -> None:
        if self._may(self.permission.to_switch):
            self.send("arm", 1.0)

    @property
    def _is_live(self) -> bool:
        feed = self._session.feed
        return feed is not None and feed.live is not None and feed.about.path == self._out

    @property
    def rig_state(self) -> str:
        """State of the live rig, one of `hil.loop.states.STATES`; "off" if none is live."""
        return self._session.feed.live.state if self._is_live else "off"

    @property
    def is_armed(self) -> bool:
        return self.rig_state in ("armed", "running")

    def _may_begin(self) -> bool:
        problem = ""
        if self.is_busy:
            problem = "A run is in progress: stop it first (F6)"
        elif self.control.path is None:
            problem = "Open an experiment first (Ctrl+O)"
        elif self.permission.to_begin:
            problem = self.permission.to_begin
        else:
            self.control.check()
            if self.control.settings is None:
                problem = self.control.problem.text()
        if problem:
            self._session.complain("Not started", problem)
        return not problem

    @property
    def is_busy(self) -> bool:
        return self._pid is not None

    def stop(self) -> None:
        """End the run safely.

        This works even if the loop takes no requests.
        """
        self._begin_when_live, self._next = False, None
        if self.command is not None:
            self.command.stop()
        elif self._pid is not None:
            ask_to_stop(self._pid)
        elif self._session.jobs.is_busy:
            self._session.jobs.cancel()

    def estop(self) -> None:
        """Switch all cells off at once; the next start needs a reset."""
        self.permission.trip("estop")
        self.stop()
        self._session.say(
            "Emergency stop: the run switches all cells off; "
            "this does not replace the bench's hardware emergency stop"
        )
        self.show_state()

    def reset(self) -> None:
        """Acknowledge a trip or an emergency stop; does not start a run."""
        if self.is_busy:
            self._session.complain(
                "Not reset", "The run is still in progress: wait until it ends, or stop it (F6)"
            )
            return
        self.permission.acknowledge()
        self._session.say("Reset: run the self-test, arm and start again")
        self.show_state()

    # Requests

    def send(self, name: str, value: float = float("nan"), text: str = "") -> bool:
        """Send a request to the loop; returns whether it was sent."""
        feed = self._session.feed
        try:
            if feed is None:
                raise DeviceError(f"{name}: not sent, no run is in progress: press Start first")
            feed.send(name, value, text)
        except DeviceError as error:
            self._session.complain("Not sent", str(error))
            return False
        return True

    def arm(self) -> None:
        """Permit Start to switch cells, or withdraw the permission; in a run, arm or disarm it."""
        if self.is_armed or self.permission.is_given:  # also for what was begun, then edited
            self.permission.withdraw()
            if self._is_live:
                self.send("arm", 0.0)
        else:
            self._permit()
        self.show_state()

    def _permit(self) -> None:
        if not self._is_live:
            self.control.check()
        if self._may(self.permission.to_connect):
            self.permission.grant(self._subject)
            if self._is_live and self.data.has_begun:
                self.send("arm", 1.0)

    def tare(self) -> None:
        """Make the mean of the last second the zero of the force."""
        data = self._session.data
        if data is None or data.signal is None or self._session.feed.live is None:
            self._session.complain(
                "Not tared", "No run is in progress: start one, then tare with all cells off"
            )
            return
        _, rows = data.values.samples(data.last_s - TARE_S, np.inf)
        measured = rows[data.index(data.signal.columns["measured"])]
        mean = float(np.nanmean(measured)) if np.isfinite(measured).any() else float("nan")
        if np.isnan(mean):
            self._session.complain("Not tared", "No reading yet: wait a second")
        elif self.send("tare", mean):
            self._session.say(f"Tare: {mean:.4f} {data.signal.units} is subtracted from now on")

    def set_point(self, value: float) -> None:
        """Hold a set point; NaN returns to the configured reference."""
        signal = self._session.data.signal if self._session.data else None
        self.send(signal.columns.get("reference", "") if signal else "force_reference_N", value)

    def run_shown(self, data: RunData | None) -> None:
        """Set the units and limits of the set-point field from the run's first signal."""
        if data is not None and data.signal is not None:
            field, quantity = self.control.set_point, data.signal.quantity
            field.setSuffix(f" {data.signal.units}")
            low, high = data.about.limits(quantity)
            field.setRange(max(low, -LARGEST), min(high, LARGEST))

    def add_note(self) -> None:
        """Write the operator's note into the recording."""
        text = self.control.note.text().strip()
        if text and self.send("note", float("nan"), text):
            self.control.note.clear()

    # Polling

    def poll(self) -> None:
        """Check whether the run has started or ended."""
        if self._pid is None or self._doing != "run":
            return
        session = self._session
        if session.feed is None or session.feed.about.path != self._out:
            self._viewer.try_attach(self._pid, self._out)
        if self._begin_when_live and self._is_live:
            self._begin_when_live = False
            self._arm_run()
        command = self.command
        if command is not None and command.exit_code is not None:
            self._over(command)
        elif command is None and not is_alive(self._pid):
            self._pid, self._doing = None, ""
            self.permission.withdraw()
            self._viewer.finish(self._out, "")
            # The recorder has closed the file as `recovered` by now, or is about to.
            if session.data is not None and session.data.outcome in ("running", "recovered"):
                session.data.outcome = "lost"
            self.control.lock(False)

    def _over(self, command: Command) -> None:
        session = self._session
        self.command, self._pid, self._doing = None, None, ""
        self._begin_when_live = False
        self.permission.withdraw()
        self.control.lock(False)
        if self._out.exists():
            self.trials.append(self._out)
            killed = command.exit_code < 0
            self._viewer.finish(
                self._out, str(command.result.get("outcome", "lost" if killed else ""))
            )
        if command.exit_code == TRIPPED:
            self.permission.trip("fault")
        elif command.exit_code not in (0, INTERRUPTED):
            title = "Refused" if command.exit_code == BAD_INPUT else "The run failed"
            session.complain(title, command.error_text or "hil printed no error: run hil doctor")
        self.ended.emit(self._out.exists())
        self.show_state()

    @property
    def state(self) -> str:
        """State to show, a key of `header.STATE_WORDS`."""
        data = self._session.data
        if self.is_busy:
            if self._doing == "rehearsal":
                return "checking"
            now = self.rig_state
            if now == "off" and data is not None and data.about.path == self._out:
                now = data.state_at(data.last_s)  # the feed has already left this run
            return now if now not in ("", "off") else "starting"
        if self.permission.latched == "estop":
            return "estop"
        if self._session.jobs.is_busy and data is not None:
            return "reading"
        if self.permission.latched:
            return "tripped"
        if data is not None:
            line = self._session.timeline
            past = line.now_s < line.end_s and not line.follows
            return (data.state_at(line.now_s) if past else "") or data.outcome
        return "off" if self.control.settings is not None else ""

    def show_state(self) -> None:
        """Refresh the header and the buttons."""
        session, control = self._session, self.control
        state = self.state
        causes = session.causes_in_words(session.timeline.now_s)
        if state == "estop":
            causes = "; ".join(
                filter(None, ("stopped by the operator: Reset (F7) when the bench is safe", causes))
            )
        if not causes and state == "ready":
            on_bench = self._subject[1]
            switches = "Start (F5) will switch cells" if on_bench else "Start (F5) runs it"
            causes = "Arm (F4), then Start" if on_bench and not self.permitted else switches
        if not causes and self.command is not None and not self.is_armed:
            causes = self.command.latest_line
        control.show_served("" if self.command is None else self.command.line_after("foxglove:"))
        is_live = self.is_busy or session.feed is None
        self._header.set_state(state, causes, is_live=is_live)
        live = session.feed is not None and session.feed.live is not None
        may_start = not self.is_busy and control.settings is not None
        self._header.start_button.setEnabled(may_start or self._waits)
        control.self_test.setEnabled(may_start)
        control.connect_button.setEnabled(may_start)
        self._header.stop_button.setEnabled(self.is_busy)
        control.arm.setText("Disarm" if self.is_armed or self.permission.is_given else "Arm")
        control.arm.setEnabled(control.settings is not None or live)
        control.reset.setEnabled(bool(self.permission.latched) and not self.is_busy)
        for widget in (control.tare, control.hold, control.release, control.set_point,
                       control.note, control.add_note):  # fmt: skip
            widget.setEnabled(live)
        self.shown.emit(live, may_start)

    def may_close(self, parent: QWidget) -> bool:
        """Ask whether to stop a run in progress; returns whether the window may close."""
        if self.command is None:
            return True
        buttons = QMessageBox.StandardButton
        box = QMessageBox(parent)
        box.setWindowTitle("A run is in progress")
        box.setText("Stop the run? It can go on without the window, and nobody would watch it.")
        box.setStandardButtons(buttons.Yes | buttons.No | buttons.Cancel)
        box.button(buttons.Yes).setText("Stop the run")
        box.button(buttons.No).setText("Leave it running")
        answer = box.exec()
        if answer == buttons.Yes:
            self.stop()
        elif answer == buttons.No:
            self.command.leave()
        return answer != buttons.Cancel
