"""The rules of a campaign's runner, without a run: retries, cut attempts, verdicts, plants."""

import json
import shutil
from types import SimpleNamespace

import h5py
import pytest

from hil.errors import ConfigError
from hil.record.append_log import AppendLog
from hil.runs import session
from hil.runs.campaign.plan import Trial
from hil.runs.campaign.runner import ANSWER_NO, DONE, TRIPPED, Bench, Options, Runner, Stopped

TRIALS = [Trial(n, "a.toml", {}, 1, 1, n) for n in (1, 2, 3)]


@pytest.fixture
def runner(tmp_path):
    """A runner of three trials whose journal has begun; its lines so far are in `log`."""
    config = SimpleNamespace(tables=SimpleNamespace(experiment=SimpleNamespace(duration_s=1.0)))
    tables = SimpleNamespace(
        after_trip=SimpleNamespace(do="retry", retries=2, then="skip"), factors={}, questions={},
        wait=None, preconditions={}, measures={}, campaign=SimpleNamespace(name="gains"),
    )  # fmt: skip
    campaign = SimpleNamespace(tables=tables, trials=TRIALS, config=lambda trial: config, tuned={})
    made = Runner(campaign, tmp_path, Options(), operator=None, say=lambda text: None)
    with AppendLog(tmp_path / "journal.jsonl") as made._log:
        plan = [{"trial": trial.number, "duration_s": 1.0} for trial in TRIALS]
        made._log.add({"kind": "campaign", "plan": plan})
        yield made


def lines(runner):
    return [(e["kind"], e["trial"], e.get("outcome")) for e in runner._log.entries[1:]]


def test_a_trial_that_trips_again_and_again_is_tried_once_and_its_retries_and_no_more(runner):
    attempts = []

    def trips(trial):
        attempts.append(trial.number)
        assert len(attempts) < 10
        return "tripped", "force_high"

    runner._attempt = trips
    runner._trial(TRIALS[1])
    assert attempts == [2, 2, 2]
    assert runner.progress.settled == {2: "tripped by force_high"}


def test_a_full_disk_stops_it_and_leaves_no_trial_out(runner):
    """It would trip every other trial too: after a night none would be left to run."""
    runner._attempt = lambda trial: ("tripped", "disk_low, force_high")
    with pytest.raises(Stopped, match="trial 2 tripped by disk_low") as stopped:
        runner._trial(TRIALS[1])
    assert stopped.value.code == TRIPPED
    runner.campaign.path, runner.campaign.sets = runner.folder / "a.toml", lambda trial: []
    runner.campaign.faults = lambda trial: []
    runner._stream = SimpleNamespace(append=lambda: None)
    full = {"outcome": "tripped", "faults": ["disk_low"], "duration_s": 1.0, "took_s": 1.0}
    workers = SimpleNamespace(run=lambda works: ((work, dict(full)) for work in works))
    with pytest.raises(Stopped, match="trial 1 tripped by disk_low"):
        runner._record("all", [1, 2, 3], workers)
    assert runner.progress.left == [1, 2, 3]


def test_every_attempt_that_was_cut_off_is_settled_and_repeated(runner):
    for trial in (1, 3):
        runner._log.add(
            {"kind": "begin", "trial": trial, "attempt": 1, "file": f"trials/{trial}.h5", "utc": ""}
        )
    runner._settle()
    assert lines(runner)[2:] == [("cut", 1, "cut"), ("cut", 3, "cut")]
    assert not runner.progress.open
    assert runner.progress.left == [1, 2, 3]


def test_of_trials_that_run_apart_those_with_a_recording_were_cut_off(runner, monkeypatch):
    trials = runner.folder / "trials"
    trials.mkdir()
    (trials / "0002-1.h5").touch()
    monkeypatch.setattr(f"{Runner.__module__}.recover", lambda path: None)
    monkeypatch.setattr(f"{Runner.__module__}.describe", lambda path: {"rows": 7})
    for _ in range(2):
        runner._settle()
        assert lines(runner) == [("begin", 2, None), ("cut", 2, "cut")]
    assert runner.progress.attempts == {2: 1}


def test_trials_that_run_apart_begin_with_no_line_of_their_own(runner):
    def run(works):
        assert [work.number for work in works] == [1, 2, 3]
        raise InterruptedError

    runner.campaign.path, runner.campaign.sets = runner.folder / "a.toml", lambda trial: []
    runner.campaign.faults = lambda trial: []
    with pytest.raises(InterruptedError):
        runner._record("all", [1, 2, 3], SimpleNamespace(run=run))
    assert not lines(runner)


def test_what_a_killed_process_was_about_to_record_goes_and_nothing_else(runner, monkeypatch):
    monkeypatch.setattr(f"{Runner.__module__}.is_alive", lambda pid: pid == 7)
    trials = runner.folder / "trials"
    trials.mkdir()
    names = ["0021-1.h5", "0021-1.h5.7.new", "0021-1.h5.8.new", "0021-1.h5.x.new", "a.8.new"]
    for name in names:
        (trials / name).touch()
    runner._settle()
    assert {file.name for file in trials.iterdir()} == set(names) - {"0021-1.h5.8.new"}


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, RuntimeError])
def test_an_attempt_that_ends_in_any_error_is_written_down_as_failed(runner, monkeypatch, error):
    def fails(*arguments):
        raise error("no more")

    monkeypatch.setattr(session, "run", fails)
    monkeypatch.setattr(f"{Runner.__module__}.Plan", lambda *of, **more: None)
    with pytest.raises(error):
        runner._attempt(TRIALS[0])
    assert lines(runner) == [("begin", 1, None), ("end", 1, "failed")]


def test_a_recording_that_was_kept_under_another_name_is_in_the_journal_by_it(runner, monkeypatch):
    """A file of another program has the planned name by then: pages and crates took that one."""
    kept = runner.folder / "trials/0001-1-kept.h5"
    summary = {"first_fault": ["recorder_dead"], "error": ""}
    stop = SimpleNamespace(pass_on=lambda: None)
    result = session.Result(kept, "tripped", summary, stop)
    monkeypatch.setattr(session, "run", lambda *arguments: result)
    monkeypatch.setattr(f"{Runner.__module__}.Plan", lambda *of, **more: None)
    monkeypatch.setattr(f"{Runner.__module__}.figures_of", lambda *of: {})
    runner._attempt(TRIALS[0])
    assert runner.progress.ends[1]["file"] == "trials/0001-1-kept.h5"


def test_so_is_one_of_trials_that_run_apart(runner):
    end = {"outcome": "complete", "faults": [], "error": "", "figures": {}, "duration_s": 1.0}
    ran = end | {"took_s": 0.1, "name": "0001-1-kept.h5"}
    runner.campaign.path, runner.campaign.sets = runner.folder / "a.toml", lambda trial: []
    runner.campaign.faults = lambda trial: []
    runner._stream = SimpleNamespace(append=lambda: None)
    runner._record("all", [1], SimpleNamespace(run=lambda works: [(works[0], dict(ran))]))
    assert runner.progress.ends[1] | end == runner.progress.ends[1]
    assert runner.progress.ends[1]["file"] == "trials/0001-1-kept.h5"
    assert "name" not in runner.progress.ends[1]


@pytest.mark.parametrize(
    ("whys", "code"),
    [
        ((), DONE),
        (("wait timed out: hot",), ANSWER_NO),
        (("wait timed out: hot", "tripped by force_high"), TRIPPED),
    ],
)
def test_one_trial_that_tripped_makes_the_campaign_one_that_tripped(runner, whys, code):
    for trial, why in enumerate(whys, start=1):
        runner._skip(TRIALS[trial - 1], why)
    assert runner._verdict() == code


def test_a_plant_is_carried_on_only_while_neither_it_nor_the_period_changes():
    def config(plant, period_s):
        tables = SimpleNamespace(plant=plant, loop=SimpleNamespace(period_s=period_s))
        return SimpleNamespace(tables=tables, system=lambda plant: object())

    bench = Bench(carries_on=True)
    first = bench.system(config("a", 0.001))
    assert bench.system(config("a", 0.001)) is first
    other = bench.system(config("a", 0.002))
    assert other is not first
    assert bench.system(config("b", 0.002)) is not other


def test_a_cut_attempt_without_a_recording_has_no_rows_and_one_with_it_is_repaired(
    runner, monkeypatch
):
    runner.folder.joinpath("trials").mkdir()
    runner.folder.joinpath("trials/3.h5").write_bytes(b"")
    repaired = []
    monkeypatch.setattr(f"{Runner.__module__}.recover", repaired.append)
    monkeypatch.setattr(f"{Runner.__module__}.describe", lambda path: {"rows": 7})
    for trial in (1, 3):
        runner._log.add(
            {"kind": "begin", "trial": trial, "attempt": 1, "file": f"trials/{trial}.h5", "utc": ""}
        )
    runner._settle()
    cut = [e for e in runner._log.entries if e["kind"] == "cut"]
    assert [(e["trial"], e["rows"], e["error"]) for e in cut] == [(1, None, ""), (3, 7, "")]
    assert repaired == [runner.folder / "trials/3.h5"]


@pytest.mark.parametrize(
    ("of", "stays"),
    [
        (None, True),
        ({"name": "gains", "trial": 2, "attempt": 1, "plant": 1}, True),
        ({"name": "gains", "trial": 1, "attempt": 2, "plant": 1}, True),
        ({"name": "other", "trial": 1, "attempt": 1, "plant": 1}, True),
        ({"name": "gains", "trial": 1, "attempt": 1, "plant": 1}, False),
    ],
)
def test_a_recording_of_another_run_is_neither_repaired_nor_replaced(
    runner, all_on, monkeypatch, of, stays
):
    """It may be one that a program copied there, still without an end."""
    path, repaired, said = runner.folder / "trials/0001-1.h5", [], []
    path.parent.mkdir()
    shutil.copy(all_on, path)
    with h5py.File(path, "r+") as file:
        if of is not None:
            file.attrs["campaign"] = json.dumps(of)
    monkeypatch.setattr(f"{Runner.__module__}.recover", repaired.append)
    runner._say = said.append
    runner._settle()
    [cut] = [e for e in runner._log.entries if e["kind"] == "cut"]
    assert (cut["file"], repaired) == (("", []) if stays else ("trials/0001-1.h5", [path]))
    assert ("is of another run and stays; it is repeated" in said[0]) == stays
    assert runner.progress.attempts == {1: 1}, "the next attempt has another name"


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("fingerprint", "other", "holds another campaign, or gains.toml or a configuration has ch"),
        (
            "contents",
            "other",
            "a calibration, a plug-in, an FMU or the commissioning of gains.toml ",
        ),
        ("backend", "bench", "began with backend bench, not sim: use the same option"),
        ("clock", "real", "began with clock real, not None: use the same option"),
        ("rehearsal", True, "began with rehearsal True, not False: use the same option"),
    ],
)
def test_a_journal_is_continued_only_by_its_own_campaign_in_its_own_way(runner, key, value, said):
    runner.campaign.path, runner.campaign.fingerprint = "gains.toml", lambda: "own"
    runner.campaign.contents = lambda: "own"
    head = {"fingerprint": "own", "backend": "sim", "clock": None, "rehearsal": False}
    runner._log.entries[0].update(head)
    runner._begin()
    assert runner._log.entries[-1]["kind"] == "session"
    runner._log.entries[0][key] = value
    with pytest.raises(ConfigError, match=f"^{runner.folder}: {said}"):
        runner._begin()


def test_recordings_without_their_journal_are_kept_and_nothing_begins(runner):
    (runner.folder / "trials").mkdir()
    (runner.folder / "trials/0001-1.h5").touch()
    runner._log.entries.clear()
    with pytest.raises(ConfigError, match="missing or empty, but trials/ has"):
        runner._begin()
    assert not runner._log.entries
