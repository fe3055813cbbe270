"""Whole runs through the image of the board's own chip: --backend board=emulated."""

import json

import numpy as np
import pytest

import hil
from hil.__main__ import main
from hil.devices.board import emulated
from hil.runs import session
from hil.runs.plan import Plan
from hil.runs.recording import Output


def run(experiment, out, backend, *sets):
    config = hil.load(experiment, sets)
    return session.run(Plan(config, backend=backend), Output(out=out))


@pytest.fixture(scope="module")
def recording(configs, tmp_path_factory):
    path = tmp_path_factory.mktemp("emulated") / "run.h5"
    run(configs / "miga6/all_on.toml", path, "board=emulated", "experiment.duration_s=0.5")
    return hil.open_run(path)


def test_no_exchange_is_missed_at_1_khz(recording):
    assert recording.attrs["outcome"] == "complete"
    assert len(recording.t_s) == 500
    board = list(recording.valid_bits.attrs["flags"]).index("board")
    assert (recording.valid_bits.values >> board & 1).all()
    assert recording.board_round_trip_s.values[1:].max() < 0.001
    exchanges = json.loads(recording.attrs["summary"])["exchanges"]["board"]
    assert exchanges["without_answer"] == 0
    assert exchanges["round_trip_max_s"] < 0.001


def test_cells_that_know_on_and_off_move_as_with_the_core_on_this_machine(
    configs, recording, tmp_path
):
    run(configs / "miga6/all_on.toml", tmp_path / "sim.h5", "sim", "experiment.duration_s=0.5")
    plain = hil.open_run(tmp_path / "sim.h5")
    np.testing.assert_array_equal(recording.cells_reported, plain.cells_reported)
    a_period_N = 0.012  # the first gate rises 0.53 ms after its tick, too late for that period
    np.testing.assert_allclose(recording.force_measured_N, plain.force_measured_N, atol=a_period_N)
    assert recording.force_measured_N.max() > 100 * a_period_N


def test_the_same_run_repeats_bit_for_bit(configs, recording, tmp_path):
    path = tmp_path / "again.h5"
    run(configs / "miga6/all_on.toml", path, "board=emulated", "experiment.duration_s=0.5")
    again = hil.open_run(path)
    for name in ("board_round_trip_s", "board_t_s", "force_measured_N", "force_estimate_N"):
        np.testing.assert_array_equal(recording[name], again[name])


@pytest.mark.slow
def test_two_boards_of_one_rig_are_two_chips(configs, tmp_path):
    run(
        configs / "array14/groups.toml",
        tmp_path / "two.h5",
        "board_a=emulated,board_b=emulated",
        "experiment.duration_s=0.2",
    )
    two = hil.open_run(tmp_path / "two.h5")
    assert two.attrs["outcome"] == "complete"
    for board in ("board_a", "board_b"):
        assert two[f"{board}_round_trip_s"][1:].notnull().all()


def test_without_the_emulator_a_run_is_refused_in_one_line(configs, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(emulated, "SIMAVR", tmp_path / "nowhere.h")
    words = ["run", str(configs / "miga6/all_on.toml"), "--backend", "board=emulated"]
    assert main([*words, "--out", str(tmp_path / "run.h5")]) == 2
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert "apt-get install" in said[0]
    assert "libsimavr-dev" in said[0]
    assert list(tmp_path.iterdir()) == []
