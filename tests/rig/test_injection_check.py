"""Faults of `--inject` that a run would never meet are refused; those that it meets are felt."""

import re
import tomllib
from pathlib import Path

import numpy as np
import pytest

import hil
from hil.__main__ import main
from hil.devices.injection import Injection
from hil.devices.injection_tables import WITH_VALUE, FaultTable
from hil.experiment.load import load
from hil.runs.plan import Plan
from hil.runs.recording import Output
from hil.runs.replay import replay
from hil.runs.session import run
from hil.runs.simulate import simulate
from hil_studies.faults import study

RUN_S = 0.05
ABSENT = {
    'kind = "wire_open"\nat_s = 0.0\ncell = 7': (
        "cell = 7: the cells of a board are numbered 1 to 6"
    ),
    'kind = "board_reset"\nat_s = 0.0\ndevice = "bored"': "'bored': no board of this rig: choose b",
    'kind = "cell_broken"\nat_s = 0.0\ncell = 7': "the cells of a board are numbered 1 to 6",
    'kind = "cell_weak"\nat_s = 0.0\nvalue = 1.0': "give the share of the force that is left",
    'kind = "supply_mute"\nat_s = 0.0': "the rig has no supply",
    'kind = "enable_stuck_low"\nat_s = 0.0': "the rig has no enable line",
    'kind = "card_estop_open"\nat_s = 0.0': "the rig has no card with an e-stop line",
    'kind = "sensor_stuck"\nat_s = 0.0\ndevice = "daq"': "no channel of this rig: choose",
    'kind = "board_reset"\nat_s = 0.0485': "the board is not asked again after 0.049 s",
    'kind = "force_lost"\nat_s = 0.05': "at_s = 0.05: the run ends at 0.05 s",
}


def words_of(configs, tmp_path, fault, *more):
    file = tmp_path / "faults.toml"
    file.write_text(f"[[fault]]\n{fault}\n")
    out = ["--out", str(tmp_path / "run.h5")]
    experiment = str(configs / "miga6/all_on.toml")
    return ["run", experiment, "--duration", str(RUN_S), "--inject", str(file), *out, *more]


def test_the_nearest_kind_of_a_misspelt_fault_is_suggested(configs, tmp_path, capsys):
    assert main(words_of(configs, tmp_path, 'kind = "sensor_stuk"\nat_s = 0.0')) == 2
    line = capsys.readouterr().err
    assert "fault.0.kind = 'sensor_stuk': unknown: did you mean 'sensor_stuck'?" in line
    assert len(line) < 200


@pytest.mark.parametrize("fault", ABSENT)
def test_a_fault_that_the_run_would_never_meet_is_refused(fault, configs, tmp_path, capsys):
    assert main(words_of(configs, tmp_path, fault)) == 2
    line = capsys.readouterr().err
    assert line.startswith("--inject: fault 1, ")
    assert ABSENT[fault] in line
    assert line.count("\n") == 1
    assert not (tmp_path / "run.h5").exists()


SIX_AND_EIGHT = [
    f"devices.board_{board}.cells={[f'muscle.{n}' for n in range(*ends)]}"
    for board, ends in (("a", (1, 7)), ("b", (7, 15)))
]


@pytest.mark.parametrize(("cell", "device", "code"), [(7, None, 2), (7, "board_b", 0)])
def test_a_cell_that_breaks_is_one_of_the_first_board_or_of_that_which_is_named(
    cell, device, code, configs, tmp_path, capsys
):
    named = "" if device is None else f"\ndevice = '{device}'"
    words = words_of(configs, tmp_path, f'kind = "cell_broken"\nat_s = 0.0\ncell = {cell}{named}')
    words[1] = str(configs / "array14/groups.toml")
    assert main([*words, *(word for key in SIX_AND_EIGHT for word in ("--set", key))]) == code
    line = "cell = 7: the cells of a board are numbered 1 to 6"
    assert (line in capsys.readouterr().err) == (code == 2)


def test_limits_differ_on_the_board_that_is_named(configs, tmp_path, capsys):
    words = words_of(configs, tmp_path, 'kind = "limits_differ"\nat_s = 0.0\ndevice = "board_b"')
    words[1] = str(configs / "array14/groups.toml")
    assert main(words) == 4
    assert "board_b: limits differ" in capsys.readouterr().err


def test_a_board_reset_that_the_last_tick_can_still_show_trips(configs, tmp_path, capsys):
    fault = 'kind = "board_reset"\nat_s = 0.048'
    assert main(words_of(configs, tmp_path, fault)) == 3
    assert "board_reset" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("fault", "more", "why"),
    [
        ('kind = "machine_stalls"\nat_s = 0.0', ["--clock", "real"], "on the virtual clock only"),
        ('kind = "card_unplugged"\nat_s = 0.0', [], "on an emulated card only: --backend daq=emul"),
    ],
)
def test_a_fault_that_this_backend_or_clock_cannot_have_is_refused(
    fault, more, why, configs, tmp_path, capsys
):
    assert main(words_of(configs, tmp_path, fault, *more)) == 2
    assert why in capsys.readouterr().err


@pytest.mark.parametrize(
    ("kind", "why"),
    [("machine_stalls", "give for_s = 3"), ("sensor_stuck", "leave it out"),
     ("cell_broken", "leave it out")],
)  # fmt: skip
def test_a_value_that_a_fault_has_not_is_refused(kind, why, configs, tmp_path, capsys):
    assert main(words_of(configs, tmp_path, f'kind = "{kind}"\nat_s = 0.02\nvalue = 3.0')) == 2
    line = f"--inject: fault 1, {kind}: value = 3: a fault of this kind has none: {why}"
    assert line in capsys.readouterr().err


def valued_scenarios():
    """The kinds that have a value in `hil study faults`."""
    text = Path(study.__file__).with_name("scenarios.toml").read_text(encoding="utf-8")
    listed = [one for row in tomllib.loads(text)["scenario"] for one in (row, *row.get("also", ()))]
    return {one["kind"] for one in listed if "value" in one}


# Beside them what only other tests inject.
VALUED = valued_scenarios() | {"address_stuck", "relay_welded", "line_stuck", "cell_weak"}


def test_every_fault_whose_value_a_device_or_a_chip_reads_may_have_one():
    assert set(VALUED) == WITH_VALUE


@pytest.mark.parametrize(("kind", "value"), [("machine_stalls", 0.0), ("machine_sleeps", 30.0)])
def test_a_machine_that_stands_still_between_two_ticks_is_felt_in_the_next(
    kind, value, configs, tmp_path
):
    config = load(configs / "miga6/all_on.toml", [f"experiment.duration_s={RUN_S}"])
    fault = FaultTable(kind=kind, at_s=0.0205, value=value)
    result = run(Plan(config, injection=Injection([fault])), Output(out=tmp_path / "run.h5"))
    assert result.outcome == "tripped"
    assert result.summary["first_fault"] == [
        {"machine_stalls": "loop_late", "machine_sleeps": "machine_slept"}[kind]
    ]


def test_a_force_beyond_all_measure_is_a_reading_at_the_rail(configs, tmp_path):
    config = load(configs / "miga6/all_on.toml", [f"experiment.duration_s={RUN_S}"])
    fault = FaultTable(kind="force_offset", at_s=0.02, value=1e299)
    result = run(Plan(config, injection=Injection([fault])), Output(out=tmp_path / "run.h5"))
    assert result.summary["first_fault"] == ["channel_untrue"]


def test_two_devices_in_one_line_of_a_trip_are_told_apart(configs, tmp_path, capsys):
    file = tmp_path / "faults.toml"
    file.write_text('[[fault]]\nkind = "board_reset"\nat_s = 0.02\n')
    words = ["run", str(configs / "array14/groups.toml"), "--duration", str(RUN_S)]
    assert main([*words, "--inject", str(file), "--out", str(tmp_path / "run.h5")]) == 3
    assert "; board_b was reset: it is disarmed" in capsys.readouterr().out


@pytest.mark.slow_beyond(2)
@pytest.mark.parametrize("backend", ["sim", "emulated,daq=sim"])
@pytest.mark.parametrize("rig", ["miga6/all_on", "array14/broadcast"])
def test_a_reset_in_the_very_last_tick_trips(rig, backend, configs, tmp_path, capsys):
    """Of 50 ticks the last reads at 0.049 s what was commanded before the reset."""
    file, out = tmp_path / "faults.toml", tmp_path / "run.h5"
    file.write_text('[[fault]]\nkind = "board_reset"\nat_s = 0.048\n')
    words = ["run", str(configs / f"{rig}.toml"), "--duration", "0.05", "--backend", backend]
    assert main([*words, "--inject", str(file), "--out", str(out)]) == 3
    assert "tripped by board_reset; everything is off" in capsys.readouterr().out
    run = hil.open_run(out)
    assert run.attrs["outcome"] == "tripped"
    assert len(run.t_s) == 50
    events = zip(run.event_level.values, run.event_text.values, strict=True)
    assert [text for level, text in events if level == "fault" and "was reset: it is" in text]
    assert replay(out) == (50, None)


@pytest.mark.parametrize("backend", ["sim", "emulated,daq=sim"])
def test_a_run_whose_board_works_to_its_end_is_complete(backend, configs, tmp_path):
    words = ["run", str(configs / "miga6/all_on.toml"), "--duration", "0.05", "--backend", backend]
    assert main([*words, "--out", str(tmp_path / "run.h5")]) == 0


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("port_unplugged", "board: the port is gone: is it unplugged?; recorder: was killed; "),
        ("board_reset", "tripped by board_reset; recorder: was killed; "),
    ],
)
def test_a_fault_in_the_tick_in_which_the_recorder_is_killed_is_named_beside_it(
    kind, said, configs, tmp_path, capsys
):
    file, out = tmp_path / "faults.toml", tmp_path / "run.h5"
    both = (kind, "recorder_killed")
    file.write_text("".join(f'[[fault]]\nkind = "{k}"\nat_s = 0.1\n' for k in both))
    words = ["run", str(configs / "miga6/all_on.toml"), "--duration", "0.2"]
    assert main([*words, "--inject", str(file), "--out", str(out)]) == 4
    (line,) = capsys.readouterr().err.splitlines()
    assert re.fullmatch(rf"{re.escape(said)}its \d+ rows are kept in {re.escape(str(out))}", line)
    assert main(["recover", str(out)]) == 0


def test_a_recorder_that_is_killed_alone_is_named_alone(configs, tmp_path, capsys):
    file = tmp_path / "faults.toml"
    file.write_text('[[fault]]\nkind = "recorder_killed"\nat_s = 0.1\n')
    words = ["run", str(configs / "miga6/all_on.toml"), "--duration", "0.2"]
    assert main([*words, "--inject", str(file), "--out", str(tmp_path / "run.h5")]) == 4
    assert capsys.readouterr().err.startswith("recorder: was killed; its ")


@pytest.mark.parametrize(
    ("fault", "code", "said"),
    [
        ('kind = "card_unplugged"\nat_s = 0.02', 4, "daq: read: the card cannot be reached"),
        ('kind = "card_reserved"\nat_s = 0.0', 4, "daq: inputs: held by another task or program"),
        ('kind = "packets_late"\nat_s = 0.01\nfor_s = 0.1', 3, "tripped by reading_stale"),
        ('kind = "sensor_lost"\nat_s = 0.01', 3, "tripped by reading_stale"),
        ('kind = "sensor_nan"\nat_s = 0.02', 3, "tripped by channel_untrue"),
    ],
)
def test_what_becomes_of_a_card_is_one_line_with_its_name(
    fault, code, said, configs, tmp_path, capsys
):
    words = words_of(configs, tmp_path, fault, "--backend", "daq=emulated")
    words[words.index("--duration") + 1] = "0.1"
    assert main(words) == code
    captured = capsys.readouterr()
    assert said in captured.out + captured.err


def test_a_cell_that_breaks_in_a_run_is_felt_from_then_on_and_trips_as_a_jump(configs):
    config = load(configs / "miga6/all_on.toml", ["experiment.duration_s=2.2"])
    faults = Injection([FaultTable(kind="cell_broken", at_s=2.0, cell=6)])
    whole, broken = (simulate(config, injection=of) for of in (None, faults))
    n = int(np.argmax(broken.t_s.values >= 2.0))
    now_N, then_N = broken.force_measured_N.values, whole.force_measured_N.values
    assert np.array_equal(now_N[:n], then_N[:n])
    assert now_N[n + 1] < then_N[n + 1] - 0.1  # a cell has 0.17 N of 1.8
    assert broken.attrs["outcome"] == "tripped"
    assert any("force_jump: force" in str(text) for text in broken.event_text.values)
