"""Buttons of the window in any order, files that change, runs that end: who switches cells.

Processes, recordings and the file system are replaced; the window's form, its bench day and its
permission are the real ones. What an operator consented to is kept here on its own.
"""

import itertools
import random
from pathlib import Path
from types import SimpleNamespace

import pytest
import shiboken6
from PySide6.QtWidgets import QPushButton

from hil_gui import bench_day, control
from hil_gui.permission import NOT_ARMED, NOT_TESTED, Permission, Subject

FILES = (Path("pull.toml"), Path("hold.toml"))
CELLS = Path("cells.toml")  # a test that is started without opening it
OUTCOMES = {"complete": 0, "interrupted": 130, "tripped": 3, "refused": 2, "killed": -9}


class Process:
    """A `hil run`: it reads its file when it starts, and is live from a moment of its own."""

    def __init__(self, world, words):
        self.experiment, self.backend = Path(words[1]), words[words.index("--backend") + 1]
        sets = [text for word, text in itertools.pairwise(words) if word == "--set"]
        self.is_test = "virtual" in words
        assert self.is_test or "--disarmed" in words
        self.sha256 = world.hash_of(self.experiment, sets)
        self.pid, self.path = next(world.pids), Path(words[words.index("--out") + 1])
        self.exit_code, self.result, self.error_text, self.latest_line = None, {}, "", ""
        self.is_live = self.has_begun = self.is_armed = False
        self.is_started = self.is_others = self.is_shown = self.is_stopped = False
        world.begin(self)

    def line_after(self, start):
        return ""

    def stop(self):
        self.is_asked_to_stop = True


class World:
    """Files, processes and what stands in the window's feed."""

    def __init__(self):
        self.versions = dict.fromkeys((*FILES, CELLS), 0)
        self.pids = itertools.count(1)
        self.processes = []
        self.said, self.asked = [], []
        self.feed = None
        self.job = None
        self.timeline = SimpleNamespace(now_s=0.0, end_s=0.0, follows=True)
        self.jobs = SimpleNamespace(is_busy=False, start=self._start_job, cancel=lambda: None)
        self.message = None

    def hash_of(self, path, sets):
        return f"{path} {self.versions[path]} {sorted(sets)}"

    def load_settings(self, path, sets):
        text = [f"{key}={value}" for key, value in sets.items()]
        return {"guard": {"force_max_N": 9.0}}, self.hash_of(path, text)

    def begin(self, process):
        self.processes.append(process)

    def _start_job(self, what, work, done):
        self.job = done

    # What the bench day sees of a session and a viewer

    @property
    def data(self):
        return self.feed.data if self.feed else None

    def say(self, text):
        pass

    def complain(self, title, text):
        self.said.append(text)

    def causes_in_words(self, now_s):
        return ""

    def choose(self):
        pass

    def show_preview(self, about):
        pass

    def try_attach(self, pid, path):
        process = next((one for one in self.processes if one.pid == pid), None)
        if process is not None and process.is_live and process.exit_code is None:
            self.feed = Feed(self, process)
            process.is_shown = True

    def finish(self, path, outcome):
        pass


class Feed:
    def __init__(self, world, process):
        self._world, self._process = world, process
        self.about = SimpleNamespace(
            path=process.path, sha256=process.sha256, backend=process.backend
        )

    @property
    def live(self):
        return self if self._process.exit_code is None else None

    @property
    def state(self):
        return "running" if self._process.is_armed else "ready"

    @property
    def data(self):
        begun = self._process.has_begun
        return SimpleNamespace(
            about=self.about, has_begun=begun, outcome="running", last_s=0.0, signal=None,
            state_at=lambda t_s: "ready",
        )  # fmt: skip

    def send(self, name, value, text):
        self._world.asked.append((self._process, name, value))


class Bench:
    """A bench day in a world of its own, and what its operator consented to."""

    now = None  # the latest one, of which the patched functions are

    def __init__(self):
        world, Bench.now = World(), self
        self.world = world
        header = SimpleNamespace(
            start_button=QPushButton(), stop_button=QPushButton(),
            set_state=lambda state, causes, *, is_live: None,
        )  # fmt: skip
        self._header = header
        self.day = bench_day.BenchDay(world, header, world)
        self.form = self.day.control
        self.passed, self.consent, self.stopped = set(), None, ""
        self.day.open(FILES[0])
        self.form.bench.click()

    def close(self):
        for widget in (self.form, self._header.start_button, self._header.stop_button):
            shiboken6.delete(widget)  # thousands of widgets slow every later test of a window

    def file(self, path):
        process = next(one for one in self.world.processes if one.path == path)
        return SimpleNamespace(about=SimpleNamespace(sha256=process.sha256))

    def lives(self, pid):
        return any(one.pid == pid and one.exit_code is None for one in self.world.processes)

    @property
    def active(self):
        """The process that has not ended, if any."""
        active = [one for one in self.world.processes if one.exit_code is None]
        assert len(active) <= 1, "two runs at once"
        return active[0] if active else None

    @property
    def on_bench(self):
        return self.form.bench.isChecked()

    def judge(self):
        """No cell is switched without a test, Arm and Start, nor after the operator's stop."""
        for process, name, value in self.world.asked:
            if name == "arm" and value == 1.0:
                assert not self.stopped
                assert process.is_started, "Start was not pressed"
                if process.backend == "bench":
                    assert process.sha256 == self.consent, "switches what nobody armed"
                    assert process.is_others or process.sha256 in self.passed
                process.is_armed = process.has_begun = True
            elif name == "arm":
                process.is_armed = False
        self.world.asked.clear()

    def look(self):
        """What changed is armed no longer."""
        self.form.check()
        if not self.day.is_busy and (self.consent != self.form.sha256 or not self.on_bench):
            self.consent = None

    # The operator

    def open(self, path):
        self.day.open(path)
        self.consent = None

    def press_bench_or_simulate(self):
        (self.form.simulate if self.on_bench else self.form.bench).click()
        self.look()

    def press_arm(self):
        self.look()
        process = self.active
        is_live = process is not None and self.day.data is not None and process.is_shown
        was_armed = is_live and process.is_armed
        if self.consent is not None or was_armed:
            self.consent = None
        elif is_live:
            process.is_started |= process.has_begun
            self.consent = process.sha256
        else:
            self.consent = self.form.sha256
        if self.consent not in self.passed and not (is_live and process.is_others):
            self.consent = None
        self.day.arm()
        self.judge()
        assert not (was_armed and process.is_armed), "Arm again disarms"

    def begun(self, action, *arguments):
        """Press what may begin a run or a test; returns what began."""
        n_before = len(self.world.processes)
        action(*arguments)
        began = self.world.processes[n_before:]
        assert not (began and self.stopped), f"begun though {self.stopped} is latched"
        return began

    def press_start(self):
        self.look()
        if self.active is not None:
            self.active.is_started = True
        for process in self.begun(self.day.start):
            process.is_started = True
            if process.backend == "bench":
                assert process.sha256 == self.consent, "begins what nobody armed"
        self.judge()

    def press_connect(self):
        self.look()
        for process in self.begun(self.day.connect_rig):
            assert process.backend == "sim" or process.sha256 in self.passed
        self.judge()

    def press_self_test(self):
        self.look()
        self.begun(self.day.self_test)
        self.judge()

    def press_test_cells(self):
        self.look()
        on_bench = self.on_bench
        for process in self.begun(self.day.start_file, CELLS):
            assert process.is_test or not on_bench
            process.is_started = not on_bench
            self.consent = None
        self.judge()

    def press_stop(self):
        self.active.is_stopped = True
        self.active.is_started &= self.active.has_begun
        self.day.stop()
        self.judge()

    def press_emergency_stop(self):
        self.stopped, self.consent = "the emergency stop", None
        self.day.estop()
        self.judge()

    def press_reset(self):
        if self.active is None:
            self.stopped, self.consent = "", None
        self.day.reset()
        self.judge()

    # The world

    def edit_a_file(self, path):
        self.world.versions[path] += 1

    def go_live(self):
        if self.active is not None and not self.active.is_test:
            self.active.is_live = True
        self.day.poll()
        self.judge()

    def end(self, outcome):
        process, day = self.active, self.day
        process.exit_code, process.is_armed = OUTCOMES[outcome], False
        if process.is_test:
            if outcome == "complete":
                self.passed.add(process.sha256)
            following = self.begun(self.world.job, outcome != "interrupted")
            assert (outcome == "complete" and not process.is_stopped) or not following
        else:
            self.consent = None
            if outcome == "tripped" and not process.is_others:
                self.stopped = self.stopped or "a trip"
            day.poll()
        self.judge()

    def test_and_pass(self):
        self.press_self_test()
        if self.active is not None and self.active.is_test:
            self.end("complete")

    def test_arm_and_start(self, also_start):
        """What an operator does on most days: faults are one step from there."""
        if not self.on_bench:
            self.press_bench_or_simulate()
        self.test_and_pass()
        if self.consent is None:
            self.press_arm()
        if also_start:
            self.press_start()
            self.go_live()

    def watch_a_run_of_others(self, path, backend):
        world = self.world
        words = ["run", str(path), "--backend", backend, "--disarmed", "--out"]
        process = Process(world, [*words, f"others-{next(world.pids)}.h5"])
        process.is_others, self.consent = True, None
        self.day.watch(process.pid, process.path)


ALWAYS = {
    "arm": Bench.press_arm,
    "start": Bench.press_start,
    "estop": Bench.press_emergency_stop,
    "reset": Bench.press_reset,
    "edit": lambda bench: bench.edit_a_file(bench.form.path),
}
IDLE = {
    "open it": lambda bench: bench.open(FILES[0]),
    "open another": lambda bench: bench.open(FILES[1]),
    "bench or simulate": Bench.press_bench_or_simulate,
    "connect": Bench.press_connect,
    "self-test": Bench.press_self_test,
    "self-test passes": Bench.test_and_pass,
    "test cells": Bench.press_test_cells,
    "others": lambda bench: bench.watch_a_run_of_others(FILES[0], "bench"),
}
BUSY = {
    "stop": Bench.press_stop,
    "live": Bench.go_live,
    "edit the cells": lambda bench: bench.edit_a_file(CELLS),
    "complete": lambda bench: bench.end("complete"),
    "interrupted": lambda bench: bench.end("interrupted"),
    "tripped": lambda bench: bench.end("tripped"),
    "killed": lambda bench: bench.end("killed"),
}
SWITCHING_NOTHING = {"edit", "edit the cells", "open it", "open another", "others"}  # by themselves
DAYS = {
    "opened": (),
    "tested": ("self-test passes",),
    "armed": ("self-test passes", "arm"),
    "connected": ("self-test passes", "connect", "live"),
    "started": ("self-test passes", "arm", "start"),
    "edited as it begins": ("self-test passes", "arm", "start", "edit"),
    "switched": ("self-test passes", "arm", "start", "live"),
    "cells connected": ("self-test passes", "test cells", "complete", "live"),
    "others connected": ("others", "live"),
    "armed before its test": ("arm", "self-test passes"),
    "edited during its test": ("self-test", "edit", "complete"),
    "simulated and back": ("self-test passes", "arm", "bench or simulate", "bench or simulate"),
    "testing cells": ("test cells",),
    "cells tested": ("test cells", "complete", "killed"),
    "reset too early": ("self-test passes", "arm", "start", "live", "estop", "reset"),
}

TWO_STEPS_FROM_A_FAULT = (
    "armed", "connected", "started", "switched", "testing cells", "reset too early",
)  # fmt: skip


@pytest.fixture
def days(qapp, monkeypatch):
    """Makes a bench day on which some things have happened."""
    monkeypatch.setattr(
        bench_day, "Command", lambda words, attended: Process(Bench.now.world, words)
    )
    monkeypatch.setattr(bench_day, "File", lambda path: Bench.now.file(path))
    monkeypatch.setattr(bench_day, "is_alive", lambda pid: Bench.now.lives(pid))
    monkeypatch.setattr(control, "load_settings", lambda *of: Bench.now.world.load_settings(*of))
    monkeypatch.setattr(bench_day, "preview", lambda path, settings: None)
    monkeypatch.setattr(bench_day, "ask_to_stop", lambda pid: None)
    monkeypatch.setattr(control, "rig_limits", lambda path: {})
    monkeypatch.setattr(Path, "mkdir", lambda path, **more: None)

    def on_which(actions):
        bench = Bench()
        for action in actions:
            {**ALWAYS, **IDLE, **BUSY}[action](bench)
        return bench

    return on_which


def _every_day(days, actions, n_more):
    """Go on from a day in every order of that many actions; returns how many there are."""
    bench = days(actions)  # fails where a rule is broken
    possible = (*ALWAYS, *(IDLE if bench.active is None else BUSY))
    bench.close()
    if not n_more:
        return 1
    if n_more == 1:
        possible = [action for action in possible if action not in SWITCHING_NOTHING]
    return sum(_every_day(days, (*actions, action), n_more - 1) for action in possible)


@pytest.mark.parametrize("day", DAYS)
def test_no_cell_is_switched_on_the_bench_that_was_not_tested_and_armed(days, day):
    assert _every_day(days, DAYS[day], 2 if day in TWO_STEPS_FROM_A_FAULT else 1) >= 8


def test_the_first_press_of_arm_arms_a_test_of_the_cells_though_the_experiment_was_armed(days):
    bench = days(("self-test passes", "arm", "test cells", "complete", "live"))
    assert not bench.day.permission.is_given
    bench.press_arm()
    assert bench.day.permitted


@pytest.mark.slow
@pytest.mark.parametrize("day", DAYS)
def test_nor_after_three_more_actions_in_any_order(days, day):
    assert _every_day(days, DAYS[day], 3) > 1000


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_nor_on_long_days(days, seed):
    draw = random.Random(seed)
    for _ in range(300):
        bench = days(DAYS[draw.choice([*DAYS])])
        for _ in range(12):
            possible = {**ALWAYS, **(IDLE if bench.active is None else BUSY)}
            possible[draw.choice([*possible])](bench)
        bench.close()


TESTED, OTHER = Subject("a", on_bench=True), Subject("b", on_bench=True)


def test_a_permission_is_for_one_tested_subject():
    permission = Permission()
    assert permission.to_switch(TESTED) == permission.to_connect(TESTED) == NOT_TESTED
    permission.add_tested("a")
    assert (permission.to_connect(TESTED), permission.to_switch(TESTED)) == ("", NOT_ARMED)
    permission.grant(TESTED)
    assert permission.holds_for(TESTED)
    assert permission.to_switch(TESTED) == ""
    assert permission.to_switch(OTHER) == NOT_TESTED
    permission.add_tested("b")
    assert permission.to_switch(OTHER) == NOT_ARMED
    permission.withdraw()
    assert permission.to_switch(TESTED) == NOT_ARMED


def test_what_is_simulated_needs_no_permission_and_what_others_started_no_test():
    permission = Permission()
    assert permission.to_switch(Subject("a", on_bench=False)) == ""
    others = Subject("a", on_bench=True, of_others=True)
    assert (permission.to_connect(others), permission.to_switch(others)) == ("", NOT_ARMED)


def test_an_experiment_that_is_not_valid_is_never_armed():
    permission, invalid = Permission(), Subject("", on_bench=True)
    permission.grant(invalid)
    assert not permission.holds_for(invalid)


@pytest.mark.parametrize(
    ("causes", "latched"),
    [(["fault"], "fault"), (["estop"], "estop"),
     (["fault", "estop"], "estop"), (["estop", "fault"], "estop")],
)  # fmt: skip
def test_a_trip_withdraws_the_permission_and_is_latched_until_acknowledged(causes, latched):
    permission = Permission()
    permission.grant(TESTED)
    for cause in causes:
        permission.trip(cause)
    assert permission.latched == latched
    assert not permission.holds_for(TESTED)
    permission.add_tested("a")
    assert "Reset first" in permission.to_begin or latched == "fault"
    assert permission.to_connect(TESTED) == permission.to_switch(TESTED) == permission.to_begin
    permission.grant(TESTED)
    permission.acknowledge()
    assert permission.latched == permission.to_begin == ""
    assert not permission.holds_for(TESTED)
