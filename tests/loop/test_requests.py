"""What a window asks for takes effect between two ticks, is noted with its tick, and replays."""

import contextlib
import inspect
import json
import os
import signal
import subprocess
import sys
import time

import h5py
import numpy as np
import pytest

import hil
from hil.devices.injection import Injection
from hil.devices.injection_tables import FaultTable
from hil.experiment.load import load
from hil.loop import loop
from hil.loop import tap as taps
from hil.loop.clock import VirtualClock
from hil.loop.states import NUMBERS, STATES
from hil.record.sink import Sink
from hil.runs import assembly, session
from hil.runs.plan import Plan
from hil.runs.replay import replay

# Runs on the real clock want the machine one at a time.
pytestmark = pytest.mark.xdist_group("real time")

NAN = float("nan")


class Asked:
    """A sink that keeps rows and messages, and asks for changes at given ticks."""

    def __init__(self, frame, asked):
        self._frame, self._asked = frame, asked
        self.rows, self.events, self.inputs = [], [], []

    def push(self):
        self.rows.append(self._frame.row[0].copy())
        return True

    def event(self, t_s, level, source, text):
        self.events.append((level, text))

    def requests(self, tick):
        return self._asked.get(tick, ())

    def input(self, tick, t_s, name, value, text=""):
        self.inputs.append((tick, name, value, text))

    def __getitem__(self, name):
        return np.array([row[name] for row in self.rows])


def run(configs, asked, *sets, experiment="miga6/pid.toml", armed=True):
    config = load(configs / experiment, ("experiment.duration_s=0.6", *sets))
    pipeline = assembly.build(Plan(config))
    sink = Asked(pipeline.frame, asked)
    parts = pipeline.context(VirtualClock(), sink, armed=armed)
    pipeline.rig.open()
    pipeline.rig.self_test(print)
    return loop.run(parts), sink


STEPS = "reference={kind='steps', t_s=[0.0], force_N=[1.0]}"


def test_a_set_point_is_held_from_its_tick_on_until_it_is_let_go(configs):
    asked = {200: [("force_reference_N", 2.5, "")], 400: [("force_reference_N", NAN, "")]}
    outcome, sink = run(configs, asked, STEPS)
    assert outcome == "complete"
    reference_N = sink["force_reference_N"]
    assert (reference_N[200:400] == 2.5).all()
    assert (reference_N[:200] == 1.0).all()
    assert (reference_N[400:] == 1.0).all()
    assert [(tick, name) for tick, name, _, _ in sink.inputs] == [
        (200, "force_reference_N"), (400, "force_reference_N"),
    ]  # fmt: skip


def test_a_gain_acts_from_its_tick_on(configs):
    sets = (STEPS, "controller.k_p=0.0", "controller.k_i_per_s=0.0", "controller.k_d_s=0.0")
    _, sink = run(configs, {300: [("controller.k_p", 1.5, "")]}, *sets)
    demand_N, measured_N = sink["force_demand_N"], sink["force_measured_N"]
    # without gains the demand stays at the force measured first, but not below 0; P alone adds
    # k_p (r - y)
    assert np.ptp(demand_N[:300]) == 0.0
    # (1.5: below what all cells can give, so that no limit of the demand takes part)
    wanted = np.maximum(measured_N[0] + 1.5 * (1.0 - measured_N[300:]), 0.0)
    np.testing.assert_allclose(demand_N[300:], wanted, atol=1e-12)


REFUSED = {
    "a name that is none": ("speed", 1.0, "speed: unknown: choose from force_reference_N, "),
    "a set point beyond the guard's force": ("force_reference_N", 9.1, "outside -9 to 9"),
    "a gain that is none": ("controller.hysteresis", 1.0, "no such gain"),
    "a gain below zero": ("controller.k_p", -1.0, "below zero"),
    "a gain that is no number": ("controller.k_p", NAN, "not a finite number"),
    "half armed": ("arm", 0.5, "neither 0 nor 1"),
    "a tare of an unloaded array too large": ("tare", 0.46, "exceeds 0.45 N"),
    "a tare that is no number": ("tare", NAN, "not a finite number"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_must_not_be_is_refused_with_the_reason_and_changes_nothing(configs, name):
    request, value, why = REFUSED[name]
    sets = ("reference={kind='steps', t_s=[0.3], force_N=[1.0]}", "experiment.duration_s=0.1")
    outcome, sink = run(configs, {50: [(request, value, "")]}, *sets)
    _, plain = run(configs, {}, *sets)
    assert outcome == "complete"
    assert sink.inputs == []
    ((level, text),) = [event for event in sink.events if "refused" in event[1]]
    assert level == "warning"
    assert why in text
    for column in ("force_measured_N", "force_demand_N", "cells_commanded"):
        np.testing.assert_array_equal(sink[column], plain[column])


def test_a_schedule_follows_no_set_point(configs):
    asked = {50: [("force_reference_N", 1.0, ""), ("controller.k_p", 1.0, "")]}
    _, sink = run(configs, asked, experiment="miga6/all_on.toml")
    assert sink.inputs == []
    assert len(sink.events) == 2


def test_armed_again_the_rig_stays_where_it_is_until_another_set_point_is_given(configs):
    asked = {
        300: [("arm", 0.0, "")],
        400: [("arm", 1.0, "")],
        500: [("force_reference_N", NAN, "")],
    }
    _, sink = run(configs, asked, STEPS)
    reference_N, measured_N = sink["force_reference_N"], sink["force_measured_N"]
    assert (reference_N[:300] == 1.0).all()
    assert not sink["cells_commanded"][300:400].any()
    assert (reference_N[400:500] == measured_N[399]).all()
    # PID starts from the measured force, with no error: it asks for that force
    assert sink["force_demand_N"][400] == pytest.approx(measured_N[399], abs=0.01)
    assert (reference_N[500:] == 1.0).all()


@pytest.mark.parametrize("at", [340, 341, 342, 343])
def test_armed_again_the_rig_stays_where_it_was_read_last_though_it_is_read_seldom(at, configs):
    asked = {300: [("arm", 0.0, "")], at: [("arm", 1.0, "")]}
    _, sink = run(configs, asked, "devices.daq.every=4", STEPS)
    read_N = sink["force_measured_N"][:at]
    assert sink["force_reference_N"][at] == read_N[np.isfinite(read_N)][-1]


def test_with_a_tare_in_the_same_tick_an_armed_rig_stays_where_it_is(configs):
    """The guard permits a tare while all is off; the set point is of the tared force."""
    asked = {300: [("arm", 0.0, "")], 400: [("tare", 0.1, ""), ("arm", 1.0, "")]}
    _, sink = run(configs, asked, STEPS)
    assert sink["force_reference_N"][400] == pytest.approx(sink["force_measured_N"][399] - 0.1)


def test_a_run_with_faults_is_steered_like_any_other(configs):
    config = load(configs / "miga6/pid.toml")
    control = assembly.build(Plan(config, injection=Injection([]))).control
    for name in ("set_points", "set_gain"):  # as isinstance() looks from Python 3.12 on
        inspect.getattr_static(control, name)
    assert list(control.set_points) == ["force_reference_N"]
    control.set_gain("k_p", 0.5)
    with pytest.raises(KeyError):
        control.set_gain("no such gain", 0.5)


def test_disarming_turns_all_off_at_once_and_arming_lets_commands_through_again(configs):
    asked = {100: [("arm", 0.0, "")], 250: [("arm", 1.0, "")]}
    outcome, sink = run(configs, asked, experiment="miga6/all_on.toml")
    assert outcome == "complete"
    on = sink["cells_commanded"].all(axis=1)
    assert on[:100].all()
    assert not sink["cells_commanded"][100:250].any()
    assert on[250:].all()


def test_an_experiment_begins_when_it_is_armed(configs):
    outcome, sink = run(configs, {150: [("arm", 1.0, "")]}, STEPS, armed=False)
    _, plain = run(configs, {}, STEPS)
    assert outcome == "complete"
    begun = int(np.flatnonzero(sink["guard_state"] == STATES.index("running"))[0])
    assert 150 < begun <= 150 + 40  # relay K1 has been seen open, and closed: at every 16th ms
    assert len(sink.rows) == begun + 600
    np.testing.assert_array_equal(sink["t_s"], np.arange(begun + 600) * 0.001)
    assert not sink["cells_commanded"][:begun].any()
    assert np.isnan(sink["force_reference_N"][:begun]).all()
    assert np.isnan(sink["force_demand_N"][:begun]).all()
    np.testing.assert_array_equal(sink["force_reference_N"][begun:], plain["force_reference_N"])
    assert sink["cells_commanded"][begun:].any()
    # the board answers before it is armed, and says that nothing is on
    assert (sink["cells_reported"][1 : begun + 1] == 0).all()
    assert (sink["valid_bits"][1:] == 3).all()


def test_an_armed_run_begins_once_its_supply_has_come_on(configs):
    asked = {150: [("arm", 1.0, "")], 500: [("arm", 0.0, "")], 700: [("arm", 1.0, "")]}
    sets = ("controller.steps=[{t_s=0.0, on='all'}]", "experiment.duration_s=1.0")
    outcome, sink = run(configs, asked, *sets, experiment="wires4/hold.toml", armed=False)
    assert outcome == "complete"
    state, on = sink["guard_state"], sink["cells_commanded"].any(axis=1)
    armed, running = STATES.index("armed"), STATES.index("running")
    for asked_at, ends in ((150, 500), (700, len(state))):
        begun = asked_at + np.flatnonzero(state[asked_at:] == running)[0]
        # it obeys in 20 ms, is asked every 100 ms and answers in 30 ms
        assert 20 + 30 <= begun - asked_at <= 20 + 100 + 30 + 2
        assert (state[asked_at:begun] == armed).all()
        assert (sink["supply_on_told"][asked_at + 1 : ends] == 1.0).all()
        assert sink["supply_on"][begun] == 1.0
        assert not on[asked_at:begun].any()
        assert on[begun:ends].all()
    first = 150 + np.flatnonzero(state[150:] == running)[0]
    assert len(state) == first + 1000  # the experiment begins with it
    assert not sink["supply_fault_bits"].any()


def test_a_tripped_run_is_not_armed_again(configs):
    asked = {tick: [("arm", 0.0, ""), ("arm", 1.0, "")] for tick in range(0, 2000, 10)}
    sets = ("guard.force_max_N=0.5", "experiment.duration_s=2.0")
    outcome, sink = run(configs, asked, *sets, experiment="miga6/all_on.toml")
    assert outcome == "tripped"
    assert any("the guard has tripped" in text for _, text in sink.events)
    tripped = np.flatnonzero(sink["fault_bits"])
    assert not sink["cells_commanded"][tripped].any()


def test_a_tare_moves_the_force_and_leaves_the_volts(configs):
    sets = ("controller.steps=[{t_s=0.18, on='all'}]", "experiment.duration_s=0.2")
    asked = {100: [("tare", 0.25, "")], 150: [("tare", 0.125, "force")]}
    _, sink = run(configs, asked, *sets, experiment="miga6/all_on.toml")
    _, plain = run(configs, {}, *sets, experiment="miga6/all_on.toml")
    np.testing.assert_array_equal(sink["force.raw_V"], plain["force.raw_V"])
    off_N = plain["force_measured_N"] - sink["force_measured_N"]
    np.testing.assert_allclose(off_N[:100], 0.0, atol=0.0)
    np.testing.assert_allclose(off_N[100:150], 0.25, rtol=1e-12)
    np.testing.assert_allclose(off_N[150:], 0.375, rtol=1e-12)
    assert [name for _, name, _, _ in sink.inputs] == ["tare", "tare"]


def test_no_tare_while_cells_are_on_nor_of_a_channel_that_is_none(configs):
    _, sink = run(configs, {100: [("tare", 0.1, "")]}, experiment="miga6/all_on.toml")
    assert "only while every cell is off" in sink.events[0][1]
    sets = ("reference={kind='steps', t_s=[0.3], force_N=[1.0]}", "experiment.duration_s=0.2")
    _, sink = run(configs, {100: [("tare", 0.1, "left")]}, *sets)
    assert "no force channel 'left'" in sink.events[0][1]


def test_tares_do_not_creep_beyond_their_limit(configs):
    sets = ("reference={kind='steps', t_s=[0.3], force_N=[1.0]}", "experiment.duration_s=0.2")
    _, sink = run(configs, {100: [("tare", 0.3, "")], 110: [("tare", 0.3, "")]}, *sets)
    assert [tick for tick, _, _, _ in sink.inputs] == [100]


CHANGES = {
    40: [("note", NAN, "the cat sat on the bench")],
    50: [("tare", 0.003, "")],
    200: [("force_reference_N", 2.0, ""), ("controller.k_p", 0.4, "")],
    300: [("arm", 0.0, "")],
    340: [("arm", 1.0, "")],
    500: [("force_reference_N", NAN, ""), ("controller.k_i_per_s", 3.0, "")],
    550: [("nonsense", 1.0, "")],
}


@pytest.fixture
def changed_run(configs, tmp_path, monkeypatch):
    """A recorded run, changed at known ticks."""

    def recorded(changes, **more):
        monkeypatch.setattr(Sink, "requests", lambda self, tick: changes.get(tick, []))
        path = tmp_path / "changed.h5"
        sets = ("reference={kind='steps', t_s=[0.1], force_N=[1.0]}", "experiment.duration_s=0.7")
        options = {"out": path, "seed": 2, **more}
        config = load(configs / "miga6/pid.toml", sets)
        result = session.run(*session.from_options(config, options))
        monkeypatch.undo()
        return path, result

    return recorded


def test_a_run_changed_in_its_middle_replays_bit_for_bit(changed_run):
    path, _ = changed_run(CHANGES)
    opened = hil.open_run(path)
    noted = list(zip(opened.input_tick.values, opened.input_name.values, strict=True))
    wanted = [(tick, name) for tick, asked in CHANGES.items() for name, _, _ in asked]
    assert noted == [(0, "start"), *(w for w in wanted if w[1] != "nonsense")]
    assert "the cat sat on the bench" in opened.input_text.values
    rows, difference = replay(path)
    assert difference is None
    assert rows == 700


def test_a_run_that_trips_in_the_tick_in_which_it_is_armed_again_replays(changed_run):
    fault = FaultTable(kind="force_offset", at_s=0.34, value=50.0)
    path, _ = changed_run(
        {300: [("arm", 0.0, "")], 340: [("arm", 1.0, "")]}, injection=Injection([fault])
    )
    states = hil.open_run(path).guard_state.values[[339, 340]].tolist()
    assert states == [NUMBERS["ready"], NUMBERS["fault"]]
    assert replay(path)[1] is None


@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize(
    ("name", "change"),
    [("force_reference_N", 1e-12), ("controller.k_p", 1e-12), ("arm", 0.0)],
)
def test_a_replay_notices_a_changed_input(changed_run, name, change):
    path, _ = changed_run(CHANGES)
    with h5py.File(path, "r+") as file:
        inputs = file["inputs"][:]
        at = np.flatnonzero(inputs["name"] == name.encode())[-1 if name == "arm" else 0]
        inputs["value"][at] = inputs["value"][at] + change if change else 0.0
        file["inputs"][:] = inputs
        tick = int(inputs["tick"][at])
    _, difference = replay(path)
    assert difference is not None
    assert difference.row >= tick


def test_a_stop_from_a_window_ends_the_run_with_its_reason(changed_run):
    path, result = changed_run({123: [("stop", NAN, "smoke")]})
    assert result.outcome == "aborted"
    assert result.summary["stopped_by"] == "smoke"
    assert result.summary["rows"] == 123
    opened = hil.open_run(path)
    stop = opened.input_name.values.tolist().index("stop")
    assert opened.input_tick.values[stop] == 123
    assert opened.input_text.values[stop] == "smoke"
    rows, difference = replay(path)
    assert (rows, difference) == (123, None)


class Started:
    """`hil run` on the real clock in a process of its own."""

    def __init__(self, configs, out, *more):
        command = [sys.executable, "-m", "hil", "run", str(configs / "miga6/all_on.toml"), "--json"]
        command += ["--clock", "real", "--out", str(out), "--set", "loop.overrun='skip'"]
        command += ["--set", "guard.reading_age_max_s=60.0"]
        command += ["--set", "devices.board.hold_s=0.1", *more]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        while not self.ticking():
            assert self.process.poll() is None, self.process.stderr.read()
            time.sleep(0.01)

    def ticking(self):
        self.taps = [path for pid, path in taps.running() if pid == self.process.pid]
        with contextlib.suppress(ValueError, OSError):
            return bool(self.taps and taps.attach(self.taps[0]).ticks.written)
        return False

    def ended(self):
        out, err = self.process.communicate(timeout=600)
        return self.process.returncode, json.loads(out), err


def _last(ticks):
    """The row written last."""
    rows, _ = ticks.read(ticks.written - 1)
    return rows[-1]


@pytest.mark.slow
def test_a_window_in_another_process_arms_changes_and_stops_a_run(configs, tmp_path):
    run = Started(configs, tmp_path / "run.h5", "--disarmed")
    with taps.Requests(run.taps[0]) as requests:
        requests.send("note", text="ready")
        armed = requests.send("arm", 1.0)
        ticks = taps.attach(run.taps[0]).ticks
        while requests.taken < armed or not _last(ticks)["cells_commanded"].all():
            assert run.process.poll() is None
            time.sleep(0.001)
        requests.send("stop", text="the window")
    code, summary, err = run.ended()
    assert (code, summary["outcome"], summary["stopped_by"]) == (130, "aborted", "the window"), err
    opened = hil.open_run(tmp_path / "run.h5")
    names = opened.input_name.values.tolist()
    assert names == ["start", "note", "arm", "stop"]
    at = {name: int(opened.input_tick[i]) for i, name in enumerate(names)}
    t_s, on = np.rint(opened.t_s.values / 0.001), opened.cells_commanded.values.all(axis=1)
    assert not on[t_s < at["arm"]].any()
    assert on[np.argmax(on) :].all()
    assert (t_s < at["stop"]).all()
    assert replay(tmp_path / "run.h5") == (len(t_s), None)


@pytest.mark.slow
def test_a_run_stops_by_signal_when_its_window_was_killed_and_its_queue_is_full(configs, tmp_path):
    # Disarmed: no cell is on too long, however long the window takes to start.
    run = Started(configs, tmp_path / "run.h5", "--duration", "600", "--disarmed")
    code = (
        "import sys; from pathlib import Path; from hil.loop import tap as taps\n"
        "requests = taps.Requests(Path(sys.argv[1]))\n"
        "print(flush=True)\n"
        "while True:\n"
        "    try: requests.send('note', 1.0)\n"
        "    except Exception: pass\n"
    )
    window = subprocess.Popen(
        [sys.executable, "-c", code, str(run.taps[0])], stdout=subprocess.PIPE
    )
    assert window.stdout.readline() == b"\n"
    window.kill()
    window.communicate()
    os.kill(run.process.pid, signal.SIGTERM)
    code, summary, _ = run.ended()
    assert (code, summary["stopped_by"]) == (130, "SIGTERM")


def test_nobody_can_arm_a_run_on_the_virtual_clock(configs, tmp_path, capsys):
    from hil.__main__ import main

    words = ["run", str(configs / "miga6/all_on.toml"), "--out", str(tmp_path / "a.h5")]
    assert main([*words, "--disarmed"]) == 2
    assert "--clock real" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
