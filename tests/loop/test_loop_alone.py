"""The loop with nothing around it: a force, one cell, one output of time, and a real guard."""

from types import SimpleNamespace

import numpy as np
import pytest

from hil.errors import DeviceError, PluginError
from hil.loop import loop
from hil.loop.channels import Channel, RigLayout
from hil.loop.context import LoopContext
from hil.loop.frame import Column
from hil.loop.guard import DEVICE_FAILED, Guard, Limits, SignalLimits, names_of
from hil.loop.progress import FOREVER, Progress
from hil.loop.requests import Inputs
from hil.loop.stages import Message
from hil.loop.states import NUMBERS, States
from hil.loop.trip_report import TripReport
from rows import row_of

PERIOD_S = 0.5
MAX_N = 9.0
LAYOUT = RigLayout(
    (Channel("f", "_N", "main"),), (), (), ("d",), 1, others=("d",), cell_names=("c",)
)


class Sink:
    def __init__(self, frame):
        self._frame, self.disk_low, self.file_harmed = frame, "", ""
        self.rows, self.events, self.inputs, self.asked, self.full_from = [], [], [], {}, 10**9

    def push(self):
        self.rows.append(self._frame.row[0].copy())
        return len(self.rows) < self.full_from

    def requests(self, tick):
        return self.asked.get(tick, ())

    def input(self, tick, t_s, name, value, text=""):
        self.inputs.append((tick, t_s, name, value, text))

    def event(self, t_s, level, source, text):
        self.events.append((t_s, level, source, text))

    def __getitem__(self, name):
        return [float(row[name][0] if row[name].ndim else row[name]) for row in self.rows]


class Rig:
    """A rig whose force is a function of time, and whose power comes on when it is told to."""

    layout = LAYOUT

    def __init__(self, frame):
        self.readings, self.commands = LAYOUT.bind(frame)
        self._frame, self._age_at = frame, frame.index("d_age_s")
        self.states, self.force_N = States("ready"), lambda t_s: 0.0
        self.armed_at, self.cools, self.power, self.news = [], True, True, []
        self.fails, self.now_s, self.written = {}, -1.0, []

    def arm(self):
        self.armed_at.append(self.now_s)
        self.news.append(("d", Message("info", "armed")))

    def ready(self):
        return self.power

    def has_cooled(self):
        return self.cools

    def read(self, t_s):
        self.now_s = t_s
        if (t_s, "read") in self.fails:
            raise self.fails[t_s, "read"]
        self.readings.measured[0] = self.force_N(t_s)
        self.readings.mark_valid(1, 1)

    def write(self, t_s):
        self.written.append(int(self.commands.cells[0]))
        if (t_s, "write") in self.fails:
            raise self.fails[t_s, "write"]

    def has_news(self):
        return bool(self.news)

    def messages(self):
        news, self.news = self.news, []
        return news

    def troubles(self, on_s):
        return {}


class Stage:
    """Estimator and control stage: the cell is on, and the set point is the time."""

    columns = (
        Column("x_reference", "1", "reference", ""),
        Column("chosen", "1", "reference", "", n_cells=1),
        Column("x_bits", "1", "reference", "", flags=("a",)),
    )

    def __init__(self, frame):
        self._frame, self.steps, self.times, self.fails = frame, [], [], {}
        self.cells, self.restarts = None, 0

    def step(self, value):
        if isinstance(value, int):
            self.steps.append(value)
        else:
            self.times.append(value)
            self._frame.values[self._frame.index("x_reference")] = value
            self.cells[:] = 1
        if value in self.fails:
            raise self.fails[value]

    def restart(self):
        self.restarts += 1


class Clock:
    """Time in which chosen ticks take longer, and before some of which the machine has slept."""

    def __init__(self):
        self.now, self.takes_s, self.slept = 50 * PERIOD_S, {}, {}

    def start(self):
        self.now = 0.0  # as long as the start of a run takes, this clock is far off

    def now_s(self):
        return self.now + self.takes_s.get(self.now, 0.0)

    def sleep_until_s(self, deadline_s):
        assert deadline_s < 100 * PERIOD_S, "the run does not end"
        late_s = max(self.now_s() - deadline_s, 0.0)
        self.now = deadline_s
        return late_s

    def slept_s(self):
        return self.slept.get(self.now, 0.0)


class Bench:
    """All of it, and what came of a run."""

    def __init__(self, n_ticks=6, after_trip=2, overruns_max=10**9, cell_on_max_s=1e9, **more):
        columns = [*loop.columns(), *Stage.columns]
        frame = row_of(LAYOUT, *columns)
        limits = Limits(
            cell_on_max_s, 1e9, overruns_max, (SignalLimits(-MAX_N, MAX_N, is_force=True),)
        )
        self.rig, self.sink, self.clock = Rig(frame), Sink(frame), Clock()
        self.guard = Guard(limits, 1, PERIOD_S, self.rig.states)
        self.guard.bind(frame, LAYOUT, self.rig.readings, self.rig.commands)
        self.control, self.estimator = Stage(frame), Stage(frame)
        self.control.cells = self.rig.commands.cells
        inputs = Inputs(self.sink, self.control, self.guard, self.rig, {}, 0.0)
        self.context = LoopContext(
            self.clock, self.rig, self.estimator, self.control, self.guard, inputs, frame,
            TripReport(limits, LAYOUT, PERIOD_S), self.sink, PERIOD_S, n_ticks, after_trip, **more,
        )  # fmt: skip

    def run(self):
        return loop.run(self.context)

    @property
    def faults(self):
        return names_of(self.guard.fault_bits)


def test_a_run_has_its_ticks_and_ends_disarmed():
    bench = Bench()
    assert bench.run() == "complete"
    assert bench.sink["t_s"] == [0.0, 0.5, 1.0, 1.5, 2.0, 2.5]
    assert bench.sink["x_reference"] == bench.sink["t_s"]
    assert bench.sink["cells_commanded"] == [1.0] * 6
    assert set(bench.sink["guard_state"]) == {NUMBERS["running"]}
    assert not bench.guard.armed
    assert bench.rig.armed_at == [-1.0]  # before the first tick
    assert bench.sink.events == [(0.0, "info", "d", "armed")]
    # and the messages of arming, though no tick brings another
    bench = Bench()
    bench.rig.has_news = lambda: False
    bench.run()
    assert bench.sink.events == [(0.0, "info", "d", "armed")]


def test_a_rig_that_has_not_passed_its_self_test_is_not_run():
    bench = Bench()
    bench.rig.states.now = "connected"
    with pytest.raises(RuntimeError, match="armed while connected: run the rig's self-test first"):
        bench.run()
    assert bench.sink.rows == []
    assert bench.rig.armed_at == []


def test_an_experiment_armed_by_a_window_has_its_time_and_its_length_from_then_on():
    bench = Bench(n_ticks=3, armed=False)
    bench.sink.asked = {4: [("arm", 1.0, "")]}
    assert bench.run() == "complete"
    assert len(bench.sink.rows) == 4 + 3
    np.testing.assert_array_equal(bench.sink["x_reference"], [np.nan] * 4 + [0.0, 0.5, 1.0])
    assert bench.sink["cells_commanded"] == [0.0] * 4 + [1.0] * 3


def test_a_run_waits_for_power_and_for_cool_wires_and_then_arms_once():
    bench = Bench(n_ticks=3, armed=False)
    bench.rig.power = bench.rig.cools = False
    bench.sink.asked = {1: [("arm", 1.0, "")], 3: [("arm", 0.0, "")], 5: [("arm", 1.0, "")]}
    became = {7: "power", 9: "cools"}

    def force_N(t_s):
        name = became.get(round(t_s / PERIOD_S))
        if name:
            setattr(bench.rig, name, True)
        return 0.0

    bench.rig.force_N = force_N
    assert bench.run() == "complete"
    # armed at tick 5; the wires are cool once tick 9 has been read
    assert bench.rig.armed_at == [9 * PERIOD_S]
    assert bench.sink["cells_commanded"] == [0.0] * 10 + [1.0] * 3
    states = {0: "ready", 2: "armed", 3: "ready", 9: "armed", 10: "running"}
    assert {i: bench.sink["guard_state"][i] for i in states} == {
        i: NUMBERS[name] for i, name in states.items()
    }


def test_armed_again_a_run_waits_for_the_power_that_was_cut():
    bench = Bench(n_ticks=8)
    bench.sink.asked = {2: [("arm", 0.0, "")], 3: [("arm", 1.0, "")]}
    asked = []

    def ready():
        asked.append(bench.clock.now)
        return bench.clock.now >= 5 * PERIOD_S

    bench.rig.ready = ready
    assert bench.run() == "complete"
    assert bench.sink["cells_commanded"] == [1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0]
    assert asked == [1.5, 2.0, 2.5]  # power is not switched on while disarmed, nor in every tick


def test_the_time_of_every_stage_is_recorded_and_the_tick_s_from_the_first_to_the_last():
    bench = Bench(n_ticks=2)
    assert bench.run() == "complete"
    stages_s = sum(
        np.array(bench.sink[f"{name}_stage_s"])
        for name in ("read", "estimate", "control", "guard", "write")
    )
    for name in ("read", "estimate", "control", "guard", "write"):
        assert all(s > 0.0 for s in bench.sink[f"{name}_stage_s"])
    np.testing.assert_allclose(bench.sink["busy_s"], stages_s, rtol=1e-9)


def test_armed_again_within_a_run_the_experiment_goes_on_and_boards_are_not_armed_twice():
    bench = Bench(n_ticks=6)
    bench.sink.asked = {2: [("arm", 0.0, "")], 4: [("arm", 1.0, "")]}
    assert bench.run() == "complete"
    assert bench.sink["cells_commanded"] == [1.0, 1.0, 0.0, 0.0, 1.0, 1.0]
    assert bench.rig.armed_at == [-1.0]
    assert bench.control.times == [0.0, 0.5, 2.0, 2.5]
    assert len(bench.sink.rows) == 6


@pytest.mark.parametrize(("at", "n_rows"), [(1, 4), (3, 6), (4, 6), (5, 6)])
def test_after_a_trip_the_rows_go_on_for_a_while_but_not_beyond_the_experiment(at, n_rows):
    bench = Bench(n_ticks=6, after_trip=2)
    bench.rig.force_N = lambda t_s: 9.5 if t_s >= at * PERIOD_S else 0.0
    assert bench.run() == "tripped"
    assert len(bench.sink.rows) == n_rows
    assert bench.sink["cells_commanded"] == [1.0] * at + [0.0] * (n_rows - at)
    (event,) = bench.sink.events[1:]
    assert event[:3] == (at * PERIOD_S, "fault", "guard")


def test_a_second_fault_after_a_trip_is_reported_and_does_not_lengthen_the_run():
    bench = Bench(n_ticks=20, after_trip=3)
    values = {2: 9.5, 4: np.nan}
    bench.rig.force_N = lambda t_s: values.get(round(t_s / PERIOD_S), 0.0)
    assert bench.run() == "tripped"
    assert len(bench.sink.rows) == 2 + 1 + 3
    assert [event[0] for event in bench.sink.events[1:]] == [1.0, 2.0]
    assert bench.faults == ["force_high", "force_nan"]


@pytest.mark.parametrize("method", ["read", "write"])
def test_a_device_that_fails_trips_and_its_row_is_the_last(method):
    bench = Bench()
    bench.rig.fails[1.0, method] = DeviceError("d: gone")
    with pytest.raises(DeviceError, match="d: gone"):
        bench.run()
    assert bench.sink["t_s"] == [0.0, 0.5, 1.0]
    assert [names_of(int(row["fault_bits"])) for row in bench.sink.rows][-1] == ["device_failed"]
    assert bench.sink["cells_commanded"] == [1.0, 1.0, 0.0]
    assert bench.sink.events[-1][1:3] == ("fault", "guard")
    assert bench.sink.events[-1][3] == "device_failed: d: gone"
    bench = Bench()
    bench.rig.force_N = lambda t_s: 9.5
    bench.rig.fails[1.0, method] = DeviceError("d: gone")
    with pytest.raises(DeviceError, match="d: gone"):  # after another fault it has its own line
        bench.run()
    assert bench.sink.events[-1][3] == "device_failed: d: gone"


def test_a_model_that_fails_ends_the_run_and_a_controller_only_trips_it():
    bench = Bench(after_trip=1)
    bench.estimator.fails[1] = PluginError("model: broken")
    assert bench.run() == "tripped"
    assert len(bench.sink.rows) == 2
    assert "model: broken" in bench.sink.events[-1][3]
    assert bench.faults == ["own_code_failed"]
    bench = Bench(after_trip=1)
    bench.control.fails[1.0] = PluginError("controller: broken")
    assert bench.run() == "tripped"
    assert len(bench.sink.rows) == 4
    assert bench.sink["cells_commanded"] == [1.0, 1.0, 0.0, 0.0]
    assert bench.control.times == [0.0, 0.5, 1.0]  # it is not asked again
    assert [e[0] for e in bench.sink.events if e[1] == "fault"] == [1.0]


def test_a_machine_that_slept_trips_what_is_armed_and_is_noted_otherwise():
    for armed, outcome in ((True, "tripped"), (False, "aborted")):
        bench = Bench(after_trip=0, armed=armed)
        bench.clock.slept = {1.0: 12.5}
        bench.sink.asked = {5: [("stop", 1.0, "")]}
        assert bench.run() == outcome
        (t_s, level, _, text) = bench.sink.events[-1]
        assert (t_s, level) == (1.0, "fault" if armed else "warning")
        assert "slept for 12.5 s" in text
        assert bench.faults == (["machine_slept"] if armed else [])


def test_a_recorder_that_takes_no_rows_trips_by_what_is_wrong_with_it():
    wrong = (("", "", "recorder_dead"), ("3 MB free", "", "disk_low"),
             ("", "run.h5 was deleted", "recorder_dead"))  # fmt: skip
    for disk_low, harmed, fault in wrong:
        bench = Bench(after_trip=1)
        bench.sink.full_from, bench.sink.disk_low, bench.sink.file_harmed = 3, disk_low, harmed
        assert bench.run() == "tripped"
        assert bench.faults == [fault]
        assert (disk_low or harmed) in bench.sink.events[-1][3]
        assert bench.sink["cells_commanded"] == [1.0, 1.0, 1.0, 0.0]


def test_missed_periods_count_for_the_guard_and_for_the_model():
    bench = Bench(n_ticks=20, after_trip=0, overruns_max=3)
    bench.clock.takes_s = {1.0: 2.1}  # ticks 3 to 5 are missed, 6 is due
    assert bench.run() == "tripped"
    assert bench.sink["t_s"] == [0.0, 0.5, 1.0, 3.0]
    assert bench.estimator.steps == [0, 1, 1, 4]
    assert bench.sink["late_s"] == pytest.approx([0.0, 0.0, 0.0, 0.1])
    assert bench.faults == ["loop_late"]


@pytest.mark.parametrize(("missed", "outcome"), [(3, "tripped"), (2, "complete")])
def test_periods_missed_after_the_last_tick_trip_too(missed, outcome):
    bench = Bench(n_ticks=6, overruns_max=3)
    last = 5 - missed
    bench.clock.takes_s = {last * PERIOD_S: 10.0}
    assert bench.run() == outcome
    assert len(bench.sink.rows) == last + 1
    faults = [event[0] for event in bench.sink.events if event[1] == "fault"]
    assert faults == ([last * PERIOD_S] if outcome == "tripped" else [])


@pytest.mark.parametrize("most", [2, 3])
def test_where_misses_are_tolerated_so_many_in_a_row_are_noted_once(most):
    bench = Bench(n_ticks=20, tolerated_overruns=most)
    bench.clock.takes_s = {1.0: 1.6, 4.0: 1.1}  # two missed, later one
    assert bench.run() == "complete"
    noted = [(t_s, text) for t_s, level, _, text in bench.sink.events if level == "warning"]
    assert noted == ([(1.0, "2 periods missed in a row")] if most == 2 else [])


@pytest.mark.parametrize(("missed", "noted"), [(1, [1.0]), (2, [1.0, 2.5])])
def test_misses_that_have_been_noted_do_not_count_again(missed, noted):
    bench = Bench(n_ticks=20, tolerated_overruns=2)
    bench.clock.takes_s = {1.0: 1.6, 2.5: (missed + 1.2) * PERIOD_S}
    assert bench.run() == "complete"
    assert [event[0] for event in bench.sink.events if event[1] == "warning"] == noted


def test_periods_missed_after_a_trip_are_no_fault_of_their_own():
    bench = Bench(n_ticks=6, after_trip=5, overruns_max=3)
    bench.rig.force_N = lambda t_s: 9.5
    bench.clock.takes_s = {1.0: 10.0}
    assert bench.run() == "tripped"
    assert bench.faults == ["force_high"]


def test_a_run_that_waits_for_a_condition_ends_with_the_tick_that_meets_it():
    met = SimpleNamespace(step=lambda t_s: t_s >= 1.0)
    bench = Bench(n_ticks=20, until=met)
    assert bench.run() == "complete"
    assert bench.sink["t_s"] == [0.0, 0.5, 1.0]


def test_ticks_that_are_later_than_allowed_are_looked_into():
    looked = []
    lateness = SimpleNamespace(late_s=0.1, look=lambda t_s, late_s: looked.append((t_s, late_s)))
    bench = Bench(n_ticks=20, lateness=lateness)
    bench.clock.takes_s = {1.0: 0.625, 3.0: 0.75}  # 0.125 s and 0.25 s late
    lateness.late_s = 0.125
    assert bench.run() == "complete"
    assert looked == [(3.5, 0.25)]


def test_what_a_device_says_in_a_run_is_an_event_and_its_value_an_input():
    bench = Bench()
    bench.rig.news = [("d", Message("info", "zeroed", "zero", 0.25, "f"))]
    assert bench.run() == "complete"
    assert bench.sink.events[0] == (0.0, "info", "d", "zeroed")
    assert bench.sink.inputs == [(0, 0.0, "zero", 0.25, "f")]
    bench = Bench(armed=False, n_ticks=2)

    def force_N(t_s):
        if t_s == 1.0:
            bench.rig.news = [("d", Message("warning", "warm", "heat", 2.0, "d"))]
        return 0.0

    bench.rig.force_N = force_N
    bench.sink.asked = {4: [("stop", 1.0, "enough")]}
    assert bench.run() == "aborted"
    assert bench.sink.events == [(1.0, "warning", "d", "warm")]
    assert bench.sink.inputs[0] == (2, 1.0, "heat", 2.0, "d")


def test_a_board_that_answers_the_last_command_with_a_fault_makes_the_run_a_trip():
    bench = Bench()
    assert loop.look_back(bench.context, bench.run()) == "complete"
    bench = Bench()
    outcome = bench.run()
    bench.guard.trip_when_boards_failed = lambda: bench.guard.trip(DEVICE_FAILED)
    assert loop.look_back(bench.context, outcome) == "tripped"
    assert bench.sink.events[-1][:3] == (2.5, "fault", "guard")


# Progress


def test_the_time_of_an_experiment_counts_from_its_start():
    progress = Progress(PERIOD_S, 4)
    assert (progress.end, progress.started, progress.tripped) == (FOREVER, False, False)
    assert (progress.overruns, progress.experiment_t_s) == (0, 0.0)
    for k in range(1, 4):
        progress.advance(0.0)
        assert (progress.tick, progress.t_s, progress.last_t_s) == (k, k / 2, (k - 1) / 2)
    progress.start()
    assert (progress.experiment_t_s, progress.end, progress.started) == (0.0, 7, True)
    progress.advance(2.0)
    assert (progress.tick, progress.experiment_t_s) == (4, 0.5)


@pytest.mark.parametrize(("n_ticks", "end"), [(0, 1), (2, 3), (3, 4), (9, 4)])
def test_an_end_is_brought_forward_and_never_put_off(n_ticks, end):
    progress = Progress(PERIOD_S, 4)
    progress.start()
    progress.end_after(n_ticks)
    assert progress.end == end


def test_missed_periods_count_into_the_time_that_a_cell_is_on():
    """On from tick 0; tick 1 takes until tick 5, when the cell has been on for 5 periods."""
    bench = Bench(n_ticks=8, after_trip=0, cell_on_max_s=5 * PERIOD_S)
    bench.clock.takes_s = {PERIOD_S: 4 * PERIOD_S}
    assert bench.run() == "tripped"
    assert bench.faults == ["cell_on_too_long"]
    assert bench.sink["t_s"] == [0.0, 0.5, 2.5]


def test_no_command_is_written_before_the_guard_has_checked_it():
    bench = Bench(n_ticks=3, after_trip=0)
    bench.rig.force_N = lambda t_s: 9.5 if t_s == 1.0 else 0.0
    assert bench.run() == "tripped"
    assert bench.rig.written == [1, 1, 0]


def test_a_run_does_not_count_as_running_before_its_devices_are_armed():
    bench = Bench()
    states = []
    arm = bench.rig.arm
    bench.rig.arm = lambda: (states.append(bench.rig.states.now), arm())
    assert bench.run() == "complete"
    assert states == ["armed"]


def test_sleep_while_armed_trips_before_all_power_is_on_too():
    bench = Bench(after_trip=0, armed=False)
    bench.rig.power = False
    bench.sink.asked = {1: [("arm", 1.0, "")]}
    bench.clock.slept = {1.0: 12.5}
    assert bench.run() == "tripped"
    assert bench.faults == ["machine_slept"]


def test_periods_missed_in_one_tick_after_another_add_up():
    for second_s, outcome in ((0.0, "complete"), (3 * PERIOD_S, "tripped")):
        bench = Bench(n_ticks=12, after_trip=0, overruns_max=4)
        bench.clock.takes_s = {PERIOD_S: 3 * PERIOD_S, 4 * PERIOD_S: second_s}
        assert bench.run() == outcome
