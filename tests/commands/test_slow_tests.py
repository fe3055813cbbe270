"""./slow-tests: its parts, their results and exit codes, with a `run-tests` that says its words."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RUN_TESTS = """#!/bin/bash
echo "words $* profile ${HYPOTHESIS_PROFILE:-usual}"
exit $(cat code)
"""


@pytest.fixture
def clone(tmp_path):
    shutil.copyfile(ROOT / "slow-tests", tmp_path / "slow-tests")
    for folder in ("scripts", "docs/slow-tests"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "scripts/debian").write_text("have() { :; }\nneed() { :; }\n")
    (tmp_path / "run-tests").write_text(RUN_TESTS)
    (tmp_path / "run-tests").chmod(0o755)
    (tmp_path / "code").write_text("0")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "all")
    return tmp_path


def git(folder, *words):
    who = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)
    return done.stdout.decode().strip()


def run(clone, *parts):
    return subprocess.run(
        ["bash", clone / "slow-tests", *parts], cwd=clone, capture_output=True, text=True
    )


def results(clone):
    return {path.stem: path.read_text() for path in (clone / "docs/slow-tests").iterdir()}


def test_a_result_names_no_path_of_the_machine(clone):
    said = f"{clone}/tests/a.py: in {clone}/b, /tmp/pytest-of-me/pytest-7/popen-gw0/test_a0/run.h5"
    (clone / "run-tests").write_text(f"#!/bin/bash\necho '{said}'\n")
    environment = {key: value for key, value in os.environ.items() if key != "TMPDIR"}
    subprocess.run(["bash", clone / "slow-tests", "slow"], cwd=clone, check=True, env=environment)
    last = results(clone)["slow"].splitlines()[-1]
    assert last == "tests/a.py: in b, TMP/popen-gw0/test_a0/run.h5"


def test_each_part_leaves_its_result_with_commit_and_date(clone):
    assert run(clone, "slow", "wander").returncode == 0
    found = results(clone)
    assert sorted(found) == ["slow", "wander"]
    for text in found.values():
        commit, date, blank, *rest = text.splitlines()
        assert commit == f"commit {git(clone, 'rev-parse', 'HEAD')}"
        assert date.startswith("date   2")
        assert blank == ""
        assert len(rest) == 1
    assert "words -m slow and not hours --no-header --durations=40 profile usual" in found["slow"]
    assert "profile wander" in found["wander"]


def test_a_part_that_fails_is_the_exit_code_and_the_others_run(clone):
    (clone / "code").write_text("1")
    assert run(clone, "slow", "wander").returncode == 1
    found = results(clone)
    assert sorted(found) == ["slow", "wander"]
    assert ", tree changed\n" in found["slow"]


@pytest.mark.parametrize("part", ["fast", "slow wander", "", "s.ow"])
def test_a_part_that_there_is_not_is_one_line_before_anything_runs(clone, part):
    done = run(clone, "slow", part)
    assert done.returncode == 2
    assert done.stderr == (
        f"./slow-tests: no part '{part}': there are pythons types slow hours wander busy coverage\n"
    )
    assert results(clone) == {}
