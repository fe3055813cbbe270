"""A campaign from its file to its table; stopped by whatever it is, nothing is lost."""

import csv
import io
import json
import os
import pty
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import tomli_w
import xarray as xr

from hil import open_run
from hil.__main__ import main
from hil.errors import DeviceError
from hil.platform.parallel import Pace, Scheduler
from hil.record.append_log import HeldError, read_log
from hil.rig.rig import Rig
from hil.runs import session
from hil.runs.campaign import page, parallel
from hil.runs.campaign.journal import JOURNAL
from hil.runs.campaign.launch import Launch
from hil.runs.campaign.plan import load_campaign

HEAD = {"name": "gains", "experiments": ["steps.toml"], "seed": 5}
GAIN = {"key": "controller.loops.slide.k_p", "levels": [60.0, 120.0]}
SHORT = {"key": "experiment.duration_s", "levels": [0.02]}
# The slide stands at 0, beyond the second level: that trial trips.
TRIPS = {"key": "guard.signals.slide.max", "levels": [0.15, -0.01]}
FOLDER = "runs/campaign-gains"


@pytest.fixture
def write(rigs, monkeypatch):
    """Writes a short campaign on the slide into a folder that is the current one."""
    monkeypatch.chdir(rigs / "slider")

    def written(tables=None, factors=None, **head):
        path = rigs / "slider" / "gains.toml"
        factors = {"gain": GAIN, "length": SHORT} if factors is None else factors
        table = {"campaign": {**HEAD, **head}, "factors": factors, **(tables or {})}
        path.write_text(tomli_w.dumps(table))
        return "gains.toml"

    return written


@pytest.fixture
def hil(capsys):
    """Runs a command; its exit code, and what it said on both streams."""

    def run(*words):
        capsys.readouterr()
        code = main([str(word) for word in words])
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def trials(folder=FOLDER):
    with open(f"{folder}/trials.csv", newline="") as file:
        return list(csv.DictReader(file))


def test_every_trial_is_run_written_down_and_put_on_one_page(write, hil):
    measures = {"furthest_m": {"column": "slide_measured_m", "take": "max", "from_s": 0.005}}
    path = write({"measures": measures}, repeats=2, order="random", operator="ada")
    code, out, err = hil("campaign", path)
    assert code == 0
    assert "4 of 4 trials are complete" in out
    assert [line.split(" (")[0] for line in err.splitlines()] == [
        f"trial {n} of 4" for n in (1, 2, 3, 4)
    ]
    rows = trials()
    assert [row["trial"] for row in rows] == ["1", "2", "3", "4"]
    assert sorted(row["gain"] for row in rows) == ["120.0", "120.0", "60.0", "60.0"]
    for row in rows:
        recording = open_run(f"{FOLDER}/{row['file']}")
        said = json.loads(recording.attrs["campaign"])
        assert said["levels"]["gain"] == float(row["gain"])
        assert str(recording.attrs["seed"]) == row["seed"]
        late = recording.slide_measured_m.where(recording.t_s >= 0.005)
        assert float(late.max()) == float(row["furthest_m"])
    table = xr.open_dataset(f"{FOLDER}/trials.nc")
    assert {"gain", "length", "repeat", "block", "experiment"} <= set(table.coords)
    square = table.set_index(trial=["gain", "repeat"]).unstack()
    assert square.furthest_m.dims == ("gain", "repeat")
    assert np.isfinite(square.furthest_m.values).all()
    page = Path(f"{FOLDER}/campaign.html").read_text()
    assert "SIMULATED" in page
    assert "ada" in page
    assert page.count("<img") == 3


@pytest.mark.slow
def test_a_complete_campaign_is_not_run_again_and_its_table_stays(write, hil):
    path = write()
    assert hil("campaign", path)[0] == 0
    before = trials()
    code, out, err = hil("campaign", path, "--json")
    assert code == 0
    assert not err
    assert json.loads(out)["complete"] == 2
    assert trials() == before


@pytest.mark.slow
def test_the_same_seed_gives_the_same_figures_on_dask_too(write, hil):
    from distributed import LocalCluster

    path = write(order="random")
    assert hil("campaign", path, "--out", "alone")[0] == 0
    with LocalCluster(
        n_workers=1, processes=False, protocol="tcp", dashboard_address=":0"
    ) as cluster:
        words = ["campaign", path, "--out", "spread", "--scheduler", cluster.scheduler_address]
        assert hil(*words)[0] == 0
    alone, spread = (
        [{k: v for k, v in row.items() if k != "started_utc"} for row in trials(folder)]
        for folder in ("alone", "spread")
    )
    assert alone == spread


@pytest.mark.parametrize(
    ("first_s", "start_s"),
    [(2.0, 5.0), (0.5, 4.0), (30.0, 15.0)],  # loads; computes little; also compiles
)
def test_more_processes_serve_where_they_save_more_than_their_start(first_s, start_s):
    """With two processes n trials of 1 s save n / 2."""
    pace = Pace(2)
    assert not pace.pays(1000)
    pace.note(first_s)  # it says nothing of the others
    assert not pace.pays(1000)
    pace.note(1.0)
    assert not pace.pays(int(2 * start_s))
    assert pace.pays(int(2 * start_s) + 1)
    alone = Pace(1)
    alone.note(first_s)
    alone.note(1.0)
    assert not alone.pays(1000)


@pytest.mark.parametrize(
    ("took_s", "sizes"),
    [([9.0, 0.5], [2] * 20), ([9.0, 3.0], [1] * 40), ([9.0, 0.01], [5] * 8), ([], [5] * 8)],
)
def test_a_batch_of_trials_takes_about_a_second_and_each_worker_gets_four(
    write, monkeypatch, took_s, sizes
):
    given = []
    client = SimpleNamespace(scheduler_info=lambda: {"workers": ["one", "two"]})
    monkeypatch.setattr(parallel, "workers", lambda *_: nullcontext(client))
    monkeypatch.setattr(parallel, "refuse_others", lambda _: None)

    def through_dask(batches, *_):
        given.extend(batches)
        yield from ()

    monkeypatch.setattr(parallel, "through_dask", through_dask)
    pace = Pace(2)
    for s in took_s:
        pace.note(s)
    work = parallel.Work(1, "some.toml", [], 1)
    with parallel.Workers(
        load_campaign(Path(write())), pace, scheduler=Scheduler("tcp://some:1")
    ) as pool:
        assert list(pool.run([work] * 40)) == []
    assert [len(batch) for (batch,) in given] == sizes


@pytest.mark.slow
def test_few_trials_that_keep_recordings_go_on_in_parallel_from_the_third(write, hil, monkeypatch):
    path = write(repeats=3)
    assert hil("campaign", path, "--out", "series", "--jobs", "1")[0] == 0
    monkeypatch.setattr("hil.platform.parallel.START_S", (0.0, 0.0))
    assert hil("campaign", path, "--out", "spread", "--jobs", "2")[0] == 0
    kinds = [e["kind"] for e in read_log_of("spread") if e["kind"] in ("begin", "end")]
    assert kinds == ["begin", "end"] * 2 + ["end"] * 4
    for row in trials("series"):
        one, other = (open_run(f"{folder}/{row['file']}") for folder in ("series", "spread"))
        assert one.attrs["campaign"] == other.attrs["campaign"]
        assert (one.slide_measured_m.values == other.slide_measured_m.values).all()


@pytest.mark.parametrize(
    ("tables", "key"),
    [
        ({"wait": {"until": [{"column": "t_s", "below": 9.0}], "longest_s": 1.0}}, "wait"),
        ({"questions": {"ok": {"ask": "?", "when": "trial"}}}, "questions.ok"),
        ({"after_trip": {"do": "ask"}}, "after_trip.do = 'ask'"),
    ],
)
def test_trials_that_follow_each_other_are_not_spread(write, hil, tables, key):
    code, _, err = hil("campaign", write(tables), "--scheduler", "tcp://nowhere:1")
    assert code == 2
    assert f"{key}: its trials come one after the other" in err


def trip_campaign(write, **after_trip):
    tables = {"after_trip": after_trip} if after_trip else {}
    return write(tables, {"limit": TRIPS, "length": SHORT}, repeats=2)


def test_after_a_trip_it_stops_says_what_is_left_and_goes_on_when_told(write, hil):
    path = trip_campaign(write)
    code, out, err = hil("campaign", path)
    assert code == 3
    assert "stopped: trial 2 tripped by signal_out_of_range" in err
    assert "1 of 4 trials are complete, 3 left" in err
    assert "3 left" in out
    assert open_run(f"{FOLDER}/trials/0002-1.h5").attrs["outcome"] == "tripped"
    assert hil("campaign", path)[0] == 3
    assert open_run(f"{FOLDER}/trials/0002-2.h5").attrs["outcome"] == "tripped"
    assert [row["outcome"] for row in trials()] == ["complete", "tripped", "to do", "to do"]
    assert [row["attempts"] for row in trials()] == ["1", "2", "0", "0"]


@pytest.mark.slow
def test_after_a_trip_it_leaves_the_trial_out_when_told_so(write, hil):
    path = trip_campaign(write, do="skip")
    code, out, _ = hil("campaign", path)
    assert code == 3
    assert "2 of 4 trials are complete" in out
    assert "trial 4 is left out: tripped by signal_out_of_range" in out
    rows = trials()
    assert [row["outcome"] for row in rows] == ["complete", "tripped"] * 2
    # Coming back to it changes nothing: every trial is settled.
    assert hil("campaign", path)[0] == 3
    assert trials() == rows


@pytest.mark.slow
def test_after_a_trip_it_tries_again_so_often_and_then_does_as_told(write, hil):
    path = write({"after_trip": {"do": "retry", "retries": 2, "then": "skip"}},
                 {"limit": {**TRIPS, "levels": [-0.01]}, "length": SHORT})  # fmt: skip
    assert hil("campaign", path)[0] == 3
    assert [(row["attempts"], row["outcome"]) for row in trials()] == [("3", "tripped")]


@pytest.mark.slow
def test_a_device_that_fails_ends_it_with_nothing_lost(write, hil, monkeypatch):
    path = write()
    run = session.run

    def failing(plan, output, view):
        if "0002-1" in str(output.path):
            raise DeviceError("board: does not answer")
        return run(plan, output, view)

    with monkeypatch.context() as patch:
        patch.setattr(session, "run", failing)
        code, _, err = hil("campaign", path)
    assert code == 4
    assert "1 of 2 trials are complete, 1 left" in err
    assert "board: does not answer" in err.splitlines()[-1]
    assert trials()[1]["outcome"] == "failed"
    assert trials()[1]["error"] == "board: does not answer"
    assert hil("campaign", path)[0] == 0
    assert [row["attempts"] for row in trials()] == ["1", "2"]


def test_a_raise_in_a_trial_is_a_defect_of_one_line_with_nothing_lost(write, hil, monkeypatch):
    path = write()

    def broken(plan, output, view):
        raise ZeroDivisionError("k")

    monkeypatch.delenv("HIL_DEBUG", raising=False)
    with monkeypatch.context() as patch:
        patch.setattr(session, "run", broken)
        code, _, err = hil("campaign", path)
    assert code == 1
    assert "0 of 2 trials are complete, 2 left" in err
    assert "Traceback" not in err
    assert hil("campaign", path)[0] == 0


WAIT = {"longest_s": 0.05, "until": [{"column": "slide_measured_m", "above": 1.0}]}


@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize(
    ("otherwise", "code", "outcomes"),
    [
        ("stop", 5, ["to do", "to do"]),
        ("skip", 5, ["left out", "left out"]),
        ("go_on", 0, ["complete", "complete"]),
    ],
)
def test_what_is_waited_for_in_vain_does_as_told(write, hil, otherwise, code, outcomes):
    path = write({"wait": {**WAIT, "otherwise": otherwise}})
    found, _, err = hil("campaign", path)
    assert found == code
    assert "not above 1" in err or otherwise == "go_on"
    assert [row["outcome"] for row in trials()] == outcomes


def test_a_precondition_that_does_not_hold_stops_before_anything_is_energised(write, hil):
    precondition = {"column": "slide_measured_m", "above": 0.1, "say": "push the slide out"}
    code, _, err = hil("campaign", write({"preconditions": [precondition]}))
    assert code == 5
    assert "push the slide out" in err
    assert not any(line["kind"] == "begin" for line in read_log_of(FOLDER))


@pytest.mark.parametrize("error", [HeldError, DeviceError])
def test_the_error_that_comes_first_is_shown_and_not_that_of_the_page(tmp_path, error):
    def fails():
        raise error("first")

    (tmp_path / JOURNAL).touch()  # empty: the page of no campaign can be written
    with pytest.raises(error, match="first"):
        Launch(None, tmp_path, SimpleNamespace(run=fails)).run()


@pytest.mark.parametrize("name", [page.CSV, page.NETCDF, page.PAGE])
def test_a_folder_in_the_place_of_a_table_or_the_page_is_named(write, hil, name):
    path = write()
    Path(FOLDER, name).mkdir(parents=True)
    code, _, err = hil("campaign", path)
    assert (code, err.splitlines()[-1]) == (
        2, f"{FOLDER}/{name}: cannot be written (Is a directory)"
    )  # fmt: skip


@pytest.mark.parametrize("name", ["trials", "trials.parquet"])
def test_a_file_in_the_place_of_a_folder_is_refused_before_anything_runs(write, hil, name):
    path, taken = write(), Path(FOLDER, name)
    taken.parent.mkdir(parents=True)
    taken.touch()
    code, _, err = hil("campaign", path)
    assert (code, err) == (2, f"{taken}: not a folder: choose another --out\n")
    assert list(Path(FOLDER).iterdir()) == [taken]


@pytest.mark.parametrize("words", [["gains\udcff.toml"], ["gains.toml", "--out", "g\udcff"]])
def test_a_name_in_another_encoding_is_refused_before_anything_runs(write, hil, words):
    write()
    code, _, err = hil("campaign", *words)
    name = words[-1].replace("\udcff", "\\udcff")
    assert (code, err) == (
        2, f"{name}: not a UTF-8 name, which page and tables need: rename it\n"
    )  # fmt: skip
    assert not Path(words[-1]).exists()


def read_log_of(folder):
    return read_log(Path(folder) / "journal.jsonl")


@pytest.mark.slow
def test_the_plant_goes_from_trial_to_trial_where_there_is_a_wait(write, hil):
    """A slide that was moved is where it was left; a campaign without a wait starts it anew."""
    force = {"key": "reference.signals.slide.t_s", "names": ["soon"],
             "levels": [[0.0, 0.02, 2.2, 2.7]]}  # fmt: skip
    factors = {"reference": force, "length": {**SHORT, "levels": [0.06]}}
    anything = {"longest_s": 1.0, "until": [{"column": "slide_measured_m", "above": -9.0}]}
    first = {"first_m": {"column": "slide_measured_m", "take": "max", "to_s": 0.002}}
    starts = []
    for i, tables in enumerate(({"wait": anything}, {})):
        assert hil("campaign", write({**tables, "measures": first}, factors, repeats=2),
                   "--out", f"c{i}")[0] == 0  # fmt: skip
        starts.append([float(row["first_m"]) for row in trials(f"c{i}")])
    assert starts[0][1] > 0.01  # of 0.05 m asked for
    assert abs(starts[1][1]) < 0.001
    assert abs(starts[0][0]) < 0.001


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ({"wait": {"longest_s": 1.0, "until": [{"column": "forse_N", "below": 1.0}]}},
         "trial 1: wait.until.0.column = 'forse_N'"),
        ({"preconditions": [{"column": "*.temperature_C", "below": 1.0}]},
         "preconditions.0.column = '*.temperature_C'"),
        ({"measures": {"a": {"column": "cells_on", "take": "max"}}}, "measures.a.column"),
        ({"measures": {"a": {"column": "t_s", "take": "max", "from_s": 0.5}}},
         "looks beyond the experiment's 0.02 s"),
        ({"factors": {"missed_periods": GAIN}}, "factors.missed_periods: a figure of every trial"),
        ({"factors": {"slide_vaf": GAIN}}, "gains.toml: factors.slide_vaf: a figure of every"),
        ({"questions": {"slide_vaf": {"ask": "How?", "when": "trial"}}}, "questions.slide_vaf: a"),
    ],
)  # fmt: skip
def test_what_its_rows_do_not_have_is_refused_before_anything_is_made(write, hil, tables, said):
    code, _, err = hil("campaign", write(tables))
    assert code == 2
    assert said in err
    assert not os.path.exists("runs")


def test_for_a_bench_every_combination_is_rehearsed_before_anything_is_opened(write, hil):
    code, _, err = hil("campaign", trip_campaign(write), "--backend", "bench")
    assert code == 2
    assert "trial 2: " in err
    assert "its rehearsal on a simulated rig tripped" in err
    assert not os.path.exists("runs")


OWN = """
class Raises:
    def __init__(self, facts, values):
        pass

    def step(self, now):
        if now.t_s > 0.01:
            raise RuntimeError("no more ideas")
        return [0.0]
"""


def test_a_controller_of_ones_own_that_raises_is_refused_before_the_first_trial(write, hil, rigs):
    (rigs / "slider" / "mine.py").write_text(OWN)
    steps = (rigs / "slider" / "steps.toml").read_text()
    text = steps[: steps.index("[controller]")] + '[controller]\nkind = "mine.py:Raises"\n'
    (rigs / "slider" / "own.toml").write_text(text)
    code, _, err = hil("campaign", write(factors={"length": SHORT}, experiments=["own.toml"]))
    assert code == 2
    assert "no more ideas" in err
    assert "mine.py" in err
    assert not os.path.exists("runs")


@pytest.mark.slow
def test_another_campaign_or_another_backend_does_not_go_on_in_its_folder(write, hil):
    assert hil("campaign", write())[0] == 0
    code, _, err = hil("campaign", write(repeats=2))
    assert code == 2
    assert "holds another campaign" in err
    code, _, err = hil("campaign", write(), "--clock", "real")
    assert code == 2
    assert "began with clock virtual, not real" in err


@pytest.mark.slow
def test_a_damaged_journal_is_named_and_kept(write, hil):
    path = write()
    assert hil("campaign", path)[0] == 0
    journal = Path(f"{FOLDER}/journal.jsonl")
    text = journal.read_text().replace('"attempt": 1', '"attempt": 3', 1)
    journal.write_text(text)
    code, _, err = hil("campaign", path)
    assert code == 2
    assert "is damaged" in err
    assert journal.read_text() == text


ASKS = {
    "fixed": {"ask": "Is it screwed on?", "kind": "yes_no", "must": True},
    "room_C": {"ask": "Room temperature?", "kind": "number"},
    "looks": {"ask": "How does it look?", "kind": "choice", "choices": ["good", "worn"],
              "when": "trial", "rehearsed": "worn"},
}  # fmt: skip


@pytest.mark.slow
def test_answers_from_a_file_are_kept_with_trials_and_recordings(write, hil, tmp_path):
    answers = tmp_path / "answers.toml"
    answers.write_text('fixed = true\nroom_C = 21.5\nlooks = ["good", "worn"]\n')
    assert hil("campaign", write({"questions": ASKS}), "--answers", answers)[0] == 0
    assert [row["looks"] for row in trials()] == ["good", "worn"]
    said = json.loads(open_run(f"{FOLDER}/trials/0002-1.h5").attrs["campaign"])
    assert said["answers"] == {"fixed": True, "room_C": 21.5, "looks": "worn"}


@pytest.mark.slow
def test_what_was_answered_at_the_end_is_not_asked_again(write, hil, tmp_path):
    asks = {"before": {"ask": "?", "kind": "number"},
            "after": {"ask": "?", "kind": "number", "when": "end"}}  # fmt: skip
    path, answers = write({"questions": asks}), tmp_path / "answers.toml"
    for value in (1.0, 2.0):
        answers.write_text(f"before = {value}\nafter = {value}\n")
        assert hil("campaign", path, "--answers", answers)[0] == 0
    found = [e["answer"] for e in read_log_of(FOLDER) if e["kind"] == "answer"]
    assert found == [1.0, 1.0]


def test_a_device_that_fails_while_it_waits_ends_it_too(write, hil, monkeypatch):
    def failing(self):
        raise DeviceError("daq: went missing")

    path = write({"wait": {"longest_s": 1.0, "until": [{"column": "t_s", "above": -1.0}]}})
    with monkeypatch.context() as patch:
        patch.setattr(Rig, "open", failing)
        code, _, err = hil("campaign", path)
    assert code == 4
    assert "0 of 2 trials are complete, 2 left" in err
    assert [row["attempts"] for row in trials()] == ["0", "0"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("fixed = true\nroom_C = 1.0\n", "looks: missing"),
        (
            "fixed = true\nroom_C = 'warm'\nlooks = 'good'\n",
            "not an answer of kind 'number'",
        ),
        (
            "fixed = true\nroom_C = 1.0\nlooks = 'bad'\n",
            "not an answer of kind 'choice'",
        ),
        ("fixed = true\nroom = 1.0\n", "room: gains.toml has no such question"),
        ("fixed = ", "not valid TOML"),
    ],
)
def test_answers_that_do_not_fit_are_refused(write, hil, tmp_path, text, said):
    answers = tmp_path / "answers.toml"
    answers.write_text(text)
    code, _, err = hil("campaign", write({"questions": ASKS}), "--answers", answers)
    assert code == 2
    assert said in err


def test_the_wrong_answer_stops_it_and_with_nobody_there_it_is_not_begun(
    write, hil, tmp_path, monkeypatch
):
    path, answers = write({"questions": ASKS}), tmp_path / "answers.toml"
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    code, _, err = hil("campaign", path)
    assert code == 2
    assert "questions.fixed needs somebody at a terminal" in err
    assert not os.path.exists("runs")
    answers.write_text('fixed = false\nroom_C = 21.5\nlooks = "good"\n')
    code, _, err = hil("campaign", path, "--answers", answers)
    assert code == 5
    assert "stopped: Is it screwed on? no" in err
    assert "2 left" in err


@pytest.mark.slow
def test_a_rehearsal_answers_itself_and_never_counts_as_the_campaign(write, hil):
    tables = {"questions": ASKS, "after_trip": {"do": "ask"}}
    code, out, _ = hil("campaign", write(tables), "--rehearse", "--json")
    assert code == 0
    found = json.loads(out)
    assert found["rehearsal"]
    assert found["answers"] == {"fixed": True, "room_C": 0.0}
    assert [trial["looks"] for trial in found["trials"]] == ["worn", "worn"]
    assert not os.path.exists(FOLDER)
    code, _, err = hil("campaign", write(tables), "--rehearse", "--backend", "bench")
    assert code == 2
    assert "leave --backend" in err


def test_status_says_how_far_it_is_and_runs_nothing(write, hil):
    path = trip_campaign(write)
    code, _, err = hil("campaign", path, "--status")
    assert code == 2
    assert "no campaign has begun there" in err
    hil("campaign", path)
    before = read_log_of(FOLDER)
    code, out, _ = hil("campaign", path, "--status")
    assert code == 0
    assert "1 of 4 trials are complete" in out
    assert "next is trial 2" in out
    code, out, _ = hil("campaign", path, "--status", "--json")
    assert json.loads(out)["left"] == [2, 3, 4]
    assert read_log_of(FOLDER) == before


def started(path, *words, **options):
    """The command as a process of its own."""
    command = [sys.executable, "-m", "hil", "campaign", path, *words]
    return subprocess.Popen(command, **options)


def until(holds, process, patience_s=300.0):
    """Return when it holds, or fail."""
    deadline_s = time.monotonic() + patience_s
    while not holds():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline_s
        time.sleep(0.005)


def lines(folder=FOLDER):
    try:
        with open(f"{folder}/journal.jsonl", "rb") as file:
            return file.read().count(b"\n")
    except FileNotFoundError:
        return 0


def begun(folder=FOLDER):
    try:
        with open(f"{folder}/journal.jsonl", "rb") as file:
            return file.read().count(b'"kind": "begin"')
    except FileNotFoundError:
        return 0


LONG = {"key": "experiment.duration_s", "levels": [5.0]}  # seconds of work


@pytest.mark.slow
def test_killed_in_a_trial_it_goes_on_with_that_trial(write, hil):
    path = write(factors={"gain": GAIN, "length": LONG})
    process = started(path, stderr=subprocess.PIPE)
    until(lambda: begun() == 2, process)
    until(lambda: os.path.exists(f"{FOLDER}/trials/0002-1.h5"), process)
    process.kill()
    process.communicate()
    code, out, err = hil("campaign", path)
    assert code == 0
    assert "trial 2 was cut off" in err
    assert "2 of 2 trials are complete" in out
    assert [row["attempts"] for row in trials()] == ["1", "2"]
    kinds = [line["kind"] for line in read_log_of(FOLDER)]
    assert kinds.count("cut") == 1
    cut = open_run(f"{FOLDER}/trials/0002-1.h5")
    assert cut.attrs["outcome"] in ("recovered", "complete", "aborted")
    whole = open_run(f"{FOLDER}/trials/0002-2.h5")
    assert whole.attrs["outcome"] == "complete"
    assert whole.sizes["tick"] == 5000


@pytest.mark.slow
def test_a_rehearsal_that_is_killed_goes_on_too_and_stays_one(write, hil):
    path = write(factors={"gain": GAIN, "length": LONG})
    words = ("--rehearse", "--out", "tried")
    process = started(path, *words, stderr=subprocess.PIPE)
    until(lambda: os.path.exists("tried/trials/0002-1.h5"), process)
    process.kill()
    process.communicate()
    code, _, err = hil("campaign", path, "--out", "tried")
    assert (code, "began with rehearsal True" in err) == (2, True)
    code, out, err = hil("campaign", path, *words)
    assert code == 0
    assert "trial 2 was cut off" in err
    assert "2 of 2 trials are complete" in out


@pytest.mark.slow
def test_ctrl_c_ends_it_between_two_ticks_and_it_goes_on(write, hil):
    path = write(factors={"gain": GAIN, "length": {**LONG, "levels": [200.0]}})
    process = started(path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    until(lambda: os.path.exists(f"{FOLDER}/trials/0001-1.h5"), process)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 130
    assert "0 of 2 trials are complete, 2 left" in err
    assert "Traceback" not in err


@pytest.mark.slow
def test_somebody_at_a_terminal_is_asked_until_the_answer_fits(write):
    path = write({"questions": {k: ASKS[k] for k in ("fixed", "room_C")}})
    master, slave = pty.openpty()
    process = started(path, stdin=slave, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    os.close(slave)
    os.write(master, b"perhaps\ny\nwarm\n21.5\n")
    _, err = process.communicate(timeout=300)
    os.close(master)
    assert process.returncode == 0
    assert err.count("Is it screwed on?") == 2
    assert err.count("Room temperature?") == 2
    found = [e for e in read_log_of(FOLDER) if e["kind"] == "answer"]
    assert [e["answer"] for e in found] == [True, 21.5]


@pytest.fixture
def day(rigs, monkeypatch):
    """The shipped day at the bench, shortened to two trials where `text` is changed."""
    monkeypatch.chdir(rigs / "wires4")
    return Path("campaigns/day.toml")


@pytest.mark.slow
def test_a_shortened_day_waits_for_the_wires_to_cool(day, hil):
    text = day.read_text().replace("repeats = 5", "repeats = 1")
    day.write_text(text.replace("levels = [1.2, 1.6, 2.0, 2.4]", "levels = [1.6]"))
    code, out, _ = hil("campaign", day, "--rehearse", "--json")
    assert code == 0
    first, second = json.loads(out)["trials"]
    # No model knows what was on before: 2.59 s from 180 to 30 degC, as test_waits.py integrates.
    assert first["waited_s"] == pytest.approx(1.0 + 2.59, abs=0.02)
    assert second["waited_s"] >= first["waited_s"]
    assert first["peak_N"] > 0.05


@pytest.mark.slow
def test_the_shipped_day_is_rehearsed_to_its_end(day, hil):
    code, out, _ = hil("campaign", day, "--rehearse", "--json")
    assert code == 0
    found = json.loads(out)
    assert found["complete"] == found["count"] == 40
    assert all(trial["waited_s"] > 2.0 for trial in found["trials"][1:])


@pytest.mark.slow
def test_killed_again_and_again_anywhere_it_comes_to_its_end(write, hil):
    """SIGKILL at moments drawn from the whole of a campaign's life, until one is let through."""
    path = write(repeats=6, order="random")
    rng = np.random.default_rng(1)
    for _ in range(25):
        process = started(path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(rng.uniform(0.5, 3.0))
        process.kill()
        process.wait()
    assert hil("campaign", path)[0] == 0
    rows = trials()
    assert [row["outcome"] for row in rows] == ["complete"] * 12
    for row in rows:
        assert open_run(f"{FOLDER}/{row['file']}").attrs["outcome"] == "complete"
    ends = [e for e in read_log_of(FOLDER) if e.get("outcome") == "complete"]
    assert sorted(e["trial"] for e in ends) == list(range(1, 13))
