"""The table of states, exhaustively, and where it shows."""

import itertools

import numpy as np
import pytest

import hil
from hil import states
from hil.states import ENERGISED, EVENTS, STATES, TABLE, States

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


def test_a_fault_is_left_by_a_reset_alone_and_never_for_where_something_is_on():
    for state in ("fault", "estop"):
        left = {event: to for event, to in TABLE[state].items() if to not in ("fault", "estop")}
        assert left == {"reset": "connected", "disconnect": "off"}


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


@pytest.mark.parametrize("state", [s for s in STATES if s not in ("off", "fault", "estop")])
def test_a_fault_and_the_estop_are_heard_in_every_connected_state(state):
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
    assert set(run.guard_state.values) == {states.STATES.index("running")}
    said = [str(t) for t in run.event_text.values[run.event_source.values == "self-test"]]
    assert said == ["board: stops when left alone, e-stop seen open"]


def test_a_trip_shows_as_a_fault_from_its_row_on(configs, tmp_path):
    sets = ("guard.force_max_N=1.0",)
    path = hil.run(hil.load(configs / "miga6/all_on.toml", sets), out=tmp_path / "run.h5")
    run = hil.open_run(path)
    tripped = run.fault_bits.values != 0
    np.testing.assert_array_equal(
        run.guard_state.values, np.where(tripped, STATES.index("fault"), STATES.index("running"))
    )
