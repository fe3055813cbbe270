"""Faults of `--inject` that a run would never meet are refused; those that it meets are felt."""

import pytest

from hil.__main__ import main
from hil.config import load
from hil.config.faults import FaultTable
from hil.devices.injection import Injection
from hil.session import run

RUN_S = 0.05
ABSENT = {
    'kind = "wire_open"\nat_s = 0.0\ncell = 7': "cell = 7: cells are counted on a board, 1 to 6",
    'kind = "board_reset"\nat_s = 0.0\ndevice = "bored"': "'bored': no board of this rig: choose b",
    'kind = "supply_mute"\nat_s = 0.0': "the rig has no supply",
    'kind = "enable_stuck_low"\nat_s = 0.0': "the rig has no enable line",
    'kind = "card_estop_open"\nat_s = 0.0': "the rig has no card with an e-stop line",
    'kind = "sensor_stuck"\nat_s = 0.0\ndevice = "daq"': "no channel of a card of this rig: choose",
    'kind = "force_lost"\nat_s = 0.05': "at_s = 0.05: the run ends at 0.05 s",
}


def words_of(configs, tmp_path, fault, *more):
    file = tmp_path / "faults.toml"
    file.write_text(f"[[fault]]\n{fault}\n")
    out = ["--out", str(tmp_path / "run.h5")]
    experiment = str(configs / "miga6/all_on.toml")
    return ["run", experiment, "--duration", str(RUN_S), "--inject", str(file), *out, *more]


@pytest.mark.parametrize("fault", ABSENT)
def test_a_fault_that_the_run_would_never_meet_is_refused(fault, configs, tmp_path, capsys):
    assert main(words_of(configs, tmp_path, fault)) == 2
    line = capsys.readouterr().err
    assert line.startswith("--inject: fault 1, ")
    assert ABSENT[fault] in line
    assert line.count("\n") == 1
    assert not (tmp_path / "run.h5").exists()


@pytest.mark.parametrize(
    ("fault", "more", "why"),
    [
        ('kind = "machine_stalls"\nat_s = 0.0', ["--clock", "real"], "on the virtual clock only"),
        ('kind = "sensor_nan"\nat_s = 0.0', ["--backend", "emulated"], "not on an emulated card"),
    ],
)
def test_a_fault_that_this_backend_or_clock_cannot_have_is_refused(
    fault, more, why, configs, tmp_path, capsys
):
    assert main(words_of(configs, tmp_path, fault, *more)) == 2
    assert why in capsys.readouterr().err


@pytest.mark.parametrize(("kind", "value"), [("machine_stalls", 0.0), ("machine_sleeps", 30.0)])
def test_a_machine_that_stands_still_between_two_ticks_is_felt_in_the_next(
    kind, value, configs, tmp_path
):
    config = load(configs / "miga6/all_on.toml", [f"experiment.duration_s={RUN_S}"])
    fault = FaultTable(kind=kind, at_s=0.0205, value=value)
    result = run(config, out=tmp_path / "run.h5", injection=Injection([fault]))
    assert result.outcome == "tripped"
    assert result.summary["first_fault"] == [
        {"machine_stalls": "loop_late", "machine_sleeps": "machine_slept"}[kind]
    ]


def test_a_force_beyond_all_measure_is_a_reading_at_the_rail(configs, tmp_path):
    config = load(configs / "miga6/all_on.toml", [f"experiment.duration_s={RUN_S}"])
    fault = FaultTable(kind="force_offset", at_s=0.02, value=1e308)
    result = run(config, out=tmp_path / "run.h5", injection=Injection([fault]))
    assert result.summary["first_fault"] == ["channel_untrue"]


def test_two_devices_in_one_line_of_a_trip_are_told_apart(configs, tmp_path, capsys):
    file = tmp_path / "faults.toml"
    file.write_text('[[fault]]\nkind = "board_reset"\nat_s = 0.02\n')
    words = ["run", str(configs / "array14/groups.toml"), "--duration", str(RUN_S)]
    assert main([*words, "--inject", str(file), "--out", str(tmp_path / "run.h5")]) == 3
    assert "; board_b was reset: it is disarmed" in capsys.readouterr().out
