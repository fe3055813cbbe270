"""What is seen of a run from beside it, against its recording and its limits."""

import json
import os
import tracemalloc

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

from hil.loop import tap as taps
from hil.loop.channels import signals_in
from hil.platform.processes import this_process
from hil.record.append_log import AppendLog
from hil.record.read import open_run
from hil.runs.campaign.journal import JOURNAL, progress_of
from hil.watch import bench
from hil.watch.bench import Bench, Limit, ending_of, facts_of
from hil.watch.metrics import metrics_of


def test_new_rows_are_thinned_to_the_lowest_and_the_highest_and_the_last(shown):
    run, tap, rows = shown
    tap.ticks.push_many(rows[:1000])
    run.rows()
    tap.ticks.push_many(rows[1000:1050])
    content = run.rows()
    t_s, measured, model, _ = content["points"][0]
    part = rows[1000:1050]
    assert (content["n"], content["t_s"]) == (50, pytest.approx(part["t_s"][-1]))
    assert max(measured) == pytest.approx(part["force_measured_N"].max(), rel=1e-5)
    assert min(measured) == pytest.approx(part["force_measured_N"].min(), rel=1e-5)
    assert t_s[-1] == pytest.approx(part["t_s"][-1])
    at = np.searchsorted(part["t_s"], np.array(t_s) - 1e-9)
    np.testing.assert_allclose(model, part["force_model_N"][at], rtol=1e-5)
    assert len(t_s) <= 5
    json.dumps(content, allow_nan=False)


def test_a_reader_who_comes_late_gets_what_the_tap_still_has(shown):
    run, tap, rows = shown
    tap.ticks.push_many(rows[:3000])
    t_s = run.rows(history=True)["points"][0][0]
    assert t_s[0] < 0.01
    assert t_s[-1] == pytest.approx(rows["t_s"][2999])
    assert len(t_s) <= 2 * bench.HISTORY + 1


def test_a_limit_shows_the_value_that_uses_most_of_it(shown):
    run, tap, rows = shown
    tap.ticks.push_many(rows[:2000])
    content = run.rows()
    by_name = {name: i for i, (name, *_) in enumerate(run.about()["limits"])}
    recent = rows[2000 - bench.RECENT : 2000]
    peak_N = recent["force_measured_N"].max()
    assert content["limits"][by_name["force"]] == pytest.approx([peak_N, peak_N / 9.0], rel=1e-5)
    apart_N = np.abs(recent["force_measured_N"] - recent["force_model_N"]).max()
    assert content["limits"][by_name["residual of force"]] == pytest.approx(
        [apart_N, apart_N / 0.5], rel=1e-5
    )
    on_s, used = content["limits"][by_name["time on of a cell"]]
    first = np.flatnonzero(rows["cells_commanded"].any(axis=1))[0]
    assert on_s == pytest.approx(rows["t_s"][1999] - rows["t_s"][first], abs=0.0021)
    assert used == pytest.approx(on_s / 10.0)


def test_a_cell_that_was_off_while_nobody_looked_has_its_last_time_on(shown):
    """On for 0.2 s every 10 s, it was at 300 % of 10 s for whoever looks while it is on."""
    run, tap, rows = shown
    for cycle in range(4):
        part = rows[:500].copy()
        part["t_s"] += 10.0 * cycle
        part["cells_commanded"] = 0
        part["cells_commanded"][200:400] = 1
        tap.ticks.push_many(part[:400])
        on_s, _ = (run.rows() if cycle == 2 else run.latest())["limits"][-1]
        assert on_s == pytest.approx(0.2, abs=0.0011)
        tap.ticks.push_many(part[400:])
    for _ in range(9):  # more than the tap has
        tap.ticks.push_many(part)
    tap.ticks.push_many(part[:300])
    assert run.latest()["limits"][-1][0] == pytest.approx(0.1, abs=0.0011)


def test_the_last_value_of_a_device_that_is_read_now_and_then_is_its_last_reading(shown):
    """With `every = 20` it was missing in 19 of 20 messages."""
    run, tap, rows = shown
    rows = rows.copy()
    rows["force_measured_N"][np.arange(len(rows)) % 20 > 0] = np.nan
    tap.ticks.push_many(rows[:2000])
    measured, model, _ = run.rows()["last"][0]
    assert measured == pytest.approx(rows["force_measured_N"][1980], rel=1e-5)
    assert model == pytest.approx(rows["force_model_N"][1980], rel=1e-5)
    tap.ticks.push_many(rows[2001:2010])
    measured, model, _ = run.rows()["last"][0]
    assert (measured, model) == (None, pytest.approx(rows["force_model_N"][2009], rel=1e-5))


@pytest.mark.parametrize(
    ("values", "low", "high", "expected"),
    [
        ([1.0, -4.0], -8.0, 9.0, (-4.0, 0.5)),
        ([3.0, -4.0], -np.inf, 4.0, (3.0, 0.75)),
        ([np.nan, 2.0], -np.inf, 4.0, (2.0, 0.5)),
        ([5.0, 1.0], 0.0, 4.0, (5.0, 1.25)),
        ([0.0, 1.0], 0.0, 4.0, (1.0, 0.25)),
        ([0.0, -1.0], 0.0, 4.0, (-1.0, 1.25)),
        ([0.0, 1.0], -4.0, 0.0, (1.0, 1.25)),
    ],
)
def test_the_share_of_a_limit_is_that_of_its_side(values, low, high, expected):
    rows = np.zeros(len(values), [("x", float)])
    rows["x"] = values
    assert Limit("x", "N", low, high, ("x",)).worst(rows) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("value", "low", "high", "used"),
    [
        (1.0, 2.0, 10.0, 1.25),  # it showed 10 %
        (2.0, 2.0, 10.0, 1.0),
        (6.0, 2.0, 10.0, 0.0),
        (8.0, 2.0, 10.0, 0.5),
        (10.0, 2.0, 10.0, 1.0),
        (14.0, 2.0, 10.0, 2.0),
        (-1.0, -10.0, -2.0, 1.25),
        (-10.0, -10.0, -2.0, 1.0),
        (2.0, 2.0, np.inf, 1.0),
        (8.0, 2.0, np.inf, 0.25),
        (1.0, 2.0, np.inf, 1.5),
        (-2.0, 2.0, np.inf, 3.0),
        (-8.0, -np.inf, -2.0, 0.25),
        (0.0, -np.inf, -2.0, 2.0),
        (2.0, 2.0, 2.0, 1.0),
        (3.0, 2.0, 2.0, 2.0),
    ],
)
def test_a_limit_without_zero_is_used_up_at_both_of_its_ends(value, low, high, used):
    rows = np.zeros(1, [("x", float)])
    rows["x"] = value
    assert Limit("x", "N", low, high, ("x",)).worst(rows) == pytest.approx((value, used))


def test_a_board_s_limit_is_that_of_its_own_cells():
    """Of two boards, the cells of both were held against each limit, under one name."""
    boards = {
        "left": {"cells": ["a", "b"], "limits": {"current_max_mA": 500}},
        "right": {"cells": ["c"], "limits": {"current_max_mA": 2000, "temperature_max_cC": 9000}},
    }
    columns = {f"{cell}.{what}" for cell in "abc" for what in ("current_A", "temperature_C")}

    def limits(*names):
        devices = {name: boards[name] for name in names}
        return [
            (one.name, one.high, one.columns)
            for one in bench._limits({"devices": devices}, (), tuple("abc"), (), columns)
        ]

    assert limits("left", "right") == [
        ("current of a cell of left", 0.5, ("a.current_A", "b.current_A")),
        ("current of a cell of right", 2.0, ("c.current_A",)),
        ("temperature of a clamp of right", 90.0, ("c.temperature_C",)),
    ]
    assert limits("left") == [("current of a cell", 0.5, ("a.current_A", "b.current_A"))]


@pytest.mark.parametrize("chosen", [{}, {"force_channel": "cell"}])
def test_each_force_has_the_limits_that_the_guard_has_for_its_channel(chosen):
    """A force beside the main one had none, nor had the main one those of its channel's name."""
    names = ("cell", "edge") if not chosen else ("edge", "cell")
    channels = {"q": {"kind": "encoder"}, **{name: {"kind": "force"} for name in names}}
    guard = {"force_max_N": 70.0, "force_residual_max_N": 5.0, "signals": {"cell": {"max": 40.0},
             "edge": {"min": -3.0}, "q": {"min": 0.0, "max": 1.0}}}  # fmt: skip
    settings = {"guard": guard, "devices": {"daq": {"channels": channels}}, "loop": chosen}
    units = {"force": "_N", "edge.force": "_N", "q": "_rad"}
    columns = [f"{n}_{role}{u}" for role in ("measured", "model") for n, u in units.items()]
    found = bench._limits(settings, signals_in(columns), (), (), set(columns))
    assert [(one.name, one.low, one.high) for one in found] == [
        ("force", -70.0, 40.0), ("residual of force", -5.0, 5.0),
        ("edge.force", -3.0, 70.0), ("residual of edge.force", -5.0, 5.0),
        ("q", 0.0, 1.0),
    ]  # fmt: skip


def test_a_wire_of_the_twin_is_held_against_its_own_maximum():
    """Of two arrays, all wires were held against the lower maximum: 200 of 250 °C were 133 %."""
    kinds = [{"kind": "sma", "temperature_max_C": most_C} for most_C in (250.0, 150.0, 250.0)]
    arrays = {"first": {"activation": kinds[0]}, "second": {"activation": kinds[1:]},
              "third": {"activation": [{"kind": "first_order"}]}}  # fmt: skip
    cells = ("first.1", "first.2", "second.1", "second.2", "third.1")
    columns = {f"{cell}.wire_model_C" for cell in cells[:4]}

    def limits(*names):
        settings = {"model": {"arrays": {name: arrays[name] for name in names}}}
        found = bench._limits(settings, (), cells, (), columns)
        return [(one.name, one.high, [c.removesuffix(".wire_model_C") for c in one.columns])
                for one in found]  # fmt: skip

    assert limits(*arrays) == [
        ("wire of the twin up to 250 °C", 250.0, ["first.1", "first.2", "second.2"]),
        ("wire of the twin up to 150 °C", 150.0, ["second.1"]),
    ]
    assert limits("first") == [("wire of the twin", 250.0, ["first.1", "first.2"])]


def test_a_column_without_a_reading_uses_no_limit():
    rows = np.full(3, np.nan, [("x", float)])
    assert np.isnan(Limit("x", "N", -1.0, 1.0, ("x",)).worst(rows)).all()


def test_a_run_is_mapped_for_reading_only(shown):
    run, _, rows = shown
    with pytest.raises((ValueError, TypeError)):
        run._tap.ticks.push_many(rows[:1])


def test_the_age_grows_while_no_row_comes_and_falls_with_the_next(shown, monkeypatch):
    run, tap, rows = shown
    now_s = [100.0]
    monkeypatch.setattr(bench.time, "monotonic", lambda: now_s[0])
    tap.ticks.push_many(rows[:5])
    assert run.rows()["age_s"] == 0.0
    now_s[0] += 7.0
    assert run.rows() == {
        "kind": "rows", "id": run.name, "age_s": 7.0, "state": "off", "over": False,
        "dead": False, "n": 0, "history": False,
    }  # fmt: skip
    tap.ticks.push_many(rows[5:6])
    assert run.rows()["age_s"] == 0.0


def test_rows_that_stopped_before_anybody_looked_are_as_old_as_they_are(shown, monkeypatch):
    """A run that had stood still for a minute was said to have a row that was 0 s old."""
    run, tap, rows = shown
    now_s = [100.0]
    monkeypatch.setattr(bench.time, "monotonic", lambda: now_s[0])
    tap.ticks.push_many(rows[:5])
    run.look()
    now_s[0] += 60.0
    run.look()
    assert run.latest()["age_s"] == 60.0


def test_a_run_is_taken_once_its_recorder_is_there(shown, all_on, monkeypatch):
    """A look between the making of the tap and the recorder's start saw no row until the end."""
    one, found = Bench(all_on.parent, parent=os.getpid()), bench.commands_with
    monkeypatch.setattr(bench, "commands_with", lambda tap: iter([]))
    one.look()
    assert one.run is None
    monkeypatch.setattr(bench, "commands_with", found)
    one.look()
    assert one.run.facts is not None


def test_the_last_events_of_a_run_are_read_before_the_next_run_is_shown(shown, all_on):
    """A trial tripped, and the next one had begun before the next look: nobody was told."""
    _, tap, _ = shown
    one = Bench(all_on.parent)
    one.look()
    event = np.array([(1.5, b"fault", b"guard", b"force_high: force 9.1 N")], taps.EVENT)
    tap.events.push_many(event)
    tap.close_writer()
    tap.unlink()
    following = taps.create(tap.ticks._rows.dtype, 4096)
    following.set_recorder_ready()
    one.look()
    assert one.run.faults == ["force_high: force 9.1 N"]
    one.look()
    assert (one.run.name, one.run.faults) == (following.path.name, [])
    following.unlink()


def test_events_keep_their_text_and_faults_are_the_lines_of_the_trip(shown):
    run, tap, _ = shown
    event = np.zeros(1, taps.EVENT)
    for level, text in (("info", "<b>started</b>"), ("fault", "force_high: force 9.1 N")):
        event[0] = (1.5, level, "guard", text.encode())
        tap.events.push(event)
    run.look()
    assert run.events == [(1.5, "info", "guard", "<b>started</b>"),
                          (1.5, "fault", "guard", "force_high: force 9.1 N")]  # fmt: skip
    assert run.faults == ["force_high: force 9.1 N"]


@pytest.mark.slow
def test_a_day_of_rows_takes_no_more_memory_than_an_hour(shown):
    """24 h at 10 rows a second, read twenty times a second."""
    run, tap, rows = shown
    sizes = []
    tracemalloc.start()
    try:
        for hour in range(24):
            for _ in range(0, 36_000, 1800):
                tap.ticks.push_many(rows[:1800])
                run.rows()
            if hour in (0, 23):
                sizes.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert sizes[1] - sizes[0] < 10_000


def test_facts_are_those_of_the_recording(all_on):
    facts, run = facts_of(all_on), open_run(all_on)
    assert facts.title == "miga6: all on for three seconds"
    assert facts.simulated == run.attrs["simulated"]
    assert facts.cells == tuple(run.cell.values.tolist())
    assert [signal.name for signal in facts.signals] == ["force"]


def test_the_ending_is_that_of_the_recording(all_on, tmp_path):
    assert ending_of(all_on) == {
        "kind": "end", "outcome": "complete", "why": [], "file": all_on.name,
    }  # fmt: skip
    assert ending_of(tmp_path / "none.h5") is None


def test_only_runs_whose_recording_is_in_the_folder_belong_to_a_bench(shown, tmp_path, all_on):
    other = tmp_path / "other"
    other.mkdir()
    here, elsewhere = Bench(all_on.parent), Bench(other)
    here.look()
    elsewhere.look()
    assert here.run is not None
    assert elsewhere.run is None


def test_a_question_stands_in_the_journal_until_it_is_answered():
    entries = [{"kind": "asked", "text": "Is it mounted?"}, {"kind": "asked", "text": ""}]
    assert progress_of(entries[:1]).question == "Is it mounted?"
    assert progress_of(entries).question == ""
    assert progress_of([entries[0], {"kind": "stop", "why": "interrupted"}]).question == ""


def test_a_campaign_that_was_killed_waits_for_nobody(tmp_path):
    """The page said for good that it waits for its operator, and which trial is in progress."""
    ended = {**this_process(), "pid_started": "another time"}
    with AppendLog(tmp_path / JOURNAL) as log:
        log.add({"kind": "campaign", "name": "day", "plan": [{"trial": 1, "duration_s": 1.0}]})
        for begun, expected in ((this_process(), (1, "Is it mounted?", "")),
                                (ended, (None, "", "its program was killed"))):  # fmt: skip
            log.add({"kind": "session", "utc": "now", **begun})
            log.add({"kind": "begin", "trial": 1, "attempt": 1, "utc": "now"})
            log.add({"kind": "asked", "text": "Is it mounted?"})
            campaign = Bench(tmp_path).state()["campaign"]
            assert (campaign["now"], campaign["asked"], campaign["why"]) == expected


def test_metrics_are_what_prometheus_reads_and_what_the_page_shows(shown, all_on):
    _, tap, rows = shown
    tap.ticks.push_many(rows[:2000])
    one = Bench(all_on.parent)
    one.look()
    families = {f.name: f for f in text_string_to_metric_families(metrics_of(one).decode())}
    value = {name: family.samples[0].value for name, family in families.items()}
    assert value["hil_running"] == 1.0
    assert value["hil_rows"] == 2000.0
    assert value["hil_faults"] == 0.0
    assert value["hil_measured"] == pytest.approx(rows["force_measured_N"][1999], rel=1e-5)
    assert value["hil_model"] == pytest.approx(rows["force_model_N"][1999], rel=1e-5)
    assert families["hil_measured"].samples[0].labels == {"signal": "force", "unit": "N"}
    used = {s.labels["limit"]: s.value for s in families["hil_limit_used_ratio"].samples}
    assert used["force"] == pytest.approx(rows["force_measured_N"][1900:2000].max() / 9.0, rel=1e-5)
    assert value["hil_disk_free_bytes"] > 0.0


def test_metrics_of_a_bench_without_a_run_say_so(tmp_path):
    families = text_string_to_metric_families(metrics_of(Bench(tmp_path)).decode())
    assert {f.name: f.samples[0].value for f in families}["hil_running"] == 0.0
