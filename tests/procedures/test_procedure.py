"""Readings survive a kill, and the same command goes on."""

import io
import os
import signal
import subprocess
import sys

import pytest

from hil.__main__ import main
from hil.calibration.files import load_any
from hil.errors import ConfigError
from hil.procedures.kinds import template
from hil.procedures.procedure import Journal, Step, gather

WEIGHINGS = [0.01583, 0.01584, 0.01583, 0.0190, 0.0190, 0.01901, 0.0145, 0.01449, 0.0145,
             0.0190, 0.01902, 0.0190, 0.01583, 0.01582, 0.01583]  # fmt: skip


@pytest.fixture
def session(tmp_path):
    path = tmp_path / "session.toml"
    path.write_text(template("masses").replace("REHEARSAL", "M-1"))
    return path


def command(session, out):
    return [sys.executable, "-m", "hil", "calibrate", "masses", str(session), "--out", str(out)]


def typed(readings):
    return "".join(f"{value}\n" for value in readings).encode()


@pytest.mark.slow
def test_a_procedure_killed_in_the_middle_goes_on_and_ends_in_the_same_record(session, tmp_path):
    whole, cut = tmp_path / "whole/record.toml", tmp_path / "cut/record.toml"
    done = subprocess.run(command(session, whole), input=typed(WEIGHINGS), capture_output=True,
                          timeout=300, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    with subprocess.Popen(
        command(session, cut), stdin=subprocess.PIPE, stderr=subprocess.PIPE
    ) as busy:
        busy.stdin.write(typed(WEIGHINGS[:7]))
        busy.stdin.flush()
        for line in busy.stderr:
            if line.startswith(b"[8/15]"):
                os.kill(busy.pid, signal.SIGKILL)
    assert busy.returncode == -signal.SIGKILL
    rest = subprocess.run(command(session, cut), input=typed(WEIGHINGS[7:]), capture_output=True,
                          timeout=300, check=False)  # fmt: skip
    assert rest.returncode == 0, rest.stderr
    assert b"continues after 7 readings" in rest.stderr
    assert cut.read_text() == whole.read_text()
    assert not list(cut.parent.glob("*.journal"))
    record = load_any(cut, named_by="test")
    assert record.value("mass_kg.3") == pytest.approx((0.0145 + 0.01449 + 0.0145) / 3, abs=1e-7)
    assert record.record.status == "measured"


def test_a_line_torn_by_the_kill_is_read_again(tmp_path):
    journal = Journal(tmp_path / "a.journal", {"of": 1})
    journal.add("one", 1.0)
    with journal.path.open("ab") as file:
        file.write(b'{"key": "tw')
    again = Journal(journal.path, {"of": 1})
    assert again.readings == {"one": 1.0}
    again.add("two", 2.0)
    assert Journal(journal.path, {"of": 1}).readings == {"one": 1.0, "two": 2.0}


def test_a_journal_killed_within_its_first_line_begins_anew(tmp_path):
    (tmp_path / "a.journal").write_bytes(b'{"journal": "hil-cal')
    Journal(tmp_path / "a.journal", {"of": 1}).add("one", 1.0)
    assert Journal(tmp_path / "a.journal", {"of": 1}).readings == {"one": 1.0}


def test_a_journal_of_another_act_is_refused(tmp_path):
    Journal(tmp_path / "a.journal", {"serial": "A"}).add("one", 1.0)
    with pytest.raises(ConfigError, match="holds readings of another session"):
        Journal(tmp_path / "a.journal", {"serial": "B"})


def test_a_damaged_journal_is_refused(tmp_path):
    (tmp_path / "a.journal").write_text("not a journal\nat all\n")
    with pytest.raises(ConfigError, match="is damaged"):
        Journal(tmp_path / "a.journal", {"serial": "B"})


def test_a_reading_taken_back_is_asked_for_again(tmp_path):
    steps = [Step(key, key, "kg") for key in "abc"]
    answers = iter([1.0, 2.0, None, 2.5, 3.0])
    asked = []

    def read(step, i):
        asked.append(step.key)
        return next(answers)

    found = gather(steps, Journal(tmp_path / "a.journal", {}), read)
    assert found == {"a": 1.0, "b": 2.5, "c": 3.0}
    assert asked == ["a", "b", "c", "b", "c"]


@pytest.fixture
def calibrated(session, monkeypatch, capsys):
    """Runs the command with these readings piped in: (exit code, what it said)."""

    def go(out, readings, *more):
        monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{v}\n" for v in readings)))
        code = main(["calibrate", "masses", str(session), "--out", str(out), *more])
        said = capsys.readouterr()
        return code, said.out + said.err

    return go


def test_what_was_typed_stays_when_the_fit_refuses_and_the_session_file_is_mended(
    session, calibrated, tmp_path
):
    """Somebody said 0.1 kg and weighed 0.016: no need to weigh everything again."""
    right = session.read_text()
    session.write_text(right.replace("expected_kg = 0.016 ", "expected_kg = 0.1 "))
    code, said = calibrated(tmp_path / "record.toml", WEIGHINGS)
    assert code == 2
    assert "something else was measured" in said
    assert "the readings stay in" in said
    session.write_text(right)
    code, said = calibrated(tmp_path / "record.toml", [])
    assert code == 0
    assert "mass_kg.1 = 0.0158" in said


def test_the_last_readings_can_be_taken_back(calibrated, tmp_path):
    code, said = calibrated(tmp_path / "record.toml", [*WEIGHINGS[:-1], 15.83])
    assert code == 2
    assert "off by 1000: kg, not g" in said
    assert calibrated(tmp_path / "record.toml", [0.01583], "--undo", "1")[0] == 0


@pytest.mark.parametrize("option", ["--undo", "--seed"])
def test_a_number_below_0_takes_nothing_back(calibrated, tmp_path, option):
    assert calibrated(tmp_path / "record.toml", WEIGHINGS[:4])[0] == 130
    before = (tmp_path / "record.journal").read_bytes()
    code, said = calibrated(tmp_path / "record.toml", [], option, "-1")
    assert code == 2
    assert f"{option} -1: give a number from 0 on" in said
    assert (tmp_path / "record.journal").read_bytes() == before


@pytest.mark.parametrize("value", ["null", '"0.0158"', "[0.0158]"])
def test_a_journal_with_a_reading_that_is_no_number_is_damaged(calibrated, tmp_path, value):
    assert calibrated(tmp_path / "record.toml", WEIGHINGS[:-1])[0] == 130
    with (tmp_path / "record.journal").open("a") as file:
        file.write(f'{{"key": "mass 5, weighing 3", "value": {value}}}\n')
    code, said = calibrated(tmp_path / "record.toml", [])
    assert code == 2
    assert "record.journal: is damaged: remove it and start again" in said


def test_what_is_typed_in_another_encoding_is_asked_for_again(session, tmp_path):
    done = subprocess.run(
        command(session, tmp_path / "record.toml"), input=b"0.0158\xb5\n", capture_output=True,
        env=os.environ | {"PYTHONIOENCODING": "utf-8:strict"}, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 130
    assert rb"'0.0158\xb5' is not a number: a reading in kg" in done.stderr


def test_stopping_says_that_the_readings_are_kept(calibrated, tmp_path):
    code, said = calibrated(tmp_path / "record.toml", [0.0158, "u", "heavy"])
    assert code == 130
    assert "'heavy' is not a number: a reading in kg" in said
    assert "keeps the readings: run the same command to continue" in said


def test_a_second_record_of_an_article_is_refused_unless_it_supersedes_the_first(
    calibrated, tmp_path
):
    first, second = tmp_path / "records/a.toml", tmp_path / "records/b.toml"
    others = [1.0001 * m for m in WEIGHINGS]
    assert calibrated(first, WEIGHINGS)[0] == 0
    code, said = calibrated(second, others)
    assert code == 2
    assert "two records of one article would be valid: add --supersedes" in said
    assert not second.exists()
    assert calibrated(second, [], "--supersedes", str(first))[0] == 0
    assert main(["check", str(first), str(second)]) == 0
