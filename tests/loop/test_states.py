"""The table of states, exhaustively, where it shows, and what fires it."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

import hil
from hil.devices.injection import Injection
from hil.devices.injection_tables import FaultTable
from hil.errors import DeviceError, StopError
from hil.experiment.load import load
from hil.loop import loop
from hil.loop.clock import VirtualClock
from hil.loop.requests import Stop
from hil.loop.states import ENERGISED, EVENTS, NUMBERS, STATES, TABLE, States
from hil.reports import safety
from hil.runs import assembly, session
from hil.runs.plan import Plan
from hil.runs.recording import Output

PAIRS = list(itertools.product(STATES, EVENTS))


@pytest.mark.parametrize(("state", "event"), PAIRS)
def test_every_event_in_every_state_leads_where_the_table_says_or_nowhere(state, event):
    rig = States(state)
    following = TABLE[state].get(event)
    assert rig.on(event) == (following is not None)
    assert rig.now == (following or state)


def test_the_table_names_known_states_and_events_only():
    assert set(TABLE) == set(STATES)
    for row in TABLE.values():
        assert set(row) <= set(EVENTS)
        assert set(row.values()) <= set(STATES)
    with pytest.raises(ValueError, match="no such event"):
        States().on("explode")


def test_a_fault_is_left_by_letting_go_of_the_rig_alone():
    for state in ("fault", "estop"):
        left = {event: to for event, to in TABLE[state].items() if to not in ("fault", "estop")}
        assert left == {"disconnect": "off"}


def test_numbers_of_states_in_recordings_keep_their_meaning():
    assert NUMBERS == {
        "off": 0, "connected": 1, "self_test": 2, "ready": 3, "armed": 4, "running": 5,
        "fault": 7, "estop": 8,
    }  # fmt: skip


def test_from_a_fault_nothing_is_on_again_without_another_self_test():
    """Every way through the table from `fault` to an energised state passes `self_test`."""
    reached, todo = set(), ["fault"]
    while todo:
        state = todo.pop()
        for following in TABLE[state].values():
            if following != "self_test" and following not in reached:
                reached.add(following)
                todo.append(following)
    assert not reached & set(ENERGISED)


@pytest.mark.parametrize("state", ["connected", "ready", "armed", "running"])
def test_a_fault_and_the_estop_are_heard_wherever_the_loop_ticks(state):
    assert TABLE[state]["fault"] == "fault"
    assert TABLE[state]["estop"] == "estop"


def test_every_state_can_be_reached():
    reached, todo = {"off"}, ["off"]
    while todo:
        for following in TABLE[todo.pop()].values():
            if following not in reached:
                reached.add(following)
                todo.append(following)
    assert reached == set(STATES)


def test_a_recording_carries_the_state_and_what_was_proved(all_on):
    run = hil.open_run(all_on)
    assert set(run.guard_state.values) == {NUMBERS["running"]}
    said = [str(t) for t in run.event_text.values[run.event_source.values == "self-test"]]
    assert said == ["board: watchdog tested, e-stop seen open"]


def test_a_trip_shows_as_a_fault_from_its_row_on(configs, tmp_path):
    sets = ("guard.force_max_N=1.0",)
    path = hil.run(hil.load(configs / "miga6/all_on.toml", sets), out=tmp_path / "run.h5")
    run = hil.open_run(path)
    tripped = run.fault_bits.values != 0
    np.testing.assert_array_equal(
        run.guard_state.values, np.where(tripped, NUMBERS["fault"], NUMBERS["running"])
    )


class Asking(assembly.NoSink):
    """Asks for what a window would at given ticks."""

    def __init__(self, asked):
        self.asked = asked

    def requests(self, tick):
        return self.asked.get(tick, ())


ESTOP = ('devices.daq.lines.loop={terminal="port0/line0", kind="estop"}',)
FORCE = FaultTable(kind="force_offset", at_s=0.05, value=20.0)
OPEN = FaultTable(kind="card_estop_open", at_s=0.05)
ARM, DISARM = [("arm", 1.0, "")], [("arm", 0.0, "")]


class Rigs:
    """Small runs, and every transition that they fire."""

    def __init__(self, configs, fired):
        self._configs = configs
        self.fired = fired

    def built(self, *faults, experiment="miga6/all_on.toml", sets=ESTOP):
        config = load(self._configs / experiment, ("experiment.duration_s=0.1", *sets))
        return config, assembly.build(Plan(config, injection=Injection(faults)))

    def run(self, *faults, armed=True, tested=True, asked=None, fails=None, stopped=False, **of):
        """Connect, prove, tick and let go, as a session does."""
        config, pipeline = self.built(*faults, **of)
        rig, control = pipeline.rig, pipeline.control
        sink = Asking(asked or {})
        parts = pipeline.context(VirtualClock(), sink, armed=armed)
        n_ticks = config.n_ticks
        if fails is not None:
            parts = replace(parts, control=Failing(control, fails))
        rig.stopped = lambda: bool(parts.inputs.stop.reason)
        stop = parts.inputs.stop if not armed else Stop()
        parts = replace(parts, sink=Ending(sink, stop, n_ticks, parts.frame))
        try:
            with rig.opened():
                if tested:
                    rig.self_test(print)
                if stopped:
                    rig.stopped = lambda: True
                return loop.run(parts)
        except (DeviceError, StopError, ZeroDivisionError) as error:
            return type(error).__name__
        finally:
            assert rig.states.now == "off"


class Failing:
    """A control stage with a defect."""

    def __init__(self, inner, at_s):
        self._inner, self._at_s = inner, at_s

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def step(self, t_s):
        self._inner.step(t_s)
        if t_s >= self._at_s:
            raise ZeroDivisionError


class Ending:
    """Stops a run that nobody has armed."""

    def __init__(self, sink, stop, n_rows, frame):
        self._sink, self._stop, self._left = sink, stop, n_rows

    def __getattr__(self, name):
        return getattr(self._sink, name)

    def push(self):
        self._left -= 1
        if self._left <= 0:
            self._stop.reason = "enough"
        return True


@pytest.fixture
def rigs(configs, monkeypatch):
    fired, on = set(), States.on

    def noted(states, event):
        before = states.now
        led = on(states, event)
        if led:
            fired.add((before, event, states.now))
        return led

    monkeypatch.setattr(States, "on", noted)
    return Rigs(configs, fired)


def test_every_state_is_reached_and_every_transition_of_the_table_is_fired_by_a_run(
    rigs, monkeypatch
):
    assert rigs.run() == "complete"  # off to running, and back
    assert rigs.run(armed=False) == "aborted"  # ready, let go of
    assert rigs.run(armed=False, tested=False) == "aborted"  # only connected, as a wait
    for trip in (FORCE, OPEN):
        assert rigs.run(trip) == "tripped"  # from running
        assert rigs.run(trip, armed=False) == "tripped"  # from ready
        assert rigs.run(trip, armed=False, tested=False) == "tripped"  # from connected
    later = OPEN.model_copy(update={"at_s": 0.06})
    assert rigs.run(FORCE, later) == "tripped"  # an e-stop after a fault
    assert rigs.run(fails=0.02) == "ZeroDivisionError"  # a defect while running

    # armed and waiting for a supply: disarmed, tripped, stopped
    waiting = {"armed": False, "experiment": "wires4/hold.toml", "asked": {1: ARM, 3: DISARM}}
    slow = ("devices.supply.sim.obey_s=0.4", "experiment.duration_s=0.1")
    assert rigs.run(sets=slow, **waiting) == "aborted"
    at_once = FaultTable(kind="force_offset", at_s=0.01, value=20.0)
    waiting["asked"] = {1: ARM}
    assert rigs.run(at_once, sets=slow, **waiting) == "tripped"
    open_at_once = FaultTable(kind="card_estop_open", at_s=0.01)
    with_loop = (*slow, *ESTOP)
    assert rigs.run(open_at_once, sets=with_loop, **waiting) == "tripped"
    assert rigs.run(stopped=True) == "StopError"  # while its boards are being armed

    # a self-test that fails, and one that somebody stops
    _, pipeline = rigs.built()
    monkeypatch.setattr(pipeline.rig._devices[0], "self_test", _refuses)
    with pytest.raises(DeviceError), pipeline.rig.opened():
        pipeline.rig.self_test(print)
    _, pipeline = rigs.built()
    stops = iter((False,) * (len(pipeline.rig._devices) + 1))
    pipeline.rig.stopped = lambda: next(stops, True)  # once it is connected
    with pytest.raises(StopError), pipeline.rig.opened():
        pipeline.rig.self_test(print)

    table = {(state, event, to) for state, row in TABLE.items() for event, to in row.items()}
    assert table - rigs.fired == set()
    assert {to for _, _, to in rigs.fired} == set(STATES)


def _refuses(say):
    raise DeviceError("board: did not stop by itself")


def test_a_rig_that_has_not_proved_itself_is_not_armed(configs):
    config = load(configs / "miga6/all_on.toml")
    pipeline = assembly.build(Plan(config))
    parts = pipeline.context(VirtualClock(), assembly.NoSink())
    pipeline.rig.open()
    with pytest.raises(RuntimeError, match="run the rig's self-test first"):
        loop.run(parts)


def test_the_page_prints_every_state_and_nothing_else():
    lines = safety.page().split("## States")[1].splitlines()
    printed = [line.split("`")[1] for line in lines if line.startswith("| `")]
    assert tuple(printed) == STATES


def test_a_window_sees_the_state_of_the_rig_before_there_is_a_row(configs, tmp_path, monkeypatch):
    seen = []
    show = session.Sink.show_state

    def showing(sink, now):
        show(sink, now)
        seen.append(sink.tap.state)

    monkeypatch.setattr(session.Sink, "show_state", showing)
    config = load(configs / "miga6/all_on.toml", ("experiment.duration_s=0.1",))
    session.run(Plan(config), Output(out=tmp_path / "run.h5"))
    assert seen == ["connected", "self_test", "ready", "armed", "running", "ready", "off"]
