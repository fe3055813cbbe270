"""Recordings of every kind of system, made by the program of November 2026, are still usable."""

import gzip
from pathlib import Path

import pytest

import hil
from hil.__main__ import main
from hil.runs.kept_code import kept_code, let_run
from hil.runs.replay import replay

MADE_BEFORE = Path(__file__).parent / "made_before"
FILES = sorted(MADE_BEFORE.glob("*.h5.gz"), key=lambda path: path.stat().st_size)
NAMES = [path.name.removesuffix(".h5.gz") for path in FILES]
REPLACED = "wires4-follow"  # its planner pays for wear since 28 November 2026, and was mended after


@pytest.fixture
def recording(request, tmp_path):
    path = tmp_path / f"{request.param}.h5"
    path.write_bytes(gzip.decompress((MADE_BEFORE / f"{path.name}.gz").read_bytes()))
    return path


@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize("recording", NAMES, indirect=True)
def test_a_recording_made_before_opens_verifies_and_is_reported(recording, capsys):
    run = hil.open_run(recording)
    assert run.sizes["tick"] >= 50
    assert main(["verify", str(recording)]) == 0
    assert main(["report", str(recording)]) == 0
    page = recording.with_suffix(".html").read_text()
    assert "SIMULATED" in page
    capsys.readouterr()


@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize("recording", [name for name in NAMES if name != REPLACED], indirect=True)
def test_a_recording_made_before_makes_the_same_decisions_again(recording):
    let_run(recording, [kept.sha256 for kept in kept_code(recording)])
    rows, difference = replay(recording)
    assert difference is None
    assert rows == hil.open_run(recording).sizes["tick"]


@pytest.mark.parametrize("recording", [REPLACED], indirect=True)
def test_a_planner_that_was_replaced_is_said_to_decide_otherwise_and_by_which_version(
    recording, capsys
):
    assert main(["replay", str(recording)]) == 5
    said = capsys.readouterr().out
    assert "(row 0) in plan_levels" in said
    assert "\n  commit: recorded with 485cc0353686, replayed with" in said
