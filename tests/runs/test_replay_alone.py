"""The comparison within a replay, on rows made for it: what counts as a difference, and when."""

import json

import numpy as np
import pytest
import xarray as xr

from hil.loop import guard
from hil.loop.frame import Column, Frame
from hil.platform.provenance import processor
from hil.runs import replay as replays
from hil.runs.replay import ROUNDING, _ComparingSink, _RecordedClock, tolerance_of

COLUMNS = [
    Column("t_s", "s", "timing", ""),
    Column("late_s", "s", "timing", ""),
    Column("force_model_N", "N", "model", ""),
    Column("force_measured_N", "N", "measured", ""),
    Column("fault_bits", "1", "fault", "", flags=guard.FAULTS),
    Column("cells_commanded", "1", "commanded", "", n_cells=2),
]
N = 4
NAN = float("nan")


def recorded(inputs=(), **more):
    """A recording of four rows."""
    values = {
        "late_s": np.zeros(N), "force_model_N": np.array([0.0, -8.0, NAN, 2.0]),
        "force_measured_N": np.zeros(N), "fault_bits": np.zeros(N, dtype=np.uint64), **more,
    }  # fmt: skip
    return xr.Dataset(
        {name: ("tick", array) for name, array in values.items()}
        | {"cells_commanded": (("tick", "cell"), np.zeros((N, 2), dtype=np.uint8))}
        | {
            f"input_{name}": ("input", np.array(of))
            for name, of in zip(
                ("tick", "name", "value", "text"),
                zip(*inputs, strict=True) if inputs else ((), (), (), ()),
                strict=True,
            )
        },
        coords={"t_s": ("tick", np.arange(N) * 0.5)},
    )


def compared(run, changes=(), tolerance=0.0):
    """Push the same rows again, but for (row, column, value); the sink."""
    frame = Frame(COLUMNS)
    sink = _ComparingSink(run, frame, tolerance)
    for row in range(N):
        if sink.stop.reason:
            break
        for column in COLUMNS:
            frame.row[column.name][0] = run[column.name].values[row]
        for at, name, value in changes:
            if at == row:
                frame.row[name][0] = value
        assert sink.push()
    return sink


def test_the_same_rows_are_no_difference_and_end_with_the_recording():
    sink = compared(recorded())
    assert (sink.difference, sink.rows, sink.stop.reason) == (None, N, "end")


@pytest.mark.parametrize(
    ("column", "value", "replayed"),
    [
        ("force_model_N", -8.000001, -8.000001),
        ("force_model_N", NAN, NAN),
        ("cells_commanded", (0, 1), [0, 1]),
        ("fault_bits", 1, 1),
        ("t_s", 0.75, 0.75),
    ],
)
def test_the_first_difference_is_named_with_row_time_column_and_both_values(
    column, value, replayed
):
    changes = [(2, "force_model_N", 7.0), (1, column, value)]
    sink = compared(recorded(), changes)
    found = sink.difference
    assert (found.row, found.t_s, found.column) == (1, 0.5, column)
    assert found.replayed == replayed or np.isnan(found.replayed)
    assert found.recorded == recorded()[column].values[1].tolist()
    assert (sink.rows, sink.stop.reason) == (2, "difference")


def test_a_difference_in_the_last_row_is_one():
    assert compared(recorded(), [(N - 1, "cells_commanded", (1, 0))]).difference.row == N - 1


def test_what_is_measured_or_timed_is_not_compared_since_the_replay_feeds_it():
    changes = [(1, "force_measured_N", 9.0), (2, "late_s", 9.0)]
    assert compared(recorded(), changes).difference is None


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_on_another_processor_a_rounding_of_the_largest_value_is_allowed_either_way(sign):
    """The largest value of the column is 8: an eighth of a thousandth of it, and no more."""
    for share, differs in ((0.99, False), (1.01, True)):
        changes = [(3, "force_model_N", 2.0 + sign * share * 8.0 * 1e-3)]
        assert (compared(recorded(), changes, 1e-3).difference is not None) == differs
    assert compared(recorded(), [(3, "cells_commanded", (0, 1))], 1e-3).difference is not None
    assert compared(recorded(), [(2, "force_model_N", 0.0)], 1e-3).difference is not None


@pytest.mark.parametrize(
    ("fault", "disk_low"), [(guard.DISK_LOW, "as recorded"), (guard.RECORDER_DEAD, "")]
)
def test_the_row_that_the_run_could_not_record_is_refused_again(fault, disk_low):
    """The guard trips after a row that is refused: the next one has the fault."""
    bits = np.array([0, 0, fault, fault], dtype=np.uint64)
    run, frame = recorded(fault_bits=bits), Frame(COLUMNS)
    sink, pushed = _ComparingSink(run, frame, 0.0), []
    for row in range(N):
        for column in COLUMNS:
            frame.row[column.name][0] = run[column.name].values[row]
        pushed.append((sink.push(), sink.disk_low))
    assert pushed == [(True, ""), (False, disk_low), (True, ""), (True, "")]
    assert sink.difference is None


def test_a_fault_that_no_reading_shows_is_left_out():
    """A device fails once, and ends the run."""
    bits = np.array([0, 0, 0, guard.DEVICE_FAILED], dtype=np.uint64)
    run = recorded(fault_bits=bits)
    assert compared(run, [(3, "fault_bits", 0)]).difference is None
    one = np.uint64(bits[3] | np.uint64(1))
    assert compared(recorded(fault_bits=bits | one), [(3, "fault_bits", 0)]).difference is not None


def test_what_was_asked_in_the_run_is_asked_again_at_its_tick():
    inputs = [
        (0, "start", 1.0, ""), (0, "zero", 0.25, "f"), (2, "arm", 0.0, ""), (2, "note", NAN, "a"),
        (3, "stop", 1.0, "smoke"),
    ]  # fmt: skip
    sink = compared(recorded(inputs))
    assert [sink.requests(tick) for tick in (0, 1, 3)] == [(), (), ()]
    (arm, note) = sink.requests(2)
    assert arm == ("arm", 0.0, "")
    assert (note[0], note[2]) == ("note", "a")


def test_the_clock_has_the_recording_s_ticks_its_lateness_and_its_sleep():
    """Ticks 1 to 3 were missed, and the machine slept before the third row."""
    t_s, late_s = np.array([0.0, 2.0, 2.5]), np.array([0.1, 0.2, 0.0])
    slept = np.array([0, 0, guard.MACHINE_SLEPT], dtype=np.uint64)
    clock = _RecordedClock(t_s, late_s, slept, 0.5)
    clock.start()
    seen = []
    for _ in range(3):
        late = clock.sleep_until_s(99.0)
        seen.append((late, clock.slept_s() > 0.0, int(clock.now_s() / 0.5)))
    assert seen == [(0.1, False, 4), (0.2, False, 5), (0.0, True, 5)]
    awake = _RecordedClock(t_s, late_s, slept & np.uint64(0), 0.5)
    assert [awake.sleep_until_s(0.0) + awake.slept_s() for _ in range(3)] == [0.1, 0.2, 0.0]


def test_bits_must_be_the_same_on_the_same_kind_of_processor_alone():
    run = recorded()
    run.attrs["software"] = json.dumps({"processor": processor()})
    assert tolerance_of(run) == 0.0
    run.attrs["software"] = json.dumps({"processor": "another"})
    assert tolerance_of(run) == ROUNDING == 1e-6
    del run.attrs["software"]
    assert tolerance_of(run) == ROUNDING


@pytest.mark.parametrize(
    ("changes", "tolerance", "found"),
    [
        ({}, 0.0, None),  # also where both are no number
        ({1: -8.0 + 1e-9}, 0.0, (1, 0.5, "force_model_N", -8.0, -8.0 + 1e-9)),
        ({3: NAN}, 0.0, (3, 1.5, "force_model_N", 2.0, NAN)),
        # the margin goes by the largest of a column: 8 N
        ({0: 7e-9, 3: 2.0 - 7e-9}, 1e-9, None),
        ({3: 2.0 - 9e-9}, 1e-9, (3, 1.5, "force_model_N", 2.0, 2.0 - 9e-9)),
    ],
)
def test_the_twin_of_an_imported_recording_is_compared_row_by_row(
    monkeypatch, changes, tolerance, found
):
    run = recorded()
    again = run.force_model_N.values.copy()
    for row, value in changes.items():
        again[row] = value
    cells = np.zeros((N, 2), dtype=np.uint8)
    columns = {"force_model_N": again, "cells_commanded": cells}
    monkeypatch.setattr(replays, "model_columns", lambda pipeline, rows: columns)
    monkeypatch.setattr(replays, "tolerance_of", lambda run: tolerance)
    difference = replays._model_difference(run, None)
    if found is None:
        assert difference is None
    else:
        got = (difference.row, difference.t_s, difference.column, difference.recorded)
        assert got == found[:4]
        np.testing.assert_equal(difference.replayed, found[4])
    if tolerance == 0.0 and 1 in changes:
        cells[1, 0] = 1  # of two columns that differ in one row the first is named
        assert replays._model_difference(run, None).column == "force_model_N"
        cells[[0, 3], [1, 0]] = 1  # one that differs earlier comes before them
        difference = replays._model_difference(run, None)
        assert (difference.row, difference.column) == (0, "cells_commanded")
        assert (difference.recorded, difference.replayed) == ([0, 0], [0, 1])


def test_the_margin_of_small_values_is_small(monkeypatch):
    """A thousandth of 8 uN, by either comparison."""
    small = np.array([0.0, -8e-6, NAN, 2e-6])
    run = recorded(force_model_N=small)
    again = {"force_model_N": small.copy()}
    monkeypatch.setattr(replays, "tolerance_of", lambda run: 1e-3)
    monkeypatch.setattr(replays, "model_columns", lambda pipeline, rows: again)
    for share, differs in ((0.99, False), (1.01, True)):
        again["force_model_N"][3] = 2e-6 + share * 8e-9
        changes = [(3, "force_model_N", 2e-6 + share * 8e-9)]
        assert (compared(run, changes, 1e-3).difference is not None) == differs
        assert (replays._model_difference(run, None) is not None) == differs


def test_a_column_that_an_older_recording_lacks_is_not_compared():
    run = recorded()
    older = run.drop_vars("cells_commanded")
    frame = Frame(COLUMNS)
    sink = _ComparingSink(older, frame, 0.0)
    frame.row["cells_commanded"][0] = (1, 1)
    assert sink.push()
    assert sink.difference is None


def test_what_is_no_number_is_the_same_on_another_processor_whatever_its_sign():
    assert compared(recorded(), [(2, "force_model_N", -NAN)], 1e-9).difference is None
    assert compared(recorded(), [(2, "force_model_N", 0.0)], 1e-9).difference.row == 2


def test_a_fault_beside_a_later_one_of_the_table_is_a_difference_on_another_processor():
    """A rounding of the largest word of fault bits would hide the first twelve."""
    last = np.full(N, 1 << len(guard.FAULTS) - 1, dtype=np.uint64)
    sink = compared(recorded(fault_bits=last), [(1, "fault_bits", last[0] + 1)], ROUNDING)
    assert (sink.difference.row, sink.difference.column) == (1, "fault_bits")


def test_a_trip_by_sleep_is_compared():
    slept = np.full(N, guard.MACHINE_SLEPT, dtype=np.uint64)
    assert compared(recorded(fault_bits=slept)).difference is None
    sink = compared(recorded(fault_bits=slept), [(2, "fault_bits", 0)])
    assert (sink.difference.row, sink.difference.column) == (2, "fault_bits")
