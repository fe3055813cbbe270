"""Every interlock is tripped by a fault put into the rig, in time, with everything off after."""

import json

import pytest

from hil import interlocks
from hil.__main__ import main
from hil.studies import faults


def _id(scenario):
    return f"{scenario.where}-{scenario.row}-{scenario.kind}-{faults.SCENARIOS.index(scenario)}"


@pytest.mark.parametrize("scenario", [s for s in faults.SCENARIOS if s.clock == "virtual"], ids=_id)
def test_on_the_simulated_rig_the_row_trips_in_time_and_all_is_off_and_whole(scenario):
    row = faults.inject(scenario, "sim")
    assert row["passes"], row


@pytest.mark.parametrize("row", ["board_silent", "current_high"])
def test_on_the_emulated_chip_a_loop_s_and_a_board_s_row_trip_in_time(row):
    scenario = next(s for s in faults.SCENARIOS if s.row == row)
    found = faults.inject(scenario, "emulated")
    assert found["passes"], found


@pytest.mark.campaign
@pytest.mark.parametrize("backend", ["sim", "emulated"])
def test_every_row_on_every_backend(backend, tmp_path):
    assert main(["study", "faults", "--set", f"backend={backend}", "--out", str(tmp_path)]) == 0
    rows = json.loads((tmp_path / "results.json").read_text())["rows"]
    assert [row for row in rows if not row["passes"]] == []


def test_every_row_of_the_table_is_injected():
    injected = {(s.where, s.row) for s in faults.SCENARIOS}
    for row in interlocks.LOOP:
        assert ("loop", row.name) in injected
    for row in interlocks.BOARD:
        assert ("board", row.name) in injected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[[fault]]\nkind = "magic"\nat_s = 1.0\n', "fault.0.kind = 'magic'"),
        ('[[fault]]\nkind = "estop_open"\n', "fault.0.at_s: missing: add it"),
        ("fault = []\n", "fault"),
        ("[[fault]\n", "not valid TOML"),
    ],
)
def test_a_file_of_faults_that_is_wrong_is_refused(text, message, configs, tmp_path, capsys):
    (tmp_path / "f.toml").write_text(text)
    words = ["run", str(configs / "miga6/all_on.toml"), "--inject", str(tmp_path / "f.toml")]
    assert main([*words, "--out", str(tmp_path / "run.h5")]) == 2
    said = capsys.readouterr().err.strip()
    assert message in said
    assert len(said.splitlines()) == 1


def test_faults_are_not_put_into_a_bench(configs, tmp_path, capsys):
    (tmp_path / "f.toml").write_text('[[fault]]\nkind = "estop_open"\nat_s = 0.1\n')
    words = ["run", str(configs / "miga6/all_on.toml"), "--inject", str(tmp_path / "f.toml")]
    words += ["--backend", "board=bench,daq=sim", "--out", str(tmp_path / "run.h5")]
    assert main(words) == 2
    assert "--inject: not on a bench" in capsys.readouterr().err


def test_a_run_whose_board_is_reset_ends_tripped_by_it(configs, tmp_path, capsys):
    (tmp_path / "f.toml").write_text('[[fault]]\nkind = "board_reset"\nat_s = 0.8\n')
    words = ["run", str(configs / "miga6/all_on.toml"), "--inject", str(tmp_path / "f.toml")]
    assert main([*words, "--out", str(tmp_path / "run.h5")]) == 3
    assert "tripped by board_reset" in capsys.readouterr().out
    assert main(["replay", str(tmp_path / "run.h5")]) == 0
