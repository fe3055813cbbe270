import inspect
import os
import re
import signal
from dataclasses import replace

import numpy as np
import pytest

from hil.devices.board.protocol import fault_names
from hil.errors import DeviceError
from hil.experiment.load import load
from hil.loop import loop
from hil.loop.clock import VirtualClock
from hil.loop.guard import FAULTS, names_of
from hil.loop.progress import Progress
from hil.runs import assembly, session
from hil.runs.plan import Plan


class Rows:
    """A sink that keeps everything, and may stop taking rows."""

    disk_low = file_harmed = ""

    def __init__(self, frame, dead_after=None):
        self._frame = frame
        self._dead_after = dead_after
        self.rows = []
        self.events = []
        self.inputs = []
        self.asked = {}  # tick -> requests

    def push(self):
        self.rows.append(self._frame.row[0].copy())
        return self._dead_after is None or len(self.rows) < self._dead_after

    def event(self, t_s, level, source, text):
        self.events.append((t_s, level, source, text))

    def requests(self, tick):
        return self.asked.get(tick, [])

    def input(self, tick, t_s, name, value, text=""):
        self.inputs.append((tick, t_s, name, value, text))

    def __getitem__(self, name):
        return np.array([row[name] for row in self.rows])


class LateClock:
    """Virtual time in which chosen ticks take longer than their period."""

    name = "virtual"

    def __init__(self, late):
        self._late = late  # tick -> s that its work takes
        self._now_s = 0.0
        self.deadlines = []

    def start(self):
        self._now_s = 0.0

    def now_s(self):
        tick = round(self.deadlines[-1] / 0.001)
        return self._now_s + self._late.get(tick, 0.0)

    def sleep_until_s(self, deadline_s):
        if self.deadlines:
            self._now_s = self.now_s()
        self.deadlines.append(deadline_s)
        self._now_s = max(self._now_s, deadline_s)
        return self._now_s - deadline_s

    def slept_s(self):
        return 0.0


def parts_of(configs, *sets, clock=None, experiment="miga6/all_on.toml", dead_after=None):
    config = load(configs / experiment, sets)
    pipeline = assembly.build(Plan(config))
    sink = Rows(pipeline.frame, dead_after)
    parts = pipeline.context(clock or VirtualClock(), sink)
    parts.rig.open()
    parts.rig.self_test(print)
    return parts, sink


def gates(parts):
    """What the simulated plant's gates do."""
    return parts.rig._devices[0]._link._connect().gates()


def first_fault(parts):
    return names_of(parts.guard.first_bits)


def test_on_a_punctual_clock_there_is_a_row_for_every_period(configs):
    parts, sink = parts_of(configs, "experiment.duration_s=0.5")
    assert loop.run(parts) == "complete"
    np.testing.assert_array_equal(sink["t_s"], np.arange(500) * 0.001)
    assert not sink["late_s"].any()
    assert not sink["fault_bits"].any()


LATE = {100: 0.0075, 200: 0.0305, 300: 0.0012}
# from tick k + work of w the next tick is the latest one due: floor(k + w)
GAPS = {100: 107, 200: 230, 300: 301}


@pytest.mark.parametrize("policy", ["trip", "tolerate", "skip"])
def test_missed_periods_are_skipped_never_caught_up_and_no_time_stamp_moves(configs, policy):
    clock = LateClock(LATE)
    parts, sink = parts_of(
        configs,
        f"loop.overrun='{policy}'",
        "loop.overruns_max=1000",
        "experiment.duration_s=0.4",
        clock=clock,
    )
    assert loop.run(parts) == "complete"
    ticks = []
    k = 0
    while k < 400:
        ticks.append(k)
        k = GAPS.get(k, k + 1)
    np.testing.assert_array_equal(sink["t_s"], np.array(ticks) * 0.001)
    assert clock.deadlines == sink["t_s"].tolist()
    wanted_late = {107: 0.0005, 230: 0.0005, 301: 0.0002}
    late = [wanted_late.get(tick, 0.0) for tick in ticks]
    np.testing.assert_allclose(sink["late_s"], late, atol=1e-12)


@pytest.mark.parametrize(
    ("last", "work_s", "outcome"),
    [
        (480, 0.0205, "tripped"),
        (480, 5.0, "tripped"),
        (481, 5.0, "complete"),
        (490, 0.03, "complete"),
    ],
)
def test_periods_missed_after_the_last_tick_count_up_to_the_runs_end(
    configs, last, work_s, outcome
):
    sets = ("experiment.duration_s=0.5", "loop.overruns_max=19")
    parts, sink = parts_of(configs, *sets, clock=LateClock({last: work_s}))
    assert loop.run(parts) == outcome
    assert sink["t_s"][-1] == pytest.approx(0.001 * last)
    # of 500 periods, those after the last tick: 19 after 480
    assert first_fault(parts) == (["loop_late"] if outcome == "tripped" else [])
    assert [level for _, level, _, _ in sink.events] == ["fault"] * (outcome == "tripped")


def test_the_trip_policy_turns_all_cells_off_at_the_first_tick_after_too_many(configs):
    clock = LateClock(LATE)
    parts, sink = parts_of(configs, "loop.overruns_max=29", clock=clock)
    assert loop.run(parts) == "tripped"
    assert first_fault(parts) == ["loop_late"]
    at = sink["t_s"].tolist().index(0.230)
    assert sink["cells_commanded"][:at].all()
    assert not sink["cells_commanded"][at:].any()
    assert not sink["cells_reported"][at + 1 :].any()
    # it goes on for loop.after_trip_s = 0.5 s, so that what followed can be seen
    assert sink["t_s"][-1] == pytest.approx(0.730)


def test_the_trip_policy_lets_fewer_missed_periods_pass(configs):
    parts, _ = parts_of(
        configs, "loop.overruns_max=30", "experiment.duration_s=0.4", clock=LateClock(LATE)
    )
    assert loop.run(parts) == "complete"


def test_periods_missed_in_a_row_add_up_until_a_tick_is_on_time(configs):
    close = dict.fromkeys(range(100, 160), 0.0022)  # each misses at least one period
    parts, _ = parts_of(configs, "experiment.duration_s=0.4", clock=LateClock(close))
    assert loop.run(parts) == "tripped"
    assert first_fault(parts) == ["loop_late"]
    apart = dict.fromkeys(range(100, 340, 4), 0.0025)
    parts, _ = parts_of(configs, "experiment.duration_s=0.4", clock=LateClock(apart))
    assert loop.run(parts) == "complete"


def test_the_tolerate_policy_notes_an_event_only_for_too_many_in_a_row(configs):
    sets = ["loop.overrun='tolerate'", "loop.overruns_max=20", "experiment.duration_s=0.4"]
    parts, sink = parts_of(configs, *sets, clock=LateClock(LATE))
    assert loop.run(parts) == "complete"
    assert sink.events == [(0.2, "warning", "loop", "29 periods missed in a row")]


def test_the_skip_policy_notes_nothing(configs):
    sets = ["loop.overrun='skip'", "experiment.duration_s=0.4"]
    parts, sink = parts_of(configs, *sets, clock=LateClock({50: 0.04}))
    assert loop.run(parts) == "complete"
    assert sink.events == []
    assert sink["t_s"][51] == 0.09


def test_a_board_left_alone_for_longer_than_its_commands_hold_switches_off_by_itself(configs):
    sets = ["loop.overrun='skip'", "experiment.duration_s=0.6", "loop.after_trip_s=0.1"]
    parts, sink = parts_of(configs, *sets, clock=LateClock({50: 0.2}))
    assert loop.run(parts) == "tripped"
    assert first_fault(parts) == ["reading_stale", "board_silent"]
    assert "board_fault" in names_of(parts.guard.fault_bits)
    assert fault_names(int(sink["board_fault_bits"][-1])) == ["host_silent"]
    assert not gates(parts).any()


def test_the_twin_crosses_missed_periods_exactly(configs):
    sets = ["loop.overrun='skip'", "experiment.duration_s=0.4"]
    parts, with_gaps = parts_of(configs, *sets, clock=LateClock(LATE))
    loop.run(parts)
    parts, without = parts_of(configs, *sets)
    loop.run(parts)
    ticks = np.rint(with_gaps["t_s"] / 0.001).astype(int)
    np.testing.assert_allclose(
        with_gaps["force_model_N"], without["force_model_N"][ticks], rtol=1e-12, atol=1e-12
    )


def test_missed_ticks_do_not_stretch_the_time_a_cell_may_be_on(configs):
    late = dict.fromkeys(range(0, 1000, 10), 0.0105)
    sets = ["loop.overrun='skip'", "guard.cell_on_max_s=0.3"]
    parts, sink = parts_of(configs, *sets, clock=LateClock(late))
    assert loop.run(parts) == "tripped"
    assert first_fault(parts) == ["cell_on_too_long"]
    assert sink["t_s"][sink["cells_commanded"].any(axis=1)].max() <= 0.3


def test_force_beyond_the_limit_trips_in_the_same_tick(configs):
    parts, sink = parts_of(configs, "guard.force_max_N=1.0")
    assert loop.run(parts) == "tripped"
    over = np.abs(sink["force_measured_N"]) > 1.0
    at = int(np.argmax(over))
    assert over.any()
    assert sink["cells_commanded"][:at].all()
    assert not sink["cells_commanded"][at:].any()
    assert not sink["fault_bits"][:at].any()
    assert (sink["fault_bits"][at:] & 1).all()
    assert not gates(parts).any()
    assert [event[1:3] for event in sink.events] == [("fault", "guard")]


@pytest.mark.parametrize(
    ("usual", "said"),
    [
        ([], "limit 1 N/s (guard.signals.force.rate_max_per_s)"),
        (
            ["guard.force_rate_max_N_per_s=2.0"],
            "limit 1 N/s (guard.signals.force.rate_max_per_s)",
        ),
        (["guard.force_rate_max_N_per_s=0.5"], "limit 0.5 N/s (guard.force_rate_max_N_per_s)"),
    ],
)
def test_a_force_has_its_own_rate_beside_that_of_all_forces(usual, said, configs):
    own = "guard.signals.force={min=-9.0, max=9.0, rate_max_per_s=1.0}"
    parts, sink = parts_of(configs, own, *usual)
    assert loop.run(parts) == "tripped"
    assert first_fault(parts) == ["force_rate_high"]
    [text] = [event[3] for event in sink.events if event[1] == "fault"]
    assert said in text


@pytest.mark.parametrize(
    "lost",
    [
        "devices.daq.channels.force.sim.reading_lost_probability=1.0",
        "devices.board.sim.reply_lost_probability=1.0",
    ],
)
def test_a_silent_device_trips_after_its_allowed_age(configs, lost):
    parts, sink = parts_of(configs, lost)
    assert loop.run(parts) == "tripped"
    board = ["board_silent"] if "board" in lost else []
    assert first_fault(parts) == ["reading_stale", *board]
    # at 0.05 s the age is exactly what is allowed
    assert sink["t_s"][sink["cells_commanded"].any(axis=1)].max() == pytest.approx(0.050)


def test_one_silent_channel_of_a_card_trips_though_its_neighbour_reads(configs):
    second = "devices.daq.channels.left={terminal='ai1', newtons_per_V=0.95, "
    second += "signal='muscle.left_N', sim={reading_lost_probability=1.0}}"
    parts, sink = parts_of(configs, second, "plant_card.outputs.left='ao1'")
    assert loop.run(parts) == "tripped"
    assert first_fault(parts) == ["reading_stale"]
    assert np.isfinite(sink["force.force_measured_N"]).all()
    assert np.isnan(sink["left.force_measured_N"]).all()
    np.testing.assert_array_equal(sink["force_measured_N"], sink["force.force_measured_N"])


def test_a_dead_recorder_turns_all_cells_off(configs):
    parts, sink = parts_of(configs, dead_after=100)
    assert loop.run(parts) == "tripped"
    assert first_fault(parts) == ["recorder_dead"]
    assert sink["cells_commanded"][:100].all()
    assert not sink["cells_commanded"][100:].any()
    assert (sink["fault_bits"][100:] == 1 << FAULTS.index("recorder_dead")).all()


def test_a_stop_ends_the_run_between_two_ticks(configs):
    parts, sink = parts_of(configs)

    class Stopping(VirtualClock):
        def sleep_until_s(self, deadline_s):
            if deadline_s >= 0.1:
                parts.inputs.stop.reason = "SIGINT"
            return super().sleep_until_s(deadline_s)

    assert loop.run(replace(parts, clock=Stopping())) == "aborted"
    assert len(sink.rows) == 101
    assert sink["cells_commanded"][-1].all()


class Failing:
    """A device, controller or whatever else, of which one method fails at one time."""

    def __init__(self, inner, method, failure, at=100):
        self._inner, self._method, self._failure, self._left = inner, method, failure, at

    def __getattr__(self, name):
        found = getattr(self._inner, name)
        if name != self._method:
            return found

        def fail(*args):
            self._left -= 1
            if self._left < 0:
                self._failure()
            return found(*args)

        return fail


def raising(error):
    def fail():
        raise error

    return fail


@pytest.mark.parametrize("method", ["read", "write"])
@pytest.mark.parametrize("device", [0, 1])
def test_a_failing_device_ends_the_run_and_the_last_row_says_so(configs, method, device):
    parts, sink = parts_of(configs)
    devices = parts.rig._devices
    devices[device] = Failing(devices[device], method, raising(DeviceError("gone")))
    with pytest.raises(DeviceError, match="gone"):
        loop.run(parts)
    assert len(sink.rows) == 101
    assert names_of(int(sink["fault_bits"][-1])) == ["device_failed"]
    assert not sink["cells_commanded"][-1].any()


def wrecked_run(configs, out, monkeypatch, wreck):
    """A whole recorded run with something in its parts wrecked; the parts and how it ended."""
    made = {}
    whole = assembly.Pipeline.context

    def with_wreck(pipeline, clock, sink, **more):
        parts = whole(pipeline, clock, sink, **more)
        if isinstance(sink, session.Sink):
            parts = wreck(parts)
            made["parts"] = parts
        return parts

    monkeypatch.setattr(assembly.Pipeline, "context", with_wreck)
    from hil.__main__ import main

    words = ["run", str(configs / "miga6/all_on.toml"), "--out", str(out)]
    code = main([*words, "--duration", "0.5"])
    return code, made["parts"]


def fail_device(parts, method="read", error=None, device=1):
    devices = parts.rig._devices
    failure = raising(error or DeviceError("daq: unplugged"))
    devices[device] = Failing(devices[device], method, failure)
    return parts


def fail_controller(error):
    return lambda parts: replace(parts, control=Failing(parts.control, "step", raising(error)))


def interrupt(number):
    def wreck(parts):
        def strike():
            os.kill(os.getpid(), number)

        return replace(parts, control=Failing(parts.control, "step", strike, 100))

    return wreck


def low_limit(parts):
    """A force that is beyond every limit, from one tick on."""

    def strike():
        parts.rig.readings.measured[0] = 50.0

    return replace(parts, control=Failing(parts.control, "step", strike))


# what goes wrong -> exit code, outcome, what standard error says
WRECKS = {
    "device": (fail_device, 4, "aborted", "daq: unplugged"),
    "device on write": (lambda p: fail_device(p, "write", device=0), 4, "aborted", "unplugged"),
    "controller": (fail_controller(ZeroDivisionError("oops")), 1, "aborted", "internal error"),
    "memory": (fail_controller(MemoryError()), 2, "aborted", "not enough memory"),
    "exit": (fail_controller(KeyboardInterrupt()), 130, "aborted", "interrupted"),
    "ctrl-c": (interrupt(signal.SIGINT), 130, "aborted", ""),
    "terminated": (interrupt(signal.SIGTERM), 130, "aborted", ""),
    "hung up": (interrupt(signal.SIGHUP), 130, "aborted", ""),
    "guard": (low_limit, 3, "tripped", ""),
}


@pytest.mark.parametrize("case", WRECKS)
def test_every_way_out_leaves_all_gates_off_and_the_recording_whole(
    case, configs, tmp_path, monkeypatch, capsys
):
    import hil
    from hil.record.repair import faults_of

    wreck, code, outcome, words = WRECKS[case]
    before = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    out = tmp_path / "run.h5"
    found, parts = wrecked_run(configs, out, monkeypatch, wreck)
    said = capsys.readouterr().err
    assert found == code
    assert words in said
    assert len(said.splitlines()) <= 1
    assert not gates(parts).any()
    run = hil.open_run(out)
    assert run.attrs["outcome"] == outcome
    assert faults_of(out) == []
    assert len(run.t_s) >= 100
    assert run.cells_commanded.values[:100].all()
    assert {n: signal.getsignal(n) for n in before} == before


def test_a_device_that_fails_at_the_end_does_not_keep_the_others_on(
    configs, tmp_path, monkeypatch, capsys
):
    import hil

    class Stubborn:
        name, simulated, columns = "stubborn", True, ()

        def read(self, t_s): ...
        def open(self): ...
        def write(self, t_s, cells): ...

        def safe(self):
            raise OSError("stuck")

        close = safe

    def wreck(parts):
        parts.rig._devices.insert(0, Stubborn())
        return parts

    code, parts = wrecked_run(configs, tmp_path / "run.h5", monkeypatch, wreck)
    assert code == 4
    assert "stuck" in capsys.readouterr().err
    assert not parts.rig._devices[1]._link._connect().gates().any()
    assert hil.open_run(tmp_path / "run.h5").attrs["outcome"] == "aborted"


def test_the_loop_stays_on_a_page_with_its_five_stages_in_order():
    source = inspect.getsource(loop.ticks)
    assert len(source.splitlines()) <= 45
    laps = re.findall(r'stopwatch\.lap\("(\w+)"\)', source)
    assert laps == ["read", "estimate", "control", "guard", "write"]


def test_periods_missed_in_a_row_count_until_a_tick_is_punctual():
    progress = Progress(period_s=0.25, n_ticks=20)
    progress.start()
    found = []
    # ends of the work of tick 0, then of whichever tick came next
    for now_s in (0.1, 1.3, 2.1, 2.2):
        progress.advance(now_s)
        found.append((progress.tick, progress.n_periods, progress.overruns))
    # 1.3 s: tick 5 of 0.25 s is due, 2 to 4 are missed; 2.1 s: tick 8, 6 and 7 are missed
    assert found == [(1, 1, 0), (5, 4, 3), (8, 3, 5), (9, 1, 0)]


def test_a_started_experiment_has_its_own_time_and_its_own_end():
    progress = Progress(period_s=0.5, n_ticks=3)
    progress.advance(0.0)
    progress.advance(0.5)
    progress.start()  # at tick 2
    assert (progress.tick, progress.end, progress.experiment_t_s) == (2, 5, 0.0)
    progress.end_after(1)
    assert progress.end == 4
