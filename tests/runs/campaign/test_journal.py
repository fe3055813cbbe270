"""What a journal says of a campaign: what is done, what is left, and for how long."""

import pytest

from hil.errors import ConfigError
from hil.record.append_log import AppendLog
from hil.runs.campaign.journal import (
    JOURNAL,
    progress_of,
    read_progress,
    refuse_outside,
    time_text,
)

PLAN = [{"trial": n, "duration_s": 10.0 * n} for n in (1, 2, 3, 4)]
HEAD = {"kind": "campaign", "plan": PLAN}


def begin(trial, attempt=1, utc="t0"):
    return {"kind": "begin", "trial": trial, "attempt": attempt, "utc": utc}


def end(trial, outcome="complete", took_s=5.0, duration_s=10.0, utc="t1"):
    return {
        "kind": "end", "trial": trial, "outcome": outcome, "took_s": took_s,
        "duration_s": duration_s, "utc": utc,
    }  # fmt: skip


def test_only_trials_that_are_complete_or_skipped_are_not_run_again():
    """A trial that tripped, was aborted, or was cut off by a power failure is run again."""
    p = progress_of([
        HEAD, begin(1), end(1), begin(2), end(2, "tripped"), begin(3),
        {"kind": "cut", "trial": 3, "utc": "t9"}, {"kind": "skip", "trial": 4, "why": "operator"},
    ])  # fmt: skip
    assert p.left == [2, 3]
    assert p.settled == {1: "complete", 4: "operator"}
    assert (p.n_complete, p.n_trials) == (1, 4)
    assert not p.open
    assert p.ends[3]["begun_utc"] == "t0"
    assert [entry["kind"] for entry in p.notes] == ["end", "skip"]


def test_an_attempt_that_has_begun_and_not_ended_is_open_with_its_number():
    p = progress_of([HEAD, begin(1, 1, "a"), end(1, "aborted"), begin(1, 2, "b")])
    assert p.open == {1: begin(1, 2, "b")}
    assert p.attempts == {1: 2}
    assert p.left == [1, 2, 3, 4]
    assert p.ends[1]["begun_utc"] == "a"


def test_the_reason_of_a_stop_holds_until_the_campaign_goes_on():
    stopped = [HEAD, {"kind": "stop", "why": "e-stop"}]
    assert progress_of(stopped).why == "e-stop"
    assert progress_of(stopped).notes == [{"kind": "stop", "why": "e-stop"}]
    assert progress_of([*stopped, {"kind": "session"}]).why == ""


def test_answers_belong_to_their_trial_and_the_last_wait_counts():
    p = progress_of([
        HEAD, {"kind": "answer", "question": "mass", "answer": 0.5},
        {"kind": "answer", "trial": 2, "question": "mass", "answer": 0.7},
        {"kind": "wait", "trial": 2, "took_s": 1.0}, {"kind": "wait", "trial": 2, "took_s": 9.0},
    ])  # fmt: skip
    assert p.answers == {0: {"mass": 0.5}, 2: {"mass": 0.7}}
    assert p.waits[2]["took_s"] == 9.0


def test_the_time_that_is_left_goes_by_the_pace_and_the_waits_of_what_is_complete():
    wait = {"kind": "wait", "trial": 1, "took_s": 7.0}
    assert progress_of([HEAD, begin(1), end(1, "tripped")]).left_s() is None
    # 20 s took 30 s; 20 + 30 + 40 s are left
    p = progress_of([HEAD, begin(1), end(1, took_s=30.0, duration_s=20.0)])
    assert p.left_s() == pytest.approx(1.5 * 90.0)
    p = progress_of([HEAD, wait, begin(1), end(1, took_s=30.0, duration_s=20.0)])
    assert p.left_s() == pytest.approx(1.5 * 90.0 + 3 * 7.0)
    other = {"kind": "wait", "trial": 3, "took_s": 9.0}
    p = progress_of([HEAD, wait, other, begin(1), end(1, took_s=0.75, duration_s=0.5)])
    assert p.left_s() == pytest.approx(1.5 * 90.0 + 3 * 8.0)
    # a trial that tripped tells nothing of the pace
    p = progress_of([HEAD, end(1, took_s=30.0, duration_s=20.0), end(2, "tripped", 500.0)])
    assert p.left_s() == pytest.approx(1.5 * 90.0)
    assert progress_of([HEAD, end(1, duration_s=0.0)]).left_s() is None


@pytest.mark.parametrize("outcome", ["complete", "tripped", "failed"])
def test_a_run_for_the_recording_of_a_trial_changes_nothing_but_its_file(outcome):
    first = {**end(1), "faults": [], "figures": {"force_N": 1.0}, "file": ""}
    again = {**end(1, outcome, utc="t2"), "figures": {"force_N": 2.0}, "file": "trials/1.h5"}
    again["faults"] = ["disk_low"] if outcome == "tripped" else []
    kept = progress_of([HEAD, first, again]).ends[1]
    file = "trials/1.h5" if outcome == "complete" else ""
    assert kept == {**first, "begun_utc": "t1", "file": file}


@pytest.mark.parametrize("file", ["/etc/passwd", "../a.h5", "a/../../b.h5", "C:a.h5"])
def test_a_journal_that_names_a_file_outside_its_folder_is_refused(file, tmp_path):
    entries = [HEAD, {"kind": "begin", "trial": 3, "file": file}]
    with pytest.raises(ConfigError, match=r"trial 3: .* is not a recording in its folder"):
        refuse_outside(tmp_path / JOURNAL, entries)
    refuse_outside(tmp_path / JOURNAL, [{"trial": 3, "file": "trials/a..b.h5"}, {"file": file}])


def test_progress_is_read_from_the_folder(tmp_path):
    with pytest.raises(ConfigError, match="no campaign has begun there"):
        read_progress(tmp_path)
    with AppendLog(tmp_path / JOURNAL) as log:
        log.add(HEAD)
        log.add(begin(1))
    assert read_progress(tmp_path).attempts == {1: 1}
    with AppendLog(tmp_path / JOURNAL) as log:
        log.add({"kind": "begin", "trial": 2, "attempt": 1, "utc": "", "file": "../x"})
    with pytest.raises(ConfigError, match="use the original journal"):
        read_progress(tmp_path)


@pytest.mark.parametrize(
    ("duration_s", "text"),
    [
        (None, "an unknown time"), (0.0, "0 s"), (89.9, "90 s"), (90.0, "2 min"), (89 * 60.0,
         "89 min"), (90 * 60.0, "1 h 30 min"), (125 * 60.0, "2 h 05 min"),
    ],
)  # fmt: skip
def test_a_time_is_told_in_the_unit_that_fits(duration_s, text):
    assert time_text(duration_s) == text
